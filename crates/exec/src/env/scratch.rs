//! Reusable memory for sorting, grouping and DISTINCT. An execution borrows it from its worker and
//! returns it at its end.
//!
//! So a warm statement allocates none of it, an idle session holds none, and a worker keeps a few
//! pieces however many plans sort.
//!
//! # Invariants
//! - M1: a piece in the pool is empty and holds at most [`POOLED_BYTES`], and the pool has at most
//!   [`PIECES`] pieces of a kind.
//!
//! # Concurrency
//! Each thread has its own pools. A fiber stays on its thread; a piece dropped on another thread
//! would be returned to that thread's pool.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};
use std::thread::LocalKey;

use nfold_engine::RowBatch;

use super::batch::POOLED_BYTES;

/// The maximum number of pooled pieces of one kind: about the number of nested blocks that use one
/// at the same time.
const PIECES: usize = 8;

/// The pooled pieces of one kind.
pub(crate) struct Pool<T>(RefCell<Vec<T>>);

impl<T> Pool<T> {
    pub const fn new() -> Pool<T> {
        Pool(RefCell::new(Vec::new()))
    }
}

/// Memory that can be pooled. Its default value has allocated nothing.
pub(crate) trait Memory: Default + 'static {
    fn pool() -> &'static LocalKey<Pool<Self>>;
    /// Removes the contents, and keeps the memory.
    fn clear(&mut self);
    /// The memory that it holds, approximately, in bytes.
    fn bytes(&self) -> usize;
}

/// A borrowed piece. Dropping it returns it to the pool.
pub(crate) struct Pooled<T: Memory>(T);

impl<T: Memory> Pooled<T> {
    /// Borrows an empty piece.
    pub fn take() -> Pooled<T> {
        let waiting = T::pool().try_with(|pool| pool.0.borrow_mut().pop());
        Pooled(waiting.ok().flatten().unwrap_or_default())
    }
}

impl<T: Memory> Deref for Pooled<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Memory> DerefMut for Pooled<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T: Memory> Drop for Pooled<T> {
    fn drop(&mut self) {
        let mut piece = std::mem::take(&mut self.0);
        if piece.bytes() > POOLED_BYTES {
            return;
        }
        piece.clear();
        // A thread that is ending has no pool any more.
        let _ = T::pool().try_with(|pool| {
            let mut pieces = pool.0.borrow_mut();
            if pieces.len() < PIECES {
                pieces.push(piece);
            }
        });
    }
}

thread_local! {
    static BUFFERS: Pool<Buffer> = const { Pool::new() };
    static ROWS: Pool<RowBatch> = const { Pool::new() };
}

/// A byte buffer, for example for the current row.
#[derive(Default)]
pub(crate) struct Buffer(pub Vec<u8>);

impl Memory for Buffer {
    fn pool() -> &'static LocalKey<Pool<Buffer>> {
        &BUFFERS
    }

    fn clear(&mut self) {
        self.0.clear();
    }

    fn bytes(&self) -> usize {
        self.0.capacity()
    }
}

impl Memory for RowBatch {
    fn pool() -> &'static LocalKey<Pool<RowBatch>> {
        &ROWS
    }

    fn clear(&mut self) {
        RowBatch::clear(self);
    }

    fn bytes(&self) -> usize {
        self.memory()
    }
}
