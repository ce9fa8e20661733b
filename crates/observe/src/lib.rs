//! Counters and histograms that writers do not share: one padded shard per worker, summed when somebody looks.
//!
//! # Invariants
//! - I1: two workers with different shards never write the same cache line.
//! - I2: a sum is at least what had been added before it started; sums of several counters are not one moment.
//! # Cost
//! An addition is one relaxed `fetch_add` on a line of the own worker.
#![forbid(unsafe_code)]

pub mod contention;
pub mod digests;
mod histogram;
mod sharded;

pub use histogram::{Histogram, Summary};
pub use sharded::{SHARDS, Sharded, set_shard, shard};
