"""The known findings: how many of each rule a file has. The list may only shrink."""

import collections
import os

from source import group_of

FILE = "tests/tidy/known.txt"
HEADER = """\
# Known findings of `make tidy`, counted by rule and file: what is still to be corrected.
# The list may only shrink. `tests/tidy/run --lower` rewrites it after a cleaning or a move of
# files; it refuses where a rule would have more findings in a crate than before.
"""
# Rules whose findings may be known; of the others there are none.
RULES = ("circle", "folders", "invariant", "label", "test-name", "type-name", "word", "wrap")


def read(root):
    """{(rule, path): count}"""
    path = os.path.join(root, FILE)
    known = {}
    if os.path.exists(path):
        with open(path) as file:
            for line in file:
                if line.strip() and not line.startswith("#"):
                    rule, name, count = line.split()
                    known[rule, name] = int(count)
    return known


def write(root, counts):
    with open(os.path.join(root, FILE), "w") as file:
        file.write(HEADER)
        for (rule, name), count in sorted(counts.items()):
            file.write(f"{rule} {name} {count}\n")


def count(findings):
    return collections.Counter((f.rule, f.key) for f in findings)


def compare(findings, known):
    """Lines for what is not known, and for entries that are too high."""
    counts, by_key = count(findings), {}
    for finding in findings:
        by_key.setdefault((finding.rule, finding.key), []).append(finding)
    for key, found in sorted(by_key.items(), key=lambda item: item[0][::-1]):
        allowed = known.get(key, 0) if key[0] in RULES else 0
        if len(found) > allowed:
            yield from (str(f) for f in found)
            if allowed:
                yield (
                    f"{key[1]}: {len(found)} findings of `{key[0]}`, of which {allowed} are known "
                    f"({FILE}): correct {len(found) - allowed}"
                )
            elif key[0] in RULES:
                yield (
                    f"{key[1]}: if these {len(found)} findings of `{key[0]}` were moved here from "
                    "another file of the crate: tests/tidy/run --lower"
                )
    for key, allowed in sorted(known.items()):
        if counts[key] < allowed:
            yield (
                f"{key[1]}: {allowed} findings of `{key[0]}` are known and {counts[key]} are "
                "there: tests/tidy/run --lower"
            )


def totals(counts):
    """{(rule, crate): count}"""
    found = collections.Counter()
    for (rule, name), number in counts.items():
        found[rule, group_of(name)] += number
    return found


def lower(root, findings, known):
    """Writes the list as it is now, unless there is a reason against it; returns the reasons. Where
    there is no list yet, all findings are new ones to know."""
    counts = count(findings)
    before, refused = totals(known), []
    is_new = not os.path.exists(os.path.join(root, FILE))
    for (rule, group), now in sorted(totals(counts).items()):
        if rule not in RULES:
            refused.append(f"findings of `{rule}` in {group} cannot be known: correct them")
        elif now > before[rule, group] and not is_new:
            refused.append(
                f"`{rule}` in {group}: {now} findings, {before[rule, group]} known: "
                f"correct {now - before[rule, group]}"
            )
    if not refused:
        write(root, counts)
    return refused
