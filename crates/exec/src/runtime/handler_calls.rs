//! The calls to MySQL's storage engine interface, as status counters and `performance_schema` count
//! them.

use nfold_engine::{Bound, KeyRange};
use nfold_observe::{SessionCounters, StatusCounter};

/// The calls to MySQL's storage engine interface that correspond to a read, as SHOW STATUS counts
/// them (`Handler_%`), and the fetches among them, as `performance_schema` counts them for each
/// table and index.
#[derive(Clone, Copy, Default)]
pub(crate) struct HandlerCalls {
    /// Lookups that are not counted yet.
    lookups: u64,
    /// Keys that are looked up and may have several rows each.
    pub keys: u64,
    /// The counter of steps from row to row.
    step: Option<StatusCounter>,
    /// The lookup finds the first row; otherwise a step does.
    lookup_finds_first: bool,
    /// The range begins at a key, which is looked up.
    looks_up: bool,
    /// The rows found in the range at hand, or by the keys.
    rows: u64,
}

impl HandlerCalls {
    /// The lookups of `keys`. A key of a unique index has no second row to step to.
    pub fn of_points(keys: u64, unique: bool) -> HandlerCalls {
        HandlerCalls {
            lookups: keys,
            keys: if unique { 0 } else { keys },
            step: (!unique).then_some(StatusCounter::HandlerReadNext),
            ..HandlerCalls::default()
        }
    }

    /// The lookups of the rows of an index merge. In MySQL it reads each row by its position.
    pub fn of_merged_rows() -> HandlerCalls {
        HandlerCalls {
            step: Some(StatusCounter::HandlerReadRnd),
            ..HandlerCalls::default()
        }
    }

    /// A range begins. `scan`: in MySQL it is a table scan.
    pub fn of_range(
        counters: &SessionCounters,
        range: &KeyRange,
        reverse: bool,
        scan: bool,
    ) -> HandlerCalls {
        use StatusCounter::*;
        let (end, edge, step) = match reverse {
            false => (&range.lo, HandlerReadFirst, HandlerReadNext),
            true => (&range.hi, HandlerReadLast, HandlerReadPrev),
        };
        counters.add(HandlerReadKey, 1);
        let looks_up = !matches!(end, Bound::Unbounded);
        if !looks_up {
            counters.add(edge, 1);
        }
        HandlerCalls {
            step: Some(if scan { HandlerReadRndNext } else { step }),
            lookup_finds_first: !scan,
            looks_up,
            ..HandlerCalls::default()
        }
    }

    /// Rows were read. Returns the number of fetches.
    #[inline]
    pub fn read(&mut self, counters: &SessionCounters, rows: u64) -> u64 {
        let lookups = std::mem::take(&mut self.lookups);
        if lookups > 0 {
            counters.add(StatusCounter::HandlerReadKey, lookups);
        }
        let Some(step) = self.step else {
            return lookups;
        };
        if rows > 0 {
            let first = u64::from(self.lookup_finds_first && self.rows == 0);
            counters.add(step, rows - first);
            self.rows += rows;
        }
        rows
    }

    /// A range has no more rows: one more step has found that, unless the lookup has. Returns the
    /// number of fetches that have found no row. `counts_ends`: the fetch that finds the end
    /// counts.
    pub fn ended(&self, counters: &SessionCounters, counts_ends: bool) -> u64 {
        let found = self.rows > 0;
        if let Some(step) = self.step
            && (found || !self.lookup_finds_first)
        {
            counters.add(step, 1);
        }
        u64::from(counts_ends || self.looks_up && !found)
    }

    /// The keys have no more rows. Returns the number of fetches that have found no row. Without
    /// `counts_ends` these are the keys without rows. If some keys have several rows, there may be
    /// more of them.
    pub fn keys_ended(&self, counts_ends: bool) -> u64 {
        match counts_ends {
            true => self.keys,
            false => self.keys.saturating_sub(self.rows),
        }
    }
}
