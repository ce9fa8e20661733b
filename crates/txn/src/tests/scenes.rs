//! Short stories with known ends.

use super::*;
use crate::locks::RELEASE_SLICE;
use std::sync::atomic::{AtomicBool, Ordering};

#[test]
fn repeatable_read_keeps_its_state_and_read_committed_moves_on() {
    let w = World::new(0);
    let mut a = w.begun();
    w.write(&mut a, b"k", Some(b"one")).unwrap();
    let mut fixed = w.begun();
    let mut moving = w.session();
    moving.begin(Isolation::ReadCommitted, false);
    assert_eq!(w.read(&mut fixed, b"k"), None, "not committed");
    assert_eq!(w.read(&mut a, b"k"), Some(b"one".to_vec()), "its own");
    w.commit(&mut a);
    assert_eq!(w.read(&mut fixed, b"k"), None);
    assert_eq!(w.read(&mut moving, b"k"), Some(b"one".to_vec()));
    a.begin(Isolation::RepeatableRead, false);
    w.write(&mut a, b"k", Some(b"two")).unwrap();
    w.write(&mut a, b"k", Some(b"three")).unwrap();
    w.commit(&mut a);
    assert_eq!(
        w.read(&mut moving, b"k"),
        Some(b"one".to_vec()),
        "the same statement"
    );
    moving.end_statement();
    assert_eq!(w.read(&mut moving, b"k"), Some(b"three".to_vec()));
    assert_eq!(w.read(&mut fixed, b"k"), None);
    assert_eq!(w.commit(&mut fixed), 0, "it changed nothing");
    w.commit(&mut moving);
    w.run_background();
    assert_eq!(w.system.status().history_length, 0);
}

#[test]
fn long_rollback_gives_turns() {
    let w = World::new(0);
    let mut a = w.begun();
    let changes = 3 * crate::turn::RECORDS;
    for n in 0..changes {
        w.write(&mut a, format!("{n:06}").as_bytes(), Some(b"new"))
            .unwrap();
    }
    let mut turns = 0;
    let counted = |turns: &mut u32, step: Step<()>| {
        *turns += u32::from(matches!(step, Err(Stop::Wait(_))));
        step
    };
    block_on(|| counted(&mut turns, a.rollback_to_mark(changes / 2, &w))).unwrap();
    assert_eq!(turns, 1);
    assert_eq!(w.entries().len(), changes as usize / 2);
    turns = 0;
    block_on(|| counted(&mut turns, a.rollback(&w))).unwrap();
    assert_eq!(turns, 1);
    assert!(w.entries().is_empty() && !a.is_active());
}

#[test]
fn release_of_many_locks_gives_turns() {
    let w = World::new(0);
    let places = 5 * RELEASE_SLICE / 2;
    for commits in [true, false] {
        let mut a = w.begun();
        w.write(&mut a, b"row", Some(b"new")).unwrap();
        for n in 0..places {
            let key = format!("{n:06}");
            let key = LockKey::Key(key.as_bytes());
            let request = LockRequest::new(7, key, LockMode::X, LockKind::Record);
            a.lock(&request).unwrap();
        }
        let mut left = vec![w.system.locks().locks().len()];
        block_on(|| {
            let step = match commits {
                true => a.commit(FlushAtCommit::Lazy).map(drop),
                false => a.rollback(&w),
            };
            left.push(w.system.locks().locks().len());
            assert_eq!(step.is_ok(), !a.is_active());
            step
        })
        .unwrap();
        // The commit may also have waited for the log.
        left.dedup();
        let expected = [
            places,
            places - RELEASE_SLICE,
            places - 2 * RELEASE_SLICE,
            0,
        ];
        assert_eq!(left, expected);
    }
}

#[test]
fn rollback_puts_everything_back() {
    let w = World::new(0);
    let mut a = w.begun();
    for key in ["a", "b", "c"] {
        w.write(&mut a, key.as_bytes(), Some(b"old")).unwrap();
    }
    w.commit(&mut a);
    a.begin(Isolation::RepeatableRead, false);
    let mut reader = w.begun();
    w.write(&mut a, b"a", Some(b"new")).unwrap();
    w.write(&mut a, b"b", None).unwrap();
    w.write(&mut a, b"b", Some(b"again")).unwrap();
    w.write(&mut a, b"d", Some(b"fresh")).unwrap();
    let expected = rows(&[("a", "old"), ("b", "old"), ("c", "old")]);
    assert_eq!(w.scan(&mut reader), expected);
    w.rollback(&mut a);
    assert_eq!(w.scan(&mut reader), expected);
    assert_eq!(w.entries().len(), 3, "the insert is gone");
    let mut after = w.begun();
    assert_eq!(w.scan(&mut after), expected);
    assert!(!a.is_active() && a.id() == 0);
}

#[test]
fn savepoints_nest_and_undone_changes_are_not_purged() {
    let w = World::new(0);
    let mut a = w.begun();
    w.write(&mut a, b"k", Some(b"v")).unwrap();
    w.commit(&mut a);
    a.begin(Isolation::RepeatableRead, false);
    w.write(&mut a, b"x", Some(b"1")).unwrap();
    a.savepoint("one");
    w.write(&mut a, b"k", None).unwrap();
    a.savepoint("two");
    w.write(&mut a, b"y", Some(b"2")).unwrap();
    block_on(|| a.rollback_to_savepoint("ONE", &w)).unwrap();
    assert_eq!(w.scan(&mut a), rows(&[("k", "v"), ("x", "1")]));
    assert_eq!(
        a.release_savepoint("two"),
        Err(TxnError::NoSuchSavepoint),
        "forgotten by the rollback"
    );
    let statement = a.mark();
    w.write(&mut a, b"z", Some(b"3")).unwrap();
    block_on(|| a.rollback_to_mark(statement, &w)).unwrap();
    w.write(&mut a, b"z", Some(b"4")).unwrap();
    a.release_savepoint("one").unwrap();
    w.commit(&mut a);
    w.run_background();
    let mut b = w.begun();
    assert_eq!(w.scan(&mut b), rows(&[("k", "v"), ("x", "1"), ("z", "4")]));
}

/// Undoes rows as the world does, but only while `works`.
struct Faulty<'w> {
    world: &'w World,
    works: AtomicBool,
}

impl RowApplier for Faulty<'_> {
    fn undo(&self, record: &UndoRecord, system: &TrxSystem) -> Step<()> {
        match self.works.load(Ordering::Relaxed) {
            true => self.world.undo(record, system),
            false => Err(TxnError::LockNotAvailable.into()),
        }
    }

    fn purge(&self, record: &UndoRecord, system: &TrxSystem) -> Step<()> {
        self.world.purge(record, system)
    }

    fn give_up(&self, record: &UndoRecord, error: &TxnError) -> bool {
        self.world.give_up(record, error)
    }
}

#[test]
fn commit_needs_failed_rollbacks_to_be_repeated() {
    let w = World::new(0);
    let faulty = Faulty {
        world: &w,
        works: false.into(),
    };
    let mut a = w.begun();
    w.write(&mut a, b"x", Some(b"1")).unwrap();
    let statement = a.mark();
    w.write(&mut a, b"y", Some(b"2")).unwrap();
    let failed = Err(TxnError::LockNotAvailable);
    let undone = block_on(|| a.rollback_to_mark(statement, &faulty));
    assert_eq!(undone, failed);
    faulty.works.store(true, Ordering::Relaxed);
    // The rollback of a later statement does not undo the rest of the first one.
    let later = a.mark();
    w.write(&mut a, b"z", Some(b"3")).unwrap();
    block_on(|| a.rollback_to_mark(later, &faulty)).unwrap();
    let committed = block_on(|| a.commit(FlushAtCommit::Lazy)).map(drop);
    assert_eq!(committed, failed);
    block_on(|| a.rollback_to_mark(statement, &faulty)).unwrap();
    w.commit(&mut a);
    assert_eq!(w.scan(&mut w.begun()), rows(&[("x", "1")]));
}

#[test]
fn purge_removes_deleted_rows_that_no_snapshot_sees() {
    let w = World::new(0);
    let mut a = w.begun();
    w.write(&mut a, b"k", Some(b"v")).unwrap();
    w.commit(&mut a);
    let mut reader = w.system.session(42).unwrap();
    reader.begin(Isolation::RepeatableRead, true);
    assert_eq!(w.read(&mut reader, b"k"), Some(b"v".to_vec()));
    a.begin(Isolation::RepeatableRead, false);
    w.write(&mut a, b"k", None).unwrap();
    w.commit(&mut a);
    w.run_background();
    assert_eq!(w.read(&mut reader, b"k"), Some(b"v".to_vec()));
    let status = w.system.status();
    assert_eq!(status.oldest_reader.map(|r| r.session), Some(42), "named");
    assert!(status.history_length > 0);
    w.commit(&mut reader);
    w.run_background();
    assert_eq!(w.current(b"k"), None);
    assert_eq!(w.system.status().history_length, 0);
}

#[test]
fn a_rollback_onto_a_purged_deletion_removes_the_row() {
    let w = World::new(0);
    let mut a = w.begun();
    w.write(&mut a, b"k", Some(b"v")).unwrap();
    w.commit(&mut a);
    a.begin(Isolation::RepeatableRead, false);
    w.write(&mut a, b"k", None).unwrap();
    w.commit(&mut a);
    // Brought back before purge comes by; purge passes over it.
    a.begin(Isolation::RepeatableRead, false);
    w.write(&mut a, b"k", Some(b"w")).unwrap();
    w.run_background();
    w.rollback(&mut a);
    assert_eq!(w.current(b"k"), None, "nobody else would remove it");
}

#[test]
fn writers_wait_for_each_other() {
    let w = World::new(0);
    let mut a = w.begun();
    w.write(&mut a, b"k", Some(b"v")).unwrap();
    let mut b = w.begun();
    let Err(Stop::Wait(wait)) = w.try_write(&mut b, b"k", Some(b"w")) else {
        panic!("must wait")
    };
    let mut c = w.begun();
    let nowait = LockRequest::new(7, LockKey::Key(b"k"), LockMode::S, LockKind::Record)
        .implicit_holder(Some(a.id()))
        .on_conflict(crate::locks::OnConflict::NoWait);
    assert!(matches!(
        c.lock(&nowait),
        Err(Stop::Error(TxnError::LockNotAvailable))
    ));
    w.commit(&mut a);
    wait.block();
    assert!(w.write(&mut b, b"k", Some(b"w")).unwrap());
    w.commit(&mut b);
    w.commit(&mut c);
    assert!(w.system.locks().locks().is_empty());
}

#[test]
fn a_deadlock_victim_rolls_back_and_the_other_goes_on() {
    let w = World::new(0);
    let (mut a, mut b) = (w.begun(), w.begun());
    w.write(&mut a, b"x", Some(b"a")).unwrap();
    w.write(&mut a, b"z", Some(b"a")).unwrap();
    w.write(&mut b, b"y", Some(b"b")).unwrap();
    let Err(Stop::Wait(wait)) = w.try_write(&mut a, b"y", Some(b"a")) else {
        panic!("must wait")
    };
    assert_eq!(
        w.write(&mut b, b"x", Some(b"b")),
        Err(TxnError::Deadlock),
        "b has changed less"
    );
    w.rollback(&mut b);
    wait.block();
    w.write(&mut a, b"y", Some(b"a")).unwrap();
    w.commit(&mut a);
    assert_eq!(
        w.scan(&mut w.begun()),
        rows(&[("x", "a"), ("y", "a"), ("z", "a")])
    );
}

#[test]
fn long_bodies_and_many_pages_come_and_go() {
    let w = World::new(0);
    let mut a = w.begun();
    let mut reader = w.begun();
    let big = vec![7u8; 5000];
    let wide_key = vec![b'k'; 100];
    w.write(&mut a, &wide_key, Some(&big)).unwrap();
    w.commit(&mut a);
    assert_eq!(w.read(&mut reader, &wide_key), Some(big.clone()));
    for n in 0..200u8 {
        a.begin(Isolation::RepeatableRead, false);
        w.write(&mut a, &wide_key, Some(&vec![n; 4000])).unwrap();
        w.commit(&mut a);
    }
    assert_eq!(
        w.read(&mut reader, &wide_key),
        Some(big),
        "200 versions back"
    );
    assert!(w.system.status().undo_pages > 40);
    w.commit(&mut reader);
    w.run_background();
    assert!(
        w.system.status().undo_pages <= 3,
        "only the streams' current pages are left: {:?}",
        w.system.status()
    );
    let size = w.store.space_pages(w.system.undo_spaces()[0]).unwrap();
    for n in 0..200u8 {
        a.begin(Isolation::RepeatableRead, false);
        w.write(&mut a, &wide_key, Some(&vec![n; 4000])).unwrap();
        w.commit(&mut a);
        w.run_background();
    }
    assert!(
        w.store.space_pages(w.system.undo_spaces()[0]).unwrap() <= size,
        "freed pages are used again"
    );
}

/// Bodies beyond a page: tree entries cannot be that long, so this talks to the log itself.
#[test]
fn bodies_beyond_a_page_use_overflow_pages() {
    let w = World::new(0);
    let mut records = Vec::new();
    let mut a = w.begun();
    a.assign_id().unwrap();
    for len in [
        0usize,
        1,
        16000,
        16247,
        16248,
        16249,
        40000,
        crate::undo::MAX_BODY - 3,
    ] {
        let image: Vec<u8> = (0..len).map(|n| (n * 7 + len) as u8).collect();
        let change = RowChange {
            kind: UndoKind::Update,
            table_id: TABLE,
            key: b"key",
            old: OldVersion {
                trx_id: 3,
                undo: UndoPtr::NONE,
                flags: 5,
            },
            image: &image,
            quiet: false,
        };
        let mut mtr = w.store.mtr();
        let mut prep = a.prepare_undo(&mut mtr, change.body_len()).unwrap();
        records.push((a.append_undo(&mut mtr, &mut prep, &change), image));
        mtr.commit();
    }
    let mut out = UndoRecord::default();
    for (ptr, image) in &records {
        block_on(|| w.system.undo().read(*ptr, a.id(), &mut out)).unwrap();
        assert_eq!(
            (out.key(), out.image(), out.old.flags),
            (&b"key"[..], &image[..], 5)
        );
        assert!(
            block_on(|| w.system.undo().read(*ptr, a.id() + 1, &mut out)).is_err(),
            "another's record"
        );
    }
    let mut mtr = w.store.mtr();
    let too_long = a.prepare_undo(&mut mtr, crate::undo::MAX_BODY + 1);
    assert!(matches!(
        too_long,
        Err(Stop::Error(TxnError::TooLarge { .. }))
    ));
    drop(mtr);
    let id = a.id();
    w.commit(&mut a);
    let used = w.system.status().undo_pages;
    let w = w.after_kill();
    for (ptr, image) in &records {
        block_on(|| w.system.undo().read(*ptr, id, &mut out)).unwrap();
        assert_eq!(out.image(), &image[..]);
    }
    assert_eq!(w.recovery.undo_pages, used);
    w.run_background();
    assert_eq!(w.system.status().undo_pages, 0);
    assert!(
        block_on(|| w.system.undo().read(records[0].0, id, &mut out)).is_err(),
        "gone"
    );
}

#[test]
fn a_dropped_session_is_undone_in_the_background() {
    let w = World::new(0);
    let mut a = w.begun();
    w.write(&mut a, b"k", Some(b"v")).unwrap();
    let writer = &w.system.locks().owners()[0];
    assert_eq!(
        (writer.trx_id, writer.session, writer.changes),
        (a.id(), 1, 1)
    );
    drop(a);
    let mut b = w.begun();
    let Err(Stop::Wait(wait)) = w.try_write(&mut b, b"k", Some(b"w")) else {
        panic!("the lock is still there")
    };
    w.run_background();
    wait.block();
    assert!(
        !w.write(&mut b, b"k", Some(b"w")).unwrap(),
        "the insert was undone"
    );
}

#[test]
fn a_read_only_transaction_changes_nothing() {
    let w = World::new(0);
    let mut a = w.session();
    a.begin(Isolation::RepeatableRead, true);
    assert_eq!(w.write(&mut a, b"k", Some(b"v")), Err(TxnError::ReadOnly));
    assert_eq!(w.commit(&mut a), 0);
}

/// Notes which changes purge asks about.
#[derive(Default)]
struct AskedChanges(std::sync::Mutex<Vec<u32>>);

impl RowApplier for AskedChanges {
    fn undo(&self, _: &UndoRecord, _: &TrxSystem) -> Step<()> {
        Ok(())
    }

    fn purge(&self, record: &UndoRecord, _: &TrxSystem) -> Step<()> {
        assert_eq!((record.key(), record.image()), (&b"key"[..], &b"old"[..]));
        self.0.lock().unwrap().push(record.undo_no);
        Ok(())
    }

    fn give_up(&self, _: &UndoRecord, _: &TxnError) -> bool {
        false
    }
}

impl AskedChanges {
    fn about(&self, w: &World) -> Vec<u32> {
        while block_on(|| w.system.purge_step(self, 10)).unwrap().more {}
        assert_eq!(w.system.status().history_length, 0);
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

#[test]
fn purge_asks_only_about_changes_that_leave_something_behind() {
    let w = World::new(0);
    let asked = AskedChanges::default();
    let cases: [(&[bool], &[u32]); 4] = [
        (&[true, true, true], &[]),
        (&[true, false, true], &[2]),
        (&[false, true, false], &[3, 1]),
        (&[true], &[]),
    ];
    for (quiet, loud) in cases {
        let mut a = w.begun();
        a.assign_id().unwrap_or_else(|_| panic!("an id"));
        for quiet in quiet {
            let change = RowChange {
                kind: UndoKind::Update,
                table_id: TABLE,
                key: b"key",
                old: OldVersion {
                    trx_id: 3,
                    undo: UndoPtr::NONE,
                    flags: 0,
                },
                image: b"old",
                quiet: *quiet,
            };
            let mut mtr = w.store.mtr();
            let mut prep = a.prepare_undo(&mut mtr, change.body_len()).unwrap();
            a.append_undo(&mut mtr, &mut prep, &change);
            mtr.commit();
        }
        w.commit(&mut a);
        assert_eq!(asked.about(&w), loud);
    }
    // What was not freed is purged once more after a kill, by what the records say.
    let w = w.after_kill();
    let again = asked.about(&w);
    assert!(again.iter().all(|no| [1, 2, 3].contains(no)), "{again:?}");
    assert_eq!(again, [2, 3, 1], "in order of the transactions");
}
