//! How other threads reach a worker: a queue of messages and one eventfd.
//!
//! # Concurrency
//! - `queue` is protected by a mutex that is held for a push or a swap only.
//! - `wakeup` decides who writes the eventfd: at most one sender per sleep, and never the worker
//!   itself (it is awake when it sends to itself).

use std::sync::{Arc, mpsc};
use std::time::Instant;

use nfold_sync::Wakeup;
use parking_lot::Mutex;

use super::handler::{Limits, SessionHandler};
use super::link::Peer;
use super::slot::{ConnSlot, Token};
use super::transport::{Socket, Transport};

/// A connection that moves from one worker to another: its state between two commands
/// (`balance::B1`).
pub(crate) struct MovedConnection {
    pub slot: Arc<ConnSlot>,
    pub limits: Limits,
    /// Not registered with any epoll.
    pub transport: Transport,
    pub peer: Peer,
    pub session: Box<dyn SessionHandler>,
    pub capabilities: u32,
    pub deadline: Option<Instant>,
    pub in_reserve: bool,
}

impl std::fmt::Debug for MovedConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Moved({:?})", self.peer)
    }
}

/// A new socket on its way to a worker.
pub(crate) struct Accepted {
    pub socket: Socket,
    pub peer: Peer,
    /// Whether it exceeds `max_connections` by one, and so is reserved for an administrator.
    pub in_reserve: bool,
}

impl std::fmt::Debug for Accepted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Accepted({:?})", self.peer)
    }
}

/// A message to a worker.
#[derive(Debug)]
pub(crate) enum Message {
    /// Take over a new connection.
    Accept(Accepted),
    /// The connection may be able to continue, or was killed.
    Wake(Token),
    /// Take over a connection of another worker.
    Moved(Box<MovedConnection>),
    /// Move up to `most` idle connections to worker `to`.
    Give { to: usize, most: usize },
    /// Stop moving connections to other workers, and drop the sender.
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

    /// Announces that the worker is about to block. Returns false if there are messages, and the
    /// worker must not block.
    pub fn may_sleep(&self) -> bool {
        self.wakeup.may_sleep()
    }

    /// Announces that the worker is awake again.
    pub fn awake(&self) {
        self.wakeup.awake();
    }

    /// Whether there may be messages. Reads only.
    #[inline]
    pub fn has_messages(&self) -> bool {
        self.wakeup.is_pending()
    }

    /// Swaps the queued messages into `into`, which must be empty.
    pub fn take(&self, into: &mut Vec<Message>) {
        debug_assert!(into.is_empty());
        if self.wakeup.take() {
            std::mem::swap(&mut *self.queue.lock(), into);
        }
    }
}
