#!/usr/bin/python3
"""Server CPU of loading TPC-H by INSERTs of many quoted rows, into tables with secondary keys.

    bench/bulk_inserts.py [--scale 0.2] [--rows 2000 | --load-data] [--servers nfold,mysql]
                          [--mysql-dist DIR] [--rounds 1]

Every value stands as a text (`'17'`) in its statement, as in the dumps of many tools. Data and
tables are those of bench/queries, with the keys on the referencing columns from the start. With
--load-data each table is loaded by one LOAD DATA LOCAL instead. Prints the processor time of each
server's process and its ratio to Nfold's, by table and together.
"""
import argparse
import os
import runpy
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "cliffs"), os.path.join(HERE, "queries")]
import servers  # noqa: E402

queries = runpy.run_path(os.path.join(HERE, "queries", "run"))
TABLES, quoted, statements = queries["TABLES"], queries["quoted"], queries["statements"]
DATABASE = queries["DATABASE"]


def inserts(path, table, count):
    """INSERT statements of `count` rows each, for the rows of a file of tpchgen-cli."""
    rows = []
    with open(path, encoding="utf-8") as f:
        for line in f:
            rows.append(quoted(line.rstrip("\n").rstrip("|").split("|")))
            if len(rows) == count:
                yield f"INSERT INTO {table} VALUES {','.join(rows)}"
                rows = []
    if rows:
        yield f"INSERT INTO {table} VALUES {','.join(rows)}"


def load_data(path, table):
    """The LOAD DATA of a file of tpchgen-cli."""
    yield f"LOAD DATA LOCAL INFILE '{path}' INTO TABLE {table} FIELDS TERMINATED BY '|'"


def load(server, tables, changes):
    """{table: CPU seconds}, of tables that are made anew. `changes(path, table)`: statements."""
    used = {}
    with server.connect(database=None, local_infile=True) as c:
        cursor = c.cursor()
        cursor.execute("SET GLOBAL local_infile = ON")
        cursor.execute(f"DROP DATABASE IF EXISTS {DATABASE}")
        cursor.execute(f"CREATE DATABASE {DATABASE} CHARACTER SET utf8mb4")
        cursor.execute(f"USE {DATABASE}")
        for statement in statements("schema.sql") + statements("keys.sql"):
            cursor.execute(statement)
        for table in TABLES:
            before = server.cpu()
            for statement in changes(os.path.join(tables, f"{table}.tbl"), table):
                cursor.execute(statement)
            used[table] = server.cpu() - before
    return used


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--scale", type=float, default=0.2)
    a.add_argument("--rows", type=int, default=2000, help="of each INSERT")
    a.add_argument("--load-data", action="store_true", help="LOAD DATA in place of INSERT")
    a.add_argument("--servers", default="nfold,mysql")
    a.add_argument("--mysql-dist", default=os.environ.get("MYSQL_DIST"),
                   help="directory with MySQL's unpacked packages; without it MySQL is left out")
    a.add_argument("--rounds", type=int, default=1, help="the servers take turns; medians count")
    a.add_argument("--tables", help="directory with files of tpchgen-cli that were made before")
    args = a.parse_args()
    names = [n for n in args.servers.split(",") if n != "mysql" or args.mysql_dist]
    temporary = tempfile.TemporaryDirectory(prefix="nfold-bulk-inserts-")
    with temporary as directory, servers.Fleet(names, args.mysql_dist) as fleet:
        tables = args.tables
        if not tables:
            tables = directory
            program = queries["generator"](directory)
            subprocess.run([program, "-s", str(args.scale), "-o", tables], check=True)
        changes = load_data if args.load_data else lambda *of: inserts(*of, args.rows)
        figures = {server.name: [] for server in fleet}
        for _ in range(args.rounds):
            for server in fleet:
                used = load(server, tables, changes)
                print(f"{server.name}: {sum(used.values()):.2f} s", flush=True)
                figures[server.name].append(used)
    print("| table | " + " | ".join(f"{name}, s" for name in figures) + " | to Nfold |")
    print("| --- " * (len(figures) + 2) + "|")
    for table in [*TABLES, "together"]:
        whole = lambda used: sum(used.values()) if table == "together" else used[table]
        cells = [statistics.median(map(whole, rounds)) for rounds in figures.values()]
        shown = " | ".join(f"{cell:.2f}" for cell in cells)
        ratios = ", ".join(f"{cell / max(cells[0], 0.01):.1f}" for cell in cells[1:])
        print(f"| {table} | {shown} | {ratios} |")


if __name__ == "__main__":
    main()
