//! One SQL value, owned and borrowed.
//!
//! A value carries no type of its own beyond its variant: character set, collation, enumeration
//! members and display attributes belong to the [`crate::ColumnType`] beside it. ENUM, SET, BIT and
//! YEAR values are [`Value::UInt`] (index, bit map, bits, year).

use crate::{Date, DateTime, Decimal, Time, Timestamp};

/// An owned value. `PartialEq` is identity of the stored value (bytes of strings, `1.0` = `1.00`),
/// not SQL equality.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Value {
    /// NULL
    #[default]
    Null,
    /// A signed integer.
    Int(i64),
    /// An unsigned integer; also ENUM (1-based index), SET (bit map), BIT, YEAR.
    UInt(u64),
    /// FLOAT
    Float(f32),
    /// DOUBLE
    Double(f64),
    /// DECIMAL
    Decimal(Decimal),
    /// A character or binary string, in the bytes of its character set.
    Bytes(Vec<u8>),
    /// DATE
    Date(Date),
    /// DATETIME
    DateTime(DateTime),
    /// TIMESTAMP as stored: an instant in UTC.
    Timestamp(Timestamp),
    /// TIME
    Time(Time),
}

/// A borrowed value, as it comes from a row.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum ValueRef<'a> {
    /// NULL
    #[default]
    Null,
    /// A signed integer.
    Int(i64),
    /// An unsigned integer; also ENUM (1-based index), SET (bit map), BIT, YEAR.
    UInt(u64),
    /// FLOAT
    Float(f32),
    /// DOUBLE
    Double(f64),
    /// DECIMAL
    Decimal(Decimal),
    /// A character or binary string, in the bytes of its character set.
    Bytes(&'a [u8]),
    /// DATE
    Date(Date),
    /// DATETIME
    DateTime(DateTime),
    /// TIMESTAMP as stored: an instant in UTC.
    Timestamp(Timestamp),
    /// TIME
    Time(Time),
}

impl Value {
    /// Borrows it.
    #[inline]
    pub fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Value::Null => ValueRef::Null,
            Value::Int(v) => ValueRef::Int(*v),
            Value::UInt(v) => ValueRef::UInt(*v),
            Value::Float(v) => ValueRef::Float(*v),
            Value::Double(v) => ValueRef::Double(*v),
            Value::Decimal(v) => ValueRef::Decimal(*v),
            Value::Bytes(v) => ValueRef::Bytes(v),
            Value::Date(v) => ValueRef::Date(*v),
            Value::DateTime(v) => ValueRef::DateTime(*v),
            Value::Timestamp(v) => ValueRef::Timestamp(*v),
            Value::Time(v) => ValueRef::Time(*v),
        }
    }

    /// Whether it is NULL.
    #[inline]
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }
}

impl<'a> ValueRef<'a> {
    /// Makes an owned copy; allocates for strings.
    pub fn to_owned(self) -> Value {
        match self {
            ValueRef::Null => Value::Null,
            ValueRef::Int(v) => Value::Int(v),
            ValueRef::UInt(v) => Value::UInt(v),
            ValueRef::Float(v) => Value::Float(v),
            ValueRef::Double(v) => Value::Double(v),
            ValueRef::Decimal(v) => Value::Decimal(v),
            ValueRef::Bytes(v) => Value::Bytes(v.to_vec()),
            ValueRef::Date(v) => Value::Date(v),
            ValueRef::DateTime(v) => Value::DateTime(v),
            ValueRef::Timestamp(v) => Value::Timestamp(v),
            ValueRef::Time(v) => Value::Time(v),
        }
    }

    /// Whether it is NULL.
    #[inline]
    pub fn is_null(self) -> bool {
        matches!(self, ValueRef::Null)
    }

    /// The bytes of a string value.
    #[inline]
    pub fn as_bytes(self) -> Option<&'a [u8]> {
        match self {
            ValueRef::Bytes(b) => Some(b),
            _ => None,
        }
    }
}

impl<'a> From<&'a Value> for ValueRef<'a> {
    fn from(v: &'a Value) -> Self {
        v.as_ref()
    }
}

macro_rules! from {
    ($($t:ty => $variant:ident($conv:expr);)*) => {$(
        impl From<$t> for Value {
            fn from(v: $t) -> Value { Value::$variant($conv(v)) }
        }
    )*};
}

from! {
    i64 => Int(|v| v);
    i32 => Int(i64::from);
    bool => Int(i64::from);
    u64 => UInt(|v| v);
    u32 => UInt(u64::from);
    f32 => Float(|v| v);
    f64 => Double(|v| v);
    Decimal => Decimal(|v| v);
    Vec<u8> => Bytes(|v| v);
    String => Bytes(String::into_bytes);
    &str => Bytes(|v: &str| v.as_bytes().to_vec());
    &[u8] => Bytes(|v: &[u8]| v.to_vec());
    Date => Date(|v| v);
    DateTime => DateTime(|v| v);
    Timestamp => Timestamp(|v| v);
    Time => Time(|v| v);
}

impl<T> From<Option<T>> for Value
where
    Value: From<T>,
{
    fn from(v: Option<T>) -> Value {
        v.map_or(Value::Null, Value::from)
    }
}

const _: () = assert!(
    size_of::<Value>() <= 40 && size_of::<ValueRef>() <= 40,
    "values stay small"
);
