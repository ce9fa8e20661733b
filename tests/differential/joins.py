"""Random joins of three to six tables beside subqueries, derived tables and groups.

Large tables with skewed values make plans change from lookups to hash tables while they run. Some
tables grow after ANALYZE, so that estimates are wrong. Rows are compared, and warnings are not:
they depend on the rows that a plan reads.
"""

import random

from compare import differences

PER_ROUND = 60
LIMIT_MS = 4000
SIZES = [3, 40, 300, 1500, 4000]
# Column, type, and whether few rows have each value.
COLUMNS = [("id", "INT NOT NULL", True), ("u", "INT", True), ("k", "INT", False),
           ("j", "SMALLINT", False), ("d", "DATE", False), ("m", "DECIMAL(8,2)", False),
           ("s", "VARCHAR(12)", True), ("n", "BIGINT", True)]
NUMBERS = ["id", "u", "k", "j", "n"]
TIMED_OUT = (3024, 1317)


class Table:
    """A table with random keys and skewed rows."""

    def __init__(self, rng, name):
        self.name, self.size = name, rng.choice(SIZES)
        keys = [rng.choice(["PRIMARY KEY (id)", "PRIMARY KEY (id)", "KEY (id)"])]
        for column in ("u", "k", "j", "s", "d"):
            if rng.random() < 0.4:
                more = rng.choice(["", "", ", m", ", id"])
                keys.append(f"KEY {column}_key ({column}{more})")
        columns = [f"{c} {ty}" for c, ty, _ in COLUMNS]
        self.definition = f"CREATE TABLE {name} ({', '.join(columns + keys)})"
        self.hot = rng.randint(0, 8)
        values = [self._row(rng, n) for n in range(self.size)]
        self.first = values[:max(1, self.size // rng.choice([1, 1, 20]))]
        self.later = values[len(self.first):]

    def _row(self, rng, n):
        def or_null(share, value):
            return "NULL" if rng.random() < share else value
        skewed = self.hot if rng.random() < 0.5 else int(rng.paretovariate(0.6)) % 2000
        return [str(n), or_null(0.1, str((n * 7919) % 5000)), or_null(0.05, str(skewed)),
                or_null(0.1, str(rng.randint(0, 60))),
                or_null(0.1, f"'2024-0{rng.randint(1, 9)}-{rng.randint(10, 28)}'"),
                or_null(0.1, f"{rng.randint(-500, 5000)}.{rng.randint(0, 99):02}"),
                or_null(0.05, f"'{rng.choice('aAbBcz')}{rng.randint(0, 900)}'"),
                or_null(0.7, str(rng.randint(0, 3000)))]

    def inserts(self, rows):
        for at in range(0, len(rows), 500):
            values = ", ".join(f"({', '.join(row)})" for row in rows[at:at + 500])
            yield f"INSERT INTO {self.name} VALUES {values}"


class Source:
    """What a slot of FROM is, and the names of its columns by whether few rows share a value."""

    def __init__(self, rng, tables, alias):
        self.alias = alias
        table = rng.choice(tables)
        self.size, shape = table.size, rng.random()
        if shape < 0.75:
            self.text, self.columns = f"{table.name} {alias}", {c: few for c, _, few in COLUMNS}
            return
        key = rng.choice(["k", "j", "u"])
        where = "" if rng.random() < 0.5 else f" WHERE {_simple(rng, 'x')}"
        if shape < 0.88:
            text = f"SELECT x.{key} AS k, COUNT(*) AS id, MIN(x.u) AS u, SUM(x.m) AS m, " \
                   f"MAX(x.d) AS d FROM {table.name} x{where} GROUP BY x.{key}"
            self.columns = {"k": True, "id": False, "u": True, "m": True, "d": False}
        elif shape < 0.94:
            text = f"SELECT DISTINCT x.{key} AS k, x.j AS j FROM {table.name} x{where}"
            self.columns = {"k": False, "j": False}
        else:
            other = rng.choice(tables)
            self.size += other.size
            text = f"SELECT x.id, x.u, x.k, x.m FROM {table.name} x{where} UNION ALL " \
                   f"SELECT y.u, y.id, y.j, y.m FROM {other.name} y"
            self.columns = {"id": True, "u": True, "k": False, "m": False}
        self.text = f"({text}) {alias}"

    def number(self, rng, few):
        """A column of numbers; one of which few rows share a value where `few`."""
        fit = [c for c in self.columns if c in NUMBERS and (self.columns[c] or not few)]
        return f"{self.alias}.{rng.choice(fit or [next(iter(self.columns))])}"


def _simple(rng, alias):
    return rng.choice([
        f"{alias}.k {rng.choice(['=', '<', '>=', '<>'])} {rng.randint(0, 30)}",
        f"{alias}.k IN ({', '.join(str(rng.randint(0, 12)) for _ in range(4))})",
        f"{alias}.k IS {rng.choice(['', 'NOT '])}NULL",
        f"{alias}.k BETWEEN {rng.randint(0, 5)} AND {rng.randint(3, 90)}"])


def _condition(rng, source):
    if rng.random() < 0.5 or "s" not in source.columns:
        return _simple(rng, source.alias)
    a = source.alias
    return rng.choice([
        f"{a}.d {rng.choice(['<', '>='])} '2024-0{rng.randint(1, 9)}-15'",
        f"{a}.s LIKE '{rng.choice('abz')}{rng.choice(['', '1'])}%'",
        f"{a}.m {rng.choice(['<', '>'])} {rng.randint(-100, 4000)}",
        f"({_simple(rng, a)} OR {a}.j = {rng.randint(0, 60)})",
        f"{a}.n IS {rng.choice(['', 'NOT '])}NULL"])


def _subquery(rng, tables, source):
    """A semi-join, an anti-join, or a comparison with an aggregate of related rows."""
    table, a = rng.choice(tables), source.alias
    few = table.size > 300
    mine, theirs = source.number(rng, few), rng.choice(["id", "u", "n"] if few else NUMBERS)
    where = _simple(rng, "y") if rng.random() < 0.6 else "1 = 1"
    shape = rng.random()
    if shape < 0.3:
        return f"{mine} {rng.choice(['IN', 'NOT IN'])} " \
               f"(SELECT y.{theirs} FROM {table.name} y WHERE {where})"
    if shape < 0.7:
        other = f" AND y.u <> {a}.k" if rng.random() < 0.2 and "k" in source.columns else ""
        return f"{rng.choice(['', 'NOT '])}EXISTS (SELECT 1 FROM {table.name} y " \
               f"WHERE y.{theirs} = {mine} AND {where}{other})"
    value = rng.choice(["SUM(y.m)", "COUNT(*)", "MIN(y.u)", "AVG(y.k)", "COUNT(y.n)"])
    return f"{source.number(rng, False)} {rng.choice(['<', '>=', '='])} " \
           f"(SELECT {value} FROM {table.name} y WHERE y.{theirs} = {mine} AND {where})"


def _on(rng, sources, new, heavy):
    """(an equality with one of the sources before, whether many rows meet many)"""
    old = rng.choice(sources)
    many = not heavy and rng.random() < 0.3
    few = [False, True] if rng.random() < 0.5 else [True, False]
    if many and min(old.size, new.size) <= 300:
        few = [False, False]
    else:
        many = False
    return f"{old.number(rng, few[0])} = {new.number(rng, few[1])}", many


def statement(rng, tables):
    """(a SELECT, whether its rows come in one order only)"""
    first = Source(rng, tables, "t1")
    sources, text, heavy = [first], first.text, False
    for n in range(rng.choice([2, 2, 3, 3, 4, 5])):
        new = Source(rng, tables, f"t{n + 2}")
        on, many = _on(rng, sources, new, heavy)
        heavy |= many
        if rng.random() < 0.25:
            on += f" AND {_condition(rng, new)}"
        elif rng.random() < 0.15:
            old = rng.choice(sources)
            on += f" AND {old.number(rng, False)} = {new.number(rng, False)}"
        kind = rng.choice(["JOIN", "JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN"])
        sources.append(new)
        text += f" {kind} {new.text} ON {on}"
    where = [_condition(rng, s) for s in rng.sample(sources, rng.choice([0, 1, 1, 2]))]
    if rng.random() < 0.4:
        where.append(_subquery(rng, tables, rng.choice(sources)))
    text += f" WHERE {' AND '.join(where)}" if where else ""
    sums = [f"SUM({s.number(rng, False)})" for s in rng.sample(sources, 2)]
    items = ["COUNT(*)"] + sums + [f"COUNT({sources[-1].number(rng, False)})"]
    if rng.random() < 0.4:
        return f"SELECT {', '.join(items)} FROM {text}", False
    if rng.random() < 0.6:
        key = rng.choice(sources).number(rng, False)
        having = f" HAVING COUNT(*) > {rng.randint(0, 3)}" if rng.random() < 0.3 else ""
        return f"SELECT {', '.join([key] + items)} FROM {text} GROUP BY {key}{having}", False
    keys = [s.number(rng, True) for s in sources]
    limit = f" LIMIT {rng.randint(1, 60)}"
    return f"SELECT {', '.join(keys)} FROM {text} ORDER BY {', '.join(keys)}{limit}", True


def _load(sides, database, tables):
    setup = [f"DROP DATABASE IF EXISTS `{database}`", f"CREATE DATABASE `{database}`",
             f"USE `{database}`", f"SET max_execution_time = {LIMIT_MS}"]
    for table in tables:
        setup += [table.definition, *table.inserts(table.first)]
    setup.append(f"ANALYZE TABLE {', '.join(t.name for t in tables)}")
    for table in tables:
        setup += table.inserts(table.later)
    for sql in setup:
        for side in sides:
            side.run(sql)


def run(sides, database, seed, count):
    """Whether `count` statements have the same answers on both sides; prints those that have not.
    Statements that take MySQL too long are left out."""
    differ = done = number = late = 0
    while done < count:
        name = f"{seed}.{number}"
        number += 1
        rng = random.Random(name)
        tables = [Table(rng, f"r{n}") for n in range(4)]
        _load(sides, database, tables)
        for _ in range(min(PER_ROUND, count - done)):
            done += 1
            sql, ordered = statement(rng, tables)
            mysql = sides[0].run(sql)
            if mysql.error in TIMED_OUT:
                late += 1
                continue
            found = differences(mysql, sides[1].run(sql), ordered=ordered)
            found = [f for f in found if not f.startswith(("warnings", "types"))]
            if found:
                differ += 1
                print(f"== round {name} {found[0]}\n{sql};", flush=True)
                for table in tables:
                    print(f"    -- {table.size} rows: {table.definition}")
    print(f"{done} statements, {differ} differ, {late} took MySQL over {LIMIT_MS} ms")
    return differ == 0
