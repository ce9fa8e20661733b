//! Arguments that are dates and times, and the arithmetic with a syntax of its own: INTERVAL, EXTRACT, TIMESTAMPDIFF.

use nfold_plan::SqlMode;
use nfold_plan::expr::{Class, Expr, ExprKind, ExprType};
use nfold_types::temporal::calendar::{WeekMode, week};
use nfold_types::temporal::{DateFlags, Interval, IntervalUnit, MICROS_PER_SECOND, parse};
use nfold_types::{Date, DateTime, ErrorCode, SqlError, Time, TypeKind, Value};

use super::{Evaluated, arg};
use crate::eval::{EvalCx, Val, convert};

/// Fractional digits of an argument used as a time: those of its type, or of its text where it is written out.
pub(super) fn fsp_of(e: &Expr) -> u8 {
    match e.ty.class() {
        Class::Date | Class::Int | Class::Null => 0,
        Class::Time | Class::DateTime => e.ty.col.fsp(),
        Class::Decimal => e.ty.decimal_shape().1.min(6) as u8,
        Class::Double => 6,
        Class::String => match &e.kind {
            ExprKind::Const(Value::Bytes(text)) => fraction_digits(text),
            _ => 6,
        },
    }
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

/// Warning 1292 for a value that is no date or time.
pub(super) fn warn_value(cx: &EvalCx<'_>, kind: &str, text: &[u8]) {
    let shown = String::from_utf8_lossy(text);
    cx.warn(ErrorCode::ER_TRUNCATED_WRONG_VALUE, &[&kind, &shown]);
}

/// The text of a moment, for a warning.
fn text_of(d: DateTime) -> Vec<u8> {
    let mut out = Vec::new();
    if d.time().micros() == 0 {
        d.date().write_to(&mut out);
    } else {
        d.write_to(&mut out);
    }
    out
}

/// An argument of which the date matters. A text that is no date gives a warning about a date; '0000-00-00' is none under NO_ZERO_DATE.
pub(super) fn datetime_of<'a>(cx: &EvalCx<'a>, e: &'a Expr) -> Result<Option<DateTime>, SqlError> {
    if e.ty.class() != Class::String {
        let v = cx.val(e)?;
        return Ok(convert::to_short_date(cx, &v, &e.ty));
    }
    let Some(text) = cx.bytes(e)? else {
        return Ok(None);
    };
    let parsed = parse::parse_datetime(&text, DateFlags::default()).ok();
    if parsed.is_none_or(|p| p.truncated) {
        warn_value(cx, "date", &text);
    }
    let Some(d) = parsed.and_then(|p| p.to_zone(cx.env().time_zone())) else {
        return Ok(None);
    };
    if d.packed() == 0 && cx.env().sql_mode().has(SqlMode::NO_ZERO_DATE) {
        warn_value(cx, "date", &text);
        return Ok(None);
    }
    Ok(Some(d))
}

/// As [`datetime_of`]; what the SQL mode does not allow is none.
pub(super) fn dated<'a>(cx: &EvalCx<'a>, e: &'a Expr) -> Result<Option<DateTime>, SqlError> {
    let Some(d) = datetime_of(cx, e)? else {
        return Ok(None);
    };
    if !convert::allowed(cx, d) {
        warn_value(cx, "date", &text_of(d));
        return Ok(None);
    }
    Ok(Some(d))
}

/// An argument as a moment whose month and day are not zero.
pub(super) fn whole_datetime<'a>(
    cx: &EvalCx<'a>,
    e: &'a Expr,
) -> Result<Option<DateTime>, SqlError> {
    let Some(d) = cx.datetime(e)? else {
        return Ok(None);
    };
    if d.date().month() == 0 || d.date().day() == 0 {
        warn_value(cx, "datetime", &text_of(d));
        return Ok(None);
    }
    Ok(Some(d))
}

/// An argument as a date whose month and day are not zero.
pub(super) fn whole_date<'a>(cx: &EvalCx<'a>, e: &'a Expr) -> Result<Option<Date>, SqlError> {
    let Some(d) = datetime_of(cx, e)?.map(DateTime::date) else {
        return Ok(None);
    };
    if d.month() == 0 || d.day() == 0 {
        warn_value(cx, "date", &text_of(d.at_midnight()));
        return Ok(None);
    }
    Ok(Some(d))
}

/// A date and time, or a time alone.
#[derive(Clone, Copy)]
pub(super) enum Moment {
    DateTime(DateTime),
    Time(Time),
}

/// As [`moment`], where a text that is a date alone is midnight of that date.
pub(super) fn moment_or_date<'a>(cx: &EvalCx<'a>, e: &'a Expr) -> Result<Option<Moment>, SqlError> {
    if e.ty.class() == Class::String {
        let Some(text) = cx.bytes(e)? else {
            return Ok(None);
        };
        let dashes = text.iter().skip(1).filter(|b| **b == b'-').count();
        if let Ok(p) = parse::parse_datetime(&text, DateFlags::default())
            && dashes == 2
            && p.date_only
            && !p.truncated
        {
            return Ok(Some(Moment::DateTime(p.value)));
        }
    }
    moment(cx, e)
}

/// What an argument is: its type says so, or its text (a long one that begins with a date is a date and time).
pub(super) fn moment<'a>(cx: &EvalCx<'a>, e: &'a Expr) -> Result<Option<Moment>, SqlError> {
    let is_datetime = match e.ty.class() {
        Class::Date | Class::DateTime => true,
        Class::String => match cx.bytes(e)? {
            Some(text) => {
                text.len() >= 12
                    && parse::parse_datetime(&text, DateFlags::default())
                        .is_ok_and(|p| !p.truncated && !p.date_only)
            }
            None => return Ok(None),
        },
        Class::Int | Class::Decimal => cx.integer(e)?.is_some_and(|n| n >= 10_000_000_000),
        _ => false,
    };
    Ok(if is_datetime {
        cx.datetime(e)?.map(Moment::DateTime)
    } else {
        cx.time(e)?.map(Moment::Time)
    })
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
    Ok(cx.int(amount)?.map(|n| Interval::new(unit, n)))
}

fn overflow<'a>(cx: &EvalCx<'a>) -> Val<'a> {
    cx.warn(ErrorCode::ER_DATETIME_FUNCTION_OVERFLOW, &[&"datetime"]);
    Val::Null
}

/// `expr ± INTERVAL amount unit`
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
    let start = arg!(whole_datetime(cx, expr));
    let by = arg!(interval_of(cx, amount, unit));
    let by = if subtract { by.negated() } else { by };
    let Some(result) = start.add_interval(unit, &by) else {
        return Ok(overflow(cx));
    };
    Ok(match ty.col.kind {
        TypeKind::Date => Val::Date(result.date()),
        TypeKind::DateTime(fsp) => Val::DateTime(result.with_fsp(fsp)),
        _ => {
            // A string in, a string out: a date alone stays one, and a fraction is shown where there is one.
            let mut out = Vec::new();
            if unit.is_date_only() && date_alone(cx, expr)? {
                result.date().write_to(&mut out);
            } else {
                let fsp = if result.micros() == 0 { 0 } else { 6 };
                result.with_fsp(fsp).write_to(&mut out);
            }
            Val::string(out)
        }
    })
}

fn date_alone<'a>(cx: &EvalCx<'a>, e: &'a Expr) -> Result<bool, SqlError> {
    if e.ty.class() != Class::String {
        return Ok(cx.integer(e)?.is_some_and(|n| n <= 99_991_231));
    }
    Ok(cx.bytes(e)?.is_some_and(|text| {
        parse::parse_datetime(&text, DateFlags::default()).is_ok_and(|p| p.date_only)
    }))
}

/// `EXTRACT(unit FROM expr)`: the parts written side by side, two digits each (microseconds six).
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
    let (day, time) = match arg!(moment_or_date(cx, expr)) {
        Moment::DateTime(d) => (i64::from(d.date().day()), d.time()),
        Moment::Time(t) => (0, t),
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

/// `default_week_format`
pub(super) fn week_format(cx: &EvalCx<'_>) -> u32 {
    match cx.env().sysvar(None, "default_week_format") {
        Ok(Value::Int(n)) => n as u32,
        Ok(Value::UInt(n)) => n as u32,
        _ => 0,
    }
}

/// `TIMESTAMPDIFF(unit, from, to)`
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
