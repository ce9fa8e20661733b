//! A worker's reusable memory for commands. It stays in the processor's cache, and idle sessions
//! need none of it.

use std::cell::RefCell;

use nfold_exec::OperatorPool;
use nfold_sql::digest::Digested;
use nfold_types::Value;

/// The maximum number of pooled pieces of one kind, of any size.
const PIECES: usize = 64;
/// The maximum number of pooled pieces of at most [`SMALL_PIECE`] bytes: hundreds of statements may
/// wait for one lock.
const MANY_PIECES: usize = 512;
const SMALL_PIECE: usize = 4 << 10;
/// The maximum capacity of a pooled list of `?` values.
const POOLED_VALUES: usize = 4096;
/// The maximum size of a pooled digest in bytes.
const POOLED_DIGEST_BYTES: usize = 256 << 10;

/// How many pieces may be in the pool if a piece of `bytes` is to be added.
fn limit(bytes: usize) -> usize {
    match bytes {
        ..=SMALL_PIECE => MANY_PIECES,
        _ => PIECES,
    }
}

/// The pools of one thread.
#[derive(Default)]
pub struct Pooled {
    /// Operator trees and parameter buffers.
    pub operator_pool: OperatorPool,
    #[allow(
        clippy::vec_box,
        reason = "the session that has one holds a pointer, so that it is small without"
    )]
    digested: RefCell<Vec<Box<Digested>>>,
    values: RefCell<Vec<Vec<Value>>>,
}

impl Pooled {
    /// Takes memory for the digest of a text. It still contains another digest.
    #[inline]
    pub fn digested(&self) -> Box<Digested> {
        self.digested.borrow_mut().pop().unwrap_or_default()
    }

    /// Returns a digest to the pool.
    #[inline]
    pub fn give_digested(&self, digested: Box<Digested>) {
        let mut waiting = self.digested.borrow_mut();
        let bytes = digested.memory();
        if waiting.len() < limit(bytes) && bytes <= POOLED_DIGEST_BYTES {
            waiting.push(digested);
        }
    }

    /// Takes an empty list of values.
    pub fn values(&self) -> Vec<Value> {
        self.values.borrow_mut().pop().unwrap_or_default()
    }

    /// Returns a list of values to the pool, and clears it.
    pub fn give_values(&self, mut values: Vec<Value>) {
        values.clear();
        values.shrink_to(POOLED_VALUES);
        let mut waiting = self.values.borrow_mut();
        if waiting.len() < limit(values.capacity() * size_of::<Value>()) {
            waiting.push(values);
        }
    }
}
