"""The status at the end of an answer says whether a table was read without the help of an index.
The flags were captured from MySQL 9.7.4."""
import struct

from wire import Session, lenenc

NO_INDEX_USED, NO_GOOD_INDEX_USED = 0x20, 0x10
WITHOUT = """
SELECT * FROM t
SELECT * FROM t WHERE v = 1
SELECT * FROM t JOIN u ON t.v = u.v
SELECT * FROM t JOIN u ON t.v = u.id
SELECT * FROM t WHERE id IN (SELECT v FROM u)
SELECT * FROM t WHERE id = 1 AND EXISTS (SELECT 1 FROM u WHERE u.v = t.v)
SELECT * FROM t WHERE id = 1 UNION SELECT * FROM u
SELECT * FROM (SELECT * FROM t LIMIT 3) d
SELECT MAX(v) FROM t
SELECT DISTINCT v FROM t
UPDATE t SET s = 'a' WHERE v = 1
UPDATE t SET s = 'b'
DELETE FROM t WHERE v = 99
INSERT IGNORE INTO u SELECT id + 100, k, v, s FROM t
DO (SELECT COUNT(v) FROM t)
"""
WITH = """
SELECT * FROM t WHERE id = 1
SELECT * FROM t WHERE id IN (1, 2)
SELECT id FROM t
SELECT k FROM t
SELECT COUNT(*) FROM t
SELECT 1
SELECT * FROM t ORDER BY id LIMIT 2
SELECT * FROM t JOIN u ON t.id = u.id WHERE t.id = 3
SELECT * FROM (SELECT * FROM t WHERE id = 1) d
SELECT k, COUNT(*) FROM t GROUP BY k
SELECT * FROM t FORCE INDEX (k) WHERE k > 2
SELECT * FROM t WHERE id > 5
SELECT k FROM t WHERE k = 1
SELECT k FROM t ORDER BY k LIMIT 1
UPDATE t SET s = 'b' WHERE id = 1
DELETE FROM t WHERE id = 99
INSERT IGNORE INTO u VALUES (1000, 1, 1, 1)
REPLACE INTO u VALUES (1000, 1, 1, 1)
SHOW TABLES
SELECT * FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = 'x'
EXPLAIN SELECT * FROM t
BEGIN
COMMIT
"""


def status(session, sql):
    """The status flags at the end of a statement's answer."""
    session.conn._write_bytes(struct.pack("<I", len(sql) + 1)[:3] + b"\0\x03" + sql.encode())
    packet = session.packet()
    assert packet[0] != 0xFF, (sql, packet)
    if packet[0] == 0:
        return struct.unpack_from("<H", packet, lenenc(packet, lenenc(packet, 1)[1])[1])[0]
    ends = 0
    while ends < 2:
        packet = session.packet()
        ends += packet[0] == 0xFE and len(packet) < 9
    return struct.unpack_from("<H", packet, 3)[0]


def test_who_used_no_index(srv):
    cur = srv.connect().cursor()
    cur.execute("CREATE DATABASE flags")
    cur.execute("USE flags")
    for name in "tu":
        cur.execute(f"CREATE TABLE {name} (id INT PRIMARY KEY, k INT, v INT, s VARCHAR(20), KEY k (k))")
        cur.executemany(f"INSERT INTO {name} VALUES (%s, %s, %s, %s)", [(n, n % 7, n, f"x{n}") for n in range(1, 41)])
    session = Session(host="127.0.0.1", port=srv.port, user="root", database="flags")
    wrong = []
    for text, wanted in ((WITHOUT, NO_INDEX_USED), (WITH, 0)):
        for sql in text.strip().split("\n"):
            # Run twice: the second time from the plan cache.
            for _ in range(2):
                flags = status(session, sql) & (NO_INDEX_USED | NO_GOOD_INDEX_USED)
                if flags != wanted:
                    wrong.append((sql, flags))
    assert not wrong, wrong
