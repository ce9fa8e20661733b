//! Changes to single leaves: find and latch the leaf, make room for the change, then change it.
//! Splits happen before the change, in mini-transactions of their own.
//!
//! # Concurrency
//! A mini-transaction may latch several leaves of one tree, but it must hold no latch when it calls
//! [`TreeHandle::leaf_for_write`], for two reasons.
//!
//! First, the descent waits for a page whose number no latch protects. By then, the number may
//! belong to any page, of any tree or of the free list. Second, making room takes the tree's
//! structure mutex and latches pages from the top.
//!
//! The orphaned-page list, undo pages and space headers are latched after all tree pages.
//! # Failure
//! Nothing changes until one of the changing functions (`insert_at` ...) is called, and these
//! cannot fail.

use crate::node::{CELL_HEAD, ENTRY_OVERHEAD, Node};
use crate::redo;
use crate::row_hint::RowHint;
use crate::tree::{MAX_ENTRY, MAX_KEY, Seek, TreeHandle};
use nfold_store::{Latched, Mtr, PageNo, Stop, Store, StoreError, TrxId, header};
use nfold_sync::words;

/// The room that a leaf must have before it is returned.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Room {
    /// None: the change keeps all sizes, removes the entry, or may not happen at all.
    Unchanged,
    /// Room to insert the key with a value of this length in bytes, or to replace its value by one
    /// of this length.
    Value(usize),
}

/// A position in a latched leaf. Changes made through it keep it valid. Any other change of the
/// leaf makes it stale.
#[derive(Copy, Clone, Debug)]
pub struct LeafPos {
    pub leaf: Latched,
    /// Whether the key exists.
    pub found: bool,
    /// The key's slot, or the slot where it would be inserted.
    pub slot: usize,
}

/// The most log bytes that one change of one entry needs, not counting key and value.
pub const ENTRY_LOG_OVERHEAD: usize = 64;

impl TreeHandle {
    /// Latches the leaf that covers `key`, makes sure that it has `room`, and finds the key in it.
    /// If the leaf lacks room, it is first split in a separate mini-transaction. `mtr` must hold no
    /// latch.
    ///
    /// Errors: `TooLarge` for keys longer than [`MAX_KEY`] and entries larger than [`MAX_ENTRY`];
    /// `Corrupt` for a damaged leaf. On `Wait`, the latch is not held.
    pub fn leaf_for_write(
        &self,
        store: &Store,
        mtr: &mut Mtr<'_>,
        key: &[u8],
        room: Room,
    ) -> Result<LeafPos, Stop> {
        debug_assert!(mtr.holds_nothing(), "no latch is held before a descent");
        let hinted = self.latch_hinted(store, mtr, key);
        self.leaf_for_write_from(store, mtr, (key, room), hinted)
    }

    /// As [`leaf_for_write`](Self::leaf_for_write). `leaf` is probably the leaf.
    pub fn leaf_for_write_near(
        &self,
        store: &Store,
        mtr: &mut Mtr<'_>,
        (key, room): (&[u8], Room),
        leaf: PageNo,
    ) -> Result<LeafPos, Stop> {
        debug_assert!(mtr.holds_nothing(), "no latch is held before a descent");
        let hinted = self.latch_if_leaf_of(store, mtr, key, leaf);
        self.leaf_for_write_from(store, mtr, (key, room), hinted)
    }

    /// As [`leaf_for_write`](Self::leaf_for_write). `hinted` is the leaf, if it is latched already.
    #[inline(always)]
    fn leaf_for_write_from(
        &self,
        store: &Store,
        mtr: &mut Mtr<'_>,
        (key, room): (&[u8], Room),
        mut hinted: Option<Latched>,
    ) -> Result<LeafPos, Stop> {
        if key.len() > MAX_KEY {
            return Err(StoreError::TooLarge {
                what: "index key",
                limit: MAX_KEY as u64,
            }
            .into());
        }
        if let Room::Value(len) = room
            && key.len() + len > MAX_ENTRY
        {
            return Err(StoreError::TooLarge {
                what: "index entry",
                limit: MAX_ENTRY as u64,
            }
            .into());
        }
        loop {
            let leaf = match hinted.take() {
                Some(leaf) => leaf,
                None => self.latch_leaf_for_write(store, mtr, Seek::At(key))?,
            };
            self.note_leaf(mtr.id(leaf).page);
            let node = Node::new(mtr.words(leaf));
            if let Some(what) = node.bounds_problem() {
                return Err(mtr.corrupt(leaf, what).into());
            }
            let (slot, found) = node.search(node.count(), node.suffix(key));
            if found && !node.holds_cell(node.slot(slot)) {
                return Err(mtr
                    .corrupt(leaf, "a cell lies outside the cell area")
                    .into());
            }
            let pos = LeafPos { leaf, found, slot };
            match room {
                Room::Value(len) if !fits(node, &pos, key, len) => {
                    mtr.unlatch(leaf);
                    // `make_room` finds the leaf by descent. From here on, this loop must do so
                    // too: a damaged fence may have led the hint to another leaf.
                    self.make_room(store, key, len)?;
                }
                Room::Value(len) if !lies_open(node, &pos, key, len) && !node.is_tight() => {
                    let what = "cells and garbage do not fill the cell area";
                    return Err(mtr.corrupt(leaf, what).into());
                }
                _ => return Ok(pos),
            }
        }
    }

    /// Whether the leaf has room to insert `key` with a value of `value_len` bytes, or to replace
    /// the key's value by one of that length. False for a damaged leaf that would have to be
    /// compacted first.
    pub fn has_room(&self, mtr: &Mtr<'_>, pos: &LeafPos, key: &[u8], value_len: usize) -> bool {
        let node = Node::new(mtr.words(pos.leaf));
        key.len() + value_len <= MAX_ENTRY
            && fits(node, pos, key, value_len)
            && (lies_open(node, pos, key, value_len) || node.is_tight())
    }

    /// Finds `key` on the leaf of `pos`. Tries the entry right behind `pos` first, then searches
    /// the leaf. Returns `None` if the leaf does not have the key, or is damaged.
    pub fn find_behind(&self, mtr: &Mtr<'_>, pos: &LeafPos, key: &[u8]) -> Option<LeafPos> {
        let node = Node::new(mtr.words(pos.leaf));
        let mut slot = pos.slot + 1;
        if slot >= node.count() || !node.has_key(node.slot(slot), key) {
            if !node.covers(key) {
                return None;
            }
            let (first, found) = node.search(node.count(), node.suffix(key));
            if !found {
                return None;
            }
            slot = first;
        }
        let leaf = pos.leaf;
        let holds = node.holds_cell(node.slot(slot));
        holds.then_some(LeafPos {
            leaf,
            found: true,
            slot,
        })
    }

    /// The row-location hint for the entry at `pos`.
    pub fn place(&self, mtr: &Mtr<'_>, pos: &LeafPos) -> RowHint {
        RowHint::new(mtr.id(pos.leaf).page, pos.slot)
    }

    /// The newest transaction id on the latched leaf.
    pub fn newest_trx(&self, mtr: &Mtr<'_>, pos: &LeafPos) -> TrxId {
        mtr.u64(pos.leaf, header::NEWEST_TRX)
    }

    /// Appends the value of the entry at `pos`, which must exist.
    pub fn value(&self, mtr: &Mtr<'_>, pos: &LeafPos, out: &mut Vec<u8>) {
        let node = Node::new(mtr.words(pos.leaf));
        node.append_value(node.slot(pos.slot), out);
    }

    /// The length of the value at `pos` in bytes. The entry must exist.
    pub fn value_len(&self, mtr: &Mtr<'_>, pos: &LeafPos) -> usize {
        let node = Node::new(mtr.words(pos.leaf));
        node.value_len(node.slot(pos.slot))
    }

    /// Copies `out.len()` bytes of the value at `pos`, from offset `off` on.
    pub fn value_bytes(&self, mtr: &Mtr<'_>, pos: &LeafPos, off: usize, out: &mut [u8]) {
        let node = Node::new(mtr.words(pos.leaf));
        words::copy_out(node.words(), node.slot(pos.slot).value_at() + off, out);
    }

    /// Appends the key of the entry at `pos`, which must exist.
    pub fn key(&self, mtr: &Mtr<'_>, pos: &LeafPos, out: &mut Vec<u8>) {
        let node = Node::new(mtr.words(pos.leaf));
        node.append_key(node.slot(pos.slot), out);
    }

    /// Finds the first entry above the key of `pos`, whether that key exists or not, and appends
    /// its key to `out`. Returns `None` at the end of the tree.
    ///
    /// If the entry is on a later leaf, that leaf and the empty leaves before it are latched too,
    /// from left to right, and stay latched. So nothing can be inserted between the two entries
    /// until this mini-transaction ends. `Wait` keeps the leaves latched so far.
    pub fn next_entry(
        &self,
        mtr: &mut Mtr<'_>,
        pos: &LeafPos,
        out: &mut Vec<u8>,
    ) -> Result<Option<LeafPos>, Stop> {
        let mut leaf = pos.leaf;
        let mut slot = pos.slot + usize::from(pos.found);
        loop {
            let node = Node::new(mtr.words(leaf));
            if slot < node.count() {
                node.append_key(node.slot(slot), out);
                return Ok(Some(LeafPos {
                    leaf,
                    found: true,
                    slot,
                }));
            }
            let right = node.right();
            if right == 0 {
                return Ok(None);
            }
            let id = self.page_id(right);
            leaf = match mtr.find(id) {
                Some(leaf) => leaf,
                None => mtr.latch(id)?,
            };
            if !self.is_ours(Node::new(mtr.words(leaf)), 0) {
                return Err(self.corrupt(right, "sibling link leads out of the index"));
            }
            slot = 0;
        }
    }

    /// Inserts `key` at `pos`. The key must not exist, and the leaf must have room.
    pub fn insert_at(&self, mtr: &mut Mtr<'_>, pos: &mut LeafPos, key: &[u8], value: &[u8]) {
        let node = Node::new(mtr.words(pos.leaf));
        debug_assert!(
            !pos.found && node.covers(key),
            "node::N1: the leaf covers the new key"
        );
        redo::log_insert(mtr, pos.leaf, pos.slot, node.suffix(key), value);
        pos.found = true;
    }

    /// Replaces the value of the entry at `pos`. The entry must exist, and the leaf must have room.
    pub fn replace_value_at(&self, mtr: &mut Mtr<'_>, pos: &LeafPos, value: &[u8]) {
        debug_assert!(pos.found, "only an existing entry can be replaced");
        redo::log_replace(mtr, pos.leaf, pos.slot, value);
    }

    /// Overwrites bytes inside the value at `pos`.
    pub fn write_value_bytes(&self, mtr: &mut Mtr<'_>, pos: &LeafPos, off: usize, bytes: &[u8]) {
        debug_assert!(
            pos.found && off + bytes.len() <= self.value_len(mtr, pos),
            "the bytes lie inside the value"
        );
        redo::log_value_bytes(mtr, pos.leaf, pos.slot, off, bytes);
    }

    /// Removes the entry at `pos`. Returns true if the leaf is now underfull: then call
    /// [`compact`](Self::compact) with the key after this mini-transaction.
    pub fn remove_at(&self, mtr: &mut Mtr<'_>, pos: &mut LeafPos) -> bool {
        debug_assert!(pos.found, "only an existing entry can be removed");
        redo::log_remove(mtr, pos.leaf, pos.slot);
        pos.found = false;
        crate::merge::is_underfull(Node::new(mtr.words(pos.leaf)))
    }

    /// Sets the leaf's newest transaction id to `id`, unless it is already newer.
    pub fn set_newest_trx(&self, mtr: &mut Mtr<'_>, pos: &LeafPos, id: TrxId) {
        mtr.set_newest_trx(pos.leaf, id);
    }
}

/// Whether the leaf has room for the entry, possibly after compaction.
fn fits(node: Node<'_>, pos: &LeafPos, key: &[u8], value_len: usize) -> bool {
    let suffix = key.len().saturating_sub(node.prefix_len());
    if pos.found {
        // The old value's bytes become free first.
        return node.value_len(node.slot(pos.slot)) + node.free_bytes() >= value_len;
    }
    node.free_bytes() >= ENTRY_OVERHEAD + suffix + value_len
}

/// Whether the room that [`fits`] found lies between slots and cells, so no compaction is needed.
fn lies_open(node: Node<'_>, pos: &LeafPos, key: &[u8], value_len: usize) -> bool {
    let open = node.open_bytes();
    if pos.found {
        let slot = node.slot(pos.slot);
        return value_len <= node.value_len(slot) || open >= CELL_HEAD + slot.key_len() + value_len;
    }
    let suffix = key.len().saturating_sub(node.prefix_len());
    open >= ENTRY_OVERHEAD + suffix + value_len
}
