"""Numbered invariants: each label is defined once, and each citation of one resolves.

A module's header (`//!`) defines them, a line each: `//! - I3: ...` or `//! I3. ...`. Comments and
the messages of assertions cite them: `(I3)`, `// I3: ...`, `"I3: ..."` for an invariant of the
module itself or of a module around it; `mdl::I3`, "I3 of `mdl`" or "`mdl`, I3" for another's.
"""

import os
import re

from source import Finding

LABEL = r"[A-Z]\d{1,2}"
LIST = rf"{LABEL}(?:(?:, | and | or | to ){LABEL})*"
DEFINED = re.compile(
    rf"^//!\s*(?:[-*]\s+)?(?:\*?Invariant\*?\s+)?"
    rf"\**(?P<label>{LABEL})\**(?:\s*\([^)]*\))?\**[.:](?:\s|$)"
)
MESSAGE = re.compile(rf"^(?P<path>(?:\w+::)*)(?P<labels>{LABEL}): ")
MODULE = r"\[?`(?P<path>[\w:]+)`\]?(?:\([^)]*\))?"
BESIDE_MODULE = re.compile(
    rf"\b(?P<labels>{LIST}) of {MODULE}"
    rf"|\b(?P<path2>(?:\w+::)+)(?P<labels2>{LABEL})\b"
    rf"|{MODULE.replace('path', 'path3')}, (?P<labels3>{LABEL})\b"
)
ALONE = re.compile(
    rf"\((?:[Ss]ee |[Bb]ut see )?(?P<labels>{LIST})(?=[),.:;])"
    rf"|^//[/!]?\s*(?:SAFETY: )?(?P<labels2>{LIST})(?=[:.,;)]|\s*$|\s\()"
)


def check(tree):
    headers = {}
    for path in tree.with_suffix(".rs"):
        source = tree.text(path)
        if source:
            headers[path] = definitions(source)
    index = Index(tree, headers)
    for path, defined in headers.items():
        yield from check_unique(index, path, defined)
    for path in headers:
        yield from check_citations(index, path, tree.text(path))


def definitions(source):
    """Pairs of label and line, as the header has them."""
    found = []
    for offset, comment in source.header:
        m = DEFINED.match(comment)
        if m:
            found.append((m["label"], source.line_of(offset)))
    return found


class Index:
    def __init__(self, tree, headers):
        self.labels = {p: {label for label, _ in found} for p, found in headers.items()}
        self.segments = {p: segments(p) for p in headers}
        self.present = tree.present
        self.of_last = {}
        for path, names in self.segments.items():
            if self.labels[path]:
                self.of_last.setdefault(names[-1], []).append(path)

    def enclosing(self, path):
        """The files of the modules around `path`, the nearest first; a test's subject, too."""
        stem = path[: -len(".rs")]
        if stem.endswith("_tests") and stem[: -len("_tests")] + ".rs" in self.present:
            yield stem[: -len("_tests")] + ".rs"
        if os.path.basename(path) in ("mod.rs", "lib.rs", "main.rs"):
            stem = os.path.dirname(path)
        folder = os.path.dirname(stem)
        while folder:
            for ending in (".rs", "/mod.rs", "/lib.rs", "/main.rs"):
                candidate = folder + ending
                if candidate in self.present and candidate != path:
                    yield candidate
            if os.path.basename(folder) == "src":
                return
            folder = os.path.dirname(folder)

    def is_defined_around(self, path, label):
        if label in self.labels[path]:
            return True
        return any(label in self.labels[p] for p in self.enclosing(path))

    def proposal(self, path, label):
        crate = crate_of(path)
        found = [p for p, labels in self.labels.items() if label in labels and crate_of(p) == crate]
        names = " or ".join(f"`{self.segments[p][-1]}::{label}`" for p in found[:3])
        return f"is {names} meant?" if names else "correct the label, or say it in words"

    def named(self, path, module):
        """The files that the name `module`, used in `path`, may mean; those of its crate first."""
        names = [n.removeprefix("nfold_") for n in module.split("::") if n]
        if names[:1] == ["super"]:
            around = list(self.enclosing(path))
            return [p for p in around[: len(names)] if names == ["super"] * len(names)]
        inside = names[:1] in (["crate"], ["self"])
        names = names[1:] if inside else names
        crate = crate_of(path)
        found = []
        for candidate in self.of_last.get(names[-1], []) if names else []:
            if self.segments[candidate][-len(names) :] == names:
                if crate_of(candidate) == crate or not inside:
                    found.append(candidate)
        return found


def segments(path):
    """`crates/store/src/log/mod.rs` is store, log."""
    names = [n for n in path[: -len(".rs")].split("/") if n not in ("crates", "src", "bench")]
    if names[-1] in ("mod", "lib", "main") and len(names) > 1:
        names.pop()
    return names


def crate_of(path):
    return path.split("/src/")[0].split("/tests/")[0].split("/examples/")[0]


def check_unique(index, path, defined):
    seen = {}
    for label, line in defined:
        if label in seen:
            advice = f"{label} is defined in line {seen[label]} already: give it another number"
            yield Finding("label", path, line, advice)
        seen.setdefault(label, line)
        for around in index.enclosing(path):
            if label in index.labels[around]:
                advice = (
                    f"{label} is a label of {around}, too, so that `{label}` alone would mean "
                    "either: use another letter"
                )
                yield Finding("label", path, line, advice)


def check_citations(index, path, source):
    for offset, text in source.strings:
        m = MESSAGE.match(text)
        if m:
            yield from check_one(index, path, source.line_of(offset), m["path"], [m["labels"]])
    for offset, comment in source.comments:
        line, rest = source.line_of(offset), comment
        if comment.startswith("//!") and DEFINED.match(comment):
            rest = "//! " + DEFINED.sub("", comment)
        for m in BESIDE_MODULE.finditer(rest):
            module = m["path"] or m["path2"] or m["path3"]
            labels = re.findall(LABEL, m["labels"] or m["labels2"] or m["labels3"])
            yield from check_one(index, path, line, module, labels)
        for m in ALONE.finditer(BESIDE_MODULE.sub("", rest)):
            labels = re.findall(LABEL, m["labels"] or m["labels2"])
            yield from check_one(index, path, line, "", labels)


def check_one(index, path, line, module, labels):
    for label in labels:
        if not module:
            if not index.is_defined_around(path, label):
                advice = (
                    f"no header of this module or of one around it defines {label}: "
                    + index.proposal(path, label)
                )
                yield Finding("invariant", path, line, advice)
        elif not any(label in index.labels[p] for p in index.named(path, module)):
            name = module.removesuffix("::")
            advice = (
                f"no header of a module `{name}` defines {label}: correct the name or the label"
            )
            yield Finding("invariant", path, line, advice)
