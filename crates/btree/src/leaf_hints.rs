//! The leaves of the next keys of a sorted list, found together before their entries are inserted:
//! the cache misses of the descents and of the leaves overlap.
//!
//! # Concurrency
//! They are only hints. [`TreeHandle::leaf_for_write_near`] uses a leaf only after it has checked
//! that the key belongs there.
//! # Cost
//! A key in random order otherwise waits for some ten cache lines of its leaf, one after the other.
//! Adjacent keys share a leaf, so the search pauses after a long run.

use nfold_store::{PageNo, PageRef, Stop, Store};
use smallvec::SmallVec;

use crate::group::{Job, LANES};
use crate::node::{Key, Node};
use crate::tree::TreeHandle;

/// The least number of keys whose leaves are searched together.
const FEWEST: usize = 4;
/// The length of a run behind which the next key probably goes to the same leaf.
const LONG_RUN: usize = 8;

/// The leaves of the next keys.
#[derive(Default)]
pub struct LeafHints {
    pages: SmallVec<[PageNo; LANES]>,
    /// The number of `pages` whose keys are done.
    next: usize,
    /// The keys are adjacent: a search would find the same leaf for all of them.
    is_dense: bool,
}

impl LeafHints {
    /// Forgets all leaves, before another list of keys.
    pub fn clear(&mut self) {
        self.pages.clear();
        (self.next, self.is_dense) = (0, false);
    }

    /// The first `count` keys are done.
    pub fn skip(&mut self, count: usize) {
        self.next += count;
        self.is_dense = count >= LONG_RUN;
    }
}

/// A search of the leaves of `keys`.
struct LeafSearch<'k, 'p> {
    keys: &'k [&'k [u8]],
    /// The number of keys that were tried.
    tried: usize,
    pages: &'p mut [PageNo],
}

impl Job for LeafSearch<'_, '_> {
    type Item = usize;

    fn take(&mut self, items: &mut SmallVec<[usize; LANES]>) {
        items.extend(self.tried..self.keys.len());
        self.tried = self.keys.len();
    }

    /// A leaf that is not in memory stays unknown. Its load has begun.
    fn put_back(&mut self, _: usize) {}

    fn key(&self, item: usize) -> Key<'_> {
        self.keys[item].into()
    }

    /// Prefetches the lines that an insert reads and writes.
    fn prefetch(&self, node: Node<'_>, item: usize, first: usize) -> usize {
        let suffix = node.suffix_of(self.key(item));
        node.prefetch_for_insert(first, suffix.head);
        0
    }

    fn at_leaf(&mut self, item: usize, page: &PageRef<'_>, _: usize, _: usize) -> bool {
        self.pages[item] = page.id().page;
        true
    }

    fn alone(&mut self, _: &TreeHandle, _: &Store, _: usize) -> Result<(), Stop> {
        Ok(())
    }

    fn full(&self) -> bool {
        false
    }
}

impl TreeHandle {
    /// The leaf of the first of `keys`, which ascend; `None`: unknown. `hints` has the leaves that
    /// an earlier call has found for keys of the same list.
    pub fn next_leaf<'k>(
        &self,
        store: &Store,
        keys: impl Iterator<Item = &'k [u8]>,
        hints: &mut LeafHints,
    ) -> Option<PageNo> {
        if hints.next >= hints.pages.len() && !hints.is_dense {
            let keys: SmallVec<[&[u8]; LANES]> = keys.take(LANES).collect();
            hints.next = 0;
            hints.pages.clear();
            if keys.len() >= FEWEST {
                hints.pages.resize(keys.len(), 0);
                let mut search = LeafSearch {
                    keys: &keys,
                    tried: 0,
                    pages: &mut hints.pages,
                };
                // A stop concerns the search alone: the insert itself waits for the leaf, or meets
                // the damage.
                let _ = self.run_groups(store, &mut search);
            }
        }
        let leaf = hints.pages.get(hints.next).copied();
        leaf.filter(|page| *page != 0)
    }
}
