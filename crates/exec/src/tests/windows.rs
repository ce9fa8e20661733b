//! Window functions beside what plain loops over the same rows say.

use super::Db;

const ROWS: i64 = 3000;

/// `t`: 3,000 rows; `a` is NULL in every 11th and repeats.
fn table() -> (Db, Vec<(i64, Option<i64>)>) {
    let db = Db::new();
    db.create("t", &["id int", "a int null"], &["primary id"]);
    let mut rows = Vec::new();
    for id in 0..ROWS {
        let a = (id % 11 != 0).then(|| id * 7919 % 501 - 250);
        rows.push((id, a));
    }
    let values: Vec<String> = rows
        .iter()
        .map(|(id, a)| match a {
            Some(a) => format!("({id},{a})"),
            None => format!("({id},NULL)"),
        })
        .collect();
    db.exec(&format!("INSERT INTO t VALUES {}", values.join(",")));
    (db, rows)
}

/// The value of `call` in each row, in the order of `id`.
fn shown(db: &Db, call: &str) -> Vec<String> {
    db.rows(&format!("SELECT {call} FROM t ORDER BY id"))
}

/// An aggregate that sees the values of a frame.
type Naive = fn(&[i64]) -> Option<i64>;

#[test]
fn frames_of_all_lengths_are_those_of_a_loop() {
    let (db, rows) = table();
    let functions: [(&str, Naive); 5] = [
        ("SUM", |v| (!v.is_empty()).then(|| v.iter().sum())),
        ("COUNT", |v| Some(v.len() as i64)),
        ("MIN", |v| v.iter().copied().min()),
        ("MAX", |v| v.iter().copied().max()),
        ("BIT_XOR", |v| Some(v.iter().fold(0, |x, v| x ^ v))),
    ];
    for (before, after) in [
        (0, 0),
        (3, 2),
        (60, 90),
        (200, 1),
        (0, 700),
        (5000, 0),
        (10, -3),
    ] {
        let end = match after < 0 {
            true => format!("{} PRECEDING", -after),
            false => format!("{after} FOLLOWING"),
        };
        for (name, naive) in functions {
            let call =
                format!("{name}(a) OVER (ORDER BY id ROWS BETWEEN {before} PRECEDING AND {end})");
            let got = shown(&db, &call);
            for id in (0..ROWS).step_by(37) {
                let last = (id + after).min(ROWS - 1);
                let seen: Vec<i64> = ((id - before).max(0)..=last)
                    .filter_map(|n| rows[n as usize].1)
                    .collect();
                let expected = match (naive(&seen), name) {
                    (Some(v), "BIT_XOR") => (v as u64).to_string(),
                    (Some(v), _) => v.to_string(),
                    (None, _) => "-".to_string(),
                };
                assert_eq!(got[id as usize], expected, "{call} at {id}");
            }
        }
    }
}

#[test]
fn ranges_are_those_of_a_loop() {
    let (db, rows) = table();
    for (before, after) in [(0, 0), (10, 5), (100, 0), (600, 600)] {
        let call = format!(
            "COUNT(*) OVER (ORDER BY a RANGE BETWEEN {before} PRECEDING AND {after} FOLLOWING)"
        );
        let got = shown(&db, &call);
        for id in (0..ROWS).step_by(29) {
            let like = |a: Option<i64>| match (rows[id as usize].1, a) {
                (None, None) => true,
                (Some(own), Some(a)) => (own - before..=own + after).contains(&a),
                _ => false,
            };
            let count = rows.iter().filter(|(_, a)| like(*a)).count();
            assert_eq!(got[id as usize], count.to_string(), "{call} at {id}");
        }
    }
}

#[test]
fn a_parameter_that_is_no_number_is_refused() {
    let (db, _) = table();
    for sql in [
        "SELECT NTILE(0) OVER () FROM t",
        "SELECT SUM(a) OVER (ORDER BY id ROWS 1.5 PRECEDING) FROM t",
        "SELECT SUM(a) OVER (ORDER BY id ROWS BETWEEN CURRENT ROW AND 1 PRECEDING) FROM t",
    ] {
        let error = db.error(sql);
        assert!(
            error.contains("1210") || error.contains("3586"),
            "{sql}: {error}"
        );
    }
}

#[test]
fn explain_says_where_rows_are_sorted() {
    let (db, _) = table();
    for (sql, extra) in [
        (
            "SELECT RANK() OVER (ORDER BY a) FROM t",
            "t ALL - Using filesort",
        ),
        ("SELECT COUNT(*) OVER () FROM t", "t ALL - -"),
        (
            "SELECT a, RANK() OVER (ORDER BY SUM(id)) FROM t GROUP BY a",
            "t ALL - Using temporary; Using filesort",
        ),
    ] {
        assert_eq!(db.explain(sql), [extra], "{sql}");
    }
}
