//! The general log: writes every command before it runs to `general_log_file`, in MySQL's format.
//!
//! ```text
//! 2024-03-01T12:34:56.123456Z⇥    8 Query⇥SELECT 1
//! ```
//! # Cost
//! Off: one load of a switch that is rarely written. On: a line is appended under a mutex;
//! [`crate::log_file`] writes it.
//!
//! Source: "The General Query Log" of MySQL's reference manual.

use std::path::PathBuf;
use std::sync::Arc;

use crate::log_file::{LogFile, LogName};
use crate::slow_log::instant;
use crate::unix_time::unix_us;

/// The log of one server; see the module's header.
pub struct GeneralLog(Arc<LogFile>);

impl GeneralLog {
    pub fn new(banner: String) -> GeneralLog {
        let name = LogName {
            what: "general log",
            thread: "general-log",
        };
        GeneralLog(LogFile::new(name, banner))
    }

    /// `general_log` and `general_log_file`.
    pub fn configure(&self, on: bool, path: PathBuf) {
        self.0.configure(on, path);
    }

    /// FLUSH GENERAL LOGS.
    pub fn reopen(&self) {
        self.0.reopen();
    }

    /// Called at shutdown: writes the pending lines.
    pub fn close(&self) {
        self.0.close();
    }

    #[inline(always)]
    pub fn is_on(&self) -> bool {
        self.0.is_on()
    }

    /// The value of `Nfold_general_log_lost`.
    pub fn status(&self) -> (&'static str, String) {
        ("Nfold_general_log_lost", self.0.lost().to_string())
    }

    /// Logs a command. `command` is MySQL's name for it, `argument` the client's text.
    #[cold]
    pub fn write(&self, connection: u32, command: &str, argument: &[u8]) {
        let now_us = unix_us();
        self.0.write(argument.len(), |to| {
            append(now_us, connection, command, argument, &mut to.bytes);
        });
    }
}

fn append(now_us: i64, connection: u32, command: &str, argument: &[u8], out: &mut Vec<u8>) {
    let at = instant(now_us).replacen(' ', "T", 1);
    out.extend_from_slice(format!("{at}Z\t{connection:>5} {command}\t").as_bytes());
    out.extend_from_slice(argument);
    out.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_as_mysql_writes_them() {
        let mut out = Vec::new();
        append(
            1_700_000_000_250_007,
            8,
            "Query",
            b"SELECT 1\nFROM t",
            &mut out,
        );
        append(1_700_000_001_000_000, 123_456, "Quit", b"", &mut out);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "2023-11-14T22:13:20.250007Z\t    8 Query\tSELECT 1\nFROM t\n2023-11-14T22:13:21.000000Z\t123456 Quit\t\n"
        );
    }
}
