use crate::node::{CAPACITY, Node};
use crate::tree::TreeHandle;
use nfold_store::{Stop, Store};

/// Whether a page is so empty that it should be merged with a neighbour.
pub(crate) fn is_underfull(node: Node<'_>) -> bool {
    node.used_bytes() < CAPACITY / 4
}

impl TreeHandle {
    /// Merges the leaf that covers `key` with a neighbour, or frees it, if it is underfull and that works. Called after removals (purge), with no
    /// latch held. `Wait`: call again.
    pub fn compact(&self, store: &Store, key: &[u8]) -> Result<(), Stop> {
        let _ = (store, key);
        todo!()
    }
}
