//! Nfold, through the facade that its SQL layer uses: sessions, snapshots, undo, redo log, row
//! locks. The pool holds everything, in huge pages as the server has it; files past the system's
//! cache as there; `innodb_flush_log_at_trx_commit=0`. The secondary index is built when the rows
//! are there.

use std::path::Path;
use std::sync::Arc;

use nfold_catalog::{
    ColumnDef, ColumnDefault, DatabaseDef, IndexKind, IndexPart, TableDef, TableOptions, Visibility,
};
use nfold_engine::{
    Bound, Engine as Nfold, EngineOptions, EngineSession, IndexSpec, InsertOp, Isolation, KeyRange,
    EqualityKeys, Read, ReadSpec, RealDisk, RowBatch, RowLock, PageRowSink, PageRows, StoreOptions,
    Table, TableSpec, UpdateOp, WriteOutcome, block,
};
use nfold_types::collation::CollationId;
use nfold_types::row::{RawField, RowLayout};
use nfold_types::{ColumnType, TypeKind, ValueRef};

use crate::data::{Data, GAP, VALUE, digest, value};
use crate::work::RANGE;

/// The collation `binary`.
const BINARY: CollationId = CollationId::BINARY;
const BATCH: u64 = 10_000;

pub struct Engine {
    engine: Arc<Nfold>,
    table: Arc<Table>,
}

fn index(name: &str, kind: IndexKind, column: usize) -> IndexSpec {
    IndexSpec {
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
    }
}

fn spec() -> TableSpec {
    let column = |name: &str, ty| ColumnDef {
        name: name.into(),
        ty,
        nullable: false,
        default: ColumnDefault::Null,
        on_update_now: None,
        auto_increment: false,
        comment: Box::default(),
        own_charset: false,
        generated: None,
        visibility: Visibility::Visible,
        histogram: None,
    };
    let rest = ColumnType::new(TypeKind::Binary((VALUE - 8) as u32));
    TableSpec {
        schema: "d".into(),
        name: "t".into(),
        columns: vec![
            column("id", ColumnType::bigint()),
            column("k", ColumnType::bigint()),
            column("v", rest),
        ],
        indexes: vec![index("PRIMARY", IndexKind::Primary, 0)],
        collation: BINARY,
        options: TableOptions::default(),
        auto_increment: 0,
        foreign_keys: Vec::new(),
        checks: Vec::new(),
    }
}

fn encode(layout: &RowLayout, key: u64, value: &[u8], out: &mut Vec<u8>) {
    let group = i64::from_le_bytes(value[..8].try_into().expect("8 bytes"));
    let values = [
        ValueRef::Int(key as i64),
        ValueRef::Int(group),
        ValueRef::Bytes(&value[8..]),
    ];
    layout.encode(values, out).expect("a row");
}

fn read_row(layout: &RowLayout, row: &[u8]) -> u64 {
    let Ok(ValueRef::Int(group)) = layout.get(row, 1) else {
        panic!("no group")
    };
    let rest = layout.get(row, 2).expect("a row");
    group as u64 ^ digest(rest.as_bytes().expect("bytes"))
}

/// Where the columns of every row are: none is NULL, all are of one length.
struct Shape {
    group_at: usize,
    rest_at: usize,
    len: usize,
}

impl Shape {
    fn of(layout: &RowLayout) -> Shape {
        let mut row = Vec::new();
        encode(layout, 0, &[0; VALUE], &mut row);
        let at = |column| match layout.raw(&row, column) {
            Ok(RawField::Fixed(field) | RawField::Var(field)) => {
                field.as_ptr().addr() - row.as_ptr().addr()
            }
            _ => panic!("no such field"),
        };
        Shape {
            group_at: at(1),
            rest_at: at(2),
            len: row.len(),
        }
    }
}

/// What rows hold, read where they lie.
struct CountingSink<'s> {
    shape: &'s Shape,
    rows: u64,
    sum: u64,
}

impl PageRowSink for CountingSink<'_> {
    fn take(&mut self, rows: PageRows<'_, '_>) -> usize {
        let Shape {
            group_at,
            rest_at,
            len,
        } = *self.shape;
        let before = self.rows;
        for row in rows {
            let image = row.image();
            assert_eq!(image.len(), len, "a row of another length");
            let group = image.at(group_at).map_or(0, u64::from_le_bytes);
            let Some(rest) = image.at::<{ VALUE - 8 }>(rest_at) else {
                break;
            };
            let sum = group ^ digest(&rest);
            if !row.validate() {
                break;
            }
            self.rows += 1;
            self.sum ^= sum;
        }
        (self.rows - before) as usize
    }
}

impl Engine {
    fn find(engine: &Arc<Nfold>) -> (Arc<TableDef>, Arc<Table>) {
        let schema = engine.catalog().snapshot();
        let def = schema.table("d", "t").expect("the table").clone();
        let table = engine.table(def.id).expect("the table");
        (def, table)
    }
}

impl super::Engine for Engine {
    type Worker<'a> = Worker;

    fn open(dir: &Path, cache_bytes: u64) -> Engine {
        let options = EngineOptions {
            store: StoreOptions {
                pool_bytes: cache_bytes,
                log_bytes: 2 << 30,
                log_buffer_bytes: 64 << 20,
                io_threads: 4,
                io_capacity: 10_000,
                huge_pages: true,
                extend_bytes: 64 << 20,
                ..StoreOptions::default()
            },
            flush_at_commit: 0,
            build_memory: EngineOptions::BUILD_MEMORY,
        };
        let disk = Arc::new(RealDisk::new(dir, true));
        let (engine, _) = Nfold::open(options, disk, &|_| {}).expect("the engine opens");
        let database = DatabaseDef {
            name: "d".into(),
            collation: BINARY,
        };
        engine.put_database(database).expect("a database");
        engine.create_table(spec()).expect("a table");
        let (_, table) = Engine::find(&engine);
        Engine { engine, table }
    }

    fn load(&mut self, data: &Data) {
        let mut session = self.engine.session(1).expect("a session");
        let mut op = InsertOp::new(self.table.clone());
        for first in (0..data.rows).step_by(BATCH as usize) {
            for i in first..data.rows.min(first + BATCH) {
                let key = i * GAP;
                let row = value(key, data.group_of(i), 0);
                session.statement_begin(Isolation::RepeatableRead, false);
                encode(self.table.layout(), key, &row, op.row());
                let outcome = block(|| session.insert(&mut op)).expect("an insert");
                assert!(matches!(outcome, WriteOutcome::Done));
                block(|| session.statement_end(true)).expect("the statement ends");
            }
            block(|| session.commit()).expect("a commit");
        }
        let (def, _) = Engine::find(&self.engine);
        self.engine
            .change_indexes(&def, &[index("k", IndexKind::Secondary, 1)], &[])
            .expect("the index is built");
        (_, self.table) = Engine::find(&self.engine);
        self.engine.checkpoint().expect("a checkpoint");
    }

    fn worker(&self, number: u64) -> Worker {
        let read = |index, lock, first_rows| {
            let spec = ReadSpec {
                index,
                lock,
                first_rows,
                columns: vec![0, 1, 2],
                ..ReadSpec::default()
            };
            Read::points(self.table.clone(), spec, EqualityKeys::new())
        };
        Worker {
            session: self.engine.session(100 + number).expect("a session"),
            table: self.table.clone(),
            shape: Shape::of(self.table.layout()),
            point: read(0, RowLock::None, 0),
            rows: read(0, RowLock::None, RANGE),
            many: read(1, RowLock::None, 0),
            locking: read(0, RowLock::Exclusive, 0),
            insert: InsertOp::new(self.table.clone()),
            update: UpdateOp::new(self.table.clone()),
            points: EqualityKeys::new(),
            batch: RowBatch::new(),
            range: KeyRange::all(),
            key: Vec::new(),
        }
    }

    fn about(&self) -> String {
        let status = self.engine.store_status();
        let waits: Vec<String> = self
            .engine
            .wait_sites()
            .iter()
            .take(8)
            .map(|w| {
                let place = w.detail.as_deref().or(w.index.as_deref()).unwrap_or("");
                let (ms, longest) = (w.time.as_millis(), w.longest.as_millis());
                format!(
                    "{} {place}: {} in {ms} ms, {longest} at most",
                    w.kind, w.waits
                )
            })
            .collect();
        format!("{status:?}; waited for: {}", waits.join(", "))
    }
}

pub struct Worker {
    session: EngineSession,
    table: Arc<Table>,
    shape: Shape,
    point: Read,
    rows: Read,
    many: Read,
    locking: Read,
    insert: InsertOp,
    update: UpdateOp,
    points: EqualityKeys,
    batch: RowBatch,
    range: KeyRange,
    key: Vec<u8>,
}

impl Worker {
    fn push_point(points: &mut EqualityKeys, table: &Table, index: usize, key: u64) {
        points.push_with(|out| {
            table
                .key_layout(index)
                .encode_values([ValueRef::Int(key as i64)], out)
                .expect("a key");
        });
    }

    fn end(&mut self) {
        block(|| self.session.statement_end(true)).expect("the statement ends");
        block(|| self.session.commit()).expect("a commit");
    }

    /// All rows of the batch.
    fn batch_rows(&self) -> (u64, u64) {
        let layout = self.table.layout();
        self.batch
            .iter()
            .fold((0, 0), |(n, sum), row| (n + 1, sum ^ read_row(layout, row)))
    }
}

// Not inlined, so that profiles can name what lies below each.
impl super::Worker for Worker {
    #[inline(never)]
    fn point(&mut self, key: u64) -> Option<u64> {
        self.session
            .statement_begin(Isolation::RepeatableRead, true);
        self.points.clear();
        Self::push_point(&mut self.points, &self.table, 0, key);
        self.points = self.point.bind_points(std::mem::take(&mut self.points));
        self.batch.clear();
        while block(|| self.point.next(&mut self.session, &mut self.batch)).expect("a read") {}
        let row =
            (!self.batch.is_empty()).then(|| read_row(self.table.layout(), self.batch.row(0)));
        self.end();
        row
    }

    #[inline(never)]
    fn range(&mut self, from: u64, n: usize) -> (u64, u64) {
        self.session
            .statement_begin(Isolation::RepeatableRead, true);
        self.key.clear();
        let layout = self.table.key_layout(0);
        layout
            .encode_values([ValueRef::Int(from as i64)], &mut self.key)
            .expect("a key");
        self.range.lo = Bound::Included(self.key.as_slice().into());
        self.rows.bind_range(&self.range, false);
        let layout = self.table.layout();
        let (mut count, mut sum, mut more) = (0, 0, true);
        // Batch by batch, as the SQL layer does.
        while more && count < n as u64 {
            self.batch.clear();
            more = block(|| self.rows.next(&mut self.session, &mut self.batch)).expect("a read");
            for row in self.batch.iter().take(n - count as usize) {
                count += 1;
                sum ^= read_row(layout, row);
            }
        }
        self.end();
        (count, sum)
    }

    #[inline(never)]
    fn get_many(&mut self, groups: &[u64]) -> (u64, u64) {
        self.session
            .statement_begin(Isolation::RepeatableRead, true);
        self.points.clear();
        for &group in groups {
            Self::push_point(&mut self.points, &self.table, 1, group);
        }
        self.points = self.many.bind_points(std::mem::take(&mut self.points));
        self.batch.clear();
        // What does not lie there to be taken comes in the batch, as in the SQL layer.
        let mut taken = CountingSink {
            shape: &self.shape,
            rows: 0,
            sum: 0,
        };
        while block(|| {
            self.many
                .next_into(&mut self.session, &mut self.batch, Some(&mut taken))
        })
        .expect("a read")
        {}
        let (rows, sum) = self.batch_rows();
        let all = (taken.rows + rows, taken.sum ^ sum);
        self.end();
        all
    }

    #[inline(never)]
    fn insert(&mut self, key: u64, _group: u64, value: &[u8]) {
        self.session
            .statement_begin(Isolation::RepeatableRead, false);
        encode(self.table.layout(), key, value, self.insert.row());
        let outcome = block(|| self.session.insert(&mut self.insert)).expect("an insert");
        assert!(matches!(outcome, WriteOutcome::Done));
        self.end();
    }

    #[inline(never)]
    fn update(&mut self, key: u64, value: &[u8]) {
        self.session
            .statement_begin(Isolation::RepeatableRead, false);
        self.points.clear();
        Self::push_point(&mut self.points, &self.table, 0, key);
        self.points = self.locking.bind_points(std::mem::take(&mut self.points));
        self.batch.clear();
        while block(|| self.locking.next(&mut self.session, &mut self.batch)).expect("a read") {}
        let new = self.update.row(self.batch.row(0), None);
        encode(self.table.layout(), key, value, new);
        let outcome = block(|| self.session.update(&mut self.update)).expect("an update");
        assert!(matches!(outcome, WriteOutcome::Done));
        self.end();
    }
}
