//! Joins, derived tables, subqueries, set operations.

use super::Db;

fn db() -> Db {
    let db = Db::new();
    db.create("a", &["id int", "x int null"], &["primary id"]);
    db.create(
        "b",
        &["id int", "a_id int null", "n varchar"],
        &["primary id", "key a_id"],
    );
    db.exec("INSERT INTO a VALUES (1,10),(2,20),(3,NULL),(4,20)");
    db.exec(
        "INSERT INTO b VALUES (1,1,'one'),(2,1,'uno'),(3,2,'two'),(4,9,'none'),(5,NULL,'null')",
    );
    db
}

#[test]
fn inner_and_left() {
    let db = db();
    assert_eq!(
        db.rows("SELECT a.id, n FROM a JOIN b ON b.a_id = a.id ORDER BY b.id"),
        ["1|one", "1|uno", "2|two"]
    );
    assert_eq!(
        db.rows("SELECT a.id, n FROM a LEFT JOIN b ON b.a_id = a.id ORDER BY a.id, n"),
        ["1|one", "1|uno", "2|two", "3|-", "4|-"]
    );
    assert_eq!(
        db.rows("SELECT a.id FROM a LEFT JOIN b ON b.a_id = a.id WHERE b.id IS NULL ORDER BY 1"),
        ["3", "4"]
    );
    assert_eq!(
        db.rows("SELECT n, x FROM a RIGHT JOIN b ON b.a_id = a.id ORDER BY b.id"),
        ["one|10", "uno|10", "two|20", "none|-", "null|-"]
    );
    assert_eq!(db.rows("SELECT COUNT(*) FROM a, b"), ["20"]);
    assert_eq!(
        db.rows("SELECT p.id, q.id FROM a p JOIN a q ON p.x = q.x AND p.id < q.id"),
        ["2|4"]
    );
    assert_eq!(
        db.rows("SELECT COUNT(*) FROM a p JOIN b ON b.a_id = p.id JOIN a q ON q.id > b.id"),
        ["6"]
    );
    assert_eq!(
        db.rows("SELECT * FROM a JOIN b USING (id) ORDER BY id LIMIT 1"),
        ["1|10|1|one"]
    );
    assert_eq!(
        db.rows("SELECT a.*, b.n FROM a, b WHERE a.id = b.a_id AND b.id = 3"),
        ["2|20|two"]
    );
    assert_eq!(
        db.rows("SELECT COUNT(*) FROM a LEFT JOIN b ON b.a_id = a.id AND b.n = 'uno'"),
        ["4"]
    );
}

/// Outer joins whose inner side is a join, nested three levels deep, with and without an index; the
/// first or the last row of an inner side is missing.
#[test]
fn nested_outer_joins_return_null_extended_rows() {
    let db = db();
    db.create("c", &["id int", "b_id int", "y int null"], &["primary id"]);
    db.exec("INSERT INTO c VALUES (1,1,10),(2,1,20),(3,3,NULL),(4,5,10),(5,7,20)");
    for (from, rows) in [
        (
            "a LEFT JOIN (b JOIN c ON c.b_id = b.id) ON b.a_id = a.id",
            &["1|1|1", "1|1|2", "2|3|3", "3|-|-", "4|-|-"][..],
        ),
        (
            "a LEFT JOIN (b LEFT JOIN c ON c.b_id = b.id) ON b.a_id = a.id",
            &["1|1|1", "1|1|2", "1|2|-", "2|3|3", "3|-|-", "4|-|-"],
        ),
        (
            "a LEFT JOIN (b LEFT JOIN c ON c.b_id = b.id) ON b.a_id = a.id AND c.id IS NULL",
            &["1|2|-", "2|-|-", "3|-|-", "4|-|-"],
        ),
        (
            "a JOIN b ON b.a_id = a.id RIGHT JOIN c ON c.b_id = b.id AND c.y > 10",
            &["-|-|1", "-|-|3", "-|-|4", "-|-|5", "1|1|2"],
        ),
        (
            "a LEFT JOIN (b JOIN (c LEFT JOIN a d ON d.id = c.y) ON c.b_id = b.id) ON b.a_id = a.id AND d.id IS NULL AND c.y = a.x",
            &["1|1|1", "2|-|-", "3|-|-", "4|-|-"],
        ),
    ] {
        let sql = format!("SELECT a.id, b.id, c.id FROM {from} ORDER BY 1, 2, 3");
        assert_eq!(db.rows(&sql), rows, "{sql}");
    }
    assert!(
        db.error("SELECT 1 FROM c, a LEFT JOIN b ON b.id = c.id")
            .starts_with("ERROR 1054")
    );
}

#[test]
fn derived_and_subqueries() {
    let db = db();
    assert_eq!(
        db.rows("SELECT m FROM (SELECT MAX(id) m, x FROM a GROUP BY x) t WHERE x = 20"),
        ["4"]
    );
    assert_eq!(
        db.rows("SELECT id FROM a WHERE id = (SELECT MAX(a_id) FROM b WHERE a_id < 9)"),
        ["2"]
    );
    assert_eq!(
        db.rows("SELECT id FROM a WHERE id IN (SELECT a_id FROM b) ORDER BY id"),
        ["1", "2"]
    );
    assert_eq!(
        db.rows("SELECT id FROM a WHERE id NOT IN (SELECT a_id FROM b)"),
        [""; 0],
        "NULL among the members"
    );
    assert_eq!(
        db.rows("SELECT id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.a_id = a.id) ORDER BY id"),
        ["1", "2"]
    );
    assert_eq!(
        db.rows("SELECT id, (SELECT COUNT(*) FROM b WHERE b.a_id = a.id) FROM a ORDER BY id"),
        ["1|2", "2|1", "3|0", "4|0"]
    );
    assert_eq!(
        db.rows("SELECT id FROM a WHERE x > ALL (SELECT 15)  ORDER BY id"),
        ["2", "4"]
    );
    assert_eq!(
        db.error("SELECT (SELECT id FROM a)"),
        "ERROR 1242 (21000): Subquery returns more than 1 row"
    );
    assert_eq!(
        db.error("SELECT (SELECT 1, 2)"),
        "ERROR 1241 (21000): Operand should contain 1 column(s)"
    );
}

#[test]
fn unions() {
    let db = db();
    assert_eq!(
        db.rows("SELECT 1 UNION SELECT 2 UNION SELECT 1"),
        ["1", "2"]
    );
    assert_eq!(db.rows("SELECT id FROM a WHERE id < 3 UNION ALL SELECT id FROM b WHERE id < 3 ORDER BY id DESC LIMIT 3"), ["2", "2", "1"]);
    assert_eq!(
        db.rows("SELECT 1, 'a' UNION SELECT 2.5, 'bcd'"),
        ["1.0|a", "2.5|bcd"]
    );
}

/// Statistics that are older than the rows: the plan looks up rows for one outer row, of which
/// there are thousands, and builds a hash table for thousands, of which there is one.
#[test]
fn joins_change_their_way_while_they_run() {
    let db = Db::new();
    db.create("o", &["id int", "x int null"], &["primary id"]);
    db.create(
        "i",
        &["id int", "k int null", "y int"],
        &["primary id", "key k"],
    );
    let rows = |n: std::ops::Range<i32>| -> String {
        let row = |v: i32| match v % 50 {
            7 => format!("({v}, NULL)"),
            x => format!("({v}, {x})"),
        };
        n.map(row).collect::<Vec<_>>().join(",")
    };
    let inner: Vec<String> = (0..2000)
        .map(|v| format!("({v}, {}, {v})", v % 60))
        .collect();
    db.exec(&format!("INSERT INTO i VALUES {}", inner.join(",")));
    db.exec("INSERT INTO o VALUES (-1, 3)");
    db.analyze("o");
    db.analyze("i");
    let check = |outer: usize| {
        // 33 or 34 rows of each key.
        let inner = db.rows("SELECT COUNT(*), SUM(i.y) FROM o JOIN i ON i.k = o.x AND i.y >= 60");
        let left = "SELECT COUNT(*), COUNT(i.id) FROM o LEFT JOIN i ON i.k = o.x AND i.y < 60";
        let by_values = db.rows(
            "SELECT SUM(n), SUM(s) FROM (SELECT o.x AS x FROM o) p JOIN (SELECT k, COUNT(*) AS n, \
             SUM(y) AS s FROM i WHERE y >= 60 GROUP BY k) q ON q.k = p.x",
        );
        assert_eq!(inner, by_values);
        let missing = db.rows("SELECT COUNT(*) FROM o WHERE x IS NULL")[0].clone();
        let found = outer - missing.parse::<usize>().unwrap();
        assert_eq!(db.rows(left), [format!("{outer}|{found}")]);
    };
    check(1);
    // The plans still expect one outer row.
    db.exec(&format!("INSERT INTO o VALUES {}", rows(0..5000)));
    check(5001);
    // And these five thousand.
    db.analyze("o");
    check(5001);
    db.exec("DELETE FROM o WHERE id > 0");
    check(2);
}

/// A large table without an index, joined to few rows and to many: the plan expects as many as
/// there were when the tables were analyzed.
#[test]
fn hash_joins_swap_their_sides() {
    const INNER: i64 = 12_000;
    let db = Db::new();
    db.create("o", &["id int", "x int null", "s varchar"], &["primary id"]);
    db.create(
        "i",
        &["id int", "k int null", "y int", "t varchar"],
        &["primary id"],
    );
    // Key k has the rows k, k + 3000, k + 6000, k + 9000; those of keys divisible by 10 are NULL.
    let key = |v: i64| Some(v % 3000).filter(|k| k % 10 != 0);
    let sql = |v: Option<i64>| v.map_or("NULL".to_string(), |v| v.to_string());
    let row = |v: i64| format!("({v},{},{},'T{}')", sql(key(v)), v / 3000, v % 3000);
    for piece in (0..INNER).collect::<Vec<_>>().chunks(2000) {
        let rows: Vec<String> = piece.iter().map(|v| row(*v)).collect();
        db.exec(&format!("INSERT INTO i VALUES {}", rows.join(",")));
    }
    let add = |ids: std::ops::Range<i64>| {
        let row = |v: i64| {
            let x = Some(v * 7).filter(|_| v % 5 != 3);
            format!("({v},{},'t{}')", sql(x), v * 7)
        };
        let rows: Vec<String> = ids.map(row).collect();
        db.exec(&format!("INSERT INTO o VALUES {}", rows.join(",")));
    };
    add(0..500);
    db.analyze("o");
    db.analyze("i");
    let check = |count: i64| {
        let outer = || (0..count).map(|v| (v, Some(v * 7).filter(|_| v % 5 != 3)));
        // The rows of `i` with this key, and a smaller `y` than `most`.
        let matches = |x: Option<i64>, most: i64| match x {
            Some(x) if x < 3000 && x % 10 != 0 => most.min(4),
            _ => 0,
        };
        let sum = |f: &dyn Fn(i64, Option<i64>) -> i64| outer().map(|(v, x)| f(v, x)).sum::<i64>();
        let one = |sql: &str| {
            let rows = db.rows(sql);
            assert_eq!(rows.len(), 1, "{sql}");
            rows[0].clone()
        };
        assert_eq!(
            one("SELECT COUNT(*), COALESCE(SUM(o.id), 0) FROM o JOIN i ON i.k = o.x AND i.y < 3"),
            format!(
                "{}|{}",
                sum(&|_, x| matches(x, 3)),
                sum(&|v, x| v * matches(x, 3))
            )
        );
        assert_eq!(
            one("SELECT COUNT(*), COUNT(i.id) FROM o LEFT JOIN i ON i.k = o.x AND i.y >= 3"),
            format!("{count}|{}", sum(&|_, x| matches(x, 1)))
        );
        assert_eq!(
            one(
                "SELECT COUNT(*), COALESCE(SUM(o.id), 0) FROM o LEFT JOIN i ON i.k = o.x WHERE i.id IS NULL"
            ),
            format!(
                "{}|{}",
                sum(&|_, x| i64::from(matches(x, 4) == 0)),
                sum(&|v, x| v * i64::from(matches(x, 4) == 0))
            )
        );
        let exists = "SELECT COUNT(*), COALESCE(SUM(o.id), 0) FROM o WHERE";
        let found = sum(&|v, x| i64::from(matches(x, 4) > 0 && v > 9));
        let found_ids = sum(&|v, x| v * i64::from(matches(x, 4) > 0 && v > 9));
        assert_eq!(
            one(&format!(
                "{exists} o.id > 9 AND EXISTS (SELECT 1 FROM i WHERE i.k = o.x AND i.y + o.id > 2)"
            )),
            format!("{found}|{found_ids}")
        );
        let missing = sum(&|_, x| i64::from(matches(x, 4) == 0));
        let missing_ids = sum(&|v, x| v * i64::from(matches(x, 4) == 0));
        assert_eq!(
            one(&format!(
                "{exists} NOT EXISTS (SELECT 1 FROM i WHERE i.k = o.x AND i.y > 0)"
            )),
            format!("{missing}|{missing_ids}")
        );
        // Texts that are equal by their collation, two keys, and a key of another width.
        let texts = outer().filter(|(v, _)| v * 7 < 3000).count() * 4;
        assert_eq!(
            one("SELECT COUNT(*) FROM o JOIN i ON i.t = o.s"),
            texts.to_string()
        );
        assert_eq!(
            one("SELECT COUNT(*) FROM o JOIN i ON i.k = o.x AND i.y = o.id"),
            sum(&|v, x| i64::from(v < 4 && matches(x, 4) > 0)).to_string()
        );
        assert_eq!(
            one("SELECT COUNT(*) FROM o JOIN i ON i.k = o.x + 0 JOIN o p ON p.id = o.id"),
            sum(&|_, x| matches(x, 4)).to_string()
        );
        let rows =
            db.rows("SELECT o.id, i.id FROM o LEFT JOIN i ON i.k = o.x ORDER BY 1 DESC LIMIT 1");
        let (last, x) = outer().next_back().unwrap();
        assert_eq!(
            rows[0].starts_with(&format!("{last}|")) && rows[0].ends_with('-'),
            matches(x, 4) == 0
        );
    };
    check(500);
    db.exec("DELETE FROM o WHERE id >= 1");
    check(1);
    // Too many for the other side of the join.
    add(1..9000);
    check(9000);
}

/// A small table without a passing row ends a join before the large tables are read.
#[test]
fn empty_side_ends_a_join_early() {
    let db = Db::new();
    for name in ["large", "larger"] {
        db.create(name, &["id int", "x int", "y int"], &["primary id"]);
        let rows: Vec<String> = (0..20_000)
            .map(|i| format!("({i},{i},{})", i % 3))
            .collect();
        db.exec(&format!("INSERT INTO {name} VALUES {}", rows.join(",")));
    }
    db.create("small", &["id int", "x int"], &["primary id"]);
    db.exec("INSERT INTO small VALUES (0, 5), (1, 6), (2, 7)");
    for name in ["large", "larger", "small"] {
        db.analyze(name);
    }
    let join = "FROM large a JOIN larger b ON a.x = b.x JOIN small c ON c.id = b.y";
    for (sql, rows, examined) in [
        (
            format!("SELECT COUNT(*), MAX(a.x) {join} WHERE c.x = 8"),
            "0|-",
            3,
        ),
        (
            format!("SELECT COUNT(*), MAX(a.x) {join} WHERE c.x = 6"),
            "6667|19999",
            40_003,
        ),
        (
            "SELECT COUNT(*), MAX(a.x) FROM large a JOIN larger b ON a.x = b.x LEFT JOIN small c ON c.id = b.y AND c.x = 8".to_string(),
            "20000|19999",
            40_009,
        ),
    ] {
        let (_, done) = db.run(&sql).unwrap();
        assert_eq!(db.rows(&sql), [rows], "{sql}");
        assert_eq!(done.examined, examined, "{sql}");
    }
}
