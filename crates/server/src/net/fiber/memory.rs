//! What the statement of a fiber has allocated, and its limits.
//!
//! # Invariants
//! - M1: `held` is what the thread has allocated since the statement began, without what other
//!   fibers allocated while this one was suspended, and with what blocking calls allocated for it.
//! - M2: a statement fails by the server's limit only when it holds more than [`LOOK_BYTES`] and
//!   has grown by so much since its last look. Small statements go on in a server at its limit.
//!
//! # Concurrency
//! Only the fiber's own thread touches it. The server's sum reads every thread's shard.
//!
//! # Cost
//! A check is two loads and a comparison. The sum is read once for each [`LOOK_BYTES`] of growth.

use std::cell::Cell;

/// Growth between two looks at the server's memory.
const LOOK_BYTES: i64 = 256 << 10;

/// A limit, in bytes, that does not allow the statement to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exceeded {
    /// `nfold_statement_memory`
    Statement(u64),
    /// `nfold_server_memory`
    Server(u64),
}

/// The count of one statement.
#[derive(Debug, Default)]
pub(crate) struct StatementMemory {
    /// The thread's count where this statement's would be 0 (M1).
    base: Cell<i64>,
    /// No error up to this; 0: there is no statement.
    limit: Cell<i64>,
    /// Beyond this the next check looks at the limits.
    next_look: Cell<i64>,
}

impl StatementMemory {
    /// A statement begins, whose text of `received` bytes was allocated before.
    #[inline]
    pub fn begin(&self, limit: i64, received: usize) {
        (self.base).set(nfold_memory::allocated_here() - received as i64);
        self.limit.set(limit);
        self.next_look.set(limit.min(LOOK_BYTES));
    }

    /// Nothing that follows is limited: the statement is over.
    #[inline]
    pub fn end(&self) {
        self.next_look.set(i64::MAX);
    }

    /// Bytes that the statement has allocated and not freed.
    pub fn held(&self) -> i64 {
        nfold_memory::allocated_here() - self.base.get()
    }

    /// The fiber goes on after a suspension that began when the thread's count was `before`.
    pub fn resumed(&self, before: i64) {
        let by_others = nfold_memory::allocated_here() - before;
        self.base.set(self.base.get() + by_others);
        if self.next_look.get() != i64::MAX {
            self.next_look
                .set(self.limit.get().min(self.held() + LOOK_BYTES));
        }
    }

    /// Another thread has allocated so much for the statement.
    pub fn add(&self, bytes: i64) {
        self.base.set(self.base.get() - bytes);
    }

    /// An error where the statement, or the server, is at its limit.
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
