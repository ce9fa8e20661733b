//! An allocator that counts. The binary installs it; a worker reads its own thread's count to know
//! what a statement holds, and the sum of all threads to know what the server holds.
//!
//! # Picture
//! ```text
//! allocate, free ─▶ PENDING of the thread ── beyond STEP_BYTES ──▶ FLUSHED of the thread
//!                                                            └──▶ SHARDS[thread mod 64]
//! allocated_here() = FLUSHED + PENDING          allocated_by_all() = sum of SHARDS
//! ```
//!
//! # Invariants
//! - I1: `allocated_here` grows by the size of what this thread allocates and shrinks by the size
//!   of what it frees, whichever thread allocated it. It may be negative.
//! - I2: `allocated_by_all` differs from the truth by less than `STEP_BYTES` for each thread.
//! - I3: counting neither allocates nor fails: the thread's counters need no initialisation and no
//!   destructor.
//!
//! # Concurrency
//! A thread writes its own counters. It writes its shard once for each `STEP_BYTES` by which its
//! memory has grown or shrunk; up to 64 threads write different cache lines.
//!
//! # Cost
//! An addition and a comparison for each call of the allocator. Code that allocates nothing pays
//! nothing.
//!
//! # Not here
//! Page frames, stacks of fibers and rings of io_uring: they are mapped, not allocated.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering::Relaxed};

/// A thread adds to its shard when its memory has changed by this much.
pub const STEP_BYTES: i64 = 64 << 10;
const SHARD_COUNT: usize = 64;
const NO_SHARD: usize = usize::MAX;

#[repr(align(128))]
struct Shard(AtomicI64);

static SHARDS: [Shard; SHARD_COUNT] = [const { Shard(AtomicI64::new(0)) }; SHARD_COUNT];
static NEXT_SHARD: AtomicUsize = AtomicUsize::new(0);
/// Whether an allocator of this kind serves the process.
static COUNTS: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);

thread_local! {
    static PENDING: Cell<i64> = const { Cell::new(0) };
    static FLUSHED: Cell<i64> = const { Cell::new(0) };
    static SHARD: Cell<usize> = const { Cell::new(NO_SHARD) };
}

/// Bytes that this thread has allocated, less the bytes that it has freed. Only differences mean
/// something. Always 0 where the process uses another allocator.
#[inline]
pub fn allocated_here() -> i64 {
    FLUSHED.get() + PENDING.get()
}

/// Bytes that the process has allocated and not freed (I2).
pub fn allocated_by_all() -> u64 {
    let sum: i64 = SHARDS.iter().map(|shard| shard.0.load(Relaxed)).sum();
    sum.max(0) as u64
}

/// Whether the process counts its memory.
pub fn is_counted() -> bool {
    COUNTS.load(Relaxed)
}

#[inline]
fn count(bytes: i64) {
    let pending = PENDING.get() + bytes;
    PENDING.set(pending);
    if !(-STEP_BYTES..STEP_BYTES).contains(&pending) {
        flush(pending);
    }
}

#[cold]
fn flush(pending: i64) {
    let mut shard = SHARD.get();
    if shard == NO_SHARD {
        shard = NEXT_SHARD.fetch_add(1, Relaxed) % SHARD_COUNT;
        SHARD.set(shard);
        COUNTS.store(true, Relaxed);
    }
    SHARDS[shard].0.fetch_add(pending, Relaxed);
    FLUSHED.set(FLUSHED.get() + pending);
    PENDING.set(0);
}

/// The system's allocator, counted. To be installed by the binary as its `#[global_allocator]`.
#[derive(Debug, Clone, Copy, Default)]
pub struct CountingAllocator;

// SAFETY: every call is passed on to the system's allocator unchanged. Counting touches two cells
// of the thread and an atomic, allocates nothing and does not unwind (I3).
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for CountingAllocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: the caller's promise, passed on.
        unsafe { System.alloc(layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: the caller's promise, passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    #[inline]
    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        count(-(layout.size() as i64));
        // SAFETY: the caller's promise, passed on.
        unsafe { System.dealloc(ptr, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count(new_size as i64 - layout.size() as i64);
        // SAFETY: the caller's promise, passed on.
        unsafe { System.realloc(ptr, layout, new_size) }
    }
}

#[cfg(test)]
mod tests;
