"""Long and numerous statements, tables and sessions."""
from work import case, nothing, small_table


@case("nested_scalar", "nested scalar subqueries", "a level", [6, 12, 24], small_table, scales=False)
def nested_scalar(work):
    text = "(SELECT MAX(a) FROM t)"
    for _ in range(work.size):
        text = f"(SELECT {text} + 1)"
    for n in range(20):
        work.execute(f"SELECT {text}, {n} AS c{n}")
    return 20 * work.size


@case("ored_ranges", "ORed ranges on a key", "a range", [250, 1000, 4000], small_table)
def ored_ranges(work):
    ranges = " OR ".join(f"(a > {n * 10} AND a < {n * 10 + 5})" for n in range(work.size))
    work.execute(f"EXPLAIN SELECT * FROM t WHERE {ranges}")
    return work.size


@case("long_list", "an IN list", "a member", [1000, 10000, 90000], small_table)
def long_list(work):
    members = ",".join(str(n * 7) for n in range(work.size))
    work.execute(f"SELECT COUNT(b) FROM t WHERE a IN ({members})")
    return work.size


@case("list_of_expressions", "an IN list of expressions", "a member", [1000, 8000, 30000], small_table)
def list_of_expressions(work):
    members = ",".join(f"{n}+1" for n in range(work.size))
    work.execute(f"SELECT COUNT(b) FROM t WHERE a IN ({members})")
    return work.size


@case("union_branches", "a UNION ALL of many SELECTs", "a branch", [10, 50, 250], small_table, scales=False)
def union_branches(work):
    for n in range(10):
        work.execute(" UNION ALL ".join(f"(SELECT a FROM t WHERE id = {n + 10 * i})" for i in range(work.size)))
    return 10 * work.size


@case("case_branches", "a CASE of many WHENs over 5,000 rows", "a branch", [10, 50, 250], small_table, scales=False)
def case_branches(work):
    whens = " ".join(f"WHEN {5000 + n} THEN {n}" for n in range(work.size))
    work.execute(f"SELECT SUM(CASE a {whens} ELSE 0 END) FROM t")
    return work.size


@case("joined_tables", "a join of many tables by their keys", "a table", [4, 12, 24], small_table, scales=False)
def joined_tables(work):
    joins = " ".join(f"JOIN t t{n} ON t{n}.id = t{n - 1}.id" for n in range(1, work.size))
    for n in range(10):
        work.execute(f"SELECT COUNT(*) FROM t t0 {joins} WHERE t0.id = {n}")
    return 10 * work.size


@case("group_concat", "GROUP_CONCAT over many rows", "a row", [100, 1000, 5000], small_table)
def group_concat(work):
    work.execute("SET group_concat_max_len = 100000000")
    for _ in range(10):
        work.execute(f"SELECT LENGTH(GROUP_CONCAT(a ORDER BY b)) FROM t WHERE id < {work.size}")
    return 10 * work.size


@case("recursion", "a recursive common table expression", "a level", [100, 1000, 10000], nothing)
def recursion(work):
    depth = "max_recursive_iterations" if work.server.name == "MariaDB" else "cte_max_recursion_depth"
    work.execute(f"SET {depth} = 100000000",
                 f"WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < {work.size}) SELECT SUM(n) FROM r")
    return work.size


@case("temporary_tables", "CREATE TEMPORARY TABLE ... SELECT, a join with it, DROP",
      "a table of 200 rows", [10, 50, 200], small_table, compared=True)
def temporary_tables(work):
    for _ in range(work.size):
        work.execute("CREATE TEMPORARY TABLE d SELECT id, a FROM t WHERE id < 200", "SELECT COUNT(*) FROM d JOIN t ON t.id = d.a",
                     "DROP TEMPORARY TABLE d")
    return work.size


@case("open_temporary_tables", "temporary tables of one session that stay", "a table", [10, 50, 200], small_table)
def open_temporary_tables(work):
    for n in range(work.size):
        work.execute(f"CREATE TEMPORARY TABLE d{n} (id INT PRIMARY KEY, a INT)", f"INSERT INTO d{n} VALUES (1, 2)", f"SELECT a FROM d{n} WHERE id = 1")
    return work.size


def many_tables(work):
    for n in range(work.size):
        work.execute(f"CREATE TABLE m{n} (id INT PRIMARY KEY, a INT)")


@case("tables", "reads of one row of each of many tables", "a read", [20, 100, 400], many_tables)
def tables(work):
    work.measure(*[f"SELECT a FROM m{n} WHERE id = 1" for n in range(work.size)] * 3)
    return 3 * work.size


def columns(work):
    work.execute(f"CREATE TABLE w (id INT PRIMARY KEY, {', '.join(f'c{n} INT' for n in range(work.size))})")
    work.rows("w", lambda n: f"({n}, " + ", ".join(["1"] * work.size) + ")", 200)


@case("wide_rows", "rows of many columns", "a value", [10, 50, 250], columns, scales=False)
def wide_rows(work):
    for n in range(5):
        work.execute(f"SELECT * FROM w WHERE id >= {n}")
    return 5 * 200 * work.size


def secondary_indexes(work):
    keys = ", ".join(f"KEY k{n} (a, b, id)" if n % 2 else f"KEY k{n} (b, a)" for n in range(work.size))
    work.execute(f"CREATE TABLE x (id INT PRIMARY KEY, a INT, b INT, {keys})")


@case("secondary_indexes", "inserts into a table of many indexes", "an entry", [4, 16, 60], secondary_indexes, scales=False)
def inserts_with_indexes(work):
    work.rows("x", lambda n: f"({n}, {n * 7919 % 65537}, {n % 89})", 2000)
    return 2000 * work.size


@case("prepared_statements", "statements that stay prepared in one session", "a statement", [1000, 5000, 20000], small_table)
def prepared_statements(work):
    for n in range(work.size):
        work.execute(f"PREPARE s{n} FROM 'SELECT a FROM t WHERE id = ?'")
    work.execute("SET @i = 5", *[f"EXECUTE s{n} USING @i" for n in range(0, work.size, 10)])
    return work.size


@case("user_variables", "user variables of one session", "a variable", [1000, 5000, 20000], nothing)
def user_variables(work):
    return work.measure_last(lambda n: [f"SET @v{n} = {n}"] + [f"SELECT @v{n - 9}"] * (n % 10 == 9))


@case("deep_offset", "LIMIT with a deep offset", "a row skipped", [1000, 10000, 50000], nothing)
def deep_offset(work):
    work.execute("CREATE TABLE o (id INT PRIMARY KEY, a INT)")
    work.rows("o", lambda n: f"({n}, {n})", work.size + 10)
    work.measure(*[f"SELECT * FROM o ORDER BY id LIMIT {work.size}, 5"] * 10)
    return 10 * work.size


@case("rows_of_one_insert", "one INSERT of many rows", "a row", [100, 1000, 20000], nothing)
def rows_of_one_insert(work):
    work.execute("CREATE TABLE i (id INT PRIMARY KEY, a INT, KEY (a))")
    work.measure("INSERT INTO i VALUES " + ",".join(f"({n}, {n * 7919 % 65537})" for n in range(work.size)))
    return work.size


@case("connects", "connections opened and closed beside many open ones", "a connection", [16, 256, 2000], nothing, scales=False)
def connects(work):
    for _ in range(work.size):
        work.connect()
    before = work.server.cpu()
    for _ in range(100):
        work.server.connect().close()
    work.measured_cpu = work.server.cpu() - before
    return 100
