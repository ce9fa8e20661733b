//! The rows of derived tables and common table expressions that several parts of a statement read.

use std::cell::{OnceCell, RefCell};

use super::spill::{SpoolRows, StoredRows};

/// The rows that have been computed in this execution, by the numbers of their queries. They are
/// allocated at the first use, as most statements share none.
#[derive(Default)]
pub(crate) struct SharedRows(OnceCell<Box<ComputedRows>>);

#[derive(Default)]
struct ComputedRows(RefCell<Vec<(u32, StoredRows)>>);

impl SharedRows {
    /// A reader of the rows of query `number`. `None`: they have not been computed.
    pub fn reader(&self, number: u32) -> Option<SpoolRows> {
        let all = self.0.get()?.0.borrow();
        let (_, rows) = all.iter().find(|(n, _)| *n == number)?;
        Some(rows.reader())
    }

    /// Adds the rows of query `number`.
    pub fn add(&self, number: u32, rows: StoredRows) {
        let all = &self.0.get_or_init(Box::default).0;
        all.borrow_mut().push((number, rows));
    }
}
