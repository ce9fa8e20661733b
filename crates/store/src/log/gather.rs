//! Requests for a sync that a thread holds back until it has nothing else to do, so that all commits of its turn share one sync.
//!
//! # Picture
//! ```text
//! worker:  commit  commit  commit  nothing left to do ─ hand over ─▶ wanted ─▶ log thread wakes once
//!             └───────┴───────┴── HELD: the highest LSN
//! ```
//! # Invariants
//! - G1: a thread that gathers hands over what it holds before it sleeps: its waits depend on it.
//! - G2: who leaves its request to another does not depend on when that one hands over: what was left is in [`Log::left`], and the log thread
//!   syncs it when nobody has asked for about as long as the device takes for a sync. One that dozes, because nothing was asked for lately, is
//!   woken for that ([`nfold_sync::DeferredTarget`]).
//! # Concurrency
//! `HELD` is the thread's own. Of several threads that hold something the last one asks for all ([`nfold_sync::RequestCoalescer`]).

use super::{LAZY_SYNC, Log};
use crate::page::Lsn;
use nfold_sync::Submission;
use std::cell::Cell;
use std::time::{Duration, Instant};

thread_local! {
    static GATHERS: Cell<bool> = const { Cell::new(false) };
    /// Up to where this thread's commits want the log durable; 0: nothing is held.
    static HELD: Cell<Lsn> = const { Cell::new(0) };
}

/// From now on this thread's requests for a durable log are held back until it calls [`crate::Store::settle_syncs`], which it does before it
/// sleeps (G1). For a worker of one store.
pub fn gather_syncs() {
    GATHERS.set(true);
}

/// Whether this thread holds requests back.
#[inline]
pub fn holds_syncs() -> bool {
    HELD.get() != 0
}

/// How long the log thread waits for whoever is to ask for what others have left to it: what the device's last sync took, within bounds, so that
/// waiting at most doubles what a commit takes.
pub(super) struct Patience {
    synced_at: Instant,
    took: Duration,
    /// Since when something that was left waits.
    since: Option<Instant>,
}

const LEAST_PATIENCE: Duration = Duration::from_millis(1);
const MOST_PATIENCE: Duration = Duration::from_millis(20);

impl Patience {
    pub(super) fn new() -> Patience {
        Patience {
            synced_at: Instant::now(),
            took: LEAST_PATIENCE,
            since: None,
        }
    }

    /// A sync is over that began at this moment.
    pub(super) fn synced(&mut self, begun: Instant) {
        self.synced_at = Instant::now();
        self.took = self.synced_at - begun;
        self.since = None;
    }

    /// When the last sync was over.
    pub(super) fn synced_at(&self) -> Instant {
        self.synced_at
    }

    fn time(&self) -> Duration {
        self.took.clamp(LEAST_PATIENCE, MOST_PATIENCE)
    }
}

impl Log {
    /// Asks for a durable log up to `lsn`, now or when this thread has nothing else to do.
    pub(super) fn request(&self, lsn: Lsn) {
        if !GATHERS.get() {
            return self.request_now(lsn);
        }
        let held = HELD.get();
        if held == 0 {
            self.gathering.enter();
        }
        HELD.set(held.max(lsn));
    }

    pub(super) fn request_now(&self, lsn: Lsn) {
        if self.wanted.request(lsn) {
            self.kick();
        }
    }

    /// Hands over what this thread has held back, or makes it durable itself where it `may_block` and that keeps nobody ([`lead`](super::lead)).
    pub(crate) fn request_held(&self, may_block: bool) {
        let lsn = HELD.replace(0);
        if lsn == 0 {
            return;
        }
        match self.gathering.submit(lsn) {
            Submission::Deferred => self.leave(lsn),
            Submission::Sole if may_block && self.lead(lsn) => {}
            Submission::Sole => self.request_beyond_durable(lsn),
            Submission::Request(lsn) => self.request_beyond_durable(lsn),
        }
    }

    fn request_beyond_durable(&self, lsn: Lsn) {
        if lsn > self.durable() {
            self.request_now(lsn);
        }
    }

    /// Another thread will ask; the log thread sees to it that this one's commits do not depend on when (G2).
    fn leave(&self, lsn: Lsn) {
        if self.left.raise(lsn) {
            self.kick();
        }
    }

    /// The log thread has nothing to do. Sleeps until it may have; `patience`: see [`Patience`].
    pub(super) fn rest(&self, patience: &mut Patience) {
        let left = self.left.highest();
        if left > self.durable() {
            let since = *patience.since.get_or_insert_with(Instant::now);
            match patience.time().checked_sub(since.elapsed()) {
                Some(rest) => std::thread::park_timeout(rest),
                None => {
                    self.wanted.request(left);
                }
            }
            return;
        }
        patience.since = None;
        if patience.synced_at.elapsed() < patience.time() {
            std::thread::park_timeout(patience.time());
            return;
        }
        if self.left.may_sleep(self.durable()) {
            std::thread::park_timeout(LAZY_SYNC / 10);
        }
        self.left.awake();
    }
}
