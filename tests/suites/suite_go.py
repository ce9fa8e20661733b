"""The tests of Go's MySQL driver, go-sql-driver/mysql, which its module carries."""

import json
import os
import shutil
import subprocess

MODULE, VERSION = "github.com/go-sql-driver/mysql", "v1.9.3"
DATABASES = ("suite_go",)
OPTIONS = {"local_infile": "ON"}


def environment(cache):
    return dict(os.environ, GOMODCACHE=os.path.join(cache, "modules"), GOFLAGS="-modcacherw -mod=mod")


def prepare(cache):
    if not shutil.which("go"):
        raise SystemExit("go is missing: Debian's package golang-go has it")
    source = os.path.join(cache, "source")
    if os.path.exists(source):
        return
    done = subprocess.run(["go", "mod", "download", "-json", f"{MODULE}@{VERSION}"], cwd=cache, env=environment(cache), check=True,
                          stdout=subprocess.PIPE)
    shutil.copytree(json.loads(done.stdout)["Dir"], source + ".new")
    subprocess.run(["go", "mod", "download"], cwd=source + ".new", env=environment(cache), check=True)
    os.rename(source + ".new", source)


def outcomes(where, cache, only):
    where.create(DATABASES)
    more = dict(environment(cache), MYSQL_TEST_USER=where.user, MYSQL_TEST_PASS=where.password, MYSQL_TEST_DBNAME=DATABASES[0],
                MYSQL_TEST_ADDR=f"{where.host}:{where.port}")
    # The skipped test expects that nothing answers at 1.1.1.1. Where a proxy does, it panics, and
    # no later test runs.
    command = ["go", "test", "-json", "-count=1", "-skip", "^TestConnectorReturnsTimeout$", *(["-run", "|".join(only)] if only else [])]
    with open(where.new_file(cache, ".log"), "w") as log:
        # The exit status says that a test failed; the events say which.
        done = subprocess.run(command, cwd=os.path.join(cache, "source"), env=more, stdout=subprocess.PIPE, stderr=log, text=True)
    found, output = {}, {}
    for line in done.stdout.splitlines():
        event = json.loads(line)
        test, action = event.get("Test"), event["Action"]
        if test and action == "output":
            output[test] = output.get(test, "") + event["Output"]
        elif test and action in ("pass", "fail"):
            found[test] = "" if action == "pass" else output.get(test, "failed")
    return found
