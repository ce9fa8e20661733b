"""A disk that fills up under a running server: a clear error each time, the server lives, reads go
on, room brings writes back,
and nothing acknowledged is lost, also after kill -9."""
import os
import subprocess
import sys
import time

import pymysql

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import disk  # noqa: E402
import server  # noqa: E402

SMALL = {"innodb_buffer_pool_size": "8M", "innodb_redo_log_capacity": "8M", "innodb_log_buffer_size": "1M"}
# What a statement may answer without room: the table is full (1114), the disk is full (1021).
FULL = (1114, 1021)


def error_of(cur, sql):
    try:
        cur.execute(sql)
    except pymysql.err.MySQLError as e:
        return e.args[0], e.args[1]
    return None


def load_until_full(cur, table, first, most=20000):
    """Inserts numbered rows, one transaction each; gives the acknowledged ids and the error."""
    done = []
    for i in range(first, first + most):
        error = error_of(cur, f"INSERT INTO {table} VALUES ({i}, {i % 97}, REPEAT('{chr(97 + i % 26)}', 3000))")
        if error:
            return done, error
        done.append(i)
    raise AssertionError("the disk did not fill up")


def check(cur, table, ids):
    cur.execute(f"SELECT id, g, LENGTH(s), LEFT(s, 1) FROM {table} ORDER BY id")
    rows = cur.fetchall()
    assert [r[0] for r in rows] == ids, (len(rows), len(ids), set(ids) ^ {r[0] for r in rows})
    assert all(r[1:] == (r[0] % 97, 3000, chr(97 + r[0] % 26)) for r in rows)
    cur.execute(f"SELECT COUNT(*), SUM(g) FROM {table} FORCE INDEX (g) WHERE g >= 0")
    assert cur.fetchone() == (len(ids), sum(i % 97 for i in ids))
    cur.execute(f"CHECK TABLE {table}")
    assert [r[3] for r in cur.fetchall()] == ["OK"]


def writes_again(cur, sql, seconds=20):
    """Room was made: the statement succeeds without a restart, soon."""
    end = time.monotonic() + seconds
    while (error := error_of(cur, sql)) is not None:
        assert error[0] in FULL and time.monotonic() < end, error
        time.sleep(0.1)


def table(cur, name):
    cur.execute("CREATE DATABASE IF NOT EXISTS full_disk")
    cur.execute("USE full_disk")
    cur.execute(f"CREATE TABLE {name} (id INT PRIMARY KEY, g INT, s VARCHAR(4000), KEY g (g))")


def test_load_until_the_disk_is_full(_):
    with disk.SmallDisk(96) as small:
        srv = server.Server(SMALL, datadir=os.path.join(small.path, "data"), beside=small.path)
        try:
            srv.start()
            with srv.connect() as conn:
                cur = conn.cursor()
                table(cur, "t")
                small.load(24)
                small.limit(srv.process.pid, 30)
                ids, error = load_until_full(cur, "t", 1)
                assert error == (1114, "The table 't' is full"), error
                assert len(ids) > 100, ids
                small.fill()
                # Reads go on, small results and large ones; more writes give the same clear error,
                # and change nothing.
                check(cur, "t", ids)
                for i in range(200):
                    error = error_of(cur, f"INSERT INTO t VALUES ({900000 + i}, 1, REPEAT('z', 3000))")
                    if error is None:
                        cur.execute(f"DELETE FROM t WHERE id={900000 + i}")
                    else:
                        assert error[0] in FULL, error
                error = error_of(cur, "CREATE TABLE more (id INT PRIMARY KEY)")
                if small.mounted:
                    assert error and error[0] in FULL, error
                    error = error_of(cur, "CREATE INDEX s ON t (s(500))")
                    assert error and error[0] in FULL, error
                check(cur, "t", ids)
                # A large transaction that finds no room is undone whole.
                cur.execute("BEGIN")
                error = error_of(cur, "INSERT INTO t SELECT id + 1000000, g, s FROM t")
                assert error and error[0] in FULL, error
                cur.execute("ROLLBACK")
                check(cur, "t", ids)
                small.make_room()
                writes_again(cur, "INSERT INTO t VALUES (800000, 800000 % 97, REPEAT(CHAR(97 + 800000 % 26), 3000))")
                ids.append(800000)
                writes_again(cur, "CREATE TABLE later (id INT PRIMARY KEY)")
                cur.execute("INSERT INTO later VALUES (1)")
                check(cur, "t", ids)
                small.load(12)
                small.limit(srv.process.pid, 30)
                more, error = load_until_full(cur, "t", 2000000)
                assert error[0] in FULL, error
                ids += more
            srv.kill()
            small.make_room()
            srv.start()
            with srv.connect(database="full_disk") as conn:
                cur = conn.cursor()
                check(cur, "t", ids)
                cur.execute("SHOW TABLES")
                # Only where the disk itself was full could `more` not be made.
                assert [r[0] for r in cur.fetchall()] == (["later", "t"] if small.mounted else ["later", "more", "t"])
                cur.execute("INSERT INTO later VALUES (2)")
            assert srv.stop() == 0
        except Exception:
            print(srv.tail())
            raise
        finally:
            finish(srv)


def test_kill_and_start_on_a_full_disk(_):
    """Without room from beginning to end: what was acknowledged is there as soon as the server
    starts, or when there is room again."""
    with disk.SmallDisk(64) as small:
        if not small.mounted:
            return
        srv = server.Server(SMALL, datadir=os.path.join(small.path, "data"), beside=small.path)
        try:
            srv.start()
            with srv.connect() as conn:
                cur = conn.cursor()
                table(cur, "t")
                small.load(8)
                ids, error = load_until_full(cur, "t", 1)
                assert error[0] in FULL, error
                small.fill()
                srv.kill()
            try:
                srv.start()
            except RuntimeError as e:
                # One clear line, and a status that is not zero.
                assert srv.process.returncode not in (0, None) and srv.process.returncode > 0, e
                lines = [line for line in srv.tail(600).splitlines() if "ERROR" in line]
                assert lines and "space" in lines[-1], srv.tail()
                small.make_room()
                srv.start()
            small.make_room()
            with srv.connect(database="full_disk") as conn:
                cur = conn.cursor()
                check(cur, "t", ids)
                writes_again(cur, "INSERT INTO t VALUES (900001, 1, 'x')")
            assert srv.stop() == 0
        except Exception:
            print(srv.tail())
            raise
        finally:
            finish(srv)


def test_log_that_cannot_grow(_):
    """A start with a setting for a larger log than there is room for says so, and leaves everything
    as it was."""
    with disk.SmallDisk(64) as small:
        if not small.mounted:
            return
        srv = server.Server(SMALL, datadir=os.path.join(small.path, "data"), beside=small.path)
        try:
            srv.start()
            with srv.connect() as conn:
                cur = conn.cursor()
                table(cur, "t")
                ids = list(range(1, 200))
                for i in ids:
                    cur.execute(f"INSERT INTO t VALUES ({i}, {i % 97}, REPEAT('{chr(97 + i % 26)}', 3000))")
            for stop in (srv.stop, srv.kill):
                stop()
                srv.options["innodb_redo_log_capacity"] = "256M"
                refused(srv)
                srv.options["innodb_redo_log_capacity"] = "8M"
                srv.start()
                with srv.connect(database="full_disk") as conn:
                    check(conn.cursor(), "t", ids)
        except Exception:
            print(srv.tail())
            raise
        finally:
            finish(srv)


def refused(srv):
    """The server does not start: one clear line, and a status that is not zero."""
    at = os.path.getsize(srv.log_path)
    srv.start_refused()
    with open(srv.log_path) as f:
        f.seek(at)
        lines = [line for line in f if "ERROR" in line]
    assert srv.process.returncode == 1 and len(lines) == 1 and "space" in lines[0], (srv.process.returncode, srv.tail())


def test_first_start_on_a_full_disk(_):
    with disk.SmallDisk(4) as small:
        if not small.mounted:
            return
        done = subprocess.run([server.binary(), "serve", "--datadir", os.path.join(small.path, "data"), "--port",
                               str(server.free_port()), "--bind", "127.0.0.1"], capture_output=True, text=True, timeout=60)
        lines = [line for line in (done.stdout + done.stderr).splitlines() if "ERROR" in line]
        assert done.returncode == 1 and len(lines) == 1 and "space" in lines[0], (done.returncode, done.stdout, done.stderr)


def test_temporary_files_on_a_full_disk(_):
    with disk.SmallDisk(1) as small:
        if not small.mounted:
            return
        with server.Server({**SMALL, "tmpdir": small.path}) as srv, srv.connect() as conn:
            cur = conn.cursor()
            table(cur, "t")
            cur.execute("INSERT INTO t VALUES (1, 1, REPEAT('a', 3000)), (2, 2, REPEAT('b', 3000))")
            for _ in range(11):
                cur.execute("INSERT INTO t SELECT id + (SELECT MAX(id) FROM (SELECT id FROM t) x), g, s FROM t")
            cur.execute("SET sort_buffer_size=32768, tmp_table_size=1024")
            for sql in ("SELECT s FROM t ORDER BY s, id", "SELECT COUNT(*) FROM (SELECT DISTINCT s, id FROM t) x",
                        "SELECT CONCAT(s, id) k, COUNT(*) FROM t GROUP BY k", "SELECT COUNT(DISTINCT s, id) FROM t",
                        "SELECT COUNT(*) FROM t a JOIN t b ON CONCAT(a.s, a.id) = CONCAT(b.s, b.id)",
                        "UPDATE t SET id = id + 100000"):
                error = error_of(cur, sql)
                assert error and error[0] in FULL, (sql, error)
                cur.execute("SELECT COUNT(*) FROM t")
                assert cur.fetchone() == (4096,), sql
            cur.execute("SET sort_buffer_size=DEFAULT, tmp_table_size=200000000")
            cur.execute("SELECT COUNT(*) FROM (SELECT DISTINCT s, id FROM t) x")
            assert cur.fetchone() == (4096,)
        assert not os.listdir(small.path)


def finish(srv):
    if srv.process:
        srv.kill()
    srv.log.close()
    srv.remove_beside()
