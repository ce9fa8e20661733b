//! Executions with a cursor, and COM_STMT_FETCH.

use nfold_exec::{SessionEnv, WireFormat};
use nfold_protocol::consts::status;
use nfold_types::{ErrorCode, SqlError, Value};

use super::handler::unknown_statement;
use crate::net::conn::{Output, ResponseWriter, Socket, Transport};
use crate::net::fiber::handler::SessionHandler;
use crate::net::worker::{FiberCx, Token};
use crate::session::Session;
use crate::session::cursor::Cursor;
use crate::session::cx::FiberExec;
use crate::session::prepared::Statement;

impl Session {
    /// Runs a prepared statement and keeps its rows for COM_STMT_FETCH. A statement without rows is
    /// answered as without a cursor.
    pub(super) fn open_cursor(
        &mut self,
        cx: &FiberCx<'_>,
        statement: &mut Statement,
        values: &[Value],
        out: &mut ResponseWriter<'_>,
    ) {
        let mut cursor = Cursor::new(self.env.tmpdir());
        let memory = Socket::Memory(Vec::new());
        let transport = Transport::new(memory, &cx.local.poll, Token::new(0, 0).to_mio());
        let mut transport = match transport {
            Ok(transport) => transport,
            Err(e) => {
                let code = ErrorCode::ER_UNKNOWN_ERROR;
                return self.refuse(out, &SqlError::with_message(code, e.to_string()));
            }
        };
        let mut output = Output::default();
        output.borrow(cx.local);
        let mut kept =
            ResponseWriter::new(&mut output, &mut transport, cx, out.capabilities(), 0, 0);
        kept.keep_in(&mut cursor);
        self.answer(
            cx,
            &mut kept,
            WireFormat::Binary,
            false,
            |s, fiber, sink| {
                let result = s.run_prepared(fiber, statement, values, sink);
                match sink.out.take_store_error() {
                    Some(e) => Err(e),
                    None => result,
                }
            },
        );
        let fiber = &mut FiberExec { fiber: cx };
        let sent = cursor
            .finish(fiber, &mut output.bytes)
            .and_then(|()| cursor.send_columns(fiber, out));
        output.reset();
        output.release(cx.local);
        match sent {
            Ok(true) => {
                out.set_status(self.end_flags() | status::CURSOR_EXISTS);
                out.end_rows(self.warning_count());
                statement.set_cursor(cursor);
            }
            Ok(false) => {}
            Err(e) => self.refuse(out, &e),
        }
    }

    /// Sends the next rows of a statement's cursor. As in MySQL, only a fetch that finds fewer rows
    /// than it may send closes the cursor.
    pub(super) fn fetch_rows(
        &mut self,
        cx: &FiberCx<'_>,
        id: u32,
        rows: u32,
        out: &mut ResponseWriter<'_>,
    ) {
        cx.begin_statement(self.env.vars.settings().statement_memory, 0);
        let Some(statement) = self.prepared.get(id) else {
            return self.refuse(out, &unknown_statement(id));
        };
        let Some(mut cursor) = statement.take_cursor() else {
            let code = ErrorCode::ER_STMT_HAS_NO_OPEN_CURSOR;
            return self.refuse(out, &SqlError::new(code, &[&id]));
        };
        cx.set_statement_text(&statement.of.text, statement.of.number);
        let more = cursor.send_rows(&mut FiberExec { fiber: cx }, rows, out);
        let flag = match more {
            Ok(true) => {
                if let Some(statement) = self.prepared.get(id) {
                    statement.set_cursor(cursor);
                }
                status::CURSOR_EXISTS
            }
            Ok(false) => status::LAST_ROW_SENT,
            Err(e) => return self.refuse(out, &e),
        };
        out.set_status(self.status_flags() | flag);
        out.end_rows(0);
    }
}
