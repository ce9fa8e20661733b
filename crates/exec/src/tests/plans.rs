//! Access paths, as EXPLAIN shows them.

use super::Db;

#[test]
fn access_paths() {
    let db = Db::new();
    db.create(
        "t",
        &["id int", "g int", "d tinyint", "o int null", "s varchar"],
        &["primary id", "key g,d", "key o", "unique s"],
    );
    db.exec("INSERT INTO t VALUES (1, 1, 0, NULL, 'x')");
    let one = |sql: &str| db.explain(sql).remove(0);
    assert_eq!(
        one("SELECT * FROM t WHERE id = 2"),
        "- - - no matching row in const table"
    );
    assert_eq!(one("SELECT * FROM t WHERE id = 1"), "t const PRIMARY -");
    assert_eq!(one("SELECT * FROM t WHERE g = 1"), "t ref g_d -");
    assert_eq!(one("SELECT d FROM t WHERE g = 1"), "t ref g_d Using index");
    assert_eq!(
        one("SELECT id, g, d FROM t WHERE g = 1 AND d = 0"),
        "t ref g_d Using index"
    );
    assert_eq!(
        one("SELECT * FROM t WHERE d = 0 AND g IN (1,2,3)"),
        "t range g_d Using index condition"
    );
    assert_eq!(
        one("SELECT * FROM t WHERE id BETWEEN 5 AND 9"),
        "t range PRIMARY Using where"
    );
    assert_eq!(one("SELECT * FROM t WHERE s = 'x'"), "t const s -");
    assert_eq!(
        one("SELECT * FROM t WHERE s = 5"),
        "t ALL - Using where",
        "a number against strings"
    );
    assert_eq!(one("SELECT * FROM t"), "t ALL - -");
    assert_eq!(one("SELECT o FROM t"), "t index o Using index");
    assert_eq!(
        one("SELECT * FROM t WHERE id > 5 ORDER BY id DESC LIMIT 3"),
        "t range PRIMARY Using where; Backward index scan"
    );
    assert_eq!(
        one("SELECT * FROM t WHERE id = 1 OR id = 7"),
        "t range PRIMARY Using where"
    );
    assert_eq!(one("SELECT * FROM t WHERE o IS NULL"), "t ref o -");
    // However long the list is, the index stays.
    let list: Vec<String> = (0..90_000).map(|i| i.to_string()).collect();
    assert_eq!(
        one(&format!(
            "SELECT * FROM t WHERE d = 0 AND g IN ({})",
            list.join(",")
        )),
        "t range g_d Using index condition"
    );
}

/// Derived tables are found by index as their tables are; beside an equality no range is read for
/// each outer row.
#[test]
fn merged_tables_and_hashes_before_ranges() {
    let db = Db::new();
    db.create("t", &["id int", "g int", "d int"], &["primary id", "key g"]);
    let rows: Vec<String> = (0..2000).map(|i| format!("({i},{i},0)")).collect();
    db.exec(&format!("INSERT INTO t VALUES {}", rows.join(",")));
    assert_eq!(
        db.explain("SELECT q.d FROM (SELECT id, d FROM t WHERE d = 0) q WHERE q.id = 5"),
        ["t const PRIMARY -"]
    );
    assert_eq!(
        db.explain("SELECT a.id, q.x FROM t a LEFT JOIN (SELECT b.g AS x, c.id FROM t b JOIN t c ON c.id = b.d) q ON q.x = a.id"),
        ["a index g Using index", "b ref g -", "c eq_ref PRIMARY -"]
    );
    let hashed = db.explain("SELECT a.id FROM t a JOIN t b ON b.d = a.d AND b.id > a.id");
    assert!(hashed[1].ends_with("(hash join)"), "{hashed:?}");
    let ranged = db.explain("SELECT a.id FROM t a JOIN t b ON b.g = a.d AND b.id > a.id");
    assert_eq!(ranged[1].split(' ').nth(1), Some("ref"), "{ranged:?}");
}
