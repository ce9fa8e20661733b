//! Coalesces requests of several threads into one. Each request names a position to be reached,
//! such as a log position to be synced. The last thread to submit makes one request, for the
//! highest position.
//!
//! # Invariants
//! - G1: every submitted position is covered by a position that [`RequestCoalescer::submit`]
//!   returns to a thread that was a participant at the same time.
//! - G2: a deferred request is taken over by the next submission. Threads that take turns therefore
//!   cannot postpone it for ever.
//!
//! # Concurrency
//! A thread stores its position in `deferred` before it stops being a participant (both AcqRel). So
//! the last participant finds the positions that the others deferred.

use crate::prim::{AtomicU64, AtomicUsize, Ordering::*};

/// See the module's header. A thread with a request that it has not submitted yet is a
/// *participant*.
#[derive(Debug, Default)]
pub struct RequestCoalescer {
    participants: AtomicUsize,
    /// The highest position that was deferred to another participant; 0 if there is none.
    deferred: AtomicU64,
}

/// Says who makes a submitted request.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Submission {
    /// Another participant will make the request.
    Deferred,
    /// The caller makes the request now, for itself alone: no other participant exists, and nothing
    /// higher was deferred.
    Sole,
    /// The caller makes a request for this position now. It covers deferred requests of others, or
    /// other participants exist.
    Request(u64),
}

impl RequestCoalescer {
    /// Registers this thread as a participant. It must call [`submit`](Self::submit) later.
    pub fn enter(&self) {
        self.participants.fetch_add(1, AcqRel);
    }

    /// Submits this thread's request for position `to` (not 0), and says who has to make it.
    pub fn submit(&self, to: u64) -> Submission {
        let deferred = self.deferred.swap(0, AcqRel);
        if deferred == 0 {
            self.deferred.fetch_max(to, AcqRel);
        }
        let last = self.participants.fetch_sub(1, AcqRel) == 1;
        if deferred == 0 && !last {
            return Submission::Deferred;
        }
        // Another thread may have deferred its request after the swap above, because it saw that
        // this participant was still there.
        let more = if last {
            self.deferred.swap(0, AcqRel)
        } else {
            0
        };
        if last && deferred == 0 && more == to {
            return Submission::Sole;
        }
        Submission::Request(deferred.max(more).max(to)) // G2
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn last_participant_requests_for_all() {
        let g = RequestCoalescer::default();
        for _ in 0..3 {
            g.enter();
        }
        assert_eq!(g.submit(7), Submission::Deferred);
        g.enter(); // the same thread returns before the others have submitted
        assert_eq!(
            g.submit(5),
            Submission::Request(7),
            "G2: not deferred twice"
        );
        assert_eq!(g.submit(8), Submission::Deferred);
        assert_eq!(g.submit(6), Submission::Request(8));
        g.enter();
        assert_eq!(g.submit(9), Submission::Sole);
    }
}
