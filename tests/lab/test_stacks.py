"""`lab stacks` and `lab lines` on a server under load."""
import os
import shutil
import subprocess
import tempfile
import time

import server
from lab import dsn, interrupt_it, lab, read, start

OPTIONS = {"innodb_buffer_pool_size": "64M"}


def test_a_server_under_load(srv):
    with srv.connect() as c, c.cursor() as q:
        q.execute("CREATE DATABASE IF NOT EXISTS lab")
    with tempfile.TemporaryDirectory() as d:
        load = start("bench", "--dsn", dsn(srv), "--rows", 20000, "--workloads", "in_list_200", "--clients", 64, "--time", 3600, "--warmup", 0)
        try:
            with srv.connect() as c, c.cursor() as q:
                rows = 0
                while rows < 64:  # loaded, and all clients there
                    assert load.poll() is None, load.communicate()
                    q.execute("SELECT COUNT(*) FROM information_schema.processlist WHERE db = 'lab'")
                    (rows,) = q.fetchone()
            path, flame, folded = (os.path.join(d, n) for n in ("s.json", "f.svg", "f.txt"))
            out = lab("stacks", "--pid", srv.process.pid, "--by", "ptrace", "--seconds", 3, "--rate", 50, "--json", path, "--flame", flame,
                      "--folded", folded)
        finally:
            load.terminate()
            load.communicate(timeout=60)
        profile = read(path)
        assert profile["schema"] == "nfold-lab-stacks/1" and profile["by"] == "ptrace"
        running = [s for s in profile["stacks"] if s["running"]]
        assert running, out
        names = {f for s in running for f in s["frames"]}
        assert any("nfold" in n for n in names), sorted(names)[:50]
        assert any(n.startswith("nfold_exec") or n.startswith("nfold_btree") for n in names), sorted(names)[:80]
        # A statement's stack leads from the connection through the session to the executor.
        whole = [s["frames"] for s in running if any(f.startswith("nfold_exec") for f in s["frames"])]
        assert any(any("nfold_server::net::conn" in f for f in frames) for frames in whole), whole[:3]
        # Threads without work are apart from those that wait, and no thread waits for a latch.
        waiting, idle = out.split("\nwaiting: ")[1].split("\nidle: ")
        assert "latch" not in waiting and "mutex" not in waiting, out
        assert int(idle.split(" ")[0]) > 0 and "a background thread's next work" in idle, out
        kinds = {(s["running"], s["idle"]) for s in profile["stacks"]}
        assert (True, True) not in kinds and (False, True) in kinds, kinds
        with open(flame) as f:
            assert f.read().startswith("<svg")
        with open(folded) as f:
            lines = f.read().splitlines()
        assert sum(int(line.rsplit(" ", 1)[1]) for line in lines) == profile["samples"]
    with srv.connect() as c, c.cursor() as q:
        q.execute("SELECT 1")
        assert q.fetchone() == (1,)


def test_the_latch_of_the_adaptive_hash_index_has_a_name(srv):
    """The problem of 2011, alive in MariaDB: with the index on, clients of the IN list wait for its
    latch."""
    if not shutil.which("mariadbd"):
        print("SKIPPED: no mariadbd here (Debian: mariadb-server)")
        return
    with tempfile.TemporaryDirectory() as d, open(os.path.join(d, "log"), "w") as log:
        subprocess.run(["mariadb-install-db", "--no-defaults", f"--datadir={d}/data", "--user=root", "--auth-root-authentication-method=normal",
                        "--skip-test-db"], check=True, stdout=log, stderr=log)
        port = server.free_port()
        maria = subprocess.Popen(["mariadbd", "--no-defaults", f"--datadir={d}/data", f"--port={port}", "--bind-address=127.0.0.1", f"--socket={d}/s",
                                  "--user=root", "--skip-name-resolve", "--performance-schema=ON", "--innodb-adaptive-hash-index=ON"],
                                 stdout=log, stderr=log)
        load = None
        try:
            end = time.monotonic() + 120
            while subprocess.run(["mariadb", "--no-defaults", "-uroot", "-S", f"{d}/s", "-e", "CREATE DATABASE IF NOT EXISTS lab"],
                                 capture_output=True).returncode:
                assert maria.poll() is None and time.monotonic() < end, "MariaDB does not start"
                time.sleep(0.2)
            where = f"mysql://root@127.0.0.1:{port}/lab"
            load = start("bench", "--dsn", where, "--rows", 50000, "--workloads", "in_list_200", "--clients", 32, "--time", 3600, "--warmup", 0)
            clients = 0
            while clients < 32:
                assert load.poll() is None, load.communicate()
                counted = subprocess.run(["mariadb", "--no-defaults", "-uroot", "-S", f"{d}/s", "-Ne",
                                          "SELECT COUNT(*) FROM information_schema.processlist WHERE db = 'lab'"], capture_output=True, text=True)
                clients = int(counted.stdout or 0)
            path = os.path.join(d, "s.json")
            lab("stacks", "--pid", maria.pid, "--by", "ptrace", "--seconds", 5, "--dsn", where, "--instrument", "--json", path)
            waits = read(path)["contention"]
            assert waits[0] == ["wait", "count", "seconds"]
            assert waits[1][0] == "wait/synch/rwlock/innodb/btr_search_latch", waits[:4]
        finally:
            if load:
                load.terminate()
                load.communicate(timeout=60)
            maria.terminate()
            maria.wait(60)


def test_ctrl_c_leaves_a_valid_profile(srv):
    """Also of perf, where it is installed: it is ended in order, and what it has recorded counts.
    """
    with tempfile.TemporaryDirectory() as d:
        for by in ("ptrace", "auto"):
            path = os.path.join(d, f"{by}.json")
            process = start("stacks", "--pid", srv.process.pid, "--by", by, "--seconds", 3600, "--json", path, env={"TMPDIR": d})
            code, out, err = interrupt_it(process)
            assert code == 130, (code, out, err)
            profile = read(path)
            assert profile["partial"] and profile["schema"] == "nfold-lab-stacks/1", profile
            assert profile["samples"] == sum(s["count"] for s in profile["stacks"])
        assert sorted(os.listdir(d)) == ["auto.json", "ptrace.json"], os.listdir(d)


# Stands for perf on a machine with counters: records until it is told to end, and reports what a
# real one would.
PERF = """#!/bin/sh
if [ "$2" = record ]; then
  trap 'exit 130' INT
  : > "$4"
  [ -z "$FAKE_WAITS" ] || while :; do sleep 0.05; done
  exit 0
fi
cat "$FAKE_REPORT"
"""


def test_lines_where_a_machine_counts_them(srv):
    here = os.path.dirname(os.path.abspath(__file__))
    with tempfile.TemporaryDirectory() as d:
        os.makedirs(os.path.join(d, "bin"))
        fake, path = os.path.join(d, "bin", "perf"), os.path.join(d, "lines.json")
        with open(fake, "w") as f:
            f.write(PERF)
        os.chmod(fake, 0o755)
        report = os.path.join(here, "..", "..", "crates", "lab", "tests", "c2c", "perf-6.1-x86.txt")
        env = {"PATH": f"{d}/bin:{os.environ['PATH']}", "FAKE_REPORT": report, "TMPDIR": d}
        words = ("lines", "--pid", srv.process.pid, "--seconds", 1, "--json", path)
        out = lab(*words, env=env)
        assert "btr_search_guess_on_hash" in out and "partial" not in out, out
        assert len(read(path)["lines"]) == 2 and not read(path)["partial"]
        code, out, err = interrupt_it(start(*words, env={**env, "FAKE_WAITS": "1"}))
        assert code == 130 and "partial" in out and read(path)["partial"], (code, out, err)
        assert sorted(os.listdir(d)) == ["bin", "lines.json"], os.listdir(d)


def test_who_is_not_there(srv):
    for command in ("stacks", "lines"):
        said = lab(command, "--pid", 2 ** 22 + 1, ok=False)
        assert "no process" in said and said.count("\n") == 1, said


def test_lines_or_a_clear_refusal(srv):
    done = lab("lines", "--pid", srv.process.pid, "--seconds", 1, ok=None)
    if done.returncode == 0:
        assert "cache line" in done.stdout.lower(), done.stdout
    else:
        assert done.stderr.count("\n") == 1 and "perf" in done.stderr, done.stderr
    without = lab("lines", "--pid", srv.process.pid, ok=False, env={"PATH": "/nonexistent"})
    assert "needs perf" in without and without.count("\n") == 1, without
