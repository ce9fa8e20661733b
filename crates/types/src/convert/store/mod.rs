//! Converts values for storage in a column: INSERT, UPDATE and CAST-like assignments.
//!
//! [`store_value`] returns a value of the column's own type, within its range, as rows and keys
//! expect it. If the value does not fit, strict mode returns MySQL's error, and other modes return
//! the nearest value and a warning.

mod member;
mod numeric;
mod plain_text;
mod string;
mod temporal;

use super::shown;
pub use string::{double_text, printable};

use crate::charset::{UTF8MB4, convert, is_ascii};
use crate::error::{ErrorCode, Level, SqlError, Warnings};
use crate::sql_type::{ColumnType, TypeKind};
use crate::temporal::{Date, DateFlags, DateTime, TimeZone, Timestamp};
use crate::{CollationId, Decimal, Time, Value, ValueRef};
use std::fmt::Display;

/// The session settings that storing depends on.
#[derive(Clone, Debug)]
pub struct StoreMode {
    /// STRICT_TRANS_TABLES or STRICT_ALL_TABLES: bad values are errors.
    pub strict: bool,
    /// INSERT IGNORE and its kin: bad values are warnings even in strict mode.
    pub ignore: bool,
    /// NO_ZERO_DATE, NO_ZERO_IN_DATE, ALLOW_INVALID_DATES.
    pub dates: DateFlags,
    /// TIME_TRUNCATE_FRACTIONAL: surplus fractional digits are cut, not rounded.
    pub truncate_fractional: bool,
    /// The session's time zone.
    pub time_zone: TimeZone,
    /// The time of the statement. Its date in the session's time zone is the date of a TIME that
    /// becomes a DATE or DATETIME; only such a value needs the conversion.
    pub now: Timestamp,
}

impl StoreMode {
    fn today(&self) -> Date {
        self.time_zone.to_local(self.now).unwrap_or_default().date()
    }
}

/// One assignment: the mode, what the messages name, and where the warnings go.
#[derive(Debug)]
pub struct StoreCx<'a> {
    /// The session settings.
    pub mode: &'a StoreMode,
    /// The column's name, for messages.
    pub column: &'a str,
    /// The row's number within its statement, from 1, for messages.
    pub row: u64,
    /// The collation of the string that is stored, for messages. [`store_value`] sets it.
    pub from: CollationId,
    /// Collects warnings and notes.
    pub warnings: &'a mut Warnings,
}

impl StoreCx<'_> {
    /// Whether a bad value is an error.
    fn is_strict(&self) -> bool {
        self.mode.strict && !self.mode.ignore
    }

    /// An error in strict mode, otherwise a warning.
    fn bad(&mut self, code: ErrorCode, args: &[&dyn Display]) -> Result<(), SqlError> {
        if self.is_strict() {
            return Err(SqlError::new(code, args));
        }
        self.warnings.warn(code, args);
        Ok(())
    }

    /// 1264
    fn out_of_range(&mut self) -> Result<(), SqlError> {
        let (column, row) = (self.column, self.row);
        self.bad(ErrorCode::ER_WARN_DATA_OUT_OF_RANGE, &[&column, &row])
    }

    /// 1265
    fn truncated(&mut self) -> Result<(), SqlError> {
        let (column, row) = (self.column, self.row);
        self.bad(ErrorCode::WARN_DATA_TRUNCATED, &[&column, &row])
    }

    /// 1265 as a note, in every mode.
    fn truncated_note(&mut self) {
        self.warnings.push(
            Level::Note,
            ErrorCode::WARN_DATA_TRUNCATED,
            &[&self.column, &self.row],
        );
    }

    /// 1366: "Incorrect `kind` value: '`value`' for column ..."
    fn incorrect(&mut self, kind: &str, value: &dyn Display) -> Result<(), SqlError> {
        let (column, row) = (self.column, self.row);
        self.bad(
            ErrorCode::ER_TRUNCATED_WRONG_VALUE_FOR_FIELD,
            &[&kind, value, &column, &row],
        )
    }
}

/// Converts `value` to the column type `ty`. Strings have the collation `from` (`BINARY` for binary
/// strings). NULL stays NULL; the caller checks NOT NULL.
///
/// # Errors
/// In strict mode without IGNORE: 1264 out of range, 1265 data truncated, 1366 incorrect value,
/// 1292 incorrect date, 1406 data too long, 1441 date overflow.
#[inline]
pub fn store_value(
    value: ValueRef<'_>,
    from: CollationId,
    ty: &ColumnType,
    cx: &mut StoreCx<'_>,
) -> Result<Value, SqlError> {
    store_value_in(value, from, ty, cx, Vec::new())
}

/// As [`store_value`]. A string of characters or bytes may be put into `buffer`, which is empty, to
/// use its memory again.
pub fn store_value_in(
    value: ValueRef<'_>,
    from: CollationId,
    ty: &ColumnType,
    cx: &mut StoreCx<'_>,
    buffer: Vec<u8>,
) -> Result<Value, SqlError> {
    if value.is_null() {
        return Ok(Value::Null);
    }
    if let ValueRef::Bytes(text) = value
        && is_stored_unchanged(text, ty)
        && from.known().charset.is_ascii_compatible()
    {
        // Nearly every text.
        let mut buffer = buffer;
        buffer.extend_from_slice(text);
        return Ok(Value::Bytes(buffer));
    }
    if let ValueRef::Bytes(text) = value
        && !ty.is_string()
    {
        cx.from = from;
        if from.known().charset.is_wide() {
            let mut plain = Vec::new();
            convert(from.known().charset, &UTF8MB4, text, &mut plain);
            return store_value(ValueRef::Bytes(&plain), CollationId::UTF8MB4_BIN, ty, cx);
        }
        if let Some(value) = plain_text::plain_value(text, ty) {
            return Ok(value);
        }
    }
    general_value(value, from, ty, cx, buffer)
}

/// The value that [`store_value_in`] makes of a text in the usual form of a number or date, in a
/// character set that is not wide. `None`: another text, or a column of another type.
#[inline]
pub fn usual_value(text: &[u8], ty: &ColumnType) -> Option<Value> {
    plain_text::plain_value(text, ty)
}

/// Whether [`store_value_in`] stores `text`, in a character set like ASCII, as it is: in a CHAR or
/// VARCHAR column that it fits.
#[inline]
pub fn is_stored_unchanged(text: &[u8], ty: &ColumnType) -> bool {
    let chars = match ty.kind {
        TypeKind::VarChar(chars) => chars,
        // Spaces at the end are cut off.
        TypeKind::Char(chars) if text.last() != Some(&b' ') => chars,
        _ => return false,
    };
    text.len() <= chars as usize && is_ascii(text) && ty.charset().is_ascii_compatible()
}

/// [`store_value_in`] for values that are not NULL, and not texts of a wide character set for
/// another type.
#[inline(always)]
fn general_value(
    value: ValueRef<'_>,
    from: CollationId,
    ty: &ColumnType,
    cx: &mut StoreCx<'_>,
    buffer: Vec<u8>,
) -> Result<Value, SqlError> {
    match &ty.kind {
        TypeKind::TinyInt
        | TypeKind::SmallInt
        | TypeKind::MediumInt
        | TypeKind::Int
        | TypeKind::BigInt => numeric::integer(value, ty, cx),
        TypeKind::Year => numeric::year(value, cx),
        TypeKind::Decimal { precision, scale } => {
            numeric::decimal(value, ty.unsigned, *precision, *scale, cx)
        }
        TypeKind::Float | TypeKind::Double => numeric::floating(value, ty, cx),
        TypeKind::Bit(bits) => numeric::bit(value, *bits, cx),
        TypeKind::Date => temporal::date(value, cx),
        TypeKind::Time(fsp) => temporal::time(value, *fsp, cx),
        TypeKind::DateTime(fsp) => temporal::datetime(value, *fsp, cx),
        TypeKind::Timestamp(fsp) => temporal::timestamp(value, *fsp, cx),
        TypeKind::Enum(members) => member::enumeration(value, from, ty, members, cx),
        TypeKind::Set(members) => member::set(value, from, ty, members, cx),
        TypeKind::Char(_)
        | TypeKind::VarChar(_)
        | TypeKind::Binary(_)
        | TypeKind::VarBinary(_)
        | TypeKind::Text(_)
        | TypeKind::Blob(_) => string::string(value, from, ty, cx, buffer),
        // The executor makes documents of values; a document is stored unchanged.
        TypeKind::Json => Ok(value.to_owned()),
        TypeKind::Null => Ok(Value::Null),
    }
}

/// The value that a NOT NULL column takes where no better one is known (MySQL's implicit default):
/// zero, the empty string, the zero date, the first member of an ENUM.
pub fn implicit_default(ty: &ColumnType) -> Value {
    match &ty.kind {
        TypeKind::TinyInt
        | TypeKind::SmallInt
        | TypeKind::MediumInt
        | TypeKind::Int
        | TypeKind::BigInt => {
            if ty.unsigned {
                Value::UInt(0)
            } else {
                Value::Int(0)
            }
        }
        TypeKind::Year | TypeKind::Bit(_) | TypeKind::Set(_) => Value::UInt(0),
        TypeKind::Enum(_) => Value::UInt(1),
        TypeKind::Decimal { scale, .. } => {
            Value::Decimal(Decimal::ZERO.rescale(*scale).unwrap_or(Decimal::ZERO))
        }
        TypeKind::Float => Value::Float(0.0),
        TypeKind::Double => Value::Double(0.0),
        TypeKind::Date => Value::Date(Date::ZERO),
        TypeKind::Time(fsp) => Value::Time(Time::from_micros(0, *fsp)),
        TypeKind::DateTime(fsp) => Value::DateTime(DateTime::ZERO.with_fsp(*fsp)),
        TypeKind::Timestamp(fsp) => Value::Timestamp(Timestamp::ZERO.with_fsp(*fsp)),
        TypeKind::Binary(n) => Value::Bytes(vec![0; *n as usize]),
        TypeKind::Char(_)
        | TypeKind::VarChar(_)
        | TypeKind::VarBinary(_)
        | TypeKind::Text(_)
        | TypeKind::Blob(_) => Value::Bytes(Vec::new()),
        // An empty value is read as the document `null`.
        TypeKind::Json => Value::Bytes(Vec::new()),
        TypeKind::Null => Value::Null,
    }
}

/// The local date-time of a temporal value: a TIME counts from today, a TIMESTAMP is read in the
/// session's time zone.
fn as_datetime(value: ValueRef<'_>, mode: &StoreMode) -> Option<DateTime> {
    match value {
        ValueRef::Date(v) => Some(v.at_midnight()),
        ValueRef::DateTime(v) => Some(v),
        ValueRef::Timestamp(v) => mode.time_zone.to_local(v),
        ValueRef::Time(v) => {
            DateTime::from_linear(mode.today().at_midnight().to_linear() + v.micros(), v.fsp)
        }
        _ => None,
    }
}

/// The text of a value as messages show it and as string columns take it (without a column's
/// display attributes).
fn text_of(value: ValueRef<'_>, mode: &StoreMode) -> Vec<u8> {
    let mut out = Vec::new();
    crate::wire::display_text(
        value,
        &ColumnType::new(TypeKind::Null),
        &mode.time_zone,
        &mut out,
    );
    out
}

#[cfg(test)]
mod tests;
