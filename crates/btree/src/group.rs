//! Staged descent: many keys go down the tree together, level by level, so that their cache misses and their page loads overlap
//! instead of following one another. `get_many` and `scan_points` are jobs of this driver.
//!
//! # Picture
//! ```text
//! per group of LANES keys    guesses:  prefetch page │ read, fetch slots and fences ┐
//!   root ─► search, prefetch child │ load child word, validate parent, fetch slots ─┴► ... leaf: search heads, prefetch cells │ copy, validate
//! ```
//! Each `│` separates loops over the whole group. A key that meets a change drops out and is done alone; a key that meets a
//! missing page is put back, and the missing pages of several groups are requested together.
//! # Cost
//! No allocation; lanes live on the stack.

use crate::node::{Node, head_of};
use crate::tree::{Miss, TreeHandle};
use nfold_store::{PAGE_SIZE, PageId, PageNo, PageRef, Stop, Store};
use nfold_sync::words;
use smallvec::SmallVec;

/// Keys in flight together.
pub(crate) const LANES: usize = 16;
/// Missing pages after which a call waits: a small pool must be able to hold them until the next try.
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
    /// Where the leaf may be; 0: unknown.
    fn guess(&self, _: Self::Item) -> PageNo {
        0
    }
    fn count_guess(&mut self, _hit: bool) {}
    /// At the leaf; `first` is the first slot whose head is not below the key's. False: the page changed; nothing was kept.
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
    /// Child page number, later the slot that the head search found.
    next: u32,
}

/// Items of one group by what became of them.
struct Lanes<'s, I> {
    live: SmallVec<[Lane<'s, I>; LANES]>,
    restart: SmallVec<[I; LANES]>,
    missing: SmallVec<[(I, PageId); LANES]>,
}

impl TreeHandle {
    /// Runs a job to its end. `Ok(true)`: the job is full and has more to do.
    pub(crate) fn run_groups<J: Job>(&self, store: &Store, job: &mut J) -> Result<bool, Stop> {
        let mut stalled: SmallVec<[J::Item; MAX_MISSING]> = SmallVec::new();
        let mut pages: SmallVec<[PageId; MAX_MISSING]> = SmallVec::new();
        let result = loop {
            let mut items = SmallVec::new();
            if pages.len() < MAX_MISSING {
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
        let rest = self.start_guesses(store, job, items, &mut lanes);
        let guessed = lanes.live.len();
        if let Err(stop) = self
            .start_at_root(store, job, &rest, &mut lanes)
            .and_then(|()| self.descend(store, job, guessed, &mut lanes))
        {
            // Nothing has reached the caller's results yet.
            items.iter().for_each(|i| job.put_back(*i));
            return Err(stop);
        }
        self.at_leaves(job, &mut lanes);
        for (item, page) in lanes.missing {
            stalled.push(item);
            if !pages.contains(&page) {
                pages.push(page);
            }
        }
        let mut failed = Ok(());
        for item in lanes.restart {
            self.count_restart();
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

    /// Puts items with a useful guess into lanes at that page; returns the others.
    fn start_guesses<'s, J: Job>(
        &self,
        store: &'s Store,
        job: &mut J,
        items: &[J::Item],
        lanes: &mut Lanes<'s, J::Item>,
    ) -> SmallVec<[J::Item; LANES]> {
        for item in items {
            let guess = job.guess(*item);
            if guess != 0 {
                store.prefetch(self.page_id(guess));
            }
        }
        let mut rest = SmallVec::new();
        for item in items {
            let guess = job.guess(*item);
            if guess == 0 {
                rest.push(*item);
                continue;
            }
            match store.read(self.page_id(guess)) {
                Ok(page) => {
                    let node = Node::new(page.words());
                    words::prefetch(node.words(), PAGE_SIZE - 1);
                    node.prefetch_slots(node.count());
                    lanes.live.push(Lane {
                        page,
                        item: *item,
                        next: 0,
                    });
                }
                Err(Stop::Wait(_)) => lanes.missing.push((*item, self.page_id(guess))),
                Err(Stop::Error(_)) => rest.push(*item),
            }
        }
        let mut kept = 0;
        for i in 0..lanes.live.len() {
            let lane = lanes.live[i];
            let node = Node::new(lane.page.words());
            let right =
                self.is_ours(node, 0) && node.covers(job.key(lane.item)) && lane.page.validate();
            job.count_guess(right);
            if right {
                lanes.live[kept] = lane;
                kept += 1;
            } else {
                rest.push(lane.item);
            }
        }
        lanes.live.truncate(kept);
        rest
    }

    fn start_at_root<'s, J: Job>(
        &self,
        store: &'s Store,
        _: &J,
        items: &[J::Item],
        lanes: &mut Lanes<'s, J::Item>,
    ) -> Result<(), Stop> {
        if items.is_empty() {
            return Ok(());
        }
        match self.read_root(store) {
            Ok(page) => {
                lanes.live.extend(items.iter().map(|item| Lane {
                    page,
                    item: *item,
                    next: 0,
                }));
                Ok(())
            }
            Err(Miss::Restart) => {
                lanes.restart.extend(items.iter().copied());
                Ok(())
            }
            Err(Miss::Stop(stop)) => Err(stop),
        }
    }

    /// Takes the lanes from `from` on, which are at the root, down to their leaves.
    fn descend<'s, J: Job>(
        &self,
        store: &'s Store,
        job: &J,
        from: usize,
        lanes: &mut Lanes<'s, J::Item>,
    ) -> Result<(), Stop> {
        let Some(first) = lanes.live.get(from) else {
            return Ok(());
        };
        for below in (0..Node::new(first.page.words()).level()).rev() {
            let mut kept = from;
            for i in from..lanes.live.len() {
                let mut lane = lanes.live[i];
                let node = Node::new(lane.page.words());
                let slot = node.child_slot(node.count(), node.suffix(job.key(lane.item)));
                lane.next = node.child(node.slot(slot));
                if !lane.page.validate() {
                    lanes.restart.push(lane.item);
                    continue;
                }
                store.prefetch(self.page_id(lane.next));
                lanes.live[kept] = lane;
                kept += 1;
            }
            lanes.live.truncate(kept);
            kept = from;
            for i in from..lanes.live.len() {
                let mut lane = lanes.live[i];
                let child = self.page_id(lane.next);
                let read = store.read(child);
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
                if !self.is_ours(node, below) {
                    if lane.page.validate() {
                        return Err(self.corrupt(lane.next, "not the child that its parent names"));
                    }
                    lanes.restart.push(lane.item);
                    continue;
                }
                if below == 0 {
                    node.prefetch_slots(node.count());
                }
                lanes.live[kept] = lane;
                kept += 1;
            }
            lanes.live.truncate(kept);
        }
        Ok(())
    }

    fn at_leaves<J: Job>(&self, job: &mut J, lanes: &mut Lanes<'_, J::Item>) {
        for lane in &mut lanes.live {
            let node = Node::new(lane.page.words());
            let suffix = node.suffix(job.key(lane.item));
            let first = node.search_head(node.count(), head_of(suffix));
            lane.next = first as u32;
            let cell = node.slot(first).cell();
            for line in (0..CELL_PREFETCH).step_by(64) {
                words::prefetch(node.words(), cell + line);
            }
        }
        for lane in &lanes.live {
            if !job.at_leaf(lane.item, &lane.page, lane.next as usize) {
                lanes.restart.push(lane.item);
            }
        }
    }
}
