//! The one place that picks `std`, `loom` or `shuttle`. With shuttle the types stay std's, as page words lie in mapped memory: its threads are
//! coroutines of one thread, and only [`point`] and [`spin`] let another one run.

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

/// One turn of a busy wait: a `pause` instruction, or a scheduling point under loom and shuttle.
#[inline]
pub fn spin() {
    #[cfg(not(any(loom, shuttle)))]
    std::hint::spin_loop();
    #[cfg(loom)]
    loom::thread::yield_now();
    #[cfg(shuttle)]
    shuttle::thread::yield_now();
}

/// A place between two accesses to shared memory. Nothing, but under shuttle another thread may run here.
#[inline(always)]
pub fn point() {
    #[cfg(shuttle)]
    shuttle::thread::yield_now();
}
