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
fn random_definitions_are_computed_once() {
    let db = with_table();
    let random = "WITH r AS (SELECT id, RAND() AS x FROM t)";
    assert_eq!(db.rows(&format!("{random} SELECT COUNT(x) FROM r")), ["2"]);
    for sql in [
        "SELECT a.x = b.x FROM r a JOIN r b ON a.id = b.id",
        "SELECT a.x = b.x FROM r a JOIN (SELECT id, x FROM r WHERE id > 0) b ON a.id = b.id",
        "SELECT x = (SELECT x FROM r b WHERE b.id = r.id) FROM r",
        ", s AS (SELECT id, x FROM r) SELECT a.x = b.x FROM s a JOIN r b ON a.id = b.id",
    ] {
        assert_eq!(db.rows(&format!("{random} {sql}")), ["1", "1"], "{sql}");
    }
    // Two definitions are two computations.
    let other = "JOIN (SELECT id, RAND() AS x FROM t) b ON a.id = b.id";
    let differ = format!("{random} SELECT a.x = b.x FROM r a {other}");
    assert_eq!(db.rows(&differ), ["0", "0"]);
    let error = db.error(
        "SELECT id, (WITH q AS (SELECT t.id * RAND() AS z) SELECT a.z = b.z FROM q a, q b) FROM t",
    );
    assert!(error.starts_with("ERROR 1235"), "{error}");
}

#[test]
fn conditions_stay_outside_of_shared_rows() {
    let db = with_table();
    let q = "WITH q AS (SELECT id, COUNT(*) AS n FROM t GROUP BY id)";
    // Only the condition on one reference is moved into it: the other one needs all rows.
    let sql = format!("{q} SELECT a.id, b.id FROM q a JOIN q b ON a.n = b.n WHERE a.id = 2");
    let (_, done) = db.run(&sql).unwrap();
    assert_eq!(done.examined, 2);
    assert_eq!(db.rows(&format!("{sql} ORDER BY 2")), ["2|1", "2|2"]);
    // Each reference needs one row.
    let sql = format!("{q} SELECT a.id, b.id FROM q a JOIN q b WHERE a.id = 2 AND b.id = 1");
    assert_eq!(db.rows(&sql), ["2|1"]);
    let sql = format!(
        "{q} SELECT a.id, b.id FROM q a LEFT JOIN (SELECT * FROM q WHERE id = 2) b ON a.id = b.id ORDER BY 1"
    );
    assert_eq!(db.rows(&sql), ["1|-", "2|2"]);
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

#[test]
fn equal_derived_tables_are_computed_once() {
    let db = with_table();
    let grouped = "(SELECT id, COUNT(*) AS n FROM t GROUP BY id)";
    for (sql, rows) in [
        (
            format!("WITH q AS {grouped} SELECT a.id, b.n FROM q a JOIN q b ON b.n + 1 = a.id"),
            vec!["2|1", "2|1"],
        ),
        (
            format!("SELECT a.id, b.n FROM {grouped} a JOIN {grouped} b ON b.n = a.id"),
            vec!["1|1", "1|1"],
        ),
        (
            format!("WITH q AS {grouped} SELECT id FROM q UNION ALL SELECT MAX(n) FROM q"),
            vec!["1", "2", "1"],
        ),
        (
            format!("WITH q AS {grouped} SELECT (SELECT SUM(n) FROM q), id FROM q"),
            vec!["2|1", "2|2"],
        ),
    ] {
        for _ in 0..2 {
            let (_, done) = db.run(&sql).unwrap();
            assert_eq!(done.examined, 2, "{sql}");
            assert_eq!(db.rows(&sql), rows, "{sql}");
        }
    }
}

#[test]
fn derived_tables_of_correlated_subqueries_run_once() {
    let db = with_table();
    let sql = "SELECT id, (SELECT MAX(n + t.id) FROM (SELECT id, COUNT(*) AS n FROM t GROUP BY id) q \
               WHERE q.id <= t.id + q.n) FROM t";
    let (_, done) = db.run(sql).unwrap();
    assert_eq!(done.examined, 4);
    assert_eq!(db.rows(sql), ["1|2", "2|3"]);
}
