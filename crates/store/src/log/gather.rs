//! Requests for a sync that a thread holds back until it has nothing else to do, so that all commits of its turn share one sync.
//!
//! # Picture
//! ```text
//! worker:  commit  commit  commit  nothing left to do ─ hand over ─▶ wanted ─▶ log thread wakes once
//!             └───────┴───────┴── HELD: the highest LSN
//! ```
//! # Invariants
//! - G1: a thread that gathers hands over what it holds before it sleeps, and soon in any case: its waits depend on it.
//! # Concurrency
//! `HELD` is the thread's own. Of several threads that hold something the last one asks for all ([`nfold_sync::Gathering`]).

use super::Log;
use crate::page::Lsn;
use std::cell::Cell;
use std::sync::atomic::Ordering::*;

thread_local! {
    static GATHERS: Cell<bool> = const { Cell::new(false) };
    /// Up to where this thread's commits want the log durable; 0: nothing is held.
    static HELD: Cell<Lsn> = const { Cell::new(0) };
}

/// From now on this thread's requests for a durable log are held back until it calls [`crate::Store::ask_for_syncs`], which it does before it
/// sleeps (G1). For a worker of one store.
pub fn gather_syncs() {
    GATHERS.set(true);
}

/// Whether this thread holds requests back.
#[inline]
pub fn holds_syncs() -> bool {
    HELD.get() != 0
}

impl Log {
    /// Asks for a durable log up to `lsn`, now or when this thread has nothing else to do.
    pub(super) fn request(&self, lsn: Lsn) {
        if !GATHERS.get() {
            return self.request_now(lsn);
        }
        let held = HELD.get();
        if held == 0 {
            self.gathering.hold();
        }
        HELD.set(held.max(lsn));
    }

    fn request_now(&self, lsn: Lsn) {
        if self.wanted.fetch_max(lsn, AcqRel) < lsn {
            self.kick();
        }
    }

    /// Hands over what this thread has held back.
    pub(crate) fn request_held(&self) {
        let lsn = HELD.replace(0);
        if lsn == 0 {
            return;
        }
        if let Some(lsn) = self.gathering.hand_over(lsn)
            && lsn > self.durable()
        {
            self.request_now(lsn);
        }
    }
}
