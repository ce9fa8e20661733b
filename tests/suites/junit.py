"""Reads the outcomes of pytest from its JUnit file."""

import re
import xml.etree.ElementTree


def outcomes(path):
    """Returns {class::test: "" if it passed, else the message}, without skipped tests."""
    found = {}
    for case in xml.etree.ElementTree.parse(path).getroot().iter("testcase"):
        # SQLAlchemy adds the driver and the server's version to the names of classes.
        owner = re.sub(r"_mysql\+[a-z]+_[0-9_]+", "", case.get("classname", ""))
        name = f"{owner}::{case.get('name')}"
        why = found.get(name, "")
        skipped = False
        for child in case:
            skipped |= child.tag == "skipped"
            if child.tag in ("failure", "error"):
                why = why or (child.get("message") or "failed") + "\n" + (child.text or "")
        if why or not skipped:
            found[name] = why
    return found
