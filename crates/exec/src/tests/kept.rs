//! Memory that operators keep between executions.

use super::Db;
use crate::env::batch::POOLED_BYTES;

/// Operators wait for the next execution by the hundreds, so a long value must not stay with them.
#[test]
fn long_rows_stay_with_no_operator() {
    let db = Db::new();
    db.create(
        "t",
        &["id int", "k int", "b longtext"],
        &["primary id", "key k"],
    );
    let long = "x".repeat(3 << 20);
    for id in 1..=3 {
        db.exec(&format!(
            "INSERT INTO t VALUES ({id}, {id} DIV 2, '{long}')"
        ));
    }
    for (sql, rows) in [
        ("SELECT LENGTH(b) FROM t", 3),
        ("SELECT LENGTH(b) FROM t WHERE id = 2", 1),
        ("SELECT LENGTH(b) FROM t WHERE id IN (1, 2)", 2),
        ("SELECT LENGTH(b) FROM t WHERE k = 1", 2),
        ("SELECT LENGTH(b) FROM t WHERE k = 1 LIMIT 1", 1),
        ("SELECT LENGTH(b) FROM t WHERE k IN (0, 1)", 3),
        (
            "SELECT LENGTH(b) FROM t WHERE k BETWEEN 0 AND 1 ORDER BY id DESC",
            3,
        ),
        ("SELECT LENGTH(b) FROM t WHERE k = 1 FOR UPDATE", 2),
        ("SELECT LENGTH(u.b) FROM t JOIN t AS u ON u.id = t.k", 2),
        ("SELECT LENGTH(u.b) FROM t JOIN t AS u ON u.k = t.id", 2),
        (
            "SELECT (SELECT LENGTH(b) FROM t AS u WHERE u.id = t.id) FROM t",
            3,
        ),
        (
            "SELECT LENGTH(x.b) FROM (SELECT b FROM t WHERE k = 1) AS x",
            2,
        ),
        (
            "SELECT LENGTH(b) FROM t UNION ALL SELECT LENGTH(b) FROM t",
            6,
        ),
    ] {
        assert_eq!(db.rows(sql).len(), rows, "{sql}");
        assert!(
            db.kept.get() <= 2 * POOLED_BYTES,
            "{sql}: {}",
            db.kept.get()
        );
    }
    db.exec("UPDATE t SET k = k + 1 WHERE id = 2");
    assert!(db.kept.get() <= POOLED_BYTES, "{}", db.kept.get());
    db.exec("DELETE FROM t WHERE k = 0");
    assert!(db.kept.get() <= POOLED_BYTES, "{}", db.kept.get());
    // Buffers of usual size are kept.
    db.rows("SELECT id FROM t");
    assert!(db.kept.get() > 0);
}
