//! `nfold lab beside`: measures what writers cost a reader, in processor time of the thread that
//! serves the reader.
//!
//! # Picture
//! ```text
//! reader    one connection, bursts of prepared point selects; the next burst is sent ahead
//! writers   connections on other threads of the server: UPDATE … WHERE id = ?   paused, running,
//! ...
//! rounds    alone ─ beside ─ alone ─ beside …      medians; drift affects both alike
//! ```
//! The reader's thread always has work, so it is not woken for each select. Otherwise the
//! measurement would consist mostly of wakeups. The reader's thread is the one that is busiest
//! during the first bursts. A writer that the server assigns to the same thread is replaced.

use std::fmt::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;

use super::{Head, One, PARTIAL, fill, pause, positive, process, seconds};
use crate::bench::result::median;
use crate::bench::servers::Server;
use crate::bench::workload::Rng;
use crate::client::pipeline::{self, Pipeline};
use crate::client::{Command, Connection, Param};
use crate::digest::table::grouped;
use crate::output::JsonOption;
use crate::progress::Progress;
use crate::{LabError, interrupt, procfs};

pub const SCHEMA: &str = "nfold-lab-beside/1";

/// For `--help`.
pub const EXAMPLES: &str = "Examples:
  nfold lab beside --dsn mysql://app@127.0.0.1/bench --writers 4
  nfold lab beside --start-nfold --set nfold_workers=16 --json nfold.json && nfold lab beside --start-mariadb --json mariadb.json

The server runs on this machine, and its process may be looked at. Passwords: NFOLD_LAB_PASSWORD, an option file (?option_file=FILE) or
a prompt (?prompt=yes); never in a DSN.";

/// Selects per sleep of the reader's thread. Below this, wakeups are a significant part of the
/// measurement.
const BUSY: f64 = 30.0;
/// How long the reader reads to identify its thread.
const IDENTIFY_TIME: Duration = Duration::from_millis(500);
/// The pause after writers were stopped or started.
const PAUSE_AFTER_SWITCH: Duration = Duration::from_millis(300);
/// The number of selects that identify a writer's thread.
const IDENTIFY_SELECTS: usize = 4000;
/// The most connections opened per writer to find one on another thread.
const TRIES: usize = 64;
/// The number of different bursts.
const BURSTS: usize = 64;

const SELECT: &str = "SELECT c FROM sbtest1 WHERE id = ?";

/// The command line of `nfold lab beside`.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    server: One,
    /// Connections that write
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=1000))]
    writers: u32,
    /// Rows of the table
    #[arg(long, default_value_t = 200_000, value_parser = clap::value_parser!(u64).range(1..))]
    rows: u64,
    /// Rounds, each alone and beside the writers; medians are reported
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Seconds of each half of a round
    #[arg(long, default_value_t = 2.0, value_parser = seconds)]
    time: f64,
    /// Selects per burst
    #[arg(long, default_value_t = 128, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    burst: u32,
    /// Exit with status 1 if a select costs more than this many times as much beside the writers
    #[arg(long, value_name = "TIMES", value_parser = positive)]
    limit: Option<f64>,
    #[command(flatten)]
    json: JsonOption,
}

/// The result.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    #[serde(flatten)]
    pub head: Head,
    pub writers: usize,
    pub rows: u64,
    pub burst: usize,
    pub rounds: Vec<Round>,
    /// The medians of processor time per select, and their ratio.
    pub alone_us: Option<f64>,
    pub beside_us: Option<f64>,
    pub ratio: Option<f64>,
    /// The rate of the writers while they wrote.
    pub updates_per_s: Option<f64>,
    /// The median number of selects per sleep of the reader's thread.
    pub selects_a_sleep: Option<f64>,
    /// Whether the reader's thread slept so often that wakeups are a part of the figures.
    pub reader_slept: bool,
}

/// Both halves of a round.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Round {
    pub alone_us: f64,
    pub beside_us: f64,
    pub updates_per_s: f64,
    /// Selects per sleep, in the half with more sleeps.
    pub selects_a_sleep: f64,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), LabError> {
    // Commits are not synced, because a writer that waits for the disk writes little.
    let lazily = [("innodb_flush_log_at_trx_commit", "0".to_owned())];
    let server = args.server.open(&lazily, true)?;
    let pid = process(&server, "beside counts the time of its threads")?;
    let mut report = Report {
        head: Head::new(SCHEMA, &server)?,
        writers: args.writers as usize,
        rows: args.rows,
        burst: args.burst as usize,
        ..Report::default()
    };
    let mut progress = Progress::new(false);
    let done = measure(args, &server, pid, &mut report, &mut progress);
    progress.finish();
    report.head.partial = done.is_err() || interrupt::requested();
    report.conclude();
    let measured = !report.rounds.is_empty();
    super::finish(&report, &report.lines(), measured, &args.json, done)?;
    match (args.limit, report.ratio) {
        (Some(limit), Some(ratio)) if ratio > limit => Err(LabError::usage(format!(
            "a select costs {ratio:.2} times as much beside writers, more than {limit}"
        ))),
        (Some(_), _) if report.reader_slept => Err(LabError::usage(
            "the reader's thread slept too often for the ratio to say what writers cost",
        )),
        _ => Ok(()),
    }
}

fn measure(
    args: &Args,
    server: &Server,
    pid: u32,
    report: &mut Report,
    progress: &mut Progress,
) -> Result<(), LabError> {
    fill(server, args.rows, progress)?;
    let mut reader = Reader::new(server, args)?;
    let Some(thread) = busiest(pid, || reader.read(IDENTIFY_TIME).map(drop))? else {
        return Err(LabError::usage(format!(
            "cannot read the times of process {pid}'s threads"
        )));
    };
    progress.say("looking for the writers' threads");
    let writers = (0..args.writers)
        .map(|_| writer(server, pid, thread))
        .collect::<Result<Vec<_>, _>>()?;
    let gate = Gate::default();
    std::thread::scope(|scope| {
        let handles: Vec<_> = (0..)
            .zip(writers)
            .map(|(number, connection)| {
                let gate = &gate;
                scope.spawn(move || gate.write(connection, args.rows, number))
            })
            .collect();
        let done = rounds(
            args,
            &mut reader,
            &Thread { pid, task: thread },
            &gate,
            report,
            progress,
        );
        gate.end.store(true, Ordering::Relaxed);
        for handle in handles {
            match handle.join() {
                Ok(wrote) => wrote?,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        done
    })
}

fn rounds(
    args: &Args,
    reader: &mut Reader,
    thread: &Thread,
    gate: &Gate,
    report: &mut Report,
    progress: &mut Progress,
) -> Result<(), LabError> {
    let time = Duration::from_secs_f64(args.time);
    // All pages that the writers change are changed once before the measurement.
    gate.open.store(true, Ordering::Relaxed);
    pause(PAUSE_AFTER_SWITCH * 3);
    for number in 1..=args.rounds {
        progress.say(&format!("round {number} of {}", args.rounds));
        gate.open.store(false, Ordering::Relaxed);
        pause(PAUSE_AFTER_SWITCH);
        let alone = thread.half(reader, time)?;
        gate.open.store(true, Ordering::Relaxed);
        pause(PAUSE_AFTER_SWITCH);
        let (began, written) = (Instant::now(), gate.written.load(Ordering::Relaxed));
        let beside = thread.half(reader, time)?;
        let written = gate.written.load(Ordering::Relaxed) - written;
        if interrupt::requested() {
            return Ok(());
        }
        if gate.failed.load(Ordering::Relaxed) {
            return Ok(()); // The thread that joins the writer reports its error.
        }
        report.rounds.push(Round {
            alone_us: alone.us,
            beside_us: beside.us,
            updates_per_s: written as f64 / began.elapsed().as_secs_f64(),
            selects_a_sleep: alone.a_sleep.min(beside.a_sleep),
        });
    }
    Ok(())
}

/// The measurements of half a round.
struct Half {
    us: f64,
    a_sleep: f64,
}

/// The reader's thread in the server.
struct Thread {
    pid: u32,
    task: u32,
}

impl Thread {
    fn half(&self, reader: &mut Reader, time: Duration) -> Result<Half, LabError> {
        let look = || {
            procfs::thread_times(self.pid, self.task).ok_or_else(|| {
                LabError::usage("the thread that served the reader has ended: measure again")
            })
        };
        let before = look()?;
        let selects = reader.read(time)? as f64;
        let after = look()?;
        Ok(Half {
            us: (after.cpu_ns - before.cpu_ns) as f64 / 1000.0 / selects,
            a_sleep: selects / (after.sleeps - before.sleeps).max(1) as f64,
        })
    }
}

/// The thread of a process that works most during `work`.
fn busiest(pid: u32, work: impl FnOnce() -> Result<(), LabError>) -> Result<Option<u32>, LabError> {
    let look = || -> Vec<(u32, u64)> {
        let times = |task| Some((task, procfs::thread_times(pid, task)?.cpu_ns));
        procfs::tasks(pid).into_iter().filter_map(times).collect()
    };
    let before = look();
    work()?;
    let grown = look().into_iter().map(|(task, now)| {
        let then = before.iter().find(|(t, _)| *t == task);
        (now - then.map_or(0, |(_, ns)| *ns), task)
    });
    Ok(grown.max().map(|(_, task)| task))
}

/// Opens a connection whose thread is not `taken`.
fn writer(server: &Server, pid: u32, taken: u32) -> Result<Connection, LabError> {
    // Rejected connections stay open until one is found, so that a server that assigns threads in
    // turn chooses another one.
    let mut others = Vec::new();
    while others.len() < TRIES && !interrupt::requested() {
        let mut pipeline = Pipeline::new(Connection::open(&server.dsn)?);
        let mut out = Vec::new();
        for _ in 0..IDENTIFY_SELECTS / 40 {
            pipeline::text(&mut out, b"SELECT c FROM sbtest1 WHERE id = 1");
        }
        let thread = busiest(pid, || {
            for _ in 0..40 {
                pipeline.send(&out)?;
                pipeline.take(IDENTIFY_SELECTS / 40)?;
            }
            Ok(())
        })?;
        if thread != Some(taken) {
            return Ok(pipeline.into_connection());
        }
        others.push(pipeline);
    }
    if interrupt::requested() {
        return Connection::open(&server.dsn);
    }
    Err(LabError::usage(
        "the server serves all connections on the reader's thread: beside needs one with more threads",
    ))
}

/// The connection that reads.
struct Reader {
    pipeline: Pipeline,
    bursts: Vec<Vec<u8>>,
    burst: usize,
}

impl Reader {
    fn new(server: &Server, args: &Args) -> Result<Reader, LabError> {
        let mut pipeline = Pipeline::new(Connection::open(&server.dsn)?);
        let (statement, _) = pipeline.idle().prepare(SELECT)?;
        let (mut rng, mut command) = (Rng::new(7), Command::default());
        let bursts = (0..BURSTS).map(|_| {
            let mut out = Vec::new();
            for _ in 0..args.burst {
                let id = rng.up_to(args.rows) as i64;
                command.execute(0).push(Param::Int(id));
                pipeline::execution(&mut out, statement, &command);
            }
            out
        });
        Ok(Reader {
            bursts: bursts.collect(),
            pipeline,
            burst: args.burst as usize,
        })
    }

    /// Reads for `time`. Returns the number of selects.
    fn read(&mut self, time: Duration) -> Result<u64, LabError> {
        let end = Instant::now() + time;
        let mut bursts = 2;
        self.pipeline.send(&self.bursts[0])?;
        self.pipeline.send(&self.bursts[1])?;
        while Instant::now() < end && !interrupt::requested() {
            self.pipeline.take(self.burst)?;
            self.pipeline.send(&self.bursts[bursts % BURSTS])?;
            bursts += 1;
        }
        self.pipeline.take(2 * self.burst)?;
        Ok((bursts * self.burst) as u64)
    }
}

/// Starts and stops the writers.
#[derive(Default)]
struct Gate {
    open: AtomicBool,
    end: AtomicBool,
    failed: AtomicBool,
    written: AtomicU64,
}

impl Gate {
    fn write(&self, mut connection: Connection, rows: u64, number: u64) -> Result<(), LabError> {
        let mut rng = Rng::new(1000 + number);
        while !self.end.load(Ordering::Relaxed) && !interrupt::requested() {
            if !self.open.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(5));
                continue;
            }
            let (id, n) = (rng.up_to(rows), rng.next());
            let sql = format!("UPDATE sbtest1 SET c = '{n:0>119}' WHERE id = {id}");
            let answer = connection.run(sql.as_bytes()).inspect_err(|_| {
                self.failed.store(true, Ordering::Relaxed);
            })?;
            match answer.error {
                // A deadlock or a lock wait timeout between writers of the same row.
                Some(e) if e.code != 1213 && e.code != 1205 => {
                    self.failed.store(true, Ordering::Relaxed);
                    return Err(LabError::Server {
                        code: e.code,
                        message: e.message,
                    });
                }
                _ => self.written.fetch_add(1, Ordering::Relaxed),
            };
        }
        Ok(())
    }
}

impl Report {
    fn conclude(&mut self) {
        if self.rounds.is_empty() {
            return;
        }
        let middle = |get: &dyn Fn(&Round) -> f64| -> f64 {
            median(&mut self.rounds.iter().map(get).collect::<Vec<f64>>())
        };
        let (alone, beside) = (middle(&|r| r.alone_us), middle(&|r| r.beside_us));
        let (updates, sleeps) = (middle(&|r| r.updates_per_s), middle(&|r| r.selects_a_sleep));
        self.alone_us = Some(alone);
        self.beside_us = Some(beside);
        self.ratio = (alone > 0.0).then(|| beside / alone);
        self.updates_per_s = Some(updates);
        self.selects_a_sleep = Some(sleeps);
        self.reader_slept = sleeps < BUSY;
    }

    fn lines(&self) -> String {
        let mut out = String::new();
        let _ = writeln!(
            out,
            "{} {}; {}",
            self.head.server.name, self.head.server.version, self.head.machine
        );
        for round in &self.rounds {
            let _ = writeln!(
                out,
                "alone {:.2} us, beside {} writers {:.2} us; {} updates/s; {:.0} selects for each sleep",
                round.alone_us,
                self.writers,
                round.beside_us,
                grouped(round.updates_per_s as u64),
                round.selects_a_sleep
            );
        }
        if let (Some(alone), Some(beside), Some(ratio)) =
            (self.alone_us, self.beside_us, self.ratio)
        {
            let _ = writeln!(
                out,
                "medians: {alone:.2} and {beside:.2} us of processor time a select: {ratio:.2} times, beside {} updates/s",
                grouped(self.updates_per_s.unwrap_or(0.0) as u64)
            );
        }
        if self.reader_slept {
            let _ = writeln!(
                out,
                "the reader's thread slept after every {:.0} selects: waking it is a part of these figures",
                self.selects_a_sleep.unwrap_or(0.0)
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
    fn report_contains_medians_of_rounds() {
        let round = |alone, beside, sleeps| Round {
            alone_us: alone,
            beside_us: beside,
            updates_per_s: 1000.0,
            selects_a_sleep: sleeps,
        };
        let mut report = Report {
            rounds: vec![
                round(2.0, 3.0, 100.0),
                round(9.0, 2.5, 1.0),
                round(1.0, 4.0, 50.0),
            ],
            ..Report::default()
        };
        report.conclude();
        assert_eq!((report.alone_us, report.beside_us), (Some(2.0), Some(3.0)));
        assert_eq!((report.ratio, report.reader_slept), (Some(1.5), false));
        assert!(report.lines().contains("1.50 times"));
        report.rounds = vec![round(1.0, 1.0, 3.0)];
        report.conclude();
        assert!(report.reader_slept && report.lines().contains("every 3 selects"));
        let mut nothing = Report::default();
        nothing.conclude();
        assert_eq!(nothing.ratio, None);
    }

    #[test]
    fn busiest_thread_is_found() {
        let mut busy = std::process::Command::new("sh")
            .args(["-c", "while :; do :; done"])
            .spawn()
            .expect("a shell");
        let pid = busy.id();
        let ns = || procfs::thread_times(pid, pid).map_or(0, |t| t.cpu_ns);
        let found = busiest(pid, || {
            let before = ns();
            while ns() < before + 1_000_000 {
                std::thread::sleep(Duration::from_millis(1));
            }
            Ok(())
        });
        busy.kill().expect("it runs");
        busy.wait().expect("it ends");
        assert_eq!(found.expect("looks"), Some(pid));
    }
}
