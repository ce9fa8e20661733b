"""CHANGE REPLICATION FILTER leaves out what MySQL leaves out, and SOURCE_DELAY. The source is
another Nfold; what a MySQL 9.7 did as a replica is in `recorded/filters.json`."""

import json
import os
import time

import pymysql

import replica
import server
from test_source import OPTIONS, begin

RECORDED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "recorded", "filters.json")
DATABASES = ("fa", "fb", "fc", "fd")
LISTS = ("DO_DB", "IGNORE_DB", "DO_TABLE", "IGNORE_TABLE", "WILD_DO_TABLE", "WILD_IGNORE_TABLE", "REWRITE_DB")
SHOWN = ("Replicate_Do_DB", "Replicate_Ignore_DB", "Replicate_Do_Table", "Replicate_Ignore_Table",
         "Replicate_Wild_Do_Table", "Replicate_Wild_Ignore_Table", "Replicate_Rewrite_DB")
FILTERS = (
    "", "DO_DB = (fa)", "IGNORE_DB = (fa)", "DO_DB = (fa, `fb`)", "DO_TABLE = (fa.t)",
    "IGNORE_TABLE = (fa.t, fc.x1)", "DO_TABLE = (fc.x1)", "DO_TABLE = (fc.x2, fc.y1)", "DO_TABLE = (fc.y2)",
    "DO_TABLE = (fc.x1, fc.x2, fc.y1, fc.y2, fc.y2, fc.z)", "WILD_DO_TABLE = ('fa.%', 'fc.x_')",
    "WILD_DO_TABLE = ('fa.%', 'fb.%')", "WILD_DO_TABLE = ('FA.%', 'fc.%')", r"WILD_IGNORE_TABLE = ('f\_.t', 'fc._1')",
    "WILD_IGNORE_TABLE = ('fa.%', 'f_.x1', 'mysql.%')", "WILD_DO_TABLE = ('f%.t')",
    "DO_DB = (fa, fc), IGNORE_TABLE = (fa.t)", "DO_DB = (fa), IGNORE_DB = (fa, fb)",
    "DO_TABLE = (fa.t), IGNORE_TABLE = (fb.t)", "IGNORE_TABLE = (mysql.user)", "DO_TABLE = (mysql.db)",
    "REWRITE_DB = ((fa, fd))", "REWRITE_DB = ((fa, fd), (fb, fa)), DO_DB = (fd, fc)",
    "DO_DB = (fb), DO_DB = (fa, fb), REWRITE_DB = ((fb, fd), (fb, fc))",
)
WORK = """
CREATE DATABASE fa; CREATE DATABASE fb; CREATE DATABASE fc; CREATE USER fu0;
USE fa; CREATE TABLE t (id INT PRIMARY KEY); INSERT INTO t VALUES (1); CREATE USER fu1; GRANT SELECT ON *.* TO fu1;
USE fb; CREATE TABLE t (id INT PRIMARY KEY); INSERT INTO t VALUES (1); INSERT INTO fa.t VALUES (2);
CREATE TABLE fa.from_b (id INT PRIMARY KEY); INSERT INTO fa.from_b VALUES (1); CREATE USER fu2;
USE fc; CREATE TABLE x1 (id INT PRIMARY KEY); CREATE TABLE x2 (id INT PRIMARY KEY);
INSERT INTO x1 VALUES (1); INSERT INTO x2 VALUES (1); CREATE TABLE s AS SELECT 1 a; CREATE VIEW v AS SELECT 1 a;
BEGIN; INSERT INTO fa.t VALUES (5); INSERT INTO fb.t VALUES (5); INSERT INTO x1 VALUES (5); COMMIT;
DROP TABLE x1, x2; CREATE TABLE y1 (id INT PRIMARY KEY); RENAME TABLE y1 TO y2; CREATE TABLE y3 LIKE y2;
CREATE INDEX i ON y3 (id); TRUNCATE TABLE fa.t; INSERT INTO fa.t VALUES (9); ALTER DATABASE fa CHARACTER SET latin1;
ALTER TABLE y2 RENAME TO z; INSERT INTO z VALUES (7); USE fa; CREATE TABLE fb.from_a (id INT PRIMARY KEY);
INSERT INTO fb.from_a VALUES (1); CREATE DATABASE fe; DROP DATABASE fe
"""


def clear(cur):
    for name in DATABASES:
        cur.execute(f"DROP DATABASE IF EXISTS {name}")
    for n in range(3):
        cur.execute(f"DROP USER IF EXISTS fu{n}")


def outcome(cur):
    """What a replica has when its channel has applied everything, or has stopped."""
    cur.execute("SELECT table_schema, table_name FROM information_schema.tables WHERE table_schema LIKE 'f_' ORDER BY 1, 2")
    tables = {}
    for name in [f"{schema}.{table}" for schema, table in cur.fetchall()]:
        cur.execute(f"SELECT COUNT(*) FROM {name}")
        tables[name] = cur.fetchone()[0]
    cur.execute("SHOW DATABASES LIKE 'f_'")
    databases = [r[0] for r in cur.fetchall()]
    cur.execute("SELECT user FROM mysql.user WHERE user LIKE 'fu_' ORDER BY 1")
    users = [r[0] for r in cur.fetchall()]
    s = replica.status(cur)
    return {"tables": tables, "databases": databases, "users": users, "error": s["Last_SQL_Errno"],
            "shown": [s[name] for name in SHOWN]}


def run(src, cur, filters):
    """The outcome of the statements on a replica with these filters."""
    cur.execute("CHANGE REPLICATION FILTER " + ", ".join(f"REPLICATE_{name} = ()" for name in LISTS))
    if "fd" in filters:
        cur.execute("CREATE DATABASE fd")
    if filters:
        filters = filters.replace("DO_DB", "REPLICATE_DO_DB").replace("IGNORE_", "REPLICATE_IGNORE_")
        for name in ("DO_TABLE", "REWRITE_DB"):
            filters = filters.replace(name, "REPLICATE_" + name)
        filters = filters.replace("WILD_REPLICATE_", "REPLICATE_WILD_")
        cur.execute(f"CHANGE REPLICATION FILTER {filters}")
    cur.execute("START REPLICA")
    for sql in filter(None, map(str.strip, WORK.split(";"))):
        src.execute(sql)
    src.execute("SELECT @@global.gtid_executed")
    wanted = src.fetchone()[0]
    end = time.monotonic() + 60
    while True:
        cur.execute("SELECT GTID_SUBSET(%s, @@global.gtid_executed)", (wanted,))
        if cur.fetchone()[0] or replica.status(cur)["Last_SQL_Errno"]:
            break
        assert time.monotonic() < end, replica.status(cur)
        time.sleep(0.02)
    found = outcome(cur)
    cur.execute("STOP REPLICA")
    return found


def test_filters_leave_out_what_mysql_leaves_out(srv):
    with open(RECORDED) as f:
        recorded = json.load(f)
    begin(srv)
    for filters in FILTERS:
        src = srv.connect().cursor()
        clear(src)
        src.execute("RESET BINARY LOGS AND GTIDS")
        with server.Server({"server_id": 72, "innodb_buffer_pool_size": "64M"}) as other:
            cur = other.connect().cursor()
            replica.change(cur, srv.port)
            found = run(src, cur, filters)
            assert found == recorded[filters], (filters, found, recorded[filters])


def test_filters_stay_and_are_checked(srv):
    begin(srv)
    other = server.Server({"server_id": 72, "innodb_buffer_pool_size": "64M"})
    with other:
        cur = other.connect().cursor()
        replica.change(cur, srv.port)
        cur.execute("CHANGE REPLICATION FILTER REPLICATE_DO_TABLE = (a.t, b.`x y`, a.t), REPLICATE_IGNORE_DB = (`A b`)")
        for sql, code in (
            ("REPLICATE_WILD_DO_TABLE = ('abc')", 3067),
            ("REPLICATE_DO_TABLE = (t)", 1064),
            ("REPLICATE_DO_DB = ('x')", 1064),
            ("REPLICATE_DO_DB = (z) FOR CHANNEL 'none'", 3074),
        ):
            try:
                cur.execute(f"CHANGE REPLICATION FILTER {sql}")
            except pymysql.err.Error as e:
                assert e.args[0] == code, (sql, e)
            else:
                raise AssertionError(sql)
        other.kill()
        other.start()
        cur = other.connect().cursor()
        s = replica.status(cur)
        assert (s["Replicate_Do_Table"], s["Replicate_Ignore_DB"]) == ("a.t,b.x y", "A b"), s
        cur.execute("START REPLICA")
        try:
            cur.execute("CHANGE REPLICATION FILTER REPLICATE_DO_DB = (a)")
        except pymysql.err.Error as e:
            assert e.args[0] == 3085, e
        else:
            raise AssertionError("a running channel got a filter")
        cur.execute("STOP REPLICA")


def test_delay_waits_behind_the_commit(srv):
    delay = 6
    src = begin(srv)
    src.execute("CREATE TABLE t (id INT PRIMARY KEY)")
    with server.Server({"server_id": 72, "innodb_buffer_pool_size": "64M"}) as other:
        cur = other.connect().cursor()
        replica.change(cur, srv.port, f"SOURCE_AUTO_POSITION = 1, SOURCE_DELAY = {delay}")
        cur.execute("START REPLICA")
        cur.execute("SELECT WAIT_FOR_EXECUTED_GTID_SET(%s, 30)", (gtids(src),))
        assert cur.fetchone()[0] == 0
        committed = time.time()
        src.execute("INSERT INTO t (id) VALUES (1)")
        s = replica.wait(cur, lambda s: s["SQL_Remaining_Delay"] is not None)
        assert s["SQL_Delay"] == delay and s["SQL_Remaining_Delay"] <= delay, s
        assert s["Replica_SQL_Running_State"].startswith("Waiting until SOURCE_DELAY"), s
        cur.execute("SELECT desired_delay, remaining_delay, s.service_state, c.service_state, host, port, last_error_number "
                    "FROM performance_schema.replication_applier_configuration "
                    "JOIN performance_schema.replication_applier_status s USING (channel_name) "
                    "JOIN performance_schema.replication_connection_status c USING (channel_name) "
                    "JOIN performance_schema.replication_connection_configuration USING (channel_name)")
        row = cur.fetchone()
        assert row[0] == delay and row[1] <= delay and row[2:] == ("ON", "ON", "127.0.0.1", srv.port, 0), row
        cur.execute("SELECT WAIT_FOR_EXECUTED_GTID_SET(%s, 30)", (gtids(src),))
        assert cur.fetchone()[0] == 0 and time.time() - committed >= delay - 0.1, time.time() - committed
        s = replica.wait(cur, lambda s: s["SQL_Remaining_Delay"] is None)
        # A channel that waits stops at once.
        cur.execute("STOP REPLICA")
        cur.execute("CHANGE REPLICATION SOURCE TO SOURCE_DELAY = 3600")
        src.execute("INSERT INTO t (id) VALUES (2)")
        cur.execute("START REPLICA")
        s = replica.wait(cur, lambda s: s["SQL_Remaining_Delay"] is not None)
        assert 3590 <= s["SQL_Remaining_Delay"] <= 3600 and s["Replica_IO_Running"] == "Yes", s
        begun = time.monotonic()
        cur.execute("STOP REPLICA")
        assert time.monotonic() - begun < 2
        try:
            cur.execute("CHANGE REPLICATION SOURCE TO SOURCE_DELAY = 2147483648")
        except pymysql.err.Error as e:
            assert e.args[0] == 1729, e
        else:
            raise AssertionError("a delay of 68 years")


def gtids(src):
    src.execute("SELECT @@global.gtid_executed")
    return src.fetchone()[0]
