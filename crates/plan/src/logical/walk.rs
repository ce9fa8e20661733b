//! Visits every expression of a logical query, including those in its derived tables and
//! subqueries.

use super::clauses::LimitPlan;
use super::expr::{ColumnAt, Expr, ExprKind};
use super::query::{Block, Query, QueryBody, Source};
use super::types::ExprType;

/// A visitor of columns of an enclosing query, which may change their position and type.
pub(crate) type OuterColumn<'f, E> = dyn FnMut(&mut ColumnAt, &mut ExprType) -> Result<(), E> + 'f;

/// Calls `f` with each column in `query` that belongs to the query `level` further out (1: the next
/// one).
///
/// # Errors
/// The first error of `f`.
pub(crate) fn outer_columns<E>(
    query: &mut Query,
    level: u16,
    f: &mut OuterColumn<'_, E>,
) -> Result<(), E> {
    let mut result = Ok(());
    each_expr(query, level, &mut |e, level| {
        if result.is_ok()
            && let ExprKind::Outer { level: l, at } = &mut e.kind
            && *l == level
        {
            result = f(at, &mut e.ty);
        }
    });
    result
}

/// A visitor of expression nodes. Its second argument is the level of the outer query of the walk,
/// as seen from the node.
type Visit<'f> = dyn FnMut(&mut Expr, u16) + 'f;

/// Calls `f` with each expression node of `query`. `level` is the distance of the outer query from
/// `query`, and grows by one in each subquery.
pub(crate) fn each_expr(query: &mut Query, level: u16, f: &mut Visit<'_>) {
    match &mut query.body {
        QueryBody::Block(b) => each_of_block(b, level, f),
        QueryBody::Set { left, right, .. } => {
            each_expr(left, level, f);
            each_expr(right, level, f);
        }
        QueryBody::Recursive(r) => r.queries_mut().for_each(|q| each_expr(q, level, f)),
        QueryBody::Working(_) => {}
        QueryBody::Rows(rows) => each_of_list(rows.iter_mut().flatten(), level, f),
    }
    if let Some(LimitPlan { offset, count }) = &mut query.limit {
        each_of_list(offset.iter_mut().chain([count]), level, f);
    }
}

fn each_of_block(b: &mut Block, level: u16, f: &mut Visit<'_>) {
    each_of_nested(b, level, f);
    each_of_clauses(b, level, f);
}

/// The same for the clauses of one block, without its derived tables and subqueries.
pub(crate) fn each_of_clauses(b: &mut Block, level: u16, f: &mut Visit<'_>) {
    b.each_condition_mut(&mut |e| each_node(e, level, f));
    if let Some(group) = &mut b.group {
        each_of_list(&mut group.keys, level, f);
        for a in &mut group.aggregates {
            let order = a.order.iter_mut().map(|o| &mut o.expr);
            each_of_list(a.args.iter_mut().chain(order), level, f);
        }
    }
    for pass in &mut b.windows {
        pass.each_expr_mut(&mut |e| each_node(e, level, f));
    }
    let order = b.order.iter_mut().map(|o| &mut o.expr);
    let rows = b.having.iter_mut().chain(&mut b.select).chain(order);
    each_of_list(rows, level, f);
}

/// The same for the derived tables and subqueries of one block.
pub(crate) fn each_of_nested(b: &mut Block, level: u16, f: &mut Visit<'_>) {
    for table in &mut b.tables {
        // A derived table sees the same enclosing queries as the block that reads it; a LATERAL
        // one sees the block's other tables, too.
        let inner = level + u16::from(table.lateral != 0);
        if let Source::Derived(q) = &mut table.source {
            each_expr(q, inner, f);
        }
    }
    for sub in &mut b.subqueries {
        each_expr(&mut sub.query, level + 1, f);
    }
}

fn each_of_list<'e>(list: impl IntoIterator<Item = &'e mut Expr>, level: u16, f: &mut Visit<'_>) {
    list.into_iter().for_each(|e| each_node(e, level, f));
}

fn each_node(e: &mut Expr, level: u16, f: &mut Visit<'_>) {
    f(e, level);
    e.each_child_mut(&mut |child| each_node(child, level, f));
}
