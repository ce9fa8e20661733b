//! Snapshots over a made-up horizon.

use super::*;
use std::sync::atomic::{AtomicU64, Ordering};

#[test]
fn a_snapshot_sees_what_ended_before_it() {
    let views = Snapshots::new(1, &[]);
    let slot = views.slots.take(7).unwrap();
    let (a, b, c) = (
        views.allocate().unwrap(),
        views.allocate().unwrap(),
        views.allocate().unwrap(),
    );
    views.status.set_committed(b, 100);
    views.status.set_aborted(c, 90);
    let snap = views.open(slot, a, || 100);
    assert_eq!((snap.l, snap.s, snap.h), (a, 100, c + 1));
    assert!(
        snap.sees(0, &views.status) && snap.sees(a, &views.status) && snap.sees(b, &views.status)
    );
    assert!(!snap.sees(c, &views.status), "aborted");
    let later = views.allocate().unwrap();
    views.status.set_committed(later, 101);
    assert!(!snap.sees(later, &views.status), "began after");
    views.status.set_committed(a, 120);
    let old = views.open(slot, 0, || 110);
    assert!(!old.sees(a, &views.status), "ended above the horizon");
    assert!(old.sees(later, &views.status));
}

#[test]
fn low_water_mark_passes_ended_ids_only() {
    let views = Snapshots::new(1, &[]);
    for _ in 0..5 {
        views.allocate().unwrap();
    }
    views.status.set_committed(2, 20);
    views.status.set_committed(3, 60);
    views.advance_low(u64::MAX, || 50);
    assert_eq!(views.low(), 1, "1 is active");
    views.status.set_aborted(1, 30);
    views.advance_low(u64::MAX, || 50);
    assert_eq!(views.low(), 3, "3 ended above the horizon");
    assert!(views.is_active(3, || 50) && !views.is_active(2, || 50) && !views.is_active(3, || 60));
    views.advance_low(u64::MAX, || 60);
    assert_eq!(views.low(), 4);
}

#[test]
fn the_floor_stops_at_the_oldest_reader() {
    let views = Snapshots::new(1, &[]);
    let (a, b) = (views.slots.take(1).unwrap(), views.slots.take(2).unwrap());
    views.open(a, 0, || 40);
    views.open(b, 0, || 70);
    assert_eq!(
        views.raise_floor(|| 90),
        (40, Some(OldestReader { session: 1, s: 40 }))
    );
    views.slots.close(a);
    assert_eq!(
        views.raise_floor(|| 90),
        (70, Some(OldestReader { session: 2, s: 70 }))
    );
    views.slots.give(b);
    assert_eq!(views.raise_floor(|| 90), (90, None));
    assert_eq!(
        views.slots.take(3),
        Some(b),
        "given back slots are used again"
    );
}

#[test]
fn recovered_ids_are_active_and_the_others_committed() {
    let active = [10, CHUNK_IDS * 3 + 5];
    let next = CHUNK_IDS * 5 + 17;
    let views = Snapshots::new(next, &active);
    let slot = views.slots.take(1).unwrap();
    let snap = views.open(slot, 0, || 1000);
    for id in [
        9,
        11,
        CHUNK_IDS * 2,
        CHUNK_IDS * 3 + 4,
        CHUNK_IDS * 4 + 1,
        next - 1,
    ] {
        assert!(snap.sees(id, &views.status), "{id}");
    }
    for id in active {
        assert!(!snap.sees(id, &views.status), "{id}");
        views.status.set_aborted(id, 900);
    }
    views.advance_low(u64::MAX, || 1000);
    assert_eq!(views.low(), next);
    assert_eq!(views.allocate(), Some(next));
}

#[test]
fn chunks_are_recycled_and_the_span_is_bounded() {
    let views = Snapshots::new(1, &[]);
    let slot = views.slots.take(1).unwrap();
    let mut first_refused = None;
    let limit = RING_CHUNKS * CHUNK_IDS;
    // The first id stays active: the span grows until it is refused.
    for n in 0..=limit {
        match views.allocate() {
            Some(id) if id > 1 => views.status.set_committed(id, 5),
            Some(_) => {}
            None => {
                first_refused = Some(n);
                break;
            }
        }
    }
    let refused = first_refused.expect("the ring is finite");
    assert!(refused >= limit - 1025 * CHUNK_IDS && refused < limit);
    assert_eq!(
        views.status.recycle(views.low(), 10),
        0,
        "nothing below the active one"
    );
    views.status.set_committed(1, 7);
    views.advance_low(u64::MAX, || 6);
    assert_eq!(views.low(), 1);
    views.advance_low(u64::MAX, || 7);
    let old = views.open(slot, 0, || 7);
    assert!(
        views.status.recycle(views.low(), 6) == 0,
        "a reader below 7 may be open"
    );
    assert!(views.status.recycle(views.low(), 7) as u64 >= RING_CHUNKS - 1026);
    assert!(old.sees(2, &views.status));
    assert_eq!(views.status.get(2), Status::Gone);
    let id = views.allocate().expect("room again");
    assert_eq!(views.status.get(id), Status::Active);
}

/// Two accounts, each change moves an amount from one to the other under a latch; the model keeps
/// the ids of the newest versions. Every snapshot finds the same sum.
#[test]
fn transfers_keep_their_sum() {
    use std::sync::Mutex;
    const ROUNDS: u64 = 3000;
    // Version lists, newest last: (writer, amount).
    let accounts: [Mutex<Vec<(u64, i64)>>; 2] =
        [Mutex::new(vec![(0, 500)]), Mutex::new(vec![(0, 500)])];
    let views = Snapshots::new(1, &[]);
    let horizon = AtomicU64::new(10);
    let commits = Mutex::new(10u64);
    let writing = Mutex::new(());
    let read = |slot: u32| {
        let snap = views.open(slot, 0, || horizon.load(Ordering::Acquire));
        let sum = |n: usize| {
            let list = accounts[n].lock().unwrap();
            let seen = list
                .iter()
                .rev()
                .find(|(id, _)| snap.sees(*id, &views.status))
                .expect("the floor holds");
            seen.1
        };
        let total = sum(0) + sum(1);
        views.slots.close(slot);
        total
    };
    std::thread::scope(|scope| {
        for w in 0..2 {
            let (views, accounts, commits, horizon, writing) =
                (&views, &accounts, &commits, &horizon, &writing);
            scope.spawn(move || {
                for n in 0..ROUNDS {
                    let row_lock = writing.lock().unwrap();
                    let id = views.allocate().unwrap();
                    let amount = (n as i64 % 7) * if w == 0 { 1 } else { -1 };
                    for (account, sign) in [(0, -1), (1, 1)] {
                        let mut list = accounts[account].lock().unwrap();
                        let newest = list.last().unwrap().1;
                        list.push((id, newest + sign * amount));
                    }
                    {
                        let mut log = commits.lock().unwrap();
                        *log += 10;
                        views.status.set_committed(id, *log);
                        horizon.store(*log, Ordering::Release);
                    }
                    drop(row_lock);
                    views.advance_low(64, || horizon.load(Ordering::Acquire));
                }
            });
        }
        for r in 0..2 {
            let (views, read) = (&views, &read);
            scope.spawn(move || {
                let slot = views.slots.take(r).unwrap();
                for _ in 0..ROUNDS {
                    assert_eq!(read(slot), 1000);
                }
                views.slots.give(slot);
            });
        }
        let (views, accounts, horizon) = (&views, &accounts, &horizon);
        scope.spawn(move || {
            for _ in 0..ROUNDS {
                let (floor, _) = views.raise_floor(|| horizon.load(Ordering::Acquire));
                views.advance_low(u64::MAX, || horizon.load(Ordering::Acquire));
                for account in accounts {
                    let mut list = account.lock().unwrap();
                    // The newest version that ended at or below the floor, and all above it, stay.
                    let keep = list
                        .iter()
                        .rposition(|(id, _)| views.status.committed_by(*id, floor))
                        .unwrap_or(0);
                    list.drain(..keep);
                }
                views.status.recycle(views.low(), floor);
            }
        });
    });
}

#[test]
fn slots_in_use_are_those_with_a_note_or_a_snapshot() {
    let slots = SlotTable::default();
    let (noted, idle) = (slots.take(5).unwrap(), slots.take(6).unwrap());
    assert!(slots.in_use().is_empty());
    slots.note(noted, 1_000, 9);
    slots.line(idle).s.store(77, Ordering::Relaxed);
    let expected = |session, s, since_us, about| SlotInfo {
        session,
        s,
        since_us,
        about,
    };
    let both = [expected(5, None, 1_000, 9), expected(6, Some(77), 0, 0)];
    assert_eq!(slots.in_use(), both);
    slots.note(noted, 0, 0);
    slots.give(idle);
    assert!(slots.in_use().is_empty());
    // The next session finds nothing of the one before.
    slots.note(noted, 2_000, 1);
    slots.give(noted);
    assert!(slots.in_use().is_empty());
}
