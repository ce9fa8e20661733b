//! Metadata locks by announcement: a statement names the tables it uses in its own session's slot, and DDL looks there.
//!
//! # Picture
//!
//! ```text
//!  session slot (own 128-byte lines)            registry
//!  ┌ entries[0] = table id ┐                    slots: list of every slot, grown under a mutex
//!  │ entries[1] = table id │  ◀── DDL scans ──  closing: tables that some DDL has claimed, and by which claim
//!  │ ...          0 = free │                    closing_count: read by every statement, written by DDL alone
//!  └ overflow: mutex, rare ┘
//! ```
//!
//! # Invariants
//! I1. A table id stands in a slot from before the statement trusts the table's definition until its transaction ends.
//! I2. `closing_count` is the number of entries in `closing`, and changes only under the registry's mutex.
//! I3. An exclusive lock is granted only after `closing` was published, a barrier was passed by every thread, and a scan of all
//!     slots found none of its ids in another session's slot.
//! I4. A claim on a table is one on the table that takes its place ([`Mdl::replace`]): it is entered before the schema names the new id, so nobody
//!     can have announced that. `closing_count` is not zero all the while, so whoever learns the id looks into `closing`.
//!
//! # Concurrency
//! Dekker's pattern. Shared side: store own entry (Relaxed), light barrier, load `closing_count`. Exclusive side: publish
//! `closing` and `closing_count`, heavy barrier, scan the entries. One of the two must see the other. The light barrier is a compiler
//! fence where `membarrier(2)` works (the heavy side then interrupts every thread of the process), and a SeqCst fence on both
//! sides where it does not. Entries are written by their own session only, and read by DDL.
//!
//! # Cost
//! A warm statement stores one word into its own slot and loads `closing_count`, which only DDL writes.
//!
//! # Not here
//! Waiting: both sides return busy, and the caller tries again after a short sleep, so a waiting DDL never blocks a worker
//! and, since it withdraws its claim between tries, never piles up readers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use nfold_sync::Barrier;
use nfold_sync::words::prefetch_line_outer;
use parking_lot::Mutex;
use smallvec::SmallVec;

use crate::schema::TableId;

/// Ids that a slot holds without touching its overflow list.
const INLINE: usize = 14;

/// Why a shared metadata lock was not taken now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MdlBusy;

/// One session's announcements, on cache lines of its own.
#[repr(align(128))]
struct Slot {
    entries: [AtomicU64; INLINE],
    /// How many ids stand in `overflow`; tells a scan whether to take the mutex.
    overflow_len: AtomicU64,
    in_use: AtomicBool,
    overflow: Mutex<Vec<u64>>,
}

impl Slot {
    fn new() -> Self {
        Slot {
            entries: std::array::from_fn(|_| AtomicU64::new(0)),
            overflow_len: AtomicU64::new(0),
            in_use: AtomicBool::new(true),
            overflow: Mutex::new(Vec::new()),
        }
    }

    fn holds(&self, id: u64) -> bool {
        self.entries.iter().any(|e| e.load(Ordering::Acquire) == id)
            || (self.overflow_len.load(Ordering::Acquire) > 0 && self.overflow.lock().contains(&id))
    }
}

#[derive(Default)]
struct Inner {
    slots: Vec<Arc<Slot>>,
    /// (table, number of the claim)
    closing: Vec<(u64, u64)>,
    /// Claims so far.
    claims: u64,
}

impl Inner {
    fn claim_on(&self, id: u64) -> Option<u64> {
        let found = self.closing.iter().find(|(table, _)| *table == id);
        found.map(|(_, claim)| *claim)
    }
}

/// All metadata locks of one server.
pub struct Mdl {
    /// Written by DDL alone.
    closing_count: AtomicU64,
    barrier: Barrier,
    inner: Mutex<Inner>,
}

impl Default for Mdl {
    fn default() -> Self {
        Self::new()
    }
}

impl Mdl {
    /// An empty registry; finds out whether the kernel offers `membarrier`.
    pub fn new() -> Self {
        Mdl {
            closing_count: AtomicU64::new(0),
            barrier: Barrier::detect(),
            inner: Mutex::default(),
        }
    }

    /// A slot for one session. Dropping it frees it for another.
    pub fn slot(self: &Arc<Self>) -> MdlSlot {
        let mut inner = self.inner.lock();
        let free = inner.slots.iter().find(|s| {
            s.in_use
                .compare_exchange(false, true, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
        });
        let slot = match free {
            Some(slot) => slot.clone(),
            None => {
                let slot = Arc::new(Slot::new());
                inner.slots.push(slot.clone());
                slot
            }
        };
        MdlSlot {
            mdl: self.clone(),
            slot,
            held: SmallVec::new(),
        }
    }

    /// Claims `ids` exclusively, or says that another session uses one of them. `own` is the caller's slot: what it holds itself
    /// does not count against it.
    ///
    /// # Errors
    /// [`MdlBusy`]: nothing is claimed; try again after a short sleep.
    pub fn try_exclusive(
        self: &Arc<Self>,
        own: Option<&MdlSlot>,
        ids: &[TableId],
    ) -> Result<MdlExclusive, MdlBusy> {
        let mut inner = self.inner.lock();
        if ids.iter().any(|id| inner.claim_on(id.0).is_some()) {
            return Err(MdlBusy);
        }
        inner.claims += 1;
        let number = inner.claims;
        inner.closing.extend(ids.iter().map(|id| (id.0, number)));
        self.closing_count
            .store(inner.closing.len() as u64, Ordering::SeqCst);
        let claim = MdlExclusive {
            mdl: self.clone(),
            number,
        };
        self.barrier.heavy();
        let busy = inner.slots.iter().any(|slot| {
            let ours = own.is_some_and(|o| Arc::ptr_eq(&o.slot, slot));
            !ours && ids.iter().any(|id| slot.holds(id.0))
        });
        drop(inner); // the claim's Drop takes the mutex
        if busy { Err(MdlBusy) } else { Ok(claim) }
    }

    /// Before the schema names `new`, which takes the place of `old`: whoever has claimed `old` has claimed `new` as well (I4).
    pub fn replace(&self, old: TableId, new: TableId) {
        let mut inner = self.inner.lock();
        if let Some(claim) = inner.claim_on(old.0) {
            inner.closing.push((new.0, claim));
            self.closing_count
                .store(inner.closing.len() as u64, Ordering::SeqCst);
        }
    }

    fn is_closing(&self, id: u64) -> bool {
        self.inner.lock().claim_on(id).is_some()
    }
}

/// An exclusive claim on some tables; ends when dropped.
pub struct MdlExclusive {
    mdl: Arc<Mdl>,
    number: u64,
}

impl MdlExclusive {
    /// Whether `id` is among the claimed tables, or has taken the place of one.
    pub fn covers(&self, id: TableId) -> bool {
        self.mdl.inner.lock().claim_on(id.0) == Some(self.number)
    }
}

impl Drop for MdlExclusive {
    fn drop(&mut self) {
        let mut inner = self.mdl.inner.lock();
        inner.closing.retain(|(_, claim)| *claim != self.number);
        self.mdl
            .closing_count
            .store(inner.closing.len() as u64, Ordering::SeqCst);
    }
}

/// A session's own slot. All its methods are called by that session alone.
pub struct MdlSlot {
    mdl: Arc<Mdl>,
    slot: Arc<Slot>,
    /// What stands in the slot, in the order of acquisition.
    held: SmallVec<[u64; 4]>,
}

impl MdlSlot {
    /// Announces that the transaction uses `id`. The caller must look at the schema version *after* this call before it trusts
    /// the table's definition.
    ///
    /// # Errors
    /// [`MdlBusy`]: DDL has claimed the table; try again after a short sleep.
    pub fn acquire(&mut self, id: TableId) -> Result<(), MdlBusy> {
        if self.held.contains(&id.0) {
            return Ok(());
        }
        let at = self.held.len();
        self.held.push(id.0);
        self.announce(at, id.0);
        self.mdl.barrier.light();
        if self.mdl.closing_count.load(Ordering::Relaxed) != 0 && self.mdl.is_closing(id.0) {
            self.release_to(at);
            return Err(MdlBusy);
        }
        Ok(())
    }

    /// Asks the processor for the slot.
    pub fn ask_for(&self) {
        prefetch_line_outer(&self.slot.entries);
    }

    fn announce(&self, at: usize, id: u64) {
        match self.slot.entries.get(at) {
            Some(entry) => entry.store(id, Ordering::Relaxed),
            None => {
                let mut overflow = self.slot.overflow.lock();
                overflow.push(id);
                self.slot
                    .overflow_len
                    .store(overflow.len() as u64, Ordering::Release);
            }
        }
    }

    /// How many tables are held; a mark for [`Self::release_to`].
    pub fn mark(&self) -> usize {
        self.held.len()
    }

    /// Whether the slot announces `id`.
    pub fn holds(&self, id: TableId) -> bool {
        self.held.contains(&id.0)
    }

    /// Gives back everything taken since [`Self::mark`] returned `mark`.
    #[inline]
    pub fn release_to(&mut self, mark: usize) {
        while self.held.len() > mark {
            self.held.pop();
            match self.slot.entries.get(self.held.len()) {
                // Release: what the statement read under the lock happened before DDL sees the entry gone.
                Some(entry) => entry.store(0, Ordering::Release),
                None => {
                    let mut overflow = self.slot.overflow.lock();
                    overflow.pop();
                    self.slot
                        .overflow_len
                        .store(overflow.len() as u64, Ordering::Release);
                }
            }
        }
    }

    /// Gives back everything: the end of a transaction.
    #[inline]
    pub fn release_all(&mut self) {
        self.release_to(0);
    }
}

impl Drop for MdlSlot {
    fn drop(&mut self) {
        self.release_all();
        self.slot.in_use.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const T1: TableId = TableId(1);
    const T2: TableId = TableId(2);

    #[test]
    fn exclusive_excludes_and_is_excluded() {
        let mdl = Arc::new(Mdl::new());
        let (mut a, mut b) = (mdl.slot(), mdl.slot());
        a.acquire(T1).unwrap();
        assert!(mdl.try_exclusive(None, &[T1]).is_err());
        assert!(
            mdl.try_exclusive(Some(&a), &[T1]).is_ok(),
            "what the caller holds itself does not count"
        );
        let claim = mdl.try_exclusive(None, &[T2]).unwrap();
        assert!(claim.covers(T2) && !claim.covers(T1));
        assert_eq!(b.acquire(T2), Err(MdlBusy));
        assert_eq!(b.mark(), 0, "a refused announcement leaves nothing behind");
        b.acquire(T1).unwrap();
        assert!(mdl.try_exclusive(None, &[T2]).is_err(), "claimed twice");
        drop(claim);
        b.acquire(T2).unwrap();
        a.release_all();
        assert!(mdl.try_exclusive(None, &[T1]).is_err());
        drop(b);
        assert!(mdl.try_exclusive(None, &[T1, T2]).is_ok());
    }

    #[test]
    fn a_claim_is_one_on_what_takes_the_tables_place() {
        const T3: TableId = TableId(3);
        const T4: TableId = TableId(4);
        let mdl = Arc::new(Mdl::new());
        let mut other = mdl.slot();
        mdl.replace(T1, T2);
        other.acquire(T2).unwrap(); // nobody had claimed T1
        other.release_all();
        let claim = mdl.try_exclusive(None, &[T1]).unwrap();
        mdl.replace(T1, T3);
        mdl.replace(T3, T4);
        for id in [T1, T3, T4] {
            assert!(claim.covers(id));
            assert_eq!(other.acquire(id), Err(MdlBusy));
            assert!(mdl.try_exclusive(None, &[id]).is_err());
        }
        assert!(!claim.covers(T2));
        let unrelated = mdl.try_exclusive(None, &[T2]).unwrap();
        drop(claim);
        assert_eq!(other.acquire(T2), Err(MdlBusy));
        for id in [T1, T3, T4] {
            other.acquire(id).unwrap();
        }
        drop(unrelated);
        other.acquire(T2).unwrap();
        assert_eq!(mdl.closing_count.load(Ordering::SeqCst), 0);
    }

    #[test]
    fn marks_and_overflow() {
        let mdl = Arc::new(Mdl::new());
        let mut a = mdl.slot();
        for id in 1..=40 {
            a.acquire(TableId(id)).unwrap();
        }
        let mark = a.mark();
        a.acquire(TableId(41)).unwrap();
        assert!(mdl.try_exclusive(None, &[TableId(41)]).is_err());
        a.release_to(mark);
        assert!(mdl.try_exclusive(None, &[TableId(41)]).is_ok());
        for id in [1, 14, 15, 40] {
            assert!(
                mdl.try_exclusive(None, &[TableId(id)]).is_err(),
                "table {id} is held"
            );
        }
        a.release_all();
        for id in 1..=41 {
            assert!(mdl.try_exclusive(None, &[TableId(id)]).is_ok());
        }
    }

    #[test]
    fn slots_are_reused() {
        let mdl = Arc::new(Mdl::new());
        for _ in 0..100 {
            let mut slot = mdl.slot();
            slot.acquire(T1).unwrap();
        }
        assert_eq!(mdl.inner.lock().slots.len(), 1);
    }

    /// The point of the protocol: under a race no reader works on a table while DDL holds it.
    #[test]
    fn readers_and_ddl_race() {
        let mdl = Arc::new(Mdl::new());
        let (inside_ddl, inside_read, stop) = (
            AtomicBool::new(false),
            [const { AtomicBool::new(false) }; 3],
            AtomicBool::new(false),
        );
        std::thread::scope(|s| {
            for mine in &inside_read {
                let (mdl, inside_ddl, stop) = (mdl.clone(), &inside_ddl, &stop);
                s.spawn(move || {
                    let mut slot = mdl.slot();
                    while !stop.load(Ordering::Relaxed) {
                        if slot.acquire(T1).is_ok() {
                            mine.store(true, Ordering::SeqCst);
                            assert!(!inside_ddl.load(Ordering::SeqCst));
                            mine.store(false, Ordering::SeqCst);
                            slot.release_all();
                        }
                        // Between two statements a session holds nothing: without the pause DDL might never find such a moment.
                        std::thread::sleep(std::time::Duration::from_micros(20));
                    }
                });
            }
            let mut granted = 0;
            while granted < 300 {
                if let Ok(_claim) = mdl.try_exclusive(None, &[T1]) {
                    inside_ddl.store(true, Ordering::SeqCst);
                    assert!(inside_read.iter().all(|r| !r.load(Ordering::SeqCst)));
                    inside_ddl.store(false, Ordering::SeqCst);
                    granted += 1;
                } else {
                    std::thread::yield_now();
                }
            }
            stop.store(true, Ordering::Relaxed);
        });
    }
}
