//! SHOW PROCESSLIST and KILL.

use nfold_exec::ExecCx;
use nfold_protocol::command::command_name;
use nfold_sql::ast::{Expr, KillTarget};
use nfold_types::{ColumnType, ErrorCode, SqlError, TypeKind, Value};

use crate::net::worker::KillKind;
use crate::session::Session;
use crate::session::response::{Response, RowSet, text_type};

/// The length of a statement in SHOW PROCESSLIST without FULL, in characters.
const SHORT: usize = 100;

impl Session {
    pub(super) fn show_processlist(&mut self, full: bool) -> Result<Response, SqlError> {
        let id = ColumnType::bigint().with_unsigned();
        let mut set = RowSet::new(&[
            ("Id", id),
            ("User", text_type(32)),
            ("Host", text_type(261)),
            ("db", text_type(64)),
            ("Command", text_type(16)),
            ("Time", ColumnType::new(TypeKind::Int)),
            ("State", text_type(64)),
            ("Info", text_type(if full { 16_000 } else { SHORT as u32 })),
        ]);
        let all = self.rights.sees_all_processes();
        let own = &self.env.login.user;
        let processes = self.server.registry.processes();
        for (p, state) in self.server.with_states(processes) {
            if !all && p.identity.user != *own {
                continue;
            }
            let text = p.text.map(|t| {
                let text = String::from_utf8_lossy(&t).into_owned();
                if full {
                    text
                } else {
                    text.chars().take(SHORT).collect()
                }
            });
            set.push(vec![
                Value::UInt(u64::from(p.id)),
                Value::from(p.identity.user),
                Value::from(p.identity.host),
                p.identity.database.into(),
                Value::from(command_name(p.command)),
                Value::Int((p.elapsed_us / 1_000_000) as i64),
                Value::from(state),
                text.into(),
            ]);
        }
        Ok(Response::Rows(set))
    }

    /// KILL
    pub(crate) fn kill_statement(
        &mut self,
        cx: &mut dyn ExecCx,
        target: KillTarget,
        id: &Expr,
        text: &[u8],
    ) -> Result<Response, SqlError> {
        let id = match self.evaluate(cx, id, text)? {
            Value::Int(n) => u64::try_from(n).unwrap_or(0),
            Value::UInt(n) => n,
            Value::Bytes(b) => String::from_utf8_lossy(&b).trim().parse().unwrap_or(0),
            _ => 0,
        };
        let kind = match target {
            KillTarget::Connection => KillKind::Connection,
            KillTarget::Query => KillKind::Query,
        };
        self.kill_connection(id, kind)?;
        Ok(Response::ok())
    }

    /// Kills another connection or its statement. Error 1094 if it does not exist, 1095 if it
    /// belongs to another user. For the session's own id the error is 1317.
    pub(crate) fn kill_connection(&mut self, id: u64, kind: KillKind) -> Result<(), SqlError> {
        let unknown = || SqlError::new(ErrorCode::ER_NO_SUCH_THREAD, &[&id]);
        let number = u32::try_from(id).map_err(|_| unknown())?;
        let registry = &self.server.registry;
        let user = registry.user_of(number).ok_or_else(unknown)?;
        if user != self.env.login.user && !self.rights.has_global(nfold_catalog::Privileges::SUPER)
        {
            return Err(SqlError::new(ErrorCode::ER_KILL_DENIED_ERROR, &[&id]));
        }
        if number == self.env.login.connection_id {
            self.close_after |= kind == KillKind::Connection;
            return Err(SqlError::new(ErrorCode::ER_QUERY_INTERRUPTED, &[]));
        }
        if registry.kill(number, kind) {
            Ok(())
        } else {
            Err(unknown())
        }
    }
}
