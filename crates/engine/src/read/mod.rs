//! Reads: keys and ranges of an index, as batches of row images.
//!
//! # Picture
//! ```text
//!  EqualityKeys ─┐                      covering ──────────────▶ resolve the entry ──┐
//!            ├─▶ entries of an index                                            ├─▶ RowBatch
//!  KeyRange ─┘   (one leaf a time)  else: primary keys ─▶ get_many ─▶ resolve the row ┘
//! ```
//! *Resolving* resolves visibility: the snapshot sees the newest version of an entry or a row, an
//! older version, or nothing.
//!
//! # Invariants
//! R1. A consistent read takes no latch and no lock, and writes only to its own buffers.
//! R2. Every call that stops at a wait keeps its progress. Rows already in the caller's batch stay
//!     there and are not read again.
//! R3. Rows come in index order: the requested keys in sorted order, and the entries of each in key
//!     order.
//!
//! # Cost
//! No allocation once the buffers have grown; an IN list costs one staged pass over the secondary
//! tree and one over the clustered.

mod consistent;
mod key_probe;
mod locking;
mod newest;
mod page_rows;
mod point;
mod prefixes;
mod probes;
mod raw_rows;
pub(crate) mod release;
mod rows;
mod version_memo;
mod visibility;

pub use consistent::Read;
pub use key_probe::KeyProbe;
pub use page_rows::{PageRow, PageRowSink, PageRows, reborrow};
pub use prefixes::KeyPrefixes;

use crate::value_parts::ColumnPart;

pub(crate) use visibility::{Resolved, Scratch, View, damaged, previous_version};

/// The tree's range of all keys that begin with `prefix`.
pub(crate) fn prefix_range(prefix: &[u8]) -> nfold_btree::KeyRange {
    consistent::tree_range(&crate::batch::KeyRange::prefix(prefix))
}

/// The lock mode of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RowLock {
    /// A consistent read: no lock.
    #[default]
    None,
    /// `FOR SHARE`, and plain reads under SERIALIZABLE.
    Shared,
    /// `FOR UPDATE`, UPDATE, DELETE.
    Exclusive,
}

/// How a locking read treats a row that another transaction has locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LockWaitPolicy {
    /// Wait.
    #[default]
    Wait,
    /// Error 3572.
    NoWait,
    /// Leave the row out.
    SkipLocked,
}

/// How to read an index.
#[derive(Debug, Clone, Default)]
pub struct ReadSpec {
    /// Ordinal in the table's definition.
    pub index: usize,
    /// Answer from the index alone: rows come in [`crate::Table::index_layout`]. Not with an
    /// exclusive lock, and not for the clustered index.
    pub covering: bool,
    pub lock: RowLock,
    pub wait: LockWaitPolicy,
    /// Table ordinals of the columns that are needed: those on overflow pages are brought in. The
    /// others may be left out.
    pub columns: Vec<usize>,
    /// Columns of which a part of a long value is enough. A locking read has none.
    pub parts: Vec<ColumnPart>,
    /// How many rows are likely to be enough (a LIMIT); 0: all. A read looks no further ahead than
    /// it has to, and a locking read locks no row beyond.
    pub first_rows: usize,
    /// UPDATE: in READ COMMITTED and below, rows that others have locked come as they were
    /// committed last, for the caller to see whether they match
    /// ([`RowBatch::is_unlocked`](crate::RowBatch::is_unlocked)).
    pub semi_consistent: bool,
    /// A read by a secondary index also gives the rows' hidden row ids
    /// ([`RowBatch::row_id`](crate::RowBatch::row_id)). Locking reads always do.
    pub row_ids: bool,
}
