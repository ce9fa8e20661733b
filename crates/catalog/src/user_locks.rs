//! User-level locks: the named locks of GET_LOCK, RELEASE_LOCK and their kin.
//!
//! # Picture
//! ```text
//!  registry (one mutex)                              session 7: held  {"jobs": 2 times, "mail": once}
//!    "jobs" → owner 7, waiting [session 9, session 12]
//!    "mail" → owner 7, waiting []                    session 9: one UserLockWait, a future
//! ```
//!
//! # Invariants
//! U1. A lock is in the registry if and only if a session owns it, and that session's `held` names
//!     it.
//! U2. A session waits for at most one lock. A lock that is released goes to the session that waits
//!     longest.
//! U3. A granted wait that its session drops without [`UserLockWait::adopt`] releases the lock
//!     again.
//!
//! # Concurrency
//! The registry's mutex protects owners and queues. `held` belongs to its session alone. A waiter's
//! state is written under the registry's mutex, and its waker is called after that is released.
//!
//! # Cost
//! Statements and sessions that use no user-level lock never touch the registry. Taking and
//! releasing a lock takes the same time however many locks the session holds.
//!
//! # Not here
//! Deadlocks also pass through row locks and metadata locks. The server searches for them, by
//! [`UserLocks::wait_of`].

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use crate::mdl::SessionWait;

/// The state of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserLockOutcome {
    Waiting,
    Granted,
    /// Chosen as a deadlock's victim: error 3058.
    Deadlock,
}

struct WaiterState {
    outcome: UserLockOutcome,
    waker: Option<Waker>,
}

struct Waiter {
    session: u64,
    since: Instant,
    state: Mutex<WaiterState>,
}

impl Waiter {
    /// Sets how the wait ended; the caller wakes the session once the registry's mutex is released.
    fn end(&self, outcome: UserLockOutcome) -> Option<Waker> {
        let mut state = self.state.lock();
        state.outcome = outcome;
        state.waker.take()
    }
}

struct Lock {
    owner: u64,
    waiting: VecDeque<Arc<Waiter>>,
}

#[derive(Default)]
struct Inner {
    locks: FxHashMap<Arc<str>, Lock>,
    /// Which lock a session waits for.
    waits: FxHashMap<u64, Arc<str>>,
}

impl Inner {
    /// The owner gives the lock up: it goes to the first waiting session (U2).
    fn release(&mut self, name: &str) -> Option<Waker> {
        let lock = self.locks.get_mut(name)?;
        let Some(next) = lock.waiting.pop_front() else {
            self.locks.remove(name);
            return None;
        };
        lock.owner = next.session;
        self.waits.remove(&next.session);
        next.end(UserLockOutcome::Granted)
    }
}

/// One user-level lock as `performance_schema.metadata_locks` shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserLockInfo {
    pub name: Arc<str>,
    pub session: u64,
    pub granted: bool,
}

/// All user-level locks of one server.
#[derive(Default)]
pub struct UserLocks(Mutex<Inner>);

impl UserLocks {
    /// The session that owns the lock.
    pub fn owner(&self, name: &str) -> Option<u64> {
        self.0.lock().locks.get(name).map(|lock| lock.owner)
    }

    /// All locks and the requests that wait for them, by name.
    pub fn list(&self) -> Vec<UserLockInfo> {
        let inner = self.0.lock();
        let mut out = Vec::new();
        for (name, lock) in &inner.locks {
            let mut add = |session, granted| {
                let name = name.clone();
                out.push(UserLockInfo {
                    name,
                    session,
                    granted,
                });
            };
            add(lock.owner, true);
            lock.waiting.iter().for_each(|w| add(w.session, false));
        }
        // A stable sort: waiting requests stay in their order.
        out.sort_by(|a, b| a.name.cmp(&b.name));
        out
    }

    /// Whether any session waits for a user-level lock.
    pub fn any_waiting(&self) -> bool {
        !self.0.lock().waits.is_empty()
    }

    /// The session's wait for a user-level lock. It leads to the owner alone: sessions before it in
    /// the queue wait for that, too.
    pub fn wait_of(&self, session: u64) -> Option<SessionWait> {
        let inner = self.0.lock();
        let lock = inner.locks.get(inner.waits.get(&session)?)?;
        let waiter = lock.waiting.iter().find(|w| w.session == session)?;
        Some(SessionWait {
            since: waiter.since,
            blockers: vec![lock.owner],
        })
    }

    /// Makes the session's wait that began at `since` fail with a deadlock; false if that wait is
    /// over.
    pub fn sacrifice(&self, session: u64, since: Instant) -> bool {
        let mut inner = self.0.lock();
        let Some(name) = inner.waits.get(&session).cloned() else {
            return false;
        };
        let found = inner.locks.get_mut(&name).and_then(|lock| {
            let is_victim = |w: &Arc<Waiter>| w.session == session && w.since == since;
            let at = lock.waiting.iter().position(is_victim)?;
            lock.waiting.remove(at)
        });
        let Some(victim) = found else {
            return false;
        };
        inner.waits.remove(&session);
        let waker = victim.end(UserLockOutcome::Deadlock);
        drop(inner);
        wake(waker);
        true
    }
}

fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}

/// The user-level locks of one session; dropping it releases them. All its methods are called by
/// that session alone.
pub struct UserLockSession {
    registry: Arc<UserLocks>,
    session: u64,
    /// Locks with the number of times that each was taken.
    held: RefCell<FxHashMap<Arc<str>, u64>>,
}

impl UserLockSession {
    /// Of the session `session`, which holds none.
    pub fn new(registry: Arc<UserLocks>, session: u64) -> UserLockSession {
        UserLockSession {
            registry,
            session,
            held: RefCell::default(),
        }
    }

    /// The locks of all sessions.
    pub fn registry(&self) -> &Arc<UserLocks> {
        &self.registry
    }

    /// Takes a lock, or queues for it: then the wait for it is returned.
    pub fn lock(&self, name: &str) -> Option<UserLockWait> {
        let mut held = self.held.borrow_mut();
        if let Some(count) = held.get_mut(name) {
            *count += 1;
            return None;
        }
        let mut inner = self.registry.0.lock();
        let name: Arc<str> = name.into();
        let Some(lock) = inner.locks.get_mut(&name) else {
            let lock = Lock {
                owner: self.session,
                waiting: VecDeque::new(),
            };
            inner.locks.insert(name.clone(), lock);
            held.insert(name, 1);
            return None;
        };
        let waiter = Arc::new(Waiter {
            session: self.session,
            since: Instant::now(),
            state: Mutex::new(WaiterState {
                outcome: UserLockOutcome::Waiting,
                waker: None,
            }),
        });
        lock.waiting.push_back(waiter.clone());
        inner.waits.insert(self.session, name.clone());
        Some(UserLockWait {
            registry: self.registry.clone(),
            name,
            waiter,
            adopted: false,
        })
    }

    /// Releases a lock once; `None` if the session does not hold it.
    pub fn release(&self, name: &str) -> Option<()> {
        let mut held = self.held.borrow_mut();
        let count = held.get_mut(name)?;
        *count -= 1;
        if *count == 0 {
            held.remove(name);
            let waker = self.registry.0.lock().release(name);
            wake(waker);
        }
        Some(())
    }

    /// Releases all locks. Returns how many times they had been taken.
    pub fn release_all(&self) -> u64 {
        let held = std::mem::take(&mut *self.held.borrow_mut());
        for name in held.keys() {
            let waker = self.registry.0.lock().release(name);
            wake(waker);
        }
        held.values().sum()
    }
}

impl Drop for UserLockSession {
    fn drop(&mut self) {
        self.release_all();
    }
}

/// A queued request for a lock. It is ready when [`Self::outcome`] is no longer `Waiting`. Dropping
/// it leaves the queue (U3).
pub struct UserLockWait {
    registry: Arc<UserLocks>,
    name: Arc<str>,
    waiter: Arc<Waiter>,
    adopted: bool,
}

impl UserLockWait {
    pub fn outcome(&self) -> UserLockOutcome {
        self.waiter.state.lock().outcome
    }

    /// Whether the session is the first that waits for its lock.
    pub fn is_first(&self) -> bool {
        let inner = self.registry.0.lock();
        let lock = inner.locks.get(&self.name);
        lock.and_then(|l| l.waiting.front())
            .is_some_and(|first| Arc::ptr_eq(first, &self.waiter))
    }

    /// The granted lock becomes one of the session's.
    pub fn adopt(mut self, session: &UserLockSession) {
        debug_assert_eq!(self.outcome(), UserLockOutcome::Granted);
        self.adopted = true;
        session.held.borrow_mut().insert(self.name.clone(), 1);
    }
}

impl Future for UserLockWait {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.waiter.state.lock();
        if state.outcome != UserLockOutcome::Waiting {
            return Poll::Ready(());
        }
        state.waker = Some(context.waker().clone());
        Poll::Pending
    }
}

impl Drop for UserLockWait {
    fn drop(&mut self) {
        if self.adopted {
            return;
        }
        let mut inner = self.registry.0.lock();
        let outcome = self.waiter.state.lock().outcome;
        let waker = match outcome {
            UserLockOutcome::Waiting => {
                if let Some(lock) = inner.locks.get_mut(&self.name) {
                    lock.waiting.retain(|w| !Arc::ptr_eq(w, &self.waiter));
                }
                inner.waits.remove(&self.waiter.session);
                None
            }
            UserLockOutcome::Granted => inner.release(&self.name),
            UserLockOutcome::Deadlock => None,
        };
        drop(inner);
        wake(waker);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn three() -> (Arc<UserLocks>, [UserLockSession; 3]) {
        let registry = Arc::new(UserLocks::default());
        let session = |n| UserLockSession::new(registry.clone(), n);
        let sessions = [session(1), session(2), session(3)];
        (registry, sessions)
    }

    #[test]
    fn lock_counts_and_passes_in_order() {
        let (registry, [a, b, c]) = three();
        assert!(a.lock("x").is_none() && a.lock("x").is_none());
        let for_b = b.lock("x").unwrap();
        let for_c = c.lock("x").unwrap();
        assert!(for_b.is_first() && !for_c.is_first());
        assert_eq!(b.release("x"), None, "another session holds it");
        a.release("x").unwrap();
        assert_eq!(registry.owner("x"), Some(1), "it was taken twice");
        a.release("x").unwrap();
        assert_eq!(for_b.outcome(), UserLockOutcome::Granted);
        assert_eq!(for_c.outcome(), UserLockOutcome::Waiting);
        for_b.adopt(&b);
        assert_eq!(b.release_all(), 1);
        for_c.adopt(&c);
        drop(c);
        assert_eq!(registry.owner("x"), None);
        assert!(registry.list().is_empty() && !registry.any_waiting());
    }

    #[test]
    fn dropped_wait_leaves_the_queue_or_releases() {
        let (registry, [a, b, c]) = three();
        assert!(a.lock("x").is_none());
        let for_b = b.lock("x").unwrap();
        let for_c = c.lock("x").unwrap();
        let session = |i: &UserLockInfo| (i.session, i.granted);
        let listed: Vec<_> = registry.list().iter().map(session).collect();
        assert_eq!(listed, [(1, true), (2, false), (3, false)]);
        a.release_all();
        drop(for_b); // granted, and not adopted
        assert_eq!(for_c.outcome(), UserLockOutcome::Granted);
        for_c.adopt(&c);
        let for_b = b.lock("x").unwrap();
        drop(for_b);
        drop(c);
        assert!(registry.list().is_empty() && !registry.any_waiting());
    }

    #[test]
    fn sacrifice_ends_one_wait_only() {
        let (registry, [a, b, _c]) = three();
        assert!(a.lock("x").is_none());
        let for_b = b.lock("x").unwrap();
        let wait = registry.wait_of(2).unwrap();
        assert_eq!((wait.blockers, registry.wait_of(1)), (vec![1], None));
        assert!(registry.sacrifice(2, wait.since));
        assert!(!registry.sacrifice(2, wait.since));
        assert_eq!(for_b.outcome(), UserLockOutcome::Deadlock);
        drop(for_b);
        let again = b.lock("x").unwrap();
        assert!(!registry.sacrifice(2, wait.since), "another wait");
        a.release_all();
        assert_eq!(again.outcome(), UserLockOutcome::Granted);
    }
}
