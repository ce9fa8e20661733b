"""`lab report`: one file that needs nothing else; looked at in a headless Chromium, light, dark and
on paper."""
import json
import os
import re
import shutil
import struct
import subprocess
import tempfile
import zlib

from lab import lab

CLIENTS = [1, 2, 4, 8, 16, 32, 64]


def report(cores):
    """A file as `bench --json` writes it: two servers, one of which stops to scale."""
    samples = []
    for server, peak, cpu in (("nfold", 40000.0, 50.0), ("mariadb", 9000.0, 210.0)):
        for c in cores:
            for n in CLIENTS:
                rate = peak * (c or 2) * n / (n + 8) / (1 + 0.05 * (c or 0))
                for round in (1, 2, 3):
                    samples.append({
                        "server": server, "workload": "in_list_200", "clients": n, "round": round, **({"cores": c} if c else {}),
                        "seconds": 1.0, "statements": int(rate), "statements_per_s": rate * (1 + 0.02 * round), "events_per_s": rate,
                        "rows_per_statement": 900.0, "bytes_per_statement": 155000.0, "p50_us": 1e6 * n / rate, "p99_us": 4e6 * n / rate,
                        "p999_us": 9e6 * n / rate, "max_us": 1e7 * n / rate, "errors": {}, "lost_at": [], "server_us": cpu, "server_system_us": 5.0,
                        "switches": 0.5, "client_us": 8.0, "server_cores": 1.0, "client_cores": 0.2, "other_cores": 0.0, "stolen_cores": 0.0,
                        "marks": []})
    groups = {}
    for s in samples:
        groups.setdefault((s["server"], s["clients"], s.get("cores")), []).append(s)
    summary = []
    for (server, n, c), g in groups.items():
        rates = sorted(s["statements_per_s"] for s in g)
        summary.append({"server": server, "workload": "in_list_200", "clients": n, **({"cores": c} if c else {}), "windows": 3,
                        "statements_per_s": rates[1], "statements_per_s_spread": [rates[0], rates[2]], "p50_us": g[0]["p50_us"],
                        "p99_us": g[0]["p99_us"], "p999_us": g[0]["p999_us"], "server_us": g[0]["server_us"],
                        "server_us_spread": [g[0]["server_us"]] * 2, "switches": 0.5, "client_us": 8.0, "errors": 0, "marks": []})
    return {"schema": "nfold-lab-bench/1", "partial": False, "started": "2026-01-01 00:00:00 UTC", "machine": "test", "processors": 8,
            "lab_version": "0", "command": ["nfold", "lab", "bench"], "client_threads": 1, "warmup_s": 1.0, "window_s": 1.0, "repeat": 3,
            "rows": 1000, "servers": [{"name": s, "dsn": f"mysql://root@127.0.0.1/{s}", "version": "1", "local": True, "settings": {"a": "b"}}
                                      for s in ("nfold", "mariadb")],
            "workloads": [{"name": "in_list_200", "about": "IN list", "statement": "SELECT 1"}], "samples": samples, "summary": summary}


def page(directory, cores=(None,), more=()):
    source, out = os.path.join(directory, "r.json"), os.path.join(directory, "r.html")
    with open(source, "w") as f:
        json.dump(report(cores), f)
    lab("report", source, "--out", out, *more)
    return out


def pixels(path):
    """Width, height and rows of (r, g, b) of a PNG with 8 bits a channel."""
    with open(path, "rb") as f:
        data = f.read()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, packed = 8, b""
    while at < len(data):
        (size,), kind = struct.unpack(">I", data[at:at + 4]), data[at + 4:at + 8]
        body = data[at + 8:at + 8 + size]
        if kind == b"IHDR":
            width, height, depth, color = struct.unpack(">IIBB", body[:10])
            assert depth == 8 and color in (2, 6)
        packed += body if kind == b"IDAT" else b""
        at += size + 12
    step = 3 if color == 2 else 4
    raw, line, rows = zlib.decompress(packed), width * step, []
    before = bytearray(line)
    for y in range(height):
        kind, row = raw[y * (line + 1)], bytearray(raw[y * (line + 1) + 1:(y + 1) * (line + 1)])
        for i in range(line):
            a, b = row[i - step] if i >= step else 0, before[i]
            c = before[i - step] if i >= step else 0
            if kind == 1:
                row[i] = (row[i] + a) & 255
            elif kind == 2:
                row[i] = (row[i] + b) & 255
            elif kind == 3:
                row[i] = (row[i] + (a + b) // 2) & 255
            elif kind == 4:
                p = a + b - c
                best = min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]
                row[i] = (row[i] + best) & 255
        rows.append([tuple(row[i:i + 3]) for i in range(0, line, step)])
        before = row
    return width, height, rows


def look(html, picture, *flags):
    """A picture of a page as Chromium draws it: share of dark pixels, and its colours."""
    subprocess.run(["chromium", "--headless", "--disable-gpu", "--no-sandbox", "--hide-scrollbars", "--window-size=900,900", *flags,
                    f"--screenshot={picture}", f"file://{html}"], check=True, capture_output=True, timeout=120)
    _, _, rows = pixels(picture)
    flat = [p for row in rows[::3] for p in row[::3]]
    return sum(sum(p) < 240 for p in flat) / len(flat), set(flat)


def test_the_page_stands_alone(srv):
    with tempfile.TemporaryDirectory() as d:
        with open(page(d)) as f:
            text = f.read()
        assert text.count("<svg") == 3
        assert not re.search(r"(src|href)=|url\(|<script", text)
        with open(page(d, (1, 2, 4))) as f:
            text = f.read()
        assert text.count("<svg") == 4 and "contention" in text and "forecast" in text


def test_files_that_are_none(srv):
    with tempfile.TemporaryDirectory() as d:
        path = os.path.join(d, "x.json")
        for text in ("", "{}", '{"schema":"other/1"}', "\x00\xff"):
            with open(path, "w") as f:
                f.write(text)
            said = lab("report", path, "--out", os.path.join(d, "r.html"), ok=False)
            assert "x.json" in said and said.count("\n") == 1, said
        assert not os.path.exists(os.path.join(d, "r.html"))


def test_a_browser_shows_it_light_dark_and_on_paper(srv):
    assert shutil.which("chromium"), "this test needs Debian's chromium (tests/install-tools)"
    with tempfile.TemporaryDirectory() as d:
        html = page(d, (1, 2, 4), ["--png", os.path.join(d, "png")])
        light, colours = look(html, os.path.join(d, "light.png"))
        dark, dark_colours = look(html, os.path.join(d, "dark.png"), "--blink-settings=preferredColorScheme=0")
        assert light < 0.2, f"{light}: dark ink on a light page"
        assert dark > 0.6, f"{dark}: a dark page"
        assert (0x1d, 0x5f, 0xd1) in colours, "the first server's line"
        assert (0x6e, 0xa4, 0xff) in dark_colours
        pictures = sorted(os.listdir(os.path.join(d, "png")))
        assert pictures == [f"in-list-200-{k}.png" for k in ("cores", "cpu", "latency", "throughput")], pictures
        for name in pictures:
            width, height, rows = pixels(os.path.join(d, "png", name))
            assert (width, height) == (960, 510) and len({p for row in rows for p in row}) > 10, name


def printed(html):
    """Pages of text of a page as Chromium prints it."""
    pdf = html + ".pdf"
    subprocess.run(["chromium", "--headless", "--disable-gpu", "--no-sandbox", "--no-pdf-header-footer", f"--print-to-pdf={pdf}", f"file://{html}"],
                   check=True, capture_output=True, timeout=120)
    text = subprocess.run(["pdftotext", "-layout", pdf, "-"], check=True, capture_output=True, text=True).stdout
    return text.removesuffix("\f").split("\f")


def test_nothing_is_cut_on_paper(srv):
    with tempfile.TemporaryDirectory() as d:
        pages = printed(page(d, (1, 2, 4)))
        assert 2 <= len(pages) <= 4, len(pages)
        # Every column of every line, and the names of columns again on each page with lines.
        rows = [line.split() for p in pages for line in p.splitlines() if re.match(r" *(nfold|mariadb) +[124] +[0-9]", line)]
        assert len(rows) == 2 * 3 * len(CLIENTS) and all(len(row) == 15 for row in rows), rows[:3]
        for text in pages:
            assert ("p99.9" in text and "switches" in text and "notes" in text) or not re.search(r"^ *(nfold|mariadb) +[124] +[0-9]", text, re.M), text
        assert any("speed-up" in line and "R²" in line for p in pages for line in p.splitlines()), "the law's table has all its columns"


def test_a_digest_on_paper_can_be_read(srv):
    log = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "crates", "lab", "tests", "logs", "mysql-slow-extra.log")
    with tempfile.TemporaryDirectory() as d:
        html = os.path.join(d, "d.html")
        lab("digest", log, "--html", html)
        pages = printed(html)
        assert len(pages) <= 10, len(pages)
        # Patterns stand in lines, not letter by letter.
        assert re.search(r"1 +46\.5 % .* CREATE TABLE `items`", pages[0]), pages[0]
