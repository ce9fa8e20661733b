"""Semi-synchronous replication. With Nfold as the replica, the sources are another Nfold, a MariaDB
where one is installed, and the MySQL that NFOLD_REPLICATION_SOURCE names, with its plugin
semisync_source.so. With Nfold as the source, the replica is also the MySQL that
NFOLD_REPLICATION_REPLICA names, with its plugin semisync_replica.so."""

import threading
import time

import pymysql

import mariadb
import replica
import server
import test_mariadb as of_mariadb
import test_mysql as of_mysql
import test_source as of_source

OPTIONS = {"server_id": 77, "innodb_buffer_pool_size": "64M", "rpl_semi_sync_replica_enabled": "ON"}
# How many commits a replica has acknowledged, the state, and the number of such replicas.
MYSQL = {"name": "source", "acked": "Rpl_semi_sync_source_yes_tx", "not_acked": "Rpl_semi_sync_source_no_tx",
         "status": "Rpl_semi_sync_source_status", "clients": "Rpl_semi_sync_source_clients"}
MARIADB = {key: value.replace("source", "master") for key, value in MYSQL.items()}


def number(cur, name):
    cur.execute(f"SHOW GLOBAL STATUS LIKE '{name}'")
    value = cur.fetchone()[1]
    return {"ON": 1, "OFF": 0}.get(value) if value in ("ON", "OFF") else int(value)


def wait_for(cur, name, value, timeout=30):
    end = time.monotonic() + timeout
    while number(cur, name) != value:
        assert time.monotonic() < end, (name, number(cur, name))
        time.sleep(0.02)


def check(srv, src, cur, names, caught_up):
    """`src` and `cur` are cursors of a source with semi-synchronous commits and of its replica."""
    wait_for(src, names["clients"], 1)
    wait_for(cur, "Rpl_semi_sync_replica_status", 1)
    src.execute("CREATE TABLE t (id INT PRIMARY KEY, pad LONGTEXT)")
    wait_for(src, names["status"], 1)
    acked, not_acked = number(src, names["acked"]), number(src, names["not_acked"])
    for n in range(20):
        src.execute("INSERT INTO t VALUES (%s, REPEAT('x', 100))", (n,))
        # The commit has returned, so the replica has it.
        cur.execute("SELECT COUNT(*) FROM rep.t")
        assert cur.fetchone() == (n + 1,)
    src.execute("INSERT INTO t VALUES (100, REPEAT('y', 3000000))")
    src.execute("ALTER TABLE t ADD COLUMN k INT")
    assert number(src, names["acked"]) == acked + 22, (acked, number(src, names["acked"]))
    # Without the replica a commit returns after the timeout.
    src.execute(f"SET GLOBAL rpl_semi_sync_{names['name']}_timeout = 200")
    srv.kill()
    src.execute("INSERT INTO t (id) VALUES (200)")
    wait_for(src, names["status"], 0)
    assert number(src, names["not_acked"]) > not_acked
    srv.start()
    cur = srv.connect().cursor()
    caught_up(src, cur)
    wait_for(src, names["clients"], 1)
    src.execute("INSERT INTO t (id) VALUES (201)")
    wait_for(src, names["status"], 1)
    src.execute(f"SET GLOBAL rpl_semi_sync_{names['name']}_timeout = 10000")
    src.execute("INSERT INTO t (id) VALUES (202)")
    cur.execute("SELECT COUNT(*) FROM rep.t WHERE id >= 200")
    assert cur.fetchone() == (3,)
    replica.compare(src, cur, "rep")
    # A replica that does not acknowledge is an ordinary one.
    cur.execute("STOP REPLICA")
    cur.execute("SET GLOBAL rpl_semi_sync_replica_enabled = OFF")
    cur.execute("START REPLICA")
    src.execute(f"SET GLOBAL rpl_semi_sync_{names['name']}_enabled = OFF")
    src.execute("INSERT INTO t (id) VALUES (203)")
    caught_up(src, cur)
    replica.compare(src, cur, "rep")
    assert number(cur, "Rpl_semi_sync_replica_status") == 0


SOURCE = {**of_source.OPTIONS, "rpl_semi_sync_source_enabled": "ON", "rpl_semi_sync_source_timeout": 10000}


def test_nfold_waits_for_its_replica(_):
    with server.Server(SOURCE) as source, server.Server(OPTIONS) as srv:
        # Without a replica the first commit waits for the timeout.
        src = source.connect().cursor()
        src.execute("SET GLOBAL rpl_semi_sync_source_timeout = 100")
        src = of_source.begin(source)
        assert number(src, MYSQL["status"]) == 0 and number(src, MYSQL["not_acked"]) > 0
        src.execute("SET GLOBAL rpl_semi_sync_source_timeout = 10000")
        cur = srv.connect().cursor()
        of_source.follow(source, cur, False)
        check(srv, src, cur, MYSQL, of_source.caught_up)


def test_nfold_waits_for_several_sessions(_):
    """Commits of several sessions share acknowledgements, and each of them is on the replica."""
    with server.Server(SOURCE) as source, server.Server(OPTIONS) as srv:
        src = source.connect().cursor()
        src.execute("SET GLOBAL rpl_semi_sync_source_enabled = OFF")
        src = of_source.begin(source)
        src.execute("CREATE TABLE t (id INT PRIMARY KEY)")
        src.execute("SET GLOBAL rpl_semi_sync_source_enabled = ON")
        cur = srv.connect().cursor()
        of_source.follow(source, cur, False)
        wait_for(src, MYSQL["clients"], 1)
        of_source.caught_up(src, cur)
        failed = []

        def work(first):
            mine, there = source.connect(database="rep").cursor(), srv.connect(database="rep").cursor()
            for n in range(first, first + 40):
                mine.execute(f"INSERT INTO t VALUES ({n})")
                there.execute(f"SELECT COUNT(*) FROM t WHERE id = {n}")
                if there.fetchone() != (1,):
                    failed.append(n)

        threads = [threading.Thread(target=work, args=(first,)) for first in (0, 100, 200, 300)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failed, failed
        assert number(src, MYSQL["acked"]) >= 160 and number(src, "Rpl_semi_sync_source_wait_sessions") == 0
        try:
            src.execute("SET GLOBAL rpl_semi_sync_source_wait_point = AFTER_SYNC")
            raise AssertionError("AFTER_SYNC")
        except pymysql.err.Error as e:
            assert e.args[0] == 1231, e
        # Commits that do not wait for absent replicas.
        src.execute("SET GLOBAL rpl_semi_sync_source_wait_no_replica = OFF")
        cur.execute("STOP REPLICA")
        src.execute("INSERT INTO t VALUES (1000)")
        assert number(src, MYSQL["status"]) == 0


@of_source.skipped
def test_nfold_waits_for_mysql(_):
    cur = of_source.mysql().cursor()
    try:
        cur.execute("INSTALL PLUGIN rpl_semi_sync_replica SONAME 'semisync_replica.so'")
    except pymysql.MySQLError as e:
        if e.args[0] != 1125:  # It is there already.
            print(f"skipped test_nfold_waits_for_mysql: {e}")
            return
    cur.execute("SET GLOBAL rpl_semi_sync_replica_enabled = ON")
    try:
        with server.Server(SOURCE) as source:
            src = source.connect().cursor()
            src.execute("SET GLOBAL rpl_semi_sync_source_enabled = OFF")
            src = of_source.begin(source)
            src.execute("SET GLOBAL rpl_semi_sync_source_enabled = ON")
            of_source.follow(source, cur, True)
            wait_for(src, MYSQL["clients"], 1)
            src.execute("CREATE TABLE t (id INT PRIMARY KEY, v LONGTEXT)")
            before, missed = number(src, MYSQL["acked"]), number(src, MYSQL["not_acked"])
            for n in range(50):
                src.execute("INSERT INTO t VALUES (%s, REPEAT('x', %s))", (n, n * 1000))
            assert number(src, MYSQL["acked"]) == before + 50 and number(src, MYSQL["not_acked"]) == missed
            of_source.caught_up(src, cur)
            replica.compare(src, cur, "rep")
            cur.execute("STOP REPLICA")
    finally:
        cur.execute("STOP REPLICA")
        cur.execute("SET GLOBAL rpl_semi_sync_replica_enabled = OFF")


@of_mariadb.skipped
def test_mariadb_waits_for_its_replica(_):
    options = {"rpl_semi_sync_master_enabled": "ON", "rpl_semi_sync_master_timeout": 10000}
    with mariadb.MariaDb(options) as source, server.Server(OPTIONS) as srv:
        src, cur = of_mariadb.begin(srv, source)
        check(srv, src, cur, MARIADB, of_mariadb.caught_up)


@of_mysql.skipped
def test_mysql_waits_for_its_replica(_):
    src = of_mysql.source().cursor()
    try:
        src.execute("INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so'")
    except pymysql.MySQLError as e:
        if e.args[0] != 1125:  # It is there already.
            print(f"skipped test_mysql_waits_for_its_replica: {e}")
            return
    src.execute("SET GLOBAL rpl_semi_sync_source_timeout = 10000")
    try:
        with server.Server(OPTIONS) as srv:
            src.execute("SET GLOBAL rpl_semi_sync_source_enabled = ON")
            src.execute("SET GLOBAL rpl_semi_sync_source_timeout = 1000")
            src, cur = of_mysql.begin(srv)
            src.execute("SET GLOBAL rpl_semi_sync_source_timeout = 10000")
            check(srv, src, cur, MYSQL, of_mysql.caught_up)
            src.execute("DROP DATABASE rep")
    finally:
        src.execute("SET GLOBAL rpl_semi_sync_source_enabled = OFF")
