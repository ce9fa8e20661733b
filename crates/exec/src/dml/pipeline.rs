//! The one way in for row changes: every row that a statement inserts, updates or deletes passes here.

use std::sync::Arc;

use nfold_engine::{DeleteOp, InsertOp, Table, UpdateOp, WriteOutcome};
use nfold_types::SqlError;

use crate::runtime::Runtime;

/// Rows between two looks at KILL and the time slice.
pub(super) const ROWS_PER_TICK: u64 = 256;

/// The changes of one statement to one table. The engine's operations are made when they are first
/// needed, and reused from row to row.
///
/// Each kind of change has two calls: the first takes the old image and returns the buffer for the
/// new one, the second carries the change out.
pub(crate) struct TableChanges {
    table: Arc<Table>,
    insert: Option<InsertOp>,
    /// Boxed, as most statements need one kind alone.
    update: Option<Box<UpdateOp>>,
    delete: Option<Box<DeleteOp>>,
}

impl TableChanges {
    /// No change to `table` yet.
    pub fn new(table: Arc<Table>) -> TableChanges {
        TableChanges {
            table,
            insert: None,
            update: None,
            delete: None,
        }
    }

    /// The table.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// The empty image of a row to insert, for the caller to fill. `changes_duplicates`: the
    /// statement changes or replaces rows of the same key.
    pub fn begin_insert(&mut self, changes_duplicates: bool) -> &mut Vec<u8> {
        let TableChanges { table, insert, .. } = self;
        let op = insert.get_or_insert_with(|| InsertOp::new(table.clone()));
        op.changes_duplicates(changes_duplicates);
        op.row()
    }

    /// The image of the row that was inserted last, or could not be.
    pub fn inserted(&self) -> &[u8] {
        self.insert.as_ref().map_or(&[], InsertOp::image)
    }

    /// Inserts the row. A duplicate is an outcome, not an error, and leaves the table unchanged.
    ///
    /// # Errors
    /// Those of the engine: 1213, 1205, 1114 and so on.
    pub fn insert(&mut self, rt: &Runtime<'_>) -> Result<WriteOutcome, SqlError> {
        let op = self.insert.as_mut().expect("D1: begin_insert came before");
        rt.drive(|session| session.insert(op))
    }

    /// The empty image that replaces `old`, for the caller to fill; `row_id`: the hidden row id, if
    /// the table has one.
    pub fn begin_update(&mut self, old: &[u8], row_id: Option<u64>) -> &mut Vec<u8> {
        let TableChanges { table, update, .. } = self;
        update
            .get_or_insert_with(|| Box::new(UpdateOp::new(table.clone())))
            .row(old, row_id)
    }

    /// As [`Self::begin_update`], beside the image of the row that could not be inserted.
    pub fn begin_update_instead(
        &mut self,
        old: &[u8],
        row_id: Option<u64>,
    ) -> (&[u8], &mut Vec<u8>) {
        let TableChanges {
            table,
            insert,
            update,
            ..
        } = self;
        let image = update
            .get_or_insert_with(|| Box::new(UpdateOp::new(table.clone())))
            .row(old, row_id);
        (insert.as_ref().map_or(&[], InsertOp::image), image)
    }

    /// The new image of the row that was updated last, or could not be.
    pub fn updated(&self) -> &[u8] {
        self.update.as_ref().map_or(&[], |op| op.image())
    }

    /// Updates the row. A duplicate is an outcome, not an error, and leaves the table unchanged.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn update(&mut self, rt: &Runtime<'_>) -> Result<WriteOutcome, SqlError> {
        let op = self.update.as_mut().expect("D1: begin_update came before");
        rt.drive(|session| session.update(op))
    }

    /// Deletes a row.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn delete(
        &mut self,
        rt: &Runtime<'_>,
        image: &[u8],
        row_id: Option<u64>,
    ) -> Result<(), SqlError> {
        let TableChanges { table, delete, .. } = self;
        let op = delete.get_or_insert_with(|| Box::new(DeleteOp::new(table.clone())));
        op.row(image, row_id);
        rt.drive(|session| session.delete(op)).map(|_| ())
    }
}
