"""START REPLICA UNTIL: the channel stops by itself. The source is another Nfold."""

import pymysql
import replica
import server
from test_source import begin

OPTIONS = {"server_id": 71, "innodb_buffer_pool_size": "64M", "log_bin": "ON", "gtid_mode": "ON"}


def highest(cur):
    cur.execute("SELECT COALESCE(MAX(id), 0) FROM rep.t")
    return cur.fetchone()[0]


def place(src):
    src.execute("SHOW BINARY LOG STATUS")
    file, position, _, _, gtids = src.fetchone()
    return file, position, gtids


def stopped_at(cur, until):
    """Starts the channel, and returns its status when it has stopped without an error."""
    cur.execute(f"START REPLICA UNTIL {until}")
    s = replica.wait_stopped(cur)
    assert (s["Last_SQL_Errno"], s["Last_IO_Errno"]) == (0, 0), s
    return s


def test_channel_stops_at_gtids_and_positions(srv):
    src = begin(srv)
    src.execute("CREATE TABLE t (id INT PRIMARY KEY)")
    places = []
    for n in range(1, 9):
        src.execute("INSERT INTO t VALUES (%s)", (n,))
        places.append(place(src))
        if n == 4:
            src.execute("FLUSH BINARY LOGS")
    with server.Server({"server_id": 72, "innodb_buffer_pool_size": "64M"}) as other:
        cur = other.connect().cursor()
        replica.change(cur, srv.port)
        uuid, _ = places[0][2].split(":")
        s = stopped_at(cur, f"SQL_AFTER_GTIDS = '{places[1][2]}'")
        assert highest(cur) == 2 and s["Until_Condition"] == "SQL_AFTER_GTIDS", s
        # Reached already.
        stopped_at(cur, f"SQL_AFTER_GTIDS = '{places[0][2]}'")
        assert highest(cur) == 2
        # The third row is transaction 5, behind CREATE DATABASE and CREATE TABLE.
        s = stopped_at(cur, f"SQL_BEFORE_GTIDS = '{uuid}:5-6'")
        assert highest(cur) == 2 and s["Until_Condition"] == "SQL_BEFORE_GTIDS", s
        # One of the set is applied already.
        stopped_at(cur, f"SQL_BEFORE_GTIDS = '{uuid}:2'")
        assert highest(cur) == 2
        file, position, _ = places[3]
        s = stopped_at(cur, f"SOURCE_LOG_FILE = '{file}', SOURCE_LOG_POS = {position}")
        assert highest(cur) == 4, highest(cur)
        assert (s["Until_Condition"], s["Until_Log_File"], s["Until_Log_Pos"]) == ("Source", file, position), s
        file, position, _ = places[5]
        stopped_at(cur, f"MASTER_LOG_FILE = '{file}', MASTER_LOG_POS = {position}")
        assert highest(cur) == 6, highest(cur)
        # The beginning of a file: nothing of it is applied.
        src.execute("FLUSH BINARY LOGS")
        stopped_at(cur, f"SOURCE_LOG_FILE = '{place(src)[0]}', SOURCE_LOG_POS = 4")
        assert highest(cur) == 8, highest(cur)
        cur.execute("START REPLICA")
        s = replica.wait(cur, lambda s: s["Replica_IO_Running"] == "Yes")
        assert s["Until_Condition"] == "None", s
        cur.execute("STOP REPLICA")
        for sql, code in ((f"START REPLICA UNTIL SOURCE_LOG_FILE = '{file}'", 1277),
                          ("START REPLICA UNTIL SQL_AFTER_GTIDS = 'x'", 1772),
                          ("START REPLICA UNTIL SQL_AFTER_MTS_GAPS", 1235),
                          ("START REPLICA UNTIL RELAY_LOG_FILE = 'x', RELAY_LOG_POS = 4", 1235)):
            try:
                cur.execute(sql)
                raise AssertionError(f"no error: {sql}")
            except pymysql.Error as e:
                assert e.args[0] == code, (sql, e)
    src.execute("DROP DATABASE rep")
