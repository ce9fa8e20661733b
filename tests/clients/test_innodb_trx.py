"""information_schema.INNODB_TRX: every active transaction, also of readers; which waits for what.
"""
import threading
import time

import pymysql
import pymysql.cursors

LIMIT_S = 120


def transactions(look, conn):
    look.execute("SELECT * FROM information_schema.INNODB_TRX WHERE trx_mysql_thread_id = %s", [conn.thread_id()])
    return look.fetchall()


def watcher(srv):
    return srv.connect(cursorclass=pymysql.cursors.DictCursor).cursor()


def prepare(srv, name):
    look = watcher(srv)
    look.execute(f"CREATE DATABASE {name}")
    look.execute(f"CREATE TABLE {name}.t (id INT PRIMARY KEY, n INT NOT NULL)")
    look.execute(f"INSERT INTO {name}.t VALUES (1, 0), (2, 0), (3, 0)")
    return look


def test_a_reader_with_a_snapshot_is_visible(srv):
    look, reader = prepare(srv, "snap"), srv.connect()
    reader.begin()
    assert transactions(look, reader) == (), "it has not begun before it uses a table"
    reader.cursor().execute("SELECT 1")
    assert transactions(look, reader) == ()
    reader.cursor().execute("SELECT * FROM snap.t")
    trx, = transactions(look, reader)
    assert (trx["trx_state"], trx["trx_isolation_level"], trx["trx_query"]) == ("RUNNING", "REPEATABLE READ", None), trx
    assert trx["trx_id"] > 1 << 47 and trx["trx_weight"] == trx["trx_rows_locked"] == trx["trx_rows_modified"] == 0, trx
    assert (trx["trx_is_read_only"], trx["trx_autocommit_non_locking"], trx["trx_wait_started"]) == (0, 0, None), trx
    look.execute("SELECT trx_started BETWEEN NOW() - INTERVAL 10 MINUTE AND NOW() AS good FROM information_schema.INNODB_TRX "
                 "WHERE trx_mysql_thread_id = %s", [reader.thread_id()])
    assert look.fetchone() == {"good": 1}
    reader.commit()
    assert transactions(look, reader) == ()
    for begin, level, read_only in (("START TRANSACTION READ ONLY", "READ COMMITTED", 1), ("BEGIN", "READ UNCOMMITTED", 0),
                                    ("BEGIN", "SERIALIZABLE", 0)):
        cur = reader.cursor()
        cur.execute(f"SET SESSION TRANSACTION ISOLATION LEVEL {level}")
        cur.execute(begin)
        cur.execute("SELECT * FROM snap.t WHERE id = 1")
        # Also between two statements of READ COMMITTED, when no snapshot is open.
        trx, = transactions(look, reader)
        assert (trx["trx_isolation_level"], trx["trx_is_read_only"]) == (level, read_only), trx
        reader.rollback()
    cur.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    cur.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
    assert len(transactions(look, reader)) == 1
    reader.rollback()
    cur.execute("SET autocommit = 0")
    cur.execute("SELECT * FROM snap.t")
    assert len(transactions(look, reader)) == 1
    reader.close()
    wait_until(lambda: not transactions(look, reader))


def wait_until(condition):
    end = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < end, "it does not happen"
        time.sleep(0.01)


def test_a_writer_and_who_waits_for_it(srv):
    look, writer, waiter = prepare(srv, "held"), srv.connect(), srv.connect()
    writer.begin()
    writer.cursor().execute("UPDATE held.t SET n = 1 WHERE id IN (1, 2)")
    trx, = transactions(look, writer)
    assert trx["trx_state"] == "RUNNING" and trx["trx_id"] < 1 << 47 and trx["trx_rows_modified"] == 2, trx
    assert trx["trx_tables_locked"] == 1 and trx["trx_lock_structs"] >= 1 and trx["trx_weight"] >= 3, trx
    text = "UPDATE held.t SET n = 2 WHERE id = 2"
    thread = threading.Thread(target=lambda: waiter.cursor().execute(text))
    thread.start()
    wait_until(lambda: [t["trx_state"] for t in transactions(look, waiter)] == ["LOCK WAIT"])
    trx, = transactions(look, waiter)
    assert (trx["trx_autocommit_non_locking"], trx["trx_is_read_only"]) == (0, 0), trx
    assert trx["trx_query"] == text and trx["trx_wait_started"] >= trx["trx_started"], trx
    look.execute("SELECT ENGINE_LOCK_ID, LOCK_STATUS FROM performance_schema.data_locks WHERE ENGINE_LOCK_ID = %s", [trx["trx_requested_lock_id"]])
    assert list(look.fetchall()) == [{"ENGINE_LOCK_ID": trx["trx_requested_lock_id"], "LOCK_STATUS": "WAITING"}]
    look.execute("SELECT b.trx_mysql_thread_id AS id FROM performance_schema.data_lock_waits w "
                 "JOIN information_schema.INNODB_TRX b ON b.trx_id = w.BLOCKING_ENGINE_TRANSACTION_ID "
                 "JOIN information_schema.INNODB_TRX r ON r.trx_id = w.REQUESTING_ENGINE_TRANSACTION_ID "
                 "WHERE r.trx_mysql_thread_id = %s", [waiter.thread_id()])
    assert list(look.fetchall()) == [{"id": writer.thread_id()}]
    writer.rollback()
    thread.join()
    assert transactions(look, writer) == transactions(look, waiter) == ()


def test_a_select_of_its_own(srv):
    """A running SELECT outside of BEGIN is there as long as it runs."""
    look, reader = prepare(srv, "own"), srv.connect()
    text = "SELECT id, SLEEP(100) FROM own.t"

    def run():
        try:
            reader.cursor().execute(text)
        except pymysql.Error:
            pass  # it is killed
    thread = threading.Thread(target=run)
    thread.start()
    wait_until(lambda: transactions(look, reader))
    trx, = transactions(look, reader)
    assert (trx["trx_query"], trx["trx_autocommit_non_locking"], trx["trx_is_read_only"]) == (text, 1, 1), trx
    look.execute(f"KILL QUERY {reader.thread_id()}")
    thread.join()
    wait_until(lambda: not transactions(look, reader))


def test_who_may_look(srv):
    root = srv.connect().cursor()
    root.execute("CREATE USER reader@'%' IDENTIFIED BY 'x'")
    with srv.connect(user="reader", password="x") as conn, conn.cursor() as cur:
        try:
            cur.execute("SELECT * FROM information_schema.INNODB_TRX")
        except pymysql.Error as e:
            assert e.args[0] == 1227, e
        else:
            raise AssertionError("without PROCESS")
