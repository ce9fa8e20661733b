"""The lists of known failures.

A line `# reason` begins a group; the names of its tests follow, one a line. Empty lines are
skipped.
"""

import os


def read(path):
    """Returns {test: reason}; empty if there is no such file."""
    found, reason = {}, None
    if os.path.exists(path):
        with open(path) as f:
            for number, line in enumerate(f, 1):
                line = line.rstrip("\n")
                if line.startswith("# "):
                    reason = line[2:]
                elif line:
                    if reason is None or line in found:
                        raise ValueError(f"{path}:{number}: a test without a reason, or twice: {line}")
                    found[line] = reason
    return found
