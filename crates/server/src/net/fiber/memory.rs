//! The memory that a fiber's statement has allocated, and its limits.
//!
//! # Invariants
//! - M1: `held` is the memory that the thread has allocated since the statement began, without the
//!   allocations of other fibers while this one was suspended, and with those of blocking calls on
//!   its behalf.
//! - M2: the server's limit stops a statement only if it holds more than [`LOOK_BYTES`] and has
//!   grown by as much since its last check. So small statements continue in a server at its limit.
//!
//! # Concurrency
//! Only the fiber's own thread uses it. The server's total is the sum of all threads' shards.
//!
//! # Cost
//! A check is two loads and a comparison. The total is computed once per [`LOOK_BYTES`] of growth.

use std::cell::Cell;

/// The growth between two checks of the server's memory.
const LOOK_BYTES: i64 = 256 << 10;

/// The limit, in bytes, that a statement has reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exceeded {
    /// `nfold_statement_memory`.
    Statement(u64),
    /// `nfold_server_memory`.
    Server(u64),
}

/// The memory of one statement.
#[derive(Debug, Default)]
pub(crate) struct StatementMemory {
    /// The thread's count at which this statement's memory would be 0 (M1).
    base: Cell<i64>,
    /// The statement's limit; 0: there is no statement.
    limit: Cell<i64>,
    /// Above this count the next check compares with the limits.
    next_look: Cell<i64>,
}

impl StatementMemory {
    /// Starts a statement. Its text of `received` bytes was allocated before.
    #[inline]
    pub fn begin(&self, limit: i64, received: usize) {
        (self.base).set(nfold_memory::allocated_here() - received as i64);
        self.limit.set(limit);
        self.next_look.set(limit.min(LOOK_BYTES));
    }

    /// Ends the statement: later allocations are not limited.
    #[inline]
    pub fn end(&self) {
        self.next_look.set(i64::MAX);
    }

    /// The bytes that the statement has allocated and not freed.
    pub fn held(&self) -> i64 {
        nfold_memory::allocated_here() - self.base.get()
    }

    /// Called after a suspension. `before` is the thread's count when the suspension began.
    pub fn resumed(&self, before: i64) {
        let by_others = nfold_memory::allocated_here() - before;
        self.base.set(self.base.get() + by_others);
        if self.next_look.get() != i64::MAX {
            self.next_look
                .set(self.limit.get().min(self.held() + LOOK_BYTES));
        }
    }

    /// Adds memory that another thread has allocated for the statement.
    pub fn add(&self, bytes: i64) {
        self.base.set(self.base.get() - bytes);
    }

    /// Fails if the statement or the server has reached its limit.
    #[inline]
    pub fn check(&self, server_limit: impl FnOnce() -> u64) -> Result<(), Exceeded> {
        let held = self.held();
        match held > self.next_look.get() {
            true => self.look(held, server_limit()),
            false => Ok(()),
        }
    }

    #[cold]
    fn look(&self, held: i64, server_limit: u64) -> Result<(), Exceeded> {
        let limit = self.limit.get();
        if held > limit {
            return Err(Exceeded::Statement(limit as u64));
        }
        if nfold_memory::allocated_by_all() > server_limit {
            return Err(Exceeded::Server(server_limit));
        }
        self.next_look.set(limit.min(held + LOOK_BYTES));
        Ok(())
    }
}
