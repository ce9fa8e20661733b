//! Privileges of a session: those of its account and of its active roles, at one version of the
//! accounts.
//!
//! They are looked up when a statement is planned, or runs from a plan of another session; a warm
//! statement compares one version number.

use std::sync::Arc;

use nfold_catalog::{
    Account, AccountId, AccountSnapshot, Catalog, DatabaseNames, HeldPrivileges, Privileges,
};
use nfold_plan::{ColumnAccess, ColumnUse};
use nfold_types::{ErrorCode, SqlError};

use super::system_schemas::{INFORMATION, canonical, is_open_schema};

/// The account of a session, with its privileges at one version.
pub struct Rights {
    account: Arc<Account>,
    /// The active roles, as SET ROLE names them.
    active: Vec<AccountId>,
    held: HeldPrivileges,
    /// The host that the client comes from, for messages.
    client_host: Box<str>,
    version: u64,
    /// The session applies the changes of a replication source.
    is_replica: bool,
}

impl Rights {
    /// Loads the account `user`@`host` without a role; `None` if it does not exist.
    pub fn load(catalog: &Catalog, (user, host): (&str, &str), client: &str) -> Option<Rights> {
        let version = catalog.account_version();
        let accounts = catalog.accounts();
        let account = accounts.get(user, host)?.clone();
        Some(Rights {
            held: HeldPrivileges::new(vec![account.clone()], accounts.database_names),
            account,
            active: Vec::new(),
            client_host: client.into(),
            version,
            is_replica: false,
        })
    }

    /// All privileges, for the session that applies the changes of a replication source.
    pub(crate) fn of_replica() -> Rights {
        let mut account = Account::new(("system user".into(), "".into()), "");
        account.locked = true;
        account.global = Privileges::all_global().union(Privileges::GRANT_OPTION);
        account.add_all_dynamic(true);
        let account = Arc::new(account);
        Rights {
            held: HeldPrivileges::new(vec![account.clone()], DatabaseNames::Literal),
            account,
            active: Vec::new(),
            client_host: "".into(),
            version: 0,
            is_replica: true,
        }
    }

    /// Whether the session applies the changes of a replication source.
    pub(crate) fn is_replica(&self) -> bool {
        self.is_replica
    }

    /// Whether an account has changed since these privileges were loaded.
    #[inline]
    pub fn is_outdated(&self, catalog: &Catalog) -> bool {
        !self.is_replica && self.version != catalog.account_version()
    }

    /// Loads the account again. A dropped account keeps its privileges, as in MySQL. Active roles
    /// stay active while the account has them, or they are `mandatory`.
    pub fn reload(&mut self, catalog: &Catalog, mandatory: &[AccountId]) {
        let Some(mut now) = Rights::load(catalog, self.name(), &self.client_host) else {
            return;
        };
        let accounts = catalog.accounts();
        let active = std::mem::take(&mut self.active).into_iter();
        let still = |r: &AccountId| {
            let granted = now.account.role_grant(r).is_some() || mandatory.contains(r);
            granted && accounts.get(&r.0, &r.1).is_some()
        };
        let active: Vec<AccountId> = active.filter(still).collect();
        now.activate(&accounts, active);
        *self = now;
    }

    /// Makes these roles the active ones. They were granted.
    pub fn activate(&mut self, accounts: &AccountSnapshot, roles: Vec<AccountId>) {
        let mut all = vec![self.account.clone()];
        all.extend(accounts.with_granted(&roles));
        self.held = HeldPrivileges::new(all, accounts.database_names);
        self.active = roles;
    }

    /// The active roles.
    pub fn active_roles(&self) -> &[AccountId] {
        &self.active
    }

    /// The account.
    pub fn account(&self) -> &Arc<Account> {
        &self.account
    }

    /// What the account and its active roles may do.
    pub fn held(&self) -> &HeldPrivileges {
        &self.held
    }

    /// The host that the client comes from.
    pub fn client_host(&self) -> &str {
        &self.client_host
    }

    /// User and host of the account.
    fn name(&self) -> (&str, &str) {
        (&self.account.user, &self.account.host)
    }

    /// Whether the account has all of `wanted` globally.
    pub fn has_global(&self, wanted: Privileges) -> bool {
        self.held.global().contains(wanted)
    }

    /// Whether the account has one of these dynamic privileges, or SUPER.
    pub fn has_super_or(&self, dynamic: &[&str]) -> bool {
        self.has_global(Privileges::SUPER) || dynamic.iter().any(|d| self.held.has_dynamic(d))
    }

    /// Whether the account has a dynamic privilege.
    pub fn has_dynamic(&self, name: &str) -> bool {
        self.held.has_dynamic(name)
    }

    /// Error 1227, which names `names`.
    pub fn lacks(&self, names: &str) -> SqlError {
        SqlError::new(ErrorCode::ER_SPECIFIC_ACCESS_DENIED_ERROR, &[&names])
    }

    /// Error 1227, which names `names`, unless the account has all of `wanted` globally.
    pub fn need_global(&self, wanted: Privileges, names: &str) -> Result<(), SqlError> {
        match self.has_global(wanted) {
            true => Ok(()),
            false => Err(self.lacks(names)),
        }
    }

    /// Error 1227, which names `names`, unless the account has SUPER or one of the dynamic
    /// privileges.
    pub fn need_super_or(&self, dynamic: &[&str], names: &str) -> Result<(), SqlError> {
        match self.has_super_or(dynamic) {
            true => Ok(()),
            false => Err(self.lacks(names)),
        }
    }

    /// The privileges on a database. Every account may read the system schemas, whose tables decide
    /// which rows it sees.
    pub fn on_database(&self, schema: &str) -> Privileges {
        if is_open_schema(schema) {
            return Privileges::SELECT;
        }
        self.held.on_database(schema)
    }

    /// The privileges on a table, with those of the levels above.
    pub fn on_table(&self, schema: &str, table: &str) -> Privileges {
        if is_open_schema(schema) {
            return Privileges::SELECT;
        }
        self.held.on_table(schema, table)
    }

    /// Error 1044 unless the account has all of `wanted` on the database.
    pub fn need_database(&self, wanted: Privileges, schema: &str) -> Result<(), SqlError> {
        if self.on_database(schema).contains(wanted) {
            return Ok(());
        }
        Err(self.no_database(schema))
    }

    /// Error 1044.
    pub fn no_database(&self, schema: &str) -> SqlError {
        let (user, host) = self.name();
        SqlError::new(
            ErrorCode::ER_DBACCESS_DENIED_ERROR,
            &[&user, &host, &schema],
        )
    }

    /// Error 1044 unless the account may know of the database; it names the client's host.
    pub fn need_to_show(&self, schema: &str) -> Result<(), SqlError> {
        if self.need_any(schema).is_ok() {
            return Ok(());
        }
        let code = ErrorCode::ER_DBACCESS_DENIED_ERROR;
        let user = &self.account.user;
        Err(SqlError::new(code, &[user, &self.client_host, &schema]))
    }

    /// Error 1044 unless the account has any privilege on the database (USE).
    pub fn need_any(&self, schema: &str) -> Result<(), SqlError> {
        if is_open_schema(schema) || self.held.uses_database(schema) {
            return Ok(());
        }
        Err(self.no_database(schema))
    }

    /// Whether the account may know that a table exists.
    pub fn sees_table(&self, schema: &str, table: &str) -> bool {
        is_open_schema(schema) || self.held.sees_table(schema, table)
    }

    /// Error 1142 unless the account has `wanted` on the table, or on one of its columns.
    pub fn need_table(
        &self,
        wanted: Privileges,
        schema: &str,
        table: &str,
    ) -> Result<(), SqlError> {
        let missing = wanted.without(self.on_table(schema, table));
        if missing.is_empty() {
            return Ok(());
        }
        if canonical(schema) == Some(INFORMATION) {
            return Err(self.no_database(schema));
        }
        let missing = missing.without(self.held.on_any_column(schema, table));
        match missing.is_empty() {
            true => Ok(()),
            false => Err(self.denied(&missing.names_in_errors(), table)),
        }
    }

    /// Error 1142 unless the account has SELECT on the database, or anything on the table or on one
    /// of its columns.
    pub fn need_some(&self, schema: &str, table: &str) -> Result<(), SqlError> {
        let granted = self.held.has_table(schema, table);
        match granted || self.on_database(schema).contains(Privileges::SELECT) {
            true => Ok(()),
            false if canonical(schema) == Some(INFORMATION) => Err(self.no_database(schema)),
            false => Err(self.denied("SELECT", table)),
        }
    }

    /// Error 1142 unless the account may change the rows that a locking read locks.
    pub fn need_locking(&self, schema: &str, table: &str) -> Result<(), SqlError> {
        let enough = Privileges::UPDATE
            .union(Privileges::DELETE)
            .union(Privileges::LOCK_TABLES);
        let held = self.on_table(schema, table);
        let on_columns = self.held.on_any_column(schema, table);
        match is_open_schema(schema) || held.union(on_columns).has_any(enough) {
            true => Ok(()),
            false => Err(self.denied("SELECT with locking clause", table)),
        }
    }

    /// Error 1142.
    pub fn denied(&self, command: &str, table: &str) -> SqlError {
        let (user, host) = (&self.account.user, &self.client_host);
        SqlError::new(
            ErrorCode::ER_TABLEACCESS_DENIED_ERROR,
            &[&command, user, host, &table],
        )
    }

    /// Error 1142 with the account's own host in place of the client's.
    pub fn denied_to_account(&self, command: &str, table: &str) -> SqlError {
        let (user, host) = self.name();
        SqlError::new(
            ErrorCode::ER_TABLEACCESS_DENIED_ERROR,
            &[&command, &user, &host, &table],
        )
    }

    /// Checks the privileges on columns.
    ///
    /// # Errors
    /// 1143; 1142 for `*` if the privileges on some of its columns are there.
    pub fn need_columns(&self, of: &ColumnUse) -> Result<(), SqlError> {
        let (wanted, command) = match of.access {
            ColumnAccess::Read | ColumnAccess::ReadAll => (Privileges::SELECT, "SELECT"),
            ColumnAccess::Insert | ColumnAccess::InsertAll => (Privileges::INSERT, "INSERT"),
            ColumnAccess::Update => (Privileges::UPDATE, "UPDATE"),
            ColumnAccess::Show => (Privileges::all_column(), "ANY"),
        };
        let (schema, table) = (&*of.schema, &*of.table);
        if self.on_table(schema, table).has_any(wanted) {
            return Ok(());
        }
        let every = matches!(of.access, ColumnAccess::ReadAll | ColumnAccess::InsertAll);
        let mut some = false;
        for column in &of.columns {
            let held = self.held.on_column(schema, table, column);
            some |= !held.is_empty();
            if held.has_any(wanted) {
                continue;
            }
            if every && some {
                return Err(self.denied(command, table));
            }
            let (user, host) = (&self.account.user, &self.client_host);
            return Err(SqlError::new(
                ErrorCode::ER_COLUMNACCESS_DENIED_ERROR,
                &[&command, user, host, column, &table],
            ));
        }
        Ok(())
    }

    /// Whether SHOW PROCESSLIST and KILL apply to other users' connections.
    pub fn sees_all_processes(&self) -> bool {
        self.has_global(Privileges::PROCESS) || self.has_global(Privileges::SUPER)
    }
}
