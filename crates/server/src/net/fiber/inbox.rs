//! How other threads reach a worker: a queue of messages and one eventfd.
//!
//! # Concurrency
//! - `queue` is behind a mutex that is held for a push or a swap only.
//! - `wakeup` decides who writes the eventfd: at most one sender a sleep, and never the worker
//!   itself (its own wakes find it awake).

use std::sync::{Arc, mpsc};
use std::time::Instant;

use nfold_sync::Wakeup;
use parking_lot::Mutex;

use super::handler::{Limits, SessionHandler};
use super::link::Peer;
use super::slot::{ConnSlot, Token};
use super::transport::{Socket, Transport};

/// A connection on its way from one worker to another: what is left of it between two commands
/// (`balance::B1`).
pub(crate) struct Moved {
    pub slot: Arc<ConnSlot>,
    pub limits: Limits,
    /// Nobody watches it.
    pub transport: Transport,
    pub peer: Peer,
    pub session: Box<dyn SessionHandler>,
    pub capabilities: u32,
    pub deadline: Option<Instant>,
    pub in_reserve: bool,
}

impl std::fmt::Debug for Moved {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Moved({:?})", self.peer)
    }
}

/// A socket on its way to a worker.
pub(crate) struct Accepted {
    pub socket: Socket,
    pub peer: Peer,
    /// It is number `max_connections` + 1: for an administrator only.
    pub in_reserve: bool,
}

impl std::fmt::Debug for Accepted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Accepted({:?})", self.peer)
    }
}

/// What a worker is told.
#[derive(Debug)]
pub(crate) enum Message {
    /// A new connection is yours.
    Accept(Accepted),
    /// What the connection waits for may have come, or it was killed.
    Wake(Token),
    /// A connection of another worker is yours from now on.
    Moved(Box<Moved>),
    /// Give so many connections to the worker of this number, as far as they are idle.
    Give { to: usize, most: usize },
    /// Give no connections away any more, and drop the sender.
    Stay(mpsc::Sender<()>),
    /// End all sessions and return.
    Shutdown,
}

pub(crate) struct Inbox {
    queue: Mutex<Vec<Message>>,
    wakeup: Wakeup,
    eventfd: mio::Waker,
}

impl Inbox {
    pub fn new(eventfd: mio::Waker) -> Self {
        Inbox {
            queue: Mutex::new(Vec::new()),
            wakeup: Wakeup::default(),
            eventfd,
        }
    }

    pub fn push(&self, message: Message) {
        self.queue.lock().push(message);
        if self.wakeup.announce()
            && let Err(e) = self.eventfd.wake()
        {
            tracing::error!("cannot wake a worker: {e}");
        }
    }

    /// The worker is about to block. False: do not, there are messages.
    pub fn may_sleep(&self) -> bool {
        self.wakeup.may_sleep()
    }

    /// The worker is awake again.
    pub fn awake(&self) {
        self.wakeup.awake();
    }

    /// Swaps the queued messages into `into`, which must be empty.
    pub fn take(&self, into: &mut Vec<Message>) {
        debug_assert!(into.is_empty());
        if self.wakeup.take() {
            std::mem::swap(&mut *self.queue.lock(), into);
        }
    }
}
