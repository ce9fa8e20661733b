//! The storage engine's facade: everything above names this crate and nothing below it.
//!
//! One statement, from above:
//!
//! 1. [`EngineSession::statement_begin`]; [`Read::points`] or [`Read::range`] on an `Arc<Table>`
//!    that the plan holds.
//! 2. [`Read::next`] fills a [`RowBatch`] with row images; after [`Stop::Wait`] the same call is
//!    made again.
//! 3. Writes: a locking [`Read`], then [`EngineSession::insert`], [`update`](EngineSession::update)
//!    or [`delete`](EngineSession::delete) with an operation object.
//! 4. [`EngineSession::statement_end`]; [`EngineSession::commit`].
//!
//! Definitions change through the blocking calls of [`Engine`] (`ddl`).
#![forbid(unsafe_code)]

mod background;
mod batch;
mod branches;
mod check;
mod check_space;
mod column_sample;
mod contention;
mod counters;
mod ddl;
mod dictionary;
mod distinct;
mod engine;
mod entry_keys;
mod error;
mod journal;
mod locks;
mod lost_entries;
mod orphaned;
mod overflow;
mod pending_chains;
mod pool;
mod prepared;
mod read;
pub mod record;
mod replication;
mod row_hint;
mod saved_stats;
mod session;
mod shared;
mod stats;
mod table;
#[cfg(test)]
mod tests;
mod transactions;
mod undo;
mod value_changes;
mod value_parts;
mod write;

pub use batch::{Bound, EqualityKeys, KeyBytes, KeyRange, RowBatch, successor};
pub use branches::{BranchName, PrepareOptions};
pub use check::CheckReport;
pub use contention::WaitSite;
pub use counters::{ReservedValues, ValueSeries};
pub use ddl::{CopyError, IndexSpec, TableSpec, ViewSpec, stoppable};
pub use engine::{Engine, EngineOptions, OpenReport};
pub use error::{EngineError, Stop};
pub use journal::{ChangeJournal, JournalEntry};
pub use locks::{DataLock, DataLockWait, TrxInfo};
pub use nfold_store::{
    Attachment, AttachmentReader, Attachments, CountedDisk, Disk, DiskFile, FileCounters, Lsn,
    OpenMode, PAGE_SIZE, RealDisk, RecoveryPhase, RecoveryProgress, ResizePhase, ResizeStatus,
    StoreError, StoreOptions, Wait, gather_syncs, holds_syncs, mini_transactions_here,
};
pub use nfold_txn::Isolation;
pub use overflow::{LEAST_BESIDE, ValuesBeside};
pub use read::{
    KeyPrefixes, KeyProbe, LockWaitPolicy, PageRow, PageRowSink, PageRows, Read, ReadSpec, RowLock,
    reborrow,
};
pub use replication::{ChannelRecord, PendingCoordinates, StatementWrites, with_statement_writes};
pub use row_hint::RowHintStatus;
pub use session::{EngineSession, TrxOptions};
pub use stats::block;
pub use table::{Index, Table};
pub use transactions::{ActiveTrx, isolation_name};
pub use value_parts::{ColumnPart, ValueBytes, ValuePart};
pub use write::{DeferredDuplicate, DeferredStep, DeleteOp, InsertOp, UpdateOp, WriteOutcome};
