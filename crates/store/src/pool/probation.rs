//! Where a page has to prove itself before it may displace pages that are used: a scan passes through here, and through nothing else.
//!
//! # Picture
//! ```text
//! loaded ─► fresh ───────────────► aged ───────────────► evicted ─► ghost: its number is remembered for a while
//!           touches count not:      a touch sets the        │         │
//!           they belong to one use  mark, so it comes back ─┤         └─► loaded again soon: at once among the main pages
//!                                                           ▼
//!                                                     main pages: the clock
//! ```
//! A page's first touches follow its load within one statement and say nothing; only a touch at a distance, when the page has
//! moved on to `aged`, does. After 2Q (Johnson, Shasha, VLDB 1994) and S3-FIFO (Yang et al., SOSP 2023).
//! # Invariants
//! - I1: a frame on probation has an entry in one of the queues, or is about to get one (between `admit` and `enter`), or is in the hands of
//!   one `evict` that puts it back, promotes it or frees it. An entry whose frame holds another page by now means nothing.
//! - I2: `fresh` is bounded while pages come in, so waiters find what was loaded for them: nothing is evicted from there.
//! # Cost
//! One short critical section per page load and per eviction; a hit on a page never comes here.

use super::frames::{Frames, zeroed};
use crate::page::PageId;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};

/// See the module's header.
pub(crate) struct Probation {
    queues: Mutex<Queues>,
    fresh_target: AtomicUsize,
    /// Above this many pages on probation the next victim comes from here, below it from the main pages.
    target: AtomicUsize,
    ghosts: Ghosts,
}

#[derive(Default)]
struct Queues {
    fresh: VecDeque<(u32, PageId)>,
    aged: VecDeque<(u32, PageId)>,
}

impl Probation {
    /// For a pool of `frames`, which may grow to `max`.
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

    /// The pool has `frames` from now on.
    pub(crate) fn resize(&self, frames: usize) {
        let fresh = (frames / 16).max(16).min(frames / 3);
        self.fresh_target.store(fresh, Relaxed);
        self.target.store(fresh + (frames / 16).max(8), Relaxed);
        self.ghosts.resize(frames);
    }

    /// Decides where a page begins, before it is installed in `frame`, which names it already: nobody else can take the frame meanwhile.
    /// `scan`: it comes ahead of a scan, which says nothing about its use.
    pub(crate) fn admit(&self, frames: &Frames, frame: u32, id: PageId, scan: bool) {
        frames.set_on_probation(frame, scan || !self.ghosts.take(id));
    }

    /// After the page was installed: queues it if it is on probation. (If it left again at once, the entry means nothing.)
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

    /// Pages that may come in together and still be there when they are looked for, one asker out of a few.
    pub(crate) fn batch(&self) -> usize {
        (self.fresh_target.load(Relaxed) / 4).clamp(8, 256)
    }

    /// Whether the next victim should come from here.
    pub(crate) fn is_over(&self) -> bool {
        let queues = self.queues.lock();
        queues.fresh.len() + queues.aged.len() > self.target.load(Relaxed)
    }

    /// How many pages there are that [`next`](Self::next) may give.
    pub(crate) fn aged(&self) -> usize {
        self.queues.lock().aged.len()
    }

    /// The oldest aged page, taken out (I1).
    pub(crate) fn next(&self) -> Option<(u32, PageId)> {
        self.queues.lock().aged.pop_front()
    }

    /// A page that cannot be evicted now comes round again.
    pub(crate) fn put_back(&self, frame: u32, id: PageId) {
        self.queues.lock().aged.push_back((frame, id));
    }

    pub(crate) fn remember(&self, id: PageId) {
        self.ghosts.put(id);
    }

    /// Aged pages in the order of their eviction for which `wanted` holds, at most `limit`.
    pub(crate) fn select(&self, limit: usize, wanted: impl Fn(u32) -> bool) -> Vec<u32> {
        let queues = self.queues.lock();
        let frames = queues.aged.iter().map(|(frame, _)| *frame);
        frames.filter(|f| wanted(*f)).take(limit).collect()
    }
}

/// Pages that left not long ago, by hash: about as many as there are frames. Forgetting one, or taking one for another, costs a
/// little of the hit rate and nothing else.
struct Ghosts {
    /// High half: hash of the page; low half: number of the eviction. 0: empty.
    slots: Box<[AtomicU64]>,
    /// How many of the slots are used, a power of two. Whatever was remembered under another number is forgotten.
    used: AtomicUsize,
    evictions: AtomicU32,
}

impl Ghosts {
    /// For at most `max` frames.
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

    /// Whether the page left within the last evictions, as many as there are slots.
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
    fn ghosts_are_remembered_for_a_while() {
        let ghosts = Ghosts::new(64);
        let id = |page| PageId::new(1, page);
        assert!(!ghosts.take(id(1)));
        ghosts.put(id(1));
        assert!(ghosts.take(id(1)) && !ghosts.take(id(1)), "once");
        ghosts.put(id(1));
        for page in 2..1000 {
            ghosts.put(id(page));
        }
        assert!(!ghosts.take(id(1)), "too long ago");
        let kept = (900..1000).filter(|page| ghosts.take(id(*page))).count();
        assert!((20..=64).contains(&kept), "{kept}");
    }

    #[test]
    #[cfg_attr(
        miri,
        ignore = "frames reserve memory that nobody may touch yet, which miri does not know"
    )]
    fn a_page_ages_and_its_early_touches_do_not_count() {
        let frames = Frames::new(64, 64, false).expect("a megabyte");
        let probation = Probation::new(64, 64);
        for frame in 0..20 {
            let id = PageId::new(1, frame);
            frames.set_page(frame, Some(id));
            frames.set_used(frame, 2);
            probation.admit(&frames, frame, id, false);
            probation.enter(&frames, frame, id);
            assert!(!frames.touch(frame), "a fresh page is not marked");
        }
        assert_eq!(probation.aged(), 4, "16 stay fresh");
        assert!(frames.touch(1) && !frames.touch(1), "an aged one is, once");
        assert_eq!(probation.next(), Some((0, PageId::new(1, 0))));
        frames.set_page(19, Some(PageId::new(2, 7)));
        assert_eq!(probation.select(9, |f| f != 2), [1, 3]);
    }
}
