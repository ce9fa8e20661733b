#!/usr/bin/python3
"""Server CPU of statements over large values, beside peers in one run.

`cases()` yields (name, setup statements, measured statement, repetitions) for a harness of its own.
A measured statement is SQL text, or an
object whose `run(connection)` does the work (prepared statements and a dump have no SQL text in
DB-API). Setup statements are SQL text or
objects too. A statement that a server refuses (a collation that it does not know) has no figure
there.

    bench/large_values.py nfold=PORT:PID mariadb=PORT:PID mysql=PORT:PID [--only TEXT] [--rounds 3]
    [--json FILE]

prints a table of CPU microseconds per value: user and system time of the server's threads, the
median of the rounds. The servers take turns
within each case, so a disturbance of the machine meets all of them.
"""
import argparse
import glob
import json
import random
import statistics
import struct
import subprocess
import sys
import time

import pymysql
from pymysql.constants import COMMAND

DATABASE = "large_values"
USER, PASSWORD = "sb", "sb"
# (label, bytes of a value, rows of the table)
SIZES = [("16K", 16 << 10, 64), ("256K", 256 << 10, 8), ("4M", 4 << 20, 2)]
# Bytes that the repetitions of one case pass over, roughly.
WORK_BYTES = 16 << 20
NEEDLE = "xyzzyneedle"
# The short column beside the values.
SHORT_COLUMN = "k VARCHAR(20) NOT NULL"


class Prepared:
    """A prepared statement, run by the binary protocol. `parameters`: strings or bytes; with
    `long_data` they are sent in pieces
    by COM_STMT_SEND_LONG_DATA first. The statement is prepared once for a connection."""

    PIECE = 1 << 20

    def __init__(self, sql, parameters=(), long_data=False):
        self.sql, self.long_data = sql, long_data
        self.parameters = [p.encode() if isinstance(p, str) else p for p in parameters]
        self.known = None

    def prepare(self, connection):
        connection._execute_command(COMMAND.COM_STMT_PREPARE, self.sql)
        first = connection._read_packet()._data
        statement, columns, parameters = struct.unpack_from("<IHH", first, 1)
        for count in (parameters, columns):
            if count:
                read_until_eof(connection)
        self.known = (connection, statement)
        return statement

    def run(self, connection):
        statement = self.known[1] if self.known and self.known[0] is connection else self.prepare(connection)
        values = b""
        for n, value in enumerate(self.parameters):
            if not self.long_data:
                values += b"\xfe" + struct.pack("<Q", len(value)) + value
                continue
            for at in range(0, len(value), self.PIECE):
                connection._execute_command(COMMAND.COM_STMT_SEND_LONG_DATA, struct.pack("<IH", statement, n) + value[at:at + self.PIECE])
        body = struct.pack("<IBI", statement, 0, 1)
        if self.parameters:
            # No NULL among them; types are sent each time: VARCHAR.
            body += bytes((len(self.parameters) + 7) // 8) + b"\x01" + b"\xfd\x00" * len(self.parameters) + values
        connection._execute_command(COMMAND.COM_STMT_EXECUTE, body)
        first = connection._read_packet()._data
        if first[0] != 0:
            read_until_eof(connection)
            read_until_eof(connection)


def read_until_eof(connection):
    while True:
        data = connection._read_packet()._data
        if data[:1] == b"\xfe" and len(data) < 9:
            return


class Dump:
    """A dump of one table by the client program, its text thrown away."""

    def __init__(self, table):
        self.table = table

    def run(self, connection):
        command = ["mariadb-dump", "--no-defaults", "-h", connection.host, "-P", str(connection.port), f"-u{USER}", f"-p{PASSWORD}",
                   "--ssl=0", "--max-allowed-packet=64M", "--skip-lock-tables", "--no-tablespaces", DATABASE, self.table]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def text_of(size, seed):
    """Words, one in fifty of them with letters that ASCII lacks; exactly `size` bytes of UTF-8."""
    rng = random.Random(seed)
    plain = ["".join(rng.choices("abcdefghijklmnopqrstuvwXYZ", k=rng.randint(2, 10))) for _ in range(500)]
    words = plain + ["caf\u00e9", "\u00fcber", "na\u00efve", "\u65e5\u672c", "stra\u00dfe", "d\u00e9j\u00e0", "\U0001f600", "\u0436\u0443\u043a", "ni\u00f1o", "\u00c5ngstr\u00f6m"]
    out = " ".join(rng.choices(words, k=size // 5)).encode()[:size]
    out = out.decode(errors="ignore").encode()
    return (out + b"." * (size - len(out))).decode()


def bytes_of(size, seed):
    return random.Random(seed).randbytes(size)


def literal(value):
    """The literal of a text, or of bytes in hexadecimal."""
    return f"'{value}'" if isinstance(value, str) else f"X'{value.hex()}'"


class Fill:
    """Creates a table of `rows` values of `size` bytes."""

    def __init__(self, table, kind, size, rows, collation=None):
        self.table, self.kind, self.size, self.rows, self.collation = table, kind, size, rows, collation

    def run(self, connection):
        column = "LONGBLOB" if self.kind == "blob" else f"LONGTEXT COLLATE {self.collation}"
        make = bytes_of if self.kind == "blob" else text_of
        with connection.cursor() as cursor:
            cursor.execute(f"DROP TABLE IF EXISTS {self.table}")
            cursor.execute(f"CREATE TABLE {self.table} (id INT PRIMARY KEY, {SHORT_COLUMN}, v {column}) DEFAULT CHARSET=utf8mb4 ENGINE=InnoDB")
            for n in range(1, self.rows + 1):
                value = make(self.size, n)
                cursor.execute(f"INSERT INTO {self.table} VALUES ({n}, 'k{n % 4}', {literal(value)})")


def read_cases(table, kind):
    """(name, statement) of statements that read all values of a table."""
    yield "select text", f"SELECT v FROM {table}"
    yield "select prepared", Prepared(f"SELECT v FROM {table}")
    yield "select point", f"SELECT v FROM {table} WHERE id = 1"
    expressions = ["LENGTH(v)", "CHAR_LENGTH(v)", "SUBSTRING(v, 1, 10)", "LEFT(v, 10)", "CRC32(v)", "MD5(v)", "SHA1(v)",
                   "SHA2(v, 224)", "SHA2(v, 256)", "SHA2(v, 384)", "SHA2(v, 512)", "LENGTH(UPPER(v))", "LENGTH(REPLACE(v, 'ab', 'cde'))", "LENGTH(HEX(v))",
                   "LENGTH(TO_BASE64(v))", "LENGTH(COMPRESS(v))", "UPPER(v)", "HEX(v)"]
    for e in expressions:
        yield e, f"SELECT {e} FROM {table}"
    yield "LIKE '%needle%'", f"SELECT COUNT(*) FROM {table} WHERE v LIKE '%{NEEDLE}%'"
    yield "LOCATE(needle)", f"SELECT COUNT(*) FROM {table} WHERE LOCATE('{NEEDLE}', v) > 0"
    yield "v = @v", f"SELECT COUNT(*) FROM {table} WHERE v = @v"
    yield "v = v of another row", f"SELECT COUNT(*) FROM {table} a JOIN {table} b ON b.id = a.id WHERE a.v = b.v"
    yield "other columns", f"SELECT id, k FROM {table}"
    yield "order by LEFT(v, 10)", f"SELECT id, v FROM {table} ORDER BY LEFT(v, 10)"
    yield "order by k, id", f"SELECT id, v FROM {table} ORDER BY k, id"
    yield "group by k", f"SELECT k, COUNT(*), MAX(LENGTH(v)) FROM {table} GROUP BY k"
    yield "dump", Dump(table)


def write_cases(table, kind, size, collation):
    """(name, setup, statement, repetitions at most) of statements that write."""
    work = table + "_w"
    value = bytes_of(size, 99) if kind == "blob" else text_of(size, 99)
    empty = [f"DROP TABLE IF EXISTS {work}", f"CREATE TABLE {work} LIKE {table}", f"ALTER TABLE {work} MODIFY id INT AUTO_INCREMENT"]
    copy = empty + [f"INSERT INTO {work} SELECT * FROM {table}"]
    columns = f"INSERT INTO {work} (k, v) VALUES ('a', "
    yield "insert literal", empty, f"{columns}{literal(value)})", 1
    yield "insert prepared", empty, Prepared(f"{columns}?)", [value]), 1
    yield "insert long data", empty, Prepared(f"{columns}?)", [value], long_data=True), 1
    yield "insert select", empty, f"INSERT INTO {work} (k, v) SELECT k, v FROM {table}", 0
    yield "update concat", copy, f"UPDATE {work} SET v = CONCAT(v, 'x')", 0
    yield "update other column", copy, f"UPDATE {work} SET k = CONCAT(LEFT(k, 1), FLOOR(RAND() * 1000))", 0
    yield "delete and insert", copy, f"REPLACE INTO {work} SELECT * FROM {table}", 0


def cases(sizes=SIZES):
    """Yields (name, setup statements, measured statement, repetitions). A case's setup may rest on
    those before it. The name ends in the number of values
    that one run of the statement passes over, behind ` x`."""
    tables = [("text", "utf8mb4_general_ci"), ("blob", None), ("text0900", "utf8mb4_0900_ai_ci")]
    for label, size, rows in sizes:
        whole = max(2, WORK_BYTES // (size * rows))
        for kind, collation in tables:
            table = f"{kind}_{label}".lower()
            other = f"(SELECT CONCAT(v, 'x') FROM {table} WHERE id = 1)"
            # A variable of the column's collation: two implicit ones do not compare.
            set_v = f"{other} COLLATE {collation}" if collation else other
            setup = [Fill(table, kind, size, rows, collation), f"SET @v = {set_v}"]
            for name, statement in read_cases(table, kind):
                compares = any(word in name for word in ("LIKE", "LOCATE", "=", "UPPER", "CHAR_LENGTH", "order by LEFT"))
                if kind == "text0900" and not compares:
                    continue
                values = 1 if name == "select point" else rows
                times = 2 if name == "dump" else whole * (rows if values == 1 else 1)
                yield f"{kind} {label} {name} x{values}", setup, statement, times
                setup = []
            if kind == "text0900":
                continue
            for name, before, statement, single in write_cases(table, kind, size, collation):
                times = max(2, (WORK_BYTES >> 1) // size) if single else max(2, whole // 2)
                yield f"{kind} {label} {name} x{1 if single else rows}", before, statement, times


def run(connection, statement):
    if isinstance(statement, str):
        with connection.cursor(pymysql.cursors.SSCursor) as cursor:
            cursor.execute(statement)
            for _ in cursor:
                pass
    else:
        statement.run(connection)


def cpu_seconds(pid):
    """User and system time of all threads of a process, in nanosecond steps."""
    total = 0
    for path in glob.glob(f"/proc/{pid}/task/*/schedstat"):
        try:
            total += int(open(path).read().split()[0])
        except (FileNotFoundError, ProcessLookupError):
            pass
    return total / 1e9


def connect(port):
    connection = pymysql.connect(host="127.0.0.1", port=port, user=USER, password=PASSWORD, autocommit=True, charset="utf8mb4",
                                 max_allowed_packet=64 << 20, use_unicode=False)
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE IF NOT EXISTS {DATABASE}")
        cursor.execute(f"USE {DATABASE}")
    return connection


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("servers", nargs="+", help="NAME=PORT:PID")
    parser.add_argument("--only", action="append", default=[], help="cases whose name contains this; several: all of them")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json")
    args = parser.parse_args()
    servers = []
    for word in args.servers:
        name, _, where = word.partition("=")
        port, _, pid = where.partition(":")
        servers.append((name, connect(int(port)), int(pid)))
    print("| case | " + " | ".join(n for n, _, _ in servers) + " | first / best other |")
    print("| --- |" + " --- |" * (len(servers) + 1))
    figures, over = {}, 0
    for name, setup, statement, times in cases():
        failed = set()
        wanted = all(word in name for word in args.only)
        for server, connection, _ in servers:
            try:
                if wanted or any(isinstance(s, Fill) for s in setup):
                    for s in setup:
                        run(connection, s)
                if wanted:
                    run(connection, statement)
            except pymysql.Error as e:
                failed.add(server)
                print(f"{server}: {name}: {e.args[0]} {str(e.args[1:])[:90]}", file=sys.stderr)
        if not wanted:
            continue
        values = int(name.rpartition(" x")[2])
        rounds = {n: [] for n, _, _ in servers}
        for _ in range(args.rounds):
            for server, connection, pid in servers:
                if server in failed:
                    continue
                before = cpu_seconds(pid)
                for _ in range(times):
                    run(connection, statement)
                time.sleep(0.01)
                rounds[server].append((cpu_seconds(pid) - before) / times / values * 1e6)
        row = {n: statistics.median(r) if r else None for n, r in rounds.items()}
        figures[name.rpartition(" x")[0]] = row
        mine, others = row[servers[0][0]], [row[n] for n, _, _ in servers[1:] if row[n]]
        ratio = mine / min(others) if mine and others else 0
        over += ratio > 1
        cells = ["-" if row[n] is None else f"{row[n]:.0f}" for n, _, _ in servers]
        print(f"| {name.rpartition(' x')[0]} | " + " | ".join(cells) + f" | {ratio:.2f} |", flush=True)
    print(f"{over} of {len(figures)} cases dearer than the better other", file=sys.stderr)
    if args.json:
        with open(args.json, "w") as f:
            json.dump(figures, f, indent=1)


if __name__ == "__main__":
    main()
