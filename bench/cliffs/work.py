"""Parts of the situations: a cell's connections, the registry, load by the lab's client."""
import json
import os
import subprocess
import threading
import time
from dataclasses import dataclass
from random import Random
from typing import Callable, Optional

import pymysql

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
# Seconds of load by the lab's client: measured, and before that.
LOAD_S = 1.5
WARMUP_S = 0.5
# A session with many things of a kind: the units that are measured, and seconds of statements
# before that.
LAST_UNITS = 1000
STEADY_S = 1.0
# ER_LOCK_DEADLOCK.
DEADLOCK = 1213


class TooLong(Exception):
    """A cell has used up its time."""


class Work:
    """One cell: a server, a size, and connections that are closed at the end."""

    def __init__(self, server, size, limit):
        self.server, self.size, self.end = server, size, time.monotonic() + limit
        self.limit, self.connections = limit, []
        self.measured_cpu = None  # seconds, where a situation measures by itself
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

    def measure(self, *statements, connection=None):
        """Runs statements and counts their processor time alone."""
        before = self.server.cpu()
        self.execute(*statements, connection=connection)
        self.measured_cpu = (self.measured_cpu or 0) + self.server.cpu() - before

    def measure_last(self, unit):
        """Runs the statements `unit(n)` for each n below `size` on one connection, and counts the
        processor time of the last LAST_UNITS of them: what a unit costs beside all those before it.
        Returns their number.

        Other statements come first, so that a cell of few units is not measured in the session's
        first tenth of a second and one of many in its third second: the processor time of one and
        the same statement may differ by more than the rule allows."""
        begun = time.monotonic()
        while time.monotonic() < begun + STEADY_S:
            self.execute("DO 1")
        first = max(0, self.size - LAST_UNITS)
        if first:
            self.execute(*(statement for n in range(first) for statement in unit(n)))
        self.measure(*[statement for n in range(first, self.size) for statement in unit(n)])
        return self.size - first

    def waiters(self, run, release, seconds=0.5):
        """`size` connections do `run(cursor, n)` and wait; `release()` ends it `seconds` later.
        Counts from the first request to the last answer, without the logins."""
        waiting = [self.connect() for _ in range(self.size)]
        threads = [threading.Thread(target=run, args=(c.cursor(), n)) for n, c in enumerate(waiting)]
        before = self.server.cpu()
        for thread in threads:
            thread.start()
        time.sleep(seconds)
        release()
        for thread in threads:
            thread.join()
        self.measured_cpu = self.server.cpu() - before
        return self.size

    def transactions(self, statements):
        """For LOAD_S, each of `size` connections commits transactions of the statements that
        `statements(random)` makes; a victim of a deadlock begins again. Returns the commits."""
        connections = [self.connect() for _ in range(self.size)]
        commits = [0] * self.size

        def one(n):
            random, cursor = Random(n), connections[n].cursor()
            while time.monotonic() < end:
                try:
                    cursor.execute("BEGIN")
                    for statement in statements(random):
                        cursor.execute(statement)
                    cursor.execute("COMMIT")
                    commits[n] += 1
                except pymysql.OperationalError as e:
                    if e.args[0] != DEADLOCK:
                        raise

        threads = [threading.Thread(target=one, args=(n,)) for n in range(self.size)]
        before, begun = self.server.cpu(), time.monotonic()
        end = begun + LOAD_S
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.measured_cpu = self.server.cpu() - before
        self.extra["per_s"] = sum(commits) / (time.monotonic() - begun)
        return sum(commits)

    def close(self):
        for connection in self.connections:
            try:
                connection.close()
            except pymysql.Error:
                pass


@dataclass
class Case:
    """A situation: `prepare(work)` sets it up; `run(work)` is measured and returns its units."""

    name: str
    about: str
    unit: str
    sizes: list
    prepare: Callable
    run: Callable
    # False: the sizes are numbers of clients or of levels, which --scale leaves alone.
    scales: bool = True
    # How much dearer a unit may be at the largest size than at the smallest; None: by a logarithm.
    growth: Optional[float] = None
    # A unit may cost no more than on the better peer.
    compared: bool = False
    # The throughput must be above that of both peers.
    fastest: bool = False
    # The floor server runs it as well, and the growth of its cost does not count.
    floor: bool = False


CASES = []


def case(name, about, unit, sizes, prepare, **more):
    """Registers the decorated function as the measured part of a situation."""
    def register(run):
        CASES.append(Case(name, about, unit, sizes, prepare, run, **more))
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


def under_load(work, statements, clients):
    """CPU per statement, and throughput, of many connections that run statements in turn."""
    replay, result = (os.path.join(work.server.directory, name) for name in ("replay.jsonl", "result.json"))
    with open(replay, "w") as f:
        for statement in statements:
            f.write(json.dumps({"text": statement, "db": "cliffs"}) + "\n")
    subprocess.run([lab_binary(), "lab", "bench", "--dsn", f"mysql://lab@127.0.0.1:{work.server.port}/cliffs", "--replay", replay,
                    "--allow-writes", "--clients", str(clients), "--time", str(LOAD_S), "--warmup", str(WARMUP_S), "--repeat", "1",
                    "--json", result],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with open(result) as f:
        [summary] = json.load(f)["summary"]
    if not summary["statements_per_s"]:
        raise TooLong
    work.measured_cpu = summary["server_us"] / 1e6
    work.extra["per_s"] = summary["statements_per_s"]
    return 1


def nothing(work):
    work.execute("SELECT 1")


def small_table(work):
    work.execute("CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT, KEY (a), KEY (b, a))")
    work.rows("t", lambda n: f"({n}, {n % 997}, {n % 89})", 5000)


def one_row(work):
    work.execute("CREATE TABLE t (id INT PRIMARY KEY, n BIGINT)", "INSERT INTO t VALUES (1, 0)")
