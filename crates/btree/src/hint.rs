//! Where a thread's writers last were, by tree: whoever inserts in key order finds the next key's leaf there, without a descent.
//!
//! # Concurrency
//! The hints are the thread's own; nobody else reads or writes them. They are never believed: a leaf is taken only when the page's type,
//! index id, level and fences say that the key belongs there, and the latch is then got for exactly the bytes that said so. A key
//! lies within the fences of one leaf of its tree at any time, and a page given back loses its type, so nothing else has to be known of
//! what others did meanwhile.
//! # Failure
//! Whatever is wrong with the hinted page (not in memory, in somebody's hands, damaged): the caller descends as without a hint.
//! # Cost
//! A write that comes without order pays for the look into the thread's own table, and touches no page for it.

use crate::node::Node;
use crate::tree::TreeHandle;
use nfold_store::{Latched, Mtr, PageNo, Store};
use std::cell::Cell;

/// Trees that a thread remembers a leaf of. A row's entries go to the indexes of one table, whose ids follow each other.
const TREES: usize = 16;

/// The leaf that a writer of a tree had last.
#[derive(Copy, Clone)]
struct Hint {
    /// [`TreeHandle::id`]; 0: nothing is remembered.
    tree: u64,
    page: PageNo,
    /// The last two writes went to the same leaf: worth a look.
    again: bool,
}

const NONE: Hint = Hint {
    tree: 0,
    page: 0,
    again: false,
};

thread_local! {
    static HINTS: [Cell<Hint>; TREES] = const { [const { Cell::new(NONE) }; TREES] };
}

impl TreeHandle {
    fn with_hint<T>(&self, f: impl FnOnce(&Cell<Hint>) -> T) -> T {
        HINTS.with(|hints| f(&hints[self.tree.index_id as usize % TREES]))
    }

    /// Latches the leaf of the thread's last writes, if `key` belongs there and nobody has the page just now.
    pub(crate) fn latch_hinted(
        &self,
        store: &Store,
        mtr: &mut Mtr<'_>,
        key: &[u8],
    ) -> Option<Latched> {
        let hint = self.with_hint(Cell::get);
        if !hint.again || hint.tree != self.id {
            return None;
        }
        let page = store.pages_of(self.tree.space)?.peek(hint.page)?;
        let node = Node::new(page.words());
        if !self.is_ours(node, 0) || !node.covers(key) {
            return None;
        }
        // Only if it still has the bytes that were looked at.
        mtr.upgrade(&page)
    }

    /// A writer was led to the leaf `page`.
    pub(crate) fn note_leaf(&self, page: PageNo) {
        self.with_hint(|hint| {
            let last = hint.get();
            hint.set(Hint {
                tree: self.id,
                page,
                again: last.page == page && last.tree == self.id,
            });
        });
    }
}
