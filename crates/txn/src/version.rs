//! Finding the version of a row that a snapshot sees.

use crate::error::Step;
use crate::system::TrxSystem;
use crate::undo::{OldVersion, UndoKind, UndoPtr, UndoRecord};
use crate::view::Snapshot;
use nfold_store::TrxId;

/// Which version of a row a snapshot sees.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Visible {
    /// The one in the tree.
    Current,
    /// An older one: its transaction, undo pointer and flags; its image is in the [`UndoRecord`]
    /// that was passed in.
    Older(OldVersion),
    /// The row did not exist.
    None,
}

impl TrxSystem {
    /// Finds the version of a row that `snapshot` sees. `trx` and `undo` are the current version's;
    /// `record` takes the image of an older one. READ UNCOMMITTED does not call this. A
    /// delete-marked version is found like any other; its flags say so.
    ///
    /// The snapshot's slot is open. `VersionGone` then means that the undo log is damaged, or that
    /// the row was read before the snapshot was opened.
    pub fn find_visible(
        &self,
        snapshot: &Snapshot,
        trx: TrxId,
        undo: UndoPtr,
        record: &mut UndoRecord,
    ) -> Step<Visible> {
        let status = &self.views().status;
        if snapshot.sees(trx, status) {
            return Ok(Visible::Current);
        }
        let mut at = (trx, undo);
        loop {
            if at.1.is_none() {
                return Ok(Visible::None);
            }
            // Bodies of versions that are passed by are not copied.
            self.undo()
                .read_if(at.1, at.0, record, |h| snapshot.sees(h.old.trx_id, status))?;
            if record.kind == UndoKind::Insert {
                return Ok(Visible::None);
            }
            let old = record.old;
            if snapshot.sees(old.trx_id, status) {
                return Ok(Visible::Older(old));
            }
            at = (old.trx_id, old.undo);
        }
    }
}
