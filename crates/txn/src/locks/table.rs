//! The shards, and every operation on locks.

use super::owner::{LockOwner, OwnWait, QueuePlace};
use super::queue::{Entry, Queue};
use super::queue_key::{KeyBuf, QueueKey};
use super::run::RunOwners;
use super::wait::{LockWait, Waiter};
use super::{DeadlockInfo, LockKey, LockKind, LockMode, LockRequest, Locked, OnConflict};
use crate::error::{Step, TxnError};
use hashbrown::HashMap;
use hashbrown::hash_map::{EntryRef, OccupiedEntry};
use nfold_observe::contention::{Contention, Site, Ticket, WaitKind};
use nfold_store::{Stop, TrxId, Wait, lock_watched};
use nfold_sync::CachePadded;
use parking_lot::{Mutex, MutexGuard};
use rustc_hash::{FxBuildHasher, FxHashMap, FxHasher};
use smallvec::SmallVec;
use std::hash::Hasher;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

const SHARDS: usize = 256;
const OWNER_SHARDS: usize = 64;
/// Debug assertions check queues with at most this many waiting requests.
const CHECKED_MAX: usize = 64;
/// Places that one call of [`LockTable::release_slice`] releases: less than a millisecond of work.
pub(crate) const RELEASE_SLICE: usize = 2048;
pub(super) const TAG_KEY: u8 = 0;
const TAG_SUPREMUM: u8 = 1;

/// Owners of transactions with an id, by id.
pub(super) type OwnerMap = CachePadded<Mutex<FxHashMap<TrxId, Arc<LockOwner>>>>;
pub(super) type Shard = HashMap<QueueKey, Queue, FxBuildHasher>;

/// A shard with its mutex.
#[derive(Default)]
pub(super) struct LatchedShard {
    pub queues: Mutex<Shard>,
    /// Whether there were queues when the mutex was released last. For
    /// [`run`](super::run), which reads it without the mutex.
    pub has_queues: AtomicBool,
}

impl LatchedShard {
    pub fn lock(&self) -> ShardGuard<'_> {
        ShardGuard {
            queues: self.queues.lock(),
            has_queues: &self.has_queues,
        }
    }
}

/// Exclusive use of a shard.
pub(super) struct ShardGuard<'s> {
    queues: MutexGuard<'s, Shard>,
    has_queues: &'s AtomicBool,
}

impl Deref for ShardGuard<'_> {
    type Target = Shard;

    #[inline]
    fn deref(&self) -> &Shard {
        &self.queues
    }
}

impl DerefMut for ShardGuard<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Shard {
        &mut self.queues
    }
}

impl Drop for ShardGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        let has_queues = !self.queues.is_empty();
        self.has_queues.store(has_queues, Ordering::Relaxed);
    }
}

/// Where a queue is, or would be: looked for once a call, as a transaction may lock a million rows.
type QueueEntry<'s, 'k> = EntryRef<'s, 'k, QueueKey, [u8], Queue, FxBuildHasher>;
type FoundQueue<'s> = OccupiedEntry<'s, QueueKey, Queue, FxBuildHasher>;

/// Counters for the status.
#[derive(Copy, Clone, Default, PartialEq, Eq, Debug)]
pub struct LockTableStatus {
    /// Requests that had to wait (`Innodb_row_lock_waits`).
    pub waits: u64,
    pub deadlocks: u64,
    /// Requests that wait now (`Innodb_row_lock_current_waits`).
    pub waiting: u64,
    /// How long the requests have waited in all, and the longest of them, in microseconds.
    pub waited_us: u64,
    pub longest_us: u64,
}

#[derive(Default)]
struct Counters {
    waits: AtomicU64,
    deadlocks: AtomicU64,
    waited_us: AtomicU64,
    longest_us: AtomicU64,
}

/// See the parent module. One per engine.
pub struct LockTable {
    pub(super) shards: Box<[CachePadded<LatchedShard>]>,
    pub(super) run_owners: RunOwners,
    /// Owners of transactions with an id, for implicit locks.
    pub(super) owners: Box<[OwnerMap]>,
    pub(super) detector: Mutex<()>,
    pub(super) last_deadlock: Mutex<Option<DeadlockInfo>>,
    counters: CachePadded<Counters>,
    contention: Arc<Contention>,
}

impl Default for LockTable {
    fn default() -> Self {
        LockTable::noting(Arc::default())
    }
}

impl LockTable {
    /// A table whose waits are noted there.
    pub fn noting(contention: Arc<Contention>) -> LockTable {
        LockTable {
            contention,
            run_owners: RunOwners::default(),
            shards: (0..SHARDS).map(|_| CachePadded::default()).collect(),
            owners: (0..OWNER_SHARDS).map(|_| CachePadded::default()).collect(),
            detector: Mutex::new(()),
            last_deadlock: Mutex::new(None),
            counters: CachePadded::default(),
        }
    }
}

/// The key of the queue of a place.
#[inline]
pub(super) fn encode(index: u64, key: LockKey<'_>) -> KeyBuf {
    match key {
        LockKey::Key(key) => KeyBuf::new(index, TAG_KEY, key),
        LockKey::Supremum => KeyBuf::new(index, TAG_SUPREMUM, &[]),
    }
}

pub(super) fn shard_of(key: &[u8]) -> usize {
    let mut hasher = FxHasher::default();
    hasher.write(key);
    (hasher.finish() >> 24) as usize % SHARDS
}

/// A request that was appended to its queue.
struct Queued {
    key: QueueKey,
    waiter: Arc<Waiter>,
    /// Whether all paths of waits from it lead to the holders in the queue.
    leads_to_holders: bool,
    /// What those holders wait for. Read after the request was queued (D2 of `deadlock`).
    waits_of_holders: SmallVec<[OwnWait; 1]>,
}

/// Waiters whose requests left the queue; woken after the shard's mutex is released.
#[derive(Default)]
struct ToWake(SmallVec<[Arc<Waiter>; 2]>);

impl ToWake {
    fn wake(self) {
        for waiter in self.0 {
            waiter.wake();
        }
    }
}

fn owner_shard(id: TrxId) -> usize {
    id as usize % OWNER_SHARDS
}

impl LockTable {
    #[cfg(test)]
    pub fn new() -> Arc<LockTable> {
        Arc::new(LockTable::default())
    }

    /// Makes the owner known by its transaction id: from now on its id on a row is an implicit
    /// lock.
    pub fn register(&self, owner: &Arc<LockOwner>, id: TrxId) {
        owner.set_trx_id(id);
        self.owners[owner_shard(id)]
            .lock()
            .insert(id, owner.clone());
    }

    /// Requests a lock. `Stop::Wait`: the request is queued; repeat the call after the wait.
    ///
    /// # Errors
    /// `Deadlock` (the owner is a victim, and stays one), `LockNotAvailable`.
    pub fn lock(
        self: &Arc<Self>,
        owner: &Arc<LockOwner>,
        request: &LockRequest<'_>,
    ) -> Step<Locked> {
        if self.begin_request(owner, request)? {
            return Ok(Locked::Held);
        }
        if request.one_of_many
            && let Some(locked) = self.lock_in_run(owner, request)
        {
            return Ok(locked);
        }
        let bytes = encode(request.index, request.key);
        let mut kind = request.kind;
        if request.key == LockKey::Supremum && kind != LockKind::InsertIntention {
            kind = LockKind::Gap;
        }
        let at = shard_of(&bytes);
        let mut shard = self.lock_shard(at);
        let takes_entry = kind != LockKind::InsertIntention && !request.becomes_implicit;
        if self.run_owners.are_there() {
            self.runs_to_queue(&mut shard, at, &bytes, (request.index, request.key));
        }
        match self.active_holder(owner, request.implicit_holder, kind) {
            Some(holder) => Self::make_explicit(&mut shard, at, &bytes, &holder),
            None if !takes_entry && shard.is_empty() => return Ok(Locked::New),
            None => {}
        }
        let found = match shard.entry_ref(&bytes[..]) {
            EntryRef::Occupied(found) => found,
            vacant => {
                if takes_entry {
                    Self::grant(vacant, at, owner, request.mode, kind);
                }
                return Ok(Locked::New);
            }
        };
        let queue = found.get();
        if queue.holds(owner, request.mode, kind) {
            return Ok(Locked::Held);
        }
        if !queue.blocks(owner, request.mode, kind) {
            if takes_entry {
                Self::grant(EntryRef::Occupied(found), at, owner, request.mode, kind);
            }
            return Ok(Locked::New);
        }
        match request.on_conflict {
            OnConflict::NoWait => return Err(TxnError::LockNotAvailable.into()),
            OnConflict::Skip => return Ok(Locked::Skipped),
            OnConflict::Wait => {}
        }
        let queued = Self::queue_request(found, at, owner, request.mode, kind);
        drop(shard);
        self.begin_wait(owner, queued)
    }

    /// Appends a request that has to wait to its queue.
    #[cold]
    #[inline(never)]
    fn queue_request(
        mut found: FoundQueue<'_>,
        at: usize,
        owner: &Arc<LockOwner>,
        mode: LockMode,
        kind: LockKind,
    ) -> Queued {
        let waiter = found.get_mut().wait(owner, mode, kind);
        let place = QueuePlace {
            shard: at as u16,
            key: found.key().clone(),
        };
        owner.state.lock().waiting = Some((place.clone(), waiter.clone()));
        Queued {
            key: place.key,
            waiter,
            leads_to_holders: found.get().newest_leads_to_holders(owner, mode, kind),
            waits_of_holders: found.get().waits_of_holders(owner),
        }
    }

    /// Notes the wait of a queued request, breaks the deadlocks that it closes, and returns the
    /// wait.
    #[cold]
    #[inline(never)]
    fn begin_wait(self: &Arc<Self>, owner: &Arc<LockOwner>, queued: Queued) -> Step<Locked> {
        self.counters.waits.fetch_add(1, Ordering::Relaxed);
        let ticket = self.contention.enter(Site {
            kind: WaitKind::RowLock,
            place: nfold_observe::contention::WaitPlace::Row(queued.key[..].into()),
        });
        let wait = LockWait {
            table: self.clone(),
            owner: owner.clone(),
            waiter: queued.waiter,
            ticket: Some(ticket),
        };
        for wait in &queued.waits_of_holders {
            self.make_urgent(wait);
        }
        let closes_no_cycle = queued.leads_to_holders && queued.waits_of_holders.is_empty();
        if !closes_no_cycle && self.break_deadlocks(owner) {
            return Err(TxnError::Deadlock.into());
        }
        Err(Stop::Wait(Wait::boxed(wait)))
    }

    /// Others wait for the owner of this waiting request from now on.
    fn make_urgent(&self, (place, waiter): &OwnWait) {
        let mut shard = self.lock_shard(place.shard as usize);
        if let Some(queue) = shard.get_mut(&place.key) {
            queue.make_urgent(waiter);
        }
    }

    pub(super) fn lock_shard(&self, at: usize) -> ShardGuard<'_> {
        let site = || Site::of(WaitKind::LockShard);
        let shard = &self.shards[at];
        ShardGuard {
            queues: lock_watched(&shard.queues, &self.contention, site),
            has_queues: &shard.has_queues,
        }
    }

    /// The wait that [`lock`](Self::lock) began is over; `waited` is its length.
    pub(super) fn waited(&self, ticket: Ticket, waited: Duration) {
        let us = waited.as_micros() as u64;
        self.counters.waited_us.fetch_add(us, Ordering::Relaxed);
        self.counters.longest_us.fetch_max(us, Ordering::Relaxed);
        self.contention.leave(ticket, None);
    }

    /// An owner that asks again has left the queue it stood in; a victim gets nothing any more.
    /// Returns whether a run of the owner has the lock.
    #[inline]
    fn begin_request(
        &self,
        owner: &Arc<LockOwner>,
        request: &LockRequest<'_>,
    ) -> Result<bool, TxnError> {
        let state = owner.state.lock();
        debug_assert!(!state.closed, "L3: a closed owner requests no lock");
        if state.waiting.is_none() && !state.victim {
            return Ok(!state.runs.is_empty() && state.runs.hold(request));
        }
        let (victim, waiting) = (state.victim, state.waiting.as_ref().map(|(_, w)| w.clone()));
        drop(state);
        self.cancel_before(owner, victim, waiting)?;
        Ok(owner.state.lock().runs.hold(request))
    }

    /// Takes the owner's earlier request out of its queue.
    #[cold]
    #[inline(never)]
    fn cancel_before(
        &self,
        owner: &Arc<LockOwner>,
        victim: bool,
        waiting: Option<Arc<Waiter>>,
    ) -> Result<(), TxnError> {
        if let Some(waiter) = waiting {
            self.cancel(owner, &waiter);
        }
        if victim {
            Err(TxnError::Deadlock)
        } else {
            Ok(())
        }
    }

    fn active_holder(
        &self,
        owner: &Arc<LockOwner>,
        holder: Option<TrxId>,
        kind: LockKind,
    ) -> Option<Arc<LockOwner>> {
        if !matches!(kind, LockKind::Record | LockKind::NextKey) {
            return None;
        }
        let id = holder.filter(|id| *id != 0 && *id != owner.trx_id())?;
        self.owners[owner_shard(id)].lock().get(&id).cloned()
    }

    /// Adds an entry for the holder's implicit lock, unless the holder has ended or other owners
    /// have conflicting locks. In both cases the row that the caller read is outdated.
    fn make_explicit(shard: &mut Shard, at: usize, bytes: &[u8], holder: &Arc<LockOwner>) {
        let (mode, kind) = (LockMode::X, LockKind::Record);
        let in_the_way = shard.get(bytes).is_some_and(|q| {
            q.holds(holder, mode, kind) || q.blockers(holder, mode, kind, 0).next().is_some()
        });
        if !in_the_way {
            Self::grant_new(shard, at, bytes, holder, mode, kind);
        }
    }

    pub(super) fn grant_new(
        shard: &mut Shard,
        at: usize,
        bytes: &[u8],
        owner: &Arc<LockOwner>,
        mode: LockMode,
        kind: LockKind,
    ) {
        Self::grant(shard.entry_ref(bytes), at, owner, mode, kind);
    }

    /// Grants the owner a lock in the queue at `entry`, which may be vacant.
    fn grant(
        entry: QueueEntry<'_, '_>,
        at: usize,
        owner: &Arc<LockOwner>,
        mode: LockMode,
        kind: LockKind,
    ) {
        let mut state = owner.state.lock();
        if state.closed {
            return;
        }
        let mut found = match entry {
            EntryRef::Occupied(found) => found,
            EntryRef::Vacant(vacant) => vacant.insert_entry(Queue::default()),
        };
        state.note_kind(found.key(), mode, kind);
        if !found.get().has_granted(owner) {
            state.held.push(QueuePlace {
                shard: at as u16,
                key: found.key().clone(),
            });
        }
        drop(state);
        found
            .get_mut()
            .grant(Entry::granted(owner.clone(), mode, kind));
    }

    /// Grants what can be granted in a queue that lost an entry, and forgets an empty queue.
    fn grant_waiting(mut found: FoundQueue<'_>, at: u16, woken: &mut ToWake) {
        while let Some(mut entry) = found.get_mut().take_next() {
            let owner = entry.owner.clone();
            let mut state = owner.state.lock();
            state.waiting = None;
            woken.0.extend(entry.waiter.take());
            if entry.kind == LockKind::InsertIntention || state.closed {
                continue;
            }
            state.note_kind(found.key(), entry.mode, entry.kind);
            if !found.get().has_granted(&owner) {
                state.held.push(QueuePlace {
                    shard: at,
                    key: found.key().clone(),
                });
            }
            found.get_mut().grant(entry);
        }
        let queue = found.get();
        // The check takes quadratic time, and tests run with thousands of waiting requests, too.
        debug_assert!(queue.waiting().len() > CHECKED_MAX || queue.check() == Ok(()));
        if queue.is_empty() {
            found.remove();
        }
    }

    /// Takes `waiter`'s request out of its queue, if it still waits.
    pub(super) fn cancel(&self, owner: &Arc<LockOwner>, waiter: &Arc<Waiter>) {
        let place = {
            let state = owner.state.lock();
            match &state.waiting {
                Some((place, w)) if Arc::ptr_eq(w, waiter) => place.clone(),
                _ => return,
            }
        };
        let mut woken = ToWake::default();
        {
            let mut shard = self.lock_shard(place.shard as usize);
            let EntryRef::Occupied(mut found) = shard.entry_ref(&place.key[..]) else {
                return;
            };
            // Granted in the meantime: then it is held, and released with the others.
            let Some(at) = found.get().position(waiter) else {
                return;
            };
            found.get_mut().remove_waiting(at);
            owner.state.lock().waiting = None;
            woken.0.push(waiter.clone());
            Self::grant_waiting(found, place.shard, &mut woken);
        }
        woken.wake();
    }

    /// Ends the victim's wait; its next request, and the repeated one, fail.
    pub(super) fn sacrifice(&self, victim: &Arc<LockOwner>) {
        let waiter = {
            let mut state = victim.state.lock();
            state.victim = true;
            state.waiting.as_ref().map(|(_, w)| w.clone())
        };
        if let Some(waiter) = waiter {
            self.cancel(victim, &waiter);
        }
    }

    pub(super) fn count_deadlock(&self) {
        self.counters.deadlocks.fetch_add(1, Ordering::Relaxed);
    }

    /// Releases one lock early: READ COMMITTED does so for a row that does not match, and every
    /// level does so for a lock that came too late (see "Concurrency" in the module's header). The
    /// owner's other locks on the same key stay.
    pub fn unlock(
        &self,
        owner: &Arc<LockOwner>,
        index: u64,
        key: &[u8],
        mode: LockMode,
        kind: LockKind,
    ) {
        let bytes = encode(index, LockKey::Key(key));
        let at = shard_of(&bytes);
        let mut woken = ToWake::default();
        {
            let mut shard = self.shards[at].lock();
            if self.run_owners.are_there() {
                owner.state.lock().runs.remove(index, mode, kind, key);
            }
            let EntryRef::Occupied(mut found) = shard.entry_ref(&bytes[..]) else {
                return;
            };
            if !found.get_mut().revoke(owner, mode, kind) {
                return;
            }
            if !found.get().has_granted(owner) {
                let held = &mut owner.state.lock().held;
                // Locks are given up soon after they were taken.
                if let Some(at) = held.iter().rposition(|p| p.key == *found.key()) {
                    held.swap_remove(at);
                }
            }
            Self::grant_waiting(found, at as u16, &mut woken);
        }
        woken.wake();
    }

    fn release_place(&self, owner: &Arc<LockOwner>, place: &QueuePlace) {
        let mut woken = ToWake::default();
        {
            let mut shard = self.shards[place.shard as usize].lock();
            let EntryRef::Occupied(mut found) = shard.entry_ref(&place.key[..]) else {
                return;
            };
            found.get_mut().revoke_all(owner);
            Self::grant_waiting(found, place.shard, &mut woken);
        }
        woken.wake();
    }

    /// Releases all locks at the end of a transaction, and wakes the owners that can proceed. The
    /// owner gets no further locks.
    pub fn release_all(&self, owner: &Arc<LockOwner>) {
        while !self.release_slice(owner) {}
    }

    /// As [`release_all`](Self::release_all), but releases at most [`RELEASE_SLICE`] places.
    /// Returns whether the owner holds nothing any more.
    pub(crate) fn release_slice(&self, owner: &Arc<LockOwner>) -> bool {
        let (slice, waiting, is_last, runs) = {
            let mut state = owner.state.lock();
            state.closed = true;
            let runs = std::mem::take(&mut state.runs);
            let rest = state.held.len().saturating_sub(RELEASE_SLICE);
            let slice = match rest {
                0 => std::mem::take(&mut state.held),
                _ => state.held.split_off(rest),
            };
            let waiting = state.waiting.as_ref().map(|(_, w)| w.clone());
            (slice, waiting, rest == 0, runs)
        };
        if !runs.is_empty() {
            self.end_runs(owner, runs);
        }
        let id = owner.trx_id();
        if id != 0 {
            self.owners[owner_shard(id)].lock().remove(&id);
        }
        if let Some(waiter) = waiting {
            self.cancel(owner, &waiter);
        }
        for place in slice {
            self.release_place(owner, &place);
        }
        is_last
    }

    /// `new_keys` were inserted before `next`, in ascending order: the gap locks on the gap that
    /// they split now cover all its parts. Under the leaf's latch.
    pub fn inherit_on_insert<'k>(
        &self,
        index: u64,
        new_keys: impl IntoIterator<Item = &'k [u8]>,
        next: LockKey<'_>,
    ) {
        let from = encode(index, next);
        let at = shard_of(&from);
        let heirs: SmallVec<[(Arc<LockOwner>, LockMode); 4]> = {
            let mut shard = self.shards[at].lock();
            if self.run_owners.are_there() {
                self.runs_to_queue(&mut shard, at, &from, (index, next));
            }
            let Some(queue) = shard.get(&from[..]) else {
                return;
            };
            let gap = |e: &&Entry| matches!(e.kind, LockKind::Gap | LockKind::NextKey);
            queue
                .granted()
                .iter()
                .filter(gap)
                .map(|e| (e.owner.clone(), e.mode))
                .collect()
        };
        for key in new_keys {
            self.add_gaps(index, LockKey::Key(key), &heirs);
        }
    }

    /// Moves locks after `key` was removed from the index: granted and waiting locks on it become
    /// gap locks on `next`, and waiters retry. The caller holds the leaf's latch.
    ///
    /// As in InnoDB, READ COMMITTED keeps of its waiting requests only the shared ones, which check
    /// for duplicates. So two inserts that waited for a third one, which was rolled back, exclude
    /// each other.
    pub fn inherit_on_remove(&self, index: u64, key: &[u8], next: LockKey<'_>) {
        let bytes = encode(index, LockKey::Key(key));
        let mut woken = ToWake::default();
        let mut heirs: SmallVec<[(Arc<LockOwner>, LockMode); 4]> = SmallVec::new();
        {
            let mut shard = self.shards[shard_of(&bytes)].lock();
            if self.run_owners.are_there() {
                let locks = self.remove_from_runs(index, key);
                let keeping = locks.into_iter().filter(|(owner, _, _)| owner.keeps_gaps());
                heirs.extend(keeping.map(|(owner, mode, _)| (owner, mode)));
            }
            let entries = shard.remove(&bytes[..]).map(Queue::into_entries);
            for e in entries.into_iter().flatten() {
                match e.waiter {
                    Some(waiter) => {
                        e.owner.state.lock().waiting = None;
                        woken.0.push(waiter);
                        let kept = e.owner.keeps_gaps() || e.mode == LockMode::S;
                        if kept && e.kind != LockKind::InsertIntention {
                            heirs.push((e.owner, e.mode));
                        }
                    }
                    None if e.owner.keeps_gaps() => heirs.push((e.owner, e.mode)),
                    None => {}
                }
            }
        }
        self.add_gaps(index, next, &heirs);
        woken.wake();
    }

    fn add_gaps(&self, index: u64, key: LockKey<'_>, heirs: &[(Arc<LockOwner>, LockMode)]) {
        if heirs.is_empty() {
            return;
        }
        let bytes = encode(index, key);
        let at = shard_of(&bytes);
        let mut shard = self.shards[at].lock();
        for (owner, mode) in heirs {
            if !shard
                .get(&bytes[..])
                .is_some_and(|q| q.holds(owner, *mode, LockKind::Gap))
            {
                Self::grant_new(&mut shard, at, &bytes, owner, *mode, LockKind::Gap);
            }
        }
    }

    /// The counters since the table was made, and the requests that wait now.
    pub fn status(&self) -> LockTableStatus {
        let waiting = |s: &CachePadded<LatchedShard>| {
            s.lock()
                .values()
                .map(|q| q.waiting().len() as u64)
                .sum::<u64>()
        };
        LockTableStatus {
            waits: self.counters.waits.load(Ordering::Relaxed),
            deadlocks: self.counters.deadlocks.load(Ordering::Relaxed),
            waiting: self.shards.iter().map(waiting).sum(),
            waited_us: self.counters.waited_us.load(Ordering::Relaxed),
            longest_us: self.counters.longest_us.load(Ordering::Relaxed),
        }
    }

    /// L1 and L2 over all queues; for tests and CHECK.
    pub fn check(&self) -> Result<(), &'static str> {
        self.shards
            .iter()
            .try_for_each(|s| s.lock().values().try_for_each(Queue::check))
    }

    /// Whether the owner's number of waiters is that of the queues. For tests without threads.
    #[cfg(test)]
    pub(super) fn counts_waiters_of(&self, owner: &Arc<LockOwner>) -> bool {
        let of_queue = |q: &Queue| {
            let locks = q.granted().iter().filter(|e| Arc::ptr_eq(&e.owner, owner));
            locks.count() * q.waiting().len()
        };
        let of_shard =
            |s: &CachePadded<LatchedShard>| s.lock().values().map(of_queue).sum::<usize>();
        self.shards.iter().map(of_shard).sum::<usize>() == owner.waiters()
    }
}
