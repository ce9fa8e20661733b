//! An asymmetric memory barrier: a light side for the frequent path and a heavy side for the rare
//! one. Metadata locks and snapshots use it.
//!
//! # Picture
//! ```text
//!  frequent   store own word · light · load the other's word
//!  rare       store or load  · heavy · load all own words
//! ```
//! # Concurrency
//! This is Dekker's store-then-load pattern. One thread passes [`Barrier::light`], another passes
//! [`Barrier::heavy`]. Then at least one of the two sees, behind its own barrier, what the other
//! stored before its barrier.
//!
//! Where `membarrier(2)` is missing, both sides run `fence(SeqCst)`.
//!
//! Where it works, the heavy side asks the kernel to run a full barrier in every running thread of
//! the process. That barrier falls before or after the light side's place in the thread's
//! instruction order, so the light side only needs a compiler fence to keep that order. A thread
//! that is not running passed a full barrier when it was descheduled.
//!
//! Under loom both sides are fences.
//! # Cost
//! The light side costs nothing where `membarrier` works; [`Barrier::detect`] finds out. The heavy
//! side interrupts each processor that runs a thread of the process.

#[cfg(not(loom))]
use std::sync::atomic::compiler_fence;

use crate::prim::{Ordering, fence};

/// Which pair of barriers the process uses. Both sides must use the same value. See the module's
/// header.
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
    // SAFETY: membarrier(2) takes a command and two ignored integers, and touches no memory of
    // ours.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
}

#[cfg(not(loom))]
impl Barrier {
    /// Finds out whether the kernel offers `membarrier`, and registers the process for it.
    pub fn detect() -> Barrier {
        Barrier {
            membarrier: !cfg!(any(miri, shuttle))
                && membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED),
        }
    }

    /// The barrier of the frequent path.
    #[inline(always)]
    pub fn light(self) {
        if self.membarrier {
            compiler_fence(Ordering::SeqCst);
        } else {
            fence(Ordering::SeqCst);
        }
    }

    /// The barrier of the rare path.
    pub fn heavy(self) {
        fence(Ordering::SeqCst);
        if self.membarrier {
            // `membarrier` cannot fail after registration (membarrier(2), ERRORS). A failure would
            // leave the light side without its partner, so the process must not go on.
            assert!(
                membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED),
                "membarrier works after its registration"
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
