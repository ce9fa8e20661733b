"""A replication source that sends a recorded binary log: it speaks as much of the protocol as a
replica needs, on a thread of the test."""

import re
import socket
import struct
import threading

OK = b"\0\0\0\2\0\0\0"
EOF = b"\xfe\0\0\2\0"
MARIADB_GTID, FIRST = 162, 4
COM_QUERY, COM_BINLOG_DUMP, COM_REGISTER, COM_BINLOG_DUMP_GTID = 3, 0x12, 0x15, 0x1E
HEADER = struct.Struct("<IBIIIH")


def events(data):
    """The events of a file, each with its checksum."""
    at = 4
    while at < len(data):
        size = HEADER.unpack_from(data, at)[3]
        yield data[at:at + size]
        at += size


class Source:
    """Serves `data`, the bytes of a file. `with Source(data) as s:` listens on s.port.

    It sends the whole file to a dump by GTIDs, and from the position to a dump by position; then it
    keeps the connection open. With `mariadb` it is a MariaDB, which sends only transactions behind
    the replica's position in their domain; `settings` gets the replica's SET statements.
    """

    def __init__(self, data, name="binlog.000001", checksums=True, mariadb=False):
        self.data, self.name, self.checksums, self.mariadb = data, name, checksums, mariadb
        self.settings = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.dumps = 0
        self.open = []
        self.thread = threading.Thread(target=self.accept, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.listener.close()
        self.drop()

    def drop(self):
        """Closes all connections."""
        for client in self.open:
            try:
                client.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        self.open.clear()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            self.open.append(client)
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        try:
            Session(self, client).run()
        except (OSError, EOFError):
            pass
        finally:
            client.close()


class Session:
    def __init__(self, source, client):
        self.source, self.client, self.sequence, self.domains = source, client, 0, {}

    def send(self, payload):
        while True:
            part, payload = payload[:0xFFFFFF], payload[0xFFFFFF:]
            self.client.sendall(struct.pack("<I", len(part))[:3] + bytes([self.sequence & 255]) + part)
            self.sequence += 1
            if len(part) < 0xFFFFFF:
                return

    def read(self, n):
        out = b""
        while len(out) < n:
            part = self.client.recv(n - len(out))
            if not part:
                raise EOFError
            out += part
        return out

    def receive(self):
        header = self.read(4)
        self.sequence = header[3] + 1
        return self.read(int.from_bytes(header[:3], "little"))

    def run(self):
        low, high = 0xF7FF & ~0x0800, 0x0008 | 0x0020
        version = b"5.5.5-10.11.19-MariaDB-recorded" if self.source.mariadb else b"9.7.4-recorded"
        self.send(b"\x0a" + version + b"\0" + struct.pack("<I", 1) + b"12345678\0" + struct.pack("<H", low)
                  + b"\x2d\2\0" + struct.pack("<H", high) + b"\x15" + bytes(10) + b"123456789012\0"
                  + b"mysql_native_password\0")
        self.receive()
        self.send(OK)
        while True:
            command = self.receive()
            if command[0] == COM_QUERY:
                self.query(command[1:].decode())
            elif command[0] == COM_REGISTER:
                self.send(OK)
            elif command[0] == COM_BINLOG_DUMP:
                return self.dump(int.from_bytes(command[1:5], "little"))
            elif command[0] == COM_BINLOG_DUMP_GTID:
                return self.dump(4)
            else:
                return

    def query(self, sql):
        if sql.startswith("SET"):
            self.source.settings.append(sql)
            state = re.search(r"@slave_connect_state = '([^']*)'", sql)
            for gtid in state.group(1).split(",") if state and state.group(1) else []:
                domain, _, sequence = map(int, gtid.split("-"))
                self.domains[domain] = sequence
            return self.send(OK)
        row = ["1", "CRC32" if self.source.checksums else "NONE", "1"]
        if "explicit_defaults_for_timestamp" in sql:
            row = ["1"]
        if "@@server_uuid" in sql:
            row = ["00000000-0000-0000-0000-000000000001"]
        self.send(bytes([len(row)]))
        for _ in row:
            self.send(b"\3def\0\0\0\1x\0\x0c\x2d\0\0\1\0\0\xfd\0\0\0\0\0")
        self.send(EOF)
        self.send(b"".join(bytes([len(v)]) + v.encode() for v in row))
        self.send(EOF)

    def dump(self, position):
        source = self.source
        source.dumps += 1
        self.event(self.artificial(4, struct.pack("<Q", position) + source.name.encode()))
        at, known = FIRST, False
        for n, event in enumerate(events(source.data)):
            if event[4] == MARIADB_GTID:
                sequence, domain = struct.unpack_from("<QI", event, HEADER.size)
                known = sequence <= self.domains.get(domain, 0)
            if n == 0 or at >= position and not known:
                self.event(event)
            at += len(event)
        self.client.recv(1)

    def artificial(self, code, body):
        import zlib
        size = HEADER.size + len(body) + (4 if self.source.checksums else 0)
        event = HEADER.pack(0, code, 1, size, 0, 0x20) + body
        return event + (struct.pack("<I", zlib.crc32(event)) if self.source.checksums else b"")

    def event(self, event):
        self.send(b"\0" + event)
