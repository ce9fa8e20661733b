"""A replica of a recorded binary log; no other server is needed."""

import os
import struct
import zlib

import binlog_source
import replica

HERE = os.path.dirname(os.path.abspath(__file__))
OPTIONS = {"server_id": 77, "innodb_buffer_pool_size": "64M"}
HEADER = binlog_source.HEADER


def recorded():
    with open(os.path.join(HERE, "recorded", "mysql97.binlog"), "rb") as f:
        return f.read()


def event(code, body, end=0):
    """An event of the source with its checksum."""
    size = HEADER.size + len(body) + 4
    data = HEADER.pack(1700000000, code, 1, size, end, 0) + body
    return data + struct.pack("<I", zlib.crc32(data))


def begin(srv, port, more="SOURCE_AUTO_POSITION = 1"):
    cur = srv.connect().cursor()
    cur.execute("STOP REPLICA")
    for schema in ("rep", "rep2"):
        cur.execute(f"DROP DATABASE IF EXISTS {schema}")
    cur.execute("RESET REPLICA ALL")
    replica.change(cur, port, more)
    cur.execute("START REPLICA")
    return cur


def at_end(s):
    """Whether the last transaction of the recorded file is applied. Only a Rotate event follows."""
    return s["Exec_Source_Log_Pos"] == len(recorded()) - 44


def rows(cur, sql):
    cur.execute(sql)
    return cur.fetchall()


def stops_with(srv, data, *words):
    """The channel applies `data` and stops with an error that has the words."""
    with binlog_source.Source(data) as source:
        cur = begin(srv, source.port, "SOURCE_AUTO_POSITION = 0, SOURCE_LOG_FILE = 'binlog.000001', SOURCE_LOG_POS = 4")
        s = replica.wait_stopped(cur)
        for word in words:
            assert word in s["Last_SQL_Error"], (word, s["Last_SQL_Error"])
        return cur, s


def test_recorded_log_makes_its_tables(srv):
    data = recorded()
    with binlog_source.Source(data) as source:
        cur = begin(srv, source.port)
        s = replica.wait(cur, at_end)
        assert s["Executed_Gtid_Set"].endswith(":1-29:blue:1"), s
        assert s["Replica_IO_Running"] == "Yes" and s["Source_UUID"].endswith("1"), s
    assert rows(cur, "SELECT id, ti, vc, JSON_EXTRACT(j, '$.z') FROM rep.types ORDER BY id") == (
        (1, None, None, None), (2, 7, "minimal", "3"))
    assert rows(cur, "SELECT n, n2, b9 + 0, y, t6, dt6, l1, HEX(bn), e, s9 FROM rep.types WHERE id = 2")[0][2:4] == (341, 2155)
    assert rows(cur, "SELECT CAST(j AS CHAR), CAST(k AS CHAR) FROM rep.docs WHERE a = 1") == (
        ('{"a": "y", "m": {}, "n": [77, "two", 3]}', '{"q": [9, 8]}'),)
    assert rows(cur, "SELECT a, CAST(k AS CHAR) FROM rep.docs WHERE a > 100 ORDER BY a") == ((101, "1"), (102, "1"), (200, None))
    assert rows(cur, "SELECT * FROM rep.child") == rows(cur, "SELECT * FROM rep.copied") == ((3, 2),)
    assert rows(cur, "SELECT COUNT(*) FROM rep.nokey") == ((0,),)


def test_unknown_event_stops_it(srv):
    data = recorded()
    first = 4 + HEADER.unpack_from(data, 4)[3]
    cur, s = stops_with(srv, data[:first] + event(99, b"surprise", first + 31) + data[first:],
                        "type 99", f"position {first}", "binlog.000001")
    assert s["Exec_Source_Log_Pos"] == 4 and rows(cur, "SHOW DATABASES LIKE 'rep'") == ()
    # It stops there again.
    with binlog_source.Source(data[:first] + event(99, b"surprise", first + 31)) as source:
        replica.change(cur, source.port, "SOURCE_LOG_FILE = 'binlog.000001', SOURCE_LOG_POS = 4")
        cur.execute("START REPLICA")
        assert "type 99" in replica.wait_stopped(cur)["Last_SQL_Error"]


def test_changed_byte_stops_it(srv):
    data = bytearray(recorded())
    data[9000] ^= 1
    _, s = stops_with(srv, bytes(data), "checksum", "Query event", "position 8963")
    assert s["Exec_Source_Log_Pos"] == 8884, s


def test_statement_event_stops_it(srv):
    data = recorded()
    first = 4 + HEADER.unpack_from(data, 4)[3]
    sql = b"INSERT INTO t VALUES (1)"
    query = struct.pack("<IIBHH", 1, 0, 3, 0, 0) + b"rep\0" + sql
    stops_with(srv, data[:first] + event(2, query), "INSERT INTO", "binlog_format = ROW")
    intvar = event(5, b"\2" + struct.pack("<Q", 7))
    stops_with(srv, data[:first] + intvar, "Intvar event (type 5)")


def test_statements_of_the_channel(srv):
    cur = begin(srv, 1)
    cur.execute("STOP REPLICA")

    def error(sql):
        try:
            cur.execute(sql)
        except Exception as e:
            return e.args[0]
        return 0

    assert error("CHANGE REPLICATION SOURCE TO SOURCE_LOG_FILE = 'x', SOURCE_LOG_POS = 4") == 1776
    assert error("CHANGE REPLICATION SOURCE TO SOURCE_HEARTBEAT_PERIOD = 99999999") == 1624
    assert error("CHANGE REPLICATION SOURCE TO SOURCE_SSL_CRL = 'ca.pem'") == 1235
    assert error("START REPLICA IO_THREAD") == 1235
    assert error("START REPLICA FOR CHANNEL 'x'") == 3074
    assert error("CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = 2, MASTER_AUTO_POSITION = 1") == 0
    cur.execute("SHOW SLAVE STATUS")
    assert cur.fetchone()[3] == 2
    cur.execute("START SLAVE")
    s = replica.wait(cur, lambda s: s["Last_IO_Errno"] == 2003)
    assert s["Replica_IO_Running"] == "Connecting" and "127.0.0.1:2" in s["Last_IO_Error"], s
    assert error("CHANGE REPLICATION SOURCE TO SOURCE_PORT = 3") == 3021
    assert error("RESET REPLICA ALL") == 3081
    cur.execute("START REPLICA")
    cur.execute("SHOW WARNINGS")
    assert cur.fetchone()[:2] == ("Note", 3083)
    cur.execute("STOP REPLICA")
    cur.execute("STOP REPLICA")
    cur.execute("SHOW WARNINGS")
    assert cur.fetchone()[:2] == ("Note", 3084)
    cur.execute("RESET REPLICA ALL")
    assert replica.status(cur) == {} and error("START REPLICA") == 1200
    cur.execute("CREATE USER IF NOT EXISTS rep_reader@'%' IDENTIFIED BY 'x'")
    other = srv.connect(user="rep_reader", password="x").cursor()
    for sql in ("START REPLICA", "STOP REPLICA", "RESET REPLICA", "CHANGE REPLICATION SOURCE TO SOURCE_PORT = 3",
                "SHOW REPLICA STATUS"):
        try:
            other.execute(sql)
            raise AssertionError(f"{sql} without privileges")
        except Exception as e:
            assert e.args[0] == 1227, (sql, e)
