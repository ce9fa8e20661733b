use crate::tree::TreeHandle;
use nfold_store::{Stop, Store};

/// Fills an empty tree from a sorted stream, for CREATE INDEX. The tree is whole at all times.
#[derive(Debug, Default)]
pub struct Builder {}

impl Builder {
    pub fn new() -> Builder {
        Builder {}
    }
    /// Adds an entry above all before it. `Wait`: nothing was taken, call again.
    pub fn push(
        &mut self,
        tree: &TreeHandle,
        store: &Store,
        key: &[u8],
        value: &[u8],
    ) -> Result<(), Stop> {
        let _ = (tree, store, key, value);
        todo!()
    }
    /// Writes what is left. `Wait`: call again.
    pub fn finish(&mut self, tree: &TreeHandle, store: &Store) -> Result<(), Stop> {
        let _ = (tree, store);
        todo!()
    }
}
