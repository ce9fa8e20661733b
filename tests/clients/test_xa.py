"""XA: a prepared branch outlives its connection, a clean stop and kill -9. Afterwards it is listed,
its rows and tables are locked, its changes are invisible, and any session commits it or rolls it
back. A branch that is not prepared ends with its connection."""
import threading

import pymysql
import server

LIMIT_S = 180
LOCK_WAIT, LOCK_NOWAIT, XA_NOTA, XA_RMFAIL, XA_RMERR, XA_DUPID = 1205, 3572, 1397, 1399, 1401, 1440


def rows(conn, text):
    cur = conn.cursor()
    cur.execute(text)
    return cur.fetchall()


def run(conn, *texts):
    for text in texts:
        conn.cursor().execute(text)


def error(conn, text):
    try:
        run(conn, text)
    except pymysql.err.MySQLError as e:
        return e.args[0]
    raise AssertionError(f"{text} succeeded")


def impatient(srv, **more):
    conn = srv.connect(**more)
    run(conn, "SET innodb_lock_wait_timeout = 1, lock_wait_timeout = 1")
    return conn


def prepare(conn, name, *texts):
    run(conn, f"XA START '{name}'", *texts, f"XA END '{name}'", f"XA PREPARE '{name}'")


def table(conn, name):
    run(conn, f"CREATE DATABASE {name}", f"USE {name}",
        "CREATE TABLE t (id INT PRIMARY KEY, v INT, pad TEXT, KEY v (v))",
        "INSERT INTO t VALUES (1, 1, 'a'), (2, 2, REPEAT('b', 20000)), (3, 3, 'c'), (4, 4, 'd')",
        "CREATE TABLE read_only (id INT PRIMARY KEY)")


CHANGES = ["SELECT * FROM read_only", "UPDATE t SET v = 10, pad = REPEAT('x', 30000) WHERE id = 1", "DELETE FROM t WHERE id = 2",
           "INSERT INTO t VALUES (5, 5, 'e')", "SAVEPOINT s", "UPDATE t SET v = 30 WHERE id = 3", "ROLLBACK TO s"]
BEFORE = ((1, 1, 1), (2, 2, 20000), (3, 3, 1), (4, 4, 1))
AFTER = ((1, 10, 30000), (3, 3, 1), (4, 4, 1), (5, 5, 1))


def state(conn):
    clustered = rows(conn, "SELECT id, v, LENGTH(pad) FROM t ORDER BY id")
    by_index = rows(conn, "SELECT id, v FROM t FORCE INDEX (v) WHERE v > -1 ORDER BY id")
    assert by_index == tuple(row[:2] for row in clustered), (by_index, clustered)
    return clustered


def check_prepared(srv, database, name, patient=True):
    """What another session meets while the branch with CHANGES is prepared."""
    with impatient(srv, database=database) as conn:
        assert (1, len(name), 0, name) in rows(conn, "XA RECOVER")
        assert state(conn) == BEFORE
        for text in ["SELECT * FROM t WHERE id = 1 FOR UPDATE", "SELECT * FROM t WHERE id = 2 FOR SHARE",
                     "SELECT * FROM t WHERE id = 5 FOR UPDATE", "SELECT id FROM t FORCE INDEX (v) WHERE v = 10 FOR UPDATE",
                     "SELECT id FROM t FORCE INDEX (v) WHERE v = 2 FOR UPDATE"]:
            assert error(conn, f"{text} NOWAIT") == LOCK_NOWAIT, text
        waiting = ["INSERT INTO t VALUES (5, 0, '')", "ALTER TABLE t ADD COLUMN w INT", "TRUNCATE TABLE read_only"]
        for text in waiting if patient else waiting[:1]:
            assert error(conn, text) == LOCK_WAIT, text
        run(conn, "UPDATE t SET v = 4 WHERE id = 4")
        assert error(conn, f"XA START '{name}'") == XA_DUPID
        assert rows(conn, "SELECT trx_state FROM information_schema.INNODB_TRX WHERE trx_mysql_thread_id = 0") == (("RUNNING",),)


def check_ended(srv, database, expected):
    with impatient(srv, database=database) as conn:
        assert rows(conn, "XA RECOVER") == ()
        assert state(conn) == expected
        run(conn, "UPDATE t SET v = v + 1", "UPDATE t SET v = v - 1", "ALTER TABLE t ADD COLUMN w INT", "DROP TABLE read_only")
        assert state(conn) == expected
        assert rows(conn, "CHECK TABLE t")[0][3] == "OK"


def test_a_prepared_branch_outlives_its_connection(srv):
    for end, expected in [("COMMIT", AFTER), ("ROLLBACK", BEFORE)]:
        database = f"xa_{end.lower()}"
        conn = srv.connect()
        table(conn, database)
        prepare(conn, "left", *CHANGES)
        conn.close()
        check_prepared(srv, database, "left")
        with srv.connect() as other:
            run(other, f"XA {end} 'left'")
            assert error(other, f"XA {end} 'left'") == XA_NOTA
        check_ended(srv, database, expected)


def restart(srv, how):
    srv.kill() if how == "kill" else srv.stop()
    srv.start()


def test_a_prepared_branch_outlives_the_server(_):
    with server.Server({"innodb_flush_log_at_trx_commit": "0"}) as srv:
        for how in ["kill", "stop"]:
            for end, expected in [("COMMIT", AFTER), ("ROLLBACK", BEFORE)]:
                database = f"xa_{how}_{end.lower()}"
                with srv.connect() as conn:
                    table(conn, database)
                    run(conn, "FLUSH LOGS")
                    prepare(conn, "durable", *CHANGES)
                restart(srv, how)
                check_prepared(srv, database, "durable")
                restart(srv, "stop" if how == "kill" else "kill")
                check_prepared(srv, database, "durable", patient=False)
                with srv.connect() as other:
                    run(other, f"XA {end} 'durable'")
                check_ended(srv, database, expected)
                restart(srv, "kill")
                with srv.connect(database=database) as conn:
                    assert rows(conn, "XA RECOVER") == ()
                    assert rows(conn, "SELECT id, v, LENGTH(pad) FROM t ORDER BY id") == expected


def test_a_rollback_that_the_server_does_not_survive(_):
    """A branch is rolled back in part when the server is killed: it is not prepared any more."""
    with server.Server() as srv:
        with srv.connect() as conn:
            run(conn, "CREATE DATABASE xa", "CREATE TABLE xa.t (id INT PRIMARY KEY, v INT, KEY (v))",
                "INSERT INTO xa.t WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) SELECT i, i FROM n",
                "INSERT INTO xa.t SELECT id + 1000, v FROM xa.t", "INSERT INTO xa.t SELECT id + 2000, v FROM xa.t",
                "INSERT INTO xa.t SELECT id + 4000, v FROM xa.t", "INSERT INTO xa.t SELECT id + 8000, v FROM xa.t",
                "INSERT INTO xa.t SELECT id + 16000, v FROM xa.t", "INSERT INTO xa.t SELECT id + 32000, v FROM xa.t")
            sums = rows(conn, "SELECT COUNT(*), SUM(v), SUM(id) FROM xa.t")
            prepare(conn, "long", "UPDATE xa.t SET v = v + 1000000", "DELETE FROM xa.t WHERE id % 3 = 0")
            ending = threading.Thread(target=swallow, args=(conn, "XA ROLLBACK 'long'"))
            ending.start()
            with srv.connect() as look:
                # Others' commits make the log durable meanwhile.
                for n in range(20):
                    run(look, f"CREATE TABLE xa.other{n} (id INT)")
                    if rows(look, "SELECT COUNT(*) FROM xa.t FORCE INDEX (PRIMARY) WHERE id = 1")[0][0] != 1:
                        break
            srv.kill()
            ending.join(30)
        srv.start()
        with srv.connect() as conn:
            assert rows(conn, "XA RECOVER") in ((), ((1, 4, 0, "long"),))
            for _, gtrid, _, _ in rows(conn, "XA RECOVER"):
                assert gtrid == 4
                run(conn, "XA ROLLBACK 'long'")
            run(conn, "SET innodb_lock_wait_timeout = 60")
            assert len(rows(conn, "SELECT id FROM xa.t FOR UPDATE")) == sums[0][0], "after the rollback"
            assert rows(conn, "SELECT COUNT(*), SUM(v), SUM(id) FROM xa.t") == sums
            assert rows(conn, "CHECK TABLE xa.t")[0][3] == "OK"


def swallow(conn, text):
    try:
        run(conn, text)
    except (pymysql.err.MySQLError, OSError):
        pass


def test_many_branches_and_a_branch_without_changes(_):
    with server.Server() as srv:
        with srv.connect() as conn:
            run(conn, "CREATE DATABASE xa", "CREATE TABLE xa.t (id INT PRIMARY KEY, v INT)")
            for n in range(50):
                prepare(conn, f"b{n}", f"INSERT INTO xa.t VALUES ({n}, 0)")
                run(conn, f"INSERT INTO xa.t VALUES ({1000 + n}, 0)")
            prepare(conn, "empty")
            run(conn, "XA START 0x00FF,'',5", "XA END 0x00FF,'',5", "XA PREPARE 0x00FF,'',5")
        srv.kill()
        srv.start()
        with srv.connect() as conn:
            found = rows(conn, "XA RECOVER CONVERT XID")
            assert [row[3] for row in found[:2]] == ["0x6230", "0x6231"] and len(found) == 52, found
            assert found[-2:] == ((1, 5, 0, "0x656D707479"), (5, 2, 0, "0x00FF")), found
            for n in range(50):
                run(conn, f"XA {'COMMIT' if n % 2 else 'ROLLBACK'} 'b{n}'")
            run(conn, "XA COMMIT 'empty'", "XA ROLLBACK X'00ff','',5")
            assert rows(conn, "SELECT COUNT(*), SUM(id % 2) FROM xa.t WHERE id < 1000") == ((25, 25),)
            assert rows(conn, "SELECT COUNT(*) FROM xa.t WHERE id >= 1000") == ((50,),)


def test_a_branch_that_is_not_prepared_ends_with_its_connection(srv):
    with srv.connect() as admin:
        table(admin, "xa_open")
        for last in ["XA END 'open'", "SELECT 1"]:
            conn = srv.connect(database="xa_open")
            run(conn, "XA START 'open'", "UPDATE t SET v = 99 WHERE id = 1", last)
            conn.close()
            run(admin, "UPDATE t SET v = 1 WHERE id = 1")
            assert rows(admin, "XA RECOVER") == ()
            assert error(admin, "XA COMMIT 'open'") == XA_NOTA
            run(admin, "XA START 'open'", "XA END 'open'", "XA COMMIT 'open' ONE PHASE")


def test_reset_of_a_connection_ends_its_branch(srv):
    with srv.connect() as admin, srv.connect() as conn:
        table(admin, "xa_reset")
        run(conn, "XA START 'reset'", "UPDATE xa_reset.t SET v = 99 WHERE id = 1")
        conn._execute_command(0x1F, b"")
        conn._read_ok_packet()
        assert error(conn, "XA END 'reset'") == XA_RMFAIL
        run(conn, "BEGIN", "ROLLBACK", "CREATE TABLE xa_reset.u (a INT)", "DROP TABLE xa_reset.u")
        assert rows(admin, "SELECT v FROM xa_reset.t WHERE id = 1 FOR UPDATE") == ((1,),)


def test_privilege_to_list_branches(srv):
    with srv.connect() as admin:
        run(admin, "CREATE USER xa_user IDENTIFIED BY 'x'", "CREATE DATABASE xa_rights", "GRANT ALL ON xa_rights.* TO xa_user",
            "CREATE TABLE xa_rights.t (id INT PRIMARY KEY)")
        with srv.connect(user="xa_user", password="x") as conn:
            prepare(conn, "rights", "INSERT INTO xa_rights.t VALUES (1)")
            assert error(conn, "XA RECOVER") == XA_RMERR
            assert {row[1] for row in rows(conn, "SHOW WARNINGS")} == {XA_RMERR, 1227}
            run(conn, "XA COMMIT 'rights'")
        run(admin, "GRANT XA_RECOVER_ADMIN ON *.* TO xa_user")
        with srv.connect(user="xa_user", password="x") as conn:
            assert rows(conn, "XA RECOVER") == ()
        run(admin, "DROP USER xa_user", "DROP DATABASE xa_rights")
