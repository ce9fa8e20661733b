//! INSERT, REPLACE, UPDATE, DELETE.

use super::Db;

fn db() -> Db {
    let db = Db::new();
    db.create(
        "t",
        &["id int auto", "k int", "c varchar null"],
        &["primary id", "unique k"],
    );
    db
}

#[test]
fn insert_and_its_values() {
    let db = db();
    let r = db.exec("INSERT INTO t (k, c) VALUES (1,'a'),(2,'b'),(3,NULL)");
    assert_eq!(
        (r.affected, r.last_insert_id, r.info(false).as_str()),
        (3, 1, "Records: 3  Duplicates: 0  Warnings: 0")
    );
    let r = db.exec("INSERT INTO t SET k = 1 + 9, c = CONCAT('x', 'y')");
    assert_eq!(
        (r.affected, r.last_insert_id, r.info(false).as_str()),
        (1, 4, "")
    );
    let r = db.exec("INSERT INTO t VALUES (100, 100, DEFAULT)");
    assert_eq!((r.last_insert_id, r.generated_id), (100, None));
    assert_eq!(
        db.exec("INSERT INTO t VALUES (0, 101, 'z')").generated_id,
        Some(101)
    );
    assert_eq!(
        db.rows("SELECT * FROM t"),
        [
            "1|1|a",
            "2|2|b",
            "3|3|-",
            "4|10|xy",
            "100|100|-",
            "101|101|z"
        ]
    );
    assert_eq!(
        db.error("INSERT INTO t (k) VALUES (1)"),
        "ERROR 1062 (23000): Duplicate entry '1' for key 't.k'"
    );
    assert_eq!(
        db.error("INSERT INTO t VALUES (1,77,'')"),
        "ERROR 1062 (23000): Duplicate entry '1' for key 't.PRIMARY'"
    );
    assert_eq!(
        db.error("INSERT INTO t (c) VALUES ('q')"),
        "ERROR 1364 (HY000): Field 'k' doesn't have a default value"
    );
    assert_eq!(
        db.error("INSERT INTO t (k) VALUES (NULL)"),
        "ERROR 1048 (23000): Column 'k' cannot be null"
    );
    assert_eq!(
        db.error("INSERT INTO t VALUES (1,2)"),
        "ERROR 1136 (21S01): Column count doesn't match value count at row 1"
    );
    assert!(
        db.error("INSERT INTO t (k) VALUES (99999999999)")
            .starts_with("ERROR 1264 (22003): Out of range value for column 'k'")
    );
    let r = db.exec("INSERT INTO t (k, c) SELECT k + 1000, c FROM t WHERE id < 3");
    assert_eq!(
        (r.affected, r.info(false).as_str()),
        (2, "Records: 2  Duplicates: 0  Warnings: 0")
    );
    assert_eq!(
        db.rows("SELECT k, c FROM t WHERE k > 1000"),
        ["1001|a", "1002|b"]
    );
}

#[test]
fn a_failed_statement_leaves_nothing() {
    let db = db();
    db.exec("INSERT INTO t (k) VALUES (5)");
    assert!(
        db.error("INSERT INTO t (k) VALUES (6),(7),(5)")
            .starts_with("ERROR 1062")
    );
    assert_eq!(db.rows("SELECT k FROM t"), ["5"]);
}

#[test]
fn ignore_replace_and_on_duplicate() {
    let db = db();
    db.exec("INSERT INTO t (id,k,c) VALUES (1,1,'a'),(2,2,'b')");
    let r = db.exec("INSERT IGNORE INTO t (k,c) VALUES (1,'x'),(3,'y')");
    assert_eq!(
        (r.affected, r.info(false).as_str()),
        (1, "Records: 2  Duplicates: 1  Warnings: 1")
    );
    let r = db.exec("REPLACE INTO t (id,k,c) VALUES (1,2,'r')");
    assert_eq!(r.affected, 3, "both rows in the way go");
    assert_eq!(db.rows("SELECT k, c FROM t ORDER BY k"), ["2|r", "3|y"]);
    let r = db.exec("INSERT INTO t (k,c) VALUES (2,'new') ON DUPLICATE KEY UPDATE c = CONCAT(c, VALUES(c)), k = k + 5");
    assert_eq!(r.affected, 2);
    assert_eq!(db.rows("SELECT k, c FROM t ORDER BY k"), ["3|y", "7|rnew"]);
    let r = db.exec("INSERT INTO t (k,c) VALUES (7,'n') AS new ON DUPLICATE KEY UPDATE c = new.c");
    assert_eq!(
        (r.affected, db.rows("SELECT c FROM t WHERE k = 7")),
        (2, vec!["n".to_string()])
    );
    let r = db.exec("INSERT INTO t (k,c) VALUES (7,'n') ON DUPLICATE KEY UPDATE c = 'n'");
    assert_eq!(r.affected, 0, "nothing changes");
}

#[test]
fn update_and_delete() {
    let db = db();
    db.exec("INSERT INTO t (k,c) VALUES (1,'a'),(2,'b'),(3,'c'),(4,'d')");
    let r = db.exec("UPDATE t SET c = 'q' WHERE id = 2");
    assert_eq!(
        (r.affected, r.info(false).as_str()),
        (1, "Rows matched: 1  Changed: 1  Warnings: 0")
    );
    let r = db.exec("UPDATE t SET c = 'q' WHERE id = 2");
    assert_eq!(
        (r.affected, r.matched, r.info(false).as_str()),
        (0, 1, "Rows matched: 1  Changed: 0  Warnings: 0")
    );
    // Each value grows into the next one's way, so order matters; and no row is met twice.
    assert!(db.error("UPDATE t SET k = k + 1").starts_with("ERROR 1062"));
    db.exec("UPDATE t SET k = k + 1 ORDER BY k DESC");
    db.exec("UPDATE t SET id = id + 100, c = id WHERE id > 2");
    assert_eq!(
        db.rows("SELECT * FROM t"),
        ["1|2|a", "2|3|q", "103|4|103", "104|5|104"]
    );
    assert_eq!(db.exec("DELETE FROM t WHERE k IN (2, 5)").affected, 2);
    assert_eq!(
        db.exec("DELETE FROM t ORDER BY id DESC LIMIT 1").affected,
        1
    );
    assert_eq!(db.rows("SELECT id FROM t"), ["2"]);
    assert_eq!(db.exec("DELETE FROM t").affected, 1);
    assert_eq!(
        db.error("UPDATE t SET nope = 1"),
        "ERROR 1054 (42S22): Unknown column 'nope' in 'field list'"
    );
}

#[test]
fn hidden_row_ids() {
    let db = Db::new();
    db.create("h", &["a int null", "b varchar null"], &["key a"]);
    db.exec("INSERT INTO h VALUES (1,'x'),(1,'y'),(NULL,'z')");
    assert_eq!(db.exec("UPDATE h SET a = 2 WHERE b = 'y'").affected, 1);
    assert_eq!(db.exec("DELETE FROM h WHERE a = 1").affected, 1);
    assert_eq!(db.rows("SELECT * FROM h"), ["2|y", "-|z"]);
}
