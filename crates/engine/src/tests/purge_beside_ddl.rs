//! Purge and rollback of lost sessions hold no metadata lock: tables and indexes go, and are
//! replaced, under their hands.

use std::time::{Duration, Instant};

use super::*;

const TABLES: u64 = 3;

/// Rows of a few to a page, so that deleting them merges and frees pages.
fn wide(id: i64, random: &mut Random) -> Row {
    let long = match random.below(12) {
        0 => 30_000,
        1..6 => 2500,
        _ => 300,
    };
    let text = char::from(b'a' + (id % 20) as u8).to_string().repeat(long);
    (id, Some(id % 7), Some(format!("s{id}")), Some(text))
}

/// Fills a part of a table and empties it again; some of it is taken back, or left to the
/// background.
fn churn(db: &Db, table: &Arc<Table>, random: &mut Random) {
    let mut s = db.session();
    let (first, count) = (random.below(300) as i64, 20 + random.below(250) as i64);
    let begin = |s: &mut EngineSession| {
        s.begin(TrxOptions {
            isolation: Isolation::RepeatableRead,
            read_only: false,
            consistent_snapshot: false,
        })
    };
    begin(&mut s);
    for id in first..first + count {
        if insert(&mut s, table, &wide(id, random)) != WriteOutcome::Done {
            update(&mut s, table, id, &wide(id, random));
        }
    }
    if random.below(5) == 0 {
        return; // the connection is lost
    }
    commit(&mut s);
    begin(&mut s);
    for id in first..first + count {
        match random.below(20) {
            0 => {}
            1 => drop(update(&mut s, table, id, &wide(id, random))),
            _ => delete(&mut s, table, id),
        }
    }
    match random.below(6) {
        0 => block(|| s.rollback()).unwrap(),
        1 => {}
        _ => commit(&mut s),
    }
}

fn define(db: &Db, table: &Arc<Table>, random: &mut Random) {
    let (engine, def) = (&db.engine, table.def());
    match random.below(9) {
        0 | 1 => engine.truncate_table(def).unwrap(),
        2 => drop(engine.optimize_table(def).unwrap()),
        3 => {
            engine.drop_tables(std::slice::from_ref(def)).unwrap();
            engine.create_table(spec(&def.name, true)).unwrap();
        }
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

#[test]
fn tables_and_indexes_go_under_purge_and_rollback() {
    let mut options = options();
    options.store.io_threads = 2;
    options.store.pool_bytes = 16 << 20;
    options.store.log_bytes = 16 << 20;
    options.flush_at_commit = 0;
    let db = &Db::with(options);
    for n in 0..TABLES {
        db.engine
            .create_table(spec(&format!("t{n}"), true))
            .unwrap();
    }
    let mdl = &db.engine.catalog().mdl().clone();
    let end = Instant::now() + Duration::from_secs(stress_seconds(3));
    std::thread::scope(|s| {
        for thread in 0..3u64 {
            s.spawn(move || {
                let mut random = Random(0x9e37_79b9 * (thread + 1));
                // With a claim over both, the next definition comes right behind the changes, while
                // purge is at work on them.
                while Instant::now() < end {
                    let name = format!("t{}", random.below(TABLES));
                    let Some((claim, table)) = claimed(db, mdl, &name) else {
                        std::thread::yield_now();
                        continue;
                    };
                    churn(db, &table, &mut random);
                    std::thread::sleep(Duration::from_micros(random.below(60_000)));
                    define(db, &table, &mut random);
                    drop(claim);
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
    let end = Instant::now() + Duration::from_secs(60);
    while db.engine.trx_status().rolling_back > 0 || db.engine.trx_status().history_length > 0 {
        assert!(Instant::now() < end, "{:?}", db.engine.trx_status());
        std::thread::sleep(Duration::from_millis(5));
    }
    for n in 0..TABLES {
        let table = db.find(&format!("t{n}"));
        assert!(table.check_sound().is_ok());
        assert_sound(&db.engine, &table);
    }
    db.engine.checkpoint().unwrap();
    db.engine.shutdown().unwrap();
}
