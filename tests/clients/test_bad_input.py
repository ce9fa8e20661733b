"""What a server must survive: broken packets, wrong passwords, unknown commands, statements out of
all bounds."""
import os
import random
import socket
import struct
import subprocess

import pymysql

OPTIONS = {"max_connections": "20", "innodb_buffer_pool_size": "128M"}


def answers(srv):
    with srv.connect() as conn:
        cur = conn.cursor()
        cur.execute("SELECT 1")
        assert cur.fetchone() == (1,)


def error_of(cur, sql):
    """Number and message of the error that a statement must give."""
    try:
        cur.execute(sql)
    except pymysql.err.MySQLError as e:
        return e.args[0], e.args[1]
    raise AssertionError(f"no error: {sql[:80]}")


def raw_connect(srv):
    s = socket.create_connection(("127.0.0.1", srv.port), timeout=10)
    s.settimeout(10)
    return s


def test_random_bytes(srv):
    rnd = random.Random(1)
    for _ in range(60):
        with raw_connect(srv) as s:
            s.recv(200)
            try:
                s.sendall(rnd.randbytes(rnd.choice([1, 3, 4, 5, 40, 400, 70000])))
                s.shutdown(socket.SHUT_WR)
                while s.recv(4096):
                    pass
            except OSError:
                pass
    answers(srv)


def test_truncated_packets_after_login(srv):
    rnd = random.Random(2)
    for _ in range(120):
        conn = srv.connect()
        command = rnd.choice([0x03, 0x16, 0x17, 0x18, 0x19, 0x1A, 0x11, 0x02, 0x1B, 0x1C, rnd.randrange(256)])
        body = bytes([command]) + rnd.randbytes(rnd.randrange(0, 60))
        sock = conn._sock
        sock.settimeout(10)
        try:
            sock.sendall(struct.pack("<I", len(body))[:3] + b"\0" + body)
            sock.shutdown(socket.SHUT_WR)
            while sock.recv(4096):
                pass
        except OSError:
            pass
        sock.close()
    answers(srv)


def test_unknown_command_is_1047(srv):
    conn = srv.connect()
    try:
        conn._execute_command(0x55, b"")
        conn._read_packet()
        raise AssertionError("no error")
    except pymysql.err.MySQLError as e:
        assert e.args[0] == 1047, e
    conn.ping(reconnect=False)
    conn.close()


def test_wrong_password(srv):
    for user in ("root", "stranger"):
        try:
            srv.connect(user=user, password="wrong")
            raise AssertionError("logged in")
        except pymysql.err.OperationalError as e:
            assert e.args[0] == 1045 and "Access denied for user" in e.args[1], e


def test_too_many_connections(srv):
    open_ = []
    try:
        while True:
            open_.append(srv.connect())
            assert len(open_) < 40
    except pymysql.err.OperationalError as e:
        assert e.args[0] == 1040, e
    assert len(open_) >= 20
    for conn in open_:
        conn.close()
    for _ in range(50):
        try:
            answers(srv)
            return
        except pymysql.err.OperationalError:
            pass
    raise AssertionError("no connection after the others were closed")


def test_deep_nesting(srv):
    with srv.connect() as conn:
        cur = conn.cursor()
        for opening, closing in (("(", ")"), ("ABS(", ")"), ("NOT (", ")"), ("(SELECT ", ")"), ("-", ""), ("CASE WHEN 1 THEN ", " END")):
            sql = "SELECT " + opening * 5000 + "1" + closing * 5000
            try:
                cur.execute(sql)
                cur.fetchall()
            except pymysql.err.MySQLError as e:
                assert e.args[0] in (1064, 1235, 1436, 1105, 1690, 1473), e
        answers(srv)


def test_large_statement(srv):
    with srv.connect(max_allowed_packet=80 << 20) as conn:
        cur = conn.cursor()
        cur.execute("CREATE DATABASE IF NOT EXISTS big")
        cur.execute("USE big")
        cur.execute("CREATE TABLE t (id INT PRIMARY KEY, s VARCHAR(200))")
        row = "x" * 180
        n = (60 << 20) // 195
        cur.execute("INSERT INTO t VALUES " + ",".join(f"({i},'{row}')" for i in range(n)))
        assert cur.rowcount == n
        cur.execute("SELECT COUNT(*), SUM(LENGTH(s)) FROM t")
        assert cur.fetchone() == (n, n * 180)
        cur.execute("DROP TABLE t")


def test_packet_over_the_limit(srv):
    with srv.connect(max_allowed_packet=200 << 20) as conn:
        try:
            conn.cursor().execute("SELECT LENGTH('" + "x" * (70 << 20) + "')")
            raise AssertionError("no error")
        except (pymysql.err.MySQLError, OSError) as e:
            assert isinstance(e, OSError) or e.args[0] in (1153, 2006, 2013), e
    answers(srv)


def test_values_and_keys(srv):
    with srv.connect() as conn:
        cur = conn.cursor()
        cur.execute("CREATE DATABASE IF NOT EXISTS bad")
        cur.execute("USE bad")
        cur.execute("CREATE TABLE v (id INT PRIMARY KEY, t TINYINT, s VARCHAR(3), d DATE, n INT NOT NULL, UNIQUE KEY u (s))")
        cur.execute("INSERT INTO v VALUES (1, 1, 'abc', '2020-01-01', 1)")
        for sql, number in [
            ("INSERT INTO v VALUES (2, 128, 'a', NULL, 1)", 1264),
            ("INSERT INTO v VALUES (2, 1, 'abcd', NULL, 1)", 1406),
            ("INSERT INTO v VALUES (2, 1, 'a', '2020-13-01', 1)", 1292),
            ("INSERT INTO v VALUES (2, 1, 'a', NULL, NULL)", 1048),
            ("INSERT INTO v VALUES (2, 'x', 'a', NULL, 1)", 1366),
            ("INSERT INTO v VALUES (1, 1, 'x', NULL, 1)", 1062),
            ("INSERT INTO v VALUES (2, 1, 'ABC', NULL, 1)", 1062),
            ("INSERT INTO v (id) VALUES (3)", 1364),
            ("INSERT INTO v VALUES (3)", 1136),
            ("SELECT nope FROM v", 1054),
            ("SELECT * FROM nope", 1146),
            ("SELEC 1", 1064),
        ]:
            got = error_of(cur, sql)
            assert got[0] == number, (sql, got)
        cur.execute("SELECT COUNT(*) FROM v")
        assert cur.fetchone() == (1,)


def test_invalid_utf8(srv):
    conn = srv.connect()
    conn._execute_command(0x03, b"SELECT '\xff\xfe\xc3' AS `x`")
    try:
        conn._read_query_result()
    except pymysql.err.MySQLError as e:
        assert e.args[0] in (1300, 1064, 3854), e
    except UnicodeDecodeError:
        pass  # MySQL, too, gives the bytes back as they came; the driver cannot read them
    conn.close()
    answers(srv)


def test_mariadb_client(srv):
    done = subprocess.run(["mariadb", "--no-defaults", "-h127.0.0.1", f"-P{srv.port}", "-uroot", "--ssl=0", "-t", "-e",
                           "CREATE DATABASE IF NOT EXISTS c; USE c; CREATE TABLE t (id INT PRIMARY KEY, s VARCHAR(20), KEY s (s));"
                           "INSERT INTO t VALUES (1,'one'),(2,'two'); SELECT * FROM t WHERE s='two'; EXPLAIN FORMAT=TRADITIONAL SELECT * FROM t WHERE id=1;"],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "two" in done.stdout and "const" in done.stdout, done.stdout + done.stderr
    done = subprocess.run(["mariadb", "--no-defaults", "-h127.0.0.1", f"-P{srv.port}", "-uroot", "--ssl=0", "-e", "INSERT INTO c.t VALUES (1,'x')"],
                          capture_output=True, text=True, timeout=60)
    assert "ERROR 1062 (23000)" in done.stderr, done.stderr
