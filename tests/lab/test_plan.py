"""`lab plan`: a measured plan of a running server, as text, JSON and one HTML page."""
import json
import os
import re
import tempfile

from lab import dsn, lab


def filled(srv):
    with srv.connect() as c, c.cursor() as q:
        for sql in ("CREATE DATABASE planned", "USE planned", "CREATE TABLE one (id INT PRIMARY KEY, n INT)",
                    "CREATE TABLE many (id INT PRIMARY KEY, one_id INT, KEY (one_id))"):
            q.execute(sql)
        q.execute("INSERT INTO one VALUES " + ",".join(f"({n}, {n % 7})" for n in range(100)))
        q.execute("INSERT INTO many VALUES " + ",".join(f"({n}, {n % 100})" for n in range(5000)))
        c.commit()


def test_measured_plan(srv):
    filled(srv)
    with tempfile.TemporaryDirectory() as d:
        statement, page, result = (os.path.join(d, name) for name in ("q.sql", "plan.html", "plan.json"))
        with open(statement, "w") as f:
            f.write("SELECT COUNT(*) FROM one JOIN many ON many.one_id = one.id\nWHERE one.n <> '<3&';\n")
        text = lab("plan", "--dsn", dsn(srv, "planned"), statement, "--html", page, "--json", result)
        assert "Where the time went" in text, text
        with open(result) as f:
            report = json.load(f)
        assert report["schema"] == "nfold-lab-plan/1" and report["statement"].endswith("'<3&'"), report
        operations = report["operations"]
        assert sum(o["depth"] == 0 for o in operations) == 1 and len(operations) >= 3
        assert abs(sum(o["own_ms"] for o in operations) - report["total_ms"]) < 0.5 * report["total_ms"] + 1, report
        assert any("many" in o["operation"] and o["rows"] for o in operations)
        with open(page) as f:
            html = f.read()
        assert "&lt;3&amp;" in html and "<3&" not in html and "http" not in html
        assert len(re.findall(r'<tr id="o\d+"', html)) == len(operations)
        # The text of EXPLAIN ANALYZE that somebody has kept gives the same operations.
        with srv.connect() as c, c.cursor() as q:
            q.execute("EXPLAIN ANALYZE SELECT COUNT(*) FROM planned.one JOIN planned.many ON many.one_id = one.id")
            kept = os.path.join(d, "explain.txt")
            with open(kept, "w") as f:
                f.write(q.fetchone()[0])
        lab("plan", "--explained", kept, "--json", result)
        with open(result) as f:
            assert len(json.load(f)["operations"]) >= 3
