//! Group commit: how long the log thread waits for company before it begins a sync.
//!
//! # Picture
//! ```text
//!  at once:      ├── A ──┤├── B ──┤├── A ──┤├── B ──┤    64 writers are two crowds of 32 that take turns: two syncs a commit
//!  with company: ├─ A,B ─┤··├─ A,B ─┤··├─ A,B ─┤          ··: A is back in a moment; then one sync and that moment
//! ```
//! Whom a sync has answered comes back soon, most often. As many as were answered or waiting at its end are expected for the next one.
//!
//! # Invariants
//! - G1: a sync begins no later than a [`SHARE`]th of a sync after the one before it ended, if somebody waited then. So a commit waits for
//!   2 + 1/`SHARE` syncs at most: the rest of one, the wait for company, the next one.
//! - G2: nobody waits for company that never comes: each time that more was lost than won, the next times are left out, twice as many
//!   as the time before.
//! - G3: a writer that is alone waits for nobody.
//! # Concurrency
//! `count` and `enough`: store-then-load on both sides, all SeqCst, so that either the asker sees how many are waited for, or the log thread
//! sees the ask. [`Pace`] is the log thread's own.

use nfold_sync::CachePadded;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// The wait for company lasts no longer than this part of a sync.
const SHARE: u32 = 4;
/// Faster devices are not waited for: the clock is too coarse.
const MIN_SYNC: Duration = Duration::from_micros(200);
/// At most 2 to this power syncs are begun without a look for company.
const MAX_MISSES: u32 = 6;

/// How many have asked for a sync so far.
#[derive(Default)]
pub(super) struct Asks {
    count: CachePadded<AtomicU64>,
    /// So many asks are waited for; 0: the log thread does not wait for company.
    enough: AtomicU64,
}

impl Asks {
    /// Somebody waits for a sync. `first`: nobody has asked for as much log. Gives whether the log thread is to be woken.
    pub(super) fn add(&self, first: bool) -> bool {
        let count = self.count.fetch_add(1, SeqCst) + 1;
        match self.enough.load(SeqCst) {
            0 => first,
            enough => count >= enough,
        }
    }

    pub(super) fn count(&self) -> u64 {
        self.count.load(SeqCst)
    }

    /// From now on [`add`](Self::add) says yes from `enough` asks on; 0: as usual.
    pub(super) fn wait_for(&self, enough: u64) {
        self.enough.store(enough, SeqCst);
    }
}

/// What the log thread remembers of its last syncs.
pub(super) struct Pace {
    /// Asks when the last sync began.
    cut: u64,
    /// Asks that it answered, and those that waited when it ended.
    crowd: u64,
    ended: Instant,
    /// How long a sync takes, smoothed; zero: not known yet.
    sync: Duration,
    misses: u32,
    /// Syncs to be begun at once (G2).
    skip: u32,
}

impl Pace {
    pub(super) fn new(now: Instant) -> Pace {
        Pace {
            cut: 0,
            crowd: 0,
            ended: now,
            sync: Duration::ZERO,
            misses: 0,
            skip: 0,
        }
    }

    /// A sync is due, and there were `asks` so far: how many to wait for, and until when. `None`: it begins at once.
    pub(super) fn plan(&mut self, asks: u64, now: Instant) -> Option<(u64, Instant)> {
        let (enough, until) = (self.cut + self.crowd, self.ended + self.sync / SHARE);
        if self.sync < MIN_SYNC || asks >= enough || now >= until {
            return None;
        }
        if self.skip > 0 {
            self.skip -= 1;
            return None;
        }
        Some((enough, until))
    }

    /// The wait for company is over: there were `before` asks at its beginning and are `after` now. Each that came saves a sync, and each that is
    /// there has lost the wait.
    pub(super) fn gathered(&mut self, before: u64, after: u64, waited: Duration) {
        let times = |d: Duration, n: u64| d.as_nanos() * u128::from(n);
        if times(self.sync, after - before) >= times(waited, after - self.cut) {
            self.misses = 0;
        } else {
            self.misses = (self.misses + 1).min(MAX_MISSES);
            self.skip = 1 << self.misses;
        }
    }

    /// A sync is over. `cut`: asks when it began; `asks`: now.
    pub(super) fn synced(&mut self, cut: u64, asks: u64, began: Instant, ended: Instant) {
        let took = ended.duration_since(began);
        self.sync = match self.sync {
            Duration::ZERO => took,
            sync => (sync * 7 + took) / 8,
        };
        self.crowd = asks - self.cut;
        (self.cut, self.ended) = (cut, ended);
    }
}

#[cfg(test)]
mod tests;
