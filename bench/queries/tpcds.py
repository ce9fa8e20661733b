"""The tables and the 99 queries of TPC-DS, as DuckDB's extension `tpcds` makes them (PyPI: duckdb
and duckdb-extension-tpcds), in MySQL's dialect. `run --set tpcds` measures them.

    tpcds.py SCALE DIRECTORY     writes the tables and the queries into the directory
"""
import glob
import json
import os
import re
import subprocess
import sys

PRIMARY_KEYS = {
    "call_center": "cc_call_center_sk",
    "catalog_page": "cp_catalog_page_sk",
    "catalog_returns": "cr_item_sk, cr_order_number",
    "catalog_sales": "cs_item_sk, cs_order_number",
    "customer": "c_customer_sk",
    "customer_address": "ca_address_sk",
    "customer_demographics": "cd_demo_sk",
    "date_dim": "d_date_sk",
    "household_demographics": "hd_demo_sk",
    "income_band": "ib_income_band_sk",
    "inventory": "inv_date_sk, inv_item_sk, inv_warehouse_sk",
    "item": "i_item_sk",
    "promotion": "p_promo_sk",
    "reason": "r_reason_sk",
    "ship_mode": "sm_ship_mode_sk",
    "store": "s_store_sk",
    "store_returns": "sr_item_sk, sr_ticket_number",
    "store_sales": "ss_item_sk, ss_ticket_number",
    "time_dim": "t_time_sk",
    "warehouse": "w_warehouse_sk",
    "web_page": "wp_web_page_sk",
    "web_returns": "wr_item_sk, wr_order_number",
    "web_sales": "ws_item_sk, ws_order_number",
    "web_site": "web_site_sk",
}


def generate(scale, directory):
    """Writes TABLE.csv, `schema.json` (table: columns with their MySQL types) and `queries.json`.
    """
    import duckdb  # only in the virtual environment that `make` installs
    import duckdb_extension_tpcds
    package = os.path.dirname(duckdb_extension_tpcds.__file__)
    extension, = glob.glob(f"{package}/extensions/*/tpcds.duckdb_extension")
    c = duckdb.connect()
    c.execute(f"LOAD '{extension}'")
    c.execute(f"CALL dsdgen(sf = {scale})")
    schema = {}
    for table in PRIMARY_KEYS:
        c.execute(f"COPY {table} TO '{directory}/{table}.csv' (DELIMITER '|', HEADER false, "
                  "NULLSTR '\\N', QUOTE '', ESCAPE '')")
        columns = c.execute(f"DESCRIBE {table}").fetchall()
        schema[table] = [(name, mysql_type(c, table, name, kind)) for name, kind, *_ in columns]
    with open(f"{directory}/schema.json", "w") as f:
        json.dump(schema, f)
    with open(f"{directory}/queries.json", "w") as f:
        json.dump(c.execute("SELECT query_nr, query FROM tpcds_queries()").fetchall(), f)


def mysql_type(c, table, column, kind):
    if kind != "VARCHAR":
        return kind
    longest, = c.execute(f"SELECT coalesce(max(length({column})), 0) FROM {table}").fetchone()
    return f"VARCHAR({max(longest, 1)})"


def make(scale, directory):
    """Runs `generate` in a virtual environment with DuckDB; $TPCDS_PYTHON names one."""
    python = os.environ.get("TPCDS_PYTHON")
    if not python:
        environment = os.path.join(directory, "venv")
        subprocess.run([sys.executable, "-m", "venv", environment], check=True)
        python = f"{environment}/bin/python"
        packages = ["duckdb", "duckdb-extension-tpcds"]
        subprocess.run([python, "-m", "pip", "install", "-q", *packages], check=True)
    subprocess.run([python, os.path.abspath(__file__), str(scale), directory], check=True)


def table_rows(directory, table):
    with open(f"{directory}/{table}.csv", encoding="utf-8") as f:
        for line in f:
            yield [None if v == "\\N" else v for v in line.rstrip("\n").split("|")]


def table_statements(directory, keys):
    """CREATE TABLE of each table; with `keys` = "all", with a key on each referencing column."""
    with open(f"{directory}/schema.json") as f:
        schema = json.load(f)
    for table, columns in schema.items():
        primary = PRIMARY_KEYS[table].split(", ")
        lines = [f"{name} {kind}{' NOT NULL' if name in primary else ''}" for name, kind in columns]
        lines.append(f"PRIMARY KEY ({PRIMARY_KEYS[table]})")
        if keys == "all":
            references = [n for n, _ in columns if n.endswith("_sk") and n != primary[0]]
            lines += [f"KEY ({name})" for name in references]
        yield f"CREATE TABLE {table} ({', '.join(lines)})"


def queries(directory):
    """[(name, text)]."""
    with open(f"{directory}/queries.json") as f:
        return [(f"q{number}", in_mysql(text)) for number, text in json.load(f)]


def in_mysql(text):
    """A query of DuckDB in MySQL's dialect. MySQL sorts NULL before all values. FULL OUTER JOIN
    (q51, q97) remains, which MySQL does not have."""
    text = text.strip().rstrip(";")
    text = re.sub(r"\s+NULLS\s+(FIRST|LAST)\b", "", text, flags=re.I)
    # MySQL allows `*` behind other columns only with the name of a table.
    text = re.sub(r",\s*\*\s+FROM (\w+)", r", \1.* FROM \1", text)
    # The name of a derived table is in upper case, and references to it are not.
    text = re.sub(r"\) (CATALOG|STORE|WEB)\b", lambda m: m.group().lower(), text)
    text = re.sub(r"\bAS\s+(int|integer)\s*\)", "AS SIGNED)", text, flags=re.I)
    text = re.sub(r"\bROLLUP\s*\(([^()]*)\)", r"\1 WITH ROLLUP", text, flags=re.I)
    return re.sub(r"\b(sum|count|avg|min|max|substr|substring|cast) \(", r"\1(", text, flags=re.I)


if __name__ == "__main__":
    generate(float(sys.argv[1]), sys.argv[2])
