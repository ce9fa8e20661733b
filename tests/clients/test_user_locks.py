"""When a session's user-level locks end: COM_RESET_CONNECTION, COM_CHANGE_USER, a lost client, also
one that waits."""
import server
from test_kill import Statement, rows, wait_until

COM_CHANGE_USER, COM_RESET_CONNECTION = 0x11, 0x1F


def free(conn, name):
    return rows(conn, f"SELECT IS_FREE_LOCK('{name}')") == ((1,),)


def waits(conn):
    states = rows(conn, "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE STATE = 'User lock'")
    return states == ((1,),)


def test_reset_and_change_user_release_user_locks(srv):
    with srv.connect() as admin, srv.connect() as a:
        rows(a, "SELECT GET_LOCK('one', 0), GET_LOCK('one', 0), GET_LOCK('two', 0)")
        assert not free(admin, "one")
        a._execute_command(COM_RESET_CONNECTION, b"")
        a._read_ok_packet()
        assert free(admin, "one") and free(admin, "two")
        rows(a, "SELECT GET_LOCK('one', 0)")
        # Without a password; 45: utf8mb4_general_ci.
        a._execute_command(COM_CHANGE_USER, b"root\0\0\0\x2d\0caching_sha2_password\0")
        assert a._read_packet().is_auth_switch_request()
        a.write_packet(b"")
        assert a._read_packet().is_ok_packet()
        wait_until("the lock is released", lambda: free(admin, "one"))


def test_lost_client_leaves_user_locks_and_queues(srv):
    with srv.connect() as admin, srv.connect() as a, srv.connect() as b:
        rows(a, "SELECT GET_LOCK('lost', 0)")
        waiting = Statement(b, "SELECT GET_LOCK('lost', -1)")
        wait_until("b waits", lambda: waits(admin))
        a._force_close()
        assert waiting.result() == "ok"
        with srv.connect() as c:
            gone = Statement(c, "SELECT GET_LOCK('lost', -1)")
            wait_until("c waits", lambda: waits(admin))
            c._sock.shutdown(2)
            wait_until("c is gone", lambda: not waits(admin))
            assert gone.result() != "ok"
        rows(b, "SELECT RELEASE_ALL_LOCKS()")
        assert free(admin, "lost")


def test_many_waiters_are_served_in_order(srv):
    with srv.connect() as owner, srv.connect() as admin:
        rows(owner, "SELECT GET_LOCK('queue', 0)")
        conns = [srv.connect() for _ in range(30)]
        queued = "SELECT COUNT(*) FROM performance_schema.metadata_locks WHERE LOCK_STATUS = 'PENDING'"
        waiting = []
        for n, conn in enumerate(conns, 1):
            waiting.append(Statement(conn, "SELECT GET_LOCK('queue', 60)"))
            wait_until("it is queued", lambda n=n: rows(admin, queued) == ((n,),))
        rows(owner, "DO RELEASE_LOCK('queue')")
        for conn, statement in zip(conns, waiting):
            assert statement.result() == "ok"
            assert rows(admin, "SELECT IS_USED_LOCK('queue')") == ((conn.thread_id(),),)
            conn.close()
        wait_until("the last one releases", lambda: free(admin, "queue"))
