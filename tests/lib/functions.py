"""Runs test_* functions of the test_*.py files of a directory, each file with a running server of
its own (OPTIONS: its settings; FIRST: the test that the others
of the file need, which runs whichever is chosen)."""
import glob
import importlib.util
import os
import sys
import time
import traceback

import server


def main(here):
    """Runs the test_* functions of the files in directory `here` whose names hold a word of the
    command line (all: no words)."""
    wanted = sys.argv[1:]
    passed = failed = 0
    for path in sorted(glob.glob(os.path.join(here, "test_*.py"))):
        spec = importlib.util.spec_from_file_location(os.path.basename(path)[:-3], path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        tests = [(n, f) for n, f in vars(module).items() if n.startswith("test_")]
        chosen = [(n, f) for n, f in tests if not wanted or any(w in n or w in path for w in wanted)]
        if not chosen:
            continue
        first = getattr(module, "FIRST", None)
        tests = [(n, f) for n, f in tests if n == first or (n, f) in chosen]
        srv = server.Server(getattr(module, "OPTIONS", {})).start()
        for name, test in tests:
            start = time.monotonic()
            try:
                if not srv.alive():
                    srv.start()
                test(srv)
                assert srv.alive(), "the server died"
                passed += 1
                print(f"ok      {os.path.basename(path)} {name} ({time.monotonic() - start:.1f} s)", flush=True)
            except Exception:
                failed += 1
                print(f"FAILED  {os.path.basename(path)} {name}\n{traceback.format_exc()}{srv.tail(1500)}", flush=True)
        try:
            srv.__exit__(None, None, None)
        except RuntimeError as e:
            failed += 1
            print(f"FAILED  {os.path.basename(path)} shutdown: {e}")
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed or not passed else 0)
