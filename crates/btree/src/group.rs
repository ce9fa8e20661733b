//! Staged descent: many keys go down the tree together, level by level, so that their cache misses and their page loads overlap
//! instead of following one another. `get_many` and `scan_points` are jobs of this driver.
//!
//! # Picture
//! ```text
//! per group of LANES keys:
//!   root:   read hints, prefetch slots │
//!   level:  search slots, prefetch the child's word │ load it │ prefetch child │ validate parent, read hints, prefetch slots │ ... next level
//!   leaf:   search slots │ prefetch cells │ compare, copy, validate
//! ```
//! Each `│` separates loops over the whole group; prefetches of pages stand close together (see [`crate::guess`]). A key that meets a change drops out and is done alone; a key that meets a
//! missing page is put back, and the missing pages of several groups are requested together.
//! # Cost
//! No allocation; lanes live on the stack.

use crate::node::{Node, head_of};
use crate::tree::{Miss, TreeHandle, count_restart};
use nfold_store::{PageId, PageRef, SpacePages, Stop, Store};
use smallvec::SmallVec;

/// Keys in flight together.
pub(crate) const LANES: usize = 16;
/// Missing pages that are kept without an allocation. [`Store::load_batch`] says after how many a call waits: the pool must be able to hold
/// them until the next try.
const MAX_MISSING: usize = 32;
/// Bytes of a cell that are prefetched before its length is known.
const CELL_PREFETCH: usize = 256;

/// What is looked for, and what happens at the leaves.
pub(crate) trait Job {
    /// One key in flight.
    type Item: Copy;
    /// Adds items to be done, up to [`LANES`]; leaves `items` empty when there are none.
    fn take(&mut self, items: &mut SmallVec<[Self::Item; LANES]>);
    /// The item was not done: it will be taken again.
    fn put_back(&mut self, item: Self::Item);
    /// The key that leads to the item's leaf.
    fn key(&self, item: Self::Item) -> &[u8];
    /// Prefetches what [`at_leaf`](Self::at_leaf) will look at.
    fn prefetch(&self, node: Node<'_>, _: Self::Item, first: usize) {
        let cell = node.slot(first).cell();
        for line in (0..CELL_PREFETCH).step_by(64) {
            node.prefetch(cell + line);
        }
    }
    /// At the leaf; `first` is the first slot whose head is not below the key's. False: the page changed meanwhile, and nothing was kept.
    fn at_leaf(&mut self, item: Self::Item, page: &PageRef<'_>, first: usize) -> bool;
    /// Does one item without company, however many restarts that takes.
    fn alone(&mut self, tree: &TreeHandle, store: &Store, item: Self::Item) -> Result<(), Stop>;
    /// Whether the caller should take results first.
    fn full(&self) -> bool;
}

#[derive(Copy, Clone)]
struct Lane<'s, I> {
    page: PageRef<'s>,
    item: I,
    /// Child page number, or at the leaf the slot that the head search found.
    next: u32,
    /// Slots to be searched, as the hints say.
    range: (u16, u16),
}

/// Items of one group by what became of them.
struct Lanes<'s, I> {
    live: SmallVec<[Lane<'s, I>; LANES]>,
    restart: SmallVec<[I; LANES]>,
    missing: SmallVec<[(I, PageId); LANES]>,
}

impl TreeHandle {
    /// Runs a job to its end. `Ok(true)`: the job is full and has more to do, and none of that was found missing: what waits for a page is
    /// waited for first, or it might never come.
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

    /// One group. After an error all its unfinished items were put back.
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
                // None of them has reached the caller's results yet.
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

    /// Takes items from the root down to their leaves.
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
        for item in items {
            lanes.push(root, *item, job.key(*item));
        }
        for below in (0..Node::new(root.words()).level()).rev() {
            self.choose_children(pages, job, lanes);
            self.prefetch_children(store, pages, lanes);
            self.enter_children(store, pages, job, lanes, below)?;
        }
        Ok(())
    }

    /// Finds each lane's child, and prefetches what tells where that is.
    fn choose_children<J: Job>(
        &self,
        pages: SpacePages<'_>,
        job: &J,
        lanes: &mut Lanes<'_, J::Item>,
    ) {
        let mut kept = 0;
        for i in 0..lanes.live.len() {
            let lane = &mut lanes.live[i];
            let node = Node::new(lane.page.words());
            let suffix = node.suffix(job.key(lane.item));
            let first = node.search_hinted(lane.range(), head_of(suffix));
            let (at, equal) = node.search_from(first, node.count(), suffix);
            let slot = if equal { at } else { at.saturating_sub(1) };
            lane.next = node.child(node.slot(slot));
            if !lane.page.validate() {
                lanes.restart.push(lane.item);
                continue;
            }
            pages.prefetch_word(lane.next);
            if kept != i {
                lanes.live[kept] = lanes.live[i];
            }
            kept += 1;
        }
        lanes.live.truncate(kept);
    }

    /// Prefetches each lane's child; those that are missing are asked for together.
    fn prefetch_children<I>(&self, store: &Store, pages: SpacePages<'_>, lanes: &Lanes<'_, I>) {
        let mut missing: SmallVec<[PageId; LANES]> = SmallVec::new();
        let mut children: SmallVec<[Node<'_>; LANES]> = SmallVec::new();
        for lane in &lanes.live {
            match pages.resident(lane.next) {
                Some(words) => children.push(Node::new(words)),
                None => missing.push(self.page_id(lane.next)),
            }
        }
        for child in children {
            child.prefetch(0);
            child.prefetch(64);
            child.prefetch(128);
        }
        if !missing.is_empty() {
            store.start_loads(&missing);
        }
    }

    /// Loads each child's word, validates the parent, and prefetches the slots that count.
    fn enter_children<'s, J: Job>(
        &self,
        store: &'s Store,
        pages: SpacePages<'s>,
        job: &J,
        lanes: &mut Lanes<'s, J::Item>,
        level: u16,
    ) -> Result<(), Stop> {
        let mut kept = 0;
        for i in 0..lanes.live.len() {
            let lane = &mut lanes.live[i];
            let child = self.page_id(lane.next);
            let read = match pages.peek(lane.next) {
                Some(page) => {
                    pages.touch(&page);
                    Ok(page)
                }
                None => store.read(child),
            };
            if !lane.page.validate() {
                lanes.restart.push(lane.item);
                continue;
            }
            match read {
                Ok(page) => lane.page = page,
                Err(Stop::Wait(_)) => {
                    lanes.missing.push((lane.item, child));
                    continue;
                }
                Err(stop) => return Err(stop),
            }
            let node = Node::new(lane.page.words());
            if !self.is_ours(node, level) {
                if lane.page.validate() {
                    return Err(self.corrupt(lane.next, "not the child that its parent names"));
                }
                lanes.restart.push(lane.item);
                continue;
            }
            lane.enter(job.key(lane.item));
            if kept != i {
                lanes.live[kept] = lanes.live[i];
            }
            kept += 1;
        }
        lanes.live.truncate(kept);
        Ok(())
    }

    /// Finishes the lanes, which are at their leaves.
    fn at_leaves<J: Job>(&self, job: &mut J, lanes: &mut Lanes<'_, J::Item>) {
        for lane in &mut lanes.live {
            let node = Node::new(lane.page.words());
            let suffix = node.suffix(job.key(lane.item));
            let first = node.search_hinted(lane.range(), head_of(suffix));
            lane.next = first as u32;
        }
        for lane in &lanes.live {
            let node = Node::new(lane.page.words());
            job.prefetch(node, lane.item, lane.next as usize);
        }
        for lane in &lanes.live {
            if !job.at_leaf(lane.item, &lane.page, lane.next as usize) {
                lanes.restart.push(lane.item);
            }
        }
    }
}

impl<'s, I: Copy> Lanes<'s, I> {
    fn push(&mut self, page: PageRef<'s>, item: I, key: &[u8]) {
        let mut lane = Lane {
            page,
            item,
            next: 0,
            range: (0, 0),
        };
        lane.enter(key);
        self.live.push(lane);
    }
}

impl<I> Lane<'_, I> {
    /// Reads the hints of the page just entered and prefetches the slots that they lead to.
    #[inline(always)]
    fn enter(&mut self, key: &[u8]) {
        let node = Node::new(self.page.words());
        let (from, to) = node.hinted(node.count(), head_of(node.suffix(key)));
        node.prefetch_slots((from, to));
        self.range = (from as u16, to as u16);
    }

    #[inline(always)]
    fn range(&self) -> (usize, usize) {
        (self.range.0 as usize, self.range.1 as usize)
    }
}
