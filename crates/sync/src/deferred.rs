//! A target position for a background thread that polls it. A sender wakes the thread only if it
//! sleeps.
//!
//! # Invariants
//! - L1: a target that is set before the receiver sleeps either keeps it awake, or its sender is
//!   told to wake it.
//! - L2: at most one sender per sleep is told to wake the receiver.
//!
//! # Concurrency
//! Both sides store and then load (Dekker): the sender stores `target`, the receiver stores
//! `sleeping`. A `fence(SeqCst)` lies between each side's store and its load of the other's
//! variable, so at least one side sees the other.

use crate::prim::{AtomicBool, AtomicU64, Ordering::*, fence};

/// See the module's header. There is one receiver.
#[derive(Debug, Default)]
pub struct DeferredTarget {
    /// The highest target so far.
    target: AtomicU64,
    /// The receiver sleeps, or is about to.
    sleeping: AtomicBool,
}

impl DeferredTarget {
    /// Sender: raises the target to `position`. True: the sender must wake the receiver.
    pub fn raise(&self, position: u64) -> bool {
        self.target.fetch_max(position, AcqRel);
        fence(SeqCst);
        self.sleeping.load(Relaxed) && self.sleeping.swap(false, Relaxed)
    }

    /// The highest target so far; 0 if none was set.
    pub fn highest(&self) -> u64 {
        self.target.load(Acquire)
    }

    /// Receiver: announces that it will sleep, having reached `done`. False: a higher target was
    /// set, so it must not sleep.
    pub fn may_sleep(&self, done: u64) -> bool {
        self.sleeping.store(true, Relaxed);
        fence(SeqCst);
        self.target.load(Relaxed) <= done
    }

    /// Receiver: it is awake again, or did not sleep at all.
    pub fn awake(&self) {
        self.sleeping.store(false, Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn sleeping_receiver_is_woken_once() {
        let target = DeferredTarget::default();
        assert!(!target.raise(5), "the receiver is awake");
        assert!(!target.may_sleep(4), "the target is higher");
        target.awake();
        assert!(target.may_sleep(5));
        assert!(target.raise(6));
        assert!(!target.raise(7), "another sender wakes it already");
        target.awake();
        assert_eq!(target.highest(), 7);
        assert!(!target.raise(3));
        assert_eq!(target.highest(), 7);
    }
}
