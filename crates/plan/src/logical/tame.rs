//! Which expressions may be evaluated for more rows, or more often, than the statement says: those
//! that have no side effect and cause no error or warning.

use nfold_types::TypeKind;

use super::context::PlanCx;
use super::expr::{
    ArithOp, Class, CmpKind, Expr, ExprKind, ExprType, SubqueryUse, TextOrigin, is_constant,
};

/// Arithmetic over integers of at most this many digits does not overflow.
const SAFE_DIGITS: u64 = 18;

/// Functions that return no error for any argument.
const TAME: [&str; 22] = [
    "lower",
    "upper",
    "lcase",
    "ucase",
    "date",
    "year",
    "month",
    "day",
    "dayofmonth",
    "hour",
    "minute",
    "second",
    "left",
    "right",
    "length",
    "char_length",
    "coalesce",
    "ifnull",
    "nullif",
    "if",
    "concat",
    "isnull",
];

/// Whether `e` may be evaluated for rows that it would not be evaluated for otherwise: it has no
/// side effect and causes no error.
pub(crate) fn is_tame(cx: &PlanCx<'_>, e: &Expr) -> bool {
    !e.any(&mut |e| !is_tame_node(cx, e))
}

/// As [`is_tame`], but a sum or product of exact numbers may be out of range, which is an error.
pub(crate) fn is_tame_but_for_range(cx: &PlanCx<'_>, e: &Expr) -> bool {
    let exact = |e: &Expr| matches!(e.ty.class(), Class::Int | Class::Decimal);
    let sum = |e: &Expr| match &e.kind {
        ExprKind::Arith(op, _) => {
            matches!(op, ArithOp::Add | ArithOp::Sub | ArithOp::Mul) && exact(e)
        }
        ExprKind::Neg(_) => exact(e),
        _ => false,
    };
    !e.any(&mut |e| !sum(e) && !is_tame_node(cx, e))
}

/// Whether this node is tame if its operands are.
fn is_tame_node(cx: &PlanCx<'_>, e: &Expr) -> bool {
    use ExprKind::*;
    match &e.kind {
        Const(_)
        | Param(_)
        | Column(_)
        | Outer { .. }
        | Compare { .. }
        | CompareRows { .. }
        | And(_)
        | Or(_)
        | Xor(_)
        | Not(_)
        | Is { .. }
        | Between { .. }
        | In { .. }
        | InRows { .. }
        | ArrayHas { .. }
        | InParam { .. }
        | Like { .. }
        | Case { .. }
        | Collate(_) => true,
        Arith(op, _) => *op != ArithOp::IntDiv && is_small(&e.ty),
        Neg(_) => is_small(&e.ty),
        Cast { to, .. } => to.kind != TypeKind::Float,
        IntervalArith { .. } | Extract { .. } | TimestampDiff { .. } | Trim { .. } => true,
        Call { func, .. } => TAME.contains(&cx.funcs.get(*func).name),
        Subquery { use_as, .. } => {
            matches!(use_as, SubqueryUse::Exists | SubqueryUse::In { .. })
        }
        _ => false,
    }
}

/// Whether testing the condition `e` causes neither an error nor a warning, and has no effect.
pub(crate) fn is_silent(cx: &PlanCx<'_>, e: &Expr) -> bool {
    use ExprKind::*;
    let number = |e: &Expr| matches!(e.ty.class(), Class::Int | Class::Decimal | Class::Double);
    match &e.kind {
        And(list) | Or(list) => list.iter().all(|e| is_silent(cx, e)),
        Not(inner) => is_silent(cx, inner),
        Subquery { .. } => false,
        _ => number(e) && is_tame(cx, e) && !converts(e) && !has_texts_beside_numbers(e),
    }
}

/// Whether a list or BETWEEN has a text that may be compared with a number, and warn for each row.
fn has_texts_beside_numbers(e: &Expr) -> bool {
    use ExprKind::*;
    let text = |e: &Expr| e.ty.class() == Class::String;
    let inexact = |kind: &CmpKind| !matches!(kind, CmpKind::Int | CmpKind::String(_));
    e.any(&mut |e| match &e.kind {
        In { .. } | InParam { .. } if e.ty.origin == TextOrigin::Checked => false,
        In { expr, list, .. } => {
            let texts = text(expr) || list.iter().any(|(_, member)| text(member));
            texts && list.iter().any(|(kind, _)| inexact(kind))
        }
        InParam { left, kinds, .. } => {
            let exact = |l: &Expr| l.ty.class() == Class::Double;
            left.iter()
                .zip(kinds)
                .any(|(l, kind)| inexact(kind) && !exact(l))
        }
        Between { parts, kinds, .. } => parts.iter().any(text) && kinds.iter().any(inexact),
        _ => false,
    })
}

/// Whether arithmetic of this type cannot overflow.
fn is_small(ty: &ExprType) -> bool {
    match ty.class() {
        Class::Int => !ty.col.unsigned && ty.max_length() <= SAFE_DIGITS,
        Class::Decimal => u64::from(ty.decimal_shape().0) <= SAFE_DIGITS,
        _ => false,
    }
}

/// Whether evaluating `e` may convert a row's value to another class of type, which may be an error
/// in strict mode.
pub(crate) fn converts(e: &Expr) -> bool {
    use ExprKind::*;
    // A constant is converted to the type of the other side, except a number beside a string.
    let yields = |a: &Expr, b: &Expr| is_constant(a) && b.ty.class() != Class::String;
    let alike = |a: &Expr, b: &Expr| yields(a, b) || yields(b, a) || a.ty.is_alike(&b.ty);
    e.any(&mut |e| match &e.kind {
        Const(_)
        | Param(_)
        | Column(_)
        | Outer { .. }
        | And(_)
        | Or(_)
        | Not(_)
        | Is { .. }
        | ArrayHas { .. }
        | InParam { .. } => false,
        IntervalArith { .. } => !is_constant(e),
        Arith(ArithOp::Add | ArithOp::Sub | ArithOp::Mul, sides) => {
            !sides.iter().all(|side| side.ty.class().is_number())
        }
        Neg(of) => !of.ty.class().is_number(),
        Compare { sides, .. } => !alike(&sides[0], &sides[1]),
        Between { parts, .. } => !parts.iter().all(|p| alike(&parts[0], p)),
        In { expr, list, .. } => !list.iter().all(|(_, member)| alike(expr, member)),
        Like { expr, pattern, .. } => !alike(expr, pattern) || expr.ty.class() != Class::String,
        _ => true,
    })
}
