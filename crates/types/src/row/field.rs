//! Fixed-length fields: value to bytes and back; the table in `row`'s header is their description.

use crate::sql_type::{ColumnType, TypeKind};
use crate::temporal::{Date, DateTime, MICROS_PER_SECOND, TIME_MAX_MICROS, Time, Timestamp};
use crate::{Decimal, ValueRef};

/// Little-endian integer of up to 8 bytes, zero-extended.
#[inline]
fn unsigned(bytes: &[u8]) -> u64 {
    let mut wide = [0u8; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(wide)
}

/// Little-endian integer of up to 8 bytes, sign-extended.
#[inline]
fn signed(bytes: &[u8]) -> i64 {
    let shift = 64 - 8 * bytes.len() as u32;
    (unsigned(bytes) << shift) as i64 >> shift
}

/// The value in a field of exactly the type's width; `None` where the bits are no value of the type.
#[inline]
pub(super) fn read_fixed<'a>(ty: &ColumnType, bytes: &[u8]) -> Option<ValueRef<'a>> {
    Some(match ty.kind {
        TypeKind::TinyInt
        | TypeKind::SmallInt
        | TypeKind::MediumInt
        | TypeKind::Int
        | TypeKind::BigInt => {
            if ty.unsigned {
                ValueRef::UInt(unsigned(bytes))
            } else {
                ValueRef::Int(signed(bytes))
            }
        }
        TypeKind::Bit(_) | TypeKind::Enum(_) | TypeKind::Set(_) => ValueRef::UInt(unsigned(bytes)),
        TypeKind::Float => ValueRef::Float(f32::from_bits(unsigned(bytes) as u32)),
        TypeKind::Double => ValueRef::Double(f64::from_bits(unsigned(bytes))),
        TypeKind::Decimal { scale, .. } => ValueRef::Decimal(Decimal::read_sortable(bytes, scale)?),
        TypeKind::Year => match bytes[0] {
            0 => ValueRef::UInt(0),
            y => ValueRef::UInt(1900 + u64::from(y)),
        },
        TypeKind::Date => ValueRef::Date(Date::from_packed(unsigned(bytes) as u32)),
        TypeKind::Time(fsp) => {
            let micros = signed(bytes);
            if !(-TIME_MAX_MICROS..=TIME_MAX_MICROS).contains(&micros) {
                return None;
            }
            ValueRef::Time(Time::from_micros(micros, fsp))
        }
        TypeKind::DateTime(0) => {
            ValueRef::DateTime(DateTime::from_packed(unsigned(bytes) << 20, 0))
        }
        TypeKind::DateTime(fsp) => ValueRef::DateTime(DateTime::from_packed(unsigned(bytes), fsp)),
        TypeKind::Timestamp(0) => match unsigned(bytes) {
            0 => ValueRef::Timestamp(Timestamp::ZERO),
            seconds => ValueRef::Timestamp(Timestamp::from_micros(
                seconds as i64 * MICROS_PER_SECOND,
                0,
            )),
        },
        TypeKind::Timestamp(fsp) => ValueRef::Timestamp(Timestamp::from_micros(signed(bytes), fsp)),
        _ => return None,
    })
}

/// Writes a value into its field; `None` if it is of another kind or out of the field's range.
#[inline]
pub(super) fn write_fixed(ty: &ColumnType, value: ValueRef<'_>, out: &mut [u8]) -> Option<()> {
    let bits = match (&ty.kind, value) {
        (
            TypeKind::TinyInt
            | TypeKind::SmallInt
            | TypeKind::MediumInt
            | TypeKind::Int
            | TypeKind::BigInt,
            ValueRef::Int(_) | ValueRef::UInt(_),
        ) => integer_bits(ty.unsigned, value, out.len())?,
        (TypeKind::Bit(_) | TypeKind::Enum(_) | TypeKind::Set(_), ValueRef::UInt(v)) => {
            fits(v, out.len())?
        }
        (TypeKind::Float, ValueRef::Float(v)) => u64::from(v.to_bits()),
        (TypeKind::Double, ValueRef::Double(v)) => v.to_bits(),
        (TypeKind::Decimal { scale, .. }, ValueRef::Decimal(v)) => {
            let mut field = Vec::with_capacity(32);
            v.write_sortable(*scale, out.len(), &mut field)?;
            out.copy_from_slice(&field);
            return Some(());
        }
        (TypeKind::Year, ValueRef::UInt(0)) => 0,
        (TypeKind::Year, ValueRef::UInt(v)) => fits(v.checked_sub(1900).filter(|y| *y > 0)?, 1)?,
        (TypeKind::Date, ValueRef::Date(v)) => u64::from(v.packed()),
        (TypeKind::Time(_), ValueRef::Time(v)) => v.micros() as u64,
        (TypeKind::DateTime(0), ValueRef::DateTime(v)) => v.packed() >> 20,
        (TypeKind::DateTime(_), ValueRef::DateTime(v)) => v.packed(),
        (TypeKind::Timestamp(0), ValueRef::Timestamp(v)) => {
            fits(u64::try_from(v.seconds()).ok()?, 4)?
        }
        (TypeKind::Timestamp(_), ValueRef::Timestamp(v)) => v.micros() as u64,
        _ => return None,
    };
    out.copy_from_slice(&bits.to_le_bytes()[..out.len()]);
    Some(())
}

fn fits(v: u64, width: usize) -> Option<u64> {
    (width == 8 || v >> (8 * width) == 0).then_some(v)
}

fn integer_bits(is_unsigned: bool, value: ValueRef<'_>, width: usize) -> Option<u64> {
    match (is_unsigned, value) {
        (true, ValueRef::UInt(v)) => fits(v, width),
        (true, ValueRef::Int(v)) => fits(u64::try_from(v).ok()?, width),
        (false, ValueRef::Int(v)) => (signed(&v.to_le_bytes()[..width]) == v).then_some(v as u64),
        (false, ValueRef::UInt(v)) => {
            integer_bits(false, ValueRef::Int(i64::try_from(v).ok()?), width)
        }
        _ => None,
    }
}
