"""The committed list of understood differences: `file | pattern of the statement | reason`, a line each; `*` is every file."""

import re


class Known:
    def __init__(self, path):
        self.entries = []
        with open(path, encoding="utf-8") as f:
            for line in f:
                if line.strip() and not line.startswith("#"):
                    file, pattern, reason = [p.strip() for p in line.split(" | ", 2)]
                    self.entries.append((file, re.compile(pattern, re.I | re.S), reason))

    def reason(self, file, sql, detail=""):
        """Why a statement's difference is understood, or None. A pattern may begin with what differs: `^rows: select`.
        Each run of white space in the statement is one blank for it."""
        sql = " ".join(sql.split())
        texts = (sql, f"{detail}: {sql}")
        return next((r for f, p, r in self.entries if f in ("*", file) and any(map(p.search, texts))), None)
