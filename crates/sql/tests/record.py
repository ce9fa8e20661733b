"""Records what a real MySQL says about syntax, for this crate's tests.

    python3 record.py HOST PORT USER PASSWORD

writes data/operators.txt, data/verdicts.txt and data/digests.txt. Nothing is executed but SELECTs
of constants:
statements are only prepared.
"""
import itertools
import os
import re
import sys

import pymysql

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")


def connect():
    host, port, user, password = sys.argv[1:5]
    return pymysql.connect(host=host, port=int(port), user=user, password=password, autocommit=True)


CONNECTION = connect()
CURSOR = CONNECTION.cursor()


def one(sql):
    """The only value of a query (None without rows), or the pymysql error."""
    try:
        CURSOR.execute(sql)
        rows = CURSOR.fetchall()
        return rows[0][0] if rows else None
    except pymysql.err.Error as error:
        return error


# Operators

BINARY = "OR || XOR AND && = <=> < >= <> LIKE REGEXP | & << >> + - * / DIV % MOD ^".split()
PREFIX = ["NOT", "!", "-", "~", "+", "BINARY"]
POSTFIX = [
    "IS NULL", "IS NOT NULL", "IS TRUE", "IS NOT FALSE", "IS UNKNOWN", "IN (1, 3)", "NOT IN (0, 2)",
    "BETWEEN 1 AND 3", "NOT BETWEEN 0 AND 1", "LIKE 1", "NOT LIKE 0", "REGEXP 1", "NOT REGEXP 1", "COLLATE utf8mb4_bin",
]
VALUES = [("1", "0", "2"), ("0", "1", "1"), ("3", "2", "0"), ("5", "NULL", "1"), ("NULL", "1", "0"), ("6", "3", "2"),
          ("0", "0", "1"), ("2", "2", "3"), ("7", "4", "5")]


def operator_expressions():
    for a, b in itertools.product(BINARY, BINARY):
        yield "", f"A {a} B {b} C"
    for p, b in itertools.product(PREFIX, BINARY):
        yield "", f"{p} A {b} B"
        yield "", f"A {b} {p} B"
    for p, q in itertools.product(PREFIX, POSTFIX):
        yield "", f"{p} A {q}"
    for b, q in itertools.product(BINARY, POSTFIX):
        yield "", f"A {b} B {q}"
        yield "", f"A {q} {b} B"
    for q, r in itertools.product(POSTFIX, POSTFIX):
        yield "", f"A {q} {r}"
    for p, q in itertools.product(PREFIX, PREFIX):
        yield "", f"{p} {q} A"
    for b in BINARY:
        yield "", f"A BETWEEN B {b} C AND 4"
        yield "", f"A BETWEEN B AND C {b} 4"
        yield "", f"CASE A WHEN B {b} C THEN 1 ELSE 2 END"
        yield "", f"A IN (B {b} C, 9)"
        for mode in ["PIPES_AS_CONCAT", "HIGH_NOT_PRECEDENCE"]:
            yield "PIPES_AS_CONCAT", f"A || B {b} C"
            yield "PIPES_AS_CONCAT", f"A {b} B || C"
            yield "HIGH_NOT_PRECEDENCE", f"NOT A {b} B"
            yield "HIGH_NOT_PRECEDENCE", f"A {b} NOT B"
    for p in PREFIX:
        yield "PIPES_AS_CONCAT", f"{p} A || B"
        yield "PIPES_AS_CONCAT", f"A || {p} B"
    for q in POSTFIX:
        yield "PIPES_AS_CONCAT", f"A || B {q}"
        yield "HIGH_NOT_PRECEDENCE", f"NOT A {q}"


def put(expression, values):
    return re.sub(r"\b[ABC]\b", lambda m: values["ABC".index(m.group())], expression)


def shown(value):
    if isinstance(value, bytes):
        value = value.decode("latin1")
    return "NULL" if value is None else str(value)


def record_operators(out):
    mode = None
    seen = set()
    for wanted, expression in operator_expressions():
        if (wanted, expression) in seen:
            continue
        seen.add((wanted, expression))
        if wanted != mode:
            CURSOR.execute(f"SET sql_mode = '{wanted}'")
            mode = wanted
        answers = []
        for values in VALUES:
            answer = one("SELECT " + put(expression, values))
            if isinstance(answer, pymysql.err.Error):
                # A syntax error is an answer; an overflow or a mix of collations says nothing about
                # precedence.
                answers.append("syntax" if answer.args[0] == 1064 else "-")
            else:
                # Neither do the bits of a binary string.
                bits = isinstance(answer, bytes) and not re.fullmatch(rb"-?[0-9.e]*", answer)
                answers.append("-" if bits else shown(answer))
        out.write("\t".join([wanted, expression, *answers]) + "\n")
    CURSOR.execute("SET sql_mode = ''")


# Statements

def record_verdicts(out):
    for line in open(os.path.join(HERE, "statements.sql"), encoding="utf8"):
        text = line.rstrip("\n")
        error = one("PREPARE s FROM " + CONNECTION.escape(text))
        verdict = "ok"
        if isinstance(error, pymysql.err.Error):
            number, message = error.args[0], error.args[1]
            if number == 1064:
                verdict = message[message.index(" near '") + 1:]
            elif number == 1065:
                verdict = "empty"
        out.write(f"{verdict}\t{text}\n")


# Digests

SETUP = """
DROP DATABASE IF EXISTS sql_digests
CREATE DATABASE sql_digests
USE sql_digests
CREATE TABLE t (a INT PRIMARY KEY, b INT, c VARCHAR(10), d INT, `x``y` INT, status INT, name INT, j JSON)
CREATE TABLE u (a INT PRIMARY KEY, b INT, c VARCHAR(10))
"""


def record_digests(out):
    for sql in SETUP.strip().splitlines():
        CURSOR.execute(sql)
    names = ["digests.sql", "statements.sql"]
    for line in (line for name in names for line in open(os.path.join(HERE, name), encoding="utf8")):
        text = line.rstrip("\n")
        if "?" in text:
            continue
        digest = one("SELECT STATEMENT_DIGEST_TEXT(" + CONNECTION.escape(text) + ")")
        if not isinstance(digest, pymysql.err.Error):
            out.write(f"{digest}\t{text}\n")
    CURSOR.execute("DROP DATABASE sql_digests")


def main():
    version = one("SELECT VERSION()")
    for name, record in [("operators", record_operators), ("verdicts", record_verdicts), ("digests", record_digests)]:
        with open(os.path.join(HERE, name + ".txt"), "w", encoding="utf8") as out:
            out.write(f"# MySQL {version}\n")
            record(out)


main()
