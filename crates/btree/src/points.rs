//! Many short ranges together: the read path of IN lists on secondary indexes and of joins.

use crate::batch::{EntryBatch, PointScan, Resume};
use crate::group::{Job, LANES};
use crate::leaf::LeafEntries;
use crate::node::{Key, Node};
use crate::tree::{Miss, Seek, TreeHandle};
use nfold_store::{PageNo, PageRef, Stop, Store};
use smallvec::SmallVec;

/// Entries of a point whose cells are prefetched, and where such a cell ends, about.
const CELLS_PREFETCHED: usize = 8;
const CELL_BYTES: usize = 40;

/// What takes the entries that a scan of points finds, or a cursor, whose only point is 0.
pub trait PointSink {
    /// Where it stands.
    type Mark: Copy;

    fn mark(&self) -> Self::Mark;
    /// Drops what was taken since `mark`: the page had changed meanwhile.
    fn cut(&mut self, mark: Self::Mark);
    /// Takes entries of a point, in the order of their keys or, from a cursor that goes backwards, in the other one. What they say may be garbage; if so, it is cut off afterwards.
    fn take(&mut self, point: u32, entries: LeafEntries<'_>);
    /// Whether the caller should use what is there before the scan goes on.
    fn is_full(&self) -> bool;
    /// Whether it has taken entries of points behind `last`.
    fn holds_behind(&self, last: u32) -> bool;
    /// Drops the entries of all points behind `last`: they will come again. If nothing is left of what was taken, it [is not full](Self::is_full) afterwards.
    fn keep_points(&mut self, last: u32);
}

/// Copies entries until they have so many bytes.
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
    /// Reads all points of the batch into its entries. `Ok(true)`: entries reached `max_bytes`, or many leaves gave hardly any, and there is more; use them,
    /// [`clear_entries`](PointScan::clear_entries), call again. `Wait`: call again; what was found stays found.
    ///
    /// The entries of a point come in key order. When it returns `Ok(true)`, the entries at hand are those of all points up to some
    /// number, the last perhaps not complete: so sorting them by point (stably) gives the order of the points over all calls.
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

    /// As [`scan_points`](Self::scan_points), but `sink` takes the entries where they lie, and says when there are enough.
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
    /// Leaves behind which a point went on.
    went_on: usize,
}

/// Leaves of points that go on, after which the caller may look whether to do so.
const WENT_ON_MOST: usize = 256;

/// Gives the sink the entries of one leaf from `slot` on that are below `hi` (empty: no bound); `known` is the slot behind them, or 0. Gives whether the point goes on behind this leaf,
/// whose upper fence is then in `fence`. Unvalidated.
#[inline]
fn take_point<S: PointSink>(
    node: Node<'_>,
    page: PageNo,
    point: u32,
    (slot, known): (usize, usize),
    hi: Key<'_>,
    (sink, fence): (&mut S, &mut Vec<u8>),
) -> bool {
    let count = node.count();
    // `hi` is above the point's lower bound, which has the page's prefix: without the prefix it is above all keys here.
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
    // The fence is far from everything else on the page, so it is looked at only when it matters.
    if end < count || (hi.len > 0 && node.compare_upper(hi.bytes()).is_ge()) {
        return false;
    }
    fence.clear();
    node.append_upper(fence)
}

impl<S: PointSink> PointJob<'_, S> {
    /// Notes that the point goes on at `fence`.
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
        // No new points beside one that goes on: it may be long, and theirs would have to be thrown away to keep the order.
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
        // Entries that came one by one lie anywhere on the page.
        for i in first..(first + CELLS_PREFETCHED).min(node.count()) {
            let slot = node.slot(i);
            // Of two with the same head, the one that is no longer and all in its head is not above the other.
            let above = slot.head() == hi.head && hi.len <= 4 && slot.key_len() >= hi.len;
            if slot.head() > hi.head || above {
                // What is before it is all below the upper bound, if the last of that is so by its head.
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
            return false; // damage; it is looked at once more alone
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
