"""The data directory of format v1 that tests/fixtures holds: how its content is made, and how it is
read."""
import json
import os

HERE = os.path.dirname(os.path.abspath(__file__))
FIXTURE = os.path.join(HERE, "..", "fixtures", "v1")
ARCHIVE = os.path.join(FIXTURE, "datadir.tar.xz")
EXPECTED = os.path.join(FIXTURE, "expected.json")
OPTIONS = {"innodb_redo_log_capacity": "8M", "innodb_buffer_pool_size": "16M", "innodb_log_buffer_size": "1M"}

NUMBERS = """CREATE TABLE numbers (id INT NOT NULL AUTO_INCREMENT, t TINYINT, tu TINYINT UNSIGNED, s SMALLINT, su SMALLINT UNSIGNED,
  m MEDIUMINT, mu MEDIUMINT UNSIGNED, i INT, iu INT UNSIGNED, b BIGINT, bu BIGINT UNSIGNED, d DECIMAL(20,6), dw DECIMAL(65,30),
  f FLOAT, db DOUBLE, bits BIT(17), y YEAR, PRIMARY KEY (id), KEY d (d), KEY b_desc (b DESC, t), UNIQUE KEY bu (bu))"""
STRINGS = """CREATE TABLE strings (k VARCHAR(40) NOT NULL, c CHAR(10), v VARCHAR(300) CHARACTER SET latin1,
  ci VARCHAR(50) COLLATE utf8mb4_general_ci, bin VARCHAR(50) COLLATE utf8mb4_bin, fb BINARY(8), vb VARBINARY(300), tt TINYTEXT, tx TEXT,
  mt MEDIUMTEXT, lt LONGTEXT, tb TINYBLOB, bl BLOB, mb MEDIUMBLOB, lb LONGBLOB, e ENUM('small','medium','LARGE'), st SET('a','b','c'),
  PRIMARY KEY (k), KEY c (c, e), KEY v (v(20)), KEY ci (ci), UNIQUE KEY bin (bin), KEY tx (tx(30)), KEY vb (vb))"""
MOMENTS = """CREATE TABLE moments (d DATE NOT NULL, n SMALLINT NOT NULL, t TIME, t6 TIME(6), dt DATETIME, dt3 DATETIME(3), ts TIMESTAMP NULL,
  ts6 TIMESTAMP(6) NULL DEFAULT CURRENT_TIMESTAMP(6), PRIMARY KEY (d DESC, n), KEY dt3 (dt3 DESC), KEY ts6 (ts6, n))"""
KEYLESS = "CREATE TABLE keyless (a INT, b VARCHAR(20), KEY b (b))"
MANY = """CREATE TABLE many (id BIGINT UNSIGNED NOT NULL, grp INT NOT NULL, name VARCHAR(80) NOT NULL, note VARCHAR(200), PRIMARY KEY (id),
  KEY grp (grp, name), KEY name (name))"""


def statements():
    """Everything that was committed: (database, statement) in order. Deterministic."""
    yield None, "CREATE DATABASE v1 CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_ai_ci"
    yield None, "CREATE DATABASE v1_latin CHARACTER SET latin1"
    for table in (NUMBERS, STRINGS, MOMENTS, KEYLESS, MANY):
        yield "v1", table
    yield "v1_latin", "CREATE TABLE words (w VARCHAR(30) NOT NULL PRIMARY KEY, n INT) COMMENT 'another database'"
    yield "v1_latin", "INSERT INTO words VALUES ('caf\u00e9', 1), ('na\u00efve', 2), ('zebra', 3)"
    yield "v1", "SET time_zone='+00:00'"
    yield "v1", ("INSERT INTO numbers VALUES (1,-128,0,-32768,0,-8388608,0,-2147483648,0,-9223372036854775808,0,-99999999999999.999999,"
                 "-99999999999999999999999999999999999.999999999999999999999999999999,-3.5e10,-1.7976931348623157e308,b'0',1901),"
                 "(2,127,255,32767,65535,8388607,16777215,2147483647,4294967295,9223372036854775807,18446744073709551615,"
                 "99999999999999.999999,0.000000000000000000000000000001,1.25,2.2250738585072014e-308,b'11111111111111111',2155),"
                 "(3,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL),"
                 "(4,0,1,0,1,0,1,0,1,0,1,0,0,0,0,b'1',0)")
    for i in range(10, 60):
        yield "v1", f"INSERT INTO numbers (t, s, i, b, bu, d, db) VALUES ({i - 40}, {i * 7}, {i * i}, {-i}, {i}, {i}.{i}, {i} / 8)"
    long = "".join(f"line {i} of a long text; " for i in range(4000))
    yield "v1", ("INSERT INTO strings VALUES ('empty','','','','',x'',x'','','','','',x'',x'',x'',x'','small',''),"
                 "('nulls',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL),"
                 "('plain','ab','latin \u00e9','Stra\u00dfe','bin',0x0001,0x00ff00ff,'tiny','text','medium','long',0x01,0x02,0x03,0x04,'LARGE','a,c'),"
                 "('wide \U0001f600','\u65e5\u672c\u8a9e','\u00fc','\u00c9TUDE','\u00c9tude',0xffffffffffffffff,0xff,'\u00e4','\u03a9mega','\U0001f680','\u4e2d',"
                 "0xff,0xfe,0xfd,0xfc,'medium','b')")
    yield "v1", (f"INSERT INTO strings (k, bin, tx, mt, lt, bl, lb) VALUES ('long', 'l1', '{long[:60000]}', '{long}', '{long * 2}', "
                 f"REPEAT(0x00ff10, 20000), REPEAT(0xdeadbeef, 50000))")
    yield "v1", f"INSERT INTO strings (k, bin, tx, lb) VALUES ('longer', 'l2', '{long[:9000]}', REPEAT(0x77, 300000))"
    yield "v1", "UPDATE strings SET lb = REPEAT(0x01020304, 30000), mt = 'shorter now' WHERE k = 'long'"
    yield "v1", ("INSERT INTO moments VALUES ('1000-01-01',1,'-838:59:59','-838:59:59.000000','1000-01-01 00:00:00','1000-01-01 00:00:00.001',"
                 "'1970-01-01 00:00:01','1970-01-01 00:00:01.000001'),"
                 "('9999-12-31',1,'838:59:59','12:34:56.789012','9999-12-31 23:59:59','9999-12-31 23:59:59.999','2038-01-19 03:14:07',"
                 "'2038-01-19 03:14:07.999999'),('2024-02-29',1,NULL,NULL,NULL,NULL,NULL,NULL),"
                 "('2024-02-29',2,'00:00:00','-00:00:00.5','2024-02-29 12:00:00','2024-02-29 12:00:00.5','2024-02-29 12:00:00','2024-02-29 12:00:00.25')")
    yield "v1", "INSERT INTO keyless VALUES (1,'one'),(2,'two'),(2,'two'),(NULL,NULL)"
    for first in range(0, 4000, 500):
        rows = ",".join(f"({i * 3}, {i % 37}, 'name {i * 7919 % 4001}', {'NULL' if i % 5 == 0 else repr('note ' * (i % 9))})"
                        for i in range(first, first + 500))
        yield "v1", f"INSERT INTO many VALUES {rows}"
    yield "v1", "DELETE FROM many WHERE grp = 5"
    yield "v1", "UPDATE many SET name = CONCAT('changed ', name), grp = grp + 100 WHERE grp = 7"
    yield "v1", "CREATE TABLE dropped (a INT)"
    yield "v1", "DROP TABLE dropped"
    yield "v1", "ALTER TABLE keyless ADD INDEX a (a)"


# Left open by kill -9: none of it may be seen afterwards.
UNFINISHED = [
    "UPDATE many SET note = 'never committed' WHERE id < 3000",
    "DELETE FROM many WHERE grp = 11",
    "INSERT INTO many VALUES (1000001, 1, 'never', 'committed'), (1000004, 2, 'never', REPEAT('x', 200))",
    "UPDATE strings SET lb = REPEAT(0x55, 100000), c = 'never' WHERE k IN ('long', 'plain')",
    "DELETE FROM numbers WHERE id % 2 = 0",
    "INSERT INTO keyless VALUES (3,'never')",
]

QUERIES = [
    "SELECT * FROM v1.numbers ORDER BY id",
    "SELECT id, HEX(bits) FROM v1.numbers ORDER BY id",
    "SELECT b, t FROM v1.numbers FORCE INDEX (b_desc) WHERE b < 100 ORDER BY b DESC",
    "SELECT k, c, v, ci, bin, HEX(fb), HEX(vb), tt, tx, HEX(tb), e, st, LENGTH(mt), LENGTH(lt), LENGTH(bl), LENGTH(mb), LENGTH(lb) "
    "FROM v1.strings ORDER BY bin, k",
    "SELECT k, SHA2(mt, 256), SHA2(lt, 256), SHA2(bl, 256), SHA2(mb, 256), SHA2(lb, 256) FROM v1.strings ORDER BY bin, k",
    "SELECT k FROM v1.strings FORCE INDEX (ci) WHERE ci = 'strasse' OR ci = '\u00c9tude' OR ci = '' ORDER BY k",
    "SELECT k FROM v1.strings FORCE INDEX (tx) WHERE tx LIKE 'line 0%' ORDER BY k",
    "SELECT * FROM v1.moments ORDER BY d, n",
    "SELECT n, dt3 FROM v1.moments FORCE INDEX (dt3) WHERE dt3 > '1900-01-01' ORDER BY dt3 DESC",
    "SELECT * FROM v1.keyless ORDER BY a, b",
    "SELECT COUNT(*) FROM v1.keyless FORCE INDEX (b) WHERE b >= 'a'",
    "SELECT * FROM v1.many ORDER BY id",
    "SELECT grp, name, id FROM v1.many FORCE INDEX (grp) WHERE grp BETWEEN 3 AND 12 ORDER BY grp, name, id",
    "SELECT id, grp FROM v1.many FORCE INDEX (name) WHERE name LIKE 'changed %' ORDER BY name",
    "SELECT * FROM v1_latin.words ORDER BY w",
    "SELECT table_schema, table_name FROM information_schema.tables WHERE table_schema LIKE 'v1%' ORDER BY 1, 2",
]

TABLES = ["v1.numbers", "v1.strings", "v1.moments", "v1.keyless", "v1.many", "v1_latin.words"]

# (user, password, may read v1_latin)
ACCOUNTS = [("reader", "a long password", True), ("native", "old", False), ("open", "", False)]


def account_statements():
    yield "CREATE USER reader@localhost IDENTIFIED WITH caching_sha2_password BY 'a long password'"
    yield "CREATE USER native@'127.0.0.1' IDENTIFIED WITH mysql_native_password BY 'old'"
    yield "CREATE USER open@'%'"
    yield "GRANT ALL ON v1.* TO reader@localhost"
    yield "GRANT ALL ON v1_latin.* TO reader@localhost"
    yield "GRANT ALL ON v1.* TO native@'127.0.0.1'"
    yield "GRANT ALL ON v1.* TO open@'%'"


def dump(conn):
    """What the queries answer, as plain values."""
    cur = conn.cursor()
    cur.execute("SET time_zone='+00:00'")
    out = []
    for sql in QUERIES:
        cur.execute(sql)
        out.append([[v if v is None or isinstance(v, (int, float)) else v.hex() if isinstance(v, bytes) else str(v) for v in row]
                    for row in cur.fetchall()])
    return out


def expected():
    with open(EXPECTED) as f:
        return json.load(f)["answers"]
