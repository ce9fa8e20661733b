//! Packs the elements of a document for the hidden column of a multi-valued key part.
//!
//! Source: MySQL manual, "CREATE INDEX Statement", "Multi-Valued Indexes"; the limits are those of
//! InnoDB's undo pages (`ha_innobase::mv_key_capacity`).

use nfold_json::{Doc, DocKind};
use nfold_types::convert::store::StoreMode;
use nfold_types::key::{Elements, pack_elements};
use nfold_types::row::fixed_width;
use nfold_types::{ColumnType, ErrorCode, SqlError, TypeKind, Value};

use crate::expr::eval::EvalCx;
use crate::expr::eval::array_elements::{Target, element};

/// Bytes of an undo page that the elements of one row may take, with two bytes for each.
const CAPACITY: usize = 16_062;

/// The packed elements of a document: those of an array, or a scalar.
///
/// # Errors
/// 1235, 3751, 3752, and 3903 to 3908.
pub(super) fn packed(
    cx: &EvalCx<'_>,
    mode: &StoreMode,
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
                elements.push(element(cx, mode, to, member?)?);
            }
        }
        DocKind::Scalar => elements.push(element(cx, mode, to, doc)?),
    }
    let ty = to.element;
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
    let ty = to.element;
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
