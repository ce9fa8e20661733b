//! Decorrelation of aggregate subqueries. If inner rows are related to the outer row by equalities
//! only, the inner rows are grouped once by the inner sides of these equalities. Each outer row
//! then looks up its group.
//!
//! ```text
//! (SELECT 0.2 * AVG(b.x) FROM b WHERE b.i = a.id)      {b.i: 0.2 * AVG(b.x)} at a.id
//! ```
//! EXISTS and IN over groups become a set of the groups that pass HAVING: the inner sides of the
//! equalities are added to GROUP BY.
//!
//! ```text
//! EXISTS (SELECT 1 FROM b WHERE b.i = a.id GROUP BY b.k HAVING COUNT(*) > 1)
//!   ─▶  {b.i : b.i, b.k with COUNT(*) > 1} has a.id
//! ```
//!
//! An outer row without a group gets the value of the aggregate over no rows (NULL, or 0 for
//! COUNT). The correlated subquery runs once to compute it.
//!
//! # Invariants
//! G1. Two keys belong to one group exactly if the comparison calls them equal: both sides of an
//!     equality have one type.
//! G2. The value does not depend on the order of the rows.

use super::decorrelate::{Split, is_repeatable, names_outer, nested_is_repeatable};
use crate::logical::clauses::{AggFunc, Aggregate};
use crate::logical::context::PlanCx;
use crate::logical::expr::{Class, CmpKind, Expr, ExprKind};
use crate::logical::query::{
    Block, Decorrelated, Grouping, OuterKey, QueryBody, Subquery, SubqueryForm,
};
use crate::logical::tame::{converts, is_tame};

/// DECIMAL arithmetic with at most this many digits does not overflow.
const SAFE_DECIMAL_DIGITS: u32 = 60;

/// The grouped form of a correlated subquery that is already rewritten; `None` if it has none.
pub(super) fn grouped(cx: &PlanCx<'_>, sub: &mut Subquery) -> Option<Decorrelated> {
    if sub.form != SubqueryForm::Rows || sub.query.limit.is_some() {
        return None;
    }
    let QueryBody::Block(block) = &mut sub.query.body else {
        return None;
    };
    if !is_aggregate(block) || !block.conditions.iter().all(|e| is_repeatable(cx, e)) {
        return None;
    }
    let split = Split::of(&block.conditions).filter(Split::makes_groups)?;
    let group = block.group.as_ref()?;
    let own = || evaluated(block, group, &split);
    let exact = own().all(|e| is_steady(cx, e)) && group.aggregates.iter().all(is_exact);
    let converts = own().any(converts);
    if !exact || !is_safe(&block.select[0]) || !nested_is_repeatable(cx, block) {
        return None;
    }
    Some(Decorrelated {
        grouped: true,
        members: 1,
        ..split.into_groups(converts)
    })
}

/// The decorrelated form of a correlated EXISTS or IN over the groups of GROUP BY; `None` if it has
/// none.
pub(super) fn groups_of_keys(cx: &PlanCx<'_>, sub: &mut Subquery) -> Option<Decorrelated> {
    if sub.form == SubqueryForm::Rows || sub.query.limit.is_some() {
        return None;
    }
    let QueryBody::Block(block) = &mut sub.query.body else {
        return None;
    };
    let explicit = |g: &Grouping| !g.implicit && !g.rollup;
    if !block.group.as_ref().is_some_and(explicit)
        || !aggregates_only(block)
        || !block.conditions.iter().all(|e| is_repeatable(cx, e))
    {
        return None;
    }
    let split = Split::of(&block.conditions).filter(Split::makes_groups)?;
    let group = block.group.as_ref()?;
    let members: &[Expr] = match sub.form {
        SubqueryForm::Membership => &block.select,
        _ => &[],
    };
    let mut converts = false;
    for ((left, kind), member) in sub.operands.iter().zip(members) {
        if !is_exact_member(group, member) || !kind.has_key(left, &member.ty) {
            return None;
        }
        converts |= !left.is_alike(&member.ty);
    }
    let own = || {
        evaluated(block, group, &split)
            .chain(&group.keys)
            .chain(&block.having)
    };
    let exact = own().all(|e| is_steady(cx, e)) && group.aggregates.iter().all(is_exact);
    converts |= own().any(self::converts);
    let members = members.len();
    if !exact || !nested_is_repeatable(cx, block) {
        return None;
    }
    Some(Decorrelated {
        members,
        ..split.into_groups(converts)
    })
}

impl Split {
    /// Whether the outer row is compared with groups of inner rows by nothing but equalities, each
    /// of which distinguishes the same values as a grouping (G1).
    fn makes_groups(&self) -> bool {
        let mut keys = self.keys.iter().zip(&self.inner);
        let alike = keys.all(|(key, own)| {
            !key.null_safe && key.outer.ty.is_alike(&own.ty) && groups_alike(key, own)
        });
        alike && !self.keys.is_empty() && self.tests.is_empty()
    }

    /// The inner rows, grouped by the inner sides of the equalities.
    fn into_groups(self, converts: bool) -> Decorrelated {
        Decorrelated {
            converts,
            select: self.inner,
            conditions: self.rest,
            used: None,
            keys: self.keys,
            outer_conditions: self.outer,
            tests: Vec::new(),
            extreme: None,
            grouped: false,
            members: 0,
        }
    }
}

/// The expressions that the groups evaluate for each row of the block, besides its GROUP BY.
fn evaluated<'b>(
    block: &'b Block,
    group: &'b Grouping,
    split: &'b Split,
) -> impl Iterator<Item = &'b Expr> {
    let args = group.aggregates.iter().flat_map(|a| &a.args);
    let joined = block.outer_joins.iter().flat_map(|join| &join.on);
    split
        .inner
        .iter()
        .chain(&split.rest)
        .chain(args)
        .chain(joined)
}

/// Whether an expression has the same value, without an error, whenever it is evaluated for a row.
fn is_steady(cx: &PlanCx<'_>, e: &Expr) -> bool {
    is_tame(cx, e) && !names_outer(e) && is_repeatable(cx, e)
}

/// Whether a select item of a grouped block is a value that a temporary table stores unchanged.
fn is_exact_member(group: &Grouping, e: &Expr) -> bool {
    e.as_column()
        .is_some_and(|at| usize::from(at.column) < group.keys.len() || e.ty.class() == Class::Int)
}

/// Whether the block aggregates all rows into one, and returns one value.
fn is_aggregate(block: &Block) -> bool {
    let all = block
        .group
        .as_ref()
        .is_some_and(|g| g.implicit && !g.rollup);
    all && block.select.len() == 1 && block.having.is_empty() && aggregates_only(block)
}

/// Whether the rows of a grouped block are its groups.
fn aggregates_only(block: &Block) -> bool {
    block.windows.is_empty()
        && !block.lock.is_some()
        && block.tables.iter().all(|t| t.lateral == 0)
        && !block.distinct
        && !block.calc_found_rows
        && block.warnings.is_empty()
        && block.subqueries.is_empty()
        && !block.tables.is_empty()
        && !block.pads_char
}

/// Whether grouping by the inner side distinguishes the same values as the comparison (G1).
fn groups_alike(key: &OuterKey, own: &Expr) -> bool {
    match (key.kind, own.ty.class()) {
        (CmpKind::Int, Class::Int) | (CmpKind::Decimal, Class::Decimal) => true,
        (CmpKind::String(collation), Class::String) => own.ty.collation() == collation,
        (CmpKind::DateTime, Class::Date | Class::DateTime) => true,
        _ => false,
    }
}

/// Whether the aggregate's value does not depend on the order of the rows (G2).
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

/// Whether an expression over aggregates never fails.
fn is_safe(e: &Expr) -> bool {
    !e.any(&mut |e| match &e.kind {
        ExprKind::Const(_) | ExprKind::Param(_) | ExprKind::Column(_) => false,
        ExprKind::Arith(..) | ExprKind::Neg(_) => {
            e.ty.class() != Class::Decimal || e.ty.decimal_shape().0 > SAFE_DECIMAL_DIGITS
        }
        _ => true,
    })
}
