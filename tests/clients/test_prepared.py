"""The workloads' prepared statements answer what their texts answer: sysbench sends both with the
same seed, and the rows are compared."""
import os
import struct

from wire import EXECUTE, PREPARE, QUERY, Command, Session, lenenc, sysbench_commands

BENCH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench", "lua")
ITEMS = ["in_list", "pk_point", "key_point_limit", "key_point", "key_point_no_data", "pk_range_limit"]
OLTP = ["oltp_point_select", "oltp_read_only", "select_random_points", "select_random_ranges"]
INTEGERS = {1: "b", 2: "h", 3: "i", 8: "q"}
UNSIGNED = 32


def columns(packets):
    """(type, flags) of each column of a result."""
    out = []
    for packet in packets[1:1 + packets[0][0]]:
        at = 0
        for _ in range(6):
            size, at = lenenc(packet, at)
            at += size
        _, _, kind, flags = struct.unpack_from("<HIBH", packet, at + 1)
        out.append((kind, flags))
    return out


def text_row(packet, kinds):
    row, at = [], 0
    for _ in kinds:
        size, at = lenenc(packet, at)
        row.append(None if size is None else packet[at:at + size])
        at += size or 0
    assert at == len(packet)
    return row


def binary_row(packet, kinds):
    """The values of a binary row as the text protocol writes them."""
    row, at = [], 1 + (len(kinds) + 9) // 8
    for i, (kind, flags) in enumerate(kinds):
        if packet[1 + (i + 2) // 8] >> (i + 2) % 8 & 1:
            row.append(None)
            continue
        if kind in INTEGERS:
            form = INTEGERS[kind]
            value = struct.unpack_from("<" + (form.upper() if flags & UNSIGNED else form), packet, at)[0]
            at += struct.calcsize(form)
            row.append(str(value).encode())
        else:
            size, at = lenenc(packet, at)
            value = packet[at:at + size]
            at += size
            if kind == 12:
                parts = struct.unpack("<HBBBBB", value.ljust(7, b"\0")[:7])
                value = "{:04}-{:02}-{:02} {:02}:{:02}:{:02}".format(*parts).encode()
            row.append(value)
    assert at == len(packet)
    return row


def answers(session, commands, kind, row):
    """The rows of each SELECT that `commands` send in one way."""
    out = []
    for c in commands:
        packets = session.run(c)
        if c.payload[0] == kind and c.sql.lstrip().startswith("SELECT"):
            assert packets[0][0] != 0xFF, (c.sql, packets)
            kinds = columns(packets)
            out.append((c.sql, [row(p, kinds) for p in packets[1 + len(kinds):-1]]))
    return out


def test_prepared_equals_text(srv):
    with srv.connect() as conn:
        conn.cursor().execute("CREATE DATABASE prepared")
    sizes = {"items": ["--items-rows=3000", "--items-groups=600"], "oltp": ["--tables=2", "--table-size=3000"]}
    for script, cwd in [(f"./{s}.lua", BENCH) for s in ITEMS] + [(s, None) for s in OLTP]:
        size = sizes["items" if cwd else "oltp"]
        if script in ("./in_list.lua", OLTP[0]):
            sysbench_commands(srv.port, script, *size, "prepare", database="prepared", cwd=cwd)
        found = []
        for prepared in (False, True):
            mode = f"--ps={'on' if prepared else 'off'}" if cwd else f"--db-ps-mode={'auto' if prepared else 'disable'}"
            captured = sysbench_commands(srv.port, script, *size, mode, "--rand-seed=3", "--threads=1", "--events=20", "--time=0", "run",
                                         database="prepared", cwd=cwd)
            session = Session(host="127.0.0.1", port=srv.port, user="root", password="", database="prepared")
            found.append(answers(session, max(captured, key=len), EXECUTE if prepared else QUERY, binary_row if prepared else text_row))
            session.close()
        texts, prepared = found
        assert len(texts) == len(prepared) >= 20 and any(rows for _, rows in texts), script
        for (sql, a), (_, b) in zip(texts, prepared):
            if "ORDER BY" not in sql.upper():
                # New statistics may change the plan between the two, and with it the order.
                a, b = sorted(a, key=repr), sorted(b, key=repr)
            assert a == b, (sql, a[:3], b[:3])


def test_cursor_error_is_the_whole_answer(srv):
    """MySQL's drivers expect no error between the columns of a cursor and its first row."""
    sql = "SELECT id, v FROM c WHERE id = 1 FOR UPDATE NOWAIT"
    with srv.connect() as holder:
        for statement in ["CREATE DATABASE cursors", "CREATE TABLE cursors.c (id INT PRIMARY KEY, v INT)", "INSERT INTO cursors.c VALUES (1, 1), (2, 2)", "BEGIN",
                          "SELECT * FROM cursors.c WHERE id = 1 FOR UPDATE"]:
            holder.cursor().execute(statement)
        for deprecate_eof in (False, True):
            session = Session(deprecate_eof, host="127.0.0.1", port=srv.port, user="root", database="cursors")
            session.run(Command(bytes([PREPARE]) + sql.encode(), sql, 1))
            answers = {}
            for cursor in (0, 1):
                execute = Command(struct.pack("<BIBI", EXECUTE, 1, cursor, 1), sql, 1)
                answers[cursor] = session.run(execute)
                assert answers[cursor][-1][:3] == b"\xff" + struct.pack("<H", 3572), answers
            assert len(answers[1]) == 1, answers
            # The connection is in step.
            assert session.query("SELECT 7")[-2] == b"\x017"
            session.close()
        holder.rollback()
        session = Session(host="127.0.0.1", port=srv.port, user="root", database="cursors")
        session.run(Command(bytes([PREPARE]) + sql.encode(), sql, 1))
        answer = session.run(Command(struct.pack("<BIBI", EXECUTE, 1, 0, 1), sql, 1))
        kinds = columns(answer)
        assert [binary_row(p, kinds) for p in answer[1 + len(kinds):-1]] == [[b"1", b"1"]]
        session.close()
