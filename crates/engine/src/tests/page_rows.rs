//! Rows that are taken where they lie: together with those of the batch they are the rows of the
//! read, in its order.

use super::*;
use crate::read::{PageRowSink, PageRows};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

const ROWS: i64 = 2000;
const GROUPS: i64 = 40;

/// Copies rows, some of those that it is offered.
struct Copies {
    images: Vec<Vec<u8>>,
    /// Rows of one call, at most.
    most: usize,
    /// Rows that changed before they were validated.
    changed: usize,
    /// Some rows are copied with a pause.
    slow: bool,
}

impl Copies {
    fn new(most: usize) -> Copies {
        Copies {
            images: Vec::new(),
            most,
            changed: 0,
            slow: false,
        }
    }
}

impl PageRowSink for Copies {
    fn take(&mut self, rows: PageRows<'_, '_>) -> usize {
        let before = self.images.len();
        for row in rows.take(self.most) {
            let mut image = vec![0; row.image().len()];
            let (first, second) = image.split_at_mut(row.image().len() / 2);
            row.image().copy_to(first);
            if self.slow && self.images.len() % 16 == 5 {
                // Another thread may change the page meanwhile.
                std::thread::sleep(std::time::Duration::from_micros(50));
            }
            let rest = first.len()..row.image().len();
            row.image().part(rest).unwrap().copy_to(second);
            if !row.validate() {
                self.changed += 1;
                break;
            }
            self.images.push(image);
        }
        self.images.len() - before
    }
}

fn text_of(id: i64, round: i64) -> String {
    format!(
        "{id}.{round}.{}",
        "x".repeat((id * 7 + round * 5) as usize % 60)
    )
}

fn whole(id: i64, round: i64) -> Row {
    let s = format!("{id}.{round}");
    (id, Some(id % GROUPS), Some(s), Some(text_of(id, round)))
}

fn loaded(db: &Db) -> Arc<Table> {
    let table = db.table();
    let mut s = db.session();
    for id in 1..=ROWS {
        insert(&mut s, &table, &whole(id, 0));
    }
    commit(&mut s);
    table
}

/// Reads all groups until no hint is wrong any more.
fn repair_hints_now(db: &Db, table: &Arc<Table>) {
    let mut s = db.session();
    let wanted: Vec<i64> = (0..GROUPS).collect();
    for _ in 0..100 {
        let before = db.engine.row_hint_status().misses;
        s.statement_begin(Isolation::RepeatableRead, false);
        read(&mut s, groups(table, &wanted));
        block(|| s.statement_end(true)).unwrap();
        if db.engine.row_hint_status().misses == before {
            return;
        }
        while db.engine.step_background().unwrap() {}
    }
    panic!("row_hints stay wrong: {:?}", db.engine.row_hint_status());
}

/// A read of these groups.
fn groups(table: &Arc<Table>, groups: &[i64]) -> Read {
    let mut points = EqualityKeys::new();
    let index = table.def().index("k").unwrap();
    let key = table.key_layout(index);
    for k in groups {
        points.push_with(|out| key.encode_values([ValueRef::Int(*k)], out).unwrap());
    }
    let spec = ReadSpec {
        index,
        columns: vec![0, 1, 2, 3],
        ..ReadSpec::default()
    };
    Read::points(table.clone(), spec, points)
}

/// The rows of a read whose rows are taken as far as possible, and how many were.
fn taken(s: &mut EngineSession, mut read: Read, row_sink: &mut Copies) -> (Vec<Row>, usize) {
    let table = read.table().clone();
    let (mut rows, mut batch, mut count) = (Vec::new(), RowBatch::new(), 0);
    loop {
        batch.clear();
        let more = block(|| read.next_into(s, &mut batch, Some(&mut *row_sink))).unwrap();
        assert_eq!(
            batch.taken(),
            row_sink.images.len(),
            "what was counted was taken"
        );
        count += batch.taken();
        let of_batch = batch.iter().map(<[u8]>::to_vec);
        let images = row_sink.images.drain(..).chain(of_batch);
        rows.extend(images.map(|image| decode(&table, &image)));
        if !more {
            return (rows, count);
        }
    }
}

#[test]
fn quiet_rows_are_all_taken() {
    let db = Db::new();
    let table = loaded(&db);
    repair_hints_now(&db, &table);
    let mut s = db.session();
    s.statement_begin(Isolation::RepeatableRead, false);
    // More than one lookup of many rows.
    let wanted: Vec<i64> = (0..GROUPS).filter(|k| k % 3 != 1).collect();
    let expected = read(&mut s, groups(&table, &wanted));
    let (rows, count) = taken(
        &mut s,
        groups(&table, &wanted),
        &mut Copies::new(usize::MAX),
    );
    assert_eq!(rows, expected);
    assert_eq!(count, expected.len());
    block(|| s.statement_end(true)).unwrap();
}

#[test]
fn rows_that_need_a_longer_look_come_behind_those_taken() {
    let db = Db::new();
    let table = loaded(&db);
    repair_hints_now(&db, &table);
    let (mut reader, mut writer) = (db.session(), db.session());
    reader.begin(TrxOptions {
        isolation: Isolation::RepeatableRead,
        read_only: false,
        consistent_snapshot: true,
    });
    reader.statement_begin(Isolation::RepeatableRead, false);
    let wanted: Vec<i64> = (0..GROUPS).collect();
    let before = read(&mut reader, groups(&table, &wanted));
    // Committed and open changes, none of which the snapshot sees.
    for (id, what) in (0..ROWS).step_by(97).map(|id| id + 1).zip((0..4).cycle()) {
        match what {
            0 => delete(&mut writer, &table, id),
            1 => assert_eq!(
                update(&mut writer, &table, id, &whole(id, 1)),
                WriteOutcome::Done
            ),
            // Into another group.
            2 => {
                let (id, _, s, b) = whole(id, 2);
                let moved = (id, Some(GROUPS / 2), s, b);
                assert_eq!(update(&mut writer, &table, id, &moved), WriteOutcome::Done);
            }
            _ => assert_eq!(
                insert(&mut writer, &table, &whole(ROWS + id, 0)),
                WriteOutcome::Done
            ),
        }
        if id % 2 == 0 {
            commit(&mut writer);
        }
    }
    for most in [usize::MAX, 0, 1, 5] {
        let mut copies = Copies::new(most);
        let (rows, count) = taken(&mut reader, groups(&table, &wanted), &mut copies);
        assert_eq!(rows, before, "{most} a call");
        assert!(count < before.len());
        assert_eq!(count == 0, most == 0);
    }
    block(|| reader.statement_end(true)).unwrap();
    // A new snapshot sees what is committed, deleted rows and entries included.
    let mut other = db.session();
    other.statement_begin(Isolation::RepeatableRead, false);
    let expected = read(&mut other, groups(&table, &wanted));
    assert_ne!(expected, before);
    let (rows, _) = taken(
        &mut other,
        groups(&table, &wanted),
        &mut Copies::new(usize::MAX),
    );
    assert_eq!(rows, expected);
    block(|| other.statement_end(true)).unwrap();
}

#[test]
fn wrong_row_hints_read_the_same_rows() {
    let db = Db::new();
    let table = loaded(&db);
    let mut s = db.session();
    // Rows become longer, leaves split, and entries do not hear of it.
    for id in (1..=ROWS).step_by(3) {
        let (id, k, text, _) = whole(id, 3);
        let long = "y".repeat(300);
        update(&mut s, &table, id, &(id, k, text, Some(long)));
    }
    commit(&mut s);
    s.statement_begin(Isolation::RepeatableRead, false);
    let wanted: Vec<i64> = (0..GROUPS).rev().collect();
    let expected = read(&mut s, groups(&table, &wanted));
    let (rows, _) = taken(
        &mut s,
        groups(&table, &wanted),
        &mut Copies::new(usize::MAX),
    );
    assert_eq!(rows, expected);
    block(|| s.statement_end(true)).unwrap();
}

#[test]
fn rows_taken_beside_writers_are_whole() {
    let db = Db::new();
    let table = loaded(&db);
    repair_hints_now(&db, &table);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for number in 0..2 {
            let (table, stop, mut s) = (table.clone(), &stop, db.session());
            scope.spawn(move || {
                let ids = || (1..=ROWS).filter(|id| id % 2 == number);
                let mut rows = (1..).flat_map(|round| ids().map(move |id| whole(id, round)));
                while !stop.load(Relaxed) {
                    for row in rows.by_ref().take(20) {
                        update(&mut s, &table, row.0, &row);
                    }
                    commit(&mut s);
                }
            });
        }
        let mut s = db.session();
        let wanted: Vec<i64> = (0..GROUPS).step_by(2).collect();
        let (mut reads, mut changed) = (0, 0);
        // Until some row has changed while it was read.
        while reads < 50 || (changed == 0 && reads < 10_000) {
            s.statement_begin(Isolation::RepeatableRead, false);
            let mut copies = Copies::new(usize::MAX);
            copies.slow = true;
            let (rows, _) = taken(&mut s, groups(&table, &wanted), &mut copies);
            (reads, changed) = (reads + 1, changed + copies.changed);
            assert_eq!(rows.len() as i64, ROWS / 2);
            for row in rows {
                let (id, round) = row.2.as_deref().unwrap().split_once('.').unwrap();
                assert_eq!(id.parse(), Ok(row.0));
                assert_eq!(row, whole(row.0, round.parse().unwrap()));
            }
            block(|| s.statement_end(true)).unwrap();
            commit(&mut s);
        }
        stop.store(true, Relaxed);
        assert!(changed > 0, "no row changed while it was read");
    });
}
