//! Changes that cannot be undone because their table is damaged.

use super::*;
use nfold_store::PageId;

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
    w.settle();
    assert_eq!(
        w.system.parked(),
        1,
        "nothing is tried before something has changed"
    );
    w.system.retry_parked();
    w.settle();
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
