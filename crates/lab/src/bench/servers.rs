//! The servers of a run: given ones, and those that the lab starts for it.
//!
//! # Failure
//! The data of servers started here is in a temporary directory, which is removed with them, even
//! if they fail to start.
#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use super::started::{ServerKind, Setup, Started, first};

use crate::client::Connection;
use crate::dsn::Dsn;
use crate::{LabError, interrupt, procfs};

/// The longest time for a server to start or to stop.
const START: Duration = Duration::from_secs(120);
/// The database on servers that the lab starts.
const DATABASE: &str = "lab";

/// A server under measurement.
#[derive(Debug)]
pub struct Server {
    pub name: String,
    pub dsn: Dsn,
    /// The process id, if the server runs on this machine and its process is accessible.
    pub pid: Option<u32>,
    started: Option<Started>,
}

impl Server {
    /// A server that is already running.
    pub fn given(name: &str, dsn: Dsn) -> Server {
        let mut server = Server {
            name: name.to_owned(),
            dsn,
            pid: None,
            started: None,
        };
        server.find_process();
        server
    }

    /// Whether the server was not started by the lab.
    pub fn is_given(&self) -> bool {
        self.started.is_none()
    }

    /// Whether this is the server without SQL. It has no tables, and answers everything with one
    /// row.
    pub fn is_floor(&self) -> bool {
        self.started
            .as_ref()
            .is_some_and(|s| s.kind == ServerKind::Floor)
    }

    /// Starts a server on a free port of 127.0.0.1.
    pub fn start(name: &str, kind: ServerKind, setup: Setup) -> Result<Server, LabError> {
        let port = free_port()?;
        let cores = setup.cores;
        let under = setup.under.clone().unwrap_or_else(std::env::temp_dir);
        let directory = under.join(format!("nfold-lab-{}-{name}", std::process::id()));
        fs::create_dir_all(&directory)
            .map_err(LabError::io(format!("cannot make {}", directory.display())))?;
        let dsn = Dsn::parse(&format!("mysql://root@127.0.0.1:{port}"))?;
        let mut server = Server {
            name: name.to_owned(),
            dsn,
            pid: None,
            started: Some(Started {
                kind,
                directory,
                port,
                setup,
                child: None,
            }),
        };
        if let Some(started) = &server.started {
            started.prepare()?;
        }
        server.run(cores)?;
        Connection::open(&server.dsn)?
            .query(&format!("CREATE DATABASE IF NOT EXISTS {DATABASE}"))?;
        server.dsn.db = Some(DATABASE.to_owned());
        Ok(server)
    }

    /// Binds the server to the first `cores` processors. A server that the lab started is
    /// restarted, so that it adapts to them. For another server on this machine, all threads are
    /// moved.
    pub fn bind(&mut self, cores: usize) -> Result<(), LabError> {
        if self.started.is_some() {
            self.stop();
            return self.run(Some(cores));
        }
        let Some(pid) = self.pid else {
            return Err(LabError::usage(format!(
                "--cores: {} is not a process of this machine that may be bound",
                self.name
            )));
        };
        let done = Command::new("taskset")
            .args(["-a", "-p", "-c", &first(cores), &pid.to_string()])
            .output();
        match done
            .map_err(LabError::io("cannot run taskset (Debian: util-linux)"))?
            .status
            .success()
        {
            true => Ok(()),
            false => Err(LabError::usage(format!(
                "--cores: taskset may not bind {} (process {pid})",
                self.name
            ))),
        }
    }

    fn run(&mut self, cores: Option<usize>) -> Result<(), LabError> {
        let Some(started) = &mut self.started else {
            return Ok(());
        };
        let log = started.directory.join("log");
        let child = started.command(cores, &log)?.spawn();
        let mut child = child.map_err(LabError::io(format!("cannot start {}", self.name)))?;
        let deadline = Instant::now() + START;
        let login = self.dsn.clone();
        loop {
            if Connection::open(&login).is_ok() {
                break;
            }
            let over = child.try_wait().ok().flatten().is_some()
                || Instant::now() > deadline
                || interrupt::requested();
            if over {
                let _ = child.kill();
                let _ = child.wait();
                let text = fs::read_to_string(&log).unwrap_or_default();
                return Err(LabError::usage(format!(
                    "{} does not start; its log says: {}",
                    self.name,
                    reason(&text)
                )));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        started.child = Some(child);
        self.pid = procfs::listener(started.port, None);
        Ok(())
    }

    /// Stops a server that the lab started, cleanly.
    pub fn stop(&mut self) {
        let Some(child) = self.started.as_mut().and_then(|s| s.child.as_mut()) else {
            return;
        };
        // SAFETY: kill takes plain numbers. The child has not been waited for, so its process id
        // cannot have been reused.
        unsafe {
            libc::kill(child.id() as libc::pid_t, libc::SIGTERM);
        }
        let deadline = Instant::now() + START;
        while matches!(child.try_wait(), Ok(None)) {
            if Instant::now() > deadline {
                let _ = child.kill();
                let _ = child.wait();
                break;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        self.pid = None;
    }

    fn find_process(&mut self) {
        if self.dsn.socket.is_some() || procfs::is_local(&self.dsn.host) {
            self.pid = procfs::listener(self.dsn.port, self.dsn.socket.as_deref());
        }
    }

    /// The version, and the settings that matter for the figures.
    pub fn describe(&self) -> Result<(String, BTreeMap<String, String>), LabError> {
        let mut connection = Connection::open(&self.dsn)?;
        if self.is_floor() {
            return Ok((connection.server_version().to_owned(), BTreeMap::new()));
        }
        let version = connection.value("SELECT VERSION()")?.unwrap_or_default();
        let mut settings = BTreeMap::new();
        for name in SETTINGS {
            let found = connection.query(&format!("SHOW GLOBAL VARIABLES LIKE '{name}'"))?;
            if let Some(value) = found.text(0, 1) {
                settings.insert((*name).to_owned(), value);
            }
        }
        Ok((version, settings))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
        if let Some(started) = &self.started {
            let _ = fs::remove_dir_all(&started.directory);
        }
    }
}

const SETTINGS: &[&str] = &[
    "version_comment",
    "innodb_buffer_pool_size",
    "innodb_buffer_pool_instances",
    "innodb_flush_log_at_trx_commit",
    "innodb_flush_method",
    "innodb_adaptive_hash_index",
    "innodb_io_capacity",
    "sync_binlog",
    "log_bin",
    "performance_schema",
    "thread_handling",
    "max_connections",
    "character_set_server",
    "collation_server",
    "transaction_isolation",
    "tx_isolation",
    "eq_range_index_dive_limit",
    "query_cache_type",
];

/// The part of a server's log that says why it did not start: its first three errors, or its last
/// three lines if it has none. The later errors of a log are mostly consequences of the first.
fn reason(log: &str) -> String {
    let errors = log.lines().filter(|line| line.contains("ERROR"));
    let mut lines: Vec<&str> = errors.take(3).collect();
    if lines.is_empty() {
        lines = log.lines().rev().take(3).collect();
        lines.reverse();
    }
    lines.join(" / ")
}

fn free_port() -> Result<u16, LabError> {
    let socket =
        std::net::TcpListener::bind("127.0.0.1:0").map_err(LabError::io("no free port"))?;
    Ok(socket
        .local_addr()
        .map_err(LabError::io("no free port"))?
        .port())
}

#[cfg(test)]
mod tests {
    use super::reason;

    #[test]
    fn the_reason_is_the_first_errors_or_the_last_lines() {
        let log = "1 [Note] starting\n2 [ERROR] InnoDB: no space\n3 [ERROR] Plugin InnoDB failed\n\
                   4 [ERROR] Unknown storage engine\n5 [ERROR] Aborting\n6 [Note] bye";
        assert_eq!(
            reason(log),
            "2 [ERROR] InnoDB: no space / 3 [ERROR] Plugin InnoDB failed / \
             4 [ERROR] Unknown storage engine"
        );
        assert_eq!(reason("one\ntwo\nthree\nfour"), "two / three / four");
        assert_eq!(reason(""), "");
    }
}
