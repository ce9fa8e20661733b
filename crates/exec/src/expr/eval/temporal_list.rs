//! Converts strings, numbers and constants to temporal values where they are compared with dates
//! and times. MySQL's warnings about texts in GREATEST, LEAST and IN name an item and a row.

use std::cell::RefCell;

use nfold_plan::SqlMode;
use nfold_plan::expr::{
    Class, CmpKind, Coercibility, Expr, ExprKind, ExprType, ItemName, is_constant,
};
use nfold_types::convert::number;
use nfold_types::temporal::parse;
use nfold_types::{
    CollationId, ColumnType, Date, DateTime, ErrorCode, Level, SqlError, Time, TypeKind, Value,
    ValueRef, Warnings,
};

use super::compare::{as_text, is_exact_constant, is_number};
use super::{EvalCx, StmtState, Val, convert};

/// The bytes of an item's name that a warning shows.
const NAME_BYTES: usize = 192;

/// Converts one side of a TIME comparison. A string must be a complete valid time.
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

/// Converts one side of a date comparison whose other side has type `other`.
///
/// An invalid string becomes the zero date. An invalid number returns `None`, and the caller
/// compares both sides as numbers. If `other` is DATE, the time part of a number is dropped. A YEAR
/// becomes a date with month and day 0.
pub(crate) fn date_side(
    cx: &EvalCx<'_>,
    v: (&Val<'_>, &ExprType),
    other: &ColumnType,
) -> Option<DateTime> {
    match v.0 {
        // Stored dates are compared unchanged, even those that are not on the calendar.
        Val::Date(date) => return Some(date.at_midnight()),
        Val::DateTime(date) => return Some(*date),
        _ => {}
    }
    if !is_number(v.0) || v.1.col.is_enum_or_set() {
        let date = other.kind == TypeKind::Date && !matches!(v.0, Val::Time(_));
        let asked = convert::TemporalTarget::by_mode(cx, date);
        return Some(convert::to_asked(cx, v.0, v.1, asked).unwrap_or(DateTime::ZERO));
    }
    if let Some(year) = convert::year_alone(v.0, v.1) {
        return Some(year);
    }
    // The number 0 is the zero date in every SQL mode.
    let zero = match v.0 {
        Val::Int(0) | Val::UInt(0) => true,
        Val::Decimal(d) => d.is_zero(),
        Val::Double(d) => *d == 0.0,
        _ => false,
    };
    if zero {
        return Some(DateTime::ZERO);
    }
    let asked = convert::TemporalTarget::by_mode(cx, false);
    let found = convert::to_asked(cx, v.0, v.1, asked)?;
    Some(match other.kind {
        TypeKind::Date => found.date().at_midnight(),
        _ => found,
    })
}

/// Converts `v` to a temporal value if `e` is a parameter of a prepared statement and `other` is a
/// temporal type, independent of the SQL mode. Returns `None` for an invalid value: that is no
/// error, but the comparison matches nothing.
pub(crate) fn comparable<'v>(
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
    let zero = matches!(v, Val::Int(0) | Val::UInt(0));
    let date = other.kind == TypeKind::Date && is_number(&v) && !zero;
    convert::to_asked(cx, &v, &e.ty, convert::TemporalTarget::any(date)).map(Val::DateTime)
}

/// How a member of an IN list with several members takes part in a temporal comparison.
pub(crate) enum Listed<'v> {
    Value(Val<'v>),
    /// The member equals no value.
    Nothing,
    /// The member counts as NULL.
    Unknown,
}

/// Converts a number in an IN list with several members to the temporal type `left`. `marker` says
/// that the member is a parameter of a prepared statement; then strings are converted as well.
///
/// An invalid value becomes the zero value for DATETIME, and equals nothing for DATE. A zero date
/// equals nothing for DATE either, but the day or month of a number may be zero there in every SQL
/// mode. An invalid DATETIME parameter counts as NULL.
pub(crate) fn listed_time_point<'v>(
    cx: &EvalCx<'_>,
    v: Val<'v>,
    from: &ExprType,
    left: &ColumnType,
    marker: bool,
) -> Listed<'v> {
    let number = is_number(&v) && !from.col.is_enum_or_set();
    if !Class::of(left).is_temporal()
        || v.is_null()
        || !(number || marker && matches!(v, Val::Bytes(_)))
    {
        return Listed::Value(v);
    }
    let v = match v {
        Val::UInt(n) => Val::Int(n as i64),
        v => v,
    };
    let date = left.kind == TypeKind::Date;
    let dated = number && !marker && matches!(Class::of(left), Class::Date | Class::DateTime);
    if dated && !date && matches!(v, Val::Int(0)) {
        return Listed::Value(Val::DateTime(DateTime::ZERO));
    }
    let found = match Class::of(left) {
        Class::Time => {
            let found = super::temporal::listed_time(cx, &v, from);
            let zero = (!number).then(Time::default);
            found.or(zero).map(Val::Time)
        }
        Class::Date | Class::DateTime => {
            // The parameter 0 is the zero date.
            let days = date && number && !(marker && matches!(v, Val::Int(0)));
            let asked = match dated && date {
                true => convert::TemporalTarget::any(true),
                false => convert::TemporalTarget::by_mode(cx, days),
            };
            convert::to_asked(cx, &v, from, asked).map(Val::DateTime)
        }
        _ => return Listed::Value(v),
    };
    let zero = |v: &Val<'_>| matches!(v, Val::DateTime(d) if d.date() == Date::ZERO);
    match found {
        Some(v) if date && !marker && zero(&v) => Listed::Nothing,
        Some(Val::DateTime(d)) if date && number && !marker => Listed::Value(Val::Date(d.date())),
        Some(v) => Listed::Value(v),
        None if marker && Class::of(left) == Class::DateTime => Listed::Unknown,
        None if marker && Class::of(left) == Class::Time => {
            Listed::Value(Val::Time(Time::default()))
        }
        None if Class::of(left) == Class::DateTime => Listed::Value(Val::DateTime(DateTime::ZERO)),
        None => Listed::Nothing,
    }
}

/// Converts one column of a row in `(a, b) IN ((…), (…))` to the type of its left side: to an
/// integer for integer types, and numbers to dates for date types. An invalid number becomes the
/// zero date.
pub(crate) fn row_member<'v>(
    cx: &EvalCx<'_>,
    v: Val<'v>,
    from: &ExprType,
    left: &ColumnType,
) -> Val<'v> {
    match Class::of(left) {
        Class::Int if !matches!(v, Val::Null | Val::Int(_) | Val::UInt(_)) => {
            let whole = convert::to_integer(cx, &v, from).unwrap_or_default();
            match i64::try_from(whole) {
                Ok(n) => Val::Int(n),
                Err(_) => Val::UInt(whole.clamp(0, u64::MAX.into()) as u64),
            }
        }
        Class::Date | Class::DateTime
            if is_number(&v) && !v.is_null() && !from.col.is_enum_or_set() =>
        {
            let asked = convert::TemporalTarget::by_mode(cx, false);
            let found = convert::to_asked(cx, &v, from, asked).unwrap_or(DateTime::ZERO);
            match left.kind {
                TypeKind::Date => Val::Date(found.date()),
                _ => Val::DateTime(found),
            }
        }
        _ => v,
    }
}

/// The bounds of a BETWEEN as numbers. `None`: the bound is NULL.
pub(crate) type NumberBounds = [Option<f64>; 2];

/// Returns the numeric bounds of a BETWEEN over a temporal column, or `None` if the bounds are
/// compared by their kinds.
pub(crate) fn number_bounds(
    cx: &EvalCx<'_>,
    parts: &[Expr; 3],
    kinds: &[CmpKind; 2],
) -> Result<Option<NumberBounds>, SqlError> {
    let [left, low, high] = parts;
    let column = matches!(left.kind, ExprKind::Column(_) | ExprKind::Outer { .. });
    if !column || !left.ty.class().is_temporal() {
        return Ok(None);
    }
    let by_numbers = match kinds {
        [CmpKind::Double, CmpKind::Double] => true,
        [CmpKind::Time, CmpKind::Time] => left.ty.class() == Class::Time,
        [CmpKind::DateTime, CmpKind::DateTime] => left.ty.class() != Class::Time,
        _ => false,
    };
    match by_numbers {
        true => numbers_between(cx, &left.ty.col, [low, high]),
        false => Ok(None),
    }
}

/// Returns the bounds of a BETWEEN over a temporal column of type `column` as numbers, or `None` if
/// both are compared as temporal values.
///
/// MySQL converts constant bounds to the column's type if a number is among them, or if the column
/// is a TIME. Only if it converts both, it compares temporal values. Otherwise all are numbers: a
/// converted TIME or DATE has its usual number, and a converted DATETIME its packed internal form,
/// which is above all other numbers.
pub(crate) fn numbers_between(
    cx: &EvalCx<'_>,
    column: &ColumnType,
    bounds: [&Expr; 2],
) -> Result<Option<NumberBounds>, SqlError> {
    let time = Class::of(column) == Class::Time;
    let numbers = bounds.iter().any(|e| e.ty.class().is_number());
    if !numbers && !time {
        return Ok(None);
    }
    let constants = bounds.map(is_exact_constant);
    let fits = |e: &Expr| match e.ty.class() {
        Class::Date | Class::DateTime => numbers && !(time && constants == [true; 2]),
        Class::Time => time,
        Class::String => numbers || time,
        class => class.is_number() || class == Class::Null && numbers,
    };
    let varies =
        (bounds.iter().zip(constants)).any(|(e, constant)| !constant && e.ty.class().is_temporal());
    if constants == [false; 2]
        || !numbers && constants != [true; 2]
        || varies
        || !bounds.iter().all(|e| fits(e) && !is_marker(cx, e))
    {
        return Ok(None);
    }
    let mut converted = [None; 2];
    let mut values = [Val::Null, Val::Null];
    for (i, e) in bounds.into_iter().enumerate() {
        let v = cx.val(e)?;
        values[i] = match constants[i] && !e.ty.class().is_temporal() {
            true => as_column(cx, &e.ty, v, column, false),
            false => v,
        };
        if constants[i] {
            let v = (&values[i], &e.ty);
            converted[i] = cx.silently(|cx| column_number(cx, v, column));
        }
    }
    let [low, high] = bounds.map(|e| e.ty.class() == Class::String);
    let none = converted.iter().all(Option::is_none) && low && high;
    if none || converted.iter().all(Option::is_some) || !numbers && values.iter().any(Val::is_null)
    {
        return Ok(None);
    }
    let any = converted.iter().any(Option::is_some);
    let mut found = [None; 2];
    for (i, e) in bounds.into_iter().enumerate() {
        let own = || match &values[i] {
            text @ Val::Bytes(_) if any => convert::to_integer(cx, text, &e.ty).map(|n| n as f64),
            v => convert::to_f64(cx, v, &e.ty),
        };
        found[i] = converted[i].or_else(own);
    }
    Ok(Some(found))
}

/// The years of TIMESTAMP values.
const TIMESTAMP_YEARS: std::ops::RangeInclusive<u32> = 1970..=2038;

/// The number of a constant that MySQL converts to a temporal column of type `column`. `None`: the
/// constant is no value of this type.
fn column_number(cx: &EvalCx<'_>, v: (&Val<'_>, &ExprType), column: &ColumnType) -> Option<f64> {
    match (v.0, Class::of(column)) {
        (Val::Null, _) => return None,
        (Val::UInt(n), Class::Time) if i64::try_from(*n).is_err() => return None,
        (_, Class::Time) => {
            let ty = ExprType::new(column.clone(), true);
            return time_side(cx, v).and_then(|t| convert::to_f64(cx, &Val::Time(t), &ty));
        }
        _ => {}
    }
    let flags = convert::TemporalTarget::by_mode(cx, false).flags;
    let d = match v.0 {
        Val::Bytes(text) if !parse::parse_datetime(text, flags).is_ok_and(|d| !d.truncated) => None,
        Val::Bytes(_) => convert::to_datetime(cx, v.0, v.1),
        _ => date_side(cx, v, column),
    }?;
    let years = TIMESTAMP_YEARS.contains(&d.date().year()) || d.date() == Date::ZERO;
    if matches!(column.kind, TypeKind::Timestamp(_)) && !years {
        return None;
    }
    let same = matches!(column.kind, TypeKind::DateTime(_)) && v.1.class() == Class::DateTime;
    Some(match column.kind {
        TypeKind::Date => d.date().to_number() as f64,
        _ if same => d.to_number() as f64,
        _ => d.packed() as f64,
    })
}

/// Converts a string that is not constant to a date without time, for a comparison with a DATE that
/// is not constant either. `other` is the type of the other side.
pub(crate) fn day_of_text<'v>(
    cx: &EvalCx<'v>,
    e: &Expr,
    v: Val<'v>,
    other: &ColumnType,
) -> Val<'v> {
    let text = matches!(v, Val::Bytes(_)) && !e.ty.col.is_enum_or_set();
    if !text || other.kind != TypeKind::Date || nfold_plan::expr::is_constant(e) {
        return v;
    }
    let asked = convert::TemporalTarget::by_mode(cx, true);
    match convert::to_asked(cx, &v, &e.ty, asked) {
        Some(d) => Val::Date(d.date()),
        None => Val::Date(DateTime::ZERO.date()),
    }
}

/// Rounds a constant to the fractional digits of the column that it is compared with: strings and
/// numbers for a TIME column, numbers for a DATETIME column. Temporal constants keep all digits.
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

/// Converts a constant that is compared with a YEAR column. Two-digit numbers mean 1970 to 2069.
/// The string `0` means 2000, unless it has four characters. A date counts as its year. Other
/// numbers stay unchanged.
pub(crate) fn year_constant<'v>(
    cx: &EvalCx<'v>,
    v: &Val<'v>,
    ty: &ExprType,
    marker: bool,
) -> Val<'v> {
    let temporal = matches!(v, Val::Date(_) | Val::DateTime(_) | Val::Time(_));
    if temporal && !marker {
        let d = convert::to_datetime(cx, v, ty);
        return d.map_or(Val::Null, |d| Val::Int(i64::from(d.date().year())));
    }
    let digit = |t: &[u8]| t.len() != 4 && t.first().is_some_and(u8::is_ascii_digit);
    let short = matches!(v, Val::Bytes(t) if digit(t.trim_ascii()));
    let whole = match v {
        Val::Double(f) => convert::to_integer(cx, &Val::Double(f.trunc()), ty),
        // As when it is stored in the column.
        Val::Bytes(text) if !convert::is_wide(ty) && !convert::binary_number(ty) => {
            Some(number::parse_rounded_integer(text).value)
        }
        v => convert::to_integer(cx, v, ty),
    };
    let Some(n) = whole else {
        return Val::Null;
    };
    let below = match v {
        Val::Double(f) => *f < 0.0,
        Val::Decimal(d) => d.is_negative(),
        _ => false,
    };
    Val::Int(match n {
        _ if temporal => n as i64,
        // A negative fraction truncates to 0, but is no year.
        0 if below => -1,
        0 if short => 2000,
        1..=69 => 2000 + n as i64,
        70..=99 => 1900 + n as i64,
        _ => n.clamp(i64::MIN.into(), i64::MAX.into()) as i64,
    })
}

/// Converts the only member of an IN list for comparison with a column of type `column`. MySQL
/// treats such a list as `=`, and converts no member of a longer list.
pub(crate) fn lone_member<'v>(
    cx: &EvalCx<'v>,
    from: &ExprType,
    v: Val<'v>,
    column: &ColumnType,
) -> (Val<'v>, ExprType) {
    if convert::is_year(column) && !v.is_null() {
        let year = year_constant(cx, &v, from, false);
        return (year, ExprType::bigint(false));
    }
    (as_column(cx, from, v, column, false), from.clone())
}

/// Rounds or truncates `v` to the fractional digits of a TIME, DATETIME or TIMESTAMP column.
/// Returns it unchanged if it has no more digits, or is no temporal value.
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

/// Refuses a comparison of a temporal value with a constant string that is no valid date.
///
/// # Errors
/// 1525.
pub(crate) fn refuse_no_date(
    cx: &EvalCx<'_>,
    sides: [&Expr; 2],
    values: [&Val<'_>; 2],
) -> Result<(), SqlError> {
    for (text, date) in [(0, 1), (1, 0)] {
        refuse_constant(cx, sides[text], values[text], &sides[date].ty.col)?;
    }
    Ok(())
}

/// Refuses `e`, whose value is `v`, in a comparison with values of type `other` if it is a constant
/// string that is no valid date.
///
/// # Errors
/// 1525.
pub(crate) fn refuse_constant(
    cx: &EvalCx<'_>,
    e: &Expr,
    v: &Val<'_>,
    other: &ColumnType,
) -> Result<(), SqlError> {
    let constant = e.ty.class() == Class::String
        && e.ty.coercibility != Coercibility::SysConst
        && Class::of(other).is_temporal()
        && !is_marker(cx, e);
    let variable = |e: &Expr| matches!(e.kind, ExprKind::UserVar(_) | ExprKind::SysVar { .. });
    if constant && nfold_plan::expr::is_constant(e) && !e.any(&mut |e| variable(e)) {
        refuse_text(cx, v, &e.ty, other)?;
    }
    Ok(())
}

/// Refuses a constant string that is no date, or a date that the SQL mode forbids, in a comparison
/// with values of type `other`.
///
/// # Errors
/// 1525; 1292 in a statement that changes rows in strict mode.
pub(crate) fn refuse_text(
    cx: &EvalCx<'_>,
    v: &Val<'_>,
    from: &ExprType,
    other: &ColumnType,
) -> Result<(), SqlError> {
    let Val::Bytes(text) = as_text(cx, v.clone(), from) else {
        return Ok(());
    };
    let flags = convert::TemporalTarget::by_mode(cx, false).flags;
    if parse::parse_datetime(&text, flags).is_ok() {
        return Ok(());
    }
    if cx.st.warnings.borrow().is_strict() {
        // In strict mode the warning of the conversion is an error, and comes first.
        let date = other.kind == TypeKind::Date;
        let asked = convert::TemporalTarget::by_mode(cx, date);
        convert::to_asked(cx, v, from, asked);
        if let Some(error) = cx.st.warnings.borrow_mut().take_raised() {
            return Err(error);
        }
    }
    let kind = match other.kind {
        TypeKind::Date => "DATE",
        TypeKind::Timestamp(_) => "TIMESTAMP",
        _ => "DATETIME",
    };
    let shown = convert::shown(cx, &text, from);
    Err(SqlError::new(ErrorCode::ER_WRONG_VALUE, &[&kind, &shown]))
}

/// Applies [`as_column`] if `e` is a constant and `other` is a temporal column.
pub(crate) fn beside<'v>(cx: &EvalCx<'v>, e: &Expr, v: Val<'v>, other: &Expr) -> Val<'v> {
    let column = matches!(other.kind, ExprKind::Column(_) | ExprKind::Outer { .. });
    if column && other.ty.class().is_temporal() && !e.ty.class().is_temporal() {
        let constant = nfold_plan::expr::is_constant(e);
        return if constant {
            as_column(cx, &e.ty, v, &other.ty.col, is_marker(cx, e))
        } else {
            v
        };
    }
    v
}

/// Whether a value is a string that is no valid date.
pub(crate) fn is_no_date(cx: &EvalCx<'_>, v: &Val<'_>, ty: &ExprType) -> bool {
    matches!(v, Val::Bytes(_)) && convert::to_datetime(cx, v, ty).is_none()
}

/// Whether all members of an IN list are constants and none is a DATETIME. In such a list beside a
/// DATE, an invalid date equals nothing, not even the zero date.
pub(crate) fn constant_dates<'e>(mut members: impl Iterator<Item = &'e Expr>) -> bool {
    members.all(|m| m.ty.class() != Class::DateTime && nfold_plan::expr::is_constant(m))
}

/// Converts a text beside a DATETIME. Warning 1292 says that it is no value for the item with this
/// name; without a name, that it was truncated.
pub(crate) fn datetime_beside(
    cx: &EvalCx<'_>,
    v: &Val<'_>,
    ty: &ExprType,
    item: Option<&str>,
) -> Option<DateTime> {
    let Val::Bytes(text) = v else {
        return convert::to_datetime(cx, v, ty);
    };
    let raised = RefCell::new(Warnings::default());
    let state = StmtState {
        warnings: &raised,
        ..*cx.st
    };
    let found = convert::to_datetime(&EvalCx { st: &state, ..*cx }, v, ty);
    for warning in raised.borrow().list() {
        let mut error = SqlError::with_message(warning.code, warning.message.clone());
        if warning.code == ErrorCode::ER_TRUNCATED_WRONG_VALUE {
            error.message = about_item(cx, text, ty, item).into();
        }
        let mut warnings = cx.st.warnings.borrow_mut();
        warnings.push_error(Level::Warning, &error);
    }
    found
}

fn about_item(cx: &EvalCx<'_>, text: &[u8], ty: &ExprType, item: Option<&str>) -> String {
    let shown = convert::shown(cx, text, ty);
    match item {
        None => format!("Truncated incorrect datetime value: '{shown}'"),
        Some(name) => {
            let name = &name[..name.floor_char_boundary(NAME_BYTES)];
            let row = cx.st.counts.current(cx.st.scope);
            format!("Incorrect datetime value: '{shown}' for column '{name}' at row {row}")
        }
    }
}

/// The name of an operand of IN: that of a column, or the text of a literal.
fn operand_name(cx: &EvalCx<'_>, e: &Expr) -> Option<String> {
    match &e.kind {
        _ if e.ty.item_name.is_known() => Some(e.ty.item_name.as_str().into()),
        ExprKind::Const(Value::Bytes(text)) => Some(String::from_utf8_lossy(text).into()),
        ExprKind::Param(n) => match cx.st.params.get(*n) {
            ValueRef::Bytes(text) => Some(String::from_utf8_lossy(text).into()),
            _ => None,
        },
        _ => None,
    }
}

/// Whether a list of constants is compared with a text as dates or times.
pub(crate) fn is_text_among_dates(cx: &EvalCx<'_>, left: &Expr, list: &[(CmpKind, Expr)]) -> bool {
    left.ty.class() == Class::String
        && list.len() > 1
        && matches!(list[0].0, CmpKind::DateTime | CmpKind::Time)
        && !is_marker(cx, left)
        && list
            .iter()
            .all(|(_, m)| is_constant(m) && !is_marker(cx, m))
}

/// Warns if a text in a list beside `left` is no value of the class of the list's dates or times.
pub(crate) fn warn_of_time_point(
    cx: &EvalCx<'_>,
    class: Class,
    (v, ty): (&Val<'_>, &ExprType),
    left: &Expr,
) {
    match class {
        Class::Date => drop(convert::to_date(cx, v, ty)),
        Class::Time => drop(convert::to_time(cx, v, ty)),
        _ => drop(datetime_beside(
            cx,
            v,
            ty,
            operand_name(cx, left).as_deref(),
        )),
    }
}

/// Warns about the texts among the members of such a list, once for each execution, and about its
/// operand `x`.
///
/// # Errors
/// Those of evaluating the members.
pub(crate) fn warn_among_dates<'a>(
    cx: &EvalCx<'a>,
    e: &'a Expr,
    (left, x): (&'a Expr, &Val<'_>),
    list: &'a [(CmpKind, Expr)],
) -> Result<(), SqlError> {
    let types = || std::iter::once(&left.ty).chain(list.iter().map(|(_, m)| &m.ty));
    // Beside a binary string all texts are binary strings.
    let binary =
        |ty: &ExprType| ty.class() == Class::String && ty.collation() == CollationId::BINARY;
    let binary = types().any(binary);
    let dates = types().filter(|ty| ty.class().is_temporal());
    let class = match dates.clone().all(|ty| ty.class() == Class::Date) {
        true => Class::Date,
        false if list[0].0 == CmpKind::Time => Class::Time,
        false => Class::DateTime,
    };
    let warn = |v: &Val<'_>, ty: &ExprType| {
        let mut ty = ty.clone();
        if binary {
            ty.col.collation = CollationId::BINARY;
        }
        warn_of_time_point(cx, class, (v, &ty), left);
    };
    let first = (cx.st.lists.warned.borrow_mut()).insert(std::ptr::from_ref(e) as usize);
    for (_, member) in list.iter().filter(|_| first) {
        if member.ty.class() == Class::String {
            let v = cx.val(member)?;
            warn(&v, &member.ty);
            super::compare::warn_of_clock(cx, class, (&v, &member.ty));
        }
    }
    warn(x, &left.ty);
    Ok(())
}

/// The name of the date that the other arguments of GREATEST or LEAST are compared with.
pub(crate) fn name_among(args: &[Expr]) -> Option<&ItemName> {
    let mut names = args.iter().filter(|e| e.ty.class() == Class::DateTime);
    let named = names.find(|e| e.ty.item_name.is_known());
    named.map(|e| &e.ty.item_name)
}
