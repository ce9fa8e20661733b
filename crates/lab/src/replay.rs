//! `nfold lab replay`: executes the statements of a file on one server or on two.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use crate::client::Connection;
use crate::client::drive::{self, Moment, Options, Outcome};
use crate::digest::table::{grouped, shortened};
use crate::dsn::Dsn;
use crate::output::JsonOption;
use crate::progress::Progress;
use crate::{LabError, interrupt};

mod answers;
pub(crate) mod chunk;
pub(crate) mod feed;
pub(crate) mod load;
mod prepare;
mod result;
pub(crate) mod source;
mod writes;

pub use writes::writes;

use answers::{Answered, Answers};
use chunk::Chunk;
use feed::Feed;
use load::{ReadOptions, Workload, Writes};
use result::{Comparison, Difference, Pace, Prepared, Report, Run};
use source::{Play, Player, Tally};

pub const HELP: &str = "Examples:
  nfold lab replay w.jsonl --dsn mysql://app@127.0.0.1:3306/shop --connections 64 --seconds 30
  nfold lab replay w.jsonl --dsn mysql://app@one/shop --dsn mysql://app@two/shop       # are the answers the same?
  nfold lab replay w.jsonl --dsn mysql://app@one/shop --speed 1                        # at the recorded pace
Passwords come from NFOLD_LAB_PASSWORD, MYSQL_PWD, an option file (?option_file=FILE) or the terminal (?prompt=yes).";

/// The most differences that are shown.
const MAX_SHOWN: usize = 10;

/// The command line of `nfold lab replay`.
#[derive(clap::Args)]
pub struct Args {
    /// Statements of `digest --extract`; - is standard input
    file: PathBuf,
    /// The server: mysql://user@host:port/db, or key=value,key=value; with two servers, their
    /// answers are compared
    #[arg(long, required = true, value_name = "DSN")]
    dsn: Vec<String>,
    /// Connections that run at the same time
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    connections: u32,
    /// Threads of this client (default: one per two processors, or one per 256 connections if that
    /// is more, at most one per processor)
    #[arg(long, default_value_t = 0, value_name = "N", hide_default_value = true)]
    threads: usize,
    /// Repeat the file for this time
    #[arg(long, value_name = "SECONDS", conflicts_with = "rounds", value_parser = positive)]
    seconds: Option<f64>,
    /// Execute the file this many times (default: once)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rounds: Option<u32>,
    /// Warm up for this time before the measurement
    #[arg(
        long,
        default_value_t = 0.0,
        value_name = "SECONDS",
        hide_default_value = true
    )]
    warmup: f64,
    /// Keep the recorded pace, multiplied by this factor; without it, run as fast as possible
    #[arg(long, value_name = "FACTOR", value_parser = positive)]
    speed: Option<f64>,
    /// Prepare statements and send their values in binary form
    #[arg(long)]
    prepared: bool,
    /// Keep the statements of one recorded connection on one connection, in their order
    #[arg(long)]
    keep_connections: bool,
    /// Compute a checksum of all answers (always done with two servers)
    #[arg(long)]
    checksum: bool,
    /// Also compare the order of rows within an answer
    #[arg(long)]
    ordered: bool,
    /// Run statements that write
    #[arg(long, conflicts_with = "reads_only")]
    allow_writes: bool,
    /// Skip statements that write
    #[arg(long)]
    reads_only: bool,
    #[command(flatten)]
    json: JsonOption,
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
    let mut progress = Progress::new(args.quiet);
    let mut work = Workload::open(
        &args.file,
        ReadOptions::new(policy, args.prepared),
        &mut progress,
    )?;
    progress.finish();
    if args.speed.is_some() {
        if work.times_us.is_none() {
            return Err(LabError::usage(
                "--speed needs the times of all statements, and some have none",
            ));
        }
        work.sort_by_time();
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
        statements_in_file: work.statements,
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
    if let [Some(one), Some(two), ..] = answers.as_mut_slice() {
        report.comparison = Some(compare(&work, one, two)?);
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
    args.json.write(report, &result::render(report))
}

/// Executes everything on one server.
fn on_server(
    args: &Args,
    work: &Arc<Workload>,
    mut dsn: Dsn,
) -> Result<(Run, Option<Answers>), LabError> {
    if dsn.db.is_none() && work.dbs.len() == 1 {
        dsn.db = work.dbs.first().cloned();
    }
    let version = Connection::open(&dsn)?.server_version().to_owned();
    // The prefix that MariaDB sends for old replicas.
    let version = version
        .strip_prefix("5.5.5-")
        .map_or(version.clone(), str::to_owned);
    let mut progress = Progress::new(args.quiet);
    if args.warmup > 0.0 {
        let play = play(args, work, &dsn, None)?;
        let measure = Some(Duration::from_secs_f64(args.warmup));
        drive_it(args, &dsn, &play, measure, &mut progress, "warm-up")?;
    }
    let rounds = if args.seconds.is_some() {
        None
    } else {
        Some(u64::from(args.rounds.unwrap_or(1)))
    };
    let play = play(args, work, &dsn, rounds)?;
    let outcome = drive_it(
        args,
        &dsn,
        &play,
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
    run.checksum = play.hashed.then(|| format!("{:016x}", tally.checksum));
    // The file could not be read as fast as it was executed.
    run.client_is_the_limit |= tally.starved_s > 0.05 * run.seconds * run.connections as f64;
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
        templates: work.templates.count(),
        sent_as_text: work.sent_as_text,
    });
    let answers = Arc::into_inner(play).and_then(|play| play.answers);
    match answers.as_ref().and_then(Answers::error) {
        Some(e) => Err(e),
        None => Ok((run, answers)),
    }
}

fn play(
    args: &Args,
    work: &Arc<Workload>,
    dsn: &Dsn,
    rounds: Option<u64>,
) -> Result<Arc<Play>, LabError> {
    let lanes = match args.keep_connections {
        true => args.connections as usize,
        false => 0,
    };
    let compared = args.dsn.len() > 1;
    Ok(Arc::new(Play {
        work: work.clone(),
        feed: Feed::new(work, rounds, args.speed.is_some(), lanes),
        speed: args.speed,
        ordered: args.ordered,
        began: OnceLock::new(),
        hashed: args.checksum || compared,
        answers: compared
            .then(|| Answers::new(work.statements))
            .transpose()?,
        tally: Mutex::new(Tally::default()),
        // A database named in the DSN is used for all statements.
        switch: dsn.db.is_none() && work.dbs.len() > 1,
    }))
}

fn drive_it(
    args: &Args,
    dsn: &Dsn,
    play: &Arc<Play>,
    measure: Option<Duration>,
    progress: &mut Progress,
    what: &str,
) -> Result<Outcome, LabError> {
    let options = Options {
        connections: args.connections as usize,
        threads: args.threads,
        measure,
        hash_rows: play.hashed,
        ..Options::default()
    };
    let rounds = args.seconds.is_none() && what != "warm-up";
    let of = rounds.then(|| u64::from(args.rounds.unwrap_or(1)) * play.work.statements);
    let outcome = drive::drive(
        dsn,
        &options,
        |number| Box::new(Player::new(play.clone(), number)),
        |moment| {
            if let Moment::Tick(n) = moment {
                let of = of.map_or(String::new(), |of| format!(" of {}", grouped(of)));
                progress.say(&format!("{what} on {dsn}: {}{of} statements", grouped(n)));
            }
        },
    )?;
    match play.feed.error() {
        Some(e) => Err(e),
        None => Ok(outcome),
    }
}

/// Counts equal answers, and collects the first differences.
fn compare(work: &Workload, one: &mut Answers, two: &mut Answers) -> Result<Comparison, LabError> {
    let mut comparison = Comparison {
        same: 0,
        different: 0,
        not_compared: 0,
        first_differences: Vec::new(),
    };
    let mut shown: BTreeMap<u64, [Answered; 2]> = BTreeMap::new();
    for (number, pair) in (0..).zip(one.all().zip(two.all())) {
        match (pair.0?, pair.1?) {
            (Some(a), Some(b)) if a.same(b) => comparison.same += 1,
            (Some(a), Some(b)) => {
                comparison.different += 1;
                if shown.len() < MAX_SHOWN {
                    shown.insert(number, [a, b]);
                }
            }
            _ => comparison.not_compared += 1,
        }
    }
    // The texts and line numbers of the differing statements are read from the file.
    let mut again = work.again()?;
    while comparison.first_differences.len() < shown.len() {
        let mut chunk = Chunk::default();
        if !again.next(&mut chunk)? {
            break;
        }
        let item = chunk.items[0];
        if let Some(answers) = shown.get(&item.number) {
            comparison.first_differences.push(Difference {
                line: item.line,
                text: shortened(&String::from_utf8_lossy(chunk.text(0)), 120),
                answers: answers.map(Answered::words),
            });
        }
    }
    Ok(comparison)
}
