//! No plan is used after the definitions or settings that it was planned for have changed. Sessions
//! repeat statements, as texts and prepared, while tables are redefined and the sessions change
//! their own settings. Each result, with its types and warnings, is compared with that of a new
//! connection with the same settings and one additional setting, so that it must parse and plan the
//! statement itself.

#[path = "common/embedded.rs"]
mod embedded;

use std::fmt::Write;

use embedded::Session;
use nfold_protocol::consts::{column_type, com};
use nfold_server::embedded::Embedded;

const SEEDS: u64 = 10;
const STEPS: usize = 220;
const SESSIONS: usize = 4;

/// Numbers that are the same in every run (SplitMix64).
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n as u64) as usize
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }
}

/// The queries; `?` is a number below ten. A column may be missing: the error is then the result.
const QUERIES: &[&str] = &[
    "SELECT * FROM t WHERE id = ?",
    "SELECT * FROM t WHERE k = ? ORDER BY id",
    "SELECT v, k FROM t WHERE v = 'B' ORDER BY id",
    "SELECT DISTINCT v FROM t ORDER BY v",
    "SELECT v, COUNT(*) FROM t GROUP BY v ORDER BY v, 2",
    "SELECT MIN(v), MAX(k), SUM(k) / 3 FROM t WHERE id > ?",
    "SELECT id FROM t WHERE k IN (1, ?, 3) ORDER BY id LIMIT 3",
    "SELECT at + 0, at FROM t WHERE id = ?",
    "SELECT id FROM t WHERE at > '2020-01-01 03:00:00' ORDER BY id",
    "SELECT c1 FROM t WHERE id = ?",
    "SELECT t.id, u.v FROM t JOIN u ON u.id = t.k WHERE t.id < ? ORDER BY 1, 2",
    "SELECT id FROM t WHERE k IN (SELECT id FROM u WHERE v < 'c') ORDER BY id",
    "SELECT id, (SELECT MAX(v) FROM u WHERE u.k = t.k) x FROM t WHERE id < ? ORDER BY id",
    "SELECT * FROM (SELECT k, COUNT(*) n FROM t GROUP BY k) d ORDER BY k LIMIT 4",
    "SELECT v FROM t UNION SELECT v FROM u ORDER BY 1",
    "SELECT id FROM t WHERE EXISTS (SELECT * FROM u WHERE u.id = t.id AND u.k > ?) ORDER BY id",
    "SELECT 'a' = 'A', 1 || 0, 7 / 3, \"v\", 'x' = 'x ' FROM t LIMIT 1",
    "SELECT CONCAT(v, '-', k), LENGTH(v), UPPER(v) FROM t WHERE id = ?",
    "SELECT k, id FROM t HAVING k > ? ORDER BY id",
    "SELECT id, k - 9 FROM t WHERE id < ? ORDER BY v, id",
    "SELECT k + 1, CAST('1:2' AS TIME), 5 MOD 3, NOT 1 BETWEEN 0 AND 2 FROM t ORDER BY id LIMIT 2",
    "SELECT @@sql_mode, @@time_zone, @@collation_connection, @@div_precision_increment",
    "SELECT COUNT(*) FROM b.t WHERE v LIKE 'b%'",
    "SELECT id FROM t WHERE v > (SELECT MIN(v) FROM u) ORDER BY v DESC, id",
];

/// Changes of definitions; `#` is `t` or `u`. Some fail because the name exists already.
const DEFINITIONS: &[&str] = &[
    "ALTER TABLE # ADD COLUMN c1 INT DEFAULT 7",
    "ALTER TABLE # ADD COLUMN c1 VARCHAR(9) DEFAULT 'Seven' FIRST",
    "ALTER TABLE # DROP COLUMN c1",
    "ALTER TABLE # ALTER COLUMN k SET DEFAULT 5",
    "ALTER TABLE # RENAME COLUMN c1 TO c2",
    "ALTER TABLE # RENAME COLUMN c2 TO c1",
    "ALTER TABLE # DROP COLUMN c2",
    "ALTER TABLE # ADD INDEX k (k)",
    "ALTER TABLE # ADD INDEX v (v)",
    "ALTER TABLE # ADD INDEX kv (k, v)",
    "ALTER TABLE # DROP INDEX k",
    "ALTER TABLE # DROP INDEX v",
    "DROP INDEX kv ON #",
    "ALTER TABLE # MODIFY v VARCHAR(30) COLLATE utf8mb4_bin",
    "ALTER TABLE # MODIFY v VARCHAR(20) COLLATE utf8mb4_0900_ai_ci",
    "ALTER TABLE # MODIFY v CHAR(20) CHARACTER SET latin1",
    "ALTER TABLE # MODIFY k BIGINT",
    "ALTER TABLE # MODIFY k VARCHAR(10)",
    "ALTER TABLE # MODIFY k INT",
    "ALTER TABLE # MODIFY k DECIMAL(8,2)",
    "ALTER TABLE # CONVERT TO CHARACTER SET latin1",
    "ALTER TABLE # CONVERT TO CHARACTER SET utf8mb4",
    "ALTER TABLE # DROP PRIMARY KEY, ADD PRIMARY KEY (id, k)",
    "ALTER TABLE # DROP PRIMARY KEY, ADD PRIMARY KEY (id)",
    "RENAME TABLE t TO x, u TO t, x TO u",
    "TRUNCATE TABLE #",
    "ANALYZE TABLE #",
    "DROP TABLE #",
    "CREATE TABLE # (id INT PRIMARY KEY, v VARCHAR(20), k INT, at TIMESTAMP NULL)",
    "CREATE TABLE # (k INT, v VARBINARY(20), id BIGINT UNSIGNED, at DATETIME, KEY id (id))",
    "CREATE TABLE # (id INT, k INT, v ENUM('A','b','C','d'), at TIMESTAMP NULL, UNIQUE KEY kid (k, id)) CHARACTER SET latin1",
    "CREATE TABLE # LIKE b.t",
    "ALTER DATABASE a COLLATE utf8mb4_bin",
    "ALTER DATABASE a COLLATE utf8mb4_0900_ai_ci",
];

/// Changes of rows that only one session uses. A mode or a definition may make them fail.
const CHANGES: &[&str] = &[
    "INSERT IGNORE INTO # (id, v, k, at) VALUES (1, 'a', 1, '2020-01-01 00:00:00'), (2, 'B', 3, '2020-01-01 06:00:00'), (3, 'b', 3, NULL)",
    "INSERT IGNORE INTO # (id, v, k) VALUES (4, 'C', 2), (5, 'c', 2), (6, 'd', 9), (7, 'A', 0)",
    "UPDATE # SET k = k + 1 WHERE id = 4",
    "DELETE FROM # WHERE id = 5",
];

/// Settings of a session.
const SETTINGS: &[&str] = &[
    "USE a",
    "USE b",
    "SET sql_mode = ''",
    "SET sql_mode = 'ANSI_QUOTES,PIPES_AS_CONCAT'",
    "SET sql_mode = 'ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES'",
    "SET sql_mode = 'HIGH_NOT_PRECEDENCE,NO_UNSIGNED_SUBTRACTION,PAD_CHAR_TO_FULL_LENGTH'",
    "SET time_zone = '+00:00'",
    "SET time_zone = '+05:00'",
    "SET time_zone = '-03:30'",
    "SET NAMES utf8mb4",
    "SET NAMES utf8mb4 COLLATE utf8mb4_bin",
    "SET NAMES latin1",
    "SET collation_connection = utf8mb4_general_ci",
    "SET character_set_connection = latin1",
    "SET character_set_results = NULL",
    "SET character_set_results = latin1",
    "SET div_precision_increment = 4",
    "SET div_precision_increment = 9",
    "SET sql_select_limit = 2",
    "SET sql_select_limit = DEFAULT",
    "SET max_sort_length = 4",
    "SET max_sort_length = DEFAULT",
    "SET autocommit = 1",
];

/// One connection, and its settings in the order in which it made them.
struct Asking<'a> {
    session: Session<'a>,
    set: Vec<&'static str>,
    /// Prepared: the statement, its id, how many settings were made before.
    prepared: Vec<(&'static str, u32, usize)>,
}

impl<'a> Asking<'a> {
    fn new(server: &'a Embedded) -> Self {
        let mut asking = Asking {
            session: Session(server.connect().unwrap()),
            set: Vec::new(),
            prepared: Vec::new(),
        };
        asking.set("USE a");
        asking
    }

    fn set(&mut self, sql: &'static str) {
        self.session.ok(sql);
        self.set.push(sql);
    }

    fn prepare(&mut self, sql: &str) -> Result<u32, Vec<Vec<u8>>> {
        let answer = self.session.command(com::STMT_PREPARE, sql.as_bytes());
        match &*answer[0] {
            [0, a, b, c, d, ..] => Ok(u32::from_le_bytes([*a, *b, *c, *d])),
            _ => Err(answer),
        }
    }

    fn execute(&mut self, id: u32, sql: &str, value: usize) -> Vec<Vec<u8>> {
        let mut body = id.to_le_bytes().to_vec();
        body.extend([0, 1, 0, 0, 0]);
        let marks = sql.matches('?').count();
        if marks > 0 {
            body.extend([0, 1]);
            body.extend((0..marks).flat_map(|_| [column_type::LONGLONG, 0]));
            body.extend((0..marks).flat_map(|_| (value as u64).to_le_bytes()));
        }
        self.session.command(com::STMT_EXECUTE, &body)
    }
}

/// A connection with the same settings that finds no plan: its environment is unlike every other.
fn anew<'a>(server: &'a Embedded, set: &[&str], own: &mut u64) -> Asking<'a> {
    let mut session = Session(server.connect().unwrap());
    *own += 1;
    session.ok(&format!("SET group_concat_max_len = {}", 5000 + *own));
    set.iter().for_each(|sql| drop(session.ok(sql)));
    Asking {
        session,
        set: Vec::new(),
        prepared: Vec::new(),
    }
}

fn told(packets: &[Vec<u8>]) -> String {
    packets.iter().fold(String::new(), |mut all, packet| {
        let _ = writeln!(all, "    {}", packet.escape_ascii());
        all
    })
}

#[test]
fn no_plan_outlives_what_it_was_made_for() {
    let dir = tempfile::tempdir().unwrap();
    let server = Embedded::open(dir.path(), &[("innodb_buffer_pool_size", "33554432")]).unwrap();
    let (mut own, mut rows) = (0, 0);
    for seed in 1..=SEEDS {
        rows += run(&server, seed, &mut own);
    }
    assert!(rows > 1000, "statements had answers: {rows}");
}

/// One seed; gives how many statements succeeded.
fn run(server: &Embedded, seed: u64, own: &mut u64) -> usize {
    let mut random = Random(seed);
    let mut root = Session(server.connect().unwrap());
    for sql in [
        "DROP DATABASE IF EXISTS a",
        "DROP DATABASE IF EXISTS b",
        "CREATE DATABASE a",
        "CREATE DATABASE b",
    ] {
        root.ok(sql);
    }
    for table in ["a.t", "a.u", "b.t", "b.u"] {
        root.ok(&format!(
            "CREATE TABLE {table} (id INT PRIMARY KEY, v VARCHAR(20), k INT, at TIMESTAMP NULL, KEY k (k))"
        ));
        for sql in &CHANGES[..2] {
            root.ok(&sql.replace('#', table));
        }
    }
    let mut all: Vec<Asking<'_>> = (0..SESSIONS).map(|_| Asking::new(server)).collect();
    let (mut log, mut good) = (String::new(), 0);
    // Few statements, so that each is met again and again.
    let queries: Vec<&'static str> = (0..8).map(|_| random.one(QUERIES)).collect();
    for _ in 0..STEPS {
        let n = random.below(SESSIONS);
        let me = &mut all[n];
        match random.below(20) {
            0..=2 => {
                let table = random.one(&["t", "u"]);
                let sql = random.one(DEFINITIONS).replace('#', table);
                let done = me.session.query(&sql);
                let _ = writeln!(log, "{n}: {sql} {:?}", done.err());
            }
            3 => {
                let table = random.one(&["t", "u"]);
                let sql = random.one(CHANGES).replace('#', table);
                let done = me.session.query(&sql);
                let _ = writeln!(log, "{n}: {sql} {:?}", done.err());
            }
            4 | 5 => {
                let sql = random.one(SETTINGS);
                me.set(sql);
                let _ = writeln!(log, "{n}: {sql}");
            }
            what => {
                let (sql, value) = (queries[random.below(queries.len())], random.below(10));
                let prepared = what % 2 == 0;
                let _ = writeln!(log, "{n}: {sql} ({value}, prepared: {prepared})");
                let (warm, fresh) = if prepared {
                    ask_prepared(server, me, sql, value, own)
                } else {
                    let text = sql.replace('?', &value.to_string());
                    let warm = me.session.command(com::QUERY, text.as_bytes());
                    let mut other = anew(server, &me.set, own);
                    (warm, other.session.command(com::QUERY, text.as_bytes()))
                };
                assert!(
                    warm == fresh,
                    "seed {seed}\n{log}\nwith its plan\n{}\nanew\n{}",
                    told(&warm),
                    told(&fresh)
                );
                good += usize::from(warm.last().is_some_and(|p| p[0] != 0xff));
            }
        }
    }
    good
}

/// The statement as the session prepared it once, and as a new connection does, in the environment
/// that it was prepared in.
fn ask_prepared(
    server: &Embedded,
    me: &mut Asking<'_>,
    sql: &'static str,
    value: usize,
    own: &mut u64,
) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let known = me.prepared.iter().find(|(s, ..)| *s == sql).copied();
    let (id, before) = match known {
        Some((_, id, before)) => (id, before),
        None => match me.prepare(sql) {
            Ok(id) => {
                me.prepared.push((sql, id, me.set.len()));
                (id, me.set.len())
            }
            Err(refused) => {
                let mut other = anew(server, &me.set, own);
                return (refused, other.prepare(sql).expect_err("refused anew"));
            }
        },
    };
    let warm = me.execute(id, sql, value);
    let mut other = anew(server, &me.set[..before], own);
    let fresh = match other.prepare(sql) {
        Ok(id) => {
            me.set[before..]
                .iter()
                .for_each(|s| drop(other.session.ok(s)));
            other.execute(id, sql, value)
        }
        // Definitions have changed since: the statement itself is an error now.
        Err(refused) => refused,
    };
    (warm, fresh)
}
