"""Random queries with WITH ROLLUP: keys and expressions of them, GROUPING, aggregates, HAVING,
ORDER BY and LIMIT."""

import statements
from expressions import Gen
from nodes import Node, listed
from statements import Statement

# Kinds of which a group has one value, however it is written.
KEYS = ("int", "dec", "date", "year", "datetime")
NUMBERS = ("int", "dec", "year")


def _aggregate(rng, scope):
    alias, any_column = rng.choice(scope)
    x = f"{alias}.`{any_column.name}`"
    numbers = [(a, c) for a, c in scope if c.kind in NUMBERS]
    alias, column = rng.choice(numbers)
    n = f"{alias}.`{column.name}`"
    return rng.choice(["COUNT(*)", f"COUNT({x})", f"COUNT(DISTINCT {n})", f"SUM({n})", f"AVG({n})", f"MIN({n})", f"MAX({n})", f"SUM(DISTINCT {n})", f"BIT_XOR({n})"])


def _grouping(rng, keys):
    return f"GROUPING({', '.join(rng.sample(keys, rng.randint(1, len(keys))))})"


def _of_key(rng, key):
    return rng.choice([f"{key} + 1", f"COALESCE({key}, 'all')", f"{key} IS NULL", f"IFNULL({key}, 0)", f"CONCAT({key}, '!')", f"NULLIF({key}, 1)", f"{key} <=> 1"])


def _select(rng, tables):
    """(The query, whether its order is known.)"""
    tab = rng.choice(tables)
    scope, source = [("t1", c) for c in tab.columns], f"`{tab.name}` t1"
    if rng.random() < 0.25:
        other = rng.choice(tables)
        source += f" {rng.choice(['JOIN', 'LEFT JOIN'])} `{other.name}` t2 ON t1.id {rng.choice(['=', '<'])} t2.id"
        scope = scope + [("t2", c) for c in other.columns]
    columns = [f"{a}.`{c.name}`" for a, c in scope if c.kind in KEYS]
    keys = rng.sample(columns, min(len(columns), rng.choice([1, 1, 2, 2, 3])))
    if rng.random() < 0.2:
        keys[0] = rng.choice([f"t1.id % {rng.randint(2, 4)}", f"{keys[0]} IS NULL", f"{keys[0]} + 1"])
    if rng.random() < 0.05:
        keys.append(keys[0])
    items = [Node(k) for k in keys] + [Node(_grouping(rng, keys)) for _ in range(rng.randint(0, 2))]
    items += [Node(_of_key(rng, rng.choice(keys))) for _ in range(rng.randint(0, 2))] + [Node(_aggregate(rng, scope)) for _ in range(rng.randint(0, 3))]
    where = statements._where(rng, tables, Gen(rng, scope), 0.4)
    written = f"ROLLUP ({', '.join(keys)})" if rng.random() < 0.2 else f"{', '.join(keys)} WITH ROLLUP"
    having = ""
    if rng.random() < 0.3:
        condition = rng.choice(["COUNT(*) > 1", f"{_grouping(rng, keys)} > 0", f"{_grouping(rng, keys)} = 0", f"{rng.choice(keys)} IS NULL", f"{rng.choice(keys)} IS NOT NULL"])
        # MySQL computes an expression again from columns of which some are NULL, so that it sees no
        # key, and GROUPING differs from itself in the select list (docs/compatibility.md).
        if all(k in columns for k in keys):
            having = Node(f" HAVING {condition}", optional=True)
    whole = f"GROUPING({', '.join(keys)})"
    order = Node(f" ORDER BY {', '.join([whole] + keys)}", optional=True) if rng.random() < 0.3 else ""
    limit = Node(f" LIMIT {rng.randint(1, 9)}", optional=True) if rng.random() < 0.2 else ""
    distinct = "DISTINCT " if rng.random() < 0.1 and not order and not limit else ""
    return Node(f"SELECT {distinct}", listed(items), f" FROM {source}", where, f" GROUP BY {written}", having, order, limit, fixed=True), not distinct


def statement(rng, tables):
    keyed = [t for t in tables if t.key == ["id"]]
    if not keyed:
        return statements.random_statement(rng, tables)
    root, ordered = _select(rng, keyed)
    return Statement(root, ordered=ordered, loose=True)
