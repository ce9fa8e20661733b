"""Scripts over several sessions of one server: who blocks whom, who gets which error, who sees
what.

A script is a file of cases:

    # a comment
    case lost update                     a name, unique in its file
    levels all                           isolation levels to run it at: `all`, or names with commas
                                         (default: REPEATABLE READ)
    setup CREATE TABLE t (...)           before the sessions start, over a connection of its own
    a: BEGIN                             session a runs a statement; one that blocks stays under way
    b: UPDATE t SET v = 2
    wait a                               until a's statement is over
    pause 0.5                            seconds
    anyone                               who of those that end after a step gets which answer is a
    matter of chance
    skip reason                          the answers differ for a reason that is worth a line

Each case runs in a database of its own, its sessions at the level it is run at. The transcript of a
case is what the recording holds:

    == lost update / READ COMMITTED
    a: BEGIN
      ok 0
    b: UPDATE t SET v = 2
      blocks
    a: COMMIT
      ok 0
      b> ok 1                            b's statement came to its end after this step

`not sent` stands for a statement whose session is still blocked.
"""

import queue
import re
import threading
import time

import pymysql

LEVELS = ["READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"]
# How long a statement must make no progress to count as blocked while recording, and how long it is
# watched when it is known to block.
BLOCKED_S = 0.6
WATCHED_S = 0.25
# What is to come is waited for so long.
PATIENCE_S = 30
BLOCKS = "blocks"


class Case:
    """One case of a script."""

    def __init__(self, name):
        self.name, self.levels, self.setup, self.steps = name, ["REPEATABLE READ"], [], []
        self.skip, self.anyone = None, False


def parse(path):
    """The cases of a script."""
    cases = []
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            line = line.strip()
            if not line or line.startswith("#"):
                continue
            word, _, rest = line.partition(" ")
            if word == "case":
                cases.append(Case(rest))
            elif word == "levels":
                cases[-1].levels = LEVELS if rest == "all" else [l.strip() for l in rest.split(",")]
            elif word == "setup":
                cases[-1].setup.append(rest)
            elif word == "skip":
                cases[-1].skip = rest
            elif word == "anyone":
                cases[-1].anyone = True
            elif word == "pause":
                cases[-1].steps.append((None, float(rest)))
            elif word == "wait":
                cases[-1].steps.append((rest, None))
            elif re.fullmatch(r"[a-z]:", word):
                cases[-1].steps.append((word[0], rest))
            else:
                raise ValueError(f"{path}:{number}: {line}")
    return cases


def show(value):
    if value is None:
        return "NULL"
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)


class Session:
    """One connection with a thread of its own, so that its statements may block."""

    def __init__(self, where, level):
        self.conn = pymysql.connect(charset="utf8mb4", autocommit=True, conv={}, use_unicode=False, **where)
        with self.conn.cursor() as cursor:
            cursor.execute(f"SET SESSION TRANSACTION ISOLATION LEVEL {level}")
        self.todo, self.done, self.busy = queue.Queue(), queue.Queue(), False
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.thread.start()

    def work(self):
        while (sql := self.todo.get()) is not None:
            try:
                answer = self.execute(sql)
            except Exception as e:  # the connection is gone
                answer = f"broken {e!r}"
            self.done.put(answer)

    def execute(self, sql):
        cursor = self.conn.cursor()
        try:
            cursor.execute(sql)
        except pymysql.err.MySQLError as e:
            return f"error {e.args[0]} {show(e.args[1] if len(e.args) > 1 else '')}"
        if cursor.description is None:
            return f"ok {cursor.rowcount}"
        return " ".join(["rows"] + ["(" + ", ".join(show(v) for v in row) + ")" for row in cursor.fetchall()])

    def start(self, sql):
        self.busy = True
        self.todo.put(sql)

    def answer(self, seconds):
        """The answer of the statement under way, or None while there is none."""
        try:
            text = self.done.get(timeout=seconds)
        except queue.Empty:
            return None
        self.busy = False
        return text

    def close(self):
        self.todo.put(None)
        try:
            self.conn.close()
        except pymysql.err.Error:
            pass


class Run:
    """One run of a case at one level. `expected`: the recorded lines, which say what is worth
    waiting for; None while recording."""

    def __init__(self, where, case, level, database, expected=None):
        self.where, self.case, self.level, self.database = where, case, level, database
        self.expected, self.lines, self.sessions = expected, [f"== {case.name} / {level}"], {}

    def foreseen(self):
        """What the recording says of the step at hand: (the answer of its session, the other
        sessions that end with it)."""
        own, others, at = None, set(), len(self.lines)
        for line in self.expected[at:]:
            if not line.startswith("  "):
                break
            if re.match(r"  [a-z]> ", line):
                others.add(line[2])
            else:
                own = line.strip()
        return own, others

    def step(self, name, sql):
        if name is None:
            time.sleep(sql)
            return
        session = self.sessions.get(name)
        if session is None:
            session = self.sessions[name] = Session(dict(self.where, database=self.database), self.level)
        self.lines.append(f"wait {name}" if sql is None else f"{name}: {sql}")
        if sql is not None and session.busy:  # it blocks at this level and not at others
            self.lines.append("  not sent")
            return
        own, others = self.foreseen() if self.expected else (None, set())
        if sql is not None:
            session.start(sql)
        if not self.expected:
            timeout = PATIENCE_S if sql is None else BLOCKED_S
        else:
            timeout = WATCHED_S if own == BLOCKS else PATIENCE_S
        answer = session.answer(timeout) if session.busy else "over"
        self.lines.append("  " + (answer or BLOCKS))
        settle = time.monotonic() + BLOCKED_S
        for other in sorted(self.sessions):
            one = self.sessions[other]
            if other == name or not one.busy:
                continue
            if self.expected:
                timeout = PATIENCE_S if other in others else 0.01
            else:
                timeout = max(0.05, settle - time.monotonic())
            answer = one.answer(timeout)
            if answer is not None:
                self.lines.append(f"  {other}> {answer}")

    def same(self, lines):
        """Whether these are the recorded lines."""
        return self.comparable(lines) == self.comparable(self.expected)

    def comparable(self, lines):
        """With `anyone`: the answers after each step without their sessions, in one order."""
        if not self.case.anyone:
            return lines
        steps = []
        for line in lines:
            late = re.match(r"  [a-z]> ", line)
            steps.append([line]) if not late else steps[-1].append(line[4:])
        return [[step[0]] + sorted(step[1:]) for step in steps]

    def run(self):
        """The transcript's lines."""
        admin = pymysql.connect(autocommit=True, **self.where)
        cursor = admin.cursor()
        cursor.execute(f"DROP DATABASE IF EXISTS {self.database}")
        cursor.execute(f"CREATE DATABASE {self.database}")
        cursor.execute(f"USE {self.database}")
        try:
            for sql in self.case.setup:
                cursor.execute(sql)
            for name, sql in self.case.steps:
                self.step(name, sql)
        except Exception as e:
            self.lines.append(f"broken {e!r}")
        finally:
            for session in self.sessions.values():
                session.close()
            cursor.execute(f"DROP DATABASE {self.database}")
            admin.close()
        return self.lines


def transcripts(path):
    """{heading: lines} of a recording."""
    out, lines = {}, None
    with open(path, encoding="utf-8") as f:
        for line in f.read().split("\n"):
            if line.startswith("== "):
                lines = out[line] = []
            if lines is not None and line:
                lines.append(line)
    return out
