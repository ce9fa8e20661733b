//! Definitions that change while the undo log still has records of the old ones.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use super::*;
use crate::stoppable;
use nfold_store::Stop as StoreStop;

fn drain(db: &Db) {
    for _ in 0..1000 {
        if !db.engine.step_background().unwrap() && db.engine.trx_status().history_length == 0 {
            return;
        }
    }
    panic!(
        "purge does not come to an end: {:?}",
        db.engine.trx_status()
    );
}

fn snapshot(db: &Db) -> EngineSession {
    let mut s = db.session();
    s.begin(TrxOptions {
        isolation: Isolation::RepeatableRead,
        read_only: false,
        consistent_snapshot: true,
    });
    s
}

/// `t` with `k` as text and more columns of text: its layout cannot read the rows of before.
fn other_spec() -> TableSpec {
    let mut spec = spec("t", true);
    spec.columns[1].ty = ColumnType::varchar(20, CollationId(255));
    for n in 0..4 {
        let text = ColumnType::varchar(20, CollationId(255));
        spec.columns.push(column(&format!("more{n}"), text, true));
    }
    spec
}

#[test]
fn old_versions_of_another_layout_do_not_stop_purge() {
    for crash in [false, true] {
        let mut db = Db::new();
        let table = db.table();
        let mut w = db.session();
        for id in 0..30 {
            insert(&mut w, &table, &row(id, id, &format!("first {id}")));
        }
        commit(&mut w);
        let mut reader = snapshot(&db);
        for id in 0..30 {
            update(
                &mut w,
                &table,
                id,
                &row(id, id + 1, &format!("second {id}")),
            );
        }
        commit(&mut w);
        (0..10).for_each(|id| delete(&mut w, &table, id));
        commit(&mut w);
        let layout = {
            let spec = other_spec();
            let columns = spec.columns.iter().map(|c| nfold_types::row::RowColumn {
                ty: c.ty.clone(),
                nullable: c.nullable,
            });
            nfold_types::row::RowLayout::new(0, columns)
        };
        let old = table.layout();
        let moved = db
            .engine
            .rebuild_table(table.def(), &other_spec(), |from, to| {
                let id = old.get(from, 0).unwrap();
                let text = old.get(from, 2).unwrap();
                let values = [id, text, text, text, text, text, text, text];
                layout.encode(values, to).map_err(drop)
            });
        assert_eq!(moved.unwrap(), 20);
        commit(&mut reader);
        drop((reader, w, table));
        if crash {
            db = db.crash();
        }
        drain(&db);
        let table = db.find("t");
        let report = db.engine.check_table(&table).unwrap();
        assert!(report.problems.is_empty(), "{:?}", report.problems);
    }
}

#[test]
fn an_index_is_not_built_from_what_is_being_taken_back() {
    for crash in [false, true] {
        let mut db = Db::new();
        let table = db.table();
        let mut w = db.session();
        for id in 0..20 {
            insert(&mut w, &table, &row(id, id, &format!("s{id}")));
        }
        commit(&mut w);
        let mut lost = db.session();
        for id in 0..10 {
            update(&mut lost, &table, id, &row(id, 100 + id, &format!("t{id}")));
        }
        delete(&mut lost, &table, 15);
        insert(&mut lost, &table, &row(50, 50, "new"));
        // Without a word: the connection is gone.
        drop((lost, table));
        // Makes the log durable up to here.
        let table = db.find("t");
        insert(&mut w, &table, &row(60, 60, "sixty"));
        commit(&mut w);
        drop((w, table));
        if crash {
            db = db.crash();
        }
        let table = db.find("t");
        let k2 = secondary("k2", 1, None, true);
        db.engine.change_indexes(table.def(), &[k2], &[]).unwrap();
        drain(&db);
        let table = db.find("t");
        let report = db.engine.check_table(&table).unwrap();
        assert!(report.problems.is_empty(), "{:?}", report.problems);
        let mut s = db.session();
        assert_eq!(all(&mut s, &table).len(), 21);
        let keys: Vec<Value> = (0..20).map(Value::Int).collect();
        let k2 = table.def().index("k2").unwrap();
        assert_eq!(by_key(&mut s, &table, k2, &keys, RowLock::None).len(), 20);
    }
}

#[test]
fn a_change_that_is_asked_to_stop_leaves_nothing() {
    let db = Db::new();
    let table = db.table();
    let mut w = db.session();
    for id in 0..200 {
        insert(&mut w, &table, &row(id, 1000 + id, &format!("t{id}")));
    }
    commit(&mut w);
    drop((w, table));
    let table = db.find("t");
    let names = |table: &Table| {
        let indexes = table.def().indexes.iter();
        indexes.map(|i| i.name.clone()).collect::<Vec<_>>()
    };
    let before = (table.def().id, names(&table));
    let k2 = secondary("k2", 1, None, false);
    let asked = Arc::new(AtomicBool::new(true));
    let stopped = stoppable(asked.clone(), || {
        db.engine
            .change_indexes(table.def(), std::slice::from_ref(&k2), &[])
    });
    assert_eq!(stopped, Err(EngineError::Stopped));
    let stopped = stoppable(asked.clone(), || db.engine.optimize_table(table.def()));
    assert_eq!(stopped, Err(EngineError::Stopped));
    let stopped = stoppable(asked.clone(), || db.engine.check_table(&table));
    assert_eq!(stopped, Err(EngineError::Stopped));
    let stopped = stoppable(asked.clone(), || db.engine.analyze_table(&table));
    assert_eq!(stopped, Err(EngineError::Stopped));
    let same = db.find("t");
    assert_eq!((same.def().id, names(&same)), before);
    assert!(db.engine.check_table(&same).unwrap().problems.is_empty());
    // A flag that is not raised, and one of a change that is over, stop nothing.
    asked.store(false, Relaxed);
    stoppable(asked.clone(), || {
        db.engine.change_indexes(table.def(), &[k2], &[])
    })
    .unwrap();
    asked.store(true, Relaxed);
    let table = db.find("t");
    assert_eq!(names(&table).len(), before.1.len() + 1);
    assert_eq!(db.engine.optimize_table(table.def()), Ok(200));
    assert!(
        db.engine
            .check_table(&db.find("t"))
            .unwrap()
            .problems
            .is_empty()
    );
}

#[test]
fn an_old_snapshot_cannot_use_a_new_table_or_index() {
    let db = Db::new();
    let table = db.table();
    let mut w = db.session();
    insert(&mut w, &table, &row(1, 1, "one"));
    commit(&mut w);
    drop((w, table));
    let mut old = snapshot(&db);
    let refused = |s: &mut EngineSession, table: &Arc<Table>, index: usize| {
        let spec = ReadSpec {
            index,
            ..ReadSpec::default()
        };
        let mut read = Read::range(table.clone(), spec, &KeyRange::all(), false);
        let mut out = RowBatch::new();
        loop {
            match read.next(s, &mut out) {
                Ok(false) => return false,
                Ok(true) => {}
                Err(StoreStop::Wait(wait)) => wait.block(),
                Err(StoreStop::Error(e)) => {
                    assert_eq!(e, EngineError::TableChanged);
                    assert!(s.snapshot_refused());
                    return true;
                }
            }
        }
    };
    let table = db.find("t");
    let k2 = secondary("k2", 1, None, true);
    db.engine.change_indexes(table.def(), &[k2], &[]).unwrap();
    let table = db.find("t");
    let k2 = table.def().index("k2").unwrap();
    assert!(refused(&mut old, &table, k2));
    assert!(
        !refused(&mut old, &table, 0),
        "the rows are where they were"
    );
    let mut changed = TableDef::clone(table.def());
    changed.options.comment = "changed".into();
    db.engine.alter_definition(changed).unwrap();
    let table = db.find("t");
    assert!(refused(&mut old, &table, k2), "still");
    assert!(!refused(&mut old, &table, 0));
    db.engine.truncate_table(table.def()).unwrap();
    let table = db.find("t");
    assert!(refused(&mut old, &table, 0));
    assert!(!refused(&mut snapshot(&db), &table, 0));
    db.engine.optimize_table(table.def()).unwrap();
    assert!(refused(&mut old, &db.find("t"), 0));
}

#[test]
fn optimizing_keeps_the_rows_and_shrinks_the_file() {
    let db = Db::new();
    let table = db.table();
    let mut w = db.session();
    let long = "long ".repeat(4000);
    for id in 0..600 {
        let mut row = row(id, id % 7, &format!("s{id}"));
        row.3 = (id % 5 == 0).then(|| long.clone());
        insert(&mut w, &table, &row);
    }
    commit(&mut w);
    for id in (0..600).filter(|id| id % 10 != 0) {
        delete(&mut w, &table, id);
    }
    commit(&mut w);
    drain(&db);
    let mut before = all(&mut w, &table);
    before.sort();
    commit(&mut w);
    let size = |space: u32| -> u64 {
        db.engine.step_background().unwrap();
        u64::from(db.engine.shared().store.space_pages(space).unwrap())
    };
    let pages = size(table.def().space);
    assert_eq!(db.engine.optimize_table(table.def()).unwrap(), 60);
    let table = db.find("t");
    let now = size(table.def().space);
    assert!(2 * now < pages, "{now} of {pages} pages");
    let mut after = all(&mut w, &table);
    after.sort();
    assert_eq!(after, before);
    assert_sound(&db.engine, &table);
}

/// While a statement has an exclusive metadata lock, no other session can use the table that
/// replaced the locked one.
#[test]
fn the_metadata_lock_passes_to_the_table_that_takes_the_place() {
    let db = Db::new();
    let mdl = db.engine.catalog().mdl().clone();
    let mut other = mdl.slot(0);
    let old = db.table().def().clone();
    let claim = mdl.try_exclusive(None, &[old.id]).unwrap();
    db.engine.truncate_table(&old).unwrap();
    let empty = db.find("t").def().clone();
    db.engine.optimize_table(&empty).unwrap();
    let dense = db.find("t").def().clone();
    assert!(old.id != empty.id && empty.id != dense.id);
    assert!(other.acquire(dense.id).is_err() && claim.covers(dense.id));
    drop(claim);
    other.acquire(dense.id).unwrap();
}

/// While a table is copied, which may take minutes, other tables can be created and changed.
#[test]
fn a_copy_that_takes_long_stands_in_no_other_definitions_way() {
    let db = Db::new();
    let table = db.table();
    let other = db.engine.create_table(spec("u", true)).unwrap();
    let mut w = db.session();
    insert(&mut w, &table, &row(1, 1, "one"));
    commit(&mut w);
    let (begun, has_begun) = std::sync::mpsc::channel();
    let (go, may_go) = std::sync::mpsc::channel::<()>();
    std::thread::scope(|s| {
        let (db, def) = (&db, table.def());
        let copy = s.spawn(move || {
            let mut first = true;
            db.engine.rebuild_table(def, &spec("t", true), |old, new| {
                if std::mem::take(&mut first) {
                    begun.send(()).unwrap();
                    // Until all the others are done; if they wait for this, it ends all the same,
                    // and too early.
                    may_go
                        .recv_timeout(std::time::Duration::from_secs(20))
                        .map_err(drop)?;
                }
                new.extend_from_slice(old);
                Ok::<(), ()>(())
            })
        });
        has_begun.recv().unwrap();
        db.engine.truncate_table(&other).unwrap();
        let other = db.find("u");
        db.engine.optimize_table(other.def()).unwrap();
        let other = db.find("u");
        let k2 = secondary("k2", 1, None, false);
        db.engine.change_indexes(other.def(), &[k2], &[]).unwrap();
        let other = db.find("u");
        db.engine
            .drop_tables(std::slice::from_ref(other.def()))
            .unwrap();
        go.send(()).unwrap();
        assert_eq!(copy.join().unwrap().unwrap(), 1);
    });
    assert_sound(&db.engine, &db.find("t"));
}

/// DROP TABLE of a table without its file is done, like those beside it.
#[test]
fn a_table_whose_file_is_missing_is_dropped() {
    let db = Db::new();
    let lost = db.table().def().clone();
    let other = db.engine.create_table(spec("u", true)).unwrap();
    let db = {
        db.engine.shutdown().unwrap();
        let file = db.dir.path().join(format!("t{}.nfd", lost.id.0));
        std::fs::remove_file(file).unwrap();
        db.crash()
    };
    let tables = [db.find("t").def().clone(), db.find("u").def().clone()];
    db.engine.drop_tables(&tables).unwrap();
    let file = db.dir.path().join(format!("t{}.nfd", other.id.0));
    assert!(!file.exists());
    let db = db.crash();
    let schema = db.engine.catalog().snapshot();
    assert!(schema.table("d", "t").is_none() && schema.table("d", "u").is_none());
    db.engine.create_table(spec("t", true)).unwrap();
}

/// Rows of a table that has no name yet: filled by a transaction, given up or named; a crash at
/// each of its stages.
#[test]
fn a_table_has_its_rows_before_its_name() {
    enum Stage {
        Filling,
        Committed,
        Abandoned,
        Named,
    }
    use Stage::*;
    let spaces = |db: &Db| std::fs::read_dir(db.dir.path()).unwrap().count();
    for stage in [Filling, Committed, Abandoned, Named] {
        for crash in [false, true] {
            let mut db = Db::new();
            let before = spaces(&db);
            let mut reader = snapshot(&db);
            let def = db.engine.create_unnamed_table(spec("u", true)).unwrap();
            let table = db.engine.table(def.id).unwrap();
            let mut w = db.session();
            let rows: Vec<Row> = (0..300)
                .map(|n| row(n, n % 7, &format!("row {n}")))
                .collect();
            for row in &rows {
                insert(&mut w, &table, row);
            }
            delete(&mut w, &table, 3);
            if !matches!(stage, Filling) {
                commit(&mut w);
            }
            match stage {
                Filling if !crash => {
                    block(|| w.rollback()).unwrap();
                    assert_eq!(all(&mut w, &table), []);
                    commit(&mut w);
                    db.engine.abandon_table(&def);
                }
                Abandoned => db.engine.abandon_table(&def),
                Named => db.engine.name_table(&def).unwrap(),
                _ => {}
            }
            if matches!(stage, Named) && !crash {
                let spec = ReadSpec::default();
                let mut read = Read::range(db.find("u"), spec, &KeyRange::all(), false);
                let refused = block(|| read.next(&mut reader, &mut RowBatch::new()));
                assert_eq!(refused.unwrap_err(), EngineError::TableChanged);
            }
            drop((reader, w, table));
            if crash {
                db = db.crash();
            }
            drain(&db);
            let schema = db.engine.catalog().snapshot();
            match stage {
                Named => {
                    let named = db.find("u");
                    let kept = all(&mut db.session(), &named);
                    assert!(kept.iter().eq(rows.iter().filter(|r| r.0 != 3)));
                    assert_sound(&db.engine, &named);
                }
                _ => {
                    assert!(schema.table("d", "u").is_none());
                    if crash || !matches!(stage, Committed) {
                        assert!(db.engine.table(def.id).is_none());
                    }
                    if crash {
                        assert_eq!(spaces(&db), before, "its file is gone");
                    }
                    // The name is free.
                    db.engine.create_table(spec("u", true)).unwrap();
                }
            }
        }
    }
}

#[test]
fn views_outlive_a_crash_and_go_with_their_database() {
    use nfold_catalog::ViewDef;
    let view = |name: &str, text: &str| ViewSpec {
        schema: "d".into(),
        name: name.into(),
        columns: vec![column("c", ColumnType::bigint(), true)],
        collation: CollationId(255),
        view: ViewDef {
            text: text.as_bytes().into(),
            database: Some("d".into()),
            lexing: 3,
            mode: 77,
            collation: CollationId(45),
            definer: ("root".into(), "localhost".into()),
            invoker: true,
            algorithm: nfold_catalog::ViewAlgorithm::TempTable,
            check: nfold_catalog::ViewCheck::Local,
            updatable: true,
        },
    };
    let find = |db: &Db, name: &str| {
        let schema = db.engine.catalog().snapshot();
        schema.table("d", name).cloned()
    };
    let mut db = Db::new();
    db.engine.put_view(view("v", "SELECT 1"), None).unwrap();
    db.engine.put_view(view("w", "SELECT 2"), None).unwrap();
    let first = find(&db, "v").unwrap();
    let again = db.engine.put_view(view("v", "SELECT 3"), Some(&first));
    again.unwrap();
    let before = find(&db, "v").unwrap();
    assert_ne!(before.id, first.id);
    let gone = find(&db, "w").unwrap();
    db.engine.drop_views(&[gone]).unwrap();
    drop(first);
    db = db.crash();
    assert_eq!(find(&db, "v").unwrap(), before);
    assert_eq!(&*before.view().unwrap().text, b"SELECT 3");
    assert!(find(&db, "w").is_none());
    assert!(db.engine.table(before.id).is_none(), "it has no rows");
    db.engine.drop_database("d").unwrap();
    db = db.crash();
    assert!(find(&db, "v").is_none());
}
