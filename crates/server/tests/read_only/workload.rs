//! The tables, and the statements that read them: those of WORKLOADS (medium-size IN lists,
//! secondary keys, sysbench's OLTP), and blocks within blocks: subqueries of every kind, derived
//! tables, unions.

/// Rows of each table.
pub const ROWS: u64 = 6000;
const GROUPS: u64 = ROWS / 5;

/// Numbers that are the same in every run (SplitMix64).
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n
    }
}

/// Definitions and rows.
pub fn load() -> Vec<String> {
    let mut all: Vec<String> = [
        "CREATE DATABASE ro",
        "USE ro",
        "CREATE TABLE items (id INT PRIMARY KEY AUTO_INCREMENT, group_id INT NOT NULL, deleted TINYINT NOT NULL, title VARCHAR(60), \
         KEY g (group_id, deleted))",
        "CREATE TABLE people (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(64) NOT NULL, email VARCHAR(64) NOT NULL, \
         password VARCHAR(64), dob DATE, address VARCHAR(128), city VARCHAR(64) NOT NULL, state_id TINYINT UNSIGNED NOT NULL, \
         zip VARCHAR(8), country_id SMALLINT UNSIGNED NOT NULL, KEY email (email), KEY country (country_id, state_id, city))",
        "CREATE TABLE sbtest1 (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, k INT NOT NULL DEFAULT 0, c CHAR(120) NOT NULL DEFAULT '', \
         pad CHAR(60) NOT NULL DEFAULT '', KEY k_1 (k))",
    ]
    .map(String::from)
    .into();
    let mut random = Random(1);
    for first in (1..=ROWS).step_by(500) {
        let (mut items, mut people, mut sbtest) = (Vec::new(), Vec::new(), Vec::new());
        for i in first..first + 500 {
            let deleted = u8::from(random.below(10) == 0);
            items.push(format!("({i},{},{deleted},'title {i}')", i / 5));
            let (year, city, state, country) = (1910 + i % 90, i % 50, i % 50, i % 40);
            people.push(format!(
                "({i},'name{i}','user{i}@example.com','{}','{year}-01-02','street','city{city}',{state},'12345',{country})",
                "x".repeat(20)
            ));
            let c = format!("{:011}-", random.below(100_000_000_000)).repeat(9);
            let k = random.below(ROWS);
            sbtest.push(format!("({i},{k},'{c}','{}')", &c[..59]));
        }
        all.push(format!("INSERT INTO items VALUES {}", items.join(",")));
        all.push(format!("INSERT INTO people VALUES {}", people.join(",")));
        all.push(format!("INSERT INTO sbtest1 VALUES {}", sbtest.join(",")));
    }
    all.push("ANALYZE TABLE items, people, sbtest1".into());
    all
}

/// A value for a `?`.
pub enum Given {
    Number(u64),
    Text(String),
}

/// A statement with `?` for its values.
pub struct Statement {
    pub sql: String,
    pub values: Vec<Given>,
}

/// One of each kind, with values by chance.
pub fn statements(random: &mut Random) -> Vec<Statement> {
    let mut all = Vec::new();
    let person = 1 + random.below(ROWS - 200);
    let mail = |i: u64| Given::Text(format!("user{i}@example.com"));
    let mails = vec!["?"; 30].join(",");
    all.push(Statement {
        sql: format!("SELECT name FROM people WHERE email IN ({mails})"),
        values: (0..30).map(|i| mail(person + 3 * i)).collect(),
    });
    all.push(Statement {
        sql: "SELECT name FROM people WHERE email = ?".into(),
        values: vec![mail(person)],
    });
    let mut add = |sql: &str, values: &[u64]| {
        all.push(Statement {
            sql: sql.into(),
            values: values.iter().map(|v| Given::Number(*v)).collect(),
        });
    };
    // Medium-size IN lists: close to each other, in rising order and not, with doubles, with values
    // that are not there.
    for size in [1, 20, 100, 199, 200, 201, 2100] {
        let marks = vec!["?"; size].join(",");
        let first = random.below(GROUPS);
        let near: Vec<u64> = (0..size as u64).map(|i| first + i + i / 7).collect();
        let far: Vec<u64> = (0..size).map(|_| random.below(2 * GROUPS)).collect();
        for values in [near, far] {
            add(
                &format!("SELECT * FROM items WHERE deleted = 0 AND group_id IN ({marks})"),
                &values,
            );
        }
    }
    let near: Vec<u64> = (0..20).map(|_| random.below(GROUPS)).collect();
    let pairs = vec!["(?,0)"; 20].join(",");
    add(
        &format!("SELECT * FROM items WHERE (group_id, deleted) IN ({pairs})"),
        &near,
    );
    let marks = vec!["?"; 20].join(",");
    add(
        &format!("SELECT id FROM items WHERE group_id IN ({marks}) ORDER BY title DESC LIMIT 7"),
        &near,
    );
    add(
        &format!("SELECT COUNT(*) FROM items WHERE group_id NOT IN ({marks})"),
        &near,
    );
    let [country, state] = [random.below(40), random.below(40)];
    // Reads by secondary keys.
    for what in ["name", "id"] {
        add(
            &format!("SELECT {what} FROM people WHERE id = ?"),
            &[person],
        );
    }
    for (what, key_only) in [("name", "state_id"), ("MIN(dob)", "COUNT(id)")] {
        for what in [what, key_only] {
            add(
                &format!("SELECT {what} FROM people WHERE country_id = ?"),
                &[country],
            );
            add(
                &format!("SELECT {what} FROM people WHERE country_id = ? LIMIT 5"),
                &[country],
            );
            add(
                &format!("SELECT {what} FROM people WHERE id BETWEEN ? AND ? + 100"),
                &[person, person],
            );
        }
    }
    for what in ["name", "city"] {
        let sql = format!(
            "SELECT {what} FROM people WHERE country_id = ? AND state_id BETWEEN ? AND ? + 10"
        );
        add(&sql, &[country, state, state]);
        add(&format!("{sql} LIMIT 50"), &[country, state, state]);
    }
    add("SELECT MIN(dob) FROM people", &[]);
    add(
        "SELECT id FROM people WHERE id BETWEEN ? AND ? + 20 ORDER BY name",
        &[person, person],
    );
    add(
        "SELECT DISTINCT city FROM people WHERE id BETWEEN ? AND ? + 50 ORDER BY city",
        &[person, person],
    );
    add(
        "SELECT state_id, COUNT(*), MAX(email) FROM people GROUP BY state_id HAVING COUNT(*) > ? ORDER BY 2 DESC",
        &[3],
    );
    add(
        "SELECT p.name, i.title FROM people p JOIN items i ON i.group_id = p.id WHERE p.country_id = ?",
        &[country],
    );
    // sysbench's oltp_read_only, oltp_point_select.
    add("SELECT c FROM sbtest1 WHERE id=?", &[person]);
    for sql in [
        "SELECT c FROM sbtest1 WHERE id BETWEEN ? AND ?",
        "SELECT SUM(k) FROM sbtest1 WHERE id BETWEEN ? AND ?",
        "SELECT c FROM sbtest1 WHERE id BETWEEN ? AND ? ORDER BY c",
        "SELECT DISTINCT c FROM sbtest1 WHERE id BETWEEN ? AND ? ORDER BY c",
    ] {
        add(sql, &[person, person + 99]);
    }
    add("SELECT c FROM sbtest1 WHERE k = ?", &[person]);
    nested(&mut add, person, country);
    all
}

/// Statements of more than one block.
fn nested(add: &mut dyn FnMut(&str, &[u64]), person: u64, country: u64) {
    // Subqueries: scalar, IN, EXISTS, quantified; alone and for each row.
    for sql in [
        "SELECT name, (SELECT COUNT(*) FROM items WHERE group_id = 5) n FROM people WHERE id = ?",
        "SELECT name, (SELECT title FROM items WHERE id = people.id) t FROM people WHERE id BETWEEN ? AND 6000 LIMIT 30",
        "SELECT id FROM people p WHERE id < 40 AND state_id < (SELECT MAX(deleted) + 9 FROM items i WHERE i.group_id = p.id AND i.id <> ?)",
        "SELECT id FROM items WHERE group_id IN (SELECT country_id FROM people WHERE id > ?) LIMIT 20",
        "SELECT COUNT(*) FROM items WHERE id < 500 AND group_id NOT IN (SELECT id FROM people WHERE id < ?)",
        "SELECT COUNT(*) FROM items WHERE id < 500 AND title NOT IN (SELECT name FROM people WHERE id < ?)",
        "SELECT COUNT(*) FROM items i WHERE id < 200 AND ? IN (SELECT state_id FROM people p WHERE p.id = i.group_id)",
        "SELECT COUNT(*) FROM items WHERE id < 200 AND (group_id, deleted) IN (SELECT id, 0 FROM people WHERE id < ?)",
        "SELECT id FROM people p WHERE id < 50 AND EXISTS (SELECT * FROM items i WHERE i.group_id = p.id AND i.deleted = ?)",
        "SELECT id FROM people p WHERE id < 50 AND NOT EXISTS (SELECT 1 FROM items i WHERE i.group_id = p.id AND i.id > ?)",
        "SELECT COUNT(*) FROM people WHERE id < 99 AND state_id > ALL (SELECT deleted FROM items WHERE group_id = ?)",
        "SELECT COUNT(*) FROM people WHERE id < 99 AND state_id = ANY (SELECT group_id FROM items WHERE id < ?)",
        "SELECT name FROM people WHERE id = (SELECT MIN(group_id) FROM items WHERE group_id > ? / 10)",
        "SELECT state_id, COUNT(*) n FROM people WHERE id > ? GROUP BY state_id HAVING n > (SELECT MIN(deleted) FROM items) ORDER BY 1",
        "SELECT id FROM people WHERE id < 60 ORDER BY (SELECT MAX(title) FROM items i WHERE i.group_id = people.id), id LIMIT ?",
    ] {
        add(sql, &[person]);
    }
    // Derived tables: streamed, joined, in subqueries, in each other.
    for sql in [
        "SELECT MAX(n), SUM(n) FROM (SELECT COUNT(*) n FROM items WHERE group_id < ? GROUP BY group_id) d",
        "SELECT p.name, d.n FROM people p JOIN (SELECT group_id, COUNT(*) n FROM items WHERE id < 300 GROUP BY group_id) d \
         ON d.group_id = p.id WHERE p.country_id < ?",
        "SELECT p.id, d.title FROM people p LEFT JOIN (SELECT DISTINCT group_id, title FROM items WHERE id < 90) d ON d.group_id = p.id \
         WHERE p.id < 50 AND p.state_id <> ?",
        "SELECT * FROM (SELECT DISTINCT city FROM (SELECT city FROM people WHERE country_id = ?) a) b ORDER BY city DESC LIMIT 3",
        "SELECT id FROM people WHERE id < 90 AND state_id IN (SELECT g FROM (SELECT group_id g FROM items WHERE id < ? LIMIT 7) d)",
    ] {
        add(sql, &[country]);
    }
    // Set operations, alone and within others.
    for sql in [
        "SELECT name FROM people WHERE id = ? UNION SELECT title FROM items WHERE group_id = 7",
        "SELECT name FROM people WHERE id = ? UNION ALL SELECT title FROM items WHERE group_id = 7 ORDER BY 1 DESC LIMIT 3 ",
        "SELECT id FROM people WHERE id = ? UNION ALL SELECT k FROM sbtest1 WHERE id = 9 UNION SELECT 5 UNION SELECT id FROM items WHERE id = 5",
        "(SELECT id FROM people WHERE country_id = ? ORDER BY id LIMIT 2) UNION ALL (SELECT id FROM items ORDER BY title LIMIT 3)",
        "SELECT MAX(id) FROM (SELECT id FROM people WHERE country_id = ? UNION ALL SELECT id FROM items WHERE group_id = 3) u",
        "SELECT id FROM people WHERE id IN (SELECT group_id FROM items WHERE id < ? UNION SELECT 12) AND id < 90",
        "SELECT id FROM people WHERE id = ? UNION VALUES ROW(1), ROW(2)",
    ] {
        add(sql, &[country]);
    }
}

/// Statements that read no table, and the error code of those that fail (0: none). Three kinds are
/// no warm reads: statements that fail before they have a plan; those that fail while they run,
/// because their operators are not kept; and those that name a user variable, because they are
/// planned each time.
pub const BESIDE: &[(&str, u16)] = &[
    ("SELECT 1", 0),
    (
        "SELECT @@version, @@session.sql_mode, @@global.max_connections, @@autocommit",
        0,
    ),
    (
        "SELECT NOW(), CURRENT_USER(), DATABASE(), CONNECTION_ID(), LAST_INSERT_ID(), FOUND_ROWS(), ROW_COUNT()",
        0,
    ),
    (
        "SELECT CONCAT('a', UPPER('b')), RAND() < 2, UUID() <> '', MD5('x'), DATE_FORMAT(NOW(), '%Y')",
        0,
    ),
    ("SET @a = 5", 0),
    ("DO SLEEP(0)", 0),
    ("USE ro", 0),
    ("SET autocommit = 1", 0),
    ("START TRANSACTION READ ONLY", 0),
    ("SELECT c FROM sbtest1 WHERE id = 17", 0),
    ("ROLLBACK", 0),
    ("START TRANSACTION WITH CONSISTENT SNAPSHOT", 0),
    ("SELECT c FROM sbtest1 WHERE id = 18", 0),
    ("COMMIT AND CHAIN", 0),
    ("SELECT c FROM sbtest1 WHERE id = 19", 0),
    ("COMMIT", 0),
    (
        "SELECT c FROM sbtest1 WHERE id = 20; SELECT 2; SELECT name FROM people WHERE id = 3",
        0,
    ),
    (
        "SELECT SQL_CALC_FOUND_ROWS id FROM items WHERE group_id = 9 LIMIT 1",
        0,
    ),
    ("SELECT FOUND_ROWS()", 0),
    ("SELECT '5x' + 1 FROM people WHERE id = 3", 0),
    ("SHOW WARNINGS", 0),
];

/// Reads that touch every page of every index.
pub const EVERYTHING: &[&str] = &[
    "SELECT * FROM items FORCE INDEX (g) WHERE group_id >= 0",
    "SELECT * FROM people FORCE INDEX (country) WHERE country_id >= 0",
    "SELECT * FROM people FORCE INDEX (email) WHERE email >= ''",
    "SELECT * FROM sbtest1 FORCE INDEX (k_1) WHERE k >= 0",
    "SELECT COUNT(*) FROM items WHERE title <> ''",
];
