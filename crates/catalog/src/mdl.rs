//! Metadata locks by announcement: a statement names the tables it uses in its own session's slot,
//! and DDL looks there.
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
//! I1. A table id stands in a slot from before the statement trusts the table's definition until
//!     its transaction ends.
//! I2. `closing_count` is the number of entries in `closing`, and changes only under the registry's
//!     mutex.
//! I3. An exclusive lock is granted only after `closing` was published, a barrier was passed by
//!     every thread, and a scan of all slots found none of its ids in another session's slot.
//! I4. A claim on a table is one on the table that takes its place ([`Mdl::replace`]): it is
//!     entered before the schema names the new id, so no session can have announced that.
//!     `closing_count` is above zero meanwhile, so each session that learns the id reads `closing`.
//!
//! I5. A session never waits for itself: its own announcements and claims do not block its next
//!     claim. Sessions without an id share the number 0, and block each other.
//! I6. A slot's `server` word is set from before a statement changes stored rows or definitions
//!     until it has ended (with its commit, under autocommit). COMMIT sets it anew.
//!
//! # Concurrency
//! Dekker's pattern. Shared side: store own entry (Relaxed), light barrier, load `closing_count`.
//! Exclusive side: publish `closing` and `closing_count`, heavy barrier, scan the entries. One of
//! the two must see the other. The light barrier is a compiler fence where `membarrier(2)` works
//! (the heavy side then interrupts every thread of the process), and a SeqCst fence on both sides
//! where it does not. Entries are written by their own session only, and read by DDL.
//!
//! # Cost
//! A warm statement stores one word into its own slot and loads `closing_count`, which only DDL
//! writes.
//!
//! # Not here
//! Waiting: both sides return busy, and the caller tries again later, so a waiting DDL never blocks
//! a worker and, since it withdraws its claim between tries, never piles up readers. A waiting
//! session is listed here ([`MdlWaiting`]), so that the search for deadlocks finds its blockers,
//! and so that the end of a claim wakes it. The end of a shared lock wakes no session: statements
//! would have to look for waiting sessions.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use nfold_sync::Barrier;
use nfold_sync::words::prefetch_line_outer;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::schema::TableId;

/// Ids that a slot holds without touching its overflow list.
const INLINE: usize = 13;

/// Every statement that changes stored rows or definitions announces it, and FLUSH TABLES WITH READ
/// LOCK claims it. No table has this id.
pub const SERVER_WRITES: TableId = TableId(1 << 60);
/// Every statement that changes definitions or accounts announces it, and LOCK INSTANCE FOR BACKUP
/// claims it.
pub const SERVER_DDL: TableId = TableId(SERVER_WRITES.0 + 1);

/// The bit of [`SERVER_WRITES`] or [`SERVER_DDL`] in a slot.
fn server_bit(id: u64) -> Option<u64> {
    (id == SERVER_WRITES.0 || id == SERVER_DDL.0).then(|| 1 << (id - SERVER_WRITES.0))
}

/// Why a shared metadata lock was not taken now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MdlBusy;

/// One session's announcements, on cache lines of its own.
#[repr(align(128))]
struct Slot {
    entries: [AtomicU64; INLINE],
    /// Which of [`SERVER_WRITES`] and [`SERVER_DDL`] the statement announces, as bits. They end
    /// with the statement, not with the transaction.
    server: AtomicU64,
    /// Id of the session that uses the slot. 0: a session without an id, which the search for
    /// deadlocks skips.
    session: AtomicU64,
    /// How many ids stand in `overflow`; tells a scan whether to take the mutex.
    overflow_len: AtomicU64,
    overflow: Mutex<Vec<u64>>,
}

impl Slot {
    fn new() -> Self {
        Slot {
            entries: std::array::from_fn(|_| AtomicU64::new(0)),
            server: AtomicU64::new(0),
            session: AtomicU64::new(0),
            overflow_len: AtomicU64::new(0),
            overflow: Mutex::new(Vec::new()),
        }
    }

    fn holds(&self, id: u64) -> bool {
        if let Some(bit) = server_bit(id) {
            return self.server.load(Ordering::Acquire) & bit != 0;
        }
        self.entries.iter().any(|e| e.load(Ordering::Acquire) == id)
            || (self.overflow_len.load(Ordering::Acquire) > 0 && self.overflow.lock().contains(&id))
    }
}

/// A claimed table.
struct Claimed {
    table: u64,
    /// Number of the claim.
    claim: u64,
    /// The session that made it; 0: several sessions share it.
    session: u64,
}

/// The tables that a waiting session needs.
struct WantedTables {
    since: Instant,
    ids: Vec<u64>,
    exclusive: bool,
    victim: bool,
    /// It is worth trying again.
    changed: bool,
    waker: Option<Waker>,
}

impl WantedTables {
    /// Ends the pause between two tries; the caller wakes the session once the mutex is released.
    fn change(&mut self) -> Option<Waker> {
        self.changed = true;
        self.waker.take()
    }
}

#[derive(Default)]
struct Inner {
    slots: Vec<Arc<Slot>>,
    /// Slots that no session uses.
    free: Vec<Arc<Slot>>,
    closing: Vec<Claimed>,
    /// Claims so far.
    claims: u64,
    /// Waiting sessions.
    waits: FxHashMap<u64, WantedTables>,
}

impl Inner {
    fn claims_on(&self, id: u64) -> impl Iterator<Item = &Claimed> {
        self.closing.iter().filter(move |c| c.table == id)
    }

    /// Whether a claim keeps `session` from using `id`: that of another session, or of one without
    /// an id (I5).
    fn is_claimed_by_other(&self, id: u64, session: u64) -> bool {
        self.claims_on(id)
            .any(|c| c.session == 0 || c.session != session)
    }

    /// Ends a claim. Sessions that want to announce one of its tables can go on; of those that want
    /// to claim one, the first in the queue, if the claim was a granted one (so that a DDL that
    /// tries does not wake another one that does).
    fn end_claim(&mut self, number: u64, granted: bool) -> Vec<Waker> {
        let ended: SmallVec<[u64; 4]> = self
            .closing
            .iter()
            .filter(|c| c.claim == number)
            .map(|c| c.table)
            .collect();
        self.closing.retain(|c| c.claim != number);
        let mut first: Option<&mut WantedTables> = None;
        let mut woken = Vec::new();
        for wanted in self.waits.values_mut() {
            if !wanted.ids.iter().any(|id| ended.contains(id)) {
                continue;
            }
            if !wanted.exclusive {
                woken.extend(wanted.change());
            } else if granted && first.as_ref().is_none_or(|f| wanted.since < f.since) {
                first = Some(wanted);
            }
        }
        woken.extend(first.and_then(WantedTables::change));
        woken
    }

    /// The sessions that block `session` from getting `wanted`.
    fn blockers(&self, session: u64, wanted: &WantedTables) -> Vec<u64> {
        let mut found = Vec::new();
        for &id in &wanted.ids {
            let holders_of = |id: u64| {
                let holders = self.slots.iter().filter(move |slot| slot.holds(id));
                holders.map(|slot| slot.session.load(Ordering::Relaxed))
            };
            for claim in self.claims_on(id) {
                match claim.session {
                    0 => found.extend(holders_of(sharer_of(TableId(id)).0)),
                    session => found.push(session),
                }
            }
            if wanted.exclusive {
                found.extend(holders_of(id));
            }
        }
        found.retain(|s| *s != session && *s != 0);
        found.sort_unstable();
        found.dedup();
        found
    }
}

/// Marks the id by which a session announces that it shares a claim with others.
const SHARER: u64 = 1 << 61;

/// The id that each of the sessions announces that share one claim on `id`. No session claims this
/// id: it only tells the search for deadlocks which sessions share the claim.
pub fn sharer_of(id: TableId) -> TableId {
    TableId(id.0 | SHARER)
}

/// One session's wait for a lock, and the sessions that it waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionWait {
    /// No two waits of a session begin at the same time.
    pub since: Instant,
    pub blockers: Vec<u64>,
}

/// Lists a session as waiting until it is dropped.
pub struct MdlWaiting {
    mdl: Arc<Mdl>,
    session: u64,
}

impl MdlWaiting {
    /// Whether the session is to give up: its wait is part of a deadlock.
    pub fn is_victim(&self) -> bool {
        let inner = self.mdl.inner.lock();
        inner.waits.get(&self.session).is_some_and(|w| w.victim)
    }

    /// Whether another session's claim is in its way, so that the end of the claim wakes it if it
    /// is the first in the queue. An announcement ends without waking anyone.
    pub fn is_behind_claim(&self) -> bool {
        let inner = self.mdl.inner.lock();
        let claimed = |id: &u64| inner.is_claimed_by_other(*id, self.session);
        (inner.waits.get(&self.session)).is_some_and(|wanted| wanted.ids.iter().any(claimed))
    }

    /// Ready when the session should try again: a claim that was in its way has ended, or it is a
    /// deadlock's victim.
    pub fn changed(&self) -> MdlChanged<'_> {
        MdlChanged(self)
    }
}

/// See [`MdlWaiting::changed`].
pub struct MdlChanged<'w>(&'w MdlWaiting);

impl Future for MdlChanged<'_> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<()> {
        let mut inner = self.0.mdl.inner.lock();
        let Some(wanted) = inner.waits.get_mut(&self.0.session) else {
            return Poll::Ready(());
        };
        if std::mem::take(&mut wanted.changed) {
            return Poll::Ready(());
        }
        wanted.waker = Some(task.waker().clone());
        Poll::Pending
    }
}

impl Drop for MdlWaiting {
    fn drop(&mut self) {
        self.mdl.inner.lock().waits.remove(&self.session);
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

    /// A slot for `session`. Dropping it frees it for another.
    pub fn slot(self: &Arc<Self>, session: u64) -> MdlSlot {
        let mut inner = self.inner.lock();
        let slot = inner.free.pop().unwrap_or_else(|| {
            let slot = Arc::new(Slot::new());
            inner.slots.push(slot.clone());
            slot
        });
        slot.session.store(session, Ordering::Relaxed);
        MdlSlot {
            mdl: self.clone(),
            slot,
            held: SmallVec::new(),
        }
    }

    /// Claims `ids` exclusively, or says that another session uses one of them. `own` is the
    /// caller's slot: what it holds itself does not count against it.
    ///
    /// # Errors
    /// [`MdlBusy`]: nothing is claimed; try again after a short sleep.
    pub fn try_exclusive(
        self: &Arc<Self>,
        own: Option<&MdlSlot>,
        ids: &[TableId],
    ) -> Result<MdlExclusive, MdlBusy> {
        let mut inner = self.inner.lock();
        let session = own.map_or(0, MdlSlot::session);
        if ids
            .iter()
            .any(|id| inner.is_claimed_by_other(id.0, session))
        {
            return Err(MdlBusy);
        }
        inner.claims += 1;
        let number = inner.claims;
        inner.closing.extend(ids.iter().map(|id| Claimed {
            table: id.0,
            claim: number,
            session,
        }));
        self.closing_count
            .store(inner.closing.len() as u64, Ordering::SeqCst);
        let mut claim = MdlExclusive {
            mdl: self.clone(),
            number,
            granted: false,
        };
        self.barrier.heavy();
        let busy = inner.slots.iter().any(|slot| {
            let ours = own.is_some_and(|o| o.is_of_session(slot));
            !ours && ids.iter().any(|id| slot.holds(id.0))
        });
        drop(inner); // the claim's Drop takes the mutex
        claim.granted = !busy;
        if busy { Err(MdlBusy) } else { Ok(claim) }
    }

    /// Claims `id`, one of [`SERVER_WRITES`] and [`SERVER_DDL`], without waiting for the statements
    /// that announce it: none can announce it from now on, and the claim counts once
    /// [`MdlExclusive::is_alone`] is true. The claim belongs to no session, so that sessions can
    /// share it.
    pub fn claim_server(self: &Arc<Self>, id: TableId) -> MdlExclusive {
        let mut inner = self.inner.lock();
        inner.claims += 1;
        let number = inner.claims;
        inner.closing.push(Claimed {
            table: id.0,
            claim: number,
            session: 0,
        });
        self.closing_count
            .store(inner.closing.len() as u64, Ordering::SeqCst);
        self.barrier.heavy();
        MdlExclusive {
            mdl: self.clone(),
            number,
            granted: true,
        }
    }

    /// Before the schema names `new`, which takes the place of `old`: a session that has claimed
    /// `old` has claimed `new` as well (I4).
    pub fn replace(&self, old: TableId, new: TableId) {
        let mut inner = self.inner.lock();
        let copies: Vec<Claimed> = inner
            .claims_on(old.0)
            .map(|c| Claimed { table: new.0, ..*c })
            .collect();
        if !copies.is_empty() {
            inner.closing.extend(copies);
            self.closing_count
                .store(inner.closing.len() as u64, Ordering::SeqCst);
        }
    }

    fn is_closing(&self, id: u64, session: u64) -> bool {
        self.inner.lock().is_claimed_by_other(id, session)
    }

    /// `session` begins to wait for `ids`, to claim them (`exclusive`) or to announce them.
    pub fn wait(self: &Arc<Self>, session: u64, ids: &[TableId], exclusive: bool) -> MdlWaiting {
        let wanted = WantedTables {
            since: Instant::now(),
            ids: ids.iter().map(|id| id.0).collect(),
            exclusive,
            victim: false,
            changed: false,
            waker: None,
        };
        self.inner.lock().waits.insert(session, wanted);
        MdlWaiting {
            mdl: self.clone(),
            session,
        }
    }

    /// The session's wait for a metadata lock; none where it is about to give up.
    pub fn wait_of(&self, session: u64) -> Option<SessionWait> {
        let inner = self.inner.lock();
        let wanted = inner.waits.get(&session).filter(|w| !w.victim)?;
        Some(SessionWait {
            since: wanted.since,
            blockers: inner.blockers(session, wanted),
        })
    }

    /// Makes the session's wait that began at `since` end in a deadlock. False for an exclusive
    /// lock: DDL is no victim.
    pub fn sacrifice(&self, session: u64, since: Instant) -> bool {
        let mut inner = self.inner.lock();
        let wanted = match inner.waits.get_mut(&session) {
            Some(wanted) if wanted.since == since && !wanted.exclusive => wanted,
            _ => return false,
        };
        wanted.victim = true;
        let waker = wanted.change();
        drop(inner);
        waker.into_iter().for_each(Waker::wake);
        true
    }
}

/// An exclusive claim on some tables; ends when dropped.
pub struct MdlExclusive {
    mdl: Arc<Mdl>,
    number: u64,
    /// No other session used the tables.
    granted: bool,
}

impl MdlExclusive {
    /// Whether `id` is among the claimed tables, or has taken the place of one.
    pub fn covers(&self, id: TableId) -> bool {
        let inner = self.mdl.inner.lock();
        let mut claims = inner.claims_on(id.0);
        claims.any(|c| c.claim == self.number)
    }

    /// Whether no session announces an id of the claim.
    pub fn is_alone(&self) -> bool {
        let inner = self.mdl.inner.lock();
        let mut own = inner.closing.iter().filter(|c| c.claim == self.number);
        own.all(|c| !inner.slots.iter().any(|slot| slot.holds(c.table)))
    }
}

impl Drop for MdlExclusive {
    fn drop(&mut self) {
        let mut inner = self.mdl.inner.lock();
        let woken = inner.end_claim(self.number, self.granted);
        self.mdl
            .closing_count
            .store(inner.closing.len() as u64, Ordering::SeqCst);
        drop(inner);
        woken.into_iter().for_each(Waker::wake);
    }
}

/// A session's own slot. All its methods are called by that session alone.
pub struct MdlSlot {
    mdl: Arc<Mdl>,
    slot: Arc<Slot>,
    /// The announced ids in the order of acquisition.
    held: SmallVec<[u64; 4]>,
}

impl MdlSlot {
    /// Announces that the transaction uses `id`. The caller must look at the schema version *after*
    /// this call before it trusts the table's definition.
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
        if self.mdl.closing_count.load(Ordering::Relaxed) != 0
            && self.mdl.is_closing(id.0, self.session())
        {
            self.release_to(at);
            return Err(MdlBusy);
        }
        Ok(())
    }

    /// Announces [`SERVER_WRITES`] and [`SERVER_DDL`], as wanted, until [`Self::leave_server`].
    ///
    /// # Errors
    /// [`MdlBusy`]: a session has claimed one of them; try again after a short sleep.
    pub fn enter_server(&mut self, writes: bool, ddl: bool) -> Result<(), MdlBusy> {
        let bits = u64::from(writes) | u64::from(ddl) << 1;
        self.slot.server.store(bits, Ordering::Relaxed);
        self.mdl.barrier.light();
        if self.mdl.closing_count.load(Ordering::Relaxed) != 0 {
            let session = self.session();
            let claimed = |id: TableId| self.mdl.is_closing(id.0, session);
            if writes && claimed(SERVER_WRITES) || ddl && claimed(SERVER_DDL) {
                self.leave_server();
                return Err(MdlBusy);
            }
        }
        Ok(())
    }

    /// Takes the announced tables out of the session: the returned slot, which belongs to no
    /// session, announces them, and this one is empty. Nothing can be claimed in between.
    pub fn hand_over(&mut self) -> MdlSlot {
        let own = self.mdl.slot(self.session());
        let mut handed = std::mem::replace(self, own);
        handed.slot.session.store(0, Ordering::Relaxed);
        handed.leave_server();
        handed
    }

    /// The announced ids in the order of acquisition.
    pub fn held(&self) -> impl Iterator<Item = TableId> + '_ {
        self.held.iter().map(|id| TableId(*id))
    }

    /// Announces what the session's slot `own` announces. The ids cannot be claimed in between.
    pub fn share_server(&mut self, own: &MdlSlot) {
        let bits = own.slot.server.load(Ordering::Relaxed);
        self.slot.server.store(bits, Ordering::Release);
    }

    /// Whether the statement has announced itself by [`Self::enter_server`].
    #[inline]
    pub fn is_in_server(&self) -> bool {
        self.slot.server.load(Ordering::Relaxed) != 0
    }

    /// Ends what [`Self::enter_server`] began.
    #[inline]
    pub fn leave_server(&mut self) {
        if self.is_in_server() {
            // Release: see `release_to`.
            self.slot.server.store(0, Ordering::Release);
        }
    }

    fn session(&self) -> u64 {
        self.slot.session.load(Ordering::Relaxed)
    }

    /// Whether `other` is this slot, or another one of the same session.
    fn is_of_session(&self, other: &Arc<Slot>) -> bool {
        let session = self.session();
        Arc::ptr_eq(&self.slot, other)
            || session != 0 && other.session.load(Ordering::Relaxed) == session
    }

    /// Asks the processor for the slot.
    pub fn prefetch(&self) {
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

    /// Releases everything taken since [`Self::mark`] returned `mark`.
    #[inline]
    pub fn release_to(&mut self, mark: usize) {
        while self.held.len() > mark {
            self.held.pop();
            match self.slot.entries.get(self.held.len()) {
                // Release: what the statement read under the lock happened before DDL sees the
                // entry gone.
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

    /// Releases everything: the end of a transaction.
    #[inline]
    pub fn release_all(&mut self) {
        self.release_to(0);
    }
}

impl Drop for MdlSlot {
    fn drop(&mut self) {
        self.release_all();
        self.leave_server();
        self.slot.session.store(0, Ordering::Relaxed);
        self.mdl.inner.lock().free.push(self.slot.clone());
    }
}

#[cfg(test)]
mod tests;
