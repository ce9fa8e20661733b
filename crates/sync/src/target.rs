//! Requests for a position to be reached, served by one thread until that thread ends.
//!
//! # Invariants
//! - R1: a request is either among those that the serving thread finds when it closes, or its
//!   sender learns that the serving thread has ended.
//!
//! # Concurrency
//! Both sides store and then load (Dekker): the sender raises `wanted`, the server stores `ended`.
//! A `fence(SeqCst)` lies between each side's store and its load of the other's variable, so at
//! least one side sees the other.

use crate::prim::{AtomicBool, AtomicU64, Ordering::*, fence};

/// See the module's header. There is one serving thread.
#[derive(Debug, Default)]
pub struct TargetRequests {
    wanted: AtomicU64,
    ended: AtomicBool,
}

impl TargetRequests {
    /// Starts with position `from` reached, so that nothing up to it counts as a request.
    pub fn new(from: u64) -> TargetRequests {
        TargetRequests {
            wanted: AtomicU64::new(from),
            ended: AtomicBool::new(false),
        }
    }

    /// Requests position `to`. True: it is the highest request so far, so the sender must
    /// wake the server.
    pub fn request(&self, to: u64) -> bool {
        self.wanted.fetch_max(to, AcqRel) < to
    }

    /// The highest requested position.
    pub fn highest(&self) -> u64 {
        self.wanted.load(Acquire)
    }

    /// To be called after [`request`](Self::request): whether the server will serve it. False: the
    /// server has ended.
    pub fn is_served(&self) -> bool {
        fence(SeqCst);
        !self.ended.load(Relaxed)
    }

    /// Server: accepts no more requests. Returns the highest position whose sender relies on the
    /// server (R1).
    pub fn close(&self) -> u64 {
        self.ended.store(true, Relaxed);
        fence(SeqCst);
        self.wanted.load(Relaxed)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn first_higher_request_wakes_the_server() {
        let requests = TargetRequests::new(10);
        assert!(!requests.request(9));
        assert!(requests.request(12) && !requests.request(12) && !requests.request(11));
        assert!(requests.is_served());
        assert_eq!((requests.close(), requests.is_served()), (12, false));
    }
}
