//! AND and OR with literals as operands, in WHERE, ON and HAVING. Generated statements have them:
//! `WHERE id = 1 OR 0`.
//!
//! ```text
//!   x OR 0, x AND 1, x OR NULL  ─▶  x            x OR 1  ─▶  1            x AND 0  ─▶  0
//! ```
//! As in MySQL, an operand that a literal makes superfluous is not evaluated, and causes no
//! warning.

use nfold_types::Value;

use super::decorrelate::is_repeatable;
use crate::logical::context::PlanCx;
use crate::logical::expr::{Expr, ExprKind, ExprType};
use crate::logical::query::Block;

/// Simplifies the conditions of a block.
pub(super) fn by_literals(cx: &PlanCx<'_>, block: &mut Block) {
    let joined = block.outer_joins.iter_mut().map(|join| &mut join.on);
    for list in joined.chain([&mut block.conditions, &mut block.having]) {
        if list.iter().any(has_literal) {
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

/// Whether AND or OR has a literal as operand. Operands of other expressions do not count: there,
/// NULL is not the same as false.
fn has_literal(e: &Expr) -> bool {
    match &e.kind {
        ExprKind::And(list) | ExprKind::Or(list) => {
            list.iter().any(|e| is_literal(e) || has_literal(e))
        }
        _ => false,
    }
}

fn is_literal(e: &Expr) -> bool {
    matches!(e.kind, ExprKind::Const(_) | ExprKind::Param(_))
}

fn simplified(cx: &PlanCx<'_>, e: Expr) -> Expr {
    if !has_literal(&e) || !is_repeatable(cx, &e) {
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

/// Whether a literal is true. NULL is as good as false. `None`: it is no literal, or its conversion
/// may warn.
fn truth(cx: &PlanCx<'_>, e: &Expr) -> Option<bool> {
    let value = match &e.kind {
        ExprKind::Const(value) => value.clone(),
        ExprKind::Param(n) => cx.literals?.read(*n)?,
        _ => return None,
    };
    match value {
        Value::Null => Some(false),
        Value::Int(n) => Some(n != 0),
        Value::UInt(n) => Some(n != 0),
        _ => None,
    }
}

fn constant(value: bool) -> Expr {
    Expr::constant(Value::Int(value.into()), ExprType::int(1, false))
}
