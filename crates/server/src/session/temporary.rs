//! Temporary tables: of one session, in no schema, gone with it.
//!
//! # Invariants
//! - V1: no other session sees them; plans of a session that has some are not shared. They have no
//!   metadata locks and need no privileges once made.
//! - V2: making and dropping them commits nothing and is not rolled back; their rows are, as any
//!   other's. What a crash leaves is removed by the next start.

use std::sync::Arc;

use nfold_catalog::{SchemaSnapshot, TableDef};
use nfold_engine::Engine;
use nfold_types::SqlError;

use super::Session;
use super::tables::TableUse;

/// Those of one session.
pub struct TemporaryTables {
    engine: Arc<Engine>,
    tables: Vec<Arc<TableDef>>,
    /// The schema with them in the place of other tables of their names, and the version that it
    /// was made of.
    sight: Option<(u64, Arc<SchemaSnapshot>)>,
    /// Some were made, and dropped, in the transaction that is open.
    pub made: bool,
    pub dropped: bool,
}

impl TemporaryTables {
    /// None yet.
    pub fn new(engine: Arc<Engine>) -> TemporaryTables {
        TemporaryTables {
            engine,
            tables: Vec::new(),
            sight: None,
            made: false,
            dropped: false,
        }
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }

    /// The one of this name.
    pub fn find(&self, schema: &str, name: &str) -> Option<&Arc<TableDef>> {
        let called = |t: &&Arc<TableDef>| *t.schema == *schema && *t.name == *name;
        self.tables.iter().find(called)
    }

    /// Takes out the uses of temporary tables: nobody else has anything to do with these.
    pub fn leave_out(&self, uses: &mut Vec<TableUse>) {
        if !self.is_empty() {
            uses.retain(|u| self.find(&u.schema, &u.name).is_none());
        }
    }

    /// What statements see of a schema.
    pub fn sight(&mut self, schema: &Arc<SchemaSnapshot>) -> Arc<SchemaSnapshot> {
        if self.is_empty() {
            return schema.clone();
        }
        if let Some((version, sight)) = &self.sight
            && *version == schema.version
        {
            return sight.clone();
        }
        let mut sight = SchemaSnapshot::clone(schema);
        for table in &self.tables {
            // Its database may have been dropped.
            if sight.database(&table.schema).is_some() {
                sight.put_table(table.clone());
            }
        }
        let sight = Arc::new(sight);
        self.sight = Some((schema.version, sight.clone()));
        sight
    }

    /// Adds one. What statements see grows by it alone: making it anew would take time for each
    /// temporary table that there is.
    pub fn put(&mut self, table: Arc<TableDef>) {
        if let Some((_, sight)) = &mut self.sight
            && sight.database(&table.schema).is_some()
        {
            Arc::make_mut(sight).put_table(table.clone());
        }
        self.tables.push(table);
    }

    fn take(&mut self, table: &TableDef) {
        self.sight = None;
        self.tables.retain(|t| t.id != table.id);
    }
}

impl Drop for TemporaryTables {
    /// Those that the end of the session has not dropped, as it could not wait.
    fn drop(&mut self) {
        for table in self.tables.drain(..) {
            self.engine.abandon_table(&table);
        }
    }
}

impl Session {
    /// The table that a statement means by a name: a temporary one, or that of the newest schema;
    /// 1146.
    pub(crate) fn table_in_sight(
        &self,
        schema: &str,
        name: &str,
    ) -> Result<Arc<TableDef>, SqlError> {
        match self.temporary.find(schema, name) {
            Some(own) => Ok(own.clone()),
            None => self.table_def(schema, name),
        }
    }

    /// Error 1235 where `name` is a temporary table, of which there is no such change.
    pub(crate) fn refuse_temporary(&self, schema: &str, name: &str) -> Result<(), SqlError> {
        match self.temporary.find(schema, name) {
            Some(_) => Err(SqlError::not_supported("ALTER TABLE of a temporary table")),
            None => Ok(()),
        }
    }

    /// Drops one.
    pub(crate) fn drop_temporary(&mut self, table: &Arc<TableDef>) {
        self.temporary.dropped |= self.engine.in_transaction();
        self.temporary.take(table);
        self.plan_environment_changed();
        self.server.engine.abandon_table(table);
    }

    /// The session's end, or as good as that.
    pub(crate) fn drop_all_temporary(&mut self) {
        while let Some(table) = self.temporary.tables.last().cloned() {
            self.drop_temporary(&table);
        }
    }
}
