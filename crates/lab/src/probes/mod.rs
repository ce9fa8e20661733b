//! Commands that answer one question about one server: `stalls`, `beside`, `commits`, `idle`.
//!
//! ```text
//! One (--dsn, or a server started here) ──▶ Server ──▶ load, witness, disk probe ──▶ Head +
//! figures
//! ```
//! Their shared parts are here and in [`disk`]. The load comes from `bench`'s workloads, through
//! `client::drive`.

pub mod beside;
pub mod commits;
pub mod disk;
pub mod idle;
pub mod stalls;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::bench::load::load;
use crate::bench::result::ServerInfo;
use crate::bench::servers::Server;
use crate::bench::started::{ServerKind, Setup};
use crate::bench::workload::{Size, Table};
use crate::dsn::Dsn;
use crate::output::JsonOption;
use crate::progress::Progress;
use crate::{LabError, interrupt, procfs};

/// The server of a probe.
#[derive(clap::Args)]
pub struct One {
    /// The server (see `nfold lab dsn --help`); its database receives the tables
    #[arg(long)]
    dsn: Option<String>,
    /// Instead of --dsn: start this program as a server
    #[arg(long)]
    start_nfold: bool,
    /// Instead of --dsn: start a MariaDB from its package
    #[arg(long)]
    start_mariadb: bool,
    /// Buffer pool of a server started here, in MiB (512)
    #[arg(long, value_name = "MIB")]
    pool_mib: Option<u64>,
    /// Another setting of a server started here; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,
    /// A directory on the server's disk, for the probe's file and for the data of a server started
    /// here
    #[arg(long, value_name = "DIRECTORY")]
    dir: Option<PathBuf>,
}

const POOL_MIB: u64 = 512;

impl One {
    /// Connects to the server, or starts it with `settings`, which the command line can override.
    /// `tables`: the DSN must name a database.
    fn open(&self, settings: &[(&str, String)], tables: bool) -> Result<Server, LabError> {
        let given = [self.dsn.is_some(), self.start_nfold, self.start_mariadb];
        if given.iter().filter(|g| **g).count() != 1 {
            return Err(LabError::usage(
                "one server: give --dsn, --start-nfold or --start-mariadb",
            ));
        }
        if let Some(dir) = &self.dir
            && !dir.is_dir()
        {
            return Err(LabError::usage(format!(
                "--dir: {} is no directory",
                dir.display()
            )));
        }
        if let Some(dsn) = &self.dsn {
            if self.pool_mib.is_some() || !self.set.is_empty() {
                return Err(LabError::usage(
                    "--pool-mib and --set are for a server that is started here",
                ));
            }
            let server = Server::given("server", Dsn::open(dsn)?);
            if tables && server.dsn.db.is_none() {
                return Err(LabError::usage(format!(
                    "{}: the DSN names no database for the tables",
                    server.dsn
                )));
            }
            crate::client::Connection::open(&server.dsn)?;
            return Ok(server);
        }
        let mut all: Vec<(String, String)> = settings
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.clone()))
            .collect();
        for pair in &self.set {
            match pair.split_once('=') {
                Some((name, value)) if !name.trim().is_empty() => {
                    all.push((name.trim().to_owned(), value.trim().to_owned()));
                }
                _ => {
                    return Err(LabError::usage(format!(
                        "--set {pair:?}: NAME=VALUE, such as innodb_redo_log_capacity=256M"
                    )));
                }
            }
        }
        let setup = Setup {
            pool_mib: self.pool_mib.unwrap_or(POOL_MIB),
            cores: None,
            settings: all,
            under: self.dir.clone(),
        };
        let (name, kind) = match self.start_nfold {
            true => ("nfold", ServerKind::Nfold),
            false => ("mariadb", ServerKind::MariaDb),
        };
        eprintln!("starting {name}");
        Server::start(name, kind, setup)
    }

    /// The directory on the server's disk, if known.
    fn disk(&self) -> Option<PathBuf> {
        let own = self.dsn.is_none().then(std::env::temp_dir);
        self.dir.clone().or(own)
    }
}

/// The server's process id. The error explains `why` it is needed.
fn process(server: &Server, why: &str) -> Result<u32, LabError> {
    server.pid.ok_or_else(|| {
        LabError::usage(format!(
            "{}: no process of this machine that may be looked at; {why}",
            server.dsn
        ))
    })
}

/// The beginning of every result.
#[derive(Debug, Default, Serialize)]
pub struct Head {
    pub schema: &'static str,
    /// Whether Ctrl-C ended the command early. The existing results are valid, the others are
    /// absent.
    pub partial: bool,
    /// In UTC.
    pub started: String,
    pub machine: String,
    pub processors: usize,
    pub lab_version: &'static str,
    pub command: Vec<String>,
    pub server: ServerInfo,
}

impl Head {
    fn new(schema: &'static str, server: &Server) -> Result<Head, LabError> {
        let (version, settings) = server.describe()?;
        Ok(Head {
            schema,
            partial: false,
            started: jiff::Timestamp::now()
                .strftime("%Y-%m-%d %H:%M:%S UTC")
                .to_string(),
            machine: procfs::describe_machine(),
            processors: std::thread::available_parallelism().map_or(1, usize::from),
            lab_version: env!("CARGO_PKG_VERSION"),
            command: std::env::args().collect(),
            server: ServerInfo {
                name: server.name.clone(),
                dsn: server.dsn.to_string(),
                version,
                local: server.pid.is_some(),
                floor: false,
                settings,
            },
        })
    }
}

/// Ends a command: writes and prints the results, even if an error cut the measurement short, and
/// then returns the error.
fn finish(
    report: &impl Serialize,
    lines: &str,
    measured: bool,
    json: &JsonOption,
    done: Result<(), LabError>,
) -> Result<(), LabError> {
    if measured || json.file().is_some() || done.is_ok() {
        let shown = if measured || done.is_ok() { lines } else { "" };
        json.write(report, shown)?;
    }
    done
}

/// The last line of a result that Ctrl-C cut short.
const PARTIAL: &str = "partial: the run did not come to its end\n";

/// Makes sure that sysbench's table exists.
fn fill(server: &Server, rows: u64, progress: &mut Progress) -> Result<(), LabError> {
    load(&server.dsn, &[Table::Sbtest], Size::of(rows), &mut |note| {
        progress.say(&format!("{}: {note}", server.name));
    })
}

/// Sleeps. Ctrl-C ends the sleep.
fn pause(time: Duration) {
    let end = Instant::now() + time;
    while !interrupt::requested() {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        std::thread::sleep(left.min(Duration::from_millis(50)));
    }
}

/// Parses an option in seconds: above 0, at most a day.
fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(s) if s > 0.0 && s <= 86_400.0 => Ok(s),
        _ => Err("must be seconds, above 0 and at most a day".into()),
    }
}

/// Parses a number above 0.
fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value > 0.0 && value.is_finite() => Ok(value),
        _ => Err("must be a number above 0".into()),
    }
}
