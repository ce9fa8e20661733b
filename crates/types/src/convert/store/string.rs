//! CHAR, VARCHAR, TEXT and their binary counterparts.

use super::{StoreCx, text_of};
use crate::charset::{ASCII, Charset, convert, is_ascii};
use crate::error::{ErrorCode, SqlError};
use crate::number::{write_double_as_text, write_double_in, write_float_as_text};
use crate::sql_type::{ColumnType, TypeKind};
use crate::{CollationId, Value, ValueRef};

/// `buffer` is empty; its memory may become the result's.
pub(super) fn string(
    value: ValueRef<'_>,
    from: CollationId,
    ty: &ColumnType,
    cx: &mut StoreCx<'_>,
    buffer: Vec<u8>,
) -> Result<Value, SqlError> {
    let charset = ty.charset();
    let warned = cx.warnings.total();
    let number = |v: f64| {
        let mut out = Vec::new();
        double_text(v, ty, &mut out);
        out
    };
    let mut bytes = match value {
        ValueRef::Bytes(bytes) => in_charset(bytes, from.known().charset, charset, cx, buffer)?,
        ValueRef::Double(v) => number(v),
        ValueRef::Float(v) if ty.is_blob() => {
            let mut out = Vec::new();
            write_float_as_text(v, &mut out);
            out
        }
        // It has the digits of the double that it is.
        ValueRef::Float(v) => number(f64::from(v)),
        other => text_of(other, cx.mode),
    };
    if charset.is_wide() && !matches!(value, ValueRef::Bytes(_)) {
        let mut wide = Vec::new();
        convert(&ASCII, charset, &bytes, &mut wide);
        bytes = wide;
    }
    let keep = match ty.kind {
        TypeKind::Char(n) | TypeKind::VarChar(n) => charset.char_prefix_len(&bytes, n as usize),
        TypeKind::Binary(n) | TypeKind::VarBinary(n) => bytes.len().min(n as usize),
        _ => whole_characters(&bytes, ty.max_bytes(), charset),
    };
    if keep < bytes.len() {
        // One warning a value: a character that was lost is the graver one.
        if cx.warnings.total() == warned {
            too_long(&bytes[keep..], ty, cx)?;
        }
        bytes.truncate(keep);
    }
    match ty.kind {
        TypeKind::Char(_) => {
            let len = charset.trim_end(&bytes).len();
            bytes.truncate(len);
        }
        TypeKind::Binary(n) => bytes.resize(n as usize, 0),
        _ => {}
    }
    Ok(Value::Bytes(bytes))
}

/// The most bytes up to `limit` that cut no character.
fn whole_characters(bytes: &[u8], limit: u64, charset: &Charset) -> usize {
    let Ok(limit) = usize::try_from(limit) else {
        return bytes.len();
    };
    if bytes.len() <= limit {
        return bytes.len();
    }
    if !charset.is_multi_byte() {
        return limit;
    }
    if !charset.is_utf8() {
        let mut at = 0;
        while at + charset.step(&bytes[at..]) <= limit {
            at += charset.step(&bytes[at..]);
        }
        return at;
    }
    // Step back to the start of the character that is cut.
    (0..=limit)
        .rev()
        .find(|at| bytes[*at] & 0xC0 != 0x80)
        .unwrap_or(limit)
}

/// Appends a double as a text column of type `ty` takes it: as many digits as fit.
pub fn double_text(v: f64, ty: &ColumnType, out: &mut Vec<u8>) {
    match ty.kind {
        TypeKind::Char(n) | TypeKind::VarChar(n) | TypeKind::Binary(n) | TypeKind::VarBinary(n) => {
            write_double_in(v, n as usize, out);
        }
        _ => write_double_as_text(v, out),
    }
}

/// Handles the characters `rest` that do not fit. Trailing spaces of a character string are cut,
/// without a warning for CHAR; anything else is an error or a warning.
fn too_long(rest: &[u8], ty: &ColumnType, cx: &mut StoreCx<'_>) -> Result<(), SqlError> {
    let spaces = ty.charset().trim_end(rest).is_empty();
    match ty.kind {
        TypeKind::Char(_) if spaces => Ok(()),
        TypeKind::VarChar(_) | TypeKind::Text(_) if spaces => {
            cx.truncated_note();
            Ok(())
        }
        _ if cx.is_strict() => {
            let (column, row) = (cx.column, cx.row);
            Err(SqlError::new(ErrorCode::ER_DATA_TOO_LONG, &[&column, &row]))
        }
        _ => cx.truncated(),
    }
}

/// The string in the column's character set. Characters that it lacks become '?', malformed ones
/// end the string; both are 1366.
#[inline]
fn in_charset(
    bytes: &[u8],
    from: &Charset,
    to: &Charset,
    cx: &mut StoreCx<'_>,
    mut buffer: Vec<u8>,
) -> Result<Vec<u8>, SqlError> {
    if to.is_binary() {
        buffer.extend_from_slice(bytes);
        return Ok(buffer);
    }
    if to.is_ascii_compatible() && from.is_ascii_compatible() && copy_ascii(bytes, &mut buffer) {
        return Ok(buffer);
    }
    converted(bytes, from, to, cx)
}

/// The bytes of a string that are checked and copied in one step, while they are in the first-level
/// cache.
const COPIED_BYTES: usize = 8 << 10;

/// Appends a string of ASCII. Returns false for any other string; `to` has a part of it then.
#[inline]
fn copy_ascii(bytes: &[u8], to: &mut Vec<u8>) -> bool {
    if bytes.len() > COPIED_BYTES {
        return copy_long_ascii(bytes, to);
    }
    let ascii = is_ascii(bytes);
    if ascii {
        to.extend_from_slice(bytes);
    }
    ascii
}

#[cold]
#[inline(never)]
fn copy_long_ascii(bytes: &[u8], to: &mut Vec<u8>) -> bool {
    to.reserve(bytes.len());
    for piece in bytes.chunks(COPIED_BYTES) {
        if !is_ascii(piece) {
            return false;
        }
        to.extend_from_slice(piece);
    }
    true
}

/// As [`in_charset`], for bytes that need a check or a conversion.
fn converted(
    bytes: &[u8],
    from: &Charset,
    to: &Charset,
    cx: &mut StoreCx<'_>,
) -> Result<Vec<u8>, SqlError> {
    let missing = to.missing_bytes(bytes.len());
    if from.is_binary() && missing > 0 {
        let mut filled = vec![0; missing];
        filled.extend_from_slice(bytes);
        return converted(&filled, from, to, cx);
    }
    if from.is_binary() || from == to {
        return match to.is_valid(bytes) {
            Ok(()) => Ok(bytes.to_vec()),
            Err(at) => {
                cx.incorrect("string", &printable(&bytes[at..]))?;
                Ok(bytes[..at].to_vec())
            }
        };
    }
    let mut out = Vec::with_capacity(bytes.len());
    if convert(from, to, bytes, &mut out) > 0 {
        let at = first_lost(bytes, from, to);
        cx.incorrect("string", &printable(&bytes[at..]))?;
    }
    Ok(out)
}

/// Where the first character is that `to` lacks.
fn first_lost(bytes: &[u8], from: &Charset, to: &Charset) -> usize {
    let (mut at, mut scratch) = (0, Vec::new());
    while at < bytes.len() {
        match from.decode(&bytes[at..]) {
            Some((c, len)) if to.encode(c, &mut scratch) => at += len,
            _ => return at,
        }
    }
    at
}

/// At most six bytes, those that are no printable ASCII as `\xE6`.
pub fn printable(bytes: &[u8]) -> String {
    let mut out = String::new();
    for b in bytes.iter().take(6) {
        match b {
            b' '..=b'~' => out.push(char::from(*b)),
            _ => out.push_str(&format!("\\x{b:02X}")),
        }
    }
    if bytes.len() > 6 {
        out.push_str("...");
    }
    out
}
