//! The result of `digest`: the schema of its JSON (docs/lab.md), from which the table and the page
//! are rendered.

use serde::Serialize;

use super::buckets::Buckets;
use super::patterns::Pattern;
use crate::log::Skipped;
use crate::log::time;

/// The name and version of the schema.
pub const SCHEMA: &str = "nfold-lab-digest/1";

/// The whole result. Durations are in seconds; points in time are RFC 3339 in UTC.
#[derive(Debug, Serialize)]
pub struct Report {
    pub schema: &'static str,
    pub sources: Vec<Source>,
    /// Whether the result is incomplete because of Ctrl-C or a failed read.
    pub partial: bool,
    /// The criterion that the patterns are ranked by.
    pub by: &'static str,
    pub totals: Totals,
    pub skipped: Skipped,
    pub patterns: Vec<Entry>,
    /// The number of patterns beyond the limit. The totals include them.
    pub patterns_left_out: usize,
}

#[derive(Debug, Serialize)]
pub struct Source {
    pub name: String,
    /// slow, general or performance_schema.
    pub format: &'static str,
    pub statements: u64,
    pub skipped: Skipped,
    /// Why it was not read to its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

#[derive(Debug, Default, Serialize)]
pub struct Totals {
    pub statements: u64,
    pub patterns: usize,
    pub time_s: f64,
    pub rows_sent: u64,
    pub rows_examined: u64,
    pub errors: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<String>,
    /// The sampling rate: the server logged one in this number of statements. The figures are those
    /// of the logged ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampled_one_in: Option<u64>,
}

/// One pattern.
#[derive(Debug, Serialize)]
pub struct Entry {
    pub rank: usize,
    pub id: String,
    pub pattern: String,
    pub count: u64,
    pub errors: u64,
    /// The share of the total of the ranking criterion, 0 to 1.
    pub share: f64,
    /// Absent if the source has no durations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_s: Option<Times>,
    pub lock_s: f64,
    pub rows_sent: u64,
    pub rows_examined: u64,
    pub rows_examined_max: u64,
    pub bytes_sent: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<String>,
    /// The numbers of members of its IN lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_lists: Option<Lengths>,
    /// The numbers of rows of its INSERTs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub insert_rows: Option<Lengths>,
    pub databases: Vec<String>,
    pub users: Vec<String>,
    /// Absent with --no-examples.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub example: Option<Example>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

#[derive(Debug, Serialize)]
pub struct Times {
    pub total: f64,
    pub mean: f64,
    pub min: f64,
    /// Accurate to 1 %. Absent if the source does not provide it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p50: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p95: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p99: Option<f64>,
    pub max: f64,
}

#[derive(Debug, Serialize)]
pub struct Lengths {
    pub lists: u64,
    pub mean: f64,
    pub min: u64,
    pub p50: u64,
    pub p95: u64,
    pub max: u64,
    pub histogram: Vec<Bar>,
}

#[derive(Debug, Serialize)]
pub struct Bar {
    pub from: u64,
    pub to: u64,
    pub count: u64,
}

/// The slowest statement of a pattern.
#[derive(Debug, Serialize)]
pub struct Example {
    pub text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
}

fn seconds(us: u64) -> f64 {
    us as f64 / 1e6
}

impl Lengths {
    pub fn of(lengths: &Buckets) -> Option<Lengths> {
        (lengths.count() > 0).then(|| Lengths {
            lists: lengths.count(),
            mean: lengths.mean(),
            min: lengths.min(),
            p50: lengths.quantile(0.5),
            p95: lengths.quantile(0.95),
            max: lengths.max(),
            histogram: lengths
                .by_powers()
                .into_iter()
                .map(|(from, to, count)| Bar { from, to, count })
                .collect(),
        })
    }
}

impl Times {
    fn of(pattern: &Pattern) -> Option<Times> {
        if let Some(summary) = &pattern.summary {
            return Some(Times {
                total: seconds(summary.total_us),
                mean: seconds(summary.total_us) / pattern.count.max(1) as f64,
                min: seconds(summary.min_us),
                p50: None,
                p95: summary.p95_us.map(seconds),
                p99: summary.p99_us.map(seconds),
                max: seconds(summary.max_us),
            });
        }
        let time = &pattern.time;
        (time.count() > 0).then(|| Times {
            total: seconds(time.sum()),
            mean: time.mean() / 1e6,
            min: seconds(time.min()),
            p50: Some(seconds(time.quantile(0.5))),
            p95: Some(seconds(time.quantile(0.95))),
            p99: Some(seconds(time.quantile(0.99))),
            max: seconds(time.max()),
        })
    }
}

/// The criterion that ranks the patterns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum By {
    /// Total time
    Time,
    /// Number of statements
    Count,
    /// Rows examined
    Rows,
}

impl By {
    pub fn name(self) -> &'static str {
        match self {
            By::Time => "time",
            By::Count => "count",
            By::Rows => "rows",
        }
    }

    fn of(self, pattern: &Pattern) -> u64 {
        match self {
            By::Time => pattern.total_us(),
            By::Count => pattern.count,
            By::Rows => pattern.rows_examined,
        }
    }
}

impl Totals {
    pub fn of(patterns: &[Pattern], sampled_one_in: Option<u64>) -> Totals {
        let mut totals = Totals {
            patterns: patterns.len(),
            sampled_one_in,
            ..Totals::default()
        };
        let (mut first, mut last, mut time_us) = (None::<i64>, None::<i64>, 0u64);
        for pattern in patterns {
            totals.statements += pattern.count;
            time_us = time_us.saturating_add(pattern.total_us());
            totals.rows_sent = totals.rows_sent.saturating_add(pattern.rows_sent);
            totals.rows_examined = totals.rows_examined.saturating_add(pattern.rows_examined);
            totals.errors += pattern.errors;
            first = first.into_iter().chain(pattern.first_us).min();
            last = last.into_iter().chain(pattern.last_us).max();
        }
        totals.time_s = seconds(time_us);
        (totals.first, totals.last) = (first.map(time::show), last.map(time::show));
        totals
    }
}

/// The first `limit` patterns by rank.
pub fn rank(patterns: &[Pattern], by: By, limit: usize, examples: bool) -> Vec<Entry> {
    let mut order: Vec<&Pattern> = patterns.iter().collect();
    // Ties are broken by count and then by id, so that the result is deterministic.
    order.sort_by(|a, b| {
        (by.of(b), b.count)
            .cmp(&(by.of(a), a.count))
            .then_with(|| a.id.cmp(&b.id))
    });
    let total = patterns
        .iter()
        .fold(0u64, |sum, p| sum.saturating_add(by.of(p)));
    let entry = |(at, pattern): (usize, &Pattern)| Entry {
        rank: at + 1,
        id: pattern.id.clone(),
        pattern: pattern.text.clone(),
        count: pattern.count,
        errors: pattern.errors,
        share: if total == 0 {
            0.0
        } else {
            by.of(pattern) as f64 / total as f64
        },
        time_s: Times::of(pattern),
        lock_s: seconds(pattern.lock_us),
        rows_sent: pattern.rows_sent,
        rows_examined: pattern.rows_examined,
        rows_examined_max: pattern.rows_examined_max,
        bytes_sent: pattern.bytes_sent,
        first: pattern.first_us.map(time::show),
        last: pattern.last_us.map(time::show),
        in_lists: Lengths::of(&pattern.lists),
        insert_rows: Lengths::of(&pattern.rows),
        databases: pattern.dbs.clone(),
        users: pattern.users.clone(),
        example: (examples && !pattern.example.is_empty()).then(|| Example {
            text: String::from_utf8_lossy(&pattern.example).into_owned(),
            time_s: pattern.example_duration_us.map(seconds),
            at: pattern.example_time_us.map(time::show),
        }),
        cut: pattern.cut > 0,
    };
    order
        .into_iter()
        .take(limit)
        .enumerate()
        .map(entry)
        .collect()
}
