use std::sync::atomic::AtomicBool;

use super::*;

const T1: TableId = TableId(1);
const T2: TableId = TableId(2);

#[test]
fn exclusive_excludes_and_is_excluded() {
    let mdl = Arc::new(Mdl::new());
    let (mut a, mut b) = (mdl.slot(1), mdl.slot(2));
    a.acquire(T1).unwrap();
    assert!(mdl.try_exclusive(None, &[T1]).is_err());
    assert!(
        mdl.try_exclusive(Some(&a), &[T1]).is_ok(),
        "what the caller holds itself does not count"
    );
    let claim = mdl.try_exclusive(None, &[T2]).unwrap();
    assert!(claim.covers(T2) && !claim.covers(T1));
    assert_eq!(b.acquire(T2), Err(MdlBusy));
    assert_eq!(b.mark(), 0, "a refused announcement leaves nothing behind");
    b.acquire(T1).unwrap();
    assert!(mdl.try_exclusive(None, &[T2]).is_err(), "claimed twice");
    drop(claim);
    b.acquire(T2).unwrap();
    a.release_all();
    assert!(mdl.try_exclusive(None, &[T1]).is_err());
    drop(b);
    assert!(mdl.try_exclusive(None, &[T1, T2]).is_ok());
}

#[test]
fn a_claim_is_one_on_what_takes_the_tables_place() {
    const T3: TableId = TableId(3);
    const T4: TableId = TableId(4);
    let mdl = Arc::new(Mdl::new());
    let mut other = mdl.slot(1);
    mdl.replace(T1, T2);
    other.acquire(T2).unwrap(); // no other owner had claimed T1
    other.release_all();
    let claim = mdl.try_exclusive(None, &[T1]).unwrap();
    mdl.replace(T1, T3);
    mdl.replace(T3, T4);
    for id in [T1, T3, T4] {
        assert!(claim.covers(id));
        assert_eq!(other.acquire(id), Err(MdlBusy));
        assert!(mdl.try_exclusive(None, &[id]).is_err());
    }
    assert!(!claim.covers(T2));
    let unrelated = mdl.try_exclusive(None, &[T2]).unwrap();
    drop(claim);
    assert_eq!(other.acquire(T2), Err(MdlBusy));
    for id in [T1, T3, T4] {
        other.acquire(id).unwrap();
    }
    drop(unrelated);
    other.acquire(T2).unwrap();
    assert_eq!(mdl.closing_count.load(Ordering::SeqCst), 0);
}

#[test]
fn marks_and_overflow() {
    let mdl = Arc::new(Mdl::new());
    let mut a = mdl.slot(1);
    for id in 1..=40 {
        a.acquire(TableId(id)).unwrap();
    }
    let mark = a.mark();
    a.acquire(TableId(41)).unwrap();
    assert!(mdl.try_exclusive(None, &[TableId(41)]).is_err());
    a.release_to(mark);
    assert!(mdl.try_exclusive(None, &[TableId(41)]).is_ok());
    for id in [1, 14, 15, 40] {
        assert!(
            mdl.try_exclusive(None, &[TableId(id)]).is_err(),
            "table {id} is held"
        );
    }
    a.release_all();
    for id in 1..=41 {
        assert!(mdl.try_exclusive(None, &[TableId(id)]).is_ok());
    }
}

#[test]
fn session_never_waits_for_itself() {
    let mdl = Arc::new(Mdl::new());
    let (mut a, mut second) = (mdl.slot(1), mdl.slot(1));
    let mut other = mdl.slot(2);
    second.acquire(T1).unwrap();
    let outer = mdl.try_exclusive(Some(&a), &[T1]).unwrap();
    a.acquire(T1).unwrap();
    let inner = mdl.try_exclusive(Some(&a), &[T1]).unwrap();
    mdl.replace(T1, T2);
    assert!(outer.covers(T2) && inner.covers(T2));
    drop(inner);
    assert!(outer.covers(T1));
    assert_eq!(other.acquire(T2), Err(MdlBusy));
    assert!(mdl.try_exclusive(Some(&other), &[T1]).is_err());
    drop(outer);
    other.acquire(T2).unwrap();
    assert!(mdl.try_exclusive(Some(&other), &[T1]).is_err());
}

#[test]
fn wait_leads_to_holders_and_claimants() {
    let mdl = Arc::new(Mdl::new());
    let (mut a, mut b) = (mdl.slot(1), mdl.slot(2));
    a.acquire(T1).unwrap();
    b.acquire(T1).unwrap();
    let ddl = mdl.wait(2, &[T1, T2], true);
    let wait = mdl.wait_of(2).unwrap();
    assert_eq!(wait.blockers, [1], "its own announcement does not count");
    assert!(!mdl.sacrifice(2, wait.since) && !ddl.is_victim());
    drop(ddl);
    assert_eq!(mdl.wait_of(2), None);

    let claim = mdl.try_exclusive(Some(&a), &[T2]).unwrap();
    let read = mdl.wait(2, &[T1, T2], false);
    let wait = mdl.wait_of(2).unwrap();
    assert_eq!(wait.blockers, [1]);
    assert!(mdl.sacrifice(2, wait.since) && read.is_victim());
    assert_eq!(mdl.wait_of(2), None);
    drop((claim, read));

    let shared = mdl.try_exclusive(None, &[T2]).unwrap();
    a.acquire(sharer_of(T2)).unwrap();
    let _read = mdl.wait(2, &[T2], false);
    assert_eq!(mdl.wait_of(2).unwrap().blockers, [1]);
    drop(shared);
    assert!(mdl.wait_of(2).unwrap().blockers.is_empty());
}

#[test]
fn slots_are_reused() {
    let mdl = Arc::new(Mdl::new());
    for _ in 0..100 {
        let mut slot = mdl.slot(1);
        slot.acquire(T1).unwrap();
    }
    assert_eq!(mdl.inner.lock().slots.len(), 1);
}

/// The point of the protocol: under a race no reader works on a table while DDL holds it.
#[test]
fn readers_and_ddl_race() {
    let mdl = Arc::new(Mdl::new());
    let (inside_ddl, inside_read, stop) = (
        AtomicBool::new(false),
        [const { AtomicBool::new(false) }; 3],
        AtomicBool::new(false),
    );
    std::thread::scope(|s| {
        for mine in &inside_read {
            let (mdl, inside_ddl, stop) = (mdl.clone(), &inside_ddl, &stop);
            s.spawn(move || {
                let mut slot = mdl.slot(1);
                while !stop.load(Ordering::Relaxed) {
                    if slot.acquire(T1).is_ok() {
                        mine.store(true, Ordering::SeqCst);
                        assert!(!inside_ddl.load(Ordering::SeqCst));
                        mine.store(false, Ordering::SeqCst);
                        slot.release_all();
                    }
                    // Between two statements a session holds nothing: without the pause DDL might
                    // never find such a moment.
                    std::thread::sleep(std::time::Duration::from_micros(20));
                }
            });
        }
        let mut granted = 0;
        while granted < 300 {
            if let Ok(_claim) = mdl.try_exclusive(None, &[T1]) {
                inside_ddl.store(true, Ordering::SeqCst);
                assert!(inside_read.iter().all(|r| !r.load(Ordering::SeqCst)));
                inside_ddl.store(false, Ordering::SeqCst);
                granted += 1;
            } else {
                std::thread::yield_now();
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
}

/// Counts how often a session is woken.
#[derive(Default)]
struct Wakes(AtomicU64);

impl std::task::Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Whether a session's pause is over; otherwise it will be woken.
fn pause_is_over(waiting: &MdlWaiting, wakes: &Arc<Wakes>) -> bool {
    let waker = Waker::from(wakes.clone());
    let mut changed = std::pin::pin!(waiting.changed());
    changed
        .as_mut()
        .poll(&mut Context::from_waker(&waker))
        .is_ready()
}

#[test]
fn end_of_a_claim_wakes_readers_and_one_writer() {
    let mdl = Arc::new(Mdl::new());
    let owner = mdl.slot(1);
    let claim = mdl.try_exclusive(Some(&owner), &[T1]).expect("free");
    let reads = [mdl.wait(2, &[T1], false), mdl.wait(3, &[T1], false)];
    let writes = [mdl.wait(4, &[T1], true), mdl.wait(5, &[T1, T2], true)];
    let other = mdl.wait(6, &[T2], false);
    let wakes: [Arc<Wakes>; 5] = Default::default();
    let waiting = || reads.iter().chain(&writes).chain([&other]).zip(&wakes);
    assert!(waiting().all(|(w, wakes)| !pause_is_over(w, wakes)));
    drop(claim);
    let woken: Vec<u64> = wakes.iter().map(|w| w.0.load(Ordering::Relaxed)).collect();
    assert_eq!(woken, [1, 1, 1, 0, 0], "the writer that waits longest");
    let over: Vec<bool> = waiting()
        .map(|(w, wakes)| pause_is_over(w, wakes))
        .collect();
    assert_eq!(over, [true, true, true, false, false]);
    assert!(waiting().all(|(w, wakes)| !pause_is_over(w, wakes)), "once");
}

#[test]
fn claim_that_is_withdrawn_wakes_no_writer() {
    let mdl = Arc::new(Mdl::new());
    let (mut reader, ddl) = (mdl.slot(1), mdl.slot(2));
    reader.acquire(T1).expect("no claim");
    let (read, write) = (mdl.wait(3, &[T1], false), mdl.wait(2, &[T1], true));
    let wakes = Arc::new(Wakes::default());
    assert!(mdl.try_exclusive(Some(&ddl), &[T1]).is_err(), "in use");
    assert!(
        !pause_is_over(&write, &wakes),
        "it would try without a pause"
    );
    assert!(pause_is_over(&read, &wakes), "the claim was in its way");
}

#[test]
fn claims_are_told_from_announcements_in_the_way() {
    let mdl = Arc::new(Mdl::new());
    let (mut reader, ddl) = (mdl.slot(1), mdl.slot(2));
    reader.acquire(T2).expect("no claim");
    let write = mdl.wait(3, &[T1, T2], true);
    assert!(!write.is_behind_claim());
    let claim = mdl.try_exclusive(Some(&ddl), &[T1]).expect("free");
    let own = mdl.wait(2, &[T1], true);
    assert!(write.is_behind_claim() && !own.is_behind_claim());
    drop(claim);
    assert!(!write.is_behind_claim());
}

#[test]
fn victim_of_a_deadlock_is_woken() {
    let mdl = Arc::new(Mdl::new());
    let read = mdl.wait(2, &[T1], false);
    let wakes = Arc::new(Wakes::default());
    assert!(!pause_is_over(&read, &wakes));
    let since = mdl.wait_of(2).expect("it waits").since;
    assert!(mdl.sacrifice(2, since));
    assert_eq!(wakes.0.load(Ordering::Relaxed), 1);
    assert!(pause_is_over(&read, &wakes) && read.is_victim());
}

#[test]
fn server_claim_waits_for_statements_and_keeps_out_new_ones() {
    let mdl = Arc::new(Mdl::new());
    let (mut running, mut next) = (mdl.slot(1), mdl.slot(2));
    running.enter_server(true, false).expect("no claim");
    let claim = mdl.claim_server(SERVER_WRITES);
    assert!(!claim.is_alone() && running.is_in_server());
    assert!(next.enter_server(true, false).is_err(), "claimed");
    assert!(!next.is_in_server());
    next.enter_server(false, true).expect("another id");
    assert!(next.acquire(T1).is_ok(), "tables are not claimed");
    running.leave_server();
    assert!(claim.is_alone());
    drop(claim);
    next.enter_server(true, true).expect("no claim");
    assert!(!mdl.claim_server(SERVER_DDL).is_alone());
}

#[test]
fn server_announcement_is_shared_with_another_slot() {
    let mdl = Arc::new(Mdl::new());
    let (mut own, mut locks) = (mdl.slot(1), mdl.slot(1));
    own.enter_server(true, false).expect("no claim");
    let claim = mdl.claim_server(SERVER_WRITES);
    locks.share_server(&own);
    own.leave_server();
    assert!(!claim.is_alone() && locks.is_in_server());
    drop(locks);
    assert!(claim.is_alone());
}
