//! Columns of rows that a read takes directly from the leaves: it returns the right rows in order,
//! also where the visible version of some must be looked up in the undo log.

use super::*;

const ROWS: i64 = 3000;

/// `(k, id)` of the rows that a read returns, in its order.
fn numbers(s: &mut EngineSession, table: &Arc<Table>, mut read: Read) -> Vec<(Option<i64>, i64)> {
    let spec = read.spec().clone();
    let layout = match spec.covering {
        true => table.index_layout(spec.index),
        false => table.layout(),
    };
    let places: Vec<usize> = match spec.covering {
        true => table.index_columns(spec.index).to_vec(),
        false => (0..4).collect(),
    };
    let place = |column: usize| places.iter().position(|c| *c == column).expect("a column");
    let (mut out, mut batch) = (Vec::new(), RowBatch::new());
    loop {
        batch.clear();
        let more = block(|| read.next(s, &mut batch)).unwrap();
        for image in batch.iter() {
            let number = |column| match layout.get(image, place(column)).unwrap() {
                ValueRef::Int(n) => Some(n),
                ValueRef::Null => None,
                other => panic!("{other:?}"),
            };
            out.push((number(1), number(0).expect("an id")));
        }
        if !more {
            return out;
        }
    }
}

fn spec(table: &Table, by_k: bool, first_rows: usize) -> ReadSpec {
    let index = if by_k {
        table.def().index("k").unwrap()
    } else {
        0
    };
    ReadSpec {
        index,
        covering: by_k,
        columns: vec![0, 1],
        first_rows,
        ..ReadSpec::default()
    }
}

fn k_of(id: i64) -> Option<i64> {
    (id % 7 != 0).then_some(id % 5 - 2)
}

/// The rows that a snapshot sees, in the order of an index.
fn expected(by_k: bool, reverse: bool) -> Vec<(Option<i64>, i64)> {
    let mut rows: Vec<_> = (1..=ROWS).map(|id| (k_of(id), id)).collect();
    if by_k {
        rows.sort();
    }
    if reverse {
        rows.reverse();
    }
    rows
}

fn filled() -> (Db, Arc<Table>) {
    let db = Db::new();
    let table = db.table();
    let mut w = db.session();
    for id in 1..=ROWS {
        let mut row = row(id, 0, &format!("name{id}"));
        row.1 = k_of(id);
        insert(&mut w, &table, &row);
    }
    commit(&mut w);
    (db, table)
}

fn begin(s: &mut EngineSession) {
    s.begin(TrxOptions {
        isolation: Isolation::RepeatableRead,
        read_only: false,
        consistent_snapshot: true,
    });
}

#[test]
fn ranges_and_equality_keys_return_rows_in_order() {
    let (db, table) = filled();
    let (mut old, mut w) = (db.session(), db.session());
    begin(&mut old);
    let check = |s: &mut EngineSession| {
        for (by_k, reverse) in [(false, false), (false, true), (true, false), (true, true)] {
            for first_rows in [0, 1, 20] {
                let spec = spec(&table, by_k, first_rows);
                let read = Read::range(table.clone(), spec, &KeyRange::all(), reverse);
                assert_eq!(
                    numbers(s, &table, read),
                    expected(by_k, reverse),
                    "{by_k} {reverse} {first_rows}"
                );
            }
        }
        for first_rows in [0, 3] {
            for wanted in [vec![-2], vec![2, -1], vec![-2, -1, 0, 1, 2]] {
                let spec = spec(&table, true, first_rows);
                let mut points = EqualityKeys::new();
                for k in &wanted {
                    points.push_with(|out| {
                        let key = table.key_layout(spec.index);
                        key.encode_values([ValueRef::Int(*k)], out).unwrap();
                    });
                }
                let read = Read::points(table.clone(), spec, points);
                let mut rows = expected(true, false);
                rows.retain(|(k, _)| k.is_some_and(|k| wanted.contains(&k)));
                assert_eq!(numbers(s, &table, read), rows, "{wanted:?} {first_rows}");
            }
        }
    };
    check(&mut old);
    // Another key, the same key, no row any more, a new row: resolved one by one, each in its
    // place.
    for id in (1..=ROWS).step_by(11) {
        update(&mut w, &table, id, &row(id, 100, &format!("changed{id}")));
    }
    for id in (2..=ROWS).step_by(13).filter(|id| id % 11 != 1) {
        let mut same = row(id, 0, &format!("other{id}"));
        same.1 = k_of(id);
        update(&mut w, &table, id, &same);
    }
    for id in (3..=ROWS).step_by(17) {
        delete(&mut w, &table, id);
    }
    for id in 1..50 {
        insert(
            &mut w,
            &table,
            &row(ROWS + id, id % 5 - 2, &format!("new{id}")),
        );
    }
    check(&mut old);
    commit(&mut w);
    check(&mut old);
    commit(&mut old);
    let mut now = db.session();
    begin(&mut now);
    let mut both = [false, true].map(|by_k| {
        let spec = spec(&table, by_k, 0);
        let read = Read::range(table.clone(), spec, &KeyRange::all(), false);
        numbers(&mut now, &table, read)
    });
    both[0].sort();
    assert_eq!(both[0], both[1]);
    commit(&mut now);
}

/// Prefixes of a clustered key, the leaf of the first of which is on disk: what the others bring
/// meanwhile is dropped, as it will come again, and the read must go on.
#[test]
fn rows_that_came_too_early_come_again() {
    const GROUPS: i64 = 60;
    const EACH: i64 = 40;
    let db = Db::new();
    let mut by_group = super::spec("t", true);
    by_group.columns[1].nullable = false;
    by_group.indexes.retain(|index| &*index.name == "PRIMARY");
    by_group.indexes[0].parts = [1, 0]
        .map(|column| IndexPart {
            column,
            prefix_len: None,
            desc: false,
        })
        .to_vec();
    db.engine.create_table(by_group).unwrap();
    let (table, mut w) = (db.find("t"), db.session());
    for id in 0..GROUPS * EACH {
        let mut row = row(id, id / EACH, "name");
        row.3 = Some("x".repeat(400));
        insert(&mut w, &table, &row);
    }
    commit(&mut w);
    drop((table, w));
    db.engine.shutdown().unwrap();
    let Db { engine, dir } = db;
    drop(engine);
    let engine = super::open(dir.path());
    let db = Db { engine, dir };
    let (done, is_done) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let (table, mut s) = (db.find("t"), db.session());
        let points = |groups: std::ops::Range<i64>| {
            let mut points = EqualityKeys::new();
            for k in groups {
                points.push_with(|out| {
                    table
                        .key_layout(0)
                        .encode_values([ValueRef::Int(k)], out)
                        .unwrap();
                });
            }
            let spec = ReadSpec {
                columns: vec![0, 1, 2, 3],
                ..ReadSpec::default()
            };
            Read::points(table.clone(), spec, points)
        };
        s.statement_begin(Isolation::RepeatableRead, false);
        // The first group's leaves are those that are missing.
        let warm = numbers(&mut s, &table, points(8..GROUPS));
        assert_eq!(warm.len() as i64, (GROUPS - 8) * EACH);
        let all = numbers(&mut s, &table, points(0..GROUPS));
        let expected = (0..GROUPS * EACH).map(|id| (Some(id / EACH), id));
        assert!(all.into_iter().eq(expected));
        // Into one batch that is not cleared between two calls.
        assert_eq!(read(&mut s, points(0..GROUPS)).len() as i64, GROUPS * EACH);
        done.send(()).unwrap();
    });
    let minute = std::time::Duration::from_secs(60);
    is_done
        .recv_timeout(minute)
        .expect("it ends, with all rows");
}

/// A read that passes leaves full of rows that its snapshot cannot see returns to the caller from
/// time to time, so that the caller can stop it.
#[test]
fn a_read_that_finds_nothing_can_be_left() {
    let db = Db::new();
    let table = db.table();
    let (mut w, mut old) = (db.session(), db.session());
    let long = "x".repeat(300);
    for id in 1..=4_000 {
        let mut row = row(id, id, &format!("name{id}"));
        row.3 = Some(long.clone());
        insert(&mut w, &table, &row);
        if id % 100 == 0 {
            commit(&mut w);
        }
    }
    // Keeps purge from them.
    begin(&mut old);
    let all = |by_k: bool, reverse| {
        Read::range(
            table.clone(),
            spec(&table, by_k, 0),
            &KeyRange::all(),
            reverse,
        )
    };
    assert_eq!(numbers(&mut old, &table, all(true, false)).len(), 4_000);
    for id in 1..=4_000 {
        delete(&mut w, &table, id);
        if id % 100 == 0 {
            commit(&mut w);
        }
    }
    insert(&mut w, &table, &row(5_000, 1, "seen"));
    commit(&mut w);
    for (by_k, covering, lock) in [
        (false, false, RowLock::None),
        (true, true, RowLock::None),
        (true, false, RowLock::None),
        (false, false, RowLock::Exclusive),
        (true, false, RowLock::Exclusive),
    ] {
        for reverse in [false, true] {
            let spec = ReadSpec {
                covering,
                lock,
                ..spec(&table, by_k, 0)
            };
            let mut read = Read::range(table.clone(), spec, &KeyRange::all(), reverse);
            let mut s = db.session();
            begin(&mut s);
            let (mut calls, mut found, mut batch) = (0, 0, RowBatch::new());
            loop {
                batch.clear();
                let more = block(|| read.next(&mut s, &mut batch)).unwrap();
                (calls, found) = (calls + 1, found + batch.len());
                if !more {
                    break;
                }
            }
            commit(&mut s);
            assert_eq!(found, 1, "{by_k} {covering} {lock:?} {reverse}");
            // All of a covering index is a few leaves.
            assert!(
                covering || calls > 2,
                "{by_k} {covering} {lock:?} {reverse}: {calls}"
            );
        }
    }
    commit(&mut old);
}
