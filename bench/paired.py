"""What benchmarks of running servers share: a server as an argument names it, and its CPU time."""
import glob

import pymysql

USER, PASSWORD = "sb", "sb"


def cpu_seconds(pid):
    """User and system time of all threads of a process."""
    total = 0
    for path in glob.glob(f"/proc/{pid}/task/*/schedstat"):
        try:
            with open(path) as f:
                total += int(f.read().split()[0])
        except (FileNotFoundError, ProcessLookupError):
            pass
    return total / 1e9


class Running:
    """A running server, named by NAME=PORT:PID."""

    def __init__(self, word):
        self.name, _, where = word.partition("=")
        port, _, pid = where.partition(":")
        self.port, self.pid = int(port), int(pid)

    def connect(self, database=None):
        where = {"host": "127.0.0.1", "port": self.port, "user": USER, "password": PASSWORD}
        return pymysql.connect(database=database, autocommit=True, **where)

    def cpu_seconds(self):
        return cpu_seconds(self.pid)
