//! `BINLOG '...'`, which mysqlbinlog prints: the events of a binary log, in base64. `gtid_next`
//! belongs to it, because mysqlbinlog sets it before each transaction.

use std::sync::Arc;

use nfold_binlog::{Event, Header, event_name};
use nfold_exec::{Checkpoints, ExecCx};
use nfold_sql::ast::Statement;
use nfold_sql::parser::parse_stoppable;
use nfold_types::{ErrorCode, SqlError, base64};

use super::dispatch::{commits, leaves_data};
use crate::replication::apply_rows;
use crate::session::Session;
use crate::session::gate::NextGtidState;
use crate::session::replication::PrintedEvents;
use crate::session::response::Response;
use crate::session::vars::VarValue;

impl Session {
    /// BINLOG
    ///
    /// # Errors
    /// 1227; 1575, 1149, 1609 and 1730 for other texts; those of the changes.
    pub(super) fn binlog_statement(
        &mut self,
        cx: &mut dyn ExecCx,
        text: &[u8],
    ) -> Result<Response, SqlError> {
        let names = ["BINLOG_ADMIN", "REPLICATION_APPLIER"];
        if !self.rights.has_super_or(&names) {
            return Err(self
                .rights
                .lacks("SUPER, BINLOG_ADMIN or REPLICATION_APPLIER"));
        }
        let syntax = || SqlError::new(ErrorCode::ER_SYNTAX_ERROR, &[]);
        if text.is_empty() {
            return Err(syntax());
        }
        let mut bytes = Vec::new();
        // Another text may follow the padding of the one before.
        for part in text.chunk_by(|a, b| *a != b'=' || *b == b'=') {
            let part = base64::decode(part, &Checkpoints::new(cx))?;
            let malformed = || SqlError::new(ErrorCode::ER_BASE64_DECODE_ERROR, &[]);
            bytes.extend(part.ok_or_else(malformed)?);
        }
        let mut events = Vec::new();
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let size = Header::read(rest).map_err(|_| syntax())?.size as usize;
            if size < Header::BYTES || size > rest.len() {
                return Err(syntax());
            }
            let (event, behind) = rest.split_at(size);
            events.push(event);
            rest = behind;
        }
        let mut printed = self.printed.take();
        let checks = self.env.vars.settings().foreign_key_checks;
        let mut changes = false;
        let mut each = events.into_iter();
        let done =
            each.try_for_each(|event| self.printed_event(cx, &mut printed, &mut changes, event));
        let checks = VarValue::Bool(checks);
        self.env.vars.set_known(&[("foreign_key_checks", checks)]);
        self.printed = printed;
        if changes {
            let ended = self.end_work(cx, done.as_ref().err());
            done?;
            ended?;
        } else {
            done?;
        }
        Ok(Response::ok())
    }

    fn printed_event(
        &mut self,
        cx: &mut dyn ExecCx,
        printed: &mut Option<Box<PrintedEvents>>,
        changes: &mut bool,
        bytes: &[u8],
    ) -> Result<(), SqlError> {
        let damaged = |e: nfold_binlog::BinlogError| {
            SqlError::with_message(ErrorCode::ER_REPLICA_CORRUPT_EVENT, e.to_string())
        };
        let name = event_name(Header::read(bytes).map_err(damaged)?.code);
        let state = match printed {
            Some(state) => state,
            None if name == "Format_desc" => printed.insert(Box::default()),
            None => {
                let code = ErrorCode::ER_NO_FORMAT_DESCRIPTION_EVENT_BEFORE_BINLOG_STATEMENT;
                return Err(SqlError::new(code, &[&name]));
            }
        };
        match state.reader.read(bytes).map_err(damaged)?.1 {
            Event::FormatDescription(_) => {
                state.tables.clear();
                Ok(())
            }
            Event::RowsQuery(_) => Ok(()),
            Event::TableMap(map) => {
                state.tables.insert(map.id, Arc::from(map));
                Ok(())
            }
            Event::Rows(event) => {
                let map = state.tables.get(&event.table_id).cloned();
                let map = map.ok_or_else(|| {
                    let text = format!("no Table_map for table {}", event.table_id);
                    SqlError::with_message(ErrorCode::ER_REPLICA_CORRUPT_EVENT, text)
                })?;
                if event.ends_statement() {
                    state.tables.clear();
                }
                if !std::mem::replace(changes, true) {
                    self.refuse_read_only()?;
                    self.refuse_read_only_server()?;
                    self.pass_update_gate()?;
                    self.announce_change(cx, false)?;
                }
                apply_rows(self, cx, &map, &event).map(drop)
            }
            _ => {
                let code = ErrorCode::ER_ONLY_FD_AND_RBR_EVENTS_ALLOWED_IN_BINLOG_STATEMENT;
                Err(SqlError::new(code, &[&name]))
            }
        }
    }

    /// Whether `gtid_next` leaves out a statement, because its transaction is executed.
    ///
    /// # Errors
    /// 1837 if the transaction of `gtid_next` has ended, 1778 for an implicit commit.
    pub(super) fn pass_next_gtid(
        &mut self,
        cx: &mut dyn ExecCx,
        text: &[u8],
    ) -> Result<bool, SqlError> {
        let Some(next) = self.next_gtid() else {
            return Ok(false);
        };
        let lexing = self.env.vars.settings().lexing;
        let parsed = parse_stoppable(text, lexing, &Checkpoints::new(cx), &mut Vec::new());
        // The statement itself answers with an error of the syntax.
        let Ok(statement) = parsed else {
            return Ok(false);
        };
        use Statement::{Begin, Binlog, Delete, Insert, LoadData, Update, Xa};
        let commits = commits(&statement) && !leaves_data(&statement);
        let changes = commits
            || matches!(
                statement,
                Insert(_) | Update(_) | Delete(_) | LoadData(_) | Binlog(_) | Xa(_)
            );
        match next.state {
            NextGtidState::Ended if changes => {
                let code = ErrorCode::ER_GTID_NEXT_TYPE_UNDEFINED_GTID;
                Err(SqlError::new(code, &[&next.text()]))
            }
            NextGtidState::Owned if matches!(statement, Xa(_)) => Err(SqlError::not_supported(
                "XA transactions with gtid_next = UUID:NUMBER",
            )),
            NextGtidState::Owned
                if self.engine.in_transaction()
                    && self.engine.is_explicit()
                    && (commits || matches!(statement, Begin(_))) =>
            {
                let code = ErrorCode::ER_CANT_DO_IMPLICIT_COMMIT_IN_TRX_WHEN_GTID_NEXT_IS_SET;
                Err(SqlError::new(code, &[]))
            }
            NextGtidState::Executed => Ok(changes),
            _ => Ok(false),
        }
    }
}
