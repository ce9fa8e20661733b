//! Looking up single keys, and many keys together.

use crate::batch::{Found, GetMany};
use crate::group::{Job, LANES, Outcome};
use crate::node::Node;
use crate::tree::{Miss, Seek, TreeHandle};
use nfold_store::{PageNo, PageRef, Stop, Store, TrxId};
use smallvec::SmallVec;

impl TreeHandle {
    /// Appends the value of `key` to `out`; false if there is no such key.
    #[inline]
    pub fn get(&self, store: &Store, key: &[u8], out: &mut Vec<u8>) -> Result<bool, Stop> {
        Ok(self.get_entry(store, key, out)?.is_some())
    }

    /// As [`get`](Self::get), with the leaf's page number and newest transaction id.
    pub fn get_entry(
        &self,
        store: &Store,
        key: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<(PageNo, TrxId)>, Stop> {
        let start = out.len();
        let found = self.optimistic(store, || {
            let page = self.try_descend(store, Seek::At(key), 0, |_, _, _| ())?;
            let node = Node::new(page.words());
            let found = copy_value(node, node.search(node.count(), node.suffix(key)), out);
            if !page.validate() {
                out.truncate(start);
                return Err(Miss::Restart);
            }
            Ok(found.map(|newest| (page.id().page, newest)))
        })?;
        if let Some(found) = found {
            return Ok(found);
        }
        let mut mtr = store.mtr();
        let leaf = self.latch_leaf(store, &mut mtr, Seek::At(key))?;
        let node = Node::new(mtr.words(leaf));
        let found = copy_value(node, node.search(node.count(), node.suffix(key)), out);
        Ok(found.map(|newest| (mtr.id(leaf).page, newest)))
    }

    /// Looks up all keys of the batch, in groups that go down the tree together. `Ok(true)`: results reached `max_bytes` and
    /// there is more; use what was found, [`clear_found`](GetMany::clear_found), call again. `Wait`: call again; what was found stays
    /// found. A key that is not among the found ones at the end does not exist.
    pub fn get_many(
        &self,
        store: &Store,
        batch: &mut GetMany,
        max_bytes: usize,
    ) -> Result<bool, Stop> {
        self.run_groups(store, &mut GetJob { batch, max_bytes })
    }
}

/// Appends the value at a search's result; gives the page's newest transaction id if the key was there.
#[inline(always)]
fn copy_value(node: Node<'_>, (slot, found): (usize, bool), out: &mut Vec<u8>) -> Option<TrxId> {
    if !found {
        return None;
    }
    node.append_value(node.slot(slot), out);
    Some(node.newest_trx())
}

struct GetJob<'b> {
    batch: &'b mut GetMany,
    max_bytes: usize,
}

impl GetJob<'_> {
    fn keep(&mut self, item: u32, at: usize, page: PageNo, newest_trx: TrxId) {
        let len = (self.batch.values.len() - at) as u32;
        self.batch.found.push(Found {
            key: item,
            page,
            newest_trx,
            at: at as u32,
            len,
        });
    }
}

impl Job for GetJob<'_> {
    type Item = u32;

    fn take(&mut self, items: &mut SmallVec<[u32; LANES]>) {
        while items.len() < LANES {
            if let Some(item) = self.batch.pending.pop() {
                items.push(item);
            } else if (self.batch.next as usize) < self.batch.len() {
                items.push(self.batch.next);
                self.batch.next += 1;
            } else {
                return;
            }
        }
    }

    fn put_back(&mut self, item: u32) {
        self.batch.pending.push(item);
    }

    #[inline(always)]
    fn key(&self, item: u32) -> &[u8] {
        self.batch.keys.get(item)
    }

    #[inline(always)]
    fn guess(&self, item: u32) -> PageNo {
        self.batch.guesses[item as usize]
    }

    fn count_guess(&mut self, hit: bool) {
        if hit {
            self.batch.guess_hits += 1;
        } else {
            self.batch.guess_misses += 1;
        }
    }

    #[inline]
    fn at_leaf(&mut self, item: u32, page: &PageRef<'_>, first: usize, guessed: bool) -> Outcome {
        let node = Node::new(page.words());
        let at = self.batch.values.len();
        let key = self.batch.keys.get(item);
        let hit = node.search_from(first, node.count(), node.suffix(key));
        let found = copy_value(node, hit, &mut self.batch.values);
        // A key that is found is found, wherever the guess came from: it is in the tree once. That one is not there means nothing on
        // another page.
        let elsewhere = guessed && found.is_none() && !node.covers(key);
        if !page.validate() {
            self.batch.values.truncate(at);
            return Outcome::Changed;
        }
        if elsewhere {
            return Outcome::Elsewhere;
        }
        if let Some(newest) = found {
            self.keep(item, at, page.id().page, newest);
        }
        Outcome::Done
    }

    fn alone(&mut self, tree: &TreeHandle, store: &Store, item: u32) -> Result<(), Stop> {
        let at = self.batch.values.len();
        let GetMany { keys, values, .. } = &mut *self.batch;
        if let Some((page, newest)) = tree.get_entry(store, keys.get(item), values)? {
            self.keep(item, at, page, newest);
        }
        Ok(())
    }

    fn full(&self) -> bool {
        self.batch.values.len() >= self.max_bytes
    }
}
