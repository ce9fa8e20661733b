//! The schema as one immutable object, and the place that publishes it.
//!
//! # Concurrency
//! `Catalog::version` is written by DDL alone, after the new snapshot stands in `current`. A
//! session that announced its tables (see [`crate::mdl`]) and then finds the version unchanged may
//! trust the snapshot that it kept.
//!
//! # Cost
//! A warm statement loads one version word. `snapshot()` counts a reference and is called when the
//! version moved.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use crate::account::AccountSnapshot;
use crate::mdl::Mdl;
use crate::schema::{DatabaseDef, TableDef, TableId};
use crate::user_locks::UserLocks;

/// A database and its tables.
#[derive(Debug, Clone)]
pub struct Database {
    pub def: DatabaseDef,
    /// By name. Table names compare by bytes (`lower_case_table_names=0`).
    pub tables: FxHashMap<Arc<str>, Arc<TableDef>>,
}

/// Every definition, at one version.
#[derive(Debug, Clone, Default)]
pub struct SchemaSnapshot {
    pub version: u64,
    databases: FxHashMap<Arc<str>, Arc<Database>>,
    by_id: FxHashMap<TableId, Arc<TableDef>>,
    /// The children of each table that foreign keys name, whether it is there or not: by its
    /// database and name.
    children: FxHashMap<(Arc<str>, Arc<str>), Vec<TableId>>,
}

impl SchemaSnapshot {
    /// The database called `name`.
    pub fn database(&self, name: &str) -> Option<&Arc<Database>> {
        self.databases.get(name)
    }

    /// All databases, in no order.
    pub fn databases(&self) -> impl Iterator<Item = &Arc<Database>> {
        self.databases.values()
    }

    /// The table `schema.name`.
    pub fn table(&self, schema: &str, name: &str) -> Option<&Arc<TableDef>> {
        self.databases.get(schema)?.tables.get(name)
    }

    /// The table with this id.
    pub fn table_by_id(&self, id: TableId) -> Option<&Arc<TableDef>> {
        self.by_id.get(&id)
    }

    /// All tables, in no order.
    pub fn tables(&self) -> impl Iterator<Item = &Arc<TableDef>> {
        self.by_id.values()
    }

    /// The tables that have a foreign key to `schema.name`, in the order of their names; itself
    /// perhaps among them.
    pub fn children(&self, schema: &str, name: &str) -> Vec<&Arc<TableDef>> {
        if self.children.is_empty() {
            return Vec::new();
        }
        let ids = self.children.get(&(Arc::from(schema), Arc::from(name)));
        let mut found: Vec<_> = ids
            .into_iter()
            .flatten()
            .filter_map(|id| self.by_id.get(id))
            .collect();
        found.sort_unstable_by(|a, b| (&a.schema, &a.name).cmp(&(&b.schema, &b.name)));
        found
    }

    /// Notes the table under the parents that its foreign keys name.
    fn note_parents(&mut self, def: &TableDef) {
        for key in &def.foreign_keys {
            let parent = (key.parent_schema.clone(), key.parent_table.clone());
            let children = self.children.entry(parent).or_default();
            if !children.contains(&def.id) {
                children.push(def.id);
            }
        }
    }

    /// Undoes [`Self::note_parents`].
    fn forget_parents(&mut self, def: &TableDef) {
        for key in &def.foreign_keys {
            let parent = (key.parent_schema.clone(), key.parent_table.clone());
            if let Some(children) = self.children.get_mut(&parent) {
                children.retain(|id| *id != def.id);
                if children.is_empty() {
                    self.children.remove(&parent);
                }
            }
        }
    }

    /// Adds a database, or replaces its definition.
    pub fn put_database(&mut self, def: DatabaseDef) {
        let tables = self
            .databases
            .get(&def.name)
            .map(|d| d.tables.clone())
            .unwrap_or_default();
        self.databases
            .insert(def.name.clone(), Arc::new(Database { def, tables }));
    }

    /// Removes a database and all its tables.
    pub fn remove_database(&mut self, name: &str) {
        if let Some(gone) = self.databases.remove(name) {
            for table in gone.tables.values() {
                self.by_id.remove(&table.id);
                self.forget_parents(table);
            }
        }
    }

    /// Adds a table, or replaces the one with the same id (which may have had another name or
    /// database).
    pub fn put_table(&mut self, def: Arc<TableDef>) {
        self.remove_table(def.id);
        if let Some(database) = self.databases.get_mut(&def.schema) {
            Arc::make_mut(database)
                .tables
                .insert(def.name.clone(), def.clone());
            self.note_parents(&def);
            self.by_id.insert(def.id, def);
        } else {
            debug_assert!(
                false,
                "table {} in unknown database {}",
                def.name, def.schema
            );
        }
    }

    /// Makes a table known by `name` in place of its own, in a snapshot of one statement.
    pub fn put_table_as(&mut self, name: &str, def: Arc<TableDef>) {
        if let Some(database) = self.databases.get_mut(&def.schema) {
            Arc::make_mut(database).tables.insert(name.into(), def);
        }
    }

    /// Removes a table.
    pub fn remove_table(&mut self, id: TableId) {
        let Some(old) = self.by_id.remove(&id) else {
            return;
        };
        self.forget_parents(&old);
        if let Some(database) = self.databases.get_mut(&old.schema) {
            Arc::make_mut(database).tables.remove(&old.name);
        }
    }
}

/// Publishes schema and account snapshots, and owns the metadata locks.
pub struct Catalog {
    version: AtomicU64,
    current: ArcSwap<SchemaSnapshot>,
    account_version: AtomicU64,
    accounts: ArcSwap<AccountSnapshot>,
    /// Serialises publishers.
    publish: Mutex<()>,
    mdl: Arc<Mdl>,
    user_locks: Arc<UserLocks>,
}

impl Default for Catalog {
    fn default() -> Self {
        Self::new()
    }
}

impl Catalog {
    /// An empty catalog, version 0.
    pub fn new() -> Self {
        Catalog {
            version: AtomicU64::new(0),
            current: ArcSwap::from_pointee(SchemaSnapshot::default()),
            account_version: AtomicU64::new(0),
            accounts: ArcSwap::from_pointee(AccountSnapshot::default()),
            publish: Mutex::new(()),
            mdl: Arc::new(Mdl::new()),
            user_locks: Arc::default(),
        }
    }

    /// The schema's version; moves with every DDL, and when statistics have changed much.
    #[inline]
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// The newest schema.
    pub fn snapshot(&self) -> Arc<SchemaSnapshot> {
        self.current.load_full()
    }

    /// The version of accounts and privileges; moves with every change of them.
    #[inline]
    pub fn account_version(&self) -> u64 {
        self.account_version.load(Ordering::Acquire)
    }

    /// The newest accounts and privileges.
    pub fn accounts(&self) -> Arc<AccountSnapshot> {
        self.accounts.load_full()
    }

    /// All metadata locks.
    pub fn mdl(&self) -> &Arc<Mdl> {
        &self.mdl
    }

    /// All user-level locks.
    pub fn user_locks(&self) -> &Arc<UserLocks> {
        &self.user_locks
    }

    /// Publishes a changed schema under the next version, which it returns.
    pub fn publish_schema(&self, change: impl FnOnce(&mut SchemaSnapshot)) -> u64 {
        let _one = self.publish.lock();
        let mut next = SchemaSnapshot::clone(&self.current.load());
        change(&mut next);
        next.version += 1;
        let version = next.version;
        self.current.store(Arc::new(next));
        self.version.store(version, Ordering::Release);
        version
    }

    /// Makes all plans old, because the statistics that they were chosen by are.
    pub fn renew_plans(&self) {
        self.publish_schema(|_| {});
    }

    /// Publishes changed accounts under the next version, which it returns.
    pub fn publish_accounts(&self, change: impl FnOnce(&mut AccountSnapshot)) -> u64 {
        let _one = self.publish.lock();
        let mut next = AccountSnapshot::clone(&self.accounts.load());
        change(&mut next);
        next.version += 1;
        let version = next.version;
        self.accounts.store(Arc::new(next));
        self.account_version.store(version, Ordering::Release);
        version
    }
}
