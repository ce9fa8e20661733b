"""Definitions of all kinds beside writes, rollbacks, snapshots, KILL and a pool that changes its
size; what must hold is in tests/lib/storm.py. tests/crash/ddl-storm has
the long rounds, with kill -9 in between."""
import server
import storm

SECONDS = 6
OPTIONS = storm.OPTIONS


def test_definitions_beside_everything(_):
    srv = server.Server(OPTIONS)
    with srv:
        case = storm.Storm(srv, 1)
        case.prepare()
        # On a slow machine some may need longer than that to get anywhere.
        idle = None
        for _ in range(5):
            case.run(SECONDS)
            now = {name for name, (done, _) in case.counts().items() if not done}
            idle = now if idle is None else idle & now
            if not idle:
                break
        assert not idle, f"never succeeded: {idle}"
        before = case.check()
        srv.stop()
        srv.start()
        assert case.check() == before, "other rows after a restart"
