"""Many clients: on one row, and each on rows of its own."""
from work import case, one_row, under_load


@case("hot_row", "clients that update one row", "an update", [16, 256, 1000], one_row,
      scales=False, growth=1.3, fastest=True)
def hot_row(work):
    return under_load(work, ["UPDATE t SET n = n + 1 WHERE id = 1"], work.size)


@case("hot_upsert", "clients that count in one row by ON DUPLICATE KEY UPDATE", "a statement", [16, 256, 1000], one_row,
      scales=False, growth=1.3)
def hot_upsert(work):
    return under_load(work, ["INSERT INTO t VALUES (1, 1) ON DUPLICATE KEY UPDATE n = n + 1"], work.size)


@case("hot_row_locking_reads", "clients that lock one row for reading", "a read", [16, 256, 1000], one_row, scales=False)
def hot_row_locking_reads(work):
    return under_load(work, ["SELECT n FROM t WHERE id = 1 FOR UPDATE"], work.size)


def three_rows(work):
    work.execute("CREATE TABLE t (id INT PRIMARY KEY, n BIGINT)", "INSERT INTO t VALUES (1, 0), (2, 0), (3, 0)")


@case("opposed_updates", "transactions that update three rows in random order, and repeat after a deadlock", "a commit",
      [16, 64, 256], three_rows, scales=False, fastest=True)
def opposed_updates(work):
    commits = work.transactions(lambda random: [f"UPDATE t SET n = n + 1 WHERE id = {row}" for row in random.sample([1, 2, 3], 3)])
    [(total,)] = work.execute("SELECT SUM(n) FROM t")
    if total != 3 * commits:
        raise RuntimeError(f"{commits} commits of three updates, but {total} updates are there")
    return commits


def many_rows(work):
    work.execute("CREATE TABLE s (id INT PRIMARY KEY, k INT, c CHAR(120), KEY (k))")
    work.rows("s", lambda n: f"({n}, {n * 7919 % 10007}, 'text of row {n:>20}')", 10_000)


@case("many_readers", "clients that read rows by their key", "a read", [16, 128, 1000, 4000],
      many_rows, scales=False, growth=1.2, floor=True)
def many_readers(work):
    return under_load(work, [f"SELECT c FROM s WHERE id = {n * 97 % 10_000}" for n in range(1000)], work.size)


@case("many_range_readers", "clients that read, sum, sort and deduplicate ranges of 100 rows (`oltp_read_only` without BEGIN)",
      "a statement", [16, 128, 1000, 4000], many_rows, scales=False, growth=1.2, floor=True)
def many_range_readers(work):
    statements = []
    for n in range(100):
        first = n * 97 % 9_800
        between = f"BETWEEN {first} AND {first + 99}"
        statements += [f"SELECT c FROM s WHERE id = {(first + i) % 10_000}" for i in range(10)]
        statements += [f"SELECT c FROM s WHERE id {between}", f"SELECT SUM(k) FROM s WHERE id {between}",
                       f"SELECT c FROM s WHERE id {between} ORDER BY c", f"SELECT DISTINCT c FROM s WHERE id {between} ORDER BY c"]
    return under_load(work, statements, work.size)


def idle_transactions(work):
    many_rows(work)
    for _ in range(work.size):
        work.execute("BEGIN", "SELECT c FROM s WHERE id = 1", connection=work.connect())


@case("idle_transactions", "updates beside idle transactions with a snapshot, by their number", "an update", [16, 256, 2000], idle_transactions, scales=False)
def beside_idle_transactions(work):
    for n in range(500):
        work.execute(f"UPDATE s SET k = k + 1 WHERE id = {n}")
    return 500
