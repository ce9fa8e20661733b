"""The compressed protocol: zlib around PyMySQL's bytes, and the mariadb client with --compress."""
import os
import socket
import subprocess
import tempfile
import threading
import time
import zlib

import pymysql
import server
from pymysql.constants import CLIENT

ZSTD = 1 << 26


class Compressed:
    """A socket whose bytes travel in compressed packets. Counts what it receives."""

    def __init__(self, sock, level=6):
        self.sock, self.level = sock, level
        self.sequence, self.plain = 0, b""
        self.received = self.unpacked = 0

    def sendall(self, data):
        if data[3] == 0:
            self.sequence = 0  # a new command
        for at in range(0, len(data), 1 << 20):
            piece = data[at:at + (1 << 20)]
            body = zlib.compress(piece, self.level) if self.level else piece
            length = len(piece) if self.level else 0
            header = len(body).to_bytes(3, "little") + bytes([self.sequence]) + length.to_bytes(3, "little")
            self.sequence = (self.sequence + 1) % 256
            self.sock.sendall(header + body)

    def exactly(self, n):
        data = b""
        while len(data) < n:
            piece = self.sock.recv(n - len(data))
            if not piece:
                raise EOFError
            data += piece
        return data

    def read(self, n):
        while len(self.plain) < n:
            header = self.exactly(7)
            assert header[3] == self.sequence, "answers are numbered behind the command"
            self.sequence = (self.sequence + 1) % 256
            body = self.exactly(int.from_bytes(header[:3], "little"))
            length = int.from_bytes(header[4:], "little")
            self.received += 7 + len(body)
            piece = zlib.decompress(body) if length else body
            assert length in (0, len(piece))
            self.unpacked += len(piece)
            self.plain += piece
        data, self.plain = self.plain[:n], self.plain[n:]
        return data

    def settimeout(self, seconds):
        self.sock.settimeout(seconds)

    def close(self):
        self.sock.close()


class Connection(pymysql.connections.Connection):
    level = 6

    def _request_authentication(self):
        super()._request_authentication()
        self._sock = self._rfile = Compressed(self._sock, self.level)


class Uncompressed(Connection):
    """Every packet is stored as it is."""
    level = 0


def connect(srv, kind=Connection, flag=CLIENT.COMPRESS, **more):
    return kind(host="127.0.0.1", port=srv.port, user="root", autocommit=True, client_flag=flag, **more)


def one(cur, sql):
    cur.execute(sql)
    return cur.fetchone()


def test_long_statements_and_answers_are_compressed(srv):
    for kind in (Connection, Uncompressed):
        conn = connect(srv, kind)
        cur = conn.cursor()
        text = "".join(f"{n:07d}, " for n in range(400_000))
        assert one(cur, f"SELECT LENGTH('{text}'), '{text}'") == (len(text), text)
        assert conn._sock.received * 2 < conn._sock.unpacked > len(text)
        cur.execute("WITH RECURSIVE n AS (SELECT 1 i UNION ALL SELECT i + 1 FROM n WHERE i < 1000) SELECT i, REPEAT('x', i) FROM n")
        assert cur.fetchall() == tuple((i, "x" * i) for i in range(1, 1001))
        assert one(cur, "SELECT 1") == (1,)
        conn.close()


def test_bytes_that_cannot_be_compressed_arrive(srv):
    data = os.urandom(3_000_000)
    conn = connect(srv)
    cur = conn.cursor()
    assert one(cur, f"SELECT x'{data.hex()}'") == (data,)
    conn.close()


def test_status_shows_the_algorithm(srv):
    def status(conn):
        cur = conn.cursor()
        cur.execute("SHOW SESSION STATUS LIKE 'Compression%'")
        return cur.fetchall()

    of = lambda *values: tuple(zip(("Compression", "Compression_algorithm", "Compression_level"), values))
    assert status(srv.connect()) == of("OFF", "", "0")
    assert status(connect(srv)) == of("ON", "zlib", "6")
    # PyMySQL sends no level of zstd; an answer of less than 50 bytes is not compressed.
    conn = connect(srv, Uncompressed, ZSTD)
    assert one(conn.cursor(), "SELECT 1") == (1,)
    cur = srv.connect().cursor()
    cur.execute("SHOW GLOBAL STATUS LIKE 'Compression'")
    assert cur.fetchall() == (("Compression", "OFF"),)


def test_change_user_keeps_compression(srv):
    conn = connect(srv)
    conn._execute_command(0x11, b"root\0\0\0")
    packet = conn._read_packet()
    while not packet.is_ok_packet():
        assert packet.is_auth_switch_request()
        conn.write_packet(b"")  # no password
        packet = conn._read_packet()
    assert one(conn.cursor(), "SELECT 'x', CURRENT_USER()") == ("x", "root@localhost")
    conn.close()


def test_files_of_load_data_are_compressed(_):
    with tempfile.TemporaryDirectory() as directory, server.Server({"local_infile": "ON"}) as srv:
        path = os.path.join(directory, "rows.txt")
        with open(path, "w", encoding="ascii") as f:
            f.writelines(f"{n}\tsome text\n" for n in range(200_000))
        conn = connect(srv, local_infile=True, flag=CLIENT.COMPRESS)
        cur = conn.cursor()
        cur.execute("CREATE DATABASE d")
        cur.execute("CREATE TABLE d.t (id INT PRIMARY KEY, v VARCHAR(100))")
        assert cur.execute(f"LOAD DATA LOCAL INFILE '{path}' INTO TABLE d.t") == 200_000
        assert one(cur, "SELECT COUNT(*), SUM(id) FROM d.t") == (200_000, sum(range(200_000)))


def test_a_long_answer_leaves_other_sessions_their_turns(_):
    with server.Server({"nfold_workers": "1", "max_allowed_packet": str(256 << 20)}) as srv:
        sessions = connect(srv, connect_timeout=30), srv.connect()

        def read():
            one(sessions[0].cursor(), "SELECT LENGTH(x), x FROM (SELECT REPEAT(UUID(), 2000000) x) t")

        cur = sessions[1].cursor()
        reader = threading.Thread(target=read)
        reader.start()
        turns = 0
        while reader.is_alive():
            cur.execute("SELECT 1")
            turns += 1
            time.sleep(0.001)
        reader.join()
        assert turns > 50, turns


def test_only_allowed_algorithms_are_offered(_):
    with server.Server() as srv:
        cur = srv.connect().cursor()
        assert one(cur, "SELECT @@protocol_compression_algorithms") == ("zlib,zstd,uncompressed",)
        for bad in ("", "foo", "zlib,foo", " zlib"):
            try:
                cur.execute("SET GLOBAL protocol_compression_algorithms = %s", (bad,))
                raise AssertionError(bad)
            except pymysql.err.OperationalError as e:
                assert e.args[0] == 1231, e
        cur.execute("SET GLOBAL protocol_compression_algorithms = 'zstd,uncompressed'")
        assert not srv.connect().server_capabilities & CLIENT.COMPRESS
        cur.execute("SET GLOBAL protocol_compression_algorithms = 'zlib'")
        assert connect(srv).server_capabilities & (CLIENT.COMPRESS | ZSTD) == CLIENT.COMPRESS
        try:
            srv.connect()
            raise AssertionError("a connection without compression")
        except pymysql.err.OperationalError as e:
            assert e.args == (3922, "Invalid compression algorithm 'uncompressed'."), e


def test_what_is_no_compressed_packet_ends_the_connection(srv):
    for garbage in (b"\5\0\0\0\xff\0\0abcde", b"\xff" * 100, b"\1\0\0\0\xff\xff\xffx"):
        conn = connect(srv)
        sock = conn._sock.sock
        sock.sendall(garbage)
        sock.settimeout(10)
        # A packet that is not complete yet is waited for.
        if garbage[0] == 0xff:
            sock.shutdown(socket.SHUT_WR)
        assert sock.recv(100) == b""
    assert one(srv.connect().cursor(), "SELECT 1") == (1,)


def test_the_mariadb_client_compresses_with_and_without_tls(srv):
    for tls in ("--skip-ssl", "--ssl"):
        command = ["mariadb", "--no-defaults", "--compress", tls, "-h127.0.0.1", f"-P{srv.port}", "-uroot", "-N"]
        sql = "SHOW STATUS LIKE 'Compression'; SELECT LENGTH(x), MD5(x), x FROM (SELECT REPEAT('text ', 1000000) x) t"
        out = subprocess.run(command, input=sql, capture_output=True, text=True, check=True).stdout.split("\n")
        assert out[0] == "Compression\tON", out[0]
        length, _, text = out[1].split("\t")
        assert (int(length), text) == (5_000_000, "text " * 1_000_000)
