"""Random conditions, joins, subqueries and changes over few values and many keys: what plans do,
not what types do. Answers are rows and counts; warnings are left out,
for they tell which rows a plan has looked at.

Where MySQL is known to be wrong nothing is made: its outer joins lose rows beside conditions on
rows that one member decides (docs/compatibility.md), so such conditions are
only asked of what no outer join makes NULL."""

import random

from compare import differences

COLUMNS = [("a", "INT"), ("b", "INT NOT NULL"), ("c", "VARCHAR(6)"), ("d", "DATE"), ("e", "DECIMAL(5,1)"), ("f", "BIGINT UNSIGNED"), ("g", "VARCHAR(4) NOT NULL")]
COMPARE = ["=", "=", "=", "<", ">", "<=", ">=", "<>", "<=>"]
PER_ROUND = 150
INTEGERS = {"id", "a", "b", "f"}
HINTS = ["INDEX_MERGE", "INDEX_MERGE", "NO_INDEX_MERGE", "SKIP_SCAN", "SKIP_SCAN", "NO_SKIP_SCAN"]


def _kind(definition):
    return definition.split(" NOT")[0]


def _is_text(kind):
    return kind.startswith("VARCHAR")


def _value(rng, kind):
    if rng.random() < 0.04:
        return "NULL"
    if kind == "INT":
        return str(rng.randint(-1, 6))
    if kind.startswith("BIGINT"):
        return str(rng.randint(0, 6))
    if kind == "DATE":
        return f"'2020-01-0{rng.randint(1, 6)}'"
    if _is_text(kind):
        return "'" + rng.choice(["", "a", "A", "ab", "b", "ba", "c", "abc"]) + "'"
    return rng.choice(["0", "1", "1.5", "2.0", "-1.5", "3", "6.0"])


class Table:
    """A table with random columns, keys and rows."""

    def __init__(self, rng, name, rows):
        self.name = name
        self.columns = [("id", "INT NOT NULL")] + rng.sample(COLUMNS, rng.randint(3, len(COLUMNS)))
        names = [c for c, _ in self.columns]
        keys = []
        primary = rng.choice(["id", "id", "id", "two", ""])
        if primary == "id":
            keys.append("PRIMARY KEY (id)")
        elif primary == "two":
            first = [c for c, ty in self.columns[1:] if "NOT NULL" in ty][:1]
            keys.append(f"PRIMARY KEY ({', '.join(first + ['id'])})")
        for n in range(rng.randint(0, 4)):
            parts = []
            for c in rng.sample(names, rng.randint(1, min(3, len(names)))):
                prefix = "(1)" if _is_text(dict(self.columns)[c]) and rng.random() < 0.2 else ""
                parts.append(c + prefix + rng.choice(["", "", "", "", " DESC"]))
            keys.append(f"KEY k{n} ({', '.join(parts)})")
        self.definition = f"CREATE TABLE {name} ({', '.join([f'{c} {ty}' for c, ty in self.columns] + keys)})"
        values = [[str(i)] + [self._stored(rng, ty) for _, ty in self.columns[1:]] for i in range(rows)]
        self.rows = f"INSERT INTO {name} VALUES " + ", ".join(f"({', '.join(row)})" for row in values)

    @staticmethod
    def _stored(rng, definition):
        if "NOT NULL" not in definition and rng.random() < 0.15:
            return "NULL"
        while True:
            value = _value(rng, _kind(definition))
            if value != "NULL" or "NOT NULL" not in definition:
                return value

    def scope(self, alias):
        """[(alias, column, kind)]"""
        return [(alias, c, _kind(ty)) for c, ty in self.columns]

    def alike(self, kind):
        """Columns of a kind; `id` where there is none."""
        return [c for c, ty in self.columns if _kind(ty) == kind] or ["id"]


class Conditions:
    """Random conditions. rows: conditions on rows are made, too."""

    def __init__(self, rng, tables, rows):
        self.rng, self.tables, self.rows, self.count = rng, tables, rows, 0

    def column(self, scope):
        alias, column, kind = self.rng.choice(scope)
        return f"{alias}.{column}", kind

    def simple(self, scope):
        rng = self.rng
        e, kind = self.column(scope)
        shape = rng.random()
        if shape < 0.4:
            return f"{e} {rng.choice(COMPARE)} {_value(rng, kind)}"
        if shape < 0.5:
            return f"{_value(rng, kind)} {rng.choice(COMPARE)} {e}"
        negated = rng.choice(["", "", "NOT "])
        if shape < 0.62:
            return f"{e} {negated}IN ({', '.join(_value(rng, kind) for _ in range(rng.randint(1, 4)))})"
        if shape < 0.72:
            return f"{e} {negated}BETWEEN {_value(rng, kind)} AND {_value(rng, kind)}"
        if shape < 0.8:
            return f"{e} IS {negated}NULL"
        if shape < 0.84 and _is_text(kind):
            return f"{e} {negated}LIKE '{rng.choice(['a%', '%b', '_', 'ab%', '%'])}'"
        if shape < 0.9 and self.rows:
            other, other_kind = self.column(scope)
            members = [f"({_value(rng, kind)}, {_value(rng, other_kind)})" for _ in range(rng.randint(1, 3))]
            if shape < 0.88:
                return f"({e}, {other}) {negated}IN ({', '.join(members)})"
            return f"({e}, {other}) {rng.choice(['=', '<', '>=', '<>'])} {members[0]}"
        alias, column, _ = rng.choice([s for s in scope if s[2] == kind])
        return f"{e} {rng.choice(COMPARE)} {alias}.{column}"

    def either(self, scope, depth):
        """OR of values of one column, with conditions of their own beside them: what a key finds is
        less than what is asked."""
        rng = self.rng
        e, kind = self.column(scope)
        parts = []
        for _ in range(rng.randint(2, 3)):
            found = f"{e} {rng.choice(['=', '=', '>', '<=', '<=>'])} {_value(rng, kind)}"
            if rng.random() < 0.6:
                both = [found, self.any(scope, depth)]
                rng.shuffle(both)
                found = f"({' AND '.join(both)})"
            parts.append(found)
        return f"({' OR '.join(parts)})"

    def any(self, scope, depth, subqueries=False):
        rng = self.rng
        shape = rng.random()

        def below():
            return self.any(scope, depth - 1, subqueries)

        if depth == 0 or shape >= 0.8:
            return self.simple(scope)
        if shape < 0.3:
            return f"({' AND '.join(below() for _ in range(rng.randint(2, 3)))})"
        if shape < 0.45:
            return self.either(scope, depth - 1)
        if shape < 0.6:
            return f"({' OR '.join(below() for _ in range(rng.randint(2, 3)))})"
        if shape < 0.68:
            return f"(NOT {below()})"
        if shape < 0.7:
            return f"({below()} XOR {below()})"
        if shape < 0.72:
            return f"({below()}) IS {rng.choice(['', 'NOT '])}{rng.choice(['TRUE', 'FALSE', 'UNKNOWN'])}"
        return self.subquery(scope) if subqueries else self.simple(scope)

    def subquery(self, scope):
        rng = self.rng
        table = rng.choice(self.tables)
        self.count += 1
        alias = f"s{self.count}"
        kinds = {_kind(ty) for _, ty in table.columns}
        e, kind = self.column([s for s in scope if s[2] in kinds])
        own = table.alike(kind)
        column = f"{alias}.{rng.choice(own)}"
        seen = table.scope(alias) + (scope if rng.random() < 0.4 else [])
        rest = f"FROM {table.name} {alias} WHERE {self.any(seen, rng.randint(0, 2), rng.random() < 0.2)}"
        shape = rng.random()
        if shape < 0.35:
            return f"{e} {rng.choice(['IN', 'IN', 'NOT IN'])} (SELECT {column} {rest})"
        if shape < 0.6:
            return f"{rng.choice(['', 'NOT '])}EXISTS (SELECT 1 {rest} AND {column} = {e})"
        if shape < 0.7:
            return f"{e} {rng.choice(COMPARE)} (SELECT {rng.choice(['MIN', 'MAX'])}({column}) {rest})"
        if shape < 0.85:
            return self.aggregate(scope, table, alias, rest)
        return f"{e} {rng.choice(['=', '<', '>=', '<>'])} {rng.choice(['ANY', 'ALL'])} (SELECT {column} {rest})"


    def aggregate(self, scope, table, alias, rest):
        """A comparison with an aggregate that is correlated by an equality."""
        rng = self.rng
        kinds = {_kind(ty) for _, ty in table.columns}
        outer, column, kind = rng.choice([s for s in scope if s[2] in kinds])
        numbers = [f"{alias}.{c}" for c, ty in table.columns if not _is_text(ty) and ty != "DATE"]
        function = rng.choice(["COUNT", "SUM", "AVG", "MIN", "MAX"])
        value = f"{function}({rng.choice(numbers)})" + rng.choice(["", "", " * 2", " + 1"])
        equal = f"{alias}.{rng.choice(table.alike(kind))} = {outer}.{column}"
        if kind not in ("INT", "DECIMAL(5,1)", "BIGINT UNSIGNED"):
            left = rng.choice(["1", "3.5"])
        else:
            left = f"{outer}.{column}"
        return f"{left} {rng.choice(COMPARE)} (SELECT {value} {rest} AND {equal})"


def _common(rng, conditions, scope, on):
    """OR of which all branches have `on`."""
    def branch():
        return f"({on} AND {conditions.any(scope, 1)})"
    return f"({' OR '.join(branch() for _ in range(rng.randint(2, 3)))})"


def _on(rng, conditions, left, right, operators):
    """The condition of a join of what two scopes have."""
    kinds = {kind for _, _, kind in right}
    one, column, kind = rng.choice([s for s in left if s[2] in kinds])
    other = rng.choice([s for s in right if s[2] == kind])
    on = f"{one}.{column} {rng.choice(operators)} {other[0]}.{other[1]}"
    if rng.random() < 0.5:
        on += f" {rng.choice(['AND', 'AND', 'OR'])} {conditions.any(left + right, 1)}"
    return on


def tree(rng, tables, conditions, used, depth, operators):
    """(a table or a join of several, what may be named of it); adds (alias, table) to `used`"""
    if depth == 0 or rng.random() < 0.3:
        table, alias = rng.choice(tables), f"t{len(used) + 1}"
        used.append((alias, table))
        return f"{table.name} {alias}", table.scope(alias)
    left, seen = tree(rng, tables, conditions, used, depth - 1, operators)
    right, more = tree(rng, tables, conditions, used, rng.randint(0, depth - 1), operators)
    kind = rng.choice(["LEFT JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "JOIN", "JOIN", "STRAIGHT_JOIN"])
    if "JOIN" in right:
        right = f"({right})"
    return f"{left} {kind} {right} ON {_on(rng, conditions, seen, more, operators)}", seen + more


def _chain(rng, tables, conditions, used):
    """As tree(), inner joins only."""
    first = rng.choice(tables)
    scope, source = first.scope("t1"), f"{first.name} t1"
    used.append(("t1", first))
    for n in range(rng.choice([0, 0, 0, 1, 1, 2, 3, 4])):
        table, alias = rng.choice(tables), f"t{n + 2}"
        left, column, kind = rng.choice(scope)
        on = f"{left}.{column} {rng.choice(['=', '=', '=', '<=>', '>'])} {alias}.{rng.choice(table.alike(kind))}"
        scope = scope + table.scope(alias)
        shape = rng.random()
        if shape < 0.4:
            on += f" {rng.choice(['AND', 'AND', 'OR'])} {conditions.any(scope, 1)}"
        elif shape < 0.5:
            on = _common(rng, conditions, scope, on)
        elif shape < 0.6:
            other = rng.choice([s for s in scope if s[2] == kind])
            on += f" AND {alias}.{rng.choice(table.alike(kind))} = {other[0]}.{other[1]}"
        source += f" JOIN {table.name} {alias} ON {on}"
        used.append((alias, table))
    return source, scope


def _hinted(rng, tables):
    """(a SELECT with hints about access paths, whether its rows come in one order only)"""
    text, ordered = _select(rng, tables)
    hints = [f"{rng.choice(HINTS)}(t{n})" for n in range(1, 4) if rng.random() < 0.4]
    if hints:
        text = text.replace("SELECT ", f"SELECT /*+ {' '.join(hints)} */ ", 1)
    return text, ordered


def _select(rng, tables):
    """(a SELECT, whether its rows come in one order only)"""
    outer = rng.random() < 0.5
    conditions = Conditions(rng, tables, rows=not outer)
    used = []
    if outer:
        source, scope = tree(rng, tables, conditions, used, rng.choice([0, 1, 2, 2, 3]), ["=", "=", "=", "<=>", ">"])
    else:
        source, scope = _chain(rng, tables, conditions, used)
    where = f" WHERE {conditions.any(scope, rng.randint(0, 3), True)}" if rng.random() < 0.85 else ""
    plain = [f"{alias}.{column}" for alias, column, kind in scope if not _is_text(kind)]
    shape = rng.random()
    if shape < 0.55:
        items = ", ".join(f"{alias}.{column}" for alias, column, _ in rng.sample(scope, min(len(scope), rng.randint(1, 4))))
        if rng.random() < 0.4:
            return f"SELECT {items} FROM {source}{where}", False
        keys = [key + rng.choice(["", " DESC"]) for key in rng.sample(plain, rng.randint(0, 2)) + [f"{alias}.id" for alias, _ in used]]
        limit = f" LIMIT {rng.randint(0, 6)}" + rng.choice(["", " OFFSET 2"]) if rng.random() < 0.5 else ""
        return f"SELECT {items} FROM {source}{where} ORDER BY {', '.join(keys)}{limit}", True
    if shape < 0.65:
        alias, column, _ = rng.choice(scope)
        items = f"{alias}.id, {alias}.{column}" if rng.random() < 0.5 or column not in INTEGERS else f"{alias}.{column}"
        return f"SELECT DISTINCT {items} FROM {source}{where}", False
    keys = rng.sample(plain, rng.randint(0, 2))
    functions = rng.choice([["COUNT(", "COUNT(DISTINCT ", "MIN(", "MAX(", "SUM(", "AVG("], ["MIN(", "MAX(", "COUNT(DISTINCT "]])
    aggregates = [f"{rng.choice(functions)}{rng.choice(plain)})" for _ in range(rng.randint(1, 3))]
    counted = ["COUNT(*)"] if len(functions) > 3 else []
    text = f"SELECT {', '.join(keys + aggregates + counted)} FROM {source}{where}"
    if not keys:
        return text, False
    text += f" GROUP BY {', '.join(keys)}"
    if rng.random() < 0.3:
        text += f" HAVING {aggregates[0]} {rng.choice(['>', '=', 'IS NOT NULL OR 1 <'])} 2"
    if rng.random() < 0.5:
        return text, False
    return text + " ORDER BY " + ", ".join(key + rng.choice(["", " DESC"]) for key in keys), True


def _change(rng, tables):
    """(a table, an UPDATE or DELETE of it)"""
    table = rng.choice(tables)
    conditions = Conditions(rng, [t for t in tables if t is not table], rows=True)
    where = conditions.any(table.scope(table.name), rng.randint(0, 3), True)
    if rng.random() < 0.4:
        return table, f"DELETE FROM {table.name} WHERE {where}"
    column, definition = rng.choice(table.columns[1:])
    value = f"{column} + 1" if _kind(definition) == "INT" and rng.random() < 0.3 else _value(rng, _kind(definition))
    return table, f"UPDATE {table.name} SET {column} = {value} WHERE {where}"


def _wrong(found):
    return [f for f in found if not f.startswith(("warnings", "types"))]


def _found_without_keys(sides, database, sql, ordered):
    """Whether MySQL answers as Nfold does when its tables have no keys: then it differs from
    itself."""
    mysql, plain = sides[0], f"{database}_plain"
    mysql.run(f"DROP DATABASE IF EXISTS `{plain}`")
    mysql.run(f"CREATE DATABASE `{plain}`")
    for n in range(3):
        mysql.run(f"CREATE TABLE `{plain}`.r{n} SELECT * FROM `{database}`.r{n}")
    mysql.run(f"USE `{plain}`")
    found = _wrong(differences(*[side.run(sql) for side in sides], ordered=ordered))
    mysql.run(f"USE `{database}`")
    mysql.run(f"DROP DATABASE `{plain}`")
    return not found


def run(sides, database, seed, count):
    """Whether `count` statements have the same answers on both sides; prints those that have not,
    with their tables."""
    differ = done = number = of_plan = 0
    while done < count:
        name = f"{seed}.{number}"
        number += 1
        rng = random.Random(name)
        tables = [Table(rng, f"r{n}", rng.choice([5, 12, 40])) for n in range(3)]
        setup = [f"DROP DATABASE IF EXISTS `{database}`", f"CREATE DATABASE `{database}`", f"USE `{database}`"]
        setup += [sql for t in tables for sql in (t.definition, t.rows)]
        setup += ["ANALYZE TABLE r0, r1, r2"] if rng.random() < 0.5 else []
        for sql in setup:
            for side in sides:
                side.run(sql)
        for _ in range(min(PER_ROUND, count - done)):
            done += 1
            prepared = rng.random() < 0.2
            if rng.random() < 0.15:
                table, sql = _change(rng, tables)
                for side in sides:
                    side.run("BEGIN")
                found = _wrong(differences(*[side.run(sql, prepared) for side in sides]))
                found = found or differences(*[side.run(f"SELECT * FROM {table.name}") for side in sides])
                for side in sides:
                    side.run("ROLLBACK")
            else:
                sql, ordered = _hinted(rng, tables)
                found = _wrong(differences(*[side.run(sql, prepared) for side in sides], ordered=ordered))
                if found and _found_without_keys(sides, database, sql, ordered):
                    of_plan += 1
                    continue
            if found:
                differ += 1
                print(f"== round {name} {'prepared ' if prepared else ''}{found[0]}\n{sql};")
                for table in tables:
                    print(f"    -- {table.definition}")
    print(f"{done} statements, {differ} differ; {of_plan} that MySQL answers as Nfold does without keys")
    return differ == 0
