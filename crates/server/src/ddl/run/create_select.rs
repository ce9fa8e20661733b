//! CREATE TABLE ... SELECT.
//!
//! # Picture
//! ```text
//!   plan the query ─▶ its columns ─▶ a table without a name ─▶ INSERT ... SELECT in a transaction ─▶ commit ─▶ the name
//!                                      └ an error, a kill or a crash on the way: the table is dropped
//! ```
//! So the statement is atomic. The name is checked at the beginning and again at the end: if
//! another session has taken it meanwhile, the statement fails with error 1050.

use std::cell::RefCell;
use std::sync::Arc;

use nfold_catalog::{DatabaseDef, Privileges, SchemaSnapshot, TableDef};
use nfold_engine::ChangeJournal;
use nfold_exec::{Checkpoints, ExecCx, Executable, StatementResult, execute};
use nfold_plan::bind::query_results;
use nfold_plan::results::ResultColumn;
use nfold_plan::{ColumnUses, Plan, PlanCx, plan_statement};
use nfold_sql::ast::{
    CreateTable, Ident, Insert, InsertSource, ObjectName, OnExisting, Query, Statement,
};
use nfold_types::{ErrorCode, Level, SqlError};

use super::database::DATABASES;
use crate::ddl::bind;
use crate::ddl::show::{Quoting, create_table};
use crate::session::Session;
use crate::session::locks::{ids_of, is_write};
use crate::session::plan_info::{Info, plan_cx};
use crate::session::response::{Response, WireSink};
use crate::session::tables::{TableUse, tables_of};

/// The name of the new table while it is filled. No query can name it.
const NEW: &str = "";

impl Session {
    /// Runs the statement. The open transaction has been committed.
    pub fn create_table_select(
        &mut self,
        cx: &mut dyn ExecCx,
        c: &CreateTable,
        (query, text): (&Query, &[u8]),
        sink: &mut WireSink<'_, '_>,
    ) -> Result<Response, SqlError> {
        let (schema, name) = (self.schema_of(&c.name)?, c.name.name.as_str());
        let needs = Privileges::CREATE.union(Privileges::INSERT);
        self.rights.need_table(needs, &schema, name)?;
        bind::table::refuse_attributes(c)?;
        self.refresh_schema();
        let database = self.target_database(&schema)?;
        if !self.is_free(c, &schema)? {
            return Ok(Response::ok());
        }
        if query.into.is_some() {
            return Err(SqlError::not_supported("CREATE TABLE ... SELECT ... INTO"));
        }
        let mut insert = insertion(c, query);
        let planned = self.plan_results(cx, &insert, query, text);
        let done = planned.and_then(|results| {
            insert.columns = Some(bind::table::named(&results));
            self.make_and_fill(cx, c, (&database, &results), (&insert, text), sink)
        });
        let (def, journal, result) = match done {
            Ok(done) => done,
            Err(e) => {
                self.rollback(cx)?;
                return Err(e);
            }
        };
        if let Err(e) = self.attach_table(cx, &def, journal) {
            self.abandon(cx, def);
            return Err(e);
        }
        let named = self.give_name(cx, c, def);
        self.carried.pending.attachment = None;
        named?;
        Ok(self.after_rows(result, sink))
    }

    /// Whether no table has the name. If one has it and the statement says IF NOT EXISTS, adds a
    /// note.
    ///
    /// # Errors
    /// 1050.
    pub(super) fn is_free(&mut self, c: &CreateTable, schema: &str) -> Result<bool, SqlError> {
        let name = c.name.name.as_str();
        if self.schema.table(schema, name).is_none() {
            return Ok(true);
        }
        if !c.if_not_exists {
            return Err(SqlError::new(ErrorCode::ER_TABLE_EXISTS_ERROR, &[&name]));
        }
        self.conditions
            .push(Level::Note, ErrorCode::ER_TABLE_EXISTS_ERROR, &[&name]);
        Ok(false)
    }

    /// The result columns of the query. Its tables stay locked until the end of the transaction, so
    /// that the columns cannot change.
    pub(crate) fn plan_results(
        &mut self,
        cx: &mut dyn ExecCx,
        insert: &Insert,
        query: &Query,
        text: &[u8],
    ) -> Result<Vec<ResultColumn>, SqlError> {
        let database = self.env.database.clone();
        let statement = Statement::Insert(Box::new(insert.clone()));
        let mut uses = tables_of(&statement, database.as_deref())?;
        self.temporary.leave_out(&mut uses);
        let target = match &insert.table.schema {
            Some(schema) => Some(schema.as_str()),
            None => database.as_deref(),
        };
        // The privilege to create the table was checked before.
        let is_target = |u: &TableUse| {
            Some(&*u.schema) == target && *u.name == *insert.table.name.value && is_write(u)
        };
        uses.retain(|u| !is_target(u));
        self.add_behind_views(&mut uses)?;
        self.check_uses(&uses)?;
        let held = std::mem::take(&mut self.table_locks);
        let locked = self.lock_tables_shared(cx, &mut |schema| ids_of(&uses, schema, &held));
        self.table_locks = held;
        locked?;
        let sight = self.temporary.sight(&self.schema);
        let info = Info {
            env: &self.env,
            engine: &self.server.engine,
            checkpoint: &Checkpoints::new(cx),
        };
        let columns = ColumnUses::default();
        let cx = PlanCx {
            stored: &self.schema,
            column_uses: Some(&columns),
            ..plan_cx(&info, &sight, text, &self.free_types)
        };
        let results = query_results(&cx, query);
        self.check_columns(&columns.take())?;
        results
    }

    fn plan_in(
        &self,
        cx: &mut dyn ExecCx,
        schema: &SchemaSnapshot,
        statement: &Statement,
        text: &[u8],
    ) -> Result<Plan, SqlError> {
        let info = Info {
            env: &self.env,
            engine: &self.server.engine,
            checkpoint: &Checkpoints::new(cx),
        };
        let cx = PlanCx {
            stored: &self.schema,
            ..plan_cx(&info, schema, text, &self.free_types)
        };
        plan_statement(&cx, statement)
    }

    /// Creates the table without a name and fills it. Returns it together with the result of
    /// filling it.
    fn make_and_fill(
        &mut self,
        cx: &mut dyn ExecCx,
        c: &CreateTable,
        (database, results): (&DatabaseDef, &[ResultColumn]),
        (insert, text): (&Insert, &[u8]),
        sink: &mut WireSink<'_, '_>,
    ) -> Result<(Arc<TableDef>, Option<Box<ChangeJournal>>, StatementResult), SqlError> {
        let spec = self.with_ddl_cx(database.collation, |ddl| {
            bind::table::bind(c, results, &database.name, ddl)
        })?;
        let engine = self.server.engine.clone();
        let def = self.change(cx, move || engine.create_unnamed_table(spec))?;
        let sight = self.temporary.sight(&self.schema);
        let filled = self.fill(cx, (&sight, &def), (insert, text), sink);
        // The binary log has the rows together with the table.
        let journal = self.engine.take_journal();
        let ended = match &filled {
            Ok(_) => self.commit(cx),
            Err(_) => self.rollback(cx),
        };
        match filled.and_then(|result| ended.map(|()| result)) {
            Ok(result) => Ok((def, journal, result)),
            Err(e) => {
                self.abandon(cx, def);
                Err(e)
            }
        }
    }

    /// Inserts the rows into the new table. The query runs in the schema `sight`, in which another
    /// table may have the new table's name. The caller ends the work.
    pub(crate) fn fill(
        &mut self,
        cx: &mut dyn ExecCx,
        (sight, new): (&SchemaSnapshot, &Arc<TableDef>),
        (insert, text): (&Insert, &[u8]),
        sink: &mut WireSink<'_, '_>,
    ) -> Result<StatementResult, SqlError> {
        let mut insert = insert.clone();
        insert.table = ObjectName {
            schema: Some(Ident::new(&*new.schema)),
            name: Ident::new(NEW),
        };
        let mut schema = sight.clone();
        schema.put_table_as(NEW, new.clone());
        let statement = Statement::Insert(Box::new(insert));
        let mut plan = self.plan_in(cx, &schema, &statement, text)?;
        plan.check_constants_leniently();
        let mut operators = Executable::new(Arc::new(plan));
        let warnings = RefCell::new(std::mem::take(&mut self.conditions));
        self.begin_work(true);
        let result = execute(
            &mut operators,
            &self.server.engine,
            &self.free_params,
            &mut self.engine,
            cx,
            &self.env,
            &warnings,
            sink,
        );
        self.conditions = warnings.into_inner();
        result
    }

    /// Sets the events that the change which names the table carries for the binary log.
    fn attach_table(
        &mut self,
        cx: &mut dyn ExecCx,
        def: &TableDef,
        journal: Option<Box<ChangeJournal>>,
    ) -> Result<(), SqlError> {
        if self.logging().is_none() {
            return Ok(());
        }
        let zone = &self.env.vars.settings().zone;
        let sql = create_table((def, false), 0, zone, Quoting { always: true });
        let sql = format!("{sql} START TRANSACTION");
        let attachment = self.filled_table(cx, &def.schema, sql, journal.as_deref())?;
        self.carried.deferred = false;
        self.carried.pending.attachment = attachment;
        Ok(())
    }

    /// Names the filled table.
    fn give_name(
        &mut self,
        cx: &mut dyn ExecCx,
        c: &CreateTable,
        def: Arc<TableDef>,
    ) -> Result<(), SqlError> {
        let named = self.claim_name(cx, c, &def);
        if named.is_err() {
            self.abandon(cx, def);
        }
        named
    }

    fn claim_name(
        &mut self,
        cx: &mut dyn ExecCx,
        c: &CreateTable,
        def: &Arc<TableDef>,
    ) -> Result<(), SqlError> {
        let _claim = self.lock_tables_exclusive(cx, &[DATABASES])?;
        self.refresh_schema();
        self.target_database(&def.schema)?;
        if self.schema.table(&def.schema, &def.name).is_some() {
            let name = c.name.name.as_str();
            return Err(SqlError::new(ErrorCode::ER_TABLE_EXISTS_ERROR, &[&name]));
        }
        let (engine, def) = (self.server.engine.clone(), def.clone());
        self.change(cx, move || engine.name_table(&def))
    }

    /// Drops a table without a name. If this cannot wait, the next start drops it.
    fn abandon(&mut self, cx: &mut dyn ExecCx, def: Arc<TableDef>) {
        let engine = self.server.engine.clone();
        let gone = self.change(cx, move || {
            engine.abandon_table(&def);
            Ok(())
        });
        if let Err(error) = gone {
            tracing::warn!(%error, "a table that CREATE TABLE ... SELECT has not finished is left to the next start");
        }
    }
}

/// The INSERT that fills the table.
pub(crate) fn insertion(c: &CreateTable, query: &Query) -> Insert {
    Insert {
        replace: c.on_existing == OnExisting::Replace,
        ignore: c.on_existing == OnExisting::Ignore,
        table: c.name.clone(),
        partitions: Vec::new(),
        columns: None,
        source: InsertSource::Query(Box::new(query.clone())),
        row_alias: None,
        on_duplicate: Vec::new(),
    }
}
