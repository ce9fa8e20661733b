"""Old snapshots, long transactions, and what they leave to others."""
from work import case, one_row, small_table


def open_snapshot(work):
    reader = work.connect()
    work.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT", "SELECT COUNT(*) FROM t", connection=reader)
    return reader


def versions_of_one_row(work):
    work.execute("CREATE TABLE t (id INT PRIMARY KEY, n INT, KEY (n))", "INSERT INTO t VALUES (1, 0), (2, 0)")
    open_snapshot(work)
    work.execute("BEGIN")
    for n in range(work.size):
        work.execute(f"UPDATE t SET n = {n + 1} WHERE id = 1")
        if n % 1000 == 999:
            work.execute("COMMIT", "BEGIN")
    work.execute("COMMIT")


@case("old_reader", "an old snapshot scans the index of a row's changing column", "a version",
      [1000, 5000, 20000], versions_of_one_row, compared=True)
def old_reader(work):
    work.execute("SELECT COUNT(n) FROM t FORCE INDEX (n) WHERE n >= 0", connection=work.connections[1])
    return work.size


def versions_of_many_rows(work):
    work.execute("CREATE TABLE t (id INT PRIMARY KEY, n INT, KEY (n))")
    work.rows("t", lambda n: f"({n}, {n})", 1000)
    open_snapshot(work)
    work.execute(*["UPDATE t SET n = n + 1000"] * work.size)


@case("old_reader_rows",
      "an old snapshot scans an index of 1,000 rows that changed many times each", "a version",
      [10, 30, 100], versions_of_many_rows, compared=True)
def old_reader_rows(work):
    work.execute("SELECT COUNT(n) FROM t FORCE INDEX (n) WHERE n >= 0", connection=work.connections[1])
    return work.size * 1000


def rows_under_snapshot(work):
    work.execute("CREATE TABLE t (id INT PRIMARY KEY, n INT, c CHAR(60))")
    work.rows("t", lambda n: f"({n}, {n}, 'text of row {n}')", work.size)
    open_snapshot(work)


@case("old_reader_update", "three bulk updates of rows that an old snapshot still needs",
      "a row changed", [1000, 10000, 50000], rows_under_snapshot, compared=True)
def old_reader_update(work):
    work.measure(*["UPDATE t SET n = n + 1"] * 3)
    return 3 * work.size


def rows_deleted_under_snapshot(work):
    work.execute("CREATE TABLE t (id INT PRIMARY KEY, n INT)")
    work.rows("t", lambda n: f"({n}, {n})", work.size + 10)
    open_snapshot(work)
    work.execute(f"DELETE FROM t WHERE id < {work.size}")


@case("deleted_rows", "the first row behind deleted ones that an old snapshot still needs", "a deleted row", [1000, 10000, 50000],
      rows_deleted_under_snapshot)
def deleted_rows(work):
    for _ in range(5):
        work.execute("SELECT id FROM t ORDER BY id LIMIT 1")
    return 5 * work.size


@case("savepoints", "savepoints of one transaction, each behind a change", "a savepoint", [1000, 5000, 20000], one_row)
def savepoints(work):
    work.execute("BEGIN")
    units = work.measure_last(lambda n: [f"UPDATE t SET n = {n}", f"SAVEPOINT s{n}"])
    work.measure(f"ROLLBACK TO s{work.size - units}")
    work.execute("COMMIT")
    return units


@case("rollback", "rolling a transaction back", "a row", [1000, 10000, 50000], small_table)
def rollback(work):
    work.execute("CREATE TABLE r (id INT PRIMARY KEY, a INT, KEY (a))")
    work.rows("r", lambda n: f"({n}, {n})", work.size)
    work.execute("BEGIN", "UPDATE r SET a = a + 1")
    work.measure("ROLLBACK")
    return work.size
