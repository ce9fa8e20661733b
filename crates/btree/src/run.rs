//! Runs: entries with adjacent keys that one mini-transaction inserts into one leaf.
//!
//! # Picture
//! ```text
//!  entries in ascending order         a b c d e        before the mini-transaction:
//!  leaf with free bytes for three     ... 9 | k ...    run_len = 3, for a, b, c
//!                                     ... 9 a b c k    after INSERT_RUN
//! ```
//! All entries of a run lie in one gap between existing keys, so their insert intentions are one.

use nfold_store::Mtr;

use crate::node::edit::push_cell_pieces;
use crate::node::{ENTRY_OVERHEAD, Node};
use crate::redo;
use crate::tree::{MAX_ENTRY, TreeHandle};
use crate::write::LeafPos;

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
    /// together, from the first on: their keys ascend, lie below `next`, which is the key behind
    /// `pos`, and the leaf covers them and has room for all without compaction. The leaf has room
    /// for the first entry, whose key `pos` was found with.
    pub fn run_len<'k>(
        &self,
        mtr: &Mtr<'_>,
        pos: &LeafPos,
        next: Option<&[u8]>,
        entries: impl Iterator<Item = (&'k [u8], usize)>,
    ) -> usize {
        let node = Node::new(mtr.words(pos.leaf));
        let room = node.open_bytes();
        let (mut count, mut used, mut last) = (0, 0, &[][..]);
        for (key, value_len) in entries {
            used += ENTRY_OVERHEAD + key.len().saturating_sub(node.prefix_len()) + value_len;
            let follows = key > last && next.is_none_or(|next| key < next) && node.covers(key);
            let fits = used <= room && key.len() + value_len <= MAX_ENTRY;
            if count > 0 && !(follows && fits) {
                break;
            }
            (count, last) = (count + 1, key);
        }
        count
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
