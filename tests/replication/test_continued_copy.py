"""A copy of `nfold follow` that was killed goes on where it was. The source is another Nfold, and
with NFOLD_REPLICATION_SOURCE=PORT a real MySQL as in test_mysql.py."""

import os
import random
import re
import threading
import time

import pymysql
import replica
from test_follow import Follower, begin, caught_up, verify
from test_mysql import PORT, source

OPTIONS = {"server_id": 71, "log_bin": "ON", "gtid_mode": "ON", "innodb_buffer_pool_size": "256M"}
# Parts of 16 MiB are the unit that goes on.
ROWS = 60000
ROW_BYTES = 1400


def fill(src):
    """A table of several parts with a unique key, one that refers to it, and two small ones."""
    src.execute("CREATE TABLE big (id INT PRIMARY KEY AUTO_INCREMENT, u INT, n INT, v VARCHAR(2000), UNIQUE KEY (u), KEY (n))")
    src.execute("SET cte_max_recursion_depth = 10000000")
    src.execute("INSERT INTO big (id, u, n, v) WITH RECURSIVE s (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < %s) "
                "SELECT i, i, i %% 1000, REPEAT(CHAR(97 + i %% 26), %s) FROM s", (ROWS, ROW_BYTES))
    src.execute("CREATE TABLE child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES big (id))")
    src.execute("INSERT INTO child SELECT id, id FROM big WHERE id % 100 = 0")
    src.execute("CREATE TABLE pair (a VARCHAR(20), b BIGINT UNSIGNED, c JSON, g INT AS (b + 1) STORED, PRIMARY KEY (a, b))")
    src.execute("INSERT INTO pair (a, b, c) SELECT LEFT(v, 9), id, JSON_OBJECT('n', n) FROM big WHERE id < 500")
    src.execute("CREATE VIEW few AS SELECT id FROM big WHERE id < 10")
    src.execute("ANALYZE TABLE big")
    src.fetchall()


def change(c, rnd):
    """One transaction of changes that meet rows of several moments: unique values and primary keys
    move from row to row, rows are deleted and come again."""
    def some():
        return rnd.randrange(1, ROWS)
    a, b = some(), some()
    c.execute("BEGIN")
    c.execute("UPDATE rep.big SET u = -u - 1000000 WHERE id IN (%s, %s)", (a, b))
    c.execute("SELECT id, u FROM rep.big WHERE id IN (%s, %s)", (a, b))
    rows = c.fetchall()
    if len(rows) == 2:
        (x, u), (y, w) = rows
        c.execute("UPDATE rep.big SET u = %s WHERE id = %s", (-w - 1000000, x))
        c.execute("UPDATE rep.big SET u = %s WHERE id = %s", (-u - 1000000, y))
    elif rows:
        c.execute("UPDATE rep.big SET u = -u - 1000000 WHERE id = %s", (rows[0][0],))
    gone = some()
    c.execute("DELETE FROM rep.child WHERE p = %s", (gone,))
    c.execute("SELECT u FROM rep.big WHERE id = %s", (gone,))
    found = c.fetchone()
    c.execute("DELETE FROM rep.big WHERE id = %s", (gone,))
    if found:
        c.execute("INSERT INTO rep.big (u, n, v) VALUES (%s, %s, 'again')", (found[0], rnd.randrange(1000)))
        c.execute("INSERT INTO rep.child VALUES (LAST_INSERT_ID(), LAST_INSERT_ID())")
    c.execute("UPDATE rep.pair SET b = b + 100000, c = JSON_SET(c, '$.m', b) WHERE b = %s", (rnd.randrange(500),))
    c.execute("UPDATE rep.big SET n = n + 1, v = CONCAT(LEFT(v, 100), 'x') WHERE id BETWEEN %s AND %s", (a, a + 3))
    c.execute("COMMIT")


def source_of(srv):
    """The port of the source."""
    if PORT is None:
        cur = srv.connect().cursor()
        cur.execute("CREATE USER IF NOT EXISTS sb IDENTIFIED BY 'sb'")
        cur.execute("GRANT ALL ON *.* TO sb")
    return PORT or srv.port


class Changes:
    """Transactions on the source, until the end of the `with` block."""

    def __init__(self, port):
        self.port = port

    def __enter__(self):
        self.ended = threading.Event()
        self.failed = None
        self.thread = threading.Thread(target=self.run)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()
        assert self.failed is None, self.failed

    def run(self):
        rnd, c = random.Random(7), source(self.port).cursor()
        try:
            while not self.ended.is_set():
                change(c, rnd)
                time.sleep(0.002)
        except pymysql.Error as e:
            self.failed = e


def parts_left(f):
    """The number of parts that the running copy has still to do; None before the first."""
    try:
        with pymysql.connect(unix_socket=f"{f.datadir}/nfold-copy.sock", user="root") as c:
            cursor = c.cursor()
            cursor.execute("SELECT (SELECT COUNT(*) FROM nfold_unfinished_copy.chunks) FROM nfold_unfinished_copy.facts "
                           "WHERE name = 'source'")
            row = cursor.fetchone()
            return row and row[0]
    except (pymysql.Error, OSError):
        return None


def kill_when(f, condition):
    """Starts the copy, and kills it once `condition(parts left)`."""
    f.launch()
    end = time.monotonic() + 60
    while time.monotonic() < end:
        left = parts_left(f)
        if left is not None and condition(left):
            break
        assert f.process.poll() is None, f.tail()
        time.sleep(0.005)
    f.kill()
    f.log.close()
    return left


def test_killed_copy_continues_and_is_equal(srv):
    port = source_of(srv)
    src = begin(port)
    fill(src)
    f = Follower("rep", "--jobs", "1", source_port=port)
    with Changes(port):
        seen = []

        def another_is_done(left):
            seen.append(left)
            return left < max(seen)
        for _ in range(2):
            seen.clear()
            left = kill_when(f, another_is_done)
            assert left, (seen, f.tail())
            time.sleep(0.5)
        f.start()
        said = f.said()
        left = [int(n) for n in re.findall("continuing the copy: ([0-9]+) parts are left", said)]
        assert len(left) == 2 and left[1] < 8, said
        assert "applying what the source has changed since the copy began" in said, said
        code, out = verify(f, "rep")
        assert code == 0 and "equal: 3 tables" in out, (code, out)
    src, cur = caught_up(f)
    replica.compare(src, cur, "rep")
    cur.execute("SHOW DATABASES LIKE 'nfold%'")
    assert cur.fetchall() == ()
    # As if it was killed before the directory was complete.
    f.stop()
    f.log.close()
    with open(os.path.join(f.datadir, "nfold.unfinished-copy"), "w"):
        pass
    f.start()
    assert "the copy is complete" in f.said(), f.said()
    src, cur = caught_up(f)
    replica.compare(src, cur, "rep")
    cur.execute("SELECT COUNT(*) FROM rep.few")
    src.execute("SELECT COUNT(*) FROM rep.few")
    assert cur.fetchone() == src.fetchone()
    f.__exit__(None, None, None)


def test_copy_begins_anew_where_it_cannot_continue(srv):
    port = source_of(srv)
    src = begin(port)
    fill(src)

    def killed(f):
        seen = []

        def one_is_done(left):
            seen.append(left)
            return left < max(seen)
        left = kill_when(f, one_is_done)
        assert left, (seen, f.tail())

    def copied_anew(f, why, tables):
        f.start()
        said = f.said()
        assert f"the unfinished copy is not continued: {why}" in said, (why, said)
        code, out = verify(f, "rep")
        assert code == 0 and f"equal: {tables} tables" in out, (code, out)
        f.__exit__(None, None, None)

    f = Follower("rep", "--jobs", "1", source_port=port)
    killed(f)
    src.execute("ALTER TABLE pair ADD COLUMN later INT")
    copied_anew(f, "the tables of the source have changed", 3)

    # The definitions are as before, but statements changed them meanwhile.
    f = Follower("rep", "--jobs", "1", source_port=port)
    killed(f)
    src.execute("RENAME TABLE child TO c, pair TO child, c TO pair")
    src.execute("RENAME TABLE child TO c, pair TO child, c TO pair")
    f.start_refused()
    assert "the parts of the copy cannot be joined" in f.tail() and "RENAME TABLE" in f.tail(), f.tail()
    f.log.close()
    copied_anew(f, "it had not begun to copy rows", 3)

    f = Follower("rep", "--jobs", "1", source_port=port)
    killed(f)
    src.execute("CREATE TABLE nokey (a INT)")
    src.execute("INSERT INTO nokey VALUES (1), (1)")
    copied_anew(f, "`rep`.`nokey` has no primary key", 4)

    src.execute("DROP TABLE nokey")
    f = Follower("rep", "--jobs", "1", source_port=port)
    killed(f)
    src.execute("FLUSH BINARY LOGS")
    src.execute("SHOW BINARY LOG STATUS")
    src.execute("PURGE BINARY LOGS TO %s", (src.fetchone()[0],))
    copied_anew(f, "the source has no file", 3)
    src.execute("DROP DATABASE rep")
