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
//! The rows between both are a group. Their entries go into one index after the other. Those of an
//! index that is not unique are sorted first: equal and adjacent values share a mini-transaction,
//! and the leaves of the next entries are prefetched.
//!
//! # Invariants
//! - D1: a row is inserted into the clustered index only when the rows before it are in the
//!   clustered index. A row that has to wait for a lock there waits until those are done.
//! - D2: when a row turns out to be a duplicate, or waits for a lock, the clustered index has no
//!   later row of the statement. Later rows that were inserted already are undone, and inserted
//!   again afterwards: `places` has the undo position of each. So a waiting session holds the same
//!   locks as if it inserted row by row. The waiting row then gets its index entries one by one,
//!   from the first index on.
//! - D3: a group may be as large as the number of rows that were done without an undo. So no
//!   statement undoes many more rows than it inserts.
//!
//! # Cost
//! A mini-transaction latches the leaf and the undo page, locks the gap, and reserves log space,
//! once for all of its rows. Entries in random order cost mostly cache misses: each goes to another
//! leaf. In a large group these misses overlap, and several entries go to the same leaf.

use nfold_btree::{EntryRun, LeafHints, RowHint, padded_word};
use nfold_txn::locks::{LockMode, OnConflict};

use crate::error::{EngineError, Stop};
use crate::overflow::Mover;
use crate::record;
use crate::session::EngineSession;
use crate::table::Table;
use crate::write::clustered::{self, Inserted};
use crate::write::deferred::{MOST, RowList};
use crate::write::insert::insert_entries;
use crate::write::neighbours::{self, SortedEntries};
use crate::write::{Progress, Work, WriteOutcome, secondary};

/// A deferred row that cannot be inserted, because a unique index has its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeferredDuplicate {
    /// The number of the row.
    pub row: usize,
    /// The ordinal of the index.
    pub index: usize,
}

/// How far the deferred rows are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeferredStep {
    /// All rows are inserted.
    Done,
    /// This row is a duplicate, and has changed nothing.
    Duplicate(DeferredDuplicate),
    /// Call again. The caller may check for KILL and let other sessions run.
    More,
}

/// The most rows that wait, and about the most bytes of their keys and images.
const MOST_ROWS: usize = 4096;
const MOST_BYTES: usize = 1 << 20;
/// The size of the first group of a table that has another unique index than the primary key, where
/// duplicates undo a part of a group.
const FIRST_GROUP: usize = 32;
/// The number of rows and entries that one call inserts.
const ENTRIES_PER_CALL: usize = 256;

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

/// The entries of a group that one index has.
enum Entries {
    All,
    /// There was no room for more of them.
    Some,
    /// Those of the rows before this one, which is a duplicate.
    UpTo(usize),
}

/// How far the entries of several rows are.
struct Group {
    /// The first row that is not done gets its entries on its own.
    is_off: bool,
    /// The most rows of a group (D3).
    limit: usize,
    /// The group gets no more rows.
    is_closed: bool,
    /// The index whose entries are being inserted, and the next row, or the next of `sorted`.
    index: usize,
    next: usize,
    /// Keys and values of the index, by row.
    entries: RowList,
    /// The first bytes of the keys, and the numbers of `entries`, in the order of the keys; empty:
    /// not made yet.
    sorted: Vec<(u64, u16)>,
    /// The leaves of the next of `sorted`.
    leaves: LeafHints,
}

impl Group {
    fn begin(&mut self, index: usize) {
        (self.index, self.next) = (index, 0);
        self.entries.clear();
        self.sorted.clear();
        self.leaves.clear();
    }

    /// The group is done: the next one may have more rows.
    fn end(&mut self) {
        self.begin(1);
        self.is_closed = false;
        self.limit = (2 * self.limit).min(MOST_ROWS);
    }

    /// A part of the group was undone. Its other rows are done without more of them.
    fn shrink(&mut self) {
        self.is_closed = true;
        self.limit = 1;
    }
}

impl DeferredInserts {
    pub(super) fn new() -> DeferredInserts {
        DeferredInserts {
            rows: RowList::new(),
            places: Vec::new(),
            inserted: 0,
            done: 0,
            undone_to: None,
            refused: None,
            run: EntryRun::default(),
            group: Group {
                is_off: false,
                limit: 0,
                is_closed: false,
                index: 1,
                next: 0,
                entries: RowList::new(),
                sorted: Vec::new(),
                leaves: LeafHints::default(),
            },
        }
    }

    pub(super) fn push(&mut self, key: &[u8], image: &[u8]) {
        self.rows.push(key, image);
    }

    pub(super) fn is_full(&self, table: &Table) -> bool {
        let most = match table.indexes().len() {
            1 => MOST,
            _ => MOST_ROWS,
        };
        self.rows.len() >= most || self.rows.bytes() >= MOST_BYTES
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
        self.group.is_closed = false;
        self.group.is_off = false;
    }

    /// Inserts the rows, in their order, up to one that is a duplicate. Call again after a wait,
    /// and for the rows behind a duplicate.
    pub(super) fn run(
        &mut self,
        session: &mut EngineSession,
        table: &Table,
        work: &mut Work,
    ) -> Result<DeferredStep, Stop> {
        if self.done == 0 && self.inserted == 0 {
            work.reset();
            let mut others = table.indexes().iter().skip(1);
            let has_unique = others.any(|index| index.unique);
            self.group.limit = if has_unique { FIRST_GROUP } else { MOST_ROWS };
        }
        let mut room = ENTRIES_PER_CALL;
        loop {
            if let Some(mark) = self.undone_to {
                session.undo_to(mark)?;
                self.undone_to = None;
            }
            if let Some(index) = self.refused.take() {
                return Ok(DeferredStep::Duplicate(self.refuse(index)));
            }
            if room == 0 {
                return Ok(DeferredStep::More);
            }
            if self.is_group_open(table) {
                let before = self.inserted;
                if self.insert_next(session, table, work)? == Inserted::Duplicate {
                    return Ok(DeferredStep::Duplicate(self.refuse(0)));
                }
                room = room.saturating_sub(self.inserted - before);
            } else if self.done < self.inserted {
                let done = match self.is_grouped(table) {
                    true => self.insert_entries_of_group(session, table, work, &mut room),
                    false => self.insert_entries_of_next(session, table, work),
                };
                done.or_else(|stop| self.stop(session, stop))?;
            } else {
                work.reset();
                return Ok(DeferredStep::Done);
            }
        }
    }

    /// Whether another row goes into the clustered index before the rows there get their entries.
    fn is_group_open(&self, table: &Table) -> bool {
        let rows = self.inserted - self.done;
        self.inserted < self.rows.len()
            && (rows == 0
                || !self.group.is_closed && rows < self.group.limit && table.indexes().len() > 1)
    }

    /// Inserts the next row into the clustered index, and neighbours behind it. If other rows of
    /// the group are in front of it, and it cannot be inserted at once, it closes the group.
    fn insert_next(
        &mut self,
        session: &mut EngineSession,
        table: &Table,
        work: &mut Work,
    ) -> Result<Inserted, Stop> {
        let mark = session.undo_position();
        let is_first = self.done == self.inserted;
        let buffers = (&mut self.run, &mut work.next);
        let room = self.group.limit - (self.inserted - self.done).min(self.group.limit);
        let rows = self.rows.from(self.inserted).take(room.max(1));
        let on_conflict = match is_first {
            true => OnConflict::Wait,
            false => OnConflict::NoWait,
        };
        match neighbours::insert(session, table, rows, on_conflict, buffers) {
            Ok(Some(run)) => {
                let places = run.places().zip(mark..);
                self.places
                    .extend(places.map(|(place, mark)| (mark, place)));
                self.inserted = self.places.len();
                return Ok(Inserted::Done(RowHint::NONE));
            }
            Ok(None) | Err(Stop::Wait(_) | Stop::Error(EngineError::LockNoWait)) if !is_first => {
                self.group.is_closed = true;
                return Ok(Inserted::Done(RowHint::NONE));
            }
            Ok(None) => {}
            Err(stop) => return Err(stop),
        }
        let (key, image) = self.rows.row(self.inserted);
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
        match outcome {
            WriteOutcome::Done => {
                session.count_rows(table, 1);
                self.done += 1;
                self.group.is_off = false;
                self.group.end();
            }
            // The operation has undone the rows behind as well.
            WriteOutcome::Duplicate { index } => {
                self.refused = Some(index);
                self.group.shrink();
            }
        }
        Ok(())
    }

    /// Inserts the entries of the rows between `done` and `inserted`, `room` of them. From a
    /// duplicate on the rows are undone; those in front of it go on.
    fn insert_entries_of_group(
        &mut self,
        session: &mut EngineSession,
        table: &Table,
        work: &mut Work,
        room: &mut usize,
    ) -> Result<(), Stop> {
        while self.group.index < table.indexes().len() {
            let index = self.group.index;
            let inserted = match table.index(index).unique {
                true => self.insert_unique_entries(session, table, work, room)?,
                false => self.insert_sorted_entries(session, table, work, room)?,
            };
            match inserted {
                Entries::All => self.group.begin(index + 1),
                Entries::Some => return Ok(()),
                Entries::UpTo(row) => {
                    self.take_out(row);
                    self.refused = (row == self.done).then_some(index);
                    self.group.begin(index + 1);
                    return Ok(());
                }
            }
        }
        session.count_rows(table, (self.inserted - self.done) as i64);
        self.done = self.inserted;
        self.group.end();
        Ok(())
    }

    /// Inserts entries of the group into its index, which is unique, row by row, `room` of them.
    fn insert_unique_entries(
        &mut self,
        session: &mut EngineSession,
        table: &Table,
        work: &mut Work,
        room: &mut usize,
    ) -> Result<Entries, Stop> {
        let n = self.group.index;
        while self.done + self.group.next < self.inserted {
            if *room == 0 {
                return Ok(Entries::Some);
            }
            let row = self.done + self.group.next;
            let (key, image) = self.rows.row(row);
            work.set_row(key, self.places[row].1);
            work.key.clear();
            table.secondary_key(n, image, &[], &mut work.key)?;
            let how = (&work.primary[..], work.duplicates);
            if secondary::unique_conflict(session, table, n, &work.key, how)? {
                return Ok(Entries::UpTo(row));
            }
            secondary::insert(session, table, work, n, image)?;
            self.group.next += 1;
            *room -= 1;
        }
        Ok(Entries::All)
    }

    /// Inserts entries of the group into its index, which is not unique, in their order there,
    /// about `room` of them.
    fn insert_sorted_entries(
        &mut self,
        session: &mut EngineSession,
        table: &Table,
        work: &mut Work,
        room: &mut usize,
    ) -> Result<Entries, Stop> {
        let n = self.group.index;
        if self.group.sorted.is_empty() {
            self.sort_entries(session, table, work)?;
        }
        let store = table.store();
        while let Some(rest) = self.group.sorted.get(self.group.next..)
            && let Some(first) = rest.first()
        {
            if *room == 0 {
                return Ok(Entries::Some);
            }
            let entries = SortedEntries {
                list: &self.group.entries,
                order: rest,
            };
            let leaves = &mut self.group.leaves;
            let leaf = table.index(n).tree.next_leaf(store, entries.keys(), leaves);
            let buffers = (&mut self.run, &mut work.next, &mut work.current);
            let count = neighbours::insert_entries(session, (table, n), entries, leaf, buffers)?;
            if count == 0 {
                // One that is marked as deleted.
                let row = self.done + usize::from(first.1);
                let (key, image) = self.rows.row(row);
                work.set_row(key, self.places[row].1);
                secondary::insert(session, table, work, n, image)?;
            }
            let count = count.max(1);
            self.group.leaves.skip(count);
            self.group.next += count;
            *room = room.saturating_sub(count);
        }
        Ok(Entries::All)
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
            sorted.push((padded_word(key), entries.len() as u16));
            entries.push(key, value);
        }
        let key = |entry: u16| entries.row(usize::from(entry)).0;
        // Unequal padded words have the order of their keys.
        sorted.sort_unstable_by(|a, b| (a.0.cmp(&b.0)).then_with(|| key(a.1).cmp(key(b.1))));
        Ok(())
    }

    /// Undoes the rows from `row` on.
    fn take_out(&mut self, row: usize) {
        self.undone_to = Some(self.places[row].0);
        self.places.truncate(row);
        self.inserted = row;
        self.group.shrink();
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
        self.group.is_closed = false;
        self.group.is_off = false;
        DeferredDuplicate { row, index }
    }
}
