//! The whole engine on one thread over a disk that forgets: transactions interleaved by a seed, power failures at any write, and a model that
//! says what must be there after each recovery.
//!
//! # Picture
//! ```text
//!  seed ─▶ actors (sessions): statements, savepoints ─┐
//!          definitions: CREATE, ALTER, TRUNCATE, ...  ├─▶ engine (inline I/O) ─▶ SimDisk ◀── faults: EIO, no space
//!          background steps, checkpoints, resizes ────┘                            │ crash: unsynced writes
//!            │ acknowledged commits                                                ▼ lost, torn, reordered; or a kill
//!          model: tables and rows as they must be     ◀── compare ──           recovered engine, perhaps cut short again
//!                                                                       └──▶ a copy with bits flipped (`damage`): right, or a clean error
//! ```
//! Every call of the engine gives a future when it has to wait, and the scheduler (`run`) decides whose turn is next; so a seed is one exact
//! sequence of calls and of writes.
//!
//! # Invariants
//! M1. *Durability*: every acknowledged commit is there after a crash. *Atomicity*: the one commit or definition that the crash interrupted is
//!     there whole or not at all; every other unfinished transaction has left nothing. With `flush_at_commit` 2 the last commits may be missing,
//!     but only the last ones, each whole.
//! M2. *Snapshots*: a consistent read, also one in many pieces, gives what was committed when its snapshot was opened, with the transaction's
//!     own changes; through any index, covering or not.
//! M3. *Index agreement*: CHECK TABLE finds nothing; no file is left without a table.
//! M4. *Locks*: a locking read gives the newest committed rows, and (REPEATABLE READ and above) all of them.
//! M5. *Uniqueness*: a row is refused exactly when another one has its key.
//! M6. Nobody waits for ever.
//! M7. *Tidiness*: when no snapshot is open and the background has nothing left to do, no row or entry is delete-marked any
//!     more, and every page of a table is free or belongs to a tree or to a row.
//!
//! A failure names its seed, which replays it. The disk itself lies in the store's crate ([`nfold_store::disk::sim`]), so that the crates below
//! the engine can test over it too.
#![forbid(unsafe_code)]

/// Whether every step is told on standard error.
pub static TELL: AtomicBool = AtomicBool::new(false);

macro_rules! tell {
    ($($args:tt)*) => {
        if $crate::TELL.load(std::sync::atomic::Ordering::Relaxed) {
            eprintln!($($args)*);
        }
    };
}

mod actor;
mod damage;
mod ddl;
mod faults;
mod model;
mod run;
mod select;
mod shape;
mod verify;
mod write;

use std::sync::atomic::AtomicBool;

pub use nfold_store::{FaultOn, SimDisk, SimRng};
pub use run::{Outcome, run};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds() {
        let mut total = Outcome::default();
        for seed in 1..=25 {
            let done = run(seed, 3).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
            assert!(done.crashes >= 3, "{done:?}");
            total.add(&done);
        }
        assert!(total.commits > 100, "{total:?}");
        assert!(total.definitions > 100, "{total:?}");
        assert!(total.recovered_unfinished > 10, "{total:?}");
        assert!(total.undo_files > 10, "{total:?}");
        assert!(total.damaged > 20, "{total:?}");
        assert!(total.refused < total.damaged / 2, "{total:?}");
    }

    #[test]
    fn a_seed_is_replayed_exactly() {
        for seed in 1..=5 {
            assert_eq!(run(seed, 4), run(seed, 4), "seed {seed}");
        }
    }
}
