//! The result as a text table.

use std::fmt::Write;

use super::report::{Entry, Lengths, Report, Times};

/// The longest statement in the list, in characters.
const WIDTH: usize = 100;
/// The longest example, in characters.
const EXAMPLE: usize = 1_000;

pub fn render(report: &Report, details: usize) -> String {
    let mut out = String::new();
    head(report, &mut out);
    if report.patterns.is_empty() {
        return out;
    }
    list(report, &mut out);
    for entry in report.patterns.iter().take(details) {
        detail(entry, &mut out);
    }
    out
}

/// Formats `1234567` as `1,234,567`.
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Formats seconds in a suitable unit.
pub fn duration(seconds: f64) -> String {
    match seconds {
        s if s >= 100.0 => format!("{s:.0} s"),
        s if s >= 1.0 => format!("{s:.2} s"),
        s if s >= 0.001 => format!("{:.2} ms", s * 1e3),
        s => format!("{:.0} µs", s * 1e6),
    }
}

fn known(seconds: Option<f64>) -> String {
    seconds.map_or("unknown".into(), duration)
}

/// Formats the durations of a pattern's statements, and of their lock waits.
pub fn times(t: &Times, lock_s: f64) -> String {
    format!(
        "total {}, mean {}, min {}, p50 {}, p95 {}, p99 {}, max {}; locks {}",
        duration(t.total),
        duration(t.mean),
        duration(t.min),
        known(t.p50),
        known(t.p95),
        known(t.p99),
        duration(t.max),
        duration(lock_s)
    )
}

/// Shortens a text to one line of at most `width` characters.
pub fn shortened(text: &str, width: usize) -> String {
    let mut out: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(width)
        .collect();
    if text.chars().nth(width).is_some() {
        out.push('…');
    }
    out
}

fn head(report: &Report, out: &mut String) {
    let totals = &report.totals;
    let _ = write!(
        out,
        "{} statements in {} patterns",
        grouped(totals.statements),
        grouped(totals.patterns as u64)
    );
    if totals.time_s > 0.0 {
        let _ = write!(out, ", {} together", duration(totals.time_s));
    }
    if let (Some(first), Some(last)) = (&totals.first, &totals.last) {
        let _ = write!(out, ", {first} to {last}");
    }
    out.push('\n');
    if let Some(rate) = totals.sampled_one_in {
        let _ = writeln!(
            out,
            "the server logged one in {rate}: multiply counts and times by that"
        );
    }
    for source in &report.sources {
        if let Some(error) = &source.error {
            let _ = writeln!(out, "{}: {error}", source.name);
        }
        let skipped = source.skipped;
        if skipped.any() {
            let _ = writeln!(
                out,
                "{}: skipped {} lines and {} entries that could not be read; {} statements lack their end",
                source.name,
                grouped(skipped.lines),
                grouped(skipped.entries),
                grouped(skipped.cut)
            );
        }
    }
    if report.partial {
        out.push_str("PARTIAL: not all of it was read\n");
    }
}

fn list(report: &Report, out: &mut String) {
    let _ = writeln!(
        out,
        "\n{:>4}  {:16}  {:>6}  {:>11}  {:>9}  {:>9}  {:>9}  {:>9}  {:>10}  {:>9}  pattern",
        "rank", "id", "share", "count", "total", "mean", "p95", "p99", "rows exam.", "list p95"
    );
    for entry in &report.patterns {
        let time = |of: fn(&Times) -> Option<f64>| {
            entry
                .time_s
                .as_ref()
                .and_then(of)
                .map_or("-".into(), duration)
        };
        let examined = entry
            .rows_examined
            .checked_div(entry.count)
            .map_or("-".into(), grouped);
        let list = entry.in_lists.as_ref().or(entry.insert_rows.as_ref());
        let _ = writeln!(
            out,
            "{:>4}  {:16}  {:>4.1} %  {:>11}  {:>9}  {:>9}  {:>9}  {:>9}  {:>10}  {:>9}  {}",
            entry.rank,
            entry.id,
            entry.share * 100.0,
            grouped(entry.count),
            time(|t| Some(t.total)),
            time(|t| Some(t.mean)),
            time(|t| t.p95),
            time(|t| t.p99),
            if entry.time_s.is_some() {
                examined
            } else {
                "-".into()
            },
            list.map_or("-".into(), |list| grouped(list.p95)),
            shortened(&entry.pattern, WIDTH)
        );
    }
    if report.patterns_left_out > 0 {
        let _ = writeln!(
            out,
            "      and {} patterns more (--limit)",
            grouped(report.patterns_left_out as u64)
        );
    }
}

fn detail(entry: &Entry, out: &mut String) {
    let _ = writeln!(
        out,
        "\n#{}  {}  {:.1} %",
        entry.rank,
        entry.id,
        entry.share * 100.0
    );
    let mut line = |name: &str, value: String| {
        let _ = writeln!(out, "  {name:14} {value}");
    };
    line("pattern", shortened(&entry.pattern, EXAMPLE));
    let errors = if entry.errors > 0 {
        format!(", {} failed", grouped(entry.errors))
    } else {
        String::new()
    };
    line("count", format!("{}{errors}", grouped(entry.count)));
    if let Some(t) = &entry.time_s {
        line("time", times(t, entry.lock_s));
        line(
            "rows",
            format!(
                "{} sent, {} examined, at most {} by one",
                grouped(entry.rows_sent),
                grouped(entry.rows_examined),
                grouped(entry.rows_examined_max)
            ),
        );
    }
    if let (Some(first), Some(last)) = (&entry.first, &entry.last) {
        line("seen", format!("{first} to {last}"));
    }
    for (name, names) in [("databases", &entry.databases), ("users", &entry.users)] {
        if !names.is_empty() {
            line(name, names.join(", "));
        }
    }
    if let Some(lists) = &entry.in_lists {
        line("IN lists", lengths(lists));
    }
    if let Some(rows) = &entry.insert_rows {
        line("rows inserted", lengths(rows));
    }
    if let Some(example) = &entry.example {
        let time = example
            .time_s
            .map_or(String::new(), |s| format!(" ({})", duration(s)));
        line(
            "example",
            format!("{}{time}", shortened(&example.text, EXAMPLE)),
        );
    }
}

fn lengths(lengths: &Lengths) -> String {
    let bars: Vec<String> = lengths
        .histogram
        .iter()
        .map(|bar| {
            let share = bar.count as f64 * 100.0 / lengths.lists as f64;
            if bar.from == bar.to {
                format!("{}: {share:.0} %", bar.from)
            } else {
                format!("{}-{}: {share:.0} %", bar.from, bar.to)
            }
        })
        .collect();
    format!(
        "{} of mean {:.1}, min {}, p50 {}, p95 {}, max {}   [{}]",
        grouped(lengths.lists),
        lengths.mean,
        grouped(lengths.min),
        grouped(lengths.p50),
        grouped(lengths.p95),
        grouped(lengths.max),
        bars.join(", ")
    )
}
