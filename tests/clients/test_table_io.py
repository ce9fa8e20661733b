"""Rows read and changed, by table and index (performance_schema.table_io_waits_summary_by_%). The
numbers are those of MySQL 9.7.4, but for changes, which it counts for the index that found the
row."""
from test_passwords import rows

BY_INDEX = ("SELECT object_name, index_name, count_fetch, count_insert, count_update, count_delete, count_star, count_read, count_write "
            "FROM performance_schema.table_io_waits_summary_by_index_usage WHERE object_schema = 'io' ORDER BY 1, 2")
BY_TABLE = ("SELECT object_type, object_name, count_star, count_read, count_write, count_fetch, count_insert, count_update, count_delete, "
            "sum_timer_wait FROM performance_schema.table_io_waits_summary_by_table WHERE object_schema = 'io' ORDER BY 2")
UNUSED = ("SELECT object_name, index_name FROM performance_schema.table_io_waits_summary_by_index_usage "
          "WHERE index_name IS NOT NULL AND count_star = 0 AND object_schema = 'io' AND index_name <> 'PRIMARY' ORDER BY 1, 2")


def counts(conn):
    """{(table, index): (fetched, inserted, updated, deleted)}"""
    found = {}
    for table, index, *io in rows(conn, BY_INDEX):
        fetched, inserted, updated, deleted, all_io, read, written = io
        assert (all_io, read, written) == (sum(io[:4]), fetched, inserted + updated + deleted), (table, index, io)
        found[table, index] = tuple(io[:4])
    return found


def test_rows_are_counted_by_table_and_index(srv):
    with srv.connect() as conn, srv.connect() as other:
        for sql in ("CREATE DATABASE io", "USE io",
                    "CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT, KEY (a), UNIQUE KEY (b))",
                    "CREATE TABLE n (x INT)",
                    "INSERT INTO t VALUES (1, 1, 1), (2, 2, 2), (3, 3, 3), (4, 4, 4), (5, 5, 5)",
                    "INSERT INTO n VALUES (1), (2)"):
            rows(conn, sql)
        rows(other, "USE io")
        last = counts(conn)
        assert last == {("t", "PRIMARY"): (0, 0, 0, 0), ("t", "a"): (0, 0, 0, 0), ("t", "b"): (0, 0, 0, 0),
                        ("t", None): (0, 5, 0, 0), ("n", None): (0, 2, 0, 0)}, last
        assert rows(conn, UNUSED) == (("t", "a"), ("t", "b"))
        for user, sql, expected in (
                (conn, "SELECT * FROM t WHERE id = 1", {("t", "PRIMARY"): (1, 0, 0, 0)}),
                (other, "SELECT * FROM t WHERE id = 1", {("t", "PRIMARY"): (1, 0, 0, 0)}),
                (other, "SELECT * FROM t WHERE id = 99", {("t", "PRIMARY"): (1, 0, 0, 0)}),
                (conn, "SELECT * FROM t WHERE id BETWEEN 2 AND 4", {("t", "PRIMARY"): (3, 0, 0, 0)}),
                (conn, "SELECT * FROM t FORCE INDEX (a) WHERE a > 3", {("t", "a"): (2, 0, 0, 0)}),
                (conn, "SELECT * FROM t FORCE INDEX (a) WHERE a > 30", {("t", "a"): (1, 0, 0, 0)}),
                (conn, "SELECT * FROM t WHERE b IN (1, 2, 77)", {("t", "b"): (3, 0, 0, 0)}),
                (conn, "SELECT * FROM t", {("t", None): (5, 0, 0, 0)}),
                (conn, "UPDATE t SET a = a + 1 WHERE id = 5", {("t", "PRIMARY"): (1, 0, 0, 0), ("t", None): (0, 0, 1, 0)}),
                (other, "DELETE FROM t WHERE b = 1", {("t", "b"): (1, 0, 0, 0), ("t", None): (0, 0, 0, 1)}),
                (conn, "INSERT INTO n SELECT a FROM t WHERE id = 2", {("t", "PRIMARY"): (1, 0, 0, 0), ("n", None): (0, 1, 0, 0)})):
            rows(user, sql)
            now = counts(conn)
            changed = {place: tuple(n - m for n, m in zip(now[place], last[place])) for place in now if now[place] != last[place]}
            assert changed == expected, (sql, changed)
            last = now
        assert rows(conn, UNUSED) == ()
        by_table = rows(conn, BY_TABLE)
        assert by_table == (("TABLE", "n", 3, 0, 3, 0, 3, 0, 0, 0), ("TABLE", "t", 27, 20, 7, 20, 5, 1, 1, 0)), by_table
        rows(conn, "CREATE USER low")
        with srv.connect("low") as low:
            assert rows(low, BY_TABLE) == ()
