//! Snapshots: opening them, what they see, and the counters that they are made of.

use super::slots::{OPENING, OldestReader, SlotTable};
use super::status::StatusTable;
use super::{Lsn, TrxId};
use nfold_sync::prim::{AtomicU64, Ordering, fence};
use nfold_sync::{Barrier, CachePadded};

/// What one reader sees. Valid while the slot that it was opened in stays open.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Snapshot {
    /// Ids below are visible.
    pub l: TrxId,
    /// Commits that end at or below are visible.
    pub s: Lsn,
    /// Ids at or above are not visible.
    pub h: TrxId,
    /// The reader's own id, visible; 0 if it has none.
    pub own: TrxId,
}

impl Snapshot {
    /// Whether the changes of `id` are visible. The id was found on a row or an entry.
    #[inline(always)]
    pub fn sees(&self, id: TrxId, status: &StatusTable) -> bool {
        id < self.l || self.sees_recent(id, status)
    }

    /// Whether all ids up to `id` are visible without a look at any status: the test for a whole
    /// page by its newest id.
    #[inline(always)]
    pub fn sees_all_up_to(&self, id: TrxId) -> bool {
        id < self.l
    }

    /// Ids below this are visible without a look at any status.
    #[inline(always)]
    pub fn all_ended_below(&self) -> TrxId {
        self.l
    }

    #[inline(never)]
    fn sees_recent(&self, id: TrxId, status: &StatusTable) -> bool {
        id == self.own || (id < self.h && status.committed_by(id, self.s))
    }
}

/// `L`, `H`, the floor, the status words and the slots. One per engine.
pub struct Snapshots {
    /// L: ids below are resolved (I2).
    low: CachePadded<AtomicU64>,
    /// H: the next id.
    next: CachePadded<AtomicU64>,
    /// Purge has published that it may go up to here (I3).
    floor: CachePadded<AtomicU64>,
    pub status: StatusTable,
    pub slots: SlotTable,
    /// Orders the opening of a snapshot ([R], the cheap side) and purge ([P], the expensive side).
    barrier: Barrier,
}

impl Snapshots {
    /// `next` is the next id to give out; `active` are the ids of transactions that a crash left
    /// unfinished.
    pub fn new(next: TrxId, active: &[TrxId]) -> Snapshots {
        debug_assert!(
            next >= 1 && active.iter().all(|id| *id < next),
            "ids start at 1"
        );
        let low = active.iter().copied().min().unwrap_or(next);
        Snapshots {
            low: CachePadded::new(AtomicU64::new(low)),
            next: CachePadded::new(AtomicU64::new(next)),
            floor: CachePadded::new(AtomicU64::new(0)),
            status: StatusTable::new(low, next, active),
            slots: SlotTable::default(),
            barrier: Barrier::detect(),
        }
    }

    /// L: every id below is visible to everybody who opens a snapshot from now on.
    pub fn low(&self) -> TrxId {
        self.low.load(Ordering::Acquire)
    }

    /// H: the id that the next writer gets.
    pub fn next(&self) -> TrxId {
        self.next.load(Ordering::Acquire)
    }

    /// Purge's published floor.
    pub fn floor(&self) -> Lsn {
        self.floor.load(Ordering::Acquire)
    }

    /// A new id, active from now on. `None`: the span of the status ring is used up (status::S3).
    pub fn allocate(&self) -> Option<TrxId> {
        if !self.status.has_room(self.next.load(Ordering::Relaxed)) {
            return None;
        }
        let id = self.next.fetch_add(1, Ordering::AcqRel);
        self.status.ensure(id);
        Some(id)
    }

    /// Opens a snapshot in slot `index`, which belongs to the caller. See the parent module for why
    /// it is right.
    #[inline]
    pub fn open(&self, index: u32, own: TrxId, horizon: impl Fn() -> Lsn) -> Snapshot {
        let line = self.slots.line(index);
        loop {
            line.s.store(OPENING, Ordering::Relaxed);
            self.barrier.light();
            let l = self.low.load(Ordering::Acquire);
            let s = horizon();
            let h = self.next.load(Ordering::Acquire);
            line.s.store(s, Ordering::Release);
            let floor = self.floor.load(Ordering::Acquire);
            debug_assert!(floor <= s, "I3: the floor stays below every snapshot");
            if floor <= s {
                return Snapshot { l, s, h, own };
            }
        }
    }

    /// Whether a transaction found on a row is still active: not ended, or its end not yet below
    /// the horizon.
    #[inline]
    pub fn is_active(&self, id: TrxId, horizon: impl Fn() -> Lsn) -> bool {
        if id < self.low.load(Ordering::Acquire) {
            return false;
        }
        match self.status.get(id) {
            super::Status::Active => true,
            super::Status::Gone => false,
            super::Status::Committed(end) | super::Status::Aborted(end) => end > horizon(),
        }
    }

    /// Orders the caller's row changes before its next reads. If two transactions each change a row
    /// and then read the other's row, at least one sees the other's change.
    pub fn order_changes_before_probe() {
        fence(Ordering::SeqCst);
    }

    /// Raises L over resolved ids, looking at no more than `limit` of them. Called after a
    /// transaction's end went below the horizon.
    pub fn advance_low(&self, limit: u64, horizon: impl Fn() -> Lsn) {
        let mut left = limit;
        loop {
            // I2: the horizon is loaded before the words, and before L is published.
            let reached = horizon();
            let low = self.low.load(Ordering::Acquire);
            let end = self
                .next
                .load(Ordering::Acquire)
                .min(low.saturating_add(left));
            let mut at = low;
            while at < end && self.status.has_ended(at, reached) {
                at += 1;
            }
            if at == low {
                return;
            }
            self.low.fetch_max(at, Ordering::AcqRel);
            left -= at - low;
            // A transaction that ended after the look at its word sees the new L, or this looks
            // again.
            fence(Ordering::SeqCst);
        }
    }

    /// Publishes how far purge may go, and says who holds it back. Purge thread only.
    pub fn raise_floor(&self, horizon: impl Fn() -> Lsn) -> (Lsn, Option<OldestReader>) {
        let reached = horizon();
        let published = self.floor.load(Ordering::Relaxed);
        // While no transaction commits, the floor cannot rise, and the heavy barrier is skipped.
        if reached > published {
            self.barrier.heavy();
        }
        let oldest = self.slots.oldest();
        let floor = oldest.map_or(reached, |o| o.s.min(reached));
        if floor > published {
            self.floor.store(floor, Ordering::Release);
            // Rollback latches a row, fences, and loads the floor; purge reads the row after this
            // fence. So one of them sees the other.
            fence(Ordering::SeqCst);
        }
        (floor.max(published), oldest)
    }
}
