"""Results with long texts, which are sent without a copy into the send buffer: every size about a
packet's limit, in both protocols, over TCP, TLS, a unix socket and compression."""
import socket
import struct
import time

import pymysql
import wire
from pymysql.constants import CLIENT
from test_compression import Connection as Compressed

# A text of this size is sent in place.
IN_PLACE = 64 << 10
LONGEST_PACKET = 0xFFFFFF
# (size of the first text, size of the second one or None for NULL)
SIZES = [(10, None), (IN_PLACE - 1, 5), (IN_PLACE, None), (IN_PLACE, IN_PLACE + 1), (5, 200_000), (1 << 20, 3 << 20), (0, 0)]
# With a one-byte number before the text and a NULL behind it, a text takes 7 more bytes in a row.
SIZES += [(LONGEST_PACKET - 7 + n, None) for n in (-1, 0, 1)] + [(17 << 20, IN_PLACE)]


def text(row, column, size):
    return (f"{row}{column}é".encode("latin1") + bytes(range(32, 127)) * (size // 95 + 1))[:size]


def rows():
    return [(n, *(None if size is None else text(n, column, size) for column, size in zip("vw", sizes))) for n, sizes in enumerate(SIZES)]


def connect(srv, kind=pymysql.connect, charset="latin1", **more):
    return kind(host="127.0.0.1", port=srv.port, user="root", autocommit=True, charset=charset, **more)


def fill(srv):
    conn = connect(srv)
    cur = conn.cursor()
    if cur.execute("SHOW DATABASES LIKE 'long_texts'"):
        return
    cur.execute("CREATE DATABASE long_texts")
    cur.execute("CREATE TABLE long_texts.t (id INT PRIMARY KEY, v LONGTEXT CHARACTER SET latin1, w LONGBLOB)")
    for row in rows():
        cur.execute("INSERT INTO long_texts.t VALUES (%s, %s, %s)", row)
    conn.close()


def read(conn, sql):
    cur = conn.cursor()
    cur.execute(sql)
    return [tuple(v.encode("latin1") if isinstance(v, str) else v for v in row) for row in cur.fetchall()]


def check(srv, count=len(SIZES), **more):
    """All ways to send the first `count` rows: from a table, sorted, computed, joined."""
    conn = connect(srv, database="long_texts", **more)
    expected = rows()[:count]
    assert read(conn, f"SELECT * FROM t WHERE id < {count}") == expected
    assert read(conn, f"SELECT id + 0, v, w FROM t WHERE id < {count} ORDER BY id DESC") == expected[::-1]
    assert read(conn, f"SELECT a.id, a.v, b.w FROM t a JOIN t b ON b.id = a.id + 0 WHERE a.id < {count} ORDER BY a.id") == expected
    assert read(conn, f"SELECT id, v, w FROM t WHERE id < 3 UNION ALL SELECT id, v, w FROM t WHERE id BETWEEN 3 AND {count - 1}") == expected
    assert read(conn, "SELECT 1") == [(1,)]
    conn.close()


def test_long_texts_arrive(srv):
    fill(srv)
    check(srv)
    check(srv, unix_socket=srv.beside + ".sock")
    check(srv, ssl={"check_hostname": False, "verify_mode": "none"})
    # The test's own compression is slow.
    check(srv, count=6, kind=Compressed, client_flag=CLIENT.COMPRESS)


def binary_rows(session, sql):
    """Rows of (INT, text, text) in the binary protocol."""
    session.conn._write_bytes(struct.pack("<I", len(sql) + 1)[:3] + b"\0" + bytes([wire.PREPARE]) + sql.encode())
    statement, columns, _ = struct.unpack_from("<IHH", session.packet(), 1)
    for _ in range(columns + 1):
        session.packet()
    session.conn._write_bytes(struct.pack("<IBIBI", 10, wire.EXECUTE, statement, 0, 1)[:3] + b"\0" + struct.pack("<BIBI", wire.EXECUTE, statement, 0, 1))
    for _ in range(columns + 2):
        session.packet()
    found = []
    while (packet := session.packet())[0] != 0xFE:
        nulls, at, row = packet[1], 6, [struct.unpack_from("<i", packet, 2)[0]]
        for n in (1, 2):
            if nulls >> (n + 2) & 1:
                row.append(None)
                continue
            length, at = wire.lenenc(packet, at)
            row.append(packet[at:at + length])
            at += length
        assert at == len(packet)
        found.append(tuple(row))
    return found


def test_long_texts_arrive_in_the_binary_protocol(srv):
    fill(srv)
    session = wire.Session(host="127.0.0.1", port=srv.port, user="root", database="long_texts")
    session.run(wire.Command(bytes([wire.QUERY]) + b"SET character_set_results = latin1", ""))
    assert binary_rows(session, "SELECT id, v, w FROM t") == rows()
    assert binary_rows(session, "SELECT a.id, a.v, b.w FROM t a JOIN t b ON b.id = a.id + 0 ORDER BY a.id") == rows()
    session.close()


def test_long_texts_are_converted_for_the_client(srv):
    fill(srv)
    conn = connect(srv, charset="utf8mb4", database="long_texts")
    cur = conn.cursor()
    cur.execute("SELECT id, v, w FROM t WHERE id < 6")
    assert list(cur.fetchall()) == [(n, v.decode("latin1"), w) for n, v, w in rows()[:6]]
    conn.close()


def test_slow_client_receives_long_texts(srv):
    fill(srv)
    conn = connect(srv, database="long_texts", defer_connect=True)
    sock = socket.create_connection(("127.0.0.1", srv.port))
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 10)
    conn.connect(sock)
    cur = conn.cursor(pymysql.cursors.SSCursor)
    cur.execute("SELECT id, v, w FROM t WHERE id < 7")
    found = []
    while row := cur.fetchone():
        time.sleep(0.02)
        found.append((row[0], row[1].encode("latin1"), row[2]))
    assert found == rows()[:7]
    conn.close()


def test_client_that_leaves_in_a_long_text_ends_its_statement(srv):
    fill(srv)
    for _ in range(3):
        conn = connect(srv, database="long_texts")
        conn._execute_command(wire.QUERY, "SELECT v, w FROM t")
        conn._read_bytes(70_000)
        conn._force_close()
    watcher = srv.connect().cursor()
    for _ in range(500):
        watcher.execute("SELECT COUNT(*) FROM information_schema.processlist")
        if watcher.fetchone() == (1,):
            break
        time.sleep(0.02)
    else:
        raise AssertionError("sessions of clients that are gone stay")
