"""Random comparisons of every type of column with values of other types: operators, lists of one,
few and many members, CASE, joins and subqueries.

A condition stands in the select list, behind WHERE, or behind ON, over the tables of `keys`, with
keys and without; its values are literals, variables,
parameters, and columns of other types. Nfold must say what MySQL says without a key, and the same
with one."""

import random

import keys
from compare import differences

OPERATORS = ["=", "=", "<=>", "<>", "<", ">=", ">", "<="]
FORMS = ["operator"] * 4 + ["between"] * 2 + ["in 1", "in few", "in few", "in few", "in many", "in many", "case", "merged", "rows"]
PAIRS = ["join", "left join", "in subquery", "any", "merged subquery"]
KINDS = {"integers": keys.INTS, "decimals": keys.DECIMALS, "doubles": keys.DOUBLES, "texts": keys.TEXTS, "moments": keys.MOMENTS, "bits": keys.BITS}
LITERAL, VARIABLE, MARKER, COLUMN, CAST = "literal", "variable", "marker", "column", "cast"
CASTS = ["CAST(id AS SIGNED)", "(id + 0.5)", "(id + 0e0)", "CONCAT(id, '')", "CAST('2020-01-02' AS DATE)", "CONCAT('2020-01-02', '')", "CAST(20200102 AS UNSIGNED)"]


class Members:
    """Values of one statement: what stands in its text, and the variables that it needs."""

    def __init__(self, rng, name):
        self.rng, self.name, self.variables, self.markers = rng, name, [], []
        self.kinds = [rng.choice(list(KINDS))]
        if rng.random() < 0.35:
            self.kinds.append(rng.choice(list(KINDS)))
        self.origin = rng.choices([LITERAL, VARIABLE, MARKER, COLUMN, CAST], [12, 2, 3, 2, 1])[0]

    def _constant(self):
        if self.rng.random() < 0.04:
            return "NULL"
        kind = self.rng.choice(self.kinds)
        # Values that the column holds are the ones that can be equal.
        return self.rng.choice(KINDS[kind])

    def next(self):
        rng, origin = self.rng, self.origin
        if origin in (VARIABLE, MARKER):
            value = self._constant()
            self.variables.append(f"@v{len(self.variables)} = {value}")
            name = f"@v{len(self.variables) - 1}"
            if origin == VARIABLE:
                return name
            self.markers.append(name)
            return "?"
        if origin == COLUMN and rng.random() < 0.6:
            return "b.c"
        if origin == CAST and rng.random() < 0.5:
            return rng.choice(CASTS).replace("id", "a.id")
        return self._constant()

    def kind(self):
        return f"{'+'.join(sorted(set(self.kinds)))} as {self.origin}s"


def _condition(rng, form, m):
    negated = rng.choice(["", "", "NOT "])
    if form == "operator":
        sides = ["a.c", m.next()]
        if rng.random() < 0.2:
            sides.reverse()
        return f" {rng.choice(OPERATORS)} ".join(sides)
    if form == "between":
        return f"a.c {negated}BETWEEN {m.next()} AND {m.next()}"
    if form == "case":
        whens = " ".join(f"WHEN {m.next()} THEN {n}" for n in range(rng.randint(1, 3)))
        return f"CASE a.c {whens} ELSE 9 END"
    if form == "merged":
        merged = rng.choice(["COALESCE({v}, a.c)", "IF(a.id % 2, a.c, {v})", "GREATEST(a.c, {v})", "LEAST(a.c, {v})", "IFNULL(a.c, {v})", "NULLIF(a.c, {v})"])
        return f"{merged.format(v=m.next())} {rng.choice(OPERATORS)} {m.next()}"
    if form == "rows":
        rows = ", ".join(f"({m.next()}, {rng.randint(0, 40)})" for _ in range(rng.choice([1, 2, 6])))
        return f"(a.c, a.id) {negated}IN ({rows})"
    count = {"in 1": 1, "in few": rng.randint(2, 4), "in many": rng.randint(5, 9)}[form]
    return f"a.c {negated}IN ({', '.join(m.next() for _ in range(count))})"


def of_constants(rng, name, other):
    """(kind, variables, markers, {way: statement})"""
    form, m = rng.choice(FORMS), Members(rng, name)
    condition = _condition(rng, form, m)
    beside = f" STRAIGHT_JOIN k_{other} b IGNORE INDEX (k, d)" if "b.c" in condition else ""
    second = ", b.id" if beside else ""
    place = "selected" if form == "case" or rng.random() < 0.4 else "where"
    if beside and rng.random() < 0.5:
        # The other column first, so that the keys of this one are of use.
        source = f"k_{other} b IGNORE INDEX (k, d) STRAIGHT_JOIN k_{name} a {{}}"
    else:
        source = f"k_{name} a {{}}{beside}"
    if place == "selected":
        ways = {"no key": f"SELECT a.id{second}, {condition} FROM {source.format(keys.HINTS['no key'])}"}
    else:
        ways = {way: f"SELECT a.id{second} FROM {source.format(hint)} WHERE {condition}" for way, hint in keys.HINTS.items()}
    return f"{keys.TYPES[name]}: {form} {m.kind()}" + (f" {keys.TYPES[other]}" if beside else ""), m.variables, m.markers, ways


def of_pairs(rng, name, other):
    """As `of_constants`, of two columns."""
    form = rng.choice(PAIRS)
    hints = keys.HINTS.items()
    b = f"k_{other} b IGNORE INDEX (k, d)"
    if form in ("join", "left join"):
        kind = "STRAIGHT_JOIN" if form == "join" else "LEFT JOIN"
        op = rng.choice(OPERATORS)
        ways = {way: f"SELECT a.id, b.id FROM {b} {kind} k_{name} a {hint} ON a.c {op} b.c" for way, hint in hints}
        if op == "=" and form == "join":
            ways["opposite"] = f"SELECT a.id, b.id FROM {b} {kind} k_{name} a {keys.HINTS['no key']} ON NOT (a.c <> b.c)"
    elif form == "in subquery":
        negated = rng.choice(["", "NOT "])
        ways = {way: f"SELECT b.id FROM {b} WHERE b.c {negated}IN (SELECT a.c FROM k_{name} a {hint})" for way, hint in hints}
    elif form == "any":
        op = f"{rng.choice(['=', '<>', '<', '>='])} {rng.choice(['ANY', 'ALL'])}"
        ways = {way: f"SELECT b.id, b.c {op} (SELECT a.c FROM k_{name} a {hint}) FROM {b}" for way, hint in hints}
    else:
        merged = rng.choice(["SELECT COALESCE(a.c, 1)", "SELECT MAX(a.c)", "SELECT a.c", "SELECT IF(a.id % 2, a.c, '5')", "SELECT 5 UNION SELECT a.c", "SELECT '1' UNION ALL SELECT a.c"])
        ways = {way: f"SELECT b.id FROM {b} WHERE b.c IN ({merged} FROM k_{name} a {hint})" for way, hint in hints}
    return f"{keys.TYPES[name]} beside {keys.TYPES[other]}: {form}", [], [], ways


def ask(sides, variables, markers, ways):
    """[(way, what differs)]: without a key from MySQL, with one from either Nfold without it or
    MySQL with it."""
    answers = []
    for side in sides:
        if variables:
            side.run(f"SET {', '.join(variables)}")
        said = {}
        for way, sql in ways.items():
            if markers:
                prepared = side.run("PREPARE differential FROM '%s'" % sql.replace("'", "''"))
                said[way] = prepared if prepared.error else side.run(f"EXECUTE differential USING {', '.join(markers)}")
            else:
                said[way] = side.run(sql)
        answers.append(said)
    mysql, nfold = answers
    found = [("no key", f) for f in differences(mysql["no key"], nfold["no key"])]
    for way in ways:
        own = [f for f in differences(nfold["no key"], nfold[way]) if f.startswith(("rows", "error"))]
        # MySQL's own keys lose rows here and there.
        if own and any(f.startswith(("rows", "error")) for f in differences(mysql[way], nfold[way])):
            found.append((way, own[0].replace("MySQL", "without a key").replace("Nfold", "with one")))
    return sorted(found, key=lambda f: f[1].startswith(("types", "warnings")))


def run(sides, database, seed, count, only="", shown=3):
    """Whether `count` statements have the same answers; prints those that have not by their kinds.
    """
    for side in sides:
        for sql in (f"DROP DATABASE IF EXISTS `{database}`", f"CREATE DATABASE `{database}`", f"USE `{database}`", "SET sql_mode = ''"):
            side.run(sql)
    sides[0].run(f"SET optimizer_switch = '{keys.NESTED_LOOPS}'")
    for _, sql in keys.definitions():
        for side in sides:
            side.run(sql)
    for name in keys.TYPES:
        keys.fill(sides, name)
    kinds = {}
    for number in range(count):
        rng = random.Random(f"{seed}.{number}")
        name, other = rng.choice(list(keys.TYPES)), rng.choice(list(keys.TYPES))
        kind, variables, markers, ways = (of_pairs if rng.random() < 0.25 else of_constants)(rng, name, other)
        found = ask(sides, variables, markers, ways)
        if not found or only and not found[0][1].startswith(tuple(only.split(","))):
            continue
        way, text = found[0]
        setting = f"SET {', '.join(variables)}; " if variables else ""
        kinds.setdefault(text.split(":")[0] + ("" if way == "no key" else " by a key"), {}).setdefault(kind, []).append(f"{seed}.{number} {way} {setting}{ways[way]};\n       {text}")
    for worst, by_kind in sorted(kinds.items()):
        print(f"== {worst}: {sum(map(len, by_kind.values()))} statements")
        for kind, statements in sorted(by_kind.items()):
            print(f"-- {kind}: {len(statements)}\n   " + "\n   ".join(statements[:shown]))
    totals = {worst: sum(map(len, by_kind.values())) for worst, by_kind in kinds.items()}
    print(f"{count} statements; that differ: {totals}")
    return not totals
