//! FLUSH TABLES WITH READ LOCK and LOCK INSTANCE FOR BACKUP, built on metadata locks.
//!
//! The statements and their announcements are in `statement/server_locks.rs`.
//!
//! # Picture
//! ```text
//!                                    announces                   claims, shared with its like
//!  INSERT, UPDATE .., COMMIT         SERVER_WRITES
//!  LOCK TABLES ... WRITE             SERVER_WRITES
//!  CREATE TABLE, GRANT ..            SERVER_WRITES, SERVER_DDL
//!  FLUSH TABLES WITH READ LOCK                                   SERVER_WRITES
//!  LOCK INSTANCE FOR BACKUP                                      SERVER_DDL
//! ```
//! # Invariants
//! G1. A statement announces itself until its end only, so an idle transaction with changes does
//!     not block FLUSH TABLES WITH READ LOCK; but its COMMIT waits for UNLOCK TABLES.
//!     Under LOCK TABLES ... WRITE the locks announce it until UNLOCK TABLES.
//! G2. A claim stays while it waits for the statements that run, so new ones do not starve it.
//!
//! # Cost
//! A statement that changes rows stores one word, in its session's own slot.

use std::sync::{Arc, Weak};

use nfold_catalog::{MdlExclusive, MdlSlot};
use parking_lot::Mutex;

/// The claim that all holders of one lock share.
#[derive(Default)]
pub(crate) struct ServerLock(pub(crate) Mutex<Weak<MdlExclusive>>);

impl ServerLock {
    /// Whether a session holds the lock, or waits for it.
    pub(crate) fn is_claimed(&self) -> bool {
        self.0.lock().strong_count() > 0
    }
}

/// One session's share of a lock.
pub(crate) struct HeldServerLock {
    pub(crate) claim: Arc<MdlExclusive>,
    /// Tells the search for deadlocks that the session shares the claim.
    pub(crate) _announced: MdlSlot,
}

/// The locks of one session.
#[derive(Default)]
pub(crate) struct ServerLocks {
    /// FLUSH TABLES WITH READ LOCK
    pub(crate) reads_only: Option<HeldServerLock>,
    /// LOCK INSTANCE FOR BACKUP
    pub(crate) backup: Option<HeldServerLock>,
    /// A statement that changes definitions runs: its announcement ends with it, not with the
    /// transactions inside of it.
    pub(crate) in_ddl: bool,
    /// The open transaction has changed tables that are not temporary.
    pub(crate) changed: bool,
}
