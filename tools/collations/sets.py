#!/usr/bin/env python3
"""Write the frozen tables of the character sets of one byte, asking a MySQL server for every byte.

    sets.py --host H --port P --user U --password W [--check] [--out DIR]

charset/tables/single_sets.bin, numbers little-endian:

    SETS        u16[256], u8[256], u8[256] each: code points (0: none), lower case, upper case

collation/tables/single_orders.bin:

    ORDERS      u8[256] each: the weight of each byte
    german2     u8[256][2] weights (the second one 0: there is none), u8[256] the byte that LIKE
                and LOCATE take it for
    czech       u8[4][256] weights of latin2_czech_cs in each pass, u8[3][4] those of ch, Ch, CH,
                u8[256] bytes of LOCATE
    czech1250   u8[2][256] weights of cp1250_czech_cs in each pass, u8[3][2] those of ch, Ch, CH
    CASED       u8[256], u8[256] each: lower and upper case, where they are not those of the set
    thai        u8[256] weights of tis620_thai_ci, u8[256] levels of the marks that move to the
                end, u8[256] bytes of LIKE and LOCATE
"""
import argparse
import os
import struct
import sys

import pymysql

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCES = os.path.join(HERE, "../../crates/types/src")
SETS = ["armscii8", "cp1250", "cp1251", "cp1256", "cp1257", "cp850", "cp852", "cp866", "dec8", "geostd8", "greek", "hebrew", "hp8",
        "keybcs2", "koi8r", "koi8u", "latin2", "latin5", "latin7", "macce", "macroman", "swe7", "tis620"]
ORDERS = [
    "latin1_german1_ci", "latin1_danish_ci", "latin1_spanish_ci", "armscii8_general_ci", "cp1250_general_ci", "cp1250_croatian_ci",
    "cp1250_polish_ci", "cp1251_bulgarian_ci", "cp1251_ukrainian_ci", "cp1251_general_ci", "cp1251_general_cs", "cp1256_general_ci",
    "cp1257_lithuanian_ci", "cp1257_general_ci", "cp850_general_ci", "cp852_general_ci", "cp866_general_ci", "dec8_swedish_ci",
    "geostd8_general_ci", "greek_general_ci", "hebrew_general_ci", "hp8_english_ci", "keybcs2_general_ci", "koi8r_general_ci",
    "koi8u_general_ci", "latin2_general_ci", "latin2_hungarian_ci", "latin2_croatian_ci", "latin5_turkish_ci", "latin7_estonian_cs",
    "latin7_general_ci", "latin7_general_cs", "macce_general_ci", "macroman_general_ci", "swe7_swedish_ci"]
CASED = ["latin2_czech_cs", "cp1250_czech_cs"]
DOUBLES = [b"ch", b"Ch", b"CH"]


class Server:
    def __init__(self, args):
        self.cur = pymysql.connect(host=args.host, port=args.port, user=args.user, password=args.password, charset="utf8mb4",
                                   sql_mode="").cursor()

    def ask(self, expressions):
        """The answers, which are hexadecimal digits."""
        self.cur.execute("select " + ",".join(expressions))
        return [bytes.fromhex(x) for x in self.cur.fetchone()]

    def each_byte(self, function, charset):
        return self.ask([f"hex({function.format(f'''_{charset} x'{b:02X}' ''')})" for b in range(256)])

    def weights(self, collation, strings):
        charset = collation.split("_")[0]
        return self.ask([f"hex(weight_string(_{charset} x'{s.hex()}' collate {collation}))" for s in strings])

    def same(self, collation, condition):
        """For each byte the first one that `condition` (of the texts a and b) takes for it."""
        charset = collation.split("_")[0]
        byte = f"convert(unhex(lpad(hex({{}}.c), 2, '0')) using {charset})"
        condition = condition.format(a=f"({byte.format('x')} collate {collation})", b=byte.format("y"), set=charset)
        self.cur.execute("with recursive n(c) as (select 0 union all select c + 1 from n where c < 255) "
                         f"select y.c, min(x.c) from n x join n y where {condition} group by y.c order by y.c")
        rows = self.cur.fetchall()
        assert [r[0] for r in rows] == list(range(256)), collation
        return bytes(r[1] for r in rows)


LIKE = "{a} like concat(convert('|' using {set}), {b}) escape '|'"
LOCATE = "locate({b}, {a}) = 1"


def one_byte_each(answers):
    assert all(len(a) == 1 for a in answers)
    return b"".join(answers)


def charset(server, name):
    code_points = [int.from_bytes(a, "big") for a in server.each_byte("convert({} using utf32)", name)]
    code_points = [0 if u == 0x3F and b != 0x3F else u for b, u in enumerate(code_points)]
    assert all(u < 0x10000 for u in code_points)
    return (struct.pack("<256H", *code_points) + one_byte_each(server.each_byte("lower({})", name))
            + one_byte_each(server.each_byte("upper({})", name)))


def german2(server):
    weights = server.weights("latin1_german2_ci", [bytes([b]) for b in range(256)])
    assert all(len(w) in (1, 2) for w in weights)
    like = server.same("latin1_german2_ci", LIKE)
    assert like == server.same("latin1_german2_ci", LOCATE)
    return b"".join(w + bytes(2 - len(w)) for w in weights) + like


def czech_passes(weight):
    passes = weight[:-1].split(b"\1")
    assert len(passes) == 4 and weight[-1] == 0
    return [p[0] if p else 0 for p in passes]


def czech(server):
    passes = [czech_passes(w) for w in server.weights("latin2_czech_cs", [bytes([b]) for b in range(256)])]
    inside = server.weights("latin2_czech_cs", [b"a" + bytes([b]) + b"a" for b in range(256)])
    # Spaces have the weight 2, and none where they stand at the end.
    passes = [[2] * 4 if w == inside[0x20] else p for p, w in zip(passes, inside)]
    assert all(2 not in p or p == [2] * 4 for p in passes)
    doubles = [czech_passes(w) for w in server.weights("latin2_czech_cs", DOUBLES)]
    assert server.same("latin2_czech_cs", LIKE) == bytes(range(256))
    return (b"".join(bytes(p[i] for p in passes) for i in range(4)) + b"".join(bytes(d) for d in doubles)
            + server.same("latin2_czech_cs", LOCATE))


def czech1250(server):
    weights = server.weights("cp1250_czech_cs", [bytes([b]) for b in range(256)])
    assert all(len(w) == 2 for w in weights)
    assert server.same("cp1250_czech_cs", LIKE) == server.same("cp1250_czech_cs", LOCATE) == bytes(range(256))
    return bytes(w[0] for w in weights) + bytes(w[1] for w in weights) + b"".join(server.weights("cp1250_czech_cs", DOUBLES))


def thai(server):
    weights = server.weights("tis620_thai_ci", [bytes([b]) for b in range(256)])
    between = server.weights("tis620_thai_ci", [bytes([0xA1, b, 0xA1]) for b in range(256)])
    # A mark that moves behind the text weighs its level above F8, less eight for each character
    # before it.
    levels = bytes(w[-1] - 0xF0 if w[-1] > 0xF0 else 0 for b, w in enumerate(between))
    like = server.same("tis620_thai_ci", LIKE)
    assert like == server.same("tis620_thai_ci", LOCATE)
    # WEIGHT_STRING shows the zero byte as a space, which it is not when strings are compared.
    assert weights[0] == b" "
    return b"\0" + one_byte_each(weights[1:]) + levels + like


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--host", default="127.0.0.1")
    p.add_argument("--port", type=int, default=3306)
    p.add_argument("--user", default="root")
    p.add_argument("--password", default="")
    p.add_argument("--check", action="store_true")
    p.add_argument("--out", default=SOURCES)
    args = p.parse_args()
    server = Server(args)
    sets = b"".join(charset(server, name) for name in SETS)
    orders = b"".join(one_byte_each(server.weights(name, [bytes([b]) for b in range(256)])) for name in ORDERS)
    orders += german2(server) + czech(server) + czech1250(server)
    for name in CASED:
        for function in ("lower", "upper"):
            orders += one_byte_each(server.each_byte(function + "({} collate " + name + ")", name.split("_")[0]))
    orders += thai(server)
    for name, data in [("charset/tables/single_sets.bin", sets), ("collation/tables/single_orders.bin", orders)]:
        path = os.path.join(args.out, name)
        if args.check:
            with open(path, "rb") as f:
                if f.read() != data:
                    sys.exit(f"{name} is not what the server answers")
            continue
        with open(path, "wb") as f:
            f.write(data)
        print(name, len(data), "bytes")


if __name__ == "__main__":
    main()
