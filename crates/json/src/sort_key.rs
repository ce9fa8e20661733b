//! Documents as bytes that can be compared and hashed without reading them again.

use nfold_types::{Decimal, SqlError};

use crate::binary::{Doc, DocKind, Scalar};
use crate::tree::Work;

/// Decimal places of the integer part in a number's key: doubles reach 10^308.
const MAX_EXPONENT: i32 = 400;

/// Appends bytes whose `memcmp` order is the order of MySQL's ORDER BY: scalars as
/// [`crate::compare`] orders them, arrays and objects by their number of members alone. Returns
/// whether the document is a scalar.
///
/// # Errors
/// 3142
pub fn append_sort_key(doc: Doc<'_>, out: &mut Vec<u8>) -> Result<bool, SqlError> {
    let Some(scalar) = doc.scalar()? else {
        out.push(if doc.kind() == DocKind::Array { 5 } else { 4 });
        out.extend_from_slice(&(doc.length()? as u32).to_be_bytes());
        return Ok(false);
    };
    append_scalar(scalar, out);
    Ok(true)
}

/// Appends bytes that are equal for equal documents, and for no others.
///
/// # Errors
/// 3142; a statement that must end.
pub fn append_hash_key(doc: Doc<'_>, work: &Work<'_>, out: &mut Vec<u8>) -> Result<(), SqlError> {
    work.add(50)?;
    let Some(scalar) = doc.scalar()? else {
        append_sort_key(doc, out)?;
        for element in doc.elements()? {
            append_hash_key(element?, work, out)?;
        }
        for member in doc.members()? {
            let (name, value) = member?;
            append_text(name.as_bytes(), out);
            append_hash_key(value, work, out)?;
        }
        return Ok(());
    };
    append_scalar(scalar, out);
    Ok(())
}

fn append_scalar(scalar: Scalar<'_>, out: &mut Vec<u8>) {
    match scalar {
        Scalar::Null => out.push(0),
        Scalar::Int(v) => append_number(v < 0, &v.unsigned_abs().to_string(), 0, out),
        Scalar::UInt(v) => append_number(false, &v.to_string(), 0, out),
        Scalar::Double(v) => append_double(v, out),
        Scalar::Decimal(v) => append_decimal(&v, out),
        Scalar::String(text) => {
            out.push(3);
            append_text(text.as_bytes(), out);
        }
        Scalar::Bool(v) => out.extend_from_slice(&[6, u8::from(v)]),
        Scalar::Date(v) => {
            out.push(7);
            out.extend_from_slice(&v.packed().to_be_bytes());
        }
        Scalar::Time(v) => {
            out.push(8);
            out.extend_from_slice(&(v.micros() as u64 ^ 1 << 63).to_be_bytes());
        }
        Scalar::DateTime(v) | Scalar::Timestamp(v) => {
            out.push(9);
            out.extend_from_slice(&v.packed().to_be_bytes());
        }
        Scalar::Opaque(field_type, bytes) => {
            out.push(match field_type.0 {
                15 | 249..=254 => 12,
                16 => 11,
                _ => 10,
            });
            append_text(bytes, out);
        }
    }
}

/// Bytes of any length, so that a prefix comes first.
fn append_text(bytes: &[u8], out: &mut Vec<u8>) {
    for part in bytes.split_inclusive(|b| *b == 0) {
        out.extend_from_slice(part);
        if part.ends_with(&[0]) {
            out.push(0xFF);
        }
    }
    out.extend_from_slice(&[0, 0]);
}

fn append_decimal(value: &Decimal, out: &mut Vec<u8>) {
    let digits = value.magnitude().to_string();
    append_number(value.is_negative(), &digits, -i32::from(value.scale()), out);
}

/// A double by the shortest digits that read back as it.
fn append_double(value: f64, out: &mut Vec<u8>) {
    let text = format!("{:e}", value.abs());
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let plain = digits.replace('.', "");
    let fraction = plain.len() as i32 - 1;
    append_number(value < 0.0, &plain, exponent - fraction, out);
}

/// The number ±digits · 10^exponent: sign, exponent of the first digit, digits.
fn append_number(negative: bool, digits: &str, exponent: i32, out: &mut Vec<u8>) {
    let significant = digits.trim_start_matches('0');
    let trimmed = significant.trim_end_matches('0');
    if trimmed.is_empty() {
        return out.extend_from_slice(&[1, 1]);
    }
    let first = exponent + significant.len() as i32;
    let start = out.len() + 2;
    out.extend_from_slice(&[1, if negative { 0 } else { 2 }]);
    out.extend_from_slice(&((first + MAX_EXPONENT) as u16).to_be_bytes());
    out.extend_from_slice(trimmed.as_bytes());
    out.push(0);
    if negative {
        out[start..].iter_mut().for_each(|b| *b = !*b);
    }
}
