"""Compares two answers to one statement. Returns the names of what differs."""

import re

BLOBS = {"tinyblob": "blob", "mediumblob": "blob", "longblob": "blob"}
# Answers that follow from the server's surroundings or the moment, not from its SQL.
UNSTABLE = re.compile(
    r"\b(now|sysdate|curdate|curtime|current_(date|time|timestamp)|local(time|timestamp)|utc_(date|time|timestamp)|rand|uuid"
    r"|uuid_short|connection_id|unix_timestamp|random_bytes|version|ps_current_thread_id)\b|@@(global\.|session\.)?(datadir"
    r"|basedir|port|hostname|pid_file|socket|tmpdir|version\w*|server_uuid|pseudo_thread_id|log_error|timestamp)\b"
    r"|\bshow\s+(global\s+|session\s+)?(status|variables|processlist|full\s+processlist|engine|engines|table\s+status|plugins|binary)\b"
    r"|\b(processlist|innodb_\w+|performance_schema|global_variables|session_variables)\b", re.I)
PLAN = re.compile(r"\s*(\(\s*)*(explain|desc|describe)\s+(?!`?\w+`?(\.`?\w+`?)?\s*(`?\w+`?|'[^']*')?\s*$)", re.I)


def strip_nested(sql):
    """The statement without comments, texts, and whatever stands in parentheses."""
    sql = re.sub(r"/\*.*?\*/|'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\"", " ", sql, flags=re.S)
    while True:
        shorter = re.sub(r"\([^()]*\)", " ", sql)
        if shorter == sql:
            return sql
        sql = shorter


def order_columns(outer, names):
    """Result columns (by number) that the outermost ORDER BY names, up to the first one it cannot
    find."""
    tail = re.split(r"\border\s+by\b", outer, flags=re.I)[-1]
    tail = re.split(r"\b(limit|for|into|lock)\b", tail, flags=re.I)[0]
    found = []
    lower = [n.lower() for n in names]
    for item in tail.split(","):
        item = re.sub(r"\b(asc|desc)\b|[`;]", " ", item, flags=re.I).strip().lower()
        if item.isdigit() and 0 < int(item) <= len(names):
            found.append(int(item) - 1)
        elif item.split(".")[-1] in lower:
            found.append(lower.index(item.split(".")[-1]))
        else:
            break
    return found


def key(row):
    return [(v is None, v or b"") for v in row]


def rows_differ(sql, theirs, ours, names, sort):
    """Whether the rows differ: in any order, unless ORDER BY fixes it. Rows with equal order keys
    may change places."""
    if theirs == ours:
        return False
    outer = strip_nested(sql)
    ordered = not sort and re.search(r"\border\s+by\b", outer, re.I)
    same_set = sorted(theirs, key=key) == sorted(ours, key=key)
    limited = re.search(r"\blimit\b", outer, re.I)
    if not ordered:
        return not same_set and not (limited and len(theirs) == len(ours))
    columns = order_columns(outer, names)
    same_order = [[r[c] for c in columns] for r in theirs] == [[r[c] for c in columns] for r in ours]
    return not same_order or not (same_set or limited)


def without_engine(row):
    """A row of SHOW CREATE TABLE without the engine's name and the options that only MyISAM has."""
    return [v and re.sub(rb"ENGINE=\w+", b"ENGINE=InnoDB", v) for v in row]


def compare(sql, theirs, ours, sort=False, results=True, warnings=True):
    """Differences between MySQL's answer and Nfold's: a list of words; empty when they are equal.

    sort: rows in any order; results: whether rows are compared; warnings: whether warnings are."""
    if theirs.kind == "error" and ours.kind == "error":
        return [] if theirs.error[0] == ours.error[0] else ["error number"]
    if theirs.kind != ours.kind:
        return ["error" if "error" in (theirs.kind, ours.kind) else "kind"]
    found = []
    if theirs.kind == "rows":
        if PLAN.match(sql) or theirs.results[0][0] == ["EXPLAIN"]:  # also by EXECUTE
            return []
        if len(theirs.results) != len(ours.results):
            return ["number of results"]
        for (names, types, rows), (our_names, our_types, our_rows) in zip(theirs.results, ours.results):
            if len(names) != len(our_names):
                return ["number of columns"]
            if names != our_names:
                found.append("names")
            if [BLOBS.get(t, t) for t in types] != [BLOBS.get(t, t) for t in our_types]:
                found.append("types")
            if results and not UNSTABLE.search(sql) and rows_differ(sql, rows, our_rows, names, sort):
                same = [without_engine(r) for r in rows] == [without_engine(r) for r in our_rows]
                found.append("storage engine" if same else "rows")
    elif theirs.kind == "ok":
        if theirs.affected != ours.affected:
            found.append("affected rows")
        if theirs.insert_id != ours.insert_id and not UNSTABLE.search(sql):
            found.append("insert id")
    if warnings and sorted(w[1] for w in theirs.warnings) != sorted(w[1] for w in ours.warnings):
        found.append("warnings")
    return found
