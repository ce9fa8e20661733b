"""Every type of column beside every other, and beside constants of all kinds, with a key and
without: the same rows must be found.

Each question is asked in several ways: by a key that ascends, by one that descends, by a primary
key, without a key (joins by hash), and as the opposite's
opposite, which nothing looks up (`NOT (a <> b)`). Nfold's answers must be one another's, but where
MySQL's differ in the same way; and without a key
they must be MySQL's. MySQL's own keys lose rows here and there (a BIT or a YEAR beside a text),
which is counted and no difference."""

TYPES = {
    "ti": "TINYINT", "tu": "TINYINT UNSIGNED", "si": "SMALLINT", "iu": "INT UNSIGNED", "i": "INT", "bi": "BIGINT", "bu": "BIGINT UNSIGNED",
    "dc": "DECIMAL(10,2)", "dw": "DECIMAL(30,10)", "d0": "DECIMAL(5,0)", "du": "DECIMAL(8,3) UNSIGNED", "fl": "FLOAT", "db": "DOUBLE",
    "b1": "BIT(1)", "b8": "BIT(8)", "b40": "BIT(40)", "b64": "BIT(64)", "ye": "YEAR", "da": "DATE", "t0": "TIME", "t3": "TIME(3)", "t6": "TIME(6)",
    "dt": "DATETIME", "dt2": "DATETIME(2)", "dt6": "DATETIME(6)", "ts": "TIMESTAMP", "ts3": "TIMESTAMP(3)",
    "va": "VARCHAR(30) COLLATE utf8mb4_0900_ai_ci", "vg": "VARCHAR(30) COLLATE utf8mb4_general_ci", "vb": "VARCHAR(30) COLLATE utf8mb4_bin",
    "vl": "VARCHAR(30) CHARACTER SET latin1", "vs": "VARCHAR(30) CHARACTER SET ascii", "ch": "CHAR(30) COLLATE utf8mb4_0900_ai_ci", "te": "TEXT COLLATE utf8mb4_0900_ai_ci",
    "bn": "BINARY(4)", "vn": "VARBINARY(30)", "bl": "BLOB", "en": "ENUM('a','b','Zeta','1')", "e1": "ENUM('1','2','3')", "se": "SET('a','b','1')",
}
PREFIXED = {"te": 5, "bl": 5}

INTS = ["0", "1", "-1", "2", "5", "7", "49", "97", "127", "-128", "200", "255", "256", "1901", "2020", "65535", "-2147483648", "4294967295", "9007199254740993",
        "9223372036854775807", "-9223372036854775808", "18446744073709551615", "101112", "20200102", "20200102101112"]
DECIMALS = ["0.5", "-0.5", "1.50", "1.005", "99999.99", "0.1", "2.0000000001", "18446744073709551616.5"]
DOUBLES = ["1e0", "1.5e0", "-2.5e-3", "1e10", "9007199254740992e0", "1e300", "0.1e0"]
TEXTS = ["''", "'a'", "'A'", "'b'", "'a '", "'1'", "'1.0'", "'01'", "'1e0'", "'5x'", "' 5'", "'200'", "'2020'", "'20'", "'0'", "'0000'", "'abc'", "'ss'", "'ß'", "'ä'", "'a,b'",
         "'2020-01-02'", "'2020-1-2'", "'2020-01-02 00:00:00'", "'2020-01-02 10:11:12'", "'2020-01-02 10:11:12.5'", "'2020-01-02 10:11:12.56'", "'20200102'", "'20200102101112'",
         "'10:11:12'", "'10:11:12.5'", "'101112'", "'-10:00:00.5'", "'0000-00-00'", "'9007199254740993'", "'18446744073709551615'", "'0.1'"]
MOMENTS = ["DATE'2020-01-02'", "DATE'1901-01-01'", "TIMESTAMP'2020-01-02 10:11:12'", "TIMESTAMP'2020-01-02 10:11:12.5'", "TIMESTAMP'2020-01-02 00:00:00'", "TIME'10:11:12'",
           "TIME'10:11:12.5'", "TIME'-10:00:00.5'", "TIME'00:00:00'", "CAST('2020-01-02 10:11:12.56' AS DATETIME(6))"]
BITS = ["b'1'", "b'101'", "x'31'", "x'61'", "x'00'", "x'0000000031'"]
CONSTANTS = INTS + DECIMALS + DOUBLES + TEXTS + MOMENTS + BITS + ["NULL", "TRUE"]

NESTED_LOOPS = "block_nested_loop=off,semijoin=off,materialization=off"
HINTS = {"key": "FORCE INDEX (k)", "descending key": "FORCE INDEX (d)", "no key": "IGNORE INDEX (k, d)"}
JOINS = ["= {b}", "<=> {b}", "< {b}", ">= {b}", "BETWEEN {b} AND {b}", "IN ({b}, {b})", "IN ({b}, 1)"]
CONDITIONS = ["{e} = {v}", "{v} = {e}", "{e} <=> {v}", "{e} < {v}", "{e} <= {v}", "{e} > {v}", "{v} >= {e}", "{e} IN ({v})", "{e} IN ({v}, {w})", "{e} BETWEEN {v} AND {w}", "{e} BETWEEN {w} AND {v}",
              "({e} = {v} OR {e} > {w})", "({e}, {e}) IN (({v}, {v}), ({w}, {w}))"]


def definitions():
    """The tables: `k_x` with its keys, `q_x` whose primary key it is."""
    for name, ty in TYPES.items():
        part = f"c({PREFIXED[name]})" if name in PREFIXED else "c"
        null = " NULL" if ty.startswith("TIMESTAMP") else ""
        yield name, f"CREATE TABLE k_{name} (id INT PRIMARY KEY, c {ty}{null}, KEY k ({part}), KEY d ({part} DESC, id))"
        yield name, f"CREATE TABLE q_{name} (id INT, c {ty} NOT NULL, PRIMARY KEY ({part}, id))"


def fill(sides, name):
    """All constants that the column takes, a few of each; gives those that the sides keep in
    different ways, which are left out."""
    different = set()
    for table in (f"k_{name}", f"q_{name}"):
        for n, value in enumerate(CONSTANTS):
            for side in sides:
                side.run(f"INSERT IGNORE INTO {table} VALUES ({n}, {value})")
        a, b = [{int(r[0]): r[1:] for r in side.run(f"SELECT id, HEX(c), c FROM {table}").rows} for side in sides]
        odd = {n for n in a.keys() | b.keys() if a.get(n) != b.get(n)}
        different |= odd
        seen, extra = {}, set(odd)
        for n in sorted(a):
            if seen.setdefault(a[n], []) and len(seen[a[n]]) > 1:
                extra.add(n)
            seen[a[n]].append(n)
        for side in sides:
            if extra:
                side.run(f"DELETE FROM {table} WHERE id IN ({', '.join(map(str, extra))})")
    return [CONSTANTS[n] for n in sorted(different)]


def questions(name, other):
    """(form, {way: statement}) of a join of two types; the way `opposite` or `no key` is the
    reference."""
    for form in JOINS:
        condition = form.format(b="b.c")
        head = f"SELECT STRAIGHT_JOIN a.id, b.id FROM k_{other} b IGNORE INDEX (k, d) JOIN"
        ways = {way: f"{head} k_{name} a {hint} ON a.c {condition}" for way, hint in HINTS.items()}
        if form == "= {b}":
            ways["opposite"] = f"{head} k_{name} a IGNORE INDEX (k, d) ON NOT (a.c <> b.c)"
        yield f"a.c {condition}", ways
        yield f"primary key a.c {condition}", {"key": f"{head} q_{name} a FORCE INDEX (PRIMARY) ON a.c {condition}", "no key": f"{head} q_{name} a IGNORE INDEX (PRIMARY) ON a.c {condition}"}
    yield "b.c IN (SELECT a.c)", {way: f"SELECT 0, b.id FROM k_{other} b WHERE b.c IN (SELECT a.c FROM k_{name} a {hint})" for way, hint in HINTS.items()}
    yield "EXISTS a.c = b.c", {way: f"SELECT 0, b.id FROM k_{other} b WHERE EXISTS (SELECT 1 FROM k_{name} a {hint} WHERE a.c = b.c)" for way, hint in HINTS.items()}
    yield "LEFT JOIN a.c = b.c", {way: f"SELECT a.id, b.id FROM k_{other} b LEFT JOIN k_{name} a {hint} ON a.c = b.c" for way, hint in HINTS.items()}


def constant_questions(name, value, second):
    """(form, {way: statement}) of a column beside constants."""
    for form in CONDITIONS:
        condition = form.format(e="a.c", v=value, w=second)
        ways = {way: f"SELECT 0, a.id FROM k_{name} a {hint} WHERE {condition}" for way, hint in HINTS.items()}
        yield form.format(e="a.c", v="v", w="w"), ways
        ways = {"key": f"SELECT 0, a.id FROM q_{name} a FORCE INDEX (PRIMARY) WHERE {condition}", "no key": f"SELECT 0, a.id FROM q_{name} a IGNORE INDEX (PRIMARY) WHERE {condition}"}
        yield "primary key " + form.format(e="a.c", v="v", w="w"), ways


def said(answer):
    """An answer to compare: the error, or the rows in any order."""
    return f"error {answer.error}" if answer.error else tuple(sorted(tuple(v or b"NULL" for v in r) for r in answer.rows))


def shortened(sql):
    """A statement of which numbers tell the rows apart, where the rows themselves are not selected.
    """
    items, _, rest = sql.partition(" FROM ")
    head, a, b = items.rsplit(" ", 2)
    return f"{head} COUNT(*), SUM(IFNULL({a.rstrip(',')}, 900) * 97 + {b} * {b}) FROM {rest}"


class Count:
    def __init__(self):
        self.asked, self.own, self.without, self.theirs = 0, {}, {}, {}


def ask(sides, ways, kind, count):
    """Asks one question in all its ways of both sides."""
    count.asked += 1
    short = [said(side.run(shortened(sql))) for side in sides for sql in ways.values()]
    if len(set(short)) == 1:
        return
    mysql, nfold = [{way: said(side.run(sql)) for way, sql in ways.items()} for side in sides]
    reference = "opposite" if "opposite" in ways else "no key"
    if len(set(mysql.values())) > 1:
        count.theirs[kind] = count.theirs.get(kind, 0) + 1
    odd = [w for w in ways if nfold[w] != nfold[reference] and nfold[w] != mysql[w]]
    plain = "no key" if nfold["no key"] != mysql["no key"] else None
    for bucket, way, against in ((count.own, odd[0] if odd else None, nfold[reference]), (count.without, plain, mysql["no key"])):
        if way is None:
            continue
        bucket.setdefault(kind, []).append((ways[way], way, nfold[way], against, {w: len(a) if isinstance(a, tuple) else a for w, a in mysql.items()}))


def show(title, bucket, shown):
    print(f"== {title}: {sum(map(len, bucket.values()))} questions of {len(bucket)} kinds")
    for kind, found in sorted(bucket.items()):
        print(f"-- {kind}: {len(found)}")
        for sql, way, got, against, mysql in found[:shown]:
            if isinstance(got, tuple) and isinstance(against, tuple):
                more, less = [sorted(set(x) - set(y))[:6] for x, y in ((got, against), (against, got))]
                text = f"more {more}, missing {less}"
            else:
                text = f"{str(got)[:60]} against {str(against)[:60]}"
            text = text.replace("b'", "'")
            print(f"   {sql};\n      {way}: {text}; MySQL: {mysql}")


def run(sides, database, only=None, part="all", shown=2, mode=""):
    """Asks everything; True if Nfold never differs from itself."""
    for side in sides:
        side.run(f"DROP DATABASE IF EXISTS `{database}`")
        side.run(f"CREATE DATABASE `{database}`")
        side.run(f"USE `{database}`")
        side.run(f"SET sql_mode = '{mode}'")
    # Plans of MySQL's that compare in ways of their own: nested loops are the authority.
    sides[0].run(f"SET optimizer_switch = '{NESTED_LOOPS}'")
    for name, sql in definitions():
        for side in sides:
            a = side.run(sql)
            assert not a.error, (sql, a.message)
    for name in TYPES:
        different = fill(sides, name)
        if different:
            print(f"-- {TYPES[name]} keeps other values of {', '.join(different)}")
    joins, constants = Count(), Count()
    for name, ty in TYPES.items():
        if only and name not in only:
            continue
        for other in TYPES if part in ("all", "joins") else ():
            for form, ways in questions(name, other):
                ask(sides, ways, f"{ty} beside {TYPES[other]}, {form}", joins)
        for n, value in enumerate(CONSTANTS if part in ("all", "constants") else ()):
            # A second constant of the same kind, and one of another.
            for second in {CONSTANTS[(n + 1) % len(CONSTANTS)], CONSTANTS[(n * 7 + 3) % len(CONSTANTS)]}:
                for form, ways in constant_questions(name, value, second):
                    ask(sides, ways, f"{ty} beside a constant, {form}", constants)
    for what, count in (("joins", joins), ("constants", constants)):
        show(f"{what}: Nfold differs from itself", count.own, shown)
        show(f"{what}: without a key, Nfold differs from MySQL", count.without, shown)
        print(f"== {what}: {count.asked} questions; MySQL differs from itself in {sum(count.theirs.values())}")
    return not joins.own and not constants.own
