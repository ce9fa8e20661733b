//! Temporary tables, which belong to one session and to no stored schema.
//!
//! # Invariants
//! - V1: no other session sees them, and a session that has any does not share its plans. They have
//!   no metadata locks, and need no privileges once created.
//! - V2: creating or dropping one neither commits nor is rolled back; changes of its rows are
//!   rolled back as usual. After a crash the next start removes them.

use std::sync::Arc;

use nfold_catalog::{SchemaSnapshot, TableDef};
use nfold_engine::Engine;
use nfold_types::SqlError;

use super::Session;
use super::tables::TableUse;

/// The temporary tables of one session.
pub struct TemporaryTables {
    engine: Arc<Engine>,
    tables: Vec<Arc<TableDef>>,
    /// The schema in which they hide stored tables of the same names, and the version of the stored
    /// schema that it was built from.
    sight: Option<(u64, Arc<SchemaSnapshot>)>,
    /// Whether tables were created, or dropped, in the open transaction.
    pub made: bool,
    pub dropped: bool,
}

impl TemporaryTables {
    /// A session without temporary tables.
    pub fn new(engine: Arc<Engine>) -> TemporaryTables {
        TemporaryTables {
            engine,
            tables: Vec::new(),
            sight: None,
            made: false,
            dropped: false,
        }
    }

    /// Whether the session has none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }

    /// The temporary table of this name.
    pub fn find(&self, schema: &str, name: &str) -> Option<&Arc<TableDef>> {
        let called = |t: &&Arc<TableDef>| *t.schema == *schema && *t.name == *name;
        self.tables.iter().find(called)
    }

    /// Removes the uses of temporary tables, which need neither privileges nor locks.
    pub fn leave_out(&self, uses: &mut Vec<TableUse>) {
        if !self.is_empty() {
            uses.retain(|u| self.find(&u.schema, &u.name).is_none());
        }
    }

    /// The schema with the temporary tables, as statements see it.
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
            // The database of a temporary table may have been dropped.
            if sight.database(&table.schema).is_some() {
                sight.put_table(table.clone());
            }
        }
        let sight = Arc::new(sight);
        self.sight = Some((schema.version, sight.clone()));
        sight
    }

    /// Adds a table. Extends the schema that statements see by it alone, because rebuilding it
    /// would take time for each temporary table.
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
    /// Drops the remaining tables, if the end of the session could not wait for that.
    fn drop(&mut self) {
        for table in self.tables.drain(..) {
            self.engine.abandon_table(&table);
        }
    }
}

impl Session {
    /// The table that a statement means: a temporary one, or one of the newest schema. Error 1146
    /// if there is none.
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

    /// Drops a temporary table.
    pub(crate) fn drop_temporary(&mut self, table: &Arc<TableDef>) {
        self.temporary.dropped |= self.engine.in_transaction();
        self.temporary.take(table);
        self.plan_context_changed();
        self.server.engine.abandon_table(table);
    }

    /// Drops all temporary tables: at the end of the session, or at a reset.
    pub(crate) fn drop_all_temporary(&mut self) {
        while let Some(table) = self.temporary.tables.last().cloned() {
            self.drop_temporary(&table);
        }
    }
}
