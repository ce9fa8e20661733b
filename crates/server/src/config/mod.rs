//! Options: the table of all names, the option file, and the typed values that are passed to the
//! rest of the server.
//!
//! A later source overrides an earlier one: defaults, option file, command line.

mod accepted;
pub mod components;
mod datadir;
mod ini;
mod limits;
mod option;
mod persisted;
mod server_uuid;
pub mod switches;
pub mod table;
mod values;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

pub use components::Components;
pub use datadir::{DataDir, DataDirError, pem_encode, write_private};
pub use ini::{ConfigError, Line, read};
pub use limits::Limits;
pub use persisted::{Entry, Persisted, SetBy};
pub use server_uuid::server_uuid;
pub use values::{Source, Value, Values};

/// The start-up options of the server.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    pub datadir: PathBuf,
    /// Addresses to listen on; empty: no TCP.
    pub bind_addresses: Vec<String>,
    /// 0: any free port.
    pub port: u16,
    pub socket: Option<PathBuf>,
    pub backlog: u32,
    /// The number of worker threads; by default the number of cores.
    pub workers: usize,
    pub pin_workers: bool,
    /// Whether connections may move from a busy worker to one with spare time.
    pub move_connections: bool,
    /// Whether workers may receive from and send to many sockets by one system call, if the kernel
    /// has io_uring.
    pub io_uring: bool,
    pub max_connections: usize,
    /// For clients that have not logged in.
    pub connect_timeout: Duration,
    pub limits: Limits,
    /// The maximum number of concurrent statements outside transactions per worker; further ones
    /// queue. 0: the built-in bound.
    pub concurrency: usize,
    pub ssl: bool,
    pub ssl_cert: Option<PathBuf>,
    pub ssl_key: Option<PathBuf>,
    /// The authorities that sign certificates of clients.
    pub ssl_ca: Option<PathBuf>,
    pub require_secure_transport: bool,
    /// 1: errors, 2: warnings, 3: information.
    pub log_error_verbosity: u64,
    /// `version()`.
    pub server_version: String,
    /// What SET PERSIST has stored.
    pub persisted: Arc<Persisted>,
    pub components: Arc<Components>,
    /// All options by name, for `@@variables` and the engine.
    pub values: Values,
}

/// The version that clients see.
pub fn server_version() -> String {
    "8.4.0-Nfold".into()
}

impl ServerOptions {
    /// Computes the options, and applies the stored variables of the data directory. Fails if they
    /// contradict each other.
    pub fn from_values(mut values: Values) -> Result<Self, ConfigError> {
        let datadir = values.text("datadir").filter(|s| !s.is_empty());
        let datadir = PathBuf::from(datadir.unwrap_or("nfold-data"));
        let persisted = Persisted::open(&datadir)?;
        if values.flag("persisted_globals_load") {
            values.apply_persisted(&persisted.entries());
        }
        let components = Components::open(&datadir)?;
        let path = |name: &str| {
            values
                .text(name)
                .filter(|s| !s.is_empty())
                .map(PathBuf::from)
        };
        let seconds = |name: &str| Duration::from_secs(values.int(name));
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let workers = match values.int("nfold_workers") as usize {
            0 => cores,
            n => n,
        };
        let networking = !values.flag("skip_networking");
        let bind_addresses = values
            .text("bind_address")
            .filter(|_| networking)
            .unwrap_or_default()
            .split(',')
            .map(|s| s.trim().to_string())
            .filter(|s| !s.is_empty())
            .collect();
        Ok(ServerOptions {
            bind_addresses,
            port: values.int("port") as u16,
            socket: path("socket"),
            backlog: values.int("back_log") as u32,
            workers,
            pin_workers: values.flag("nfold_pin_workers") && workers == cores,
            move_connections: values.flag("nfold_move_connections") && workers > 1,
            io_uring: values.flag("nfold_io_uring"),
            max_connections: values.int("max_connections") as usize,
            connect_timeout: seconds("connect_timeout"),
            limits: Limits {
                wait_timeout: seconds("wait_timeout"),
                net_read_timeout: seconds("net_read_timeout"),
                net_write_timeout: seconds("net_write_timeout"),
                max_allowed_packet: values.int("max_allowed_packet") as usize,
            },
            concurrency: values.int("innodb_thread_concurrency") as usize,
            ssl: values.flag("ssl"),
            ssl_cert: path("ssl_cert"),
            ssl_key: path("ssl_key"),
            ssl_ca: path("ssl_ca"),
            require_secure_transport: values.flag("require_secure_transport"),
            log_error_verbosity: values.int("log_error_verbosity"),
            server_version: server_version(),
            datadir,
            persisted: Arc::new(persisted),
            components: Arc::new(components),
            values,
        })
    }
}

#[cfg(test)]
mod tests;
