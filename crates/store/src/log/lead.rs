//! A worker that syncs the log itself, without the log thread. Two thread switches, to the log
//! thread and back, take as long as a sync of a fast device. With a single writer, no other commit
//! shares that cost.
//!
//! # Picture
//! ```text
//! worker:  commit ─ no more work ─ alone? ─ yes ─▶ write, sync ─▶ answer
//!                                     └───── no ──▶ wanted ─▶ log thread
//! ```
//! # Invariants
//! - L1: a worker syncs the log itself only if the log thread has no work and no other thread has
//!   deferred a request. It never waits for the log's mutex.
//! - L2: requests made during such a sync go to the log thread as usual. It is woken and finds the
//!   mutex locked, just as a request finds a sync in progress. So a commit waits for at most two
//!   syncs. The next commit does not sync itself, because more log is wanted than is durable.
//! - L3: a worker that must not sync the log itself requests the sync from the log thread.
//! # Concurrency
//! [`SyncHistory`] belongs to the holder of the log's mutex. `wanted` is read under that mutex,
//! too. A request made at that moment is either seen, or its sender wakes the log thread, which
//! waits for the mutex. Both are correct.
//! # Not here
//! Whether the worker has other work. Its event loop knows that.

use super::Log;
use crate::page::Lsn;
use std::time::Duration;

/// The longest usual time of a write and a sync for which a worker syncs the log itself. It is half
/// of the time for which one statement may delay the next one on the same worker. Going through the
/// log thread takes 50 to 100 us more, which does not matter on a slower device.
const MOST: Duration = Duration::from_millis(1);
/// The number of consecutive syncs without another request before a worker syncs the log itself.
/// With several writers, the log thread already has the next group of commits when a sync ends, and
/// does not have to wait for the mutex.
const MIN_QUIET_SYNCS: u32 = 32;

/// Statistics of the recent syncs.
#[derive(Default)]
pub(super) struct SyncHistory {
    /// The moving average of the time of a write and a sync.
    usual: Duration,
    /// The number of syncs since the last one during which another sync was requested.
    quiet: u32,
}

impl SyncHistory {
    /// Records a sync that `took` this time, including the write before it. `more`: another sync
    /// was requested meanwhile.
    pub(super) fn synced(&mut self, took: Duration, more: bool) {
        self.usual = (self.usual * 7 + took) / 8;
        self.quiet = if more {
            0
        } else {
            self.quiet.saturating_add(1)
        };
    }

    fn allows_leading(&self) -> bool {
        self.quiet >= MIN_QUIET_SYNCS && self.usual <= MOST
    }
}

impl Log {
    /// Makes the log durable up to `lsn`, which must be in the ring, on this thread, if L1 permits.
    /// Returns whether it did.
    pub(super) fn lead(&self, lsn: Lsn) -> bool {
        let Some(mut writer) = self.writer.try_lock() else {
            return false;
        };
        let durable = self.durable();
        if durable >= lsn {
            return true;
        }
        let no_request_waits =
            self.wanted.highest() <= durable && self.deferred.highest() <= durable;
        if self.horizon() < lsn || !no_request_waits || !writer.history.allows_leading() {
            return false;
        }
        self.sync_once(&mut writer);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worker_syncs_only_if_syncs_are_short_and_unshared() {
        let (short, long) = (Duration::from_micros(150), Duration::from_millis(20));
        let mut history = SyncHistory::default();
        for _ in 0..MIN_QUIET_SYNCS {
            assert!(!history.allows_leading());
            history.synced(short, false);
        }
        assert!(history.allows_leading());
        history.synced(short, true);
        for _ in 0..MIN_QUIET_SYNCS {
            assert!(
                !history.allows_leading(),
                "another sync was requested recently"
            );
            history.synced(short, false);
        }
        assert!(history.allows_leading());
        history.synced(long, false);
        assert!(!history.allows_leading(), "the device is slow");
        for _ in 0..40 {
            history.synced(short, false);
        }
        assert!(history.allows_leading());
    }
}
