"""Lists of statements that run one after the other: parses, records and compares them.

A line is a statement. `= USER` runs those that follow as another user, on a connection of its own
(`= root` is the account that the run began with; `= USER!` logs in anew). `~` runs a statement
whose answer does not matter. `#` begins a comment.
"""
import os
import re

import pymysql

# What the reference server has and Nfold has not, or differs with each run.
HASHES = re.compile(r"'\$A\$005\$[^']*'|'\*[0-9A-F]{40}'|AS '(?:[^'\\]|\\.|'')*'", re.DOTALL)


def answers_path(path):
    return os.path.splitext(path)[0] + ".answers"


def text_of(value):
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    return "NULL" if value is None else HASHES.sub("'HASH'", str(value)).replace("\n", "\\n")


def run(target, path):
    """[(user, statement, [line of the answer])]"""
    out, user, connections = [], "root", {"root": target.root}
    with open(path) as f:
        for line in f:
            sql = line.strip()
            if not sql or sql.startswith("#"):
                continue
            if sql.startswith("="):
                user = sql[1:].strip().rstrip("!")
                if sql.endswith("!") and user in connections:
                    connections.pop(user).close()
                continue
            if sql.startswith("~"):
                answer(target, connections, user, sql[1:].strip())
                continue
            out.append((user, sql, answer(target, connections, user, sql)))
    for name, connection in connections.items():
        if name != "root":
            connection.close()
    return out


def answer(target, connections, user, sql):
    """The lines of the answer to one statement."""
    try:
        if user not in connections:
            name, _, password = user.partition("/")
            connections[user] = target.connect(name, password)
        with connections[user].cursor() as cursor:
            cursor.execute(sql)
            lines = []
            if cursor.description:
                lines.append("\t".join(d[0] for d in cursor.description))
                lines += ["\t".join(text_of(v) for v in row) for row in cursor.fetchall()]
            warnings = connections[user].show_warnings() if cursor._result and cursor._result.warning_count else ()
            return lines + [f"{level} {code}: {text}" for level, code, text in warnings] or ["ok"]
    except pymysql.Error as e:
        # Nfold has a name for the loopback address.
        return [f"error {e.args[0]}: {e.args[1]}".replace("'@'127.0.0.1'", "'@'localhost'")]


def record(target, path):
    """Writes the answers of a MySQL server."""
    with open(answers_path(path), "w") as f:
        for user, sql, lines in run(target, path):
            f.write(f"{user}: {sql}\n" + "".join(f"    {line}\n" for line in lines))


def recorded(path):
    out = []
    with open(answers_path(path)) as f:
        for line in f:
            line = line.rstrip("\n")
            if line.startswith("    "):
                out[-1][1].append(line[4:])
            else:
                out.append((line, []))
    return out


def check(target, path, known, verbose):
    """How many answers differ from the recorded ones and are not known to."""
    want, got = recorded(path), run(target, path)
    name, failed, equal = os.path.basename(path), 0, 0
    if [w for w, _ in want] != [f"{user}: {sql}" for user, sql, _ in got]:
        print(f"{name}: the statements are not those of the answers; record them")
        return 1
    for (key, theirs), (_, sql, ours) in zip(want, got):
        if theirs == ours:
            equal += 1
        elif f"{name} {key}" not in known:
            failed += 1
            if failed <= 10 or verbose:
                print(f"{name} {key}\n  MySQL:")
                print("\n".join("    " + line for line in theirs))
                print("  got:")
                print("\n".join("    " + line for line in ours))
    print(f"{name}: {equal} of {len(want)} answers are MySQL's, {failed} failed")
    return failed
