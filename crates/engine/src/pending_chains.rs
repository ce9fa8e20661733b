//! The overflow chains of one row that a read has begun and not ended, because it waits for a page.
//!
//! A call that waits is made again from its beginning. Without this memory it would read a chain
//! from its first page each time: the work would grow with the square of the chain's length, and a
//! chain that is longer than the buffer pool would never be read to its end.
//!
//! # Invariants
//! C1. The bytes belong to the chain that the next call reads. A chain never changes while a
//!     version that names it can be read (overflow::O1, O3). The memory is cleared when the row is
//!     whole, and when a statement fails. A reader of uncommitted versions clears it whenever it
//!     meets another version ([`belong_to`](PendingChains::belong_to)).
//!
//! # Cost
//! A row whose pages are all in memory never uses it.

use std::cell::{Cell, RefCell};

use nfold_store::{PageNo, SpaceId};
use nfold_types::row::OverflowPointer;

/// A chain of which some pages are read.
pub(crate) struct PendingChain {
    pub space: SpaceId,
    pub chain: OverflowPointer,
    /// The page to be read next; 0: the chain is whole.
    pub next: PageNo,
    /// The bytes of the pages before it.
    pub bytes: Vec<u8>,
}

/// See the module's header. Belongs to one session.
#[derive(Default)]
pub(crate) struct PendingChains {
    chains: RefCell<Vec<PendingChain>>,
    /// The undo pointer of the uncommitted version that the chains belong to; 0: of any other row.
    version: Cell<u64>,
}

impl PendingChains {
    /// Whether no read waits for a chain.
    pub fn is_empty(&self) -> bool {
        self.chains.borrow().is_empty()
    }

    /// Whether a read waits for this chain, or for another one of its row.
    pub fn has(&self, space: SpaceId, chain: &OverflowPointer) -> bool {
        let chains = self.chains.borrow();
        chains.iter().any(|c| (c.space, &c.chain) == (space, chain))
    }

    /// Takes a chain out, as far as it was read.
    pub fn take(&self, space: SpaceId, chain: &OverflowPointer) -> Option<PendingChain> {
        let mut chains = self.chains.borrow_mut();
        let at = chains
            .iter()
            .position(|c| (c.space, &c.chain) == (space, chain))?;
        Some(chains.swap_remove(at))
    }

    /// Keeps a chain until the row is read again.
    pub fn put(&self, chain: PendingChain) {
        self.chains.borrow_mut().push(chain);
    }

    /// Forgets all chains.
    pub fn clear(&self) {
        let mut chains = self.chains.borrow_mut();
        if !chains.is_empty() {
            *chains = Vec::new();
        }
    }

    /// The next chains are those of the version that the change with this undo pointer has made.
    pub fn belong_to(&self, undo: u64) {
        if self.version.replace(undo) != undo {
            self.clear();
        }
    }
}
