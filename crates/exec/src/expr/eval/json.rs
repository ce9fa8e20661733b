//! JSON documents as values of expressions: converts SQL values to documents and documents to SQL
//! values.
//!
//! A document is a [`Val::Bytes`] in the binary layout, with a type of JSON.

use std::cmp::Ordering;

use nfold_json::{Doc, FieldType, Json, Opaque, ParseError, Scalar, Work};
use nfold_plan::expr::{Class, Expr, ExprKind, ExprType};
use nfold_types::convert::number::{self, Parsed};
use nfold_types::temporal::{DateFlags, parse};
use nfold_types::{CollationId, Decimal, ErrorCode, SqlError, TextSize, TypeKind};

use super::{EvalCx, Val, convert};

/// The work counter for functions of `nfold_json`.
pub(crate) fn work<'c>(cx: &EvalCx<'c>) -> Work<'c> {
    Work::new(cx.st.checkpoint)
}

/// Encodes a tree as a document.
pub(crate) fn encoded(cx: &EvalCx<'_>, value: &Json) -> Result<Vec<u8>, SqlError> {
    nfold_json::binary::encode(value, &work(cx))
}

/// The text of a document in utf8mb4. `unquoted`: a string scalar has no quotation marks.
pub(crate) fn text(cx: &EvalCx<'_>, doc: &[u8], unquoted: bool) -> Result<Vec<u8>, SqlError> {
    let mut out = Vec::new();
    let doc = Doc::new(doc)?;
    match unquoted {
        true => nfold_json::print_unquoted(doc, &work(cx), &mut out)?,
        false => nfold_json::print(doc, &work(cx), &mut out)?,
    }
    Ok(out)
}

/// As [`text`], for callers that cannot return an error. The statement fails with it later.
pub(crate) fn text_or_raise(cx: &EvalCx<'_>, doc: &[u8]) -> Vec<u8> {
    text(cx, doc, false).unwrap_or_else(|e| {
        cx.st.warnings.borrow_mut().raise(e);
        Vec::new()
    })
}

/// Converts a scalar to an SQL value and its type. `None` for `null`, arrays and objects, which
/// have no SQL value.
pub(crate) fn sql_value<'v>(doc: Doc<'v>) -> Result<Option<(Val<'v>, ExprType)>, SqlError> {
    let Some(scalar) = doc.scalar()? else {
        return Ok(None);
    };
    let fixed = |kind| ExprType::new(nfold_types::ColumnType::new(kind), false);
    Ok(Some(match scalar {
        Scalar::Null => return Ok(None),
        Scalar::Bool(v) => (Val::Int(i64::from(v)), ExprType::boolean(false)),
        Scalar::Int(v) => (Val::Int(v), ExprType::bigint(false)),
        Scalar::UInt(v) => (Val::UInt(v), ExprType::ubigint(false)),
        Scalar::Double(v) => (Val::Double(v), ExprType::double(false)),
        Scalar::Decimal(v) => (
            Val::Decimal(v),
            ExprType::decimal(65, v.scale().into(), false),
        ),
        Scalar::String(v) => (Val::Bytes(v.as_bytes().into()), string_type()),
        Scalar::Date(v) => (Val::Date(v), fixed(TypeKind::Date)),
        Scalar::Time(v) => (Val::Time(v), fixed(TypeKind::Time(6))),
        Scalar::DateTime(v) | Scalar::Timestamp(v) => {
            (Val::DateTime(v), fixed(TypeKind::DateTime(6)))
        }
        Scalar::Opaque(_, bytes) => {
            let collation = CollationId::BINARY;
            let ty = nfold_plan::expr::string_type(bytes.len() as u64, collation);
            (Val::Bytes(bytes.into()), ExprType::new(ty, false))
        }
    }))
}

fn string_type() -> ExprType {
    let ty = nfold_plan::expr::string_type(1 << 16, CollationId::UTF8MB4_BIN);
    ExprType {
        coercibility: nfold_plan::expr::Coercibility::Implicit,
        ..ExprType::new(ty, false)
    }
}

/// Applies `convert` to the SQL value of a document of type `source`. `None` with warning 3156 for
/// arrays, objects and `null`.
pub(crate) fn converted<T>(
    cx: &EvalCx<'_>,
    doc: &[u8],
    (target, source): (&str, &ExprType),
    convert: impl FnOnce(&Val<'_>, &ExprType) -> Option<T>,
) -> Option<T> {
    match Doc::new(doc).and_then(sql_value) {
        Ok(Some((value, ty))) if is_convertible(&value, target) => convert(&value, &ty),
        Ok(_) => {
            warn_invalid(cx, (target, source));
            None
        }
        Err(e) => {
            cx.st.warnings.borrow_mut().raise(e);
            None
        }
    }
}

/// Converts a number or boolean to an SQL value and its type. `None` for others. As in MySQL, dates
/// and times in documents are no numbers.
fn sql_number<'v>(doc: Doc<'v>) -> Result<Option<(Val<'v>, ExprType)>, SqlError> {
    let value = sql_value(doc)?;
    Ok(value.filter(|(_, ty)| ty.class().is_number()))
}

/// A document as an integer of BIGINT or BIGINT UNSIGNED. As for DOUBLE and DECIMAL, a string is
/// read as far as it is a number, with warning 3156 if it is none as a whole, and a number beyond
/// the range becomes its limit, with warning 3155.
pub(super) fn integer_of(cx: &EvalCx<'_>, doc: &[u8], source: &ExprType) -> i128 {
    let conversion = ("INTEGER", source);
    read_number(cx, doc, conversion, |doc| {
        Ok(match doc.scalar()? {
            Some(Scalar::String(text)) => {
                let parsed = number::parse_integer(text.as_bytes());
                let blank = text.is_empty() || text.ends_with(is_space);
                Some(of_text(cx, parsed, blank, conversion))
            }
            Some(Scalar::Double(v)) => {
                let (low, high) = (i128::from(i64::MIN), i128::from(i64::MAX));
                let beyond = match number::double_to_integer(v) {
                    // As in MySQL, the least BIGINT is beyond the range of doubles.
                    Some(v) if v > low && v <= high => return Ok(Some(v)),
                    Some(v) => v,
                    None if v < 0.0 => low,
                    None => high,
                };
                warn_range(cx, conversion);
                Some(beyond.clamp(low, high))
            }
            _ => sql_number(doc)?.and_then(|(v, ty)| {
                convert::warn_beyond(cx, &v, true);
                convert::to_integer(cx, &v, &ty)
            }),
        })
    })
    .unwrap_or(0)
}

/// A document as a double.
pub(super) fn double_of(cx: &EvalCx<'_>, doc: &[u8], source: &ExprType) -> f64 {
    let conversion = ("DOUBLE", source);
    read_number(cx, doc, conversion, |doc| {
        Ok(match doc.scalar()? {
            Some(Scalar::String(text)) => {
                let parsed = number::parse_double(text.as_bytes());
                Some(match text.is_empty() {
                    true => 0.0,
                    false => of_text(cx, parsed, text.ends_with(is_space), conversion),
                })
            }
            // The usual numbers, without their SQL types.
            Some(Scalar::Int(v)) => Some(v as f64),
            Some(Scalar::UInt(v)) => Some(v as f64),
            Some(Scalar::Double(v)) => Some(v),
            _ => sql_number(doc)?.and_then(|(v, ty)| convert::to_f64(cx, &v, &ty)),
        })
    })
    .unwrap_or(0.0)
}

/// A document as a DECIMAL.
pub(super) fn decimal_of(cx: &EvalCx<'_>, doc: &[u8], source: &ExprType) -> Decimal {
    let conversion = ("DECIMAL", source);
    read_number(cx, doc, conversion, |doc| {
        Ok(match doc.scalar()? {
            Some(Scalar::String(text)) => {
                let parsed = number::parse_decimal(text.as_bytes());
                Some(of_text(cx, parsed, text.is_empty(), conversion))
            }
            Some(Scalar::Double(v)) if Decimal::from_f64(v).is_none() => {
                warn_range(cx, conversion);
                convert::to_decimal(cx, &Val::Double(v), &ExprType::double(false))
            }
            // As in MySQL, which converts its 64 bits as those of a BIGINT.
            Some(Scalar::UInt(v)) => Some(Decimal::from(v as i64)),
            _ => sql_number(doc)?.and_then(|(v, ty)| convert::to_decimal(cx, &v, &ty)),
        })
    })
    .unwrap_or(Decimal::ZERO)
}

/// Applies `convert` to a document. `None` with warning 3156 if it is no number.
fn read_number<T>(
    cx: &EvalCx<'_>,
    doc: &[u8],
    conversion: (&str, &ExprType),
    convert: impl FnOnce(Doc<'_>) -> Result<Option<T>, SqlError>,
) -> Option<T> {
    match Doc::new(doc).and_then(convert) {
        Ok(Some(value)) => Some(value),
        Ok(None) => {
            warn_invalid(cx, conversion);
            None
        }
        Err(e) => {
            cx.st.warnings.borrow_mut().raise(e);
            None
        }
    }
}

/// The number that was read from a text. `more`: the text has more than the number.
fn of_text<T>(cx: &EvalCx<'_>, parsed: Parsed<T>, more: bool, conversion: (&str, &ExprType)) -> T {
    if parsed.overflow {
        warn_range(cx, conversion);
    } else if parsed.truncated || more {
        warn_invalid(cx, conversion);
    }
    parsed.value
}

/// Warning 3155: a number in a document of the given type is beyond the range of a type.
fn warn_range(cx: &EvalCx<'_>, conversion: (&str, &ExprType)) {
    warn_lost(
        cx,
        ErrorCode::ER_NUMERIC_JSON_VALUE_OUT_OF_RANGE,
        conversion,
    );
}

/// Warning 3156: a document of the given type is no value of a type.
fn warn_invalid(cx: &EvalCx<'_>, conversion: (&str, &ExprType)) {
    warn_lost(cx, ErrorCode::ER_INVALID_JSON_VALUE_FOR_CAST, conversion);
}

/// A warning that names the source of the document, and the row. As in MySQL, a document that
/// IFNULL, COALESCE, GREATEST or LEAST has chosen causes none.
#[cold]
fn warn_lost(cx: &EvalCx<'_>, code: ErrorCode, (target, source): (&str, &ExprType)) {
    if !source.item_name.is_known() {
        return;
    }
    let row = cx.st.counts.current(cx.st.scope);
    let args: [&dyn std::fmt::Display; 4] = [&target, &"", &source.item_name.as_str(), &row];
    let mut warnings = cx.st.warnings.borrow_mut();
    match warnings.is_strict() {
        true => warnings.raise(SqlError::new(code, &args)),
        false => warnings.warn(code, &args),
    }
}

fn is_space(c: char) -> bool {
    u8::try_from(c).is_ok_and(number::is_space)
}

/// Whether a value is convertible to `target` (DATE, DATETIME/TIMESTAMP or TIME) as a whole.
fn is_convertible(value: &Val<'_>, target: &str) -> bool {
    match value {
        Val::Bytes(text) if target == "TIME" => parse::parse_time(text).is_ok(),
        Val::Bytes(text) => parse::parse_datetime(text, DateFlags::default()).is_ok(),
        Val::Date(_) | Val::DateTime(_) | Val::Time(_) => true,
        _ => false,
    }
}

/// The MySQL field type that an opaque value of a binary string type carries.
fn field_type(ty: &ExprType) -> FieldType {
    match ty.col.kind {
        TypeKind::Bit(_) => FieldType::BIT,
        TypeKind::Binary(_) => FieldType::STRING,
        TypeKind::Blob(TextSize::Tiny) => FieldType(249),
        TypeKind::Blob(TextSize::Medium) => FieldType(250),
        TypeKind::Blob(TextSize::Long) => FieldType(251),
        TypeKind::Blob(TextSize::Normal) => FieldType::BLOB,
        _ => FieldType::VARCHAR,
    }
}

/// Converts an SQL value to a document. A string becomes a JSON string and is not parsed. NULL
/// becomes `null`.
pub(crate) fn of_sql(cx: &EvalCx<'_>, v: &Val<'_>, ty: &ExprType) -> Result<Json, SqlError> {
    Ok(match v {
        Val::Null => Json::Null,
        Val::Bytes(doc) if ty.col.is_json() => Doc::new(doc)?.to_json(&work(cx))?,
        Val::Int(v) if ty.is_boolean() => Json::Bool(*v != 0),
        Val::Int(v) => Json::Int(*v),
        Val::UInt(_) if matches!(ty.col.kind, TypeKind::Bit(_)) => {
            let bytes = convert::to_bytes(cx, v.clone(), ty).unwrap_or_default();
            Json::Opaque(Opaque {
                field_type: FieldType::BIT,
                bytes: bytes.into_owned(),
            })
        }
        Val::UInt(v) if ty.class() == Class::Int => Json::UInt(*v),
        Val::Float(v) => Json::Double(f64::from(*v)),
        Val::Double(v) => Json::Double(*v),
        Val::Decimal(v) => Json::Opaque(Opaque::decimal(v)),
        Val::Date(v) => Json::Opaque(Opaque::date(*v)),
        Val::Time(v) => Json::Opaque(Opaque::time(*v)),
        Val::DateTime(v) if matches!(ty.col.kind, TypeKind::Timestamp(_)) => {
            Json::Opaque(Opaque::timestamp(*v))
        }
        Val::DateTime(v) => Json::Opaque(Opaque::datetime(*v)),
        Val::Bytes(bytes) if ty.collation() == CollationId::BINARY => Json::Opaque(Opaque {
            field_type: field_type(ty),
            bytes: bytes.to_vec(),
        }),
        other => Json::String(utf8(cx, other, ty)),
    })
}

/// As [`of_sql`], for the value of `e`.
pub(crate) fn of_expr(cx: &EvalCx<'_>, e: &Expr, v: &Val<'_>) -> Result<Json, SqlError> {
    let computed = matches!(e.kind, ExprKind::Cast { .. } | ExprKind::Arith(..));
    // `-9223372036854775808` is the negation of a number that BIGINT does not have.
    let negated = matches!(&e.kind, ExprKind::Neg(of) if of.ty.class() == Class::Int);
    match v {
        Val::Decimal(v) if negated && v.to_i64().is_some() => {
            Ok(Json::Int(v.to_i64().unwrap_or_default()))
        }
        Val::Decimal(v) if computed => {
            let groups = Opaque::decimal_in_groups(v, DECIMAL_GROUP);
            Ok(Json::Opaque(groups))
        }
        _ => of_sql(cx, v, &e.ty),
    }
}

/// The digits in a group of a computed DECIMAL.
const DECIMAL_GROUP: usize = 9;

/// The text of a value, in UTF-8.
pub(crate) fn utf8(cx: &EvalCx<'_>, v: &Val<'_>, ty: &ExprType) -> String {
    let text = convert::to_text(cx, v.clone(), ty, CollationId::UTF8MB4_BIN);
    String::from_utf8_lossy(&text.unwrap_or_default()).into_owned()
}

/// Error 3141 for invalid JSON text in argument number `argument`, counted from 1.
pub(crate) fn syntax_error(e: ParseError, argument: usize, function: &str) -> SqlError {
    match e {
        ParseError::Syntax(message, position) => SqlError::new(
            ErrorCode::ER_INVALID_JSON_TEXT_IN_PARAM,
            &[&argument, &function, &message, &position, &""],
        ),
        ParseError::Other(e) => e,
    }
}

/// `CAST(v AS JSON)`: a string is parsed.
pub(crate) fn cast<'a>(cx: &EvalCx<'a>, v: Val<'a>, from: &ExprType) -> Result<Val<'a>, SqlError> {
    if from.col.is_json() || v.is_null() {
        return Ok(v);
    }
    let is_text = matches!(v, Val::Bytes(_)) && from.collation() != CollationId::BINARY;
    let value = if is_text {
        let text = utf8(cx, &v, from);
        nfold_json::parse(text.as_bytes(), &work(cx))
            .map_err(|e| syntax_error(e, 1, "cast_as_json"))?
    } else {
        of_sql(cx, &v, from)?
    };
    Ok(Val::string(encoded(cx, &value)?))
}

/// Compares two values as documents; `None` if either is NULL.
pub(crate) fn order(
    cx: &EvalCx<'_>,
    a: (&Val<'_>, &ExprType),
    b: (&Val<'_>, &ExprType),
) -> Option<Ordering> {
    let compared = || {
        let (x, y) = (stored(cx, a)?, stored(cx, b)?);
        nfold_json::compare(Doc::new(&x)?, Doc::new(&y)?, &work(cx))
    };
    match compared() {
        Ok(order) => Some(order),
        Err(e) => {
            cx.st.warnings.borrow_mut().raise(e);
            None
        }
    }
}

/// The document of a value, as bytes in the binary layout.
fn stored<'v>(
    cx: &EvalCx<'_>,
    (v, ty): (&'v Val<'_>, &ExprType),
) -> Result<std::borrow::Cow<'v, [u8]>, SqlError> {
    match v {
        Val::Bytes(doc) if ty.col.is_json() => Ok(doc.as_ref().into()),
        _ => Ok(encoded(cx, &of_sql(cx, v, ty)?)?.into()),
    }
}

/// Appends key bytes that are equal if the values are equal as documents.
pub(crate) fn append_key(
    cx: &EvalCx<'_>,
    value: (&Val<'_>, &ExprType),
    out: &mut Vec<u8>,
) -> Result<(), SqlError> {
    let stored = stored(cx, value)?;
    nfold_json::append_hash_key(Doc::new(&stored)?, &work(cx), out)
}
