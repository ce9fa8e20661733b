//! Values in result rows and statement parameters: the text and the binary protocol.
//!
//! Source: "Text Resultset", "Binary Protocol Resultset" and "Binary Protocol Value" of MySQL's
//! client/server protocol documentation.
//!
//! Strings go out in the bytes they come in; converting them to the client's character set is the
//! caller's business.
//!
//! # Cost
//! Appends to the caller's buffer and allocates nothing else, except for FLOAT and FLOAT(M,D).

mod frames;
mod param;

pub use frames::RowFrames;
pub(crate) use frames::{HEADER, LONG};
pub use param::{ParamError, read_param};

use crate::number::{write_double, write_fixed, write_float, write_i64, write_u64};
use crate::sql_type::{ColumnType, NOT_FIXED_DECIMALS, TypeKind};
use crate::temporal::{Date, DateTime, Time, TimeZone};
use crate::{Decimal, ValueRef};

/// NULL in a text row.
pub(crate) const TEXT_NULL: u8 = 0xFB;

/// Appends a length-encoded integer.
#[inline]
pub fn write_lenenc(n: u64, out: &mut Vec<u8>) {
    match n {
        0..=250 => out.push(n as u8),
        251..=0xFFFF => {
            out.push(0xFC);
            out.extend_from_slice(&(n as u16).to_le_bytes());
        }
        0x1_0000..=0xFF_FFFF => {
            out.push(0xFD);
            out.extend_from_slice(&(n as u32).to_le_bytes()[..3]);
        }
        _ => {
            out.push(0xFE);
            out.extend_from_slice(&n.to_le_bytes());
        }
    }
}

/// Appends a length-encoded string.
#[inline]
pub fn write_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    write_lenenc(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// Appends what `write` writes with its length before it; fast for at most 250 bytes.
#[inline]
fn short(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let at = out.len();
    out.push(0);
    write(out);
    let len = out.len() - at - 1;
    match u8::try_from(len) {
        Ok(len @ 0..=250) => out[at] = len,
        _ => {
            // A DOUBLE(255,30) can get here.
            let body = out.split_off(at + 1);
            out.truncate(at);
            write_bytes(&body, out);
        }
    }
}

/// Appends a value to a text row. TIMESTAMP is shown in `zone`.
#[inline]
pub fn write_text(value: ValueRef<'_>, ty: &ColumnType, zone: &TimeZone, out: &mut Vec<u8>) {
    match value {
        ValueRef::Null => out.push(TEXT_NULL),
        ValueRef::Bytes(bytes) => write_bytes(bytes, out),
        ValueRef::Int(v) if !ty.zerofill => short(out, |out| write_i64(v, out)),
        _ if ty.is_enum_or_set() => write_member(value, ty, out),
        _ => short(out, |out| display_text(value, ty, zone, out)),
    }
}

fn write_member(value: ValueRef<'_>, ty: &ColumnType, out: &mut Vec<u8>) {
    match (value, &ty.kind) {
        (ValueRef::UInt(v), TypeKind::Enum(_)) => {
            write_bytes(ty.enum_name(v).unwrap_or("").as_bytes(), out)
        }
        (ValueRef::UInt(v), _) => {
            let mut text = Vec::new();
            ty.member_text(v, &mut text);
            write_bytes(&text, out);
        }
        _ => short(out, |out| display_text(value, ty, &TimeZone::UTC, out)),
    }
}

/// Appends a value as a text row shows it, without its length: numbers with their type's digits and
/// ZEROFILL, BIT as its bytes, ENUM and SET by their members, dates with the type's fractional
/// digits. NULL appends nothing.
pub fn display_text(value: ValueRef<'_>, ty: &ColumnType, zone: &TimeZone, out: &mut Vec<u8>) {
    let start = out.len();
    match value {
        ValueRef::Null => return,
        ValueRef::Bytes(bytes) => return out.extend_from_slice(bytes),
        ValueRef::Int(v) => write_i64(v, out),
        ValueRef::UInt(v) => match &ty.kind {
            TypeKind::Bit(n) => {
                return out.extend_from_slice(&v.to_be_bytes()[8 - usize::from(n.div_ceil(8))..]);
            }
            TypeKind::Enum(_) | TypeKind::Set(_) => return ty.member_text(v, out),
            TypeKind::Year if v == 0 && ty.width == 0 => return out.extend_from_slice(b"0000"),
            _ => write_u64(v, out),
        },
        ValueRef::Float(v) if ty.decimals == NOT_FIXED_DECIMALS => write_float(v, out),
        ValueRef::Float(v) => write_fixed(f64::from(v), ty.decimals, out),
        ValueRef::Double(v) if ty.decimals == NOT_FIXED_DECIMALS => write_double(v, out),
        ValueRef::Double(v) => write_fixed(v, ty.decimals, out),
        ValueRef::Decimal(v) => v.write_to(out),
        ValueRef::Date(v) => v.write_to(out),
        ValueRef::DateTime(v) => v.with_fsp(shown_fsp(ty, v.fsp)).write_to(out),
        ValueRef::Time(v) => v.with_fsp(shown_fsp(ty, v.fsp)).write_to(out),
        ValueRef::Timestamp(v) => {
            let local = zone.to_local(v).unwrap_or(DateTime::ZERO);
            local.with_fsp(shown_fsp(ty, v.fsp)).write_to(out);
        }
    }
    if ty.zerofill {
        let width = zerofill_width(ty);
        let missing = width.saturating_sub(out.len() - start);
        out.splice(start..start, std::iter::repeat_n(b'0', missing));
    }
}

/// The type's fractional digits where it is temporal, otherwise the value's own.
#[inline]
fn shown_fsp(ty: &ColumnType, own: u8) -> u8 {
    match ty.kind {
        TypeKind::Time(fsp) | TypeKind::DateTime(fsp) | TypeKind::Timestamp(fsp) => fsp,
        _ => own,
    }
}

fn zerofill_width(ty: &ColumnType) -> usize {
    let width = match ty.kind {
        TypeKind::Year | TypeKind::Bit(_) => return 0,
        TypeKind::Float if ty.width == 0 => 12,
        TypeKind::Double if ty.width == 0 => 22,
        TypeKind::Decimal { precision, scale } => usize::from(precision) + usize::from(scale > 0),
        _ => ty.display_length(&crate::charset::UTF8MB4) as usize,
    };
    width.min(250)
}

/// Appends a value to a binary row in the form of its column's wire type. NULL appends nothing: it
/// is in the row's null map. TIMESTAMP is shown in `zone`.
pub fn write_binary(value: ValueRef<'_>, ty: &ColumnType, zone: &TimeZone, out: &mut Vec<u8>) {
    if value.is_null() {
        return;
    }
    match &ty.kind {
        TypeKind::TinyInt => out.extend_from_slice(&integer(value).to_le_bytes()[..1]),
        TypeKind::SmallInt | TypeKind::Year => {
            out.extend_from_slice(&integer(value).to_le_bytes()[..2])
        }
        TypeKind::MediumInt | TypeKind::Int => {
            out.extend_from_slice(&integer(value).to_le_bytes()[..4])
        }
        TypeKind::BigInt => out.extend_from_slice(&integer(value).to_le_bytes()),
        TypeKind::Float => out.extend_from_slice(&(double(value) as f32).to_le_bytes()),
        TypeKind::Double => out.extend_from_slice(&double(value).to_le_bytes()),
        TypeKind::Date | TypeKind::DateTime(_) | TypeKind::Timestamp(_) => match value {
            ValueRef::Date(v) => binary_date(v, out),
            ValueRef::DateTime(v) => binary_datetime(v, out),
            ValueRef::Timestamp(v) => {
                binary_datetime(zone.to_local(v).unwrap_or(DateTime::ZERO), out)
            }
            _ => write_text(value, ty, zone, out),
        },
        TypeKind::Time(_) => match value {
            ValueRef::Time(v) => binary_time(v, out),
            _ => write_text(value, ty, zone, out),
        },
        _ => write_text(value, ty, zone, out),
    }
}

/// The integer of a value in an integer column, in two's complement. A value of another kind is
/// converted: nothing but a wrong type label brings one here.
#[inline]
fn integer(value: ValueRef<'_>) -> u64 {
    match value {
        ValueRef::Int(v) => v as u64,
        ValueRef::UInt(v) => v,
        ValueRef::Decimal(v) => v
            .to_i64()
            .map_or_else(|| v.to_u64().unwrap_or(0), |i| i as u64),
        other => crate::number::double_to_integer(double(other)).map_or(0, |v| v as u64),
    }
}

#[inline]
fn double(value: ValueRef<'_>) -> f64 {
    match value {
        ValueRef::Float(v) => f64::from(v),
        ValueRef::Double(v) => v,
        ValueRef::Int(v) => v as f64,
        ValueRef::UInt(v) => v as f64,
        ValueRef::Decimal(v) => Decimal::to_f64(&v),
        ValueRef::Bytes(v) => crate::number::parse_double(v).value,
        _ => 0.0,
    }
}

fn push_date(date: Date, out: &mut Vec<u8>) {
    out.extend_from_slice(&(date.year() as u16).to_le_bytes());
    out.extend_from_slice(&[date.month() as u8, date.day() as u8]);
}

#[inline]
pub(crate) fn binary_date(v: Date, out: &mut Vec<u8>) {
    if v == Date::ZERO {
        return out.push(0);
    }
    out.push(4);
    push_date(v, out);
}

#[inline]
pub(crate) fn binary_datetime(v: DateTime, out: &mut Vec<u8>) {
    let time = [v.hour() as u8, v.minute() as u8, v.second() as u8];
    if v.micros() == 0 && time == [0; 3] {
        return binary_date(v.date(), out);
    }
    out.push(if v.micros() == 0 { 7 } else { 11 });
    push_date(v.date(), out);
    out.extend_from_slice(&time);
    if v.micros() != 0 {
        out.extend_from_slice(&v.micros().to_le_bytes());
    }
}

fn binary_time(v: Time, out: &mut Vec<u8>) {
    let (hours, minutes, seconds, micros) = v.parts();
    if v.micros() == 0 {
        return out.push(0);
    }
    out.push(if micros == 0 { 8 } else { 12 });
    out.push(u8::from(v.is_negative()));
    out.extend_from_slice(&(hours / 24).to_le_bytes());
    out.extend_from_slice(&[(hours % 24) as u8, minutes as u8, seconds as u8]);
    if micros != 0 {
        out.extend_from_slice(&micros.to_le_bytes());
    }
}

#[cfg(test)]
mod tests;
