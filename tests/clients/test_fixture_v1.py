"""The data directory of format v1 that is committed opens, reads and writes: what was stored years
ago is still there."""
import os
import shutil
import sys
import tarfile
import tempfile

import pymysql

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import fixture  # noqa: E402
import server  # noqa: E402

OPTIONS = {"innodb_buffer_pool_size": "16M"}


def unpack():
    datadir = tempfile.mkdtemp(prefix="nfold-fixture-")
    with tarfile.open(fixture.ARCHIVE) as tar:
        for member in tar.getmembers():
            assert member.isfile() and "/" not in member.name, member.name
            with open(os.path.join(datadir, member.name), "wb") as f:
                shutil.copyfileobj(tar.extractfile(member), f)
    return datadir


def same(conn, expected):
    for sql, got, wanted in zip(fixture.QUERIES, fixture.dump(conn), expected, strict=True):
        assert got == wanted, f"{sql}: " + "\n".join(f"{g}\n{w}" for g, w in zip(got, wanted) if g != w)[:2000]
    cur = conn.cursor()
    for table in fixture.TABLES:
        cur.execute(f"CHECK TABLE {table}")
        assert [row[3] for row in cur.fetchall()] == ["OK"], table


def write(conn):
    """Changes every table, through every kind of change."""
    cur = conn.cursor()
    cur.execute("USE v1")
    cur.execute("INSERT INTO numbers (t, d) VALUES (7, 7.5)")
    # 54 rows were there; what is above them was given out before the crash at most.
    assert cur.lastrowid > 54, cur.lastrowid
    cur.execute("DELETE FROM numbers WHERE t = 7 AND d = 7.5")
    cur.execute("UPDATE numbers SET db = db + 0, i = i + 1 WHERE id BETWEEN 5 AND 20")
    cur.execute("UPDATE numbers SET i = i - 1 WHERE id BETWEEN 5 AND 20")
    cur.execute("UPDATE strings SET lb = REPEAT('w', 70000) WHERE k = 'plain'")
    cur.execute("SELECT LENGTH(lb), LEFT(lb, 3) FROM strings WHERE k = 'plain'")
    assert cur.fetchone() == (70000, b"www")
    cur.execute("UPDATE strings SET lb = 0x04 WHERE k = 'plain'")
    cur.execute("DELETE FROM moments WHERE n = 2")
    cur.execute("INSERT INTO moments VALUES ('2024-02-29',2,'00:00:00','-00:00:00.5','2024-02-29 12:00:00','2024-02-29 12:00:00.5',"
                "'2024-02-29 12:00:00','2024-02-29 12:00:00.25')")
    cur.execute("INSERT INTO keyless VALUES (9,'nine')")
    cur.execute("DELETE FROM keyless WHERE a = 9")
    cur.execute("BEGIN")
    cur.execute("DELETE FROM many WHERE grp < 20")
    cur.execute("INSERT INTO many VALUES (1000001, 1, 'x', NULL)")
    cur.execute("ROLLBACK")
    cur.execute("ALTER TABLE many ADD INDEX note (note)")
    cur.execute("ALTER TABLE many DROP INDEX note")
    cur.execute("CREATE TABLE new (a INT PRIMARY KEY)")
    cur.execute("DROP TABLE new")
    cur.execute("UPDATE v1_latin.words SET n = 0 - n")
    cur.execute("UPDATE v1_latin.words SET n = 0 - n")


def accounts(srv):
    for user, password, both in fixture.ACCOUNTS:
        with srv.connect(user=user, password=password, database="v1") as conn:
            cur = conn.cursor()
            cur.execute("SELECT COUNT(*) FROM keyless")
            assert cur.fetchone() == (4,)
            try:
                cur.execute("SELECT COUNT(*) FROM v1_latin.words")
                assert both, user
            except pymysql.err.OperationalError as e:
                assert not both and e.args[0] in (1142, 1044), e
        try:
            srv.connect(user=user, password="wrong")
            raise AssertionError("logged in")
        except pymysql.err.OperationalError as e:
            assert e.args[0] == 1045, e


def test_fixture_opens_reads_and_writes(_):
    expected = fixture.expected()
    datadir = unpack()
    srv = server.Server(fixture.OPTIONS, datadir=datadir)
    try:
        srv.start()
        with srv.connect() as conn:
            # It listens before it has recovered.
            log = srv.tail(5000)
            assert "recovered from an unclean end" in log and "rolling back 1 unfinished transactions" in log, log
            same(conn, expected)
            accounts(srv)
            write(conn)
            same(conn, expected)
        srv.kill()
        srv.start()
        with srv.connect() as conn:
            same(conn, expected)
            write(conn)
        assert srv.stop() == 0
        srv.start()
        with srv.connect() as conn:
            same(conn, expected)
        assert srv.stop() == 0
    finally:
        if srv.process:
            srv.kill()
            srv.log.close()
        srv.remove_beside()
        shutil.rmtree(datadir, ignore_errors=True)
