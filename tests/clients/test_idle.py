"""Ten thousand idle connections: memory of each, and no work for the server."""
import os
import resource
import socket
import struct
import time

COUNT = 10_000
OPTIONS = {"max_connections": str(COUNT + 200), "innodb_buffer_pool_size": "64M", "back_log": "1000"}
LIMIT_BYTES = 16 << 10
# PROTOCOL_41, SECURE_CONNECTION, PLUGIN_AUTH
CAPABILITIES = 1 << 9 | 1 << 15 | 1 << 19
SQL = b"SELECT v FROM idle.t WHERE id = 1"


def packet(sock):
    """One payload; sockets of this test hold no more than one answer at a time."""
    head = exactly(sock, 4)
    return exactly(sock, int.from_bytes(head[:3], "little"))


def exactly(sock, count):
    data = b""
    while len(data) < count:
        more = sock.recv(count - len(data))
        assert more, "the server has closed the connection"
        data += more
    return data


def send(sock, payload, sequence=0):
    sock.sendall(struct.pack("<I", len(payload))[:3] + bytes([sequence]) + payload)


def login(port):
    sock = socket.create_connection(("127.0.0.1", port), timeout=60)
    packet(sock)
    send(sock, struct.pack("<IIB23x", CAPABILITIES, 1 << 24, 255) + b"root\0\0caching_sha2_password\0", 1)
    answer = packet(sock)
    assert answer[0] == 0, answer
    return sock


def query(sock, sql):
    """Runs a query with one column; count, definition, EOF, rows, EOF."""
    send(sock, b"\x03" + sql)
    assert packet(sock)[0] == 1
    packet(sock), packet(sock)
    rows = 0
    while packet(sock)[0] != 0xFE:
        rows += 1
    return rows


def resident(pid):
    """Bytes of the process's own in memory."""
    with open(f"/proc/{pid}/smaps_rollup") as lines:
        fields = dict(line.split(":", 1) for line in lines if ":" in line)
    return sum(int(fields[name].split()[0]) for name in ("Private_Dirty", "Private_Clean", "Swap")) << 10


def ticks(pid):
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rsplit(") ", 1)[1].split()
    return int(fields[11]) + int(fields[12])


def test_idle_connections_are_small_and_asleep(srv):
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    assert hard > COUNT + 500, f"ulimit -n is {hard}: 10,000 connections do not fit"
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    cur = srv.connect().cursor()
    cur.execute("CREATE DATABASE idle")
    cur.execute("CREATE TABLE idle.t (id INT PRIMARY KEY, v INT)")
    cur.execute("INSERT INTO idle.t VALUES (1, 1)")
    pid = srv.process.pid
    warm = [login(srv.port) for _ in range(100)]
    assert all(query(sock, SQL) == 1 for sock in warm)
    before = resident(pid)
    socks = [login(srv.port) for _ in range(COUNT)]
    after_login = (resident(pid) - before) / COUNT
    assert all(query(sock, SQL) == 1 for sock in socks)
    after_query = (resident(pid) - before) / COUNT
    cpu, start = ticks(pid), time.monotonic()
    time.sleep(5)
    share = (ticks(pid) - cpu) / os.sysconf("SC_CLK_TCK") / (time.monotonic() - start)
    print(f"  {COUNT} connections: {after_login:,.0f} bytes each, {after_query:,.0f} after a statement; {100 * share:.2f} % of a core while idle")
    assert after_login < LIMIT_BYTES, after_login
    assert after_query < LIMIT_BYTES, after_query
    assert share < 0.02, share
    # All of them are served again, and an end is noticed.
    assert all(query(sock, SQL) == 1 for sock in socks[::100])
    for sock in socks + warm:
        sock.close()
    for _ in range(600):
        cur.execute("SHOW STATUS LIKE 'Threads_connected'")
        if int(cur.fetchone()[1]) < 10:
            return
        time.sleep(0.1)
    raise AssertionError("connections were not given back")
