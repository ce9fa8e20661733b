//! Simulated disk, crash schedules, model checks.
//!
//! The disk itself lies in the store's crate ([`nfold_store::disk::sim`]), so that the crates below the engine can test over
//! it without depending on this one.

pub use nfold_store::{FaultOn, SimDisk, SimRng};
