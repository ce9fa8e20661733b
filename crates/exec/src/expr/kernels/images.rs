//! Describes the row images of tables to kernels.

use nfold_types::row::RowLayout;

use super::threshold::KeyField;
use crate::env::batch::Batch;

/// The row images of a table: the table's slot in the block, and the position of each column of the
/// slot in an image.
#[derive(Clone, Copy)]
pub(crate) struct Images<'a> {
    pub table: usize,
    pub layout: &'a RowLayout,
    /// `None`: the images lack the column.
    pub ordinal: &'a dyn Fn(usize) -> Option<usize>,
}

/// A column of joined rows whose values are exact numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct NumberColumn {
    /// The join step whose images hold it.
    position: usize,
    field: KeyField,
}

impl NumberColumn {
    /// Column `ordinal` of the images of the join step `position`; `None`: it has no fixed place,
    /// or is no number of at most 64 bits.
    pub fn new(position: usize, layout: &RowLayout, ordinal: usize) -> Option<NumberColumn> {
        let field = KeyField::of(layout, ordinal)?;
        let column = NumberColumn { position, field };
        column.scale().is_some().then_some(column)
    }

    /// Digits behind the point.
    pub(super) fn scale(&self) -> Option<u8> {
        match self.field {
            KeyField::Unscaled(field) => Some(field.scale()),
            KeyField::Ordered(field) => field.is_integer().then_some(0),
        }
    }

    /// The unscaled number of a row; `None`: NULL.
    #[inline(always)]
    pub(super) fn number(&self, batch: &Batch, row: usize) -> Option<i128> {
        let image = batch.image(row, self.position)?;
        match self.field {
            KeyField::Unscaled(field) => field.key(image).map(i128::from),
            KeyField::Ordered(field) => field.key(image).map(|key| field.number(key)),
        }
    }
}
