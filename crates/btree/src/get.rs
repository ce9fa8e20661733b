//! Looking up single keys, and many keys together.

use crate::batch::{Found, GetMany};
use crate::group::{Job, LANES};
use crate::guess::Guess;
use crate::node::{Key, Node, Slot};
use crate::shape::{self, Expected, TreeShape};
use crate::tree::{Miss, Seek, TreeHandle};
use nfold_store::{PageRef, Stop, Store};
use nfold_sync::words;
use smallvec::SmallVec;
use std::ops::Range;

impl TreeHandle {
    /// Appends the value of `key` to `out`; false if there is no such key.
    #[inline]
    pub fn get(&self, store: &Store, key: &[u8], out: &mut Vec<u8>) -> Result<bool, Stop> {
        Ok(self.get_entry(store, key, out)?.is_some())
    }

    /// As [`get`](Self::get), with the place where it was found.
    pub fn get_entry(
        &self,
        store: &Store,
        key: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<Guess>, Stop> {
        let shape = &mut TreeShape::default();
        let copy = |node: Node<'_>, slot, out: &mut Vec<u8>| node.append_value(slot, out);
        let found = self.look_up(store, key, shape, out, copy)?;
        Ok(found.map(|(guess, ())| guess))
    }

    /// As [`get`](Self::get), but the value need not begin where `out` ended: gives where it lies. The quickest look at one key, by a
    /// reader that keeps `shape`.
    #[inline]
    pub fn get_span(
        &self,
        store: &Store,
        key: &[u8],
        shape: &mut TreeShape,
        out: &mut Vec<u8>,
    ) -> Result<Option<Range<usize>>, Stop> {
        let found = self.look_up(store, key, shape, out, |node, slot, out| {
            let (at, len) =
                words::append_words(node.words(), slot.value_at(), node.value_len(slot), out);
            at..at + len
        })?;
        Ok(found.map(|(_, span)| span))
    }

    /// Finds `key`, and has `copy` append its value to `out`.
    #[inline(always)]
    fn look_up<T>(
        &self,
        store: &Store,
        key: &[u8],
        shape: &mut TreeShape,
        out: &mut Vec<u8>,
        copy: impl Fn(Node<'_>, Slot, &mut Vec<u8>) -> T,
    ) -> Result<Option<(Guess, T)>, Stop> {
        let start = out.len();
        let found = self.optimistic(store, || {
            let (page, expected) = self.descend_by_shape(store, key, shape)?;
            let node = Node::new(page.words());
            let (at, found) = shape::search(node, node.count(), node.suffix(key), expected);
            let slot = found.then(|| node.slot(at));
            let found = slot.map(|slot| (Guess::new(page.id().page, at), copy(node, slot, out)));
            if !page.validate() {
                out.truncate(start);
                return Err(Miss::Restart);
            }
            shape.leaves.learn(node, expected, slot);
            Ok(found)
        })?;
        if let Some(found) = found {
            return Ok(found);
        }
        let mut mtr = store.mtr();
        let leaf = self.latch_leaf(store, &mut mtr, Seek::At(key))?;
        let node = Node::new(mtr.words(leaf));
        let (at, found) = node.search(node.count(), node.suffix(key));
        Ok(found.then(|| {
            (
                Guess::new(mtr.id(leaf).page, at),
                copy(node, node.slot(at), out),
            )
        }))
    }

    /// One try to reach the leaf that covers `key`; what the search of it will need is asked for.
    #[inline(always)]
    fn descend_by_shape<'s>(
        &self,
        store: &'s Store,
        key: &[u8],
        shape: &mut TreeShape,
    ) -> Result<(PageRef<'s>, Option<Expected>), Miss> {
        let pages = self.pages(store)?;
        let mut page = self.root_of(pages)?;
        let mut expected = None;
        let mut level = Node::new(page.words()).level();
        while level > 0 {
            let node = Node::new(page.words());
            let (count, suffix) = (node.count(), node.suffix(key));
            let (at, equal) = shape::search(node, count, suffix, expected);
            let slot = if equal { at } else { at.saturating_sub(1) };
            // Asked for as soon as its number is known.
            let next = self.read_child(pages, &page, slot, level)?;
            if level == 1 {
                shape.parents.learn(node, expected, Some(node.slot(slot)));
            }
            let (portion, below) = (
                || node.portion(slot, count, suffix),
                Node::new(next.words()),
            );
            expected = match level {
                1 => shape.leaves.prefetch(below, portion()),
                2 => shape.parents.prefetch(below, portion()),
                _ => None,
            };
            if level == 1 && !expected.is_some_and(|e| e.trusted()) {
                below.prefetch_first_slots();
            }
            (page, level) = (next, level - 1);
        }
        Ok((page, expected))
    }

    /// Looks up all keys of the batch, first where they are guessed, the others in groups that go down the tree together. `Ok(true)`: results reached `max_bytes` and
    /// there is more; use what was found, [`clear_found`](GetMany::clear_found), call again. `Wait`: call again; what was found stays
    /// found. A key that is not among the found ones at the end does not exist.
    pub fn get_many(
        &self,
        store: &Store,
        batch: &mut GetMany,
        max_bytes: usize,
    ) -> Result<bool, Stop> {
        if batch.guessed && self.try_guesses(store, batch, max_bytes) {
            return Ok(true);
        }
        self.run_groups(store, &mut GetJob { batch, max_bytes })
    }
}

/// Appends the value at a search's result, if the key was there.
#[inline(always)]
fn copy_value(node: Node<'_>, (slot, found): (usize, bool), out: &mut Vec<u8>) -> Option<usize> {
    if !found {
        return None;
    }
    node.append_value(node.slot(slot), out);
    Some(slot)
}

struct GetJob<'b> {
    batch: &'b mut GetMany,
    max_bytes: usize,
}

impl GetJob<'_> {
    fn keep(&mut self, key: u32, at: usize, guess: Guess) {
        let len = (self.batch.values.len() - at) as u32;
        self.batch.found.push(Found {
            key,
            guess,
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
    fn key(&self, item: u32) -> Key<'_> {
        self.batch.keys.key(item)
    }

    #[inline]
    fn at_leaf(&mut self, item: u32, page: &PageRef<'_>, first: usize) -> bool {
        let node = Node::new(page.words());
        let at = self.batch.values.len();
        let key = self.batch.keys.key(item);
        let hit = node.search_key(first, node.count(), key, node.suffix_of(key));
        let found = copy_value(node, hit, &mut self.batch.values);
        if !page.validate() {
            self.batch.values.truncate(at);
            return false;
        }
        if let Some(slot) = found {
            self.keep(item, at, Guess::new(page.id().page, slot));
        }
        true
    }

    fn alone(&mut self, tree: &TreeHandle, store: &Store, item: u32) -> Result<(), Stop> {
        let at = self.batch.values.len();
        let GetMany { keys, values, .. } = &mut *self.batch;
        if let Some(guess) = tree.get_entry(store, keys.get(item), values)? {
            self.keep(item, at, guess);
        }
        Ok(())
    }

    fn full(&self) -> bool {
        self.batch.values.len() >= self.max_bytes
    }
}
