//! Range scans in both directions. A step copies one leaf into the caller's batch, or passes its
//! entries to a sink in place.
//!
//! # Invariants
//! - C1: a cursor's position is a key between entries, never a page. Splits, merges and evictions
//!   may happen between two calls: an entry that exists throughout is still returned exactly once,
//!   in order.
//! - C2: the position moves only after the leaf was validated.
//! # Cost
//! The first leaf takes a descent. Later leaves are reached over the sibling link, which is checked
//! against the fence keys.
//!
//! Once a leaf was missing, the scan reads ahead: it requests the next leaves of the range, found
//! in their parents, a few at first and twice as many each time, until none is missing. A scan
//! without an end starts this only at its second leaf, because its reader may want only a few rows.

use crate::batch::EntryBatch;
use crate::leaf::LeafEntries;
use crate::node::Node;
use crate::points::{Copies, PointSink};
use crate::tree::{Miss, Seek, TreeHandle};
use nfold_store::{PageId, PageNo, Stop, Store};
use nfold_sync::planted::{self, Bug};
use smallvec::SmallVec;
pub use std::ops::Bound;

/// The number of leaves that are read ahead: at first, and at most.
const READ_AHEAD: usize = 4;
const READ_AHEAD_MAX: usize = 64;
/// The number of parents from which one request takes leaves.
const PARENTS: usize = 2;

/// The key range of a [`Cursor`].
#[derive(Clone, Debug)]
pub struct KeyRange {
    pub lo: Bound<Vec<u8>>,
    pub hi: Bound<Vec<u8>>,
}

impl KeyRange {
    pub fn all() -> KeyRange {
        KeyRange {
            lo: Bound::Unbounded,
            hi: Bound::Unbounded,
        }
    }
}

/// A bound that keeps its memory when it is reassigned.
#[derive(Clone, Debug)]
struct Edge {
    /// The key is meaningless if this is `Unbounded`.
    kind: Bound<()>,
    key: Vec<u8>,
}

impl Default for Edge {
    fn default() -> Edge {
        Edge {
            kind: Bound::Unbounded,
            key: Vec::new(),
        }
    }
}

impl Edge {
    fn set(&mut self, bound: Bound<&[u8]>) {
        self.key.clear();
        self.kind = bound.map(|key| self.key.extend_from_slice(key));
    }

    fn copy(&mut self, other: &Edge) {
        self.kind = other.kind;
        self.key.clone_from(&other.key);
    }

    #[inline]
    fn get(&self) -> Bound<&[u8]> {
        self.kind.map(|()| self.key.as_slice())
    }
}

/// A position between two entries of a tree. It holds no latch and no page, only keys (C1). Reusing
/// a cursor by [`reset`](Self::reset) allocates nothing once it is warm.
#[derive(Clone, Debug, Default)]
pub struct Cursor {
    lo: Edge,
    hi: Edge,
    reverse: bool,
    /// The position: the scan continues with the keys from here on, in its direction.
    at: Edge,
    done: bool,
    /// The page to try before a descent; 0: none.
    hint: PageNo,
    /// The number of leaves that are still read ahead; 0: no leaf was missing lately.
    ahead: usize,
    /// The size of the last read-ahead request; 0: none yet.
    window: usize,
    /// Whether the first leaf has been passed.
    moved: bool,
    /// The page number and version of the leaf that the last batch came from; page 0: unknown.
    copied: (PageNo, u64),
    spare: Vec<u8>,
}

/// Where a scan continues after it took entries from a leaf.
enum Next {
    Done,
    /// In the same leaf: `spare` is the last key returned.
    Here,
    /// In the neighbour: `spare` is the fence key between both.
    Neighbour(PageNo),
}

impl TreeHandle {
    /// Opens a cursor before the first entry of `range`, or behind the last one if `reverse`.
    pub fn cursor(&self, range: KeyRange, reverse: bool) -> Cursor {
        let mut cursor = Cursor::default();
        let (lo, hi) = (range.lo.as_ref(), range.hi.as_ref());
        cursor.reset(lo.map(Vec::as_slice), hi.map(Vec::as_slice), reverse);
        cursor
    }
}

impl Cursor {
    /// Moves the cursor before the first entry between the bounds, or behind the last one if
    /// `reverse`.
    pub fn reset(&mut self, lo: Bound<&[u8]>, hi: Bound<&[u8]>, reverse: bool) {
        self.done = is_empty(lo, hi);
        self.lo.set(lo);
        self.hi.set(hi);
        self.at.set(match (reverse, lo) {
            (true, _) => hi,
            (false, Bound::Unbounded) => Bound::Included(&[]),
            (false, _) => lo,
        });
        self.reverse = reverse;
        (self.hint, self.ahead, self.window, self.moved) = (0, 0, 0, false);
        self.copied = (0, 0);
    }

    /// Copies the state of `other` into this cursor, reusing its memory.
    pub fn copy_from(&mut self, other: &Cursor) {
        self.lo.copy(&other.lo);
        self.hi.copy(&other.hi);
        self.at.copy(&other.at);
        (self.reverse, self.done) = (other.reverse, other.done);
        (self.hint, self.ahead) = (other.hint, other.ahead);
        (self.window, self.moved) = (other.window, other.moved);
        self.copied = other.copied;
    }

    /// Moves back to right behind `key`, which the cursor has passed; `None`: to its start, which
    /// only a forward cursor can.
    pub fn back_to(&mut self, key: Option<&[u8]>) {
        match (key, self.lo.kind) {
            (Some(key), _) => self.at.set(Bound::Excluded(key)),
            (None, Bound::Unbounded) => self.at.set(Bound::Included(&[])),
            (None, _) => self.at.copy(&self.lo),
        }
        self.done = is_empty(self.lo.get(), self.hi.get());
        self.hint = 0;
        self.copied = (0, 0);
    }

    /// Whether the next batch begins at a leaf's lower end. Then entries inserted before the
    /// position meanwhile are not seen. Forward cursors only.
    pub fn is_between_leaves(&self) -> bool {
        self.moved && matches!(self.at.kind, Bound::Included(()))
    }

    /// Whether the leaf of the last batch is unchanged, so that another copy would be the same.
    /// False if that is unknown.
    pub fn is_unchanged(&self, tree: &TreeHandle, store: &Store) -> bool {
        let (page, version) = self.copied;
        page != 0
            && store
                .read(tree.page_id(page))
                .is_ok_and(|p| p.version() == version)
    }

    /// Appends the next entries to `out`: at most `max_entries` (at least 1), and at most those of
    /// one leaf. False: the range is exhausted. True with nothing appended is possible. `Wait`
    /// keeps the position: call again.
    pub fn next_batch(
        &mut self,
        tree: &TreeHandle,
        store: &Store,
        max_entries: usize,
        out: &mut EntryBatch,
    ) -> Result<bool, Stop> {
        let max_bytes = usize::MAX;
        self.next_into(tree, store, max_entries, &mut Copies { out, max_bytes })
    }

    /// As [`next_batch`](Self::next_batch), but `out` consumes the entries in place.
    pub fn next_into<S: PointSink>(
        &mut self,
        tree: &TreeHandle,
        store: &Store,
        max_entries: usize,
        out: &mut S,
    ) -> Result<bool, Stop> {
        if self.done {
            return Ok(false);
        }
        let mark = out.mark();
        let copied = tree.optimistic(store, || {
            let page = self.find(tree, store)?;
            let node = Node::new(page.words());
            let next = self.take_leaf(node, page.id().page, max_entries, out);
            if page.validate() {
                self.copied = (page.id().page, page.version());
                return Ok((next, page.id().page));
            }
            out.cut(mark);
            Err(Miss::Restart)
        });
        let (next, page) = match copied {
            Ok(Some(copied)) => copied,
            Ok(None) => {
                let mut mtr = store.mtr();
                let leaf = tree.latch_leaf(store, &mut mtr, self.seek())?;
                let page = mtr.id(leaf).page;
                self.copied = (0, 0);
                (
                    self.take_leaf(Node::new(mtr.words(leaf)), page, max_entries, out),
                    page,
                )
            }
            Err(Stop::Wait(wait)) => {
                // If this page was read ahead and is still on its way, a new request would add only
                // a page or two, with one read for each.
                if self.ahead <= self.window / 2 {
                    self.read_ahead(tree, store);
                }
                return Err(Stop::Wait(wait));
            }
            Err(stop) => return Err(stop),
        };
        if !self.is_progress(&next) {
            out.cut(mark);
            return Err(tree.corrupt(page, "keys or fences out of order"));
        }
        self.move_on(tree, store, next, page);
        Ok(!self.done)
    }

    /// Whether the key in `spare` is ahead of the position. Without this check a damaged page could
    /// make a cursor loop.
    fn is_progress(&self, next: &Next) -> bool {
        let order = match self.at.get() {
            Bound::Unbounded => return true,
            Bound::Included(key) | Bound::Excluded(key) => self.spare.as_slice().cmp(key),
        };
        let ahead = if self.reverse {
            order.is_lt()
        } else {
            order.is_gt()
        };
        match next {
            Next::Done => true,
            Next::Neighbour(_) if !self.reverse => ahead,
            _ => ahead || (order.is_eq() && matches!(self.at.kind, Bound::Included(()))),
        }
    }

    fn seek(&self) -> Seek<'_> {
        match self.at.get() {
            Bound::Included(key) => Seek::At(key),
            Bound::Excluded(key) if self.reverse => Seek::Below(key),
            Bound::Excluded(key) => Seek::At(key),
            Bound::Unbounded => Seek::Last,
        }
    }

    /// The leaf at the position: the hinted page if it covers the position, otherwise by descent.
    fn find<'s>(
        &mut self,
        tree: &TreeHandle,
        store: &'s Store,
    ) -> Result<nfold_store::PageRef<'s>, Miss> {
        if self.hint != 0 {
            match store.read(tree.page_id(self.hint)) {
                Ok(page) => {
                    let node = Node::new(page.words());
                    let right = tree.is_ours(node, 0) && self.seek().covered_by(node);
                    if right || planted::is(Bug::MissedValidation) {
                        return Ok(page);
                    }
                }
                Err(Stop::Wait(wait)) => return Err(Stop::Wait(wait).into()),
                // The page is gone, so the hint is stale.
                Err(Stop::Error(_)) => {}
            }
            self.hint = 0;
        }
        let page = tree.try_descend(store, self.seek(), 0, |_, _, _| ())?;
        Node::new(page.words()).prefetch_first_slots();
        Ok(page)
    }

    /// Moves the position. C2: to be called after validation.
    fn move_on(&mut self, tree: &TreeHandle, store: &Store, next: Next, page: PageNo) {
        match next {
            Next::Done => self.done = true,
            Next::Here => {
                self.swap_position(false);
                self.hint = page;
            }
            Next::Neighbour(sibling) => {
                self.swap_position(!self.reverse);
                self.hint = sibling;
                self.moved = true;
                let id = (sibling != 0).then(|| tree.page_id(sibling));
                // Also reads ahead if the disk keeps up and the scan never waits. Otherwise each
                // leaf would be a read of its own.
                let due = match self.ahead {
                    0 => id.is_some_and(|id| !store.is_resident(id)),
                    _ => self.ahead - 1 <= self.window / 2,
                };
                self.ahead = self.ahead.saturating_sub(1);
                if due {
                    self.read_ahead(tree, store);
                }
                if let Some(id) = id {
                    store.prefetch(id);
                }
            }
        }
    }

    /// Makes `spare` the position.
    fn swap_position(&mut self, included: bool) {
        std::mem::swap(&mut self.at.key, &mut self.spare);
        self.at.kind = if included {
            Bound::Included(())
        } else {
            Bound::Excluded(())
        };
    }

    /// Passes the qualifying entries of the leaf to `out`, and stores the key to continue at in
    /// `spare`. The page is not validated here.
    #[inline]
    fn take_leaf<S: PointSink>(
        &mut self,
        node: Node<'_>,
        page: PageNo,
        max_entries: usize,
        out: &mut S,
    ) -> Next {
        let reverse = self.reverse;
        let mut take = |slots| {
            let entries = LeafEntries {
                node,
                page,
                slots,
                reverse,
            };
            out.take(0, entries);
        };
        let max = max_entries.max(1);
        let count = node.count();
        self.spare.clear();
        if self.reverse {
            let end = upper_slot(node, count, self.at.get());
            let (start, last) = self.start_slot(node, count);
            let from = start.max(end.saturating_sub(max));
            take(from..end);
            if from > start {
                node.append_key(node.slot(from), &mut self.spare);
                return Next::Here;
            }
            node.append_lower(&mut self.spare);
            if last || self.spare.is_empty() {
                Next::Done
            } else {
                Next::Neighbour(node.left())
            }
        } else {
            let start = self.resume_slot(node, count);
            let (end, last) = self.end_slot(node, count);
            let to = end.min(start.saturating_add(max));
            take(start..to);
            if to < end {
                node.append_key(node.slot(to.saturating_sub(1)), &mut self.spare);
                return Next::Here;
            }
            if last || !node.append_upper(&mut self.spare) {
                Next::Done
            } else {
                Next::Neighbour(node.right())
            }
        }
    }

    /// Forward: the slot at the position, which the page covers.
    fn resume_slot(&self, node: Node<'_>, count: usize) -> usize {
        match self.at.get() {
            Bound::Included(key) => node.search(count, node.suffix(key)).0,
            Bound::Excluded(key) => {
                let (slot, found) = node.search(count, node.suffix(key));
                slot + usize::from(found)
            }
            Bound::Unbounded => 0,
        }
    }

    /// Forward: the slot behind the range's last one in this page, and whether the range ends in
    /// this page.
    fn end_slot(&self, node: Node<'_>, count: usize) -> (usize, bool) {
        let last = match self.hi.get() {
            Bound::Unbounded => false,
            Bound::Included(hi) => node.compare_upper(hi).is_gt(),
            Bound::Excluded(hi) => node.compare_upper(hi).is_ge(),
        };
        (
            if last {
                upper_slot(node, count, self.hi.get())
            } else {
                count
            },
            last,
        )
    }

    /// Backward: the first slot of the range in this page, and whether the range begins in this
    /// page.
    fn start_slot(&self, node: Node<'_>, count: usize) -> (usize, bool) {
        match self.lo.get() {
            Bound::Included(lo) if node.compare_lower(lo).is_le() => {
                (node.search(count, node.suffix(lo)).0, true)
            }
            Bound::Excluded(lo) if node.compare_lower(lo).is_le() => {
                let (slot, found) = node.search(count, node.suffix(lo));
                (slot + usize::from(found), true)
            }
            _ => (0, false),
        }
    }

    /// Requests the leaves from the position on. Does nothing if inner pages are missing.
    fn read_ahead(&mut self, tree: &TreeHandle, store: &Store) {
        let end = if self.reverse { &self.lo } else { &self.hi };
        if self.window == 0 && !self.moved && matches!(end.kind, Bound::Unbounded) {
            return;
        }
        let most = READ_AHEAD_MAX.min(store.load_batch());
        self.window = (2 * self.window).clamp(READ_AHEAD, most);
        self.ahead = 0;
        let mut pages: SmallVec<[PageId; READ_AHEAD_MAX]> = SmallVec::new();
        let mut fence: Option<Vec<u8>> = None;
        for _ in 0..PARENTS {
            let seek = match &fence {
                None => self.seek(),
                Some(fence) if self.reverse => Seek::Below(fence),
                Some(fence) => Seek::At(fence),
            };
            let Ok(parent) = tree.try_descend(store, seek, 1, |_, _, _| ()) else {
                break;
            };
            let before = pages.len();
            let beyond = self.children(tree, Node::new(parent.words()), seek, &mut pages);
            if !parent.validate() {
                pages.truncate(before);
                break;
            }
            fence = beyond;
            if fence.is_none() || pages.len() >= self.window {
                break;
            }
        }
        if store.read_ahead(&pages) > 0 && (fence.is_some() || pages.len() >= self.window) {
            self.ahead = pages.len();
        }
    }

    /// Adds the children of a leaf parent, starting where `seek` leads, within the window and the
    /// range. Returns the fence key behind which the range continues. The page is not validated
    /// here.
    fn children(
        &self,
        tree: &TreeHandle,
        node: Node<'_>,
        seek: Seek<'_>,
        pages: &mut SmallVec<[PageId; READ_AHEAD_MAX]>,
    ) -> Option<Vec<u8>> {
        let count = node.count();
        let slot = seek.child_slot(node, count);
        let room = self.window - pages.len();
        let mut fence = Vec::new();
        let page = |slot| tree.page_id(node.child(node.slot(slot)));
        if self.reverse {
            let last = match self.lo.get() {
                Bound::Included(lo) | Bound::Excluded(lo) if node.compare_lower(lo).is_le() => {
                    Some(Seek::At(lo).child_slot(node, count))
                }
                _ => None,
            };
            let (from, to) = (last.unwrap_or(0), (slot + 1).min(count));
            pages.extend((from..to).rev().take(room).map(page));
            node.append_lower(&mut fence);
            (last.is_none() && !fence.is_empty()).then_some(fence)
        } else {
            let last = match self.hi.get() {
                Bound::Included(hi) | Bound::Excluded(hi) if node.compare_upper(hi).is_gt() => {
                    Some(Seek::At(hi).child_slot(node, count))
                }
                _ => None,
            };
            let to = last.map_or(count, |last| (last + 1).min(count));
            pages.extend((slot..to).take(room).map(page));
            (last.is_none() && node.append_upper(&mut fence)).then_some(fence)
        }
    }
}

/// The slot behind the last key within the upper bound. A bound at or above the upper fence may
/// lack the page's common prefix.
fn upper_slot(node: Node<'_>, count: usize, bound: Bound<&[u8]>) -> usize {
    match bound {
        Bound::Unbounded => count,
        Bound::Included(key) | Bound::Excluded(key) if node.compare_upper(key).is_le() => count,
        Bound::Included(key) => {
            let (slot, found) = node.search(count, node.suffix(key));
            slot + usize::from(found)
        }
        Bound::Excluded(key) => node.search(count, node.suffix(key)).0,
    }
}

fn is_empty(lo: Bound<&[u8]>, hi: Bound<&[u8]>) -> bool {
    match (lo, hi) {
        (Bound::Included(lo), Bound::Included(hi)) => lo > hi,
        (Bound::Included(lo) | Bound::Excluded(lo), Bound::Included(hi) | Bound::Excluded(hi)) => {
            lo >= hi
        }
        _ => false,
    }
}
