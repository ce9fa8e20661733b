//! Statistics by digest: the counted values, and the text under which they are counted.

#[path = "common/embedded.rs"]
mod embedded;

use embedded::Session;
use nfold_protocol::consts::{column_type, com};
use nfold_server::embedded::Embedded;

const TABLE: &str = "performance_schema.events_statements_summary_by_digest";
const HISTOGRAM: &str = "performance_schema.events_statements_histogram_by_digest";

fn with_session(options: &[(&str, &str)], test: impl FnOnce(&Embedded, &mut Session<'_>)) {
    let dir = tempfile::tempdir().unwrap();
    let mut all = vec![("innodb_buffer_pool_size", "16777216")];
    all.extend(options);
    let server = Embedded::open(dir.path(), &all).unwrap();
    let mut s = Session(server.connect().unwrap());
    s.ok("CREATE DATABASE d");
    s.ok("USE d");
    s.ok("CREATE TABLE t (id INT PRIMARY KEY, v INT, KEY (v))");
    s.ok("INSERT INTO t VALUES (1,10),(2,20),(3,30),(4,40)");
    s.ok(&format!("TRUNCATE TABLE {TABLE}"));
    test(&server, &mut s);
}

/// Columns of the digest with this text, joined by blanks; nothing where there is none.
fn digest(s: &mut Session<'_>, text: &str, columns: &str) -> String {
    let text = text.replace('\'', "''");
    s.ok(&format!(
        "SELECT {columns} FROM {TABLE} WHERE digest_text = '{text}' AND schema_name = 'd'"
    ))
    .join(" ")
}

const POINT: &str = "SELECT `v` FROM `t` WHERE `id` = ?";

#[test]
fn a_warm_statement_is_counted_with_its_rows() {
    with_session(&[], |server, s| {
        for id in 1..=6 {
            s.ok(&format!("SELECT v FROM t WHERE id = {id}"));
        }
        let columns = "count_star, sum_rows_sent, sum_rows_examined, sum_errors, sum_warnings, sum_no_index_used, query_sample_text";
        let sample = "SELECT v FROM t WHERE id = 1";
        assert_eq!(digest(s, POINT, columns), format!("6 4 4 0 0 0 {sample}"));
        // Another session, and a prepared statement, belong to the same digest.
        let mut other = Session(server.connect().unwrap());
        other.ok("USE d");
        other.ok("SELECT  v  from t where id=9");
        let answer = other.command(com::STMT_PREPARE, b"SELECT v FROM t WHERE id = ?");
        let mut body = answer[0][1..5].to_vec();
        body.extend([0, 1, 0, 0, 0, 0, 1, column_type::LONGLONG, 0]);
        body.extend(2i64.to_le_bytes());
        other.command(com::STMT_EXECUTE, &body);
        assert_eq!(digest(s, POINT, "count_star, sum_rows_sent"), "8 5");
        let sane = "sum_timer_wait >= count_star * min_timer_wait, max_timer_wait >= avg_timer_wait, min_timer_wait > 0, \
                    quantile_95 <= quantile_999, quantile_999 <= max_timer_wait, first_seen <= last_seen, \
                    last_seen > NOW() - INTERVAL 1 HOUR";
        assert_eq!(digest(s, POINT, sane), "1 1 1 1 1 1 1");
        // The same text under another database is another digest.
        s.ok("CREATE DATABASE e");
        other.ok("USE e");
        other.ok("SELECT v FROM d.t WHERE id = 1");
        other.ok("SELECT 1");
        assert_eq!(
            s.ok(&format!(
                "SELECT schema_name FROM {TABLE} WHERE digest_text = 'SELECT ?'"
            )),
            ["e"]
        );
    });
}

#[test]
fn scans_ranges_changes_and_errors() {
    with_session(&[], |_, s| {
        s.ok("CREATE TABLE keyless (id INT PRIMARY KEY, v INT)");
        s.ok("SELECT COUNT(*) FROM keyless WHERE v + 1 > 5");
        s.ok("SELECT COUNT(*) FROM t WHERE v + 1 > 5");
        s.ok("SELECT id FROM t WHERE v BETWEEN 15 AND 35");
        s.ok("SELECT a.id FROM t a JOIN t b ON a.id > b.v + 1");
        s.ok("UPDATE t SET v = v + 1 WHERE id IN (1, 2, 3)");
        assert_eq!(s.query("INSERT INTO t VALUES (1, 1)"), Err(1062));
        assert_eq!(s.query("SELECT nothing FROM t"), Err(1054));
        s.ok("SELECT 'x' + 1");
        s.ok("BEGIN");
        s.ok("COMMIT");
        let columns = "count_star, sum_no_index_used, sum_select_scan, sum_select_range, sum_select_full_join, sum_rows_affected, sum_errors, sum_warnings";
        for (text, expected) in [
            (
                "SELECT COUNT ( * ) FROM `keyless` WHERE `v` + ? > ?",
                "1 1 1 0 0 0 0 0",
            ),
            // The index on v has all columns that are needed.
            (
                "SELECT COUNT ( * ) FROM `t` WHERE `v` + ? > ?",
                "1 0 1 0 0 0 0 0",
            ),
            (
                "SELECT `id` FROM `t` WHERE `v` BETWEEN ? AND ?",
                "1 0 0 1 0 0 0 0",
            ),
            (
                "UPDATE `t` SET `v` = `v` + ? WHERE `id` IN (...)",
                "1 0 0 0 0 3 0 0",
            ),
            ("INSERT INTO `t` VALUES (...)", "1 0 0 0 0 0 1 1"),
            ("SELECT `nothing` FROM `t`", "1 0 0 0 0 0 1 1"),
            ("SELECT ? + ?", "1 0 0 0 0 0 0 1"),
            ("BEGIN", "1 0 0 0 0 0 0 0"),
            ("COMMIT", "1 0 0 0 0 0 0 0"),
        ] {
            assert_eq!(digest(s, text, columns), expected, "{text}");
        }
    });
}

#[test]
fn a_reset_forgets_everything_and_counting_goes_on() {
    with_session(&[], |_, s| {
        let sql = "SELECT v FROM t WHERE id = 3";
        for _ in 0..5 {
            s.ok(sql);
        }
        s.ok(&format!("TRUNCATE TABLE {TABLE}"));
        assert_eq!(digest(s, POINT, "count_star"), "");
        s.ok(sql);
        s.ok(sql);
        assert_eq!(digest(s, POINT, "count_star, sum_rows_sent"), "2 2");
    });
}

#[test]
fn the_histogram_holds_every_run() {
    with_session(&[], |_, s| {
        for _ in 0..20 {
            s.ok("SELECT v FROM t WHERE id = 3");
        }
        let hash = digest(s, POINT, "digest");
        assert_eq!(hash.len(), 64);
        let of = format!("FROM {HISTOGRAM} WHERE digest = '{hash}'");
        let sums = format!(
            "SELECT COUNT(*), SUM(count_bucket), MAX(count_bucket_and_lower), MAX(bucket_quantile), MIN(bucket_timer_low) {of}"
        );
        assert_eq!(s.ok(&sums), ["128", "20", "20", "1.000000", "0"]);
    });
}

#[test]
fn the_number_of_digests_is_bounded() {
    with_session(&[("performance_schema_digests_size", "5")], |_, s| {
        for n in 0..20 {
            s.ok(&format!("SELECT id AS c{n} FROM t WHERE id = 1"));
        }
        let sql = format!("SELECT COUNT(*), SUM(digest IS NULL) FROM {TABLE}");
        assert_eq!(s.ok(&sql), ["6", "1"]);
        let rest = format!("SELECT count_star > 10 FROM {TABLE} WHERE digest IS NULL");
        assert_eq!(s.ok(&rest), ["1"]);
    });
}
