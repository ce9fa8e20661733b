//! A client's session: its state between statements, and the state that all sessions share.
//!
//! ```text
//!   server: what all sessions share ◀─ Session ─▶ env: what expressions see (vars: variables)
//!   plans, shared_plans, prepared: what has been planned already
//!   transaction, locks, temporary, privilege: what statements run under
//!   statistics: counts by digest
//! ```
//! `statement`, a folder above this one, runs the statements of a session.

pub(crate) mod branch;
mod change_events;
pub(crate) mod cursor;
pub mod cx;
pub(crate) mod deadlock;
pub mod env;
pub(crate) mod gate;
pub(crate) mod handlers;
pub(crate) mod locks;
mod next_gtid;
pub(crate) mod optimizer_traces;
mod password_rules;
pub(crate) mod plan_info;
pub(crate) mod plans;
pub(crate) mod prepared;
pub mod privilege;
pub(crate) mod replication;
pub mod response;
pub(crate) mod server;
pub(crate) mod server_locks;
pub(crate) mod shared_plans;
pub(crate) mod statistics;
pub(crate) mod storage;
pub mod system_schemas;
pub mod tables;
pub(crate) mod temporary;
pub(crate) mod tracking;
pub(crate) mod transaction;
pub(crate) mod transaction_info;
pub mod vars;

use std::sync::Arc;

use nfold_binlog::SourceUuid;
use nfold_catalog::{Account, AccountId, ResourceLimits, SchemaSnapshot};
use nfold_engine::{EngineSession, StatementWrites};
use nfold_exec::{ExecCx, Params};
use nfold_plan::ParamType;
use nfold_protocol::consts::cap;
use nfold_sql::digest::{Digested, LiteralRole};
use nfold_sql::parser::Deprecated;
use nfold_types::error::Signaled;
use nfold_types::{ErrorCode, SqlError, Value, Warnings};

use crate::net::fiber::handler::LoginInfo;
use gate::Gate;
use handlers::OpenHandlers;

pub use replication::ChannelSummary;
pub use server::ServerState;

use env::Env;
use locks::TableLocks;
use plans::PlanMap;
use prepared::PreparedStatements;
use privilege::Rights;
use server_locks::ServerLocks;
use statistics::{DigestIds, StatementFacts};
use temporary::TemporaryTables;
use transaction::NextTransaction;

/// The literals and parameters of a prepared SET.
pub(crate) struct FreeWork {
    pub digested: Digested,
    pub roles: Vec<LiteralRole>,
    pub markers: Vec<Value>,
}

/// What a DDL statement writes together with its change.
#[derive(Default)]
pub(crate) struct CarriedWrites {
    pub pending: StatementWrites,
    /// The statement has several steps, and this is not the last one.
    pub deferred: bool,
    /// The QUERY event of a CREATE TABLE whose rows the open transaction adds. Its commit writes
    /// both to the binary log.
    pub created: Option<Vec<u8>>,
}

impl CarriedWrites {
    /// The writes for a step of the statement.
    pub fn take(&mut self) -> StatementWrites {
        match self.deferred {
            true => StatementWrites::default(),
            false => std::mem::take(&mut self.pending),
        }
    }
}

/// One client's session; see the module's header.
pub struct Session {
    pub(crate) server: Arc<ServerState>,
    pub(crate) env: Env,
    pub(crate) engine: EngineSession,
    pub(crate) rights: Rights,
    /// What each statement must pass; `None` for an ordinary account.
    pub(crate) gate: Option<Box<Gate>>,
    /// The newest schema that the session has seen.
    pub(crate) schema: Arc<SchemaSnapshot>,
    /// The diagnostics area: the conditions of the current or the previous statement.
    pub(crate) conditions: Warnings,
    /// What SIGNAL says of the error that ends the current statement.
    pub(crate) signaled: Option<Box<Signaled>>,
    pub(crate) next_transaction: NextTransaction,
    /// Whether the open transaction is READ ONLY.
    pub(crate) read_only: bool,
    /// LOCK TABLES.
    pub(crate) table_locks: TableLocks,
    /// FLUSH TABLES WITH READ LOCK, LOCK INSTANCE FOR BACKUP.
    pub(crate) server_locks: ServerLocks,
    pub(crate) temporary: TemporaryTables,
    pub(crate) prepared: PreparedStatements,
    pub(crate) plans: PlanMap,
    /// The tables that HANDLER has opened.
    pub(crate) handlers: OpenHandlers,
    /// The current statement's data for the statistics.
    pub(crate) facts: StatementFacts,
    pub(crate) digest_ids: DigestIds,
    /// The values of `?` in expressions outside of queries (a prepared SET).
    pub(crate) free_params: Params,
    pub(crate) free_types: Vec<ParamType>,
    /// What the subqueries of a prepared SET need for its parameters.
    pub(crate) free_work: Option<Box<FreeWork>>,
    /// Deprecated syntax of the current statement, if it is not planned.
    pub(crate) text_warnings: Vec<Deprecated>,
    /// Whether the connection ends after this command (`COMMIT RELEASE`, or KILL of its own id).
    pub(crate) close_after: bool,
    /// What the next change of a definition writes.
    pub(crate) carried: CarriedWrites,
    /// The GTID of the source's transaction that the session applies, or that of `gtid_next`.
    pub(crate) source_gtid: Option<(SourceUuid, u64)>,
    /// What BINLOG statements have said so far.
    pub(crate) printed: Option<Box<replication::PrintedEvents>>,
    /// The digest of the current text, borrowed from the worker. `None` while the statement runs.
    pub(crate) digested: Option<Box<Digested>>,
}

/// The gate of a new session.
fn gate(
    server: &ServerState,
    login: &LoginInfo,
    account: &Account,
) -> Result<Option<Box<Gate>>, SqlError> {
    let expired = account.expired || server.is_too_old(&account.options.password);
    let copes = login.capabilities & cap::CAN_HANDLE_EXPIRED_PASSWORDS != 0;
    if expired && !copes && server.flag("disconnect_on_expired_password") {
        let code = ErrorCode::ER_MUST_CHANGE_PASSWORD_LOGIN;
        return Err(SqlError::new(code, &[]));
    }
    let mut limits = account.options.limits;
    if limits.connections == 0 {
        let global = server.int("max_user_connections");
        limits.connections = u32::try_from(global).unwrap_or(u32::MAX);
    }
    match expired || limits != ResourceLimits::default() {
        true => Gate::open(expired, &account.id(), limits, &server.usage).map(Some),
        false => Ok(None),
    }
}

impl Session {
    /// Opens the session of an authenticated client.
    ///
    /// # Errors
    /// 1045 if the account has just been dropped, 1049 and 1044 for the database, 1040 if the
    /// engine has no room for another session, 1862 for an expired password, 1226 if the account
    /// has too many connections.
    pub fn open(server: Arc<ServerState>, login: LoginInfo) -> Result<Session, SqlError> {
        let catalog = server.engine.catalog();
        let account = (&*login.account_user, &*login.account_host);
        let rights = Rights::load(catalog, account, &login.client_host).ok_or_else(|| {
            SqlError::new(
                ErrorCode::ER_ACCESS_DENIED_ERROR,
                &[&login.user, &login.client_host, &"YES"],
            )
        })?;
        let gate = gate(&server, &login, rights.account())?;
        let mut session = Session::with_rights(server, login, rights)?;
        session.gate = gate;
        Ok(session)
    }

    /// Opens the session that applies a replication source's changes. It may do everything.
    ///
    /// # Errors
    /// 1040 if the engine has no room for another session.
    pub(crate) fn for_replica(
        server: Arc<ServerState>,
        login: LoginInfo,
    ) -> Result<Session, SqlError> {
        Session::with_rights(server, login, Rights::of_replica())
    }

    fn with_rights(
        server: Arc<ServerState>,
        login: LoginInfo,
        rights: Rights,
    ) -> Result<Session, SqlError> {
        let catalog = server.engine.catalog();
        let engine = server
            .engine
            .session(u64::from(login.connection_id))
            .map_err(|_| SqlError::new(ErrorCode::ER_CON_COUNT_ERROR, &[]))?;
        let schema = catalog.snapshot();
        let database = login.database.clone().filter(|d| !d.is_empty());
        let collation = login.collation;
        let mut session = Session {
            env: Env::new(server.clone(), login),
            engine,
            rights,
            gate: None,
            schema,
            conditions: Warnings::default(),
            signaled: None,
            next_transaction: NextTransaction::default(),
            read_only: false,
            table_locks: TableLocks::default(),
            server_locks: ServerLocks::default(),
            temporary: TemporaryTables::new(server.engine.clone()),
            prepared: PreparedStatements::default(),
            plans: PlanMap::default(),
            handlers: OpenHandlers::default(),
            facts: StatementFacts::default(),
            digest_ids: DigestIds::default(),
            free_params: Params::new(),
            free_types: Vec::new(),
            free_work: None,
            text_warnings: Vec::new(),
            close_after: false,
            carried: CarriedWrites::default(),
            source_gtid: None,
            printed: None,
            digested: None,
            server,
        };
        session.env.set_handshake_collation(collation);
        session.follow_error_count();
        session.activate_first_roles();
        if let Some(name) = database {
            session.use_database(&name)?;
        }
        Ok(session)
    }

    /// Resets everything but the account (COM_RESET_CONNECTION).
    pub fn reset(&mut self, cx: &mut dyn ExecCx) -> Result<(), SqlError> {
        let ended = self.rollback(cx);
        self.leave_branch();
        self.set_next_gtid(None);
        self.printed = None;
        self.release_table_locks();
        self.release_server_locks();
        self.drop_all_temporary();
        let mut login = self.env.login.clone();
        login.database = None;
        let database = self.env.database.take();
        let collation = login.collation;
        let before = self.env.vars.settings().clone();
        self.env = Env::new(self.server.clone(), login);
        self.env.set_handshake_collation(collation);
        self.env.database = database;
        self.activate_first_roles();
        self.prepared = PreparedStatements::default();
        self.handlers = OpenHandlers::default();
        self.next_transaction = NextTransaction::default();
        self.conditions.clear();
        self.follow_error_count();
        if !self.env.vars.settings().plans_like(&before) {
            self.plan_context_changed();
        }
        ended
    }

    /// Sets the current database: 1049 if it does not exist, 1044 if it may not be used.
    pub fn use_database(&mut self, name: &str) -> Result<(), SqlError> {
        self.refresh_schema();
        self.refresh_rights();
        self.rights.need_any(name)?;
        let made;
        let def = match self.schema.database(name) {
            Some(stored) => &stored.def,
            None => {
                made = system_schemas::database(name);
                let unknown = || SqlError::new(ErrorCode::ER_BAD_DB_ERROR, &[&name]);
                made.as_ref().ok_or_else(unknown)?
            }
        };
        let same = self.env.database.as_deref() == Some(&*def.name);
        self.env.set_database(Some(&def.name), def.collation);
        self.env.note_database();
        if !same {
            self.plan_context_changed();
        }
        Ok(())
    }

    /// Loads the privileges again if any account has changed.
    #[inline]
    pub(crate) fn refresh_rights(&mut self) {
        if self.rights.is_outdated(self.server.engine.catalog()) {
            self.reload_rights();
        }
    }

    #[cold]
    fn reload_rights(&mut self) {
        let mandatory = self.server.mandatory_roles();
        self.rights.reload(self.server.engine.catalog(), &mandatory);
        self.env.active_roles = self.rights.active_roles().to_vec();
    }

    /// Makes these roles the active ones. Plans that the session has cached are checked anew.
    pub(crate) fn activate_roles(&mut self, roles: Vec<AccountId>) {
        let accounts = self.server.engine.catalog().accounts();
        self.env.active_roles.clone_from(&roles);
        self.rights.activate(&accounts, roles);
        self.plan_context_changed();
    }

    /// Activates the roles that are active after login: the default ones, or all of them.
    fn activate_first_roles(&mut self) {
        let account = self.rights.account();
        let roles = match self.server.activates_all_roles() {
            true => self.server.roles_of(account),
            false => account.default_roles.clone(),
        };
        if !roles.is_empty() || !self.rights.active_roles().is_empty() {
            self.activate_roles(roles);
        }
    }

    /// Applies `max_error_count` to the diagnostics area.
    pub(crate) fn follow_error_count(&mut self) {
        let limit = self.env.vars.settings().max_error_count;
        self.conditions.set_limit(limit);
    }

    /// Discards the session's plans after a change of the database, the SQL mode or the character
    /// set.
    pub(crate) fn plan_context_changed(&mut self) {
        self.plans.environment_changed();
    }
}
