"""Two Nfolds behind MariaDB's Spider: sysbench, and XA transactions over kills of a node
(ROUNDS)."""

import contextlib
import os
import subprocess
import time

import mariadb
import server
import stock_sysbench
import transfers

# Spider reads statistics by a query that ONLY_FULL_GROUP_BY refuses, here and on MySQL.
# Spider puts lists of keys into temporary tables, which XA transactions refuse otherwise (4091).
OPTIONS = {"xa_detach_on_prepare": "OFF", "innodb_lock_wait_timeout": "2", "innodb_buffer_pool_size": "64M", "sql_mode": "STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION"}
SPIDER = {
    "plugin-load-add": "ha_spider.so",
    "skip-log-bin": "ON",
    # Spider sets its own sql_mode on the nodes. NO_AUTO_CREATE_USER is unknown to MySQL since 8.0.
    "sql_mode": "STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION",
    # A transaction is an XA transaction of the nodes.
    "spider_internal_xa": "1",
    # Statistics from information_schema: SHOW INDEX has more columns than Spider expects.
    "spider_crd_mode": "2",
    "spider_sts_mode": "2",
    "spider_remote_access_charset": "utf8mb4",
}
ROUNDS = int(os.environ.get("ROUNDS", "3"))
DATABASE = "shard_test"
# Spider tells the nodes of a transaction apart by their hosts only, so both are 127.0.0.1 in two
# spellings.
HOSTS = ("127.0.0.1", "127.1")


def install():
    """Debian's packages, unless a MariaDB with Spider is here."""
    if mariadb.program("mariadbd") is None or not os.path.exists("/usr/lib/mysql/plugin/ha_spider.so"):
        sudo = [] if os.geteuid() == 0 else ["sudo"]
        for words in (["-q", "update"], ["-q", "-y", "install", "--no-install-recommends", "mariadb-server", "mariadb-plugin-spider"]):
            subprocess.run([*sudo, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", *words], check=True, stdout=subprocess.DEVNULL)


class Sharded:
    """The server of the test, another one, and a MariaDB whose tables are on both."""

    def __init__(self, srv):
        install()
        self.nodes = [srv, server.Server(OPTIONS)]
        self.spider = mariadb.MariaDb(SPIDER)

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
            cur = node.connect().cursor()
            cur.execute(f"DROP DATABASE IF EXISTS {DATABASE}")
            cur.execute(f"CREATE DATABASE {DATABASE}")
            # The client in Spider does not have caching_sha2_password.
            cur.execute("CREATE USER IF NOT EXISTS sb IDENTIFIED WITH mysql_native_password BY 'sb'")
            cur.execute("GRANT ALL ON *.* TO sb")
        self.spider.__enter__()
        cur = self.spider.connect().cursor()
        cur.execute(f"CREATE DATABASE {DATABASE}")
        for number, (node, host) in enumerate(zip(self.nodes, HOSTS)):
            cur.execute(f"CREATE SERVER shard_{number} FOREIGN DATA WRAPPER mysql "
                        f"OPTIONS (HOST '{host}', PORT {node.port}, USER 'sb', PASSWORD 'sb', DATABASE '{DATABASE}')")

    def __exit__(self, kind, *_):
        if self.spider.process is not None:
            if kind is not None:
                print(self.spider.said())
            self.spider.__exit__()
        for node in self.nodes:
            if not node.alive():
                node.start()
        self.nodes[1].__exit__(None, None, None)

    def connect(self):
        conn = self.spider.connect()
        conn.select_db(DATABASE)
        return conn

    def shard(self, table, columns):
        """The table of Spider. Those of the nodes have the same name."""
        partitions = ", ".join(f"PARTITION p{n} COMMENT = 'srv \"shard_{n}\"'" for n in range(len(self.nodes)))
        self.connect().cursor().execute(f"CREATE TABLE {table} ({columns}) ENGINE = SPIDER COMMENT = 'wrapper \"mysql\", table \"{table}\"' "
                                        f"PARTITION BY HASH (id) ({partitions})")

    def rows(self, table):
        """The rows that each node has."""
        found = []
        for node in self.nodes:
            cur = node.connect(database=DATABASE).cursor()
            cur.execute(f"SELECT * FROM {table}")
            found.append(cur.fetchall())
        return found

    def end_prepared(self):
        """What an administrator does after a node was lost: commits the branches of transactions
        that Spider has begun to commit, and rolls the others back."""
        cur = self.spider.connect().cursor()
        cur.execute("SELECT format_id, gtrid_length, HEX(LEFT(data, gtrid_length + bqual_length)) FROM mysql.spider_xa WHERE status = 'COMMIT'")
        committed = set(cur.fetchall())
        ended = []
        for node in self.nodes:
            cur = node.connect().cursor()
            cur.execute("XA RECOVER CONVERT XID")
            for form, length, _, data in cur.fetchall():
                verb = "COMMIT" if (form, length, data[2:]) in committed else "ROLLBACK"
                gtrid, bqual = data[2:2 + 2 * length], data[2 + 2 * length:]
                cur.execute(f"XA {verb} X'{gtrid}', X'{bqual}', {form}")
                ended.append(verb)
        return ended


def test_sysbench(srv):
    with Sharded(srv) as sharded:
        for node in sharded.nodes:
            stock_sysbench.prepare(node.port, "sb", "sb", DATABASE, "--table-size=0")
        local = sharded.connect().cursor()
        local.execute("CREATE DATABASE filled")
        stock_sysbench.prepare(sharded.spider.port, "sb", "sb", "filled")
        for n, table in enumerate(stock_sysbench.TABLES, 1):
            sharded.shard(table, f"id INT NOT NULL PRIMARY KEY, k INT NOT NULL DEFAULT 0, c CHAR(120) NOT NULL DEFAULT '', "
                                 f"pad CHAR(60) NOT NULL DEFAULT '', KEY k_{n} (k)")
            local.execute(f"INSERT INTO {table} SELECT * FROM filled.{table}")
        stock_sysbench.run(sharded.spider.port, "sb", "sb", DATABASE, ["oltp_insert"])
        for table in stock_sysbench.TABLES:
            counts = [len(rows) for rows in sharded.rows(table)]
            local.execute(f"SELECT COUNT(*) FROM {table}")
            assert all(counts) and local.fetchone()[0] == sum(counts), counts


def test_transfers_survive_kills_of_nodes(srv):
    with Sharded(srv) as sharded:
        for table, columns in transfers.TABLES:
            for node in sharded.nodes:
                node.connect(database=DATABASE).cursor().execute(f"CREATE TABLE {table} ({columns})")
            sharded.shard(table, columns)
        transfers.fill(sharded.connect())
        with transfers.Clients(sharded.connect) as clients:
            for number in range(ROUNDS):
                clients.wait(2)
                node = sharded.nodes[number % 2]
                node.kill()
                time.sleep(0.5)
                node.start()
            clients.wait(2)
        ended = sharded.end_prepared()
        transfers.until_none_prepared(sharded.nodes, 1)
        found = transfers.check({table: sharded.rows(table) for table, _ in transfers.TABLES}, clients.acknowledged)
        print(f"        {found} transfers, {len(clients.acknowledged)} of them acknowledged, {clients.refused} refused; "
              f"ended by hand: {ended}; {clients.errors}")
