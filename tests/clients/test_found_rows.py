"""The counts of changed rows, for clients with and without CLIENT_FOUND_ROWS, as a MySQL 9.7 gave
them."""
from pymysql.constants import CLIENT

# Statement, rows without the flag, rows with it, and the two texts if there are any.
CHANGES = [
    ("INSERT INTO t VALUES (1, 5) ON DUPLICATE KEY UPDATE a = a", 0, 1),
    ("INSERT INTO t VALUES (1, 5) ON DUPLICATE KEY UPDATE b = 7", 2, 2),
    ("INSERT INTO t VALUES (1, 5), (2, 6), (3, 8) ON DUPLICATE KEY UPDATE a = t.a", 1, 3, "Records: 3  Duplicates: 0", "Records: 3  Duplicates: 2"),
    ("INSERT INTO t VALUES (1, 5), (2, 6), (4, 9) AS n ON DUPLICATE KEY UPDATE b = n.b", 5, 5, "Records: 3  Duplicates: 2", "Records: 3  Duplicates: 2"),
    ("INSERT INTO t VALUES (1, 5), (2, 6) AS n ON DUPLICATE KEY UPDATE b = n.b", 0, 2, "Records: 2  Duplicates: 0", "Records: 2  Duplicates: 2"),
    ("INSERT IGNORE INTO t VALUES (1, 6), (2, 5) AS n ON DUPLICATE KEY UPDATE b = n.b", 0, 2, "Records: 2  Duplicates: 2", "Records: 2  Duplicates: 2"),
    ("INSERT INTO t SELECT a, b FROM t x ON DUPLICATE KEY UPDATE b = x.b", 0, 4, "Records: 4  Duplicates: 0", "Records: 4  Duplicates: 0"),
    ("INSERT INTO t SELECT a, b FROM t x ON DUPLICATE KEY UPDATE b = x.b + 10", 8, 8, "Records: 4  Duplicates: 4", "Records: 4  Duplicates: 4"),
    ("INSERT IGNORE INTO t VALUES (1, 5), (20, 20) ON DUPLICATE KEY UPDATE b = b + 100", 3, 3, "Records: 2  Duplicates: 0", "Records: 2  Duplicates: 0"),
    ("INSERT IGNORE INTO t SELECT a, b FROM t x ON DUPLICATE KEY UPDATE b = x.b", 0, 5, "Records: 5  Duplicates: 5", "Records: 5  Duplicates: 5"),
    ("INSERT IGNORE INTO t VALUES (1, 5), (9, 99)", 1, 1, "Records: 2  Duplicates: 1", "Records: 2  Duplicates: 1"),
    ("REPLACE INTO t VALUES (1, 15), (10, 10)", 3, 3, "Records: 2  Duplicates: 1", "Records: 2  Duplicates: 1"),
    ("UPDATE t SET b = b", 0, 7, "Rows matched: 7  Changed: 0", "Rows matched: 7  Changed: 0"),
    ("UPDATE t SET b = b + 1 ORDER BY b DESC", 7, 7, "Rows matched: 7  Changed: 7", "Rows matched: 7  Changed: 7"),
    ("DELETE FROM t WHERE a > 90", 0, 0),
    ("ALTER TABLE t ADD c INT, ALGORITHM=COPY", 7, 7, "Records: 7  Duplicates: 0", "Records: 7  Duplicates: 0"),
    ("INSERT INTO t VALUES (1, 3, 3) AS n ON DUPLICATE KEY UPDATE a = n.a", 0, 1),
]


def outcomes(port, user, password):
    """What these statements answer: for each its counts and texts, in the form of CHANGES."""
    import pymysql
    found = [[statement] for statement, *_ in CHANGES]
    texts = [[] for _ in CHANGES]
    for flag in (0, CLIENT.FOUND_ROWS):
        conn = pymysql.connect(host="127.0.0.1", port=port, user=user, password=password, client_flag=flag, autocommit=True)
        cur = conn.cursor()
        for statement in ["DROP DATABASE IF EXISTS found_rows", "CREATE DATABASE found_rows", "USE found_rows", "CREATE TABLE t (a INT PRIMARY KEY, b INT, UNIQUE KEY (b))", "INSERT INTO t VALUES (1, 1), (2, 2)"]:
            cur.execute(statement)
        for n, (statement, *_) in enumerate(CHANGES):
            found[n].append(cur.execute(statement))
            text = (cur._result.message or b"").decode()[1:].split("  Warnings")[0]
            texts[n] += [text] if text else []
            cur.execute("SELECT ROW_COUNT()")
            assert cur.fetchone() == (found[n][-1],), statement
        cur.execute("DROP DATABASE found_rows")
        conn.close()
    return [(*counts, *text) for counts, text in zip(found, texts)]


def test_counts_of_changed_rows(srv):
    found = outcomes(srv.port, "root", "")
    assert found == CHANGES, [pair for pair in zip(found, CHANGES) if pair[0] != pair[1]]
