"""Starts a MariaDB for a test, where one is installed."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import server


def program(name):
    """The path of a program of MariaDB; None if it is not installed."""
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")


class MariaDb:
    """A MariaDB with a binary log: user sb, password sb, from 127.0.0.1.

    options: more lines of its option file. `with MariaDb() as m:` starts it and removes it."""

    def __init__(self, options=None):
        self.directory = tempfile.mkdtemp(prefix="nfold-mariadb-")
        self.port = server.free_port()
        self.process = None
        at = self.directory
        lines = {"datadir": f"{at}/data", "socket": f"{at}/m.sock", "pid-file": f"{at}/m.pid", "port": self.port,
                 "bind-address": "127.0.0.1", "log-error": f"{at}/error.log", "log-bin": "mariadb-bin",
                 "binlog-format": "ROW", "server-id": 100, "gtid-domain-id": 3, "innodb_buffer_pool_size": "64M",
                 "innodb_log_file_size": "32M", "character-set-server": "utf8mb4", "skip-name-resolve": "ON",
                 "sync_binlog": 1, **(options or {})}
        with open(f"{at}/my.cnf", "w") as f:
            f.write("[mysqld]\n" + "".join(f"{name}={value}\n" for name, value in lines.items()))
        done = subprocess.run([program("mariadb-install-db"), f"--defaults-file={at}/my.cnf", "--user=root",
                               "--auth-root-authentication-method=normal", "--skip-test-db"], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr

    def start(self, timeout=60):
        """Starts it and waits until it answers."""
        config = f"--defaults-file={self.directory}/my.cnf"
        self.process = subprocess.Popen([program("mariadbd"), config, "--user=root"], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            assert self.process.poll() is None, self.said()
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                break
            except OSError:
                time.sleep(0.05)
        return self

    def said(self):
        with open(f"{self.directory}/error.log", encoding="utf-8", errors="replace") as f:
            return f.read()[-3000:]

    def kill(self):
        """kill -9"""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def connect(self, user="sb", password="sb"):
        import pymysql
        return pymysql.connect(host="127.0.0.1", port=self.port, user=user, password=password, autocommit=True,
                               charset="utf8mb4")

    def __enter__(self):
        self.start()
        import pymysql
        root = pymysql.connect(unix_socket=f"{self.directory}/m.sock", user="root", autocommit=True).cursor()
        root.execute("CREATE USER IF NOT EXISTS sb@'%' IDENTIFIED BY 'sb'")
        root.execute("GRANT ALL ON *.* TO sb@'%' WITH GRANT OPTION")
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)
