//! Staged descent: a group of keys descends level by level, so that their cache misses and page
//! loads overlap. `get_many` and `scan_points` are jobs of this driver.
//!
//! # Picture
//! ```text
//! per group of LANES keys:
//!   root:   read search hints, prefetch slots │
//!   level:  search slots, prefetch the cell │ read the child's number, prefetch its word │
//!           load it │ prefetch child │ validate parent, read hints, prefetch slots │ ... next level
//!   leaf:   search slots │ prefetch cells │ compare, copy, validate
//! ```
//! Each `│` separates loops over the whole group. Prefetches of pages stand close together (see
//! [`crate::row_hint`]). A key that meets a concurrent change leaves the group and is looked up
//! alone. A key that meets a missing page is put back, and the missing pages of several groups are
//! requested together.
//! # Cost
//! No allocation: lanes live on the stack.

use crate::node::{Key, Node};
use crate::tree::{Miss, TreeHandle, count_restart};
use nfold_store::{PageId, PageRef, SpacePages, Stop, Store, WordRef};
use smallvec::SmallVec;

/// The number of keys in flight.
pub(crate) const LANES: usize = 16;
/// The number of missing pages that are kept without an allocation. [`Store::load_batch`] limits
/// how many a call waits for: the pool must be able to hold them until the retry.
const MAX_MISSING: usize = 32;
/// The bytes of a cell that are prefetched before its length is known.
const CELL_PREFETCH: usize = 256;

/// A batch of keys, and the work to do at their leaves.
pub(crate) trait Job {
    /// One key in flight.
    type Item: Copy;
    /// Adds items to process, up to [`LANES`]. Leaves `items` empty if none remain.
    fn take(&mut self, items: &mut SmallVec<[Self::Item; LANES]>);
    /// Returns an unprocessed item to the job, which will hand it out again.
    fn put_back(&mut self, item: Self::Item);
    /// The key that leads to the item's leaf.
    fn key(&self, item: Self::Item) -> Key<'_>;
    /// Prefetches the lines that [`at_leaf`](Self::at_leaf) will read. Returns the slot up to which
    /// it knows the entries, or 0.
    fn prefetch(&self, node: Node<'_>, _: Self::Item, first: usize) -> usize {
        let cell = node.slot(first).cell();
        for line in (0..CELL_PREFETCH).step_by(64) {
            node.prefetch(cell + line);
        }
        0
    }
    /// Processes the item at its leaf. `first` is the first slot whose key prefix is not below the
    /// key's, `known` the result of [`prefetch`](Self::prefetch). False: the page changed
    /// meanwhile, and nothing was kept.
    fn at_leaf(&mut self, item: Self::Item, page: &PageRef<'_>, first: usize, known: usize)
    -> bool;
    /// Processes one item outside a group, until it succeeds. Called for items whose pages changed
    /// while the group read them.
    fn alone(&mut self, tree: &TreeHandle, store: &Store, item: Self::Item) -> Result<(), Stop>;
    /// Whether the caller should consume results before more items are processed.
    fn full(&self) -> bool;
}

#[derive(Copy, Clone)]
struct Lane<'s, I> {
    page: PageRef<'s>,
    item: I,
    /// The slot that the search found, and later the child's page number.
    next: u32,
    /// The child's page word.
    word: Option<WordRef<'s>>,
    range: HintedRange,
    /// At the leaf: the slot up to which the entries are known, or 0.
    known: u16,
}

/// The slots to search, as the page's search hints say. If it is empty, the hints were not read.
#[derive(Copy, Clone)]
struct HintedRange(u16, u16);

impl HintedRange {
    const NONE: HintedRange = HintedRange(0, 0);

    #[inline(always)]
    fn get_or_look(self, node: Node<'_>, count: usize, head: u32) -> (usize, usize) {
        match self {
            HintedRange(_, 0) => node.hinted(count, head),
            HintedRange(from, to) => (from.into(), to.into()),
        }
    }
}

/// The items of one group, by their state.
struct Lanes<'s, I> {
    live: SmallVec<[Lane<'s, I>; LANES]>,
    restart: SmallVec<[I; LANES]>,
    missing: SmallVec<[(I, PageId); LANES]>,
}

impl TreeHandle {
    /// Runs a job until all its items are processed, or it is full, or a page must be loaded.
    /// `Ok(false)`: all are processed. `Ok(true)`: the job is full and has more items; the caller
    /// consumes results and calls again. `Err(Stop::Wait)`: the caller waits and calls again.
    ///
    /// Returns `Ok(true)` only if no remaining item has met a missing page: otherwise a caller that
    /// never waits could find the page missing each time.
    pub(crate) fn run_groups<J: Job>(&self, store: &Store, job: &mut J) -> Result<bool, Stop> {
        let mut stalled: SmallVec<[J::Item; MAX_MISSING]> = SmallVec::new();
        let mut pages: SmallVec<[PageId; MAX_MISSING]> = SmallVec::new();
        let limit = store.load_batch();
        let result = loop {
            let mut items = SmallVec::new();
            if pages.len() < limit && (pages.is_empty() || !job.full()) {
                job.take(&mut items);
            }
            if items.is_empty() {
                if pages.is_empty() {
                    break Ok(false);
                }
                for item in stalled.drain(..) {
                    job.put_back(item);
                }
                match store.wait_for(&pages) {
                    Some(wait) => break Err(Stop::Wait(wait)),
                    None => pages.clear(),
                }
                continue;
            }
            if job.full() {
                items.iter().for_each(|i| job.put_back(*i));
                break Ok(true);
            }
            if let Err(stop) = self.run_group(store, job, &items, &mut stalled, &mut pages) {
                break Err(stop);
            }
        };
        for item in stalled {
            job.put_back(item);
        }
        result
    }

    /// Runs one group. After an error all its unfinished items have been put back.
    fn run_group<J: Job>(
        &self,
        store: &Store,
        job: &mut J,
        items: &[J::Item],
        stalled: &mut SmallVec<[J::Item; MAX_MISSING]>,
        pages: &mut SmallVec<[PageId; MAX_MISSING]>,
    ) -> Result<(), Stop> {
        let mut lanes = Lanes {
            live: SmallVec::new(),
            restart: SmallVec::new(),
            missing: SmallVec::new(),
        };
        let mut failed = match self.descend(store, job, items, &mut lanes) {
            Ok(()) => {
                self.at_leaves(job, &mut lanes);
                Ok(())
            }
            Err(stop) => {
                // No item has reached the caller's results yet.
                items.iter().for_each(|i| job.put_back(*i));
                lanes.restart.clear();
                lanes.missing.clear();
                Err(stop)
            }
        };
        for (item, page) in lanes.missing {
            stalled.push(item);
            if !pages.contains(&page) {
                pages.push(page);
            }
        }
        for item in lanes.restart {
            count_restart(store);
            if failed.is_ok() {
                failed = job.alone(self, store, item);
                if failed.is_ok() {
                    continue;
                }
            }
            job.put_back(item);
        }
        failed
    }

    /// Descends with the items from the root to their leaves.
    fn descend<'s, J: Job>(
        &self,
        store: &'s Store,
        job: &J,
        items: &[J::Item],
        lanes: &mut Lanes<'s, J::Item>,
    ) -> Result<(), Stop> {
        let root = match self.read_root(store) {
            Ok(page) => page,
            Err(Miss::Restart) => {
                lanes.restart.extend(items.iter().copied());
                return Ok(());
            }
            Err(Miss::Stop(stop)) => return Err(stop),
        };
        let Some(pages) = store.pages_of(self.tree.space) else {
            lanes.restart.extend(items.iter().copied());
            return Ok(());
        };
        lanes.live.extend(items.iter().map(|item| Lane {
            page: root,
            item: *item,
            next: 0,
            word: None,
            range: HintedRange::NONE,
            known: 0,
        }));
        for below in (0..Node::new(root.words()).level()).rev() {
            self.search_slots(job, lanes);
            self.choose_children(pages, lanes);
            self.prefetch_children(store, pages, lanes);
            self.enter_children(store, pages, job, lanes, below)?;
        }
        Ok(())
    }

    /// Finds each lane's slot, and prefetches the cell that it points to.
    fn search_slots<J: Job>(&self, job: &J, lanes: &mut Lanes<'_, J::Item>) {
        let mut before: Option<Chosen<'_>> = None;
        for lane in &mut lanes.live {
            let node = Node::new(lane.page.words());
            let key = job.key(lane.item);
            let (count, suffix) = (node.count(), node.suffix_of(key));
            // Adjacent keys often have the same child, above all near the root.
            let slot = match before {
                Some(b) if b.holds(&lane.page, node, count, suffix.head) => b.slot,
                _ => {
                    let range = lane.range.get_or_look(node, count, suffix.head);
                    let first = node.search_hinted(range, suffix.head);
                    let (at, equal) = node.search_key(first, count, key, suffix);
                    let slot = if equal { at } else { at.saturating_sub(1) };
                    node.prefetch(node.slot(slot).value_at());
                    slot
                }
            };
            before = Some(Chosen {
                page: lane.page,
                slot,
                head: suffix.head,
            });
            lane.next = slot as u32;
        }
    }

    /// Reads the child page number of each lane's slot, and prefetches the child's page word.
    fn choose_children<'s, I: Copy>(&self, pages: SpacePages<'s>, lanes: &mut Lanes<'s, I>) {
        let Lanes { live, restart, .. } = lanes;
        let mut kept = 0;
        let (mut before, mut word_before) = (0, None);
        let all = live.as_mut_slice();
        for i in 0..all.len() {
            let mut lane = all[i];
            let node = Node::new(lane.page.words());
            let child = node.child(node.slot(lane.next as usize));
            if !lane.page.validate() {
                restart.push(lane.item);
                continue;
            }
            if child != before {
                (before, word_before) = (child, pages.word(child));
            }
            (lane.next, lane.word) = (child, word_before);
            all[kept] = lane;
            kept += 1;
        }
        live.truncate(kept);
    }

    /// Prefetches each lane's child. Requests all missing children together.
    fn prefetch_children<I>(&self, store: &Store, pages: SpacePages<'_>, lanes: &Lanes<'_, I>) {
        let mut missing: SmallVec<[PageId; LANES]> = SmallVec::new();
        let mut children = [None; LANES];
        let mut before = 0;
        for (lane, child) in lanes.live.iter().zip(&mut children) {
            if lane.next == before {
                continue;
            }
            before = lane.next;
            match lane.word.and_then(|word| pages.resident_at(word)) {
                Some(words) => *child = Some(Node::new(words)),
                None => missing.push(self.page_id(lane.next)),
            }
        }
        for child in children[..lanes.live.len()].iter().flatten() {
            child.prefetch(0);
            child.prefetch(64);
            child.prefetch(128);
        }
        if !missing.is_empty() {
            store.start_loads(&missing);
        }
    }

    /// Loads each child's word, validates the parent, and prefetches the slots to search.
    fn enter_children<'s, J: Job>(
        &self,
        store: &'s Store,
        pages: SpacePages<'s>,
        job: &J,
        lanes: &mut Lanes<'s, J::Item>,
        level: u16,
    ) -> Result<(), Stop> {
        let Lanes {
            live,
            restart,
            missing,
        } = lanes;
        let mut kept = 0;
        // The previous lane's page, which belongs to this tree and level.
        let mut before: Option<PageRef<'s>> = None;
        let all = live.as_mut_slice();
        for i in 0..all.len() {
            let mut lane = all[i];
            if let Some(page) = before
                && page.id().page == lane.next
            {
                // The previous lane checked that page. It is this lane's child, if this lane's
                // parent still names it.
                if !lane.page.validate() {
                    restart.push(lane.item);
                    continue;
                }
                lane.page = page;
            } else {
                let child = self.page_id(lane.next);
                let read = match lane.word.and_then(|word| pages.peek_at(word, lane.next)) {
                    Some(page) => {
                        pages.touch(&page);
                        Ok(page)
                    }
                    None => store.read(child),
                };
                if !lane.page.validate() {
                    restart.push(lane.item);
                    continue;
                }
                match read {
                    Ok(page) => lane.page = page,
                    Err(Stop::Wait(_)) => {
                        missing.push((lane.item, child));
                        continue;
                    }
                    Err(stop) => return Err(stop),
                }
                let node = Node::new(lane.page.words());
                if !self.is_ours(node, level) {
                    if lane.page.validate() {
                        return Err(self.corrupt(lane.next, "not the child that its parent names"));
                    }
                    restart.push(lane.item);
                    continue;
                }
                before = Some(lane.page);
            }
            lane.enter(job.key(lane.item));
            all[kept] = lane;
            kept += 1;
        }
        live.truncate(kept);
        Ok(())
    }

    /// Processes the lanes at their leaves.
    fn at_leaves<J: Job>(&self, job: &mut J, lanes: &mut Lanes<'_, J::Item>) {
        let Lanes { live, restart, .. } = lanes;
        for lane in live.iter_mut() {
            let node = Node::new(lane.page.words());
            let suffix = node.suffix_of(job.key(lane.item));
            let range = lane.range.get_or_look(node, node.count(), suffix.head);
            lane.next = node.search_hinted(range, suffix.head) as u32;
        }
        for lane in live.iter_mut() {
            let node = Node::new(lane.page.words());
            lane.known = job.prefetch(node, lane.item, lane.next as usize) as u16;
        }
        for lane in live.iter() {
            let (first, known) = (lane.next as usize, lane.known.into());
            if !job.at_leaf(lane.item, &lane.page, first, known) {
                restart.push(lane.item);
            }
        }
    }
}

/// The slot that was chosen for the previous lane.
#[derive(Copy, Clone)]
struct Chosen<'s> {
    page: PageRef<'s>,
    slot: usize,
    /// The key prefix of the previous lane.
    head: u32,
}

impl Chosen<'_> {
    /// Whether a key with prefix `head` on `page` certainly has the same slot: it is above the
    /// previous key, and below the next slot's key.
    #[inline(always)]
    fn holds(&self, page: &PageRef<'_>, node: Node<'_>, count: usize, head: u32) -> bool {
        self.page.is_same(page)
            && head > self.head
            && self.slot + 1 < count
            && head < node.slot(self.slot + 1).head()
    }
}

impl<I> Lane<'_, I> {
    /// Reads the search hints of the page just entered, and prefetches the slots that they point
    /// to.
    #[inline(always)]
    fn enter(&mut self, key: Key<'_>) {
        let node = Node::new(self.page.words());
        let range = node.hinted(node.count(), node.suffix_of(key).head);
        node.prefetch_slots(range);
        self.range = HintedRange(range.0 as u16, range.1 as u16);
    }
}
