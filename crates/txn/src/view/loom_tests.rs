//! The protocols of this module under all interleavings that loom's bounded search finds. All sides
//! are spawned threads: with a bound on preemptions, loom explores little of the main thread's
//! steps after a spawn. Each error that a model's comment says it finds was put into the code, and
//! made the model fail. Run with `RUSTFLAGS="--cfg loom" cargo test -p nfold-txn --lib --release`.

use super::*;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;

fn model(f: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(f);
}

/// I3: the floor that purge publishes is not above a snapshot that is open or being opened, while
/// commits move the horizon. Finds: a missing barrier on either side.
#[test]
fn purge_does_not_overtake_an_opening_reader() {
    model(|| {
        let views = Arc::new(Snapshots::new(1, &[]));
        let horizon = Arc::new(AtomicU64::new(10));
        let slot = views.slots.take(1).expect("a slot");
        let freed = Arc::new(AtomicU64::new(0));
        let purge = {
            let (views, horizon, freed) = (views.clone(), horizon.clone(), freed.clone());
            thread::spawn(move || {
                horizon.store(20, Ordering::Release);
                let (floor, _) = views.raise_floor(|| horizon.load(Ordering::Acquire));
                // Purging: from here on no snapshot may read a state before `floor`.
                freed.store(floor, Ordering::Release);
            })
        };
        let reader = thread::spawn(move || {
            let snap = views.open(slot, 0, || horizon.load(Ordering::Acquire));
            let seen = freed.load(Ordering::Acquire);
            assert!(
                seen <= snap.s,
                "I3: purged up to {seen}, reader at {}",
                snap.s
            );
            views.slots.close(slot);
        });
        purge.join().expect("purge");
        reader.join().expect("reader");
    });
}

/// A snapshot is a prefix of the commit order: transaction A fills its commit below that of B, so a
/// reader that sees B sees A. A plain word stands for the log's filled prefix, which has its own
/// model: the range of B counts as filled only after that of A does. Finds: S loaded before L, or
/// behind H; L raised or loaded relaxed, or raised over what is not below the horizon. The model
/// does not need the orderings of the status words: a word is below the horizon, or not seen.
#[test]
fn who_sees_the_later_commit_sees_the_earlier() {
    model(|| {
        let views = Arc::new(Snapshots::new(1, &[]));
        let horizon = Arc::new(AtomicU64::new(16));
        let slot = views.slots.take(1).expect("a slot");
        // T2 has the lower id, so that it can be seen by `id < L` alone.
        let t2 = views.allocate().expect("room");
        let t1 = t2 + 1;
        let reader = {
            let (views, horizon) = (views.clone(), horizon.clone());
            thread::spawn(move || {
                let snap = views.open(slot, 0, || horizon.load(Ordering::Acquire));
                if snap.sees(t2, &views.status) {
                    assert!(snap.sees(t1, &views.status), "half a set of transactions");
                }
            })
        };
        let first = {
            let (views, horizon) = (views.clone(), horizon.clone());
            thread::spawn(move || {
                assert_eq!(views.allocate(), Some(t1));
                views.status.set_committed(t1, 32);
                horizon.store(32, Ordering::Release);
            })
        };
        let second = thread::spawn(move || {
            views.status.set_committed(t2, 48);
            if horizon.load(Ordering::Acquire) == 32 {
                horizon.store(48, Ordering::Release);
            }
            // One id at a time, so that L can stop between the two; and T2's, whether it may or
            // not.
            views.advance_low(1, || horizon.load(Ordering::Acquire));
        });
        first.join().expect("T1");
        second.join().expect("T2");
        reader.join().expect("reader");
    });
}

/// I4, status::S1: a reader that looks an id up while its chunk is recycled and used again gets the
/// right answer. Finds: the fence before the words are cleared, or the second look at the tag, left
/// out; the fence behind the word's load left out where that load is relaxed; a tag that recycling
/// leaves.
#[test]
fn a_recycled_chunk_does_not_lie() {
    model(|| {
        let views = Arc::new(Snapshots::new(1, &[]));
        let slot = views.slots.take(1).expect("a slot");
        let old = views.allocate().expect("room");
        views.status.set_committed(old, 10);
        let snap = Snapshot {
            l: 1,
            s: 15,
            h: 2,
            own: 0,
        };
        let reader = {
            let views = views.clone();
            thread::spawn(move || assert!(snap.sees(old, &views.status), "committed before"))
        };
        let recycler = {
            let views = views.clone();
            thread::spawn(move || {
                views.advance_low(8, || 15);
                if views.status.recycle(views.low(), 15) > 0 {
                    while views.next() < 6 {
                        views.allocate().expect("room");
                    }
                }
            })
        };
        reader.join().expect("reader");
        recycler.join().expect("recycler");
        views.slots.give(slot);
    });
}

/// status::S2: two writers take ids of a chunk that served others before; one of them makes it
/// anew, and the other, which finds it made, sees its own id as active. Finds: the stores of the
/// chunk's place and tag relaxed.
#[test]
fn an_id_in_a_chunk_that_another_made_is_active() {
    model(|| {
        let views = Arc::new(Snapshots::new(1, &[]));
        // The ids of whole chunks end, and their chunks are free.
        while views.next() % CHUNK_IDS != 0 {
            let id = views.allocate().expect("room");
            views.status.set_committed(id, 10);
        }
        views.advance_low(64, || 15);
        assert!(views.status.recycle(views.low(), 15) > 0);
        let writers: Vec<_> = (0..2)
            .map(|_| {
                let views = views.clone();
                thread::spawn(move || {
                    let id = views.allocate().expect("room");
                    assert_eq!(views.status.get(id), Status::Active);
                })
            })
            .collect();
        for writer in writers {
            writer.join().expect("writer");
        }
    });
}

/// The transaction that ends last leaves L above all ended ids. The fence between is the one in
/// `FilledPrefix::mark`, which makes that of `advance_low`'s loop redundant here.
#[test]
fn low_is_not_left_behind() {
    model(|| {
        let views = Arc::new(Snapshots::new(1, &[]));
        let (a, b) = (
            views.allocate().expect("room"),
            views.allocate().expect("room"),
        );
        let end = |id: TrxId| {
            let views = views.clone();
            move || {
                views.status.set_committed(id, 10);
                loom::sync::atomic::fence(Ordering::SeqCst);
                views.advance_low(8, || 10);
            }
        };
        let finishers = [thread::spawn(end(a)), thread::spawn(end(b))];
        for finisher in finishers {
            finisher.join().expect("finisher");
        }
        assert_eq!(views.low(), 3);
    });
}

/// A row: the id of the transaction that changed it last, and the delete mark in bit 63.
const MARK: u64 = 1 << 63;

/// What a probe finds (`KeyProbe` of the engine).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Probe {
    Live,
    Absent,
    Waits,
}

fn probe(views: &Snapshots, row: &AtomicU64, horizon: &AtomicU64) -> Probe {
    let found = row.load(Ordering::Relaxed);
    match (found & !MARK, found & MARK != 0) {
        (0, _) => Probe::Absent,
        (trx, _) if views.is_active(trx, || horizon.load(Ordering::Acquire)) => Probe::Waits,
        (_, true) => Probe::Absent,
        (_, false) => Probe::Live,
    }
}

/// The steps of one side of a foreign key.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    /// It changes its row, passes the fence, and probes.
    Correct,
    WithoutFence,
    ProbesFirst,
}

impl Side {
    fn run(self, change: impl FnOnce(), probe: impl FnOnce() -> Probe) -> Probe {
        if self == Side::ProbesFirst {
            Snapshots::order_changes_before_probe();
            let found = probe();
            change();
            return found;
        }
        change();
        if self == Side::Correct {
            Snapshots::order_changes_before_probe();
        }
        probe()
    }
}

/// The child's transaction inserts its row and probes for the parent, the parent's transaction
/// marks its row and probes for a child.
fn foreign_key(child_side: Side, parent_side: Side) {
    model(move || {
        let views = Arc::new(Snapshots::new(2, &[]));
        let horizon = Arc::new(AtomicU64::new(16));
        // The parent was inserted by transaction 1, which has ended; there is no child yet.
        let (parent, child) = (Arc::new(AtomicU64::new(1)), Arc::new(AtomicU64::new(0)));
        let child_trx = views.allocate().expect("room");
        let parent_trx = views.allocate().expect("room");
        let inserts = {
            let (views, horizon) = (views.clone(), horizon.clone());
            let (parent, child) = (parent.clone(), child.clone());
            thread::spawn(move || {
                let change = || child.store(child_trx, Ordering::Release);
                child_side.run(change, || probe(&views, &parent, &horizon))
            })
        };
        let deletes = thread::spawn(move || {
            let change = || parent.store(parent_trx | MARK, Ordering::Release);
            parent_side.run(change, || probe(&views, &child, &horizon))
        });
        let found = inserts.join().expect("child");
        let children = deletes.join().expect("parent");
        let orphan = found == Probe::Live && children == Probe::Absent;
        assert!(!orphan, "an orphan: {found:?}, {children:?}");
    });
}

/// One of the two sides sees the other and waits.
#[test]
fn foreign_key_leaves_no_orphan() {
    foreign_key(Side::Correct, Side::Correct);
}

#[test]
#[should_panic(expected = "an orphan")]
fn foreign_key_without_child_fence_leaves_orphan() {
    foreign_key(Side::WithoutFence, Side::Correct);
}

#[test]
#[should_panic(expected = "an orphan")]
fn foreign_key_without_parent_fence_leaves_orphan() {
    foreign_key(Side::Correct, Side::WithoutFence);
}

#[test]
#[should_panic(expected = "an orphan")]
fn foreign_key_child_that_probes_first_leaves_orphan() {
    foreign_key(Side::ProbesFirst, Side::Correct);
}

#[test]
#[should_panic(expected = "an orphan")]
fn foreign_key_parent_that_probes_first_leaves_orphan() {
    foreign_key(Side::Correct, Side::ProbesFirst);
}

/// The parent's transaction has inserted the parent and rolls back, while the child's probes.
/// `reads_again`: an entry is read again if its transaction has ended since it was read (P4 of
/// `KeyProbe`).
fn rolled_back_parent(reads_again: bool) {
    model(move || {
        let views = Arc::new(Snapshots::new(2, &[]));
        let horizon = Arc::new(AtomicU64::new(16));
        let parent_trx = views.allocate().expect("room");
        let parent = Arc::new(AtomicU64::new(parent_trx));
        let rolls_back = {
            let (views, parent) = (views.clone(), parent.clone());
            thread::spawn(move || {
                parent.store(0, Ordering::Release);
                views.status.set_aborted(parent_trx, 10);
                views.advance_low(4, || 16);
            })
        };
        let inserts = thread::spawn(move || {
            Snapshots::order_changes_before_probe();
            let ended_below = views.low();
            let found = probe(&views, &parent, &horizon);
            match found == Probe::Live && ended_below <= parent_trx && reads_again {
                true => probe(&views, &parent, &horizon),
                false => found,
            }
        });
        rolls_back.join().expect("parent");
        let found = inserts.join().expect("child");
        assert!(found != Probe::Live, "an orphan: {found:?}");
    });
}

#[test]
fn foreign_key_ignores_parent_rolled_back_meanwhile() {
    rolled_back_parent(true);
}

#[test]
#[should_panic(expected = "an orphan")]
fn foreign_key_that_reads_once_leaves_orphan() {
    rolled_back_parent(false);
}
