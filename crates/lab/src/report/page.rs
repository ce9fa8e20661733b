//! The page: a section per workload, followed by the conditions of the measurement.

use std::fmt::Write;

use super::chart::{Chart, Series, bars};
use super::profile::{Profile, contention};
use crate::bench::result::{Report, Summary};
use crate::output::escape;
use crate::usl;

/// The style of the page and of single charts.
pub const STYLE: &str = include_str!("style.css");

/// A chart of the page.
pub struct Drawing {
    /// The file name without its extension.
    pub name: String,
    pub svg: String,
}

/// A page and its charts.
#[derive(Default)]
pub struct Page {
    pub html: String,
    pub charts: Vec<Drawing>,
}

/// Builds the page.
pub fn build(title: &str, reports: &[Report], profiles: &[Profile]) -> Page {
    let mut page = Page::default();
    let _ = write!(
        page.html,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n<title>{t}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<h1>{t}</h1>\n",
        t = escape(title)
    );
    let names = server_names(reports);
    for report in reports {
        head(&mut page, report);
    }
    for report in reports {
        for workload in &report.workloads {
            let rows: Vec<&Summary> = report
                .summary
                .iter()
                .filter(|s| s.workload == workload.name)
                .collect();
            if rows.is_empty() {
                continue;
            }
            let _ = write!(
                page.html,
                "<section>\n<h2>{}</h2>\n<p class=\"dim\">{}</p>\n<pre>{}</pre>\n",
                escape(&workload.name),
                escape(&workload.about),
                escape(&workload.statement)
            );
            workload_charts(&mut page, &workload.name, &rows, &names);
            if rows.iter().any(|r| r.cores.is_some()) {
                scaling(&mut page, &workload.name, &rows, &names);
            }
            table(&mut page.html, &rows, &names);
            page.html.push_str("</section>\n");
        }
    }
    for profile in profiles {
        profile_section(&mut page, profile, &names);
    }
    for report in reports {
        measured_with(&mut page.html, report);
    }
    page.html.push_str("</body>\n</html>\n");
    page
}

/// The servers in order of appearance. A server's index is its colour.
fn server_names(reports: &[Report]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for server in reports.iter().flat_map(|r| &r.servers) {
        if !names.contains(&server.name) {
            names.push(server.name.clone());
        }
    }
    names
}

fn color(names: &[String], name: &str) -> usize {
    names.iter().position(|n| n == name).unwrap_or(0)
}

fn head(page: &mut Page, report: &Report) {
    let servers: Vec<String> = report
        .servers
        .iter()
        .map(|s| format!("{} ({})", s.name, s.version))
        .collect();
    let window = match report.count {
        Some(count) => format!("of {count} statements a client"),
        None => format!(
            "of {} s after {} s of warm-up",
            report.window_s, report.warmup_s
        ),
    };
    let _ = write!(
        page.html,
        "<p>{}</p>\n<p class=\"dim\">{}; {}. Windows {}, {} of each kind, servers in turn; medians.</p>\n",
        escape(&servers.join(" · ")),
        escape(&report.started),
        escape(&report.machine),
        window,
        report.repeat
    );
    if report.partial {
        page.html.push_str(
            "<p class=\"note\">The run did not come to its end: not all windows are there.</p>\n",
        );
    }
    let marked = |mark: &str| {
        report
            .summary
            .iter()
            .filter(|s| s.marks.iter().any(|m| m == mark))
            .count()
    };
    for (mark, text) in [
        (
            "client-limit",
            "the client had no time left, so the server may be faster than shown",
        ),
        (
            "not-quiet",
            "other programs used the machine: compare CPU per statement, not throughput",
        ),
        ("connections-lost", "connections broke and were made anew"),
    ] {
        let count = marked(mark);
        if count > 0 {
            let _ = writeln!(
                page.html,
                "<p class=\"note\">{count} of {} lines: {text}.</p>",
                report.summary.len()
            );
        }
    }
}

/// Throughput, latency and CPU time by clients: a line per server, at its highest number of cores.
fn workload_charts(page: &mut Page, workload: &str, rows: &[&Summary], names: &[String]) {
    let most = rows.iter().filter_map(|r| r.cores).max();
    let rows: Vec<&&Summary> = rows.iter().filter(|r| r.cores == most).collect();
    let servers: Vec<&String> = names
        .iter()
        .filter(|n| rows.iter().any(|r| r.server == **n))
        .collect();
    let line =
        |name: &str, label: String, dashed: bool, get: &dyn Fn(&Summary) -> Option<f64>| Series {
            name: label,
            color: color(names, name),
            points: rows
                .iter()
                .filter(|r| r.server == name)
                .filter_map(|r| Some((r.clients as f64, get(r)?)))
                .collect(),
            dashed,
            markers: true,
            ..Series::default()
        };
    let over_clients = |title: &str, y: &str, log_y: bool, series: Vec<Series>| Chart {
        title: format!("{workload}: {title}"),
        x_label: "clients".into(),
        y_label: y.into(),
        log_x: true,
        log_y,
        series,
        ..Chart::default()
    };
    let throughput = servers
        .iter()
        .map(|n| Series {
            band: rows
                .iter()
                .filter(|r| r.server == **n)
                .map(|r| {
                    (
                        r.clients as f64,
                        r.statements_per_s_spread[0],
                        r.statements_per_s_spread[1],
                    )
                })
                .collect(),
            ..line(n, n.to_string(), false, &|r| Some(r.statements_per_s))
        })
        .collect();
    let latency = servers
        .iter()
        .flat_map(|n| {
            [
                line(n, format!("{n} p99"), false, &|r| Some(r.p99_us)),
                line(n, format!("{n} median"), true, &|r| Some(r.p50_us)),
            ]
        })
        .collect();
    let cpu = servers
        .iter()
        .map(|n| line(n, n.to_string(), false, &|r| r.server_us))
        .collect();
    page.html.push_str("<div class=\"charts\">\n");
    page.draw(
        &format!("{workload}-throughput"),
        over_clients("throughput", "statements a second", false, throughput).svg(),
    );
    page.draw(
        &format!("{workload}-latency"),
        over_clients("latency", "microseconds", true, latency).svg(),
    );
    page.draw(
        &format!("{workload}-cpu"),
        over_clients("server CPU", "microseconds a statement", false, cpu).svg(),
    );
    page.html.push_str("</div>\n");
}

/// Throughput by cores with the fitted law, at the client count with the highest throughput.
fn scaling(page: &mut Page, workload: &str, rows: &[&Summary], names: &[String]) {
    let mut series = Vec::new();
    let mut lines = String::new();
    let mut measured_to: f64 = 0.0;
    for name in names {
        let mut best: Vec<usl::Point> = Vec::new();
        let mut all: Vec<usl::Point> = Vec::new();
        let mut cores: Vec<usize> = rows
            .iter()
            .filter(|r| r.server == *name)
            .filter_map(|r| r.cores)
            .collect();
        cores.sort_unstable();
        cores.dedup();
        for c in cores {
            let here = rows
                .iter()
                .filter(|r| r.server == *name && r.cores == Some(c));
            let Some(top) = here.max_by(|a, b| a.statements_per_s.total_cmp(&b.statements_per_s))
            else {
                continue;
            };
            best.push((c as f64, top.statements_per_s));
            all.extend(
                [
                    top.statements_per_s_spread[0],
                    top.statements_per_s,
                    top.statements_per_s_spread[1],
                ]
                .map(|x| (c as f64, x)),
            );
        }
        if best.is_empty() {
            continue;
        }
        measured_to = measured_to.max(best.iter().map(|p| p.0).fold(0.0, f64::max));
        let at = color(names, name);
        series.push(Series {
            name: name.clone(),
            color: at,
            points: best.clone(),
            markers: true,
            ..Series::default()
        });
        let speedup = best[best.len() - 1].1 / best[0].1;
        let _ = write!(
            lines,
            "<tr><td class=\"l\">{}</td><td>{:.2} ({} to {} cores)</td>",
            escape(name),
            speedup,
            best[0].0,
            best[best.len() - 1].0
        );
        // The lowest, median and highest windows, so that the band shows the spread of the windows.
        match usl::fit(&all) {
            Some(fit) => {
                series.push(Series {
                    name: format!("{name}, law"),
                    color: at,
                    points: fit.curve.iter().map(|c| (c.0, c.1)).collect(),
                    band: fit
                        .curve
                        .iter()
                        .filter_map(|(n, _, b)| b.map(|b| (*n, b[0], b[1])))
                        .collect(),
                    dashed: true,
                    ..Series::default()
                });
                let range = |i: usize| {
                    fit.intervals.map_or(String::new(), |v| {
                        format!(" ({:.4} to {:.4})", v[i][0], v[i][1])
                    })
                };
                let peak = fit
                    .law
                    .peak()
                    .map_or("none".into(), |p| format!("{p:.0} cores"));
                let _ = writeln!(
                    lines,
                    "<td>{:.4}{}</td><td>{:.6}{}</td><td>{peak}</td><td>{:.4}</td></tr>",
                    fit.law.sigma,
                    range(1),
                    fit.law.kappa,
                    range(2),
                    fit.r_squared
                );
            }
            None => lines.push_str(
                "<td colspan=\"4\">too few counts of cores for a fit: at least three</td></tr>\n",
            ),
        }
    }
    let chart = Chart {
        title: format!("{workload}: throughput over cores"),
        x_label: "cores of the server".into(),
        y_label: "statements a second".into(),
        forecast_from: series.iter().any(|s| s.dashed).then_some(measured_to),
        series,
        ..Chart::default()
    };
    page.html
        .push_str("<h3>Over cores</h3>\n<div class=\"charts\">\n");
    page.draw(&format!("{workload}-cores"), chart.svg());
    let _ = write!(
        page.html,
        "</div>\n<div class=\"scroll\"><table><thead><tr><th class=\"l\">server</th><th>speed-up</th><th>contention σ</th><th>coherence κ</th><th>peak</th><th>R²</th></tr></thead>\n{lines}</table></div>\n<p class=\"dim\">X(N) = λN / (1 + σ(N−1) + κN(N−1)), the universal scalability law; in brackets and shaded: 95 %. Measured up to {measured_to} cores. What lies beyond is the law continued, to four times that at most; it knows nothing of sockets, memory or clocks that were not there.</p>\n"
    );
}

fn table(html: &mut String, rows: &[&Summary], names: &[String]) {
    let with_cores = rows.iter().any(|r| r.cores.is_some());
    html.push_str("<div class=\"scroll\"><table><thead><tr><th class=\"l\">server</th>");
    if with_cores {
        html.push_str("<th>cores</th>");
    }
    html.push_str("<th>clients</th><th>statements/s</th><th>lowest … highest</th><th>p50 µs</th><th>p99 µs</th><th>p99.9 µs</th><th>CPU µs</th><th>÷ first</th><th>switches</th><th>client µs</th><th>errors</th><th class=\"l\">notes</th></tr></thead>\n");
    for r in rows {
        let first = names.first().and_then(|first| {
            rows.iter()
                .find(|o| o.server == *first && (o.clients, o.cores) == (r.clients, r.cores))
        });
        let ratio = first
            .and_then(|f| Some(r.server_us? / f.server_us?))
            .map_or("–".into(), |v| format!("{v:.2}"));
        let optional =
            |v: Option<f64>, digits: usize| v.map_or("–".into(), |v| format!("{v:.digits$}"));
        let _ = write!(html, "<tr><td class=\"l\">{}</td>", escape(&r.server));
        if with_cores {
            let _ = write!(
                html,
                "<td>{}</td>",
                r.cores.map_or("–".into(), |c| c.to_string())
            );
        }
        let _ = writeln!(
            html,
            "<td>{}</td><td>{:.0}</td><td>{:.0} … {:.0}</td><td>{:.0}</td><td>{:.0}</td><td>{:.0}</td><td>{}</td><td>{ratio}</td><td>{}</td><td>{:.1}</td><td>{}</td><td class=\"l\">{}</td></tr>",
            r.clients,
            r.statements_per_s,
            r.statements_per_s_spread[0],
            r.statements_per_s_spread[1],
            r.p50_us,
            r.p99_us,
            r.p999_us,
            optional(r.server_us, 1),
            optional(r.switches, 2),
            r.client_us,
            r.errors,
            escape(&r.marks.join(", "))
        );
    }
    html.push_str("</table></div>\n");
}

fn profile_section(page: &mut Page, profile: &Profile, names: &[String]) {
    let at = color(names, &profile.server);
    let [running, waiting, idle] = profile.stacks.counts();
    let _ = write!(
        page.html,
        "<section>\n<h2>Where {} spends its time</h2>\n<p class=\"dim\">{} samples of {} threads by {}: {running} on the processor, {waiting} waiting, {idle} idle.</p>\n<div class=\"charts\">\n",
        escape(&profile.server),
        profile.stacks.samples,
        profile.stacks.threads,
        escape(&profile.stacks.by)
    );
    for (title, rows) in [
        ("on the processor, by phase", profile.stacks.phases(true)),
        ("waiting, by place", profile.stacks.phases(false)),
    ] {
        if !rows.is_empty() {
            let svg = bars(&format!("{}: {title}", profile.server), &rows, at);
            page.draw(
                &format!(
                    "{}-{}",
                    profile.server,
                    if title.starts_with("on") {
                        "phases"
                    } else {
                        "waits"
                    }
                ),
                Some(svg),
            );
        }
    }
    page.html.push_str("</div>\n");
    contention(&mut page.html, &profile.stacks.contention);
    page.html.push_str("</section>\n");
}

/// Versions, settings, commands.
fn measured_with(html: &mut String, report: &Report) {
    let _ = write!(
        html,
        "<section>\n<h2>Made with</h2>\n<pre>{}</pre>\n",
        escape(&shell_line(&report.command))
    );
    let _ = writeln!(
        html,
        "<p class=\"dim\">nfold lab {}, up to {} client threads; {} processors. CPU and switches of a server are read from /proc at both ends of each window, and are there for servers on the client's machine only.</p>",
        escape(&report.lab_version),
        report.client_threads,
        report.processors
    );
    let mut keys: Vec<&String> = report
        .servers
        .iter()
        .flat_map(|s| s.settings.keys())
        .collect();
    keys.sort();
    keys.dedup();
    html.push_str("<div class=\"scroll\"><table><thead><tr><th class=\"l\">setting</th>");
    for server in &report.servers {
        let _ = write!(html, "<th class=\"l\">{}</th>", escape(&server.name));
    }
    html.push_str("</tr></thead>\n<tr><td class=\"l\">version</td>");
    for server in &report.servers {
        let _ = write!(html, "<td class=\"l w\">{}</td>", escape(&server.version));
    }
    html.push_str("</tr>\n<tr><td class=\"l\">address</td>");
    for server in &report.servers {
        let _ = write!(html, "<td class=\"l w\">{}</td>", escape(&server.dsn));
    }
    html.push_str("</tr>\n");
    for key in keys {
        let _ = write!(html, "<tr><td class=\"l\">{}</td>", escape(key));
        for server in &report.servers {
            let _ = write!(
                html,
                "<td class=\"l w\">{}</td>",
                escape(server.settings.get(key).map_or("–", String::as_str))
            );
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</table></div>\n</section>\n");
}

/// Quotes words for a shell.
fn shell_line(words: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:,@?%+".contains(c);
    let quote = |w: &String| {
        if !w.is_empty() && w.chars().all(plain) {
            w.clone()
        } else {
            format!("'{}'", w.replace('\'', "'\\''"))
        }
    };
    words.iter().map(quote).collect::<Vec<_>>().join(" ")
}

impl Page {
    fn draw(&mut self, name: &str, svg: Option<String>) {
        let Some(svg) = svg else { return };
        let _ = writeln!(self.html, "<figure>{svg}</figure>");
        let name = name
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
            .collect();
        self.charts.push(Drawing { name, svg });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::result::{SCHEMA, Sample, ServerInfo, WorkloadInfo};

    fn report(cores: bool) -> Report {
        let mut report = Report {
            schema: SCHEMA.into(),
            command: vec!["nfold".into(), "a b".into(), "it's".into()],
            ..Report::default()
        };
        for name in ["nfold", "<b>maria"] {
            report.servers.push(ServerInfo {
                name: name.into(),
                version: "1.0".into(),
                ..ServerInfo::default()
            });
        }
        report.workloads.push(WorkloadInfo {
            name: "in_list_200".into(),
            ..WorkloadInfo::default()
        });
        for server in ["nfold", "<b>maria"] {
            for clients in [1, 8, 64] {
                for core in if cores { vec![1, 2, 4] } else { vec![0] } {
                    report.samples.push(Sample {
                        server: server.into(),
                        workload: "in_list_200".into(),
                        clients,
                        cores: cores.then_some(core),
                        statements_per_s: 100.0 * (clients + core) as f64,
                        p50_us: 10.0,
                        p99_us: 100.0,
                        server_us: Some(if server == "nfold" { 10.0 } else { 40.0 }),
                        ..Sample::default()
                    });
                }
            }
        }
        report.summarise();
        report
    }

    #[test]
    fn page_contains_its_charts_and_escapes_names() {
        let page = build("t & t", &[report(false)], &[]);
        let names: Vec<&str> = page.charts.iter().map(|c| c.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "in-list-200-throughput",
                "in-list-200-latency",
                "in-list-200-cpu"
            ]
        );
        assert!(page.html.contains("t &amp; t") && !page.html.contains("<b>maria"));
        assert!(
            page.html.contains("<td>4.00</td>"),
            "CPU beside the first server's"
        );
        assert!(page.html.contains("'a b' 'it'\\''s'"));
        // The page loads nothing.
        assert!(
            !page.html.contains("src=")
                && !page.html.contains("href=")
                && !page.html.contains("url(")
        );
    }

    #[test]
    fn several_core_counts_add_the_scaling_law() {
        let page = build("t", &[report(true)], &[]);
        assert!(page.charts.iter().any(|c| c.name == "in-list-200-cores"));
        assert!(page.html.contains("contention") && page.html.contains("forecast"));
    }
}
