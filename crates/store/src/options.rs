//! The configuration of a store.

use crate::attachments::AttachmentReader;
use std::fmt;
use std::sync::Arc;

/// Called with a message when continuing would lose data, such as after a failed sync. It must not
/// return normally. The default prints the message and aborts; tests panic.
pub type FatalHook = Arc<dyn Fn(&str) + Send + Sync>;

/// Sizes are in bytes. `Default` suits a small test: inline I/O, a pool of 8 MiB, a log of 4 MiB.
#[derive(Clone)]
pub struct StoreOptions {
    /// The size of the buffer pool. Rounded down to whole pages; at least 32 pages.
    pub pool_bytes: u64,
    /// The largest size that [`Store::resize_pool`](crate::Store::resize_pool) may set. Address
    /// space is reserved for it, and 21 bytes per frame, which take memory only when used. Values
    /// below `pool_bytes` mean `pool_bytes`.
    pub pool_max_bytes: u64,
    /// The size of all log files together. Rounded to whole files; at least 128 KiB.
    pub log_bytes: u64,
    /// A new log of at most this size is filled with zeros at creation. A larger one is filled in
    /// the background if there are I/O threads.
    pub log_fill_bytes: u64,
    /// The size of the log's ring buffer. Rounded up to a power of two. A mini-transaction uses at
    /// most a quarter of it.
    pub log_buffer_bytes: u64,
    /// The number of threads that read and write pages. 0 means inline mode: a miss reads the page
    /// in the calling thread and never returns `Wait`, callers write the log themselves, and
    /// background work happens in `step_background` or when a resource runs out.
    pub io_threads: usize,
    /// The target rate of background flushing without pressure, in page writes per second.
    pub io_capacity: u32,
    /// The highest rate of background flushing, in page writes per second, used when the log grows
    /// old or the pool becomes dirty. Under still more pressure, the rate is unlimited.
    pub io_capacity_max: u32,
    /// Whether pages are first written to the doublewrite file, from which torn pages are repaired.
    pub doublewrite: bool,
    /// Whether to request 2 MiB pages for the frames and the log buffer.
    pub huge_pages: bool,
    /// The increment by which a space file grows once it is larger than this.
    pub extend_bytes: u64,
    /// Reads the attachments that a crash has left in the log.
    pub attachments: Option<Arc<dyn AttachmentReader>>,
    /// See [`FatalHook`].
    pub fatal: Option<FatalHook>,
}

impl StoreOptions {
    /// The usual value of [`log_fill_bytes`](Self::log_fill_bytes): about what one second can
    /// write.
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
            attachments: None,
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
