//! Branches of distributed transactions (XA): the names in use, and the prepared transactions,
//! which belong to no session.
//!
//! # Picture
//! ```text
//!  claim_branch ─▶ Open ──EngineSession::prepare──▶ Prepared ──resume_branch──▶ Ending ──▶ gone
//!                   │ BranchName dropped: gone          ▲
//!                                                     start: found in the undo log
//! ```
//! # Invariants
//! B1. Each branch has a name of its own: the name stays in the map from the claim until the
//!     branch's transaction has ended, and no other session can claim it meanwhile.
//! B2. A prepared transaction holds the metadata locks that it had, after a restart as well: the
//!     prepare record has them.
//!
//! # Not here
//! What a name consists of: the caller's bytes.

use std::sync::Arc;

use nfold_catalog::{MdlSlot, TableId};
use nfold_store::{Lsn, TrxId};
use nfold_txn::{Prepared, RecoveredTrx};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

/// The byte behind the tables of a prepare record: see [`PrepareOptions::logged`].
pub(crate) const LOGGED: u8 = 1;

/// How a transaction is prepared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PrepareOptions {
    /// No other session may end the branch before its claim is dropped.
    pub attached: bool,
    /// The binary log has the transaction, so it must have the end of the branch as well. A restart
    /// remembers it.
    pub logged: bool,
}

enum Branch {
    /// A session works for it.
    Open,
    Prepared(Box<PreparedBranch>),
    /// A session commits it or rolls it back.
    Ending(TrxId),
}

struct PreparedBranch {
    trx: Prepared,
    mdl: MdlSlot,
    options: PrepareOptions,
}

/// The branches of one engine, by name.
#[derive(Default)]
pub(crate) struct Branches(Mutex<FxHashMap<Box<[u8]>, Branch>>);

impl Branches {
    /// Takes over what the start has found (B2).
    pub fn recover(&self, found: Vec<RecoveredTrx>, slot: impl Fn() -> MdlSlot) {
        for trx in found {
            let mut mdl = slot();
            let (tables, rest) = trx.about.as_chunks();
            for id in tables {
                // Nothing is claimed before the server serves.
                let taken = mdl.acquire(TableId(u64::from_le_bytes(*id)));
                debug_assert!(taken.is_ok(), "B2: no claim at the start");
            }
            let branch = PreparedBranch {
                trx: trx.prepared,
                mdl,
                options: PrepareOptions {
                    attached: false,
                    logged: rest.contains(&LOGGED),
                },
            };
            let name = trx.name.into_boxed_slice();
            self.0
                .lock()
                .insert(name, Branch::Prepared(Box::new(branch)));
        }
    }

    /// Claims a name for a branch that a session begins; `None` if it is in use.
    pub fn claim(self: &Arc<Self>, name: &[u8]) -> Option<BranchName> {
        let mut all = self.0.lock();
        if all.contains_key(name) {
            return None;
        }
        all.insert(name.into(), Branch::Open);
        Some(BranchName {
            all: self.clone(),
            name: name.into(),
        })
    }

    /// The names of the prepared branches, the oldest first.
    pub fn prepared(&self) -> Vec<Box<[u8]>> {
        let all = self.0.lock();
        let mut found: Vec<_> = all
            .iter()
            .filter_map(|(name, branch)| match branch {
                Branch::Prepared(prepared) => Some((prepared.trx.id(), name.clone())),
                _ => None,
            })
            .collect();
        found.sort_unstable();
        found.into_iter().map(|(_, name)| name).collect()
    }

    /// Takes a prepared branch out, to be ended. `own`: by the session that prepared it. `None`:
    /// there is no such branch, or it is another session's.
    pub fn take(self: &Arc<Self>, name: &[u8], own: bool) -> Option<(Prepared, Resumed)> {
        let mut all = self.0.lock();
        let id = match all.get(name) {
            Some(Branch::Prepared(prepared)) if own || !prepared.options.attached => {
                prepared.trx.id()
            }
            _ => return None,
        };
        let Some(Branch::Prepared(branch)) = all.insert(name.into(), Branch::Ending(id)) else {
            return None;
        };
        let resumed = Resumed {
            all: self.clone(),
            name: name.into(),
            _mdl: branch.mdl,
            logged: branch.options.logged,
            undone_at: None,
        };
        Some((branch.trx, resumed))
    }

    /// Whether a transaction without a session is prepared, or is being ended after that.
    pub fn is_prepared(&self, id: TrxId) -> bool {
        self.0.lock().values().any(|branch| match branch {
            Branch::Open => false,
            Branch::Prepared(prepared) => prepared.trx.id() == id,
            Branch::Ending(ending) => *ending == id,
        })
    }
}

/// A session's claim on a name, until the transaction is prepared or the claim is dropped.
pub struct BranchName {
    all: Arc<Branches>,
    name: Box<[u8]>,
}

impl BranchName {
    /// The name, as the layer above encoded it.
    pub fn bytes(&self) -> &[u8] {
        &self.name
    }
}

impl BranchName {
    /// The branch is prepared now.
    pub(crate) fn put(&self, trx: Prepared, mdl: MdlSlot, options: PrepareOptions) {
        let branch = Box::new(PreparedBranch { trx, mdl, options });
        let mut all = self.all.0.lock();
        all.insert(self.name.clone(), Branch::Prepared(branch));
    }
}

impl Drop for BranchName {
    fn drop(&mut self) {
        let mut all = self.all.0.lock();
        match all.get_mut(&self.name) {
            Some(Branch::Open) => drop(all.remove(&self.name)),
            Some(Branch::Prepared(prepared)) => prepared.options.attached = false,
            Some(Branch::Ending(_)) | None => {}
        }
    }
}

/// A branch that a session is ending; its metadata locks last until this is dropped.
pub(crate) struct Resumed {
    all: Arc<Branches>,
    name: Box<[u8]>,
    _mdl: MdlSlot,
    logged: bool,
    /// An LSN behind its rollback, once that is done.
    undone_at: Option<Lsn>,
}

impl Resumed {
    /// See [`PrepareOptions::logged`].
    pub fn is_logged(&self) -> bool {
        self.logged
    }

    /// The horizon of the first call.
    pub fn undone_at(&mut self, horizon: Lsn) -> Lsn {
        *self.undone_at.get_or_insert(horizon)
    }
}

impl Drop for Resumed {
    fn drop(&mut self) {
        self.all.0.lock().remove(&self.name);
    }
}
