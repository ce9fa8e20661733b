//! DISTINCT as a grouping by the whole row. Groups spill to disk if there are many, and an index
//! may return them in order. With LIMIT and without an order, DISTINCT remains: few rows are
//! needed, and they are compared as they arrive.

use crate::logical::clauses::{AggFunc, Aggregate};
use crate::logical::describe::{is_computed_member, keep};
use crate::logical::expr::{ColumnAt, Expr, ExprKind};
use crate::logical::query::{Block, Grouping};

/// Replaces DISTINCT of `block` by a grouping.
pub(super) fn group_whole_row(block: &mut Block, limited: bool) {
    let streams = limited && block.order.is_empty();
    if !block.distinct
        || streams
        || block.group.is_some()
        || !block.windows.is_empty()
        || block.tables.is_empty()
        || block.subqueries.iter().any(|q| q.correlated)
    {
        return;
    }
    let mut keys: Vec<Expr> = Vec::new();
    for e in &block.select {
        if !keys.iter().any(|k| k.kind == e.kind) {
            keys.push(e.clone());
        }
    }
    let mut group = Grouping {
        keys,
        aggregates: Vec::new(),
        implicit: false,
        rollup: false,
    };
    let order = block.order.iter_mut().map(|k| &mut k.expr);
    let exprs = block.select.iter_mut().chain(&mut block.having);
    exprs.chain(order).for_each(|e| over_groups(&mut group, e));
    let members = group.keys.iter_mut().filter(|k| is_computed_member(k));
    members.for_each(keep);
    block.group = Some(group);
    block.distinct = false;
}

/// Rewrites an expression over the joined row into one over the grouped row.
fn over_groups(group: &mut Grouping, e: &mut Expr) {
    let is_key = |k: &Expr| k.kind == e.kind || is_text_of(k, e);
    let position = match group.keys.iter().position(is_key) {
        Some(key) => {
            if is_computed_member(e) {
                e.ty = e.ty.kept();
            }
            key
        }
        None if e.as_column().is_some() => group.keys.len() + any_value(group, e),
        None => return e.each_child_mut(&mut |child| over_groups(group, child)),
    };
    e.kind = ExprKind::Column(ColumnAt {
        table: 0,
        column: position as u16,
    });
}

/// Whether grouping key `key` is the text of the ENUM or SET member `e`.
fn is_text_of(key: &Expr, e: &Expr) -> bool {
    matches!(
        &key.kind,
        ExprKind::Cast { expr: member, .. } if is_computed_member(member) && member.kind == e.kind
    )
}

/// Adds an aggregate that returns the column's value in any row of the group, for a column that is
/// sorted by but not selected. Returns the aggregate's index.
fn any_value(group: &mut Grouping, column: &Expr) -> usize {
    let any = Aggregate {
        func: AggFunc::Any,
        args: vec![column.clone()],
        distinct: false,
        order: Vec::new(),
        separator: Vec::new(),
        ty: column.ty.clone(),
    };
    let known = group.aggregates.iter().position(|a| *a == any);
    known.unwrap_or_else(|| {
        group.aggregates.push(any);
        group.aggregates.len() - 1
    })
}
