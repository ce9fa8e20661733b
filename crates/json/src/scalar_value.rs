//! Converts scalars of documents to the values of columns and of RETURNING. A value that does not
//! fit the target type completely is not converted. (Casts and comparisons are more permissive: see
//! `json`.)

use nfold_types::convert::number;
use nfold_types::{DateTime, Decimal, SqlError, Time, ValueRef};

use crate::{Doc, Scalar};

/// The reason why a value is not convertible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unfit {
    /// It is not a value of the type.
    Invalid,
    OutOfRange,
}

/// The result of converting a document. The outer error means that the document is damaged.
pub type Converted<T> = Result<Result<T, Unfit>, SqlError>;

fn scalar<'d>(doc: Doc<'d>) -> Converted<Scalar<'d>> {
    Ok(doc.scalar()?.ok_or(Unfit::Invalid))
}

/// An integer between the smallest BIGINT and the largest BIGINT UNSIGNED.
pub fn integer(doc: Doc<'_>) -> Converted<i128> {
    let scalar = match scalar(doc)? {
        Ok(scalar) => scalar,
        Err(unfit) => return Ok(Err(unfit)),
    };
    Ok(match scalar {
        Scalar::Bool(v) => Ok(i128::from(v)),
        Scalar::Int(v) => Ok(i128::from(v)),
        Scalar::UInt(v) => Ok(i128::from(v)),
        Scalar::Double(v) => number::double_to_integer(v).ok_or(Unfit::OutOfRange),
        Scalar::Decimal(v) => {
            let whole = v.round(0).unwrap_or(v);
            let signed = whole.to_i64().map(i128::from);
            let either = signed.or(whole.to_u64().map(i128::from));
            either.ok_or(Unfit::OutOfRange)
        }
        Scalar::String(text) => {
            let parsed = number::parse_integer(text.as_bytes());
            match parsed.truncated || text.ends_with(number_space) {
                _ if parsed.overflow => Err(Unfit::OutOfRange),
                true => Err(Unfit::Invalid),
                false => Ok(parsed.value),
            }
        }
        _ => Err(Unfit::Invalid),
    })
}

fn number_space(c: char) -> bool {
    u8::try_from(c).is_ok_and(number::is_space)
}

/// A DOUBLE.
pub fn double(doc: Doc<'_>) -> Converted<f64> {
    let scalar = match scalar(doc)? {
        Ok(scalar) => scalar,
        Err(unfit) => return Ok(Err(unfit)),
    };
    Ok(match scalar {
        Scalar::Bool(v) => Ok(f64::from(u8::from(v))),
        Scalar::Int(v) => Ok(v as f64),
        Scalar::UInt(v) => Ok(v as f64),
        Scalar::Double(v) => Ok(v),
        Scalar::Decimal(v) => Ok(v.to_f64()),
        Scalar::String(text) => {
            let parsed = number::parse_double(text.as_bytes());
            match parsed.truncated || text.ends_with(number_space) {
                _ if parsed.overflow => Err(Unfit::OutOfRange),
                true => Err(Unfit::Invalid),
                false => Ok(parsed.value),
            }
        }
        _ => Err(Unfit::Invalid),
    })
}

/// A DECIMAL with any number of digits.
pub fn decimal(doc: Doc<'_>) -> Converted<Decimal> {
    let scalar = match scalar(doc)? {
        Ok(scalar) => scalar,
        Err(unfit) => return Ok(Err(unfit)),
    };
    Ok(match scalar {
        Scalar::Bool(v) => Ok(Decimal::from(i64::from(v))),
        Scalar::Int(v) => Ok(Decimal::from(v)),
        Scalar::UInt(v) => Ok(Decimal::from(v)),
        Scalar::Double(v) => {
            let mut text = Vec::new();
            number::write_double(v, &mut text);
            let parsed = number::parse_decimal(&text);
            match parsed.overflow {
                true => Err(Unfit::OutOfRange),
                false => Ok(parsed.value),
            }
        }
        Scalar::Decimal(v) => Ok(v),
        Scalar::String(text) => {
            let parsed = number::parse_decimal(text.as_bytes());
            match parsed.truncated {
                _ if parsed.overflow => Err(Unfit::OutOfRange),
                true => Err(Unfit::Invalid),
                false => Ok(parsed.value),
            }
        }
        _ => Err(Unfit::Invalid),
    })
}

/// A date or a time inside a document.
pub enum Temporal {
    Date(DateTime),
    DateTime(DateTime),
    Time(Time),
}

/// The date or time that a document is; `None` for other documents, strings included.
pub fn temporal(doc: Doc<'_>) -> Result<Option<Temporal>, SqlError> {
    Ok(match doc.scalar()? {
        Some(Scalar::Date(v)) => Some(Temporal::Date(v.at_midnight())),
        Some(Scalar::DateTime(v) | Scalar::Timestamp(v)) => Some(Temporal::DateTime(v)),
        Some(Scalar::Time(v)) => Some(Temporal::Time(v)),
        _ => None,
    })
}

impl Temporal {
    /// The value, to be stored in a column.
    pub fn value(&self) -> ValueRef<'static> {
        match self {
            Temporal::Date(v) => ValueRef::Date(v.date()),
            Temporal::DateTime(v) => ValueRef::DateTime(*v),
            Temporal::Time(v) => ValueRef::Time(*v),
        }
    }
}
