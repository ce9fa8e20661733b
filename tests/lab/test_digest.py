"""`lab digest` and `lab replay`, end to end: logs in, patterns and statements out, played against a
running server."""
import gzip
import json
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time

import server
from lab import dsn, lab, measured, read, start

HERE = os.path.dirname(os.path.abspath(__file__))
LOGS = os.path.join(HERE, "..", "..", "crates", "lab", "tests", "logs")


def query(srv, sql):
    with srv.connect() as c, c.cursor() as q:
        q.execute(sql)
        return q.fetchall()


def fixture(name):
    return os.path.join(LOGS, name + ".log")


def slow_log(path, statements):
    """A slow log of (text, seconds) as MySQL writes it."""
    with open(path, "w") as f:
        for text, seconds in statements:
            f.write("# Time: 2024-03-01T12:00:00.000000Z\n# User@Host: app[app] @ web [10.0.0.1]  Id:     9\n"
                    f"# Query_time: {seconds:.6f}  Lock_time: 0.000001 Rows_sent: 1  Rows_examined: 2\nSET timestamp=1709294400;\n{text};\n")


def shop(srv):
    with srv.connect() as c, c.cursor() as q:
        q.execute("DROP DATABASE IF EXISTS shop")
        q.execute("CREATE DATABASE shop")
        q.execute("CREATE TABLE shop.items (id INT PRIMARY KEY, group_id INT, title VARCHAR(20), KEY g (group_id))")
        q.execute("INSERT INTO shop.items VALUES " + ",".join(f"({i},{i % 50},'t{i}')" for i in range(500)))
        c.commit()


def work(d, lines):
    path = os.path.join(d, "w.jsonl")
    with open(path, "w") as f:
        for line in lines:
            f.write((line if isinstance(line, str) else json.dumps(line)) + "\n")
    return path


def lists(n, seed=1):
    draw = random.Random(seed)
    return [{"text": "SELECT * FROM items WHERE group_id IN (%s)" % ",".join(str(draw.randrange(60)) for _ in range(draw.randrange(1, 30))), "db": "shop"}
            for _ in range(n)]


def test_files_and_standard_input_give_the_same(srv):
    with tempfile.TemporaryDirectory() as d:
        name = os.path.join(d, "log.gz")
        with gzip.open(name, "wb") as f:
            f.write(open(fixture("mariadb-slow"), "rb").read())
        plain = lab("digest", fixture("mariadb-slow"))
        assert lab("digest", name) == plain
        with open(fixture("percona-slow")) as f:
            assert lab("digest", "-", stdin=f.read()) == lab("digest", fixture("percona-slow"))
        assert "31 statements in 22 patterns" in plain


def test_what_was_put_in_comes_out(srv):
    with tempfile.TemporaryDirectory() as d:
        log, out = os.path.join(d, "slow.log"), os.path.join(d, "r.json")
        slow_log(log, [(f"SELECT a FROM t WHERE id IN ({','.join(['7'] * n)})", n / 1000) for n in range(1, 101)] + [("SELECT b FROM u", 9)])
        lab("digest", log, "--json", out, "--html", os.path.join(d, "r.html"))
        report = read(out)
        first, second = report["patterns"]
        assert (first["count"], first["time_s"]["total"], first["pattern"]) == (1, 9, "SELECT `b` FROM `u`"), first
        t = second["time_s"]
        assert (second["count"], round(t["total"], 6), t["min"], t["max"]) == (100, 5.05, 0.001, 0.1), t
        assert abs(t["p95"] - 0.095) < 0.001 and abs(t["p99"] - 0.099) < 0.001, t
        assert (second["in_lists"]["min"], second["in_lists"]["max"], second["in_lists"]["lists"]) == (1, 100, 100)
        assert abs(second["share"] - 5.05 / 14.05) < 1e-6
        assert report["totals"]["rows_examined"] == 202 and not report["partial"]


def test_a_server_tells_what_it_counted(srv):
    shop(srv)
    with srv.connect(database="shop") as c, c.cursor() as q:
        q.execute("TRUNCATE TABLE performance_schema.events_statements_summary_by_digest")
        for i in range(17):
            q.execute(f"SELECT title FROM items WHERE group_id IN ({i},{i + 1})")
        with tempfile.TemporaryDirectory() as d:
            out = os.path.join(d, "r.json")
            lab("digest", "--dsn", dsn(srv, "shop"), "--json", out, "--by", "count", "--db", "shop")
            report = read(out)
        found = [p for p in report["patterns"] if p["pattern"] == "SELECT `title` FROM `items` WHERE `group_id` IN (...)"]
        assert len(found) == 1 and found[0]["count"] == 17, report["patterns"]
        assert found[0]["rows_sent"] == 17 * 20, found
        assert report["sources"][0]["format"] == "performance_schema"
        where = ["digest", "--dsn", dsn(srv, "shop"), "--db", "shop", "--json", "-"]
        assert json.loads(lab(*where, "--since", "2024-01-01T00:00:00Z"))["patterns"]
        for nothing in (["--since", "2199-01-01T00:00:00Z"], ["--until", "2024-01-01T00:00:00Z"]):
            assert json.loads(lab(*where, *nothing))["patterns"] == [], nothing
        q.execute("CREATE USER noone@'%'")
    message = lab("digest", "--dsn", dsn(srv, "", "noone"), ok=False)
    assert "GRANT SELECT ON performance_schema.*" in message and message.count("\n") == 1, message


def test_sums_are_those_of_pt_query_digest(srv):
    """On this server's own slow log, made by the workloads."""
    if not shutil.which("pt-query-digest"):
        print("SKIPPED: no pt-query-digest here (Debian: percona-toolkit)")
        return
    query(srv, "CREATE DATABASE IF NOT EXISTS lab")
    load = ["bench", "--dsn", dsn(srv), "--rows", 2000, "--repeat", 1, "--workloads"]
    names = "in_list_20,in_list_rows,pk_point,key_point_limit,pk_range_limit,oltp_read_only,oltp_write_only,read_key_range_limit"
    lab(*load, names, "--clients", 1, "--count", 1)
    with tempfile.TemporaryDirectory() as d:
        log = os.path.join(d, "slow.log")
        query(srv, f"SET GLOBAL slow_query_log_file='{log}', GLOBAL long_query_time=0, GLOBAL slow_query_log=1")
        try:
            lab(*load, names, "--clients", 2, "--count", 160)
        finally:
            query(srv, "SET GLOBAL slow_query_log=0, GLOBAL long_query_time=10")
        done = subprocess.run([os.path.join(HERE, "compare-digest"), log, "--lab", server.binary() + " lab"], capture_output=True, text=True)
        assert done.returncode == 0 and "all sums agree" in done.stdout, done.stdout + done.stderr
        statements = int(done.stdout.split(" statements, ")[0].split("\n")[-1])
        assert statements >= 2 * 160 * 8, done.stdout


def test_replay_runs_each_statement_once_and_answers_are_the_same(srv):
    shop(srv)
    with tempfile.TemporaryDirectory() as d:
        path, out = work(d, lists(300)), os.path.join(d, "r.json")
        sums = set()
        for more in (["--connections", 1], ["--connections", 7], ["--connections", 3, "--keep-connections"]):
            lab("replay", path, "--dsn", dsn(srv, ""), "--checksum", "--json", out, *more)
            run = read(out)["runs"][0]
            assert run["statements"] == 300 and not run["errors"], run
            assert sum(bar["count"] for bar in run["latency_us"]["histogram"]) == 300
            sums.add((run["rows"], run["checksum"]))
        assert len(sums) == 1, sums
        lab("replay", path, "--dsn", dsn(srv, ""), "--checksum", "--prepared", "--json", out, "--connections", 4)
        run = read(out)["runs"][0]
        assert run["statements"] == 300 and not run["errors"] and run["prepared"]["sent_as_text"] == 0, run
        assert {(run["rows"],)} == {(rows,) for rows, _ in sums}


def test_a_large_file_is_played_in_constant_memory(srv):
    """240 MiB of statements, in every way in which they are handed out; the largest size of the
    process stays what it is for a small file."""
    shop(srv)
    count = 2000
    with tempfile.TemporaryDirectory() as d:
        small, path, out = work(d, lists(10)), os.path.join(d, "large.jsonl"), os.path.join(d, "r.json")
        filler = "x" * (120 << 10)
        with open(path, "w") as f:
            for i in range(count):
                f.write('{"text":"SELECT id FROM items WHERE id = %d /* %s */","connection":%d,"time_us":%d}\n' % (i % 500, filler, i % 3, i))
        assert os.path.getsize(path) > 230 << 20
        ways = [["--checksum"], ["--prepared", "--checksum"], ["--keep-connections", "--rounds", 2], ["--speed", 1000], ["--dsn", dsn(srv, "shop")]]
        for way in ways:
            peak = measured("replay", path, "--dsn", dsn(srv, "shop"), "--connections", 4, "--json", out, "--quiet", *way)
            report = read(out)
            assert report["statements_in_file"] == count
            for run in report["runs"]:
                assert run["statements"] == count * (2 if "--rounds" in way else 1) and not run["errors"], run
                assert run["rows"] == run["statements"], run
            if len(report["runs"]) == 2:
                assert report["comparison"]["same"] == count, report["comparison"]
            assert peak < 128 << 20, (way, peak >> 20)
        # Standard input is read once, and played from a copy.
        with open(path) as f:
            peak = measured("replay", "-", "--dsn", dsn(srv, "shop"), "--json", out, "--quiet", stdin=f, env={"TMPDIR": d})
        assert read(out)["runs"][0]["statements"] == count and peak < 128 << 20, peak >> 20
        assert sorted(os.listdir(d)) == sorted(["large.jsonl", "r.json", os.path.basename(small)]), os.listdir(d)


def test_tls_by_ssl_mode(srv):
    shop(srv)
    ca = os.path.join(srv.datadir, "server-cert.pem")
    secret = "s3cret"
    for user in ("tls", "rsa"):
        query(srv, f"DROP USER IF EXISTS {user}@'%'")
        query(srv, f"CREATE USER {user}@'%' IDENTIFIED WITH caching_sha2_password BY '{secret}'")
        query(srv, f"GRANT ALL ON *.* TO {user}@'%'")
    with tempfile.TemporaryDirectory() as d:
        # Long and short answers, text and prepared, are the same with TLS and without; the first
        # login needs the whole password.
        path = work(d, lists(200) + [{"text": "SELECT * FROM items a, items b WHERE a.id < 200", "db": "shop"}])
        both = ["--dsn", dsn(srv, "shop", "tls") + "?ssl-mode=REQUIRED", "--dsn", dsn(srv, "shop", "rsa") + "?ssl-mode=DISABLED"]
        for more in ([], ["--prepared"]):
            out = lab("replay", path, *both, "--connections", 3, *more, env={"NFOLD_LAB_PASSWORD": secret})
            assert "SAME: 201 statements" in out and "ssl-mode=REQUIRED" in out, out
        # A statement longer than what a TLS session holds back.
        long = work(d, [{"text": "SELECT LENGTH('%s')" % ("x" * (8 << 20))}])
        said = lab("replay", long, "--dsn", dsn(srv, "shop") + "?ssl-mode=REQUIRED")
        assert " 1 statements" in said and "lost" not in said, said
        one = work(d, [{"text": "SELECT 1"}])
        for mode in ("PREFERRED", "REQUIRED", f"VERIFY_CA&ssl-ca={ca}", f"VERIFY_IDENTITY&ssl-ca={ca}"):
            assert "1 statements" in lab("replay", one, "--dsn", dsn(srv, "shop") + "?ssl-mode=" + mode), mode
        other = os.path.join(d, "other.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=other", "-keyout", os.path.join(d, "key"), "-out", other],
                       check=True, capture_output=True)
        for words, part in [
            (f"VERIFY_CA&ssl-ca={other}", "certificate"),
            ("VERIFY_CA", "needs ssl-ca"),
            ("VERIFY_CA&ssl-ca=/not/there", "/not/there"),
            ("on", "VERIFY_IDENTITY"),
        ]:
            said = lab("replay", one, "--dsn", dsn(srv, "shop") + "?ssl-mode=" + words, ok=False)
            assert part in said and said.startswith("nfold lab: ") and said.count("\n") == 1, (words, said)


def test_different_answers_are_named(srv):
    shop(srv)
    with srv.connect() as c, c.cursor() as q:
        q.execute("DROP DATABASE IF EXISTS other")
        q.execute("CREATE DATABASE other")
        q.execute("CREATE TABLE other.items LIKE shop.items")
        q.execute("INSERT INTO other.items SELECT * FROM shop.items")
        c.commit()
        with tempfile.TemporaryDirectory() as d:
            path = work(d, [{"text": "SELECT title FROM items WHERE id = %d" % i} for i in range(40)])
            both = ["--dsn", dsn(srv, "shop"), "--dsn", dsn(srv, "other")]
            assert "SAME: 40 statements" in lab("replay", path, *both)
            q.execute("UPDATE other.items SET title = 'x' WHERE id = 31")
            q.execute("DELETE FROM other.items WHERE id = 7")
            c.commit()
            done = lab("replay", path, *both, "--connections", 5, ok=None)
            assert done.returncode == 1 and "the answers of 2 statements differ" in done.stderr, done
            assert "line 8: 1 rows | 0 rows: SELECT title FROM items WHERE id = 7" in done.stdout, done.stdout
            assert "line 32: 1 rows | 1 rows" in done.stdout, done.stdout


def test_order_counts_only_when_asked(srv):
    shop(srv)
    with tempfile.TemporaryDirectory() as d:
        out = os.path.join(d, "r.json")
        sums = {}
        for order in ("ASC", "DESC"):
            path = work(d, [{"text": f"SELECT id FROM items ORDER BY id {order}"}])
            for more in ([], ["--ordered"]):
                lab("replay", path, "--dsn", dsn(srv, "shop"), "--checksum", "--json", out, *more)
                sums[order, bool(more)] = read(out)["runs"][0]["checksum"]
        assert sums["ASC", False] == sums["DESC", False] and sums["ASC", True] != sums["DESC", True], sums


def test_writes_need_leave(srv):
    shop(srv)
    with tempfile.TemporaryDirectory() as d:
        path = work(d, [{"text": "SELECT 1"}, {"text": "UPDATE items SET title = 'new' WHERE id = 1"}, "broken", {"text": "SELECT 2"}])
        where = ["--dsn", dsn(srv, "shop")]
        message = lab("replay", path, *where, ok=False)
        assert "line 2: UPDATE items" in message and "--allow-writes" in message and message.count("\n") == 1, message
        title = lambda: query(srv, "SELECT title FROM shop.items WHERE id = 1")[0][0]
        out = lab("replay", path, *where, "--reads-only")
        assert "2 statements" in out and "left out 1" in out and "skipped 1 lines" in out and title() == "t1", out
        assert "3 statements" in lab("replay", path, *where, "--allow-writes") and title() == "new"


def test_errors_are_counted_by_number(srv):
    shop(srv)
    with tempfile.TemporaryDirectory() as d:
        path, out = work(d, [{"text": "SELECT * FROM gone"}, {"text": "SELECT FROM"}, {"text": "SELECT 1"}]), os.path.join(d, "r.json")
        lab("replay", path, "--dsn", dsn(srv, "shop"), "--rounds", 5, "--json", out, "--connections", 2)
        errors = read(out)["runs"][0]["errors"]
        assert {code: e["count"] for code, e in errors.items()} == {"1146": 5, "1064": 5}, errors


def test_each_statement_has_its_database(srv):
    shop(srv)
    with srv.connect() as c, c.cursor() as q:
        q.execute("DROP DATABASE IF EXISTS bare")
        q.execute("CREATE DATABASE bare")
        q.execute("CREATE TABLE bare.items LIKE shop.items")
    with tempfile.TemporaryDirectory() as d:
        path = work(d, [{"text": "SELECT id FROM items", "db": db} for db in ("shop", "bare", "bare", "shop") * 5])
        out = os.path.join(d, "r.json")
        lab("replay", path, "--dsn", dsn(srv, ""), "--json", out, "--connections", 3)
        run = read(out)["runs"][0]
        assert run["rows"] == 10 * 500 and not run["errors"], run
        assert run["statements"] == 20 + run["use_statements"], run


def test_pace_is_kept(srv):
    with tempfile.TemporaryDirectory() as d:
        path = work(d, [{"text": "SELECT 1", "time_us": 1_700_000_000_000_000 + i * 100_000} for i in range(11)])
        out = os.path.join(d, "r.json")
        lab("replay", path, "--dsn", dsn(srv, ""), "--speed", 2, "--json", out)
        run = read(out)["runs"][0]
        # Never before its time; how late depends on the machine.
        assert run["statements"] == 11 and run["seconds"] >= 0.5 and run["pace"]["speed"] == 2, run
        path = work(d, [{"text": "SELECT 1", "time_us": 5}, {"text": "SELECT 2"}])
        assert "needs the times" in lab("replay", path, "--dsn", dsn(srv, ""), "--speed", 1, ok=False)


def interrupted(process, ready):
    """Sends SIGINT once `ready()`, and gives exit code and output."""
    deadline = time.monotonic() + 60
    while not ready():
        assert time.monotonic() < deadline and process.poll() is None, process.communicate()
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


def test_ctrl_c_gives_what_there_is(srv):
    shop(srv)
    with tempfile.TemporaryDirectory() as d:
        out = os.path.join(d, "r.json")
        path = work(d, [{"text": "SELECT 1"}, {"text": "SELECT SLEEP(0.01)"}])
        answered = lambda: int(query(srv, "SHOW GLOBAL STATUS LIKE 'Queries'")[0][1])
        before = answered()
        process = start("replay", path, "--dsn", dsn(srv, "shop"), "--seconds", 300, "--json", out)
        code, text, err = interrupted(process, lambda: answered() - before > 200)
        assert code == 130 and "PARTIAL" in text, (code, text, err)
        report = read(out)
        assert report["partial"] and report["runs"][0]["statements"] > 20, report
        # A digest that waits for more of a log.
        fifo = os.path.join(d, "fifo")
        os.mkfifo(fifo)
        process = start("digest", fifo, "--json", out)
        with open(fifo, "wb") as f:
            log = open(fixture("mysql-slow"), "rb").read()
            f.write(log * 100)  # more than is looked at for the format
            f.flush()
            process.send_signal(signal.SIGINT)
        text, err = process.communicate(timeout=60)
        assert process.returncode == 130 and read(out)["partial"], (text, err)


def test_a_server_that_goes_away_is_said(srv):
    shop(srv)
    with tempfile.TemporaryDirectory() as d:
        out = os.path.join(d, "r.json")
        path = work(d, [{"text": "SELECT SLEEP(0.02)"}])
        process = start("replay", path, "--dsn", dsn(srv, "shop"), "--seconds", 300, "--json", out)
        victims = lambda: [row[0] for row in query(srv, "SHOW PROCESSLIST") if "SLEEP" in str(row[7])]
        deadline = time.monotonic() + 60
        while not (found := victims()):
            assert time.monotonic() < deadline and process.poll() is None
        query(srv, f"KILL {found[0]}")
        # Another connection goes on with it.
        code, text, err = interrupted(process, lambda: any(victim != found[0] for victim in victims()))
        run = read(out)["runs"][0]
        assert code == 130 and len(run["lost_at_s"]) == 1 and run["connections_that_did_not_come_back"] == 0, (code, run, err)
        assert "1 connections broke" in text, text


def test_what_cannot_be_read_does_not_hide_the_rest(srv):
    with tempfile.TemporaryDirectory() as d:
        binary, short = os.path.join(d, "binary"), os.path.join(d, "short.gz")
        with open(binary, "wb") as f:
            f.write(random.Random(5).randbytes(300_000))
        with open(fixture("mysql-slow"), "rb") as whole, open(short, "wb") as f:
            f.write(gzip.compress(whole.read())[:-20])
        alone = json.loads(lab("digest", fixture("mysql-slow"), "--json", "-"))
        together = json.loads(lab("digest", binary, fixture("mysql-slow"), short, "--json", "-"))
        assert together["partial"] and not alone["partial"]
        assert together["totals"]["statements"] >= alone["totals"]["statements"] > 0
        none, log, cut = together["sources"]
        assert none["format"] == "unknown" and none["statements"] == 0 and "neither a slow log" in none["error"], none
        assert "error" not in log and log["statements"] == alone["totals"]["statements"], log
        assert "reading broke off" in cut["error"] and cut["error"].endswith("; what came before counts"), cut
        shown = lab("digest", binary, fixture("mysql-slow"))
        assert f"{binary}: neither a slow log" in shown and "PARTIAL" in shown, shown


def test_mistakes_are_one_clear_line(srv):
    with tempfile.TemporaryDirectory() as d:
        binary = os.path.join(d, "binary")
        with open(binary, "wb") as f:
            f.write(random.Random(5).randbytes(300_000))
        missing = os.path.join(d, "missing")
        w = work(d, [{"text": "SELECT 1"}])
        for words, part in [
            (["digest", missing], "cannot read"),
            (["digest", d], "is a directory"),
            (["digest", binary], "neither a slow log nor a general log"),
            (["digest", fixture("mysql-slow"), "--extract", "nope", "--out", os.path.join(d, "o")], "takes an id"),
            (["digest", fixture("mysql-slow"), "--extract", "0000", "--out", os.path.join(d, "o")], "no statement has the id 0000"),
            (["digest", fixture("mysql-slow"), missing], "cannot read"),
            (["digest", fixture("mysql-slow"), "--json", "-", "--html", "-"], "only one of"),
            (["digest", "--dsn", "mysql://root:secret@127.0.0.1"], "holds a password"),
            (["digest", "--dsn", "mysql://root@127.0.0.1:1"], "cannot connect"),
            (["replay", missing, "--dsn", dsn(srv)], "cannot read"),
            (["replay", binary, "--dsn", dsn(srv)], "has no statement of `digest --extract`"),
            (["replay", w, "--dsn", "mysql://stranger@127.0.0.1:%d/" % srv.port], "1045"),
            (["replay", w, "--dsn", dsn(srv, "not_there")], "1049"),
        ]:
            message = lab(*words, ok=False)
            assert part in message and message.count("\n") == 1, (words, message)
            assert "secret" not in message
        for command in ("digest", "replay"):
            assert "Examples:" in lab(command, "--help")
