//! `nfold lab commits`: measures which share of a disk's syncs becomes commits.
//!
//! # Picture
//! ```text
//! warm-up (how long is a sync of the log?) ▶ probe: syncs of that length
//!   ▶ window: N connections, one UPDATE each ▶ probe again
//! ```
//! If the disk is the bottleneck, commits share syncs: at least half of the connections commit with
//! one sync while the others wait for the next. A commit waits for at most two syncs.

use std::fmt::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Serialize;

use super::disk::{Probe, Syncs};
use super::{Head, One, PARTIAL, fill, positive, seconds};
use crate::bench::result::ErrorInfo;
use crate::bench::servers::Server;
use crate::bench::workload::{self, Size};
use crate::client::Connection;
use crate::client::drive::{self, Moment, Outcome};
use crate::digest::table::grouped;
use crate::output::JsonOption;
use crate::progress::Progress;
use crate::{LabError, interrupt};

pub const SCHEMA: &str = "nfold-lab-commits/1";

/// For `--help`.
pub const EXAMPLES: &str = "Examples:
  nfold lab commits --dsn mysql://app@127.0.0.1/bench --dir /var/lib/mysql-files --clients 64
  nfold lab commits --start-nfold --json nfold.json && nfold lab commits --start-mariadb --json mariadb.json

Passwords: NFOLD_LAB_PASSWORD, an option file (?option_file=FILE) or a prompt (?prompt=yes); never in a DSN.";

/// The command line of `nfold lab commits`.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    server: One,
    /// Connections that commit
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    clients: u32,
    /// Rows of the table
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..))]
    rows: u64,
    /// Seconds of the window
    #[arg(long, default_value_t = 10.0, value_parser = seconds)]
    time: f64,
    /// Seconds of warm-up before the window
    #[arg(long, default_value_t = 2.0, value_parser = seconds)]
    warmup: f64,
    /// Seconds of each of the two probes
    #[arg(long, default_value_t = 3.0, value_parser = seconds)]
    probe: f64,
    /// Exit with status 1 if there are fewer commits than this per sync that the disk can do
    #[arg(long, value_name = "COMMITS", value_parser = positive)]
    least: Option<f64>,
    #[command(flatten)]
    json: JsonOption,
}

/// The result.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    #[serde(flatten)]
    pub head: Head,
    pub clients: usize,
    pub rows: u64,
    pub directory: Option<PathBuf>,
    /// The probes before and after the window. Empty without a directory.
    pub probes: Vec<Syncs>,
    pub window: Option<Window>,
    /// Commits per second divided by the probes' mean syncs per second.
    pub commits_per_disk_sync: Option<f64>,
    /// The 99th percentile of a commit's latency, in syncs of the probe.
    pub p99_syncs: Option<f64>,
}

/// The measured window.
#[derive(Debug, Default, Serialize)]
pub struct Window {
    pub seconds: f64,
    pub commits: u64,
    pub commits_per_s: f64,
    pub p50_us: f64,
    pub p99_us: f64,
    pub max_us: f64,
    pub errors: std::collections::BTreeMap<u16, ErrorInfo>,
    pub lost_at: Vec<f64>,
    /// The syncs of the server's log, by its own counters. Absent if it has none.
    pub log_syncs_per_s: Option<f64>,
    pub commits_per_log_sync: Option<f64>,
}

/// The server's counters of the log: syncs and bytes since its start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct LogCounters {
    syncs: Option<u64>,
    bytes: Option<u64>,
}

impl LogCounters {
    fn of(connection: &mut Connection) -> LogCounters {
        let mut counter = |name: &str| -> Option<u64> {
            let found = connection.query(&format!("SHOW GLOBAL STATUS LIKE '{name}'"));
            found.ok()?.text(0, 1)?.parse().ok()
        };
        LogCounters {
            syncs: counter("Innodb_os_log_fsyncs"),
            bytes: counter("Innodb_os_log_written"),
        }
    }

    fn since(self, before: LogCounters) -> LogCounters {
        let minus = |a: Option<u64>, b: Option<u64>| a?.checked_sub(b?);
        LogCounters {
            syncs: minus(self.syncs, before.syncs),
            bytes: minus(self.bytes, before.bytes),
        }
    }

    /// The bytes per sync, rounded up to whole blocks of 4 KiB; one block if the server does not
    /// report them.
    fn sync_bytes(self) -> usize {
        let each = match (self.bytes, self.syncs) {
            (Some(bytes), Some(syncs)) if syncs > 0 => bytes / syncs,
            _ => 0,
        };
        each.max(1).next_multiple_of(4096) as usize
    }
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), LabError> {
    let size = format!("{}", args.clients + 100);
    let server = args.server.open(&[("max_connections", size)], true)?;
    let mut progress = Progress::new(false);
    let mut report = Report {
        head: Head::new(SCHEMA, &server)?,
        clients: args.clients as usize,
        rows: args.rows,
        directory: args.server.disk(),
        ..Report::default()
    };
    let done = measure(args, &server, &mut report, &mut progress);
    progress.finish();
    report.head.partial = done.is_err() || interrupt::requested();
    report.conclude();
    let measured = report.window.is_some() || !report.probes.is_empty();
    super::finish(&report, &report.lines(), measured, &args.json, done)?;
    match (args.least, report.commits_per_disk_sync) {
        (Some(least), Some(each)) if each < least => Err(LabError::usage(format!(
            "{each:.1} commits for each sync of the disk, fewer than {least}"
        ))),
        (Some(_), None) if !report.head.partial => Err(LabError::usage(
            "--least needs a probe: give --dir, a directory on the server's disk",
        )),
        _ => Ok(()),
    }
}

fn measure(
    args: &Args,
    server: &Server,
    report: &mut Report,
    progress: &mut Progress,
) -> Result<(), LabError> {
    let probe = match &report.directory {
        Some(directory) => Some(Probe::create(directory)?),
        None => None,
    };
    fill(server, args.rows, progress)?;
    let mut watcher = Connection::open(&server.dsn)?;
    let (_, log) = load(args, server, args.warmup, &mut watcher, progress, "warm-up")?;
    let sync = |report: &mut Report, progress: &mut Progress| -> Result<(), LabError> {
        progress.say("probe of the disk");
        let time = Duration::from_secs_f64(args.probe);
        if let Some(probe) = probe.as_ref().filter(|_| !interrupt::requested()) {
            let syncs = probe.syncs(log.sync_bytes(), time)?;
            if !interrupt::requested() {
                report.probes.push(syncs);
            }
        }
        Ok(())
    };
    sync(report, progress)?;
    if interrupt::requested() {
        return Ok(());
    }
    let (outcome, log) = load(args, server, args.time, &mut watcher, progress, "commits")?;
    if outcome.dead == outcome.connections {
        return Err(LabError::usage(format!(
            "{} went away and did not come back",
            server.dsn
        )));
    }
    report.window = Some(Window::of(&outcome, log));
    sync(report, progress)
}

/// A seed that no load has used before, in this run or in an earlier one on the same table. An
/// UPDATE that sets the existing value changes nothing, and waits for no sync.
fn fresh_seed() -> u64 {
    static LOADS: AtomicU64 = AtomicU64::new(0);
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
    let us = since_1970.unwrap_or_default().as_micros() as u64;
    us.wrapping_mul(16)
        .wrapping_add(LOADS.fetch_add(1, Relaxed))
}

/// Commits for `seconds`. Returns the outcome, and the activity of the server's log meanwhile.
fn load(
    args: &Args,
    server: &Server,
    seconds: f64,
    watcher: &mut Connection,
    progress: &mut Progress,
    what: &str,
) -> Result<(Outcome, LogCounters), LabError> {
    let workload = workload::parse("oltp_update_non_index")?.remove(0);
    let clients = args.clients as usize;
    let options = drive::Options {
        connections: clients,
        measure: Some(Duration::from_secs_f64(seconds)),
        ..drive::Options::default()
    };
    let (mut before, mut after) = (LogCounters::default(), LogCounters::default());
    let seed = fresh_seed();
    let outcome = drive::drive(
        &server.dsn,
        &options,
        |number| workload.source(number, clients, Size::of(args.rows), seed),
        |moment| match moment {
            Moment::Begin => before = LogCounters::of(watcher),
            Moment::End => after = LogCounters::of(watcher),
            Moment::Tick(n) => progress.say(&format!("{what}: {}", grouped(n))),
        },
    )?;
    Ok((outcome, after.since(before)))
}

impl Window {
    fn of(outcome: &Outcome, log: LogCounters) -> Window {
        let seconds = outcome.seconds.max(1e-9);
        let commits = outcome.statements - outcome.error_count();
        let errors = outcome.errors.iter().map(|(code, e)| {
            let (count, message) = (e.count, e.message.clone());
            (*code, ErrorInfo { count, message })
        });
        Window {
            seconds,
            commits,
            commits_per_s: commits as f64 / seconds,
            p50_us: outcome.latency_us(0.5),
            p99_us: outcome.latency_us(0.99),
            max_us: outcome.latency.max() as f64 / 1000.0,
            errors: errors.collect(),
            lost_at: outcome.lost_at.clone(),
            log_syncs_per_s: log.syncs.map(|n| n as f64 / seconds),
            commits_per_log_sync: log
                .syncs
                .filter(|n| *n > 0)
                .map(|n| commits as f64 / n as f64),
        }
    }
}

impl Report {
    /// Derives the results from the window and the probes.
    fn conclude(&mut self) {
        let Some(window) = self.window.as_ref().filter(|_| !self.probes.is_empty()) else {
            return;
        };
        let syncs = self.probes.iter().map(|p| p.per_s).sum::<f64>() / self.probes.len() as f64;
        if syncs > 0.0 {
            self.commits_per_disk_sync = Some(window.commits_per_s / syncs);
            self.p99_syncs = Some(window.p99_us * syncs / 1e6);
        }
    }

    fn lines(&self) -> String {
        let mut out = String::new();
        let _ = writeln!(
            out,
            "{} {}; {}",
            self.head.server.name, self.head.server.version, self.head.machine
        );
        match (&self.directory, self.probes.as_slice()) {
            (None, _) => out.push_str(
                "disk: no probe; --dir DIRECTORY on the server's disk puts one beside the commits\n",
            ),
            (Some(_), []) => {}
            (Some(directory), probes) => {
                let each: Vec<String> = probes
                    .iter()
                    .map(|p| format!("{} syncs/s", grouped(p.per_s as u64)))
                    .collect();
                let _ = writeln!(
                    out,
                    "disk: {} of {} bytes, {:.2} ms each, before and after ({})",
                    each.join(", "),
                    grouped(probes[0].bytes as u64),
                    1000.0 / probes[0].per_s.max(1e-9),
                    directory.display()
                );
            }
        }
        if let Some(w) = &self.window {
            let log = match (w.log_syncs_per_s, w.commits_per_log_sync) {
                (Some(syncs), Some(each)) => format!(
                    "; {} syncs/s of the log, {each:.1} commits each",
                    grouped(syncs as u64)
                ),
                _ => String::new(),
            };
            let _ = writeln!(
                out,
                "{} connections: {} commits/s, p50 {:.2} ms, p99 {:.2} ms{log}",
                self.clients,
                grouped(w.commits_per_s as u64),
                w.p50_us / 1000.0,
                w.p99_us / 1000.0
            );
            for (code, error) in &w.errors {
                let _ = writeln!(out, "error {code} {} times: {}", error.count, error.message);
            }
            if !w.lost_at.is_empty() {
                let _ = writeln!(out, "connections broke {} times", w.lost_at.len());
            }
        }
        if let (Some(each), Some(syncs)) = (self.commits_per_disk_sync, self.p99_syncs) {
            let _ = writeln!(
                out,
                "{each:.1} commits for each sync that the disk can do; p99 is {syncs:.1} of its syncs"
            );
        }
        if self.head.partial {
            out.push_str(PARTIAL);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sync_length_comes_from_the_servers_counters() {
        let log = |syncs, bytes| LogCounters { syncs, bytes };
        assert_eq!(log(Some(10), Some(81_930)).sync_bytes(), 12_288);
        assert_eq!(log(Some(10), Some(81_920)).sync_bytes(), 8_192);
        for unknown in [log(None, Some(1)), log(Some(0), Some(9)), log(None, None)] {
            assert_eq!(unknown.sync_bytes(), 4096);
        }
        // A restarted server counts from 0.
        assert_eq!(
            log(Some(1), Some(5)).since(log(Some(2), Some(3))),
            log(None, Some(2))
        );
    }

    #[test]
    fn loads_use_distinct_seeds() {
        let seeds: std::collections::BTreeSet<u64> = (0..10).map(|_| fresh_seed()).collect();
        assert_eq!(seeds.len(), 10);
    }

    #[test]
    fn figures_are_compared_with_the_probes() {
        let mut report = Report {
            clients: 64,
            probes: [100.0, 300.0]
                .map(|per_s| Syncs { bytes: 4096, per_s })
                .to_vec(),
            window: Some(Window {
                commits_per_s: 3200.0,
                p99_us: 10_000.0,
                ..Window::default()
            }),
            directory: Some("/d".into()),
            ..Report::default()
        };
        report.conclude();
        assert_eq!(report.commits_per_disk_sync, Some(16.0));
        assert_eq!(report.p99_syncs, Some(2.0));
        let lines = report.lines();
        assert!(lines.contains("100 syncs/s, 300 syncs/s") && lines.contains("p99 is 2.0 of"));
        // Without a probe, or if the run was cut short, there is no ratio.
        report.probes.clear();
        (report.commits_per_disk_sync, report.p99_syncs) = (None, None);
        report.conclude();
        assert_eq!(report.commits_per_disk_sync, None);
    }
}
