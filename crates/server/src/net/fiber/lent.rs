//! Memory of a worker that its sessions' commands use in turn: what a thousand idle sessions need
//! not keep, and what stays in the processor's cache.

use std::cell::RefCell;

use nfold_exec::OperatorPool;
use nfold_sql::digest::Digested;
use nfold_types::Value;

/// Pieces of one kind that wait, of any size.
const PIECES: usize = 64;
/// Pieces of one kind that wait, with at most [`SMALL_PIECE`] bytes each: hundreds of statements
/// may wait for one lock.
const MANY_PIECES: usize = 512;
const SMALL_PIECE: usize = 4 << 10;
/// Values of `?` that memory is kept for.
const KEPT_VALUES: usize = 4096;
/// Bytes of a text's digest that are kept.
const KEPT_DIGEST: usize = 256 << 10;

/// How many pieces of one kind may wait for one of `bytes` to be among them.
fn limit(bytes: usize) -> usize {
    match bytes {
        ..=SMALL_PIECE => MANY_PIECES,
        _ => PIECES,
    }
}

/// One thread's own.
#[derive(Default)]
pub struct Lent {
    /// Operators and parameters.
    pub operator_pool: OperatorPool,
    #[allow(
        clippy::vec_box,
        reason = "the session that has one holds a pointer, so that it is small without"
    )]
    digested: RefCell<Vec<Box<Digested>>>,
    values: RefCell<Vec<Vec<Value>>>,
}

impl Lent {
    /// For the digest of a text; what it holds is of some other.
    #[inline]
    pub fn digested(&self) -> Box<Digested> {
        self.digested.borrow_mut().pop().unwrap_or_default()
    }

    /// Takes it back.
    #[inline]
    pub fn give_digested(&self, digested: Box<Digested>) {
        let mut waiting = self.digested.borrow_mut();
        let bytes = digested.memory();
        if waiting.len() < limit(bytes) && bytes <= KEPT_DIGEST {
            waiting.push(digested);
        }
    }

    /// No values.
    pub fn values(&self) -> Vec<Value> {
        self.values.borrow_mut().pop().unwrap_or_default()
    }

    /// Takes them back, and forgets them.
    pub fn give_values(&self, mut values: Vec<Value>) {
        values.clear();
        values.shrink_to(KEPT_VALUES);
        let mut waiting = self.values.borrow_mut();
        if waiting.len() < limit(values.capacity() * size_of::<Value>()) {
            waiting.push(values);
        }
    }
}
