//! Arithmetic over integer literals in conditions: `x BETWEEN 4 AND 4 + 2`. By its type it may be
//! out of range, which is an error, so such a condition is tested only where the statement says. If
//! the value of the literals is small, the type is narrowed, and the condition can move.
//!
//! A plan that depends on literals serves no others. So conditions of a query over one table, which
//! cannot move, remain as they are.

use nfold_types::Value;

use crate::logical::context::PlanCx;
use crate::logical::expr::{ArithOp, Class, Expr, ExprKind};
use crate::logical::query::Block;

/// The greatest value that is small: further arithmetic of this width cannot overflow.
const SMALL_MAX: i64 = 1_000_000_000_000;

/// The width of a small value, with its sign.
const SMALL_WIDTH: u32 = 14;

/// Narrows the types of small arithmetic in the conditions of a block.
pub(super) fn narrow(cx: &PlanCx<'_>, block: &mut Block) {
    let joined = block.outer_joins.iter_mut().flat_map(|join| &mut join.on);
    let conditions = joined.chain(&mut block.conditions);
    conditions.for_each(|e| narrow_expr(cx, e));
}

fn narrow_expr(cx: &PlanCx<'_>, e: &mut Expr) {
    e.each_child_mut(&mut |child| narrow_expr(cx, child));
    let is_sum = matches!(&e.kind, ExprKind::Arith(..)) && is_of_literals(e);
    if is_sum && value(cx, e).is_some_and(|v| v.unsigned_abs() <= SMALL_MAX as u64) {
        e.ty = e.ty.clone().with_width(SMALL_WIDTH);
    }
}

/// Whether an expression is a sum, difference or product of signed integer literals.
fn is_of_literals(e: &Expr) -> bool {
    let signed = e.ty.class() == Class::Int && !e.ty.col.unsigned;
    signed
        && match &e.kind {
            ExprKind::Const(_) | ExprKind::Param(_) => true,
            ExprKind::Arith(ArithOp::Add | ArithOp::Sub | ArithOp::Mul, sides) => {
                sides.iter().all(is_of_literals)
            }
            _ => false,
        }
}

fn value(cx: &PlanCx<'_>, e: &Expr) -> Option<i64> {
    let literal = match &e.kind {
        ExprKind::Const(value) => value.clone(),
        ExprKind::Param(n) => cx.literals?.read(*n)?,
        ExprKind::Arith(op, sides) => {
            let [a, b] = [value(cx, &sides[0])?, value(cx, &sides[1])?];
            return match op {
                ArithOp::Add => a.checked_add(b),
                ArithOp::Sub => a.checked_sub(b),
                ArithOp::Mul => a.checked_mul(b),
                _ => None,
            };
        }
        _ => return None,
    };
    match literal {
        Value::Int(n) => Some(n),
        _ => None,
    }
}
