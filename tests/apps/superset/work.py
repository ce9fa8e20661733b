"""Works with Superset by its API, inside one process. Prints the answers as one line of JSON."""

import json
import os
import re

from superset.app import create_app

app = create_app()
found = {}


def cleaned(value):
    """Leaves out what depends on the time, on random keys, and on the server's address."""
    varying = r"uuid|_on|changed|created|thumbnail|cache|dttm|duration|parameters|sqlalchemy_uri|url|timing|last_saved|version"
    if isinstance(value, dict):
        return {k: cleaned(v) for k, v in value.items() if not re.search(varying, k)}
    if isinstance(value, list):
        return [cleaned(v) for v in value]
    return value


def call(client, step, method, path, content=None):
    answer = client.open(path, method=method, json=content, headers=call.headers)
    body = answer.get_json(silent=True)
    found[step] = [answer.status_code, cleaned(body)]
    return body or {}


with app.app_context():
    from superset.extensions import db

    for statement in ("CREATE TABLE sales (id INT PRIMARY KEY AUTO_INCREMENT, day DATE NOT NULL, region VARCHAR(20), product VARCHAR(20), "
                      "amount DECIMAL(10, 2), sold_at DATETIME(3))",
                      "INSERT INTO sales (day, region, product, amount, sold_at) VALUES ('2024-01-01', 'Süd', 'tea', 10.50, '2024-01-01 10:00:00.125'), "
                      "('2024-01-02', 'Nord', 'tea', 20, '2024-01-02 11:30:00'), ('2024-01-02', 'Süd', 'coffee', 7.25, NULL), "
                      "('2024-02-10', '東', 'coffee', NULL, '2024-02-10 23:59:59.999'), ('2024-02-11', NULL, 'cocoa', 3, '2024-02-11 00:00:00')"):
        db.session.connection().exec_driver_sql(statement)
    db.session.commit()

client = app.test_client()
call.headers = {}
login = call(client, "login with a wrong password", "POST", "/api/v1/security/login", {"username": "editor", "password": "wrong", "provider": "db"})
login = client.post("/api/v1/security/login", json={"username": "editor", "password": "secret", "provider": "db", "refresh": True}).get_json()
call.headers = {"Authorization": f"Bearer {login['access_token']}"}
made = call(client, "a database", "POST", "/api/v1/database/", {"database_name": "größe", "sqlalchemy_uri": os.environ["ADDRESS"], "expose_in_sqllab": True})
number = made.get("id")
call(client, "the same database", "POST", "/api/v1/database/", {"database_name": "größe", "sqlalchemy_uri": os.environ["ADDRESS"]})
dataset = call(client, "a dataset", "POST", "/api/v1/dataset/", {"database": number, "table_name": "sales", "schema": None}).get("id")
call(client, "a dataset of a missing table", "POST", "/api/v1/dataset/", {"database": number, "table_name": "nosuch", "schema": None})
call(client, "columns of the dataset", "GET", f"/api/v1/dataset/{dataset}?q=(columns:!(table_name,columns.column_name,columns.type,columns.is_dttm))")


def data(step, **query):
    query = {"columns": [], "metrics": [], "filters": [], "orderby": [], "row_limit": 100, **query}
    source = {"id": dataset, "type": "table"}
    call(client, step, "POST", "/api/v1/chart/data", {"datasource": source, "queries": [query], "result_format": "json", "result_type": "results", "force": True})


def metric(function, column):
    return {"expressionType": "SIMPLE", "aggregate": function, "column": {"column_name": column}, "label": f"{function} of {column}"}


data("rows", columns=["id", "day", "region", "amount", "sold_at"], orderby=[["id", True]])
data("sums by region", columns=["region"], metrics=[metric("SUM", "amount"), metric("COUNT_DISTINCT", "product")], orderby=[["region", True]])
data("months", columns=[{"label": "month", "expressionType": "SQL", "sqlExpression": "DATE_FORMAT(day, '%Y-%m')"}], metrics=[metric("MAX", "amount")])
data("time grain", columns=[{"timeGrain": "P1W", "columnType": "BASE_AXIS", "sqlExpression": "day", "label": "day", "expressionType": "SQL"}],
     metrics=[metric("SUM", "amount")])
data("filters", columns=["id"], filters=[{"col": "region", "op": "IN", "val": ["Süd", "東"]}, {"col": "amount", "op": ">", "val": 5}], orderby=[["id", False]])
data("like", columns=["product"], filters=[{"col": "product", "op": "LIKE", "val": "co%"}])
data("a wrong expression", columns=[{"label": "x", "expressionType": "SQL", "sqlExpression": "nosuch + 1"}])
chart = call(client, "a chart", "POST", "/api/v1/chart/", {"slice_name": "Sales 😀", "viz_type": "table", "datasource_id": dataset, "datasource_type": "table",
                                                           "params": json.dumps({"groupby": ["region"]})}).get("id")
board = call(client, "a dashboard", "POST", "/api/v1/dashboard/", {"dashboard_title": "Überblick", "slug": "overview", "published": True}).get("id")
call(client, "the same slug", "POST", "/api/v1/dashboard/", {"dashboard_title": "Other", "slug": "overview"})
call(client, "put the chart on it", "PUT", f"/api/v1/chart/{chart}", {"dashboards": [board], "description": "große Zahlen"})
call(client, "charts of the dashboard", "GET", f"/api/v1/dashboard/{board}/charts")
call(client, "search charts", "GET", "/api/v1/chart/?q=(filters:!((col:slice_name,opr:chart_all_text,value:sales)),order_column:changed_on_delta_humanized)")
call(client, "favorite", "POST", f"/api/v1/dashboard/{board}/favorites/")
call(client, "favorites", "GET", f"/api/v1/dashboard/favorite_status/?q=!({board})")
call(client, "run a query", "POST", "/api/v1/sqllab/execute/", {"database_id": number, "sql": "SELECT region, COUNT(*) n FROM sales GROUP BY region ORDER BY n DESC, region",
                                                              "runAsync": False, "client_id": "abcdefghijk", "json": True, "tab": "", "queryLimit": 100})
call(client, "delete the chart", "DELETE", f"/api/v1/chart/{chart}")
call(client, "delete a database in use", "DELETE", f"/api/v1/database/{number}")
call(client, "dashboards", "GET", "/api/v1/dashboard/")
# What a query answers beside its data.
found["run a query"] = [found["run a query"][0], (found["run a query"][1] or {}).get("data")]
print(json.dumps(found, ensure_ascii=False, sort_keys=True, default=str))
