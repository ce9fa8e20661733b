#!/usr/bin/python3
"""Server CPU of an INSERT that refers to one hot parent, beside the same without a foreign key.

    bench/foreign_key.py nfold=PORT:PID mariadb=PORT:PID mysql=PORT:PID [--rounds 15]

Every connection inserts rows, each in a transaction of its own, that refer to the same row of the
parent. Both tables have a key on the referring column. The two tables take turns, and the servers
take turns within each round. Prints CPU microseconds per INSERT (user and system time of the
server's threads, the median of the rounds) and the median of the rounds' ratios. Servers whose
ratio is over --limit are named, and the exit status is 1 if the first one is among them.
"""
import argparse
import statistics
import sys
import threading

import paired

DATABASE = "foreign_key"
TABLES = ["child_with", "child_without"]
SETUP = [
    f"DROP DATABASE IF EXISTS {DATABASE}",
    f"CREATE DATABASE {DATABASE}",
    f"USE {DATABASE}",
    "CREATE TABLE parent (id INT PRIMARY KEY, pad VARCHAR(100)) ENGINE=InnoDB",
    "CREATE TABLE child_with (id INT AUTO_INCREMENT PRIMARY KEY, p INT NOT NULL, pad VARCHAR(100), KEY p (p), FOREIGN KEY (p) REFERENCES parent (id)) ENGINE=InnoDB",
    "CREATE TABLE child_without (id INT AUTO_INCREMENT PRIMARY KEY, p INT NOT NULL, pad VARCHAR(100), KEY p (p)) ENGINE=InnoDB",
    "INSERT INTO parent VALUES " + ",".join(f"({n}, 'parent')" for n in range(100)),
]


class Server(paired.Running):
    """A running server with open connections."""

    def __init__(self, word, connections):
        super().__init__(word)
        with self.connect() as c, c.cursor() as cursor:
            for sql in SETUP:
                cursor.execute(sql)
        self.connections = [self.connect(DATABASE) for _ in range(connections)]

    def insert(self, table, each):
        """CPU seconds of `each` INSERTs by every connection."""
        sql = f"INSERT INTO {table} (p, pad) VALUES (7, 'a child of the hot parent')"

        def work(connection):
            for _ in range(each):
                connection.query(sql)

        threads = [threading.Thread(target=work, args=(c,)) for c in self.connections]
        before = self.cpu_seconds()
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        return self.cpu_seconds() - before


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("servers", nargs="+", help="NAME=PORT:PID")
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--inserts", type=int, default=3200, help="of each table in each round, by all connections together")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--limit", type=float, default=1.10)
    args = parser.parse_args()
    servers = [Server(word, args.connections) for word in args.servers]
    each = max(1, args.inserts // args.connections)
    figures = {(s.name, t): [] for s in servers for t in TABLES}
    for round_ in range(args.rounds + 1):
        for s in servers:
            for table in TABLES if round_ % 2 else TABLES[::-1]:
                seconds = s.insert(table, each)
                if round_ > 0:  # the first one warms up
                    figures[s.name, table].append(seconds * 1e6 / (each * args.connections))
    print("| server | with, µs | without, µs | ratio |")
    print("| --- | --- | --- | --- |")
    over = []
    for s in servers:
        with_, without = (statistics.median(figures[s.name, t]) for t in TABLES)
        pairs = zip(*(figures[s.name, t] for t in TABLES))
        ratio = statistics.median(a / b for a, b in pairs)
        print(f"| {s.name} | {with_:.1f} | {without:.1f} | {ratio:.2f} |")
        if ratio > args.limit:
            over.append(s.name)
    if over:
        print(f"over {args.limit:.2f}: {', '.join(over)}", file=sys.stderr)
    sys.exit(int(servers[0].name in over))


if __name__ == "__main__":
    main()
