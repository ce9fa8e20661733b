"""Commands and answers as packets, so that two servers can be compared byte by byte: a raw client,
and a proxy that keeps what a client sends."""
import re
import socket
import struct
import subprocess
import threading

import pymysql
from pymysql.constants import CLIENT

QUERY, PREPARE, EXECUTE, LONG_DATA, CLOSE, QUIT = 0x03, 0x16, 0x17, 0x18, 0x19, 0x01
MORE_RESULTS = 0x08
INDEX_USE = 0x30  # NO_GOOD_INDEX_USED, NO_INDEX_USED: about the plan, not the answer
DEPRECATE_EOF = 1 << 24


class Command:
    """One command as a client sent it. `sql`: the text, for EXECUTE that of its statement;
    `statement`: the id that PREPARE was given."""

    def __init__(self, payload, sql, statement=None):
        self.payload, self.sql, self.statement = payload, sql, statement


def lenenc(data, at):
    """(integer, position behind it); None stands for NULL."""
    first = data[at]
    if first < 0xFB:
        return first, at + 1
    if first == 0xFB:
        return None, at + 1
    size = {0xFC: 2, 0xFD: 3, 0xFE: 8}[first]
    return int.from_bytes(data[at + 1:at + 1 + size], "little"), at + 1 + size


class Session:
    """A logged-in connection on which whole packets are sent and read.

    deprecate_eof: requests results without EOF packets. count_warnings: without it, the number of a
    result's warnings reads 0."""

    def __init__(self, deprecate_eof=False, count_warnings=True, **where):
        flags = CLIENT.MULTI_STATEMENTS | (DEPRECATE_EOF if deprecate_eof else 0)
        self.conn = pymysql.connect(charset="utf8mb4", client_flag=flags, init_command=None, read_timeout=60, autocommit=None, **where)
        self.deprecate_eof, self.count_warnings = deprecate_eof, count_warnings
        self.statements = {}

    def close(self):
        self.conn.close()

    def packet(self):
        """One whole answer packet, its header left out."""
        payload = b""
        while True:
            header = self.conn._read_bytes(4)
            size = int.from_bytes(header[:3], "little")
            payload += self.conn._read_bytes(size)
            if size < 0xFFFFFF:
                return payload

    def run(self, command):
        """Sends a command; the packets of its answer. Statement ids are put into this connection's
        own terms, and are 0 in the answer; of the
        parameters' descriptions, which the server infers, the number is kept."""
        payload, kind = command.payload, command.payload[0]
        if kind in (EXECUTE, LONG_DATA, CLOSE) and command.statement in self.statements:
            payload = payload[:1] + struct.pack("<I", self.statements[command.statement]) + payload[5:]
        for at in range(0, len(payload) + 1, 0xFFFFFF):
            part = payload[at:at + 0xFFFFFF]
            self.conn._write_bytes(struct.pack("<I", len(part))[:3] + bytes([at // 0xFFFFFF & 255]) + part)
        if kind in (CLOSE, LONG_DATA, QUIT):
            return []
        if kind == PREPARE:
            return self.prepared(command)
        packets = []
        while self.result(packets):
            pass
        return packets

    def query(self, sql):
        return self.run(Command(bytes([QUERY]) + sql.encode(), sql))

    def prepared(self, command):
        first = self.packet()
        if first[0] == 0xFF:
            return [first]
        self.statements[command.statement] = struct.unpack_from("<I", first, 1)[0]
        packets = [first[:1] + bytes(4) + first[5:]]
        columns, parameters = struct.unpack_from("<HH", first, 5)
        for count, keep in ((parameters, False), (columns, True)):
            definitions = [self.packet() for _ in range(count)]
            if count and not self.deprecate_eof:
                definitions.append(self.packet())
            packets += definitions if keep else [len(definitions).to_bytes(2, "little")]
        return packets

    def result(self, packets):
        """Reads one result; whether another follows."""
        first = self.packet()
        packets.append(first)
        if first[0] == 0xFF:
            return False
        if first[0] == 0:
            _, at = lenenc(first, 1)
            _, at = lenenc(first, at)
            return bool(struct.unpack_from("<H", first, at)[0] & MORE_RESULTS)
        columns, _ = lenenc(first, 0)
        for _ in range(columns):
            packets.append(self.packet())
        if not self.deprecate_eof:
            self.packet()  # says nothing that the one behind the rows does not
        while True:
            packet = self.packet()
            end = packet[0] == 0xFE and len(packet) < 0xFFFFFF and (self.deprecate_eof or len(packet) < 9)
            if end:  # EOF: warnings, status; OK with the header of EOF: two counts first
                at = lenenc(packet, lenenc(packet, 1)[1])[1] if self.deprecate_eof else 3
                status = struct.unpack_from("<H", packet, at)[0]
                packet = packet[:at] + struct.pack("<H", status & ~INDEX_USE) + packet[at + 2:]
                if not self.count_warnings:
                    after = at + 2 if self.deprecate_eof else 1
                    packet = packet[:after] + b"\0\0" + packet[after + 2:]
            packets.append(packet)
            if end or packet[0] == 0xFF:
                return bool(end and status & MORE_RESULTS)


class Recorder:
    """A proxy before a server on 127.0.0.1: each connection's commands gather in `sessions`, in the
    order of the connections."""

    def __init__(self, port):
        self.target = port
        self.sessions = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def close(self):
        self.listener.close()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            commands = []
            self.sessions.append(commands)
            threading.Thread(target=self.serve, args=(client, commands), daemon=True).start()

    def serve(self, client, commands):
        server = socket.create_connection(("127.0.0.1", self.target))
        pending = []  # PREPARE commands whose answer gives their id
        threading.Thread(target=self.answers, args=(server, client, pending), daemon=True).start()
        texts = {}
        with client, server, client.makefile("rb") as stream:
            while len(header := stream.read(4)) == 4:
                payload = stream.read(int.from_bytes(header[:3], "little"))
                if header[3] == 0:
                    self.keep(payload, commands, pending, texts)
                server.sendall(header + payload)
            server.shutdown(socket.SHUT_WR)

    @staticmethod
    def keep(payload, commands, pending, texts):
        kind = payload[0]
        if kind == QUIT:
            return
        if kind == QUERY:
            commands.append(Command(payload, payload[1:].decode()))
        elif kind == PREPARE:
            command = Command(payload, payload[1:].decode())
            commands.append(command)
            pending.append((command, texts))
        elif kind in (EXECUTE, LONG_DATA, CLOSE):
            statement = struct.unpack_from("<I", payload, 1)[0]
            commands.append(Command(payload, texts.get(statement, "?"), statement))
        else:
            commands.append(Command(payload, f"command {kind}"))

    @staticmethod
    def answers(server, client, pending):
        try:
            while data := server.recv(1 << 16):
                if pending:  # the client waits for this answer, so it stands alone
                    command, texts = pending.pop()
                    if data[4] == 0:
                        command.statement = struct.unpack_from("<I", data, 5)[0]
                        texts[command.statement] = command.sql
                client.sendall(data)
            client.shutdown(socket.SHUT_WR)
        except OSError:
            pass


def sysbench_commands(port, script, *words, database, cwd=None):
    """Runs a sysbench script against the server on `port`; the commands of each of its connections.
    """
    recorder = Recorder(port)
    command = ["sysbench", script, "--db-driver=mysql", "--mysql-host=127.0.0.1", f"--mysql-port={recorder.port}", "--mysql-user=root",
               "--mysql-password=", f"--mysql-db={database}", *words]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=cwd, timeout=600)
    recorder.close()
    if done.returncode or "FATAL" in done.stdout:
        raise RuntimeError(f"{' '.join(command)}\n{done.stdout[-2500:]}")
    return [commands for commands in recorder.sessions if commands]


def shape(sql):
    """A statement with its literals taken out: what counts as one shape."""
    return re.sub(r"\?(, ?\?)+", "?..", re.sub(r"\b\d+\b|'[^']*'", "?", sql))
