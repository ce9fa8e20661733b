//! The buffer pool: frames, who is in them, and who has to leave.
//!
//! # Invariants
//! - I1: a frame is in exactly one place: the free list, a mini-transaction's reserve, a loader's hands, or under one page word.
//! - I2: a page leaves its frame only under its exclusive latch, clean, not being written, and not a pinned header page.
//! # Concurrency
//! The clock's hand is a shared counter, moved by loaders and the cleaner, never by a reader of resident pages in threaded mode.
//! # Cost
//! A reader of a resident page stores at most the clock's mark, when it is clear.

pub(crate) mod directory;
pub(crate) mod frames;
pub(crate) mod load;

use crate::core::{Core, Count};
use crate::error::StoreError;
use crate::space::Space;
use nfold_sync::PageWord;
use nfold_sync::page_word::{frame_of, is_exclusive};
use std::sync::atomic::{Ordering, fence};
use std::time::Duration;

/// Turns without a free frame after which inline mode gives up.
const INLINE_TRIES: u32 = 100;
/// Dirty pages written at a time when inline mode needs a frame.
const INLINE_FLUSH: usize = 64;

impl Core {
    pub(crate) fn free_count(&self) -> usize {
        self.free.lock().len()
    }

    pub(crate) fn pop_free(&self) -> Option<u32> {
        let (frame, left) = {
            let mut free = self.free.lock();
            (free.pop(), free.len())
        };
        if left < self.stock() / 2 && self.threaded() {
            self.kick_cleaner();
        }
        frame
    }

    /// How many free frames the cleaner keeps ready.
    pub(crate) fn stock(&self) -> usize {
        (self.frames.count() / 32).clamp(4, 2048)
    }

    /// Puts an empty frame on the free list.
    pub(crate) fn give_frame(&self, frame: u32) {
        self.frames.set_page(frame, None);
        self.free.lock().push(frame);
        self.freed.bump();
    }

    /// A free frame; evicts, and if need be waits for the cleaner (or cleans in place, inline).
    pub(crate) fn frame_blocking(&self) -> Result<u32, StoreError> {
        let mut tries = 0;
        loop {
            if let Some(frame) = self.pop_free() {
                return Ok(frame);
            }
            if self.threaded() {
                // One look around; after that it is the cleaner's: whoever goes round and round takes pages from under the
                // waiters that they were just loaded for.
                if tries == 0 && self.evict(1) > 0 {
                    continue;
                }
                if self.stopping() {
                    return Err(StoreError::ShuttingDown);
                }
                self.kick_cleaner();
                std::thread::sleep(Duration::from_micros(50));
            } else if self.evict(1) == 0 {
                let cold = self.cold_dirty_frames(INLINE_FLUSH);
                if cold.is_empty() || self.clean_frames(&cold)? == 0 {
                    self.clean_some(INLINE_FLUSH)?;
                }
            }
            tries += 1;
            if tries > INLINE_TRIES && !self.threaded() {
                let limit = self.frames.count() as u64;
                return Err(StoreError::TooLarge {
                    what: "number of pages in use at once",
                    limit,
                });
            }
        }
    }

    /// Moves the clock's hand until `want` clean, cold pages have left, or once around. Gives how many.
    pub(crate) fn evict(&self, want: usize) -> usize {
        let count = self.frames.count();
        let mut done = 0;
        for _ in 0..count {
            if done == want {
                break;
            }
            let frame = (self.hand.fetch_add(1, Ordering::Relaxed) % count) as u32;
            if self.frames.page(frame).is_none()
                || self.frames.cool(frame) > 0
                || self.frames.rec_lsn(frame) != 0
            {
                continue;
            }
            if self.try_evict(frame) {
                done += 1;
                self.counters.add(Count::PagesEvicted as usize, 1);
            }
        }
        done
    }

    /// Dirty pages that the clock would evict next if they were clean.
    pub(crate) fn cold_dirty_frames(&self, limit: usize) -> Vec<u32> {
        let count = self.frames.count();
        let hand = self.hand.load(Ordering::Relaxed);
        (0..count)
            .map(|i| (hand.wrapping_add(i) % count) as u32)
            .filter(|f| self.frames.rec_lsn(*f) != 0 && self.frames.is_cold(*f))
            .take(limit)
            .collect()
    }

    fn try_evict(&self, frame: u32) -> bool {
        let Some(id) = self.frames.page(frame) else {
            return false;
        };
        let Some(space) = self.spaces.get(id.space) else {
            return false;
        };
        let Some(word) = space.dir.get(id.page) else {
            return false;
        };
        let seen = word.load();
        if is_exclusive(seen) || frame_of(seen) != Some(frame) || !word.try_latch(seen) {
            return false;
        }
        fence(Ordering::SeqCst); // pairs with the one in `pin_header`
        let busy = self.frames.rec_lsn(frame) != 0
            || self.frames.is_writing(frame)
            || (id.page == 0 && space.pins.load(Ordering::Relaxed) > 0);
        if busy {
            word.release_unchanged(seen);
            return false;
        }
        word.release_evicted(seen);
        self.give_frame(frame);
        true
    }

    /// Holds a space's header page resident from now on, if it is resident when looked at next.
    pub(crate) fn pin_header(&self, space: &Space) {
        space.pins.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Drops a page of a dropped space from memory, dirty or not.
    pub(crate) fn forget(&self, word: &PageWord) {
        let Some(before) = word.latch_resident() else {
            return;
        };
        let Some(frame) = frame_of(before) else {
            return;
        };
        self.frames.take_dirty(frame);
        word.release_evicted(before);
        self.give_frame(frame);
    }

    /// Drops all pages of a dropped space. No batch is being written meanwhile.
    pub(crate) fn forget_space(&self, space: &Space) {
        let _cleaner = self.cleaner.lock();
        space.dir.for_each(|word| self.forget(word));
    }
}
