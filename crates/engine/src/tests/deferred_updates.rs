//! Rows that wait to be updated together: the result is that of updates one by one.

use super::*;

/// Updates the rows `news` (by id, all of which exist) by one statement that defers what it can.
/// Returns the outcomes, in order.
fn update_together(s: &mut EngineSession, table: &Arc<Table>, news: &[Row]) -> Vec<WriteOutcome> {
    let mut op = UpdateOp::new(table.clone());
    let mut outcomes = Vec::new();
    let olds: Vec<Row> = news
        .iter()
        .map(|new| by_key(s, table, 0, &[Value::Int(new.0)], RowLock::Exclusive)[0].clone())
        .collect();
    s.statement_begin(Isolation::RepeatableRead, false);
    for (old, new) in olds.iter().zip(news) {
        let mut image = Vec::new();
        encode(table, old, &mut image);
        if op.is_full() {
            block(|| s.update_deferred(&mut op)).unwrap();
        }
        encode(table, new, op.row(&image, None));
        if block(|| s.defer_update(&mut op)).unwrap() {
            outcomes.push(WriteOutcome::Done);
            continue;
        }
        block(|| s.update_deferred(&mut op)).unwrap();
        outcomes.push(block(|| s.update(&mut op)).unwrap());
    }
    block(|| s.update_deferred(&mut op)).unwrap();
    block(|| s.statement_end(true)).unwrap();
    outcomes
}

fn with_text(id: i64, text: String) -> Row {
    let (_, k, s, _) = row(id, id, &format!("s{id}"));
    (id, k, s, Some(text))
}

fn filled(rows: i64, len: usize) -> (Db, Arc<Table>, EngineSession) {
    let db = Db::new();
    let table = db.table();
    let mut s = db.session();
    for id in 0..rows {
        insert(&mut s, &table, &with_text(id, "x".repeat(len)));
    }
    commit(&mut s);
    (db, table, s)
}

#[test]
fn older_snapshots_and_rollbacks_see_the_versions_before() {
    let (db, table, mut s) = filled(500, 60);
    let before = all(&mut s, &table);
    commit(&mut s);
    let mut reader = db.session();
    reader.begin(TrxOptions {
        isolation: Isolation::RepeatableRead,
        read_only: false,
        consistent_snapshot: true,
    });
    for round in 0..3 {
        let news: Vec<Row> = (0..500)
            .map(|id| with_text(id, format!("{round} {id} {}", "y".repeat(50))))
            .collect();
        let done = update_together(&mut s, &table, &news);
        assert!(done.iter().all(|outcome| *outcome == WriteOutcome::Done));
        assert_eq!(all(&mut s, &table), news);
        match round {
            1 => {
                let last = all(&mut reader, &table);
                block(|| s.rollback()).unwrap();
                assert_eq!(last, before);
            }
            _ => commit(&mut s),
        }
        assert_eq!(all(&mut reader, &table), before);
    }
    commit(&mut reader);
    commit(&mut s);
    let last = all(&mut s, &table);
    commit(&mut s);
    drop(s);
    drop(reader);
    let db = db.crash();
    let table = db.find("t");
    assert_eq!(all(&mut db.session(), &table), last);
    assert_purged(&db.engine, &table);
    assert_sound(&db.engine, &table);
}

/// Rows that grow until their leaf splits, rows that move to overflow pages and back, in between
/// rows that keep their length.
#[test]
fn rows_of_every_length_change_as_one_by_one() {
    let (db, table, mut s) = filled(300, 40);
    let mut random = Random(7);
    let mut expected = all(&mut s, &table);
    commit(&mut s);
    for round in 0..12 {
        let mut news = Vec::new();
        for row in &mut expected {
            let len = match random.below(12) {
                0 => 9_000,
                1 => 900,
                2 => 0,
                _ => 40,
            };
            if random.below(3) > 0 {
                *row = with_text(row.0, format!("{round}").repeat(len));
                news.push(row.clone());
            }
        }
        update_together(&mut s, &table, &news);
        assert_eq!(all(&mut s, &table), expected);
        commit(&mut s);
    }
    assert_purged(&db.engine, &table);
    assert_sound(&db.engine, &table);
}

#[test]
fn a_duplicate_undoes_no_deferred_row() {
    let (db, table, mut s) = filled(40, 20);
    let mut news: Vec<Row> = (0..40).map(|id| with_text(id, "new".into())).collect();
    // Row 0 has this value of the unique index.
    news[25].2 = Some("s0".into());
    let outcomes = update_together(&mut s, &table, &news);
    let refused = |o: &&WriteOutcome| **o != WriteOutcome::Done;
    assert_eq!(outcomes.iter().filter(refused).count(), 1);
    news[25] = with_text(25, "x".repeat(20));
    assert_eq!(all(&mut s, &table), news);
    commit(&mut s);
    assert_sound(&db.engine, &table);
}

#[test]
fn neighbours_share_a_mini_transaction() {
    let (db, table, mut s) = filled(640, 20);
    let latches = || db.engine.store_status().latches_acquired;
    let news: Vec<Row> = (0..640).map(|id| with_text(id, "y".repeat(20))).collect();
    let before = latches();
    update_together(&mut s, &table, &news);
    let latched = latches() - before;
    commit(&mut s);
    // The leaf and the undo page, once for at most 16 rows, and at the edges of both.
    assert!(latched < 2 * 640 / 4, "{latched} latches for 640 rows");
}
