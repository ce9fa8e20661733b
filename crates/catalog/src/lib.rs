//! Schema, privilege and statistics snapshots, found by version; metadata locks by announcement.
//!
//! Everything here is an immutable object behind an `Arc`. A session keeps the `Arc` it used last
//! and compares one version number per statement, so a warm statement counts no reference and takes
//! no lock.
//!
//! *Invariant:* nothing here knows of pages, transactions or SQL text; the engine fills the
//! snapshots, the layers above read them.
#![forbid(unsafe_code)]

pub mod account;
pub mod codec;
pub mod foreign_key;
pub mod mdl;
pub mod schema;
pub mod snapshot;
pub mod stats;
pub mod stored_expr;
pub mod user_locks;

pub use account::{Account, AccountSnapshot, Privileges};
pub use foreign_key::{ForeignKeyDef, ReferentialAction};
pub use mdl::{Mdl, MdlBusy, MdlExclusive, MdlSlot, MdlWaiting, SessionWait, sharer_of};
pub use schema::{
    ColumnDef, ColumnDefault, DatabaseDef, IndexDef, IndexId, IndexKind, IndexPart, TableDef,
    TableId, TableOptions, ViewAlgorithm, ViewCheck, ViewDef, Visibility,
};
pub use snapshot::{Catalog, SchemaSnapshot};
pub use stats::{IndexStats, TableStats};
pub use stored_expr::{BoundExprs, CheckDef, GeneratedColumn, StoredExpr};
pub use user_locks::{UserLockOutcome, UserLockSession, UserLockWait, UserLocks};
