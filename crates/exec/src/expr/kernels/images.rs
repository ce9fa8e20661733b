//! What a kernel knows of the rows of a table.

use nfold_types::row::RowLayout;

/// The row images of a table: the slot that its rows have in the block, and where an image holds a
/// column of the slot.
#[derive(Clone, Copy)]
pub(crate) struct Images<'a> {
    pub table: usize,
    pub layout: &'a RowLayout,
    /// `None`: the images lack the column.
    pub ordinal: &'a dyn Fn(usize) -> Option<usize>,
}
