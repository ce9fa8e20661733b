//! Two-phase commit: preparing the open transaction of a session as a branch, and ending a branch.
//! `branches` has what is between the two.

use crate::branches::{BranchName, LOGGED, PrepareOptions, Resumed};
use crate::engine::Engine;
use crate::error::{Stop, lift};
use crate::session::EngineSession;

impl Engine {
    /// Claims a name for a branch that a session begins; `None` if it is in use.
    pub fn claim_branch(&self, name: &[u8]) -> Option<BranchName> {
        self.shared().branches.claim(name)
    }

    /// The names of the prepared branches, the oldest first.
    pub fn prepared_branches(&self) -> Vec<Box<[u8]>> {
        self.shared().branches.prepared()
    }
}

impl EngineSession {
    /// Prepares the open transaction as the branch `name`: it becomes durable, keeps its locks, and
    /// the session has no transaction any more. The log carries the bytes of
    /// [`attach`](Self::attach) with it. After a wait, call again.
    ///
    /// # Errors
    /// As [`commit`](Self::commit); the transaction stays open then.
    /// [`EngineError::Limit`](crate::EngineError::Limit) if it uses too many tables.
    pub fn prepare(&mut self, name: &BranchName, options: PrepareOptions) -> Result<(), Stop> {
        let mut about = Vec::new();
        for id in self.mdl_ref().held() {
            about.extend_from_slice(&id.0.to_le_bytes());
        }
        if options.logged {
            about.push(LOGGED);
        }
        let trx = self.trx_and_system().0;
        let trx = trx.prepare(name.bytes(), &about).map_err(lift)?;
        name.put(trx, self.mdl().hand_over(), options);
        self.end();
        Ok(())
    }

    /// [`PrepareOptions::logged`] of the branch that [`resume_branch`](Self::resume_branch) made
    /// the open transaction.
    pub fn resumed_is_logged(&self) -> bool {
        self.resumed().is_some_and(Resumed::is_logged)
    }

    /// Makes a prepared branch the open transaction of this session, which has none, for
    /// [`commit_branch`](Self::commit_branch) or [`rollback_branch`](Self::rollback_branch).
    /// `own`: the session prepared it. False: there is no such branch, or it is another session's.
    pub fn resume_branch(&mut self, engine: &Engine, name: &[u8], own: bool) -> bool {
        debug_assert!(!self.in_transaction());
        match engine.shared().branches.take(name, own) {
            Some((trx, resumed)) => {
                self.resume(trx, resumed);
                true
            }
            None => false,
        }
    }

    /// Commits the branch that [`resume_branch`](Self::resume_branch) made the open transaction;
    /// call again after a wait.
    pub fn commit_branch(&mut self) -> Result<(), Stop> {
        self.commit_durably()?;
        self.leave_branch();
        Ok(())
    }

    /// Rolls back the branch that [`resume_branch`](Self::resume_branch) made the open transaction,
    /// and waits until that is durable; call again after a wait.
    pub fn rollback_branch(&mut self) -> Result<(), Stop> {
        self.rollback()?;
        self.sync_rollback()?;
        self.leave_branch();
        Ok(())
    }
}
