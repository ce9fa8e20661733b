"""Random window functions: every function over random partitions, orders and frames, above joins,
groups and conditions.

Functions that look at single rows get a total order (an id comes last), so that there is one
answer."""

import re

import statements
from nodes import Node, listed
from statements import Statement

EXACT = ("int", "dec", "year", "bit")
RANKS = ["RANK()", "DENSE_RANK()", "PERCENT_RANK()", "CUME_DIST()"]
UNITS = ["DAY", "MONTH", "YEAR", "HOUR", "WEEK", "MINUTE"]


def _bound(rng, amounts, last):
    """One side of a frame."""
    pick = rng.random()
    if pick < 0.25:
        return "UNBOUNDED FOLLOWING" if last else "UNBOUNDED PRECEDING"
    if pick < 0.45:
        return "CURRENT ROW"
    return f"{rng.choice(amounts)} {rng.choice(['PRECEDING', 'FOLLOWING'])}"


def _frame(rng, unit, amounts):
    if rng.random() < 0.2:
        return f" {unit} {rng.choice(['UNBOUNDED PRECEDING', 'CURRENT ROW', amounts[0] + ' PRECEDING'])}"
    return f" {unit} BETWEEN {_bound(rng, amounts, False)} AND {_bound(rng, amounts, True)}"


def _ranged(rng, scope, partition):
    """A window whose frame is bounded by values, and that it is."""
    columns = [(a, c) for a, c in scope if c.kind in ("int", "dec", "date", "datetime", "time")]
    if not columns:
        return None
    alias, column = rng.choice(columns)
    if column.kind in ("int", "dec"):
        amounts = [str(rng.randint(0, 5)), rng.choice(["1.5", "3", "10", "0"])]
    else:
        amounts = [f"INTERVAL {rng.randint(0, 9)} {rng.choice(UNITS)}" for _ in range(2)]
    way = rng.choice(["", "", " DESC"])
    return f"({partition}ORDER BY {alias}.`{column.name}`{way}{_frame(rng, 'RANGE', amounts)})"


def _call(rng, scope, ids):
    """A call with its window, as text. MySQL contradicts itself where MIN or MAX reads the first or
    last row of an ordered frame, which may be NULL (`MIN(c) OVER (ORDER BY c DESC ...)` is NULL,
    and `MIN(CONCAT(c))` is not), and where a frame ends at the zero date and an interval (COUNT
    and MAX then see other rows)."""
    text = _any_call(rng, scope, ids)
    found = re.match(r"M(?:IN|AX)\((t\d\.`\w+`)\) OVER \(.*ORDER BY (t\d\.`\w+`)(.*)", text)
    if found and (found[1] == found[2] or " RANGE " in found[3] and "INTERVAL" in found[3]):
        return text.replace(text[:3], "COUNT", 1)
    return text


def _any_call(rng, scope, ids):
    partition = ""
    if rng.random() < 0.6:
        members = rng.sample(scope, min(len(scope), rng.choice([1, 1, 2])))
        partition = "PARTITION BY " + ", ".join(f"{a}.`{c.name}`" for a, c in members) + " "
    keys = [f"{a}.`{c.name}`{rng.choice(['', '', ' DESC'])}" for a, c in rng.sample(scope, min(len(scope), rng.choice([0, 1, 1, 2])))]
    some = f"({partition}{'ORDER BY ' + ', '.join(keys) if keys else ''})"
    total = "ORDER BY " + ", ".join(keys + ids)
    any_alias, any_column = rng.choice(scope)
    exact = [(a, c) for a, c in scope if c.kind in EXACT]
    exact_alias, exact_column = rng.choice(exact)
    x, n = f"{any_alias}.`{any_column.name}`", f"{exact_alias}.`{exact_column.name}`"
    aggregate = rng.choice(["COUNT(*)", f"COUNT({x})", f"SUM({n})", f"AVG({n})", f"MIN({n})", f"MAX({x})", f"MIN({x})", f"BIT_XOR({n})", f"BIT_OR({n})"])
    shape = rng.random()
    if shape < 0.15:
        return f"{rng.choice(RANKS)} OVER {some}"
    if shape < 0.25:
        return f"{rng.choice(['ROW_NUMBER()', f'NTILE({rng.randint(1, 6)})'])} OVER ({partition}{total})"
    if shape < 0.4:
        more = rng.choice(["", f", {rng.randint(0, 3)}", f", {rng.randint(0, 3)}, {rng.choice([x, n, 'NULL', '0'])}"])
        return f"{rng.choice(['LEAD', 'LAG'])}({x}{more}) OVER ({partition}{total})"
    if shape < 0.55:
        call = rng.choice([f"FIRST_VALUE({x})", f"LAST_VALUE({x})", f"NTH_VALUE({x}, {rng.randint(1, 3)})"])
        frame = rng.choice(["", _frame(rng, "ROWS", [str(rng.randint(0, 3)), str(rng.randint(1, 6))])])
        return f"{call} OVER ({partition}{total}{frame})"
    if shape < 0.75:
        return f"{aggregate} OVER ({partition}{total}{_frame(rng, 'ROWS', [str(rng.randint(0, 3)), str(rng.randint(1, 6))])})"
    window = _ranged(rng, scope, partition) if shape < 0.9 else None
    return f"{aggregate} OVER {window or some}"


def _select(rng, tables):
    tab = rng.choice(tables)
    scope, ids, source = [("t1", c) for c in tab.columns], ["t1.id"], f"`{tab.name}` t1"
    if rng.random() < 0.3:
        other = rng.choice(tables)
        join = rng.choice(["JOIN", "LEFT JOIN"])
        source += f" {join} `{other.name}` t2 ON t1.id {rng.choice(['=', '<', '>='])} t2.id"
        scope, ids = scope + [("t2", c) for c in other.columns], ids + ["t2.id"]
    calls = [Node(_call(rng, scope, ids), fixed=True) for _ in range(rng.randint(1, 4))]
    where = Node(f" WHERE t1.id % {rng.randint(2, 4)} <> 0", optional=True) if rng.random() < 0.4 else ""
    order = ", ".join(ids)
    limit = Node(f" LIMIT {rng.randint(1, 9)}", optional=True) if rng.random() < 0.2 else ""
    return Node("SELECT ", ", ".join(ids), ", ", listed(calls), f" FROM {source}", where, f" ORDER BY {order}", limit, fixed=True)


def _grouped(rng, tables):
    """Windows over groups, which one column makes."""
    tab = rng.choice(tables)
    key = rng.choice([c for c in tab.columns if c.kind in ("int", "dec", "date", "year", "str")])
    k = f"t1.`{key.name}`"
    n = f"t1.`{rng.choice([c for c in tab.columns if c.kind in EXACT]).name}`"
    values = [f"SUM({n})", "COUNT(*)", f"MAX({n})", f"COUNT({n})"]
    calls = []
    for _ in range(rng.randint(1, 3)):
        window = f"(ORDER BY {k}{rng.choice(['', ' DESC', _frame(rng, 'ROWS', ['1', '2'])])})"
        call = rng.choice([f"SUM({rng.choice(values)})", f"LAG({rng.choice(values)})", f"MAX({rng.choice(values)})", "RANK()", f"FIRST_VALUE({rng.choice(values)})"])
        calls.append(Node(f"{call} OVER {window}", fixed=True))
        calls.append(Node(f"DENSE_RANK() OVER (ORDER BY {rng.choice(values)})", fixed=True))
    having = Node(" HAVING COUNT(*) > 1", optional=True) if rng.random() < 0.3 else ""
    return Node("SELECT ", rng.choice(values), ", ", listed(calls), f" FROM `{tab.name}` t1 GROUP BY {k}", having, f" ORDER BY {k}", fixed=True)


def statement(rng, tables):
    keyed = [t for t in tables if t.key == ["id"]]
    if not keyed:
        return statements.random_statement(rng, tables)
    pick = rng.random()
    if pick < 0.15:
        return Statement(_grouped(rng, keyed), ordered=True, loose=True)
    root = _select(rng, keyed)
    if pick < 0.25:
        return Statement(Node("SELECT COUNT(*), SUM(q.r) FROM (", Node(f"SELECT t1.id, {rng.choice(RANKS[:2])} OVER (ORDER BY t1.id) r FROM `{rng.choice(keyed).name}` t1", fixed=True),
                              f") q WHERE q.r {rng.choice(['<', '=', '>'])} {rng.randint(1, 9)}", fixed=True))
    return Statement(root, ordered=True, loose=True)
