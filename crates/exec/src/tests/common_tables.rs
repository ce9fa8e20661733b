//! WITH: how deep and how often definitions may name one another.

use super::Db;

fn with_table() -> Db {
    let db = Db::new();
    db.create("t", &["id int"], &["primary id"]);
    db.exec("INSERT INTO t VALUES (1), (2)");
    db
}

/// `count` definitions, each of which is made by `next` from the name of the one before.
fn chain(count: usize, next: impl Fn(&str) -> String) -> String {
    let mut sql = "WITH c0 AS (SELECT id FROM t)".to_owned();
    for i in 1..count {
        let before = format!("c{}", i - 1);
        sql += &format!(", c{i} AS ({})", next(&before));
    }
    sql + &format!(" SELECT * FROM c{}", count - 1)
}

#[test]
fn a_chain_of_definitions() {
    let db = with_table();
    let add = |before: &str| format!("SELECT id + 1 AS id FROM {before}");
    assert_eq!(db.rows(&chain(3, add)), ["3", "4"]);
    assert_eq!(db.rows(&chain(60, add)), ["60", "61"]);
    // The stack of a session is no deeper.
    assert!(db.error(&chain(64, add)).starts_with("ERROR 1473"));
    let nested = |before: &str| {
        let sum = format!("(SELECT MAX(id) FROM {before})");
        format!(
            "SELECT {}{sum}{} AS id FROM t",
            "(1+".repeat(9),
            ")".repeat(9)
        )
    };
    assert_eq!(db.rows(&chain(10, nested)), ["83", "83"]);
    assert!(db.error(&chain(40, nested)).starts_with("ERROR 1436"));
}

#[test]
fn definitions_that_name_others_twice() {
    let db = with_table();
    let twice =
        |before: &str| format!("SELECT a.id FROM {before} a JOIN {before} b ON a.id = b.id");
    assert_eq!(db.rows(&chain(8, twice)), ["1", "2"]);
    // 2^20 tables would be bound.
    assert!(db.error(&chain(20, twice)).starts_with("ERROR 1235"));
}

#[test]
fn what_differs_each_time_is_named_once() {
    let db = with_table();
    let random = "WITH r AS (SELECT RAND() AS x FROM t)";
    assert_eq!(db.rows(&format!("{random} SELECT COUNT(x) FROM r")), ["2"]);
    let error = db.error(&format!("{random} SELECT a.x = b.x FROM r a, r b"));
    assert!(error.starts_with("ERROR 1235"), "{error}");
}

#[test]
fn rounds_of_a_recursion() {
    let db = with_table();
    assert_eq!(
        db.rows("WITH RECURSIVE r AS (SELECT 1 AS n UNION SELECT n + 1 FROM r WHERE n < 5) SELECT n FROM r"),
        ["1", "2", "3", "4", "5"]
    );
    // Several blocks that name it are not there yet.
    let error = db.error(
        "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 5 UNION ALL SELECT n + 2 FROM r WHERE n < 5) SELECT n FROM r",
    );
    assert!(error.starts_with("ERROR 1235"), "{error}");
    // Each is a table of its own, also where one runs inside the other, and when a plan runs again.
    let nested = "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < (WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL \
                  SELECT n + 1 FROM r WHERE n < 4) SELECT MAX(n) FROM r)) SELECT COUNT(*) FROM r";
    for _ in 0..2 {
        assert_eq!(db.rows(nested), ["4"]);
    }
}
