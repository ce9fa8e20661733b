"""Random regular expressions, well formed and malformed, beside random texts, by all functions of
regular expressions.

Every syntax of ICU is among them. Where MySQL gives up (errors 3698 and 3699) every answer counts
as right. `record` writes cases with MySQL's answers as the fixture
of the tests of `crates/regexp`."""

import random
import re

CHARS = ["a", "b", "c", "A", "B", "k", "s", "ss", "ff", "1", "2", " ", "_", "-", ".", "\n", "\r", "\r\n", "\t", "\u0085", "\u2028", "é", "É", "e\u0301", "ß", "ẞ", "\u212a",
         "ſ", "ﬀ", "ﬁ", "fi", "İ", "i", "I", "ı", "Σ", "σ", "ς", "ǆ", "ǅ", "ᾳ", "ᾼ", "\u1fb4", "😀", "\U00010400", "\U00010428", "한", "ᄀ", "ᅡ", "\u200d", "\u0903", "Ж", "ж", "٣", "中", "x",
         "🇩🇪", "👩\u200d👩", "$", "{", "}", "[", "]", "\\"]
COMMON = ["a", "b", "c", "A", "B", "1", " ", "\n", "ab", "é"]
SPECIAL = set("\\^$.|?*+()[]{}")
PROPERTIES = ["L", "Lu", "Ll", "Nd", "P", "Z", "M", "Sc", "Greek", "Cyrillic", "Latin", "Han", "Alphabetic", "Uppercase", "Lowercase", "White_Space", "gc=Lu", "sc=Greek", "script=Latin",
              "InGreek", "InBasic_Latin", "block=Cyrillic", "IsLatin", "javaDigit", "javaLetter", "javaWhitespace", "javaUpperCase", "alnum", "xdigit", "blank", "punct", "graph", "print", "any", "ASCII",
              "assigned", "Age=6.0", "Hex_Digit", "ID_Start", "Emoji", "Cased", "letter", "uppercase letter", "word", "all", "foo", "Alphabetic=No", "^Lu", "Lt", "Titlecase_Letter", "cntrl", "space"]
POSIX = ["alpha", "digit", "alnum", "upper", "lower", "punct", "space", "blank", "cntrl", "graph", "print", "xdigit", "word", "^alpha", "Lu", "foo", "all"]
ESCAPES = ["\\d", "\\D", "\\w", "\\W", "\\s", "\\S", "\\h", "\\H", "\\v", "\\V", "\\R", "\\X", "\\t", "\\n", "\\r", "\\f", "\\a", "\\e", "\\x41", "\\x{e9}", "\\u0062", "\\U0001F600", "\\061",
           "\\0141", "\\cA", "\\x{1F600}", "\\ud83d\\ude00", "\\Qa.b\\E", "\\Q*\\E", "\\.", "\\-", "\\y", "\\E", "\\u00df"]
ANCHORS = ["^", "$", "\\A", "\\z", "\\Z", "\\b", "\\B", "\\G"]
BROKEN = ["(", ")", "[", "]", "{", "}", "*", "+", "?", "|", "\\", "^", "$", "(?", "(?<", "[^", "[:", ":]", "&&", "--", "(?#", "\\x", "\\u1", "\\Q", "\\k<", "{2,1}", "{1,", "(?i", "\\p{", "\\N{", "-", "#", "a"]
FLAGS = ["", "", "c", "i", "m", "n", "u", "cm", "in", "mu", "cn", "imnu", "ic", "cu", "nm"]


class Gen:
    """A random pattern."""

    def __init__(self, rng):
        self.rng, self.groups, self.names = rng, 0, []

    def char(self):
        return self.rng.choice(COMMON if self.rng.random() < 0.7 else CHARS)

    def literal(self):
        c = self.char()
        return "".join("\\" + x if x in SPECIAL else x for x in c)

    def pattern(self, depth):
        parts = [self.sequence(depth) for _ in range(self.rng.choice([1, 1, 1, 1, 2, 3]))]
        return "|".join(parts)

    def sequence(self, depth):
        return "".join(self.term(depth) for _ in range(self.rng.choice([0, 1, 1, 2, 2, 3, 4])))

    def term(self, depth):
        r = self.rng.random()
        if r < 0.12:
            return self.rng.choice(ANCHORS)
        return self.atom(depth) + self.quantifier()

    def quantifier(self):
        r = self.rng.random()
        if r < 0.6:
            return ""
        base = self.rng.choice(["*", "+", "?", "*", "+", "?", "{%d}" % self.rng.randint(0, 3), "{%d,}" % self.rng.randint(0, 3), "{%d,%d}" % (self.rng.randint(0, 2), self.rng.randint(1, 4)),
                                "{%d,%d}" % (self.rng.randint(0, 12), self.rng.randint(9, 14))])
        return base + self.rng.choice(["", "", "", "?", "+"])

    def atom(self, depth):
        r = self.rng.random()
        if depth <= 0 or r < 0.45:
            return self.simple()
        body = self.pattern(depth - 1)
        if r < 0.62:
            self.groups += 1
            return f"({body})"
        kind = self.rng.choice(["?:", "?:", "?>", "?=", "?!", "?<=", "?<!", "?i:", "?-i:", "?s:", "?m:", "?x:", "?<n%d>" % self.groups, "?im-s:"])
        if kind.startswith("?<n"):
            self.groups += 1
            self.names.append(kind[2:-1])
        return f"({kind}{body})"

    def simple(self):
        r = self.rng.random()
        if r < 0.45:
            return self.literal()
        if r < 0.55:
            return "."
        if r < 0.68:
            return self.rng.choice(ESCAPES)
        if r < 0.72:
            return "\\%s{%s}" % (self.rng.choice("pP"), self.rng.choice(PROPERTIES))
        if r < 0.77:
            if self.names and self.rng.random() < 0.3:
                return f"\\k<{self.rng.choice(self.names)}>"
            return "\\%d" % self.rng.randint(1, max(1, self.groups + (self.rng.random() < 0.1)))
        if r < 0.80:
            return self.rng.choice(["(?i)", "(?-i)", "(?s)", "(?m)", "(?x) a #c\n", "(?#x)", "(?-x)", "(?ims)", "(?d)"])
        return self.set(2)

    def set(self, depth):
        items = []
        for _ in range(self.rng.choice([1, 1, 2, 2, 3, 4])):
            r = self.rng.random()
            if r < 0.4:
                items.append(self.set_char())
            elif r < 0.6:
                a, b = sorted([self.set_char(), self.set_char()]) if self.rng.random() < 0.95 else (self.set_char(), self.set_char())
                items.append(f"{a}-{b}")
            elif r < 0.72:
                items.append(f"[:{self.rng.choice(POSIX)}:]")
            elif r < 0.8:
                items.append(self.rng.choice(["\\d", "\\w", "\\s", "\\D", "\\W", "\\S", "\\h", "\\v", "\\p{%s}" % self.rng.choice(PROPERTIES), "\\x41", "\\n", "\\]", "\\-", "\\\\"]))
            elif r < 0.92 and depth:
                items.append(self.set(depth - 1))
            else:
                items.append(self.rng.choice(["-", "&", "^", "]", ":", ".", "*", "["]) if self.rng.random() < 0.3 else self.set_char())
        text = items[0]
        for item in items[1:]:
            text += self.rng.choice(["", "", "", "&&", "--", "-", "&"]) + item
        return "[%s%s]" % (self.rng.choice(["", "", "", "^"]), text)

    def set_char(self):
        c = self.char()[0]
        return "\\" + c if c in "[]\\^-&" else c


def pattern(rng):
    text = Gen(rng).pattern(rng.choice([0, 1, 1, 2, 2, 3])) or rng.choice(["a", "a|", "()", ""])
    if rng.random() < 0.12:
        at = rng.randint(0, len(text))
        text = text[:at] + rng.choice(BROKEN) + text[at + rng.choice([0, 0, 1]):]
    return text


def subject(rng, text):
    """Mostly characters of the pattern, so that it matches now and then."""
    own = [c for c in text if c not in SPECIAL] or ["a"]
    out = ""
    for _ in range(rng.choice([0, 1, 2, 3, 4, 5, 6, 8, 10, 15])):
        r = rng.random()
        out += rng.choice(COMMON) if r < 0.5 else rng.choice(own) if r < 0.8 else rng.choice(CHARS)
    return out


def replacement(rng):
    return rng.choice(["x", "<$0>", "$1", "[$1$2]", "\\$1", "${n0}", "", "$", "\\u0041", "a$0b", "$10", "\\\\"])


def quoted(text):
    for a, b in (("\\", "\\\\"), ("'", "''"), ("\0", "\\0")):
        text = text.replace(a, b)
    return f"'{text}'"


def case(rng):
    """A pattern, a text, flags and the SELECT over them."""
    p = pattern(rng)
    s, flags = subject(rng, p), rng.choice(FLAGS)
    position = 1 if rng.random() < 0.6 else rng.randint(1, max(1, len(s)))
    occurrence = rng.choice([1, 1, 1, 2, 3])
    return p, s, flags, position, occurrence, replacement(rng)


def select(p, s, flags, position, occurrence, with_text, collation):
    text, regexp = quoted(s) + collation, quoted(p)
    f = f", '{flags}'" if flags else ", ''"
    return (f"SELECT REGEXP_INSTR({text}, {regexp}, {position}, {occurrence}, 0{f}), REGEXP_INSTR({text}, {regexp}, {position}, {occurrence}, 1{f}), "
            f"HEX(REGEXP_SUBSTR({text}, {regexp}, {position}, {occurrence}{f})), HEX(REGEXP_REPLACE({text}, {regexp}, {quoted(with_text)}, {position}, {0 if occurrence == 1 else occurrence}{f}))"), \
        f"SELECT REGEXP_LIKE({text}, {regexp}{f}), {text} REGEXP {regexp}, {text} NOT RLIKE {regexp}"


GIVES_UP = (3698, 3699)


def differs(p, mysql, nfold):
    """Whether answers differ, and by what."""
    if mysql.error in GIVES_UP:
        return None
    if nfold.error == 1235:
        return "not supported"
    if mysql.rows and nfold.rows and "\\X" in p and mysql.rows[0][:3] == nfold.rows[0][:3]:
        # MySQL loses the text before a match of \\X when it replaces.
        return None
    if mysql.error != nfold.error or (mysql.error and mysql.message != nfold.message):
        return f"error: MySQL {mysql.error} {mysql.message}, Nfold {nfold.error} {nfold.message}"
    if mysql.rows != nfold.rows:
        return f"rows: MySQL {mysql.rows}, Nfold {nfold.rows}"
    return None


def run(sides, database, seed, statements):
    del database
    rng = random.Random(seed)
    seen = {}
    for side in sides:
        side.run("SET NAMES utf8mb4")
    for n in range(statements):
        p, s, flags, position, occurrence, with_text = case(rng)
        collation = rng.choice(["", "", "", " COLLATE utf8mb4_bin", " COLLATE utf8mb4_0900_ai_ci"])
        for sql in select(p, s, flags, position, occurrence, with_text, collation):
            found = differs(p, *[side.run(sql) for side in sides])
            if found:
                kind = found[:26]
                seen[kind] = seen.get(kind, 0) + 1
                if seen[kind] <= 12:
                    print(f"== {n}: {p!r} beside {s!r}: {found}\n{sql};", flush=True)
                break
    print(f"{statements} patterns, differences: {seen}")
    return not [k for k in seen if k != "not supported"]


ESCAPED = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def escaped(text):
    """A field of the fixture: characters that an editor may not show are written as \\u{...}."""
    return "".join(ESCAPED.get(c) or (c if " " <= c <= "~" else "\\u{%x}" % ord(c)) for c in text)


def outcome(side, p, s, flags, position, occurrence, with_text):
    """What MySQL answers: an error number with its message's figures, or start, end, replaced text
    and whether it matches at all; `None` where it gives up."""
    values, like = [side.run(sql) for sql in select(p, s, flags, position, occurrence, with_text, " COLLATE utf8mb4_0900_ai_ci")]
    if values.error in GIVES_UP or like.error in GIVES_UP:
        return None
    if values.error:
        figures = re.findall(r"\b\d+", values.message)[-2:] if values.error == 3688 else []
        return "\t".join(["E%d" % values.error, *figures])
    start, end, _, replaced = values.rows[0]
    return "\t".join([start.decode(), end.decode(), escaped(bytes.fromhex(replaced.decode()).decode()), like.rows[0][0].decode()])


def record(side, path, seed, count):
    """Writes `count` cases, one a line: flags, pattern, text, position, occurrence, replacement,
    and MySQL's answer."""
    rng = random.Random(seed)
    side.run("SET NAMES utf8mb4")
    with open(path, "w", encoding="ascii") as file:
        while count:
            p, s, flags, position, occurrence, with_text = case(rng)
            # MySQL loses the text before a match of \\X; the engine has no names of characters.
            if len(p) > 100 or "\\X" in p or "\\N" in p:
                continue
            answer = outcome(side, p, s, flags, position, occurrence, with_text)
            # Most errors are alike.
            if answer is not None and (answer[0] != "E" or rng.random() < 0.3):
                file.write("\t".join([flags, escaped(p), escaped(s), str(position), str(occurrence), escaped(with_text), answer]) + "\n")
                count -= 1
