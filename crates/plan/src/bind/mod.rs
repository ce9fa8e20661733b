//! Name resolution and typing: turns the syntax tree into typed expressions over row slots.
//!
//! A [`BlockBinder`] binds one query block: first FROM, which creates the slots, then WHERE, GROUP
//! BY, the select list, HAVING and ORDER BY, each with MySQL's rules for the names that it may use.
//! Meanwhile an aggregate is a column of the placeholder slot [`AGGREGATES`]; once all aggregates
//! are known, [`group`] assigns their positions in the grouped row. In the same way a window
//! function is a column of the slot [`WINDOWS`], until [`window`] assigns it to a pass.

mod aggregate;
mod binder;
mod block;
mod cast;
pub mod column_type;
mod compare;
mod conditions;
mod constant_checks;
mod context;
mod dependencies;
mod dml;
mod expr;
mod from;
mod fulltext;
mod group;
mod item_names;
mod items;
mod json;
mod load;
mod names;
mod nullif;
mod order;
mod plan_hints;
mod rollup;
mod set;
mod stored;
pub mod table_exprs;
mod tables;
mod temporal_literal;
mod types;
mod view_target;
mod wide_sets;
mod window;
mod with;

#[cfg(test)]
mod tests;

pub(crate) use binder::{
    AGGREGATES, BlockBinder, Dependency, GROUPINGS, Grouped, ScopeColumn, ScopeSlot, SourceColumns,
    ViewTarget, WINDOWS, WindowDraft,
};
pub use from::{check_view, view_results};
pub use view_target::view_is_updatable;

use std::cell::RefCell;
use std::sync::Arc;

use nfold_catalog::TableDef;
use nfold_sql::ast::{self, SelectInto};
use nfold_types::{ErrorCode, SqlError};

use context::{BindCx, MAX_DEPTH, too_deep};

use crate::logical::clauses::ConstantCheck;
use crate::logical::context::PlanCx;
use crate::logical::expr::Expr;
use crate::logical::results::ResultColumn;
use crate::logical::statement::Statement;

/// Binds a statement. Returns the constants that it compares with dates as well.
///
/// # Errors
/// MySQL's errors for unknown names and invalid combinations; 1235 for unsupported syntax.
pub(crate) fn bind(
    plan: &PlanCx<'_>,
    statement: &nfold_sql::ast::Statement,
) -> Result<(Statement, Vec<ConstantCheck>), SqlError> {
    let constant_checks = RefCell::default();
    let cx = BindCx {
        constant_checks: Some(&constant_checks),
        ..BindCx::new(plan)
    };
    let bound = bind_statement(&cx, statement)?;
    Ok((bound, constant_checks.into_inner()))
}

fn bind_statement(
    cx: &BindCx<'_>,
    statement: &nfold_sql::ast::Statement,
) -> Result<Statement, SqlError> {
    use nfold_sql::ast::Statement as Ast;
    let changes = &BindCx {
        keeps_derived: true,
        ..*cx
    };
    match statement {
        Ast::Query(q) => {
            let query = block::bind_statement(cx, q)?;
            match &q.into {
                Some(SelectInto::Variables(names)) if names.len() != query.types.len() => {
                    let code = ErrorCode::ER_WRONG_NUMBER_OF_COLUMNS_IN_SELECT;
                    return Err(SqlError::new(code, &[]));
                }
                Some(SelectInto::Outfile(to)) => load::check_delimiters(&to.format)?,
                _ => {}
            }
            Ok(Statement::Query(query))
        }
        Ast::Insert(i) => dml::insert(changes, i),
        Ast::LoadData(l) => load::load(changes, &l.insert),
        Ast::Update(u) => dml::update(changes, u),
        Ast::Delete(d) => dml::delete(changes, d),
        Ast::Do(list) => {
            // Nothing is checked before: each expression warns when it is evaluated.
            let cx = &BindCx {
                constant_checks: None,
                ..*cx
            };
            let bind = |list: &mut dyn Iterator<Item = &ast::Expr>| {
                let mut block = BlockBinder::new(cx, None);
                let exprs: Result<Vec<Expr>, SqlError> = list.map(|e| block.expr(e)).collect();
                Ok(Statement::Do(exprs?, block.subqueries))
            };
            match bind(&mut list.iter()) {
                Err(error) if needs_rows(&error) => {
                    let selected: Vec<ast::Expr> = list.iter().map(as_subquery).collect();
                    bind(&mut selected.iter())
                }
                bound => bound,
            }
        }
        _ => Err(SqlError::not_supported("this statement as a plan")),
    }
}

/// Whether the error says that an aggregate or a window function is used where there are no rows.
fn needs_rows(error: &SqlError) -> bool {
    let code = error.code;
    code == ErrorCode::ER_INVALID_GROUP_FUNC_USE
        || code == ErrorCode::ER_WINDOW_INVALID_WINDOW_FUNC_USE
}

/// Wraps `e` as `(SELECT e)`.
fn as_subquery(e: &ast::Expr) -> ast::Expr {
    let item = ast::SelectItem::Expr {
        expr: e.clone(),
        alias: None,
        text: ast::Span::default(),
    };
    let select = ast::Select {
        distinct: false,
        options: ast::SelectOptions::default(),
        plan_hints: Vec::new(),
        items: vec![item],
        from: Vec::new(),
        selection: None,
        group_by: Vec::new(),
        with_rollup: false,
        having: None,
        windows: Vec::new(),
    };
    let body = ast::QueryBody::Select(Box::new(select));
    ast::Expr::Subquery(Box::new(ast::Query::of(body)))
}

/// The columns of a table created from the rows of `query` (CREATE TABLE ... SELECT).
///
/// # Errors
/// The errors of binding the query.
pub fn query_results(
    cx: &PlanCx<'_>,
    query: &nfold_sql::ast::Query,
) -> Result<Vec<ResultColumn>, SqlError> {
    Ok(block::bind_query(&BindCx::new(cx), query, None)?.result_columns(cx.funcs))
}

/// Binds a condition over the columns of `def`, the definition of a result in memory
/// (`SHOW ... WHERE`).
///
/// # Errors
/// 1235 for a subquery, and MySQL's errors for conditions, such as 1054.
pub fn bind_condition(
    cx: &PlanCx<'_>,
    def: &Arc<TableDef>,
    e: &nfold_sql::ast::Expr,
) -> Result<Expr, SqlError> {
    let cx = BindCx::new(cx);
    let mut block = BlockBinder::new(&cx, None);
    block.row_of(def)?;
    block.clause = "where clause";
    let bound = block.expr(e)?;
    match block.subqueries.is_empty() {
        true => Ok(bound),
        false => Err(SqlError::not_supported("a subquery in the WHERE of SHOW")),
    }
}

/// Binds a single expression without any columns (`SET`, `KILL`).
pub fn bind_free(cx: &PlanCx<'_>, e: &nfold_sql::ast::Expr) -> Result<Expr, SqlError> {
    BlockBinder::new(&BindCx::new(cx), None).expr(e)
}
