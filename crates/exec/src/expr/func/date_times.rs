//! Arguments that are dates and times, and temporal arithmetic with its own syntax: INTERVAL,
//! EXTRACT, TIMESTAMPDIFF.

use nfold_plan::SqlMode;
use nfold_plan::expr::{Class, Expr, ExprKind, ExprType};
use nfold_plan::func::FuncSet;
use nfold_types::temporal::calendar::{WeekMode, week};
use nfold_types::temporal::{DateFlags, Interval, IntervalUnit, MICROS_PER_SECOND, parse};
use nfold_types::{Date, DateTime, ErrorCode, SqlError, TypeKind, Value};

use super::builtin::{Evaluated, arg};
use super::constants;
use crate::expr::eval::convert::{TemporalTarget, TimePoint};
use crate::expr::eval::{EvalCx, Val, convert};

/// The number of fractional digits of an argument used as a time: by its type, or by its text if it
/// is a literal.
pub(super) fn fsp_of(e: &Expr) -> u8 {
    match e.ty.class() {
        Class::Date | Class::Int | Class::Null => 0,
        Class::Time | Class::DateTime => e.ty.col.fsp(),
        Class::Decimal => e.ty.decimal_shape().1.min(6) as u8,
        Class::Double | Class::Json => 6,
        Class::String if e.ty.col.zerofill => 0, // a hexadecimal literal
        Class::String if nfold_plan::expr::is_constant(e) => fsp_of_constant(e),
        Class::String => 6,
    }
}

/// For a constant string: the number of fractional digits that it has.
fn fsp_of_constant(e: &Expr) -> u8 {
    match &e.kind {
        ExprKind::Const(Value::Bytes(text)) => return fraction_digits(text),
        ExprKind::Const(_) => return fsp_of(e),
        _ => {}
    }
    match constants::text_of(e) {
        Some(Some(text)) if begins_number(&text) => fraction_digits(&text),
        // MySQL finds no date or time.
        Some(_) => 6,
        None => fsp_of_operands(e),
    }
}

/// For a constant string whose value is not known: the number of fractional digits that it has by
/// those of its operands.
fn fsp_of_operands(e: &Expr) -> u8 {
    match &e.kind {
        ExprKind::Case { whens, otherwise } => {
            let results = whens
                .iter()
                .map(|(_, then)| then)
                .chain(otherwise.as_deref());
            results.map(fsp_of).max().unwrap_or(0)
        }
        ExprKind::IntervalArith { expr, unit, .. } if !unit.has_micros() => fsp_of(expr),
        ExprKind::Call { func, args } => match super::Builtins.get(*func).name {
            "if" => fsp_of(&args[1]).max(fsp_of(&args[2])),
            "ifnull" | "coalesce" => {
                let certain = args.iter().position(|a| !a.ty.nullable);
                let possible = certain.map_or(&args[..], |at| &args[..=at]);
                possible.iter().map(fsp_of).max().unwrap_or(0)
            }
            "nullif" => fsp_of(&args[0]),
            "greatest" | "least" if args.iter().all(|a| fsp_of(a) == 0) => 0,
            // Six digits or none.
            "addtime" | "subtime" if args.iter().all(|a| fsp_of(a) == 0) => 0,
            _ if is_without_fraction(e) => 0,
            _ => 6,
        },
        _ if is_without_fraction(e) => 0,
        _ => 6,
    }
}

/// Whether a constant is computed from integers and texts without a point alone.
fn is_without_fraction(e: &Expr) -> bool {
    !e.any(&mut |e| match (&e.kind, e.ty.class()) {
        (ExprKind::Const(Value::Bytes(text)), _) => text.contains(&b'.'),
        (_, class) => !matches!(class, Class::Int | Class::String | Class::Null),
    })
}

/// Whether a text begins as a date or time does.
fn begins_number(text: &[u8]) -> bool {
    let rest = text.trim_ascii_start();
    let rest = rest.strip_prefix(b"-").unwrap_or(rest);
    rest.first().is_some_and(u8::is_ascii_digit)
}

fn fraction_digits(text: &[u8]) -> u8 {
    match text.iter().rposition(|b| *b == b'.') {
        Some(at)
            if text.contains(&b':') || text.iter().all(|b| b.is_ascii_digit() || *b == b'.') =>
        {
            let digits = text[at + 1..].iter().take_while(|b| b.is_ascii_digit());
            digits.count().min(6) as u8
        }
        _ => 0,
    }
}

/// Warning 1292 for an invalid date or time.
pub(super) fn warn_value(cx: &EvalCx<'_>, kind: &str, text: &[u8]) {
    let shown = String::from_utf8_lossy(text);
    cx.warn(ErrorCode::ER_TRUNCATED_WRONG_VALUE, &[&kind, &shown]);
}

/// The text of a date and time, for a warning.
pub(super) fn text_of(d: DateTime) -> Vec<u8> {
    let mut out = Vec::new();
    if d.time().micros() == 0 {
        d.date().write_to(&mut out);
    } else {
        d.write_to(&mut out);
    }
    out
}

/// An argument as the date or time that `asked` describes.
fn asked<'a>(
    cx: &EvalCx<'a>,
    e: &'a Expr,
    asked: TemporalTarget,
) -> Result<Option<DateTime>, SqlError> {
    // MySQL passes down which dates are valid, so LAST_DAY of a refused date does not warn.
    let (v, ty) = match asked.flags.no_zero_in_date && is_last_day_of_column(e) {
        true => {
            let last = cx.silently(|cx| cx.val(e).map(Val::into_value))?;
            (EvalCx::owned(last), &e.ty)
        }
        false => cx.alternative(e)?,
    };
    let found = convert::to_asked(cx, &v, ty, asked);
    if found.is_none() && matches!(v, Val::Date(_) | Val::DateTime(_)) {
        warn_of_source(cx, e, asked)?;
    }
    Ok(found)
}

fn is_last_day_of_column(e: &Expr) -> bool {
    match &e.kind {
        ExprKind::Call { func, args } => {
            super::Builtins.get(*func).name == "last_day"
                && args[0].ty.class().is_temporal()
                && args[0].as_column().is_some()
        }
        _ => false,
    }
}

/// Warns of a refused date that was made of another value by CAST, DATE, TIMESTAMP or STR_TO_DATE.
/// MySQL passes down which dates are valid, so it is this conversion that fails. A date that was
/// one before causes no warning.
#[cold]
fn warn_of_source<'a>(cx: &EvalCx<'a>, e: &'a Expr, asked: TemporalTarget) -> Result<(), SqlError> {
    let source = match &e.kind {
        // A literal such as DATE'2020-00-01' is a date.
        ExprKind::Cast { expr, .. } if matches!(expr.kind, ExprKind::Const(Value::Bytes(_))) => {
            return Ok(());
        }
        ExprKind::Cast { expr, .. } => expr,
        ExprKind::Call { func, args } => match (super::Builtins.get(*func).name, &args[..]) {
            ("date" | "timestamp", [source]) => source,
            (nfold_plan::func::COMPUTED_ONCE, [source]) => {
                return warn_of_source(cx, source, asked);
            }
            ("str_to_date", [text, _]) => {
                let text = cx.silently(|cx| cx.bytes(text).map(|t| t.map(|t| t.to_vec())))?;
                let text = text.unwrap_or_default();
                let shown = String::from_utf8_lossy(&text);
                let code = ErrorCode::ER_WRONG_VALUE_FOR_TYPE;
                cx.warn(code, &[&"datetime", &shown, &"str_to_date"]);
                return Ok(());
            }
            _ => return Ok(()),
        },
        _ => return Ok(()),
    };
    if source.ty.class().is_temporal() {
        return warn_of_source(cx, source, asked);
    }
    let v = cx.silently(|cx| cx.val(source).map(|v| v.to_value()))?;
    let date = e.ty.class() == Class::Date;
    let asked = TemporalTarget { date, ..asked };
    convert::to_asked(cx, &EvalCx::owned(v), &source.ty, asked);
    Ok(())
}

/// An argument as a date and time with zero parts allowed. The string '0000-00-00' is NULL under
/// NO_ZERO_DATE.
fn loosely<'a>(cx: &EvalCx<'a>, e: &'a Expr, date: bool) -> Result<Option<DateTime>, SqlError> {
    let (v, ty) = cx.alternative(e)?;
    let flags = DateFlags {
        no_zero_date: matches!(v, Val::Bytes(_)) && cx.env().sql_mode().has(SqlMode::NO_ZERO_DATE),
        ..DateFlags::default()
    };
    Ok(convert::to_asked(
        cx,
        &v,
        ty,
        TemporalTarget {
            date,
            flags,
            calendar: false,
        },
    ))
}

/// An argument as a date and time, for functions that use both.
pub(super) fn datetime_of<'a>(cx: &EvalCx<'a>, e: &'a Expr) -> Result<Option<DateTime>, SqlError> {
    loosely(cx, e, false)
}

/// An argument as a date, for functions that ignore the time.
pub(super) fn date_of<'a>(cx: &EvalCx<'a>, e: &'a Expr) -> Result<Option<DateTime>, SqlError> {
    loosely(cx, e, true)
}

/// As [`datetime_of`]; a date that the SQL mode forbids is NULL.
pub(super) fn dated_time<'a>(cx: &EvalCx<'a>, e: &'a Expr) -> Result<Option<DateTime>, SqlError> {
    asked(cx, e, TemporalTarget::by_mode(cx, false))
}

/// As [`date_of`]; a date that the SQL mode forbids is NULL.
pub(super) fn dated<'a>(cx: &EvalCx<'a>, e: &'a Expr) -> Result<Option<DateTime>, SqlError> {
    asked(cx, e, TemporalTarget::by_mode(cx, true))
}

/// An argument as a date and time whose month and day are not zero.
pub(super) fn whole_datetime<'a>(
    cx: &EvalCx<'a>,
    e: &'a Expr,
) -> Result<Option<DateTime>, SqlError> {
    asked(cx, e, TemporalTarget::whole(false))
}

/// As [`whole_datetime`], of a day that exists in its month.
pub(super) fn calendar_datetime<'a>(
    cx: &EvalCx<'a>,
    e: &'a Expr,
) -> Result<Option<DateTime>, SqlError> {
    asked(cx, e, TemporalTarget::calendar(false))
}

/// An argument as a date whose month and day are not zero, and whose day exists in its month.
pub(super) fn calendar_date<'a>(cx: &EvalCx<'a>, e: &'a Expr) -> Result<Option<Date>, SqlError> {
    Ok(asked(cx, e, TemporalTarget::calendar(true))?.map(DateTime::date))
}

/// An argument as a date whose month and day are not zero.
pub(super) fn whole_date<'a>(cx: &EvalCx<'a>, e: &'a Expr) -> Result<Option<Date>, SqlError> {
    Ok(asked(cx, e, TemporalTarget::whole(true))?.map(DateTime::date))
}

/// An argument as a time, or as a date and time.
pub(super) fn time_point<'a>(cx: &EvalCx<'a>, e: &'a Expr) -> Result<Option<TimePoint>, SqlError> {
    let v = cx.val(e)?;
    Ok(convert::to_time_point(cx, &v, &e.ty))
}

fn interval_of<'a>(
    cx: &EvalCx<'a>,
    amount: &'a Expr,
    unit: IntervalUnit,
) -> Result<Option<Interval>, SqlError> {
    if unit.is_mixed() {
        return Ok(match cx.bytes(amount)? {
            Some(text) => Interval::parse(unit, &text),
            None => None,
        });
    }
    if unit == IntervalUnit::Second {
        // Seconds may have a fraction.
        if let Val::UInt(n) = cx.val(amount)?
            && amount.ty.class() == Class::Int
        {
            return Ok(Some(Interval::new(unit, n as i64)));
        }
        let Some(d) = cx.decimal(amount)? else {
            return Ok(None);
        };
        let million = nfold_types::Decimal::from(MICROS_PER_SECOND);
        let micros = d
            .mul(&million)
            .map(|d| d.truncate(0))
            .and_then(|d| d.to_i64());
        return Ok(micros.map(Interval::from_micros));
    }
    // A BIGINT UNSIGNED is taken as signed, as in MySQL.
    Ok(match cx.val(amount)? {
        Val::UInt(n) if amount.ty.class() == Class::Int => Some(Interval::new(unit, n as i64)),
        _ => cx.int(amount)?.map(|n| Interval::new(unit, n)),
    })
}

fn overflow<'a>(cx: &EvalCx<'a>) -> Val<'a> {
    cx.warn(ErrorCode::ER_DATETIME_FUNCTION_OVERFLOW, &[&"datetime"]);
    Val::Null
}

/// `expr ± INTERVAL amount unit`.
pub(super) fn interval_arith<'a>(
    cx: &EvalCx<'a>,
    expr: &'a Expr,
    amount: &'a Expr,
    unit: IntervalUnit,
    subtract: bool,
    ty: &'a ExprType,
) -> Evaluated<'a> {
    if let TypeKind::Time(fsp) = ty.col.kind {
        let start = arg!(cx.time(expr));
        let by = arg!(interval_of(cx, amount, unit));
        let by = if subtract { by.negated() } else { by };
        return Ok(match start.add_interval(unit, &by) {
            Some(t) => Val::Time(t.with_fsp(fsp)),
            None => {
                cx.warn(ErrorCode::ER_DATETIME_FUNCTION_OVERFLOW, &[&"time"]);
                Val::Null
            }
        });
    }
    let start = arg!(match expr.ty.class() {
        Class::DateTime => whole_datetime(cx, expr),
        _ => calendar_datetime(cx, expr),
    });
    let by = arg!(interval_of(cx, amount, unit));
    let by = if subtract { by.negated() } else { by };
    let Some(result) = start.add_interval(unit, &by) else {
        return Ok(overflow(cx));
    };
    Ok(match ty.col.kind {
        TypeKind::Date => Val::Date(result.date()),
        TypeKind::DateTime(fsp) => Val::DateTime(result.with_fsp(fsp)),
        // In an expression of string type the value is a date or a DATETIME: a date without time
        // remains one, and a fraction is shown only if there is one.
        _ if unit.is_date_only() && date_alone(cx, expr)? => Val::Date(result.date()),
        _ => Val::DateTime(result.with_fsp(if result.micros() == 0 { 0 } else { 6 })),
    })
}

fn is_extreme(e: &Expr) -> bool {
    matches!(&e.kind, ExprKind::Call { func, .. } if super::is_extreme(*func))
}

/// Whether a string or number is a date without a time.
fn date_alone<'a>(cx: &EvalCx<'a>, e: &'a Expr) -> Result<bool, SqlError> {
    // The value has caused its warnings before.
    let value = cx.silently(|cx| cx.val(e).map(Val::into_value))?;
    Ok(match EvalCx::owned(value) {
        Val::Bytes(text) if convert::is_wide(&e.ty) => {
            let (text, _) = convert::in_utf8(&text, &e.ty);
            let bytes = convert::bytes_of(&text);
            parse::parse_datetime(bytes, DateFlags::default()).is_ok_and(|p| p.date_only)
        }
        Val::Bytes(text) => {
            parse::parse_datetime(&text, DateFlags::default()).is_ok_and(|p| p.date_only)
        }
        Val::UInt(_) if convert::is_year(&e.ty.col) => false,
        Val::Date(_) if is_extreme(e) => true,
        Val::Date(_) | Val::DateTime(_) | Val::Time(_) | Val::Null => false,
        _ => cx.integer(e)?.is_some_and(|n| n <= 99_991_231),
    })
}

/// `EXTRACT(unit FROM expr)`: concatenates the parts, with two digits each (microseconds six).
pub(super) fn extract<'a>(cx: &EvalCx<'a>, unit: IntervalUnit, expr: &'a Expr) -> Evaluated<'a> {
    use IntervalUnit::*;
    if unit.is_date_only() {
        let d = arg!(datetime_of(cx, expr)).date();
        let (y, m) = (i64::from(d.year()), i64::from(d.month()));
        return Ok(Val::Int(match unit {
            Year => y,
            YearMonth => y * 100 + m,
            Quarter => (m + 2) / 3,
            Month => m,
            Week => {
                if m == 0 || d.day() == 0 {
                    warn_value(cx, "datetime", &text_of(d.at_midnight()));
                    return Ok(Val::Null);
                }
                i64::from(week(d, WeekMode::new(week_format(cx))).1)
            }
            _ => i64::from(d.day()),
        }));
    }
    let v = cx.val(expr)?;
    let Some(time_point) = convert::to_extracted(cx, &v, &expr.ty) else {
        return Ok(Val::Null);
    };
    let (day, time) = match time_point {
        TimePoint::DateTime(d) => (i64::from(d.date().day()), d.time()),
        TimePoint::Time(t) => (0, t),
    };
    let (h, mi, s, us) = time.parts();
    let (h, mi, s, us) = (i64::from(h), i64::from(mi), i64::from(s), i64::from(us));
    let to_seconds = |from: i64| (from * 100 + mi) * 100 + s;
    let magnitude = match unit {
        Hour => h,
        Minute => mi,
        Second => s,
        Microsecond => us,
        DayHour => day * 100 + h,
        DayMinute => (day * 100 + h) * 100 + mi,
        DaySecond => to_seconds(day * 100 + h),
        DayMicrosecond => to_seconds(day * 100 + h) * 1_000_000 + us,
        HourMinute => h * 100 + mi,
        HourSecond => to_seconds(h),
        HourMicrosecond => to_seconds(h) * 1_000_000 + us,
        MinuteSecond => mi * 100 + s,
        MinuteMicrosecond => (mi * 100 + s) * 1_000_000 + us,
        _ => s * 1_000_000 + us,
    };
    Ok(Val::Int(if time.is_negative() {
        -magnitude
    } else {
        magnitude
    }))
}

/// `default_week_format`.
pub(super) fn week_format(cx: &EvalCx<'_>) -> u32 {
    match cx.env().sysvar(None, "default_week_format") {
        Ok(Value::Int(n)) => n as u32,
        Ok(Value::UInt(n)) => n as u32,
        _ => 0,
    }
}

/// `TIMESTAMPDIFF(unit, from, to)`.
pub(super) fn difference<'a>(
    cx: &EvalCx<'a>,
    unit: IntervalUnit,
    from: &'a Expr,
    to: &'a Expr,
) -> Evaluated<'a> {
    let from = arg!(whole_datetime(cx, from));
    let to = arg!(whole_datetime(cx, to));
    Ok(from.difference(unit, to).map_or(Val::Null, Val::Int))
}
