"""Packets that no client sends: valid conversations cut, bent and mixed at every state of the
protocol. Each ends in an answer, an error
or a closed connection within the time limit, and leaves nothing behind."""
import os
import random
import socket
import ssl
import struct
import time

import pymysql

OPTIONS = {"max_connections": "100", "innodb_buffer_pool_size": "128M", "innodb_lock_wait_timeout": "2"}
LIMIT = 20  # seconds that one exchange may take
CAPABILITIES = 0x0001 | 0x0008 | 0x0200 | 0x2000 | 0x8000 | 0x80000 | 0x200000 | 0x10000  # a usual client's
SSL, COMPRESS, LOCAL_FILES, DEPRECATE_EOF, ZSTD = 0x0800, 0x0020, 0x0080, 0x1000000, 0x4000000


def packet(payload, sequence=0):
    return struct.pack("<I", len(payload))[:3] + bytes([sequence]) + payload


def greeted(srv):
    s = socket.create_connection(("127.0.0.1", srv.port), timeout=LIMIT)
    read_packet(s)
    return s


def read_exactly(s, n):
    data = b""
    while len(data) < n:
        more = s.recv(n - len(data))
        if not more:
            raise ConnectionError("closed")
        data += more
    return data


def read_packet(s):
    header = read_exactly(s, 4)
    return read_exactly(s, int.from_bytes(header[:3], "little"))


def hello(capabilities=CAPABILITIES, user=b"root", response=b"", plugin=b"caching_sha2_password", more=b""):
    return (struct.pack("<IIB23x", capabilities, 1 << 24, 45) + user + b"\0" + bytes([len(response)]) + response
            + (b"db\0" if capabilities & 8 and more else b"\0" if capabilities & 8 else b"") + plugin + b"\0")


def logged_in(srv, capabilities=CAPABILITIES & ~8):
    s = greeted(srv)
    s.sendall(packet(hello(capabilities), 1))
    answer = read_packet(s)
    assert answer[0] == 0, answer
    return s


def ends(s):
    """Reads all that comes after the last byte was sent; a server that neither answers nor closes
    runs into the time limit."""
    s.settimeout(LIMIT)
    try:
        s.shutdown(socket.SHUT_WR)
        while s.recv(1 << 16):
            pass
    except TimeoutError:
        raise AssertionError("the server hangs") from None
    except OSError:
        pass
    s.close()


def bent(rnd, data):
    """A copy with a few bytes changed, taken out, doubled or appended."""
    data = bytearray(data)
    for _ in range(rnd.randint(1, 4)):
        kind = rnd.randrange(5)
        at = rnd.randrange(len(data) + 1)
        if kind == 0 and at < len(data):
            data[at] = rnd.choice([0, 1, 0x7F, 0x80, 0xFA, 0xFB, 0xFC, 0xFD, 0xFE, 0xFF, rnd.randrange(256)])
        elif kind == 1:
            del data[at:at + rnd.randint(1, 8)]
        elif kind == 2:
            data[at:at] = rnd.randbytes(rnd.randint(1, 8))
        elif kind == 3:
            del data[at:]
        elif kind == 4:
            data[at:at] = data[:rnd.randint(0, len(data))]
    return bytes(data)


def lives(srv):
    with srv.connect() as conn:
        cur = conn.cursor()
        cur.execute("SELECT 1")
        assert cur.fetchone() == (1,)


def only_we_are_left(srv):
    """All the connections that the test made are gone, and none holds a lock or a transaction."""
    with srv.connect() as conn:
        cur = conn.cursor()
        for _ in range(100):
            cur.execute("SHOW PROCESSLIST")
            if len(rows := cur.fetchall()) == 1:
                return
            time.sleep(0.1)
    raise AssertionError(rows)


def test_greeting(srv):
    rnd = random.Random(1)
    for _ in range(400):
        s = greeted(srv)
        whole = packet(hello(rnd.choice([CAPABILITIES, rnd.getrandbits(32), CAPABILITIES & ~0x200000])), 1)
        s.sendall(bent(rnd, whole))
        ends(s)
    only_we_are_left(srv)


def test_proof(srv):
    """After the server has requested a proof: switch, fast path, full path, public key."""
    with srv.connect() as conn:
        cur = conn.cursor()
        cur.execute("CREATE USER IF NOT EXISTS secret@'%' IDENTIFIED WITH caching_sha2_password BY 'pw'")
        cur.execute("CREATE USER IF NOT EXISTS old@'%' IDENTIFIED WITH mysql_native_password BY 'pw'")
    rnd = random.Random(2)
    for _ in range(300):
        s = greeted(srv)
        user = rnd.choice([b"secret", b"old", b"stranger"])
        s.sendall(packet(hello(CAPABILITIES & ~8, user, rnd.randbytes(rnd.choice([0, 20, 32])), rnd.choice([b"caching_sha2_password", b"mysql_native_password", b"x"])), 1))
        try:
            for sequence in range(3, 9, 2):
                if read_packet(s)[0] == 0xFF:
                    break
                answer = rnd.choice([b"\x02", b"", b"pw\0", rnd.randbytes(20), rnd.randbytes(32), rnd.randbytes(256), rnd.randbytes(5000), b"\x03", b"\x04"])
                s.sendall(packet(answer, sequence))
        except OSError:
            pass
        ends(s)
    only_we_are_left(srv)


def test_tls_garbage(srv):
    rnd = random.Random(3)
    request = packet(struct.pack("<IIB23x", CAPABILITIES | SSL, 1 << 24, 45), 1)
    for n in range(120):
        s = greeted(srv)
        s.sendall(request + (rnd.randbytes(rnd.randint(1, 2000)) if n % 2 else bent(rnd, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + rnd.randbytes(500))))
        ends(s)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    for _ in range(40):  # the right start, then plain bytes or a cut in the middle of it
        s = greeted(srv)
        s.sendall(request)
        tls = context.wrap_socket(s, do_handshake_on_connect=False)
        tls.do_handshake()
        tls.sendall(bent(rnd, packet(hello(CAPABILITIES | SSL), 2)))
        ends(tls)
    only_we_are_left(srv)


def test_capabilities_that_were_not_offered(srv):
    admin = srv.connect().cursor()
    admin.execute("SET GLOBAL protocol_compression_algorithms = 'uncompressed'")
    try:
        for more in (COMPRESS, COMPRESS | LOCAL_FILES | ZSTD, 1 << 25, 1 << 27, 0x40000000):
            s = logged_in(srv, CAPABILITIES & ~8 | more)
            s.sendall(packet(b"\x03SELECT 'plain'"))
            assert read_packet(s) == b"\x01"
            s.close()
    finally:
        admin.execute("SET GLOBAL protocol_compression_algorithms = DEFAULT")


COMMANDS = [b"\x01", b"\x02mysql", b"\x03SELECT 1, 'a', NULL", b"\x03SELECT * FROM fuzz.t WHERE a IN (1,2,3)", b"\x03INSERT INTO fuzz.t VALUES (1,2,'x')",
            b"\x04t\0%", b"\x05x", b"\x07\x01", b"\x08", b"\x09", b"\x0a", b"\x0c\x07\0\0\0", b"\x0d", b"\x0e", b"\x11root\0\0\0\x2d\0caching_sha2_password\0",
            b"\x12", b"\x16SELECT ?, ?", b"\x16INSERT INTO fuzz.t VALUES (?,?,?)", b"\x17\x01\0\0\0\0\x01\0\0\0\0\x01\x03\0\xfd\0\x07\0\0\0\x03abc",
            b"\x18\x01\0\0\0\0\0data", b"\x19\x01\0\0\0", b"\x1a\x01\0\0\0", b"\x1b\0\0", b"\x1b\x07\0", b"\x1c\x01\0\0\0\x05\0\0\0", b"\x1d", b"\x1f"]


def test_commands(srv):
    with srv.connect() as conn:
        conn.cursor().execute("CREATE DATABASE IF NOT EXISTS fuzz")
        conn.cursor().execute("CREATE TABLE IF NOT EXISTS fuzz.t (a INT, b INT, c TEXT, KEY (a))")
    rnd = random.Random(4)
    for _ in range(300):
        s = logged_in(srv)
        stream = b""
        for _ in range(rnd.randint(1, 12)):
            command = rnd.choice(COMMANDS[1:])
            stream += packet(command if rnd.random() < 0.4 else bent(rnd, command), 0 if rnd.random() < 0.97 else rnd.randrange(256))
        s.sendall(stream if rnd.random() < 0.7 else bent(rnd, stream))
        ends(s)
    only_we_are_left(srv)


def test_execute(srv):
    """Values of every kind, their types and counts bent: error 1210 or an answer."""
    types = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 15, 16, 245, 246, 247, 248, 249, 250, 251, 252, 253, 254, 255, 14, 20, 200]
    rnd = random.Random(5)
    s = logged_in(srv)
    s.settimeout(LIMIT)
    for round_ in range(1500):
        marks = rnd.choice([0, 1, 2, 9, 40])
        if round_ % 30 == 0:
            s.sendall(packet(b"\x16SELECT " + b",".join([b"?"] * marks or [b"1"])))
            answer = read_packet(s)
            assert answer[0] == 0
            statement, columns, count = struct.unpack_from("<IHH", answer, 1)
            for _ in range(columns + count + bool(columns) + bool(count)):
                read_packet(s)
        body = rnd.randbytes((count + 7) // 8) if rnd.random() < 0.5 else bytes((count + 7) // 8)
        body += b"\x01" + b"".join(bytes([rnd.choice(types), rnd.choice([0, 0x80, 0xFF])]) for _ in range(count)) + rnd.randbytes(rnd.randint(0, 12 * count))
        command = b"\x17" + struct.pack("<IBI", statement, rnd.choice([0, 0, 0, 1, 255]), 1) + body
        if rnd.random() < 0.1:
            s.sendall(packet(b"\x18" + struct.pack("<IH", statement, rnd.randrange(count + 2)) + rnd.randbytes(50)))
        s.sendall(packet(command[:1] + bent(rnd, command[1:]) if rnd.random() < 0.2 else command))
        s.sendall(packet(b"\x0e"))  # its OK ends every earlier answer
        while read_packet(s)[:5] != b"\0\0\0\x02\0":
            pass
    s.close()
    only_we_are_left(srv)


def test_long_data_beyond_the_limit(srv):
    s = logged_in(srv)
    s.settimeout(LIMIT)
    s.sendall(packet(b"\x16SELECT LENGTH(?)"))
    statement = struct.unpack_from("<I", read_packet(s), 1)[0]
    for _ in range(4):
        read_packet(s)
    piece = packet(b"\x18" + struct.pack("<IH", statement, 0) + bytes(8 << 20))
    for _ in range(20):
        s.sendall(piece)
    execute = packet(b"\x17" + struct.pack("<IBI", statement, 0, 1) + b"\0\x01\xfc\0")
    s.sendall(execute)
    answer = read_packet(s)
    assert answer[0] == 0xFF and b"max_allowed_packet" in answer, answer[:100]
    for _ in range(2):
        s.sendall(piece)
    s.sendall(execute)
    assert read_packet(s) == b"\x01"
    s.close()
    lives(srv)


def test_widths(srv):
    with srv.connect() as conn:
        cur = conn.cursor()
        cur.execute("CREATE DATABASE IF NOT EXISTS fuzz")
        for sql, allowed in [("SELECT " + ",".join(["1"] * 5000), (1117,)), ("SELECT " + ",".join(["1"] * 4096), ()),
                             ("CREATE TABLE fuzz.w (" + ",".join(f"c{i} INT" for i in range(5000)) + ")", (1117,)),
                             ("CREATE TABLE fuzz.k (a INT, " + ",".join(f"KEY k{i} (a)" for i in range(70)) + ")", (1069,)),
                             ("SELECT * FROM " + ",".join(["fuzz.t"] * 70), (1116, 1066, 1146)),
                             ("SELECT * FROM " + ",".join([f"fuzz.t t{i}" for i in range(70)]), (1116, 1146)),
                             ("CREATE DATABASE `" + "a" * 70 + "`", (1059,)),
                             ("SELECT " + "+".join(["1"] * 100000), ()), ("SELECT 1 IN (" + ",".join(["1"] * 500000) + ")", ()),
                             ("SELECT " + "'a' " * 100000, ()), ("SELECT 1 " + "UNION ALL SELECT 1 " * 20000, ()),
                             ("SELECT " + "~" * 100000 + "1", ()), ("SELECT '" + "\\\\" * 1000000 + "'", ()), ("/*" * 100000, ()), ("`" * 100001, ())]:
            try:
                cur.execute(sql)
                cur.fetchall()
                assert not allowed, sql[:60]
            except pymysql.err.MySQLError as e:
                assert e.args[0] in allowed or (not allowed and e.args[0] in (1064, 1065, 1436, 1473, 1235, 1222, 1104)), (sql[:60], e)
        cur.execute("SELECT 1")
        cur.fetchall()
    try:
        with srv.connect() as conn:
            conn._execute_command(0x16, b"SELECT " + b",".join([b"?"] * 70000))
            conn._read_packet()
        raise AssertionError("70,000 parameters were taken")
    except pymysql.err.MySQLError as e:
        assert e.args[0] in (1390, 1117), e


def test_files_are_not_read(srv):
    with srv.connect(local_infile=True) as conn:
        cur = conn.cursor()
        for sql in ("LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE fuzz.t", "LOAD DATA INFILE '/etc/passwd' INTO TABLE fuzz.t",
                    "SELECT LOAD_FILE('/etc/passwd')", "SELECT 1 INTO OUTFILE '/tmp/nfold-out'"):
            try:
                cur.execute(sql)
                assert cur.fetchone() == (None,), sql
            except pymysql.err.MySQLError as e:
                assert e.args[0] in (1235, 1305, 1064, 1046, 1290, 3948), (sql, e)
    assert not os.path.exists("/tmp/nfold-out")
    lives(srv)
