//! Correlated ANY and ALL in WHERE become EXISTS, which a join or a set can answer.
//!
//! ```text
//! a.x > ANY (SELECT b.y FROM b WHERE b.i = a.id)
//!     becomes EXISTS (SELECT b.y FROM b WHERE b.i = a.id AND a.x > b.y)
//! a.x > ALL (SELECT b.y FROM b WHERE b.i = a.id)
//!     becomes NOT EXISTS (.. AND (a.x > b.y) IS NOT TRUE)
//! ```
//!
//! # Invariants
//! - Q1: only a whole condition of WHERE is rewritten. It rejects a row if it is false or unknown,
//!   so EXISTS, which is never unknown, may take its place.
//! - Q2: the comparison has no visible effect, because it may be evaluated for more rows.

use nfold_sql::ast::{BinaryOp, IsTest};

use super::decorrelate::{is_plain, is_repeatable};
use super::semi_joins::{may_be_null, uses};
use crate::logical::context::PlanCx;
use crate::logical::expr::{CmpKind, Expr, ExprKind, ExprType, SubqueryUse};
use crate::logical::query::{Block, QueryBody, Subquery, SubqueryForm};
use crate::logical::tame::{converts, is_tame_but_for_range};

/// Rewrites the conditions of `block`, before its subqueries are rewritten.
pub(super) fn make_exists(cx: &PlanCx<'_>, block: &mut Block) {
    let quantified = |e: &Expr| {
        let ExprKind::Subquery { use_as, .. } = &e.kind else {
            return false;
        };
        matches!(use_as, SubqueryUse::Quantified { .. })
    };
    if !block.conditions.iter().any(quantified) {
        return;
    }
    let uses = uses(block);
    let mut conditions = std::mem::take(&mut block.conditions);
    for condition in &mut conditions {
        let ExprKind::Subquery {
            index,
            use_as:
                SubqueryUse::Quantified {
                    left,
                    op,
                    kind,
                    all,
                },
        } = &condition.kind
        else {
            continue;
        };
        let n = usize::from(*index);
        let comparison = Comparison {
            left,
            nullable: may_be_null(block, left),
            op: *op,
            kind: *kind,
        };
        if uses[n] != 1 || !add_comparison(cx, &mut block.subqueries[n], &comparison, *all) {
            continue;
        }
        let exists = Expr {
            kind: ExprKind::Subquery {
                index: *index,
                use_as: SubqueryUse::Exists,
            },
            ty: ExprType::boolean(false),
        };
        *condition = match all {
            true => Expr {
                kind: ExprKind::Not(Box::new(exists)),
                ty: ExprType::boolean(false),
            },
            false => exists,
        };
    }
    block.conditions = conditions;
}

/// A comparison with the values of a subquery.
struct Comparison<'e> {
    left: &'e Expr,
    /// Whether the left side may be NULL.
    nullable: bool,
    op: BinaryOp,
    kind: CmpKind,
}

/// Adds a comparison to the conditions of a correlated subquery, or, if `all`, that
/// it is not true. Returns false if the subquery must stay as it is.
fn add_comparison(
    cx: &PlanCx<'_>,
    sub: &mut Subquery,
    comparison: &Comparison<'_>,
    all: bool,
) -> bool {
    let QueryBody::Block(inner) = &mut sub.query.body else {
        return false;
    };
    let rows = sub.correlated && sub.query.limit.is_none() && is_plain(inner);
    let Some(right) = inner.select.first().filter(|_| rows) else {
        return false;
    };
    let nullable = comparison.nullable || may_be_null(inner, right);
    let opposite = all.then(|| opposite(comparison.op)).flatten();
    let compared = Expr {
        kind: ExprKind::Compare {
            op: opposite.filter(|_| !nullable).unwrap_or(comparison.op),
            kind: comparison.kind,
            sides: Box::new([seen_from_inside(comparison.left), right.clone()]),
        },
        ty: ExprType::boolean(nullable),
    };
    let subquery = |e: &Expr| matches!(e.kind, ExprKind::Subquery { .. });
    let silent = is_tame_but_for_range(cx, &compared) && !converts(&compared);
    if !silent || !is_repeatable(cx, &compared) || compared.any(&mut |e| subquery(e)) {
        return false;
    }
    inner
        .conditions
        .push(match all && (nullable || opposite.is_none()) {
            true => Expr {
                kind: ExprKind::Is {
                    expr: Box::new(compared),
                    test: IsTest::True,
                    negated: true,
                },
                ty: ExprType::boolean(false),
            },
            false => compared,
        });
    sub.form = SubqueryForm::Existence;
    sub.operands.clear();
    true
}

/// The comparison that is true exactly where `op` is false.
fn opposite(op: BinaryOp) -> Option<BinaryOp> {
    Some(match op {
        BinaryOp::Eq => BinaryOp::Ne,
        BinaryOp::Ne => BinaryOp::Eq,
        BinaryOp::Lt => BinaryOp::Ge,
        BinaryOp::Le => BinaryOp::Gt,
        BinaryOp::Gt => BinaryOp::Le,
        BinaryOp::Ge => BinaryOp::Lt,
        _ => return None,
    })
}

/// An expression of a block as one of a subquery in that block.
fn seen_from_inside(e: &Expr) -> Expr {
    fn shift(e: &mut Expr) {
        match &mut e.kind {
            ExprKind::Column(at) => e.kind = ExprKind::Outer { level: 1, at: *at },
            ExprKind::Outer { level, .. } => *level += 1,
            _ => e.each_child_mut(&mut shift),
        }
    }
    let mut e = e.clone();
    shift(&mut e);
    e
}
