use crate::tree::TreeHandle;
use nfold_store::{Stop, Store};

impl TreeHandle {
    /// Gives some of the tree's pages back to the space; `Ok(true)` when all are gone, the root included. Call until then; `Wait`: call
    /// again. Nobody else uses the tree. After a crash it goes on where it was, as long as the root is still there.
    pub fn free_step(&self, store: &Store) -> Result<bool, Stop> {
        let _ = store;
        todo!()
    }
}
