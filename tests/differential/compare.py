"""Answers of the two servers, and what differs between them."""

import re
import unicodedata

import pymysql

# MySQL's temporary tables refuse a zero date that the result has all the same, and its lookups
# convert values to a column without a name: whether there is one is the plan's affair.
OF_THE_PLAN = re.compile(r"Incorrect \w+ value: '0000-00-00[ 0:.]*' for column '.*' at row \d+$|.* for column '\(null\)' at row \d+$")
# MySQL 9.7 has warning 6527 where 8.4 and Nfold have one of these (docs/compatibility.md).
OUT_OF_RANGE = re.compile(r"Datetime function: \w+ field overflow$|Truncated incorrect time value: .*")
# A subquery sets the row number of MySQL's warnings back, behind which it goes on counting: in
# `UPDATE IGNORE t SET c = (SELECT ...)` each row is row 2 (docs/compatibility.md).
ROW = re.compile(r" at row \d+$")
BLOBS = {249, 250, 251, 252}
NAMES = {0: "decimal", 1: "tinyint", 2: "smallint", 3: "int", 4: "float", 5: "double", 6: "null", 7: "timestamp", 8: "bigint", 9: "mediumint", 10: "date",
         11: "time", 12: "datetime", 13: "year", 16: "bit", 246: "decimal", 247: "enum", 252: "blob", 253: "varchar", 254: "char"}


class Answer:
    """What a server said: an error number, or rows with their columns' types, or a count."""

    def __init__(self):
        self.error, self.message, self.types, self.rows, self.affected, self.warnings = None, "", None, None, None, []


class Side:
    """A connection to one of the servers."""

    def __init__(self, host, port, user, password):
        self.where = dict(host=host, port=port, user=user, password=password)
        self.connect()

    def connect(self):
        self.conn = pymysql.connect(charset="utf8mb4", autocommit=True, conv={}, use_unicode=False, read_timeout=60, **self.where)
        self.cursor = self.conn.cursor()
        self.cursor.execute("SET time_zone = '+00:00', timestamp = 1700000000.123456")

    def run(self, sql, prepared=False):
        a = Answer()
        try:
            if prepared:
                self.cursor.execute("SET @differential = %s" % self.conn.literal(sql).replace("_binary", ""))
                self.cursor.execute("PREPARE differential FROM @differential")
                # Which of PREPARE and EXECUTE evaluates a constant is the server's affair.
                a.warnings += self.shown_warnings()
                sql = "EXECUTE differential"
            self.cursor.execute(sql)
        except (pymysql.err.OperationalError, pymysql.err.InterfaceError, AttributeError) as e:
            a.error, a.message = (e.args[0] if e.args else 0), str(e)
            if a.error in (0, 2006, 2013, 2014):
                a.message = "the connection is gone: " + a.message
                self.connect()
            return a
        except pymysql.err.MySQLError as e:
            a.error, a.message = e.args[0], str(e.args[1:])
            return a
        result = self.cursor._result
        if self.cursor.description is not None:
            a.types = [NAMES.get(252 if f.type_code in BLOBS else f.type_code, f.type_code) for f in result.fields]
            a.rows = list(self.cursor.fetchall())
        else:
            a.affected = self.cursor.rowcount
        a.warnings += self.shown_warnings(result)
        return a

    def shown_warnings(self, result=None):
        """The warnings of the last statement, whose result this is."""
        if not (result or self.cursor._result).warning_count:
            return []
        self.cursor.execute("SHOW WARNINGS")
        return [(int(r[1]), r[2].decode("utf-8", "replace")) for r in self.cursor.fetchall()]


def _plain(row, types):
    """A row with doubles cut to the digits that an order of summing does not change."""
    out = []
    for v, t in zip(row, types):
        if v is not None and t in ("double", "float"):
            v = b"%.9g" % float(v)
        out.append(v)
    return tuple(out)


def _folded(row):
    """A row whose strings that many collations take as equal are the same."""
    out = []
    for v in row:
        if v is not None:
            text = unicodedata.normalize("NFKD", v.decode("utf-8", "replace").replace("ß", "ss"))
            v = "".join(c for c in text if not unicodedata.combining(c)).casefold().rstrip(" \0")
        out.append(v)
    return tuple(out)


def _key(row):
    return tuple((v is not None, v if isinstance(v, (bytes, str)) else b"") for v in row)


def _show(row):
    return "(" + ", ".join("NULL" if v is None else v.decode("utf-8", "backslashreplace")[:60] if isinstance(v, bytes) else v[:60] for v in row) + ")"


def _beside_subqueries(warnings):
    """Warnings of a change that has subqueries: those about columns without the row, and a
    conversion once, as how often a subquery is evaluated is the plan's affair."""
    converted = {w[0] for w in warnings if w[0] == 1292 and " for column " not in w[1]}
    rest = [(w[0], ROW.sub("", w[1])) for w in warnings if w[0] != 1292 or " for column " in w[1]]
    return sorted(rest) + [(code, "") for code in converted]


def differences(mysql, nfold, ordered=False, loose=False, exact_warnings=False, subqueries=False):
    """What differs, the worst first, each as `kind: text`."""
    if mysql.error or nfold.error:
        if mysql.error == nfold.error:
            return []
        return [f"error: MySQL {mysql.error} {mysql.message[:150]}, Nfold {nfold.error} {nfold.message[:150]}"]
    found = []
    if (mysql.rows is None) != (nfold.rows is None):
        return ["rows: only one gives rows"]
    if mysql.rows is not None:
        found += _rows(mysql, nfold, ordered, loose)
        if mysql.types != nfold.types:
            found.append(f"types: MySQL {mysql.types}, Nfold {nfold.types}")
    elif mysql.affected != nfold.affected:
        found.append(f"affected: MySQL {mysql.affected}, Nfold {nfold.affected}")
    a, b = mysql.warnings, nfold.warnings
    if mysql.rows is not None:
        a, b = ([w for w in side if not OF_THE_PLAN.match(w[1])] for side in (a, b))
    if subqueries:
        a, b = _beside_subqueries(a), _beside_subqueries(b)
    either = [b]
    if exact_warnings and len(a) == len(b):
        b = [x if x[0] == 6527 and OUT_OF_RANGE.match(y[1]) else y for x, y in zip(a, b)]
        either = [b]
    elif any(w[0] == 6527 for w in a):
        # An expression beside it may have one of these warnings in both.
        a = [w for w in a if w[0] != 6527]
        either.append([w for w in b if not OUT_OF_RANGE.match(w[1])])
    if not exact_warnings:  # how often an expression is evaluated is the plan's affair
        a = sorted(set(w[0] for w in a))
        either = [sorted(set(w[0] for w in b)) for b in either]
    if len(mysql.warnings) < 60 and a not in either:
        found.append(f"warnings: MySQL {mysql.warnings[:3]}, Nfold {nfold.warnings[:3]}")
    return found


def _rows(mysql, nfold, ordered, loose):
    types = mysql.types if len(mysql.types) == len(nfold.types) else []
    a, b = [_plain(r, types) for r in mysql.rows], [_plain(r, types) for r in nfold.rows]
    if not ordered:
        a, b = sorted(a, key=_key), sorted(b, key=_key)
    if a == b:
        return []
    if loose:
        x, y = sorted(map(_folded, a), key=_key), sorted(map(_folded, b), key=_key)
        if x == y:
            return []
    if len(a) != len(b):
        rest = list(b) if len(b) > len(a) else list(a)
        for r in (a if len(b) > len(a) else b):
            if r in rest:
                rest.remove(r)
        return [f"rows: MySQL gives {len(a)}, Nfold {len(b)}, as {_show(rest[0])}"]
    at = next(i for i, (x, y) in enumerate(zip(a, b)) if x != y)
    return [f"rows: MySQL {_show(a[at])}, Nfold {_show(b[at])}" + (" (the order)" if sorted(a, key=_key) == sorted(b, key=_key) else "")]
