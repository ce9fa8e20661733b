//! What the columns of an expression belong to, for the names in messages.

use nfold_plan::query::Block;

/// What the columns of an expression are.
#[derive(Debug, Clone, Copy, Default)]
pub enum Scope<'a> {
    /// Unknown.
    #[default]
    None,
    /// Those of the block's tables.
    Tables(&'a Block),
    /// Those of its groups: keys, then aggregates.
    Groups(&'a Block),
}
