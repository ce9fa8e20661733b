"""Queues of waiting sessions, and locks in the way."""
from work import case, nothing, one_row


def locked_rows(work):
    work.execute("CREATE TABLE t (id INT PRIMARY KEY, n INT)")
    work.rows("t", lambda n: f"({n}, {n})", work.size + 10)
    holder = work.connect()
    work.execute("BEGIN", f"SELECT COUNT(*) FROM (SELECT id FROM t WHERE id < {work.size} FOR UPDATE) d", connection=holder)


@case("skip_locked", "SKIP LOCKED behind locked rows", "a locked row", [100, 1000, 10000], locked_rows)
def skip_locked(work):
    for _ in range(10):
        work.execute("BEGIN", "SELECT id FROM t ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED", "COMMIT")
    return 10 * work.size


def table_to_lock(work):
    work.execute("CREATE TABLE t (id INT PRIMARY KEY, n INT)")
    work.rows("t", lambda n: f"({n}, {n})", work.size)


@case("locks_of_one_transaction", "a transaction that locks rows one by one", "a row", [1000, 5000, 20000], table_to_lock)
def locks_of_one_transaction(work):
    work.execute("BEGIN")
    work.execute(*(f"SELECT n FROM t WHERE id = {n} FOR UPDATE" for n in range(work.size)))
    work.execute("COMMIT")
    return work.size


def a_gap(work):
    work.execute("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (0), (1000000)")
    work.execute("BEGIN", "SELECT * FROM t WHERE id > 10 AND id < 999999 FOR UPDATE")


@case("gap_waiters", "inserts that wait for one gap", "an insert", [16, 64, 256], a_gap, scales=False)
def gap_waiters(work):
    return work.waiters(lambda cursor, n: cursor.execute(f"INSERT INTO t VALUES ({n + 100})"), lambda: work.execute("COMMIT"))


def a_locked_row(work):
    one_row(work)
    work.execute("BEGIN", "UPDATE t SET n = 5")


@case("row_waiters", "updates that wait for one row", "an update", [16, 64, 256], a_locked_row, scales=False)
def row_waiters(work):
    return work.waiters(lambda cursor, n: cursor.execute("UPDATE t SET n = n + 1 WHERE id = 1"), lambda: work.execute("COMMIT"))


@case("shared_row_waiters", "shared locks that wait for one row", "a read", [16, 64, 256], a_locked_row, scales=False)
def shared_row_waiters(work):
    return work.waiters(lambda cursor, n: cursor.execute("SELECT n FROM t WHERE id = 1 LOCK IN SHARE MODE"), lambda: work.execute("COMMIT"))


def duplicate_key(work):
    work.execute("CREATE TABLE t (id INT PRIMARY KEY, n INT)")
    work.execute("BEGIN", "INSERT INTO t VALUES (1, 0)")


@case("duplicate_waiters", "inserts that wait for the commit of a row with their key", "an insert", [16, 64, 256], duplicate_key, scales=False)
def duplicate_waiters(work):
    return work.waiters(lambda cursor, n: cursor.execute("INSERT IGNORE INTO t VALUES (1, 1)"), lambda: work.execute("COMMIT"))


def a_locked_table(work):
    one_row(work)
    work.execute("LOCK TABLES t WRITE")


@case("metadata_readers", "reads that wait half a second for a locked table", "a read", [16, 64, 256], a_locked_table, scales=False)
def metadata_readers(work):
    return work.waiters(lambda cursor, n: cursor.execute("SELECT n FROM t"), lambda: work.execute("UNLOCK TABLES"))


@case("metadata_writers", "sessions that wait half a second for a locked table, to lock it themselves", "a session", [16, 64, 256], a_locked_table,
      scales=False)
def metadata_writers(work):
    def lock_and_unlock(cursor, n):
        cursor.execute("LOCK TABLES t WRITE")
        cursor.execute("UNLOCK TABLES")
    return work.waiters(lock_and_unlock, lambda: work.execute("UNLOCK TABLES"))


def a_user_lock(work):
    work.execute("SELECT GET_LOCK('a', 10)")


@case("user_lock_waiters", "sessions that wait half a second for one GET_LOCK", "a session", [16, 64, 256], a_user_lock, scales=False)
def user_lock_waiters(work):
    def get_and_release(cursor, n):
        cursor.execute("SELECT GET_LOCK('a', 30)")
        cursor.execute("SELECT RELEASE_LOCK('a')")
    return work.waiters(get_and_release, lambda: work.execute("SELECT RELEASE_LOCK('a')"))


@case("user_locks", "user-level locks of one session", "a lock", [100, 1000, 5000], nothing)
def user_locks(work):
    units = work.measure_last(lambda n: [f"SELECT GET_LOCK('lock{n}', 0)"])
    taken = work.measured_cpu
    work.measure("SELECT RELEASE_ALL_LOCKS()")
    # The release is of all locks, and the units are the last ones.
    work.measured_cpu = taken + (work.measured_cpu - taken) * units / work.size
    return units
