//! Two barriers that meet: a light one, passed all the time, and a heavy one, passed now and then. Metadata locks and snapshots use them.
//!
//! # Picture
//! ```text
//!  often   store own word · light · load the other's           rarely   store or load · heavy · load all own words
//! ```
//! # Concurrency
//! Dekker's pattern: of two threads of which one passes [`Barrier::light`] and the other [`Barrier::heavy`], either what the light side did before its
//! barrier is seen behind the heavy one, or what the heavy side did before its own is seen behind the light one. Two `fence(SeqCst)` give that. Where
//! `membarrier(2)` works, the heavy side has the system pass a full barrier in every thread of the process that runs, between its own accesses before and behind: that barrier
//! comes before the light side's place or behind it, in the order of that thread's instructions, which is all that a compiler fence has to keep. A
//! thread that does not run has passed one when it was taken off its processor.
//! Under loom both are fences.
//! # Cost
//! The light side: nothing where `membarrier` works, which [`Barrier::detect`] finds out. The heavy one: an interrupt for each processor that runs a thread of the process.

#[cfg(not(loom))]
use std::sync::atomic::compiler_fence;

use crate::prim::{Ordering, fence};

/// How the two sides meet; both have to use the same. See the module's header.
#[derive(Clone, Copy, Debug)]
pub struct Barrier {
    #[cfg(not(loom))]
    membarrier: bool,
}

#[cfg(not(loom))]
const MEMBARRIER_CMD_PRIVATE_EXPEDITED: libc::c_long = 1 << 3;
#[cfg(not(loom))]
const MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED: libc::c_long = 1 << 4;

#[cfg(not(loom))]
fn membarrier(command: libc::c_long) -> bool {
    // SAFETY: membarrier(2) takes a command and two ignored integers, and touches no memory of ours.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
}

#[cfg(not(loom))]
impl Barrier {
    /// Finds out what the system offers, and registers the process.
    pub fn detect() -> Barrier {
        Barrier {
            membarrier: !cfg!(any(miri, shuttle))
                && membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED),
        }
    }

    /// The side that is passed all the time.
    #[inline(always)]
    pub fn light(self) {
        if self.membarrier {
            compiler_fence(Ordering::SeqCst);
        } else {
            fence(Ordering::SeqCst);
        }
    }

    /// The other one.
    pub fn heavy(self) {
        fence(Ordering::SeqCst);
        if self.membarrier {
            // It was registered and cannot fail any more (membarrier(2), ERRORS); a failure would leave the light side without its partner.
            assert!(
                membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED),
                "membarrier was registered"
            );
        }
    }
}

#[cfg(loom)]
impl Barrier {
    pub fn detect() -> Barrier {
        Barrier {}
    }

    pub fn light(self) {
        fence(Ordering::SeqCst);
    }

    pub fn heavy(self) {
        fence(Ordering::SeqCst);
    }
}
