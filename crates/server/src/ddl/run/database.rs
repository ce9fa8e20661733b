//! CREATE, ALTER and DROP DATABASE.

use nfold_catalog::{DatabaseDef, Privileges, TableId};
use nfold_exec::ExecCx;
use nfold_sql::ast::{AlterDatabase, CreateDatabase};
use nfold_types::{ErrorCode, Level, SqlError};

use crate::ddl::bind::foreign;
use crate::ddl::bind::{check_length, named_collation};
use crate::session::Session;
use crate::session::response::Response;
use crate::session::system_schemas::is_system_schema;

/// The id that CREATE and DROP DATABASE claim, among others. No table has it.
pub const DATABASES: TableId = TableId(u64::MAX);

/// Checks a name: errors 1102 and 1059.
fn check_name(name: &str) -> Result<(), SqlError> {
    if name.is_empty() || name.ends_with(' ') || name.contains('\0') {
        return Err(SqlError::new(ErrorCode::ER_WRONG_DB_NAME, &[&name]));
    }
    check_length(name)
}

impl Session {
    /// CREATE DATABASE
    pub(crate) fn create_database(
        &mut self,
        cx: &mut dyn ExecCx,
        c: &CreateDatabase,
    ) -> Result<Response, SqlError> {
        let name = c.name.as_str();
        check_name(name)?;
        if is_system_schema(name) {
            return Err(self.rights.no_database(name));
        }
        self.rights.need_database(Privileges::CREATE, name)?;
        let written = named_collation(c.charset.as_deref(), c.collation.as_deref())?;
        let collation = written.unwrap_or(self.env.vars.settings().collation_server);
        // One at a time, so that two sessions do not create the same database.
        let _claim = self.lock_tables_exclusive(cx, &[DATABASES])?;
        self.refresh_schema();
        if self.schema.database(name).is_some() {
            if !c.if_not_exists {
                return Err(SqlError::new(ErrorCode::ER_DB_CREATE_EXISTS, &[&name]));
            }
            self.conditions
                .push(Level::Note, ErrorCode::ER_DB_CREATE_EXISTS, &[&name]);
            return Ok(Response::affected(1));
        }
        self.put_database(
            cx,
            DatabaseDef {
                name: name.into(),
                collation,
            },
        )?;
        Ok(Response::affected(1))
    }

    fn put_database(&mut self, cx: &mut dyn ExecCx, def: DatabaseDef) -> Result<(), SqlError> {
        let engine = self.server.engine.clone();
        self.change(cx, move || engine.put_database(def))
    }

    /// ALTER DATABASE
    pub(crate) fn alter_database(
        &mut self,
        cx: &mut dyn ExecCx,
        a: &AlterDatabase,
    ) -> Result<Response, SqlError> {
        let current = self.env.database.as_deref().map(str::to_owned);
        let name = a.name.as_ref().map(|n| n.as_str().to_owned()).or(current);
        let name = name.ok_or_else(|| SqlError::new(ErrorCode::ER_NO_DB_ERROR, &[]))?;
        check_name(&name)?;
        self.rights.need_database(Privileges::ALTER, &name)?;
        let _claim = self.lock_tables_exclusive(cx, &[DATABASES])?;
        self.refresh_schema();
        let old = self
            .schema
            .database(&name)
            .ok_or_else(|| SqlError::new(ErrorCode::ER_BAD_DB_ERROR, &[&name]))?;
        let mut def = old.def.clone();
        if let Some(collation) = named_collation(a.charset.as_deref(), a.collation.as_deref())? {
            def.collation = collation;
        }
        let (own, collation) = (self.env.database.as_deref() == Some(&*name), def.collation);
        self.put_database(cx, def)?;
        if own {
            self.env.set_database(Some(&name), collation);
        }
        Ok(Response::affected(1))
    }

    /// DROP DATABASE: drops all its tables too.
    pub(crate) fn drop_database(
        &mut self,
        cx: &mut dyn ExecCx,
        if_exists: bool,
        name: &str,
    ) -> Result<Response, SqlError> {
        check_name(name)?;
        if is_system_schema(name) {
            return Err(self.rights.no_database(name));
        }
        self.rights.need_database(Privileges::DROP, name)?;
        let (_claim, tables) = loop {
            self.refresh_schema();
            let Some(database) = self.schema.database(name) else {
                if !if_exists {
                    return Err(SqlError::new(ErrorCode::ER_DB_DROP_EXISTS, &[&name]));
                }
                self.conditions
                    .push(Level::Note, ErrorCode::ER_DB_DROP_EXISTS, &[&name]);
                return Ok(Response::affected(0));
            };
            let mut ids: Vec<TableId> = database.tables.values().map(|t| t.id).collect();
            ids.push(DATABASES);
            let (tables, version) = (ids.len() as u64 - 1, self.schema.version);
            let claim = self.lock_tables_exclusive(cx, &ids)?;
            // A table that was created meanwhile is not claimed yet.
            if version == self.server.engine.catalog().version() {
                break (claim, tables);
            }
        };
        if self.env.vars.settings().foreign_key_checks
            && let Some(database) = self.schema.database(name)
        {
            let dropped: Vec<_> = database.tables.values().cloned().collect();
            foreign::check_droppable(&self.schema, &dropped)?;
        }
        let (engine, owned) = (self.server.engine.clone(), name.to_owned());
        self.change(cx, move || engine.drop_database(&owned))?;
        if self.env.database.as_deref() == Some(name) {
            let collation = self.env.vars.settings().collation_server;
            self.env.set_database(None, collation);
            self.env.note_database();
            self.plan_context_changed();
        }
        Ok(Response::affected(tables))
    }
}
