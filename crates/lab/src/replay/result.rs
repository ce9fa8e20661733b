//! The result of `replay`: the schema of its JSON (docs/lab.md), and its rendering as text.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::Serialize;

use crate::client::drive::Outcome;
use crate::digest::table::{duration, grouped};

/// The name and version of the schema.
pub const SCHEMA: &str = "nfold-lab-replay/1";

#[derive(Debug, Serialize)]
pub struct Report {
    pub schema: &'static str,
    pub file: String,
    pub statements_in_file: u64,
    /// The number of lines that are not statements.
    pub lines_skipped: u64,
    /// The statements skipped because they write.
    pub writes_left_out: u64,
    pub partial: bool,
    pub runs: Vec<Run>,
    /// The comparison of the first two servers. Absent with a single server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comparison: Option<Comparison>,
}

/// The results of one server.
#[derive(Debug, Serialize)]
pub struct Run {
    pub server: String,
    pub version: String,
    pub connections: usize,
    pub protocol: &'static str,
    pub seconds: f64,
    pub statements: u64,
    pub statements_per_second: f64,
    pub rows: u64,
    pub bytes: u64,
    pub latency_us: Latency,
    pub errors: BTreeMap<u16, Failure>,
    /// When connections were lost, in seconds from the beginning.
    pub lost_at_s: Vec<f64>,
    pub connections_that_did_not_come_back: usize,
    /// The checksum of all answers, which does not depend on the order of execution. Absent unless
    /// requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checksum: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pace: Option<Pace>,
    /// The number of changes of the current database, which count as statements.
    pub use_statements: u64,
    /// The number of templates, and of statements that were sent as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prepared: Option<Prepared>,
    /// Whether a client thread was busy for more than 90 % of the time. Then the server could do
    /// more.
    pub client_is_the_limit: bool,
}

#[derive(Debug, Serialize)]
pub struct Latency {
    pub mean: f64,
    pub p50: f64,
    pub p95: f64,
    pub p99: f64,
    pub p999: f64,
    pub max: f64,
    pub histogram: Vec<Bar>,
}

/// The statements that took at most this long, and longer than the limit of the previous bar.
#[derive(Debug, Serialize)]
pub struct Bar {
    pub to_us: f64,
    pub count: u64,
}

#[derive(Debug, Serialize)]
pub struct Failure {
    pub count: u64,
    pub message: String,
}

#[derive(Debug, Serialize)]
pub struct Pace {
    pub speed: f64,
    pub lag_mean_s: f64,
    pub lag_max_s: f64,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub struct Prepared {
    pub templates: usize,
    pub sent_as_text: u64,
}

#[derive(Debug, Serialize)]
pub struct Comparison {
    pub same: u64,
    pub different: u64,
    /// Statements that at least one of the two servers did not answer.
    pub not_compared: u64,
    pub first_differences: Vec<Difference>,
}

#[derive(Debug, Serialize)]
pub struct Difference {
    pub line: u64,
    pub text: String,
    pub answers: [String; 2],
}

impl Latency {
    fn of(outcome: &Outcome) -> Latency {
        let us = |q| outcome.latency_us(q);
        Latency {
            mean: outcome.latency.mean() / 1e3,
            p50: us(0.5),
            p95: us(0.95),
            p99: us(0.99),
            p999: us(0.999),
            max: outcome.latency.max() as f64 / 1e3,
            histogram: outcome
                .latency
                .iter_log(1_000, 1.25)
                .filter(|bar| bar.count_since_last_iteration() > 0)
                .map(|bar| Bar {
                    to_us: bar.value_iterated_to() as f64 / 1e3,
                    count: bar.count_since_last_iteration(),
                })
                .collect(),
        }
    }
}

impl Run {
    pub fn of(server: String, version: String, protocol: &'static str, outcome: &Outcome) -> Run {
        let busiest = outcome.client_cpu.iter().copied().fold(0.0, f64::max);
        Run {
            server,
            version,
            connections: outcome.connections,
            protocol,
            seconds: outcome.seconds,
            statements: outcome.statements,
            statements_per_second: outcome.per_second_mean(),
            rows: outcome.rows,
            bytes: outcome.bytes,
            latency_us: Latency::of(outcome),
            errors: outcome
                .errors
                .iter()
                .map(|(code, e)| {
                    (
                        *code,
                        Failure {
                            count: e.count,
                            message: e.message.clone(),
                        },
                    )
                })
                .collect(),
            lost_at_s: outcome.lost_at.clone(),
            connections_that_did_not_come_back: outcome.dead,
            checksum: None,
            pace: None,
            use_statements: 0,
            prepared: None,
            client_is_the_limit: outcome.seconds > 0.5 && busiest > 0.9 * outcome.seconds,
        }
    }
}

/// Renders the whole result as text.
pub fn render(report: &Report) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "{}: {} statements",
        report.file,
        grouped(report.statements_in_file)
    );
    if report.lines_skipped > 0 {
        let _ = writeln!(
            out,
            "skipped {} lines that are no statements",
            grouped(report.lines_skipped)
        );
    }
    if report.writes_left_out > 0 {
        let _ = writeln!(
            out,
            "left out {} statements that write",
            grouped(report.writes_left_out)
        );
    }
    for run in &report.runs {
        one(run, &mut out);
    }
    if let Some(comparison) = &report.comparison {
        compared(comparison, &mut out);
    }
    if report.partial {
        out.push_str("PARTIAL: it was interrupted\n");
    }
    out
}

fn one(run: &Run, out: &mut String) {
    let _ = writeln!(out, "\n{} ({})", run.server, run.version);
    let mut line = |name: &str, value: String| {
        let _ = writeln!(out, "  {name:11} {value}");
    };
    line(
        "throughput",
        format!(
            "{} statements in {} over {} connections, {}: {}/s, {} rows, {} MiB",
            grouped(run.statements),
            duration(run.seconds),
            run.connections,
            run.protocol,
            grouped(run.statements_per_second as u64),
            grouped(run.rows),
            grouped(run.bytes >> 20)
        ),
    );
    let us = |us: f64| duration(us / 1e6);
    let l = &run.latency_us;
    line(
        "latency",
        format!(
            "mean {}, p50 {}, p95 {}, p99 {}, p99.9 {}, max {}",
            us(l.mean),
            us(l.p50),
            us(l.p95),
            us(l.p99),
            us(l.p999),
            us(l.max)
        ),
    );
    for (code, failure) in &run.errors {
        line(
            "error",
            format!(
                "{code}: {} times ({})",
                grouped(failure.count),
                failure.message
            ),
        );
    }
    if !run.lost_at_s.is_empty() {
        let at: Vec<String> = run
            .lost_at_s
            .iter()
            .take(8)
            .map(|s| format!("{s:.1} s"))
            .collect();
        let more = if run.lost_at_s.len() > 8 { ", …" } else { "" };
        line(
            "lost",
            format!(
                "{} connections broke, at {}{more}; {} did not come back",
                run.lost_at_s.len(),
                at.join(", "),
                run.connections_that_did_not_come_back
            ),
        );
    }
    if let Some(pace) = &run.pace {
        line(
            "pace",
            format!(
                "{} times the recorded one; behind it by {} on average, {} at most",
                pace.speed,
                duration(pace.lag_mean_s),
                duration(pace.lag_max_s)
            ),
        );
    }
    if let Some(prepared) = run.prepared {
        line(
            "prepared",
            format!(
                "{} templates; {} statements cannot be prepared and go as text",
                prepared.templates, prepared.sent_as_text
            ),
        );
    }
    if run.use_statements > 0 {
        line(
            "databases",
            format!("{} of the statements are USE", grouped(run.use_statements)),
        );
    }
    if let Some(checksum) = &run.checksum {
        line("checksum", checksum.clone());
    }
    if run.client_is_the_limit {
        line(
            "note",
            "the client was busy all the time: the server could do more".into(),
        );
    }
}

fn compared(comparison: &Comparison, out: &mut String) {
    let Comparison {
        same,
        different,
        not_compared,
        ..
    } = comparison;
    let _ = writeln!(
        out,
        "\n{}: {} statements have the same answer on both, {} have not, {} were not answered by both",
        if *different == 0 { "SAME" } else { "DIFFERENT" },
        grouped(*same),
        grouped(*different),
        grouped(*not_compared)
    );
    for difference in &comparison.first_differences {
        let _ = writeln!(
            out,
            "  line {}: {} | {}: {}",
            difference.line, difference.answers[0], difference.answers[1], difference.text
        );
    }
}
