"""What documents name exists: files, folders, functions, make targets, commands and their options,
links and headings.

The code spans and code blocks of every Markdown file are read. The pages of `docs/notebook/` are
exempt: they record what was there on their day.
"""

import fnmatch
import functools
import os
import re

import invariants
from modules import DEFINITION
from source import Finding, indented_code

NOTEBOOK = "docs/notebook/"
FENCE = re.compile(
    r"^[ \t]*(```+|~~~+)(?P<language>[^\n`]*)\n(?P<body>.*?)^[ \t]*\1[ \t]*$", re.M | re.S
)
SPAN = re.compile(r"(?<!`)(`+)(?!`)((?:[^`\n]|\n(?!\s*\n))+?)(?<!`)\1(?!`)")
LINK = re.compile(r"\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\)")
HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*$", re.M)
MAKE = re.compile(r"(?:^|[\s;&|(])make\s+((?:[A-Z_]+=\S+\s+)*)([a-z][a-z0-9-]*)(?=$|[\s;&|)])(.*)")
VARIABLE = re.compile(r"\b([A-Z][A-Z_]*)=")
MODULE_PATH = re.compile(r"(?<![\w/.:$])([A-Za-z_]\w*)((?:::[A-Za-z_]\w*)+)")
OPTION = re.compile(r"(?<!\S)--([a-z][a-z0-9-]+)")
SOURCE_SUFFIXES = (".rs", ".py", ".lua", ".test", ".iso")
SHELLS = ("", "sh", "bash", "shell", "console")
PLACEHOLDER = re.compile(r"(?:.*/)?(?:my|your)_\w+\.\w+")
SCRIPT_ITEM = re.compile(r"\b(?:def|class|function)\s+(\w+)|^(\w+)\(\)", re.M)
MEMBER = re.compile(r"^\s*(?:pub(?:\([^)]*\))?\s+)?(?:r#)?([A-Za-z_]\w*)\s*(?:[:,({=]|$)", re.M)


def documents(tree):
    return [p for p in tree.with_suffix(".md") if not p.startswith(NOTEBOOK)]


def check(tree, crates):
    names = Names(tree, crates)
    for path in documents(tree):
        source = tree.text(path)
        if source is None:
            continue
        names.folder = os.path.dirname(path)
        for line, text, where in code_of(source):
            for advice in check_code(names, text, where):
                yield Finding("name", path, line, advice)
        yield from check_links(tree, path, source)


def code_of(source):
    """Each code span and each line of a code block: (line, text, where): `span`, `shell`, `text`.
    """
    text = source.text
    for number in indented_code(source.lines):
        line = source.lines[number - 1]
        yield number, line.strip(), "shell"
        start = source.line_starts[number - 1]
        text = text[:start] + " " * len(line) + text[start + len(line) :]
    for m in FENCE.finditer(source.text):
        language = m["language"].strip()
        if language in SHELLS or language == "text":
            for number, line in enumerate(m["body"].split("\n")):
                where = "shell" if language in SHELLS else "text"
                yield source.line_of(m.start("body")) + number, line, where
        text = text[: m.start()] + re.sub(r"[^\n]", " ", m.group()) + text[m.end() :]
    for m in SPAN.finditer(text):
        yield source.line_of(m.start()), m.group(2).replace("\n", " "), "span"


def check_code(names, text, where):
    is_block = where != "span"
    text = re.sub(r"(^|\s)#\s.*", "", text) if is_block else text
    for m in MAKE.finditer(text):
        if m[2] not in names.targets and (not is_block or text.lstrip().startswith(("make", "$"))):
            yield f"there is no make target `{m[2]}`: correct the name"
        for variable in VARIABLE.findall(m[1] + " " + re.split(r"[;&|]|'", m[3])[0]):
            if variable not in names.makefile:
                yield f"the Makefile knows no variable `{variable}`: correct the name"
    for token in re.split(r"[\s,;|]+", text):
        advice = check_path(names, token.strip("()[]'\"").rstrip(".,:"), is_block)
        if advice:
            yield advice
    if not is_block and "/" not in text:
        for m in MODULE_PATH.finditer(text):
            if not names.resolves([m[1]] + m[2].split("::")[1:]):
                yield f"there is no `{m.group()}`: correct the name"
        m = re.fullmatch(r"([a-z_]\w*)::", text)
        if m and not names.modules.get(m[1]):
            yield f"there is no module `{m[1]}`: correct the name"
    for command in re.split(r"\s[|;]\s|&&|\|\|", text) if where != "text" else ():
        yield from check_command(names, command)


def check_path(names, token, is_block):
    token = token.removeprefix("./").rstrip("/")
    path, _, function = token.partition("::")
    path = re.sub(r":\d+(-\d+)?$", "", path)
    if not re.fullmatch(r"[\w*][\w.*/+@?-]*", path) or "//" in path or "..." in path:
        return None
    if PLACEHOLDER.fullmatch(path):
        return None
    if "/" not in path and (not path.endswith(SOURCE_SUFFIXES) or is_block or "*" in path):
        return None
    found = names.files_named(path)
    if found is None:
        return None
    if not found:
        return f"there is no `{path}`: correct the name"
    for name in function.split("::") if function else []:
        name = re.sub(r"\W.*", "", name)
        if name and not any(name in names.items_of(file) for file in found):
            return f"`{path}` has no `{name}`: correct the name"
    return None


def check_command(names, command):
    words = command.split()
    while words and (re.match(r"^[A-Z_]+=", words[0]) or words[0] in ("$", "exec", "sudo", "time")):
        words.pop(0)
    if not words:
        return
    program = words[0].removeprefix("./")
    if os.path.basename(program) == "nfold" and len(words) > 1 and names.commands:
        known, where = names.commands, "nfold"
        for word in words[1:3]:
            if not re.fullmatch(r"[a-z][a-z-]*", word):
                break
            if word not in known:
                yield f"there is no command `{where} {word}`: correct the name"
                return
            where, known = f"{where} {word}", names.lab_commands
            if word != "lab":
                break
        yield from check_options(command, where, names.binary_text)
    elif program in names.tree.present and program in names.tree.scripts:
        yield from check_options(command, program, names.script_text(program))


def check_options(command, where, text):
    for option in OPTION.findall(command):
        ident = option.replace("-", "_")
        if f"--{option}" not in text and not re.search(rf"\b{ident}\b", text):
            yield f"`{where}` has no option `--{option}`: correct the name"


def check_links(tree, path, source):
    for m in LINK.finditer(FENCE.sub(lambda f: re.sub(r"[^\n]", " ", f.group()), source.text)):
        target, _, anchor = m[1].partition("#")
        if re.match(r"^[a-z][a-z+.-]*:", target):
            continue
        line = source.line_of(m.start())
        base = os.path.dirname(path)
        file = os.path.normpath(os.path.join(base, target)) if target else path
        if file not in tree.present and file not in tree.folders and file != ".":
            yield Finding("name", path, line, f"the link leads nowhere: there is no `{file}`")
        elif anchor and file.endswith(".md") and anchor not in anchors(tree.text(file)):
            yield Finding("name", path, line, f"`{file}` has no heading `#{anchor}`")


def anchors(source):
    """Headings as GitHub names them."""
    found, text = set(), FENCE.sub("", source.text)
    for heading in HEADING.findall(text):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        slug = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        number = 1
        while slug in found and f"{slug}-{number}" in found:
            number += 1
        found.add(f"{slug}-{number}" if slug in found else slug)
    return found


class Names:
    """What a document may name."""

    def __init__(self, tree, crates):
        self.tree, self.crates = tree, crates
        self.folder = ""  # of the document that is read
        self.top = {p.split("/")[0] for p in tree.files if "/" in p}
        self.crate_folders = {os.path.basename(c.name): c for c in crates}
        self.by_base = {}
        for path in tree.files:
            self.by_base.setdefault(os.path.basename(path), []).append(path)
        self.modules = {}
        for crate in crates:
            for path, module in crate.modules.items():
                last = path[-1] if path else os.path.basename(crate.name)
                self.modules.setdefault(last, []).append((crate, module))

    @functools.cached_property
    def makefile(self):
        return self.tree.text("Makefile").text if "Makefile" in self.tree.present else ""

    @functools.cached_property
    def targets(self):
        return set(re.findall(r"^([a-z][a-z0-9-]*):", self.makefile, re.M))

    @functools.cached_property
    def commands(self):
        return self._subcommands("crates/nfold/src/main.rs")

    @functools.cached_property
    def lab_commands(self):
        return self._subcommands("crates/lab/src/lib.rs")

    def _subcommands(self, path):
        if path not in self.tree.present:
            return set()
        m = re.search(r"derive\(Subcommand\).*?\{(.*?)\n\}", self.tree.text(path).code, re.S)
        return (
            {name.lower() for name in re.findall(r"^\s{4}(\w+)\(", m.group(1), re.M)}
            if m
            else set()
        )

    @functools.cached_property
    def binary_text(self):
        parts = ("crates/nfold/src/", "crates/lab/src/", "crates/server/src/")
        return "".join(self.tree.text(p).text for p in self.tree.files if p.startswith(parts))

    def script_text(self, script):
        """The script and what lies beside it and below it, and the shared Python."""
        folder = os.path.dirname(script) + "/"
        parts = (folder, "tests/lib/", "bench/bench.py")
        sources = [p for p in self.tree.files if p.startswith(parts) and p.endswith((".py", ".rs"))]
        return "".join(self.tree.text(p).text for p in [script] + sources if self.tree.text(p))

    def files_named(self, path):
        """The files that `path` may mean; None if it seems to mean nothing of this tree."""
        first, rest = path.split("/")[0], path.split("/")[1:]
        if first in self.top:
            return self._exact(path)
        beside = self._exact(f"{self.folder}/{path}") if self.folder else []
        if beside:
            return beside
        if first in self.crate_folders and rest:
            crate = self.crate_folders[first]
            for start in (crate.name, crate.src):
                found = self._exact("/".join([start] + rest))
                if found:
                    return found
            return [] if path.endswith(".rs") or rest[0] in ("src", "tests") else None
        if path.endswith(SOURCE_SUFFIXES):
            paths = self.by_base.get(os.path.basename(path), [])
            return [p for p in paths if ("/" + p).endswith("/" + path)]
        return None

    def _exact(self, path):
        if "*" in path or "?" in path:
            return fnmatch.filter(self.tree.files, path) or fnmatch.filter(self.tree.folders, path)
        for candidate in (path, path + ".rs", path + "/mod.rs"):
            if candidate in self.tree.present:
                return [candidate]
        return [p for p in self.tree.files if p.startswith(path + "/")]

    @functools.cache
    def items_of(self, file):
        """Names that a file defines: items, methods, fields, variants, labels of invariants."""
        source = self.tree.text(file)
        if source is None:
            return set()
        if not file.endswith(".rs"):
            return {name for pair in SCRIPT_ITEM.findall(source.text) for name in pair}
        labels = {label for label, _ in invariants.definitions(source)}
        return set(DEFINITION.findall(source.code)) | set(MEMBER.findall(source.code)) | labels

    @functools.cached_property
    def dependencies(self):
        """Names of packages that are not this tree's."""
        found = {"std", "core", "alloc"}
        for manifest in self.tree.with_suffix("Cargo.toml"):
            text = self.tree.text(manifest).text
            names = re.findall(r"^([a-z][\w-]*)(?:\.workspace)?\s*=", text, re.M)
            found |= {n.replace("-", "_") for n in names if not n.startswith("nfold")}
        return found - {"version", "name", "path"} - set(self.crate_folders)

    def subtree(self, crate, module):
        count = len(module.path)
        return [m for p, m in crate.modules.items() if p[:count] == module.path]

    def resolves(self, segments):
        segments = [s.removeprefix("nfold_") for s in segments if s != "crate"]
        if not segments or segments[0] in self.dependencies:
            return True
        for count in range(len(segments), 0, -1):
            for crate, module in self.modules.get(segments[count - 1], []):
                full = (os.path.basename(crate.name), *module.path)
                if full[-count:] == tuple(segments[:count]):
                    rest = segments[count:]
                    if not rest or rest[0] in module.names and len(rest) == 1:
                        return True
                    files = [m.file for m in self.subtree(crate, module)]
                    items = set().union(*(self.items_of(f) for f in files)) | set(module.names)
                    if all(name in items for name in rest):
                        return True
        return self._is_type_with(segments)

    def _is_type_with(self, segments):
        for crate in self.crates:
            if any(segments[0] in m.definitions for m in crate.modules.values()):
                items = set().union(*(self.items_of(m.file) for m in crate.modules.values()))
                if all(name in items for name in segments[1:]):
                    return True
        return False
