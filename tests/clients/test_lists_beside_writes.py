"""IN lists, whose rows are encoded where they lie on their pages, beside transactions that change,
move and roll back these rows: answers of many packets and of
more bytes than are sent at once, as text and prepared. A row says itself whether it is torn, and
the sum of all rows whether they are of one snapshot."""
import random
import struct
import threading
import time
import traceback

import pymysql
import wire

OPTIONS = {"innodb_flush_log_at_trx_commit": "0", "nfold_workers": "2"}
SECONDS = 6
ROWS, GROUPS = 6000, 300
COLUMNS = "id, g, v, s, n, e"


def text_of(key, v):
    return chr(97 + (key + v) % 26) * ((key * 7 + v * 13) % 90)


def row_of(key, group, v):
    s = text_of(key, v)
    return key, group, v, s, None if v % 3 == 0 else v, s[::-1] + "z" * (v % 7)


def write(srv, rng, until, counts):
    """Moves amounts between two rows, and rows between groups."""
    cur = srv.connect(database="lists").cursor()
    while time.monotonic() < until:
        pair, amount = sorted(rng.sample(range(1, ROWS + 1), 2)), rng.randint(1, 50)
        try:
            cur.execute("BEGIN")
            for key, by in zip(pair, (-amount, amount)):
                cur.execute("SELECT v, g FROM t WHERE id = %s FOR UPDATE", (key,))
                v, group = cur.fetchone()
                group = rng.randrange(GROUPS) if rng.random() < 0.2 else group
                _, g, v, s, n, e = row_of(key, group, v + by)
                cur.execute("UPDATE t SET g = %s, v = %s, s = %s, n = %s, e = %s WHERE id = %s", (g, v, s, n, e, key))
            cur.execute("COMMIT" if rng.random() < 0.85 else "ROLLBACK")
            counts["writes"] += 1
        except pymysql.err.OperationalError:
            cur.execute("ROLLBACK")


def check(rows, groups):
    assert rows == sorted(rows, key=lambda row: (row[1], row[0])), "in the order of the key"
    assert len({row[0] for row in rows}) == len(rows), "a row twice"
    for row in rows:
        assert row[1] in groups and row == row_of(*row[:3]), row
    if len(groups) == GROUPS:
        assert (len(rows), sum(row[2] for row in rows)) == (ROWS, 0), "of several snapshots"


def some_groups(rng):
    return range(GROUPS) if rng.random() < 0.3 else rng.sample(range(GROUPS), rng.randint(2, 80))


def read_text(srv, rng, until, counts):
    cur = srv.connect(database="lists").cursor()
    while time.monotonic() < until:
        level = rng.choice(["READ COMMITTED", "REPEATABLE READ"])
        cur.execute(f"SET SESSION TRANSACTION ISOLATION LEVEL {level}")
        groups = some_groups(rng)
        cur.execute(f"SELECT {COLUMNS} FROM t WHERE g IN ({','.join(map(str, groups))})")
        check(list(cur.fetchall()), groups)
        counts["as text"] += 1


def binary_row(payload):
    """Four integers and two strings, of which the fifth may be NULL."""
    at, values, nulls = 2, [], payload[1]
    for n, kind in enumerate("iiisis"):
        if nulls >> (n + 2) & 1:
            values.append(None)
        elif kind == "i":
            values.append(struct.unpack_from("<i", payload, at)[0])
            at += 4
        else:
            length, at = wire.lenenc(payload, at)
            values.append(payload[at:at + length].decode())
            at += length
    assert at == len(payload), "bytes behind the last column"
    return tuple(values)


def read_prepared(srv, rng, until, counts):
    session = wire.Session(host="127.0.0.1", port=srv.port, user="root", database="lists")
    statement = 0
    while time.monotonic() < until:
        groups = some_groups(rng)
        sql = f"SELECT {COLUMNS} FROM t WHERE g IN ({','.join(map(str, groups))})"
        statement += 1
        session.run(wire.Command(bytes([wire.PREPARE]) + sql.encode(), sql, statement))
        packets = session.run(wire.Command(bytes([wire.EXECUTE]) + struct.pack("<IBI", statement, 0, 1), sql, statement))
        # The number of columns, these, and the packet behind them; one behind the rows.
        check([binary_row(packet) for packet in packets[1 + 6:-1] if packet[0] == 0], groups)
        counts["prepared"] += 1
        session.run(wire.Command(bytes([wire.CLOSE]) + struct.pack("<I", statement), sql, statement))
    session.close()


def test_rows_are_whole_and_of_one_snapshot(srv):
    cur = srv.connect().cursor()
    cur.execute("CREATE DATABASE lists")
    cur.execute("CREATE TABLE lists.t (id INT PRIMARY KEY, g INT NOT NULL, v INT NOT NULL, s VARCHAR(200) NOT NULL, n INT, e VARCHAR(300) NOT NULL, KEY (g)) "
                "DEFAULT CHARSET utf8mb4")
    rows = [row_of(key, key % GROUPS, 0) for key in range(1, ROWS + 1)]
    for at in range(0, ROWS, 500):
        cur.executemany("INSERT INTO lists.t VALUES (%s, %s, %s, %s, %s, %s)", rows[at:at + 500])
    counts, wrong = {"writes": 0, "as text": 0, "prepared": 0}, []
    until = time.monotonic() + SECONDS

    def loop(work, seed):
        try:
            work(srv, random.Random(seed), until, counts)
        except Exception:  # any exception is what the test looks for
            wrong.append(traceback.format_exc())

    threads = [threading.Thread(target=loop, args=(work, seed)) for seed, work in enumerate((write, write, read_text, read_text, read_prepared))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong, wrong[0]
    print(f"  {counts}")
    assert min(counts.values()) > 3, counts
