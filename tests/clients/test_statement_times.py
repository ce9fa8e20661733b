"""Times of statements that arrive together: one worker runs them one after the other."""
import time

import server
from pymysql.constants import COMMAND

CONNECTIONS = 32
ROUNDS = 100


def test_they_do_not_overlap(_):
    with server.Server({"nfold_workers": "1"}) as srv:
        admin = srv.connect().cursor()
        conns = [srv.connect() for _ in range(CONNECTIONS)]
        admin.execute("TRUNCATE TABLE performance_schema.events_statements_summary_by_digest")
        active = 0.0
        for _ in range(ROUNDS):
            # A start that is read too early would count this pause.
            time.sleep(0.005)
            began = time.monotonic()
            for conn in conns:
                conn._execute_command(COMMAND.COM_QUERY, "SELECT 'together' FROM DUAL")
            for conn in conns:
                conn._read_query_result()
            active += time.monotonic() - began
        admin.execute("SELECT COUNT_STAR, SUM_TIMER_WAIT / 1e12 FROM performance_schema.events_statements_summary_by_digest"
                      " WHERE DIGEST_TEXT = 'SELECT ? FROM DUAL'")
        count, seconds = admin.fetchone()
        assert count == CONNECTIONS * ROUNDS, count
        assert 0 < seconds <= active, (seconds, active)
        admin.execute("SHOW GLOBAL STATUS LIKE 'Nfold_answers_together'")
        assert int(admin.fetchone()[1]) > 0
