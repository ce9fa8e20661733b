//! The buffer pool: frames, the pages in them, and eviction.
//!
//! # Invariants
//! - I1: a frame is in exactly one place: on the free list, withdrawn (resize.rs), reserved by a
//!   mini-transaction, held by a loading thread, or under one page word.
//! - I2: a page leaves its frame only under its exclusive latch, and only if it is clean, is not
//!   being written, and is not a pinned header page.
//! # Concurrency
//! A page starts on probation ([`probation`]) and becomes a main page when it is used again. Main
//! pages are evicted by the clock algorithm. The clock's hand is a shared counter. Loading threads
//! and the cleaner move it; in threaded mode, readers of resident pages never do.
//! # Cost
//! A reader of a resident page writes at most the frame's clock mark, and only if it is clear.

#[allow(unsafe_code)]
pub(crate) mod directory;
#[allow(unsafe_code)]
pub(crate) mod flat;
#[allow(unsafe_code)]
pub(crate) mod frames;
pub(crate) mod probation;
mod warm;

use crate::core::{Core, Count};
use crate::error::StoreError;
use crate::page::SpaceId;
use crate::page_load::Job;
use crate::pool::directory::VisitPosition;
use crate::pool_resize::FreeFrames;
use crate::private_file::{PRIVATE_PAGES, PrivateFile};
use crate::space::{HeldSpace, Space};
use crate::wait_record::{Watched, lock_watched};
use nfold_observe::contention::{Site, WaitKind};
use nfold_sync::PageWord;
use nfold_sync::page_word::{frame_of, is_exclusive};
use parking_lot::MutexGuard;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};
use std::time::Duration;

/// The number of attempts after which inline mode stops looking for a free frame.
const INLINE_TRIES: u32 = 100;
/// An I/O thread without a frame tries to evict a page again after this many pauses of 50 us. In
/// these milliseconds, waiters can read the pages loaded for them.
const PAUSES_BETWEEN_EVICTIONS: u32 = 64;
/// The number of dirty pages written at a time when inline mode needs a frame.
const INLINE_FLUSH: usize = 64;
/// The number of page words of a dropped space that are visited before an I/O thread takes the next
/// job: a millisecond or two at most.
const DISCARD_STEP: usize = 4096;

impl Core {
    pub(crate) fn free_count(&self) -> usize {
        self.pool.free.lock().frames.len()
    }

    pub(crate) fn pop_free(&self) -> Option<u32> {
        let (frame, left) = {
            let mut free = self.lock_free();
            (free.frames.pop(), free.frames.len())
        };
        if left < self.stock() / 2 && self.threaded() {
            self.kick_cleaner();
        }
        if let Some(frame) = frame {
            self.note_handed_out(frame);
        }
        frame
    }

    /// Whether there are enough free frames to create a page without waiting.
    pub(crate) fn has_free_frames(&self) -> bool {
        self.free_count() > self.stock() / 2
    }

    /// The number of free frames that the cleaner maintains.
    pub(crate) fn stock(&self) -> usize {
        (self.pool.frames.count() / 32).clamp(4, 2048)
    }

    /// Returns an empty frame to the free list.
    pub(crate) fn give_frame(&self, frame: u32) {
        self.pool.frames.set_page(frame, None);
        self.lock_free().put(frame);
        self.pool.freed.bump();
    }

    fn lock_free(&self) -> MutexGuard<'_, FreeFrames> {
        let site = || Site::of(WaitKind::FreeList);
        lock_watched(&self.pool.free, &self.contention, site)
    }

    /// Returns a free frame. Evicts a page, and if necessary waits for the cleaner, or in inline
    /// mode writes dirty pages itself.
    pub(crate) fn frame_blocking(&self) -> Result<u32, StoreError> {
        let mut tries = 0;
        let mut watched = None;
        loop {
            if let Some(frame) = self.pop_free() {
                return Ok(frame);
            }
            if self.threaded() {
                // Evict only once, and then leave it to the cleaner. Repeated eviction would take
                // pages from waiters for which they were just loaded. But the cleaner may be
                // writing for a long time, so try again now and then.
                if tries % PAUSES_BETWEEN_EVICTIONS == 0 && self.evict(1) > 0 {
                    continue;
                }
                if self.stopping() {
                    return Err(StoreError::ShuttingDown);
                }
                self.kick_cleaner();
                let free = || Watched::new(&self.contention, WaitKind::FreeFrame);
                watched.get_or_insert_with(free).begin();
                std::thread::sleep(Duration::from_micros(50));
            } else if self.evict(1) > 0 {
                continue; // The frame is free now, or was withdrawn from a shrinking pool.
            } else {
                let cold = self.cold_dirty_frames(INLINE_FLUSH);
                if cold.is_empty() || self.clean_frames(&cold)? == 0 {
                    self.clean_some(INLINE_FLUSH)?;
                }
            }
            tries += 1;
            if tries > INLINE_TRIES && !self.threaded() {
                let limit = self.pool.frames.count() as u64;
                return Err(StoreError::TooLarge {
                    what: "number of pages in use at once",
                    limit,
                });
            }
        }
    }

    /// Frees `want` frames by eviction and returns the number freed. Takes pages on probation while
    /// there are many of these, otherwise main pages by the clock. If one group has no page to
    /// evict, it takes the other.
    pub(crate) fn evict(&self, want: usize) -> usize {
        let mut done = 0;
        // Each page is examined once. Dirty and used pages are examined again by the next call.
        let mut budget = self.pool.probation.aged();
        while done < want && budget > 0 && self.pool.probation.is_over() {
            done += usize::from(self.evict_on_probation(&mut budget));
        }
        if done < want {
            done += self.evict_by_clock(want - done);
        }
        while done < want && budget > 0 {
            done += usize::from(self.evict_on_probation(&mut budget));
        }
        self.counters.add(Count::PagesEvicted as usize, done as u64);
        done
    }

    /// Examines the oldest page on probation. Returns whether its frame is free now.
    fn evict_on_probation(&self, budget: &mut usize) -> bool {
        *budget -= 1;
        let Some((frame, id)) = self.pool.probation.next() else {
            *budget = 0;
            return false;
        };
        if self.pool.frames.page(frame) != Some(id) || !self.pool.frames.on_probation(frame) {
            return false;
        }
        if !self.pool.frames.is_cold(frame) {
            self.pool.frames.set_on_probation(frame, false);
            return false;
        }
        if self.pool.frames.rec_lsn(frame) == 0 && self.try_evict(frame) {
            self.pool.probation.remember(id);
            return true;
        }
        self.pool.probation.put_back(frame, id);
        false
    }

    /// Moves the clock's hand until `want` clean, cold main pages are evicted, or once around.
    /// Returns the number evicted.
    fn evict_by_clock(&self, want: usize) -> usize {
        let count = self.pool.frames.count();
        let mut done = 0;
        for _ in 0..count {
            if done == want {
                break;
            }
            let frame = (self.pool.hand.fetch_add(1, Ordering::Relaxed) % count) as u32;
            let passed = self.pool.frames.page(frame).is_none()
                || self.pool.frames.on_probation(frame)
                || self.pool.frames.cool(frame) > 0
                || self.pool.frames.rec_lsn(frame) != 0;
            if !passed && self.try_evict(frame) {
                done += 1;
            }
        }
        done
    }

    /// The dirty pages that would be evicted next if they were clean.
    pub(crate) fn cold_dirty_frames(&self, limit: usize) -> Vec<u32> {
        let cold_dirty = |f: u32| self.pool.frames.rec_lsn(f) != 0 && self.pool.frames.is_cold(f);
        let mut found = self.pool.probation.select(limit, cold_dirty);
        let count = self.pool.frames.count();
        let hand = self.pool.hand.load(Ordering::Relaxed);
        let main = (0..count)
            .map(|i| (hand.wrapping_add(i) % count) as u32)
            .filter(|f| !self.pool.frames.on_probation(*f) && cold_dirty(*f));
        found.extend(main.take(limit - found.len()));
        found
    }

    pub(crate) fn try_evict(&self, frame: u32) -> bool {
        let Some(id) = self.pool.frames.page(frame) else {
            return false;
        };
        let Some(space) = self.spaces.look(id.space) else {
            return false;
        };
        let Some(word) = space.dir().get(id.page) else {
            return false;
        };
        let seen = word.load();
        if is_exclusive(seen) || frame_of(seen) != Some(frame) || !word.try_latch(seen) {
            return false;
        }
        fence(Ordering::SeqCst); // Pairs with the fence in `Tenancy::pin`.
        let busy = !space.is(id.space) // With the latch held, this does not change any more.
            || self.pool.frames.rec_lsn(frame) != 0
            || self.pool.frames.is_writing(frame)
            || (id.page == 0 && space.is_pinned());
        if busy {
            word.release_unchanged(seen);
            return false;
        }
        word.release_evicted(seen);
        self.give_frame(frame);
        true
    }

    /// Releases a pin. After the last pin of a dropped space, its pages are discarded (I6 of
    /// [`crate::space`]).
    pub(crate) fn unpin_header(&self, space: &Space) {
        if space.unpin() && space.gone.load(Ordering::SeqCst) {
            // The object may belong to another space by now. A pin that came too late may have
            // delayed the discarding of that one's pages.
            self.discard_unpinned(space.id());
        }
    }

    #[cold]
    fn discard_unpinned(&self, id: SpaceId) {
        // If the space is not in the table of dropped spaces yet, `remove` is in progress, and its
        // caller discards the pages.
        if let Some(space) = self.spaces.dropped(id) {
            self.discard_later(space);
        }
    }

    /// Discards the pages of a dropped space, in the background if there are I/O threads.
    pub(crate) fn discard_later(&self, space: HeldSpace) {
        if self.threaded() {
            self.io
                .jobs
                .push_other(Job::Discard(space, VisitPosition::default()));
        } else {
            let mut next = Some((space, VisitPosition::default()));
            while let Some((space, from)) = next {
                next = self.discard_some(space, from);
            }
        }
    }

    /// Discards the pages of a dropped private space. A few pages are discarded at once, because
    /// they have no readers any more. An I/O thread removes the file if there is one.
    pub(crate) fn discard_private(&self, space: HeldSpace, file: Arc<PrivateFile>) {
        let few = space.pages.load(Ordering::Acquire) <= PRIVATE_PAGES;
        match few {
            false => self.discard_later(space),
            true => {
                let mut next = Some((space, VisitPosition::default()));
                while let Some((space, from)) = next {
                    next = self.discard_some(space, from);
                }
            }
        }
        if self.threaded() && file.exists() {
            self.io
                .jobs
                .push_other(Job::Call(Box::new(move |_| drop(file))));
        }
    }

    /// Discards a resident page of a dropped space, dirty or not. A batch with the page's image may
    /// be in progress: then the image is written to a deleted file or nowhere. The frame counts as
    /// being written until the end of that batch, even if it contains another page by then.
    pub(crate) fn discard(&self, word: &PageWord) {
        let Some(before) = word.latch_resident() else {
            return;
        };
        let Some(frame) = frame_of(before) else {
            return;
        };
        self.pool.frames.take_dirty(frame);
        word.release_evicted(before);
        self.give_frame(frame);
    }

    /// Discards some pages of a dropped space, from a position on, and takes no locks but page
    /// latches. Returns the position to continue at. At the end, makes the space object vacant.
    pub(crate) fn discard_some(
        &self,
        space: HeldSpace,
        from: VisitPosition,
    ) -> Option<(HeldSpace, VisitPosition)> {
        if space.is_pinned() {
            return None; // The release of the last pin starts over.
        }
        // A space that was seen without pins after it was marked as gone will have no more pins
        // that make pages resident (I6 of [`crate::space`]). A load has a hold on the space. A page
        // that it installs is found here, or is discarded by the load itself.
        fence(Ordering::SeqCst); // Pairs with the fence in `install_image`.
        if let Some(next) = space
            .dir()
            .visit(from, DISCARD_STEP, |word| self.discard(word))
        {
            return Some((space, next));
        }
        space.discarded.store(true, Ordering::SeqCst);
        let id = space.id();
        drop(space);
        self.spaces.vacate(id);
        None
    }
}
