//! Tests whether the hidden column of a multi-valued key part has given elements.

use nfold_plan::expr::Expr;
use nfold_types::key::{Elements, element_layout};
use nfold_types::{ErrorCode, SqlError};

use super::EvalCx;

/// Whether the array of a row has any or `all` of these constants; `None` if it is NULL.
pub(super) fn has<'a>(
    cx: &EvalCx<'a>,
    column: &'a Expr,
    elements: &'a [Expr],
    all: bool,
) -> Result<Option<bool>, SqlError> {
    let Some(packed) = cx.bytes(column)? else {
        return Ok(None);
    };
    let mut key = Vec::new();
    for e in elements {
        key.clear();
        element_layout(&e.ty.col)
            .encode_part(0, cx.val(e)?.as_value_ref(), &mut key)
            .map_err(|e| SqlError::with_message(ErrorCode::ER_UNKNOWN_ERROR, e.to_string()))?;
        let found = Elements(&packed).any(|own| own == key);
        if found != all {
            return Ok(Some(found));
        }
    }
    Ok(Some(all))
}
