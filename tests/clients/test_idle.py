"""Ten thousand idle connections: memory of each, and no work for the server (`nfold lab idle`
weighs)."""
import os
import tempfile
import time

from lab import lab, read

COUNT = 10_000
OPTIONS = {"max_connections": str(COUNT + 200), "innodb_buffer_pool_size": "64M", "back_log": "1000"}
LIMIT_BYTES = 16 << 10


def test_idle_connections_are_small_and_asleep(srv):
    cur = srv.connect().cursor()
    cur.execute("CREATE DATABASE idle")
    cur.execute("CREATE TABLE idle.t (id INT PRIMARY KEY, v INT)")
    cur.execute("INSERT INTO idle.t VALUES (1, 1)")
    with tempfile.TemporaryDirectory() as d:
        path = os.path.join(d, "idle.json")
        said = lab("idle", "--dsn", f"mysql://root@127.0.0.1:{srv.port}", "--connections", COUNT, "--statement", "SELECT v FROM idle.t WHERE id = 1",
                   "--json", path)
        report = read(path)
    print("  " + "\n  ".join(said.splitlines()[1:]))
    assert report["connections"] == report["answered_again"] == COUNT
    assert 0 < report["bytes_each_after_login"] < LIMIT_BYTES
    assert 0 < report["bytes_each_after_statement"] < LIMIT_BYTES
    assert report["idle_cores"] < 0.02
    # Their end is noticed.
    for _ in range(600):
        cur.execute("SHOW STATUS LIKE 'Threads_connected'")
        if int(cur.fetchone()[1]) < 10:
            return
        time.sleep(0.1)
    raise AssertionError("connections were not given back")
