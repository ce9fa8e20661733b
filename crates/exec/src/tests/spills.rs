//! Sorts and groups that do not fit in memory give the same rows as those that do.

use super::Db;

#[test]
fn sorted_and_grouped_through_files() {
    let db = Db::new();
    db.create("t", &["id int auto", "k int", "s varchar"], &["primary id"]);
    for chunk in 0..20 {
        let rows: Vec<String> = (0..500)
            .map(|i| {
                let n = (chunk * 500 + i) * 7919 % 10_007;
                format!("({},'value {:0>40}')", n % 5003, n)
            })
            .collect();
        db.exec(&format!("INSERT INTO t (k, s) VALUES {}", rows.join(",")));
    }
    let queries = [
        "SELECT s, id FROM t ORDER BY s DESC, id",
        "SELECT k, COUNT(*), MIN(s), GROUP_CONCAT(id ORDER BY id) FROM t GROUP BY k ORDER BY k",
        "SELECT COUNT(*) FROM (SELECT DISTINCT s FROM t) x",
    ];
    for sql in queries {
        db.env.memory.set(64 << 20);
        let whole = db.rows(sql);
        db.env.memory.set(1);
        assert_eq!(db.rows(sql), whole, "{sql}");
    }
}
