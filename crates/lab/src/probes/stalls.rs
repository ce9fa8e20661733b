//! `nfold lab stalls`: finds moments at which a server stalls under a writing load.
//!
//! # Picture
//! ```text
//! load      oltp_read_write on some connections, on data larger than the buffer pool
//! witness   a separate connection that reads a row and updates another every few milliseconds
//! probe     reads, syncs and sleeps on the server's disk; records slow operations
//! ```
//! A statement of the witness that exceeds the limit is a stall of the server, unless the disk or
//! the system stalled: unless slow operations of the probe at that time make up half of it.

use std::collections::HashMap;
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use serde::Serialize;

use super::disk::{Probe, ProbeOp, Slow};
use super::{Head, One, PARTIAL, fill, positive, seconds};
use crate::bench::result::ErrorInfo;
use crate::bench::servers::Server;
use crate::bench::workload::{self, Rng, Size};
use crate::client::Connection;
use crate::client::drive::{self, Moment, Outcome};
use crate::digest::table::grouped;
use crate::dsn::Dsn;
use crate::output::JsonOption;
use crate::progress::Progress;
use crate::{LabError, interrupt};

pub const SCHEMA: &str = "nfold-lab-stalls/1";

/// For `--help`.
pub const EXAMPLES: &str = "Examples:
  nfold lab stalls --dsn mysql://app@127.0.0.1/bench --dir /var/lib/mysql-files --time 300
  nfold lab stalls --start-nfold --pool-mib 64 --rows 1360000 --time 300 --json stalls.json

Ends with status 1 if a stall counts. Passwords: NFOLD_LAB_PASSWORD, an option file (?option_file=FILE) or a prompt (?prompt=yes);
never in a DSN.";

/// The pause between two rounds of the witness.
const WITNESS_PAUSE: Duration = Duration::from_millis(5);
/// The number of rows of the witness's own table.
const WITNESS_ROWS: u64 = 1000;
/// The most stalls that are kept with the probe's findings. Further ones are only counted.
const MAX_KEPT: usize = 1000;
/// The most stalls that are printed.
const SHOWN: usize = 20;
/// The interval at which the server's waits are read.
const WAITS_INTERVAL: Duration = Duration::from_secs(1);
/// The most causes that are shown for a stall.
const CAUSES: usize = 3;
/// How long a lost witness tries to reconnect.
const RECONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The command line of `nfold lab stalls`.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    server: One,
    /// Connections of the load
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    clients: u32,
    /// The workload of the load (see `nfold lab bench --list`: the group sysbench)
    #[arg(long, default_value = "oltp_read_write", value_name = "NAME")]
    workload: String,
    /// Rows of the table, of about 250 bytes each; should exceed the pool
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    rows: u64,
    /// Seconds under load
    #[arg(long, default_value_t = 60.0, value_parser = seconds)]
    time: f64,
    /// The limit in milliseconds; a statement that takes longer is a stall
    #[arg(long, default_value_t = 100.0, value_name = "MS", value_parser = positive)]
    limit: f64,
    #[command(flatten)]
    json: JsonOption,
}

/// The result.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    #[serde(flatten)]
    pub head: Head,
    pub workload: String,
    pub clients: usize,
    pub rows: u64,
    /// As reported by the server; absent if it does not report them.
    pub data_bytes: Option<u64>,
    pub pool_bytes: Option<u64>,
    pub limit_ms: f64,
    pub load: Option<Load>,
    pub witness: Option<WitnessResults>,
    /// Absent without a directory.
    pub probe: Option<Probed>,
    /// The statements that exceeded the limit, at most the first thousand.
    pub stalls: Vec<Stall>,
    /// The stalls that the probe does not explain.
    pub counted: u64,
}

/// The results of the load.
#[derive(Debug, Default, Serialize)]
pub struct Load {
    pub seconds: f64,
    pub transactions_per_s: f64,
    pub statements_per_s: f64,
    /// The latency of transactions, or of statements if each is a transaction.
    pub p50_ms: f64,
    pub p99_ms: f64,
    pub max_ms: f64,
    pub errors: std::collections::BTreeMap<u16, ErrorInfo>,
    pub lost_at: Vec<f64>,
}

/// The results of the witness.
#[derive(Debug, Default, Serialize)]
pub struct WitnessResults {
    pub statements: u64,
    pub p50_ms: f64,
    pub p99_ms: f64,
    pub p999_ms: f64,
    pub max_ms: f64,
    /// The statements that the server rejected, and broken connections.
    pub errors: u64,
    pub lost: u64,
}

/// The results of the probe: the longest operation of each kind in milliseconds; 0 if none exceeded
/// a quarter of the limit.
#[derive(Debug, Default, Serialize)]
pub struct Probed {
    pub directory: PathBuf,
    pub rounds: u64,
    pub longest_read_ms: f64,
    pub longest_sync_ms: f64,
    pub longest_sleep_ms: f64,
}

/// A statement that exceeded the limit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Stall {
    /// Seconds since the beginning of the load.
    pub at_s: f64,
    pub took_ms: f64,
    /// `read` or `update`.
    pub what: &'static str,
    /// The slow operations of the probe meanwhile.
    pub probe: Vec<SlowProbe>,
    /// What all statements together waited for in the server during the second before its end, the
    /// longest waits first. Empty if the server does not report waits.
    pub waits: Vec<Waited>,
    pub explained: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SlowProbe {
    pub kind: ProbeOp,
    pub ms: f64,
}

/// A wait site of the server, as named by `SHOW ENGINE NFOLD CONTENTION`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Waited {
    pub what: String,
    pub count: u64,
    pub total_ms: f64,
    /// The longest of the waits that ended, or were in progress, since the previous reading. Absent
    /// if none was longer than all earlier ones.
    pub longest_ms: Option<f64>,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), LabError> {
    let workload = workload::parse(&args.workload)?;
    let [workload] = workload.as_slice() else {
        return Err(LabError::usage("--workload: one, not a group"));
    };
    if workload.table != workload::Table::Sbtest {
        return Err(LabError::usage(format!(
            "--workload {}: one of the group sysbench, whose table the witness reads",
            args.workload
        )));
    }
    let server = args.server.open(&[], true)?;
    let mut report = Report {
        head: Head::new(SCHEMA, &server)?,
        workload: workload.name.clone(),
        clients: args.clients as usize,
        rows: args.rows,
        limit_ms: args.limit,
        ..Report::default()
    };
    let mut progress = Progress::new(false);
    let done = measure(args, &server, workload, &mut report, &mut progress);
    progress.finish();
    report.head.partial = done.is_err() || interrupt::requested();
    let measured = report.load.is_some();
    super::finish(&report, &report.lines(), measured, &args.json, done)?;
    match report.counted {
        0 => Ok(()),
        n => Err(LabError::usage(format!(
            "{n} stalls of more than {} ms that the probe does not explain",
            args.limit
        ))),
    }
}

fn measure(
    args: &Args,
    server: &Server,
    workload: &workload::Workload,
    report: &mut Report,
    progress: &mut Progress,
) -> Result<(), LabError> {
    let probe = match args.server.disk() {
        Some(directory) => Some((Probe::create(&directory)?, directory)),
        None => None,
    };
    fill(server, args.rows, progress)?;
    if interrupt::requested() {
        return Ok(());
    }
    let mut own = Connection::open(&server.dsn)?;
    let number = |own: &mut Connection, sql: &str| own.value(sql).ok().flatten()?.parse().ok();
    report.data_bytes = number(
        &mut own,
        "SELECT data_length + index_length FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = 'sbtest1'",
    );
    report.pool_bytes = number(&mut own, "SELECT @@innodb_buffer_pool_size");
    own.query("DROP TABLE IF EXISTS lab_witness")?;
    own.query("CREATE TABLE lab_witness (id INT PRIMARY KEY, n INT NOT NULL)")?;
    let rows: Vec<String> = (0..WITNESS_ROWS).map(|id| format!("({id},0)")).collect();
    own.query(&format!(
        "INSERT INTO lab_witness VALUES {}",
        rows.join(",")
    ))?;
    let done = under_load(args, server, workload, probe.as_ref(), report, progress);
    // On a new connection, because the old one has been idle for long, and the server may have gone
    // away.
    let _ = Connection::open(&server.dsn).map(|mut c| c.query("DROP TABLE lab_witness"));
    done
}

fn under_load(
    args: &Args,
    server: &Server,
    workload: &workload::Workload,
    probe: Option<&(Probe, PathBuf)>,
    report: &mut Report,
    progress: &mut Progress,
) -> Result<(), LabError> {
    let limit = Duration::from_secs_f64(args.limit / 1000.0);
    let stop = AtomicBool::new(false);
    let clients = args.clients as usize;
    let options = drive::Options {
        connections: clients,
        measure: Some(Duration::from_secs_f64(args.time)),
        ..drive::Options::default()
    };
    let (outcome, began, seen, probed) = std::thread::scope(|scope| {
        let began = Instant::now();
        let witness = scope.spawn(|| Observations::watch(&server.dsn, args.rows, limit, &stop));
        let prober = probe.map(|(p, _)| scope.spawn(|| p.watch(&stop, limit / 4)));
        let outcome = drive::drive(
            &server.dsn,
            &options,
            |number| workload.source(number, clients, Size::of(args.rows), 1),
            |moment| {
                if let Moment::Tick(n) = moment {
                    progress.say(&format!(
                        "{}: {:.0} of {} s, {} statements",
                        workload.name,
                        began.elapsed().as_secs_f64(),
                        args.time,
                        grouped(n)
                    ));
                }
            },
        );
        stop.store(true, Ordering::Relaxed);
        let seen = witness.join();
        let probed = prober.map(|p| p.join());
        (outcome, began, seen, probed)
    });
    let seen = seen.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    let (slow, rounds) = match probed {
        Some(joined) => joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?,
        None => (Vec::new(), 0),
    };
    let outcome = outcome?;
    report.load = Some(Load::of(&outcome));
    report.probe = probe.map(|(_, directory)| Probed::of(directory.clone(), rounds, &slow));
    let seen = seen?;
    report.witness = Some(seen.summary());
    let stalls = seen.beyond.iter();
    report.stalls = stalls
        .map(|(s, waits)| s.judged(began, &slow, waits))
        .collect();
    let unexplained = report.stalls.iter().filter(|s| !s.explained).count() as u64;
    report.counted = unexplained + seen.further;
    if outcome.dead == outcome.connections {
        return Err(LabError::usage(format!(
            "{} went away and did not come back",
            server.dsn
        )));
    }
    Ok(())
}

/// A slow statement of the witness.
#[derive(Debug, Clone, Copy)]
struct Long {
    what: &'static str,
    began: Instant,
    took: Duration,
}

impl Long {
    /// A statement needs a few disk operations, one after the other. The probe's findings at the
    /// time explain it if they make up half of it.
    fn judged(&self, origin: Instant, slow: &[Slow], waits: &[Waited]) -> Stall {
        let end = self.began + self.took;
        let beside: Vec<&Slow> = slow
            .iter()
            .filter(|s| s.began < end && s.began + s.took > self.began)
            .collect();
        let sum: Duration = beside.iter().map(|s| s.took).sum();
        Stall {
            at_s: self.began.saturating_duration_since(origin).as_secs_f64(),
            took_ms: ms(self.took),
            what: self.what,
            explained: sum >= self.took / 2,
            waits: waits.to_vec(),
            probe: beside
                .iter()
                .map(|s| SlowProbe {
                    kind: s.kind,
                    ms: ms(s.took),
                })
                .collect(),
        }
    }
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// The observations of a witness.
struct Observations {
    times: Histogram<u64>,
    beyond: Vec<(Long, Vec<Waited>)>,
    /// The statements that exceeded the limit after the list was full.
    further: u64,
    errors: u64,
    lost: u64,
}

impl Observations {
    /// Sends statements until `stop`. An error only if the first connection failed.
    fn watch(
        dsn: &Dsn,
        rows: u64,
        limit: Duration,
        stop: &AtomicBool,
    ) -> Result<Observations, LabError> {
        let mut connection = Connection::open(dsn)?;
        let mut seen = Observations {
            times: Histogram::new_with_bounds(1_000, 3_600_000_000_000, 3)
                .map_err(|e| LabError::malformed(e.to_string()))?,
            beyond: Vec::new(),
            further: 0,
            errors: 0,
            lost: 0,
        };
        let mut rng = Rng::new(48_271);
        let mut waits = Waits::default();
        while !stop.load(Ordering::Relaxed) && !interrupt::requested() {
            let read = format!("SELECT c FROM sbtest1 WHERE id = {}", rng.up_to(rows));
            let update = format!(
                "UPDATE lab_witness SET n = n + 1 WHERE id = {}",
                rng.up_to(WITNESS_ROWS) - 1
            );
            for (what, sql) in [("read", read), ("update", update)] {
                let began = Instant::now();
                let answer = connection.run(sql.as_bytes());
                let took = began.elapsed();
                match answer {
                    Ok(answer) => seen.errors += u64::from(answer.error.is_some()),
                    Err(_) => {
                        seen.lost += 1;
                        match reconnect(dsn, stop) {
                            Some(new) => connection = new,
                            None => return Ok(seen),
                        }
                    }
                }
                let long = took > limit;
                let causes =
                    match long || waits.looked.is_none_or(|at| at.elapsed() >= WAITS_INTERVAL) {
                        true => waits.read_added(&mut connection),
                        false => Vec::new(),
                    };
                seen.note(Long { what, began, took }, limit, causes);
            }
            std::thread::sleep(WITNESS_PAUSE);
        }
        Ok(seen)
    }

    fn note(&mut self, one: Long, limit: Duration, waits: Vec<Waited>) {
        self.times.saturating_record(one.took.as_nanos() as u64);
        if one.took > limit {
            match self.beyond.len() < MAX_KEPT {
                true => self.beyond.push((one, waits)),
                false => self.further += 1,
            }
        }
    }

    fn summary(&self) -> WitnessResults {
        let at = |q: f64| self.times.value_at_quantile(q) as f64 / 1e6;
        WitnessResults {
            statements: self.times.len(),
            p50_ms: at(0.5),
            p99_ms: at(0.99),
            p999_ms: at(0.999),
            max_ms: self.times.max() as f64 / 1e6,
            errors: self.errors,
            lost: self.lost,
        }
    }
}

/// The server's waits, from one reading to the next.
#[derive(Default)]
struct Waits {
    looked: Option<Instant>,
    /// By site: number of waits, total microseconds, microseconds of the longest.
    last: HashMap<String, [u64; 3]>,
}

impl Waits {
    /// The waits added since the last reading. Empty if the server does not report waits.
    fn read_added(&mut self, connection: &mut Connection) -> Vec<Waited> {
        self.looked = Some(Instant::now());
        let Ok(found) = connection.query("SHOW ENGINE NFOLD CONTENTION") else {
            return Vec::new();
        };
        let column = |name: &str| found.columns.iter().position(|c| c == name);
        let names = ["Wait", "Table_name", "Index_name", "Page", "Detail"].map(column);
        let numbers = ["Waits", "Total_us", "Longest_us"].map(column);
        let mut now = Vec::with_capacity(found.rows.len());
        for row in 0..found.rows.len() {
            let text = |at: &Option<usize>| found.text(row, (*at)?);
            let parts: Vec<String> = names.iter().filter_map(text).collect();
            let number = |at: &Option<usize>| text(at)?.parse().ok();
            now.push((
                parts.join(" "),
                [0, 1, 2].map(|n| number(&numbers[n]).unwrap_or(0)),
            ));
        }
        self.added(now)
    }

    fn added(&mut self, now: Vec<(String, [u64; 3])>) -> Vec<Waited> {
        let mut added: Vec<Waited> = Vec::new();
        for (what, [count, total, longest]) in &now {
            let before = self.last.get(what).copied().unwrap_or_default();
            let grown = total.saturating_sub(before[1]);
            if grown > 0 {
                added.push(Waited {
                    what: what.clone(),
                    count: count.saturating_sub(before[0]),
                    total_ms: grown as f64 / 1000.0,
                    longest_ms: (*longest > before[2]).then_some(*longest as f64 / 1000.0),
                });
            }
        }
        self.last = now.into_iter().collect();
        let key = |w: &Waited| (w.longest_ms.unwrap_or(0.0), w.total_ms);
        added.sort_by(|a, b| {
            key(b)
                .partial_cmp(&key(a))
                .unwrap_or(std::cmp::Ordering::Equal)
        });
        added.truncate(CAUSES);
        added
    }
}

/// Replaces a lost connection. `None` if that fails.
fn reconnect(dsn: &Dsn, stop: &AtomicBool) -> Option<Connection> {
    let end = Instant::now() + RECONNECT_TIMEOUT;
    while Instant::now() < end && !stop.load(Ordering::Relaxed) && !interrupt::requested() {
        if let Ok(connection) = Connection::open(dsn) {
            return Some(connection);
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    None
}

impl Load {
    fn of(outcome: &Outcome) -> Load {
        let seconds = outcome.seconds.max(1e-9);
        let times = match outcome.event_latency.is_empty() {
            true => &outcome.latency,
            false => &outcome.event_latency,
        };
        let at = |q: f64| times.value_at_quantile(q) as f64 / 1e6;
        let errors = outcome.errors.iter().map(|(code, e)| {
            let (count, message) = (e.count, e.message.clone());
            (*code, ErrorInfo { count, message })
        });
        Load {
            seconds,
            transactions_per_s: outcome.events as f64 / seconds,
            statements_per_s: outcome.per_second_mean(),
            p50_ms: at(0.5),
            p99_ms: at(0.99),
            max_ms: times.max() as f64 / 1e6,
            errors: errors.collect(),
            lost_at: outcome.lost_at.clone(),
        }
    }
}

impl Probed {
    fn of(directory: PathBuf, rounds: u64, slow: &[Slow]) -> Probed {
        let longest = |kind: ProbeOp| {
            let all = slow.iter().filter(|s| s.kind == kind);
            all.map(|s| ms(s.took)).fold(0.0, f64::max)
        };
        Probed {
            directory,
            rounds,
            longest_read_ms: longest(ProbeOp::Read),
            longest_sync_ms: longest(ProbeOp::Sync),
            longest_sleep_ms: longest(ProbeOp::Sleep),
        }
    }
}

impl Report {
    fn lines(&self) -> String {
        let mut out = String::new();
        let _ = writeln!(
            out,
            "{} {}; {}",
            self.head.server.name, self.head.server.version, self.head.machine
        );
        if let (Some(data), Some(pool)) = (self.data_bytes, self.pool_bytes) {
            let _ = writeln!(
                out,
                "data {} MiB, pool {} MiB: {:.1} times",
                data >> 20,
                pool >> 20,
                data as f64 / pool.max(1) as f64
            );
            if data < pool {
                out.push_str("the data fit into the pool, so little is written but the log: more --rows, or a smaller pool, makes it write more\n");
            }
        }
        if let Some(load) = &self.load {
            let _ = writeln!(
                out,
                "{:.0} s of {} on {} connections: {:.0} transactions/s, p50 {:.1} ms, p99 {:.1} ms, max {:.1} ms",
                load.seconds,
                self.workload,
                self.clients,
                load.transactions_per_s,
                load.p50_ms,
                load.p99_ms,
                load.max_ms
            );
            for (code, error) in &load.errors {
                let _ = writeln!(out, "error {code} {} times: {}", error.count, error.message);
            }
        }
        if let Some(w) = &self.witness {
            let _ = writeln!(
                out,
                "witness: {} statements, p50 {:.2} ms, p99 {:.2} ms, p99.9 {:.1} ms, max {:.1} ms",
                grouped(w.statements),
                w.p50_ms,
                w.p99_ms,
                w.p999_ms,
                w.max_ms
            );
            if w.errors + w.lost > 0 {
                let _ = writeln!(
                    out,
                    "witness: {} statements refused, {} connections broken",
                    w.errors, w.lost
                );
            }
        }
        match &self.probe {
            Some(p) => {
                let _ = writeln!(
                    out,
                    "probe: longest read {:.0} ms, sync {:.0} ms, sleep {:.0} ms (0: none above a quarter of the limit)",
                    p.longest_read_ms, p.longest_sync_ms, p.longest_sleep_ms
                );
            }
            None => out.push_str(
                "probe: none; --dir DIRECTORY on the server's disk tells stalls of the disk from those of the server\n",
            ),
        }
        for stall in self.stalls.iter().take(SHOWN) {
            out.push_str(&stall.line());
        }
        if self.stalls.len() > SHOWN {
            let _ = writeln!(out, "  and {} more", self.stalls.len() - SHOWN);
        }
        if self.witness.is_some() {
            let _ = writeln!(
                out,
                "{} stalls above {} ms that the probe does not explain",
                self.counted, self.limit_ms
            );
        }
        if self.head.partial {
            out.push_str(PARTIAL);
        }
        out
    }
}

impl Stall {
    fn line(&self) -> String {
        let met: Vec<String> = self
            .probe
            .iter()
            .map(|m| format!("{} {:.0} ms", m.kind.name(), m.ms))
            .collect();
        let met = match met.is_empty() {
            true => "nothing".to_owned(),
            false => met.join(", "),
        };
        let verdict = match self.explained {
            true => "explained",
            false => "a stall",
        };
        let waits: String = self.waits.iter().map(Waited::text).collect();
        format!(
            "  {} of {:.0} ms at {:.1} s; the probe met {met}: {verdict}\n{waits}",
            self.what, self.took_ms, self.at_s
        )
    }
}

impl Waited {
    fn text(&self) -> String {
        let longest = match self.longest_ms {
            Some(ms) => format!(", the longest {ms:.0} ms"),
            None => String::new(),
        };
        format!(
            "    the server waited for: {}, {:.0} ms in {} waits{longest}\n",
            self.what, self.total_ms, self.count
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_differences_between_readings() {
        let mut waits = Waits::default();
        let row = |what: &str, numbers| (what.to_owned(), numbers);
        waits.added(vec![
            row("page load", [10, 9_000, 2_000]),
            row("commit sync", [5, 5_000, 1_000]),
        ]);
        let added = waits.added(vec![
            row("page load", [12, 10_000, 2_000]),
            row("commit sync", [5, 5_000, 1_000]),
            row("free frame", [1, 140_000, 140_000]),
        ]);
        let what: Vec<&str> = added.iter().map(|w| w.what.as_str()).collect();
        assert_eq!(what, ["free frame", "page load"]);
        assert_eq!((added[1].count, added[1].longest_ms), (2, None));
        assert_eq!(
            added[0].text().trim(),
            "the server waited for: free frame, 140 ms in 1 waits, the longest 140 ms"
        );
    }

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn probe_explains_a_stall_if_it_covers_half() {
        let origin = Instant::now();
        let long = Long {
            what: "read",
            began: origin + MS * 1000,
            took: MS * 200,
        };
        let slow = |at: u32, took: u32| Slow {
            kind: ProbeOp::Sync,
            began: origin + MS * at,
            took: MS * took,
        };
        // One that began before; two together; one after the other, but too short in total.
        assert!(long.judged(origin, &[slow(950, 100)], &[]).explained);
        assert!(
            long.judged(origin, &[slow(1010, 50), slow(1100, 50)], &[])
                .explained
        );
        assert!(!long.judged(origin, &[slow(1010, 99)], &[]).explained);
        // Before and after the statement.
        let apart = long.judged(origin, &[slow(0, 1000), slow(1200, 900)], &[]);
        assert!(!apart.explained && apart.probe.is_empty());
        assert_eq!((apart.at_s, apart.took_ms), (1.0, 200.0));
        assert!(apart.line().contains("the probe met nothing: a stall"));
        assert!(!long.judged(origin, &[], &[]).explained);
    }

    #[test]
    fn witness_keeps_the_first_stalls_and_counts_all() {
        let mut seen = Observations {
            times: Histogram::new_with_bounds(1_000, 3_600_000_000_000, 3).expect("bounds"),
            beyond: Vec::new(),
            further: 0,
            errors: 0,
            lost: 0,
        };
        for n in 0..MAX_KEPT as u32 + 10 {
            let long = Long {
                what: "update",
                began: Instant::now(),
                took: MS * (n % 2 * 150),
            };
            seen.note(long, MS * 100, Vec::new());
        }
        assert_eq!(
            seen.beyond.len() as u64 + seen.further,
            MAX_KEPT as u64 / 2 + 5
        );
        assert_eq!(seen.summary().statements, MAX_KEPT as u64 + 10);
        for _ in 0..MAX_KEPT {
            let (began, took) = (Instant::now(), MS * 101);
            seen.note(
                Long {
                    what: "read",
                    began,
                    took,
                },
                MS * 100,
                Vec::new(),
            );
        }
        assert_eq!(
            (seen.beyond.len(), seen.further),
            (MAX_KEPT, MAX_KEPT as u64 / 2 + 5)
        );
    }
}
