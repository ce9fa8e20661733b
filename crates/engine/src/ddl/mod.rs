//! DDL: databases, tables, indexes, accounts. Every call is atomic. Calls block, so they run on
//! threads that may.
//!
//! # Protocol
//! 1. New files and trees are created, filled, and made durable.
//! 2. One transaction changes the dictionary's rows and commits durably. This commit is the moment
//!    of the change.
//! 3. The open tables and the schema snapshot are replaced. Then unused files are unlinked.
//!
//! A crash before step 2 leaves orphan files, or a tree that a leftover row names; the next start
//! removes both. After step 2 the change is complete.
//!
//! # Invariants
//! L1. The caller holds the exclusive metadata locks of every table involved, and has released its
//!     own uses of them.
//! L2. The mutex `Shared::ddl` serializes changes of the dictionary and of the open tables. Long
//!     operations run without it: copying a table, filling and freeing trees, waiting for
//!     rollbacks, unlinking files of dropped tables. L1 protects existing tables meanwhile, and no
//!     other session can name the new ones.

mod build;
mod index;
mod orphans;
mod rebuild;
mod runs;
pub(crate) mod stop;
mod table;
mod view;

use nfold_catalog::codec::Stored;
use nfold_catalog::{Account, AccountId, DatabaseDef, TableDef};

use crate::dictionary::{self, ObjectKind};
use crate::engine::Engine;
use crate::error::EngineError;
use crate::session::EngineSession;
use crate::stats::block;

pub use rebuild::CopyError;
pub use stop::stoppable;
pub use table::{IndexSpec, TableSpec};
pub use view::ViewSpec;

impl Engine {
    /// Runs `change` in a transaction over the dictionary and commits it durably. The transaction
    /// also writes the coordinates of a replication channel that the statement carries.
    pub(crate) fn change_dictionary(
        &self,
        change: impl FnOnce(&mut EngineSession) -> Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        self.change_leftovers(|session| {
            change(session)?;
            self.put_statement_writes(session)
        })
    }

    /// As [`Self::change_dictionary`], for rows that are no definition: they change before or after
    /// the moment of the statement's change.
    pub(crate) fn change_leftovers(
        &self,
        change: impl FnOnce(&mut EngineSession) -> Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        let mut session = EngineSession::internal(self.shared())?;
        session.begin_internal();
        match change(&mut session) {
            Ok(()) => block(|| session.commit_durably()),
            Err(e) => {
                block(|| session.rollback())?;
                Err(e)
            }
        }
    }

    /// Writes the object `object` under `id`.
    pub(crate) fn put_object(
        &self,
        session: &mut EngineSession,
        kind: ObjectKind,
        id: &[u8],
        object: &impl Stored,
    ) -> Result<(), EngineError> {
        let mut data = Vec::new();
        object.encode(&mut data);
        dictionary::put(session, &self.shared().dictionary, kind, id, &data)
    }

    pub(crate) fn put_table(
        &self,
        session: &mut EngineSession,
        table: &TableDef,
    ) -> Result<(), EngineError> {
        self.put_object(session, ObjectKind::Table, &table.id.0.to_be_bytes(), table)
    }

    /// CREATE DATABASE, ALTER DATABASE: the definition under its name.
    pub fn put_database(&self, database: DatabaseDef) -> Result<(), EngineError> {
        let _one = self.shared().ddl.lock();
        self.change_dictionary(|s| {
            self.put_object(s, ObjectKind::Database, database.name.as_bytes(), &database)
        })?;
        self.catalog()
            .publish_schema(|schema| schema.put_database(database));
        Ok(())
    }

    /// DROP DATABASE, with all its tables.
    pub fn drop_database(&self, name: &str) -> Result<(), EngineError> {
        let one = self.shared().ddl.lock();
        let schema = self.catalog().snapshot();
        let all: Vec<_> = schema
            .database(name)
            .map(|d| d.tables.values().cloned().collect())
            .unwrap_or_default();
        let (views, tables): (Vec<_>, Vec<_>) = all.into_iter().partition(|t| t.is_view());
        let dictionary = &self.shared().dictionary;
        self.change_dictionary(|s| {
            for table in &tables {
                dictionary::remove_table(s, dictionary, table.id)?;
            }
            for view in &views {
                dictionary::remove(s, dictionary, ObjectKind::View, &view.id.0.to_be_bytes())?;
            }
            dictionary::remove(s, dictionary, ObjectKind::Database, name.as_bytes())?;
            Ok(())
        })?;
        self.catalog()
            .publish_schema(|schema| schema.remove_database(name));
        self.forget_tables(&tables);
        drop(one); // L2
        self.unlink_tables(&tables);
        Ok(())
    }

    /// Stores accounts, in place of those of the same names. All of them or none.
    pub fn put_accounts(&self, accounts: Vec<Account>) -> Result<(), EngineError> {
        let _one = self.shared().ddl.lock();
        self.change_dictionary(|s| {
            accounts.iter().try_for_each(|a| {
                self.put_object(
                    s,
                    ObjectKind::Account,
                    &dictionary::account_id(&a.user, &a.host),
                    a,
                )
            })
        })?;
        self.catalog()
            .publish_accounts(|all| accounts.into_iter().for_each(|a| all.put(a)));
        Ok(())
    }

    /// Stores accounts and drops others, all or none: DROP USER, RENAME USER, and every change that
    /// depends on what the accounts were at version `base`. Names of `gone` that do not exist are
    /// ignored. Returns false, and changes nothing, if the accounts have changed since.
    pub fn change_accounts(
        &self,
        base: u64,
        accounts: Vec<Account>,
        gone: &[AccountId],
    ) -> Result<bool, EngineError> {
        let _one = self.shared().ddl.lock();
        if self.catalog().account_version() != base {
            return Ok(false);
        }
        let dictionary = &self.shared().dictionary;
        self.change_dictionary(|s| {
            for (user, host) in gone {
                let id = dictionary::account_id(user, host);
                dictionary::remove(s, dictionary, ObjectKind::Account, &id)?;
            }
            accounts.iter().try_for_each(|a| {
                let id = dictionary::account_id(&a.user, &a.host);
                self.put_object(s, ObjectKind::Account, &id, a)
            })
        })?;
        self.catalog().publish_accounts(|all| {
            for (user, host) in gone {
                all.remove(user, host);
            }
            accounts.into_iter().for_each(|a| all.put(a));
        });
        Ok(true)
    }
}
