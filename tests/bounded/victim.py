"""A statement on a connection of its own, and how it is stopped."""
import contextlib
import socket
import threading
import time

import probe
import pymysql

STOPPED = {"KILL QUERY": (1317,), "time limit": (3024,), "close": ("gone",), "SIGTERM": (1053, 1317, 2006, 2013, "gone")}
TOO_LARGE = (1117, 1436)  # too many columns, too deep: only found after the whole text was read


class Victim(threading.Thread):
    """Runs one statement. `sent`: when its text was sent; `end`, `outcome`: when it ended, and how.
    """

    def __init__(self, conn, sql):
        super().__init__(daemon=True)
        self.conn, self.sql = conn, sql
        self.sent, self.ended, self.outcome, self.end = threading.Event(), threading.Event(), None, None
        self.start()

    def run(self):
        try:
            self.conn._execute_command(pymysql.constants.COMMAND.COM_QUERY, self.sql)
            self.sent.at = time.monotonic()
            self.sent.set()
            first = self.conn._read_packet()
            ends = 2 if first.is_resultset_packet() else 0
            while ends:
                ends -= self.conn._read_packet().is_eof_packet()
            self.outcome = "ended"
        except pymysql.err.MySQLError as e:
            self.outcome = e.args[0]
        except (OSError, AttributeError):  # closed meanwhile
            self.outcome = "gone"
        self.end = time.monotonic()
        self.sent.set()
        self.ended.set()


def execute(conn, statements):
    for statement in statements:
        conn.cursor().execute(statement)


def is_there(admin, number):
    with admin.cursor() as cur:
        cur.execute(f"SELECT COUNT(*) FROM information_schema.processlist WHERE id = {number}")
        return cur.fetchone()[0] > 0


@contextlib.contextmanager
def session(srv, kind):
    """A connection on which the kind's statement can run, and one that waits for nothing."""
    with contextlib.ExitStack() as stack:
        def connect():
            conn = srv.connect(max_allowed_packet=1 << 30)
            stack.callback(lambda: conn._sock and conn.close())
            return conn
        execute(connect(), kind.blocker)
        conn = connect()
        execute(conn, kind.before)
        yield conn, connect()


def stop(srv, kind, how, after):
    """(seconds it took to end, its outcome)"""
    with session(srv, kind) as (conn, admin):
        delay, number = probe.Delay(srv.process.pid), conn.thread_id()
        if how == "time limit":
            execute(conn, [f"SET max_execution_time = {int(after * 1000)}"])
        victim = Victim(conn, kind.sql())
        victim.sent.wait(60)
        if how == "time limit":
            before, start = delay.read(), victim.sent.at + after
        else:
            victim.ended.wait(after)
            before, start = delay.read(), time.monotonic()
        if how == "KILL QUERY":
            execute(admin, [f"KILL QUERY {number}"])
        elif how == "close":
            conn._sock.shutdown(socket.SHUT_RDWR)
            while is_there(admin, number) and time.monotonic() < start + 10:
                time.sleep(0.002)
            end = time.monotonic()
        if not victim.ended.wait(10):
            admin.cursor().execute(f"KILL {number}")
            return 10.0, "does not end"
        took = (end if how == "close" else victim.end) - start
        return max(took - delay.since(before), 0.0), "gone" if how == "close" else victim.outcome


def terminated(srv, kinds, limit):
    """SIGTERM ends statements of all kinds; how many did not end in time."""
    late = []
    with contextlib.ExitStack() as stack:
        victims = []
        for kind in kinds[::4]:
            conn, _ = stack.enter_context(session(srv, kind))
            victims.append((kind, Victim(conn, kind.sql())))
        time.sleep(0.5)
        delay = probe.Delay(srv.process.pid)
        before, start = delay.read(), time.monotonic()
        running = [(k, v) for k, v in victims if not v.ended.is_set()]
        srv.process.terminate()
        srv.process.wait(60)
        for kind, victim in running:
            victim.ended.wait(60)
            took = (victim.end or start + 60) - start - delay.since(before)
            if took > limit * (1 + len(running)):
                late.append(f"{kind.name}: {took * 1000:.0f} ms after SIGTERM")
    print(f"SIGTERM ended {len(running) - len(late)} statements that ran" + "".join(f"\n    FAILED: {text}" for text in late))
    return len(late)
