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
//! - Q3: a prepared transaction stays active: its id is the lock of each row that it changed. Other
//!   locks last until the server ends.

use std::sync::Arc;

use nfold_store::TrxId;

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
    /// Takes the prepare record of a transaction back (Q2).
    pub(crate) fn unprepare(&self, undo: &mut TrxUndo) -> Step<()> {
        let mut mtr = self.store().mtr();
        let prep = self.undo().prepare_end(&mut mtr, undo)?;
        self.undo().append_unprepare(&mut mtr, prep, undo);
        Ok(())
    }
}
