//! Changing single leaves: find and latch the leaf with room for the change, then change it. Structure changes happen before,
//! in mini-transactions of their own.
//!
//! # Concurrency
//! A mini-transaction latches leaves of one tree, and holds no latch at all when it calls [`TreeHandle::leaf_for_write`]: the descent sleeps for a page
//! whose number is not protected by a latch, which may be any page by then, of a tree or of the free list; and making room takes the tree's
//! structure mutex and latches from the top. The limbo page, undo pages and space headers come after all tree pages.
//! # Failure
//! Nothing is changed before a function of the second half (`insert_at` ...) is called, and those cannot fail.

use crate::guess::Guess;
use crate::node::{CELL_HEAD, ENTRY_OVERHEAD, Node};
use crate::redo;
use crate::tree::{MAX_ENTRY, MAX_KEY, Seek, TreeHandle};
use nfold_store::{Latched, Mtr, Stop, Store, StoreError, TrxId, header};
use nfold_sync::words;

/// Room that a leaf must have before it is handed out.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Room {
    /// None: the change keeps all sizes, or removes, or is only being thought about.
    InPlace,
    /// Room to insert the key with a value of so many bytes, or to give the key that value if it exists.
    Value(usize),
}

/// A place in a latched leaf. Changes through it keep it right for the entry it names; other changes of the leaf make it stale.
#[derive(Copy, Clone, Debug)]
pub struct LeafPos {
    pub leaf: Latched,
    /// Whether the key is there.
    pub found: bool,
    /// Its slot, or where it would go.
    pub slot: usize,
}

/// Log bytes that one change of one entry needs at most, besides the bytes of key and value.
pub const ENTRY_LOG_OVERHEAD: usize = 64;

impl TreeHandle {
    /// Latches the leaf where `key` belongs, with `room`, and finds the key in it. When room is lacking the leaf is split first,
    /// in a mini-transaction of its own. `mtr` holds no latch.
    ///
    /// Errors: `TooLarge` for keys above [`MAX_KEY`] and entries above [`MAX_ENTRY`]. On `Wait` the latch is not held.
    pub fn leaf_for_write(
        &self,
        store: &Store,
        mtr: &mut Mtr<'_>,
        key: &[u8],
        room: Room,
    ) -> Result<LeafPos, Stop> {
        debug_assert!(
            mtr.holds_nothing(),
            "the latch order: a descent with a latch held"
        );
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
        let mut hinted = self.latch_hinted(store, mtr, key);
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
                    // From now on by descent, as that is where room is made; fences that are damaged may have led elsewhere.
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

    /// Whether the leaf has room to insert `key` with, or give it, a value of `value_len` bytes. Never of a damaged leaf that would have to be
    /// put in order for it.
    pub fn has_room(&self, mtr: &Mtr<'_>, pos: &LeafPos, key: &[u8], value_len: usize) -> bool {
        let node = Node::new(mtr.words(pos.leaf));
        key.len() + value_len <= MAX_ENTRY
            && fits(node, pos, key, value_len)
            && (lies_open(node, pos, key, value_len) || node.is_tight())
    }

    /// Where the entry at `pos` is, or goes.
    pub fn place(&self, mtr: &Mtr<'_>, pos: &LeafPos) -> Guess {
        Guess::new(mtr.id(pos.leaf).page, pos.slot)
    }

    /// Newest transaction id on the latched leaf.
    pub fn newest_trx(&self, mtr: &Mtr<'_>, pos: &LeafPos) -> TrxId {
        mtr.u64(pos.leaf, header::NEWEST_TRX)
    }

    /// Appends the value of the entry at `pos`, which was found.
    pub fn value(&self, mtr: &Mtr<'_>, pos: &LeafPos, out: &mut Vec<u8>) {
        let node = Node::new(mtr.words(pos.leaf));
        node.append_value(node.slot(pos.slot), out);
    }

    /// Length of the value at `pos`, bytes.
    pub fn value_len(&self, mtr: &Mtr<'_>, pos: &LeafPos) -> usize {
        let node = Node::new(mtr.words(pos.leaf));
        node.value_len(node.slot(pos.slot))
    }

    /// Copies `out.len()` bytes of the value at `pos` from `off` on.
    pub fn value_bytes(&self, mtr: &Mtr<'_>, pos: &LeafPos, off: usize, out: &mut [u8]) {
        let node = Node::new(mtr.words(pos.leaf));
        words::copy_out(node.words(), node.slot(pos.slot).value_at() + off, out);
    }

    /// Appends the key of the entry at `pos`, which was found.
    pub fn key(&self, mtr: &Mtr<'_>, pos: &LeafPos, out: &mut Vec<u8>) {
        let node = Node::new(mtr.words(pos.leaf));
        node.append_key(node.slot(pos.slot), out);
    }

    /// Finds the first entry above the key of `pos` (which exists or would go there) and appends its key to `out`; `None` at the
    /// tree's end. When it is on a later leaf, that leaf (and every empty one between) is latched too, left to right, and stays so:
    /// until this mini-transaction ends nobody inserts between the two. `Wait` leaves the leaves latched so far latched.
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

    /// Inserts `key` at `pos`, which was not found and has room.
    pub fn insert_at(&self, mtr: &mut Mtr<'_>, pos: &mut LeafPos, key: &[u8], value: &[u8]) {
        let node = Node::new(mtr.words(pos.leaf));
        debug_assert!(
            !pos.found && node.covers(key),
            "node::N1: an entry is inserted where it belongs"
        );
        redo::log_insert(mtr, pos.leaf, pos.slot, node.suffix(key), value);
        pos.found = true;
    }

    /// Gives the entry at `pos` another value, for which there is room.
    pub fn replace_value_at(&self, mtr: &mut Mtr<'_>, pos: &LeafPos, value: &[u8]) {
        debug_assert!(pos.found, "an entry is replaced that is there");
        redo::log_replace(mtr, pos.leaf, pos.slot, value);
    }

    /// Overwrites bytes inside the value at `pos`.
    pub fn write_value_bytes(&self, mtr: &mut Mtr<'_>, pos: &LeafPos, off: usize, bytes: &[u8]) {
        debug_assert!(
            pos.found && off + bytes.len() <= self.value_len(mtr, pos),
            "bytes are written inside a value"
        );
        redo::log_value_bytes(mtr, pos.leaf, pos.slot, off, bytes);
    }

    /// Removes the entry at `pos`. True: the leaf is now so empty that [`compact`](Self::compact) is worth calling with its key, after this
    /// mini-transaction.
    pub fn remove_at(&self, mtr: &mut Mtr<'_>, pos: &mut LeafPos) -> bool {
        debug_assert!(pos.found, "an entry is removed that is there");
        redo::log_remove(mtr, pos.leaf, pos.slot);
        pos.found = false;
        crate::merge::is_underfull(Node::new(mtr.words(pos.leaf)))
    }

    /// Raises the leaf's newest transaction id.
    pub fn set_newest_trx(&self, mtr: &mut Mtr<'_>, pos: &LeafPos, id: TrxId) {
        mtr.set_newest_trx(pos.leaf, id);
    }
}

fn fits(node: Node<'_>, pos: &LeafPos, key: &[u8], value_len: usize) -> bool {
    let suffix = key.len().saturating_sub(node.prefix_len());
    if pos.found {
        // The old cell is freed first.
        return node.value_len(node.slot(pos.slot)) + node.free_bytes() >= value_len;
    }
    node.free_bytes() >= ENTRY_OVERHEAD + suffix + value_len
}

/// Whether the bytes that [`fits`] found are between slots and cells, so that no cell has to move.
fn lies_open(node: Node<'_>, pos: &LeafPos, key: &[u8], value_len: usize) -> bool {
    let open = node.open_bytes();
    if pos.found {
        let slot = node.slot(pos.slot);
        return value_len <= node.value_len(slot) || open >= CELL_HEAD + slot.key_len() + value_len;
    }
    let suffix = key.len().saturating_sub(node.prefix_len());
    open >= ENTRY_OVERHEAD + suffix + value_len
}
