"""Clients that come in thousands, stay silent, do not read, leave in the middle, or are killed: the
server serves the others, and nothing
of those stays behind."""
import os
import resource
import socket
import struct
import threading
import time

import pymysql
from pymysql.cursors import SSCursor

OPTIONS = {"max_connections": "60", "innodb_buffer_pool_size": "128M", "innodb_lock_wait_timeout": "30", "connect_timeout": "4", "net_write_timeout": "60"}
FIRST = "test_table"
LONG = "SELECT COUNT(*) FROM rough.t a JOIN rough.t b JOIN rough.t c WHERE a.s < b.s AND b.s > c.s"


def lives(srv):
    with srv.connect() as conn:
        cur = conn.cursor()
        cur.execute("SELECT 1")
        assert cur.fetchone() == (1,)


def others(srv):
    with srv.connect() as conn:
        cur = conn.cursor()
        cur.execute("SHOW PROCESSLIST")
        return len(cur.fetchall()) - 1


def has_room(srv):
    """False: the connections of lost clients are still open, and no client gets in."""
    try:
        lives(srv)
    except pymysql.err.OperationalError as e:
        if e.args[0] != 1040:
            raise
        return False
    return True


def until(condition, what, limit=20):
    end = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.05)


def resident_mib(srv):
    with open(f"/proc/{srv.process.pid}/status") as f:
        return next(int(line.split()[1]) // 1024 for line in f if line.startswith("VmRSS"))


def open_files(srv):
    return len(os.listdir(f"/proc/{srv.process.pid}/fd"))


def test_table(srv):
    with srv.connect() as conn:
        cur = conn.cursor()
        cur.execute("CREATE DATABASE rough")
        cur.execute("CREATE TABLE rough.t (id INT PRIMARY KEY, s VARCHAR(250))")
        for first in range(0, 20000, 1000):
            cur.execute("INSERT INTO rough.t VALUES " + ",".join(f"({i},'{i:x<240}')" for i in range(first, first + 1000)))
        cur.execute("CREATE TABLE rough.u (id INT PRIMARY KEY, s VARCHAR(250))")
        cur.execute("INSERT INTO rough.u SELECT * FROM rough.t")


def test_ten_thousand_connections(srv):
    """Opened and dropped: silent, after the greeting, and after a login; in bursts beyond
    max_connections."""
    lives(srv)
    files = open_files(srv)
    for n in range(10000):
        s = socket.socket()
        s.settimeout(20)
        s.connect(("127.0.0.1", srv.port))
        if n % 4 == 1:
            s.recv(200)
        if n % 4 == 2:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset in place of an end
        s.close()
    for _ in range(5):
        burst = []
        for _ in range(150):
            s = socket.create_connection(("127.0.0.1", srv.port), timeout=20)
            burst.append(s)
        for s in burst:
            s.close()
    until(lambda: has_room(srv) and others(srv) == 0, "connections stay behind")
    until(lambda: open_files(srv) <= files + 3, "sockets stay open")
    for _ in range(300):
        lives(srv)


def test_silent_clients_are_dropped(srv):
    """They say nothing, or half a packet, and lose their place after connect_timeout."""
    silent = []
    for n in range(40):
        s = socket.create_connection(("127.0.0.1", srv.port), timeout=20)
        s.recv(200)
        if n % 2:
            s.sendall(b"\x50\0\0\x01\x8d\xa6")
        silent.append(s)
    lives(srv)
    for s in silent:
        while s.recv(1000):  # an error may come first
            pass
        s.close()
    until(lambda: others(srv) == 0, "connections stay behind")


def test_a_byte_at_a_time(srv):
    conn = srv.connect()
    for byte in b"\x0a\0\0\0\x03SELECT 42":
        conn._sock.sendall(bytes([byte]))
        time.sleep(0.002)
    conn._next_seq_id = 1
    conn._read_query_result()
    assert conn._result.rows == ((42,),)
    conn.close()


def test_a_client_that_does_not_read(srv):
    """Its result waits without growing in memory, the others are served, and KILL ends it."""
    lives(srv)
    before = resident_mib(srv)
    slow = []
    for _ in range(10):
        conn = srv.connect(cursorclass=SSCursor)
        conn._execute_command(3, b"SELECT a.*, b.s FROM rough.t a JOIN rough.t b")  # 200 GB
        slow.append(conn)
    time.sleep(1)
    lives(srv)
    assert resident_mib(srv) < before + 100, (before, resident_mib(srv))
    with srv.connect() as admin:
        cur = admin.cursor()
        for conn in slow[:5]:
            cur.execute(f"KILL QUERY {conn.thread_id()}")
        for conn in slow[5:]:
            cur.execute(f"KILL {conn.thread_id()}")
    for conn in slow:
        conn._sock.settimeout(20)
        try:
            while conn._sock.recv(1 << 20):
                if conn in slow[:5]:
                    conn._sock.settimeout(1)  # it stays connected: silence is its end
        except OSError:
            pass
        conn._force_close()
    until(lambda: others(srv) == 0, "killed connections stay")


def test_leaving_in_the_middle_of_a_result(srv):
    for n in range(12):
        conn = srv.connect(cursorclass=SSCursor)
        conn.cursor().execute("SELECT * FROM rough.t, (SELECT 1 UNION SELECT 2 UNION SELECT 3) x")
        if n % 2:
            conn._sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        conn._force_close()
    until(lambda: others(srv) == 0, "abandoned results stay")
    lives(srv)


def test_leaving_in_the_middle_of_a_statement(srv):
    """Half a statement, then the end; a whole one that runs for long, then the end."""
    for n in range(20):
        conn = srv.connect()
        if n % 2:
            conn._sock.sendall(b"\xff\xff\x01\0\x03INSERT INTO rough.t VALUES (1000000,'half')")
        else:
            conn._execute_command(3, LONG.encode())
        conn._force_close()
    until(lambda: others(srv) == 0, "abandoned statements run on")
    with srv.connect() as conn:
        cur = conn.cursor()
        cur.execute("SELECT COUNT(*) FROM rough.t WHERE id >= 1000000")
        assert cur.fetchone() == (0,)


def test_locks_of_those_who_leave(srv):
    """A transaction ends with its connection, whether that is closed, reset or killed."""
    for way in range(3):
        conn = srv.connect()
        cur = conn.cursor()
        cur.execute("BEGIN")
        cur.execute("UPDATE rough.t SET s='mine' WHERE id < 100")
        if way == 0:
            conn._force_close()
        elif way == 1:
            conn._sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            conn._force_close()
        with srv.connect() as next_:
            cur = next_.cursor()
            if way == 2:
                cur.execute(f"KILL {conn.thread_id()}")
            cur.execute("UPDATE rough.t SET s=s WHERE id < 100")
            cur.execute("SELECT COUNT(*) FROM rough.t WHERE s='mine'")
            assert cur.fetchone() == (0,), way


class Statement(threading.Thread):
    """Runs one statement; `error` is the number that it ended with, or None."""

    def __init__(self, conn, sql):
        super().__init__(daemon=True)
        self.conn, self.sql, self.error = conn, sql, None
        self.start()

    def run(self):
        try:
            self.conn.cursor().execute(self.sql)
        except pymysql.err.MySQLError as e:
            self.error = e.args[0]
        except OSError:
            self.error = 2013


def killed(srv, sql, kind, before=()):
    """What a statement ends with that is killed a moment after its start, and whether its
    connection lives."""
    conn = srv.connect()
    for first in before:
        conn.cursor().execute(first)
    run = Statement(conn, sql)
    time.sleep(0.3)
    with srv.connect() as admin:
        admin.cursor().execute(f"KILL {kind} {conn.thread_id()}")
    run.join(20)
    assert not run.is_alive(), f"KILL {kind} does not end: {sql}"
    try:
        cur = conn.cursor()
        cur.execute("SELECT 1")
        alive = cur.fetchone() == (1,)
    except (pymysql.err.MySQLError, OSError):
        alive = False
    conn._force_close()
    return run.error, alive


def test_kill_in_each_state(srv):
    with srv.connect() as holder:
        cur = holder.cursor()
        cur.execute("BEGIN")
        cur.execute("UPDATE rough.t SET s='held' WHERE id=7")
        cur.execute("SELECT * FROM rough.t WHERE id=8 FOR UPDATE")
        computing = [LONG, "SELECT COUNT(DISTINCT a.s, b.id) FROM rough.t a JOIN rough.t b", "SELECT a.s FROM rough.t a JOIN rough.t b ORDER BY b.s, a.id LIMIT 1",
                     "UPDATE rough.u SET s=CONCAT(s, 'x') WHERE (SELECT COUNT(*) FROM rough.t b WHERE b.s > u.s) < 0",
                     "INSERT INTO rough.t SELECT a.id + 10000000, a.s FROM rough.t a JOIN rough.t b WHERE a.s > b.s AND CONCAT(a.s, b.s) = 'none'",
                     "SELECT BENCHMARK(100000000000, MD5('x'))"]
        waiting = ["UPDATE rough.t SET s='x' WHERE id=7", "SELECT * FROM rough.t WHERE id=8 FOR SHARE", "ALTER TABLE rough.t ADD COLUMN c INT", "DROP TABLE rough.t"]
        for sql in computing + waiting:
            error, alive = killed(srv, sql, "QUERY")
            assert error == 1317 and alive, (sql, error, alive)
            error, alive = killed(srv, sql, "CONNECTION")
            assert error in (1317, 1053, 2013) and not alive, (sql, error, alive)
        error, alive = killed(srv, "UPDATE rough.t SET s='y' WHERE id=7", "QUERY", ["BEGIN", "UPDATE rough.t SET s='z' WHERE id=9"])
        assert error == 1317 and alive
        # killed while idle: the next statement finds the connection gone
        conn = srv.connect()
        cur.execute(f"KILL {conn.thread_id()}")
        try:
            conn.cursor().execute("SELECT 1")
            raise AssertionError("a killed connection answers")
        except (pymysql.err.MySQLError, OSError):
            pass
        # killed before it has logged in
        s = socket.create_connection(("127.0.0.1", srv.port), timeout=20)
        greeting = s.recv(200)
        at = greeting.index(b"\0", 5) + 1
        cur.execute(f"KILL {struct.unpack_from('<I', greeting, at)[0]}")
        while s.recv(1000):
            pass
        s.close()
        for number, sql in ((1094, "KILL 99999999"), (1317, f"KILL QUERY {holder.thread_id()}")):
            try:
                cur.execute(sql)
                raise AssertionError(sql)
            except pymysql.err.MySQLError as e:
                assert e.args[0] == number, e
        cur.execute("ROLLBACK")
        cur.execute("SELECT s FROM rough.t WHERE id IN (7, 9)")
        assert all(s.startswith(("7x", "9x")) for s, in cur.fetchall())
    until(lambda: others(srv) == 0, "killed connections stay")


def test_sigterm_under_load(srv):
    """It ends soon and in order with statements running, clients that do not read, open
    transactions and half a login."""
    lives(srv)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    conns = []
    for n in range(30):
        conn = srv.connect(cursorclass=SSCursor)
        cur = conn.cursor()
        if n % 5 == 0:
            conn._execute_command(3, LONG.encode())
        elif n % 5 == 1:
            conn._execute_command(3, b"SELECT a.*, b.s FROM rough.t a JOIN rough.t b")
        elif n % 5 == 2:
            cur.execute("BEGIN")
            cur.execute(f"INSERT INTO rough.t VALUES ({2000000 + n}, 'never committed')")
        elif n % 5 == 3:
            conn._execute_command(3, b"UPDATE rough.t SET s='waits' WHERE id > 1999999")
        conns.append(conn)
    half = socket.create_connection(("127.0.0.1", srv.port))
    begin = time.monotonic()
    status = srv.stop(timeout=60)
    took = time.monotonic() - begin
    assert status == 0 and took < 25, (status, took)
    for conn in conns:
        conn._force_close()
    half.close()
    srv.start()
    with srv.connect() as conn:
        cur = conn.cursor()
        cur.execute("SELECT COUNT(*) FROM rough.t WHERE id >= 1000000")
        assert cur.fetchone() == (0,)
        cur.execute("CHECK TABLE rough.t")
        assert cur.fetchone()[3] == "OK"
