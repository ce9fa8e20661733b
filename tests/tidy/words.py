"""Plain words: the invented words that the code base once used for things that have names, and the
lengths and forms of names.

Each word has the field's term beside it. A pattern applies to names (identifiers in code), to prose
(comments, messages, documents), or to both, and is narrow enough to leave ordinary English alone.
"""

import os
import re
from dataclasses import dataclass

from source import Finding, Rust, blank

MAX_TEST_NAME = 60
CODE_SUFFIXES = (".rs", ".py", ".lua", ".c", ".toml", ".sh")
# Recorded or foreign text, and this tool, which has to name the words.
EXEMPT = (
    "tests/tidy/",
    "tests/fixtures/v",
    "tests/lockstep/",
    "crates/sql/tests/",
    "tools/collations/",
)


@dataclass(frozen=True)
class Word:
    """`prose` and `names` match from the start of the identifier that contains a seed; `names`
    matches all of it. If `is_module`, only `mod word` and `word::` count. `after` is a pattern of
    the text before the match, `where` the beginnings of the paths that are checked."""

    seeds: tuple
    write: str
    prose: str = ""
    names: str = ""
    is_module: bool = False
    after: str = ""
    where: tuple = ("",)


def both(seed, pattern, write):
    return Word((seed,), write, pattern, pattern)


def module(word, write):
    return Word((word,), write, names=word, is_module=True)


SQL_LAYERS = ("crates/types/", "crates/sql/", "crates/plan/", "crates/exec/", "crates/server/")
# Where these words name parts of the server; elsewhere they may be ordinary English.
SERVER = ("crates/", "docs/", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "README.md")
WORDS = [
    Word(
        ("guess",), "row-location hint", r"guess(?:es|ed|ing)?\b", r"\w*[Gg]uess\w*", where=SERVER
    ),
    Word(("points and ranges",), "equality keys and ranges", r"points and ranges\b"),
    Word(("pointset", "point_set"), "equality key, key set", names=r"\w*(?:PointSet|point_set)\w*"),
    Word(("leads",), "index lookup, probe", names="Leads"),
    module("leads", "index lookup, probe"),
    Word(("ask for", "asks for", "asked for"), "prefetch, request, need", r"ask(?:s|ed)? for\b"),
    Word(("ask_for", "asked_for"), "prefetch, request", names=r"\w*ask(?:ed)?_for\w*"),
    both("taker", r"\w*[Tt]akers?\b", "zero-copy row sink"),
    Word(
        ("in_place", "inplace"),
        "zero-copy row sink",
        names=r"(?!drop_)\w*(?:in_place|InPlace)\w*",
        where=SERVER,
    ),
    Word(
        ("settl",),
        "resolve visibility",
        r"settl(?:e|es|ed|ing)\b",
        r"\w*[Ss]ettl(?:e|ing)\w*",
        where=SERVER,
    ),
    Word(("as it stands", "as they stand"), "unchanged, is visible", r"as (?:it|they) stands?\b"),
    Word(("stands",), "is visible", names=r"\w*_stands|stands(?:_\w+)?", where=SERVER),
    Word(("bare entr",), "non-covering entry", r"bare entr(?:y|ies)\b"),
    Word(("bareentr", "bare_entr"), "non-covering entry", names=r"\w*(?:BareEntr|bare_entr)\w*"),
    both("limbo", r"\w*[Ll]imbo\w*", "orphaned-page list"),
    Word(
        ("nest",),
        "nested outer join",
        r"nests? of\b",
        r"[Nn]ests?|Nests?[A-Z]\w*|nests?_\w+",
        where=SERVER,
    ),
    Word(("kept",), "cached", names=r"Kept\w*|kept_\w+|KEPT_\w+", where=SERVER),
    Word(("heads",), "key prefix", r"heads\b", r"heads(?:_\w+)?|Heads", where=SERVER),
    Word(("modify_tables",), "multi-table DML", r"modify_tables\b", r"\w*modify_tables"),
    Word(
        ("keyed",),
        "decorrelated subquery",
        r"keyed (?:form|plan|subquer)\w*",
        r"[Kk]eyed\w*",
        where=SERVER,
    ),
    Word(
        ("present environment", "another environment", "number of an environment"),
        "plan context",
        r"(?:present|another|number of an) environment\b",
    ),
    Word(
        ("environment",),
        "plan-cache key, plan context",
        names=r"\w*plan_environment\w*|environments?|Environments?",
        where=SQL_LAYERS,
    ),
    Word(("definition",), "DDL statement", r"definitions? (?:frees?|go(?:es)? on|may replace)\b"),
    Word(("put off", "puts off", "putting off"), "defer, spill", r"put(?:s|ting)? off\b"),
    Word(("put_off",), "defer, spill", names=r"\w*put_off\w*"),
    both("loan", r"\w*[Ll]oans?\b", "operator pool"),
    Word(
        ("lent", "lend"), "operator pool, borrow", r"(?:lent|lends?|lending)\b", r"[Ll]ent|lends?"
    ),
    Word(("company",), "sync coalescing", names=r"\w*[Cc]ompany\w*", where=SERVER),
    both("patience", r"\w*[Pp]atience\w*", "timeout; for syncs: sync coalescing"),
    module("late", "sort before projection"),
    module("plain", "raw-row fast path"),
    module("direct", "raw-row fast path"),
    module("tail", "append cursor"),
    Word(("made",), "computed, materialized", names=r"Made(?:[A-Z]\w*)?|made_\w+", where=SERVER),
    Word(("moment",), "temporal value", names=r"\w*[Mm]oments?(?:_\w+)?", where=SQL_LAYERS),
    both("whoever", r"\w*whoever\w*", "a noun: waiting sessions"),
    both("whatever", r"\w*whatever\w*", "a noun: any value"),
    both("nobody", r"\w*nobody\w*", "a noun: no session, unused"),
    Word(("nobody",), "a noun: no session", names=r"NOBODY"),
    Word(("so many",), "the number: `len` bytes", r"so many\b"),
    Word(("passed over",), "skip", r"passed over\b"),
    Word(("passes_over", "passed_over"), "skip", names=r"\w*pass(?:es|ed)_over\w*"),
    Word(("gives",), "returns, reads", r"Gives\b", after=r"//[/!]?\s*(?:- )?$|[.;:]\s$"),
]
SEEDS = [
    (
        re.compile("|".join(map(re.escape, word.seeds))),
        word,
        re.compile(word.prose, re.I if not word.after else 0) if word.prose else None,
        re.compile(word.names) if word.names else None,
    )
    for word in WORDS
]
# Names of files that say nothing, and what they should say.
FILE_STEMS = {
    "company": "sync coalescing",
    "direct": "raw-row fast path",
    "guess": "row-location hint",
    "heads": "key prefix",
    "keyed": "decorrelated subquery",
    "late": "sort before projection",
    "leads": "index lookup, probe",
    "left": "sync coalescing",
    "limbo": "orphaned-page list",
    "loans": "operator pool",
    "modify_tables": "multi-table DML",
    "moment": "temporal value",
    "nest": "nested outer join",
    "plain": "raw-row fast path",
    "settle": "resolve visibility",
    "tail": "append cursor",
}
TYPE_NAME = re.compile(
    r"\b(?:struct|enum|trait|type|union)\s+"
    r"(Kind|Place|Found|Held|Form|Says|Met|Glance|Asked|Draft|Specs)\b"
)
TEST = re.compile(r"#\[(?:\w+::)?test\][^{};]*?\bfn\s+(\w+)", re.S)
IDENTIFIER = re.compile(r"\w+")
PYTHON_PROSE = re.compile(
    r"#[^\n]*" r'|"{3}.*?"{3}|\'{3}.*?\'{3}' r'|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'',
    re.S,
)
PYTHON_TEST = re.compile(r"^\s*def (test_\w+)", re.M)


def check(tree):
    for path in tree.files:
        if path.startswith(EXEMPT):
            continue
        yield from check_file_name(path)
        source = tree.text(path) if is_read(tree, path) else None
        if source is not None:
            yield from check_words(path, source)
        if isinstance(source, Rust):
            yield from check_type_names(path, source)
            yield from check_test_names(path, source, TEST.finditer(source.code))
        elif source is not None and path.endswith(".py"):
            yield from check_test_names(path, source, PYTHON_TEST.finditer(source.text))


def is_read(tree, path):
    if path.endswith((*CODE_SUFFIXES, ".md", ".test")) or os.path.basename(path) == "Makefile":
        return True
    return path in tree.scripts


def check_file_name(path):
    stem = os.path.basename(path).split(".")[0]
    if path.endswith(".rs") and stem in FILE_STEMS:
        yield Finding("word", path, 1, f"the file's name `{stem}`: write {FILE_STEMS[stem]}")


def code_and_text(path, source):
    """The code, of the same length as the text, with spaces in place of prose; and the text, with
    spaces in place of what is neither."""
    if isinstance(source, Rust):
        text = source.text
        if "/tests/" in path or path.endswith("tests.rs"):
            for start, string in source.strings:
                if " " in string:
                    text = text[:start] + blank(string) + text[start + len(string) :]
        return source.code, text
    if path.endswith(".py") or source.text.startswith("#!/usr/bin/python"):
        return PYTHON_PROSE.sub(lambda m: blank(m.group()), source.text), source.text
    if path.endswith(".test"):
        return "", re.sub(r"(?m)^(?!#).*$", lambda m: blank(m.group()), source.text)
    return "", source.text


def check_words(path, source):
    code, text = code_and_text(path, source)
    lowered = text.lower()
    for seed, word, prose, names in SEEDS:
        if not path.startswith(word.where):
            continue
        last = -1
        for hit in seed.finditer(lowered):
            start = hit.start()
            while start and (lowered[start - 1].isalnum() or lowered[start - 1] == "_"):
                start -= 1
            if start == last:
                continue
            last = start
            is_code = start < len(code) and not code[start].isspace()
            if is_code and names:
                m = IDENTIFIER.match(code, start)
                if names.fullmatch(m.group()) and (not word.is_module or is_module(code, m)):
                    yield found(path, source, m, word)
            elif not is_code and prose:
                m = prose.match(text, start)
                if m and (not word.after or re.search(word.after, text[max(0, start - 8) : start])):
                    yield found(path, source, m, word)


def is_module(code, m):
    return code.startswith("::", m.end()) or code.endswith("mod ", 0, m.start())


def found(path, source, m, word):
    return Finding("word", path, source.line_of(m.start()), f"`{m.group()}`: write {word.write}")


def check_type_names(path, source):
    for m in TYPE_NAME.finditer(source.code):
        advice = f"`{m[1]}` says too little without its module: say which {m[1].lower()}"
        yield Finding("type-name", path, source.line_of(m.start()), advice)


def check_test_names(path, source, tests):
    for m in tests:
        name, line = m[1], source.line_of(m.start(1))
        name = name.removeprefix("test_") if path.endswith(".py") else name
        if len(name) > MAX_TEST_NAME:
            advice = f"`{name}` has {len(name)} characters: at most {MAX_TEST_NAME}"
            yield Finding("test-name", path, line, advice)
        elif name.startswith("of_"):
            yield Finding("test-name", path, line, f"`{name}`: name the subject and the behaviour")
