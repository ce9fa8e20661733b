"""Counts, by file and in total, as a table and as JSON."""

import collections
import json

CLASSES = ["equal", "plan text", "warnings only", "missing feature", "follow-up", "known", "different", "lost", "hang", "panic", "crash"]


class FileReport:
    """What one file's statements came to. differences: those that the summary shows, one of each
    text."""

    def __init__(self, name):
        self.name, self.counts, self.features = name, collections.Counter(), collections.Counter()
        self.differences, self.ended, self.ignored, self.seconds = [], None, {}, 0

    def add(self, kind, detail, sql, theirs, ours):
        self.counts[kind] += 1
        if kind == "missing feature":
            self.features[detail] += 1
        elif kind not in ("equal", "plan text", "follow-up"):
            self.differences.append({"class": kind, "detail": detail, "sql": sql[:1500], "mysql": theirs, "nfold": ours})

    def as_json(self):
        return {"file": self.name, "counts": dict(self.counts), "features": dict(self.features), "ended": self.ended,
                "ignored": self.ignored, "seconds": round(self.seconds, 1), "differences": self.differences}


def append(path, report):
    """One line of JSON per file, so that an interrupted run can be resumed."""
    with open(path, "a", encoding="utf-8", errors="surrogateescape") as f:
        f.write(json.dumps(report.as_json()) + "\n")


def load(path):
    try:
        with open(path, encoding="utf-8") as f:
            return [json.loads(line) for line in f if line.strip()]
    except FileNotFoundError:
        return []


def line(name, counts):
    return f"{name[:44]:44}" + "".join(f"{counts.get(c, 0):>9}" for c in CLASSES)


def show_total(files):
    """Prints the total over the files of a JSON file, and the missing features."""
    counts, features = collections.Counter(), collections.Counter()
    for f in files:
        counts.update(f["counts"])
        features.update(f["features"])
    print(line(f"total of {len(files)} files", counts))
    for name, count in features.most_common():
        print(f"  missing {count:>6}  {name}")
    comparable = sum(counts[c] for c in ("equal", "warnings only", "known", "different", "lost", "hang", "panic", "crash"))
    print(f"equal: {counts['equal']} of {comparable} comparable statements, {100 * counts['equal'] / max(comparable, 1):.2f} %")
    return counts


def header():
    return f"{'':44}" + "".join(f"{c[:8]:>9}" for c in CLASSES)
