"""SHOW ENGINE NFOLD CONTENTION: what is waited for is named, with who waits; reading adds nothing
to it."""
import threading
import time

import pymysql

OPTIONS = {"nfold_workers": "2"}
LIMIT_S = 120


def sites(cur):
    cur.execute("SHOW ENGINE NFOLD CONTENTION")
    names = [c[0] for c in cur.description]
    return [dict(zip(names, row)) for row in cur.fetchall()]


def find(cur, **wanted):
    return [s for s in sites(cur) if all(s[k] == v for k, v in wanted.items())]


def row_locks(cur):
    """The status variables of row locks, without their prefix."""
    cur.execute("SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_%'")
    return {name.removeprefix("Innodb_row_lock_"): int(value) for name, value in cur.fetchall()}


def until(condition):
    """What `condition` gives as soon as it is true."""
    end = time.monotonic() + LIMIT_S
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.01)
    raise AssertionError("it does not happen")


def in_background(conn, sql):
    thread = threading.Thread(target=lambda: conn.cursor().execute(sql))
    thread.start()
    return thread


def test_a_hot_row_is_named_with_who_waits(srv):
    look, a, b = srv.connect().cursor(), srv.connect(), srv.connect()
    look.execute("CREATE DATABASE hot")
    look.execute("CREATE TABLE hot.t (id INT PRIMARY KEY, name VARCHAR(20), n INT NOT NULL, KEY by_name (name))")
    look.execute("INSERT INTO hot.t VALUES (41, 'cold', 0), (42, 'hot', 0)")
    assert not find(look, Table_name="t"), "nothing has waited"
    a.begin()
    a.cursor().execute("UPDATE hot.t SET n = n + 1 WHERE id = 42")
    waiter = in_background(b, "UPDATE hot.t SET n = n + 1 WHERE id = 42")
    site, = until(lambda: find(look, Wait="row lock", Waiting_now=str(b.thread_id())))
    assert (site["Table_schema"], site["Table_name"], site["Index_name"]) == ("hot", "t", "PRIMARY"), site
    assert site["Detail"] == "42" and site["Waits"] == 1, site
    before = row_locks(look)
    assert before == {"current_waits": 1, "time": 0, "time_avg": 0, "time_max": 0, "waits": 1}, before
    time.sleep(0.02)
    a.commit()
    waiter.join()
    ended = row_locks(look)
    assert (ended["current_waits"], ended["waits"]) == (0, 1), ended
    assert ended["time"] == ended["time_avg"] == ended["time_max"] >= 20, ended
    look.execute("SELECT NAME, COUNT FROM information_schema.INNODB_METRICS WHERE NAME LIKE 'lock\\_row\\_lock\\_%'")
    assert dict(look.fetchall()) == {f"lock_row_lock_{name}": value for name, value in ended.items()}
    after, = find(look, Wait="row lock", Table_name="t")
    assert after["Waiting_now"] == "" and after["Waits"] == 1 and after["Total_us"] >= site["Total_us"] > 0, (site, after)
    assert after["Longest_us"] == after["Total_us"], after


def test_a_metadata_lock_is_named(srv):
    look, reader, definer = srv.connect().cursor(), srv.connect(), srv.connect()
    look.execute("CREATE DATABASE defined")
    look.execute("CREATE TABLE defined.t (a INT)")
    reader.begin()
    reader.cursor().execute("SELECT * FROM defined.t")
    waiter = in_background(definer, "ALTER TABLE defined.t ADD b INT")
    until(lambda: find(look, Wait="metadata lock", Table_schema="defined", Table_name="t", Waiting_now=str(definer.thread_id())))
    reader.commit()
    waiter.join()
    assert not [s for s in sites(look) if s["Wait"] == "metadata lock" and s["Waiting_now"]]


def test_a_hot_leaf_is_named(srv):
    look = srv.connect().cursor()
    look.execute("CREATE DATABASE leaf")
    look.execute("CREATE TABLE leaf.t (id INT PRIMARY KEY, n INT NOT NULL)")
    look.execute("INSERT INTO leaf.t VALUES (1, 0), (2, 0), (3, 0), (4, 0)")
    look.execute("SET GLOBAL innodb_flush_log_at_trx_commit = 0")
    done, failures = threading.Event(), []

    def write(row):
        try:
            with srv.connect() as conn, conn.cursor() as cur:
                while not done.is_set():
                    cur.execute("UPDATE leaf.t SET n = n + 1 WHERE id = %s", [row])
        except pymysql.Error as e:
            failures.append(repr(e))

    threads = [threading.Thread(target=write, args=[n]) for n in (1, 2, 3, 4)]
    for t in threads:
        t.start()
    try:
        def met():
            assert not failures, failures
            return [s for s in find(look, Table_schema="leaf", Table_name="t") if s["Wait"] in ("page latch", "page read")]
        site = until(met)[0]
    finally:
        done.set()
        for t in threads:
            t.join()
        look.execute("SET GLOBAL innodb_flush_log_at_trx_commit = 1")
    assert (site["Index_name"], site["Level"], site["Detail"]) == ("PRIMARY", 0, "leaf"), site
    assert site["Space"] and site["Page"] and site["Waits"], site


def test_commits_wait_for_the_disk(srv):
    conn = srv.connect()
    cur = conn.cursor()
    cur.execute("CREATE DATABASE synced")
    cur.execute("CREATE TABLE synced.t (a INT)")
    for n in range(5):
        cur.execute("INSERT INTO synced.t VALUES (%s)", [n])
    site, = find(cur, Wait="commit sync")
    assert site["Waits"] >= 5 and site["Total_us"] > 0 and site["Table_name"] is None, site


def test_readers_add_nothing(srv):
    conn = srv.connect()
    cur = conn.cursor()
    cur.execute("CREATE DATABASE reading")
    cur.execute("CREATE TABLE reading.t (id INT PRIMARY KEY AUTO_INCREMENT, n INT, KEY n (n))")
    cur.executemany("INSERT INTO reading.t (n) VALUES (%s)", [[n % 50] for n in range(2000)])
    failures = []

    def read():
        try:
            with srv.connect() as mine, mine.cursor() as reader:
                for n in range(300):
                    reader.execute("SELECT * FROM reading.t WHERE id IN (1, 5, 900, %s)", [n])
                    reader.execute("SELECT COUNT(*) FROM reading.t WHERE n = %s", [n % 50])
        except pymysql.Error as e:
            failures.append(repr(e))
    # The first conditions on a column request its statistics, which a transaction saves.
    read()
    # Purge, statistics (every 2 s) and the cleaner come to rest.
    before = sites(cur)

    def at_rest():
        nonlocal before
        time.sleep(3)
        now, last = sites(cur), before
        before = now
        return now == last
    until(at_rest)
    threads = [threading.Thread(target=read) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures, failures
    assert sites(cur) == before


def test_who_may_ask(srv):
    root = srv.connect().cursor()
    root.execute("CREATE USER nosy@'%' IDENTIFIED BY 'x'")
    with srv.connect(user="nosy", password="x") as conn, conn.cursor() as cur:
        for text, number in (("SHOW ENGINE NFOLD CONTENTION", 1227), ("SHOW ENGINE INNODB CONTENTION", 1064), ("SHOW ENGINE NFOLD WAITS", 1064)):
            try:
                cur.execute(text)
            except pymysql.Error as e:
                assert e.args[0] == number, (text, e)
            else:
                raise AssertionError(text)
