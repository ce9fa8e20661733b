"""Limits of memory: a statement at its limit fails alone, the session and the others go on, and
operators that can spill do so first."""
import hashlib
import threading

import pymysql
import server

MIB = 1 << 20
LIMIT = 4 * MIB
ROWS = 60_000
EXCEEDED = 3170

SETUP = [
    "CREATE DATABASE d",
    "CREATE TABLE d.big (id INT PRIMARY KEY, n INT, s VARCHAR(100), t VARCHAR(40), KEY (n))",
    "SET cte_max_recursion_depth = 1000000",
    "INSERT INTO d.big WITH RECURSIVE r AS (SELECT 1 id UNION ALL SELECT id + 1 FROM r "
    f"WHERE id < {ROWS}) SELECT id, id * 7919 % 100003, REPEAT(SHA1(id), 2), MD5(id) FROM r",
    "CREATE TABLE d.sink (id INT PRIMARY KEY AUTO_INCREMENT, n INT, s LONGTEXT)",
    "CREATE TABLE d.wide (id INT PRIMARY KEY, s LONGTEXT)",
    f"INSERT INTO d.wide SELECT id, REPEAT(s, {8 * MIB // 80}) FROM d.big WHERE id <= 2",
    "ANALYZE TABLE d.big",
]


def listed(count, term):
    return ", ".join(term.format(i) for i in range(count))


# What cannot spill, each beyond 4 MiB: (name, statements).
EXCEEDS = [
    ("text of a statement", ["SELECT LENGTH('" + "a" * (5 * MIB) + "')"]),
    ("parse tree", ["SELECT " + "1+" * 200_000 + "1"]),
    ("columns", ["SELECT " + listed(4000, "CONCAT(id, REPEAT('x', {0}), n, s, t) AS c{0}") + " FROM d.big LIMIT 1"]),
    ("rows of VALUES", ["INSERT INTO d.sink VALUES " + listed(150_000, "(NULL, {}, 'abcdefghijk')")]),
    ("IN list of integers", ["SELECT COUNT(*) FROM d.big WHERE id IN (" + listed(100_000, "{}") + ")"]),
    ("IN list of expressions", ["SELECT COUNT(*) FROM d.big WHERE n IN (" + listed(30_000, "id + {}.5e0 + RAND()") + ")"]),
    ("OR of conditions", ["SELECT COUNT(*) FROM d.big WHERE " + " OR ".join(f"s = CONCAT(t, '{i}')" for i in range(30_000))]),
    ("CASE", ["SELECT SUM(CASE " + " ".join(f"WHEN s = CONCAT(t, '{i}') THEN {i}" for i in range(20_000)) + " END) FROM d.big"]),
    ("UNION of many", ["SELECT COUNT(*) FROM (" + " UNION ALL ".join(f"SELECT {i}, '{'x' * 20000}', id, s FROM d.big WHERE id = {i}" for i in range(240)) + ") x"]),
    ("PREPARE", ["SET @p = CONCAT('SELECT ', REPEAT('1+', 200000), '1')", "PREPARE p FROM @p"]),
    ("REPEAT", [f"SELECT LENGTH(REPEAT('a', {5 * MIB}))"]),
    ("REPLACE", [f"SET @x = REPEAT('a', {2 * MIB})", "SELECT LENGTH(REPLACE(@x, 'a', 'bcde'))"]),
    ("HEX", [f"SET @x = REPEAT('a', {2 * MIB})", "SELECT LENGTH(HEX(@x))"]),
    ("CONCAT", [f"SET @x = REPEAT('a', {MIB})", "SELECT LENGTH(CONCAT(@x, @x, @x, @x, @x))"]),
    ("UPPER", [f"SET @x = REPEAT('ä', {MIB})", "SELECT LENGTH(UPPER(CONCAT(@x, @x, @x)))"]),
    ("LPAD", [f"SELECT LENGTH(LPAD('a', {5 * MIB}, 'b'))"]),
    ("UNCOMPRESS", ["SET @x = COMPRESS(REPEAT('a', 2000000))", "SELECT LENGTH(CONCAT(UNCOMPRESS(@x), UNCOMPRESS(@x), UNCOMPRESS(@x)))"]),
    ("user variables", [f"SET @a = REPEAT('a', {MIB})", f"SET @b = REPEAT('a', {MIB})", f"SET @c = REPEAT('a', {MIB})",
                        f"SET @d = REPEAT('a', {MIB})"]),
    ("user variable that grows", ["SET @x = REPEAT('a', 1000)", "SELECT MAX(LENGTH(@x := CONCAT(@x, REPEAT('b', 1000)))) FROM d.big"]),
    ("GROUP_CONCAT", ["SET group_concat_max_len = 1000000000", "SELECT LENGTH(GROUP_CONCAT(s)) FROM d.big"]),
    ("GROUP_CONCAT in order", ["SET group_concat_max_len = 1000000000", "SELECT LENGTH(GROUP_CONCAT(s ORDER BY t)) FROM d.big"]),
    ("JSON_ARRAYAGG", ["SELECT JSON_LENGTH(JSON_ARRAYAGG(s)) FROM d.big"]),
    ("JSON_OBJECTAGG", ["SELECT JSON_LENGTH(JSON_OBJECTAGG(id, s)) FROM d.big"]),
    ("JSON text", ["SELECT JSON_LENGTH(CONCAT('[', REPEAT('1,', 400000), '1]'))"]),
    ("wide rows", ["SELECT LENGTH(s) + LENGTH(REVERSE(s)) FROM d.wide"]),
    ("wide rows sorted", ["SELECT LENGTH(s) FROM d.wide ORDER BY REVERSE(s)"]),
    ("long text into a table", [f"INSERT INTO d.sink VALUES (NULL, 1, REPEAT('a', {5 * MIB}))"]),
    ("correlated IN subquery", ["SELECT COUNT(*) FROM d.big a WHERE a.id <= 3 AND CONCAT(a.s, 'x') IN "
                                "(SELECT CONCAT(b.s, a.id) FROM d.big b "
                                "JOIN d.big c ON c.id = b.id WHERE b.id > a.id)"]),
    ("quantified subquery", ["SELECT COUNT(*) FROM d.big a WHERE a.id <= 3 AND CONCAT(a.s, 'x') <> ALL "
                             "(SELECT CONCAT(b.s, a.id) FROM d.big b WHERE b.id > a.id)"]),
    ("regular expression", ["SELECT REGEXP_LIKE('a', REPEAT('(a|b)', 200000))"]),
]

# What spills instead: the answer is that of a session without a limit.
SPILLS = [
    ("sort", "SELECT id, s FROM d.big ORDER BY t"),
    ("sort of expressions", "SELECT MD5(id), s FROM d.big ORDER BY MD5(id)"),
    ("GROUP BY", "SELECT MD5(id) m, COUNT(*), MAX(s) FROM d.big GROUP BY m ORDER BY m"),
    ("GROUP BY ROLLUP", "SELECT n, s, COUNT(*) FROM d.big GROUP BY n, s WITH ROLLUP"),
    ("DISTINCT", "SELECT COUNT(DISTINCT s), COUNT(DISTINCT t, s) FROM d.big"),
    ("SELECT DISTINCT", "SELECT DISTINCT s, MD5(t) FROM d.big ORDER BY 1"),
    ("UNION", "SELECT COUNT(*), MAX(s) FROM (SELECT s, id FROM d.big UNION SELECT t, n FROM d.big) x"),
    ("INTERSECT", "SELECT COUNT(*), MAX(s) FROM (SELECT s, id FROM d.big INTERSECT SELECT s, id FROM d.big) x"),
    ("EXCEPT", "SELECT COUNT(*), MAX(s) FROM (SELECT s, id FROM d.big EXCEPT SELECT s, id FROM d.big WHERE id < 9) x"),
    ("hash join", "SELECT COUNT(*), MAX(a.s) FROM d.big a JOIN d.big b ON a.s = b.s AND a.t = b.t"),
    ("derived table", "SELECT COUNT(*), MAX(x.s) FROM (SELECT id, s, t FROM d.big LIMIT 50000) x JOIN "
                      "(SELECT id, s, t FROM d.big LIMIT 50000) y ON x.t = y.t"),
    ("common table expression", "WITH c AS (SELECT id, s, t FROM d.big LIMIT 50000) SELECT COUNT(*), MAX(x.s) FROM c x JOIN c y ON x.t = y.t"),
    ("recursive table", "WITH RECURSIVE r AS (SELECT 1 n, REPEAT('a', 60) s UNION ALL SELECT n + 1, s FROM r WHERE n < 60000) "
                        "SELECT COUNT(*), MAX(n), MAX(s) FROM r"),
    ("window", "SELECT id, ROW_NUMBER() OVER (ORDER BY t), SUM(n) OVER (ORDER BY s) FROM d.big ORDER BY id"),
    ("window over all", "SELECT id, COUNT(*) OVER (), LAST_VALUE(s) OVER (ORDER BY t ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) "
                        "FROM d.big ORDER BY id"),
    ("correlated IN subquery", "SELECT COUNT(*) FROM d.big a WHERE a.id <= 3 AND CONCAT(a.s, 'x') IN "
                               "(SELECT CONCAT(b.s, a.id) FROM d.big b WHERE b.id > a.id)"),
    ("IN subquery", "SELECT COUNT(*) FROM d.big WHERE CONCAT(s, '') IN (SELECT CONCAT(s, '') FROM d.big WHERE id % 2 = 0)"),
    ("NOT IN subquery", "SELECT COUNT(*) FROM d.big WHERE CONCAT(s, '') NOT IN (SELECT CONCAT(s, '') FROM d.big WHERE id % 2 = 0)"),
]


def answer(conn, text):
    """The rows of a statement, or the error's number."""
    with conn.cursor() as cur:
        try:
            cur.execute(text)
            return cur.fetchall()
        except pymysql.err.MySQLError as e:
            return e.args[0]


def run(conn, *texts):
    for text in texts:
        result = answer(conn, text)
        assert not isinstance(result, int), f"{text[:80]}: error {result}"


def digest(rows):
    return rows if isinstance(rows, int) else hashlib.sha1(repr(rows).encode()).hexdigest()


def memory(conn):
    return int(answer(conn, "SHOW STATUS LIKE 'Nfold_memory_allocated'")[0][1])


def test_statements_at_their_limit(_):
    with server.Server({"innodb_buffer_pool_size": "128M"}) as srv, srv.connect() as other:
        run(other, *SETUP)
        expected = answer(other, "SELECT SUM(n), MAX(s) FROM d.big")
        failed = []
        for name, statements in EXCEEDS:
            with srv.connect() as conn:
                run(conn, f"SET nfold_statement_memory = {LIMIT}")
                before = memory(other)
                for text in statements[:-1]:
                    run(conn, text)
                got = answer(conn, statements[-1])
                if got != EXCEEDED:
                    failed.append(f"{name}: {str(got)[:60]}")
                # The session's next statement, and another session's.
                assert answer(conn, "SELECT 1 + 1") == ((2,),), name
                assert answer(conn, "SELECT SUM(n), MAX(s) FROM d.big") == expected, name
                assert answer(other, "SELECT SUM(n), MAX(s) FROM d.big") == expected, name
            grown = memory(other) - before
            if grown > 2 * LIMIT:
                failed.append(f"{name}: {grown} bytes stay allocated")
        assert answer(other, "SELECT COUNT(*) FROM d.sink") == ((0,),)
        assert not failed, failed


def test_spills_before_the_limit(_):
    with server.Server({"innodb_buffer_pool_size": "128M"}) as srv, srv.connect() as free, srv.connect() as limited:
        run(free, *SETUP, "SET tmp_table_size = 1073741824", "SET sort_buffer_size = 1073741824")
        run(limited, "SET cte_max_recursion_depth = 1000000", "SET sort_buffer_size = 1073741824", f"SET nfold_statement_memory = {LIMIT}")
        failed = [name for name, text in SPILLS if digest(answer(limited, text)) != digest(answer(free, text))]
        assert not failed, [(name, answer(limited, dict(SPILLS)[name])) for name in failed]


def test_statements_beside_those_at_their_limit(_):
    """Answers do not change while another session's statements reach their limit over and over."""
    with server.Server({"innodb_buffer_pool_size": "128M", "nfold_workers": "1"}) as srv, srv.connect() as conn:
        run(conn, *SETUP, f"SET nfold_statement_memory = {2 * LIMIT}")
        queries = [text for _, text in SPILLS[:4]]
        expected = [digest(answer(conn, text)) for text in queries]
        stop, outcomes = threading.Event(), set()

        def exceed():
            with srv.connect() as greedy:
                run(greedy, f"SET nfold_statement_memory = {LIMIT}", "SET group_concat_max_len = 1000000000")
                while not stop.is_set():
                    outcomes.add(answer(greedy, "SELECT LENGTH(GROUP_CONCAT(s)) FROM d.big"))

        threads = [threading.Thread(target=exceed) for _ in range(2)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(2):
                assert [digest(answer(conn, text)) for text in queries] == expected
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        assert outcomes == {EXCEEDED}


def test_server_at_its_limit(_):
    """A statement that grows beyond the server's limit fails. Small ones go on, and large ones when
    there is room again."""
    with server.Server({"innodb_buffer_pool_size": "128M"}) as srv, srv.connect() as conn:
        other = srv.connect()
        run(conn, *SETUP, "SET GLOBAL max_allowed_packet = 1073741824")
        big = f"SELECT LENGTH(CONCAT(REPEAT('a', {30 * MIB}), REPEAT('b', {30 * MIB})))"
        run(other, f"SET @a = REPEAT('a', {16 * MIB})")
        assert answer(conn, big) == ((60 * MIB,),)
        run(conn, f"SET GLOBAL nfold_server_memory = {memory(conn) + 40 * MIB}", "SET nfold_statement_memory = 1000000000")
        assert answer(conn, big) == EXCEEDED
        run(other, "SET nfold_statement_memory = 1000000000")
        results = [answer(other, f"SET @v{i} = REPEAT('a', {8 * MIB})") for i in range(8)]
        assert EXCEEDED in results, results
        assert answer(conn, "SELECT SUM(n) FROM d.big WHERE id < 100") == answer(other, "SELECT SUM(n) FROM d.big WHERE id < 100")
        other.close()
        run(conn, "SET GLOBAL nfold_server_memory = 0")
        assert answer(conn, big) == ((60 * MIB,),)


def test_large_plans_leave_with_their_session(_):
    """A plan too large for the cache of all sessions stays only as long as its session."""
    with server.Server() as srv:
        with srv.connect() as conn:
            run(conn, "CREATE DATABASE d", "CREATE TABLE d.t (a INT PRIMARY KEY, s VARCHAR(100), t VARCHAR(40))",
                "INSERT INTO d.t VALUES (1, 'x', 'y')")

            def on_a_new_connection(number):
                with srv.connect() as other:
                    terms = " OR ".join(f"s = CONCAT(t, '{i}', '{number}')" for i in range(3000))
                    run(other, "SELECT COUNT(*) FROM d.t WHERE " + terms)
            on_a_new_connection(0)
            before = memory(conn)
            for number in range(20):
                on_a_new_connection(number)
            grown = memory(conn) - before
            assert grown < 8 * MIB, f"{grown} bytes stay allocated"
