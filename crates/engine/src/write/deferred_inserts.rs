//! Rows of an INSERT that are inserted together, with the result of inserts one by one.
//!
//! # Picture
//! ```text
//!  deferred rows     0 1 2 3 4 5 6 7 8
//!                        │     │
//!                       done  inserted
//!
//!  up to `done`      in all indexes, or a duplicate
//!  up to `inserted`  in the clustered index, by one mini-transaction for each run of neighbours
//! ```
//! The entries of the rows between both go into one index after the other. Those of an index that
//! is not unique are sorted first, so that equal and adjacent values share a mini-transaction.
//!
//! # Invariants
//! - D1: a row is inserted into the clustered index only when the rows before it are done, or are
//!   in the clustered index by the same mini-transaction.
//! - D2: when a row turns out to be a duplicate, or waits for a lock, the clustered index has no
//!   later row of the statement. Later rows that were inserted already are undone, and inserted
//!   again afterwards: `places` has the undo position of each. So a waiting session holds the same
//!   locks as if it inserted row by row. The waiting row then gets its index entries one by one,
//!   from the first index on.
//!
//! # Cost
//! A mini-transaction latches the leaf and the undo page, locks the gap, and reserves log space,
//! once for all of its rows.

use nfold_btree::{EntryRun, RowHint};
use nfold_txn::locks::LockMode;

use crate::error::Stop;
use crate::overflow::Mover;
use crate::record;
use crate::session::EngineSession;
use crate::table::Table;
use crate::write::clustered::{self, Inserted};
use crate::write::deferred::{MOST, RowList};
use crate::write::insert::insert_entries;
use crate::write::{Progress, Work, WriteOutcome, neighbours, secondary};

/// A deferred row that cannot be inserted, because a unique index has its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeferredDuplicate {
    /// The number of the row.
    pub row: usize,
    /// The ordinal of the index.
    pub index: usize,
}

/// See the module's header.
pub(super) struct DeferredInserts {
    rows: RowList,
    /// For each row up to `inserted`, the undo position before its change, and its leaf.
    places: Vec<(u32, RowHint)>,
    inserted: usize,
    done: usize,
    /// The undo position to which the rows from `inserted` on are being undone.
    undone_to: Option<u32>,
    /// The index in which row `inserted` is a duplicate, after the undo.
    refused: Option<usize>,
    run: EntryRun,
    group: Group,
}

/// How far the entries of several rows are.
struct Group {
    /// The first row that is not done gets its entries on its own.
    is_off: bool,
    /// The index whose entries are being inserted, and the next row, or the next of `sorted`.
    index: usize,
    next: usize,
    /// Keys and values of the index, by row.
    entries: RowList,
    /// The numbers of `entries` in the order of their keys; empty: not made yet.
    sorted: Vec<u8>,
}

impl Group {
    fn begin(&mut self, index: usize) {
        (self.index, self.next) = (index, 0);
        self.entries.clear();
        self.sorted.clear();
    }
}

impl DeferredInserts {
    pub(super) fn new() -> DeferredInserts {
        DeferredInserts {
            rows: RowList::new(),
            places: Vec::with_capacity(MOST),
            inserted: 0,
            done: 0,
            undone_to: None,
            refused: None,
            run: EntryRun::default(),
            group: Group {
                is_off: false,
                index: 1,
                next: 0,
                entries: RowList::new(),
                sorted: Vec::new(),
            },
        }
    }

    pub(super) fn push(&mut self, key: &[u8], image: &[u8]) {
        self.rows.push(key, image);
    }

    pub(super) fn is_full(&self) -> bool {
        self.rows.len() >= MOST
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn image(&self, n: usize) -> &[u8] {
        self.rows.row(n).1
    }

    pub(super) fn clear(&mut self) {
        self.rows.clear();
        self.places.clear();
        (self.inserted, self.done) = (0, 0);
        (self.undone_to, self.refused) = (None, None);
        self.group.begin(1);
        self.group.is_off = false;
    }

    /// Inserts the rows, in their order, up to one that is a duplicate. Call again after a wait,
    /// and for the rows behind a duplicate.
    pub(super) fn run(
        &mut self,
        session: &mut EngineSession,
        table: &Table,
        work: &mut Work,
    ) -> Result<Option<DeferredDuplicate>, Stop> {
        if self.done == 0 && self.inserted == 0 {
            work.reset();
        }
        loop {
            if let Some(mark) = self.undone_to {
                session.undo_to(mark)?;
                self.undone_to = None;
            }
            if let Some(index) = self.refused.take() {
                return Ok(Some(self.refuse(index)));
            }
            if self.done < self.inserted {
                let done = match self.is_grouped(table) {
                    true => self.insert_entries_of_group(session, table, work),
                    false => self.insert_entries_of_next(session, table, work),
                };
                done.or_else(|stop| self.stop(session, stop))?;
            } else if self.done == self.rows.len() {
                work.reset();
                return Ok(None);
            } else if self.insert_next(session, table, work)? == Inserted::Duplicate {
                return Ok(Some(self.refuse(0)));
            }
        }
    }

    /// Inserts the next row into the clustered index, and neighbours behind it.
    fn insert_next(
        &mut self,
        session: &mut EngineSession,
        table: &Table,
        work: &mut Work,
    ) -> Result<Inserted, Stop> {
        let mark = session.undo_position();
        let buffers = (&mut self.run, &mut work.next);
        let rows = self.rows.from(self.done);
        if let Some(run) = neighbours::insert(session, table, rows, buffers)? {
            let places = run.places().zip(mark..);
            self.places
                .extend(places.map(|(place, mark)| (mark, place)));
            self.inserted = self.places.len();
            return Ok(Inserted::Done(RowHint::NONE));
        }
        let (key, image) = self.rows.row(self.done);
        let buffers = (&mut work.current, &mut work.next, &mut work.value);
        let (key, none) = ((key, LockMode::S), &mut Mover::default());
        let inserted = clustered::insert(session, table, key, image, none, buffers)?;
        if let Inserted::Done(place) = inserted {
            self.places.push((mark, place));
            self.inserted += 1;
        }
        Ok(inserted)
    }

    /// Whether the rows between `done` and `inserted` get their entries index by index.
    fn is_grouped(&self, table: &Table) -> bool {
        let has_elements = || table.indexes().iter().any(|index| index.is_multi_valued());
        let is_alone = self.group.is_off || self.inserted - self.done == 1;
        table.indexes().len() == 1 || !is_alone && !has_elements()
    }

    /// Inserts the entries of the first row that is not done into the secondary indexes.
    fn insert_entries_of_next(
        &mut self,
        session: &mut EngineSession,
        table: &Table,
        work: &mut Work,
    ) -> Result<(), Stop> {
        let (key, image) = self.rows.row(self.done);
        if work.progress == Progress::Start {
            work.set_row(key, self.places[self.done].1);
            work.savepoint = self.places[self.done].0;
            work.progress = Progress::Index { n: 1, half: false };
        }
        let outcome = insert_entries(session, table, work, image)?;
        work.reset();
        self.group.begin(1);
        match outcome {
            WriteOutcome::Done => {
                session.count_rows(table, 1);
                self.done += 1;
                self.group.is_off = false;
            }
            // The operation has undone the rows behind as well.
            WriteOutcome::Duplicate { index } => self.refused = Some(index),
        }
        Ok(())
    }

    /// Inserts the entries of the rows between `done` and `inserted`. From a duplicate on the rows
    /// are undone; those in front of it go on.
    fn insert_entries_of_group(
        &mut self,
        session: &mut EngineSession,
        table: &Table,
        work: &mut Work,
    ) -> Result<(), Stop> {
        while self.group.index < table.indexes().len() {
            let index = self.group.index;
            if !table.index(index).unique {
                self.insert_sorted_entries(session, table, work)?;
            } else if let Some(row) = self.insert_unique_entries(session, table, work)? {
                self.take_out(row);
                self.refused = (row == self.done).then_some(index);
                self.group.begin(index + 1);
                return Ok(());
            }
            self.group.begin(index + 1);
        }
        session.count_rows(table, (self.inserted - self.done) as i64);
        self.done = self.inserted;
        self.group.begin(1);
        Ok(())
    }

    /// Inserts the entries of the group into its index, which is unique, row by row. Returns the
    /// first row that is a duplicate.
    fn insert_unique_entries(
        &mut self,
        session: &mut EngineSession,
        table: &Table,
        work: &mut Work,
    ) -> Result<Option<usize>, Stop> {
        let n = self.group.index;
        while self.done + self.group.next < self.inserted {
            let row = self.done + self.group.next;
            let (key, image) = self.rows.row(row);
            work.set_row(key, self.places[row].1);
            work.key.clear();
            table.secondary_key(n, image, &[], &mut work.key)?;
            let how = (&work.primary[..], work.duplicates);
            if secondary::unique_conflict(session, table, n, &work.key, how)? {
                return Ok(Some(row));
            }
            secondary::insert(session, table, work, n, image)?;
            self.group.next += 1;
        }
        Ok(None)
    }

    /// Inserts the entries of the group into its index, which is not unique, in their order there.
    fn insert_sorted_entries(
        &mut self,
        session: &mut EngineSession,
        table: &Table,
        work: &mut Work,
    ) -> Result<(), Stop> {
        let n = self.group.index;
        if self.group.sorted.is_empty() {
            self.sort_entries(session, table, work)?;
        }
        while let Some(rest) = self.group.sorted.get(self.group.next..)
            && let Some(first) = rest.first()
        {
            let list = &self.group.entries;
            let entries = rest.iter().map(|entry| list.row(usize::from(*entry)));
            let buffers = (&mut self.run, &mut work.next);
            let count = neighbours::insert_entries(session, (table, n), entries, buffers)?;
            if count == 0 {
                // One that is marked as deleted.
                let row = self.done + usize::from(*first);
                let (key, image) = self.rows.row(row);
                work.set_row(key, self.places[row].1);
                secondary::insert(session, table, work, n, image)?;
            }
            self.group.next += count.max(1);
        }
        Ok(())
    }

    /// Makes the entries of the group for its index, and sorts them.
    fn sort_entries(
        &mut self,
        session: &mut EngineSession,
        table: &Table,
        work: &mut Work,
    ) -> Result<(), Stop> {
        let trx = session.write_id()?;
        let Work { key, value, .. } = work;
        let Group {
            index,
            entries,
            sorted,
            ..
        } = &mut self.group;
        entries.clear();
        for row in self.done..self.inserted {
            let (primary, image) = self.rows.row(row);
            key.clear();
            table.secondary_key(*index, image, primary, key)?;
            value.clear();
            let lengths = (key.len(), primary.len());
            table.secondary_value(*index, image, lengths, trx, value)?;
            record::set_row_hint(value, self.places[row].1);
            entries.push(key, value);
        }
        sorted.extend(0..entries.len() as u8);
        sorted.sort_unstable_by_key(|entry| entries.row(usize::from(*entry)).0);
        Ok(())
    }

    /// Undoes the rows from `row` on.
    fn take_out(&mut self, row: usize) {
        self.undone_to = Some(self.places[row].0);
        self.places.truncate(row);
        self.inserted = row;
    }

    /// After a stop of the entries. Returns it, unless the session waits for a lock while rows
    /// behind the first one that is not done are in the clustered index: then these are undone, and
    /// that row tries again, on its own (D2).
    fn stop(&mut self, session: &EngineSession, stop: Stop) -> Result<(), Stop> {
        let behind = self.done + 1;
        if behind < self.inserted && matches!(stop, Stop::Wait(_)) && session.waits_for_lock() {
            self.take_out(behind);
            self.group.begin(1);
            self.group.is_off = true;
            return Ok(());
        }
        Err(stop)
    }

    /// The first row that is not done is a duplicate in `index`.
    fn refuse(&mut self, index: usize) -> DeferredDuplicate {
        let row = self.done;
        self.places.truncate(row);
        self.places.push((0, RowHint::NONE));
        (self.done, self.inserted) = (row + 1, row + 1);
        self.group.begin(1);
        self.group.is_off = false;
        DeferredDuplicate { row, index }
    }
}
