//! Turns outer joins into inner joins if WHERE, or ON of an enclosing join, rejects each row in
//! which the inner side is NULL (Galindo-Legaria and Rosenthal, "Outerjoin simplification and
//! reordering").

use nfold_sql::ast::{BinaryOp, IsTest};

use crate::logical::expr::{Expr, ExprKind};
use crate::logical::query::{Block, OuterJoin};

/// Turns the outer joins of `block` whose NULL-extended rows are rejected into inner joins.
pub(super) fn make_inner(block: &mut Block) {
    if block.outer_joins.is_empty() {
        return;
    }
    let joins = &mut block.outer_joins;
    while let Some(n) = (0..joins.len()).find(|&n| is_rejected(joins, n, &block.conditions)) {
        let join = joins.remove(n);
        let around = joins[n..].iter_mut().find(|j| j.inner & join.inner != 0);
        match around {
            Some(around) => around.on.extend(join.on),
            None => block.conditions.extend(join.on),
        }
    }
    let nullable = joins.iter().fold(0, |set, join| set | join.inner);
    for (t, table) in block.tables.iter_mut().enumerate() {
        table.nullable &= nullable >> t & 1 == 1;
    }
}

/// Whether a condition of WHERE, or of a join around join `n`, rejects each row in which the inner
/// side of join `n` is NULL.
fn is_rejected(joins: &[OuterJoin], n: usize, conditions: &[Expr]) -> bool {
    let inner = joins[n].inner;
    let around = joins[n + 1..].iter().filter(|j| j.inner & inner != 0);
    let mut conditions = conditions.iter().chain(around.flat_map(|j| &j.on));
    conditions.any(|c| rejects(c, inner))
}

/// Whether `c` rejects a row in which all columns of `slots` are NULL.
fn rejects(c: &Expr, slots: u64) -> bool {
    let own = |e: &Expr| {
        e.as_column()
            .is_some_and(|at| at.table < 64 && slots >> at.table & 1 == 1)
    };
    match &c.kind {
        ExprKind::Compare { op, sides, .. } => *op != BinaryOp::NullSafeEq && sides.iter().any(own),
        ExprKind::Between {
            parts,
            negated: false,
            ..
        } => own(&parts[0]),
        ExprKind::In { expr, .. } => own(expr),
        ExprKind::InParam { left, .. } => left.len() == 1 && own(&left[0]),
        ExprKind::Like { expr, .. } => own(expr),
        ExprKind::Is {
            expr,
            test: IsTest::Null,
            negated: true,
        } => own(expr),
        ExprKind::And(list) => list.iter().any(|e| rejects(e, slots)),
        ExprKind::Or(list) => list.iter().all(|e| rejects(e, slots)),
        _ => false,
    }
}
