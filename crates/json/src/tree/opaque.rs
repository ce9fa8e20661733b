//! Values of SQL types inside a document: a field type of MySQL's protocol and bytes.
//!
//! DECIMAL: precision, scale, then MySQL's binary form of DECIMAL (`decimal2bin`). Temporal values:
//! eight bytes, little endian, of MySQL's packed form (`TIME_to_longlong_datetime_packed`). All
//! others: their bytes.

use ethnum::U256;
use nfold_types::{Date, DateTime, Decimal, Time};

/// The field types of MySQL's protocol that occur in documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FieldType(pub u8);

impl FieldType {
    /// `MYSQL_TYPE_TIMESTAMP`
    pub const TIMESTAMP: FieldType = FieldType(7);
    /// `MYSQL_TYPE_DATE`
    pub const DATE: FieldType = FieldType(10);
    /// `MYSQL_TYPE_TIME`
    pub const TIME: FieldType = FieldType(11);
    /// `MYSQL_TYPE_DATETIME`
    pub const DATETIME: FieldType = FieldType(12);
    /// `MYSQL_TYPE_VARCHAR`
    pub const VARCHAR: FieldType = FieldType(15);
    /// `MYSQL_TYPE_BIT`
    pub const BIT: FieldType = FieldType(16);
    /// `MYSQL_TYPE_NEWDECIMAL`
    pub const DECIMAL: FieldType = FieldType(246);
    /// `MYSQL_TYPE_BLOB`
    pub const BLOB: FieldType = FieldType(252);
    /// `MYSQL_TYPE_STRING`
    pub const STRING: FieldType = FieldType(254);
}

/// An opaque value.
#[derive(Debug, Clone, PartialEq)]
pub struct Opaque {
    /// Type of the SQL value.
    pub field_type: FieldType,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// Bytes that `n` decimal digits take in MySQL's binary DECIMAL.
const DIGIT_BYTES: [usize; 10] = [0, 1, 1, 2, 2, 3, 3, 4, 4, 4];

fn bytes_of_digits(digits: usize) -> usize {
    digits / 9 * 4 + DIGIT_BYTES[digits % 9]
}

impl Opaque {
    /// A DECIMAL.
    pub fn decimal(value: &Decimal) -> Opaque {
        Opaque::decimal_in_groups(value, 1)
    }

    /// A DECIMAL whose integer digits are padded to a multiple of `group`. MySQL computes with
    /// groups of nine digits, and stores a computed value so.
    pub fn decimal_in_groups(value: &Decimal, group: usize) -> Opaque {
        let scale = usize::from(value.scale());
        let digits = value.magnitude().to_string();
        let whole = digits.len().saturating_sub(scale).max(1);
        let whole = whole.next_multiple_of(group);
        let padded = format!("{digits:0>width$}", width = whole + scale);
        let (int, frac) = padded.split_at(whole);
        let mut bytes = vec![(whole + scale) as u8, scale as u8];
        let number = |text: &str| text.parse::<u32>().unwrap_or(0);
        let mut group = |text: &str| {
            let width = DIGIT_BYTES[text.len()];
            bytes.extend_from_slice(&number(text).to_be_bytes()[4 - width..]);
        };
        let (first, groups) = int.split_at(whole % 9);
        group(first);
        (0..groups.len() / 9).for_each(|i| group(&groups[9 * i..9 * i + 9]));
        (0..scale.div_ceil(9)).for_each(|i| group(&frac[9 * i..(9 * i + 9).min(scale)]));
        if value.is_negative() {
            bytes[2..].iter_mut().for_each(|b| *b = !*b);
        }
        bytes[2] ^= 0x80;
        Opaque {
            field_type: FieldType::DECIMAL,
            bytes,
        }
    }

    /// A DATE.
    pub fn date(value: Date) -> Opaque {
        let packed = pack_datetime(value.at_midnight());
        Opaque::packed(FieldType::DATE, packed)
    }

    /// A DATETIME.
    pub fn datetime(value: DateTime) -> Opaque {
        Opaque::packed(FieldType::DATETIME, pack_datetime(value))
    }

    /// A TIMESTAMP, in the session's time zone.
    pub fn timestamp(value: DateTime) -> Opaque {
        Opaque::packed(FieldType::TIMESTAMP, pack_datetime(value))
    }

    /// A TIME.
    pub fn time(value: Time) -> Opaque {
        let (hours, minutes, seconds, micros) = value.parts();
        let clock = i64::from(hours << 12 | minutes << 6 | seconds);
        let packed = clock << 24 | i64::from(micros);
        let signed = if value.is_negative() { -packed } else { packed };
        Opaque::packed(FieldType::TIME, signed)
    }

    fn packed(field_type: FieldType, packed: i64) -> Opaque {
        Opaque {
            field_type,
            bytes: packed.to_le_bytes().to_vec(),
        }
    }
}

fn pack_datetime(v: DateTime) -> i64 {
    let date = i64::from(v.date().year() * 13 + v.date().month()) << 5 | i64::from(v.date().day());
    let clock = i64::from(v.hour() << 12 | v.minute() << 6 | v.second());
    (date << 17 | clock) << 24 | i64::from(v.micros())
}

/// The DECIMAL of an opaque value's bytes.
pub(crate) fn read_decimal(bytes: &[u8]) -> Option<Decimal> {
    let (&[precision, scale], stored) = bytes.split_first_chunk::<2>()?;
    let scale = usize::from(scale);
    let whole = usize::from(precision).checked_sub(scale)?;
    if stored.len() != bytes_of_digits(whole) + bytes_of_digits(scale) {
        return None;
    }
    let first = stored.first()?;
    let negative = first & 0x80 == 0;
    let mut plain = stored.to_vec();
    plain[0] ^= 0x80;
    if negative {
        plain.iter_mut().for_each(|b| *b = !*b);
    }
    let mut rest = plain.as_slice();
    let mut magnitude = U256::ZERO;
    let mut group = |digits: usize| {
        let (head, tail) = rest.split_at_checked(DIGIT_BYTES[digits])?;
        rest = tail;
        let number = head.iter().fold(0u64, |n, b| n << 8 | u64::from(*b));
        let shifted = magnitude.checked_mul(U256::from(10u64.pow(digits as u32)))?;
        magnitude = shifted.checked_add(U256::from(number))?;
        Some(())
    };
    group(whole % 9)?;
    for _ in 0..whole / 9 {
        group(9)?;
    }
    for _ in 0..scale / 9 {
        group(9)?;
    }
    group(scale % 9)?;
    Decimal::from_parts(negative, magnitude, scale as u8)
}

fn packed_of(bytes: &[u8]) -> Option<i64> {
    Some(i64::from_le_bytes(bytes.try_into().ok()?))
}

/// The DATETIME of an opaque value's bytes; also of a DATE and a TIMESTAMP.
pub(crate) fn read_datetime(bytes: &[u8]) -> Option<DateTime> {
    let packed = packed_of(bytes)?;
    let micros = (packed & 0xFF_FFFF) as u32;
    let clock = (packed >> 24 & 0x1_FFFF) as u32;
    let date = u32::try_from(packed >> 41).ok()?;
    let months = date >> 5;
    let date = Date::new(months / 13, months % 13, date & 31);
    let time = (clock >> 12, clock >> 6 & 63, clock & 63);
    Some(DateTime::new(date, time.0, time.1, time.2, micros, 6))
}

/// The TIME of an opaque value's bytes.
pub(crate) fn read_time(bytes: &[u8]) -> Option<Time> {
    let packed = packed_of(bytes)?;
    let magnitude = packed.unsigned_abs();
    let micros = (magnitude & 0xFF_FFFF) as i64;
    let clock = (magnitude >> 24) as i64;
    let seconds = (clock >> 12) * 3600 + (clock >> 6 & 63) * 60 + (clock & 63);
    let total = seconds * 1_000_000 + micros;
    let signed = if packed < 0 { -total } else { total };
    Some(Time::from_micros(signed, 6))
}
