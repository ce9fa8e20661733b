"""Definitions that change beside everything else: connections that at random drop, rename, rebuild
and alter tables, write and roll back, hold snapshots, kill one another
and resize the pool, while readers check what must hold at every moment.

What must hold:
- a row of the tables `s0`... has v = 7 * id + 3, w = -k, u = id + 1 or its negative, a long column
  that tells its own length, and added columns have their default;
- two indexes of a table, read in one snapshot, have the same rows; a snapshot shows the same rows
the second time;
- transfers between `bank0` and `bank1` leave the sum of both as it is; these are never emptied or
dropped;
- a row of `led0` and `led1` whose insert was acknowledged is there;
- only those errors come that MySQL would give; each statement ends within `TIMEOUT_S`; the log
tells of no error.
"""
import random
import re
import threading
import time

import pymysql

# A small pool and a small log.
OPTIONS = {"innodb_buffer_pool_size": "16M", "innodb_redo_log_capacity": "16M", "nfold_workers": "2"}
TIMEOUT_S = 60
TABLES = 3
IDS = 1500
BANK_ROWS = 200
BANK_SUM = 2 * BANK_ROWS * 100
LETTERS = "abcdefgh"
# Columns and indexes of `s` tables that come and go: (column, definition, value); (index,
# definition).
EXTRA = [("e0", "INT NOT NULL DEFAULT 7", 7), ("e1", "VARCHAR(30) DEFAULT 'there'", "there"), ("e2", "BIGINT NULL", None)]
INDEXES = [("kk", "INDEX kk (k)"), ("uu", "UNIQUE uu (u)"), ("kv", "INDEX kv (k, v)"), ("ll", "INDEX ll (l(20))"), ("wu", "UNIQUE wu (w, u)"), ("lk", "INDEX lk (l(300), k)")]
TYPES = ["v BIGINT NOT NULL", "v DECIMAL(25,0) NOT NULL", "k BIGINT NOT NULL", "k INT NOT NULL", "l MEDIUMTEXT", "l LONGTEXT", "w BIGINT NOT NULL FIRST", "w INT NOT NULL AFTER k"]

# A table, column, index or database that another has taken away or made; locks, deadlocks, KILL; a
# definition newer than the snapshot; LOCK TABLES.
EXPECTED = {1146, 1051, 1054, 1072, 1091, 1176, 1049, 1008, 1050, 1060, 1061, 1007, 1205, 1213, 1317, 1412, 1099, 1100}
GONE = {2006, 2013, 1927, 1053}


class Wrong(Exception):
    """What must never be."""


def value(key):
    return 7 * key + 3


def long_text(key, length):
    return f"{key}:{length}:" + LETTERS[key % len(LETTERS)] * length


def check_row(key, v, k, w, u, text):
    if int(v) != value(key) or k != -w or u not in (key + 1, -key - 1):
        raise Wrong(f"row {key}: v={v} k={k} w={w} u={u}")
    if text is not None:
        of, length, rest = text.split(":", 2)
        if (int(of), int(length)) != (key, len(rest)) or rest.strip(LETTERS[key % len(LETTERS)]):
            raise Wrong(f"row {key}: long column {text[:40]!r}... of {len(text)}")


class Actor(threading.Thread):
    """A connection that does one thing after the other until the storm is over."""

    def __init__(self, storm, number, what):
        super().__init__(name=f"{what.__name__}-{number}", daemon=True)
        self.storm, self.what = storm, what
        self.rng = random.Random(f"{storm.seed}/{self.name}")
        self.conn = self.cur = self.statement = None
        self.began = 0.0
        self.done = self.refused = 0

    def run(self):
        while not self.storm.over():
            try:
                if self.conn is None:
                    self.connect()
                self.what(self)
                self.done += 1
            except pymysql.err.MySQLError as e:
                self.failed(e)
            except Wrong as e:
                self.storm.wrong(f"{self.name}: {e}; last statement: {self.statement}")
            except Exception as e:  # pymysql raises others where a connection ends in the middle
                if not self.storm.killed and self.storm.gentle:
                    self.storm.wrong(f"{self.name}: {e!r}; last statement: {self.statement}")
                self.close()
        self.close()

    def connect(self):
        self.statement, self.began = "connect", time.monotonic()
        self.conn = self.storm.srv.connect(read_timeout=TIMEOUT_S, connect_timeout=TIMEOUT_S)
        self.cur = self.conn.cursor()
        self.sql(f"SET SESSION lock_wait_timeout = {self.rng.choice((1, 2, 5))}, innodb_lock_wait_timeout = 2")

    def close(self):
        conn, self.conn = self.conn, None
        if conn is not None:
            try:
                conn._force_close()
            except Exception:
                pass

    def failed(self, e):
        number = e.args[0] if e.args else 0
        self.refused += 1
        if number in GONE or isinstance(e, pymysql.err.InterfaceError):
            if time.monotonic() - self.began >= TIMEOUT_S and not self.storm.killed:
                self.storm.wrong(f"{self.name}: no answer within {TIMEOUT_S} s: {self.statement}")
            self.close()
            if self.storm.killed or not self.storm.srv.alive():
                time.sleep(0.05)
            return
        if number not in EXPECTED and not (number == 1062 and ".dd'" in str(e)):
            self.storm.wrong(f"{self.name}: {e}: {self.statement}")
        try:
            self.cur.execute("ROLLBACK")
            self.cur.execute("UNLOCK TABLES")
            if number == 1146 and self.what is write and self.rng.random() < 0.1:
                create(self, table(self))
        except Exception:
            self.close()

    def sql(self, text, also=()):
        """Runs a statement and gives its rows; `also`: further errors that it may end with, for
        which None is given."""
        self.statement, self.began = text[:300], time.monotonic()
        try:
            self.cur.execute(text)
            return self.cur.fetchall()
        except pymysql.err.MySQLError as e:
            if e.args and e.args[0] in also:
                return None
            raise


# What actors do.

def table(a):
    """One of the tables whose rows come and go."""
    place = a.rng.choices(("storm", "storm_b"), (5, 1))[0]
    return f"{place}.s{a.rng.randrange(TABLES)}"


def kept(a):
    return "storm." + a.rng.choice(("bank0", "bank1", "led0", "led1"))


def create(a, name, if_not_exists="IF NOT EXISTS "):
    indexes = a.rng.sample(INDEXES, a.rng.randrange(3))
    more = "".join(f", {definition}" for _, definition in indexes)
    # One in four has no primary key.
    primary = "PRIMARY KEY (id)" if a.rng.random() < 0.75 else "UNIQUE ids (id)"
    a.sql(f"CREATE TABLE {if_not_exists}{name} (id BIGINT NOT NULL, v BIGINT NOT NULL, k INT NOT NULL, w INT NOT NULL, u BIGINT NOT NULL, l LONGTEXT, {primary}{more})")


def rows(a, count, long_share):
    first = a.rng.randrange(IDS)
    out = []
    for key in range(first, first + count):
        k = a.rng.randrange(-1000, 1000)
        text = "NULL"
        if a.rng.random() < long_share:
            text = f"'{long_text(key, a.rng.choice((10, 300, 5000, 20000, 70000)))}'"
        out.append(f"({key},{value(key)},{k},{-k},{key + 1},{text})")
    return ",".join(out)


def change(a, name):
    """One statement that changes rows."""
    first = a.rng.randrange(IDS)
    kind = a.rng.randrange(10)
    if kind < 3:
        verb = a.rng.choice(("INSERT IGNORE", "REPLACE", "INSERT", "INSERT"))
        text = f"{verb} INTO {name} (id, v, k, w, u, l) VALUES {rows(a, a.rng.choice((1, 5, 80)), a.rng.choice((0, 0.05, 0.5)))}"
        if verb == "INSERT" and a.rng.random() < 0.8:
            text += " ON DUPLICATE KEY UPDATE k = k + 1, w = w - 1"
        a.sql(text, also=(1062,))
    elif kind == 3:
        k = a.rng.randrange(-1000, 1000)
        a.sql(f"UPDATE {name} SET k = {k}, w = {-k} WHERE id BETWEEN {first} AND {first + 60}")
    elif kind == 4:
        a.sql(f"UPDATE {name} SET u = -u WHERE id BETWEEN {first} AND {first + 60}")
    elif kind == 5:
        a.sql(f"UPDATE {name} SET k = k + 3, w = w - 3 WHERE k BETWEEN {first - 750} AND {first - 700}")
    elif kind == 6:
        length = a.rng.choice((10, 3000, 17000, 40000))
        a.sql(f"UPDATE {name} SET l = CONCAT(id, ':{length}:', REPEAT(SUBSTR('{LETTERS}', id % {len(LETTERS)} + 1, 1), {length})) WHERE id BETWEEN {first} AND {first + 5}")
    elif kind == 7:
        a.sql(f"UPDATE {name} SET l = NULL WHERE id BETWEEN {first} AND {first + 100}")
    else:
        span = a.rng.choice((1, 50, 400, IDS))
        a.sql(f"DELETE FROM {name} WHERE id BETWEEN {first} AND {first + span}")


def write(a):
    name = table(a)
    shape = a.rng.randrange(8)
    if shape < 3:
        change(a, name)
        return
    a.sql("BEGIN")
    for n in range(a.rng.randrange(1, 5)):
        change(a, name if a.rng.random() < 0.8 else table(a))
        if a.rng.random() < 0.2:
            a.sql(f"SAVEPOINT p{n}")
            change(a, name)
            a.sql(f"ROLLBACK TO SAVEPOINT p{n}")
    if shape == 7 and a.rng.random() < 0.3:
        a.close()  # the server rolls back, without a session
    else:
        a.sql(a.rng.choice(("COMMIT", "ROLLBACK")))


def transfer(a):
    source, target = (f"storm.bank{a.rng.randrange(2)}" for _ in range(2))
    first, second = sorted(a.rng.sample(range(BANK_ROWS), 2))
    amount = a.rng.randrange(1, 50)
    a.sql("BEGIN")
    if a.sql(f"SELECT id FROM {source} WHERE id = {first} FOR UPDATE") == ():
        raise Wrong(f"account {first} of {source} is gone")
    a.sql(f"UPDATE {source} SET amount = amount - {amount} WHERE id = {first}")
    done = a.sql("SELECT ROW_COUNT()")
    if done != ((1,),):
        raise Wrong(f"account {first} of {source}: {done}")
    a.sql(f"UPDATE {target} SET amount = amount + {amount}, note = REPEAT('n', {a.rng.choice((0, 0, 100, 9000))}) WHERE id = {second}")
    done = a.sql("SELECT ROW_COUNT()")
    if done != ((1,),):
        raise Wrong(f"account {second} of {target}: {done}")
    a.sql(a.rng.choice(("COMMIT", "COMMIT", "ROLLBACK")))


def note(a):
    """Inserts a numbered row into a ledger, and remembers that it was acknowledged."""
    ledger = a.storm.ledger
    with a.storm.mutex:
        a.storm.next_note += 1
        n = a.storm.next_note
        ledger[n] = "asked"
    text = long_text(n, a.rng.choice((5, 5, 200, 30000)))
    a.sql(f"INSERT INTO storm.led{a.rng.randrange(2)} (n, k, l) VALUES ({n}, {n % 97}, '{text}')")
    ledger[n] = "there"
    if a.rng.random() < 0.3:
        n = a.rng.randrange(1, n + 1)
        if ledger.get(n) != "there":
            return
        a.sql("START TRANSACTION WITH CONSISTENT SNAPSHOT")
        found = sum((a.sql(f"SELECT n, k, l FROM storm.led{i} WHERE n = {n}") for i in range(2)), ())
        if len(found) != 1 or found[0][1] != n % 97 or not found[0][2].startswith(f"{n}:"):
            raise Wrong(f"note {n} was acknowledged, and is {found!r:.200}")
        a.sql("COMMIT")


def read(a):
    kind = a.rng.randrange(6)
    name = table(a)
    first = a.rng.randrange(IDS)
    if kind == 0:
        for row in a.sql(f"SELECT id, v, k, w, u, l FROM {name} WHERE id BETWEEN {first} AND {first + 200}"):
            check_row(*row)
    elif kind == 1:
        keys = ",".join(str(a.rng.choice((1, -1)) * a.rng.randrange(1, IDS)) for _ in range(20))
        for row in a.sql(f"SELECT id, v, k, w, u, l FROM {name} WHERE u IN ({keys})"):
            check_row(*row)
    elif kind == 2:
        for row in a.sql(f"SELECT id, v, k, w, u, l FROM {name} WHERE k BETWEEN {first - 750} AND {first - 700} ORDER BY k DESC"):
            check_row(*row)
    elif kind == 3:
        column, _, default = a.rng.choice(EXTRA)
        for key, v, extra in a.sql(f"SELECT id, v, {column} FROM {name} WHERE id >= {first} LIMIT 100"):
            if int(v) != value(key) or extra != default:
                raise Wrong(f"row {key}: v={v} {column}={extra!r}")
    elif kind == 4:
        for row in a.sql(f"SELECT id, v, k, w, u, l FROM {name} WHERE id BETWEEN {first} AND {first + 20} {a.rng.choice(('FOR UPDATE', 'FOR SHARE', 'FOR UPDATE SKIP LOCKED'))}"):
            check_row(*row)
    else:
        for row in a.sql(f"SELECT id, v, k, w, u, NULL FROM {name}"):
            check_row(*row)


def sums(a, name, index=None):
    """Of all rows, by an index; `None`: there is none of that name."""
    hint = f" FORCE INDEX ({index})" if index else ""
    where = " WHERE k > -100000000" if index in ("kk", "kv") else ""
    return a.sql(f"SELECT COUNT(*), SUM(id), SUM(v), SUM(k), SUM(w), SUM(ABS(u)) FROM {name}{hint}{where}", also=(1176,))


def compare(a):
    """A snapshot and what stays the same in it."""
    name = table(a)
    a.sql(a.rng.choice(("START TRANSACTION WITH CONSISTENT SNAPSHOT", "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY", "BEGIN")))
    first = sums(a, name)[0]
    if first[0] and (first[2] != 7 * first[1] + 3 * first[0] or first[3] != -first[4] or first[5] != first[1] + first[0]):
        raise Wrong(f"{name}: sums {first}")
    for index in a.rng.sample([n for n, _ in INDEXES] + [None], 3):
        time.sleep(a.rng.choice((0, 0.01, 0.1)))
        again = sums(a, name, index)
        if again is not None and again[0] != first:
            raise Wrong(f"{name}: {first}, and by index {index} {again[0]}")
    a.sql("COMMIT")


def audit(a):
    a.sql("START TRANSACTION WITH CONSISTENT SNAPSHOT")
    if a.rng.random() < 0.2:
        time.sleep(a.rng.choice((0.05, 0.5, 1.5)))
    found = sum(a.sql(f"SELECT SUM(amount) FROM storm.bank{i}")[0][0] for i in range(2))
    if found != BANK_SUM:
        raise Wrong(f"the banks have {found}, not {BANK_SUM}")
    a.sql("COMMIT")


def define(a):
    """One definition of a table whose rows come and go."""
    name = table(a)
    schema, short = name.split(".")
    kind = a.rng.randrange(22)
    if kind < 3:
        create(a, name)
    elif kind == 3:
        a.sql(f"OPTIMIZE TABLE {name}")
    elif kind == 4:
        a.sql(f"TRUNCATE TABLE {name}")
    elif kind == 5:
        a.sql(f"DROP TABLE {a.rng.choice(('', 'IF EXISTS '))}{name}")
        create(a, name)
    elif kind == 6:
        other = table(a)
        a.sql(f"RENAME TABLE {name} TO storm.x_{a.name.replace('-', '_')}, {other} TO {name}, storm.x_{a.name.replace('-', '_')} TO {other}" if other != name else "DO 0")
    elif kind == 7:
        a.sql(f"RENAME TABLE {name} TO {table(a)}")
    elif kind == 8:
        column, definition, _ = a.rng.choice(EXTRA)
        a.sql(f"ALTER TABLE {name} ADD COLUMN {column} {definition}{a.rng.choice(('', ' FIRST', ' AFTER v'))}")
    elif kind == 9:
        a.sql(f"ALTER TABLE {name} DROP COLUMN {a.rng.choice(EXTRA)[0]}")
    elif kind in (10, 11):
        made = " , ".join(f"ADD {definition}" for _, definition in a.rng.sample(INDEXES, a.rng.choice((1, 1, 2))))
        a.sql(f"ALTER TABLE {name} {made}")
    elif kind == 12:
        a.sql(f"ALTER TABLE {name} DROP INDEX {a.rng.choice(INDEXES)[0]}")
    elif kind == 13:
        a.sql(f"CREATE UNIQUE INDEX dd ON {name} (k)", also=(1062,))
        a.sql(f"DROP INDEX dd ON {name}")
    elif kind == 14:
        a.sql(f"ALTER TABLE {name} MODIFY {a.rng.choice(TYPES)}")
    elif kind == 15:
        a.sql(f"ALTER TABLE {name} ENGINE=InnoDB")
    elif kind == 16:
        a.sql(f"ANALYZE TABLE {name}")
    elif kind == 17:
        look(a, f"CHECK TABLE {name}")
    elif kind == 18:
        copy(a, name)
    elif kind == 19:
        if a.rng.random() < 0.5:
            a.sql("DROP DATABASE IF EXISTS storm_b")
        a.sql("CREATE DATABASE IF NOT EXISTS storm_b")
    elif kind == 20:
        locked(a, name)
    else:
        for text in a.rng.sample((f"SHOW CREATE TABLE {name}", f"SHOW INDEX FROM {name}", f"SHOW TABLE STATUS FROM {schema} LIKE '{short}'",
                                  "SELECT table_name, table_rows, data_free FROM information_schema.tables WHERE table_schema LIKE 'storm%'",
                                  "SELECT * FROM information_schema.statistics WHERE table_schema LIKE 'storm%'", "SHOW ENGINE INNODB STATUS", "SHOW ENGINE NFOLD CONTENTION", "SELECT * FROM performance_schema.data_locks",
                                  "SELECT * FROM performance_schema.data_lock_waits", "SELECT * FROM information_schema.innodb_trx", "SHOW PROCESSLIST"), 5):
            a.sql(text)


def churn(a):
    """Rows that fill pages come and go, so that purge has pages to merge and to free, and then the
    table or an index is gone under it."""
    name = table(a)
    create(a, name)
    first = a.rng.randrange(IDS)
    span = a.rng.choice((100, 400, 900))
    length = a.rng.choice((300, 2500, 2500))
    values = ",".join(f"({key},{value(key)},{key % 9},{-(key % 9)},{key + 1},'{long_text(key, length)}')" for key in range(first, first + span))
    a.sql(f"REPLACE INTO {name} (id, v, k, w, u, l) VALUES {values}")
    a.sql(f"DELETE FROM {name} WHERE id BETWEEN {first} AND {first + span}")
    time.sleep(a.rng.choice((0, 0.01, 0.04, 0.08)))  # purge comes by every 50 ms
    a.sql(a.rng.choice((f"OPTIMIZE TABLE {name}", f"OPTIMIZE TABLE {name}", f"TRUNCATE TABLE {name}", f"TRUNCATE TABLE {name}", f"ALTER TABLE {name} ENGINE=InnoDB", f"DROP TABLE {name}",
                        f"ALTER TABLE {name} DROP INDEX lk", f"ALTER TABLE {name} DROP INDEX ll", f"ALTER TABLE {name} ADD INDEX lk (l(300), k)",
                        f"ALTER TABLE {name} ADD INDEX ll (l(20))", f"RENAME TABLE {name} TO {table(a)}")))


def look(a, text):
    for row in a.sql(text):
        if row[2] != "status" or row[3] != "OK":
            if "doesn't exist" not in row[3] and "Unknown database" not in row[3] and "Lock wait" not in row[3] and "Deadlock" not in row[3] and row[3] not in ("Operation failed", "Query execution was interrupted"):
                raise Wrong(f"{text}: {row}")


def copy(a, name):
    mine = f"storm.copy_{a.name.replace('-', '_')}"
    a.sql(f"DROP TABLE IF EXISTS {mine}")
    a.sql(f"CREATE TABLE {mine} LIKE {name}")
    a.sql(f"INSERT INTO {mine} (id, v, k, w, u, l) SELECT id, v, k, w, u, l FROM {name}")
    for row in a.sql(f"SELECT id, v, k, w, u, l FROM {mine}"):
        check_row(*row)
    a.sql(f"DROP TABLE {mine}")


def locked(a, name):
    other = table(a)
    a.sql(f"LOCK TABLES {name} WRITE" + (f", {other} AS o READ" if other != name else ""))
    for _ in range(a.rng.randrange(4)):
        if a.rng.random() < 0.7:
            change(a, name)
        else:
            a.sql(a.rng.choice((f"ALTER TABLE {name} ENGINE=InnoDB", f"TRUNCATE TABLE {name}", f"OPTIMIZE TABLE {name}", f"ALTER TABLE {name} ADD COLUMN e2 BIGINT NULL")))
    a.sql("UNLOCK TABLES")


def keep(a):
    """A definition that leaves the rows of banks and ledgers as they are."""
    name = kept(a)
    kind = a.rng.randrange(10)
    if kind == 0:
        a.sql(f"OPTIMIZE TABLE {name}")
    elif kind == 1:
        a.sql(f"ALTER TABLE {name} ENGINE=InnoDB")
    elif kind == 2:
        a.sql(f"ALTER TABLE {name} ADD COLUMN e0 INT NOT NULL DEFAULT 7{a.rng.choice(('', ' FIRST'))}")
    elif kind == 3:
        a.sql(f"ALTER TABLE {name} DROP COLUMN e0")
    elif kind == 4:
        column = "amount" if "bank" in name else "k"
        a.sql(f"ALTER TABLE {name} ADD INDEX kk ({column})")
    elif kind == 5:
        a.sql(f"ALTER TABLE {name} DROP INDEX kk")
    elif kind == 6:
        which = a.rng.choice(("bank", "led"))
        a.sql(f"RENAME TABLE storm.{which}0 TO storm.between, storm.{which}1 TO storm.{which}0, storm.between TO storm.{which}1")
    elif kind == 7:
        look(a, f"CHECK TABLE {name}")
    elif kind == 8:
        column = "amount" if "bank" in name else "k"
        a.sql(f"ALTER TABLE {name} MODIFY {column} {a.rng.choice(('INT NOT NULL', 'BIGINT NOT NULL', 'DECIMAL(20,0) NOT NULL'))}")
    else:
        a.sql(f"ANALYZE TABLE {name}")
    time.sleep(a.rng.choice((0, 0.02, 0.2)))


def kill(a):
    time.sleep(a.rng.choice((0.005, 0.03, 0.1)))
    victim = a.rng.choice(a.storm.actors)
    conn = victim.conn
    if victim is a or conn is None:
        return
    a.sql(f"KILL {a.rng.choice(('QUERY', 'QUERY', 'QUERY', 'CONNECTION'))} {conn.thread_id()}", also=(1094,))


def resize(a):
    a.sql(f"SET GLOBAL innodb_buffer_pool_size = {a.rng.choice((16, 24, 40)) << 20}")
    a.storm.pause(a.rng.choice((0.3, 1)))


ACTORS = [define, define, churn, churn, keep, write, write, write, transfer, transfer, note, read, read, compare, compare, audit, kill, resize]


class Storm:
    """`Storm(srv, seed).run(seconds)`: the actors, and afterwards what must hold then. A second
    `run` goes on with the tables of the first."""

    def __init__(self, srv, seed):
        self.srv, self.seed = srv, seed
        self.mutex = threading.Lock()
        self.ledger, self.next_note = {}, 0
        self.actors, self.wrongs = [], []
        self.until = 0.0
        self.killed = False
        self.gentle = True

    def over(self):
        return self.killed or bool(self.wrongs) or time.monotonic() >= self.until

    def pause(self, seconds):
        end = time.monotonic() + seconds
        while not self.over() and time.monotonic() < end:
            time.sleep(0.05)

    def wrong(self, what):
        with self.mutex:
            self.wrongs.append(f"seed {self.seed}: {what}")

    def prepare(self):
        cur = self.srv.connect().cursor()
        cur.execute("CREATE DATABASE storm")
        cur.execute("CREATE DATABASE storm_b")
        for i in range(2):
            cur.execute(f"CREATE TABLE storm.bank{i} (id INT PRIMARY KEY, amount INT NOT NULL, note TEXT)")
            cur.execute(f"INSERT INTO storm.bank{i} (id, amount) VALUES " + ",".join(f"({n},100)" for n in range(BANK_ROWS)))
            cur.execute(f"CREATE TABLE storm.led{i} (n BIGINT PRIMARY KEY, k INT NOT NULL, l LONGTEXT)")
        rng = random.Random(self.seed)
        for i in range(TABLES):
            cur.execute(f"CREATE TABLE storm.s{i} (id BIGINT NOT NULL, v BIGINT NOT NULL, k INT NOT NULL, w INT NOT NULL, u BIGINT NOT NULL, l LONGTEXT, PRIMARY KEY (id), INDEX kk (k))")
            for first in range(0, IDS, 250):
                values = ",".join(f"({n},{value(n)},{n % 500},{-(n % 500)},{n + 1},{repr(long_text(n, 9000)) if rng.random() < 0.02 else 'NULL'})" for n in range(first, first + 250))
                cur.execute(f"INSERT INTO storm.s{i} VALUES {values}")

    def run(self, seconds, kill=False):
        """The storm itself; `kill`: the server is killed at its end, and started again."""
        self.killed, self.until = False, time.monotonic() + seconds
        self.actors = [Actor(self, n, what) for n, what in enumerate(ACTORS)]
        for actor in self.actors:
            actor.start()
        while not self.over():
            time.sleep(0.05)
            if not self.srv.alive():
                self.wrong("the server has ended by itself")
        if kill and not self.wrongs:
            self.killed = True
            self.srv.kill()
        for actor in self.actors:
            actor.join(TIMEOUT_S + 20)
            if actor.is_alive():
                self.wrong(f"{actor.name} does not end: {actor.statement}")
        self.judge()
        if kill:
            self.srv.start()

    def judge(self):
        log = self.srv.tail(1 << 22)
        bad = [line for line in log.splitlines() if re.search(r"ERROR|panicked|assert|WARN(?! made the account| page .* was torn and has been repaired| redo.* the log ends in)", line)]
        if bad:
            self.wrong("the log says: " + "\n".join(bad[:5]))
        if self.wrongs:
            raise AssertionError("\n".join(self.wrongs[:8]))

    def check(self):
        """Everything at rest: tables whole, sums, ledger. Returns the rows of all tables."""
        conn = self.srv.connect(read_timeout=TIMEOUT_S)
        cur = conn.cursor()

        def ask(text):
            cur.execute(text)
            return cur.fetchall()

        content = {}
        names = ask("SELECT CONCAT(table_schema, '.', table_name) FROM information_schema.tables WHERE table_schema LIKE 'storm%' ORDER BY 1")
        for (name,) in names:
            for row in ask(f"CHECK TABLE {name}"):
                if row[2:] != ("status", "OK"):
                    self.wrong(f"CHECK TABLE: {row}")
            short = name.split(".")[1]
            if re.match(r"s\d|copy|x_", short):
                found = ask(f"SELECT id, v, k, w, u, l FROM {name} ORDER BY id")
                for row in found:
                    try:
                        check_row(*row)
                    except Wrong as e:
                        self.wrong(f"{name}: {e}")
                for column in ("k", "u", "w"):
                    by = ask(f"SELECT COUNT(*), SUM(id) FROM {name} WHERE {column} > -1000000000000")
                    if by[0][0] != len(found) or (by[0][1] or 0) != sum(row[0] for row in found):
                        self.wrong(f"{name} by {column}: {by}, {len(found)} rows")
            content[name] = sorted(ask(f"SELECT * FROM {name}"), key=repr)
        banks = sum(ask(f"SELECT SUM(amount) FROM storm.bank{i}")[0][0] for i in range(2))
        if banks != BANK_SUM:
            self.wrong(f"the banks have {banks}, not {BANK_SUM}")
        notes = [n for i in range(2) for (n,) in ask(f"SELECT n FROM storm.led{i}")]
        lost = [n for n, state in self.ledger.items() if state == "there" and n not in set(notes)]
        if lost or len(set(notes)) != len(notes) or any(n not in self.ledger for n in notes):
            self.wrong(f"notes: {len(notes)}, lost {lost[:10]}")
        conn.close()
        self.judge()
        return content

    def counts(self):
        return {actor.name: (actor.done, actor.refused) for actor in self.actors}
