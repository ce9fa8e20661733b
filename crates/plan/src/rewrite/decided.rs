//! AND and OR with constants as operands, in WHERE, ON and HAVING. Generated statements have them:
//! `WHERE id = 1 OR 0`.
//!
//! ```text
//!   x OR 0, x AND 1, x OR NULL  ─▶  x            x OR 1  ─▶  1            x AND 2 < 1  ─▶  0
//!   x AND 'a' = 'b'             ─▶  'a' = 'b' AND x
//! ```
//! As in MySQL, an operand that a constant makes superfluous is not evaluated, and causes no
//! warning. A constant whose value is not known yet is evaluated before the operands beside it.

use nfold_types::Value;

use super::decorrelate::is_repeatable;
use crate::logical::context::PlanCx;
use crate::logical::expr::{Expr, ExprKind, ExprType, is_constant};
use crate::logical::query::Block;
use crate::logical::truth::truth;

/// Simplifies the conditions of a block.
pub(super) fn by_literals(cx: &PlanCx<'_>, block: &mut Block) {
    let joined = block.outer_joins.iter_mut().map(|join| &mut join.on);
    for list in joined.chain([&mut block.conditions, &mut block.having]) {
        if list.iter().any(has_constant) {
            let conditions = std::mem::take(list);
            let simple = conditions.into_iter().map(|e| simplified(cx, e));
            simple.for_each(|e| add(e, list));
        }
    }
}

/// Adds the operands of a condition, without those that are true.
fn add(e: Expr, to: &mut Vec<Expr>) {
    match e.kind {
        ExprKind::Const(Value::Int(1)) => {}
        ExprKind::And(list) => list.into_iter().for_each(|e| add(e, to)),
        _ => to.push(e),
    }
}

/// Whether AND or OR has a constant as operand. Operands of other expressions do not count: there,
/// NULL is not the same as false.
fn has_constant(e: &Expr) -> bool {
    match &e.kind {
        ExprKind::And(list) | ExprKind::Or(list) => {
            list.iter().any(|e| is_constant(e) || has_constant(e))
        }
        _ => false,
    }
}

fn simplified(cx: &PlanCx<'_>, e: Expr) -> Expr {
    if !has_constant(&e) || !is_repeatable(cx, &e) {
        return e;
    }
    let ty = e.ty;
    let (list, neutral) = match e.kind {
        ExprKind::And(list) => (list, true),
        ExprKind::Or(list) => (list, false),
        kind => return Expr { kind, ty },
    };
    let mut operands = Vec::with_capacity(list.len());
    for operand in list {
        let operand = simplified(cx, operand);
        match truth(cx, &operand) {
            Some(value) if value == neutral => {}
            Some(value) => return constant(value),
            None => operands.push(operand),
        }
    }
    operands.sort_by_key(|e| !is_constant(e));
    match operands.len() {
        0 => constant(neutral),
        1 => operands.remove(0),
        _ if neutral => Expr {
            kind: ExprKind::And(operands),
            ty,
        },
        _ => Expr {
            kind: ExprKind::Or(operands),
            ty,
        },
    }
}

fn constant(value: bool) -> Expr {
    Expr::constant(Value::Int(value.into()), ExprType::int(1, false))
}
