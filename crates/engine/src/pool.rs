//! The buffer pool's knobs, as the server sees them.

use nfold_store::PageId;

use crate::engine::Engine;

impl Engine {
    /// Sets `innodb_buffer_pool_size`. The pool grows or shrinks in the background, while
    /// statements run. Returns its future size: whole pages, at most
    /// [`max_pool_bytes`](Self::max_pool_bytes). The last call wins; `store_status().resize` shows
    /// the progress.
    pub fn resize_pool(&self, bytes: u64) -> u64 {
        self.shared().store.resize_pool(bytes)
    }

    /// What the pool can grow to: addresses for as much are reserved at the start.
    pub fn max_pool_bytes(&self) -> u64 {
        self.shared().store.max_pool_bytes()
    }

    /// At most `percent` of the pages in memory as (space, page), the most used first.
    pub fn pages_in_memory(&self, percent: u32) -> Vec<(u32, u32)> {
        let pages = self.shared().store.pages_in_memory(percent);
        pages.into_iter().map(|id| (id.space, id.page)).collect()
    }

    /// Reads pages (space, page) into memory, with lower priority than pages that statements wait
    /// for, and blocks until they are read. Skips pages that do not exist or cannot be read.
    /// Returns the number of pages that were not in memory before.
    pub fn warm(&self, pages: &[(u32, u32)]) -> usize {
        let ids: Vec<PageId> = pages
            .iter()
            .map(|&(space, page)| PageId { space, page })
            .collect();
        self.shared().store.warm(&ids)
    }

    /// Address and length of the page frames in use, for the test that makes them read-only.
    #[doc(hidden)]
    pub fn frame_memory(&self) -> (usize, usize) {
        self.shared().store.frame_memory()
    }

    /// `innodb_io_capacity` and `innodb_io_capacity_max`, pages a second.
    pub fn set_io_capacity(&self, low: u32, high: u32) {
        self.shared().store.set_io_capacity(low, high);
    }
}
