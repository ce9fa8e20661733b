//! Batched lookups of many keys.

use crate::batch::{FoundKey, GetMany};
use crate::group::{Job, LANES};
use crate::node::{Key, Node};
use crate::row_hint::RowHint;
use crate::seen::ValueSink;
use crate::tree::TreeHandle;
use nfold_store::{PageRef, Stop, Store};
use smallvec::SmallVec;

impl TreeHandle {
    /// Looks up all keys of the batch: first at their row-location hints, then the others in groups
    /// that descend together.
    ///
    /// `Ok(true)`: the results reached `max_bytes` and there is more. Use the found values, call
    /// [`clear_found`](GetMany::clear_found), then call this again. `Wait`: call it again; found
    /// values stay. At the end, a key that was not found does not exist.
    pub fn get_many<T: Copy>(
        &self,
        store: &Store,
        batch: &mut GetMany<T>,
        max_bytes: usize,
    ) -> Result<bool, Stop> {
        self.get_many_into(store, batch, max_bytes, None)
    }

    /// As [`get_many`](Self::get_many), but `sink` consumes the values of the first keys in place.
    /// It stops at the first key that is not at its hint, does not exist, or that the sink refuses.
    /// Consumed keys are not among the found ones, but are counted as [given](GetMany::given). The
    /// sink sees each value once, even if the lookup has to wait.
    pub fn get_many_into<T: Copy>(
        &self,
        store: &Store,
        batch: &mut GetMany<T>,
        max_bytes: usize,
        sink: Option<&mut dyn ValueSink>,
    ) -> Result<bool, Stop> {
        if batch.hint_bits != 0 && self.try_row_hints(store, batch, max_bytes, sink) {
            return Ok(true);
        }
        self.run_groups(store, &mut GetJob { batch, max_bytes })
    }
}

/// Appends the value at a search's result, if the key exists.
#[inline(always)]
fn copy_value(node: Node<'_>, (slot, found): (usize, bool), out: &mut Vec<u8>) -> Option<usize> {
    if !found {
        return None;
    }
    node.append_value(node.slot(slot), out);
    Some(slot)
}

struct GetJob<'b, T> {
    batch: &'b mut GetMany<T>,
    max_bytes: usize,
}

impl<T> GetJob<'_, T> {
    fn keep(&mut self, key: u32, at: usize, row_hint: RowHint) {
        let len = (self.batch.values.len() - at) as u32;
        let found = &mut self.batch.found;
        self.batch.disordered |= found.last().is_some_and(|last| last.key > key);
        found.push(FoundKey {
            key,
            row_hint,
            at: at as u32,
            len,
        });
    }
}

impl<T: Copy> Job for GetJob<'_, T> {
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
        self.batch.key_of(item)
    }

    #[inline]
    fn at_leaf(&mut self, item: u32, page: &PageRef<'_>, first: usize, _: usize) -> bool {
        let node = Node::new(page.words());
        let at = self.batch.values.len();
        let (keys, values, _) = self.batch.parts();
        let key = keys.key(item);
        let hit = node.search_key(first, node.count(), key, node.suffix_of(key));
        let found = copy_value(node, hit, values);
        if !page.validate() {
            self.batch.values.truncate(at);
            return false;
        }
        if let Some(slot) = found {
            self.keep(item, at, RowHint::new(page.id().page, slot));
        }
        true
    }

    fn alone(&mut self, tree: &TreeHandle, store: &Store, item: u32) -> Result<(), Stop> {
        let at = self.batch.values.len();
        let (keys, values, _) = self.batch.parts();
        if let Some(row_hint) = tree.get_entry(store, keys.key(item).bytes(), values)? {
            self.keep(item, at, row_hint);
        }
        Ok(())
    }

    fn full(&self) -> bool {
        self.batch.values.len() >= self.max_bytes
    }
}
