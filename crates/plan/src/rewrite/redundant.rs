//! Clauses of a subquery that have no effect on its use. MySQL removes the same ones.
//!
//! - ORDER BY, unless LIMIT chooses rows by it.
//! - GROUP BY without aggregates, HAVING, WITH ROLLUP and window functions, in EXISTS, IN, ANY and
//!   ALL: such a subquery needs no distinct rows.
//!
//! The binder has removed DISTINCT already ([`SubqueryForm::needs_distinct`]).

use super::decorrelate::is_repeatable;
use crate::logical::clauses::AggFunc;
use crate::logical::context::PlanCx;
use crate::logical::expr::Expr;
use crate::logical::query::{Block, Grouping, QueryBody, Subquery, SubqueryForm};

/// Removes the redundant clauses of a subquery that is not rewritten yet.
pub(super) fn remove_clauses(cx: &PlanCx<'_>, sub: &mut Subquery) {
    let QueryBody::Block(block) = &mut sub.query.body else {
        return;
    };
    if sub.query.limit.is_some() {
        return;
    }
    if block.order.iter().all(|key| is_repeatable(cx, &key.expr)) {
        block.order.clear();
    }
    if sub.form != SubqueryForm::Rows {
        remove_grouping(block);
    }
}

fn remove_grouping(block: &mut Block) {
    let Some(group) = block.group.as_ref().filter(|group| is_redundant(group)) else {
        return;
    };
    let blocked = !block.having.is_empty()
        || !block.windows.is_empty()
        || !block.order.is_empty()
        || block.distinct
        || block.subqueries.iter().any(|sub| sub.correlated);
    if blocked {
        return;
    }
    let select = block.select.iter().map(|e| ungrouped(group, e));
    if let Some(select) = select.collect() {
        block.select = select;
        block.group = None;
    }
}

/// Whether a grouping only makes rows distinct.
fn is_redundant(group: &Grouping) -> bool {
    !group.implicit && !group.rollup && !group.has_aggregates()
}

/// Rewrites an expression over the grouped row into one over the joined row. `None` if its type
/// would change.
fn ungrouped(group: &Grouping, e: &Expr) -> Option<Expr> {
    let mut same = true;
    let mut e = e.clone();
    replace(group, &mut e, &mut same);
    same.then_some(e)
}

fn replace(group: &Grouping, e: &mut Expr, same: &mut bool) {
    let Some(at) = e.as_column() else {
        return e.each_child_mut(&mut |child| replace(group, child, same));
    };
    let column = usize::from(at.column);
    let source = match group.keys.get(column) {
        Some(key) => Some(key),
        None => group
            .aggregates
            .get(column - group.keys.len())
            .and_then(|any| {
                debug_assert!(any.func == AggFunc::Any);
                any.args.first()
            }),
    };
    match source {
        Some(source) if source.ty == e.ty => *e = source.clone(),
        _ => *same = false,
    }
}
