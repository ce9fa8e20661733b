"""Random JSON documents and paths, for the scripts beside this. `R` decides everything."""
import random

R = random.Random(20260524)
NAMES = ["a", "b", "c", "ab", "a b", "", "é", "z1", "_x", "1"]
TEXTS = ["", "a", "b", "ab", "é", 'q"', "\\\\", "a\\n", "\\u0001", "%", "a_c", "A"]


def number():
    return R.choice([
        lambda: str(R.randint(-3, 3)), lambda: str(R.randint(-70000, 70000)),
        lambda: str(R.randint(-2**63, 2**64 - 1)), lambda: str(R.choice([0.5, 1.0, -2.5, 1e20])),
        lambda: "%d.%de%d" % (R.randint(-99, 99), R.randint(0, 10**R.randint(1, 20)), R.randint(-30, 30)),
        lambda: str(R.choice([2**31, 2**31 - 1, -2**31, 2**32, 2**63, 2**64, -2**63 - 1, 32767, 32768])),
    ])()


def document(levels):
    kind = R.random()
    if levels == 0 or kind < 0.35:
        return R.choice([number, number, lambda: R.choice(["null", "true", "false"]),
                         lambda: '"%s"' % R.choice(TEXTS).replace('"', '\\"')])()
    count = R.randint(0, 4)
    space = R.choice(["", " "])
    if kind < 0.7:
        return "[" + ("," + space).join(document(levels - 1) for _ in range(count)) + "]"
    members = ['"%s":%s%s' % (R.choice(NAMES), space, document(levels - 1)) for _ in range(count)]
    return "{" + ",".join(members) + "}"


def index():
    return R.choice(["%d" % R.randint(0, 4), "last", "last-%d" % R.randint(0, 3)])


def leg(plain):
    name = lambda: R.choice([".a", ".b", ".c", '."a b"', '.""', ".z1", ".ab", '."1"'])
    cell = lambda: "[%s]" % index()
    choices = [name, name, cell, cell]
    if not plain:
        choices += [lambda: ".*", lambda: "[*]", lambda: "**" + name(), lambda: "**" + cell(),
                    lambda: "[%s to %s]" % (index(), index())]
    return R.choice(choices)()


def path(plain=False):
    return "$" + "".join(leg(plain) for _ in range(R.choice([0, 1, 1, 2, 2, 3])))


def damaged(text):
    at = R.randint(0, len(text))
    return R.choice([text[:at], text[:at] + R.choice('[]{},:"x1. -') + text[at:], text[:at] + text[at + 1:]])
