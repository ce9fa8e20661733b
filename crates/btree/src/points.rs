//! Batched scans of many short ranges ("points"): the read path of IN lists on secondary indexes,
//! and of joins.

use crate::batch::{EntryBatch, PointScan, Resume};
use crate::group::{Job, LANES};
use crate::leaf::LeafEntries;
use crate::node::{Key, Node};
use crate::tree::{Miss, Seek, TreeHandle};
use nfold_store::{PageNo, PageRef, Stop, Store};
use smallvec::SmallVec;

/// The number of entries of a point whose cells are prefetched, and the approximate length of such
/// a cell.
const CELLS_PREFETCHED: usize = 8;
const CELL_BYTES: usize = 40;

/// Consumes the entries of a point scan, or of a cursor, whose only point is 0.
pub trait PointSink {
    /// A position in the consumed entries.
    type Mark: Copy;

    fn mark(&self) -> Self::Mark;
    /// Discards all entries consumed since `mark`, because the page changed meanwhile.
    fn cut(&mut self, mark: Self::Mark);
    /// Consumes entries of a point, in ascending key order, or in descending order from a reverse
    /// cursor. The entries may be garbage; if so, `cut` follows.
    fn take(&mut self, point: u32, entries: LeafEntries<'_>);
    /// Whether the caller should process the consumed entries before the scan continues.
    fn is_full(&self) -> bool;
    /// Whether it holds entries of points after `last`.
    fn holds_behind(&self, last: u32) -> bool;
    /// Discards the entries of all points after `last`, because the scan will return them again. If
    /// nothing remains, the sink [is not full](Self::is_full) afterwards.
    fn keep_points(&mut self, last: u32);
}

/// Copies entries until they reach `max_bytes`.
pub(crate) struct Copies<'b> {
    pub out: &'b mut EntryBatch,
    pub max_bytes: usize,
}

impl PointSink for Copies<'_> {
    type Mark = (usize, usize);

    #[inline]
    fn mark(&self) -> (usize, usize) {
        self.out.mark()
    }
    fn cut(&mut self, mark: (usize, usize)) {
        self.out.cut(mark);
    }
    #[inline]
    fn take(&mut self, point: u32, entries: LeafEntries<'_>) {
        let (page, node) = (entries.page, entries.node);
        match entries.reverse {
            false => self.out.push_all(point, page, node, entries.slots),
            true => self.out.push_all(point, page, node, entries.slots.rev()),
        }
    }
    fn is_full(&self) -> bool {
        self.out.bytes() >= self.max_bytes
    }
    fn holds_behind(&self, last: u32) -> bool {
        self.out.entries().iter().any(|e| e.point > last)
    }
    fn keep_points(&mut self, last: u32) {
        self.out.keep_points(last);
    }
}

impl TreeHandle {
    /// Reads all points of the batch into its entries. `Ok(true)`: the entries reached `max_bytes`,
    /// or many leaves yielded hardly any, and there is more. Process them, call
    /// [`clear_entries`](PointScan::clear_entries), then call this again. `Wait`: call it again;
    /// found entries stay.
    ///
    /// The entries of a point come in key order. On `Ok(true)`, the entries at hand cover all
    /// points up to some number; the last of these may be incomplete. So a stable sort by point
    /// yields the order of the points over all calls.
    pub fn scan_points(
        &self,
        store: &Store,
        scan: &mut PointScan,
        max_bytes: usize,
    ) -> Result<bool, Stop> {
        let mut out = std::mem::take(&mut scan.out);
        let mut copies = Copies {
            out: &mut out,
            max_bytes,
        };
        let result = self.scan_points_into(store, scan, &mut copies);
        scan.out = out;
        result
    }

    /// As [`scan_points`](Self::scan_points), but `sink` consumes the entries in place, and decides
    /// when there are enough.
    pub fn scan_points_into<S: PointSink>(
        &self,
        store: &Store,
        scan: &mut PointScan,
        sink: &mut S,
    ) -> Result<bool, Stop> {
        let mut job = PointJob {
            scan,
            sink,
            went_on: 0,
        };
        let more = self.run_groups(store, &mut job)?;
        if more && let Some(first) = scan.first_unfinished() {
            let behind = sink.holds_behind(first.point);
            if behind || !scan.went_on_behind(first) {
                scan.go_back_to(first);
            } else {
                scan.forget_resumed();
            }
            if behind {
                sink.keep_points(first.point);
            }
        }
        Ok(more)
    }
}

struct PointJob<'b, S> {
    scan: &'b mut PointScan,
    sink: &'b mut S,
    /// The number of times that a point continued on another leaf.
    went_on: usize,
}

/// After this many continuations the caller gets a chance to stop.
const WENT_ON_MOST: usize = 256;

/// Passes the entries of one leaf to the sink, from `slot` up to `hi` (empty: no bound). `known` is
/// the slot behind the last one, or 0 if unknown. Returns whether the point continues behind this
/// leaf; `fence` then holds the leaf's upper fence key. The page is not validated here.
#[inline(always)]
fn take_point<S: PointSink>(
    node: Node<'_>,
    page: PageNo,
    point: u32,
    (slot, known): (usize, usize),
    hi: Key<'_>,
    (sink, fence): (&mut S, &mut Vec<u8>),
) -> bool {
    let count = node.count();
    // `hi` is above the point's lower bound, which has the page's common prefix. If `hi` lacks this
    // prefix, it is above all keys of the page.
    let bounded = hi.len > 0 && node.suffix_here(hi).is_some();
    let end = if bounded && slot <= known && known <= count && known > 0 {
        known
    } else if bounded {
        node.end_from(slot, count, node.suffix(hi.bytes()))
    } else {
        count
    };
    let slots = slot..end;
    let entries = LeafEntries {
        node,
        page,
        slots,
        reverse: false,
    };
    sink.take(point, entries);
    // The fence key is far from the other lines of the page, so it is read only when it matters.
    if end < count || (hi.len > 0 && node.compare_upper(hi.bytes()).is_ge()) {
        return false;
    }
    fence.clear();
    node.append_upper(fence)
}

impl<S: PointSink> PointJob<'_, S> {
    /// Queues the rest of the point, from `fence` on.
    fn go_on(&mut self, point: u32) {
        self.went_on += 1;
        let from = self.scan.resume_keys.push(&self.scan.fence);
        self.scan.pending.push(Resume { point, from });
    }
}

impl<S: PointSink> Job for PointJob<'_, S> {
    type Item = Resume;

    fn take(&mut self, items: &mut SmallVec<[Resume; LANES]>) {
        while items.len() < LANES {
            let Some(item) = self.scan.pending.pop() else {
                break;
            };
            items.push(item);
        }
        // Starts no new points beside one that continues. It may be long, and entries of new points
        // would have to be discarded to keep the order.
        if items.iter().any(|item| item.from != Resume::START) {
            return;
        }
        while items.len() < LANES && (self.scan.next as usize) < self.scan.len() {
            items.push(Resume {
                point: self.scan.next,
                from: Resume::START,
            });
            self.scan.next += 1;
        }
    }

    fn put_back(&mut self, item: Resume) {
        self.scan.pending.push(item);
    }

    #[inline(always)]
    fn key(&self, item: Resume) -> Key<'_> {
        self.scan.lower(item)
    }

    #[inline(always)]
    fn prefetch(&self, node: Node<'_>, item: Resume, first: usize) -> usize {
        let hi = node.suffix_of(self.scan.bounds.key(item.point * 2 + 1));
        let mut below = true;
        // Entries that were inserted in random order lie anywhere on the page.
        for i in first..(first + CELLS_PREFETCHED).min(node.count()) {
            let slot = node.slot(i);
            // If both keys have the same prefix and `hi` ends within it, the slot's key is not
            // below `hi`, unless it is shorter.
            let above = slot.head() == hi.head && hi.len <= 4 && slot.key_len() >= hi.len;
            if slot.head() > hi.head || above {
                // All slots before this one are below the upper bound, if the last of them is so by
                // its key prefix.
                return if below { i } else { 0 };
            }
            below = slot.head() < hi.head;
            node.prefetch(slot.cell());
            node.prefetch(slot.cell() + CELL_BYTES);
        }
        0
    }

    #[inline]
    fn at_leaf(&mut self, item: Resume, page: &PageRef<'_>, first: usize, known: usize) -> bool {
        let node = Node::new(page.words());
        let lo = self.scan.lower(item);
        let (slot, _) = node.search_key(first, node.count(), lo, node.suffix_of(lo));
        let PointScan { bounds, fence, .. } = &mut *self.scan;
        let mark = self.sink.mark();
        let hi = bounds.key(item.point * 2 + 1);
        let to = (&mut *self.sink, fence);
        let from = (slot, known);
        let more = take_point(node, page.id().page, item.point, from, hi, to);
        if !page.validate() {
            self.sink.cut(mark);
            return false;
        }
        if more && *self.scan.fence <= *self.scan.lower(item).bytes() {
            return false; // the page may be damaged; `alone` decides
        }
        if more {
            self.go_on(item.point);
        }
        true
    }

    fn alone(&mut self, tree: &TreeHandle, store: &Store, item: Resume) -> Result<(), Stop> {
        let mark = self.sink.mark();
        let sink = &mut *self.sink;
        let PointScan {
            bounds,
            resume_keys,
            fence,
            ..
        } = &mut *self.scan;
        let lo = if item.from == Resume::START {
            bounds.get(item.point * 2)
        } else {
            resume_keys.get(item.from)
        };
        let hi = bounds.key(item.point * 2 + 1);
        let done = tree.optimistic(store, || {
            let page = tree.try_descend(store, Seek::At(lo), 0, |_, _, _| ())?;
            let node = Node::new(page.words());
            let (slot, _) = node.search(node.count(), node.suffix(lo));
            let to = (&mut *sink, &mut *fence);
            let more = take_point(node, page.id().page, item.point, (slot, 0), hi, to);
            if !page.validate() {
                sink.cut(mark);
                return Err(Miss::Restart);
            }
            Ok(more)
        })?;
        let more = match done {
            Some(more) => more,
            None => {
                let mut mtr = store.mtr();
                let leaf = tree.latch_leaf(store, &mut mtr, Seek::At(lo))?;
                let node = Node::new(mtr.words(leaf));
                let (slot, _) = node.search(node.count(), node.suffix(lo));
                take_point(
                    node,
                    mtr.id(leaf).page,
                    item.point,
                    (slot, 0),
                    hi,
                    (sink, fence),
                )
            }
        };
        if more && *self.scan.fence <= *self.scan.lower(item).bytes() {
            return Err(tree.corrupt(tree.tree.root, "an upper fence below the keys"));
        }
        if more {
            self.go_on(item.point);
        }
        Ok(())
    }

    fn full(&self) -> bool {
        self.sink.is_full() || self.went_on >= WENT_ON_MOST
    }
}
