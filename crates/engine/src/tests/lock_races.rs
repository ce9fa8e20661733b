//! Locking reads and unique checks beside a transaction that deletes a row and takes it back: what
//! it did counts only once it is committed, also where it came between a look at an entry and the
//! lock on it.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use super::*;

const ROUNDS: usize = 4_000;
/// The number of entries that a read locks before it checks them again. The last of them is the one
/// that is inserted and removed meanwhile.
const ROWS: i64 = 30;

fn begin(s: &mut EngineSession) {
    s.begin(TrxOptions {
        isolation: Isolation::RepeatableRead,
        read_only: false,
        consistent_snapshot: false,
    });
}

/// Rows of a range of an index, locked; `None` after a deadlock.
fn locked(
    s: &mut EngineSession,
    table: &Arc<Table>,
    index: usize,
    range: &KeyRange,
    lock: RowLock,
) -> Option<Vec<Row>> {
    s.statement_begin(Isolation::RepeatableRead, false);
    let spec = ReadSpec {
        index,
        lock,
        columns: vec![0, 1, 2, 3],
        ..ReadSpec::default()
    };
    let mut read = Read::range(table.clone(), spec, range, false);
    let mut batch = RowBatch::new();
    loop {
        match block(|| read.next(s, &mut batch)) {
            Ok(true) => {}
            Ok(false) => break,
            Err(e) => {
                assert!(matches!(e, EngineError::Deadlock), "{e}");
                return None;
            }
        }
    }
    Some(batch.iter().map(|image| decode(table, image)).collect())
}

fn key(table: &Table, id: i64) -> Vec<u8> {
    let mut key = Vec::new();
    let id = Value::Int(id);
    table
        .key_layout(0)
        .encode_values([id.as_ref()], &mut key)
        .unwrap();
    key
}

/// Deletes the last row and takes that back, over and over; `beside` runs meanwhile and says what
/// it counts.
fn beside_deletes(beside: impl Fn(&Db, &Arc<Table>, &AtomicBool) + Sync) {
    let db = Db::threaded();
    let table = db.table();
    let mut s = db.session();
    for id in 1..=ROWS {
        insert(&mut s, &table, &row(id, id, &format!("s{id}")));
    }
    commit(&mut s);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let other = scope.spawn(|| beside(&db, &table, &done));
        for _ in 0..ROUNDS {
            begin(&mut s);
            let last = KeyRange::prefix(&key(&table, ROWS));
            if let Some(found) = locked(&mut s, &table, 0, &last, RowLock::Exclusive) {
                assert_eq!(found.len(), 1);
                s.statement_begin(Isolation::RepeatableRead, false);
                let mut image = Vec::new();
                encode(&table, &found[0], &mut image);
                let mut op = DeleteOp::new(table.clone());
                op.row(&image, None);
                let deleted = block(|| s.delete(&mut op));
                assert!(
                    matches!(deleted, Ok(_) | Err(EngineError::Deadlock)),
                    "{deleted:?}"
                );
            }
            block(|| s.rollback()).unwrap();
        }
        done.store(true, Relaxed);
        other.join().unwrap();
    });
    assert_sound(&db.engine, &table);
    assert_eq!(all(&mut s, &table).len(), ROWS as usize);
}

#[test]
fn a_locking_read_misses_no_row_whose_delete_is_taken_back() {
    for lock in [RowLock::Shared, RowLock::Exclusive] {
        beside_deletes(|db, table, done| {
            let mut s = db.session();
            let k = table.def().index("k").unwrap();
            while !done.load(Relaxed) {
                begin(&mut s);
                let found = locked(&mut s, table, k, &KeyRange::all(), lock);
                // First: after a panic here, sessions that wait for this one would never end.
                block(|| s.rollback()).unwrap();
                assert!(found.is_none_or(|rows| rows.len() == ROWS as usize));
            }
        });
    }
}

#[test]
fn a_unique_key_is_taken_while_its_delete_may_be_taken_back() {
    beside_deletes(|db, table, done| {
        let mut s = db.session();
        let unique = table.def().index("s").unwrap();
        while !done.load(Relaxed) {
            begin(&mut s);
            s.statement_begin(Isolation::RepeatableRead, false);
            let mut op = InsertOp::new(table.clone());
            encode(table, &row(ROWS + 1, 9, &format!("s{ROWS}")), op.row());
            let outcome = block(|| s.insert(&mut op));
            block(|| s.rollback()).unwrap();
            match outcome {
                Ok(outcome) => assert_eq!(outcome, WriteOutcome::Duplicate { index: unique }),
                Err(e) => assert!(matches!(e, EngineError::Deadlock), "{e}"),
            }
        }
    });
}

/// Inserts a row that no other session uses, and commits. False: another session has locked its
/// gap.
fn try_insert(s: &mut EngineSession, table: &Arc<Table>, r: &Row) -> bool {
    s.statement_begin(Isolation::RepeatableRead, false);
    let mut op = InsertOp::new(table.clone());
    encode(table, r, op.row());
    match s.insert(&mut op) {
        Ok(outcome) => {
            assert_eq!(outcome, WriteOutcome::Done);
            commit(s);
            true
        }
        Err(Stop::Wait(_)) => {
            block(|| s.rollback()).unwrap();
            false
        }
        Err(Stop::Error(e)) => panic!("{e}"),
    }
}

/// locking::K7: a row that comes into a gap before the read has locked it is read, also behind the
/// last entry of a leaf and behind the last one of all.
#[test]
fn what_comes_before_a_gap_is_locked_is_read() {
    let long = |id| (id, Some(5), Some(format!("s{id}")), Some("x".repeat(300)));
    for index in [0, 2] {
        let db = Db::new();
        let table = db.table();
        let (mut s, mut other) = (db.session(), db.session());
        for id in 1..=600 {
            insert(&mut s, &table, &long(10 * id));
        }
        commit(&mut s);
        begin(&mut s);
        let range = if index == 0 {
            KeyRange {
                lo: Bound::Included(KeyBytes::from_slice(&key(&table, 5))),
                hi: Bound::Excluded(KeyBytes::from_slice(&key(&table, 6009))),
            }
        } else {
            let mut five = Vec::new();
            let values = [ValueRef::Int(5)];
            table
                .key_layout(2)
                .encode_values(values, &mut five)
                .unwrap();
            KeyRange::prefix(&five)
        };
        s.statement_begin(Isolation::RepeatableRead, false);
        let spec = ReadSpec {
            index,
            lock: RowLock::Exclusive,
            columns: vec![0, 1, 2, 3],
            ..ReadSpec::default()
        };
        let mut read = Read::range(table.clone(), spec, &range, false);
        let mut batch = RowBatch::new();
        let (mut came, mut last) = (0, 0);
        while block(|| read.next(&mut s, &mut batch)).unwrap() {
            let id = decode(&table, batch.row(batch.len() - 1)).0;
            if id != last && id % 10 == 0 && try_insert(&mut other, &table, &long(id + 5)) {
                came += 1;
            }
            last = id;
        }
        assert!(came > 10, "{came}");
        let found: Vec<i64> = batch.iter().map(|r| decode(&table, r).0).collect();
        let again = locked(&mut s, &table, index, &range, RowLock::Exclusive).unwrap();
        assert_eq!(found.len(), 600 + came);
        assert_eq!(found, again.iter().map(|r| r.0).collect::<Vec<_>>());
        assert!(!try_insert(&mut other, &table, &long(6008)));
        commit(&mut s);
        assert_sound(&db.engine, &table);
    }
}
