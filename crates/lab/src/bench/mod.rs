//! `nfold lab bench`: runs workloads with several client counts on several servers in turn.
//!
//! # Picture
//! ```text
//! cores ▶ workload ▶ clients ▶ round ▶ server A, server B   (A B A B …: drift affects all alike)
//!                                         └ one window: warm-up, measured time; /proc at both ends
//! ```
//! After each window, the JSON file is rewritten. So however the run ends, the file contains all
//! complete windows.

mod args;
mod fleet;
pub(crate) mod load;
mod markdown;
mod measure;
mod replayed;
pub mod result;
pub(crate) mod servers;
pub(crate) mod started;
pub(crate) mod workload;

pub use args::{Args, EXAMPLES};

use std::fmt::Write;

use crate::bench::result::{Report, SCHEMA, ServerInfo, WorkloadInfo};
use crate::client::drive;
use crate::output::{json, put, say};
use crate::progress::Progress;
use crate::replay::load::Writes;
use crate::{LabError, interrupt, procfs};
use load::load;
use servers::Server;
use workload::{Size, Table, Workload};

/// The load: built-in workloads, or the statements of a file.
enum Load {
    Built(Vec<Workload>, Size),
    Replay(Box<replayed::Replayed>),
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), LabError> {
    if args.list {
        return say(&workload::list());
    }
    args.check()?;
    let mut progress = Progress::new(false);
    let what = match &args.replay {
        Some(path) => {
            let writes = match (args.allow_writes, args.reads_only) {
                (true, _) => Writes::Run,
                (_, true) => Writes::LeaveOut,
                _ => Writes::Refuse,
            };
            let read = replayed::Replayed::read(path, writes, &mut progress)?;
            progress.finish();
            Load::Replay(Box::new(read))
        }
        None => Load::Built(workload::parse(args.workloads())?, Size::of(args.rows)),
    };
    let mut servers = fleet::fleet(args)?;
    if let Load::Replay(replayed) = &what {
        for server in &mut servers {
            replayed.choose_database(&mut server.dsn);
        }
    }
    if let Load::Built(workloads, size) = &what {
        let mut tables: Vec<Table> = workloads.iter().map(|w| w.table).collect();
        tables.sort();
        tables.dedup();
        for server in servers.iter().filter(|s| !s.is_floor()) {
            load(&server.dsn, &tables, *size, &mut |note| {
                progress.say(&format!("{}: {note}", server.name))
            })?;
        }
    }
    let mut report = header(args, &servers, &what)?;
    let result = sweep(args, &mut servers, &what, &mut report, &mut progress);
    progress.finish();
    report.partial = result.is_err() || interrupt::requested();
    report.summarise();
    match args.json.file() {
        Some(path) if args.json.takes_output() => put(path, &json(&report)?)?,
        Some(path) => report.write(path)?,
        None => {}
    }
    if let Some(path) = args.markdown() {
        put(path, markdown::table(&report).as_bytes())?;
    }
    let mut lines = String::new();
    if args.markdown().is_none_or(|path| path.as_os_str() != "-") {
        lines.push_str(&report.table());
    }
    if report.partial {
        lines.push_str("partial: the run did not come to its end\n");
    }
    lines.push_str(&marks(&report));
    if !args.json.takes_output() {
        say(&lines)?;
    }
    result
}

fn header(args: &Args, servers: &[Server], what: &Load) -> Result<Report, LabError> {
    let mut infos = Vec::new();
    for server in servers {
        let (version, settings) = server.describe()?;
        let dsn = server.dsn.to_string();
        infos.push(ServerInfo {
            name: server.name.clone(),
            dsn,
            version,
            local: server.pid.is_some(),
            floor: server.is_floor(),
            settings,
        });
    }
    let workloads = match what {
        Load::Built(workloads, _) => workloads
            .iter()
            .map(|w| WorkloadInfo {
                name: w.name.clone(),
                about: w.about.to_owned(),
                statement: w.example(),
            })
            .collect(),
        Load::Replay(replayed) => vec![replayed.info()?],
    };
    let threads = drive::Options {
        connections: args.clients().iter().copied().max().unwrap_or(1),
        threads: args.client_threads,
        ..Default::default()
    };
    Ok(Report {
        schema: SCHEMA.to_owned(),
        started: jiff::Timestamp::now()
            .strftime("%Y-%m-%d %H:%M:%S UTC")
            .to_string(),
        machine: procfs::describe_machine(),
        processors: std::thread::available_parallelism().map_or(1, usize::from),
        lab_version: env!("CARGO_PKG_VERSION").to_owned(),
        command: std::env::args().collect(),
        client_threads: drive::thread_count(&threads),
        client_io: drive::io(!args.no_io_uring).to_owned(),
        warmup_s: args.warmup(),
        window_s: args.window(),
        count: args.count,
        repeat: args.repeat,
        rows: if args.replay.is_some() { 0 } else { args.rows },
        servers: infos,
        workloads,
        ..Report::default()
    })
}

fn sweep(
    args: &Args,
    servers: &mut [Server],
    what: &Load,
    report: &mut Report,
    progress: &mut Progress,
) -> Result<(), LabError> {
    let cores: Vec<Option<usize>> = if args.cores.is_empty() {
        vec![None]
    } else {
        args.cores.iter().map(|c| Some(*c)).collect()
    };
    let names: Vec<String> = report.workloads.iter().map(|w| w.name.clone()).collect();
    let kinds = kinds(args, servers, what, names.len());
    let (total, mut done) = (cores.len() * kinds.len(), 0);
    for (i, cores) in cores.iter().enumerate() {
        if let Some(cores) = cores {
            for server in servers.iter_mut() {
                // Servers started for this run already use the first count.
                if i > 0 || server.is_given() {
                    server.bind(*cores)?;
                }
            }
        }
        for kind in &kinds {
            if interrupt::requested() {
                return Ok(());
            }
            let (name, server) = (&names[kind.workload], &servers[kind.server]);
            let label = format!(
                "{name}, {} clients, {}, round {}: {done} of {total} windows",
                kind.clients, server.name, kind.round
            );
            let window = measure::Window {
                server,
                workload: name,
                clients: kind.clients,
                cores: *cores,
                round: kind.round,
                warmup: args.warmup(),
                seconds: args.window(),
                count: args.count,
                threads: args.client_threads,
                together: !args.no_io_uring,
            };
            let seed = (kind.round * 1000 + kind.clients) as u64;
            let sample = window.run(
                |connection| match what {
                    Load::Built(workloads, size) => {
                        workloads[kind.workload].source(connection, kind.clients, *size, seed)
                    }
                    Load::Replay(replayed) => {
                        replayed.source(connection, kind.clients, server.dsn.db.is_some())
                    }
                },
                || progress.say(&label),
            )?;
            done += 1;
            let Some(mut sample) = sample else {
                return Ok(());
            };
            if let Load::Replay(replayed) = what
                && replayed.starved(kind.clients as f64 * sample.seconds)?
                && !sample.marks.iter().any(|m| m == measure::CLIENT_LIMIT)
            {
                sample.marks.push(measure::CLIENT_LIMIT.to_owned());
            }
            report.samples.push(sample);
            report.partial = true;
            report.summarise();
            if let Some(path) = args.json.file().filter(|_| !args.json.takes_output()) {
                report.write(path)?;
            }
        }
    }
    Ok(())
}

/// A window of a sweep.
struct SweepWindow {
    workload: usize,
    clients: usize,
    /// Starts at 1.
    round: usize,
    server: usize,
}

/// The windows with one number of cores, in their order. The floor server takes part only in
/// workloads that it can answer.
fn kinds(args: &Args, servers: &[Server], what: &Load, workloads: usize) -> Vec<SweepWindow> {
    let fits = |workload: usize| match what {
        Load::Built(workloads, _) => workloads[workload].fits_the_floor(),
        Load::Replay(_) => false,
    };
    let mut kinds = Vec::new();
    for workload in 0..workloads {
        for clients in args.clients().iter().copied() {
            for round in 1..=args.repeat {
                let there = |server: &usize| !servers[*server].is_floor() || fits(workload);
                kinds.extend((0..servers.len()).filter(there).map(|server| SweepWindow {
                    workload,
                    clients,
                    round,
                    server,
                }));
            }
        }
    }
    kinds
}

/// Explains the marks of the table that occur in it.
fn marks(report: &Report) -> String {
    let mut out = String::new();
    let has = |mark: &str| {
        report
            .summary
            .iter()
            .any(|s| s.marks.iter().any(|m| m == mark))
    };
    if has(measure::CLIENT_LIMIT) {
        let _ = writeln!(
            out,
            "{}: a thread of the client had no time left; more --client-threads, or another machine for it",
            measure::CLIENT_LIMIT
        );
    }
    if has(measure::NOT_QUIET) {
        let _ = writeln!(
            out,
            "{}: other programs, or the hypervisor, took more than {} processors",
            measure::NOT_QUIET,
            measure::BUSY_CORES
        );
    }
    if has(measure::LOST) {
        let _ = writeln!(
            out,
            "{}: connections broke and were made anew",
            measure::LOST
        );
    }
    out
}
