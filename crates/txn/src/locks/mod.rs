//! Row locks, for locking reads, changes and inserts. Consistent reads take none.
//!
//! # Picture
//! ```text
//!  shard = hash(index id, key) ── one padded mutex each
//!    key → queue   [A: X record, granted] [B: S next-key, waiting] [C: X record, waiting]     first come, first served (`Queue`)
//!  owner A (a transaction)   held: [(shard, key), ...]   waiting: none
//!  owner B                   held: [...]                 waiting: (shard, key, waiter)   ── the edge B → A of the waits-for graph
//! ```
//! A lock covers a *record* (the key itself), the *gap* before it, or both (*next-key*). The
//! supremum follows the last key of an index, and has only a gap. An *insert intention* is
//! requested on the key after the position of an insert. It waits for gap locks of other
//! transactions, and holds nothing once it is granted.
//!
//! A row's own transaction id, while active, is an exclusive record lock without an entry
//! (*implicit*). A transaction that must wait for it first makes it explicit for the holder, so
//! that waiting and deadlock detection deal with explicit locks only.
//!
//! A scan of many keys stores its locks as a list of keys ([`run`]), and not in queues.
//!
//! # Invariants
//! - L1: two granted entries of different owners in one queue do not conflict.
//! - L2: a waiting entry has a blocker: a granted entry, or one that waits before it, that
//!   conflicts. When the last one goes, the entry is granted, in the order of the queue. An urgent
//!   entry is granted as soon as no granted one conflicts ("Order of grants" of `Queue`).
//! - L3: an owner waits for at most one lock. After `closed` is set, it gets no further locks.
//! - L4: every queue in which an owner has a granted entry is on its held list (the list may name
//!   queues that are gone).
//!
//! # Concurrency
//! Order of mutexes: detector → shard (one at a time) → owner map → owner → waiter. Waiters are
//! woken after the shard's mutex is released. The caller reads the row under the leaf's latch, or
//! reads it again after the lock is granted, because the row may have changed in between. If the
//! row then has another transaction's uncommitted change, that change precedes the lock, which does
//! not cover it. The caller releases the lock, and requests it again with the name of that holder.
//!
//! # Deadlocks
//! After a request was queued, its owner searches the waits-for graph for a cycle, under the
//! detector's mutex (waiters only). The search reads the current queues, each of them once
//! (`deadlock`). If no owner that it waits for is waiting itself, there is no cycle yet, and no
//! search: a cycle is complete only when its last member begins to wait, and that member searches.
//! A grant out of turn lets others wait for an owner that does not wait itself, so it closes no
//! cycle.
//! The victim is the owner with the least work to lose (row changes and locks together), or the
//! requester among equals.
//!
//! # Not here
//! Deadlines: the session drops the [`Wait`](nfold_store::Wait) when its time is over, which takes
//! the request out of the queue. Table locks: metadata locks do that.

mod deadlock;
mod info;
mod owner;
mod queue;
mod queue_key;
mod run;
mod table;
#[cfg(test)]
mod tests;
mod wait;

pub use info::place_of;
pub use owner::LockOwner;
#[cfg(test)]
pub(crate) use table::RELEASE_SLICE;
pub use table::{LockTable, LockTableStatus};

use nfold_store::TrxId;
use std::time::{Duration, SystemTime};

/// Shared or exclusive.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum LockMode {
    S,
    X,
}

/// What of a key is locked.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum LockKind {
    /// The record with this key.
    Record,
    /// The gap before it.
    Gap,
    /// Both.
    NextKey,
    /// The wish to insert into the gap before it.
    InsertIntention,
}

/// A place in an index.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum LockKey<'a> {
    Key(&'a [u8]),
    /// Behind the last key.
    Supremum,
}

/// What to do when the lock is not free.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum OnConflict {
    Wait,
    /// `TxnError::LockNotAvailable`.
    NoWait,
    /// [`Locked::Skipped`].
    Skip,
}

/// One lock request.
#[derive(Copy, Clone, Debug)]
pub struct LockRequest<'a> {
    pub index: u64,
    pub key: LockKey<'a>,
    pub mode: LockMode,
    pub kind: LockKind,
    pub on_conflict: OnConflict,
    /// The active transaction whose id is on the row, if it is not the requester's own.
    pub implicit_holder: Option<TrxId>,
    /// The caller stamps the row with its own id under the latch that it holds now, so a lock
    /// granted at once needs no entry.
    pub becomes_implicit: bool,
    /// The request belongs to a scan that locks many keys in ascending order.
    pub one_of_many: bool,
}

impl<'a> LockRequest<'a> {
    pub fn new(index: u64, key: LockKey<'a>, mode: LockMode, kind: LockKind) -> LockRequest<'a> {
        LockRequest {
            index,
            key,
            mode,
            kind,
            on_conflict: OnConflict::Wait,
            implicit_holder: None,
            becomes_implicit: false,
            one_of_many: false,
        }
    }

    pub fn on_conflict(mut self, what: OnConflict) -> Self {
        self.on_conflict = what;
        self
    }

    pub fn implicit_holder(mut self, id: Option<TrxId>) -> Self {
        self.implicit_holder = id;
        self
    }

    pub fn one_of_many(mut self, is: bool) -> Self {
        self.one_of_many = is;
        self
    }

    pub fn becomes_implicit(mut self) -> Self {
        self.becomes_implicit = true;
        self
    }
}

/// How a request ended that did not have to wait.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Locked {
    /// Granted now.
    New,
    /// The owner had it, or a stronger one.
    Held,
    /// SKIP LOCKED, and another transaction has the lock.
    Skipped,
}

/// One entry, for the status views.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LockInfo {
    /// The same for all locks of a transaction, and of no other that is there now.
    pub owner: usize,
    /// 0 if the transaction has changed nothing yet.
    pub trx_id: TrxId,
    pub session: u64,
    pub index: u64,
    /// `None`: the supremum.
    pub key: Option<Vec<u8>>,
    pub mode: LockMode,
    pub kind: LockKind,
    pub granted: bool,
}

/// A waiting lock and one that it waits for, for the status views.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WaitInfo {
    pub waiting: LockInfo,
    pub blocking: LockInfo,
}

/// A transaction that has locked or changed something, or is about to, for the status views.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OwnerInfo {
    pub owner: usize,
    /// 0 if it has changed nothing yet.
    pub trx_id: TrxId,
    /// 0 if the session is gone and the background rolls the transaction back.
    pub session: u64,
    /// Row changes so far.
    pub changes: u64,
    /// Places that it holds explicit locks at, and sorts of locks there.
    pub locks: usize,
    pub sorts: usize,
    /// Of each sort, the index.
    pub indexes: Vec<u64>,
    /// Since its first lock or change.
    pub age: Duration,
    /// How long it has been waiting for a lock.
    pub waiting: Option<Duration>,
}

/// A cycle of waits that was broken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeadlockInfo {
    pub at: SystemTime,
    /// Each member waits for the next, and the last for the first: the owner, its request, and the
    /// conflicting lock of the next member.
    pub members: Vec<(OwnerInfo, Option<WaitInfo>)>,
    /// Who was sacrificed.
    pub victim: usize,
}
