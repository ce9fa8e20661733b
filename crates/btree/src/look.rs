//! Point lookups: straight down the tree, and from the leaf into the caller's memory.
//!
//! # Cost
//! A search compares the key's first bytes in registers ([`Probe`]), and fetches full keys only for
//! the few comparisons that these do not decide. The cache lines of a page are prefetched together
//! ([`shape`](crate::shape)), and an unchanged root is not read ([`root`](crate::root)).

use crate::node::{Key, Node, Probe, Slot};
use crate::row_hint::RowHint;
use crate::shape::{Expected, TreeShape};
use crate::tree::{Miss, Seek, TreeHandle};
use nfold_store::{PageRef, Stop, Store};
use nfold_sync::words;
use std::ops::Range;

impl TreeHandle {
    /// Appends the value of `key` to `out`; false if there is no such key.
    #[inline]
    pub fn get(&self, store: &Store, key: &[u8], out: &mut Vec<u8>) -> Result<bool, Stop> {
        Ok(self.get_entry(store, key, out)?.is_some())
    }

    /// As [`get`](Self::get), and returns the entry's location as a hint.
    pub fn get_entry(
        &self,
        store: &Store,
        key: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<RowHint>, Stop> {
        let shape = &mut TreeShape::default();
        let copy = |node: Node<'_>, slot, out: &mut Vec<u8>| node.append_value(slot, out);
        let found = self.look_up(store, key, shape, out, || (), copy)?;
        Ok(found.map(|(row_hint, ())| row_hint))
    }

    /// As [`get`](Self::get), but the value need not begin where `out` ended: returns its range.
    /// This is the fastest lookup of one key, for a reader that keeps `shape`. It calls `meanwhile`
    /// while the leaf comes from memory, before it reads any of it, and again if the lookup
    /// restarts.
    #[inline]
    pub fn get_span(
        &self,
        store: &Store,
        key: &[u8],
        shape: &mut TreeShape,
        out: &mut Vec<u8>,
        meanwhile: impl FnMut(),
    ) -> Result<Option<Range<usize>>, Stop> {
        let found = self.look_up(store, key, shape, out, meanwhile, |node, slot, out| {
            let (at, len) =
                words::append_words(node.words(), slot.value_at(), node.value_len(slot), out);
            at..at + len
        })?;
        Ok(found.map(|(_, span)| span))
    }

    /// Finds `key`, and calls `copy` to append its value to `out`.
    #[inline(always)]
    fn look_up<T>(
        &self,
        store: &Store,
        key: &[u8],
        shape: &mut TreeShape,
        out: &mut Vec<u8>,
        mut meanwhile: impl FnMut(),
        copy: impl Fn(Node<'_>, Slot, &mut Vec<u8>) -> T,
    ) -> Result<Option<(RowHint, T)>, Stop> {
        let start = out.len();
        let whole = Key::from(key);
        let found = self.optimistic(store, || {
            let (page, expected) = self.descend_by_shape(store, whole, shape)?;
            meanwhile();
            let node = Node::new(page.words());
            let (count, probe) = (node.count(), node.probe(whole));
            let (at, found) = search(node, count, &probe, expected);
            let slot = found.then(|| node.slot(at));
            let found = slot.map(|slot| (RowHint::new(page.id().page, at), copy(node, slot, out)));
            if !page.validate() {
                out.truncate(start);
                return Err(Miss::Restart);
            }
            shape.leaves.learn(node, expected, slot);
            Ok(found)
        })?;
        match found {
            Some(found) => Ok(found),
            None => {
                meanwhile();
                self.look_up_latched(store, key, out, copy)
            }
        }
    }

    /// [`look_up`](Self::look_up) under the latch, after every optimistic attempt met a change.
    #[cold]
    fn look_up_latched<T>(
        &self,
        store: &Store,
        key: &[u8],
        out: &mut Vec<u8>,
        copy: impl Fn(Node<'_>, Slot, &mut Vec<u8>) -> T,
    ) -> Result<Option<(RowHint, T)>, Stop> {
        let mut mtr = store.mtr();
        let leaf = self.latch_leaf(store, &mut mtr, Seek::At(key))?;
        let node = Node::new(mtr.words(leaf));
        let (at, found) = node.search(node.count(), node.suffix(key));
        Ok(found.then(|| {
            (
                RowHint::new(mtr.id(leaf).page, at),
                copy(node, node.slot(at), out),
            )
        }))
    }

    /// Makes one attempt to reach the leaf that covers `key`, and prefetches the lines that its
    /// search will need.
    #[inline(always)]
    fn descend_by_shape<'s>(
        &self,
        store: &'s Store,
        key: Key<'_>,
        shape: &mut TreeShape,
    ) -> Result<(PageRef<'s>, Option<Expected>), Miss> {
        let pages = self.pages(store)?;
        let mut page = pages.read(self.tree.root)?;
        let (mut level, mut expected) = (0, None);
        let way = shape.root.way(self.id, &page, key.word);
        let mut ahead = None;
        if let Some(way) = &way {
            page = self.enter_child_unseen(pages, &page, way.child)?;
            let below = Node::new(page.words());
            expected = match way.slot_below() {
                Some(slot) => Some(shape.parents.prefetch_slot(below, slot)),
                None => shape.prefetch_child(below, way.level, way.portion),
            };
            ahead = shape.root.ahead(pages, way, &shape.leaves);
            level = way.level - 1;
            self.check_child(&page, level)?;
        } else {
            let node = self.root_node(&page)?;
            if node.level() > 0 {
                level = node.level();
                shape.root.look(self.id, &page, node, node.count());
            }
        }
        while level > 0 {
            let node = Node::new(page.words());
            let (count, probe) = (node.count(), node.probe(key));
            let (at, equal) = search(node, count, &probe, expected);
            let slot = if equal { at } else { at.saturating_sub(1) };
            // The child is prefetched as soon as its number is known.
            let child = node.child(node.slot(slot));
            let next = self.enter_child(pages, &page, child, level)?;
            let mut known = None;
            if level == 1 {
                shape.parents.learn(node, expected, Some(node.slot(slot)));
                if let Some(way) = way.as_ref().filter(|way| way.level == 2) {
                    let at = (slot, child);
                    known = shape.root.learn(way, ahead.take(), (node, key.word), at);
                }
            }
            expected = match known {
                Some(known) => Some(known),
                None => {
                    let portion = match level {
                        1 | 2 => node.portion_of(slot, count, &probe),
                        _ => None,
                    };
                    shape.prefetch_child(Node::new(next.words()), level, portion)
                }
            };
            (page, level) = (next, level - 1);
        }
        Ok((page, expected))
    }
}

/// The first slot whose key is ≥ the probe's, and whether it is equal. Searches around the
/// predicted slot first.
#[inline(always)]
fn search(
    node: Node<'_>,
    count: usize,
    probe: &Probe<'_>,
    expected: Option<Expected>,
) -> (usize, bool) {
    let expected = expected.and_then(|e| e.trusted().then_some(e.slot()));
    let near = expected.and_then(|slot| node.near(slot, count, probe.head));
    let first = match near {
        Some(first) => first,
        None => {
            // All key prefixes may be equal on the first and the last page of a level, which have
            // no common prefix.
            if let Some(found) = expected.and_then(|slot| node.between(slot, count, probe)) {
                return found;
            }
            node.search_head_slowly(count, probe.head)
        }
    };
    node.search_behind(first, count, probe)
}
