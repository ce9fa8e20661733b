"""Says of a difference whether it is a missing feature, a follow-up of an earlier one, or one of
its own."""

import re

# (feature, pattern of the statement). The first that fits names the feature that Nfold refused.
FEATURES = [(name, re.compile(pattern, re.I | re.S)) for name, pattern in [
    ("stored programs", r"\b(create|drop|alter|show\s+create)\s+(or\s+replace\s+)?(definer\s*=\s*\S+\s+)?(procedure|function|trigger|event)\b|^\s*call\b|\bshow\s+(procedure|function|triggers|events)|^\s*(begin\s+not|signal|resignal|get\s+)"),
    ("foreign keys", r"\bforeign\s+key\b|\breferences\b"),
    ("partitions", r"\bpartition(s|ing)?\b(?!\s*by\s.*\bover\b)"),
    ("JSON", r"\bjson(_\w+)?\b|member\s+of|->"),
    ("spatial", r"\b(st_\w+|geometry\w*|point|linestring|polygon|multi(point|polygon|linestring)|mbr\w+|spatial|srid)\b"),
    ("vector", r"\bvector\b"),
    ("generated columns", r"\bgenerated\s+always\b|\)\s*(virtual|stored)\b|\bas\s*\([^)]*\)\s*(virtual|stored|,|\))"),
    ("CHECK constraints", r"\bcheck\s*\("),
    ("fulltext", r"\bfulltext\b|\bagainst\s*\("),
    ("EXPLAIN formats", r"^\s*(\(\s*)*(explain|desc|describe)\b"),
    ("handler", r"^\s*handler\b"),
    ("roles and column privileges", r"\b(role|grant|revoke)\b"),
    ("users", r"^\s*(create|alter|drop|rename)\s+user\b|\bset\s+password\b"),
    ("replication and binary log", r"\b(binlog|replica|slave|master|gtid|binary\s+log)\b|\bxa\s"),
    ("plugins and components", r"\b(install|uninstall)\b|\bsoname\b"),
    ("file input and output", r"\bload\s+data\b|\binto\s+(outfile|dumpfile)\b|\bload_file\b|\bload\s+xml\b"),
    ("tablespaces", r"\btablespace\b|\blogfile\b"),
    ("XML functions", r"\b(extractvalue|updatexml)\b"),
    ("performance_schema and sys", r"\bperformance_schema\b|\bsys\.\w+"),
    ("system tables", r"\bmysql\.\w+"),
    ("invisible indexes and columns", r"\b(in)?visible\b"),
    ("resource groups, servers, help", r"\bresource\s+group\b|\bserver\b|^\s*help\b"),
]]

# Errors of Nfold that say that something is not there, whatever the statement.
MISSING_ERRORS = {1235: None, 1193: "system variables", 1273: "character sets and collations",
                  1115: "character sets and collations", 1286: "storage engines"}
ABSENT = {1235, 1064, 1305, 1193, 1146, 1109, 1054, 1273, 1115, 1286, 1148, 1289, 1221, 3719, 1327, 1381, 1295, 1049}
STATE = re.compile(r"\b(row_count|found_rows|last_insert_id)\s*\(|^\s*(show\s+(warnings|errors)|get\s+diagnostics)|@@(warning_count|error_count)", re.I)
WORD = re.compile(r"@?@?[\w$\u0080-\U0010ffff]+|`[^`]*`")
NAMED = re.compile(
    r"^\s*(?:create|alter|drop|truncate|rename|insert|replace|update|delete|load|set|prepare|lock|grant|revoke|analyze|call|execute)\b", re.I)
ASSIGNED = re.compile(r"(@[\w$]+)\s*:=")
KEYWORDS = set("""table tables view procedure function trigger event database schema user index unique on into from to set values value
select where if exists not or replace and temporary ignore create alter drop truncate rename insert update delete load data infile add column
primary key int integer bigint char varchar text default null engine innodb myisam memory as like for each row begin end before after global
session local character names grant all privileges identified by with prepare algorithm merge definer sql security invoker low_priority
high_priority delayed quick limit order group using join inner left right outer natural cross show call execute test mysql charset utf8mb4
collate auto_increment varbinary binary date datetime time timestamp year float double decimal unsigned tinyint smallint mediumint blob enum
bit real numeric foreign references check constraint fulltext is in between distinct union having case when then else new old returns return
analyze optimize repair read write lock unlock only flush duplicate""".split())


def names_in(sql):
    """Identifiers and user variables of a statement and of the text of PREPARE, in lower case."""
    if re.match(r"\s*prepare\b", sql, re.I):
        bare = re.sub(r"[\"']", " ", sql)
    else:
        bare = re.sub(r"'(?:[^'\\]|\\.|'')*'", " ", sql)
    words = {w.strip("`").lower() for w in WORD.findall(bare)}
    return {w for w in words if w not in KEYWORDS and not w.isdigit() and w}


def targets(sql):
    """Names that a statement may have changed: those before its SELECT or VALUES, and the columns
    left out."""
    head = re.split(r"\bselect\b|\bvalues?\s*\(|\bwhere\b", sql, flags=re.I)[0]
    program = re.match(r"\s*create\b.*?\b(trigger|procedure|function|event)\b", sql, re.I | re.S)
    if program:
        return names_in(sql)  # whatever its body may change
    if not re.match(r"\s*(set|grant|revoke|update|delete|lock|drop|rename)\b", head, re.I):
        head = head.split("(")[0]
    return names_in(head)


class Classifier:
    """Remembers, for one file, which names differ on the two servers."""

    def __init__(self):
        self.tainted, self.lost, self.previous = set(), set(), {}

    def after_equal(self, sql, connection, succeeded):
        """An equal statement: a new object is the same on both again, unless it is made from a
        different one."""
        self.previous[connection] = False
        if not self.tainted or not NAMED.match(sql) or not succeeded:
            return
        made = targets(sql)
        rest = names_in(sql) - made
        if re.match(r"\s*(create|drop|truncate|set|prepare)\b", sql, re.I) and not rest & self.tainted:
            self.tainted -= made
        elif rest & self.tainted:
            self.tainted |= made

    def classify(self, sql, theirs, ours, found, connection):
        """(class, detail) of a difference; remembers what it leaves behind."""
        follows = bool(names_in(sql) & self.tainted) or connection in self.lost
        follows = follows or (STATE.search(sql) and self.previous.get(connection))
        self.previous[connection] = True
        if NAMED.match(sql) and found != ["warnings"]:
            self.tainted |= targets(sql)
        if found != ["warnings"]:
            self.tainted |= {name.lower() for name in ASSIGNED.findall(sql)}
        if ours.kind in ("lost", "hang") or theirs.kind in ("lost", "hang"):
            self.lost.add(connection)
            return ("follow-up", "") if follows else (ours.kind if ours.kind in ("lost", "hang") else "mysql " + theirs.kind, "")
        if found == ["warnings"]:
            return ("follow-up", "") if follows else ("warnings only", "")
        if ours.kind == "error" and ours.error[0] == 1235:
            return "missing feature", self.feature(sql, ours)
        if follows:
            return "follow-up", ""
        feature = self.feature(sql, ours) if ours.kind == "error" and ours.error[0] in ABSENT else None
        return ("missing feature", feature) if feature else ("different", ", ".join(found))

    @staticmethod
    def feature(sql, ours):
        for name, pattern in FEATURES:
            if pattern.search(sql):
                return name
        if ours.error[0] == 1235:
            quoted = re.search(r"yet support '(.*)'", ours.error[1])
            return quoted.group(1)[:60] if quoted else ours.error[1][:60]
        return MISSING_ERRORS.get(ours.error[0])
