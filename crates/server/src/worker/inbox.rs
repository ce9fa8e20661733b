//! How other threads reach a worker: a queue of messages and one eventfd.
//!
//! # Concurrency
//! - `queue` is behind a mutex that is held for a push or a swap only.
//! - `pending` (true: the queue may hold something) and `sleeping` (true: the worker is in, or about to enter, epoll) are both
//!   SeqCst: a sender sets `pending` and then swaps `sleeping`; the worker sets `sleeping` and then reads `pending`. One of the two
//!   sees the other, so no message is slept over (I1).
//! - The eventfd is written only by the sender that swaps `sleeping` to false: at most once a sleep, and never by the worker
//!   itself (its own wakes find `sleeping` false).
//!
//! # Invariants
//! - I1: a message pushed before or during a sleep ends it.

use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use super::Token;
use crate::listen::Accepted;

/// What a worker is told.
#[derive(Debug)]
pub(crate) enum Message {
    /// A new connection is yours.
    Accept(Accepted),
    /// What the connection waits for may have come, or it was killed.
    Wake(Token),
    /// End all sessions and return.
    Shutdown,
}

pub(crate) struct Inbox {
    queue: Mutex<Vec<Message>>,
    pending: AtomicBool,
    sleeping: AtomicBool,
    eventfd: mio::Waker,
}

impl Inbox {
    pub fn new(eventfd: mio::Waker) -> Self {
        Inbox {
            queue: Mutex::new(Vec::new()),
            pending: AtomicBool::new(false),
            sleeping: AtomicBool::new(false),
            eventfd,
        }
    }

    pub fn push(&self, message: Message) {
        self.queue.lock().push(message);
        self.pending.store(true, Ordering::SeqCst);
        if self.sleeping.swap(false, Ordering::SeqCst)
            && let Err(e) = self.eventfd.wake()
        {
            tracing::error!("cannot wake a worker: {e}");
        }
    }

    /// The worker is about to block. False: do not, there are messages.
    pub fn may_sleep(&self) -> bool {
        self.sleeping.store(true, Ordering::SeqCst);
        !self.pending.load(Ordering::SeqCst)
    }

    /// The worker is awake again.
    pub fn awake(&self) {
        self.sleeping.store(false, Ordering::SeqCst);
    }

    /// Swaps the queued messages into `into`, which must be empty.
    pub fn take(&self, into: &mut Vec<Message>) {
        debug_assert!(into.is_empty());
        if self.pending.load(Ordering::Relaxed) && self.pending.swap(false, Ordering::SeqCst) {
            std::mem::swap(&mut *self.queue.lock(), into);
        }
    }
}
