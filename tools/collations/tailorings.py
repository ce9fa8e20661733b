#!/usr/bin/env python3
"""Write the frozen table of the language collations (`tailorings.bin`), asking a MySQL server for
every weight.

    tailorings.py --host H --port P --user U --password W [--database D] [--check] [--out DIR]

A tailoring says how a language's weights differ from those of its base (UCA 4.0 or 9.0):

    ranges         primary weights that move: reordered scripts, and Han that is weighed otherwise
    tertiary       tertiary weights that move: upper case first
    overrides      weights of single code points
    contractions   weights of sequences of code points

The program asks for WEIGHT_STRING of every code point, finds the ranges, and lists as overrides
what they do not explain. It
looks for contractions of two characters among some 2,500 letters and marks, of three and four among
those that occur in
contractions. It checks that the accent-insensitive collation of each language has the first level
of the sensitive one.

Layout: numbers are LEB128 (zigzag where signed), `weights` is a count and the weights.

    u16 count (little-endian), then for each tailoring u32 offset from the start of the file
    (little-endian); at each offset:
        base 0: UCA 4.0, 1: UCA 9.0
        ranges: count, then start - end of the last, end - start, signed delta, 1 if
                FB86 comes first
        tertiary: count, then from, to
        letters: count, then code point - last code point, signed primary - last primary. Levels:
        primary; 0020; 0002
        overrides: count, then code point - last code point, count of levels, weights of each level
        contractions: count, then count of code points, code points, count of levels, weights of
        each level

The order of tailorings is that of LANGUAGES, which crates/types/src/collation/tailoring.rs repeats.
"""
import argparse
import collections
import os
import struct
import sys

import pymysql

HERE = os.path.dirname(os.path.abspath(__file__))
TABLES = os.path.join(HERE, "../../crates/types/src/collation/tables")
UCA_0400 = ["icelandic", "latvian", "romanian", "slovenian", "polish", "estonian", "spanish", "swedish", "turkish", "czech", "danish",
            "lithuanian", "slovak", "spanish2", "roman", "persian", "esperanto", "hungarian", "sinhala", "german2", "croatian", "vietnamese"]
UCA_0900 = ["de_pb", "is", "lv", "ro", "sl", "pl", "et", "es", "sv", "tr", "cs", "da", "lt", "sk", "es_trad", "la", "eo", "hu", "hr", "vi",
            "ja", "ja_ks", "ru", "zh", "nb", "nn", "sr_latn", "bs", "bg", "gl", "mn_cyrl"]
LANGUAGES = UCA_0400 + UCA_0900
# Where characters of contractions are looked for.
CANDIDATES = [(0x27, 0x27), (0x2D, 0x2D), (0x41, 0x5A), (0x61, 0x7A), (0xB7, 0xB7), (0xC0, 0x24F), (0x2B0, 0x36F), (0x370, 0x52F),
              (0x5D0, 0x5EA), (0x621, 0x656), (0x670, 0x6D5), (0x900, 0x94D), (0x980, 0x9CD), (0xD81, 0xDF3), (0xE01, 0xE4F),
              (0xE81, 0xECD), (0x1E00, 0x1FFF), (0x200C, 0x200D), (0x3041, 0x30FF), (0x3400, 0x3403), (0x4E00, 0x4E03), (0xFF66, 0xFF9F)]


def collation_of(language):
    if language in UCA_0400:
        return f"utf8mb4_{language}_ci"
    return "utf8mb4_ja_0900_as_cs_ks" if language == "ja_ks" else f"utf8mb4_{language}_0900_as_cs"


def base_of(language):
    return "utf8mb4_unicode_ci" if language in UCA_0400 else "utf8mb4_0900_as_cs"


def levels(weights):
    out = [[]]
    for i in range(0, len(weights), 2):
        w = weights[i] << 8 | weights[i + 1]
        if w == 0:
            out.append([])
        else:
            out[-1].append(w)
    return out


def primaries(weights):
    """(weight, whether it is the second half of a pair)"""
    second = False
    for w in weights:
        yield w, second
        second = not second and w >> 8 == 0xFB


def moved(lv, ranges, tertiary):
    first = []
    for w, second in primaries(lv[0]):
        hit = None if second else next((r for r in ranges if r[0] <= w <= r[1]), None)
        first += [w] if hit is None else [0xFB86] * hit[3] + [w + hit[2]]
    out = [first] + lv[1:]
    if len(out) > 2:
        out[2] = [tertiary.get(t, t) for t in out[2]]
    return out


def find_ranges(base, different):
    """Ranges of primary weights that move in most code points, and the tertiary weights that do."""
    votes, marks = collections.defaultdict(collections.Counter), collections.defaultdict(collections.Counter)
    for cp, lv in base.items():
        new = different.get(cp, lv)
        if len(lv) > 2 and len(new) > 2 and len(lv[2]) == len(new[2]):
            for a, b in zip(lv[2], new[2]):
                marks[a][b] += 1
        old = list(primaries(lv[0]))
        if not old:
            continue
        w, rest = old[0][0], [a for a, _ in old[1:]]
        if old[0][0] >> 8 == 0xFB and len(old) == 2:
            if len(new[0]) == 2 and new[0][1] == rest[0]:
                votes[w][(new[0][0] - w, 0)] += 1
            elif len(new[0]) == 3 and new[0][0] == 0xFB86:
                votes[w][(new[0][1] - w, 1)] += 1
            else:
                votes[w][None] += 1
        elif len(old) == 1:
            if len(new[0]) == 1:
                votes[w][(new[0][0] - w, 0)] += 1
            elif len(new[0]) == 2 and new[0][0] == 0xFB86:
                votes[w][(new[0][1] - w, 1)] += 1
            else:
                votes[w][None] += 1
    ranges = []
    for w in sorted(votes):
        best = votes[w].most_common(1)[0][0] or (0, 0)
        if sum(votes[w].values()) == 1 and ranges and ranges[-1][2:] != list(best):
            # One code point that stands alone is an exception, unless those before it move alike.
            best = (0, 0)
        if ranges and ranges[-1][2:] == list(best):
            ranges[-1][1] = w
        else:
            ranges.append([w, w, *best])
    # A single weight that moves alone says less than an override of its code points.
    ranges = [r for r in ranges if (r[2] or r[3]) and (r[1] > r[0] or r[0] >= 0xFB00)]
    tertiary = {a: c.most_common(1)[0][0] for a, c in marks.items()}
    return ranges, {a: b for a, b in tertiary.items() if a != b}


def read_base(cur, name):
    cur.execute(f"select c, weight_string(s collate {name}) from code_points")
    return {c: levels(w) for c, w in cur.fetchall()}


def read_different(cur, name, base):
    w = "weight_string(s collate {})"
    cur.execute(f"select c, {w.format(name)} from code_points where {w.format(name)} <> {w.format(base)}")
    return {c: levels(v) for c, v in cur.fetchall()}


def fill(cur, table, code_points):
    cur.execute(f"drop temporary table if exists {table}")
    cur.execute(f"create temporary table {table} as select * from code_points where c in ({','.join(map(str, code_points))})")


def find_contractions(cur, name):
    """{code points: levels}. A NUL has no weight, and ends a contraction."""
    w = lambda *parts: f"weight_string(concat({','.join(parts)}) collate {name})"
    nul = "_utf8mb4 x'00'"
    out = {}
    where = " or ".join(f"c between {a} and {b}" for a, b in CANDIDATES)
    for table in "ab":
        cur.execute(f"drop temporary table if exists {table}")
        cur.execute(f"create temporary table {table} as select * from code_points where {where}")
    cur.execute(f"select a.c, b.c, {w('a.s', 'b.s')} from a straight_join b where {w('a.s', 'b.s')} <> {w('a.s', nul, 'b.s')}")
    for a, b, weights in cur.fetchall():
        out[a, b] = levels(weights)
    # Longer ones are sought among letters, marks, and what occurs in contractions of two.
    near = set(range(0x61, 0x7B)) | set(range(0x41, 0x5B)) | set(range(0x300, 0x30D)) | {0x327, 0x328, 0x17E, 0x17D}
    near |= {c for pair in out for c in pair}
    for table in "abcd":
        fill(cur, table, near)
    splits = [w("a.s", nul, "b.s", "c.s"), w("a.s", "b.s", nul, "c.s")]
    cur.execute(f"select a.c, b.c, c.c, {w('a.s', 'b.s', 'c.s')} from a straight_join b straight_join c where "
                + " and ".join(f"{w('a.s', 'b.s', 'c.s')} <> {s}" for s in splits))
    for a, b, c, weights in cur.fetchall():
        out[a, b, c] = levels(weights)
    if any(len(k) == 3 for k in out):
        for table in "abcd":
            fill(cur, table, {c for key in out for c in key})
        splits = [w("a.s", nul, "b.s", "c.s", "d.s"), w("a.s", "b.s", nul, "c.s", "d.s"), w("a.s", "b.s", "c.s", nul, "d.s")]
        cur.execute(f"select a.c, b.c, c.c, d.c, {w('a.s', 'b.s', 'c.s', 'd.s')} from a straight_join b straight_join c straight_join d where "
                    + " and ".join(f"{w('a.s', 'b.s', 'c.s', 'd.s')} <> {s}" for s in splits))
        for *key, weights in cur.fetchall():
            out[tuple(key)] = levels(weights)
    return out


def leb(n):
    out = bytearray()
    while n >= 0x80:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def signed(n):
    return leb(n << 1 if n >= 0 else (-n << 1) - 1)


def packed_levels(lv):
    return leb(len(lv)) + b"".join(leb(len(level)) + b"".join(leb(w) for w in level) for level in lv)


def packed(language, ranges, tertiary, overrides, contractions):
    out = leb(0 if language in UCA_0400 else 1) + leb(len(ranges))
    last = 0
    for start, end, delta, prefix in ranges:
        out += leb(start - last) + leb(end - start) + signed(delta) + leb(prefix)
        last = end
    out += leb(len(tertiary)) + b"".join(leb(a) + leb(b) for a, b in sorted(tertiary.items()))
    plain = {cp: lv[0][0] for cp, lv in overrides.items() if len(lv) == 3 and lv[1:] == [[0x20], [2]] and len(lv[0]) == 1}
    out += leb(len(plain))
    last, last_primary = 0, 0
    for cp, primary in sorted(plain.items()):
        out += leb(cp - last) + signed(primary - last_primary)
        last, last_primary = cp, primary
    rest = {cp: lv for cp, lv in overrides.items() if cp not in plain}
    out += leb(len(rest))
    last = 0
    for cp, lv in sorted(rest.items()):
        out += leb(cp - last) + packed_levels(lv)
        last = cp
    out += leb(len(contractions))
    for key, lv in sorted(contractions.items()):
        out += leb(len(key)) + b"".join(leb(c) for c in key) + packed_levels(lv)
    return out


def check_insensitive(cur, language):
    """The collation without accents and case has the first level of the one with them."""
    name = f"utf8mb4_{language}_0900_ai_ci"
    cur.execute("select count(*) from information_schema.collations where collation_name = %s", (name,))
    if not cur.fetchone()[0]:
        return
    full, first = f"weight_string(s collate {collation_of(language)})", f"weight_string(s collate {name})"
    cur.execute(f"select count(*) from code_points where concat({first}, x'0000') <> left(concat({full}, x'0000'), length({first}) + 2)")
    assert cur.fetchone()[0] == 0, name


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--host", default="127.0.0.1")
    p.add_argument("--port", type=int, default=3306)
    p.add_argument("--user", default="root")
    p.add_argument("--password", default="")
    p.add_argument("--database", default="test", help="where a temporary table may be created")
    p.add_argument("--out", default=TABLES)
    p.add_argument("--check", action="store_true")
    args = p.parse_args()
    db = pymysql.connect(host=args.host, port=args.port, user=args.user, password=args.password, charset="utf8mb4", database=args.database)
    cur = db.cursor()
    cur.execute("set cte_max_recursion_depth = 2000000")
    cur.execute("create temporary table code_points (c int primary key, s varchar(1) character set utf8mb4)")
    cur.execute("insert into code_points with recursive n(c) as (select 0 union all select c + 1 from n where c < 0x10ffff) "
                "select c, convert(char(c using utf32) using utf8mb4) from n where c not between 0xd800 and 0xdfff")
    bases = {name: read_base(cur, name) for name in ("utf8mb4_unicode_ci", "utf8mb4_0900_as_cs")}
    parts = []
    for language in LANGUAGES:
        name, base = collation_of(language), bases[base_of(language)]
        different = read_different(cur, name, base_of(language))
        ranges, tertiary = find_ranges(base, different) if len(different) > 500 else ([], {})
        overrides = {}
        for cp in base if ranges or tertiary else different:
            new = different.get(cp, base[cp])
            if moved(base[cp], ranges, tertiary) != new:
                overrides[cp] = new
        contractions = find_contractions(cur, name)
        if language in UCA_0900:
            check_insensitive(cur, language.removesuffix("_ks"))
        part = packed(language, ranges, tertiary, overrides, contractions)
        parts.append(part)
        print(f"  {name}: {len(ranges)} ranges, {len(tertiary)} tertiary, {len(overrides)} overrides, "
              f"{len(contractions)} contractions (longest {max(map(len, contractions), default=0)}), {len(part)} bytes", flush=True)
    offset, table, data = 2 + 4 * len(parts), struct.pack("<H", len(parts)), b""
    for part in parts:
        table += struct.pack("<I", offset + len(data))
        data += part
    path = os.path.join(args.out, "tailorings.bin")
    if args.check:
        same = open(path, "rb").read() == table + data
        print("tailorings.bin", "same" if same else "DIFFERS")
        sys.exit(not same)
    open(path, "wb").write(table + data)
    print("tailorings.bin", len(table + data), "bytes written")


if __name__ == "__main__":
    main()
