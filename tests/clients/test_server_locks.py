"""FLUSH TABLES WITH READ LOCK and LOCK INSTANCE FOR BACKUP: who waits (here: 1205 after a second),
who is refused, and who goes on. Every expectation is what MySQL 9.7 answers, but for COMMIT, whose
wait is tested by threads."""

import threading
import time

import pymysql

BUSY, OWN, ACTIVE = 1205, 1223, 1192


def connect(srv):
    conn = pymysql.connect(host="127.0.0.1", port=srv.port, user="root", database="server_locks", autocommit=True, charset="utf8mb4")
    run(conn, "SET lock_wait_timeout = 1")
    return conn


def run(conn, sql):
    """The number of the statement's error; 0 for none."""
    try:
        with conn.cursor() as cursor:
            cursor.execute(sql)
        return 0
    except pymysql.MySQLError as e:
        return e.args[0]


def prepare(srv):
    with srv.connect() as conn, conn.cursor() as cursor:
        for sql in ("DROP DATABASE IF EXISTS server_locks", "CREATE DATABASE server_locks", "USE server_locks", "CREATE TABLE t (a INT PRIMARY KEY, b INT)", "CREATE TABLE u (a INT)",
                    "INSERT INTO t VALUES (1, 1)", "CREATE VIEW v AS SELECT * FROM t"):
            cursor.execute(sql)
    return connect(srv), connect(srv)


def check(conn, expected):
    found = {sql: run(conn, sql) for sql in expected}
    assert found == expected, {sql: (found[sql], error) for sql, error in expected.items() if found[sql] != error}


def test_read_lock_keeps_others_from_changing(srv):
    a, b = prepare(srv)
    assert run(a, "FLUSH TABLES WITH READ LOCK") == 0
    check(b, {
        "SELECT * FROM t": 0, "INSERT INTO t VALUES (2, 2)": BUSY, "UPDATE t SET b = 2": BUSY, "DELETE FROM u": BUSY, "REPLACE INTO t SELECT a, a FROM u": BUSY, "CREATE TABLE w (a INT)": BUSY,
        "CREATE TEMPORARY TABLE tmp (a INT)": 0, "INSERT INTO tmp VALUES (1)": 0, "LOCK TABLES t READ": 0, "UNLOCK TABLES": 0, "LOCK TABLES t WRITE": BUSY, "CREATE USER server_locks_u": BUSY,
        "ANALYZE TABLE t": 0, "FLUSH TABLES": 0, "CREATE VIEW v2 AS SELECT 1": BUSY, "DROP DATABASE nothere": BUSY, "TRUNCATE TABLE u": BUSY, "RENAME TABLE u TO u2": BUSY, "ALTER TABLE u ADD b INT": BUSY,
        "SET GLOBAL max_connections = 151": 0, "CREATE ROLE server_locks_r": BUSY, "HANDLER t OPEN": 0, "HANDLER t READ FIRST": 0, "HANDLER t CLOSE": 0, "SELECT 1 INTO @a": 0,
        "LOCK INSTANCE FOR BACKUP": 0, "UNLOCK INSTANCE": 0, "START TRANSACTION READ ONLY": 0, "SELECT COUNT(*) FROM u": 0, "COMMIT": 0,
        "FLUSH TABLES WITH READ LOCK": 0, "FLUSH TABLES t WITH READ LOCK": 0,
    })
    assert run(b, "UNLOCK TABLES") == 0
    check(a, {"INSERT INTO t VALUES (2, 2)": OWN, "CREATE TABLE w (a INT)": OWN, "BEGIN": 0, "UPDATE t SET b = 2": OWN, "COMMIT": 0, "LOCK TABLES t WRITE": OWN, "CREATE TEMPORARY TABLE tmp (a INT)": 0,
              "INSERT INTO tmp VALUES (1)": 0, "FLUSH TABLES WITH READ LOCK": 0, "LOCK TABLES t READ": 0, "SELECT * FROM u": 1100})
    assert run(a, "FLUSH TABLES WITH READ LOCK") == ACTIVE
    assert run(a, "UNLOCK TABLES") == 0
    assert run(a, "INSERT INTO t VALUES (3, 3)") == 0 and run(b, "INSERT INTO t VALUES (4, 4)") == 0


def test_two_read_locks_both_count(srv):
    a, b = prepare(srv)
    writer = connect(srv)
    assert run(a, "FLUSH TABLES WITH READ LOCK") == 0 and run(b, "FLUSH TABLES WITH READ LOCK") == 0
    assert run(a, "UNLOCK TABLES") == 0
    assert run(writer, "INSERT INTO t VALUES (2, 2)") == BUSY and run(a, "INSERT INTO t VALUES (2, 2)") == BUSY
    b.close()  # the end of a session ends its lock
    end = time.monotonic() + 20
    while (error := run(writer, "INSERT INTO t VALUES (2, 2)")) == BUSY and time.monotonic() < end:
        pass
    assert error == 0


def test_commit_waits_for_the_end_of_a_read_lock(srv):
    a, b = prepare(srv)
    assert run(a, "BEGIN") == 0 and run(a, "INSERT INTO t VALUES (5, 5)") == 0
    # The open transaction does not keep the other session from its lock.
    assert run(b, "FLUSH TABLES WITH READ LOCK") == 0
    run(a, "SET lock_wait_timeout = 60")
    found = []
    thread = threading.Thread(target=lambda: found.append(run(a, "COMMIT")))
    thread.start()
    time.sleep(0.3)
    with b.cursor() as cursor:
        cursor.execute("SELECT COUNT(*) FROM t")
        assert cursor.fetchone() == (1,)
        cursor.execute("SELECT state FROM information_schema.processlist WHERE info = 'COMMIT'")
        assert cursor.fetchone() == ("Waiting for global read lock",)
    assert not found
    assert run(b, "UNLOCK TABLES") == 0
    thread.join(30)
    assert found == [0]
    with b.cursor() as cursor:
        cursor.execute("SELECT COUNT(*) FROM t")
        assert cursor.fetchone() == (2,)
    # A COMMIT that waits in vain rolls back.
    assert run(a, "SET lock_wait_timeout = 1") == 0 and run(a, "BEGIN") == 0 and run(a, "DELETE FROM t") == 0
    assert run(b, "FLUSH TABLES WITH READ LOCK") == 0 and run(a, "COMMIT") == BUSY and run(b, "UNLOCK TABLES") == 0
    with a.cursor() as cursor:
        cursor.execute("SELECT COUNT(*) FROM t")
        assert cursor.fetchone() == (2,)


def test_read_lock_is_not_starved_by_writers(srv):
    a, b = prepare(srv)
    stop = threading.Event()

    def write(n):
        conn = connect(srv)
        run(conn, "SET lock_wait_timeout = 60")
        while not stop.is_set():
            assert run(conn, f"INSERT INTO u VALUES ({n})") == 0

    threads = [threading.Thread(target=write, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    run(a, "SET lock_wait_timeout = 30")
    try:
        for _ in range(5):
            assert run(a, "FLUSH TABLES WITH READ LOCK") == 0
            counts = []
            for _ in range(2):
                with a.cursor() as cursor:
                    cursor.execute("SELECT COUNT(*) FROM u")
                    counts.append(cursor.fetchone())
                time.sleep(0.05)
            assert counts[0] == counts[1]
            assert run(a, "UNLOCK TABLES") == 0
    finally:
        stop.set()
        run(a, "UNLOCK TABLES")
        for thread in threads:
            thread.join(60)


def test_backup_lock_keeps_definitions(srv):
    a, b = prepare(srv)
    assert run(a, "LOCK INSTANCE FOR BACKUP") == 0 and run(a, "LOCK INSTANCE FOR BACKUP") == 0
    check(b, {
        "INSERT INTO t VALUES (9, 9)": 0, "CREATE TABLE w (a INT)": BUSY, "CREATE TEMPORARY TABLE tmp2 (a INT)": 0, "ALTER TABLE u ADD c INT": BUSY, "CREATE USER server_locks_u": BUSY, "ANALYZE TABLE t": 0,
        "OPTIMIZE TABLE u": 0, "TRUNCATE TABLE u": BUSY, "CREATE VIEW v3 AS SELECT 1": BUSY, "DROP VIEW v": BUSY, "CREATE DATABASE server_locks_2": BUSY, "LOCK INSTANCE FOR BACKUP": 0, "UNLOCK INSTANCE": 0,
        "FLUSH TABLES WITH READ LOCK": BUSY, "CREATE INDEX i ON t (b)": BUSY, "SET GLOBAL max_connections = 151": 0, "DROP USER root": BUSY,
    })
    check(a, {"CREATE TABLE w2 (a INT)": 0, "DROP TABLE w2": 0, "UNLOCK INSTANCE": 0})
    assert run(a, "UNLOCK INSTANCE") == 0 and run(b, "CREATE TABLE w (a INT)") == 0


def test_flush_of_some_tables_with_read_lock(srv):
    a, b = prepare(srv)
    check(a, {"FLUSH TABLES t WITH READ LOCK": 0, "INSERT INTO t VALUES (11, 1)": 1099, "SELECT * FROM u": 1100, "FLUSH TABLES t": 1099, "FLUSH TABLES u": 1100, "FLUSH TABLES": 1099,
              "FLUSH TABLES WITH READ LOCK": ACTIVE})
    check(b, {"INSERT INTO t VALUES (11, 1)": BUSY, "INSERT INTO u (a) VALUES (11)": 0})
    check(a, {"UNLOCK TABLES": 0, "FLUSH TABLES v WITH READ LOCK": 1347, "FLUSH TABLES nothere WITH READ LOCK": 1146, "FLUSH TABLES t": 0, "FLUSH TABLES nothere": 0, "LOCK TABLES t WRITE": 0, "FLUSH TABLES t ": 0,
              "FLUSH TABLES ": 0, "FLUSH TABLES t WITH READ LOCK": ACTIVE})
    # LOCK TABLES ... WRITE keeps others from the lock of all tables.
    assert run(b, "FLUSH TABLES WITH READ LOCK") == BUSY
    assert run(a, "UNLOCK TABLES") == 0 and run(b, "FLUSH TABLES WITH READ LOCK") == 0 and run(b, "UNLOCK TABLES") == 0


def test_locks_need_their_privileges(srv):
    a, _ = prepare(srv)
    for sql in ("DROP USER IF EXISTS server_locks_p", "CREATE USER server_locks_p IDENTIFIED BY 'p'", "GRANT ALL ON server_locks.* TO server_locks_p"):
        assert run(a, sql) == 0
    with pymysql.connect(host="127.0.0.1", port=srv.port, user="server_locks_p", password="p", database="server_locks") as conn:
        check(conn, {"FLUSH TABLES WITH READ LOCK": 1227, "LOCK INSTANCE FOR BACKUP": 1227, "UNLOCK INSTANCE": 1227, "FLUSH TABLES t WITH READ LOCK": 1227})
    assert run(a, "DROP USER server_locks_p") == 0
