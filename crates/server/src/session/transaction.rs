//! The transactions of a session: BEGIN to COMMIT, autocommit, savepoints, metadata locks.

use std::sync::Arc;
use std::time::{Duration, Instant};

use nfold_catalog::{MdlExclusive, MdlWaiting, TableId};
use nfold_engine::{Isolation, Stop, TrxOptions, Wait};
use nfold_exec::{ExecCx, Interrupt, SessionEnv};
use nfold_observe::StatusCounter;
use nfold_observe::contention::{Contention, Site, Ticket, WaitKind, WaitPlace};
use nfold_sql::ast::{BeginOptions, CompletionOptions, IsolationLevel, SetTransaction};
use nfold_types::{ErrorCode, Level, SqlError};

use super::locks::table_of_permit;
use super::response::Response;
use super::transaction_info::TransactionStart;
use super::vars::{VarValue, isolation_word};
use super::{Session, deadlock};

/// The pause after the first failed attempt for a metadata lock. Each later pause is longer by a
/// half, up to the second constant when other sessions use a table that is to be claimed, and up to
/// the third when a claim is in the way, because the end of a claim ends the pause.
const MDL_PAUSE: Duration = Duration::from_millis(1);
const MDL_PAUSE_IN_USE: Duration = Duration::from_millis(10);
const MDL_PAUSE_CLAIMED: Duration = Duration::from_millis(50);

/// The characteristics that `SET TRANSACTION` without a scope gives the next transaction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NextTransaction {
    pub isolation: Option<IsolationLevel>,
    pub read_only: Option<bool>,
}

/// A wait for metadata locks. It is visible to other sessions from the first failed attempt until
/// it is dropped.
pub(crate) struct MdlWait {
    deadline: Option<Instant>,
    /// The length of the next pause.
    pause: Duration,
    begun: Option<BegunMdlWait>,
}

struct BegunMdlWait {
    listed: MdlWaiting,
    contention: Arc<Contention>,
    ticket: Option<Ticket>,
}

impl MdlWait {
    /// For a statement that may wait for `lock_wait_timeout`.
    pub(crate) fn new(session: &Session) -> MdlWait {
        let timeout = session.env.vars.settings().lock_wait_timeout;
        MdlWait {
            deadline: Instant::now().checked_add(timeout),
            pause: MDL_PAUSE,
            begun: None,
        }
    }

    /// Suspends the statement for a while after a failed attempt for `wanted`.
    ///
    /// # Errors
    /// 1205 after the deadline, 1213 if the wait is part of a deadlock with user-level locks.
    pub(crate) fn pause(
        &mut self,
        session: &Session,
        cx: &mut dyn ExecCx,
        wanted: &[TableId],
        exclusive: bool,
    ) -> Result<(), SqlError> {
        let begun = match &self.begun {
            Some(begun) => begun,
            None => {
                let begun = BegunMdlWait::new(session, wanted, exclusive);
                if session.server.engine.catalog().user_locks().any_waiting() {
                    deadlock::break_deadlocks(&session.server, session.env.connection_id());
                }
                self.begun.insert(begun)
            }
        };
        if begun.listed.is_victim() {
            return Err(SqlError::new(ErrorCode::ER_LOCK_DEADLOCK, &[]));
        }
        if self.deadline.is_some_and(|d| Instant::now() >= d) {
            return Err(SqlError::new(ErrorCode::ER_LOCK_WAIT_TIMEOUT, &[]));
        }
        let longest = if exclusive && !begun.listed.is_behind_claim() {
            MDL_PAUSE_IN_USE
        } else {
            MDL_PAUSE_CLAIMED
        };
        let pause = self.pause.min(longest);
        let until = Instant::now() + pause;
        let until = self.deadline.map_or(until, |d| d.min(until));
        self.pause = (pause * 3 / 2).min(longest);
        match cx.wait(std::pin::pin!(begun.listed.changed()), Some(until)) {
            Ok(()) | Err(Interrupt::Deadline) => Ok(()),
            Err(why) => Err(why.to_sql()),
        }
    }
}

impl BegunMdlWait {
    /// `wanted`: if there are several tables, the wait is attributed to the first one.
    fn new(session: &Session, wanted: &[TableId], exclusive: bool) -> BegunMdlWait {
        let engine = &session.server.engine;
        let (contention, schema) = (engine.contention().clone(), engine.catalog().snapshot());
        let is_table = |id: &TableId| schema.tables().any(|def| def.id == *id);
        let mut tables = wanted.iter().map(|id| table_of_permit(*id));
        let table = tables.find(is_table);
        let place = table.map_or(WaitPlace::Server, |t| WaitPlace::Table(t.0));
        let ticket = contention.enter(Site {
            kind: WaitKind::MetadataLock,
            place,
        });
        let mdl = engine.catalog().mdl();
        BegunMdlWait {
            listed: mdl.wait(session.env.connection_id(), wanted, exclusive),
            contention,
            ticket: Some(ticket),
        }
    }
}

impl Drop for BegunMdlWait {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.contention.leave(ticket, None);
        }
    }
}

/// The engine's value of an isolation level.
pub fn engine_isolation(level: IsolationLevel) -> Isolation {
    match level {
        IsolationLevel::ReadUncommitted => Isolation::ReadUncommitted,
        IsolationLevel::ReadCommitted => Isolation::ReadCommitted,
        IsolationLevel::RepeatableRead => Isolation::RepeatableRead,
        IsolationLevel::Serializable => Isolation::Serializable,
    }
}

/// Runs `f` again after each wait, regardless of KILL: a commit or rollback is not abandoned
/// half-way.
pub(crate) fn finish(
    cx: &mut dyn ExecCx,
    mut f: impl FnMut() -> Result<(), Stop>,
) -> Result<(), SqlError> {
    loop {
        let mut wait = match f() {
            Ok(()) => return Ok(()),
            Err(Stop::Error(e)) => return Err(nfold_exec::engine_error(&e)),
            Err(Stop::Wait(wait)) => wait,
        };
        cx.wait_through(std::pin::Pin::<&mut Wait>::new(&mut wait));
    }
}

impl Session {
    pub(crate) fn characteristics(&self) -> (Isolation, bool) {
        let s = self.env.vars.settings();
        let isolation = self.next_transaction.isolation.unwrap_or(s.isolation);
        (
            engine_isolation(isolation),
            self.next_transaction.read_only.unwrap_or(s.read_only),
        )
    }

    /// BEGIN and START TRANSACTION.
    pub fn begin(
        &mut self,
        cx: &mut dyn ExecCx,
        options: &BeginOptions,
    ) -> Result<Response, SqlError> {
        self.commit(cx)?;
        self.release_table_locks();
        let (isolation, read_only) = self.characteristics();
        let next = std::mem::take(&mut self.next_transaction);
        if options.consistent_snapshot && isolation != Isolation::RepeatableRead {
            self.conditions
                .push(Level::Warning, ErrorCode::HA_ERR_UNSUPPORTED, &[]);
        }
        self.engine.begin(TrxOptions {
            isolation,
            read_only: options.read_only.unwrap_or(read_only),
            consistent_snapshot: options.consistent_snapshot,
        });
        self.read_only = options.read_only.unwrap_or(read_only);
        if let Some(info) = self.env.transaction_info() {
            info.begun(TransactionStart {
                isolation: next.isolation,
                read_only: options.read_only.or(next.read_only),
                consistent_snapshot: options.consistent_snapshot,
            });
        }
        if options.consistent_snapshot {
            self.engine.note_start(self.env.started_us(), false);
        }
        Ok(Response::ok())
    }

    /// Starts a statement of the executor. `on_tables`: it reads or writes tables. A statement
    /// without tables leaves the characteristics of SET TRANSACTION to the next one, unless it
    /// opens a transaction that stays open.
    pub fn begin_work(&mut self, on_tables: bool) {
        let fresh = !self.engine.in_transaction();
        let (isolation, read_only) = self.characteristics();
        self.engine.statement_begin(isolation, read_only);
        if fresh {
            if on_tables || !self.env.vars.settings().autocommit {
                self.next_transaction = NextTransaction::default();
            }
            self.read_only = read_only;
        }
        if on_tables {
            let single = !self.engine.is_explicit() && self.env.vars.settings().autocommit;
            self.engine.note_start(self.env.started_us(), single);
        }
    }

    /// Ends a statement on tables. A failed statement is rolled back. A successful one is
    /// committed, unless the client has a transaction open.
    pub fn end_work(
        &mut self,
        cx: &mut dyn ExecCx,
        failed: Option<&SqlError>,
    ) -> Result<(), SqlError> {
        if failed.is_some_and(|e| e.code == ErrorCode::ER_LOCK_DEADLOCK) {
            let ended = self.rollback(cx);
            self.branch_was_rolled_back(ErrorCode::ER_XA_RBDEADLOCK);
            self.end_change();
            return ended;
        }
        if failed.is_some() && self.engine.in_transaction() {
            finish(cx, || self.engine.statement_end(false))?;
        }
        let own = self.engine.is_explicit() || !self.env.vars.settings().autocommit;
        let ended = match failed {
            _ if own && self.engine.in_transaction() => Ok(()),
            None => self.commit(cx),
            Some(_) => self.rollback(cx),
        };
        self.end_change();
        ended
    }

    /// Counts the end of a statement or of a transaction, which both end in the engine in MySQL.
    #[inline]
    pub(crate) fn count_end(&self, committed: bool) {
        let counter = match committed {
            true => StatusCounter::HandlerCommit,
            false => StatusCounter::HandlerRollback,
        };
        self.env.counters.add(counter, 1);
    }

    /// Commits the open transaction, if there is one.
    pub fn commit(&mut self, cx: &mut dyn ExecCx) -> Result<(), SqlError> {
        if std::mem::take(&mut self.server_locks.changed) && self.engine.has_writes() {
            return self.commit_announced(cx);
        }
        self.commit_now(cx)
    }

    /// Commits changes of tables that are not temporary. A transaction that cannot wait for the end
    /// of FLUSH TABLES WITH READ LOCK is rolled back.
    fn commit_announced(&mut self, cx: &mut dyn ExecCx) -> Result<(), SqlError> {
        if let Err(e) = self.announce_change(cx, false) {
            self.rollback(cx)?;
            return Err(e);
        }
        let done = self.commit_now(cx);
        self.end_change();
        done
    }

    #[inline]
    fn commit_now(&mut self, cx: &mut dyn ExecCx) -> Result<(), SqlError> {
        let logged = self.engine.journal().is_some() || self.carried.created.is_some();
        if logged || !self.engine.end_read() {
            return self.commit_changes(cx, logged);
        }
        self.transaction_ended();
        Ok(())
    }

    /// As [`commit`](Self::commit), where there may be something to commit. `logged`: for the
    /// binary log, too.
    #[inline(never)]
    fn commit_changes(&mut self, cx: &mut dyn ExecCx, logged: bool) -> Result<(), SqlError> {
        if logged && let Err(e) = self.attach_changes(cx, false) {
            self.rollback(cx)?;
            return Err(e);
        }
        let done = finish(cx, || self.engine.commit());
        if logged && done.is_ok() && self.gate.is_some() {
            self.next_gtid_was_logged();
        }
        if done.is_err() && self.engine.in_transaction() {
            finish(cx, || self.engine.rollback())?;
        }
        self.transaction_ended();
        if logged && done.is_ok() {
            self.wait_for_replicas(cx);
        }
        done
    }

    #[inline]
    fn transaction_ended(&mut self) {
        self.read_only = false;
        (self.temporary.made, self.temporary.dropped) = (false, false);
        if let Some(info) = self.env.transaction_info() {
            info.ended();
        }
    }

    /// After a commit that the binary log has: waits until semi-synchronous replicas have it.
    #[inline]
    pub(crate) fn wait_for_replicas(&mut self, cx: &mut dyn ExecCx) {
        let log = self.server.binlog.as_ref();
        if log.is_some_and(|log| log.semi_sync.is_enabled()) {
            self.wait_for_acknowledgement(cx);
        }
    }

    #[cold]
    fn wait_for_acknowledgement(&mut self, cx: &mut dyn ExecCx) {
        let Some(log) = self.server.binlog.clone() else {
            return;
        };
        if self.rights.is_replica() {
            return;
        }
        let newest = self.server.engine.attachments().newest();
        let Some(wait) = log.semi_sync.begin_wait(newest) else {
            return;
        };
        let deadline = wait.deadline;
        let mut wait = std::pin::pin!(wait);
        // The transaction is committed, so KILL ends the wait alone.
        if let Err(Interrupt::Deadline) = cx.wait(wait.as_mut(), deadline) {
            wait.timed_out();
        }
    }

    /// Rolls back the open transaction, if there is one.
    pub fn rollback(&mut self, cx: &mut dyn ExecCx) -> Result<(), SqlError> {
        self.read_only = false;
        self.server_locks.changed = false;
        self.carried.created = None;
        if self.gate.is_some() {
            self.next_gtid_rolled_back();
        }
        if let Some(info) = self.env.transaction_info() {
            info.ended();
        }
        (self.temporary.made, self.temporary.dropped) = (false, false);
        if self.engine.in_transaction() {
            return finish(cx, || self.engine.rollback());
        }
        self.engine.mdl().release_all();
        Ok(())
    }

    /// COMMIT and ROLLBACK with CHAIN and RELEASE.
    pub fn complete(
        &mut self,
        cx: &mut dyn ExecCx,
        commit: bool,
        options: &CompletionOptions,
    ) -> Result<Response, SqlError> {
        let s = self.env.vars.settings();
        let chain = options.chain.unwrap_or(s.completion_chain);
        let release = options.release.unwrap_or(s.completion_release);
        let (isolation, read_only) = (self.engine.isolation(), self.read_only);
        let was_open = self.engine.in_transaction();
        let was_explicit = self.engine.is_explicit();
        if was_open {
            self.count_end(commit);
        }
        if commit {
            self.commit(cx)?;
            if self.gate.is_some() {
                self.commit_next_gtid(cx)?;
            }
        } else {
            let kept = (self.temporary.made, self.temporary.dropped);
            self.rollback(cx)?;
            if was_open {
                self.say_kept(kept);
            }
        }
        if chain && was_open {
            self.engine.begin(TrxOptions {
                isolation,
                read_only,
                consistent_snapshot: false,
            });
            self.read_only = read_only;
            if let Some(info) = self.env.transaction_info() {
                info.chained(was_explicit);
            }
        }
        self.close_after |= release;
        Ok(Response::ok())
    }

    /// Warns that created or dropped temporary tables were not rolled back.
    fn say_kept(&mut self, (made, dropped): (bool, bool)) {
        use ErrorCode::{
            ER_WARNING_NOT_COMPLETE_ROLLBACK_WITH_CREATED_TEMP_TABLE as MADE,
            ER_WARNING_NOT_COMPLETE_ROLLBACK_WITH_DROPPED_TEMP_TABLE as DROPPED,
        };
        for (_, code) in [(made, MADE), (dropped, DROPPED)]
            .iter()
            .filter(|(is, _)| *is)
        {
            self.conditions.push(Level::Warning, *code, &[]);
        }
    }

    /// SAVEPOINT.
    pub fn savepoint(&mut self, name: &str) -> Result<Response, SqlError> {
        // With autocommit and outside of a transaction, the savepoint would end with the statement.
        if self.engine.in_transaction() || !self.env.vars.settings().autocommit {
            if !self.engine.in_transaction() {
                self.begin_work(true);
            }
            self.engine.savepoint(name);
            self.env.counters.add(StatusCounter::HandlerSavepoint, 1);
        }
        Ok(Response::ok())
    }

    /// ROLLBACK TO and RELEASE SAVEPOINT.
    pub fn use_savepoint(
        &mut self,
        cx: &mut dyn ExecCx,
        name: &str,
        release: bool,
    ) -> Result<Response, SqlError> {
        let missing = || SqlError::new(ErrorCode::ER_SP_DOES_NOT_EXIST, &[&"SAVEPOINT", &name]);
        if !self.engine.in_transaction() {
            return Err(missing());
        }
        let done = if release {
            self.engine
                .release_savepoint(name)
                .map_err(|e| nfold_exec::engine_error(&e))
        } else {
            let counters = &self.env.counters;
            counters.add(StatusCounter::HandlerSavepointRollback, 1);
            finish(cx, || self.engine.rollback_to(name))
        };
        match done {
            Ok(()) => Ok(Response::ok()),
            Err(e) if e.code == ErrorCode::ER_SP_DOES_NOT_EXIST => Err(missing()),
            Err(e) => Err(e),
        }
    }

    /// `SET TRANSACTION` without a scope. With a scope it sets variables.
    pub fn set_next_transaction(&mut self, t: &SetTransaction) -> Result<(), SqlError> {
        if self.engine.in_transaction()
            && (self.engine.is_explicit() || !self.env.vars.settings().autocommit)
        {
            return Err(SqlError::new(
                ErrorCode::ER_CANT_CHANGE_TX_CHARACTERISTICS,
                &[],
            ));
        }
        self.next_transaction.isolation = t.isolation.or(self.next_transaction.isolation);
        self.next_transaction.read_only = t.read_only.or(self.next_transaction.read_only);
        Ok(())
    }

    /// Called after the session variable `name` was set: it overrides an earlier SET TRANSACTION.
    pub fn forget_next_transaction(&mut self, name: &str) {
        match name {
            "transaction_isolation" => self.next_transaction.isolation = None,
            "transaction_read_only" => self.next_transaction.read_only = None,
            _ => {}
        }
    }

    /// The variables that `SET SESSION|GLOBAL TRANSACTION` sets.
    pub fn transaction_variables(t: &SetTransaction) -> Vec<(&'static str, VarValue)> {
        let isolation = t
            .isolation
            .map(|i| ("transaction_isolation", VarValue::text(isolation_word(i))));
        let read_only = t
            .read_only
            .map(|r| ("transaction_read_only", VarValue::Bool(r)));
        isolation.into_iter().chain(read_only).collect()
    }

    /// Error 1792 if the current or the next transaction is READ ONLY.
    pub fn refuse_read_only(&self) -> Result<(), SqlError> {
        let read_only = match self.engine.in_transaction() {
            true => self.read_only,
            false => self.characteristics().1,
        };
        if read_only {
            return Err(SqlError::new(
                ErrorCode::ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION,
                &[],
            ));
        }
        Ok(())
    }

    /// Error 1290 if the server is read-only for this account.
    pub fn refuse_read_only_server(&self) -> Result<(), SqlError> {
        let switches = self
            .env
            .globals
            .with_settings(|s| (s.super_read_only, s.server_read_only));
        let option = match switches {
            (true, _) if !self.rights.is_replica() => "--super-read-only",
            (false, true) if !self.rights.has_super_or(&["CONNECTION_ADMIN"]) => "--read-only",
            _ => return Ok(()),
        };
        Err(SqlError::new(
            ErrorCode::ER_OPTION_PREVENTS_STATEMENT,
            &[&option],
        ))
    }

    /// Takes over the newest schema if it has changed.
    #[inline]
    pub fn refresh_schema(&mut self) {
        let catalog = self.server.engine.catalog();
        if self.schema.version != catalog.version() {
            self.schema = catalog.snapshot();
        }
    }

    /// Takes shared metadata locks on the tables that `ids` selects from the newest schema, which
    /// [`Self::schema`] is afterwards.
    pub fn lock_tables_shared(
        &mut self,
        cx: &mut dyn ExecCx,
        ids: &mut dyn FnMut(&nfold_catalog::SchemaSnapshot) -> Vec<TableId>,
    ) -> Result<(), SqlError> {
        let mark = self.engine.mdl().mark();
        let mut waiting = MdlWait::new(self);
        loop {
            self.refresh_schema();
            let wanted = ids(&self.schema);
            let mdl = self.engine.mdl();
            let taken = wanted.iter().try_for_each(|&id| mdl.acquire(id));
            if taken.is_ok() && self.schema.version == self.server.engine.catalog().version() {
                return Ok(());
            }
            mdl.release_to(mark);
            if taken.is_err() {
                waiting.pause(self, cx, &wanted, false)?;
            }
        }
    }

    /// Claims tables for DDL. The caller has committed. The session's own announcements do not
    /// conflict.
    pub fn lock_tables_exclusive(
        &mut self,
        cx: &mut dyn ExecCx,
        ids: &[TableId],
    ) -> Result<MdlExclusive, SqlError> {
        let mdl = self.server.engine.catalog().mdl().clone();
        // LOCK TABLES may have claimed some of them for this session already.
        let mut wanted = ids.to_vec();
        wanted.retain(|id| !self.table_locks.claims(*id));
        let mut waiting = MdlWait::new(self);
        loop {
            match mdl.try_exclusive(Some(self.engine.mdl_ref()), &wanted) {
                Ok(claim) => return Ok(claim),
                Err(_) => waiting.pause(self, cx, &wanted, true)?,
            }
        }
    }
}
