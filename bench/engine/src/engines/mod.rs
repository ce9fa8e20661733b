//! What the benchmark asks of an engine. Every adapter opens its engine in the best configuration
//! that its documentation names for data that
//! fits in memory; each says in its header which.
//!
//! Durability is the same for all: a write is in the engine's log when the call returns (LMDB and
//! redb: in its pages), and nothing waits for a
//! sync. Every read sees one snapshot: a point read opens one of its own.

#[cfg(feature = "peers")]
pub mod fjall;
#[cfg(feature = "peers")]
#[allow(unsafe_code)]
pub mod lmdb;
pub mod nfold;
#[cfg(feature = "peers")]
pub mod redb;
#[cfg(feature = "peers")]
pub mod rocksdb;

use crate::data::Data;
use std::path::Path;

/// An engine with one table of rows and their secondary keys.
pub trait Engine: Sync + Sized {
    type Worker<'a>: Worker
    where
        Self: 'a;

    /// An empty engine in `dir`, with caches that hold everything: `cache_bytes`.
    fn open(dir: &Path, cache_bytes: u64) -> Self;

    /// Brings all rows in by the fastest sorted way there is.
    fn load(&mut self, data: &Data);

    /// What one thread works with. `number` counts from 0.
    fn worker(&self, number: u64) -> Self::Worker<'_>;

    /// Facts for the report: sizes, versions.
    fn about(&self) -> String {
        String::new()
    }
}

/// One thread's handle. Digests are the sums (xor) of [`crate::data::digest`] over the values read.
pub trait Worker {
    /// Reads one row; `None` if it is not there.
    fn point(&mut self, key: u64) -> Option<u64>;

    /// Reads `n` rows from `from` on: how many there were, and their digest.
    fn range(&mut self, from: u64, n: usize) -> (u64, u64);

    /// Reads all rows of these secondary keys: how many there were, and their digest.
    fn get_many(&mut self, groups: &[u64]) -> (u64, u64);

    /// Inserts a row with its secondary key, in a transaction of its own.
    fn insert(&mut self, key: u64, group: u64, value: &[u8]);

    /// Puts another value in the place of a row that is there; its secondary key stays.
    fn update(&mut self, key: u64, value: &[u8]);
}
