//! Reads the statement statistics of a live server from
//! `performance_schema.events_statements_summary_by_digest`. They cover the time since the server's
//! start, or since the table was truncated.

use rustc_hash::FxHashMap;

use super::patterns::{Pattern, Summary, fnv};
use crate::LabError;
use crate::client::{Connection, ResultSet};
use crate::dsn::Dsn;
use crate::log::time;

/// The error numbers of missing privileges: access denied to a database or a table, or another
/// privilege.
const DENIED: [u16; 4] = [1044, 1142, 1143, 1227];

/// The filter for the rows.
#[derive(Debug, Default)]
pub struct RowFilter<'a> {
    /// Only patterns of this database.
    pub db: Option<&'a str>,
    /// Only patterns seen at or after `since` and before `until`, in microseconds since 1970.
    pub since: Option<i64>,
    pub until: Option<i64>,
}

impl RowFilter<'_> {
    fn has(&self, pattern: &Pattern) -> bool {
        let db = self.db.is_none_or(|db| pattern.dbs.iter().any(|d| d == db));
        let late = |since| pattern.last_us.is_some_and(|last| last >= since);
        let early = |until| pattern.first_us.is_some_and(|first| first < until);
        db && self.since.is_none_or(late) && self.until.is_none_or(early)
    }
}

/// The patterns that satisfy `wanted`. An error is one line that says what to do.
pub fn read(dsn: &Dsn, wanted: &RowFilter<'_>) -> Result<Vec<Pattern>, LabError> {
    let mut connection = Connection::open(dsn)?;
    connection.query("SET time_zone = '+00:00'")?;
    let denied = |e: LabError| match e {
        LabError::Server { code, message } if DENIED.contains(&code) => LabError::usage(format!(
            "{dsn}: this user may not read the statistics ({code}: {message}); GRANT SELECT ON performance_schema.* lets it"
        )),
        other => other,
    };
    let result = connection
        .query("SELECT * FROM performance_schema.events_statements_summary_by_digest")
        .map_err(denied)?;
    if result.rows.is_empty() {
        let off = connection.value("SELECT @@performance_schema")?.as_deref() == Some("0");
        let why = if off {
            "performance_schema is off (performance_schema=ON in its option file and a restart turn it on), or shows this user nothing (GRANT SELECT ON performance_schema.*)"
        } else {
            "it has counted none (is the consumer statements_digest on in performance_schema.setup_consumers?), or shows this user none (GRANT SELECT ON performance_schema.*)"
        };
        return Err(LabError::usage(format!(
            "{dsn} has no statistics of statements: {why}"
        )));
    }
    patterns(&result, wanted)
}

fn patterns(result: &ResultSet, wanted: &RowFilter<'_>) -> Result<Vec<Pattern>, LabError> {
    let rows = Rows { result };
    let mut found: Vec<Pattern> = Vec::new();
    let mut by_text: FxHashMap<String, usize> = FxHashMap::default();
    if rows.column("COUNT_STAR").is_none() || rows.column("SUM_TIMER_WAIT").is_none() {
        return Err(LabError::malformed(
            "events_statements_summary_by_digest has not the columns that it should have",
        ));
    }
    for row in 0..result.rows.len() {
        let schema = rows.text(row, "SCHEMA_NAME");
        let one = pattern(&rows, row, schema);
        if !wanted.has(&one) {
            continue;
        }
        match by_text.get(&one.text) {
            Some(&at) => merge(&mut found[at], one),
            None => {
                by_text.insert(one.text.clone(), found.len());
                found.push(one);
            }
        }
    }
    Ok(found)
}

struct Rows<'a> {
    result: &'a ResultSet,
}

impl Rows<'_> {
    fn column(&self, name: &str) -> Option<usize> {
        self.result
            .columns
            .iter()
            .position(|column| column.eq_ignore_ascii_case(name))
    }

    /// A value as text. `None` for NULL, and for a column that this server does not have.
    fn text(&self, row: usize, name: &str) -> Option<String> {
        self.result.text(row, self.column(name)?)
    }

    fn number(&self, row: usize, name: &str) -> u64 {
        self.text(row, name)
            .and_then(|text| text.parse().ok())
            .unwrap_or(0)
    }

    /// A number of picoseconds, converted to microseconds.
    fn us(&self, row: usize, name: &str) -> u64 {
        self.number(row, name) / 1_000_000
    }

    /// A TIMESTAMP in the session's time zone, which is UTC. `0000-00-00` means none.
    fn time(&self, row: usize, name: &str) -> Option<i64> {
        let text = self.text(row, name)?;
        time::read(text.as_bytes()).map(|(stamp, _)| stamp.in_utc(&jiff::tz::TimeZone::UTC))
    }
}

fn pattern(rows: &Rows<'_>, row: usize, schema: Option<String>) -> Pattern {
    // The row without a digest contains all statements for which the table had no room.
    let text = rows
        .text(row, "DIGEST_TEXT")
        .map(|text| text.trim_end().to_owned())
        .unwrap_or_else(|| "(statements beyond performance_schema_digests_size)".into());
    let quantile = |name| rows.column(name).map(|_| rows.us(row, name));
    Pattern {
        id: format!("{:016x}", fnv(text.as_bytes())),
        text,
        count: rows.number(row, "COUNT_STAR"),
        errors: rows.number(row, "SUM_ERRORS"),
        summary: Some(Summary {
            total_us: rows.us(row, "SUM_TIMER_WAIT"),
            min_us: rows.us(row, "MIN_TIMER_WAIT"),
            max_us: rows.us(row, "MAX_TIMER_WAIT"),
            p95_us: quantile("QUANTILE_95"),
            p99_us: quantile("QUANTILE_99"),
        }),
        lock_us: rows.us(row, "SUM_LOCK_TIME"),
        rows_sent: rows.number(row, "SUM_ROWS_SENT"),
        rows_examined: rows.number(row, "SUM_ROWS_EXAMINED"),
        first_us: rows.time(row, "FIRST_SEEN"),
        last_us: rows.time(row, "LAST_SEEN"),
        example: rows
            .text(row, "QUERY_SAMPLE_TEXT")
            .unwrap_or_default()
            .into_bytes(),
        example_duration_us: rows
            .column("QUERY_SAMPLE_TIMER_WAIT")
            .map(|_| rows.us(row, "QUERY_SAMPLE_TIMER_WAIT")),
        example_time_us: rows.time(row, "QUERY_SAMPLE_SEEN"),
        dbs: schema.into_iter().collect(),
        ..Pattern::default()
    }
}

/// Adds the same pattern of another database. The quantiles of both together are unknown.
fn merge(one: &mut Pattern, other: Pattern) {
    one.count += other.count;
    one.errors += other.errors;
    if let (Some(a), Some(b)) = (&mut one.summary, &other.summary) {
        a.total_us += b.total_us;
        a.min_us = a.min_us.min(b.min_us);
        a.max_us = a.max_us.max(b.max_us);
        (a.p95_us, a.p99_us) = (None, None);
    }
    one.lock_us += other.lock_us;
    one.rows_sent += other.rows_sent;
    one.rows_examined += other.rows_examined;
    one.first_us = one.first_us.into_iter().chain(other.first_us).min();
    one.last_us = one.last_us.into_iter().chain(other.last_us).max();
    if other.example_duration_us > one.example_duration_us {
        one.example = other.example;
        one.example_duration_us = other.example_duration_us;
        one.example_time_us = other.example_time_us;
    }
    one.dbs.extend(other.dbs);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(columns: &[&str], rows: &[&[Option<&str>]]) -> ResultSet {
        ResultSet {
            columns: columns.iter().map(|c| c.to_string()).collect(),
            rows: rows
                .iter()
                .map(|row| {
                    row.iter()
                        .map(|v| v.map(|v| v.as_bytes().to_vec()))
                        .collect()
                })
                .collect(),
            affected_rows: 0,
        }
    }

    const COLUMNS: [&str; 9] = [
        "SCHEMA_NAME",
        "DIGEST",
        "DIGEST_TEXT",
        "COUNT_STAR",
        "SUM_TIMER_WAIT",
        "MIN_TIMER_WAIT",
        "MAX_TIMER_WAIT",
        "FIRST_SEEN",
        "QUANTILE_95",
    ];

    #[test]
    fn patterns_of_several_databases_are_merged() {
        let row = |db, n, min, max, seen| {
            vec![
                Some(db),
                Some("d"),
                Some("SELECT ?"),
                Some(n),
                Some("3000000"),
                Some(min),
                Some(max),
                Some(seen),
                Some("2000000"),
            ]
        };
        let (a, b) = (
            row("a", "2", "1000000", "2000000", "2024-03-01 12:00:01.5"),
            row("b", "5", "500000", "9000000", "2024-03-01 12:00:00.000000"),
        );
        let other = vec![
            None,
            None,
            None,
            Some("7"),
            Some("1000000"),
            Some("0"),
            Some("0"),
            Some("0000-00-00 00:00:00"),
            Some("0"),
        ];
        let rows = result(&COLUMNS, &[&a, &b, &other]);
        let found = patterns(&rows, &RowFilter::default()).expect("its columns are there");
        assert_eq!(found.len(), 2);
        let summary = found[0].summary.clone().expect("is a summary");
        assert_eq!(
            (
                found[0].count,
                summary.total_us,
                summary.min_us,
                summary.max_us,
                summary.p95_us
            ),
            (7, 6, 0, 9, None)
        );
        assert_eq!(
            found[0].first_us.map(time::show).as_deref(),
            Some("2024-03-01T12:00:00.000000Z")
        );
        assert_eq!(found[0].dbs, ["a", "b"]);
        assert_eq!((found[1].count, found[1].first_us), (7, None));
        let one = patterns(
            &rows,
            &RowFilter {
                db: Some("b"),
                ..RowFilter::default()
            },
        )
        .expect("its columns are there");
        assert_eq!(
            (
                one.len(),
                one[0].count,
                one[0].summary.as_ref().and_then(|s| s.p95_us)
            ),
            (1, 5, Some(2))
        );
    }

    #[test]
    fn time_range_selects_patterns_by_when_they_were_seen() {
        let row = |text, first, last| [Some(text), Some("1"), Some("0"), Some(first), Some(last)];
        let (old, new) = (
            row("old", "2024-03-01 12:00:00", "2024-03-01 12:10:00"),
            row("new", "2024-03-01 12:20:00", "2024-03-01 12:30:00"),
        );
        let never = [Some("never"), Some("1"), Some("0"), None, None];
        let columns = [
            "DIGEST_TEXT",
            "COUNT_STAR",
            "SUM_TIMER_WAIT",
            "FIRST_SEEN",
            "LAST_SEEN",
        ];
        let rows = result(&columns, &[&old, &new, &never]);
        let at = |minute: u32| {
            let text = format!("2024-03-01 12:{minute:02}:00");
            let (stamp, _) = time::read(text.as_bytes()).expect("a time");
            stamp.in_utc(&jiff::tz::TimeZone::UTC)
        };
        for (since, until, expected) in [
            (None, None, "old new never"),
            (Some(10), None, "old new"),
            (Some(11), None, "new"),
            (None, Some(20), "old"),
            (Some(5), Some(21), "old new"),
            (Some(31), None, ""),
        ] {
            let wanted = RowFilter {
                db: None,
                since: since.map(at),
                until: until.map(at),
            };
            let found = patterns(&rows, &wanted).expect("its columns are there");
            let names: Vec<String> = found.into_iter().map(|p| p.text).collect();
            assert_eq!(names.join(" "), expected, "{wanted:?}");
        }
    }

    #[test]
    fn columns_that_a_server_lacks_are_absent() {
        let rows = result(
            &COLUMNS[..5],
            &[&[None, None, Some("SELECT ?"), Some("1"), Some("x")]],
        );
        let found =
            patterns(&rows, &RowFilter::default()).expect("the columns that count are there");
        assert_eq!(
            found[0].summary.as_ref().map(|s| (s.total_us, s.p95_us)),
            Some((0, None))
        );
        assert!(patterns(&result(&["a"], &[]), &RowFilter::default()).is_err());
    }
}
