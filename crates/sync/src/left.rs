//! A number that is left to a thread which looks at it in its own time, and is woken for it only where it dozes.
//!
//! # Invariants
//! - L1: what is left before its taker dozes keeps it from dozing, or whoever leaves it is told to wake the taker.
//! - L2: at most one is told to for each doze.
//!
//! # Concurrency
//! Store-then-load on both sides (Dekker): who leaves a number stores `left`, the taker stores `dozing`, a `fence(SeqCst)` lies between each one's
//! store and its load of the other's, so at least one sees the other.

use crate::prim::{AtomicBool, AtomicU64, Ordering::*, fence};

/// See the module's header. One taker.
#[derive(Debug, Default)]
pub struct Left {
    /// The highest number that was left.
    left: AtomicU64,
    /// The taker dozes, or is about to.
    dozing: AtomicBool,
}

impl Left {
    /// Leaves a number. True: wake the taker.
    pub fn leave(&self, number: u64) -> bool {
        self.left.fetch_max(number, AcqRel);
        fence(SeqCst);
        self.dozing.load(Relaxed) && self.dozing.swap(false, Relaxed)
    }

    /// The highest number that was left so far; 0: none.
    pub fn highest(&self) -> u64 {
        self.left.load(Acquire)
    }

    /// Taker: about to doze, as all up to `done` is done. False: do not, more was left.
    pub fn may_doze(&self, done: u64) -> bool {
        self.dozing.store(true, Relaxed);
        fence(SeqCst);
        self.left.load(Relaxed) <= done
    }

    /// Taker: awake again, or not asleep at all.
    pub fn awake(&self) {
        self.dozing.store(false, Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn only_one_that_dozes_is_woken_and_once() {
        let left = Left::default();
        assert!(!left.leave(5), "it is awake");
        assert!(!left.may_doze(4), "more was left");
        left.awake();
        assert!(left.may_doze(5));
        assert!(left.leave(6));
        assert!(!left.leave(7), "it is being woken");
        left.awake();
        assert_eq!(left.highest(), 7);
        assert!(!left.leave(3));
        assert_eq!(left.highest(), 7);
    }
}
