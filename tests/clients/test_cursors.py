"""Cursors of prepared statements (CURSOR_TYPE_READ_ONLY) and COM_STMT_FETCH.

What `transcript` returns was the same on MySQL 9.7.4: `EXPECTED`."""
import os
import struct

import pymysql
import server
from pymysql.constants import CLIENT

QUERY, PREPARE, EXECUTE, CLOSE, RESET, FETCH = 0x03, 0x16, 0x17, 0x19, 0x1A, 0x1C
DEPRECATE_EOF = 1 << 24
# Of the status flags: a transaction is open, a cursor exists, its last row was sent.
SHOWN = {1: "transaction", 64: "cursor", 128: "last row"}


class Client:
    """A connection on which packets are sent and read."""

    def __init__(self, deprecate_eof, **where):
        flags = CLIENT.MULTI_STATEMENTS | (DEPRECATE_EOF if deprecate_eof else 0)
        self.conn = pymysql.connect(charset="utf8mb4", client_flag=flags, read_timeout=60, autocommit=True, **where)
        self.deprecate_eof = deprecate_eof

    def send(self, payload):
        self.conn._write_bytes(struct.pack("<I", len(payload))[:3] + b"\0" + payload)

    def packet(self):
        payload, size = b"", 0xFFFFFF
        while size == 0xFFFFFF:
            size = int.from_bytes(self.conn._read_bytes(4)[:3], "little")
            payload += self.conn._read_bytes(size)
        return payload

    def query(self, sql):
        """The number of rows, OK or an error."""
        self.send(bytes([QUERY]) + sql.encode())
        first = self.packet()
        if first[0] in (0, 0xFF):
            return error(first) if first[0] else "OK"
        for _ in range(first[0] + (not self.deprecate_eof)):
            self.packet()
        rows = 0
        while self.packet()[0] != 0xFE:
            rows += 1
        return rows

    def prepare(self, sql):
        self.send(bytes([PREPARE]) + sql.encode())
        first = self.packet()
        if first[0] == 0xFF:
            return error(first)
        statement, columns, parameters = struct.unpack_from("<IHH", first, 1)
        for count in (parameters, columns):
            for _ in range(count + (count > 0 and not self.deprecate_eof)):
                self.packet()
        return statement

    def execute(self, statement, cursor=1):
        """OK, an error, or the number of columns and the flags behind their descriptions. Without a
        cursor the rows are skipped."""
        self.send(struct.pack("<BIBI", EXECUTE, statement, cursor, 1))
        first = self.packet()
        if first[0] == 0:
            return "OK"
        if first[0] == 0xFF:
            return error(first)
        for _ in range(first[0]):
            self.packet()
        if not cursor:
            while self.packet()[0] != 0xFE:
                pass
            return "rows"
        # MySQL sends the columns of some statements before it finds their error.
        behind = self.packet()
        return error(behind) if behind[0] == 0xFF else (first[0], self.end(behind))

    def fetch(self, statement, rows):
        """The rows' bytes behind the bitmap of NULLs, and the flags at their end."""
        self.send(struct.pack("<BII", FETCH, statement, rows))
        found = []
        while (packet := self.packet())[0] not in (0xFE, 0xFF):
            found.append(packet[2:])
        return error(packet) if packet[0] == 0xFF else (found, self.end(packet))

    def end(self, packet):
        assert packet[0] == 0xFE, packet
        if self.deprecate_eof:
            status, warnings = struct.unpack_from("<HH", packet, 3)
        else:
            warnings, status = struct.unpack_from("<HH", packet, 1)
        return [name for bit, name in SHOWN.items() if status & bit] + ([warnings] if warnings else [])


def error(packet):
    return struct.unpack_from("<H", packet, 1)[0], packet[9:].decode()


def transcript(deprecate_eof, **where):
    c = Client(deprecate_eof, **where)
    seen = []
    for sql in ("DROP DATABASE IF EXISTS cursors", "CREATE DATABASE cursors", "USE cursors",
                "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20))", "INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, NULL), (4, 'd')"):
        c.query(sql)
    number = {}

    def note(what, answer):
        for name, value in number.items():
            if isinstance(answer, tuple) and len(answer) == 2 and isinstance(answer[1], str):
                answer = answer[0], answer[1].replace(f"({value})", f"({name})")
        seen.append((what, answer))

    number["S"] = s = c.prepare("SELECT id FROM t ORDER BY id")
    note("fetch without a cursor", c.fetch(s, 1))
    note("open", c.execute(s))
    note("fetch 3", c.fetch(s, 3))
    note("a change of what was read", c.query("DELETE FROM t WHERE id > 2"))
    note("fetch 1", c.fetch(s, 1))
    note("fetch beyond the end", c.fetch(s, 1))
    note("fetch of a closed cursor", c.fetch(s, 1))
    note("open again", c.execute(s))
    note("fetch 0", c.fetch(s, 0))
    note("fetch 10", c.fetch(s, 10))
    note("open, reset", c.execute(s))
    c.send(struct.pack("<BI", RESET, s))
    assert c.packet()[0] == 0
    note("fetch after the reset", c.fetch(s, 1))

    e = c.prepare("SELECT id FROM t WHERE id > 100")
    note("open an empty result", c.execute(e))
    note("fetch of it", c.fetch(e, 5))
    w = c.prepare("SELECT id, CAST('1x' AS SIGNED) FROM t")
    note("open with warnings", c.execute(w))
    note("warnings", c.query("SHOW WARNINGS"))
    note("fetch of both", c.fetch(w, 9))
    f = c.prepare("SELECT EXP(id * 1000) FROM t")
    note("open with an error", c.execute(f))
    number["F"] = f
    note("fetch of it", c.fetch(f, 1))
    i = c.prepare("INSERT INTO t VALUES (9, 'z')")
    note("a statement without rows", c.execute(i))
    number["I"] = i
    note("fetch of it", c.fetch(i, 1))

    a, b = c.prepare("SELECT id FROM t"), c.prepare("SELECT v FROM t ORDER BY id")
    note("two cursors", (c.execute(a), c.execute(b)))
    note("in turns", [c.fetch(a, 1), c.fetch(b, 1), c.fetch(a, 1), c.fetch(b, 1)])
    c.query("BEGIN")
    note("open in a transaction", c.execute(a))
    note("fetch", c.fetch(a, 1))
    c.query("COMMIT")
    note("fetch after the commit", c.fetch(a, 1))
    c.query("DROP TABLE t")
    note("fetch after DROP TABLE", c.fetch(a, 5))
    c.send(struct.pack("<BI", CLOSE, b))
    number["B"] = b
    note("fetch of a closed statement", c.fetch(b, 1))
    note("execution of it", c.execute(b))
    c.send(struct.pack("<BI", RESET, b))
    note("reset of it", error(c.packet()))
    note("the connection is in step", c.query("SELECT 7"))
    c.query("DROP DATABASE cursors")
    return seen


EXPECTED = [
    ('fetch without a cursor', (1421, 'The statement (S) has no open cursor.')),
    ('open', (1, ['cursor'])),
    ('fetch 3', ([b'\x01\x00\x00\x00', b'\x02\x00\x00\x00', b'\x03\x00\x00\x00'], ['cursor'])),
    ('a change of what was read', 'OK'),
    ('fetch 1', ([b'\x04\x00\x00\x00'], ['cursor'])),
    ('fetch beyond the end', ([], ['last row'])),
    ('fetch of a closed cursor', (1421, 'The statement (S) has no open cursor.')),
    ('open again', (1, ['cursor'])),
    ('fetch 0', ([], ['cursor'])),
    ('fetch 10', ([b'\x01\x00\x00\x00', b'\x02\x00\x00\x00'], ['last row'])),
    ('open, reset', (1, ['cursor'])),
    ('fetch after the reset', (1421, 'The statement (S) has no open cursor.')),
    ('open an empty result', (1, ['cursor'])),
    ('fetch of it', ([], ['last row'])),
    ('open with warnings', (2, ['cursor', 2])),
    ('warnings', 2),
    ('fetch of both',
     ([b'\x01\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00', b'\x02\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00'],
      ['last row'])),
    ('open with an error', (1690, "DOUBLE value is out of range in 'exp((`cursors`.`t`.`id` * 1000))'")),
    ('fetch of it', (1421, 'The statement (F) has no open cursor.')),
    ('a statement without rows', 'OK'),
    ('fetch of it', (1421, 'The statement (I) has no open cursor.')),
    ('two cursors', ((1, ['cursor']), (1, ['cursor']))),
    ('in turns',
     [([b'\x01\x00\x00\x00'], ['cursor']),
      ([b'\x01a'], ['cursor']),
      ([b'\x02\x00\x00\x00'], ['cursor']),
      ([b'\x01b'], ['cursor'])]),
    ('open in a transaction', (1, ['transaction', 'cursor'])),
    ('fetch', ([b'\x01\x00\x00\x00'], ['transaction', 'cursor'])),
    ('fetch after the commit', ([b'\x02\x00\x00\x00'], ['cursor'])),
    ('fetch after DROP TABLE', ([b'\t\x00\x00\x00'], ['last row'])),
    ('fetch of a closed statement', (1243, 'Unknown prepared statement handler (B) given to mysql_stmt_precheck')),
    ('execution of it', (1243, 'Unknown prepared statement handler (B) given to mysql_stmt_precheck')),
    ('reset of it', (1243, 'Unknown prepared statement handler (B) given to mysql_stmt_precheck')),
    ('the connection is in step', 1),
]


def test_cursors_answer_as_in_mysql(srv):
    for deprecate_eof in (False, True):
        seen = transcript(deprecate_eof, host="127.0.0.1", port=srv.port, user="root")
        assert len(seen) == len(EXPECTED)
        for a, b in zip(seen, EXPECTED):
            assert a == b, (a, b)


def test_an_execution_without_cursor_closes_the_cursor(srv):
    """MySQL 9.7 sends no rows then, and an answer that drivers cannot read."""
    c = Client(True, host="127.0.0.1", port=srv.port, user="root")
    s = c.prepare("SELECT 1")
    assert c.execute(s) == (1, ["cursor"])
    assert c.execute(s, cursor=0) == "rows"
    assert c.fetch(s, 1)[0] == 1421
    assert c.execute(s) == (1, ["cursor"])


def test_long_results_are_fetched_in_parts(_):
    with server.Server() as srv:
        srv.connect().cursor().execute("CREATE DATABASE d")
        for deprecate_eof in (False, True):
            c = Client(deprecate_eof, host="127.0.0.1", port=srv.port, user="root")
            c.query("SET SESSION cte_max_recursion_depth = 1000000")
            s = c.prepare("WITH RECURSIVE n AS (SELECT 1 i UNION ALL SELECT i + 1 FROM n WHERE i < 300000) SELECT i, REPEAT('x', i % 300) FROM n")
            assert c.execute(s) == (2, ["cursor"])
            # The rows of some 50 MB are neither sent nor in memory.
            with open(f"/proc/{srv.process.pid}/fd/{temporary_file(srv)}", "rb") as file:
                assert file.seek(0, 2) > 40_000_000
            rows, flags = [], ["cursor"]
            while flags == ["cursor"]:
                found, flags = c.fetch(s, 7000)
                assert len(found) <= 7000
                rows += found
            assert flags == ["last row"]
            assert [struct.unpack_from("<q", r)[0] for r in rows] == list(range(1, 300001))
            assert all(r.endswith(b"x" * (i % 300)) for i, r in enumerate(rows, 1))
            assert temporary_file(srv) is None, "the last row removes the file"


def temporary_file(srv):
    """The descriptor of the server's temporary file."""
    directory = f"/proc/{srv.process.pid}/fd"
    for fd in os.listdir(directory):
        try:
            target = os.readlink(f"{directory}/{fd}")
        except FileNotFoundError:
            continue
        if "/nfold-" in target and target.endswith(".tmp (deleted)"):
            return fd
    return None


def test_rows_longer_than_a_packet(_):
    with server.Server({"max_allowed_packet": str(64 << 20)}) as srv:
        c = Client(True, host="127.0.0.1", port=srv.port, user="root")
        s = c.prepare("SELECT REPEAT('a', 20000000) UNION ALL SELECT 'b'")
        assert c.execute(s) == (1, ["cursor"])
        (first, second), flags = c.fetch(s, 2)
        assert (len(first), second, flags) == (20_000_000 + 9, b"\1b", ["cursor"])
        assert c.fetch(s, 2) == ([], ["last row"])


def test_a_full_directory_is_an_error_of_the_execution(_):
    with server.Server({"tmpdir": "/nowhere"}) as srv:
        c = Client(True, host="127.0.0.1", port=srv.port, user="root")
        s = c.prepare("SELECT REPEAT('a', 300000) UNION ALL SELECT REPEAT('b', 300000)")
        code, message = c.execute(s)
        assert code == 1026 and "temporary file" in message, (code, message)
        s = c.prepare("SELECT 1")
        assert c.execute(s) == (1, ["cursor"])
