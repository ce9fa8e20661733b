//! Tracks which prefix of the log has been filled. Writers reserve ranges in order and fill them in
//! any order.
//!
//! # Picture
//! ```text
//!            horizon                      next
//!  ............|#####|     |########|      |            # filled by its writer, blank: still being copied
//!              a     b     c        d
//!  slot[a] = b   slot[c] = d             the prefix moves a → b and waits for the writer of [b, c)
//! ```
//! # Invariants
//! - I1: `horizon` never shrinks, and every byte below it was marked filled.
//! - I2: ranges start and end at multiples of [`UNIT`], and no range is longer than the capacity. A
//!   range is marked only when its end is at most `horizon + capacity`. So a slot's value from an
//!   earlier lap is at most the position that the slot stands for now, and old values need no
//!   clearing.
//! - I3: when every `mark` has returned, `horizon` is the end of the longest filled prefix. No
//!   later check is needed.
//! # Concurrency
//! `mark` stores its slot (Release), fences, and tries to become the thread that advances the
//! horizon. The advancing thread clears the flag, fences and checks the next slot once more. The
//! two `SeqCst` fences rule out a lost mark: either the marker sees the flag clear, or the
//! advancing thread sees the slot.
//!
//! `horizon` is stored with Release after the slots were loaded with Acquire. A thread that loads
//! it with Acquire therefore sees all bytes below it, and everything that their writers did before
//! they marked them (such as setting a transaction's status).
//! # Cost
//! `horizon` has a cache line to itself, so its readers share no line with the writers' slots.

use crate::pad::CachePadded;
use crate::prim::{AtomicBool, AtomicU64, Ordering, fence};

/// Alignment of ranges, in bytes.
pub const UNIT: u64 = 16;

/// See the module's header.
pub struct FilledPrefix {
    horizon: CachePadded<AtomicU64>,
    advancing: CachePadded<AtomicBool>,
    slots: Box<[AtomicU64]>,
}

impl FilledPrefix {
    /// `capacity` is in bytes: a power of two, and at least one unit.
    pub fn new(start: u64, capacity: u64) -> Self {
        assert!(
            capacity.is_power_of_two() && capacity >= UNIT,
            "capacity is a power of two"
        );
        assert!(start.is_multiple_of(UNIT), "I2: aligned start");
        let count = (capacity / UNIT) as usize;
        FilledPrefix {
            horizon: CachePadded::new(AtomicU64::new(start)),
            advancing: CachePadded::new(AtomicBool::new(false)),
            slots: (0..count).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// The end of the filled prefix, loaded with Acquire.
    #[inline(always)]
    pub fn horizon(&self) -> u64 {
        self.horizon.load(Ordering::Acquire)
    }

    /// The atomic that [`horizon`](Self::horizon) loads.
    pub fn horizon_cell(&self) -> &AtomicU64 {
        &self.horizon
    }

    /// The memory of the slots, which is as long as half of the capacity.
    pub fn slots(&self) -> &[AtomicU64] {
        &self.slots
    }

    fn slot(&self, at: u64) -> &AtomicU64 {
        &self.slots[((at / UNIT) as usize) & (self.slots.len() - 1)]
    }

    /// Marks `[start, end)` as filled, and advances the prefix as far as possible. Returns the new
    /// horizon if this call moved it.
    pub fn mark(&self, start: u64, end: u64) -> Option<u64> {
        debug_assert!(
            start.is_multiple_of(UNIT) && end.is_multiple_of(UNIT) && start < end,
            "I2: aligned range"
        );
        self.slot(start).store(end, Ordering::Release);
        fence(Ordering::SeqCst);
        self.advance()
    }

    fn advance(&self) -> Option<u64> {
        let mut moved = None;
        loop {
            // A failed exchange stores nothing, so the line stays with the advancing thread.
            if self
                .advancing
                .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed)
                .is_err()
            {
                return moved;
            }
            let from = self.horizon.load(Ordering::Relaxed);
            let mut at = from;
            loop {
                let end = self.slot(at).load(Ordering::Acquire);
                if end <= at {
                    break;
                }
                at = end;
            }
            if at != from {
                self.horizon.store(at, Ordering::Release);
                moved = Some(at);
            }
            self.advancing.store(false, Ordering::Release);
            fence(Ordering::SeqCst);
            if self.slot(at).load(Ordering::Acquire) <= at {
                return moved;
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn prefix_stops_at_a_gap() {
        let p = FilledPrefix::new(64, 256);
        assert_eq!(p.mark(96, 128), None);
        assert_eq!(p.horizon(), 64);
        assert_eq!(p.mark(64, 96), Some(128));
        for lap in 0..100u64 {
            let at = 128 + lap * 48;
            assert_eq!(p.mark(at + 16, at + 48), None);
            assert_eq!(p.mark(at, at + 16), Some(at + 48));
        }
    }

    #[test]
    fn prefix_reaches_end_under_many_threads() {
        let p = std::sync::Arc::new(FilledPrefix::new(0, 1 << 16));
        let next = std::sync::Arc::new(AtomicU64::new(0));
        let threads: Vec<_> = (0..4u64)
            .map(|t| {
                let (p, next) = (p.clone(), next.clone());
                std::thread::spawn(move || {
                    // Miri is about a thousand times slower.
                    for i in 0..if cfg!(miri) { 20 } else { 20_000u64 } {
                        let len = UNIT * (1 + (i * 7 + t) % 5);
                        let start = next.fetch_add(len, Ordering::Relaxed);
                        while start + len > p.horizon() + (1 << 16) {
                            std::thread::yield_now();
                        }
                        p.mark(start, start + len);
                    }
                })
            })
            .collect();
        for t in threads {
            t.join().unwrap();
        }
        assert_eq!(p.horizon(), next.load(Ordering::Relaxed));
    }
}
