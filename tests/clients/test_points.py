"""Point selects while the tree that they go down changes: a reader remembers its root and where
leaves are, and may never believe what is not so any more."""
import random
import threading
import time

import pymysql

OPTIONS = {"nfold_workers": "2"}
SECONDS = 6
# Six rows fill a page, so that some thousand make a tree of three levels.
PAD = "p" * 2500
STEADY = [10 * n for n in range(4000)]


def value(key):
    return key * 7 + 3


def put(cur, table, keys):
    for at in range(0, len(keys), 200):
        rows = ",".join(f"({key},{value(key)},'{PAD}')" for key in keys[at:at + 200])
        cur.execute(f"INSERT INTO {table} VALUES {rows}")


def readers(srv, read, until, count=3):
    """Threads that call `read(cursor, random)` until the time is up; gives how often, and what went
    wrong."""
    done, wrong = [0], []

    def loop(seed):
        cur, rng = srv.connect().cursor(), random.Random(seed)
        while time.monotonic() < until and not wrong:
            try:
                read(cur, rng)
                done[0] += 1
            except Exception as e:  # any exception is what the test looks for
                wrong.append(e)

    threads = [threading.Thread(target=loop, args=(seed,)) for seed in range(count)]
    for thread in threads:
        thread.start()
    return threads, done, wrong


def test_rows_stay_where_pages_split_merge_and_move(srv):
    cur = srv.connect().cursor()
    cur.execute("CREATE DATABASE moving")
    cur.execute("CREATE TABLE moving.t (id BIGINT PRIMARY KEY, v BIGINT NOT NULL, pad VARCHAR(3000) NOT NULL)")
    put(cur, "moving.t", STEADY)

    def read(cur, rng):
        key = rng.choice(STEADY)
        cur.execute(f"SELECT v FROM moving.t WHERE id = {key}")
        assert cur.fetchall() == ((value(key),),), key
        other = key + rng.randrange(1, 10)
        cur.execute(f"SELECT id, v FROM moving.t WHERE id = {other}")
        assert cur.fetchall() in ((), ((other, value(other)),)), other

    until = time.monotonic() + SECONDS
    threads, done, wrong = readers(srv, read, until)
    rng, rounds = random.Random(7), 0
    while time.monotonic() < until and not wrong:
        first = rng.randrange(0, 3000)
        keys = [10 * n + m for n in range(first, first + 150) for m in range(1, 10, 2)]
        put(cur, "moving.t", keys)
        cur.execute(f"DELETE FROM moving.t WHERE id > {10 * first} AND id < {10 * (first + 150)} AND id % 10 <> 0")
        rounds += 1
        if rounds % 3 == 0:
            cur.execute("OPTIMIZE TABLE moving.t")
            cur.fetchall()
    for thread in threads:
        thread.join()
    assert not wrong, wrong
    assert rounds >= 3 and done[0] > 500, (rounds, done)


def test_rows_are_those_of_the_table_that_is_there(srv):
    cur = srv.connect().cursor()
    cur.execute("CREATE DATABASE replaced")

    def make(generation):
        cur.execute("CREATE TABLE replaced.t (id BIGINT PRIMARY KEY, v BIGINT NOT NULL, g INT NOT NULL)")
        for at in range(0, 3000, 500):
            rows = ",".join(f"({key},{value(key)},{generation})" for key in range(at, at + 500))
            cur.execute(f"INSERT INTO replaced.t VALUES {rows}")

    make(0)
    newest = [0]

    def read(cur, rng):
        key, least = rng.randrange(3000), newest[0]
        try:
            cur.execute(f"SELECT v, g FROM replaced.t WHERE id = {key}")
        except pymysql.err.ProgrammingError as e:
            assert e.args[0] == 1146, e
            return
        for v, g in cur.fetchall():
            assert v == value(key) and g >= least, (key, v, g, least)

    until = time.monotonic() + SECONDS
    threads, done, wrong = readers(srv, read, until)
    while time.monotonic() < until and not wrong:
        cur.execute("TRUNCATE TABLE replaced.t" if newest[0] % 2 else "DROP TABLE replaced.t")
        # From here on no row of an older table may be seen.
        newest[0] += 1
        if newest[0] % 2 == 0:
            cur.execute("DROP TABLE replaced.t")
        make(newest[0])
    for thread in threads:
        thread.join()
    assert not wrong, wrong
    assert newest[0] >= 4 and done[0] > 500, (newest, done)
