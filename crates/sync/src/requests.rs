//! Requests for a number to be reached, to one thread that sees to it until it ends.
//!
//! # Invariants
//! - R1: a request that was made is among those that the taker finds at its end, or whoever made it is told that the taker has ended.
//!
//! # Concurrency
//! Store-then-load on both sides (Dekker): who asks raises `wanted`, the taker stores `ended`, a `fence(SeqCst)` lies between each one's store and its
//! load of the other's, so at least one sees the other.

use crate::prim::{AtomicBool, AtomicU64, Ordering::*, fence};

/// See the module's header. One taker.
#[derive(Debug, Default)]
pub struct Requests {
    wanted: AtomicU64,
    ended: AtomicBool,
}

impl Requests {
    /// Nothing beyond `from` is wanted.
    pub fn new(from: u64) -> Requests {
        Requests {
            wanted: AtomicU64::new(from),
            ended: AtomicBool::new(false),
        }
    }

    /// Asks for `to`. True: nobody has before, so the taker is to be woken.
    pub fn ask(&self, to: u64) -> bool {
        self.wanted.fetch_max(to, AcqRel) < to
    }

    /// The highest number that was asked for.
    pub fn highest(&self) -> u64 {
        self.wanted.load(Acquire)
    }

    /// After [`ask`](Self::ask): whether the taker sees to it. False: it has ended.
    pub fn is_taken(&self) -> bool {
        fence(SeqCst);
        !self.ended.load(Relaxed)
    }

    /// Taker: takes no more. Gives the highest number that was asked for by those who count on it (R1).
    pub fn end(&self) -> u64 {
        self.ended.store(true, Relaxed);
        fence(SeqCst);
        self.wanted.load(Relaxed)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_first_who_asks_for_more_wakes() {
        let requests = Requests::new(10);
        assert!(!requests.ask(9));
        assert!(requests.ask(12) && !requests.ask(12) && !requests.ask(11));
        assert!(requests.is_taken());
        assert_eq!((requests.end(), requests.is_taken()), (12, false));
    }
}
