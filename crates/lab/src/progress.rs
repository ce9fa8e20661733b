//! A line on standard error that says how far a long command is, where that is a terminal.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// Shown at most this often.
const EVERY: Duration = Duration::from_millis(300);

/// The line.
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

    /// `position` and `len` in bytes of the file called `name`.
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

    /// Any other line.
    pub fn say(&mut self, line: &str) {
        if self.due() {
            self.next = Instant::now() + EVERY;
            self.shown = true;
            let _ = write!(io::stderr(), "\r\x1b[K{line}");
        }
    }

    /// Takes the line away.
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
