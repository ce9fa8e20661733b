"""A replica of a running MariaDB, `nfold follow` and `nfold verify` beside it. The tests start a
mariadbd of their own; where none is installed, they say that they are skipped."""

import os
import random
import subprocess
import threading
import time

import mariadb
import replica
import server
from test_follow import Follower

OPTIONS = {"server_id": 77, "innodb_buffer_pool_size": "64M"}
ROUNDS = int(os.environ.get("ROUNDS", "4"))


def skipped(test):
    """The test, or a message without a MariaDB."""
    def run(srv):
        if mariadb.program("mariadbd") is None or mariadb.program("mariadb-install-db") is None:
            print(f"skipped {test.__name__}: no mariadbd is installed")
            return
        test(srv)
    run.__name__ = test.__name__
    return run


def url(port, user="sb", password="sb"):
    return f"mysql://{user}:{password}@127.0.0.1:{port}/"


def follower(source, databases="rep,rep2"):
    """`nfold follow` of a MariaDB."""
    f = Follower(databases)
    f.source_url = url(source.port)
    return f


def verify(source, f, databases="rep,rep2"):
    done = subprocess.run([server.binary(), "verify", url(source.port), url(f.port, "root", ""), "--databases", databases,
                           "--chunk-rows", "2000"], capture_output=True, text=True, timeout=300)
    return done.returncode, done.stdout + done.stderr


def position(src):
    src.execute("SELECT @@global.gtid_binlog_pos")
    return src.fetchone()[0]


def caught_up(src, cur, timeout=60):
    """Waits until the replica has all of the source's transactions."""
    wanted = set(position(src).split(","))
    return replica.wait(cur, lambda s: wanted <= set(s["Executed_Gtid_Set"].split(",")), timeout)


def begin(srv, source):
    """A replica that follows the source from now on; returns both connections' cursors."""
    src = source.connect().cursor()
    src.execute("CREATE DATABASE rep")
    src.execute("USE rep")
    src.execute("SHOW MASTER STATUS")
    file, at = src.fetchone()[:2]
    cur = srv.connect().cursor()
    cur.execute("STOP REPLICA")
    cur.execute("DROP DATABASE IF EXISTS rep")
    cur.execute("CREATE DATABASE rep COLLATE utf8mb4_general_ci")
    # The definer of the views.
    cur.execute("CREATE USER IF NOT EXISTS sb@'%'")
    cur.execute("GRANT ALL ON *.* TO sb@'%'")
    cur.execute("RESET REPLICA ALL")
    replica.change(cur, source.port, f"SOURCE_LOG_FILE = '{file}', SOURCE_LOG_POS = {at}")
    cur.execute("START REPLICA")
    return src, cur


def fill(src, rows):
    """Tables with keys of several kinds, and `rows` rows in one of them."""
    src.execute("CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, n INT, v VARCHAR(200), KEY (n)) PAGE_COMPRESSED = 1")
    src.execute("INSERT INTO t (n, v) SELECT seq %% 1000, REPEAT(CHAR(97 + seq %% 26), seq %% 150) FROM seq_1_to_%s", (rows,))
    src.execute("CREATE TABLE log (n INT PRIMARY KEY)")
    src.execute("CREATE TABLE pair (a VARCHAR(20), b BIGINT UNSIGNED, c TEXT DEFAULT 'none', PRIMARY KEY (a, b))")
    src.execute("INSERT INTO pair SELECT v, id, CONCAT(\"'\\\\\", v) FROM t WHERE id < 500 AND LENGTH(v) <= 20")
    src.execute("CREATE TABLE nokey (a INT, b VARCHAR(9))")
    src.execute("INSERT INTO nokey VALUES (1, 'a'), (1, 'a'), (NULL, NULL)")
    src.execute("CREATE TABLE rep2.child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES rep.t (id) ON DELETE CASCADE)")
    src.execute("INSERT INTO rep2.child SELECT id, id FROM t WHERE id % 100 = 0")
    src.execute("CREATE VIEW z_view AS SELECT id, n FROM t")
    src.execute("CREATE VIEW a_view AS SELECT n FROM z_view")
    src.execute("""CREATE TABLE types (id INT PRIMARY KEY, f FLOAT, d DOUBLE, n DECIMAL(30,10), b BIT(9), y YEAR, da DATE,
        t3 TIME(3), dt DATETIME(6), ts TIMESTAMP(3) NULL, c CHAR(5), l VARCHAR(10) CHARACTER SET latin1,
        u CHAR(5) CHARACTER SET ucs2, s VARCHAR(9) CHARACTER SET sjis, bn BINARY(6), bl BLOB, e ENUM('a','b'), st SET('x','y'),
        j JSON, g INT AS (id + 1), h INT AS (id + 2) PERSISTENT, un CHAR(36) DEFAULT uuid(), KEY (n) IGNORED)""")
    src.execute("SET sql_mode = '', time_zone = '+00:00'")
    src.execute("INSERT INTO types (id) VALUES (-1)")
    src.execute("INSERT INTO types (id, f, d, n, b, y, da, t3, dt, ts, c, l, u, s, bn, bl, e, st, j) VALUES "
                "(0, 0.1, 0.1, 12345678901234567890.0123456789, 257, 0, '0000-00-00', '-838:59:59', '9999-12-31 23:59:59.999999', "
                "'1970-01-01 00:00:01.5', 'a ', 'é', 'ü', '表', x'00275c0a0d1a', x'00ff275c', '', 'x,y', "
                "'{\"a\": [1, 2.5, null],  \"b\": \"é\\'\"}'), "
                "(1, 16777217, 1e300, -0.0000000001, 0, 2155, '2024-02-29', '00:00:00.001', '0000-00-00', NULL, '', '', '', '', '', "
                "'', 'b', '', '18446744073709551615'), "
                "(2, 3.4028234e38, -4.9e-324, 0, 511, 1901, '1000-01-01', '12:00:00', '2001-09-09 01:46:40.123456', "
                "'2038-01-19 03:14:07', 'ab  ', 'ab  ', 'x', 'x', 'x', 'x', 'a', 'y', '\"x\"')")
    src.execute("SET sql_mode = DEFAULT")


class Load:
    """Transactions and DDL on the source, until the end of the `with` block. It connects again
    after a lost connection; a transaction whose COMMIT was not answered may be there or not."""

    def __init__(self, source, ddl=True):
        self.source, self.ended, self.transactions, self.ddl = source, threading.Event(), 0, ddl
        self.thread = threading.Thread(target=self.run)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.end()

    def end(self):
        self.ended.set()
        self.thread.join()

    def run(self):
        rnd, c = random.Random(5), None
        while not self.ended.is_set():
            try:
                c = c or self.source.connect().cursor()
                self.transaction(rnd, c)
            except Exception as e:
                if e.args[0] not in (2003, 2006, 2013, 0, 1053):
                    raise
                c = None
                time.sleep(0.1)

    def transaction(self, rnd, c):
        self.transactions += 1
        n = self.transactions
        c.execute("BEGIN")
        c.execute("INSERT INTO rep.log VALUES (%s)", (n,))
        c.execute("INSERT INTO rep.t (n, v) VALUES (%s, 'new'), (%s, NULL)", (rnd.randrange(1000), rnd.randrange(1000)))
        first = rnd.randrange(5000)
        c.execute("UPDATE rep.t SET n = n + 1 WHERE id BETWEEN %s AND %s", (first, first + 5))
        c.execute("DELETE FROM rep.t WHERE id = %s", (rnd.randrange(5000),))
        c.execute("COMMIT")
        time.sleep(0.002)
        if not self.ddl:
            return
        if n % 40 == 0:
            c.execute(f"ALTER TABLE rep.t ADD COLUMN IF NOT EXISTS c{n} INT DEFAULT {n}")
        if n % 40 == 10:
            c.execute(f"CREATE OR REPLACE TABLE rep.x{n % 3} (id INT PRIMARY KEY, v CHAR(36) DEFAULT uuid())")
            c.execute(f"INSERT INTO rep.x{n % 3} (id) VALUES ({n})")
        if n % 40 == 20:
            c.execute("CREATE OR REPLACE TABLE rep.copied AS SELECT id, v FROM rep.t WHERE id < 50")


@skipped
def test_rows_and_statements_follow_a_mariadb(srv):
    with mariadb.MariaDb() as source:
        src, cur = begin(srv, source)
        src.execute("CREATE DATABASE rep2")
        src.execute("GRANT SELECT ON rep.* TO reader@'%' IDENTIFIED BY 'secret'")
        fill(src, 1000)
        src.execute("SET GLOBAL log_bin_compress = ON, GLOBAL log_bin_compress_min_len = 10")
        src.execute("UPDATE t SET v = REPEAT('z', 199) WHERE id < 300")
        src.execute("DELETE FROM t WHERE id > 900")
        src.execute("SET GLOBAL log_bin_compress = OFF, GLOBAL binlog_row_metadata = FULL")
        src.execute("SET binlog_row_image = MINIMAL")
        src.execute("UPDATE types SET f = 7, j = '[]' WHERE id = 1")
        src.execute("SET gtid_domain_id = 9, binlog_row_image = FULL")
        src.execute("INSERT INTO nokey VALUES (7, 'x')")
        src.execute("CREATE TABLE collated (a VARCHAR(9) PRIMARY KEY) COLLATE utf8mb4_uca1400_swedish_ai_ci")
        src.execute("INSERT INTO collated VALUES ('å')")
        src.execute("SET binlog_alter_two_phase = ON")
        src.execute("ALTER TABLE nokey ADD COLUMN c INT DEFAULT 5, DROP COLUMN IF EXISTS z")
        try:
            src.execute("ALTER TABLE nokey ADD PRIMARY KEY (b)")
            raise AssertionError("NULL in a primary key")
        except Exception as e:
            assert e.args[0] in (1265, 1062, 1138), e
        src.execute("SET binlog_alter_two_phase = OFF")
        src.execute("RENAME TABLE IF EXISTS missing TO other, nokey TO renamed")
        caught_up(src, cur)
        for schema in ("rep", "rep2"):
            replica.compare(src, cur, schema)
        cur.execute("SELECT WAIT_FOR_EXECUTED_GTID_SET(%s, 5)", (position(src),))
        assert cur.fetchone() == (0,)
        s = replica.status(cur)
        assert s["Executed_Gtid_Set"].startswith("3-100-") and ",9-100-" in s["Executed_Gtid_Set"], s
        reader = srv.connect(user="reader", password="secret").cursor()
        reader.execute("SELECT COUNT(*) FROM rep.t")
        # It goes on by GTIDs, also over files that the source has begun meanwhile.
        cur.execute("STOP REPLICA")
        cur.execute("CHANGE MASTER TO MASTER_USE_GTID = slave_pos")
        src.execute("FLUSH BINARY LOGS")
        src.execute("INSERT INTO renamed VALUES (8, 'y', 1)")
        cur.execute("START REPLICA")
        caught_up(src, cur)
        replica.compare(src, cur, "rep")
        # A position that the source does not have is an error, not a gap.
        cur.execute("STOP REPLICA")
        src.execute("RESET MASTER")
        src.execute("SET gtid_domain_id = 3")
        src.execute("INSERT INTO renamed VALUES (9, 'y', 1)")
        cur.execute("START REPLICA")
        s = replica.wait_stopped(cur)
        assert s["Last_IO_Errno"] == 1236 and s["Last_IO_Error"], s


@skipped
def test_kill_9_of_the_replica_and_of_the_mariadb(_):
    with mariadb.MariaDb() as source, server.Server(OPTIONS) as srv:
        src, cur = begin(srv, source)
        src.execute("CREATE DATABASE rep2")
        fill(src, 6000)
        cur.execute("STOP REPLICA")
        cur.execute("CHANGE REPLICATION SOURCE TO SOURCE_AUTO_POSITION = 1")
        cur.execute("START REPLICA")
        rnd = random.Random(4)
        with Load(source) as load:
            for round in range(2 * ROUNDS):
                time.sleep(rnd.uniform(0.2, 0.8))
                if round % 3 == 2:
                    source.kill()
                    source.start()
                else:
                    srv.kill()
                    srv.start()
            load.end()
            assert load.transactions > 20, load.transactions
        src, cur = source.connect().cursor(), srv.connect().cursor()
        caught_up(src, cur, 120)
        for schema in ("rep", "rep2"):
            replica.compare(src, cur, schema)


@skipped
def test_follow_copies_a_mariadb_under_load(_):
    with mariadb.MariaDb() as source:
        src = source.connect().cursor()
        for schema in ("rep", "rep2"):
            src.execute(f"CREATE DATABASE {schema}")
        src.execute("USE rep")
        src.execute("CREATE USER reader@'%' IDENTIFIED BY 'secret'")
        src.execute("GRANT SELECT ON rep.* TO reader@'%'")
        fill(src, 20000)
        # A DDL statement would end the copy, and a table could be gone while it is compared.
        with Load(source, ddl=False) as load, follower(source) as f:
            said = f.said()
            assert "rep.nokey has no primary key" in said, said
            code, out = verify(source, f)
            assert code == 0 and "equal" in out, (code, out)
            load.ddl = True
            f.stop()
            f.log.close()
            f.start()
            load.end()
            cur = f.connect().cursor()
            caught_up(src, cur)
            for schema in ("rep", "rep2"):
                replica.compare(src, cur, schema)
            code, out = verify(source, f)
            assert code == 0, (code, out)
            cur.execute("SELECT COUNT(*) FROM rep.a_view")
            reader = f.connect(user="reader", password="secret").cursor()
            reader.execute("SELECT COUNT(*) FROM rep.t")
            cur.execute("SET GLOBAL super_read_only = OFF, GLOBAL read_only = OFF")
            cur.execute("UPDATE rep.types SET j = '[1]' WHERE id = 0")
            code, out = verify(source, f)
            assert code == 1 and "rep.types: id = 0: the row differs" in out, (code, out)


@skipped
def test_mariadb_that_cannot_be_copied_is_refused(_):
    with mariadb.MariaDb({"binlog-format": "MIXED"}) as source:
        src = source.connect().cursor()
        src.execute("CREATE DATABASE rep")
        for sql in ("SEQUENCE rep.s", "TABLE rep.versioned (id INT PRIMARY KEY) WITH SYSTEM VERSIONING",
                    "TABLE rep.old (id INT PRIMARY KEY) ENGINE = Aria"):
            src.execute(f"CREATE {sql}")
        with follower_refused(source, "rep") as said:
            for words in ("binlog_format is not ROW", "rep.s (sequence)", "rep.versioned (system versioned)",
                          "rep.old (Aria) has no transactions"):
                assert words in said, (words, said)
        src.execute("SET GLOBAL binlog_format = ROW")
        src.execute("DROP DATABASE rep")
        src.execute("CREATE DATABASE rep")
        src.execute("CREATE TABLE rep.net (id INT PRIMARY KEY, a INET6)")
        with follower_refused(source, "rep") as said:
            assert "rep.net cannot be created: error 1235" in said and "INET6" in said, said


class follower_refused:
    """`nfold follow` that ends with exit code 1; the value is its log."""

    def __init__(self, source, databases):
        self.follower = follower(source, databases)

    def __enter__(self):
        self.follower.start_refused()
        assert self.follower.process.returncode == 1, self.follower.process.returncode
        return self.follower.tail(1 << 16)

    def __exit__(self, *exception):
        self.follower.__exit__(*exception)
