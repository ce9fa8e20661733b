//! Integers, DECIMAL, FLOAT, DOUBLE, YEAR and BIT.

use super::{StoreCx, as_datetime, shown, text_of};
use crate::error::{ErrorCode, SqlError};
use crate::number::{
    begins_with_break, double_to_integer, parse_decimal, parse_double, parse_rounded_integer,
};
use crate::sql_type::{ColumnType, NOT_FIXED_DECIMALS, TypeKind};
use crate::temporal::{DateTime, Time};
use crate::{Decimal, Value, ValueRef};

/// A temporal value as a number: 20240131, 20240131235959.5, -101112.
fn temporal_number(value: ValueRef<'_>, cx: &StoreCx<'_>) -> Option<Decimal> {
    let with_fraction = |whole: Decimal, micros: u32, fsp: u8, negative: bool| {
        let fraction = Decimal::from_parts(negative, u128::from(micros).into(), 6)?;
        whole.add(&fraction)?.rescale(fsp)
    };
    match value {
        ValueRef::Date(v) => Some(Decimal::from(v.to_number())),
        ValueRef::Time(v) => with_fraction(
            Decimal::from(v.to_number()),
            v.parts().3,
            v.fsp,
            v.is_negative(),
        ),
        ValueRef::DateTime(_) | ValueRef::Timestamp(_) => {
            let v = as_datetime(value, cx.mode)?;
            with_fraction(Decimal::from(v.to_number()), v.micros(), v.fsp, false)
        }
        _ => None,
    }
}

/// A temporal value rounded to a whole number, or cut where the session says so; the rounding
/// carries in time (23:59:59.9 is the next day's 00:00:00).
fn temporal_integer(value: ValueRef<'_>, cx: &StoreCx<'_>) -> Option<i128> {
    let cuts = cx.mode.truncate_fractional;
    match value {
        ValueRef::Date(v) => Some(i128::from(v.to_number())),
        ValueRef::Time(v) if cuts => Some(i128::from(v.to_number())),
        ValueRef::Time(v) => Some(i128::from(Time::round(v, 0, 0).0.to_number())),
        _ => as_datetime(value, cx.mode)
            .and_then(|v| match cuts {
                true => Some(v),
                false => DateTime::round(v, 0, 0),
            })
            .map(|v| i128::from(v.to_number())),
    }
}

fn decimal_to_integer(v: &Decimal) -> i128 {
    let rounded = v.round(0).unwrap_or(*v);
    let m = rounded.magnitude();
    // Anything past 128 bits is past every integer type.
    let m = i128::try_from(m).unwrap_or(i128::MAX);
    if rounded.is_negative() { -m } else { m }
}

pub(super) fn integer(
    value: ValueRef<'_>,
    ty: &ColumnType,
    cx: &mut StoreCx<'_>,
) -> Result<Value, SqlError> {
    let (low, high) = ty.int_range().unwrap_or((0, 0));
    if let ValueRef::Int(v) = value
        && (low as i64..=i64::try_from(high).unwrap_or(i64::MAX)).contains(&v)
    {
        return Ok(match ty.unsigned {
            true => Value::UInt(v as u64),
            false => Value::Int(v),
        });
    }
    let make = |v: i128| {
        if ty.unsigned {
            Value::UInt(v as u64)
        } else {
            Value::Int(v as i64)
        }
    };
    let wide = match value {
        ValueRef::Int(v) => i128::from(v),
        ValueRef::UInt(v) => i128::from(v),
        // Any negative number is out of an unsigned column's range, even one that rounds to zero.
        ValueRef::Decimal(v) if ty.unsigned && v.is_negative() => -1,
        ValueRef::Decimal(v) => decimal_to_integer(&v),
        ValueRef::Float(v) => float_to_wide(f64::from(v)),
        ValueRef::Double(v) => float_to_wide(v),
        ValueRef::Bytes(text) => {
            let parsed = parse_rounded_integer(text);
            let negative = parsed.value < 0;
            let clamped = parsed.value.clamp(low, high);
            if parsed.overflow || clamped != parsed.value {
                cx.out_of_range()?;
                return Ok(make(if negative { low } else { clamped }));
            }
            if parsed.truncated {
                integer_text_problem(text, cx)?;
            }
            return Ok(make(parsed.value));
        }
        _ => match temporal_integer(value, cx) {
            Some(v) => v,
            None => return bad_temporal(make(0), cx),
        },
    };
    let clamped = wide.clamp(low, high);
    if clamped != wide {
        cx.out_of_range()?;
    }
    Ok(make(clamped))
}

/// A text that is no whole number, or more than one: 1366 where there is no digit to start with,
/// otherwise 1265.
fn integer_text_problem(text: &[u8], cx: &mut StoreCx<'_>) -> Result<(), SqlError> {
    let parsed = Decimal::parse_prefix(text);
    if parsed.used == 0 || begins_with_break(text) {
        return cx.incorrect("integer", &shown(text, cx.from));
    }
    // An exponent without digits is taken for one ('1e' is 1).
    let rest = &text[parsed.used..];
    let rest = rest
        .strip_prefix(b"e")
        .or_else(|| rest.strip_prefix(b"E"))
        .unwrap_or(rest);
    if rest.iter().all(|b| crate::number::is_space(*b)) {
        Ok(())
    } else {
        cx.truncated()
    }
}

fn float_to_wide(v: f64) -> i128 {
    double_to_integer(v).unwrap_or(if v < 0.0 { i128::MIN } else { i128::MAX })
}

fn bad_temporal(zero: Value, cx: &mut StoreCx<'_>) -> Result<Value, SqlError> {
    cx.out_of_range()?;
    Ok(zero)
}

/// As a whole number that has no sign: nothing below zero is one, however near.
fn unsigned_decimal(v: &Decimal) -> i128 {
    match v.is_negative() && !v.is_zero() {
        true => -1,
        false => decimal_to_integer(v),
    }
}

/// A year is cut out of a double, where a decimal is rounded.
fn cut_year(v: f64) -> i128 {
    if v < 0.0 {
        -1
    } else {
        float_to_wide(v.trunc())
    }
}

pub(super) fn year(value: ValueRef<'_>, cx: &mut StoreCx<'_>) -> Result<Value, SqlError> {
    let (number, four_digits) = match value {
        ValueRef::Bytes(text) => {
            let parsed = parse_rounded_integer(text);
            let in_range =
                (0..100).contains(&parsed.value) || (1901..=2155).contains(&parsed.value);
            if parsed.truncated && !parsed.overflow && in_range {
                integer_text_problem(text, cx)?;
                if Decimal::parse_prefix(text).used == 0 || begins_with_break(text) {
                    return Ok(Value::UInt(0));
                }
            }
            // '0' and '00' are 2000, '0000' is the zero year.
            (parsed.value, text.len() == 4)
        }
        ValueRef::Int(v) => (i128::from(v), v == 0),
        ValueRef::UInt(v) => (i128::from(v), v == 0),
        ValueRef::Decimal(v) => (unsigned_decimal(&v), true),
        ValueRef::Float(v) => (cut_year(f64::from(v)), true),
        ValueRef::Double(v) => (cut_year(v), true),
        _ => match as_datetime(value, cx.mode) {
            Some(v) => (i128::from(v.date().year()), true),
            None => return bad_temporal(Value::UInt(0), cx),
        },
    };
    let year = match number {
        0 if four_digits => 0,
        0..70 => number + 2000,
        70..100 => number + 1900,
        1901..=2155 => number,
        _ => {
            cx.out_of_range()?;
            0
        }
    };
    Ok(Value::UInt(year as u64))
}

pub(super) fn decimal(
    value: ValueRef<'_>,
    unsigned: bool,
    precision: u8,
    scale: u8,
    cx: &mut StoreCx<'_>,
) -> Result<Value, SqlError> {
    let number = match value {
        ValueRef::Decimal(v) => Some(v),
        ValueRef::Int(v) => Some(Decimal::from(v)),
        ValueRef::UInt(v) => Some(Decimal::from(v)),
        ValueRef::Float(v) => Decimal::from_f64(f64::from(v)),
        ValueRef::Double(v) => Decimal::from_f64(v),
        ValueRef::Bytes(text) => return decimal_text(text, unsigned, precision, scale, cx),
        _ => match temporal_number(value, cx) {
            Some(v) => Some(v),
            None => return bad_temporal(Value::Decimal(zero(scale)), cx),
        },
    };
    let number = match number {
        Some(v) => v,
        None => {
            let negative = matches!(value, ValueRef::Double(v) if v < 0.0)
                || matches!(value, ValueRef::Float(v) if v < 0.0);
            cx.out_of_range()?;
            return Ok(Value::Decimal(bound(unsigned, precision, scale, negative)));
        }
    };
    fit_decimal(number, unsigned, precision, scale, cx)
}

fn zero(scale: u8) -> Decimal {
    Decimal::ZERO.rescale(scale).unwrap_or(Decimal::ZERO)
}

fn bound(unsigned: bool, precision: u8, scale: u8, negative: bool) -> Decimal {
    if unsigned && negative {
        zero(scale)
    } else {
        Decimal::max_of(precision, scale, negative)
    }
}

fn fit_decimal(
    v: Decimal,
    unsigned: bool,
    precision: u8,
    scale: u8,
    cx: &mut StoreCx<'_>,
) -> Result<Value, SqlError> {
    if unsigned && v.is_negative() {
        cx.out_of_range()?;
        return Ok(Value::Decimal(zero(scale)));
    }
    match v
        .rescale(scale)
        .filter(|r| r.digits() <= u32::from(precision))
    {
        Some(rounded) => {
            if rounded != v {
                cx.truncated_note();
            }
            Ok(Value::Decimal(rounded))
        }
        None => {
            cx.out_of_range()?;
            Ok(Value::Decimal(bound(
                unsigned,
                precision,
                scale,
                v.is_negative(),
            )))
        }
    }
}

fn decimal_text(
    text: &[u8],
    unsigned: bool,
    precision: u8,
    scale: u8,
    cx: &mut StoreCx<'_>,
) -> Result<Value, SqlError> {
    let parsed = parse_decimal(text);
    if parsed.overflow {
        cx.out_of_range()?;
        return Ok(Value::Decimal(bound(
            unsigned,
            precision,
            scale,
            parsed.value.is_negative(),
        )));
    }
    if parsed.truncated {
        let no_number = Decimal::parse_prefix(text).used == 0;
        if no_number || cx.is_strict() {
            cx.incorrect("decimal", &shown(text, cx.from))?;
        } else {
            cx.truncated_note();
        }
    }
    fit_decimal(parsed.value, unsigned, precision, scale, cx)
}

pub(super) fn floating(
    value: ValueRef<'_>,
    ty: &ColumnType,
    cx: &mut StoreCx<'_>,
) -> Result<Value, SqlError> {
    let single = ty.kind == TypeKind::Float;
    let number = match value {
        ValueRef::Float(v) => f64::from(v),
        ValueRef::Double(v) => v,
        ValueRef::Int(v) => v as f64,
        ValueRef::UInt(v) => v as f64,
        ValueRef::Decimal(v) => v.to_f64(),
        ValueRef::Bytes(text) => {
            let parsed = parse_double(text);
            if parsed.truncated && !parsed.overflow {
                cx.incorrect(
                    if single { "FLOAT" } else { "DOUBLE" },
                    &shown(text, cx.from),
                )?;
            } else if parsed.overflow {
                cx.out_of_range()?;
            }
            parsed.value
        }
        _ => match temporal_number(value, cx) {
            Some(v) => v.to_f64(),
            None => return bad_temporal(super::implicit_default(ty), cx),
        },
    };
    let fitted = fit_float(number, ty, single);
    if fitted.is_none() {
        cx.out_of_range()?;
    }
    let stored = fitted.unwrap_or_else(|| float_bound(number, ty, single));
    Ok(if single {
        Value::Float(stored as f32)
    } else {
        Value::Double(stored)
    })
}

/// The largest magnitude of the column.
fn float_max(ty: &ColumnType, single: bool) -> f64 {
    let type_max = if single {
        f64::from(f32::MAX)
    } else {
        f64::MAX
    };
    if ty.decimals == NOT_FIXED_DECIMALS {
        return type_max;
    }
    let max = 10f64.powi((ty.width as i32) - i32::from(ty.decimals))
        - 10f64.powi(-i32::from(ty.decimals));
    max.min(type_max)
}

fn float_bound(v: f64, ty: &ColumnType, single: bool) -> f64 {
    let max = float_max(ty, single);
    if v < 0.0 {
        if ty.unsigned { 0.0 } else { -max }
    } else {
        max
    }
}

/// The number as the column holds it, rounded to the D of FLOAT(M,D); `None` out of its range.
fn fit_float(v: f64, ty: &ColumnType, single: bool) -> Option<f64> {
    if ty.unsigned && v < 0.0 {
        return None;
    }
    let mut rounded = v;
    if ty.decimals != NOT_FIXED_DECIMALS {
        let unit = 10f64.powi(i32::from(ty.decimals));
        let whole = v.trunc();
        rounded = whole + ((v - whole) * unit).round_ties_even() / unit;
    }
    (rounded.abs() <= float_max(ty, single)).then_some(rounded)
}

pub(super) fn bit(value: ValueRef<'_>, bits: u8, cx: &mut StoreCx<'_>) -> Result<Value, SqlError> {
    let max = u64::MAX >> (64 - u32::from(bits.clamp(1, 64)));
    let number = match value {
        ValueRef::Bytes(bytes) => bits_of(bytes),
        ValueRef::Int(v) => Some(v as u64),
        ValueRef::UInt(v) => Some(v),
        ValueRef::Decimal(v) => match unsigned_decimal(&v) {
            whole @ 0.. if whole <= i128::from(u64::MAX) => Some(whole as u64),
            whole => {
                cx.out_of_range()?;
                Some(if whole < 0 { 0 } else { u64::MAX })
            }
        },
        // Cut, not rounded, and never beyond a BIGINT.
        ValueRef::Float(v) => Some(v as i64 as u64),
        ValueRef::Double(v) => Some(v as i64 as u64),
        // The bytes of its text.
        _ => bits_of(&text_of(value, cx.mode)),
    };
    match number {
        Some(v) if v <= max => Ok(Value::UInt(v)),
        _ => {
            let (column, row) = (cx.column, cx.row);
            // The strict code is given with IGNORE as well.
            let code = if cx.mode.strict {
                ErrorCode::ER_DATA_TOO_LONG
            } else {
                ErrorCode::ER_WARN_DATA_OUT_OF_RANGE
            };
            cx.bad(code, &[&column, &row])?;
            Ok(Value::UInt(max))
        }
    }
}

/// Bytes as one number, the first the highest; `None` where there are more than eight.
fn bits_of(bytes: &[u8]) -> Option<u64> {
    let start = bytes.iter().take_while(|b| **b == 0).count();
    let significant = &bytes[start..];
    (significant.len() <= 8).then(|| significant.iter().fold(0, |n, b| n << 8 | u64::from(*b)))
}
