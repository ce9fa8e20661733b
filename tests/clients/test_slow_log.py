"""The slow query log: what is in it, when it is written, and that the lab reads it."""
import os
import re
import struct
import time

import lab
from wire import EXECUTE, PREPARE, Command, Session

OPTIONS = {"slow_query_log": "ON", "slow_query_log_file": "slow.log", "long_query_time": "0"}


def contents(srv, name, wanted):
    """The log's text, once `wanted` is in it: it is written behind the answer."""
    path = os.path.join(srv.datadir, name)
    for _ in range(1200):
        text = open(path, encoding="utf-8").read() if os.path.exists(path) else ""
        if wanted in text:
            return text
        time.sleep(0.05)
    raise AssertionError(f"{wanted!r} is not in {text!r}")


def status(cur, name):
    cur.execute(f"SHOW GLOBAL STATUS LIKE '{name}'")
    return int(cur.fetchone()[1])


def execute(session, sql, types, values):
    """Prepares and executes over the binary protocol."""
    session.run(Command(bytes([PREPARE]) + sql.encode(), sql, "s"))
    payload = bytes([EXECUTE]) + bytes(4) + b"\0" + struct.pack("<I", 1) + b"\0" + b"\1" + types + values
    return session.run(Command(payload, sql, "s"))


def test_entries(srv):
    cur = srv.connect().cursor()
    cur.execute("CREATE DATABASE slow")
    cur.execute("USE slow")
    cur.execute("CREATE TABLE t (a INT PRIMARY KEY, s VARCHAR(20))")
    cur.execute("INSERT INTO t VALUES (1,'x'), (2,'it''s'), (3,'z')")
    cur.execute("SELECT s FROM t WHERE a IN (1, 3, 7) -- as it came")
    cur.execute("CREATE USER hidden@localhost IDENTIFIED BY 'open sesame'")
    wire = Session(host="127.0.0.1", port=srv.port, user="root", database="slow")
    answer = execute(wire, "SELECT a FROM t WHERE s = ? AND a < ?", b"\xfd\0\x03\0", b"\x04it's" + struct.pack("<i", 9))
    assert any(p.endswith(struct.pack("<i", 2)) for p in answer), answer
    cur.execute("SELECT 'the end'")
    text = contents(srv, "slow.log", "SELECT 'the end';\n")
    assert text.startswith("nfold, Version: "), text[:200]
    assert "open sesame" not in text and "IDENTIFIED BY <secret>;\n" in text
    assert "SELECT a FROM t WHERE s = 'it''s' AND a < 9;\n" in text
    entry = re.search(r"# Time: \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z\n"
                      r"# User@Host: root\[root\] @ \S* ?\[[0-9.]*\]  Id: +\d+\n"
                      r"# Query_time: (\d+\.\d{6})  Lock_time: \d+\.\d{6} Rows_sent: 2  Rows_examined: (\d+)\n"
                      r"SET timestamp=(\d+);\nSELECT s FROM t WHERE a IN \(1, 3, 7\)", text)
    assert entry, text
    assert float(entry[1]) < 60 and int(entry[2]) == 2 and abs(int(entry[3]) - time.time()) < 600
    assert text.count("\nuse slow;\n") == 1, "once, until another database follows"


def test_switches(srv):
    conn = srv.connect()
    cur = conn.cursor()
    cur.execute("SET SESSION long_query_time = 0.1")
    before = status(cur, "Slow_queries")
    cur.execute("SELECT 'quick'")
    cur.execute("SELECT 'slow', SLEEP(0.15)")
    assert status(cur, "Slow_queries") == before + 1
    assert "'quick'" not in contents(srv, "slow.log", "SELECT 'slow', SLEEP(0.15);\n")
    cur.execute("SET SESSION long_query_time = 0, min_examined_row_limit = 1")
    cur.execute("SELECT 'examines nothing'")
    cur.execute("SET SESSION min_examined_row_limit = 0")
    cur.execute("SET GLOBAL slow_query_log_file = 'other.log'")
    cur.execute("SELECT 'in the other'")
    assert "examines nothing" not in contents(srv, "slow.log", "SET SESSION min_examined_row_limit = 0;\n")
    contents(srv, "other.log", "SELECT 'in the other';\n")
    os.rename(os.path.join(srv.datadir, "other.log"), os.path.join(srv.datadir, "other.1"))
    cur.execute("FLUSH SLOW LOGS")
    cur.execute("SELECT 'behind the turn'")
    contents(srv, "other.log", "SELECT 'behind the turn';\n")
    cur.execute("SET GLOBAL slow_query_log = OFF")
    cur.execute("SELECT 'while it is off'")
    cur.execute("SET GLOBAL slow_query_log = ON")
    cur.execute("SELECT 'on again'")
    assert "while it is off" not in contents(srv, "other.log", "SELECT 'on again';\n")
    assert status(cur, "Nfold_slow_log_lost") == 0
    cur.execute("SET GLOBAL slow_query_log_file = 'slow.log'")


def test_lab_digests_the_slow_log(srv):
    cur = srv.connect().cursor()
    for n in range(1, 8):
        cur.execute(f"SELECT 'for the lab', {n} IN ({','.join(['5'] * n)})")
    contents(srv, "slow.log", "7 IN (5,5,5,5,5,5,5);\n")
    assert lab.digested(os.path.join(srv.datadir, "slow.log"), "for the lab") == 7
