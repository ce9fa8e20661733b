//! Comparisons, IN, BETWEEN and LIKE.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::rc::Rc;

use nfold_plan::SqlMode;
use nfold_plan::collate::Operand;
use nfold_plan::expr::{Class, CmpKind, Coercibility, Expr, ExprKind, ExprType};
use nfold_sql::ast::BinaryOp;
use nfold_types::temporal::parse;
use nfold_types::{ColumnType, DateTime, ErrorCode, SqlError, Time, TypeKind};
use rustc_hash::FxHashMap;

use super::{EvalCx, Val, convert};

/// The order of two values under a comparison; `None` where either is NULL (or no date at all, in a comparison of dates).
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
        CmpKind::String(collation) => {
            let x = convert::to_text(cx, a.0.clone(), a.1, collation)?;
            let y = convert::to_text(cx, b.0.clone(), b.1, collation)?;
            Some(collation.known().compare(&x, &y))
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
            // A text that is no time: then both are texts.
            _ => order(cx, CmpKind::String(cx.env().collation()), a, b),
        },
    }
}

/// What is called a string as its text, whatever it holds.
pub(crate) fn as_text<'v>(cx: &EvalCx<'v>, v: Val<'v>, ty: &ExprType) -> Val<'v> {
    match v {
        Val::Date(_) | Val::DateTime(_) | Val::Time(_) if ty.class() == Class::String => {
            convert::to_bytes(cx, v, ty).map_or(Val::Null, Val::Bytes)
        }
        v => v,
    }
}

/// A side of a comparison of times; a text must be a time in full.
pub(crate) fn time_side(cx: &EvalCx<'_>, v: (&Val<'_>, &ExprType)) -> Option<Time> {
    let member = v.1.col.is_enum_or_set() && !v.0.is_null();
    let text = match member {
        true => Val::Bytes(convert::to_bytes(cx, v.0.clone(), v.1)?),
        false => as_text(cx, v.0.clone(), v.1),
    };
    match text {
        Val::Bytes(text) => {
            let whole = parse::parse_time(&text).is_ok_and(|t| !t.truncated && !t.clamped);
            let found = convert::to_time(cx, &Val::Bytes(text), v.1);
            found.filter(|_| whole)
        }
        Val::UInt(n) => convert::to_time(cx, &Val::Int(n as i64), v.1),
        other => convert::to_time(cx, &other, v.1),
    }
}

fn is_number(v: &Val<'_>) -> bool {
    !matches!(
        v,
        Val::Bytes(_) | Val::Date(_) | Val::DateTime(_) | Val::Time(_)
    )
}

/// A side of a comparison of dates whose other side is of type `other`. A text that is no date is the zero date; a number that is none is
/// `None`: then both are compared as numbers. Beside a DATE a number is a date without a time.
pub(crate) fn date_side(
    cx: &EvalCx<'_>,
    v: (&Val<'_>, &ExprType),
    other: &ColumnType,
) -> Option<DateTime> {
    if !is_number(v.0) || v.1.col.is_enum_or_set() {
        return Some(convert::to_datetime(cx, v.0, v.1).unwrap_or(DateTime::ZERO));
    }
    let asked = convert::Asked::by_mode(cx, false);
    let found = convert::to_asked(cx, v.0, v.1, asked)?;
    Some(match other.kind {
        TypeKind::Date => found.date().at_midnight(),
        _ => found,
    })
}

fn double_order(
    cx: &EvalCx<'_>,
    a: (&Val<'_>, &ExprType),
    b: (&Val<'_>, &ExprType),
) -> Option<Ordering> {
    convert::to_f64(cx, a.0, a.1)?.partial_cmp(&convert::to_f64(cx, b.0, b.1)?)
}

/// A side of a comparison with values of type `other` as a prepared statement's parameter takes part in it: as the moment that it is,
/// whatever the SQL mode. `None`: what is no moment is no error, but it matches nothing.
pub(crate) fn settled<'v>(
    cx: &EvalCx<'v>,
    e: &Expr,
    v: Val<'v>,
    other: &ColumnType,
) -> Option<Val<'v>> {
    let class = Class::of(other);
    let untyped = is_number(&v) || matches!(v, Val::Bytes(_));
    if !untyped || v.is_null() || !class.is_temporal() || !is_marker(cx, e) {
        return Some(v);
    }
    if class == Class::Time {
        return convert::to_time(cx, &v, &e.ty).map(Val::Time);
    }
    convert::to_datetime(cx, &v, &e.ty).map(Val::DateTime)
}

/// A constant beside a column of type `column` becomes a value of the column: a text or a number beside a TIME, a number beside a
/// DATETIME loses the digits that the column does not have. A TIME or DATETIME constant keeps them.
pub(crate) fn as_column<'v>(
    cx: &EvalCx<'v>,
    from: &ExprType,
    v: Val<'v>,
    column: &ColumnType,
    marker: bool,
) -> Val<'v> {
    let number = is_number(&v) && !v.is_null();
    match column.kind {
        TypeKind::Time(_) if number || matches!(v, Val::Bytes(_)) => rounded(cx, v, from, column),
        TypeKind::DateTime(_) | TypeKind::Timestamp(_) if number && !marker => {
            rounded(cx, v, from, column)
        }
        _ => v,
    }
}

/// `v` with as many digits as a TIME, DATETIME or TIMESTAMP column has; as it is where it has no more, or is no moment at all.
pub(crate) fn rounded<'v>(
    cx: &EvalCx<'v>,
    v: Val<'v>,
    from: &ExprType,
    column: &ColumnType,
) -> Val<'v> {
    let fsp = column.fsp();
    let cuts = cx.env().sql_mode().has(SqlMode::TIME_TRUNCATE_FRACTIONAL);
    match Class::of(column) {
        Class::Time => match time_side(cx, (&v, from)) {
            Some(t) if t.truncate(fsp).micros() == t.micros() => v,
            Some(t) if cuts => Val::Time(t.truncate(fsp)),
            Some(t) => Val::Time(t.round(0, fsp).0),
            None => v,
        },
        Class::DateTime => match date_side(cx, (&v, from), column) {
            Some(d) if d.truncate(fsp).packed() == d.packed() => v,
            Some(d) if cuts => Val::DateTime(d.truncate(fsp)),
            Some(d) => d.round(0, fsp).map_or(v, Val::DateTime),
            _ => v,
        },
        _ => v,
    }
}

/// Whether `e` is a parameter of a prepared statement.
pub(crate) fn is_marker(cx: &EvalCx<'_>, e: &Expr) -> bool {
    matches!(e.kind, ExprKind::Param(n) if cx.st.params.is_marker(n))
}

/// The order of an operand and a member of its list. Texts among times are as much of a time as they are; with `zero`, one that is none
/// is 00:00:00.
fn member_order(
    cx: &EvalCx<'_>,
    kind: CmpKind,
    x: (&Val<'_>, &ExprType),
    member: (&Val<'_>, &ExprType),
    zero: bool,
) -> Option<Ordering> {
    let Val::Bytes(_) = member.0 else {
        return order(cx, kind, x, member);
    };
    if kind != CmpKind::Time {
        return order(cx, kind, x, member);
    }
    let found = convert::to_time(cx, member.0, member.1);
    let found = found.or_else(|| zero.then(Time::default))?;
    Some(
        convert::to_time(cx, x.0, x.1)?
            .micros()
            .cmp(&found.micros()),
    )
}

/// Error 1525 where one side is a constant text that is no date, and the other a date.
pub(crate) fn refuse_no_date(
    cx: &EvalCx<'_>,
    sides: [&Expr; 2],
    values: [&Val<'_>; 2],
) -> Result<(), SqlError> {
    for (text, date) in [(0, 1), (1, 0)] {
        let (e, other) = (sides[text], &sides[date].ty);
        let constant = e.ty.class() == Class::String
            && e.ty.coercibility != Coercibility::SysConst
            && other.class().is_temporal()
            && !values[date].is_null()
            && !is_marker(cx, e);
        let variable = |e: &Expr| matches!(e.kind, ExprKind::UserVar(_) | ExprKind::SysVar { .. });
        if constant && nfold_plan::bind::is_constant(e) && !e.any(&mut |e| variable(e)) {
            refuse_text(cx, values[text], &e.ty, &other.col)?;
        }
    }
    Ok(())
}

/// Error 1525 where `v`, a constant to be compared with values of type `other`, is a text that is no date, or none that the SQL mode
/// allows.
pub(crate) fn refuse_text(
    cx: &EvalCx<'_>,
    v: &Val<'_>,
    from: &ExprType,
    other: &ColumnType,
) -> Result<(), SqlError> {
    let Val::Bytes(text) = as_text(cx, v.clone(), from) else {
        return Ok(());
    };
    let flags = convert::Asked::by_mode(cx, false).flags;
    if parse::parse_datetime(&text, flags).is_ok() {
        return Ok(());
    }
    let kind = match other.kind {
        TypeKind::Date => "DATE",
        TypeKind::Timestamp(_) => "TIMESTAMP",
        _ => "DATETIME",
    };
    let shown = String::from_utf8_lossy(&text);
    Err(SqlError::new(ErrorCode::ER_WRONG_VALUE, &[&kind, &shown]))
}

/// [`as_column`] where `e` is a constant, and the other side a column.
fn beside<'v>(cx: &EvalCx<'v>, e: &Expr, v: Val<'v>, other: &Expr) -> Val<'v> {
    let column = matches!(other.kind, ExprKind::Column(_) | ExprKind::Outer { .. });
    if column && other.ty.class().is_temporal() && !e.ty.class().is_temporal() {
        let constant = nfold_plan::bind::is_constant(e);
        return if constant {
            as_column(cx, &e.ty, v, &other.ty.col, is_marker(cx, e))
        } else {
            v
        };
    }
    v
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

/// `x IN (…)` so far: found, or a NULL that may be it.
fn in_result(found: bool, unknown: bool, negated: bool) -> Option<bool> {
    if found {
        Some(!negated)
    } else if unknown {
        None
    } else {
        Some(negated)
    }
}

/// Whether it is a text that is no date.
pub(crate) fn is_no_date(cx: &EvalCx<'_>, v: &Val<'_>, ty: &ExprType) -> bool {
    matches!(v, Val::Bytes(_)) && convert::to_datetime(cx, v, ty).is_none()
}

/// Whether the members of a list that is compared as dates are constants, and none is a DATETIME: beside a DATE what is no date is not even
/// the zero date there.
pub(crate) fn constant_dates<'e>(mut members: impl Iterator<Item = &'e Expr>) -> bool {
    members.all(|m| m.ty.class() != Class::DateTime && nfold_plan::bind::is_constant(m))
}

/// A list compared as times. What is no time is 00:00:00 among constants, and as the operand beside what is not constant; otherwise it
/// is equal to nothing.
fn in_times<'a>(
    cx: &EvalCx<'a>,
    x: (&Val<'_>, &ExprType),
    list: &'a [(CmpKind, Expr)],
    negated: bool,
) -> Result<Option<bool>, SqlError> {
    let constant = list.iter().all(|(_, m)| nfold_plan::bind::is_constant(m));
    let found = convert::to_time(cx, x.0, x.1);
    let left = found.unwrap_or_default().micros();
    let mut unknown = false;
    for (_, member) in list {
        let v = as_text(cx, cx.val(member)?, &member.ty);
        if v.is_null() {
            unknown = true;
            continue;
        }
        let equal = match convert::to_time(cx, &v, &member.ty) {
            _ if found.is_none() && constant => false,
            Some(time) => time.micros() == left,
            None if matches!(v, Val::Bytes(_)) => constant && left == 0,
            None => order(cx, CmpKind::Double, x, (&v, &member.ty)) == Some(Ordering::Equal),
        };
        if equal {
            return Ok(Some(!negated));
        }
    }
    Ok(in_result(false, unknown, negated))
}

pub(super) fn eval<'a>(cx: &EvalCx<'a>, e: &'a Expr) -> Result<Option<bool>, SqlError> {
    match &e.kind {
        ExprKind::Compare { op, kind, sides } => {
            let (x, y) = (cx.val(&sides[0])?, cx.val(&sides[1])?);
            if *op == BinaryOp::NullSafeEq && (x.is_null() || y.is_null()) {
                return Ok(Some(x.is_null() && y.is_null()));
            }
            let (x, y) = if matches!(kind, CmpKind::DateTime | CmpKind::Time) {
                let x = beside(cx, &sides[0], x, &sides[1]);
                let y = beside(cx, &sides[1], y, &sides[0]);
                let x = settled(cx, &sides[0], x, &sides[1].ty.col);
                let y = settled(cx, &sides[1], y, &sides[0].ty.col);
                match (x, y) {
                    (Some(x), Some(y)) => (x, y),
                    _ => return Ok(None),
                }
            } else {
                (x, y)
            };
            if *kind == CmpKind::DateTime {
                refuse_no_date(cx, [&sides[0], &sides[1]], [&x, &y])?;
            }
            let (x, y) = ((&x, &sides[0].ty), (&y, &sides[1].ty));
            Ok(order(cx, *kind, x, y).map(|o| holds(*op, o)))
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
            let x = cx.val(&parts[0])?;
            let bound = |n: usize| -> Result<Option<Ordering>, SqlError> {
                let v = beside(cx, &parts[n], cx.val(&parts[n])?, &parts[0]);
                let x = (&x, &parts[0].ty);
                Ok(order(cx, kinds[n - 1], x, (&v, &parts[n].ty)))
            };
            let low = bound(1)?.map(Ordering::is_ge);
            let high = bound(2)?.map(Ordering::is_le);
            let both = match (low, high) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => None,
            };
            Ok(both.map(|b| b != *negated))
        }
        ExprKind::In {
            expr,
            list,
            negated,
        } => {
            let x = as_text(cx, cx.val(expr)?, &expr.ty);
            if x.is_null() {
                return Ok(None);
            }
            let mut unknown = false;
            let times = list.len() > 1 && list.iter().all(|(k, _)| *k == CmpKind::Time);
            if times {
                return in_times(cx, (&x, &expr.ty), list, *negated);
            }
            for (kind, member) in list {
                let v = as_text(cx, cx.val(member)?, &member.ty);
                let zero = list.len() > 1;
                let none = *kind == CmpKind::DateTime
                    && zero
                    && (is_no_date(cx, &x, &expr.ty) || is_no_date(cx, &v, &member.ty));
                let dates = expr.ty.class() != Class::DateTime;
                if none && dates && constant_dates(list.iter().map(|(_, m)| m)) {
                    continue;
                }
                match member_order(cx, *kind, (&x, &expr.ty), (&v, &member.ty), zero) {
                    Some(Ordering::Equal) => return Ok(Some(!negated)),
                    None => unknown = true,
                    Some(_) => {}
                }
            }
            Ok(in_result(false, unknown, *negated))
        }
        ExprKind::InRows {
            left,
            rows,
            negated,
        } => {
            let mut unknown = false;
            for row in rows {
                match row_equal(cx, left, row)? {
                    Some(true) => return Ok(Some(!negated)),
                    None => unknown = true,
                    Some(false) => {}
                }
            }
            Ok(in_result(false, unknown, *negated))
        }
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
            Ok(Some(
                collation.known().like(&text, &pattern, escape) != *negated,
            ))
        }
        _ => unreachable!("only comparisons come here"),
    }
}

/// The escape character of LIKE: a NULL stands for the backslash, an empty string for none.
pub fn escape_char(text: Option<&[u8]>) -> Option<char> {
    match text {
        None => Some('\\'),
        Some(t) => String::from_utf8_lossy(t).chars().next(),
    }
}

fn row_equal<'a>(
    cx: &EvalCx<'a>,
    left: &'a [Expr],
    row: &'a [(CmpKind, Expr)],
) -> Result<Option<bool>, SqlError> {
    let mut result = Some(true);
    for (l, (kind, r)) in left.iter().zip(row) {
        match order(cx, *kind, (&cx.val(l)?, &l.ty), (&cx.val(r)?, &r.ty)) {
            Some(Ordering::Equal) => {}
            Some(_) => return Ok(Some(false)),
            None => result = None,
        }
    }
    Ok(result)
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

/// The members of a list parameter in a form that is searched, not walked.
#[derive(Debug)]
enum ListSet {
    /// Sorted, without duplicates.
    Ints(Vec<i128>),
    /// Sorted sort keys.
    Keys(Vec<Vec<u8>>),
    /// Compared one by one.
    Walk,
}

#[derive(Debug)]
struct PreparedList {
    set: ListSet,
    has_null: bool,
}

/// Prepared lists of one execution, by the address of their expression.
#[derive(Debug, Default)]
pub struct ListCache {
    lists: RefCell<FxHashMap<usize, Rc<PreparedList>>>,
    /// Where each `RAND(constant)` stands in its sequence.
    pub(crate) sequences: RefCell<FxHashMap<usize, [u64; 2]>>,
}

impl ListCache {
    /// Forgets them, for the next execution.
    pub fn clear(&self) {
        self.lists.borrow_mut().clear();
        self.sequences.borrow_mut().clear();
    }
}

/// Type that member `i` of a list parameter is read as: that of its own value.
pub(crate) fn member_type(cx: &EvalCx<'_>, list: u32, i: usize, v: &Val<'_>) -> ExprType {
    match v {
        Val::Bytes(b) if cx.st.params.is_binary_member(list, i) => {
            nfold_plan::bind::hex_type(b.len() as u64)
        }
        Val::Bytes(b) => ExprType::string(
            b.len() as u64,
            cx.env().collation(),
            Coercibility::Coercible,
            false,
        ),
        Val::Decimal(_) => ExprType::decimal(65, 30, false),
        Val::Double(_) | Val::Float(_) => ExprType::double(false),
        Val::Null => ExprType::null(),
        _ => ExprType::bigint(false),
    }
}

fn prepare_list(cx: &EvalCx<'_>, kind: CmpKind, list: u32) -> PreparedList {
    let (members, _) = cx.st.params.list(list);
    let has_null = members.clone().any(|v| v.is_null());
    let set = match kind {
        CmpKind::Int => {
            let mut all: Vec<i128> = members
                .enumerate()
                .filter_map(|(i, v)| {
                    let v = Val::from_ref(v);
                    convert::to_integer(cx, &v, &member_type(cx, list, i, &v))
                })
                .collect();
            all.sort_unstable();
            all.dedup();
            ListSet::Ints(all)
        }
        CmpKind::String(collation) => {
            let mut all: Vec<Vec<u8>> = members
                .enumerate()
                .filter_map(|(i, v)| {
                    let v = Val::from_ref(v);
                    let ty = member_type(cx, list, i, &v);
                    let text = convert::to_text(cx, v, &ty, collation)?;
                    let mut key = Vec::new();
                    collation.known().sort_key(&text, &mut key);
                    Some(key)
                })
                .collect();
            all.sort_unstable();
            all.dedup();
            ListSet::Keys(all)
        }
        _ => ListSet::Walk,
    };
    PreparedList { set, has_null }
}

/// How a member of type `ty` compares with `left`: where members are of several kinds, each in its own way.
fn member_kind(cx: &EvalCx<'_>, left: &Expr, ty: &ExprType, else_as: CmpKind) -> CmpKind {
    let side = match left.kind {
        ExprKind::Column(_) | ExprKind::Outer { .. } => Operand::Column,
        _ => Operand::Other,
    };
    let sides = [side, Operand::Constant];
    nfold_plan::collate::comparison(&left.ty, ty, sides, cx.env().collation(), "in")
        .unwrap_or(else_as)
}

fn in_param<'a>(
    cx: &EvalCx<'a>,
    e: &'a Expr,
    left: &'a [Expr],
    kinds: &[CmpKind],
    list: u32,
    negated: bool,
) -> Result<Option<bool>, SqlError> {
    if let [expr] = left {
        let x = cx.val(expr)?;
        if x.is_null() {
            return Ok(None);
        }
        if let (CmpKind::DateTime, 1) = (kinds[0], cx.st.params.list(list).0.len()) {
            let only = cx.st.params.list(list).0.next().map(Val::from_ref);
            let only = only.unwrap_or_default();
            if expr.ty.class().is_temporal() {
                refuse_text(cx, &only, &member_type(cx, list, 0, &only), &expr.ty.col)?;
            }
        }
        let id = std::ptr::from_ref(e) as usize;
        let known = cx.st.lists.lists.borrow().get(&id).cloned();
        let prepared = known.unwrap_or_else(|| {
            let made = Rc::new(prepare_list(cx, kinds[0], list));
            cx.st.lists.lists.borrow_mut().insert(id, made.clone());
            made
        });
        let found = match (&prepared.set, kinds[0]) {
            (ListSet::Ints(all), _) => {
                convert::to_integer(cx, &x, &expr.ty).is_some_and(|v| all.binary_search(&v).is_ok())
            }
            (ListSet::Keys(all), CmpKind::String(collation)) => {
                let text = convert::to_text(cx, x, &expr.ty, collation).unwrap_or_default();
                let mut key = Vec::with_capacity(text.len() * 2);
                collation.known().sort_key(&text, &mut key);
                all.binary_search(&key).is_ok()
            }
            _ => {
                let (members, _) = cx.st.params.list(list);
                let several = members.len() > 1;
                members.map(Val::from_ref).enumerate().any(|(i, m)| {
                    let ty = member_type(cx, list, i, &m);
                    let kind = member_kind(cx, expr, &ty, kinds[0]);
                    let dates = kind == CmpKind::DateTime && expr.ty.class() == Class::Date;
                    if several && dates && is_no_date(cx, &m, &ty) {
                        return false;
                    }
                    let m = match expr.kind {
                        ExprKind::Column(_) | ExprKind::Outer { .. } if !several => {
                            as_column(cx, &ty, m, &expr.ty.col, false)
                        }
                        _ => m,
                    };
                    let (x, m) = ((&x, &expr.ty), (&m, &ty));
                    let found = match several {
                        true => member_order(cx, kind, x, m, true),
                        false => order(cx, kind, x, m),
                    };
                    found == Some(Ordering::Equal)
                })
            }
        };
        return Ok(in_result(found, prepared.has_null, negated));
    }
    let values: Vec<Val<'a>> = left.iter().map(|l| cx.val(l)).collect::<Result<_, _>>()?;
    let (members, width) = cx.st.params.list(list);
    let mut unknown = false;
    let members: Vec<_> = members.collect();
    let width = width.max(1);
    for (r, row) in members.chunks(width).enumerate() {
        let mut result = Some(true);
        for (i, (((x, l), m), kind)) in values.iter().zip(left).zip(row).zip(kinds).enumerate() {
            let m = Val::from_ref(*m);
            let ty = member_type(cx, list, r * width + i, &m);
            match order(cx, member_kind(cx, l, &ty, *kind), (x, &l.ty), (&m, &ty)) {
                Some(Ordering::Equal) => {}
                Some(_) => {
                    result = Some(false);
                    break;
                }
                None => result = None,
            }
        }
        match result {
            Some(true) => return Ok(Some(!negated)),
            None => unknown = true,
            Some(false) => {}
        }
    }
    Ok(in_result(false, unknown, negated))
}
