//! Subqueries whose rows become keys: of a set, or of an index.

use super::Db;

/// `a` and `b`: 400 rows each, `a.id` 1 to 400, `b.x` 2, 4, 6 ..., without an index on it; `b.k` as
/// `b.x`, with one.
fn db() -> Db {
    let db = Db::new();
    db.create("a", &["id int", "x int null"], &["primary id"]);
    db.create(
        "b",
        &["id int", "x int null", "k int"],
        &["primary id", "key k"],
    );
    let rows = |f: &dyn Fn(u32) -> String| (1..=400).map(f).collect::<Vec<_>>().join(",");
    let a = rows(&|n| format!("({n}, {})", n % 7));
    let b = rows(&|n| format!("({n}, {0}, {0})", 2 * n));
    db.exec(&format!("INSERT INTO a VALUES {a}"));
    db.exec(&format!("INSERT INTO b VALUES {b}"));
    db
}

#[test]
fn equalities_become_keys() {
    let db = db();
    for (condition, rows) in [
        ("EXISTS (SELECT 1 FROM b WHERE b.x = a.id)", 200),
        (
            "NOT EXISTS (SELECT 1 FROM b WHERE a.id = b.x AND b.id < 11)",
            390,
        ),
        ("x IN (SELECT b.x FROM b WHERE b.id = a.x + 0)", 0),
        (
            "2 * id NOT IN (SELECT b.x FROM b WHERE COALESCE(b.x, 0) = a.id + 1)",
            399,
        ),
    ] {
        let (found, done) = db
            .run(&format!("SELECT id FROM a WHERE {condition}"))
            .unwrap();
        assert_eq!(found.len(), rows, "{condition}");
        // All of `a`, and `b` as often as 10,000 rows, as many as a table is taken for that has not
        // been counted; not 160,000.
        assert!(done.examined < 12_000, "{condition}: {}", done.examined);
    }
}

#[test]
fn other_correlations_are_run_for_each_row() {
    let db = db();
    for (condition, rows) in [
        ("EXISTS (SELECT 1 FROM b WHERE b.x + a.id = 10)", 4),
        ("EXISTS (SELECT 1 FROM b WHERE b.x = a.id FOR SHARE)", 200),
        ("EXISTS (SELECT MAX(id) FROM b WHERE b.x = a.id)", 400),
        ("EXISTS (SELECT 1 FROM b WHERE b.k = a.id)", 200),
    ] {
        let found = db.rows(&format!("SELECT id FROM a WHERE {condition}"));
        assert_eq!(found.len(), rows, "{condition}");
    }
}

#[test]
fn values_are_looked_up() {
    let db = db();
    for (sql, rows, examined) in [
        // `b` by its key, and the rows found.
        (
            "SELECT x FROM a WHERE id IN (SELECT x FROM b WHERE id < 4)",
            3,
            10,
        ),
        (
            "SELECT x FROM b WHERE k IN (SELECT id FROM a WHERE id BETWEEN 7 AND 9)",
            1,
            10,
        ),
        (
            "SELECT a.x, b.x FROM a JOIN b ON b.k = a.id WHERE a.id IN (SELECT x FROM b WHERE id < 4)",
            3,
            20,
        ),
    ] {
        let (found, done) = db.run(sql).unwrap();
        assert_eq!(found.len(), rows, "{sql}");
        assert!(done.examined <= examined, "{sql}: {}", done.examined);
    }
    let explained = db.explain("SELECT x FROM a WHERE id IN (SELECT x FROM b WHERE id < 4)");
    assert_eq!(explained[0], "a range PRIMARY Using where");
}

#[test]
fn many_values_are_asked_in_a_scan() {
    let db = db();
    let rows = |n: u32| {
        let rows = (1..=400).map(|i| format!("({0}, {0}, {0})", 400 * n + i));
        format!(
            "INSERT INTO b VALUES {}",
            rows.collect::<Vec<_>>().join(",")
        )
    };
    for n in 1..=7 {
        db.exec(&rows(n));
    }
    for sql in [
        "SELECT x FROM a WHERE id IN (SELECT k - 400 FROM b WHERE id > 400)",
        "SELECT id FROM b WHERE k IN (SELECT id + 0 FROM b c WHERE id > 400)",
        "SELECT id FROM b WHERE k IN (SELECT id + 0 FROM b c WHERE id > 400) ORDER BY k DESC LIMIT 400",
    ] {
        let found = db.rows(sql);
        assert!(found.len() >= 400, "{sql}: {}", found.len());
    }
    let ordered =
        "SELECT k FROM b WHERE k IN (SELECT id + 0 FROM b c WHERE id > 400) ORDER BY k LIMIT 3";
    assert_eq!(db.rows(ordered), ["401", "402", "402"]);
}
