//! Snapshots, commit order, undo, purge and row locks.
#![forbid(unsafe_code)]
pub mod view;
