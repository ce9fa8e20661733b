//! A deterministic simulation of the whole engine: one thread, a disk that loses unsynced writes,
//! transactions interleaved by a seed, power failures at any write, and a model of the state that
//! must exist after each recovery.
//!
//! # Picture
//! ```text
//!  seed ─▶ actors (sessions): statements, savepoints ─┐
//!          DDL: CREATE, ALTER, TRUNCATE, ...          ├─▶ engine (inline I/O) ─▶ SimDisk
//!          background steps, checkpoints, resizes ────┘                 faults: EIO, no space │
//!            │ acknowledged commits           crash: unsynced writes lost, torn, reordered    │
//!            │                                or a kill of the process                        ▼
//!          model: tables and rows ◀── compare ── recovered engine; recovery may crash, too
//!                                  └── a copy with flipped bits (`damage`): correct, or an error
//! ```
//! Every call of the engine returns a future if it has to wait, and the scheduler (`run`) decides
//! which actor continues. So a seed determines the exact sequence of calls and writes.
//!
//! # Invariants
//! M1. *Durability*: every acknowledged commit survives a crash. *Atomicity*: the commit or DDL
//! statement that the crash interrupted has either all of its effects or none, and no other
//! unfinished transaction has any. With `flush_at_commit` 2, the most recent commits may be lost,
//! but only the most recent ones, and each as a whole.
//! M2. *Snapshots*: a consistent read, even one in many steps, returns the rows committed when its
//! snapshot was opened, with the transaction's own changes, through any index, covering or not.
//! M3. *Index consistency*: CHECK TABLE finds no problem, and every file belongs to a table.
//! M4. *Locks*: a locking read returns the newest committed rows, and at REPEATABLE READ and above
//! all of them.
//! M5. *Uniqueness*: a row is rejected if and only if another row has its key.
//! M6. *Liveness*: no transaction waits for ever.
//! M7. *Cleanup*: when no snapshot is open and no background work is left, no row or entry is
//! delete-marked any more, and every page of a table is free or belongs to a tree or to a row.
//! M8. *Foreign keys*: no committed or recovered state has a child without a parent. A change of a
//! child or a parent is refused if and only if the newest rows forbid it, and a cascade finds every
//! child (`foreign`).
//! M9. *Prepared transactions*: one that was acknowledged is listed after each crash and shutdown
//! until it is committed or rolled back; its changes are invisible and its rows locked until then.
//! The one whose preparation or end a crash interrupted is prepared, or is as before or after it
//! (`branches`).
//!
//! A failure names its seed, which replays it. The simulated disk is in the store's crate
//! ([`nfold_store::disk::sim`]), so that the crates below the engine can use it in their tests.
#![forbid(unsafe_code)]

/// Whether every step is logged to standard error.
pub static TELL: AtomicBool = AtomicBool::new(false);

macro_rules! tell {
    ($($args:tt)*) => {
        if $crate::TELL.load(std::sync::atomic::Ordering::Relaxed) {
            eprintln!($($args)*);
        }
    };
}

mod actor;
mod branches;
mod damage;
mod ddl;
mod faults;
mod foreign;
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
    fn seeds_pass() {
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
        assert!(
            total.branches > 20 && total.recovered_branches > 20,
            "{total:?}"
        );
        assert!(total.damaged > 20, "{total:?}");
        assert!(total.refused < total.damaged / 2, "{total:?}");
    }

    #[test]
    fn seed_replays_identically() {
        for seed in 1..=5 {
            assert_eq!(run(seed, 4), run(seed, 4), "seed {seed}");
        }
    }
}
