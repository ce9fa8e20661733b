"""The stages of `run`: what is sent to both servers, and in which order."""
import os
import re
import struct

import pymysql
from wire import EXECUTE, PREPARE, QUERY, Command, Session, shape, sysbench_commands

LUA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench", "lua")
ITEMS = ["in_list", "pk_point", "key_point_limit", "key_point", "key_point_no_data", "pk_range_limit"]
READS = ["oltp_point_select", "oltp_read_only", "select_random_points", "select_random_ranges"]
WRITES = ["oltp_read_write", "oltp_write_only", "oltp_update_index", "oltp_update_non_index", "oltp_insert", "oltp_delete"]
TABLES = 2
ALL_ROWS = ["SELECT * FROM items ORDER BY id", "SELECT id, group_id FROM items FORCE INDEX (group_deleted) WHERE group_id > 0 ORDER BY id"]
ALL_ROWS += [sql for t in range(1, TABLES + 1) for sql in
             (f"SELECT * FROM sbtest{t} ORDER BY id", f"SELECT k, id FROM sbtest{t} FORCE INDEX (k_{t}) WHERE k >= 0 ORDER BY k, id")]
LEVELS = ["READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ"]
SHOWN = 40  # differences printed in full


class Pair:
    """A connection to each server, and the same command sent to both."""

    def __init__(self, compare, deprecate_eof=False, count_warnings=True):
        self.compare = compare
        self.sessions = [Session(deprecate_eof, count_warnings, database=compare.database, **where) for where in compare.servers]

    def run(self, command):
        """Nfold's packets, after they have been compared."""
        mine, theirs = (session.run(command) for session in self.sessions)
        self.compare.count(command, mine, theirs)
        return mine

    def query(self, sql):
        return self.run(Command(bytes([QUERY]) + sql.encode(), sql))

    def close(self):
        for session in self.sessions:
            session.close()


def words(packet):
    """A packet for a person to read."""
    return "".join(chr(b) if 32 <= b < 127 else f"\\{b:02x}" for b in packet[:400])


class Compare:
    """Both servers, the counts, and the stages."""

    def __init__(self, nfold, mysql, database, rows, events, rnd, seed):
        self.servers, self.database, self.rows, self.events = [nfold, mysql], database, rows, events
        self.rnd, self.seed = rnd, seed
        self.equal = self.different = self.other_order = 0
        self.shapes, self.wrong = set(), {}
        self.captured = {}

    def count(self, command, mine, theirs):
        name = ("prepared: " if command.payload[0] in (PREPARE, EXECUTE) else "text: ") + shape(command.sql)
        self.shapes.add(name)
        if mine == theirs:
            self.equal += 1
            return
        if not re.search(r"\b(ORDER BY|LIMIT)\b", command.sql) and sorted(mine) == sorted(theirs):
            self.other_order += 1  # rows without ORDER BY or LIMIT: each server gives them as its plan finds them
            return
        self.different += 1
        self.wrong[name] = self.wrong.get(name, 0) + 1
        if len(self.wrong) > SHOWN or self.wrong[name] > 1:
            return
        print(f"DIFFERENT {name[:300]}\n  {command.sql[:300]}\n  packets: {len(mine)} and {len(theirs)}")
        at = next((i for i, (a, b) in enumerate(zip(mine, theirs)) if a != b), None)
        if at is not None:
            print(f"  packet {at}: nfold {words(mine[at])}\n  packet {at}: mysql {words(theirs[at])}", flush=True)

    def stage(self, name):
        print(f"{name}: so far {self.equal} answers equal, {self.other_order} but for the order of rows, {self.different} different", flush=True)

    def report(self):
        """The exit status."""
        for name, count in sorted(self.wrong.items(), key=lambda x: -x[1]):
            print(f"  {count} different: {name[:200]}")
        print(f"{len(self.shapes)} shapes of statements: {self.equal} answers equal, {self.other_order} but for the order of rows that had none")
        print(f"{self.equal + self.other_order} passed, {self.different} failed")
        return 1 if self.different or not self.equal else 0

    def make_databases(self):
        for where in self.servers:
            with pymysql.connect(**where) as conn:
                for name in [self.database] + ["capture"] * (where is self.servers[0]):
                    conn.cursor().execute(f"DROP DATABASE IF EXISTS {name}")
                    conn.cursor().execute(f"CREATE DATABASE {name}")

    def capture(self, script, mode, *more):
        """The commands of a script's own connections; each is captured once."""
        key = (script, mode, more)
        if key not in self.captured:
            items = script in ITEMS
            size = [f"--items-rows={self.rows}", f"--items-groups={self.rows // 5}"] if items else [f"--table-size={self.rows}"]
            if not items and script != "bulk_insert":
                size.append(f"--tables={TABLES}")
            if mode in ("ps", "text") and items:
                size.append(f"--ps={'on' if mode == 'ps' else 'off'}")
            elif mode in ("ps", "text"):
                size.append(f"--db-ps-mode={'auto' if mode == 'ps' else 'disable'}")
            if script == "bulk_insert":
                size = size[1:]
            last = [f"--events={self.events}", "--time=0", "run"] if mode in ("ps", "text") else [mode]
            self.captured[key] = sysbench_commands(self.servers[0]["port"], f"./{script}.lua" if items else script, f"--rand-seed={self.seed}",
                                                   "--threads=1", *size, *more, *last, database="capture", cwd=LUA if items else None)
        return self.captured[key]

    def replay(self, script, mode, *more, deprecate_eof=False):
        for commands in self.capture(script, mode, *more):
            pair = Pair(self, deprecate_eof)
            for command in commands:
                pair.run(command)
            pair.close()

    def all_rows(self):
        pair = Pair(self)
        for sql in ALL_ROWS:
            pair.query(sql)
        pair.close()

    def load(self):
        for mode in ("prepare", "text", "cleanup"):
            self.replay("bulk_insert", mode)
        self.replay("in_list", "prepare")
        self.replay("oltp_read_only", "prepare")
        self.all_rows()
        self.stage("load")

    def reads(self):
        for script in ITEMS + READS:
            for mode in ("text", "ps"):
                for deprecate_eof in (False, True):
                    self.replay(script, mode, deprecate_eof=deprecate_eof)
        self.stage("reads")

    def edges(self):
        pair = Pair(self, count_warnings=False)  # a comparison warns once for each row that the plan at hand looks at
        top = self.rows // 5
        ids = [self.rnd.randint(1, top) for _ in range(40)]
        lists = [ids + ids, sorted(ids), sorted(ids, reverse=True), [0, -1, top + 1, 2 ** 31, 2 ** 32, 2 ** 63, 2 ** 64 - 1], ["NULL"] + ids,
                 ["'7'", "'7 '", "'x'", "''", "7.0", "7.5", "7e0"], [self.rnd.randint(1, top * 2) for _ in range(5000)], [7], ["NULL"]]
        for values in lists:
            values = ",".join(map(str, values))
            pair.query(f"SELECT * FROM items WHERE deleted=0 AND group_id IN ({values})")
            pair.query(f"SELECT COUNT(*), MIN(id) FROM items WHERE group_id NOT IN ({values})")
            pair.query(f"SELECT deleted FROM items WHERE group_id IN ({values}) ORDER BY id LIMIT 30")
            pair.query(f"SELECT id, k, c, pad FROM sbtest1 WHERE k IN ({values}) ORDER BY id")
            pair.query(f"SELECT title FROM items WHERE id IN ({values}) ORDER BY id")
        for value in ("0", "-1", "NULL", "''", "'7'", "'7x'", "7.5", "1e1", str(2 ** 64), "18446744073709551615", "x'37'", "TRUE", "DATE'2020-01-01'"):
            for sql in ("SELECT title, owner FROM items WHERE group_id=%s", "SELECT title, owner FROM items WHERE group_id=%s LIMIT 1",
                        "SELECT deleted FROM items WHERE group_id=%s", "SELECT title FROM items WHERE id=%s LIMIT 1",
                        "SELECT title, owner FROM items WHERE id >= %s LIMIT 20", "SELECT c FROM sbtest1 WHERE id=%s",
                        "SELECT SUM(k) FROM sbtest1 WHERE id BETWEEN %s AND 100"):
                pair.query(sql % value)
        self.parameters(pair)
        pair.close()
        self.stage("edges")

    def parameters(self, pair):
        """Prepared statements whose parameters are of each kind a driver may send. Each is prepared
        anew: in MySQL a parameter that was a
        DATETIME once takes a later TIME or text for one as well. No statement has parameters beside
        texts and beside dates: a number for a
        text makes MySQL prepare the statement once more, and then numbers beside dates are compared
        otherwise."""
        values = [(1, b"\x07"), (2, b"\x07\0"), (3, b"\x07\0\0\0"), (8, b"\x07" + bytes(7)), (8, b"\xff" * 8), (0x8008, b"\xff" * 8), (4, struct.pack("<f", 7)),
                  (5, struct.pack("<d", 7)), (5, struct.pack("<d", 7.5)), (253, b"\x017"), (253, b"\x03abc"), (246, b"\x047.00"), (254, b"\x00"),
                  (252, b"\x017"), (12, b"\x04\xe4\x07\x01\x01"), (11, b"\x00"), (6, None)]
        texts = ["SELECT * FROM items WHERE deleted=0 AND group_id IN (?, 9, ?, 11)", "SELECT title, owner FROM items WHERE group_id=? OR id=?",
                 "SELECT title, owner FROM items WHERE id >= ? AND owner > ? LIMIT 20", "SELECT c FROM sbtest1 WHERE id BETWEEN ? AND 7 OR k=?",
                 "SELECT id, title FROM items WHERE title > ? AND id < 40 OR title = ? ORDER BY title, id",
                 "SELECT id, created FROM items WHERE created < ? AND id < 40 OR created > ? AND id < 30 ORDER BY created, id"]
        for n, text in enumerate(texts):
            for kind, value in values:
                other = values[(n + kind) % len(values)]
                both = [(kind, value), other]
                pair.run(Command(bytes([PREPARE]) + text.encode(), text, n))
                nulls = sum(1 << i for i, v in enumerate(both) if v[1] is None)
                payload = bytes([EXECUTE]) + struct.pack("<IBI", 0, 0, 1) + bytes([nulls, 1]) + b"".join(struct.pack("<H", k) for k, _ in both)
                payload += b"".join(v for _, v in both if v is not None)
                pair.run(Command(payload, f"{text} with {both}", n))

    def writes(self):
        for mode in ("text", "ps"):
            for script in WRITES:
                self.replay(script, mode)
                self.all_rows()
        self.stage("writes")

    def item_writes(self, n):
        """Transactions over `items` that change keys, rows and both; a third of them is rolled
        back."""
        rnd, next_id = self.rnd, self.rows
        for i in range(n):
            yield "BEGIN"
            for _ in range(rnd.randint(1, 6)):
                first = rnd.randint(1, self.rows - 10)
                group = rnd.randint(1, self.rows // 5)
                next_id += 1
                yield rnd.choice([
                    f"UPDATE items SET group_id={group} WHERE id={first}",
                    f"UPDATE items SET deleted=1-deleted, title=CONCAT('t', owner) WHERE group_id={group}",
                    f"UPDATE items SET body=REPEAT('y', owner % 120) WHERE id BETWEEN {first} AND {first + 9}",
                    f"DELETE FROM items WHERE id={first}",
                    f"INSERT INTO items VALUES ({next_id},{group},0,5,'new','row','2021-02-03 04:05:06')",
                    f"REPLACE INTO items VALUES ({first},{group},0,NULL,'put',NULL,NULL)",
                ])
            yield "ROLLBACK" if i % 3 == 2 else "COMMIT"

    def snapshots(self):
        """One round for each script that writes: readers keep their transactions open over all of
        its pieces."""
        reads = [c for script in ITEMS for mode in ("text", "ps") for c in self.capture(script, mode)]
        reads += [c for script in READS for mode in ("text", "ps") for c in self.capture(script, mode, "--skip-trx=on")]
        texts = list(self.item_writes(self.events // 2))
        rounds = [[Command(bytes([QUERY]) + sql.encode(), sql) for sql in texts]]
        for script, mode in (("oltp_read_write", "text"), ("oltp_write_only", "ps")):
            rounds.append(max(self.capture(script, mode, f"--rand-seed={self.seed + 1}"), key=len))
        for number, commands in enumerate(rounds):
            self.snapshot_round(commands, [self.rnd.sample(c, min(len(c), 12)) for c in self.executable(reads)], number)
        self.all_rows()
        self.stage("snapshots")

    @staticmethod
    def executable(reads):
        """The commands of each captured connection that read, each standing for itself: a client
        sends the types of parameters with the
        first EXECUTE of a statement only."""
        out = []
        for commands in reads:
            group, types = [], {}
            for c in commands:
                if c.payload[0] == EXECUTE and (marks := c.sql.count("?")):
                    flag = 10 + (marks + 7) // 8
                    if c.payload[flag]:
                        types[c.sql] = c.payload[flag + 1:flag + 1 + 2 * marks]
                    else:
                        c = Command(c.payload[:flag] + b"\1" + types[c.sql] + c.payload[flag + 1:], c.sql)
                if c.payload[0] in (QUERY, EXECUTE) and c.sql.startswith("SELECT"):
                    group.append(c)
            out.append(group)
        return out

    def snapshot_round(self, commands, chosen, number):
        writer = Pair(self)
        readers = [Reader(self, level) for level in LEVELS]
        pieces = 6
        for piece in range(pieces):
            reads = [command for group in chosen for command in self.rnd.sample(group, min(len(group), 4))]
            for reader in readers:
                reader.read(reads, number)
            for command in commands[len(commands) * piece // pieces:len(commands) * (piece + 1) // pieces]:
                writer.run(command)
        for reader in readers:
            reader.read([command for group in chosen for command in group], number)
            reader.close()
        writer.close()


class Reader:
    """A transaction of one isolation level on both servers. Under REPEATABLE READ an answer must
    never change."""

    def __init__(self, compare, level):
        self.compare, self.level, self.pair = compare, level, Pair(compare)
        self.pair.query(f"SET SESSION TRANSACTION ISOLATION LEVEL {level}")
        self.pair.query("START TRANSACTION WITH CONSISTENT SNAPSHOT")
        self.seen, self.prepared = {}, {}

    def read(self, commands, number):
        for command in commands:
            if command.payload[0] == EXECUTE and command.sql not in self.prepared:
                self.prepared[command.sql] = len(self.prepared)
                self.pair.run(Command(bytes([PREPARE]) + command.sql.encode(), command.sql, self.prepared[command.sql]))
            mine = self.pair.run(Command(command.payload, command.sql, self.prepared.get(command.sql)))
            first = self.seen.setdefault((command.payload, command.sql), mine)
            if self.level == "REPEATABLE READ" and mine != first:
                self.compare.count(Command(command.payload, f"again in round {number}: {command.sql}"), mine, first)

    def close(self):
        self.pair.query("COMMIT")
        self.pair.close()
