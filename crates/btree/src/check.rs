use crate::tree::TreeHandle;
use nfold_store::{Stop, Store};

/// Progress and findings of a check of a whole tree.
#[derive(Clone, Debug, Default)]
pub struct TreeCheck {
    pub leaf_pages: u64,
    pub inner_pages: u64,
    pub entries: u64,
    /// What is wrong, at most a few dozen lines.
    pub problems: Vec<String>,
}

impl TreeHandle {
    /// Goes through the tree and verifies order, fences, levels, sibling links, slot bounds. Works beside writers. `Ok(false)`: there is
    /// more, call again; `Wait`: likewise. `visit` sees each entry (key, value), once a leaf was found right.
    pub fn check_step(
        &self,
        store: &Store,
        check: &mut TreeCheck,
        visit: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<bool, Stop> {
        let _ = (store, check, visit);
        todo!()
    }
}
