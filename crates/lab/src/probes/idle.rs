//! `nfold lab idle`: measures what idle connections cost, in the server's memory and processor
//! time.
//!
//! The server's private memory is read before they connect, after their logins, and after each has
//! executed a statement. Then its processor time is measured while all of them are idle. At the
//! end, each executes the statement once more, which proves that the connections still work.

use std::fmt::Write;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::{Head, One, PARTIAL, pause, process, seconds};
use crate::bench::servers::Server;
use crate::client::Connection;
use crate::digest::table::grouped;
use crate::output::JsonOption;
use crate::progress::Progress;
use crate::{LabError, interrupt, limits, procfs};

pub const SCHEMA: &str = "nfold-lab-idle/1";

/// For `--help`.
pub const EXAMPLES: &str = "Examples:
  nfold lab idle --dsn mysql://app@127.0.0.1 --connections 10000
  nfold lab idle --start-mariadb --connections 2000 --statement 'SELECT NOW()' --json mariadb.json

The server runs on this machine, and its process may be looked at: the same user, or root. Passwords: NFOLD_LAB_PASSWORD, an option
file (?option_file=FILE) or a prompt (?prompt=yes); never in a DSN.";

/// Connections opened before the first reading, so that memory that a server allocates only once is
/// not counted.
const FIRST: usize = 100;
/// The number of windows in which the idle time is measured. The least counts, because the others
/// contain work left over from the last statements: Nfold frees the buffers of an idle connection
/// after five seconds.
const WINDOWS: usize = 3;
/// Files and sockets that the lab needs for itself.
const SPARE: u64 = 64;

/// The command line of `nfold lab idle`.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    server: One,
    /// Idle connections
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    connections: u32,
    /// The statement that each of them executes once
    #[arg(long, value_name = "SQL", default_value = "SELECT 1")]
    statement: String,
    /// Seconds of each of the three windows in which the server's time is measured; the least
    /// counts
    #[arg(long, default_value_t = 5.0, value_parser = seconds)]
    time: f64,
    #[command(flatten)]
    json: JsonOption,
}

/// The result. Bytes are the server's private memory, resident or swapped out.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    #[serde(flatten)]
    pub head: Head,
    /// The number of connections opened and counted.
    pub connections: usize,
    pub statement: String,
    /// Before they connected.
    pub bytes_before: u64,
    pub bytes_each_after_login: Option<f64>,
    pub bytes_each_after_statement: Option<f64>,
    /// The processors that the server used while all connections were idle, and over how many
    /// seconds.
    pub idle_cores: Option<f64>,
    pub idle_s: Option<f64>,
    pub threads: usize,
    /// The connections that answered once more at the end.
    pub answered_again: Option<usize>,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), LabError> {
    let count = args.connections as usize;
    let settings = [
        ("max_connections", (count + FIRST + 100).to_string()),
        ("back_log", "1000".to_owned()),
    ];
    let room = limits::open_files();
    if room < (count + FIRST) as u64 + SPARE {
        return Err(LabError::usage(format!(
            "--connections {count}: this program may open {room} files; `ulimit -Hn` allows more"
        )));
    }
    let server = args.server.open(&settings, false)?;
    let pid = process(&server, "idle weighs it")?;
    let mut report = Report {
        head: Head::new(SCHEMA, &server)?,
        statement: args.statement.clone(),
        ..Report::default()
    };
    let mut progress = Progress::new(false);
    let done = measure(args, &server, pid, &mut report, &mut progress);
    progress.finish();
    report.head.partial = done.is_err() || interrupt::requested();
    let measured = report.bytes_before > 0;
    super::finish(&report, &report.lines(), measured, &args.json, done)
}

fn measure(
    args: &Args,
    server: &Server,
    pid: u32,
    report: &mut Report,
    progress: &mut Progress,
) -> Result<(), LabError> {
    let weigh = || {
        procfs::own_bytes(pid).ok_or_else(|| {
            LabError::usage(format!(
                "cannot read /proc/{pid}/smaps_rollup: the server's user, or root, may"
            ))
        })
    };
    let statement = args.statement.as_bytes();
    let mut warm = open(server, 0, FIRST, progress)?;
    ask(&mut warm, statement, progress)?;
    report.bytes_before = weigh()?;
    let each = |now: u64, count: usize, report: &Report| {
        (now as f64 - report.bytes_before as f64) / count.max(1) as f64
    };
    let mut all = open(server, warm.len(), args.connections as usize, progress)?;
    report.connections = all.len();
    report.bytes_each_after_login = Some(each(weigh()?, all.len(), report));
    if ask(&mut all, statement, progress)? < all.len() {
        return Ok(());
    }
    report.bytes_each_after_statement = Some(each(weigh()?, all.len(), report));
    progress.say("they wait");
    for _ in 0..WINDOWS {
        let (began, before) = (Instant::now(), procfs::run_seconds(pid));
        pause(Duration::from_secs_f64(args.time));
        let (after, waited) = (procfs::run_seconds(pid), began.elapsed().as_secs_f64());
        let (Some(after), Some(before)) = (after, before) else {
            break;
        };
        let cores = (after - before).max(0.0) / waited;
        if report.idle_cores.is_none_or(|least| cores < least) {
            report.idle_cores = Some(cores);
            report.idle_s = Some(waited);
        }
        report.threads = procfs::process_times(pid).map_or(0, |times| times.threads);
    }
    if !interrupt::requested() {
        report.answered_again = Some(ask(&mut all, statement, progress)?);
    }
    Ok(())
}

/// Opens `count` connections in addition to those in `all`, or fewer after Ctrl-C.
fn open(
    server: &Server,
    there: usize,
    count: usize,
    progress: &mut Progress,
) -> Result<Vec<Connection>, LabError> {
    let mut all = Vec::with_capacity(count);
    while all.len() < count && !interrupt::requested() {
        match Connection::open(&server.dsn) {
            Ok(connection) => all.push(connection),
            Err(LabError::Refused { code, message, .. }) if code == 1040 || code == 1203 => {
                return Err(LabError::usage(format!(
                    "the server takes no more than {} connections ({code}: {message}): SET GLOBAL max_connections",
                    there + all.len()
                )));
            }
            Err(e) => return Err(e),
        }
        progress.say(&format!("{} of {count} connections", all.len()));
    }
    Ok(all)
}

/// Lets each connection execute the statement. Returns how many did before Ctrl-C.
fn ask(
    all: &mut [Connection],
    statement: &[u8],
    progress: &mut Progress,
) -> Result<usize, LabError> {
    let count = all.len();
    for (number, connection) in all.iter_mut().enumerate() {
        if interrupt::requested() {
            return Ok(number);
        }
        if let Some(error) = connection.run(statement)?.error {
            return Err(LabError::Server {
                code: error.code,
                message: error.message,
            });
        }
        connection.rest();
        progress.say(&format!("{number} of {count} have run the statement"));
    }
    Ok(count)
}

impl Report {
    fn lines(&self) -> String {
        let mut out = String::new();
        let _ = writeln!(
            out,
            "{} {}; {}",
            self.head.server.name, self.head.server.version, self.head.machine
        );
        let _ = writeln!(
            out,
            "before: {:.1} MiB; {} connections",
            self.bytes_before as f64 / f64::from(1 << 20),
            grouped(self.connections as u64)
        );
        let bytes = |v: f64| grouped(v.max(0.0) as u64);
        if let Some(login) = self.bytes_each_after_login {
            let _ = write!(out, "each: {} bytes after login", bytes(login));
            if let Some(statement) = self.bytes_each_after_statement {
                let _ = write!(out, ", {} after {}", bytes(statement), self.statement);
            }
            out.push('\n');
        }
        if let (Some(cores), Some(seconds)) = (self.idle_cores, self.idle_s) {
            let _ = writeln!(
                out,
                "idle: {:.2} % of a processor over {seconds:.1} s, {} threads",
                cores * 100.0,
                self.threads
            );
        }
        if let Some(again) = self.answered_again {
            let _ = writeln!(out, "answered once more: {}", grouped(again as u64));
        }
        if self.head.partial {
            out.push_str(PARTIAL);
        }
        out
    }
}
