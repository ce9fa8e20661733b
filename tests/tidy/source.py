"""The files of a source tree: which there are, their texts, and Rust split into code, comments and
strings."""

import bisect
import functools
import os
import re
import subprocess
from dataclasses import dataclass, field

SKIPPED_FOLDERS = {".git", "target", "data", "__pycache__", "shared"}

# One token that is not plain Rust code: a comment, a string or a character.
RUST_TOKEN = re.compile(
    r"//[^\n]*"
    r"|/\*.*?\*/"
    r'|\bb?r(?P<hashes>#*)".*?"(?P=hashes)'
    r'|b?"(?:\\.|[^"\\])*"'
    r"|b?'(?:\\(?:u\{[^}]*\}|x..|.)|[^'\\\n])'",
    re.S,
)
TEST_MODULE = re.compile(
    r"#\[cfg\((?:all\()?test\b[^\]]*\]\s*(?:#\[[^\]]*\]\s*)*"
    r"(?:pub(?:\([^)]*\))?\s+)?mod\s+\w+\s*\{"
)
LIST_ITEM = re.compile(r"\s*(?:[-*+]|\d+[.)])\s")
NOT_NEWLINE = re.compile(r"[^\n]")


@dataclass(frozen=True)
class Finding:
    """A place that breaks a rule, and what to do about it. Known findings are counted by `key`: the
    path, unless the finding is about a folder."""

    rule: str
    path: str
    line: int
    advice: str
    folder: str = ""

    @property
    def key(self):
        return self.folder or self.path

    def __str__(self):
        return f"{self.path}:{self.line}: {self.rule}: {self.advice}"


@dataclass
class Text:
    """A text and the line number of each offset in it."""

    text: str

    @functools.cached_property
    def line_starts(self):
        return [0] + [m.end() for m in re.finditer("\n", self.text)]

    @functools.cached_property
    def lines(self):
        return self.text.split("\n")

    def line_of(self, offset):
        return bisect.bisect_right(self.line_starts, offset)

    def column_of(self, offset):
        """From 0."""
        return offset - self.line_starts[self.line_of(offset) - 1]


@dataclass
class Rust(Text):
    """A Rust file. `code` has the same length and lines as `text`, with spaces in place of comments
    and of what is inside strings. `comments` and `strings` are pairs of offset and text."""

    code: str = ""
    comments: list = field(default_factory=list)
    strings: list = field(default_factory=list)

    @functools.cached_property
    def header(self):
        """The leading `//!` comments: pairs of offset and text."""
        found = []
        for offset, comment in self.comments:
            if comment.startswith("//!"):
                found.append((offset, comment))
            elif self.code[:offset].strip():
                break
        return found

    @functools.cached_property
    def test_spans(self):
        """The offsets of the bodies of `#[cfg(test)] mod ... { ... }`."""
        return [
            (m.start(), matching_brace(self.code, m.end() - 1))
            for m in TEST_MODULE.finditer(self.code)
        ]

    @functools.cached_property
    def code_without_tests(self):
        code = self.code
        for start, end in self.test_spans:
            code = code[:start] + NOT_NEWLINE.sub(" ", code[start:end]) + code[end:]
        return code


def matching_brace(code, start):
    """The offset behind the brace that closes the one at `start`."""
    depth = 0
    for m in re.compile(r"[{}]").finditer(code, start):
        depth += 1 if m.group() == "{" else -1
        if depth == 0:
            return m.end()
    return len(code)


def blank(text):
    return " " * len(text) if "\n" not in text else NOT_NEWLINE.sub(" ", text)


def split_rust(text):
    pieces, comments, strings, at = [], [], [], 0
    for m in RUST_TOKEN.finditer(text):
        token, start = m.group(), m.start()
        pieces.append(text[at:start])
        if token.startswith("/"):
            comments.append((start, token))
        elif '"' in token and not token.endswith("'"):
            inside = token.index('"') + 1
            strings.append((start + inside, token[inside:].rstrip("#")[:-1]))
        pieces.append(blank(token))
        at = m.end()
    pieces.append(text[at:])
    return Rust(text, "".join(pieces), comments, strings)


class Tree:
    """The files below `root` that git tracks or would track; all files where there is no git."""

    def __init__(self, root):
        self.root = str(root)
        self.files = sorted(self._list())
        self.present = set(self.files)
        self.folders = {parent for path in self.files for parent in parents(path)}
        self._texts = {}

    def _list(self):
        git = ["git", "-C", self.root, "ls-files", "-z", "--cached", "--others"]
        if os.path.exists(os.path.join(self.root, ".git")):
            done = subprocess.run(git + ["--exclude-standard"], capture_output=True, check=True)
            paths = done.stdout.decode().split("\0")
            return {p for p in paths if p and os.path.isfile(os.path.join(self.root, p))}
        found = set()
        for folder, folders, files in os.walk(self.root):
            folders[:] = [f for f in folders if f not in SKIPPED_FOLDERS]
            found |= {os.path.relpath(os.path.join(folder, f), self.root) for f in files}
        return found

    def with_suffix(self, *suffixes):
        return [path for path in self.files if path.endswith(suffixes)]

    def text(self, path):
        """A `Text`, or a `Rust` for a Rust file; None for bytes that are not text."""
        if path not in self._texts:
            with open(os.path.join(self.root, path), "rb") as file:
                self._texts[path] = decoded(path, file.read())
        return self._texts[path]

    @functools.cached_property
    def scripts(self):
        """Executable files without a suffix that begin with `#!`."""
        bare = [p for p in self.files if "." not in os.path.basename(p)]
        return [p for p in bare if self.text(p) and self.text(p).text.startswith("#!")]


def decoded(path, data):
    if b"\0" in data:
        return None
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    return split_rust(text) if path.endswith(".rs") else Text(text)


def parents(path):
    while "/" in path:
        path = path.rsplit("/", 1)[0]
        yield path


def group_of(path):
    """The crate, or the top folder, that a file is counted with."""
    parts = path.split("/")
    return "/".join(parts[:2]) if parts[0] == "crates" else parts[0] if len(parts) > 1 else "."


def indented_code(lines):
    """The numbers of the lines of Markdown that are indented code: four spaces behind a blank line,
    outside of lists."""
    found, in_list, in_code, after_blank = [], False, False, True
    for number, line in enumerate(lines, 1):
        if not line.strip():
            after_blank = True
            continue
        if line.startswith("    ") and not in_list and (after_blank or in_code):
            in_code = True
            found.append(number)
        else:
            in_code = False
            in_list = bool(LIST_ITEM.match(line)) or in_list and line.startswith(" ")
        after_blank = False
    return found
