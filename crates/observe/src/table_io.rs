//! What statements do to a table, for each of its indexes: rows fetched, inserted, updated and
//! deleted, and the statements that used the table (`table_io_waits_summary_by_index_usage` and
//! its kin).
//!
//! # Picture
//! ```text
//! TableIo ── shards[worker] ── lines of 16 counters: 4 for each index, 4 for no index, 2 of use
//! ```
//! # Invariants
//! - T1: a worker adds to its own shard, which has cache lines of its own.
//! - T2: a counter never falls. Resetting the counts records the sums of that time, which later
//!   reports subtract; it writes to no shard.
//! # Cost
//! An addition is one relaxed `fetch_add` on the worker's own line. A worker's first addition to a
//! table allocates its shard; a table that no statement has used has none. What belongs to a worker
//! and is reused, such as its operators, holds the shard ([`OwnTableIo`]) and looks for none.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::sharded::{SHARDS, shard};

/// The calls to MySQL's storage engine interface that `performance_schema` counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableCall {
    Fetch,
    Insert,
    Update,
    Delete,
}

/// The counters of an index.
const CALLS: usize = 4;
/// The counters of a table besides those of its indexes.
const USES: usize = 2;
/// The counters of a line.
const LINE: usize = 16;

/// The calls for one index of a table, or without an index.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IndexCalls {
    pub fetched: u64,
    pub inserted: u64,
    pub updated: u64,
    pub deleted: u64,
    /// There were calls since the table was opened, before a reset perhaps.
    pub ever: bool,
}

/// The counts of a table since the last reset.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TableCalls {
    /// In the order of the table's indexes.
    pub by_index: Vec<IndexCalls>,
    pub without_index: IndexCalls,
    /// The statements that read it, and those that changed it or locked its rows to change them.
    pub read_locks: u64,
    pub write_locks: u64,
}

#[derive(Debug, Default)]
#[repr(align(128))]
struct Line([AtomicU64; LINE]);

/// The shard of one worker.
type Lines = OnceLock<Arc<[Line]>>;

/// The counters of a table.
#[derive(Debug)]
pub struct TableIo {
    indexes: usize,
    shards: OnceLock<Box<[Lines]>>,
    /// The sums at the last reset; empty: there was none.
    reset: Mutex<Vec<u64>>,
}

impl TableIo {
    /// The counters of a table with this number of indexes.
    pub fn new(indexes: usize) -> TableIo {
        TableIo {
            indexes,
            shards: OnceLock::new(),
            reset: Mutex::default(),
        }
    }

    /// The place of calls that use no index. The place of an index is its number.
    #[inline]
    pub fn no_index(&self) -> usize {
        self.indexes
    }

    /// Counts calls. `place` is the number of an index, or [`Self::no_index`].
    #[inline]
    pub fn add(&self, place: usize, call: TableCall, n: u64) {
        let shards = self.shards.get().and_then(|shards| shards.get(shard()));
        let lines = match shards.and_then(|lines| lines.get()) {
            Some(lines) => lines,
            None => self.own_lines(),
        };
        add_at(lines, place * CALLS + call as usize, n);
    }

    /// The counters of this worker.
    pub fn own(&self) -> OwnTableIo {
        OwnTableIo {
            lines: self.own_lines().clone(),
            uses: self.uses(),
        }
    }

    /// The counts since the last reset.
    pub fn calls(&self) -> TableCalls {
        let sums = self.sums();
        let reset = self.reset.lock().unwrap_or_else(PoisonError::into_inner);
        let since = |at: usize| sums[at].wrapping_sub(reset.get(at).copied().unwrap_or(0));
        let of_place = |place: usize| {
            let at = place * CALLS;
            IndexCalls {
                fetched: since(at),
                inserted: since(at + 1),
                updated: since(at + 2),
                deleted: since(at + 3),
                ever: sums[at..at + CALLS].iter().any(|n| *n > 0),
            }
        };
        TableCalls {
            by_index: (0..self.indexes).map(of_place).collect(),
            without_index: of_place(self.no_index()),
            read_locks: since(self.uses()),
            write_locks: since(self.uses() + 1),
        }
    }

    /// Lets the counts of calls begin at zero again.
    pub fn reset_calls(&self) {
        self.reset_range(0..self.uses());
    }

    /// Lets the counts of statements begin at zero again.
    pub fn reset_locks(&self) {
        self.reset_range(self.uses()..self.counters());
    }

    fn reset_range(&self, range: std::ops::Range<usize>) {
        let sums = self.sums();
        let mut reset = self.reset.lock().unwrap_or_else(PoisonError::into_inner);
        reset.resize(self.counters(), 0);
        reset[range.clone()].copy_from_slice(&sums[range]);
    }

    /// The index of the first counter of statements.
    #[inline]
    fn uses(&self) -> usize {
        (self.indexes + 1) * CALLS
    }

    fn counters(&self) -> usize {
        self.uses() + USES
    }

    /// This worker's shard, which is allocated at the first use.
    #[cold]
    #[inline(never)]
    fn own_lines(&self) -> &Arc<[Line]> {
        let shards = self
            .shards
            .get_or_init(|| (0..SHARDS).map(|_| Lines::new()).collect());
        let lines = self.counters().div_ceil(LINE);
        shards[shard()].get_or_init(|| (0..lines).map(|_| Line::default()).collect())
    }

    /// The sums over all workers since the table was opened.
    fn sums(&self) -> Vec<u64> {
        let mut sums = vec![0u64; self.counters()];
        let shards = self.shards.get().into_iter().flatten();
        for lines in shards.filter_map(|lines| lines.get()) {
            let counters = lines.iter().flat_map(|line| &line.0);
            for (sum, counter) in sums.iter_mut().zip(counters) {
                *sum = sum.wrapping_add(counter.load(Relaxed));
            }
        }
        sums
    }
}

/// The counters of one worker for a table.
#[derive(Debug, Clone)]
pub struct OwnTableIo {
    lines: Arc<[Line]>,
    uses: usize,
}

impl OwnTableIo {
    /// As [`TableIo::add`].
    #[inline]
    pub fn add(&self, place: usize, call: TableCall, n: u64) {
        add_at(&self.lines, place * CALLS + call as usize, n);
    }

    /// Counts a statement that uses the table. `writes`: it changes the table, or locks rows to
    /// change them.
    #[inline]
    pub fn add_lock(&self, writes: bool) {
        add_at(&self.lines, self.uses + usize::from(writes), 1);
    }
}

#[inline]
fn add_at(lines: &[Line], at: usize, n: u64) {
    if let Some(line) = lines.get(at / LINE) {
        line.0[at % LINE].fetch_add(n, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::set_shard;

    #[test]
    fn calls_of_all_workers_are_summed_by_index() {
        let io = TableIo::new(5);
        std::thread::scope(|s| {
            for worker in 0..4 {
                let io = &io;
                s.spawn(move || {
                    set_shard(worker);
                    io.add(4, TableCall::Fetch, 3);
                    io.add(io.no_index(), TableCall::Insert, 1);
                    io.own().add_lock(worker == 0);
                });
            }
        });
        let calls = io.calls();
        assert_eq!(calls.by_index.len(), 5);
        assert_eq!(calls.by_index[4].fetched, 12);
        assert!(!calls.by_index[3].ever);
        assert_eq!(calls.without_index.inserted, 4);
        assert_eq!((calls.read_locks, calls.write_locks), (3, 1));
    }

    #[test]
    fn resets_concern_calls_or_locks() {
        let io = TableIo::new(1);
        assert_eq!(io.calls().by_index, [IndexCalls::default()]);
        io.add(0, TableCall::Delete, 2);
        io.own().add_lock(true);
        io.reset_calls();
        let calls = io.calls();
        assert_eq!((calls.by_index[0].deleted, calls.write_locks), (0, 1));
        assert!(calls.by_index[0].ever);
        io.add(0, TableCall::Delete, 1);
        io.reset_locks();
        let calls = io.calls();
        assert_eq!((calls.by_index[0].deleted, calls.write_locks), (1, 0));
    }
}
