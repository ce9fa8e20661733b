//! The result as one self-contained HTML file, for screens (light and dark) and paper.

use std::fmt::Write;

use super::report::{Entry, Lengths, Report, Times};
use super::table::{duration, grouped, times};

/// The longest text of a statement in characters.
const EXAMPLE: usize = 4_000;

const STYLE: &str = include_str!("page.css");

pub fn render(report: &Report) -> String {
    let mut out = String::with_capacity(64 << 10);
    let _ = write!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>Patterns of a load</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<h1>Patterns of a load</h1>\n"
    );
    summary(report, &mut out);
    list(report, &mut out);
    for entry in &report.patterns {
        section(entry, &mut out);
    }
    out.push_str("</body>\n</html>\n");
    out
}

/// Escapes a text for HTML.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(c),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

fn summary(report: &Report, out: &mut String) {
    let totals = &report.totals;
    let _ = write!(
        out,
        "<p>{} statements in {} patterns",
        grouped(totals.statements),
        grouped(totals.patterns as u64)
    );
    if totals.time_s > 0.0 {
        let _ = write!(out, ", {} together", duration(totals.time_s));
    }
    if let (Some(first), Some(last)) = (&totals.first, &totals.last) {
        let _ = write!(out, "; {} to {}", escaped(first), escaped(last));
    }
    out.push_str(".</p>\n");
    if let Some(rate) = totals.sampled_one_in {
        let _ = writeln!(
            out,
            "<p class=\"note\">The server logged one in {rate}: multiply counts and times by that.</p>"
        );
    }
    if report.partial {
        out.push_str("<p class=\"note\">Partial: not all of it was read.</p>\n");
    }
    for source in &report.sources {
        let skipped = source.skipped;
        let _ = write!(
            out,
            "<p class=\"source\">{} ({}): {} statements",
            escaped(&source.name),
            source.format,
            grouped(source.statements)
        );
        if skipped.any() {
            let _ = write!(
                out,
                "; skipped {} lines and {} entries that could not be read; {} statements lack their end",
                grouped(skipped.lines),
                grouped(skipped.entries),
                grouped(skipped.cut)
            );
        }
        if let Some(error) = &source.error {
            let _ = write!(out, "; {}", escaped(error));
        }
        out.push_str("</p>\n");
    }
}

fn list(report: &Report, out: &mut String) {
    let _ = writeln!(
        out,
        "<table>\n<caption>Ranked by {}</caption>\n<thead><tr><th>#</th><th>share</th><th></th><th>count</th><th>total</th><th>mean</th><th>p95</th><th>p99</th>\
         <th>rows examined</th><th>list p95</th><th>pattern</th></tr></thead>\n<tbody>",
        report.by
    );
    for entry in &report.patterns {
        let time = |of: fn(&Times) -> Option<f64>| {
            entry
                .time_s
                .as_ref()
                .and_then(of)
                .map_or("–".into(), duration)
        };
        let list = entry.in_lists.as_ref().or(entry.insert_rows.as_ref());
        let _ = writeln!(
            out,
            "<tr><td>{}</td><td>{:.1} %</td><td class=\"bar\"><i style=\"width:{:.1}%\"></i></td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>\
             <td>{}</td><td>{}</td><td class=\"sql\"><a href=\"#p{}\">{}</a></td></tr>",
            entry.rank,
            entry.share * 100.0,
            entry.share * 100.0,
            grouped(entry.count),
            time(|t| Some(t.total)),
            time(|t| Some(t.mean)),
            time(|t| t.p95),
            time(|t| t.p99),
            if entry.time_s.is_some() {
                grouped(entry.rows_examined)
            } else {
                "–".into()
            },
            list.map_or("–".into(), |list| grouped(list.p95)),
            entry.id,
            escaped(&super::table::shortened(&entry.pattern, 140)),
        );
    }
    out.push_str("</tbody>\n</table>\n");
    if report.patterns_left_out > 0 {
        let _ = writeln!(
            out,
            "<p>{} patterns more are not listed.</p>",
            grouped(report.patterns_left_out as u64)
        );
    }
}

fn section(entry: &Entry, out: &mut String) {
    let _ = writeln!(
        out,
        "<section id=\"p{}\">\n<h2>{}. <code>{}</code> <small>{:.1} %</small></h2>\n<pre>{}</pre>\n<dl>",
        entry.id,
        entry.rank,
        entry.id,
        entry.share * 100.0,
        escaped(&cut(&entry.pattern))
    );
    let mut line = |name: &str, value: String| {
        let _ = writeln!(out, "<dt>{name}</dt><dd>{value}</dd>");
    };
    line("statements", grouped(entry.count));
    if entry.errors > 0 {
        line("failed", grouped(entry.errors));
    }
    if let Some(t) = &entry.time_s {
        line("time", times(t, entry.lock_s));
        line(
            "rows",
            format!(
                "{} sent, {} examined",
                grouped(entry.rows_sent),
                grouped(entry.rows_examined)
            ),
        );
    }
    if let (Some(first), Some(last)) = (&entry.first, &entry.last) {
        line("seen", format!("{} to {}", escaped(first), escaped(last)));
    }
    for (name, names) in [("databases", &entry.databases), ("users", &entry.users)] {
        if !names.is_empty() {
            line(name, escaped(&names.join(", ")));
        }
    }
    out.push_str("</dl>\n");
    for (name, lengths) in [
        ("Members of its IN lists", &entry.in_lists),
        ("Rows of its INSERTs", &entry.insert_rows),
    ] {
        if let Some(lengths) = lengths {
            histogram(name, lengths, out);
        }
    }
    if let Some(example) = &entry.example {
        let _ = writeln!(
            out,
            "<p>Slowest{}:</p>\n<pre>{}</pre>",
            example
                .time_s
                .map_or(String::new(), |s| format!(" ({})", duration(s))),
            escaped(&cut(&example.text))
        );
    }
    out.push_str("</section>\n");
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(EXAMPLE) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

fn histogram(name: &str, lengths: &Lengths, out: &mut String) {
    let _ = writeln!(
        out,
        "<table class=\"lengths\">\n<caption>{name}: mean {:.1}, p50 {}, p95 {}, max {}</caption>",
        lengths.mean,
        grouped(lengths.p50),
        grouped(lengths.p95),
        grouped(lengths.max)
    );
    let most = lengths
        .histogram
        .iter()
        .map(|bar| bar.count)
        .max()
        .unwrap_or(1)
        .max(1);
    for bar in &lengths.histogram {
        let range = if bar.from == bar.to {
            grouped(bar.from)
        } else {
            format!("{}–{}", grouped(bar.from), grouped(bar.to))
        };
        let _ = writeln!(
            out,
            "<tr><th>{range}</th><td>{}</td><td class=\"bar\"><i style=\"width:{:.1}%\"></i></td></tr>",
            grouped(bar.count),
            bar.count as f64 * 100.0 / most as f64
        );
    }
    out.push_str("</table>\n");
}
