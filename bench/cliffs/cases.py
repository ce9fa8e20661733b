"""The situations of bench/cliffs: what is set up, what is measured, and the unit of work."""
import json
import os
import subprocess
import threading
import time
from dataclasses import dataclass, field
from typing import Callable

import pymysql

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))


class TooLong(Exception):
    """A cell has used up its time."""


class Work:
    """One cell: a server, a size, and connections that are closed at the end."""

    def __init__(self, server, size, limit):
        self.server, self.size, self.end = server, size, time.monotonic() + limit
        self.limit, self.connections = limit, []
        self.measured_cpu = None  # seconds, where a case measures by itself
        self.extra = {}

    def connect(self, **more):
        connection = self.server.connect(read_timeout=self.limit, **more)
        self.connections.append(connection)
        return connection

    def reset(self):
        """An empty database."""
        with self.server.connect(database=None) as c:
            for statement in ("DROP DATABASE IF EXISTS cliffs", "CREATE DATABASE cliffs CHARACTER SET utf8mb4"):
                c.cursor().execute(statement)

    def execute(self, *statements, connection=None):
        """Runs statements on one connection; returns the rows of the last one."""
        if not self.connections:
            self.connect()
        cursor = (connection or self.connections[0]).cursor()
        for statement in statements:
            if time.monotonic() > self.end:
                raise TooLong
            try:
                cursor.execute(statement)
            except pymysql.OperationalError as e:
                if e.args[0] in (2006, 2013) and time.monotonic() > self.end - 1:
                    raise TooLong from e
                raise
        return cursor.fetchall()

    def rows(self, table, values, count, batch=1000):
        """Inserts `count` rows; `values(n)` is the text of row n."""
        for first in range(0, count, batch):
            numbers = range(first, min(first + batch, count))
            self.execute(f"INSERT INTO {table} VALUES " + ",".join(values(n) for n in numbers))

    def close(self):
        for connection in self.connections:
            try:
                connection.close()
            except pymysql.Error:
                pass


@dataclass
class Case:
    """A situation. `prepare(work)` sets it up, `run(work)` is measured and returns the number of units of work done."""

    name: str
    about: str
    unit: str
    sizes: list
    prepare: Callable
    run: Callable
    scales: bool = True
    tags: list = field(default_factory=list)


CASES = []


def case(name, about, unit, sizes, prepare, scales=True):
    """Registers the decorated function as the measured part of a situation."""
    def register(run):
        CASES.append(Case(name, about, unit, sizes, prepare, run, scales))
        return run
    return register


def chosen(only):
    wanted = only.split(",") if only else None
    unknown = set(wanted or ()) - {c.name for c in CASES}
    if unknown:
        raise SystemExit(f"no situation is named {', '.join(sorted(unknown))}")
    return [c for c in CASES if wanted is None or c.name in wanted]


def lab_binary():
    target = os.environ.get("CARGO_TARGET_DIR", os.path.join(ROOT, "target"))
    return os.environ.get("NFOLD", os.path.join(target, "release", "nfold"))


def under_load(work, statement, clients):
    """Runs one statement from many connections for three seconds by the lab's client; CPU per statement and throughput."""
    replay, result = (os.path.join(work.server.directory, name) for name in ("replay.jsonl", "result.json"))
    with open(replay, "w") as f:
        f.write(json.dumps({"text": statement, "db": "cliffs"}) + "\n")
    subprocess.run([lab_binary(), "lab", "bench", "--dsn", f"mysql://lab@127.0.0.1:{work.server.port}/cliffs", "--replay", replay,
                    "--allow-writes", "--clients", str(clients), "--time", "3", "--warmup", "1", "--repeat", "1", "--json", result],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with open(result) as f:
        [summary] = json.load(f)["summary"]
    if not summary["statements_per_s"]:
        raise TooLong
    work.measured_cpu = summary["server_us"] / 1e6
    work.extra["per_s"] = summary["statements_per_s"]
    return 1


def one_row(work):
    work.execute("CREATE TABLE t (id INT PRIMARY KEY, n BIGINT)", "INSERT INTO t VALUES (1, 0)")


@case("hot_row", "clients that update one row", "an update", [16, 256, 1000], one_row, scales=False)
def hot_row(work):
    return under_load(work, "UPDATE t SET n = n + 1 WHERE id = 1", work.size)


@case("hot_upsert", "clients that count in one row by ON DUPLICATE KEY UPDATE", "a statement", [16, 64, 256], one_row, scales=False)
def hot_upsert(work):
    return under_load(work, "INSERT INTO t VALUES (1, 1) ON DUPLICATE KEY UPDATE n = n + 1", work.size)


@case("many_readers", "clients that read one row by its key", "a read", [16, 128, 1000], one_row, scales=False)
def many_readers(work):
    return under_load(work, "SELECT n FROM t WHERE id = 1", work.size)


def versions_of_one_row(work):
    work.execute("CREATE TABLE t (id INT PRIMARY KEY, n INT, KEY (n))", "INSERT INTO t VALUES (1, 0), (2, 0)")
    reader = work.connect()
    work.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT", "SELECT COUNT(*) FROM t", connection=reader)
    work.execute("BEGIN")
    for n in range(work.size):
        work.execute(f"UPDATE t SET n = {n + 1} WHERE id = 1")
        if n % 1000 == 999:
            work.execute("COMMIT", "BEGIN")
    work.execute("COMMIT")


@case("old_reader", "an old snapshot scans the index of a row's changing column", "a version", [1000, 10000, 40000], versions_of_one_row)
def old_reader(work):
    work.execute("SELECT COUNT(n) FROM t FORCE INDEX (n) WHERE n >= 0", connection=work.connections[1])
    return work.size


def versions_of_many_rows(work):
    work.execute("CREATE TABLE t (id INT PRIMARY KEY, n INT, KEY (n))")
    work.rows("t", lambda n: f"({n}, {n})", 1000)
    reader = work.connect()
    work.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT", "SELECT COUNT(*) FROM t", connection=reader)
    work.execute(*["UPDATE t SET n = n + 1000"] * work.size)


@case("old_reader_rows", "an old snapshot scans an index of 1,000 rows that changed so many times each", "a version", [10, 50, 200], versions_of_many_rows)
def old_reader_rows(work):
    work.execute("SELECT COUNT(n) FROM t FORCE INDEX (n) WHERE n >= 0", connection=work.connections[1])
    return work.size * 1000


def nothing(work):
    work.execute("SELECT 1")


def small_table(work):
    work.execute("CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT, KEY (a), KEY (b, a))")
    work.rows("t", lambda n: f"({n}, {n % 997}, {n % 89})", 5000)


@case("nested_scalar", "nested scalar subqueries", "a level", [6, 12, 24], small_table, scales=False)
def nested_scalar(work):
    text = "(SELECT MAX(a) FROM t)"
    for _ in range(work.size):
        text = f"(SELECT {text} + 1)"
    for n in range(20):
        work.execute(f"SELECT {text}, {n} AS c{n}")
    return 20 * work.size


@case("ored_ranges", "ORed ranges on a key", "a range", [250, 1000, 4000], small_table)
def ored_ranges(work):
    ranges = " OR ".join(f"(a > {n * 10} AND a < {n * 10 + 5})" for n in range(work.size))
    work.execute(f"EXPLAIN SELECT * FROM t WHERE {ranges}")
    return work.size


@case("long_list", "an IN list", "a member", [1000, 10000, 90000], small_table)
def long_list(work):
    members = ",".join(str(n * 7) for n in range(work.size))
    work.execute(f"SELECT COUNT(b) FROM t WHERE a IN ({members})")
    return work.size


@case("list_of_expressions", "an IN list of expressions", "a member", [1000, 8000, 30000], small_table)
def list_of_expressions(work):
    members = ",".join(f"{n}+1" for n in range(work.size))
    work.execute(f"SELECT COUNT(b) FROM t WHERE a IN ({members})")
    return work.size


@case("savepoints", "savepoints of one transaction, each behind a change", "a savepoint", [1000, 5000, 20000], one_row)
def savepoints(work):
    work.execute("BEGIN")
    for n in range(work.size):
        work.execute(f"UPDATE t SET n = {n}", f"SAVEPOINT s{n}")
    work.execute("ROLLBACK TO s0", "COMMIT")
    return work.size


@case("rollback", "rolling a transaction back", "a row", [1000, 10000, 100000], small_table)
def rollback(work):
    work.execute("CREATE TABLE r (id INT PRIMARY KEY, a INT, KEY (a))")
    work.rows("r", lambda n: f"({n}, {n})", work.size)
    work.execute("BEGIN", "UPDATE r SET a = a + 1")
    before = work.server.cpu()
    work.execute("ROLLBACK")
    work.measured_cpu = work.server.cpu() - before
    return work.size


def locked_rows(work):
    work.execute("CREATE TABLE t (id INT PRIMARY KEY, n INT)")
    work.rows("t", lambda n: f"({n}, {n})", work.size + 10)
    holder = work.connect()
    work.execute("BEGIN", f"SELECT COUNT(*) FROM (SELECT id FROM t WHERE id < {work.size} FOR UPDATE) d", connection=holder)


@case("skip_locked", "SKIP LOCKED behind locked rows", "a locked row", [100, 1000, 10000], locked_rows)
def skip_locked(work):
    for _ in range(10):
        work.execute("BEGIN", "SELECT id FROM t ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED", "COMMIT")
    return 10 * work.size


def a_gap(work):
    work.execute("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (0), (1000000)")
    work.execute("BEGIN", "SELECT * FROM t WHERE id > 10 AND id < 999999 FOR UPDATE")


@case("gap_waiters", "inserts that wait for one gap", "an insert", [16, 64, 256], a_gap, scales=False)
def gap_waiters(work):
    def insert(connection, n):
        connection.cursor().execute(f"INSERT INTO t VALUES ({n + 100})")
    waiting = [work.connect() for _ in range(work.size)]
    before = work.server.cpu()
    threads = [threading.Thread(target=insert, args=(c, n)) for n, c in enumerate(waiting)]
    for thread in threads:
        thread.start()
    time.sleep(0.5)
    work.execute("COMMIT")
    for thread in threads:
        thread.join()
    work.measured_cpu = work.server.cpu() - before
    return work.size


@case("temporary_tables", "CREATE TEMPORARY TABLE ... SELECT, a join with it, DROP", "a table of 200 rows", [10, 50, 200], small_table)
def temporary_tables(work):
    for _ in range(work.size):
        work.execute("CREATE TEMPORARY TABLE d SELECT id, a FROM t WHERE id < 200", "SELECT COUNT(*) FROM d JOIN t ON t.id = d.a", "DROP TEMPORARY TABLE d")
    return work.size


@case("prepared_statements", "statements that stay prepared in one session", "a statement", [1000, 5000, 20000], small_table)
def prepared_statements(work):
    for n in range(work.size):
        work.execute(f"PREPARE s{n} FROM 'SELECT a FROM t WHERE id = ?'")
    work.execute("SET @i = 5", *[f"EXECUTE s{n} USING @i" for n in range(0, work.size, 10)])
    return work.size


@case("deep_offset", "LIMIT with a deep offset", "a row skipped", [1000, 10000, 100000], nothing)
def deep_offset(work):
    work.execute("CREATE TABLE o (id INT PRIMARY KEY, a INT)")
    work.rows("o", lambda n: f"({n}, {n})", work.size + 10)
    before = work.server.cpu()
    for _ in range(10):
        work.execute(f"SELECT * FROM o ORDER BY id LIMIT {work.size}, 5")
    work.measured_cpu = work.server.cpu() - before
    return 10 * work.size


@case("rows_of_one_insert", "one INSERT of many rows", "a row", [100, 1000, 20000], nothing)
def rows_of_one_insert(work):
    work.execute("CREATE TABLE i (id INT PRIMARY KEY, a INT, KEY (a))",
                 "INSERT INTO i VALUES " + ",".join(f"({n}, {n * 7919 % 65537})" for n in range(work.size)))
    return work.size
