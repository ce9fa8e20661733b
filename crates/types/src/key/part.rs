//! One key part: value to bytes and back; the picture in `key`'s header is its description.

use super::{KeyError, KeyPart, is_string};
use crate::row::fixed_width;
use crate::sql_type::TypeKind;
use crate::temporal::{Date, DateTime, MICROS_PER_SECOND, Time, Timestamp};
use crate::{Decimal, Value, ValueRef};

const SIGN: u64 = 1 << 63;
const TIME_BIAS: i64 = 1 << 47;

pub(super) fn encode(
    part: &KeyPart,
    index: usize,
    value: ValueRef<'_>,
    out: &mut Vec<u8>,
) -> Result<(), KeyError> {
    let start = out.len();
    if value.is_null() {
        if !part.nullable {
            return Err(KeyError::NullInNotNull { part: index });
        }
        out.push(0);
    } else {
        if part.nullable {
            out.push(1);
        }
        if encode_value(part, value, out).is_none() {
            out.truncate(start);
            return Err(KeyError::TypeMismatch { part: index });
        }
    }
    if part.desc {
        invert(&mut out[start..]);
    }
    Ok(())
}

fn invert(bytes: &mut [u8]) {
    for b in bytes {
        *b = !*b;
    }
}

fn encode_value(part: &KeyPart, value: ValueRef<'_>, out: &mut Vec<u8>) -> Option<()> {
    if let ValueRef::Bytes(bytes) = value {
        return is_string(&part.ty).then(|| encode_string(part, bytes, out));
    }
    let width = fixed_width(&part.ty)?;
    let bits = match (&part.ty.kind, value) {
        (
            TypeKind::TinyInt
            | TypeKind::SmallInt
            | TypeKind::MediumInt
            | TypeKind::Int
            | TypeKind::BigInt,
            ValueRef::Int(_) | ValueRef::UInt(_),
        ) => integer_bits(part.ty.unsigned, value, width)?,
        (TypeKind::Bit(_) | TypeKind::Enum(_) | TypeKind::Set(_), ValueRef::UInt(v)) => v,
        (TypeKind::Year, ValueRef::UInt(v)) => v.saturating_sub(1900),
        (TypeKind::Float, ValueRef::Float(v)) => u64::from(float_bits(v)),
        (TypeKind::Double, ValueRef::Double(v)) => double_bits(v),
        (TypeKind::Decimal { scale, .. }, ValueRef::Decimal(v)) => {
            return v.write_sortable(*scale, width, out);
        }
        (TypeKind::Date, ValueRef::Date(v)) => u64::from(v.packed()),
        (TypeKind::Time(_), ValueRef::Time(v)) => (v.micros() + TIME_BIAS) as u64,
        (TypeKind::DateTime(0), ValueRef::DateTime(v)) => v.packed() >> 20,
        (TypeKind::DateTime(_), ValueRef::DateTime(v)) => v.packed(),
        (TypeKind::Timestamp(0), ValueRef::Timestamp(v)) => v.seconds() as u64,
        (TypeKind::Timestamp(_), ValueRef::Timestamp(v)) => v.micros() as u64 ^ SIGN,
        _ => return None,
    };
    out.extend_from_slice(&bits.to_be_bytes()[8 - width..]);
    Some(())
}

/// The bits of an integer with the sign bit of its width flipped; `None` out of the type's range.
fn integer_bits(is_unsigned: bool, value: ValueRef<'_>, width: usize) -> Option<u64> {
    let wide = match value {
        ValueRef::Int(v) => i128::from(v),
        ValueRef::UInt(v) => i128::from(v),
        _ => return None,
    };
    let bias = if is_unsigned {
        0
    } else {
        1i128 << (8 * width - 1)
    };
    let biased = wide + bias;
    (0..1i128 << (8 * width))
        .contains(&biased)
        .then_some(biased as u64)
}

fn float_bits(v: f32) -> u32 {
    let bits = (v + 0.0).to_bits();
    if bits >> 31 == 1 {
        !bits
    } else {
        bits | 1 << 31
    }
}

fn double_bits(v: f64) -> u64 {
    let bits = (v + 0.0).to_bits();
    if bits & SIGN != 0 { !bits } else { bits | SIGN }
}

/// Appends the escaped sort key and its end mark.
fn encode_string(part: &KeyPart, bytes: &[u8], out: &mut Vec<u8>) {
    let collation = part.ty.collation.known();
    let bytes = match part.prefix_len {
        0 => bytes,
        n => collation.char_prefix(bytes, n as usize),
    };
    let start = out.len();
    collation.sort_key(bytes, out);
    if let Some(zero) = memchr::memchr(0, &out[start..]) {
        escape_zeros(out, start + zero);
    }
    out.extend_from_slice(&[0, 0]);
}

/// Appends a prefix, at least `limit` bytes long, of the part that [`encode`] appends for a string.
/// Returns false, and appends nothing, if the prefix depends on the whole string.
pub(super) fn encode_string_head(
    part: &KeyPart,
    bytes: &[u8],
    limit: usize,
    out: &mut Vec<u8>,
) -> bool {
    let cut_before = part.prefix_len != 0 && (part.prefix_len as usize) < limit;
    if cut_before || !is_string(&part.ty) {
        return false;
    }
    let start = out.len();
    if part.nullable {
        out.push(1);
    }
    let collation = part.ty.collation.known();
    let body = out.len();
    collation.sort_key_prefix(collation.char_prefix(bytes, limit), out);
    if let Some(zero) = memchr::memchr(0, &out[body..]) {
        escape_zeros(out, body + zero);
    }
    if out.len() - start < limit {
        // Characters without weight, or spaces that something may follow.
        out.truncate(start);
        return false;
    }
    if part.desc {
        invert(&mut out[start..]);
    }
    true
}

/// Appends the escaped identity of a string under the part's collation, and its end mark. (The
/// identity of no string begins with a zero byte, which is what NULL is.)
pub(super) fn encode_identity(part: &KeyPart, bytes: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    part.ty.collation.known().identity(bytes, out);
    if let Some(zero) = memchr::memchr(0, &out[start..]) {
        escape_zeros(out, start + zero);
    }
    out.extend_from_slice(&[0, 0]);
}

/// Inserts FF after each zero byte from `from` (the first one) to the end.
fn escape_zeros(out: &mut Vec<u8>, from: usize) {
    let zeros = memchr::memchr_iter(0, &out[from..]).count();
    let old_end = out.len();
    out.resize(old_end + zeros, 0);
    // From the back, so that nothing is overwritten before it has moved.
    let (mut read, mut write) = (old_end, out.len());
    while read > from {
        read -= 1;
        let b = out[read];
        if b == 0 {
            write -= 1;
            out[write] = 0xFF;
        }
        write -= 1;
        out[write] = b;
    }
}

/// The byte at `i`, with a descending part's inversion undone.
fn byte(part: &KeyPart, key: &[u8], i: usize) -> Option<u8> {
    key.get(i).map(|b| if part.desc { !b } else { *b })
}

pub(super) fn is_null(part: &KeyPart, key: &[u8]) -> Result<bool, KeyError> {
    if !part.nullable {
        return Ok(false);
    }
    match byte(part, key, 0) {
        Some(0) => Ok(true),
        Some(1) => Ok(false),
        _ => Err(KeyError::Corrupt),
    }
}

/// Length of a framed string with its end mark.
pub(crate) fn framed_len(desc: bool, key: &[u8]) -> Result<usize, KeyError> {
    let zero = if desc { 0xFF } else { 0 };
    let mut at = 0;
    loop {
        at += memchr::memchr(zero, key.get(at..).unwrap_or(&[])).ok_or(KeyError::Corrupt)?;
        match key.get(at + 1).map(|b| b ^ zero) {
            Some(0) => return Ok(at + 2),
            Some(0xFF) => at += 2,
            _ => return Err(KeyError::Corrupt),
        }
    }
}

/// (bytes of the null mark, bytes of the value)
fn extent(part: &KeyPart, key: &[u8]) -> Result<(usize, usize), KeyError> {
    let mark = usize::from(part.nullable);
    if is_null(part, key)? {
        return Ok((mark, 0));
    }
    let value = key.get(mark..).ok_or(KeyError::Corrupt)?;
    let len = match fixed_width(&part.ty) {
        Some(width) if value.len() < width => return Err(KeyError::Corrupt),
        Some(width) => width,
        None => framed_len(part.desc, value)?,
    };
    Ok((mark, len))
}

/// What follows the part.
pub(super) fn skip<'k>(part: &KeyPart, key: &'k [u8]) -> Result<&'k [u8], KeyError> {
    let (mark, len) = extent(part, key)?;
    Ok(&key[mark + len..])
}

pub(super) fn decode(part: &KeyPart, key: &mut &[u8]) -> Result<Value, KeyError> {
    let (mark, len) = extent(part, key)?;
    let null = is_null(part, key)?;
    let value = &key[mark..mark + len];
    *key = &key[mark + len..];
    if null {
        return Ok(Value::Null);
    }
    if !part.is_invertible() {
        return Err(KeyError::NotInvertible);
    }
    if is_string(&part.ty) {
        return Ok(Value::Bytes(unescape(part, value)));
    }
    if let TypeKind::Decimal { scale, .. } = part.ty.kind {
        let mut bytes = value.to_vec();
        if part.desc {
            invert(&mut bytes);
        }
        return Decimal::read_sortable(&bytes, scale)
            .map(Value::Decimal)
            .ok_or(KeyError::Corrupt);
    }
    let mut bits = value.iter().fold(0u64, |n, b| n << 8 | u64::from(*b));
    if part.desc {
        bits = !bits & (u64::MAX >> (64 - 8 * len));
    }
    decode_bits(part, bits, len).ok_or(KeyError::Corrupt)
}

fn decode_bits(part: &KeyPart, bits: u64, width: usize) -> Option<Value> {
    Some(match part.ty.kind {
        TypeKind::TinyInt
        | TypeKind::SmallInt
        | TypeKind::MediumInt
        | TypeKind::Int
        | TypeKind::BigInt => {
            if part.ty.unsigned {
                Value::UInt(bits)
            } else {
                Value::Int((i128::from(bits) - (1i128 << (8 * width - 1))) as i64)
            }
        }
        TypeKind::Bit(_) | TypeKind::Enum(_) | TypeKind::Set(_) => Value::UInt(bits),
        TypeKind::Year => Value::UInt(if bits == 0 { 0 } else { bits + 1900 }),
        TypeKind::Float => {
            let bits = bits as u32;
            Value::Float(f32::from_bits(if bits >> 31 == 1 {
                bits ^ 1 << 31
            } else {
                !bits
            }))
        }
        TypeKind::Double => Value::Double(f64::from_bits(if bits & SIGN != 0 {
            bits ^ SIGN
        } else {
            !bits
        })),
        TypeKind::Date => Value::Date(Date::from_packed(bits as u32)),
        TypeKind::Time(fsp) => Value::Time(Time::from_micros(bits as i64 - TIME_BIAS, fsp)),
        TypeKind::DateTime(0) => Value::DateTime(DateTime::from_packed(bits << 20, 0)),
        TypeKind::DateTime(fsp) => Value::DateTime(DateTime::from_packed(bits, fsp)),
        TypeKind::Timestamp(0) if bits == 0 => Value::Timestamp(Timestamp::ZERO),
        TypeKind::Timestamp(0) => {
            Value::Timestamp(Timestamp::from_micros(bits as i64 * MICROS_PER_SECOND, 0))
        }
        TypeKind::Timestamp(fsp) => {
            Value::Timestamp(Timestamp::from_micros((bits ^ SIGN) as i64, fsp))
        }
        _ => return None,
    })
}

fn unescape(part: &KeyPart, framed: &[u8]) -> Vec<u8> {
    let body = &framed[..framed.len() - 2];
    let mut out = Vec::with_capacity(body.len());
    let mut at = 0;
    while at < body.len() {
        let b = if part.desc { !body[at] } else { body[at] };
        out.push(b);
        at += if b == 0 { 2 } else { 1 };
    }
    out
}
