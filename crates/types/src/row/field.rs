//! Fixed-length fields: value to bytes and back; the table in `row`'s header is their description.

use crate::sql_type::{ColumnType, TypeKind};
use crate::temporal::{Date, DateTime, MICROS_PER_SECOND, TIME_MAX_MICROS, Time, Timestamp};
use crate::{Decimal, ValueRef};

/// How a field is read, decided once per layout.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FieldKind {
    /// Variable-length bytes.
    Var,
    I8,
    I16,
    I24,
    I32,
    I64,
    U8,
    U16,
    U24,
    U32,
    U64,
    /// BIT, ENUM and SET of any width.
    Bits,
    Float,
    Double,
    Decimal {
        scale: u8,
    },
    Year,
    Date,
    Time(u8),
    /// DATETIME(0): five bytes.
    Seconds,
    DateTime(u8),
    /// TIMESTAMP(0): four bytes.
    EpochSeconds,
    Timestamp(u8),
}

impl FieldKind {
    pub(crate) fn of(ty: &ColumnType) -> FieldKind {
        match (&ty.kind, ty.unsigned) {
            (TypeKind::TinyInt, false) => FieldKind::I8,
            (TypeKind::SmallInt, false) => FieldKind::I16,
            (TypeKind::MediumInt, false) => FieldKind::I24,
            (TypeKind::Int, false) => FieldKind::I32,
            (TypeKind::BigInt, false) => FieldKind::I64,
            (TypeKind::TinyInt, true) => FieldKind::U8,
            (TypeKind::SmallInt, true) => FieldKind::U16,
            (TypeKind::MediumInt, true) => FieldKind::U24,
            (TypeKind::Int, true) => FieldKind::U32,
            (TypeKind::BigInt, true) => FieldKind::U64,
            (TypeKind::Bit(_) | TypeKind::Enum(_) | TypeKind::Set(_), _) => FieldKind::Bits,
            (TypeKind::Float, _) => FieldKind::Float,
            (TypeKind::Double, _) => FieldKind::Double,
            (TypeKind::Decimal { scale, .. }, _) => FieldKind::Decimal { scale: *scale },
            (TypeKind::Year, _) => FieldKind::Year,
            (TypeKind::Date, _) => FieldKind::Date,
            (TypeKind::Time(fsp), _) => FieldKind::Time(*fsp),
            (TypeKind::DateTime(0), _) => FieldKind::Seconds,
            (TypeKind::DateTime(fsp), _) => FieldKind::DateTime(*fsp),
            (TypeKind::Timestamp(0), _) => FieldKind::EpochSeconds,
            (TypeKind::Timestamp(fsp), _) => FieldKind::Timestamp(*fsp),
            _ => FieldKind::Var,
        }
    }
}

/// Little-endian integer of up to 8 bytes, zero-extended.
#[inline]
fn unsigned(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b))
}

/// Little-endian integer of up to 8 bytes, sign-extended.
#[inline]
fn signed(bytes: &[u8]) -> i64 {
    let shift = 64 - 8 * bytes.len() as u32;
    (unsigned(bytes) << shift) as i64 >> shift
}

/// The value in a field of exactly the kind's width; `None` where the bits are no value of the
/// type.
#[inline]
pub(crate) fn read_fixed<'a>(kind: FieldKind, bytes: &[u8]) -> Option<ValueRef<'a>> {
    Some(match kind {
        FieldKind::I32 => ValueRef::Int(i64::from(i32::from_le_bytes(bytes.try_into().ok()?))),
        FieldKind::I64 => ValueRef::Int(i64::from_le_bytes(bytes.try_into().ok()?)),
        FieldKind::U32 => ValueRef::UInt(u64::from(u32::from_le_bytes(bytes.try_into().ok()?))),
        FieldKind::U64 => ValueRef::UInt(u64::from_le_bytes(bytes.try_into().ok()?)),
        FieldKind::I8 | FieldKind::I16 | FieldKind::I24 => ValueRef::Int(signed(bytes)),
        FieldKind::U8 | FieldKind::U16 | FieldKind::U24 | FieldKind::Bits => {
            ValueRef::UInt(unsigned(bytes))
        }
        FieldKind::Float => ValueRef::Float(f32::from_le_bytes(bytes.try_into().ok()?)),
        FieldKind::Double => ValueRef::Double(f64::from_le_bytes(bytes.try_into().ok()?)),
        FieldKind::Decimal { scale } => ValueRef::Decimal(Decimal::read_sortable(bytes, scale)?),
        FieldKind::Year => match bytes.first()? {
            0 => ValueRef::UInt(0),
            y => ValueRef::UInt(1900 + u64::from(*y)),
        },
        FieldKind::Date => ValueRef::Date(Date::from_packed(unsigned(bytes) as u32)),
        FieldKind::Time(fsp) => {
            let micros = signed(bytes);
            if !(-TIME_MAX_MICROS..=TIME_MAX_MICROS).contains(&micros) {
                return None;
            }
            ValueRef::Time(Time::from_micros(micros, fsp))
        }
        FieldKind::Seconds => ValueRef::DateTime(DateTime::from_packed(unsigned(bytes) << 20, 0)),
        FieldKind::DateTime(fsp) => ValueRef::DateTime(DateTime::from_packed(unsigned(bytes), fsp)),
        FieldKind::EpochSeconds => match unsigned(bytes) {
            0 => ValueRef::Timestamp(Timestamp::ZERO),
            seconds => ValueRef::Timestamp(Timestamp::from_micros(
                seconds as i64 * MICROS_PER_SECOND,
                0,
            )),
        },
        FieldKind::Timestamp(fsp) => {
            ValueRef::Timestamp(Timestamp::from_micros(signed(bytes), fsp))
        }
        FieldKind::Var => return None,
    })
}

/// Encodes a value for its field. `None` if the value has another type or is out of range.
#[inline]
pub(crate) fn write_fixed(kind: FieldKind, value: ValueRef<'_>, out: &mut [u8]) -> Option<()> {
    use FieldKind as F;
    let bits = match (kind, value) {
        (F::I8 | F::I16 | F::I24 | F::I32 | F::I64, ValueRef::Int(v)) => signed_bits(v, out.len())?,
        (F::I8 | F::I16 | F::I24 | F::I32 | F::I64, ValueRef::UInt(v)) => {
            signed_bits(i64::try_from(v).ok()?, out.len())?
        }
        (F::U8 | F::U16 | F::U24 | F::U32 | F::U64 | F::Bits, ValueRef::UInt(v)) => {
            fits(v, out.len())?
        }
        (F::U8 | F::U16 | F::U24 | F::U32 | F::U64, ValueRef::Int(v)) => {
            fits(u64::try_from(v).ok()?, out.len())?
        }
        (F::Float, ValueRef::Float(v)) => u64::from(v.to_bits()),
        (F::Double, ValueRef::Double(v)) => v.to_bits(),
        (F::Decimal { scale }, ValueRef::Decimal(v)) => return v.put_sortable(scale, out),
        (F::Year, ValueRef::UInt(0)) => 0,
        (F::Year, ValueRef::UInt(v)) => fits(v.checked_sub(1900).filter(|y| *y > 0)?, 1)?,
        (F::Date, ValueRef::Date(v)) => u64::from(v.packed()),
        (F::Time(_), ValueRef::Time(v)) => v.micros() as u64,
        (F::Seconds, ValueRef::DateTime(v)) => v.packed() >> 20,
        (F::DateTime(_), ValueRef::DateTime(v)) => v.packed(),
        (F::EpochSeconds, ValueRef::Timestamp(v)) => fits(u64::try_from(v.seconds()).ok()?, 4)?,
        (F::Timestamp(_), ValueRef::Timestamp(v)) => v.micros() as u64,
        _ => return None,
    };
    for (i, b) in out.iter_mut().enumerate() {
        *b = (bits >> (8 * i)) as u8;
    }
    Some(())
}

fn fits(v: u64, width: usize) -> Option<u64> {
    (width == 8 || v >> (8 * width) == 0).then_some(v)
}

fn signed_bits(v: i64, width: usize) -> Option<u64> {
    let shift = 64 - 8 * width as u32;
    ((v << shift) >> shift == v).then_some(v as u64)
}
