//! The one module that chooses between `std`, `loom` and `shuttle`.
//!
//! With shuttle the types stay those of `std`, because page words lie in mapped memory. Shuttle's
//! threads are coroutines of one thread; only [`point`] and [`spin`] let it switch to another.

#[cfg(not(loom))]
pub use std::sync::atomic::{
    AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};
#[cfg(not(loom))]
pub use std::sync::{Arc, Mutex};

#[cfg(loom)]
pub use loom::sync::atomic::{
    AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};
#[cfg(loom)]
pub use loom::sync::{Arc, Mutex};

/// To be called in each round of a busy wait. Executes a `pause` instruction, or lets loom and
/// shuttle switch to another thread.
#[inline]
pub fn spin() {
    #[cfg(not(any(loom, shuttle)))]
    std::hint::spin_loop();
    #[cfg(loom)]
    loom::thread::yield_now();
    #[cfg(shuttle)]
    shuttle::thread::yield_now();
}

/// Lets shuttle switch to another thread here, between two accesses to shared memory. In all other
/// builds it does nothing.
#[inline(always)]
pub fn point() {
    #[cfg(shuttle)]
    shuttle::thread::yield_now();
}
