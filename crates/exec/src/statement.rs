//! Statements: the entry points for the session.
//!
//! ```text
//!   text ─▶ Digested ─▶ plan cache ─▶ Executable (cached operators, for one session at a time) ─▶ execute
//! ```

use std::cell::RefCell;
use std::sync::Arc;

use nfold_binlog::{RowsEvent, TableMap};
use nfold_engine::{Engine, EngineSession, Table};
use nfold_observe::OwnTableIo;
use nfold_plan::SqlMode;
use nfold_plan::expr::Expr;
use nfold_plan::query::{
    ColumnMeta, DeletePlan, InsertPlan, InsertSource, Plan, QueryBody, SubqueryPlan, TableSource,
    UpdatePlan,
};
use nfold_plan::row_event::RowEventPlan;
use nfold_types::{Checkpoint, ErrorCode, SqlError, Warnings};

use crate::dml::{self, ExpectedRows};
use crate::env::params::Params;
use crate::env::{EncodedColumns, RowSink, SessionEnv, StatementFiber};
use crate::expr::eval::EvalCx;
use crate::query::block::BlockExec;
use crate::query::subquery::{BlockSubqueries, CachedSubquery};
use crate::query::{CachedQuery, ToSink};
use crate::runtime::Runtime;
use crate::runtime::profile::Profile;
use crate::runtime::result::{StatementResult, full_table};

/// A plan with the operators that run it, for one statement at a time. It is cached between
/// executions ([`OperatorPool`](crate::OperatorPool)), so that a warm statement allocates little.
pub struct Executable {
    plan: Arc<Plan>,
    /// The operators of a query, or of the query of INSERT ... SELECT.
    query: CachedQuery,
    /// The operators that find the rows to change.
    root: Option<Box<BlockExec>>,
    /// The definitions of the result's columns.
    encoded: EncodedColumns,
    /// Whether the operators read with locks (SERIALIZABLE).
    lock_reads: bool,
    /// How often it has run.
    uses: u32,
    /// The first table, and its number of rows when the plan was made.
    first: Option<(Arc<Table>, u64)>,
    /// The worker's counters of the tables that the plan names, and whether it changes them.
    /// `None`: it has not run yet.
    tables: Option<Box<[(OwnTableIo, bool)]>>,
    /// The first table has outgrown the plan, so other sessions with the same plan must plan again
    /// too.
    outgrown: bool,
}

impl Executable {
    /// The operators are created at the first run.
    pub fn new(plan: Arc<Plan>) -> Executable {
        Executable {
            plan,
            query: CachedQuery::default(),
            root: None,
            encoded: EncodedColumns::default(),
            lock_reads: false,
            uses: 0,
            first: None,
            tables: None,
            outgrown: false,
        }
    }

    /// The plan.
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// The memory that its operators keep between executions, approximately, in bytes.
    pub(crate) fn memory(&self) -> usize {
        let root = self.root.as_ref();
        let operators = self.query.memory() + root.map_or(0, |root| root.memory());
        operators + self.encoded.bytes.capacity()
    }

    /// Whether the first table has grown or shrunk so much since planning that another plan may be
    /// better. This is checked at the first run, which also records the number of rows, and
    /// whenever the number of uses is a power of four.
    fn outgrown(&mut self, engine: &Engine) -> bool {
        self.uses = self.uses.saturating_add(1);
        if self.outgrown {
            return true;
        }
        if !(self.uses.is_power_of_two() && self.uses.trailing_zeros().is_multiple_of(2)) {
            return false;
        }
        let rows = |table: &Table| table.estimate_rows().max(1_000);
        if let Some((table, then)) = &self.first {
            let now = rows(table);
            self.outgrown = now / 8 > *then || then / 8 > now;
            return self.outgrown;
        }
        let table = first_table(&self.plan).and_then(|id| engine.table(id));
        self.first = table.map(|table| (table.clone(), rows(&table)));
        false
    }

    /// Counts the statement among those that use its tables.
    fn count_uses(&mut self, engine: &Engine) {
        let tables = self
            .tables
            .get_or_insert_with(|| used_tables(&self.plan, engine));
        for (table, writes) in tables {
            table.add_lock(*writes);
        }
    }

    /// The columns of the result; empty for a statement without a result set.
    pub fn columns(&self) -> &[ColumnMeta] {
        plan_columns(&self.plan)
    }
}

/// The table that is read first, if the plan depends on costs.
fn first_table(plan: &Plan) -> Option<nfold_catalog::TableId> {
    let block = match plan {
        Plan::Query(q) => match &q.body {
            QueryBody::Block(b) => &**b,
            _ => return None,
        },
        Plan::Update(u) => &u.source,
        Plan::Delete(d) => &d.source,
        Plan::UpdateTables(u) => &u.source,
        Plan::DeleteTables(d) => &d.source,
        _ => return None,
    };
    match &block.tables[block.joins.first()?.table].source {
        TableSource::Table(def) => Some(def.id),
        _ => None,
    }
}

/// This worker's counters of the tables that a plan names, and whether the plan changes them.
#[cold]
fn used_tables(plan: &Plan, engine: &Engine) -> Box<[(OwnTableIo, bool)]> {
    let uses = plan.reads().tables.into_iter();
    let opened = uses.filter_map(|used| Some((engine.table(used.table)?.io().own(), used.writes)));
    opened.collect()
}

/// The columns of the result; empty for a statement without a result set.
pub fn plan_columns(plan: &Plan) -> &[ColumnMeta] {
    match plan {
        Plan::Query(q) => &q.columns,
        Plan::Explain(e) => &e.columns,
        _ => &[],
    }
}

/// Runs a statement. Sets an implicit savepoint, and returns to it after an error; the session
/// commits.
///
/// # Errors
/// MySQL's error. After 1213 the transaction has been rolled back. With 1412 nothing was done, and
/// the caller must plan again.
#[allow(clippy::too_many_arguments)]
pub fn execute(
    statement: &mut Executable,
    engine: &Arc<Engine>,
    params: &Params,
    session: &mut EngineSession,
    cx: &mut dyn StatementFiber,
    env: &dyn SessionEnv,
    warnings: &RefCell<Warnings>,
    sink: &mut dyn RowSink,
) -> Result<StatementResult, SqlError> {
    if statement.outgrown(engine) {
        return Err(SqlError::new(ErrorCode::ER_TABLE_DEF_CHANGED, &[]));
    }
    statement.count_uses(engine);
    session.statement_begin(env.isolation(), env.read_only());
    let plan = &*statement.plan;
    let several = matches!(plan, Plan::UpdateTables(_) | Plan::DeleteTables(_));
    let writes = several || matches!(plan, Plan::Insert(_) | Plan::Update(_) | Plan::Delete(_));
    // MySQL takes locks for these reads at every isolation level.
    let locks = several || matches!(plan, Plan::Delete(_));
    let lock_reads = locks || crate::runtime::locks_reads(session, writes);
    if statement.lock_reads != lock_reads {
        statement.lock_reads = lock_reads;
        (statement.query, statement.root) = (CachedQuery::default(), None);
    }
    warnings
        .borrow_mut()
        .set_strict(is_strict(&statement.plan, env));
    let result = {
        let mut rt = Runtime::new(engine, session, cx, env, params, warnings);
        rt.lock_reads = lock_reads;
        rt.semi_consistent = matches!(&*statement.plan, Plan::Update(_));
        rt.changes = several || matches!(&*statement.plan, Plan::Update(_) | Plan::Delete(_));
        if matches!(&*statement.plan, Plan::Explain(e) if e.analyze) {
            rt.profile = Some(Profile::default());
        }
        let done = run(&rt, statement, sink);
        // A computation that cannot return an error may have been stopped: then the checkpoint
        // fails.
        let mut done = done.and_then(|done| rt.checkpoint(0).map(|()| done));
        if let Ok(done) = &mut done {
            done.examined = rt.examined.get();
        }
        done
    };
    // An error of strict mode happened before any other error, which would have ended the
    // statement.
    let raised = warnings.borrow_mut().take_raised();
    warnings.borrow_mut().set_strict(false);
    let result = raised.map_or(result, Err);
    let ok = result.is_ok();
    if !ok {
        // The operators may be in the middle of a read.
        (statement.query, statement.root) = (CachedQuery::default(), None);
    }
    let ended = crate::runtime::drive(cx, || session.statement_end(ok));
    let result = result?;
    ended?;
    Ok(result)
}

/// Applies a row event of a replication source as a statement: with an implicit savepoint, to which
/// an error returns. The session commits. Returns the number of rows.
///
/// # Errors
/// 1032 and 1062 with the row, 1677 if a column has another type than on the source, and the errors
/// of the table's constraints. After 1213 the transaction has been rolled back.
pub fn apply_row_event(
    (engine, session): (&Arc<Engine>, &mut EngineSession),
    cx: &mut dyn StatementFiber,
    env: &dyn SessionEnv,
    warnings: &RefCell<Warnings>,
    (plan, expected): (&RowEventPlan, ExpectedRows),
    (map, event): (&TableMap, &RowsEvent),
) -> Result<u64, SqlError> {
    session.statement_begin(env.isolation(), false);
    let params = Params::new();
    let result = {
        let mut rt = Runtime::new(engine, session, cx, env, &params, warnings);
        rt.changes = true;
        let applied = dml::apply_row_event(&rt, plan, (map, event), expected);
        applied.map_err(|e| full_table(e, &plan.table.name))
    };
    let ended = crate::runtime::drive(cx, || session.statement_end(result.is_ok()));
    let rows = result?;
    ended?;
    Ok(rows)
}

/// Whether losing a value is an error: a statement that changes rows in strict mode, without
/// IGNORE.
fn is_strict(plan: &Plan, env: &dyn SessionEnv) -> bool {
    let ignore = match plan {
        Plan::Insert(p) => p.ignore,
        Plan::Update(p) => p.ignore,
        Plan::Delete(p) => p.ignore,
        Plan::UpdateTables(p) => p.ignore,
        Plan::DeleteTables(p) => p.ignore,
        _ => return false,
    };
    !ignore && env.sql_mode().has(SqlMode::STRICT)
}

/// Runs the plan. What runs other kinds than queries is not inlined, so that the stack of a query
/// stays small.
#[inline(never)]
fn run(
    rt: &Runtime<'_>,
    statement: &mut Executable,
    sink: &mut dyn RowSink,
) -> Result<StatementResult, SqlError> {
    // The plan is borrowed: counting a reference would write to a line that all sessions share.
    let Executable {
        plan,
        query,
        root,
        encoded,
        ..
    } = statement;
    match &**plan {
        Plan::Query(q) => {
            match &q.empty_columns {
                Some(columns) if crate::query::block::is_known_empty(rt, q) => {
                    sink.columns(columns)?;
                }
                _ => sink.columns_again(&q.columns, encoded)?,
            }
            let mut out = ToSink {
                sink,
                counts: &rt.counts,
            };
            query.run(rt, q, &[], &mut out)?;
            let (sent, skipped) = (rt.counts.sent.get(), rt.counts.skipped.get());
            let found_rows = rt.found_rows.get().unwrap_or(sent + skipped);
            Ok(StatementResult {
                is_query: true,
                rows: sent,
                found_rows,
                ..StatementResult::default()
            })
        }
        Plan::Insert(p) => run_insert(rt, p, query, sink),
        Plan::Update(p) => run_update(rt, p, root),
        Plan::Delete(p) => run_delete(rt, p, root),
        Plan::UpdateTables(p) => dml::multi_table_update(rt, p, root),
        Plan::DeleteTables(p) => dml::multi_table_delete(rt, p, root),
        Plan::Do(list, subqueries) => run_do(rt, list, subqueries),
        Plan::Explain(e) => crate::explain::run(rt, e, sink),
    }
}

#[inline(never)]
fn run_insert(
    rt: &Runtime<'_>,
    plan: &InsertPlan,
    query: &mut CachedQuery,
    sink: &mut dyn RowSink,
) -> Result<StatementResult, SqlError> {
    let done = dml::insert(rt, plan, query, sink.file());
    let done = done.map_err(|e| full_table(e, &plan.table.name))?;
    Ok(match plan.source {
        InsertSource::Query(_) => done.with_found_rows(),
        _ => done,
    })
}

#[inline(never)]
fn run_update(
    rt: &Runtime<'_>,
    plan: &UpdatePlan,
    root: &mut Option<Box<BlockExec>>,
) -> Result<StatementResult, SqlError> {
    let done = dml::update(rt, plan, root).map_err(|e| full_table(e, &plan.table.name))?;
    Ok(done.with_found_rows())
}

#[inline(never)]
fn run_delete(
    rt: &Runtime<'_>,
    plan: &DeletePlan,
    root: &mut Option<Box<BlockExec>>,
) -> Result<StatementResult, SqlError> {
    dml::delete(rt, plan, root).map_err(|e| full_table(e, &plan.table.name))
}

/// Evaluates the expressions of a DO.
#[inline(never)]
fn run_do(
    rt: &Runtime<'_>,
    list: &[Expr],
    subqueries: &[SubqueryPlan],
) -> Result<StatementResult, SqlError> {
    let kept = CachedSubquery::of(subqueries);
    let subs = BlockSubqueries::new(rt, subqueries, &kept);
    let state = rt.state(&subs);
    let cx = EvalCx {
        rows: &[],
        outer: &[],
        st: &state,
    };
    for e in list {
        cx.val(e)?;
    }
    Ok(StatementResult::default())
}
