//! Reads of one table.

use super::Db;

fn items() -> Db {
    let db = Db::new();
    db.create(
        "items",
        &[
            "id int auto",
            "group_id int",
            "deleted tinyint",
            "owner int null",
            "title varchar",
        ],
        &["primary id", "key group_id,deleted", "key owner"],
    );
    for chunk in 0..4 {
        let rows: Vec<String> = (chunk * 250 + 1..=chunk * 250 + 250)
            .map(|id| {
                let owner = if id % 10 == 0 {
                    "NULL".into()
                } else {
                    (id % 7).to_string()
                };
                format!(
                    "({id},{},{},{owner},'t{id}')",
                    id % 50,
                    i32::from(id % 5 == 0)
                )
            })
            .collect();
        db.exec(&format!("INSERT INTO items VALUES {}", rows.join(",")));
    }
    db
}

#[test]
fn without_a_table() {
    let db = Db::new();
    assert_eq!(
        db.rows("SELECT 1, 'a', NULL, 1+1, 1.5*2, 7/2, 7 DIV 2, -3 % 2"),
        ["1|a|-|2|3.0|3.5000|3|-1"]
    );
    assert_eq!(db.rows("SELECT 1 FROM DUAL WHERE 1=0"), [""; 0]);
    assert_eq!(
        db.rows("SELECT 2 > 1, NULL = 1, NULL <=> NULL, 1 IN (1,2), 3 NOT IN (1,2), 'a' LIKE 'A%'"),
        ["1|-|1|1|1|1"]
    );
    assert_eq!(
        db.rows(
            "SELECT CASE 2 WHEN 1 THEN 'one' WHEN 2 THEN 'two' END, IF(0,1,2), COALESCE(NULL, 5)"
        ),
        ["two|2|5"]
    );
    assert_eq!(
        db.rows("SELECT CAST('12abc' AS SIGNED), CAST(1.5 AS DECIMAL(10,3)), CAST(65 AS CHAR)"),
        ["12|1.500|65"]
    );
    assert_eq!(
        db.rows("SELECT 18446744073709551615, -9223372036854775808, 1e3, 0x41, '10' + 5"),
        ["18446744073709551615|-9223372036854775808|1000|A|15"]
    );
}

#[test]
fn points_and_lists() {
    let db = items();
    assert_eq!(db.rows("SELECT title FROM items WHERE id = 7"), ["t7"]);
    assert_eq!(db.rows("SELECT title FROM items WHERE id = 7.5"), [""; 0]);
    assert_eq!(db.rows("SELECT title FROM items WHERE id = '7'"), ["t7"]);
    assert_eq!(
        db.rows("SELECT id FROM items WHERE id IN (5, 3, 99999999999, 3, NULL, 1)"),
        ["1", "3", "5"]
    );
    let list = db.rows("SELECT * FROM items WHERE deleted = 0 AND group_id IN (1, 2, 3, 700)");
    let walk = db.rows("SELECT * FROM items WHERE deleted+0 = 0 AND group_id+0 IN (1, 2, 3, 700)");
    assert_eq!(list.len(), 60);
    let sorted = |mut v: Vec<String>| {
        v.sort();
        v
    };
    assert_eq!(sorted(list), sorted(walk));
    assert_eq!(
        db.rows("SELECT COUNT(*) FROM items WHERE group_id NOT IN (1,2,3)"),
        ["940"]
    );
    assert_eq!(
        db.rows("SELECT id FROM items WHERE (group_id, deleted) IN ((0,1),(3,0)) AND id < 60"),
        ["50", "3", "53"]
    );
    assert_eq!(
        db.rows("SELECT COUNT(*) FROM items WHERE owner IS NULL"),
        ["100"]
    );
    assert_eq!(
        db.rows("SELECT COUNT(*) FROM items WHERE owner <=> NULL"),
        ["100"]
    );
    assert_eq!(
        db.rows("SELECT COUNT(*) FROM items WHERE owner = NULL"),
        ["0"]
    );
}

#[test]
fn ranges() {
    let db = items();
    assert_eq!(
        db.rows("SELECT id FROM items WHERE id BETWEEN 10 AND 13"),
        ["10", "11", "12", "13"]
    );
    assert_eq!(
        db.rows("SELECT id FROM items WHERE id > 998.5"),
        ["999", "1000"]
    );
    assert_eq!(
        db.rows("SELECT id FROM items WHERE id >= 997 LIMIT 2"),
        ["997", "998"]
    );
    assert_eq!(
        db.rows("SELECT id FROM items WHERE id < 3 OR id > 999 OR id = 500"),
        ["1", "2", "500", "1000"]
    );
    assert_eq!(
        db.rows("SELECT COUNT(*) FROM items WHERE owner < 2"),
        ["257"]
    );
    assert_eq!(
        db.rows("SELECT COUNT(*) FROM items WHERE owner > 99999999999"),
        ["0"]
    );
    assert_eq!(
        db.rows("SELECT COUNT(*) FROM items WHERE group_id = 5 AND deleted >= 1"),
        ["20"]
    );
    assert_eq!(
        db.rows("SELECT id FROM items WHERE id > 5 ORDER BY id DESC LIMIT 2 OFFSET 1"),
        ["999", "998"]
    );
}

#[test]
fn order_distinct_limit() {
    let db = items();
    assert_eq!(
        db.rows("SELECT id FROM items ORDER BY title LIMIT 3"),
        ["1", "10", "100"]
    );
    assert_eq!(
        db.rows("SELECT DISTINCT owner FROM items ORDER BY owner DESC"),
        ["6", "5", "4", "3", "2", "1", "0", "-"]
    );
    assert_eq!(
        db.rows("SELECT DISTINCT deleted FROM items ORDER BY 1"),
        ["0", "1"]
    );
    assert_eq!(
        db.rows("SELECT id AS x FROM items ORDER BY -x LIMIT 1"),
        ["1000"]
    );
    assert_eq!(
        db.rows(
            "SELECT id FROM items WHERE group_id = 3 ORDER BY group_id, deleted, id DESC LIMIT 2"
        ),
        ["953", "903"]
    );
    assert_eq!(db.rows("SELECT id FROM items ORDER BY id LIMIT 0"), [""; 0]);
}

#[test]
fn errors_of_names() {
    let db = items();
    assert_eq!(
        db.error("SELECT nope FROM items"),
        "ERROR 1054 (42S22): Unknown column 'nope' in 'field list'"
    );
    assert_eq!(
        db.error("SELECT 1 FROM items WHERE nope = 1"),
        "ERROR 1054 (42S22): Unknown column 'nope' in 'where clause'"
    );
    assert_eq!(
        db.error("SELECT 1 FROM nope"),
        "ERROR 1146 (42S02): Table 'd.nope' doesn't exist"
    );
    assert_eq!(
        db.error("SELECT id FROM items a, items b"),
        "ERROR 1052 (23000): Column 'id' in field list is ambiguous"
    );
    assert_eq!(
        db.error("SELECT 1 FROM items, items"),
        "ERROR 1066 (42000): Not unique table/alias: 'items'"
    );
    assert!(
        db.error("SELECT id, COUNT(*) FROM items")
            .starts_with("ERROR 1140 (42000)")
    );
    assert!(
        db.error("SELECT title FROM items GROUP BY owner")
            .starts_with("ERROR 1055 (42000)")
    );
    assert_eq!(
        db.error("SELECT * FROM items WHERE COUNT(*) > 1"),
        "ERROR 1111 (HY000): Invalid use of group function"
    );
}

#[test]
fn strings_under_a_collation() {
    let db = Db::new();
    db.create("s", &["a varchar", "b int"], &["key a"]);
    db.exec("INSERT INTO s VALUES ('abc',1),('ABC',2),('abd',3),('',4),('äbc',5)");
    assert_eq!(
        db.rows("SELECT b FROM s WHERE a = 'Abc' ORDER BY b"),
        ["1", "2", "5"]
    );
    assert_eq!(
        db.rows("SELECT b FROM s WHERE a LIKE 'ab%' ORDER BY b"),
        ["1", "2", "3", "5"]
    );
    assert_eq!(
        db.rows("SELECT a FROM s WHERE a LIKE 'ab_' AND a > 'abc'"),
        ["abd"]
    );
    assert_eq!(
        db.rows("SELECT b FROM s WHERE a IN ('ABD', '')  ORDER BY b"),
        ["3", "4"]
    );
    assert_eq!(
        db.rows("SELECT b FROM s WHERE a = 'abc' COLLATE utf8mb4_bin"),
        ["1"]
    );
}
