"""Random statements: SELECT in its forms, and changes of rows."""

import schema
from expressions import Gen
from nodes import Node, listed

AGGREGATES = ["COUNT(*)", "COUNT(x)", "COUNT(DISTINCT x)", "SUM(n)", "AVG(n)", "MIN(x)", "MAX(x)", "SUM(DISTINCT n)", "BIT_OR(n)", "BIT_AND(n)", "BIT_XOR(n)",
              "STD(n)", "VAR_SAMP(n)", "COUNT(DISTINCT x, x)"]


class Statement:
    """A tree and how its answers are compared.

    ordered: rows come in one order only. loose: which of several equal strings is shown is not
    determined.
    """

    def __init__(self, root, ordered=False, loose=False, changes=None):
        self.root, self.ordered, self.loose, self.changes = root, ordered, loose, changes

    def sql(self):
        return self.root.sql()


def _source(rng, tables):
    """(FROM text as a node, scope, [(alias, table)])"""
    first = rng.choice(tables)
    used = [("t1", first)]
    parts = [f"`{first.name}` t1"]
    scope = [("t1", c) for c in first.columns]
    for n in range(rng.choice([0, 0, 0, 1, 1, 2])):
        tab = rng.choice(tables)
        alias = f"t{n + 2}"
        own = [(alias, c) for c in tab.columns]
        kind = rng.choice([" JOIN ", " LEFT JOIN ", " LEFT JOIN "])
        left = rng.choice(scope)
        alike = [c for _, c in own if c.kind == left[1].kind] or [c for _, c in own]
        right = rng.choice(alike)
        on = Node(f"{left[0]}.`{left[1].name}` = {alias}.`{right.name}`", fixed=True)
        more = Node(" AND ", Gen(rng, scope + own).predicate(1), optional=True) if rng.random() < 0.4 else ""
        parts.append(Node(kind, f"`{tab.name}` {alias} ON ", on, more, fixed=True, optional=True))
        scope = scope + own
        used.append((alias, tab))
    return Node(*parts, fixed=True), scope, used


def _order(rng, gen, used):
    """ORDER BY that leaves no ties, or None where some table has no key."""
    if any(t.key is None for _, t in used):
        return None
    keys = [Node(gen.expr("x", 1), rng.choice(["", " DESC"])) for _ in range(rng.randint(0, 2))]
    keys = [Node(k, fixed=True) for k in keys if not k.sql().strip().lstrip("-").split(" ")[0].isdigit()]
    total = [f"{a}.`{c}`{rng.choice(['', '', ' DESC'])}" for a, t in used for c in t.key]
    return Node(" ORDER BY ", *[p for k in keys for p in (Node(k, ", ", optional=True, fixed=True),)], ", ".join(total), fixed=True)


def _subquery(rng, tables, gen):
    """A predicate with a subquery, correlated or not."""
    tab = rng.choice(tables)
    inner = [("s", c) for c in tab.columns]
    e, column = gen.column()
    alike = [c for c in tab.columns if c.kind == column.kind] or tab.columns
    other = rng.choice(alike)
    where = Gen(rng, inner + (gen.scope if rng.random() < 0.4 else [])).predicate(1)
    shape = rng.random()
    if shape < 0.4:
        return Node("(", e, rng.choice([" IN ", " NOT IN "]), f"(SELECT s.`{other.name}` FROM `{tab.name}` s WHERE ", where, "))")
    if shape < 0.7:
        return Node(rng.choice(["(EXISTS ", "(NOT EXISTS "]), f"(SELECT 1 FROM `{tab.name}` s WHERE s.`{other.name}` = ", e, " AND ", where, "))")
    if shape < 0.85:
        return Node("(", e, rng.choice([" = ", " < ", " >= "]), f"(SELECT {rng.choice(['MIN', 'MAX', 'COUNT'])}(s.`{other.name}`) FROM `{tab.name}` s WHERE ", where, "))")
    return Node("(", e, rng.choice([" = ANY ", " < ALL ", " > ANY ", " <> ALL "]), f"(SELECT s.`{other.name}` FROM `{tab.name}` s WHERE ", where, "))")


def _where(rng, tables, gen, chance=0.8):
    if rng.random() > chance:
        return ""
    p = _subquery(rng, tables, gen) if rng.random() < 0.15 else gen.predicate(rng.choice([0, 1, 1, 2]))
    if rng.random() < 0.3:
        p = Node(p, " AND ", gen.predicate(1))
    return Node(" WHERE ", p, optional=True, fixed=True)


def select(rng, tables):
    source, scope, used = _source(rng, tables)
    gen = Gen(rng, scope)
    where = _where(rng, tables, gen)
    if rng.random() < 0.3:
        return _grouped(rng, source, scope, gen, where)
    items = []
    for _ in range(rng.randint(1, 4)):
        items.append(gen.expr("x", rng.choice([0, 0, 1, 2, 3])))
    if rng.random() < 0.06:
        items.append(Node(f"(SELECT MAX(s.`{rng.choice(tables[0].columns).name}`) FROM `{tables[0].name}` s WHERE s.id ", rng.choice(["= ", "< "]), gen.leaf("n"), ")"))
    distinct = rng.random() < 0.12
    order = None if distinct or rng.random() < 0.4 else _order(rng, gen, used)
    limit = ""
    if order and rng.random() < 0.5:
        limit = Node(f" LIMIT {rng.randint(0, 12)}" + rng.choice(["", "", f" OFFSET {rng.randint(0, 5)}"]), optional=True)
    lock = Node(rng.choice([" FOR UPDATE", " FOR SHARE"]), optional=True) if rng.random() < 0.04 and not distinct else ""
    if distinct:
        items = [gen.leaf("x") for _ in range(rng.randint(1, 3))]
    root = Node("SELECT DISTINCT " if distinct else "SELECT ", listed(items), " FROM ", source, where, order or "", limit, lock, fixed=True)
    return Statement(root, ordered=order is not None, loose=distinct)


def _grouped(rng, source, scope, gen, where):
    keys = [gen.leaf("x") if rng.random() < 0.8 else gen.expr("n", 1) for _ in range(rng.choice([0, 1, 1, 2]))]
    keys = [k for k in keys if not k.sql().lstrip("-").replace(".", "").isdigit() and not k.sql().startswith("'")]
    aggregates = [Node(gen.call(rng.choice(AGGREGATES), 1), fixed=True) for _ in range(rng.randint(1, 3))]
    parts = ["SELECT ", listed([Node(k.sql(), fixed=True) for k in keys] + aggregates), " FROM ", source, where]
    if keys:
        parts += [" GROUP BY ", ", ".join(k.sql() for k in keys)]
        if rng.random() < 0.3:
            parts.append(Node(" HAVING ", gen.call(rng.choice(AGGREGATES[:6]), 1), rng.choice([" > ", " = ", " IS NULL OR 2 > "]), str(rng.randint(-1, 5)), optional=True, fixed=True))
    return Statement(Node(*parts, fixed=True), loose=True)


def union(rng, tables):
    width = rng.randint(1, 3)
    parts = []
    for n in range(rng.choice([2, 2, 3])):
        tab = rng.choice(tables)
        gen = Gen(rng, [("t1", c) for c in tab.columns])
        items = [gen.leaf("x") for _ in range(width)]
        if n:
            parts.append(rng.choice([" UNION ", " UNION ALL "]))
        parts.append(Node("(SELECT ", Node(", ".join(i.sql() for i in items), fixed=True), f" FROM `{tab.name}` t1", _where(rng, tables, gen, 0.6), ")", fixed=True))
    return Statement(Node(*parts, fixed=True), loose=True)


def constant(rng, _tables):
    """SELECT of expressions without a table."""
    gen = Gen(rng, [])
    return Statement(Node("SELECT ", listed([gen.expr("x", 3) for _ in range(rng.randint(1, 3))]), fixed=True), ordered=True)


def derived(rng, tables):
    tab = rng.choice(tables)
    gen = Gen(rng, [("t1", c) for c in tab.columns])
    items = [gen.expr("x", 1) for _ in range(2)]
    return Statement(Node("SELECT d.a, d.b FROM (SELECT ", Node(items[0], " AS a, ", items[1], " AS b", fixed=True), f" FROM `{tab.name}` t1",
                          _where(rng, tables, gen), ") d WHERE ", Node("d.a ", rng.choice(COMPARES), " d.b"), fixed=True))


COMPARES = ["<", "=", ">=", "<>", "<=>"]


def insert(rng, tables):
    tab = rng.choice(tables)
    gen = Gen(rng, [(f"`{tab.name}`", c) for c in tab.columns])
    names = [c for c in tab.columns if c.name == "id" or rng.random() < 0.85]
    verb = rng.choice(["INSERT INTO", "INSERT INTO", "INSERT IGNORE INTO", "REPLACE INTO"])
    head = f"{verb} `{tab.name}` ({', '.join(f'`{c.name}`' for c in names)}) "
    if rng.random() < 0.12:
        other = rng.choice(tables)
        sub = Gen(rng, [("s", c) for c in other.columns])
        items = ", ".join("s.id + 1000" if c.name == "id" else (sub.column((c.kind,))[0] or sub.leaf("x")).sql() for c in names)
        order = " ORDER BY " + ", ".join(f"s.`{c}`" for c in other.key) if other.key else ""
        root = Node(head, f"SELECT {items} FROM `{other.name}` s WHERE ", sub.predicate(1), order, fixed=True)
        return Statement(root, changes=tab) if order else select(rng, tables)
    tuples = []
    for _ in range(rng.choice([1, 1, 2, 5])):
        values = [Node(str(rng.randint(1, 80))) if c.name == "id" else (Node(schema.literal(rng, c.kind, c.collation)) if rng.random() < 0.75
                  else Gen(rng, []).expr("x", 1) if rng.random() < 0.7 else Node("DEFAULT")) for c in names]
        tuples.append(Node("(", *[p for i, v in enumerate(values) for p in (", " if i else "", v)], ")", fixed=True))
    tail = ""
    if verb.startswith("INSERT INTO") and rng.random() < 0.35:
        sets = [Node(f"`{c.name}` = ", Node(f"VALUES(`{rng.choice(names).name}`)") if rng.random() < 0.5 else gen.expr("x", 1), fixed=True)
                for c in rng.sample(tab.columns, rng.randint(1, 2))]
        tail = Node(" ON DUPLICATE KEY UPDATE ", listed(sets), optional=True, fixed=True)
    return Statement(Node(head, "VALUES ", listed(tuples), tail, fixed=True), changes=tab)


def _assignment(rng, tab, gen):
    c = rng.choice(tab.columns[1:])
    v = Node(schema.literal(rng, c.kind, c.collation)) if rng.random() < 0.6 else gen.expr("x", 1)
    return Node(f"`{c.name}` = ", v, fixed=True)


def update(rng, tables):
    tab = rng.choice(tables)
    gen = Gen(rng, [(f"`{tab.name}`", c) for c in tab.columns])
    sets = [_assignment(rng, tab, gen) for _ in range(rng.randint(1, 2))]
    order = ""
    if tab.key:
        # The order decides which rows a statement reaches before it fails.
        order = " ORDER BY " + ", ".join(f"`{c}`" for c in tab.key) + rng.choice(["", f" LIMIT {rng.randint(0, 6)}"])
    verb = rng.choice(["UPDATE", "UPDATE", "UPDATE IGNORE"])
    return Statement(Node(f"{verb} `{tab.name}` SET ", listed(sets), _where(rng, tables, gen, 0.9) if rng.random() < 0.7 else Node(f" WHERE id = {rng.randint(1, 60)}"),
                          order, fixed=True), changes=tab)


def delete(rng, tables):
    tab = rng.choice(tables)
    gen = Gen(rng, [(f"`{tab.name}`", c) for c in tab.columns])
    order = " ORDER BY " + ", ".join(f"`{c}`" for c in tab.key) + rng.choice(["", f" LIMIT {rng.randint(0, 6)}"]) if tab.key else ""
    where = Node(" WHERE ", gen.predicate(1), fixed=True)
    return Statement(Node(f"DELETE FROM `{tab.name}`", where, order, fixed=True), changes=tab)


def random_statement(rng, tables):
    maker = rng.choices([select, union, constant, derived, insert, update, delete], [50, 4, 20, 4, 10, 9, 3])[0]
    return maker(rng, tables)
