//! Applies events in their order: the bounds of transactions, positions, DDL statements.
//!
//! # Picture
//! ```text
//! Gtid ─▶ Query BEGIN ─▶ (Table_map ─▶ rows)* ─▶ Xid          a transaction: rows and coordinates
//! Gtid ─▶ Query CREATE TABLE ..                               DDL: definition and coordinates
//! Gtid ─▶ Query XA START ─▶ rows ─▶ Query XA END ─▶ XA_prepare    see branches.rs
//! Gtid ─▶ Query XA COMMIT | XA ROLLBACK                           the same
//!
//! MariaDB Gtid ─▶ (Table_map ─▶ rows)* ─▶ Xid | Query COMMIT  a transaction
//! MariaDB Gtid ─▶ Query CREATE TABLE ..                       DDL, in MariaDB's dialect
//! MariaDB Gtid, as XA START ─▶ rows ─▶ Query XA END ─▶ XA_prepare
//! ```

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nfold_binlog::{
    Event, EventReader, FormatDescription, Gtid, Header, MariaDbGtid, QueryContext, QueryEvent,
    SourceUuid, TableMap, TransactionForm, event_name,
};
use nfold_engine::ChannelRecord;
use nfold_replica::{ChannelConfig, Coordinates};
use nfold_sql::ast::{BeginOptions, Statement};
use nfold_types::{ErrorCode, SqlError};

use super::fiber::SessionThread;
use super::filter::{Filter, Scope};
use super::{context, mariadb, rows};
use crate::session::cx::FiberExec;
use crate::session::replication::{CHANNEL, Until, pending};
use crate::session::vars::VarValue;
use crate::session::{ServerState, Session};

/// The longest time until the coordinates behind transactions that are left out are stored. The
/// source may purge its files up to them.
const STORE_AFTER: Duration = Duration::from_secs(10);

/// The error that stops the channel. Its message names the event.
#[derive(Debug)]
pub(super) struct ApplyError {
    pub code: u16,
    pub message: String,
}

impl ApplyError {
    /// Whether the same event may be applied later: a lock was held for too long, or there was a
    /// deadlock.
    pub fn is_transient(&self) -> bool {
        let codes = [ErrorCode::ER_LOCK_WAIT_TIMEOUT, ErrorCode::ER_LOCK_DEADLOCK];
        codes.iter().any(|code| code.errno() == self.code)
    }
}

/// Why an event cannot be applied.
#[derive(Debug)]
pub(super) enum Refusal {
    Sql(SqlError),
    Other(String),
}

impl From<SqlError> for Refusal {
    fn from(e: SqlError) -> Self {
        Refusal::Sql(e)
    }
}

impl From<nfold_binlog::BinlogError> for Refusal {
    fn from(e: nfold_binlog::BinlogError) -> Self {
        Refusal::Other(e.to_string())
    }
}

/// What is known of a source before its first event.
#[derive(Debug, Clone, Copy)]
pub(super) struct SourceFacts {
    pub checksums: bool,
    /// See [`nfold_replica::Source::explicit_defaults`].
    pub explicit_defaults: bool,
}

/// See the module's header.
pub(super) struct Applier {
    pub(super) server: Arc<ServerState>,
    pub(super) thread: SessionThread,
    /// What is applied and committed.
    pub(super) committed: Coordinates,
    reader: EventReader,
    /// The source's file, and the position behind the last event read.
    pub(super) file: String,
    pub(super) position: u64,
    /// The tables of the statement at hand.
    tables: HashMap<u64, Arc<TableMap>>,
    pub(super) gtid: Option<Gtid>,
    pub(super) in_transaction: bool,
    filter: Filter,
    /// The settings of a transaction of which nothing has been applied yet. Only with a filter.
    opening: Option<(Header, QueryContext)>,
    source: SourceFacts,
    /// `Some`: a MariaDB writes the events. The value of `explicit_defaults_for_timestamp` for a
    /// statement that does not carry it.
    mariadb: Option<bool>,
    /// The statement at hand changes nothing, although it is a DDL statement.
    without_effect: bool,
    /// When coordinates behind transactions that were left out were stored last.
    stored_at: Instant,
    /// The transaction has been applied already.
    pub(super) skips: bool,
    /// The SET statement that ran last.
    settings: String,
    /// Where the channel stops by itself.
    until: Option<Until>,
    /// It has arrived there.
    arrived: bool,
    /// When the source committed the transaction that the last event announced, in microseconds
    /// since 1970. Nothing of the transaction is applied yet.
    announced: Option<u64>,
}

impl Applier {
    pub fn open(
        server: &Arc<ServerState>,
        at: Coordinates,
        config: &ChannelConfig,
    ) -> Result<Applier, SqlError> {
        let mut thread = SessionThread::open(server)?;
        thread.run(|_, session| {
            session.engine.sync_behind();
            let level = VarValue::text("READ-COMMITTED");
            // Any session may end the branches of the source's XA transactions.
            let detach = VarValue::Bool(true);
            session.env.vars.set_known(&[
                ("transaction_isolation", level),
                ("xa_detach_on_prepare", detach),
            ]);
            Ok(())
        })?;
        Ok(Applier {
            server: server.clone(),
            thread,
            file: at.file.clone(),
            position: at.position,
            committed: at,
            reader: EventReader::new(false),
            tables: HashMap::new(),
            gtid: None,
            in_transaction: false,
            filter: Filter::new(&config.databases, &config.filters),
            opening: None,
            source: SourceFacts {
                checksums: false,
                explicit_defaults: true,
            },
            mariadb: None,
            without_effect: false,
            stored_at: Instant::now(),
            skips: false,
            settings: String::new(),
            until: None,
            arrived: false,
            announced: None,
        })
    }

    /// Sets where the channel stops by itself.
    pub fn stop_at(&mut self, until: Option<Until>) {
        self.until = until;
        self.note_arrival();
    }

    /// Whether the channel has applied all that it was started for.
    pub fn has_arrived(&self) -> bool {
        self.arrived
    }

    /// When the source committed the transaction that the last event has announced, in
    /// microseconds since 1970; `None` if it announced none that is to be applied.
    pub fn announced(&mut self) -> Option<u64> {
        self.announced.take()
    }

    /// Between two transactions: notes whether the channel has arrived.
    fn note_arrival(&mut self) {
        if let Some(until) = &self.until {
            let place = (self.file.as_str(), self.position);
            self.arrived |= until.is_reached(&self.committed.gtids, place);
        }
    }

    /// The id of the session that applies.
    pub fn session_id(&self) -> u32 {
        self.thread.id()
    }

    /// The source's file, and the position behind the last event read.
    pub fn place(&self) -> (&str, u64) {
        (&self.file, self.position)
    }

    pub fn committed(&self) -> &Coordinates {
        &self.committed
    }

    /// Begins with a new connection to the source. An open transaction is rolled back, because the
    /// source sends it again.
    pub fn reconnected(&mut self, source: SourceFacts) -> Result<(), SqlError> {
        self.reader = EventReader::new(source.checksums);
        self.source = source;
        self.without_effect = false;
        self.file = self.committed.file.clone();
        self.position = self.committed.position;
        self.tables.clear();
        self.gtid = None;
        self.skips = false;
        self.opening = None;
        if std::mem::take(&mut self.in_transaction) {
            self.thread.run(|fiber, session| {
                session.rollback(&mut FiberExec { fiber })?;
                session.leave_branch();
                Ok(())
            })?;
        }
        let Some((database, table)) = self.committed.unfinished.clone() else {
            return Ok(());
        };
        let name = |text: &str| format!("`{}`", text.replace('`', "``"));
        let sql = format!("DROP TABLE IF EXISTS {}.{}", name(&database), name(&table));
        let after = Coordinates {
            unfinished: None,
            ..self.committed.clone()
        };
        self.settings = String::new();
        self.thread
            .run(|cx, session| session.run_internal(cx, b"SET sql_mode = DEFAULT"))?;
        self.define_unlogged(String::new(), sql.into_bytes(), &after)?;
        self.committed_to(after);
        Ok(())
    }

    /// Applies one event (P1).
    ///
    /// # Errors
    /// The error that stops the channel.
    pub fn event(&mut self, bytes: &[u8]) -> Result<(), ApplyError> {
        let header = Header::read(bytes);
        let start = self.position;
        let done = self.reader.read(bytes).map_err(Refusal::from);
        let done = done.and_then(|(header, event)| {
            self.advance(&header, &event);
            self.apply(&header, event)
        });
        let Err(refusal) = done else {
            if !self.in_transaction && self.gtid.is_none() {
                self.note_arrival();
            }
            self.publish(header.ok());
            return Ok(());
        };
        let (name, code) = header.map_or(("Unknown", 0), |h| (event_name(h.code), h.code));
        let (errno, what) = match refusal {
            Refusal::Sql(e) => (e.errno(), e.message.to_string()),
            Refusal::Other(text) => (ErrorCode::ER_REPLICA_CORRUPT_EVENT.errno(), text),
        };
        let gtid = self.gtid.as_ref().map(|g| format!(" of transaction {g}"));
        Err(ApplyError {
            code: errno,
            message: format!(
                "Cannot apply the {name} event (type {code}){} at position {start} of the source's \
                 file '{}': {what}",
                gtid.unwrap_or_default(),
                self.file,
            ),
        })
    }

    /// Moves the position behind an event.
    fn advance(&mut self, header: &Header, event: &Event) {
        match event {
            Event::Rotate { file, position } => {
                self.file.clone_from(file);
                self.position = *position;
            }
            _ if header.is_artificial() || header.end == 0 => {}
            _ => {
                // The event has the lower 32 bits only.
                let high = self.position & !u64::from(u32::MAX);
                let end = high | u64::from(header.end);
                let wrapped = end < self.position;
                self.position = end + if wrapped { 1 << 32 } else { 0 };
            }
        }
    }

    /// Shows the progress in SHOW REPLICA STATUS.
    fn publish(&self, header: Option<Header>) {
        self.server.replication.with_status(|status| {
            status.read_file.clone_from(&self.file);
            status.read_position = self.position;
            let time = header.map_or(0, |h| h.timestamp);
            let busy = self.in_transaction || self.gtid.is_some();
            status.event_time = (busy && time != 0).then_some(time);
        });
    }

    fn apply(&mut self, header: &Header, event: Event) -> Result<(), Refusal> {
        match event {
            Event::FormatDescription(f) if f.version != 4 => {
                let text = format!("version {} of the binary log", f.version);
                Err(Refusal::Other(text))
            }
            Event::FormatDescription(format) => {
                self.mariadb = self.dialect(&format);
                Ok(())
            }
            Event::Rotate { .. }
            | Event::PreviousGtids(_)
            | Event::RowsQuery(_)
            | Event::BinlogCheckpoint
            | Event::Decrypted
            | Event::Heartbeat { .. }
            | Event::Stop => Ok(()),
            Event::MariaDbGtid(gtid) => self.mariadb_gtid(header, gtid),
            Event::Gtid(gtid) => {
                self.between_transactions()?;
                if let (Some(Until::BeforeGtids(set)), Some(gtid)) = (&self.until, &gtid.gtid)
                    && set.contains(gtid)
                {
                    self.arrived = true;
                    return Ok(());
                }
                self.server.replication.with_status(|status| {
                    gtid.gtid.iter().for_each(|gtid| status.retrieved.add(gtid));
                });
                self.skips = match &gtid.gtid {
                    Some(gtid) => self.has_executed(gtid)?,
                    None => false,
                };
                self.gtid = gtid.gtid;
                let time = gtid.committed_us.unwrap_or_else(|| started_us(header));
                self.announced = (!self.skips).then_some(time);
                Ok(())
            }
            Event::Query(query) => self.query(header, *query),
            Event::TableMap(mut map) => {
                self.filter.rewrite(&mut map.database);
                self.tables.insert(map.id, Arc::from(map));
                Ok(())
            }
            Event::Rows(event) => {
                if !self.in_transaction {
                    return Err(Refusal::Other("rows outside of a transaction".into()));
                }
                let map = self.tables.get(&event.table_id).cloned();
                let map = map.ok_or_else(|| {
                    Refusal::Other(format!("no Table_map for table {}", event.table_id))
                })?;
                if event.ends_statement() {
                    self.tables.clear();
                }
                if self.skips || !self.filter.follows_rows(&map.database, &map.table) {
                    return Ok(());
                }
                self.begin_if_opening()?;
                self.thread.run(move |fiber, session| {
                    rows::apply(session, &mut FiberExec { fiber }, &map, &event).map(drop)
                })?;
                Ok(())
            }
            Event::Xid(_) => self.commit(),
            Event::XaPrepare(event) => self.prepare_branch(&event),
            Event::Payload(payload) => payload.each(&mut |header, event| {
                self.apply(header, event).map_err(|e| {
                    let text = format!("in its {} event: ", event_name(header.code));
                    match e {
                        Refusal::Other(what) => Refusal::Other(text + &what),
                        Refusal::Sql(e) => {
                            Refusal::Sql(SqlError::with_message(e.code, text + &e.message))
                        }
                    }
                })
            }),
            Event::Unknown => Err(Refusal::Other("this type of event is not supported".into())),
        }
    }

    /// Whether a transaction is applied already, or a client has committed it with `gtid_next`.
    fn has_executed(&mut self, gtid: &Gtid) -> Result<bool, SqlError> {
        if self.committed.gtids.contains(gtid) {
            return Ok(true);
        }
        let log = self.server.binlog.clone().filter(|log| log.is_active());
        let (Some(log), Some(gtid)) = (log, writable_gtid(gtid)) else {
            return Ok(false);
        };
        self.thread.run(move |fiber, session| {
            session.waits_for_owner(&mut FiberExec { fiber }, &log, gtid)
        })
    }

    fn between_transactions(&self) -> Result<(), Refusal> {
        match self.in_transaction {
            true => Err(Refusal::Other(
                "the transaction before it has no end".into(),
            )),
            false => Ok(()),
        }
    }

    /// `Some` for a MariaDB; see [`Self::mariadb`].
    fn dialect(&self, format: &FormatDescription) -> Option<bool> {
        /// Since this version, a statement carries the setting if it is on.
        const CARRIES: (u32, u32) = (10, 10);
        let mut numbers = format.server_version.split('.').map(str::parse::<u32>);
        let mut next = || numbers.next().and_then(Result::ok).unwrap_or(0);
        let version = (next(), next());
        let unsaid = version < CARRIES && self.source.explicit_defaults;
        format.is_mariadb().then_some(unsaid)
    }

    /// A transaction of a MariaDB begins. The source sends none that is applied already: it begins
    /// behind the positions of the domains, or where the user says. A sequence number may be lower
    /// than one before it, so it does not tell whether a transaction is applied.
    fn mariadb_gtid(&mut self, header: &Header, event: MariaDbGtid) -> Result<(), Refusal> {
        self.between_transactions()?;
        self.server
            .replication
            .with_status(|status| status.retrieved.add(&event.gtid));
        self.gtid = Some(event.gtid);
        self.announced = Some(started_us(header));
        self.without_effect = event.form == TransactionForm::AlterWithoutEffect;
        let branch = match event.form {
            TransactionForm::Changes => None,
            TransactionForm::Branch(branch) => Some(branch),
            TransactionForm::Statement | TransactionForm::AlterWithoutEffect => return Ok(()),
        };
        self.in_transaction = true;
        // There are no settings; the rows are those that the source has stored.
        let context = QueryContext {
            sql_mode: Some(0),
            ..QueryContext::default()
        };
        if let Some(branch) = branch {
            return self.start_branch(header, &context, format!("XA START {branch}").into());
        }
        if self.filter.is_active() {
            self.opening = Some((*header, context));
            return Ok(());
        }
        self.begin(header, &context)
    }

    fn query(&mut self, header: &Header, mut query: QueryEvent) -> Result<(), Refusal> {
        // A MariaDB's ALTER TABLE that was rolled back names the error that it failed with.
        if query.error != 0 && !self.without_effect {
            let text = format!(
                "the statement failed on the source with error {}",
                query.error
            );
            return Err(Refusal::Other(text));
        }
        self.filter.rewrite(&mut query.database);
        let words = first_words(&query.sql);
        match (words.as_str(), self.in_transaction) {
            ("BEGIN", false) => {
                self.in_transaction = true;
                if self.skips {
                    return Ok(());
                }
                if self.filter.is_active() {
                    self.opening = Some((*header, query.context));
                    return Ok(());
                }
                self.begin(header, &query.context)
            }
            ("XA START", false) => self.start_branch(header, &query.context, query.sql),
            ("XA END", true) => self.run_in_branch(query.sql),
            ("XA COMMIT" | "XA ROLLBACK", false) => self.end_branch(header, query),
            ("COMMIT", true) => self.commit(),
            ("CREATE TABLE" | "CREATE OR", true) => {
                let length = match self.mariadb {
                    Some(_) => query.sql.len(),
                    None => suffix_of_create(&query.sql).ok_or_else(|| unsupported(&words))?,
                };
                if self.skips {
                    return Ok(());
                }
                self.settings(header, &query.context)?;
                let statements = self.statements(&query, length)?;
                if self.leaves_out(&statements, &query.database)? {
                    return Ok(());
                }
                self.refuse_definition(&query.sql)?;
                self.opening = None;
                self.create_filled(query.database, statements)
            }
            (words, true) => {
                let savepoint = ["SAVEPOINT", "ROLLBACK TO", "RELEASE SAVEPOINT"];
                if !savepoint.iter().any(|s| words.starts_with(s)) {
                    return Err(unsupported(words));
                }
                if self.skips {
                    return Ok(());
                }
                self.begin_if_opening()?;
                self.thread
                    .run(move |cx, session| session.run_internal(cx, &query.sql))?;
                Ok(())
            }
            (words, false) => {
                let changes_rows = [
                    "INSERT", "UPDATE", "DELETE", "REPLACE", "LOAD", "CALL", "XA",
                ];
                if changes_rows.contains(&words.split(' ').next().unwrap_or_default()) {
                    return Err(unsupported(words));
                }
                if self.skips {
                    return Ok(());
                }
                let after = self.after();
                if std::mem::take(&mut self.without_effect) {
                    return self.left_out(after);
                }
                self.settings(header, &query.context)?;
                let mut statements = self.statements(&query, query.sql.len())?;
                if self.leaves_out(&statements, &query.database)? {
                    return self.left_out(after);
                }
                if self.changes_accounts_only(&statements, &query.database)? {
                    return self.left_out(after);
                }
                let Some(last) = statements.pop() else {
                    return self.left_out(after);
                };
                self.refuse_definition(&query.sql)?;
                self.define_first(&query.database, statements)?;
                self.define(query.database, last, &after)?;
                self.committed_to(after);
                Ok(())
            }
        }
    }

    /// Begins a transaction of the source.
    fn begin(&mut self, header: &Header, context: &QueryContext) -> Result<(), Refusal> {
        self.settings(header, context)?;
        self.thread.run(|fiber, session| {
            let mut cx = FiberExec { fiber };
            session.begin(&mut cx, &BeginOptions::default()).map(drop)
        })?;
        Ok(())
    }

    fn begin_if_opening(&mut self) -> Result<(), Refusal> {
        match self.opening.take() {
            Some((header, context)) => self.begin(&header, &context),
            None => Ok(()),
        }
    }

    /// The statements that do what the first `length` bytes of a statement of the source do, in
    /// their order. There is none if it changes nothing.
    ///
    /// # Errors
    /// A statement of MariaDB that has no equal here.
    fn statements(&mut self, query: &QueryEvent, length: usize) -> Result<Vec<Vec<u8>>, SqlError> {
        let sql = query.sql[..length].to_vec();
        if self.mariadb.is_none() {
            return Ok(vec![sql]);
        }
        let database = query.database.clone();
        self.thread
            .run(move |_, session| mariadb::translated(session, &database, sql))
    }

    /// Whether the filter leaves out the statements. `database` is their current one.
    ///
    /// # Errors
    /// They change followed databases and others, or cannot be read.
    fn leaves_out(&mut self, statements: &[Vec<u8>], database: &str) -> Result<bool, Refusal> {
        if !self.filter.is_active() || statements.is_empty() {
            return Ok(false);
        }
        let mut others = 0;
        for sql in statements {
            let statement = self.parse(sql.clone())?;
            others += match self.filter.scope(&statement, database)? {
                Scope::Followed => 0,
                Scope::Other => 1,
                Scope::Both => {
                    return Err(Refusal::Other(
                        "the statement changes databases that the channel follows, and others"
                            .into(),
                    ));
                }
            };
        }
        Ok(others == statements.len())
    }

    /// While a copy is completed: whether the statements change no database. Accounts are copied
    /// later, as they are by then.
    fn changes_accounts_only(
        &mut self,
        statements: &[Vec<u8>],
        database: &str,
    ) -> Result<bool, SqlError> {
        if !self.server.replication.is_completing() {
            return Ok(false);
        }
        for sql in statements {
            let statement = self.parse(sql.clone())?;
            if !statement.changed_databases(database).is_empty() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Refuses a statement that changes a definition while a copy is completed: the tables are
    /// those of a later moment.
    fn refuse_definition(&self, sql: &[u8]) -> Result<(), Refusal> {
        match self.server.replication.is_completing() {
            false => Ok(()),
            true => Err(Refusal::Other(format!(
                "'{}' changes a definition between two parts of the copy",
                first_words(sql)
            ))),
        }
    }

    /// Parses a statement with the SQL mode of the session.
    pub(super) fn parse(&mut self, sql: Vec<u8>) -> Result<Statement, SqlError> {
        self.thread.run(move |_, session| {
            let lexing = session.env.vars.settings().lexing;
            nfold_sql::parser::parse(&sql, lexing)
        })
    }

    /// Goes behind a transaction of which the filter leaves out all. The coordinates are stored
    /// with the next transaction, or after [`STORE_AFTER`].
    fn left_out(&mut self, after: Coordinates) -> Result<(), Refusal> {
        if self.stored_at.elapsed() >= STORE_AFTER {
            self.stored_at = Instant::now();
            let records = [(ChannelRecord::Coordinates, Some(&*pending(&after).data))];
            let stored = self.server.engine.put_channel_records(CHANNEL, &records);
            stored.map_err(|e| nfold_exec::engine_error(&e))?;
        }
        self.committed_to(after);
        Ok(())
    }

    /// Applies the settings of a statement to the session.
    pub(super) fn settings(
        &mut self,
        header: &Header,
        context: &QueryContext,
    ) -> Result<(), Refusal> {
        let text = match self.mariadb {
            Some(explicit_defaults) => {
                let context = context::of_mariadb(context, explicit_defaults)?;
                context::set_statement(&context, header.timestamp)?
            }
            None => context::set_statement(context, header.timestamp)?,
        };
        if text == self.settings {
            return Ok(());
        }
        let statement = text.clone();
        self.thread
            .run(move |cx, session| session.run_internal(cx, statement.as_bytes()))?;
        self.settings = text;
        Ok(())
    }

    /// Runs the statements before the last one of a statement of the source. The coordinates stay,
    /// so that a restart runs them again.
    fn define_first(&mut self, database: &str, statements: Vec<Vec<u8>>) -> Result<(), SqlError> {
        let at = self.committed.clone();
        for sql in statements {
            self.define(database.to_owned(), sql, &at)?;
        }
        Ok(())
    }

    /// Runs a statement that commits by itself, together with the coordinates `after` it.
    fn define(
        &mut self,
        database: String,
        sql: Vec<u8>,
        after: &Coordinates,
    ) -> Result<(), SqlError> {
        let carried = pending(after);
        let gtid = self.gtid.as_ref().and_then(writable_gtid);
        let left = self.thread.run(move |cx, session| {
            session.use_database_of_source(&database);
            session.carried.pending.coordinates = Some(carried);
            session.carried.deferred = false;
            session.source_gtid = gtid;
            let done = session.run_internal(cx, &sql);
            let left = session.carried.pending.coordinates.take();
            done.map(|()| left)
        })?;
        if let Some(left) = left {
            // Nothing has changed.
            let records = [(ChannelRecord::Coordinates, Some(&*left.data))];
            let stored = self.server.engine.put_channel_records(CHANNEL, &records);
            stored.map_err(|e| nfold_exec::engine_error(&e))?;
        }
        Ok(())
    }

    /// As [`Self::define`], but the server's own binary log does not get the statement.
    fn define_unlogged(
        &mut self,
        database: String,
        sql: Vec<u8>,
        after: &Coordinates,
    ) -> Result<(), SqlError> {
        self.set_logging(false)?;
        let done = self.define(database, sql, after);
        self.set_logging(true)?;
        done
    }

    fn set_logging(&mut self, on: bool) -> Result<(), SqlError> {
        self.thread.run(move |_, session| {
            let value = VarValue::Bool(on);
            session.env.vars.set_known(&[("sql_log_bin", value)]);
            Ok(())
        })
    }

    /// CREATE TABLE ... SELECT, which the source writes as a statement and rows in a transaction.
    /// The table is visible before its rows. The coordinates name it until they are committed, so
    /// that a restart drops it first. The server's own binary log gets both in one transaction.
    fn create_filled(
        &mut self,
        current: String,
        mut statements: Vec<Vec<u8>>,
    ) -> Result<(), Refusal> {
        let sql = statements.pop().unwrap_or_default();
        self.define_first(&current, statements)?;
        let name = match self.parse(sql.clone())? {
            Statement::CreateTable(create) => create.name,
            _ => return Err(SqlError::not_supported("this form of CREATE TABLE").into()),
        };
        let database = name.schema.map_or(current.clone(), |schema| schema.value);
        let after = Coordinates {
            unfinished: Some((database, name.name.value)),
            ..self.committed.clone()
        };
        self.define_unlogged(current.clone(), sql.clone(), &after)?;
        self.committed = after;
        self.thread.run(|fiber, session| {
            let mut cx = FiberExec { fiber };
            session.begin(&mut cx, &BeginOptions::default())?;
            session.carried.created = session.created_event(current, sql);
            Ok(())
        })?;
        Ok(())
    }

    /// The coordinates behind the transaction at hand.
    pub(super) fn after(&self) -> Coordinates {
        let mut after = self.committed.clone();
        after.unfinished = None;
        after.file.clone_from(&self.file);
        after.position = self.position;
        if let Some(gtid) = &self.gtid {
            after.gtids.add(gtid);
        }
        after
    }

    fn commit(&mut self) -> Result<(), Refusal> {
        if !self.in_transaction {
            return Err(Refusal::Other(
                "the end of a transaction that has no beginning".into(),
            ));
        }
        let after = self.after();
        if self.opening.take().is_some() {
            self.in_transaction = false;
            return self.left_out(after);
        }
        if !self.skips {
            let data = pending(&after).data;
            let gtid = self.gtid.as_ref().and_then(writable_gtid);
            self.thread.run(move |fiber, session: &mut Session| {
                session.source_gtid = gtid;
                let engine = session.server.engine.clone();
                let stored = engine.put_coordinates(&mut session.engine, CHANNEL, &data);
                stored.map_err(|e| nfold_exec::engine_error(&e))?;
                session.attach_if_empty();
                session.commit(&mut FiberExec { fiber })?;
                session.note_commit();
                Ok(())
            })?;
        }
        self.in_transaction = false;
        self.committed_to(after);
        Ok(())
    }

    pub(super) fn committed_to(&mut self, after: Coordinates) {
        self.committed = after;
        self.gtid = None;
        self.skips = false;
        self.tables.clear();
        let applied = self.committed.clone();
        self.server
            .replication
            .with_status(|status| status.applied = applied);
    }
}

impl Session {
    /// Remembers the newest commit of this session, which applies a source's transactions.
    pub(super) fn note_commit(&mut self) {
        if let Some(commit) = self.engine.take_last_commit() {
            let replication = &self.server.replication;
            replication.with_status(|status| status.last_commit = commit);
        }
    }
}

/// The GTID of the source's transaction for this server's own binary log, if it can be written.
pub(super) fn writable_gtid(gtid: &Gtid) -> Option<(SourceUuid, u64)> {
    match gtid {
        Gtid::MySql { uuid, tag, number } if tag.as_str().is_empty() => Some((*uuid, *number)),
        _ => None,
    }
}

fn unsupported(words: &str) -> Refusal {
    let text = format!(
        "{words}: statements that change rows are applied from row events only \
         (binlog_format = ROW on the source)"
    );
    Refusal::Other(text)
}

/// When the statement of an event began, in microseconds since 1970.
fn started_us(header: &Header) -> u64 {
    u64::from(header.timestamp) * 1_000_000
}

/// The length of a CREATE TABLE without the `START TRANSACTION` at its end; `None` without one.
fn suffix_of_create(sql: &[u8]) -> Option<usize> {
    const SUFFIX: &[u8] = b"START TRANSACTION";
    let text = sql.trim_ascii_end();
    let at = text.len().checked_sub(SUFFIX.len())?;
    text[at..].eq_ignore_ascii_case(SUFFIX).then_some(at)
}

/// The first two words of a statement in upper case.
fn first_words(sql: &[u8]) -> String {
    let text = String::from_utf8_lossy(&sql[..sql.len().min(64)]).to_ascii_uppercase();
    let words: Vec<&str> = text.split_ascii_whitespace().take(2).collect();
    words.join(" ")
}
