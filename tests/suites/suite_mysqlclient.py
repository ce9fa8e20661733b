"""The tests of mysqlclient (MySQLdb) from its source package, built from it."""

import os
import subprocess

import junit
import target

VERSION = "2.2.7"
PACKAGES = (f"mysqlclient=={VERSION}", "pytest==8.4.2")
DATABASES = ("suite_mysqlclient",)
OPTIONS = {"local_infile": "ON"}


def prepare(cache):
    target.python_environment(cache, *PACKAGES)
    target.python_source(cache, "mysqlclient", VERSION)


def outcomes(where, cache, only):
    where.create(DATABASES)
    result, options = where.new_file(cache, ".xml"), where.new_file(cache, ".cnf")
    with open(options, "w") as f:
        f.write(f"[MySQLdb-tests]\nhost={where.host}\nport={where.port}\nuser={where.user}\npassword={where.password}\n"
                f"database={DATABASES[0]}\ndefault-character-set=utf8mb4\n")
    command = [target.python(cache), "-m", "pytest", *(only or ["tests"]), "-q", "-p", "no:cacheprovider", f"--junitxml={result}"]
    environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1", TESTDB=options)
    with open(where.new_file(cache, ".log"), "w") as log:
        # The exit status says that a test failed; the result says which.
        subprocess.run(command, cwd=os.path.join(cache, f"mysqlclient-{VERSION}"), env=environment, stdout=log, stderr=log)
    return junit.outcomes(result)
