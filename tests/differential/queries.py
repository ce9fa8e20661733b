"""Random queries of several blocks: derived tables, common table expressions, subqueries of grouped
queries, joins of many tables, UNION, INTERSECT and EXCEPT; and changes with subqueries."""

import schema
import statements
from expressions import COMPARE, Gen
from nodes import Node, listed
from statements import AGGREGATES, Statement


# Not in derived tables: rows that are counted down to none come back in MySQL 9.7.4, or an error
# 124, where such a table is looked up.
OTHERS = (" INTERSECT ", " INTERSECT ALL ", " EXCEPT ", " EXCEPT ALL ")


def _alike(rng, column, columns):
    """A column that is likely to have values of another one."""
    return rng.choice([c for c in columns if c.kind == column.kind] or columns)


def _on(rng, left, right):
    """A condition that joins two scopes."""
    alias, column = rng.choice(left)
    other = _alike(rng, column, [c for _, c in right])
    return Node(f"{alias}.`{column.name}` {rng.choice(['=', '=', '=', '<=>', '<', '>='])} {right[0][0]}.`{other.name}`", fixed=True)


def _scope(alias, tab):
    return [(alias, c) for c in tab.columns]


def _query(rng, tables):
    """(A query in parentheses, its columns), which keep their names and kinds."""
    tab = rng.choice(tables)
    gen = Gen(rng, _scope("i", tab))
    where = statements._where(rng, tables, gen, 0.5)
    columns = rng.sample(tab.columns, min(len(tab.columns), rng.randint(2, 4)))
    shape = rng.random()
    names = ", ".join(f"i.`{c.name}`" for c in columns)
    if shape < 0.35:
        text = Node(f"(SELECT {names} FROM `{tab.name}` i", where, ")", fixed=True)
    elif shape < 0.55:
        text = Node(f"(SELECT DISTINCT {names} FROM `{tab.name}` i", where, ")", fixed=True)
    elif shape < 0.8:
        key, rest = columns[0], columns[1:]
        values = ", ".join(f"{rng.choice(['MIN', 'MAX'])}(i.`{c.name}`) AS `{c.name}`" for c in rest)
        text = Node(f"(SELECT i.`{key.name}`, {values} FROM `{tab.name}` i", where, f" GROUP BY i.`{key.name}`)", fixed=True)
    else:
        word = rng.choice(["UNION", "UNION ALL"])
        text = Node(f"(SELECT {names} FROM `{tab.name}` i", where, f" {word} SELECT {names} FROM `{tab.name}` i WHERE i.id < {rng.randint(0, 9)})", fixed=True)
    return text, columns


def _derived(rng, tables, alias):
    """(A derived table, its scope)."""
    text, columns = _query(rng, tables)
    return Node(text, f" {alias}", fixed=True), [(alias, c) for c in columns]


def _from(rng, tables):
    """FROM with one to four tables, derived ones among them."""
    tab = rng.choice(tables)
    parts, scope = [f"`{tab.name}` t1"], _scope("t1", tab)
    for n in range(2, 2 + rng.choice([0, 1, 1, 2, 3])):
        alias = f"t{n}"
        if rng.random() < 0.3:
            source, own = _derived(rng, tables, alias)
        else:
            tab = rng.choice(tables)
            source, own = Node(f"`{tab.name}` {alias}"), _scope(alias, tab)
        more = Node(" AND ", Gen(rng, scope + own).predicate(1), optional=True) if rng.random() < 0.4 else ""
        parts.append(Node(rng.choice([" JOIN ", " LEFT JOIN "]), source, " ON ", _on(rng, scope, own), more, fixed=True, optional=True))
        scope = scope + own
    return Node(*parts, fixed=True), scope


def _inner(rng, tables, outer):
    """A correlated subquery's FROM and WHERE: (table, text)."""
    tab = rng.choice(tables)
    own = _scope("s", tab)
    alias, column = rng.choice(outer)
    other = _alike(rng, column, tab.columns)
    more = Node(" AND ", Gen(rng, own + outer).predicate(0), optional=True) if rng.random() < 0.4 else ""
    return tab, Node(f" FROM `{tab.name}` s WHERE s.`{other.name}` {rng.choice(COMPARE)} {alias}.`{column.name}`", more, fixed=True)


def _scalar(rng, tables, outer):
    tab, text = _inner(rng, tables, outer)
    c = rng.choice(tab.columns)
    return Node(f"(SELECT {rng.choice(['MIN', 'MAX', 'COUNT', 'COUNT'])}(s.`{c.name}`)", text, ")", fixed=True)


def _condition(rng, tables, outer):
    tab, text = _inner(rng, tables, outer)
    shape = rng.random()
    alias, column = rng.choice(outer)
    other = _alike(rng, column, tab.columns)
    if shape < 0.3:
        return Node(rng.choice(["EXISTS ", "NOT EXISTS "]), "(SELECT 1", text, ")", fixed=True)
    if shape < 0.6:
        return Node(f"{alias}.`{column.name}` {rng.choice(['IN', 'NOT IN', '= ANY', '<> ALL', '> ALL', '<= ANY'])} (SELECT s.`{other.name}`", text, ")", fixed=True)
    if shape < 0.75:
        b, second = rng.choice(outer)
        third = _alike(rng, second, tab.columns)
        word = rng.choice(["IN", "NOT IN"])
        return Node(f"({alias}.`{column.name}`, {b}.`{second.name}`) {word} (SELECT s.`{other.name}`, s.`{third.name}`", text, ")", fixed=True)
    return Node(_scalar(rng, tables, outer), f" {rng.choice(COMPARE)} ", Gen(rng, outer).leaf("x"), fixed=True)


def select(rng, tables):
    source, scope = _from(rng, tables)
    gen = Gen(rng, scope)
    items = [gen.leaf("x") if rng.random() < 0.7 else _scalar(rng, tables, scope) for _ in range(rng.randint(1, 4))]
    where = _condition(rng, tables, scope) if rng.random() < 0.5 else gen.predicate(1)
    return Statement(Node("SELECT ", listed(items), " FROM ", source, Node(" WHERE ", where, fixed=True, optional=True), fixed=True), loose=True)


def grouped(rng, tables):
    """Keys, aggregates and subqueries that name keys and aggregates."""
    source, scope = _from(rng, tables)
    gen = Gen(rng, scope)
    keys = rng.sample(scope, min(len(scope), rng.randint(1, 2)))
    items = [Node(f"{a}.`{c.name}`") for a, c in keys] + [Node(gen.call(rng.choice(AGGREGATES), 0), fixed=True) for _ in range(rng.randint(0, 2))]
    items += [_scalar(rng, tables, keys) for _ in range(rng.randint(0, 2))]
    tab = rng.choice(tables)
    c = rng.choice(tab.columns)
    if rng.random() < 0.3:
        items.append(Node(f"(SELECT COUNT(*) FROM `{tab.name}` s WHERE s.`{c.name}` {rng.choice(COMPARE)} ", gen.call(rng.choice(AGGREGATES[:7]), 0), ")", fixed=True))
    parts = ["SELECT ", listed(items), " FROM ", source, statements._where(rng, tables, gen, 0.4), " GROUP BY ", ", ".join(f"{a}.`{c.name}`" for a, c in keys)]
    # HAVING has none of them: MySQL 9.7.4 crashes, or loses rows, where they name the group.
    return Statement(Node(*parts, fixed=True), loose=True)


def union(rng, tables):
    width, parts = rng.randint(1, 3), []
    tab = rng.choice(tables)
    columns = [rng.choice(tab.columns) for _ in range(width)]
    for n in range(rng.randint(2, 3)):
        other = tab if n == 0 else rng.choice(tables)
        own = columns if n == 0 else [_alike(rng, c, other.columns) for c in columns]
        gen = Gen(rng, _scope("t1", other))
        parts.append("" if n == 0 else rng.choice([" UNION ", " UNION ALL ", " UNION ", " UNION ALL ", *OTHERS]))
        parts.append(Node("SELECT " + ", ".join(f"t1.`{c.name}`" for c in own) + f" FROM `{other.name}` t1", statements._where(rng, tables, gen, 0.7), fixed=True))
    return Statement(Node("SELECT COUNT(*) FROM (", *parts, ") u", fixed=True) if rng.random() < 0.2 else Node(*parts, fixed=True), loose=True)


class _Named:
    """A common table expression, in place of a table."""

    def __init__(self, name, columns):
        self.name, self.columns, self.key = name, columns, None


def common(rng, tables):
    """A query of common table expressions, some of which name others, and tables."""
    definitions, named = [], []
    for n in range(rng.randint(1, 3)):
        text, columns = _query(rng, tables + 2 * named)
        # Now and then one hides a table.
        name = rng.choice(tables).name if rng.random() < 0.1 else f"c{n}"
        definitions.append(Node(f"`{name}` AS ", text, fixed=True))
        named.append(_Named(name, columns))
    hidden = {n.name for n in named}
    rest = [t for t in tables if t.name not in hidden]
    statement = rng.choice([select, select, grouped])(rng, rest + 3 * named)
    with_ = [part for d in definitions for part in (", ", d)][1:]
    statement.root = Node("WITH ", *with_, " ", statement.root, fixed=True)
    return statement


def _keys_of(tab):
    return " ORDER BY " + ", ".join(f"`{c}`" for c in tab.key) if tab.key else ""


def update(rng, tables):
    tab = rng.choice(tables)
    others = [t for t in tables if t is not tab] or tables
    own = _scope(f"`{tab.name}`", tab)
    c = rng.choice(tab.columns[1:])
    if rng.random() < 0.5 and others[0] is not tab:
        other, text = _inner(rng, others, own)
        value = Node(f"(SELECT {rng.choice(['MIN', 'MAX'])}(s.`{_alike(rng, c, other.columns).name}`)", text, ")", fixed=True)
    else:
        value = Node(schema.literal(rng, c.kind, c.collation))
    where = _condition(rng, others, own) if others[0] is not tab else Gen(rng, own).predicate(1)
    verb = rng.choice(["UPDATE", "UPDATE IGNORE"])
    return Statement(Node(f"{verb} `{tab.name}` SET `{c.name}` = ", value, " WHERE ", where, _keys_of(tab), fixed=True), changes=tab)


def delete(rng, tables):
    tab = rng.choice(tables)
    others = [t for t in tables if t is not tab]
    own = _scope(f"`{tab.name}`", tab)
    where = _condition(rng, others, own) if others else Gen(rng, own).predicate(1)
    return Statement(Node(f"DELETE FROM `{tab.name}` WHERE ", where, " AND ", f"id % {rng.randint(2, 4)} = 0", _keys_of(tab), fixed=True), changes=tab)


def insert(rng, tables):
    """INSERT ... SELECT with ON DUPLICATE KEY UPDATE, in the order of a key."""
    keyed = [t for t in tables if t.key == ["id"]]
    tab, other = rng.choice(tables), rng.choice(keyed or tables)
    sub = Gen(rng, _scope("s", other))
    items = ", ".join(f"s.id + {rng.choice([0, 3, 1000])}" if c.name == "id" else f"s.`{_alike(rng, c, other.columns).name}`" for c in tab.columns)
    names = ", ".join(f"`{c.name}`" for c in tab.columns)
    set_column = rng.choice(tab.columns)
    tail = Node(f" ON DUPLICATE KEY UPDATE `{set_column.name}` = VALUES(`{_alike(rng, set_column, tab.columns).name}`)", optional=True) if rng.random() < 0.6 else ""
    verb = rng.choice(["INSERT INTO", "INSERT IGNORE INTO"]) if tail else rng.choice(["INSERT IGNORE INTO", "REPLACE INTO"])
    where = Node(" WHERE ", sub.predicate(1), optional=True, fixed=True)
    return Statement(Node(f"{verb} `{tab.name}` ({names}) SELECT {items} FROM `{other.name}` s", where, " ORDER BY s.id", tail, fixed=True), changes=tab)


def statement(rng, tables):
    maker = rng.choices([select, grouped, common, union, update, delete, insert], [40, 25, 12, 8, 10, 5, 8])[0]
    return maker(rng, tables)
