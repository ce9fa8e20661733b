"""What an administrator does with phpMyAdmin: looks at every page, makes and changes tables, rows,
indexes, keys, views and accounts by its forms, exports and imports.

`run` yields pairs (step, outcome); outcomes are plain JSON values and do not depend on the time or
on ports. `tidy` removes what is outside of the application's own database.
"""

import json
import re

import php

OTHER = "app_phpmyadmin_other"
ACCOUNT = "app_phpmyadmin_user"

IMPORTED = """
CREATE TABLE author (id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, name VARCHAR(60) NOT NULL, born DATE NULL, photo BLOB, rank_of ENUM('gold','silver','é') DEFAULT 'silver') COMMENT='Authors';
CREATE TABLE book (id INT UNSIGNED NOT NULL AUTO_INCREMENT, author_id INT UNSIGNED NOT NULL, title VARCHAR(200) NOT NULL, price DECIMAL(10,2) DEFAULT NULL, tags SET('new','old','used') DEFAULT NULL,
  added DATETIME DEFAULT CURRENT_TIMESTAMP, flags BIT(5) DEFAULT b'101', about TEXT, more JSON, total DECIMAL(12,2) AS (price * 1.19) STORED, PRIMARY KEY (id), KEY author_id (author_id), FULLTEXT KEY about (about),
  CONSTRAINT book_author FOREIGN KEY (author_id) REFERENCES author (id) ON DELETE CASCADE ON UPDATE CASCADE, CONSTRAINT dear CHECK (price < 1000));
INSERT INTO author (name, born, photo) VALUES ('Ännchen O''Hara', '1950-02-28', x'00ff01'), ('Émile 😀', NULL, NULL), ('Zoë "Z" \\\\ Backslash', '1999-12-31', 'abc');
INSERT INTO book (author_id, title, price, tags, added, about, more) VALUES (1, 'Straße', 9.99, 'new,used', '2024-01-02 03:04:05', 'About streets and roads', '{"a": [1, 2, {"b": null}]}'),
  (1, 'Second; with semicolon', NULL, '', '2024-02-03 00:00:00', NULL, NULL), (2, 'Third -- no comment', 100, 'old', '2024-03-04 00:00:00', 'Database rows and columns', '"text"'), (3, '100%_', 0.5, NULL, '2024-01-01 00:00:00', '<b>html</b>', '[]');
CREATE VIEW dear_books AS SELECT b.id, b.title, a.name FROM book b JOIN author a ON a.id = b.author_id WHERE b.price > 5;
"""


class Admin:
    """The browser of an administrator."""

    def __init__(self, site, db):
        self.site, self.db, self.token = site, db, None

    def page(self, route, **fields):
        """The status and the errors of a page, with its text."""
        status, text = self.site.get("/index.php", route=route, server=1, **fields)
        return status, text

    def form(self, page, changes, without=(), *, id=None, action=None, route=None):
        """Sends a form of the page with its fields, and `changes` on top."""
        fields = {**php.fields_of(page, id=id, action=action), **changes}
        for name in without:
            fields.pop(name, None)
        return self.post(route, **fields)

    def post(self, route, **fields):
        """The JSON answer to a form."""
        fields = {"token": self.token, "server": 1, "ajax_request": "true", **fields}
        status, text = self.site.post(f"/index.php?route={route}", **fields)
        try:
            answer = json.loads(text)
        except ValueError:
            return {"success": None, "message": php.plain(text)[:300], "status": status}
        return answer

    def sql(self, text, **more):
        return self.post("/import", db=self.db, sql_query=text, sql_delimiter=";", is_js_confirmed="0", format="sql", import_type="database", show_query="1", **more)


def outcome(answer):
    """Success, and the message without times."""
    message = str(answer.get("message") or answer.get("error") or answer.get("sql_query") or "")
    boxes = boxes_of(message)
    return [answer.get("success"), boxes or varying(php.plain(message))[:300]]


def boxes_of(text):
    """The messages on a page."""
    boxes = re.findall(r'(?s)<div class="alert alert-\w+"[^>]*>(.*?)</div>', text)
    plain = (varying(php.plain(box)) for box in boxes)
    return [box for box in plain if not box.startswith("Javascript must")]


VARYING = [
    (r"Query took [\d.]+ seconds?", "Query took N seconds"), (r"Documentation|\[ ?Edit inline ?\]|\[ ?Edit ?\]|\[ ?Create PHP code ?\]", ""), (r"127\.0\.0\.1:\d+", "SERVER"),
    (r"Generation Time: .*", "Generation Time"), (r"Server version: .*", "Server version"), (r"PHP Version: .*", "PHP version"), (r"token=\w+", "token"), (r"20[2-9]\d-\d\d-\d\d \d\d:\d\d:\d\d", "TIME"), (r"/tmp/\S+", "FILE"),
    (r"\w{3} \d\d, \d{4} at \d\d:\d\d [AP]M", " DATE"),
]


def varying(text):
    for pattern, word in VARYING:
        text = re.sub(pattern, word, text)
    return re.sub(r"\s+", " ", text).strip()


def without_times(contents):
    """Rows without the times in the log of changes."""
    return json.loads(re.sub(r"20\d\d-\d\d-\d\d \d\d:\d\d:\d\d", "TIME", json.dumps(contents, default=str)))


def seen(status, text):
    """Status and errors of a page."""
    return [status, boxes_of(text), [w for w in ("Fatal error", "Uncaught", "mysqli_sql_exception") if w in text]]


def table_of(text):
    """The cells of the table of results on a page, row by row."""
    body = re.search(r'(?s)<table[^>]*class="[^"]*table_results.*?<tbody>(.*?)</tbody>', text)
    if not body:
        return None
    rows = re.findall(r"(?s)<tr[^>]*>(.*?)</tr>", body.group(1))
    return [[php.plain(cell) for cell in re.findall(r'(?s)<td[^>]*class="[^"]*\bdata\b[^"]*"[^>]*>(.*?)</td>', row)] for row in rows]


def logged_in(a, database):
    status, page = a.site.get("/index.php")
    yield "log in page", seen(status, page)
    fields = php.fields_of(page, id="login_form")
    fields.update(pma_username=database.user, pma_password=database.password, server="1")
    wrong = dict(fields, pma_password="wrong")
    status, page = a.site.post("/index.php?route=/", **wrong)
    yield "wrong password", [status, "Access denied" in page]
    fields = php.fields_of(page, id="login_form")
    fields.update(pma_username=database.user, pma_password=database.password, server="1")
    status, page = a.site.post("/index.php?route=/", **fields)
    a.token = re.search(r'token:"([^"]+)"|name="token" value="([^"]+)"', page)
    a.token = a.token and (a.token.group(1) or a.token.group(2))
    yield "log in", [*seen(status, page), bool(a.token)]


def storage(a, name):
    yield "storage", [a.site.post("/index.php?route=/check-relations", token=a.token, server=1, db=name, fix_pmadb="1")[0]]
    status, page = a.page("/check-relations")
    yield "storage is complete", [status, page.count("Enabled"), page.count("Disabled"), "not OK" in page]


SERVER_PAGES = """/ /server/databases /server/databases?statistics=1 /server/sql /server/status /server/status/processes /server/status/processes?full=1 /server/status/queries /server/status/variables
/server/status/variables?filterAlert=1 /server/status/monitor /server/status/advisor /server/privileges /server/privileges?initial=A /server/export /server/import /server/replication /server/variables /server/collations
/server/engines /server/engines/InnoDB /server/engines/InnoDB/Bufferpool /server/engines/InnoDB/Status /server/plugins /server/binlog /server/user-groups
/preferences/manage /preferences/features /preferences/navigation /preferences/main-panel /preferences/sql /user-password /themes /phpinfo /changelog /license /navigation?ajax_request=1 /recent-table?ajax_request=1""".split()
DATABASE_PAGES = """/database/structure /database/sql /database/search /database/multi-table-query /database/export /database/import /database/operations /database/routines /database/events /database/triggers
/database/tracking /database/designer /database/central-columns /database/data-dictionary /database/qbe /server/privileges?checkprivsdb=app_phpmyadmin&viewing_mode=db""".split()
TABLE_PAGES = """/sql /table/structure /table/sql /table/search /table/zoom-search /table/find-replace /table/change /table/export /table/import /table/operations /table/tracking /table/triggers /table/relation
/table/indexes /table/chart /server/privileges?checkprivsdb=app_phpmyadmin&checkprivstable=book&viewing_mode=table /table/add-field?num_fields=2&field_where=last /browse-foreigners?field=author_id""".split()


def pages(a, routes, **fields):
    for route in routes:
        path, _, query = route.partition("?")
        given = dict(item.split("=") for item in query.split("&") if item)
        status, text = a.page(path, **fields, **given)
        yield f"page {route} {fields.get('table', '')}".strip(), seen(status, text)


COLUMNS = [
    ("id", "INT", "11", "UNSIGNED", "NONE", "", "AUTO_INCREMENT", ""),
    ("name", "VARCHAR", "80", "", "NONE", "", "", "The name's comment"),
    ("price", "DECIMAL", "8,3", "", "USER_DEFINED", "1.5", "", ""),
    ("kind", "ENUM", "'a','b''c','é'", "", "USER_DEFINED", "a", "", ""),
    ("made", "TIMESTAMP", "", "on update CURRENT_TIMESTAMP", "CURRENT_TIMESTAMP", "", "", ""),
    ("note", "TEXT", "", "", "NULL", "", "", ""),
    ("flag", "BOOLEAN", "", "", "USER_DEFINED", "1", "", ""),
]


def fields_of_columns(columns, nullable=("note", "price")):
    found = {}
    for n, (name, kind, length, attribute, default, value, extra, comment) in enumerate(columns):
        given = {"name": name, "type": kind, "length": length, "attribute": attribute, "default_type": default, "default_value": value, "collation": "", "extra": extra, "comments": comment,
                 "virtuality": "", "expression": "", "mimetype": "", "transformation": "", "transformation_options": "", "input_transformation": "", "input_transformation_options": ""}
        if name in nullable:
            given["null"] = "YES"
        for key, text in given.items():
            if text or key != "extra":
                found[f"field_{key}[{n}]"] = text
    return found


def made(a):
    index = {"primary_indexes": json.dumps([{"Key_name": "", "Index_choice": "PRIMARY", "columns": [{"col_index": "0", "size": ""}]}]),
             "unique_indexes": json.dumps([{"Key_name": "name", "Index_choice": "UNIQUE", "columns": [{"col_index": "1", "size": "20"}]}]),
             "indexes": json.dumps([{"Key_name": "two", "Index_choice": "INDEX", "columns": [{"col_index": "3", "size": ""}, {"col_index": "2", "size": ""}]}]),
             "fulltext_indexes": json.dumps([{"Key_name": "words", "Index_choice": "FULLTEXT", "columns": [{"col_index": "5", "size": ""}]}]), "spatial_indexes": "[]"}
    table = {"db": a.db, "table": "made", "do_save_data": "1", "orig_num_fields": len(COLUMNS), "tbl_storage_engine": "InnoDB", "tbl_collation": "utf8mb4_general_ci", "comment": "Made by a form"}
    fields = {**fields_of_columns(COLUMNS), **index, **table}
    yield "preview of a table", outcome(a.post("/table/create", preview_sql="1", **fields))
    yield "new table", outcome(a.post("/table/create", **fields))
    yield "new table again", outcome(a.post("/table/create", **fields))
    column = fields_of_columns([("more", "JSON", "", "", "NONE", "", "", "")], nullable=("more",))
    none = {name: "[]" for name in index}
    yield "new column", outcome(a.post("/table/add-field", db=a.db, table="made", do_save_data="1", orig_num_fields=1, field_where="after", after_field="name", **column, **none))
    status, page = a.page("/table/structure/change", db=a.db, table="made", field="name", change_column="1")
    yield "form of a column", seen(status, page)
    changes = {"field_name[0]": "title", "field_type[0]": "VARCHAR", "field_length[0]": "120", "field_comments[0]": "It's the title", "do_save_data": "1", "db": a.db, "table": "made"}
    yield "change a column", outcome(a.form(page, changes, action="/table/structure/save", route="/table/structure/save"))
    order = ["id", "kind", "name", "more", "price", "made", "note", "flag"]
    yield "order of columns", outcome(a.post("/table/structure/move-columns", db=a.db, table="made", **{f"move_columns[{n}]": name for n, name in enumerate(order)}))
    for key in ("index", "unique", "fulltext"):
        selected = {"index": "made", "unique": "kind", "fulltext": "name"}[key]
        yield f"{key} of a column", outcome(a.post(f"/table/structure/{key}", db=a.db, table="made", **{"selected_fld[]": selected}))
    index = {"index[Key_name]": "three", "index[Index_choice]": "INDEX", "index[Index_comment]": "A comment", "index[Key_block_size]": "", "index[Index_type]": "BTREE", "index[Parser]": "",
             "index[columns][names][]": ["flag", "note"], "index[columns][sub_parts][]": ["", "10"]}
    yield "index by a form", outcome(a.post("/table/indexes", db=a.db, table="made", do_save_data="1", **index))
    yield "rename an index", outcome(a.post("/table/indexes/rename", db=a.db, table="made", old_index="three", do_save_data="1", **{**index, "index[Key_name]": "renamed"}))
    yield "drop a column", outcome(a.post("/table/structure/drop", db=a.db, table="made", mult_btn="Yes", **{"selected[]": "flag"}))
    yield "columns of the table", table_rows(a.page("/table/structure", db=a.db, table="made")[1])


def table_rows(page):
    """The cells of all tables on a page, row by row, in plain text."""
    return [varying(php.plain(row)) for row in re.findall(r"(?s)<tr[^>]*>(.*?)</tr>", page) if re.search(r"<t[dh]", row)]


def filled(a):
    yield "import", outcome(a.sql(IMPORTED))
    status, page = a.page("/table/change", db=a.db, table="author")
    fields = php.fields_of(page, id="insertForm")
    names = {m[1]: m[0] for m in re.findall(r'name="fields_name\[multi_edit\]\[0\]\[(\w+)\]"\s+value="(\w+)"', page)}
    values = {"name": "By a form 😀 'quoted'", "born": "2001-02-03", "rank_of": "é"}
    for name, value in values.items():
        fields[f"fields[multi_edit][0][{names[name]}]"] = value
        fields.pop(f"fields_null[multi_edit][0][{names[name]}]", None)
    fields.update(db=a.db, table="author", submit_type="insert", after_insert="back", ajax_page_request="true")
    fields["insert_ignore_1"] = "on"
    yield "insert a row", outcome(a.post("/table/replace", **fields))
    status, page = a.page("/table/change", db=a.db, table="author", where_clause="`author`.`id` = 2", clause_is_unique=1, default_action="update")
    yield "form of a row", seen(status, page)
    fields = php.fields_of(page, id="insertForm")
    names = {m[1]: m[0] for m in re.findall(r'name="fields_name\[multi_edit\]\[\w+\]\[(\w+)\]"\s+value="(\w+)"', page)}
    key = next((k for k in fields if k.startswith("fields[multi_edit]") and k.endswith(f"[{names['name']}]")), None)
    fields.update({key: "Émile changed", "db": a.db, "table": "author", "submit_type": "save", "after_insert": "back", "ajax_page_request": "true"})
    yield "change a row", outcome(a.post("/table/replace", **fields))
    yield "delete a row", outcome(a.post("/table/delete/rows", db=a.db, table="book", mult_btn="Yes", original_sql_query="SELECT * FROM book", **{"selected[]": "`book`.`id` = 2"}))
    yield "delete a parent", outcome(a.sql("ALTER TABLE book DROP FOREIGN KEY book_author; ALTER TABLE book ADD CONSTRAINT book_author FOREIGN KEY (author_id) REFERENCES author (id) ON DELETE RESTRICT; DELETE FROM author WHERE id = 1"))
    for text in ("SELECT * FROM book", "SELECT * FROM book ORDER BY title DESC", "SELECT a.name, COUNT(*) n, SUM(price) FROM author a LEFT JOIN book b ON b.author_id = a.id GROUP BY a.id ORDER BY a.id", "SELECT * FROM dear_books",
                 "SHOW CREATE TABLE book", "DESCRIBE book", "SHOW TABLES", "SHOW KEYS FROM missing", "SELECT * FROM missing", "SELEC 1", "SELECT 1 UNION SELECT 2",
                 "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 4) SELECT * FROM n", "SELECT * FROM book WHERE MATCH (about) AGAINST ('database')",
                 "INSERT INTO book (author_id, title) VALUES (99, 'x')", "UPDATE book SET price = 2000 WHERE id = 1", "SELECT JSON_EXTRACT(more, '$.a[2]') FROM book WHERE id = 1"):
        answer = a.sql(text)
        cells = table_of(str(answer.get("message", "")))
        yield f"sql {text}", [answer.get("success"), cells] if cells is not None else outcome(answer)
    for table in ("author", "book", "dear_books", "made"):
        status, page = a.page("/sql", db=a.db, table=table, pos=0)
        yield f"browse {table}", table_of(page)
    status, page = a.page("/sql", db=a.db, table="book", sql_query="SELECT * FROM `book` ORDER BY `book`.`price` DESC", sql_signature="")
    yield "browse sorted", status
    yield "simulate", outcome(a.post("/import/simulate-dml", db=a.db, sql_query="UPDATE book SET title = 'x' WHERE id < 3", sql_delimiter=";"))
    yield "foreign values", outcome(a.post("/sql/get-relational-values", db=a.db, table="book", column="author_id", curr_value="1"))
    yield "enum values", outcome(a.post("/sql/get-enum-values", db=a.db, table="author", column="rank_of", curr_value="gold"))
    yield "set values", outcome(a.post("/sql/get-set-values", db=a.db, table="book", column="tags", curr_value="new"))
    yield "bookmark", outcome(a.sql("SELECT * FROM author WHERE id = 2", bkm_label="an author"))


def searched(a):
    for words, option in (("street", 1), ("Z\"", 1), ("database rows", 1), ("database rows", 2), ("Third -- no comment", 3), ("^T", 5), ("100%", 1), ("é", 1)):
        answer = a.post("/database/search", db=a.db, criteriaSearchString=words, criteriaSearchType=option, submit_search="1", **{"criteriaTables[]": ["author", "book"]})
        yield f"search {words} {option}", outcome(answer)
    status, page = a.page("/table/search", db=a.db, table="book")
    for n, (operator, value) in {1: ("=", "1"), 2: ("LIKE %...%", "e"), 3: (">", "1"), 4: ("IN (...)", "'old'")}.items():
        fields = php.fields_of(page, id="tbl_search_form")
        fields.update({f"criteriaColumnOperators[{n}]": operator, f"criteriaValues[{n}]": value, "db": a.db, "table": "book", "columnsToDisplay[]": ["id", "title", "price"]})
        answer = a.post("/table/search", **fields)
        cells = table_of(str(answer.get("sql_query", "")) + str(answer.get("message", "")))
        yield f"search of a table {operator}", [answer.get("success"), cells] if cells is not None else outcome(answer)
    yield "find and replace", outcome(a.post("/table/find-replace", db=a.db, table="book", find="Third", replaceWith="Fourth", columnIndex="2", submit="Go"))
    yield "replace", outcome(a.post("/table/find-replace", db=a.db, table="book", find="Third", replaceWith="Fourth", columnIndex="2", replace="true"))


def operated(a, database):
    for kind in ("analyze", "check", "optimize", "repair"):
        yield f"{kind}", outcome(a.post(f"/table/maintenance/{kind}", db=a.db, **{"selected_tbl[]": ["author", "book"]}))
    status, page = a.page("/table/relation", db=a.db, table="book")
    yield "relation form", seen(status, page)
    yield "display column", outcome(a.post("/table/relation", db=a.db, table="author", display_field="name"))
    yield "columns for a key", outcome(a.post("/table/relation", db=a.db, table="book", getDropdownValues="true", foreignDb=a.db, foreignTable="author", foreign="true"))
    copy = {"db": a.db, "target_db": a.db, "submit_copy": "1"}
    yield "copy a table", outcome(a.post("/table/operations", table="book", new_name="book_copy", what="data", **copy))
    yield "copy with keys", outcome(a.post("/table/operations", table="book", new_name="book_keys", what="data", add_constraints="1", sql_auto_increment="1", **copy))
    yield "copy of a structure", outcome(a.post("/table/operations", table="author", new_name="author_copy", what="structure", **copy))
    options = {"db": a.db, "submitoptions": "1", "tbl_storage_engine": "InnoDB", "prev_comment": "", "auto_increment": "", "row_format": "DYNAMIC"}
    yield "rename a table", outcome(a.post("/table/operations", table="book_copy", new_name="book_renamed", comment="Renamed", tbl_collation="utf8mb4_bin", change_all_collations="1", **options))
    yield "order of rows", outcome(a.post("/table/operations", db=a.db, table="book_renamed", submitorderby="1", order_field="title", order_order="desc"))
    yield "empty tables", outcome(a.post("/database/structure/empty-table", db=a.db, mult_btn="Yes", **{"selected[]": ["author_copy", "book_keys"]}))
    yield "prefix", outcome(a.post("/database/structure/add-prefix-table", db=a.db, add_prefix="p_", **{"selected[]": ["author_copy"]}))
    yield "drop tables", outcome(a.post("/database/structure/drop-table", db=a.db, mult_btn="Yes", **{"selected[]": ["p_author_copy"]}))
    yield "drop of a parent", outcome(a.sql("DROP TABLE author"))
    view = {"view[as]": "SELECT id, title FROM book WHERE price > 1", "view[name]": "made_view", "view[algorithm]": "MERGE", "view[definer]": "", "view[sql_security]": "INVOKER", "view[with]": "LOCAL", "createview": "1", "view[or_replace]": "1"}
    yield "new view", outcome(a.post("/view/create", db=a.db, ajax_dialog="1", **view))
    yield "rename a view", outcome(a.post("/view/operations", db=a.db, table="made_view", new_name="renamed_view", submitoptions="1"))
    yield "central columns", outcome(a.post("/database/structure/central-columns/add", db=a.db, **{"selected_tbl[]": ["author"]}))
    yield "favorite", outcome(a.post("/database/structure/favorite-table", db=a.db, favorite_table="book", add_favorite="1", favoriteTables="[]", sync_favorite_tables="1"))
    yield "real count", outcome(a.post("/database/structure/real-row-count", db=a.db, table="book", real_row_count_all="1"))
    yield "tracking", outcome(a.post("/table/tracking", db=a.db, table="author", version="1", submit_create_version="1", insert="1", update="1", delete="1", alter_table="1", drop_table="1"))
    yield "tracked change", outcome(a.sql("UPDATE author SET rank_of = 'gold' WHERE id = 3"))
    yield "tracking report", seen(*a.page("/table/tracking", db=a.db, table="author", report="true", version="1"))
    yield "comment of the database", outcome(a.post("/database/operations", db=a.db, comment="A database for tests"))
    yield "collation of the database", outcome(a.post("/database/operations/collation", db=a.db, db_collation="utf8mb4_unicode_ci"))
    yield "copy the database", outcome(a.post("/database/operations", db=a.db, db_copy="true", newname=OTHER, what="data", create_database_before_copying="1", add_constraints="1", sql_auto_increment="1", drop_if_exists="true"))
    with database.connect(OTHER) as conn, conn.cursor() as cursor:
        cursor.execute("SHOW FULL TABLES")
        yield "tables of the copy", sorted(cursor.fetchall())
    yield "drop the copy", outcome(a.post("/server/databases/destroy", drop_selected_dbs="1", **{"selected_dbs[]": OTHER}))
    yield "new database", outcome(a.post("/server/databases/create", new_db=OTHER, db_collation="utf8mb4_bin"))
    yield "new database again", outcome(a.post("/server/databases/create", new_db=OTHER, db_collation="utf8mb4_bin"))


def accounts(a):
    base = {"username": ACCOUNT, "pred_username": "userdefined", "hostname": "localhost", "pred_hostname": "localhost", "pred_password": "userdefined", "pma_pw": "a Pass-phrase 1", "pma_pw2": "a Pass-phrase 1",
            "authentication_plugin": "caching_sha2_password", "adduser_submit": "1", "ssl_type": "NONE", "max_questions": "0", "max_updates": "0", "max_connections": "0", "max_user_connections": "0"}
    yield "new account", outcome(a.post("/server/privileges", Select_priv="Y", Insert_priv="Y", Process_priv="Y", **base))
    yield "new account again", outcome(a.post("/server/privileges", **base))
    who = {"username": ACCOUNT, "hostname": "localhost"}
    yield "account page", seen(*a.page("/server/privileges", **who))
    yield "rights on a database", outcome(a.post("/server/privileges", dbname=a.db, Select_priv="Y", Update_priv="Y", Create_view_priv="Y", update_privs="1", **who))
    yield "rights on a table", outcome(a.post("/server/privileges", dbname=a.db, tablename="book", **{"Select_priv[]": ["id", "title"], "Insert_priv_all": "N", "update_privs": "1"}, **who))
    yield "page of rights", seen(*a.page("/server/privileges", dbname=a.db, tablename="book", **who))
    yield "lock", outcome(a.post("/server/privileges/account-lock", **who))
    yield "unlock", outcome(a.post("/server/privileges/account-unlock", **who))
    yield "export of an account", outcome(a.post("/server/privileges", export="1", **who))
    yield "page of accounts", seen(*a.page("/server/privileges"))
    yield "change password", outcome(a.post("/server/privileges", change_pw="1", nopass="0", pma_pw="another Pass 2", pma_pw2="another Pass 2", authentication_plugin="caching_sha2_password", **who))
    yield "revoke", outcome(a.post("/server/privileges", revokeall="1", dbname=a.db, **who))
    yield "delete account", outcome(a.post("/server/privileges", delete="1", mode="2", **{"selected_usr[]": f"{ACCOUNT}&amp;#27;localhost"}))


def exported(a):
    common = {"db": a.db, "single_table": "", "export_type": "database", "export_method": "custom", "quick_or_custom": "custom", "output_format": "astext", "filename_template": "x", "compression": "none", "charset": "utf-8",
              "table_select[]": ["author", "book"], "table_structure[]": ["author", "book"], "table_data[]": ["author", "book"], "asfile": "", "structure_or_data_forced": "0"}
    formats = {
        "sql": {"sql_structure_or_data": "structure_and_data", "sql_include_comments": "", "sql_create_table": "something", "sql_drop_table": "something", "sql_if_not_exists": "something", "sql_auto_increment": "something",
                "sql_backquotes": "something", "sql_type": "INSERT", "sql_insert_syntax": "both", "sql_max_query_size": "50000", "sql_hex_for_binary": "something", "sql_use_transaction": "something", "sql_views_as_tables": "",
                "sql_create_view": "something", "sql_disable_fk": "something", "sql_compatibility": "NONE", "sql_relation": "something"},
        "csv": {"csv_separator": ",", "csv_enclosed": '"', "csv_escaped": '"', "csv_terminated": "AUTO", "csv_null": "NULL", "csv_columns": "something", "csv_structure_or_data": "data"},
        "json": {"json_structure_or_data": "data", "json_pretty_print": "something", "json_unicode": "something"},
        "xml": {"xml_structure_or_data": "data", "xml_export_tables": "something", "xml_export_contents": "something"},
        "texytext": {"texytext_structure_or_data": "structure_and_data", "texytext_null": "NULL", "texytext_columns": "something"},
        "yaml": {"yaml_structure_or_data": "data"}, "phparray": {"phparray_structure_or_data": "data"},
        "latex": {"latex_structure_or_data": "structure_and_data", "latex_columns": "something", "latex_relation": "something", "latex_comments": "something"},
        "mediawiki": {"mediawiki_structure_or_data": "structure_and_data", "mediawiki_caption": "something", "mediawiki_headers": "something"}, "codegen": {"codegen_structure_or_data": "data", "codegen_format": "0"},
    }
    texts = {}
    for name, options in formats.items():
        status, page = a.site.post("/index.php?route=/export", token=a.token, server=1, what=name, **common, **options)
        area = re.search(r'(?s)<textarea[^>]*id="textSQLDUMP"[^>]*>(.*?)</textarea>', page)
        text = php.html.unescape(area.group(1)) if area else php.plain(page)[-500:]
        texts[name] = text
        lines = [varying(line) for line in text.splitlines()]
        yield f"export {name}", [status, [line for line in lines if line and not re.match(r"-- |// |%|#|<!-- |\* version", line)]]
    yield "database of the import", outcome(a.post("/import", db=OTHER, sql_query=texts["sql"], sql_delimiter=";", is_js_confirmed="0", format="sql", import_type="database"))
    yield "export of the import", [len(texts["sql"]) > 1000]


def tidy(database, storage):
    """Removes the other databases and accounts."""
    database.execute(f"DROP DATABASE IF EXISTS {OTHER}", f"DROP DATABASE IF EXISTS {storage}", f"DROP USER IF EXISTS {ACCOUNT}@localhost")


def run(site, database, storage_name):
    tidy_first = [f"DROP DATABASE IF EXISTS {OTHER}", f"DROP USER IF EXISTS {ACCOUNT}@localhost"]
    database.execute(*tidy_first)
    a = Admin(site, database.name)
    yield from logged_in(a, database)
    yield from storage(a, storage_name)
    yield from made(a)
    yield from filled(a)
    yield from pages(a, SERVER_PAGES)
    yield from pages(a, DATABASE_PAGES, db=a.db)
    yield from pages(a, TABLE_PAGES, db=a.db, table="book")
    yield from pages(a, TABLE_PAGES[:2], db=a.db, table="dear_books")
    yield from searched(a)
    yield from operated(a, database)
    yield from accounts(a)
    yield from exported(a)
    for kind in ("queries", "variables", "processes"):
        answer = a.post("/server/status/processes/refresh") if kind == "processes" else {"success": a.page(f"/server/status/{kind}")[0]}
        yield f"status again {kind}", answer.get("success")
    yield "monitor data", outcome(a.post("/server/status/monitor/chart", requiredData=json.dumps([[[{"type": "proc"}]], [[{"type": "statusvar", "name": "Uptime"}]]])))[0]
    yield "log variables", outcome(a.post("/server/status/monitor/log-vars"))[0]
    for name in ("sort_buffer_size", "max_connections", "innodb_buffer_pool_size", "sql_mode"):
        status, text = a.site.get(f"/index.php?route=/server/variables/get/{name}", ajax_request=1, server=1)
        yield f"variable {name}", [status, json.loads(text).get("success")]
    yield "set a variable", outcome(a.post("/server/variables/set/sort_buffer_size", varValue="300000"))
    yield "set a wrong variable", outcome(a.post("/server/variables/set/sort_buffer_size", varValue="'x'"))
    yield "set it back", outcome(a.post("/server/variables/set/sort_buffer_size", varValue="262144"))
