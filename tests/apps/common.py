"""What the tests of applications share: the command line, the comparison with a real MySQL's
answers, and the contents of a database.

An application is a function `outcomes(database, cache)`: it works on an empty database and gives a
dictionary of plain JSON values that must not depend on the time, on ports or on the server.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import pymysql  # noqa: E402
import server  # noqa: E402


class Database:
    """An empty database on a server of 127.0.0.1, and an account that may do anything with it."""

    def __init__(self, name, port, user, password):
        self.name, self.host, self.port, self.user, self.password = name, "127.0.0.1", port, user, password

    def connect(self, database=None):
        return pymysql.connect(host=self.host, port=self.port, user=self.user, password=self.password, charset="utf8mb4",
                               autocommit=True, database=database)

    def execute(self, *statements):
        with self.connect() as conn, conn.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def __enter__(self):
        self.execute(f"DROP DATABASE IF EXISTS {self.name}", f"CREATE DATABASE {self.name}")
        return self

    def __exit__(self, *_):
        self.execute(f"DROP DATABASE {self.name}")


def definitions(database):
    """{"definition of TABLE": its SHOW CREATE TABLE} for all tables.

    Not for views: Nfold shows a view as it was written, MySQL rewrites it."""
    found = {}
    with database.connect(database.name) as conn, conn.cursor() as cursor:
        cursor.execute("SHOW FULL TABLES WHERE table_type = 'BASE TABLE'")
        for name, _ in sorted(cursor.fetchall()):
            cursor.execute(f"SHOW CREATE TABLE `{name}`")
            found[f"definition of {name}"] = re.sub(r" AUTO_INCREMENT=\d+", "", cursor.fetchone()[1])
    return found


def rows(database, leave_out=lambda table, column: False):
    """{"rows of TABLE": the rows of all tables, in the order of their text}. Without the columns
    for which `leave_out` is true."""
    found = {}
    with database.connect(database.name) as conn, conn.cursor() as cursor:
        cursor.execute("SHOW FULL TABLES WHERE table_type = 'BASE TABLE'")
        for name, _ in sorted(cursor.fetchall()):
            cursor.execute(f"SELECT * FROM `{name}`")
            keep = [n for n, column in enumerate(cursor.description) if not leave_out(name, column[0])]
            values = ([None if row[n] is None else str(row[n]) for n in keep] for row in cursor.fetchall())
            found[f"rows of {name}"] = sorted(values, key=str)
    return found


def install(*packages):
    """Installs Debian's packages, as root or by sudo."""
    sudo = [] if os.geteuid() == 0 else ["sudo"]
    for words in (["-q", "update"], ["-q", "-y", "install", "--no-install-recommends", *packages]):
        environment = ["env", "DEBIAN_FRONTEND=noninteractive"]
        subprocess.run([*sudo, *environment, "apt-get", *words], check=True, stdout=subprocess.DEVNULL)


def install_missing(*packages):
    """Installs those of Debian's packages that are not installed."""
    form = ["dpkg-query", "-W", "-f", "${Package} ${db:Status-Abbrev}\n", *packages]
    there = subprocess.run(form, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout.split("\n")
    missing = [name for name in packages if f"{name} ii " not in there]
    if missing:
        install(*missing)


def unpack(cache, *packages):
    """Unpacks Debian's packages without installing them, once for each list of packages. Returns
    the root of their tree."""
    root, stamp = os.path.join(cache, "root"), os.path.join(cache, "packages")
    wanted = "\n".join(packages)
    if os.path.exists(stamp) and open(stamp).read() == wanted:
        return root
    downloads = os.path.join(cache, "downloads")
    for directory in (root, downloads):
        shutil.rmtree(directory, ignore_errors=True)
        os.makedirs(directory)
    command = ["apt-get", "-q", "download", *packages]
    quiet = {"cwd": downloads, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    if subprocess.run(command, **quiet).returncode:
        sudo = [] if os.geteuid() == 0 else ["sudo"]
        subprocess.run([*sudo, "apt-get", "-q", "update"], check=True, stdout=subprocess.DEVNULL)
        subprocess.run(command, check=True, **quiet)
    for name in sorted(os.listdir(downloads)):
        subprocess.run(["dpkg-deb", "-x", os.path.join(downloads, name), root], check=True)
    shutil.rmtree(downloads)
    with open(stamp, "w") as f:
        f.write(wanted)
    return root


def python_environment(cache, *packages):
    """Makes a virtual environment in `cache` with these packages, once for each list of packages.
    Returns its bin directory."""
    directory = os.path.join(cache, "venv")
    stamp = os.path.join(directory, "packages")
    wanted = "\n".join(packages)
    if not os.path.exists(stamp) or open(stamp).read() != wanted:
        if subprocess.run(["/usr/bin/python3", "-c", "import ensurepip"], stderr=subprocess.DEVNULL).returncode:
            install("python3-venv")
        subprocess.run(["/usr/bin/python3", "-m", "venv", "--clear", directory], check=True)
        subprocess.run([os.path.join(directory, "bin", "pip"), "install", "-q", *packages], check=True)
        with open(stamp, "w") as f:
            f.write(wanted)
    return os.path.join(directory, "bin")


def compare(title, expected, found, verbose):
    """Prints what differs; gives the number of differences."""
    failed = [name for name in sorted(expected.keys() | found.keys()) if expected.get(name) != found.get(name)]
    for name in [*found, *(expected.keys() - found.keys())]:
        if verbose or name in failed:
            print(f"{'FAILED' if name in failed else 'ok    '}  {name}")
        if name in failed:
            print(f"   MySQL {json.dumps(expected.get(name), ensure_ascii=False)}\n   Nfold {json.dumps(found.get(name), ensure_ascii=False)}")
    print(f"{title}: {len(expected.keys() | found.keys()) - len(failed)} passed, {len(failed)} failed")
    return len(failed)


def main(title, directory, outcomes, options=None, is_left_out=lambda key: False):
    """Runs the application on an Nfold of its own, and compares with `expected.json` in
    `directory`; or records that file on a real MySQL. `options` are those of the server. Outcomes
    for which `is_left_out` is true behind the run are not expected."""
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument("--record", metavar="HOST:PORT", help="record the answers of a real MySQL (user sb, password sb)")
    parser.add_argument("--verbose", action="store_true")
    arguments = parser.parse_args()
    name = os.path.basename(directory)
    target = os.environ.get("CARGO_TARGET_DIR", os.path.join(server.ROOT, "target"))
    cache = os.path.join(target, "apps", name)
    os.makedirs(cache, exist_ok=True)
    path = os.path.join(directory, "expected.json")

    def outcomes_on(port, user, password):
        with Database(f"app_{name}", port, user, password) as database:
            return json.loads(json.dumps(outcomes(database, cache), default=str))

    if arguments.record:
        found = outcomes_on(int(arguments.record.rsplit(":", 1)[1]), "sb", "sb")
        with open(path, "w") as f:
            json.dump(found, f, ensure_ascii=False, indent=1)
            f.write("\n")
        print(f"recorded {len(found)} outcomes")
        return 0
    with open(path) as f:
        expected = json.load(f)
    with server.Server(options) as srv:
        with srv.connect() as conn, conn.cursor() as cursor:
            cursor.execute("CREATE USER sb IDENTIFIED BY 'sb'")
            cursor.execute("GRANT ALL ON *.* TO sb WITH GRANT OPTION")
        found = outcomes_on(srv.port, "sb", "sb")
    expected = {key: value for key, value in expected.items() if not is_left_out(key)}
    return 1 if compare(title, expected, found, arguments.verbose) else 0
