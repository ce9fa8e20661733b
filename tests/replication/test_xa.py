"""XA transactions in the binary log: Nfold as a source and as a replica, over kill -9 of both. With
NFOLD_REPLICATION_REPLICA and NFOLD_REPLICATION_SOURCE a real MySQL 9.7 follows, or is the source;
see test_source.py and test_mysql.py. A MariaDB is the source where one is installed."""

import os
import random
import re
import threading
import time

import pymysql

import binlog_source
import mariadb
import replica
import server
import test_mariadb as of_mariadb
import test_mysql as of_mysql
import test_source as of_source
from test_source import Follower, caught_up, executed, follow

OPTIONS = {**of_source.OPTIONS, "server_id": 71}
ROUNDS = int(os.environ.get("ROUNDS", "6"))
XA_NOTA = 1397
RECORDED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "recorded")
QUERY, XA_PREPARE = 2, 38

# Statements, and the events that MySQL 9.7 writes for them.
CASES = [
    (["XA START 'a','b',7", "INSERT INTO t VALUES (1,1)", "XA END 'a','b',7", "XA PREPARE 'a','b',7"],
     ["Gtid", "Query XA START X'61',X'62',7", "Table_map", "Write_rows", "Query XA END X'61',X'62',7",
      "XA_prepare XA PREPARE X'61',X'62',7"]),
    (["XA COMMIT 'a','b',7"], ["Gtid", "Query XA COMMIT X'61',X'62',7"]),
    (["XA START 'r'", "INSERT INTO t VALUES (2,1)", "XA END 'r'", "XA PREPARE 'r'"],
     ["Gtid", "Query XA START X'72',X'',1", "Table_map", "Write_rows", "Query XA END X'72',X'',1", "XA_prepare XA PREPARE X'72',X'',1"]),
    (["XA ROLLBACK 'r'"], ["Gtid", "Query XA ROLLBACK X'72',X'',1"]),
    (["XA START 'o'", "INSERT INTO t VALUES (3,1)", "UPDATE t SET v=9 WHERE id=1", "XA END 'o'", "XA COMMIT 'o' ONE PHASE"],
     ["Gtid", "Query XA START X'6f',X'',1", "Table_map", "Write_rows", "Table_map", "Update_rows", "Query XA END X'6f',X'',1",
      "XA_prepare XA COMMIT X'6f',X'',1 ONE PHASE"]),
    # Without changes there is nothing.
    (["XA START 'e'", "SELECT * FROM t", "XA END 'e'", "XA PREPARE 'e'", "XA COMMIT 'e'"], []),
    (["XA START 'e'", "SELECT * FROM t FOR UPDATE", "XA END 'e'", "XA PREPARE 'e'", "XA ROLLBACK 'e'"], []),
    (["XA START 'e'", "UPDATE t SET v = 1 WHERE id = 99", "XA END 'e'", "XA COMMIT 'e' ONE PHASE"], []),
    (["XA START 'e'", "SAVEPOINT s", "INSERT INTO t VALUES (50,1)", "ROLLBACK TO s", "XA END 'e'", "XA PREPARE 'e'", "XA COMMIT 'e'"], []),
    (["XA START 'u'", "INSERT INTO t VALUES (4,1)", "XA END 'u'", "XA ROLLBACK 'u'"], []),
    # The end is written if and only if the beginning is, and the session that ends it writes.
    (["SET sql_log_bin=0", "XA START 'n'", "INSERT INTO t VALUES (5,1)", "XA END 'n'", "XA PREPARE 'n'", "SET sql_log_bin=1",
      "XA COMMIT 'n'"], []),
    (["XA START 'm'", "INSERT INTO t VALUES (6,1)", "XA END 'm'", "XA PREPARE 'm'"],
     ["Gtid", "Query XA START X'6d',X'',1", "Table_map", "Write_rows", "Query XA END X'6d',X'',1", "XA_prepare XA PREPARE X'6d',X'',1"]),
    (["SET sql_log_bin=0", "XA COMMIT 'm'", "SET sql_log_bin=1"], []),
    (["SET SESSION xa_detach_on_prepare=0", "XA START X'00ff','b',2147483647", "INSERT INTO t VALUES (8,1)",
      "XA END X'00ff','b',2147483647", "XA PREPARE X'00ff','b',2147483647", "XA ROLLBACK X'00ff','b',2147483647"],
     ["Gtid", "Query XA START X'00ff',X'62',2147483647", "Table_map", "Write_rows", "Query XA END X'00ff',X'62',2147483647",
      "XA_prepare XA PREPARE X'00ff',X'62',2147483647", "Gtid", "Query XA ROLLBACK X'00ff',X'62',2147483647"]),
]


def begin(srv):
    """A source with an empty log, and without the branches of a test that failed."""
    cur = srv.connect().cursor()
    for name in recover(cur):
        cur.execute(f"XA ROLLBACK X'{name[2:]}'")
    return of_source.begin(srv)


def recover(cur):
    """The data of all prepared branches."""
    cur.execute("XA RECOVER CONVERT XID")
    return sorted(row[3] for row in cur.fetchall())


def prepare(cur, name, *statements):
    for sql in (f"XA START '{name}'", *statements, f"XA END '{name}'", f"XA PREPARE '{name}'"):
        cur.execute(sql)


def events(cur, file, start):
    """The types of the events from a position on, with the texts of statements; and the end."""
    cur.execute(f"SHOW BINLOG EVENTS IN '{file}' FROM {start}")
    rows = cur.fetchall()
    shown = [f"{kind} {info}" if kind in ("Query", "XA_prepare") else kind for _, _, kind, _, _, info in rows]
    return shown, rows[-1][4] if rows else start


def check_events(srv_cur):
    srv_cur.execute("CREATE TABLE t (id INT PRIMARY KEY, v INT)")
    srv_cur.execute("SHOW BINARY LOG STATUS")
    file, at = srv_cur.fetchone()[:2]
    for statements, expected in CASES:
        for sql in statements:
            srv_cur.execute(sql)
        shown, at = events(srv_cur, file, at)
        shown = [re.sub(r"^(Table_map|Write_rows|Update_rows).*", r"\1", e) for e in shown]
        assert shown == expected, (statements, shown)


def test_events_are_those_of_mysql(srv):
    src = begin(srv)
    check_events(src)
    with Follower(srv) as f:
        caught_up(src, f.cur)
        # Row 5 is not in the log, and the end of m is not.
        f.cur.execute("SELECT id, v FROM rep.t ORDER BY id")
        assert f.cur.fetchall() == ((1, 9), (3, 1)) and recover(f.cur) == ["0x6D"]
    src.execute("SELECT id FROM t ORDER BY id")
    assert src.fetchall() == ((1,), (3,), (5,), (6,)) and recover(src) == []


@of_mysql.skipped
def test_mysql_writes_these_events(_):
    src = of_mysql.source().cursor()
    src.execute("DROP DATABASE IF EXISTS rep")
    src.execute("CREATE DATABASE rep")
    src.execute("USE rep")
    check_events(src)
    src.execute("DROP DATABASE rep")


def lifecycle(srv, src, cur, restart, end):
    """Branches on a source and its replica: prepared on both, invisible, over restarts of the
    replica, then ended on both. Returns the replica's cursor."""
    src.execute("CREATE TABLE t (id INT PRIMARY KEY, v INT, pad TEXT, KEY (v))")
    src.execute("INSERT INTO t VALUES (1, 1, 'a'), (2, 2, 'b'), (3, 3, 'c')")
    prepare(src, "c1", "INSERT INTO t VALUES (4, 4, 'd')", "UPDATE t SET v = 10 WHERE id = 1", "SAVEPOINT s",
            "DELETE FROM t WHERE id = 3", "ROLLBACK TO s", "UPDATE t SET pad = 'after' WHERE id = 1")
    prepare(src, "r1", "DELETE FROM t WHERE id = 2")
    prepare(src, "big", "INSERT INTO t WITH RECURSIVE s (n) AS (SELECT 100 UNION ALL SELECT n + 1 FROM s WHERE n < 130) "
            "SELECT n, 7, REPEAT('x', 60000) FROM s")
    src.execute("INSERT INTO t VALUES (5, 5, 'between')")
    end(src, cur)
    assert recover(cur) == recover(src) == sorted("0x" + n.encode().hex().upper() for n in ("c1", "r1", "big"))
    cur.execute("SELECT id, v FROM rep.t ORDER BY id")
    assert cur.fetchall() == ((1, 1), (2, 2), (3, 3), (5, 5))
    cur = restart()
    assert recover(cur) == recover(src)
    for sql in ("XA COMMIT 'c1'", "XA ROLLBACK 'r1'", "XA COMMIT 'big'"):
        src.execute(sql)
    src.execute("INSERT INTO t VALUES (6, 6, 'behind')")
    end(src, cur)
    assert recover(cur) == []
    replica.compare(src, cur, "rep")
    cur.execute("SELECT id, v, pad FROM rep.t WHERE id < 4 ORDER BY id")
    assert cur.fetchall() == ((1, 10, "after"), (2, 2, "b"), (3, 3, "c"))
    return cur


def test_nfold_prepares_the_transactions_of_an_nfold(srv):
    src = begin(srv)
    with Follower(srv) as f:
        def restart():
            f.srv.kill()
            f.srv.start()
            f.cur = f.srv.connect().cursor()
            return f.cur
        lifecycle(srv, src, f.cur, restart, caught_up)
        # The source restarts, too, with a prepared branch.
        prepare(src, "c2", "INSERT INTO t VALUES (7, 7, 'e')")
        srv.kill()
        srv.start()
        src = srv.connect(database="rep").cursor()
        assert recover(src) == ["0x6332"]
        src.execute("XA COMMIT 'c2'")
        caught_up(src, f.cur)
        replica.compare(src, f.cur, "rep")


def test_replica_hands_on_xa_transactions(srv):
    src = begin(srv)
    with Follower(srv, log_bin="ON", gtid_mode="ON") as middle:
        middle.cur.execute("SET sql_log_bin = 0")
        middle.cur.execute("CREATE USER sb IDENTIFIED BY 'sb'")
        middle.cur.execute("GRANT ALL ON *.* TO sb")
        middle.cur.execute("SET sql_log_bin = 1")
        with Follower(middle.srv, server_id=73) as last:
            src.execute("CREATE TABLE t (id INT PRIMARY KEY)")
            prepare(src, "x", "INSERT INTO t VALUES (1)")
            caught_up(src, middle.cur)
            middle.srv.kill()
            middle.srv.start()
            middle.cur = middle.srv.connect().cursor()
            prepare(src, "y", "INSERT INTO t VALUES (2)")
            src.execute("XA COMMIT 'x'")
            src.execute("XA ROLLBACK 'y'")
            src.execute("XA START 'z'")
            src.execute("INSERT INTO t VALUES (3)")
            src.execute("XA END 'z'")
            src.execute("XA COMMIT 'z' ONE PHASE")
            caught_up(src, middle.cur)
            caught_up(middle.cur, last.cur)
            assert executed(last.cur) == executed(src)
            replica.compare(src, last.cur, "rep")
            assert recover(last.cur) == recover(middle.cur) == []


def test_log_survives_a_stop_behind_an_xa_transaction(srv):
    src = begin(srv)
    src.execute("CREATE TABLE t (id INT PRIMARY KEY)")
    log = []
    for n, stop in enumerate((srv.kill, srv.stop, srv.kill, srv.kill)):
        prepare(src, f"x{n}", f"INSERT INTO t VALUES ({n})")
        if n == 2:
            # The file is synced each second.
            time.sleep(1.5)
        if n == 3:
            src.execute("FLUSH BINARY LOGS")
        src.execute("SHOW BINARY LOG STATUS")
        src.fetchall()
        stop()
        srv.start()
        src = srv.connect(database="rep").cursor()
        assert len(recover(src)) == n + 1
        gtids = executed(src)
        assert gtids.endswith(f":1-{3 + n}") and "," not in gtids, gtids
        log.append(gtids)
    for n in range(4):
        src.execute(f"XA COMMIT 'x{n}'")
    with Follower(srv) as f:
        caught_up(src, f.cur)
        replica.compare(src, f.cur, "rep")


class Load:
    """XA transactions and others of one client, over kills of the server."""

    def __init__(self, connect, seed):
        self.connect, self.rnd, self.n = connect, random.Random(seed), 0
        self.ended = threading.Event()
        self.committed, self.rolled_back, self.prepared = set(), set(), []
        self.error = None
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def stop(self):
        self.ended.set()
        self.thread.join()
        assert self.error is None, self.error

    def run(self):
        cur = None
        while not self.ended.is_set():
            try:
                if cur is None:
                    cur = self.connect().cursor()
                    cur.execute("USE rep")
                self.step(cur)
            except (pymysql.err.OperationalError, pymysql.err.InterfaceError, OSError) as e:
                if isinstance(e, pymysql.err.OperationalError) and e.args[0] == XA_NOTA:
                    # A prepared branch is lost.
                    self.error = e
                    return
                cur = None
                time.sleep(0.05)

    def step(self, cur):
        n, rnd = self.n, self.rnd
        self.n += 1
        if self.prepared and rnd.random() < 0.4:
            old = self.prepared.pop(rnd.randrange(len(self.prepared)))
            commits = rnd.random() < 0.7
            cur.execute(f"XA {'COMMIT' if commits else 'ROLLBACK'} 'x{old}'")
            (self.committed if commits else self.rolled_back).add(old)
        elif rnd.random() < 0.3:
            cur.execute(f"INSERT INTO t VALUES ({n}, 0, 'plain')")
            self.committed.add(n)
        else:
            pad = rnd.choice(["", "p" * 50, "q" * 20000])
            cur.execute(f"XA START 'x{n}'")
            cur.execute(f"INSERT INTO t VALUES ({n}, {rnd.randrange(50)}, '{pad}')")
            cur.execute(f"UPDATE t SET v = v + 1 WHERE id = {n}")
            cur.execute(f"XA END 'x{n}'")
            how = rnd.random()
            if how < 0.1:
                cur.execute(f"XA ROLLBACK 'x{n}'")
                self.rolled_back.add(n)
            elif how < 0.3:
                cur.execute(f"XA COMMIT 'x{n}' ONE PHASE")
                self.committed.add(n)
            else:
                cur.execute(f"XA PREPARE 'x{n}'")
                self.prepared.append(n)

    def check(self, cur):
        """What the client was told is true."""
        cur.execute("SELECT id FROM rep.t")
        rows = {row[0] for row in cur.fetchall()}
        assert self.committed <= rows, sorted(self.committed - rows)[:5]
        assert not self.rolled_back & rows, sorted(self.rolled_back & rows)[:5]
        prepared = recover(cur)
        names = {"0x" + f"x{n}".encode().hex().upper() for n in self.prepared}
        assert names <= set(prepared), (names, prepared)
        assert not set(self.prepared) & rows
        assert len(self.committed) > 20, len(self.committed)


def kill_rounds(load, kill, rounds):
    rnd = random.Random(6)
    try:
        for n in range(rounds):
            time.sleep(rnd.uniform(0.2, 0.8))
            kill(n)
    finally:
        time.sleep(0.5)
        load.stop()


def check_end(load, src, cur, caught_up):
    """Both sides have the same, also after the end of all branches."""
    caught_up(src, cur, 120)
    load.check(src)
    replica.compare(src, cur, "rep")
    assert recover(src) == recover(cur)
    for name in recover(src):
        src.execute(f"XA COMMIT X'{name[2:]}'")
    caught_up(src, cur, 120)
    replica.compare(src, cur, "rep")
    assert recover(src) == recover(cur) == []


TABLE = "CREATE TABLE t (id INT PRIMARY KEY, v INT, pad TEXT, KEY (v))"


def test_kill_9_of_source_and_replica_loses_and_repeats_nothing(srv):
    src = begin(srv)
    src.execute(TABLE)
    with Follower(srv) as f:
        load = Load(lambda: srv.connect(), 1)

        def kill(n):
            killed = srv if n % 3 < 2 else f.srv
            killed.kill()
            killed.start()
        kill_rounds(load, kill, ROUNDS)
        src, cur = srv.connect(database="rep").cursor(), f.srv.connect().cursor()
        check_end(load, src, cur, caught_up)
        src.execute("SELECT @@server_uuid")
        uuid = src.fetchone()[0]
        assert executed(src).startswith(f"{uuid}:1-") and "," not in executed(src), executed(src)


@of_source.skipped
def test_mysql_follows_xa_transactions(srv):
    src, cur = begin(srv), of_source.mysql().cursor()
    follow(srv, cur, True)

    def restart():
        cur.execute("STOP REPLICA")
        cur.execute("START REPLICA")
        return cur
    lifecycle(srv, src, cur, restart, caught_up)
    src.execute("DROP TABLE t")
    src.execute(TABLE)
    load = Load(lambda: srv.connect(), 2)

    def kill(_):
        srv.kill()
        srv.start()
    kill_rounds(load, kill, ROUNDS)
    try:
        check_end(load, srv.connect(database="rep").cursor(), cur, caught_up)
    finally:
        cur.execute("STOP REPLICA")


def writable(srv):
    """The replica's cursor, without super_read_only, for the statements of of_mysql.begin."""
    return srv.connect().cursor()


@of_mysql.skipped
def test_nfold_follows_xa_transactions_of_a_mysql(_):
    with server.Server(of_mysql.OPTIONS) as srv:
        src, cur = of_mysql.begin(srv)

        def restart():
            srv.kill()
            srv.start()
            return writable(srv)
        cur = lifecycle(srv, src, cur, restart, of_mysql.caught_up)
        src.execute("DROP TABLE t")
        src.execute(TABLE)
        of_mysql.caught_up(src, cur)
        for by_gtid in (0, 1):
            cur.execute("STOP REPLICA")
            cur.execute(f"CHANGE REPLICATION SOURCE TO SOURCE_AUTO_POSITION = {by_gtid}")
            if by_gtid:
                src.execute("TRUNCATE TABLE t")
                src.execute("SELECT @@global.gtid_executed")
                gtids = src.fetchone()[0].replace("\n", "")
                cur.execute("RESET REPLICA ALL")
                cur.execute(f"SET GLOBAL gtid_purged = '{gtids}'")
                cur.execute("SET GLOBAL super_read_only = OFF")
                cur.execute("TRUNCATE TABLE rep.t")
                cur.execute("SET GLOBAL super_read_only = ON")
                replica.change(cur, of_mysql.PORT, "SOURCE_AUTO_POSITION = 1")
            cur.execute("START REPLICA")
            load = Load(of_mysql.source, 3 + by_gtid)

            def kill(n):
                srv.kill()
                srv.start()
            kill_rounds(load, kill, 2 * ROUNDS)
            cur = writable(srv)
            check_end(load, src, cur, of_mysql.caught_up)
        src.execute("DROP DATABASE rep")


@of_mariadb.skipped
def test_nfold_follows_xa_transactions_of_a_mariadb(_):
    with mariadb.MariaDb() as source, server.Server(of_mariadb.OPTIONS) as srv:
        src, cur = of_mariadb.begin(srv, source)
        src.execute(TABLE)

        def branch(n, *end):
            with source.connect() as own:
                c = own.cursor()
                c.execute("USE rep")
                prepare(c, n, f"INSERT INTO t VALUES ({n}, 1, 'x')")
                for sql in end:
                    c.execute(sql)
        for n in range(1, 30):
            branch(n, *([] if n % 3 == 0 else [f"XA {'COMMIT' if n % 3 == 1 else 'ROLLBACK'} '{n}'"]))
            if n % 10 == 0:
                srv.kill()
                srv.start()
        cur = writable(srv)
        of_mariadb.caught_up(src, cur)
        assert len(recover(cur)) == 9
        replica.compare(src, cur, "rep")
        for n in range(3, 30, 3):
            src.execute(f"XA COMMIT '{n}'")
        of_mariadb.caught_up(src, cur)
        assert recover(cur) == []
        replica.compare(src, cur, "rep")


def recorded_in_steps(srv, name, is_mariadb):
    """A replica of a recorded file that breaks off behind each Query and XA_prepare. The replica is
    killed each time."""
    with open(os.path.join(RECORDED, name), "rb") as f:
        data = f.read()
    at, ends = 4, []
    for event in binlog_source.events(data):
        at += len(event)
        if event[4] in (QUERY, XA_PREPARE):
            ends.append(at)
    cur = srv.connect().cursor()
    for prepared in recover(cur):
        cur.execute(f"XA ROLLBACK X'{prepared[2:]}'")
    cur.execute("STOP REPLICA")
    for schema in ("rep", "rep2"):
        cur.execute(f"DROP DATABASE IF EXISTS {schema}")
    cur.execute("RESET REPLICA ALL")
    seen = []
    for end in ends:
        with binlog_source.Source(data[:end], mariadb=is_mariadb) as source:
            replica.change(cur, source.port, "SOURCE_AUTO_POSITION = 1")
            cur.execute("START REPLICA")
            replica.wait(cur, lambda s: s["Read_Source_Log_Pos"] == end)
            srv.kill()
        srv.start()
        cur = srv.connect().cursor()
        cur.execute("STOP REPLICA")
        state = tuple(recover(cur))
        if not seen or seen[-1] != state:
            seen.append(state)
    cur.execute("SELECT id, v FROM rep.t ORDER BY id")
    assert cur.fetchall() == ((1, 2), (3, 1), (5, 1))
    commits, rolls_back = ("0x" + n.encode().hex().upper() for n in ("commits", "rolls backb"))
    assert seen == [(), (commits,), (commits, rolls_back), (rolls_back,), (), ("0x00FF",)], seen
    cur.execute("XA COMMIT X'00ff'")
    cur.execute("SELECT v FROM rep.t WHERE id = 5")
    assert cur.fetchone() == (3,)


def test_recorded_log_of_mysql_is_applied_over_kills(srv):
    recorded_in_steps(srv, "mysql97-xa.binlog", False)


def test_recorded_log_of_mariadb_is_applied_over_kills(_):
    with server.Server(of_mariadb.OPTIONS) as srv:
        recorded_in_steps(srv, "mariadb1011-xa.binlog", True)


def test_branches_of_other_databases_end_as_well(_):
    with open(os.path.join(RECORDED, "mysql97-xa.binlog"), "rb") as f:
        data = f.read()
    with server.Server(of_mysql.OPTIONS) as srv, binlog_source.Source(data) as source:
        cur = srv.connect().cursor()
        replica.change(cur, source.port, "SOURCE_AUTO_POSITION = 1, NFOLD_DATABASES = 'other'")
        cur.execute("START REPLICA")
        # The Rotate at the end is read.
        replica.wait(cur, lambda s: s["Source_Log_File"] == "binlog.000002")
        assert recover(cur) == ["0x00FF"]
        cur.execute("SHOW DATABASES LIKE 'rep'")
        assert cur.fetchall() == ()
