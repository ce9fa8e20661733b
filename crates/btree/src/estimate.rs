use crate::tree::TreeHandle;
use nfold_store::{Stop, Store};

/// A tree's size, estimated from a few pages.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub struct TreeStats {
    /// Levels, the leaf level included.
    pub depth: u32,
    pub leaf_pages: u64,
    pub inner_pages: u64,
    pub entries: u64,
}

impl TreeHandle {
    /// Estimated number of entries in `[lo, hi)` from two descents; an empty `hi` means no upper bound. Exact within one leaf.
    pub fn estimate_range(&self, store: &Store, lo: &[u8], hi: &[u8]) -> Result<u64, Stop> {
        let _ = (store, lo, hi);
        todo!()
    }

    /// Estimated size, from a few descents.
    pub fn stats(&self, store: &Store) -> Result<TreeStats, Stop> {
        let _ = store;
        todo!()
    }
}
