//! Range scans, forwards and backwards: one leaf at a time is copied into the caller's batch.

use crate::batch::EntryBatch;
use crate::tree::TreeHandle;
use nfold_store::{Stop, Store};
pub use std::ops::Bound;

/// The keys that a [`Cursor`] goes through.
#[derive(Clone, Debug)]
pub struct KeyRange {
    pub lo: Bound<Vec<u8>>,
    pub hi: Bound<Vec<u8>>,
}

impl KeyRange {
    pub fn all() -> KeyRange {
        KeyRange {
            lo: Bound::Unbounded,
            hi: Bound::Unbounded,
        }
    }
}

/// A position in a tree between two entries. Holds no latch and no page, only keys.
#[derive(Clone, Debug)]
pub struct Cursor {
    range: KeyRange,
    reverse: bool,
}

impl TreeHandle {
    /// A cursor before the first entry of `range`, or behind the last one when `reverse`.
    pub fn cursor(&self, range: KeyRange, reverse: bool) -> Cursor {
        Cursor { range, reverse }
    }
}

impl Cursor {
    /// Appends the next entries, at most `max_entries` and at most those of one leaf, to `out`. False: the range is exhausted.
    /// True with nothing appended is possible. On `Wait` the position is kept: call again.
    pub fn next_batch(
        &mut self,
        tree: &TreeHandle,
        store: &Store,
        max_entries: usize,
        out: &mut EntryBatch,
    ) -> Result<bool, Stop> {
        let _ = (tree, store, max_entries, out, &self.range, self.reverse);
        todo!()
    }
}
