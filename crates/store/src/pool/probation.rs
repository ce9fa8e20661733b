//! Probation: a page must be used again before it may displace pages in use. A scan passes only
//! through the probation queues.
//!
//! # Picture
//! ```text
//! loaded ─► fresh ───────────────► aged ───────────────► evicted ─► ghost: its id is remembered
//!           touches do not count:   a touch sets the       │         │
//!           they belong to one use  mark, and the page     │         └─► loaded again soon:
//!                                   is promoted ───────────┤             becomes a main page at
//!                                   once
//!                                                          ▼
//!                                                    main pages: the clock
//! ```
//! The first touches of a page follow its load within one statement and do not show that it will be
//! used again. Only a later touch counts, when the page has moved on to `aged`. After 2Q (Johnson,
//! Shasha, VLDB 1994) and S3-FIFO (Yang et al., SOSP 2023).
//! # Invariants
//! - Q1: a frame on probation has an entry in one of the queues, or will get one soon (between
//!   `admit` and `enter`), or is being examined by a single `evict`, which puts it back, promotes
//!   it or frees it. An entry whose frame contains another page by now is ignored.
//! - Q2: `fresh` keeps a minimum of the newest pages, and none is evicted from it. So waiters find
//!   the pages that were loaded for them.
//! # Cost
//! One short critical section per page load and per eviction. A hit on a page does not get here.

use super::frames::{Frames, zeroed};
use crate::page::PageId;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};

/// See the module header.
pub(crate) struct Probation {
    queues: Mutex<Queues>,
    fresh_target: AtomicUsize,
    /// While more pages than this are on probation, they are evicted first; otherwise main pages
    /// are.
    target: AtomicUsize,
    ghosts: Ghosts,
}

#[derive(Default)]
struct Queues {
    fresh: VecDeque<(u32, PageId)>,
    aged: VecDeque<(u32, PageId)>,
}

impl Probation {
    /// For a pool of `frames` frames that may grow to `max`.
    pub(crate) fn new(frames: usize, max: usize) -> Probation {
        let probation = Probation {
            queues: Mutex::default(),
            fresh_target: AtomicUsize::new(0),
            target: AtomicUsize::new(0),
            ghosts: Ghosts::new(max.max(frames)),
        };
        probation.resize(frames);
        probation
    }

    /// Adapts the targets to a pool of `frames` frames.
    pub(crate) fn resize(&self, frames: usize) {
        let fresh = (frames / 16).max(16).min(frames / 3);
        self.fresh_target.store(fresh, Relaxed);
        self.target.store(fresh + (frames / 16).max(8), Relaxed);
        self.ghosts.resize(frames);
    }

    /// Decides whether a page starts on probation, before it is installed in `frame`. The frame
    /// must already name it, so that no other thread can take the frame meanwhile. `scan`: the page
    /// was read ahead, which says nothing about its use.
    pub(crate) fn admit(&self, frames: &Frames, frame: u32, id: PageId, scan: bool) {
        frames.set_on_probation(frame, scan || !self.ghosts.take(id));
    }

    /// Queues a page on probation after it was installed. If it has already left its frame, the
    /// entry is ignored.
    pub(crate) fn enter(&self, frames: &Frames, frame: u32, id: PageId) {
        if !frames.on_probation(frame) {
            return;
        }
        let fresh_target = self.fresh_target.load(Relaxed);
        let mut queues = self.queues.lock();
        queues.fresh.push_back((frame, id));
        while queues.fresh.len() > fresh_target {
            let Some((frame, id)) = queues.fresh.pop_front() else {
                break;
            };
            if frames.page(frame) == Some(id) {
                frames.set_used(frame, 0);
                queues.aged.push_back((frame, id));
            }
        }
    }

    /// The number of pages that can be loaded together and stay resident until their requester
    /// reads them, even with a few requesters at a time.
    pub(crate) fn batch(&self) -> usize {
        (self.fresh_target.load(Relaxed) / 4).clamp(8, 256)
    }

    /// Whether the next page to evict should be one on probation.
    pub(crate) fn is_over(&self) -> bool {
        let queues = self.queues.lock();
        queues.fresh.len() + queues.aged.len() > self.target.load(Relaxed)
    }

    /// The number of pages that [`next`](Self::next) can return.
    pub(crate) fn aged(&self) -> usize {
        self.queues.lock().aged.len()
    }

    /// Removes and returns the oldest aged page (Q1).
    pub(crate) fn next(&self) -> Option<(u32, PageId)> {
        self.queues.lock().aged.pop_front()
    }

    /// Queues a page again that cannot be evicted now.
    pub(crate) fn put_back(&self, frame: u32, id: PageId) {
        self.queues.lock().aged.push_back((frame, id));
    }

    pub(crate) fn remember(&self, id: PageId) {
        self.ghosts.put(id);
    }

    /// Up to `limit` aged pages that satisfy `wanted`, in the order of their eviction.
    pub(crate) fn select(&self, limit: usize, wanted: impl Fn(u32) -> bool) -> Vec<u32> {
        let queues = self.queues.lock();
        let frames = queues.aged.iter().map(|(frame, _)| *frame);
        frames.filter(|f| wanted(*f)).take(limit).collect()
    }
}

/// The hashes of recently evicted pages: about as many as there are frames. A lost entry or a
/// collision costs only a little of the hit rate.
struct Ghosts {
    /// High half: hash of the page id. Low half: number of the eviction. 0: empty.
    slots: Box<[AtomicU64]>,
    /// The number of slots in use, a power of two. After a change, older entries are no longer
    /// found.
    used: AtomicUsize,
    evictions: AtomicU32,
}

impl Ghosts {
    /// For a pool of at most `max` frames.
    fn new(max: usize) -> Ghosts {
        let slots = max.next_power_of_two();
        Ghosts {
            slots: zeroed(slots),
            used: AtomicUsize::new(slots),
            evictions: AtomicU32::new(0),
        }
    }

    fn resize(&self, frames: usize) {
        let slots = frames.next_power_of_two().min(self.slots.len());
        self.used.store(slots, Relaxed);
    }

    fn locate(&self, id: PageId) -> (&AtomicU64, u64) {
        let hash = id.packed().wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let hash = (hash ^ (hash >> 32)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        (
            &self.slots[hash as usize & (self.used.load(Relaxed) - 1)],
            (hash >> 32) | 1,
        )
    }

    fn put(&self, id: PageId) {
        let (slot, hash) = self.locate(id);
        let at = self.evictions.fetch_add(1, Relaxed);
        slot.store(hash << 32 | u64::from(at), Relaxed);
    }

    /// Removes the page's entry. Returns whether the page was among the last evictions, as many as
    /// there are slots.
    fn take(&self, id: PageId) -> bool {
        let (slot, hash) = self.locate(id);
        let found = slot.load(Relaxed);
        if found >> 32 != hash {
            return false;
        }
        slot.store(0, Relaxed);
        let age = self.evictions.load(Relaxed).wrapping_sub(found as u32);
        age as usize <= self.used.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ghosts_expire() {
        let ghosts = Ghosts::new(64);
        let id = |page| PageId::new(1, page);
        assert!(!ghosts.take(id(1)));
        ghosts.put(id(1));
        assert!(ghosts.take(id(1)) && !ghosts.take(id(1)), "found only once");
        ghosts.put(id(1));
        for page in 2..1000 {
            ghosts.put(id(page));
        }
        assert!(!ghosts.take(id(1)), "the entry has expired");
        let found = (900..1000).filter(|page| ghosts.take(id(*page))).count();
        assert!((20..=64).contains(&found), "{found}");
    }

    #[test]
    #[cfg_attr(miri, ignore = "miri does not support the reserved memory of frames")]
    fn early_touches_of_a_page_do_not_count() {
        let frames = Frames::new(64, 64, false).expect("a megabyte");
        let probation = Probation::new(64, 64);
        for frame in 0..20 {
            let id = PageId::new(1, frame);
            frames.set_page(frame, Some(id));
            frames.set_used(frame, 2);
            probation.admit(&frames, frame, id, false);
            probation.enter(&frames, frame, id);
            assert!(!frames.touch(frame), "a touch does not mark a fresh page");
        }
        assert_eq!(probation.aged(), 4, "16 of 20 pages stay fresh");
        assert!(
            frames.touch(1) && !frames.touch(1),
            "the first touch marks an aged page"
        );
        assert_eq!(probation.next(), Some((0, PageId::new(1, 0))));
        frames.set_page(19, Some(PageId::new(2, 7)));
        assert_eq!(probation.select(9, |f| f != 2), [1, 3]);
    }
}
