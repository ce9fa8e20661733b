//! The locks on one key: pure rules, no waiting.

use super::owner::LockOwner;
use super::wait::Waiter;
use super::{LockKind, LockMode};
use smallvec::SmallVec;
use std::sync::Arc;

pub(super) struct Entry {
    pub owner: Arc<LockOwner>,
    pub mode: LockMode,
    pub kind: LockKind,
    /// `Some` while it waits.
    pub waiter: Option<Arc<Waiter>>,
}

impl Entry {
    pub fn granted(&self) -> bool {
        self.waiter.is_none()
    }
}

#[derive(Default)]
pub(super) struct Queue {
    pub entries: SmallVec<[Entry; 2]>,
}

fn covers_record(kind: LockKind) -> bool {
    matches!(kind, LockKind::Record | LockKind::NextKey)
}

fn covers_gap(kind: LockKind) -> bool {
    matches!(kind, LockKind::Gap | LockKind::NextKey)
}

/// Whether a request for `(mode, kind)` has to wait for another owner's `(other_mode, other_kind)`. Gap locks never wait and do not
/// exclude each other; an insert intention waits for gaps and nobody waits for it.
pub(super) fn conflicts(
    mode: LockMode,
    kind: LockKind,
    other_mode: LockMode,
    other_kind: LockKind,
) -> bool {
    match kind {
        LockKind::Gap => false,
        LockKind::InsertIntention => covers_gap(other_kind),
        LockKind::Record | LockKind::NextKey => {
            covers_record(other_kind) && (mode == LockMode::X || other_mode == LockMode::X)
        }
    }
}

impl Queue {
    fn same(a: &Arc<LockOwner>, b: &Arc<LockOwner>) -> bool {
        Arc::ptr_eq(a, b)
    }

    /// Whether `owner` has been granted something at least as strong.
    pub fn holds(&self, owner: &Arc<LockOwner>, mode: LockMode, kind: LockKind) -> bool {
        let mut record = false;
        let mut gap = false;
        for e in self
            .entries
            .iter()
            .filter(|e| e.granted() && e.mode >= mode && Self::same(&e.owner, owner))
        {
            record |= covers_record(e.kind);
            gap |= covers_gap(e.kind);
        }
        match kind {
            LockKind::Record => record,
            LockKind::Gap => gap,
            LockKind::NextKey => record && gap,
            LockKind::InsertIntention => false,
        }
    }

    /// Whether `owner` has any granted entry.
    pub fn has_granted(&self, owner: &Arc<LockOwner>) -> bool {
        self.entries
            .iter()
            .any(|e| e.granted() && Self::same(&e.owner, owner))
    }

    /// Whom a request at position `at` (the queue's length: a new one) waits for. A waiting entry that waits for a lock of
    /// `owner` itself is passed over: waiting for it would be a deadlock without need.
    pub fn blockers<'a>(
        &'a self,
        owner: &'a Arc<LockOwner>,
        mode: LockMode,
        kind: LockKind,
        at: usize,
    ) -> impl Iterator<Item = &'a Entry> + 'a {
        self.entries
            .iter()
            .enumerate()
            .filter_map(move |(position, e)| {
                let blocks = !Self::same(&e.owner, owner)
                    && conflicts(mode, kind, e.mode, e.kind)
                    && (e.granted() || (position < at && !self.waits_for_owner(e, owner)));
                blocks.then_some(e)
            })
    }

    fn waits_for_owner(&self, waiting: &Entry, owner: &Arc<LockOwner>) -> bool {
        self.entries.iter().any(|e| {
            e.granted()
                && Self::same(&e.owner, owner)
                && conflicts(waiting.mode, waiting.kind, e.mode, e.kind)
        })
    }

    /// The position of the entry that `waiter` belongs to, if it still waits.
    pub fn position(&self, waiter: &Arc<Waiter>) -> Option<usize> {
        self.entries
            .iter()
            .position(|e| e.waiter.as_ref().is_some_and(|w| Arc::ptr_eq(w, waiter)))
    }

    /// The first waiting entry that nobody blocks any more.
    pub fn next_to_grant(&self) -> Option<usize> {
        (0..self.entries.len()).find(|&at| {
            let e = &self.entries[at];
            !e.granted() && self.blockers(&e.owner, e.mode, e.kind, at).next().is_none()
        })
    }

    /// L1 and L2, for assertions and tests.
    pub fn check(&self) -> Result<(), &'static str> {
        for (at, e) in self.entries.iter().enumerate() {
            if e.granted() {
                let clash = |o: &Entry| {
                    o.granted()
                        && !Self::same(&o.owner, &e.owner)
                        && conflicts(e.mode, e.kind, o.mode, o.kind)
                };
                if e.kind == LockKind::InsertIntention || self.entries.iter().any(clash) {
                    return Err("L1: conflicting locks are granted");
                }
            } else if self.blockers(&e.owner, e.mode, e.kind, at).next().is_none() {
                return Err("L2: an entry waits for nobody");
            }
        }
        Ok(())
    }
}
