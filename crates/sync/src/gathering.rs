//! Requests of several threads that are made as one: whoever hands over last makes it for all.
//!
//! # Invariants
//! - G1: every number that is handed over comes out of [`Gathering::hand_over`] or is below one that does, of a thread that held something meanwhile.
//! - G2: nobody leaves a request to others behind one that was left already: threads that take turns cannot put it off for ever.
//!
//! # Concurrency
//! A number is put into `left` before its thread stops being a holder (AcqRel); so whoever finds itself the last one finds there what the others left.

use crate::prim::{AtomicU64, AtomicUsize, Ordering::*};

/// See the module's header. Threads that have requests are *holders*.
#[derive(Debug, Default)]
pub struct Gathering {
    holders: AtomicUsize,
    /// The highest number that was left to another holder; 0: none.
    left: AtomicU64,
}

/// What becomes of what a thread hands over.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum HandOver {
    /// Another holder will request it.
    Left,
    /// It is to be requested now, and is at least what others left, if they did; nobody holds anything else.
    Alone,
    /// This is to be requested now, for others as well, or while others hold something.
    Ask(u64),
}

impl Gathering {
    /// This thread has a request now, and will hand it over.
    pub fn hold(&self) {
        self.holders.fetch_add(1, AcqRel);
    }

    /// This thread's requests go up to `to` (not 0). Says who is to make them now.
    pub fn hand_over(&self, to: u64) -> HandOver {
        let left = self.left.swap(0, AcqRel);
        if left == 0 {
            self.left.fetch_max(to, AcqRel);
        }
        let last = self.holders.fetch_sub(1, AcqRel) == 1;
        if left == 0 && !last {
            return HandOver::Left;
        }
        // Others may have left theirs after the first look: they counted on a holder that was still there.
        let more = if last { self.left.swap(0, AcqRel) } else { 0 };
        if last && left == 0 && more == to {
            return HandOver::Alone;
        }
        HandOver::Ask(left.max(more).max(to)) // G2
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_last_one_asks_for_all() {
        let g = Gathering::default();
        for _ in 0..3 {
            g.hold();
        }
        assert_eq!(g.hand_over(7), HandOver::Left);
        g.hold(); // it comes again before the others are done
        assert_eq!(g.hand_over(5), HandOver::Ask(7), "G2: not left twice");
        assert_eq!(g.hand_over(8), HandOver::Left);
        assert_eq!(g.hand_over(6), HandOver::Ask(8));
        g.hold();
        assert_eq!(g.hand_over(9), HandOver::Alone);
    }
}
