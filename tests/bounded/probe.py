"""Probes: SELECT 1 on a connection of each worker, in a process of its own."""
import collections
import glob
import multiprocessing
import socket
import struct
import threading
import time

Report = collections.namedtuple("Report", "count p99 most")
QUERY = struct.pack("<I", 9)[:3] + b"\0" + b"\x03SELECT 1"


def workers(pid):
    """The scheduler's figures of the server's workers, as open files."""
    found = []
    for task in glob.glob(f"/proc/{pid}/task/*"):
        try:
            with open(task + "/comm") as f:
                if "worker" in f.read():
                    found.append(open(task + "/schedstat"))
        except FileNotFoundError:
            pass  # a thread that has ended meanwhile
    assert found, "the server has no workers"
    return found


class Delay:
    """How long threads were kept from running by others, in seconds."""

    def __init__(self, pid):
        self.last = []
        self.files = workers(pid) + [open(f"/proc/self/task/{threading.get_native_id()}/schedstat")]

    def read(self):
        waited = []
        try:
            for f in self.files:
                f.seek(0)
                waited.append(int(f.read().split()[1]) / 1e9)
        except ProcessLookupError:  # the server has ended
            return self.last
        self.last = waited
        return waited

    def since(self, before):
        """Of the worker that waited longest, and of this thread."""
        more = [b - a for a, b in zip(before, self.read())]
        return max(more[:-1]) + more[-1]


def answer(conn):
    """Reads an answer to SELECT 1: up to its second EOF."""
    got = b""
    while True:
        data = conn.recv(65536)
        if not data:
            raise ConnectionError("the probe's connection ended")
        got += data
        at = ends = 0
        while at + 4 <= len(got):
            size = int.from_bytes(got[at:at + 3], "little")
            if at + 4 + size > len(got):
                break
            if got[at + 4] == 0xFE and size < 9:
                ends += 1
            assert got[at + 4] != 0xFF, got[at:]
            at += 4 + size
        if ends == 2:
            return


def probe(conns, pid, pipe):
    delay = Delay(pid)
    times = []
    while True:
        for conn in conns:
            before, start = delay.read(), time.monotonic()
            conn.sendall(QUERY)
            answer(conn)
            took = time.monotonic() - start
            times.append(took - delay.since(before) if took > 0.005 else took)
            time.sleep(0.001)
        if pipe.poll():
            if pipe.recv() == "end":
                return
            times.sort()
            pipe.send(Report(len(times), times[len(times) * 99 // 100], times[-1]))
            times = []


class Probes:
    """Runs while the `with` block does."""

    def __init__(self, srv):
        self.conns = [srv.connect() for _ in range(2)]
        sockets = [c._sock for c in self.conns]
        for s in sockets:
            s.settimeout(120)
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.pipe, theirs = multiprocessing.Pipe()
        self.process = multiprocessing.Process(target=probe, args=(sockets, srv.process.pid, theirs), daemon=True)

    def __enter__(self):
        self.process.start()
        return self

    def report(self):
        """Of the time since the report before."""
        self.pipe.send("report")
        assert self.pipe.poll(150), "the probe has no answer"
        return self.pipe.recv()

    def __exit__(self, *_):
        self.pipe.send("end")
        self.process.join(10)
        self.process.kill()
