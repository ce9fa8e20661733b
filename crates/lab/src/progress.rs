//! A progress line for long commands, if standard error is a terminal.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// The shortest interval between two updates.
const EVERY: Duration = Duration::from_millis(300);

/// The progress line.
pub struct Progress {
    shown: bool,
    on: bool,
    next: Instant,
}

impl Progress {
    pub fn new(quiet: bool) -> Self {
        Progress {
            shown: false,
            on: !quiet && io::stderr().is_terminal(),
            next: Instant::now() + EVERY,
        }
    }

    /// Shows the progress within the file called `name`. `position` and `len` are in bytes.
    pub fn show(&mut self, name: &str, position: u64, len: Option<u64>, statements: u64) {
        if self.due() {
            let mib = position >> 20;
            let share = match len {
                Some(len) if len > 0 => format!(
                    "{:3.0} % of {} MiB",
                    position as f64 * 100.0 / len as f64,
                    len >> 20
                ),
                _ => format!("{mib} MiB"),
            };
            self.say(&format!("{name}: {share}, {statements} statements"));
        }
    }

    fn due(&self) -> bool {
        self.on && Instant::now() >= self.next
    }

    /// Shows another line.
    pub fn say(&mut self, line: &str) {
        if self.due() {
            self.next = Instant::now() + EVERY;
            self.shown = true;
            let _ = write!(io::stderr(), "\r\x1b[K{line}");
        }
    }

    /// Erases the line.
    pub fn finish(&mut self) {
        if std::mem::take(&mut self.shown) {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.finish();
    }
}
