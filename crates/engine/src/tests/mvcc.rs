//! Several sessions at once: what each sees, and what each waits for.

use super::*;
use nfold_store::Stop as StoreStop;

fn begin(s: &mut EngineSession, isolation: Isolation) {
    s.begin(TrxOptions {
        isolation,
        read_only: false,
        consistent_snapshot: true,
    });
}

#[test]
fn a_snapshot_stands_still() {
    let db = Db::new();
    let table = db.table();
    let mut w = db.session();
    for id in 0..20 {
        insert(&mut w, &table, &row(id, id, &format!("s{id}")));
    }
    commit(&mut w);
    let mut r = db.session();
    begin(&mut r, Isolation::RepeatableRead);
    let before = all(&mut r, &table);
    let k = table.def().index("k").unwrap();
    for round in 0..5 {
        for id in 0..20 {
            update(
                &mut w,
                &table,
                id,
                &row(id, 100 * round + id, &format!("r{round}-{id}")),
            );
        }
        commit(&mut w);
        delete(&mut w, &table, 3);
        insert(&mut w, &table, &row(3, 3, "back"));
        commit(&mut w);
        db.engine.step_background().unwrap();
        assert_eq!(all(&mut r, &table), before);
        let keys: Vec<Value> = (0..20).map(Value::Int).collect();
        assert_eq!(
            by_key(&mut r, &table, k, &keys, RowLock::None),
            before,
            "also through an index"
        );
        assert!(
            by_key(
                &mut r,
                &table,
                k,
                &[Value::Int(100 * round + 7)],
                RowLock::None
            )
            .len()
                <= usize::from(round == 0)
        );
    }
    commit(&mut r);
    while db.engine.step_background().unwrap() {}
    let now = all(&mut r, &table);
    assert_eq!(now.len(), 20);
    assert_ne!(now, before);
    commit(&mut r);
    assert_sound(&db.engine, &table);
}

#[test]
fn covering_reads_see_the_same() {
    let db = Db::new();
    let table = db.table();
    let mut w = db.session();
    for id in 0..30 {
        insert(&mut w, &table, &row(id, id % 3, &format!("Name{id}")));
    }
    commit(&mut w);
    let u = table.def().index("s").unwrap();
    let covering = |s: &mut EngineSession| -> Vec<(String, i64)> {
        s.statement_begin(Isolation::RepeatableRead, false);
        let spec = ReadSpec {
            index: u,
            covering: true,
            columns: table.index_columns(u).to_vec(),
            ..ReadSpec::default()
        };
        let mut read = Read::range(table.clone(), spec, &KeyRange::all(), false);
        let mut batch = RowBatch::new();
        while block(|| read.next(s, &mut batch)).unwrap() {}
        let layout = table.index_layout(u);
        batch
            .iter()
            .map(|row| {
                let name = layout.get(row, 0).unwrap().as_bytes().unwrap().to_vec();
                let ValueRef::Int(id) = layout.get(row, 1).unwrap() else {
                    panic!("id")
                };
                (String::from_utf8(name).unwrap(), id)
            })
            .collect()
    };
    let mut r = db.session();
    begin(&mut r, Isolation::RepeatableRead);
    let before = covering(&mut r);
    assert_eq!(before.len(), 30);
    assert!(
        before.contains(&("Name7".into(), 7)),
        "the bytes that were stored, not their sort key"
    );
    update(&mut w, &table, 7, &row(7, 1, "NAME7"));
    update(&mut w, &table, 8, &row(8, 1, "other"));
    delete(&mut w, &table, 9);
    assert_eq!(covering(&mut r), before);
    commit(&mut w);
    assert_eq!(covering(&mut r), before);
    commit(&mut r);
    let now = covering(&mut r);
    assert!(
        now.contains(&("NAME7".into(), 7)) && now.contains(&("other".into(), 8)) && now.len() == 29
    );
    commit(&mut r);
}

#[test]
fn writers_wait_for_each_other() {
    let db = Db::new();
    let table = db.table();
    let (mut a, mut b) = (db.session(), db.session());
    insert(&mut a, &table, &row(1, 1, "one"));
    commit(&mut a);
    update(&mut a, &table, 1, &row(1, 2, "two"));
    b.statement_begin(Isolation::RepeatableRead, false);
    let mut op = InsertOp::new(table.clone());
    encode(&table, &row(5, 5, "TWO"), op.row());
    let wait = match b.insert(&mut op) {
        Err(StoreStop::Wait(wait)) => wait,
        other => panic!("the unique key is taken by an unfinished transaction: {other:?}"),
    };
    block(|| a.rollback()).unwrap();
    wait.block();
    assert_eq!(block(|| b.insert(&mut op)).unwrap(), WriteOutcome::Done);
    commit(&mut b);
    assert_eq!(all(&mut a, &table), [row(1, 1, "one"), row(5, 5, "TWO")]);
    commit(&mut a);
    assert_sound(&db.engine, &table);
}

#[test]
fn threads_move_money_and_the_sum_stays() {
    let db = Db::new();
    let table = db.table();
    let mut s = db.session();
    const ACCOUNTS: i64 = 12;
    for id in 0..ACCOUNTS {
        insert(&mut s, &table, &row(id, 100, &format!("s{id}")));
    }
    commit(&mut s);
    let transfer = |s: &mut EngineSession, from: i64, to: i64| -> Result<(), EngineError> {
        for (id, change) in [(from, -1), (to, 1)] {
            s.statement_begin(Isolation::RepeatableRead, false);
            let mut points = EqualityKeys::new();
            points.push_with(|out| {
                table
                    .key_layout(0)
                    .encode_values([ValueRef::Int(id)], out)
                    .unwrap()
            });
            let spec = ReadSpec {
                lock: RowLock::Exclusive,
                columns: vec![0, 1, 2, 3],
                ..ReadSpec::default()
            };
            let mut read = Read::points(table.clone(), spec, points);
            let mut batch = RowBatch::new();
            while block(|| read.next(s, &mut batch))? {}
            let mut r = decode(&table, batch.row(0));
            r.1 = r.1.map(|k| k + change);
            let mut op = UpdateOp::new(table.clone());
            encode(&table, &r, op.row(batch.row(0), None));
            block(|| s.update(&mut op))?;
            block(|| s.statement_end(true))?;
        }
        block(|| s.commit())
    };
    std::thread::scope(|scope| {
        for thread in 0..3i64 {
            let (engine, transfer) = (&db.engine, &transfer);
            scope.spawn(move || {
                let mut s = engine.session(10 + thread as u64).unwrap();
                for i in 0..60 {
                    let (from, to) = (
                        (i * 7 + thread) % ACCOUNTS,
                        (i * 5 + thread * 3 + 1) % ACCOUNTS,
                    );
                    if transfer(&mut s, from, to).is_err() {
                        block(|| s.rollback()).unwrap();
                    }
                }
            });
        }
        for _ in 0..40 {
            let sum: i64 = all(&mut s, &table).iter().map(|r| r.1.unwrap()).sum();
            assert_eq!(sum, 100 * ACCOUNTS);
            block(|| s.commit()).unwrap();
            db.engine.step_background().unwrap();
        }
    });
    assert_sound(&db.engine, &table);
}

/// Purge skips an entry that an unfinished transaction has restored. If this transaction is rolled
/// back, the rollback must remove the entry, because purge does not come back to it.
#[test]
fn rollback_removes_an_entry_that_purge_skipped() {
    let db = Db::new();
    let table = db.table();
    let (mut w, mut s) = (db.session(), db.session());
    insert(&mut w, &table, &row(1, 10, "a"));
    commit(&mut w);
    update(&mut w, &table, 1, &row(1, 20, "b"));
    commit(&mut w);
    update(&mut s, &table, 1, &row(1, 10, "a"));
    while db.engine.step_background().unwrap() {}
    assert_eq!(db.engine.trx_status().history_length, 0);
    block(|| s.rollback()).unwrap();
    assert_purged(&db.engine, &table);
    assert_eq!(all(&mut w, &table), [row(1, 20, "b")]);
    commit(&mut w);
    // The same with a version between, which purge has passed too.
    update(&mut w, &table, 1, &row(1, 30, "c"));
    commit(&mut w);
    update(&mut w, &table, 1, &row(1, 40, "d"));
    commit(&mut w);
    s.begin(TrxOptions {
        isolation: Isolation::RepeatableRead,
        read_only: false,
        consistent_snapshot: false,
    });
    update(&mut s, &table, 1, &row(1, 30, "c"));
    s.savepoint("here");
    update(&mut s, &table, 1, &row(1, 20, "b"));
    while db.engine.step_background().unwrap() {}
    block(|| s.rollback_to("here")).unwrap();
    block(|| s.rollback()).unwrap();
    assert_purged(&db.engine, &table);
    assert_sound(&db.engine, &table);
}

#[test]
fn row_hints_are_repaired_in_the_background() {
    let db = Db::new();
    let table = db.table();
    let k = table.def().index("k").unwrap();
    let mut w = db.session();
    // In an order that splits leaves in the middle, so that rows move after their entries were
    // written.
    for i in 0..3_000i64 {
        let id = i * 1_009 % 3_001;
        insert(&mut w, &table, &row(id, id % 500, &format!("g{id}")));
    }
    commit(&mut w);
    let keys: Vec<Value> = (0..500).map(Value::Int).collect();
    db.engine.set_row_hints(false);
    let plain = by_key(&mut w, &table, k, &keys, RowLock::None);
    commit(&mut w);
    assert_eq!(db.engine.row_hint_status(), crate::RowHintStatus::default());
    db.engine.set_row_hints(true);
    let mut last = crate::RowHintStatus::default();
    for round in 0..200 {
        assert_eq!(
            by_key(&mut w, &table, k, &keys, RowLock::None),
            plain,
            "round {round}"
        );
        commit(&mut w);
        let now = db.engine.row_hint_status();
        assert_eq!(
            now.hits + now.misses - last.hits - last.misses,
            plain.len() as u64
        );
        if now.misses == last.misses {
            assert!(now.repaired > 0 && round > 0, "{now:?}");
            assert_sound(&db.engine, &table);
            return;
        }
        last = now;
        db.engine.step_background().unwrap();
    }
    panic!("row_hints are still wrong: {last:?}");
}

#[test]
fn the_report_names_holders_waiters_and_the_last_deadlock() {
    let db = Db::new();
    let table = db.table();
    let mut a = db.engine.session(11).unwrap();
    let mut b = db.engine.session(12).unwrap();
    insert(&mut a, &table, &row(1, 1, "one"));
    insert(&mut a, &table, &row(2, 2, "two"));
    commit(&mut a);
    begin(&mut a, Isolation::RepeatableRead);
    begin(&mut b, Isolation::RepeatableRead);
    update(&mut a, &table, 1, &row(1, 10, "one"));
    update(&mut b, &table, 2, &row(2, 20, "two"));
    let spec = |index| ReadSpec {
        index,
        lock: RowLock::Exclusive,
        columns: vec![0, 1, 2, 3],
        ..ReadSpec::default()
    };
    let read = |s: &mut EngineSession, id: i64| {
        let mut points = EqualityKeys::new();
        points.push_with(|out| {
            let key = table.key_layout(0);
            key.encode_values([ValueRef::Int(id)], out).unwrap();
        });
        let mut read = Read::points(table.clone(), spec(0), points);
        read.next(s, &mut RowBatch::new())
    };
    let Err(StoreStop::Wait(_wait)) = read(&mut a, 2) else {
        panic!("b has the row")
    };
    let says = |what: &str| {
        let of_session = |id: u64, out: &mut String| out.push_str(&format!("session {id}\n"));
        let report = db.engine.transaction_report(&of_session);
        assert!(report.contains(what), "{what} is not in:\n{report}");
    };
    says("session 11\n------- TRX HAS BEEN WAITING 0 SEC");
    says("index PRIMARY of table `d`.`t`");
    db.engine.step_background().unwrap();
    says("which holds purge back:\nsession 11");
    says(&format!(
        "blocked by TRANSACTION {}, MySQL thread id 12",
        b.trx_id()
    ));
    let locks = db.engine.data_locks();
    let find = |session: u64, granted: bool| {
        let one = |l: &&DataLock| l.session == session && l.granted == granted && l.index.is_some();
        locks.iter().find(one).unwrap()
    };
    let (held, wanted) = (find(12, true), find(11, false));
    assert_eq!(
        (&*held.mode, held.data.as_deref()),
        ("X,REC_NOT_GAP", Some("2"))
    );
    assert_eq!(wanted.mode, "X,REC_NOT_GAP");
    let waits = db.engine.data_lock_waits();
    assert_eq!(waits.len(), 1);
    assert_eq!((&waits[0].waiting, &waits[0].blocking), (wanted, held));
    assert!(matches!(
        read(&mut b, 1),
        Err(StoreStop::Error(EngineError::Deadlock))
    ));
    says("LATEST DETECTED DEADLOCK");
    says("*** (2) WAITING FOR THIS LOCK TO BE GRANTED:");
    says("*** WE ROLL BACK TRANSACTION (1)");
    block(|| b.rollback()).unwrap();
    block(|| a.rollback()).unwrap();
    assert!(db.engine.transactions().is_empty() && db.engine.data_locks().is_empty());
}
