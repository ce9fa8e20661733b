//! Statements from text to rows, over an engine with inline I/O in a temporary directory.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use nfold_catalog::{
    ColumnDef, ColumnDefault, DatabaseDef, IndexKind, IndexPart, TableId, TableOptions, TableStats,
};
use nfold_engine::{
    Engine, EngineOptions, EngineSession, IndexSpec, Isolation, RealDisk, StoreOptions, TableSpec,
};
use nfold_plan::query::ColumnMeta;
use nfold_plan::{ParamType, PlanCx, PlanInfo, param_types, plan_statement};
use nfold_plan::{Plan, SqlMode, Value, VarScope};
use nfold_sql::digest::Digested;
use nfold_sql::lexer::LexMode;
use nfold_sql::parser::parse_parameterised;
use nfold_types::temporal::TimeZone;
use nfold_types::{
    CollationId, ColumnType, ErrorCode, NoCheckpoint, SqlError, TextSize, Timestamp, TypeKind,
    Warnings,
};

use crate::env::{Checkpoints, Interrupt, RowSink, SessionEnv, StatementFiber, WireFormat};
use crate::{ExecCx, OperatorPool};
use crate::{Executable, Params, StatementResult, execute};

mod aggregates;
mod common_tables;
mod dml;
mod explain;
mod joins;
mod kept;
mod plans;
mod select;
mod spills;
mod stopped;
mod subqueries;
mod tables;
mod windows;

/// A statement's rows, NULL as `None`.
pub(crate) type Rows = Vec<Vec<Option<String>>>;

pub(crate) struct Db {
    pub engine: Arc<Engine>,
    session: RefCell<EngineSession>,
    pub env: Env,
    pub warnings: RefCell<Warnings>,
    /// Bytes that the operators of the statement before keep.
    pub kept: Cell<usize>,
    /// Ticks that are left before statements are killed; planning counts, too.
    pub kill_after: Cell<u64>,
    _dir: tempfile::TempDir,
}

pub(crate) struct Env {
    zone: TimeZone,
    pub mode: Cell<SqlMode>,
    pub memory: Cell<usize>,
    insert_id: Cell<u64>,
    /// How many random numbers have been drawn: each is another one.
    drawn: Cell<u64>,
    counters: nfold_observe::SessionCounters,
}

impl SessionEnv for Env {
    fn counters(&self) -> &nfold_observe::SessionCounters {
        &self.counters
    }
    fn sysvar(&self, _: Option<VarScope>, name: &str) -> Result<Value, SqlError> {
        Err(SqlError::new(
            ErrorCode::ER_UNKNOWN_SYSTEM_VARIABLE,
            &[&name],
        ))
    }
    fn user_var(&self, _: &str) -> Value {
        Value::Null
    }
    fn set_user_var(&self, _: &str, _: Value, _: Option<&ColumnType>) -> Result<(), SqlError> {
        Ok(())
    }
    fn sql_mode(&self) -> SqlMode {
        self.mode.get()
    }
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(1_700_000_000_000_000, 6)
    }
    fn clock(&self) -> Timestamp {
        self.now()
    }
    fn time_zone(&self) -> &TimeZone {
        &self.zone
    }
    fn collation(&self) -> CollationId {
        CollationId::UTF8MB4_0900_AI_CI
    }
    fn last_insert_id(&self) -> u64 {
        self.insert_id.get()
    }
    fn set_last_insert_id(&self, id: u64) {
        self.insert_id.set(id);
    }
    fn found_rows(&self) -> u64 {
        0
    }
    fn row_count(&self) -> i64 {
        -1
    }
    fn connection_id(&self) -> u64 {
        1
    }
    fn user(&self) -> String {
        "u@h".into()
    }
    fn current_user(&self) -> String {
        "u@%".into()
    }
    fn database(&self) -> Option<String> {
        Some("d".into())
    }
    fn version(&self) -> String {
        "8.4".into()
    }
    fn random(&self) -> u64 {
        self.drawn.set(self.drawn.get() + 1);
        self.drawn.get() << 40
    }
    fn isolation(&self) -> Isolation {
        Isolation::RepeatableRead
    }
    fn work_memory(&self) -> usize {
        self.memory.get()
    }
}

/// Waits by polling.
#[derive(Default)]
struct Fiber<'k> {
    operator_pool: OperatorPool,
    /// Ticks that are left before the statement is killed.
    kill_after: Option<&'k Cell<u64>>,
}

impl StatementFiber for Fiber<'_> {
    fn wait(
        &mut self,
        mut w: Pin<&mut dyn Future<Output = ()>>,
        _: Option<Instant>,
    ) -> Result<(), Interrupt> {
        let mut cx = Context::from_waker(Waker::noop());
        while w.as_mut().poll(&mut cx) == Poll::Pending {
            std::thread::yield_now();
        }
        Ok(())
    }
    fn wait_through(&mut self, w: Pin<&mut dyn Future<Output = ()>>) {
        self.wait(w, None).expect("this fiber is not interrupted");
    }
    fn tick(&mut self) -> Result<(), Interrupt> {
        if let Some(left) = self.kill_after {
            left.set(left.get().saturating_sub(1));
        }
        self.interrupted()
    }
    fn interrupted(&self) -> Result<(), Interrupt> {
        match self.kill_after.map(Cell::get) {
            Some(0) => Err(Interrupt::Killed),
            _ => Ok(()),
        }
    }
    fn offload(&mut self, job: Box<dyn FnOnce() + Send>) -> Result<(), Interrupt> {
        job();
        Ok(())
    }
    fn offload_stoppable(
        &mut self,
        job: Box<dyn FnOnce() + Send>,
        _: &std::sync::atomic::AtomicBool,
    ) -> Result<(), Interrupt> {
        self.offload(job)
    }
    fn limit_time(&mut self, _: Option<Duration>) {}

    fn sleep(&mut self, _: Duration) -> Result<(), Interrupt> {
        Ok(())
    }
}

impl ExecCx for Fiber<'_> {
    fn operator_pool(&self) -> &OperatorPool {
        &self.operator_pool
    }
}

#[derive(Default)]
struct Texts {
    buffer: Vec<u8>,
    columns: usize,
    rows: Rows,
}

impl RowSink for Texts {
    fn columns(&mut self, columns: &[ColumnMeta]) -> Result<(), SqlError> {
        self.columns = columns.len();
        Ok(())
    }
    fn format(&self) -> WireFormat {
        WireFormat::Text
    }
    fn row_buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }
    fn end_row(&mut self) -> Result<(), SqlError> {
        let mut at = 0;
        let mut row = Vec::new();
        for _ in 0..self.columns {
            let (len, head) = match self.buffer[at] {
                0xfb => {
                    row.push(None);
                    at += 1;
                    continue;
                }
                0xfc => (
                    usize::from(u16::from_le_bytes([
                        self.buffer[at + 1],
                        self.buffer[at + 2],
                    ])),
                    3,
                ),
                n => (usize::from(n), 1),
            };
            at += head;
            row.push(Some(
                String::from_utf8_lossy(&self.buffer[at..at + len]).into_owned(),
            ));
            at += len;
        }
        assert_eq!(
            at,
            self.buffer.len(),
            "the row has {} columns",
            self.columns
        );
        self.buffer.clear();
        self.rows.push(row);
        Ok(())
    }
}

struct Info<'a>(&'a Engine);

impl PlanInfo for Info<'_> {
    fn stats(&self, table: TableId) -> Option<Arc<TableStats>> {
        let t = self.0.table(table)?;
        let stats = t.stats();
        (stats.rows > 0).then_some(stats)
    }
    fn sysvar_type(&self, _: Option<VarScope>, name: &str) -> Result<ColumnType, SqlError> {
        Err(SqlError::new(
            ErrorCode::ER_UNKNOWN_SYSTEM_VARIABLE,
            &[&name],
        ))
    }
    fn user_var_type(&self, _: &str) -> ColumnType {
        ColumnType::bigint()
    }
    fn virtual_table(&self, _: &str, _: &str) -> Option<Arc<nfold_catalog::TableDef>> {
        None
    }
}

/// `name type`, where the type may end in ` null` or ` auto`.
fn column(spec: &str) -> ColumnDef {
    let mut words = spec.split(' ');
    let name = words.next().unwrap();
    let kind = words.next().unwrap();
    let ai = CollationId::UTF8MB4_0900_AI_CI;
    let ty = match kind {
        "int" => ColumnType::new(TypeKind::Int),
        "bigint" => ColumnType::bigint(),
        "ubigint" => ColumnType::bigint().with_unsigned(),
        "tinyint" => ColumnType::new(TypeKind::TinyInt),
        "double" => ColumnType::double(),
        "decimal" => ColumnType::decimal(10, 2),
        "date" => ColumnType::new(TypeKind::Date),
        "datetime" => ColumnType::new(TypeKind::DateTime(0)),
        "char" => ColumnType::string(TypeKind::Char(120), ai),
        "varchar" => ColumnType::varchar(100, ai),
        "longtext" => ColumnType::string(TypeKind::Text(TextSize::Long), ai),
        "text" => ColumnType::string(TypeKind::Text(TextSize::Normal), ai),
        other => panic!("type {other}"),
    };
    let rest: Vec<&str> = words.collect();
    let auto = rest.contains(&"auto");
    let nullable = rest.contains(&"null");
    ColumnDef {
        name: name.into(),
        ty,
        nullable,
        default: if nullable {
            ColumnDefault::Null
        } else {
            ColumnDefault::None
        },
        on_update_now: None,
        auto_increment: auto,
        comment: "".into(),
        own_charset: false,
        generated: None,
        visibility: nfold_catalog::Visibility::Visible,
        histogram: None,
    }
}

impl Db {
    pub fn new() -> Db {
        let dir = tempfile::tempdir().unwrap();
        let options = EngineOptions {
            store: StoreOptions {
                pool_bytes: 64 << 20,
                ..StoreOptions::default()
            },
            flush_at_commit: 0,
            build_memory: EngineOptions::BUILD_MEMORY,
        };
        let engine = Engine::open(options, Arc::new(RealDisk::new(dir.path(), false)), &|_| {})
            .unwrap()
            .0;
        engine
            .put_database(DatabaseDef {
                name: "d".into(),
                collation: CollationId::UTF8MB4_0900_AI_CI,
            })
            .unwrap();
        let session = RefCell::new(engine.session(1).unwrap());
        let env = Env {
            zone: TimeZone::UTC,
            mode: Cell::new(SqlMode::DEFAULT),
            memory: Cell::new(8 << 20),
            drawn: Cell::new(0),
            insert_id: Cell::new(0),
            counters: nfold_observe::SessionCounters::default(),
        };
        Db {
            engine,
            session,
            env,
            warnings: RefCell::new(Warnings::default()),
            kept: Cell::new(0),
            kill_after: Cell::new(u64::MAX),
            _dir: dir,
        }
    }

    /// ANALYZE TABLE.
    pub fn analyze(&self, name: &str) {
        let schema = self.engine.catalog().snapshot();
        let def = schema.table("d", name).unwrap();
        let table = self.engine.table(def.id).unwrap();
        self.engine.analyze_table(&table).unwrap();
    }

    /// Makes a table: columns as for `column`, keys as `primary a,b`, `unique a`, `key a,-b` (`-`:
    /// descending).
    pub fn create(&self, name: &str, columns: &[&str], keys: &[&str]) {
        let columns: Vec<ColumnDef> = columns.iter().map(|c| column(c)).collect();
        let indexes = keys
            .iter()
            .map(|k| {
                let (kind, parts) = k.split_once(' ').unwrap();
                let kind = match kind {
                    "primary" => IndexKind::Primary,
                    "unique" => IndexKind::Unique,
                    _ => IndexKind::Secondary,
                };
                let list: Vec<&str> = parts.split(',').collect();
                let parts = list
                    .iter()
                    .map(|p| {
                        let name = p.trim_start_matches('-');
                        let column = columns.iter().position(|c| *c.name == *name).unwrap();
                        IndexPart {
                            column,
                            prefix_len: None,
                            desc: p.starts_with('-'),
                        }
                    })
                    .collect();
                let name = list.join("_").replace('-', "");
                IndexSpec {
                    name: name.as_str().into(),
                    kind,
                    parts,
                    comment: "".into(),
                    btree: false,
                    generated: false,
                    visible: true,
                }
            })
            .collect();
        self.engine
            .create_table(TableSpec {
                schema: "d".into(),
                name: name.into(),
                columns,
                indexes,
                foreign_keys: Vec::new(),
                checks: Vec::new(),
                collation: CollationId::UTF8MB4_0900_AI_CI,
                options: TableOptions::default(),
                auto_increment: 0,
            })
            .unwrap();
    }

    pub fn plan(&self, sql: &str) -> Result<(Plan, Digested), SqlError> {
        let mut digest = Digested::new();
        digest.read(sql.as_bytes(), LexMode::default());
        let parsed = parse_parameterised(sql.as_bytes(), &digest, false)?;
        let params: Vec<ParamType> = param_types(&digest, &[], self.env.collation());
        let snapshot = self.engine.catalog().snapshot();
        let mut fiber = self.fiber();
        let cx = PlanCx {
            select_limit: None,
            safe_updates: false,
            group_concat_max_len: 1024,
            div_precision_increment: nfold_types::decimal::DIV_PRECISION_INCREMENT,
            foreign_key_checks: true,
            switches: nfold_plan::Switches::DEFAULT,
            explain_format: (nfold_sql::ast::ExplainFormat::Tree, 2),
            trace: None,
            snapshot: &snapshot,
            stored: &snapshot,
            db: Some("d"),
            mode: self.env.mode.get(),
            connection: self.env.collation(),
            funcs: &crate::expr::func::Builtins,
            info: &Info(&self.engine),
            checkpoint: &Checkpoints::new(&mut fiber),
            text: sql.as_bytes(),
            params: &params,
            column_uses: None,
            literals: None,
        };
        Ok((plan_statement(&cx, &parsed.statement)?, digest))
    }

    fn fiber(&self) -> Fiber<'_> {
        Fiber {
            operator_pool: OperatorPool::default(),
            kill_after: Some(&self.kill_after),
        }
    }

    /// How often a statement looks whether it was killed.
    pub fn ticks(&self, sql: &str) -> u64 {
        let before = self.kill_after.get();
        self.exec(sql);
        before - self.kill_after.get()
    }

    /// The error of a statement that is killed at tick number `n`.
    pub fn killed_at(&self, n: u64, sql: &str) -> String {
        self.kill_after.set(n);
        let error = self.error(sql);
        self.kill_after.set(u64::MAX);
        error
    }

    /// Runs a statement in a transaction of its own.
    pub fn run(&self, sql: &str) -> Result<(Rows, StatementResult), SqlError> {
        self.warnings.borrow_mut().clear();
        let (plan, digest) = self.plan(sql)?;
        let mut params = Params::new();
        params
            .bind(&digest, sql.as_bytes(), &[], &NoCheckpoint)
            .unwrap();
        let mut statement = Executable::new(Arc::new(plan));
        let mut session = self.session.borrow_mut();
        let mut sink = Texts::default();
        // Twice where that changes nothing: operators are used again.
        let again = sql
            .trim_start()
            .get(..6)
            .is_some_and(|w| w.eq_ignore_ascii_case("select"));
        let mut first = None;
        for _ in 0..=usize::from(again) {
            sink = Texts::default();
            let result = execute(
                &mut statement,
                &self.engine,
                &params,
                &mut session,
                &mut self.fiber(),
                &self.env,
                &self.warnings,
                &mut sink,
            );
            let end = crate::drive(&mut Fiber::default(), || {
                if result.is_ok() {
                    session.commit()
                } else {
                    session.rollback()
                }
            });
            end?;
            let result = result?;
            self.kept.set(statement.memory());
            match &first {
                None => first = Some((sink.rows.clone(), result)),
                Some((rows, _)) => assert_eq!(*rows, sink.rows, "the second run of {sql}"),
            }
        }
        let (_, result) = first.unwrap();
        Ok((sink.rows, result))
    }

    /// A statement's rows, columns separated by `|`, NULL as `-`.
    pub fn rows(&self, sql: &str) -> Vec<String> {
        let (rows, _) = self.run(sql).unwrap_or_else(|e| panic!("{sql}: {e}"));
        rows.into_iter()
            .map(|r| {
                r.into_iter()
                    .map(|v| v.unwrap_or_else(|| "-".into()))
                    .collect::<Vec<_>>()
                    .join("|")
            })
            .collect()
    }

    pub fn exec(&self, sql: &str) -> StatementResult {
        self.run(sql).unwrap_or_else(|e| panic!("{sql}: {e}")).1
    }

    pub fn error(&self, sql: &str) -> String {
        match self.run(sql) {
            Ok((rows, _)) => panic!("{sql} gave {rows:?}"),
            Err(e) => e.to_string(),
        }
    }

    /// EXPLAIN as `table type key ref extra`, one line per row.
    pub fn explain(&self, sql: &str) -> Vec<String> {
        let (rows, _) = self
            .run(&format!("EXPLAIN FORMAT=TRADITIONAL {sql}"))
            .unwrap_or_else(|e| panic!("{sql}: {e}"));
        rows.into_iter()
            .map(|r| {
                let v = |i: usize| r[i].clone().unwrap_or_else(|| "-".into());
                format!("{} {} {} {}", v(2), v(4), v(6), v(11))
            })
            .collect()
    }
}
