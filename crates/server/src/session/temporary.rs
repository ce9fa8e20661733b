//! Temporary tables: of one session, in no schema, gone with it.
//!
//! # Invariants
//! - V1: no other session sees them; plans of a session that has some are not shared. They have no
//!   metadata locks and need no privileges once made.
//! - V2: making and dropping them commits nothing and is not rolled back; their rows are, as any
//!   other's. What a crash leaves is removed by the next start.

use std::pin::Pin;
use std::sync::Arc;

use nfold_catalog::{Privileges, SchemaSnapshot, TableDef};
use nfold_engine::{Engine, TableSpec, Wait};
use nfold_exec::ExecCx;
use nfold_sql::ast::{CreateTable, ObjectName};
use nfold_types::{ErrorCode, Level, SqlError};

use super::Session;
use super::ddl::insertion;
use super::ddl::table::refuse_view;
use super::response::{Response, WireSink};
use super::tables::TableUse;
use crate::ddl;

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

    fn put(&mut self, table: Arc<TableDef>) {
        self.sight = None;
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
    pub(super) fn table_in_sight(
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
    pub(super) fn refuse_temporary(&self, schema: &str, name: &str) -> Result<(), SqlError> {
        match self.temporary.find(schema, name) {
            Some(_) => Err(SqlError::not_supported("ALTER TABLE of a temporary table")),
            None => Ok(()),
        }
    }

    /// CREATE TEMPORARY TABLE, also LIKE and SELECT.
    ///
    /// # Errors
    /// 1044, 1050, and what CREATE TABLE gives.
    pub(super) fn create_temporary(
        &mut self,
        cx: &mut dyn ExecCx,
        c: &CreateTable,
        text: &[u8],
        sink: &mut WireSink<'_, '_>,
    ) -> Result<Response, SqlError> {
        let (schema, name) = (self.schema_of(&c.name)?, c.name.name.as_str());
        self.rights
            .need_database(Privileges::CREATE_TEMPORARY_TABLES, &schema)?;
        self.refresh_schema();
        let database = self.target_database(&schema)?;
        self.refuse_own_like(c, &schema)?;
        if self.temporary.find(&schema, name).is_some() {
            if !c.if_not_exists {
                return Err(SqlError::new(ErrorCode::ER_TABLE_EXISTS_ERROR, &[&name]));
            }
            self.conditions
                .push(Level::Note, ErrorCode::ER_TABLE_EXISTS_ERROR, &[&name]);
            return Ok(Response::ok());
        }
        let mut insert = c.query.as_deref().map(|query| insertion(c, query));
        let results = match (&insert, c.query.as_deref()) {
            (Some(insert), Some(query)) => self.plan_results(cx, insert, query, text)?,
            _ => Vec::new(),
        };
        let spec = match &c.like {
            Some(other) => self.like(other, (&schema, name))?,
            None => self.with_ddl_cx(database.collation, |ddl| {
                ddl::table::bind(c, &results, &schema, ddl)
            })?,
        };
        let def = self.make_private(cx, spec)?;
        // What the query sees does not have the new table yet.
        let sight = self.temporary.sight(&self.schema);
        self.temporary.made |= self.engine.in_transaction();
        self.temporary.put(def.clone());
        self.plan_environment_changed();
        let Some(insert) = &mut insert else {
            return Ok(Response::ok());
        };
        insert.columns = Some(ddl::table::named(&results));
        let filled = self.fill(cx, (&sight, &def), (insert, text), sink);
        let ended = self.end_work(cx, filled.as_ref().err());
        match filled.and_then(|result| ended.map(|()| result)) {
            Ok(result) => Ok(self.after_rows(result, sink)),
            Err(e) => {
                self.drop_temporary(&def);
                Err(e)
            }
        }
    }

    /// Error 1066 where a table is to be like itself.
    pub(super) fn refuse_own_like(&self, c: &CreateTable, schema: &str) -> Result<(), SqlError> {
        let Some(other) = &c.like else { return Ok(()) };
        let (from, name) = (self.schema_of(other)?, c.name.name.as_str());
        match *from == *schema && other.name.as_str() == name {
            true => Err(SqlError::new(ErrorCode::ER_NONUNIQ_TABLE, &[&name])),
            false => Ok(()),
        }
    }

    /// What makes a table like `other`.
    pub(super) fn like(
        &self,
        other: &ObjectName,
        (schema, name): (&str, &str),
    ) -> Result<TableSpec, SqlError> {
        let (from, table) = (self.schema_of(other)?, other.name.as_str());
        if self.temporary.find(&from, table).is_none() {
            self.rights
                .need_table(Privileges::SELECT, "SELECT", &from, table)?;
        }
        let like = self.table_in_sight(&from, table)?;
        refuse_view(&like)?;
        ddl::table::like(&like, schema, name)
    }

    fn make_private(
        &mut self,
        cx: &mut dyn ExecCx,
        spec: TableSpec,
    ) -> Result<Arc<TableDef>, SqlError> {
        let wait = &mut |mut wait: Wait| cx.wait_through(Pin::<&mut Wait>::new(&mut wait));
        let made = self.server.engine.create_private_table(&spec, wait);
        made.map_err(|e| nfold_exec::engine_error(&e))
    }

    /// TRUNCATE TABLE: an empty table in its place.
    pub(super) fn truncate_temporary(
        &mut self,
        cx: &mut dyn ExecCx,
        old: &Arc<TableDef>,
    ) -> Result<Response, SqlError> {
        let new = self.make_private(cx, ddl::table::spec_of(old))?;
        self.temporary.put(new);
        self.drop_temporary(old);
        Ok(Response::ok())
    }

    /// Drops one.
    pub(super) fn drop_temporary(&mut self, table: &Arc<TableDef>) {
        self.temporary.dropped |= self.engine.in_transaction();
        self.temporary.take(table);
        self.plan_environment_changed();
        self.server.engine.abandon_table(table);
    }

    /// The session's end, or as good as that.
    pub(super) fn drop_all_temporary(&mut self) {
        while let Some(table) = self.temporary.tables.last().cloned() {
            self.drop_temporary(&table);
        }
    }
}
