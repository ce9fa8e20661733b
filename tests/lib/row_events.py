"""Row events as text, to compare those of two servers."""

import struct

NON_BLOCKING = 1
COM_BINLOG_DUMP = 0x12
# What the texts have of the flags: the end of a statement, and no checks of foreign keys.
FLAGS = 3
KINDS = {29: "Rows_query", 30: "Write_rows", 31: "Update_rows", 32: "Delete_rows", 39: "Partial_update_rows"}


def events(conn, file, start):
    """The events of a file from a position on, without checksums."""
    conn.cursor().execute("SET @source_binlog_checksum = 'CRC32'")
    conn._execute_command(COM_BINLOG_DUMP, struct.pack("<IHI", start, NON_BLOCKING, 9999) + file.encode())
    while True:
        packet = conn._read_packet()
        data = bytes(packet._data)
        if packet.is_eof_packet():
            return
        yield data[1:-4]


def image(kind, body):
    """The columns of the images, as bits, and the rows."""
    count = body[0]
    size = (count + 7) // 8
    both = kind in ("Update_rows", "Partial_update_rows")
    words = []
    for n in range(2 if both else 1):
        # A MySQL may set bits behind those of the columns.
        bits = int.from_bytes(body[1 + n * size:1 + (n + 1) * size], "little") & ((1 << count) - 1)
        words.append(f"{bits:0{count}b}"[::-1])
    words.append(body[1 + len(words) * size:].hex())
    return " ".join(words)


def shown(conn, file, start):
    """The row events and texts of statements behind a position: names, flags, columns of the
    images, rows."""
    lines = []
    for event in events(conn, file, start):
        kind, body = KINDS.get(event[4]), event[19:]
        if kind == "Rows_query":
            lines.append(f"{kind} {body[1:].decode()}")
        elif kind is not None:
            flags = struct.unpack_from("<H", body, 6)[0] & FLAGS
            lines.append(f"{kind} {flags} {image(kind, body[10:])}")
    return lines
