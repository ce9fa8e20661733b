"""`lab bench` beside a running server: every workload runs, figures add up, what goes wrong is said
in one line."""
import json
import os
import shutil
import signal
import socket
import tempfile
import threading
import time

from lab import dsn, lab, measured, read, start

OPTIONS = {"innodb_buffer_pool_size": "64M"}
# Windows end by statements, not by time: a busy machine makes them longer, not emptier.
QUICK = ["--rows", 2000, "--count", 40, "--repeat", 1]
# What concurrent writers may meet: a deadlock, a lock wait, a row that both insert.
MAY = {"1213", "1205", "1062"}


def database(srv, name="lab"):
    with srv.connect() as c, c.cursor() as q:
        q.execute(f"CREATE DATABASE IF NOT EXISTS {name}")


def result(srv, *words, clients="1"):
    database(srv)
    with tempfile.TemporaryDirectory() as d:
        path = os.path.join(d, "r.json")
        out = lab("bench", "--dsn", dsn(srv), *QUICK, "--clients", clients, "--json", path, *words)
        return read(path), out


def test_every_workload_runs(srv):
    report, _ = result(srv, "--workloads", "all,2007:trx,in-list:prepared,keys:prepared,sysbench:prepared", "--count", 16, clients="2")
    names = {w["name"] for w in report["workloads"]}
    assert len(names) > 80, len(names)
    assert {s["workload"] for s in report["samples"]} == names
    for s in report["samples"]:
        assert s["statements"] >= 32, s  # a rollback after an error is one more
        assert set(s["errors"]) <= MAY, (s["workload"], s["errors"])
    assert not report["partial"]


def test_rows_are_what_the_shapes_promise(srv):
    report, _ = result(srv, "--workloads", "pk_point,pk_range_limit,key_point,in_list_20,in_list_duplicates,not_in_list,read_key_point_limit")
    rows = {s["workload"]: s["rows_per_statement"] for s in report["samples"]}
    assert rows["pk_point"] == 1, rows
    assert 19 <= rows["pk_range_limit"] <= 20, rows
    assert 4 <= rows["key_point"] <= 6, rows  # five rows a group on average
    assert 70 <= rows["in_list_20"] <= 110, rows  # of 100 rows 90 are not deleted
    assert 150 <= rows["in_list_duplicates"] <= 300, rows  # 50 different groups
    assert 50 <= rows["not_in_list"] <= 101, rows
    assert 4 <= rows["read_key_point_limit"] <= 5, rows


def test_figures_add_up(srv):
    report, out = result(srv, "--workloads", "key_point,key_point:prepared", "--repeat", 3, clients="1,4")
    assert report["schema"] == "nfold-lab-bench/1"
    assert len(report["samples"]) == 2 * 2 * 3 and len(report["summary"]) == 4
    for s in report["samples"]:
        assert abs(s["statements"] / s["seconds"] - s["statements_per_s"]) < 1
        assert s["p50_us"] <= s["p99_us"] <= s["p999_us"] <= s["max_us"] * 1.01
        assert s["server_us"] is not None and s["client_us"] > 0, "the server is local: its CPU is known"
        assert s["statements"] == s["clients"] * 40 and not s["errors"]
    for s in report["summary"]:
        low, high = s["statements_per_s_spread"]
        assert low <= s["statements_per_s"] <= high and s["windows"] == 3
    assert "key_point:prepared" in out
    assert report["servers"][0]["local"] and "innodb_buffer_pool_size" in report["servers"][0]["settings"]


def test_both_ways_of_the_client_do_the_same(srv):
    seen = []
    for way in ([], ["--no-io-uring"]):
        report, _ = result(srv, "--workloads", "key_point,in_list_200,pk_point:prepared", *way, clients="1,9")
        assert report["client_io"] in (("io_uring", "epoll") if not way else ("epoll",)), report["client_io"]
        seen.append([(s["workload"], s["clients"], s["statements"], s["rows_per_statement"], s["bytes_per_statement"], s["errors"])
                     for s in report["samples"]])
    assert seen[0] == seen[1] and len(seen[0]) == 6, seen


def test_json_in_place_of_the_text(srv):
    database(srv)
    words = ["--dsn", dsn(srv), *QUICK, "--workloads", "pk_point", "--clients", 1]
    with tempfile.TemporaryDirectory() as d:
        report = json.loads(lab("bench", *words, "--json", "-", cwd=d))
        assert report["schema"] == "nfold-lab-bench/1" and len(report["samples"]) == 1 and os.listdir(d) == []


def test_a_reader_that_leaves_is_no_failure(srv):
    database(srv)
    for words in (["bench", "--list"], ["dsn", "mysql://root@h/d"], ["bench", "--dsn", dsn(srv), *QUICK, "--workloads", "pk_point"]):
        read_end, write_end = os.pipe()
        os.close(read_end)
        p = start(*words, stdout=write_end)
        os.close(write_end)
        _, err = p.communicate(timeout=120)
        assert p.returncode == 0 and "panic" not in err, (words, p.returncode, err)


def test_ctrl_c_leaves_whole_windows(srv):
    database(srv)
    with tempfile.TemporaryDirectory() as d:
        path = os.path.join(d, "r.json")
        p = start("bench", "--dsn", dsn(srv), *QUICK, "--repeat", 100000, "--workloads", "key_point", "--json", path)
        end = time.monotonic() + 120
        while not os.path.exists(path):
            assert time.monotonic() < end and p.poll() is None, p.communicate()
            time.sleep(0.05)
        p.send_signal(signal.SIGINT)
        out, _ = p.communicate(timeout=60)
        assert p.returncode == 130, p.returncode
        report = read(path)
        assert report["partial"] and report["samples"] and report["summary"]
        assert "partial" in out


def test_a_broken_connection_is_made_anew(srv):
    database(srv)
    with tempfile.TemporaryDirectory() as d:
        path = os.path.join(d, "r.json")
        p = start("bench", "--dsn", dsn(srv, user="root"), "--rows", 2000, "--workloads", "key_point", "--clients", 2, "--time", 8, "--warmup", 0,
                  "--repeat", 1, "--json", path)
        killed = 0
        with srv.connect() as c, c.cursor() as q:
            q.execute("SELECT CONNECTION_ID()")
            (own,) = q.fetchone()
            end = time.monotonic() + 120
            while not killed:
                assert time.monotonic() < end and p.poll() is None, p.communicate()
                q.execute("SELECT id FROM information_schema.processlist WHERE db = 'lab' AND user = 'root'")
                ids = [i for (i,) in q.fetchall() if i != own]
                # Both of the window, not the one that loads or reads versions.
                if len(ids) == 2:
                    time.sleep(0.2)
                    for i in ids:
                        try:
                            q.execute(f"KILL {i}")
                            killed += 1
                        except Exception as e:
                            assert e.args[0] == 1094, e
        out, err = p.communicate(timeout=120)
        assert p.returncode == 0, err
        (sample,) = read(path)["samples"]
        assert len(sample["lost_at"]) == killed, (sample["lost_at"], killed)
        assert "connections-lost" in sample["marks"] and sample["statements"] > 0


def test_passwords_are_shown_nowhere(srv):
    secret = "s3cret-pässword"
    database(srv)
    with srv.connect() as c, c.cursor() as q:
        for user, plugin in (("sha", "caching_sha2_password"), ("native", "mysql_native_password")):
            q.execute(f"DROP USER IF EXISTS {user}@'%'")
            q.execute(f"CREATE USER {user}@'%' IDENTIFIED WITH {plugin} BY '{secret}'")
            q.execute(f"GRANT ALL ON *.* TO {user}@'%'")
    with tempfile.TemporaryDirectory() as d:
        for user in ("sha", "native", "sha"):  # sha: once by the RSA key, once from the cache
            path = os.path.join(d, "r.json")
            p = start("bench", "--dsn", dsn(srv, user=user), *QUICK, "--workloads", "pk_point", "--json", path, env={"NFOLD_LAB_PASSWORD": secret})
            with open(f"/proc/{p.pid}/cmdline") as f:
                assert secret not in f.read()
            out, err = p.communicate(timeout=120)
            assert p.returncode == 0, err
            with open(path) as f:
                assert secret not in out + err + f.read()
        wrong = lab("bench", "--dsn", dsn(srv, user="sha"), *QUICK, ok=False, env={"NFOLD_LAB_PASSWORD": "not " + secret})
        assert "1045" in wrong and secret not in wrong and wrong.count("\n") == 1, wrong


def test_mistakes_are_one_clear_line(srv):
    database(srv)
    where = ["--dsn", dsn(srv)]
    for words, part in [
        (["--workloads", "nothing", *where], "nothing"),
        (["--workloads", "in_list_90000:prepared", *where], "65535"),
        (["--clients", "0", *where], "--clients"),
        (["--cores", "4096", *where], "this machine has"),
        ([], "no server"),
        (["--dsn", f"mysql://root@127.0.0.1:{srv.port}"], "no database"),
        (["--dsn", f"mysql://root:secret@127.0.0.1:{srv.port}/lab"], "password"),
        (["--compare", "broken"], "NAME=DSN"),
        (["--start-floor"], "no server"),
        (["--workloads", "published:trx", *where], "published"),
        (["--publish", "--compare", "broken"], "NAME=DSN"),
        (["--dsn", "mysql://root@127.0.0.1:1/lab"], "cannot connect"),
        (["--dsn", dsn(srv, database="not_there")], "1049"),
        (["--replay", "/not/there", *where], "/not/there"),
    ]:
        said = lab("bench", *words, ok=False)
        assert part in said and said.startswith("nfold lab: ") and said.count("\n") == 1, (words, said)
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()

        def answer():
            conn, _ = s.accept()
            conn.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n" + b"x" * 100)
            conn.close()

        threading.Thread(target=answer, daemon=True).start()
        said = lab("bench", "--dsn", f"mysql://root@127.0.0.1:{s.getsockname()[1]}/lab", ok=False)
        assert "no MySQL server" in said, said


def test_a_table_of_another_size_is_not_touched(srv):
    database(srv, "other")
    with srv.connect(database="other") as c, c.cursor() as q:
        q.execute("DROP TABLE IF EXISTS items")
        q.execute("CREATE TABLE items (id INT PRIMARY KEY)")
        q.execute("INSERT INTO items VALUES (1),(2)")
    said = lab("bench", "--dsn", dsn(srv, "other"), *QUICK, ok=False)
    assert "2 rows, not of 2000" in said, said
    with srv.connect(database="other") as c, c.cursor() as q:
        q.execute("SELECT COUNT(*) FROM items")
        assert q.fetchone() == (2,)


def test_a_replay_reads_only(srv):
    result(srv, "--workloads", "pk_point")  # loads the table
    with tempfile.TemporaryDirectory() as d:
        path, out = os.path.join(d, "w.jsonl"), os.path.join(d, "r.json")
        with open(path, "w") as f:
            f.write('{"text":"SELECT id FROM items WHERE id = 1"}\n{"text":"SELECT id FROM items WHERE id BETWEEN 5 AND 7"}\n')
        lab("bench", "--dsn", dsn(srv), "--replay", path, "--clients", "1,3", "--count", 10, "--repeat", 1, "--json", out)
        for sample in read(out)["samples"]:
            assert sample["rows_per_statement"] == 2 and not sample["errors"], sample  # one row and three, in turn
        with open(path, "a") as f:
            f.write('{"text":"DELETE FROM items WHERE id = 1"}\n')
        said = lab("bench", "--dsn", dsn(srv), "--replay", path, ok=False)
        assert "w.jsonl" in said and "line 3" in said and "--allow-writes" in said and said.count("\n") == 1, said
        lab("bench", "--dsn", dsn(srv), "--replay", path, "--reads-only", "--clients", 1, "--count", 4, "--repeat", 1, "--json", out)
        assert read(out)["samples"][0]["rows_per_statement"] == 2


def test_a_long_replay_is_not_held_in_memory(srv):
    database(srv)
    with tempfile.TemporaryDirectory() as d:
        path, out = os.path.join(d, "w.jsonl"), os.path.join(d, "r.json")
        with open(path, "w") as f:
            for n in range(300):  # of a megabyte each
                f.write('{"text":"SELECT ' + str(n) + ' /* ' + "x" * (1 << 20) + ' */","db":"lab"}\n')
        size = measured("bench", "--dsn", dsn(srv, database=""), "--replay", path, "--clients", 2, "--count", 100, "--repeat", 1, "--json", out)
        (sample,) = read(out)["samples"]
        assert sample["statements"] == 200 and sample["rows_per_statement"] == 1 and not sample["errors"], sample
        assert size < 150 << 20, size


def test_the_published_table_is_one_command(srv):
    if not shutil.which("mariadbd"):
        print("SKIPPED: no mariadbd here (Debian: mariadb-server)")
        return
    with tempfile.TemporaryDirectory() as d:
        path = os.path.join(d, "r.json")
        out = lab("bench", "--publish", *QUICK, "--clients", 2, "--pool-mib", 64, "--json", path, env={"TMPDIR": d})
        report = read(path)
        assert os.listdir(d) == ["r.json"], os.listdir(d)
    lines = [[c.strip() for c in line.strip("| ").split(" | ")] for line in out.splitlines() if line.startswith("|")]
    assert lines[0] == ["workload", "clients", "Nfold us", "MariaDB us", "floor us", "Nfold / MariaDB", "Nfold / floor",
                        "queries/s: Nfold, MariaDB", "p99 ms: Nfold, MariaDB", "others' cores"], lines[0]
    names = [line[0] for line in lines[2:]]
    assert len(names) == 19 and names == [w["name"] for w in report["workloads"]], names
    rates = {(s["server"], s["workload"]): f"{s['statements_per_s']:,.0f}" for s in report["summary"]}
    for line in lines[2:]:
        assert len(line) == 10 and line[1] == "2", line
        both = [rates[server, line[0]] for server in ("nfold", "mariadb")]
        assert line[7] == ", ".join(both), (line, both)
        # The floor answers plain reads, and has nothing to say of lists, transactions and writes.
        plain = not line[0].startswith(("in_list", "oltp")) or line[0].startswith(("oltp_point_select", "oltp_read_only_auto"))
        assert (("floor", line[0]) in rates) == plain and (plain or line[4] == "-"), line
    assert {s["workload"]: s["errors"] for s in report["samples"] if set(s["errors"]) - MAY} == {}
    assert [s["name"] for s in report["servers"] if s.get("floor")] == ["floor"]


def test_two_servers_in_turn(srv):
    database(srv, "second")
    report, _ = result(srv, "--compare", "b=" + dsn(srv, "second"), "--workloads", "key_point", "--repeat", 3)
    assert [s["server"] for s in report["samples"]] == ["server", "b"] * 3


def test_a_server_of_its_own_leaves_nothing(srv):
    with tempfile.TemporaryDirectory() as d:
        path = os.path.join(d, "r.json")
        lab("bench", "--start-nfold", "--pool-mib", 64, *QUICK, "--cores", "1", "--json", path, env={"TMPDIR": d})
        report = read(path)
        assert report["samples"][0]["cores"] == 1 and report["servers"][0]["local"]
        assert os.listdir(d) == ["r.json"], os.listdir(d)
