//! `nfold lab replay`: plays the statements of a file against one server or several.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use nfold_sql::lexer::LexMode;

use crate::client::Connection;
use crate::client::drive::{self, Moment, Options, Outcome};
use crate::digest::table::{grouped, shortened};
use crate::dsn::Dsn;
use crate::output::put;
use crate::progress::Progress;
use crate::{LabError, interrupt};

mod load;
mod prepare;
mod result;
mod source;
mod writes;

pub use writes::writes;

use load::{Workload, Writes};
use prepare::{Execution, Templates};
use result::{Comparison, Difference, Pace, Prepared, Report, Run};
use source::{Play, Player, Seen, Share, Tally};

pub const HELP: &str = "Examples:
  nfold lab replay w.jsonl --dsn mysql://app@127.0.0.1:3306/shop --connections 64 --seconds 30
  nfold lab replay w.jsonl --dsn mysql://app@one/shop --dsn mysql://app@two/shop       (are the answers the same?)
  nfold lab replay w.jsonl --dsn mysql://app@one/shop --speed 1                        (at the recorded pace)
Passwords come from NFOLD_LAB_PASSWORD, MYSQL_PWD, an option file (?option_file=FILE) or the terminal (?prompt=yes).";

/// Differences that are shown.
const SHOWN: usize = 10;

/// Command line of `nfold lab replay`.
#[derive(clap::Args)]
pub struct Args {
    /// Statements of `digest --extract`; - is standard input
    file: PathBuf,
    /// The server: mysql://user@host:port/db, or key=value,key=value. Given twice, the answers of the two are compared
    #[arg(long, required = true, value_name = "DSN")]
    dsn: Vec<String>,
    /// Connections that run at the same time
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    connections: u32,
    /// Threads of this client (one for two processors)
    #[arg(long, default_value_t = 0, value_name = "N", hide_default_value = true)]
    threads: usize,
    /// Play the file again and again for so long
    #[arg(long, value_name = "SECONDS", conflicts_with = "rounds", value_parser = positive)]
    seconds: Option<f64>,
    /// Play the file so many times (once)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rounds: Option<u32>,
    /// Play it for so long before anything counts
    #[arg(
        long,
        default_value_t = 0.0,
        value_name = "SECONDS",
        hide_default_value = true
    )]
    warmup: f64,
    /// Keep the recorded pace, or so many times of it; without it, as fast as possible
    #[arg(long, value_name = "FACTOR", value_parser = positive)]
    speed: Option<f64>,
    /// Prepare statements and send their values in binary form
    #[arg(long)]
    prepared: bool,
    /// Statements of one recorded connection stay on one connection, in their order
    #[arg(long)]
    keep_connections: bool,
    /// Make a checksum of all answers (done anyway with two servers)
    #[arg(long)]
    checksum: bool,
    /// The order of rows within an answer counts, too
    #[arg(long)]
    ordered: bool,
    /// Run statements that write
    #[arg(long, conflicts_with = "reads_only")]
    allow_writes: bool,
    /// Leave out statements that write
    #[arg(long)]
    reads_only: bool,
    /// Write JSON (docs/lab.md has its schema); - is standard output, in place of the text
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Show no progress
    #[arg(long)]
    quiet: bool,
}

fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value > 0.0 && value.is_finite() => Ok(value),
        _ => Err("must be a number above 0".into()),
    }
}

pub fn run(args: &Args) -> Result<(), LabError> {
    if !(0.0..=86_400.0).contains(&args.warmup) {
        return Err(LabError::usage(
            "--warmup is a number of seconds up to a day",
        ));
    }
    let dsns = args
        .dsn
        .iter()
        .map(|dsn| Dsn::open(dsn))
        .collect::<Result<Vec<_>, _>>()?;
    let policy = match (args.allow_writes, args.reads_only) {
        (true, _) => Writes::Run,
        (_, true) => Writes::LeaveOut,
        _ => Writes::Refuse,
    };
    let mut work = Workload::open(&args.file, policy, LexMode::default())?;
    if args.speed.is_some() && !work.sort_by_time() {
        return Err(LabError::usage(
            "--speed needs the times of all statements, and some have none",
        ));
    }
    if let Some(why) = &work.first_broken {
        eprintln!(
            "nfold lab: {} lines are no statements and are skipped ({why})",
            grouped(work.broken)
        );
    }
    let work = Arc::new(work);
    let mut report = Report {
        schema: result::SCHEMA,
        file: args.file.display().to_string(),
        statements_in_file: work.items.len(),
        lines_skipped: work.broken,
        writes_left_out: work.left_out,
        partial: false,
        runs: Vec::new(),
        comparison: None,
    };
    let mut answers = Vec::new();
    for dsn in &dsns {
        if interrupt::requested() {
            break;
        }
        let (run, seen) = on_server(args, &work, dsn.clone())?;
        report.runs.push(run);
        answers.push(seen);
    }
    if let [one, two, ..] = answers.as_slice() {
        report.comparison = Some(compare(&work, one, two));
    }
    report.partial = interrupt::requested();
    write(args, &report)?;
    match &report.comparison {
        Some(comparison) if comparison.different > 0 => Err(LabError::Malformed(format!(
            "the answers of {} statements differ",
            grouped(comparison.different)
        ))),
        _ => Ok(()),
    }
}

fn write(args: &Args, report: &Report) -> Result<(), LabError> {
    if let Some(file) = &args.json {
        let mut text =
            serde_json::to_vec_pretty(report).map_err(|e| LabError::Malformed(e.to_string()))?;
        text.push(b'\n');
        put(file, &text)?;
        if file.as_os_str() == "-" {
            return Ok(());
        }
    }
    put(Path::new("-"), result::render(report).as_bytes())
}

/// Plays it all against one server.
fn on_server(
    args: &Args,
    work: &Arc<Workload>,
    mut dsn: Dsn,
) -> Result<(Run, Vec<Seen>), LabError> {
    if dsn.db.is_none() && work.dbs.len() == 1 {
        dsn.db = work.dbs.first().cloned();
    }
    let version = Connection::open(&dsn)?.server_version().to_owned();
    // What MariaDB puts in front for old replicas.
    let version = version
        .strip_prefix("5.5.5-")
        .map_or(version.clone(), str::to_owned);
    let mut progress = Progress::new(args.quiet);
    if args.warmup > 0.0 {
        let play = play(args, work, &dsn, None);
        let measure = Some(Duration::from_secs_f64(args.warmup));
        drive_it(args, &dsn, play, measure, &mut progress, "warm-up")?;
    }
    let rounds = if args.seconds.is_some() {
        None
    } else {
        Some(args.rounds.unwrap_or(1) as usize)
    };
    let play = play(args, work, &dsn, rounds);
    let outcome = drive_it(
        args,
        &dsn,
        play.clone(),
        args.seconds.map(Duration::from_secs_f64),
        &mut progress,
        "replay",
    )?;
    progress.finish();
    let protocol = if args.prepared { "prepared" } else { "text" };
    let mut run = Run::of(dsn.to_string(), version, protocol, &outcome);
    let tally = play
        .tally
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clone();
    run.checksum = play
        .answers
        .as_ref()
        .map(|_| format!("{:016x}", tally.checksum));
    run.use_statements = tally.switches;
    run.pace = args.speed.map(|speed| Pace {
        speed,
        lag_mean_s: if tally.lagged == 0 {
            0.0
        } else {
            tally.lag_sum / tally.lagged as f64
        },
        lag_max_s: tally.lag_max,
    });
    run.prepared = args.prepared.then(|| Prepared {
        templates: play.templates.count(),
        sent_as_text: play
            .executions
            .iter()
            .filter(|execution| execution.is_none())
            .count(),
    });
    let seen = Arc::into_inner(play)
        .and_then(|play| play.answers)
        .unwrap_or_default();
    Ok((run, seen))
}

fn play(args: &Args, work: &Arc<Workload>, dsn: &Dsn, rounds: Option<usize>) -> Arc<Play> {
    let mut templates = Templates::default();
    let executions: Vec<Option<Execution>> = if args.prepared {
        work.items
            .iter()
            .map(|item| templates.add(work.text(item), LexMode::default()))
            .collect()
    } else {
        Vec::new()
    };
    let hashed = args.checksum || args.dsn.len() > 1;
    let share = if args.keep_connections {
        Share::Kept
    } else {
        Share::Any
    };
    Arc::new(Play {
        work: work.clone(),
        executions,
        templates,
        rounds,
        speed: args.speed,
        ordered: args.ordered,
        queues: (share == Share::Kept).then(|| queues(work, args.connections as usize)),
        cursor: AtomicUsize::new(0),
        began: OnceLock::new(),
        answers: hashed.then(|| work.items.iter().map(|_| Seen::default()).collect()),
        tally: Mutex::new(Tally::default()),
        // A database that the DSN names stands for all.
        switch: dsn.db.is_none() && work.dbs.len() > 1,
    })
}

/// The statements of each recorded connection, on one of `connections`.
fn queues(work: &Workload, connections: usize) -> Vec<Vec<u32>> {
    let (mut queues, mut known) = (vec![Vec::new(); connections], BTreeMap::new());
    for (number, item) in work.items.iter().enumerate() {
        let next = known.len();
        let at = *known.entry(item.connection).or_insert(next);
        queues[at % connections].push(number as u32);
    }
    queues
}

fn drive_it(
    args: &Args,
    dsn: &Dsn,
    play: Arc<Play>,
    measure: Option<Duration>,
    progress: &mut Progress,
    what: &str,
) -> Result<Outcome, LabError> {
    let options = Options {
        connections: args.connections as usize,
        threads: args.threads,
        measure,
        hash_rows: play.answers.is_some(),
        ..Options::default()
    };
    let of = play.rounds.map(|rounds| rounds * play.work.items.len());
    drive::drive(
        dsn,
        &options,
        |number| Box::new(Player::new(play.clone(), number)),
        |moment| {
            if let Moment::Tick(n) = moment {
                let of = of.map_or(String::new(), |of| format!(" of {}", grouped(of as u64)));
                progress.say(&format!("{what} on {dsn}: {}{of} statements", grouped(n)));
            }
        },
    )
}

fn compare(work: &Workload, one: &[Seen], two: &[Seen]) -> Comparison {
    let mut comparison = Comparison {
        same: 0,
        different: 0,
        not_compared: 0,
        first_differences: Vec::new(),
    };
    for (item, (a, b)) in work.items.iter().zip(one.iter().zip(two)) {
        match (a.get(), b.get()) {
            (Some((a, _)), Some((b, _))) if a == b => comparison.same += 1,
            (Some((_, a)), Some((_, b))) => {
                comparison.different += 1;
                if comparison.first_differences.len() < SHOWN {
                    let text = shortened(&String::from_utf8_lossy(work.text(item)), 120);
                    comparison.first_differences.push(Difference {
                        line: item.line,
                        text,
                        answers: [a, b],
                    });
                }
            }
            _ => comparison.not_compared += 1,
        }
    }
    comparison
}
