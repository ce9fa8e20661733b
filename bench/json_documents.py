#!/usr/bin/python3
"""Server CPU of reading and changing parts of documents of 10 KB.

    bench/json_documents.py nfold=PORT:PID mysql=PORT:PID [--rounds 9]

The statements and the servers take turns. Prints CPU microseconds per statement (user and system
time of the server's threads, the median of the rounds), and the median of the rounds' ratios of the
first server to the last one. Names the statements whose ratio is over --limit; the exit status is
then 1.
"""
import argparse
import json
import random
import statistics
import sys

import paired

DATABASE = "json_documents"
ROWS = 500
# Of all documents.
SCANS = {
    "sum of a nested member": "SELECT SUM(j->'$.counters.c17') FROM documents",
    "greatest text member": "SELECT MAX(j->>'$.field111') FROM documents",
    "count by a condition on a member": "SELECT COUNT(*) FROM documents WHERE j->'$.counters.c17' > 50",
    "sum of the key": "SELECT SUM(id) FROM documents",
    "JSON_LENGTH": "SELECT SUM(JSON_LENGTH(j)) FROM documents",
    "JSON_LENGTH with a path": "SELECT SUM(JSON_LENGTH(j, '$.tags')) FROM documents",
    "JSON_CONTAINS with a path": "SELECT SUM(JSON_CONTAINS(j, '17', '$.counters.c17')) FROM documents",
    "JSON_CONTAINS_PATH": "SELECT SUM(JSON_CONTAINS_PATH(j, 'one', '$.counters.c17')) FROM documents",
    "JSON_TYPE": "SELECT MAX(JSON_TYPE(j)) FROM documents",
    "JSON_KEYS with a path": "SELECT MAX(JSON_KEYS(j, '$.counters')) FROM documents",
    "MEMBER OF an array": "SELECT SUM('word' MEMBER OF (j->'$.tags')) FROM documents",
    "member in a LATERAL table": "SELECT SUM(m) FROM documents, LATERAL (SELECT j->'$.counters.c17' m) x",
    "JSON_TABLE of an object": "SELECT SUM(n) FROM documents, JSON_TABLE(j, '$.counters' COLUMNS (n INT PATH '$.c17')) x",
}


def document(n):
    """A document of about 10 KB."""
    rng = random.Random(n)
    word = lambda: "".join(rng.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(rng.randint(5, 40)))
    members = {f"field{i}": word() for i in range(200)}
    members["counters"] = {f"c{i}": rng.randint(0, 99) for i in range(60)}
    members["tags"] = [word() for _ in range(50)]
    members["state"] = "new"
    return json.dumps(members)


STATEMENTS = {
    "member of one row": lambda rng: f"SELECT j->'$.counters.c17' FROM documents WHERE id={rng.randrange(ROWS)}",
    "text member of one row": lambda rng: f"SELECT j->>'$.field111' FROM documents WHERE id={rng.randrange(ROWS)}",
    "JSON_SET of a number": lambda rng: f"UPDATE documents SET j=JSON_SET(j,'$.counters.c17',{rng.randrange(99)}) WHERE id={rng.randrange(ROWS)}",
    "JSON_REPLACE of a text": lambda rng: f"UPDATE documents SET j=JSON_REPLACE(j,'$.state','s{rng.randrange(9)}') WHERE id={rng.randrange(ROWS)}",
    "JSON_SET of a new member": lambda rng: f"UPDATE documents SET j=JSON_SET(j,'$.extra{rng.randrange(9)}',1) WHERE id={rng.randrange(ROWS)}",
    "JSON_REMOVE of a member": lambda rng: f"UPDATE documents SET j=JSON_REMOVE(j,'$.extra{rng.randrange(9)}') WHERE id={rng.randrange(ROWS)}",
    **{name: lambda rng, sql=sql: sql for name, sql in SCANS.items()},
}


class Server(paired.Running):
    """A running server with an open connection."""

    def __init__(self, word):
        super().__init__(word)
        self.connection = self.connect()
        cursor = self.connection.cursor()
        cursor.execute(f"DROP DATABASE IF EXISTS {DATABASE}")
        cursor.execute(f"CREATE DATABASE {DATABASE}")
        cursor.execute(f"USE {DATABASE}")
        cursor.execute("CREATE TABLE documents (id INT PRIMARY KEY, j JSON NOT NULL)")
        for n in range(ROWS):
            cursor.execute("INSERT INTO documents VALUES (%s, %s)", (n, document(n)))

    def run(self, make, count, seed):
        """CPU microseconds of a statement, the mean of `count`."""
        rng = random.Random(seed)
        statements = [make(rng) for _ in range(count)]
        before = self.cpu_seconds()
        for sql in statements:
            self.connection.query(sql)
        return (self.cpu_seconds() - before) * 1e6 / count


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("servers", nargs="+", help="NAME=PORT:PID")
    parser.add_argument("--statements", type=int, default=300, help="of each kind in each round")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--limit", type=float, default=0.33)
    args = parser.parse_args()
    servers = [Server(word) for word in args.servers]
    figures = {(s.name, name): [] for s in servers for name in STATEMENTS}
    for round_ in range(args.rounds + 1):
        for name, make in STATEMENTS.items():
            count = max(1, args.statements // 50) if name in SCANS else args.statements
            for s in servers:
                used = s.run(make, count, round_)
                if round_ > 0:  # the first one warms up
                    figures[s.name, name].append(used)
    first, last = servers[0].name, servers[-1].name
    print(f"| statement | {' | '.join(f'{s.name}, µs' for s in servers)} | ratio |")
    print("| --- " * (len(servers) + 2) + "|")
    over = []
    for name in STATEMENTS:
        ratio = statistics.median(a / b for a, b in zip(figures[first, name], figures[last, name]))
        columns = " | ".join(f"{statistics.median(figures[s.name, name]):.1f}" for s in servers)
        print(f"| {name} | {columns} | {ratio:.2f} |")
        if ratio > args.limit:
            over.append(name)
    if over:
        print(f"over {args.limit:.2f}: {', '.join(over)}", file=sys.stderr)
    sys.exit(int(bool(over)))


if __name__ == "__main__":
    main()
