//! Sync requests that a worker defers until it has no other work, so that all commits of one turn
//! of its event loop share a sync.
//!
//! # Picture
//! ```text
//! worker:  commit  commit  commit  no more work ─ submit ─▶ wanted ─▶ log thread wakes once
//!             └───────┴───────┴── HELD: the highest LSN
//! ```
//! # Invariants
//! - G1: a thread that defers requests submits them before it sleeps, because its commits wait for
//!   them.
//! - G2: a request that was deferred to another thread does not depend on when that thread submits.
//!   Its LSN is recorded in [`Log::deferred`]. If no thread submits for about the time of a sync,
//!   the log thread syncs up to that LSN. A log thread that sleeps, because nothing was requested
//!   recently, is woken for this ([`nfold_sync::DeferredTarget`]).
//! # Concurrency
//! `HELD` is thread-local. If several threads have deferred requests, the last one that submits
//! requests a sync for all of them ([`nfold_sync::RequestCoalescer`]).

use super::{LAZY_SYNC, Log};
use crate::page::Lsn;
use nfold_sync::Submission;
use std::cell::Cell;
use std::time::{Duration, Instant};

thread_local! {
    static GATHERS: Cell<bool> = const { Cell::new(false) };
    /// The LSN up to which this thread's commits need the log durable; 0 if no request is deferred.
    static HELD: Cell<Lsn> = const { Cell::new(0) };
}

/// From now on, this thread defers its sync requests until it calls [`crate::Store::finish_syncs`],
/// which it must do before it sleeps (G1). For worker threads, which use a single store.
pub fn gather_syncs() {
    GATHERS.set(true);
}

/// Whether this thread has deferred requests.
#[inline]
pub fn holds_syncs() -> bool {
    HELD.get() != 0
}

/// How long the log thread waits for another thread to submit the requests that were deferred to
/// it: as long as the last sync took, within bounds. So this wait at most doubles the time of a
/// commit.
pub(super) struct DeferralTimer {
    synced_at: Instant,
    took: Duration,
    /// When the oldest deferred request was first seen.
    since: Option<Instant>,
}

const MIN_DEFERRAL: Duration = Duration::from_millis(1);
const MAX_DEFERRAL: Duration = Duration::from_millis(20);

impl DeferralTimer {
    pub(super) fn new() -> DeferralTimer {
        DeferralTimer {
            synced_at: Instant::now(),
            took: MIN_DEFERRAL,
            since: None,
        }
    }

    /// Records that a sync that began at `begun` has ended.
    pub(super) fn synced(&mut self, begun: Instant) {
        self.synced_at = Instant::now();
        self.took = self.synced_at - begun;
        self.since = None;
    }

    /// When the last sync ended.
    pub(super) fn synced_at(&self) -> Instant {
        self.synced_at
    }

    fn time(&self) -> Duration {
        self.took.clamp(MIN_DEFERRAL, MAX_DEFERRAL)
    }
}

impl Log {
    /// Requests a sync of the log up to `lsn`, at once or when this thread has no other work.
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

    /// Submits the requests that this thread has deferred. If it `may_block` and no other thread is
    /// affected, it may sync the log itself instead ([`lead`](super::lead)).
    pub(crate) fn request_held(&self, may_block: bool) {
        let lsn = HELD.replace(0);
        if lsn == 0 {
            return;
        }
        match self.gathering.submit(lsn) {
            Submission::Deferred => self.defer(lsn),
            Submission::Sole if may_block && self.lead(lsn) => {}
            Submission::Sole => self.request_beyond_durable(lsn),
            Submission::Request(lsn) => self.request_beyond_durable(lsn),
        }
    }

    /// Requests a sync of the log up to `lsn` for which no thread waits (G2).
    pub(crate) fn sync_behind(&self, lsn: Lsn) {
        if !self.inline && lsn > self.durable() {
            self.defer(lsn);
        }
    }

    fn request_beyond_durable(&self, lsn: Lsn) {
        if lsn > self.durable() {
            self.request_now(lsn);
        }
    }

    /// Leaves the request to another thread, which will submit. The log thread makes sure that this
    /// thread's commits do not depend on when it does (G2).
    fn defer(&self, lsn: Lsn) {
        if self.deferred.raise(lsn) {
            self.kick();
        }
    }

    /// Called when the log thread has no work. Sleeps until there may be some.
    pub(super) fn rest(&self, timer: &mut DeferralTimer) {
        let deferred = self.deferred.highest();
        if deferred > self.durable() {
            let since = *timer.since.get_or_insert_with(Instant::now);
            match timer.time().checked_sub(since.elapsed()) {
                Some(rest) => std::thread::park_timeout(rest),
                None => {
                    self.wanted.request(deferred);
                }
            }
            return;
        }
        timer.since = None;
        if timer.synced_at.elapsed() < timer.time() {
            std::thread::park_timeout(timer.time());
            return;
        }
        if self.deferred.may_sleep(self.durable()) {
            std::thread::park_timeout(LAZY_SYNC / 10);
        }
        self.deferred.awake();
    }
}
