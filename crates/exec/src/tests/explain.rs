//! EXPLAIN FORMAT=TREE and FORMAT=JSON of Nfold's plans, and EXPLAIN ANALYZE.
//!
//! `explain.txt` has statements on lines that begin with `> `, each followed by its plan.
//! `NFOLD_RECORD_GOLDEN=1 cargo test -p nfold-exec explain` rewrites the file.

use std::path::Path;

use super::Db;

/// The tables `t` (500 rows), `u` (900 rows) and `w` (100 rows).
fn tables() -> Db {
    let db = Db::new();
    db.create(
        "t",
        &["id int", "a int null", "s varchar", "c int"],
        &["primary id", "key a", "key a,s"],
    );
    db.create(
        "u",
        &["id int", "tid int", "v int"],
        &["primary id", "key tid"],
    );
    db.create("w", &["x int", "y int null"], &[]);
    let fill = |table: &str, rows: u32, row: &dyn Fn(u32) -> String| {
        let rows: Vec<String> = (1..=rows).map(row).collect();
        db.exec(&format!("INSERT INTO {table} VALUES {}", rows.join(",")));
        db.analyze(table);
    };
    fill("t", 500, &|n| format!("({n},{},'s{n}',{})", n % 10, n / 3));
    fill("u", 900, &|n| format!("({n},{},{})", n % 50, n % 7));
    fill("w", 100, &|n| format!("({n},{})", n % 5));
    db
}

#[test]
fn golden() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tests/explain.txt");
    let golden = std::fs::read_to_string(&path).expect("the golden file");
    let db = tables();
    let mut found = String::new();
    for line in golden
        .lines()
        .filter(|l| l.starts_with("> ") || l.starts_with('#'))
    {
        found += line;
        found.push('\n');
        let Some(sql) = line.strip_prefix("> ") else {
            continue;
        };
        let text = match db.run(&format!("EXPLAIN {sql}")) {
            Ok((rows, _)) => rows[0][0].clone().unwrap_or_default(),
            Err(e) => format!("{e}\n"),
        };
        found += &format!("{}\n\n", text.trim_end());
    }
    if std::env::var_os("NFOLD_RECORD_GOLDEN").is_some() {
        return std::fs::write(&path, &found).expect("the golden file");
    }
    assert!(
        found.trim_end() == golden.trim_end(),
        "explain.txt differs:\n{found}"
    );
}

/// The plan of EXPLAIN ANALYZE, without its times.
fn analyzed(db: &Db, sql: &str) -> Vec<String> {
    let (rows, _) = db.run(&format!("EXPLAIN ANALYZE {sql}")).unwrap();
    let text = rows[0][0].clone().unwrap();
    let line = |line: &str| {
        let operation = line.split("  (").next().unwrap_or_default().trim();
        let measured = match line.rsplit_once(" rows=") {
            _ if line.contains("(never executed)") => "never",
            Some((_, counts)) if line.contains("actual time=") => counts.trim_end_matches(')'),
            _ => "-",
        };
        format!("{} | {measured}", operation.trim_start_matches("-> "))
    };
    text.lines().map(line).collect()
}

#[test]
fn analyze_counts_rows_and_loops() {
    let db = tables();
    assert_eq!(
        analyzed(&db, "SELECT c FROM t WHERE c > 100 ORDER BY c DESC LIMIT 3"),
        [
            "Limit: 3 row(s) | 3 loops=1",
            "Sort: t.c DESC, limit input to 3 row(s) per chunk | 3 loops=1",
            "Filter: (t.c > 100) | 198 loops=1",
            "Table scan on t | 500 loops=1",
        ]
    );
    let joined = analyzed(
        &db,
        "SELECT u.v FROM w STRAIGHT_JOIN u ON u.tid = w.x WHERE w.y = 3",
    );
    let lookup = joined.iter().find(|l| l.contains("lookup on u"));
    assert!(
        lookup.is_some_and(|l| l.ends_with("| 9 loops=20")),
        "{joined:?}"
    );
    assert_eq!(
        analyzed(&db, "SELECT a, COUNT(*) n FROM t GROUP BY a HAVING n > 50"),
        [
            "Filter: (count(0) > 50) | 0 loops=1",
            "Group aggregate: count(0) | 10 loops=1",
            "Covering index scan on t using a | 500 loops=1",
        ]
    );
    let nothing = analyzed(
        &db,
        "SELECT u.v FROM w STRAIGHT_JOIN u ON u.tid = w.x WHERE w.y = 30",
    );
    let lookup = nothing.iter().find(|l| l.contains("lookup on u"));
    assert!(
        lookup.is_some_and(|l| l.ends_with("| never")),
        "{nothing:?}"
    );
    let sub = analyzed(
        &db,
        "SELECT (SELECT MAX(v) FROM u WHERE u.tid > t.id) FROM t WHERE id < 5",
    );
    assert!(
        sub.iter()
            .any(|l| l.starts_with("Aggregate: max(u.v)") && l.ends_with("| 1 loops=4")),
        "{sub:?}"
    );
}

#[test]
fn analyze_changes_nothing() {
    let db = tables();
    for sql in [
        "DELETE t FROM t JOIN u ON u.tid = t.id",
        "UPDATE t JOIN u ON u.tid = t.id SET t.c = 0",
        "DELETE FROM t",
        "UPDATE t SET c = 0",
        "INSERT INTO w SELECT id, a FROM t",
        "INSERT INTO w VALUES (1, 2)",
    ] {
        db.run(&format!("EXPLAIN ANALYZE {sql}")).unwrap();
    }
    assert_eq!(db.rows("SELECT COUNT(*), SUM(c) FROM t"), ["500|41583"]);
    assert_eq!(db.rows("SELECT COUNT(*) FROM w"), ["100"]);
}

#[test]
fn analyze_ends_when_it_is_killed() {
    let db = tables();
    let error = db.killed_at(
        20,
        "EXPLAIN ANALYZE SELECT COUNT(*) FROM w a, w b, w c, w d",
    );
    assert!(error.starts_with("ERROR 1317"), "{error}");
}

#[test]
fn literals_are_those_of_the_statement() {
    let db = tables();
    let filter = |n: u32| format!("EXPLAIN SELECT * FROM t WHERE c > {n}");
    for n in [5, 77] {
        let (rows, _) = db.run(&filter(n)).unwrap();
        let text = rows[0][0].clone().unwrap();
        assert!(text.contains(&format!("Filter: (t.c > {n})")), "{text}");
    }
}
