"""The optimizer trace: the statements that have one, and the accounts that may see it."""
import json


def trace(cursor):
    cursor.execute("SELECT QUERY, TRACE, INSUFFICIENT_PRIVILEGES FROM information_schema.OPTIMIZER_TRACE")
    return cursor.fetchall()


def steps(cursor, name):
    """The steps `name` of all blocks of the newest trace."""
    (_, text, _), = trace(cursor)
    return [step[name] for step in json.loads(text)["steps"] if name in step]


def prepared(srv, name):
    cursor = srv.connect().cursor()
    for sql in (f"CREATE DATABASE {name}", f"USE {name}", "CREATE TABLE t (a INT PRIMARY KEY, b INT, KEY (b))",
                "INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)"):
        cursor.execute(sql)
    return cursor


def test_trace_shows_estimates_and_orders(srv):
    cursor = prepared(srv, "traced")
    cursor.execute("ANALYZE TABLE t")
    cursor.execute("SET optimizer_trace = 'enabled=on'")
    # The plan is in the cache of plans: it is made anew each time.
    for _ in range(3):
        cursor.execute("SELECT t.a FROM t JOIN t AS u ON t.b = u.a WHERE EXISTS (SELECT 1 FROM t v, t w WHERE v.b = u.b AND w.b = v.a)")
        blocks = steps(cursor, "join_optimization")
        assert [block["select#"] for block in blocks] == list(range(1, len(blocks) + 1))
        outer = {name: value for step in blocks[0]["steps"] for name, value in step.items()}
        tables = outer["rows_estimation"]
        assert tables[0]["table"] == "`t`" and tables[0]["table_rows"] == 3, tables
        plans = outer["considered_execution_plans"]
        assert any(plan["plan_prefix"] for plan in plans) and all(plan["cost_for_plan"] >= 0 for plan in plans)
        chosen = [plan["table"] for plan in outer["refine_plan"]]
        assert sorted(chosen) == sorted(table["table"] for table in tables)
    # One table, and a prepared statement.
    cursor.execute("PREPARE p FROM 'SELECT b FROM t WHERE a = ?'")
    cursor.execute("SET @a = 2")
    cursor.execute("EXECUTE p USING @a")
    assert "refine_plan" in trace(cursor)[0][1]
    cursor.execute("SET optimizer_trace = 'enabled=off'")
    before = trace(cursor)
    cursor.execute("SELECT b FROM t WHERE a = 1")
    assert trace(cursor) == before


def test_views_of_others_hide_the_trace(srv):
    cursor = prepared(srv, "hidden")
    for sql in ("CREATE VIEW v AS SELECT a FROM t WHERE b > 1", "CREATE USER reader", "GRANT SELECT ON hidden.v TO reader",
                "CREATE USER shown", "GRANT SELECT, SHOW VIEW ON hidden.* TO shown"):
        cursor.execute(sql)
    for user, hidden in (("reader", True), ("shown", False)):
        with srv.connect(user=user, database="hidden") as c:
            own = c.cursor()
            own.execute("SET optimizer_trace = 'enabled=on'")
            own.execute("SELECT a FROM v")
            (query, text, insufficient), = trace(own)
            assert (query == "", text == "", insufficient) == (hidden, hidden, int(hidden)), (user, query)
