"""Warm reads write nothing that another core reads: the counters of such writes stand still over
every read workload, in text and prepared, with
and without BEGIN, at every isolation level but SERIALIZABLE, on four connections at once."""
import os
import random
import threading
import time

import test_sysbench as stock  # under another name: the runner calls every function test_*

OPTIONS = {"innodb_buffer_pool_size": "512M"}
COUNTERS = ("Nfold_latch_acquired", "Nfold_latch_waits", "Nfold_latch_fallbacks", "Nfold_optimistic_restarts", "Nfold_clock_marks",
            "Innodb_buffer_pool_reads", "Innodb_os_log_written", "Innodb_pages_created")
LEVELS = ("READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ")
ROWS = 6000
THREADS = 4


def counters(conn):
    cur = conn.cursor()
    cur.execute("SHOW GLOBAL STATUS")
    values = dict(cur.fetchall())
    return {name: int(values[name]) for name in COUNTERS}


def quiet(conn):
    """The counters, once nothing in the background moves them any more: purge, statistics, the
    cleaner."""
    before = counters(conn)
    for _ in range(60):
        time.sleep(1)
        now = counters(conn)
        if now == before:
            return now
        before = now
    raise AssertionError(f"the server does not come to rest: {before}")


def prepare(conn):
    cur = conn.cursor()
    cur.execute("CREATE DATABASE ro")
    cur.execute("USE ro")
    cur.execute("CREATE TABLE items (id INT PRIMARY KEY AUTO_INCREMENT, group_id INT NOT NULL, deleted TINYINT NOT NULL, title VARCHAR(60), "
                "KEY g (group_id, deleted))")
    cur.execute("CREATE TABLE people (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(64) NOT NULL, email VARCHAR(64) NOT NULL, "
                "password VARCHAR(64), dob DATE, address VARCHAR(128), city VARCHAR(64) NOT NULL, state_id TINYINT UNSIGNED NOT NULL, "
                "zip VARCHAR(8), country_id SMALLINT UNSIGNED NOT NULL, KEY email (email), KEY country (country_id, state_id, city))")
    rng = random.Random(1)
    for first in range(0, ROWS, 1000):
        rows = [(i // 5, rng.randrange(10) == 0, f"title {i}") for i in range(first, first + 1000)]
        cur.executemany("INSERT INTO items (group_id, deleted, title) VALUES (%s, %s, %s)", rows)
        rows = [(f"name{i}", f"user{i}@example.com", "x" * 20, f"19{i % 90 + 10}-01-02", "street", f"city{i % 50}", i % 50, "12345", i % 40)
                for i in range(first, first + 1000)]
        cur.executemany("INSERT INTO people (name, email, password, dob, address, city, state_id, zip, country_id) "
                        "VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)", rows)


def settle(conn):
    """Reads every row over every index until nothing is left to be put right about where rows were
    last seen: that is background work, which readers
    request and do not do."""
    before = quiet(conn)
    for _ in range(30):
        cur = conn.cursor()
        for index in ("items FORCE INDEX (g) WHERE group_id >= 0", "people FORCE INDEX (country) WHERE country_id >= 0",
                      "people FORCE INDEX (email) WHERE email >= ''"):
            cur.execute(f"SELECT * FROM ro.{index}")
            cur.fetchall()
        now = quiet(conn)
        if now == before:
            return now
        before = now
    raise AssertionError("reading the same rows again and again always finds something to repair")


def statements(rng):
    """(text with ? for its parameters, parameters)"""
    country, state, person = rng.randrange(40), rng.randrange(40), rng.randrange(1, ROWS - 100)
    for size in (20, 199, 200):
        ids = sorted(rng.sample(range(ROWS // 5), size))
        yield f"SELECT * FROM items WHERE deleted = 0 AND group_id IN ({','.join('?' * size)})", ids
    yield "SELECT name FROM people WHERE id = ?", [person]
    yield "SELECT id FROM people WHERE id = ?", [person]
    yield "SELECT name FROM people WHERE email = ?", [f"user{person}@example.com"]
    yield "SELECT name FROM people WHERE country_id = ?", [country]
    yield "SELECT state_id FROM people WHERE country_id = ?", [country]
    yield "SELECT name FROM people WHERE country_id = ? LIMIT 5", [country]
    yield "SELECT state_id FROM people WHERE country_id = ? LIMIT 5", [country]
    yield "SELECT MIN(dob) FROM people WHERE id BETWEEN ? AND ? + 100", [person, person]
    yield "SELECT COUNT(id) FROM people WHERE id BETWEEN ? AND ? + 100", [person, person]
    yield "SELECT name FROM people WHERE country_id = ? AND state_id BETWEEN ? AND ? + 10", [country, state, state]
    yield "SELECT city FROM people WHERE country_id = ? AND state_id BETWEEN ? AND ? + 10", [country, state, state]
    yield "SELECT name FROM people WHERE country_id = ? AND state_id BETWEEN ? AND ? + 10 LIMIT 50", [country, state, state]
    yield "SELECT MIN(dob) FROM people", []
    yield "SELECT id FROM people WHERE id BETWEEN ? AND ? + 20 ORDER BY name", [person, person]
    yield "SELECT DISTINCT city FROM people WHERE id BETWEEN ? AND ? + 50 ORDER BY city", [person, person]


def execute(cur, text, values, prepared):
    if not prepared:
        cur.execute(text.replace("?", "%s"), values)
        return cur.fetchall()
    cur.execute("PREPARE s FROM %s", [text])
    for i, value in enumerate(values):
        cur.execute(f"SET @v{i} = %s", [value])
    using = "USING " + ",".join(f"@v{i}" for i in range(len(values))) if values else ""
    cur.execute(f"EXECUTE s {using}")
    return cur.fetchall()


def read_everything(srv, seed, failures):
    try:
        rng = random.Random(seed)
        with srv.connect(database="ro") as conn:
            cur = conn.cursor()
            for level in LEVELS:
                cur.execute(f"SET SESSION TRANSACTION ISOLATION LEVEL {level}")
                for begin in (False, True):
                    for prepared in (False, True):
                        if begin:
                            cur.execute("BEGIN")
                        for text, values in statements(rng):
                            # Setting 200 variables one by one shows nothing more than 20 do.
                            if not (prepared and len(values) > 20):
                                execute(cur, text, values, prepared)
                        if begin:
                            cur.execute("COMMIT")
    except Exception as e:  # a failure of a thread has to fail the test
        failures.append(repr(e))


def on_threads(srv, round_):
    failures = []
    threads = [threading.Thread(target=read_everything, args=(srv, 100 * round_ + i, failures)) for i in range(THREADS)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures, failures


def test_warm_reads_write_nothing_shared(srv):
    with srv.connect() as conn:
        prepare(conn)
        for round_ in range(2):
            on_threads(srv, round_)
        before = settle(conn)
        for round_ in range(2, 6):
            on_threads(srv, round_)
        after = counters(conn)
        assert after == before, {n: (before[n], after[n]) for n in COUNTERS if before[n] != after[n]}
        # That they can move:
        conn.cursor().execute("UPDATE ro.people SET zip = '54321' WHERE id = 7")
        moved = counters(conn)
        assert moved["Nfold_latch_acquired"] > after["Nfold_latch_acquired"], moved


def test_warm_sysbench_reads_write_nothing_shared(srv):
    with srv.connect() as conn:
        conn.cursor().execute("CREATE DATABASE IF NOT EXISTS sbtest")
        stock.sysbench(srv, "oltp_read_only", "--tables=2", "--table-size=5000", "prepare")
        lua = [n for n in sorted(os.listdir(stock.BENCH)) if n.endswith(".lua") and n != "items_common.lua"]
        conn.cursor().execute("CREATE DATABASE IF NOT EXISTS items")
        size = ["--items-rows=20000", "--items-groups=4000"]
        stock.sysbench(srv, "./in_list.lua", *size, "prepare", cwd=stock.BENCH, database="items")

        def run_all(seconds):
            for mode in ("disable", "auto"):
                for begin in ("on", "off"):
                    stock.sysbench(srv, "oltp_read_only", "--tables=2", "--table-size=5000", f"--threads={THREADS}",
                                           f"--db-ps-mode={mode}", f"--skip-trx={begin}", f"--time={seconds}", "run")
            for name in lua:
                for ps in ("on", "off"):
                    stock.sysbench(srv, f"./{name}", *size, f"--ps={ps}", f"--threads={THREADS}", f"--time={seconds}", "run",
                                           cwd=stock.BENCH, database="items")

        run_all(1)
        for table in ("sbtest.sbtest1", "sbtest.sbtest2"):
            conn.cursor().execute(f"SELECT * FROM {table}")
            conn.cursor().execute(f"SELECT COUNT(*) FROM {table} FORCE INDEX (k_1, k_2) WHERE k >= 0".replace("k_1, k_2", "k_" + table[-1]))
        before = quiet(conn)
        run_all(1)
        after = counters(conn)
        assert after == before, {n: (before[n], after[n]) for n in COUNTERS if before[n] != after[n]}
