//! Statistics by statement digest: how often statements of one digest ran, how long they took, and
//! how many rows they read, sent and changed.
//!
//! # Picture
//! ```text
//!  DigestId (slot, epoch) ── sessions keep it beside their cached plans
//!        │ record: the worker's own block of the slot, allocated at its first use
//!  worker 0: [ block | block |       | ... ]      registry (mutex): digest ─▶ slot, texts, first seen
//!  worker 1: [       | block | block | ... ]      epoch: incremented by each reset
//! ```
//! # Invariants
//! - D1: only a worker's own thread writes to its blocks, by a load and a store. No locked
//!   instruction is needed.
//! - D2: a block with another epoch than the table's counts as empty, and its worker clears it at
//!   the next use. So a reset writes one number, and no earlier count comes back.
//! - D3: slot 0 collects all digests for which no slot was free.
//!
//! # Cost
//! Recording a run takes about fifteen loads and stores on three lines of the worker. Memory: 1.2
//! KiB for each digest that a worker has run, for at most `size` digests per worker.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::histogram::{bucket_of, upper};

/// The number of buckets of a latency histogram: four for each power of two.
pub const LATENCY_BUCKETS: usize = 128;
/// Latencies below 1,024 ns share the first bucket: this is `bucket_of(1024) - 1`.
const FIRST_BUCKET: usize = 35;
/// The capacity of the map from keys to slots, as a multiple of the number of slots.
const KEYS_PER_SLOT: usize = 4;

/// The bucket of a latency in nanoseconds.
#[inline]
fn latency_bucket(ns: u64) -> usize {
    bucket_of(ns)
        .saturating_sub(FIRST_BUCKET)
        .min(LATENCY_BUCKETS - 1)
}

/// The bounds of a bucket in nanoseconds: from the first (included) to the second (excluded).
pub fn latency_bounds(bucket: usize) -> (u64, u64) {
    let end = |b: usize| upper(b + FIRST_BUCKET).saturating_add(1);
    let low = bucket.checked_sub(1).map_or(0, end);
    match bucket {
        b if b + 1 < LATENCY_BUCKETS => (low, end(b)),
        _ => (low, u64::MAX),
    }
}

/// Identifies a digest until the statistics are reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DigestId {
    slot: u32,
    /// The reset epoch; 0 is no digest.
    epoch: u32,
}

/// How a statement read its tables: bits of [`Run::access`].
pub mod access {
    /// A table was read without an index.
    pub const NO_INDEX: u8 = 1;
    /// Full scan of the first table.
    pub const SCAN: u8 = 2;
    /// Full scan of a later table, once for each row combination of the tables before it.
    pub const FULL_JOIN: u8 = 4;
    /// Range scan of the first table.
    pub const RANGE: u8 = 8;
    /// Range scan of a later table.
    pub const RANGE_JOIN: u8 = 16;
}

/// The figures of one execution.
#[derive(Debug, Clone, Copy, Default)]
pub struct Run {
    pub latency_ns: u64,
    /// Microseconds since 1970.
    pub at_us: u64,
    pub rows_sent: u64,
    pub rows_examined: u64,
    pub rows_affected: u64,
    pub warnings: u64,
    pub failed: bool,
    /// See [`access`].
    pub access: u8,
}

/// The sums of a block. Those that every run updates come first.
#[derive(Clone, Copy)]
#[repr(usize)]
enum Sum {
    Count,
    LatencyNs,
    RowsSent,
    RowsExamined,
    RowsAffected,
    Warnings,
    Errors,
    NoIndex,
    Scan,
    FullJoin,
    Range,
    RangeJoin,
}
const SUMS: usize = 12;

#[repr(align(128))]
struct Block {
    epoch: AtomicU32,
    sums: [AtomicU64; SUMS],
    min_ns: AtomicU64,
    max_ns: AtomicU64,
    last_us: AtomicU64,
    buckets: [AtomicU64; LATENCY_BUCKETS],
}

/// Adds without a locked instruction, because only the owner stores to the cell (D1).
#[inline]
fn add(cell: &AtomicU64, n: u64) {
    cell.store(cell.load(Relaxed).wrapping_add(n), Relaxed);
}

impl Block {
    fn new() -> Block {
        let zero = || AtomicU64::new(0);
        Block {
            epoch: AtomicU32::new(0),
            sums: std::array::from_fn(|_| zero()),
            min_ns: AtomicU64::new(u64::MAX),
            max_ns: zero(),
            last_us: zero(),
            buckets: std::array::from_fn(|_| zero()),
        }
    }

    #[cold]
    fn clear(&self, epoch: u32) {
        for cell in self.sums.iter().chain(&self.buckets) {
            cell.store(0, Relaxed);
        }
        self.min_ns.store(u64::MAX, Relaxed);
        self.max_ns.store(0, Relaxed);
        self.last_us.store(0, Relaxed);
        self.epoch.store(epoch, Relaxed);
    }

    #[inline]
    fn record(&self, epoch: u32, run: &Run) {
        if self.epoch.load(Relaxed) != epoch {
            self.clear(epoch);
        }
        let sum = |which: Sum, n: u64| add(&self.sums[which as usize], n);
        sum(Sum::Count, 1);
        sum(Sum::LatencyNs, run.latency_ns);
        sum(Sum::RowsSent, run.rows_sent);
        sum(Sum::RowsExamined, run.rows_examined);
        if run.latency_ns < self.min_ns.load(Relaxed) {
            self.min_ns.store(run.latency_ns, Relaxed);
        }
        if run.latency_ns > self.max_ns.load(Relaxed) {
            self.max_ns.store(run.latency_ns, Relaxed);
        }
        self.last_us.store(run.at_us, Relaxed);
        if run.rows_affected > 0 {
            sum(Sum::RowsAffected, run.rows_affected);
        }
        if run.warnings > 0 || run.failed {
            sum(Sum::Warnings, run.warnings);
            sum(Sum::Errors, u64::from(run.failed));
        }
        if run.access != 0 {
            self.record_access(run.access);
        }
        add(&self.buckets[latency_bucket(run.latency_ns)], 1);
    }

    fn record_access(&self, bits: u8) {
        let sums = [
            (access::NO_INDEX, Sum::NoIndex),
            (access::SCAN, Sum::Scan),
            (access::FULL_JOIN, Sum::FullJoin),
            (access::RANGE, Sum::Range),
            (access::RANGE_JOIN, Sum::RangeJoin),
        ];
        for (bit, which) in sums {
            if bits & bit != 0 {
                add(&self.sums[which as usize], 1);
            }
        }
    }
}

/// The identity of a digest: its database and its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DigestName {
    /// The current database of the session that ran it.
    pub schema: Option<Box<str>>,
    pub text: Box<str>,
    /// The beginning of the first statement that was seen with this digest.
    pub sample: Box<str>,
    /// Microseconds since 1970.
    pub first_us: u64,
}

/// The statistics of a digest, summed over all workers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DigestRow {
    /// `None` for the digests without a slot (D3).
    pub name: Option<DigestName>,
    pub count: u64,
    pub latency_ns: u64,
    pub min_ns: u64,
    pub max_ns: u64,
    pub last_us: u64,
    pub rows_sent: u64,
    pub rows_examined: u64,
    pub rows_affected: u64,
    pub warnings: u64,
    pub errors: u64,
    pub no_index: u64,
    pub scans: u64,
    pub full_joins: u64,
    pub ranges: u64,
    pub range_joins: u64,
    pub buckets: Box<[u64; LATENCY_BUCKETS]>,
}

impl DigestRow {
    /// The latency in nanoseconds that the given share of the runs did not exceed: the upper bound
    /// of its bucket, but at most the maximum.
    pub fn quantile_ns(&self, share: f64) -> u64 {
        let rank = (self.count as f64 * share).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (bucket, n) in self.buckets.iter().enumerate() {
            seen += n;
            if seen >= rank {
                return (latency_bounds(bucket).1 - 1).min(self.max_ns);
            }
        }
        self.max_ns
    }
}

#[derive(Default)]
struct Registry {
    /// Maps the caller's key (a strong hash) to a slot.
    by_key: std::collections::HashMap<u128, u32>,
    by_name: std::collections::HashMap<(Option<Box<str>>, Box<str>), u32>,
    /// The names of slots 1, 2, ...
    names: Vec<DigestName>,
}

/// The statistics of all digests. See the module's header.
pub struct Digests {
    workers: Box<[Box<[OnceLock<Box<Block>>]>]>,
    registry: Mutex<Registry>,
    epoch: AtomicU32,
}

impl Digests {
    /// Creates statistics for `workers` workers and `size` digests.
    pub fn new(workers: usize, size: usize) -> Digests {
        let slots = || (0..=size).map(|_| OnceLock::new()).collect();
        Digests {
            workers: (0..workers.max(1)).map(|_| slots()).collect(),
            registry: Mutex::default(),
            epoch: AtomicU32::new(1),
        }
    }

    fn registry(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the id was made since the last reset.
    #[inline]
    pub fn is_current(&self, id: DigestId) -> bool {
        id.epoch == self.epoch.load(Relaxed)
    }

    /// Returns the id of a digest. `key` is a strong hash of the statement and its database. `name`
    /// is called only for a key that is not in the map.
    pub fn intern(&self, key: u128, name: impl FnOnce() -> DigestName) -> DigestId {
        let size = self.workers[0].len() - 1;
        let mut registry = self.registry();
        let epoch = self.epoch.load(Relaxed);
        if let Some(&slot) = registry.by_key.get(&key) {
            return DigestId { slot, epoch };
        }
        let name = name();
        let full = registry.names.len() >= size;
        let identity = (name.schema.clone(), name.text.clone());
        let slot = match registry.by_name.get(&identity) {
            Some(&slot) => slot,
            None if full => 0,
            None => {
                registry.names.push(name);
                let slot = registry.names.len() as u32;
                registry.by_name.insert(identity, slot);
                slot
            }
        };
        if registry.by_key.len() >= KEYS_PER_SLOT * size {
            registry.by_key.clear();
        }
        registry.by_key.insert(key, slot);
        DigestId { slot, epoch }
    }

    /// Counts a run. Only the thread of `worker` may call this.
    #[inline]
    pub fn record(&self, worker: usize, id: DigestId, run: &Run) {
        let Some(place) = self
            .workers
            .get(worker)
            .and_then(|blocks| blocks.get(id.slot as usize))
        else {
            return;
        };
        let block = place.get_or_init(|| Box::new(Block::new()));
        block.record(id.epoch, run);
    }

    /// Resets all statistics.
    pub fn reset(&self) {
        let mut registry = self.registry();
        *registry = Registry::default();
        // Under the mutex, so that no slot is assigned twice in one epoch. Epoch 0 means no digest.
        let next = self.epoch.load(Relaxed).checked_add(1).unwrap_or(1);
        self.epoch.store(next, Relaxed);
    }

    /// The statistics of all digests that ran; the digests without a slot come first.
    pub fn rows(&self) -> Vec<DigestRow> {
        let (names, epoch) = {
            let registry = self.registry();
            (registry.names.clone(), self.epoch.load(Relaxed))
        };
        let named = names.into_iter().map(Some);
        std::iter::once(None)
            .chain(named)
            .enumerate()
            .map(|(slot, name)| self.row(slot, name, epoch))
            .filter(|row| row.count > 0)
            .collect()
    }

    fn row(&self, slot: usize, name: Option<DigestName>, epoch: u32) -> DigestRow {
        let mut sums = [0u64; SUMS];
        let mut buckets = Box::new([0u64; LATENCY_BUCKETS]);
        let (mut min_ns, mut max_ns, mut last_us) = (u64::MAX, 0, 0);
        let blocks = self.workers.iter().filter_map(|w| w.get(slot)?.get());
        for block in blocks.filter(|b| b.epoch.load(Relaxed) == epoch) {
            let all = sums.iter_mut().chain(buckets.iter_mut());
            for (sum, cell) in all.zip(block.sums.iter().chain(&block.buckets)) {
                *sum = sum.wrapping_add(cell.load(Relaxed));
            }
            min_ns = min_ns.min(block.min_ns.load(Relaxed));
            max_ns = max_ns.max(block.max_ns.load(Relaxed));
            last_us = last_us.max(block.last_us.load(Relaxed));
        }
        let sum = |which: Sum| sums[which as usize];
        DigestRow {
            name,
            count: sum(Sum::Count),
            latency_ns: sum(Sum::LatencyNs),
            min_ns,
            max_ns,
            last_us,
            rows_sent: sum(Sum::RowsSent),
            rows_examined: sum(Sum::RowsExamined),
            rows_affected: sum(Sum::RowsAffected),
            warnings: sum(Sum::Warnings),
            errors: sum(Sum::Errors),
            no_index: sum(Sum::NoIndex),
            scans: sum(Sum::Scan),
            full_joins: sum(Sum::FullJoin),
            ranges: sum(Sum::Range),
            range_joins: sum(Sum::RangeJoin),
            buckets,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> DigestName {
        DigestName {
            schema: Some("d".into()),
            text: text.into(),
            sample: text.into(),
            first_us: 5,
        }
    }

    fn run(latency_ns: u64) -> Run {
        Run {
            latency_ns,
            at_us: latency_ns,
            rows_sent: 2,
            access: access::NO_INDEX | access::SCAN,
            ..Run::default()
        }
    }

    #[test]
    fn buckets_cover_all_latencies() {
        let mut at = 0;
        for bucket in 0..LATENCY_BUCKETS {
            let (low, high) = latency_bounds(bucket);
            assert_eq!(low, at);
            assert_eq!(latency_bucket(low), bucket);
            assert_eq!(latency_bucket(high - 1), bucket);
            at = high;
        }
        assert_eq!(at, u64::MAX);
        assert!(latency_bounds(0).1 <= 1024);
    }

    #[test]
    fn rows_sum_over_workers() {
        let digests = Digests::new(4, 10);
        let ids: Vec<DigestId> = (0..3)
            .map(|n| digests.intern(n, || name(&format!("S{n}"))))
            .collect();
        std::thread::scope(|s| {
            for worker in 0..4 {
                let (digests, ids) = (&digests, &ids);
                s.spawn(move || {
                    for n in 0..300u64 {
                        let ns = 1000 * (worker as u64 + 1) + n;
                        digests.record(worker, ids[n as usize % 3], &run(ns));
                    }
                });
            }
        });
        let rows = digests.rows();
        assert_eq!(rows.len(), 3);
        for (n, row) in rows.iter().enumerate() {
            let all: Vec<u64> = (0..4u64)
                .flat_map(|w| {
                    (0..300)
                        .filter(|i| i % 3 == n as u64)
                        .map(move |i| 1000 * (w + 1) + i)
                })
                .collect();
            assert_eq!(row.name.as_ref().map(|n| &*n.text), Some(&*format!("S{n}")));
            assert_eq!((row.count, row.rows_sent, row.scans), (400, 800, 400));
            assert_eq!(row.latency_ns, all.iter().sum::<u64>());
            assert_eq!(Some(&row.min_ns), all.iter().min());
            assert_eq!(Some(&row.max_ns), all.iter().max());
            assert_eq!(row.buckets.iter().sum::<u64>(), 400);
            let mut sorted = all.clone();
            sorted.sort_unstable();
            let median = sorted[199];
            assert!((median..=median * 5 / 4).contains(&row.quantile_ns(0.5)));
        }
    }

    #[test]
    fn equal_names_share_a_slot_and_overflow_slot_0() {
        let digests = Digests::new(1, 2);
        let a = digests.intern(1, || name("a"));
        assert_eq!(a, digests.intern(2, || name("a")));
        assert_eq!(
            a,
            digests.intern(1, || unreachable!("the key is in the map"))
        );
        let b = digests.intern(3, || name("b"));
        let c = digests.intern(4, || name("c"));
        let d = digests.intern(5, || name("d"));
        assert!(a != b && c == d && c.slot == 0);
        for id in [a, b, c, d] {
            digests.record(0, id, &run(7));
        }
        let rows = digests.rows();
        assert_eq!(rows.iter().map(|r| r.count).collect::<Vec<_>>(), [2, 1, 1]);
        assert!(rows[0].name.is_none());
    }

    #[test]
    fn reset_counts_do_not_come_back() {
        let digests = Digests::new(2, 5);
        let a = digests.intern(1, || name("a"));
        digests.record(0, a, &run(10));
        digests.record(1, a, &run(10));
        digests.reset();
        assert!(digests.rows().is_empty() && !digests.is_current(a));
        // A late run with the old id, and a new digest in the same slot.
        digests.record(0, a, &run(10));
        let b = digests.intern(2, || name("b"));
        assert_eq!(b.slot, a.slot);
        digests.record(1, b, &run(99));
        let rows = digests.rows();
        assert_eq!((rows.len(), rows[0].count, rows[0].min_ns), (1, 1, 99));
        assert!(!digests.is_current(DigestId::default()));
    }
}
