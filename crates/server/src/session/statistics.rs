//! Counts statements by digest (`nfold_observe::digests`).
//!
//! # Cost
//! For a warm statement the plan has the id: one reading of the clock, and one record in the
//! worker's own block. Other statements look up their id in a map of the session. The shared
//! registry is used when a session meets a digest for the first time.

use std::borrow::Cow;
use std::hash::Hasher;
use std::time::Instant;

use nfold_observe::StatementKind;
use nfold_observe::digests::{DigestId, DigestName, Run};
use nfold_sql::digest::Digested;
use nfold_sql::lexer::LexMode;
use nfold_types::Value;
use rustc_hash::{FxHashMap, FxHasher};

use super::Session;
use crate::heavy;
use crate::net::worker::FiberCx;
use crate::slow_log::{Entry, with_values, without_secrets};

/// The maximum number of cached ids of a session, for statements without a plan.
const MAX_IDS: usize = 256;
/// The maximum length of a sample in bytes (MySQL's `performance_schema_max_sql_text_length`).
const SAMPLE_BYTES: usize = 1024;

/// The data of the current statement.
#[derive(Default)]
pub struct StatementFacts {
    /// The id in its plan.
    pub digest: DigestId,
    pub run: Run,
    /// The kind of the statement that is being planned, once it is known.
    pub planned_kind: Option<StatementKind>,
    /// Conditions that arose after the answer: SHOW WARNINGS shows them, the answer does not count
    /// them.
    pub late: u64,
}

/// Ids by the hash of the statement and its database.
#[derive(Default)]
pub struct DigestIds(FxHashMap<u128, DigestId>);

impl Session {
    /// Counts the statement that was just answered. `digested` is the digest of `text`; `None`: the
    /// session's. `values` are those of its `?`.
    #[inline]
    pub(crate) fn count_statement(
        &mut self,
        cx: &FiberCx<'_>,
        started: Instant,
        text: &[u8],
        digested: Option<&Digested>,
        values: &[Value],
    ) {
        let latency = cx.read_end_clock().saturating_duration_since(started);
        let digests = &self.server.digests;
        if !digests.is_current(self.facts.digest) {
            self.find_digest(text, digested);
        }
        let run = &mut self.facts.run;
        run.latency_ns = latency.as_secs() * 1_000_000_000 + u64::from(latency.subsec_nanos());
        run.at_us = self.env.started_us();
        run.warnings = self.conditions.total();
        self.server
            .digests
            .record(cx.worker(), self.facts.digest, run);
        if run.latency_ns >= heavy::HEAVY_NS {
            heavy::note();
        }
        let settings = self.env.vars.settings();
        if run.latency_ns >= settings.long_query_ns {
            self.log_slow(text, values);
        }
    }

    /// Logs a statement that took `long_query_time` or longer.
    #[cold]
    fn log_slow(&self, text: &[u8], values: &[Value]) {
        let (run, settings, log) = (
            &self.facts.run,
            self.env.vars.settings(),
            &self.server.slow_log,
        );
        if run.rows_examined < settings.min_examined_row_limit {
            return;
        }
        log.count();
        if !log.is_on() {
            return;
        }
        let text = shown_text(text, values, settings.lexing);
        let login = &self.env.login;
        log.write(&Entry {
            user: &login.user,
            account_user: &login.account_user,
            host: &login.client_host,
            connection_id: login.connection_id,
            database: self.env.database.as_deref(),
            started_us: run.at_us,
            took_us: run.latency_ns / 1000,
            rows_sent: run.rows_sent,
            rows_examined: run.rows_examined,
            text: &text,
        });
    }

    /// Writes a command to the general log, if it is on.
    #[inline]
    pub(crate) fn log_command(&self, command: &str, argument: &[u8], values: &[Value]) {
        if self.server.general_log.is_on() {
            self.write_command(command, argument, values);
        }
    }

    /// Writes a login to the general log: the account, the database and the transport.
    pub(crate) fn log_login(&self, command: &str) {
        if !self.server.general_log.is_on() {
            return;
        }
        let login = &self.env.login;
        let by = match (login.tls, login.local) {
            (true, _) => "SSL/TLS",
            (false, true) => "Socket",
            (false, false) => "TCP/IP",
        };
        let database = self.env.database.as_deref().unwrap_or_default();
        let who = format!(
            "{}@{} on {database} using {by}",
            login.user, login.client_host
        );
        self.write_command(command, who.as_bytes(), &[]);
    }

    /// Hands the text of a statement that has changed rows to the binary log, if it wants it
    /// (`binlog_rows_query_log_events`).
    #[inline]
    pub(crate) fn note_row_query(&mut self, text: &[u8], values: &[Value]) {
        if self.engine.journal().is_none() {
            return;
        }
        let settings = self.env.vars.settings();
        if settings.logs_row_queries {
            let shown = shown_text(text, values, settings.lexing);
            self.engine.set_statement_text(&shown);
        }
    }

    #[cold]
    fn write_command(&self, command: &str, argument: &[u8], values: &[Value]) {
        let settings = self.env.vars.settings();
        if settings.sql_log_off {
            return;
        }
        let shown = shown_text(argument, values, settings.lexing);
        let connection = self.env.login.connection_id;
        self.server.general_log.write(connection, command, &shown);
    }

    #[cold]
    fn find_digest(&mut self, text: &[u8], digested: Option<&Digested>) {
        match digested {
            Some(digested) => self.facts.digest = self.digest_of(text, digested),
            None => {
                if let Some(own) = self.digested.take() {
                    self.facts.digest = self.digest_of(text, &own);
                    self.digested = Some(own);
                }
            }
        }
    }

    fn digest_of(&mut self, text: &[u8], digested: &Digested) -> DigestId {
        let mut database = FxHasher::default();
        if let Some(name) = &self.env.database {
            database.write(name.as_bytes());
        }
        let database = u128::from(database.finish());
        let key = digested.hash() ^ (database << 64 | database);
        let digests = &self.server.digests;
        let known = self.digest_ids.0.get(&key).copied();
        let id = match known.filter(|&id| digests.is_current(id)) {
            Some(id) => id,
            None => {
                let id = digests.intern(key, || DigestName {
                    schema: self.env.database.as_deref().map(Into::into),
                    text: nfold_sql::digest_text::digest_text(text, digested.mode()).into(),
                    sample: sample(text),
                    first_us: self.env.started_us(),
                });
                if self.digest_ids.0.len() >= MAX_IDS {
                    self.digest_ids.0.clear();
                }
                self.digest_ids.0.insert(key, id);
                id
            }
        };
        self.plans.set_digest(digested, id);
        id
    }
}

/// A statement as logs show it: with values in place of its `?`, and without passwords.
fn shown_text<'t>(text: &'t [u8], values: &[Value], mode: LexMode) -> Cow<'t, [u8]> {
    match values {
        [] => match without_secrets(text, mode) {
            Some(hidden) => Cow::Owned(hidden),
            None => Cow::Borrowed(text),
        },
        values => Cow::Owned(with_values(text, mode, values)),
    }
}

fn sample(text: &[u8]) -> Box<str> {
    String::from_utf8_lossy(&text[..text.len().min(SAMPLE_BYTES)]).into()
}
