"""Random text files that LOAD DATA LOCAL INFILE reads with random options.

Fields, separators, quotes and escapes are mixed at random, so that most files are malformed
somewhere. Rows, counts of rows, error numbers and the numbers of the warnings are compared.
"""

import os
import random
import tempfile

from compare import differences

PER_TABLE = 40
TYPES = ["INT", "TINYINT UNSIGNED", "BIGINT", "VARCHAR(10)", "CHAR(5)", "VARCHAR(4)", "DECIMAL(8,2)",
         "DOUBLE", "DATE", "DATETIME(2)", "TIME", "YEAR", "ENUM('a','b')", "BIT(8)", "TINYTEXT",
         "VARBINARY(6)"]
MODES = ["STRICT_TRANS_TABLES", ""]
WORDS = ["", "a", "b", "abc", "1", "12", "-7", "3.50", "1e3", "12x", " 5", "5 ", "300", "99999999999",
         "2024-02-29", "2024-02-30", "10:11:12", "2024", "NULL", "\\N", "N", "ä", "日本", "\\\\", "\\n",
         "\\t", "\\0", "\\\"", "''", "\"\"", "\"a\"b\"", "'x'", "\"x\"", "\"", "!", "!!", "!N", "x y"]


class Table:
    """A table of random columns, now and then with a primary key."""

    def __init__(self, rng):
        self.columns = []
        for n in range(rng.randint(1, 5)):
            null = "" if rng.random() < 0.75 else " NOT NULL"
            self.columns.append((f"c{n}", rng.choice(TYPES) + null))
        key = ""
        if rng.random() < 0.3:
            self.columns[0] = ("c0", "INT NOT NULL")
            key = ", PRIMARY KEY (c0)"
        lines = ", ".join(f"{name} {ty}" for name, ty in self.columns)
        self.definition = f"CREATE TABLE t ({lines}{key})"


class Format:
    """Options of LOAD DATA, and what a file in them is made of."""

    def __init__(self, rng):
        self.field = rng.choice(["\t", "\t", ",", ",", ";;", "ab", "|", ""])
        self.enclosed = rng.choice(["", "", "\"", "\"", "'"])
        self.optional = rng.random() < 0.5
        self.escaped = rng.choice(["\\", "\\", "\\", "", "!"])
        self.line = rng.choice(["\n", "\n", "\n", "\r\n", "END", ";", ""])
        self.start = rng.choice(["", "", "", ">>", "x"])
        self.ignored = rng.choice([0, 0, 0, 1, 2])

    def sql(self):
        def text(s):
            escapes = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
            return "'" + "".join(escapes.get(c, c) for c in s) + "'"
        optionally = "OPTIONALLY " if self.optional and self.enclosed else ""
        out = f" FIELDS TERMINATED BY {text(self.field)} {optionally}ENCLOSED BY " \
              f"{text(self.enclosed)} ESCAPED BY {text(self.escaped)} LINES STARTING BY " \
              f"{text(self.start)} TERMINATED BY {text(self.line)}"
        return out + (f" IGNORE {self.ignored} LINES" if self.ignored else "")

    def file(self, rng, width):
        """The text of a file of some lines; few have as many fields as columns."""
        out = []
        for _ in range(rng.randint(0, 6)):
            out.append(self.start if rng.random() < 0.9 else rng.choice(["", "y"]))
            fields = width if rng.random() < 0.7 else rng.randint(0, width + 2)
            out.append(self.field.join(self.value(rng) for _ in range(fields)))
            out.append(self.line if rng.random() < 0.9 else rng.choice(["\n", ""]))
        if out and rng.random() < 0.3:
            out.pop()
        return "".join(out)

    def value(self, rng):
        word = rng.choice(WORDS)
        if rng.random() < 0.1:
            word += rng.choice([self.field, self.line, self.enclosed, self.escaped, self.start])
        if self.enclosed and rng.random() < 0.5:
            word = self.enclosed + word + (self.enclosed if rng.random() < 0.9 else "")
        if not self.field and not self.enclosed and rng.random() < 0.8:
            return word.ljust(rng.choice([4, 5, 10, 11]))
        return word


def _targets(rng, table):
    """The list of columns and variables behind the options."""
    shape = rng.random()
    if shape < 0.7:
        return ""
    names = [name for name, _ in table.columns]
    rng.shuffle(names)
    if shape < 0.85:
        return f" ({', '.join(names[:rng.randint(1, len(names))])})"
    first = names[0]
    return f" ({', '.join(names[1:] + ['@v'])}) SET {first} = @v"


def _load(side, path, text):
    side.run("TRUNCATE t")
    answer = side.run(text.replace("$FILE", path))
    return answer, side.run("SELECT * FROM t")


def run(sides, database, seed, count):
    """Whether `count` files give the same rows on both sides; prints those that do not."""
    for side in sides:
        side.where["local_infile"] = True
        side.connect()
        if side.run("SELECT @@local_infile").rows != [(b"1",)]:
            raise SystemExit("both servers need local_infile = ON")
    differ = done = number = 0
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "file.txt")
        while done < count:
            name = f"{seed}.{number}"
            number += 1
            rng = random.Random(name)
            table = Table(rng)
            for side in sides:
                for sql in (f"DROP DATABASE IF EXISTS `{database}`", f"CREATE DATABASE `{database}`",
                            f"USE `{database}`", table.definition):
                    side.run(sql)
            for _ in range(min(PER_TABLE, count - done)):
                done += 1
                options = Format(rng)
                content = options.file(rng, len(table.columns))
                with open(path, "w", encoding="utf-8", newline="") as f:
                    f.write(content)
                mode, set_ = rng.choice(MODES), rng.choice(["utf8mb4", "utf8mb4", "latin1", "binary"])
                duplicates = rng.choice(["", "IGNORE ", "REPLACE "])
                sql = f"LOAD DATA LOCAL INFILE '$FILE' {duplicates}INTO TABLE t CHARACTER SET {set_}" \
                      f"{options.sql()}{_targets(rng, table)}"
                for side in sides:
                    side.run(f"SET sql_mode = '{mode}'")
                answers = [_load(side, path, sql) for side in sides]
                found = differences(*[a for a, _ in answers]) or differences(*[rows for _, rows in answers], ordered=True)
                if found:
                    differ += 1
                    print(f"== {name} mode '{mode}': {found[0]}\n{sql};\n    -- {content!r}\n    -- {table.definition}", flush=True)
    print(f"{done} files, {differ} differ")
    return differ == 0
