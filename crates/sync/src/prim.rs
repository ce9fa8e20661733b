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

/// One round of a busy wait: a `pause` instruction, or a scheduling point under loom and shuttle.
#[inline]
pub fn spin() {
    #[cfg(not(any(loom, shuttle)))]
    std::hint::spin_loop();
    #[cfg(loom)]
    loom::thread::yield_now();
    #[cfg(shuttle)]
    shuttle::thread::yield_now();
}

/// Marks a place between two accesses to shared memory. It compiles to nothing, except that shuttle
/// may switch threads here.
#[inline(always)]
pub fn point() {
    #[cfg(shuttle)]
    shuttle::thread::yield_now();
}
