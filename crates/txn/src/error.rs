//! What can go wrong with a transaction. MySQL's numbers are given here in comments; the table of
//! messages is above.

use nfold_store::{PageId, Stop, StoreError};
use std::fmt;

/// Errors of the transaction layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TxnError {
    Store(StoreError),
    /// This transaction was chosen as a deadlock's victim; it has to be rolled back (1213).
    Deadlock,
    /// The caller's deadline passed while it waited for a lock (1205). Made by callers, never here.
    LockWaitTimeout,
    /// NOWAIT, and the lock is not free (3572).
    LockNotAvailable,
    /// More transaction ids than the status ring can hold lie between the oldest active transaction
    /// and the newest (1637).
    TooManyTransactions {
        limit: u64,
    },
    /// More row changes than a transaction can count, or a row image beyond the undo log's limit.
    TooLarge {
        what: &'static str,
        limit: u64,
    },
    /// ROLLBACK TO or RELEASE of a savepoint that does not exist (1305).
    NoSuchSavepoint,
    /// A change in a READ ONLY transaction (1792).
    ReadOnly,
    /// The undo record that a row version named is not there. With a snapshot open this is
    /// corruption; without one the row has changed since, and the caller reads it again.
    VersionGone {
        page: PageId,
        offset: u16,
    },
}

/// The result of a call that may have to wait.
pub type Step<T> = Result<T, Stop<TxnError>>;

impl From<StoreError> for TxnError {
    fn from(error: StoreError) -> Self {
        TxnError::Store(error)
    }
}

impl fmt::Display for TxnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TxnError::Store(e) => e.fmt(f),
            TxnError::Deadlock => write!(f, "deadlock found when trying to get lock"),
            TxnError::LockWaitTimeout => write!(f, "lock wait timeout exceeded"),
            TxnError::LockNotAvailable => write!(f, "lock is not available at once"),
            TxnError::TooManyTransactions { limit } => {
                write!(
                    f,
                    "more than {limit} transactions since the oldest active one"
                )
            }
            TxnError::TooLarge { what, limit } => write!(f, "{what} is above the limit of {limit}"),
            TxnError::NoSuchSavepoint => write!(f, "savepoint does not exist"),
            TxnError::ReadOnly => write!(f, "the transaction is read only"),
            TxnError::VersionGone { page, offset } => {
                write!(
                    f,
                    "no undo record of this version at {page}, offset {offset}"
                )
            }
        }
    }
}

impl std::error::Error for TxnError {}

/// Runs a call of this layer to its end on a thread that may sleep.
pub fn block_on<T>(mut call: impl FnMut() -> Step<T>) -> Result<T, TxnError> {
    loop {
        match call() {
            Ok(value) => return Ok(value),
            Err(Stop::Wait(wait)) => wait.block(),
            Err(Stop::Error(e)) => return Err(e),
        }
    }
}

/// Whether an error of the undo log is one that stays.
pub(crate) fn is_damage(error: &TxnError) -> bool {
    matches!(
        error,
        TxnError::Store(StoreError::Corrupt { .. }) | TxnError::VersionGone { .. }
    )
}
