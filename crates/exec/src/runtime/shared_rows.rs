//! The rows of derived tables and common table expressions that several parts of a statement read.

use std::cell::RefCell;

use super::spill::{SpoolRows, StoredRows};

/// The rows that have been computed in this execution, by the numbers of their queries.
#[derive(Default)]
pub(crate) struct SharedRows(RefCell<Vec<(u32, StoredRows)>>);

impl SharedRows {
    /// A reader of the rows of query `number`. `None`: they have not been computed.
    pub fn reader(&self, number: u32) -> Option<SpoolRows> {
        let all = self.0.borrow();
        let (_, rows) = all.iter().find(|(n, _)| *n == number)?;
        Some(rows.reader())
    }

    /// Adds the rows of query `number`.
    pub fn add(&self, number: u32, rows: StoredRows) {
        self.0.borrow_mut().push((number, rows));
    }
}
