"""The tests of mysql-replication, a reader of binary logs for Python, from its source package. The
real MySQL needs `log_bin` and `gtid_mode = ON`; its binary log and GTIDs are reset."""

import json
import os
import subprocess

import junit
import target

VERSION = "1.0.17"
PACKAGES = (f"mysql-replication=={VERSION}", "pytest==8.4.2", "cryptography==45.0.7")
DATABASES = ("pymysqlreplication_test",)
OPTIONS = {"log_bin": "ON", "gtid_mode": "ON", "server_id": 1}
# The name by which the tests choose a server of config.json.
SERVER = "mysql-8"
PORT = "SUITE_PORT"


def prepare(cache):
    target.python_environment(cache, *PACKAGES)
    tests = os.path.join(sources(cache), "pymysqlreplication", "tests")
    database = {"host": "127.0.0.1", "port": 0, "port_env_override": PORT, "user": "sb", "passwd": "sb", "use_unicode": True,
                "charset": "utf8mb4", "db": DATABASES[0]}
    with open(os.path.join(tests, "config.json"), "w") as f:
        json.dump({SERVER: database}, f)


def sources(cache):
    return target.python_source(cache, "mysql-replication", VERSION, f"mysql_replication-{VERSION}")


def outcomes(where, cache, only):
    with where.connect() as conn, conn.cursor() as cursor:
        cursor.execute("SELECT @@log_bin, @@gtid_mode")
        if cursor.fetchone() != (1, "ON"):
            print(f"   {where.name}: skipped, because it has no binary log with GTIDs (log_bin, gtid_mode = ON)")
            return {}
    where.create(DATABASES)
    result = where.new_file(cache, ".xml")
    # The tests of MariaDB and of MySQL 5 choose other servers, which are not there.
    command = [target.python(cache), "-m", "pytest", *(only or ["pymysqlreplication/tests"]), "-q", "-p", "no:cacheprovider",
               "--db", SERVER, f"--junitxml={result}"]
    environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1", **{PORT: str(where.port)})
    with open(where.new_file(cache, ".log"), "w") as log:
        # The exit status says that a test failed; the result says which.
        subprocess.run(command, cwd=sources(cache), env=environment, stdout=log, stderr=log, timeout=1800)
    return junit.outcomes(result)
