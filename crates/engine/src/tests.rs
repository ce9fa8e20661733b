//! The engine over files in a temporary directory, with inline I/O.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use nfold_catalog::{
    ColumnDef, ColumnDefault, DatabaseDef, IndexKind, IndexPart, TableDef, TableOptions,
};
use nfold_types::collation::CollationId;
use nfold_types::{ColumnType, TextSize, TypeKind, Value, ValueRef};

use crate::*;

mod changed_long_values;
mod crash;
mod damage;
mod ddl;
mod deferred_inserts;
mod deferred_updates;
mod histograms;
mod key_probes;
mod latch_order;
mod lock_races;
mod long_values;
mod multi_valued;
mod mvcc;
mod old_reader;
mod page_rows;
mod purge_beside_ddl;
mod raw_rows;
mod rebuilt;
mod replaced;
mod stress;
mod uncommitted;
mod unlinking;
mod wide;

pub(super) struct Db {
    pub engine: Arc<Engine>,
    pub dir: tempfile::TempDir,
}

pub(super) fn options() -> EngineOptions {
    EngineOptions {
        store: StoreOptions::default(),
        flush_at_commit: 1,
        build_memory: EngineOptions::BUILD_MEMORY,
    }
}

pub(super) fn open(dir: &Path) -> Arc<Engine> {
    open_with(dir, options())
}

fn open_with(dir: &Path, options: EngineOptions) -> Arc<Engine> {
    let disk = Arc::new(RealDisk::new(dir, false));
    Engine::open(options, disk, &|_| {}).unwrap().0
}

impl Db {
    pub(super) fn new() -> Db {
        Db::with(options())
    }

    /// As in a server: with threads for pages, log and purge. Writers that wait for room in the log
    /// need them, if there are several.
    pub(super) fn threaded() -> Db {
        let mut options = options();
        options.store.io_threads = 2;
        Db::with(options)
    }

    fn with(options: EngineOptions) -> Db {
        let dir = tempfile::tempdir().unwrap();
        let engine = open_with(dir.path(), options);
        engine
            .put_database(DatabaseDef {
                name: "d".into(),
                collation: CollationId(255),
            })
            .unwrap();
        Db { engine, dir }
    }

    /// `t (id BIGINT, k INT, s VARCHAR(20) utf8mb4_0900_ai_ci, b LONGTEXT; PRIMARY KEY (id), KEY k
    /// (k), UNIQUE KEY s (s))`
    pub(super) fn table(&self) -> Arc<Table> {
        let def = self.engine.create_table(spec("t", true)).unwrap();
        self.engine.table(def.id).unwrap()
    }

    pub(super) fn session(&self) -> EngineSession {
        self.engine.session(1).unwrap()
    }

    /// Closes without shutdown, and opens again.
    pub(super) fn crash(self) -> Db {
        let Db { engine, dir } = self;
        drop(engine);
        let engine = open(dir.path());
        Db { engine, dir }
    }

    pub(super) fn find(&self, name: &str) -> Arc<Table> {
        let schema = self.engine.catalog().snapshot();
        self.engine
            .table(schema.table("d", name).unwrap().id)
            .unwrap()
    }
}

pub(super) fn column(name: &str, ty: ColumnType, nullable: bool) -> ColumnDef {
    ColumnDef {
        name: name.into(),
        ty,
        nullable,
        default: ColumnDefault::Null,
        on_update_now: None,
        auto_increment: false,
        comment: Box::default(),
        own_charset: false,
        generated: None,
        visibility: nfold_catalog::Visibility::Visible,
        histogram: None,
    }
}

/// Seconds of a stress test: the default given, or NFOLD_STRESS_S.
fn stress_seconds(otherwise: u64) -> u64 {
    let more = std::env::var("NFOLD_STRESS_S").ok();
    more.and_then(|s| s.parse().ok()).unwrap_or(otherwise)
}

/// A table as it is now, claimed; `None`: somebody else has it.
fn claimed(
    db: &Db,
    mdl: &Arc<nfold_catalog::Mdl>,
    name: &str,
) -> Option<(nfold_catalog::MdlExclusive, Arc<Table>)> {
    let schema = db.engine.catalog().snapshot();
    let def = schema.table("d", name)?;
    let claim = mdl.try_exclusive(None, &[def.id]).ok()?;
    let now = db.engine.catalog().snapshot();
    let same = now.table("d", name).is_some_and(|t| Arc::ptr_eq(t, def));
    same.then(|| (claim, db.engine.table(def.id).unwrap()))
}

/// xorshift; not seeded with 0.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n
    }
}

/// An index over one column.
fn secondary(name: &str, column: usize, prefix_len: Option<u16>, desc: bool) -> IndexSpec {
    IndexSpec {
        name: name.into(),
        kind: IndexKind::Secondary,
        parts: vec![IndexPart {
            column,
            prefix_len,
            desc,
        }],
        comment: Box::default(),
        btree: false,
        generated: false,
        visible: true,
    }
}

pub(super) fn spec(name: &str, primary: bool) -> TableSpec {
    let index = |name: &str, kind, column| IndexSpec {
        name: name.into(),
        kind,
        parts: vec![IndexPart {
            column,
            prefix_len: None,
            desc: false,
        }],
        comment: Box::default(),
        btree: false,
        generated: false,
        visible: true,
    };
    let mut indexes = vec![
        index("k", IndexKind::Secondary, 1),
        index("s", IndexKind::Unique, 2),
    ];
    if primary {
        indexes.push(index("PRIMARY", IndexKind::Primary, 0));
    }
    TableSpec {
        schema: "d".into(),
        name: name.into(),
        columns: vec![
            column("id", ColumnType::bigint(), false),
            column("k", ColumnType::new(TypeKind::Int), true),
            column("s", ColumnType::varchar(20, CollationId(255)), true),
            column(
                "b",
                ColumnType::string(TypeKind::Text(TextSize::Long), CollationId(255)),
                true,
            ),
        ],
        indexes,
        foreign_keys: Vec::new(),
        checks: Vec::new(),
        collation: CollationId(255),
        options: TableOptions::default(),
        auto_increment: 0,
    }
}

pub(super) type Row = (i64, Option<i64>, Option<String>, Option<String>);

pub(super) fn row(id: i64, k: i64, s: &str) -> Row {
    (id, Some(k), Some(s.into()), None)
}

pub(super) fn encode(table: &Table, row: &Row, out: &mut Vec<u8>) {
    let text = |s: &Option<String>| Value::from(s.as_deref());
    let values = [
        Value::Int(row.0),
        Value::from(row.1),
        text(&row.2),
        text(&row.3),
    ];
    table
        .layout()
        .encode(values.iter().map(Value::as_ref), out)
        .unwrap();
}

pub(super) fn decode(table: &Table, image: &[u8]) -> Row {
    let text = |v: ValueRef<'_>| v.as_bytes().map(|b| String::from_utf8(b.to_vec()).unwrap());
    let layout = table.layout();
    let ValueRef::Int(id) = layout.get(image, 0).unwrap() else {
        panic!("id")
    };
    let k = match layout.get(image, 1).unwrap() {
        ValueRef::Int(k) => Some(k),
        _ => None,
    };
    (
        id,
        k,
        text(layout.get(image, 2).unwrap()),
        text(layout.get(image, 3).unwrap()),
    )
}

pub(super) fn insert(s: &mut EngineSession, table: &Arc<Table>, r: &Row) -> WriteOutcome {
    s.statement_begin(Isolation::RepeatableRead, false);
    let mut op = InsertOp::new(table.clone());
    encode(table, r, op.row());
    let outcome = block(|| s.insert(&mut op)).unwrap();
    block(|| s.statement_end(true)).unwrap();
    outcome
}

pub(super) fn read(s: &mut EngineSession, mut read: Read) -> Vec<Row> {
    let table = read.table().clone();
    let mut batch = RowBatch::new();
    while block(|| read.next(s, &mut batch)).unwrap() {}
    batch.iter().map(|image| decode(&table, image)).collect()
}

pub(super) fn all(s: &mut EngineSession, table: &Arc<Table>) -> Vec<Row> {
    s.statement_begin(Isolation::RepeatableRead, false);
    let spec = ReadSpec {
        columns: vec![0, 1, 2, 3],
        ..ReadSpec::default()
    };
    let rows = read(s, Read::range(table.clone(), spec, &KeyRange::all(), false));
    block(|| s.statement_end(true)).unwrap();
    rows
}

pub(super) fn by_key(
    s: &mut EngineSession,
    table: &Arc<Table>,
    index: usize,
    keys: &[Value],
    lock: RowLock,
) -> Vec<Row> {
    decoded_by_key(s, (table, index), keys, (lock, 4), decode)
}

/// The rows with these values of the first part of an index: their first columns.
pub(super) fn decoded_by_key<R>(
    s: &mut EngineSession,
    (table, index): (&Arc<Table>, usize),
    keys: &[Value],
    (lock, columns): (RowLock, usize),
    decode: impl Fn(&Table, &[u8]) -> R,
) -> Vec<R> {
    s.statement_begin(Isolation::RepeatableRead, false);
    let mut points = EqualityKeys::new();
    for key in keys {
        points.push_with(|out| {
            let layout = table.key_layout(index);
            layout.encode_part(0, key.as_ref(), out).unwrap();
        });
    }
    let spec = ReadSpec {
        index,
        lock,
        columns: (0..columns).collect(),
        ..ReadSpec::default()
    };
    let mut read = Read::points(table.clone(), spec, points);
    let mut batch = RowBatch::new();
    while block(|| read.next(s, &mut batch)).unwrap() {}
    block(|| s.statement_end(true)).unwrap();
    batch.iter().map(|image| decode(table, image)).collect()
}

pub(super) fn commit(s: &mut EngineSession) {
    block(|| s.commit()).unwrap();
}

/// Changes the row with this id, which exists.
pub(super) fn update(
    s: &mut EngineSession,
    table: &Arc<Table>,
    id: i64,
    new: &Row,
) -> WriteOutcome {
    let old = by_key(s, table, 0, &[Value::Int(id)], RowLock::Exclusive);
    s.statement_begin(Isolation::RepeatableRead, false);
    let mut image = Vec::new();
    encode(table, &old[0], &mut image);
    let mut op = UpdateOp::new(table.clone());
    encode(table, new, op.row(&image, None));
    let outcome = block(|| s.update(&mut op)).unwrap();
    block(|| s.statement_end(true)).unwrap();
    outcome
}

pub(super) fn delete(s: &mut EngineSession, table: &Arc<Table>, id: i64) {
    let old = by_key(s, table, 0, &[Value::Int(id)], RowLock::Exclusive);
    s.statement_begin(Isolation::RepeatableRead, false);
    let mut image = Vec::new();
    encode(table, &old[0], &mut image);
    let mut op = DeleteOp::new(table.clone());
    op.row(&image, None);
    block(|| s.delete(&mut op)).unwrap();
    block(|| s.statement_end(true)).unwrap();
}

pub(super) fn assert_sound(engine: &Engine, table: &Arc<Table>) {
    assert_eq!(
        engine.check_table(table).unwrap().problems,
        Vec::<String>::new()
    );
}

/// Purges all that can be purged; then nothing is marked any more.
pub(super) fn assert_purged(engine: &Engine, table: &Arc<Table>) {
    while engine.step_background().unwrap() || engine.trx_status().history_length > 0 {}
    assert_eq!(engine.check_table(table).unwrap().marked, 0);
    let lost = engine.check_space(table).unwrap();
    assert!(lost.is_empty(), "{lost:?}");
}

#[test]
fn refused_and_undone_rows_give_their_long_columns_back() {
    let db = Db::new();
    let table = db.table();
    let mut s = db.session();
    let long = |id, s: &str| (id, Some(1), Some(s.into()), Some("x".repeat(50_000)));
    insert(&mut s, &table, &long(1, "one"));
    commit(&mut s);
    assert_purged(&db.engine, &table);
    let pages = table.store().space_pages(table.def().space).unwrap();
    for _ in 0..20 {
        let refused = insert(&mut s, &table, &long(1, "two"));
        assert_eq!(refused, WriteOutcome::Duplicate { index: 0 });
        let refused = insert(&mut s, &table, &long(2, "one"));
        assert!(matches!(refused, WriteOutcome::Duplicate { .. }));
        update(&mut s, &table, 1, &long(1, "three"));
        block(|| s.rollback()).unwrap();
        // An operation that is given up between its long column and its row.
        let mut op = InsertOp::new(table.clone());
        encode(&table, &long(1, "four"), op.row());
        s.statement_begin(Isolation::RepeatableRead, false);
        block(|| s.insert(&mut op)).unwrap();
        drop(op);
        block(|| s.statement_end(false)).unwrap();
        commit(&mut s);
        db.engine.step_background().unwrap();
    }
    assert_purged(&db.engine, &table);
    let now = table.store().space_pages(table.def().space).unwrap();
    assert!(now < pages + 20, "{pages} pages became {now}");
}

#[test]
fn a_statement_that_fails_before_it_began_undoes_nothing() {
    let db = Db::new();
    let table = db.table();
    let mut s = db.session();
    s.begin(TrxOptions {
        isolation: Isolation::RepeatableRead,
        read_only: false,
        consistent_snapshot: false,
    });
    for id in 1..=3 {
        insert(&mut s, &table, &row(id, id, &format!("s{id}")));
        block(|| s.statement_end(false)).unwrap();
        assert_eq!(all(&mut s, &table).len(), id as usize);
        block(|| s.statement_end(false)).unwrap();
    }
    // One that did begin is undone, and it alone.
    s.statement_begin(Isolation::RepeatableRead, false);
    let mut op = InsertOp::new(table.clone());
    encode(&table, &row(4, 4, "s4"), op.row());
    block(|| s.insert(&mut op)).unwrap();
    for _ in 0..2 {
        block(|| s.statement_end(false)).unwrap();
        assert_eq!(all(&mut s, &table).len(), 3);
    }
    commit(&mut s);
    assert_eq!(all(&mut s, &table).len(), 3);
}

#[test]
fn rows_come_back_by_every_index() {
    let db = Db::new();
    let table = db.table();
    let mut s = db.session();
    for id in 0..500 {
        assert_eq!(
            insert(&mut s, &table, &row(id, id % 10, &format!("s{id}"))),
            WriteOutcome::Done
        );
    }
    commit(&mut s);
    assert_eq!(all(&mut s, &table).len(), 500);
    assert_eq!(
        by_key(&mut s, &table, 0, &[Value::Int(7)], RowLock::None),
        [row(7, 7, "s7")]
    );
    let k = table.def().index("k").unwrap();
    let found = by_key(
        &mut s,
        &table,
        k,
        &[Value::Int(3), Value::Int(4), Value::Int(99)],
        RowLock::None,
    );
    assert_eq!(found.len(), 100);
    assert!(found.is_sorted_by_key(|r| (r.1, r.0)), "in index order");
    let u = table.def().index("s").unwrap();
    assert_eq!(
        by_key(&mut s, &table, u, &[Value::from("S42")], RowLock::None),
        [row(42, 2, "s42")],
        "case does not count"
    );
    commit(&mut s);
    assert_sound(&db.engine, &table);
}

#[test]
fn duplicates_are_refused_and_leave_nothing() {
    let db = Db::new();
    let table = db.table();
    let mut s = db.session();
    insert(&mut s, &table, &row(1, 1, "a"));
    assert_eq!(
        insert(&mut s, &table, &row(1, 2, "b")),
        WriteOutcome::Duplicate { index: 0 }
    );
    let u = table.def().index("s").unwrap();
    assert_eq!(
        insert(&mut s, &table, &row(2, 2, "A")),
        WriteOutcome::Duplicate { index: u }
    );
    insert(&mut s, &table, &(3, None, None, None));
    assert_eq!(
        insert(&mut s, &table, &(4, None, None, None)),
        WriteOutcome::Done,
        "a unique index admits many NULLs"
    );
    assert_eq!(
        update(
            &mut s,
            &table,
            3,
            &(3, Some(1), Some("\u{e1}".into()), None)
        ),
        WriteOutcome::Duplicate { index: u }
    );
    assert_eq!(
        update(&mut s, &table, 3, &(1, Some(1), None, None)),
        WriteOutcome::Duplicate { index: 0 }
    );
    commit(&mut s);
    assert_eq!(
        all(&mut s, &table),
        [row(1, 1, "a"), (3, None, None, None), (4, None, None, None)]
    );
    commit(&mut s);
    assert_sound(&db.engine, &table);
}

#[test]
fn long_columns_move_out_and_come_back() {
    let db = Db::new();
    let table = db.table();
    let mut s = db.session();
    let long = |n: usize| Some("lorem ipsum ".repeat(n));
    let rows: Vec<Row> = [10, 400, 3000, 20_000]
        .into_iter()
        .enumerate()
        .map(|(i, n)| (i as i64, Some(1), None, long(n)))
        .collect();
    for r in &rows {
        insert(&mut s, &table, r);
    }
    commit(&mut s);
    assert_eq!(all(&mut s, &table), rows);
    update(&mut s, &table, 3, &(3, Some(2), None, long(100)));
    block(|| s.rollback()).unwrap();
    assert_eq!(all(&mut s, &table), rows);
    update(&mut s, &table, 2, &(2, Some(2), None, long(9000)));
    delete(&mut s, &table, 3);
    commit(&mut s);
    while db.engine.step_background().unwrap() {}
    assert_eq!(
        all(&mut s, &table),
        [
            rows[0].clone(),
            rows[1].clone(),
            (2, Some(2), None, long(9000))
        ]
    );
    commit(&mut s);
    assert_sound(&db.engine, &table);
}

#[test]
fn rollback_and_savepoints_restore_every_index() {
    let db = Db::new();
    let table = db.table();
    let mut s = db.session();
    for id in 0..50 {
        insert(&mut s, &table, &row(id, id, &format!("s{id}")));
    }
    commit(&mut s);
    let before = all(&mut s, &table);
    commit(&mut s);
    s.begin(TrxOptions {
        isolation: Isolation::RepeatableRead,
        read_only: false,
        consistent_snapshot: false,
    });
    update(&mut s, &table, 1, &row(1, 100, "other"));
    s.savepoint("a");
    delete(&mut s, &table, 2);
    insert(&mut s, &table, &row(2, 5, "again"));
    update(&mut s, &table, 3, &row(300, 3, "moved"));
    update(&mut s, &table, 4, &row(4, 4, "S4"));
    block(|| s.rollback_to("A")).unwrap();
    let changed = all(&mut s, &table);
    assert_eq!(changed[1], row(1, 100, "other"));
    assert_eq!(changed[2..], before[2..]);
    assert_eq!(
        block(|| s.rollback_to("b")),
        Err(EngineError::NoSuchSavepoint)
    );
    block(|| s.rollback()).unwrap();
    assert_eq!(all(&mut s, &table), before);
    commit(&mut s);
    while db.engine.step_background().unwrap() {}
    assert_sound(&db.engine, &table);
}

/// Purge passes over a deleted row that was inserted again; when that insert is rolled back,
/// nothing of the row is left.
#[test]
fn a_rollback_onto_a_purged_deletion_leaves_nothing() {
    let db = Db::new();
    let table = db.table();
    let mut s = db.session();
    insert(&mut s, &table, &row(1, 7, "one"));
    commit(&mut s);
    for (k, name) in [(7, "one"), (8, "two")] {
        delete(&mut s, &table, 1);
        commit(&mut s);
        insert(&mut s, &table, &row(1, k, name));
        while db.engine.step_background().unwrap() {}
        block(|| s.rollback()).unwrap();
        while db.engine.step_background().unwrap() {}
        for n in 0..table.indexes().len() {
            let tree = &table.index(n).tree;
            let mut entries = nfold_btree::EntryBatch::default();
            let mut cursor = tree.cursor(nfold_btree::KeyRange::all(), false);
            while cursor
                .next_batch(tree, s.store(), 100, &mut entries)
                .unwrap()
            {}
            assert_eq!(entries.len(), 0, "index {n}, {name}");
        }
        insert(&mut s, &table, &row(1, 7, "one"));
        commit(&mut s);
    }
    assert_sound(&db.engine, &table);
}

#[test]
fn tables_without_a_primary_key() {
    let db = Db::new();
    let def = db.engine.create_table(spec("h", false)).unwrap();
    let table = db.engine.table(def.id).unwrap();
    let mut s = db.session();
    for i in 0..20 {
        insert(&mut s, &table, &row(1, i, &format!("s{i}")));
    }
    s.statement_begin(Isolation::RepeatableRead, false);
    let spec = ReadSpec {
        lock: RowLock::Exclusive,
        ..ReadSpec::default()
    };
    let mut locked = Read::range(table.clone(), spec, &KeyRange::all(), false);
    let mut batch = RowBatch::new();
    while block(|| locked.next(&mut s, &mut batch)).unwrap() {}
    assert_eq!(batch.len(), 20);
    let mut op = DeleteOp::new(table.clone());
    for i in (0..20).step_by(2) {
        op.row(batch.row(i), batch.row_id(i));
        block(|| s.delete(&mut op)).unwrap();
    }
    commit(&mut s);
    let left = all(&mut s, &table);
    assert_eq!(
        left.iter().map(|r| r.1.unwrap()).collect::<Vec<_>>(),
        (0..20).filter(|i| i % 2 == 1).collect::<Vec<_>>()
    );
    commit(&mut s);
    assert_sound(&db.engine, &table);
}

#[test]
fn definitions_survive_and_files_go() {
    let db = Db::new();
    let a = db.engine.create_table(spec("a", true)).unwrap();
    let b = db.engine.create_table(spec("b", true)).unwrap();
    let mut s = db.session();
    let table = db.engine.table(b.id).unwrap();
    insert(&mut s, &table, &row(1, 1, "x"));
    insert(&mut s, &table, &row(2, 1, "y"));
    commit(&mut s);
    drop(s);
    db.engine.drop_tables(&[a]).unwrap();
    let parts = vec![IndexPart {
        column: 1,
        prefix_len: None,
        desc: true,
    }];
    let more = IndexSpec {
        name: "k2".into(),
        kind: IndexKind::Secondary,
        parts,
        comment: Box::default(),
        btree: false,
        generated: false,
        visible: true,
    };
    let unique = IndexSpec {
        name: "u".into(),
        kind: IndexKind::Unique,
        ..more.clone()
    };
    let refused = db.engine.change_indexes(&b, &[unique], &[]);
    assert!(
        matches!(refused, Err(EngineError::DuplicateInBuild { .. })),
        "{refused:?}"
    );
    let old_k = b.indexes[b.index("k").unwrap()].id;
    db.engine.change_indexes(&b, &[more], &[old_k]).unwrap();
    let db = db.crash();
    let schema = db.engine.catalog().snapshot();
    assert!(schema.table("d", "a").is_none());
    let def: &Arc<TableDef> = schema.table("d", "b").unwrap();
    assert!(def.index("k").is_none() && def.index("k2").is_some() && def.index("u").is_none());
    let table = db.find("b");
    assert_sound(&db.engine, &table);
    let mut s = db.session();
    let k2 = table.def().index("k2").unwrap();
    assert_eq!(
        by_key(&mut s, &table, k2, &[Value::Int(1)], RowLock::None).len(),
        2
    );
    commit(&mut s);
    drop(s);
    db.engine.truncate_table(table.def()).unwrap();
    let table = db.find("b");
    let mut s = db.session();
    assert!(all(&mut s, &table).is_empty());
    insert(&mut s, &table, &row(5, 5, "five"));
    commit(&mut s);
    drop(s);
    let rebuilt = spec("b", true);
    let moved = db.engine.rebuild_table(table.def(), &rebuilt, |old, new| {
        new.extend_from_slice(old);
        Ok::<(), ()>(())
    });
    assert_eq!(moved.unwrap(), 1);
    db.engine.drop_database("d").unwrap();
    let db = db.crash();
    assert!(db.engine.catalog().snapshot().database("d").is_none());
    let files = std::fs::read_dir(db.dir.path()).unwrap().filter(|f| {
        let name = f.as_ref().unwrap().file_name().into_string().unwrap();
        name.starts_with('t') && name.ends_with(".nfd")
    });
    assert_eq!(files.count(), 0, "no tablespace is left");
}

#[test]
fn automatic_values_are_never_given_out_twice() {
    let db = Db::new();
    let table = db.table();
    let first = |count, offset, increment| {
        let series = ValueSeries { offset, increment };
        block(|| table.auto_increment_reserve(count, series))
            .unwrap()
            .first
    };
    let next = || block(|| table.auto_increment_next()).unwrap();
    assert_eq!((first(3, 1, 1), first(1, 1, 1), next()), (1, 4, 5));
    block(|| table.auto_increment_observe(10)).unwrap();
    assert_eq!((next(), first(2, 5, 10), next()), (11, 15, 35));
    block(|| table.auto_increment_observe(36)).unwrap();
    assert_eq!((next(), first(1, 1, 1), next()), (45, 45, 46));
    let series = ValueSeries {
        offset: 3,
        increment: 7,
    };
    let reserved = block(|| table.auto_increment_reserve(5, series)).unwrap();
    assert_eq!((reserved.first, next()), (52, 87));
    assert!(table.auto_increment_give_back(reserved));
    assert_eq!(next(), 46);
    assert!(!table.auto_increment_give_back(reserved));
    let mut s = db.session();
    insert(&mut s, &table, &row(1, 1, "makes the log durable"));
    commit(&mut s);
    drop((s, table));
    let db = db.crash();
    let table = db.find("t");
    let after = block(|| table.auto_increment_next()).unwrap();
    assert!(after >= 46, "{after}");
    db.engine.shutdown().unwrap();
    drop(table);
    let db = db.crash();
    assert_eq!(
        block(|| db.find("t").auto_increment_next()).unwrap(),
        after,
        "exact after a clean shutdown"
    );
}

#[test]
fn a_lowered_counter_survives_a_crash() {
    let db = Db::new();
    let table = db.table();
    let series = ValueSeries::EVERY_NUMBER;
    let next = |t: &Table| block(|| t.auto_increment_next()).unwrap();
    block(|| table.auto_increment_observe(1_000_000)).unwrap();
    block(|| table.auto_increment_reset(1, 40)).unwrap();
    assert_eq!(next(&table), 41);
    let taken = block(|| table.auto_increment_reserve(2, series)).unwrap();
    assert_eq!((taken.first, next(&table)), (41, 43));
    let mut s = db.session();
    insert(&mut s, &table, &row(1, 1, "makes the log durable"));
    commit(&mut s);
    drop((s, table));
    let db = db.crash();
    let after = next(&db.find("t"));
    assert!((43..5_000).contains(&after), "{after}");
}

/// After a random mix of commits and rollbacks the rows are those of a map.
#[test]
fn a_long_random_mix_agrees_with_a_map() {
    let db = Db::new();
    let table = db.table();
    let mut s = db.session();
    let mut model: BTreeMap<i64, Row> = BTreeMap::new();
    let mut seed = 12345u64;
    let mut random = move |n: u64| {
        seed = seed
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (seed >> 33) % n
    };
    for _ in 0..60 {
        let mut next = model.clone();
        for _ in 0..20 {
            let id = random(60) as i64;
            let r = (
                id,
                Some(random(5) as i64),
                Some(format!("s{}", random(80))),
                (random(8) == 0).then(|| "x".repeat(6000)),
            );
            let taken = next.values().any(|o| o.2 == r.2 && o.0 != id);
            match next.contains_key(&id) {
                true if random(3) == 0 => {
                    delete(&mut s, &table, id);
                    next.remove(&id);
                }
                true => {
                    let done = update(&mut s, &table, id, &r) == WriteOutcome::Done;
                    assert_eq!(done, !taken);
                    done.then(|| next.insert(id, r));
                }
                false => {
                    let done = insert(&mut s, &table, &r) == WriteOutcome::Done;
                    assert_eq!(done, !taken);
                    done.then(|| next.insert(id, r));
                }
            }
        }
        if random(3) == 0 {
            block(|| s.rollback()).unwrap();
        } else {
            commit(&mut s);
            model = next;
        }
        if random(4) == 0 {
            db.engine.step_background().unwrap();
        }
        assert_eq!(
            all(&mut s, &table),
            model.values().cloned().collect::<Vec<_>>()
        );
        commit(&mut s);
        assert_sound(&db.engine, &table);
    }
}
