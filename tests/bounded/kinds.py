"""Kinds of expensive statement. Each would run for many seconds, or is very large."""

MIB = 1 << 20
ROWS = 100_000


class Kind:
    """One kind of statement.

    sql: its text, or a function that makes it. before: statements of the same session before it.
    blocker: statements of another session before it, which that session still holds meanwhile.
    after: seconds from sending it to stopping it; several: once for each.
    select: `max_execution_time` applies to it.
    undo: it changes rows, and taking them back is counted by itself.
    may_end: it may be over before it is stopped.
    """

    def __init__(self, name, sql, before=(), blocker=(), after=(0.25,), select=True, undo=False,
                 may_end=False):
        self.name, self.text, self.before, self.blocker = name, sql, before, blocker
        self.after, self.select, self.undo, self.may_end = after, select, undo, may_end

    def sql(self):
        return self.text() if callable(self.text) else self.text


SETUP = [
    "CREATE DATABASE d",
    "CREATE TABLE d.big (id INT PRIMARY KEY, n INT, s VARCHAR(100), t VARCHAR(40), KEY (n))",
    "SET cte_max_recursion_depth = 1000000",
    "INSERT INTO d.big WITH RECURSIVE r AS (SELECT 1 id UNION ALL SELECT id + 1 FROM r "
    f"WHERE id < {ROWS}) SELECT id, id * 7919 % 100003, REPEAT(SHA1(id), 2), MD5(id) FROM r",
    "CREATE TABLE d.small (id INT PRIMARY KEY, n INT)",
    "INSERT INTO d.small SELECT id, n FROM d.big WHERE id <= 1000",
    "CREATE TABLE d.sink (id INT PRIMARY KEY AUTO_INCREMENT, n INT, s VARCHAR(100))",
    "CREATE TABLE d.texts (id INT PRIMARY KEY, s LONGTEXT)",
    f"INSERT INTO d.texts SELECT id, REPEAT(s, {8 * MIB // 80}) FROM d.big WHERE id <= 8",
    "ANALYZE TABLE d.big",
]

A64 = f"SET @x = REPEAT('ab', {32 * MIB})"
U64 = f"SET @x = REPEAT('äb', {20 * MIB})"


def over(name, expression, variable=A64, more=(), **options):
    """A function over a value of 64 MiB, again and again."""
    return Kind(name, f"SELECT BENCHMARK(1000000000, {expression})", (variable, *more), **options)


def ored_ranges():
    return " OR ".join(f"(n > {20 * i} AND n < {20 * i + 7})" for i in range(4000))


def nested(levels):
    text = "SELECT n FROM d.small WHERE id = 1"
    for level in range(levels):
        text = f"SELECT ({text}) + (SELECT MAX(id) FROM d.small t{level})"
    return text


def many_values():
    row = b"(NULL, 12345, 'abcdefghijklmnopqrstuvwxyz'),"
    text = b"INSERT INTO d.sink VALUES " + row * (60 * MIB // len(row))
    return text[:-1]


def listed(count, term):
    return ", ".join(term.format(i) for i in range(count))


CROSS = "d.big a CROSS JOIN d.big b"

KINDS = [
    # Waits.
    # As in MySQL, it returns 1.
    Kind("SLEEP", "SELECT SLEEP(1000)", may_end=True),
    Kind("BENCHMARK", "SELECT BENCHMARK(1000000000000, MD5('x'))"),
    Kind("wait for a row lock", "SELECT * FROM d.small WHERE id = 1 FOR UPDATE",
         ("SET innodb_lock_wait_timeout = 1000", "BEGIN"),
         blocker=("BEGIN", "UPDATE d.small SET n = n + 1 WHERE id = 1")),
    Kind("wait for a metadata lock", "SELECT COUNT(*) FROM d.small", ("SET lock_wait_timeout = 1000",),
         blocker=("LOCK TABLES d.small WRITE",)),
    # Joins, sorts, groups.
    Kind("cross join", f"SELECT COUNT(*) FROM {CROSS} WHERE a.n + b.n = -1"),
    Kind("join without a key", f"SELECT COUNT(*) FROM {CROSS} WHERE a.s < b.t AND a.t LIKE CONCAT('%', b.id, '%')"),
    Kind("correlated subquery",
         "SELECT COUNT(*) FROM d.big a WHERE (SELECT COUNT(*) FROM d.big b WHERE b.n + 0 > a.n) = -1"),
    Kind("sort that spills", f"SELECT a.id FROM {CROSS} ORDER BY MD5(a.id + b.id) LIMIT 10 OFFSET 99999999",
         after=(0.3, 2.0)),
    Kind("sort in memory", "SELECT s FROM (SELECT a.s, a.t FROM d.big a CROSS JOIN d.small b WHERE b.id <= 40) x "
         "ORDER BY t DESC, s LIMIT 10 OFFSET 3900000", ("SET sort_buffer_size = 1073741824",), after=(0.5, 1.5, 2.5), may_end=True),
    Kind("sort of columns in memory", "SELECT id, s, t FROM d.big ORDER BY t, s", ("SET sort_buffer_size = 1073741824",),
         after=(0.05, 0.1), may_end=True),
    Kind("GROUP BY", f"SELECT COUNT(*) FROM (SELECT MD5(a.id * b.id) m, COUNT(*) FROM {CROSS} GROUP BY m) x",
         after=(0.3, 2.0)),
    Kind("GROUP BY ROLLUP", f"SELECT a.n, b.n, SUM(a.id), MAX(a.s) FROM {CROSS} GROUP BY a.n, b.n WITH ROLLUP HAVING a.n = -1"),
    Kind("DISTINCT", f"SELECT COUNT(DISTINCT MD5(a.id * b.id)) FROM {CROSS}", after=(0.3, 2.0)),
    Kind("UNION", f"SELECT COUNT(*) FROM (SELECT a.id, b.n FROM {CROSS} UNION SELECT b.n, a.id FROM {CROSS}) x"),
    Kind("INTERSECT", f"SELECT a.id, b.n FROM {CROSS} INTERSECT SELECT b.n, a.id FROM {CROSS}"),
    Kind("NOT IN of a subquery", f"SELECT COUNT(*) FROM {CROSS} WHERE a.n + b.n NOT IN (SELECT n + 1 FROM d.big)"),
    Kind("materialised derived table", "SELECT COUNT(*) FROM (SELECT a.id, a.s FROM d.big a CROSS JOIN d.small b LIMIT 100000000) x "
         "JOIN (SELECT a.id, a.s FROM d.big a CROSS JOIN d.small b LIMIT 100000000) y ON x.s = y.s AND x.id = y.id"),
    Kind("window, moving frame", "SELECT MAX(m) FROM (SELECT MIN(s) OVER (ORDER BY id ROWS BETWEEN 20000 PRECEDING AND 20000 FOLLOWING) m "
         "FROM d.big) x"),
    Kind("window, sorted", f"SELECT MAX(m) FROM (SELECT ROW_NUMBER() OVER (ORDER BY MD5(a.id + b.id)) m FROM {CROSS}) x", after=(0.3, 2.0)),
    Kind("recursive table", "WITH RECURSIVE r AS (SELECT 1 n UNION ALL SELECT n + 1 FROM r WHERE n < 1000000000) SELECT MAX(n) FROM r",
         ("SET cte_max_recursion_depth = 4294967295",), after=(0.3, 2.0)),
    Kind("GROUP_CONCAT", f"SELECT LENGTH(GROUP_CONCAT(a.s ORDER BY a.t, b.n)) FROM {CROSS} WHERE b.id <= 30",
         ("SET group_concat_max_len = 1073741824",), after=(0.3, 1.5, 3.0)),
    Kind("information_schema", "SELECT COUNT(*) FROM information_schema.columns a, information_schema.columns b, "
         "information_schema.columns c WHERE a.column_name LIKE CONCAT(b.column_name, c.column_name, '_')"),
    Kind("result that is read", "SELECT a.s, b.s FROM d.big a CROSS JOIN d.big b"),
    # Texts of statements.
    Kind("parse a sum of 16 million terms", lambda: "SELECT " + "1+" * (16 * MIB) + "1", after=(0.05, 0.2, 0.6), may_end=True),
    Kind("parse 60 MiB of VALUES", many_values, after=(0.05, 0.2, 0.5), select=False, undo=True, may_end=True),
    Kind("parse a literal of 60 MiB", lambda: "SELECT LENGTH('" + "a\\n''b" * (10 * MIB) + "')", after=(0.03, 0.1), may_end=True),
    Kind("parse a comment of 60 MiB", lambda: "SELECT /* " + "* /" * (20 * MIB) + " */ SLEEP(100) FROM d.big", after=(0.05,)),
    Kind("parse a million columns", lambda: "SELECT " + listed(1_000_000, "a.id AS c{}") + " FROM d.big a", after=(0.05, 0.3), may_end=True),
    Kind("prepare 30 MiB", lambda: "PREPARE p FROM 'SELECT " + "1+" * (15 * MIB) + "1'", after=(0.05, 0.3), select=False, may_end=True),
    # Plans.
    Kind("plan 4,000 ranges", lambda: f"SELECT COUNT(*) FROM d.big a JOIN d.big b ON a.s = b.t WHERE ({ored_ranges().replace('n ', 'a.n ')}) AND SLEEP(1) = 0"),
    Kind("EXPLAIN 4,000 ranges", lambda: f"EXPLAIN SELECT COUNT(*) FROM d.big WHERE {ored_ranges()}", after=(0.02, 0.1), may_end=True),
    Kind("plan 18 nested subqueries", lambda: nested(18) + " + SLEEP(100) FROM d.big", after=(0.05, 0.25)),
    Kind("plan a join of 40 tables", "SELECT COUNT(*) FROM " + " JOIN ".join(
        f"d.big t{i}" + (f" ON t{i}.n = t{i - 1}.id AND t{i}.id + t0.id > 0" if i else "") for i in range(40)) + " WHERE SLEEP(1) = 0"),
    Kind("IN list of 30,000 expressions", lambda: f"SELECT COUNT(*) FROM d.big WHERE n IN ({listed(30_000, 'id + {}.5e0 + RAND()')})"),
    Kind("OR of 30,000 conditions", lambda: "SELECT COUNT(*) FROM d.big WHERE " + " OR ".join(f"s = CONCAT(t, '{i}')" for i in range(30_000))),
    Kind("AND of 30,000 conditions", lambda: "SELECT COUNT(*) FROM d.big WHERE " + " AND ".join(f"s <> CONCAT(t, '{i}')" for i in range(30_000))),
    Kind("CASE of 30,000 arms", lambda: "SELECT SUM(CASE " + " ".join(f"WHEN s = CONCAT(t, '{i}') THEN {i}" for i in range(30_000)) + " END) FROM d.big"),
    # Functions over large values.
    over("REPLACE", "REPLACE(@x, 'a', 'cd')"),
    over("hashes", "CONCAT(MD5(@x), SHA1(@x), SHA2(@x, 512))"),
    over("CRC32", "CRC32(@x)"),
    over("COMPRESS", "COMPRESS(@x)"),
    over("UNCOMPRESS", "UNCOMPRESS(@y)", more=("SET @y = COMPRESS(@x)", "SET @x = 1")),
    over("AES_ENCRYPT", "AES_ENCRYPT(@x, 'key')"),
    over("HEX and UNHEX", "UNHEX(HEX(@x))"),
    over("BASE64", "FROM_BASE64(TO_BASE64(@x))"),
    over("LIKE", "@x LIKE '%a%b%a%c'"),
    over("LIKE, quadratic", "@x LIKE CONCAT('%', REPEAT('ab', 100000), 'c%')"),
    over("LOCATE, quadratic", "LOCATE(CONCAT(REPEAT('ab', 1000000), 'c'), @x)"),
    over("LOCATE of characters", "LOCATE('äc', @x)", U64),
    over("UPPER and LOWER", "UPPER(LOWER(@x))", U64),
    over("CONVERT USING", "CONVERT(CONVERT(@x USING latin1) USING utf8mb4)", U64),
    over("comparison", "@x = CONCAT(@x, 'a') COLLATE utf8mb4_0900_ai_ci", U64),
    over("comparison by a general collation", "@x < CONCAT(@x, 'a') COLLATE utf8mb4_general_ci", U64),
    over("REVERSE, LPAD, INSERT", "INSERT(LPAD(REVERSE(@x), 90000000, 'xyz'), 40000000, 5, 'abc')"),
    over("SUBSTRING and its kin", "CHAR_LENGTH(SUBSTRING(LEFT(RIGHT(@x, 30000000), 25000000), 1000000))", U64),
    over("SUBSTRING_INDEX", "SUBSTRING_INDEX(@x, 'b', -20000000)"),
    over("TRIM and REPEAT", "TRIM(LEADING 'ab' FROM REPEAT('ab', 30000000))"),
    over("FIND_IN_SET", "FIND_IN_SET('c', REPLACE(@x, 'b', ','))"),
    over("QUOTE and SOUNDEX", "QUOTE(SOUNDEX(@x))"),
    over("CONCAT_WS and ELT", "LENGTH(CONCAT_WS(',', @x, ELT(1, @x, @x)))"),
    over("text to number", "CONCAT(REPEAT('0', 50000000), '12') + 0"),
    over("EXPORT_SET and MAKE_SET", "LENGTH(MAKE_SET(7, EXPORT_SET(-1, @x, @x), @x, @x))"),
    Kind("regular expression of 50 million assertions", "SELECT '1' REGEXP REPEAT('$', 50000000)", after=(0.1, 0.5), may_end=True),
    over("DATE_FORMAT", "DATE_FORMAT('2020-01-01', @x)", f"SET @x = REPEAT('%M %W ', {2 * MIB})"),
    over("STR_TO_DATE", "STR_TO_DATE(@x, @x)"),
    Kind("long texts sorted", "SELECT LENGTH(MAX(s)) FROM (SELECT a.s FROM d.texts a CROSS JOIN d.big b ORDER BY CONCAT(a.s, b.id) LIMIT 3) x"),
    Kind("long texts read", "SELECT SUM(LENGTH(a.s)) FROM d.texts a CROSS JOIN d.big b WHERE a.s LIKE CONCAT('%', b.s, 'z')"),
    # Changes.
    Kind("INSERT of a cross join", f"INSERT INTO d.sink SELECT NULL, a.n, b.s FROM {CROSS}", after=(0.1,), select=False, undo=True),
    Kind("UPDATE", "UPDATE d.big SET s = CONCAT(t, t), n = n + 1", after=(0.1,), select=False, undo=True, may_end=True),
    Kind("UPDATE of a join", "UPDATE d.big a JOIN d.big b ON b.n + 0 > a.n + 99990 SET a.s = b.t", select=False, undo=True),
    Kind("DELETE", "DELETE FROM d.big WHERE SHA2(s, 512) <> 'x'", after=(0.1,), select=False, undo=True, may_end=True),
    # Definitions.
    Kind("CREATE INDEX", "CREATE INDEX s ON d.big (s)", after=(0.02, 0.06), select=False, may_end=True),
    Kind("ALTER that copies", "ALTER TABLE d.big ADD COLUMN c INT FIRST, ADD INDEX (s, t)", after=(0.05, 0.1), select=False, may_end=True),
    Kind("CREATE TABLE AS", f"CREATE TABLE d.made AS SELECT a.id, b.s FROM {CROSS}", after=(0.1,), select=False, undo=True),
    Kind("CHECK TABLE", "CHECK TABLE d.big, d.texts", after=(0.01, 0.04), select=False, may_end=True),
]

# One or several of each class: those that `make bounded` runs.
QUICK = {
    "SLEEP", "BENCHMARK", "wait for a row lock", "wait for a metadata lock",
    "cross join", "join without a key", "correlated subquery", "sort that spills", "sort of columns in memory",
    "GROUP BY", "GROUP BY ROLLUP", "DISTINCT", "UNION", "NOT IN of a subquery", "materialised derived table",
    "window, sorted", "recursive table", "information_schema", "result that is read",
    "parse a comment of 60 MiB", "plan 4,000 ranges", "plan 18 nested subqueries", "plan a join of 40 tables",
    "REPLACE", "hashes", "COMPRESS", "LIKE", "LOCATE, quadratic", "UPPER and LOWER", "comparison",
    "text to number", "DATE_FORMAT", "EXPORT_SET and MAKE_SET", "regular expression of 50 million assertions",
    "long texts read", "UPDATE", "DELETE", "CREATE INDEX",
}
assert QUICK <= {kind.name for kind in KINDS}
