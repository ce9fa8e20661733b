//! The measurements of a run.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;

/// How often the server returned one error number, and the first message with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorCount {
    pub count: u64,
    pub message: String,
}

/// The sums of all threads over the measured window, or over the whole run if there is no window.
#[derive(Debug, Clone)]
pub struct Outcome {
    pub connections: usize,
    /// The length of the measured window.
    pub seconds: f64,
    /// The CPU seconds of each client thread in the window. Empty if /proc does not provide them.
    pub client_cpu: Vec<f64>,
    /// The statements answered, including errors.
    pub statements: u64,
    /// The completed events, such as transactions of a workload. Equal to `statements` if each
    /// event is a single statement.
    pub events: u64,
    pub rows: u64,
    pub bytes: u64,
    /// The order-independent sum of the answers' checksums.
    pub checksum: u64,
    /// The latency of statements in nanoseconds.
    pub latency: Histogram<u64>,
    /// The latency of events in nanoseconds. Empty if each event is a single statement.
    pub event_latency: Histogram<u64>,
    /// The errors by MySQL's error number.
    pub errors: BTreeMap<u16, ErrorCount>,
    /// The times at which connections were lost, in seconds since the beginning of the window
    /// (negative in the warm-up).
    pub lost_at: Vec<f64>,
    /// The connections that could not be reopened.
    pub dead: usize,
    /// The statements answered in each whole second of the window.
    pub per_second: Vec<u64>,
    pub interrupted: bool,
}

impl Default for Outcome {
    fn default() -> Self {
        Outcome {
            connections: 0,
            seconds: 0.0,
            client_cpu: Vec::new(),
            statements: 0,
            events: 0,
            rows: 0,
            bytes: 0,
            checksum: 0,
            latency: new_histogram(),
            event_latency: new_histogram(),
            errors: BTreeMap::new(),
            lost_at: Vec::new(),
            dead: 0,
            per_second: Vec::new(),
            interrupted: false,
        }
    }
}

/// A histogram from one microsecond to one hour with three digits. Longer times are counted as one
/// hour.
fn new_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1_000, 3_600_000_000_000, 3)
        .expect("the bounds are those of the library's documentation")
}

impl Outcome {
    /// The mean number of statements per second.
    pub fn per_second_mean(&self) -> f64 {
        if self.seconds > 0.0 {
            self.statements as f64 / self.seconds
        } else {
            0.0
        }
    }

    /// The number of statements that the server rejected.
    pub fn error_count(&self) -> u64 {
        self.errors.values().map(|e| e.count).sum()
    }

    /// The latency in microseconds that the share `q` (0 to 1) of all statements does not exceed; 0
    /// without statements.
    pub fn latency_us(&self, q: f64) -> f64 {
        self.latency.value_at_quantile(q) as f64 / 1_000.0
    }

    pub(super) fn error(&mut self, code: u16, message: &str) {
        let entry = self.errors.entry(code).or_insert_with(|| ErrorCount {
            count: 0,
            message: message.to_owned(),
        });
        entry.count += 1;
    }

    /// Adds the measurements of another thread.
    pub(super) fn add(&mut self, other: Outcome) {
        self.statements += other.statements;
        self.events += other.events;
        self.rows += other.rows;
        self.bytes += other.bytes;
        self.checksum = self.checksum.wrapping_add(other.checksum);
        // This cannot fail, because the histograms have the same bounds.
        let _ = self.latency.add(&other.latency);
        let _ = self.event_latency.add(&other.event_latency);
        for (code, e) in other.errors {
            let entry = self.errors.entry(code).or_insert(ErrorCount {
                count: 0,
                message: e.message,
            });
            entry.count += e.count;
        }
        self.lost_at.extend(other.lost_at);
        self.lost_at.sort_by(f64::total_cmp);
        self.dead += other.dead;
        if self.per_second.len() < other.per_second.len() {
            self.per_second.resize(other.per_second.len(), 0);
        }
        for (sum, n) in self.per_second.iter_mut().zip(other.per_second) {
            *sum += n;
        }
    }
}
