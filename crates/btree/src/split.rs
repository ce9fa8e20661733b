use crate::tree::TreeHandle;
use nfold_store::{Stop, Store};

impl TreeHandle {
    /// Splits the leaf that covers `key`, until it has room for the key with a value of `value_len` bytes.
    pub(crate) fn make_room(
        &self,
        store: &Store,
        key: &[u8],
        value_len: usize,
    ) -> Result<(), Stop> {
        let _ = (store, key, value_len);
        todo!()
    }
}
