//! Names and types: from the syntax tree to bound expressions over row slots.
//!
//! A query block is bound by a [`BlockBinder`]: FROM first, which makes the slots; then WHERE,
//! GROUP BY, the select list, HAVING and ORDER BY, each with MySQL's rules for what a name may mean
//! there. While a block is bound, an aggregate function is a column of the slot [`AGGREGATES`];
//! [`group`] gives it its place in the grouped row when all are known. A window function is a
//! column of the slot [`WINDOWS`]; [`window`] says of which pass's slot it becomes one.

mod aggregate;
mod block;
mod cast;
mod compare;
mod conditions;
mod context;
mod dml;
mod expr;
mod from;
mod group;
mod items;
mod names;
mod order;
mod rollup;
mod set;
mod stored;
mod tables;
mod types;
mod window;
mod with;

#[cfg(test)]
mod tests;

use std::sync::Arc;

pub use from::view_results;
pub(crate) use group::Dependency;

use nfold_sql::ast::{self, SelectInto};
use nfold_types::{ColumnType, ErrorCode, SqlError};

use context::{BindCx, MAX_DEPTH, too_deep};

use crate::logical::clauses::Aggregate;
use crate::logical::context::PlanCx;
use crate::logical::expr::{Coercibility, Expr, ExprType};
use crate::logical::query::{Subquery, SubqueryForm, Table};
use crate::logical::results::ResultColumn;
use crate::logical::statement::Statement;

/// While binding: the slot of aggregates, before they have their place in the grouped row.
pub(crate) const AGGREGATES: u16 = u16::MAX;

/// While binding: the slot of the calls of GROUPING, before the members of GROUP BY are known.
pub(crate) const GROUPINGS: u16 = u16::MAX - 1;

/// While binding: the slot of window functions, before they have their place in the slots of the
/// passes. Columns of tables are below it.
pub(crate) const WINDOWS: u16 = u16::MAX - 2;

/// Binds a statement.
///
/// # Errors
/// Those of MySQL for unknown names and impossible combinations; 1235 for what is not supported.
pub(crate) fn bind(
    plan: &PlanCx<'_>,
    statement: &nfold_sql::ast::Statement,
) -> Result<Statement, SqlError> {
    use nfold_sql::ast::Statement as Ast;
    let (cx, changes) = (&BindCx::new(plan), &BindCx::of_changes(plan));
    match statement {
        Ast::Query(q) => {
            let query = block::bind_statement(cx, q)?;
            if let Some(SelectInto::Variables(names)) = &q.into
                && names.len() != query.types.len()
            {
                let code = ErrorCode::ER_WRONG_NUMBER_OF_COLUMNS_IN_SELECT;
                return Err(SqlError::new(code, &[]));
            }
            Ok(Statement::Query(query))
        }
        Ast::Insert(i) => dml::insert(changes, i),
        Ast::Update(u) => dml::update(changes, u),
        Ast::Delete(d) => dml::delete(changes, d),
        Ast::Do(list) => {
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

/// Whether an aggregate or a window function stands where there are no rows.
fn needs_rows(error: &SqlError) -> bool {
    let code = error.code;
    code == ErrorCode::ER_INVALID_GROUP_FUNC_USE
        || code == ErrorCode::ER_WINDOW_INVALID_WINDOW_FUNC_USE
}

/// `(SELECT e)`
fn as_subquery(e: &ast::Expr) -> ast::Expr {
    let item = ast::SelectItem::Expr {
        expr: e.clone(),
        alias: None,
        text: ast::Span::default(),
    };
    let select = ast::Select {
        distinct: false,
        options: ast::SelectOptions::default(),
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

/// The columns of a table that keeps the rows of `query` (CREATE TABLE ... SELECT).
///
/// # Errors
/// Those of binding the query.
pub fn query_results(
    cx: &PlanCx<'_>,
    query: &nfold_sql::ast::Query,
) -> Result<Vec<ResultColumn>, SqlError> {
    Ok(block::bind_query(&BindCx::new(cx), query, None)?.result_columns())
}

/// Binds a single expression over the columns of one virtual table (`SHOW … WHERE`), or over
/// nothing (`SET`, `KILL`).
pub fn bind_free(cx: &PlanCx<'_>, e: &nfold_sql::ast::Expr) -> Result<Expr, SqlError> {
    BlockBinder::new(&BindCx::new(cx), None).expr(e)
}

/// A name that slots are searched for.
pub(crate) struct ScopeColumn {
    pub name: Arc<str>,
    pub ty: ColumnType,
    pub nullable: bool,
    /// That of the expression, for a derived table that MySQL merges into the query.
    pub coercibility: Option<Coercibility>,
    /// An expression of a derived table that MySQL merges into the query.
    pub made: bool,
}

/// What names see of a slot.
pub(crate) struct ScopeSlot {
    /// Database, where the slot is a table.
    pub schema: Option<Arc<str>>,
    pub alias: Arc<str>,
    pub columns: Vec<ScopeColumn>,
    /// Of a derived table: which of its columns follow from others.
    pub dependencies: Vec<Dependency>,
}

/// Binds one query block.
pub(crate) struct BlockBinder<'b> {
    pub cx: &'b BindCx<'b>,
    pub outer: Option<&'b BlockBinder<'b>>,
    pub scope: Vec<ScopeSlot>,
    pub tables: Vec<Table>,
    /// Columns of USING and NATURAL joins that an unqualified name (and `*`) does not see.
    pub hidden: Vec<(usize, usize)>,
    pub subqueries: Vec<Subquery>,
    /// Behind a cell because subqueries may have aggregates of this block.
    pub aggregates: std::cell::RefCell<Vec<Aggregate>>,
    /// The arguments of the calls of GROUPING.
    pub groupings: Vec<Vec<Expr>>,
    /// What the block's GROUP BY is.
    pub grouped: rollup::Grouped,
    /// Which columns were named, per slot; behind a cell because subqueries name them too.
    pub used: std::cell::RefCell<Vec<Vec<bool>>>,
    /// A name was found in an enclosing query.
    pub correlated: std::cell::Cell<bool>,
    /// For error 1054.
    pub clause: &'static str,
    /// The first slot whose columns may be named.
    pub in_sight_from: usize,
    /// Aggregate functions may stand here.
    pub aggregates_allowed: bool,
    /// Inside an aggregate's arguments.
    pub in_aggregate: bool,
    /// The innermost query that gathers an aggregate inside the arguments at hand: its `depth`.
    pub nested_aggregate: std::cell::Cell<Option<usize>>,
    /// An alias of the select list was named inside the arguments at hand.
    pub alias_in_aggregate: bool,
    /// Window functions may stand here.
    pub windows_allowed: bool,
    /// Inside a window function's arguments or its window.
    pub in_window: bool,
    /// The window whose members are at hand.
    pub window_spec: Option<Arc<str>>,
    pub windows: Vec<window::WindowDraft>,
    /// Select list, for names that may be aliases.
    pub aliases: Vec<(Arc<str>, Expr)>,
    /// Aliases of the select items that are not bound yet, this one among them; the last is first.
    pub later_aliases: Vec<Arc<str>>,
    /// GROUP BY's expressions, for HAVING.
    pub keys: Vec<Expr>,
    /// ON DUPLICATE KEY UPDATE: `VALUES(column)` is a column of this slot.
    pub values_slot: Option<u16>,
    /// What is deprecated, and what to write instead: warning 1287.
    pub deprecated: Vec<(&'static str, &'static str)>,
    /// How deep in the statement; bounds recursion.
    pub depth: usize,
    /// Only a constant is wanted: subqueries are refused before they are bound. Otherwise the
    /// search for `(SELECT constant)` in nested subqueries binds each level twice, which doubles
    /// the time with each level.
    pub constants_only: bool,
}

impl<'b> BlockBinder<'b> {
    pub fn new(cx: &'b BindCx<'b>, outer: Option<&'b BlockBinder<'b>>) -> Self {
        BlockBinder {
            cx,
            outer,
            scope: Vec::new(),
            tables: Vec::new(),
            hidden: Vec::new(),
            subqueries: Vec::new(),
            aggregates: std::cell::RefCell::default(),
            groupings: Vec::new(),
            grouped: rollup::Grouped::No,
            used: std::cell::RefCell::new(Vec::new()),
            correlated: std::cell::Cell::new(false),
            clause: "field list",
            in_sight_from: 0,
            aggregates_allowed: false,
            in_aggregate: false,
            nested_aggregate: std::cell::Cell::new(None),
            alias_in_aggregate: false,
            windows_allowed: false,
            in_window: false,
            window_spec: None,
            windows: Vec::new(),
            aliases: Vec::new(),
            later_aliases: Vec::new(),
            keys: Vec::new(),
            values_slot: None,
            deprecated: Vec::new(),
            depth: outer.map_or(0, |o| o.depth + 1),
            constants_only: false,
        }
    }

    /// Binds a subquery of this block; returns its index and the types of its columns.
    pub fn subquery(
        &mut self,
        query: &nfold_sql::ast::Query,
        form: SubqueryForm,
    ) -> Result<(u16, Vec<ExprType>), SqlError> {
        if self.constants_only {
            return Err(SqlError::not_supported("a subquery in a constant"));
        }
        let bound = block::bind_subquery(self.cx, query, self, form)?;
        let types = bound.query.types.clone();
        self.subqueries.push(Subquery {
            query: Box::new(bound.query),
            correlated: bound.correlated,
            form,
            operands: Vec::new(),
            decorrelated: None,
        });
        Ok(((self.subqueries.len() - 1) as u16, types))
    }
}
