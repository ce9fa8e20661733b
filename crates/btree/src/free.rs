//! Giving all pages of a tree back to its space, for DROP INDEX. (DROP TABLE unlinks the file.)
//!
//! # Concurrency
//! Whoever still has a handle of the tree and changes single entries (purge, which holds no metadata lock, and finds out afterwards that the index is
//! gone) does no harm: under the structure mutex the inner pages stand still, and leaves are latched left to right as everywhere, so nobody waits for
//! the other in a circle. Such a one may meet a page that is none of the tree any more; it is told so, as index id and type are looked at under each latch.

use crate::node::Node;
use crate::redo;
use crate::tree::{MAX_LEVELS, TreeHandle};
use nfold_store::{PAGE_SIZE, PageId, PageNo, Stop, Store};

/// Leaves freed by one mini-transaction.
const FREE_BATCH: usize = 16;
/// Each page's own records, and a part of the free list that one of them may have to take over.
const FREE_LOG_BYTES: usize = 256 * (2 * FREE_BATCH + 1) + PAGE_SIZE;

impl TreeHandle {
    /// Gives some of the tree's pages back to the space; `Ok(true)` when all are gone, the root included. Call until then; `Wait`: call
    /// again. Nobody reads the tree, and nobody adds to it. After a crash it goes on where it was, as long as the root is still there.
    pub fn free_step(&self, store: &Store) -> Result<bool, Stop> {
        let _smo = self.hold_smo(store);
        let (parent, children) = self.last_children(store)?;
        let missing: Vec<PageId> = children.iter().map(|page| self.page_id(*page)).collect();
        if let Some(wait) = store.wait_for(&missing) {
            return Err(Stop::Wait(wait));
        }
        let mut mtr = store.mtr();
        mtr.reserve(FREE_LOG_BYTES, self.tree.space, 0)?;
        let Some(parent) = parent else {
            let root = mtr.latch(self.page_id(self.tree.root))?;
            mtr.free_page(root);
            mtr.commit();
            return Ok(true);
        };
        let mut latched = Vec::with_capacity(children.len());
        for page in children.iter().rev() {
            latched.push(mtr.latch(self.page_id(*page))?);
        }
        let parent = mtr.latch(self.page_id(parent))?;
        for child in latched.into_iter().rev() {
            let last = Node::new(mtr.words(parent)).count() - 1;
            redo::log_remove(&mut mtr, parent, last);
            mtr.free_page(child);
        }
        mtr.commit();
        Ok(false)
    }

    /// Down the last slots to the lowest page that still has children without children: that page and its last children, last first; no
    /// page when the root itself is the last one.
    fn last_children(&self, store: &Store) -> Result<(Option<PageNo>, Vec<PageNo>), Stop> {
        let (mut page_no, mut parent) = (self.tree.root, None);
        let mut children = Vec::new();
        let mut levels = 0;
        loop {
            let page = store.read(self.page_id(page_no))?;
            let node = Node::new(page.words());
            let (ours, level, count) =
                (self.is_ours(node, node.level()), node.level(), node.count());
            let below: Vec<PageNo> = (0..count)
                .rev()
                .take(FREE_BATCH)
                .map(|i| node.child(node.slot(i)))
                .collect();
            if !page.validate() {
                continue;
            }
            levels += 1;
            if !ours || levels > MAX_LEVELS {
                return Err(self.corrupt(page_no, "not a page of the tree being freed"));
            }
            if level == 0 || count == 0 {
                // An inner page without children is freed alone: its siblings may have some.
                children.truncate(if level == 0 { FREE_BATCH } else { 1 });
                return Ok((parent, children));
            }
            page_no = below[0];
            parent = Some(page.id().page);
            children = below;
        }
    }
}
