//! Redo records of the store itself, and the trait through which upper crates apply theirs.

use crate::error::StoreError;
use crate::page::PageMut;

/// Ops below this belong to the store.
pub const FIRST_USER_OP: u8 = 0x20;

/// Applies the redo operations of the crates above (ops from 0x20 on). The same function is called at run time, by
/// [`crate::Mtr::op`], and at recovery.
pub trait RedoHandler: Send + Sync {
    /// Changes `page` as `op` and `payload` say. Deterministic: the result depends on the page's bytes and the payload only.
    /// An error at recovery marks the page as corrupt; at run time it ends the process, so whoever logs an op has
    /// checked that it applies.
    fn apply(&self, op: u8, payload: &[u8], page: &PageMut<'_>) -> Result<(), StoreError>;
}

/// For a store that nobody logs own operations in.
#[derive(Debug, Default)]
pub struct NoRedo;

impl RedoHandler for NoRedo {
    fn apply(&self, _: u8, _: &[u8], page: &PageMut<'_>) -> Result<(), StoreError> {
        Err(page.corrupt("redo operation without a handler"))
    }
}
