"""LOAD DATA LOCAL over a socket: files larger than a packet, clients that go away, KILL."""
import os
import struct
import tempfile
import threading
import time

import pymysql
import server

ROWS = 400_000


def big_file(directory):
    """A file of some 30 MiB."""
    path = os.path.join(directory, "rows.txt")
    with open(path, "w", encoding="ascii") as f:
        for n in range(ROWS):
            f.write(f"{n}\t{'x' * 60}{n}\n")
    return path


def connect(srv, **more):
    return srv.connect(local_infile=True, **more)


def test_load_data_local_reads_large_files(_):
    with tempfile.TemporaryDirectory() as directory, server.Server({"local_infile": "ON"}) as srv:
        path = big_file(directory)
        conn = connect(srv)
        cur = conn.cursor()
        cur.execute("CREATE DATABASE d")
        cur.execute("CREATE TABLE d.t (id INT PRIMARY KEY, v VARCHAR(100))")
        assert cur.execute(f"LOAD DATA LOCAL INFILE '{path}' INTO TABLE d.t") == ROWS
        cur.execute("SELECT COUNT(*), SUM(id), MAX(LENGTH(v)) FROM d.t")
        assert cur.fetchone() == (ROWS, sum(range(ROWS)), 66)
        conn.commit()


def local_request(conn, text):
    """Sends a statement and reads the packet that requests the file."""
    conn._execute_command(0x03, text)
    packet = conn._read_packet()
    assert packet._data[0] == 0xFB, packet._data
    return conn


def send(conn, sequence, payload):
    conn._write_bytes(struct.pack("<I", len(payload))[:3] + bytes([sequence]) + payload)


def count(srv):
    cur = srv.connect().cursor()
    cur.execute("SELECT COUNT(*) FROM d.t")
    return cur.fetchone()[0]


def test_load_data_local_leaves_nothing_of_lost_and_killed_loads(_):
    with server.Server({"local_infile": "ON"}) as srv:
        cur = connect(srv).cursor()
        cur.execute("CREATE DATABASE d")
        cur.execute("CREATE TABLE d.t (id INT PRIMARY KEY, v VARCHAR(100))")
        lost = local_request(connect(srv), "LOAD DATA LOCAL INFILE 'f' INTO TABLE d.t")
        send(lost, 2, b"1\ta\n2\tb\n3")
        time.sleep(0.2)
        lost._force_close()
        # The rest of the file is read before the error is sent.
        killed = local_request(connect(srv), "LOAD DATA LOCAL INFILE 'f' INTO TABLE d.t")
        send(killed, 2, b"4\ta\n5\tb\n")
        time.sleep(0.2)
        cur.execute(f"KILL QUERY {killed.thread_id()}")
        time.sleep(0.2)
        send(killed, 3, b"6\tc\n")
        send(killed, 4, b"")
        try:
            killed._next_seq_id = 5
            killed._read_packet()
            raise AssertionError("a killed load has ended well")
        except pymysql.err.MySQLError as e:
            assert e.args[0] == 1317, e
        assert count(srv) == 0
        # The connection goes on.
        killed.cursor().execute("SELECT 1")
        done = local_request(killed, "LOAD DATA LOCAL INFILE 'f' INTO TABLE d.t")
        # A row in two packets, and a packet of one byte.
        send(done, 2, b"7\tse")
        send(done, 3, b"v")
        send(done, 4, b"en\n")
        send(done, 5, b"")
        done._next_seq_id = 6
        done._read_packet().check_error()
        assert count(srv) == 1


def test_load_data_local_is_refused_where_the_server_forbids_it(srv):
    cur = connect(srv).cursor()
    cur.execute("CREATE DATABASE IF NOT EXISTS d")
    cur.execute("CREATE TABLE IF NOT EXISTS d.l (id INT)")
    try:
        cur.execute("LOAD DATA LOCAL INFILE '/dev/null' INTO TABLE d.l")
        raise AssertionError("not refused")
    except pymysql.err.MySQLError as e:
        assert e.args[0] == 3948, e
    try:
        cur.execute("LOAD DATA INFILE '/etc/passwd' INTO TABLE d.l")
        raise AssertionError("not refused")
    except pymysql.err.MySQLError as e:
        assert e.args[0] == 1290, e
