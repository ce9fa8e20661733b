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
    /// Puts back what the change replaced, in the clustered index and all others. Nothing to do
    /// unless the row's newest version is the one that the record was written for: its transaction
    /// is `record.trx_id`, and its undo pointer `record.ptr`.
    /// - `Insert`: removes the row.
    /// - `Update`, `DeleteMark`: stores `record.image()` with `record.old` (transaction, undo
    ///   pointer, flags). Purge passes over a delete-marked row that a newer transaction has
    ///   changed since. So when the version that comes back is delete-marked and its transaction
    ///   [is purgeable](TrxSystem::is_purgeable), asked under the leaf's latch, the row is removed
    ///   instead: nobody else will.
    ///
    /// Overflow pages that only the undone version names are freed here.
    fn undo(&self, record: &UndoRecord, system: &TrxSystem) -> Step<()>;

    /// Nobody can ask any more for the version that the change replaced: frees what only that one
    /// names (secondary entries, overflow pages), and for `DeleteMark` removes the row, if it is
    /// still delete-marked by this very change. Records of a transaction come newest first; those
    /// of different transactions in the order of the commits, but after a crash some come once
    /// more, in any order. A table that does not exist any more is not an error.
    fn purge(&self, record: &UndoRecord, system: &TrxSystem) -> Step<()>;

    /// Whether `error`, met by undoing or purging `record`, is damage of its table, which takes no
    /// more changes from now on. Then the work goes on with the next record. Otherwise the same
    /// record is tried again.
    fn give_up(&self, record: &UndoRecord, error: &TxnError) -> bool;
}
