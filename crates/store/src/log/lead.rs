//! A worker that syncs the log itself: waking the log thread and being woken by it takes as long as a fast device's sync, and with one writer
//! nobody shares that.
//!
//! # Picture
//! ```text
//! worker:  commit ─ nothing left to do ─ alone? ─ yes ─▶ write, sync ─▶ answer
//!                                          └───── no ──▶ wanted ─▶ log thread
//! ```
//! # Invariants
//! - L1: a thread leads only where the log thread has nothing to do and nobody else holds a request back; it never waits for the log's mutex.
//! - L2: whatever is asked for while a thread leads is the log thread's, which is woken as ever and finds the mutex taken, as the asker would find a
//!   sync under way: a commit waits for two syncs at most. The next one does not lead, because more is wanted than is durable.
//! - L3: a thread that may not lead asks as it would otherwise.
//! # Concurrency
//! [`Company`] belongs to the holder of the log's mutex. That more is wanted is read there, too; a request that is made at that moment is
//! either found, or its asker wakes the log thread, which waits for the mutex: nothing depends on which.
//! # Not here
//! Whether a worker has anything else to do while it is blocked: its event loop knows.

use super::Log;
use crate::page::Lsn;
use std::time::Duration;

/// A write and a sync of the log by a worker may usually take so long: half of what a statement may keep a worker from the next one. Handing over takes
/// 50 to 100 us, which a slower device hides.
const MOST: Duration = Duration::from_millis(1);
/// Syncs in a row during which nobody asked for another, before a thread leads: with several writers the log thread has the next group waiting
/// when a sync ends, and does not have to be handed the mutex first.
const QUIET_SYNCS: u32 = 32;

/// What the last syncs were like.
#[derive(Default)]
pub(super) struct Company {
    /// What a write and a sync take: a moving average.
    usual: Duration,
    /// Syncs since one during which somebody asked for more.
    quiet: u32,
}

impl Company {
    /// A sync is over that `took` so long, with the write before it. `more`: another one is wanted already.
    pub(super) fn synced(&mut self, took: Duration, more: bool) {
        self.usual = (self.usual * 7 + took) / 8;
        self.quiet = if more {
            0
        } else {
            self.quiet.saturating_add(1)
        };
    }

    fn allows_leading(&self) -> bool {
        self.quiet >= QUIET_SYNCS && self.usual <= MOST
    }
}

impl Log {
    /// Makes the log durable up to `lsn`, which is in the ring, on this thread, if nobody else would do that or wait for it (L1). Whether it did.
    pub(super) fn lead(&self, lsn: Lsn) -> bool {
        let Some(mut writer) = self.writer.try_lock() else {
            return false;
        };
        let durable = self.durable();
        if durable >= lsn {
            return true;
        }
        let nobody_waits = self.wanted.highest() <= durable && self.left.highest() <= durable;
        if self.horizon() < lsn || !nobody_waits || !writer.company.allows_leading() {
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
    fn only_short_syncs_that_nobody_else_waited_for_are_led() {
        let (short, long) = (Duration::from_micros(150), Duration::from_millis(20));
        let mut company = Company::default();
        for _ in 0..QUIET_SYNCS {
            assert!(!company.allows_leading());
            company.synced(short, false);
        }
        assert!(company.allows_leading());
        company.synced(short, true);
        for _ in 0..QUIET_SYNCS {
            assert!(!company.allows_leading(), "somebody waited");
            company.synced(short, false);
        }
        assert!(company.allows_leading());
        company.synced(long, false);
        assert!(!company.allows_leading(), "the device is slow");
        for _ in 0..40 {
            company.synced(short, false);
        }
        assert!(company.allows_leading());
    }
}
