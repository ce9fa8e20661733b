//! Queries and changes of rows: runs a text through the session's plan cache and the executor.
//!
//! # Picture
//! ```text
//! key (digest ‖ types of ? ‖ structural literals) ─▶ the session's plan: tables, checks, Executable
//!        hit: schema version equal? tables locked? ─▶ bind parameters ─▶ execute
//!        miss: every session's plans ─▶ privileges ─▶ an Executable of our own
//!        miss there or stale: parse ─▶ privileges ─▶ metadata locks ─▶ plan, for all sessions
//! ```
//! A plan is valid for one schema version and one plan context (`@@sql_mode`, character sets, time
//! zone, the current database ..). Each session checks its own privileges, and again after a change
//! of any account. Plans made under LOCK TABLES, or with types of user variables, are not shared.

use std::cell::RefCell;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::kind::kind_of;
use nfold_catalog::Privileges;
use nfold_exec::{
    Checkpoints, ExecCx, Executable, Params, RowSink, SessionEnv, StatementResult, execute,
};
use nfold_observe::StatusCounter;
use nfold_observe::digests::access;
use nfold_plan::expr::{Coercibility, ExprType};
use nfold_plan::{
    ColumnUse, ColumnUses, Literals, ParamType, PlanCx, Reads, param_types, plan_statement,
};
use nfold_sql::ast::{SelectInto, Statement};
use nfold_sql::begins_query;
use nfold_types::{ColumnType, ErrorCode, SqlError, Value};

use crate::session::Session;
use crate::session::locks::{ids_of, is_write, write_permit};
use crate::session::plan_info::{Info, plan_cx};
use crate::session::plans::{Cached, Work};
use crate::session::response::WireSink;
use crate::session::shared_plans::{PlanKey, SharedPlan};
use crate::session::tables::{TableUse, UseCheck, changed_by, tables_of};
use crate::session::transaction_info::done;

/// Plans with longer keys are not cached.
const MAX_KEY_BYTES: usize = 64 << 10;
/// How many times planning is repeated because the schema has changed meanwhile.
const MAX_RETRIES: usize = 10;

/// The length of a string value of `?` in its description, in characters: the maximum below BLOB in
/// utf8mb4.
const MARKER_CHARS: u64 = 65_535 / 4;

/// The type of a parameter's value.
pub(crate) fn marker_type(value: &Value, collation: nfold_types::CollationId) -> ExprType {
    match value {
        Value::Null => ExprType::null(),
        Value::Int(_) => ExprType::bigint(true),
        Value::UInt(_) => ExprType::ubigint(true),
        Value::Float(_) | Value::Double(_) => ExprType::double(true),
        Value::Decimal(_) => ExprType::decimal(65, 30, true),
        Value::Bytes(_) => ExprType::string(MARKER_CHARS, collation, Coercibility::Coercible, true),
        Value::Date(_) => ExprType::new(ColumnType::new(nfold_types::TypeKind::Date), true),
        Value::DateTime(_) | Value::Timestamp(_) => {
            ExprType::new(ColumnType::new(nfold_types::TypeKind::DateTime(6)), true)
        }
        Value::Time(_) => ExprType::new(ColumnType::new(nfold_types::TypeKind::Time(6)), true),
    }
}

/// What INTO names.
fn result_target(statement: &Statement) -> Option<SelectInto> {
    match statement {
        Statement::Query(query) => query.into.clone(),
        Statement::Explain { options, .. } => {
            let name = options.into.clone();
            name.map(|name| SelectInto::Variables(vec![name]))
        }
        _ => None,
    }
}

/// What a statement on these tables does in its transaction, as bits of [`done`].
#[cold]
fn done_by(uses: &[TableUse]) -> u8 {
    let of = |u: &TableUse| match &*u.schema {
        "performance_schema" => done::UNSAFE_READ,
        _ if is_write(u) || u.check == UseCheck::Locking => done::WRITE,
        _ => done::READ,
    };
    uses.iter().fold(0, |all, u| all | of(u))
}

fn writes(statement: &Statement) -> bool {
    matches!(
        statement,
        Statement::Insert(_) | Statement::Update(_) | Statement::Delete(_) | Statement::LoadData(_)
    )
}

impl Session {
    /// Applies `max_execution_time` if the text begins like a query.
    #[inline]
    pub(crate) fn limit_query(&self, cx: &mut dyn ExecCx, text: &[u8]) {
        if let Some(limit) = self.env.vars.settings().max_execution_time
            && begins_query(text, self.env.vars.settings().lexing)
        {
            cx.limit_time(Some(limit));
        }
    }

    /// Runs a query, INSERT, UPDATE, DELETE, DO or EXPLAIN.
    pub(crate) fn run(
        &mut self,
        cx: &mut dyn ExecCx,
        work: &Work<'_>,
        sink: &mut WireSink<'_, '_>,
    ) -> Result<StatementResult, SqlError> {
        let mut found = self.own_plan(work);
        // An outdated plan must not be taken from the shared cache again.
        let mut anew = false;
        let mut tries = 0;
        let mut counted = false;
        loop {
            let plan = match found.take() {
                Some(plan) => plan,
                None => match self.plan(cx, work, anew) {
                    Ok(plan) => plan,
                    Err(e) => {
                        self.count_unplanned();
                        return Err(e);
                    }
                },
            };
            if !std::mem::replace(&mut counted, true)
                && let Some(kind) = plan.shared.kind
            {
                self.env.counters.count(kind);
            }
            match self.lock_for(cx, &plan.shared) {
                Ok(true) => {}
                Ok(false) if tries < MAX_RETRIES => {
                    tries += 1;
                    continue;
                }
                Ok(false) => return Err(SqlError::new(ErrorCode::ER_TABLE_DEF_CHANGED, &[])),
                Err(e) => return Err(e),
            }
            self.facts.digest = plan.digest;
            self.facts.run.access = plan.shared.access;
            let cached_operators = !plan.once && !plan.shared.is_large();
            let mut operators = if cached_operators {
                (cx.operator_pool()).operators(&plan.shared.plan, plan.shared.schema_version)
            } else {
                Executable::new(plan.shared.plan.clone())
            };
            if let Some(info) = self.env.transaction_info() {
                info.note(done_by(&plan.shared.uses));
            }
            let run = (&plan, &mut operators);
            let result = match &plan.shared.into {
                None => self.execute_plan(cx, work, run, sink),
                Some(SelectInto::Variables(names)) => self.execute_into(cx, work, run, names),
                Some(SelectInto::Outfile(to)) => self.execute_outfile(cx, work, run, (to, sink)),
                Some(SelectInto::Dumpfile(name)) => {
                    self.execute_dumpfile(cx, work, run, (name, sink))
                }
            };
            if cached_operators {
                let (bytes, version) = (plan.shared.bytes, plan.shared.schema_version);
                cx.operator_pool().give_operators(operators, bytes, version);
            }
            if let Err(e) = &result
                && e.code == ErrorCode::ER_TABLE_DEF_CHANGED
                && !self.engine.snapshot_refused()
                && !anew
            {
                anew = true;
                continue;
            }
            self.plans.keep(plan);
            return result;
        }
    }

    /// Runs a statement without caching its plan. The caller ends the work.
    pub(crate) fn run_once(
        &mut self,
        cx: &mut dyn ExecCx,
        work: &Work<'_>,
        sink: &mut dyn RowSink,
    ) -> Result<StatementResult, SqlError> {
        let plan = self.plan_anew(cx, work)?;
        if !self.lock_for(cx, &plan.shared)? {
            return Err(SqlError::new(ErrorCode::ER_TABLE_DEF_CHANGED, &[]));
        }
        let mut operators = Executable::new(plan.shared.plan.clone());
        self.execute_plan(cx, work, (&plan, &mut operators), sink)
    }

    /// Plans a statement that is being prepared, for its result columns.
    pub(crate) fn describe(
        &mut self,
        cx: &mut dyn ExecCx,
        work: &Work<'_>,
    ) -> Result<Arc<SharedPlan>, SqlError> {
        Ok(self.plan(cx, work, false)?.shared)
    }

    /// The session's own plan, if it is still valid. It is taken out of the cache while it runs.
    #[inline]
    fn own_plan(&mut self, work: &Work<'_>) -> Option<Cached> {
        let catalog = self.server.engine.catalog();
        let accounts = catalog.account_version();
        self.plans
            .take(work, catalog.version())
            .filter(|plan| plan.account_version == accounts)
    }

    /// A plan of the shared cache, or a new one. `anew`: the one in the shared cache is outdated.
    #[inline(never)]
    fn plan(
        &mut self,
        cx: &mut dyn ExecCx,
        work: &Work<'_>,
        anew: bool,
    ) -> Result<Cached, SqlError> {
        let tracing = self.env.vars.settings().tracing;
        let alone = !self.table_locks.is_empty() || !self.temporary.is_empty() || tracing;
        let keep = !alone && work.digested.key().len() <= MAX_KEY_BYTES;
        self.facts.planned_kind = None;
        if !keep {
            return self.plan_anew(cx, work);
        }
        let plan_context = self.plan_context();
        let catalog = self.server.engine.catalog();
        let (schema, account_version) = (catalog.version(), catalog.account_version());
        if !anew && let Some(shared) = self.server.plans.get(work, plan_context, schema) {
            self.facts.planned_kind = shared.kind;
            self.check_uses(&shared.uses)?;
            self.check_columns(&shared.columns)?;
            return Ok(Cached::new(shared, account_version, false));
        }
        let plan = self.plan_anew(cx, work)?;
        if !plan.once {
            self.server.plans.put(work, plan_context, &plan.shared);
        }
        Ok(plan)
    }

    /// Counts a statement that could not be planned, if its kind is known.
    #[cold]
    fn count_unplanned(&mut self) {
        if let Some(kind) = self.facts.planned_kind.take() {
            self.env.counters.count(kind);
        }
    }

    /// The number of the session's plan context.
    fn plan_context(&mut self) -> u32 {
        let Session {
            plans, env, server, ..
        } = self;
        *plans.plan_context.get_or_insert_with(|| {
            let settings = env.vars.settings().plan_context();
            let text = format!("{settings} {:?}", env.database);
            server.plans.plan_context(&text)
        })
    }

    /// Parses, checks privileges, takes metadata locks, and plans.
    #[inline(never)]
    fn plan_anew(&mut self, cx: &mut dyn ExecCx, work: &Work<'_>) -> Result<Cached, SqlError> {
        self.server.plans.count_miss();
        let account_version = self.server.engine.catalog().account_version();
        let owned;
        let parsed = match work.parsed {
            Some(parsed) => parsed,
            None => {
                owned = nfold_sql::parser::parse_parameterised_stoppable(
                    work.text,
                    work.digested,
                    work.describe || !work.markers.is_empty(),
                    &Checkpoints::new(cx),
                )?;
                &owned
            }
        };
        let kind = kind_of(&parsed.statement);
        self.facts.planned_kind = kind;
        let hinted = parsed.statement.max_execution_ms();
        let time_limit = hinted.map(|ms| Duration::from_millis(ms.into()));
        if time_limit.is_some() {
            cx.limit_time(time_limit);
        }
        let database = self.env.database.clone();
        let mut uses = tables_of(&parsed.statement, database.as_deref())?;
        self.temporary.leave_out(&mut uses);
        self.add_behind_views(&mut uses)?;
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
        let sight = self.temporary.sight(&self.schema);
        let info = Info {
            env: &self.env,
            engine: &self.server.engine,
            checkpoint: &Checkpoints::new(cx),
        };
        let collation = self.env.collation();
        let markers: Vec<ExprType> = work
            .markers
            .iter()
            .map(|v| marker_type(v, collation))
            .collect();
        let params: Vec<ParamType> = param_types(work.digested, &markers, collation);
        let literals = Literals::new(work.digested, work.text);
        let column_uses = ColumnUses::default();
        let trace = self.begin_trace(&uses);
        let plan_cx = PlanCx {
            trace: trace.as_ref(),
            stored: &self.schema,
            column_uses: Some(&column_uses),
            literals: Some(&literals),
            ..plan_cx(&info, &sight, work.text, &params)
        };
        let planned = plan_statement(&plan_cx, &parsed.statement);
        let columns = column_uses.take();
        // An account does not learn from another error that a column exists.
        self.check_columns(&columns)?;
        let plan = Arc::new(planned?);
        let before = uses.len();
        uses.extend(changed_by(&plan));
        self.temporary.leave_out(&mut uses);
        if uses.len() > before {
            self.check_uses(&uses)?;
            ids = ids_of(&uses, &self.schema, &self.table_locks);
        }
        if let Some(keys) = plan.foreign_keys() {
            for (id, changes) in keys.uses() {
                ids.push(id);
                ids.extend(changes.then(|| write_permit(id)));
            }
            ids.retain(|id| !self.table_locks.claims(*id));
            ids.sort_unstable();
            ids.dedup();
        }
        if let Some(trace) = trace {
            self.record_trace(cx, work, &plan, &uses, trace);
        }
        let opened = self.server.opened.open(&ids);
        (self.env.counters).add(StatusCounter::OpenedTables, opened);
        let changes_stored = writes(&parsed.statement) && uses.iter().any(is_write);
        let (named, reads) = (parsed.named_by_text as usize, plan.reads());
        let shared = SharedPlan {
            kind,
            access: access_bits(&reads),
            reads,
            key: PlanKey::new(work, &literals.roles(&parsed.roles), named),
            plan,
            uses,
            columns,
            ids,
            schema_version: self.schema.version,
            writes: writes(&parsed.statement),
            changes_stored,
            time_limit,
            into: result_target(&parsed.statement),
            deprecated: parsed.deprecated.clone(),
            text: OnceLock::new(),
            bytes: 0,
        };
        let shared = Arc::new(shared.measured());
        let tracing = self.env.vars.settings().tracing;
        let once = tracing || names_user_variable(work.digested.text());
        Ok(Cached::new(shared, account_version, once))
    }

    /// Errors 1142 and 1044.
    pub(crate) fn check_uses(&mut self, uses: &[TableUse]) -> Result<(), SqlError> {
        self.refresh_rights();
        for u in uses {
            if let Some(view) = &u.view {
                // Locked together with the view.
                self.check_behind(u, view)?;
                continue;
            }
            self.check_use(u)?;
            self.table_locks
                .allow(&u.schema, &u.name, Some(&u.alias), is_write(u))?;
        }
        Ok(())
    }

    /// Checks the privileges on a table that the statement itself names.
    fn check_use(&self, u: &TableUse) -> Result<(), SqlError> {
        let (schema, table) = (&*u.schema, &*u.name);
        match u.check {
            UseCheck::Needs => self.rights.need_table(u.needs, schema, table),
            UseCheck::ByColumns => Ok(()),
            UseCheck::ReadOrUpdate => {
                let update = self.rights.need_table(Privileges::UPDATE, schema, table);
                update.or_else(|_| self.rights.need_table(Privileges::SELECT, schema, table))
            }
            UseCheck::Locking => {
                self.rights.need_table(Privileges::SELECT, schema, table)?;
                self.rights.need_locking(schema, table)
            }
            UseCheck::Explain => {
                self.rights.need_table(u.needs, schema, table)?;
                let shown = Privileges::SHOW_VIEW;
                let is_view = (self.schema.table(schema, table)).is_some_and(|t| t.is_view());
                match is_view && !self.rights.on_table(schema, table).contains(shown) {
                    true => Err(SqlError::new(ErrorCode::ER_VIEW_NO_EXPLAIN, &[])),
                    false => Ok(()),
                }
            }
        }
    }

    /// Checks the privileges on the columns that a statement names, those in views included.
    pub(crate) fn check_columns(&self, columns: &[ColumnUse]) -> Result<(), SqlError> {
        columns.iter().try_for_each(|of| match &of.view {
            None => self.rights.need_columns(of),
            Some(view) => self.check_columns_behind(of, view),
        })
    }

    /// Announces the plan's tables. False: the schema has changed, and the plan is not valid any
    /// more.
    fn lock_for(&mut self, cx: &mut dyn ExecCx, plan: &SharedPlan) -> Result<bool, SqlError> {
        if plan.changes_stored {
            self.announce_change(cx, false)?;
            self.server_locks.changed = true;
        }
        let mdl = self.engine.mdl();
        if plan.ids.iter().any(|&id| mdl.acquire(id).is_err()) {
            let ids = &plan.ids;
            self.lock_tables_shared(cx, &mut |_| ids.clone())?;
        }
        Ok(self.server.engine.catalog().version() == plan.schema_version)
    }

    pub(crate) fn execute_plan(
        &mut self,
        cx: &mut dyn ExecCx,
        work: &Work<'_>,
        (plan, operators): (&Cached, &mut Executable),
        sink: &mut dyn RowSink,
    ) -> Result<StatementResult, SqlError> {
        if plan.shared.writes {
            // A statement that starts with WITH may change rows.
            cx.limit_time(None);
            self.refuse_read_only()?;
            self.refuse_read_only_server()?;
            self.pass_update_gate()?;
        } else if let Some(limit) = plan.shared.time_limit {
            cx.limit_time(Some(limit));
        }
        let mut params = cx.operator_pool().params();
        let (digested, text) = (work.digested, work.text);
        let bound = params.bind(digested, text, work.markers, &Checkpoints::new(cx));
        let result =
            bound.and_then(|()| self.execute_bound(cx, work, (plan, operators, &params), sink));
        cx.operator_pool().give_params(params);
        result
    }

    /// Executes a plan with bound parameters.
    fn execute_bound(
        &mut self,
        cx: &mut dyn ExecCx,
        work: &Work<'_>,
        (plan, operators, params): (&Cached, &mut Executable, &Params),
        sink: &mut dyn RowSink,
    ) -> Result<StatementResult, SqlError> {
        // A prepared statement has warned when it was prepared.
        if work.hint.is_none() {
            plan.shared.warn_of_text(&mut self.conditions);
        }
        let warnings = RefCell::new(std::mem::take(&mut self.conditions));
        let on_tables = !plan.shared.ids.is_empty() || !self.table_locks.is_empty();
        self.begin_work(on_tables);
        self.count_reads(&plan.shared);
        let result = execute(
            operators,
            &self.server.engine,
            params,
            &mut self.engine,
            cx,
            &self.env,
            &warnings,
            sink,
        );
        self.conditions = warnings.into_inner();
        if on_tables {
            self.count_end(result.is_ok());
        }
        result
    }
}

impl Session {
    /// Counts how a plan reads its tables.
    #[inline]
    fn count_reads(&self, plan: &SharedPlan) {
        let counters = &self.env.counters;
        let locks = 2 * plan.reads.tables.len() as u64;
        counters.add(StatusCounter::HandlerExternalLock, locks);
        if plan.access == 0 && plan.reads.temporary_scan == 0 {
            return;
        }
        let reads = &plan.reads;
        let scans = u64::from(reads.scan) + u64::from(reads.temporary_scan);
        counters.add(StatusCounter::SelectScan, scans);
        counters.add(StatusCounter::SelectFullJoin, reads.full_join.into());
        counters.add(StatusCounter::SelectRange, reads.range.into());
        counters.add(StatusCounter::SelectFullRangeJoin, reads.range_join.into());
    }
}

/// How a plan reads its tables, as flags of the statistics.
fn access_bits(reads: &Reads) -> u8 {
    let bit = |on: bool, bit: u8| if on { bit } else { 0 };
    bit(reads.no_index, access::NO_INDEX)
        | bit(reads.scan > 0, access::SCAN)
        | bit(reads.full_join > 0, access::FULL_JOIN)
        | bit(reads.range > 0, access::RANGE)
        | bit(reads.range_join > 0, access::RANGE_JOIN)
}

/// Whether a text may contain `@x` (not `@@x`).
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
