"""Random strings of each character set's repertoire, the same in every run.

They use no tables of Python, which differ between its versions: bytes and code points only.
"""
import random

HIGH = [(0xA1, 0xFE)]
# First bytes of the characters of two bytes, and their second bytes.
TWO_BYTES = {
    "big5": ((0xA1, 0xF9), [(0x40, 0x7E), (0xA1, 0xFE)]),
    "cp932": ((0x81, 0x9F), [(0x40, 0x7E), (0x80, 0xFC)]),
    "eucjpms": ((0xA1, 0xFE), HIGH),
    "euckr": ((0x81, 0xFE), [(0x41, 0x5A), (0x61, 0x7A), (0x81, 0xFE)]),
    "gb18030": ((0x81, 0xFE), [(0x40, 0x7E), (0x80, 0xFE)]),
    "gb2312": ((0xA1, 0xF7), HIGH),
    "gbk": ((0x81, 0xFE), [(0x40, 0x7E), (0x80, 0xFE)]),
    "sjis": ((0xE0, 0xFC), [(0x40, 0x7E), (0x80, 0xFC)]),
    "ujis": ((0xA1, 0xFE), HIGH),
}
UNICODE = ["utf8mb4", "utf8mb3", "ucs2", "utf16", "utf16le", "utf32"]
# Letters, marks and ideographs: first and last code points of blocks that collations treat apart.
BLOCKS = [
    (0x20, 0x7E), (0x41, 0x5A), (0x61, 0x7A), (0xA0, 0xFF), (0xC0, 0x17F), (0x180, 0x24F),
    (0x300, 0x36F), (0x370, 0x3FF), (0x400, 0x4FF), (0x531, 0x586), (0x5D0, 0x5EA), (0x620, 0x6D3),
    (0x905, 0x939), (0xD85, 0xDC6), (0xE01, 0xE3A), (0x10A0, 0x10FF), (0x1E00, 0x1EFF),
    (0x1F00, 0x1FFF), (0x2000, 0x206F), (0x2100, 0x214F), (0x3000, 0x303F), (0x3041, 0x30FF),
    (0x3400, 0x3410), (0x4E00, 0x9FA5), (0xA640, 0xA66D), (0xAC00, 0xD7A3), (0xF900, 0xFA2D),
    (0xFB00, 0xFB06), (0xFF01, 0xFF9D), (0x0, 0x1F), (0x0, 0xFFFD),
]
ABOVE = [(0x10400, 0x1044F), (0x1F600, 0x1F64F), (0x20000, 0x2A6D6), (0x10000, 0x10FFFF)]
# What languages join to one letter or sort apart.
JOINED = ["ch", "Ch", "CH", "cs", "CS", "dz", "dzs", "DZ", "d\u017e", "gy", "ly", "ll", "LL", "lj",
          "nj", "ny", "sz", "ty", "zs", "aa", "AA", "ae", "oe", "ss", "ij", "IJ", "\u0131", "\u0130",
          "i", "I", "\u00e5", "\u00c4", "\u00f6", "\u00dc", "\u00df", "\u0153", "\u00fe", "\u00f0"]


def encode(charset, code_point):
    c = chr(code_point)
    if charset in ("utf8mb4", "utf8mb3"):
        return c.encode("utf-8")
    if charset == "utf32":
        return c.encode("utf-32-be")
    return c.encode("utf-16-le" if charset == "utf16le" else "utf-16-be")


def is_in(charset, code_point):
    last = 0xFFFF if charset in ("utf8mb3", "ucs2") else 0x10FFFF
    return 0 <= code_point <= last and not 0xD800 <= code_point <= 0xDFFF


def unicode_family(rng, charset):
    """A character and some that are like it."""
    blocks = BLOCKS if charset in ("utf8mb3", "ucs2") or rng.random() < 0.85 else ABOVE
    c = rng.randint(*rng.choice(blocks))
    near = [c, c, c ^ 1, c ^ 0x20, c + 0x20, c + 0x50, c - 0x50, c + 0x28, c + 0x60, c + 0xFEE0]
    found = [encode(charset, n) for n in near if is_in(charset, n)]
    if rng.random() < 0.3:
        found.append(b"".join(encode(charset, ord(x)) for x in rng.choice(JOINED)))
    return found or [encode(charset, 0x61)]


def two_byte_family(rng, charset):
    (low, high), seconds = TWO_BYTES[charset]
    ranges = rng.choice(seconds)
    first, second = rng.randint(low, high), rng.randint(*ranges)
    if rng.random() < 0.4 and low <= 0xA3 <= high:
        first = rng.choice([0xA3, 0xA3, 0xA6, 0xA7, 0xA8])
    near = [second, second, second ^ 1, second ^ 0x20, second + 0x20, second + 0x1A]
    found = [bytes([first, s]) for s in near if ranges[0] <= s <= ranges[1]]
    if charset in ("cp932", "sjis"):
        found.append(bytes([rng.randint(0xA1, 0xDF)]))
    if charset in ("eucjpms", "ujis"):
        found.append(bytes([0x8E, rng.randint(0xA1, 0xDF)]))
        found.append(bytes([0x8F, first, second]))
    if charset == "gb18030":
        # Characters of four bytes that are assigned: below 84, and from 90 to E2.
        found.append(bytes([rng.randint(0x81, 0x83), rng.randint(0x30, 0x39), first, 0x30]))
        if rng.random() < 0.3:
            found.append(bytes([rng.randint(0x90, 0xE2), rng.randint(0x30, 0x39), first, 0x35]))
    return found


def ascii_family(rng):
    c = rng.choice(b"abcdefghilnosuz" if rng.random() < 0.7 else bytes(range(0x80)))
    return [bytes([c]), bytes([c ^ 0x20]), bytes([rng.randrange(0x20, 0x7F)])]


def family(rng, charset):
    if charset in UNICODE:
        return unicode_family(rng, charset)
    if charset in TWO_BYTES:
        return two_byte_family(rng, charset) if rng.random() < 0.7 else ascii_family(rng)
    if charset == "ascii":
        return ascii_family(rng)
    c = rng.randrange(256) if rng.random() < 0.6 else rng.choice(b"abcdehlnorstuyz")
    found = [bytes([n & 0xFF]) for n in (c, c, c ^ 0x20, c ^ 0x10, c + 1, c - 1)]
    if rng.random() < 0.2:
        found += [b"ch", b"Ch", b"CH", b"ss", b"ae"]
    return found


def basic(charset, c):
    return encode(charset, ord(c)) if charset in UNICODE else c.encode("ascii")


def changed(rng, alphabet, space, s):
    s = list(s)
    for _ in range(rng.randint(0, 2)):
        kind = rng.randrange(4)
        if kind == 0:
            s.append(space)
        elif kind == 1:
            s.insert(rng.randint(0, len(s)), rng.choice(alphabet))
        elif s and kind == 2:
            del s[rng.randrange(len(s))]
        elif s:
            s[rng.randrange(len(s))] = rng.choice(alphabet)
    return s


def rows(collation, charset, count):
    """Pairs of strings that are often equal or alike, with a pattern each."""
    rng = random.Random(collation)
    space, many, one = (basic(charset, c) for c in " %_")
    out = []
    for _ in range(count):
        alphabet = family(rng, charset) + (family(rng, charset) if rng.random() < 0.7 else [])
        if rng.random() < 0.2:
            alphabet.append(space)
        a = [rng.choice(alphabet) for _ in range(rng.randint(0, 6))]
        b = changed(rng, alphabet, space, a)
        if rng.random() < 0.3:
            b = [rng.choice(alphabet) for _ in b]
        pattern = changed(rng, alphabet, space, a if rng.random() < 0.6 else b)
        pattern = [many if rng.random() < 0.2 else one if rng.random() < 0.2 else c for c in pattern]
        out.append((b"".join(a), b"".join(b), b"".join(pattern)))
    return out
