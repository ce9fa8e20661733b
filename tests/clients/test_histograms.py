"""Sampled histograms: what the values of a statement are decides its plan, if that pays off."""
import json
import shutil
import tempfile
import time

import server

ROWS = 80_000


def filled(srv, name):
    """A table `big`, in which `state` is 'done' in nearly all rows, and `few` of 20,000 rows."""
    cursor = srv.connect().cursor()
    for sql in (f"CREATE DATABASE {name}", f"USE {name}", "CREATE TABLE big (id INT PRIMARY KEY, state VARCHAR(10), n INT, at DATE, KEY (n))",
                "CREATE TABLE few (id INT PRIMARY KEY, state VARCHAR(10))"):
        cursor.execute(sql)
    for at in range(0, ROWS, 4000):
        rows = (f"({n}, '{'open' if n % 4000 == 9 else 'done'}', {0 if n % 10 else n}, '2020-01-01' + INTERVAL {n // 80} DAY)"
                for n in range(at, at + 4000))
        cursor.execute(f"INSERT INTO big VALUES {','.join(rows)}")
    cursor.execute("INSERT INTO few SELECT id, state FROM big WHERE id < 20000")
    return cursor


def plan(cursor, sql):
    cursor.execute(f"EXPLAIN FORMAT=TREE {sql}")
    return cursor.fetchone()[0]


def is_scan(cursor, condition):
    return "Table scan on big" in plan(cursor, f"SELECT COUNT(state) FROM big WHERE {condition}")


def test_literals_choose_the_plan(srv):
    cursor = filled(srv, "histograms")
    cursor.execute("ANALYZE TABLE big, few")
    # A range of an indexed column.
    assert is_scan(cursor, "n >= 0") and not is_scan(cursor, "n > 79000")
    # A join begins with the table that has fewer rows.
    join = "SELECT SUM(few.id) FROM few, big WHERE few.id = big.id AND big.state = '%s' AND few.state = 'done'"
    rare, frequent = plan(cursor, join % "open"), plan(cursor, join % "done")
    assert rare.index(" on big") < rare.index(" on few"), rare
    assert frequent.index(" on few") < frequent.index(" on big"), frequent
    # They are no histograms of users.
    cursor.execute("SELECT COUNT(*) FROM information_schema.COLUMN_STATISTICS WHERE SCHEMA_NAME = 'histograms'")
    assert cursor.fetchone() == (0,)


def test_background_makes_what_conditions_use(srv):
    cursor = filled(srv, "background")
    condition = "n >= 0"
    deadline = time.monotonic() + 30
    # Without a histogram a third of the rows would be expected.
    while not is_scan(cursor, condition) or is_scan(cursor, "n > 79900"):
        assert time.monotonic() < deadline, plan(cursor, f"SELECT COUNT(state) FROM big WHERE {condition}")
        time.sleep(0.5)


PLANS = [f"SELECT COUNT(state) FROM big WHERE {condition}" for condition in ("n >= 0", "n > 79900", "state = 'open'")]
PLANS.append("SELECT SUM(few.id) FROM few, big WHERE few.id = big.id AND big.state = 'open' AND few.state = 'done'")


def plans(cursor):
    return [plan(cursor, sql) for sql in PLANS]


def settled(cursor):
    """The plans when the background has made statistics for all of them."""
    deadline = time.monotonic() + 30
    found, same_since = plans(cursor), time.monotonic()
    while time.monotonic() - same_since < 5:
        assert time.monotonic() < deadline, found
        time.sleep(0.25)
        now = plans(cursor)
        if now != found:
            found, same_since = now, time.monotonic()
    return found


def test_restart_leaves_plans_as_they_are(_):
    top = tempfile.mkdtemp(prefix="nfold-histograms-")
    try:
        datadir = top + "/data"
        with server.Server(datadir=datadir) as srv:
            cursor = filled(srv, "sampled")
            before = settled(cursor)
            assert "Table scan" in before[0] and "Table scan" not in before[1], before
        for end in ("kill", "stop", "stop"):
            with server.Server(datadir=datadir) as srv:
                cursor = srv.connect(database="sampled").cursor()
                assert plans(cursor) == before, end
                getattr(srv, end)()
    finally:
        shutil.rmtree(top)


def test_auto_update_goes_with_the_statistics(srv):
    cursor = srv.connect().cursor()
    for sql in ("CREATE DATABASE automatic", "USE automatic", "CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT, at TIMESTAMP(3) NULL)"):
        cursor.execute(sql)

    def insert(first, a):
        cursor.execute(f"INSERT INTO t VALUES {','.join(f'({n}, {a}, {a}, NULL)' for n in range(first, first + 100))}")

    def buckets(column):
        cursor.execute("SELECT HISTOGRAM FROM information_schema.COLUMN_STATISTICS"
                       f" WHERE SCHEMA_NAME = 'automatic' AND COLUMN_NAME = '{column}'")
        histogram = json.loads(cursor.fetchone()[0])
        return histogram["buckets"], histogram["number-of-buckets-specified"], histogram["auto-update"]

    insert(0, 1)
    cursor.execute("ANALYZE TABLE t UPDATE HISTOGRAM ON a, at WITH 8 BUCKETS AUTO UPDATE")
    cursor.execute("ANALYZE TABLE t UPDATE HISTOGRAM ON b WITH 8 BUCKETS MANUAL UPDATE")
    assert buckets("a") == ([[1, 1.0]], 8, True)
    insert(100, 2)
    deadline = time.monotonic() + 30
    while buckets("a") != ([[1, 0.5], [2, 1.0]], 8, True):
        assert time.monotonic() < deadline, buckets("a")
        time.sleep(0.25)
    assert buckets("b") == ([[1, 1.0]], 8, False)
    assert buckets("at") == ([], 8, True)
    # The newer one of the two counts: the user's again.
    cursor.execute("""ANALYZE TABLE t UPDATE HISTOGRAM ON a USING DATA '{"buckets": [[9, 1.0]], "data-type": "int",
        "auto-update": true, "null-values": 0.0, "collation-id": 8, "sampling-rate": 1.0,
        "histogram-type": "singleton", "number-of-buckets-specified": 8}'""")
    assert buckets("a") == ([[9, 1.0]], 8, True)
    cursor.execute("ANALYZE TABLE t DROP HISTOGRAM ON a")
    cursor.execute("SELECT COUNT(*) FROM information_schema.COLUMN_STATISTICS WHERE SCHEMA_NAME = 'automatic' AND COLUMN_NAME = 'a'")
    assert cursor.fetchone() == (0,)
