//! Walks over all expressions of a plan that is made already: a query that groups its rows gives new places to the columns that its
//! subqueries name.

use std::sync::Arc;

use crate::logical::expr::{ColumnAt, Expr, ExprKind, ExprType};
use crate::query::{Access, AccessKind, Block, LimitPlan, PointPart, QueryBody, QueryPlan};

/// What is done with a column of the enclosing query: its type and its place there, which may be changed.
pub(crate) type OuterColumn<'f, E> = dyn FnMut(&mut ColumnAt, &mut ExprType) -> Result<(), E> + 'f;

/// Calls `f` on each column that `query` names of the query `level` further out (1: the next one).
///
/// # Errors
/// The first one of `f`.
pub(crate) fn outer_columns<E>(
    query: &mut QueryPlan,
    level: u16,
    f: &mut OuterColumn<'_, E>,
) -> Result<(), E> {
    let mut result = Ok(());
    walk_query(query, level, &mut |e, level| {
        if result.is_ok()
            && let ExprKind::Outer { level: l, at } = &mut e.kind
            && *l == level
        {
            result = f(at, &mut e.ty);
        }
    });
    result
}

/// Calls `f` on each expression of `query`, its subqueries included.
pub(crate) fn all(query: &mut QueryPlan, f: &mut dyn FnMut(&Expr)) {
    walk_query(query, 1, &mut |e, _| f(e));
}

/// Calls `f` with each node of a block, those of its subqueries and derived tables included, and how far out from it the query is that is
/// `level` further out than the block.
pub(crate) fn each_expr(block: &mut Block, level: u16, f: &mut dyn FnMut(&mut Expr, u16)) {
    walk_block(block, level, f);
}

/// Takes each node, and how far out the query is that is meant.
type Visit<'f> = dyn FnMut(&mut Expr, u16) + 'f;

fn walk_query(query: &mut QueryPlan, level: u16, f: &mut Visit<'_>) {
    match &mut query.body {
        QueryBody::Block(b) => walk_block(b, level, f),
        QueryBody::Set { left, right, .. } => {
            walk_query(left, level, f);
            walk_query(right, level, f);
        }
        QueryBody::Recursive(r) => {
            r.queries_mut().for_each(|q| walk_query(q, level, f));
        }
        QueryBody::Working(_) => {}
        QueryBody::Rows(rows) => walk_list(rows.iter_mut().flatten(), level, f),
    }
    if let Some(LimitPlan { offset, count }) = &mut query.limit {
        walk_list(offset.iter_mut().chain([count]), level, f);
    }
}

fn walk_block(b: &mut Block, level: u16, f: &mut Visit<'_>) {
    for slot in &mut b.tables {
        // A derived table sees what the block that reads it sees outside of itself.
        if let crate::query::TableSource::Derived(q) = &mut slot.source {
            walk_query(q, level, f);
        }
    }
    for step in &mut b.joins {
        walk_access(&mut step.access, level, f);
        walk_list(step.on.iter_mut().chain(&mut step.filter), level, f);
        let ends = step.nest.iter_mut().flat_map(|nest| &mut nest.ends);
        walk_list(ends.flat_map(|end| &mut end.on), level, f);
    }
    walk_list(&mut b.constant_filter, level, f);
    if let Some(group) = &mut b.group {
        walk_list(&mut group.keys, level, f);
        for a in &mut group.aggregates {
            let order = a.order.iter_mut().map(|o| &mut o.expr);
            walk_list(a.args.iter_mut().chain(order), level, f);
        }
    }
    for pass in &mut b.windows {
        pass.each_expr_mut(&mut |e| walk_expr(e, level, f));
    }
    let order = b.order.iter_mut().map(|o| &mut o.expr);
    walk_list(
        b.having.iter_mut().chain(&mut b.select).chain(order),
        level,
        f,
    );
    for sub in &mut b.subqueries {
        walk_query(&mut sub.plan, level + 1, f);
        if let Some(keyed) = &mut sub.keyed {
            walk_query(&mut keyed.plan, level + 1, f);
            let outer = keyed.keys.iter_mut().map(|k| &mut k.outer);
            walk_list(outer.chain(&mut keyed.conditions), level, f);
        }
    }
}

fn walk_access(a: &mut Access, level: u16, f: &mut Visit<'_>) {
    walk_list(&mut a.implied, level, f);
    match &mut a.kind {
        AccessKind::Full | AccessKind::Source | AccessKind::Empty => {}
        AccessKind::Points(parts) => walk_points(parts, level, f),
        AccessKind::Range { prefix, range } => {
            walk_points(prefix, level, f);
            walk_range(range, level, f);
        }
        AccessKind::Ranges(ranges) => ranges.iter_mut().for_each(|r| walk_range(r, level, f)),
        AccessKind::Hash { build, keys } => {
            walk_access(build, level, f);
            walk_list(
                keys.iter_mut().flat_map(|k| [&mut k.inner, &mut k.outer]),
                level,
                f,
            );
        }
    }
}

fn walk_range(r: &mut crate::query::RangePart, level: u16, f: &mut Visit<'_>) {
    let bounds = r.lo.iter_mut().chain(&mut r.hi).map(|(e, _)| e);
    walk_list(bounds, level, f);
    if let Some((pattern, escape)) = &mut r.like {
        walk_list([pattern].into_iter().chain(escape), level, f);
    }
}

fn walk_points(parts: &mut [PointPart], level: u16, f: &mut Visit<'_>) {
    for part in parts {
        match part {
            PointPart::Eq { expr, .. } => walk_expr(expr, level, f),
            PointPart::In(list) | PointPart::AnyEq(list) => walk_list(list, level, f),
            PointPart::List { .. } | PointPart::Subquery { .. } => {}
            PointPart::Rows { rows, .. } => {
                walk_list(Arc::make_mut(rows).iter_mut().flatten(), level, f);
            }
        }
    }
}

fn walk_list<'e>(list: impl IntoIterator<Item = &'e mut Expr>, level: u16, f: &mut Visit<'_>) {
    list.into_iter().for_each(|e| walk_expr(e, level, f));
}

fn walk_expr(e: &mut Expr, level: u16, f: &mut Visit<'_>) {
    f(e, level);
    e.each_child_mut(&mut |child| walk_expr(child, level, f));
}
