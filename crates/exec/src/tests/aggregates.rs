//! Aggregates and groups.

use super::Db;

fn db() -> Db {
    let db = Db::new();
    db.create(
        "g",
        &[
            "id int",
            "a int null",
            "d decimal null",
            "f double null",
            "s varchar null",
        ],
        &["primary id", "key a"],
    );
    db.exec(
        "INSERT INTO g VALUES (1,1,1.50,0.5,'x'),(2,1,2.25,1.5,'y'),(3,2,NULL,NULL,'x'),(4,2,10.00,2.5,NULL),(5,NULL,4.00,3.5,'X')",
    );
    db
}

#[test]
fn aggregates_of_every_type() {
    let db = db();
    assert_eq!(
        db.rows("SELECT COUNT(*), COUNT(a), COUNT(DISTINCT s), SUM(a), AVG(a) FROM g"),
        ["5|4|2|6|1.5000"]
    );
    assert_eq!(
        db.rows("SELECT SUM(d), AVG(d), MIN(d), MAX(d) FROM g"),
        ["17.75|4.437500|1.50|10.00"]
    );
    assert_eq!(
        db.rows("SELECT SUM(f), MIN(s), MAX(s), BIT_OR(a), BIT_AND(a) FROM g"),
        ["8|x|y|3|0"]
    );
    assert_eq!(
        db.rows("SELECT COUNT(*), SUM(a), MAX(a) FROM g WHERE id > 100"),
        ["0|-|-"]
    );
    assert_eq!(
        db.rows("SELECT STDDEV_POP(f), VAR_SAMP(f) FROM g WHERE id < 3"),
        ["0.5|0.5"]
    );
    assert_eq!(db.rows("SELECT MAX(id), MIN(id) FROM g"), ["5|1"]);
    assert_eq!(db.rows("SELECT MIN(a) FROM g"), ["1"]);
    assert_eq!(db.rows("SELECT MAX(a) FROM g"), ["2"]);
    assert_eq!(
        db.rows("SELECT SUM(id)+1, COUNT(*)*2 FROM g WHERE id BETWEEN 2 AND 3"),
        ["6|4"]
    );
}

#[test]
fn by_groups() {
    let db = db();
    assert_eq!(
        db.rows("SELECT a, COUNT(*), SUM(d) FROM g GROUP BY a ORDER BY a"),
        ["-|1|4.00", "1|2|3.75", "2|2|10.00"]
    );
    assert_eq!(
        db.rows("SELECT s, COUNT(*) c FROM g GROUP BY s HAVING c > 1"),
        ["x|3"]
    );
    assert_eq!(
        db.rows("SELECT a+1 AS b, MAX(id) FROM g GROUP BY b ORDER BY MAX(id) DESC LIMIT 2"),
        ["-|5", "3|4"]
    );
    assert_eq!(
        db.rows("SELECT GROUP_CONCAT(s ORDER BY id DESC SEPARATOR '-'), GROUP_CONCAT(id) FROM g"),
        ["X-x-y-x|1,2,3,4,5"]
    );
    assert_eq!(
        db.rows("SELECT g.id, s FROM g GROUP BY g.id ORDER BY id LIMIT 1"),
        ["1|x"]
    );
    assert_eq!(
        db.rows("SELECT a FROM g GROUP BY a HAVING COUNT(*) = 2 ORDER BY a DESC"),
        ["2", "1"]
    );
    assert_eq!(
        db.rows("SELECT DISTINCT COUNT(*) FROM g GROUP BY a ORDER BY 1"),
        ["1", "2"]
    );
}
