"""A transaction that meets a lock of another session on the replica. The source is another
Nfold."""

import threading
import time

import replica
import server
from test_source import OPTIONS, begin, caught_up


def test_transactions_wait_for_locks_again(srv):
    src = begin(srv)
    src.execute("CREATE TABLE t (id INT PRIMARY KEY, a INT)")
    src.execute("INSERT INTO t VALUES (1, 1), (2, 2)")
    options = {"server_id": 72, "innodb_buffer_pool_size": "64M", "innodb_lock_wait_timeout": 1}
    with server.Server(options) as other:
        cur = other.connect().cursor()
        replica.change(cur, srv.port)
        cur.execute("START REPLICA")
        caught_up(src, cur)
        reader = other.connect().cursor()
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM rep.t WHERE id = 2 FOR UPDATE")
        src.execute("BEGIN")
        src.execute("UPDATE t SET a = a + 10 WHERE id = 1")
        src.execute("UPDATE t SET a = a + 10 WHERE id = 2")
        src.execute("COMMIT")
        deadline = time.monotonic() + 30
        while True:
            cur.execute("SELECT count_transactions_retries FROM performance_schema.replication_applier_status")
            if cur.fetchone()[0] >= 2:
                break
            assert time.monotonic() < deadline, replica.status(cur)
            time.sleep(0.05)
        assert replica.status(cur)["Replica_SQL_Running"] == "Yes"
        reader.execute("COMMIT")
        caught_up(src, cur)
        cur.execute("SELECT a FROM rep.t ORDER BY id")
        assert cur.fetchall() == ((11,), (12,))

        # Without a retry the channel stops, and START REPLICA goes on.
        cur.execute("SET GLOBAL replica_transaction_retries = 0")
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM rep.t WHERE id = 1 FOR UPDATE")
        src.execute("UPDATE t SET a = a + 100")
        assert replica.wait_stopped(cur)["Last_SQL_Errno"] == 1205
        # A DDL statement waits for the tables of open transactions.
        cur.execute("SET GLOBAL replica_transaction_retries = 100")
        cur.execute("SET GLOBAL lock_wait_timeout = 1")
        cur.execute("START REPLICA")
        reader.execute("COMMIT")
        caught_up(src, cur)
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM rep.t")
        assert reader.fetchall() == ((1, 111), (2, 112))
        src.execute("ALTER TABLE t ADD b INT")
        ended = threading.Timer(2.5, lambda: reader.execute("COMMIT"))
        ended.start()
        caught_up(src, cur)
        ended.join()
        cur.execute("SELECT * FROM rep.t")
        assert cur.fetchall() == ((1, 111, None), (2, 112, None))
