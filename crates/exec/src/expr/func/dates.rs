//! Dates and times: their parts, construction, and arithmetic.

use nfold_plan::expr::{Class, Expr, ExprKind, ExprType};
use nfold_plan::func::{Infer, any_nullable, infer_int_null};
use nfold_types::temporal::calendar::{
    MAX_DAYNR, WeekMode, date_of_day_number, day_number, day_of_year, days_in_month, week, weekday,
};
use nfold_types::temporal::{DateFlags, MICROS_PER_SECOND, TIME_MAX_MICROS, TimeZone, parse};
use nfold_types::{
    ColumnType, Date, DateTime, Decimal, ErrorCode, SqlError, Time, Timestamp, TypeKind, Value,
};

use super::builtin::{Evaluated, Func, Inferred, arg, func, volatile};
use super::constants;
use super::date_times::{
    calendar_date, calendar_datetime, date_of, dated, dated_time, fsp_of, text_of, time_point,
    warn_value, week_format, whole_date, whole_datetime,
};
use crate::expr::eval::convert::{TemporalTarget, TimePoint, cuts_fractions};
use crate::expr::eval::{EvalCx, Val, compare, convert};

/// A function that returns a part of a date; zero parts are allowed.
macro_rules! date_part {
    ($name:literal, $infer:expr, $part:expr) => {
        func($name, (1, 1), $infer, |cx, a, _| {
            let part: fn(Date) -> u32 = $part;
            Ok(Val::Int(i64::from(part(arg!(date_of(cx, &a[0])).date()))))
        })
    };
}

/// A function that computes a number from a calendar date.
macro_rules! of_date {
    ($name:literal, $infer:expr, $part:expr) => {
        func($name, (1, 1), $infer, |cx, a, _| {
            let part: fn(Date) -> u32 = $part;
            Ok(Val::Int(i64::from(part(arg!(calendar_date(cx, &a[0]))))))
        })
    };
}

/// A function that returns a part of a time: hours, minutes, seconds or microseconds.
macro_rules! time_part {
    ($name:literal, $infer:expr, $part:tt) => {
        func($name, (1, 1), $infer, |cx, a, _| {
            Ok(Val::Int(i64::from(arg!(cx.time(&a[0])).parts().$part)))
        })
    };
}

pub(super) static FUNCS: &[Func] = &[
    func(
        nfold_plan::func::YEAR_CONSTANT,
        (1, 1),
        infer_int_null::<21>,
        eval_year_constant,
    ),
    func("curdate", (0, 0), infer_date, |cx, _, _| {
        Ok(Val::Date(cx.now(0).date()))
    }),
    func("current_date", (0, 0), infer_date, |cx, _, _| {
        Ok(Val::Date(cx.now(0).date()))
    }),
    func("curtime", (0, 1), infer_clock_time, |cx, _, ty| {
        Ok(Val::Time(cx.now(ty.col.fsp()).time()))
    }),
    volatile(func("sysdate", (0, 1), infer_clock, |cx, _, ty| {
        Ok(Val::DateTime(convert::local(
            cx,
            cx.env().clock(),
            ty.col.fsp(),
        )))
    })),
    func("utc_date", (0, 0), infer_date, |cx, _, _| {
        Ok(Val::Date(utc(cx, 0).date()))
    }),
    func("utc_time", (0, 1), infer_clock_time, |cx, _, ty| {
        Ok(Val::Time(utc(cx, ty.col.fsp()).time()))
    }),
    func("utc_timestamp", (0, 1), infer_clock, |cx, _, ty| {
        Ok(Val::DateTime(utc(cx, ty.col.fsp())))
    }),
    func("date", (1, 1), infer_date_null, |cx, a, _| {
        Ok(Val::Date(arg!(dated(cx, &a[0])).date()))
    }),
    func("time", (1, 1), infer_time_of, eval_time),
    func("timestamp", (1, 2), infer_timestamp, eval_timestamp),
    date_part!("year", infer_year, Date::year),
    date_part!("month", infer_int_null::<3>, Date::month),
    date_part!("day", infer_int_null::<3>, Date::day),
    date_part!("dayofmonth", infer_int_null::<3>, Date::day),
    date_part!("quarter", infer_int_null::<2>, |d| d.month().div_ceil(3)),
    of_date!("dayofweek", infer_int_null::<2>, |d| (weekday(day_number(
        d
    )) + 1)
        % 7
        + 1),
    of_date!("weekday", infer_int_null::<2>, |d| weekday(day_number(d))),
    of_date!("dayofyear", infer_int_null::<4>, day_of_year),
    of_date!("weekofyear", infer_int_null::<3>, |d| week(
        d,
        WeekMode::new(3)
    )
    .1),
    func("to_days", (1, 1), infer_int_null::<8>, |cx, a, _| {
        let d = arg!(whole_date(cx, &a[0]));
        Ok(Val::Int(i64::from(day_number(d))))
    }),
    time_part!("hour", infer_int_null::<4>, 0),
    time_part!("minute", infer_int_null::<3>, 1),
    time_part!("second", infer_int_null::<3>, 2),
    time_part!("microsecond", infer_int_null::<21>, 3),
    func("week", (1, 2), infer_int_null::<3>, |cx, a, _| {
        let (d, mode) = arg!(week_arguments(cx, a));
        Ok(Val::Int(i64::from(week(d, WeekMode::new(mode)).1)))
    }),
    func("yearweek", (1, 2), infer_int_null::<7>, |cx, a, _| {
        let (d, mode) = arg!(week_arguments(cx, a));
        let (year, week) = week(d, WeekMode::new(mode | 2));
        Ok(Val::Int(i64::from(year * 100 + week)))
    }),
    func("last_day", (1, 1), infer_date_null, |cx, a, _| {
        let d = arg!(last_day_of(cx, &a[0]));
        Ok(Val::Date(Date::new(
            d.year(),
            d.month(),
            days_in_month(d.year(), d.month()),
        )))
    }),
    func("makedate", (2, 2), infer_date_null, eval_makedate),
    func("maketime", (3, 3), infer_maketime, eval_maketime),
    func("from_days", (1, 1), infer_date_null, |cx, a, _| {
        let n = arg!(cx.int(&a[0]));
        Ok(match u32::try_from(n) {
            Ok(n @ 366..=MAX_DAYNR) => Val::Date(date_of_day_number(n)),
            // The year 0 has the days of the year 1.
            Ok(n @ 1..366) => {
                let alike = date_of_day_number(n + 365);
                Val::Date(Date::new(0, alike.month(), alike.day()))
            }
            _ => {
                cx.warn(ErrorCode::ER_DATETIME_FUNCTION_OVERFLOW, &[&"date"]);
                Val::Null
            }
        })
    }),
    func("to_seconds", (1, 1), infer_int_null::<21>, |cx, a, _| {
        // As in MySQL, only a date or time that is no text or number may be a day that its month
        // lacks, under ALLOW_INVALID_DATES.
        let d = match a[0].ty.class().is_temporal() {
            true => arg!(whole_datetime(cx, &a[0])),
            false => arg!(calendar_datetime(cx, &a[0])),
        };
        Ok(Val::Int(d.to_linear() / MICROS_PER_SECOND))
    }),
    func("time_to_sec", (1, 1), infer_int_null::<10>, |cx, a, _| {
        Ok(Val::Int(arg!(cx.time(&a[0])).micros() / MICROS_PER_SECOND))
    }),
    func("sec_to_time", (1, 1), infer_seconds, eval_sec_to_time),
    func(
        "unix_timestamp",
        (0, 1),
        infer_unix_timestamp,
        eval_unix_timestamp,
    ),
    func("datediff", (2, 2), infer_int_null::<9>, |cx, a, _| {
        // Both are evaluated, also if the first one is NULL.
        Ok(match (whole_date(cx, &a[0])?, whole_date(cx, &a[1])?) {
            (Some(x), Some(y)) => Val::Int(i64::from(day_number(x)) - i64::from(day_number(y))),
            _ => Val::Null,
        })
    }),
    func("timediff", (2, 2), infer_timediff, eval_timediff),
    func("addtime", (2, 2), infer_addtime, |cx, a, ty| {
        add_time(cx, a, ty, 1)
    }),
    func("subtime", (2, 2), infer_addtime, |cx, a, ty| {
        add_time(cx, a, ty, -1)
    }),
    func("period_add", (2, 2), infer_period, |cx, a, _| {
        let period = arg!(cx.int(&a[0]));
        let months = arg!(cx.int(&a[1]));
        let start = period_months(period, "period_add")?;
        let sum = start.saturating_add(months);
        Ok(Val::Int(if sum <= 0 {
            0
        } else {
            sum / 12 * 100 + sum % 12 + 1
        }))
    }),
    func("period_diff", (2, 2), infer_period, |cx, a, _| {
        let (x, y) = (arg!(cx.int(&a[0])), arg!(cx.int(&a[1])));
        let from = period_months(y, "period_diff")?;
        Ok(Val::Int(period_months(x, "period_diff")? - from))
    }),
    func("convert_tz", (3, 3), infer_convert_tz, eval_convert_tz),
];

fn eval_year_constant<'a>(cx: &EvalCx<'a>, args: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    let v = compare::as_text(cx, cx.val(&args[0])?, &args[0].ty);
    let marker = compare::is_marker(cx, &args[0]);
    Ok(compare::year_constant(cx, &v, &args[0].ty, marker))
}

fn infer_year(_: &Infer<'_>, _: &mut [Expr]) -> Inferred {
    // The display width distinguishes this type from that of a YEAR column.
    Ok(ExprType::new(ColumnType::new(TypeKind::Year), true).with_width(4))
}

fn infer_date(_: &Infer<'_>, _: &mut [Expr]) -> Inferred {
    Ok(ExprType::new(ColumnType::new(TypeKind::Date), false))
}

fn infer_date_null(_: &Infer<'_>, _: &mut [Expr]) -> Inferred {
    Ok(ExprType::new(ColumnType::new(TypeKind::Date), true))
}

/// The number of fractional digits of a clock function, whose argument is a literal.
///
/// # Errors
/// 1426 for more than six digits.
pub(super) fn clock_digits(cx: &Infer<'_>, args: &[Expr]) -> Result<u8, SqlError> {
    let Some(ExprKind::Const(Value::Int(digits))) = args.first().map(|e| &e.kind) else {
        return Ok(0);
    };
    match *digits {
        n @ 0..=6 => Ok(n as u8),
        n => {
            let code = ErrorCode::ER_TOO_BIG_PRECISION;
            Err(SqlError::new(code, &[&n, &cx.name, &6]))
        }
    }
}

fn infer_clock(cx: &Infer<'_>, args: &mut [Expr]) -> Inferred {
    let kind = TypeKind::DateTime(clock_digits(cx, args)?);
    Ok(ExprType::new(ColumnType::new(kind), false))
}

fn infer_clock_time(cx: &Infer<'_>, args: &mut [Expr]) -> Inferred {
    let fsp = clock_digits(cx, args)?;
    let width = 8 + u32::from(fsp) + u32::from(fsp > 0); // no sign
    Ok(ExprType::new(ColumnType::new(TypeKind::Time(fsp)), false).with_width(width))
}

fn utc(cx: &EvalCx<'_>, fsp: u8) -> DateTime {
    TimeZone::UTC
        .to_local(cx.env().now())
        .unwrap_or(DateTime::ZERO)
        .truncate(fsp)
}

fn infer_time_of(_: &Infer<'_>, args: &mut [Expr]) -> Inferred {
    let kind = TypeKind::Time(fsp_of(&args[0]));
    Ok(ExprType::new(ColumnType::new(kind), true))
}

fn eval_time<'a>(cx: &EvalCx<'a>, args: &'a [Expr], ty: &'a ExprType) -> Evaluated<'a> {
    Ok(Val::Time(arg!(cx.time(&args[0])).with_fsp(ty.col.fsp())))
}

fn infer_timestamp(_: &Infer<'_>, args: &mut [Expr]) -> Inferred {
    let fsp = args.iter().map(fsp_of).max().unwrap_or(0);
    Ok(ExprType::new(
        ColumnType::new(TypeKind::DateTime(fsp)),
        true,
    ))
}

fn eval_timestamp<'a>(cx: &EvalCx<'a>, args: &'a [Expr], ty: &'a ExprType) -> Evaluated<'a> {
    let fsp = ty.col.fsp();
    let Some(e) = args.get(1) else {
        let start = arg!(dated_time(cx, &args[0]));
        return Ok(Val::DateTime(start.with_fsp(fsp)));
    };
    let start = arg!(whole_datetime(cx, &args[0]));
    let by = arg!(cx.time(e)).micros();
    let sum = DateTime::from_linear(start.to_linear() + by, fsp);
    Ok(sum.map_or(Val::Null, Val::DateTime))
}

fn week_arguments<'a>(
    cx: &EvalCx<'a>,
    args: &'a [Expr],
) -> Result<Option<(Date, u32)>, nfold_types::SqlError> {
    let Some(d) = calendar_date(cx, &args[0])? else {
        return Ok(None);
    };
    let mode = match args.get(1) {
        // NULL or a negative number counts as mode 0.
        Some(e) => cx.int(e)?.unwrap_or(0).max(0) as u32,
        None => week_format(cx),
    };
    Ok(Some((d, mode & 7)))
}

/// The argument of LAST_DAY. Its day may be zero. LAST_DAY is the only function that warns about a
/// zero month even if the argument is a date.
fn last_day_of<'a>(cx: &EvalCx<'a>, e: &'a Expr) -> Result<Option<Date>, nfold_types::SqlError> {
    let v = cx.val(e)?;
    let found = convert::to_asked(cx, &v, &e.ty, TemporalTarget::any(true));
    Ok(found.and_then(|d| {
        if d.date().month() == 0 {
            warn_value(cx, "date", &text_of(d));
            return None;
        }
        Some(d.date())
    }))
}

fn eval_makedate<'a>(cx: &EvalCx<'a>, args: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    let (year, day) = (arg!(cx.int(&args[0])), arg!(cx.int(&args[1])));
    if !(0..=9999).contains(&year) || day <= 0 {
        return Ok(Val::Null);
    }
    let year = match year as u32 {
        y @ 0..70 => y + 2000,
        y @ 70..100 => y + 1900,
        y => y,
    };
    let n = i64::from(day_number(Date::new(year, 1, 1))).saturating_add(day - 1);
    Ok(match u32::try_from(n) {
        Ok(n) if n <= MAX_DAYNR => Val::Date(date_of_day_number(n)),
        _ => Val::Null,
    })
}

fn infer_maketime(_: &Infer<'_>, args: &mut [Expr]) -> Inferred {
    let kind = TypeKind::Time(seconds_fsp(&args[2]));
    Ok(ExprType::new(ColumnType::new(kind), true))
}

fn eval_maketime<'a>(cx: &EvalCx<'a>, args: &'a [Expr], ty: &'a ExprType) -> Evaluated<'a> {
    let (hour, minute) = (arg!(cx.int(&args[0])), arg!(cx.int(&args[1])));
    let second = arg!(cx.decimal(&args[2]));
    let whole = whole_seconds(cx, &second);
    let Some(whole @ 0..60) = whole.filter(|_| !second.is_negative()) else {
        return Ok(Val::Null);
    };
    if !(0..60).contains(&minute) {
        return Ok(Val::Null);
    }
    let fsp = ty.col.fsp();
    let million = Decimal::from(MICROS_PER_SECOND);
    let cuts = cuts_fractions(cx);
    let micros = second.mul(&million).and_then(|d| match cuts {
        true => Some(d.truncate(0)),
        false => d.round(0),
    });
    let micros = micros.and_then(|d| d.to_i64()).unwrap_or(0);
    let sign = if hour < 0 { -1 } else { 1 };
    let total = (hour.abs().min(839) * 3600 + minute * 60) * MICROS_PER_SECOND + micros;
    if total > TIME_MAX_MICROS {
        const SHOWN_DIGITS: u8 = 9;
        let shown = second
            .truncate(i32::from(second.scale().min(SHOWN_DIGITS)))
            .to_string();
        let fraction = shown.split_once('.').map_or("", |(_, digits)| digits);
        let point = if fraction.is_empty() { "" } else { "." };
        let hour = hour.unsigned_abs();
        let shown = format!("{hour}:{minute:02}:{whole:02}{point}{fraction}");
        warn_value(cx, "time", shown.as_bytes());
    }
    Ok(Val::Time(Time::from_micros(
        sign * total.min(TIME_MAX_MICROS),
        fsp,
    )))
}

/// The whole part of a number of seconds. Warning 1292 if it is no BIGINT.
pub(super) fn whole_seconds(cx: &EvalCx<'_>, seconds: &Decimal) -> Option<i64> {
    let whole = seconds.truncate(0).to_i64();
    if whole.is_none() {
        let shown = seconds.to_string();
        cx.warn(ErrorCode::ER_TRUNCATED_WRONG_VALUE, &[&"DECIMAL", &shown]);
    }
    whole
}

/// The number of fractional digits of seconds; six for a string.
pub(super) fn seconds_fsp(e: &Expr) -> u8 {
    match e.ty.class() {
        Class::String if !e.ty.col.zerofill => 6,
        _ => fsp_of(e),
    }
}

fn infer_seconds(_: &Infer<'_>, args: &mut [Expr]) -> Inferred {
    let fsp = seconds_fsp(&args[0]);
    Ok(ExprType::new(ColumnType::new(TypeKind::Time(fsp)), true))
}

fn eval_sec_to_time<'a>(cx: &EvalCx<'a>, args: &'a [Expr], ty: &'a ExprType) -> Evaluated<'a> {
    let seconds = arg!(cx.decimal(&args[0]));
    let million = Decimal::from(MICROS_PER_SECOND);
    let micros = seconds
        .mul(&million)
        .and_then(|d| d.round(0))
        .and_then(|d| d.to_i64())
        .unwrap_or(if seconds.is_negative() {
            i64::MIN
        } else {
            i64::MAX
        });
    let within = micros.clamp(-TIME_MAX_MICROS, TIME_MAX_MICROS);
    if within != micros {
        warn_value(cx, "time", seconds.to_string().as_bytes());
    }
    Ok(Val::Time(
        Time::from_micros(within, ty.col.fsp())
            .round(0, ty.col.fsp())
            .0,
    ))
}

fn infer_unix_timestamp(_: &Infer<'_>, args: &mut [Expr]) -> Inferred {
    let Some(e) = args.first() else {
        return Ok(ExprType::bigint(false));
    };
    let is_date = |text: &[u8]| parse::parse_datetime(text, DateFlags::default()).is_ok();
    let text = e.ty.class() == Class::String && !e.ty.col.zerofill;
    let digits = match constants::text_of(e).filter(|_| text) {
        // As in MySQL, a text that is no date has six digits.
        Some(value) if !value.as_deref().is_some_and(is_date) => 6,
        _ => fsp_of(e),
    };
    Ok(match digits {
        0 => ExprType::bigint(e.ty.nullable),
        fsp => ExprType::decimal(11 + u32::from(fsp), u32::from(fsp), e.ty.nullable),
    })
}

/// 3001-01-19 00:00:00 in seconds since 1970, beyond all time stamps.
const MAX_INSTANT_S: i64 = 32_536_771_200;

/// UNIX_TIMESTAMP: seconds since 1970; 0 outside the range of TIMESTAMP.
fn eval_unix_timestamp<'a>(cx: &EvalCx<'a>, args: &'a [Expr], ty: &'a ExprType) -> Evaluated<'a> {
    let Some(e) = args.first() else {
        return Ok(Val::Int(cx.env().now().seconds()));
    };
    let (v, from) = cx.alternative(e)?;
    if v.is_null() {
        return Ok(Val::Null);
    }
    let at = match convert::to_datetime(cx, &v, from) {
        Some(local) => cx.env().time_zone().to_instant(local).map(|(at, _)| at),
        // As in MySQL, IF, CASE and NULLIF make NULL of a value that is no date, if they may be
        // NULL.
        None if e.ty.nullable && cx.is_chosen(e) => return Ok(Val::Null),
        None => None,
    };
    let micros = at
        .map(Timestamp::micros)
        .filter(|us| (MICROS_PER_SECOND..MAX_INSTANT_S * MICROS_PER_SECOND).contains(us))
        .unwrap_or(0);
    if ty.class() == Class::Int {
        return Ok(Val::Int(micros / MICROS_PER_SECOND));
    }
    let scale = ty.decimal_shape().1 as i32;
    let text = format!(
        "{}.{:06}",
        micros / MICROS_PER_SECOND,
        micros % MICROS_PER_SECOND
    );
    Ok(Val::Decimal(
        Decimal::parse_prefix(text.as_bytes()).value.truncate(scale),
    ))
}

fn infer_timediff(_: &Infer<'_>, args: &mut [Expr]) -> Inferred {
    let fsp = args.iter().map(fsp_of).max().unwrap_or(0);
    Ok(ExprType::new(ColumnType::new(TypeKind::Time(fsp)), true))
}

fn eval_timediff<'a>(cx: &EvalCx<'a>, args: &'a [Expr], ty: &'a ExprType) -> Evaluated<'a> {
    let micros = match (
        arg!(time_point(cx, &args[0])),
        arg!(time_point(cx, &args[1])),
    ) {
        (TimePoint::Time(x), TimePoint::Time(y)) => x.micros() - y.micros(),
        (TimePoint::DateTime(x), TimePoint::DateTime(y)) => y.micros_until(x),
        _ => return Ok(Val::Null),
    };
    Ok(clamped(cx, micros, ty.col.fsp()))
}

/// A TIME, clamped to its range with warning 1292.
fn clamped<'a>(cx: &EvalCx<'a>, micros: i64, fsp: u8) -> Val<'a> {
    let within = micros.clamp(-TIME_MAX_MICROS, TIME_MAX_MICROS);
    if within != micros {
        let s = micros.abs() / MICROS_PER_SECOND;
        let sign = if micros < 0 { "-" } else { "" };
        let shown = format!("{sign}{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
        warn_value(cx, "time", shown.as_bytes());
    }
    Val::Time(Time::from_micros(within, fsp))
}

fn infer_addtime(cx: &Infer<'_>, args: &mut [Expr]) -> Inferred {
    let fsp = args.iter().map(fsp_of).max().unwrap_or(0);
    Ok(match args[0].ty.class() {
        Class::Date | Class::DateTime => {
            ExprType::new(ColumnType::new(TypeKind::DateTime(fsp)), true)
        }
        Class::Time => ExprType::new(ColumnType::new(TypeKind::Time(fsp)), true),
        _ => {
            let mut ty = cx.connection_string(29);
            ty.col.kind = TypeKind::Char(29);
            ty
        }
    })
}

fn add_time<'a>(cx: &EvalCx<'a>, args: &'a [Expr], ty: &'a ExprType, sign: i64) -> Evaluated<'a> {
    let start = match arg!(time_point(cx, &args[0])) {
        TimePoint::Time(t) if ty.class() == Class::DateTime => {
            let today = cx.now(0).date().at_midnight().to_linear();
            let sum = DateTime::from_linear(today + t.micros(), t.fsp);
            TimePoint::DateTime(sum.unwrap_or_default())
        }
        start => start,
    };
    let by = arg!(cx.time(&args[1])).micros() * sign;
    let text = ty.class() == Class::String;
    let digits = |micros: i64| {
        if !text {
            ty.col.fsp()
        } else if micros % MICROS_PER_SECOND == 0 {
            0
        } else {
            6
        }
    };
    Ok(match start {
        TimePoint::DateTime(d) => {
            if d.date().month() == 0 || d.date().day() == 0 {
                return Ok(Val::Null);
            }
            let micros = d.to_linear() + by;
            match DateTime::from_linear(micros, digits(micros)) {
                Some(sum) => Val::DateTime(sum),
                None => {
                    cx.warn(ErrorCode::ER_DATETIME_FUNCTION_OVERFLOW, &[&"datetime"]);
                    Val::Null
                }
            }
        }
        TimePoint::Time(t) => {
            let micros = t.micros() + by;
            let sum = clamped(cx, micros, digits(micros));
            match sum {
                // A TIME outside its range is NULL; in an expression of string type it is clamped.
                Val::Time(t) if !text && t.micros() != micros => Val::Null,
                Val::Time(t) if t.micros() != micros => {
                    Val::Time(Time::from_micros(t.micros(), digits(t.micros())))
                }
                sum => sum,
            }
        }
    })
}

fn infer_period(_: &Infer<'_>, args: &mut [Expr]) -> Inferred {
    Ok(ExprType::bigint(any_nullable(args)))
}

/// The number of months since year 0 in a period YYYYMM or YYMM. Error 1210 if it is invalid.
fn period_months(period: i64, name: &str) -> Result<i64, nfold_types::SqlError> {
    let (year, month) = (period / 100, period % 100);
    if period <= 0 || !(1..=12).contains(&month) {
        return Err(nfold_types::SqlError::new(
            ErrorCode::ER_WRONG_ARGUMENTS,
            &[&name],
        ));
    }
    let year = match year {
        0..70 => year + 2000,
        70..100 => year + 1900,
        _ => year,
    };
    Ok(year * 12 + month - 1)
}

fn infer_convert_tz(_: &Infer<'_>, args: &mut [Expr]) -> Inferred {
    let kind = TypeKind::DateTime(fsp_of(&args[0]));
    Ok(ExprType::new(ColumnType::new(kind), true))
}

fn eval_convert_tz<'a>(cx: &EvalCx<'a>, args: &'a [Expr], ty: &'a ExprType) -> Evaluated<'a> {
    let local = arg!(whole_datetime(cx, &args[0]));
    let (from, to) = (arg!(cx.bytes(&args[1])), arg!(cx.bytes(&args[2])));
    let zone = |name: &[u8]| TimeZone::parse(&String::from_utf8_lossy(name));
    let (Some(from), Some(to)) = (zone(&from), zone(&to)) else {
        return Ok(Val::Null);
    };
    // A value outside the range of TIMESTAMP stays unchanged.
    let at = from
        .to_instant(local)
        .map(|(at, _)| at)
        .filter(|at| (MICROS_PER_SECOND..MAX_INSTANT_S * MICROS_PER_SECOND).contains(&at.micros()));
    let moved = at.and_then(|at| to.to_local(at)).unwrap_or(local);
    Ok(Val::DateTime(moved.with_fsp(ty.col.fsp())))
}
