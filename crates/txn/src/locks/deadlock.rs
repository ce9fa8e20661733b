//! Finding cycles in the waits-for graph.

use super::DeadlockInfo;
use super::owner::LockOwner;
use super::table::LockTable;
use rustc_hash::FxHashSet;
use std::sync::Arc;
use std::time::SystemTime;

impl LockTable {
    /// Called after `start` was queued. Breaks every cycle through it; gives whether `start` itself was sacrificed.
    pub(super) fn break_deadlocks(&self, start: &Arc<LockOwner>) -> bool {
        let _detector = self.detector.lock();
        while let Some(cycle) = self.find_cycle(start) {
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

    /// A shortest path of waits from `start` back to it, `start` first: with fewer members, fewer are sacrificed in vain.
    fn find_cycle(&self, start: &Arc<LockOwner>) -> Option<Vec<Arc<LockOwner>>> {
        // Breadth first; `from` is the position in `seen` of the one who waits.
        let mut seen: Vec<(Arc<LockOwner>, usize)> = vec![(start.clone(), 0)];
        let mut entered = FxHashSet::default();
        entered.insert(Arc::as_ptr(start));
        let mut at = 0;
        while at < seen.len() {
            for next in self.blockers_of(&seen[at].0) {
                if Arc::ptr_eq(&next, start) {
                    return Some(Self::path_to(&seen, at));
                }
                if entered.insert(Arc::as_ptr(&next)) {
                    seen.push((next, at));
                }
            }
            at += 1;
        }
        None
    }

    fn path_to(seen: &[(Arc<LockOwner>, usize)], mut at: usize) -> Vec<Arc<LockOwner>> {
        let mut path = vec![seen[at].0.clone()];
        while at != 0 {
            at = seen[at].1;
            path.push(seen[at].0.clone());
        }
        path.reverse();
        path
    }
}
