//! The kinds of statements that are counted, and the tables that they use.

/// The number of rows of each table.
pub const ROWS: u64 = 20_000;
/// The rows of sbtest1 beyond [`ROWS`]. With [`ROWS`] alone the leaves of its index on `k` are
/// almost full, and some of the counted updates would split one. With these rows all have been
/// split.
const MORE_ROWS: u64 = 4_000;
/// The number of values of `items.group_id`: about five rows have each.
pub const GROUPS: u64 = 4_000;
/// The default number of runs of a kind.
const RUNS: u32 = 200;

/// A deterministic random generator (SplitMix64).
pub struct Random(pub u64);

impl Random {
    /// A number in `1..=most`.
    pub fn up_to(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % most + 1
    }
}

/// A kind of statement: text with `?` for integers. They are bound if the statement is prepared,
/// otherwise written into the text.
pub struct StatementKind {
    pub name: String,
    /// The statements of one run, in order.
    pub statements: Vec<String>,
    pub prepared: bool,
    pub runs: u32,
    /// Appends the values of all `?` in one run.
    pub values: fn(&mut Random, &mut Vec<u64>),
}

fn none(_: &mut Random, _: &mut Vec<u64>) {}

fn row(random: &mut Random, values: &mut Vec<u64>) {
    values.push(random.up_to(ROWS));
}

fn rows_of<const N: usize>(random: &mut Random, values: &mut Vec<u64>) {
    values.extend((0..N).map(|_| random.up_to(ROWS)));
}

fn group(random: &mut Random, values: &mut Vec<u64>) {
    values.push(random.up_to(GROUPS));
}

fn groups<const N: usize>(random: &mut Random, values: &mut Vec<u64>) {
    values.extend((0..N).map(|_| random.up_to(GROUPS)));
}

fn hundred(random: &mut Random, values: &mut Vec<u64>) {
    let first = random.up_to(ROWS - 100);
    values.extend([first, first + 99]);
}

fn twenty(random: &mut Random, values: &mut Vec<u64>) {
    values.push(random.up_to(ROWS - 20));
}

fn hundred_groups(random: &mut Random, values: &mut Vec<u64>) {
    let first = random.up_to(GROUPS - 100);
    values.extend([first, first + 99]);
}

/// All kinds. Kinds that change rows come after the others. New kinds over unchanged rows are added
/// at the end of all, because a kind's position determines its random numbers.
pub fn kinds() -> Vec<StatementKind> {
    let mut all = Vec::new();
    let mut add = |name: &str, statements: &[&str], runs, values| {
        for (prepared, suffix) in [(false, "text"), (true, "prepared")] {
            // Text clients send statements without values; BEGIN cannot be prepared.
            if prepared && (!statements.iter().any(|s| s.contains('?')) || statements.len() > 1) {
                continue;
            }
            all.push(StatementKind {
                name: format!("{name}_{suffix}"),
                statements: statements.iter().map(|s| s.to_string()).collect(),
                prepared,
                runs,
                values,
            });
        }
    };
    let list = |n: usize| {
        let marks = vec!["?"; n].join(",");
        format!("SELECT * FROM items WHERE deleted=0 AND group_id IN ({marks})")
    };
    add("select_1", &["SELECT 1"], RUNS, none);
    add("point", &["SELECT c FROM sbtest1 WHERE id=?"], RUNS, row);
    add("in_list_20", &[&list(20)], 40, groups::<20>);
    add("in_list_200", &[&list(200)], 10, groups::<200>);
    let sql = "SELECT title, owner FROM items WHERE group_id=? LIMIT 1";
    add("key_limit_1", &[sql], RUNS, group);
    let sql = "SELECT title, owner FROM items WHERE group_id=?";
    add("key_5_rows", &[sql], RUNS, group);
    let sql = "SELECT deleted FROM items WHERE group_id=?";
    add("covering", &[sql], RUNS, group);
    let sql = "SELECT title, owner FROM items WHERE id>=? LIMIT 20";
    add("range_20", &[sql], RUNS, twenty);
    let sql = "SELECT c FROM sbtest1 WHERE id BETWEEN ? AND ?";
    add("range_100", &[sql], 40, hundred);
    let sql = "SELECT SUM(k) FROM sbtest1 WHERE id BETWEEN ? AND ?";
    add("sum_range", &[sql], 40, hundred);
    let sql = "SELECT c FROM sbtest1 WHERE id BETWEEN ? AND ? ORDER BY c";
    add("order_range", &[sql], 40, hundred);
    let sql = "SELECT DISTINCT c FROM sbtest1 WHERE id BETWEEN ? AND ? ORDER BY c";
    add("distinct_range", &[sql], 40, hundred);
    add("begin_commit", &["BEGIN", "COMMIT"], RUNS, none);
    let sql = "SELECT c FROM sbtest1 WHERE id=?";
    add("point_in_transaction", &["BEGIN", sql, "COMMIT"], RUNS, row);
    let sql = "UPDATE sbtest1 SET k=k+1 WHERE id=?";
    add("update_by_key", &[sql], RUNS, row);
    let text = "012345678901-".repeat(9);
    let sql = format!("INSERT INTO inserted (id, k, c, pad) VALUES (0, ?, '{text}', '{text}')");
    add("insert", &[&sql], RUNS, row);
    let rows = vec!["(0, ?, 'twelve bytes', 'of text each')"; 100].join(",");
    let sql = format!("INSERT INTO sbtest1 (id, k, c, pad) VALUES {rows}");
    add("insert_100_rows", &[&sql], 20, rows_of::<100>);
    let sql = "SELECT deleted FROM items WHERE group_id BETWEEN ? AND ?";
    add("covering_500", &[sql], 20, hundred_groups);
    add("min_of_20000", &["SELECT MIN(created) FROM items"], 5, none);
    let sql = format!(
        "SELECT COUNT(*) FROM items WHERE owner IN ({})",
        vec!["?"; 200].join(",")
    );
    add("list_filters_20000", &[&sql], 2, rows_of::<200>);
    all
}

/// The statements that create and fill the tables.
pub fn load() -> Vec<String> {
    let sysbench = |name: &str| {
        format!(
            "CREATE TABLE {name} (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, k INT NOT NULL DEFAULT 0, \
             c CHAR(120) NOT NULL DEFAULT '', pad CHAR(60) NOT NULL DEFAULT '', KEY k_1 (k))"
        )
    };
    let mut all = vec![
        "CREATE DATABASE counted".to_string(),
        "USE counted".to_string(),
        sysbench("sbtest1"),
        sysbench("inserted").replace("pad CHAR(60)", "pad CHAR(120)"),
        "CREATE TABLE items (id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT, group_id INT UNSIGNED NOT NULL, deleted TINYINT NOT NULL, \
         owner INT, title VARCHAR(64), body VARCHAR(120), created DATETIME, PRIMARY KEY (id), KEY group_deleted (group_id, deleted))"
            .to_string(),
    ];
    let mut random = Random(1);
    for first in (1..=ROWS).step_by(500) {
        let (mut a, mut b) = (Vec::new(), Vec::new());
        for id in first..first + 500 {
            let mut digits = || format!("{:011}-", random.up_to(99_999_999_999)).repeat(9);
            let (c, pad) = (digits(), &digits()[..59]);
            a.push(format!("({id},{},'{c}','{pad}')", random.up_to(ROWS)));
            let (group, deleted) = (random.up_to(GROUPS), random.up_to(10) / 10);
            let title = "t".repeat(20 + random.up_to(44) as usize);
            let body = "b".repeat(60 + random.up_to(60) as usize);
            let owner = random.up_to(50_000);
            b.push(format!(
                "({id},{group},{deleted},{owner},'{title}','{body}','2014-05-06 07:08:09')"
            ));
        }
        all.push(format!("INSERT INTO sbtest1 VALUES {}", a.join(",")));
        all.push(format!("INSERT INTO items VALUES {}", b.join(",")));
    }
    for first in (ROWS + 1..=ROWS + MORE_ROWS).step_by(500) {
        let mut rows = Vec::new();
        for id in first..first + 500 {
            let (k, c, pad) = (random.up_to(ROWS), "c".repeat(108), "p".repeat(59));
            rows.push(format!("({id},{k},'{c}','{pad}')"));
        }
        all.push(format!("INSERT INTO sbtest1 VALUES {}", rows.join(",")));
    }
    all.push("ANALYZE TABLE sbtest1, items".to_string());
    all
}
