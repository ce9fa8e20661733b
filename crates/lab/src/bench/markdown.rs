//! The table of README and docs/performance.md: server CPU time by workload, the first server
//! compared with the others.

use super::result::{Report, Summary, median};

/// The report's summary as Markdown: its conditions, then a line for each workload, number of cores
/// and number of clients.
pub fn table(report: &Report) -> String {
    let mut out = measured_with(report);
    let bound = report.summary.iter().any(|s| s.cores.is_some());
    let cells = head(report, bound);
    out.push_str(&line(&cells));
    out.push_str(&format!("|{}\n", " --- |".repeat(cells.len())));
    let mut done: Vec<(&str, usize, Option<usize>)> = Vec::new();
    for s in &report.summary {
        let key = (s.workload.as_str(), s.clients, s.cores);
        if !done.contains(&key) {
            done.push(key);
            out.push_str(&line(&row(report, key, bound)));
        }
    }
    if report.partial {
        out.push_str("\nPartial: the run did not come to its end.\n");
    }
    out
}

fn measured_with(report: &Report) -> String {
    let servers: Vec<String> = report
        .servers
        .iter()
        .filter(|s| !s.floor)
        .map(|s| format!("{} {}", shown(&s.name), s.version))
        .collect();
    let windows = match report.count {
        Some(count) => format!("windows of {count} statements a client"),
        None => format!(
            "windows of {} s after {} s",
            report.window_s, report.warmup_s
        ),
    };
    let rows = match report.rows {
        0 => String::new(),
        rows => format!("{} rows, ", grouped(rows as f64, 0)),
    };
    format!(
        "{}; {}; {}; nfold lab {}\n\n{rows}{windows}, medians of {}; CPU is the server process's per statement, p99 of single statements. Made with:\n\n    {}\n\n",
        report.started,
        report.machine,
        servers.join(", "),
        report.lab_version,
        report.repeat,
        report.command.join(" ")
    )
}

/// The column names.
fn head(report: &Report, bound: bool) -> Vec<String> {
    let names: Vec<String> = report.servers.iter().map(|s| shown(&s.name)).collect();
    let sql: Vec<String> = report
        .servers
        .iter()
        .filter(|s| !s.floor)
        .map(|s| shown(&s.name))
        .collect();
    let mut cells = vec!["workload".to_owned(), "clients".to_owned()];
    if bound {
        cells.push("cores".into());
    }
    cells.extend(names.iter().map(|n| format!("{n} us")));
    cells.extend(names.iter().skip(1).map(|n| format!("{} / {n}", names[0])));
    cells.push(format!("queries/s: {}", sql.join(", ")));
    cells.push(format!("p99 ms: {}", sql.join(", ")));
    cells.push("others' cores".into());
    cells
}

fn row(report: &Report, key: (&str, usize, Option<usize>), bound: bool) -> Vec<String> {
    let (workload, clients, cores) = key;
    let of = |name: &str| -> Option<&Summary> {
        report
            .summary
            .iter()
            .find(|s| s.server == name && (s.workload.as_str(), s.clients, s.cores) == key)
    };
    let cpu = |name: &str| of(name).and_then(|s| s.server_us);
    let names: Vec<&str> = report.servers.iter().map(|s| s.name.as_str()).collect();
    let sql: Vec<&str> = report
        .servers
        .iter()
        .filter(|s| !s.floor)
        .map(|s| s.name.as_str())
        .collect();
    let each = |get: &dyn Fn(&Summary) -> String| -> String {
        let cells: Vec<String> = sql.iter().map(|n| of(n).map_or("-".into(), get)).collect();
        cells.join(", ")
    };
    let mut cells = vec![workload.to_owned(), clients.to_string()];
    if bound {
        cells.push(cores.map_or("-".into(), |c| c.to_string()));
    }
    cells.extend(
        names
            .iter()
            .map(|n| cpu(n).map_or("-".into(), |us| grouped(us, 1))),
    );
    cells.extend(names.iter().skip(1).map(|n| match (cpu(names[0]), cpu(n)) {
        (Some(a), Some(b)) if b > 0.0 => format!("{:.2}", a / b),
        _ => "-".into(),
    }));
    cells.push(each(&|s| grouped(s.statements_per_s, 0)));
    cells.push(each(&|s| grouped(s.p99_us / 1000.0, 2)));
    let mut others: Vec<f64> = report
        .samples
        .iter()
        .filter(|s| (s.workload.as_str(), s.clients, s.cores) == key)
        .filter_map(|s| Some(s.other_cores? + s.stolen_cores))
        .collect();
    let quiet = !report.summary.iter().any(|s| {
        (s.workload.as_str(), s.clients, s.cores) == key
            && s.marks.iter().any(|m| m == super::measure::NOT_QUIET)
    });
    cells.push(match (others.is_empty(), quiet) {
        (true, _) => "-".into(),
        (_, true) => format!("{:.2}", median(&mut others)),
        _ => format!("{:.2} **not quiet**", median(&mut others)),
    });
    cells
}

fn line(cells: &[String]) -> String {
    format!("| {} |\n", cells.join(" | "))
}

/// The proper spelling of a server's name.
fn shown(name: &str) -> String {
    match name {
        "nfold" => "Nfold",
        "mariadb" => "MariaDB",
        "mysql" => "MySQL",
        other => other,
    }
    .replace('|', "\\|")
}

/// Formats a number as `12,345.6`.
fn grouped(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$}");
    let whole = text.find('.').unwrap_or(text.len());
    let mut out = String::with_capacity(text.len() + 4);
    for (i, c) in text.char_indices() {
        if i > 0 && i < whole && (whole - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::result::{Sample, ServerInfo};

    fn sample(server: &str, cpu: Option<f64>) -> Sample {
        Sample {
            server: server.into(),
            workload: "pk_point_ps".into(),
            clients: 64,
            round: 1,
            statements_per_s: 58_821.4,
            p99_us: 2_230.0,
            server_us: cpu,
            other_cores: cpu.map(|_| 0.03),
            ..Sample::default()
        }
    }

    #[test]
    fn line_contains_figures_and_ratios() {
        let server = |name: &str, floor| ServerInfo {
            name: name.into(),
            version: "1".into(),
            floor,
            ..ServerInfo::default()
        };
        let mut report = Report {
            servers: vec![
                server("nfold", false),
                server("mariadb", false),
                server("floor", true),
            ],
            samples: vec![
                sample("nfold", Some(16.1)),
                sample("mariadb", Some(3_225.25)),
                sample("floor", Some(10.0)),
            ],
            rows: 1_000_000,
            repeat: 3,
            ..Report::default()
        };
        report.summarise();
        let text = table(&report);
        let lines: Vec<&str> = text.lines().filter(|l| l.starts_with('|')).collect();
        assert_eq!(
            lines,
            [
                "| workload | clients | Nfold us | MariaDB us | floor us | Nfold / MariaDB | Nfold / floor | queries/s: Nfold, MariaDB \
                 | p99 ms: Nfold, MariaDB | others' cores |",
                "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
                "| pk_point_ps | 64 | 16.1 | 3,225.2 | 10.0 | 0.00 | 1.61 | 58,821, 58,821 | 2.23, 2.23 | 0.03 |",
            ]
        );
        assert!(
            text.contains("1,000,000 rows") && text.contains("Nfold 1, MariaDB 1;"),
            "{text}"
        );
        // A server on another machine has no CPU time. One that did not run the workload has no
        // figures at all.
        report.samples = vec![sample("nfold", None)];
        report.partial = true;
        report.summarise();
        let text = table(&report);
        assert!(
            text.contains("| pk_point_ps | 64 | - | - | - | - | - | 58,821, - | 2.23, - | - |"),
            "{text}"
        );
        assert!(text.contains("Partial"), "{text}");
    }

    #[test]
    fn numbers_are_grouped_by_thousands() {
        assert_eq!(grouped(1_234_567.89, 1), "1,234,567.9");
        assert_eq!(grouped(999.0, 0), "999");
        assert_eq!(grouped(100_000.0, 0), "100,000");
    }
}
