//! The first phase of a commit in two phases: after `Trx::prepare` a transaction belongs to no
//! session, survives a restart, and ends by the commit or rollback of the `Trx` that resumes it.
//!
//! # Picture
//! ```text
//!  Trx: Active ──prepare record──▶ Preparing ──durable──▶ Prepared ──resume──▶ another Trx: Active ──▶ commit, rollback
//!                                                            ▲
//!                               start: a prepare record, and no record that takes it back or ends the transaction
//! ```
//! # Invariants
//! - Q1: when `prepare` returns, its record is durable. It names the last row record that was not
//!   undone, so that a rollback to a savepoint counts after a restart as well.
//! - Q2: before the first change of a prepared transaction is undone, the log has a record that
//!   takes the prepare record back. So no restart finds a prepared transaction that is undone in
//!   part.
//!   The bytes that `Trx::attach` has set travel with the record that prepares the transaction,
//!   commits it, or takes the prepare record back: a restart finds both or neither.
//! - Q3: a prepared transaction stays active: its id is the lock of each row that it changed. Other
//!   locks last until the server ends.

use std::sync::Arc;

use nfold_store::{Lsn, Mtr, TrxId};

use crate::error::{Step, TxnError, block_on};
use crate::locks::LockOwner;
use crate::system::TrxSystem;
use crate::undo::{TrxUndo, UndoPtr, UndoRecord};

/// A prepared transaction without a session. Dropping it changes nothing: the next start finds it.
pub struct Prepared {
    pub(crate) undo: TrxUndo,
    pub(crate) owner: Arc<LockOwner>,
}

impl Prepared {
    pub fn id(&self) -> TrxId {
        self.undo.id
    }
}

/// A prepared transaction that the start has found.
pub struct RecoveredTrx {
    pub prepared: Prepared,
    /// The bytes that [`Trx::prepare`](crate::Trx::prepare) was called with.
    pub name: Vec<u8>,
    pub about: Vec<u8>,
}

impl RecoveredTrx {
    /// Reads the prepare record at `at`, and locks what the transaction has changed. Blocks.
    pub(crate) fn open(
        system: &TrxSystem,
        mut undo: TrxUndo,
        at: UndoPtr,
    ) -> Result<RecoveredTrx, TxnError> {
        let mut record = UndoRecord::default();
        block_on(|| system.undo().read(at, undo.id, &mut record))?;
        let owner = LockOwner::new(0, true);
        system.locks().register(&owner, undo.id);
        owner.set_changes(u64::from(undo.undo_no));
        // Whether purge has something to do is not known.
        (undo.prepared, undo.loud) = (true, true);
        Ok(RecoveredTrx {
            prepared: Prepared { undo, owner },
            name: record.key().to_vec(),
            about: record.image().to_vec(),
        })
    }
}

impl TrxSystem {
    /// Takes the prepare record of a transaction back (Q2). The log carries `attachment`, which is
    /// taken then.
    pub(crate) fn unprepare(
        &self,
        undo: &mut TrxUndo,
        attachment: &mut Option<Vec<u8>>,
    ) -> Step<()> {
        let mut mtr = self.store().mtr();
        let len = attachment.as_ref().map_or(0, Vec::len);
        let prep = self.undo().prepare_end_with(&mut mtr, undo, len)?;
        let ready = self.attached(&mut mtr, attachment);
        self.undo().append_unprepare(&mut mtr, prep, undo, ready);
        Ok(())
    }

    /// Logs an attachment, for which there is room, in a mini-transaction. The returned function is
    /// to be called with the end of the mini-transaction, before the horizon gets there.
    pub(crate) fn attached<'s>(
        &'s self,
        mtr: &mut Mtr<'_>,
        attachment: &mut Option<Vec<u8>>,
    ) -> impl FnOnce(Lsn) + use<'s> {
        let bytes = attachment.take();
        if let Some(bytes) = &bytes {
            mtr.attach(bytes);
        }
        // The mini-transaction begins behind every horizon that is known now.
        let floor = self.store().horizon().load();
        move |end| {
            if let Some(bytes) = bytes {
                self.store().attachments().push(floor, end, bytes);
            }
        }
    }
}
