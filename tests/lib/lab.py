"""Runs `nfold lab` for a test."""
import json
import os
import signal
import subprocess
import tempfile
import time

import server


def lab(*words, ok=True, env=None, timeout=300, stdin=None, cwd=None):
    """Standard output of `nfold lab WORDS` (standard error where `ok` is False); asserts the exit
    status unless `ok` is None, in which case the
    finished process is returned."""
    done = subprocess.run([os.path.abspath(server.binary()), "lab", *map(str, words)], capture_output=True, text=True, timeout=timeout, input=stdin,
                          env=environment(env), cwd=cwd)
    if ok is None:
        return done
    assert (done.returncode == 0) == ok, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout if ok else done.stderr


def digested(path, word):
    """The number of statements in a log file, by `nfold lab digest`, whose pattern has `word`."""
    report = json.loads(lab("digest", path, "--json", "-"))
    return sum(p["count"] for p in report["patterns"] if word in json.dumps(p))


def start(*words, env=None, stdout=subprocess.PIPE):
    """The running process of `nfold lab WORDS`."""
    return subprocess.Popen([server.binary(), "lab", *map(str, words)], stdout=stdout, stderr=subprocess.PIPE, text=True,
                            env=environment(env))


def interrupt_it(process, timeout=120):
    """Sends SIGINT as soon as the process looks for it; its exit code, standard output and standard
    error."""
    end = time.monotonic() + timeout
    while True:
        assert process.poll() is None and time.monotonic() < end, process.communicate()
        with open(f"/proc/{process.pid}/status") as f:
            caught = next(int(line.split()[1], 16) for line in f if line.startswith("SigCgt"))
        if caught >> (signal.SIGINT - 1) & 1:
            break
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=timeout)
    return process.returncode, out, err


def measured(*words, stdin=subprocess.DEVNULL, env=None):
    """Runs `nfold lab WORDS`, which must succeed; the largest resident size of its process in
    bytes."""
    with tempfile.TemporaryFile("w+") as said:
        child = subprocess.Popen([server.binary(), "lab", *map(str, words)], stdin=stdin, stdout=said, stderr=said, env=environment(env))
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = status
        said.seek(0)
        assert status == 0, f"{words}: {status}\n{said.read()}"
    return usage.ru_maxrss << 10


def environment(more):
    """Ours without passwords and option files of the user who runs the tests."""
    clean = {k: v for k, v in os.environ.items() if k not in ("NFOLD_LAB_PASSWORD", "MYSQL_PWD")}
    clean["HOME"] = "/nonexistent"
    clean.update(more or {})
    return clean


def dsn(srv, database="lab", user="root"):
    """Where a test's server is."""
    return f"mysql://{user}@127.0.0.1:{srv.port}/{database}"


def read(path):
    """A JSON file."""
    with open(path) as f:
        return json.load(f)
