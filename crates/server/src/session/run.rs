//! Queries and changes of rows: from the text to the executor, with the session's plan cache between.
//!
//! # Picture
//! ```text
//! key (digest ‖ types of ? ‖ structural literals) ─▶ Cached: roles, tables, checks, Executable
//!        hit: schema version equal? tables locked? ─▶ bind parameters ─▶ execute
//!        miss or stale: parse ─▶ privileges ─▶ metadata locks ─▶ plan
//! ```
//! A plan holds for one schema version (`@@sql_mode`, character sets and the current database are the session's: the cache is
//! emptied when they change) and one version of privileges.

use std::cell::RefCell;
use std::sync::Arc;

use nfold_catalog::{Privileges, SchemaSnapshot, TableId};
use nfold_exec::{ExecCx, Executable, RowSink, SessionEnv, StatementResult, execute};
use nfold_plan::bind::{ParamType, param_types, plan_statement};
use nfold_plan::expr::{Coercibility, ExprType};
use nfold_plan::query::{ColumnMeta, Plan};
use nfold_sql::ast::Statement;
use nfold_sql::digest::{Digested, LiteralRole};
use nfold_sql::parser::Parsed;
use nfold_types::{ColumnType, ErrorCode, SqlError, Value};
use rustc_hash::FxHashMap;

use super::Session;
use super::locks::{TableLocks, write_permit};
use super::plan_info::{Info, plan_cx};
use super::tables::{TableUse, tables_of};

/// Plans kept by one session.
const MAX_PLANS: usize = 256;
/// Keys longer than this are not kept.
const MAX_KEY_BYTES: usize = 64 << 10;
/// How often planning starts over because the schema moved.
const MAX_RETRIES: usize = 10;

/// One planned statement.
struct Cached {
    executable: Executable,
    /// What became of each literal.
    roles: Vec<LiteralRole>,
    /// Texts up to here name result columns: they are part of the plan.
    named: Vec<u8>,
    structural: Vec<u8>,
    ids: Vec<TableId>,
    schema_version: u64,
    account_version: u64,
    /// Rows may change.
    writes: bool,
    /// Planned with the types that user variables had then.
    of_user_variables: bool,
}

/// The session's plans by key.
#[derive(Default)]
pub struct PlanMap {
    /// `None` while the plan runs.
    plans: FxHashMap<Box<[u8]>, Option<Box<Cached>>>,
    key: Vec<u8>,
}

impl PlanMap {
    /// Database, sql_mode, character set or the like changed: no plan holds.
    pub fn environment_changed(&mut self) {
        self.plans.clear();
    }
}

/// One statement to be run.
pub struct Work<'a> {
    pub text: &'a [u8],
    pub digested: &'a Digested,
    /// Values of `?`, in order.
    pub markers: &'a [Value],
    /// The tree, where the caller has it already.
    pub parsed: Option<&'a Parsed>,
}

/// The type that a parameter's value has.
fn marker_type(value: &Value, collation: nfold_types::CollationId) -> ExprType {
    match value {
        Value::Null => ExprType::null(),
        Value::Int(_) => ExprType::bigint(false),
        Value::UInt(_) => ExprType::ubigint(false),
        Value::Float(_) | Value::Double(_) => ExprType::double(false),
        Value::Decimal(_) => ExprType::decimal(65, 30, false),
        Value::Bytes(_) => ExprType::string(255, collation, Coercibility::Coercible, false),
        Value::Date(_) => ExprType::new(ColumnType::new(nfold_types::TypeKind::Date), false),
        Value::DateTime(_) | Value::Timestamp(_) => {
            ExprType::new(ColumnType::new(nfold_types::TypeKind::DateTime(6)), false)
        }
        Value::Time(_) => ExprType::new(ColumnType::new(nfold_types::TypeKind::Time(6)), false),
    }
}

/// One byte for the kind of a parameter's value, as part of the key.
fn marker_kind(value: &Value) -> u8 {
    match value {
        Value::Null => 0,
        Value::Int(_) => 1,
        Value::UInt(_) => 2,
        Value::Float(_) | Value::Double(_) => 3,
        Value::Decimal(_) => 4,
        Value::Bytes(_) => 5,
        Value::Date(_) => 6,
        Value::DateTime(_) | Value::Timestamp(_) => 7,
        Value::Time(_) => 8,
    }
}

fn writes(statement: &Statement) -> bool {
    matches!(
        statement,
        Statement::Insert(_) | Statement::Update(_) | Statement::Delete(_)
    )
}

impl Session {
    /// Runs a query, INSERT, UPDATE, DELETE, DO or EXPLAIN.
    pub(super) fn run(
        &mut self,
        cx: &mut dyn ExecCx,
        work: &Work<'_>,
        sink: &mut dyn RowSink,
    ) -> Result<StatementResult, SqlError> {
        self.make_key(work);
        let mut cached = self.lookup(work);
        let mut tries = 0;
        loop {
            let mut plan = match cached.take() {
                Some(plan) => plan,
                None => Box::new(self.plan(cx, work)?),
            };
            match self.lock_for(cx, &plan) {
                Ok(true) => {}
                Ok(false) if tries < MAX_RETRIES => {
                    tries += 1;
                    continue;
                }
                Ok(false) => return Err(SqlError::new(ErrorCode::ER_TABLE_DEF_CHANGED, &[])),
                Err(e) => return Err(e),
            }
            let result = self.execute_plan(cx, work, &mut plan, sink);
            if let Err(e) = &result
                && e.code == ErrorCode::ER_TABLE_DEF_CHANGED
                && !self.engine.snapshot_refused()
                && tries < 1
            {
                tries += 1;
                continue;
            }
            self.keep(plan);
            return result;
        }
    }

    /// Runs a statement whose plan is not kept; the caller ends the work.
    pub(super) fn run_once(
        &mut self,
        cx: &mut dyn ExecCx,
        work: &Work<'_>,
        sink: &mut dyn RowSink,
    ) -> Result<StatementResult, SqlError> {
        let mut plan = self.plan(cx, work)?;
        if !self.lock_for(cx, &plan)? {
            return Err(SqlError::new(ErrorCode::ER_TABLE_DEF_CHANGED, &[]));
        }
        self.execute_plan(cx, work, &mut plan, sink)
    }

    /// The result columns of a statement that is being prepared.
    pub(super) fn describe(
        &mut self,
        cx: &mut dyn ExecCx,
        work: &Work<'_>,
    ) -> Result<Vec<ColumnMeta>, SqlError> {
        self.make_key(work);
        let plan = self.plan(cx, work)?;
        Ok(plan.executable.columns().to_vec())
    }

    fn make_key(&mut self, work: &Work<'_>) {
        let key = &mut self.plans.key;
        key.clear();
        key.extend_from_slice(work.digested.key());
        key.push(0xff);
        key.extend(work.markers.iter().map(marker_kind));
    }

    /// A kept plan that still holds; taken out of its place while it runs.
    fn lookup(&mut self, work: &Work<'_>) -> Option<Box<Cached>> {
        let catalog = self.server.engine.catalog();
        let (schema, accounts) = (catalog.version(), catalog.account_version());
        let PlanMap { plans, key } = &mut self.plans;
        let place = plans.get_mut(&**key)?;
        let found = place.as_ref()?;
        let same = found.schema_version == schema
            && found.account_version == accounts
            && work
                .digested
                .structural_is(&found.roles, work.text, &found.structural)
            && work.text.get(..found.named.len()) == Some(&*found.named);
        if same { place.take() } else { None }
    }

    fn keep(&mut self, plan: Box<Cached>) {
        if plan.of_user_variables {
            return;
        }
        let map = &mut self.plans;
        if let Some(place) = map.plans.get_mut(&*map.key) {
            *place = Some(plan);
            return;
        }
        if map.key.len() > MAX_KEY_BYTES {
            return;
        }
        if map.plans.len() >= MAX_PLANS {
            map.plans.clear();
        }
        map.plans.insert(map.key.as_slice().into(), Some(plan));
    }

    /// Parses, checks privileges, locks the tables' definitions and plans.
    fn plan(&mut self, cx: &mut dyn ExecCx, work: &Work<'_>) -> Result<Cached, SqlError> {
        let owned;
        let parsed = match work.parsed {
            Some(parsed) => parsed,
            None => {
                owned = nfold_sql::parser::parse_parameterised(
                    work.text,
                    work.digested,
                    !work.markers.is_empty(),
                )?;
                &owned
            }
        };
        let database = self.env.database.clone();
        let uses = tables_of(&parsed.statement, database.as_deref())?;
        self.check_uses(&uses)?;
        let mut ids = Vec::new();
        let held = std::mem::take(&mut self.table_locks);
        let locks = &held;
        let locked = self.lock_tables_shared(cx, &mut |schema| {
            ids = ids_of(&uses, schema, locks);
            ids.clone()
        });
        self.table_locks = held;
        locked?;
        let info = Info {
            env: &self.env,
            engine: &self.server.engine,
        };
        let collation = self.env.collation();
        let markers: Vec<ExprType> = work
            .markers
            .iter()
            .map(|v| marker_type(v, collation))
            .collect();
        let params: Vec<ParamType> = param_types(work.digested, &markers, collation);
        let plan: Plan = plan_statement(
            &plan_cx(&info, &self.schema, work.text, &params),
            &parsed.statement,
        )?;
        let mut structural = Vec::new();
        work.digested
            .append_structural(&parsed.roles, work.text, &mut structural);
        let named = work
            .text
            .get(..parsed.named_by_text as usize)
            .unwrap_or_default()
            .to_vec();
        Ok(Cached {
            executable: Executable::new(Arc::new(plan)),
            roles: parsed.roles.clone(),
            named,
            structural,
            ids,
            schema_version: self.schema.version,
            account_version: self.server.engine.catalog().account_version(),
            writes: writes(&parsed.statement),
            of_user_variables: names_user_variable(work.digested.text()),
        })
    }

    /// Errors 1142 and 1044.
    fn check_uses(&mut self, uses: &[TableUse]) -> Result<(), SqlError> {
        self.rights.refresh(self.server.engine.catalog());
        for u in uses {
            self.rights
                .need_table(u.needs, u.command, &u.schema, &u.name)?;
            self.table_locks.allow(&u.schema, &u.name, is_write(u))?;
        }
        Ok(())
    }

    /// Announces the plan's tables. False: the schema has moved, and the plan does not hold any more.
    fn lock_for(&mut self, cx: &mut dyn ExecCx, plan: &Cached) -> Result<bool, SqlError> {
        let mdl = self.engine.mdl();
        if plan.ids.iter().any(|&id| mdl.acquire(id).is_err()) {
            let ids = &plan.ids;
            self.lock_tables_shared(cx, &mut |_| ids.clone())?;
        }
        Ok(self.server.engine.catalog().version() == plan.schema_version)
    }

    fn execute_plan(
        &mut self,
        cx: &mut dyn ExecCx,
        work: &Work<'_>,
        plan: &mut Cached,
        sink: &mut dyn RowSink,
    ) -> Result<StatementResult, SqlError> {
        if plan.writes {
            self.refuse_read_only()?;
            self.refuse_read_only_server()?;
        }
        let mut params = std::mem::take(&mut self.params);
        params.bind(work.digested, work.text, work.markers);
        let warnings = RefCell::new(std::mem::take(&mut self.conditions));
        let on_tables = !plan.ids.is_empty() || !self.table_locks.is_empty();
        self.begin_work(on_tables);
        let result = execute(
            &mut plan.executable,
            &self.server.engine,
            &params,
            &mut self.engine,
            cx,
            &self.env,
            &warnings,
            sink,
        );
        self.conditions = warnings.into_inner();
        self.params = params;
        result
    }
}

/// Whether a text may name `@x` (not `@@x`).
fn names_user_variable(text: &[u8]) -> bool {
    let mut rest = text;
    while let Some(at) = rest.iter().position(|&b| b == b'@') {
        if rest.get(at + 1) != Some(&b'@') {
            return true;
        }
        rest = &rest[at + 2..];
    }
    false
}

/// Whether a use changes rows.
fn is_write(u: &TableUse) -> bool {
    u.needs != Privileges::SELECT
}

/// What a statement announces: ids of the tables that exist (the binder reports the others), and the permits of those that it changes.
/// What the session has claimed itself is left out.
fn ids_of(uses: &[TableUse], schema: &SchemaSnapshot, locks: &TableLocks) -> Vec<TableId> {
    let mut ids = Vec::with_capacity(uses.len());
    for u in uses {
        let Some(table) = schema.table(&u.schema, &u.name) else {
            continue;
        };
        ids.push(table.id);
        if is_write(u) {
            ids.push(write_permit(table.id));
        }
    }
    ids.retain(|id| !locks.claims(*id));
    ids.sort_unstable();
    ids.dedup();
    ids
}
