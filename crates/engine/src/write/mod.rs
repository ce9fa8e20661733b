//! Writes rows. Each operation is an object that is called again after a wait and continues where
//! it stopped.
//!
//! # Picture
//! ```text
//!  insert   clustered row ── then each index: unique check, entry
//!  update   clustered row (new version in place, old one to the undo log) ── then each changed index: mark old entry, insert new one
//!  delete   clustered row marked ── then each index: entry marked
//!  a changed primary key is a delete and an insert under one operation
//! ```
//! # Invariants
//! W1. The clustered row changes before the entries of the secondary indexes; undo uses the reverse
//!     order (see `visibility`, V1).
//! W2. Each step is one mini-transaction: first locks and latches, then room for log and undo, then
//!     changes that cannot fail. A step that stops has changed nothing. Deferred rows that are
//!     neighbours share a step.
//! W3. A changed row carries the transaction's id, which is an exclusive lock on the record.
//! W4. A new value of a unique index is locked as a key of its own (without the primary key) before
//!     the search for it, so that two transactions cannot both find it absent.
//!
//! # Failure
//! [`WriteOutcome::Duplicate`] undoes the operation's own steps first. Any other error leaves them
//! to the statement's rollback.

mod buffers;
mod clustered;
mod deferred;
mod deferred_inserts;
mod delete;
mod elements;
mod insert;
mod neighbours;
mod patched;
mod secondary;
mod update;

use nfold_btree::RowHint;
use nfold_txn::locks::LockMode;

use crate::error::Stop;
use crate::overflow::{Mover, ValuesBeside};
use crate::session::EngineSession;

pub use deferred_inserts::{DeferredDuplicate, DeferredStep};
pub use delete::DeleteOp;
pub use insert::InsertOp;
pub use update::UpdateOp;

/// How a write ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteOutcome {
    Done,
    /// Unique index `index` (ordinal in the definition) has another row with the same key. Nothing
    /// was changed.
    Duplicate {
        index: usize,
    },
}

/// How far an operation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Progress {
    #[default]
    Start,
    /// The clustered index is done; secondary index `n` is next, and `half` says that its old entry
    /// is marked already.
    Index { n: usize, half: bool },
    /// The same for multi-valued index `n`: its first `done` changes are made.
    Elements { n: usize, done: usize },
    /// A duplicate was met in this index: the operation's own changes are being undone.
    Undoing { index: usize },
}

/// What all operations carry: buffers that are kept from row to row.
pub(crate) struct Work {
    pub progress: Progress,
    /// Undo number before the operation's first change.
    pub savepoint: u32,
    /// Encoded clustered key.
    pub primary: Vec<u8>,
    pub key: Vec<u8>,
    pub value: Vec<u8>,
    pub current: Vec<u8>,
    pub next: Vec<u8>,
    /// Where the clustered row is, for the hints of its entries.
    pub place: RowHint,
    pub mover: Mover,
    /// The new row as stored on the tree page, if long columns were moved to overflow pages.
    pub moved: Vec<u8>,
    pub moved_out: bool,
    /// How a row of the same key is locked.
    pub duplicates: LockMode,
}

impl Work {
    pub(crate) fn new() -> Work {
        Work {
            progress: Progress::Start,
            savepoint: 0,
            primary: buffers::take(),
            key: buffers::take(),
            value: buffers::take(),
            current: buffers::take(),
            next: buffers::take(),
            place: RowHint::NONE,
            mover: Mover::default(),
            moved: Vec::new(),
            moved_out: false,
            duplicates: LockMode::S,
        }
    }

    /// Sets the row whose entries are inserted next: its clustered key and its leaf.
    fn set_row(&mut self, key: &[u8], place: RowHint) {
        self.primary.clear();
        self.primary.extend_from_slice(key);
        self.place = place;
    }

    pub(crate) fn reset(&mut self) {
        self.progress = Progress::Start;
        self.primary.clear();
        self.place = RowHint::NONE;
        self.mover.reset();
        self.moved_out = false;
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        let Work {
            primary,
            key,
            value,
            current,
            next,
            moved,
            ..
        } = self;
        for buffer in [primary, key, value, current, next, moved] {
            buffers::give(buffer);
        }
    }
}

impl EngineSession {
    /// Inserts a row; call again with the same operation after a wait.
    pub fn insert(&mut self, op: &mut InsertOp) -> Result<WriteOutcome, Stop> {
        self.insert_with(op, &[])
    }

    /// As [`insert`](Self::insert), for a row with values `beside` its image.
    #[inline]
    pub fn insert_with(
        &mut self,
        op: &mut InsertOp,
        beside: ValuesBeside<'_>,
    ) -> Result<WriteOutcome, Stop> {
        self.note_change(op.table())?;
        op.run(self, beside)
    }

    /// Puts the row of `op` aside, to be inserted together with others by
    /// [`insert_deferred`](Self::insert_deferred), if all of it is stored on its tree page. False:
    /// [`insert`](Self::insert) must insert it, after the deferred ones. Call again after a wait.
    ///
    /// # Errors
    /// The errors of the table's key and row limits are left to [`insert`](Self::insert).
    pub fn defer_insert(&mut self, op: &mut InsertOp) -> Result<bool, Stop> {
        op.defer(self)
    }

    /// Inserts rows that wait in `op`, in their order, up to the first one that is a duplicate: the
    /// rows before it are inserted then, and those behind it still wait. Call again after a wait,
    /// for more rows, and for those behind a duplicate. After the last row, and after an error,
    /// [`InsertOp::clear_deferred`] must be called.
    pub fn insert_deferred(&mut self, op: &mut InsertOp) -> Result<DeferredStep, Stop> {
        self.note_change(op.table())?;
        op.run_deferred(self)
    }

    /// Changes a row that a locking read of this transaction gave.
    pub fn update(&mut self, op: &mut UpdateOp) -> Result<WriteOutcome, Stop> {
        self.note_change(op.table())?;
        op.run(self)
    }

    /// Puts the row of `op` aside, to be changed together with others by
    /// [`update_deferred`](Self::update_deferred), if only its clustered row changes and its
    /// primary key stays. False: [`update`](Self::update) must change it, after the deferred ones.
    /// Call again after a wait.
    pub fn defer_update(&mut self, op: &mut UpdateOp) -> Result<bool, Stop> {
        op.defer(self)
    }

    /// Changes the rows that wait in `op`; call again after a wait.
    pub fn update_deferred(&mut self, op: &mut UpdateOp) -> Result<(), Stop> {
        self.note_change(op.table())?;
        op.run_deferred(self)
    }

    /// Deletes a row that a locking read of this transaction gave.
    pub fn delete(&mut self, op: &mut DeleteOp) -> Result<WriteOutcome, Stop> {
        self.note_change(op.table())?;
        op.run(self)
    }
}
