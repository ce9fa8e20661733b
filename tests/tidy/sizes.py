"""The ten longest files, functions and paragraphs: sizes are for judgement and fail nothing."""

import re

from source import Rust, matching_brace

FUNCTION = re.compile(r"\bfn\s+(\w+)")
COUNT = 10


def report(tree):
    rust = [(p, tree.text(p)) for p in tree.with_suffix(".rs")]
    rust = [(p, source) for p, source in rust if isinstance(source, Rust)]
    yield "longest files (lines):"
    yield from longest((len(source.lines), path) for path, source in rust)
    yield "longest functions (lines):"
    yield from longest(found for path, source in rust for found in functions(path, source))
    yield "longest paragraphs (words):"
    documents = [p for p in tree.with_suffix(".md") if tree.text(p)]
    yield from longest(found for path in documents for found in paragraphs(path, tree.text(path)))


def longest(sizes):
    for size, place in sorted(sizes, key=lambda s: (-s[0], s[1]))[:COUNT]:
        yield f"  {size:5}  {place}"


def functions(path, source):
    """Lines and place of each function that has a body of more than a few lines."""
    code = source.code
    lines = source.lines
    for m in FUNCTION.finditer(code):
        first = source.line_of(m.start())
        start = body_of(code, m.end())
        if start is None:
            continue
        # rustfmt closes a body at the indentation of its first line.
        indent = lines[first - 1][: len(lines[first - 1]) - len(lines[first - 1].lstrip())]
        last = source.line_of(start)
        while last < len(lines) and lines[last - 1] != indent + "}":
            last += 1
        if code[start : start + 200].find("}") >= 0 and last >= len(lines):
            last = source.line_of(matching_brace(code, start))
        yield last - first + 1, f"{path}:{first} {m[1]}"


def body_of(code, at):
    """The offset of the brace that opens the body; None for a declaration without one."""
    m = re.compile(r"[{;]").search(code, at)
    while (
        m and m.group() == ";" and code.count("[", at, m.start()) > code.count("]", at, m.start())
    ):
        m = re.compile(r"[{;]").search(code, m.end())
    return m.start() if m and m.group() == "{" else None


def paragraphs(path, source):
    size, first, fenced = 0, 0, False
    for number, line in enumerate([*source.lines, ""], 1):
        text = line.strip()
        if text.startswith(("```", "~~~")):
            fenced = not fenced
        starts_anew = not text or fenced or text.startswith(("|", "#", "```", "- ", "* "))
        if starts_anew and size:
            yield size, f"{path}:{first}"
            size = 0
        if text and not fenced and not text.startswith(("|", "#", "```")):
            first = first if size else number
            size += len(text.split())
