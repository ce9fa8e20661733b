//! Counters and histograms without shared writes: each worker adds to its own padded shard, and
//! readers sum the shards.
//!
//! # Invariants
//! - I1: two workers with different shards never write to the same cache line.
//! - I2: a sum includes everything that was added before it started. Sums of several counters are
//!   not a consistent snapshot.
//! # Cost
//! An addition is one relaxed `fetch_add` on the worker's own line.
#![forbid(unsafe_code)]

pub mod contention;
pub mod digests;
mod histogram;
mod reset_sums;
mod session_counters;
mod sharded;
mod statement_kinds;
mod table_io;

pub use histogram::{Histogram, Summary};
pub use reset_sums::{CountRows, ResetSums};
pub use session_counters::{
    AllSessionCounters, CounterValues, OwnCounters, SessionCounters, StatusCounter,
};
pub use sharded::{SHARDS, Sharded, set_shard, shard};
pub use statement_kinds::StatementKind;
pub use table_io::{IndexCalls, OwnTableIo, TableCall, TableCalls, TableIo};
