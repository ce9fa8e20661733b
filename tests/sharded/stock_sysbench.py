"""Scripts of sysbench, unmodified, against a database whose tables are sharded."""

import os
import re
import subprocess

SECONDS = int(os.environ.get("SYSBENCH_TIME", "3"))
SCRIPTS = ["oltp_point_select", "oltp_read_only", "select_random_points", "select_random_ranges", "oltp_update_index",
           "oltp_update_non_index", "oltp_write_only", "oltp_read_write", "oltp_delete"]
TABLES = ["sbtest1", "sbtest2"]
SIZE = ["--tables=2", "--table-size=2000", "--auto_inc=off"]
# Lock wait timeouts, because no server sees a deadlock over two shards, and deadlocks. sysbench
# begins the next transaction then, which is an error once more, because it would commit the branch
# that is rolled back: 1999 of ShardingSphere, 1180 of Spider. Spider names a transaction by its
# session, and refuses the next one of the session behind such an error (12605).
ALLOWED = "--mysql-ignore-errors=1205,1213,1999,1180,12605"


def sysbench(port, user, password, database, script, *words):
    command = ["sysbench", script, "--db-driver=mysql", "--mysql-host=127.0.0.1", f"--mysql-port={port}", f"--mysql-user={user}",
               f"--mysql-password={password}", f"--mysql-db={database}", *SIZE, *words]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
    assert not done.returncode and "FATAL" not in done.stdout, f"{' '.join(command)}\n{done.stdout[-2500:]}"
    return done.stdout


def prepare(port, user, password, database, *words):
    sysbench(port, user, password, database, "oltp_read_write", *words, "prepare")


def run(port, user, password, database, more=()):
    """Runs all scripts with statements that are prepared or text."""
    for script in (*SCRIPTS, *more):
        for mode in ("auto", "disable"):
            out = sysbench(port, user, password, database, script, "--threads=8", f"--time={SECONDS}", f"--db-ps-mode={mode}", ALLOWED, "run")
            events, ignored = (float(re.search(name + r":\s+([\d.]+)", out)[1]) for name in ("total number of events", "ignored errors"))
            assert events, out
            print(f"        {script} {'text' if mode == 'disable' else 'prepared'}: {events / SECONDS:.0f} events/s, {ignored:.0f} lock waits ended", flush=True)
