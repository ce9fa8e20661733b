//! Rows that wait to be inserted together: the result is that of inserts one by one.

use super::*;

fn begin(s: &mut EngineSession) {
    s.begin(TrxOptions {
        isolation: Isolation::RepeatableRead,
        read_only: false,
        consistent_snapshot: false,
    });
}

/// Inserts the rows that wait in `op`. Adds the outcomes of its rows, in order.
fn flush(s: &mut EngineSession, op: &mut InsertOp, outcomes: &mut Vec<WriteOutcome>) {
    let rows = op.deferred_rows();
    let mut of_rows = vec![WriteOutcome::Done; rows];
    if rows > 0 {
        loop {
            match block(|| s.insert_deferred(op)).unwrap() {
                DeferredStep::Done => break,
                DeferredStep::Duplicate(duplicate) => {
                    of_rows[duplicate.row] = WriteOutcome::Duplicate {
                        index: duplicate.index,
                    };
                }
                DeferredStep::More => {}
            }
        }
        op.clear_deferred();
    }
    outcomes.extend(of_rows);
}

/// Inserts rows by one statement that defers what it can, and skips duplicates.
fn insert_together(s: &mut EngineSession, table: &Arc<Table>, rows: &[Row]) -> Vec<WriteOutcome> {
    let mut op = InsertOp::new(table.clone());
    let mut outcomes = Vec::new();
    s.statement_begin(Isolation::RepeatableRead, false);
    for row in rows {
        if op.is_full() {
            flush(s, &mut op, &mut outcomes);
        }
        encode(table, row, op.row());
        if !block(|| s.defer_insert(&mut op)).unwrap() {
            flush(s, &mut op, &mut outcomes);
            outcomes.push(block(|| s.insert(&mut op)).unwrap());
        }
    }
    flush(s, &mut op, &mut outcomes);
    block(|| s.statement_end(true)).unwrap();
    outcomes
}

fn with_text(id: i64, len: usize) -> Row {
    let (_, k, s, _) = row(id, id % 7, &format!("s{id}"));
    (id, k, s, Some("x".repeat(len)))
}

fn rows(ids: std::ops::Range<i64>) -> Vec<Row> {
    ids.map(|id| with_text(id, 20 + id as usize % 100))
        .collect()
}

/// Defers rows, and tries once to insert them.
fn try_rows(s: &mut EngineSession, op: &mut InsertOp, rows: &[Row]) -> Result<DeferredStep, Stop> {
    let table = op.table().clone();
    s.statement_begin(Isolation::RepeatableRead, false);
    for row in rows {
        encode(&table, row, op.row());
        assert!(block(|| s.defer_insert(op)).unwrap());
    }
    s.insert_deferred(op)
}

#[test]
fn snapshots_savepoints_and_recovery_see_whole_statements() {
    let db = Db::new();
    let table = db.table();
    let mut s = db.session();
    let mut reader = db.session();
    reader.begin(TrxOptions {
        isolation: Isolation::RepeatableRead,
        read_only: false,
        consistent_snapshot: true,
    });
    begin(&mut s);
    insert_together(&mut s, &table, &rows(0..100));
    s.savepoint("a");
    insert_together(&mut s, &table, &rows(100..300));
    assert_eq!(all(&mut s, &table), rows(0..300));
    block(|| s.rollback_to("a")).unwrap();
    assert_eq!(all(&mut s, &table), rows(0..100));
    insert_together(&mut s, &table, &rows(150..400));
    commit(&mut s);
    assert_eq!(all(&mut reader, &table), []);
    commit(&mut reader);
    let expected = [rows(0..100), rows(150..400)].concat();
    // A crash undoes these.
    begin(&mut s);
    insert_together(&mut s, &table, &rows(100..140));
    let mut other = db.session();
    insert_together(&mut other, &table, &rows(1000..1001));
    commit(&mut other);
    drop((s, reader, other, table));
    let db = db.crash();
    let table = db.find("t");
    while db.engine.step_background().unwrap() {}
    let expected = [expected, rows(1000..1001)].concat();
    assert_eq!(all(&mut db.session(), &table), expected);
    assert_purged(&db.engine, &table);
    assert_sound(&db.engine, &table);
}

/// Random keys with duplicates in both unique indexes, rows with overflow pages, delete-marked
/// rows.
#[test]
fn outcomes_are_those_of_single_inserts() {
    let db = Db::new();
    let table = db.table();
    let def = db.engine.create_table(spec("u", true)).unwrap();
    let single = db.engine.table(def.id).unwrap();
    let mut s = db.session();
    let mut random = Random(5);
    let mut refused = 0;
    for round in 0..60 {
        let mut id = random.below(2_000) as i64;
        let news: Vec<Row> = (0..1 + random.below(70))
            .map(|_| {
                id += match random.below(8) {
                    0 => -(random.below(20) as i64),
                    1 => 0,
                    _ => 1 + random.below(3) as i64,
                };
                let len = match random.below(40) {
                    0 => 9_000,
                    1 => 2_000,
                    _ => 30,
                };
                let mut row = with_text(id, len);
                if random.below(20) == 0 {
                    row.2 = Some(format!("s{}", random.below(2_000)));
                }
                row
            })
            .collect();
        let outcomes = insert_together(&mut s, &table, &news);
        let expected: Vec<_> = news.iter().map(|r| insert(&mut s, &single, r)).collect();
        assert_eq!(outcomes, expected, "round {round}");
        refused += expected
            .iter()
            .filter(|o| **o != WriteOutcome::Done)
            .count();
        match random.below(4) {
            0 => block(|| s.rollback()).unwrap(),
            _ => commit(&mut s),
        }
        let there = all(&mut s, &single);
        assert_eq!(all(&mut s, &table), there);
        for row in there.iter().filter(|_| random.below(9) == 0) {
            delete(&mut s, &table, row.0);
            delete(&mut s, &single, row.0);
        }
        commit(&mut s);
    }
    assert!(refused > 100, "{refused} duplicates");
    assert_purged(&db.engine, &table);
    assert_sound(&db.engine, &table);
}

/// The latches that the rows 0 to 640 take in a table with these kinds of indexes.
fn latches_with(kinds: &[IndexKind]) -> u64 {
    let db = Db::new();
    let mut spec = spec("t", true);
    spec.indexes.retain(|index| kinds.contains(&index.kind));
    let def = db.engine.create_table(spec).unwrap();
    let table = db.engine.table(def.id).unwrap();
    let mut s = db.session();
    let before = db.engine.store_status().latches_acquired;
    insert_together(&mut s, &table, &rows(0..640));
    let latched = db.engine.store_status().latches_acquired - before;
    commit(&mut s);
    assert_eq!(all(&mut s, &table), rows(0..640));
    assert_sound(&db.engine, &table);
    latched
}

#[test]
fn neighbours_share_a_mini_transaction() {
    // The leaf and the undo page, once for at most 32 rows, and at the edges of both.
    let rows = latches_with(&[IndexKind::Primary]);
    assert!(rows < 640 / 4, "{rows} latches for 640 rows");
    // The entries of each of seven values are neighbours.
    let entries = latches_with(&[IndexKind::Primary, IndexKind::Secondary]) - rows;
    assert!(entries < 640 / 2, "{entries} latches for 640 entries");
}

/// Rows with random values of the index on `k`.
fn scattered(ids: std::ops::Range<i64>) -> Vec<Row> {
    let k = |id: i64| 100_003 - id * 7_919 % 100_003;
    let with_k = |id| (id, Some(k(id)), None, Some("x".repeat(30)));
    ids.map(with_k).collect()
}

/// A table with the primary key and the index on `k`, which is not unique.
fn table_with_k(db: &Db) -> Arc<Table> {
    let mut spec = spec("k", true);
    let kinds = [IndexKind::Primary, IndexKind::Secondary];
    spec.indexes.retain(|index| kinds.contains(&index.kind));
    let def = db.engine.create_table(spec).unwrap();
    db.engine.table(def.id).unwrap()
}

#[test]
fn entries_of_one_leaf_share_a_mini_transaction() {
    let db = Db::new();
    let table = table_with_k(&db);
    let mut s = db.session();
    insert_together(&mut s, &table, &scattered(0..3_000));
    commit(&mut s);
    let before = db.engine.store_status().latches_acquired;
    insert_together(&mut s, &table, &scattered(3_000..6_000));
    commit(&mut s);
    let latched = db.engine.store_status().latches_acquired - before;
    assert!(latched < 3_000 / 2, "{latched} latches for 3000 rows");
    assert_eq!(all(&mut s, &table), scattered(0..6_000));
    assert_purged(&db.engine, &table);
    assert_sound(&db.engine, &table);
}

/// A lock in the middle of an index stops the row whose entry it concerns, and no other row stays
/// behind it.
#[test]
fn row_of_a_large_group_waits_for_a_gap_of_an_index() {
    let db = Db::new();
    let table = table_with_k(&db);
    let (mut a, mut b) = (db.session(), db.session());
    let ends: [Row; 2] = [(-2, Some(10), None, None), (-1, Some(50_000), None, None)];
    for row in &ends {
        insert(&mut a, &table, row);
    }
    commit(&mut a);
    begin(&mut b);
    // Locks the gap from 10 to 50000.
    by_key(&mut b, &table, 1, &[Value::Int(100)], RowLock::Exclusive);
    begin(&mut a);
    let news = scattered(0..900);
    let mut op = InsertOp::new(table.clone());
    let mut step = try_rows(&mut a, &mut op, &news);
    let wait = loop {
        match step {
            Err(Stop::Wait(wait)) if a.waits_for_lock() => break wait,
            // For a page.
            Err(Stop::Wait(wait)) => wait.block(),
            Ok(DeferredStep::More) => {}
            other => panic!("{other:?}"),
        }
        step = a.insert_deferred(&mut op);
    };
    // The rows up to the first one whose value lies in the gap.
    let is_in_gap = |row: &Row| row.1.is_some_and(|k| k > 10 && k < 50_000);
    let first = news.iter().position(is_in_gap);
    let there = all(&mut a, &table).len() - ends.len();
    assert_eq!(Some(there), first.map(|first| first + 1));
    commit(&mut b);
    wait.block();
    while block(|| a.insert_deferred(&mut op)).unwrap() == DeferredStep::More {}
    op.clear_deferred();
    block(|| a.statement_end(true)).unwrap();
    commit(&mut a);
    assert_eq!(all(&mut a, &table), [&ends[..], &news].concat());
    assert_purged(&db.engine, &table);
    assert_sound(&db.engine, &table);
}

/// A row that waits for a lock has the rows before it in the table, and none behind it.
#[test]
fn row_that_waits_for_a_lock_has_no_row_behind_it() {
    let db = Db::new();
    let table = db.table();
    let (mut a, mut b) = (db.session(), db.session());
    begin(&mut b);
    insert(&mut b, &table, &row(100, 1, "s5"));
    begin(&mut a);
    let mut op = InsertOp::new(table.clone());
    let wait = match try_rows(&mut a, &mut op, &rows(0..10)) {
        Err(Stop::Wait(wait)) => wait,
        other => panic!("{other:?}"),
    };
    // Rows 6 to 9 are free: B inserts one of them without a wait.
    b.statement_begin(Isolation::RepeatableRead, false);
    let mut other = InsertOp::new(table.clone());
    encode(&table, &row(7, 1, "other"), other.row());
    assert_eq!(b.insert(&mut other).unwrap(), WriteOutcome::Done);
    // Rows 0 to 4 are not: C would wait.
    let mut c = db.session();
    c.statement_begin(Isolation::RepeatableRead, false);
    encode(&table, &row(3, 1, "third"), other.row());
    assert!(matches!(c.insert(&mut other), Err(Stop::Wait(_))));
    block(|| c.rollback()).unwrap();
    block(|| b.rollback()).unwrap();
    wait.block();
    let step = block(|| a.insert_deferred(&mut op)).unwrap();
    assert_eq!(step, DeferredStep::Done);
    op.clear_deferred();
    block(|| a.statement_end(true)).unwrap();
    commit(&mut a);
    assert_eq!(all(&mut a, &table), rows(0..10));
    assert_purged(&db.engine, &table);
    assert_sound(&db.engine, &table);
}

/// The end of a statement that gives up while a row waits undoes all its rows.
#[test]
fn rollback_of_a_waiting_statement_removes_its_rows() {
    let db = Db::new();
    let table = db.table();
    let (mut a, mut b) = (db.session(), db.session());
    begin(&mut b);
    insert(&mut b, &table, &row(100, 1, "s25"));
    begin(&mut a);
    insert_together(&mut a, &table, &rows(200..210));
    let mut op = InsertOp::new(table.clone());
    assert!(matches!(
        try_rows(&mut a, &mut op, &rows(0..32)),
        Err(Stop::Wait(_))
    ));
    op.clear_deferred();
    block(|| a.statement_end(false)).unwrap();
    assert_eq!(all(&mut a, &table), rows(200..210));
    commit(&mut a);
    commit(&mut b);
    // The operation can be used again.
    let step = try_rows(&mut a, &mut op, &rows(0..20)).unwrap();
    assert_eq!(step, DeferredStep::Done);
    op.clear_deferred();
    block(|| a.statement_end(true)).unwrap();
    commit(&mut a);
    assert_eq!(all(&mut a, &table).len(), 31);
    assert_purged(&db.engine, &table);
    assert_sound(&db.engine, &table);
}

/// A gap lock of another session stops the run before its gap.
#[test]
fn gap_lock_of_another_session_stops_rows_before_it() {
    let db = Db::new();
    let table = db.table();
    let (mut a, mut b) = (db.session(), db.session());
    for id in [0, 10, 20] {
        insert(&mut a, &table, &with_text(id, 20));
    }
    commit(&mut a);
    begin(&mut b);
    // Locks the gap between 10 and 20.
    by_key(&mut b, &table, 0, &[Value::Int(15)], RowLock::Exclusive);
    begin(&mut a);
    let mut op = InsertOp::new(table.clone());
    let news: Vec<Row> = [7, 8, 9, 11, 12, 13].map(|id| with_text(id, 20)).to_vec();
    let wait = match try_rows(&mut a, &mut op, &news) {
        Err(Stop::Wait(wait)) => wait,
        other => panic!("{other:?}"),
    };
    assert_eq!(all(&mut a, &table).len(), 6, "rows 7 to 9 are inserted");
    commit(&mut b);
    wait.block();
    let step = block(|| a.insert_deferred(&mut op)).unwrap();
    assert_eq!(step, DeferredStep::Done);
    block(|| a.statement_end(true)).unwrap();
    assert_eq!(all(&mut a, &table).len(), 9);
    commit(&mut a);
}

/// A session's own gap lock covers every part of the gap that its rows split.
#[test]
fn own_gap_lock_covers_the_gaps_between_new_rows() {
    let db = Db::new();
    let table = db.table();
    let (mut a, mut b) = (db.session(), db.session());
    for id in [0, 100] {
        insert(&mut a, &table, &with_text(id, 20));
    }
    commit(&mut a);
    begin(&mut a);
    by_key(&mut a, &table, 0, &[Value::Int(50)], RowLock::Exclusive);
    insert_together(&mut a, &table, &[10, 20, 30].map(|id| with_text(id, 20)));
    begin(&mut b);
    for id in [5, 15, 25, 35, 99] {
        b.statement_begin(Isolation::RepeatableRead, false);
        let mut op = InsertOp::new(table.clone());
        encode(&table, &with_text(id, 20), op.row());
        assert!(matches!(b.insert(&mut op), Err(Stop::Wait(_))), "{id}");
    }
    commit(&mut a);
    insert(&mut b, &table, &with_text(15, 20));
    commit(&mut b);
}
