//! The values of row events, by the type codes of TABLE_MAP.

use ethnum::U256;
use nfold_json::{Doc, Json, Work, binary};
use nfold_protocol::Reader;
use nfold_types::{
    CollationId, ColumnType, Date, DateTime, Decimal, NoCheckpoint, SqlError, TextSize, Time,
    Timestamp, TypeKind, Value,
};

use crate::BinlogError;

/// The type codes.
pub(crate) mod field {
    pub const TINY: u8 = 1;
    pub const SHORT: u8 = 2;
    pub const LONG: u8 = 3;
    pub const FLOAT: u8 = 4;
    pub const DOUBLE: u8 = 5;
    pub const NULL: u8 = 6;
    /// The formats of temporal values before MySQL 5.6, which MariaDB still has.
    pub const OLD_TIMESTAMP: u8 = 7;
    pub const OLD_TIME: u8 = 11;
    pub const OLD_DATETIME: u8 = 12;
    pub const LONGLONG: u8 = 8;
    pub const INT24: u8 = 9;
    pub const DATE: u8 = 10;
    pub const YEAR: u8 = 13;
    pub const NEWDATE: u8 = 14;
    pub const VARCHAR: u8 = 15;
    pub const BIT: u8 = 16;
    pub const TIMESTAMP2: u8 = 17;
    pub const DATETIME2: u8 = 18;
    pub const TIME2: u8 = 19;
    pub const VECTOR: u8 = 242;
    pub const JSON: u8 = 245;
    pub const NEWDECIMAL: u8 = 246;
    pub const ENUM: u8 = 247;
    pub const SET: u8 = 248;
    pub const BLOB: u8 = 252;
    pub const STRING: u8 = 254;
    pub const GEOMETRY: u8 = 255;
}

/// The format of a column's values in row events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnFormat {
    pub(crate) code: u8,
    /// Lengths and digits; the meaning depends on the code.
    pub(crate) metadata: (u8, u8),
    pub nullable: bool,
    /// `None`: the source does not say.
    pub unsigned: Option<bool>,
    /// `None`: the source does not say.
    pub collation: Option<CollationId>,
    /// `None`: the source does not say (`binlog_row_metadata = MINIMAL`).
    pub name: Option<String>,
}

/// The bytes of `digits` decimal digits in a packed DECIMAL.
pub(crate) const fn packed_digits(digits: usize) -> usize {
    const PART: [usize; 10] = [0, 1, 1, 2, 2, 3, 3, 4, 4, 4];
    digits / 9 * 4 + PART[digits % 9]
}

/// The bytes of the fraction of a second with `fsp` digits.
pub(crate) const fn fraction_bytes(fsp: u8) -> usize {
    fsp.div_ceil(2) as usize
}

/// The length of CHAR and BINARY in bytes, of which the upper two bits are hidden in the type code.
fn string_length((kind, low): (u8, u8)) -> usize {
    let high = usize::from((kind & 0x30) ^ 0x30) << 4;
    high | usize::from(low)
}

fn big_endian(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |n, b| n << 8 | u64::from(*b))
}

fn little_endian(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b))
}

/// The integer of one to eight little-endian bytes.
fn integer(bytes: &[u8], unsigned: bool) -> Value {
    let n = little_endian(bytes);
    match unsigned {
        true => Value::UInt(n),
        false => {
            let unused = 64 - 8 * bytes.len() as u32;
            Value::Int((n << unused) as i64 >> unused)
        }
    }
}

/// The bytes of the metadata of a type code; `None`: unknown.
fn metadata_bytes(code: u8) -> Option<u8> {
    Some(match code {
        field::FLOAT
        | field::DOUBLE
        | field::BLOB
        | field::JSON
        | field::GEOMETRY
        | field::VECTOR
        | field::TIMESTAMP2
        | field::DATETIME2
        | field::TIME2 => 1,
        field::VARCHAR
        | field::BIT
        | field::NEWDECIMAL
        | field::STRING
        | field::ENUM
        | field::SET => 2,
        field::TINY
        | field::SHORT
        | field::LONG
        | field::LONGLONG
        | field::INT24
        | field::DATE
        | field::NEWDATE
        | field::YEAR
        | field::OLD_TIMESTAMP
        | field::OLD_TIME
        | field::OLD_DATETIME => 0,
        _ => return None,
    })
}

impl ColumnFormat {
    /// The bytes of its metadata.
    pub(crate) fn metadata_bytes(&self) -> u8 {
        metadata_bytes(self.code).unwrap_or(0)
    }

    /// Reads the metadata of a type code.
    pub(crate) fn read(code: u8, r: &mut Reader<'_>) -> Result<ColumnFormat, BinlogError> {
        let what = "metadata of a column";
        let metadata = match metadata_bytes(code) {
            Some(0) => (0, 0),
            Some(1) => (r.u8(what)?, 0),
            Some(_) => (r.u8(what)?, r.u8(what)?),
            None => {
                let name = match code {
                    140 => " (VARCHAR COMPRESSED of MariaDB)",
                    141 => " (BLOB COMPRESSED of MariaDB)",
                    _ => "",
                };
                let text = format!("column type {code}{name}");
                return Err(BinlogError::Unsupported(text));
            }
        };
        Ok(ColumnFormat {
            code,
            metadata,
            nullable: false,
            unsigned: None,
            collation: None,
            name: None,
        })
    }

    /// The code, after STRING is resolved to ENUM and SET.
    pub(crate) fn real_code(&self) -> u8 {
        match (self.code, self.metadata.0) {
            (field::STRING, real @ (field::ENUM | field::SET)) => real,
            (code, _) => code,
        }
    }

    /// Whether it is one of the types whose signs TABLE_MAP lists.
    pub(crate) fn has_sign(&self) -> bool {
        use field::*;
        matches!(
            self.code,
            TINY | SHORT | LONG | LONGLONG | INT24 | FLOAT | DOUBLE | NEWDECIMAL | YEAR
        )
    }

    /// Whether it is one of the types whose character sets TABLE_MAP lists.
    pub(crate) fn has_charset(&self) -> bool {
        matches!(
            self.real_code(),
            field::VARCHAR | field::STRING | field::BLOB
        )
    }

    pub(crate) fn is_enum_or_set(&self) -> bool {
        matches!(self.real_code(), field::ENUM | field::SET)
    }

    /// The type as SQL writes it, for messages.
    pub fn describe(&self) -> String {
        let (a, b) = self.metadata;
        let sign = if self.unsigned == Some(true) {
            " unsigned"
        } else {
            ""
        };
        match self.real_code() {
            field::TINY => format!("tinyint{sign}"),
            field::SHORT => format!("smallint{sign}"),
            field::INT24 => format!("mediumint{sign}"),
            field::LONG => format!("int{sign}"),
            field::LONGLONG => format!("bigint{sign}"),
            field::FLOAT => "float".into(),
            field::DOUBLE => "double".into(),
            field::NEWDECIMAL => format!("decimal({a},{b})"),
            field::DATE | field::NEWDATE => "date".into(),
            field::YEAR => "year".into(),
            field::OLD_TIMESTAMP => "timestamp of the older format".into(),
            field::OLD_DATETIME => "datetime of the older format".into(),
            field::OLD_TIME => "time of the older format".into(),
            field::TIMESTAMP2 => format!("timestamp({a})"),
            field::DATETIME2 => format!("datetime({a})"),
            field::TIME2 => format!("time({a})"),
            field::BIT => format!("bit({})", u32::from(b) * 8 + u32::from(a)),
            field::VARCHAR => format!("varchar({} bytes)", u16::from_le_bytes([a, b])),
            field::STRING => format!("char({} bytes)", string_length((a, b))),
            field::ENUM => "enum".into(),
            field::SET => "set".into(),
            field::BLOB => format!("blob with a length of {a} bytes"),
            field::JSON => "json".into(),
            field::GEOMETRY => "geometry".into(),
            field::VECTOR => "vector".into(),
            other => format!("type {other}"),
        }
    }

    /// Whether a column of type `ty` holds exactly these values, so that they are read as `ty`
    /// (B3).
    pub fn stores(&self, ty: &ColumnType) -> bool {
        let (a, b) = self.metadata;
        let sign = self.unsigned.is_none_or(|unsigned| unsigned == ty.unsigned);
        let bytes = |chars: u32| chars as usize * ty.charset().max_len as usize;
        let charset = self.collation.is_none_or(|c| {
            c == ty.collation || c.get().is_some_and(|c| c.charset == ty.charset())
        });
        let blob = |size: TextSize| match size {
            TextSize::Tiny => 1,
            TextSize::Normal => 2,
            TextSize::Medium => 3,
            TextSize::Long => 4,
        };
        let members = |n: usize| if n < 256 { 1 } else { 2 };
        match (&ty.kind, self.real_code()) {
            (TypeKind::TinyInt, field::TINY)
            | (TypeKind::SmallInt, field::SHORT)
            | (TypeKind::MediumInt, field::INT24)
            | (TypeKind::Int, field::LONG)
            | (TypeKind::BigInt, field::LONGLONG)
            | (TypeKind::Float, field::FLOAT)
            | (TypeKind::Double, field::DOUBLE) => sign,
            (TypeKind::Decimal { precision, scale }, field::NEWDECIMAL) => {
                sign && (*precision, *scale) == (a, b)
            }
            (TypeKind::Year, field::YEAR)
            | (TypeKind::Date, field::DATE | field::NEWDATE)
            | (TypeKind::Json, field::JSON) => true,
            (TypeKind::Time(fsp), field::TIME2)
            | (TypeKind::DateTime(fsp), field::DATETIME2)
            | (TypeKind::Timestamp(fsp), field::TIMESTAMP2) => *fsp == a,
            // With a fraction, the older format does not say how many digits it has.
            (TypeKind::Time(0), field::OLD_TIME)
            | (TypeKind::DateTime(0), field::OLD_DATETIME)
            | (TypeKind::Timestamp(0), field::OLD_TIMESTAMP) => true,
            (TypeKind::Bit(n), field::BIT) => u32::from(*n) == u32::from(b) * 8 + u32::from(a),
            (TypeKind::VarChar(n), field::VARCHAR) => {
                charset && bytes(*n) == usize::from(u16::from_le_bytes([a, b]))
            }
            (TypeKind::VarBinary(n), field::VARCHAR) => {
                charset && *n == u32::from(u16::from_le_bytes([a, b]))
            }
            (TypeKind::Char(n), field::STRING) => charset && bytes(*n) == string_length((a, b)),
            (TypeKind::Binary(n), field::STRING) => charset && *n as usize == string_length((a, b)),
            (TypeKind::Text(size) | TypeKind::Blob(size), field::BLOB) => {
                charset && blob(*size) == a
            }
            (TypeKind::Enum(all), field::ENUM) => members(all.len()) == b,
            (TypeKind::Set(all), field::SET) => match all.len().div_ceil(8) {
                5..=8 => b == 8,
                n => usize::from(b) == n,
            },
            _ => false,
        }
    }

    /// Reads a value of a column of type `ty`, for which [`Self::stores`] holds.
    pub(crate) fn read_value(
        &self,
        ty: &ColumnType,
        r: &mut Reader<'_>,
    ) -> Result<Value, BinlogError> {
        let (a, b) = self.metadata;
        let what = "value";
        Ok(match self.real_code() {
            field::TINY => integer(r.take(1, what)?, ty.unsigned),
            field::SHORT => integer(r.take(2, what)?, ty.unsigned),
            field::INT24 => integer(r.take(3, what)?, ty.unsigned),
            field::LONG => integer(r.take(4, what)?, ty.unsigned),
            field::LONGLONG => integer(r.take(8, what)?, ty.unsigned),
            field::FLOAT => Value::Float(f32::from_bits(r.u32(what)?)),
            field::DOUBLE => Value::Double(f64::from_bits(r.u64(what)?)),
            field::NEWDECIMAL => Value::Decimal(decimal(a.into(), b.into(), r)?),
            field::YEAR => match r.u8(what)? {
                0 => Value::UInt(0),
                year => Value::UInt(1900 + u64::from(year)),
            },
            field::DATE | field::NEWDATE => {
                let n = little_endian(r.take(3, what)?) as u32;
                Value::Date(Date::new(n >> 9, n >> 5 & 15, n & 31))
            }
            field::OLD_TIME => {
                // Decimal digits: hours, minutes, seconds.
                let n = little_endian(r.take(3, what)?);
                let n = ((n << 40) as i64) >> 40;
                let [h, m, s] = [n.abs() / 10_000, n.abs() / 100 % 100, n.abs() % 100];
                let micros = (h * 3600 + m * 60 + s) * 1_000_000;
                Value::Time(Time::from_micros(micros * n.signum(), 0))
            }
            field::OLD_DATETIME => {
                // Decimal digits from the year to the second.
                let n = r.u64(what)?;
                let part = |power: u64, digits: u64| (n / power % digits) as u32;
                let date = Date::new(
                    part(10_000_000_000, 10_000),
                    part(100_000_000, 100),
                    part(1_000_000, 100),
                );
                let [hour, minute, second] = [part(10_000, 100), part(100, 100), part(1, 100)];
                Value::DateTime(DateTime::new(date, hour, minute, second, 0, 0))
            }
            field::OLD_TIMESTAMP => Value::Timestamp(match r.u32(what)? {
                0 => Timestamp::ZERO.with_fsp(0),
                seconds => Timestamp::from_micros(i64::from(seconds) * 1_000_000, 0),
            }),
            field::TIME2 => Value::Time(time(a, r)?),
            field::DATETIME2 => Value::DateTime(date_time(a, r)?),
            field::TIMESTAMP2 => Value::Timestamp(timestamp(a, r)?),
            field::BIT => {
                let bytes = usize::from(b) + usize::from(a > 0);
                Value::UInt(big_endian(r.take(bytes, what)?))
            }
            field::ENUM | field::SET => {
                let bytes = usize::from(b);
                if bytes > 8 {
                    return Err(BinlogError::Malformed("length of an ENUM or SET"));
                }
                Value::UInt(little_endian(r.take(bytes, what)?))
            }
            field::JSON => Value::Bytes(json(self.read_bytes(r)?)?),
            _ => {
                let mut bytes = self.read_bytes(r)?.to_vec();
                if let TypeKind::Binary(n) = ty.kind {
                    // The zeros at the end are not in the event.
                    bytes.resize(n as usize, 0);
                }
                Value::Bytes(bytes)
            }
        })
    }

    /// The bytes of the length in front of a string, BLOB or JSON value.
    pub(crate) fn length_bytes(&self) -> Result<usize, BinlogError> {
        let (a, b) = self.metadata;
        Ok(match self.real_code() {
            field::VARCHAR if u16::from_le_bytes([a, b]) < 256 => 1,
            field::VARCHAR => 2,
            field::STRING if string_length((a, b)) < 256 => 1,
            field::STRING => 2,
            field::BLOB | field::JSON if (1..=4).contains(&a) => usize::from(a),
            _ => return Err(BinlogError::Unsupported(self.describe())),
        })
    }

    /// Reads the bytes of a string, BLOB or JSON value.
    pub(crate) fn read_bytes<'r>(&self, r: &mut Reader<'r>) -> Result<&'r [u8], BinlogError> {
        let prefix = self.length_bytes()?;
        let length = little_endian(r.take(prefix, "length of a value")?);
        let length = usize::try_from(length).map_err(|_| BinlogError::Malformed("length"))?;
        Ok(r.take(length, "value")?)
    }
}

/// A document without the unused bytes that partial updates leave in it on the source. An empty
/// value is the document `null`.
fn json(bytes: &[u8]) -> Result<Vec<u8>, BinlogError> {
    let damaged = |_: SqlError| BinlogError::Malformed("JSON document");
    let work = Work::new(&NoCheckpoint);
    let document = match bytes.is_empty() {
        true => Json::Null,
        false => (Doc::new(bytes).and_then(|doc| doc.to_json(&work))).map_err(damaged)?,
    };
    binary::encode(&document, &work).map_err(damaged)
}

/// A packed DECIMAL: groups of nine digits in four bytes, big-endian; the sign is the first bit,
/// and negative numbers are complemented.
fn decimal(precision: usize, scale: usize, r: &mut Reader<'_>) -> Result<Decimal, BinlogError> {
    let bad = BinlogError::Malformed("DECIMAL");
    let whole = precision.checked_sub(scale).ok_or(bad.clone())?;
    let bytes = r.take(packed_digits(whole) + packed_digits(scale), "DECIMAL")?;
    let first = *bytes.first().ok_or(bad.clone())?;
    let negative = first & 0x80 == 0;
    let mask = if negative { 0xff } else { 0 };
    let mut digits = bytes.iter().enumerate();
    let mut magnitude = U256::ZERO;
    let mut take = |digits_of_group: usize| -> Result<(), BinlogError> {
        let mut group = 0u32;
        for _ in 0..packed_digits(digits_of_group) {
            let (i, byte) = digits.next().ok_or(BinlogError::Malformed("DECIMAL"))?;
            let byte = if i == 0 { byte ^ 0x80 } else { *byte };
            group = group << 8 | u32::from(byte ^ mask);
        }
        let power = 10u32.pow(digits_of_group as u32);
        if group >= power {
            return Err(BinlogError::Malformed("DECIMAL"));
        }
        magnitude = magnitude * U256::from(power) + U256::from(group);
        Ok(())
    };
    let groups = |n: usize| std::iter::repeat_n(9, n / 9);
    let leading = Some(whole % 9).filter(|n| *n > 0);
    let trailing = Some(scale % 9).filter(|n| *n > 0);
    let all = leading.into_iter().chain(groups(whole));
    for n in all.chain(groups(scale)).chain(trailing) {
        take(n)?;
    }
    Decimal::from_parts(negative, magnitude, scale as u8).ok_or(bad)
}

/// The fraction of a second in microseconds.
fn fraction(fsp: u8, r: &mut Reader<'_>) -> Result<u32, BinlogError> {
    let bytes = fraction_bytes(fsp);
    let n = big_endian(r.take(bytes, "fraction of a second")?) as u32;
    let micros = match bytes {
        0 => 0,
        1 => n * 10_000,
        2 => n * 100,
        3 => n,
        _ => return Err(BinlogError::Malformed("digits of a fraction")),
    };
    match micros < 1_000_000 {
        true => Ok(micros),
        false => Err(BinlogError::Malformed("fraction of a second")),
    }
}

/// TIME: 24 bits and the fraction, of which the whole is one number with an offset.
fn time(fsp: u8, r: &mut Reader<'_>) -> Result<Time, BinlogError> {
    let bytes = fraction_bytes(fsp);
    let n = big_endian(r.take(3 + bytes, "TIME")?) as i64;
    let n = n - (0x80_0000 << (8 * bytes));
    let magnitude = n.unsigned_abs();
    let (hms, part) = (
        magnitude >> (8 * bytes),
        magnitude & ((1 << (8 * bytes)) - 1),
    );
    let micros = match bytes {
        0 => 0,
        1 => part * 10_000,
        2 => part * 100,
        _ => part,
    };
    let seconds = (hms >> 12 & 0x3ff) * 3600 + (hms >> 6 & 63) * 60 + (hms & 63);
    let micros = (seconds * 1_000_000 + micros) as i64;
    Ok(Time::from_micros(if n < 0 { -micros } else { micros }, fsp))
}

/// DATETIME: 40 bits with an offset, and the fraction.
fn date_time(fsp: u8, r: &mut Reader<'_>) -> Result<DateTime, BinlogError> {
    let n = big_endian(r.take(5, "DATETIME")?);
    let n = n
        .checked_sub(0x80_0000_0000)
        .ok_or(BinlogError::Malformed("DATETIME"))?;
    let micros = fraction(fsp, r)?;
    let (date, time) = (n >> 17, n & 0x1_ffff);
    let (month, day) = ((date >> 5) % 13, date & 31);
    let date = Date::new((date >> 5) as u32 / 13, month as u32, day as u32);
    let [hour, minute, second] = [time >> 12, time >> 6, time].map(|n| n as u32 & 63);
    Ok(DateTime::new(date, hour, minute, second, micros, fsp))
}

/// TIMESTAMP: seconds since 1970, and the fraction.
fn timestamp(fsp: u8, r: &mut Reader<'_>) -> Result<Timestamp, BinlogError> {
    let seconds = big_endian(r.take(4, "TIMESTAMP")?) as i64;
    let micros = fraction(fsp, r)?;
    Ok(match (seconds, micros) {
        (0, 0) => Timestamp::ZERO.with_fsp(fsp),
        _ => Timestamp::from_micros(seconds * 1_000_000 + i64::from(micros), fsp),
    })
}
