"""A replica that begins with a dump of mydumper: the GTIDs in its metadata are those of the rows
that it has. Debian's package is unpacked; where it cannot be fetched, the test says that it is
skipped."""

import os
import re
import subprocess
import sys
import tempfile
import threading

import replica
import server
import test_source as of_source

sys.path.insert(0, os.path.join(server.ROOT, "tests", "apps"))
import common  # noqa: E402

OPTIONS = of_source.OPTIONS


def programs():
    """The directory of mydumper and myloader and their environment; None without the package."""
    target = os.environ.get("CARGO_TARGET_DIR", os.path.join(server.ROOT, "target"))
    cache = os.path.join(target, "apps", "mydumper")
    try:
        root = common.unpack(cache, "mydumper", "libpcre3")
    except (OSError, subprocess.CalledProcessError):
        return None
    libraries = (os.path.join(root, at, "lib/x86_64-linux-gnu") for at in ("usr", "."))
    return os.path.join(root, "usr/bin"), dict(os.environ, LD_LIBRARY_PATH=os.pathsep.join(libraries))


def run(found, program, port, *words):
    command = [os.path.join(found[0], program), "--host=127.0.0.1", f"--port={port}", "--user=sb", "--password=sb", *words]
    done = subprocess.run(command, env=found[1], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and "CRITICAL" not in done.stderr, done.stderr


def write(srv, ended):
    """Commits until `ended`."""
    cur = srv.connect(database="rep").cursor()
    number = 0
    while not ended.is_set():
        number += 1
        cur.execute(f"INSERT INTO t (v) VALUES ('{number}')")
        cur.execute(f"UPDATE t SET v = 'changed' WHERE id = {number // 2}")


def test_a_dump_begins_a_replica(srv):
    found = programs()
    if found is None:
        print("skipped test_a_dump_begins_a_replica: mydumper cannot be fetched")
        return
    src = of_source.begin(srv)
    src.execute("CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(20), KEY (v))")
    src.execute("INSERT INTO t (v) VALUES ('first')")
    ended = threading.Event()
    writer = threading.Thread(target=write, args=(srv, ended), daemon=True)
    writer.start()
    with tempfile.TemporaryDirectory(prefix="nfold-dump-") as dump, server.Server({"server_id": 72}) as copy:
        run(found, "mydumper", srv.port, "--database=rep", f"--outputdir={dump}")
        with open(os.path.join(dump, "metadata")) as f:
            gtids = re.search(r"^\s*GTID:(\S+)$", f.read(), re.M)[1]
        cur = copy.connect().cursor()
        cur.execute("CREATE USER sb IDENTIFIED BY 'sb'")
        cur.execute("GRANT ALL ON *.* TO sb")
        run(found, "myloader", copy.port, "--database=rep", f"--directory={dump}")
        cur.execute(f"SET GLOBAL gtid_purged = '{gtids}'")
        replica.change(cur, srv.port, "SOURCE_AUTO_POSITION = 1")
        cur.execute("START REPLICA")
        ended.set()
        writer.join(60)
        of_source.caught_up(src, cur)
        rows = []
        for each in (src, cur):
            each.execute("SELECT * FROM rep.t ORDER BY id")
            rows.append(each.fetchall())
        assert rows[0] == rows[1] and len(rows[0]) > 1, [len(r) for r in rows]
        assert of_source.executed(src) != gtids, "no transaction came by the channel"
