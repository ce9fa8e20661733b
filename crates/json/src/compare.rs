//! The order of documents: first of their types, then of their values.

use std::cmp::Ordering;

use nfold_types::{Decimal, SqlError};

use crate::binary::{Doc, DocKind, Scalar};
use crate::tree::Work;

/// The place of a type in the order; types of one place are compared by value.
fn precedence(doc: Doc<'_>, scalar: Option<&Scalar<'_>>) -> u8 {
    let Some(scalar) = scalar else {
        return if doc.kind() == DocKind::Array { 7 } else { 8 };
    };
    match scalar {
        Scalar::Opaque(field_type, _) if field_type.0 == 16 => 1,
        Scalar::Opaque(field_type, _) if matches!(field_type.0, 15 | 249..=254) => 0,
        Scalar::Opaque(..) => 2,
        Scalar::DateTime(_) | Scalar::Timestamp(_) => 3,
        Scalar::Time(_) => 4,
        Scalar::Date(_) => 5,
        Scalar::Bool(_) => 6,
        Scalar::String(_) => 9,
        Scalar::Int(_) | Scalar::UInt(_) | Scalar::Double(_) | Scalar::Decimal(_) => 10,
        Scalar::Null => 11,
    }
}

/// Compares two documents.
///
/// # Errors
/// 3142; a statement that must end.
pub fn compare(a: Doc<'_>, b: Doc<'_>, work: &Work<'_>) -> Result<Ordering, SqlError> {
    work.add(50)?;
    // The usual case first: the order of UTF-8 bytes is that of the characters.
    if let (Some(left), Some(right)) = (a.string_bytes()?, b.string_bytes()?) {
        return Ok(left.cmp(right));
    }
    let (left, right) = (a.scalar()?, b.scalar()?);
    // A type that comes first in MySQL's list is the greater one.
    let places = (precedence(a, left.as_ref()), precedence(b, right.as_ref()));
    if places.0 != places.1 {
        return Ok(places.1.cmp(&places.0));
    }
    if let (Some(left), Some(right)) = (left, right) {
        return Ok(compare_scalars(left, right));
    }
    if a.type_byte() == b.type_byte()
        && let (Some(left), Some(right)) = (a.head()?, b.head()?)
        && a.container_bytes(left)? == b.container_bytes(right)?
    {
        return Ok(Ordering::Equal);
    }
    match a.kind() {
        DocKind::Array => {
            let mut others = b.elements()?;
            for element in a.elements()? {
                let Some(other) = others.next() else {
                    return Ok(Ordering::Greater);
                };
                let order = compare(element?, other?, work)?;
                if order != Ordering::Equal {
                    return Ok(order);
                }
            }
            Ok(if others.next().is_some() {
                Ordering::Less
            } else {
                Ordering::Equal
            })
        }
        _ => compare_objects(a, b, work),
    }
}

fn compare_objects(a: Doc<'_>, b: Doc<'_>, work: &Work<'_>) -> Result<Ordering, SqlError> {
    let order = a.length()?.cmp(&b.length()?);
    if order != Ordering::Equal {
        return Ok(order);
    }
    for (left, right) in a.members()?.zip(b.members()?) {
        let (left, right) = (left?, right?);
        // Names are compared as texts, although they are sorted by their length.
        let order = left.0.cmp(right.0);
        if order != Ordering::Equal {
            return Ok(order);
        }
        let order = compare(left.1, right.1, work)?;
        if order != Ordering::Equal {
            return Ok(order);
        }
    }
    Ok(Ordering::Equal)
}

/// Two scalars whose types have the same place.
fn compare_scalars(a: Scalar<'_>, b: Scalar<'_>) -> Ordering {
    use Scalar::*;
    match (a, b) {
        (Bool(a), Bool(b)) => a.cmp(&b),
        (String(a), String(b)) => a.as_bytes().cmp(b.as_bytes()),
        (Date(a), Date(b)) => a.packed().cmp(&b.packed()),
        (Time(a), Time(b)) => a.micros().cmp(&b.micros()),
        (DateTime(a) | Timestamp(a), DateTime(b) | Timestamp(b)) => a.packed().cmp(&b.packed()),
        (Opaque(_, a), Opaque(_, b)) => a.cmp(b),
        (Null, Null) => Ordering::Equal,
        _ => compare_numbers(a, b),
    }
}

fn integer(value: Scalar<'_>) -> Option<i128> {
    match value {
        Scalar::Int(v) => Some(i128::from(v)),
        Scalar::UInt(v) => Some(i128::from(v)),
        _ => None,
    }
}

fn decimal_of(value: i128) -> Decimal {
    let magnitude = ethnum::U256::from(value.unsigned_abs());
    Decimal::from_parts(value < 0, magnitude, 0).unwrap_or(Decimal::ZERO)
}

fn compare_numbers(a: Scalar<'_>, b: Scalar<'_>) -> Ordering {
    if let (Some(a), Some(b)) = (integer(a), integer(b)) {
        return a.cmp(&b);
    }
    match (a, b) {
        (Scalar::Double(a), Scalar::Double(b)) => a.partial_cmp(&b).unwrap_or(Ordering::Equal),
        (Scalar::Decimal(a), Scalar::Decimal(b)) => a.cmp(&b),
        (Scalar::Double(a), b) => double_with_other(a, b),
        (a, Scalar::Double(b)) => double_with_other(b, a).reverse(),
        (Scalar::Decimal(a), b) => a.cmp(&decimal_of(integer(b).unwrap_or(0))),
        (a, Scalar::Decimal(b)) => decimal_of(integer(a).unwrap_or(0)).cmp(&b),
        _ => Ordering::Equal,
    }
}

/// A double beside an integer or a DECIMAL.
fn double_with_other(double: f64, other: Scalar<'_>) -> Ordering {
    let approximate = match other {
        Scalar::Int(v) => v as f64,
        Scalar::UInt(v) => v as f64,
        Scalar::Decimal(v) => v.to_f64(),
        _ => 0.0,
    };
    if let Some(integer) = integer(other) {
        let order = double.partial_cmp(&approximate);
        if order != Some(Ordering::Equal) {
            return order.unwrap_or(Ordering::Equal);
        }
        // Both are the same double: as in MySQL, its shortest text decides.
        let exact = Decimal::from_f64(double);
        return exact.map_or(Ordering::Equal, |v| v.cmp(&decimal_of(integer)));
    }
    match Decimal::from_f64(double) {
        Some(exact) => match other {
            Scalar::Decimal(v) => exact.cmp(&v),
            _ => Ordering::Equal,
        },
        None => double.partial_cmp(&approximate).unwrap_or(Ordering::Equal),
    }
}
