"""Lines of prose and comments wrap at 100 columns.

Apart: tables, code blocks, pictures in comments, lines that only a URL or another single word makes
long, and the help texts of make targets.
"""

import os
import re

from source import Finding, Rust, indented_code

COLUMNS = 100
EXEMPT = ("tests/fixtures/v", "tests/lockstep/known", "tests/lockstep/summary")
LINE_COMMENT = {
    ".py": "#",
    ".sh": "#",
    ".toml": "#",
    ".test": "#",
    ".iso": "#",
    ".lua": "--",
    ".c": "//",
}
FENCE = re.compile(r"^\s*(?://[/!])?\s*(```|~~~)")
DOCSTRING = re.compile(r'^[ \t]*[rR]?("""|\'\'\')(.*?)\1', re.M | re.S)


def check(tree):
    for path in tree.files:
        if path.startswith(EXEMPT):
            continue
        if path.endswith(".md"):
            numbers = long_prose(tree.text(path).lines)
        elif path.endswith(".rs"):
            source = tree.text(path)
            numbers = long_comments(source) if isinstance(source, Rust) else ()
        else:
            numbers = long_line_comments(tree, path)
        for line in numbers:
            yield Finding("wrap", path, line, f"wrap at {COLUMNS} columns")


def is_long(line):
    """Whether a line could be shorter: it is too long, and not because of its last word alone."""
    if len(line) <= COLUMNS:
        return False
    indent = re.match(r"\s*(?://[/!]?|#+|--|[-*>]|\d+\.)*\s*", line).end()
    words = line[indent:].split()
    shortened = [w for w in words if "://" not in w]
    if len(shortened) < len(words) and indent + len(" ".join(shortened)) <= COLUMNS:
        return False
    return " " in line[indent:COLUMNS].strip() or len(words) > 1


def long_prose(lines):
    fenced, found, code = False, [], set(indented_code(lines))
    for number, line in enumerate(lines, 1):
        if number in code:
            continue
        if FENCE.match(line):
            fenced = not fenced
        elif not fenced and not line.lstrip().startswith("|") and is_long(line):
            if not re.match(r"^\s*(\[[^\]]+\]:|<)", line):
                found.append(number)
    return found


def long_comments(source):
    found, fenced, last = [], False, 0
    for offset, comment in source.comments:
        first = source.line_of(offset)
        if first != last + 1:
            fenced = False
        for number, text in enumerate(comment.split("\n"), first):
            last = number
            line = source.lines[number - 1]
            if FENCE.match(text):
                fenced = not fenced
            elif not fenced and len(line) > COLUMNS and not re.match(r"//[/!]?\s*\|", text):
                if is_long(line) and line.rstrip().endswith(text.rstrip()):
                    found.append(number)
    return found


def long_line_comments(tree, path):
    suffix = os.path.splitext(path)[1]
    if suffix not in LINE_COMMENT and os.path.basename(path) != "Makefile":
        if path not in tree.scripts:
            return []
    source = tree.text(path)
    if source is None:
        return []
    mark = LINE_COMMENT.get(suffix, "#")
    lines = source.lines
    found = {
        number
        for number, line in enumerate(lines, 1)
        if len(line) > COLUMNS and line.lstrip().startswith(mark) and is_long(line)
    }
    if suffix == ".py" or lines[0].startswith("#!") and "python" in lines[0]:
        for m in DOCSTRING.finditer(source.text):
            first = source.line_of(m.start())
            for number in range(first, source.line_of(m.end()) + 1):
                if is_long(lines[number - 1]):
                    found.add(number)
    return sorted(found)
