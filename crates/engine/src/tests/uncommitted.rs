//! READ UNCOMMITTED beside a change of the rows that are being read: at each wait of the read in
//! turn, which keeps nothing from being freed.

use super::*;
use crate::read::release::may_have_gone;
use crate::record::RowHeader;
use nfold_store::{SimDisk, Stop as StoreStop};

fn long(id: i64, k: i64, c: &str) -> Row {
    (
        id,
        Some(k),
        Some(format!("s{id}")),
        Some(c.repeat(30_000 + id as usize)),
    )
}

/// The changes that a writer makes before the read, and during it.
struct Scene {
    before: fn(&mut EngineSession, &Arc<Table>),
    beside: fn(&mut EngineSession, &Arc<Table>),
}

fn begin(w: &mut EngineSession) {
    w.begin(TrxOptions {
        isolation: Isolation::RepeatableRead,
        read_only: false,
        consistent_snapshot: false,
    });
}

const SCENES: [Scene; 4] = [
    // The chain of a change that is rolled back goes.
    Scene {
        before: |w, table| {
            update(w, table, 2, &long(2, 5, "new"));
        },
        beside: |w, _| block(|| w.rollback()).unwrap(),
    },
    // Its pages go into another chain of the same transaction.
    Scene {
        before: |w, table| {
            begin(w);
            update(w, table, 4, &long(4, 5, "new"));
            w.savepoint("a");
            update(w, table, 2, &long(2, 5, "new"));
        },
        beside: |w, table| {
            assert!(block(|| w.rollback_to("a")).is_ok());
            drained(table);
            update(w, table, 3, &long(3, 5, "other"));
            commit(w);
        },
    },
    // The row has another key, or is gone.
    Scene {
        before: |_, _| (),
        beside: |w, table| {
            update(w, table, 2, &long(2, 9, "new"));
            commit(w);
        },
    },
    Scene {
        before: |_, _| (),
        beside: |w, table| {
            delete(w, table, 2);
            commit(w);
        },
    },
];

fn drained(table: &Table) {
    block(|| table.orphaned().drain(table.store())).unwrap();
}

fn shortened(row: &Row) -> (i64, Option<i64>, Option<String>) {
    let text = row
        .3
        .as_ref()
        .map(|b| format!("{}.. {}", &b[..8.min(b.len())], b.len()));
    (row.0, row.1, text)
}

/// Rows with long columns, on a disk.
fn made() -> SimDisk {
    let disk = SimDisk::new();
    let db = open_on(&disk, 0);
    let database = DatabaseDef {
        name: "d".into(),
        collation: CollationId(255),
    };
    db.put_database(database).unwrap();
    let def = db.create_table(spec("t", true)).unwrap();
    let table = db.table(def.id).unwrap();
    let mut s = db.session(1).unwrap();
    for id in 1..=4 {
        insert(&mut s, &table, &long(id, 5, "old"));
    }
    commit(&mut s);
    drop(s);
    db.shutdown().unwrap();
    disk
}

fn open_on(disk: &SimDisk, io_threads: usize) -> Arc<Engine> {
    let mut options = options();
    options.store.io_threads = io_threads;
    Engine::open(options, Arc::new(disk.clone()), &|_| {})
        .unwrap()
        .0
}

/// Reads all rows, and makes the change at the `at`-th wait of the read. Returns whether the read
/// had that many waits.
fn read_beside(
    disk: &SimDisk,
    read: &dyn Fn(&Arc<Table>) -> Read,
    scene: &Scene,
    at: usize,
) -> bool {
    // No page is in memory, so the read waits for each page.
    let engine = open_on(&disk.kill(), 2);
    let schema = engine.catalog().snapshot();
    let table = engine.table(schema.table("d", "t").unwrap().id).unwrap();
    let (mut s, mut w) = (engine.session(1).unwrap(), engine.session(2).unwrap());
    (scene.before)(&mut w, &table);
    s.statement_begin(Isolation::ReadUncommitted, false);
    let mut reader = read(&table);
    let by_k = table.def().index("k").unwrap();
    let secondary = reader.spec().index == by_k;
    let (mut batch, mut waits) = (RowBatch::new(), 0);
    loop {
        match reader.next(&mut s, &mut batch) {
            Ok(true) => {}
            Ok(false) => break,
            Err(StoreStop::Wait(wait)) => {
                if waits == at {
                    (scene.beside)(&mut w, &table);
                    drained(&table);
                }
                waits += 1;
                wait.block();
            }
            Err(StoreStop::Error(error)) => panic!("wait {at}: {error}"),
        }
    }
    let old_or_new = |r: &Row| {
        let known = ["old", "new", "other"].map(|c| [long(r.0, 5, c), long(r.0, 9, c)]);
        known.iter().flatten().any(|k| k == r) && !(secondary && r.1 != Some(5))
    };
    let rows: Vec<Row> = batch.iter().map(|image| decode(&table, image)).collect();
    for r in &rows {
        assert!(old_or_new(r), "wait {at}: {:?}", shortened(r));
    }
    assert!(rows.len() >= 2, "wait {at}");
    assert!(table.check_sound().is_ok());
    drop((s, w, reader));
    drop(table);
    waits > at
}

fn at_every_wait(read: impl Fn(&Arc<Table>) -> Read) {
    let disk = made();
    for (n, scene) in SCENES.iter().enumerate() {
        let mut at = 0;
        while read_beside(&disk, &read, scene, at) {
            at += 1;
        }
        assert!(at > 0, "scene {n}: {at} waits");
    }
}

fn columns() -> ReadSpec {
    ReadSpec {
        columns: vec![0, 1, 2, 3],
        ..ReadSpec::default()
    }
}

#[test]
fn a_range_meets_no_freed_chain() {
    at_every_wait(|table| Read::range(table.clone(), columns(), &KeyRange::all(), false));
}

#[test]
fn points_meet_no_freed_chain() {
    at_every_wait(|table| {
        let mut points = EqualityKeys::new();
        for id in 1..=4 {
            let key = Value::Int(id);
            points.push_with(|out| {
                let layout = table.key_layout(0);
                layout.encode_values([key.as_ref()], out).unwrap()
            });
        }
        Read::points(table.clone(), columns(), points)
    });
}

#[test]
fn an_index_gives_rows_of_its_key_and_no_freed_chain() {
    at_every_wait(|table| {
        let k = table.def().index("k").unwrap();
        let mut points = EqualityKeys::new();
        let key = Value::Int(5);
        points.push_with(|out| {
            let layout = table.key_layout(k);
            layout.encode_values([key.as_ref()], out).unwrap()
        });
        let spec = ReadSpec {
            index: k,
            ..columns()
        };
        Read::points(table.clone(), spec, points)
    });
}

/// A version that a semi-consistent read looks at without a lock: it may be purged as soon as its
/// successor's transaction has ended.
#[test]
fn an_older_version_is_missing_only_during_its_update() {
    let db = Db::new();
    let table = db.table();
    let (mut s, mut w) = (db.session(), db.session());
    insert(&mut w, &table, &long(1, 1, "old"));
    commit(&mut w);
    update(&mut w, &table, 1, &long(1, 2, "new"));
    s.statement_begin(Isolation::ReadCommitted, false);
    let mut key = Vec::new();
    let id = Value::Int(1);
    let layout = table.key_layout(0);
    layout.encode_values([id.as_ref()], &mut key).unwrap();
    let mut value = Vec::new();
    let tree = &table.index(0).tree;
    assert!(
        block(|| tree
            .get(table.store(), &key, &mut value)
            .map_err(crate::error::lift))
        .unwrap()
    );
    let (header, _) = RowHeader::split(&value).unwrap();
    let gone = |s: &EngineSession| block(|| may_have_gone(&table, s, &key, &header)).unwrap();
    assert!(!gone(&s), "damage, if it is not there now");
    commit(&mut w);
    assert!(gone(&s));
    update(&mut w, &table, 1, &long(1, 3, "newer"));
    assert!(gone(&s));
}
