//! The store's reports about itself: the result of recovery, and the counters of `SHOW STATUS`.

use crate::core::{Core, Count};
use crate::page::{Lsn, PageId, SpaceId};
use crate::pool_resize::ResizeStatus;
use std::sync::atomic::Ordering;

/// The current phase of recovery.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum RecoveryPhase {
    /// Torn pages are repaired from the doublewrite file.
    RepairPages,
    Redo,
    /// Recovered pages are written.
    Flush,
    Done,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct RecoveryProgress {
    pub phase: RecoveryPhase,
    /// The LSN of the last checkpoint.
    pub from_lsn: Lsn,
    /// Redo has been applied up to this LSN.
    pub at_lsn: Lsn,
    /// The end of the log; 0 while unknown.
    pub end_lsn: Lsn,
}

/// The findings of opening a store.
#[derive(Clone, Debug, Default)]
pub struct RecoveryReport {
    /// The directory was empty, and a new store was created.
    pub created: bool,
    /// The last shutdown was clean, so there was no redo to apply.
    pub clean: bool,
    pub checkpoint_lsn: Lsn,
    /// The end of the last complete mini-transaction in the log.
    pub end_lsn: Lsn,
    pub redo_records: u64,
    pub repaired_pages: u64,
    /// Set if the log is damaged: valid blocks follow its end. Names the file and the offset.
    pub log_damage: Option<String>,
    /// The pages to which redo could not be applied.
    pub corrupt_pages: Vec<PageId>,
    /// The spaces that the log names and that have no file, because they were dropped.
    pub missing_spaces: Vec<SpaceId>,
}

/// Counters since the store was opened, for `SHOW STATUS`.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct StoreStatus {
    pub pool_pages_total: u64,
    pub pool_pages_free: u64,
    pub pool_pages_dirty: u64,
    /// Pages read from disk.
    pub pages_read: u64,
    /// Read calls for these pages. Neighbouring pages are read by one call.
    pub reads: u64,
    /// Pages requested by read-ahead.
    pub read_ahead: u64,
    pub pages_written: u64,
    pub pages_created: u64,
    /// Reads of a page that was not resident.
    pub read_misses: u64,
    pub pages_evicted: u64,
    /// Bytes of log since the store was created.
    pub log_bytes_written: u64,
    pub log_writes: u64,
    pub log_syncs: u64,
    /// Waits of mini-transactions for log space.
    pub log_waits: u64,
    /// Waits for a page latched by another thread.
    pub latch_waits: u64,
    /// Page latches taken by mini-transactions. Reads of cached pages take none.
    pub latches_acquired: u64,
    /// Optimistic reads that restarted because of a concurrent change.
    pub optimistic_restarts: u64,
    /// Reads that took a latch after repeated restarts.
    pub latch_fallbacks: u64,
    /// Reads that had to set a frame's clock mark.
    pub clock_marks: u64,
    pub checkpoint_lsn: Lsn,
    pub durable_lsn: Lsn,
    pub horizon_lsn: Lsn,
    pub resize: ResizeStatus,
}

impl Core {
    pub(crate) fn status(&self) -> StoreStatus {
        let counts = self.counters.sums();
        let count = |which: Count| counts[which as usize];
        StoreStatus {
            pool_pages_total: self.pool.frames.count() as u64,
            pool_pages_free: self.free_count() as u64,
            pool_pages_dirty: self.pool.frames.dirty_count() as u64,
            pages_read: count(Count::PagesRead),
            reads: count(Count::Reads),
            read_ahead: count(Count::ReadAhead),
            pages_written: count(Count::PagesWritten),
            pages_created: count(Count::PagesCreated),
            read_misses: count(Count::ReadMisses),
            pages_evicted: count(Count::PagesEvicted),
            log_bytes_written: self.log.written(),
            log_writes: self.log.counters.writes.load(Ordering::Relaxed),
            log_syncs: self.log.counters.syncs.load(Ordering::Relaxed),
            log_waits: self.log.counters.waits.load(Ordering::Relaxed),
            latch_waits: count(Count::LatchWaits),
            latches_acquired: count(Count::LatchesAcquired),
            optimistic_restarts: count(Count::OptimisticRestarts),
            latch_fallbacks: count(Count::LatchFallbacks),
            clock_marks: count(Count::UsedMarks),
            checkpoint_lsn: self.log.checkpoint(),
            durable_lsn: self.log.durable(),
            horizon_lsn: self.log.horizon(),
            resize: self.pool.resize.status(),
        }
    }
}
