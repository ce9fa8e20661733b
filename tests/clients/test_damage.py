"""Damaged files under a server: the statement that meets the damage fails and names the place, the
table takes no more changes, everything else
goes on. Files of the server itself: a refusal to start that names file and offset, and no trace of
a panic."""
import os
import shutil
import tempfile

import pymysql
import server

PAGE = 16384
ROWS = 3000


def code_of(conn, text):
    """(error number, message) of a statement that must fail."""
    try:
        cur = conn.cursor()
        cur.execute(text)
        raise AssertionError(f"{text} gave {cur.fetchall()[:3]}")
    except pymysql.err.MySQLError as e:
        return e.args[0], e.args[1]


def flip(path, offset):
    with open(path, "r+b") as f:
        f.seek(offset)
        byte = f.read(1)
        f.seek(offset)
        f.write(bytes([byte[0] ^ 0x10]))


def make(datadir):
    """Two tables with a clean shutdown behind; gives the file of `hurt`."""
    with server.Server(datadir=datadir) as srv, srv.connect() as conn:
        cur = conn.cursor()
        cur.execute("CREATE DATABASE d")
        cur.execute("USE d")
        before = set(os.listdir(datadir))
        cur.execute("CREATE TABLE hurt (id INT PRIMARY KEY, v VARCHAR(200), KEY (v))")
        (name,) = [n for n in set(os.listdir(datadir)) - before if n.endswith(".nfd")]
        cur.execute("CREATE TABLE well (id INT PRIMARY KEY, v VARCHAR(200))")
        for table in ("hurt", "well"):
            cur.executemany(f"INSERT INTO {table} VALUES (%s, %s)", [(i, f"{i:06}" * 30) for i in range(ROWS)])
    os.remove(os.path.join(datadir, "nfold.doublewrite"))  # it would repair the pages it holds
    return os.path.join(datadir, name)


def the_rest_works(conn, n):
    cur = conn.cursor()
    cur.execute("SELECT COUNT(*) FROM d.well")
    assert cur.fetchone() == (ROWS + n,)
    cur.execute(f"INSERT INTO d.well VALUES ({ROWS + n}, 'more')")


def with_directory(test):
    def run(_):
        top = tempfile.mkdtemp(prefix="nfold-damage-")
        try:
            test(os.path.join(top, "data"))
        finally:
            shutil.rmtree(top)
    return run


@with_directory
def test_pages(datadir):
    path = make(datadir)
    pages = os.path.getsize(path) // PAGE
    # Every page but the first few: the header, the roots. All of them hold rows or index entries.
    for page in range(5, pages):
        with open(path, "rb") as f:
            f.seek(page * PAGE)
            used = any(f.read(PAGE))
        if used:
            flip(path, page * PAGE + 9000)
    with server.Server(datadir=datadir) as srv, srv.connect() as conn:
        the_rest_works(conn, 0)
        code, message = code_of(conn, "SELECT COUNT(v) FROM d.hurt IGNORE INDEX (v)")
        assert code == 1877, (code, message)
        for part in ("`d`.`hurt`", "page ", "of space ", "checksum", "at offset "):
            assert part in message, message
        page = int(message.split("page ")[1].split(" ")[0])
        assert f"offset {page * PAGE} " in message, message
        for change in ("INSERT INTO d.hurt VALUES (100000, 'x')", "DELETE FROM d.hurt WHERE id = 100000 OR id = 1",
                       "UPDATE d.hurt SET v = 'y' WHERE id = 1"):
            code, message = code_of(conn, change)
            assert code == 1877 and "hurt" in message, (code, message)
        cur = conn.cursor()
        cur.execute("CHECK TABLE d.hurt")
        rows = cur.fetchall()
        assert rows[-1][3] == "Corrupt" and any("corrupt" in r[3] for r in rows[:-1]), rows
        cur.execute("CHECK TABLE d.well")
        assert cur.fetchall()[-1][3] == "OK"
        the_rest_works(conn, 1)
        cur.execute("DROP TABLE d.hurt")
        assert srv.stop() == 0
        assert "panicked" not in srv.tail(100_000)


@with_directory
def test_files_of_a_table(datadir):
    path = make(datadir)
    whole = path + ".kept"
    shutil.copy(path, whole)
    n = 0

    def start(expected, statement="SELECT COUNT(v) FROM d.hurt IGNORE INDEX (v)"):
        nonlocal n
        with server.Server(datadir=datadir) as srv, srv.connect() as conn:
            the_rest_works(conn, n)
            n += 1
            code, message = code_of(conn, statement)
            assert code in expected, (code, message)
            assert "hurt" in message, message
            the_rest_works(conn, n)
            n += 1
            assert srv.stop() == 0
            text = srv.tail(100_000)
            assert "panicked" not in text
            assert os.path.basename(path) in text or "hurt" in text, text

    os.truncate(path, 6 * PAGE)
    start({1877})
    os.truncate(path, 100)
    start({1812, 1877})
    shutil.copy(whole, path)
    flip(path, 64)  # the header page says that it is no space
    start({1812, 1877})
    shutil.copy(whole, path)
    flip(path, 300)  # the header page is damaged: what is there can be read, and nothing can be added
    start({1877}, "INSERT INTO d.hurt VALUES (100000, 'x')")
    os.remove(path)
    start({1812})


@with_directory
def test_files_of_the_server(datadir):
    make(datadir)
    for name in ("nfold.control", "redo.0000"):
        path = os.path.join(datadir, name)
        shutil.copy(path, path + ".kept")
        os.truncate(path, 2000)
        try:
            server.Server(datadir=datadir).start()
            raise AssertionError(f"it started with {name} cut off")
        except RuntimeError as e:
            assert name in str(e) and "offset 2000" in str(e) and "panicked" not in str(e), e
        os.replace(path + ".kept", path)
    path = os.path.join(datadir, "nfold.control")
    for offset in (20, 4096 + 20):
        flip(path, offset)
    try:
        server.Server(datadir=datadir).start()
        raise AssertionError("it started without a control file")
    except RuntimeError as e:
        assert "nfold.control" in str(e) and "offset" in str(e) and "panicked" not in str(e), e
