//! Memory for sorting, grouping and DISTINCT, lent to an execution by its worker and given back
//! when it ends.
//!
//! So a warm statement allocates nothing for them, an idle session keeps nothing, and however many
//! plans sort, a worker keeps a few pieces.
//!
//! # Invariants
//! - M1: what waits here is empty, of [`KEPT_BYTES`] at most, and no more than [`PIECES`] of a
//!   kind.
//!
//! # Concurrency
//! Each thread has its own. A fiber stays on its thread; what ends elsewhere would be given back
//! there.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};
use std::thread::LocalKey;

use nfold_engine::RowBatch;

use super::batch::KEPT_BYTES;

/// Of one kind: as many as blocks within blocks use at a time, usually.
const PIECES: usize = 8;

/// Pieces of one kind that wait for their next use.
pub(crate) struct Pool<T>(RefCell<Vec<T>>);

impl<T> Pool<T> {
    pub const fn new() -> Pool<T> {
        Pool(RefCell::new(Vec::new()))
    }
}

/// Memory that is lent. Its default has taken none.
pub(crate) trait Memory: Default + 'static {
    fn pool() -> &'static LocalKey<Pool<Self>>;
    /// Forgets what is in it, keeps the memory.
    fn clear(&mut self);
    /// Bytes that it holds, near enough.
    fn bytes(&self) -> usize;
}

/// A piece while it is used.
pub(crate) struct Lent<T: Memory>(T);

impl<T: Memory> Lent<T> {
    /// An empty piece.
    pub fn take() -> Lent<T> {
        let waiting = T::pool().try_with(|pool| pool.0.borrow_mut().pop());
        Lent(waiting.ok().flatten().unwrap_or_default())
    }
}

impl<T: Memory> Deref for Lent<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Memory> DerefMut for Lent<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T: Memory> Drop for Lent<T> {
    fn drop(&mut self) {
        let mut piece = std::mem::take(&mut self.0);
        if piece.bytes() > KEPT_BYTES {
            return;
        }
        piece.clear();
        // A thread that ends takes nothing back.
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

/// Some bytes: the row at hand, say.
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
