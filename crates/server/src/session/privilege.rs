//! Privileges of an account, checked once per statement.
//!
//! They are global or per database; a statement on a table needs them on the table's database.

use std::sync::Arc;

use nfold_catalog::{Account, Catalog, Privileges};
use nfold_types::{ErrorCode, SqlError};

use super::system_schemas::{INFORMATION, canonical, is_system_schema};

/// The account of a session, with its privileges at one version.
pub struct Rights {
    account: Arc<Account>,
    version: u64,
}

impl Rights {
    /// Loads the account `user`@`host`; `None` if it does not exist.
    pub fn load(catalog: &Catalog, user: &str, host: &str) -> Option<Rights> {
        let version = catalog.account_version();
        let account = catalog.accounts().get(user, host)?.clone();
        Some(Rights { account, version })
    }

    /// Loads the account again if any account has changed. A dropped account keeps its privileges,
    /// as in MySQL.
    #[inline]
    pub fn refresh(&mut self, catalog: &Catalog) {
        if self.version != catalog.account_version()
            && let Some(now) = Rights::load(catalog, &self.account.user, &self.account.host)
        {
            *self = now;
        }
    }

    /// The account.
    pub fn account(&self) -> &Arc<Account> {
        &self.account
    }

    /// Whether the account has all of `wanted` globally.
    pub fn has_global(&self, wanted: Privileges) -> bool {
        self.account.global.contains(wanted)
    }

    /// Error 1227, which names `names`, unless the account has one of `wanted` globally.
    pub fn need_global(&self, wanted: Privileges, names: &str) -> Result<(), SqlError> {
        if self.has_global(wanted) {
            return Ok(());
        }
        Err(SqlError::new(
            ErrorCode::ER_SPECIFIC_ACCESS_DENIED_ERROR,
            &[&names],
        ))
    }

    /// The privileges on a database. Every account may read the system schemas, whose tables decide
    /// which rows it sees.
    pub fn on_database(&self, schema: &str) -> Privileges {
        if is_system_schema(schema) {
            return Privileges::SELECT;
        }
        self.account.privileges_on(schema)
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
        let (user, host) = (&self.account.user, &self.account.host);
        SqlError::new(ErrorCode::ER_DBACCESS_DENIED_ERROR, &[user, host, &schema])
    }

    /// Error 1044 unless the account has any privilege on the database (USE).
    pub fn need_any(&self, schema: &str) -> Result<(), SqlError> {
        if is_system_schema(schema) || self.account.sees_database(schema) {
            return Ok(());
        }
        Err(self.no_database(schema))
    }

    /// Error 1142 unless the account has `wanted` on the table's database. `command` is the word in
    /// the message (`SELECT`).
    pub fn need_table(
        &self,
        wanted: Privileges,
        command: &str,
        schema: &str,
        table: &str,
    ) -> Result<(), SqlError> {
        if self.on_database(schema).contains(wanted) {
            return Ok(());
        }
        if canonical(schema) == Some(INFORMATION) {
            return Err(self.no_database(schema));
        }
        let (user, host) = (&self.account.user, &self.account.host);
        Err(SqlError::new(
            ErrorCode::ER_TABLEACCESS_DENIED_ERROR,
            &[&command, user, host, &table],
        ))
    }

    /// Whether SHOW PROCESSLIST and KILL apply to other users' connections.
    pub fn sees_all_processes(&self) -> bool {
        self.has_global(Privileges::PROCESS) || self.has_global(Privileges::SUPER)
    }
}
