//! Turns the logical tree into a plan: chooses access paths and join orders, block by block, nested
//! queries first.

mod candidate;
mod condition;
mod constants;
mod context;
mod dml;
mod early_builds;
mod equalities;
mod first_conditions;
mod group_values;
mod histogram;
mod index_merge;
mod joins;
mod joint;
mod order;
mod outer;
mod relation;
mod search;
mod skip_scan;
mod subquery;
mod trace;
mod truth_values;

#[cfg(test)]
mod tests;

use nfold_sql::ast::BinaryOp;
use nfold_types::SqlError;

use crate::logical::clauses::ColumnMeta;
use crate::logical::context::PlanCx;
use crate::logical::describe::{Description, Groups, StoredRows};
use crate::logical::expr::{Expr, ExprKind};
use crate::logical::query as logical;
use crate::logical::statement::{Insert, InsertRows, Statement};
use crate::physical::foreign::{Changed, ForeignKeys};
use crate::physical::{
    Block, GroupPlan, InsertPlan, InsertSource, Plan, QueryBody, QueryPlan, Recursion, TableSlot,
    TableSource,
};
use context::OptimizeCx;
use joins::JoinGraph;

/// Plans a rewritten statement.
///
/// # Errors
/// 1175 if `sql_safe_updates` is set and no key finds the rows to change.
pub(crate) fn optimize(plan: &PlanCx<'_>, statement: Statement) -> Result<Plan, SqlError> {
    let cx = &OptimizeCx::new(plan);
    Ok(match statement {
        Statement::Query(q) => Plan::Query(query(cx, q)),
        Statement::Insert(i) => Plan::Insert(Box::new(insert(cx, *i))),
        Statement::Update(u) => dml::update(cx, *u)?,
        Statement::Delete(d) => dml::delete(cx, *d)?,
        Statement::UpdateTables(u) => dml::update_tables(cx, *u)?,
        Statement::DeleteTables(d) => dml::delete_tables(cx, *d)?,
        Statement::Do(exprs, list) => Plan::Do(exprs, subquery::plan_all(cx, list)),
    })
}

fn insert(cx: &OptimizeCx<'_>, i: Insert) -> InsertPlan {
    let changed = match i.replace || !i.on_duplicate.is_empty() {
        true => Changed::Replaced,
        false => Changed::Inserted,
    };
    InsertPlan {
        foreign: ForeignKeys::of(cx.foreign(), &[(&i.table, changed)]),
        table: i.table,
        columns: i.columns,
        source: match i.source {
            InsertRows::Rows(rows) => InsertSource::Rows(rows),
            InsertRows::Param(list) => InsertSource::Param(list),
            InsertRows::Query(q) => InsertSource::Query(query(cx, q)),
            InsertRows::File(file) => InsertSource::File(file),
        },
        ignore: i.ignore,
        replace: i.replace,
        on_duplicate: i.on_duplicate,
        subqueries: subquery::plan_all(cx, i.subqueries),
        constant_checks: Vec::new(),
        view: i.view,
        exprs: None,
    }
}

/// What a query is planned for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum QueryUse {
    /// Its rows are the result of the statement.
    Result,
    /// Its rows are read by an enclosing query, which is planned by their estimated number.
    Nested,
    /// Its first row is enough.
    FirstRow,
}

impl QueryUse {
    /// What the operands of a set operation are planned for.
    fn of_operands(self) -> QueryUse {
        match self {
            QueryUse::Result => QueryUse::Result,
            QueryUse::Nested | QueryUse::FirstRow => QueryUse::Nested,
        }
    }
}

/// Plans a query that is the result of a statement.
fn query(cx: &OptimizeCx<'_>, q: logical::Query) -> QueryPlan {
    query_for(cx, q, QueryUse::Result)
}

/// Plans a query whose rows an enclosing query reads.
fn nested_query(cx: &OptimizeCx<'_>, q: logical::Query) -> QueryPlan {
    query_for(cx, q, QueryUse::Nested)
}

/// Plans a query.
fn query_for(cx: &OptimizeCx<'_>, q: logical::Query, purpose: QueryUse) -> QueryPlan {
    let mut columns = q.columns;
    let mut types = q.types;
    let mut empty_columns = None;
    let body = match q.body {
        logical::QueryBody::Block(b) => {
            let limited = q.limit.is_some() && b.windows.is_empty();
            let (mut block, mut graph) = open(cx, *b, limited);
            graph.first_row = purpose == QueryUse::FirstRow;
            graph.nested = purpose == QueryUse::Nested;
            let never = graph.conditions.iter().any(is_never);
            joins::join_tables(cx, &mut block, graph);
            if let Some(description) = q.description {
                let limit = q.limit.is_some();
                empty_columns = describe(&description, &mut columns, &mut block, [never, limit]);
                types = block.select.iter().map(|e| e.ty.clone()).collect();
            }
            QueryBody::Block(Box::new(block))
        }
        logical::QueryBody::Set {
            op,
            distinct,
            left,
            right,
            chained,
        } => QueryBody::Set {
            op,
            distinct,
            left: Box::new(query_for(cx, *left, purpose.of_operands())),
            right: Box::new(query_for(cx, *right, purpose.of_operands())),
            chained,
        },
        logical::QueryBody::Rows(rows) => QueryBody::Rows(rows),
        logical::QueryBody::Recursive(r) => QueryBody::Recursive(Box::new(Recursion {
            number: r.number,
            seed: query(cx, r.seed),
            steps: r.steps.into_iter().map(|q| query(cx, q)).collect(),
            distinct: r.distinct,
            columns: r.columns,
        })),
        logical::QueryBody::Working(number) => QueryBody::Working(number),
    };
    QueryPlan {
        body,
        columns,
        types,
        order: q.order,
        limit: q.limit,
        empty_columns,
    }
}

/// Describes the result columns of a block. Returns their description for the case that MySQL finds
/// out before it reads rows that the result is empty, if that differs. `never`: a condition is
/// never true; `limited`: the block has a LIMIT.
fn describe(
    description: &Description,
    columns: &mut Vec<ColumnMeta>,
    block: &mut Block,
    [never, limited]: [bool; 2],
) -> Option<Box<[ColumnMeta]>> {
    let of_block = groups(block);
    let rolled_up = of_block.is_some_and(|g| g.rollup);
    let stored = StoredRows {
        rolled_up: block.keeps_rows(),
        twice: block.keeps_rolled_up_rows_twice(),
        sorted: block.keeps_sorted_rows(),
    };
    let unstored = StoredRows {
        rolled_up: false,
        twice: false,
        sorted: false,
    };
    let tables = !block.joins.is_empty();
    let constant = tables && block.joins.iter().all(|step| block.is_const_table(step));
    if !rolled_up && (never || constant) {
        let none = description.unstored();
        none.apply(columns, &mut block.select, None, unstored);
        return None;
    }
    let decided = limited || !block.constant_filter.is_empty() || !block.constant_having.is_empty();
    let empty = (!rolled_up && tables && decided).then(|| {
        let (mut empty, mut select) = (columns.clone(), block.select.clone());
        let none = description.unstored();
        none.apply(&mut empty, &mut select, None, unstored);
        empty
    });
    description.apply(columns, &mut block.select, of_block, stored);
    empty.filter(|empty| empty != columns).map(Vec::into)
}

/// Whether a condition compares a column with itself so that it is never true.
fn is_never(e: &Expr) -> bool {
    match &e.kind {
        ExprKind::Compare { op, sides, .. } => {
            let [a, b] = &**sides;
            let differs = matches!(op, BinaryOp::Ne | BinaryOp::Lt | BinaryOp::Gt);
            differs && a.as_column().is_some() && a.as_column() == b.as_column()
        }
        _ => false,
    }
}

fn groups(block: &Block) -> Option<Groups> {
    block.group.as_ref().map(|g| Groups {
        implicit: g.implicit,
        rollup: g.rollup,
        key_count: g.keys.len(),
        ordered: g.ordered || !g.implicit && order::an_index_groups(block),
    })
}

/// Plans a block. `limited`: LIMIT may end it early.
fn block(cx: &OptimizeCx<'_>, b: logical::Block, limited: bool) -> Block {
    let (mut block, graph) = open(cx, b, limited);
    joins::join_tables(cx, &mut block, graph);
    block
}

/// Plans the nested queries of a block and takes over its clauses. Its tables are not joined yet.
fn open(cx: &OptimizeCx<'_>, b: logical::Block, limited: bool) -> (Block, JoinGraph) {
    let mut hints = Vec::with_capacity(b.tables.len());
    let mut tables = Vec::with_capacity(b.tables.len());
    for table in b.tables {
        hints.push(table.hints);
        tables.push(TableSlot {
            source: match table.source {
                logical::Source::Table(def) => TableSource::Table(def),
                logical::Source::Virtual(def) => TableSource::Virtual(def),
                logical::Source::Json(table) => TableSource::Json(table),
                logical::Source::Derived(q) => {
                    let plan = match table.shared {
                        Some(number) => cx.shared_plan(number, *q, nested_query),
                        None => nested_query(cx, *q),
                    };
                    TableSource::Derived(Box::new(plan))
                }
            },
            alias: table.alias,
            used: table.used,
            documents: table.documents,
            merged: table.merged,
            nullable: table.nullable,
            lateral: table.lateral,
            shared: table.shared,
        });
    }
    let block = Block {
        tables,
        joins: Vec::new(),
        constant_filter: Vec::new(),
        constant_having: Vec::new(),
        group: b.group.map(|g| GroupPlan {
            keys: g.keys,
            aggregates: g.aggregates,
            ordered: false,
            implicit: g.implicit,
            rollup: g.rollup,
            first_row_only: false,
        }),
        having: b.having,
        windows: b.windows,
        select: b.select,
        distinct: b.distinct,
        order: b.order,
        ordered: false,
        subqueries: subquery::plan_all(cx, b.subqueries),
        lock: b.lock,
        changed: b.changed,
        row_by_row: false,
        calc_found_rows: b.calc_found_rows,
        warnings: b.warnings,
        constant_checks: Vec::new(),
        cost: 0.0,
        rows: None,
    };
    let graph = JoinGraph {
        conditions: b.conditions,
        outer_joins: b.outer_joins,
        hints,
        straight: b.straight,
        straight_joins: b.straight_joins,
        limited,
        first_row: false,
        nested: false,
    };
    (block, graph)
}
