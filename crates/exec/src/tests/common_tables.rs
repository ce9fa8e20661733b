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
fn a_chain_of_recursions() {
    let db = with_table();
    let sql = |count: usize| {
        let one = |i| {
            format!(
                ", c{i} AS (SELECT id FROM c{} UNION SELECT id + 1 FROM c{i} WHERE id < 4)",
                i - 1
            )
        };
        let all: String = (1..count).map(one).collect();
        format!(
            "WITH RECURSIVE c0 AS (SELECT id FROM t){all} SELECT COUNT(*) FROM c{}",
            count - 1
        )
    };
    assert_eq!(db.rows(&sql(30)), ["4"]);
    assert!(db.error(&sql(64)).starts_with("ERROR 1473"));
}

#[test]
fn unions_inside_exists_stop_at_the_first_row() {
    let db = with_table();
    let sql = |count: usize| {
        let one = |i| {
            let before = i - 1;
            format!(
                ", c{i} AS (SELECT id FROM t WHERE EXISTS (SELECT 1 FROM c{before} z WHERE z.id = t.id))"
            )
        };
        let all: String = (1..count).map(one).collect();
        format!(
            "WITH c0 AS (SELECT id FROM t){all} SELECT id FROM c{}",
            count - 1
        )
    };
    assert_eq!(db.rows(&sql(10)), ["1", "2"]);
    // Each may be answered by a set, planned beside what it stands for: not all of a chain are.
    assert_eq!(db.explain(&sql(30)).len(), 59, "the first is merged");
}

#[test]
fn columns_from_around_a_definition() {
    let db = with_table();
    let near = "SELECT id, (WITH q AS (SELECT t.id * 2 AS z) SELECT z FROM q) FROM t";
    assert_eq!(db.rows(near), ["1|2", "2|4"]);
    for far in [
        "SELECT id FROM t x WHERE EXISTS (WITH q AS (SELECT x.id AS z) SELECT 1 FROM t u WHERE u.id IN (SELECT z FROM q))",
        "SELECT x.id FROM t x WHERE EXISTS (WITH q AS (SELECT k.id AS z), r AS (SELECT (SELECT z FROM q) AS y FROM t k) SELECT 1 FROM t WHERE 1 IN (SELECT y FROM r))",
    ] {
        let error = db.error(far);
        assert!(error.starts_with("ERROR 1235"), "{error}");
    }
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
    // A step goes on with its own rows before the next one begins.
    assert_eq!(
        db.rows("WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 3 UNION ALL SELECT n + 10 FROM r WHERE n < 3) SELECT n FROM r"),
        ["1", "2", "3", "11", "12"]
    );
    // Each is a table of its own, also where one runs inside the other, and when a plan runs again.
    let nested = "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < (WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL \
                  SELECT n + 1 FROM r WHERE n < 4) SELECT MAX(n) FROM r)) SELECT COUNT(*) FROM r";
    for _ in 0..2 {
        assert_eq!(db.rows(nested), ["4"]);
    }
}
