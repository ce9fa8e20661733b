//! Snapshots, commit order, undo, purge and row locks.
#![forbid(unsafe_code)]

#[cfg(not(loom))]
mod error;
#[cfg(not(loom))]
pub mod locks;
pub mod view;

#[cfg(not(loom))]
pub use error::{Step, TxnError};
