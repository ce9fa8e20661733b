//! CREATE TEMPORARY TABLE; TRUNCATE, ALTER TABLE, CREATE INDEX and DROP INDEX of temporary tables.

use std::pin::Pin;
use std::sync::Arc;

use nfold_catalog::{Privileges, TableDef};
use nfold_engine::{IndexSpec, TableSpec, Wait};
use nfold_exec::ExecCx;
use nfold_sql::ast::{AlterAlgorithm, AlterTable, CreateTable, ObjectName};
use nfold_types::{ErrorCode, Level, SqlError};

use super::copy::CopyTarget;
use super::create_select::insertion;
use super::table::refuse_view;
use crate::ddl::bind;
use crate::ddl::bind::alter::{Change, Source};
use crate::session::Session;
use crate::session::response::{Done, Response, WireSink};

impl Session {
    /// CREATE TEMPORARY TABLE, including LIKE and SELECT.
    ///
    /// # Errors
    /// 1044, 1050, and the errors of CREATE TABLE.
    pub(crate) fn create_temporary(
        &mut self,
        cx: &mut dyn ExecCx,
        c: &CreateTable,
        text: &[u8],
        sink: &mut WireSink<'_, '_>,
    ) -> Result<Response, SqlError> {
        let (schema, name) = (self.schema_of(&c.name)?, c.name.name.as_str());
        self.rights
            .need_database(Privileges::CREATE_TEMPORARY_TABLES, &schema)?;
        bind::table::refuse_attributes(c)?;
        self.refresh_schema();
        let database = self.target_database(&schema)?;
        self.refuse_own_like(c, &schema)?;
        self.env.note_change();
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
                bind::table::bind(c, &results, &schema, ddl)
            })?,
        };
        let def = self.make_private(cx, spec)?;
        // The query does not see the new table yet.
        let sight = self.temporary.sight(&self.schema);
        self.temporary.made |= self.engine.in_transaction();
        self.temporary.put(def.clone());
        self.plan_context_changed();
        let Some(insert) = &mut insert else {
            return Ok(Response::ok());
        };
        insert.columns = Some(bind::table::named(&results));
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

    /// Error 1066 if a table is created LIKE itself.
    pub(crate) fn refuse_own_like(&self, c: &CreateTable, schema: &str) -> Result<(), SqlError> {
        let Some(other) = &c.like else { return Ok(()) };
        let (from, name) = (self.schema_of(other)?, c.name.name.as_str());
        match *from == *schema && other.name.as_str() == name {
            true => Err(SqlError::new(ErrorCode::ER_NONUNIQ_TABLE, &[&name])),
            false => Ok(()),
        }
    }

    /// The spec of a table LIKE `other`.
    pub(crate) fn like(
        &self,
        other: &ObjectName,
        (schema, name): (&str, &str),
    ) -> Result<TableSpec, SqlError> {
        let (from, table) = (self.schema_of(other)?, other.name.as_str());
        if self.temporary.find(&from, table).is_none() {
            self.rights.need_table(Privileges::SELECT, &from, table)?;
        }
        let like = self.table_in_sight(&from, table)?;
        refuse_view(&like)?;
        bind::table::like(&like, schema, name)
    }

    /// Creates a temporary table of the session.
    fn make_private(
        &mut self,
        cx: &mut dyn ExecCx,
        spec: TableSpec,
    ) -> Result<Arc<TableDef>, SqlError> {
        let wait = &mut |mut wait: Wait| cx.wait_through(Pin::<&mut Wait>::new(&mut wait));
        let made = self.server.engine.create_private_table(&spec, wait);
        made.map_err(|e| nfold_exec::engine_error(&e))
    }

    /// TRUNCATE TABLE: replaces the table by an empty one.
    pub(crate) fn truncate_temporary(
        &mut self,
        cx: &mut dyn ExecCx,
        old: &Arc<TableDef>,
    ) -> Result<Response, SqlError> {
        let new = self.make_private(cx, bind::table::spec_of(old))?;
        self.temporary.put(new);
        self.drop_temporary(old);
        Ok(Response::ok())
    }

    /// ALTER TABLE, CREATE INDEX and DROP INDEX: always by a copy, under the new name if there is
    /// one.
    ///
    /// # Errors
    /// 1050, 1215, 1845, and those of ALTER TABLE.
    pub(crate) fn alter_temporary(
        &mut self,
        cx: &mut dyn ExecCx,
        alter: &AlterTable,
        old: &Arc<TableDef>,
    ) -> Result<Response, SqlError> {
        let algorithm = match alter.algorithm {
            AlterAlgorithm::Inplace => Some("ALGORITHM=INPLACE"),
            AlterAlgorithm::Instant => Some("ALGORITHM=INSTANT"),
            _ => None,
        };
        if let Some(algorithm) = algorithm {
            let code = ErrorCode::ER_ALTER_OPERATION_NOT_SUPPORTED;
            return Err(SqlError::new(code, &[&algorithm, &"ALGORITHM=COPY"]));
        }
        self.refresh_schema();
        let altered = self.with_ddl_cx(old.collation, |ddl| bind::alter::bind(alter, old, ddl))?;
        let (mut spec, columns) = copied(old, altered.change);
        if !spec.foreign_keys.is_empty() {
            return Err(SqlError::new(ErrorCode::ER_CANNOT_ADD_FOREIGN, &[]));
        }
        if let Some((schema, name)) = altered.rename {
            let schema: Arc<str> = schema.map_or(old.schema.clone(), Into::into);
            self.target_database(&schema)?;
            let taken = self.temporary.find(&schema, &name);
            if taken.is_some_and(|t| t.id != old.id) {
                return Err(SqlError::new(ErrorCode::ER_TABLE_EXISTS_ERROR, &[&name]));
            }
            spec.checks = bind::check::renamed(&spec.checks, &spec.name, &name);
            (spec.schema, spec.name) = (schema, name.into());
        }
        spec.auto_increment = altered.auto_increment.unwrap_or(0);
        let (rows, new) = self.copy_table(cx, old, (spec, columns), CopyTarget::Temporary)?;
        if let Some(new) = new {
            let had = old.auto_increment_column().is_some();
            if let Some(first) = altered.auto_increment.filter(|_| had) {
                let (engine, id) = (self.server.engine.clone(), new.id);
                self.change(cx, move || engine.reset_auto_increment(id, first))?;
            }
            self.temporary.put(new);
        }
        self.drop_temporary(old);
        let warnings = self.conditions.total();
        Ok(Response::Done(Done {
            affected_rows: rows,
            insert_id: 0,
            info: format!("Records: {rows}  Duplicates: 0  Warnings: {warnings}"),
        }))
    }
}

/// The table that a change makes of `old`, and where its columns get their values.
fn copied(old: &TableDef, change: Change) -> (TableSpec, Vec<Source>) {
    let all = (0..old.columns.len()).map(Source::Old).collect();
    match change {
        Change::Nothing => (bind::table::spec_of(old), all),
        Change::Definition(new) => (bind::table::spec_of(&new), all),
        Change::Indexes { add, drop } => {
            let mut spec = bind::table::spec_of(old);
            let dropped = |index: &IndexSpec| {
                let mut indexes = old.indexes.iter();
                indexes.any(|i| drop.contains(&i.id) && i.name == index.name)
            };
            spec.indexes.retain(|index| !dropped(index));
            spec.indexes.extend(add);
            (spec, all)
        }
        Change::Copy { spec, columns } => (spec, columns),
    }
}
