//! Records of waits that are no latch's; see [`nfold_observe::contention`].

use nfold_observe::contention::{Contention, Site, Ticket, WaitKind};
use parking_lot::{Mutex, MutexGuard};
use std::sync::Arc;

/// The record of a wait that releases its worker meanwhile. It begins when the wait is first found
/// to be unfinished.
pub(crate) struct Watched {
    contention: Arc<Contention>,
    kind: WaitKind,
    ticket: Option<Ticket>,
}

impl Watched {
    pub(crate) fn new(contention: &Arc<Contention>, kind: WaitKind) -> Watched {
        Watched {
            contention: contention.clone(),
            kind,
            ticket: None,
        }
    }

    pub(crate) fn begin(&mut self) {
        if self.ticket.is_none() {
            self.ticket = Some(self.contention.enter(Site::of(self.kind)));
        }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.contention.leave(ticket, None);
        }
    }
}

/// Locks a mutex, and records the wait if there is one.
pub fn lock_watched<'m, T>(
    mutex: &'m Mutex<T>,
    contention: &Contention,
    site: impl FnOnce() -> Site,
) -> MutexGuard<'m, T> {
    match mutex.try_lock() {
        Some(guard) => guard,
        None => contention.during(site(), || mutex.lock()),
    }
}
