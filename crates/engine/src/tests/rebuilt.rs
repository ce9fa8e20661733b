//! Small tables that keep their rows while they are copied, renamed, indexed and stripped of
//! indexes beside those who move amounts between them, others are made and dropped, and the pool
//! changes its size.

use std::time::{Duration, Instant};

use super::*;
use nfold_catalog::MdlSlot;

const ROWS: u64 = 200;
const BANKS: u64 = 2;

fn begin(s: &mut EngineSession) {
    s.begin(TrxOptions {
        isolation: Isolation::RepeatableRead,
        read_only: false,
        consistent_snapshot: false,
    });
}

/// A table as it is now, which stays so until the slot lets it go.
fn shared(db: &Db, slot: &mut MdlSlot, name: &str) -> Option<Arc<Table>> {
    let schema = db.engine.catalog().snapshot();
    let def = schema.table("d", name)?;
    slot.acquire(def.id).ok()?;
    let now = db.engine.catalog().snapshot();
    let same = now.table("d", name).is_some_and(|t| Arc::ptr_eq(t, def));
    same.then(|| db.engine.table(def.id).unwrap())
}

/// Adds to one account's amount; false after a deadlock, which has rolled the transaction back.
fn add(s: &mut EngineSession, table: &Arc<Table>, id: i64, amount: i64, note: usize) -> bool {
    let allowed = |e: EngineError| assert!(matches!(e, EngineError::Deadlock), "{e}");
    s.statement_begin(Isolation::RepeatableRead, false);
    let mut points = EqualityKeys::new();
    points.push_with(|out| {
        let key = [Value::Int(id)];
        let key = key.iter().map(Value::as_ref);
        table.key_layout(0).encode_values(key, out).unwrap()
    });
    let spec = ReadSpec {
        index: 0,
        lock: RowLock::Exclusive,
        columns: vec![0, 1, 2, 3],
        ..ReadSpec::default()
    };
    let mut read = Read::points(table.clone(), spec, points);
    let mut batch = RowBatch::new();
    loop {
        match block(|| read.next(s, &mut batch)) {
            Ok(true) => {}
            Ok(false) => break,
            Err(e) => {
                allowed(e);
                return false;
            }
        }
    }
    let old: Vec<Row> = batch.iter().map(|image| decode(table, image)).collect();
    assert_eq!(old.len(), 1, "account {id}");
    let mut image = Vec::new();
    encode(table, &old[0], &mut image);
    let new = (
        id,
        Some(old[0].1.unwrap() + amount),
        old[0].2.clone(),
        Some("n".repeat(note)),
    );
    let mut op = UpdateOp::new(table.clone());
    encode(table, &new, op.row(&image, None));
    match block(|| s.update(&mut op)) {
        Ok(outcome) => assert_eq!(outcome, WriteOutcome::Done),
        Err(e) => {
            allowed(e);
            return false;
        }
    }
    block(|| s.statement_end(true)).unwrap();
    true
}

fn transfer(db: &Db, slot: &mut MdlSlot, random: &mut Random) {
    let mut s = db.session();
    begin(&mut s);
    let accounts = [random.below(ROWS) as i64, random.below(ROWS) as i64];
    let amount = random.below(50) as i64;
    for (id, amount) in accounts.into_iter().zip([-amount, amount]) {
        let name = format!("bank{}", random.below(BANKS));
        let end = Instant::now() + Duration::from_secs(2);
        let table = loop {
            match shared(db, slot, &name) {
                Some(table) => break table,
                None if Instant::now() < end && slot.mark() == 0 => std::thread::yield_now(),
                None => return block(|| s.rollback()).unwrap(),
            }
        };
        let note = [0, 0, 100, 9000][random.below(4) as usize];
        if !add(&mut s, &table, id, amount, note) {
            return block(|| s.rollback()).unwrap();
        }
    }
    match random.below(12) {
        0 => {} // the connection is lost
        1..4 => block(|| s.rollback()).unwrap(),
        _ => commit(&mut s),
    }
}

fn define(db: &Db, table: &Arc<Table>, random: &mut Random) {
    let (engine, def) = (&db.engine, table.def());
    match random.below(7) {
        0..4 => drop(engine.optimize_table(def).unwrap()),
        4 => {
            let same = [(def.clone(), def.schema.clone(), def.name.clone())];
            engine.rename_tables(&same).unwrap();
        }
        _ => match def.indexes.iter().find(|i| &*i.name == "b") {
            Some(index) => engine.change_indexes(def, &[], &[index.id]).unwrap(),
            None => engine
                .change_indexes(def, &[secondary("b", 3, Some(300), false)], &[])
                .unwrap(),
        },
    }
}

fn others(db: &Db, name: &str, random: &mut Random) {
    let def = db.engine.create_table(spec(name, true)).unwrap();
    let table = db.engine.table(def.id).unwrap();
    let mut s = db.session();
    begin(&mut s);
    for id in 0..random.below(400) as i64 {
        let long = [10, 300, 2500, 20_000][random.below(4) as usize];
        let text = "x".repeat(long);
        insert(
            &mut s,
            &table,
            &(id, Some(id % 7), Some(format!("s{id}")), Some(text)),
        );
    }
    if random.below(3) > 0 {
        commit(&mut s);
    }
    drop(s);
    let mut def = def;
    for _ in 0..random.below(3) {
        db.engine.truncate_table(&def).unwrap();
        def = db.find(name).def().clone();
    }
    db.engine.drop_tables(&[def]).unwrap();
}

#[test]
fn tables_keep_their_rows_through_ddl() {
    let mut options = options();
    options.store.io_threads = 2;
    options.store.pool_bytes = 16 << 20;
    options.store.log_bytes = 16 << 20;
    options.flush_at_commit = 2;
    let db = &Db::with(options);
    let mut sum = 0;
    for n in 0..BANKS {
        db.engine
            .create_table(spec(&format!("bank{n}"), true))
            .unwrap();
        let table = db.find(&format!("bank{n}"));
        let mut s = db.session();
        begin(&mut s);
        for id in 0..ROWS as i64 {
            insert(&mut s, &table, &row(id, 100, &format!("s{id}")));
            sum += 100;
        }
        commit(&mut s);
    }
    let mdl = &db.engine.catalog().mdl().clone();
    let end = Instant::now() + Duration::from_secs(stress_seconds(2));
    let (done, defined) = &(
        std::sync::atomic::AtomicU64::new(0),
        std::sync::atomic::AtomicU64::new(0),
    );
    let relaxed = std::sync::atomic::Ordering::Relaxed;
    std::thread::scope(|s| {
        for thread in 0..4u64 {
            s.spawn(move || {
                let mut random = Random(0x9e37_79b9 * (thread + 1) + stress_seconds(2));
                let mut slot = mdl.slot(0);
                while Instant::now() < end {
                    transfer(db, &mut slot, &mut random);
                    slot.release_all();
                    done.fetch_add(1, relaxed);
                }
            });
        }
        s.spawn(move || {
            let mut random = Random(0xdef1 + stress_seconds(2));
            while Instant::now() < end {
                let name = format!("bank{}", random.below(BANKS));
                let Some((claim, table)) = claimed(db, mdl, &name) else {
                    std::thread::sleep(Duration::from_micros(50));
                    continue;
                };
                define(db, &table, &mut random);
                defined.fetch_add(1, relaxed);
                drop(claim);
                std::thread::sleep(Duration::from_micros(random.below(3000)));
            }
        });
        for thread in 0..2u64 {
            s.spawn(move || {
                let mut random = Random(0xabcd * (thread + 1) + stress_seconds(2));
                while Instant::now() < end {
                    others(db, &format!("o{thread}"), &mut random);
                    defined.fetch_add(1, relaxed);
                }
            });
        }
        s.spawn(move || {
            let mut random = Random(77);
            while Instant::now() < end {
                db.engine.resize_pool((12 + random.below(20)) << 20);
                std::thread::sleep(Duration::from_millis(50));
            }
        });
    });
    println!(
        "{} transfers, {} definitions",
        done.load(relaxed),
        defined.load(relaxed)
    );
    let end = Instant::now() + Duration::from_secs(60);
    while db.engine.trx_status().rolling_back > 0 || db.engine.trx_status().history_length > 0 {
        assert!(Instant::now() < end, "{:?}", db.engine.trx_status());
        std::thread::sleep(Duration::from_millis(5));
    }
    for n in 0..BANKS {
        let table = db.find(&format!("bank{n}"));
        assert!(table.check_sound().is_ok());
        assert_sound(&db.engine, &table);
        let mut s = db.session();
        let rows = all(&mut s, &table);
        commit(&mut s);
        assert_eq!(rows.len() as u64, ROWS);
        sum -= rows.iter().map(|row| row.1.unwrap()).sum::<i64>();
    }
    assert_eq!(sum, 0);
    db.engine.checkpoint().unwrap();
    db.engine.shutdown().unwrap();
}
