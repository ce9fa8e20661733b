//! Converts values for the parts of a key.

use nfold_plan::expr::is_constant;
use nfold_plan::expr::{Class, Expr, ExprType};
use nfold_types::{ColumnType, Decimal, SqlError, Timestamp, TypeKind, Value, ValueRef};

use crate::expr::eval::{EvalCx, Val, compare, convert};

/// A value, as compared with a key part.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum KeyValue {
    Exact(Value),
    /// Between this value of the column and the next one.
    Above(Value),
    /// Less than every value of the column.
    BelowAll,
    /// Greater than every value of the column.
    AboveAll,
    /// NULL, or a value that no value of the column compares equal to.
    Nothing,
    /// Somewhere between these values: the rows must be tested.
    Near(Value, Value),
    /// Unknown: the rows must be tested.
    Unknown,
}

/// Decimals with at most this many significant digits are different doubles if they differ.
const DISTINCT_DIGITS: i32 = 15;

/// The smallest and the largest value of an integer column, and whether it is unsigned.
fn whole_limits(ty: &ColumnType) -> ((i128, i128), bool) {
    let limits = match ty.kind {
        TypeKind::Bit(n) => (0, (1i128 << n) - 1),
        // '0000' sorts before the others.
        TypeKind::Year => (0, 2155),
        _ => ty
            .int_range()
            .unwrap_or((i128::from(i64::MIN), i128::from(u64::MAX))),
    };
    let unsigned = ty.unsigned || matches!(ty.kind, TypeKind::Bit(_) | TypeKind::Year);
    (limits, unsigned)
}

fn whole_value(v: i128, unsigned: bool) -> Value {
    match unsigned {
        true => Value::UInt(v as u64),
        false => Value::Int(v as i64),
    }
}

fn whole_number(v: i128, ty: &ColumnType) -> KeyValue {
    let ((min, max), unsigned) = whole_limits(ty);
    if v < min {
        KeyValue::BelowAll
    } else if v > max {
        KeyValue::AboveAll
    } else if ty.kind == TypeKind::Year && (1..=1900).contains(&v) {
        // This is no year. YEAR has no encoding for it, and would find the year 0.
        KeyValue::Above(Value::UInt(0))
    } else {
        KeyValue::Exact(whole_value(v, unsigned))
    }
}

/// The range of integers that equal `f` as doubles.
fn integers_near(f: f64, ty: &ColumnType) -> KeyValue {
    if f.abs() < compare::LEAST_SHARED {
        return match whole_number(f.floor() as i128, ty) {
            KeyValue::Exact(v) if f.floor() != f => KeyValue::Above(v),
            other => other,
        };
    }
    let ((min, max), unsigned) = whole_limits(ty);
    // Half way to the neighbouring doubles, both ends included.
    let half_way = |neighbour: f64| (neighbour as i128 / 2) + (f as i128 / 2);
    let (lo, hi) = (half_way(f.next_down()) - 1, half_way(f.next_up()) + 1);
    if hi < min {
        KeyValue::BelowAll
    } else if lo > max {
        KeyValue::AboveAll
    } else {
        let value = |v: i128| whole_value(v.clamp(min, max), unsigned);
        KeyValue::Near(value(lo), value(hi))
    }
}

/// The range of a column's decimals that equal `f` as doubles.
fn decimals_near(f: f64, precision: u8, scale: u8) -> KeyValue {
    let beyond = |d: &Decimal| d.int_digits() > u32::from(precision - scale);
    let Some(d) = Decimal::from_f64(f) else {
        return KeyValue::Unknown;
    };
    if f.abs() < 10f64.powi(DISTINCT_DIGITS - i32::from(scale)) {
        return decimal_key(&d, precision, scale);
    }
    let (lo, hi) = (f.next_down(), f.next_up());
    let (Some(lo), Some(hi), Some(step)) = (
        Decimal::from_f64(lo),
        Decimal::from_f64(hi),
        Decimal::from_parts(false, 1u64.into(), scale),
    ) else {
        return KeyValue::Unknown;
    };
    // Truncated to the column's scale, and widened by one step.
    let cut = |d: Decimal| d.truncate(i32::from(scale));
    match (cut(lo).sub(&step), cut(hi).add(&step)) {
        (Some(lo), Some(hi)) if beyond(&lo) && beyond(&hi) && f > 0.0 => KeyValue::AboveAll,
        (Some(lo), Some(hi)) if beyond(&lo) && beyond(&hi) => KeyValue::BelowAll,
        (Some(lo), Some(hi)) => {
            let within = |d: Decimal| match d.rescale(scale).filter(|d| !beyond(d)) {
                Some(d) => Value::Decimal(d),
                None => Value::Decimal(Decimal::max_of(precision, scale, d.is_negative())),
            };
            KeyValue::Near(within(lo), within(hi))
        }
        _ => KeyValue::Unknown,
    }
}

/// Converts `d` for a DECIMAL column.
fn decimal_key(d: &Decimal, precision: u8, scale: u8) -> KeyValue {
    if d.int_digits() > u32::from(precision - scale) {
        return if d.is_negative() {
            KeyValue::BelowAll
        } else {
            KeyValue::AboveAll
        };
    }
    match d.truncate(i32::from(scale)).rescale(scale) {
        Some(scaled) if scaled == *d => KeyValue::Exact(Value::Decimal(scaled)),
        _ => KeyValue::Unknown,
    }
}

fn integer_key(
    cx: &EvalCx<'_>,
    v: &Val<'_>,
    from: &ExprType,
    ty: &ColumnType,
    constant: bool,
) -> KeyValue {
    let as_decimal = |d: &Decimal| {
        let Some(floor) = d.floor() else {
            return KeyValue::Unknown;
        };
        let whole = match (floor.to_i64(), floor.to_u64()) {
            (Some(i), _) => i128::from(i),
            (None, Some(u)) => i128::from(u),
            (None, None) if d.is_negative() => return KeyValue::BelowAll,
            (None, None) => return KeyValue::AboveAll,
        };
        match whole_number(whole, ty) {
            KeyValue::Exact(v) if floor != *d => KeyValue::Above(v),
            other => other,
        }
    };
    match v {
        Val::Int(i) => whole_number(i128::from(*i), ty),
        Val::UInt(u) => whole_number(i128::from(*u), ty),
        Val::Decimal(d) => as_decimal(d),
        Val::Bytes(_) if convert::binary_number(from) => match convert::to_integer(cx, v, from) {
            Some(i) => whole_number(i, ty),
            None => KeyValue::Nothing,
        },
        // A hexadecimal or bit literal is a number here.
        Val::Bytes(bytes) if convert::binary_number(from) => {
            whole_number(i128::from(convert::bytes_as_number(bytes)), ty)
        }
        Val::Bytes(_) if !constant => match convert::to_f64(cx, v, from) {
            Some(f) => integers_near(f, ty),
            None => KeyValue::Nothing,
        },
        Val::Bytes(text) => {
            // A string that is an integer as a whole; other numbers keep their fraction.
            let parsed = nfold_types::convert::number::parse_decimal(text);
            if parsed.truncated {
                let _ = convert::to_f64(cx, v, from);
            }
            as_decimal(&parsed.value)
        }
        Val::Double(_) | Val::Float(_) => match convert::to_f64(cx, v, from) {
            Some(f) => integers_near(f, ty),
            None => KeyValue::Nothing,
        },
        // Dates and times keep their fraction: 10:11:12.5 lies between two integers.
        _ => match convert::to_decimal(cx, v, from) {
            Some(d) => as_decimal(&d),
            None => KeyValue::Nothing,
        },
    }
}

/// Converts `v` for a column of type `ty`. `constant`: a string constant beside a number is as
/// exact as the column; another string is converted to a double.
pub(super) fn key_value(
    cx: &EvalCx<'_>,
    v: &Val<'_>,
    from: &ExprType,
    ty: &ColumnType,
    constant: bool,
) -> KeyValue {
    if v.is_null() {
        return KeyValue::Nothing;
    }
    match (&ty.kind, Class::of(ty)) {
        (_, Class::Int) => integer_key(cx, v, from, ty, constant),
        (TypeKind::Decimal { precision, scale }, _) => {
            let text = matches!(v, Val::Bytes(_)) && !convert::binary_number(from);
            let key = if matches!(v, Val::Double(_) | Val::Float(_)) || (text && !constant) {
                convert::to_f64(cx, v, from).map(|f| decimals_near(f, *precision, *scale))
            } else {
                convert::to_decimal(cx, v, from).map(|d| decimal_key(&d, *precision, *scale))
            };
            match key {
                None => KeyValue::Nothing,
                Some(KeyValue::Exact(Value::Decimal(d)))
                    if ty.unsigned && d.is_negative() && !d.is_zero() =>
                {
                    KeyValue::BelowAll
                }
                Some(key) => key,
            }
        }
        (TypeKind::Double, _) => convert::to_f64(cx, v, from)
            .map_or(KeyValue::Nothing, |f| KeyValue::Exact(Value::Double(f))),
        (TypeKind::Float, _) => match convert::to_f64(cx, v, from) {
            None => KeyValue::Nothing,
            Some(f) if f64::from(f as f32) == f => KeyValue::Exact(Value::Float(f as f32)),
            Some(_) => KeyValue::Unknown,
        },
        (_, Class::String) => match convert::to_text(cx, v.clone(), from, ty.collation) {
            None => KeyValue::Nothing,
            Some(text) => KeyValue::Exact(Value::Bytes(text.into_owned())),
        },
        (TypeKind::Date, _) => match compare::date_side(cx, (v, from), ty) {
            None => KeyValue::Unknown,
            Some(d) if d.packed() == d.date().at_midnight().packed() => {
                KeyValue::Exact(Value::Date(d.date()))
            }
            Some(d) => KeyValue::Above(Value::Date(d.date())),
        },
        (TypeKind::DateTime(fsp), _) => match compare::date_side(cx, (v, from), ty) {
            None => KeyValue::Unknown,
            Some(d) => {
                let cut = d.truncate(*fsp);
                if cut == d {
                    KeyValue::Exact(Value::DateTime(cut))
                } else {
                    KeyValue::Above(Value::DateTime(cut))
                }
            }
        },
        (TypeKind::Timestamp(fsp), _) => timestamp_key(cx, v, from, ty, *fsp),
        // As an equality, such a number has the bits of a negative time; as a bound it is no time.
        (TypeKind::Time(_), _) if matches!(v, Val::UInt(n) if i64::try_from(*n).is_err()) => {
            KeyValue::Unknown
        }
        (TypeKind::Time(fsp), _) => match compare::time_side(cx, (v, from)) {
            None => KeyValue::Unknown,
            Some(t) if t.truncate(*fsp) == t => KeyValue::Exact(Value::Time(t.truncate(*fsp))),
            Some(_) => KeyValue::Unknown,
        },
        _ => KeyValue::Unknown,
    }
}

fn timestamp_key(
    cx: &EvalCx<'_>,
    v: &Val<'_>,
    from: &ExprType,
    ty: &ColumnType,
    fsp: u8,
) -> KeyValue {
    let d = match compare::date_side(cx, (v, from), ty) {
        None => return KeyValue::Unknown,
        Some(d) => d,
    };
    if d.packed() == 0 {
        return KeyValue::Exact(Value::Timestamp(Timestamp::ZERO));
    }
    let cut = d.truncate(fsp);
    match cx.env().time_zone().to_instant(cut) {
        // Beyond the column's range, where a key would wrap around: only the zero value sorts below
        // it.
        Some((at, _)) if at.seconds() <= 0 => KeyValue::Above(Value::Timestamp(Timestamp::ZERO)),
        Some((at, _)) if at.seconds() > Timestamp::MAX_SECONDS => KeyValue::AboveAll,
        Some((at, true)) if cut == d => {
            KeyValue::Exact(Value::Timestamp(Timestamp::from_micros(at.micros(), fsp)))
        }
        Some((at, true)) => {
            KeyValue::Above(Value::Timestamp(Timestamp::from_micros(at.micros(), fsp)))
        }
        _ => KeyValue::Unknown,
    }
}

/// Converts an operand for a lookup in a temporal column. `None`: it matches no row. `refuses`: a
/// constant string that is no date is an error. `round`: a constant is rounded as the column would
/// store it, because the rows found are not compared again.
pub(super) fn time_point<'a>(
    cx: &EvalCx<'a>,
    (expr, v): (&'a Expr, Val<'a>),
    ty: &ColumnType,
    refuses: bool,
    round: bool,
) -> Result<Option<Val<'a>>, SqlError> {
    let (constant, marker) = (is_constant(expr), compare::is_marker(cx, expr));
    let v = if constant {
        compare::as_column(cx, &expr.ty, v, ty, marker)
    } else {
        v
    };
    let Some(v) = compare::comparable(cx, expr, v, ty) else {
        return Ok(None);
    };
    // BETWEEN compares the string with its time of day.
    let v = match refuses {
        true => compare::day_of_text(cx, expr, v, ty),
        false => v,
    };
    let dates = matches!(Class::of(ty), Class::Date | Class::DateTime);
    if refuses && compare::is_exact_constant(expr) && !marker && dates {
        compare::refuse_text(cx, &v, &expr.ty, ty)?;
    }
    Ok(Some(if round && constant && !v.is_null() {
        compare::rounded(cx, v, &expr.ty, ty)
    } else {
        v
    }))
}

/// Converts members of the most frequent kind: integers in a list for an integer column.
pub(super) struct Integers {
    least: i128,
    most: i128,
    unsigned: bool,
}

impl Integers {
    /// `None` if the column is no integer column.
    pub fn of(ty: &ColumnType) -> Option<Integers> {
        let (least, most) = ty.int_range().filter(|_| Class::of(ty) == Class::Int)?;
        let year = ty.kind == TypeKind::Year;
        (!year).then_some(Integers {
            least,
            most,
            unsigned: ty.unsigned,
        })
    }

    /// An integer in its stored form, if the column can hold it.
    #[inline]
    pub fn member(&self, v: &ValueRef<'_>) -> Option<ValueRef<'static>> {
        let whole = match v {
            ValueRef::Int(i) => i128::from(*i),
            ValueRef::UInt(u) => i128::from(*u),
            _ => return None,
        };
        let inside = self.least <= whole && whole <= self.most;
        inside.then_some(match self.unsigned {
            true => ValueRef::UInt(whole as u64),
            false => ValueRef::Int(whole as i64),
        })
    }
}

/// A member of a list beside a TIME column: of a string, the time that it begins with.
pub(super) fn listed<'v>(cx: &EvalCx<'v>, v: Val<'v>, from: &ExprType, ty: &ColumnType) -> Val<'v> {
    match (&v, Class::of(ty)) {
        (Val::Bytes(_), Class::Time) => {
            Val::Time(convert::to_time(cx, &v, from).unwrap_or_default())
        }
        _ => v,
    }
}

/// A member of a list of two or more beside a temporal column; `None`: no value of the column
/// equals it.
pub(super) fn time_point_member<'v>(
    cx: &EvalCx<'_>,
    v: Val<'v>,
    from: &ExprType,
    ty: &ColumnType,
    marker: bool,
) -> Option<Val<'v>> {
    match compare::listed_time_point(cx, v, from, ty, marker) {
        compare::Listed::Value(v) => Some(v),
        compare::Listed::Nothing | compare::Listed::Unknown => None,
    }
}
