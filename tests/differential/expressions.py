"""Random expressions over the columns in scope."""

import schema
from nodes import Node, listed

# Functions by the kinds of their arguments. n: any number, i: small integer, s: any string, d: a
# date or datetime, t: a time, x: anything
NUMERIC = ["ABS(n)", "CEIL(n)", "FLOOR(n)", "ROUND(n)", "ROUND(n, i)", "TRUNCATE(n, i)", "SIGN(n)", "MOD(n, n)", "SQRT(n)", "CRC32(s)",
           "LENGTH(x)", "CHAR_LENGTH(x)", "LOCATE(s, s)", "INSTR(s, s)", "ASCII(s)", "ORD(s)", "BIT_LENGTH(x)", "FIELD(x, x, x)",
           "YEAR(d)", "MONTH(d)", "DAYOFMONTH(d)", "DAYOFWEEK(d)", "WEEKDAY(d)", "DAYOFYEAR(d)", "WEEK(d)", "WEEK(d, i)", "YEARWEEK(d)",
           "QUARTER(d)", "HOUR(t)", "MINUTE(t)", "SECOND(t)", "MICROSECOND(t)", "TO_DAYS(d)", "TO_SECONDS(d)", "DATEDIFF(d, d)", "TIME_TO_SEC(t)",
           "EXTRACT(YEAR_MONTH FROM d)", "EXTRACT(HOUR_SECOND FROM t)", "EXTRACT(DAY_MINUTE FROM d)", "TIMESTAMPDIFF(MONTH, d, d)",
           "TIMESTAMPDIFF(SECOND, d, d)", "GREATEST(n, n)", "LEAST(n, n, n)", "BIT_COUNT(n)", "n DIV n", "n % n", "n + n", "n - n", "n * n",
           "n / n", "-(n)", "n & n", "n | n", "n ^ n", "n << i", "n >> i", "~(n)", "INTERVAL(n, n, n)", "STRCMP(s, s)", "PERIOD_ADD(202012, i)",
           "CAST(x AS SIGNED)", "CAST(x AS UNSIGNED)", "CAST(x AS DECIMAL(12,3))", "CAST(x AS DECIMAL)", "CAST(x AS DOUBLE)", "x + 0", "FIND_IN_SET(s, s)",
           "ISNULL(x)", "PI()", "POW(i, i)", "LN(n)", "EXP(i)", "UNIX_TIMESTAMP(d)", "CONV(i, 10, 16) + 0", "COERCIBILITY(s)", "CAST(x AS FLOAT)",
           "CAST(x AS YEAR)"]
STRING = ["CONCAT(x, x)", "CONCAT_WS(s, x, x)", "UPPER(s)", "LOWER(s)", "LEFT(s, i)", "RIGHT(s, i)", "SUBSTRING(s, i)", "SUBSTRING(s, i, i)",
          "TRIM(s)", "LTRIM(s)", "RTRIM(s)", "TRIM(LEADING 'a' FROM s)", "REPLACE(s, s, s)", "REVERSE(s)", "REPEAT(s, i)", "LPAD(s, i, s)", "RPAD(s, i, s)",
          "HEX(x)", "SUBSTRING_INDEX(s, s, i)", "INSERT(s, i, i, s)", "SPACE(i)", "ELT(i, x, x)", "FORMAT(n, i)", "DATE_FORMAT(d, '%Y-%m-%d %H:%i:%s.%f %W %j %U')",
          "TIME_FORMAT(t, '%H %i %s %f')", "MONTHNAME(d)", "DAYNAME(d)", "CAST(x AS CHAR)", "CAST(x AS CHAR(5))", "QUOTE(s)", "BIN(n)", "OCT(n)",
          "CONV(s, 10, 16)", "SOUNDEX(s)", "TO_BASE64(s)", "UNHEX(HEX(s))", "CHARSET(x)", "COLLATION(x)", "MAKE_SET(i, s, s)", "EXPORT_SET(i, 'a', 'b', ',', 4)",
          "CONVERT(s USING utf8mb4)", "INET_NTOA(n)", "SHA2(s, 256)", "REGEXP_SUBSTR(s, '[a-c]+')", "REGEXP_REPLACE(s, '[0-9]', '#')",
          "GREATEST(s, s)", "LEAST(s, s)", "CAST(s AS BINARY)", "CHAR(i, i)", "HEX(WEIGHT_STRING(s))"]
TEMPORAL = ["DATE(d)", "LAST_DAY(d)", "d + INTERVAL i DAY", "d - INTERVAL i MONTH", "d + INTERVAL i SECOND", "DATE_ADD(d, INTERVAL '1 2' DAY_HOUR)",
            "ADDDATE(d, i)", "CAST(x AS DATE)", "CAST(x AS DATETIME)", "CAST(x AS DATETIME(3))", "MAKEDATE(2020, i)", "FROM_DAYS(TO_DAYS(d))",
            "STR_TO_DATE(s, '%Y-%m-%d')", "TIMESTAMP(d)", "TIMESTAMP(d, t)", "TIMESTAMPADD(MINUTE, i, d)", "GREATEST(d, d)", "FROM_UNIXTIME(i)"]
TIMES = ["TIME(t)", "SEC_TO_TIME(n)", "MAKETIME(i, i, i)", "ADDTIME(t, t)", "SUBTIME(t, t)", "TIMEDIFF(t, t)", "CAST(x AS TIME)", "CAST(x AS TIME(2))"]
ANY = ["IF(p, x, x)", "IFNULL(x, x)", "NULLIF(x, x)", "COALESCE(x, x, x)", "CASE WHEN p THEN x ELSE x END", "CASE x WHEN x THEN x END",
       "GREATEST(x, x)", "LEAST(x, x)"]
ABOUT_TIME = {
    "n": ["YEAR(x)", "MONTH(x)", "DAYOFMONTH(x)", "DAYOFWEEK(x)", "WEEKDAY(x)", "DAYOFYEAR(x)", "WEEK(x)", "WEEK(x, i)", "YEARWEEK(x)", "QUARTER(x)", "HOUR(x)",
          "MINUTE(x)", "SECOND(x)", "MICROSECOND(x)", "TO_DAYS(x)", "TO_SECONDS(x)", "DATEDIFF(x, x)", "TIME_TO_SEC(x)", "UNIX_TIMESTAMP(x)",
          "TIMESTAMPDIFF(MONTH, x, x)", "TIMESTAMPDIFF(SECOND, x, x)", "TIMESTAMPDIFF(MICROSECOND, x, x)", "PERIOD_DIFF(202012, 202001 + i)", "x + 0", "x DIV 7",
          "CAST(x AS SIGNED)", "CAST(x AS DECIMAL(20,3))", "CAST(x AS YEAR)", "-(x)", "x * 1.0", "ROUND(x, i)", "x - x"]
         + [f"EXTRACT({u} FROM x)" for u in ("YEAR", "MONTH", "DAY", "WEEK", "HOUR", "MINUTE", "SECOND", "MICROSECOND", "YEAR_MONTH", "DAY_HOUR", "DAY_MINUTE",
                                             "DAY_SECOND", "DAY_MICROSECOND", "HOUR_MINUTE", "HOUR_SECOND", "HOUR_MICROSECOND", "MINUTE_SECOND",
                                             "MINUTE_MICROSECOND", "SECOND_MICROSECOND")],
    "s": ["CONCAT(x, '|')", "DATE_FORMAT(x, '%Y-%m-%d %H:%i:%s.%f %W %j %U')", "TIME_FORMAT(x, '%H %i %s %f')", "MONTHNAME(x)", "DAYNAME(x)", "CAST(x AS CHAR)",
          "LEFT(x, 7)", "HEX(x)", "MAX(x)", "GROUP_CONCAT(x)"][:8],
    "d": ["DATE(x)", "LAST_DAY(x)", "x + INTERVAL i DAY", "x - INTERVAL i MONTH", "x + INTERVAL i SECOND", "x + INTERVAL x HOUR", "x + INTERVAL 1.5 SECOND",
          "DATE_ADD(x, INTERVAL '1 2' DAY_HOUR)", "DATE_SUB(x, INTERVAL '1:2.5' MINUTE_MICROSECOND)", "x + INTERVAL x MINUTE_SECOND", "ADDDATE(x, i)", "CAST(x AS DATE)",
          "CAST(x AS DATETIME)", "CAST(x AS DATETIME(3))", "MAKEDATE(x, i)", "FROM_DAYS(TO_DAYS(x))", "STR_TO_DATE(x, '%Y-%m-%d')", "STR_TO_DATE(x, '%H:%i:%s')",
          "STR_TO_DATE(x, '%Y-%m-%d %H:%i:%s.%f')", "TIMESTAMP(x)", "TIMESTAMP(x, x)", "TIMESTAMPADD(MINUTE, i, x)", "TIMESTAMPADD(MICROSECOND, x, x)",
          "FROM_UNIXTIME(x)", "CONVERT_TZ(x, '+00:00', '+02:00')", "x + INTERVAL i YEAR", "x + INTERVAL i QUARTER", "x - INTERVAL i WEEK", "x + INTERVAL i MICROSECOND"],
    "t": ["TIME(x)", "SEC_TO_TIME(x)", "MAKETIME(i, i, x)", "ADDTIME(x, x)", "SUBTIME(x, x)", "TIMEDIFF(x, x)", "CAST(x AS TIME)", "CAST(x AS TIME(2))"],
}
COMPARE = ["=", "=", "<", ">", "<=", ">=", "<>", "<=>"]


class Gen:
    """scope: [(alias, Column)] whose values an expression may name."""

    functions = {"n": NUMERIC, "s": STRING, "d": TEMPORAL, "t": TIMES}

    def __init__(self, rng, scope):
        self.rng, self.scope = rng, scope

    def column(self, kinds=None):
        found = [(a, c) for a, c in self.scope if kinds is None or c.kind in kinds]
        if not found:
            return None, None
        alias, column = self.rng.choice(found)
        return Node(f"{alias}.`{column.name}`"), column

    def leaf(self, kind):
        """A column or a literal. kind as in the function lists."""
        rng = self.rng
        kinds = {"n": ("int", "dec", "float", "bit", "year"), "i": ("int",), "s": ("str", "enum", "bin"), "d": ("date", "datetime"),
                 "t": ("time", "datetime"), "x": None}[kind]
        if kind == "i":
            return Node(str(rng.randint(-2, 6)))
        if rng.random() < (0.75 if self.scope else 0):
            if rng.random() < 0.12:
                kinds = None
            node, _ = self.column(kinds)
            if node:
                return node
        if kind == "x":
            kind = rng.choice("nnssdt" if self.functions is not ABOUT_TIME else "nsddtt")
        kind = {"n": rng.choice(["int", "int", "dec", "float"]), "s": "str", "d": rng.choice(["date", "datetime"]), "t": "time"}[kind]
        return Node(schema.literal(rng, kind))

    def expr(self, kind="x", depth=2):
        """An expression of a kind, of at most `depth` calls."""
        rng = self.rng
        if depth <= 0 or rng.random() < 0.35 or kind == "i":
            return self.leaf(kind)
        if kind == "x":
            kind = rng.choice("nnnsssdt" if self.functions is not ABOUT_TIME else "nsdddttt")
        if rng.random() < 0.2:
            return self.call(rng.choice(ANY), depth)
        if kind == "n" and rng.random() < 0.08:
            return self.predicate(depth - 1)
        return self.call(rng.choice(self.functions[kind]), depth)

    def call(self, template, depth):
        """A template with its argument letters filled in; letters inside words are text."""
        parts, text = [], ""
        for i, ch in enumerate(template):
            before, after = template[i - 1:i], template[i + 1:i + 2]
            if ch in "nisdtxp" and not (before.isalnum() or before in ("_", "'", "%")) and not (after.isalnum() or after in ("_", "'")):
                parts.append(text + ("(" if depth > 1 and "(" not in template else ""))
                parts.append(self.predicate(depth - 1) if ch == "p" else self.expr(ch, depth - 1))
                text = ")" if depth > 1 and "(" not in template else ""
            else:
                text += ch
        return Node("(" if "(" not in template else "", *parts, text, ")" if "(" not in template else "")

    def comparable(self):
        """(expression, kind of literal that suits it)"""
        rng = self.rng
        if self.scope and rng.random() < 0.8:
            node, column = self.column()
            return node, column.kind, column.collation
        kind = rng.choice("nsd")
        return self.expr(kind, 1), {"n": "int", "s": "str", "d": "date"}[kind], None

    def value(self, kind, collation=None):
        """A constant beside a value of a kind: mostly of its own kind."""
        rng = self.rng
        if rng.random() < 0.12:
            kind = rng.choice(list(schema.TYPES))
        text = schema.literal(rng, kind, collation)
        return Node(text)

    def either(self):
        """OR of values of one column, with conditions of their own beside them: what a key finds is
        less than what is asked."""
        rng = self.rng
        node, column = self.column()
        parts = []
        for _ in range(rng.randint(2, 3)):
            found = Node(node.sql(), rng.choice([" = ", " = ", " > "]), self.value(column.kind, column.collation), fixed=True)
            beside = self.predicate(0) if rng.random() < 0.7 else None
            parts.append(Node("(", found, " AND ", beside, ")", fixed=True) if beside else found)
        return Node("(", listed(parts, " OR "), ")")

    def predicate(self, depth=2):
        rng = self.rng
        shape = rng.random()
        if depth > 0 and shape < 0.2:
            return Node("(", self.predicate(depth - 1), rng.choice([" AND ", " OR ", " AND ", " XOR "]), self.predicate(depth - 1), ")")
        if depth > 0 and shape < 0.25:
            return Node("(NOT ", self.predicate(depth - 1), ")")
        if depth > 0 and shape < 0.3:
            return Node("(", self.expr("x", depth), rng.choice([f" {o} " for o in COMPARE]), self.expr("x", depth), ")")
        if depth > 0 and shape < 0.33 and self.scope:
            return self.either()
        e, kind, collation = self.comparable()
        if shape < 0.36:
            return Node("(", e, rng.choice([" IS NULL", " IS NOT NULL", " IS TRUE", " IS NOT FALSE"]), ")")
        negated = "NOT " if rng.random() < 0.2 else ""
        if shape < 0.5:
            size = rng.choice([1, 2, 3, 5, 9, 30]) if rng.random() < 0.95 else rng.randint(100, 2000)
            members = [self.value(kind, collation) for _ in range(size)] if size < 100 else [Node(schema.literal(rng, kind, collation)) for _ in range(size)]
            return Node("(", e, f" {negated}IN (", listed(members), "))")
        if shape < 0.6:
            return Node("(", e, f" {negated}BETWEEN ", self.value(kind, collation), " AND ", self.value(kind, collation), ")")
        if shape < 0.68 and kind in ("str", "enum", "bin"):
            pattern = rng.choice(["a%", "%a", "%b%", "a_", "_", "%", "A%", "abc", "1%", "a\\\\_c", "a b%", "", "ä%", "%ss%", "e%"])
            if (collation or "").startswith(("latin1", "ascii")) or kind == "bin":
                pattern = pattern.replace("ä", "a")
            return Node("(", e, f" {negated}LIKE '{pattern}')")
        if shape < 0.74 and self.scope:
            other = self.column((kind,))[0] or self.value(kind)
            return Node("(", e, f" {rng.choice(COMPARE)} ", other, ")")
        return Node("(", e, f" {rng.choice(COMPARE)} ", self.value(kind, collation), ")")
