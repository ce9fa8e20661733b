//! The one way in for row changes: every row that a statement inserts, updates or deletes passes here.

use std::sync::Arc;

use nfold_engine::{DeleteOp, InsertOp, RowBatch, Table, UpdateOp, WriteOutcome};
use nfold_plan::foreign::ForeignKeys;
use nfold_plan::table_exprs::TableExprs;
use nfold_types::{ErrorCode, SqlError};

use super::foreign::{self, Probes, RowChange};
use super::row_exprs::RowExprs;
use crate::runtime::Runtime;

/// Rows between two looks at KILL and the time slice.
pub(super) const ROWS_PER_TICK: u64 = 256;

/// How the change of one row ended.
#[derive(Debug)]
pub(crate) enum RowOutcome {
    Done,
    /// Another row has the same key in this index. The table is unchanged.
    Duplicate {
        index: usize,
    },
    /// A CHECK constraint or a foreign key forbids the change, which was not made, or undone
    /// (IGNORE).
    Refused(SqlError),
    /// A cascade of an earlier change has deleted the row.
    Gone,
}

/// The changes of one statement to one table. The engine's operations are made when they are first
/// needed, and reused from row to row.
///
/// Each kind of change has two calls: the first takes the old image and returns the buffer for the
/// new one, the second carries the change out.
pub(crate) struct TableChanges {
    table: Arc<Table>,
    /// Boxed, as most tables have none.
    exprs: Option<Box<RowExprs>>,
    foreign: Option<Foreign>,
    insert: Option<InsertOp>,
    /// Boxed, as most statements need one kind alone.
    update: Option<Box<UpdateOp>>,
    delete: Option<Box<DeleteOp>>,
}

/// The foreign keys that the changes concern.
struct Foreign {
    keys: Arc<ForeignKeys>,
    /// The table's place among them.
    at: usize,
    /// A row that a foreign key forbids is left as it was (IGNORE).
    ignore: bool,
    probes: Probes,
    /// A row that a cascade may have changed, as it is now.
    read_again: RowBatch,
}

impl TableChanges {
    /// No change to `table` yet. `exprs`: its stored expressions; `foreign`: the plan's foreign
    /// keys; `ignore`: a change that they forbid is an outcome, not an error.
    pub fn new(
        rt: &Runtime<'_>,
        table: Arc<Table>,
        exprs: Option<&Arc<TableExprs>>,
        foreign: Option<&Arc<ForeignKeys>>,
        ignore: bool,
    ) -> TableChanges {
        let foreign = foreign.and_then(|keys| {
            let at = keys.find(table.def().id)?;
            Some(Foreign {
                keys: keys.clone(),
                at,
                ignore,
                probes: Probes::default(),
                read_again: RowBatch::new(),
            })
        });
        TableChanges {
            table,
            exprs: RowExprs::new(rt, exprs, ignore).map(Box::new),
            foreign,
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
    pub fn insert(&mut self, rt: &Runtime<'_>) -> Result<RowOutcome, SqlError> {
        let op = self.insert.as_mut().expect("D1: begin_insert came before");
        if let Some(exprs) = &mut self.exprs
            && let Some(refused) = complete(rt, exprs, &self.table, op.image_mut())?
        {
            return Ok(refused);
        }
        let Some(foreign) = &mut self.foreign else {
            return rt.drive(|session| session.insert(op)).map(RowOutcome::from);
        };
        let mark = rt.change_mark();
        let outcome = rt.drive(|session| session.insert(op))?;
        let change = RowChange {
            new: Some(op.image()),
            ..RowChange::default()
        };
        foreign.checked(rt, &self.table, (outcome, mark), change)
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
    pub fn update(&mut self, rt: &Runtime<'_>) -> Result<RowOutcome, SqlError> {
        let op = self.update.as_mut().expect("D1: begin_update came before");
        if let Some(exprs) = &mut self.exprs
            && let Some(refused) = complete(rt, exprs, &self.table, op.image_mut())?
        {
            return Ok(refused);
        }
        let Some(foreign) = &mut self.foreign else {
            return rt.drive(|session| session.update(op)).map(RowOutcome::from);
        };
        let mark = rt.change_mark();
        let outcome = rt.drive(|session| session.update(op))?;
        let change = RowChange {
            old: Some(op.old_image()),
            new: Some(op.image()),
            ..RowChange::default()
        };
        foreign.checked(rt, &self.table, (outcome, mark), change)
    }

    /// Deletes a row. There is no duplicate among its outcomes.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn delete(
        &mut self,
        rt: &Runtime<'_>,
        image: &[u8],
        row_id: Option<u64>,
    ) -> Result<RowOutcome, SqlError> {
        self.delete_row(rt, (image, row_id), false)
    }

    /// As [`Self::delete`], of a row in whose place the row of [`Self::begin_insert`] comes
    /// (REPLACE): children of a key that both have are left alone.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn delete_replaced(
        &mut self,
        rt: &Runtime<'_>,
        image: &[u8],
        row_id: Option<u64>,
    ) -> Result<RowOutcome, SqlError> {
        self.delete_row(rt, (image, row_id), true)
    }

    fn delete_row(
        &mut self,
        rt: &Runtime<'_>,
        (image, row_id): (&[u8], Option<u64>),
        replaced: bool,
    ) -> Result<RowOutcome, SqlError> {
        let TableChanges {
            table,
            insert,
            delete,
            foreign,
            ..
        } = self;
        let op = delete.get_or_insert_with(|| Box::new(DeleteOp::new(table.clone())));
        let Some(foreign) = foreign else {
            op.row(image, row_id);
            return rt.drive(|session| session.delete(op)).map(RowOutcome::from);
        };
        let mut now = std::mem::take(&mut foreign.read_again);
        let mut image = image;
        if foreign.keys.revisits {
            if !foreign::read_again(rt, table, image, row_id, &mut now)? {
                foreign.read_again = now;
                return Ok(RowOutcome::Gone);
            }
            image = now.row(0);
        }
        let mark = rt.change_mark();
        op.row(image, row_id);
        let outcome = rt.drive(|session| session.delete(op))?;
        let change = RowChange {
            old: Some(image),
            replacement: insert.as_ref().map(InsertOp::image).filter(|_| replaced),
            ..RowChange::default()
        };
        let checked = foreign.checked(rt, table, (outcome, mark), change);
        foreign.read_again = now;
        checked
    }
}

/// Completes and checks a row before it changes; an outcome if a constraint forbids it (IGNORE).
fn complete(
    rt: &Runtime<'_>,
    exprs: &mut RowExprs,
    table: &Table,
    image: &mut Vec<u8>,
) -> Result<Option<RowOutcome>, SqlError> {
    match exprs.complete(rt, (table.def(), table.layout()), image) {
        Err(e) if exprs.ignore && e.code == ErrorCode::ER_CHECK_CONSTRAINT_VIOLATED => {
            Ok(Some(RowOutcome::Refused(e)))
        }
        done => done.map(|()| None),
    }
}

impl Foreign {
    /// Checks a row that was changed behind `mark`.
    fn checked(
        &mut self,
        rt: &Runtime<'_>,
        table: &Arc<Table>,
        (outcome, mark): (WriteOutcome, u32),
        change: RowChange<'_>,
    ) -> Result<RowOutcome, SqlError> {
        if let WriteOutcome::Duplicate { index } = outcome {
            return Ok(RowOutcome::Duplicate { index });
        }
        match foreign::check(rt, &self.keys, self.at, table, change, &mut self.probes) {
            Err(e) if self.ignore && foreign::is_refusal(&e) => {
                rt.drive(|session| session.return_to(mark))?;
                Ok(RowOutcome::Refused(e))
            }
            checked => checked.map(|()| RowOutcome::Done),
        }
    }
}

impl From<WriteOutcome> for RowOutcome {
    fn from(outcome: WriteOutcome) -> RowOutcome {
        match outcome {
            WriteOutcome::Done => RowOutcome::Done,
            WriteOutcome::Duplicate { index } => RowOutcome::Duplicate { index },
        }
    }
}
