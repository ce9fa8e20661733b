"""`lab stalls`, `beside`, `commits` and `idle`: figures add up, Ctrl-C leaves a valid result, what
cannot be is one line."""
import contextlib
import json
import os
import signal
import tempfile
import time

from lab import dsn, lab, read, start

# Connections stay: `beside` measures the thread that its reader is on, and a busy machine would
# have it moved to another.
OPTIONS = {"innodb_buffer_pool_size": "64M", "max_connections": "400", "innodb_flush_log_at_trx_commit": "0", "nfold_move_connections": "OFF"}
ROWS = ["--rows", 5000]
COMMANDS = {
    "stalls": ["stalls", *ROWS, "--clients", 2, "--limit", 600000],
    "beside": ["beside", *ROWS, "--rounds", 2],
    "commits": ["commits", *ROWS, "--clients", 4, "--warmup", 0.2, "--probe", 0.2],
    "idle": ["idle", "--connections", 200],
}


def database(srv):
    with srv.connect() as c, c.cursor() as q:
        q.execute("CREATE DATABASE IF NOT EXISTS lab")


@contextlib.contextmanager
def ran(srv, name, *words):
    database(srv)
    with tempfile.TemporaryDirectory() as d:
        path = os.path.join(d, "r.json")
        out = lab(*COMMANDS[name], "--dsn", dsn(srv), "--json", path, *words)
        report = read(path)
        assert report["schema"] == f"nfold-lab-{name}/1" and not report["partial"] and report["server"]["local"], report
        assert report["server"]["version"] in out, out
        yield report, out
        assert sorted(os.listdir(d)) == ["r.json"], os.listdir(d)


def test_stalls(srv):
    with tempfile.TemporaryDirectory() as d, ran(srv, "stalls", "--time", 1, "--dir", d) as (report, out):
        load, witness = report["load"], report["witness"]
        assert load["transactions_per_s"] > 0 and load["statements_per_s"] > 15 * load["transactions_per_s"], load
        assert 0 < witness["p50_ms"] <= witness["p99_ms"] <= witness["p999_ms"] <= witness["max_ms"] * 1.01
        assert witness["statements"] > 0 and witness["errors"] == witness["lost"] == 0
        assert report["data_bytes"] > 5000 * 180 and report["pool_bytes"] == 64 << 20
        assert report["probe"]["rounds"] > 0 and report["probe"]["directory"] == d
        assert report["counted"] == 0 and "0 stalls" in out
    with srv.connect(database="lab") as c, c.cursor() as q:
        q.execute("SHOW TABLES")
        assert [t for (t,) in q.fetchall()] == ["sbtest1"], "the witness's table is gone"


def test_every_statement_is_a_stall_where_the_limit_is_nothing(srv):
    database(srv)
    done = lab(*COMMANDS["stalls"], "--dsn", dsn(srv), "--time", 1, "--limit", 0.0001, "--json", "-", ok=None)
    assert done.returncode == 1 and "stalls of more than" in done.stderr, done.stderr
    report = json.loads(done.stdout)
    # Without a directory there is no probe, and nothing is explained.
    assert report["probe"] is None and report["counted"] == report["witness"]["statements"]
    assert {s["what"] for s in report["stalls"]} == {"read", "update"} and len(report["stalls"]) <= 1000


def test_beside(srv):
    with ran(srv, "beside", "--time", 0.3) as (report, out):
        assert len(report["rounds"]) == 2
        for one in report["rounds"]:
            assert one["alone_us"] > 0 and one["beside_us"] > 0 and one["selects_a_sleep"] > 0, one
        assert abs(report["ratio"] - report["beside_us"] / report["alone_us"]) < 1e-9
        assert f"{report['ratio']:.2f} times" in out
    with srv.connect(database="lab") as c, c.cursor() as q:
        q.execute("SELECT COUNT(*) FROM sbtest1 WHERE c LIKE '00000%'")
        assert q.fetchone()[0] > 0, "the writers wrote"
    said = lab(*COMMANDS["beside"], "--dsn", dsn(srv), "--time", 0.2, "--limit", 0.000001, ok=False)
    assert "times as much" in said.splitlines()[-1], said


def test_commits(srv):
    with tempfile.TemporaryDirectory() as d, ran(srv, "commits", "--time", 1, "--dir", d) as (report, out):
        window = report["window"]
        assert abs(window["commits"] / window["seconds"] - window["commits_per_s"]) < 1 and window["commits"] > 0
        assert not window["errors"] and window["p50_us"] <= window["p99_us"] <= window["max_us"] * 1.01
        assert len(report["probes"]) == 2 and all(p["bytes"] % 4096 == 0 and p["per_s"] > 0 for p in report["probes"])
        syncs = sum(p["per_s"] for p in report["probes"]) / 2
        assert abs(report["commits_per_disk_sync"] - window["commits_per_s"] / syncs) < 1e-6
        assert window["log_syncs_per_s"] is not None and "syncs/s of the log" in out
    with ran(srv, "commits", "--time", 0.5) as (report, out):
        assert report["probes"] == [] and report["commits_per_disk_sync"] is None and "--dir" in out


def test_idle(srv):
    with ran(srv, "idle", "--time", 0.5) as (report, out):
        assert report["connections"] == report["answered_again"] == 200
        assert report["bytes_before"] > 1 << 20 and 0 < report["bytes_each_after_login"] < 1 << 20
        assert report["threads"] > 1 and report["idle_cores"] >= 0 and "200 connections" in out


def test_ctrl_c_leaves_a_valid_result(srv):
    database(srv)
    # Once as soon as it looks for Ctrl-C, once in the middle: whenever it comes, the file is whole
    # and says so.
    for name, words in COMMANDS.items():
        for wait in (False, True):
            with tempfile.TemporaryDirectory() as d:
                path = os.path.join(d, "r.json")
                p = start(*words, "--dsn", dsn(srv), "--time", 3600, "--dir", d, "--json", path)
                with srv.connect() as c, c.cursor() as q:
                    end, seen = time.monotonic() + 120, 0
                    while seen < (3 if wait else 1):  # its connections have come
                        assert p.poll() is None and time.monotonic() < end, (name, p.communicate())
                        q.execute("SELECT COUNT(*) FROM information_schema.processlist WHERE db = 'lab'")
                        (seen,) = q.fetchone()
                p.send_signal(signal.SIGINT)
                out, err = p.communicate(timeout=120)
                assert p.returncode == 130, (name, p.returncode, out, err)
                report = read(path)
                assert report["partial"] and report["schema"] == f"nfold-lab-{name}/1" and "partial" in out, (name, out)
                assert os.listdir(d) == ["r.json"], os.listdir(d)


def test_mistakes_are_one_clear_line(srv):
    database(srv)
    here = ["--dsn", dsn(srv)]
    for name in COMMANDS:
        for words, part in [
            ([], "one server"),
            (["--dsn", "mysql://root@127.0.0.1:1/lab"], "cannot connect"),
            ([*here, "--start-nfold"], "one server"),
            ([*here, "--set", "a=b"], "started here"),
            ([*here, "--dir", "/not/there"], "no directory"),
            (["--dsn", f"mysql://stranger@127.0.0.1:{srv.port}/lab"], "1045"),
            (["--dsn", dsn(srv, database="not_there")], "1049"),
            (["--start-nfold", "--set", "x"], "NAME=VALUE"),
        ]:
            said = lab(*COMMANDS[name], *words, ok=False)
            assert part in said and said.startswith("nfold lab: ") and said.count("\n") == 1, (name, words, said)
    for words, part in [
        (["stalls", *here, "--workload", "in_list_200"], "sysbench"),
        (["stalls", *here, "--workload", "sysbench"], "not a group"),
        (["stalls", "--dsn", f"mysql://root@127.0.0.1:{srv.port}"], "no database"),
        (["idle", *here, "--connections", "900000"], "files"),
        (["idle", *here, "--connections", "1000"], "max_connections"),
        (["idle", *here, "--connections", "10", "--statement", "SELEC"], "1064"),
        (["commits", *here, *ROWS, "--clients", 1, "--time", 0.1, "--warmup", 0.1, "--least", 5], "--dir"),
    ]:
        said = lab(*words, ok=False)
        assert part in said and said.startswith("nfold lab: ") and said.count("\n") == 1, (words, said)
