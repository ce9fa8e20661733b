"""One text of many short statements: none of them is long, but together they are."""
import select

import pymysql
import server
from pymysql.constants import CLIENT, COMMAND

STATEMENTS = 20_000


def test_other_sessions_have_their_turns(_):
    with server.Server({"nfold_workers": "1"}) as srv:
        conn, beside = srv.connect(client_flag=CLIENT.MULTI_STATEMENTS), srv.connect().cursor()
        beside.execute("CREATE DATABASE d")
        beside.execute("CREATE TABLE d.t (id INT PRIMARY KEY)")
        beside.execute("INSERT INTO d.t VALUES (1)")
        for statement in ("DO MD5(REPEAT('a', 10000));", "SET @a = MD5(REPEAT('a', 10000));",
                          "SELECT 1 FROM d.t WHERE id = 2 AND MD5(REPEAT('a', 10000)) = 1;"):
            conn._execute_command(COMMAND.COM_QUERY, statement * STATEMENTS)
            turns = 0
            # Nothing arrives before the answers fill a buffer of 256 KiB, or the text has ended.
            while not select.select([conn._sock], [], [], 0)[0]:
                beside.execute("SELECT 1")
                turns += 1
            assert turns >= 8, (statement, turns)
            conn._read_query_result()
            while conn._result.has_next:
                conn.next_result()


def test_kill_query_ends_the_text(srv):
    conn, beside = srv.connect(client_flag=CLIENT.MULTI_STATEMENTS), srv.connect().cursor()
    conn._execute_command(COMMAND.COM_QUERY, "DO 1;" * 500_000)
    running = f"SELECT command = 'Query' FROM information_schema.processlist WHERE id = {conn.thread_id()}"
    while beside.execute(running) and beside.fetchone() != (1,):
        pass
    beside.execute(f"KILL QUERY {conn.thread_id()}")
    answered = 0
    try:
        conn._read_query_result()
        answered = 1
        while conn._result.has_next:
            conn.next_result()
            answered += 1
    except pymysql.err.OperationalError as e:
        assert e.args[0] == 1317, e
    assert answered < 500_000, answered
    conn.ping(reconnect=False)
