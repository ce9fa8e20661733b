"""Semi-synchronous replication with Nfold as the replica. The sources are a MariaDB where one is
installed, and the MySQL that NFOLD_REPLICATION_SOURCE names, with its plugin semisync_source.so."""

import time

import pymysql

import mariadb
import replica
import server
import test_mariadb as of_mariadb
import test_mysql as of_mysql

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
