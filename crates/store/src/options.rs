//! What the store is told at start.

use std::fmt;
use std::sync::Arc;

/// Called with a message when going on would lose data (a failed sync, a broken log). It must not return normally: the
/// default prints and aborts; tests panic.
pub type FatalHook = Arc<dyn Fn(&str) + Send + Sync>;

/// Sizes in bytes. `Default` is what a small test wants: inline I/O, 8 MiB pool, 4 MiB of log.
#[derive(Clone)]
pub struct StoreOptions {
    /// Page frames; rounded down to whole pages, at least 32.
    pub pool_bytes: u64,
    /// What [`Store::resize_pool`](crate::Store::resize_pool) may raise that to: addresses are reserved for as much, and 21 bytes a frame that
    /// the system gives when they are used. Below `pool_bytes`: as much as that.
    pub pool_max_bytes: u64,
    /// All log files together; rounded to whole files, at least 128 KiB.
    pub log_bytes: u64,
    /// A fresh log up to this size is filled with zeros when it is made; a larger one in the background, where there are I/O threads.
    pub log_fill_bytes: u64,
    /// The log's ring buffer; rounded up to a power of two. A mini-transaction fits into a quarter of it.
    pub log_buffer_bytes: u64,
    /// Threads that read and write pages. 0: inline mode. A miss reads in place and never returns `Wait`, the log is written by
    /// whoever asks, and background work is done in `step_background` and when something runs out.
    pub io_threads: usize,
    /// Page writes a second that background flushing aims at when nothing presses.
    pub io_capacity: u32,
    /// Page writes a second that it goes up to when the log grows old or the pool becomes dirty. Beyond, writes are without bound.
    pub io_capacity_max: u32,
    /// Pages go to the doublewrite file first, so that a torn page can be repaired.
    pub doublewrite: bool,
    /// Ask for 2 MiB pages for the frames.
    pub huge_pages: bool,
    /// Bytes by which a space file grows at a time, once it is larger than that.
    pub extend_bytes: u64,
    /// See [`FatalHook`].
    pub fatal: Option<FatalHook>,
}

impl StoreOptions {
    /// What [`log_fill_bytes`](Self::log_fill_bytes) usually is: about a second's writing.
    pub const LOG_FILL_BYTES: u64 = 512 << 20;
}

impl Default for StoreOptions {
    fn default() -> Self {
        StoreOptions {
            pool_bytes: 8 << 20,
            pool_max_bytes: 0,
            log_bytes: 4 << 20,
            log_fill_bytes: StoreOptions::LOG_FILL_BYTES,
            log_buffer_bytes: 1 << 20,
            io_threads: 0,
            io_capacity: 2000,
            io_capacity_max: 20_000,
            doublewrite: true,
            huge_pages: false,
            extend_bytes: 1 << 20,
            fatal: None,
        }
    }
}

impl fmt::Debug for StoreOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreOptions")
            .field("pool_bytes", &self.pool_bytes)
            .field("pool_max_bytes", &self.pool_max_bytes)
            .field("log_bytes", &self.log_bytes)
            .field("log_fill_bytes", &self.log_fill_bytes)
            .field("log_buffer_bytes", &self.log_buffer_bytes)
            .field("io_threads", &self.io_threads)
            .field("io_capacity", &self.io_capacity)
            .field("io_capacity_max", &self.io_capacity_max)
            .field("doublewrite", &self.doublewrite)
            .field("huge_pages", &self.huge_pages)
            .field("extend_bytes", &self.extend_bytes)
            .finish_non_exhaustive()
    }
}
