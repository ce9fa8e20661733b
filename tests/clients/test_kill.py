"""KILL of sessions that wait: for a row lock, for a metadata lock, for the disk in COMMIT; of one
that builds an index. The error is 1317 (or the connection is gone), and no
transaction is lost or half there, also after the process is killed."""
import os
import shutil
import subprocess
import tempfile
import threading
import time

import pymysql
import server

# While the file named by NFOLD_HANG exists, every fdatasync waits: a disk that does not answer.
SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>
int fdatasync(int fd) {
    static int (*real)(int);
    const char *path = getenv("NFOLD_HANG");
    if (!real) real = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    for (int i = 0; path && i < 6000 && access(path, F_OK) == 0; i++) usleep(10000);
    return real(fd);
}
"""


class Statement(threading.Thread):
    """A statement on a connection of its own thread; `outcome` is 'ok' or the error's number."""

    def __init__(self, conn, text):
        super().__init__()
        self.conn, self.text, self.outcome = conn, text, None
        self.start()

    def run(self):
        try:
            self.conn.cursor().execute(self.text)
            self.outcome = "ok"
        except pymysql.err.MySQLError as e:
            self.outcome = e.args[0]

    def result(self):
        self.join(30)
        assert not self.is_alive(), f"{self.text} does not end"
        return self.outcome


def wait_until(what, probe):
    end = time.monotonic() + 20
    while time.monotonic() < end:
        if probe():
            return
        time.sleep(0.02)
    raise AssertionError(f"not within 20 s: {what}")


def rows(conn, text):
    cur = conn.cursor()
    cur.execute(text)
    return cur.fetchall()


def run(conn, *texts):
    for text in texts:
        conn.cursor().execute(text)


def waits_for_a_row(admin):
    return len(rows(admin, "SELECT * FROM performance_schema.data_lock_waits")) > 0


def alive(admin, number):
    return any(row[0] == number for row in rows(admin, "SHOW PROCESSLIST"))


def test_waiting_for_a_row_lock(_):
    with server.Server() as srv, srv.connect() as admin, srv.connect() as a, srv.connect() as b:
        run(admin, "CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, v INT)", "INSERT INTO d.t VALUES (1, 0), (2, 0), (3, 0)")
        run(a, "BEGIN", "UPDATE d.t SET v = 1 WHERE id = 1")
        run(b, "BEGIN", "UPDATE d.t SET v = 2 WHERE id = 2")
        waiting = Statement(b, "UPDATE d.t SET v = 2 WHERE id IN (1, 3)")
        wait_until("b waits for a row", lambda: waits_for_a_row(admin))
        run(admin, f"KILL QUERY {b.thread_id()}")
        assert waiting.result() == 1317
        wait_until("the request is gone", lambda: not waits_for_a_row(admin))
        # The statement alone was taken back.
        assert rows(b, "SELECT * FROM d.t ORDER BY id") == ((1, 0), (2, 2), (3, 0))
        waiting = Statement(b, "UPDATE d.t SET v = 3 WHERE id = 1")
        wait_until("b waits again", lambda: waits_for_a_row(admin))
        number = b.thread_id()
        run(admin, f"KILL {number}")
        assert waiting.result() in (1317, 2013, 2006)
        wait_until("b is gone", lambda: not alive(admin, number))
        # Its locks are gone with it.
        run(admin, "UPDATE d.t SET v = 7 WHERE id = 2")
        run(a, "COMMIT")
        assert rows(admin, "SELECT * FROM d.t ORDER BY id") == ((1, 1), (2, 7), (3, 0))


def test_waiting_for_a_metadata_lock(_):
    with server.Server() as srv, srv.connect() as admin, srv.connect() as a, srv.connect() as b, srv.connect() as c:
        run(admin, "CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, v INT)", "INSERT INTO d.t VALUES (1, 0)")
        run(a, "BEGIN", "SELECT * FROM d.t")
        for kill, text in (("KILL QUERY", "ALTER TABLE d.t ADD COLUMN w INT"), ("KILL", "DROP TABLE d.t")):
            conn = b if kill == "KILL QUERY" else c
            number = conn.thread_id()
            waiting = Statement(conn, text)
            time.sleep(0.3)
            assert waiting.outcome is None, waiting.outcome
            run(admin, f"{kill} {number}")
            assert waiting.result() in ((1317,) if kill == "KILL QUERY" else (1317, 2013, 2006)), waiting.outcome
            # No session waits behind it any more, and nothing was done.
            run(admin, "UPDATE d.t SET v = v + 1")
        assert rows(b, "SELECT * FROM d.t") == ((1, 2),)
        run(a, "COMMIT")
        run(b, "ALTER TABLE d.t ADD COLUMN w INT")
        assert rows(b, "SELECT * FROM d.t") == ((1, 2, None),)


def test_a_change_of_a_table_that_runs(_):
    """The index is there or not, as the answer says; one of many kills comes in time."""
    with server.Server() as srv, srv.connect() as admin, srv.connect() as a:
        run(admin, "CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY AUTO_INCREMENT, s VARCHAR(100))", "INSERT INTO d.t (s) VALUES ('x')")
        for _ in range(16):
            run(admin, "INSERT INTO d.t (s) SELECT SHA1(id) FROM d.t")
        for change in ("CREATE INDEX s ON d.t (s)", "ALTER TABLE d.t ADD COLUMN c INT, ADD INDEX s (s)"):
            stopped = 0
            for _ in range(50):
                running = Statement(a, change)
                wait_until("it runs", lambda: running.outcome or any(r[0] == a.thread_id() and r[7] for r in rows(admin, "SHOW PROCESSLIST")))
                run(admin, f"KILL QUERY {a.thread_id()}")
                outcome = running.result()
                assert outcome in ("ok", 1317), outcome
                stopped += outcome == 1317
                indexes = {r[2] for r in rows(admin, "SHOW INDEX FROM d.t")}
                done = outcome == "ok"
                assert indexes == ({"PRIMARY", "s"} if done else {"PRIMARY"}), (outcome, indexes)
                if done:
                    run(admin, "DROP INDEX s ON d.t", *(["ALTER TABLE d.t DROP COLUMN c"] if "COLUMN" in change else []))
                if stopped:
                    break
            assert stopped, f"no KILL stopped {change}"
        assert rows(admin, "CHECK TABLE d.t")[0][3] == "OK"
        assert rows(admin, "SELECT COUNT(*), COUNT(DISTINCT id) FROM d.t") == ((65536, 65536),)


def test_waiting_for_the_disk_in_commit(_):
    if shutil.which("cc") is None:
        print("note: no C compiler, so no disk that hangs")
        return
    top = tempfile.mkdtemp(prefix="nfold-kill-")
    try:
        source, shim, hang = (os.path.join(top, name) for name in ("shim.c", "shim.so", "hang"))
        with open(source, "w") as f:
            f.write(SHIM)
        subprocess.run(["cc", "-shared", "-fPIC", "-o", shim, source, "-ldl"], check=True)
        datadir = os.path.join(top, "data")
        srv = server.Server(datadir=datadir, wrapper=["env", f"LD_PRELOAD={shim}", f"NFOLD_HANG={hang}"])
        with srv:
            commits_on_a_disk_that_hangs(srv, hang)
            srv.kill()
        with server.Server(datadir=datadir) as again, again.connect() as conn:
            expected = tuple((n, s) for n in (1, 2, 3, 4) for s in (1, 2))
            assert rows(conn, "SELECT trx, step FROM d.t ORDER BY trx, step") == expected
            assert rows(conn, "CHECK TABLE d.t")[-1][-1] == "OK"
    finally:
        shutil.rmtree(top)


def commits_on_a_disk_that_hangs(srv, hang):
    admin = srv.connect()
    run(admin, "CREATE DATABASE d", "CREATE TABLE d.t (id INT AUTO_INCREMENT PRIMARY KEY, trx INT, step INT, KEY (trx))")
    conns = [srv.connect() for _ in range(4)]
    for n, conn in enumerate(conns, 1):
        run(conn, "BEGIN", f"INSERT INTO d.t (trx, step) VALUES ({n}, 1)", f"INSERT INTO d.t (trx, step) VALUES ({n}, 2)")
    with open(hang, "w"):
        pass
    commits = [Statement(conn, "COMMIT") for conn in conns]
    time.sleep(0.3)
    assert [c.outcome for c in commits] == [None] * 4, "no client gets OK before the disk has it"
    # What is in the log cannot be taken back: KILL does not make it wait shorter, or say less than
    # the truth.
    run(admin, f"KILL QUERY {conns[0].thread_id()}", f"KILL {conns[1].thread_id()}")
    time.sleep(0.3)
    assert commits[2].outcome is None and commits[3].outcome is None
    assert commits[0].outcome in (None, 1317) and commits[1].outcome in (None, 1317, 2013, 2006)
    # Everybody else goes on: no worker waits for the disk. Rows and locks are those of committed
    # transactions.
    start = time.monotonic()
    for _ in range(20):
        with srv.connect() as other:
            assert rows(other, "SELECT 1") == ((1,),)
    assert time.monotonic() - start < 10, "a worker waits for the disk"
    assert rows(admin, "SELECT trx, COUNT(*) FROM d.t GROUP BY trx ORDER BY trx") == ((1, 2), (2, 2), (3, 2), (4, 2))
    os.remove(hang)
    assert commits[0].result() in ("ok", 1317)
    assert commits[1].result() in ("ok", 1317, 2013, 2006)
    assert [commits[2].result(), commits[3].result()] == ["ok", "ok"]
    # The killed statement's session goes on; the killed session is gone.
    assert rows(conns[0], "SELECT COUNT(*) FROM d.t") == ((8,),)
    wait_until("the killed session is gone", lambda: not alive(admin, conns[1].thread_id()))


# Statements that KILL QUERY or `max_execution_time` ends in SLEEP, with MySQL's answers: rows of a
# statement that reads no table, else the error.
INTERRUPTED_SLEEPS = [
    ("SELECT SLEEP(5)", ((1,),)),
    ("SELECT SLEEP(5), 1 + 1", ((1, 2),)),
    ("SELECT 1 + SLEEP(5)", ((2,),)),
    ("SELECT (SELECT SLEEP(5))", ((1,),)),
    ("SELECT SLEEP(5) FROM DUAL WHERE 1", ((1,),)),
    ("SELECT IF(SLEEP(5), 2, 3)", ((2,),)),
    ("SELECT SLEEP(5) ORDER BY 1", ((1,),)),
    ("SELECT SLEEP(5) FROM d.t", None),
    ("SELECT a FROM d.t WHERE SLEEP(5) = 0", None),
    ("SELECT COUNT(*) FROM d.t WHERE SLEEP(5)", None),
]


def test_interrupted_sleep_returns_one(_):
    with server.Server() as srv, srv.connect() as admin:
        run(admin, "CREATE DATABASE d", "CREATE TABLE d.t (a INT)", "INSERT INTO d.t VALUES (1), (2)")
        for text, expected in INTERRUPTED_SLEEPS:
            with srv.connect() as conn:
                statement = Statement(conn, text)
                running = lambda: [row[7] for row in rows(admin, "SHOW PROCESSLIST")]  # noqa: E731
                wait_until("it runs", lambda: text in running())
                run(admin, f"KILL QUERY {conn.thread_id()}")
                assert statement.result() == (1317 if expected is None else "ok"), text
                run(conn, "SET max_execution_time = 50")
                try:
                    assert rows(conn, text) == expected, text
                except pymysql.err.MySQLError as e:
                    assert (e.args[0], expected) == (3024, None), text
                run(conn, "SET max_execution_time = 0", "SET @a = SLEEP(0)", "SELECT 1")
