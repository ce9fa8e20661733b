//! UPDATE of one row that the transaction has locked.

use std::sync::Arc;

use nfold_txn::locks::LockMode;
use nfold_types::row::RowLayout;

use crate::error::{EngineError, Stop};
use crate::overflow::Mover;
use crate::session::EngineSession;
use crate::table::Table;
use crate::write::clustered::{self, Change, Inserted};
use crate::write::deferred::Deferred;
use crate::write::delete::locate;
use crate::write::insert::undo_own_steps;
use crate::write::secondary::Differs;
use crate::write::{Progress, Work, WriteOutcome, buffers, elements, patched, secondary};

/// One row to be changed. Reuse it for the next row with [`UpdateOp::row`].
pub struct UpdateOp {
    table: Arc<Table>,
    work: Work,
    old: Vec<u8>,
    new: Vec<u8>,
    row_id: Option<u64>,
    /// The old row's clustered key, if the new one's differs.
    old_primary: Vec<u8>,
    moves: bool,
    /// How the row's entries change, by secondary index.
    differs: Vec<Differs>,
    /// The old clustered row is marked already (the primary key changes).
    left: bool,
    /// Long values that change little are described by their changes already.
    described: bool,
    /// Boxed, because most operations change one row.
    deferred: Option<Box<Deferred>>,
}

impl UpdateOp {
    pub(crate) fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// An operation on `table`, without a row yet.
    pub fn new(table: Arc<Table>) -> UpdateOp {
        UpdateOp {
            table,
            work: Work::new(),
            old: buffers::take(),
            new: buffers::take(),
            row_id: None,
            old_primary: buffers::take(),
            moves: false,
            differs: Vec::new(),
            left: false,
            described: false,
            deferred: None,
        }
    }

    /// The old row as a locking read gave it, with its hidden row id if the table has one, and the
    /// new row's image, emptied, for the caller to fill. A column that stays as it was may be the
    /// same overflow pointer in both; if it is part of a key, it is better a value. Columns of the
    /// primary key are values.
    pub fn row(&mut self, old: &[u8], row_id: Option<u64>) -> &mut Vec<u8> {
        self.work.reset();
        (self.row_id, self.moves, self.left) = (row_id, false, false);
        self.described = false;
        self.old.clear();
        self.old.extend_from_slice(old);
        self.new.clear();
        self.new.reserve(old.len());
        &mut self.new
    }

    /// The old row's image.
    pub fn old_image(&self) -> &[u8] {
        &self.old
    }

    /// The new row's image. The caller may complete it before the operation runs.
    pub fn image_mut(&mut self) -> &mut Vec<u8> {
        &mut self.new
    }

    /// The new row's image.
    pub fn image(&self) -> &[u8] {
        &self.new
    }

    /// Whether the deferred rows must be changed before another one is deferred.
    pub fn is_full(&self) -> bool {
        self.deferred.as_ref().is_some_and(|rows| rows.is_full())
    }

    pub(crate) fn defer(&mut self, session: &EngineSession) -> Result<bool, Stop> {
        self.begin_once(session)?;
        let key = &self.work.primary;
        let only_row = !self.moves && self.differs.iter().all(|d| *d == Differs::No);
        if !only_row || !Deferred::takes(key, [&self.old, &self.new]) {
            return Ok(false);
        }
        let deferred = self
            .deferred
            .get_or_insert_with(|| Box::new(Deferred::new()));
        deferred.push(key, &self.new);
        Ok(true)
    }

    pub(crate) fn run_deferred(&mut self, session: &mut EngineSession) -> Result<(), Stop> {
        if let Some(rows) = &mut self.deferred {
            rows.run(session, &self.table, &mut self.work)?;
            // A row that could not be deferred comes next. A duplicate undoes its own steps only.
            self.work.savepoint = session.undo_position();
        }
        Ok(())
    }

    /// [`begin`](Self::begin), unless it has been done.
    fn begin_once(&mut self, session: &EngineSession) -> Result<(), Stop> {
        if self.work.primary.is_empty() {
            // A wait for pages of a long column: the next call begins again.
            let begun = self.begin(session);
            begun.inspect_err(|_| self.work.primary.clear())?;
        }
        Ok(())
    }

    pub(crate) fn run(&mut self, session: &mut EngineSession) -> Result<WriteOutcome, Stop> {
        if self.work.progress == Progress::Start {
            self.begin_once(session)?;
            if let Some(outcome) = self.change_row(session)? {
                return Ok(outcome);
            }
        }
        self.change_entries(session)
    }

    fn begin(&mut self, session: &EngineSession) -> Result<(), Stop> {
        let table = &*self.table;
        self.work.savepoint = session.undo_position();
        self.differs.clear();
        for n in 1..table.indexes().len() {
            let buffers = (&mut self.work.key, &mut self.work.value);
            let differs = secondary::differs(table, n, &self.old, &self.new, buffers)?;
            self.differs.push(differs);
        }
        self.old_primary.clear();
        locate(table, &self.old, self.row_id, &mut self.old_primary)?;
        locate(table, &self.new, self.row_id, &mut self.work.primary)?;
        self.moves = self.old_primary != self.work.primary;
        if RowLayout::has_external(&self.new) {
            // overflow::O3: under another key it is another row, which has chains of its own.
            let pending = session.pending_chains();
            match self.moves {
                true => self.new = table.whole_row(&self.new, pending)?,
                false => table.inflate_key_columns(&mut self.new, pending)?,
            }
        }
        if self.moves || self.differs.contains(&Differs::Key) {
            table.check_keys(&self.new, &self.work.primary, &mut self.work.key)?;
        }
        Ok(())
    }

    /// The clustered part; an outcome if the operation ends with it.
    fn change_row(&mut self, session: &mut EngineSession) -> Result<Option<WriteOutcome>, Stop> {
        let (table, work) = (&*self.table, &mut self.work);
        let owner = session.write_id()?;
        if !self.moves && !self.described {
            let (key, versions) = (&work.primary, (&self.old[..], &mut self.new));
            patched::describe_long_values(session, table, key, versions, &mut work.current)?;
            self.described = true;
        }
        let long = (work.primary.len(), &self.new[..]);
        let (store, moved) = (session.store(), &mut work.moved);
        work.moved_out = match work.mover.run(store, table, owner, long, &[], moved) {
            Err(Stop::Error(EngineError::RowTooLarge))
                if patched::has_described_values(table, &self.new) =>
            {
                // The whole values take less room, as all of them can move out.
                self.new = table.whole_row(&self.new, session.pending_chains())?;
                work.mover.reset();
                let long = (work.primary.len(), &self.new[..]);
                work.mover.run(store, table, owner, long, &[], moved)?
            }
            moved_out => moved_out?,
        };
        if self.moves && !self.left {
            let buffers = (&mut work.current, &mut work.value);
            let change = Change::Delete;
            let none = &mut Mover::default();
            clustered::change(session, table, &self.old_primary, change, none, buffers)?;
            self.left = true;
        }
        let image = if work.moved_out {
            &work.moved
        } else {
            &self.new
        };
        if self.moves {
            let buffers = (&mut work.current, &mut work.next, &mut work.value);
            let mover = &mut work.mover;
            let key = (&work.primary[..], LockMode::S);
            match clustered::insert(session, table, key, image, mover, buffers)? {
                Inserted::Done(place) => work.place = place,
                Inserted::Duplicate => {
                    work.progress = Progress::Undoing { index: 0 };
                    return undo_own_steps(session, work).map(Some);
                }
            }
        } else {
            let same_keys = !self.differs.contains(&Differs::Key);
            work.place = clustered::change(
                session,
                table,
                &work.primary,
                Change::Image(image, same_keys),
                &mut work.mover,
                (&mut work.current, &mut work.value),
            )?;
        }
        work.progress = Progress::Index { n: 1, half: false };
        Ok(None)
    }

    fn change_entries(&mut self, session: &mut EngineSession) -> Result<WriteOutcome, Stop> {
        let table = &*self.table;
        loop {
            let (n, half) = match self.work.progress {
                Progress::Index { n, half } => (n, half),
                Progress::Elements { n, .. } => (n, false),
                _ => break,
            };
            if n == table.indexes().len() {
                return Ok(WriteOutcome::Done);
            }
            let work = &mut self.work;
            let differs = if self.moves {
                Differs::Key
            } else {
                self.differs[n - 1]
            };
            if table.index(n).is_multi_valued() {
                let primary = work.primary.clone();
                let old = (&self.old[..], &self.old_primary[..]);
                let versions = (Some(old), Some((&self.new[..], &primary[..])));
                let how = (LockMode::S, differs == Differs::Originals);
                if differs != Differs::No
                    && elements::replace(session, table, work, n, versions, how)?
                {
                    work.progress = Progress::Undoing { index: n };
                    break;
                }
                work.progress = Progress::Index {
                    n: n + 1,
                    half: false,
                };
                continue;
            }
            if differs == Differs::Key && !half {
                if table.index(n).unique {
                    work.key.clear();
                    table.secondary_key(n, &self.new, &[], &mut work.key)?;
                    // An entry of the row itself does not count, under its old primary key or its
                    // new one.
                    let own = &self.old_primary;
                    if secondary::unique_conflict(session, table, n, &work.key, (own, LockMode::S))?
                    {
                        work.progress = Progress::Undoing { index: n };
                        break;
                    }
                }
                if self.moves {
                    std::mem::swap(&mut work.primary, &mut self.old_primary);
                }
                let marked = secondary::mark(session, table, work, n, &self.old);
                if self.moves {
                    std::mem::swap(&mut work.primary, &mut self.old_primary);
                }
                marked?;
                work.progress = Progress::Index { n, half: true };
            }
            if differs != Differs::No {
                secondary::insert(session, table, work, n, &self.new)?;
            }
            work.progress = Progress::Index {
                n: n + 1,
                half: false,
            };
        }
        undo_own_steps(session, &mut self.work)
    }
}

impl Drop for UpdateOp {
    fn drop(&mut self) {
        let UpdateOp {
            old,
            new,
            old_primary,
            ..
        } = self;
        for buffer in [old, new, old_primary] {
            buffers::give(buffer);
        }
    }
}
