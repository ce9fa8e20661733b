"""The servers that `make bench-cliffs` compares: this checkout's Nfold, MariaDB from its package,
and an unpacked MySQL.

Each runs in a temporary directory on a free port of 127.0.0.1, with everything in memory and
durable commits.
"""
import os
import shutil
import socket
import subprocess
import tempfile
import time

import pymysql

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
CONNECTIONS = 4200
NFOLD_OPTIONS = f"""[mysqld]
innodb_buffer_pool_size=2G
max_connections={CONNECTIONS}
max_prepared_stmt_count=1000000
max_allowed_packet=256M
innodb_lock_wait_timeout=100
"""
PEER_OPTIONS = f"""[mysqld]
bind-address=127.0.0.1
skip-name-resolve
skip-log-bin
performance_schema=OFF
max_connections={CONNECTIONS}
back_log=4000
open_files_limit=65535
table_open_cache=4000
max_prepared_stmt_count=1000000
max_allowed_packet=256M
innodb_buffer_pool_size=2G
innodb_flush_log_at_trx_commit=1
innodb_adaptive_hash_index=OFF
innodb_lock_wait_timeout=100
"""


def free_port():
    """A port that no process listens on now."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server:
    """A running server. `cpu()` is the processor time of its process in seconds."""

    def __init__(self, name, directory):
        self.name, self.directory, self.port = name, directory, free_port()
        self.socket = os.path.join(directory, "s")
        self.log = os.path.join(directory, "log")
        self.process = None

    def launch(self, command):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        end = time.monotonic() + 120
        while time.monotonic() < end:
            if self.process.poll() is not None:
                break
            try:
                pymysql.connect(unix_socket=self.socket, user="root").close()
                return
            except pymysql.Error:
                time.sleep(0.1)
        with open(self.log, errors="replace") as log:
            raise RuntimeError(f"{self.name} does not answer:\n{log.read()[-3000:]}")

    def connect(self, database="cliffs", **more):
        return pymysql.connect(unix_socket=self.socket, user="root", database=database, charset="utf8mb4", autocommit=True,
                               max_allowed_packet=256 << 20, **more)

    def cpu(self):
        """Seconds of processor time that all threads of the process have used (Linux: the process's
        CPU clock)."""
        return time.clock_gettime((~self.process.pid << 3) | 2)

    def resident(self):
        """Bytes of resident memory."""
        with open(f"/proc/{self.process.pid}/statm") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(120)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def start_nfold(directory, more=""):
    """The release binary, or the one that $NFOLD names. `more`: further lines of its options."""
    server = Server("Nfold", directory)
    target = os.environ.get("CARGO_TARGET_DIR", os.path.join(ROOT, "target"))
    binary = os.environ.get("NFOLD", os.path.join(target, "release", "nfold"))
    config = os.path.join(directory, "cnf")
    with open(config, "w") as f:
        f.write(NFOLD_OPTIONS + more)
    server.launch([binary, "serve", "--datadir", os.path.join(directory, "data"), "--port", str(server.port), "--bind", "127.0.0.1",
                   "--config", config, "--socket", server.socket])
    return server


def write_peer_options(server, more=""):
    config = os.path.join(server.directory, "cnf")
    with open(config, "w") as f:
        f.write(PEER_OPTIONS + f"datadir={server.directory}/data\nsocket={server.socket}\nport={server.port}\n" + more)
    return config


def start_mariadb(directory, more=""):
    """MariaDB from the package mariadb-server."""
    if not shutil.which("mariadbd"):
        raise RuntimeError("MariaDB is not installed (Debian's package mariadb-server)")
    server = Server("MariaDB", directory)
    config = write_peer_options(server, "innodb_log_file_size=1G\ncharacter-set-server=utf8mb4\n" + more)
    subprocess.run(["mariadb-install-db", f"--defaults-file={config}", "--user=root", "--auth-root-authentication-method=normal",
                    "--skip-test-db"], check=True, stdout=subprocess.DEVNULL)
    server.launch([shutil.which("mariadbd"), f"--defaults-file={config}", "--user=root"])
    return server


def start_mysql(directory, dist, more=""):
    """MySQL from Debian's packages unpacked below `dist`, with the loader and libraries among them.
    """
    server = Server("MySQL", directory)
    libraries = os.path.join(dist, "usr/lib/x86_64-linux-gnu")
    config = write_peer_options(server, f"basedir={dist}/usr\nlc-messages-dir={dist}/usr/share/mysql\n"
                                f"character-sets-dir={dist}/usr/share/mysql/charsets\nplugin-dir={dist}/usr/lib/mysql/plugin\n"
                                "secure-file-priv=NULL\nmysqlx=OFF\ninnodb_redo_log_capacity=1G\n" + more)
    command = [os.path.join(libraries, "ld-linux-x86-64.so.2"), "--library-path", f"{libraries}:{dist}/usr/lib/mysql/private",
               os.path.join(dist, "usr/sbin/mysqld"), f"--defaults-file={config}", "--user=root"]
    with open(server.log, "ab") as log:
        subprocess.run([*command, "--initialize-insecure"], check=True, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    server.launch(command)
    return server


class Floor(Server):
    """bench/floor: a server without SQL, whose cost is that of the network and the protocol."""

    def __init__(self, directory):
        super().__init__("floor", directory)
        binary = os.path.join(directory, "floor")
        source = os.path.join(ROOT, "bench", "floor", "floor.c")
        subprocess.run(["cc", "-O2", "-pthread", "-o", binary, source], check=True)
        self.process = subprocess.Popen(
            [binary, "-p", str(self.port), "-t", str(os.cpu_count())],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


class Fleet:
    """`with Fleet(names, mysql_dist) as servers:` starts them, and stops them at the end."""

    def __init__(self, names, mysql_dist):
        self.names, self.mysql_dist, self.servers = names, mysql_dist, []

    def __enter__(self):
        self.directory = tempfile.mkdtemp(prefix="nfold-cliffs-")
        try:
            for name in self.names:
                directory = os.path.join(self.directory, name)
                os.mkdir(directory)
                start = {"nfold": start_nfold, "mariadb": start_mariadb,
                         "mysql": lambda d: start_mysql(d, self.mysql_dist), "floor": Floor}[name]
                server = start(directory)
                self.servers.append(server)
                if name == "floor":
                    continue
                with server.connect(database=None) as c:
                    c.cursor().execute("CREATE DATABASE cliffs CHARACTER SET utf8mb4")
                    c.cursor().execute("CREATE USER lab@'%'")
                    c.cursor().execute("GRANT ALL ON *.* TO lab@'%'")
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self.servers

    def __exit__(self, *_):
        for server in self.servers:
            server.stop()
        shutil.rmtree(self.directory, ignore_errors=True)
