//! Detects deadlocks that involve user-level locks.
//!
//! # Picture
//! ```text
//!  session 7 ── GET_LOCK('jobs') ──▶ session 9 ── row lock ──▶ session 12 ── metadata lock ──▶ session 7
//! ```
//! A session waits for a user-level lock, a metadata lock or a row lock, each of which names the
//! sessions that hold it. The lock table itself finds cycles of row locks; metadata locks alone
//! cause no cycle.
//!
//! # Invariants
//! C1. All waits of a reported cycle existed at the same time. The search reads one wait after the
//!     other, so it reads a cycle twice: a wait that was seen both times existed in between.
//!
//! # Concurrency
//! One search at a time, so that a cycle has only one victim.
//!
//! # Cost
//! Only waiting sessions search, and only if a session waits for a user-level lock.

use nfold_catalog::SessionWait;
use rustc_hash::FxHashSet;

use super::ServerState;

/// The kind of lock that a session waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LockType {
    User,
    Metadata,
    Row,
}

/// A session in a path of waits.
#[derive(Clone)]
struct Member {
    session: u64,
    lock: LockType,
    wait: SessionWait,
}

fn wait_of(server: &ServerState, session: u64) -> Option<Member> {
    let catalog = server.engine.catalog();
    let member = |lock| {
        move |wait| Member {
            session,
            lock,
            wait,
        }
    };
    let user = catalog.user_locks().wait_of(session);
    user.map(member(LockType::User))
        .or_else(|| {
            let wait = catalog.mdl().wait_of(session);
            wait.map(member(LockType::Metadata))
        })
        .or_else(|| {
            let wait = server.engine.row_lock_wait_of(session);
            wait.map(member(LockType::Row))
        })
}

/// Breaks every cycle through `session`, which is waiting. The victim is chosen as in MySQL: first
/// a reader or writer that waits for a metadata lock, then `session`, never DDL.
pub(crate) fn break_deadlocks(server: &ServerState, session: u64) {
    let _search = server.deadlock_search.lock();
    while let Some(cycle) = find_cycle(server, session) {
        if !cycle.iter().any(|m| m.lock == LockType::User) {
            return;
        }
        if is_cycle(server, &cycle) {
            sacrifice_one(server, &cycle);
        }
    }
}

/// The members of a cycle through `session`, which comes first.
fn find_cycle(server: &ServerState, session: u64) -> Option<Vec<Member>> {
    // The members in order of discovery, each with the index of the one that waits for it.
    let mut seen = vec![(wait_of(server, session)?, 0)];
    let mut entered = FxHashSet::from_iter([session]);
    let mut at = 0;
    while at < seen.len() {
        for blocker in seen[at].0.wait.blockers.clone() {
            if blocker == session {
                return Some(path_to(&seen, at));
            }
            if entered.insert(blocker)
                && let Some(member) = wait_of(server, blocker)
            {
                seen.push((member, at));
            }
        }
        at += 1;
    }
    None
}

fn path_to(seen: &[(Member, usize)], mut at: usize) -> Vec<Member> {
    let mut path = vec![seen[at].0.clone()];
    while at != 0 {
        at = seen[at].1;
        path.push(seen[at].0.clone());
    }
    path.reverse();
    path
}

/// Whether each member still waits in the same way for the next one (C1).
fn is_cycle(server: &ServerState, cycle: &[Member]) -> bool {
    cycle.iter().enumerate().all(|(n, member)| {
        let next = cycle[(n + 1) % cycle.len()].session;
        wait_of(server, member.session).is_some_and(|now| {
            now.wait.since == member.wait.since && now.wait.blockers.contains(&next)
        })
    })
}

/// Ends the wait of one member.
fn sacrifice_one(server: &ServerState, cycle: &[Member]) {
    let catalog = server.engine.catalog();
    let (mdl, user_locks) = (catalog.mdl(), catalog.user_locks());
    let mut of_tables = cycle.iter().filter(|m| m.lock == LockType::Metadata);
    if of_tables.any(|m| mdl.sacrifice(m.session, m.wait.since)) {
        return;
    }
    // The searching session comes first, so it is the victim among equals.
    if let Some(m) = cycle.iter().find(|m| m.lock == LockType::User) {
        user_locks.sacrifice(m.session, m.wait.since);
    }
}
