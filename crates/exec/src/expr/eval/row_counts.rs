//! The rows that a statement has sent or stored so far, for warnings that name a row.

use std::cell::Cell;

use nfold_plan::query::Block;

use super::scope::Scope;

/// The numbers of rows of one execution of a statement.
#[derive(Debug, Default)]
pub struct RowCounts {
    /// Rows that were sent to the client. For a statement that stores rows: the number of the
    /// current row, less one.
    pub sent: Cell<u64>,
    /// Rows that OFFSET has skipped.
    pub skipped: Cell<u64>,
    /// The rows of the current batch of the first table that have passed its filter so far. 0 when
    /// no batch is filtered.
    pub passed: Cell<u64>,
    /// UPDATE and DELETE: the rows of the batches of the first table before the current one.
    pub before: Cell<u64>,
}

impl RowCounts {
    /// Counts rows that were sent.
    #[inline]
    pub(crate) fn add_sent(&self, rows: u64) {
        self.sent.set(self.sent.get() + rows);
    }

    /// Counts rows that OFFSET has skipped.
    #[inline]
    pub(crate) fn add_skipped(&self, rows: u64) {
        self.skipped.set(self.skipped.get() + rows);
    }

    /// Begins a batch of the first table of a statement that changes rows. The batch before it had
    /// `rows` rows.
    pub(crate) fn add_batch(&self, rows: usize) {
        self.before.set(self.before.get() + rows as u64);
    }

    /// The number of the row that is being computed, from 1, as MySQL counts it: it sends each row
    /// before it tests the next one, unless it sorts or groups them.
    pub(crate) fn current(&self, scope: Scope<'_>) -> u64 {
        let ahead = match scope {
            Scope::Tables(block) if is_streamed(block) => self.passed.get(),
            _ => 0,
        };
        self.sent.get() + ahead + 1
    }
}

/// Whether each row of the block's only table is sent before the next one is tested.
fn is_streamed(block: &Block) -> bool {
    let stored = block.distinct || !block.order.is_empty() || !block.windows.is_empty();
    block.joins.len() == 1 && block.group.is_none() && block.changed == 0 && !stored
}
