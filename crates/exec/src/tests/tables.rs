//! UPDATE and DELETE of several tables. `tests/sql` compares their results with MySQL's.

use nfold_plan::Plan;

use super::Db;

/// `t`: 6,000 rows. `n`: 6,000 rows without a primary key, `x` as `t.id`, each twice. `o`: one row.
fn tables() -> Db {
    let db = Db::new();
    db.create(
        "t",
        &["id int auto", "k int", "s varchar"],
        &["primary id", "key k"],
    );
    db.create("n", &["x int", "y int", "s varchar"], &[]);
    db.create("o", &["id int auto", "v int"], &["primary id"]);
    db.exec("INSERT INTO o VALUES (1, 7)");
    for chunk in 0..12 {
        let numbers = || chunk * 500..(chunk + 1) * 500;
        let t: Vec<String> = numbers().map(|i| format!("({i},'{i:0>40}')")).collect();
        let n: Vec<String> = numbers()
            .map(|i| format!("({},{i},'{i:0>40}')", i / 2 + 1))
            .collect();
        db.exec(&format!("INSERT INTO t (k, s) VALUES {}", t.join(",")));
        db.exec(&format!("INSERT INTO n VALUES {}", n.join(",")));
    }
    db
}

/// Runs a statement with `memory` bytes of memory. Returns its result and the tables' content
/// afterwards, and whether it created files.
fn outcome(sql: &str, memory: usize) -> (Vec<String>, bool) {
    let db = tables();
    let made = || crate::runtime::spill::MADE.with(|made| made.get());
    let before = made();
    db.env.memory.set(memory);
    let done = db.exec(sql);
    let files = made() > before;
    db.env.memory.set(64 << 20);
    let mut out = vec![format!(
        "{} {} {}",
        done.affected,
        done.matched,
        done.info(false)
    )];
    out.extend(db.rows("SELECT COUNT(*), SUM(k), SUM(LENGTH(s)), MAX(s) FROM t"));
    out.extend(db.rows("SELECT COUNT(*), SUM(y), SUM(LENGTH(s)), MAX(s) FROM n"));
    out.extend(db.rows("SELECT id, k FROM t WHERE id % 97 = 0 ORDER BY id"));
    out.extend(db.rows("SELECT x, y FROM n WHERE x % 97 = 0 ORDER BY x, y"));
    (out, files)
}

#[test]
fn many_rows_change_through_files() {
    for (sql, affected) in [
        // Each row of `t` is met twice, and is read behind another table: its keys do not fit.
        (
            "UPDATE n STRAIGHT_JOIN t ON n.x = t.id SET t.k = t.k + 1, t.s = CONCAT(t.s, 'x')",
            3000,
        ),
        // Rows without a key, from an index and from a hash table.
        (
            "UPDATE t STRAIGHT_JOIN n ON n.x = t.id SET n.y = n.y + 1",
            6000,
        ),
        (
            "UPDATE n STRAIGHT_JOIN n m ON n.y = m.y SET n.y = n.y + 10000, m.s = CONCAT(m.x, '.')",
            12000,
        ),
        (
            "UPDATE t STRAIGHT_JOIN n ON n.x = t.id SET t.k = -t.k, n.s = CONCAT(n.s, t.k)",
            8999,
        ),
        (
            "UPDATE t LEFT JOIN n ON n.x = t.id AND n.y % 2 = 0 SET n.y = 1, t.s = 'z'",
            9000,
        ),
        ("DELETE t FROM n STRAIGHT_JOIN t ON n.x = t.id", 3000),
        (
            "DELETE t, n FROM t STRAIGHT_JOIN n ON n.x = t.id WHERE n.y % 3 < 2",
            7000,
        ),
        ("DELETE a, b FROM n a STRAIGHT_JOIN n b ON a.y = b.y", 6000),
        ("DELETE n FROM o STRAIGHT_JOIN n WHERE o.v = 7", 6000),
    ] {
        let (whole, none) = outcome(sql, 64 << 20);
        let (little, files) = outcome(sql, 1);
        assert!(!none && files, "{sql}");
        assert_eq!(whole, little, "{sql}");
        assert!(
            whole[0].starts_with(&format!("{affected} ")),
            "{sql}: {whole:?}"
        );
    }
}

#[test]
fn what_changes_at_once() {
    let db = tables();
    for (sql, at_once) in [
        ("UPDATE t STRAIGHT_JOIN n ON n.x = t.id SET t.s = 'a'", true),
        (
            "UPDATE n STRAIGHT_JOIN t ON n.x = t.id SET t.s = 'a'",
            false,
        ),
        // The key that is read changes, that of one row apart.
        ("UPDATE t STRAIGHT_JOIN n ON n.x = t.id SET t.id = 1", false),
        (
            "UPDATE t STRAIGHT_JOIN n ON n.x = 1 SET t.id = 1 WHERE t.id = 5",
            true,
        ),
        // Another name.
        (
            "UPDATE t STRAIGHT_JOIN t u ON u.id = t.id SET t.s = 'a'",
            false,
        ),
        // A condition of the second table sees what changes.
        (
            "UPDATE t STRAIGHT_JOIN n ON n.y > t.k SET t.k = 1, n.y = 1",
            false,
        ),
        ("UPDATE t STRAIGHT_JOIN n ON n.y > t.k SET t.k = 1", true),
    ] {
        let (plan, _) = db.plan(sql).unwrap();
        let Plan::UpdateTables(plan) = plan else {
            panic!("{sql}")
        };
        assert_eq!(plan.at_once, at_once.then_some(0), "{sql}");
    }
}

#[test]
fn a_failed_statement_leaves_nothing() {
    let db = tables();
    let all = |db: &Db| db.rows("SELECT SUM(k), SUM(id), COUNT(*) FROM t");
    let before = (all(&db), db.rows("SELECT SUM(y) FROM n"));
    // The first table is changed when the second turns out to have no room.
    assert_eq!(
        db.error("UPDATE n STRAIGHT_JOIN t ON n.x = t.id SET n.y = 0, t.id = 5999 WHERE t.id > 1"),
        "ERROR 1062 (23000): Duplicate entry '5999' for key 't.PRIMARY'"
    );
    assert_eq!((all(&db), db.rows("SELECT SUM(y) FROM n")), before);
    let done =
        db.exec("UPDATE IGNORE n STRAIGHT_JOIN t ON n.x = t.id SET n.y = 0, t.id = 5999 WHERE t.id IN (1, 5999)");
    assert_eq!((done.matched, done.affected), (3, 1));
}

#[test]
fn explained_by_what_becomes_of_each_table() {
    let db = tables();
    let kinds = |sql: &str| -> Vec<String> {
        let (rows, _) = db.run(sql).unwrap();
        let kind = |row: &Vec<Option<String>>| {
            row[1..3]
                .iter()
                .flatten()
                .cloned()
                .collect::<Vec<_>>()
                .join(" ")
        };
        rows.iter().map(kind).collect()
    };
    assert_eq!(
        kinds("EXPLAIN FORMAT=TRADITIONAL UPDATE t STRAIGHT_JOIN n ON n.x = t.id SET n.y = 1"),
        ["SIMPLE t", "UPDATE n"]
    );
    assert_eq!(
        kinds("EXPLAIN FORMAT=TRADITIONAL DELETE t, n FROM t STRAIGHT_JOIN n ON n.x = t.id"),
        ["DELETE t", "DELETE n"]
    );
    assert_eq!(
        kinds(
            "EXPLAIN FORMAT=TRADITIONAL DELETE t FROM t STRAIGHT_JOIN n WHERE n.x = (SELECT MAX(v) FROM o)"
        ),
        ["DELETE t", "PRIMARY n", "SUBQUERY o"]
    );
}
