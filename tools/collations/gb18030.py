#!/usr/bin/env python3
"""Write the frozen tables of gb18030, as a MySQL server answers.

    gb18030.py --host H --port P --user U --password W [--check] [--out FILE]

charset/tables/gb18030.bin is a zlib stream; numbers are little-endian. A character of four bytes
has an index, its place among all of them:
((b0 - 0x81) * 10 + b1 - 0x30) * 1260 + (b2 - 0x81) * 10 + b3 - 0x30.

    u32 n, u16[n] code points of the characters of two bytes in ascending order, each less that of
        the same character in gbk; high bytes of all, then low bytes
    u32 n, (u32 index, u32 count, u32 code point)[n] runs of characters of four bytes,
        ascending by index
    u32 n, (u32 code, u32 lower case, u32 upper case)[n]
    u32 n, u16[n] places of the characters of two bytes in the order of Pinyin, high bytes and low
        bytes apart; 0: none
    u32 n, u16[n] those of four bytes by their index
"""
import argparse
import os
import struct
import sys
import zlib

import pymysql

HERE = os.path.dirname(os.path.abspath(__file__))
FILE = os.path.join(HERE, "../../crates/types/src/charset/tables/gb18030.bin")
INDEXES = 126 * 12600
PINYIN = 0xFFA00000
FOUR = ("char(0x81+floor(i/12600), 0x30+floor(i/1260)%10, 0x81+floor(i/10)%126, 0x30+i%10 "
        "using gb18030)")


def text(x):
    return x.decode() if isinstance(x, bytes) else x


def query(cur, sql):
    cur.execute(sql)
    return [tuple(map(text, row)) for row in cur.fetchall()]


def numbers(cur, low, high):
    return f"(with recursive n(i) as (select {low} union all select i+1 from n where i<{high}) select i from n) z"


def halves(values):
    high = bytes(n >> 8 & 0xFF for n in values)
    return struct.pack("<I", len(values)) + high + bytes(n & 0xFF for n in values)


def code_of(index):
    return ((0x81 + index // 12600) << 24 | (0x30 + index // 1260 % 10) << 16
            | (0x81 + index // 10 % 126) << 8 | (0x30 + index % 10))


def index_of(code):
    b = code.to_bytes(4, "big")
    return ((b[0] - 0x81) * 10 + b[1] - 0x30) * 1260 + (b[2] - 0x81) * 10 + b[3] - 0x30


def rank(weight):
    n = int(weight, 16)
    return n - PINYIN if len(weight) == 8 and n >> 20 == PINYIN >> 20 else 0


def two_bytes(cur):
    """[(code, code point, code point in gbk, weight)] of the characters of two bytes."""
    point = lambda s: f"hex(convert(char(i using {s}) using utf32))"
    rows = query(cur, f"select i, {point('gb18030')}, {point('gbk')}, hex(weight_string(char(i using gb18030) "
                      f"collate gb18030_chinese_ci)) from {numbers(cur, 0x8100, 0xFFFF)}")
    known = lambda p: 0 if p in ("", None, "0000003F") else int(p, 16)
    return [(i, known(own), known(gbk), w) for i, own, gbk, w in rows if own]


def four_bytes(cur):
    """[(code point or None, weight)] by index."""
    out = []
    for low in range(0, INDEXES, 60000):
        part = numbers(cur, low, min(low + 60000, INDEXES) - 1)
        rows = query(cur, f"select i, hex(convert({FOUR} using utf32)), "
                          f"hex(weight_string({FOUR} collate gb18030_chinese_ci)) from {part} order by i")
        out += [(None if p == "0000003F" else int(p, 16), w) for _, p, w in rows]
    return out


def runs(four):
    out = []
    for index, (point, _) in enumerate(four):
        if point is None:
            continue
        if out and out[-1][0] + out[-1][1] == index and out[-1][2] + out[-1][1] == point:
            out[-1][1] += 1
        else:
            out.append([index, 1, point])
    return out


def cases(cur):
    """[(code, lower, upper)] of the characters that have another case."""
    c = "convert(convert(char(i using utf32) using utf8mb4) using gb18030)"
    rows = query(cur, f"select hex({c}), hex(lower({c})), hex(upper({c})) from {numbers(cur, 0x80, 0x1FFFF)} "
                      "where i not between 0xd800 and 0xdfff")
    codes = sorted(tuple(int(x, 16) for x in row) for row in rows if row[1:] != (row[0], row[0]))
    return [row for row in codes if row[0] >= 0x80]


def file(cur):
    cur.execute("set cte_max_recursion_depth = 2000000")
    two, four, letters = two_bytes(cur), four_bytes(cur), cases(cur)
    upper = {code: up for code, _, up in letters}
    for code, _, _, weight in two:
        assert rank(weight) or int(weight, 16) == plain(upper.get(code, code)), (code, weight)
    for index, (_, weight) in enumerate(four):
        code = code_of(index)
        assert rank(weight) or int(weight, 16) == plain(upper.get(code, code)), (index, weight)
    blocks = runs(four)
    ranks = [rank(w) for _, w in four]
    last = max(i for i, r in enumerate(ranks) if r)
    out = halves([(own - gbk) & 0xFFFF for _, own, gbk, _ in two])
    out += struct.pack("<I", len(blocks)) + b"".join(struct.pack("<III", *b) for b in blocks)
    out += struct.pack("<I", len(letters)) + b"".join(struct.pack("<III", *c) for c in letters)
    out += halves([rank(w) for *_, w in two]) + halves(ranks[:last + 1])
    return zlib.compress(out, 9)


def plain(code):
    """The weight of a character that has no place in the order of Pinyin."""
    if code == 0xFE39FE39:
        return 0xFFFFFFFF
    return code if code <= 0xFFFF else 0xFF000000 + index_of(code)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--host", default="127.0.0.1")
    p.add_argument("--port", type=int, default=3306)
    p.add_argument("--user", default="root")
    p.add_argument("--password", default="")
    p.add_argument("--check", action="store_true")
    p.add_argument("--out", default=FILE)
    args = p.parse_args()
    cur = pymysql.connect(host=args.host, port=args.port, user=args.user, password=args.password,
                          charset="utf8mb4", sql_mode="").cursor()
    data = file(cur)
    if args.check:
        with open(args.out, "rb") as f:
            sys.exit("gb18030.bin is not what the server answers" if f.read() != data else 0)
    with open(args.out, "wb") as f:
        f.write(data)
    print(len(data), "bytes")


if __name__ == "__main__":
    main()
