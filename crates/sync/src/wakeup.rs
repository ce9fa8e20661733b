//! When a sender has to ring a thread that sleeps in epoll: two flags that cannot miss each other.
//!
//! # Invariants
//! - W1: a message that is queued before [`Wakeup::announce`] is either seen by the receiver before it sleeps, or the sender is told to
//!   ring.
//! - W2: at most one sender is told to ring per sleep; the receiver itself never is while it is awake.
//!
//! # Concurrency
//! Store-then-load on both sides (Dekker): the sender stores `pending`, the receiver stores `sleeping`, a `fence(SeqCst)` lies
//! between each one's store and its load of the other's flag, so at least one sees the other.

use crate::prim::{AtomicBool, Ordering, fence};

/// The flags of one receiver.
#[derive(Debug)]
pub struct Wakeup {
    /// There may be messages.
    pending: AtomicBool,
    /// The receiver sleeps, or is about to.
    sleeping: AtomicBool,
}

impl Default for Wakeup {
    fn default() -> Self {
        Wakeup {
            pending: AtomicBool::new(false),
            sleeping: AtomicBool::new(false),
        }
    }
}

impl Wakeup {
    /// Sender: a message has been queued. True: ring the receiver.
    pub fn announce(&self) -> bool {
        self.pending.store(true, Ordering::Release);
        fence(Ordering::SeqCst);
        self.sleeping.load(Ordering::Relaxed) && self.sleeping.swap(false, Ordering::Relaxed)
    }

    /// Receiver: about to sleep. False: do not, there are messages.
    pub fn may_sleep(&self) -> bool {
        self.sleeping.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        !self.pending.load(Ordering::Relaxed)
    }

    /// Receiver: awake again.
    pub fn awake(&self) {
        self.sleeping.store(false, Ordering::Relaxed);
    }

    /// Receiver: are there messages? To be called before taking them from the queue.
    pub fn take(&self) -> bool {
        self.pending.load(Ordering::Relaxed) && self.pending.swap(false, Ordering::Acquire)
    }
}
