//! Converts values to JSON documents for columns, and documents to text, outside of expressions.

use nfold_json::{Doc, ParseError, Work};
use nfold_types::{CollationId, ErrorCode, NoCheckpoint, SqlError, Value, ValueRef, charset};

/// Error 3140.
fn invalid(message: &str, position: usize, column: &str) -> SqlError {
    let code = ErrorCode::ER_INVALID_JSON_TEXT;
    SqlError::new(code, &[&message, &position, &column])
}

/// Error 3140 for a value that is not a string.
pub(crate) fn no_text(column: &str) -> SqlError {
    invalid("not a JSON text, may need CAST", 0, column)
}

/// Adds the table to the column in the message of error 3140, as MySQL does.
#[cold]
pub(crate) fn with_table(e: SqlError, table: &str, column: &str) -> SqlError {
    if e.code != ErrorCode::ER_INVALID_JSON_TEXT {
        return e;
    }
    let (short, long) = (format!("'{column}'"), format!("'{table}.{column}'"));
    SqlError::with_message(e.code, e.message.replace(&short, &long))
}

/// Parses utf8mb4 text as a document. Errors 3140, 3157.
pub(crate) fn parsed(text: &[u8], column: &str, work: &Work<'_>) -> Result<Vec<u8>, SqlError> {
    let value = nfold_json::parse(text, work).map_err(|e| match e {
        ParseError::Syntax(message, position) => invalid(message, position, column),
        ParseError::Other(e) => e,
    })?;
    nfold_json::binary::encode(&value, work)
}

/// Converts a value to a document. A string is in the collation `from`. Errors 3140, 3144.
pub(crate) fn of_value(
    value: ValueRef<'_>,
    from: CollationId,
    column: &str,
    work: &Work<'_>,
) -> Result<Value, SqlError> {
    let ValueRef::Bytes(text) = value else {
        return Err(no_text(column));
    };
    let set = from.known().charset;
    if set.is_binary() {
        let code = ErrorCode::ER_INVALID_JSON_CHARSET;
        return Err(SqlError::new(code, &[&"binary"]));
    }
    if set.is_utf8() || set.is_ascii(text) {
        return parsed(text, column, work).map(Value::Bytes);
    }
    let mut converted = Vec::new();
    charset::convert(set, &charset::UTF8MB4, text, &mut converted);
    parsed(&converted, column, work).map(Value::Bytes)
}

/// Parses the text that ALTER TABLE copies into a JSON column.
///
/// # Errors
/// 3140, 3144.
pub fn of_text(text: &[u8], from: CollationId, column: &str) -> Result<Value, SqlError> {
    of_value(
        ValueRef::Bytes(text),
        from,
        column,
        &Work::new(&NoCheckpoint),
    )
}

/// The text of a document, in utf8mb4.
///
/// # Errors
/// 3142.
pub fn text(doc: &[u8]) -> Result<Vec<u8>, SqlError> {
    let mut out = Vec::new();
    nfold_json::print(Doc::new(doc)?, &Work::new(&NoCheckpoint), &mut out)?;
    Ok(out)
}
