//! What is in memory, as a list to keep, and bringing such a list back in: a pool that begins warm.
//!
//! # Concurrency
//! The list is looked up frame by frame while pages come and go: what it says of a page was true at some moment. Warming asks for pages as a scan's
//! read-ahead does, so that whoever waits for a page comes first, and pages that nobody touches leave first.
//! # Failure
//! A page that does not exist any more, or cannot be read, is passed over: whoever reads it is told.

use crate::core::Core;
use crate::page::PageId;
use crate::wait::Wait;

impl Core {
    /// See [`Store::pages_in_memory`](crate::Store::pages_in_memory).
    pub(crate) fn pages_in_memory(&self, percent: u32) -> Vec<PageId> {
        let frames = &self.frames;
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
