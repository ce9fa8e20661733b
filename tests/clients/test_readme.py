"""The transcript on the front page, with the client that it names."""
import os
import re
import subprocess

README = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "README.md")


def transcript():
    """(arguments of the client, [(statement, the lines it prints)])"""
    with open(README, encoding="utf-8") as f:
        block = re.search(r"```text\n\$ mariadb (.*?)\n(.*?)```", f.read(), re.S)
    steps = []
    for line in block[2].splitlines():
        if line.startswith("> "):
            steps.append((line[2:], []))
        else:
            steps[-1][1].append(line)
    return block[1].split(), steps


def test_transcript(srv):
    words, steps = transcript()
    assert len(steps) >= 6
    database = []
    for sql, expected in steps:
        done = subprocess.run(["mariadb", "--no-defaults", *words, f"-P{srv.port}", *database, "-e", sql], capture_output=True, text=True, timeout=60)
        # With -e the client shows a failed statement between lines, and where it stands.
        shown = re.sub(r"^--------------$.*?^--------------$\n\n?", "", done.stdout + done.stderr, flags=re.S | re.M).replace(" at line 1", "")
        assert shown.splitlines() == expected, f"{sql}\n{shown}"
        if sql.startswith("USE "):
            database = [sql[4:].rstrip(";")]
