#!/usr/bin/env python3
"""Write the frozen collation tables of nfold-types, asking a MySQL server for every weight.

    generate.py --host H --port P --user U --password W [--check] [--out DIR]

Asks for WEIGHT_STRING, LOWER and UPPER of every code point, checks that what is left out of the
tables follows from a
formula (Han, Hangul, Tangut, unassigned), looks for contractions, and writes the .bin files of
crates/types/src/collation/tables. With --check it compares with the files that are there and writes
nothing.

All numbers are little-endian. Trie: u32 blocks, u16 stage1[limit / 64] (block number, 0xFFFF: not
in the table), then blocks of 64 entries; the limit is 0x110000, of general.bin 0x10000, of the case
tables 0x20000.

    uca0900.bin, uca0520.bin, uca0400.bin
                               u32 blocks, u32 pool length, u32 secondary weights; stage1;
                               entries u32; pool u16;
                               secondary weights u16, ascending (named by rank, from 1)
        entry   primary | rank << 16 | tertiary << 24 (each 0 where there is none), or
                1 << 31 | pool offset << 16 | the primary, if there is exactly one, or 0
        pool    primaries | pairs << 8, then primaries, then pairs (rank | tertiary << 8)
    general.bin                trie of u16 weights (not in the table: the code point; above
                               U+FFFF: 0xFFFD)
    case_0900.bin, case_0520.bin, case_general.bin
                               two tries (lower, upper) of i32 to add to the code point
    single_byte.bin            u8[256] each: sort orders of latin1_swedish_ci, latin1_general_ci,
                               latin1_general_cs, ascii_general_ci; lower and upper of latin1;
                               lower and upper of ascii
"""
import argparse
import os
import struct
import sys

import pymysql

BLOCK = 64
HERE = os.path.dirname(os.path.abspath(__file__))
TABLES = os.path.join(HERE, "../../crates/types/src/collation/tables")
WEIGHED = ["utf8mb4_0900_ai_ci", "utf8mb4_0900_as_ci", "utf8mb4_0900_as_cs", "utf8mb4_general_ci", "utf8mb4_unicode_ci",
           "utf8mb4_unicode_520_ci", "utf8mb3_general_ci", "utf8mb3_unicode_ci", "utf8mb3_unicode_520_ci"]
CASED = ["utf8mb4_0900_ai_ci", "utf8mb4_0900_as_cs", "utf8mb4_0900_bin", "utf8mb4_general_ci", "utf8mb4_bin",
         "utf8mb4_unicode_ci", "utf8mb4_unicode_520_ci", "utf8mb3_general_ci", "utf8mb3_bin", "utf8mb3_unicode_ci",
         "utf8mb3_unicode_520_ci"]


def words(b):
    return [b[i] << 8 | b[i + 1] for i in range(0, len(b), 2)]


def levels(weights):
    out = [[]]
    for w in weights:
        if w == 0:
            out.append([])
        else:
            out[-1].append(w)
    return out


def code_points(lo, hi):
    """A table expression of (c, s): number and utf8mb4 character."""
    return (f"with recursive n(c) as (select {lo} union all select c + 1 from n where c < {hi}), "
            "s as (select c, convert(char(c using utf32) using utf8mb4) s from n where c not between 0xd800 and 0xdfff) ")


def as_charset(collation):
    return "convert(s using utf8mb3)" if collation.startswith("utf8mb3") else "s"


def read_weights(cur):
    """{collation: {code point: bytes}}"""
    out = {k: {} for k in WEIGHED}
    for lo in range(0, 0x110000, 0x4000):
        names = [k for k in WEIGHED if lo < 0x10000 or not k.startswith("utf8mb3")]
        exprs = ",".join(f"weight_string({as_charset(k)} collate {k})" for k in names)
        cur.execute(code_points(lo, lo + 0x3FFF) + f"select c,{exprs} from s")
        for row in cur.fetchall():
            for name, weight in zip(names, row[1:]):
                out[name][row[0]] = weight
    return out


def read_case(cur):
    """{collation: ({code point: lower}, {code point: upper})}, without those that map to
    themselves.

    LOWER gives its result no more bytes than the source has, so each character is followed by
    enough room."""
    out = {k: ({}, {}) for k in CASED}
    for lo in range(0, 0x20000, 0x4000):
        names = [k for k in CASED if lo < 0x10000 or not k.startswith("utf8mb3")]
        exprs = ",".join(f"hex(convert({f}(concat({as_charset(k)},'.....') collate {k}) using utf8mb4))"
                         for k in names for f in ("lower", "upper"))
        cur.execute(code_points(lo, lo + 0x3FFF) + f"select c,{exprs} from s")
        for row in cur.fetchall():
            for i, text in enumerate(row[1:]):
                mapped = ord(bytes.fromhex(text).decode()[0])
                if mapped != row[0]:
                    out[names[i // 2]][i % 2][row[0]] = mapped
    return out


def implicit_base(cp, han, extensions):
    in_any = lambda ranges: any(a <= cp <= b for a, b in ranges)
    return 0xFB40 if in_any(han) else 0xFB80 if in_any(extensions) else 0xFBC0


COMPAT_HAN = [(0xFA0E, 0xFA0F), (0xFA11, 0xFA11), (0xFA13, 0xFA14), (0xFA1F, 0xFA1F), (0xFA21, 0xFA21), (0xFA23, 0xFA24),
              (0xFA27, 0xFA29)]


def formula_0900(cp, weights):
    """Three levels of a code point that is not in the table (UCA 9.0, section 10.1.3)."""
    if 0xAC00 <= cp <= 0xD7A3:
        i = cp - 0xAC00
        jamo = [0x1100 + i // 588, 0x1161 + i % 588 // 28] + ([0x11A7 + i % 28] if i % 28 else [])
        # The server gives the last page of syllables another tertiary weight.
        return [[w for j in jamo for w in levels(weights[j])[0]], [0x20] * len(jamo), [3 if cp >= 0xD700 else 2] * len(jamo)]
    if 0x17000 <= cp <= 0x18AFF:
        return [[0xFB00, cp - 0x17000 | 0x8000], [0x20], [2]]
    base = implicit_base(cp, [(0x4E00, 0x9FD5)] + COMPAT_HAN,
                         [(0x3400, 0x4DB5), (0x20000, 0x2A6D6), (0x2A700, 0x2B734), (0x2B740, 0x2B81D), (0x2B820, 0x2CEA1)])
    return [[base + (cp >> 15), cp & 0x7FFF | 0x8000], [0x20], [2]]


def formula_0400(cp, weights):
    return [[0xFFFD]] if cp > 0xFFFF else formula_0520(cp, weights)


def formula_0520(cp, _):
    base = implicit_base(cp, [(0x4E00, 0x9FA5)] + COMPAT_HAN, [(0x3400, 0x4DB5)])
    return [[base + (cp >> 15), cp & 0x7FFF | 0x8000]]


def trie(entries, default, limit=0x110000):
    """(stage1 up to code point limit, blocks) of {code point: entry}; blocks hold `default` where a
    code point has none."""
    stage1, blocks, seen = [], [], {}
    for start in range(0, limit, BLOCK):
        block = tuple(entries.get(cp, default) for cp in range(start, start + BLOCK))
        if all(e == default for e in block):
            stage1.append(0xFFFF)
            continue
        if block not in seen:
            seen[block] = len(blocks)
            blocks.append(block)
        stage1.append(seen[block])
    return stage1, blocks


def pack(kind, values):
    return struct.pack(f"<{len(values)}{kind}", *values)


def uca_file(weights, formula):
    """Bytes of a UCA table from {code point: weight string}."""
    by_cp = {cp: levels(words(w)) for cp, w in weights.items()}
    listed = {cp: lv for cp, lv in by_cp.items() if lv != formula(cp, Lazy(weights))}
    ranks = sorted({w for lv in listed.values() if len(lv) > 1 for w in lv[1]})
    assert len(ranks) < 256
    rank = {w: i + 1 for i, w in enumerate(ranks)}
    entries, pool, known = {}, [], {}
    for cp, lv in listed.items():
        primary, secondary, tertiary = (lv + [[], []])[:3]
        assert len(secondary) == len(tertiary)
        # What lets sort keys drop trailing 0x20 and 2: see keys.rs.
        units = sum(1 for i, w in enumerate(primary) if not (i and 0xFB00 <= primary[i - 1] <= 0xFBE1 and w >= 0x8000))
        assert len(lv) == 1 or units == secondary.count(0x20), (hex(cp), lv)
        if len(primary) <= 1 and len(secondary) <= 1:
            entries[cp] = ((primary or [0])[0] | rank.get((secondary or [0])[0], 0) << 16 | (tertiary or [0])[0] << 24)
            continue
        item = [len(primary) | len(secondary) << 8] + primary + [rank[s] | t << 8 for s, t in zip(secondary, tertiary)]
        assert all(t < 32 for t in tertiary)
        key = tuple(item)
        if key not in known:
            known[key] = len(pool)
            pool += item
        assert known[key] < 0x7FFF
        entries[cp] = 1 << 31 | known[key] << 16 | (primary[0] if len(primary) == 1 else 0)
    stage1, blocks = trie(entries, 0xFFFFFFFF)
    print(f"  {len(listed)} code points listed, {len(blocks)} blocks, pool {len(pool)}")
    return (pack("I", [len(blocks), len(pool), len(ranks)]) + pack("H", stage1)
            + b"".join(pack("I", b) for b in blocks) + pack("H", pool) + pack("H", ranks))


class Lazy:
    """Weight words of a code point, looked up on use."""

    def __init__(self, weights):
        self.weights = weights

    def __getitem__(self, cp):
        return words(self.weights[cp])


def general_file(weights):
    entries = {}
    for cp, w in weights.items():
        (value,) = words(w)
        if cp > 0xFFFF:
            assert value == 0xFFFD
        elif value != cp:
            entries[cp] = value
    blocks_of = {cp // BLOCK for cp in entries}
    full = {cp: entries.get(cp, cp) for b in blocks_of for cp in range(b * BLOCK, (b + 1) * BLOCK)}
    stage1, blocks = trie(full, None, 0x10000)
    return pack("I", [len(blocks)]) + pack("H", stage1) + b"".join(pack("H", b) for b in blocks)


def case_file(maps):
    out = b""
    for mapping in maps:
        stage1, blocks = trie({cp: to - cp for cp, to in mapping.items()}, 0, 0x20000)
        out += pack("I", [len(blocks)]) + pack("H", stage1) + b"".join(pack("i", b) for b in blocks)
    return out


def single_byte_file(cur):
    def table(charset, expr, known):
        out = []
        for b in range(256):
            if b < known:
                cur.execute(f"select hex({expr})".replace("@", f"_{charset} x'{b:02X}'"))
                out.append(int(cur.fetchone()[0], 16))
            else:
                out.append(b)
        return bytes(out)

    out = b""
    for name in ("latin1_swedish_ci", "latin1_general_ci", "latin1_general_cs"):
        out += table("latin1", f"weight_string(@ collate {name})", 256)
    out += table("ascii", "weight_string(@ collate ascii_general_ci)", 128)
    for charset, known in (("latin1", 256), ("ascii", 128)):
        for function in ("lower", "upper"):
            out += table(charset, f"{function}(@)", known)
    return out


def find_contractions(cur, weights):
    """Pairs of listed characters of one page of 256, or with one of U+0300..03FF behind, whose
    weights are not the sum."""
    cur.execute("create temporary table a (c int primary key, page int, s varchar(1) character set utf8mb4, key (page))")
    listed = [cp for cp, w in weights.items() if levels(words(w)) != formula_0900(cp, Lazy(weights))]
    for i in range(0, len(listed), 2000):
        cur.execute("insert into a values " + ",".join(f"({c},{c >> 8},_utf8mb4 x'{chr(c).encode().hex()}')" for c in listed[i:i + 2000]))
    cur.execute("create temporary table b select * from a")
    cur.execute("alter table b add key (page)")
    for name in ("utf8mb4_0900_ai_ci", "utf8mb4_unicode_ci", "utf8mb4_unicode_520_ci"):
        w = lambda s: f"weight_string({s} collate {name})"
        for on in ("a.page = b.page", "b.page = 3"):
            cur.execute(f"select count(*), coalesce(sum({w('concat(a.s, b.s)')} <> concat({w('a.s')}, {w('b.s')})), 0) from a join b on {on}")
            pairs, differ = cur.fetchone()
            print(f"  {name}, {on}: {pairs} pairs, {differ} contractions")
            assert differ == 0


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--host", default="127.0.0.1")
    p.add_argument("--port", type=int, default=3306)
    p.add_argument("--user", default="root")
    p.add_argument("--password", default="")
    p.add_argument("--database", default="test", help="where temporary tables may be created")
    p.add_argument("--out", default=TABLES)
    p.add_argument("--check", action="store_true")
    args = p.parse_args()
    db = pymysql.connect(host=args.host, port=args.port, user=args.user, password=args.password, charset="utf8mb4",
                         database=args.database)
    cur = db.cursor()
    cur.execute("set cte_max_recursion_depth = 100000")
    cur.execute("select version()")
    print("server", cur.fetchone()[0])
    weights, case = read_weights(cur), read_case(cur)
    for cp, w in weights["utf8mb4_0900_as_cs"].items():
        lv = levels(words(w))
        assert levels(words(weights["utf8mb4_0900_ai_ci"][cp])) == lv[:1] and levels(words(weights["utf8mb4_0900_as_ci"][cp])) == lv[:2]
    for name in ("general_ci", "unicode_ci", "unicode_520_ci"):
        assert all(weights["utf8mb4_" + name][cp] == w for cp, w in weights["utf8mb3_" + name].items())
    for name, maps in case.items():
        alike = next((k for k in ("utf8mb4_0900_ai_ci", "utf8mb4_unicode_520_ci") if k[7:12] in name), "utf8mb4_general_ci")
        print(f"  case of {name}: {len(maps[0])} lower, {len(maps[1])} upper, same as {alike}: {maps == case[alike]}")
    find_contractions(cur, weights["utf8mb4_0900_as_cs"])
    files = {
        "uca0900.bin": uca_file(weights["utf8mb4_0900_as_cs"], formula_0900),
        "uca0400.bin": uca_file(weights["utf8mb4_unicode_ci"], formula_0400),
        "uca0520.bin": uca_file(weights["utf8mb4_unicode_520_ci"], formula_0520),
        "general.bin": general_file(weights["utf8mb4_general_ci"]),
        "case_0900.bin": case_file(case["utf8mb4_0900_ai_ci"]),
        "case_0520.bin": case_file(case["utf8mb4_unicode_520_ci"]),
        "case_general.bin": case_file(case["utf8mb4_general_ci"]),
        "single_byte.bin": single_byte_file(cur),
    }
    bad = 0
    for name, data in files.items():
        path = os.path.join(args.out, name)
        if args.check:
            same = open(path, "rb").read() == data
            bad += not same
            print(name, len(data), "bytes", "same" if same else "DIFFERS")
        else:
            open(path, "wb").write(data)
            print(name, len(data), "bytes written")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
