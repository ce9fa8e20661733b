"""What a WordPress database holds, without what differs from run to run."""

import re

# Columns that hold the time of the run, random keys or the address of the web server.
VOLATILE = {
    "wp_users": {"user_pass", "user_registered", "user_activation_key"},
    "wp_posts": {"post_modified", "post_modified_gmt", "guid"},
    "wp_comments": {"comment_date", "comment_date_gmt"},
}
# Posts that WordPress makes by itself carry the time of the installation.
DATES = {"post_date", "post_date_gmt"}
OPTIONS = re.compile(r"transient|cron|_key$|_salt$|siteurl|^home$|recovery|auto_core|initial_db|db_upgraded|user_count|fresh_site|_lifespan|can_compress|https_detection")
META = {"session_tokens", "_edit_lock", "_wp_trash_meta_time", "_wp_desired_post_slug", "_wp_attached_file", "wp_user-settings-time"}


def tables(conn, database, url):
    """Definitions and rows of all tables, as outcomes of steps."""
    found = {}
    with conn.cursor() as cursor:
        cursor.execute(f"USE {database}")
        cursor.execute("SHOW TABLES")
        names = sorted(name for (name,) in cursor.fetchall())
        found["tables"] = names
        for name in names:
            cursor.execute(f"SHOW CREATE TABLE {name}")
            found[f"definition of {name}"] = re.sub(r" AUTO_INCREMENT=\d+", "", cursor.fetchone()[1])
            found[f"rows of {name}"] = rows(cursor, name, url)
    return found


def rows(cursor, name, url):
    cursor.execute(f"SELECT * FROM {name} ORDER BY 1, 2")
    columns = [column[0] for column in cursor.description]
    result = []
    for values in cursor.fetchall():
        row = dict(zip(columns, values))
        if name == "wp_options" and OPTIONS.search(row["option_name"]):
            continue
        if row.get("meta_key") in META:
            continue
        if row.get("meta_key") == "_wp_old_date":
            row["meta_value"] = "*"  # the day of the run
        for column, value in row.items():
            volatile = column in VOLATILE.get(name, ()) or column in DATES and not str(value).startswith("2024")
            row[column] = "*" if volatile else str(value).replace(url, "URL") if value is not None else None
        if name == "wp_options":
            del row["option_id"]  # options that come and go take numbers
        result.append(list(row.values()))
    return sorted(result, key=str) if name == "wp_options" else result
