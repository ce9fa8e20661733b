//! The 64-bit word that says where a page is, whether somebody changes it, and which change it is at.
//!
//! # Picture
//! ```text
//!  63                              30   29      28     27              0
//! [ version: 34 bits                | parked | exclusive | frame + 1    ]     frame field 0: not resident
//! ```
//! # Invariants
//! - I1: two loads that give the same word saw the same page bytes in between: every change of the bytes of a frame, and every
//!   change of what a frame holds, grows the version of the page concerned before the frame can be changed again.
//! - I2: the version never shrinks, also not across evictions.
//! - I3: only the thread that set `exclusive` clears it. `parked` is set only while `exclusive` is set.
//! - I4: the frame field of a resident page changes only under `exclusive`, or with one compare-and-swap that grows the version.
//! # Concurrency
//! Reader: load (Acquire) .. relaxed loads of page words .. `fence(Acquire)` .. load (Relaxed), equal → valid.
//! The fence pairs with the latch holder's `fence(Release)` after its compare-and-swap and before its first store: a reader
//! that saw one of its stores sees the exclusive bit or a later word. The holder's releasing swap (Release) pairs with the next
//! reader's first load (Acquire).
//! Waiting threads spin, then set `parked` and sleep in `parking_lot_core` keyed by the word's address; the release
//! swaps the whole word and so learns whether anybody sleeps. Waking is rare, so all sleepers are woken.
//! # Cost
//! A read stores nothing. A latch is one compare-and-swap and one swap.

use crate::planted::{self, Bug};
use crate::prim::{AtomicU64, Ordering, fence, point, spin};

/// How often a waiting thread looks before it sleeps.
const SPINS: u32 = 64;

const FRAME_BITS: u32 = 28;
const FRAME_MASK: u64 = (1 << FRAME_BITS) - 1;
const EXCLUSIVE: u64 = 1 << FRAME_BITS;
const PARKED: u64 = 1 << (FRAME_BITS + 1);
const VERSION_ONE: u64 = 1 << (FRAME_BITS + 2);

/// The largest number of frames that the frame field can name.
pub const MAX_FRAMES: usize = FRAME_MASK as usize - 1;

/// See the module's header. A page word starts as 0: version 0, not latched, not resident.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct PageWord(AtomicU64);

/// The frame that `word` names, if the page is resident.
#[inline(always)]
pub fn frame_of(word: u64) -> Option<u32> {
    ((word & FRAME_MASK) as u32).checked_sub(1)
}

/// Whether `word` has the exclusive bit.
#[inline(always)]
pub fn is_exclusive(word: u64) -> bool {
    word & EXCLUSIVE != 0
}

/// The version part of `word`.
#[inline(always)]
pub fn version_of(word: u64) -> u64 {
    word / VERSION_ONE
}

#[inline(always)]
fn grown(word: u64) -> u64 {
    (word & !(EXCLUSIVE | PARKED)).wrapping_add(VERSION_ONE)
}

impl PageWord {
    pub fn new() -> Self {
        PageWord(AtomicU64::new(0))
    }

    /// The word as it is, Acquire.
    #[inline(always)]
    pub fn load(&self) -> u64 {
        point();
        self.0.load(Ordering::Acquire)
    }

    /// The word without the exclusive bit: the start of an optimistic read. Spins, then sleeps, while a latch is held.
    /// Second: whether it had to wait.
    #[inline(always)]
    pub fn begin_read(&self) -> u64 {
        let word = self.load();
        if !is_exclusive(word) {
            return word;
        }
        self.wait_shared()
    }

    /// True if nothing changed since `seen` was loaded: what was copied in between is one state of the page.
    #[inline(always)]
    pub fn validate(&self, seen: u64) -> bool {
        point();
        fence(Ordering::Acquire);
        self.0.load(Ordering::Relaxed) == seen || planted::is(Bug::MissedVersion)
    }

    /// Latches the page if the word still is `seen` (which has no exclusive bit).
    #[inline]
    pub fn try_latch(&self, seen: u64) -> bool {
        debug_assert!(!is_exclusive(seen), "I3: latch from an unlatched word");
        point();
        if self
            .0
            .compare_exchange(seen, seen | EXCLUSIVE, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            return false;
        }
        fence(Ordering::Release);
        true
    }

    /// Latches the page if it is resident, waiting for another holder. Gives the word before the latch.
    pub fn latch_resident(&self) -> Option<u64> {
        loop {
            let word = self.begin_read();
            frame_of(word)?;
            if self.try_latch(word) {
                return Some(word);
            }
            spin();
        }
    }

    /// Ends a latch under which nothing was changed. `before` is the word before the latch.
    #[inline]
    pub fn release_unchanged(&self, before: u64) {
        self.release_to(before);
    }

    /// Ends a latch under which the bytes were changed: the version grows.
    #[inline]
    pub fn release_changed(&self, before: u64) {
        self.release_to(grown(before));
    }

    /// Ends a latch by taking the page out of its frame: the version grows, the frame field becomes 0.
    pub fn release_evicted(&self, before: u64) {
        self.release_to(grown(before) & !FRAME_MASK);
    }

    /// Ends a latch by moving the page to `frame`, which holds the same bytes: the version grows.
    pub fn release_moved(&self, before: u64, frame: u32) {
        self.release_to(grown(before) & !FRAME_MASK | (u64::from(frame) + 1));
    }

    /// Puts a page that was not resident into `frame`; fails if the word is not `seen` any more.
    pub fn install(&self, seen: u64, frame: u32) -> bool {
        debug_assert!(
            frame_of(seen).is_none() && !is_exclusive(seen),
            "I4: install over a resident page"
        );
        let new = seen | (u64::from(frame) + 1);
        self.0
            .compare_exchange(seen, new, Ordering::Release, Ordering::Relaxed)
            .is_ok()
    }

    /// As [`install`](Self::install), and latches the page in the same step. Gives the word "before the latch".
    pub fn install_latched(&self, seen: u64, frame: u32) -> Option<u64> {
        debug_assert!(
            frame_of(seen).is_none() && !is_exclusive(seen),
            "I4: install over a resident page"
        );
        let new = seen | (u64::from(frame) + 1);
        self.0
            .compare_exchange(seen, new | EXCLUSIVE, Ordering::AcqRel, Ordering::Relaxed)
            .ok()?;
        fence(Ordering::Release);
        Some(new)
    }

    fn release_to(&self, word: u64) {
        debug_assert!(
            word & (EXCLUSIVE | PARKED) == 0,
            "I3: a released word is unlatched"
        );
        point();
        let old = self.0.swap(word, Ordering::Release);
        debug_assert!(old & EXCLUSIVE != 0, "I3: only the holder releases");
        if old & PARKED != 0 {
            self.unpark();
        }
    }

    #[cold]
    fn wait_shared(&self) -> u64 {
        let mut spins = 0;
        loop {
            let word = self.load();
            if !is_exclusive(word) {
                return word;
            }
            if spins < SPINS || cfg!(any(loom, shuttle)) {
                spins += 1;
                spin();
                continue;
            }
            if word & PARKED == 0
                && self
                    .0
                    .compare_exchange_weak(
                        word,
                        word | PARKED,
                        Ordering::Relaxed,
                        Ordering::Relaxed,
                    )
                    .is_err()
            {
                continue;
            }
            self.park();
        }
    }

    #[cfg(not(any(loom, shuttle)))]
    fn park(&self) {
        let key = std::ptr::from_ref(self).addr();
        // SAFETY: the key is the address of this word, which stays put while it is borrowed; `validate` only loads it, and the
        // other callbacks do nothing, so none of them panics or calls into parking_lot.
        unsafe {
            parking_lot_core::park(
                key,
                || {
                    let word = self.0.load(Ordering::Relaxed);
                    word & (EXCLUSIVE | PARKED) == EXCLUSIVE | PARKED
                },
                || {},
                |_, _| {},
                parking_lot_core::DEFAULT_PARK_TOKEN,
                None,
            );
        }
    }

    #[cfg(not(any(loom, shuttle)))]
    #[cold]
    fn unpark(&self) {
        let key = std::ptr::from_ref(self).addr();
        // SAFETY: only threads inside `park` above use this word's address as a key.
        unsafe {
            parking_lot_core::unpark_all(key, parking_lot_core::DEFAULT_UNPARK_TOKEN);
        }
    }

    #[cfg(any(loom, shuttle))]
    fn park(&self) {
        spin();
    }

    #[cfg(any(loom, shuttle))]
    fn unpark(&self) {}
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn words_say_what_they_hold() {
        let w = PageWord::new();
        assert_eq!(frame_of(w.load()), None);
        assert!(w.latch_resident().is_none());
        assert!(w.install(0, 5));
        let seen = w.begin_read();
        assert_eq!((frame_of(seen), version_of(seen)), (Some(5), 0));
        assert!(w.validate(seen));

        assert!(w.try_latch(seen));
        assert!(!w.validate(seen));
        w.release_unchanged(seen);
        assert!(w.validate(seen), "an unused latch leaves readers valid");

        assert!(w.try_latch(seen));
        w.release_changed(seen);
        assert!(!w.validate(seen));
        let seen = w.load();
        assert_eq!((frame_of(seen), version_of(seen)), (Some(5), 1));

        let before = w.latch_resident().unwrap();
        w.release_evicted(before);
        let seen = w.load();
        assert_eq!((frame_of(seen), version_of(seen)), (None, 2));
        assert!(
            !w.install(0, 7),
            "an old view of an absent page cannot install"
        );
        let before = w.install_latched(seen, 7).unwrap();
        assert!(is_exclusive(w.load()));
        w.release_changed(before);
        assert_eq!((frame_of(w.load()), version_of(w.load())), (Some(7), 3));

        let before = w.latch_resident().unwrap();
        w.release_moved(before, 2);
        assert_eq!((frame_of(w.load()), version_of(w.load())), (Some(2), 4));
    }

    #[test]
    fn sleepers_are_woken() {
        let w = std::sync::Arc::new(PageWord::new());
        assert!(w.install(0, 0));
        let rounds = if cfg!(miri) { 3 } else { 200 };
        for _ in 0..rounds {
            let before = w.latch_resident().unwrap();
            let waiters: Vec<_> = (0..3)
                .map(|i| {
                    let w = w.clone();
                    std::thread::spawn(move || {
                        if i == 0 {
                            let before = w.latch_resident().unwrap();
                            w.release_changed(before);
                        } else {
                            w.begin_read();
                        }
                    })
                })
                .collect();
            std::thread::yield_now();
            w.release_changed(before);
            for t in waiters {
                t.join().unwrap();
            }
        }
        assert_eq!(version_of(w.load()), 2 * rounds);
    }
}
