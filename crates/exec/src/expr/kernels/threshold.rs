//! Constants compared with a column of fixed width, as integers that sort like the column's values.

use nfold_plan::expr::{Class, CmpKind, Expr, ExprKind};
use nfold_plan::func::{COMPUTED_ONCE, FuncSet};
use nfold_sql::ast::BinaryOp;
use nfold_types::row::{OrderedField, RowLayout, UnscaledField};
use nfold_types::{CollationId, ColumnType, DateTime, TypeKind};

use crate::expr::eval::compare::{beside, comparable, date_side, refuse_no_date};
use crate::expr::eval::{EvalCx, Val, convert};
use crate::expr::func::{Builtins, known_constant};

/// A column that is read as an integer; see the two kinds of field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum KeyField {
    Ordered(OrderedField),
    Unscaled(UnscaledField),
}

impl KeyField {
    /// `None` if the column has another type or no fixed position.
    pub fn of(layout: &RowLayout, ordinal: usize) -> Option<KeyField> {
        let ordered = layout.ordered_field(ordinal).map(KeyField::Ordered);
        ordered.or_else(|| layout.unscaled_field(ordinal).map(KeyField::Unscaled))
    }

    /// The integer in a row image; `None`: the column is NULL.
    #[inline(always)]
    pub fn key(&self, image: &[u8]) -> Option<i64> {
        match self {
            KeyField::Ordered(field) => field.key(image),
            KeyField::Unscaled(field) => field.key(image),
        }
    }
}

/// The position of a constant among the keys of a column: `floor` is the largest key that does not
/// exceed the constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Threshold {
    pub floor: i128,
    /// Whether the constant is the value of key `floor`.
    pub exact: bool,
}

/// A range of keys, with both ends included.
pub(super) type Keys = (i128, i128);

pub(super) const ALL: Keys = (i128::MIN, i128::MAX);
const NO_KEY: Keys = (1, 0);

impl Threshold {
    /// The keys of values for which `value op constant` holds; `None` for `<>`, which is no single
    /// range.
    pub fn keys(self, op: BinaryOp) -> Option<Keys> {
        let after = self.floor.saturating_add(1);
        Some(match op {
            BinaryOp::Eq | BinaryOp::NullSafeEq if self.exact => (self.floor, self.floor),
            BinaryOp::Eq | BinaryOp::NullSafeEq => NO_KEY,
            BinaryOp::Le => (ALL.0, self.floor),
            BinaryOp::Lt if self.exact => (ALL.0, self.floor.saturating_sub(1)),
            BinaryOp::Lt => (ALL.0, self.floor),
            BinaryOp::Gt => (after, ALL.1),
            BinaryOp::Ge if self.exact => (self.floor, ALL.1),
            BinaryOp::Ge => (after, ALL.1),
            _ => return None,
        })
    }
}

/// Evaluates the constant `e` of a comparison of `kind` with `column`, whose images hold `field`.
/// Returns `None` if the evaluator has to compare: because the constant is NULL, fails, or is
/// compared in another way. If evaluating the constant warns, the caller must leave the comparison
/// to the evaluator as well. `refuses`: a string that is no date is an error beside a date.
pub(super) fn threshold<'a>(
    cx: &EvalCx<'a>,
    kind: CmpKind,
    (column, field): (&'a Expr, KeyField),
    e: &'a Expr,
    refuses: bool,
) -> Option<Threshold> {
    let v = constant(cx, e)?;
    match (kind, field) {
        (CmpKind::Int, KeyField::Ordered(field)) if field.is_integer() => {
            let whole = match v {
                Val::Int(v) => i128::from(v),
                Val::UInt(v) => i128::from(v),
                _ => return None,
            };
            Some(Threshold {
                floor: field.key_of(whole),
                exact: true,
            })
        }
        (CmpKind::Decimal, field) if is_exact_number(&v) => {
            let number = convert::to_decimal(cx, &v, &e.ty)?;
            let (floor, exact) = match field {
                KeyField::Unscaled(field) => number.floor_unscaled(field.scale())?,
                KeyField::Ordered(field) if field.is_integer() => {
                    let (floor, exact) = number.floor_unscaled(0)?;
                    (field.key_of(floor), exact)
                }
                KeyField::Ordered(_) => return None,
            };
            Some(Threshold { floor, exact })
        }
        (CmpKind::DateTime, KeyField::Ordered(field)) if is_date(&column.ty.col) => {
            let v = beside(cx, e, v, column);
            let v = comparable(cx, e, v, &column.ty.col)?;
            if refuses {
                refuse_no_date(cx, [column, e], [&Val::DateTime(DateTime::ZERO), &v]).ok()?;
            }
            let date = date_side(cx, (&v, &e.ty), &column.ty.col)?;
            Some(of_date(&column.ty.col, field, date))
        }
        _ => None,
    }
}

/// Appends the constant `e` as text in the collation's character set; `None` as in [`threshold`].
pub(super) fn push_constant_text<'a>(
    cx: &EvalCx<'a>,
    e: &'a Expr,
    collation: CollationId,
    out: &mut Vec<u8>,
) -> Option<()> {
    let v = constant(cx, e)?;
    let plain = matches!(v, Val::Bytes(_)) && e.ty.class() == Class::String;
    let text = plain.then(|| convert::to_text(cx, v, &e.ty, collation))?;
    out.extend_from_slice(&text?);
    Some(())
}

/// The position of a DATE or DATETIME among the keys of a temporal column.
fn of_date(column: &ColumnType, field: OrderedField, date: DateTime) -> Threshold {
    let (stored, exact) = match column.kind {
        TypeKind::Date => {
            let day = date.date();
            (
                u64::from(day.packed()),
                day.at_midnight().packed() == date.packed(),
            )
        }
        TypeKind::DateTime(0) => (date.packed() >> 20, date.packed().trailing_zeros() >= 20),
        _ => (date.packed(), true),
    };
    Threshold {
        floor: field.key_of(stored.into()),
        exact,
    }
}

fn is_date(ty: &ColumnType) -> bool {
    matches!(ty.kind, TypeKind::Date | TypeKind::DateTime(_))
}

pub(super) fn is_exact_number(v: &Val<'_>) -> bool {
    matches!(v, Val::Int(_) | Val::UInt(_) | Val::Decimal(_))
}

/// The value of a constant expression without side effects. `None` if it has one, fails, or is
/// NULL.
pub(super) fn constant<'a>(cx: &EvalCx<'a>, e: &'a Expr) -> Option<Val<'a>> {
    let value = match computed_once(e) {
        // Its value may stay for the whole execution, so only the evaluator computes it with its
        // warnings.
        Some(computed) => known_constant(cx, computed).map_or_else(|| cx.val(computed), Ok),
        None if e.any(&mut |e| !is_pure(e)) => return None,
        None => cx.val(e),
    };
    value.ok().filter(|v| !v.is_null())
}

/// The expression that the planner has marked to be computed once in an execution.
fn computed_once(e: &Expr) -> Option<&Expr> {
    match &e.kind {
        ExprKind::Call { func, args } if Builtins.get(*func).name == COMPUTED_ONCE => args.first(),
        _ => None,
    }
}

fn is_pure(e: &Expr) -> bool {
    matches!(
        e.kind,
        ExprKind::Const(_)
            | ExprKind::Param(_)
            | ExprKind::Neg(_)
            | ExprKind::Arith(..)
            | ExprKind::Cast { .. }
            | ExprKind::Collate(_)
            | ExprKind::IntervalArith { .. }
    )
}
