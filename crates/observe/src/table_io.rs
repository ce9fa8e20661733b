//! Rows read and changed, by table and index, for `performance_schema.table_io_waits_summary_by_%`.
//!
//! # Invariants
//! - T1: only its own thread adds to a [`ThreadIo`], so an addition is a load and a store on a
//!   line that no other thread writes.
//! # Cost
//! A reader of a table looks its thread's counters up once, when it is made; a statement that
//! changes rows does so when it starts. The lookup stores to no shared line, but for the first one
//! of a thread.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use arc_swap::ArcSwap;

/// What is counted for an index, or for the rows that no index has found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IoCounts {
    pub fetched: u64,
    pub inserted: u64,
    pub updated: u64,
    pub deleted: u64,
}

impl IoCounts {
    pub fn add(&mut self, more: IoCounts) {
        self.fetched += more.fetched;
        self.inserted += more.inserted;
        self.updated += more.updated;
        self.deleted += more.deleted;
    }
}

/// One thread's counters of one index.
#[derive(Debug, Default)]
#[repr(align(128))]
struct IndexIo {
    fetched: AtomicU64,
    inserted: AtomicU64,
    updated: AtomicU64,
    deleted: AtomicU64,
}

/// One thread's counters of one table: of the rows without an index, then of each index.
#[derive(Debug)]
pub struct ThreadIo(Box<[IndexIo]>);

#[inline]
fn add(counter: &AtomicU64, n: u64) {
    counter.store(counter.load(Relaxed).wrapping_add(n), Relaxed);
}

impl ThreadIo {
    /// Rows were read. `place`: 0 without an index, or the index's number and 1. Another place is
    /// ignored.
    #[inline]
    pub fn fetched(&self, place: usize, rows: u64) {
        if let Some(io) = self.0.get(place) {
            add(&io.fetched, rows);
        }
    }

    /// A row is inserted.
    #[inline]
    pub fn inserted(&self) {
        add(&self.0[0].inserted, 1);
    }

    /// A row is updated.
    #[inline]
    pub fn updated(&self) {
        add(&self.0[0].updated, 1);
    }

    /// A row is deleted.
    #[inline]
    pub fn deleted(&self) {
        add(&self.0[0].deleted, 1);
    }
}

/// The counters of one table.
#[derive(Debug)]
pub struct TableIo {
    /// The number of indexes, and 1.
    places: usize,
    /// By the number of the thread. Threads that have ended stay.
    threads: ArcSwap<Vec<(u64, Arc<ThreadIo>)>>,
}

static NEXT_THREAD: AtomicU64 = AtomicU64::new(1);

thread_local! {
    static THREAD: Cell<u64> = const { Cell::new(0) };
}

/// A number that no other thread has.
fn thread_number() -> u64 {
    THREAD.with(|number| {
        if number.get() == 0 {
            number.set(NEXT_THREAD.fetch_add(1, Relaxed));
        }
        number.get()
    })
}

impl TableIo {
    /// For a table with this number of indexes.
    pub fn new(indexes: usize) -> TableIo {
        TableIo {
            places: indexes + 1,
            threads: ArcSwap::default(),
        }
    }

    /// The counters of this thread. They must not be handed to another one (T1).
    pub fn of_this_thread(&self) -> Arc<ThreadIo> {
        let number = thread_number();
        let threads = self.threads.load();
        match threads.iter().find(|(n, _)| *n == number) {
            Some((_, io)) => io.clone(),
            None => self.add_thread(number),
        }
    }

    #[cold]
    fn add_thread(&self, number: u64) -> Arc<ThreadIo> {
        let io = Arc::new(ThreadIo(
            (0..self.places).map(|_| IndexIo::default()).collect(),
        ));
        self.threads.rcu(|threads| {
            let mut threads = Vec::clone(threads);
            threads.push((number, io.clone()));
            threads
        });
        io
    }

    /// The sums of all threads: of the rows without an index, then of each index.
    pub fn sums(&self) -> Vec<IoCounts> {
        let mut sums = vec![IoCounts::default(); self.places];
        for (_, thread) in self.threads.load().iter() {
            for (sum, io) in sums.iter_mut().zip(&thread.0) {
                sum.add(IoCounts {
                    fetched: io.fetched.load(Relaxed),
                    inserted: io.inserted.load(Relaxed),
                    updated: io.updated.load(Relaxed),
                    deleted: io.deleted.load(Relaxed),
                });
            }
        }
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_over_all_threads() {
        let table = TableIo::new(2);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..1000 {
                        let io = table.of_this_thread();
                        io.fetched(2, 3);
                        io.fetched(9, 1);
                        io.inserted();
                        io.updated();
                        io.deleted();
                    }
                });
            }
        });
        let of_rows = IoCounts {
            inserted: 4000,
            updated: 4000,
            deleted: 4000,
            ..IoCounts::default()
        };
        let of_index = IoCounts {
            fetched: 12_000,
            ..IoCounts::default()
        };
        assert_eq!(table.sums(), [of_rows, IoCounts::default(), of_index]);
        assert_eq!(table.threads.load().len(), 4);
    }
}
