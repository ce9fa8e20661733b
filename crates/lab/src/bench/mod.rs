//! `nfold lab bench`: workloads over client counts, on servers in turn.
//!
//! # Picture
//! ```text
//! cores ▶ workload ▶ clients ▶ round ▶ server A, server B     (A B A B …: drift of the machine meets all alike)
//!                                         └ one window: warm-up, measured time; /proc at both edges
//! ```
//! After each window the JSON file is written anew, so whatever ends the run leaves whole windows.

mod load;
mod measure;
mod replayed;
pub mod result;
mod servers;
mod workload;

use std::path::PathBuf;

use crate::bench::result::{Report, SCHEMA, ServerInfo, WorkloadInfo};
use crate::dsn::Dsn;
use crate::progress::Progress;
use crate::{LabError, interrupt, procfs};
use load::load;
use servers::{Kind, Server};
use workload::{Size, Table, Workload};

/// For `--help`.
pub const EXAMPLES: &str = "Examples:
  nfold lab bench --list
  nfold lab bench --start-nfold --start-mariadb --workloads in_list_200,in_list_200:prepared --clients 1,8,64 --json r.json
  nfold lab bench --compare old=mysql://app@db1/bench --compare new=mysql://app@db2/bench --workloads sysbench --clients 64
  nfold lab bench --dsn mysql://app@127.0.0.1/shop --replay w.jsonl --clients 1,2,4,8,16,32,64
  nfold lab bench --start-nfold --cores 1,2,4,8 --clients 64 --json cores.json

Passwords: NFOLD_LAB_PASSWORD, an option file (?option_file=FILE) or a prompt (?prompt=yes); never in a DSN.";

/// Command line of `nfold lab bench`.
#[derive(clap::Args)]
pub struct Args {
    /// What to run: names, groups (in-list, keys, 2007, sysbench, all), with :prepared and :trx; parted by commas
    #[arg(long, default_value = "in_list_200")]
    workloads: String,
    /// Name the workloads and end
    #[arg(long)]
    list: bool,
    /// Run the statements of a file (`digest --extract`) in place of built-in workloads
    #[arg(long, value_name = "FILE")]
    replay: Option<PathBuf>,
    /// Let --replay run statements that write
    #[arg(long)]
    allow_writes: bool,
    /// A server, named "server" (see `nfold lab dsn --help`); its database gets the tables
    #[arg(long)]
    dsn: Option<String>,
    /// A server with a name; may be given again and again
    #[arg(long, value_name = "NAME=DSN")]
    compare: Vec<String>,
    /// Start a MariaDB from its package for this run
    #[arg(long)]
    start_mariadb: bool,
    /// Start this program as a server for this run
    #[arg(long)]
    start_nfold: bool,
    /// Buffer pool of servers started here, in MiB
    #[arg(long, default_value_t = 2048)]
    pool_mib: u64,
    /// Client counts, parted by commas
    #[arg(long, value_delimiter = ',', default_value = "1,8,64")]
    clients: Vec<usize>,
    /// Bind the servers to so many processors, one count after the other
    #[arg(long, value_delimiter = ',')]
    cores: Vec<usize>,
    /// Rows of each table
    #[arg(long, default_value_t = 1_000_000)]
    rows: u64,
    /// Seconds before a window that are not counted
    #[arg(long, default_value_t = 2.0)]
    warmup: f64,
    /// Seconds of a window
    #[arg(long, default_value_t = 5.0)]
    time: f64,
    /// End a window after so many statements of each client, without warm-up, in place of after a time
    #[arg(long, conflicts_with_all = ["time", "warmup"])]
    count: Option<u64>,
    /// Windows of each kind; the median counts
    #[arg(long, default_value_t = 3)]
    repeat: usize,
    /// Threads of the client; 0: one for two processors
    #[arg(long, default_value_t = 0)]
    client_threads: usize,
    /// Write everything there as JSON (schema: docs/lab.md), anew after each window
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// What is run: built-in, or from a file.
enum Load {
    Built(Vec<Workload>, Size),
    Replay(replayed::Replayed),
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), LabError> {
    if args.list {
        print!("{}", workload::list());
        return Ok(());
    }
    check(args)?;
    let what = match &args.replay {
        Some(path) => Load::Replay(replayed::Replayed::read(path, args.allow_writes)?),
        None => Load::Built(workload::parse(&args.workloads)?, Size::of(args.rows)),
    };
    let mut servers = servers(args)?;
    let mut progress = Progress::new(false);
    if let Load::Built(workloads, size) = &what {
        let mut tables: Vec<Table> = workloads.iter().map(|w| w.table).collect();
        tables.sort();
        tables.dedup();
        for server in &servers {
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
    if let Some(path) = &args.json {
        report.write(path)?;
    }
    print!("{}", report.table());
    if report.partial {
        println!("partial: the run did not come to its end");
    }
    explain_marks(&report);
    result
}

fn check(args: &Args) -> Result<(), LabError> {
    let bad = |what: &str| Err(LabError::usage(what.to_owned()));
    if args.clients.is_empty() || args.clients.contains(&0) {
        return bad("--clients: counts from 1 on, such as 1,8,64");
    }
    if args.cores.contains(&0) {
        return bad("--cores: counts from 1 on, such as 1,2,4");
    }
    let have = std::thread::available_parallelism().map_or(1, usize::from);
    if let Some(most) = args.cores.iter().find(|c| **c > have) {
        return Err(LabError::usage(format!(
            "--cores {most}: this machine has {have}"
        )));
    }
    if args.repeat == 0 || args.rows == 0 || args.count == Some(0) {
        return bad("--repeat, --rows and --count: at least 1");
    }
    let day = 86_400.0;
    let window = args.time > 0.0 && args.time <= day;
    if !window || !(0.0..=day).contains(&args.warmup) {
        return bad("--time and --warmup: seconds, at most a day");
    }
    Ok(())
}

fn servers(args: &Args) -> Result<Vec<Server>, LabError> {
    let mut servers = Vec::new();
    if let Some(dsn) = &args.dsn {
        servers.push(Server::given("server", Dsn::open(dsn)?));
    }
    for pair in &args.compare {
        let named = pair
            .split_once('=')
            .filter(|(name, _)| !name.contains(['/', ':', '@']) && !name.is_empty());
        let Some((name, dsn)) = named else {
            return Err(LabError::usage(format!(
                "--compare {pair:?}: NAME=DSN, such as old=mysql://app@10.0.0.5/shop"
            )));
        };
        servers.push(Server::given(name, Dsn::open(dsn)?));
    }
    for (wanted, name, kind) in [
        (args.start_nfold, "nfold", Kind::Nfold),
        (args.start_mariadb, "mariadb", Kind::MariaDb),
    ] {
        if wanted {
            eprintln!("starting {name}");
            servers.push(Server::start(
                name,
                kind,
                args.pool_mib,
                args.cores.first().copied(),
            )?);
        }
    }
    for (i, server) in servers.iter().enumerate() {
        if servers[..i].iter().any(|s| s.name == server.name) {
            return Err(LabError::usage(format!(
                "two servers are called {:?}",
                server.name
            )));
        }
        if server.dsn.db.is_none() && args.replay.is_none() {
            return Err(LabError::usage(format!(
                "{}: the DSN names no database for the tables",
                server.name
            )));
        }
    }
    match servers.is_empty() {
        true => Err(LabError::usage(
            "no server: give --dsn, --compare NAME=DSN, --start-nfold or --start-mariadb",
        )),
        false => Ok(servers),
    }
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
        Load::Replay(replayed) => vec![replayed.info()],
    };
    let threads = crate::client::drive::Options {
        connections: usize::MAX,
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
        client_threads: crate::client::drive::thread_count(&threads),
        warmup_s: if args.count.is_some() {
            0.0
        } else {
            args.warmup
        },
        window_s: if args.count.is_some() { 0.0 } else { args.time },
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
    let total = cores.len() * names.len() * args.clients.len() * args.repeat * servers.len();
    let mut done = 0;
    for (i, cores) in cores.iter().enumerate() {
        if let Some(cores) = cores {
            for server in servers.iter_mut() {
                // Servers started for this run are on the first count already.
                if i > 0 || server.is_given() {
                    server.bind(*cores)?;
                }
            }
        }
        for (number, name) in names.iter().enumerate() {
            for clients in &args.clients {
                for round in 1..=args.repeat {
                    for server in servers.iter() {
                        if interrupt::requested() {
                            return Ok(());
                        }
                        let label = format!(
                            "{name}, {clients} clients, {}, round {round}: {done} of {total} windows",
                            server.name
                        );
                        let window = measure::Window {
                            server,
                            workload: name,
                            clients: *clients,
                            cores: *cores,
                            round,
                            warmup: args.warmup,
                            seconds: args.time,
                            count: args.count,
                            threads: args.client_threads,
                        };
                        let seed = (round * 1000 + clients) as u64;
                        let sample = window.run(
                            |connection| match what {
                                Load::Built(workloads, size) => {
                                    workloads[number].source(connection, *clients, *size, seed)
                                }
                                Load::Replay(replayed) => replayed.source(connection, *clients),
                            },
                            || progress.say(&label),
                        )?;
                        done += 1;
                        let Some(sample) = sample else {
                            return Ok(());
                        };
                        report.samples.push(sample);
                        report.partial = true;
                        report.summarise();
                        if let Some(path) = &args.json {
                            report.write(path)?;
                        }
                    }
                }
            }
        }
    }
    Ok(())
}

/// What the notes of the table mean, where they occur.
fn explain_marks(report: &Report) {
    let has = |mark: &str| {
        report
            .summary
            .iter()
            .any(|s| s.marks.iter().any(|m| m == mark))
    };
    if has(measure::CLIENT_LIMIT) {
        println!(
            "{}: a thread of the client had no time left; more --client-threads, or another machine for it",
            measure::CLIENT_LIMIT
        );
    }
    if has(measure::NOT_QUIET) {
        println!(
            "{}: other programs, or the hypervisor, took more than {} processors",
            measure::NOT_QUIET,
            measure::BUSY_CORES
        );
    }
    if has(measure::LOST) {
        println!("{}: connections broke and were made anew", measure::LOST);
    }
}
