//! Runs one statement: determines its kind, and what must happen before and after it.

use std::borrow::Cow;
use std::sync::Arc;

use super::kind::kind_of;
use nfold_catalog::Privileges;
use nfold_exec::{Checkpoints, ExecCx, StatementResult};
use nfold_observe::StatementKind;
use nfold_sql::ast::{self, Flush, FlushItem, MaintenanceKind, PrepareSource, Show, Statement};
use nfold_sql::digest::Digested;
use nfold_sql::parser::{Parsed, parse_parameterised_stoppable, parse_stoppable};
use nfold_types::{ErrorCode, Level, SqlError, Value};

use super::client_text::lexable;
use super::run::marker_type;
use crate::ddl;
use crate::introspection::show;
use crate::session::plans::Work;
use crate::session::prepared::{self, MAX_PARAMETERS, is_planned};
use crate::session::response::{Done, Response, WireSink};
use crate::session::{FreeWork, Session};

/// Whether a statement commits the open transaction before it runs (manual, "Statements That Cause
/// an Implicit Commit").
pub(super) fn commits(statement: &Statement) -> bool {
    use Statement::{Component, TableMaintenance};
    let other = statement.changes_accounts() || matches!(statement, Component(_));
    let other =
        other || matches!(statement, TableMaintenance(m) if m.kind != MaintenanceKind::Checksum);
    other || leaves_data(statement) || changes_schema(statement)
}

/// Whether a statement creates, changes or drops stored databases, tables, indexes or views.
fn changes_schema(statement: &Statement) -> bool {
    use Statement::*;
    match statement {
        CreateDatabase(_)
        | AlterDatabase(_)
        | DropDatabase { .. }
        | CreateView(_)
        | DropView { .. }
        | Truncate(_)
        | RenameTable(_)
        | AlterTable(_)
        | CreateIndex(_)
        | DropIndex { .. } => true,
        CreateTable(c) => !c.temporary,
        DropTable(d) => !d.temporary,
        _ => false,
    }
}

/// Whether a statement that commits changes stored definitions or accounts, so that it waits for
/// the end of FLUSH TABLES WITH READ LOCK and LOCK INSTANCE FOR BACKUP.
fn changes_definitions(statement: &Statement) -> bool {
    !leaves_data(statement) && !matches!(statement, Statement::TableMaintenance(_))
}

/// Whether a statement that commits changes neither tables nor accounts.
pub(super) fn leaves_data(statement: &Statement) -> bool {
    use Statement::*;
    matches!(
        statement,
        Flush(_)
            | LockTables(_)
            | ChangeSource(_)
            | ChangeFilter(_)
            | StartReplica { .. }
            | StopReplica(_)
            | ResetReplica { .. }
            | ResetBinaryLogs(_)
    )
}

/// Whether the binary log has the statement's text. CREATE TABLE ... SELECT is logged with its
/// rows.
fn is_logged(statement: &Statement) -> bool {
    let with_rows = matches!(statement, Statement::CreateTable(c) if c.query.is_some());
    changes_schema(statement) && !with_rows || statement.changes_accounts()
}

/// Whether a DDL statement may change or drop tables that exist.
fn changes_tables(statement: &Statement) -> bool {
    use Statement::*;
    matches!(
        statement,
        DropTable(_)
            | DropDatabase { .. }
            | Truncate(_)
            | RenameTable(_)
            | AlterTable(_)
            | CreateIndex(_)
            | DropIndex { .. }
            | TableMaintenance(_)
    )
}

/// Whether the executor runs the statement by a plan.
fn is_query(statement: &Statement) -> bool {
    use Statement::*;
    matches!(
        statement,
        Query(_) | Insert(_) | Update(_) | Delete(_) | LoadData(_) | Do(_) | Explain { .. }
    )
}

/// Whether the statement leaves the conditions of the previous one unchanged, because it shows
/// them or adds to them.
fn keeps_conditions(statement: &Statement) -> bool {
    matches!(
        statement,
        Statement::Show(
            Show::Warnings(_) | Show::Errors(_) | Show::WarningCount | Show::ErrorCount
        ) | Statement::GetDiagnostics(_)
            | Statement::Resignal
    )
}

/// Whether two names are equal. Mostly they are the same object.
#[inline]
fn same_text(a: &Option<Arc<str>>, b: &Option<Arc<str>>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => Arc::ptr_eq(a, b) || a == b,
        (a, b) => a.is_none() && b.is_none(),
    }
}

impl Session {
    /// Runs the first statement of `text`, whose digest is in `self.digested`.
    pub(crate) fn run_text(
        &mut self,
        cx: &mut dyn ExecCx,
        text: &[u8],
        sink: &mut WireSink<'_, '_>,
    ) -> Result<Response, SqlError> {
        if self.pass_gate_to_run(cx, text)? {
            return Ok(Response::ok());
        }
        if let Some(digested) = self.digested.take_if(|d| is_planned(d)) {
            let work = Work {
                text,
                digested: &digested,
                markers: &[],
                describe: false,
                parsed: None,
                hint: None,
            };
            self.conditions.clear();
            self.limit_query(cx, text);
            let result = self.run_rows(cx, &work, sink);
            self.digested = Some(digested);
            return result;
        }
        self.run_unplanned(cx, text, sink)
    }

    /// Runs a statement that is no query and changes no rows.
    #[inline(never)]
    fn run_unplanned(
        &mut self,
        cx: &mut dyn ExecCx,
        text: &[u8],
        sink: &mut WireSink<'_, '_>,
    ) -> Result<Response, SqlError> {
        let lexing = self.env.vars.settings().lexing;
        self.text_warnings.clear();
        let checkpoints = Checkpoints::new(cx);
        let parsed = parse_stoppable(text, lexing, &checkpoints, &mut self.text_warnings);
        // Not moved: a statement is large.
        let Ok(statement) = &parsed else {
            self.conditions.clear();
            return parsed.map(|_| Response::ok());
        };
        match statement {
            Statement::CreateTable(c) if c.query.is_some() => self.run_with_query(cx, text, sink),
            _ => self.run_statement(cx, statement, text, sink),
        }
    }

    pub(crate) fn parse_with_digest(
        &self,
        cx: &mut dyn ExecCx,
        text: &[u8],
    ) -> Result<(Digested, Parsed), SqlError> {
        let checkpoints = Checkpoints::new(cx);
        let mut digested = Digested::new();
        digested.read_stoppable(text, self.env.vars.settings().lexing, &checkpoints)?;
        let parsed = parse_parameterised_stoppable(text, &digested, false, &checkpoints)?;
        Ok((digested, parsed))
    }

    /// Runs a statement that contains a query. Its literals are parameters, as in a query itself.
    #[inline(never)]
    fn run_with_query(
        &mut self,
        cx: &mut dyn ExecCx,
        text: &[u8],
        sink: &mut WireSink<'_, '_>,
    ) -> Result<Response, SqlError> {
        let (digested, parsed) = self.parse_with_digest(cx, text)?;
        self.text_warnings = parsed.deprecated.clone();
        self.run_with_values(cx, (&parsed, text), (&digested, &[]), sink)
    }

    /// Runs a statement with parameters that is not planned.
    #[inline(never)]
    fn run_with_values(
        &mut self,
        cx: &mut dyn ExecCx,
        (parsed, text): (&Parsed, &[u8]),
        (digested, markers): (&Digested, &[Value]),
        sink: &mut WireSink<'_, '_>,
    ) -> Result<Response, SqlError> {
        let collation = self.env.vars.settings().collation;
        let statement = &parsed.statement;
        if matches!(statement, Statement::Set(_)) && !markers.is_empty() {
            // Its subqueries are planned and run as queries of their own.
            self.free_work = Some(Box::new(FreeWork {
                digested: digested.clone(),
                roles: parsed.roles.clone(),
                markers: markers.to_vec(),
            }));
        }
        let types: Vec<_> = match statement {
            Statement::CreateTable(_) | Statement::Set(_) => {
                let types = markers.iter().map(|v| marker_type(v, collation));
                types.collect()
            }
            _ => Vec::new(),
        };
        self.free_types = nfold_plan::param_types(digested, &types, collation);
        let checkpoints = Checkpoints::new(cx);
        let bound = (self.free_params).bind(digested, text, markers, &checkpoints);
        drop(checkpoints);
        let result = bound.and_then(|()| self.run_statement(cx, statement, text, sink));
        self.free_work = None;
        self.free_types.clear();
        self.free_params.clear();
        result
    }

    /// Runs a prepared statement with these values, in the database in which it was prepared.
    pub(crate) fn run_prepared(
        &mut self,
        cx: &mut dyn ExecCx,
        statement: &prepared::Statement,
        markers: &[Value],
        sink: &mut WireSink<'_, '_>,
    ) -> Result<Response, SqlError> {
        self.env.counters.count(StatementKind::StmtExecute);
        if self.pass_gate_to_run(cx, &statement.of.text)? {
            return Ok(Response::ok());
        }
        if same_text(&statement.database, &self.env.database) {
            return self.run_prepared_here(cx, statement, markers, sink);
        }
        let current = std::mem::replace(&mut self.env.database, statement.database.clone());
        self.plan_context_changed();
        let result = self.run_prepared_here(cx, statement, markers, sink);
        self.env.database = current;
        self.plan_context_changed();
        let dropped = statement
            .parsed
            .as_ref()
            .is_some_and(|p| matches!(p.statement, Statement::DropDatabase { .. }));
        if dropped {
            self.look_for_database();
        }
        result
    }

    /// Called after a statement that ran in another database has dropped a database. If that was
    /// the session's current one, updates the session's state.
    fn look_for_database(&mut self) {
        let Some(name) = self.env.database.clone() else {
            return;
        };
        self.refresh_schema();
        let stored = self.schema.database(&name).map(|d| d.def.collation);
        let collation =
            stored.or_else(|| crate::session::system_schemas::database(&name).map(|d| d.collation));
        if let Some(collation) = collation {
            return self.env.set_database(Some(&name), collation);
        }
        let gone = SqlError::new(ErrorCode::ER_BAD_DB_ERROR, &[&name]);
        self.conditions.push_error(Level::Note, &gone);
        self.facts.late += 1;
        let collation = self.env.vars.settings().collation_server;
        self.env.set_database(None, collation);
    }

    fn run_prepared_here(
        &mut self,
        cx: &mut dyn ExecCx,
        statement: &prepared::Statement,
        markers: &[Value],
        sink: &mut WireSink<'_, '_>,
    ) -> Result<Response, SqlError> {
        let Some(parsed) = &statement.parsed else {
            self.conditions.clear();
            self.limit_query(cx, &statement.of.text);
            let work = Work {
                text: &statement.of.text,
                digested: &statement.of.digested,
                markers,
                describe: false,
                parsed: None,
                hint: Some(&statement.plan),
            };
            return self.run_rows(cx, &work, sink);
        };
        if is_query(&parsed.statement) {
            self.conditions.clear();
            let work = Work {
                text: &statement.of.text,
                digested: &statement.of.digested,
                markers,
                describe: false,
                parsed: Some(parsed),
                hint: Some(&statement.plan),
            };
            return self.run_rows(cx, &work, sink);
        }
        let run = (&**parsed, &*statement.of.text);
        self.run_with_values(cx, run, (&statement.of.digested, markers), sink)
    }

    /// Runs a statement of the executor, and ends its transaction.
    pub(super) fn run_rows(
        &mut self,
        cx: &mut dyn ExecCx,
        work: &Work<'_>,
        sink: &mut WireSink<'_, '_>,
    ) -> Result<Response, SqlError> {
        let result = self.run(cx, work, sink);
        if result.is_ok() {
            self.note_row_query(work.text, work.markers);
        }
        let ended = self.end_work(cx, result.as_ref().err());
        let result = result?;
        ended?;
        Ok(self.after_rows(result, sink))
    }

    pub(crate) fn after_rows(
        &mut self,
        result: StatementResult,
        sink: &WireSink<'_, '_>,
    ) -> Response {
        if let Some(id) = result.generated_id {
            self.env.last_insert_id.set(id);
        }
        self.facts.run.rows_examined = result.examined;
        if result.is_query {
            self.facts.run.rows_sent = result.rows;
            self.env.found_rows.set(result.found_rows);
            self.env.row_count.set(-1);
            return Response::Streamed;
        }
        self.env.insert_id.set(0);
        if result.sets_found_rows {
            self.env.found_rows.set(result.found_rows);
        }
        let found_rows = sink.out.capabilities() & nfold_protocol::consts::cap::FOUND_ROWS != 0;
        // Only statements that change rows count those that they have found.
        let affected_rows = match found_rows {
            true => result.matched.max(result.affected),
            false => result.affected,
        };
        self.env.row_count.set(affected_rows as i64);
        Response::Done(Done {
            affected_rows,
            insert_id: match (result.generated_id, self.env.given_insert_id.get()) {
                (None, Some(given)) => given,
                _ => result.last_insert_id,
            },
            info: result.info(found_rows),
        })
    }

    /// Warns of deprecated syntax in a statement.
    #[cold]
    fn warn_of_text(&mut self, statement: &Statement) {
        // Planned statements warn when their plan runs.
        let planned = is_query(statement);
        for deprecated in self.text_warnings.drain(..) {
            if !planned {
                let warning = deprecated.warning();
                self.conditions.push_error(Level::Warning, &warning);
            }
        }
    }

    /// Runs a statement that is not planned.
    fn run_statement(
        &mut self,
        cx: &mut dyn ExecCx,
        statement: &Statement,
        text: &[u8],
        sink: &mut WireSink<'_, '_>,
    ) -> Result<Response, SqlError> {
        // Those that have a plan are counted when it runs.
        let is_planned = is_query(statement) && !matches!(statement, Statement::LoadData(_));
        if !is_planned && let Some(kind) = kind_of(statement) {
            self.env.counters.count(kind);
        }
        if !keeps_conditions(statement) {
            self.conditions.clear();
        }
        if !self.text_warnings.is_empty() {
            self.warn_of_text(statement);
        }
        self.refresh_rights();
        let commits = commits(statement);
        if commits {
            if !leaves_data(statement) {
                self.refuse_read_only()?;
                self.refuse_read_only_server()?;
                self.pass_update_gate()?;
            }
            self.commit(cx)?;
            self.table_locks_allow(statement)?;
        }
        let is_ddl = commits && changes_definitions(statement);
        if is_ddl {
            self.begin_ddl(cx)?;
        }
        if self.server.binlog.is_some() && is_logged(statement) {
            self.carried.deferred = false;
            self.carried.pending.attachment = match statement.changes_accounts() {
                true => self.account_attachment(self.without_current_user(text)),
                false => self.statement_attachment(statement, text),
            };
        }
        let mut response = self.dispatch(cx, statement, text, sink);
        if commits {
            response = self.after_implicit_commit(cx, statement, is_ddl, response);
        }
        if !self.handlers.is_empty() && changes_tables(statement) {
            self.close_changed_handlers();
        }
        if !self.engine.in_transaction() {
            self.engine.mdl().release_all();
        }
        if is_ddl {
            self.end_ddl();
        }
        if let Ok(Response::Done(done)) = &response
            && !matches!(statement, Statement::GetDiagnostics(_))
        {
            self.env.row_count.set(done.affected_rows as i64);
        }
        response
    }

    /// The second half of a statement that has committed the open transaction before it ran: its
    /// place in the binary log, and the locks of LOCK TABLES.
    fn after_implicit_commit(
        &mut self,
        cx: &mut dyn ExecCx,
        statement: &Statement,
        is_ddl: bool,
        mut response: Result<Response, SqlError>,
    ) -> Result<Response, SqlError> {
        // A statement that has changed nothing is not in the binary log, unless it has a GTID.
        let left = self.carried.pending.attachment.take();
        if is_ddl && left.is_none() && response.is_ok() && self.logging().is_some() {
            self.wait_for_replicas(cx);
        }
        if is_ddl && (self.gate.is_some() || self.source_gtid.is_some()) {
            let with_rows = matches!(statement, Statement::CreateTable(c) if c.query.is_some());
            let is_recorded = is_logged(statement) || with_rows;
            let ended = self.end_ddl_gtid(cx, left, response.is_ok() && is_recorded);
            response = response.and_then(|done| ended.map(|()| done));
        }
        if response.is_ok() && !matches!(statement, Statement::LockTables(_)) {
            response = self.renew_table_locks(cx).and(response);
        }
        response
    }

    fn dispatch(
        &mut self,
        cx: &mut dyn ExecCx,
        statement: &Statement,
        text: &[u8],
        sink: &mut WireSink<'_, '_>,
    ) -> Result<Response, SqlError> {
        use Statement::*;
        match statement {
            Query(_) | Insert(_) | Update(_) | Delete(_) | Do(_) | Explain { .. } => {
                self.limit_query(cx, text);
                let (digested, parsed) = self.parse_with_digest(cx, text)?;
                let work = Work::parsed(text, &digested, &parsed);
                self.run_rows(cx, &work, sink)
            }
            LoadData(load) => self.load_data(cx, load, text, sink),
            CreateDatabase(c) => self.create_database(cx, c),
            AlterDatabase(a) => self.alter_database(cx, a),
            DropDatabase { if_exists, name } => self.drop_database(cx, *if_exists, name.as_str()),
            CreateTable(c) => match &c.query {
                // It commits nothing, but a READ ONLY transaction refuses it.
                _ if c.temporary => {
                    self.refuse_read_only()?;
                    self.create_temporary(cx, c, text, sink)
                }
                Some(query) => self.create_table_select(cx, c, (query, text), sink),
                _ => ddl::run::table::run(self, cx, statement, text),
            },
            CreateView(v) => self.create_view(cx, v, text),
            DropView { if_exists, names } => self.drop_views(cx, *if_exists, names),
            DropTable(drop) if drop.temporary => {
                self.refuse_read_only()?;
                ddl::run::table::run(self, cx, statement, text)
            }
            DropTable(_)
            | Truncate(_)
            | RenameTable(_)
            | AlterTable(_)
            | CreateIndex(_)
            | DropIndex { .. }
            | TableMaintenance(_) => ddl::run::table::run(self, cx, statement, text),
            Begin(options) => self.begin(cx, options),
            Commit(options) => self.complete(cx, true, options),
            Rollback(options) => self.complete(cx, false, options),
            RollbackTo(name) => self.use_savepoint(cx, name.as_str(), false),
            ReleaseSavepoint(name) => self.use_savepoint(cx, name.as_str(), true),
            Savepoint(name) => self.savepoint(name.as_str()),
            Xa(xa) => {
                let response = self.xa(cx, xa)?;
                // XA COMMIT ... ONE PHASE is a commit like any other.
                if let ast::Xa::Prepare(_)
                | ast::Xa::Rollback(_)
                | ast::Xa::Commit {
                    one_phase: false, ..
                } = **xa
                {
                    self.wait_for_replicas(cx);
                }
                Ok(response)
            }
            LockTables(list) => self.lock_tables(cx, list),
            UnlockTables => self.unlock_tables(cx),
            LockInstance => self.lock_instance(cx, true),
            UnlockInstance => self.lock_instance(cx, false),
            Set(items) => self.set(cx, items, text),
            ResetPersist { if_exists, name } => self.reset_persist(*if_exists, name.as_ref()),
            Use(name) => self.use_database(name.as_str()).map(|()| Response::ok()),
            Kill { target, id } => self.kill_statement(cx, *target, id, text),
            Prepare { name, source } => self.prepare_text(cx, name.as_str(), source),
            Execute { name, using } => self.execute_text(cx, name.as_str(), using, sink),
            Deallocate(name) => self.deallocate(name.as_str()),
            Signal(s) => self.signal(cx, s, text),
            Resignal => {
                let code = ErrorCode::ER_RESIGNAL_WITHOUT_ACTIVE_HANDLER;
                Err(SqlError::new(code, &[]))
            }
            Handler(h) => self.handler(cx, h, text, sink),
            GetDiagnostics(get) => self.get_diagnostics(cx, get, text),
            Show(show) => self.show(cx, show),
            Describe { table, column } => show::schema::describe(self, cx, table, column.as_ref()),
            ExplainConnection(options, id) => self.explain_connection(cx, options, *id, sink),
            Flush(f) => self.flush(cx, f),
            ChangeSource(change) => self.change_source(cx, change),
            ChangeFilter(change) => self.change_filter(cx, change),
            StartReplica { until, channel } => {
                self.start_replica(cx, until.as_ref(), channel.as_ref())
            }
            StopReplica(channel) => self.stop_replica(cx, channel.as_ref()),
            ResetReplica { all, channel } => self.reset_replica(cx, *all, channel.as_ref()),
            PurgeTo(file) => self.purge_to(cx, file),
            PurgeBefore(time) => self.purge_before(cx, time, text),
            Binlog(text) => self.binlog_statement(cx, text),
            ResetBinaryLogs(to) => self.reset_binary_logs(cx, *to),
            Component(component) => self.component(cx, component, text),
            CreateUser(c) => self.create_user(cx, (c, text)),
            AlterUser(c) => self.alter_user(cx, (c, text)),
            SetPassword(set) => self.set_password(cx, set),
            DropUser { if_exists, users } => self.drop_user(cx, *if_exists, users),
            RenameUser(list) => self.rename_user(cx, list),
            Grant(g) => self.grant(cx, g),
            Revoke(r) => self.revoke(cx, r),
            Role(r) => self.role_statement(cx, r),
            Empty => Ok(Response::ok()),
            Unsupported { what } => Err(SqlError::not_supported(what)),
        }
    }

    /// Error 1227 without RELOAD, or the privilege for the item alone.
    fn need_flush(&self, item: &FlushItem) -> Result<(), SqlError> {
        let (dynamic, names) = match item {
            FlushItem::Tables { .. } => ("FLUSH_TABLES", "RELOAD or FLUSH_TABLES"),
            FlushItem::Status => ("FLUSH_STATUS", "RELOAD or FLUSH_STATUS"),
            FlushItem::Privileges => ("FLUSH_PRIVILEGES", "RELOAD or FLUSH_PRIVILEGES"),
            FlushItem::Other(_) => ("", "RELOAD"),
        };
        match self.rights.held().has_dynamic(dynamic) {
            true => Ok(()),
            false => self.rights.need_global(Privileges::RELOAD, names),
        }
    }

    /// FLUSH. Most items need no action, because their data is always current.
    fn flush(&mut self, cx: &mut dyn ExecCx, f: &Flush) -> Result<Response, SqlError> {
        for item in &f.what {
            self.need_flush(item)?;
        }
        for item in &f.what {
            match item {
                FlushItem::Tables {
                    for_export: true, ..
                } => {
                    return Err(SqlError::not_supported("FLUSH TABLES ... FOR EXPORT"));
                }
                FlushItem::Tables {
                    names, read_lock, ..
                } => {
                    match (read_lock, names.is_empty()) {
                        (false, _) => self.table_locks_allow_flush(names)?,
                        (true, true) => self.lock_all_tables(cx)?,
                        (true, false) => self.flush_and_lock(cx, names)?,
                    }
                    self.server.opened.close_all();
                    self.handlers.rewind();
                }
                FlushItem::Privileges => {
                    self.server.registry.login_failures().forget_all();
                    self.server.usage.begin_hours();
                }
                FlushItem::Other(words) if words == "USER_RESOURCES" => {
                    self.server.usage.begin_hours();
                }
                FlushItem::Status => self.env.counters.flush(),
                FlushItem::Other(words) if words.contains("LOGS") => {
                    let is = |kind| words.contains(kind) || *words == "LOGS";
                    if is("SLOW") {
                        self.server.slow_log.reopen();
                    }
                    if is("GENERAL") {
                        self.server.general_log.reopen();
                    }
                    if is("BINARY") {
                        self.rotate_binary_log(cx)?;
                    }
                }
                FlushItem::Other(words) => {
                    return Err(SqlError::not_supported(format!("FLUSH {words}")));
                }
            }
        }
        Ok(Response::ok())
    }

    /// PREPARE.
    fn prepare_text(
        &mut self,
        cx: &mut dyn ExecCx,
        name: &str,
        source: &PrepareSource,
    ) -> Result<Response, SqlError> {
        use nfold_exec::SessionEnv;
        let text = match source {
            PrepareSource::Text(text) => Cow::Borrowed(text.as_slice()),
            PrepareSource::Variable(v) => match self.env.user_var(&v.to_lowercase()) {
                Value::Bytes(b) => Cow::Owned(b),
                Value::Null => Cow::Borrowed(&b"NULL"[..]),
                Value::Int(n) => Cow::Owned(n.to_string().into_bytes()),
                _ => Cow::Borrowed(&[][..]),
            },
        };
        let settings = self.env.vars.settings();
        let text = match settings.rewritten {
            Some(set) => Cow::Owned(lexable(set, settings.lexing, &text).into_owned()),
            None => text,
        };
        self.log_command("Prepare", &text, &[]);
        if self.prepared.close_name(name) {
            self.env.counters.count(StatementKind::StmtClose);
        }
        let mut statement = self.parse_prepared(cx, &text)?;
        if statement.parsed.is_none() {
            let work = Work {
                text: &statement.of.text,
                digested: &statement.of.digested,
                markers: &[],
                describe: statement.of.digested.markers() > 0,
                parsed: None,
                hint: None,
            };
            let plan = self.describe(cx, &work)?;
            plan.share_text(&mut statement.of);
            plan.warn_of_text(&mut self.conditions);
        }
        self.prepared.set_name(name, statement);
        self.env.note_change();
        Ok(Response::Done(Done {
            info: "Statement prepared".into(),
            ..Done::default()
        }))
    }

    /// Prepares a text. Error 1461 if there are too many prepared statements.
    pub(crate) fn parse_prepared(
        &mut self,
        cx: &mut dyn ExecCx,
        text: &[u8],
    ) -> Result<prepared::Statement, SqlError> {
        self.env.counters.count(StatementKind::StmtPrepare);
        let most = self
            .env
            .globals
            .with_settings(|s| s.max_prepared_stmt_count)
            .min(prepared::MAX_STATEMENTS);
        if self.prepared.len() >= most {
            return Err(SqlError::new(
                ErrorCode::ER_MAX_PREPARED_STMT_COUNT_REACHED,
                &[&most],
            ));
        }
        let statement = prepared::Statement::parse(
            text,
            self.env.vars.settings().lexing,
            self.env.database.clone(),
            &Checkpoints::new(cx),
        )?;
        // A planned statement warns when its plan runs.
        if let Some(parsed) = &statement.parsed {
            for deprecated in &parsed.deprecated {
                let warning = deprecated.warning();
                self.conditions.push_error(Level::Warning, &warning);
            }
        }
        Ok(statement)
    }

    /// EXECUTE.
    fn execute_text(
        &mut self,
        cx: &mut dyn ExecCx,
        name: &str,
        using: &[String],
        sink: &mut WireSink<'_, '_>,
    ) -> Result<Response, SqlError> {
        let unknown = || SqlError::new(ErrorCode::ER_UNKNOWN_STMT_HANDLER, &[&name, &"EXECUTE"]);
        let id = self.prepared.id_of(name).ok_or_else(unknown)?;
        let statement = self.prepared.take(id).ok_or_else(unknown)?;
        let wanted = usize::from(statement.parameters());
        debug_assert!(wanted <= MAX_PARAMETERS as usize);
        let result = if using.len() == wanted {
            let values: Vec<Value> = using
                .iter()
                .map(|v| self.env.parameter(&v.to_lowercase()))
                .collect();
            self.log_command("Execute", &statement.of.text, &values);
            self.run_prepared(cx, &statement, &values, sink)
        } else {
            Err(SqlError::new(ErrorCode::ER_WRONG_ARGUMENTS, &[&"EXECUTE"]))
        };
        self.prepared.give_back(id, statement);
        result
    }

    fn deallocate(&mut self, name: &str) -> Result<Response, SqlError> {
        if self.prepared.close_name(name) {
            self.env.note_change();
            self.env.counters.count(StatementKind::StmtClose);
            return Ok(Response::ok());
        }
        Err(SqlError::new(
            ErrorCode::ER_UNKNOWN_STMT_HANDLER,
            &[&name, &"DEALLOCATE PREPARE"],
        ))
    }

    /// Called after every statement: updates `@@warning_count` and the conditions for SHOW
    /// WARNINGS.
    pub(crate) fn after_statement(&mut self, failed: Option<&SqlError>, diagnostics_kept: bool) {
        if let Some(e) = failed {
            match &self.signaled {
                Some(signaled) => {
                    (self.conditions).push_signaled(Level::Error, e, signaled.clone());
                }
                // MySQL does not record this one.
                None if e.code == ErrorCode::ER_GET_STACKED_DA_WITHOUT_ACTIVE_HANDLER => {}
                None => self.conditions.push_error(Level::Error, e),
            }
            self.env.row_count.set(-1);
        }
        if !diagnostics_kept || failed.is_some() {
            self.env.warning_count = self.conditions.total();
            self.env.error_count = self
                .conditions
                .list()
                .iter()
                .filter(|c| c.level == Level::Error)
                .count() as u64;
        }
    }
}
