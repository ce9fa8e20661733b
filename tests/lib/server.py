"""Starts and stops an nfold server for a test: a free port on 127.0.0.1, a temporary data
directory, its own pid."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def binary():
    """Path of the binary under test: $NFOLD, or the one that `make` built."""
    target = os.environ.get("CARGO_TARGET_DIR", os.path.join(ROOT, "target"))
    return os.environ.get("NFOLD", os.path.join(target, "fast", "nfold"))


def free_port():
    """A port that no process listens on now."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server:
    """One server process. `with Server(...) as s:` starts it and stops it at the end.

    options: extra command line and configuration, as {"innodb_buffer_pool_size": "32M"}.
    datadir: kept when given, else temporary and removed at the end.
    keep_failed: when a `with` block fails, the server is killed, and its temporary data directory
    and log stay as they are; it is said where.
    beside: where its log, option file and socket go, with endings of their own; the data
    directory's name by default.
    """

    def __init__(self, options=None, datadir=None, port=None, wrapper=(), beside=None, keep_failed=False):
        self.options = dict(options or {})
        self.temporary, self.keep_failed = datadir is None, keep_failed
        self.datadir = datadir or tempfile.mkdtemp(prefix="nfold-test-")
        self.port = port or free_port()
        self.wrapper = list(wrapper)
        self.process = None
        self.beside = beside or self.datadir
        self.log_path = self.beside + ".log"

    def launch(self):
        """Starts the process."""
        config = self.beside + ".cnf"
        with open(config, "w") as f:
            f.write("[mysqld]\n")
            for name, value in self.options.items():
                f.write(f"{name}={value}\n")
        command = self.wrapper + [binary(), "serve", "--datadir", self.datadir, "--port", str(self.port),
                                  "--bind", "127.0.0.1", "--config", config,
                                  "--socket", self.beside + ".sock"]
        self.log = open(self.log_path, "ab")
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)

    def start_refused(self, timeout=60):
        """Starts the process, which must end by itself."""
        self.launch()
        self.process.wait(timeout)

    def start(self, timeout=120):
        """Starts the process and waits until it accepts connections; raises with its log when it
        does not."""
        self.launch()
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise RuntimeError(f"nfold ended with {self.process.returncode} at start:\n{self.tail()}")
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return self
            except OSError:
                time.sleep(0.05)
        raise RuntimeError(f"nfold does not answer:\n{self.tail()}")

    def tail(self, n=3000):
        """The last `n` bytes of its log."""
        with open(self.log_path, "rb") as f:
            f.seek(0, 2)
            f.seek(max(0, f.tell() - n))
            return f.read().decode("utf-8", "replace")

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def kill(self):
        """kill -9"""
        if self.alive():
            self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self, timeout=60):
        """SIGTERM, and the exit status."""
        if self.alive():
            self.process.terminate()
        try:
            return self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            raise RuntimeError(f"nfold did not stop:\n{self.tail()}")

    def connect(self, user="root", password="", database=None, **more):
        import pymysql
        return pymysql.connect(host="127.0.0.1", port=self.port, user=user, password=password, database=database,
                               autocommit=True, charset="utf8mb4", **more)

    def __enter__(self):
        return self.start()

    def __exit__(self, kind, value, trace):
        kept = self.keep_failed and kind is not None and issubclass(kind, Exception)
        try:
            if kind is not None:
                print(self.tail(), file=sys.stderr)
            if kept:
                self.kill()  # a shutdown would change what is to be looked at
                print(f"kept: {self.datadir}, {self.log_path}", file=sys.stderr)
            else:
                self.stop()
        finally:
            self.log.close()
            if self.temporary and not kept:
                shutil.rmtree(self.datadir, ignore_errors=True)
                self.remove_beside()

    def remove_beside(self):
        """Removes its log, option file and socket."""
        for suffix in (".log", ".cnf", ".sock"):
            if os.path.exists(self.beside + suffix):
                os.remove(self.beside + suffix)
