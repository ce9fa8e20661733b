use crate::batch::GetMany;
use crate::tree::TreeHandle;
use nfold_store::{Stop, Store};

impl TreeHandle {
    /// Appends the value of `key` to `out`; false if there is no such key.
    pub fn get(&self, store: &Store, key: &[u8], out: &mut Vec<u8>) -> Result<bool, Stop> {
        let _ = (store, key, out);
        todo!()
    }

    /// Looks up all keys of the batch. `Ok(true)`: results reached `max_bytes` and there is more; use what was found, clear it, call
    /// again. `Wait`: call again; what was found stays found.
    pub fn get_many(
        &self,
        store: &Store,
        batch: &mut GetMany,
        max_bytes: usize,
    ) -> Result<bool, Stop> {
        let _ = (store, batch, max_bytes);
        todo!()
    }
}
