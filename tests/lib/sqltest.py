"""Files of SQL statements with the answers that a real MySQL gave.

A file is a list of blocks, separated by empty lines, in the manner of sqllogictest:

    # a comment
    ok                         the statement succeeded; what follows `----` is affected rows, last
    insert id, info
    INSERT INTO t VALUES (1)
    ----
    affected 1

    error                      it failed
    SELECT * FROM nowhere
    ----
    1146: Table 'd.nowhere' doesn't exist

    query                      it gave rows: the columns' names and types, then rows, tab-separated
    SELECT 1
    ----
    1:bigint
    1

    describe                   it gave rows: how the protocol describes each column, and not the
    rows
    SELECT 1
    ----
    1: bigint length 2 decimals 0 charset 63 not_null binary

    file NAME                  a text file that statements read as `$FILES/NAME`, with the escapes
    a	1                        \\n, \\t, \\xNN and \\\\; a `\\` at the end joins two lines

    contents NAME              what a statement wrote to `$FILES/NAME`
    ----
    a\t1\n

After rows or counts, `warnings` begins the list that SHOW WARNINGS gives. `query sorted` compares
rows in any order,
`query rows` leaves warnings out.
`skip reason` before a block leaves its statement out of the comparison and says why; `connection
NAME` switches to another
connection. Values are as the text protocol sends them; \\t, \\n, \\0 and \\\\ are escaped, NULL is
NULL, and bytes that are not
UTF-8 are written 0x...; an empty string is written ''.
"""

import codecs
import os
import re
import shutil
import tempfile

import pymysql


def utf8_or_not(name):
    """The codec `any_utf8`: bytes that are no UTF-8 are kept, and shown as such (names of columns
    in other character sets)."""
    if name != "any_utf8":
        return None
    return codecs.CodecInfo(name=name, encode=lambda text, _=None: (text.encode("utf-8", "surrogateescape"), len(text)),
                            decode=lambda data, _=None: (bytes(data).decode("utf-8", "surrogateescape"), len(data)))


codecs.register(utf8_or_not)

TYPES = {0: "decimal", 1: "tinyint", 2: "smallint", 3: "int", 4: "float", 5: "double", 6: "null", 7: "timestamp",
         8: "bigint", 9: "mediumint", 10: "date", 11: "time", 12: "datetime", 13: "year", 15: "varchar", 16: "bit",
         245: "json", 246: "decimal", 247: "enum", 248: "set", 249: "tinyblob", 250: "mediumblob", 251: "longblob",
         252: "blob", 253: "varchar", 254: "char", 255: "geometry"}


FLAGS = ["not_null", "pri_key", "unique_key", "multiple_key", "blob", "unsigned", "zerofill", "binary", "enum", "auto_increment",
         "timestamp", "set", "no_default", "on_update", "part_key", "num"]


def describe(field):
    """A column's description in the protocol as a file shows it."""
    flags = "".join(" " + name for bit, name in enumerate(FLAGS) if field.flags >> bit & 1)
    return f"{show(field.name)}: {TYPES.get(field.type_code, field.type_code)} length {field.length} decimals {field.scale} charset {field.charsetnr}{flags}"


class Block:
    """One statement and what it must answer."""

    def __init__(self, kind, sql, expected=(), comments=(), skip=None, connection=None):
        self.kind, self.sql, self.expected = kind, sql, list(expected)
        self.comments, self.skip, self.connection = list(comments), skip, connection

    def text(self):
        lines = list(self.comments)
        if self.connection:
            lines.append(f"connection {self.connection}")
        if self.skip:
            lines.append(f"skip {self.skip}")
        lines += [self.kind, self.sql] if self.sql else [self.kind]
        if self.expected:
            lines += ["----"] + self.expected
        return "\n".join(lines) + "\n"


def parse(path):
    """Blocks of a file. A block without a kind line is one that was never recorded."""
    with open(path, encoding="utf-8") as f:
        chunks = f.read().replace("\r\n", "\n").split("\n\n")
    blocks = []
    for chunk in chunks:
        lines = [l for l in chunk.strip("\n").split("\n")]
        comments, skip, connection, kind = [], None, None, None
        while lines and (lines[0].startswith("#") or not lines[0].strip()):
            comments.append(lines.pop(0))
        while lines and lines[0].split(" ")[0] in ("skip", "connection"):
            word, _, rest = lines.pop(0).partition(" ")
            if word == "skip":
                skip = rest
            else:
                connection = rest.strip()
        if lines and (lines[0] in ("ok", "error", "query", "query sorted", "query rows", "describe")
                      or lines[0].startswith(("file ", "contents "))):
            kind = lines.pop(0)
        expected = []
        if "----" in lines:
            at = lines.index("----")
            lines, expected = lines[:at], lines[at + 1:]
        if not lines and not (kind or "").startswith(("file ", "contents ")):
            if comments and any(c.strip() for c in comments):
                blocks.append(Block("comment", "", comments=comments))
            continue
        blocks.append(Block(kind or "new", "\n".join(lines), expected, comments, skip, connection))
    return blocks


def show(value):
    """A text-protocol value as a file shows it."""
    if value is None:
        return "NULL"
    if isinstance(value, str):
        value = value.encode("utf-8", "surrogateescape")
    try:
        text = value.decode("utf-8")
    except UnicodeDecodeError:
        return "0x" + value.hex().upper()
    if text == "":
        return "''"
    return (text.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r").replace("\0", "\\0"))


def same(block, kind, lines):
    """Whether an answer is the recorded one.

    The four sizes of BLOB in a result's description count as one: which of them MySQL names for an
    expression follows from
    its temporary tables, and clients treat them alike."""
    def plain(answer):
        return [re.sub(r":(tiny|medium|long)blob\b", ":blob", answer[0])] + answer[1:] if answer else answer

    if kind != block.kind:
        return False
    return lines == block.expected or (kind.startswith("query") and plain(lines) == plain(block.expected))


def file_bytes(text):
    """The bytes of a `file` block."""
    text = (text + "\n").replace("\\\n", "")
    return codecs.escape_decode(text.encode("utf-8"))[0]


class FilesDirectory:
    """A directory that any server may read and write; removed at the end."""

    def __enter__(self):
        self.path = tempfile.mkdtemp(prefix="nfold-files-")
        os.chmod(self.path, 0o777)
        return self.path

    def __exit__(self, *_):
        shutil.rmtree(self.path)


def empty(directory):
    """Removes the files of a directory."""
    for name in os.listdir(directory):
        os.remove(os.path.join(directory, name))


class Runner:
    """Runs blocks over connections to one server."""

    def __init__(self, host, port, user, password, database, files=None):
        """files: the directory that `$FILES` stands for, where the server may read and write."""
        self.where = dict(host=host, port=port, user=user, password=password, database=database)
        self.files = files
        self.connections = {}

    def connection(self, name):
        if name not in self.connections:
            conn = pymysql.connect(charset="utf8mb4", autocommit=True, conv={}, use_unicode=False,
                                   read_timeout=60, local_infile=True, **self.where)
            conn.encoding = "any_utf8"
            self.connections[name] = conn
        return self.connections[name]

    def close(self):
        for conn in self.connections.values():
            try:
                conn.close()
            except pymysql.err.Error:
                pass

    def path(self, block):
        return os.path.join(self.files, block.kind.split()[1])

    def run(self, block):
        """(kind, lines) of what the server answers."""
        if block.kind.startswith("file "):
            with open(self.path(block), "wb") as f:
                f.write(file_bytes(block.sql))
            return block.kind, []
        if block.kind.startswith("contents "):
            try:
                with open(self.path(block), "rb") as f:
                    return block.kind, [show(f.read())]
            except OSError as e:
                return block.kind, [e.strerror]
        kind, lines = self.answer(block)
        return kind, [line.replace(self.files, "$FILES") for line in lines] if self.files else lines

    def answer(self, block):
        sql = block.sql.replace("$FILES", self.files or "$FILES")
        conn = self.connection(block.connection or "main")
        cursor = conn.cursor()
        try:
            cursor.execute(sql)
        except pymysql.err.MySQLError as e:
            return "error", [f"{e.args[0]}: {show(e.args[1] if len(e.args) > 1 else '')}"]
        result = cursor._result
        lines = []
        if block.kind == "describe":
            cursor.fetchall()
            return "describe", [describe(f) for f in result.fields]
        if cursor.description is not None:
            kind = "query"
            lines.append("\t".join(f"{show(f.name) or ''}:{TYPES.get(f.type_code, f.type_code)}" for f in result.fields))
            rows = ["\t".join(show(v) for v in row) for row in cursor.fetchall()]
            if block.kind == "query sorted":
                rows.sort()
                kind = "query sorted"
            lines += rows
            if block.kind == "query rows":
                return "query rows", lines
        else:
            kind = "ok"
            lines.append(f"affected {cursor.rowcount}")
            if cursor.lastrowid:
                lines[0] += f" last_insert_id {cursor.lastrowid}"
            if result.message:  # PyMySQL leaves the length in front of it
                lines[0] += f" info {show(result.message[1:])}"
        # EXPLAIN's note is the statement rewritten: its wording is no interface
        if result.warning_count and not block.sql.lstrip().lower().startswith(("show warnings", "explain")):
            cursor.execute("SHOW WARNINGS")
            lines.append(f"warnings {result.warning_count}")
            lines += ["\t".join(show(v) for v in row) for row in cursor.fetchall()]
        return kind, lines
