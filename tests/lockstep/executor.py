"""One server's side: its named connections, statements with a time limit, and their answers."""

import select
import sys
import os

import pymysql

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import sqltest  # noqa: E402  (registers the codec any_utf8)

LOST = (2003, 2006, 2013, 2055, 0)


class Answer:
    """What a server answered to one statement.

    kind: "rows", "ok", "error", "lost" (connection gone) or "hang" (killed at the time limit).
    results: for each result set (names, types, rows); warnings: [(level, number, text)].
    """

    def __init__(self, kind, results=(), affected=0, insert_id=0, error=None, warning_count=0):
        self.kind, self.results, self.error = kind, list(results), error
        self.affected, self.insert_id, self.warning_count = affected, insert_id, warning_count
        self.warnings = []

    def brief(self):
        if self.error:
            return f"{self.kind} {self.error[0]}: {self.error[1][:160]}"
        if self.kind == "rows":
            names, types, rows = self.results[0]
            shown = ["\t".join(sqltest.show(v)[:60] for v in row) for row in rows[:4]]
            return f"{len(rows)} rows [{', '.join(f'{n}:{t}' for n, t in zip(names, types))}] " + " | ".join(shown)
        return f"{self.kind} affected {self.affected} insert id {self.insert_id}"


class Executor:
    """Connections of one server by name. where: a function that returns PyMySQL's arguments."""

    def __init__(self, where, limit):
        self.where, self.limit = where, limit
        self.connections = {}

    def open(self, name, user="root", password="", database="test"):
        """None, or the error."""
        self.close(name)
        try:
            conn = pymysql.connect(charset="utf8mb4", conv={}, use_unicode=False, autocommit=None, user=user,
                                   password=password, database=database or None, read_timeout=self.limit + 20,
                                   connect_timeout=10, **self.where())
        except Exception as e:  # refused, or a server that is gone
            return e.args if len(e.args) > 1 else (2013, repr(e))
        conn.encoding = "any_utf8"
        self.connections[name] = conn
        return None

    def close(self, name):
        conn = self.connections.pop(name, None)
        if conn:
            try:
                conn.close()
            except pymysql.err.Error:
                pass

    def close_all(self):
        for name in list(self.connections):
            self.close(name)

    def send(self, name, sql):
        """None, or the answer if the statement could not be sent."""
        conn = self.connections.get(name)
        if conn is None:
            return Answer("lost", error=(2013, "no connection"))
        try:
            conn._execute_command(pymysql.constants.COMMAND.COM_QUERY, sql.encode("utf-8", "surrogateescape"))
        except Exception as e:
            self.close(name)
            return Answer("lost", error=(2013, repr(e)))
        return None

    def receive(self, name):
        """The answer to what was sent; the statement is killed when its time is over."""
        conn = self.connections.get(name)
        if conn is None:
            return Answer("lost", error=(2013, "no connection"))
        hung = False
        if not self.readable(conn, self.limit):
            hung = True
            self.kill(conn.thread_id())
            if not self.readable(conn, 10):
                self.close(name)
                return Answer("hang", error=(2013, "not ended by KILL"))
        try:
            answer = self.read(conn)
        except pymysql.err.MySQLError as e:
            code = e.args[0] if e.args else 0
            if code in LOST:
                self.close(name)
                return Answer("lost", error=(2013, str(e)))
            answer = Answer("error", error=(code, sqltest.show(e.args[1] if len(e.args) > 1 else "")))
        except Exception as e:  # bytes that PyMySQL cannot read
            self.close(name)
            return Answer("lost", error=(2013, repr(e)))
        if hung:
            answer.kind, answer.error = "hang", answer.error or (0, "beyond the time limit")
        return answer

    @staticmethod
    def readable(conn, seconds):
        return bool(select.select([conn._sock], [], [], seconds)[0])

    @staticmethod
    def read(conn):
        results, last = [], None
        conn._read_query_result(unbuffered=False)
        while True:
            last = conn._result
            if getattr(last, "fields", None):  # absent in an answer without rows
                names = [sqltest.show(f.name) for f in last.fields]
                types = [sqltest.TYPES.get(f.type_code, str(f.type_code)) for f in last.fields]
                results.append((names, types, list(last.rows or ())))
            if not last.has_next:
                break
            conn._read_query_result(unbuffered=False)
        kind = "rows" if results else "ok"
        return Answer(kind, results, last.affected_rows, last.insert_id or 0, None, last.warning_count)

    def kill(self, thread):
        try:
            with pymysql.connect(user="root", **self.where()) as admin:
                admin.cursor().execute(f"KILL QUERY {thread}")
        except pymysql.err.MySQLError:
            pass

    def warnings(self, name):
        """[(level, number, text)] by SHOW WARNINGS."""
        if self.send(name, "SHOW WARNINGS"):
            return []
        answer = self.receive(name)
        if answer.kind != "rows":
            return []
        return [tuple(sqltest.show(v) for v in row) for row in answer.results[0][2]]
