//! The page word: a 64-bit word that holds a page's frame number, its exclusive latch and its
//! version. The buffer pool keeps one for each page.
//!
//! # Picture
//! ```text
//!  63                              30   29      28     27              0
//! [ version: 34 bits                | parked | exclusive | frame + 1    ]     frame field 0: not resident
//! ```
//! # Invariants
//! - I1: if two loads return the same word, the page bytes did not change in between. Every change
//!   of a frame's bytes, and every change of the page that a frame holds, increments the version of
//!   the page concerned before the frame can change again.
//! - I2: the version never decreases, not even across evictions.
//! - I3: only the thread that set `exclusive` clears it. `parked` is set only while `exclusive` is
//!   set.
//! - I4: the frame field of a resident page changes only under `exclusive`, or by one
//!   compare-and-swap that increments the version.
//! # Concurrency
//! A reader loads the word (Acquire), loads page words (Relaxed), runs `fence(Acquire)`, and loads
//! the word again (Relaxed). If both loads are equal, the read is valid.
//!
//! That fence pairs with the latch holder's `fence(Release)`, which lies between its
//! compare-and-swap and its first store. A reader that saw one of the holder's stores therefore
//! sees the exclusive bit or a later word. The holder's releasing swap (Release) pairs with the
//! next reader's first load (Acquire).
//!
//! A waiting thread spins, then sets `parked` and sleeps in `parking_lot_core` keyed by the word's
//! address. The release swaps the whole word and so learns whether threads sleep. Waking is rare,
//! so it wakes all of them.
//! # Cost
//! A read stores nothing. A latch is one compare-and-swap and one swap.

use crate::planted::{self, Bug};
use crate::prim::{AtomicU64, Ordering, fence, point, spin};

/// How many times a waiting thread checks the word before it sleeps.
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

    /// Loads the word with Acquire.
    #[inline(always)]
    pub fn load(&self) -> u64 {
        point();
        self.0.load(Ordering::Acquire)
    }

    /// Starts an optimistic read: returns the word without the exclusive bit. While a latch is
    /// held, it spins and then sleeps.
    #[inline(always)]
    pub fn begin_read(&self) -> u64 {
        let word = self.load();
        if !is_exclusive(word) {
            return word;
        }
        self.wait_shared()
    }

    /// Whether the word is still `seen`. Then everything copied since `seen` was loaded is one
    /// state of the page.
    #[inline(always)]
    pub fn validate(&self, seen: u64) -> bool {
        point();
        fence(Ordering::Acquire);
        self.0.load(Ordering::Relaxed) == seen || planted::is(Bug::MissedVersion)
    }

    /// Latches the page if the word is still `seen`, which must not have the exclusive bit.
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

    /// Latches the page if it is resident, waiting for other holders. Returns the word before the
    /// latch.
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

    /// Releases a latch whose holder changed nothing. `before` is the word before the latch.
    #[inline]
    pub fn release_unchanged(&self, before: u64) {
        self.release_to(before);
    }

    /// Releases a latch whose holder changed the bytes: increments the version.
    #[inline]
    pub fn release_changed(&self, before: u64) {
        self.release_to(grown(before));
    }

    /// Releases a latch and evicts the page from its frame: increments the version and sets the
    /// frame field to 0.
    pub fn release_evicted(&self, before: u64) {
        self.release_to(grown(before) & !FRAME_MASK);
    }

    /// Releases a latch and moves the page to `frame`, which holds the same bytes: increments the
    /// version.
    pub fn release_moved(&self, before: u64, frame: u32) {
        self.release_to(grown(before) & !FRAME_MASK | (u64::from(frame) + 1));
    }

    /// Makes an absent page resident in `frame`. Fails if the word is no longer `seen`.
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

    /// As [`install`](Self::install), and latches the page in the same step. Returns the word to
    /// pass as `before` to the release.
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
        // SAFETY: the key is the address of this word, which cannot move while it is borrowed. The
        // `validate` callback only loads the word and the other callbacks do nothing, so none of
        // them panics or calls into parking_lot.
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
    fn page_word_tracks_frame_and_version() {
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
        assert!(!w.install(0, 7), "a stale word cannot install");
        let before = w.install_latched(seen, 7).unwrap();
        assert!(is_exclusive(w.load()));
        w.release_changed(before);
        assert_eq!((frame_of(w.load()), version_of(w.load())), (Some(7), 3));

        let before = w.latch_resident().unwrap();
        w.release_moved(before, 2);
        assert_eq!((frame_of(w.load()), version_of(w.load())), (Some(2), 4));
    }

    #[test]
    fn release_wakes_sleepers() {
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
