//! The session's answers to the planner, and the evaluation of expressions outside of queries (SET,
//! KILL).

use std::cell::RefCell;
use std::sync::Arc;

use nfold_catalog::{
    BoundExprs, ColumnDef, ColumnDefault, Relation, SchemaSnapshot, TableDef, TableId,
    TableOptions, TableStats, Visibility,
};
use nfold_engine::Engine;
use nfold_exec::eval::{EvalCx, ListCache, NoSubqueries, RowCounts, StmtState, convert, held_rows};
use nfold_exec::{Params, SessionEnv};
use nfold_plan::bind::{self, bind_condition, bind_free};
use nfold_plan::{ParamType, VarScope};
use nfold_plan::{PlanCx, PlanInfo};
use nfold_sql::ast;
use nfold_types::{
    Checkpoint, CollationId, ColumnType, ErrorCode, NoCheckpoint, SqlError, Value, Warnings,
};

use super::env::Env;
use super::response::RowSet;
use super::vars;

/// See [`PlanInfo`].
pub struct Info<'a> {
    pub env: &'a Env,
    pub engine: &'a Engine,
    pub checkpoint: &'a dyn Checkpoint,
}

impl PlanInfo for Info<'_> {
    fn stats(&self, table: TableId) -> Option<Arc<TableStats>> {
        self.engine.table(table).map(|t| t.stats())
    }

    fn want_histogram(&self, table: TableId, column: usize) {
        if let Some(table) = self.engine.table(table) {
            table.want_histogram(column);
        }
    }

    fn sysvar_type(&self, scope: Option<VarScope>, name: &str) -> Result<ColumnType, SqlError> {
        let at = self.env.find_var(name)?;
        self.env.scope_of(at, scope)?;
        Ok(vars::definitions()[at].column_type())
    }

    fn user_var_type(&self, name: &str) -> ColumnType {
        self.env.user_var_type(name)
    }

    fn virtual_table(&self, schema: &str, name: &str) -> Option<Arc<TableDef>> {
        self.env.server.system_tables.find(schema, name).cloned()
    }
}

/// The current inputs of planning.
pub fn plan_cx<'a>(
    info: &'a Info<'a>,
    snapshot: &'a SchemaSnapshot,
    text: &'a [u8],
    params: &'a [ParamType],
) -> PlanCx<'a> {
    let settings = info.env.vars.settings();
    PlanCx {
        snapshot,
        stored: snapshot,
        db: info.env.database.as_deref(),
        mode: info.env.sql_mode(),
        connection: info.env.collation(),
        funcs: &nfold_exec::func::Builtins,
        info,
        checkpoint: info.checkpoint,
        text,
        params,
        column_uses: None,
        literals: None,
        select_limit: (settings.sql_select_limit != u64::MAX).then_some(settings.sql_select_limit),
        safe_updates: settings.sql_safe_updates,
        foreign_key_checks: settings.foreign_key_checks,
        group_concat_max_len: settings.group_concat_max_len,
        div_precision_increment: settings.div_precision_increment,
        switches: settings.switches,
        explain_format: settings.explain_format,
        trace: None,
    }
}

/// Error 1356 if a table, column or function that a view names does not exist any more.
pub fn check_view(
    (env, engine): (&Env, &Engine),
    snapshot: &SchemaSnapshot,
    def: &TableDef,
) -> Result<(), SqlError> {
    let Some(view) = def.view() else {
        return Ok(());
    };
    let checkpoint = &NoCheckpoint;
    let info = Info {
        env,
        engine,
        checkpoint,
    };
    match bind::check_view(&plan_cx(&info, snapshot, &view.text, &[]), def) {
        Err(e) if e.code == ErrorCode::ER_VIEW_INVALID => Err(e),
        _ => Ok(()),
    }
}

/// Evaluates an expression outside of a query, which names no column. Returns its value, and its
/// type unless it is a literal.
pub fn evaluate(
    info: &Info<'_>,
    snapshot: &SchemaSnapshot,
    e: &ast::Expr,
    text: &[u8],
    params: (&[ParamType], &Params),
    warnings: &RefCell<Warnings>,
) -> Result<(Value, Option<ColumnType>), SqlError> {
    if let Some(value) = literal(e) {
        return Ok((value, None));
    }
    let cx = plan_cx(info, snapshot, text, params.0);
    let bound = bind_free(&cx, e)?;
    let memory = Default::default();
    let st = state(info, params.1, warnings, &memory);
    let eval = EvalCx {
        rows: &[],
        outer: &[],
        st: &st,
    };
    let value = eval.val(&bound)?;
    let stored = convert::var_value(&eval, value, &bound.ty);
    // A computation that cannot return an error may have been stopped: then the checkpoint fails.
    info.checkpoint.checkpoint(0)?;
    Ok((stored, Some(bound.ty.col)))
}

/// The state of an evaluation outside of a query.
fn state<'a>(
    info: &'a Info<'_>,
    params: &'a Params,
    warnings: &'a RefCell<Warnings>,
    (lists, counts): &'a (ListCache, RowCounts),
) -> StmtState<'a> {
    StmtState {
        params,
        env: info.env,
        warnings,
        subqueries: &NoSubqueries,
        checkpoint: info.checkpoint,
        lists,
        counts,
        strict: false,
        scope: nfold_exec::eval::Scope::None,
        changes: false,
    }
}

/// For each row of a result in memory, whether a condition over its columns holds.
pub fn matching_rows(
    info: &Info<'_>,
    snapshot: &SchemaSnapshot,
    condition: &ast::Expr,
    params: (&[ParamType], &Params),
    warnings: &RefCell<Warnings>,
    set: &RowSet,
) -> Result<Vec<bool>, SqlError> {
    let cx = plan_cx(info, snapshot, &[], params.0);
    let columns = set.columns.iter().map(|c| ColumnDef {
        name: c.name.clone(),
        ty: c.ty.clone(),
        nullable: true,
        default: ColumnDefault::Null,
        on_update_now: None,
        auto_increment: false,
        comment: "".into(),
        own_charset: false,
        generated: None,
        visibility: Visibility::Visible,
        histogram: None,
    });
    let def = TableDef {
        id: TableId(u64::MAX - 1),
        schema: "".into(),
        name: "".into(),
        columns: columns.collect(),
        indexes: Vec::new(),
        foreign_keys: Vec::new(),
        checks: Vec::new(),
        bound: BoundExprs::default(),
        collation: CollationId::UTF8MB3_GENERAL_CI,
        options: TableOptions::default(),
        space: 0,
        row_version: 0,
        create_time: 0,
        relation: Relation::Table,
    };
    let bound = bind_condition(&cx, &Arc::new(def), condition)?;
    let memory = Default::default();
    let st = state(info, params.1, warnings, &memory);
    let types = set.columns.iter().map(|c| &c.ty);
    let found = held_rows::matching(&st, types, &set.rows, &bound)?;
    info.checkpoint.checkpoint(0)?;
    Ok(found)
}

/// The value of a literal.
fn literal(e: &ast::Expr) -> Option<Value> {
    use ast::{Expr, Literal, UnaryOp};
    Some(match e {
        Expr::Literal(Literal::Null) => Value::Null,
        Expr::Literal(Literal::Bool(b)) => Value::from(*b),
        Expr::Literal(Literal::Int(n)) => i64::try_from(*n).map_or(Value::UInt(*n), Value::Int),
        Expr::Literal(Literal::String(s)) if s.charset.is_none() => Value::Bytes(s.bytes.clone()),
        Expr::Unary {
            op: UnaryOp::Minus,
            expr,
        } => match &**expr {
            Expr::Literal(Literal::Int(n)) => Value::Int(i64::try_from(*n).ok()?.checked_neg()?),
            _ => return None,
        },
        _ => return None,
    })
}
