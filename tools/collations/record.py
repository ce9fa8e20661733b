#!/usr/bin/env python3
"""Record what a MySQL server answers about random strings, for the tests of nfold-types.

    record.py --host H --port P --user U --password W [--seed N] [--count N] [--out DIR]
    [COLLATION...]

One line a question, fields apart by tabs, strings in hex in the collation's own character set:

    weights.tsv   collation, string, WEIGHT_STRING(string)
    compare.tsv   collation, a, b, STRCMP(a, b)
    like.tsv      collation, text, pattern, escape character, text LIKE pattern ESCAPE escape
    locate.tsv    collation, haystack, needle, LOCATE(needle, haystack)
    case.tsv      collation, string, LOWER(string), UPPER(string), REVERSE(string), LEFT(string, 2),
                  CHAR_LENGTH(string)
    convert.tsv   from, to, string, CONVERT(string USING to)

Strings above U+FFFF and outside latin1 or ascii are asked only of collations that can hold them.
"""
import argparse
import os
import random

import pymysql

HERE = os.path.dirname(os.path.abspath(__file__))
FIXTURES = os.path.join(HERE, "../../crates/types/src/collation/fixtures")
COLLATIONS = {
    "utf8mb4": ["utf8mb4_0900_ai_ci", "utf8mb4_0900_as_ci", "utf8mb4_0900_as_cs", "utf8mb4_0900_bin", "utf8mb4_general_ci",
                "utf8mb4_bin", "utf8mb4_unicode_ci"],
    "utf8mb3": ["utf8mb3_general_ci", "utf8mb3_bin", "utf8mb3_unicode_ci"],
    "latin1": ["latin1_swedish_ci", "latin1_bin", "latin1_general_ci", "latin1_general_cs"],
    "ascii": ["ascii_general_ci", "ascii_bin"],
    "binary": ["binary"],
}
PYTHON = {"utf8mb4": "utf8", "utf8mb3": "utf8", "latin1": "cp1252", "ascii": "ascii", "binary": "ascii", "ucs2": "utf-16-be",
          "utf16": "utf-16-be", "utf16le": "utf-16-le", "utf32": "utf-32-be"}
WIDE = ["ucs2", "utf16", "utf16le", "utf32"]
HIGH = [(0xA1, 0xFE)]
# First and second bytes of the characters of two bytes; random_code makes those behind 8E and 8F.
CODES = {
    "big5": ((0xA1, 0xF9), [(0x40, 0x7E), (0xA1, 0xFE)]), "gbk": ((0x81, 0xFE), [(0x40, 0x7E), (0x80, 0xFE)]),
    "gb18030": ((0x81, 0xFE), [(0x40, 0x7E), (0x80, 0xFE)]), "gb2312": ((0xA1, 0xF7), HIGH),
    "euckr": ((0x81, 0xFE), [(0x41, 0x5A), (0x61, 0x7A), (0x81, 0xFE)]), "sjis": ((0xE0, 0xFC), [(0x40, 0x7E), (0x80, 0xFC)]),
    "cp932": ((0x81, 0x9F), [(0x40, 0x7E), (0x80, 0xFC)]), "ujis": ((0xA1, 0xFE), HIGH), "eucjpms": ((0xA1, 0xFE), HIGH)}
ASCII = "aAbBcCsStTeE019.-_% \t\n~!\x00\x01\x1f\x7f"
LATIN = "aAáÁàäÄåÅæÆéÉèëñÑöÖøØßsSuüÜyÿzþÞ€Š \xa0\xad"
MARKS = "\u0300\u0301\u0308\u030a\u0327\u0345\u0591\u200d\ufe0f\u0e47"
# Expansions, compatibility forms, letters with odd case, Han, Hangul, Tangut, Thai, Indic, symbols.
BMP = "ŉŊıİſǅǄǆẛẞßﬁﬀﷺΩωΣσςᾳᾼДдЁёЖжЙйא٣२กเ᭄เกாொ丨一龥鿕豈更㐀가각힣각あアｱカガ㌀①⑳™Å\u2126\u212a\u3000\u2003\u2028\ufffd\ufffe\uffff\ue000ꙁ"
# Letters that languages sort apart, and those that contractions are made of.
LANGUAGES = "cChHlLjJnNdDzZžŽsSgGyYtTaAåÅäÄöÖüÜøÆőűáéíóúıIiİğşçÇłśżąęėūųůřčšñÐþÞĉĝĥĵŝŭâêôăđơưạảấầاآبپتکكیيهة\u064b\u0654අආකඅංдйыөүъ\u0307\u0300\u0303"
KANA = "あアｱァぁかガがカーゝゞヽヾんンﾝヵヶゔヴ一二三亜丂乁阿呵㐀豈"
SUPPLEMENTARY = "😀😁👍🏽𐐀𐐨𝐀𝒜𠀀𪛖𪜀𗀀𘬀𞤀𞤢\U000e0001\U0010ffff"


MORE = []


def characters(charset):
    if charset in ("ascii", "binary"):
        return [ASCII]
    if charset == "latin1":
        return [ASCII, LATIN]
    return [ASCII, LATIN, MARKS, BMP] + MORE + ([SUPPLEMENTARY] if charset == "utf8mb4" else [])


def random_code(rng, charset):
    """A character of a set that has two bytes for most of them; often one whose case there is."""
    if charset in ("sjis", "cp932") and rng.random() < 0.2:
        return bytes([rng.randint(0xA1, 0xDF)])
    if charset in ("ujis", "eucjpms") and rng.random() < 0.3:
        return bytes([0x8E, rng.randint(0xA1, 0xDF)] if rng.random() < 0.3 else [0x8F, rng.randint(0xA1, 0xFE), rng.randint(0xA1, 0xFE)])
    if charset == "gb18030" and rng.random() < 0.4:
        cp = rng.randrange(0x80, 0x110000) if rng.random() < 0.2 else ord(rng.choice(rng.choice([LATIN, BMP, LANGUAGES])))
        return chr(cp).encode("gb18030") if not 0xD800 <= cp <= 0xDFFF else b"a"
    (low, high), seconds = CODES[charset]
    first = rng.choice([0xA2, 0xA3, 0xA6, 0xA7]) if rng.random() < 0.3 and high > 0xA7 >= low else rng.randint(low, high)
    return bytes([first, rng.randint(*rng.choice(seconds))])


def random_char(rng, charset):
    if charset in CODES and rng.random() < 0.6:
        return random_code(rng, charset)
    if charset in WIDE:
        last = 0x10FFFF if charset != "ucs2" and rng.random() < 0.2 else 0xFFFF
        cp = rng.randrange(last + 1) if rng.random() < 0.2 else ord(rng.choice(rng.choice([ASCII, LATIN, MARKS, BMP, LANGUAGES, KANA])))
        return chr(cp if cp < 0xD800 or 0xDFFF < cp <= last else 0x41).encode(PYTHON[charset])
    if charset not in PYTHON:
        if charset not in CODES and rng.random() < 0.5:
            return bytes([rng.randrange(256)])
        return rng.choice(ASCII).encode()
    if charset == "latin1" and rng.random() < 0.3:
        return bytes([rng.randrange(256)])
    if charset == "binary" and rng.random() < 0.3:
        return bytes([rng.randrange(256)])
    if charset.startswith("utf8") and rng.random() < 0.15:
        while True:
            cp = rng.randrange(0x30000 if charset == "utf8mb4" and rng.random() < 0.3 else 0x10000)
            if not 0xD800 <= cp <= 0xDFFF:
                return chr(cp).encode()
    c = rng.choice(rng.choice(characters(charset)))
    return c.encode(PYTHON[charset])


def random_string(rng, charset, longest=6):
    s = [random_char(rng, charset) for _ in range(rng.randint(0, longest))]
    if rng.random() < 0.15:
        s += [in_set(charset, " ")] * rng.randint(1, 3)
    return s


def in_set(charset, c):
    return c.encode(PYTHON.get(charset, "ascii"))


def swapped(charset, char):
    """The character in the other case, where that is one character of the set."""
    if charset not in PYTHON:
        return bytes([char[0] ^ 0x20]) if len(char) == 1 and (charset not in CODES or char[0] < 0x80) else char
    try:
        other = char.decode(PYTHON[charset]).swapcase()
        if len(other) == 1 and (charset != "utf8mb3" or other <= "\uffff"):
            return other.encode(PYTHON[charset])
    except UnicodeError:
        pass
    return char


def mutated(rng, charset, s):
    """A string close to s, so that comparisons often end in equality or late."""
    s = list(s)
    for _ in range(rng.randint(0, 2)):
        kind = rng.randrange(5)
        if kind == 0 and s:
            i = rng.randrange(len(s))
            s[i] = swapped(charset, s[i])
        elif kind == 1:
            s.append(in_set(charset, " "))
        elif kind == 2:
            s.insert(rng.randint(0, len(s)), random_char(rng, charset))
        elif kind == 3 and s:
            del s[rng.randrange(len(s))]
        elif s:
            s[rng.randrange(len(s))] = random_char(rng, charset)
    return s


def pattern_of(rng, charset, s):
    out = []
    for c in mutated(rng, charset, s):
        r = rng.random()
        if r < 0.15:
            out.append(in_set(charset, "%"))
        elif r < 0.25:
            out.append(in_set(charset, "_"))
        elif r < 0.35:
            out += [in_set(charset, rng.choice(["\\", "|"])), c]
        elif r < 0.4:
            pass
        else:
            out.append(c)
    if rng.random() < 0.3:
        out.insert(rng.randint(0, len(out)), in_set(charset, "%"))
    return out


def literal(charset, s, collation=None):
    text = f"_{charset} x'{b''.join(s).hex()}'"
    return f"{text} collate `{collation}`" if collation else text


class Asker:
    """Collects expressions, asks for many of them at once."""

    def __init__(self, cur):
        self.cur = cur
        self.batch = []

    def ask(self, expressions, done):
        self.batch.append((expressions, done))
        if len(self.batch) >= 100:
            self.flush()

    def flush(self):
        if not self.batch:
            return
        self.cur.execute("select " + ",".join(e for es, _ in self.batch for e in es))
        row = iter(self.cur.fetchone())
        for es, done in self.batch:
            done([next(row) for _ in es])
        self.batch = []


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--host", default="127.0.0.1")
    p.add_argument("--port", type=int, default=3306)
    p.add_argument("--user", default="root")
    p.add_argument("--password", default="")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--count", type=int, default=100, help="questions of a kind for each collation")
    p.add_argument("--out", default=FIXTURES)
    p.add_argument("collations", nargs="*", help="only these, and no conversions")
    args = p.parse_args()
    questions = COLLATIONS
    if args.collations:
        questions = {}
        MORE.extend([LANGUAGES, LANGUAGES, LANGUAGES, LANGUAGES, KANA])
        for name in args.collations:
            questions.setdefault(name.split("_")[0], []).append(name)
    db = pymysql.connect(host=args.host, port=args.port, user=args.user, password=args.password, charset="utf8mb4",
                         sql_mode="NO_BACKSLASH_ESCAPES")
    cur = db.cursor()
    cur.execute("select version()")
    version = cur.fetchone()[0]
    asker, rng = Asker(cur), random.Random(args.seed)
    lines = {k: [] for k in ("weights", "compare", "like", "locate", "case", "convert")}
    hexed = lambda s: b"".join(s).hex().upper()

    def put(kind, *fields):
        return lambda answers: lines[kind].append("\t".join([*fields, *(str(a) for a in answers)]))

    def put_whole(then):
        """Leaves out strings that LOWER or UPPER cuts off at a character that grows by it (Ⱥ, ɒ);
        Nfold converts them."""
        def check(answers):
            count = lambda hexed: sum(x & 0xC0 != 0x80 for x in bytes.fromhex(hexed))
            if count(answers[0]) == count(answers[1]) == count(answers[2]):
                then(answers)
        return check if charset.startswith("utf8") else then

    for charset, names in questions.items():
        for name in names:
            lit = lambda s: literal(charset, s, name)
            for _ in range(args.count):
                s = random_string(rng, charset)
                asker.ask([f"hex(weight_string({lit(s)}))"], put("weights", name, hexed(s)))
                a = random_string(rng, charset)
                b = mutated(rng, charset, a) if rng.random() < 0.8 else random_string(rng, charset)
                asker.ask([f"strcmp({lit(a)}, {lit(b)})"], put("compare", name, hexed(a), hexed(b)))
                text = random_string(rng, charset, 8)
                pattern = pattern_of(rng, charset, text)
                # The server does not tell apart "no escape" from a backslash in every mode, so
                # always name one.
                # With ESCAPE '%' or '_' it takes byte 0xFF for the wildcard under collations of one
                # byte.
                escape = rng.choice(["\\", "|", "|", "a"] + ([] if charset == "latin1" or charset not in PYTHON else ["%", "_"]))
                if charset == "swe7":
                    escape = "a"
                asker.ask([f"{lit(text)} like {literal(charset, pattern)} escape '{escape}'"],
                          put("like", name, hexed(text), hexed(pattern), escape))
                hay = random_string(rng, charset, 8)
                i = rng.randint(0, len(hay))
                needle = mutated(rng, charset, hay[i:i + rng.randint(0, 3)])
                asker.ask([f"locate({literal(charset, needle)}, {lit(hay)})"], put("locate", name, hexed(hay), hexed(needle)))
                s = random_string(rng, charset)
                # Room behind the string, because LOWER and UPPER cut off what grows.
                room = literal(charset, [in_set(charset, "." * 20)])
                padded = f"concat({lit(s)}, {room})"
                asker.ask([f"hex(left(lower({padded}), char_length({lit(s)})))", f"hex(left(upper({padded}), char_length({lit(s)})))",
                           f"hex(reverse({lit(s)}))", f"hex(left({lit(s)}, 2))", f"char_length({lit(s)})"],
                          put_whole(put("case", name, hexed(s))))
        for to in COLLATIONS:
            if args.collations or "binary" in (charset, to):
                continue
            for _ in range(args.count):
                s = random_string(rng, charset)
                asker.ask([f"hex(convert({literal(charset, s)} using {to}))"], put("convert", charset, to, hexed(s)))
    for c in range(0 if args.collations else 256):
        asker.ask([f"hex(convert(_latin1 x'{c:02X}' using utf8mb4))"], put("convert", "latin1", "utf8mb4", f"{c:02X}"))
    for c in list(range(0x80, 0x180)) + [0x20AC, 0x2018, 0x2122] if not args.collations else []:
        asker.ask([f"hex(convert(_utf8mb4 x'{chr(c).encode().hex()}' using latin1))"],
                  put("convert", "utf8mb4", "latin1", chr(c).encode().hex().upper()))
    asker.flush()
    os.makedirs(args.out, exist_ok=True)
    for kind, rows in lines.items():
        with open(os.path.join(args.out, kind + ".tsv"), "w") as f:
            f.write(f"# recorded from MySQL {version} by tools/collations/record.py, seed {args.seed}\n")
            f.writelines(r + "\n" for r in rows)
        print(kind, len(rows))


if __name__ == "__main__":
    main()
