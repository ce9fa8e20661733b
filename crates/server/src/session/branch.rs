//! The branch of a distributed transaction (XA) that a session works on, between XA START and its
//! end; `statement/xa.rs` runs the statements.

use nfold_binlog::BranchId;
use nfold_engine::BranchName;
use nfold_sql::ast::Xid;
use nfold_types::{ErrorCode, SqlError};

/// What a branch allows, by MySQL's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BranchState {
    /// After XA START. `Some`: the server has rolled back its transaction, for this reason, which
    /// the next statement on tables says.
    Active(Option<ErrorCode>),
    /// After XA END.
    Idle,
    /// After XA PREPARE without `xa_detach_on_prepare`.
    Prepared,
    /// Rolled back for this reason, which the client knows.
    RollbackOnly(ErrorCode),
}

impl BranchState {
    /// Error 1399 with the name of a state; `None`: the session has no branch.
    pub fn refusal(state: Option<BranchState>) -> SqlError {
        let name = match state {
            None => "NON-EXISTING",
            Some(BranchState::Active(_)) => "ACTIVE",
            Some(BranchState::Idle) => "IDLE",
            Some(BranchState::Prepared) => "PREPARED",
            Some(BranchState::RollbackOnly(_)) => "ROLLBACK ONLY",
        };
        SqlError::new(ErrorCode::ER_XAER_RMFAIL, &[&name])
    }

    /// Why the server has rolled back the transaction, if it has.
    pub fn rolled_back(self) -> Option<ErrorCode> {
        match self {
            BranchState::Active(reason) => reason,
            BranchState::RollbackOnly(reason) => Some(reason),
            BranchState::Idle | BranchState::Prepared => None,
        }
    }
}

/// A session's branch.
pub(crate) struct OpenBranch {
    pub name: BranchName,
    pub state: BranchState,
}

impl OpenBranch {
    /// The name for the binary log.
    pub fn id(&self) -> Option<BranchId> {
        Xid::decode(self.name.bytes()).map(branch_id)
    }
}

/// A name as the binary log has it.
pub(crate) fn branch_id(xid: Xid) -> BranchId {
    BranchId {
        format: xid.format as u32,
        gtrid: xid.gtrid,
        bqual: xid.bqual,
    }
}

/// A name of the binary log as statements have it.
pub(crate) fn xid_of(branch: &BranchId) -> Xid {
    Xid {
        format: branch.format.into(),
        gtrid: branch.gtrid.clone(),
        bqual: branch.bqual.clone(),
    }
}
