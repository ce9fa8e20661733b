//! Changes that cannot be undone because their table is damaged.

use super::*;
use nfold_store::{Disk, OpenMode, PAGE_SIZE, PageId};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The row under this key cannot be reached.
struct Damaged<'a>(&'a World, &'static [u8]);

impl RowApplier for Damaged<'_> {
    fn undo(&self, record: &UndoRecord, system: &TrxSystem) -> Step<()> {
        if record.key() != self.1 {
            return self.0.undo(record, system);
        }
        let (page, what) = (PageId { space: 1, page: 1 }, "for a test");
        let lsn = 0;
        Err(TxnError::Store(StoreError::Corrupt { page, lsn, what }).into())
    }

    fn purge(&self, record: &UndoRecord, system: &TrxSystem) -> Step<()> {
        self.0.purge(record, system)
    }

    fn give_up(&self, _: &UndoRecord, _: &TxnError) -> bool {
        true
    }
}

fn with_two_rows() -> (World, Trx) {
    let w = World::new(0);
    let mut a = w.begun();
    for key in [b"a", b"b", b"c"] {
        w.write(&mut a, key, Some(b"old")).unwrap();
    }
    w.commit(&mut a);
    a.begin(Isolation::RepeatableRead, false);
    (w, a)
}

#[test]
fn what_cannot_be_undone_stays_invisible_until_it_can() {
    let (w, mut a) = with_two_rows();
    let expected = rows(&[("a", "old"), ("b", "old"), ("c", "old")]);
    for key in [b"a", b"b", b"c"] {
        w.write(&mut a, key, Some(b"new")).unwrap();
    }
    block_on(|| a.rollback(&Damaged(&w, b"b"))).unwrap();
    assert!(!a.is_active() && a.id() == 0, "the session goes on");
    let mut after = w.begun();
    assert_eq!(w.scan(&mut after), expected);
    w.commit(&mut after);
    assert_eq!(w.current(b"a").unwrap().image, b"old");
    assert_eq!(w.current(b"b").unwrap().image, b"new");
    let status = w.system.status();
    assert_eq!((status.rolling_back, status.parked), (0, 1));
    // Others may have changed what is undone already.
    let mut b = w.begun();
    w.write(&mut b, b"c", Some(b"later")).unwrap();
    w.commit(&mut b);
    w.system.retry_parked();
    assert_eq!(w.system.undoing(), 1);
    let damaged = Damaged(&w, b"b");
    while block_on(|| w.system.rollback_step(&damaged, 10)).unwrap() {}
    assert_eq!((w.system.undoing(), w.system.parked()), (0, 1));
    w.run_background();
    assert_eq!(
        w.system.parked(),
        1,
        "nothing is tried before something has changed"
    );
    w.system.retry_parked();
    w.run_background();
    let status = w.system.status();
    assert_eq!((status.rolling_back, status.parked), (0, 0));
    assert_eq!(status.oldest_active_id, status.next_id);
    let mut after = w.begun();
    let expected = rows(&[("a", "old"), ("b", "old"), ("c", "later")]);
    assert_eq!(w.scan(&mut after), expected);
}

#[test]
fn a_statement_that_cannot_be_taken_back_is_never_committed() {
    let (w, mut a) = with_two_rows();
    w.write(&mut a, b"a", Some(b"first")).unwrap();
    let statement = a.mark();
    w.write(&mut a, b"b", Some(b"second")).unwrap();
    w.write(&mut a, b"c", Some(b"second")).unwrap();
    assert!(block_on(|| a.rollback_to_mark(statement, &Damaged(&w, b"b"))).is_err());
    assert!(block_on(|| a.commit(FlushAtCommit::Durable)).is_err());
    assert!(!a.is_committed());
    block_on(|| a.rollback(&Damaged(&w, b"b"))).unwrap();
    let mut after = w.begun();
    let expected = rows(&[("a", "old"), ("b", "old"), ("c", "old")]);
    assert_eq!(w.scan(&mut after), expected);
    // The next transaction of the session has nothing to do with it.
    a.begin(Isolation::RepeatableRead, false);
    w.write(&mut a, b"a", Some(b"third")).unwrap();
    w.commit(&mut a);
    assert_eq!(w.system.parked(), 1);
}

/// The disk does not give out the page of this row, for as long as `failing`.
struct Unreadable<'a> {
    world: &'a World,
    key: &'static [u8],
    failing: AtomicBool,
    attempts: AtomicUsize,
}

impl Unreadable<'_> {
    fn check(&self, record: &UndoRecord) -> Step<()> {
        if record.key() == self.key && self.failing.load(Ordering::Relaxed) {
            self.attempts.fetch_add(1, Ordering::Relaxed);
            let error = std::io::Error::other("for a test");
            return Err(TxnError::Store(StoreError::io(&error, "t.nfd: read")).into());
        }
        Ok(())
    }
}

impl RowApplier for Unreadable<'_> {
    fn undo(&self, record: &UndoRecord, system: &TrxSystem) -> Step<()> {
        self.check(record)?;
        self.world.undo(record, system)
    }

    fn purge(&self, record: &UndoRecord, system: &TrxSystem) -> Step<()> {
        self.check(record)?;
        self.world.purge(record, system)
    }

    fn give_up(&self, _: &UndoRecord, _: &TxnError) -> bool {
        false
    }
}

#[test]
fn purge_passes_by_what_cannot_be_read_and_comes_back_rarely() {
    let w = World::new(0);
    let mut a = w.begun();
    let keys = [b"a", b"b", b"c", b"d"];
    for key in keys {
        w.write(&mut a, key, Some(b"old")).unwrap();
    }
    w.commit(&mut a);
    for key in keys {
        a.begin(Isolation::RepeatableRead, false);
        w.write(&mut a, key, None).unwrap();
        w.write(&mut a, b"b", Some(b"again")).unwrap();
        w.write(&mut a, b"b", None).unwrap();
        w.commit(&mut a);
    }
    let applier = Unreadable {
        world: &w,
        key: b"b",
        failing: AtomicBool::new(true),
        attempts: AtomicUsize::new(0),
    };
    let step = || block_on(|| w.system.purge_step(&applier, 10)).unwrap();
    for _ in 0..10 {
        step();
    }
    assert_eq!(w.system.status().history_length, 5, "all of them changed b");
    // Those that commit later are purged all the same.
    a.begin(Isolation::RepeatableRead, false);
    w.write(&mut a, b"e", Some(b"short")).unwrap();
    w.write(&mut a, b"e", None).unwrap();
    w.commit(&mut a);
    step();
    assert_eq!(w.system.status().history_length, 5);
    assert!(w.current(b"e").is_none() && w.current(b"b").is_some());
    let before = applier.attempts.load(Ordering::Relaxed);
    for _ in 0..2000 {
        step();
    }
    let attempts = applier.attempts.load(Ordering::Relaxed) - before;
    assert!(
        (4..=40).contains(&attempts),
        "{attempts} attempts in 2,000 steps"
    );
    applier.failing.store(false, Ordering::Relaxed);
    for _ in 0..4200 {
        step();
    }
    let status = w.system.status();
    assert_eq!((status.history_length, status.undo_pages_free), (0, 0));
    assert_eq!(w.entries(), []);
}

#[test]
fn a_rollback_that_cannot_read_lets_the_others_go_on() {
    let w = World::new(0);
    let (mut a, mut b) = (w.begun(), w.begun());
    w.write(&mut a, b"a", Some(b"new")).unwrap();
    w.write(&mut b, b"b", Some(b"new")).unwrap();
    drop((a, b));
    assert_eq!(w.system.undoing(), 2);
    let applier = Unreadable {
        world: &w,
        key: b"a",
        failing: AtomicBool::new(true),
        attempts: AtomicUsize::new(0),
    };
    for _ in 0..10 {
        drop(block_on(|| w.system.rollback_step(&applier, 10)));
    }
    assert_eq!(w.system.undoing(), 1);
    assert!(w.current(b"a").is_some() && w.current(b"b").is_none());
    applier.failing.store(false, Ordering::Relaxed);
    w.run_background();
    assert_eq!(w.entries(), []);
}

/// Flips a bit in each of the pages of the undo file that are in use, one at a time, and gives the
/// disks.
fn damaged_undo_pages(disk: &SimDisk) -> Vec<(u64, SimDisk)> {
    let file = disk.open("undo.nfd", OpenMode::Existing).unwrap();
    let pages = file.len().unwrap() / PAGE_SIZE as u64;
    let used = |page: &u64| {
        let mut kind = [0u8; 6];
        file.read_at(page * PAGE_SIZE as u64, &mut kind).unwrap();
        kind != [0; 6]
    };
    let used: Vec<u64> = (1..pages).filter(used).collect();
    let damaged = |page: u64| {
        let image = disk.kill();
        assert!(image.flip_bit("undo.nfd", page * PAGE_SIZE as u64 + 200));
        image.remove("nfold.doublewrite").unwrap(); // it would put it right
        (page, image)
    };
    used.into_iter().map(damaged).collect()
}

fn try_open(disk: SimDisk, tree: Tree) -> Result<World, TxnError> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        World::try_open(disk, 0, Some(tree))
    }))
    .expect("damage is reported, not panicked over")
}

#[test]
fn a_needed_damaged_undo_page_is_named_and_refused() {
    let (w, mut a) = with_two_rows();
    for n in 0..400u32 {
        let key = (n % 200).to_be_bytes();
        w.write(&mut a, &key, Some(&[7; 300])).unwrap();
    }
    w.store.checkpoint().unwrap();
    std::mem::forget(a);
    let images = damaged_undo_pages(&w.disk);
    assert!(images.len() > 1);
    for (page, image) in images {
        let error = try_open(image, w.tree.tree()).err().unwrap().to_string();
        let offset = format!("offset {}", page * PAGE_SIZE as u64);
        assert!(
            error.contains("undo.nfd") && error.contains(&offset),
            "{error}"
        );
    }
}

#[test]
fn a_damaged_undo_page_after_a_clean_shutdown_is_garbage() {
    let (w, mut a) = with_two_rows();
    for n in 0..400u32 {
        let key = (n % 200).to_be_bytes();
        w.write(&mut a, &key, Some(&[7; 300])).unwrap();
    }
    w.commit(&mut a);
    a.begin(Isolation::RepeatableRead, false);
    w.write(&mut a, b"a", None).unwrap();
    w.commit(&mut a);
    let mut after = w.begun();
    let expected = w.scan(&mut after);
    w.commit(&mut after);
    drop((a, after));
    w.system.rest().unwrap();
    w.store.shutdown().unwrap();
    let images = damaged_undo_pages(&w.disk);
    assert!(images.len() > 1);
    let tree = w.tree.tree();
    for (page, image) in images {
        let mut again = try_open(image, tree).ok().unwrap();
        assert_eq!(again.recovery.unfinished, 0, "page {page}");
        let mut reader = again.begun();
        assert_eq!(again.scan(&mut reader), expected);
        again.commit(&mut reader);
        again.run_background();
        // New transactions are given ids that say: not quiet any more.
        let mut b = again.begun();
        again.write(&mut b, b"z", Some(b"unfinished")).unwrap();
        again.store.checkpoint().unwrap();
        std::mem::forget(b);
        let error = try_open(again.disk.kill(), tree);
        let error = error.err().unwrap().to_string();
        assert!(error.contains("undo.nfd"), "{error}");
        again = World::open(w.disk.kill(), 0, Some(tree));
        assert_eq!(again.recovery.unfinished, 0);
    }
}
