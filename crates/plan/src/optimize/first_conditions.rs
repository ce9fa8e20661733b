//! Conditions that MySQL tests before those beside them, or before the first row. It matters where
//! a condition beside them may warn; elsewhere the conditions stay as they are written.
//!
//! MySQL collects the equalities of a condition into multiple equalities, and puts these before
//! the rest of an AND. A comparison that no value of a column's type satisfies is false before any
//! row is read: `tiny_column = 1000`.

use nfold_sql::ast::BinaryOp;
use nfold_types::TypeKind;

use crate::logical::context::PlanCx;
use crate::logical::expr::{Class, CmpKind, Expr, ExprKind, ExprType, is_constant};
use crate::logical::func::{IN_RANGE, YEAR_CONSTANT};
use crate::logical::tame::is_silent;
use crate::physical::Block;

/// Moves the equalities among the conditions of each step, and of each AND below, to the front.
pub(super) fn move_equalities(cx: &PlanCx<'_>, block: &mut Block) {
    for step in &mut block.joins {
        for list in [&mut step.on, &mut step.filter] {
            if !list.iter().all(|e| is_silent(cx, e)) {
                reorder(list);
            }
        }
    }
}

fn reorder(list: &mut Vec<Expr>) {
    list.iter_mut().for_each(reorder_below);
    if list.len() > 1 && list.iter().any(is_equality) {
        let (mut first, rest): (Vec<Expr>, Vec<Expr>) =
            std::mem::take(list).into_iter().partition(is_equality);
        first.extend(rest);
        *list = first;
    }
}

fn reorder_below(e: &mut Expr) {
    match &mut e.kind {
        ExprKind::And(list) => reorder(list),
        ExprKind::Or(list) => list.iter_mut().for_each(reorder_below),
        _ => {}
    }
}

/// Whether MySQL makes a multiple equality of a condition: two columns of one type are equal, or a
/// column and a constant of its kind.
fn is_equality(e: &Expr) -> bool {
    let ExprKind::Compare {
        op: BinaryOp::Eq,
        kind,
        sides,
    } = &e.kind
    else {
        return false;
    };
    let [a, b] = &**sides;
    match (a.as_column(), b.as_column()) {
        (Some(_), Some(_)) => is_one_type(&a.ty, &b.ty),
        (Some(_), None) => is_constant(b) && is_of_kind(*kind, &a.ty, &b.ty),
        (None, Some(_)) => is_constant(a) && is_of_kind(*kind, &b.ty, &a.ty),
        (None, None) => false,
    }
}

fn is_one_type(a: &ExprType, b: &ExprType) -> bool {
    let (a, b) = (&a.col, &b.col);
    a.kind == b.kind && a.unsigned == b.unsigned && a.collation == b.collation
}

/// Whether a constant has the kind of values of a column. A text beside a date is a date, but one
/// beside a TIME is none, and neither is a number.
fn is_of_kind(kind: CmpKind, column: &ExprType, constant: &ExprType) -> bool {
    match (column.class(), constant.class()) {
        (Class::String, Class::String) => {
            matches!(kind, CmpKind::String(collation) if collation == column.collation())
        }
        (Class::Date | Class::DateTime, Class::String | Class::Date | Class::DateTime) => true,
        (Class::Json, _) => false,
        (a, b) => a == b,
    }
}

/// The tests before the first row whether comparisons with literals may hold, if a condition among
/// them may warn.
pub(super) fn range_tests(cx: &PlanCx<'_>, conditions: &[Expr]) -> Vec<Expr> {
    let Some((func, _)) = cx.funcs.find(IN_RANGE) else {
        return Vec::new();
    };
    let compared = conditions.iter().filter(|e| is_beside_literal(cx, e));
    let compared: Vec<&Expr> = compared.collect();
    if compared.is_empty() || conditions.iter().all(|e| is_silent(cx, e)) {
        return Vec::new();
    }
    let test = |e: &Expr| Expr {
        kind: ExprKind::Call {
            func,
            args: vec![e.clone()],
        },
        ty: ExprType::boolean(false),
    };
    compared.into_iter().map(test).collect()
}

/// Whether a condition compares a column of exact numbers or years with a literal.
fn is_beside_literal(cx: &PlanCx<'_>, e: &Expr) -> bool {
    use BinaryOp::{Eq, Ge, Gt, Le, Lt, NullSafeEq};
    let ExprKind::Compare { op, sides, .. } = &e.kind else {
        return false;
    };
    let exact = |e: &Expr| {
        let kind = &e.ty.col.kind;
        e.as_column().is_some()
            && matches!(e.ty.class(), Class::Int | Class::Decimal)
            && !matches!(kind, TypeKind::Bit(_))
    };
    let literal = |e: &Expr| match &e.kind {
        ExprKind::Const(_) | ExprKind::Param(_) => e.ty.class().is_number(),
        ExprKind::Neg(of) => matches!(of.kind, ExprKind::Const(_) | ExprKind::Param(_)),
        ExprKind::Call { func, args } => {
            cx.funcs.get(*func).name == YEAR_CONSTANT && args[0].ty.class().is_number()
        }
        _ => false,
    };
    let [a, b] = &**sides;
    matches!(op, Eq | NullSafeEq | Lt | Le | Gt | Ge)
        && (exact(a) && literal(b) || literal(a) && exact(b))
}
