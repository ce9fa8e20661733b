//! The meaning of an expression's columns, for names in messages.

use nfold_plan::query::Block;

/// The row that the columns of an expression belong to.
#[derive(Debug, Clone, Copy, Default)]
pub enum Scope<'a> {
    /// Unknown.
    #[default]
    None,
    /// The joined row of the block's tables.
    Tables(&'a Block),
    /// The grouped row: keys, then aggregates.
    Groups(&'a Block),
}
