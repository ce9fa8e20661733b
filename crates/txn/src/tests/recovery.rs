//! What is there after the process died.

use super::*;

#[test]
fn the_committed_stays_and_the_rest_is_undone() {
    let w = World::new(0);
    let mut a = w.begun();
    w.write(&mut a, b"a", Some(b"1")).unwrap();
    w.write(&mut a, b"b", Some(b"1")).unwrap();
    w.commit(&mut a);
    a.begin(Isolation::RepeatableRead, false);
    let mut b = w.begun();
    w.write(&mut b, b"a", Some(b"2")).unwrap();
    w.write(&mut b, b"c", Some(b"2")).unwrap();
    w.write(&mut a, b"b", None).unwrap();
    w.commit(&mut a);
    let (used, lost) = (a.system().views().next(), b.id());
    b.vanish();
    drop(a);
    let w = w.after_kill();
    assert_eq!((w.recovery.unfinished, w.recovery.changes_to_undo), (1, 2));
    assert!(w.recovery.next_id >= used, "T1");
    let mut c = w.begun();
    assert_eq!(
        w.scan(&mut c),
        rows(&[("a", "1")]),
        "b's changes are not seen before they are undone"
    );
    assert!(w.system.is_active(lost), "T2");
    let Err(Stop::Wait(wait)) = w.try_write(&mut c, b"a", Some(b"3")) else {
        panic!("system::T2: the row is locked")
    };
    w.run_background();
    wait.block();
    w.write(&mut c, b"a", Some(b"3")).unwrap();
    w.commit(&mut c);
    w.run_background();
    assert_eq!(w.entries().len(), 1, "b was purged, c undone");
    let w = w.after_kill();
    assert_eq!(w.recovery.unfinished, 0);
    assert_eq!(w.scan(&mut w.begun()), rows(&[("a", "3")]));
}

/// undo::U3: the page with a commit record outlives the pages with the data.
#[test]
fn a_commit_record_outlives_its_data() {
    let w = World::new(0);
    // Streams go by slot, three of them: the first and the fourth session share one.
    let mut sessions: Vec<Trx> = (0..4).map(|_| w.session()).collect();
    let (mut short, mut long) = (sessions.remove(0), sessions.pop().unwrap());
    short.begin(Isolation::RepeatableRead, false);
    w.write(&mut short, b"k", Some(&[0; 5000])).unwrap();
    w.commit(&mut short);
    // The long one has a record on the first page.
    long.begin(Isolation::RepeatableRead, false);
    w.write(&mut long, b"other", Some(b"1")).unwrap();
    // The short one begins there and ends on the second page; the next one leaves that page behind.
    for last in [5u8, 11] {
        short.begin(Isolation::RepeatableRead, false);
        for n in last - 4..=last {
            w.write(&mut short, b"k", Some(&[n; 5000])).unwrap();
        }
        w.commit(&mut short);
    }
    let before = w.system.status().undo_pages;
    w.run_background();
    let after = w.system.status().undo_pages;
    assert!(
        before >= 4 && after < before,
        "pages in between are freed: {before} {after}"
    );
    flush(&w.store);
    long.vanish();
    drop(short);
    let w = w.after_kill();
    assert_eq!(w.recovery.unfinished, 1, "the long one only");
    w.run_background();
    assert_eq!(
        w.scan(&mut w.begun()),
        vec![(b"k".to_vec(), vec![11; 5000])]
    );
    assert_eq!(w.system.status().undo_pages, 1, "the end record's");
}

/// Purge in small steps, and death between two of them.
#[test]
fn a_crash_in_the_middle_of_purging_is_no_harm() {
    for steps in 0..12u64 {
        let w = World::new(0);
        let mut sessions: Vec<Trx> = (0..6).map(|_| w.session()).collect();
        for (n, trx) in sessions.iter_mut().enumerate() {
            for round in 0..6u8 {
                trx.begin(Isolation::RepeatableRead, false);
                w.write(trx, &[n as u8], Some(&[round; 3000])).unwrap();
                w.write(
                    trx,
                    &[n as u8, 1],
                    if round % 2 == 0 { Some(b"there") } else { None },
                )
                .unwrap();
                if n < 5 || round < 5 {
                    w.commit(trx);
                }
            }
        }
        for _ in 0..steps {
            block_on(|| w.system.purge_step(&w, 5)).unwrap();
        }
        let expected = w.scan(&mut w.begun());
        assert_eq!(
            expected.len(),
            7,
            "the open one's second row is still there"
        );
        flush(&w.store);
        sessions.into_iter().for_each(Trx::vanish);
        let w = w.after_kill();
        assert_eq!(w.recovery.unfinished, 1, "after {steps} steps");
        assert_eq!(w.scan(&mut w.begun()), expected, "after {steps} steps");
        w.run_background();
        assert_eq!(w.scan(&mut w.begun()), expected, "after {steps} steps");
        assert_eq!(w.entries().len(), expected.len());
    }
}

#[test]
fn ids_are_not_used_twice() {
    let mut w = World::new(0);
    let mut highest = 0;
    for round in 0..4 {
        let mut trx = w.begun();
        let id = block_on(|| trx.assign_id()).unwrap();
        assert!(id > highest, "round {round}");
        w.write(&mut trx, b"k", Some(&[round])).unwrap();
        w.commit(&mut trx);
        for _ in 0..50 {
            trx.begin(Isolation::RepeatableRead, false);
            highest = block_on(|| trx.assign_id()).unwrap();
            block_on(|| trx.commit(FlushAtCommit::Lazy)).unwrap();
        }
        drop(trx);
        w.run_background();
        w = w.after_kill();
    }
}

#[test]
fn a_crash_in_the_middle_of_undoing_is_no_harm() {
    let w = World::new(0);
    let mut a = w.begun();
    for n in 0..40u8 {
        w.write(&mut a, &[n], Some(b"old")).unwrap();
    }
    w.commit(&mut a);
    let before = w.scan(&mut w.begun());
    a.begin(Isolation::RepeatableRead, false);
    for n in 20..60u8 {
        w.write(&mut a, &[n], if n % 3 == 0 { None } else { Some(b"new") })
            .unwrap();
    }
    flush(&w.store);
    a.vanish();
    let mut w = w.after_kill();
    for _ in 0..4 {
        assert_eq!(w.recovery.unfinished, 1);
        block_on(|| w.system.rollback_step(&w, 7)).unwrap();
        assert_eq!(w.scan(&mut w.begun()), before);
        flush(&w.store);
        w = w.after_kill();
    }
    w.run_background();
    assert_eq!(w.scan(&mut w.begun()), before);
    assert_eq!(w.entries().len(), 40);
    flush(&w.store);
    let w = w.after_kill();
    assert_eq!(w.recovery.unfinished, 0, "the end record is there");
}

#[test]
fn a_prepared_transaction_waits_for_its_end() {
    for commit in [true, false] {
        let w = World::new(0);
        let mut a = w.begun();
        for key in [b"a", b"b", b"d"] {
            w.write(&mut a, key, Some(b"1")).unwrap();
        }
        w.commit(&mut a);
        a.begin(Isolation::RepeatableRead, false);
        w.write(&mut a, b"a", Some(b"2")).unwrap();
        w.write(&mut a, b"b", None).unwrap();
        a.savepoint("s");
        w.write(&mut a, b"d", Some(b"2")).unwrap();
        block_on(|| a.rollback_to_savepoint("s", &w)).unwrap();
        w.write(&mut a, b"c", Some(b"2")).unwrap();
        let id = a.id();
        // The body of the record does not fit in a page.
        let about = vec![7; 50_000];
        let prepared = block_on(|| a.prepare(b"name", &about)).unwrap();
        assert!(!a.is_active() && prepared.id() == id);
        let before = rows(&[("a", "1"), ("b", "1"), ("d", "1")]);
        assert_eq!(w.scan(&mut w.begun()), before);
        // Its session goes on.
        a.begin(Isolation::RepeatableRead, false);
        w.write(&mut a, b"e", Some(b"1")).unwrap();
        w.commit(&mut a);
        w.run_background();
        drop((a, prepared));
        let w = w.after_crash(7);
        let w = w.after_kill();
        assert_eq!((w.recovery.unfinished, w.recovery.prepared), (0, 1));
        w.run_background();
        let before = rows(&[("a", "1"), ("b", "1"), ("d", "1"), ("e", "1")]);
        assert_eq!(w.scan(&mut w.begun()), before);
        let mut b = w.begun();
        assert!(matches!(
            w.try_write(&mut b, b"a", Some(b"3")),
            Err(Stop::Wait(_))
        ));
        drop(b);
        let found = w.system.take_recovered().pop().unwrap();
        assert_eq!((&*found.name, found.about), (&b"name"[..], about));
        assert_eq!(found.prepared.id(), id);
        let mut c = w.session();
        c.resume(found.prepared);
        if commit {
            w.commit(&mut c);
        } else {
            block_on(|| c.rollback(&w)).unwrap();
        }
        c.leave_resumed();
        let after = match commit {
            true => rows(&[("a", "2"), ("c", "2"), ("d", "1"), ("e", "1")]),
            false => before,
        };
        assert_eq!(w.scan(&mut w.begun()), after);
        drop(c);
        w.run_background();
        assert_eq!(w.entries().len(), after.len(), "purged");
        flush(&w.store);
        let w = w.after_kill();
        assert_eq!((w.recovery.unfinished, w.recovery.prepared), (0, 0));
        assert_eq!(w.scan(&mut w.begun()), after);
    }
}

/// prepared::Q2
#[test]
fn a_transaction_that_is_undone_in_part_is_not_prepared() {
    let w = World::new(0);
    let mut a = w.begun();
    for n in 0..40u8 {
        w.write(&mut a, &[n], Some(b"old")).unwrap();
    }
    w.commit(&mut a);
    let before = w.scan(&mut w.begun());
    a.begin(Isolation::RepeatableRead, false);
    for n in 0..40u8 {
        w.write(&mut a, &[n], Some(b"new")).unwrap();
    }
    let prepared = block_on(|| a.prepare(b"name", b"")).unwrap();
    a.resume(prepared);
    // The background undoes a part of it.
    drop(a);
    block_on(|| w.system.rollback_step(&w, 7)).unwrap();
    flush(&w.store);
    let w = w.after_kill();
    assert_eq!((w.recovery.unfinished, w.recovery.prepared), (1, 0));
    w.run_background();
    assert_eq!(w.scan(&mut w.begun()), before);
}

#[test]
fn a_prepared_transaction_without_changes_is_found() {
    let w = World::new(0);
    let mut a = w.session();
    a.begin(Isolation::RepeatableRead, true);
    drop(block_on(|| a.prepare(b"empty", b"")).unwrap());
    drop(a);
    let w = w.after_kill();
    assert_eq!((w.recovery.unfinished, w.recovery.prepared), (0, 1));
    let found = w.system.take_recovered().pop().unwrap();
    let mut b = w.session();
    b.resume(found.prepared);
    block_on(|| b.rollback(&w)).unwrap();
    drop(b);
    flush(&w.store);
    let w = w.after_kill();
    assert_eq!((w.recovery.unfinished, w.recovery.prepared), (0, 0));
}
