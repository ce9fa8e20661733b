//! EXISTS and IN over a UNION that depends on the outer row. Each side of the UNION becomes a
//! subquery of its own, which may be decorrelated.
//!
//! ```text
//!   EXISTS (A UNION B)      ─▶  EXISTS (A) OR EXISTS (B)
//!   x IN (A UNION B)        ─▶  x IN (A) OR x IN (B)
//!   x NOT IN (A UNION B)    ─▶  x NOT IN (A) AND x NOT IN (B)
//! ```

use nfold_sql::ast::SetOp;

use super::decorrelate::is_repeatable;
use crate::logical::collate::{self, Operand};
use crate::logical::context::PlanCx;
use crate::logical::expr::{CmpKind, Expr, ExprKind, ExprType, SubqueryUse, operand};
use crate::logical::query::{Block, Query, QueryBody, Subquery, SubqueryForm};
use crate::logical::walk;

/// The index of a subquery that is being replaced.
const REPLACED: u16 = u16::MAX;

/// Splits the subqueries of a block, which is not rewritten yet.
pub(super) fn split(cx: &PlanCx<'_>, block: &mut Block) {
    let mut n = 0;
    while n < block.subqueries.len() {
        let Some(kinds) = side_kinds(cx, block, n) else {
            n += 1;
            continue;
        };
        // The first side may be a UNION as well, and comes next. The second side comes last.
        let other = block.subqueries.len() as u16;
        let Some(second) = split_sides(&mut block.subqueries[n], &kinds) else {
            return;
        };
        block.subqueries.push(second);
        walk::each_of_clauses(block, 1, &mut |e, _| replace(e, n as u16, other, &kinds));
        walk::each_of_clauses(block, 1, &mut |e, _| {
            if let ExprKind::Subquery { index, .. } = &mut e.kind
                && *index == REPLACED
            {
                *index = n as u16;
            }
        });
        let conditions = std::mem::take(&mut block.conditions);
        conditions
            .into_iter()
            .for_each(|e| add(e, &mut block.conditions));
    }
}

/// Adds the operands of a condition, as conditions of their own.
fn add(e: Expr, to: &mut Vec<Expr>) {
    match e.kind {
        ExprKind::And(list) => list.into_iter().for_each(|e| add(e, to)),
        _ => to.push(e),
    }
}

/// How IN compares its left side with each side of a UNION: as MySQL, by the types of that side.
type SideKinds = [Vec<CmpKind>; 2];

/// The comparisons with the sides of subquery `n`, if it is a UNION that can be split: it is
/// correlated, and the clauses of the block use it only as EXISTS, or as IN with a left side that
/// may be evaluated twice.
fn side_kinds(cx: &PlanCx<'_>, block: &mut Block, n: usize) -> Option<SideKinds> {
    let sub = &block.subqueries[n];
    let QueryBody::Set {
        op: SetOp::Union,
        left,
        right,
        ..
    } = &sub.query.body
    else {
        return None;
    };
    if sub.form == SubqueryForm::Rows || !sub.correlated || sub.query.limit.is_some() {
        return None;
    }
    let types = [left.types.clone(), right.types.clone()];
    let mut kinds = None;
    let mut fits = true;
    walk::each_of_clauses(block, 1, &mut |e, _| {
        if let ExprKind::Subquery { index, use_as } = &e.kind
            && usize::from(*index) == n
        {
            let found = match use_as {
                SubqueryUse::Exists => Some(SideKinds::default()),
                SubqueryUse::In { left, .. } if left.iter().all(|e| is_plain(cx, e)) => {
                    let [a, b] = &types;
                    let sides = (compared(cx, left, a), compared(cx, left, b));
                    sides.0.zip(sides.1).map(|(a, b)| [a, b])
                }
                _ => None,
            };
            fits &= found.is_some() && (kinds.is_none() || kinds == found);
            kinds = found;
        }
    });
    kinds.filter(|_| fits)
}

fn compared(cx: &PlanCx<'_>, left: &[Expr], types: &[ExprType]) -> Option<Vec<CmpKind>> {
    let sides = left.iter().zip(types);
    let kinds = sides.map(|(l, ty)| {
        let operands = [operand(l), Operand::Other];
        collate::comparison(&l.ty, ty, operands, cx.connection, "=").ok()
    });
    kinds.collect()
}

/// Whether an expression may be evaluated twice.
fn is_plain(cx: &PlanCx<'_>, e: &Expr) -> bool {
    let subquery = |e: &Expr| matches!(e.kind, ExprKind::Subquery { .. });
    is_repeatable(cx, e) && !e.any(&mut |e| subquery(e))
}

/// Leaves the first side of a UNION in `sub`, and returns the second one.
fn split_sides(sub: &mut Subquery, kinds: &SideKinds) -> Option<Subquery> {
    let body = std::mem::replace(&mut sub.query.body, QueryBody::Rows(Vec::new()));
    let QueryBody::Set { left, right, .. } = body else {
        sub.query.body = body;
        return None;
    };
    let mut second = Subquery {
        query: right,
        correlated: false,
        form: sub.form,
        operands: sub.operands.clone(),
        decorrelated: None,
    };
    sub.query = left;
    for (side, kinds) in [&mut *sub, &mut second].into_iter().zip(kinds) {
        side.correlated = names_enclosing(&mut side.query);
        let operands = side.operands.iter_mut().zip(kinds);
        operands.for_each(|((_, kind), of_side)| *kind = *of_side);
    }
    Some(second)
}

/// Whether a subquery names columns of an enclosing query.
fn names_enclosing(q: &mut Query) -> bool {
    let mut named = false;
    walk::each_expr(q, 1, &mut |e, depth| {
        named |= matches!(e.kind, ExprKind::Outer { level, .. } if level >= depth);
    });
    named
}

/// Replaces the test of subquery `n` by tests of [`REPLACED`] and `other`.
fn replace(e: &mut Expr, n: u16, other: u16, kinds: &SideKinds) {
    let ExprKind::Subquery { index, use_as } = &e.kind else {
        return;
    };
    if *index != n {
        return;
    }
    let side = |(index, of_side): (u16, &Vec<CmpKind>)| {
        let mut use_as = use_as.clone();
        if let SubqueryUse::In { kinds, .. } = &mut use_as {
            kinds.clone_from(of_side);
        }
        Expr {
            kind: ExprKind::Subquery { index, use_as },
            ty: e.ty.clone(),
        }
    };
    let sides = [REPLACED, other].into_iter().zip(kinds).map(side).collect();
    let negated = matches!(use_as, SubqueryUse::In { negated: true, .. });
    e.kind = match negated {
        true => ExprKind::And(sides),
        false => ExprKind::Or(sides),
    };
}
