"""Changes of the session's state in OK packets (CLIENT_SESSION_TRACK). `EXPECTED` is what MySQL
9.7.4 sent, but for `statement_id`, which Nfold does not count."""
import struct

import pymysql

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


def transcript(**where):
    c = Client(client_flag=SESSION_TRACK | DEPRECATE_EOF, autocommit=None, charset="utf8mb4", database="mysql", **where)
    seen = [("the login", changes(c.login))]
    seen += [(sql, c.run(sql)) for sql, _ in EXPECTED[1:]]
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


def test_changes_are_told_as_in_mysql(srv):
    seen = transcript(host="127.0.0.1", port=srv.port, user="root")
    for found, expected in zip(seen, EXPECTED):
        assert found == expected, (found, expected)
    assert len(seen) == len(EXPECTED)
