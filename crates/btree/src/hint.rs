//! Hints in leaf values: bytes without meaning of their own (where a row was last seen), stored in place, unlogged, without making the page
//! dirty. A crash or an eviction may lose them, and whoever reads one checks what it leads to.
//!
//! # Concurrency
//! A hint is written under the leaf's latch, so that no entry moves meanwhile; the page's version stays, because a reader that copies half of
//! an old and half of a new hint has a wrong hint, which is allowed.

use crate::batch::EntryBatch;
use crate::node::Node;
use crate::tree::TreeHandle;
use nfold_store::{PageNo, Stop, Store};

impl TreeHandle {
    /// Copies the entries of the leaf `page`, if that is one of this tree's and in memory; otherwise, or when it changes meanwhile,
    /// copies nothing and gives false.
    pub fn leaf_entries(&self, store: &Store, page: PageNo, out: &mut EntryBatch) -> bool {
        let id = self.page_id(page);
        if !store.is_resident(id) {
            return false;
        }
        let Ok(page) = store.read(id) else {
            return false;
        };
        let node = Node::new(page.words());
        let mark = out.mark();
        if self.is_ours(node, 0) {
            let newest = node.newest_trx();
            for i in 0..node.count() {
                let slot = node.slot(i);
                out.push(
                    (0, id.page, newest),
                    |bytes| node.append_key(slot, bytes),
                    |bytes| node.append_value(slot, bytes),
                );
            }
        }
        let good = page.validate();
        if !good {
            out.cut(mark);
        }
        good
    }

    /// Stores hints at byte `at` of the values of these keys, as far as they are on the leaf `page` and long enough.
    pub fn write_hints<'k>(
        &self,
        store: &Store,
        page: PageNo,
        at: usize,
        hints: impl IntoIterator<Item = (&'k [u8], [u8; 4])>,
    ) -> Result<(), Stop> {
        let mut mtr = store.mtr();
        let leaf = mtr.latch(self.page_id(page))?;
        let node = Node::new(mtr.words(leaf));
        if !self.is_ours(node, 0) {
            return Ok(());
        }
        for (key, hint) in hints {
            if !node.has_prefix(key) {
                continue;
            }
            let (slot, found) = node.search(node.count(), node.suffix(key));
            let slot = node.slot(slot);
            if found && node.holds_cell(slot) && node.value_len(slot) >= at + hint.len() {
                mtr.write_hint(leaf, slot.value_at() + at, &hint);
            }
        }
        Ok(())
    }
}
