//! The commands of a connection: runs the statements of each command, and sends their answers.

use std::borrow::Cow;

use nfold_exec::{Checkpoints, SessionEnv, WireFormat, plan_columns};
use nfold_observe::StatementKind;
use nfold_observe::digests::access;
use nfold_protocol::command::{BinlogDump, ExecuteHeader, RegisterReplica};
use nfold_protocol::consts::{cap, status};
use nfold_protocol::response::{self, Column};
use nfold_sql::digest::Digested;
use nfold_sync::words::prefetch_value;
use nfold_types::{Charset, ErrorCode, SqlError};

use super::client_text::lexable;
use crate::net::conn::ResponseWriter;
use crate::net::fiber::handler::{ClientError, Limits, LoginInfo, SessionHandler};
use crate::net::worker::{FiberCx, KillKind};
use crate::session::Session;
use crate::session::cx::{FiberExec, apart};
use crate::session::plans::Work;
use crate::session::response::{Done, Response, WireSink, send_ok, send_rows, wire_column};
use crate::session::statistics::StatementFacts;
use crate::session::tracking::TrackedGtids;
use crate::session::transaction_info::{Now, done};

/// The flag of a read-only cursor.
const CURSOR_READ_ONLY: u8 = 1;

/// Error 1243, with the name of the function that finds it in MySQL.
pub(super) fn unknown_statement(id: u32) -> SqlError {
    let code = ErrorCode::ER_UNKNOWN_STMT_HANDLER;
    SqlError::new(code, &[&id, &"mysql_stmt_precheck"])
}

/// The status flags that tell how tables were read.
fn index_flags(reads: u8) -> u16 {
    if reads & access::NO_INDEX != 0 {
        status::NO_INDEX_USED
    } else {
        0
    }
}

impl Session {
    /// Publishes the session's state that the connection shows.
    pub(crate) fn publish(&self, cx: &FiberCx<'_>) {
        cx.set_database(self.env.database.as_deref());
        let s = self.env.vars.settings();
        cx.set_limits(Limits {
            wait_timeout: s.wait_timeout,
            net_read_timeout: s.net_read_timeout,
            net_write_timeout: s.net_write_timeout,
            max_allowed_packet: s.max_allowed_packet,
        });
    }

    /// Runs one statement and answers it. False: it failed, so the following statements of the text
    /// do not run.
    pub(super) fn answer(
        &mut self,
        cx: &FiberCx<'_>,
        out: &mut ResponseWriter<'_>,
        format: WireFormat,
        more: bool,
        run: impl FnOnce(
            &mut Session,
            &mut FiberExec<'_, '_>,
            &mut WireSink<'_, '_>,
        ) -> Result<Response, SqlError>,
    ) -> bool {
        self.env.begin_statement(cx.unix_us());
        self.facts = StatementFacts::default();
        let mut fiber = FiberExec { fiber: cx };
        out.set_more_results(more);
        out.set_charset(self.env.name_charset());
        let collation = self.env.result_collation();
        let before = self.env.changes();
        let mut sink = WireSink {
            out,
            format,
            collation,
            begun: false,
            rows: 0,
        };
        let mut result = run(self, &mut fiber, &mut sink);
        if let Ok(Response::Rows(set)) = &result {
            if set.counted {
                self.env.found_rows.set(set.rows.len() as u64);
            }
            self.env.row_count.set(-1);
            self.facts.run.rows_sent = set.rows.len() as u64;
            let zone = &self.env.vars.settings().zone;
            let charset = self.env.result_charset();
            if let Err(e) = send_rows(set, &mut sink, zone, charset) {
                result = Err(e);
            }
        }
        cx.lift_limits();
        if self.env.changes() != before {
            self.publish(cx);
        }
        self.finish_answer(cx, result, out)
    }

    /// The status flags at the end of a statement.
    pub(super) fn end_flags(&self) -> u16 {
        self.status_flags() | index_flags(self.facts.run.access)
    }

    /// How many warnings the end of an answer names.
    pub(super) fn warning_count(&self) -> u16 {
        let warnings = self.conditions.total() - self.facts.late;
        warnings.min(u64::from(u16::MAX)) as u16
    }

    /// Lets the answer tell the client what has changed in the session.
    #[cold]
    fn tell_changes(
        &mut self,
        cx: &FiberCx<'_>,
        result: &Result<Response, SqlError>,
        out: &mut ResponseWriter<'_>,
    ) {
        match result {
            Err(_) => return self.env.forget_changes(),
            Ok(Response::Done(_)) => {}
            Ok(Response::Rows(_) | Response::Streamed) => self.note_done(done::ROWS),
        }
        let news = (self.new_gtids(cx), Some(self.transaction_now()));
        if let Some(changes) = self.env.take_changes(news) {
            out.set_state(changes);
        }
    }

    /// The open transaction does something that the client may want to hear of.
    fn note_done(&mut self, done: u8) {
        if let Some(info) = self.env.transaction_info() {
            info.note(done);
        }
    }

    /// The session's transaction, as its client may want to hear of it.
    fn transaction_now(&self) -> Now {
        let explicit = self.engine.is_explicit();
        Now {
            explicit,
            implicit: !explicit && self.engine.in_transaction(),
            locks_tables: !self.table_locks.is_empty(),
            isolation: self.next_transaction.isolation,
            read_only: self.next_transaction.read_only,
        }
    }

    /// The GTIDs that the client is to hear of, if the session has committed changes since it was
    /// asked last. Waits until the commit is in the binary log. `None` also after a KILL meanwhile.
    fn new_gtids(&mut self, cx: &FiberCx<'_>) -> Option<String> {
        let tracked = self.env.take_tracked_gtids();
        let commit = self.engine.take_last_commit();
        let log = self.server.binlog.clone().filter(|log| log.is_active())?;
        if tracked == TrackedGtids::Off {
            return None;
        }
        let commit = commit?;
        let find = move || {
            log.catch_up();
            log.gtid_of(commit)
        };
        let own = apart(&mut FiberExec { fiber: cx }, find).ok().flatten()?;
        Some(match tracked {
            TrackedGtids::All => self.server.gtids("gtid_executed").to_string(),
            _ => own.to_string(),
        })
    }

    fn finish_answer(
        &mut self,
        cx: &FiberCx<'_>,
        result: Result<Response, SqlError>,
        out: &mut ResponseWriter<'_>,
    ) -> bool {
        self.after_statement(result.as_ref().err(), false);
        out.set_charset(self.env.name_charset());
        self.facts.run.failed = result.is_err();
        if let Ok(Response::Done(done)) = &result {
            self.facts.run.rows_affected = done.affected_rows;
        }
        out.set_status(self.end_flags());
        if self.env.has_changes() {
            self.tell_changes(cx, &result, out);
        }
        let warnings = self.warning_count();
        match &result {
            Ok(Response::Done(done)) => send_ok(done, warnings, out),
            Ok(Response::Rows(set)) if set.of_conditions => out.end_rows(0),
            Ok(Response::Rows(_) | Response::Streamed) => out.end_rows(warnings),
            Err(e) => {
                out.set_more_results(false);
                let mut error = ClientError::from(e);
                if let Some(signaled) = self.signaled.take() {
                    error.code = signaled.errno;
                    error.sqlstate = signaled.sqlstate.into_string().into();
                }
                out.error(&error);
            }
        }
        result.is_ok()
    }

    /// A text of the client in character set `set` as the lexer reads it.
    #[cold]
    fn lexable<'t>(&self, set: &Charset, text: &'t [u8]) -> Cow<'t, [u8]> {
        lexable(set, self.env.vars.settings().lexing, text)
    }

    pub(super) fn refuse(&mut self, out: &mut ResponseWriter<'_>, e: &SqlError) {
        self.conditions.clear();
        self.after_statement(Some(e), false);
        out.set_charset(self.env.name_charset());
        out.set_status(self.status_flags());
        out.error(&ClientError::from(e));
    }

    /// Ends the connection after this command if the statement requested it (`KILL` of its own id,
    /// COMMIT RELEASE).
    fn end_if_asked(&mut self) {
        if self.close_after {
            self.server
                .registry
                .kill(self.env.login.connection_id, KillKind::Connection);
        }
    }

    /// Runs the statements of a text one after the other, until one fails.
    fn texts(&mut self, cx: &FiberCx<'_>, sql: &[u8], out: &mut ResponseWriter<'_>) {
        let mut at = 0;
        loop {
            let text = &sql[at..];
            let started = cx.now();
            let settings = self.env.vars.settings();
            cx.begin_statement(settings.statement_memory, text.len());
            let lexing = settings.lexing;
            if text.len() > Digested::SHORT_TEXT {
                self.limit_query(&mut FiberExec { fiber: cx }, text);
                if let Err(e) = self.digest_long(cx, text) {
                    return self.refuse(out, &e);
                }
            } else {
                self.digested.get_or_insert_default().read(text, lexing);
            }
            let digested = self.digested.get_or_insert_default();
            let (end, next) = (digested.end(), digested.next());
            if let Some(next) = next
                && out.capabilities() & cap::MULTI_STATEMENTS == 0
            {
                return self.refuse(out, &nfold_sql::parser::syntax_error_at(text, next));
            }
            let statement = &text[..end];
            self.log_command("Query", statement, &[]);
            let ok = self.answer(
                cx,
                out,
                WireFormat::Text,
                next.is_some(),
                |s, fiber, sink| s.run_text(fiber, statement, sink),
            );
            self.count_statement(cx, started, statement, None, &[]);
            match next {
                Some(next) if ok && !self.close_after => at += next,
                _ => break,
            }
            if let Err(e) = (FiberExec { fiber: cx }).between_statements() {
                return self.refuse(out, &e);
            }
        }
    }

    /// Computes the digest of a text. It can be stopped like a statement, because the text may be
    /// long.
    #[cold]
    fn digest_long(&mut self, cx: &FiberCx<'_>, text: &[u8]) -> Result<(), SqlError> {
        let lexing = self.env.vars.settings().lexing;
        let digested = self.digested.get_or_insert_default();
        let mut fiber = FiberExec { fiber: cx };
        digested.read_stoppable(text, lexing, &Checkpoints::new(&mut fiber))
    }

    fn open_statement(
        &mut self,
        cx: &FiberCx<'_>,
        sql: &[u8],
        out: &mut ResponseWriter<'_>,
    ) -> Result<(), SqlError> {
        self.conditions.clear();
        self.env.begin_statement(cx.unix_us());
        let memory = self.env.vars.settings().statement_memory;
        cx.begin_statement(memory, sql.len());
        let mut fiber = FiberExec { fiber: cx };
        let mut statement = self.parse_prepared(&mut fiber, sql)?;
        let mut plan = None;
        if statement.parsed.is_none() {
            let work = Work {
                text: &statement.of.text,
                digested: &statement.of.digested,
                markers: &[],
                describe: statement.of.digested.markers() > 0,
                parsed: None,
                hint: None,
            };
            let described = self.describe(&mut fiber, &work);
            if !self.engine.in_transaction() {
                self.engine.mdl().release_all();
            }
            let described = described?;
            described.share_text(&mut statement.of);
            described.warn_of_text(&mut self.conditions);
            plan = Some(described);
        }
        let columns = (plan.as_ref())
            .filter(|p| p.into.is_none())
            .map_or(&[][..], |p| plan_columns(&p.plan));
        let collation = self.env.result_collation();
        let parameters = statement.parameters();
        let id = self.prepared.add(statement);
        self.after_statement(None, false);
        let warnings = self.conditions.total().min(u64::from(u16::MAX)) as u16;
        out.set_status(self.status_flags());
        out.set_charset(self.env.name_charset());
        out.prepare_ok(id, columns.len() as u16, parameters, warnings);
        let parameter = Column {
            name: b"?",
            collation: 63,
            type_code: nfold_protocol::consts::column_type::VAR_STRING,
            ..Column::default()
        };
        out.definitions((0..parameters).map(|_| parameter));
        out.definitions(columns.iter().map(|c| wire_column(c, collation)));
        Ok(())
    }
}

impl SessionHandler for Session {
    fn query(&mut self, cx: &FiberCx<'_>, sql: &[u8], out: &mut ResponseWriter<'_>) {
        self.digested = Some(cx.pooled().digested());
        match self.env.vars.settings().rewritten {
            None => self.texts(cx, sql, out),
            Some(set) => self.texts(cx, &self.lexable(set, sql), out),
        }
        if let Some(digested) = self.digested.take() {
            cx.pooled().give_digested(digested);
        }
        self.end_if_asked();
    }

    fn prepare(&mut self, cx: &FiberCx<'_>, sql: &[u8], out: &mut ResponseWriter<'_>) {
        let rewritten = self.env.vars.settings().rewritten;
        let sql = rewritten.map_or(Cow::Borrowed(sql), |set| self.lexable(set, sql));
        self.log_command("Prepare", &sql, &[]);
        let passed = self.pass_gate(|s| s.sets_own_password(&sql));
        if let Err(e) = passed.and_then(|()| self.open_statement(cx, &sql, out)) {
            self.refuse(out, &e);
        }
    }

    fn execute(
        &mut self,
        cx: &FiberCx<'_>,
        header: ExecuteHeader<'_>,
        out: &mut ResponseWriter<'_>,
    ) {
        let (id, started) = (header.statement, cx.now());
        let memory = self.env.vars.settings().statement_memory;
        cx.begin_statement(memory, header.parameters.len());
        let Some(mut statement) = self.prepared.take(id) else {
            return self.refuse(out, &unknown_statement(id));
        };
        cx.set_statement_text(&statement.of.text, statement.of.number);
        let mut values = cx.pooled().values();
        let read = match header.cursor {
            0 | CURSOR_READ_ONLY => statement.read_values(header.parameters, &mut values),
            _ => Err(SqlError::not_supported("scrollable and updatable cursors")),
        };
        match read {
            Ok(()) => {
                self.log_command("Execute", &statement.of.text, &values);
                if header.cursor == CURSOR_READ_ONLY {
                    self.open_cursor(cx, &mut statement, &values, out);
                } else {
                    self.answer(cx, out, WireFormat::Binary, false, |s, fiber, sink| {
                        s.run_prepared(fiber, &statement, &values, sink)
                    });
                }
                let (text, digested) = (&statement.of.text, Some(&statement.of.digested));
                self.count_statement(cx, started, text, digested, &values);
            }
            Err(e) => self.refuse(out, &e),
        }
        cx.pooled().give_values(values);
        self.prepared.give_back(id, statement);
        self.end_if_asked();
    }

    fn fetch(&mut self, cx: &FiberCx<'_>, statement: u32, rows: u32, out: &mut ResponseWriter<'_>) {
        self.env.counters.count(StatementKind::StmtFetch);
        self.fetch_rows(cx, statement, rows, out);
    }

    fn send_long_data(&mut self, statement: u32, parameter: u16, data: &[u8]) {
        self.env.counters.count(StatementKind::StmtSendLongData);
        let max = self.env.vars.settings().max_allowed_packet;
        if let Some(s) = self.prepared.get(statement) {
            s.append(parameter, data, max);
        }
    }

    fn close_statement(&mut self, statement: u32) {
        self.log_command("Close stmt", b"", &[]);
        self.env.counters.count(StatementKind::StmtClose);
        self.prepared.close(statement);
    }

    fn reset_statement(&mut self, _: &FiberCx<'_>, statement: u32, out: &mut ResponseWriter<'_>) {
        self.log_command("Reset stmt", b"", &[]);
        self.env.counters.count(StatementKind::StmtReset);
        match self.prepared.get(statement) {
            Some(s) => {
                s.reset();
                out.set_status(self.status_flags());
                send_ok(&Done::default(), 0, out);
            }
            None => self.refuse(out, &unknown_statement(statement)),
        }
    }

    fn ping(&mut self, out: &mut ResponseWriter<'_>) {
        self.env.counters.count(StatementKind::AdminCommands);
        out.ok(&response::Ok::default());
    }

    fn init_db(&mut self, cx: &FiberCx<'_>, database: &[u8], out: &mut ResponseWriter<'_>) {
        let name = String::from_utf8_lossy(database).into_owned();
        self.log_command("Init DB", database, &[]);
        self.env.counters.count(StatementKind::ChangeDb);
        self.answer(cx, out, WireFormat::Text, false, |s, _, _| {
            s.conditions.clear();
            s.pass_gate(|_| false)?;
            s.use_database(&name).map(|()| Response::ok())
        });
    }

    fn field_list(
        &mut self,
        _: &FiberCx<'_>,
        table: &[u8],
        wildcard: &[u8],
        out: &mut ResponseWriter<'_>,
    ) {
        self.log_command("Field List", &[table, b" ", wildcard].concat(), &[]);
        self.env.counters.count(StatementKind::ShowFields);
        let passed = self.pass_gate(|_| false);
        match passed.and_then(|()| self.field_columns(table, wildcard)) {
            Ok(columns) => {
                let collation = self.env.result_collation();
                let wire: Vec<Column<'_>> =
                    columns.iter().map(|c| wire_column(c, collation)).collect();
                out.set_status(self.status_flags());
                out.set_charset(self.env.name_charset());
                out.field_list(&wire);
            }
            Err(e) => self.refuse(out, &e),
        }
    }

    fn reset_connection(&mut self, cx: &FiberCx<'_>, out: &mut ResponseWriter<'_>) {
        self.log_command("Reset Connection", b"", &[]);
        self.env.counters.count(StatementKind::AdminCommands);
        let done = self.reset(&mut FiberExec { fiber: cx });
        self.publish(cx);
        out.set_status(self.status_flags());
        match done {
            Ok(()) => send_ok(&Done::default(), 0, out),
            Err(e) => out.error(&ClientError::from(&e)),
        }
    }

    fn change_user(&mut self, cx: &FiberCx<'_>, login: LoginInfo) -> Result<(), ClientError> {
        let ended = self.rollback(&mut FiberExec { fiber: cx });
        ended.map_err(|e| ClientError::from(&e))?;
        self.drop_all_temporary();
        // Its connection is no longer counted.
        self.gate = None;
        *self = Session::open(self.server.clone(), login).map_err(|e| ClientError::from(&e))?;
        self.publish(cx);
        self.env.counters.count(StatementKind::AdminCommands);
        self.log_login("Change user");
        Ok(())
    }

    fn kill(&mut self, cx: &FiberCx<'_>, connection: u32, out: &mut ResponseWriter<'_>) {
        self.log_command("Kill", connection.to_string().as_bytes(), &[]);
        self.env.counters.count(StatementKind::Kill);
        self.answer(cx, out, WireFormat::Text, false, |s, _, _| {
            s.conditions.clear();
            s.kill_connection(u64::from(connection), KillKind::Connection)
                .map(|()| Response::ok())
        });
        self.end_if_asked();
    }

    fn statistics(&mut self, _: &FiberCx<'_>) -> String {
        self.log_command("Statistics", b"", &[]);
        self.env.counters.count(StatementKind::AdminCommands);
        self.refresh_schema();
        self.statistics_line()
    }

    fn take_changes(&mut self) -> Option<Box<[u8]>> {
        self.env.take_changes((None, None))
    }

    fn status_flags(&self) -> u16 {
        let s = self.env.vars.settings();
        let mut flags = 0;
        let mut set = |on: bool, bit: u16| flags |= if on { bit } else { 0 };
        set(s.autocommit, status::AUTOCOMMIT);
        set(self.engine.in_transaction(), status::IN_TRANS);
        set(
            self.engine.in_transaction() && self.read_only,
            status::IN_TRANS_READONLY,
        );
        set(
            s.lexing
                .has(nfold_sql::lexer::LexMode::NO_BACKSLASH_ESCAPES),
            status::NO_BACKSLASH_ESCAPES,
        );
        flags
    }

    fn prefetch_own(&self) {
        prefetch_value(&self.plans);
        prefetch_value(&self.prepared);
        prefetch_value(&self.facts);
        prefetch_value(&self.conditions);
        self.env.prefetch();
        self.engine.prefetch_own();
    }

    fn prefetch_rest(&self) {
        self.prepared.prefetch();
        self.plans.prefetch();
        self.engine.prefetch_rest();
    }

    fn register_replica(
        &mut self,
        _: &FiberCx<'_>,
        replica: RegisterReplica<'_>,
        out: &mut ResponseWriter<'_>,
    ) {
        self.env.counters.count(StatementKind::AdminCommands);
        match self.register(replica) {
            Ok(()) => out.ok(&response::Ok::default()),
            Err(e) => out.error(&e),
        }
    }

    fn binlog_dump(
        &mut self,
        cx: &FiberCx<'_>,
        dump: BinlogDump<'_>,
        out: &mut ResponseWriter<'_>,
    ) {
        self.env.counters.count(StatementKind::AdminCommands);
        self.dump(cx, dump, out);
        self.end_if_asked();
    }

    fn disconnected(&mut self, cx: &FiberCx<'_>) {
        if let Some(log) = &self.server.binlog {
            log.unregister(self.env.login.connection_id);
        }
        self.log_command("Quit", b"", &[]);
        if let Err(e) = self.rollback(&mut FiberExec { fiber: cx }) {
            tracing::error!(
                "connection {}: rollback at its end: {e}",
                self.env.login.connection_id
            );
        }
        self.drop_all_temporary();
    }
}
