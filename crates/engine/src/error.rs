//! What can go wrong in the engine, in classes that the layers above turn into MySQL's errors.

use std::fmt;
use std::sync::Arc;

use nfold_store::{PageId, Stop as StoreStop, StoreError};
use nfold_txn::TxnError;
use nfold_types::key::KeyError;

/// Why an engine call failed.
#[derive(Debug, Clone, PartialEq)]
pub enum EngineError {
    /// Files, pages, log: I/O, corruption, no space.
    Store(StoreError),
    /// This transaction was chosen to break a deadlock and has been rolled back (1213).
    Deadlock,
    /// NOWAIT met a lock (3572).
    LockNoWait,
    /// A write in a READ ONLY transaction (1792).
    ReadOnlyTransaction,
    /// The key cannot be stored: too long, or of another type.
    Key(KeyError),
    /// The row cannot be stored: more than 65,535 bytes, or too many bytes inline (1118).
    RowTooLarge,
    /// The row's key in some index, the primary key behind it included, is longer than a page can
    /// take. Nothing was changed.
    KeyTooLong { limit: usize },
    /// The table, or an index of it, is gone: DDL ran between planning and execution. Plan again.
    /// Or it is newer than the transaction's snapshot
    /// ([`EngineSession::snapshot_refused`](crate::EngineSession::snapshot_refused)) (1412).
    TableChanged,
    /// A damaged page was found in the table, which takes no more changes until it is checked or
    /// the server starts anew (1877).
    TableDamaged { schema: Arc<str>, table: Arc<str> },
    /// A savepoint of this name does not exist (1305).
    NoSuchSavepoint,
    /// A limit of this engine: what, and how much.
    Limit { what: &'static str, limit: u64 },
    /// An undo record that a row needs is not there.
    VersionGone { page: PageId },
    /// The dictionary holds an object that it should not, or lacks one.
    Dictionary(String),
    /// A change of a definition was asked to stop ([`stoppable`](crate::stoppable)) (1317).
    Stopped,
    /// Two rows would share a unique key, while an index was built: the key's ordinal in the
    /// definition.
    DuplicateInBuild { index: String, key: Vec<u8> },
}

/// How an engine call stops.
pub type Stop = StoreStop<EngineError>;

impl From<StoreError> for EngineError {
    fn from(error: StoreError) -> Self {
        EngineError::Store(error)
    }
}

impl From<TxnError> for EngineError {
    fn from(error: TxnError) -> Self {
        match error {
            TxnError::Store(e) => EngineError::Store(e),
            // A deadline is the caller's; should one come from below, the transaction gives up as
            // after a deadlock.
            TxnError::Deadlock | TxnError::LockWaitTimeout => EngineError::Deadlock,
            TxnError::LockNotAvailable => EngineError::LockNoWait,
            TxnError::TooManyTransactions { limit } => EngineError::Limit {
                what: "transactions since the oldest active one",
                limit,
            },
            TxnError::TooLarge { what, limit } => EngineError::Limit { what, limit },
            TxnError::NoSuchSavepoint => EngineError::NoSuchSavepoint,
            TxnError::ReadOnly => EngineError::ReadOnlyTransaction,
            TxnError::VersionGone { page, .. } => EngineError::VersionGone { page },
        }
    }
}

impl From<EngineError> for TxnError {
    /// For what the engine does on behalf of the layer below: undo and purge.
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Store(e) => TxnError::Store(e),
            EngineError::Deadlock => TxnError::Deadlock,
            EngineError::LockNoWait => TxnError::LockNotAvailable,
            EngineError::NoSuchSavepoint => TxnError::NoSuchSavepoint,
            EngineError::ReadOnlyTransaction => TxnError::ReadOnly,
            EngineError::Limit { what, limit } => TxnError::TooLarge { what, limit },
            EngineError::VersionGone { page } => TxnError::VersionGone { page, offset: 0 },
            _ => TxnError::Store(StoreError::Corrupt {
                page: PageId { space: 0, page: 0 },
                lsn: 0,
                what: "a row cannot be undone or purged",
            }),
        }
    }
}

impl From<KeyError> for EngineError {
    fn from(error: KeyError) -> Self {
        EngineError::Key(error)
    }
}

impl fmt::Display for EngineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EngineError::Stopped => write!(f, "the change was asked to stop"),
            EngineError::Store(e) => write!(f, "{e}"),
            EngineError::Deadlock => f.write_str("deadlock found when trying to get lock"),
            EngineError::LockNoWait => f.write_str("lock could not be acquired immediately"),
            EngineError::ReadOnlyTransaction => f.write_str("the transaction is read only"),
            EngineError::Key(e) => write!(f, "{e}"),
            EngineError::RowTooLarge => f.write_str("the row is too large"),
            EngineError::TableChanged => f.write_str("the table's definition has changed"),
            EngineError::TableDamaged { schema, table } => {
                write!(f, "table {schema}.{table} is damaged")
            }
            EngineError::NoSuchSavepoint => f.write_str("savepoint does not exist"),
            EngineError::KeyTooLong { limit } => {
                write!(
                    f,
                    "an index entry's key is above the limit of {limit} bytes"
                )
            }
            EngineError::Limit { what, limit } => write!(f, "{what} is above the limit of {limit}"),
            EngineError::VersionGone { page } => write!(
                f,
                "page {} of the undo log lacks a version that is needed",
                page.page
            ),
            EngineError::Dictionary(what) => write!(f, "data dictionary: {what}"),
            EngineError::DuplicateInBuild { index, .. } => {
                write!(f, "duplicate entry for key {index}")
            }
        }
    }
}

impl std::error::Error for EngineError {}

/// The stop of a layer below as one of this crate.
#[inline]
pub(crate) fn lift<E>(stop: StoreStop<E>) -> Stop
where
    EngineError: From<E>,
{
    stop.lift()
}
