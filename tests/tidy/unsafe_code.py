"""`unsafe` is used only in the files that `unsafe.txt` lists; the compiler refuses it elsewhere.

The workspace's lints deny `unsafe_code`, so a file that needs it says `allow(unsafe_code)`. A crate
none of whose sources are listed forbids it in its root.
"""

import os
import re

from source import Finding

LIST = "tests/tidy/unsafe.txt"
UNSAFE = re.compile(r"\bunsafe\b")
ALLOW = re.compile(r"#!?\[(?:cfg_attr\([^\]]*?)?(?:allow|expect)\([^)]*\bunsafe_code\b")
FORBID = re.compile(r"#!\[forbid\([^)]*\bunsafe_code\b")
DENIED_BY_WORKSPACE = re.compile(r'^unsafe_code\s*=\s*"(?:deny|forbid)"', re.M)
INHERITED = re.compile(r"^\[lints\]\s*\nworkspace\s*=\s*true", re.M)


def check(tree, crates):
    listed = read_list(tree)
    yield from check_files(tree, listed)
    yield from check_list(tree, listed)
    yield from check_crates(tree, crates, listed)


def read_list(tree):
    """The listed files: {path: line of the list}."""
    if LIST not in tree.present:
        return {}
    lines = enumerate(tree.text(LIST).lines, 1)
    return {line.split()[0]: number for number, line in lines if line.strip() and line[0] != "#"}


def check_files(tree, listed):
    for path in tree.with_suffix(".rs"):
        source = tree.text(path)
        if source is None or path in listed:
            continue
        m = UNSAFE.search(source.code)
        if m:
            advice = f"`unsafe` outside the modules of {LIST}: write it without, or list the file"
            yield Finding("unsafe", path, source.line_of(m.start()), advice)
        for m in ALLOW.finditer(source.code):
            if not is_of_module_declaration(source.code, m, path, listed):
                advice = f"`allow(unsafe_code)` in a file that {LIST} does not list: remove it"
                yield Finding("unsafe", path, source.line_of(m.start()), advice)


def is_of_module_declaration(code, m, path, listed):
    """Whether the attribute is of `mod x;`, whose file is listed."""
    declared = re.compile(r"[^\]]*\]\s*(?:#\[[^\]]*\]\s*)*(?:pub(?:\([^)]*\))?\s+)?mod\s+(\w+);")
    found = declared.match(code, m.end())
    if not found:
        return False
    folder = os.path.dirname(path)
    if os.path.basename(path) not in ("mod.rs", "lib.rs", "main.rs"):
        folder = path[: -len(".rs")]
    start = f"{folder}/{found[1]}"
    return any(p == start + ".rs" or p.startswith(start + "/") for p in listed)


def check_list(tree, listed):
    for path, line in listed.items():
        if path not in tree.present:
            yield Finding("unsafe", LIST, line, f"there is no {path}: remove the line")
        elif not UNSAFE.search(tree.text(path).code):
            yield Finding("unsafe", LIST, line, f"{path} has no `unsafe` any more: remove the line")


def check_crates(tree, crates, listed):
    workspace = tree.text("Cargo.toml").text if "Cargo.toml" in tree.present else ""
    for crate in crates:
        manifest = f"{crate.name}/Cargo.toml"
        own = tree.text(manifest).text
        denied = DENIED_BY_WORKSPACE.search(own)
        inherited = INHERITED.search(own) and DENIED_BY_WORKSPACE.search(workspace)
        if not denied and not inherited:
            advice = (
                'deny `unsafe_code`: `workspace = true` below `[lints]`, or `unsafe_code = "deny"`'
            )
            yield Finding("unsafe", manifest, 1, advice)
        root = crate.modules.get(())
        if root and not any(path.startswith(crate.src + "/") for path in listed):
            if not FORBID.search(root.source.code):
                yield Finding("unsafe", root.file, 1, "add `#![forbid(unsafe_code)]`")


def check_rust_version(tree):
    """`rust-version` is set for every package."""
    workspace = tree.text("Cargo.toml") if "Cargo.toml" in tree.present else None
    version = re.compile(r'^rust-version\s*=\s*"\d', re.M)
    if workspace and not version.search(workspace.text):
        advice = 'set `rust-version = "..."` below `[workspace.package]`'
        yield Finding("rust-version", "Cargo.toml", 1, advice)
    for path in tree.with_suffix("/Cargo.toml"):
        text = tree.text(path).text
        if not version.search(text) and not re.search(r"^rust-version\.workspace\s*=", text, re.M):
            yield Finding("rust-version", path, 1, "add `rust-version.workspace = true`")
