//! Statements that do not fit in their memory give the same rows as those that do.

use super::Db;

/// `t`: 10,000 rows with 5,003 values of `k`, all `s` different. `u`: 4,000 rows, `g` 0 to 9, `k`
/// as in `t` or NULL, `pad` long.
fn tables() -> Db {
    let db = Db::new();
    db.create("t", &["id int auto", "k int", "s varchar"], &["primary id"]);
    db.create(
        "u",
        &["id int auto", "g int", "k int null", "pad varchar"],
        &["primary id", "key g"],
    );
    for chunk in 0..20 {
        let rows: Vec<String> = (0..500)
            .map(|i| {
                let n = (chunk * 500 + i) * 7919 % 10_007;
                format!("({},'value {:0>40}')", n % 5003, n)
            })
            .collect();
        db.exec(&format!("INSERT INTO t (k, s) VALUES {}", rows.join(",")));
    }
    for chunk in 0..8 {
        let rows: Vec<String> = (0..500)
            .map(|i| {
                let n = chunk * 500 + i;
                let k = match n % 7 {
                    0 => "NULL".to_string(),
                    _ => (n * 13 % 6000).to_string(),
                };
                format!("({},{k},'{:0>90}')", n % 10, n % 1000)
            })
            .collect();
        db.exec(&format!(
            "INSERT INTO u (g, k, pad) VALUES {}",
            rows.join(",")
        ));
    }
    db
}

/// `files`: with little memory each query needs some.
fn same_with_little_memory(queries: &[&str], files: bool) {
    let db = tables();
    let made = || crate::runtime::spill::MADE.with(|made| made.get());
    for sql in queries {
        db.env.memory.set(64 << 20);
        let before = made();
        let whole = db.rows(sql);
        assert!(!whole.is_empty(), "{sql}");
        assert_eq!(made(), before, "{sql}");
        db.env.memory.set(1);
        assert_eq!(db.rows(sql), whole, "{sql}");
        assert_eq!(made() > before, files, "{sql}");
    }
}

#[test]
fn sorted_and_grouped_through_files() {
    same_with_little_memory(
        &[
            "SELECT s, id FROM t ORDER BY s DESC, id",
            "SELECT k, COUNT(*), MIN(s), GROUP_CONCAT(id ORDER BY id) FROM t GROUP BY k ORDER BY k",
            "SELECT k, GROUP_CONCAT(s ORDER BY id DESC) FROM t GROUP BY k ORDER BY k",
        ],
        true,
    );
}

#[test]
fn rolled_up_through_files() {
    same_with_little_memory(
        &[
            "SELECT k, s, COUNT(*), GROUPING(k, s) FROM t GROUP BY k, s WITH ROLLUP",
            "SELECT g + 0 x, k, COUNT(DISTINCT pad), SUM(DISTINCT id), MIN(pad) FROM u GROUP BY x, k WITH ROLLUP",
            "SELECT g + 0 x, COUNT(*), COUNT(DISTINCT pad), MD5(GROUP_CONCAT(pad)) FROM u GROUP BY x WITH ROLLUP",
            "SELECT DISTINCT COUNT(*), pad FROM u GROUP BY pad, k WITH ROLLUP ORDER BY pad, 1",
        ],
        true,
    );
}

#[test]
fn rolled_up_in_the_order_of_an_index() {
    same_with_little_memory(
        &[
            "SELECT g, COUNT(DISTINCT pad), SUM(DISTINCT id), MAX(k) FROM u GROUP BY g WITH ROLLUP",
            "SELECT id, COUNT(DISTINCT s) FROM t GROUP BY id WITH ROLLUP",
        ],
        true,
    );
}

#[test]
fn counted_rows_through_files() {
    same_with_little_memory(
        &[
            "SELECT id, s FROM t INTERSECT SELECT id, s FROM t WHERE id > 5000",
            "SELECT id, s FROM t EXCEPT SELECT id, s FROM t WHERE id % 3 = 0",
            "SELECT k, pad FROM u INTERSECT ALL SELECT k, pad FROM u WHERE id % 2 = 0",
            "SELECT g, pad FROM u EXCEPT ALL SELECT g, pad FROM u WHERE id < 1500 LIMIT 3000",
            "SELECT s FROM t WHERE k < 4000 EXCEPT SELECT s FROM t WHERE k < 10 UNION ALL SELECT pad FROM u WHERE g = 1 ORDER BY s DESC",
            "SELECT COUNT(*), SUM(id) FROM (SELECT id, s FROM t INTERSECT SELECT id, s FROM t WHERE k < 9) x",
        ],
        true,
    );
}

#[test]
fn distinct_rows_through_files() {
    same_with_little_memory(
        &[
            "SELECT COUNT(*), SUM(LENGTH(s)) FROM (SELECT DISTINCT s FROM t) x",
            "SELECT DISTINCT pad, g FROM u ORDER BY pad DESC, g",
            "SELECT DISTINCT s FROM t ORDER BY s LIMIT 3000, 4",
            "SELECT COUNT(*), SUM(id) FROM (SELECT id, s FROM t UNION SELECT id, s FROM t) x",
            "SELECT k FROM t UNION SELECT k FROM u ORDER BY k",
        ],
        true,
    );
}

#[test]
fn distinct_arguments_through_files() {
    same_with_little_memory(
        &[
            "SELECT COUNT(DISTINCT s), COUNT(s), COUNT(DISTINCT k), SUM(DISTINCT k), AVG(DISTINCT k) FROM t",
            "SELECT COUNT(DISTINCT s, k), COUNT(DISTINCT k), MAX(DISTINCT s) FROM t",
            "SELECT g + 0 x, COUNT(DISTINCT pad), COUNT(DISTINCT k), SUM(DISTINCT id) FROM u GROUP BY x ORDER BY x",
            "SELECT k % 3 m, COUNT(DISTINCT s), SUM(DISTINCT id) FROM t GROUP BY m ORDER BY m",
            "SELECT GROUP_CONCAT(DISTINCT pad ORDER BY pad DESC) FROM u",
            "SELECT g, GROUP_CONCAT(pad ORDER BY id) FROM u GROUP BY g ORDER BY g",
        ],
        true,
    );
}

#[test]
fn joined_through_files() {
    same_with_little_memory(
        &[
            // No index on the inner side's column: its rows are kept by hash, here more than fit.
            "SELECT t.id, u.id FROM t JOIN u ON u.k = t.k ORDER BY t.id, u.id",
            "SELECT t.id, u.id, u.pad FROM t LEFT JOIN u ON u.k = t.k AND u.id % 2 = 0 ORDER BY t.id, u.id",
            "SELECT COUNT(*), SUM(u.id), SUM(x.id) FROM u JOIN t x ON x.k = u.k JOIN t y ON y.k = x.k",
            // All rows are candidates.
            "SELECT COUNT(*), SUM(u.id * x.n) FROM (SELECT 1 n UNION SELECT 2 UNION SELECT 3) x STRAIGHT_JOIN u",
            "SELECT COUNT(*), SUM(a.id + b.id) FROM t a LEFT JOIN u b ON a.id = b.id + 1 AND LENGTH(b.pad) = a.k * 0 + 90",
            // Keys of a subquery.
            "SELECT COUNT(*), SUM(id) FROM t WHERE k IN (SELECT k + 0 FROM u WHERE k IS NOT NULL)",
            "SELECT COUNT(*), SUM(id) FROM u WHERE CONCAT('value ', LPAD(id, 40, '0')) NOT IN (SELECT s FROM t)",
            // Inner sides of outer joins that are joins.
            "SELECT t.id, u.id, x.id FROM t LEFT JOIN (u JOIN t x ON x.k = u.k) ON u.k = t.k + 1 ORDER BY t.id, u.id, x.id",
            "SELECT COUNT(*), SUM(t.id), SUM(u.id), SUM(x.id) FROM t LEFT JOIN (u LEFT JOIN t x ON x.k = u.k + 7) ON u.k = t.k AND IFNULL(x.id, 1) % 2 = 1",
            // A derived table, first and later.
            "SELECT COUNT(*), SUM(LENGTH(d.s)), SUM(u.id) FROM (SELECT k, s FROM t) d JOIN u ON u.k = d.k",
            "SELECT COUNT(*), SUM(LENGTH(d.pad)), SUM(t.id) FROM t LEFT JOIN (SELECT k, pad FROM u) d ON t.k = d.k",
            "SELECT d.s FROM (SELECT s, id FROM t ORDER BY s DESC LIMIT 9000) d WHERE d.id % 2 = 1 LIMIT 5 OFFSET 2000",
        ],
        true,
    );
}

#[test]
fn candidates_come_in_pieces() {
    same_with_little_memory(
        &[
            // Each outer row has a tenth of the table by the index on g, or thousands of rows by a
            // range of the primary key.
            "SELECT COUNT(*), SUM(u.id), MAX(u.pad) FROM t JOIN u ON u.g = t.id WHERE t.id < 300",
            "SELECT t.id, COUNT(*), SUM(u.id), SUM(LENGTH(u.pad)) FROM t JOIN u ON u.id BETWEEN t.id AND t.id + 3900 WHERE t.id < 20 \
         GROUP BY t.id ORDER BY t.id",
            "SELECT t.id, u.id FROM t LEFT JOIN u ON u.id > t.id + 3990 WHERE t.id < 20 ORDER BY t.id, u.id",
            "SELECT t.id, u.id, x.id FROM t LEFT JOIN (u JOIN t x ON x.id > u.id + 5995) ON u.id > t.id + 3990 WHERE t.id < 20 ORDER BY t.id, u.id, x.id",
            // What is cut off is not kept.
            "SELECT GROUP_CONCAT(s ORDER BY s DESC SEPARATOR '') FROM t",
        ],
        false,
    );
}

#[test]
fn rounds_of_recursions_in_files() {
    same_with_little_memory(
        &[
            "WITH RECURSIVE r AS (SELECT id, s FROM t UNION ALL SELECT id + 10000, s FROM r WHERE id <= 10000) SELECT COUNT(*), SUM(id), MAX(s) FROM r",
            "WITH RECURSIVE r AS (SELECT id, s FROM t UNION ALL SELECT id + 10000, s FROM r WHERE id <= 10000 UNION ALL SELECT id + 20000, s FROM r WHERE id <= 11000) SELECT COUNT(*), SUM(id), MAX(s) FROM r",
        ],
        true,
    );
    let db = tables();
    let ids = "WITH RECURSIVE r AS (SELECT id FROM t UNION SELECT id + 1 FROM r WHERE id < 10010) SELECT COUNT(*) FROM r";
    assert_eq!(db.rows(ids), ["10010"]);
    // Whether a row is new is to be known at once.
    db.env.memory.set(1);
    assert!(db.error(ids).starts_with("ERROR 1235"));
}

#[test]
fn sets_of_subqueries_in_files() {
    same_with_little_memory(
        &[
            "SELECT id, (k, g) IN (SELECT k, id FROM t) FROM u WHERE id < 300",
            "SELECT id, (k, id) NOT IN (SELECT k, g FROM u) FROM t WHERE id < 300",
            "SELECT id, (g, k) IN (SELECT g, k FROM u WHERE id > 9) FROM u WHERE id < 300",
            "SELECT COUNT(*) FROM u WHERE EXISTS (SELECT 1 FROM t WHERE t.k = u.id)",
        ],
        true,
    );
}

#[test]
fn windows_through_files() {
    same_with_little_memory(
        &[
            "SELECT id, ROW_NUMBER() OVER (ORDER BY s), LAG(s, 3) OVER (ORDER BY id), SUM(k) OVER (ORDER BY id) FROM t ORDER BY id",
            // One partition of all rows, which is read from several places at a time.
            "SELECT id, MAX(s) OVER (ORDER BY id ROWS BETWEEN 700 PRECEDING AND 300 FOLLOWING), LEAD(s, 5000) OVER (ORDER BY id) FROM t ORDER BY id",
            "SELECT id, MIN(s) OVER (ORDER BY id ROWS BETWEEN 20 PRECEDING AND 20 FOLLOWING), STD(k) OVER (ORDER BY id ROWS 90 PRECEDING) FROM t ORDER BY id",
            "SELECT id, MIN(k) OVER (ORDER BY id ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING), LAST_VALUE(s) OVER () FROM t ORDER BY id",
            "SELECT id, AVG(k) OVER (ORDER BY id RANGE BETWEEN 100 PRECEDING AND 100 FOLLOWING), CUME_DIST() OVER (ORDER BY k) FROM t ORDER BY id",
            "SELECT g, id, RANK() OVER (PARTITION BY g ORDER BY pad), NTILE(7) OVER (PARTITION BY g ORDER BY id), COUNT(*) OVER () FROM u ORDER BY g, id",
            "SELECT k, SUM(COUNT(*)) OVER (ORDER BY k), FIRST_VALUE(MIN(s)) OVER (ORDER BY k DESC) FROM t GROUP BY k ORDER BY k",
            "SELECT DISTINCT pad, COUNT(*) OVER (PARTITION BY pad) FROM u ORDER BY pad",
        ],
        true,
    );
}
