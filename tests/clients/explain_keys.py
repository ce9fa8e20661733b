#!/usr/bin/python3
"""Records the keys of MySQL's EXPLAIN FORMAT=JSON, for test_explain.py: explain_keys.py HOST:PORT,
as user sb with password sb. Writes explain_keys.json."""
import json
import os
import sys

import pymysql

SETUP = """
CREATE TABLE t (id INT PRIMARY KEY, a INT, b VARCHAR(20), c DECIMAL(10,2), d DATE, KEY ka (a), KEY kab (a, b))
CREATE TABLE u (id INT PRIMARY KEY, tid INT NOT NULL, v INT, KEY kt (tid))
CREATE TABLE w (x INT, y INT)
INSERT INTO t WITH RECURSIVE r AS (SELECT 1 n UNION ALL SELECT n + 1 FROM r WHERE n < 500) SELECT n, n % 10, CONCAT('b', n), n / 3, '2020-01-01' + INTERVAL n DAY FROM r
INSERT INTO u WITH RECURSIVE r AS (SELECT 1 n UNION ALL SELECT n + 1 FROM r WHERE n < 900) SELECT n, n % 50, n % 7 FROM r
INSERT INTO w WITH RECURSIVE r AS (SELECT 1 n UNION ALL SELECT n + 1 FROM r WHERE n < 100) SELECT n, n % 5 FROM r
ANALYZE TABLE t, u, w
""".strip().split("\n")

STATEMENTS = """
SELECT * FROM t
SELECT * FROM t WHERE c > 1
SELECT * FROM t WHERE a = 1
SELECT * FROM t WHERE a = 1 AND c > 1
SELECT a FROM t WHERE a > 1
SELECT * FROM t WHERE id BETWEEN 5 AND 9
SELECT * FROM t WHERE id IN (1, 5, 9)
SELECT * FROM t WHERE c > 5 ORDER BY d LIMIT 3
SELECT * FROM t ORDER BY id DESC LIMIT 5
SELECT * FROM t ORDER BY c LIMIT 2, 3
SELECT COUNT(*) FROM t WHERE c > 5
SELECT a, COUNT(*), SUM(c) FROM t GROUP BY a
SELECT d, COUNT(*) FROM t GROUP BY d
SELECT d, COUNT(*) n FROM t GROUP BY d HAVING n > 1
SELECT a, COUNT(*) FROM t GROUP BY a HAVING COUNT(*) > (SELECT MAX(v) FROM u)
SELECT DISTINCT d FROM t
SELECT * FROM t JOIN u ON t.id = u.tid
SELECT * FROM t JOIN u ON t.id = u.tid WHERE u.v = 3 AND t.a = 1
SELECT * FROM t JOIN u ON t.id = u.tid WHERE u.v = 3 ORDER BY t.c LIMIT 3
SELECT * FROM t LEFT JOIN w ON t.a = w.y
SELECT * FROM w JOIN w w2 ON w.x = w2.y
SELECT * FROM w, w w2
SELECT * FROM t WHERE id IN (SELECT tid FROM u) OR a = 1
SELECT (SELECT MAX(v) FROM u) FROM t
SELECT (SELECT MAX(v) FROM u WHERE u.tid = t.id) FROM t
SELECT * FROM (SELECT a, COUNT(*) n FROM t GROUP BY a) q WHERE n > 1
SELECT * FROM (SELECT * FROM t LIMIT 5) x JOIN w ON w.x = x.a
SELECT a FROM t UNION SELECT v FROM u
SELECT a FROM t UNION ALL SELECT v FROM u ORDER BY 1
SELECT a FROM t INTERSECT SELECT v FROM u
SELECT a FROM t EXCEPT SELECT v FROM u
SELECT 1
SELECT * FROM t WHERE 1 = 0
VALUES ROW(1, 2), ROW(3, 4)
SELECT a, ROW_NUMBER() OVER (PARTITION BY a ORDER BY c) FROM t
SELECT a, SUM(c) OVER (ORDER BY c ROWS 1 PRECEDING) FROM t
SELECT a, b, SUM(c) FROM t GROUP BY a, b WITH ROLLUP
WITH RECURSIVE r AS (SELECT 1 n UNION ALL SELECT n + 1 FROM r WHERE n < 10) SELECT * FROM r
INSERT INTO w VALUES (1, 2)
INSERT INTO w SELECT id, a FROM t WHERE a > 3
REPLACE INTO u VALUES (1, 2, 3)
UPDATE t JOIN u ON t.id = u.tid SET t.c = 1 WHERE u.v = 3
DELETE t FROM t JOIN u ON t.id = u.tid WHERE u.v = 3
""".strip().split("\n")

FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "explain_keys.json")


def keys(document):
    """All keys of a document, sorted."""
    found = set()
    stack = [document]
    while stack:
        value = stack.pop()
        if isinstance(value, dict):
            found.update(value)
            stack.extend(value.values())
        elif isinstance(value, list):
            stack.extend(value)
    return sorted(found)


def explain(cursor, version, sql):
    cursor.execute(f"SET explain_json_format_version = {version}")
    cursor.execute(f"EXPLAIN FORMAT=JSON {sql}")
    return json.loads(cursor.fetchone()[0])


def main():
    host, _, port = sys.argv[1].partition(":")
    connection = pymysql.connect(host=host, port=int(port), user="sb", password="sb", autocommit=True)
    cursor = connection.cursor()
    for sql in ("DROP DATABASE IF EXISTS explain_keys", "CREATE DATABASE explain_keys", "USE explain_keys", *SETUP):
        cursor.execute(sql)
    recorded = {sql: {str(v): keys(explain(cursor, v, sql)) for v in (1, 2)} for sql in STATEMENTS}
    cursor.execute("DROP DATABASE explain_keys")
    with open(FILE, "w", encoding="utf-8") as f:
        json.dump(recorded, f, indent=1)
        f.write("\n")


if __name__ == "__main__":
    main()
