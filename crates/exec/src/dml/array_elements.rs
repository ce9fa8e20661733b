//! Converts the elements of a document for the hidden column of a multi-valued key part.
//!
//! Source: MySQL manual, "CREATE INDEX Statement", "Multi-Valued Indexes"; the limits are those of
//! InnoDB's undo pages (`ha_innobase::mv_key_capacity`).

use std::cell::RefCell;

use nfold_catalog::ColumnDef;
use nfold_json::{Doc, DocKind, Scalar, scalar_value};
use nfold_plan::expr::Class;
use nfold_types::key::{Elements, pack_elements};
use nfold_types::row::fixed_width;
use nfold_types::{ColumnType, ErrorCode, Level, SqlError, TypeKind, Value, Warnings};

use super::row_exprs::ends_statement;
use crate::expr::eval::{EvalCx, StmtState, json};
use crate::operators::column_values::ColumnValues;

/// Bytes of an undo page that the elements of one row may take, with two bytes for each.
const CAPACITY: usize = 16_062;

/// The column that an array is stored in, for messages.
pub(super) struct Target<'t> {
    /// A column of the element type.
    pub element: &'t ColumnDef,
    /// The name of the index.
    pub index: &'t str,
    /// The number of the row, from 1.
    pub row: u64,
}

impl Target<'_> {
    fn error(&self, code: ErrorCode) -> SqlError {
        SqlError::new(code, &[&self.index, &self.row])
    }
}

/// The packed elements of a document: those of an array, or a scalar.
///
/// # Errors
/// 1235, 3751, 3752, and 3903 to 3908.
pub(super) fn packed(
    cx: &EvalCx<'_>,
    values: &ColumnValues,
    to: &Target<'_>,
    doc: &[u8],
) -> Result<Vec<u8>, SqlError> {
    let doc = Doc::new(doc)?;
    let mut elements = Vec::new();
    match doc.kind() {
        DocKind::Object => {
            return Err(SqlError::not_supported(
                "CAST-ing JSON OBJECT type to array",
            ));
        }
        DocKind::Array => {
            for member in doc.elements()? {
                elements.push(element(cx, values, to, member?)?);
            }
        }
        DocKind::Scalar => elements.push(element(cx, values, to, doc)?),
    }
    let ty = &to.element.ty;
    let packed = pack_elements(ty, &elements);
    let distinct = (packed.as_ref()).map_or(0, |packed| Elements(packed).count());
    check_total(to, &elements, distinct)?;
    let packed =
        packed.map_err(|e| SqlError::with_message(ErrorCode::ER_UNKNOWN_ERROR, e.to_string()))?;
    match distinct.saturating_sub(most_keys(ty)) {
        0 => Ok(packed),
        n => Err(SqlError::new(
            ErrorCode::ER_EXCEEDED_MV_KEYS_NUM,
            &[&to.index, &n],
        )),
    }
}

/// The length of an element that counts for the limits.
fn counted_width(ty: &ColumnType) -> Option<usize> {
    match ty.kind {
        TypeKind::Time(fsp) => Some(3 + usize::from(fsp.div_ceil(2))),
        TypeKind::DateTime(fsp) => Some(5 + usize::from(fsp.div_ceil(2))),
        TypeKind::Decimal { precision, scale } => {
            let digits = |n: u8| usize::from(n) / 9 * 4 + (usize::from(n) % 9).div_ceil(2);
            Some(digits(precision - scale) + digits(scale))
        }
        _ => fixed_width(ty),
    }
}

/// The length of the text of an array in messages: that of an element.
pub(super) fn shown_bytes(ty: &ColumnType) -> usize {
    counted_width(ty).unwrap_or(ty.max_bytes() as usize)
}

fn most_keys(ty: &ColumnType) -> usize {
    CAPACITY / (counted_width(ty).unwrap_or(1) + 2)
}

/// Error 3906 if all elements together are too long. `distinct`: the number of different elements.
fn check_total(to: &Target<'_>, elements: &[Value], distinct: usize) -> Result<(), SqlError> {
    let ty = &to.element.ty;
    let width = counted_width(ty);
    let length = |v: &Value| match (width, v) {
        (None, Value::Bytes(bytes)) => bytes.len(),
        (width, _) => width.unwrap_or(1),
    };
    let most = most_keys(ty);
    let total: usize = elements.iter().map(length).sum();
    match total.saturating_sub(most * width.unwrap_or(1)) {
        0 => Ok(()),
        _ if distinct > most => Ok(()),
        n => Err(SqlError::new(
            ErrorCode::ER_EXCEEDED_MV_KEYS_SPACE,
            &[&to.index, &n],
        )),
    }
}

/// Converts one element.
fn element(
    cx: &EvalCx<'_>,
    values: &ColumnValues,
    to: &Target<'_>,
    doc: Doc<'_>,
) -> Result<Value, SqlError> {
    use ErrorCode as C;
    let Some(scalar) = doc.scalar()? else {
        return Err(SqlError::new(C::ER_WRONG_MVI_VALUE, &[&to.index]));
    };
    if matches!(scalar, Scalar::Null) {
        return Err(to.error(C::ER_INVALID_JSON_VALUE_FOR_FUNC_INDEX));
    }
    let ty = &to.element.ty;
    let unfit = |unfit| match unfit {
        scalar_value::Unfit::Invalid => to.error(C::ER_INVALID_JSON_VALUE_FOR_FUNC_INDEX),
        scalar_value::Unfit::OutOfRange => to.error(C::ER_JSON_VALUE_OUT_OF_RANGE_FOR_FUNC_INDEX),
    };
    let out_of_range = || to.error(C::ER_WARN_DATA_OUT_OF_RANGE_FUNCTIONAL_INDEX);
    match &ty.kind {
        TypeKind::Decimal { precision, scale } => {
            let value = match scalar_value::decimal(doc)? {
                Err(scalar_value::Unfit::OutOfRange) => return Err(out_of_range()),
                other => other.map_err(unfit)?,
            };
            let rounded = value
                .round(i32::from(*scale))
                .and_then(|d| d.rescale(*scale));
            let fits = |d: &nfold_types::Decimal| d.int_digits() <= u32::from(precision - scale);
            let rounded = rounded.filter(fits).ok_or_else(out_of_range)?;
            if rounded != value {
                let note = to.error(C::ER_WARN_DATA_TRUNCATED_FUNCTIONAL_INDEX);
                cx.st.warnings.borrow_mut().push_error(Level::Note, &note);
            }
            Ok(Value::Decimal(rounded))
        }
        TypeKind::VarChar(n) | TypeKind::VarBinary(n) => {
            let mut text = Vec::new();
            match scalar {
                Scalar::Opaque(_, bytes) => text.extend_from_slice(bytes),
                _ => nfold_json::print_unquoted(doc, &json::work(cx), &mut text)?,
            }
            match ty.collation.known().char_len(&text) > *n as usize {
                true => Err(SqlError::new(
                    C::ER_FUNCTIONAL_INDEX_DATA_IS_TOO_LONG,
                    &[&to.index],
                )),
                false => Ok(Value::Bytes(text)),
            }
        }
        _ if Class::of(ty) == Class::Int => {
            let value = scalar_value::integer(doc)?.map_err(unfit)?;
            let value = match ty.unsigned {
                true => u64::try_from(value).map(Value::UInt),
                false => i64::try_from(value).map(Value::Int),
            };
            value.map_err(|_| out_of_range())
        }
        _ => temporal(cx, values, to, doc),
    }
}

/// Converts a date or a time as a column does. A boolean is none.
fn temporal(
    cx: &EvalCx<'_>,
    values: &ColumnValues,
    to: &Target<'_>,
    doc: Doc<'_>,
) -> Result<Value, SqlError> {
    let truncated = || to.error(ErrorCode::ER_WARN_DATA_TRUNCATED_FUNCTIONAL_INDEX);
    let out_of_range = || to.error(ErrorCode::ER_WARN_DATA_OUT_OF_RANGE_FUNCTIONAL_INDEX);
    let is_time = matches!(to.element.ty.kind, TypeKind::Time(_));
    match doc.scalar()? {
        Some(Scalar::Bool(_)) => return Err(truncated()),
        Some(Scalar::Date(_)) if is_time => return Err(truncated()),
        Some(Scalar::String("")) if is_time => return Err(out_of_range()),
        _ => {}
    }
    let Some((value, ty)) = json::sql_value(doc)? else {
        return Err(truncated());
    };
    // The warning of a conversion that is not strict is an error here.
    let raised = RefCell::new(Warnings::default());
    let state = StmtState {
        warnings: &raised,
        ..*cx.st
    };
    let cx = EvalCx { st: &state, ..*cx };
    let stored = values.store(&cx, to.element, value, &ty, to.row);
    let warned = raised.borrow();
    let warned = warned.list().iter().find(|w| w.level != Level::Note);
    match (stored, warned.map(|w| w.code)) {
        (Ok(value), None) => Ok(value),
        (Err(e), _) if ends_statement(&e) => Err(e),
        (Err(SqlError { code, .. }), _) | (Ok(_), Some(code)) => Err(match code {
            ErrorCode::ER_WARN_DATA_OUT_OF_RANGE => out_of_range(),
            _ => truncated(),
        }),
    }
}
