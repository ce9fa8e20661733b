"""What tests of a replica need: configure the channel, wait, compare tables with the source."""

import time


def status(cur):
    """SHOW REPLICA STATUS as a dictionary; empty without a channel."""
    cur.execute("SHOW REPLICA STATUS")
    row = cur.fetchone()
    return dict(zip([d[0] for d in cur.description], row)) if row else {}


def change(cur, port, more="SOURCE_AUTO_POSITION = 1"):
    cur.execute(f"CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = {port}, "
                f"SOURCE_USER = 'sb', SOURCE_PASSWORD = 'sb', GET_SOURCE_PUBLIC_KEY = 1, "
                f"SOURCE_CONNECT_RETRY = 1, SOURCE_RETRY_COUNT = 100, {more}")


def wait(cur, reached, timeout=60):
    """Waits until `reached(status)`; fails when the channel stops before."""
    end = time.monotonic() + timeout
    while True:
        s = status(cur)
        if reached(s):
            return s
        assert s.get("Replica_SQL_Running") == "Yes", f"{s.get('Last_SQL_Error')} {s.get('Last_IO_Error')}"
        assert time.monotonic() < end, s
        time.sleep(0.02)


def wait_stopped(cur, timeout=60):
    """Waits until the channel has stopped, and returns its status."""
    end = time.monotonic() + timeout
    while True:
        s = status(cur)
        if s["Replica_SQL_Running"] == "No":
            return s
        assert time.monotonic() < end, s
        time.sleep(0.02)


def tables(cur, schema):
    cur.execute("SELECT table_name FROM information_schema.tables WHERE table_schema = %s AND "
                "table_type = 'BASE TABLE' ORDER BY 1", (schema,))
    return [r[0] for r in cur.fetchall()]


def content(cur, schema, table):
    """The rows of a table, in an order that does not depend on the server."""
    cur.execute("SET time_zone = '+00:00'")
    cur.execute("SELECT column_name, data_type FROM information_schema.columns WHERE table_schema = %s AND "
                "table_name = %s ORDER BY ordinal_position", (schema, table))
    columns = cur.fetchall()
    shown = [f"CAST(`{n}` AS CHAR)" if t in ("json",) else f"HEX(`{n}`)" if "blob" in t or "binary" in t or t == "bit"
             else f"`{n}`" for n, t in columns]
    cur.execute(f"SELECT {', '.join(shown)} FROM `{schema}`.`{table}`")
    return columns, sorted(map(repr, cur.fetchall()))


def compare(source, replica, schema):
    """Fails unless both sides have the same tables with the same rows."""
    assert tables(source, schema) == tables(replica, schema), (tables(source, schema), tables(replica, schema))
    for table in tables(source, schema):
        left, right = content(source, schema, table), content(replica, schema, table)
        assert left[0] == right[0], (table, left[0], right[0])
        if left[1] != right[1]:
            a, b = set(left[1]), set(right[1])
            raise AssertionError(f"{schema}.{table}: only at the source {sorted(a - b)[:3]}, "
                                 f"only here {sorted(b - a)[:3]}, {len(left[1])} and {len(right[1])} rows")


def random_value(rnd, kind):
    """A value for a column of the type `kind` (DATA_TYPE of information_schema): often one at an
    edge of the type, or one that does not fit."""
    if rnd.random() < 0.15:
        return None
    if "int" in kind or kind in ("bit", "year", "float", "double", "decimal"):
        return rnd.choice([0, 1, -1, 255, 10 ** rnd.randrange(30), -(10 ** rnd.randrange(30)),
                           rnd.uniform(-1e6, 1e6), 1.5])
    if kind == "date":
        return rnd.choice(["0000-00-00", "1000-01-01", "9999-12-31", "2024-02-29"])
    if kind == "time":
        return rnd.choice(["-838:59:59", "838:59:59", "-00:00:00.5", "00:00:00", "12:34:56.789012", "-12:00:01.000001"])
    if kind in ("datetime", "timestamp"):
        return rnd.choice(["2024-02-29 23:59:59.999999", "1970-01-01 00:00:01", "2038-01-19 03:14:07",
                           "2001-09-09 01:46:40.123456", "0000-00-00 00:00:00"])
    if kind == "json":
        return rnd.choice(['{"a": [1, 2.5, {"b": null}], "c": "é"}', "[]", "3", '"x"', "18446744073709551615", "true"])
    if kind in ("enum", "set"):
        return rnd.choice(["a", "b", "", "x", "x,z", "a,i"])
    if "blob" in kind or "binary" in kind:
        return bytes(rnd.randrange(256) for _ in range(rnd.choice([0, 1, 5, 200]))) + rnd.choice([b"", b"\0\0"])
    return rnd.choice(["", "a", "ab  ", "héllo", "ü" * 5, "x" * 200])
