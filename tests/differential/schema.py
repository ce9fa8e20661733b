"""Random tables: columns of all types, keys of all shapes, and values that lie near the edges."""

# kind of values -> column types
TYPES = {
    "int": ["TINYINT", "SMALLINT", "MEDIUMINT", "INT", "BIGINT", "INT UNSIGNED", "BIGINT UNSIGNED", "TINYINT UNSIGNED"],
    "dec": ["DECIMAL(10,2)", "DECIMAL(30,10)", "DECIMAL(5,0)", "DECIMAL(8,3) UNSIGNED"],
    "float": ["DOUBLE", "FLOAT"],
    "str": ["VARCHAR(20)", "CHAR(10)", "TEXT", "VARCHAR(200)", "CHAR(3)", "TINYTEXT"],
    "bin": ["VARBINARY(20)", "BINARY(4)", "BLOB"],
    "date": ["DATE"],
    "time": ["TIME", "TIME(3)", "TIME(6)"],
    "datetime": ["DATETIME", "DATETIME(2)", "DATETIME(6)", "TIMESTAMP NULL", "TIMESTAMP(3) NULL"],
    "year": ["YEAR"],
    "enum": ["ENUM('a','b','Zeta','x y')", "ENUM('1','2','3')"],
    "bit": ["BIT(1)", "BIT(8)", "BIT(40)"],
}
KINDS = ["int"] * 5 + ["str"] * 4 + ["dec", "dec", "float", "bin", "date", "time", "datetime", "datetime", "year", "enum", "bit"]
COLLATIONS = ["utf8mb4_0900_ai_ci"] * 3 + ["utf8mb4_general_ci", "utf8mb4_bin", "latin1_swedish_ci", "ascii_general_ci", "utf8mb4_0900_ai_ci"]

WORDS = ["", "a", "A", "b", "abc", "ABC", "abd", "a b", "a ", " a", "1", "2", "10", "-1", "1.5", "1e2", "0", "x y", "Zeta", "zz",
         "12abc", "%", "a%c", "a_c", "2020-01-02", "10:11:12", "2021-12-31 23:59:59", "null", "the quick fox"]
ACCENTED = ["ä", "é", "E", "ß", "ss", "Straße", "ñandú", "日本", "ÀÉ"]


class Column:
    def __init__(self, name, kind, sql_type, collation, nullable):
        self.name, self.kind, self.type, self.collation, self.nullable = name, kind, sql_type, collation, nullable

    def definition(self):
        text = f"`{self.name}` {self.type}"
        if self.collation:
            text += f" CHARACTER SET {self.collation.split('_')[0]} COLLATE {self.collation}"
        if not self.nullable:
            text = text.replace(" NULL", "") + " NOT NULL"
        return text


class Table:
    def __init__(self, name, columns, key, definition):
        self.name, self.columns, self.key, self.definition = name, columns, key, definition

    def of(self, kinds):
        return [c for c in self.columns if c.kind in kinds]


def literal(rng, kind, collation=None):
    """A literal that suits a kind of column, NULL at times."""
    pick = rng.choice
    if rng.random() < 0.07:
        return "NULL"
    if kind == "int":
        if rng.random() < 0.75:
            return str(rng.randint(-3, 12))
        return pick(["127", "-128", "255", "256", "32767", "65535", "2147483647", "-2147483648", "4294967295", "8388607",
                     "9223372036854775807", "-9223372036854775808", "18446744073709551615", "1000", "77", "-40"])
    if kind == "dec":
        return pick([f"{rng.randint(-20, 20)}.{rng.randint(0, 99)}", str(rng.randint(-5, 5)), "0.005", "-0.5", "1.5", "2.50", "99999.99",
                     "123456789012345678.1234567890", "0.00"])
    if kind == "float":
        return pick([f"{rng.randint(-20, 20)}.{rng.randint(0, 99)}", "1e10", "-2.5e-3", "0e0", "1.5", "1e300", str(rng.randint(-3, 3))])
    if kind in ("str", "bin"):
        word = pick(WORDS + ([] if kind == "bin" or (collation and collation.startswith(("latin1", "ascii"))) else ACCENTED))
        return "'" + word + "'"
    if kind == "date":
        return pick([f"'20{rng.randint(18, 24)}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}'", "'1999-12-31'", "'2020-02-29'",
                     "'9999-12-31'", "'1000-01-01'", "DATE'2020-01-02'", "20210304"])
    if kind == "time":
        return pick([f"'{rng.randint(0, 23):02}:{rng.randint(0, 59):02}:{rng.randint(0, 59):02}'", "'-10:00:00.5'", "'838:59:59'",
                     "TIME'10:11:12'", "'00:00:00'", "101112", "'12:34:56.789'"])
    if kind == "datetime":
        return pick([f"'20{rng.randint(18, 24)}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02} {rng.randint(0, 23):02}:00:0{rng.randint(0, 9)}'",
                     "'2020-02-29 23:59:59.999'", "TIMESTAMP'2020-01-02 10:11:12'", "'2020-01-02'", "20210304050607", "'2021-12-31 23:59:59.5'"])
    if kind == "year":
        return pick(["2020", "1999", "0", "2155", "'2021'", "99", "5", "1901"])
    if kind == "enum":
        return pick(["'a'", "'b'", "'Zeta'", "'x y'", "'1'", "'2'", "1", "2", "'A'"])
    if kind == "bit":
        return pick(["0", "1", "b'1'", "b'101'", "200", "5"])
    raise ValueError(kind)


def _keys(rng, columns):
    """Definitions of secondary keys."""
    out = []
    for n in range(rng.randint(0, 4)):
        parts = []
        for c in rng.sample(columns, rng.choice([1, 1, 1, 2, 2, 3])):
            text = f"`{c.name}`"
            if "TEXT" in c.type or "BLOB" in c.type:
                text += f"({rng.randint(1, 10)})"
            elif c.kind == "str" and c.type in ("VARCHAR(20)", "VARCHAR(200)", "CHAR(10)") and rng.random() < 0.3:
                text += f"({rng.randint(1, 9)})"
            parts.append(text + rng.choice(["", "", "", " DESC"]))
        out.append(f"{rng.choice(['KEY', 'KEY', 'KEY', 'UNIQUE KEY'])} `k{n}` ({', '.join(parts)})")
    return out


def table(rng, name):
    """A table: a primary key of one or two columns (or none), other columns, keys."""
    columns = [Column("id", "int", rng.choice(["INT", "BIGINT", "INT UNSIGNED"]), None, False)]
    for i in range(rng.randint(3, 7)):
        kind = rng.choice(KINDS)
        collation = rng.choice(COLLATIONS) if kind in ("str", "enum") else None
        columns.append(Column(f"c{i}", kind, rng.choice(TYPES[kind]), collation, rng.random() < 0.75))
    shape = rng.random()
    keys = _keys(rng, columns)
    if shape < 0.75:
        key = ["id"]
        keys.insert(0, "PRIMARY KEY (`id`)" if rng.random() < 0.85 else "PRIMARY KEY (`id` DESC)")
    elif shape < 0.9:
        second = rng.choice([c for c in columns[1:] if "TEXT" not in c.type and "BLOB" not in c.type] or columns[:1])
        second.nullable = False
        if second.name == "id":
            key = ["id"]
            keys.insert(0, "PRIMARY KEY (`id`)")
        else:
            key = [second.name, "id"]
            keys.insert(0, f"PRIMARY KEY (`{second.name}`, `id`)")
    else:
        key = None
    lines = [c.definition() for c in columns] + keys
    return Table(name, columns, key, f"CREATE TABLE `{name}` (\n  " + ",\n  ".join(lines) + "\n)")


def rows(rng, tab, count, first=1):
    """INSERT IGNORE statements with random rows."""
    out = []
    for start in range(first, first + count, 20):
        values = []
        for n in range(start, min(start + 20, first + count)):
            values.append("(" + ", ".join(str(n) if c.name == "id" else literal(rng, c.kind, c.collation) for c in tab.columns) + ")")
        out.append(f"INSERT IGNORE INTO `{tab.name}` VALUES {', '.join(values)}")
    return out
