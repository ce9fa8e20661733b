//! Lists the pages in memory, and loads such a list again, so that a restarted pool is warm.
//!
//! # Concurrency
//! The list is collected frame by frame while pages come and go. Each entry was true at some
//! moment. Warming requests pages like the read-ahead of a scan: loads with waiters come first, and
//! untouched pages are evicted first.
//! # Failure
//! Pages that no longer exist or cannot be read are skipped. A later read of such a page returns
//! the error.

use crate::core::Core;
use crate::page::PageId;
use crate::wait::Wait;

impl Core {
    /// See [`Store::pages_in_memory`](crate::Store::pages_in_memory).
    pub(crate) fn pages_in_memory(&self, percent: u32) -> Vec<PageId> {
        let frames = &self.pool.frames;
        let mut found: Vec<(bool, bool, PageId)> = (0..frames.extent() as u32)
            .filter_map(|frame| {
                let id = frames.page(frame)?;
                Some((frames.on_probation(frame), frames.is_cold(frame), id))
            })
            .collect();
        found.sort_unstable();
        let wanted = (found.len() as u64 * u64::from(percent.min(100))).div_ceil(100) as usize;
        found.truncate(wanted);
        found.into_iter().map(|(.., id)| id).collect()
    }

    /// See [`Store::warm`](crate::Store::warm).
    pub(crate) fn warm(&self, ids: &[PageId]) -> usize {
        let mut waits = Vec::new();
        self.load_many(ids, true, |load| waits.push(Wait::on(load, 0)));
        let missing = waits.len();
        if self.threaded() && missing > 0 {
            Wait::all(waits).block();
        }
        missing
    }
}
