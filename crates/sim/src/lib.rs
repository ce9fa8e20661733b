//! The whole engine on one thread over a disk that forgets: transactions interleaved by a seed, power failures at any write, and a model that
//! says what must be there after each recovery.
//!
//! # Picture
//! ```text
//!  seed ─▶ actors (sessions), each a transaction of random row changes ─▶ engine (inline I/O) ─▶ SimDisk
//!            │ acknowledged commits                                                               │ crash: unsynced writes
//!            ▼                                                                                    ▼ lost, torn, reordered
//!          model: rows as they must be                    ◀── compare ──                  recovered engine
//! ```
//! # Invariants
//! M1. *Durability*: every acknowledged commit is there after a crash. *Atomicity*: the one commit that the crash interrupted is there whole or
//!     not at all; every other unfinished transaction has left nothing.
//! M2. *Snapshots*: a transaction that reads twice reads the same, and it reads what was committed when it began, with its own changes.
//! M3. *Index agreement*: CHECK TABLE finds nothing.
//!
//! A failure names its seed, which replays it. The disk itself lies in the store's crate ([`nfold_store::disk::sim`]), so that the crates below
//! the engine can test over it too.

mod actor;
mod model;
mod run;

pub use nfold_store::{FaultOn, SimDisk, SimRng};
pub use run::{Outcome, run};
