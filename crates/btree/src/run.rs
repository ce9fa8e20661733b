//! Runs: entries with adjacent keys that one mini-transaction inserts into one leaf.
//!
//! # Picture
//! ```text
//!  entries in ascending order         a b c d e        before the mini-transaction:
//!  leaf with free bytes for three     ... 9 | k ...    run_len = 3, for a, b, c
//!                                     ... 9 a b c k    after INSERT_RUN
//! ```
//! All entries of a run lie in one gap between existing keys, so their insert intentions are one. A
//! mini-transaction may insert several runs into one leaf, from the last one to the first: then the
//! positions that were found before the first change stay right.

use nfold_store::Mtr;

use crate::node::edit::push_cell_pieces;
use crate::node::{ENTRY_OVERHEAD, Node};
use crate::redo;
use crate::tree::{MAX_ENTRY, TreeHandle};
use crate::write::LeafPos;

/// What the earlier runs of a mini-transaction, and the entries of this one, take of a leaf.
#[derive(Clone, Copy, Default)]
pub struct LeafUse {
    /// The number of entries.
    pub entries: usize,
    /// The bytes of their cells and slots.
    pub bytes: usize,
}

/// The entries of a run, for [`TreeHandle::insert_run`].
#[derive(Default)]
pub struct EntryRun {
    cells: Vec<u8>,
    /// The length of the leaf's common prefix, which cells do not contain.
    prefix: usize,
}

impl EntryRun {
    /// Adds an entry, whose value is in two pieces.
    pub fn push(&mut self, key: &[u8], value: [&[u8]; 2]) {
        let suffix = key.get(self.prefix..).unwrap_or(&[]);
        push_cell_pieces(&mut self.cells, suffix, value);
    }
}

impl TreeHandle {
    /// How many of `entries`, which are keys and lengths of values, can be inserted at `pos`
    /// together, from the first on, and adds them to `used`: their keys ascend, lie below `next`,
    /// which is the key behind `pos`, and the leaf covers them and has room for all without
    /// compaction. If `used` is empty, the leaf has room for the first entry, whose key `pos` was
    /// found with.
    pub fn run_len<'k>(
        &self,
        mtr: &Mtr<'_>,
        pos: &LeafPos,
        next: Option<&[u8]>,
        entries: impl Iterator<Item = (&'k [u8], usize)>,
        used: &mut LeafUse,
    ) -> usize {
        let node = Node::new(mtr.words(pos.leaf));
        let room = node.open_bytes();
        let (mut count, mut last) = (0, &[][..]);
        for (key, value_len) in entries {
            let suffix = key.len().saturating_sub(node.prefix_len());
            let bytes = used.bytes + ENTRY_OVERHEAD + suffix + value_len;
            // `pos` was found with the first key.
            let follows = || key > last && next.is_none_or(|next| key < next) && node.covers(key);
            let fits = bytes <= room && key.len() + value_len <= MAX_ENTRY;
            let is_first = count == 0;
            if !(is_first || follows()) || !fits && used.entries > 0 {
                break;
            }
            (count, last) = (count + 1, key);
            (used.entries, used.bytes) = (used.entries + 1, bytes);
        }
        count
    }

    /// The position of `key`, which is above that of `pos`, on the same leaf, if the leaf covers it
    /// and has an entry behind it but not the key itself. Appends the key of the entry behind it to
    /// `next`.
    pub fn gap_behind(
        &self,
        mtr: &Mtr<'_>,
        pos: &LeafPos,
        key: &[u8],
        next: &mut Vec<u8>,
    ) -> Option<LeafPos> {
        let node = Node::new(mtr.words(pos.leaf));
        if !node.covers(key) {
            return None;
        }
        let (slot, found) = node.search(node.count(), node.suffix(key));
        if found || slot >= node.count() {
            return None;
        }
        node.append_key(node.slot(slot), next);
        Some(LeafPos { slot, ..*pos })
    }

    /// Empties `run`, for entries of the leaf of `pos`.
    pub fn begin_run(&self, mtr: &Mtr<'_>, pos: &LeafPos, run: &mut EntryRun) {
        run.cells.clear();
        run.prefix = Node::new(mtr.words(pos.leaf)).prefix_len();
    }

    /// Inserts the entries of `run` at `pos`: the first of those that
    /// [`run_len`](Self::run_len) has counted.
    pub fn insert_run(&self, mtr: &mut Mtr<'_>, pos: &LeafPos, run: &EntryRun) {
        debug_assert!(!pos.found, "node::N1: the first key of a run is new");
        redo::log_insert_run(mtr, pos.leaf, pos.slot, &run.cells);
    }
}
