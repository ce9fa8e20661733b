//! Finding cycles in the waits-for graph.
//!
//! # Picture
//! ```text
//!  one queue:   granted: A (X)    waiting: B (X)  C (X)  D (X)
//!  all edges:   B→A   C→A C→B   D→A D→B D→C          quadratic in the length of the queue
//!  walked:      D→A                                  B and C lead to A, too, and nowhere else
//! ```
//! Everything that blocks an earlier request also blocks a request for an exclusive record lock
//! that conflicts with all earlier ones. The earlier owners wait in this queue only, since an owner
//! waits for one lock (L3). So the search continues from the holders alone: it has *covered* the
//! waiting requests.
//!
//! # Invariants
//! - D1: all waits of a reported cycle exist at one time. The search reads one queue after the
//!   other, so it may combine waits that never existed together. A cycle is therefore read again
//!   before a member is sacrificed: a wait that is seen both times existed in between.
//! - D2: a cycle that exists when its last member begins to wait is found by that member's search.
//!   A member marks itself as waiting before it looks at its blockers, so the last one sees that
//!   all others wait.
//!
//! # Cost
//! One pass over the waiting requests of each queue that the search reaches; no pass where all of
//! them are for exclusive record locks, as on a hot row. Memory grows with the owners that the
//! search enters.

use super::DeadlockInfo;
use super::owner::LockOwner;
use super::queue::{Entry, Queue};
use super::queue_key::QueueKey;
use super::table::LockTable;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;
use std::time::SystemTime;

impl LockTable {
    /// Called after `start` was queued. Breaks every cycle through it; returns whether `start`
    /// itself was sacrificed.
    pub(super) fn break_deadlocks(&self, start: &Arc<LockOwner>) -> bool {
        let _detector = self.detector.lock();
        while let Some(cycle) = Search::new(self, start).find_cycle() {
            if !self.is_cycle(&cycle) {
                continue;
            }
            self.count_deadlock();
            // `start` is first, so it is the one among equals.
            let victim = cycle
                .iter()
                .min_by_key(|o| o.weight())
                .expect("a cycle has members");
            self.report(&cycle, victim);
            self.sacrifice(victim);
            if Arc::ptr_eq(victim, start) {
                return true;
            }
        }
        false
    }

    /// Whether each member still waits for the next one (D1).
    fn is_cycle(&self, cycle: &[Arc<LockOwner>]) -> bool {
        cycle.iter().enumerate().all(|(n, member)| {
            let next = &cycle[(n + 1) % cycle.len()];
            self.wait_between(member, next).is_some()
        })
    }

    /// Keeps a picture of the cycle for SHOW ENGINE INNODB STATUS.
    fn report(&self, cycle: &[Arc<LockOwner>], victim: &Arc<LockOwner>) {
        let members = cycle.iter().enumerate().map(|(n, member)| {
            let next = &cycle[(n + 1) % cycle.len()];
            (member.info(), self.wait_between(member, next))
        });
        *self.last_deadlock.lock() = Some(DeadlockInfo {
            at: SystemTime::now(),
            members: members.collect(),
            victim: cycle
                .iter()
                .position(|o| Arc::ptr_eq(o, victim))
                .unwrap_or_default(),
        });
    }
}

/// One breadth-first search for a cycle through `start`.
pub(super) struct Search<'t> {
    table: &'t LockTable,
    start: Arc<LockOwner>,
    /// Owners in the order of their discovery, each with the position of the owner that waits for
    /// it.
    seen: Vec<(Arc<LockOwner>, usize)>,
    entered: FxHashSet<*const LockOwner>,
    /// By queue: requests up to this number need no visit.
    covered: FxHashMap<QueueKey, u64>,
    /// Entries of queues that were looked at: the cost of the search.
    pub entries_visited: usize,
}

impl<'t> Search<'t> {
    pub fn new(table: &'t LockTable, start: &Arc<LockOwner>) -> Self {
        Search {
            table,
            start: start.clone(),
            seen: vec![(start.clone(), 0)],
            entered: FxHashSet::from_iter([Arc::as_ptr(start)]),
            covered: FxHashMap::default(),
            entries_visited: 0,
        }
    }

    /// A shortest path of waits from `start` back to it, `start` first: the fewer members, the
    /// fewer are sacrificed in vain.
    pub fn find_cycle(&mut self) -> Option<Vec<Arc<LockOwner>>> {
        let mut at = 0;
        while at < self.seen.len() {
            let waiting = self.seen[at].0.clone();
            if self.enter_blockers(&waiting, at) {
                return Some(self.path_to(at));
            }
            at += 1;
        }
        None
    }

    /// Enters the owners that `waiting` waits for; returns whether `start` is one of them.
    fn enter_blockers(&mut self, waiting: &Arc<LockOwner>, from: usize) -> bool {
        let Some((place, waiter)) = waiting.state.lock().waiting.clone() else {
            return false;
        };
        if self
            .covered
            .get(&place.key)
            .is_some_and(|c| waiter.number <= *c)
        {
            return false;
        }
        let shard = self.table.shards[place.shard as usize].lock();
        let Some(queue) = shard.get(&place.key) else {
            return false;
        };
        let Some(position) = queue.position(&waiter) else {
            return false;
        };
        let request = &queue.waiting()[position];
        let (owner, mode, kind) = (&request.owner, request.mode, request.kind);
        self.entries_visited += queue.granted().len();
        if self.covers_those_before(queue, request, position) {
            self.covered.insert(place.key.clone(), waiter.number);
            self.enter(queue.holders(owner, mode, kind), from)
        } else {
            // The nearest first: it may cover the others.
            let blockers: Vec<&Entry> = queue.blockers(owner, mode, kind, position).collect();
            self.enter(blockers.into_iter().rev(), from)
        }
    }

    /// Whether all blockers of the waiting requests before `position` also block `request` there:
    /// it requests an exclusive record lock, and each of those requests blocks it.
    ///
    /// Those requests are for record locks. They wait for record locks or requests for them, which
    /// all conflict with an exclusive record lock. The exceptions are locks of the request's own
    /// owner: a request that waits for one of them does not block it.
    fn covers_those_before(&mut self, queue: &Queue, request: &Entry, position: usize) -> bool {
        if request.excludes_all_records() && queue.all_waiting_exclude(&request.owner) {
            return true;
        }
        self.entries_visited += position;
        let blockers = queue.blockers(&request.owner, request.mode, request.kind, position);
        request.excludes_all_records()
            && blockers.filter(|b| b.waiter.is_some()).count() == position
    }

    fn enter<'e>(&mut self, blockers: impl Iterator<Item = &'e Entry>, from: usize) -> bool {
        for blocker in blockers {
            if Arc::ptr_eq(&blocker.owner, &self.start) {
                return true;
            }
            if self.entered.insert(Arc::as_ptr(&blocker.owner)) {
                self.seen.push((blocker.owner.clone(), from));
            }
        }
        false
    }

    fn path_to(&self, mut at: usize) -> Vec<Arc<LockOwner>> {
        let mut path = vec![self.seen[at].0.clone()];
        while at != 0 {
            at = self.seen[at].1;
            path.push(self.seen[at].0.clone());
        }
        path.reverse();
        path
    }
}
