//! Buffers that write operations leave to the next ones of their thread: a statement of one row
//! allocates none.
//!
//! # Invariants
//! - A buffer is empty while it lies here; large ones, and too many, are given back to the
//!   allocator.

use std::cell::RefCell;

/// Buffers kept by a thread, and the largest of them, bytes.
const KEPT: usize = 64;
const LARGEST: usize = 64 << 10;
/// Buffers kept by a thread where each has at most [`SMALL`] bytes: hundreds of statements may wait
/// for the lock of one row.
const SMALL_KEPT: usize = 4096;
const SMALL: usize = 1 << 10;

thread_local! {
    static BUFFERS: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// An empty buffer, of any capacity.
pub(super) fn take() -> Vec<u8> {
    BUFFERS.with_borrow_mut(Vec::pop).unwrap_or_default()
}

/// Takes a buffer back.
pub(super) fn give(buffer: &mut Vec<u8>) {
    if !(1..=LARGEST).contains(&buffer.capacity()) {
        return;
    }
    let limit = match buffer.capacity() {
        ..=SMALL => SMALL_KEPT,
        _ => KEPT,
    };
    let mut buffer = std::mem::take(buffer);
    buffer.clear();
    // Fails only while the thread's locals are torn down: the buffer is then simply dropped.
    let _ = BUFFERS.try_with(|kept| {
        let mut kept = kept.borrow_mut();
        if kept.len() < limit {
            kept.push(buffer);
        }
    });
}
