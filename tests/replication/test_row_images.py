"""binlog_row_image and binlog_rows_query_log_events: the row events are those that a MySQL 9.7
wrote into recorded/row_images.txt (recorded/make-images). With NFOLD_REPLICATION_SOURCE the running
MySQL is compared with that file, too."""

import os

import replica
import row_events
import test_mysql as of_mysql
import test_source as of_source
from test_source import Follower, caught_up

OPTIONS = {**of_source.OPTIONS, "server_id": 71}
RECORDED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "recorded", "row_images.txt")

TABLES = [
    "CREATE TABLE keyed (id INT PRIMARY KEY AUTO_INCREMENT, a INT DEFAULT 5, b VARCHAR(20), t TEXT, j JSON, "
    "u TIMESTAMP NOT NULL DEFAULT '2020-01-01 00:00:00' ON UPDATE CURRENT_TIMESTAMP)",
    "CREATE TABLE uniq (a INT, b INT NOT NULL, c TEXT, d INT, UNIQUE KEY (a), UNIQUE KEY (b))",
    "CREATE TABLE bare (a INT, b TEXT, c VARCHAR(10))",
    "CREATE TABLE computed (id INT PRIMARY KEY, a INT, g INT AS (a + 1) STORED, h INT AS (a * 2) VIRTUAL, "
    "d INT DEFAULT (3 + 4), b BLOB)",
    "CREATE TABLE prefixed (k TEXT, v INT, PRIMARY KEY (k(3)))",
    "CREATE TABLE wide (id INT PRIMARY KEY, " + ", ".join(f"c{n} INT DEFAULT {n}" for n in range(20)) + ", t LONGTEXT)",
]
CHANGES = [
    "INSERT INTO keyed (b) VALUES ('one')",
    "INSERT INTO keyed (id, a, b, t, j) VALUES (7, NULL, 'x', 'text', '{\"k\": 1}'), (8, 2, 'y', NULL, '[1]')",
    "UPDATE keyed SET a = 6 WHERE id = 7",
    "UPDATE keyed SET b = 'x', a = 7 WHERE id = 7",
    "UPDATE keyed SET t = 'changed' WHERE id = 7",
    "UPDATE keyed SET t = 'changed', a = 8 WHERE id = 7",
    "UPDATE keyed SET j = '{\"k\": 2}' WHERE id = 7",
    "UPDATE keyed SET id = 70 WHERE id = 7",
    "INSERT INTO keyed (id, a) VALUES (70, 1) ON DUPLICATE KEY UPDATE b = 'dup'",
    "INSERT INTO keyed (id, a) VALUES (71, 1) ON DUPLICATE KEY UPDATE b = 'dup'",
    "INSERT IGNORE INTO keyed SET id = 73, b = 'set'",
    "INSERT INTO keyed (id) SELECT 74",
    "INSERT INTO keyed VALUES (75, 1, 'b', NULL, NULL, DEFAULT)",
    "INSERT INTO keyed () VALUES ()",
    "DELETE FROM keyed WHERE id IN (8, 75)",
    "INSERT INTO uniq VALUES (1, 1, 'c', 1), (NULL, 2, 'd', 2)",
    "UPDATE uniq SET d = 3 WHERE b = 2",
    "DELETE FROM uniq WHERE b = 1",
    "INSERT INTO bare (a, b) VALUES (1, 'text'), (2, 'more')",
    "UPDATE bare SET c = 'z' WHERE a = 1",
    "DELETE FROM bare",
    "INSERT INTO computed (id, a, b) VALUES (1, 10, 'blob'), (2, 20, NULL)",
    "INSERT INTO computed (id) VALUES (3)",
    "UPDATE computed SET a = 11 WHERE id = 1",
    "UPDATE computed SET b = 'other' WHERE id = 2",
    "DELETE FROM computed",
    "INSERT INTO prefixed VALUES ('abcdef', 1)",
    "UPDATE prefixed SET v = 2",
    "DELETE FROM prefixed",
    "INSERT INTO wide (id, c3) VALUES (1, 30)",
    "UPDATE wide SET c0 = 1, c19 = 1",
    "UPDATE wide SET t = REPEAT('long', 100)",
    "UPDATE wide SET c5 = 50",
    "UPDATE wide JOIN keyed ON keyed.id = 70 SET wide.c6 = 1",
    "DELETE FROM wide",
]
# Session settings, and the statements under them.
CASES = [("SET binlog_row_image = MINIMAL", CHANGES), ("SET binlog_row_image = NOBLOB", CHANGES),
         ("SET binlog_row_image = FULL, binlog_rows_query_log_events = ON",
          ["INSERT INTO keyed (id, b) VALUES (1, 'ä')", "UPDATE keyed SET b = 'q' WHERE id = 99",
           "UPDATE /* a comment */ keyed SET b = 'q'", "DELETE FROM keyed"])]


def written(connect):
    """The events that a server writes, behind each statement."""
    lines = []
    for setting, changes in CASES:
        conn = connect()
        cur = conn.cursor()
        for sql in ("DROP DATABASE IF EXISTS rep", "CREATE DATABASE rep", "USE rep", "SET time_zone = '+00:00'", *TABLES):
            cur.execute(sql)
        cur.execute(setting)
        lines.append(setting)
        for sql in changes:
            cur.execute("SHOW BINARY LOG STATUS")
            file, at = cur.fetchone()[:2]
            cur.execute("SET timestamp = 1600000000")
            cur.execute(sql)
            lines.append(sql)
            # It waits until the commit is in the file.
            cur.execute("SHOW BINARY LOG STATUS")
            # A dump ends the commands of its connection.
            reader = connect()
            lines += ["    " + event for event in row_events.shown(reader, file, at)]
            reader.close()
        conn.close()
    return lines


def recorded():
    with open(RECORDED, encoding="utf-8") as file:
        return file.read().splitlines()


def compare(found):
    statement = None
    wanted = recorded()
    for n, (a, b) in enumerate(zip(found, wanted)):
        statement = b if not b.startswith(" ") else statement
        assert a == b, f"line {n + 1}, {statement}:\n{a[:300]}\ninstead of\n{b[:300]}"
    assert len(found) == len(wanted)


def test_row_images_are_those_of_mysql(srv):
    src = of_source.begin(srv)
    with Follower(srv) as f:
        compare(written(srv.connect))
        # MySQL may write REPLACE as an update. Here it is a deletion and an insertion.
        for image in ("MINIMAL", "NOBLOB"):
            src.execute(f"SET binlog_row_image = {image}")
            for sql in ("INSERT INTO keyed (id, b, t) VALUES (1, 'b', 't')", "REPLACE INTO keyed (id, a) VALUES (1, 2), (72, 3)",
                        "REPLACE INTO uniq (a, b) VALUES (7, 7), (8, 7)", "INSERT INTO bare () VALUES ()"):
                src.execute(sql)
            caught_up(src, f.cur)
            replica.compare(src, f.cur, "rep")
            src.execute("DELETE FROM keyed")


@of_mysql.skipped
def test_mysql_writes_these_row_images(_):
    compare(written(of_mysql.source))
    of_mysql.source().cursor().execute("DROP DATABASE rep")
