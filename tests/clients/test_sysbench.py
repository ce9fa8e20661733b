"""Every oltp_* script of stock sysbench, prepared and text, and the read workloads of bench/lua."""
import os
import re
import subprocess

BENCH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench", "lua")
OPTIONS = {"innodb_buffer_pool_size": "512M", "max_connections": "300"}
FIRST = "test_prepare"
SCRIPTS = ["oltp_point_select", "oltp_read_only", "oltp_read_write", "oltp_write_only", "oltp_update_index",
           "oltp_update_non_index", "oltp_insert", "oltp_delete", "select_random_points", "select_random_ranges"]


def sysbench(srv, script, *words, cwd=None, database="sbtest"):
    """Runs sysbench; its output. Errors other than deadlocks and lock waits fail."""
    command = ["sysbench", script, "--db-driver=mysql", "--mysql-host=127.0.0.1", f"--mysql-port={srv.port}", "--mysql-user=root",
               "--mysql-password=", f"--mysql-db={database}", "--mysql-ignore-errors=1213,1205,1020", *words]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=cwd, timeout=300)
    assert done.returncode == 0 and "FATAL" not in done.stdout, f"{' '.join(command)}\n{done.stdout[-2500:]}"
    return done.stdout


def events(output):
    return int(re.search(r"total number of events:\s+(\d+)", output)[1])


def test_prepare(srv):
    with srv.connect() as conn:
        conn.cursor().execute("CREATE DATABASE sbtest")
    sysbench(srv, "oltp_read_only", "--tables=4", "--table-size=10000", "prepare")
    with srv.connect(database="sbtest") as conn:
        cur = conn.cursor()
        cur.execute("SELECT COUNT(*), MIN(id), MAX(id) FROM sbtest4")
        assert cur.fetchone() == (10000, 1, 10000)


def _script(name):
    def test(srv):
        for mode in ("auto", "disable"):
            out = sysbench(srv, name, "--tables=4", "--table-size=10000", "--threads=8", f"--db-ps-mode={mode}", "--time=2", "run")
            assert events(out) > 0, out
    return test


def test_bulk_insert(srv):
    # Its tables have the names of the others', with other columns.
    with srv.connect() as conn:
        conn.cursor().execute("CREATE DATABASE bulk")
    for mode in ("auto", "disable"):
        sysbench(srv, "bulk_insert", "--threads=2", "prepare", database="bulk")
        out = sysbench(srv, "bulk_insert", "--threads=2", f"--db-ps-mode={mode}", "--time=2", "run", database="bulk")
        assert events(out) > 0, out
        sysbench(srv, "bulk_insert", "--threads=2", "cleanup", database="bulk")


for _name in SCRIPTS:
    globals()["test_" + _name] = _script(_name)


def test_read_only_256_clients(srv):
    assert events(sysbench(srv, "oltp_read_only", "--tables=4", "--table-size=10000", "--threads=256", "--time=4", "run")) > 0


def test_items(srv):
    sysbench(srv, "./in_list.lua", "--items-rows=20000", "--items-groups=4000", "prepare", cwd=BENCH)
    for script in ("in_list", "pk_point", "key_point_limit", "key_point", "key_point_no_data", "pk_range_limit"):
        for ps in ("on", "off"):
            out = sysbench(srv, f"./{script}.lua", "--items-rows=20000", "--items-groups=4000", f"--ps={ps}", "--threads=8",
                           "--time=1", "run", cwd=BENCH)
            assert events(out) > 0, out
