//! A transaction as the lock table sees it.

use super::queue_key::QueueKey;
use super::run::Runs;
use super::wait::Waiter;
use super::{LockKind, LockMode, OwnerInfo};
use nfold_store::TrxId;
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

/// Who holds locks and waits for them. One per transaction that needs one; shared with the queues.
pub struct LockOwner {
    session: AtomicU64,
    trx_id: AtomicU64,
    /// The number of row changes so far, which a rollback would have to undo.
    changes: AtomicU64,
    /// READ COMMITTED and below do not inherit gaps.
    keeps_gaps: AtomicBool,
    /// For each of its granted locks, the requests that wait in the same queue. Changed under the
    /// mutex of the queue's shard.
    waiters: AtomicUsize,
    since: Instant,
    pub(super) state: Mutex<OwnerState>,
}

/// About as many rows are on a page.
const ROWS_PER_LOCK_OBJECT: usize = 128;

#[derive(Default)]
pub(super) struct OwnerState {
    /// The transaction has ended: it holds nothing and gets nothing (L3).
    pub closed: bool,
    /// Chosen as a deadlock's victim; every further request fails.
    pub victim: bool,
    pub held: Vec<QueuePlace>,
    /// Locks that are in no queue, or also in one.
    pub runs: Runs,
    /// What sorts of locks it has been given: index, mode, kind.
    kinds: SmallVec<[(u64, LockMode, LockKind); 4]>,
    pub waiting: Option<OwnWait>,
}

/// The request that an owner waits for.
pub(super) type OwnWait = (QueuePlace, Arc<Waiter>);

impl OwnerState {
    /// About how many places it holds locks at: one that is in a run and in a queue counts twice.
    fn places(&self) -> usize {
        self.held.len() + self.runs.len()
    }

    /// A lock of this sort, on the index that the queue's `key` begins with, was granted.
    pub fn note_kind(&mut self, key: &[u8], mode: LockMode, kind: LockKind) {
        let mut index = [0; 8];
        index.copy_from_slice(&key[..8]);
        self.note_sort(u64::from_be_bytes(index), mode, kind);
    }

    /// A lock of this sort on `index` was granted.
    pub fn note_sort(&mut self, index: u64, mode: LockMode, kind: LockKind) {
        let sort = (index, mode, kind);
        if !self.kinds.contains(&sort) {
            self.kinds.push(sort);
        }
    }
}

/// A queue's address.
#[derive(Clone)]
pub(super) struct QueuePlace {
    pub shard: u16,
    pub key: QueueKey,
}

impl LockOwner {
    /// `session`: a number for the status views.
    pub fn new(session: u64, keeps_gaps: bool) -> Arc<LockOwner> {
        Arc::new(LockOwner {
            session: AtomicU64::new(session),
            trx_id: AtomicU64::new(0),
            changes: AtomicU64::new(0),
            keeps_gaps: AtomicBool::new(keeps_gaps),
            waiters: AtomicUsize::new(0),
            since: Instant::now(),
            state: Mutex::new(OwnerState::default()),
        })
    }

    /// For the status views.
    pub(super) fn info(self: &Arc<Self>) -> OwnerInfo {
        let state = self.state.lock();
        OwnerInfo {
            owner: Arc::as_ptr(self) as usize,
            trx_id: self.trx_id(),
            session: self.session(),
            changes: self.changes(),
            locks: state.places(),
            sorts: state.kinds.len(),
            indexes: state.kinds.iter().map(|(index, _, _)| *index).collect(),
            age: self.since.elapsed(),
            waiting: state.waiting.as_ref().map(|(_, w)| w.since.elapsed()),
        }
    }

    pub fn session(&self) -> u64 {
        self.session.load(Ordering::Relaxed)
    }

    /// The transaction belongs to no session any more.
    pub(crate) fn leave_session(&self) {
        self.session.store(0, Ordering::Relaxed);
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

    /// Row changes so far.
    pub(super) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }

    /// The cost of a rollback; the deadlock detector chooses the owner with the least. As in
    /// InnoDB: row changes plus lock objects, where one object covers the locks of one kind on a
    /// page of rows.
    pub(super) fn weight(&self) -> u64 {
        let state = self.state.lock();
        let locks = state.kinds.len() + state.places() / ROWS_PER_LOCK_OBJECT;
        self.changes() + locks as u64
    }

    /// How many requests wait in the queues of its granted locks. A queue with two of its locks
    /// counts twice.
    pub(super) fn waiters(&self) -> usize {
        self.waiters.load(Ordering::Relaxed)
    }

    pub(super) fn add_waiters(&self, count: usize) {
        if count > 0 {
            self.waiters.fetch_add(count, Ordering::Relaxed);
        }
    }

    pub(super) fn remove_waiters(&self, count: usize) {
        if count > 0 {
            self.waiters.fetch_sub(count, Ordering::Relaxed);
        }
    }

    /// What it waits for.
    pub(super) fn own_wait(&self) -> Option<OwnWait> {
        self.state.lock().waiting.clone()
    }

    /// Whether a request of it is in a queue and not granted yet.
    pub fn is_waiting(&self) -> bool {
        self.state.lock().waiting.is_some()
    }

    /// Whether it was chosen as a deadlock's victim.
    pub fn is_victim(&self) -> bool {
        self.state.lock().victim
    }

    /// How many places it holds locks at.
    pub fn held_count(&self) -> usize {
        self.state.lock().places()
    }
}
