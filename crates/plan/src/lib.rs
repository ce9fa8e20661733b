//! The planner: turns a syntax tree into the plan that the executor runs. Each of its stages takes
//! the tree of the stage before it; `logical` and `physical` are the trees.
//!
//! 1. [`bind`] resolves names against a schema snapshot and types every expression. The result is a
//!    logical tree.
//! 2. `rewrite` merges derived tables, decorrelates subqueries and simplifies joins. The result is
//!    a logical tree as well.
//! 3. `optimize` chooses access paths and join orders. The result is a [`physical::Plan`].
//!
//! A plan holds expressions in place of values, and reads them when it is bound to parameters. So
//! all sessions that run the same statement with other values share it.
#![forbid(unsafe_code)]

pub mod bind;
pub mod explain;
#[cfg(test)]
mod golden;
mod logical;
mod optimize;
pub mod physical;
mod rewrite;
pub mod row_event;

use std::sync::Arc;

use nfold_catalog::TableDef;
use nfold_sql::ast::Statement;
use nfold_types::SqlError;

pub use logical::column_uses::{ColumnAccess, ColumnUse, ColumnUses, ViewScope};
pub use logical::context::{ParamType, PlanCx, PlanInfo, hex_type, param_types};
pub use logical::literals::Literals;
pub use logical::mode::{SqlMode, Switches};
pub use logical::{
    changed_view, collate, expr, file_rows, fulltext, func, json_table, results, table_exprs, trace,
};
pub use nfold_sql::ast::VarScope;
pub use nfold_types::Value;
pub use physical as query;
pub use physical::Plan;
pub use physical::foreign;
pub use physical::reads::{Reads, TableUse};

/// Plans a statement.
///
/// # Errors
/// MySQL's errors for unknown names and invalid combinations; 1235 for unsupported syntax.
pub fn plan_statement(cx: &PlanCx<'_>, statement: &Statement) -> Result<Plan, SqlError> {
    if let Statement::Explain { options, statement } = statement {
        let format = explain::output(cx, options)?;
        let schema = options.schema.as_ref().map(|name| name.as_str());
        let cx = PlanCx {
            db: schema.or(cx.db),
            ..*cx
        };
        let plan = plan_statement(&cx, statement)?;
        let explained = explain::explain(format, options.analyze, plan);
        return Ok(Plan::Explain(Box::new(explained)));
    }
    let (bound, constant_checks) = bind::bind(cx, statement)?;
    let exprs = |def: &Arc<TableDef>| bind::table_exprs::table_exprs(cx, def);
    let rewritten = rewrite::rewrite(cx, bound, &exprs)?;
    let mut plan = optimize::optimize(cx, rewritten)?;
    plan.attach_exprs(&exprs)?;
    if !constant_checks.is_empty() {
        plan.set_constant_checks(constant_checks);
    }
    if let Plan::Query(query) = &mut plan
        && query.limit.is_none()
    {
        query.limit = cx.select_limit.map(physical::LimitPlan::rows);
    }
    Ok(plan)
}
