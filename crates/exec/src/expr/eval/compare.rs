//! Comparisons, IN, BETWEEN and LIKE.

use std::borrow::Cow;
use std::cmp::Ordering;

use nfold_plan::expr::is_constant;
use nfold_plan::expr::{Class, CmpKind, Expr, ExprKind, ExprType};
use nfold_sql::ast::BinaryOp;
use nfold_types::convert::number;
use nfold_types::temporal::parse;
use nfold_types::{Date, ErrorCode, Level, SqlError};

use super::CONDITION_WORK;
use super::{EvalCx, Val, convert};

pub(crate) use super::list::in_ranges;
pub(crate) use super::list::{has_numbers, is_no_time, member_type};
pub(crate) use super::prepared::ComparedAs;
pub use super::prepared::ListCache;
pub(crate) use super::temporal_list::{
    Listed, as_column, beside, comparable, constant_dates, date_side, day_of_text, is_marker,
    is_no_date, listed_time_point, lone_member, number_bounds, refuse_constant, refuse_no_date,
    refuse_text, rounded, row_member, time_side, warn_of_time_point, year_constant,
};

use super::list::{in_list, in_param, in_result, row_equal, searched_rows};

/// Compares two values by the rules of `kind`. Returns `None` if either is NULL, or if a date
/// comparison meets a value that is no date.
pub fn order(
    cx: &EvalCx<'_>,
    kind: CmpKind,
    a: (&Val<'_>, &ExprType),
    b: (&Val<'_>, &ExprType),
) -> Option<Ordering> {
    if a.0.is_null() || b.0.is_null() {
        return None;
    }
    match kind {
        CmpKind::Int => Some(match (a.0, b.0) {
            (Val::Int(x), Val::Int(y)) => x.cmp(y),
            (Val::UInt(x), Val::UInt(y)) => x.cmp(y),
            _ => convert::to_integer(cx, a.0, a.1)?.cmp(&convert::to_integer(cx, b.0, b.1)?),
        }),
        CmpKind::Decimal => {
            Some(convert::to_decimal(cx, a.0, a.1)?.cmp(&convert::to_decimal(cx, b.0, b.1)?))
        }
        CmpKind::Double => double_order(cx, a, b),
        CmpKind::Json => super::json::order(cx, a, b),
        CmpKind::String(collation) => {
            let x = convert::to_text(cx, a.0.borrowed(), a.1, collation)?;
            let y = convert::to_text(cx, b.0.borrowed(), b.1, collation)?;
            let mut goes_on = |work| cx.goes_on(work);
            Some(collation.known().compare_stoppable(&x, &y, &mut goes_on))
        }
        CmpKind::DateTime => {
            let (x, y) = (date_side(cx, a, &b.1.col), date_side(cx, b, &a.1.col));
            match (x, y) {
                (Some(x), Some(y)) => Some(x.packed().cmp(&y.packed())),
                _ => double_order(cx, a, b),
            }
        }
        CmpKind::Time => match (time_side(cx, a), time_side(cx, b)) {
            (Some(x), Some(y)) => Some(x.micros().cmp(&y.micros())),
            _ if is_number(a.0) || is_number(b.0) => double_order(cx, a, b),
            // A string that is no valid time: both sides are compared as strings.
            _ => order(cx, CmpKind::String(cx.env().collation()), a, b),
        },
    }
}

/// Returns a temporal value of a string-typed expression as text, and any other value unchanged.
pub(crate) fn as_text<'v>(cx: &EvalCx<'v>, v: Val<'v>, ty: &ExprType) -> Val<'v> {
    match v {
        Val::Date(_) | Val::DateTime(_) | Val::Time(_) if ty.class() == Class::String => {
            convert::to_bytes(cx, v, ty).map_or(Val::Null, Val::Bytes)
        }
        v => v,
    }
}

pub(super) fn is_number(v: &Val<'_>) -> bool {
    !matches!(
        v,
        Val::Bytes(_) | Val::Date(_) | Val::DateTime(_) | Val::Time(_)
    )
}

fn double_order(
    cx: &EvalCx<'_>,
    a: (&Val<'_>, &ExprType),
    b: (&Val<'_>, &ExprType),
) -> Option<Ordering> {
    convert::to_f64(cx, a.0, a.1)?.partial_cmp(&convert::to_f64(cx, b.0, b.1)?)
}

/// Converts the left side of a comparison whose right side is NULL: it warns all the same.
#[cold]
fn convert_alone(cx: &EvalCx<'_>, kind: CmpKind, (x, ty): (&Val<'_>, &ExprType), other: &ExprType) {
    match kind {
        CmpKind::Double => {
            let _ = convert::to_f64(cx, x, ty);
        }
        CmpKind::Decimal => {
            let _ = convert::to_decimal(cx, x, ty);
        }
        CmpKind::DateTime if !ty.col.is_enum_or_set() && !is_constant_null(other) => {
            date_side(cx, (x, ty), &other.col);
        }
        _ => {}
    }
}

/// Whether a type is that of the literal NULL.
fn is_constant_null(ty: &ExprType) -> bool {
    ty.class() == Class::Null
}

/// 2^53, the least integer that shares its double with the next integer.
pub(crate) const LEAST_SHARED: f64 = 9_007_199_254_740_992.0;

/// Refines the order `found` of a DOUBLE comparison between a value of `column` and another value.
/// MySQL compares an integer column with a string constant exactly, so integers from 2^53 on are
/// compared as DECIMAL. `constant` tells whether the other value is a constant.
#[inline]
pub(crate) fn exact(
    cx: &EvalCx<'_>,
    kind: CmpKind,
    found: Option<Ordering>,
    (column, x): (&Expr, &Val<'_>),
    (constant, y): (impl FnOnce() -> bool, &Val<'_>),
) -> Option<Ordering> {
    let same = kind == CmpKind::Double && found == Some(Ordering::Equal);
    match y {
        Val::Bytes(text) if same && is_integers(column) && constant() => {
            let whole = convert::to_decimal(cx, x, &column.ty)?;
            // The conversion to DOUBLE has already warned.
            let other = number::parse_decimal(text).value;
            match whole.to_f64().abs() < LEAST_SHARED {
                true => found,
                false => Some(whole.cmp(&other)),
            }
        }
        _ => found,
    }
}

/// Whether [`exact`] may change the result of a DOUBLE comparison with `x`, a value of `column`.
pub(crate) fn is_beyond_doubles(column: &Expr, x: &Val<'_>) -> bool {
    let shared = match x {
        Val::Int(v) => v.unsigned_abs() as f64 >= LEAST_SHARED,
        Val::UInt(v) => *v as f64 >= LEAST_SHARED,
        _ => false,
    };
    shared && is_integers(column)
}

/// Whether an expression consists of literals and parameters only. Variables do not count: MySQL
/// compares them with integers as DOUBLE.
pub(crate) fn is_exact_constant(e: &Expr) -> bool {
    let variable = |e: &Expr| matches!(e.kind, ExprKind::UserVar(_) | ExprKind::SysVar { .. });
    is_constant(e) && !e.any(&mut |e| variable(e))
}

/// Whether an expression is a plain reference to an integer column.
fn is_integers(e: &Expr) -> bool {
    matches!(e.kind, ExprKind::Column(_) | ExprKind::Outer { .. }) && e.ty.class() == Class::Int
}

/// AND of two truth values.
fn both(a: Option<bool>, b: Option<bool>) -> Option<bool> {
    match (a, b) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

/// Whether an order satisfies a comparison operator.
pub fn holds(op: BinaryOp, o: Ordering) -> bool {
    match op {
        BinaryOp::Eq | BinaryOp::NullSafeEq => o.is_eq(),
        BinaryOp::Ne => o.is_ne(),
        BinaryOp::Lt => o.is_lt(),
        BinaryOp::Le => o.is_le(),
        BinaryOp::Gt => o.is_gt(),
        BinaryOp::Ge => o.is_ge(),
        _ => false,
    }
}

/// Evaluates the dates and times that are NULL beside `<=>` once more, as MySQL does: they warn
/// twice. `nulls` tells which sides are NULL.
#[cold]
fn evaluate_again<'a>(
    cx: &EvalCx<'a>,
    kind: CmpKind,
    sides: &'a [Expr; 2],
    nulls: [bool; 2],
) -> Result<(), SqlError> {
    let temporal = matches!(kind, CmpKind::DateTime | CmpKind::Time);
    for (e, _) in sides
        .iter()
        .zip(nulls)
        .filter(|(_, null)| temporal && *null)
    {
        if e.ty.class().is_temporal() {
            cx.val(e)?;
        }
    }
    Ok(())
}

pub(crate) fn eval<'a>(cx: &EvalCx<'a>, e: &'a Expr) -> Result<Option<bool>, SqlError> {
    match &e.kind {
        ExprKind::Compare { op, kind, sides } => {
            let [a, b] = &**sides;
            let (x, x_ty) = side(cx, a, *kind)?;
            // As in MySQL, the right side is not evaluated then, and does not warn. Dates are an
            // exception: an invalid date on the right is an error.
            if x.is_null() && *op != BinaryOp::NullSafeEq && *kind != CmpKind::DateTime {
                return Ok(None);
            }
            let (y, y_ty) = side(cx, b, *kind)?;
            if let (CmpKind::Int, Val::Int(x), Val::Int(y)) = (kind, &x, &y) {
                return Ok(Some(holds(*op, x.cmp(y))));
            }
            // An invalid temporal parameter becomes NULL below, but `<=>` must not match it.
            let nulls = [x.is_null(), y.is_null()];
            let (x, y) = if matches!(kind, CmpKind::DateTime | CmpKind::Time) {
                let x = beside(cx, &sides[0], x, &sides[1]);
                let y = beside(cx, &sides[1], y, &sides[0]);
                let x = comparable(cx, &sides[0], x, &sides[1].ty.col);
                let y = comparable(cx, &sides[1], y, &sides[0].ty.col);
                let [a, b] = &**sides;
                let x = chosen_date(cx, (a, x.unwrap_or(Val::Null)), b, *kind);
                let y = chosen_date(cx, (b, y.unwrap_or(Val::Null)), a, *kind);
                (x, y)
            } else {
                (x, y)
            };
            if x.is_null() || y.is_null() {
                if *kind == CmpKind::DateTime {
                    refuse_no_date(cx, [&sides[0], &sides[1]], [&x, &y])?;
                }
                if let Val::Bytes(_) = x {
                    convert_alone(cx, *kind, (&x, x_ty), y_ty);
                }
                return match op {
                    BinaryOp::NullSafeEq => {
                        evaluate_again(cx, *kind, sides, nulls)?;
                        Ok(Some(nulls == [true; 2] && x.is_null() && y.is_null()))
                    }
                    _ => Ok(None),
                };
            }
            let (x, y) = if *kind == CmpKind::DateTime {
                refuse_no_date(cx, [&sides[0], &sides[1]], [&x, &y])?;
                let [a, b] = &**sides;
                let day = |e: &Expr, v, other: &Expr| match v {
                    Val::Bytes(_) if !is_constant(other) => day_of_text(cx, e, v, &other.ty.col),
                    v => v,
                };
                (day(a, x, b), day(b, y, a))
            } else {
                (x, y)
            };
            let found = order(cx, *kind, (&x, x_ty), (&y, y_ty));
            let found = if *kind == CmpKind::Double && found == Some(Ordering::Equal) {
                let [a, b] = &**sides;
                let found = exact(cx, *kind, found, (a, &x), (|| is_exact_constant(b), &y));
                let turned = found.map(Ordering::reverse);
                exact(cx, *kind, turned, (b, &y), (|| is_exact_constant(a), &x))
                    .map(Ordering::reverse)
            } else {
                found
            };
            Ok(found.map(|o| holds(*op, o)))
        }
        ExprKind::CompareRows {
            op,
            kinds,
            left,
            right,
        } => rows(cx, *op, kinds, left, right),
        ExprKind::Between {
            parts,
            kinds,
            negated,
        } => {
            let (x, x_ty) = side(cx, &parts[0], kinds[0])?;
            let time_points = kinds
                .iter()
                .any(|kind| matches!(kind, CmpKind::DateTime | CmpKind::Time));
            if x.is_null() && !time_points {
                return Ok(None);
            }
            let (x, x_ty) = once_as_number(cx, x, x_ty, kinds);
            if let Some([low, high]) = number_bounds(cx, parts, kinds)? {
                let x = convert::to_f64(cx, &x, &x_ty);
                let inside = |a: Option<f64>, b: Option<f64>| Some(a? <= b?);
                return Ok(both(inside(low, x), inside(x, high)).map(|b| b != *negated));
            }
            // A document converts once, and warns once.
            let x = match kinds {
                [CmpKind::Double, CmpKind::Double] if parts[0].ty.col.is_json() => {
                    convert::to_f64(cx, &x, &parts[0].ty).map_or(Val::Null, Val::Double)
                }
                _ => x,
            };
            let bound = |n: usize| -> Result<Option<Ordering>, SqlError> {
                let kind = kinds[n - 1];
                let (v, v_ty) = side(cx, &parts[n], kind)?;
                // A TIME that is compared as a DATETIME converts no bound to its own type.
                let dated = kind == CmpKind::DateTime && parts[0].ty.class() == Class::Time;
                let v = match kind {
                    CmpKind::DateTime | CmpKind::Time if !dated => {
                        let v = beside(cx, &parts[n], v, &parts[0]);
                        let day = parts[0].ty.class() == Class::Date;
                        let none = if day {
                            Val::Date(Date::ZERO)
                        } else {
                            Val::Null
                        };
                        comparable(cx, &parts[n], v, &parts[0].ty.col).unwrap_or(none)
                    }
                    _ => v,
                };
                let found = order(cx, kind, (&x, &x_ty), (&v, v_ty));
                let constant = || is_exact_constant(&parts[n]);
                Ok(exact(cx, kind, found, (&parts[0], &x), (constant, &v)))
            };
            let low = bound(1)?.map(Ordering::is_ge);
            let high = bound(2)?.map(Ordering::is_le);
            Ok(both(low, high).map(|b| b != *negated))
        }
        ExprKind::In {
            expr,
            list,
            negated,
        } => in_list(cx, e, expr, list, *negated),
        ExprKind::InRows {
            left,
            rows,
            negated,
        } => {
            if let Some(found) = searched_rows(cx, e, left, rows)? {
                return Ok(Some(found != *negated));
            }
            let mut unknown = false;
            for row in rows {
                cx.checkpoint(CONDITION_WORK)?;
                match row_equal(cx, left, row)? {
                    Some(true) => return Ok(Some(!negated)),
                    None => unknown = true,
                    Some(false) => {}
                }
            }
            Ok(in_result(false, unknown, *negated))
        }
        ExprKind::ArrayHas {
            column,
            elements,
            all,
        } => super::array_elements::has(cx, column, elements, *all),
        ExprKind::InParam {
            left,
            kinds,
            list,
            negated,
        } => in_param(cx, e, left, kinds, *list, *negated),
        ExprKind::Like {
            expr,
            pattern,
            escape,
            collation,
            negated,
        } => {
            let Some(text) = cx.text(expr, *collation)? else {
                return Ok(None);
            };
            let Some(pattern) = cx.text(pattern, *collation)? else {
                return Ok(None);
            };
            let escape = match escape {
                None => Some('\\'),
                Some(e) => {
                    let text = cx.bytes(e)?;
                    let long = text
                        .as_ref()
                        .is_some_and(|t| collation.known().char_len(t) > 1);
                    if long {
                        return Err(SqlError::new(
                            nfold_types::ErrorCode::ER_WRONG_ARGUMENTS,
                            &[&"ESCAPE"],
                        ));
                    }
                    escape_char(text.as_deref())
                }
            };
            let mut goes_on = |work| cx.goes_on(work);
            let like = collation
                .known()
                .like_stoppable(&text, &pattern, escape, &mut goes_on);
            cx.checkpoint(0)?;
            Ok(Some(like != *negated))
        }
        _ => unreachable!("only comparisons come here"),
    }
}

/// Evaluates one side of a comparison of `kind`; the type is that of the value.
#[inline]
fn side<'a>(
    cx: &EvalCx<'a>,
    e: &'a Expr,
    kind: CmpKind,
) -> Result<(Val<'a>, &'a ExprType), SqlError> {
    match kind {
        CmpKind::Int | CmpKind::Decimal | CmpKind::Double => cx.numeric(e),
        _ => Ok((cx.val(e)?, &e.ty)),
    }
}

/// Converts a number or a text that IF, CASE or NULLIF returned to a date, if `kind` compares dates
/// and `other` is no constant. An invalid date becomes NULL; of another expression it would be the
/// zero date. Beside a constant date, MySQL reads the text of such an expression.
fn chosen_date<'v>(
    cx: &EvalCx<'v>,
    (e, v): (&Expr, Val<'v>),
    other: &Expr,
    kind: CmpKind,
) -> Val<'v> {
    let untyped = is_number(&v) && !v.is_null() || matches!(v, Val::Bytes(_));
    let chosen = e.ty.class() == Class::String && cx.is_chosen(e);
    if kind != CmpKind::DateTime || !chosen || !untyped || is_constant(e) {
        return v;
    }
    if is_constant(other) {
        return convert::to_bytes(cx, v, &e.ty).map_or(Val::Null, Val::Bytes);
    }
    let found = convert::to_asked(cx, &v, &e.ty, convert::TemporalTarget::any(false));
    found.map_or(Val::Null, Val::DateTime)
}

/// The operand of BETWEEN as a number, if it is a text between numbers: it is read once, and warns
/// once.
fn once_as_number<'a, 't>(
    cx: &EvalCx<'a>,
    x: Val<'a>,
    ty: &'t ExprType,
    kinds: &[CmpKind; 2],
) -> (Val<'a>, Cow<'t, ExprType>) {
    match (kinds, &x) {
        ([CmpKind::Double, CmpKind::Double], Val::Bytes(_)) => {
            let number = convert::to_f64(cx, &x, ty).unwrap_or_default();
            (Val::Double(number), Cow::Owned(ExprType::double(false)))
        }
        _ => (x, Cow::Borrowed(ty)),
    }
}

/// The escape character of LIKE. NULL means the backslash, an empty string means no escape.
pub fn escape_char(text: Option<&[u8]>) -> Option<char> {
    match text {
        None => Some('\\'),
        Some(t) => String::from_utf8_lossy(t).chars().next(),
    }
}

fn rows<'a>(
    cx: &EvalCx<'a>,
    op: BinaryOp,
    kinds: &[CmpKind],
    left: &'a [Expr],
    right: &'a [Expr],
) -> Result<Option<bool>, SqlError> {
    let mut unknown = false;
    for ((l, r), kind) in left.iter().zip(right).zip(kinds) {
        let (x, y) = (cx.val(l)?, cx.val(r)?);
        let o = order(cx, *kind, (&x, &l.ty), (&y, &r.ty));
        match op {
            BinaryOp::NullSafeEq => {
                let equal = o.map_or(x.is_null() && y.is_null(), Ordering::is_eq);
                if !equal {
                    return Ok(Some(false));
                }
            }
            BinaryOp::Eq | BinaryOp::Ne => match o {
                Some(Ordering::Equal) => {}
                Some(_) => return Ok(Some(op == BinaryOp::Ne)),
                None => unknown = true,
            },
            _ => match o {
                None => return Ok(None),
                Some(Ordering::Equal) => {}
                Some(o) => return Ok(Some(holds(op, o))),
            },
        }
    }
    if unknown {
        return Ok(None);
    }
    Ok(Some(matches!(
        op,
        BinaryOp::Eq | BinaryOp::NullSafeEq | BinaryOp::Le | BinaryOp::Ge
    )))
}

/// Warns about the texts in a list parameter that also has numbers, beside the date or time column
/// `column`. MySQL converts them for each row, also if the column is NULL.
#[cold]
pub(crate) fn warn_of_members(cx: &EvalCx<'_>, column: &Expr, list: u32) {
    let flags = convert::TemporalTarget::by_mode(cx, false).flags;
    let kind = match column.ty.class() {
        Class::Date => "date",
        _ => "datetime",
    };
    let members = cx.st.params.list(list).0.map(Val::from_ref);
    for (i, v) in members.enumerate() {
        let ty = member_type(cx, list, i, &v);
        let Val::Bytes(text) = &v else { continue };
        if column.ty.class() == Class::Time {
            convert::to_time(cx, &v, &ty);
            continue;
        }
        if parse::parse_datetime(text, flags).is_ok_and(|parsed| !parsed.truncated) {
            continue;
        }
        let (shown, name) = (convert::shown(cx, text, &ty), column.ty.item_name.as_str());
        let row = cx.st.counts.current(cx.st.scope);
        let message = format!("Incorrect {kind} value: '{shown}' for column '{name}' at row {row}");
        let error = SqlError::with_message(ErrorCode::ER_TRUNCATED_WRONG_VALUE, message);
        let mut warnings = cx.st.warnings.borrow_mut();
        warnings.push_error(Level::Warning, &error);
    }
}

/// Warns if a text among dates has a time of day, which counts for nothing.
pub(crate) fn warn_of_clock(cx: &EvalCx<'_>, class: Class, (v, ty): (&Val<'_>, &ExprType)) {
    let flags = convert::TemporalTarget::any(true).flags;
    if let (Class::Date, Val::Bytes(text)) = (class, v)
        && let Ok(parsed) = parse::parse_datetime(text, flags)
        && !parsed.truncated
        && parsed.value.time().micros() != 0
    {
        convert::warn_incorrect(cx, "date", text, ty);
    }
}
