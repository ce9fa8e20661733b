"""A replica of a real MySQL: NFOLD_REPLICATION_SOURCE=PORT, the port of a MySQL 9.7 with log_bin
and gtid_mode=ON, user sb, password sb."""

import os
import random
import threading
import time

import replica

PORT = os.environ.get("NFOLD_REPLICATION_SOURCE")
OPTIONS = {"server_id": 77, "innodb_buffer_pool_size": "64M", "super_read_only": "ON"}


def source(port=None):
    import pymysql
    return pymysql.connect(host="127.0.0.1", port=int(port or PORT), user="sb", password="sb", autocommit=True,
                           charset="utf8mb4")


def skipped(test):
    """The test, or a message without a source."""
    def run(srv):
        if PORT is None:
            print(f"skipped {test.__name__}: NFOLD_REPLICATION_SOURCE names no MySQL")
            return
        test(srv)
    run.__name__ = test.__name__
    return run


def begin(srv):
    """A replica that follows the source from now on; returns both connections' cursors."""
    src = source().cursor()
    for schema in ("rep", "rep2"):
        src.execute(f"DROP DATABASE IF EXISTS {schema}")
    src.execute("CREATE DATABASE rep")
    src.execute("USE rep")
    src.execute("SHOW BINARY LOG STATUS")
    file, position, _, _, gtids = src.fetchone()
    cur = srv.connect().cursor()
    cur.execute("STOP REPLICA")
    cur.execute("SET GLOBAL super_read_only = OFF, GLOBAL read_only = OFF")
    for schema in ("rep", "rep2"):
        cur.execute(f"DROP DATABASE IF EXISTS {schema}")
    cur.execute("CREATE DATABASE rep")
    cur.execute("SET GLOBAL super_read_only = ON")
    cur.execute("RESET REPLICA ALL")
    replica.change(cur, PORT, f"SOURCE_LOG_FILE = '{file}', SOURCE_LOG_POS = {position}")
    cur.execute("START REPLICA")
    return src, cur


def caught_up(src, cur, timeout=60):
    src.execute("SHOW BINARY LOG STATUS")
    file, position = src.fetchone()[:2]
    return replica.wait(cur, lambda s: (s["Relay_Source_Log_File"], s["Exec_Source_Log_Pos"]) == (file, position),
                        timeout)


@skipped
def test_rows_follow_the_source(srv):
    src, cur = begin(srv)
    src.execute("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20), KEY (v))")
    src.execute("INSERT INTO t VALUES (1, 'one'), (2, 'two'), (3, NULL)")
    src.execute("UPDATE t SET v = 'zwei' WHERE id = 2")
    src.execute("UPDATE t SET id = 9 WHERE id = 3")
    src.execute("DELETE FROM t WHERE id = 1")
    caught_up(src, cur)
    replica.compare(src, cur, "rep")
    cur.execute("SELECT id, v FROM rep.t ORDER BY id")
    assert cur.fetchall() == ((2, "zwei"), (9, None))


@skipped
def test_year_before_numbers_keeps_their_signs(srv):
    src, cur = begin(srv)
    src.execute("CREATE TABLE t (y YEAR, id INT PRIMARY KEY, u INT UNSIGNED, z YEAR, s BIGINT)")
    src.execute("INSERT INTO t VALUES (2024, -1, 4294967295, 1901, -5), (NULL, 2, NULL, NULL, NULL)")
    caught_up(src, cur)
    replica.compare(src, cur, "rep")


@skipped
def test_restart_goes_on_by_gtid(srv):
    src, cur = begin(srv)
    src.execute("CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(20))")
    src.execute("INSERT INTO t (v) VALUES ('a'), ('b')")
    caught_up(src, cur)
    cur.execute("STOP REPLICA")
    src.execute("SELECT @@global.gtid_executed")
    before = replica.status(cur)["Executed_Gtid_Set"]
    assert before, "GTIDs are stored"
    src.execute("INSERT INTO t (v) VALUES ('c')")
    srv.stop()
    srv.start()
    cur = srv.connect().cursor()
    caught_up(src, cur)
    replica.compare(src, cur, "rep")
    after = replica.status(cur)["Executed_Gtid_Set"]
    assert after != before
    # The next automatic value is behind those of the source.
    cur.execute("STOP REPLICA")
    cur.execute("SET GLOBAL super_read_only = OFF")
    cur.execute("INSERT INTO rep.t (v) VALUES ('own')")
    assert cur.lastrowid == 4, cur.lastrowid


@skipped
def test_dump_with_gtid_purged_seeds_it(srv):
    src, cur = begin(srv)
    cur.execute("STOP REPLICA")
    cur.execute("SET GLOBAL super_read_only = OFF")
    src.execute("CREATE TABLE t (id INT PRIMARY KEY)")
    src.execute("INSERT INTO t VALUES (1)")
    src.execute("SELECT @@global.gtid_executed")
    gtids = src.fetchone()[0]
    cur.execute("CREATE TABLE rep.t (id INT PRIMARY KEY)")
    cur.execute("INSERT INTO rep.t VALUES (1)")
    cur.execute("SET GLOBAL gtid_purged = %s", (gtids,))
    cur.execute("SELECT @@global.gtid_executed, @@gtid_purged")
    assert cur.fetchone() == (gtids, gtids)
    for bad in ("x", "+" + gtids, "11111111-1111-1111-1111-111111111111:1"):
        try:
            cur.execute("SET GLOBAL gtid_purged = %s", (bad,))
            raise AssertionError(bad)
        except Exception as e:
            assert e.args[0] == (1231 if bad == "x" else 3546), e
    src.execute("INSERT INTO t VALUES (2)")
    replica.change(cur, PORT)
    cur.execute("START REPLICA")
    caught_up(src, cur)
    replica.compare(src, cur, "rep")


@skipped
def test_replica_refuses_writes_of_clients(srv):
    src, cur = begin(srv)
    src.execute("CREATE TABLE t (id INT PRIMARY KEY)")
    caught_up(src, cur)
    try:
        cur.execute("INSERT INTO rep.t VALUES (1)")
        raise AssertionError("a client could write")
    except Exception as e:
        assert e.args[0] == 1290, e


@skipped
def test_every_column_type_arrives(srv):
    src, cur = begin(srv)
    src.execute("""CREATE TABLE types (id INT PRIMARY KEY AUTO_INCREMENT, ti TINYINT, tu TINYINT UNSIGNED, si SMALLINT,
        su SMALLINT UNSIGNED, mi MEDIUMINT, mu MEDIUMINT UNSIGNED, i INT, iu INT UNSIGNED, bi BIGINT, bu BIGINT UNSIGNED,
        f FLOAT, d DOUBLE, n DECIMAL(30,10), n2 DECIMAL(65,30), n3 DECIMAL(9,0), n4 DECIMAL(5,5), b1 BIT(1), b9 BIT(9),
        b64 BIT(64), y YEAR, da DATE, t0 TIME, t1 TIME(1), t3 TIME(3), t6 TIME(6), dt0 DATETIME, dt2 DATETIME(2),
        dt4 DATETIME(4), dt6 DATETIME(6), ts0 TIMESTAMP NULL, ts3 TIMESTAMP(3) NULL, ts6 TIMESTAMP(6) NULL, c CHAR(5),
        cl CHAR(255), vc VARCHAR(10), vl VARCHAR(300), l1 VARCHAR(10) CHARACTER SET latin1, u2 CHAR(5) CHARACTER SET ucs2,
        bn BINARY(6), vb VARBINARY(300), tt TINYTEXT, tx TEXT, mt MEDIUMTEXT, lt LONGTEXT, tb TINYBLOB, bl BLOB,
        mb MEDIUMBLOB, lb LONGBLOB, e ENUM('a','b','c'), s SET('x','y','z'), s9 SET('a','b','c','d','e','f','g','h','i'),
        j JSON)""")
    src.execute("SET time_zone = '+00:00', sql_mode = ''")
    src.execute("INSERT INTO types () VALUES ()")
    rnd = random.Random(7)
    src.execute("SELECT column_name, data_type FROM information_schema.columns WHERE table_schema = 'rep' "
                "AND table_name = 'types' AND column_name <> 'id' ORDER BY ordinal_position")
    columns = src.fetchall()
    for _ in range(150):
        values = [replica.random_value(rnd, kind) for _, kind in columns]
        src.execute(f"INSERT INTO types ({', '.join(c for c, _ in columns)}) "
                    f"VALUES ({', '.join(['%s'] * len(columns))})", values)
    for image in ("FULL", "MINIMAL", "NOBLOB"):
        src.execute(f"SET binlog_row_image = {image}")
        for _ in range(60):
            n, kind = rnd.choice(columns)
            src.execute(f"UPDATE types SET {n} = %s WHERE id %% 7 = %s", (replica.random_value(rnd, kind), rnd.randrange(7)))
        src.execute("DELETE FROM types WHERE id %% 11 = %s", (rnd.randrange(11),))
    src.execute("INSERT INTO types (ti) VALUES (3)")
    caught_up(src, cur)
    replica.compare(src, cur, "rep")


@skipped
def test_tables_without_keys_and_partial_json(srv):
    src, cur = begin(srv)
    src.execute("CREATE TABLE nokey (a INT, b VARCHAR(9), j JSON)")
    src.execute("CREATE TABLE uk (a INT NOT NULL, b VARCHAR(9) NOT NULL, j JSON, UNIQUE (a, b))")
    src.execute("SET binlog_row_value_options = PARTIAL_JSON")
    doc = '{"a": "' + "x" * 300 + '", "n": [1, 2, 3], "m": {"k": 1}}'
    src.execute("INSERT INTO nokey VALUES (1, 'a', %s), (1, 'a', %s), (2, NULL, '1'), (3, 'c', NULL)", (doc, doc))
    src.execute("INSERT INTO uk VALUES (1, 'a', %s), (1, 'b', %s), (2, 'Z', '1')", (doc, doc))
    for table in ("nokey", "uk"):
        src.execute(f"UPDATE {table} SET j = JSON_SET(j, '$.n[1]', 'two') WHERE a = 1")
        src.execute(f"UPDATE {table} SET j = JSON_REMOVE(j, '$.m.k') WHERE a = 1")
        src.execute(f"UPDATE {table} SET j = JSON_ARRAY_INSERT(j, '$.n[0]', 0) WHERE a = 1")
        src.execute(f"UPDATE {table} SET a = a + 1")
        src.execute(f"UPDATE {table} SET a = 9 WHERE a = 2 LIMIT 1")
        src.execute(f"DELETE FROM {table} WHERE a = 3")
    src.execute("SET binlog_transaction_compression = ON")
    src.execute("BEGIN")
    for n in range(300):
        src.execute("INSERT INTO uk VALUES (%s, 'z', '[1]')", (n + 100,))
    src.execute("UPDATE uk SET j = '[2]' WHERE a > 200")
    src.execute("COMMIT")
    caught_up(src, cur)
    replica.compare(src, cur, "rep")


@skipped
def test_ddl_runs_in_its_context(srv):
    src, cur = begin(srv)
    src.execute("SET sql_mode = 'ANSI_QUOTES', time_zone = '+05:00'")
    src.execute('CREATE TABLE "q" (id INT PRIMARY KEY, ts TIMESTAMP DEFAULT \'2024-01-01 00:00:00\')')
    src.execute("INSERT INTO q (id) VALUES (1)")
    src.execute("ALTER TABLE q ADD COLUMN ts2 TIMESTAMP DEFAULT '2024-06-01 12:00:00', ADD COLUMN z INT AS (id + 1) VIRTUAL")
    src.execute("SET sql_mode = DEFAULT, time_zone = DEFAULT")
    src.execute("INSERT INTO q (id) VALUES (2)")
    src.execute("CREATE DATABASE rep2 CHARACTER SET latin1")
    src.execute("CREATE TABLE rep2.a (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(10))")
    src.execute("INSERT INTO rep2.a (v) VALUES ('é')")
    src.execute("ALTER TABLE q ADD KEY (ts), RENAME TO q2")
    src.execute("SET foreign_key_checks = 0")
    src.execute("CREATE TABLE child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE)")
    src.execute("SET foreign_key_checks = 1")
    src.execute("CREATE TABLE parent (id INT PRIMARY KEY)")
    src.execute("INSERT INTO parent VALUES (1), (2)")
    src.execute("INSERT INTO child VALUES (1, 1), (2, 1), (3, 2)")
    src.execute("DELETE FROM parent WHERE id = 1")
    src.execute("CREATE TABLE gone (id INT)")
    src.execute("DROP TABLE gone")
    src.execute("DROP TABLE IF EXISTS never")
    src.execute("TRUNCATE TABLE child")
    src.execute("INSERT INTO child VALUES (7, 2)")
    src.execute("BEGIN")
    src.execute("INSERT INTO parent VALUES (50)")
    src.execute("SAVEPOINT a")
    src.execute("INSERT INTO parent VALUES (51)")
    src.execute("ROLLBACK TO a")
    src.execute("INSERT INTO parent VALUES (52)")
    src.execute("COMMIT")
    caught_up(src, cur)
    replica.compare(src, cur, "rep")
    replica.compare(src, cur, "rep2")


@skipped
def test_missing_and_existing_rows_stop_it(srv):
    src, cur = begin(srv)
    src.execute("CREATE TABLE t (id INT PRIMARY KEY, v INT)")
    src.execute("INSERT INTO t VALUES (1, 1), (2, 2)")
    caught_up(src, cur)
    cur.execute("SET GLOBAL super_read_only = OFF")
    cur.execute("DELETE FROM rep.t WHERE id = 1")
    src.execute("UPDATE t SET v = 5")
    s = replica.wait_stopped(cur)
    assert s["Last_SQL_Errno"] == 1032 and "id = 1" in s["Last_SQL_Error"] and s["Relay_Source_Log_File"] in s["Last_SQL_Error"], s
    cur.execute("INSERT INTO rep.t VALUES (1, 1), (3, 3)")
    cur.execute("START REPLICA")
    caught_up(src, cur)
    src.execute("INSERT INTO t VALUES (3, 3)")
    s = replica.wait_stopped(cur)
    assert s["Last_SQL_Errno"] == 1062 and "'3'" in s["Last_SQL_Error"], s
    cur.execute("DELETE FROM rep.t WHERE id = 3")
    cur.execute("ALTER TABLE rep.t MODIFY v BIGINT")
    cur.execute("START REPLICA")
    s = replica.wait_stopped(cur)
    assert s["Last_SQL_Errno"] == 1677, s
    cur.execute("ALTER TABLE rep.t MODIFY v INT")
    cur.execute("START REPLICA")
    caught_up(src, cur)
    src.execute("CREATE VIEW rep.w AS SELECT id FROM t")
    src.execute("SET SESSION binlog_format = STATEMENT")
    src.execute("INSERT INTO t VALUES (10, 10)")
    s = replica.wait_stopped(cur)
    assert "Query event" in s["Last_SQL_Error"], s
    cur.execute("SELECT COUNT(*) FROM rep.t WHERE id = 10")
    assert cur.fetchone() == (0,)
    src.execute("SET SESSION binlog_format = ROW")
    src.execute("DROP DATABASE rep")


@skipped
def test_kill_9_loses_and_repeats_nothing(srv):
    src, cur = begin(srv)
    src.execute("CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, n INT, v VARCHAR(50), KEY (n))")
    src.execute("CREATE TABLE log (n INT PRIMARY KEY)")
    ended = threading.Event()

    def load():
        rnd = random.Random(3)
        c = source().cursor()
        c.execute("USE rep")
        n = 0
        while not ended.is_set():
            n += 1
            c.execute("BEGIN")
            c.execute("INSERT INTO log VALUES (%s)", (n,))
            for _ in range(rnd.randrange(1, 20)):
                c.execute("INSERT INTO t (n, v) VALUES (%s, %s)", (rnd.randrange(1000), "v" * rnd.randrange(50)))
            c.execute("UPDATE t SET n = n + 1 WHERE n = %s", (rnd.randrange(1000),))
            c.execute("DELETE FROM t WHERE n = %s", (rnd.randrange(1000),))
            c.execute("COMMIT")
            if n % 40 == 0:
                c.execute(f"ALTER TABLE t ADD COLUMN c{n} INT DEFAULT {n}")
            if n % 40 == 20:
                c.execute(f"CREATE TABLE x{n} (id INT PRIMARY KEY)")
                c.execute(f"INSERT INTO x{n} VALUES ({n})")
            time.sleep(0.002)

    thread = threading.Thread(target=load)
    thread.start()
    try:
        rnd = random.Random(4)
        for _ in range(25):
            time.sleep(rnd.uniform(0.05, 0.6))
            srv.kill()
            srv.start()
    finally:
        ended.set()
        thread.join()
    cur = srv.connect().cursor()
    caught_up(src, cur, 120)
    replica.compare(src, cur, "rep")
    cur.execute("SELECT COUNT(*), MAX(n) FROM rep.log")
    count, last = cur.fetchone()
    assert count == last > 100, (count, last)
