//! PAD_CHAR_TO_FULL_LENGTH: pads the CHAR columns that a block reads from its tables.

use crate::logical::context::PlanCx;
use crate::logical::expr::Expr;
use crate::logical::pad::pad;
use crate::logical::query::{Block, Source};

/// Wraps the CHAR columns in the conditions, keys, select items and sort keys of `block`. Clauses
/// after a grouping read its keys, which are padded already.
pub(super) fn pad_char_columns(cx: &PlanCx<'_>, block: &mut Block) {
    if !block.pads_char {
        return;
    }
    let tables = std::mem::take(&mut block.tables);
    let stored = |t: usize| {
        let source = tables.get(t).map(|table| &table.source);
        matches!(source, Some(Source::Table(_)))
    };
    let mut each = |e: &mut Expr| pad(cx.funcs, &stored, e);
    block.each_condition_mut(&mut each);
    block.each_joined_expr_mut(&mut each);
    block.tables = tables;
}
