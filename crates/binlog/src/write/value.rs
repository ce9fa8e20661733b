//! Values of row events.

use ethnum::U256;
use nfold_types::{ColumnType, DateTime, Decimal, TextSize, Time, Timestamp, TypeKind, ValueRef};

use crate::BinlogError;
use crate::value::{ColumnFormat, field, fraction_bytes, packed_digits};

impl ColumnFormat {
    /// The format of a column of type `ty`.
    pub(crate) fn of(ty: &ColumnType) -> ColumnFormat {
        let bytes = |chars: u32| chars as usize * ty.charset().max_len as usize;
        let two = |n: usize| {
            let [low, high] = (n as u16).to_le_bytes();
            (low, high)
        };
        let string = |n: usize| (field::STRING ^ ((n & 0x300) >> 4) as u8, n as u8);
        let blob = |size: &TextSize| match size {
            TextSize::Tiny => 1,
            TextSize::Normal => 2,
            TextSize::Medium => 3,
            TextSize::Long => 4,
        };
        let (code, metadata) = match &ty.kind {
            TypeKind::TinyInt => (field::TINY, (0, 0)),
            TypeKind::SmallInt => (field::SHORT, (0, 0)),
            TypeKind::MediumInt => (field::INT24, (0, 0)),
            TypeKind::Int => (field::LONG, (0, 0)),
            TypeKind::BigInt => (field::LONGLONG, (0, 0)),
            TypeKind::Decimal { precision, scale } => (field::NEWDECIMAL, (*precision, *scale)),
            TypeKind::Float => (field::FLOAT, (4, 0)),
            TypeKind::Double => (field::DOUBLE, (8, 0)),
            TypeKind::Bit(n) => (field::BIT, (n % 8, n / 8)),
            TypeKind::Year => (field::YEAR, (0, 0)),
            TypeKind::Date => (field::DATE, (0, 0)),
            TypeKind::Time(fsp) => (field::TIME2, (*fsp, 0)),
            TypeKind::DateTime(fsp) => (field::DATETIME2, (*fsp, 0)),
            TypeKind::Timestamp(fsp) => (field::TIMESTAMP2, (*fsp, 0)),
            TypeKind::Char(n) => (field::STRING, string(bytes(*n))),
            TypeKind::Binary(n) => (field::STRING, string(*n as usize)),
            TypeKind::VarChar(n) => (field::VARCHAR, two(bytes(*n))),
            TypeKind::VarBinary(n) => (field::VARCHAR, two(*n as usize)),
            TypeKind::Text(size) | TypeKind::Blob(size) => (field::BLOB, (blob(size), 0)),
            TypeKind::Enum(all) => {
                let bytes = if all.len() < 256 { 1 } else { 2 };
                (field::STRING, (field::ENUM, bytes))
            }
            TypeKind::Set(all) => {
                let bytes = match all.len().div_ceil(8) {
                    5..=8 => 8,
                    n => n as u8,
                };
                (field::STRING, (field::SET, bytes))
            }
            TypeKind::Json => (field::JSON, (4, 0)),
            // No column has this type.
            TypeKind::Null => (field::NULL, (0, 0)),
        };
        ColumnFormat {
            code,
            metadata,
            nullable: false,
            unsigned: None,
            collation: None,
            name: None,
        }
    }

    /// Appends the metadata of the type.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let (a, b) = self.metadata;
        match self.metadata_bytes() {
            0 => {}
            1 => out.push(a),
            _ => out.extend_from_slice(&[a, b]),
        }
    }
}

/// Appends a value that is not NULL.
///
/// # Errors
/// The value is not one of the type.
pub fn write_value(
    ty: &ColumnType,
    value: ValueRef<'_>,
    out: &mut Vec<u8>,
) -> Result<(), BinlogError> {
    let format = ColumnFormat::of(ty);
    let (a, b) = format.metadata;
    match (format.real_code(), value) {
        (field::NEWDECIMAL, ValueRef::Decimal(d)) => return decimal(a.into(), b.into(), &d, out),
        (field::FLOAT, ValueRef::Float(f)) => out.extend_from_slice(&f.to_bits().to_le_bytes()),
        (field::DOUBLE, ValueRef::Double(d)) => out.extend_from_slice(&d.to_bits().to_le_bytes()),
        (field::YEAR, ValueRef::UInt(year)) => out.push(year.saturating_sub(1900) as u8),
        (field::DATE, ValueRef::Date(d)) => {
            let n = d.year() << 9 | d.month() << 5 | d.day();
            out.extend_from_slice(&n.to_le_bytes()[..3]);
        }
        (field::TIME2, ValueRef::Time(t)) => time(a, t, out),
        (field::DATETIME2, ValueRef::DateTime(t)) => date_time(a, t, out),
        (field::TIMESTAMP2, ValueRef::Timestamp(t)) => timestamp(a, t, out),
        (field::BIT, ValueRef::UInt(n)) => {
            let bytes = usize::from(b) + usize::from(a > 0);
            out.extend_from_slice(&n.to_be_bytes()[8 - bytes..]);
        }
        (field::ENUM | field::SET, ValueRef::UInt(n)) => {
            out.extend_from_slice(&n.to_le_bytes()[..usize::from(b)]);
        }
        (code, ValueRef::Int(n)) => integer(code, n as u64, out)?,
        (code, ValueRef::UInt(n)) => integer(code, n, out)?,
        (_, ValueRef::Bytes(bytes)) => {
            let mut bytes = bytes;
            if matches!(ty.kind, TypeKind::Binary(_)) {
                // The zeros at the end are not in the event.
                let end = bytes.iter().rposition(|byte| *byte != 0);
                bytes = &bytes[..end.map_or(0, |end| end + 1)];
            }
            let prefix = format.length_bytes()?;
            out.extend_from_slice(&(bytes.len() as u64).to_le_bytes()[..prefix]);
            out.extend_from_slice(bytes);
        }
        _ => return Err(BinlogError::Malformed("value of another type")),
    }
    Ok(())
}

fn integer(code: u8, n: u64, out: &mut Vec<u8>) -> Result<(), BinlogError> {
    let bytes = match code {
        field::TINY => 1,
        field::SHORT => 2,
        field::INT24 => 3,
        field::LONG => 4,
        field::LONGLONG => 8,
        _ => return Err(BinlogError::Malformed("value of another type")),
    };
    out.extend_from_slice(&n.to_le_bytes()[..bytes]);
    Ok(())
}

/// A packed DECIMAL: groups of nine digits in four bytes, big-endian; the sign is the first bit,
/// and negative numbers are complemented.
fn decimal(
    precision: usize,
    scale: usize,
    d: &Decimal,
    out: &mut Vec<u8>,
) -> Result<(), BinlogError> {
    let bad = BinlogError::Malformed("DECIMAL");
    let whole = precision.checked_sub(scale).ok_or(bad.clone())?;
    let missing = scale.checked_sub(d.scale().into()).ok_or(bad.clone())?;
    let mut rest = d.magnitude();
    for _ in 0..missing {
        rest *= U256::new(10);
    }
    // The groups from the last digit on.
    let trailing = Some(scale % 9).filter(|n| *n > 0);
    let leading = Some(whole % 9).filter(|n| *n > 0);
    let full = |n: usize| std::iter::repeat_n(9, n / 9);
    let groups = trailing.into_iter().chain(full(scale)).chain(full(whole));
    let start = out.len();
    for digits in groups.chain(leading) {
        let power = U256::from(10u32.pow(digits as u32));
        let group = (rest % power).as_u32();
        rest /= power;
        let bytes = packed_digits(digits);
        // Reversed as a whole below.
        out.extend_from_slice(&group.to_le_bytes()[..bytes]);
    }
    if rest != U256::ZERO {
        return Err(bad);
    }
    let packed = &mut out[start..];
    packed.reverse();
    if d.is_negative() {
        packed.iter_mut().for_each(|byte| *byte = !*byte);
    }
    packed[0] ^= 0x80;
    Ok(())
}

/// The fraction of a second, in the unit of its bytes.
fn fraction(fsp: u8, micros: u32) -> u32 {
    match fraction_bytes(fsp) {
        0 => 0,
        1 => micros / 10_000,
        2 => micros / 100,
        _ => micros,
    }
}

fn put_fraction(fsp: u8, micros: u32, out: &mut Vec<u8>) {
    let bytes = fraction_bytes(fsp);
    out.extend_from_slice(&fraction(fsp, micros).to_be_bytes()[4 - bytes..]);
}

fn time(fsp: u8, t: Time, out: &mut Vec<u8>) {
    let bytes = fraction_bytes(fsp);
    let (hour, minute, second, micros) = t.parts();
    let hms = i64::from(hour << 12 | minute << 6 | second);
    let magnitude = hms << (8 * bytes) | i64::from(fraction(fsp, micros));
    let n = if t.is_negative() {
        -magnitude
    } else {
        magnitude
    };
    let n = n + (0x80_0000 << (8 * bytes));
    out.extend_from_slice(&n.to_be_bytes()[5 - bytes..]);
}

fn date_time(fsp: u8, t: DateTime, out: &mut Vec<u8>) {
    let date = t.date();
    let ymd = u64::from((date.year() * 13 + date.month()) << 5 | date.day());
    let hms = u64::from(t.hour() << 12 | t.minute() << 6 | t.second());
    let n = (ymd << 17 | hms) + 0x80_0000_0000;
    out.extend_from_slice(&n.to_be_bytes()[3..]);
    put_fraction(fsp, t.micros(), out);
}

fn timestamp(fsp: u8, t: Timestamp, out: &mut Vec<u8>) {
    let (seconds, micros) = match t.is_zero() {
        true => (0, 0),
        false => (t.seconds(), t.micros().rem_euclid(1_000_000) as u32),
    };
    out.extend_from_slice(&(seconds as u32).to_be_bytes());
    put_fraction(fsp, micros, out);
}
