#!/usr/bin/env python3
"""Write the frozen tables of the character sets of East Asia, as a MySQL server answers.

    coded.py --host H --port P --user U --password W [--check] [--out FILE]

charset/tables/coded.bin, numbers little-endian: u32[9] offsets of the sections of big5, cp932,
eucjpms, euckr, gb2312, gbk, sjis and ujis and of the end; then the sections, each a zlib stream:

    u32 n, u16[n] code points (0: none) of the well-formed characters of several bytes in ascending
        order, those of two bytes before those of three; high bytes of all, then low bytes; each
        number less the one before it, or, for gb2312, eucjpms and cp932, less that of the same
        character in gbk, ujis and sjis
    u32 n, (u32 code point, u32 code)[n] where it is not the first character of its code point
    u32 n, (u32 code, u32 lower case, u32 upper case)[n]
    u8[128] weights of the bytes of ASCII in the collation that is not binary
    u32 n, u16[n] weights of the characters, high bytes and low bytes apart as above; none: their
        own bytes
"""
import argparse
import os
import struct
import sys
import zlib

import pymysql

HERE = os.path.dirname(os.path.abspath(__file__))
FILE = os.path.join(HERE, "../../crates/types/src/charset/tables/coded.bin")
SETS = {"big5": "big5_chinese_ci", "cp932": "cp932_japanese_ci", "eucjpms": "eucjpms_japanese_ci", "euckr": "euckr_korean_ci",
        "gb2312": "gb2312_chinese_ci", "gbk": "gbk_chinese_ci", "sjis": "sjis_japanese_ci", "ujis": "ujis_japanese_ci"}
BASES = {"gb2312": "gbk", "eucjpms": "ujis", "cp932": "sjis"}


def text(x):
    return x.decode() if isinstance(x, bytes) else x


def survey(cur, name):
    """{code in hex: (code point or 0, lower, upper, weight)}, and {code point: code}."""
    cur.execute("set cte_max_recursion_depth = 2000000")
    three = " union all select c + 0x8f0000 from n where c >= 0x8000" if name in ("ujis", "eucjpms") else ""
    e = f"char(c using {name})"
    cur.execute(f"select hex({e}), hex(convert({e} using utf32)), hex(lower({e})), hex(upper({e})), "
                f"hex(weight_string({e} collate {SETS[name]})) from (with recursive n(c) as (select 0 union all select c + 1 from n "
                f"where c < 65535) select c from n{three}) z where {e} is not null and char_length({e}) = 1")
    chars = {}
    for row in cur.fetchall():
        code, point, lower, upper, weight = map(text, row)
        chars[code] = (0 if point in ("", "0000003F") and code != "3F" else int(point, 16), lower, upper, weight)
    cur.execute("with recursive n(c) as (select 0 union all select c + 1 from n where c < 65535), s as (select c, convert(char(c using "
                f"utf32) using utf8mb4) s from n where c not between 0xd800 and 0xdfff) select c, hex(convert(s using {name})) from s "
                f"where hex(convert(s using {name})) <> '3F'")
    return chars, {c: text(code) for c, code in cur.fetchall()}


def halves(numbers):
    return bytes(n >> 8 & 0xFF for n in numbers) + bytes(n & 0xFF for n in numbers)


def less_before(numbers):
    return [b - a for a, b in zip([0] + numbers, numbers)]


def section(name, surveys):
    chars, back = surveys[name]
    codes = sorted((c for c in chars if len(c) > 2), key=lambda c: (len(c), c))
    points = [chars[c][0] for c in codes]
    if name in BASES:
        base = surveys[BASES[name]][0]
        deltas = [p - base[c][0] for c, p in zip(codes, points)]
    else:
        deltas = less_before(points)
    out = struct.pack("<I", len(codes)) + halves(deltas)
    first = {}
    for code, point in zip(codes, points):
        first.setdefault(point, code)
    single = {v[0]: c for c, v in chars.items() if len(c) == 2}
    others = [(p, int(c, 16)) for p, c in sorted(back.items()) if first.get(p, single.get(p)) != c]
    assert all(p in back for p in first if p)
    out += struct.pack("<I", len(others)) + b"".join(struct.pack("<II", *o) for o in others)
    cases = [(int(c, 16), int(chars[c][1], 16), int(chars[c][2], 16)) for c in codes if chars[c][1:3] != (c, c)]
    out += struct.pack("<I", len(cases)) + b"".join(struct.pack("<III", *c) for c in cases)
    out += bytes(int(chars[f"{b:02X}"][3], 16) for b in range(128))
    assert all(chars[f"{b:02X}"][1:3] == (f"{ord(chr(b).lower()):02X}", f"{ord(chr(b).upper()):02X}") for b in range(128))
    weights = [] if all(chars[c][3] == c for c in codes) else [int(chars[c][3], 16) for c in codes]
    return out + struct.pack("<I", len(weights)) + halves(less_before(weights))


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--host", default="127.0.0.1")
    p.add_argument("--port", type=int, default=3306)
    p.add_argument("--user", default="root")
    p.add_argument("--password", default="")
    p.add_argument("--check", action="store_true")
    p.add_argument("--out", default=FILE)
    args = p.parse_args()
    cur = pymysql.connect(host=args.host, port=args.port, user=args.user, password=args.password, charset="utf8mb4", sql_mode="").cursor()
    surveys = {name: survey(cur, name) for name in SETS}
    sections = [zlib.compress(section(name, surveys), 9) for name in SETS]
    offsets, at = [], 4 * (len(SETS) + 1)
    for s in sections:
        offsets.append(at)
        at += len(s)
    data = struct.pack(f"<{len(SETS) + 1}I", *offsets, at) + b"".join(sections)
    if args.check:
        with open(args.out, "rb") as f:
            sys.exit("coded.bin is not what the server answers" if f.read() != data else 0)
    with open(args.out, "wb") as f:
        f.write(data)
    print(dict(zip(SETS, map(len, sections))), len(data), "bytes")


if __name__ == "__main__":
    main()
