//! Merges: an underfull page is merged with a sibling under the same parent. A root with a single
//! child takes over the child's contents.
//!
//! # Concurrency
//! The caller holds the tree's structure mutex. The latch order is: leaves from left to right, then
//! inner pages (S1 of [`split`](crate::split)). A reader that descends to the freed page restarts,
//! because the page word has changed.
//! # Failure
//! Each merge is one mini-transaction. If a merge returns `Wait`, it changed nothing; earlier
//! merges remain.

use crate::check::first_problem;
use crate::node::edit::{Format, push_cell};
use crate::node::{CAPACITY, Node, common_prefix};
use crate::redo;
use crate::split::{lower_fence, upper_fence};
use crate::tree::{Path, Seek, TreeHandle};
use nfold_store::{Latched, Mtr, PAGE_SIZE, PageNo, Stop, Store, header};
use std::sync::atomic::Ordering::Relaxed;

/// The log bytes of one merge: a page image, fences, links, and the part of the free list that may
/// move into the freed page.
const MERGE_LOG_BYTES: usize = 3 * PAGE_SIZE;
/// The most bytes in a merged page, so that it is not split again at once.
const MERGED_MAX: usize = CAPACITY / 4 * 3;

/// Whether a page contains so little that it should be merged with a sibling.
pub(crate) fn is_underfull(node: Node<'_>) -> bool {
    node.used_bytes() < CAPACITY / 4
}

impl TreeHandle {
    /// Merges the leaf that covers `key` with a sibling, if it is underfull and both fit into one
    /// page. Then does the same for its ancestors. Purge calls this after removals. The caller must
    /// hold no latch. On `Wait`, call again.
    pub fn compact(&self, store: &Store, key: &[u8]) -> Result<(), Stop> {
        let _smo = self.hold_smo(store);
        let path = self.path(store, Seek::At(key))?;
        for level in 0..path.len() - 1 {
            let Some((parent, slots, taken)) = self.neighbours(store, &path, level)? else {
                return Ok(());
            };
            let pairs = [(taken, taken + 1), (taken.wrapping_sub(1), taken)];
            for (left, right) in pairs {
                if let (Some(l), Some(r)) = (slots.get(left), slots.get(right))
                    && self.merge(store, parent, (*l, *r), right)?
                {
                    self.shape.counters.merges.fetch_add(1, Relaxed);
                    break;
                }
            }
        }
        self.collapse_root(store)
    }

    /// Returns (parent, its children, slot of the path's page) for the page of the path at `level`,
    /// or `None` if that page is not underfull.
    fn neighbours(
        &self,
        store: &Store,
        path: &Path,
        level: usize,
    ) -> Result<Option<(PageNo, Vec<PageNo>, usize)>, Stop> {
        loop {
            let page = store.read(self.page_id(path[level].0))?;
            let underfull = is_underfull(Node::new(page.words()));
            if !page.validate() {
                continue;
            }
            if !underfull {
                return Ok(None);
            }
            let (parent_no, taken) = path[level + 1];
            let parent = store.read(self.page_id(parent_no))?;
            let node = Node::new(parent.words());
            let slots = (0..node.count())
                .map(|i| node.child(node.slot(i)))
                .collect();
            if parent.validate() {
                return Ok(Some((parent_no, slots, taken)));
            }
        }
    }

    /// Merges two siblings under `parent` if they fit into one page. `right_slot` is the right
    /// sibling's slot in the parent. Returns whether they were merged.
    fn merge(
        &self,
        store: &Store,
        parent: PageNo,
        (left_no, right_no): (PageNo, PageNo),
        right_slot: usize,
    ) -> Result<bool, Stop> {
        let mut mtr = store.mtr();
        mtr.reserve(MERGE_LOG_BYTES, self.tree.space, 0)?;
        let left = mtr.latch(self.page_id(left_no))?;
        let right = mtr.latch(self.page_id(right_no))?;
        let (l, r) = (Node::new(mtr.words(left)), Node::new(mtr.words(right)));
        if !(is_underfull(l) || is_underfull(r)) {
            return Ok(false);
        }
        for (page, node) in [(left, l), (right, r)] {
            if let Some(what) = first_problem(node) {
                return Err(mtr.corrupt(page, what).into());
            }
        }
        let (lower, upper) = (lower_fence(l), upper_fence(r));
        let prefix = upper.as_ref().map_or(0, |u| common_prefix(&lower, u));
        let bytes = |n: Node<'_>| {
            n.used_bytes() + n.count() * (n.prefix_len() - prefix.min(n.prefix_len()))
        };
        let fences = lower.len() + upper.as_ref().map_or(0, Vec::len);
        let limit = if l.count() == 0 || r.count() == 0 {
            CAPACITY
        } else {
            MERGED_MAX
        };
        if bytes(l) + bytes(r) + fences > limit {
            return Ok(false);
        }
        let sibling = match (l.level(), r.right()) {
            (0, page) if page != 0 => Some(mtr.latch(self.page_id(page))?),
            _ => None,
        };
        let parent = mtr.latch(self.page_id(parent))?;
        if let Some(what) = Node::new(mtr.words(parent)).bounds_problem() {
            return Err(mtr.corrupt(parent, what).into());
        }
        let mut cells = Vec::with_capacity(PAGE_SIZE);
        push_entries(l, prefix, &mut cells);
        push_entries(r, prefix, &mut cells);
        let format = Format {
            page_type: l.page_type(),
            level: l.level(),
            index_id: self.tree.index_id,
            left: l.left(),
            right: r.right(),
            lower: &lower,
            upper: upper.as_deref(),
        };
        self.refill(&mut mtr, left, &format, &cells, right);
        if let Some(sibling) = sibling {
            let right_of = Node::new(mtr.words(sibling)).right();
            redo::log_links(&mut mtr, sibling, left_no, right_of);
        }
        redo::log_remove(&mut mtr, parent, right_slot);
        mtr.commit();
        Ok(true)
    }

    /// Replaces the contents of `page`, which now include those of `freed`, and frees `freed`.
    fn refill(
        &self,
        mtr: &mut Mtr<'_>,
        page: Latched,
        format: &Format<'_>,
        cells: &[u8],
        freed: Latched,
    ) {
        let newest = mtr.u64(freed, header::NEWEST_TRX);
        redo::log_format(mtr, page, format);
        redo::log_append(mtr, page, cells);
        mtr.set_newest_trx(page, newest);
        mtr.free_page(freed);
    }

    /// As long as the root has a single child, moves the child's contents into the root.
    fn collapse_root(&self, store: &Store) -> Result<(), Stop> {
        loop {
            let root = store.read(self.page_id(self.tree.root))?;
            let node = Node::new(root.words());
            let (level, count, child) = (node.level(), node.count(), node.child(node.slot(0)));
            if !root.validate() {
                continue;
            }
            if level == 0 || count != 1 {
                return Ok(());
            }
            let mut mtr = store.mtr();
            mtr.reserve(MERGE_LOG_BYTES, self.tree.space, 0)?;
            let child = mtr.latch(self.page_id(child))?;
            let root = mtr.latch(self.page_id(self.tree.root))?;
            let below = Node::new(mtr.words(child));
            if let Some(what) = first_problem(below) {
                return Err(mtr.corrupt(child, what).into());
            }
            let mut cells = Vec::with_capacity(PAGE_SIZE);
            push_entries(below, 0, &mut cells);
            let format = Format {
                page_type: below.page_type(),
                level: below.level(),
                index_id: self.tree.index_id,
                left: 0,
                right: 0,
                lower: &[],
                upper: None,
            };
            self.refill(&mut mtr, root, &format, &cells, child);
            mtr.commit();
        }
    }
}

/// Appends all entries to a list of cells, for a page with a common prefix of `prefix` bytes.
fn push_entries(node: Node<'_>, prefix: usize, cells: &mut Vec<u8>) {
    let (mut key, mut value) = (Vec::new(), Vec::new());
    for i in 0..node.count() {
        key.clear();
        value.clear();
        node.append_key(node.slot(i), &mut key);
        node.append_value(node.slot(i), &mut value);
        push_cell(cells, key.get(prefix..).unwrap_or(&[]), &value);
    }
}
