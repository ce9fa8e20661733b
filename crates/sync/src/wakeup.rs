//! Tells a sender whether it must wake (ring) a thread that may sleep in epoll. Two flags make sure
//! that no message is missed.
//!
//! # Invariants
//! - W1: a message that is queued before [`Wakeup::announce`] is either seen by the receiver before
//!   it sleeps, or its sender is told to ring.
//! - W2: at most one sender per sleep is told to ring, and none while the receiver is awake.
//!
//! # Concurrency
//! Both sides store and then load (Dekker): the sender stores `pending`, the receiver stores
//! `sleeping`. A `fence(SeqCst)` lies between each side's store and its load of the other's flag,
//! so at least one side sees the other.

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
    /// Sender: announces a message that is already queued. True: the sender must ring the receiver.
    pub fn announce(&self) -> bool {
        self.pending.store(true, Ordering::Release);
        fence(Ordering::SeqCst);
        self.sleeping.load(Ordering::Relaxed) && self.sleeping.swap(false, Ordering::Relaxed)
    }

    /// Receiver: announces that it will sleep. False: there are messages, so it must not sleep.
    pub fn may_sleep(&self) -> bool {
        self.sleeping.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        !self.pending.load(Ordering::Relaxed)
    }

    /// Receiver: it is awake again.
    pub fn awake(&self) {
        self.sleeping.store(false, Ordering::Relaxed);
    }

    /// Receiver: whether there may be messages, without taking them.
    #[inline]
    pub fn is_pending(&self) -> bool {
        self.pending.load(Ordering::Relaxed)
    }

    /// Receiver: whether there may be messages. It must call this before it takes them from the
    /// queue.
    pub fn take(&self) -> bool {
        self.pending.load(Ordering::Relaxed) && self.pending.swap(false, Ordering::Acquire)
    }
}
