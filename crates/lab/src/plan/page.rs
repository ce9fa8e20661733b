//! The plan as one HTML page that needs nothing else, for screens (light and dark) and paper.

use std::fmt::Write;

use super::tree::{Node, Report};
use super::{expensive, misjudged};
use crate::digest::table::duration;
use crate::output::escape;

const STYLE: &str = include_str!("page.css");

pub fn render(report: &Report) -> String {
    let mut out = String::with_capacity(16 << 10);
    let _ = write!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>A measured plan</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<h1>A measured plan</h1>\n<p>{}",
        duration(report.total_ms / 1e3)
    );
    if let Some(version) = &report.version {
        let _ = write!(out, " on server {}", escape(version));
    }
    out.push_str("</p>\n");
    if let Some(statement) = &report.statement {
        let _ = writeln!(out, "<pre>{}</pre>", escape(statement));
    }
    times(report, &mut out);
    estimates(report, &mut out);
    operations(report, &mut out);
    out.push_str("</body>\n</html>\n");
    out
}

fn times(report: &Report, out: &mut String) {
    out.push_str("<h2>Where the time went</h2>\n<table>\n<thead><tr><th>time</th><th>share</th><th></th><th>operation</th></tr></thead>\n<tbody>\n");
    for node in expensive(report) {
        let _ = writeln!(
            out,
            "<tr><td>{}</td><td>{:.1} %</td>{}<td class=\"sql\"><a href=\"#o{}\">{}</a></td></tr>",
            duration(node.own_ms / 1e3),
            report.share(node) * 100.0,
            bar(report.share(node)),
            place(report, node),
            escape(&node.operation)
        );
    }
    out.push_str("</tbody>\n</table>\n");
}

fn estimates(report: &Report, out: &mut String) {
    let wrong = misjudged(report);
    out.push_str("<h2>Where estimates went wrong</h2>\n");
    if wrong.is_empty() {
        out.push_str("<p>Nowhere by more than four times.</p>\n");
        return;
    }
    out.push_str("<p class=\"note\">The estimates of the operations inside of these are right.</p>\n<table>\n<thead><tr><th>rows expected</th><th>rows found</th><th>times</th><th>operation</th></tr></thead>\n<tbody>\n");
    for node in wrong {
        let _ = writeln!(
            out,
            "<tr><td>{}</td><td>{}</td><td>{:.0}</td><td class=\"sql\"><a href=\"#o{}\">{}</a></td></tr>",
            number(node.expected_rows),
            number(node.rows),
            node.factor,
            place(report, node),
            escape(&node.operation)
        );
    }
    out.push_str("</tbody>\n</table>\n");
}

fn operations(report: &Report, out: &mut String) {
    out.push_str("<h2>All operations</h2>\n<table>\n<caption>Times are over all executions, rows are of each.</caption>\n<thead><tr><th>own time</th><th></th><th>with those inside</th><th>executions</th><th>rows expected</th><th>found</th><th>operation</th></tr></thead>\n<tbody>\n");
    for (n, node) in report.operations.iter().enumerate() {
        let class = match node {
            _ if node.origin => " class=\"wrong\"",
            _ if node.executions == 0.0 => " class=\"never\"",
            _ => "",
        };
        let _ = writeln!(
            out,
            "<tr id=\"o{n}\"{class}><td>{}</td>{}<td>{}</td><td>{:.0}</td><td>{}</td><td>{}</td><td class=\"sql\" style=\"padding-left: {}em\">{}</td></tr>",
            duration(node.own_ms / 1e3),
            bar(report.share(node)),
            duration(node.total_ms / 1e3),
            node.executions,
            number(node.expected_rows),
            number(node.rows),
            node.depth * 2,
            escape(&node.operation)
        );
    }
    out.push_str("</tbody>\n</table>\n");
}

fn bar(share: f64) -> String {
    format!(
        "<td class=\"bar\"><i style=\"width: {:.1}%\"></i></td>",
        share * 100.0
    )
}

/// The number of an operation on the page.
fn place(report: &Report, node: &Node) -> usize {
    let mut all = report.operations.iter();
    all.position(|other| std::ptr::eq(other, node)).unwrap_or(0)
}

fn number(value: Option<f64>) -> String {
    match value {
        None => "–".into(),
        Some(n) if n == 0.0 || n >= 10.0 => format!("{n:.0}"),
        Some(n) => format!("{n:.2}"),
    }
}
