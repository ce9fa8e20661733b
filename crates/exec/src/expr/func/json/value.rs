//! JSON_VALUE.

use std::borrow::Cow;

use nfold_json::{Doc, Scalar};
use nfold_plan::expr::{Expr, ExprType};
use nfold_plan::func::Infer;
use nfold_types::temporal::{DateFlags, parse};
use nfold_types::{CollationId, DateTime, ErrorCode, Level, SqlError, Time, TypeKind, charset};

use super::{document, path, short_text};
use crate::expr::eval::{EvalCx, Val, json};
use crate::expr::func::builtin::{Evaluated, Func, Inferred, func};
use nfold_json::scalar_value::{self, Temporal};

/// The planner builds the calls. Their arguments are the document, the path, and for each of ON
/// EMPTY and ON ERROR the clause code and the default.
pub(super) const FUNCS: &[Func] = &[func("json_value", (6, 6), infer_value, eval_value)];

/// Positions of the arguments of ON EMPTY and of ON ERROR.
const ON_EMPTY: usize = 2;
const ON_ERROR: usize = 4;

/// The type without RETURNING. With RETURNING the planner replaces it.
fn infer_value(_: &Infer<'_>, _: &mut [Expr]) -> Inferred {
    Ok(short_text(512))
}

fn eval_value<'a>(cx: &EvalCx<'a>, args: &'a [Expr], ty: &'a ExprType) -> Evaluated<'a> {
    let fallback = |clause: usize, error: SqlError| fallback(cx, &args[clause..], ty, error);
    let bytes = match document(cx, args, 0, "json_value") {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return Ok(Val::Null),
        Err(e) if e.code == ErrorCode::ER_INVALID_JSON_TEXT_IN_PARAM => {
            if cx.int(&args[ON_ERROR])? != Some(1) {
                let mut warnings = cx.st.warnings.borrow_mut();
                warnings.push_error(Level::Warning, &e);
            }
            return fallback(ON_ERROR, e);
        }
        Err(e) => return Err(e),
    };
    let Some(path) = path(cx, &args[1])? else {
        return Ok(Val::Null);
    };
    let mut found = Vec::new();
    nfold_json::seek(Doc::new(&bytes)?, &path, &json::work(cx), &mut found)?;
    let missing = |code| SqlError::new(code, &[&"json_value"]);
    let value = match found.as_slice() {
        [] => return fallback(ON_EMPTY, missing(ErrorCode::ER_MISSING_JSON_VALUE)),
        [one] => *one,
        _ => return fallback(ON_ERROR, missing(ErrorCode::ER_MULTIPLE_JSON_VALUES)),
    };
    if matches!(value.scalar()?, Some(Scalar::Null)) {
        return Ok(Val::Null);
    }
    match returned(cx, value, ty)? {
        Some(value) => Ok(value),
        None => fallback(ON_ERROR, out_of_range(type_name(ty))),
    }
}

fn out_of_range(what: &str) -> SqlError {
    SqlError::new(ErrorCode::ER_DATA_OUT_OF_RANGE, &[&what, &"json_value"])
}

/// Evaluates ON EMPTY or ON ERROR; `args` begins with its clause code.
fn fallback<'a>(
    cx: &EvalCx<'a>,
    args: &'a [Expr],
    ty: &'a ExprType,
    error: SqlError,
) -> Evaluated<'a> {
    match cx.int(&args[0])? {
        Some(1) => Err(error),
        Some(2) => default(cx, &args[1], ty),
        _ => Ok(Val::Null),
    }
}

/// The value of a DEFAULT clause.
///
/// # Errors
/// 1292, 1690 and 3141 if it does not convert.
fn default<'a>(cx: &EvalCx<'a>, e: &'a Expr, ty: &'a ExprType) -> Evaluated<'a> {
    let v = cx.val(e)?;
    let is_json = ty.col.is_json();
    let is_text = is_json && matches!(v, Val::Bytes(_));
    let doc = if is_text {
        let Some(doc) = document(cx, std::slice::from_ref(e), 0, "json_value")? else {
            return Ok(Val::Null);
        };
        doc
    } else {
        Cow::Owned(json::encoded(cx, &json::of_sql(cx, &v, &e.ty)?)?)
    };
    let doc = Doc::new(&doc)?;
    let fraction = matches!(doc.scalar()?, Some(Scalar::Decimal(d)) if d.scale() > 0);
    let integer = ty.col.kind == TypeKind::BigInt;
    if !(integer && fraction)
        && let Some(value) = returned(cx, doc, ty)?
    {
        return Ok(value);
    }
    let kind = match ty.col.kind {
        TypeKind::BigInt if ty.col.unsigned => "INTEGER UNSIGNED",
        TypeKind::BigInt => "INTEGER SIGNED",
        TypeKind::Date => "date",
        TypeKind::Time(_) => "time",
        TypeKind::DateTime(_) => "datetime",
        TypeKind::VarChar(_) => return Err(out_of_range("CHAR DEFAULT")),
        _ => return Err(out_of_range(&format!("{} DEFAULT", type_name(ty)))),
    };
    let text = json::utf8(cx, &v, &e.ty);
    Err(SqlError::new(
        ErrorCode::ER_TRUNCATED_WRONG_VALUE,
        &[&kind, &text],
    ))
}

/// The name of the RETURNING type in error 1690.
fn type_name(ty: &ExprType) -> &'static str {
    match ty.col.kind {
        TypeKind::BigInt if ty.col.unsigned => "UNSIGNED",
        TypeKind::BigInt => "SIGNED",
        TypeKind::Decimal { .. } => "DECIMAL",
        TypeKind::Double => "DOUBLE",
        TypeKind::Float => "FLOAT",
        TypeKind::Date => "DATE",
        TypeKind::Time(_) => "TIME",
        TypeKind::DateTime(_) => "DATETIME",
        TypeKind::Year => "YEAR",
        TypeKind::Json => "JSON",
        _ => "STRING",
    }
}

/// Converts a value to the RETURNING type; `None` if it does not convert.
fn returned<'a>(
    cx: &EvalCx<'a>,
    doc: Doc<'_>,
    ty: &'a ExprType,
) -> Result<Option<Val<'a>>, SqlError> {
    Ok(match ty.col.kind {
        TypeKind::BigInt => {
            let v = scalar_value::integer(doc)?.ok();
            match ty.col.unsigned {
                true => v.and_then(|v| u64::try_from(v).ok()).map(Val::UInt),
                false => v.and_then(|v| i64::try_from(v).ok()).map(Val::Int),
            }
        }
        TypeKind::Decimal { precision, scale } => {
            let v = scalar_value::decimal(doc)?
                .ok()
                .and_then(|d| d.rescale(scale));
            v.filter(|d| d.int_digits() <= u32::from(precision - scale))
                .map(Val::Decimal)
        }
        TypeKind::Double => scalar_value::double(doc)?.ok().map(Val::Double),
        TypeKind::Float => {
            let v = scalar_value::double(doc)?.ok().map(|v| v as f32);
            v.filter(|v| v.is_finite()).map(Val::Float)
        }
        TypeKind::Year => {
            let v = scalar_value::integer(doc)?.ok();
            v.filter(|v| matches!(v, 0 | 1901..=2155))
                .map(|v| Val::UInt(v as u64))
        }
        TypeKind::Date => date(cx, doc)?.map(|v| Val::Date(v.date())),
        TypeKind::DateTime(fsp) if !is_text_of_date(doc)? => {
            date(cx, doc)?.map(|v| Val::DateTime(v.truncate(fsp)))
        }
        TypeKind::DateTime(_) => None,
        TypeKind::Time(fsp) => time(cx, doc)?.map(|v| Val::Time(v.truncate(fsp))),
        TypeKind::Json => {
            let mut out = Vec::new();
            doc.write_to(&mut out)?;
            Some(Val::string(out))
        }
        _ => text(cx, doc, ty)?.map(Val::string),
    })
}

/// Whether a string has a date without a time, which is not a DATETIME.
fn is_text_of_date(doc: Doc<'_>) -> Result<bool, SqlError> {
    let Some(Scalar::String(text)) = doc.scalar()? else {
        return Ok(false);
    };
    let parsed = parse::parse_datetime(text.as_bytes(), DateFlags::default());
    Ok(parsed.is_ok_and(|parsed| parsed.date_only))
}

/// The date in a document that is a date or a string.
fn date(cx: &EvalCx<'_>, doc: Doc<'_>) -> Result<Option<DateTime>, SqlError> {
    Ok(match (scalar_value::temporal(doc)?, doc.scalar()?) {
        (Some(Temporal::Date(v) | Temporal::DateTime(v)), _) => Some(v),
        (None, Some(Scalar::String(text))) => {
            let parsed = parse::parse_datetime(text.as_bytes(), DateFlags::default()).ok();
            parsed
                .filter(|p| !p.truncated)
                .and_then(|p| p.rounded(cx.env().time_zone(), false))
        }
        _ => None,
    })
}

/// The time in a document that is a time or a string.
fn time(cx: &EvalCx<'_>, doc: Doc<'_>) -> Result<Option<Time>, SqlError> {
    Ok(match (scalar_value::temporal(doc)?, doc.scalar()?) {
        (Some(Temporal::Time(v)), _) => Some(v),
        (None, Some(Scalar::String(text))) => {
            let parsed = parse::parse_time(text.as_bytes()).ok();
            parsed
                .filter(|p| !p.truncated && !p.clamped)
                .and_then(|p| p.rounded(cx.env().time_zone(), false))
        }
        _ => None,
    })
}

/// The text of a value; `None` if it is too long, or has characters that the type lacks.
fn text(cx: &EvalCx<'_>, doc: Doc<'_>, ty: &ExprType) -> Result<Option<Vec<u8>>, SqlError> {
    let mut utf8 = Vec::new();
    nfold_json::print_unquoted(doc, &json::work(cx), &mut utf8)?;
    let set = ty.col.charset();
    let mut text = Vec::new();
    if set.is_binary() || set.is_utf8() || utf8.is_ascii() {
        text = utf8;
    } else {
        let from = CollationId::UTF8MB4_BIN.known().charset;
        if charset::convert(from, set, &utf8, &mut text) > 0 {
            return Ok(None);
        }
    }
    let fits = ty.col.is_blob() || set.char_len(&text) as u64 <= ty.char_length();
    Ok(fits.then_some(text))
}
