//! Rows with values on overflow pages: how they are read, and how an update that leaves them alone
//! shares them.

use super::*;
use crate::error::lift;
use crate::overflow;
use crate::record::RowHeader;
use nfold_types::row::{OverflowPointer, RawField, RowLayout};

const LONG: usize = 50_000;

pub(super) fn long(id: i64, k: i64, letter: &str) -> Row {
    let text = letter.repeat(LONG);
    (id, Some(k), Some(format!("s{id}")), Some(text))
}

/// A table with rows of these ids; `k` is the id.
pub(super) fn filled(db: &Db, s: &mut EngineSession, ids: std::ops::Range<i64>) -> Arc<Table> {
    let table = db.table();
    for id in ids {
        assert_eq!(insert(s, &table, &long(id, id, "a")), WriteOutcome::Done);
    }
    commit(s);
    table
}

/// The chains of the newest version of a row.
pub(super) fn chains(table: &Table, id: i64) -> Vec<OverflowPointer> {
    let (mut key, mut value) = (Vec::new(), Vec::new());
    let values = [ValueRef::Int(id)];
    table.key_layout(0).encode_values(values, &mut key).unwrap();
    let tree = &table.index(0).tree;
    assert!(block(|| tree.get(table.store(), &key, &mut value).map_err(lift)).unwrap());
    let (_, image) = RowHeader::split(&value).unwrap();
    overflow::pointers(table.layout(), image)
}

/// Sets column `k`, or the id, of a row whose long column is not read.
fn set(s: &mut EngineSession, table: &Arc<Table>, id: i64, column: usize, value: i64) {
    s.statement_begin(Isolation::RepeatableRead, false);
    let mut points = EqualityKeys::new();
    let values = [ValueRef::Int(id)];
    points.push_with(|out| table.key_layout(0).encode_values(values, out).unwrap());
    let spec = ReadSpec {
        lock: RowLock::Exclusive,
        columns: vec![0, 1, 2],
        ..ReadSpec::default()
    };
    let mut read = Read::points(table.clone(), spec, points);
    let mut batch = RowBatch::new();
    while block(|| read.next(s, &mut batch)).unwrap() {}
    assert!(RowLayout::has_external(batch.row(0)));
    let mut op = UpdateOp::new(table.clone());
    let changed = |c| (c == column).then_some(ValueRef::Int(value));
    let new = op.row(batch.row(0), None);
    let layout = table.layout();
    layout.encode_changed(batch.row(0), changed, new).unwrap();
    assert_eq!(block(|| s.update(&mut op)).unwrap(), WriteOutcome::Done);
    block(|| s.statement_end(true)).unwrap();
}

#[test]
fn update_of_another_column_shares_the_chain() {
    let db = Db::new();
    let mut s = db.session();
    let table = filled(&db, &mut s, 1..2);
    let before = chains(&table, 1);
    let mut old = db.session();
    old.begin(TrxOptions {
        isolation: Isolation::RepeatableRead,
        read_only: false,
        consistent_snapshot: true,
    });
    for k in 2..5 {
        set(&mut s, &table, 1, 1, k);
        commit(&mut s);
    }
    assert_eq!(chains(&table, 1), before);
    assert_eq!(all(&mut old, &table), [long(1, 1, "a")]);
    // Another value ends the chain; the snapshot reads it still.
    update(&mut s, &table, 1, &long(1, 5, "b"));
    commit(&mut s);
    assert_ne!(chains(&table, 1), before);
    while db.engine.step_background().unwrap() {}
    assert_eq!(all(&mut old, &table), [long(1, 1, "a")]);
    commit(&mut old);
    assert_purged(&db.engine, &table);
    assert_eq!(all(&mut s, &table), [long(1, 5, "b")]);
}

#[test]
fn rollback_keeps_a_shared_chain() {
    let db = Db::new();
    let mut s = db.session();
    let table = filled(&db, &mut s, 1..2);
    set(&mut s, &table, 1, 1, 7);
    block(|| s.rollback()).unwrap();
    assert_purged(&db.engine, &table);
    assert_eq!(all(&mut s, &table), [long(1, 1, "a")]);
    // A chain that the same transaction has written, shared by its second change.
    update(&mut s, &table, 1, &long(1, 1, "b"));
    set(&mut s, &table, 1, 1, 8);
    block(|| s.rollback()).unwrap();
    assert_purged(&db.engine, &table);
    assert_eq!(all(&mut s, &table), [long(1, 1, "a")]);
    delete(&mut s, &table, 1);
    commit(&mut s);
    assert_purged(&db.engine, &table);
}

#[test]
fn shared_chain_survives_a_crash() {
    let db = Db::new();
    let mut s = db.session();
    let table = filled(&db, &mut s, 1..3);
    set(&mut s, &table, 1, 1, 7);
    commit(&mut s);
    set(&mut s, &table, 2, 1, 9); // unfinished
    drop((s, table));
    let db = db.crash();
    let (mut s, table) = (db.session(), db.find("t"));
    assert_purged(&db.engine, &table);
    assert_eq!(all(&mut s, &table), [long(1, 7, "a"), long(2, 2, "a")]);
}

#[test]
fn row_under_another_key_gets_a_chain_of_its_own() {
    let db = Db::new();
    let mut s = db.session();
    let table = filled(&db, &mut s, 1..2);
    let before = chains(&table, 1);
    set(&mut s, &table, 1, 0, 3);
    commit(&mut s);
    assert_ne!(chains(&table, 3), before);
    assert_purged(&db.engine, &table);
    let (_, k, text, value) = long(1, 1, "a");
    assert_eq!(all(&mut s, &table), [(3, k, text, value)]);
}

#[test]
fn purge_frees_a_chain_of_versions_of_one_transaction() {
    let db = Db::new();
    let mut s = db.session();
    let table = filled(&db, &mut s, 1..3);
    set(&mut s, &table, 1, 1, 7);
    set(&mut s, &table, 2, 1, 7);
    set(&mut s, &table, 2, 1, 8);
    delete(&mut s, &table, 1);
    update(&mut s, &table, 2, &long(2, 9, "b"));
    commit(&mut s);
    assert_purged(&db.engine, &table);
    assert_eq!(all(&mut s, &table), [long(2, 9, "b")]);
}

/// Purge needs the keys of earlier versions.
#[test]
fn chain_of_an_indexed_column_is_not_shared() {
    let db = Db::new();
    let mut s = db.session();
    let mut spec = spec("t", true);
    spec.indexes.insert(0, secondary("b", 3, Some(12), false));
    let def = db.engine.create_table(spec).unwrap();
    let table = db.engine.table(def.id).unwrap();
    assert_eq!(insert(&mut s, &table, &long(1, 1, "a")), WriteOutcome::Done);
    commit(&mut s);
    let before = chains(&table, 1);
    set(&mut s, &table, 1, 1, 7);
    assert_ne!(chains(&table, 1), before);
    delete(&mut s, &table, 1);
    commit(&mut s);
    assert_purged(&db.engine, &table);
}

#[test]
fn chain_of_another_row_is_refused() {
    let db = Db::new();
    let mut s = db.session();
    let table = filled(&db, &mut s, 1..3);
    let (mut one, mut two) = (Vec::new(), Vec::new());
    encode(&table, &long(1, 1, "a"), &mut one);
    let layout = table.layout();
    let other = chains(&table, 2)[0];
    let external = |_, field| match field {
        RawField::Var(bytes) if bytes.len() == LONG => RawField::External(other),
        field => field,
    };
    layout.rewrite(&one, &mut two, external).unwrap();
    s.statement_begin(Isolation::RepeatableRead, false);
    let mut op = UpdateOp::new(table.clone());
    op.row(&one, None).extend(two);
    assert!(block(|| s.update(&mut op)).is_err());
    block(|| s.statement_end(false)).unwrap();
    block(|| s.rollback()).unwrap();
    assert_purged(&db.engine, &table);
}

#[test]
fn long_rows_are_handed_over_few_at_a_time() {
    let db = Db::new();
    let mut s = db.session();
    let table = filled(&db, &mut s, 0..40);
    for reverse in [false, true] {
        s.statement_begin(Isolation::RepeatableRead, false);
        let spec = ReadSpec {
            columns: vec![0, 3],
            ..ReadSpec::default()
        };
        let mut read = Read::range(table.clone(), spec, &KeyRange::all(), reverse);
        let (mut batch, mut ids) = (RowBatch::new(), Vec::new());
        loop {
            batch.clear();
            let more = block(|| read.next(&mut s, &mut batch)).unwrap();
            assert!(batch.len() <= 3, "{} long rows at a time", batch.len());
            for image in batch.iter() {
                let row = decode(&table, image);
                assert_eq!(row, long(row.0, row.0, "a"));
                ids.push(row.0);
            }
            if !more {
                break;
            }
        }
        if reverse {
            ids.reverse();
        }
        assert_eq!(ids, (0..40).collect::<Vec<_>>());
        block(|| s.statement_end(true)).unwrap();
    }
}

#[test]
fn duplicate_is_found_before_long_columns_are_written() {
    let db = Db::new();
    let mut s = db.session();
    let table = filled(&db, &mut s, 1..2);
    let pages = table.store().space_pages(table.def().space).unwrap();
    // One transaction, so that no page is freed for the next row.
    for _ in 0..20 {
        let refused = insert(&mut s, &table, &long(1, 2, "b"));
        assert_eq!(refused, WriteOutcome::Duplicate { index: 0 });
    }
    commit(&mut s);
    let now = table.store().space_pages(table.def().space).unwrap();
    assert_eq!(now, pages);
    // A row that is marked as deleted is no duplicate.
    delete(&mut s, &table, 1);
    let again = insert(&mut s, &table, &long(1, 2, "b"));
    assert_eq!(again, WriteOutcome::Done);
    commit(&mut s);
    assert_purged(&db.engine, &table);
}

#[test]
fn unused_long_columns_stay_on_their_pages() {
    let db = Db::new();
    let mut s = db.session();
    let table = filled(&db, &mut s, 1..2);
    s.statement_begin(Isolation::RepeatableRead, false);
    let spec = ReadSpec {
        columns: vec![1],
        ..ReadSpec::default()
    };
    let mut read = Read::range(table.clone(), spec, &KeyRange::all(), false);
    let mut batch = RowBatch::new();
    while block(|| read.next(&mut s, &mut batch)).unwrap() {}
    assert!(batch.bytes() < 200);
    block(|| s.statement_end(true)).unwrap();
}

/// Reads all rows; a call that waits is made again. Fails after `most` waits.
fn read_with_waits(s: &mut EngineSession, mut read: Read, most: usize) -> Vec<Row> {
    let (table, mut batch, mut waits) = (read.table().clone(), RowBatch::new(), 0);
    loop {
        match read.next(s, &mut batch) {
            Ok(true) => {}
            Ok(false) => break,
            Err(Stop::Wait(page)) => {
                waits += 1;
                assert!(waits <= most, "{waits} waits");
                page.block();
            }
            Err(Stop::Error(e)) => panic!("{e}"),
        }
    }
    batch.iter().map(|image| decode(&table, image)).collect()
}

/// Each wait brings the read one page further, although the pool has lost the pages before it.
#[test]
fn chain_longer_than_the_pool_is_read_in_one_pass() {
    let mut options = options();
    options.store.io_threads = 2;
    options.store.pool_bytes = 1 << 20;
    let db = Db::with(options);
    let (mut s, table) = (db.session(), db.table());
    let text = "0123456789abcdef".repeat(3 << 16);
    let row = (1, Some(1), Some("s".to_string()), Some(text));
    assert_eq!(insert(&mut s, &table, &row), WriteOutcome::Done);
    commit(&mut s);
    let pages = (3 << 20) / (15 << 10);
    for isolation in [Isolation::RepeatableRead, Isolation::ReadUncommitted] {
        for lock in [RowLock::None, RowLock::Exclusive] {
            s.statement_begin(isolation, false);
            let spec = ReadSpec {
                columns: vec![0, 3],
                lock,
                ..ReadSpec::default()
            };
            let read = Read::range(table.clone(), spec, &KeyRange::all(), false);
            let rows = read_with_waits(&mut s, read, 2 * pages);
            assert!(rows == [row.clone()]);
            block(|| s.statement_end(true)).unwrap();
            commit(&mut s);
        }
    }
    assert_eq!(db.engine.check_table(&table).unwrap().rows, 1);
}
