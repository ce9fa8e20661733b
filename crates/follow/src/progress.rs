//! The progress of a copy: a bar that is drawn anew on a terminal, else a line now and then.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

const BAR: usize = 30;
const EVERY_ON_TERMINAL: Duration = Duration::from_millis(300);
const EVERY_ELSEWHERE: Duration = Duration::from_secs(10);

/// Counts rows that all workers copy, and shows them.
pub(crate) struct Progress {
    /// The estimated number of all rows.
    expected: u64,
    done: AtomicU64,
    ended: AtomicBool,
    begun: Instant,
}

impl Progress {
    pub fn new(expected: u64) -> Progress {
        Progress {
            expected,
            done: AtomicU64::new(0),
            ended: AtomicBool::new(false),
            begun: Instant::now(),
        }
    }

    pub fn add(&self, rows: u64) {
        self.done.fetch_add(rows, Relaxed);
    }

    pub fn rows(&self) -> u64 {
        self.done.load(Relaxed)
    }

    pub fn end(&self) {
        self.ended.store(true, Relaxed);
    }

    /// Shows the progress until [`Self::end`]. For a thread of its own.
    pub fn show(&self) {
        let terminal = io::stderr().is_terminal();
        let every = if terminal {
            EVERY_ON_TERMINAL
        } else {
            EVERY_ELSEWHERE
        };
        let mut last = Instant::now();
        while !self.ended.load(Relaxed) {
            std::thread::sleep(Duration::from_millis(50));
            if last.elapsed() >= every {
                last = Instant::now();
                let line = line(self.rows(), self.expected, self.begun.elapsed());
                let _ = match terminal {
                    true => write!(io::stderr(), "\r\x1b[K{line}"),
                    false => writeln!(io::stderr(), "{line}"),
                };
            }
        }
        if terminal {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

/// The progress as text.
fn line(done: u64, expected: u64, time: Duration) -> String {
    // The source only estimates its rows.
    let share = (done as f64 / expected.max(1) as f64).min(0.99);
    let full = (share * BAR as f64) as usize;
    let rate = done as f64 / time.as_secs_f64().max(0.001);
    let left = expected.saturating_sub(done) as f64 / rate.max(1.0);
    format!(
        "[{}{}] {:2.0} %  {} of about {} rows, {}/s, {} left",
        "#".repeat(full),
        "-".repeat(BAR - full),
        share * 100.0,
        number(done),
        number(expected),
        number(rate as u64),
        duration(left as u64)
    )
}

/// A number with commas.
pub(crate) fn number(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// A number of seconds in hours, minutes and seconds.
pub(crate) fn duration(s: u64) -> String {
    match s {
        0..60 => format!("{s} s"),
        60..3600 => format!("{} min {} s", s / 60, s % 60),
        _ => format!("{} h {} min", s / 3600, s % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_shows_share_rate_and_time_left() {
        assert_eq!(
            line(2_500_000, 10_000_000, Duration::from_secs(10)),
            "[#######-----------------------] 25 %  2,500,000 of about 10,000,000 rows, 250,000/s, 30 s left"
        );
        assert!(line(0, 0, Duration::ZERO).contains("0 of about 0 rows"));
        assert_eq!(duration(3725), "1 h 2 min");
    }
}
