//! `nfold follow`: copies a running MySQL or MariaDB into a data directory, and serves it as its
//! replica.
//!
//! # Picture
//! ```text
//! empty, or an unfinished copy ─▶ marked ─▶ a server on a private socket takes the copy ─▶ unmarked
//!                                                                                            │
//! a complete copy ──────────────────────────────────────────────────────▶ serve, and log the lag
//! ```
//! # Failure
//! A directory is marked before its first file is written, and unmarked after its last file is
//! closed. A marked directory is never served: the next start continues the copy, or begins it
//! anew where that is not possible (`nfold_follow`).

use std::hash::{BuildHasher, RandomState};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nfold_follow::{CopyOptions, Position, SourceUrl, Target};
use nfold_replica::ChannelConfig;
use nfold_server::config::{DataDir, ServerOptions, server_uuid};
use nfold_server::net::worker::Registry;
use nfold_server::server::{Bound, Server, StartError};
use nfold_server::session::{ChannelSummary, ServerState};

use crate::backend::{self, Backend};
use crate::serve;

/// Command line of `follow`. It takes all options of `serve`.
#[derive(clap::Args)]
#[group(skip)]
pub struct Args {
    /// The source: mysql://USER:PASSWORD@HOST:PORT/; a password that is left out is MYSQL_PWD
    #[arg(value_name = "URL")]
    source: SourceUrl,
    /// The databases to copy and to follow, separated by commas (all)
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    databases: Vec<String>,
    /// Connections that copy in parallel
    #[arg(long, default_value_t = 4, value_name = "N")]
    jobs: usize,
    /// Seconds to wait for the end of XA transactions that are prepared on the source
    #[arg(long, default_value_t = 60, value_name = "SECONDS")]
    xa_wait: u64,
    #[command(flatten)]
    serve: serve::Args,
}

/// Copies if necessary, then serves until a signal.
pub fn follow(args: &Args) -> ExitCode {
    serve::start(&args.serve, |options, signals| {
        let datadir = DataDir::open_copy(&options.datadir).map_err(line)?;
        let options = match datadir.is_fresh() || datadir.is_unfinished() {
            false => options,
            true => {
                take_copy(args, &datadir)?;
                // The copy has stored settings.
                serve::collect(&args.serve, &[]).map_err(line)?
            }
        };
        drop(datadir);
        serve::run(options, signals, Some(&args.source.0))
    })
}

fn line(e: impl std::fmt::Display) -> StartError {
    StartError(e.to_string())
}

/// A number that no other server has, probably.
fn random_server_id() -> u32 {
    RandomState::new().hash_one(std::process::id()) as u32 | 1 << 31
}

/// Copies the source into the directory.
fn take_copy(args: &Args, datadir: &DataDir) -> Result<(), StartError> {
    let given = serve::collect(&args.serve, &[]).map_err(line)?;
    let server_id = match given.values.int("server_id") as u32 {
        0 | 1 => random_server_id(),
        id => id,
    };
    drop(given);
    tracing::info!("copying {} into {}", args.source, datadir.path().display());
    let mut target = Directory {
        args,
        datadir,
        server: None,
    };
    let options = CopyOptions {
        source: args.source.clone(),
        databases: args.databases.clone(),
        jobs: args.jobs,
        server_id,
        xa_wait: Duration::from_secs(args.xa_wait),
    };
    let copied = nfold_follow::copy(
        &options,
        &mut target,
        &mut |finding| match finding.is_error {
            true => tracing::error!("{}; {}", finding.what, finding.what_to_do),
            false => tracing::warn!("{}; {}", finding.what, finding.what_to_do),
        },
    );
    let copied = match copied {
        Ok(copied) => copied,
        Err(e) => {
            target.server.into_iter().for_each(PrivateServer::abandon);
            return Err(line(e));
        }
    };
    target.server.map_or(Ok(()), PrivateServer::close)?;
    datadir.end_copy().map_err(line)?;
    let Some(copied) = copied else {
        return Ok(());
    };
    let (s, locked_ms) = (copied.time.as_secs_f64(), copied.locked.as_millis());
    tracing::info!(
        "copied {} rows of {} tables in {s:.1} s, up to {}; the source was locked for {locked_ms} ms",
        copied.rows,
        copied.tables,
        copied.position,
    );
    Ok(())
}

/// The data directory that takes the copy.
struct Directory<'a> {
    args: &'a Args,
    datadir: &'a DataDir,
    server: Option<PrivateServer>,
}

impl Target for Directory<'_> {
    fn is_unfinished(&self) -> bool {
        self.datadir.is_unfinished()
    }

    fn open(&mut self, emptied: bool) -> Result<ChannelConfig, String> {
        if emptied && let Some(server) = self.server.take() {
            server.close().map_err(|e| e.to_string())?;
        }
        if self.server.is_none() {
            if emptied {
                self.datadir.begin_copy().map_err(|e| e.to_string())?;
            }
            let opened = PrivateServer::open(self.args, self.datadir);
            self.server = Some(opened.map_err(|e| e.to_string())?);
        }
        let server = self.server.as_ref();
        Ok(server.map(PrivateServer::address).unwrap_or_default())
    }

    fn tell(&self, text: &str) {
        tracing::info!("{text}");
    }

    fn complete(&mut self, end: &Position, gtids: bool) -> Result<Result<(), String>, String> {
        let Some(server) = &self.server else {
            return Err("the copy is not open".into());
        };
        let gtids = gtids.then_some(end.gtids.as_str());
        let place = (end.file.as_str(), end.position);
        let state = server.database.state();
        state
            .complete_copy(gtids, place)
            .map_err(|e| e.message.to_string())
    }
}

/// A server that only this process reaches, by a socket in the data directory.
struct PrivateServer {
    server: Server,
    database: Backend,
    socket: String,
}

impl PrivateServer {
    /// Opens the directory, which is marked.
    fn open(args: &Args, datadir: &DataDir) -> Result<PrivateServer, StartError> {
        server_uuid(datadir.path()).map_err(line)?;
        let socket = serve::socket_path(datadir.path().join("nfold-copy.sock"));
        let socket = socket.display().to_string();
        let set = [
            ("skip_networking", "ON"),
            ("socket", &socket),
            ("log_bin", "OFF"),
            ("read_only", "OFF"),
            ("super_read_only", "OFF"),
            ("skip_replica_start", "ON"),
            // An earlier start may have stored the settings of the replica.
            ("persisted_globals_load", "OFF"),
            ("max_allowed_packet", "1G"),
            // The directory is complete only after it is closed.
            ("innodb_flush_log_at_trx_commit", "2"),
        ];
        let mut options = serve::collect(&args.serve, &set).map_err(line)?;
        options.datadir = datadir.path().to_path_buf();
        let options: Arc<ServerOptions> = Arc::new(options);
        let bound = Bound::new(&options)?;
        let registry = Arc::new(Registry::default());
        let database = backend::open(&options, datadir, &registry)?;
        let (accounts, sessions) = (database.accounts.clone(), database.sessions.clone());
        let server = Server::start(bound, options.clone(), accounts, sessions, registry)?;
        database.serving(server.counters());
        Ok(PrivateServer {
            server,
            database,
            socket,
        })
    }

    fn address(&self) -> ChannelConfig {
        ChannelConfig {
            host: self.socket.clone(),
            user: "root".into(),
            ..ChannelConfig::default()
        }
    }

    fn close(self) -> Result<(), StartError> {
        self.server.stop();
        self.database.close()
    }

    /// Ends it without writing its data.
    fn abandon(self) {
        self.server.stop();
    }
}

/// Checks that a directory follows the given source.
pub fn check_channel(database: &Backend, source: &ChannelConfig) -> Result<(), StartError> {
    let summary = database
        .state()
        .channel_summary()
        .map_err(|e| line(e.message))?;
    let wanted = (source.host.as_str(), source.port);
    match summary {
        None => Err(StartError(
            "the data directory has data, but follows no source: give an empty one, or \
             use `nfold serve`"
                .into(),
        )),
        Some(s) if (s.host.as_str(), s.port) != wanted => Err(StartError(format!(
            "the data directory follows {}:{}, not {}:{}: give an empty one, or use `nfold serve` \
             and CHANGE REPLICATION SOURCE TO",
            s.host, s.port, source.host, source.port
        ))),
        Some(_) => Ok(()),
    }
}

const LOOK_EVERY: Duration = Duration::from_millis(500);
/// The time between two lines while the replica is behind, and while it is not.
const LINES_BEHIND: Duration = Duration::from_secs(10);
const LINES: Duration = Duration::from_secs(60);

/// The thread that logs how the channel is doing.
pub struct LagLog {
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl LagLog {
    pub fn start(state: Arc<ServerState>) -> std::io::Result<LagLog> {
        let ended = Arc::new(AtomicBool::new(false));
        let seen = ended.clone();
        let thread = std::thread::Builder::new()
            .name("nfold-lag".into())
            .spawn(move || log_lag(&state, &seen))?;
        Ok(LagLog {
            ended,
            thread: Some(thread),
        })
    }
}

impl Drop for LagLog {
    fn drop(&mut self) {
        self.ended.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn log_lag(state: &ServerState, ended: &AtomicBool) {
    let mut last: Option<(ChannelSummary, Instant)> = None;
    while !ended.load(Relaxed) {
        std::thread::sleep(LOOK_EVERY);
        let Ok(Some(now)) = state.channel_summary() else {
            continue;
        };
        let is_due = last.as_ref().is_none_or(|(before, at)| {
            let behind = now.behind >= Duration::from_secs(1);
            let every = if behind { LINES_BEHIND } else { LINES };
            before.runs != now.runs || before.error != now.error || at.elapsed() >= every
        });
        if !is_due {
            continue;
        }
        let (host, port, at) = (&now.host, now.port, place(&now));
        match (&now.error, now.runs) {
            (_, true) => {
                let behind = now.behind.as_secs();
                tracing::info!("following {host}:{port}: {behind} s behind, at {at}");
            }
            (Some(e), false) => tracing::error!("not following {host}:{port}, at {at}: {e}"),
            (None, false) => tracing::info!("connecting to {host}:{port}, at {at}"),
        }
        last = Some((now, Instant::now()));
    }
}

fn place(summary: &ChannelSummary) -> String {
    match summary.applied_gtids.is_empty() {
        true => format!("{} {}", summary.file, summary.position),
        false => summary.applied_gtids.clone(),
    }
}
