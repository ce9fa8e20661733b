//! Frees all pages of a tree, for DROP INDEX. (DROP TABLE unlinks the file.)
//!
//! # Concurrency
//! Another thread may still hold a handle of the tree and change single entries. Purge does: it
//! holds no metadata lock, and finds out later that the index is gone. This is harmless. The
//! structure mutex keeps the inner pages unchanged, and leaves are latched left to right as
//! everywhere, so there is no deadlock. Such a thread may reach a page that no longer belongs to
//! the tree; the check of index id and type under each latch tells it so.

use crate::node::Node;
use crate::redo;
use crate::tree::{MAX_LEVELS, TreeHandle};
use nfold_store::{PAGE_SIZE, PageId, PageNo, Stop, Store};

/// The number of leaves that one mini-transaction frees.
const FREE_BATCH: usize = 16;
/// The log bytes for each page's own records, and for a part of the free list that one of them may
/// have to take over.
const FREE_LOG_BYTES: usize = 256 * (2 * FREE_BATCH + 1) + PAGE_SIZE;

impl TreeHandle {
    /// Frees some of the tree's pages. Returns `Ok(true)` when all are free, the root included;
    /// call it until then. On `Wait`, call it again. No reader may use the tree, and no writer may
    /// add to it. After a crash it continues, as long as the root still exists.
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

    /// Descends along the last slots to the lowest page that still has children, all without
    /// children of their own. Returns that page and its last children, last first; no page if only
    /// the root is left.
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
                // An inner page without children is freed alone, because its siblings may have
                // children.
                children.truncate(if level == 0 { FREE_BATCH } else { 1 });
                return Ok((parent, children));
            }
            page_no = below[0];
            parent = Some(page.id().page);
            children = below;
        }
    }
}
