//! SHOW BINARY LOGS, SHOW BINARY LOG STATUS, SHOW BINLOG EVENTS, SHOW REPLICAS.

use std::sync::Arc;

use nfold_binlog::{Event, EventReader, Gtid, Header, RowChangeKind, event_name};
use nfold_exec::ExecCx;
use nfold_sql::ast::ShowLimit;
use nfold_types::{ErrorCode, SqlError, Value};

use super::facts;
use crate::binlog::{BinaryLog, FIRST_POSITION, read_events};
use crate::session::Session;
use crate::session::response::{Response, RowSet};

/// The most rows of SHOW BINLOG EVENTS.
const MOST_EVENTS: u64 = 1 << 20;

/// A row of SHOW BINLOG EVENTS.
struct EventRow {
    position: u64,
    code: u8,
    server_id: u32,
    end: u64,
    info: String,
}

impl Session {
    /// The binary log with everything in its files that has been committed.
    ///
    /// # Errors
    /// 1381 without a binary log.
    pub(crate) fn written_log(&mut self, cx: &mut dyn ExecCx) -> Result<Arc<BinaryLog>, SqlError> {
        let log = self.server.binlog.clone().filter(|log| log.is_active());
        let log = log.ok_or_else(|| SqlError::new(ErrorCode::ER_NO_BINARY_LOGGING, &[]))?;
        let writing = log.clone();
        self.change(cx, move || {
            writing.catch_up();
            Ok(())
        })?;
        Ok(log)
    }

    pub(super) fn show_binary_log_status(
        &mut self,
        cx: &mut dyn ExecCx,
    ) -> Result<Response, SqlError> {
        if self
            .server
            .binlog
            .as_ref()
            .is_none_or(|log| !log.is_active())
        {
            return facts::empty(facts::BINARY_LOG_STATUS, None);
        }
        let log = self.written_log(cx)?;
        let (number, position, _) = log.end();
        let executed = self.server.gtids("gtid_executed").to_string();
        facts::one_row(facts::BINARY_LOG_STATUS, |name| match name {
            "File" => log.names.file(number).into(),
            "Position" => Value::UInt(position),
            "Executed_Gtid_Set" => executed.as_str().into(),
            _ => "".into(),
        })
    }

    pub(super) fn show_binary_logs(&mut self, cx: &mut dyn ExecCx) -> Result<Response, SqlError> {
        let log = self.written_log(cx)?;
        let mut set = RowSet::new(&facts::types(facts::BINARY_LOGS));
        for (number, file) in log.files() {
            set.push(vec![
                log.names.file(number).into(),
                Value::UInt(file.bytes),
                "No".into(),
            ]);
        }
        Ok(Response::Rows(set))
    }

    pub(super) fn show_replicas(&mut self) -> Result<Response, SqlError> {
        let mut set = RowSet::new(&facts::types(facts::REPLICAS));
        let id = self.server.int("server_id");
        for replica in self.server.binlog.iter().flat_map(|log| log.replicas()) {
            set.push(vec![
                Value::UInt(replica.server_id.into()),
                replica.host.into(),
                Value::UInt(replica.port.into()),
                Value::UInt(id),
                replica.uuid.into(),
            ]);
        }
        Ok(Response::Rows(set))
    }

    pub(super) fn show_binlog_events(
        &mut self,
        cx: &mut dyn ExecCx,
        (file, from): (Option<&str>, Option<u64>),
        limit: Option<ShowLimit>,
    ) -> Result<Response, SqlError> {
        if self
            .server
            .binlog
            .as_ref()
            .is_none_or(|log| !log.is_active())
        {
            return facts::empty(facts::LOG_EVENTS, None);
        }
        let log = self.written_log(cx)?;
        let failed = |what: &str| {
            let names: [&dyn std::fmt::Display; 2] = [&"SHOW BINLOG EVENTS", &what];
            SqlError::new(ErrorCode::ER_ERROR_WHEN_EXECUTING_COMMAND, &names)
        };
        let files = log.files();
        let found = match file {
            None => files.first(),
            Some(name) => files
                .iter()
                .find(|(n, _)| Some(*n) == log.names.number(name)),
        };
        let (number, file) = found.ok_or_else(|| failed("Could not find target log"))?;
        let (number, bytes, name) = (*number, file.bytes, log.names.file(*number));
        let checksums = file.checksums;
        let from = from.unwrap_or(FIRST_POSITION).max(FIRST_POSITION);
        let (offset, count) = limit.map_or((0, MOST_EVENTS), |l| (l.offset, l.count));
        let rows = self.change(cx, move || {
            Ok(read_rows(
                &log,
                (number, bytes, checksums),
                from,
                offset.saturating_add(count),
            ))
        })?;
        let rows = rows.map_err(|e| failed(&e.to_string()))?;
        let mut set = RowSet::new(&facts::types(facts::LOG_EVENTS));
        for row in rows.into_iter().skip(offset as usize) {
            set.push(vec![
                name.clone().into(),
                Value::UInt(row.position),
                event_name(row.code).into(),
                Value::UInt(row.server_id.into()),
                Value::UInt(row.end),
                row.info.into(),
            ]);
        }
        Ok(Response::Rows(set))
    }
}

/// Reads the first events from a position on. Blocks.
fn read_rows(
    log: &BinaryLog,
    (number, bytes, checksums): (u64, u64, bool),
    from: u64,
    most: u64,
) -> std::io::Result<Vec<EventRow>> {
    let bad = || std::io::Error::other("Wrong offset or I/O error");
    let file = log.open_file(number)?;
    let mut reader = EventReader::new(checksums);
    let (mut rows, mut at) = (Vec::new(), from);
    while at < bytes && (rows.len() as u64) < most {
        let chunk = read_events(&*file, at, bytes)?;
        let mut rest = &chunk[..];
        while !rest.is_empty() && (rows.len() as u64) < most {
            let size = Header::read(rest).map_err(|_| bad())?.size as usize;
            let (event, behind) = rest.split_at(size.min(rest.len()));
            let (header, event) = reader.read(event).map_err(|_| bad())?;
            let end = at + size as u64;
            rows.push(EventRow {
                position: at,
                code: header.code,
                server_id: header.server_id,
                end,
                info: info(&header, &event),
            });
            (at, rest) = (end, behind);
        }
    }
    Ok(rows)
}

/// The last column of SHOW BINLOG EVENTS.
fn info(header: &Header, event: &Event) -> String {
    match event {
        Event::FormatDescription(f) => {
            format!(
                "Server ver: {}, Binlog ver: {}",
                f.server_version, f.version
            )
        }
        Event::Rotate { file, position } => format!("{file};pos={position}"),
        Event::PreviousGtids(set) => set.to_string(),
        Event::Gtid(g) => {
            let next = match &g.gtid {
                Some(gtid @ Gtid::MySql { .. }) => gtid.to_string(),
                _ => "ANONYMOUS".into(),
            };
            format!("SET @@SESSION.GTID_NEXT= '{next}'")
        }
        Event::Query(q) => {
            let sql = String::from_utf8_lossy(&q.sql);
            let xid = if q.context.is_atomic_ddl {
                " /* xid */"
            } else {
                ""
            };
            match q.database.as_str() {
                "" => format!("{sql}{xid}"),
                _ if header.needs_no_database() => format!("{sql}{xid}"),
                database => format!("use `{database}`; {sql}{xid}"),
            }
        }
        Event::TableMap(map) => format!("table_id: {} ({}.{})", map.id, map.database, map.table),
        Event::Rows(rows) => {
            let end = if rows.ends_statement() {
                " flags: STMT_END_F"
            } else {
                ""
            };
            let partial = match rows.kind {
                RowChangeKind::PartialUpdate => " partial",
                _ => "",
            };
            format!("table_id: {}{end}{partial}", rows.table_id)
        }
        Event::RowsQuery(sql) => format!("# {}", String::from_utf8_lossy(sql)),
        Event::Xid(number) => format!("COMMIT /* xid={number} */"),
        Event::XaPrepare(event) => match event.one_phase {
            true => format!("XA COMMIT {} ONE PHASE", event.branch),
            false => format!("XA PREPARE {}", event.branch),
        },
        _ => String::new(),
    }
}
