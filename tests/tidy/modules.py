"""The modules of the crates: which file each one is, what it defines, and what it imports.

Imports are read from `use` declarations and from paths in the code. A name that a module re-exports
counts as an import of the module that defines it, so a facade makes no circle by itself.
"""

import functools
import os
import re
from dataclasses import dataclass, field

from source import matching_brace

DEFINITION = re.compile(
    r"\b(?:fn|struct|enum|trait|union|type|static|mod|macro_rules!"
    r"|const(?!\s+(?:fn|unsafe|async)\b))"
    r"\s+(?:mut\s+)?(?:r#)?(\w+)"
)
MOD_DECLARATION = re.compile(
    r"((?:#\[[^\]]*\]\s*)*)(?:pub(?:\([^)]*\))?\s+)?mod\s+(?:r#)?(\w+)\s*([;{])"
)
USE = re.compile(r"\buse\s+([^;]+);")
PATH = re.compile(r"(?<![\w:])(?<!in )(?:r#)?([A-Za-z_]\w*)((?:\s*::\s*(?:r#)?[A-Za-z_]\w*)+)")
INLINE_MODULE = re.compile(r"\bmod\s+\w+\s*\{")


@dataclass
class Import:
    """A path as it stands at `offset`, and the name it gets (`*` for a glob)."""

    segments: list
    alias: str
    offset: int


@dataclass
class Module:
    crate: str
    path: tuple
    file: str
    source: object
    is_test: bool = False
    children: dict = field(default_factory=dict)
    parent: object = None

    @functools.cached_property
    def definitions(self):
        return set(DEFINITION.findall(self.source.code_without_tests))

    @functools.cached_property
    def uses(self):
        found = []
        for m in USE.finditer(self.source.code_without_tests):
            for segments, alias in expand_use(m.group(1)):
                found.append(Import(segments, alias, m.start()))
        return found

    @functools.cached_property
    def names(self):
        """What a name stands for that a `use` declaration brings in."""
        return {use.alias: use for use in self.uses if use.alias != "*"}

    @functools.cached_property
    def paths(self):
        """Paths in the code outside `use` declarations."""
        code = USE.sub(lambda m: " " * len(m.group()), self.source.code_without_tests)
        found = []
        for m in PATH.finditer(code):
            segments = [m.group(1)] + re.findall(r"\w+", m.group(2).replace("r#", ""))
            if segments[0] in ("crate", "self", "super") or segments[0] in self.children:
                found.append(Import(segments, segments[-1], m.start()))
            elif segments[0] in self.names and segments[0].islower():
                found.append(Import(segments, segments[-1], m.start()))
        return found

    @property
    def folder(self):
        """The folder it belongs to: its own, if it has modules below it."""
        has_children = any(not child.is_test for child in self.children.values())
        return self.path if has_children or not self.path else self.path[:-1]

    def inline_depth(self, offset):
        """How many inline modules (`mod x { ... }`) are open at `offset`."""
        return sum(start < offset < end for start, end in self._inline_spans)

    @functools.cached_property
    def _inline_spans(self):
        code = self.source.code_without_tests
        return [
            (m.start(), matching_brace(code, m.end() - 1)) for m in INLINE_MODULE.finditer(code)
        ]


def expand_use(text):
    """The paths of a use tree: `a::{b, c::*}` is (a, b) and (a, c, *)."""
    text = re.sub(r"\br#", "", text).strip()
    brace = text.find("{")
    if brace < 0:
        path, _, alias = text.partition(" as ")
        segments = [s.strip() for s in path.split("::") if s.strip()]
        if not segments:
            return []
        if segments[-1] == "self" and len(segments) > 1:
            segments.pop()
        return [(segments, alias.strip() or segments[-1])]
    prefix = [s.strip() for s in text[:brace].split("::") if s.strip()]
    found = []
    for part in split_at_commas(text[brace + 1 : text.rindex("}")]):
        for segments, alias in expand_use(part):
            if segments == ["self"]:
                segments, alias = [], alias if alias != "self" else prefix[-1]
            found.append((prefix + segments, alias))
    return found


def split_at_commas(text):
    parts, depth, start = [], 0, 0
    for at, char in enumerate(text):
        depth += (char == "{") - (char == "}")
        if char == "," and depth == 0:
            parts.append(text[start:at])
            start = at + 1
    return [p for p in parts + [text[start:]] if p.strip()]


class Crate:
    """The modules below a `src` folder, by path; the root has the path ()."""

    def __init__(self, tree, name, src):
        self.name, self.src, self.modules = name, src, {}
        for file in tree.with_suffix(".rs"):
            if file.startswith(src + "/") and tree.text(file):
                path = module_path(file[len(src) + 1 :])
                is_beside_library = file == f"{src}/main.rs" and f"{src}/lib.rs" in tree.present
                if path is not None and not is_beside_library:
                    self.modules[path] = Module(name, path, file, tree.text(file))
        for path, module in self.modules.items():
            if path:
                module.parent = self.modules.get(path[:-1])
                if module.parent:
                    module.parent.children[path[-1]] = module
        self._mark_tests()

    def _mark_tests(self):
        for path in sorted(self.modules):
            module = self.modules[path]
            if module.parent and module.parent.is_test:
                module.is_test = True
            names = set()
            for attributes, name, _ in MOD_DECLARATION.findall(module.source.code):
                if re.search(r"cfg\((?:all\()?test\b", attributes):
                    names.add(name)
            for name, child in module.children.items():
                if name in names or name.endswith("_tests"):
                    child.is_test = True

    def resolve(self, module, segments, depth=0, seen=None):
        """The module that `segments` lead to from within `module`; None if another crate's."""
        seen = seen if seen is not None else set()
        if (module.path, tuple(segments)) in seen or len(seen) > 50:
            return None
        seen.add((module.path, tuple(segments)))
        at, rest = module, list(segments)
        first = rest[0]
        if first == "crate":
            at, rest = self.modules.get((), module), rest[1:]
        elif first in ("self", "super"):
            while rest and rest[0] in ("self", "super"):
                if rest.pop(0) == "super":
                    if depth > 0:
                        depth -= 1
                    else:
                        at = at.parent or at
        elif first in module.children:
            pass
        elif first in module.names:
            use = module.names[first]
            if use.segments[0] == first:  # another crate's
                return None
            start = use.segments + rest[1:]
            return self.resolve(module, start, module.inline_depth(use.offset), seen)
        else:
            return None
        while rest and rest[0] in at.children:
            at, rest = at.children[rest[0]], rest[1:]
        if not rest or rest[0] == "*" or rest[0] in at.definitions:
            return at
        return self._re_exported(at, rest, seen) or at

    def _re_exported(self, at, rest, seen):
        if rest[0] in at.names:
            use = at.names[rest[0]]
            return self.resolve(at, use.segments + rest[1:], at.inline_depth(use.offset), seen)
        for use in at.uses:
            if use.alias == "*" and at.path != ():
                found = self.resolve(at, use.segments[:-1] + rest, 0, seen)
                if found and rest[0] in found.definitions:
                    return found
        return None

    @functools.cached_property
    def imports(self):
        """For each module that is no test, the modules it imports: {path: {path: offset}}."""
        found = {}
        for path, module in self.modules.items():
            if module.is_test:
                continue
            edges = found[path] = {}
            for use in module.uses + module.paths:
                depth = module.inline_depth(use.offset)
                target = self.resolve(module, use.segments, depth)
                if target and target is not module and not target.is_test:
                    edges.setdefault(target.path, use.offset)
        return found


def module_path(file):
    """`a/b.rs` and `a/b/mod.rs` are (a, b). None for binaries beside the library."""
    parts = file[: -len(".rs")].split("/")
    if parts[0] == "bin":
        return None
    if parts[-1] in ("mod", "lib", "main"):
        parts.pop()
    return tuple(parts)


def crates_of(tree):
    """Every package with a `src` folder, by the name of its folder."""
    found = []
    for manifest in tree.with_suffix("Cargo.toml"):
        folder = os.path.dirname(manifest)
        src = os.path.join(folder, "src")
        if folder and src in tree.folders:
            found.append(Crate(tree, folder, src))
    return found
