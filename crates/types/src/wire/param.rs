//! Parameters of COM_STMT_EXECUTE.

use crate::number::parse_decimal;
use crate::sql_type::WireType;
use crate::temporal::calendar::days_in_month;
use crate::temporal::{Date, DateTime, MICROS_PER_SECOND, Time};
use crate::value::Value;
use std::fmt::{self, Display, Formatter};

/// Why a parameter could not be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ParamError {
    /// The packet ends inside the value, or a length makes no sense.
    Malformed,
    /// No such type, or one that is no parameter's.
    UnknownType(u8),
}

impl Display for ParamError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            ParamError::Malformed => f.write_str("malformed parameter"),
            ParamError::UnknownType(code) => write!(f, "parameter of unknown type {code}"),
        }
    }
}

impl std::error::Error for ParamError {}

fn take<const N: usize>(input: &mut &[u8]) -> Result<[u8; N], ParamError> {
    let (head, tail) = input
        .split_first_chunk::<N>()
        .ok_or(ParamError::Malformed)?;
    *input = tail;
    Ok(*head)
}

fn take_bytes<'a>(input: &mut &'a [u8], len: u64) -> Result<&'a [u8], ParamError> {
    let len = usize::try_from(len).map_err(|_| ParamError::Malformed)?;
    let (head, tail) = input.split_at_checked(len).ok_or(ParamError::Malformed)?;
    *input = tail;
    Ok(head)
}

fn lenenc(input: &mut &[u8]) -> Result<u64, ParamError> {
    Ok(match take::<1>(input)?[0] {
        n @ 0..=250 => u64::from(n),
        0xFC => u64::from(u16::from_le_bytes(take(input)?)),
        0xFD => {
            let [a, b, c] = take(input)?;
            u64::from(u32::from_le_bytes([a, b, c, 0]))
        }
        0xFE => u64::from_le_bytes(take(input)?),
        _ => return Err(ParamError::Malformed),
    })
}

/// Reads a parameter that is not NULL from the front of `input` and moves `input` past it. Strings
/// are copied in the client's character set; a DECIMAL that is no number is 0; impossible dates
/// become zero dates, as MySQL makes them.
pub fn read_param(wire_type: u8, unsigned: bool, input: &mut &[u8]) -> Result<Value, ParamError> {
    use WireType as W;
    let kind = W::from_u8(wire_type).ok_or(ParamError::UnknownType(wire_type))?;
    let int = |signed: i64, bits: u64| {
        if unsigned {
            Value::UInt(bits)
        } else {
            Value::Int(signed)
        }
    };
    Ok(match kind {
        W::Null => Value::Null,
        W::Tiny => {
            let [b] = take(input)?;
            int(i64::from(b as i8), u64::from(b))
        }
        W::Short | W::Year => {
            let v = u16::from_le_bytes(take(input)?);
            int(i64::from(v as i16), u64::from(v))
        }
        W::Long | W::Int24 => {
            let v = u32::from_le_bytes(take(input)?);
            int(i64::from(v as i32), u64::from(v))
        }
        W::LongLong => {
            let v = u64::from_le_bytes(take(input)?);
            int(v as i64, v)
        }
        W::Float => finite(f64::from(f32::from_le_bytes(take(input)?))),
        W::Double => finite(f64::from_le_bytes(take(input)?)),
        W::Decimal | W::NewDecimal => {
            let len = lenenc(input)?;
            Value::Decimal(parse_decimal(take_bytes(input, len)?).value)
        }
        W::Date => Value::Date(read_datetime(input)?.date()),
        W::DateTime | W::Timestamp => Value::DateTime(read_datetime(input)?),
        W::Time => Value::Time(read_time(input)?),
        _ => {
            let len = lenenc(input)?;
            Value::Bytes(take_bytes(input, len)?.to_vec())
        }
    })
}

/// SQL has neither infinities nor NaN.
fn finite(v: f64) -> Value {
    if v.is_nan() {
        Value::Null
    } else {
        Value::Double(v.clamp(f64::MIN, f64::MAX))
    }
}

/// Fractional digits of a TIME or DATETIME parameter: all six, whether the client sent microseconds
/// or not.
const PARAM_FSP: u8 = 6;

fn read_datetime(input: &mut &[u8]) -> Result<DateTime, ParamError> {
    let [len] = take(input)?;
    let mut body = take_bytes(input, u64::from(len))?;
    if len == 0 {
        return Ok(DateTime::ZERO.with_fsp(PARAM_FSP));
    }
    let [y0, y1, month, day] = take(&mut body)?;
    let year = u32::from(u16::from_le_bytes([y0, y1]));
    let [hour, minute, second] = if len > 4 { take(&mut body)? } else { [0; 3] };
    let micros = if len > 7 {
        u32::from_le_bytes(take(&mut body)?)
    } else {
        0
    };
    let (month, day) = (u32::from(month), u32::from(day));
    let date_ok = year <= 9999
        && month <= 12
        && day
            <= if month == 0 {
                31
            } else {
                days_in_month(year, month)
            };
    if !date_ok || hour > 23 || minute > 59 || second > 59 || micros > 999_999 {
        return Ok(DateTime::ZERO.with_fsp(PARAM_FSP));
    }
    let date = Date::new(year, month, day);
    Ok(DateTime::new(
        date,
        u32::from(hour),
        u32::from(minute),
        u32::from(second),
        micros,
        PARAM_FSP,
    ))
}

fn read_time(input: &mut &[u8]) -> Result<Time, ParamError> {
    let [len] = take(input)?;
    let mut body = take_bytes(input, u64::from(len))?;
    if len == 0 {
        return Ok(Time::default().with_fsp(PARAM_FSP));
    }
    let [negative] = take(&mut body)?;
    let days = i64::from(u32::from_le_bytes(take(&mut body)?));
    let [hour, minute, second] = take(&mut body)?;
    let micros = if len > 8 {
        u32::from_le_bytes(take(&mut body)?)
    } else {
        0
    };
    if hour > 23 || minute > 59 || second > 59 || micros > 999_999 {
        return Ok(Time::default().with_fsp(PARAM_FSP));
    }
    let seconds = ((days * 24 + i64::from(hour)) * 60 + i64::from(minute)) * 60 + i64::from(second);
    let total = seconds
        .saturating_mul(MICROS_PER_SECOND)
        .saturating_add(i64::from(micros));
    Ok(Time::from_micros(
        if negative == 1 { -total } else { total },
        PARAM_FSP,
    ))
}
