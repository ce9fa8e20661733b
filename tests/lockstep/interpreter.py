"""Runs one test file on both servers: variables, control flow, includes, connections, and the
comparison of every statement."""

import os
import re
import time

import comparison
import lexer
from classification import Classifier

# Includes that ask for something of the test environment, and are passed over; by the file's name.
IGNORED = re.compile(r"(wait_|count_sessions|restart|shutdown|start_mysqld|kill_|expect_|have_|not_|no_|force_|big_test|search_pattern|grep_"
                     r"|rpl/|assert|vardir|disable_hypergraph|elide_|write_var|mysqld|show_|daemon|plugin|ipv6\.inc|\w*_protocol)", re.I)
NEEDS_DEBUG = re.compile(r"have_debug(_sync)?\.inc")


class EndOfFile(Exception):
    """The file ends early; the argument says why."""


class Interpreter:
    """One file's run. pair: (MySQL's executor, Nfold's); record: called with each compared
    statement."""

    def __init__(self, pair, suite, allowed, record, file_limit):
        self.pair, self.suite, self.allowed, self.record = pair, suite, allowed, record
        self.end = time.monotonic() + file_limit
        self.variables, self.current, self.classifier = {}, "default", Classifier()
        self.ignored, self.sent = {}, {}
        self.result_log, self.warnings = True, True
        self.once = {"sort": False, "columns": {}, "pairs": [], "regex": []}
        self.send_next, self.depth = False, 0

    def run(self, path):
        """None, or why the file ended early."""
        for side in self.pair:
            error = side.open("default")
            if error:
                return f"no connection: {error}"
        try:
            self.block(lexer.parse(path))
        except EndOfFile as e:
            return str(e)
        except RecursionError:
            return "nested too deep"
        return None

    def block(self, commands):
        for command, body in commands:
            if time.monotonic() > self.end:
                raise EndOfFile("file's time limit")
            if body is not None:
                rounds = 0
                while self.condition(command.text):
                    self.block(body)
                    rounds += 1
                    if command.word == "if" or rounds > 5000:
                        break
                continue
            method = getattr(self, "do_" + command.word.replace("-", "_"), None)
            if method:
                method(command.text)
            elif command.word.startswith(("disable_", "enable_")):
                self.switch(command.word)
            else:
                self.ignore(command.word)

    def ignore(self, what):
        self.ignored[what] = self.ignored.get(what, 0) + 1

    def switch(self, word):
        on, name = word.startswith("enable_"), word.split("_", 1)[1]
        if name == "result_log":
            self.result_log = on
        elif name == "warnings":
            self.warnings = on

    # Variables and expressions

    def replace(self, text):
        """`text` with its $variables; `\\$` is a dollar."""
        def value(match):
            return "$" if match.group(0) == "\\$" else self.variables.get(match.group(1) or match.group(2), "")
        return re.sub(r"\\\$|\$\{(\w+)\}|\$(\w+)", value, text)

    def value(self, text):
        """The value of an expression: a text, a query in backticks, or query_get_value(query,
        column, row)."""
        text = text.strip()
        if len(text) > 1 and text[0] == "`" and text[-1] == "`":
            answer = self.query(self.replace(text[1:-1]))
            rows = answer.results[0][2] if answer.kind == "rows" else []
            return "\t".join(self.text(v) for v in rows[0]) if rows else ""
        call = re.match(r"query_get_value\s*\((.*)\)\s*$", text, re.S)
        if call:
            parts = [p.strip() for p in call.group(1).rsplit(",", 2)]
            if len(parts) == 3:
                return self.get_value(*[self.replace(p) for p in parts])
        return self.replace(text)

    def get_value(self, sql, column, row):
        answer = self.query(sql.strip("\"'") if sql[:1] in "\"'" else sql)
        if answer.kind != "rows":
            return ""
        names, _, rows = answer.results[0]
        column, row = column.strip("\"'"), int(row) if row.isdigit() else 0
        if column not in names or not 0 < row <= len(rows):
            return "No such row"
        return self.text(rows[row - 1][names.index(column)]) if rows[row - 1][names.index(column)] is not None else "NULL"

    @staticmethod
    def text(value):
        return "" if value is None else value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else str(value)

    def condition(self, text):
        text = text.strip()
        if text.startswith("(") and text.endswith(")"):
            text = text[1:-1].strip()
        if text.startswith("!"):
            return not self.condition(text[1:])
        compared = None if text.startswith("`") else re.match(r"(\$\w+)\s*(==|!=|<=|>=|<|>)\s*(.*)$", text, re.S)
        if compared:
            left, right = self.value(compared.group(1)), self.value(compared.group(3)).strip("\"'")
            try:
                left, right = int(left), int(right)
            except ValueError:
                left, right = str(left).lower(), str(right).lower()
            return {"==": left == right, "!=": left != right, "<": left < right, ">": left > right,
                    "<=": left <= right, ">=": left >= right}[compared.group(2)]
        return self.value(text).strip() not in ("", "0")

    def do_let(self, text):
        match = re.match(r"\$?(\w+)\s*=(.*)$", text, re.S)
        if match:
            self.variables[match.group(1)] = self.value(match.group(2))

    def step(self, text, by):
        name = text.strip().lstrip("$")
        old = self.variables.get(name, "0")
        self.variables[name] = str(int(old) + by if re.fullmatch(r"-?\d+", old) else by)

    def do_inc(self, text):
        self.step(text, 1)

    def do_dec(self, text):
        self.step(text, -1)

    def do_expr(self, text):
        self.ignore("expr")

    def do_echo(self, text):
        pass

    do_error = do_skip_if_hypergraph = do_ping = do_character_set = do_query_attributes = do_echo

    def do_sleep(self, text):
        time.sleep(min(float(text) if re.fullmatch(r"[\d.]+", text.strip()) else 1, 2))

    def do_skip(self, text):
        raise EndOfFile(f"skip {self.replace(text)[:80]}")

    def do_die(self, text):
        raise EndOfFile(f"die {self.replace(text)[:80]}")

    def do_exit(self, text):
        raise EndOfFile("exit")

    def do_source(self, text):
        name = self.replace(text).strip().rstrip(";").strip()
        if NEEDS_DEBUG.search(name):
            raise EndOfFile("needs a server built for debugging")
        base = os.path.basename(name)
        path = next((p for p in (os.path.join(self.suite, name), os.path.join(self.suite, "t", name)) if os.path.isfile(p)), None)
        held_back = path and path.endswith(".test") and "/include/" not in path and base[:-5] not in self.allowed
        if base == "wait_condition.inc":
            self.wait_condition()
        elif path is None or IGNORED.match(name.split("include/", 1)[-1]) or held_back or self.depth > 8:
            self.ignore("source " + base)
        else:
            self.depth += 1
            self.block(lexer.parse(path))
            self.depth -= 1

    def wait_condition(self):
        """Polls $wait_condition on both servers for two seconds at most; it is not compared."""
        sql, end = self.replace(self.variables.get("wait_condition", "SELECT 1")), time.monotonic() + 2
        for side in self.pair:
            while time.monotonic() < end and not side.send(self.current, sql):
                answer = side.receive(self.current)
                if answer.kind != "rows" or (answer.results[0][2] and self.text(answer.results[0][2][0][0]) not in ("", "0")):
                    break
                time.sleep(0.1)

    # Connections

    def do_connect(self, text):
        parts = [p.strip().strip("'\"") for p in self.replace(text).strip().strip("()").split(",")]
        name, user, password, database = (parts[:1] + parts[2:5] + [""] * 4)[:4]
        database = None if database == "*NO-ONE*" else database or "test"
        errors = [side.open(name, user or "root", password, database) for side in self.pair]
        differ = bool(errors[0]) != bool(errors[1]) or (errors[0] and errors[0][0] != errors[1][0])
        if differ and not self.classifier.tainted & {user.lower(), (database or "").lower()}:
            self.record("different", "connect", f"connect {name} as {user}", str(errors[0]), str(errors[1]))
        if differ:
            self.classifier.lost.add(name)
        else:
            self.classifier.lost.discard(name)
        self.current = name

    def do_connection(self, text):
        self.current = self.replace(text).strip() or "default"

    def do_disconnect(self, text):
        for side in self.pair:
            side.close(self.replace(text).strip())

    do_dirty_close = do_disconnect

    def do_send_quit(self, text):
        self.do_disconnect(text or self.current)

    def do_reset_connection(self, text):
        for side in self.pair:
            side.open(self.current)

    # Replacements

    def do_sorted_result(self, text):
        self.once["sort"] = True

    def do_partially_sorted_result(self, text):
        self.once["sort"] = True

    def do_replace_column(self, text):
        words = re.findall(r'"[^"]*"|\'[^\']*\'|\S+', self.replace(text))
        self.once["columns"] = {int(words[i]) - 1: words[i + 1] for i in range(0, len(words) - 1, 2) if words[i].isdigit()}

    def do_replace_result(self, text):
        words = [w.strip("'\"") for w in re.findall(r'"[^"]*"|\'[^\']*\'|\S+', self.replace(text))]
        self.once["pairs"] = [(a, b) for a, b in zip(words[::2], words[1::2]) if a]

    def do_replace_regex(self, text):
        self.once["regex"] = re.findall(r"/((?:[^/\\]|\\.)*)/((?:[^/\\]|\\.)*)/(i?)", self.replace(text))

    def replaced(self, value):
        text = self.text(value)
        for old, new in self.once["pairs"]:
            text = text.replace(old, new)
        for pattern, new, flag in self.once["regex"]:
            try:
                text = re.sub(pattern, lambda _, new=new: new, text, flags=re.I if flag else 0)
            except re.error:
                pass
        return text.encode("utf-8", "surrogateescape")

    def apply_replacements(self, answer):
        once = self.once
        if not (once["columns"] or once["pairs"] or once["regex"]):
            return
        for number, (names, types, rows) in enumerate(answer.results):
            changed = [tuple(b"#" if i in once["columns"] else v if v is None else self.replaced(v) for i, v in enumerate(row))
                       for row in rows]
            answer.results[number] = (names, types, changed)

    # Statements

    def do_query(self, text):
        if self.send_next:
            self.send_next = False
            return self.do_send(text)
        self.query(text)

    def do_eval(self, text):
        self.do_query(self.replace(text))

    do_query_vertical = do_query_horizontal = do_query

    def do_send(self, text):
        if not text:
            self.send_next = True
            return
        self.sent[self.current] = (text, [side.send(self.current, text) for side in self.pair])
        time.sleep(0.02)  # so that it is at its lock before the next connection's statement

    def do_send_eval(self, text):
        self.do_send(self.replace(text))

    def do_reap(self, text):
        if self.current in self.sent:
            self.finish(*self.sent.pop(self.current))

    def query(self, sql):
        """Runs a statement on both; MySQL's answer."""
        if self.current in self.sent:
            self.do_reap("")
        return self.finish(sql, [side.send(self.current, sql) for side in self.pair])

    def finish(self, sql, failed):
        name = self.current
        theirs, ours = [bad or side.receive(name) for bad, side in zip(failed, self.pair)]
        if self.warnings and (theirs.warning_count or ours.warning_count) and not re.match(r"\s*(show|explain|desc)", sql, re.I):
            for side, answer in zip(self.pair, (theirs, ours)):
                if answer.kind in ("rows", "ok"):
                    answer.warnings = side.warnings(name)
        shown = [theirs.brief(), ours.brief()]
        for answer in (theirs, ours):
            self.apply_replacements(answer)
        found = comparison.compare(sql, theirs, ours, self.once["sort"], self.result_log, self.warnings)
        if self.warnings and found == ["warnings"]:
            shown = [str(theirs.warnings[:4]), str(ours.warnings[:4])]
        if theirs.kind == ours.kind == "lost":  # a session that was killed, or never opened, on both
            self.record("follow-up", "", sql, *shown)
        elif found or "lost" in (theirs.kind, ours.kind):
            self.record(*self.classifier.classify(sql, theirs, ours, found or ["lost"], name), sql, *shown)
        else:
            self.classifier.after_equal(sql, name, theirs.kind != "error")
            self.record("plan text" if comparison.PLAN.match(sql) and theirs.kind == "rows" else "equal", "", sql, "", "")
        if "lost" in (theirs.kind, ours.kind) or "hang" in (theirs.kind, ours.kind):
            for side in self.pair:
                side.open(name)
        self.once = {"sort": False, "columns": {}, "pairs": [], "regex": []}
        return theirs
