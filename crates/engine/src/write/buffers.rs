//! Buffers that write operations leave to the next ones of their thread: a statement of one row allocates none.
//!
//! # Invariants
//! - A buffer is empty while it lies here; large ones, and more than a handful, are given back to the allocator.

use std::cell::RefCell;

/// Buffers kept by a thread, and the largest of them, bytes.
const KEPT: usize = 64;
const LARGEST: usize = 64 << 10;

thread_local! {
    static BUFFERS: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// An empty buffer, with whatever capacity.
pub(super) fn take() -> Vec<u8> {
    BUFFERS.with_borrow_mut(Vec::pop).unwrap_or_default()
}

/// Takes a buffer back.
pub(super) fn give(buffer: &mut Vec<u8>) {
    if !(1..=LARGEST).contains(&buffer.capacity()) {
        return;
    }
    let mut buffer = std::mem::take(buffer);
    buffer.clear();
    // Fails only while the thread's locals are torn down: the buffer is then simply dropped.
    let _ = BUFFERS.try_with(|kept| {
        let mut kept = kept.borrow_mut();
        if kept.len() < KEPT {
            kept.push(buffer);
        }
    });
}
