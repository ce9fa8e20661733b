//! The buffer pool: frames, who is in them, and who has to leave.
//!
//! # Invariants
//! - I1: a frame is in exactly one place: the free list, the withdrawn ones (resize.rs), a mini-transaction's reserve, a loader's hands, or
//!   under one page word.
//! - I2: a page leaves its frame only under its exclusive latch, clean, not being written, and not a pinned header page.
//! # Concurrency
//! A page begins on probation ([`probation`]) and joins the main pages when it is used again; the clock goes over those.
//! The clock's hand is a shared counter, moved by loaders and the cleaner, never by a reader of resident pages in threaded mode.
//! # Cost
//! A reader of a resident page stores at most the clock's mark, when it is clear.

#[allow(unsafe_code)]
pub(crate) mod directory;
#[allow(unsafe_code)]
pub(crate) mod flat;
#[allow(unsafe_code)]
pub(crate) mod frames;
pub(crate) mod load;
pub(crate) mod probation;
pub(crate) mod ready;
pub(crate) mod resize;
mod warm;

use crate::contention::{Watched, lock_watched};
use crate::core::{Core, Count};
use crate::error::StoreError;
use crate::page::SpaceId;
use crate::pool::directory::Place;
use crate::pool::load::Job;
use crate::private_file::{PRIVATE_PAGES, PrivateFile};
use crate::space::{Held, Space};
use nfold_observe::contention::{Site, WaitKind};
use nfold_sync::PageWord;
use nfold_sync::page_word::{frame_of, is_exclusive};
use parking_lot::MutexGuard;
use resize::FreeFrames;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};
use std::time::Duration;

/// Turns without a free frame after which inline mode gives up.
const INLINE_TRIES: u32 = 100;
/// Naps of 50 us after which an I/O thread without a frame looks around again: some milliseconds, in which waiters have come to their pages.
const LOOK_AGAIN: u32 = 64;
/// Dirty pages written at a time when inline mode needs a frame.
const INLINE_FLUSH: usize = 64;
/// Places for pages of a dropped space that are looked at before an I/O thread turns to what others wait for: at most a millisecond or two.
const FORGET: usize = 4096;

impl Core {
    pub(crate) fn free_count(&self) -> usize {
        self.free.lock().frames.len()
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
            self.note_given(frame);
        }
        frame
    }

    /// Whether enough frames are free for a page to be made without a wait.
    pub(crate) fn has_free_frames(&self) -> bool {
        self.free_count() > self.stock() / 2
    }

    /// How many free frames the cleaner keeps ready.
    pub(crate) fn stock(&self) -> usize {
        (self.frames.count() / 32).clamp(4, 2048)
    }

    /// Puts an empty frame on the free list.
    pub(crate) fn give_frame(&self, frame: u32) {
        self.frames.set_page(frame, None);
        self.lock_free().put(frame);
        self.freed.bump();
    }

    fn lock_free(&self) -> MutexGuard<'_, FreeFrames> {
        let site = || Site::of(WaitKind::FreeList);
        lock_watched(&self.free, &self.contention, site)
    }

    /// A free frame; evicts, and if need be waits for the cleaner (or cleans in place, inline).
    pub(crate) fn frame_blocking(&self) -> Result<u32, StoreError> {
        let mut tries = 0;
        let mut watched = None;
        loop {
            if let Some(frame) = self.pop_free() {
                return Ok(frame);
            }
            if self.threaded() {
                // One look around; after that it is the cleaner's: whoever goes round and round takes pages from under the
                // waiters that they were just loaded for. But the cleaner may be writing for long, so there is another look now and then.
                if tries % LOOK_AGAIN == 0 && self.evict(1) > 0 {
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
                continue; // it is free now, or withdrawn from a pool that shrinks
            } else {
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

    /// Makes `want` frames free: from the pages on probation while those are many, otherwise by the clock; from the other side if one
    /// has nothing to give. Gives how many.
    pub(crate) fn evict(&self, want: usize) -> usize {
        let mut done = 0;
        // Each page is looked at once: what is dirty or in use comes round with the next call.
        let mut looks = self.probation.aged();
        while done < want && looks > 0 && self.probation.is_over() {
            done += usize::from(self.evict_on_probation(&mut looks));
        }
        if done < want {
            done += self.evict_by_clock(want - done);
        }
        while done < want && looks > 0 {
            done += usize::from(self.evict_on_probation(&mut looks));
        }
        self.counters.add(Count::PagesEvicted as usize, done as u64);
        done
    }

    /// Looks at the oldest page on probation. Whether its frame is free now.
    fn evict_on_probation(&self, looks: &mut usize) -> bool {
        *looks -= 1;
        let Some((frame, id)) = self.probation.next() else {
            *looks = 0;
            return false;
        };
        if self.frames.page(frame) != Some(id) || !self.frames.on_probation(frame) {
            return false;
        }
        if !self.frames.is_cold(frame) {
            self.frames.set_on_probation(frame, false);
            return false;
        }
        if self.frames.rec_lsn(frame) == 0 && self.try_evict(frame) {
            self.probation.remember(id);
            return true;
        }
        self.probation.put_back(frame, id);
        false
    }

    /// Moves the clock's hand until `want` clean, cold main pages have left, or once around. Gives how many.
    fn evict_by_clock(&self, want: usize) -> usize {
        let count = self.frames.count();
        let mut done = 0;
        for _ in 0..count {
            if done == want {
                break;
            }
            let frame = (self.hand.fetch_add(1, Ordering::Relaxed) % count) as u32;
            let passed = self.frames.page(frame).is_none()
                || self.frames.on_probation(frame)
                || self.frames.cool(frame) > 0
                || self.frames.rec_lsn(frame) != 0;
            if !passed && self.try_evict(frame) {
                done += 1;
            }
        }
        done
    }

    /// Dirty pages that would be evicted next if they were clean.
    pub(crate) fn cold_dirty_frames(&self, limit: usize) -> Vec<u32> {
        let cold_dirty = |f: u32| self.frames.rec_lsn(f) != 0 && self.frames.is_cold(f);
        let mut found = self.probation.select(limit, cold_dirty);
        let count = self.frames.count();
        let hand = self.hand.load(Ordering::Relaxed);
        let main = (0..count)
            .map(|i| (hand.wrapping_add(i) % count) as u32)
            .filter(|f| !self.frames.on_probation(*f) && cold_dirty(*f));
        found.extend(main.take(limit - found.len()));
        found
    }

    pub(crate) fn try_evict(&self, frame: u32) -> bool {
        let Some(id) = self.frames.page(frame) else {
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
        fence(Ordering::SeqCst); // pairs with the one in `Tenancy::pin`
        let busy = !space.is(id.space) // with the latch, it stays what it is
            || self.frames.rec_lsn(frame) != 0
            || self.frames.is_writing(frame)
            || (id.page == 0 && space.is_pinned());
        if busy {
            word.release_unchanged(seen);
            return false;
        }
        word.release_evicted(seen);
        self.give_frame(frame);
        true
    }

    /// Takes a pin back. The last one of a dropped space has its pages forgotten (I6 of [`crate::space`]).
    pub(crate) fn unpin_header(&self, space: &Space) {
        if space.unpin() && space.gone.load(Ordering::SeqCst) {
            // Whoever's it is: a pin that came too late may have kept another one's pages from being forgotten.
            self.forget_unpinned(space.id());
        }
    }

    #[cold]
    fn forget_unpinned(&self, id: SpaceId) {
        // If it is not there yet, `remove` is under way, and its caller has the pages forgotten.
        if let Some(space) = self.spaces.dropped(id) {
            self.forget_later(space);
        }
    }

    /// Has the pages of a dropped space forgotten, in the background if there is one.
    pub(crate) fn forget_later(&self, space: Held) {
        if self.threaded() {
            self.jobs.push_other(Job::Forget(space, Place::default()));
        } else {
            let mut next = Some((space, Place::default()));
            while let Some((space, from)) = next {
                next = self.forget_some(space, from);
            }
        }
    }

    /// Forgets the pages of a dropped private space: at once where they are few, as nobody reads
    /// them any more. A file that was made for it is removed by an I/O
    /// thread.
    pub(crate) fn forget_private(&self, space: Held, file: Arc<PrivateFile>) {
        let few = space.pages.load(Ordering::Acquire) <= PRIVATE_PAGES;
        match few {
            false => self.forget_later(space),
            true => {
                let mut next = Some((space, Place::default()));
                while let Some((space, from)) = next {
                    next = self.forget_some(space, from);
                }
            }
        }
        if self.threaded() && file.is_made() {
            self.jobs
                .push_other(Job::Call(Box::new(move |_| drop(file))));
        }
    }

    /// Drops a page of a dropped space from memory, dirty or not. A batch that has its image may be under way: the image goes nowhere, or into a file
    /// that has no name any more, and the frame counts as being written to the end of that batch, whatever lies in it by then.
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

    /// Drops some pages of a dropped space, from a place on, and takes none but page latches. Gives where to go on; at the end, takes back what the space
    /// had.
    pub(crate) fn forget_some(&self, space: Held, from: Place) -> Option<(Held, Place)> {
        if space.is_pinned() {
            return None; // whoever takes the last pin back begins anew
        }
        // Seen once without pins after it was marked as gone, it has none any more that brings pages (I6 of [`crate::space`]); a load holds the space, and
        // whatever it brings is found here, or taken out again by itself.
        fence(Ordering::SeqCst); // pairs with the one in `install_image`
        if let Some(next) = space.dir().visit(from, FORGET, |word| self.forget(word)) {
            return Some((space, next));
        }
        space.forgotten.store(true, Ordering::SeqCst);
        let id = space.id();
        drop(space);
        self.spaces.vacate(id);
        None
    }
}
