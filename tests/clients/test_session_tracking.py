"""Changes of the session's state in OK packets (CLIENT_SESSION_TRACK). `EXPECTED` is what MySQL
9.7.4 sent, but for `statement_id`, which Nfold does not count. `TRANSACTIONS` is what it sent of
transactions."""
import struct

import pymysql
import server

SESSION_TRACK, DEPRECATE_EOF = 1 << 23, 1 << 24
SESSION_STATE_CHANGED = 1 << 14


def lenenc(data, at):
    first = data[at]
    if first < 0xFB:
        return first, at + 1
    size = {0xFC: 2, 0xFD: 3, 0xFE: 8}[first]
    return int.from_bytes(data[at + 1:at + 1 + size], "little"), at + 1 + size


def text(data, at):
    size, at = lenenc(data, at)
    return data[at:at + size], at + size


def changes(packet):
    """The changes that an OK packet names."""
    _, at = lenenc(packet, 1)
    _, at = lenenc(packet, at)
    status = struct.unpack_from("<H", packet, at)[0]
    found, at = [], at + 4
    if not status & SESSION_STATE_CHANGED:
        return found
    _, at = text(packet, at)
    state, at = text(packet, at)
    at = 0
    while at < len(state):
        kind = state[at]
        data, at = text(state, at + 1)
        if kind == 0:
            name, behind = text(data, 0)
            found.append(f"{name.decode()}={text(data, behind)[0].decode()}")
        elif kind == 1:
            found.append(f"schema {text(data, 0)[0].decode()}")
        elif kind == 3:
            assert data[0] == 0, data
            found.append(f"gtids {text(data, 1)[0].decode()}")
        elif kind in (4, 5):
            found.append(text(data, 0)[0].decode())
        else:
            found.append({2: "state"}.get(kind, kind) if data == b"1" else data)
    return found


class Client(pymysql.connections.Connection):
    """A connection that keeps the OK packet of its login and sends nothing of its own."""
    login = None
    connected = False

    def _read_packet(self, *kinds):
        packet = super()._read_packet(*kinds)
        if packet.is_ok_packet():
            self.login = packet.get_all_data()
        return packet

    def query(self, sql, unbuffered=False):
        assert self.connected is False

    def packet(self):
        payload, size = b"", 0xFFFFFF
        while size == 0xFFFFFF:
            size = int.from_bytes(self._read_bytes(4)[:3], "little")
            payload += self._read_bytes(size)
        return payload

    def run(self, sql):
        self._write_bytes(struct.pack("<I", len(sql) + 1)[:3] + b"\0\x03" + sql.encode())
        first = self.packet()
        if first[0] == 0xFF:
            return struct.unpack_from("<H", first, 1)[0]
        if first[0] == 0:
            return changes(first)
        for _ in range(first[0]):
            self.packet()
        while (packet := self.packet())[0] != 0xFE:
            pass
        return changes(packet)


def tracked(**where):
    return Client(client_flag=SESSION_TRACK | DEPRECATE_EOF, autocommit=None, charset="utf8mb4", database="mysql", **where)


def transcript(expected, **where):
    c = tracked(**where)
    seen = [("the login", changes(c.login))]
    seen += [(sql, c.run(sql)) for sql, _ in expected[1:]]
    c.close()
    return seen


EXPECTED = [
    ("the login", ["schema mysql"]),
    ("SET session_track_transaction_info = OFF", []),
    ("DROP DATABASE IF EXISTS tracked", []),
    ("CREATE DATABASE tracked", []),
    ("USE tracked", ["schema tracked"]),
    ("USE tracked", ["schema tracked"]),
    ("SET autocommit = 1", ["autocommit=ON"]),
    ("SET autocommit = 0, time_zone = '+01:00'", ['autocommit=OFF', 'time_zone=+01:00']),
    ("SET autocommit = 1", ["autocommit=ON"]),
    ("SET NAMES latin1", ["character_set_client=latin1", "character_set_connection=latin1", "character_set_results=latin1"]),
    ("SET NAMES utf8mb4 COLLATE utf8mb4_bin", ["character_set_client=utf8mb4", "character_set_connection=utf8mb4", "character_set_results=utf8mb4"]),
    ("SET CHARACTER SET utf8mb4", ["character_set_client=utf8mb4", "character_set_connection=utf8mb4", "character_set_results=utf8mb4"]),
    ("SET character_set_results = NULL", ["character_set_results="]),
    ("SET NAMES utf8mb4", ["character_set_client=utf8mb4", "character_set_connection=utf8mb4", "character_set_results=utf8mb4"]),
    ("SET sql_mode = ''", []),
    ("SET @a = 1", []),
    ("SET GLOBAL time_zone = '+02:00'", []),
    ("SET GLOBAL time_zone = DEFAULT", []),
    ("SET session_track_system_variables = '*'", ['session_track_system_variables=*']),
    ("SET session_track_system_variables = ' sql_mode , lock_wait_timeout'", []),
    ("SET sql_mode = 'ANSI'", ['sql_mode=REAL_AS_FLOAT,PIPES_AS_CONCAT,ANSI_QUOTES,IGNORE_SPACE,ONLY_FULL_GROUP_BY,ANSI']),
    ("SET time_zone = 'SYSTEM'", []),
    ("SET lock_wait_timeout = 7, sql_mode = DEFAULT", ["lock_wait_timeout=7", "sql_mode=ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION"]),
    ("SET session_track_state_change = ON", []),
    ("SET @a = 2", ["state"]),
    ("SELECT @b := 3", []),
    ("CREATE TEMPORARY TABLE t (a INT)", ["state"]),
    ("CREATE TEMPORARY TABLE IF NOT EXISTS t (a INT)", ["state"]),
    ("INSERT INTO t VALUES (1)", []),
    ("ALTER TABLE t ADD b INT", ["state"]),
    ("TRUNCATE t", []),
    ("DROP TABLE t", []),
    ("CREATE TEMPORARY TABLE t (a INT)", ["state"]),
    ("DROP TEMPORARY TABLE t", ["state"]),
    ("DROP TEMPORARY TABLE IF EXISTS t", ["state"]),
    ("PREPARE p FROM 'SELECT 1'", ['state']),
    ("EXECUTE p", []),
    ("DEALLOCATE PREPARE p", ["state"]),
    ("DEALLOCATE PREPARE p", 1243),
    ("PREPARE p FROM 'SET @c = 1'", ['state']),
    ("EXECUTE p", ["state"]),
    ("SELECT 1 INTO @x", []),
    ("CREATE TABLE u (id INT PRIMARY KEY)", []),
    ("INSERT INTO u VALUES (1), (2)", []),
    ("SET lock_wait_timeout = 7", ["lock_wait_timeout=7", "state"]),
    ("SET TRANSACTION READ ONLY", []),
    ("SET SESSION TRANSACTION READ WRITE", ["state"]),
    ("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", ["state"]),
    ("SET @@GLOBAL.sort_buffer_size = DEFAULT", []),
    ("USE nowhere", 1049),
    ("SET lock_wait_timeout = 8, nonsense = 1", 1193),
    ("SELECT 1", []),
    ("USE mysql", ["schema mysql", "state"]),
    ("SET session_track_schema = OFF", ["state"]),
    ("USE tracked", ["state"]),
    ("SET session_track_state_change = OFF, session_track_schema = ON", []),
    ("SET sql_mode = ''", ['sql_mode=']),
    ("SET session_track_system_variables = ''", []),
    ("SET sql_mode = ''", []),
    ("SET ROLE NONE", []),
    ("DROP DATABASE tracked", ["schema "]),
]


# What `session_track_transaction_info` shows: the transaction's state, and the statements that
# would begin an equal one.
TRANSACTIONS = [
    ("the login", ["schema mysql"]),
    ("DROP DATABASE IF EXISTS tracked", []),
    ("CREATE DATABASE tracked", []),
    ("USE tracked", ["schema tracked"]),
    ("CREATE TABLE t (a INT PRIMARY KEY, b INT)", []),
    ("SET session_track_system_variables = ''", []),
    ("SET session_track_transaction_info = STATE", []),
    ("SELECT 1", []),
    ("SELECT * FROM t", []),
    ("INSERT INTO t VALUES (1, 1)", []),
    ("BEGIN", ["T_______"]),
    ("SELECT 1", ["T_____S_"]),
    ("SELECT * FROM t", ["T_R___S_"]),
    ("SELECT * FROM t", []),
    ("INSERT INTO t VALUES (2, 1)", ["T_R_W_S_"]),
    ("UPDATE t SET b = 2", []),
    ("SET @a = 1", []),
    ("COMMIT", ["________"]),
    ("START TRANSACTION", ["T_______"]),
    ("ROLLBACK", ["________"]),
    ("BEGIN", ["T_______"]),
    ("INSERT INTO t VALUES (2, 1)", 1062),
    ("SAVEPOINT a", ["T___W___"]),
    ("ROLLBACK TO a", []),
    ("DO 1", []),
    ("COMMIT AND CHAIN", ["T_______"]),
    ("SELECT 1 FROM t WHERE a = 77", ["T_R___S_"]),
    ("ROLLBACK", ["________"]),
    ("SET autocommit = 0", []),
    ("SELECT 1", []),
    ("SELECT * FROM t", ["I_R___S_"]),
    ("INSERT INTO t VALUES (9, 1)", ["I_R_W_S_"]),
    ("COMMIT", ["________"]),
    ("DO 5", []),
    ("INSERT INTO t VALUES (10, 1)", ["I___W___"]),
    ("SET autocommit = 1", ["________"]),
    ("LOCK TABLES t READ", ["_______L"]),
    ("SELECT * FROM t", []),
    ("UNLOCK TABLES", ["________"]),
    ("BEGIN", ["T_______"]),
    ("CREATE TABLE u (a INT)", ["________"]),
    ("BEGIN", ["T_______"]),
    ("SELECT * FROM t FOR UPDATE", ["T___W_S_"]),
    ("SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = 'tracked'", ["T_R_W_S_"]),
    ("SELECT COUNT(*) FROM performance_schema.global_status WHERE 1 = 0", ["TrR_W_S_"]),
    ("INSERT INTO t SELECT a + 100, b FROM t", []),
    ("COMMIT", ["________"]),
    ("BEGIN", ["T_______"]),
    ("DELETE FROM t WHERE a = 9999", ["T___W___"]),
    ("SELECT MAX(a) FROM t INTO @x", ["T_R_W___"]),
    ("PREPARE s FROM 'SELECT * FROM t'", []),
    ("EXECUTE s", ["T_R_W_S_"]),
    ("INSERT INTO nowhere VALUES (1)", 1146),
    ("BEGIN", ["T_______"]),
    ("SELECT * FROM t LOCK IN SHARE MODE", ["T_R___S_"]),
    ("REPLACE INTO u VALUES (1)", ["T_R_W_S_"]),
    ("COMMIT", ["________"]),
    ("BEGIN", ["T_______"]),
    ("INSERT INTO u SELECT a FROM t", ["T_R_W___"]),
    ("ROLLBACK", ["________"]),
    ("SET TRANSACTION READ ONLY", []),
    ("BEGIN", ["T_______"]),
    ("COMMIT", ["________"]),
    ("SET session_track_transaction_info = CHARACTERISTICS", [""]),
    ("SELECT 1", []),
    ("BEGIN", ["T_______", "START TRANSACTION;"]),
    ("SELECT 1 FROM t", ["T_R___S_"]),
    ("COMMIT", ["________", ""]),
    ("START TRANSACTION READ ONLY", ["T_______", "START TRANSACTION READ ONLY;"]),
    ("COMMIT", ["________", ""]),
    ("START TRANSACTION WITH CONSISTENT SNAPSHOT", ["T_R_____", "START TRANSACTION WITH CONSISTENT SNAPSHOT;"]),
    ("COMMIT", ["________", ""]),
    ("START TRANSACTION READ WRITE, WITH CONSISTENT SNAPSHOT", ["T_R_____", "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ WRITE;"]),
    ("COMMIT AND CHAIN", ["T_______", "START TRANSACTION READ WRITE;"]),
    ("COMMIT", ["________", ""]),
    ("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE", ["SET TRANSACTION ISOLATION LEVEL SERIALIZABLE;"]),
    ("SET TRANSACTION READ ONLY", ["SET TRANSACTION ISOLATION LEVEL SERIALIZABLE; SET TRANSACTION READ ONLY;"]),
    ("BEGIN", ["T_______", "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE; START TRANSACTION READ ONLY;"]),
    ("COMMIT AND CHAIN", ["SET TRANSACTION ISOLATION LEVEL SERIALIZABLE; START TRANSACTION READ ONLY;"]),
    ("COMMIT", ["________", ""]),
    ("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", []),
    ("BEGIN", ["T_______", "START TRANSACTION;"]),
    ("COMMIT", ["________", ""]),
    ("SET TRANSACTION READ WRITE", ["SET TRANSACTION READ WRITE;"]),
    ("SELECT * FROM t LIMIT 1", [""]),
    ("SET @@transaction_isolation = 'READ-UNCOMMITTED'", ["SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED;"]),
    ("SET SESSION transaction_isolation = 'REPEATABLE-READ'", [""]),
    ("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ", ["SET TRANSACTION ISOLATION LEVEL REPEATABLE READ;"]),
    ("SET session_track_transaction_info = CHARACTERISTICS", ["SET TRANSACTION ISOLATION LEVEL REPEATABLE READ;"]),
    ("SET session_track_transaction_info = STATE", []),
    ("SET session_track_transaction_info = CHARACTERISTICS", ["SET TRANSACTION ISOLATION LEVEL REPEATABLE READ;"]),
    ("BEGIN", ["T_______", "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; START TRANSACTION;"]),
    ("INSERT INTO t VALUES (2000, 1)", ["T___W___"]),
    ("INSERT INTO t VALUES (2000, 1)", 1062),
    ("ROLLBACK", ["________", ""]),
    ("DROP DATABASE tracked", ["schema "]),
]


def test_changes_are_told_as_in_mysql(srv):
    for expected in (EXPECTED, TRANSACTIONS):
        seen = transcript(expected, host="127.0.0.1", port=srv.port, user="root")
        for found, wanted in zip(seen, expected):
            assert found == wanted, (found, wanted)
        assert len(seen) == len(expected)


def test_gtids_of_commits_are_told(_):
    with server.Server({"log_bin": "ON", "gtid_mode": "ON", "enforce_gtid_consistency": "ON", "server_id": "7"}) as srv, srv.connect() as admin:
        with admin.cursor() as cursor:
            cursor.execute("SELECT @@server_uuid")
            (uuid,), = cursor.fetchall()
            cursor.execute("CREATE DATABASE tracked")
            cursor.execute("CREATE TABLE tracked.t (a INT PRIMARY KEY)")
        c = tracked(host="127.0.0.1", port=srv.port, user="root")
        assert c.run("INSERT INTO tracked.t VALUES (1)") == []
        assert c.run("SET session_track_gtids = OWN_GTID") == []
        assert c.run("INSERT INTO tracked.t VALUES (2)") == [f"gtids {uuid}:4"]
        assert c.run("SELECT * FROM tracked.t") == []
        assert c.run("BEGIN") == c.run("UPDATE tracked.t SET a = 11 WHERE a = 1") == []
        with admin.cursor() as cursor:
            cursor.execute("INSERT INTO tracked.t VALUES (20)")
        assert c.run("COMMIT") == [f"gtids {uuid}:6"]
        assert c.run("BEGIN") == c.run("DELETE FROM tracked.t") == c.run("ROLLBACK") == []
        assert c.run("SET session_track_gtids = ALL_GTIDS") == []
        assert c.run("INSERT INTO tracked.t VALUES (30)") == [f"gtids {uuid}:1-7"]
        assert c.run("SET session_track_gtids = OFF") == []
        assert c.run("INSERT INTO tracked.t VALUES (31)") == []
        c.close()
