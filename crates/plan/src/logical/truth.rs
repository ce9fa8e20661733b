//! The truth of constant conditions, known while a statement is bound.

use nfold_types::Value;

use super::context::PlanCx;
use super::expr::{ArithOp, Class, Expr, ExprKind, is_constant};

/// Whether a constant is true. NULL is as good as false. `None`: it is no constant, or evaluating
/// it may warn, or depend on the session.
pub(crate) fn truth(cx: &PlanCx<'_>, e: &Expr) -> Option<bool> {
    let value = match &e.kind {
        ExprKind::Const(value) => value.clone(),
        ExprKind::Param(n) => cx.literals?.read(*n)?,
        _ if is_constant(e) && !e.any(&mut |e| !is_of_numbers(e)) => {
            let mut e = e.clone();
            read_literals(cx, &mut e)?;
            cx.funcs.value_of(&e)?
        }
        _ => return None,
    };
    match value {
        Value::Null => Some(false),
        Value::Int(n) => Some(n != 0),
        Value::UInt(n) => Some(n != 0),
        _ => None,
    }
}

/// Whether an expression is an operator over numbers, or one of its operands.
fn is_of_numbers(e: &Expr) -> bool {
    use ExprKind::*;
    let number = matches!(
        e.ty.class(),
        Class::Int | Class::Decimal | Class::Double | Class::Null
    );
    number
        && matches!(
            e.kind,
            Const(_)
                | Param(_)
                | Compare { .. }
                | Between { .. }
                | In { .. }
                | Is { .. }
                | Not(_)
                | And(_)
                | Or(_)
                | Xor(_)
                | Neg(_)
                | Arith(ArithOp::Add | ArithOp::Sub | ArithOp::Mul, _)
        )
}

/// Puts the values of literals in the place of parameters. `None` if one has no plain value.
fn read_literals(cx: &PlanCx<'_>, e: &mut Expr) -> Option<()> {
    if let ExprKind::Param(n) = e.kind {
        e.kind = ExprKind::Const(cx.literals?.read(n)?);
    }
    let mut known = Some(());
    e.each_child_mut(&mut |child| known = known.and_then(|()| read_literals(cx, child)));
    known
}
