//! FLUSH BINARY LOGS, PURGE BINARY LOGS, RESET BINARY LOGS AND GTIDS.

use std::sync::Arc;

use nfold_catalog::Privileges;
use nfold_exec::{ExecCx, SessionEnv};
use nfold_sql::ast::Expr;
use nfold_types::temporal::parse::parse_datetime;
use nfold_types::temporal::{DateFlags, TimeZone};
use nfold_types::{DateTime, ErrorCode, SqlError, Value};

use crate::binlog::{BinaryLog, ONLY_VALUES};
use crate::session::Session;
use crate::session::response::Response;
use crate::session::vars::VarValue;

impl Session {
    fn active_log(&self) -> Option<Arc<BinaryLog>> {
        self.server.binlog.clone().filter(|log| log.is_active())
    }

    /// Runs `f` on a thread that may block.
    fn on_log<T: Send + 'static>(
        &mut self,
        cx: &mut dyn ExecCx,
        log: &Arc<BinaryLog>,
        f: impl FnOnce(&BinaryLog) -> std::io::Result<T> + Send + 'static,
    ) -> Result<T, SqlError> {
        let log = log.clone();
        let done = self.change(cx, move || Ok(f(&log)))?;
        done.map_err(|e| {
            let text = format!("the files of the binary log cannot be changed: {e}");
            SqlError::with_message(ErrorCode::ER_UNKNOWN_ERROR, text)
        })
    }

    /// FLUSH BINARY LOGS. Without a binary log there is nothing to do.
    pub(super) fn rotate_binary_log(&mut self, cx: &mut dyn ExecCx) -> Result<(), SqlError> {
        match self.active_log() {
            Some(log) => self.on_log(cx, &log, BinaryLog::rotate),
            None => Ok(()),
        }
    }

    fn need_purge(&self) -> Result<(), SqlError> {
        match self.rights.has_super_or(&["BINLOG_ADMIN"]) {
            true => Ok(()),
            false => self
                .rights
                .need_global(Privileges::SUPER, "SUPER or BINLOG_ADMIN"),
        }
    }

    /// PURGE BINARY LOGS TO
    pub(super) fn purge_to(
        &mut self,
        cx: &mut dyn ExecCx,
        file: &str,
    ) -> Result<Response, SqlError> {
        self.need_purge()?;
        let Some(log) = self.active_log() else {
            return Ok(Response::ok());
        };
        let name = file.rsplit('/').next().unwrap_or(file);
        let number = log.names.number(name).filter(|n| log.file(*n).is_some());
        let unknown = || SqlError::new(ErrorCode::ER_UNKNOWN_TARGET_BINLOG, &[]);
        let number = number.ok_or_else(unknown)?;
        self.on_log(cx, &log, move |log| log.purge_to(number))?;
        Ok(Response::ok())
    }

    /// PURGE BINARY LOGS BEFORE
    pub(super) fn purge_before(
        &mut self,
        cx: &mut dyn ExecCx,
        time: &Expr,
        text: &[u8],
    ) -> Result<Response, SqlError> {
        self.need_purge()?;
        let time = self.evaluate(cx, time, text)?;
        let zone = self.env.time_zone();
        let at = local_time(&time, zone).and_then(|local| zone.to_instant(local));
        let Some((at, _)) = at else {
            let code = ErrorCode::ER_WRONG_ARGUMENTS;
            return Err(SqlError::new(code, &[&"PURGE LOGS BEFORE"]));
        };
        let Some(log) = self.active_log() else {
            return Ok(Response::ok());
        };
        let seconds = u64::try_from(at.seconds()).unwrap_or(0);
        self.on_log(cx, &log, move |log| log.purge_before(seconds))?;
        Ok(Response::ok())
    }

    /// RESET BINARY LOGS AND GTIDS. Without a binary log there is nothing to do.
    pub(super) fn reset_binary_logs(
        &mut self,
        cx: &mut dyn ExecCx,
        to: Option<u64>,
    ) -> Result<Response, SqlError> {
        self.rights.need_global(Privileges::RELOAD, "RELOAD")?;
        let Some(log) = self.active_log() else {
            return Ok(Response::ok());
        };
        let number = to.unwrap_or(1);
        if !(1..=2_000_000_000).contains(&number) {
            let text = "The requested value is not valid for the number of a binary log file";
            return Err(SqlError::with_message(ErrorCode::ER_UNKNOWN_ERROR, text));
        }
        self.on_log(cx, &log, move |log| log.reset(number))?;
        Ok(Response::ok())
    }
}

impl Session {
    /// Checks a value that the binary log depends on.
    ///
    /// # Errors
    /// 1235 if the log cannot be written with it; 1694 for `sql_log_bin` inside a transaction.
    pub(super) fn refuse_log_setting(
        &self,
        name: &'static str,
        value: &VarValue,
    ) -> Result<(), SqlError> {
        if name == "sql_log_bin" && self.engine.has_writes() {
            let code = ErrorCode::ER_INSIDE_TRANSACTION_PREVENTS_SWITCH_SQL_LOG_BIN;
            return Err(SqlError::new(code, &[]));
        }
        if name == "sql_log_bin" && self.source_gtid.is_some() {
            return Err(SqlError::not_supported(
                "sql_log_bin with gtid_next = UUID:NUMBER",
            ));
        }
        let only = match name {
            "gtid_mode" => self.server.text(name).to_string(),
            _ => match ONLY_VALUES.iter().find(|(n, _)| *n == name) {
                Some((_, only)) => (*only).to_string(),
                None => return Ok(()),
            },
        };
        let shown = match value.to_value() {
            Value::Bytes(text) => String::from_utf8_lossy(&text).into_owned(),
            Value::Int(0) | Value::UInt(0) => "OFF".into(),
            _ => "ON".into(),
        };
        match shown.eq_ignore_ascii_case(&only) {
            true => Ok(()),
            false => Err(SqlError::not_supported(format!("{name} = {shown}"))),
        }
    }
}

/// A value as a time.
fn local_time(value: &Value, zone: &TimeZone) -> Option<DateTime> {
    match value {
        Value::DateTime(at) => Some(*at),
        Value::Date(date) => Some(date.at_midnight()),
        Value::Timestamp(at) => zone.to_local(*at),
        Value::Bytes(text) => {
            let parsed = parse_datetime(text, DateFlags::default()).ok()?;
            parsed.to_zone(zone)
        }
        _ => None,
    }
}
