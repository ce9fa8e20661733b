//! DATE, TIME, DATETIME and TIMESTAMP.

use super::{StoreCx, as_datetime, shown, text_of};
use crate::error::{ErrorCode, Level, SqlError};
use crate::number::double_to_integer;
use crate::temporal::calendar::is_valid_date;
use crate::temporal::parse::{
    check_date, datetime_of_number, parse_datetime, parse_time, time_of_number,
};
use crate::temporal::{Date, DateTime, TIME_MAX_MICROS, TemporalError, Time, Timestamp};
use crate::{CollationId, Decimal, Value, ValueRef};

/// Why a value does not fit, named by the warning outside strict mode.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Problem {
    /// 1265: no date at all, or something behind it.
    Truncated,
    /// 1264: a date that is none, or that the column does not take.
    OutOfRange,
    /// 1441: rounding leaves the calendar.
    Overflow,
}

impl From<TemporalError> for Problem {
    fn from(e: TemporalError) -> Problem {
        match e {
            TemporalError::Malformed => Problem::Truncated,
            TemporalError::OutOfRange | TemporalError::ZeroInDate | TemporalError::ZeroDate => {
                Problem::OutOfRange
            }
        }
    }
}

/// Reports a problem; `kind` and `value` are what the strict message names: "Incorrect `kind`
/// value: '`value`' for column ...".
fn report(problem: Problem, kind: &str, value: &str, cx: &mut StoreCx<'_>) -> Result<(), SqlError> {
    if problem == Problem::Overflow {
        cx.bad(ErrorCode::ER_DATETIME_FUNCTION_OVERFLOW, &[&"datetime"])?;
    }
    if cx.is_strict() {
        return Err(incorrect(kind, value, cx));
    }
    match problem {
        Problem::Truncated => cx.truncated(),
        Problem::OutOfRange | Problem::Overflow => cx.out_of_range(),
    }
}

/// 1292 with the column and row.
fn incorrect(kind: &str, value: &str, cx: &StoreCx<'_>) -> SqlError {
    let value: String = value.chars().take(128).collect();
    let message = format!(
        "Incorrect {kind} value: '{value}' for column '{}' at row {}",
        cx.column, cx.row
    );
    SqlError::with_message(ErrorCode::ER_TRUNCATED_WRONG_VALUE, message)
}

/// A part of the value is left out: a note in every mode.
fn note(kind: &str, value: &str, cx: &mut StoreCx<'_>) {
    if cx.is_strict() {
        let error = incorrect(kind, value, cx);
        cx.warnings.push_error(Level::Note, &error);
    } else {
        cx.truncated_note();
    }
}

/// A value as a date and time, before it is fitted to the column.
struct Given {
    value: DateTime,
    nanos: u32,
    problem: Option<Problem>,
}

/// The value as messages show it: a text as it is, a number in digits, a temporal value with `fsp`
/// fractional digits.
fn message_text(value: ValueRef<'_>, fsp: u8, cx: &StoreCx<'_>) -> String {
    match value {
        ValueRef::Bytes(text) => shown(text, cx.from),
        ValueRef::DateTime(v) => fit(v, 0, fsp, cx).unwrap_or(v).with_fsp(fsp).to_string(),
        ValueRef::Time(v) => v.truncate(fsp).to_string(),
        other => shown(&text_of(other, cx.mode), CollationId::UTF8MB4_BIN),
    }
}

/// Rounds to `fsp` digits, or cuts where the session says so.
fn fit(v: DateTime, nanos: u32, fsp: u8, cx: &StoreCx<'_>) -> Option<DateTime> {
    if cx.mode.truncate_fractional {
        Some(v.truncate(fsp))
    } else {
        v.round(nanos, fsp)
    }
}

fn fit_time(v: Time, nanos: u32, fsp: u8, cx: &StoreCx<'_>) -> (Time, bool) {
    if cx.mode.truncate_fractional {
        (v.truncate(fsp), false)
    } else {
        v.round(nanos, fsp)
    }
}

/// (whole part towards zero, nanoseconds of the rest, its sign); `None` past i64.
fn split_decimal(v: &Decimal) -> Option<(i64, u32, bool)> {
    let whole = v.truncate(0);
    let rest = v.sub(&whole)?.abs().truncate(9).rescale(9)?;
    Some((whole.to_i64()?, rest.magnitude().as_u32(), v.is_negative()))
}

/// A number's whole part and nanoseconds. A double is read as its shortest decimal text.
fn split_number(value: ValueRef<'_>) -> Option<(i64, u32, bool)> {
    match value {
        ValueRef::Int(v) => Some((v, 0, v < 0)),
        ValueRef::UInt(v) => i64::try_from(v).ok().map(|v| (v, 0, false)),
        ValueRef::Decimal(v) => split_decimal(&v),
        ValueRef::Float(v) => split_number(ValueRef::Double(f64::from(v))),
        ValueRef::Double(v) => {
            double_to_integer(v)?;
            split_decimal(&Decimal::from_f64(v)?)
        }
        _ => None,
    }
}

/// Whether a number is below zero.
fn below_zero(value: ValueRef<'_>) -> bool {
    match value {
        ValueRef::Int(v) => v < 0,
        ValueRef::Decimal(v) => v.is_negative(),
        ValueRef::Float(v) => v < 0.0,
        ValueRef::Double(v) => v < 0.0,
        _ => false,
    }
}

/// The date and time that a value says; an error is a value that says none.
fn given(value: ValueRef<'_>, cx: &mut StoreCx<'_>) -> Result<Given, Problem> {
    let flags = cx.mode.dates;
    match value {
        ValueRef::Bytes(text) => {
            let parsed = parse_datetime(text, flags)?;
            if let Some(odd) = parsed.odd {
                let warning = odd.warning(text, cx.row);
                cx.warnings.push_error(Level::Warning, &warning);
            }
            let value = parsed
                .to_zone(&cx.mode.time_zone)
                .ok_or(Problem::OutOfRange)?;
            Ok(Given {
                value,
                nanos: parsed.nanos,
                problem: parsed.truncated.then_some(Problem::Truncated),
            })
        }
        ValueRef::Date(_) | ValueRef::DateTime(_) | ValueRef::Timestamp(_) | ValueRef::Time(_) => {
            let value = as_datetime(value, cx.mode).ok_or(Problem::OutOfRange)?;
            check_date(value.date(), value.packed() == 0, flags)?;
            Ok(Given {
                value,
                nanos: 0,
                problem: None,
            })
        }
        _ => {
            let (whole, nanos, negative) = split_number(value).ok_or(Problem::OutOfRange)?;
            if negative {
                return Err(Problem::OutOfRange);
            }
            let value = match datetime_of_number(whole, flags) {
                Err(TemporalError::ZeroDate) => return Err(Problem::OutOfRange),
                Err(_) if whole > MAX_DATE_NUMBER => return Err(Problem::OutOfRange),
                // Smaller numbers do not tell one fault from another.
                other => other.map_err(|_| Problem::Truncated)?,
            };
            if nanos != 0 && whole != 0 && is_date_number(whole) {
                return Ok(Given {
                    value,
                    nanos: 0,
                    problem: Some(Problem::Truncated),
                });
            }
            let fraction = DateTime::new(
                value.date(),
                value.hour(),
                value.minute(),
                value.second(),
                nanos / 1000,
                6,
            );
            Ok(Given {
                value: fraction,
                nanos: nanos % 1000,
                problem: None,
            })
        }
    }
}

/// The largest number with the digits of a date and time.
const MAX_DATE_NUMBER: i64 = 99_999_999_999_999;

/// Whether a number is a date alone: YYMMDD or YYYYMMDD.
fn is_date_number(n: i64) -> bool {
    n <= 99_991_231
}

/// The date-time fitted to `fsp` digits, or the zero one; the flag tells that a warning was needed.
fn fitted(
    value: ValueRef<'_>,
    kind: &str,
    fsp: u8,
    cx: &mut StoreCx<'_>,
) -> Result<(DateTime, bool), SqlError> {
    let zero = DateTime::ZERO.with_fsp(fsp);
    let problem = match given(value, cx) {
        Err(problem) => problem,
        Ok(given) => match fit(given.value, given.nanos, fsp, cx) {
            // No date at all, of which a fraction makes none.
            None if given.value.date() == Date::ZERO => Problem::OutOfRange,
            None => Problem::Overflow,
            Some(v) => {
                if let Some(problem) = given.problem {
                    let text = message_text(value, fsp, cx);
                    report(problem, kind, &text, cx)?;
                }
                return Ok((v, given.problem.is_some()));
            }
        },
    };
    let text = message_text(value, fsp, cx);
    report(problem, kind, &text, cx)?;
    Ok((zero, true))
}

pub(super) fn datetime(
    value: ValueRef<'_>,
    fsp: u8,
    cx: &mut StoreCx<'_>,
) -> Result<Value, SqlError> {
    fitted(value, "datetime", fsp, cx).map(|(v, _)| Value::DateTime(v))
}

pub(super) fn date(value: ValueRef<'_>, cx: &mut StoreCx<'_>) -> Result<Value, SqlError> {
    if let ValueRef::Date(v) = value
        && check_date(v, v == Date::ZERO, cx.mode.dates).is_ok()
    {
        return Ok(Value::Date(v));
    }
    let (v, warned) = fitted(value, "date", 0, cx)?;
    // The note says that a time of day is left out; a warning about the same value has said more.
    if v.time().micros() != 0 && !warned {
        let text = message_text(value, 0, cx);
        note("date", &text, cx);
    }
    Ok(Value::Date(v.date()))
}

pub(super) fn timestamp(
    value: ValueRef<'_>,
    fsp: u8,
    cx: &mut StoreCx<'_>,
) -> Result<Value, SqlError> {
    let zero = Value::Timestamp(Timestamp::ZERO.with_fsp(fsp));
    if let ValueRef::Timestamp(v) = value
        && !v.is_zero()
    {
        // A TIMESTAMP is a point in time, independent of the time zone.
        let fitted = v.round(fsp);
        if (1..=Timestamp::MAX_SECONDS).contains(&fitted.seconds()) && !cx.mode.truncate_fractional
        {
            return Ok(Value::Timestamp(fitted));
        }
    }
    let (local, _) = fitted(value, "datetime", fsp, cx)?;
    if local.packed() == 0 {
        return Ok(zero);
    }
    let instant = if is_valid_date(local.date()) {
        cx.mode.time_zone.to_instant(local)
    } else {
        None
    };
    match instant {
        Some((at, exists)) if (1..=Timestamp::MAX_SECONDS).contains(&at.seconds()) => {
            if !exists && cx.is_strict() {
                let text = message_text(value, fsp, cx);
                return Err(incorrect("datetime", &text, cx));
            }
            if !exists {
                cx.warnings
                    .warn(ErrorCode::ER_WARN_INVALID_TIMESTAMP, &[&cx.column, &cx.row]);
            }
            Ok(Value::Timestamp(at.with_fsp(fsp)))
        }
        _ => {
            let text = message_text(value, fsp, cx);
            // Numbers with a zero part are called truncated here, texts out of range.
            let number = !matches!(value, ValueRef::Bytes(_)) && !is_valid_date(local.date());
            let problem = if number {
                Problem::Truncated
            } else {
                Problem::OutOfRange
            };
            report(problem, "datetime", &text, cx)?;
            Ok(zero)
        }
    }
}

/// A value as a TIME, before it is fitted to the column.
struct GivenTime {
    value: Time,
    nanos: u32,
    problem: Option<Problem>,
    /// A date is left out.
    dated: bool,
}

/// Whether the text of a time has nothing, or only a sign, between blanks.
fn is_blank(text: &[u8]) -> bool {
    matches!(text.trim_ascii(), [] | [b'-'])
}

fn given_time(value: ValueRef<'_>, cx: &mut StoreCx<'_>) -> Result<GivenTime, Problem> {
    let plain = |value: Time| GivenTime {
        value,
        nanos: 0,
        problem: None,
        dated: false,
    };
    match value {
        ValueRef::Bytes(text) if is_blank(text) => Ok(plain(Time::default())),
        ValueRef::Bytes(text) => {
            let parsed = parse_time(text)?;
            if let Some(odd) = parsed.odd {
                let warning = odd.warning(text, cx.row);
                cx.warnings.push_error(Level::Warning, &warning);
            }
            let value = parsed
                .to_zone(&cx.mode.time_zone)
                .ok_or(Problem::OutOfRange)?;
            let problem = match (parsed.clamped, parsed.truncated) {
                (true, _) => Some(Problem::OutOfRange),
                (false, true) => Some(Problem::Truncated),
                _ => None,
            };
            let dated = parsed.dated.is_some_and(|d| d.value.date() != Date::ZERO);
            Ok(GivenTime {
                value,
                nanos: parsed.nanos,
                problem,
                dated,
            })
        }
        ValueRef::Time(v) => Ok(plain(v)),
        ValueRef::Date(_) | ValueRef::DateTime(_) | ValueRef::Timestamp(_) => {
            as_datetime(value, cx.mode)
                .map(|v| plain(v.time()))
                .ok_or(Problem::OutOfRange)
        }
        _ => {
            let beyond = |value| GivenTime {
                value,
                nanos: 0,
                problem: Some(Problem::OutOfRange),
                dated: false,
            };
            let Some((whole, nanos, negative)) = split_number(value) else {
                // Further out than any number of digits: the end that is nearer.
                let end = match below_zero(value) {
                    true => -TIME_MAX_MICROS,
                    false => TIME_MAX_MICROS,
                };
                return Ok(beyond(Time::from_micros(end, 0)));
            };
            let (time, clamped) = time_of_number(whole)?;
            let dated = whole >= 10_000_000_000;
            if clamped {
                return Ok(beyond(time));
            }
            let micros = i64::from(nanos / 1000);
            let micros = time.micros() + if negative { -micros } else { micros };
            if micros.abs() > TIME_MAX_MICROS {
                return Ok(beyond(time));
            }
            let value = Time::from_micros(micros, 6);
            Ok(GivenTime {
                value,
                nanos: nanos % 1000,
                problem: None,
                dated,
            })
        }
    }
}

pub(super) fn time(value: ValueRef<'_>, fsp: u8, cx: &mut StoreCx<'_>) -> Result<Value, SqlError> {
    let given = match given_time(value, cx) {
        Ok(given) => given,
        Err(problem) => {
            let text = message_text(value, fsp, cx);
            report(problem, "time", &text, cx)?;
            return Ok(Value::Time(Time::from_micros(0, fsp)));
        }
    };
    let (fitted, clamped) = fit_time(given.value, given.nanos, fsp, cx);
    let problem = given.problem.or(clamped.then_some(Problem::OutOfRange));
    if let Some(problem) = problem {
        let text = message_text(value, fsp, cx);
        report(problem, "time", &text, cx)?;
    } else if given.dated {
        let text = message_text(value, fsp, cx);
        note("time", &text, cx);
    }
    Ok(Value::Time(fitted))
}
