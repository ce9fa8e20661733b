//! Errors of the storage layer, and the result of a call that has to wait.

use crate::page::{Lsn, PageId, SpaceId};
use crate::wait::Wait;
use std::fmt;
use std::io;

/// An error of the storage layer. Cheap to clone, because all waiters of a page get the same error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreError {
    /// The operating system returned an error. `what` names the file and the operation.
    Io { kind: io::ErrorKind, what: String },
    /// A page contains invalid bytes. `lsn` is the page's LSN, or 0 if unknown.
    Corrupt {
        page: PageId,
        lsn: Lsn,
        what: &'static str,
    },
    /// A file of the store itself (control file, log) is unusable.
    BadFile { file: String, what: String },
    /// No space left on the device (MySQL 1114 or 1021).
    DiskFull,
    /// The space was dropped, or was never opened.
    SpaceGone(SpaceId),
    /// A space of that name already exists.
    SpaceExists(String),
    /// A request exceeds what the store can ever serve. `what` names the limit.
    TooLarge { what: &'static str, limit: u64 },
    /// The store is shutting down.
    ShuttingDown,
}

impl StoreError {
    /// Converts an I/O error on `what`. A full device, a quota and a file size limit become
    /// [`StoreError::DiskFull`].
    pub fn io(error: &io::Error, what: impl Into<String>) -> StoreError {
        use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
        if matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge) {
            return StoreError::DiskFull;
        }
        StoreError::Io {
            kind: error.kind(),
            what: format!("{}: {error}", what.into()),
        }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::Io { what, .. } => write!(f, "{what}"),
            StoreError::Corrupt { page, lsn, what } => {
                write!(
                    f,
                    "page {} of space {} is corrupt (LSN {lsn}): {what}",
                    page.page, page.space
                )
            }
            StoreError::BadFile { file, what } => write!(f, "{file}: {what}"),
            StoreError::DiskFull => write!(f, "no space left on device"),
            StoreError::SpaceGone(id) => write!(f, "space {id} does not exist"),
            StoreError::SpaceExists(name) => write!(f, "space file {name} exists"),
            StoreError::TooLarge { what, limit } => {
                write!(f, "{what} is above the limit of {limit}")
            }
            StoreError::ShuttingDown => write!(f, "the store is shutting down"),
        }
    }
}

impl std::error::Error for StoreError {}

/// Why a call did not finish: the caller has to wait and repeat it, or it failed.
#[derive(Debug)]
pub enum Stop<E = StoreError> {
    Wait(Wait),
    Error(E),
}

impl<E> Stop<E> {
    /// Converts the error into the error type of the crate above. A wait stays a wait.
    pub fn lift<F: From<E>>(self) -> Stop<F> {
        self.map_err(F::from)
    }

    /// As [`lift`](Self::lift), with a conversion function.
    pub fn map_err<F>(self, f: impl FnOnce(E) -> F) -> Stop<F> {
        match self {
            Stop::Wait(w) => Stop::Wait(w),
            Stop::Error(e) => Stop::Error(f(e)),
        }
    }
}

impl<E> From<E> for Stop<E> {
    fn from(error: E) -> Self {
        Stop::Error(error)
    }
}
