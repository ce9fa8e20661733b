//! Statements of a replication source, which run in the session of the channel's thread.

use nfold_exec::WireFormat;
use nfold_types::SqlError;

use super::client_text::lexable;
use crate::net::conn::{Output, ResponseWriter, Socket, Transport};
use crate::net::worker::{FiberCx, Token};
use crate::session::Session;
use crate::session::cx::FiberExec;
use crate::session::response::WireSink;
use crate::session::system_schemas;
use crate::unix_time::unix_us;

impl Session {
    /// Runs one statement, and drops its result.
    ///
    /// # Errors
    /// The statement's error.
    pub(crate) fn run_internal(&mut self, cx: &FiberCx<'_>, sql: &[u8]) -> Result<(), SqlError> {
        let settings = self.env.vars.settings();
        let text = match settings.rewritten {
            Some(set) => lexable(set, settings.lexing, sql),
            None => sql.into(),
        };
        self.env.begin_statement(unix_us());
        cx.begin_statement(settings.statement_memory, text.len());
        let mut digested = cx.pooled().digested();
        digested.read(&text, settings.lexing);
        self.digested = Some(digested);
        let memory = Socket::Memory(Vec::new());
        let transport = Transport::new(memory, &cx.local.poll, Token::new(0, 0).to_mio());
        let mut transport = transport.map_err(|e| {
            let code = nfold_types::ErrorCode::ER_UNKNOWN_ERROR;
            SqlError::with_message(code, e.to_string())
        })?;
        let mut output = Output::default();
        output.borrow(cx.local);
        let mut out = ResponseWriter::new(&mut output, &mut transport, cx, 0, 0, 0);
        let mut sink = WireSink {
            out: &mut out,
            format: WireFormat::Text,
            collation: None,
            begun: false,
            rows: 0,
        };
        let result = self.run_text(&mut FiberExec { fiber: cx }, &text, &mut sink);
        cx.lift_limits();
        output.release(cx.local);
        if let Some(digested) = self.digested.take() {
            cx.pooled().give_digested(digested);
        }
        self.after_statement(result.as_ref().err(), false);
        result.map(drop)
    }

    /// Sets the current database to that of a statement of the source. It need not exist: the
    /// statement may create it. Another statement then gets the error 1049 that names it.
    pub(crate) fn use_database_of_source(&mut self, name: &str) {
        self.refresh_schema();
        let stored = self
            .schema
            .database(name)
            .map(|d| (d.def.name.clone(), d.def.collation));
        let found = stored.or_else(|| {
            let system = system_schemas::database(name)?;
            Some((system.name.clone(), system.collation))
        });
        match found {
            Some((name, collation)) => self.env.set_database(Some(&name), collation),
            None => {
                let collation = self.env.vars.settings().collation_server;
                let name = Some(name).filter(|name| !name.is_empty());
                self.env.set_database(name, collation);
            }
        }
        self.plan_context_changed();
    }
}
