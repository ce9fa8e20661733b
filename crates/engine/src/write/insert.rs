//! INSERT of one row.

use std::sync::Arc;

use nfold_txn::locks::LockMode;

use crate::error::Stop;
use crate::overflow::{self, ValuesBeside};
use crate::session::EngineSession;
use crate::table::Table;
use crate::write::clustered::{self, Inserted};
use crate::write::deferred::is_inline;
use crate::write::deferred_inserts::{DeferredInserts, DeferredStep};
use crate::write::{Progress, Work, WriteOutcome, buffers, elements, secondary};

/// One row to be inserted. Reuse it for the next row with [`InsertOp::row`].
pub struct InsertOp {
    table: Arc<Table>,
    work: Work,
    row: Vec<u8>,
    /// Boxed, because most operations insert one row.
    deferred: Option<Box<DeferredInserts>>,
}

impl InsertOp {
    /// An operation on `table`, without a row yet.
    pub fn new(table: Arc<Table>) -> InsertOp {
        InsertOp {
            table,
            work: Work::new(),
            row: buffers::take(),
            deferred: None,
        }
    }

    /// Whether a row of the same key is to be changed then: it is locked exclusively at once, as
    /// two sessions that share its lock could not both go on.
    pub fn changes_duplicates(&mut self, yes: bool) {
        self.work.duplicates = if yes { LockMode::X } else { LockMode::S };
    }

    /// The row image to insert, emptied, for the caller to fill. The operation starts over.
    pub fn row(&mut self) -> &mut Vec<u8> {
        self.work.reset();
        self.row.clear();
        &mut self.row
    }

    /// The row image. The caller may complete it before the operation runs.
    pub fn image_mut(&mut self) -> &mut Vec<u8> {
        &mut self.row
    }

    /// The row image.
    pub fn image(&self) -> &[u8] {
        &self.row
    }

    /// The table.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// Whether the deferred rows must be inserted before another one is deferred.
    pub fn is_full(&self) -> bool {
        (self.deferred.as_ref()).is_some_and(|rows| rows.is_full(&self.table))
    }

    /// The number of deferred rows, which are numbered from 0.
    pub fn deferred_rows(&self) -> usize {
        self.deferred.as_ref().map_or(0, |rows| rows.len())
    }

    /// The image of a deferred row.
    pub fn deferred_image(&self, n: usize) -> &[u8] {
        self.deferred.as_ref().map_or(&[], |rows| rows.image(n))
    }

    /// Forgets the deferred rows: they are inserted, or the statement is undone.
    pub fn clear_deferred(&mut self) {
        if let Some(rows) = &mut self.deferred {
            rows.clear();
        }
        self.work.reset();
    }

    pub(crate) fn defer(&mut self, session: &mut EngineSession) -> Result<bool, Stop> {
        let InsertOp {
            table,
            work,
            row,
            deferred,
        } = self;
        work.primary.clear();
        primary_key(session, table, work, row)?;
        if table.check_keys(row, &work.primary, &mut work.key).is_err()
            || !is_inline(work.primary.len(), row)
        {
            return Ok(false);
        }
        let deferred = deferred.get_or_insert_with(|| Box::new(DeferredInserts::new()));
        deferred.push(&work.primary, row);
        Ok(true)
    }

    pub(crate) fn run_deferred(
        &mut self,
        session: &mut EngineSession,
    ) -> Result<DeferredStep, Stop> {
        match &mut self.deferred {
            Some(rows) => rows.run(session, &self.table, &mut self.work),
            None => Ok(DeferredStep::Done),
        }
    }

    pub(crate) fn run(
        &mut self,
        session: &mut EngineSession,
        beside: ValuesBeside<'_>,
    ) -> Result<WriteOutcome, Stop> {
        let InsertOp {
            table, work, row, ..
        } = self;
        if work.progress == Progress::Start {
            if work.primary.is_empty() {
                primary_key(session, table, work, row)?;
            }
            table.check_keys(row, &work.primary, &mut work.key)?;
            let owner = session.write_id()?;
            let long = (work.primary.len(), &row[..]);
            if (overflow::is_long(long) || !beside.is_empty())
                && !table.has_hidden_row_id()
                && clustered::is_duplicate(
                    session,
                    table,
                    (&work.primary, work.duplicates),
                    &mut work.current,
                )?
            {
                return Ok(WriteOutcome::Duplicate { index: 0 });
            }
            let (mover, moved) = (&mut work.mover, &mut work.moved);
            work.moved_out = mover.run(session.store(), table, owner, long, beside, moved)?;
            let image = if work.moved_out { &work.moved } else { &*row };
            let buffers = (&mut work.current, &mut work.next, &mut work.value);
            let mover = &mut work.mover;
            let key = (&work.primary[..], work.duplicates);
            match clustered::insert(session, table, key, image, mover, buffers)? {
                Inserted::Done(place) => {
                    work.place = place;
                    work.progress = Progress::Index { n: 1, half: false };
                }
                Inserted::Duplicate => return Ok(WriteOutcome::Duplicate { index: 0 }),
            }
        }
        let outcome = insert_entries(session, table, work, row)?;
        if outcome == WriteOutcome::Done {
            session.count_rows(table, 1);
        }
        Ok(outcome)
    }
}

/// Begins an operation: computes the row's clustered key.
fn primary_key(
    session: &EngineSession,
    table: &Table,
    work: &mut Work,
    row: &[u8],
) -> Result<(), Stop> {
    work.savepoint = session.undo_position();
    if table.has_hidden_row_id() {
        let id = table.next_row_id()?;
        work.primary.extend_from_slice(&id.to_be_bytes());
    } else {
        table.clustered_key(row, &mut work.primary)?;
    }
    Ok(())
}

/// Inserts the row's entries into the secondary indexes from where the operation is; undoes the
/// operation at a duplicate.
pub(super) fn insert_entries(
    session: &mut EngineSession,
    table: &Table,
    work: &mut Work,
    row: &[u8],
) -> Result<WriteOutcome, Stop> {
    while let Progress::Index { n, .. } | Progress::Elements { n, .. } = work.progress {
        if n == table.indexes().len() {
            return Ok(WriteOutcome::Done);
        }
        if table.index(n).is_multi_valued() {
            let primary = work.primary.clone();
            let versions = (None, Some((row, &primary[..])));
            let how = (work.duplicates, false);
            if elements::replace(session, table, work, n, versions, how)? {
                work.progress = Progress::Undoing { index: n };
                break;
            }
            work.progress = Progress::Index {
                n: n + 1,
                half: false,
            };
            continue;
        }
        if table.index(n).unique {
            work.key.clear();
            table.secondary_key(n, row, &[], &mut work.key)?;
            if secondary::unique_conflict(
                session,
                table,
                n,
                &work.key,
                (&work.primary, work.duplicates),
            )? {
                work.progress = Progress::Undoing { index: n };
                break;
            }
        }
        secondary::insert(session, table, work, n, row)?;
        work.progress = Progress::Index {
            n: n + 1,
            half: false,
        };
    }
    undo_own_steps(session, work)
}

/// Undoes what the operation did before it met a duplicate.
pub(super) fn undo_own_steps(
    session: &mut EngineSession,
    work: &mut Work,
) -> Result<WriteOutcome, Stop> {
    let Progress::Undoing { index } = work.progress else {
        return Ok(WriteOutcome::Done);
    };
    session.undo_to(work.savepoint)?;
    Ok(WriteOutcome::Duplicate { index })
}

impl Drop for InsertOp {
    fn drop(&mut self) {
        buffers::give(&mut self.row);
    }
}
