//! `nfold serve`: starts options, data directory, listeners, database and workers; then waits for a
//! signal and stops all of them.
//!
//! # Failure
//! A failed start prints one line on standard error and exits with code 1.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use nfold_replica::ChannelConfig;
use nfold_server::config::{ConfigError, DataDir, ServerOptions, Values, read};
use nfold_server::net::worker::Registry;
use nfold_server::server::{Bound, Server, StartError};

use crate::follow::{LagLog, check_channel};
use crate::signals::Signals;
use crate::{backend, logging, memory, signals};

/// Command line of `serve`; it outweighs the option file.
#[derive(clap::Args)]
pub struct Args {
    /// Data directory (nfold-data); made if it does not exist
    #[arg(long, value_name = "DIR")]
    datadir: Option<PathBuf>,
    /// TCP port (3306)
    #[arg(long)]
    port: Option<String>,
    /// Addresses to listen on, separated by commas (127.0.0.1)
    #[arg(long, value_name = "ADDRESS")]
    bind: Option<String>,
    /// Unix socket (nfold.sock in the data directory)
    #[arg(long, value_name = "FILE")]
    socket: Option<PathBuf>,
    /// Option file in my.cnf's format; its [mysqld] group counts, with MySQL's names
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Any option of the option file, e.g. --set innodb_buffer_pool_size=1G; may stand several
    /// times
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,
    /// Log every detail
    #[arg(long)]
    debug: bool,
}

/// Longest path of a unix socket on Linux.
const MAX_SOCKET_PATH: usize = 107;

/// Runs the server until a signal.
pub fn serve(args: &Args) -> ExitCode {
    start(args, |options, signals| run(options, signals, None))
}

/// Reads the options, begins to log and to take signals, and calls `f`.
pub fn start(
    args: &Args,
    f: impl FnOnce(ServerOptions, Signals) -> Result<(), StartError>,
) -> ExitCode {
    let options = match collect(args, &[]) {
        Ok(options) => options,
        Err(e) => {
            eprintln!("nfold: {e}");
            return ExitCode::FAILURE;
        }
    };
    logging::start(options.log_error_verbosity, args.debug);
    let signals = signals::block()
        .and_then(|()| Signals::start())
        .map_err(|e| StartError(format!("cannot take signals: {e}")));
    match signals.and_then(|signals| f(options, signals)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            tracing::error!("{e}");
            ExitCode::FAILURE
        }
    }
}

/// Defaults, option file, command line, and `more`, which outweighs the others.
pub fn collect(args: &Args, more: &[(&str, &str)]) -> Result<ServerOptions, ConfigError> {
    let mut values = Values::default();
    if let Some(file) = &args.config {
        values.apply(&read(file)?)?;
    }
    let mut set = |name: &str, value: &str| values.set(name, Some(value)).map_err(ConfigError);
    for assignment in &args.set {
        let (name, value) = assignment
            .split_once('=')
            .ok_or_else(|| ConfigError(format!("--set {assignment}: NAME=VALUE is expected")))?;
        set(name.trim(), value.trim())?;
    }
    let path = |p: &Path| p.display().to_string();
    let named = [
        ("datadir", args.datadir.as_deref().map(path)),
        ("port", args.port.clone()),
        ("bind_address", args.bind.clone()),
        ("socket", args.socket.as_deref().map(path)),
    ];
    for (name, value) in named {
        if let Some(value) = value {
            set(name, &value)?;
        }
    }
    for (name, value) in more {
        set(name, value)?;
    }
    ServerOptions::from_values(values)
}

/// Serves until a signal. `follows` is the source that the data directory must follow.
pub fn run(
    mut options: ServerOptions,
    signals: Signals,
    follows: Option<&ChannelConfig>,
) -> Result<(), StartError> {
    let line = |e: &dyn std::fmt::Display| StartError(e.to_string());
    tracing::info!(
        "nfold {} starts, process {}",
        options.server_version,
        std::process::id()
    );
    memory::give_back_after_heavy_statements();
    for name in options.values.without_effect() {
        tracing::warn!("the option {name} is accepted, but nothing here depends on it");
    }
    let datadir = DataDir::open(&options.datadir).map_err(|e| line(&e))?;
    tracing::info!("data directory {}", datadir.path().display());
    options.datadir = datadir.path().to_path_buf();
    default_socket(&mut options);
    let files = signals::raise_open_files();
    if files < options.max_connections as u64 + 100 {
        tracing::warn!(
            "only {files} files may be open at a time: {} connections cannot all be served (ulimit -n)",
            options.max_connections
        );
    }
    let options = Arc::new(options);
    let bound = Bound::new(&options)?;
    let registry = Arc::new(Registry::default());
    let database = backend::open(&options, &datadir, &registry)?;
    if let Some(source) = follows {
        check_channel(&database, source)?;
    }
    let server = Server::start(
        bound,
        options.clone(),
        database.accounts.clone(),
        database.sessions.clone(),
        registry,
    )?;
    database.serving(server.counters());
    write_pid_file(&options)?;
    signals.serving();
    announce(&server, &options);
    let lag_log = match follows {
        Some(_) => Some(LagLog::start(database.state().clone()).map_err(|e| line(&e))?),
        None => None,
    };
    let signal = signals
        .wait_for_one()
        .map_err(|e| StartError(format!("cannot wait for signals: {e}")))?;
    tracing::info!("{signal}: shutting down; a second signal ends the process at once");
    tracing::info!("ending {} connections", server.registry().connections());
    drop(lag_log);
    server.stop();
    database.close()?;
    if let Some(file) = options.values.text("pid_file") {
        let _ = std::fs::remove_file(file);
    }
    tracing::info!("shut down");
    drop(datadir);
    Ok(())
}

/// The path, or one in the directory of temporary files if it is too long for a socket.
pub fn socket_path(path: PathBuf) -> PathBuf {
    match path.as_os_str().len() <= MAX_SOCKET_PATH {
        true => path,
        false => std::env::temp_dir().join(format!("nfold-{}.sock", std::process::id())),
    }
}

fn default_socket(options: &mut ServerOptions) {
    if options.socket.is_none() {
        let path = options.datadir.join("nfold.sock");
        if path.as_os_str().len() <= MAX_SOCKET_PATH {
            options.socket = Some(path);
        } else {
            tracing::warn!(
                "no unix socket: the path {} is too long for one",
                path.display()
            );
        }
    }
}

fn write_pid_file(options: &ServerOptions) -> Result<(), StartError> {
    match options.values.text("pid_file") {
        None => Ok(()),
        Some(file) => std::fs::write(file, format!("{}\n", std::process::id()))
            .map_err(|e| StartError(format!("cannot write the pid file {file}: {e}"))),
    }
}

fn announce(server: &Server, options: &ServerOptions) {
    let tcp = server.address().map(|a| a.to_string());
    let socket = options.socket.as_ref().map(|s| s.display().to_string());
    let places: Vec<String> = tcp.into_iter().chain(socket).collect();
    tracing::info!(
        "ready for connections on {}, {} workers",
        places.join(" and "),
        options.workers
    );
}
