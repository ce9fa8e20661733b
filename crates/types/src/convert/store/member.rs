//! ENUM and SET.

use super::{StoreCx, text_of};
use crate::charset::{ASCII, Charset, UTF8MB4, convert};
use crate::error::SqlError;
use crate::number::parse_integer;
use crate::sql_type::ColumnType;
use crate::{Collation, CollationId, Value, ValueRef};

/// The number of a value that is no string; fractions are cut.
fn whole(value: ValueRef<'_>) -> Option<i128> {
    Some(match value {
        ValueRef::Int(v) => i128::from(v),
        ValueRef::UInt(v) => i128::from(v),
        ValueRef::Float(v) => f64::from(v) as i128,
        ValueRef::Double(v) => v as i128,
        ValueRef::Decimal(v) => v.truncate(0).to_i64().map_or(i128::MAX, i128::from),
        _ => return None,
    })
}

/// A string in the column's character set, without trailing spaces.
fn in_charset(text: &[u8], from: CollationId, collation: &Collation) -> Vec<u8> {
    let mut out = Vec::new();
    convert(from.known().charset, collation.charset, text, &mut out);
    let len = collation.charset.trim_end(&out).len();
    out.truncate(len);
    out
}

/// A number or date in the column's character set.
fn shown_in(value: ValueRef<'_>, collation: &Collation, cx: &StoreCx<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    convert(
        &ASCII,
        collation.charset,
        &text_of(value, cx.mode),
        &mut out,
    );
    out
}

/// The parts of a SET's text, which commas separate.
fn parts<'t>(text: &'t [u8], set: &'static Charset) -> impl Iterator<Item = &'t [u8]> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let mut at = 0;
        while at < text.len() {
            let len = set.step(&text[at..]);
            if set.decode(&text[at..]) == Some((',', len)) {
                rest = Some(&text[at + len..]);
                return Some(&text[..at]);
            }
            at += len;
        }
        rest = None;
        Some(text)
    })
}

/// 0-based place of a member that is equal under the column's collation.
fn position(text: &[u8], collation: &Collation, members: &[Box<str>]) -> Option<usize> {
    let mut scratch = Vec::new();
    members.iter().position(|m| {
        scratch.clear();
        convert(&UTF8MB4, collation.charset, m.as_bytes(), &mut scratch);
        collation.eq(&scratch, text)
    })
}

/// A text that is a number and nothing else.
fn number(text: &[u8], collation: &Collation) -> Option<i128> {
    let mut plain = Vec::new();
    if collation.charset.is_wide() {
        convert(collation.charset, &UTF8MB4, text, &mut plain);
        return number(&plain, CollationId::UTF8MB4_BIN.known());
    }
    let parsed = parse_integer(text);
    (!parsed.truncated && !text.is_empty()).then_some(parsed.value)
}

pub(super) fn enumeration(
    value: ValueRef<'_>,
    from: CollationId,
    ty: &ColumnType,
    members: &[Box<str>],
    cx: &mut StoreCx<'_>,
) -> Result<Value, SqlError> {
    let collation = ty.collation.known();
    let count = members.len() as i128;
    let index = match (value, whole(value)) {
        (_, Some(n)) => Some(n).filter(|n| (1..=count).contains(n)),
        (value, None) => {
            let text = match value {
                ValueRef::Bytes(bytes) => in_charset(bytes, from, collation),
                other => shown_in(other, collation, cx),
            };
            match position(&text, collation, members) {
                Some(at) => Some(at as i128 + 1),
                // A number in a string is an index; '0' is the error value itself.
                None => number(&text, collation).filter(|n| (0..=count).contains(n)),
            }
        }
    };
    match index {
        Some(n) => Ok(Value::UInt(n as u64)),
        None => {
            cx.truncated()?;
            Ok(Value::UInt(0))
        }
    }
}

pub(super) fn set(
    value: ValueRef<'_>,
    from: CollationId,
    ty: &ColumnType,
    members: &[Box<str>],
    cx: &mut StoreCx<'_>,
) -> Result<Value, SqlError> {
    let max = u64::MAX >> (64 - members.len().clamp(1, 64) as u32);
    if let Some(n) = whole(value) {
        let bits = n as u64 & max;
        if i128::from(bits) != n {
            cx.truncated()?;
        }
        return Ok(Value::UInt(bits));
    }
    let collation = ty.collation.known();
    let text = match value {
        ValueRef::Bytes(bytes) => in_charset(bytes, from, collation),
        other => shown_in(other, collation, cx),
    };
    let (mut bits, mut unknown) = (0u64, false);
    if !text.is_empty() {
        for part in parts(&text, collation.charset) {
            match position(part, collation, members) {
                Some(at) if at < 64 => bits |= 1 << at,
                _ => unknown = true,
            }
        }
    }
    if unknown {
        match number(&text, collation) {
            Some(n) if (0..=i128::from(max)).contains(&n) => return Ok(Value::UInt(n as u64)),
            Some(_) => bits = 0,
            None => {}
        }
        cx.truncated()?;
    }
    Ok(Value::UInt(bits))
}
