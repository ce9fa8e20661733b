"""Two Nfolds behind ShardingSphere-Proxy: sysbench, and XA transactions over kills of a node and of
the proxy (ROUNDS)."""

import contextlib
import os
import shutil
import tempfile
import time

import pymysql

import proxy
import server
import stock_sysbench
import transfers

OPTIONS = {"innodb_lock_wait_timeout": "2", "innodb_buffer_pool_size": "64M"}
ROUNDS = int(os.environ.get("ROUNDS", "3"))
DATABASE = "shard_test"


class Sharded:
    """The server of the test, another one, and a proxy in front of both."""

    def __init__(self, srv):
        self.nodes = [srv, server.Server(OPTIONS)]
        self.directory = tempfile.mkdtemp(prefix="nfold-sharded-")
        self.proxy = proxy.Proxy(self.directory, [node.port for node in self.nodes], server.free_port(), DATABASE,
                                 timeout_ms=10000, recovery_ms=2000)

    def __enter__(self):
        # A start that fails leaves no process behind.
        with contextlib.ExitStack() as stack:
            stack.push(self)
            self.start()
            stack.pop_all()
        return self

    def start(self):
        self.nodes[1].start()
        for node in self.nodes:
            with node.connect() as conn:
                conn.cursor().execute(f"DROP DATABASE IF EXISTS {DATABASE}")
                conn.cursor().execute(f"CREATE DATABASE {DATABASE}")
        self.proxy.start()

    def __exit__(self, kind, *_):
        if kind is not None:
            print(self.proxy.tail())
        self.proxy.stop()
        for node in self.nodes:
            if not node.alive():
                node.start()
        self.nodes[1].__exit__(None, None, None)
        shutil.rmtree(self.directory, ignore_errors=True)

    def connect(self):
        return pymysql.connect(host="127.0.0.1", port=self.proxy.port, user="root", password="", database=DATABASE, autocommit=True,
                               charset="utf8mb4", read_timeout=60)

    def shard(self, *tables):
        cur = self.connect().cursor()
        for table in tables:
            cur.execute(f"CREATE SHARDING TABLE RULE {table} (RESOURCES(shard_0, shard_1), SHARDING_COLUMN=id, "
                        'TYPE(NAME=hash_mod, PROPERTIES("sharding-count"=2)))')

    def rows(self, table):
        """The rows that each node has."""
        found = []
        for number, node in enumerate(self.nodes):
            with node.connect(database=DATABASE) as conn:
                cur = conn.cursor()
                cur.execute(f"SELECT * FROM {table}_{number}")
                found.append(cur.fetchall())
        return found


def test_sysbench(srv):
    with Sharded(srv) as sharded:
        sharded.shard(*stock_sysbench.TABLES)
        stock_sysbench.prepare(sharded.proxy.port, "root", "", DATABASE)
        stock_sysbench.run(sharded.proxy.port, "root", "", DATABASE)
        for table in stock_sysbench.TABLES:
            counts = [len(rows) for rows in sharded.rows(table)]
            assert all(counts), counts
            cur = sharded.connect().cursor()
            cur.execute(f"SELECT COUNT(*) FROM {table}")
            assert cur.fetchone()[0] == sum(counts)


def moved(sharded, incident):
    """Transfers with `ROUNDS` incidents; what is left must be right."""
    sharded.shard(*(table for table, _ in transfers.TABLES))
    with sharded.connect() as conn:
        for table, columns in transfers.TABLES:
            conn.cursor().execute(f"CREATE TABLE {table} ({columns})")
        transfers.fill(conn)
    with transfers.Clients(sharded.connect) as clients:
        for number in range(ROUNDS):
            clients.wait(2)
            incident(number)
        clients.wait(2)
    seconds = transfers.until_none_prepared(sharded.nodes)
    found = transfers.check({table: sharded.rows(table) for table, _ in transfers.TABLES}, clients.acknowledged)
    print(f"        {found} transfers, {len(clients.acknowledged)} of them acknowledged, {clients.refused} refused; "
          f"nothing prepared after {seconds:.1f} s; {clients.errors}")


def test_transfers_survive_kills_of_nodes(srv):
    with Sharded(srv) as sharded:
        def kill_node(number):
            node = sharded.nodes[number % 2]
            node.kill()
            time.sleep(0.5)
            node.start()
        moved(sharded, kill_node)


def test_transfers_survive_kills_of_the_proxy(srv):
    with Sharded(srv) as sharded:
        def kill_proxy(_):
            sharded.proxy.kill()
            sharded.proxy.start()
        moved(sharded, kill_proxy)
