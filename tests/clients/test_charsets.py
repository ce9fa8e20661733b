"""Results come in the client's character set, from columns of every character set."""
import pymysql

import wire


def rows(srv, charset, sql):
    with pymysql.connect(host="127.0.0.1", port=srv.port, user="root", database="charsets", use_unicode=False) as conn, conn.cursor() as cursor:
        cursor.execute(f"SET NAMES {charset}")
        cursor.execute(sql)
        return list(cursor.fetchall())


def test_members_of_enum_and_set(srv):
    with pymysql.connect(host="127.0.0.1", port=srv.port, user="root", charset="utf8mb4", autocommit=True) as conn, conn.cursor() as cursor:
        cursor.execute("CREATE DATABASE charsets")
        cursor.execute("CREATE TABLE charsets.m (id INT PRIMARY KEY, b ENUM('é','日'), s SET('é','x'), c CHAR(3))")
        cursor.execute("INSERT INTO charsets.m VALUES (1, 1, 3, 'é'), (2, 2, 1, '日'), (3, NULL, 0, '')")
    # As MySQL 9.7 gave them.
    latin1 = [(b"\xe9", b"\xe9,x", b"\xe9"), (b"?", b"\xe9", b"?"), (None, b"", b"")]
    utf8 = [("é".encode(), "é,x".encode(), "é".encode()), ("日".encode(), "é".encode(), "日".encode()), (None, b"", b"")]
    for sql in ("SELECT b, s, c FROM m", "SELECT b, s, c FROM m ORDER BY id", "SELECT DISTINCT b, s, c FROM m ORDER BY c DESC, b DESC"):
        if "DISTINCT" in sql:
            assert sorted(rows(srv, "latin1", sql), key=str) == sorted(latin1, key=str), sql
        else:
            assert rows(srv, "latin1", sql) == latin1, sql
        assert sorted(rows(srv, "utf8mb4", sql), key=str) == sorted(utf8, key=str), sql


def test_column_definitions_follow_the_connection(srv):
    """Sessions share a plan, and each gets the definitions for its own settings, also from the
    second execution on."""
    sql = "SELECT c, 1 AS n FROM charsets.m WHERE id = 1"
    flags = [False, True]
    sessions = [wire.Session(deprecate_eof=eof, host="127.0.0.1", port=srv.port, user="root") for eof in flags]
    # Name of a character set, the collation in the definition of a CHAR(3) CHARACTER SET utf8mb4,
    # its length in bytes.
    expected = {"utf8mb4": (255, 12), "latin1": (8, 3), "binary": (63, 3), "utf8mb3": (33, 9)}
    for _ in range(2):
        for charset, (collation, length) in expected.items():
            for session in sessions:
                session.query(f"SET NAMES {charset}")
                for _ in range(3):
                    count, c, n, *rest = session.query(sql)
                    assert count == b"\x02" and len(rest) == 2, charset
                    at = c.index(b"\x0c", c.rindex(b"\x01c"))
                    got = int.from_bytes(c[at + 1:at + 3], "little"), int.from_bytes(c[at + 3:at + 7], "little")
                    assert got == (collation, length), (charset, got)
                # Several results in one answer: the packets are numbered through.
                assert len(session.query(f"{sql}; {sql}")) == 10
    for session in sessions:
        session.close()
