"""Sampled histograms: what the values of a statement are decides its plan, if that pays off."""
import time

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
