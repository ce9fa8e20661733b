//! XA: distributed transactions in two phases.
//!
//! # Picture
//! ```text
//!            XA START          XA END         XA PREPARE                      XA COMMIT, XA ROLLBACK
//!  no branch ────────▶ ACTIVE ───────▶ IDLE ────────────▶ of no session ◀────────────────────── any session
//!                        │   ◀─RESUME──  │ XA COMMIT ONE PHASE, XA ROLLBACK
//!                        │               ▼
//!                        │            no branch
//!                        └ deadlock ▶ ROLLBACK ONLY
//! ```
//! Without `xa_detach_on_prepare` a prepared branch stays with its session until that ends or ends
//! it (PREPARED).
//!
//! # Invariants
//! XA1. A session with a branch has a gate, so other sessions pay nothing for the checks of
//!      [`Session::pass_branch`].
//! XA2. A branch whose XA PREPARE is in the binary log has its XA COMMIT or XA ROLLBACK there, too,
//!      unless the session that ends it has `sql_log_bin = OFF`. Other branches have neither.
//! XA3. While a branch is ACTIVE or IDLE, its transaction is open in the engine, unless the server
//!      has rolled it back.

use nfold_engine::{PrepareOptions, TrxOptions};
use nfold_exec::{Checkpoints, ExecCx, SessionEnv};
use nfold_sql::ast::{DropTable, SetItem, SetValue, Show, Statement, Xa, XaAssociation, Xid};
use nfold_sql::parser::parse_stoppable;
use nfold_types::collation::CollationId;
use nfold_types::{ColumnType, ErrorCode, Level, SqlError, TypeKind, Value};

use super::dispatch::commits;
use crate::session::Session;
use crate::session::branch::{BranchState, OpenBranch, branch_id};
use crate::session::gate::Gate;
use crate::session::response::{Response, RowSet};
use crate::session::tables::{needs_query, tables_of};
use crate::session::transaction::{NextTransaction, finish};
use crate::session::vars::{self, VarValue};

/// Bytes of `data` in XA RECOVER, as hexadecimal digits behind `0x`.
const DATA_CHARS: u32 = 2 * 128 + 2;

fn invalid() -> SqlError {
    SqlError::new(ErrorCode::ER_XAER_INVAL, &[])
}

fn unknown() -> SqlError {
    SqlError::new(ErrorCode::ER_XAER_NOTA, &[])
}

fn rolled_back(reason: ErrorCode) -> SqlError {
    SqlError::new(reason, &[])
}

impl Session {
    /// Runs an XA statement.
    ///
    /// # Errors
    /// 1397 to 1402, 1440, 1613 and 1614, as in MySQL.
    pub(super) fn xa(&mut self, cx: &mut dyn ExecCx, xa: &Xa) -> Result<Response, SqlError> {
        match xa {
            Xa::Start(xid, association) => self.xa_start(cx, xid, *association)?,
            Xa::End { xid, suspend } => self.xa_end(xid, *suspend)?,
            Xa::Prepare(xid) => self.xa_prepare(cx, xid)?,
            Xa::Commit { xid, one_phase } => self.xa_commit(cx, xid, *one_phase)?,
            Xa::Rollback(xid) => self.xa_rollback(cx, xid)?,
            Xa::Recover { convert } => return self.xa_recover(*convert),
        }
        Ok(Response::ok())
    }

    fn branch(&self) -> Option<&OpenBranch> {
        self.gate.as_ref()?.branch.as_ref()
    }

    fn branch_state(&self) -> Option<BranchState> {
        self.branch().map(|branch| branch.state)
    }

    fn set_branch_state(&mut self, state: BranchState) {
        let gate = self.gate.as_mut();
        if let Some(branch) = gate.and_then(|gate| gate.branch.as_mut()) {
            branch.state = state;
        }
    }

    /// Whether the session's branch has this name.
    fn has_branch(&self, xid: &Xid) -> bool {
        self.branch()
            .is_some_and(|branch| *branch.name.bytes() == *xid.encode())
    }

    /// Without autocommit a statement without tables opens a transaction in the engine, but not in
    /// MySQL.
    fn leave_idle_transaction(&mut self, cx: &mut dyn ExecCx) -> Result<(), SqlError> {
        match self.engine.in_transaction() && !self.engine.has_worked() {
            true => self.commit(cx),
            false => Ok(()),
        }
    }

    /// The session has no branch any more.
    pub(crate) fn leave_branch(&mut self) -> Option<OpenBranch> {
        let gate = self.gate.as_mut()?;
        let branch = gate.branch.take();
        if !gate.is_needed() {
            self.gate = None;
        }
        branch
    }

    fn xa_start(
        &mut self,
        cx: &mut dyn ExecCx,
        xid: &Xid,
        association: XaAssociation,
    ) -> Result<(), SqlError> {
        let state = self.branch_state();
        match (association, state) {
            (XaAssociation::Resume, Some(BranchState::Idle)) => {
                if !self.has_branch(xid) {
                    return Err(unknown());
                }
                self.set_branch_state(BranchState::Active(None));
                return Ok(());
            }
            (XaAssociation::Join | XaAssociation::Resume, _) => return Err(invalid()),
            (XaAssociation::New, Some(_)) => return Err(BranchState::refusal(state)),
            (XaAssociation::New, None) => {}
        }
        self.leave_idle_transaction(cx)?;
        if self.engine.in_transaction() || !self.table_locks.is_empty() {
            return Err(SqlError::new(ErrorCode::ER_XAER_OUTSIDE, &[]));
        }
        let claimed = self.server.engine.claim_branch(&xid.encode());
        let name = claimed.ok_or_else(|| SqlError::new(ErrorCode::ER_XAER_DUPID, &[]))?;
        let (isolation, read_only) = self.characteristics();
        self.next_transaction = NextTransaction::default();
        self.engine.begin(TrxOptions {
            isolation,
            read_only,
            consistent_snapshot: false,
        });
        self.read_only = read_only;
        let gate = self.gate.get_or_insert_with(Gate::of_ordinary_account);
        gate.branch = Some(OpenBranch {
            name,
            state: BranchState::Active(None),
        });
        Ok(())
    }

    fn xa_end(&mut self, xid: &Xid, suspend: bool) -> Result<(), SqlError> {
        if suspend {
            return Err(invalid());
        }
        let state = self.branch_state();
        match state {
            Some(BranchState::Active(_) | BranchState::RollbackOnly(_)) => {}
            _ => return Err(BranchState::refusal(state)),
        }
        if !self.has_branch(xid) {
            return Err(unknown());
        }
        match state.and_then(BranchState::rolled_back) {
            Some(reason) => {
                self.set_branch_state(BranchState::RollbackOnly(reason));
                Err(rolled_back(reason))
            }
            None => {
                self.set_branch_state(BranchState::Idle);
                Ok(())
            }
        }
    }

    fn xa_prepare(&mut self, cx: &mut dyn ExecCx, xid: &Xid) -> Result<(), SqlError> {
        let state = self.branch_state();
        if state != Some(BranchState::Idle) {
            return Err(BranchState::refusal(state));
        }
        if !self.has_branch(xid) {
            return Err(unknown());
        }
        if self.server_locks.changed && self.engine.has_writes() {
            self.announce_change(cx, false)?;
        }
        let attached = matches!(
            self.env.sysvar(None, "xa_detach_on_prepare"),
            Ok(Value::Int(0) | Value::UInt(0))
        );
        let logged = self.engine.journal().is_some();
        let attachment = match logged {
            true => self.attach_changes(cx, true),
            false => Ok(()),
        };
        let Some(OpenBranch { name, .. }) = self.leave_branch() else {
            return Ok(());
        };
        let options = PrepareOptions { attached, logged };
        let prepared = match attachment {
            Ok(()) => finish(cx, || self.engine.prepare(&name, options)),
            Err(e) => Err(e),
        };
        self.end_change();
        if let Err(e) = prepared {
            tracing::warn!(error = %e.message, "a branch could not be prepared, and is rolled back");
            self.rollback(cx)?;
            return Err(rolled_back(ErrorCode::ER_XA_RBROLLBACK));
        }
        self.server_locks.changed = false;
        self.read_only = false;
        if attached {
            let gate = self.gate.get_or_insert_with(Gate::of_ordinary_account);
            let state = BranchState::Prepared;
            gate.branch = Some(OpenBranch { name, state });
        }
        Ok(())
    }

    fn xa_commit(
        &mut self,
        cx: &mut dyn ExecCx,
        xid: &Xid,
        one_phase: bool,
    ) -> Result<(), SqlError> {
        if !self.has_branch(xid) {
            return self.end_detached(cx, xid, true);
        }
        let state = self.branch_state();
        if let Some(reason) = state.and_then(BranchState::rolled_back) {
            self.rollback(cx)?;
            self.leave_branch();
            return Err(rolled_back(reason));
        }
        match state {
            Some(BranchState::Idle) if one_phase => {
                let committed = self.commit(cx);
                self.leave_branch();
                committed
            }
            Some(BranchState::Prepared) if !one_phase => self.end_prepared(cx, xid, true),
            _ => Err(BranchState::refusal(state)),
        }
    }

    fn xa_rollback(&mut self, cx: &mut dyn ExecCx, xid: &Xid) -> Result<(), SqlError> {
        if !self.has_branch(xid) {
            return self.end_detached(cx, xid, false);
        }
        let state = self.branch_state();
        match state {
            Some(BranchState::Idle | BranchState::RollbackOnly(_)) => {
                let ended = self.rollback(cx);
                self.leave_branch();
                ended
            }
            Some(BranchState::Prepared) => self.end_prepared(cx, xid, false),
            _ => Err(BranchState::refusal(state)),
        }
    }

    /// Ends a prepared branch that is not this session's.
    fn end_detached(
        &mut self,
        cx: &mut dyn ExecCx,
        xid: &Xid,
        commit: bool,
    ) -> Result<(), SqlError> {
        let state = self.branch_state();
        if state.is_none() {
            self.leave_idle_transaction(cx)?;
        }
        if state.is_some() || self.engine.in_transaction() {
            return Err(BranchState::refusal(state));
        }
        self.end_prepared(cx, xid, commit)
    }

    fn end_prepared(
        &mut self,
        cx: &mut dyn ExecCx,
        xid: &Xid,
        commit: bool,
    ) -> Result<(), SqlError> {
        self.leave_idle_transaction(cx)?;
        // Once the branch is this session's transaction, nothing must keep it from its end.
        if commit {
            self.announce_change(cx, false)?;
        }
        let (own, name) = (self.has_branch(xid), xid.encode());
        let engine = self.server.engine.clone();
        let ended = match self.engine.resume_branch(&engine, &name, own) {
            false => Err(unknown()),
            true => {
                if self.engine.resumed_is_logged() {
                    let verb = if commit { "COMMIT" } else { "ROLLBACK" };
                    self.attach_end_of_branch(format!("XA {verb} {}", branch_id(xid.clone())));
                }
                finish(cx, || match commit {
                    true => self.engine.commit_branch(),
                    false => self.engine.rollback_branch(),
                })
            }
        };
        self.end_change();
        if own {
            self.leave_branch();
        }
        ended
    }

    fn xa_recover(&mut self, convert: bool) -> Result<Response, SqlError> {
        if !self.rights.has_dynamic("XA_RECOVER_ADMIN") {
            let why = self.rights.lacks("XA_RECOVER_ADMIN");
            self.conditions.push_error(Level::Error, &why);
            return Err(SqlError::new(ErrorCode::ER_XAER_RMERR, &[]));
        }
        let number = ColumnType::bigint();
        let data = ColumnType::string(
            TypeKind::VarChar(DATA_CHARS),
            CollationId::UTF8MB4_0900_AI_CI,
        );
        let mut set = RowSet::new(&[
            ("formatID", number.clone()),
            ("gtrid_length", number.clone()),
            ("bqual_length", number),
            ("data", data),
        ]);
        set.counted = false;
        for name in self.server.engine.prepared_branches() {
            let Some(xid) = Xid::decode(&name) else {
                continue;
            };
            let data = [&*xid.gtrid, &*xid.bqual].concat();
            let data = match convert {
                true => format!("0x{}", hex(&data)).into_bytes(),
                false => data,
            };
            set.push(vec![
                Value::Int(xid.format),
                Value::Int(xid.gtrid.len() as i64),
                Value::Int(xid.bqual.len() as i64),
                Value::Bytes(data),
            ]);
        }
        Ok(Response::Rows(set))
    }

    /// The server has rolled back the open transaction; its branch, if there is one, can only be
    /// rolled back as well.
    #[cold]
    pub(crate) fn branch_was_rolled_back(&mut self, reason: ErrorCode) {
        if let Some(BranchState::Active(_)) = self.branch_state() {
            self.set_branch_state(BranchState::Active(Some(reason)));
        }
    }

    /// Error 1399 if the session has a branch and `assigned` turns autocommit on, which commits.
    pub(super) fn refuse_autocommit(&self, assigned: &[(usize, VarValue)]) -> Result<(), SqlError> {
        let state = self.branch_state();
        if state.is_none() || self.env.vars.settings().autocommit {
            return Ok(());
        }
        let is_autocommit = |at: usize| vars::definitions()[at].name == "autocommit";
        let mut assigned = assigned.iter();
        match assigned.any(|(at, value)| is_autocommit(*at) && *value == VarValue::Bool(true)) {
            true => Err(BranchState::refusal(state)),
            false => Ok(()),
        }
    }

    /// Error 1399 or 1614 if the session's branch does not allow the statement `text` now, 4091 if
    /// the statement uses temporary tables.
    pub(super) fn pass_branch(&mut self, cx: &mut dyn ExecCx, text: &[u8]) -> Result<(), SqlError> {
        let Some(state) = self.branch_state() else {
            return Ok(());
        };
        let lexing = self.env.vars.settings().lexing;
        let parsed = parse_stoppable(text, lexing, &Checkpoints::new(cx), &mut Vec::new());
        // The statement itself answers with an error of the syntax.
        let Ok(statement) = parsed else {
            return Ok(());
        };
        if matches!(statement, Statement::Xa(_)) {
            return Ok(());
        }
        if ends_transaction(&statement) {
            return Err(BranchState::refusal(Some(state)));
        }
        match state {
            BranchState::Active(None) if self.uses_temporary(&statement) => {
                Err(SqlError::new(ErrorCode::ER_XA_TEMP_TABLE, &[]))
            }
            BranchState::Active(None) => Ok(()),
            _ if !self.opens_tables(&statement) => Ok(()),
            BranchState::Active(Some(reason)) | BranchState::RollbackOnly(reason) => {
                if matches!(statement, Statement::Savepoint(_)) {
                    return Ok(());
                }
                self.set_branch_state(BranchState::RollbackOnly(reason));
                Err(rolled_back(reason))
            }
            BranchState::Idle | BranchState::Prepared => Err(BranchState::refusal(Some(state))),
        }
    }

    /// Whether a statement reads or changes a table, or answers from one as MySQL does.
    fn opens_tables(&self, statement: &Statement) -> bool {
        use Statement::*;
        match statement {
            Handler(_) | Describe { .. } | Savepoint(_) | CreateTable(_) | DropTable(_) => true,
            Show(show) => !matches!(
                show,
                self::Show::Warnings(_)
                    | self::Show::Errors(_)
                    | self::Show::WarningCount
                    | self::Show::ErrorCount
            ),
            Set(items) => items.iter().any(|item| match item {
                SetItem::UserVar { value, .. }
                | SetItem::SysVar {
                    value: SetValue::Expr(value),
                    ..
                } => needs_query(value),
                _ => false,
            }),
            _ => {
                let used = tables_of(statement, Some(""));
                used.is_ok_and(|used| !used.is_empty())
            }
        }
    }

    /// Whether a statement creates, drops or uses temporary tables.
    fn uses_temporary(&self, statement: &Statement) -> bool {
        let database = self.env.database.as_deref().unwrap_or_default();
        match statement {
            Statement::CreateTable(create) => create.temporary,
            Statement::DropTable(DropTable { names, .. }) => names.iter().any(|name| {
                let schema = name.schema.as_ref().map_or(database, |s| s.as_str());
                self.temporary.find(schema, name.name.as_str()).is_some()
            }),
            _ if self.temporary.is_empty() => false,
            _ => tables_of(statement, Some(database)).is_ok_and(|used| {
                let mut used = used.iter();
                used.any(|u| self.temporary.find(&u.schema, &u.name).is_some())
            }),
        }
    }
}

/// Whether a statement commits or rolls back the open transaction.
fn ends_transaction(statement: &Statement) -> bool {
    use Statement::{Begin, Commit, Rollback};
    matches!(statement, Begin(_) | Commit(_) | Rollback(_)) || commits(statement)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect()
}
