//! Decorrelation of a scalar subquery that is an aggregate: where inner rows meet the outer row by
//! equalities alone, the rows without them are grouped by the inner sides once, and each outer row
//! looks up its group.
//!
//! ```text
//! (SELECT 0.2 * AVG(b.x) FROM b WHERE b.i = a.id)      {b.i: 0.2 * AVG(b.x)} at a.id
//! ```
//! An outer row without a group gets the value of no rows (NULL, or 0 of COUNT), for which the
//! correlated subquery runs once.
//!
//! # Invariants
//! G1. Two keys are of one group exactly when the comparison calls them equal: both sides of an
//!     equality are of one type.
//! G2. The value does not depend on the order of the rows.

use super::decorrelate::{Split, is_computed_once, names_outer, nested_is_steady};
use crate::logical::clauses::{AggFunc, Aggregate};
use crate::logical::context::PlanCx;
use crate::logical::expr::{Class, CmpKind, Expr, ExprKind};
use crate::logical::query::{Block, Decorrelated, OuterKey, QueryBody, Subquery, SubqueryForm};
use crate::logical::tame::{converts, is_tame};

/// DECIMAL arithmetic of at most this many digits does not overflow.
const SAFE_DECIMAL_DIGITS: u32 = 60;

/// The grouped form of a rewritten correlated subquery, if it has one.
pub(super) fn grouped(cx: &PlanCx<'_>, sub: &mut Subquery) -> Option<Decorrelated> {
    if sub.form != SubqueryForm::Rows || sub.query.limit.is_some() {
        return None;
    }
    let QueryBody::Block(block) = &mut sub.query.body else {
        return None;
    };
    if !is_aggregate(block) || !block.conditions.iter().all(|e| is_computed_once(cx, e)) {
        return None;
    }
    let split = Split::of(&block.conditions)?;
    let alike = split.keys.iter().zip(&split.inner).all(|(key, own)| {
        !key.null_safe && key.outer.ty.is_alike(&own.ty) && groups_alike(key, own)
    });
    if split.keys.is_empty() || !alike || !nested_is_steady(cx, block) {
        return None;
    }
    let group = block.group.as_ref()?;
    let steady = |e: &Expr| is_tame(cx, e) && !names_outer(e) && is_computed_once(cx, e);
    let joined = || block.outer_joins.iter().flat_map(|join| &join.on);
    let args = || group.aggregates.iter().flat_map(|a| &a.args);
    let own = || {
        split
            .inner
            .iter()
            .chain(&split.rest)
            .chain(args())
            .chain(joined())
    };
    if !own().all(steady) || !group.aggregates.iter().all(is_exact) || !is_safe(&block.select[0]) {
        return None;
    }
    Some(Decorrelated {
        converts: own().any(converts),
        select: split.inner,
        conditions: split.rest,
        used: None,
        keys: split.keys,
        outer_conditions: split.outer,
        grouped: true,
    })
}

/// Whether the block is one aggregation of all rows, and its result one value.
fn is_aggregate(block: &Block) -> bool {
    let all = block
        .group
        .as_ref()
        .is_some_and(|g| g.implicit && !g.rollup);
    all && block.select.len() == 1
        && block.having.is_empty()
        && block.windows.is_empty()
        && block.lock.strength.is_none()
        && !block.distinct
        && !block.calc_found_rows
        && block.deprecated.is_empty()
        && block.subqueries.is_empty()
        && !block.tables.is_empty()
        && !block.pads_char
}

/// Whether groups of the inner side are those that the comparison tells apart (G1).
fn groups_alike(key: &OuterKey, own: &Expr) -> bool {
    match (key.kind, own.ty.class()) {
        (CmpKind::Int, Class::Int) | (CmpKind::Decimal, Class::Decimal) => true,
        (CmpKind::String(collation), Class::String) => own.ty.collation() == collation,
        (CmpKind::DateTime, Class::Date | Class::DateTime) => true,
        _ => false,
    }
}

/// Whether rows in another order give the same value (G2).
fn is_exact(aggregate: &Aggregate) -> bool {
    let exact = |e: &Expr| matches!(e.ty.class(), Class::Int | Class::Decimal);
    match aggregate.func {
        AggFunc::CountStar | AggFunc::Count => true,
        AggFunc::Sum | AggFunc::Avg => aggregate.args.iter().all(exact),
        AggFunc::Min | AggFunc::Max => {
            let class =
                |e: &Expr| exact(e) || matches!(e.ty.class(), Class::Date | Class::DateTime);
            aggregate.args.iter().all(class)
        }
        _ => false,
    }
}

/// Whether it is computed from aggregates without an error.
fn is_safe(e: &Expr) -> bool {
    !e.any(&mut |e| match &e.kind {
        ExprKind::Const(_) | ExprKind::Param(_) | ExprKind::Column(_) => false,
        ExprKind::Arith(..) | ExprKind::Neg(_) => {
            e.ty.class() != Class::Decimal || e.ty.decimal_shape().0 > SAFE_DECIMAL_DIGITS
        }
        _ => true,
    })
}
