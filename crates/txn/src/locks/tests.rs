//! Scenes with known answers, a random walk against a naive model, and threads.

use super::table::encode;
use super::*;
use crate::error::TxnError;
use nfold_store::{Stop, Wait};
use proptest::prelude::*;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};

const K: LockKey<'static> = LockKey::Key(b"k");
const N: LockKey<'static> = LockKey::Key(b"n");

fn table() -> Arc<LockTable> {
    LockTable::new()
}

fn owner(n: u64) -> Arc<LockOwner> {
    LockOwner::new(n, true)
}

fn ask(mode: LockMode, kind: LockKind, key: LockKey<'static>) -> LockRequest<'static> {
    LockRequest::new(1, key, mode, kind)
}

fn x(key: LockKey<'static>) -> LockRequest<'static> {
    ask(LockMode::X, LockKind::Record, key)
}

fn s(key: LockKey<'static>) -> LockRequest<'static> {
    ask(LockMode::S, LockKind::Record, key)
}

fn ready(wait: &mut Wait) -> bool {
    let mut context = Context::from_waker(Waker::noop());
    Pin::new(wait).poll(&mut context) == Poll::Ready(())
}

#[track_caller]
fn waits(result: Result<Locked, Stop<TxnError>>) -> Wait {
    match result {
        Err(Stop::Wait(mut wait)) => {
            assert!(!ready(&mut wait), "waits");
            wait
        }
        other => panic!("expected a wait, got {other:?}"),
    }
}

#[track_caller]
fn fails(result: Result<Locked, Stop<TxnError>>) -> TxnError {
    match result {
        Err(Stop::Error(e)) => e,
        other => panic!("expected an error, got {other:?}"),
    }
}

#[track_caller]
fn gets(result: Result<Locked, Stop<TxnError>>) -> Locked {
    match result {
        Ok(locked) => locked,
        other => panic!("expected the lock, got {other:?}"),
    }
}

#[test]
fn readers_share_and_a_writer_waits_its_turn() {
    let t = table();
    let (a, b, c, d) = (owner(1), owner(2), owner(3), owner(4));
    assert_eq!(gets(t.lock(&a, &s(K))), Locked::New);
    assert_eq!(gets(t.lock(&a, &s(K))), Locked::Held);
    assert_eq!(gets(t.lock(&b, &s(K))), Locked::New);
    let mut wc = waits(t.lock(&c, &x(K)));
    let mut wd = waits(t.lock(&d, &s(K)));
    assert_eq!(
        fails(t.lock(&owner(5), &s(K).on_conflict(OnConflict::NoWait))),
        TxnError::LockNotAvailable
    );
    assert_eq!(
        gets(t.lock(&owner(6), &s(K).on_conflict(OnConflict::Skip))),
        Locked::Skipped
    );
    assert_eq!(t.waits().len(), 3, "c for a and b, d for c");
    t.release_all(&a);
    assert!(!ready(&mut wc));
    t.release_all(&b);
    assert!(ready(&mut wc) && !ready(&mut wd));
    assert_eq!(gets(t.lock(&c, &x(K))), Locked::Held);
    t.release_all(&c);
    assert!(ready(&mut wd));
    t.release_all(&d);
    assert!(t.locks().is_empty());
}

#[test]
fn dropping_the_wait_leaves_the_queue() {
    let t = table();
    let (a, b, c) = (owner(1), owner(2), owner(3));
    gets(t.lock(&a, &s(K)));
    let wb = waits(t.lock(&b, &x(K)));
    let mut wc = waits(t.lock(&c, &s(K)));
    drop(wb);
    assert!(ready(&mut wc), "only b stood before c");
    assert_eq!(t.status().waiting, 0);
    assert_eq!(t.locks().len(), 2);
}

#[test]
fn an_upgrade_passes_those_who_wait_for_it() {
    let t = table();
    let (a, b) = (owner(1), owner(2));
    gets(t.lock(&a, &s(K)));
    let mut wb = waits(t.lock(&b, &x(K)));
    assert_eq!(
        gets(t.lock(&a, &x(K))),
        Locked::New,
        "b waits for a: no deadlock here"
    );
    t.release_all(&a);
    assert!(ready(&mut wb));
}

#[test]
fn gaps_stop_inserts_only() {
    let t = table();
    let (a, b, c) = (owner(1), owner(2), owner(3));
    let insert = ask(LockMode::X, LockKind::InsertIntention, N);
    gets(t.lock(&a, &ask(LockMode::X, LockKind::Gap, N)));
    gets(t.lock(&b, &ask(LockMode::X, LockKind::Gap, N)));
    gets(t.lock(&c, &x(N)));
    let mut wc = waits(t.lock(&c, &insert));
    t.release_all(&a);
    assert!(!ready(&mut wc));
    t.release_all(&b);
    assert!(ready(&mut wc));
    assert_eq!(gets(t.lock(&c, &insert)), Locked::New);
    assert_eq!(t.locks().len(), 1, "an intention leaves no entry");
    gets(t.lock(&c, &ask(LockMode::X, LockKind::NextKey, LockKey::Supremum)));
    assert!(
        t.locks()
            .iter()
            .any(|l| l.key.is_none() && l.kind == LockKind::Gap),
        "the supremum has a gap only"
    );
    gets(t.lock(
        &a_new(),
        &ask(LockMode::X, LockKind::Record, LockKey::Supremum),
    ));
}

fn a_new() -> Arc<LockOwner> {
    owner(9)
}

#[test]
fn gaps_are_inherited() {
    let t = table();
    let (a, b) = (owner(1), owner(2));
    gets(t.lock(&a, &ask(LockMode::S, LockKind::NextKey, N)));
    gets(t.lock(&a, &x(N)));
    t.inherit_on_insert(1, [&b"m"[..]], N);
    let m = LockKey::Key(b"m");
    let insert = ask(LockMode::X, LockKind::InsertIntention, m);
    let wait = waits(t.lock(&b, &insert));
    drop(wait);
    assert_eq!(
        gets(t.lock(&b, &x(m))),
        Locked::New,
        "the gap is locked, not the record"
    );
    // Purge removes n: a's lock on it becomes one on the gap before the supremum, and owners that
    // waited for n try again.
    let c = owner(3);
    let mut wc = waits(t.lock(&c, &s(N)));
    t.inherit_on_remove(1, b"n", LockKey::Supremum);
    assert!(ready(&mut wc));
    assert_eq!(gets(t.lock(&c, &s(N))), Locked::New);
    waits(t.lock(
        &b,
        &ask(LockMode::X, LockKind::InsertIntention, LockKey::Supremum),
    ));
    t.release_all(&a);
    // What c waited for has become a lock on the gap, too.
    waits(t.lock(
        &b,
        &ask(LockMode::X, LockKind::InsertIntention, LockKey::Supremum),
    ));
    t.release_all(&c);
    gets(t.lock(
        &b,
        &ask(LockMode::X, LockKind::InsertIntention, LockKey::Supremum),
    ));
    t.check().unwrap();
}

#[test]
fn an_implicit_lock_is_waited_for() {
    let t = table();
    let (a, b) = (owner(1), owner(2));
    t.register(&a, 77);
    assert_eq!(gets(t.lock(&a, &x(K).becomes_implicit())), Locked::New);
    assert!(t.locks().is_empty(), "the row itself says it");
    let mut wb = waits(t.lock(&b, &s(K).implicit_holder(Some(77))));
    t.release_all(&a);
    assert!(ready(&mut wb));
    gets(t.lock(&b, &s(K).implicit_holder(Some(77))));
    // Another owner's lock proves that the implicit holder was read from an outdated row.
    let c = owner(3);
    t.register(&c, 78);
    gets(t.lock(&owner(4), &s(K).implicit_holder(Some(78))));
    t.check().unwrap();
}

/// An owner that holds `K` and waits for `N` behind `before` others, and those others.
fn behind_others(
    t: &Arc<LockTable>,
    holder: &Arc<LockOwner>,
    before: u64,
) -> (Vec<Wait>, Arc<LockOwner>, Wait) {
    gets(t.lock(holder, &x(N)));
    let others = (10..10 + before).map(|n| waits(t.lock(&owner(n), &x(N))));
    let others = others.collect();
    let last = owner(2);
    gets(t.lock(&last, &x(K)));
    let wait = waits(t.lock(&last, &x(N)));
    (others, last, wait)
}

#[test]
fn who_holds_others_up_is_served_first() {
    let (t, a, b) = (table(), owner(1), owner(3));
    let (mut others, last, mut wait) = behind_others(&t, &a, 2);
    // The request is urgent only after it began to wait.
    let mut behind = waits(t.lock(&b, &x(K)));
    t.release_all(&a);
    assert!(ready(&mut wait));
    assert!(!others.iter_mut().any(ready));
    t.release_all(&last);
    assert!(ready(&mut behind));
    assert_eq!(
        others.iter_mut().map(ready).collect::<Vec<_>>(),
        [true, false]
    );
}

#[test]
fn without_waiters_first_come_is_first_served() {
    let (t, a) = (table(), owner(1));
    let (mut others, _last, mut wait) = behind_others(&t, &a, 2);
    t.release_all(&a);
    assert!(!ready(&mut wait));
    assert_eq!(
        others.iter_mut().map(ready).collect::<Vec<_>>(),
        [true, false]
    );
}

#[test]
fn the_first_request_is_passed_a_limited_number_of_times() {
    let (t, first) = (table(), owner(1));
    let mut holder = owner(2);
    gets(t.lock(&holder, &x(N)));
    let mut wait = waits(t.lock(&first, &x(N)));
    let mut passes = 0;
    while !ready(&mut wait) {
        // An urgent request arrives for each that is granted.
        let (urgent, behind) = (owner(3), owner(4));
        gets(t.lock(&urgent, &x(K)));
        let mut urgent_wait = waits(t.lock(&urgent, &x(N)));
        let _behind = waits(t.lock(&behind, &x(K)));
        t.release_all(&holder);
        passes += usize::from(ready(&mut urgent_wait));
        if passes > 100 {
            panic!("the first request starves");
        }
        if ready(&mut urgent_wait) {
            holder = urgent;
        }
        t.release_all(&behind);
        // Its successor needs the key.
        t.unlock(&holder, 1, b"k", LockMode::X, LockKind::Record);
    }
    // Two requests waited each time.
    assert_eq!(passes, 4);
}

#[test]
fn the_lightest_of_a_cycle_is_sacrificed() {
    let t = table();
    let (a, b, c) = (owner(1), owner(2), owner(3));
    let keys = [K, N, LockKey::Key(b"z")];
    for (o, key) in [(&a, 0), (&b, 1), (&c, 2)] {
        gets(t.lock(o, &x(keys[key])));
    }
    a.set_changes(5);
    b.set_changes(1);
    c.set_changes(3);
    let mut wa = waits(t.lock(&a, &x(keys[1])));
    let mut wb = waits(t.lock(&b, &x(keys[2])));
    let mut wc = waits(t.lock(&c, &x(keys[0])));
    assert!(ready(&mut wb) && b.is_victim() && !ready(&mut wa) && !ready(&mut wc));
    assert_eq!(fails(t.lock(&b, &x(keys[2]))), TxnError::Deadlock);
    t.release_all(&b);
    assert!(ready(&mut wa));
    t.release_all(&a);
    assert!(ready(&mut wc));
    assert_eq!(t.status().deadlocks, 1);
}

#[test]
fn the_requester_is_sacrificed_among_equals() {
    let t = table();
    let (a, b) = (owner(1), owner(2));
    gets(t.lock(&a, &x(K)));
    gets(t.lock(&b, &x(N)));
    let mut wa = waits(t.lock(&a, &x(N)));
    assert_eq!(fails(t.lock(&b, &x(K))), TxnError::Deadlock);
    t.release_all(&b);
    assert!(ready(&mut wa));
}

#[test]
fn one_place_is_released_early() {
    let t = table();
    let (a, b) = (owner(1), owner(2));
    gets(t.lock(&a, &x(K)));
    gets(t.lock(&a, &x(N)));
    let mut wb = waits(t.lock(&b, &x(K)));
    t.unlock(&a, 1, b"k", LockMode::X, LockKind::Record);
    assert!(ready(&mut wb));
    assert_eq!(a.held_count(), 1);
    t.check().unwrap();
}

#[test]
fn a_weaker_lock_stays_when_the_stronger_is_given_up() {
    let t = table();
    let (a, b) = (owner(1), owner(2));
    gets(t.lock(&a, &s(K)));
    gets(t.lock(&a, &x(K)));
    let mut reader = waits(t.lock(&b, &s(K)));
    t.unlock(&a, 1, b"k", LockMode::X, LockKind::Record);
    assert!(ready(&mut reader));
    let mut writer = waits(t.lock(&b, &x(K)));
    assert!(!ready(&mut writer), "the shared lock is still there");
    t.release_all(&a);
    assert!(ready(&mut writer));
}

#[test]
fn many_locks_of_one_sort_weigh_little() {
    let t = table();
    let (reader, writer) = (owner(1), owner(2));
    let keys: Vec<[u8; 4]> = (0..300u32).map(u32::to_be_bytes).collect();
    for key in &keys {
        let ask = LockRequest::new(1, LockKey::Key(key), LockMode::X, LockKind::NextKey);
        gets(t.lock(&reader, &ask));
    }
    writer.set_changes(9);
    gets(t.lock(&writer, &x(N)));
    let mut waiting = waits(t.lock(&reader, &x(N)));
    let own = LockRequest::new(1, LockKey::Key(&keys[0]), LockMode::X, LockKind::Record);
    let _wait = waits(t.lock(&writer, &own));
    assert!(ready(&mut waiting));
    assert!(reader.is_victim(), "300 row locks are a few lock objects");
}

fn in_run(mode: LockMode, key: LockKey<'static>) -> LockRequest<'static> {
    ask(mode, LockKind::NextKey, key).one_of_many(true)
}

const INSERT: LockKind = LockKind::InsertIntention;

#[test]
fn locks_in_a_run_exclude_others() {
    let t = table();
    let (a, b, c) = (owner(1), owner(2), owner(3));
    for key in [K, N] {
        assert_eq!(gets(t.lock(&a, &in_run(LockMode::X, key))), Locked::New);
        assert_eq!(gets(t.lock(&a, &in_run(LockMode::X, key))), Locked::Held);
        assert_eq!(gets(t.lock(&a, &x(key))), Locked::Held);
    }
    let queues = || t.shards.iter().map(|s| s.lock().len()).sum::<usize>();
    assert_eq!((queues(), a.held_count(), t.locks().len()), (0, 2, 2));
    // By a request at the queue, by a run, and by an insert into the gap.
    let mut wb = waits(t.lock(&b, &in_run(LockMode::S, K)));
    let mut wc = waits(t.lock(&c, &ask(LockMode::X, INSERT, N)));
    assert_eq!(t.locks().len(), 4, "a lock in a run and in a queue is one");
    assert!(!ready(&mut wb) && !ready(&mut wc));
    t.release_all(&a);
    assert!(ready(&mut wb) && ready(&mut wc));
    assert_eq!(gets(t.lock(&b, &in_run(LockMode::S, K))), Locked::Held);
    for o in [&b, &c] {
        t.release_all(o);
    }
    assert!(t.locks().is_empty());
}

#[test]
fn runs_of_readers_share_and_those_of_writers_wait() {
    let t = table();
    let (a, b, c) = (owner(1), owner(2), owner(3));
    for o in [&a, &b] {
        assert_eq!(gets(t.lock(o, &in_run(LockMode::S, K))), Locked::New);
    }
    let mut wait = waits(t.lock(&c, &in_run(LockMode::X, K)));
    t.release_all(&a);
    assert!(!ready(&mut wait));
    t.release_all(&b);
    assert!(ready(&mut wait));
    assert_eq!(gets(t.lock(&c, &in_run(LockMode::X, K))), Locked::Held);
}

#[test]
fn a_run_waits_behind_an_earlier_insert() {
    let t = table();
    let (a, b, c) = (owner(1), owner(2), owner(3));
    gets(t.lock(&a, &ask(LockMode::X, LockKind::Gap, N)));
    let mut insert = waits(t.lock(&b, &ask(LockMode::X, INSERT, N)));
    gets(t.lock(&c, &in_run(LockMode::X, N)));
    t.release_all(&a);
    assert!(!ready(&mut insert), "the run covers the gap as well");
    t.release_all(&c);
    assert!(ready(&mut insert));
}

#[test]
fn gaps_of_a_run_are_inherited() {
    let t = table();
    let (a, b) = (owner(1), owner(2));
    for key in [K, N] {
        gets(t.lock(&a, &in_run(LockMode::X, key)));
    }
    t.inherit_on_insert(1, [&b"l"[..]], N);
    let insert = |key| ask(LockMode::X, INSERT, key);
    drop(waits(t.lock(&b, &insert(LockKey::Key(b"l")))));
    t.inherit_on_remove(1, b"n", LockKey::Supremum);
    drop(waits(t.lock(&b, &insert(LockKey::Supremum))));
    gets(t.lock(&b, &x(N)));
    drop(waits(t.lock(&b, &x(K))));
}

#[test]
fn a_lock_in_a_run_is_released_early() {
    let t = table();
    let (a, b) = (owner(1), owner(2));
    for key in [K, LockKey::Key(b"l"), N] {
        gets(t.lock(&a, &in_run(LockMode::X, key)));
    }
    let mut wait = waits(t.lock(&b, &x(K)));
    for key in [&b"k"[..], b"n"] {
        t.unlock(&a, 1, key, LockMode::X, LockKind::NextKey);
    }
    assert!(ready(&mut wait));
    assert_eq!(gets(t.lock(&b, &x(K))), Locked::Held);
    gets(t.lock(&b, &x(N)));
    drop(waits(t.lock(&b, &x(LockKey::Key(b"l")))));
    // The last key can be added again, and so can one that is not above it.
    gets(t.lock(&a, &in_run(LockMode::X, LockKey::Key(b"m"))));
    gets(t.lock(&a, &in_run(LockMode::X, LockKey::Key(b"c"))));
    for key in [b"m", b"c"] {
        drop(waits(t.lock(&b, &x(LockKey::Key(key)))));
    }
}

// The model: a flat list of entries in order of arrival, rules written down pair by pair.

const KEYS: [&[u8]; 3] = [b"a", b"b", b"c"];
const OWNERS: usize = 6;

#[derive(Clone, Debug)]
enum Op {
    Lock {
        owner: usize,
        key: usize,
        exclusive: bool,
        kind: usize,
        in_run: bool,
    },
    Release {
        owner: usize,
    },
    GiveUp {
        owner: usize,
    },
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let lock = (
        0..OWNERS,
        0..KEYS.len(),
        any::<bool>(),
        0..4usize,
        any::<bool>(),
    )
        .prop_map(|(owner, key, exclusive, kind, in_run)| Op::Lock {
            owner,
            key,
            exclusive,
            kind,
            in_run,
        });
    let op = prop_oneof![
        8 => lock,
        1 => (0..OWNERS).prop_map(|owner| Op::Release { owner }),
        1 => (0..OWNERS).prop_map(|owner| Op::GiveUp { owner }),
    ];
    proptest::collection::vec(op, 1..90)
}

const KINDS: [LockKind; 4] = [
    LockKind::Record,
    LockKind::Gap,
    LockKind::NextKey,
    LockKind::InsertIntention,
];

#[derive(Clone, Debug, PartialEq)]
struct Row {
    owner: usize,
    key: usize,
    exclusive: bool,
    kind: usize,
    waiting: bool,
}

#[derive(Clone, Default)]
struct Model {
    rows: Vec<Row>,
    /// By key: how many requests have passed the first one.
    passes: [usize; KEYS.len()],
}

impl Model {
    /// Whether request `a` conflicts with `b`, which another owner has. The table's rows are the
    /// kinds of `a`, its columns those of `b`: record, gap, next-key, insert intention.
    fn clash(a: &Row, b: &Row) -> bool {
        let by_kind = [
            [true, false, true, false],
            [false, false, false, false],
            [true, false, true, false],
            [false, true, true, false],
        ][a.kind][b.kind];
        let modes_matter = a.kind != 3;
        a.owner != b.owner
            && a.key == b.key
            && by_kind
            && (!modes_matter || a.exclusive || b.exclusive)
    }

    fn blockers(&self, at: usize) -> Vec<usize> {
        let me = &self.rows[at];
        let waits_for_me = |b: &Row| {
            self.rows
                .iter()
                .any(|r| r.owner == me.owner && !r.waiting && Self::clash(b, r))
        };
        (0..self.rows.len())
            .filter(|&n| {
                let b = &self.rows[n];
                Self::clash(me, b) && (!b.waiting || (n < at && !waits_for_me(b)))
            })
            .map(|n| self.rows[n].owner)
            .collect()
    }

    /// How many requests wait beside the locks of an owner.
    fn waiters(&self, owner: usize) -> usize {
        let locks = self.rows.iter().filter(|r| r.owner == owner && !r.waiting);
        locks.map(|lock| self.waiting(lock.key).len()).sum()
    }

    /// The requests that wait for a key, in the order of their arrival.
    fn waiting(&self, key: usize) -> Vec<usize> {
        let waits = |n: &usize| self.rows[*n].waiting && self.rows[*n].key == key;
        (0..self.rows.len()).filter(waits).collect()
    }

    /// The request with the most waiters of those that no granted lock blocks, if those before it
    /// that block it have fewer waiters.
    fn next_urgent(&self, key: usize) -> Option<usize> {
        let waiting = self.waiting(key);
        if self.passes[key] >= 2 * waiting.len() {
            return None;
        }
        let weight = |n: usize| self.waiters(self.rows[n].owner);
        let held_up = |n: usize| {
            let me = &self.rows[n];
            self.rows.iter().any(|b| !b.waiting && Self::clash(me, b))
        };
        let free = |n: &usize| {
            let holds_something_then = self.rows[*n].kind != 3;
            weight(*n) > 0 && holds_something_then && !held_up(*n)
        };
        let most = waiting.iter().copied().filter(free).map(weight).max()?;
        let at = waiting
            .iter()
            .copied()
            .find(|n| free(n) && weight(*n) == most)?;
        let lighter = |b: &usize| self.waiters(*b) < most;
        self.blockers(at).iter().all(lighter).then_some(at)
    }

    /// Grants what can be granted on a key that lost an entry.
    fn grant_waiting(&mut self, key: usize) {
        let first = |model: &Self| {
            let mut waiting = model.waiting(key).into_iter();
            waiting.find(|n| model.blockers(*n).is_empty())
        };
        while let Some(at) = self.next_urgent(key).or_else(|| first(self)) {
            self.passes[key] += 1;
            if self.waiting(key)[0] == at {
                self.passes[key] = 0;
            }
            if self.rows[at].kind == 3 {
                self.rows.remove(at);
            } else {
                self.rows[at].waiting = false;
            }
        }
        if self.rows.iter().all(|r| r.key != key) {
            self.passes[key] = 0;
        }
    }

    fn remove_wait(&mut self, owner: usize) {
        let Some(at) = self.rows.iter().position(|r| r.owner == owner && r.waiting) else {
            return;
        };
        let key = self.rows[at].key;
        if self.waiting(key)[0] == at {
            self.passes[key] = 0;
        }
        self.rows.remove(at);
        self.grant_waiting(key);
    }

    fn entries(&self) -> Vec<String> {
        let one = |r: &Row| {
            let mode = if r.exclusive {
                LockMode::X
            } else {
                LockMode::S
            };
            let key = Some(KEYS[r.key].to_vec());
            format!(
                "{:?}",
                (r.owner as u64, key, mode, KINDS[r.kind], !r.waiting)
            )
        };
        let mut out: Vec<_> = self.rows.iter().map(one).collect();
        out.sort();
        out
    }

    fn waits(&self, owner: usize) -> bool {
        self.rows.iter().any(|r| r.owner == owner && r.waiting)
    }

    /// Owners on a cycle with `owner`, by transitive closure.
    fn on_cycle(&self, owner: usize) -> bool {
        let mut reach = [[false; OWNERS]; OWNERS];
        for at in 0..self.rows.len() {
            if self.rows[at].waiting {
                for b in self.blockers(at) {
                    reach[self.rows[at].owner][b] = true;
                }
            }
        }
        for k in 0..OWNERS {
            for i in 0..OWNERS {
                for j in 0..OWNERS {
                    reach[i][j] |= reach[i][k] && reach[k][j];
                }
            }
        }
        reach[owner][owner]
    }

    fn holds(&self, owner: usize, key: usize, exclusive: bool, kind: usize) -> bool {
        let has = |record: bool| {
            self.rows.iter().any(|r| {
                let covers = if record {
                    r.kind == 0 || r.kind == 2
                } else {
                    r.kind == 1 || r.kind == 2
                };
                r.owner == owner
                    && r.key == key
                    && !r.waiting
                    && (r.exclusive || !exclusive)
                    && covers
            })
        };
        [has(true), has(false), has(true) && has(false), false][kind]
    }
}

/// All orders of a few things.
fn orders(of: &[usize]) -> Vec<Vec<usize>> {
    if of.is_empty() {
        return vec![Vec::new()];
    }
    let with_first = |at: usize| {
        let mut rest = of.to_vec();
        let first = rest.remove(at);
        orders(&rest).into_iter().map(move |mut order| {
            order.insert(0, first);
            order
        })
    };
    (0..of.len()).flat_map(with_first).collect()
}

struct Walk {
    table: Arc<LockTable>,
    owners: Vec<Arc<LockOwner>>,
    waits: Vec<Option<Wait>>,
    model: Model,
    generation: u64,
}

impl Walk {
    fn new() -> Walk {
        Walk {
            table: table(),
            owners: (0..OWNERS as u64).map(owner).collect(),
            waits: (0..OWNERS).map(|_| None).collect(),
            model: Model::default(),
            generation: 0,
        }
    }

    fn release(&mut self, o: usize) {
        // Two steps: owners that waited for this request may continue before the owner's locks are
        // released.
        self.waits[o] = None;
        self.model.remove_wait(o);
        let places = self.owners[o].state.lock().held.clone();
        self.table.release_all(&self.owners[o]);
        let queue = |key: usize| encode(1, LockKey::Key(KEYS[key]));
        for place in &places {
            let key = (0..KEYS.len()).find(|k| queue(*k)[..] == place.key[..]);
            let key = key.expect("a key of the test");
            self.model.rows.retain(|r| r.owner != o || r.key != key);
            self.model.grant_waiting(key);
        }
        // No request waits beside a lock in a run.
        self.model.rows.retain(|r| r.owner != o);
        self.generation += 1;
        self.owners[o] = owner(o as u64);
    }

    fn lock(&mut self, o: usize, (key, exclusive, kind): (usize, bool, usize), in_run: bool) {
        if self.owners[o].is_victim() {
            return self.release(o);
        }
        if self.model.waits(o) {
            return;
        }
        let mode = if exclusive { LockMode::X } else { LockMode::S };
        let request =
            LockRequest::new(1, LockKey::Key(KEYS[key]), mode, KINDS[kind]).one_of_many(in_run);
        let result = self.table.lock(&self.owners[o], &request);
        if self.model.holds(o, key, exclusive, kind) {
            assert_eq!(gets(result), Locked::Held);
            return;
        }
        self.model.rows.push(Row {
            owner: o,
            key,
            exclusive,
            kind,
            waiting: true,
        });
        let at = self.model.rows.len() - 1;
        if self.model.blockers(at).is_empty() {
            self.model.rows[at].waiting = false;
            if kind == 3 {
                self.model.rows.pop();
            }
            assert_eq!(gets(result), Locked::New);
            return;
        }
        // Owners are sacrificed only if there is a cycle, none of them is heavier than the
        // requester, and afterwards there is no cycle.
        let chosen: Vec<usize> = (0..OWNERS)
            .filter(|&v| self.owners[v].is_victim() && self.model.waits(v))
            .collect();
        assert_eq!(chosen.is_empty(), !self.model.on_cycle(o));
        for &v in &chosen {
            assert!(self.owners[v].weight() <= self.owners[o].weight());
        }
        // The order in which they were sacrificed is unknown: one of the orders must lead to the
        // present locks.
        let real = self.real();
        let after = |order: &[usize]| {
            let mut model = self.model.clone();
            order.iter().for_each(|v| model.remove_wait(*v));
            model
        };
        let found = orders(&chosen)
            .iter()
            .map(|o| after(o))
            .find(|m| m.entries() == real);
        self.model = found.expect("the model gets there too");
        assert!(!self.model.on_cycle(o));
        match result {
            Err(Stop::Error(TxnError::Deadlock)) => {
                assert!(self.owners[o].is_victim())
            }
            Err(Stop::Wait(wait)) => {
                assert!(!self.owners[o].is_victim());
                self.waits[o] = Some(wait);
            }
            other => panic!("blocked, but got {other:?}"),
        }
    }

    fn real(&self) -> Vec<String> {
        let one = |l: &LockInfo| format!("{:?}", (l.session, &l.key, l.mode, l.kind, l.granted));
        let mut out: Vec<_> = self.table.locks().iter().map(one).collect();
        out.sort();
        out
    }

    fn compare(&mut self) {
        self.table.check().unwrap();
        assert_eq!(self.real(), self.model.entries());
        for o in 0..OWNERS {
            assert!(self.table.counts_waiters_of(&self.owners[o]));
            if let Some(wait) = &mut self.waits[o] {
                assert_eq!(
                    ready(wait),
                    !self.model.waits(o),
                    "a wait is over when the entry waits no more"
                );
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn behaves_as_the_model(ops in ops()) {
        walk(ops);
    }
}

fn walk(ops: Vec<Op>) {
    let mut walk = Walk::new();
    for op in ops {
        match op {
            Op::Lock {
                owner,
                key,
                exclusive,
                kind,
                in_run,
            } => walk.lock(owner, (key, exclusive, kind), in_run),
            Op::Release { owner } => walk.release(owner),
            Op::GiveUp { owner } => {
                walk.waits[owner] = None;
                walk.model.remove_wait(owner);
            }
        }
        walk.compare();
    }
    for o in 0..OWNERS {
        walk.release(o);
    }
    assert!(walk.table.locks().is_empty());
}

/// The cost of one more request behind `waiting` requests: entries of queues that its deadlock
/// search visits.
fn search_cost(waiting: usize, request: impl Fn(usize) -> LockRequest<'static>) -> usize {
    let t = table();
    let holder = owner(0);
    gets(t.lock(&holder, &x(LockKey::Key(b"a"))));
    let owners: Vec<_> = (1..=waiting as u64).map(owner).collect();
    let queued = |(n, o)| waits(t.lock(o, &request(n)));
    let queue: Vec<Wait> = owners.iter().enumerate().map(queued).collect();
    let last = owners.last().expect("there is a waiting request");
    let mut search = super::deadlock::Search::new(&t, last);
    assert!(search.find_cycle().is_none());
    drop(queue);
    search.entries_visited
}

#[test]
fn search_visits_each_waiting_request_once() {
    let exclusive = |_| x(LockKey::Key(b"a"));
    assert_eq!(search_cost(4_000, exclusive), 1);
    let mixed = |n: usize| match n % 3 {
        0 => s(LockKey::Key(b"a")),
        1 => ask(LockMode::X, LockKind::NextKey, LockKey::Key(b"a")),
        _ => x(LockKey::Key(b"a")),
    };
    for waiting in [4_000, 4_001, 4_002] {
        assert!(search_cost(waiting, mixed) <= 3 * waiting);
    }
}

/// The holder of a row for which thousands wait requests a lock that the last of them has. The only
/// cycle leads through all these requests.
#[test]
fn search_finds_a_cycle_through_a_long_queue() {
    let t = table();
    let owners: Vec<_> = (0..2_000).map(owner).collect();
    let (hot, other) = (LockKey::Key(b"hot"), LockKey::Key(b"other"));
    gets(t.lock(&owners[0], &x(hot)));
    gets(t.lock(&owners[1_999], &x(other)));
    let mut queue: Vec<Wait> = owners[1..]
        .iter()
        .map(|o| waits(t.lock(o, &x(hot))))
        .collect();
    let closing = t.lock(&owners[0], &x(other));
    // Both have one lock; the requester goes.
    assert!(matches!(fails(closing), TxnError::Deadlock));
    assert_eq!(t.status().deadlocks, 1);
    t.release_all(&owners[0]);
    assert!(ready(&mut queue[0]));
    assert!(queue[1..].iter_mut().all(|w| !ready(w)));
}

/// An insert intention waits for a gap. The gap's owner waits, too, and behind it another owner
/// waits for a next-key lock. When the gap's owner ends, its request is removed first, the next-key
/// lock is granted, and the insert intention then waits for that lock.
#[test]
fn a_waiter_that_ends_gives_up_its_request_before_its_locks() {
    let lock = |owner, exclusive, kind| Op::Lock {
        in_run: false,
        owner,
        key: 2,
        exclusive,
        kind,
    };
    walk(vec![
        lock(0, false, 1),
        lock(2, false, 3),
        lock(3, false, 0),
        lock(0, true, 0),
        lock(1, false, 2),
        Op::Release { owner: 0 },
    ]);
}

fn next_random(random: &mut u64) -> usize {
    *random = random
        .wrapping_mul(6364136223846793005)
        .wrapping_add(1442695040888963407);
    (*random >> 33) as usize
}

/// Threads lock three of a few keys exclusively and change what they guard; deadlocks are retried.
#[test]
fn threads_exclude_each_other() {
    let t = table();
    let guarded: Vec<AtomicU64> = (0..6).map(|_| AtomicU64::new(0)).collect();
    let done = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for seed in 0..4u64 {
            let (t, guarded, done) = (&t, &guarded, &done);
            scope.spawn(move || {
                let mut random = seed + 1;
                for _ in 0..300 {
                    let keys: Vec<usize> = (0..3)
                        .map(|_| next_random(&mut random) % guarded.len())
                        .collect();
                    while !attempt(t, seed, &keys, guarded) {}
                    done.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(done.load(Ordering::Relaxed), 1200);
    assert!(t.locks().is_empty());
}

/// Threads lock random keys in ascending order, shared or exclusively, so their waits never form a
/// cycle.
#[test]
fn threads_without_a_cycle_have_no_victim() {
    let t = table();
    std::thread::scope(|scope| {
        for seed in 0..6u64 {
            let t = &t;
            scope.spawn(move || {
                let mut random = seed + 1;
                for _ in 0..300 {
                    let me = owner(seed);
                    for key in 0..4u8 {
                        let chosen = next_random(&mut random) % 4;
                        if chosen == 0 {
                            continue;
                        }
                        let mode = [LockMode::S, LockMode::X][chosen % 2];
                        let bytes = [key];
                        let key = LockKey::Key(&bytes);
                        let request = LockRequest::new(1, key, mode, LockKind::NextKey)
                            .one_of_many(next_random(&mut random).is_multiple_of(2));
                        loop {
                            match t.lock(&me, &request) {
                                Ok(_) => break,
                                Err(Stop::Wait(wait)) => wait.block(),
                                Err(Stop::Error(e)) => panic!("{e} without a cycle"),
                            }
                        }
                        std::thread::yield_now();
                    }
                    t.release_all(&me);
                }
            });
        }
    });
    assert_eq!(t.status().deadlocks, 0);
    assert!(t.status().waits > 0);
    assert!(t.locks().is_empty());
}

fn attempt(t: &Arc<LockTable>, seed: u64, keys: &[usize], guarded: &[AtomicU64]) -> bool {
    let me = owner(seed);
    for &key in keys {
        let bytes = [key as u8];
        // Two threads of four lock a key in a run, the other two in its queue.
        let request = LockRequest::new(1, LockKey::Key(&bytes), LockMode::X, LockKind::Record)
            .one_of_many((key as u64 ^ seed) & 1 == 0);
        loop {
            match t.lock(&me, &request) {
                Ok(_) => break,
                Err(Stop::Wait(wait)) => wait.block(),
                Err(Stop::Error(_)) => {
                    t.release_all(&me);
                    return false;
                }
            }
        }
    }
    let mark = |from: u64, to: u64| {
        for &key in keys {
            let was = guarded[key].swap(to, Ordering::Relaxed);
            assert!(was == from || was == to, "L1: somebody else is inside");
        }
    };
    mark(0, seed + 1);
    std::thread::yield_now();
    mark(seed + 1, 0);
    t.release_all(&me);
    true
}
