//! Describes the row images of a table to a kernel.

use nfold_types::row::RowLayout;

/// The row images of a table: the table's slot in the block, and the position of each column of the
/// slot in an image.
#[derive(Clone, Copy)]
pub(crate) struct Images<'a> {
    pub table: usize,
    pub layout: &'a RowLayout,
    /// `None`: the images lack the column.
    pub ordinal: &'a dyn Fn(usize) -> Option<usize>,
}
