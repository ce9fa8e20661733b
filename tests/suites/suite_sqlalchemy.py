"""SQLAlchemy's own tests from its source package: its suite for dialects, those of its MySQL
dialect, and those of its engine, SQL and ORM layers."""

import os
import subprocess

import junit
import target

VERSION = "2.0.44"
PACKAGES = (f"sqlalchemy=={VERSION}", "greenlet", "pymysql==1.1.2", "cryptography", "pytest==8.4.2")
DATABASES = ("suite_sqlalchemy", "test_schema", "test_schema_2")
OPTIONS = {"innodb_buffer_pool_size": "1G"}
PARTS = ["test/dialect/test_suite.py", "test/dialect/mysql", "test/engine", "test/sql", "test/orm"]


def prepare(cache):
    target.python_environment(cache, *PACKAGES)
    target.python_source(cache, "sqlalchemy", VERSION)


def outcomes(where, cache, only):
    where.create(DATABASES)
    result = where.new_file(cache, ".xml")
    url = f"mysql+pymysql://{where.user}:{where.password}@{where.host}:{where.port}/suite_sqlalchemy?charset=utf8mb4"
    command = [target.python(cache), "-m", "pytest", *(only or PARTS), "--dburi", url, "-q", "--maxfail=1000000",
               "-p", "no:cacheprovider", "-p", "no:warnings", "-p", "no:logging", f"--junitxml={result}"]
    environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1")
    with open(where.new_file(cache, ".log"), "w") as log:
        # The exit status says that a test failed; the result says which.
        subprocess.run(command, cwd=os.path.join(cache, f"sqlalchemy-{VERSION}"), env=environment, stdout=log, stderr=log)
    return junit.outcomes(result)
