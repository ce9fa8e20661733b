//! Locks that one scan has taken on keys in ascending order, stored as a list of the keys.
//!
//! A scan may lock a million entries. A queue for each of them takes 80 bytes of a hash table, and
//! 40 of the owner's list of places. A run takes the bytes of the key and 4 more.
//!
//! # Picture
//! ```text
//!  owner A   run (index 7, X next-key)   keys  10 11 12 14 ...      no queue for any of them
//!  B requests 12:   A's lock becomes a granted entry in the queue of 12, and B waits behind it
//! ```
//!
//! # Invariants
//! - R1: a key in a run is a granted lock like an entry of a queue. A request for a lock on that
//!   key, by another owner or at the queue, first copies it into the key's queue
//!   ([`LockTable::runs_to_queue`]), so waiting and deadlock detection deal with queues only. The
//!   copy and the run may both exist.
//! - R2: a waiting request has the copies of all runs with its key before it. A run that had the
//!   key when the request arrived was copied then (R1). No key is added to a run while its queue
//!   has waiting requests. So granting a waiting request needs no look at the runs.
//! - R3: an owner whose run has a key of an index is in that index's registry.
//!
//! # Concurrency
//! Two owners may want one key at the same time, one in its run and the other at the queue. The
//! first adds the key under its own mutex. Then it looks whether the shard of the key is latched or
//! has queues, and whether another owner's run has the key. The second latches the shard, and then
//! looks at the runs. On both sides a fence stands between the write and the look, so at least one
//! sees the other. If it is the first, it takes the key out of its run again, and requests the lock
//! at the queue. A loom model of this is in `nfold-sync` (`run_and_queue_see_each_other`).

use super::owner::LockOwner;
use super::queue::{covers_gap, covers_record};
use super::table::{LockTable, Shard, encode, shard_of};
use super::{LockKey, LockKind, LockMode, LockRequest, Locked};
use nfold_sync::CachePadded;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering, fence};

const REGISTRIES: usize = 16;
/// Runs of one owner. Further locks go to queues: others search all runs of an owner.
const RUNS_MAX: usize = 64;
/// Bytes of the keys of one run.
const RUN_BYTES_MAX: usize = 1 << 30;
/// Marks a key that was taken out of the middle of a run, in `ends`.
const REMOVED: u32 = 1 << 31;

/// Ascending keys of one index that are locked in the same way.
pub(super) struct Run {
    pub index: u64,
    pub mode: LockMode,
    pub kind: LockKind,
    keys: Vec<u8>,
    /// Where each key ends in `keys`, with [`REMOVED`].
    ends: Vec<u32>,
}

impl Run {
    /// Index, mode and kind.
    fn sort(&self) -> (u64, LockMode, LockKind) {
        (self.index, self.mode, self.kind)
    }

    fn key(&self, at: usize) -> &[u8] {
        let end = |at: usize| (self.ends[at] & !REMOVED) as usize;
        let start = at.checked_sub(1).map_or(0, end);
        &self.keys[start..end(at)]
    }

    /// The position of a key that was not removed. Keys near the end are found first: a row is
    /// changed soon after it was locked.
    fn position(&self, key: &[u8]) -> Option<usize> {
        let (mut low, mut high, mut step) = (0, self.ends.len(), 1);
        while low < high {
            let back = high.saturating_sub(step);
            if self.key(back) <= key {
                low = back;
                break;
            }
            (high, step) = (back, step * 2);
        }
        while low < high {
            let middle = low.midpoint(high);
            match self.key(middle).cmp(key) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => {
                    return (self.ends[middle] & REMOVED == 0).then_some(middle);
                }
            }
        }
        None
    }

    /// Adds a key, unless it is not above the last one.
    fn push(&mut self, key: &[u8]) -> bool {
        let last = self.ends.len().checked_sub(1);
        let fits = last.is_none_or(|last| self.key(last) < key)
            && self.keys.len() + key.len() < RUN_BYTES_MAX;
        if fits {
            self.keys.extend_from_slice(key);
            self.ends.push(self.keys.len() as u32);
        }
        fits
    }

    /// Takes out the key at `at`.
    fn remove(&mut self, at: usize) {
        if at + 1 < self.ends.len() {
            self.ends[at] |= REMOVED;
            return;
        }
        self.ends.pop();
        let end = self.ends.last().map_or(0, |end| end & !REMOVED);
        self.keys.truncate(end as usize);
    }

    fn keys(&self) -> impl Iterator<Item = &[u8]> {
        let present = |at: &usize| self.ends[*at] & REMOVED == 0;
        (0..self.ends.len()).filter(present).map(|at| self.key(at))
    }
}

/// The runs of one owner, behind its mutex.
#[derive(Default)]
pub(super) struct Runs(Vec<Run>);

impl Runs {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Keys in all runs, with those that were taken out.
    pub fn len(&self) -> usize {
        self.0.iter().map(|run| run.ends.len()).sum()
    }

    /// The locks on a key: mode and kind of each.
    fn on<'a>(
        &'a self,
        index: u64,
        key: &'a [u8],
    ) -> impl Iterator<Item = (LockMode, LockKind)> + 'a {
        let on_key = move |run: &&Run| run.index == index && run.position(key).is_some();
        self.0.iter().filter(on_key).map(|run| (run.mode, run.kind))
    }

    /// Whether a run alone has what is requested.
    pub fn hold(&self, request: &LockRequest<'_>) -> bool {
        let LockKey::Key(key) = request.key else {
            return false;
        };
        let (mut record, mut gap) = (false, false);
        for (mode, kind) in self.on(request.index, key) {
            record |= mode >= request.mode && covers_record(kind);
            gap |= mode >= request.mode && covers_gap(kind);
        }
        match request.kind {
            LockKind::Record => record,
            LockKind::Gap => gap,
            LockKind::NextKey => record && gap,
            LockKind::InsertIntention => false,
        }
    }

    /// Adds a key to the newest run of its sort. False: there is none, or the key is not above its
    /// last one.
    fn push(&mut self, index: u64, mode: LockMode, kind: LockKind, key: &[u8]) -> bool {
        let sort = (index, mode, kind);
        let newest = self.0.iter_mut().rfind(|run| run.sort() == sort);
        newest.is_some_and(|run| run.push(key))
    }

    /// Takes a key out of the runs of one sort.
    pub fn remove(&mut self, index: u64, mode: LockMode, kind: LockKind, key: &[u8]) {
        let sort = (index, mode, kind);
        for run in self.0.iter_mut().filter(|run| run.sort() == sort) {
            if let Some(at) = run.position(key) {
                run.remove(at);
            }
        }
    }
}

/// The owners that have runs.
#[derive(Default)]
pub(super) struct RunOwners {
    /// By index, several indexes in one list (R3).
    by_index: [CachePadded<Mutex<Vec<(u64, Arc<LockOwner>)>>>; REGISTRIES],
    /// Entries of all lists. Every request reads it, so it has a line of its own.
    count: CachePadded<AtomicUsize>,
}

/// Orders a latched shard before a look at the runs (see "Concurrency").
#[inline(always)]
fn latched_before_look() {
    // The latch is taken by a locked instruction, which is a full barrier on this processor.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    std::sync::atomic::compiler_fence(Ordering::SeqCst);
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    fence(Ordering::SeqCst);
}

impl RunOwners {
    fn list(&self, index: u64) -> &Mutex<Vec<(u64, Arc<LockOwner>)>> {
        &self.by_index[index as usize % REGISTRIES]
    }

    /// Whether any owner has a run. Called under a shard's mutex.
    #[inline(always)]
    pub fn are_there(&self) -> bool {
        latched_before_look();
        self.count.load(Ordering::Relaxed) != 0
    }

    fn add(&self, index: u64, owner: &Arc<LockOwner>) {
        let mut list = self.list(index).lock();
        let known = |(i, o): &(u64, Arc<LockOwner>)| *i == index && Arc::ptr_eq(o, owner);
        if !list.iter().any(known) {
            list.push((index, owner.clone()));
            self.count.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Forgets an owner whose runs are gone.
    fn remove(&self, index: u64, owner: &Arc<LockOwner>) {
        let mut list = self.list(index).lock();
        let before = list.len();
        list.retain(|(i, o)| *i != index || !Arc::ptr_eq(o, owner));
        self.count.fetch_sub(before - list.len(), Ordering::SeqCst);
    }

    /// The locks of all owners on a key.
    fn on(&self, index: u64, key: &[u8]) -> Vec<(Arc<LockOwner>, LockMode, LockKind)> {
        let mut locks = Vec::new();
        for (_, owner) in self.list(index).lock().iter().filter(|(i, _)| *i == index) {
            let state = owner.state.lock();
            let of_owner = state.runs.on(index, key);
            locks.extend(of_owner.map(|(mode, kind)| (owner.clone(), mode, kind)));
        }
        locks
    }
}

impl LockTable {
    /// Adds the key of a request to the owner's runs. `None`: it has to be requested at its queue.
    #[inline(never)]
    pub(super) fn lock_in_run(
        &self,
        owner: &Arc<LockOwner>,
        request: &LockRequest<'_>,
    ) -> Option<Locked> {
        let LockKey::Key(key) = request.key else {
            return None;
        };
        if request.implicit_holder.is_some() || request.kind == LockKind::InsertIntention {
            return None;
        }
        let (index, mode, kind) = (request.index, request.mode, request.kind);
        let added = owner.state.lock().runs.push(index, mode, kind, key);
        if !added && !self.begin_run(owner, request, key) {
            return None;
        }
        fence(Ordering::SeqCst);
        let bytes = encode(index, request.key);
        let at = shard_of(&bytes);
        if (self.may_have_queues(at) && self.is_in_the_way(at, &bytes, owner, mode, kind))
            || self.others_lock(owner, index, key)
        {
            owner.state.lock().runs.remove(index, mode, kind, key);
            return None;
        }
        Some(Locked::New)
    }

    /// Begins a run with this key, unless the owner has too many.
    #[cold]
    fn begin_run(&self, owner: &Arc<LockOwner>, request: &LockRequest<'_>, key: &[u8]) -> bool {
        let index = request.index;
        if owner.state.lock().runs.0.len() >= RUNS_MAX {
            return false;
        }
        self.run_owners.add(index, owner);
        let mut state = owner.state.lock();
        state.note_sort(index, request.mode, request.kind);
        let mut run = Run {
            index,
            mode: request.mode,
            kind: request.kind,
            keys: Vec::new(),
            ends: Vec::new(),
        };
        run.push(key);
        state.runs.0.push(run);
        true
    }

    /// Whether a shard has queues, or somebody looks at it. Behind a fence.
    fn may_have_queues(&self, at: usize) -> bool {
        let shard = &self.shards[at];
        if shard.queues.is_locked() {
            return true;
        }
        // A release of the mutex sets `has_queues` first.
        fence(Ordering::Acquire);
        shard.has_queues.load(Ordering::Relaxed)
    }

    /// Whether the queue of a key has a lock of the owner, or one that the owner has to wait for,
    /// or waiting requests (R2).
    #[cold]
    fn is_in_the_way(
        &self,
        at: usize,
        bytes: &[u8],
        owner: &Arc<LockOwner>,
        mode: LockMode,
        kind: LockKind,
    ) -> bool {
        let shard = self.lock_shard(at);
        let queue = shard.get(bytes);
        queue.is_some_and(|q| {
            !q.waiting().is_empty() || q.has_granted(owner) || q.blocks(owner, mode, kind)
        })
    }

    /// Whether a run of another owner has the key.
    fn others_lock(&self, owner: &Arc<LockOwner>, index: u64, key: &[u8]) -> bool {
        if self.run_owners.count.load(Ordering::Relaxed) == 1 {
            return false;
        }
        let locks = self.run_owners.on(index, key);
        locks.iter().any(|(other, _, _)| !Arc::ptr_eq(other, owner))
    }

    /// Copies the locks that runs have on a key into its queue (R1). The shard is latched.
    #[cold]
    #[inline(never)]
    pub(super) fn runs_to_queue(
        &self,
        shard: &mut Shard,
        at: usize,
        bytes: &[u8],
        (index, key): (u64, LockKey<'_>),
    ) {
        let LockKey::Key(key) = key else { return };
        for (owner, mode, kind) in self.run_owners.on(index, key) {
            // An owner that has just added the key, and has not looked at the queue yet, may have
            // to take it out again.
            let is_left_out = shard.get(bytes).is_some_and(|queue| {
                queue.holds(&owner, mode, kind)
                    || queue.holders(&owner, mode, kind).next().is_some()
            });
            if !is_left_out {
                Self::grant_new(shard, at, bytes, &owner, mode, kind);
            }
        }
    }

    /// Takes a key that was removed from the index out of all runs; who had it locked, and how.
    pub(super) fn remove_from_runs(
        &self,
        index: u64,
        key: &[u8],
    ) -> Vec<(Arc<LockOwner>, LockMode, LockKind)> {
        let locks = self.run_owners.on(index, key);
        for (owner, mode, kind) in &locks {
            owner.state.lock().runs.remove(index, *mode, *kind, key);
        }
        locks
    }

    /// The owner has ended: its runs are gone.
    pub(super) fn end_runs(&self, owner: &Arc<LockOwner>, runs: Runs) {
        for run in runs.0 {
            self.run_owners.remove(run.index, owner);
        }
    }

    /// Every lock in a run, for the status views.
    pub(super) fn each_in_runs(&self, mut take: impl FnMut(&Arc<LockOwner>, &Run, &[u8])) {
        for list in &self.run_owners.by_index {
            for (index, owner) in list.lock().iter() {
                let state = owner.state.lock();
                for run in state.runs.0.iter().filter(|run| run.index == *index) {
                    run.keys().for_each(|key| take(owner, run, key));
                }
            }
        }
    }
}
