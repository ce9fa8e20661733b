"""XA transactions that were prepared on the source before the position at which a replica begins:
`nfold follow` waits for their end, and a channel that meets the end names the cause. The sources
are Nfold, a MariaDB where one is installed, and a MySQL that NFOLD_REPLICATION_SOURCE names."""

import threading
import time

import pymysql

import mariadb
import replica
import server
import test_mariadb as of_mariadb
import test_mysql as of_mysql
import test_source as of_source
from test_follow import Follower
from test_xa import XA_NOTA, prepare, recover

OPTIONS = {**of_source.OPTIONS, "server_id": 71}
NAMES = {"a": "X'61',X'',1", "b": "X'62',X'',1"}


def begin(src):
    """A table with a row, and two prepared branches without a session."""
    src.execute("DROP DATABASE IF EXISTS rep")
    src.execute("CREATE DATABASE rep")
    src.execute("USE rep")
    src.execute("CREATE TABLE t (id INT PRIMARY KEY, v INT)")
    src.execute("INSERT INTO t VALUES (1, 1)")


def prepared(connect, name, sql):
    """Prepares a branch in a session that ends."""
    with connect() as own:
        cur = own.cursor()
        cur.execute("USE rep")
        prepare(cur, name, sql)


def end_branch(cur, sql):
    """Ends a branch. A MariaDB needs a moment to take it out of the session that has ended."""
    end = time.monotonic() + 10
    while True:
        try:
            return cur.execute(sql)
        except pymysql.MySQLError as e:
            if e.args[0] != XA_NOTA or time.monotonic() > end:
                raise
            time.sleep(0.02)


def check_wait(connect, url):
    """`nfold follow` waits for the end of branches; then it has their rows."""
    src = connect().cursor()
    begin(src)
    prepared(connect, "a", "INSERT INTO rep.t VALUES (2, 2)")
    prepared(connect, "b", "UPDATE rep.t SET v = 9 WHERE id = 1")
    refused = Follower("rep", "--xa-wait", "1")
    refused.source_url = url
    refused.start_refused()
    said = refused.tail(1 << 16)
    assert refused.process.returncode == 1, said
    for words in (NAMES["a"], NAMES["b"], "the copy waits for their end", "XA COMMIT or XA ROLLBACK, pause"):
        assert words in said, (words, said)
    refused.__exit__(None, None, None)
    f = Follower("rep")
    f.source_url = url

    def end():
        log = ""
        while "the copy waits for their end" not in log:
            time.sleep(0.05)
            with open(f.log_path, encoding="utf-8") as file:
                log = file.read()
        other = connect().cursor()
        end_branch(other, "XA COMMIT 'a'")
        time.sleep(0.3)
        end_branch(other, "XA ROLLBACK 'b'")
        other.execute("INSERT INTO rep.t VALUES (3, 3)")
    ending = threading.Thread(target=end)
    with open(f.log_path, "w", encoding="utf-8"):
        pass
    ending.start()
    with f:
        ending.join()
        # A branch that is prepared behind the snapshot arrives as a whole.
        prepared(connect, "a", "INSERT INTO rep.t VALUES (4, 4)")
        end_branch(src, "XA COMMIT 'a'")
        cur = f.connect().cursor()
        end = time.monotonic() + 30
        rows = ()
        while len(rows) < 4 and time.monotonic() < end:
            cur.execute("SELECT id, v FROM rep.t ORDER BY id")
            rows = cur.fetchall()
        assert rows == ((1, 1), (2, 2), (3, 3), (4, 4)), (rows, replica.status(cur))


def test_copy_of_an_nfold_waits_for_prepared_branches(srv):
    root = srv.connect().cursor()
    root.execute("CREATE USER IF NOT EXISTS sb IDENTIFIED BY 'sb'")
    root.execute("GRANT ALL ON *.* TO sb")
    check_wait(lambda: srv.connect(user="sb", password="sb"), of_mariadb.url(srv.port))


@of_mariadb.skipped
def test_copy_of_a_mariadb_waits_for_prepared_branches(_):
    with mariadb.MariaDb() as source:
        check_wait(source.connect, of_mariadb.url(source.port))


@of_mysql.skipped
def test_copy_of_a_mysql_waits_for_prepared_branches(_):
    src = of_mysql.source().cursor()
    check_wait(of_mysql.source, of_mariadb.url(of_mysql.PORT))
    # Without XA_RECOVER_ADMIN the branches cannot be seen.
    src.execute("DROP USER IF EXISTS rep_copy")
    src.execute("CREATE USER rep_copy IDENTIFIED BY 'x'")
    src.execute("GRANT SELECT, SHOW VIEW, TRIGGER, EVENT, RELOAD, REPLICATION SLAVE, REPLICATION CLIENT, BACKUP_ADMIN ON *.* TO rep_copy")
    f = Follower("rep")
    f.source_url = of_mariadb.url(of_mysql.PORT, "rep_copy", "x")
    with f:
        said = f.said()
        assert "the account has no XA_RECOVER_ADMIN" in said and "copied 4 rows" in said, said
    src.execute("DROP USER rep_copy")
    src.execute("DROP DATABASE rep")


def check_error(src, connect, start, by_gtid):
    """The channel stops at the end of a branch from before its position, and says how to go on."""
    begin(src)
    prepared(connect, "a", "INSERT INTO rep.t VALUES (2, 2)")
    with server.Server({"server_id": 72, "innodb_buffer_pool_size": "64M"}) as own:
        cur = own.connect().cursor()
        begin(cur)
        start(cur)
        end_branch(src, "XA ROLLBACK 'a'")
        src.execute("INSERT INTO t VALUES (5, 5)")
        s = replica.wait_stopped(cur)
        error = s["Last_SQL_Error"]
        assert s["Last_SQL_Errno"] == 1397, s
        assert f"XA ROLLBACK {NAMES['a']}" in error and "before the position at which this channel began" in error, error
        way = error.split("If it was rolled back, ")[1].split(" goes past")[0]
        assert way.startswith("SET GLOBAL gtid_purged" if by_gtid else "CHANGE REPLICATION SOURCE TO"), way
        cur.execute(way)
        cur.execute("START REPLICA")
        end = time.monotonic() + 30
        rows = ()
        while len(rows) < 2 and time.monotonic() < end:
            cur.execute("SELECT id, v FROM rep.t ORDER BY id")
            rows = cur.fetchall()
        assert rows == ((1, 1), (5, 5)), (rows, replica.status(cur))
        assert recover(cur) == []


def position_of_mysql(src, port, by_gtid):
    """Starts a channel at the source's position."""
    def start(cur):
        src.execute("SHOW BINARY LOG STATUS")
        file, position, _, _, gtids = src.fetchone()
        if by_gtid:
            own = gtids.replace("\n", "")
            cur.execute(f"SET GLOBAL gtid_purged = '{own}'")
        at = "SOURCE_AUTO_POSITION = 1" if by_gtid else f"SOURCE_LOG_FILE = '{file}', SOURCE_LOG_POS = {position}"
        replica.change(cur, port, at)
        cur.execute("START REPLICA")
    return start


def test_channel_of_an_nfold_names_an_earlier_branch(srv):
    src = of_source.begin(srv)
    check_error(src, srv.connect, position_of_mysql(src, srv.port, True), True)


def test_channel_by_position_names_an_earlier_branch(_):
    with server.Server({**OPTIONS, "gtid_mode": "OFF"}) as source:
        src = of_source.begin(source)
        check_error(src, source.connect, position_of_mysql(src, source.port, False), False)


@of_mysql.skipped
def test_channel_of_a_mysql_names_an_earlier_branch(_):
    src = of_mysql.source().cursor()
    check_error(src, of_mysql.source, position_of_mysql(src, of_mysql.PORT, True), True)
    src.execute("DROP DATABASE rep")


@of_mariadb.skipped
def test_channel_of_a_mariadb_names_an_earlier_branch(_):
    with mariadb.MariaDb() as source:
        src = source.connect().cursor()

        def start(cur):
            cur.execute(f"SET GLOBAL gtid_purged = '{of_mariadb.position(src)}'")
            replica.change(cur, source.port, "SOURCE_AUTO_POSITION = 1")
            cur.execute("START REPLICA")
        check_error(src, source.connect, start, True)
