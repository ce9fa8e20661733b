//! Each thread's append cursor: the leaf of its last writes, by tree. Inserts in key order find the
//! next key's leaf there without a descent.
//!
//! # Concurrency
//! The cursors are thread-local. They are only hints: a leaf is used only if the page's type, index
//! id, level and fence keys say that the key belongs there, and the latch is acquired only for
//! exactly the bytes that said so. At any time a key lies within the fences of exactly one leaf of
//! its tree, and a freed page loses its type. So the thread needs no other knowledge of concurrent
//! changes.
//! # Failure
//! If the hinted page is unusable (not in memory, latched, damaged), the caller descends as without
//! a hint.
//! # Cost
//! A write in random order pays for one lookup in the thread's own table, and touches no page for
//! it.

use crate::node::Node;
use crate::tree::TreeHandle;
use nfold_store::{Latched, Mtr, PageNo, Store};
use std::cell::Cell;

/// The number of trees that a thread remembers a leaf of. A row's entries go to the indexes of one
/// table, whose ids are consecutive.
const TREES: usize = 16;

/// The leaf of a thread's last write to a tree.
#[derive(Copy, Clone)]
struct Hint {
    /// The tree's [`TreeHandle::id`]; 0: empty.
    tree: u64,
    page: PageNo,
    /// Whether the last two writes went to this leaf, so that the next one may, too.
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

    /// Latches the leaf of the thread's last writes, if `key` belongs there and no other thread
    /// holds the page.
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
        self.latch_if_leaf_of(store, mtr, key, hint.page)
    }

    /// Latches `page`, if it is the leaf of `key` and no other thread holds it.
    pub(crate) fn latch_if_leaf_of(
        &self,
        store: &Store,
        mtr: &mut Mtr<'_>,
        key: &[u8],
        page: PageNo,
    ) -> Option<Latched> {
        let page = store.pages_of(self.tree.space)?.peek(page)?;
        let node = Node::new(page.words());
        if !self.is_ours(node, 0) || !node.covers(key) {
            return None;
        }
        // Fails if the page no longer has the bytes that were checked.
        mtr.upgrade(&page)
    }

    /// Records the leaf `page` of a write.
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
