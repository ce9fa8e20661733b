//! What the layer above does for this one: it knows what rows are.

use crate::error::{Step, TxnError};
use crate::system::TrxSystem;
use crate::undo::UndoRecord;

/// Undoes and purges row changes. Implemented by the engine over its tables.
///
/// Both calls may be made again for the same record: after a wait, and after a crash. Both find out
/// from the row whether there is anything left to do, and do it in mini-transactions of their own;
/// neither writes undo records nor takes row locks.
pub trait RowApplier: Send + Sync {
    /// Restores the previous version of a row in the clustered index and all others. Does nothing
    /// unless the row's newest version is the one that the record was written for: its transaction
    /// is `record.trx_id`, and its undo pointer `record.ptr`.
    /// - `Insert`: removes the row.
    /// - `Update`, `DeleteMark`: stores `record.image()` with `record.old` (transaction, undo
    ///   pointer, flags). Purge skips a delete-marked row that a newer transaction has changed
    ///   since, and does not return to it. So if the restored version is delete-marked and its
    ///   transaction [is purgeable](TrxSystem::is_purgeable), checked under the leaf's latch, the
    ///   row is removed instead.
    ///
    /// Also frees the overflow pages that only the undone version refers to.
    fn undo(&self, record: &UndoRecord, system: &TrxSystem) -> Step<()>;

    /// Purges the version that a change has replaced, which no snapshot can need any more: frees
    /// the secondary entries and overflow pages that only that version refers to. For `DeleteMark`
    /// it also removes the row, if this change has delete-marked it.
    ///
    /// Records of one transaction come newest first, and transactions come in commit order. After a
    /// crash some records come again, in any order. A missing table is not an error.
    fn purge(&self, record: &UndoRecord, system: &TrxSystem) -> Step<()>;

    /// Whether `error`, met when undoing or purging `record`, means that its table is damaged. If
    /// so, the table refuses further changes, and the caller continues with the next record.
    /// Otherwise the caller repeats the same record.
    fn give_up(&self, record: &UndoRecord, error: &TxnError) -> bool;
}
