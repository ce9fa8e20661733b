//! Undo records of a table whose rows have moved since, whose indexes have changed, or whose
//! overflow chains are gone. The simulator found each of these cases.

use super::*;

use nfold_store::SimDisk;

fn long(id: i64, k: i64, len: usize) -> Row {
    let (_, k, s, _) = row(id, k, &format!("s{id}"));
    (id, k, s, Some("long ".repeat(len)))
}

fn run_background(engine: &Engine) {
    while engine.step_background().unwrap() {}
}

/// `INDEX b (b(12))`
fn prefix_index() -> IndexSpec {
    secondary("b", 3, Some(12), false)
}

#[test]
fn purge_leaves_the_rows_of_a_replaced_table_alone() {
    let db = Db::new();
    let table = db.table();
    let (mut s, mut reader) = (db.session(), db.session());
    for id in 0..20 {
        insert(&mut s, &table, &long(id, id, 3000));
    }
    commit(&mut s);
    // Holds purge back until the table is another one.
    all(&mut reader, &table);
    for id in 0..20 {
        update(&mut s, &table, id, &long(id, id + 1, 2000));
    }
    for id in 0..10 {
        delete(&mut s, &table, id);
    }
    commit(&mut s);
    db.engine.truncate_table(table.def()).unwrap();
    let table = db.find("t");
    for id in 0..20 {
        insert(&mut s, &table, &long(id, 7, 2500));
    }
    commit(&mut s);
    let expected = all(&mut s, &table);
    commit(&mut s);
    commit(&mut reader);
    run_background(&db.engine);
    assert_eq!(all(&mut s, &table), expected);
    assert_eq!(expected.len(), 20);
    commit(&mut s);
    assert_sound(&db.engine, &table);
}

/// Purge and rollback hold no metadata lock: they may be about to merge pages of a tree by the old
/// definition while writers split others by the new one.
#[test]
fn definitions_of_a_table_share_its_structure_mutexes() {
    let db = Db::new();
    let first = db.table();
    let renames = [(first.def().clone(), first.def().schema.clone(), "u".into())];
    db.engine.rename_tables(&renames).unwrap();
    let renamed = db.find("u");
    db.engine
        .change_indexes(renamed.def(), &[prefix_index()], &[])
        .unwrap();
    let indexed = db.find("u");
    assert_eq!(indexed.indexes().len(), first.indexes().len() + 1);
    for old in first.indexes() {
        let same = |table: &Table| table.indexes().iter().any(|i| i.tree.is_same(&old.tree));
        assert!(same(&renamed) && same(&indexed), "{:?}", old.tree.tree());
    }
}

#[test]
fn a_copy_shows_all_rows_beside_an_older_transaction() {
    let db = Db::new();
    let table = db.table();
    let other = db.engine.create_table(spec("u", true)).unwrap();
    let (mut s, mut older) = (db.session(), db.session());
    insert(&mut s, &table, &row(1, 1, "one"));
    commit(&mut s);
    let u = db.engine.table(other.id).unwrap();
    insert(&mut older, &u, &row(1, 1, "keeps ids from being settled"));
    let copied = db
        .engine
        .rebuild_table(table.def(), &spec("t", true), |old, new| {
            new.extend_from_slice(old);
            Ok::<(), ()>(())
        });
    assert_eq!(copied.unwrap(), 1);
    let table = db.find("t");
    assert_eq!(all(&mut s, &table), [row(1, 1, "one")]);
    commit(&mut s);
    commit(&mut older);
}

#[test]
fn a_record_is_purged_again_after_its_chain_was_freed() {
    let db = Db::new();
    let table = db.table();
    db.engine
        .change_indexes(table.def(), &[prefix_index()], &[])
        .unwrap();
    let table = db.find("t");
    let mut s = db.session();
    for id in 0..4 {
        insert(&mut s, &table, &long(id, id, 3000));
    }
    commit(&mut s);
    for id in 0..4 {
        update(&mut s, &table, id, &row(id, id, &format!("s{id}")));
        update(&mut s, &table, id, &long(id, id, 1500));
    }
    commit(&mut s);
    let expected = all(&mut s, &table);
    commit(&mut s);
    // One step frees chains, and not yet all undo pages that name them.
    db.engine
        .trx_system()
        .purge_step(&crate::undo::Applier(db.engine.shared().clone()), 6)
        .unwrap();
    insert(&mut s, &table, &row(100, 1, "makes the log durable"));
    commit(&mut s);
    delete(&mut s, &table, 100);
    commit(&mut s);
    drop((s, table));
    let db = db.crash();
    let table = db.find("t");
    run_background(&db.engine);
    let mut s = db.session();
    assert_eq!(all(&mut s, &table), expected);
    commit(&mut s);
    assert_sound(&db.engine, &table);
}

#[test]
fn an_index_waits_for_rows_that_are_still_to_be_undone() {
    let db = Db::new();
    let table = db.table();
    let mut s = db.session();
    for id in 0..10 {
        insert(&mut s, &table, &row(id, id, &format!("s{id}")));
    }
    commit(&mut s);
    let mut lost = db.session();
    for id in 0..5 {
        update(&mut lost, &table, id, &row(id, 50, &format!("s{id}")));
    }
    insert(&mut lost, &table, &row(20, 20, "never"));
    drop(lost);
    let again = IndexSpec {
        name: "k2".into(),
        ..prefix_index_on(1)
    };
    db.engine
        .change_indexes(table.def(), &[again], &[])
        .unwrap();
    run_background(&db.engine);
    let table = db.find("t");
    assert_sound(&db.engine, &table);
    let k2 = table.def().index("k2").unwrap();
    assert_eq!(
        by_key(&mut s, &table, k2, &[Value::Int(3)], RowLock::None).len(),
        1
    );
    commit(&mut s);
}

fn prefix_index_on(column: usize) -> IndexSpec {
    let mut index = prefix_index();
    index.parts[0].column = column;
    index.parts[0].prefix_len = None;
    index
}

/// With `innodb_flush_log_at_trx_commit` 2 the old file must not go before the change is durable.
#[test]
fn ddl_is_durable_in_every_configuration() {
    let disk = SimDisk::new();
    let lazy = || EngineOptions {
        flush_at_commit: 2,
        build_memory: EngineOptions::BUILD_MEMORY,
        ..options()
    };
    let open = |disk: &SimDisk| {
        Engine::open(lazy(), Arc::new(disk.clone()), &|_| {})
            .unwrap()
            .0
    };
    let engine = open(&disk);
    engine
        .put_database(DatabaseDef {
            name: "d".into(),
            collation: CollationId(255),
        })
        .unwrap();
    let def = engine.create_table(spec("t", true)).unwrap();
    engine.truncate_table(&def).unwrap();
    for seed in 0..20 {
        let after = disk.crash_image(seed);
        let engine = open(&after);
        let schema = engine.catalog().snapshot();
        let def = schema.table("d", "t").unwrap();
        let table = engine.table(def.id).unwrap();
        let mut s = engine.session(1).unwrap();
        assert_eq!(all(&mut s, &table), [], "seed {seed}");
    }
}

/// After ROLLBACK TO SAVEPOINT the entries that came back are not the transaction's own: it still
/// does not see a row that is newer than its snapshot.
#[test]
fn restored_entries_are_not_the_own_ones_of_who_rolled_back() {
    let db = Db::new();
    let table = db.table();
    let (mut s, mut older) = (db.session(), db.session());
    older.begin(TrxOptions {
        isolation: Isolation::RepeatableRead,
        read_only: false,
        consistent_snapshot: true,
    });
    insert(&mut s, &table, &row(1, 1, "one"));
    commit(&mut s);
    older.savepoint("a");
    update(&mut older, &table, 1, &row(1, 2, "two"));
    block(|| older.rollback_to("a")).unwrap();
    for (name, key) in [("s", Value::from("one")), ("k", Value::Int(1))] {
        let n = table.def().index(name).unwrap();
        let found = by_key(&mut older, &table, n, &[key], RowLock::None);
        assert_eq!(found, [], "by {name}");
        older.statement_begin(Isolation::RepeatableRead, false);
        let spec = ReadSpec {
            index: n,
            covering: true,
            columns: table.index_columns(n).to_vec(),
            ..ReadSpec::default()
        };
        let mut covering = Read::range(table.clone(), spec, &KeyRange::all(), false);
        let mut batch = RowBatch::new();
        while block(|| covering.next(&mut older, &mut batch)).unwrap() {}
        assert!(batch.is_empty(), "by {name} alone");
    }
    block(|| older.rollback()).unwrap();
}

/// A crash in the middle of a definition leaves rows of the dictionary locked; opening undoes that
/// first, so the next definition does not wait.
#[test]
fn a_definition_that_a_crash_cut_short_locks_nothing() {
    let disk = SimDisk::new();
    let open = |disk: &SimDisk| {
        Engine::open(options(), Arc::new(disk.clone()), &|_| {})
            .unwrap()
            .0
    };
    let engine = open(&disk);
    engine
        .put_database(DatabaseDef {
            name: "d".into(),
            collation: CollationId(255),
        })
        .unwrap();
    let def = engine.create_table(spec("t", true)).unwrap();
    let mut cut_short = EngineSession::internal(engine.shared()).unwrap();
    cut_short.begin_internal();
    let dictionary = &engine.shared().dictionary;
    let id = def.id.0.to_be_bytes();
    crate::dictionary::remove(
        &mut cut_short,
        dictionary,
        crate::dictionary::ObjectKind::Table,
        &id,
    )
    .unwrap();
    // Another commit makes the log durable up to here.
    engine.create_table(spec("u", true)).unwrap();
    let engine = open(&disk.crash_image(1));
    let schema = engine.catalog().snapshot();
    let def = schema.table("d", "t").unwrap().clone();
    engine
        .rename_tables(&[(def, "d".into(), "v".into())])
        .unwrap();
    assert!(engine.catalog().snapshot().table("d", "v").is_some());
}
