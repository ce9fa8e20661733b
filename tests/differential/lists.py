"""Random lists whose members are of several kinds: IN, BETWEEN, CASE, GREATEST and LEAST over
strings, numbers, dates and times."""

import schema
from expressions import Gen
from nodes import Node, listed
from statements import Statement

KINDS = ["int", "str", "date", "time", "datetime", "dec", "float", "year"]


def _constant(rng, kind):
    """A constant of a kind; those of times also as typed literals and casts."""
    typed = {"date": ["DATE'2020-01-02'", "DATE'2021-03-04'", "CAST('2020-02-29' AS DATE)"], "time": ["TIME'10:11:12'", "TIME'00:00:00'", "CAST('12:34:56' AS TIME)"],
             "datetime": ["TIMESTAMP'2020-01-02 10:11:12'", "TIMESTAMP'2020-01-02 00:00:00'", "CAST('2021-03-04' AS DATETIME)"]}.get(kind)
    if typed and rng.random() < 0.5:
        return Node(rng.choice(typed))
    return Node(schema.literal(rng, kind))


def _member(rng, kind, gen):
    """A member of a list beside a value of a kind: mostly a constant of its kind or of one that
    goes with it."""
    if rng.random() < 0.5:
        kind = rng.choice(KINDS)
    if rng.random() < 0.12:
        return gen.leaf("x")
    if rng.random() < 0.05:
        return Node("NULL")
    return _constant(rng, kind)


def _operand(rng, gen):
    if rng.random() < 0.7:
        node, column = gen.column()
        return node, column.kind
    kind = rng.choice("nsdt")
    return gen.expr(kind, 1), {"n": "int", "s": "str", "d": "datetime", "t": "time"}[kind]


def _condition(rng, gen):
    e, kind = _operand(rng, gen)
    negated = rng.choice(["", "", "NOT "])
    shape = rng.random()
    if shape < 0.5:
        return Node("(", e, f" {negated}IN (", listed([_member(rng, kind, gen) for _ in range(rng.randint(1, 4))]), "))")
    if shape < 0.75:
        return Node("(", e, f" {negated}BETWEEN ", _member(rng, kind, gen), " AND ", _member(rng, kind, gen), ")")
    if shape < 0.85:
        return Node("(", e, rng.choice([" = ", " < ", " <=> ", " <> "]), "(SELECT ", _constant(rng, rng.choice(KINDS)), "))")
    other, other_kind = _operand(rng, gen)
    rows = [Node("(", _member(rng, kind, gen), ", ", _member(rng, other_kind, gen), ")", fixed=True) for _ in range(rng.randint(1, 3))]
    return Node("((", Node(e, fixed=True), ", ", Node(other, fixed=True), f") {negated}IN (", listed(rows), "))")


def _value(rng, gen):
    e, kind = _operand(rng, gen)
    if rng.random() < 0.5:
        whens = [Node(" WHEN ", Node(_member(rng, kind, gen)), f" THEN {n}", fixed=True) for n in range(rng.randint(1, 3))]
        return Node("CASE ", Node(e), listed(whens, ""), " ELSE 9 END")
    return Node(rng.choice(["GREATEST(", "LEAST("]), listed([e] + [_member(rng, kind, gen) for _ in range(rng.randint(1, 3))]), ")")


def statement(rng, tables):
    tab = rng.choice(tables)
    gen = Gen(rng, [("t1", c) for c in tab.columns])
    if rng.random() < 0.6:
        return Statement(Node("SELECT t1.id FROM ", f"`{tab.name}` t1 WHERE ", _condition(rng, gen), fixed=True))
    part = _value if rng.random() < 0.6 else _condition
    return Statement(Node("SELECT t1.id, ", Node(part(rng, gen), fixed=True), f" FROM `{tab.name}` t1", fixed=True))
