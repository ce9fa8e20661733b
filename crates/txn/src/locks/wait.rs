//! Waiting for a row lock: one object per queued request, and the future over it.

use super::owner::LockOwner;
use super::table::LockTable;
use nfold_observe::contention::Ticket;
use parking_lot::Mutex;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

/// Over when the request left the waiting state: granted, a victim, or woken to try again. The call
/// that is then repeated finds out which.
pub(super) struct Waiter {
    /// Its request's number: requests of one queue have rising numbers.
    pub number: u64,
    pub since: Instant,
    over: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Waiter {
    pub fn new(number: u64) -> Self {
        Waiter {
            number,
            since: Instant::now(),
            over: AtomicBool::new(false),
            waker: Mutex::new(None),
        }
    }

    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    /// Ends the wait. Called after the shard's mutex is released.
    pub fn wake(&self) {
        self.over.store(true, Ordering::Release);
        let waker = self.waker.lock().take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// A queued request; dropping it takes the request out of the queue if it still waits.
pub(super) struct LockWait {
    pub table: Arc<LockTable>,
    pub owner: Arc<LockOwner>,
    pub waiter: Arc<Waiter>,
    /// Of the wait site; `None` once given back.
    pub ticket: Option<Ticket>,
}

impl Future for LockWait {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.waiter.is_over() {
            return Poll::Ready(());
        }
        *self.waiter.waker.lock() = Some(context.waker().clone());
        // `wake` sets the flag before it takes the waker, so one of the two sees the other.
        if self.waiter.is_over() {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }
}

impl Drop for LockWait {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.table.waited(ticket, self.waiter.since.elapsed());
        }
        if !self.waiter.is_over() {
            self.table.cancel(&self.owner, &self.waiter);
        }
    }
}
