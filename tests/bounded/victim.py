"""A statement on a connection of its own, and how it is stopped."""
import contextlib
import socket
import threading
import time

import probe
import pymysql

STOPPED = {"KILL QUERY": (1317,), "time limit": (3024,), "close": ("gone",), "SIGTERM": (1053, 1317, 2006, 2013, "gone")}
TOO_LARGE = (1117, 1436)  # too many columns, too deep: only found after the whole text was read


def read_answer(sock):
    """Reads the answer to a statement to its end: "ended", an error's number, or "gone".

    The time to read the rows that were sent before the stop counts, so they are not decoded."""
    got, at, ends, follows = bytearray(), 0, None, False
    while True:
        while at + 5 > len(got) or at + 4 + int.from_bytes(got[at:at + 3], "little") > len(got):
            if at + 4 <= len(got) and got[at:at + 3] == b"\0\0\0":
                break  # an empty packet ends a row of several packets
            del got[:at]
            at = 0
            more = sock.recv(1 << 20)
            if not more:
                return "gone"
            got += more
        size = int.from_bytes(got[at:at + 3], "little")
        kind = got[at + 4] if size and not follows else None
        if kind == 0xFF:
            return int.from_bytes(got[at + 5:at + 7], "little")
        if ends is None:
            ends = 2 if kind else 0
        elif kind == 0xFE and size < 9:
            ends -= 1
        if not ends:
            return "ended"
        follows = size == 0xFFFFFF
        at += 4 + size


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
            self.outcome = read_answer(self.conn._sock)
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
