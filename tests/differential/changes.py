"""Random UPDATE and DELETE of several tables: joins of all kinds, derived tables, tables under two
names; the counts and all rows afterwards are compared.

What is assigned does not depend on which of several matches comes first, nor on what else is
assigned: in MySQL both follow from its plan. Outer joins have no `<=>`,
beside which MySQL loses that NULL equals nothing, and no NULL goes into a column that cannot have
it (docs/compatibility.md)."""

import random

import plans
from compare import differences

PER_ROUND = 60


def _source(rng, tables, conditions, outer):
    """(FROM, scope, (alias, table) of what may be changed, a unique match of each alias)"""
    if outer and rng.random() < 0.5:
        used = []
        source, scope = plans.tree(rng, tables, conditions, used, rng.choice([1, 2, 2]), ["=", "=", "=", ">"])
        return source, scope, used, {}
    first = rng.choice(tables)
    scope, used, unique = first.scope("t1"), [("t1", first)], {}
    source = f"{first.name} t1"
    for n in range(rng.choice([0, 1, 1, 1, 2, 2])):
        table, alias = rng.choice(tables), f"t{n + 2}"
        # A text that is compared with a number is an error of some plans.
        kinds = {plans._kind(ty) for _, ty in table.columns}
        left, column, kind = rng.choice([s for s in scope if s[2] in kinds])
        other = rng.choice(table.alike(kind))
        on = f"{left}.{column} {rng.choice(['=', '=', '=', '>' if outer else '<=>', '>'])} {alias}.{other}"
        if kind in ("INT", "BIGINT UNSIGNED", "DECIMAL(5,1)") and rng.random() < 0.5:
            on = f"{left}.{column} = {alias}.id"
            unique[alias] = left
        derived = rng.random() < 0.15
        named = table.name
        if derived:
            named = f"(SELECT * FROM {table.name} WHERE {plans.Conditions(rng, tables, rows=False).any(table.scope(table.name), 1)}{rng.choice(['', ' LIMIT 1000'])})"
        else:
            used.append((alias, table))
        scope = scope + table.scope(alias)
        if rng.random() < 0.3:
            on += f" AND {conditions.any(scope, 1)}"
        source += f" {rng.choice(['LEFT JOIN', 'LEFT JOIN', 'JOIN']) if outer else rng.choice(['JOIN', 'JOIN', 'STRAIGHT_JOIN'])} {named} {alias} ON {on}"
    return source, scope, used, unique


def _value(rng, alias, column, definition, unique, targets, scope):
    """What a column becomes."""
    kind = definition.split(" NOT")[0]
    if kind == "INT" and rng.random() < 0.3:
        return f"{alias}.{column} + 1"
    if rng.random() < 0.1:
        return "DEFAULT"
    # A row that is found by its only key is one and the same in all matches.
    others = [f"{a}.{c}" for a, c, k in scope if unique.get(a) == alias and a not in targets and k == kind]
    if others and "NOT NULL" not in definition and rng.random() < 0.5:
        return rng.choice(others)
    while True:
        value = plans._value(rng, kind)
        if value != "NULL" or "NOT NULL" not in definition:
            return value


def statement(rng, tables):
    outer = rng.random() < 0.4
    # Subqueries read what is changed at times: an error.
    free = tables if rng.random() < 0.1 else tables[2:]
    changed = tables if free is tables else tables[:2]
    conditions = plans.Conditions(rng, free, rows=not outer)
    source, scope, used, unique = _source(rng, changed if rng.random() < 0.8 else tables, conditions, outer)
    may_change = [(a, t) for a, t in used if t in changed] or used
    chosen = rng.sample(may_change, rng.randint(1, len(may_change)))
    if "RIGHT JOIN" in source:
        # Under which of its names a row is met first is the plan's affair.
        chosen = list({table.name: (alias, table) for alias, table in chosen}.values())
    where = f" WHERE {conditions.any(scope, rng.randint(0, 3), free is not tables or rng.random() < 0.5)}" if rng.random() < 0.85 else ""
    targets = {a for a, _ in chosen}
    ignore = rng.choice(["", "", "", "IGNORE "])
    if rng.random() < 0.4:
        names = ", ".join(a + rng.choice(["", "", ".*"]) for a, _ in chosen)
        if rng.random() < 0.5:
            return f"DELETE {ignore}{names} FROM {source}{where}"
        return f"DELETE {ignore}FROM {names} USING {source}{where}"
    assignments = []
    for alias, table in chosen:
        column, definition = rng.choice(table.columns[1:])
        assignments.append(f"{alias}.{column} = {_value(rng, alias, column, definition, unique, targets, scope)}")
    rng.shuffle(assignments)
    return f"UPDATE {ignore}{source} SET {', '.join(assignments)}{where}"


def _wrong(found):
    return [f for f in found if not f.startswith(("warnings", "types"))]


def run(sides, database, seed, count):
    """Whether `count` statements do the same on both sides; prints those that do not, with their
    tables."""
    differ = done = number = 0
    while done < count:
        name = f"{seed}.{number}"
        number += 1
        rng = random.Random(name)
        tables = [plans.Table(rng, f"r{n}", rng.choice([5, 12, 40])) for n in range(3)]
        setup = [f"DROP DATABASE IF EXISTS `{database}`", f"CREATE DATABASE `{database}`", f"USE `{database}`"]
        setup += [sql for t in tables for sql in (t.definition, t.rows)]
        setup += ["ANALYZE TABLE r0, r1, r2"] if rng.random() < 0.5 else []
        for side in sides:
            for sql in setup:
                side.run(sql)
        for _ in range(min(PER_ROUND, count - done)):
            done += 1
            prepared, sql = rng.random() < 0.2, statement(rng, tables)
            for side in sides:
                side.run("BEGIN")
            found = _wrong(differences(*[side.run(sql, prepared) for side in sides]))
            for table in tables:
                found = found or differences(*[side.run(f"SELECT * FROM {table.name}") for side in sides])
            for side in sides:
                side.run("ROLLBACK")
            if found:
                differ += 1
                print(f"== round {name} {'prepared ' if prepared else ''}{found[0]}\n{sql};")
                for table in tables:
                    print(f"    -- {table.definition}")
    print(f"{done} statements, {differ} differ")
    return differ == 0
