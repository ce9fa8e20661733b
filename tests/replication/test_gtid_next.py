"""gtid_next and BINLOG, with which the output of mysqlbinlog runs."""

import base64
import os
import threading

import pymysql

import binlog_source
import replica
import server
import test_source as of_source
from test_source import Follower, caught_up, executed

OPTIONS = {**of_source.OPTIONS, "server_id": 71}
OTHER = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
FORMAT, QUERY, XID, GTID = 15, 2, 16, 33
ROWS = (19, 29, 30, 31, 32)


def begin(srv):
    srv.connect().cursor().execute("SET gtid_next = 'AUTOMATIC'")
    return of_source.begin(srv)


def fails(cur, sql, code):
    try:
        cur.execute(sql)
    except pymysql.err.Error as e:
        assert e.args[0] == code, (sql, e)
        return
    raise AssertionError(f"{sql} succeeds")


def events(cur):
    cur.execute("SHOW BINLOG EVENTS")
    return [f"{kind} {info}" for _, _, kind, _, _, info in cur.fetchall()]


def owned(cur):
    cur.execute("SELECT @@gtid_owned")
    return cur.fetchone()[0]


def test_transactions_get_the_gtid(srv):
    cur = begin(srv)
    cur.execute("CREATE TABLE t (id INT PRIMARY KEY)")
    before = len(events(cur))
    cur.execute(f"SET gtid_next = ' {OTHER.upper()} : 7 '")
    cur.execute("SELECT @@gtid_next")
    assert cur.fetchone() == (f"{OTHER}:7",) and owned(cur) == f"{OTHER}:7"
    cur.execute("INSERT INTO t VALUES (1)")
    assert owned(cur) == ""
    # As in MySQL: changes need another value, other statements do not.
    for sql in ("INSERT INTO t VALUES (2)", "CREATE TABLE u (id INT)", "DROP DATABASE rep"):
        fails(cur, sql, 1837)
    cur.execute("SELECT * FROM t")
    cur.execute("BEGIN")
    cur.execute("COMMIT")
    cur.execute(f"SET gtid_next = '{OTHER}:8'")
    cur.execute("BEGIN")
    fails(cur, f"SET gtid_next = '{OTHER}:9'", 1766)
    cur.execute("INSERT INTO t VALUES (2)")
    fails(cur, "CREATE TABLE u (id INT)", 1778)
    fails(cur, "BEGIN", 1778)
    cur.execute("COMMIT")
    # Neither of these changes anything.
    cur.execute(f"SET gtid_next = '{OTHER}:9'")
    cur.execute("BEGIN")
    cur.execute("COMMIT")
    cur.execute(f"SET gtid_next = '{OTHER}:10'")
    cur.execute("COMMIT")
    cur.execute(f"SET gtid_next = '{OTHER}:12'")
    cur.execute("CREATE TABLE u (id INT)")
    cur.execute(f"SET gtid_next = '{OTHER}:13'")
    cur.execute("CREATE TABLE IF NOT EXISTS u (id INT)")
    # A rollback and a statement that fails give it back.
    for sql in ("ROLLBACK", "INSERT INTO t VALUES (1)", "CREATE TABLE u (id INT)", "SET gtid_next = 'AUTOMATIC'"):
        cur.execute(f"SET gtid_next = '{OTHER}:20'")
        try:
            cur.execute(sql)
        except pymysql.err.Error:
            pass
        assert owned(cur) == "", sql
    cur.execute("SET gtid_next = 'AUTOMATIC'")
    cur.execute("INSERT INTO t VALUES (3)")
    found = [e for e in events(cur)[before:] if not e.startswith(("Table_map", "Write_rows", "Xid"))]
    cur.execute("SELECT @@server_uuid")
    uuid = cur.fetchone()[0]
    gtid = "Gtid SET @@SESSION.GTID_NEXT= '"
    assert [e.split(" /* xid")[0] for e in found] == [
        f"{gtid}{OTHER}:7'", "Query BEGIN", f"{gtid}{OTHER}:8'", "Query BEGIN",
        f"{gtid}{OTHER}:9'", "Query BEGIN", "Query COMMIT", f"{gtid}{OTHER}:10'", "Query BEGIN", "Query COMMIT",
        f"{gtid}{OTHER}:12'", "Query use `rep`; CREATE TABLE u (id INT)",
        f"{gtid}{OTHER}:13'", "Query use `rep`; CREATE TABLE IF NOT EXISTS u (id INT)",
        f"{gtid}{uuid}:3'", "Query BEGIN"], found
    expected = sorted([f"{OTHER}:7-10:12-13", f"{uuid}:1-3"])
    assert sorted(executed(cur).split(",")) == expected
    srv.kill()
    srv.start()
    cur = srv.connect(database="rep").cursor()
    assert sorted(executed(cur).split(",")) == expected
    cur.execute("SELECT id FROM t ORDER BY id")
    assert cur.fetchall() == ((1,), (2,), (3,))
    with Follower(srv) as f:
        caught_up(cur, f.cur)
        replica.compare(cur, f.cur, "rep")


def test_executed_transactions_are_left_out(srv):
    cur = begin(srv)
    cur.execute("CREATE TABLE t (id INT PRIMARY KEY)")
    for value in (1, 2):
        cur.execute(f"SET gtid_next = '{OTHER}:1'")
        assert owned(cur) == (f"{OTHER}:1" if value == 1 else "")
        cur.execute("BEGIN")
        cur.execute(f"INSERT INTO t VALUES ({value})")
        cur.execute("COMMIT")
        fails(cur, "INSERT INTO t VALUES (9)", 1837)
    cur.execute(f"SET gtid_next = '{OTHER}:1'")
    cur.execute("DROP TABLE t")
    cur.execute("SET gtid_next = 'AUTOMATIC'")
    cur.execute("SELECT id FROM t")
    assert cur.fetchall() == ((1,),)


def test_values_are_checked(srv):
    cur = begin(srv)
    for text in ("x", "", f"{OTHER}:0", f"{OTHER}:1-2", "AUTOMATIC:9", "0-1-2"):
        fails(cur, f"SET gtid_next = '{text}'", 1774)
    fails(cur, "SET gtid_next = NULL", 1231)
    fails(cur, "SET gtid_next = 5", 1232)
    fails(cur, "SET gtid_next = 'ANONYMOUS'", 1782)
    cur.execute("SELECT @@server_uuid")
    for text in (f"{OTHER}:tag:1", "AUTOMATIC:tag", cur.fetchone()[0] + ":99"):
        fails(cur, f"SET gtid_next = '{text}'", 1235)
    cur.execute(f"SET gtid_next = '{OTHER}:1'")
    fails(cur, "SET sql_log_bin = 0", 1235)
    # Another session waits until the first one has given it back.
    other = srv.connect().cursor()
    waiting = threading.Thread(target=other.execute, args=(f"SET gtid_next = '{OTHER}:1'",))
    waiting.start()
    waiting.join(0.3)
    assert waiting.is_alive()
    cur.execute("ROLLBACK")
    waiting.join()
    assert owned(other) == f"{OTHER}:1"
    # The end of a connection gives it back.
    other.connection.close()
    cur.execute(f"SET gtid_next = '{OTHER}:1'")
    cur.execute("COMMIT")
    # COM_RESET_CONNECTION sets the variable back.
    cur.execute(f"SET gtid_next = '{OTHER}:2'")
    cur.connection._execute_command(31, b"")
    cur.connection._read_packet()
    cur.execute("CREATE TABLE rep.u (id INT)")
    with server.Server({"server_id": 75}) as plain:
        c = plain.connect().cursor()
        fails(c, f"SET gtid_next = '{OTHER}:1'", 1781)
        c.execute("SET gtid_next = 'ANONYMOUS'")
        c.execute("SET gtid_next = 'AUTOMATIC'")


def printed(data):
    """The statements that mysqlbinlog makes of a file: settings, statements, and BINLOG."""
    def binlog(*parts):
        return "BINLOG '\n" + "\n".join(base64.encodebytes(part).decode() for part in parts) + "'"
    rows = []
    for event in binlog_source.events(data):
        kind, body = event[4], event[19:-4]
        if kind == FORMAT:
            yield binlog(event)
        elif kind == GTID:
            uuid, number = body[1:17].hex(), int.from_bytes(body[17:25], "little")
            yield f"SET gtid_next = '{uuid}:{number}'"
        elif kind == QUERY:
            needs_none = event[17] & 8
            size, settings = body[8], int.from_bytes(body[11:13], "little")
            text = body[13 + settings:]
            if size and not needs_none:
                yield f"USE {text[:size].decode()}"
            yield f"SET timestamp = {int.from_bytes(event[:4], 'little')}"
            yield text[size + 1:].decode()
        elif kind in ROWS:
            rows.append(event)
            # The last event of a statement.
            if kind != 19 and kind != 29 and body[6] & 1:
                yield binlog(*rows)
                rows = []
        elif kind == XID:
            yield "COMMIT"


MADE = [
    "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(20), n INT DEFAULT 1, KEY (v))",
    "INSERT INTO t (v) VALUES ('one'), ('two'), (NULL)",
    "UPDATE t SET v = 'zwei' WHERE id = 2",
    "DELETE FROM t WHERE id = 1",
    "REPLACE INTO t VALUES (3, 'three', 3), (4, 'four', 4)",
    "CREATE TABLE parent (id INT PRIMARY KEY)",
    "CREATE TABLE child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE)",
    "INSERT INTO parent VALUES (1), (2)",
    "INSERT INTO child VALUES (1, 1), (2, 1), (3, 2)",
    "DELETE FROM parent WHERE id = 1",
    "BEGIN",
    "INSERT INTO t (v) VALUES ('in a transaction')",
    "UPDATE t, parent SET t.v = 'several', parent.id = 30 WHERE t.id = 3 AND parent.id = 9",
    "SET binlog_row_image = MINIMAL",
    "UPDATE t SET n = 5 WHERE id = 4",
    "INSERT INTO t (v) VALUES ('minimal')",
    "COMMIT",
    "ALTER TABLE t ADD COLUMN j JSON",
    "UPDATE t SET j = JSON_OBJECT('k', id)",
    "CREATE TABLE gone (id INT)",
    "INSERT INTO gone VALUES (1)",
    "TRUNCATE TABLE gone",
    "INSERT INTO gone VALUES (2)",
]


def test_printed_events_make_the_same_tables(srv):
    src = begin(srv)
    src.execute("SET SESSION binlog_rows_query_log_events = ON")
    for sql in MADE:
        src.execute(sql)
    src.execute("SHOW BINARY LOG STATUS")
    file = src.fetchone()[0]
    src.execute("FLUSH BINARY LOGS")
    with open(os.path.join(srv.datadir, file), "rb") as log:
        statements = list(printed(log.read()))
    with server.Server({**OPTIONS, "server_id": 74}) as copy:
        for _ in range(2):
            # The second time there is nothing left to do.
            cur = copy.connect().cursor()
            for sql in statements:
                cur.execute(sql)
            cur.execute("SET gtid_next = 'AUTOMATIC'")
            replica.compare(src, cur, "rep")


def test_binlog_statement_refuses_other_texts(srv):
    cur = begin(srv)
    for text, code in (("''", 1149), ("'x'", 1575), ("'AAAA'", 1149), ("'!!!!'", 1575), ("NULL", 1064)):
        fails(cur, f"BINLOG {text}", code)
    src = srv.connect().cursor()
    src.execute("CREATE TABLE rep.t (id INT)")
    src.execute("INSERT INTO rep.t VALUES (1)")
    src.execute("SHOW BINARY LOG STATUS")
    file = src.fetchone()[0]
    with open(os.path.join(srv.datadir, file), "rb") as log:
        found = {event[4]: event for event in binlog_source.events(log.read())}
    text = {kind: base64.b64encode(event).decode() for kind, event in found.items()}
    fails(cur, f"BINLOG '{text[30]}'", 1609)
    cur.execute(f"BINLOG '{text[FORMAT]}'")
    fails(cur, f"BINLOG '{text[QUERY]}'", 1730)
    fails(cur, f"BINLOG '{text[30]}'", 1610)
    cur.execute(f"BINLOG '{text[19]}\n{text[30]}'")
    cur.execute("SELECT COUNT(*) FROM rep.t")
    assert cur.fetchone() == (2,)
    cur.execute("CREATE USER plain IDENTIFIED BY 'p'")
    cur.execute("GRANT ALL ON rep.* TO plain")
    plain = srv.connect(user="plain", password="p").cursor()
    fails(plain, f"BINLOG '{text[FORMAT]}'", 1227)
    fails(plain, f"SET gtid_next = '{OTHER}:77'", 1227)
    cur.execute("DROP USER plain")


def test_empty_transaction_goes_past_an_error(srv):
    src = begin(srv)
    src.execute("CREATE TABLE t (id INT PRIMARY KEY)")
    with Follower(srv, log_bin="ON", gtid_mode="ON") as f:
        caught_up(src, f.cur)
        f.cur.execute("SET sql_log_bin = 0")
        f.cur.execute("INSERT INTO rep.t VALUES (5)")
        f.cur.execute("SET sql_log_bin = 1")
        src.execute("INSERT INTO t VALUES (5)")
        src.execute("INSERT INTO t VALUES (6)")
        s = replica.wait_stopped(f.cur)
        assert s["Last_SQL_Errno"] == 1062, s
        uuid, last = executed(src).split(":1-")
        f.cur.execute("STOP REPLICA")
        f.cur.execute(f"SET gtid_next = '{uuid}:{int(last) - 1}'")
        f.cur.execute("BEGIN")
        f.cur.execute("COMMIT")
        f.cur.execute("SET gtid_next = 'AUTOMATIC'")
        f.cur.execute("START REPLICA")
        replica.wait(f.cur, lambda s: executed(f.cur) == f"{uuid}:1-{last}")
        replica.compare(src, f.cur, "rep")
