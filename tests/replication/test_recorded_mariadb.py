"""A replica of a binary log that a MariaDB 10.11 wrote; no other server is needed."""

import os
import struct
import zlib

import binlog_source
import replica
import server

HERE = os.path.dirname(os.path.abspath(__file__))
OPTIONS = {"server_id": 77, "innodb_buffer_pool_size": "64M"}
HEADER = binlog_source.HEADER
FILE = "mariadb-bin.000001"
LAST = "3-100-47,7-200-1"


def recorded():
    with open(os.path.join(HERE, "recorded", "mariadb1011.binlog"), "rb") as f:
        return f.read()


def event(code, body, flags=0):
    """An event of server 100 with its checksum; it has no position."""
    size = HEADER.size + len(body) + 4
    data = HEADER.pack(1700000000, code, 100, size, 0, flags) + body
    return data + struct.pack("<I", zlib.crc32(data))


def gtid(sequence, flags, domain=3):
    return event(162, (struct.pack("<QIB", sequence, domain, flags)).ljust(19, b"\0"))


def statement(sql, database=b"rep"):
    context = b"\0\0\0\0\1\1" + struct.pack("<Q", 1 << 21) + b"\4\x2d\0\x2d\0\x2d\0"
    return event(2, struct.pack("<IIBHH", 1, 0, len(database), 0, len(context)) + context + database + b"\0" + sql.encode())


def head():
    """The beginning of the recorded file, up to the first GTID."""
    data, at = recorded(), 4
    for one in binlog_source.events(data):
        if one[4] == binlog_source.MARIADB_GTID:
            return data[:at]
        at += len(one)


def begin(srv, port, more):
    cur = srv.connect().cursor()
    cur.execute("STOP REPLICA")
    for schema in ("rep", "rep2"):
        cur.execute(f"DROP DATABASE IF EXISTS {schema}")
    cur.execute("RESET REPLICA ALL")
    cur.execute(f"CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = {port}, MASTER_USER = 'sb', "
                f"MASTER_PASSWORD = 'sb', MASTER_CONNECT_RETRY = 1, {more}")
    cur.execute("START REPLICA")
    return cur


def rows(cur, sql):
    cur.execute(sql)
    return cur.fetchall()


def check_tables(cur):
    assert rows(cur, "SELECT id, ti, vc, j FROM rep.types ORDER BY id") == (
        (1, None, None, None), (2, 9, "minimal", '{"z":  3}'))
    assert rows(cur, "SELECT CAST(n AS CHAR), CAST(n2 AS CHAR), b9 + 0, y, CAST(t6 AS CHAR), CAST(dt6 AS CHAR), "
                     "CAST(ts6 AS CHAR), l1, HEX(bn), e, s, s9, bu FROM rep.types WHERE id = 2") == (
        ("-12345678901234567890.0123456789", "-99999999999999999999999999999999999.999999999999999999999999999999", 341,
         2155, "-12:34:56.789012", "9999-12-31 23:59:59.999999", "2038-01-19 03:14:07.999999", "naïve", "010200000000",
         "b", "y", "a,i", 18446744073709551615),)
    assert rows(cur, "SELECT id, CAST(t AS CHAR), CAST(dt AS CHAR), CAST(ts AS CHAR) FROM rep.old ORDER BY id") == (
        (1, "-838:59:59", "9999-12-31 23:59:59", "2038-01-19 03:14:07"), (2, None, None, None),
        (3, "00:00:01", "1000-01-01 00:00:00", "1970-01-01 00:00:01"))
    assert rows(cur, "SELECT id, v FROM rep.packed ORDER BY id") == ((2, "y" * 500), (200, None))
    assert rows(cur, "SELECT id, y, b + 0, i, u, d FROM rep.signs ORDER BY id") == (
        (4, 2024, 5, -1, 4294967295, -1.5), (7, 2024, 5, -1, 4294967295, -1.5))
    assert rows(cur, "SELECT * FROM rep.child") == ((3, 2),)
    assert rows(cur, "SELECT * FROM rep.copied") == ((3,),)
    assert rows(cur, "SELECT * FROM rep.untransactional") == ((1,), (2,))
    assert rows(cur, "SELECT id, u, t, g, later FROM rep.replaced") == ((1, "u", "text", 2, 5), (2, "v", "text", 3, 5))
    assert rows(cur, "SELECT COUNT(*) FROM rep.nokey") == ((0,),)
    assert rows(cur, "SELECT column_name FROM information_schema.columns WHERE table_schema = 'rep' AND "
                     "table_name = 'nokey' ORDER BY ordinal_position") == (("a",), ("b",), ("c",))
    assert rows(cur, "SELECT table_name, collation_name FROM information_schema.columns WHERE table_schema = 'rep' AND "
                     "table_name IN ('collated', 'commented', 'packed') AND collation_name IS NOT NULL ORDER BY 1") == (
        ("collated", "utf8mb4_0900_ai_ci"), ("commented", "utf8mb4_0900_bin"), ("packed", "utf8mb4_general_ci"))
    assert rows(cur, "SELECT is_visible FROM information_schema.statistics WHERE table_schema = 'rep' AND "
                     "index_name = 'k'") == (("NO",),)
    try:
        cur.execute("INSERT INTO rep.types (id, j) VALUES (9, 'no document')")
        raise AssertionError("JSON is not checked")
    except Exception as e:
        assert e.args[0] == 3819, e


def test_recorded_log_makes_its_tables(_):
    with server.Server(OPTIONS) as srv, binlog_source.Source(recorded(), FILE, mariadb=True) as source:
        cur = begin(srv, source.port, "MASTER_USE_GTID = slave_pos")
        s = replica.wait(cur, lambda s: s["Executed_Gtid_Set"] == LAST)
        assert s["Replica_IO_Running"] == "Yes" and s["Source_Server_Id"] == 1 and s["Auto_Position"] == 1, s
        assert any("@mariadb_slave_capability = 4" in sql for sql in source.settings), source.settings
        assert any("@slave_connect_state = ''" in sql for sql in source.settings), source.settings
        cur.execute("SET time_zone = '+00:00'")
        check_tables(cur)
        # The stored position goes to the source after a restart, and nothing is applied twice.
        srv.kill()
        srv.start()
        cur = srv.connect().cursor()
        s = replica.wait(cur, lambda s: s["Replica_IO_Running"] == "Yes")
        assert s["Executed_Gtid_Set"] == LAST, s
        assert any(f"@slave_connect_state = '{LAST}'" in sql for sql in source.settings), source.settings
        cur.execute("SELECT @@global.gtid_executed")
        assert cur.fetchone() == (LAST,)
        cur.execute("SET time_zone = '+00:00'")
        check_tables(cur)


def test_file_and_position_work_too(srv):
    with binlog_source.Source(recorded(), FILE, mariadb=True) as source:
        cur = begin(srv, source.port, f"MASTER_USE_GTID = no, MASTER_LOG_FILE = '{FILE}', MASTER_LOG_POS = 4")
        s = replica.wait(cur, lambda s: s["Exec_Source_Log_Pos"] == len(recorded()) - 49)
        assert s["Executed_Gtid_Set"] == LAST and s["Relay_Source_Log_File"] == FILE, s
        cur.execute("SET time_zone = '+00:00'")
        check_tables(cur)


def test_filter_leaves_out_other_databases(srv):
    with binlog_source.Source(recorded(), FILE, mariadb=True) as source:
        cur = begin(srv, source.port, f"MASTER_LOG_FILE = '{FILE}', MASTER_LOG_POS = 4, NFOLD_DATABASES = 'other'")
        replica.wait(cur, lambda s: s["Exec_Source_Log_Pos"] == len(recorded()) - 49)
        assert rows(cur, "SHOW DATABASES LIKE 'rep%'") == ()


def stops_with(srv, events, *words):
    """The channel applies the events behind the head of the file, and stops with an error that has
    the words."""
    data = head() + b"".join(events)
    with binlog_source.Source(data, FILE, mariadb=True) as source:
        cur = begin(srv, source.port, f"MASTER_USE_GTID = no, MASTER_LOG_FILE = '{FILE}', MASTER_LOG_POS = 4")
        s = replica.wait_stopped(cur)
        for word in words:
            assert word in s["Last_SQL_Error"], (word, s["Last_SQL_Error"])
        return cur


def test_what_is_not_understood_stops_it(srv):
    standalone = gtid(1, 0x29)
    database = [standalone, statement("CREATE DATABASE rep")]
    cases = [
        ([event(164, bytes(17))], ["Start_encryption event (type 164)", FILE]),
        ([event(172, b"x")], ["type 172"]),
        ([event(162, struct.pack("<QIBIBB", 5, 3, 0x4c, 1, 65, 0) + bytes(65))],
         ["name of an XA transaction", "MariaDB Gtid event (type 162)"]),
        ([standalone, statement("CREATE TABLE t (a INT) WITH SYSTEM VERSIONING")], ["SYSTEM VERSIONING", "3-100-1"]),
        ([standalone, statement("CREATE SEQUENCE s")], ["sequences"]),
        ([*database, gtid(2, 0x29), statement("CREATE TABLE t (id INT, a INET6)")], ["INET6", "3-100-2"]),
        ([*database, gtid(2, 0x29), statement("CREATE TABLE t (id INT, a VARCHAR(9) COMPRESSED)")], ["COMPRESSED"]),
        ([*database, gtid(2, 0x29), statement("CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW SET @a = 1")], ["TRIGGER"]),
        ([gtid(1, 0x0c), gtid(2, 0x0c)], ["the transaction before it has no end"]),
        ([standalone, statement("INSERT INTO t VALUES (1)")], ["INSERT INTO", "binlog_format = ROW"]),
    ]
    # Behind this one, the source has decrypted its events.
    decrypted = event(164, bytes(17), flags=0x80)
    cases.append(([decrypted, standalone, statement("CREATE SEQUENCE s")], ["sequences"]))
    for events, words in cases:
        stops_with(srv, events, *words)


def test_conditions_depend_on_the_replica(srv):
    statements = [
        "CREATE DATABASE rep", "CREATE TABLE t (a INT PRIMARY KEY, b INT, KEY k (b))",
        "ALTER TABLE t DROP COLUMN IF EXISTS missing", "ALTER TABLE rep.t ADD COLUMN IF NOT EXISTS (c INT)",
    ]
    events = [e for n, sql in enumerate(statements) for e in (gtid(n + 1, 0x29), statement(sql))]
    cur = stops_with(srv, events, "ADD COLUMN IF NOT EXISTS (...)", "3-100-4")
    assert rows(cur, "SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = 'rep'") == ((2,),)


def test_master_use_gtid_has_three_values(srv):
    cur = srv.connect().cursor()
    cur.execute("STOP REPLICA")
    for value, auto_position in (("current_pos", 1), ("NO", 0), ("Slave_Pos", 1)):
        cur.execute(f"CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_USE_GTID = {value}")
        assert replica.status(cur)["Auto_Position"] == auto_position, value
    for value in ("sometimes", "1", "'no'"):
        try:
            cur.execute(f"CHANGE MASTER TO MASTER_USE_GTID = {value}")
            raise AssertionError(value)
        except Exception as e:
            assert e.args[0] == 1210, e
    cur.execute("RESET REPLICA ALL")


def test_gtid_subset_compares_positions_in_domains(srv):
    cur = srv.connect().cursor()
    for subset, of, expected in (("3-100-44", "3-100-44,7-200-1", 1), ("3-100-45", "3-100-44,7-200-1", 0),
                                 ("3-101-44", "3-100-45", 1), ("3-100-1,8-1-1", "3-100-2", 0), ("", "3-100-2", 1),
                                 ("3-100-2", "", 0)):
        assert rows(cur, f"SELECT GTID_SUBSET('{subset}', '{of}')") == ((expected,),), (subset, of)
