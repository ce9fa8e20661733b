//! The pipeline for row changes: every row that a statement inserts, updates or deletes passes
//! through it.

use std::sync::Arc;

use nfold_engine::{
    DeferredDuplicate, DeferredStep, DeleteOp, InsertOp, LEAST_BESIDE, RowBatch, Table, UpdateOp,
    ValuesBeside, WriteOutcome,
};
use nfold_observe::{StatusCounter, TableCall};
use nfold_plan::changed_view::ChangedView;
use nfold_plan::foreign::ForeignKeys;
use nfold_plan::query::{AccessKind, Block};
use nfold_plan::table_exprs::TableExprs;
use nfold_types::{ErrorCode, SqlError};

use super::change_log::{ChangeLog, change_kind};
use super::foreign::{self, Probes, RowChange};
use super::row_exprs::RowExprs;
use crate::expr::eval::{EvalCx, NoSubqueries, RowRef};
use crate::runtime::Runtime;

/// The number of rows between two checks for KILL and the end of the time slice.
pub(super) const ROWS_PER_TICK: u64 = 256;

/// The outcome of one row change.
#[derive(Debug)]
pub(crate) enum RowOutcome {
    Done,
    /// A row with the same key exists in this index. The table is unchanged.
    Duplicate {
        index: usize,
    },
    /// A CHECK constraint or a foreign key forbids the change (IGNORE). The row is as it was
    /// before.
    Refused(SqlError),
    /// The row does not exist any more: a cascade of an earlier change has deleted it.
    Gone,
}

/// The changes of one statement to one table. The engine's operations are created at their first
/// use, and reused for each row.
///
/// Each kind of change takes two calls: `begin_*` takes the old image and returns the buffer for
/// the new one; the second call carries out the change.
pub(crate) struct TableChanges {
    table: Arc<Table>,
    /// Boxed, because most tables have none.
    exprs: Option<Box<RowExprs>>,
    foreign: Option<Foreign>,
    /// The view through which rows change, if it checks them (WITH CHECK OPTION).
    view: Option<Arc<ChangedView>>,
    /// Records the changes for the binary log.
    log: Option<Box<ChangeLog>>,
    /// The place of the table's counters to which updates and deletes are added: that of the index
    /// by which the rows were found.
    place: usize,
    insert: Option<InsertOp>,
    /// Whether rows may be changed later, several at a time ([`Self::defer_updates`]).
    defers: bool,
    /// Boxed, because most statements need only one of them.
    update: Option<Box<UpdateOp>>,
    delete: Option<Box<DeleteOp>>,
}

/// The foreign keys that the changes concern.
struct Foreign {
    keys: Arc<ForeignKeys>,
    /// The table's index among the tables of `keys`.
    at: usize,
    /// IGNORE: a row whose change a foreign key forbids is skipped.
    ignore: bool,
    probes: Probes,
    /// The current version of a row that a cascade may have changed.
    read_again: RowBatch,
}

impl TableChanges {
    /// Prepares changes to `table`. `exprs` are its stored expressions, `foreign` the foreign keys
    /// of the plan. With `ignore`, a change that a constraint forbids is an outcome, not an error.
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
            log: ChangeLog::new(rt, &table),
            place: table.io().no_index(),
            table,
            exprs: RowExprs::new(rt, exprs, ignore).map(Box::new),
            foreign,
            view: None,
            insert: None,
            defers: false,
            update: None,
            delete: None,
        }
    }

    /// Sets the access path by which the rows to change are found, for the counters of its index.
    /// `collected`: see [`Self::found_again`].
    pub fn found_by(&mut self, block: &Block, collected: bool) {
        if collected {
            return self.found_again();
        }
        let access = &block.joins[0].access;
        let scans = matches!(access.kind, AccessKind::Full) && access.index == 0;
        self.place = match scans && !block.ordered {
            true => self.table.io().no_index(),
            false => self.table.io_place(access.index),
        };
    }

    /// The statement collects the rows before it changes them. MySQL finds them again by their
    /// primary keys then, so the changes count there.
    pub fn found_again(&mut self) {
        self.place = self.table.io_place(0);
    }

    /// The columns to which the statement gives values, for the binary log.
    pub fn set_written(&mut self, columns: impl IntoIterator<Item = usize>) {
        if let Some(log) = &mut self.log {
            log.set_written(columns);
        }
    }

    /// Sets the view through which the statement changes rows. Later changes are tested by its
    /// CHECK OPTION, if it has one.
    pub fn set_view(&mut self, view: Option<&Arc<ChangedView>>) {
        self.view = view.filter(|view| !view.check.is_empty()).cloned();
    }

    /// Lets [`Self::update`] change rows later, several at a time, if no foreign key concerns them.
    /// The caller calls [`Self::finish_updates`] at the end, and reads no changed row before.
    pub fn defer_updates(&mut self) {
        self.defers = self.foreign.is_none();
    }

    /// Changes the rows that are still to be changed.
    ///
    /// # Errors
    /// The errors of the engine.
    pub fn finish_updates(&mut self, rt: &Runtime<'_>) -> Result<(), SqlError> {
        match &mut self.update {
            Some(op) if self.defers => rt.drive(|session| session.update_deferred(op)),
            _ => Ok(()),
        }
    }

    /// Returns the empty image of a row to insert, which the caller fills. `changes_duplicates`:
    /// the statement updates or replaces existing rows with the same key.
    pub fn begin_insert(&mut self, changes_duplicates: bool) -> &mut Vec<u8> {
        let TableChanges { table, insert, .. } = self;
        let op = insert.get_or_insert_with(|| InsertOp::new(table.clone()));
        op.changes_duplicates(changes_duplicates);
        op.row()
    }

    /// The image of the row that [`Self::insert`] was called for last.
    pub fn inserted(&self) -> &[u8] {
        self.insert.as_ref().map_or(&[], InsertOp::image)
    }

    /// Inserts the row. A duplicate is an outcome, not an error, and leaves the table unchanged.
    ///
    /// # Errors
    /// The errors of the engine, such as 1213, 1205 and 1114.
    pub fn insert(&mut self, rt: &Runtime<'_>) -> Result<RowOutcome, SqlError> {
        match self.complete_insert(rt)? {
            Some(refused) => Ok(refused),
            None => self.insert_completed(rt),
        }
    }

    /// The first part of [`Self::insert`]: completes and checks the row. Returns an outcome if a
    /// constraint forbids it (IGNORE).
    ///
    /// # Errors
    /// The errors of the table's expressions and constraints.
    #[inline]
    pub fn complete_insert(&mut self, rt: &Runtime<'_>) -> Result<Option<RowOutcome>, SqlError> {
        let op = self.insert.as_mut().expect("D1: begin_insert came before");
        if let Some(exprs) = &mut self.exprs
            && let Some(refused) = complete(rt, exprs, &self.table, op.image_mut())?
        {
            return Ok(Some(refused));
        }
        if let Some(view) = &self.view
            && let Some(refused) = check_view(rt, view, &self.table, op.image())?
        {
            return Ok(Some(RowOutcome::Refused(refused)));
        }
        Ok(None)
    }

    /// The second part of [`Self::insert`].
    ///
    /// # Errors
    /// The errors of the engine.
    #[inline]
    pub fn insert_completed(&mut self, rt: &Runtime<'_>) -> Result<RowOutcome, SqlError> {
        self.count_inserts(rt, 1);
        let op = self.insert.as_mut().expect("D1: begin_insert came before");
        let mark = self.foreign.as_ref().map_or(0, |_| rt.change_mark());
        let outcome = rt.drive(|session| session.insert(op))?;
        if let (Some(log), WriteOutcome::Done) = (&mut self.log, &outcome) {
            let images = [None, Some(op.image())];
            log.add(rt, &self.table, change_kind::INSERT, images)?;
        }
        let Some(foreign) = &mut self.foreign else {
            return Ok(outcome.into());
        };
        let change = RowChange {
            new: Some(op.image()),
            ..RowChange::default()
        };
        foreign.checked(rt, &self.table, (outcome, mark), change)
    }

    /// As [`Self::insert`], for a row with values `beside` its image ([`Self::takes_beside`]).
    ///
    /// # Errors
    /// The errors of the engine.
    pub fn insert_with(
        &mut self,
        rt: &Runtime<'_>,
        beside: ValuesBeside<'_>,
    ) -> Result<RowOutcome, SqlError> {
        self.count_inserts(rt, 1);
        let op = self.insert.as_mut().expect("D1: begin_insert came before");
        Ok(rt.drive(|session| session.insert_with(op, beside))?.into())
    }

    /// Whether a value of `len` bytes of this column may lie beside the image of a row to be
    /// inserted: only the engine reads it.
    pub fn takes_beside(&self, column: usize, len: usize) -> bool {
        let reads_image = self.exprs.is_some()
            || self.foreign.is_some()
            || self.view.is_some()
            || self.log.is_some();
        let mut indexes = self.table.def().indexes.iter();
        len >= LEAST_BESIDE
            && !reads_image
            && !indexes.any(|i| i.parts.iter().any(|part| part.column == column))
    }

    fn count_inserts(&self, rt: &Runtime<'_>, rows: u64) {
        rt.counters.add(StatusCounter::HandlerWrite, rows);
        let io = self.table.io();
        io.add(io.no_index(), TableCall::Insert, rows);
    }

    /// Whether rows may be inserted later, several at a time: no foreign key concerns them.
    pub fn can_defer_inserts(&self) -> bool {
        self.foreign.is_none()
    }

    /// As [`Self::insert_completed`], but the row is inserted later, by [`Self::insert_deferred`].
    /// False: the row must be inserted at once, after the deferred ones.
    ///
    /// # Errors
    /// The errors of the engine.
    pub fn defer_insert(&mut self, rt: &Runtime<'_>) -> Result<bool, SqlError> {
        let op = self.insert.as_mut().expect("D1: begin_insert came before");
        rt.drive(|session| session.defer_insert(op))
    }

    /// Whether the deferred rows must be inserted before another one is deferred.
    pub fn is_full(&self) -> bool {
        self.insert.as_ref().is_some_and(InsertOp::is_full)
    }

    /// Inserts the deferred rows from row `from` on. Returns the first one that is a duplicate:
    /// then the caller calls again for those behind it, or [`Self::clear_deferred`].
    ///
    /// # Errors
    /// The errors of the engine.
    pub fn insert_deferred(
        &mut self,
        rt: &Runtime<'_>,
        from: usize,
    ) -> Result<Option<DeferredDuplicate>, SqlError> {
        let op = self.insert.as_mut().expect("D1: begin_insert came before");
        let duplicate = loop {
            match rt.drive(|session| session.insert_deferred(op))? {
                DeferredStep::Done => break None,
                DeferredStep::Duplicate(duplicate) => break Some(duplicate),
                DeferredStep::More => rt.tick()?,
            }
        };
        let end = duplicate.map_or(op.deferred_rows(), |duplicate| duplicate.row);
        if let Some(log) = &mut self.log {
            for n in from..end {
                let images = [None, Some(op.deferred_image(n))];
                log.add(rt, &self.table, change_kind::INSERT, images)?;
            }
        }
        let tried = end - from + usize::from(duplicate.is_some());
        self.count_inserts(rt, tried as u64);
        Ok(duplicate)
    }

    /// The image of a deferred row.
    pub fn deferred_image(&self, n: usize) -> &[u8] {
        self.insert.as_ref().map_or(&[], |op| op.deferred_image(n))
    }

    /// Forgets the deferred rows: they are inserted, or the statement fails.
    pub fn clear_deferred(&mut self) {
        if let Some(op) = &mut self.insert {
            op.clear_deferred();
        }
    }

    /// Returns the empty image that replaces `old`, which the caller fills. `row_id` is the hidden
    /// row id, if the table has one.
    pub fn begin_update(&mut self, old: &[u8], row_id: Option<u64>) -> &mut Vec<u8> {
        let TableChanges { table, update, .. } = self;
        update
            .get_or_insert_with(|| Box::new(UpdateOp::new(table.clone())))
            .row(old, row_id)
    }

    /// As [`Self::begin_update`]; also returns the image of the row that could not be inserted.
    pub fn begin_update_instead(
        &mut self,
        old: &[u8],
        row_id: Option<u64>,
    ) -> (&[u8], &mut Vec<u8>) {
        let TableChanges {
            table,
            insert,
            update,
            log,
            ..
        } = self;
        if let Some(log) = log {
            log.set_all_written();
        }
        let image = update
            .get_or_insert_with(|| Box::new(UpdateOp::new(table.clone())))
            .row(old, row_id);
        (insert.as_ref().map_or(&[], InsertOp::image), image)
    }

    /// The new image of the row that [`Self::update`] was called for last.
    pub fn updated(&self) -> &[u8] {
        self.update.as_ref().map_or(&[], |op| op.image())
    }

    /// Updates the row. A duplicate is an outcome, not an error, and leaves the table unchanged.
    ///
    /// # Errors
    /// The errors of the engine.
    pub fn update(&mut self, rt: &Runtime<'_>) -> Result<RowOutcome, SqlError> {
        rt.counters.add(StatusCounter::HandlerUpdate, 1);
        self.table.io().add(self.place, TableCall::Update, 1);
        let op = self.update.as_mut().expect("D1: begin_update came before");
        if let Some(exprs) = &mut self.exprs
            && let Some(refused) = complete(rt, exprs, &self.table, op.image_mut())?
        {
            return Ok(refused);
        }
        if let Some(view) = &self.view
            && let Some(refused) = check_view(rt, view, &self.table, op.image())?
        {
            return Ok(RowOutcome::Refused(refused));
        }
        let mark = self.foreign.as_ref().map_or(0, |_| rt.change_mark());
        let outcome = match self.defers {
            true => update_later(rt, op)?,
            false => rt.drive(|session| session.update(op))?,
        };
        let early = is_logged_early(self.foreign.as_ref());
        if let (Some(log), WriteOutcome::Done, true) = (&mut self.log, &outcome, early) {
            let images = [Some(op.old_image()), Some(op.image())];
            log.add(rt, &self.table, change_kind::UPDATE, images)?;
        }
        let Some(foreign) = &mut self.foreign else {
            return Ok(outcome.into());
        };
        let change = RowChange {
            old: Some(op.old_image()),
            new: Some(op.image()),
            ..RowChange::default()
        };
        let checked = foreign.checked(rt, &self.table, (outcome, mark), change)?;
        if let (Some(log), RowOutcome::Done, false) = (&mut self.log, &checked, early) {
            let images = [Some(op.old_image()), Some(op.image())];
            log.add(rt, &self.table, change_kind::UPDATE, images)?;
        }
        Ok(checked)
    }

    /// Deletes a row. The outcome is never a duplicate.
    ///
    /// # Errors
    /// The errors of the engine.
    pub fn delete(
        &mut self,
        rt: &Runtime<'_>,
        image: &[u8],
        row_id: Option<u64>,
    ) -> Result<RowOutcome, SqlError> {
        self.delete_row(rt, (image, row_id), false)
    }

    /// As [`Self::delete`], for a row that the row of [`Self::begin_insert`] replaces (REPLACE).
    /// Children are not changed if both rows have the key that they refer to.
    ///
    /// # Errors
    /// The errors of the engine.
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
            log,
            place,
            ..
        } = self;
        if let (Some(log), true) = (&mut *log, replaced) {
            log.set_all_written();
        }
        rt.counters.add(StatusCounter::HandlerDelete, 1);
        table.io().add(*place, TableCall::Delete, 1);
        let op = delete.get_or_insert_with(|| Box::new(DeleteOp::new(table.clone())));
        let Some(foreign) = foreign else {
            op.row(image, row_id);
            let outcome = rt.drive(|session| session.delete(op))?.into();
            record_delete(rt, log, table, &outcome, image)?;
            return Ok(outcome);
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
        let early = foreign.keys.revisits;
        if early {
            record_delete(rt, log, table, &RowOutcome::Done, image)?;
        }
        let change = RowChange {
            old: Some(image),
            replacement: insert.as_ref().map(InsertOp::image).filter(|_| replaced),
            ..RowChange::default()
        };
        let checked = foreign.checked(rt, table, (outcome, mark), change);
        if let (Ok(outcome), false) = (&checked, early) {
            record_delete(rt, log, table, outcome, image)?;
        }
        foreign.read_again = now;
        checked
    }
}

/// Defers the change of the row, or makes it after those that were deferred.
fn update_later(rt: &Runtime<'_>, op: &mut UpdateOp) -> Result<WriteOutcome, SqlError> {
    if op.is_full() {
        rt.drive(|session| session.update_deferred(op))?;
    }
    if rt.drive(|session| session.defer_update(op))? {
        return Ok(WriteOutcome::Done);
    }
    rt.drive(|session| session.update_deferred(op))?;
    rt.drive(|session| session.update(op))
}

/// Whether the binary log has a row's change before the changes that its foreign keys make to other
/// rows. As in MySQL it comes after them: then a consumer that checks foreign keys can apply the
/// events. It comes first if a key leads back to this table, because the same row may change again.
fn is_logged_early(foreign: Option<&Foreign>) -> bool {
    foreign.is_none_or(|foreign| foreign.keys.revisits)
}

/// Records a deleted row for the binary log.
fn record_delete(
    rt: &Runtime<'_>,
    log: &mut Option<Box<ChangeLog>>,
    table: &Table,
    outcome: &RowOutcome,
    image: &[u8],
) -> Result<(), SqlError> {
    match (log, outcome) {
        (Some(log), RowOutcome::Done) => {
            log.add(rt, table, change_kind::DELETE, [Some(image), None])
        }
        _ => Ok(()),
    }
}

/// Completes and checks a row before it changes. Returns an outcome if a constraint forbids it
/// (IGNORE).
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

/// Error 1369 where a view with CHECK OPTION does not have the row. IGNORE makes it a warning.
#[cold]
fn check_view(
    rt: &Runtime<'_>,
    view: &ChangedView,
    table: &Table,
    image: &[u8],
) -> Result<Option<SqlError>, SqlError> {
    let state = rt.state(&NoSubqueries);
    let rows = [RowRef {
        layout: table.layout(),
        image: Some(image),
        places: None,
    }];
    let cx = EvalCx {
        rows: &rows,
        outer: &[],
        st: &state,
    };
    for condition in &view.check {
        if cx.bool(condition)? != Some(true) {
            let code = ErrorCode::ER_VIEW_CHECK_FAILED;
            return Ok(Some(SqlError::new(code, &[&view.schema, &view.name])));
        }
    }
    Ok(None)
}

impl Foreign {
    /// Checks the foreign keys of a row that was changed after savepoint `mark`.
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
            // The row goes before its automatic value is given to another row.
            Err(e) if foreign::is_refusal(&e) => {
                rt.drive(|session| session.return_to(mark))?;
                match self.ignore {
                    true => Ok(RowOutcome::Refused(e)),
                    false => Err(e),
                }
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
