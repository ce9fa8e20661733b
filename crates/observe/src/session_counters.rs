//! Status counters with a value for each session (`Handler_%`, `Select_%`, `Sort_%`, `Com_%` and
//! others).
//!
//! # Invariants
//! - C1: only its own session adds to a session's counters, so an addition is a load and a store
//!   and no atomic read-modify-write.
//! - C2: the server's value is the sum over the open sessions and what ended sessions have left, so
//!   it never falls.
//! # Cost
//! An addition writes one line of the session's own. Opening and closing a session take a mutex.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use crate::statement_kinds::{KIND_NAMES, StatementKind};

macro_rules! status_counters {
    ($($counter:ident),* $(,)?) => {
        /// The counters by MySQL's names without the underscores.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum StatusCounter {
            $($counter),*
        }

        /// All counters, in the order of their values.
        const ALL: &[StatusCounter] = &[$(StatusCounter::$counter),*];
    };
}

status_counters! {
    CreatedTmpTables,
    HandlerCommit,
    HandlerDelete,
    HandlerExternalLock,
    HandlerReadFirst,
    HandlerReadKey,
    HandlerReadLast,
    HandlerReadNext,
    HandlerReadPrev,
    HandlerReadRnd,
    HandlerReadRndNext,
    HandlerRollback,
    HandlerSavepoint,
    HandlerSavepointRollback,
    HandlerUpdate,
    HandlerWrite,
    OpenedTables,
    SelectFullJoin,
    SelectFullRangeJoin,
    SelectRange,
    SelectScan,
    SortMergePasses,
    SortRange,
    SortRows,
    SortScan,
}

/// The number of counters.
const COUNTERS: usize = ALL.len();

impl StatusCounter {
    /// The name that SHOW STATUS has for the counter.
    pub fn name(self) -> &'static str {
        use StatusCounter::*;
        match self {
            CreatedTmpTables => "Created_tmp_tables",
            HandlerCommit => "Handler_commit",
            HandlerDelete => "Handler_delete",
            HandlerExternalLock => "Handler_external_lock",
            HandlerReadFirst => "Handler_read_first",
            HandlerReadKey => "Handler_read_key",
            HandlerReadLast => "Handler_read_last",
            HandlerReadNext => "Handler_read_next",
            HandlerReadPrev => "Handler_read_prev",
            HandlerReadRnd => "Handler_read_rnd",
            HandlerReadRndNext => "Handler_read_rnd_next",
            HandlerRollback => "Handler_rollback",
            HandlerSavepoint => "Handler_savepoint",
            HandlerSavepointRollback => "Handler_savepoint_rollback",
            HandlerUpdate => "Handler_update",
            HandlerWrite => "Handler_write",
            OpenedTables => "Opened_tables",
            SelectFullJoin => "Select_full_join",
            SelectFullRangeJoin => "Select_full_range_join",
            SelectRange => "Select_range",
            SelectScan => "Select_scan",
            SortMergePasses => "Sort_merge_passes",
            SortRange => "Sort_range",
            SortRows => "Sort_rows",
            SortScan => "Sort_scan",
        }
    }
}

/// The number of all values: those of the counters, then those of the kinds of statements.
const VALUES: usize = COUNTERS + KIND_NAMES.len();

/// The values of all counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CounterValues([u64; VALUES]);

impl Default for CounterValues {
    fn default() -> CounterValues {
        CounterValues([0; VALUES])
    }
}

impl CounterValues {
    /// Each counter by the name that SHOW STATUS has for it, with its value.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let counters = ALL.iter().map(|counter| counter.name());
        counters.chain(KIND_NAMES.iter().copied()).zip(self.0)
    }

    /// The value of one counter.
    pub fn get(&self, counter: StatusCounter) -> u64 {
        self.0[counter as usize]
    }

    fn add(&mut self, more: &CounterValues) {
        for (sum, n) in self.0.iter_mut().zip(more.0) {
            *sum = sum.wrapping_add(n);
        }
    }
}

/// The counters of one session.
#[derive(Debug)]
#[repr(align(128))]
pub struct SessionCounters([AtomicU64; VALUES]);

impl Default for SessionCounters {
    fn default() -> SessionCounters {
        SessionCounters(std::array::from_fn(|_| AtomicU64::new(0)))
    }
}

impl SessionCounters {
    /// Adds to a counter. Called by the counters' session alone (C1).
    #[inline]
    pub fn add(&self, counter: StatusCounter, n: u64) {
        self.add_at(counter as usize, n);
    }

    /// Counts a statement or a command. Called by the counters' session alone (C1).
    #[inline]
    pub fn count(&self, kind: StatementKind) {
        self.add_at(COUNTERS + kind as usize, 1);
    }

    #[inline]
    fn add_at(&self, at: usize, n: u64) {
        let value = &self.0[at];
        value.store(value.load(Relaxed).wrapping_add(n), Relaxed);
    }

    /// The values as they are now.
    pub fn values(&self) -> CounterValues {
        CounterValues(std::array::from_fn(|n| self.0[n].load(Relaxed)))
    }

    /// Sets the counters to zero. Called by the counters' session alone.
    fn reset(&self) {
        self.0.iter().for_each(|value| value.store(0, Relaxed));
    }
}

/// The counters of all sessions.
#[derive(Debug, Default)]
pub struct AllSessionCounters(Mutex<Sessions>);

#[derive(Debug, Default)]
struct Sessions {
    next: u64,
    open: BTreeMap<u64, Arc<SessionCounters>>,
    ended: CounterValues,
}

impl AllSessionCounters {
    /// The counters of a new session. They are part of the sums until they are dropped, and leave
    /// their values there.
    pub fn open(self: &Arc<Self>) -> OwnCounters {
        let counters = Arc::<SessionCounters>::default();
        let mut sessions = self.sessions();
        let number = sessions.next;
        sessions.next += 1;
        sessions.open.insert(number, counters.clone());
        OwnCounters {
            number,
            counters,
            all: self.clone(),
        }
    }

    /// The sums over all sessions that there have been.
    pub fn values(&self) -> CounterValues {
        let sessions = self.sessions();
        let mut sum = sessions.ended;
        for counters in sessions.open.values() {
            sum.add(&counters.values());
        }
        sum
    }

    fn sessions(&self) -> std::sync::MutexGuard<'_, Sessions> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A session's own counters.
#[derive(Debug)]
pub struct OwnCounters {
    number: u64,
    counters: Arc<SessionCounters>,
    all: Arc<AllSessionCounters>,
}

impl OwnCounters {
    /// FLUSH STATUS: the session's values go to the server's and begin at zero again.
    pub fn flush(&self) {
        let mut sessions = self.all.sessions();
        sessions.ended.add(&self.counters.values());
        self.counters.reset();
    }
}

impl Deref for OwnCounters {
    type Target = SessionCounters;

    fn deref(&self) -> &SessionCounters {
        &self.counters
    }
}

impl Drop for OwnCounters {
    fn drop(&mut self) {
        let mut sessions = self.all.sessions();
        sessions.ended.add(&self.counters.values());
        sessions.open.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use StatusCounter::{HandlerWrite, SortRows};

    #[test]
    fn sums_keep_what_ended_sessions_counted() {
        let all = Arc::<AllSessionCounters>::default();
        let (a, b) = (all.open(), all.open());
        a.add(HandlerWrite, 3);
        b.add(HandlerWrite, 4);
        b.add(SortRows, 1);
        assert_eq!(a.values().get(HandlerWrite), 3);
        assert_eq!(all.values().get(HandlerWrite), 7);
        drop(b);
        assert_eq!(all.values().get(HandlerWrite), 7);
        assert_eq!(all.values().get(SortRows), 1);
    }

    #[test]
    fn flush_moves_values_to_the_server() {
        let all = Arc::<AllSessionCounters>::default();
        let own = all.open();
        own.add(HandlerWrite, 3);
        own.flush();
        assert_eq!(own.values(), CounterValues::default());
        assert_eq!(all.values().get(HandlerWrite), 3);
        own.add(HandlerWrite, 1);
        assert_eq!(all.values().get(HandlerWrite), 4);
    }

    #[test]
    fn statements_are_counted_by_their_kinds() {
        let all = Arc::<AllSessionCounters>::default();
        let own = all.open();
        own.count(StatementKind::Select);
        own.count(StatementKind::UpdateMulti);
        own.count(StatementKind::Select);
        let values = own.values();
        let counted: Vec<_> = values.iter().filter(|(_, n)| *n > 0).collect();
        assert_eq!(counted, [("Com_select", 2), ("Com_update_multi", 1)]);
    }

    #[test]
    fn names_are_those_of_the_counters() {
        for counter in ALL {
            let name = counter.name().replace('_', "").to_lowercase();
            assert_eq!(name, format!("{counter:?}").to_lowercase());
        }
    }
}
