"""The keys of EXPLAIN FORMAT=JSON are MySQL's, and the options of EXPLAIN work."""
import json
import threading

import explain_keys
import pymysql

# Keys of Nfold's own: a lookup that changes to a hash join.
OWN = {"hash_join_condition"}
# What a statement has to have if MySQL's document has it. Other keys depend on the chosen plan.
SHAPE = {
    "1": {"query_block", "union_result", "intersect_result", "except_result", "query_specifications", "message", "windowing", "insert_from",
          "having_subqueries", "select_list_subqueries", "insert", "replace", "update", "delete", "used_columns", "rows_examined_per_scan", "filtered"},
    "2": {"query", "query_plan", "query_type", "json_schema_version", "operation", "functions"},
}


def cursor_of(srv, name):
    cursor = srv.connect().cursor()
    for sql in (f"CREATE DATABASE {name}", f"USE {name}", *explain_keys.SETUP):
        cursor.execute(sql)
    return cursor


def test_keys_are_mysqls(srv):
    with open(explain_keys.FILE, encoding="utf-8") as f:
        recorded = json.load(f)
    cursor = cursor_of(srv, "explain_keys")
    wrong = []
    for version in ("1", "2"):
        known = OWN.union(*(keys[version] for keys in recorded.values()))
        for sql in explain_keys.STATEMENTS:
            ours, theirs = set(explain_keys.keys(explain_keys.explain(cursor, version, sql))), set(recorded[sql][version])
            for what, keys in (("unknown to MySQL", ours - known), ("missing", theirs & SHAPE[version] - ours)):
                if keys:
                    wrong.append(f"version {version}, {what}: {sorted(keys)} in {sql}")
    assert not wrong, "\n".join(wrong)


def test_explain_into_a_variable(srv):
    cursor = cursor_of(srv, "explain_into")
    cursor.execute("EXPLAIN FORMAT=JSON INTO @plan SELECT * FROM w WHERE x = 7")
    cursor.execute("SELECT JSON_UNQUOTE(JSON_EXTRACT(@plan, '$.query_plan.operation')), JSON_VALID(@plan)")
    assert cursor.fetchone() == ("Filter: (w.x = 7)", 1)


def test_explain_for_schema(srv):
    cursor = cursor_of(srv, "explain_schema")
    cursor.execute("USE information_schema")
    cursor.execute("EXPLAIN FORMAT=TREE FOR SCHEMA explain_schema SELECT * FROM w")
    assert cursor.fetchone()[0].startswith("-> Table scan on w ")
    cursor.execute("SELECT DATABASE()")
    assert cursor.fetchone() == ("information_schema",)


def test_note_is_the_rewritten_statement(srv):
    cursor = cursor_of(srv, "explain_note")
    cursor.execute("EXPLAIN FORMAT=TRADITIONAL SELECT x v FROM w WHERE y = 1 ORDER BY x LIMIT 2")
    cursor.execute("SHOW WARNINGS")
    text = ("/* select#1 */ select `explain_note`.`w`.`x` AS `v` from `explain_note`.`w` where (`explain_note`.`w`.`y` = 1)"
            " order by `explain_note`.`w`.`x` limit 2")
    assert cursor.fetchall() == (("Note", 1003, text),)


def test_explain_for_another_connection(srv):
    cursor = cursor_of(srv, "explain_connection")
    other = srv.connect()
    other.cursor().execute("USE explain_connection")
    number = other.thread_id()
    cursor.execute(f"EXPLAIN FOR CONNECTION {number}")
    assert cursor.description is None, "an idle connection has no plan"
    thread = threading.Thread(target=lambda: other.cursor().execute("SELECT x FROM w WHERE y = 3 AND SLEEP(0.2) = 0"))
    thread.start()
    text = None
    while thread.is_alive() and text is None:
        cursor.execute(f"EXPLAIN FORMAT=TREE FOR CONNECTION {number}")
        text = cursor.description and cursor.fetchone()[0]
    thread.join()
    assert text and "Filter: ((w.y = 3) and " in text and "-> Table scan on w " in text, text
    cursor.execute("SELECT CONNECTION_ID()")
    own = cursor.fetchone()[0]
    for connection, error in ((own, 3012), (999999999, 1094)):
        try:
            cursor.execute(f"EXPLAIN FOR CONNECTION {connection}")
        except pymysql.MySQLError as e:
            assert e.args[0] == error, e
        else:
            raise AssertionError(f"connection {connection} was explained")


def test_index_merges_and_skip_scans_in_mysqls_words(srv):
    cursor = cursor_of(srv, "explain_paths")
    cursor.execute("SET SESSION cte_max_recursion_depth = 10000")
    cursor.execute("CREATE TABLE p (id INT PRIMARY KEY, a INT, b INT, c INT NOT NULL, KEY a (a), KEY b (b), KEY cb (c, b))")
    cursor.execute("INSERT INTO p WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4000)"
                   " SELECT i, i % 700, i % 400, i % 5 FROM n")
    cursor.execute("ANALYZE TABLE p")

    def row(sql):
        cursor.execute("EXPLAIN FORMAT=TRADITIONAL " + sql)
        (found,) = cursor.fetchall()
        return found[4], found[6], found[7], found[11]
    assert row("SELECT c FROM p WHERE a = 5 OR b = 7") == ("index_merge", "a,b", "5,5", "Using union(a,b); Using where")
    assert row("SELECT c FROM p WHERE a IN (5, 6) OR b = 7") == ("index_merge", "a,b", "5,5", "Using sort_union(a,b); Using where")
    assert row("SELECT /*+ INDEX_MERGE(p) */ c FROM p WHERE a = 5 AND b = 7") == ("index_merge", "a,b", "5,5", "Using intersect(a,b); Using where")
    assert row("SELECT DISTINCT c FROM p") == ("range", "cb", "4", "Using index for group-by")
    assert row("SELECT c, MIN(b) FROM p GROUP BY c") == ("range", "cb", "9", "Using index for group-by")
    assert row("SELECT /*+ SKIP_SCAN(p cb) */ c FROM p WHERE b < 7") == ("range", "cb", "9", "Using where; Using index for skip scan")
    cursor.execute("SET optimizer_switch = 'index_merge=off,skip_scan=off'")
    assert row("SELECT c FROM p WHERE a = 5 OR b = 7")[0] == "ALL"
    cursor.execute("EXPLAIN FORMAT=TREE SELECT /*+ INDEX_MERGE(p a, b) */ id FROM p WHERE a = 5 OR b = 7")
    operations = [line.strip().split("  (")[0] for line in cursor.fetchone()[0].splitlines()]
    assert operations == ["-> Filter: ((p.a = 5) or (p.b = 7))", "-> Deduplicate rows sorted by row ID",
                          "-> Index range scan on p using a over (a = 5)", "-> Index range scan on p using b over (b = 7)"]
