//! The redo operation of the undo log.

use super::{CAPACITY, COUNT, RECORDS, USED};
use nfold_store::{PageMut, RedoHandler, StoreError};

/// The range of operation numbers that belong here.
pub const UNDO_OP_FIRST: u8 = 0x60;
pub const UNDO_OP_LAST: u8 = 0x6f;

/// Payload: one record. It goes behind the last one on the page.
pub const OP_APPEND: u8 = 0x60;

/// Applies [`OP_APPEND`]; the engine's handler passes operations of this range on.
#[derive(Debug, Default)]
pub struct UndoRedo;

impl RedoHandler for UndoRedo {
    fn apply(&self, op: u8, payload: &[u8], page: &PageMut<'_>) -> Result<(), StoreError> {
        if op != OP_APPEND {
            return Err(page.corrupt("unknown undo operation"));
        }
        let used = page.u16(USED) as usize;
        if used + payload.len() > CAPACITY {
            return Err(page.corrupt("undo record beyond the page"));
        }
        page.write(RECORDS + used, payload);
        page.write_u16(USED, (used + payload.len()) as u16);
        page.write_u16(COUNT, page.u16(COUNT).wrapping_add(1));
        Ok(())
    }
}
