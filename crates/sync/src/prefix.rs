//! Which prefix of the log has been filled, when ranges are reserved in order and filled in any order.
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
//! - I2: ranges start and end at multiples of [`UNIT`], and no range is longer than the capacity; a range is
//!   marked only when its end is at most `horizon + capacity`. So a slot's value from an earlier lap is at most the
//!   position that the slot stands for now, and old values need no clearing.
//! - I3: when all marks are done and nobody is inside `mark`, `horizon` is the end of the longest filled prefix: nobody has
//!   to look again later.
//! # Concurrency
//! `mark` stores its slot (Release), fences, and tries to become the one that advances; the advancer clears the flag, fences and
//! looks once more. The two `SeqCst` fences make a lost mark impossible: either the marker sees the flag clear, or the advancer
//! sees the slot. `horizon` is stored with Release after the slots were loaded with Acquire, so whoever loads it with Acquire sees
//! all bytes below it, and everything its writers did before they marked (a transaction's status).
//! # Cost
//! Readers of `horizon` share one line with nothing else on it.

use crate::pad::CachePadded;
use crate::prim::{AtomicBool, AtomicU64, Ordering, fence};

/// Alignment of ranges, bytes.
pub const UNIT: u64 = 16;

/// See the module's header.
pub struct FilledPrefix {
    horizon: CachePadded<AtomicU64>,
    advancing: CachePadded<AtomicBool>,
    slots: Box<[AtomicU64]>,
}

impl FilledPrefix {
    /// `capacity`: bytes, a power of two and at least one unit.
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

    /// The end of the filled prefix, Acquire.
    #[inline(always)]
    pub fn horizon(&self) -> u64 {
        self.horizon.load(Ordering::Acquire)
    }

    /// The line that [`horizon`](Self::horizon) loads from.
    pub fn horizon_cell(&self) -> &AtomicU64 {
        &self.horizon
    }

    fn slot(&self, at: u64) -> &AtomicU64 {
        &self.slots[((at / UNIT) as usize) & (self.slots.len() - 1)]
    }

    /// Says that `[start, end)` is filled, and moves the prefix as far as it goes. Gives the horizon it left behind when
    /// it moved it.
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
            // Failing writes nothing: the line stays with whoever advances.
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
    fn the_prefix_waits_for_the_gap() {
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
    fn many_threads_leave_no_gap() {
        let p = std::sync::Arc::new(FilledPrefix::new(0, 1 << 16));
        let next = std::sync::Arc::new(AtomicU64::new(0));
        let threads: Vec<_> = (0..4u64)
            .map(|t| {
                let (p, next) = (p.clone(), next.clone());
                std::thread::spawn(move || {
                    // Miri takes about a thousand times as long.
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
