//! Transactions over pages: snapshots, commit order, undo, purge and row locks. The engine calls
//! it.
//!
//! Keys and row images are bytes here. One write, as the engine makes it:
//!
//! 1. [`Trx::assign_id`], then find the row; [`Trx::lock`] it (its own transaction id, if
//!    [active](TrxSystem::is_active), is a lock).
//! 2. A mini-transaction: latch the leaf, [`Trx::prepare_undo`]: from here on nothing waits.
//! 3. [`Trx::append_undo`] gives the undo pointer; the row is stored with it and the id; the
//!    mini-transaction commits.
//! 4. [`Trx::commit`] appends the commit record, whose end is the place in the commit order; or
//!    [`Trx::rollback`] walks back. [`Trx::prepare`] may come before, and a restart in between.
//!
//! One read: [`Trx::snapshot`]. If the snapshot [sees](view::Snapshot::sees) a row's transaction
//! id, the row is visible. Otherwise [`TrxSystem::find_visible`] walks the undo log.
//!
//! In the background: [`TrxSystem::purge_step`] and [`TrxSystem::rollback_step`], with the engine's
//! [`RowApplier`].
//!
//! # Not here
//! SQL types, table definitions, metadata locks, deadlines.
#![forbid(unsafe_code)]

#[cfg(not(loom))]
mod applier;
#[cfg(not(loom))]
mod error;
#[cfg(not(loom))]
pub mod locks;
#[cfg(not(loom))]
mod prepared;
#[cfg(not(loom))]
mod purge;
#[cfg(not(loom))]
mod savepoints;
#[cfg(not(loom))]
mod system;
#[cfg(all(test, not(loom)))]
mod tests;
#[cfg(not(loom))]
mod trx;
#[cfg(not(loom))]
mod turn;
#[cfg(not(loom))]
pub mod undo;
#[cfg(not(loom))]
mod version;
pub mod view;

#[cfg(not(loom))]
pub use applier::RowApplier;
#[cfg(not(loom))]
pub use error::{Step, TxnError};
#[cfg(not(loom))]
pub use prepared::{Prepared, RecoveredTrx};
#[cfg(not(loom))]
pub use purge::{PurgeProgress, TrxStatus};
#[cfg(not(loom))]
pub use system::{TrxOptions, TrxRecovery, TrxSystem, block_on};
#[cfg(not(loom))]
pub use trx::{FlushAtCommit, Isolation, Trx, TrxAbout};
#[cfg(not(loom))]
pub use version::Visible;
