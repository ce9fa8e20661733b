//! What all sessions share about tables and accounts: snapshots of the schema, of accounts and of
//! statistics; metadata locks; and the named locks of GET_LOCK.
//!
//! A snapshot is an immutable object behind an `Arc`. A session keeps the schema and the account
//! that it used last, and compares their version numbers before each statement. So a statement
//! whose tables did not change counts no reference and takes no lock.
//!
//! *Invariant:* nothing here knows of pages or transactions, and nothing parses SQL text. The
//! engine fills the snapshots, and the layers above read them.
#![forbid(unsafe_code)]

pub mod account;
pub mod account_options;
pub mod codec;
pub mod foreign_key;
pub mod held;
pub mod histogram;
pub mod mdl;
pub mod privileges;
pub mod schema;
pub mod snapshot;
pub mod stats;
pub mod stored_expr;
pub mod user_locks;

pub use account::{
    Account, AccountId, AccountSnapshot, DatabaseNames, DynamicGrant, ProxyGrant, RoleGrant,
    TableGrant,
};
pub use account_options::{
    AccountOptions, CertificateRule, LockDays, PasswordOptions, PastPassword, ResourceLimits,
};
pub use foreign_key::{ForeignKeyDef, ReferentialAction};
pub use held::HeldPrivileges;
pub use histogram::{Histogram, HistogramBucket, HistogramType};
pub use mdl::{
    Mdl, MdlBusy, MdlExclusive, MdlSlot, MdlWaiting, SERVER_DDL, SERVER_WRITES, SessionWait,
    sharer_of,
};
pub use privileges::Privileges;
pub use schema::{
    ColumnDef, ColumnDefault, DatabaseDef, FulltextOptions, IndexDef, IndexId, IndexKind,
    IndexPart, Relation, TableDef, TableId, TableOptions, ViewAlgorithm, ViewCheck, ViewDef,
    Visibility,
};
pub use snapshot::{Catalog, SchemaSnapshot};
pub use stats::{IndexStats, TableStats};
pub use stored_expr::{BoundExprs, CheckDef, GeneratedColumn, StoredExpr};
pub use user_locks::{UserLockOutcome, UserLockSession, UserLockWait, UserLocks};
