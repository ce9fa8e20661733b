"""Nfold as a source, which another Nfold follows. With NFOLD_REPLICATION_REPLICA=PORT a real MySQL
9.7 follows it, too: gtid_mode = ON, user sb, password sb. The channel of that server is reset, and
so are its binary log and GTIDs."""

import os
import random
import re
import struct
import threading
import time

import pymysql

import binlog_source
import replica
import server

PORT = os.environ.get("NFOLD_REPLICATION_REPLICA")
OPTIONS = {"server_id": 71, "innodb_buffer_pool_size": "64M", "log_bin": "ON", "gtid_mode": "ON"}


def mysql():
    return pymysql.connect(host="127.0.0.1", port=int(PORT), user="sb", password="sb", autocommit=True,
                           charset="utf8mb4")


def skipped(test):
    """The test, or a message without a MySQL."""
    def run(srv):
        if PORT is None:
            print(f"skipped {test.__name__}: NFOLD_REPLICATION_REPLICA names no MySQL")
            return
        test(srv)
    run.__name__ = test.__name__
    return run


def begin(srv):
    """A source with an empty log and the accounts that the tests use."""
    src = srv.connect().cursor()
    for schema in ("rep", "rep2"):
        src.execute(f"DROP DATABASE IF EXISTS {schema}")
    src.execute("CREATE USER IF NOT EXISTS sb IDENTIFIED BY 'sb'")
    src.execute("GRANT ALL ON *.* TO sb")
    src.execute("RESET BINARY LOGS AND GTIDS")
    src.execute("CREATE DATABASE rep")
    src.execute("USE rep")
    return src


def follow(srv, cur, is_mysql, more="SOURCE_AUTO_POSITION = 1"):
    """Makes the server behind `cur` a replica without data."""
    cur.execute("STOP REPLICA")
    for schema in ("rep", "rep2"):
        cur.execute(f"DROP DATABASE IF EXISTS {schema}")
    cur.execute("RESET REPLICA ALL")
    if is_mysql:
        cur.execute("RESET BINARY LOGS AND GTIDS")
    replica.change(cur, srv.port, more)
    cur.execute("START REPLICA")


def executed(cur):
    cur.execute("SELECT @@global.gtid_executed")
    return cur.fetchone()[0].replace("\n", "")


def caught_up(src, cur, timeout=60):
    """Waits until the replica has everything that the source has committed."""
    wanted = executed(src)
    end = time.monotonic() + timeout
    while True:
        s = replica.status(cur)
        if s["Executed_Gtid_Set"].replace("\n", "") == wanted:
            return
        # A lost connection is tried again.
        stopped = s["Last_SQL_Error"] or s["Replica_IO_Running"] == "No"
        assert not stopped, (s["Last_SQL_Error"], s["Last_IO_Error"], wanted, s["Executed_Gtid_Set"])
        assert time.monotonic() < end, (wanted, s)
        time.sleep(0.02)


class Follower:
    """Another Nfold that follows."""

    def __init__(self, srv, **options):
        self.srv = server.Server({"server_id": 72, "innodb_buffer_pool_size": "64M", **options}).start()
        self.cur = self.srv.connect().cursor()
        follow(srv, self.cur, False)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.srv.__exit__(*error)


def fill(src):
    """Statements of many kinds."""
    src.execute("CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(20), KEY (v))")
    src.execute("INSERT INTO t (v) VALUES ('one'), ('two'), (NULL)")
    src.execute("UPDATE t SET v = 'zwei' WHERE id = 2")
    src.execute("DELETE FROM t WHERE id = 1")
    src.execute("REPLACE INTO t VALUES (3, 'three'), (4, 'four')")
    src.execute("INSERT INTO t VALUES (4, 'x') ON DUPLICATE KEY UPDATE v = 'vier'")
    src.execute("INSERT IGNORE INTO t VALUES (4, 'y'), (5, 'five')")
    src.execute("CREATE TABLE nokey (a INT, b TEXT)")
    src.execute("INSERT INTO nokey VALUES (1, REPEAT('x', 9000)), (1, NULL), (2, 'two')")
    src.execute("UPDATE nokey SET a = a + 1")
    src.execute("DELETE FROM nokey WHERE a = 3")
    src.execute("CREATE TABLE parent (id INT PRIMARY KEY)")
    src.execute("CREATE TABLE child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES parent (id) "
                "ON DELETE CASCADE ON UPDATE SET NULL)")
    src.execute("INSERT INTO parent VALUES (1), (2), (3)")
    src.execute("INSERT INTO child VALUES (1, 1), (2, 1), (3, 2), (4, 3)")
    src.execute("DELETE FROM parent WHERE id = 1")
    src.execute("UPDATE parent SET id = 9 WHERE id = 2")
    src.execute("BEGIN")
    src.execute("INSERT INTO t (v) VALUES ('kept')")
    src.execute("SAVEPOINT a")
    src.execute("INSERT INTO t (v) VALUES ('undone')")
    src.execute("ROLLBACK TO a")
    try:
        src.execute("INSERT INTO parent VALUES (20), (3)")
        raise AssertionError("a duplicate")
    except pymysql.err.IntegrityError:
        pass
    src.execute("UPDATE t, parent SET t.v = 'multi', parent.id = 30 WHERE t.id = 5 AND parent.id = 3")
    src.execute("COMMIT")
    src.execute("BEGIN")
    src.execute("INSERT INTO t (v) VALUES ('rolled back')")
    src.execute("ROLLBACK")
    src.execute("CREATE TABLE copied AS SELECT id, v FROM t")
    src.execute("CREATE TEMPORARY TABLE tmp (id INT)")
    src.execute("INSERT INTO tmp VALUES (1)")
    src.execute("INSERT INTO t (v) SELECT 'from temporary' FROM tmp")
    src.execute("DROP TEMPORARY TABLE tmp")
    src.execute("CREATE DATABASE rep2")
    src.execute("CREATE TABLE rep2.a (id INT PRIMARY KEY, g INT AS (id * 2) STORED, h INT AS (id + 1) VIRTUAL, KEY (h))")
    src.execute("INSERT INTO rep2.a (id) VALUES (1), (2)")
    src.execute("UPDATE rep2.a SET id = id + 10")
    src.execute("ALTER TABLE t ADD COLUMN n INT DEFAULT 7, ADD KEY (n)")
    src.execute("INSERT INTO t (v, n) VALUES ('new column', 1)")
    src.execute("RENAME TABLE nokey TO renamed")
    src.execute("CREATE TABLE gone (id INT)")
    src.execute("DROP TABLE gone, copied")
    src.execute("TRUNCATE TABLE rep2.a")
    src.execute("INSERT INTO rep2.a (id) VALUES (7)")
    src.execute("CREATE VIEW w AS SELECT id FROM t")
    src.execute("SET sql_mode = 'ANSI_QUOTES'")
    src.execute('CREATE TABLE "quoted" (id INT PRIMARY KEY)')
    src.execute("SET sql_mode = DEFAULT")
    src.execute("SET sql_log_bin = 0")
    src.execute("CREATE TABLE own (id INT)")
    src.execute("INSERT INTO own VALUES (1)")
    src.execute("DROP TABLE own")
    src.execute("SET sql_log_bin = 1")


TYPES = """CREATE TABLE types (id INT PRIMARY KEY AUTO_INCREMENT, ti TINYINT, tu TINYINT UNSIGNED, si SMALLINT,
    su SMALLINT UNSIGNED, mi MEDIUMINT, mu MEDIUMINT UNSIGNED, i INT, iu INT UNSIGNED, bi BIGINT, bu BIGINT UNSIGNED,
    f FLOAT, d DOUBLE, n DECIMAL(30,10), n2 DECIMAL(65,30), n3 DECIMAL(9,0), n4 DECIMAL(5,5), b1 BIT(1), b9 BIT(9),
    b64 BIT(64), y YEAR, da DATE, t0 TIME, t1 TIME(1), t3 TIME(3), t6 TIME(6), dt0 DATETIME, dt2 DATETIME(2),
    dt4 DATETIME(4), dt6 DATETIME(6), ts0 TIMESTAMP NULL, ts3 TIMESTAMP(3) NULL, ts6 TIMESTAMP(6) NULL, c CHAR(5),
    cl CHAR(255), vc VARCHAR(10), vl VARCHAR(300), l1 VARCHAR(10) CHARACTER SET latin1, u2 CHAR(5) CHARACTER SET ucs2,
    bn BINARY(6), vb VARBINARY(300), tt TINYTEXT, tx TEXT, mt MEDIUMTEXT, lt LONGTEXT, tb TINYBLOB, bl BLOB,
    mb MEDIUMBLOB, lb LONGBLOB, e ENUM('a','b','c'), s SET('x','y','z'), s9 SET('a','b','c','d','e','f','g','h','i'),
    j JSON)"""


def fill_types(src):
    src.execute(TYPES)
    src.execute("SET time_zone = '+00:00', sql_mode = ''")
    src.execute("INSERT INTO types () VALUES ()")
    rnd = random.Random(7)
    src.execute("SELECT column_name, data_type FROM information_schema.columns WHERE table_schema = 'rep' "
                "AND table_name = 'types' AND column_name <> 'id' ORDER BY ordinal_position")
    columns = src.fetchall()
    for _ in range(150):
        values = [replica.random_value(rnd, k) for _, k in columns]
        src.execute(f"INSERT INTO types ({', '.join(c for c, _ in columns)}) "
                    f"VALUES ({', '.join(['%s'] * len(columns))})", values)
    for _ in range(100):
        n, k = rnd.choice(columns)
        src.execute(f"UPDATE types SET {n} = %s WHERE id %% 7 = %s", (replica.random_value(rnd, k), rnd.randrange(7)))
    src.execute("DELETE FROM types WHERE id %% 11 = %s", (rnd.randrange(11),))
    src.execute("SET time_zone = DEFAULT, sql_mode = DEFAULT")


def test_statements_show_the_log(srv):
    src = begin(srv)
    src.execute("CREATE TABLE t (id INT PRIMARY KEY)")
    src.execute("INSERT INTO t VALUES (1)")
    src.execute("SELECT @@server_uuid, @@log_bin, @@gtid_mode")
    uuid, on, mode = src.fetchone()
    assert len(uuid) == 36 and (on, mode) == (1, "ON")
    assert executed(src) == f"{uuid}:1-3"
    src.execute("SHOW BINARY LOG STATUS")
    file, position, _, _, gtids = src.fetchone()
    assert (file, gtids) == ("binlog.000001", f"{uuid}:1-3")
    src.execute("SHOW BINARY LOGS")
    assert src.fetchall() == (("binlog.000001", position, "No"),)
    src.execute("SHOW BINLOG EVENTS")
    events = src.fetchall()
    assert [e[2] for e in events] == [
        "Format_desc", "Previous_gtids", "Gtid", "Query", "Gtid", "Query", "Gtid", "Query", "Table_map", "Write_rows",
        "Xid"], events
    assert events[-1][4] == position and events[0][1] == 4
    assert events[3][5].startswith("CREATE DATABASE rep") and events[7][5] == "BEGIN"
    assert events[8][5].endswith("(rep.t)") and events[9][5].endswith("flags: STMT_END_F")
    src.execute(f"SHOW BINLOG EVENTS IN 'binlog.000001' FROM {events[6][1]} LIMIT 1, 2")
    assert src.fetchall() == events[7:9]
    src.execute("FLUSH BINARY LOGS")
    src.execute("INSERT INTO t VALUES (2)")
    src.execute("SHOW BINARY LOGS")
    assert [r[0] for r in src.fetchall()] == ["binlog.000001", "binlog.000002"]
    src.execute("SHOW BINLOG EVENTS IN 'binlog.000001'")
    assert src.fetchall()[-1][2::3] == ("Rotate", "binlog.000002;pos=4")
    src.execute("PURGE BINARY LOGS TO 'binlog.000002'")
    src.execute("SHOW BINARY LOGS")
    assert [r[0] for r in src.fetchall()] == ["binlog.000002"]
    src.execute("SELECT @@gtid_executed, @@gtid_purged")
    assert src.fetchone() == (f"{uuid}:1-4", f"{uuid}:1-3")
    for statement, code in (("PURGE BINARY LOGS TO 'binlog.000009'", 1373), ("SHOW BINLOG EVENTS IN 'x'", 1220),
                            ("SET binlog_row_value_options = PARTIAL_JSON", 1235),
                            ("SET gtid_next = '" + uuid + ":9'", 1235)):
        try:
            src.execute(statement)
            raise AssertionError(statement)
        except pymysql.err.Error as e:
            assert e.args[0] == code, (statement, e)
    srv.stop()
    srv.start()
    src = srv.connect().cursor()
    assert executed(src) == f"{uuid}:1-4"
    src.execute("SHOW BINARY LOGS")
    assert [r[0] for r in src.fetchall()] == ["binlog.000002", "binlog.000003"]


def test_size_bounds_a_file(srv):
    src = begin(srv)
    src.execute("SET GLOBAL max_binlog_size = 8192")
    src.execute("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(3000))")
    for n in range(20):
        src.execute("INSERT INTO t VALUES (%s, %s)", (n, "x" * 3000))
    # The files are written behind the commits.
    end = time.monotonic() + 10
    sizes = []
    while len(sizes) <= 5 and time.monotonic() < end:
        src.execute("SHOW BINARY LOGS")
        sizes = [r[1] for r in src.fetchall()]
    src.execute("SET GLOBAL max_binlog_size = DEFAULT")
    assert len(sizes) > 5 and all(8192 <= s < 16384 for s in sizes[:-1]), sizes
    with Follower(srv) as f:
        caught_up(src, f.cur)
        replica.compare(src, f.cur, "rep")


def test_nfold_follows(srv):
    src = begin(srv)
    with Follower(srv) as f:
        fill(src)
        fill_types(src)
        caught_up(src, f.cur)
        for schema in ("rep", "rep2"):
            replica.compare(src, f.cur, schema)
        src.execute("SHOW REPLICAS")
        assert [r[0] for r in src.fetchall()] == [72]


def test_settings_of_one_statement_end_before_the_next(srv):
    """A Query event names auto_increment_increment and lc_time_names only if they differ from their
    defaults."""
    src = begin(srv)
    with Follower(srv) as f:
        src.execute("SET auto_increment_increment = 10, auto_increment_offset = 5, lc_time_names = 'de_DE'")
        src.execute("CREATE TABLE stepped (n INT PRIMARY KEY)")
        src.execute("CREATE TABLE plain (n INT PRIMARY KEY)")
        for table in ("stepped", "plain"):
            src.execute(f"INSERT INTO {table} VALUES (1), (2), (3)")
        numbered = "ADD id INT AUTO_INCREMENT UNIQUE, ADD day VARCHAR(20) DEFAULT (DAYNAME('2026-11-30'))"
        src.execute(f"ALTER TABLE stepped {numbered}")
        src.execute("SET auto_increment_increment = DEFAULT, auto_increment_offset = DEFAULT, lc_time_names = DEFAULT")
        src.execute(f"ALTER TABLE plain {numbered}")
        caught_up(src, f.cur)
        replica.compare(src, f.cur, "rep")


def test_a_session_reads_its_own_writes_on_a_replica(srv):
    """The GTIDs of the source after a commit, and WAIT_FOR_EXECUTED_GTID_SET on the replica."""
    src = begin(srv)
    src.execute("CREATE TABLE t (id INT PRIMARY KEY)")
    with Follower(srv) as f:
        cur = f.cur
        caught_up(src, cur)
        for n in range(200):
            src.execute(f"INSERT INTO t VALUES ({n})")
            gtids = executed(src)
            cur.execute("SELECT WAIT_FOR_EXECUTED_GTID_SET(%s, 30)", (gtids,))
            assert cur.fetchone() == (0,)
            cur.execute("SELECT COUNT(*) FROM rep.t")
            assert cur.fetchone() == (n + 1,)
        uuid, last = gtids.split(":")[0], int(gtids.split("-")[-1])
        cur.execute("SELECT WAIT_FOR_EXECUTED_GTID_SET(%s, 0.2)", (f"{uuid}:{last + 1}",))
        assert cur.fetchone() == (1,), "nothing has made this transaction"
        # A transaction that comes later ends the wait.
        threading.Timer(0.3, src.execute, ("INSERT INTO t VALUES (1000)",)).start()
        cur.execute("SELECT WAIT_FOR_EXECUTED_GTID_SET(%s)", (f"{uuid}:{last + 1}",))
        assert cur.fetchone() == (0,)
        cur.execute("SELECT COUNT(*) FROM rep.t")
        assert cur.fetchone() == (201,)


def test_waited_transaction_survives_a_kill(srv):
    """WAIT_FOR_EXECUTED_GTID_SET returns when the replica has the transaction durably."""
    src = begin(srv)
    src.execute("CREATE TABLE t (id INT PRIMARY KEY)")
    with Follower(srv, skip_replica_start="ON") as f:
        cur = f.cur
        for n in range(12):
            caught_up(src, cur)
            src.execute(f"INSERT INTO t VALUES ({n})")
            cur.execute("SELECT WAIT_FOR_EXECUTED_GTID_SET(%s, 30)", (executed(src),))
            f.srv.kill()
            assert cur.fetchone() == (0,)
            f.srv.start()
            cur = f.srv.connect().cursor()
            cur.execute("SELECT MAX(id) FROM rep.t")
            assert cur.fetchone() == (n,)
            cur.execute("START REPLICA")


def test_replica_hands_on_the_transactions(srv):
    src = begin(srv)
    with Follower(srv, log_bin="ON", gtid_mode="ON") as middle:
        middle.cur.execute("SET sql_log_bin = 0")
        middle.cur.execute("CREATE USER sb IDENTIFIED BY 'sb'")
        middle.cur.execute("GRANT ALL ON *.* TO sb")
        middle.cur.execute("SET sql_log_bin = 1")
        with Follower(middle.srv, server_id=73) as last:
            fill(src)
            src.execute("CREATE TABLE selected AS SELECT id, v FROM t")
            src.execute("CREATE TABLE none AS SELECT id, v FROM t WHERE id < 0")
            # Transactions and statements that change nothing.
            for n, sql in enumerate(("COMMIT", "CREATE TABLE IF NOT EXISTS t (id INT)",
                                     "CREATE USER IF NOT EXISTS sb IDENTIFIED BY 'hidden'")):
                src.execute(f"SET gtid_next = '3e11fa47-71ca-11e1-9e33-c80aa9429562:{n + 1}'")
                src.execute(sql)
            src.execute("SET gtid_next = AUTOMATIC")
            caught_up(src, middle.cur)
            caught_up(src, last.cur)
            for schema in ("rep", "rep2"):
                replica.compare(src, middle.cur, schema)
                replica.compare(src, last.cur, schema)
            src.execute("SHOW BINLOG EVENTS")
            wanted = [e[5] for e in src.fetchall() if e[2] == "Gtid"]
            middle.cur.execute("SHOW BINLOG EVENTS")
            events = middle.cur.fetchall()
            found = [e[5] for e in events if e[2] == "Gtid"]
            assert [g for g in found if g in wanted] == wanted, (found, wanted)
            at = max(n for n, e in enumerate(events) if "CREATE TABLE `selected`" in e[5])
            kinds = [e[2] for e in events[at - 2:at + 4]]
            assert kinds == ["Gtid", "Query", "Query", "Table_map", "Write_rows", "Xid"], kinds
            assert events[at][5].endswith("START TRANSACTION"), events[at]
        for of in (srv, middle.srv):
            with open(os.path.join(of.datadir, "binlog.000001"), "rb") as log:
                assert b"hidden" not in log.read()


def test_large_transaction_arrives(srv):
    src = begin(srv)
    with Follower(srv) as f:
        src.execute("CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(200), b LONGBLOB)")
        src.execute("BEGIN")
        src.execute("INSERT INTO t (v, b) VALUES ('blob', REPEAT('b', 3000000))")
        for _ in range(20):
            src.executemany("INSERT INTO t (v) VALUES (%s)", [("v" * 150,)] * 1000)
        src.execute("UPDATE t SET v = CONCAT(v, 'x') WHERE id % 2 = 0")
        src.execute("COMMIT")
        caught_up(src, f.cur)
        replica.compare(src, f.cur, "rep")
    end = time.monotonic() + 30
    while [n for n in os.listdir(srv.datadir) if n.startswith("binlog-large")]:
        assert time.monotonic() < end, "the file of a large transaction is left"
        time.sleep(0.1)


def test_purged_files_refuse_a_replica(srv):
    src = begin(srv)
    src.execute("FLUSH BINARY LOGS")
    src.execute("PURGE BINARY LOGS TO 'binlog.000002'")
    with Follower(srv) as f:
        s = replica.wait_stopped(f.cur)
        assert s["Last_IO_Errno"] == 1236 and "purged" in s["Last_IO_Error"], s


def load(srv, ended, counts):
    """Transactions and DDL until `ended` is set, over kills of the server. counts[0]: the last
    transaction that was acknowledged; counts[1]: the last one that was sent."""
    rnd = random.Random(3)
    n, c = 0, None
    while not ended.is_set():
        try:
            if c is None:
                c = srv.connect(database="rep").cursor()
                c.execute("SELECT COALESCE(MAX(n), 0) FROM log")
                n = c.fetchone()[0]
            n += 1
            counts[1] = n
            c.execute("BEGIN")
            c.execute("INSERT INTO log VALUES (%s)", (n,))
            for _ in range(rnd.randrange(1, 20)):
                c.execute("INSERT INTO t (n, v) VALUES (%s, %s)", (rnd.randrange(1000), "v" * rnd.randrange(50)))
            c.execute("UPDATE t SET n = n + 1 WHERE n = %s", (rnd.randrange(1000),))
            c.execute("DELETE FROM t WHERE n = %s", (rnd.randrange(1000),))
            c.execute("COMMIT")
            counts[0] = n
            if n % 40 == 0:
                c.execute(f"ALTER TABLE t ADD COLUMN c{n} INT DEFAULT {n}")
            if n % 40 == 20:
                c.execute(f"CREATE TABLE IF NOT EXISTS x{n} (id INT PRIMARY KEY)")
        except (pymysql.err.Error, OSError):
            c = None
            time.sleep(0.05)


def kill_rounds(srv, src_of, cur_of, rounds):
    src = src_of()
    src.execute("CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, n INT, v VARCHAR(50), KEY (n))")
    src.execute("CREATE TABLE log (n INT PRIMARY KEY)")
    ended, counts = threading.Event(), [0, 0]
    thread = threading.Thread(target=load, args=(srv, ended, counts))
    thread.start()
    try:
        rnd = random.Random(4)
        for _ in range(rounds):
            time.sleep(rnd.uniform(0.2, 0.9))
            srv.kill()
            srv.start()
    finally:
        time.sleep(0.5)
        ended.set()
        thread.join()
    src, cur = srv.connect().cursor(), cur_of()
    caught_up(src, cur, 120)
    replica.compare(src, cur, "rep")
    cur.execute("SELECT COUNT(*), MAX(n) FROM rep.log")
    count, last = cur.fetchone()
    assert count == last and 0 < counts[0] <= last <= counts[1], (count, last, counts)
    src.execute("SELECT @@server_uuid")
    uuid = src.fetchone()[0]
    assert executed(src).startswith(f"{uuid}:1-") and "," not in executed(src), executed(src)


def test_kill_9_of_the_source_loses_and_repeats_nothing(srv):
    src = begin(srv)
    with Follower(srv) as f:
        kill_rounds(srv, lambda: src, lambda: f.cur, int(os.environ.get("ROUNDS", "6")))


def change_checksums(src, cur):
    """The replica behind `cur` stays connected while files with and without checksums begin."""
    src.execute("CREATE TABLE c (id INT PRIMARY KEY)")
    for n, checksum in enumerate(("NONE", "NONE", "CRC32", "NONE", "CRC32")):
        src.execute(f"SET GLOBAL binlog_checksum = {checksum}")
        src.execute(f"INSERT INTO c VALUES ({2 * n})")
        src.execute("FLUSH BINARY LOGS")
        src.execute(f"INSERT INTO c VALUES ({2 * n + 1})")
        caught_up(src, cur)
    replica.compare(src, cur, "rep")


def test_replica_stays_connected_over_checksums(srv):
    src = begin(srv)
    with Follower(srv) as f:
        change_checksums(src, f.cur)


@skipped
def test_mysql_stays_connected_over_checksums(srv):
    src, cur = begin(srv), mysql().cursor()
    follow(srv, cur, True)
    change_checksums(src, cur)
    cur.execute("STOP REPLICA")


@skipped
def test_mysql_follows(srv):
    src, cur = begin(srv), mysql().cursor()
    follow(srv, cur, True)
    fill(src)
    fill_types(src)
    caught_up(src, cur)
    for schema in ("rep", "rep2"):
        replica.compare(src, cur, schema)
    cur.execute("STOP REPLICA")
    src.execute("SET GLOBAL binlog_checksum = NONE, GLOBAL binlog_row_metadata = FULL")
    src.execute("INSERT INTO t (v) VALUES ('without checksum')")
    cur.execute("START REPLICA")
    src.execute("FLUSH BINARY LOGS")
    src.execute("INSERT INTO t (v) VALUES ('next file')")
    src.execute("SET GLOBAL binlog_checksum = CRC32, GLOBAL binlog_row_metadata = DEFAULT")
    src.execute("INSERT INTO t (v) VALUES ('with checksum')")
    caught_up(src, cur)
    replica.compare(src, cur, "rep")
    cur.execute("STOP REPLICA")


@skipped
def test_mysql_follows_over_kills_of_the_source(srv):
    src, cur = begin(srv), mysql().cursor()
    follow(srv, cur, True)
    try:
        kill_rounds(srv, lambda: src, lambda: cur, int(os.environ.get("ROUNDS", "6")))
    finally:
        cur.execute("STOP REPLICA")


def test_options_that_the_log_cannot_be_written_with_are_refused(srv):
    for option, value in (("binlog_row_value_options", "PARTIAL_JSON"), ("binlog_format", "STATEMENT"), ("binlog_transaction_compression", "ON"),
                          ("gtid_mode", "ON_PERMISSIVE")):
        refused = server.Server({**OPTIONS, option: value})
        try:
            refused.start_refused()
            assert f"{option} = {value} is not supported with log_bin = ON" in refused.tail(), refused.tail()
        finally:
            refused.__exit__(None, None, None)


def test_cascaded_rows_are_before_their_parent(srv):
    src = begin(srv)
    src.execute("CREATE TABLE p (id INT PRIMARY KEY)")
    src.execute("CREATE TABLE k (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE ON UPDATE CASCADE)")
    src.execute("CREATE TABLE self (id INT PRIMARY KEY, up INT, FOREIGN KEY (up) REFERENCES self (id) ON DELETE CASCADE)")
    src.execute("INSERT INTO p VALUES (1), (2), (3)")
    src.execute("INSERT INTO k VALUES (10, 1), (20, 2)")
    src.execute("INSERT INTO self VALUES (1, NULL), (2, 1), (3, 2)")
    # As MySQL 9.7 writes them.
    expected = {
        "DELETE FROM p WHERE id = 1": ["Delete_rows rep.k", "Delete_rows rep.p"],
        "UPDATE p SET id = 12 WHERE id = 2": ["Update_rows rep.k", "Update_rows rep.p"],
        "DELETE IGNORE FROM p WHERE id = 3": ["Delete_rows rep.p"],
        "DELETE FROM self WHERE id = 1": ["Delete_rows rep.self"],
    }
    with Follower(srv) as f:
        for sql, events in expected.items():
            src.execute("SHOW BINARY LOG STATUS")
            file, position = src.fetchone()[:2]
            src.execute(sql)
            src.execute(f"SHOW BINLOG EVENTS IN '{file}' FROM {position}")
            tables, found = {}, []
            for _, _, kind, _, _, info in src.fetchall():
                words = info.split()
                if kind == "Table_map":
                    tables[words[1]] = words[2].strip("()")
                elif kind.endswith("_rows"):
                    found.append(f"{kind} {tables[words[1]]}")
            assert found == events, (sql, found)
        caught_up(src, f.cur)
        replica.compare(src, f.cur, "rep")


def updated_databases(settings):
    """The databases that the settings of a QUERY event list."""
    sizes = {0: 4, 1: 8, 3: 4, 4: 6, 7: 2, 8: 2, 13: 3, 16: 1, 17: 8, 18: 2, 19: 1, 20: 1}
    at = 0
    while at < len(settings):
        kind = settings[at]
        if kind == 12:
            return {name.decode() for name in settings[at + 2:].split(b"\0")[:settings[at + 1]]}
        # A text has its length before it.
        at += 1 + (sizes[kind] if kind in sizes else 1 + settings[at + 1])
    return set()


def test_statements_name_the_databases_that_they_change(srv):
    src = begin(srv)
    src.execute("CREATE TABLE t (id INT)")
    src.execute("SHOW BINARY LOG STATUS")
    file, start = src.fetchone()[:2]
    # The current database of each event, whether it needs none, and the databases that change. As
    # MySQL 9.7 writes them, but for their order.
    expected = {
        "CREATE DATABASE rep2": ("rep2", True, {"rep2"}),
        "RENAME TABLE t TO rep2.u": ("rep", False, {"rep", "rep2"}),
        "CREATE TABLE rep2.w (id INT)": ("rep", False, {"rep2"}),
        "CREATE VIEW v AS SELECT * FROM rep2.u": ("rep", False, {"rep"}),
        "ALTER DATABASE rep2 CHARACTER SET latin1": ("rep2", True, {"rep2"}),
        "DROP DATABASE rep2": ("rep2", True, {"rep2"}),
    }
    for sql in expected:
        src.execute(sql)
    src.execute("FLUSH BINARY LOGS")
    with open(os.path.join(srv.datadir, file), "rb") as log:
        data = log.read()
    found = {}
    for event in binlog_source.events(data[:4] + data[start:]):
        if event[4] != 2:
            continue
        flags, (database, size) = event[17], (event[27], event[30] + 256 * event[31])
        names, text = updated_databases(event[32:32 + size]), event[32 + size:-4]
        found[text[database + 1:].decode()] = (text[:database].decode(), flags & 8 != 0, names)
    assert found == expected, found


# Statements about accounts, and their texts in the binary log without what follows AS; `None`: as
# they are.
ACCOUNTS = {
    "CREATE USER repa IDENTIFIED BY 'secret'": "CREATE USER 'repa'@'%' IDENTIFIED WITH 'caching_sha2_password' AS",
    "CREATE USER IF NOT EXISTS repa IDENTIFIED BY 'secret', repb@localhost IDENTIFIED BY 'secret' ACCOUNT LOCK COMMENT 'a''b'":
        "CREATE USER IF NOT EXISTS 'repb'@'localhost' IDENTIFIED WITH 'caching_sha2_password' AS ACCOUNT LOCK COMMENT 'a''b'",
    "CREATE USER repc": "CREATE USER 'repc'@'%' IDENTIFIED WITH 'caching_sha2_password'",
    "ALTER USER repa IDENTIFIED BY 'secret2' RETAIN CURRENT PASSWORD":
        "ALTER USER 'repa'@'%' IDENTIFIED WITH 'caching_sha2_password' AS RETAIN CURRENT PASSWORD",
    "ALTER USER repa DISCARD OLD PASSWORD": "ALTER USER 'repa'@'%' DISCARD OLD PASSWORD",
    "SET PASSWORD FOR repa = 'secret3'": "ALTER USER 'repa'@'%' IDENTIFIED WITH 'caching_sha2_password' AS",
    "ALTER USER repb@localhost ACCOUNT UNLOCK ATTRIBUTE '{\"a\": 1}'":
        "ALTER USER 'repb'@'localhost' ACCOUNT UNLOCK ATTRIBUTE '{\"a\": 1}'",
    "GRANT SELECT ON rep.* TO repa": None,
    "CREATE ROLE repr": None,
    "GRANT repr TO repa": None,
    "SET DEFAULT ROLE repr TO repa": None,
    "REVOKE repr FROM repa": None,
    "RENAME USER repc TO repd": None,
    "DROP USER repd": None,
    "GRANT UPDATE ON rep.* TO CURRENT_USER()": "GRANT UPDATE ON rep.* TO 'root'@'localhost'",
    "DROP ROLE repr": None,
}


def check_accounts(srv, src, cur, connect):
    """Statements about accounts arrive at the replica behind `cur`. `connect` logs in there."""
    src.execute("CREATE TABLE t (id INT)")
    src.execute("SHOW BINARY LOG STATUS")
    file, start = src.fetchone()[:2]
    for sql in ACCOUNTS:
        src.execute(sql)
    src.execute("DROP USER IF EXISTS repx")
    src.execute(f"SHOW BINLOG EVENTS IN '{file}' FROM {start}")
    found = [re.sub(r"(use `rep`; | /\* xid.*)", "", e[5]) for e in src.fetchall() if e[2] == "Query"]
    found = [re.sub(r" AS ('[^']*'|0x[0-9A-F]*)", " AS", text) for text in found]
    assert found == [text or sql for sql, text in ACCOUNTS.items()], found
    with open(os.path.join(srv.datadir, file), "rb") as log:
        assert b"secret" not in log.read()
    caught_up(src, cur)
    connect("repa", "secret3").close()
    try:
        connect("repa", "secret2").close()
        raise AssertionError("an old password")
    except pymysql.err.OperationalError:
        pass
    for account in ("repa", "repb@localhost"):
        shown = []
        for c in (src, cur):
            c.execute(f"SHOW GRANTS FOR {account}")
            grants = sorted(c.fetchall())
            shown.append(grants)
        assert shown[0] == shown[1], shown
    src.execute("DROP USER repa, repb@localhost")
    caught_up(src, cur)


def test_accounts_follow(srv):
    src = begin(srv)
    with Follower(srv) as f:
        check_accounts(srv, src, f.cur, lambda user, password: f.srv.connect(user=user, password=password))


@skipped
def test_accounts_follow_on_mysql(srv):
    src, cur = begin(srv), mysql().cursor()
    follow(srv, cur, True)
    # This server has no such account.
    skipped_sql = "GRANT UPDATE ON rep.* TO CURRENT_USER()"
    kept = ACCOUNTS.pop(skipped_sql)
    try:
        check_accounts(srv, src, cur, lambda user, password: pymysql.connect(
            host="127.0.0.1", port=int(PORT), user=user, password=password, ssl={"check_hostname": False}))
    finally:
        ACCOUNTS[skipped_sql] = kept
        cur.execute("STOP REPLICA")


def test_dump_may_end_the_file_name_with_a_zero(srv):
    src = begin(srv)
    src.execute("SHOW BINARY LOG STATUS")
    file = src.fetchone()[0]
    conn = srv.connect()
    conn.cursor().execute("SET @source_binlog_checksum = @@global.binlog_checksum")
    # COM_BINLOG_DUMP that does not wait at the end.
    conn._execute_command(0x12, struct.pack("<IHI", 4, 1, 99) + file.encode() + b"\0")
    first = conn._read_packet()._data
    assert first[0] == 0 and first[5] == 4, first[:20]
    conn.close()
