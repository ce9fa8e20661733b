//! Purge and rollback find damaged pages: the table is closed to all access (fenced), and the
//! others stay usable.

use std::os::unix::fs::FileExt;

use nfold_store::{PageId, PageType};

use super::*;

/// Two tables with a few rows each.
fn two_tables(db: &Db) -> [Arc<Table>; 2] {
    let mut s = db.session();
    let tables = ["bad", "good"].map(|name| {
        let def = db.engine.create_table(spec(name, true)).unwrap();
        db.engine.table(def.id).unwrap()
    });
    for table in &tables {
        for id in 0..10 {
            insert(&mut s, table, &row(id, id, &format!("s{id}")));
        }
        commit(&mut s);
    }
    tables
}

/// Everything written, the engine gone without a shutdown, and a byte flipped in the root of an
/// index of table `bad`.
fn crash_and_damage(db: Db, index: usize) -> Db {
    let root = db.find("bad").def().indexes[index].root;
    damage_pages(db, &[root])
}

/// The same for some pages of table `bad`.
fn damage_pages(db: Db, pages: &[u32]) -> Db {
    let def = db.find("bad").def().clone();
    db.engine.checkpoint().unwrap();
    let Db { engine, dir } = db;
    drop(engine);
    let file = std::fs::read_dir(dir.path())
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "nfd"))
        .map(|p| {
            std::fs::File::options()
                .read(true)
                .write(true)
                .open(p)
                .unwrap()
        })
        .find(|f| {
            let mut id = [0; 4];
            f.read_exact_at(&mut id, 8).unwrap();
            u32::from_le_bytes(id) == def.space
        });
    let file = file.unwrap();
    for page in pages {
        let at = u64::from(*page) * 16384 + 9000;
        let mut byte = [0];
        file.read_exact_at(&mut byte, at).unwrap();
        file.write_all_at(&[byte[0] ^ 1], at).unwrap();
    }
    // It would be put right from there.
    let copies = dir.path().join("nfold.doublewrite");
    let len = std::fs::metadata(&copies).unwrap().len() as usize;
    std::fs::write(copies, vec![0; len]).unwrap();
    let engine = open(dir.path());
    Db { engine, dir }
}

fn is_fenced(table: &Table) -> bool {
    matches!(table.check_sound(), Err(EngineError::TableDamaged { .. }))
}

#[test]
fn purge_skips_a_damaged_table() {
    let db = Db::new();
    let tables = two_tables(&db);
    let mut s = db.session();
    for table in &tables {
        delete(&mut s, table, 3);
        commit(&mut s);
    }
    delete(&mut s, &tables[1], 4);
    commit(&mut s);
    drop((s, tables));
    let db = crash_and_damage(db, 0);
    while db.engine.step_background().unwrap() {}
    let status = db.engine.trx_status();
    assert_eq!((status.history_length, status.undo_pages_free), (0, 0));
    assert!(is_fenced(&db.find("bad")) && !is_fenced(&db.find("good")));
    assert_purged(&db.engine, &db.find("good"));
}

#[test]
fn rollback_ends_when_its_damaged_table_is_dropped() {
    let db = Db::new();
    let tables = two_tables(&db);
    let mut s = db.session();
    for id in 0..3 {
        for table in &tables {
            update(&mut s, table, id, &row(id, 100, &format!("new{id}")));
        }
    }
    std::mem::forget(s);
    drop(tables);
    let db = crash_and_damage(db, 0);
    let (bad, good) = (db.find("bad"), db.find("good"));
    let mut s = db.session();
    while db.engine.step_background().unwrap() {}
    let status = db.engine.trx_status();
    assert_eq!((status.rolling_back, status.parked), (0, 1));
    assert!(is_fenced(&bad) && !is_fenced(&good));
    // Its rows are free again.
    update(&mut s, &good, 1, &row(1, 7, "mine"));
    commit(&mut s);
    assert_sound(&db.engine, &good);
    // An index can be added to the good table at once. The damaged table allows none.
    let add = || super::spec("x", true).indexes[..1].to_vec();
    let named = |mut index: Vec<IndexSpec>| {
        index[0].name = "k2".into();
        index
    };
    db.engine
        .change_indexes(good.def(), &named(add()), &[])
        .unwrap();
    assert!(matches!(
        db.engine.change_indexes(bad.def(), &named(add()), &[]),
        Err(EngineError::TableDamaged { .. })
    ));
    // Another start finds it again.
    drop((s, good, bad));
    let db = db.crash();
    while db.engine.step_background().unwrap() {}
    assert_eq!(db.engine.trx_status().parked, 1);
    let bad = db.find("bad");
    db.engine.drop_tables(&[bad.def().clone()]).unwrap();
    assert_purged(&db.engine, &db.find("good"));
    let status = db.engine.trx_status();
    assert_eq!((status.rolling_back, status.parked), (0, 0));
    assert_eq!(status.oldest_active_id, status.next_id);
    let db = db.crash();
    assert_eq!(db.engine.trx_status().rolling_back, 0);
    assert_sound(&db.engine, &db.find("good"));
}

#[test]
fn a_damaged_index_does_not_keep_the_rows_from_being_undone() {
    let db = Db::new();
    let tables = two_tables(&db);
    let before = all(&mut db.session(), &tables[0]);
    let mut s = db.session();
    update(&mut s, &tables[0], 1, &row(1, 100, "new"));
    delete(&mut s, &tables[0], 2);
    std::mem::forget(s);
    drop(tables);
    let k = db.find("bad").def().index("k").unwrap();
    let db = crash_and_damage(db, k);
    while db.engine.step_background().unwrap() {}
    let status = db.engine.trx_status();
    assert_eq!((status.rolling_back, status.parked), (0, 0));
    let bad = db.find("bad");
    assert!(is_fenced(&bad));
    assert_eq!(all(&mut db.session(), &bad), before);
    // Without that index it is sound again.
    db.engine
        .change_indexes(bad.def(), &[], &[bad.def().indexes[k].id])
        .unwrap();
    let bad = db.find("bad");
    assert_sound(&db.engine, &bad);
    assert!(!is_fenced(&bad));
}

#[test]
fn a_refused_change_of_a_damaged_table_leaves_the_others_sound() {
    let db = Db::new();
    let tables = two_tables(&db);
    drop(tables);
    let db = crash_and_damage(db, 0);
    let (bad, good) = (db.find("bad"), db.find("good"));
    let mut s = db.session();
    s.statement_begin(Isolation::RepeatableRead, false);
    insert(&mut s, &good, &row(50, 50, "mine"));
    let mut op = InsertOp::new(bad.clone());
    encode(&bad, &row(51, 51, "mine"), op.row());
    assert!(matches!(
        block(|| s.insert(&mut op)),
        Err(EngineError::Store(_))
    ));
    block(|| s.rollback()).unwrap();
    assert_eq!(all(&mut s, &good).len(), 10);
    commit(&mut s);
    assert_sound(&db.engine, &good);
}

/// A DDL statement frees an index under a step of purge or rollback, which holds no metadata lock:
/// that is no damage.
#[test]
fn a_step_on_a_table_that_was_replaced_is_done_again() {
    let db = Db::new();
    let [old, other] = two_tables(&db);
    let applier = crate::undo::Applier(db.engine.shared().clone());
    let gone = old.def().indexes[1].clone();
    db.engine
        .change_indexes(old.def(), &[], &[gone.id])
        .unwrap();
    let freed = || -> Result<(), Stop> {
        let mut value = Vec::new();
        let read = old
            .index(1)
            .tree
            .get(&db.engine.shared().store, b"k", &mut value);
        read.map(drop).map_err(crate::error::lift)
    };
    assert!(matches!(freed(), Err(Stop::Error(_))), "its root is freed");
    assert!(matches!(applier.on(&old, freed), Err(Stop::Wait(_))));
    assert!(
        matches!(applier.on(&other, freed), Err(Stop::Error(_))),
        "a table in force stands by what it finds"
    );
    let new = db.find("bad");
    assert!(!is_fenced(&new) && !is_fenced(&other));
}

/// `t` with an index on the first characters of its long column.
fn with_long_key(db: &Db, name: &str) -> Arc<Table> {
    let mut spec = spec(name, true);
    spec.indexes.push(IndexSpec {
        name: "b".into(),
        kind: IndexKind::Secondary,
        parts: vec![IndexPart {
            column: 3,
            prefix_len: Some(20),
            desc: false,
        }],
        comment: Box::default(),
        btree: false,
        generated: false,
        visible: true,
    });
    let def = db.engine.create_table(spec).unwrap();
    db.engine.table(def.id).unwrap()
}

/// Rows that the index `b` gives, read alone: their primary keys.
fn ids_in_long_index(db: &Db) -> Vec<i64> {
    let table = db.find("bad");
    let (mut s, mut batch) = (db.session(), RowBatch::new());
    let index = table.def().index("b").unwrap();
    s.statement_begin(Isolation::RepeatableRead, false);
    let spec = ReadSpec {
        index,
        covering: true,
        columns: table.index_columns(index).to_vec(),
        ..ReadSpec::default()
    };
    let mut read = Read::range(table.clone(), spec, &KeyRange::all(), false);
    while block(|| read.next(&mut s, &mut batch)).unwrap() {}
    let mut ids: Vec<i64> = batch
        .iter()
        .map(|row| match table.index_layout(index).get(row, 0).unwrap() {
            ValueRef::Int(id) => id,
            other => panic!("{other:?}"),
        })
        .collect();
    ids.sort_unstable();
    ids
}

/// Rows 1 to 5 with long columns, changed by a transaction that a crash leaves unfinished; all
/// overflow pages are damaged then. What the index `b` gives once it is rolled back, and after
/// another start.
fn long_index_after(change: impl Fn(&mut EngineSession, &Arc<Table>)) -> [Vec<i64>; 2] {
    let db = Db::new();
    let table = with_long_key(&db, "bad");
    let mut s = db.session();
    for id in 1..=5 {
        insert(&mut s, &table, &long_row(id, 'a'));
    }
    commit(&mut s);
    change(&mut s, &table);
    std::mem::forget(s);
    drop(table);
    let pages = overflow_pages(&db);
    let db = damage_pages(db, &pages);
    while db.engine.step_background().unwrap() {}
    let status = db.engine.trx_status();
    assert_eq!((status.rolling_back, status.parked), (0, 0));
    assert!(is_fenced(&db.find("bad")));
    let first = ids_in_long_index(&db);
    let db = db.crash();
    while db.engine.step_background().unwrap() {}
    [first, ids_in_long_index(&db)]
}

fn long_row(id: i64, letter: char) -> Row {
    let b = letter.to_string().repeat(30_000) + &id.to_string();
    (id, Some(id), Some(format!("s{id}")), Some(b))
}

fn overflow_pages(db: &Db) -> Vec<u32> {
    let table = db.find("bad");
    let (store, space) = (table.store(), table.def().space);
    let is_overflow = |page: &u32| {
        let id = PageId { space, page: *page };
        store
            .read(id)
            .is_ok_and(|p| p.page_type() == PageType::OVERFLOW)
    };
    (1..store.space_pages(space).unwrap())
        .filter(is_overflow)
        .collect()
}

#[test]
fn an_inserted_row_with_a_damaged_long_column_leaves_no_entry() {
    let [after, later] = long_index_after(|s, table| {
        insert(s, table, &long_row(7, 'b'));
    });
    assert_eq!((after, later), ((1..=5).collect(), (1..=5).collect()));
}

#[test]
fn a_deleted_row_with_a_damaged_long_column_gets_its_entry_back() {
    let [after, later] = long_index_after(|s, table| delete(s, table, 3));
    assert_eq!((after, later), ((1..=5).collect(), (1..=5).collect()));
}

#[test]
fn a_changed_row_with_a_damaged_long_column_has_one_entry() {
    let [after, later] = long_index_after(|s, table| {
        update(s, table, 3, &long_row(3, 'c'));
        update(s, table, 4, &row(4, 4, "short"));
        update(s, table, 3, &long_row(3, 'd'));
    });
    assert_eq!((after, later), ((1..=5).collect(), (1..=5).collect()));
}

#[test]
fn check_finds_a_damaged_long_column() {
    let db = Db::new();
    let [table, _] = two_tables(&db);
    let mut s = db.session();
    insert(&mut s, &table, &long_row(10, 'a'));
    commit(&mut s);
    drop((s, table));
    let last = overflow_pages(&db).pop().unwrap();
    let db = damage_pages(db, &[last]);
    let table = db.find("bad");
    for _ in 0..2 {
        let problems = db.engine.check_table(&table).unwrap().problems;
        let named = |p: &String| p.contains(&format!("page {last} "));
        assert!(
            problems.len() == 1 && problems.iter().all(named),
            "{problems:?}"
        );
        assert!(is_fenced(&table));
    }
    assert_sound(&db.engine, &db.find("good"));
}

#[test]
fn a_fence_falls_when_a_check_finds_the_table_sound() {
    let db = Db::new();
    let [table, _] = two_tables(&db);
    table.fence(&"said by a test");
    assert!(is_fenced(&table));
    assert_eq!(db.engine.check_table(&table).unwrap().rows, 10);
    assert!(!is_fenced(&table));
}
