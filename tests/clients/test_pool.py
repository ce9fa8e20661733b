"""The buffer pool under a running server: it grows and shrinks while others read and write."""
import os
import random
import threading
import time

OPTIONS = {"innodb_buffer_pool_size": "64M"}
MIB = 1 << 20
ROWS = 30000


def one(cur, sql):
    cur.execute(sql)
    row = cur.fetchone()
    return row and row[-1]


def status(cur, name):
    return one(cur, f"SHOW GLOBAL STATUS LIKE '{name}'")


def warnings(cur, sql):
    cur.execute(sql)
    cur.execute("SHOW WARNINGS")
    return list(cur.fetchall())


def settled(cur, mib):
    """Waits until the pool has its new size."""
    for _ in range(600):
        if status(cur, "Innodb_buffer_pool_resize_status_code") == "0" and status(cur, "Innodb_buffer_pool_pages_total") == str(mib * 64):
            text = status(cur, "Innodb_buffer_pool_resize_status")
            assert text.startswith("Completed resizing buffer pool at "), text
            return
        time.sleep(0.05)
    raise AssertionError(status(cur, "Innodb_buffer_pool_resize_status"))


def load(srv):
    cur = srv.connect().cursor()
    cur.execute("CREATE DATABASE IF NOT EXISTS pool")
    cur.execute("USE pool")
    cur.execute("CREATE TABLE IF NOT EXISTS t (id INT PRIMARY KEY, n INT NOT NULL, s VARCHAR(1000))")
    for first in range(0, ROWS, 1000):
        cur.execute("INSERT IGNORE INTO t VALUES " + ",".join(f"({i}, 0, REPEAT('x', 900))" for i in range(first, first + 1000)))
    return cur


def test_resize_under_load(srv):
    cur = load(srv)
    stop, failures, done = threading.Event(), [], [0, 0]

    def work(writes, seed):
        try:
            mine = srv.connect(database="pool").cursor()
            mine.connection.autocommit(False)
            rng = random.Random(seed)
            while not stop.is_set():
                a, b = rng.sample(range(ROWS), 2)
                if writes:
                    for i, by in sorted([(a, 1), (b, -1)]):
                        mine.execute(f"UPDATE t SET n = n + {by} WHERE id = {i}")
                else:
                    mine.execute(f"SELECT id, LENGTH(s) FROM t WHERE id IN ({a}, {b}) ORDER BY id")
                    assert mine.fetchall() == tuple((i, 900) for i in sorted((a, b)))
                mine.connection.commit()
                done[writes] += 1
        except Exception as e:
            failures.append(repr(e))

    threads = [threading.Thread(target=work, args=(w, s)) for s, w in enumerate((0, 0, 1, 1))]
    [t.start() for t in threads]
    for mib in (8, 96, 5, 32, 64):
        before = list(done)
        assert warnings(cur, f"SET GLOBAL innodb_buffer_pool_size = {mib * MIB}") == []
        settled(cur, mib)
        assert one(cur, "SELECT @@innodb_buffer_pool_size") == mib * MIB
        while not failures and any(now < then + 20 for now, then in zip(done, before)):
            time.sleep(0.01)
    stop.set()
    [t.join() for t in threads]
    assert not failures, failures
    assert one(cur, "SELECT SUM(n) FROM pool.t") == 0
    cur.execute("CHECK TABLE pool.t")
    assert cur.fetchone()[3] == "OK"
    srv.kill()
    srv.start()
    cur = srv.connect().cursor()
    assert one(cur, "SELECT SUM(n) FROM pool.t") == 0
    assert status(cur, "Innodb_buffer_pool_resize_status") == ""


def test_sizes_out_of_range(srv):
    cur = srv.connect().cursor()

    def truncated(value):
        return [("Warning", 1292, f"Truncated incorrect innodb_buffer_pool_size value: '{value}'")]

    assert warnings(cur, "SET GLOBAL innodb_buffer_pool_size = 1") == truncated(1)
    assert one(cur, "SELECT @@innodb_buffer_pool_size") == 5 * MIB
    assert warnings(cur, f"SET GLOBAL innodb_buffer_pool_size = {20 * MIB - 5}") == truncated(20 * MIB - 5), "rounded up"
    assert one(cur, "SELECT @@innodb_buffer_pool_size") == 20 * MIB
    settled(cur, 20)
    huge = 1 << 62
    assert warnings(cur, f"SET GLOBAL innodb_buffer_pool_size = {huge}") == truncated(huge)
    memory = next(int(line.split()[1]) for line in open("/proc/meminfo") if line.startswith("MemTotal:")) // 16
    most = one(cur, "SELECT @@innodb_buffer_pool_size") // 16384
    assert most == memory, (most, memory)
    cur.execute(f"SET GLOBAL innodb_buffer_pool_size = {64 * MIB}")
    settled(cur, 64)


def test_io_capacity(srv):
    cur = srv.connect().cursor()
    both = "SELECT CONCAT(@@innodb_io_capacity, ' ', @@innodb_io_capacity_max)"
    assert one(cur, both) == "10000 20000"
    assert warnings(cur, "SET GLOBAL innodb_io_capacity = 30000") == [
        ("Warning", 1210, "innodb_io_capacity cannot be set higher than innodb_io_capacity_max."),
        ("Warning", 1210, "Setting innodb_io_capacity to 20000")]
    assert one(cur, both) == "20000 20000"
    assert warnings(cur, "SET GLOBAL innodb_io_capacity_max = 50") == [
        ("Warning", 1292, "Truncated incorrect innodb_io_capacity_max value: '50'"),
        ("Warning", 1210, "innodb_io_capacity_max cannot be set lower than innodb_io_capacity."),
        ("Warning", 1210, "Setting innodb_io_capacity_max to 20000")]
    assert one(cur, both) == "20000 20000"
    assert warnings(cur, "SET GLOBAL innodb_io_capacity = 10000") == []


def told(cur, name, wanted):
    """Waits until a status says so."""
    for _ in range(1200):
        text = status(cur, name)
        if wanted in text:
            return text
        time.sleep(0.05)
    raise AssertionError(f"{name}: {text}, not {wanted}")


def test_warm_up(srv):
    cur = load(srv)
    path = os.path.join(srv.datadir, "ib_buffer_pool")
    assert one(cur, "SELECT SUM(LENGTH(s)) FROM pool.t") == 900 * ROWS
    cur.execute("SET GLOBAL innodb_buffer_pool_dump_pct = 100")
    cur.execute("SET GLOBAL innodb_buffer_pool_dump_now = ON")
    told(cur, "Innodb_buffer_pool_dump_status", "Buffer pool(s) dump completed at ")
    assert one(cur, "SELECT @@innodb_buffer_pool_dump_now") == 0
    pages = [tuple(map(int, line.split(","))) for line in open(path)]
    used = int(status(cur, "Innodb_buffer_pool_pages_data"))
    assert ROWS // 17 < len(pages) <= used + 100 and len(set(pages)) == len(pages), (len(pages), used)
    cur.execute("SET GLOBAL innodb_buffer_pool_dump_pct = 10")
    cur.execute("SET GLOBAL innodb_buffer_pool_dump_now = ON")
    for _ in range(1200):
        if len(open(path).readlines()) < len(pages) // 5:
            break
        time.sleep(0.05)
    assert 0 < len(open(path).readlines()) < len(pages) // 5
    # At the shutdown, and back at the start; then the rows come without a miss.
    cur.execute("SET GLOBAL innodb_buffer_pool_dump_pct = 100")
    os.unlink(path)
    srv.stop()
    assert os.path.exists(path)
    kept = open(path).read()
    srv.start()
    cur = srv.connect().cursor()
    told(cur, "Innodb_buffer_pool_load_status", "Buffer pool(s) load completed at ")
    before = int(status(cur, "Innodb_buffer_pool_reads"))
    assert one(cur, "SELECT SUM(LENGTH(s)) FROM pool.t") == 900 * ROWS
    missed = int(status(cur, "Innodb_buffer_pool_reads")) - before
    assert missed < len(pages) // 20, f"{missed} misses of {len(pages)} pages"
    # Without it, as it was; with nonsense in it, or what is long gone, just cold.
    cur.execute("SET GLOBAL innodb_buffer_pool_dump_at_shutdown = OFF")
    for text, says in [(None, "Cannot open '"), ("1,2\n\x00\xff", "Error parsing '"), ("4000000000,1\n0,0\n3,4294967295\n" * 3, "load completed"),
                       ("", "load completed"), (kept, "load completed")]:
        srv.stop()
        if text is None:
            os.unlink(path)
        else:
            open(path, "w", encoding="latin-1").write(text)
        srv.start()
        cur = srv.connect().cursor()
        told(cur, "Innodb_buffer_pool_load_status", says)
        cur.execute("SET GLOBAL innodb_buffer_pool_dump_at_shutdown = OFF")
    assert open(path).read() == kept, "nothing was written"
    # By hand, slowly, and not to its end.
    srv.stop()
    os.rename(path, path + ".mine")
    srv.start()
    cur = srv.connect().cursor()
    told(cur, "Innodb_buffer_pool_load_status", "Cannot open '")
    cur.execute("SET GLOBAL innodb_io_capacity = 100, GLOBAL innodb_buffer_pool_filename = 'ib_buffer_pool.mine'")
    cur.execute("SET GLOBAL innodb_buffer_pool_load_now = ON")
    told(cur, "Innodb_buffer_pool_load_status", "Loaded ")
    cur.execute("SET GLOBAL innodb_buffer_pool_load_abort = ON")
    told(cur, "Innodb_buffer_pool_load_status", "Buffer pool(s) load aborted on request")
    srv.stop()
    assert not os.path.exists(path), "a load that was cut short is no list"
    os.unlink(path + ".mine")
    srv.start()
