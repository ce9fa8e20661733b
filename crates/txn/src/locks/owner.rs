//! A transaction as the lock table sees it.

use super::wait::Waiter;
use nfold_store::TrxId;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Who holds locks and waits for them. One per transaction that needs one; shared with the queues.
pub struct LockOwner {
    session: u64,
    trx_id: AtomicU64,
    /// Row changes so far: what a rollback would have to undo.
    changes: AtomicU64,
    /// READ COMMITTED and below do not inherit gaps.
    keeps_gaps: AtomicBool,
    pub(super) state: Mutex<OwnerState>,
}

#[derive(Default)]
pub(super) struct OwnerState {
    /// The transaction has ended: it holds nothing and gets nothing (L3).
    pub closed: bool,
    /// Chosen as a deadlock's victim; every further request fails.
    pub victim: bool,
    pub held: Vec<Place>,
    pub waiting: Option<(Place, Arc<Waiter>)>,
}

/// A queue's address.
#[derive(Clone)]
pub(super) struct Place {
    pub shard: u16,
    pub key: Arc<[u8]>,
}

impl LockOwner {
    /// `session`: a number for the status views.
    pub fn new(session: u64, keeps_gaps: bool) -> Arc<LockOwner> {
        Arc::new(LockOwner {
            session,
            trx_id: AtomicU64::new(0),
            changes: AtomicU64::new(0),
            keeps_gaps: AtomicBool::new(keeps_gaps),
            state: Mutex::new(OwnerState::default()),
        })
    }

    pub fn session(&self) -> u64 {
        self.session
    }

    /// 0 until the transaction has an id.
    pub fn trx_id(&self) -> TrxId {
        self.trx_id.load(Ordering::Relaxed)
    }

    pub(crate) fn set_trx_id(&self, id: TrxId) {
        self.trx_id.store(id, Ordering::Relaxed);
    }

    pub(crate) fn set_changes(&self, count: u64) {
        self.changes.store(count, Ordering::Relaxed);
    }

    pub(super) fn keeps_gaps(&self) -> bool {
        self.keeps_gaps.load(Ordering::Relaxed)
    }

    /// What a rollback costs: the deadlock detector sacrifices the lightest.
    pub(super) fn weight(&self) -> (u64, usize) {
        (
            self.changes.load(Ordering::Relaxed),
            self.state.lock().held.len(),
        )
    }

    /// Whether it was chosen as a deadlock's victim.
    pub fn is_victim(&self) -> bool {
        self.state.lock().victim
    }

    /// How many places it holds locks at.
    pub fn held_count(&self) -> usize {
        self.state.lock().held.len()
    }
}
