//! The parts of a child's row that a foreign key's cascade reads and writes.

#[path = "common/embedded.rs"]
mod embedded;

use embedded::Session;
use nfold_server::embedded::Embedded;

/// Bytes of the long value.
const LONG: usize = 400_000;
/// Bytes of log that a change of a child may take besides its long value.
const SHORT: u64 = 40_000;

fn with_long_child(test: impl FnOnce(&Embedded, &mut Session<'_>)) {
    let dir = tempfile::tempdir().unwrap();
    let server = Embedded::open(dir.path(), &[("innodb_buffer_pool_size", "16777216")]).unwrap();
    let mut s = Session(server.connect().unwrap());
    for sql in [
        "CREATE DATABASE d",
        "USE d",
        "CREATE TABLE p (id INT PRIMARY KEY, u VARCHAR(20) UNIQUE)",
        "CREATE TABLE c (id INT PRIMARY KEY, p INT, u VARCHAR(20), doc LONGTEXT, n INT AS (p + 1), \
         FOREIGN KEY (p) REFERENCES p (id) ON DELETE SET NULL ON UPDATE CASCADE, \
         FOREIGN KEY (u) REFERENCES p (u) ON DELETE SET NULL ON UPDATE CASCADE)",
        "INSERT INTO p VALUES (1, 'one'), (2, 'two')",
        &format!(
            "INSERT INTO c (id, p, u, doc) VALUES (1, 1, 'one', REPEAT('long', {}))",
            LONG / 4
        ),
    ] {
        s.ok(sql);
    }
    test(&server, &mut s);
}

/// The bytes of log that a statement takes.
fn logged(server: &Embedded, s: &mut Session<'_>, sql: &str) -> u64 {
    let before = server.engine().store_status().horizon_lsn;
    s.ok(sql);
    server.engine().store_status().horizon_lsn - before
}

#[test]
fn cascade_leaves_long_columns_on_their_pages() {
    with_long_child(|server, s| {
        for (sql, child) in [
            (
                "UPDATE p SET id = 7, u = 'seven' WHERE id = 1",
                ["7", "seven", "8"],
            ),
            ("UPDATE p SET u = 'eight' WHERE id = 7", ["7", "eight", "8"]),
            ("DELETE FROM p WHERE id = 7", ["NULL", "NULL", "NULL"]),
        ] {
            let bytes = logged(server, s, sql);
            assert!(bytes < SHORT, "{bytes} bytes of log: {sql}");
            assert_eq!(s.ok("SELECT p, u, n FROM c"), child, "{sql}");
        }
        let whole = format!("SELECT doc = REPEAT('long', {}) FROM c", LONG / 4);
        assert_eq!(s.ok(&whole), ["1"]);
        assert_eq!(s.ok("CHECK TABLE c")[3], "OK");
    });
}

#[test]
fn cascade_reads_long_columns_that_expressions_name() {
    with_long_child(|_, s| {
        s.ok("ALTER TABLE c ADD size INT AS (LENGTH(doc) + p), ADD CHECK (doc LIKE 'long%')");
        s.ok("UPDATE p SET id = 7 WHERE id = 1");
        assert_eq!(s.ok("SELECT size FROM c"), [(LONG + 7).to_string()]);
    });
}
