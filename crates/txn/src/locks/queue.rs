//! The locks on one key: pure rules, no waiting.

use super::owner::{LockOwner, OwnWait};
use super::wait::Waiter;
use super::{LockKind, LockMode};
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::sync::Arc;

pub(super) struct Entry {
    pub owner: Arc<LockOwner>,
    pub mode: LockMode,
    pub kind: LockKind,
    /// `Some` while it waits.
    pub waiter: Option<Arc<Waiter>>,
    /// It waits, and other requests wait, or have waited, for locks of its owner.
    urgent: bool,
}

impl Entry {
    /// A lock that is granted at once.
    pub fn granted(owner: Arc<LockOwner>, mode: LockMode, kind: LockKind) -> Entry {
        Entry {
            owner,
            mode,
            kind,
            waiter: None,
            urgent: false,
        }
    }

    /// An exclusive lock on the record, or a request for one.
    pub fn excludes_all_records(&self) -> bool {
        self.mode == LockMode::X && covers_record(self.kind)
    }
}

/// Granted locks, and the requests that wait for them in the order of their arrival.
///
/// # Order of grants
/// First come, first served, with one exception. A request is *urgent* if other requests wait for
/// locks that its owner holds. An urgent request passes earlier requests if more requests wait for
/// its owner than for theirs, and if no granted lock blocks it.
///
/// Without the exception, 200 sessions that update three rows in random order hardly commit. One of
/// them holds a row and waits for the second behind 60 sessions that hold nothing. Each of these
/// gets the second row first and then requests the first one: a deadlock. MySQL has the same rule,
/// but also counts requests that wait indirectly ("contention-aware transaction scheduling", MySQL
/// manual 17.7.6; Tian and others, VLDB 2018).
///
/// The first request may be passed `PASSES_FACTOR` times for each waiting request. Then it is
/// served, so no request waits for ever.
///
/// # Cost
/// A hot row has one holder and up to thousands of waiting requests. What each update does to its
/// queue (ask, be granted, release) looks at the granted locks and at the head of the waiting
/// requests only.
///
/// A transaction may lock a million rows: a queue of one granted lock takes 48 bytes.
#[derive(Default)]
pub(super) struct Queue {
    granted: SmallVec<[Entry; 1]>,
    /// Made with the first request that waits, and kept then.
    waiting: Option<Box<Waiting>>,
}

const _: () = assert!(size_of::<Queue>() <= 48);

#[derive(Default)]
struct Waiting {
    requests: VecDeque<Entry>,
    /// Insert intentions among them.
    inserts: usize,
    /// Requests for exclusive record locks among them.
    exclusive: usize,
    /// Urgent requests among them.
    urgent: usize,
    /// How many requests have passed the first one.
    passes: usize,
    /// The number of the newest request. Numbers start at 1 and only grow.
    last_number: u64,
}

/// See "Order of grants" of [`Queue`].
const PASSES_FACTOR: usize = 2;

static NO_REQUESTS: VecDeque<Entry> = VecDeque::new();

pub(super) fn covers_record(kind: LockKind) -> bool {
    matches!(kind, LockKind::Record | LockKind::NextKey)
}

pub(super) fn covers_gap(kind: LockKind) -> bool {
    matches!(kind, LockKind::Gap | LockKind::NextKey)
}

/// Whether a request for `(mode, kind)` has to wait for another owner's `(other_mode, other_kind)`.
/// Gap locks never wait and do not exclude each other. An insert intention waits for gap locks, and
/// no request waits for it.
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

    pub fn is_empty(&self) -> bool {
        self.granted.is_empty() && self.waiting().is_empty()
    }

    /// Granted locks, then waiting requests.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.granted.iter().chain(self.waiting())
    }

    /// The granted locks.
    pub fn granted(&self) -> &[Entry] {
        &self.granted
    }

    /// Granted locks, then waiting requests; the queue is used up.
    pub fn into_entries(self) -> impl Iterator<Item = Entry> {
        let waiters = self.waiting().len();
        for e in &self.granted {
            e.owner.remove_waiters(waiters);
        }
        let waiting = self.waiting.map(|waiting| waiting.requests);
        self.granted
            .into_iter()
            .chain(waiting.into_iter().flatten())
    }

    /// The waiting requests in the order of their arrival.
    pub fn waiting(&self) -> &VecDeque<Entry> {
        self.waiting.as_ref().map_or(&NO_REQUESTS, |w| &w.requests)
    }

    /// Appends a waiting request.
    pub fn wait(&mut self, owner: &Arc<LockOwner>, mode: LockMode, kind: LockKind) -> Arc<Waiter> {
        for holding in &self.granted {
            holding.owner.add_waiters(1);
        }
        let waiting = self.waiting.get_or_insert_default();
        waiting.last_number += 1;
        let waiter = Arc::new(Waiter::new(waiting.last_number));
        let entry = Entry {
            owner: owner.clone(),
            mode,
            kind,
            waiter: Some(waiter.clone()),
            urgent: owner.waiters() > 0,
        };
        waiting.inserts += usize::from(kind == LockKind::InsertIntention);
        waiting.exclusive += usize::from(entry.excludes_all_records());
        waiting.urgent += usize::from(entry.urgent);
        waiting.requests.push_back(entry);
        waiter
    }

    /// Takes out the waiting request at position `at`.
    pub fn remove_waiting(&mut self, at: usize) -> Option<Entry> {
        let waiting = self.waiting.as_mut()?;
        let entry = waiting.requests.remove(at)?;
        waiting.inserts -= usize::from(entry.kind == LockKind::InsertIntention);
        waiting.exclusive -= usize::from(entry.excludes_all_records());
        waiting.urgent -= usize::from(entry.urgent);
        if at == 0 {
            waiting.passes = 0;
        }
        for holding in &self.granted {
            holding.owner.remove_waiters(1);
        }
        Some(entry)
    }

    /// Takes out the next waiting request that can be granted.
    pub fn take_next(&mut self) -> Option<Entry> {
        let at = self.next_to_grant()?;
        if let Some(waiting) = self.waiting.as_mut() {
            waiting.passes += 1;
        }
        self.remove_waiting(at)
    }

    /// The request of `waiter` is urgent from now on, if it still waits.
    pub fn make_urgent(&mut self, waiter: &Arc<Waiter>) {
        if let Some(at) = self.position(waiter)
            && let Some(waiting) = self.waiting.as_mut()
        {
            let is_new = !std::mem::replace(&mut waiting.requests[at].urgent, true);
            waiting.urgent += usize::from(is_new);
        }
    }

    /// Adds a granted lock.
    pub fn grant(&mut self, lock: Entry) {
        lock.owner.add_waiters(self.waiting().len());
        self.granted.push(lock);
    }

    /// Takes out one granted lock of the owner, of this mode and kind; returns whether it had it.
    pub fn revoke(&mut self, owner: &Arc<LockOwner>, mode: LockMode, kind: LockKind) -> bool {
        let is_meant = |e: &Entry| Self::same(&e.owner, owner) && (e.mode, e.kind) == (mode, kind);
        let Some(at) = self.granted.iter().position(is_meant) else {
            return false;
        };
        self.granted.remove(at);
        owner.remove_waiters(self.waiting().len());
        true
    }

    /// Takes out all granted locks of the owner.
    pub fn revoke_all(&mut self, owner: &Arc<LockOwner>) {
        let waiters = self.waiting().len();
        self.granted.retain(|e| {
            let is_meant = Self::same(&e.owner, owner);
            if is_meant {
                owner.remove_waiters(waiters);
            }
            !is_meant
        });
    }

    /// Of the owners with granted locks here, but for `owner`: what they wait for.
    pub fn waits_of_holders(&self, owner: &Arc<LockOwner>) -> SmallVec<[OwnWait; 1]> {
        let others = self.granted.iter().filter(|e| !Self::same(&e.owner, owner));
        others.filter_map(|e| e.owner.own_wait()).collect()
    }

    /// Whether `owner` has been granted something at least as strong.
    pub fn holds(&self, owner: &Arc<LockOwner>, mode: LockMode, kind: LockKind) -> bool {
        let mut record = false;
        let mut gap = false;
        for e in self
            .granted
            .iter()
            .filter(|e| e.mode >= mode && Self::same(&e.owner, owner))
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
        self.granted.iter().any(|e| Self::same(&e.owner, owner))
    }

    /// The entries that a request waits for: granted locks, and requests among the first `before`
    /// waiting ones (all of them for a new request). A waiting request that waits for a lock of
    /// `owner` itself does not count: waiting for it would be a deadlock without need.
    pub fn blockers<'a>(
        &'a self,
        owner: &'a Arc<LockOwner>,
        mode: LockMode,
        kind: LockKind,
        before: usize,
    ) -> impl Iterator<Item = &'a Entry> + 'a {
        let waiting = self.waiting().iter().take(before).filter(move |e| {
            !Self::same(&e.owner, owner)
                && conflicts(mode, kind, e.mode, e.kind)
                && !self.waits_for_owner(e, owner)
        });
        self.holders(owner, mode, kind).chain(waiting)
    }

    /// Whether a new request has to wait.
    pub fn blocks(&self, owner: &Arc<LockOwner>, mode: LockMode, kind: LockKind) -> bool {
        let mut blockers = self.blockers(owner, mode, kind, usize::MAX);
        blockers.next().is_some()
    }

    /// The granted locks that a request waits for.
    pub fn holders<'a>(
        &'a self,
        owner: &'a Arc<LockOwner>,
        mode: LockMode,
        kind: LockKind,
    ) -> impl Iterator<Item = &'a Entry> + 'a {
        self.granted
            .iter()
            .filter(move |e| !Self::same(&e.owner, owner) && conflicts(mode, kind, e.mode, e.kind))
    }

    /// Whether each waiting request is for an exclusive record lock, and none waits for a lock of
    /// `owner`. Constant time.
    pub fn all_waiting_exclude(&self, owner: &Arc<LockOwner>) -> bool {
        let all = |w: &Waiting| w.exclusive == w.requests.len();
        self.waiting.as_deref().is_none_or(all) && !self.has_granted(owner)
    }

    /// Whether the newest request, which is `owner`'s, leads to the holders only. Answers without a
    /// look at the other requests; false where it cannot tell.
    pub fn newest_leads_to_holders(
        &self,
        owner: &Arc<LockOwner>,
        mode: LockMode,
        kind: LockKind,
    ) -> bool {
        let exclusive = mode == LockMode::X && covers_record(kind);
        self.waiting().len() == 1 || exclusive && self.all_waiting_exclude(owner)
    }

    /// Whether a request waits for a lock that `owner` has been granted.
    fn waits_for_owner(&self, waiting: &Entry, owner: &Arc<LockOwner>) -> bool {
        self.granted.iter().any(|e| {
            Self::same(&e.owner, owner) && conflicts(waiting.mode, waiting.kind, e.mode, e.kind)
        })
    }

    /// The position among the waiting requests of the one that `waiter` belongs to, if it still
    /// waits.
    pub fn position(&self, waiter: &Arc<Waiter>) -> Option<usize> {
        let number = |e: &Entry| e.waiter.as_ref().map_or(0, |w| w.number);
        let waiting = self.waiting();
        let at = waiting.binary_search_by_key(&waiter.number, number).ok()?;
        let found = waiting[at].waiter.as_ref();
        found.is_some_and(|w| Arc::ptr_eq(w, waiter)).then_some(at)
    }

    /// The position of the waiting request that is granted next: an urgent one, or the first
    /// without a blocker.
    fn next_to_grant(&self) -> Option<usize> {
        let waiting = self.waiting.as_ref()?;
        if self.all_wait_for_one_record_lock(waiting) {
            return None;
        }
        let urgent = self.next_urgent(waiting);
        urgent.or_else(|| self.first_without_blocker(waiting))
    }

    fn first_without_blocker(&self, waiting: &Waiting) -> Option<usize> {
        (0..waiting.requests.len()).find(|&at| {
            let e = &waiting.requests[at];
            self.blockers(&e.owner, e.mode, e.kind, at).next().is_none()
        })
    }

    /// The position of the urgent request that is granted next, if there is one. Of those that no
    /// granted lock blocks, it is the one for whose owner the most requests wait. An insert
    /// intention never passes others: it holds nothing once it is granted, so the insert would wait
    /// for the passed requests after all.
    fn next_urgent(&self, waiting: &Waiting) -> Option<usize> {
        if waiting.urgent == 0 || waiting.passes >= PASSES_FACTOR * waiting.requests.len() {
            return None;
        }
        let (mut best, mut most) = (None, 0);
        for (at, e) in waiting.requests.iter().enumerate() {
            if !e.urgent || !covers_record(e.kind) {
                continue;
            }
            let waiters = e.owner.waiters();
            if waiters > most && self.holders(&e.owner, e.mode, e.kind).next().is_none() {
                (best, most) = (Some(at), waiters);
            }
        }
        let at = best?;
        let e = &waiting.requests[at];
        let mut before = self.blockers(&e.owner, e.mode, e.kind, at);
        let can_pass = before.all(|b| !b.urgent || b.owner.waiters() < most);
        can_pass.then_some(at)
    }

    /// The holder of an exclusive record lock blocks every request but insert intentions and its
    /// own. Answers without a look at the requests; false where it cannot tell.
    fn all_wait_for_one_record_lock(&self, waiting: &Waiting) -> bool {
        let holder = self.granted.iter().find(|e| e.excludes_all_records());
        waiting.inserts == 0 && holder.is_some_and(|e| e.owner.state.lock().waiting.is_none())
    }

    /// L1 and L2, for assertions and tests. Quadratic.
    pub fn check(&self) -> Result<(), &'static str> {
        for e in &self.granted {
            let clash = |o: &Entry| {
                !Self::same(&o.owner, &e.owner) && conflicts(e.mode, e.kind, o.mode, o.kind)
            };
            if e.kind == LockKind::InsertIntention || self.granted.iter().any(clash) {
                return Err("L1: conflicting locks are granted");
            }
        }
        for (at, e) in self.waiting().iter().enumerate() {
            if self.blockers(&e.owner, e.mode, e.kind, at).next().is_none() {
                return Err("L2: a request waits, and no other blocks it");
            }
        }
        Ok(())
    }
}
