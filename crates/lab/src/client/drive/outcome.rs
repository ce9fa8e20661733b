//! What a run measured.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;

/// How often the server refused with one number, and its first message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorCount {
    pub count: u64,
    pub message: String,
}

/// Sums of all threads over the measured window (where there is none, over the whole run).
#[derive(Debug, Clone)]
pub struct Outcome {
    pub connections: usize,
    /// Length of the measured window.
    pub seconds: f64,
    /// CPU seconds of each client thread in it; empty where /proc does not tell.
    pub client_cpu: Vec<f64>,
    /// Statements answered, errors included.
    pub statements: u64,
    /// Events (transactions of a workload) ended; equal to statements where an event is one statement.
    pub events: u64,
    pub rows: u64,
    pub bytes: u64,
    /// Sum of the answers' checksums, order-independent.
    pub checksum: u64,
    /// Latency of statements in nanoseconds.
    pub latency: Histogram<u64>,
    /// Latency of events in nanoseconds; empty where an event is one statement.
    pub event_latency: Histogram<u64>,
    /// By MySQL's error number.
    pub errors: BTreeMap<u16, ErrorCount>,
    /// Seconds since the window's beginning (negative: in the warm-up) at which connections were lost.
    pub lost_at: Vec<f64>,
    /// Connections that did not come back.
    pub dead: usize,
    /// Statements answered in each whole second of the window.
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

/// One microsecond to an hour, three digits; longer times are taken for an hour.
fn new_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1_000, 3_600_000_000_000, 3)
        .expect("the bounds are those of the library's documentation")
}

impl Outcome {
    /// Statements a second.
    pub fn per_second_mean(&self) -> f64 {
        if self.seconds > 0.0 {
            self.statements as f64 / self.seconds
        } else {
            0.0
        }
    }

    /// Statements that the server refused.
    pub fn error_count(&self) -> u64 {
        self.errors.values().map(|e| e.count).sum()
    }

    /// Latency in microseconds below which the share `q` (0 to 1) of statements lies; 0 where there were none.
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

    /// Adds what another thread measured.
    pub(super) fn add(&mut self, other: Outcome) {
        self.statements += other.statements;
        self.events += other.events;
        self.rows += other.rows;
        self.bytes += other.bytes;
        self.checksum = self.checksum.wrapping_add(other.checksum);
        // The histograms have the same bounds, so this cannot fail.
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
