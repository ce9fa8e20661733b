//! The events of a transaction for the binary log: made of the session's recorded changes at the
//! commit, or of the text of a DDL statement.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use nfold_binlog::write::{
    ImageColumns, RowsHead, Stamp, TableColumn, TableMapHead, end_statement, query_event,
    rows_event, rows_query, table_map_event, xa_prepare,
};
use nfold_binlog::{QueryContext, QueryEvent, RowChangeKind, XaPrepareEvent};
use nfold_catalog::{IndexKind, TableId, Visibility};
use nfold_engine::{ChangeJournal, JournalEntry, Table};
use nfold_exec::{ExecCx, SessionEnv, change_kind, logged_columns};
use nfold_sql::ast::Statement;
use nfold_types::{Charset, Collation, ErrorCode, SqlError, Value};

use super::Session;
use super::branch::OpenBranch;
use super::cx::blocking;
use crate::binlog::{BinaryLog, Group, GroupEvents, GroupForm};
use crate::unix_time::unix_time;

/// The bytes of rows in one event, except for larger rows (`binlog_row_event_max_size`).
const ROWS_EVENT_BYTES: usize = 8192;
/// Larger transactions go through a file of their own, in bytes.
const MAX_ATTACHED: usize = 256 << 10;
/// The bytes of a transaction's fields before its events, at most.
const GROUP_HEAD: usize = 64;

/// A recorded change and the bytes of its rows.
type Change<'a> = (&'a JournalEntry, &'a [u8]);

impl Session {
    /// The binary log, if the session's changes are recorded in it.
    pub(crate) fn logging(&self) -> Option<&Arc<BinaryLog>> {
        let log = self.server.binlog.as_ref().filter(|log| log.is_active());
        log.filter(|_| self.env.vars.settings().sql_log_bin)
    }

    fn stamp(&self, log: &BinaryLog) -> Stamp {
        Stamp {
            timestamp: (self.env.now().micros() / 1_000_000) as u32,
            server_id: log.server_id(),
        }
    }

    /// Sets the events that the commit of the open transaction carries, or its XA PREPARE if it
    /// `prepares`.
    ///
    /// # Errors
    /// The file of a large transaction cannot be written.
    #[cold]
    pub(crate) fn attach_changes(
        &mut self,
        cx: &mut dyn ExecCx,
        prepares: bool,
    ) -> Result<(), SqlError> {
        let (created, journal) = (self.carried.created.take(), self.engine.take_journal());
        if created.is_none() && journal.is_none() {
            return Ok(());
        }
        let Some(log) = self.server.binlog.clone().filter(|log| log.is_active()) else {
            return Ok(());
        };
        let stamp = self.stamp(&log);
        let branch = self.gate.as_ref().and_then(|gate| gate.branch.as_ref());
        let branch = branch.and_then(OpenBranch::id);
        let bytes = journal.as_ref().map_or(0, |journal| journal.len_bytes());
        let mut events = Vec::with_capacity(bytes * 5 / 4 + 512);
        let begin = match &branch {
            Some(branch) => format!("XA START {branch}").into_bytes(),
            None => b"BEGIN".to_vec(),
        };
        query_event(&mut events, stamp, &self.described(begin, false));
        events.extend(created.unwrap_or_default());
        if let Some(journal) = journal {
            self.rows_of(&journal, stamp, &mut events)?;
        }
        let mut form = GroupForm::Changes;
        if let Some(branch) = branch {
            form = GroupForm::Xa;
            let end = format!("XA END {branch}").into_bytes();
            query_event(&mut events, stamp, &self.described(end, false));
            let end = XaPrepareEvent {
                one_phase: !prepares,
                branch,
            };
            xa_prepare(&mut events, stamp, &end);
        }
        let bytes = self.group(cx, &log, events, form)?;
        self.engine.attach(bytes);
        Ok(())
    }

    /// The event of a CREATE TABLE whose rows follow in a transaction of a source. `None`: it is
    /// not recorded.
    pub(crate) fn created_event(&self, database: String, mut sql: Vec<u8>) -> Option<Vec<u8>> {
        let log = self.logging()?;
        sql.extend_from_slice(b" START TRANSACTION");
        let create = QueryEvent {
            database,
            ..self.described(sql, false)
        };
        let mut event = Vec::new();
        query_event(&mut event, self.stamp(log), &create);
        Some(event)
    }

    /// Sets the statement that the end of a prepared branch carries. `sql` is XA COMMIT or XA
    /// ROLLBACK.
    pub(crate) fn attach_end_of_branch(&mut self, sql: String) {
        let Some(log) = self.logging().cloned() else {
            return;
        };
        let mut events = Vec::new();
        let statement = self.described(sql.into_bytes(), false);
        query_event(&mut events, self.stamp(&log), &statement);
        let group = self.new_group(&log, GroupForm::Xa, &events).encode();
        self.engine.attach(group);
    }

    /// The bytes that the commit of a DDL statement carries; `None`: it is not recorded.
    pub(crate) fn statement_attachment(
        &mut self,
        statement: &Statement,
        sql: &[u8],
    ) -> Option<Vec<u8>> {
        let log = self.logging()?.clone();
        let mut event = self.described(sql.to_vec(), true);
        let mut changed: Vec<String> = Vec::new();
        for name in statement.changed_databases(&event.database) {
            if changed.iter().all(|other| other != name) {
                changed.push(name.to_owned());
            }
        }
        // Filters of replicas look at the current database.
        if is_of_database(statement)
            && let [name] = &changed[..]
        {
            event.database.clone_from(name);
            event.context.names_database = true;
        }
        event.context.updated_databases = changed;
        let mut events = Vec::new();
        query_event(&mut events, self.stamp(&log), &event);
        Some(self.new_group(&log, GroupForm::Statement, &events).encode())
    }

    /// As [`Self::statement_attachment`], for a statement about accounts.
    pub(crate) fn account_attachment(&mut self, sql: Vec<u8>) -> Option<Vec<u8>> {
        let log = self.logging()?.clone();
        let event = self.described(sql, true);
        let mut events = Vec::new();
        query_event(&mut events, self.stamp(&log), &event);
        Some(self.new_group(&log, GroupForm::Statement, &events).encode())
    }

    /// The bytes that a commit without changes carries; `None`: it is not recorded.
    pub(crate) fn empty_transaction(&self) -> Option<Vec<u8>> {
        let log = self.logging()?;
        let mut events = Vec::new();
        for sql in ["BEGIN", "COMMIT"] {
            let statement = self.described(sql.into(), false);
            query_event(&mut events, self.stamp(log), &statement);
        }
        Some(self.new_group(log, GroupForm::Xa, &events).encode())
    }

    /// Hands on a source's transaction that has changed nothing, with its GTID.
    pub(crate) fn attach_if_empty(&mut self) {
        let is_empty = self.engine.journal().is_none() && self.carried.created.is_none();
        if is_empty
            && self.source_gtid.is_some()
            && let Some(bytes) = self.empty_transaction()
        {
            self.engine.attach(bytes);
        }
    }

    /// A transaction of this session with these events, committed now.
    fn new_group<'e>(&self, log: &BinaryLog, form: GroupForm, events: &'e [u8]) -> Group<'e> {
        Group {
            form,
            server_id: log.server_id(),
            commit_us: unix_time().as_micros() as u64,
            gtid: self.source_gtid,
            events: GroupEvents::Here(events),
        }
    }

    /// The bytes that the commit of a table created with rows carries; `None`: it is not recorded.
    ///
    /// # Errors
    /// As [`Self::attach_changes`].
    pub(crate) fn filled_table(
        &mut self,
        cx: &mut dyn ExecCx,
        database: &str,
        sql: String,
        journal: Option<&ChangeJournal>,
    ) -> Result<Option<Vec<u8>>, SqlError> {
        let Some(log) = self.logging().cloned() else {
            return Ok(None);
        };
        let stamp = self.stamp(&log);
        let mut events = Vec::new();
        query_event(
            &mut events,
            stamp,
            &self.described(b"BEGIN".to_vec(), false),
        );
        let create = QueryEvent {
            database: database.into(),
            ..self.described(sql.into_bytes(), false)
        };
        query_event(&mut events, stamp, &create);
        if let Some(journal) = journal {
            self.rows_of(journal, stamp, &mut events)?;
        }
        self.group(cx, &log, events, GroupForm::Changes).map(Some)
    }

    /// The bytes that a commit carries for these events.
    fn group(
        &self,
        cx: &mut dyn ExecCx,
        log: &Arc<BinaryLog>,
        events: Vec<u8>,
        form: GroupForm,
    ) -> Result<Vec<u8>, SqlError> {
        let group = self.new_group(log, form, &events);
        let limit = self.server.engine.max_attachment().min(MAX_ATTACHED);
        if events.len() + GROUP_HEAD <= limit {
            return Ok(group.encode());
        }
        let (commit_us, gtid) = (group.commit_us, group.gtid);
        let store = log.clone();
        let stored = blocking(cx, &AtomicBool::new(false), move || {
            store.store_large(&events)
        });
        let name = stored
            .map_err(nfold_exec::Interrupt::to_sql)?
            .unwrap_or_else(|| Err(std::io::Error::other("the thread panicked")))
            .map_err(|e| {
                let text = format!("a transaction for the binary log cannot be stored: {e}");
                SqlError::with_message(ErrorCode::ER_UNKNOWN_ERROR, text)
            })?;
        let group = Group {
            form,
            server_id: log.server_id(),
            commit_us,
            gtid,
            events: GroupEvents::InFile(&name),
        };
        Ok(group.encode())
    }

    /// A statement with the session's settings.
    fn described(&self, sql: Vec<u8>, is_ddl: bool) -> QueryEvent {
        let settings = self.env.vars.settings();
        let number = |name| match self.env.sysvar(None, name) {
            Ok(Value::UInt(n)) => n,
            Ok(Value::Int(n)) => n as u64,
            _ => 0,
        };
        let text = |name| match self.env.sysvar(None, name) {
            Ok(Value::Bytes(text)) => String::from_utf8_lossy(&text).into_owned(),
            _ => String::new(),
        };
        let client = match settings.rewritten {
            // The text was rewritten for the lexer.
            Some(_) => Some(&nfold_types::charset::UTF8MB4),
            None => Charset::by_name(&text("character_set_client")),
        };
        let client = client.map_or(255, |set| set.default_collation.0);
        let mode = super::vars::parse_modes(&text("sql_mode")).map_or(0, |mode| mode.0);
        let mut context = QueryContext {
            no_foreign_key_checks: !settings.foreign_key_checks,
            sql_mode: Some(mode),
            collations: Some((client, settings.collation.0, settings.collation_server.0)),
            is_atomic_ddl: is_ddl,
            ..QueryContext::default()
        };
        if is_ddl {
            let zone = text("time_zone");
            context.time_zone = Some(zone).filter(|zone| !zone.eq_ignore_ascii_case("SYSTEM"));
            let auto = settings.auto_increment_increment as u16;
            let offset = settings.auto_increment_offset as u16;
            context.auto_increment = Some((auto, offset)).filter(|both| *both != (1, 1));
            context.microseconds = (self.env.now().micros() % 1_000_000) as u32;
            let explicit = number("explicit_defaults_for_timestamp");
            context.explicit_defaults_for_timestamp = Some(explicit != 0);
            let utf8 = Collation::by_name(&text("default_collation_for_utf8mb4"));
            context.collation_for_utf8mb4 = utf8.map(|c| c.id.0);
            context.sql_require_primary_key = Some(number("sql_require_primary_key") != 0);
        }
        QueryEvent {
            thread: self.env.login.connection_id,
            error: 0,
            database: self.env.database.as_deref().unwrap_or_default().into(),
            context,
            sql,
        }
    }

    /// Appends the row events of recorded changes.
    fn rows_of(
        &self,
        journal: &ChangeJournal,
        stamp: Stamp,
        out: &mut Vec<u8>,
    ) -> Result<(), SqlError> {
        let full = &*self.server.text("binlog_row_metadata") == "FULL";
        let changes: Vec<Change<'_>> = journal.iter().collect();
        for statement in changes.chunk_by(|a, b| a.0.statement == b.0.statement) {
            let mut tables: Vec<(TableId, Arc<Table>)> = Vec::new();
            for (entry, _) in statement {
                if tables.iter().all(|(id, _)| *id != entry.table) {
                    let table = self.server.engine.table(entry.table);
                    let table = table.ok_or_else(|| {
                        let text = "a changed table is gone before its commit";
                        SqlError::with_message(ErrorCode::ER_UNKNOWN_ERROR, text)
                    })?;
                    tables.push((entry.table, table));
                }
            }
            let text = statement
                .first()
                .and_then(|(e, _)| journal.text(e.statement));
            if let Some(text) = text {
                rows_query(out, stamp, text);
            }
            for (_, table) in &tables {
                put_table(out, stamp, table, full);
            }
            let flags = statement.iter().fold(0, |all, (entry, _)| all | entry.kind);
            let no_foreign_key_checks = flags & change_kind::NO_FOREIGN_KEYS != 0;
            let mut last = out.len();
            let columns_of = |id| {
                let table = tables.iter().find(|(table, _)| *table == id);
                table.map_or(0, |(_, t)| logged_columns(t.def()).len())
            };
            let same = |a: &Change<'_>, b: &Change<'_>| {
                let of = |c: &Change<'_>| (c.0.table, c.0.kind & change_kind::MASK);
                let some = (a.0.kind | b.0.kind) & change_kind::SOME_COLUMNS != 0;
                let columns = if some { columns_of(a.0.table) } else { 0 };
                of(a) == of(b) && column_bits(a, columns) == column_bits(b, columns)
            };
            for run in statement.chunk_by(same) {
                let Some(change) = run.first() else {
                    continue;
                };
                let (entry, _) = change;
                let columns = columns_of(entry.table);
                let [first, second] = image_columns(change, columns);
                let bits = column_bits(change, columns).len();
                let head = RowsHead {
                    kind: match entry.kind & change_kind::MASK {
                        change_kind::INSERT => RowChangeKind::Insert,
                        change_kind::UPDATE => RowChangeKind::Update,
                        _ => RowChangeKind::Delete,
                    },
                    table_id: entry.table.0,
                    columns,
                    first: &first,
                    second: &second,
                    no_foreign_key_checks,
                    no_unique_checks: false,
                };
                let mut rows = Vec::new();
                for (i, (_, bytes)) in run.iter().enumerate() {
                    rows.extend_from_slice(&bytes[bits..]);
                    if rows.len() >= ROWS_EVENT_BYTES || i + 1 == run.len() {
                        last = out.len();
                        rows_event(out, stamp, &head, &rows);
                        rows.clear();
                    }
                }
            }
            end_statement(&mut out[last..]);
        }
        Ok(())
    }
}

/// The bytes before a change's images, which say which of the table's columns the images have.
fn column_bits<'a>((entry, bytes): &Change<'a>, columns: usize) -> &'a [u8] {
    let images = match entry.kind & change_kind::MASK {
        _ if entry.kind & change_kind::SOME_COLUMNS == 0 => 0,
        change_kind::UPDATE => 2,
        _ => 1,
    };
    &bytes[..images * columns.div_ceil(8)]
}

/// The columns of a change's first image and of the second one, which only an update has.
fn image_columns(change: &Change<'_>, columns: usize) -> [ImageColumns; 2] {
    let bits = column_bits(change, columns);
    if bits.is_empty() {
        return [ImageColumns::all(columns), ImageColumns::all(columns)];
    }
    let (first, second) = bits.split_at(columns.div_ceil(8));
    [ImageColumns(first.into()), ImageColumns(second.into())]
}

/// CREATE, ALTER and DROP DATABASE
fn is_of_database(statement: &Statement) -> bool {
    use Statement::{AlterDatabase, CreateDatabase, DropDatabase};
    matches!(
        statement,
        CreateDatabase(_) | AlterDatabase(_) | DropDatabase { .. }
    )
}

/// Appends the TABLE_MAP of a table.
fn put_table(out: &mut Vec<u8>, stamp: Stamp, table: &Table, full: bool) {
    let def = table.def();
    let logged = logged_columns(def);
    let columns: Vec<TableColumn<'_>> = logged
        .iter()
        .map(|&c| TableColumn {
            name: &def.columns[c].name,
            ty: &def.columns[c].ty,
            nullable: def.columns[c].nullable,
            visible: def.columns[c].visibility == Visibility::Visible,
        })
        .collect();
    let primary = def.indexes.iter().find(|i| i.kind == IndexKind::Primary);
    let parts = primary.into_iter().flat_map(|index| &index.parts);
    let key: Vec<(usize, u64)> = parts
        .filter_map(|part| {
            let at = logged.iter().position(|&c| c == part.column)?;
            Some((at, part.prefix_len.map_or(0, u64::from)))
        })
        .collect();
    let head = TableMapHead {
        id: def.id.0,
        database: &def.schema,
        table: &def.name,
        full,
        primary_key: &key,
    };
    table_map_event(out, stamp, &head, &columns);
}
