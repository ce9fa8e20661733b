//! EXPLAIN FOR CONNECTION: the plan of the statement that another connection runs. The statement is
//! planned again, in that connection's database, with the privileges of this session.

use nfold_exec::ExecCx;
use nfold_sql::ast::{ExplainOptions, Statement};
use nfold_sql::printer::Quoted;
use nfold_types::{ErrorCode, SqlError};

use crate::session::Session;
use crate::session::plans::Work;
use crate::session::response::{Response, WireSink};

impl Session {
    /// Error 1094 if the connection does not exist, 1045 if it belongs to another user, 3012 if its
    /// statement has no plan.
    pub(super) fn explain_connection(
        &mut self,
        cx: &mut dyn ExecCx,
        options: &ExplainOptions,
        id: u64,
        sink: &mut WireSink<'_, '_>,
    ) -> Result<Response, SqlError> {
        let mut processes = self.server.registry.processes().into_iter();
        let Some(process) = processes.find(|p| u64::from(p.id) == id) else {
            return Err(SqlError::new(ErrorCode::ER_NO_SUCH_THREAD, &[&id]));
        };
        let Some(running) = process.text else {
            return Ok(Response::ok());
        };
        let login = &self.env.login;
        if process.identity.user != login.user && !self.rights.sees_all_processes() {
            let code = ErrorCode::ER_ACCESS_DENIED_ERROR;
            return Err(SqlError::new(
                code,
                &[&login.user, &login.client_host, &"NO"],
            ));
        }
        let refused = || SqlError::new(ErrorCode::ER_EXPLAIN_NOT_SUPPORTED, &[]);
        if process.id == login.connection_id {
            return Err(refused());
        }
        let mut text = b"EXPLAIN ".to_vec();
        if let Some(format) = options.format {
            text.extend_from_slice(format!("FORMAT={} ", format.name()).as_bytes());
        }
        if let Some(database) = &process.identity.database {
            text.extend_from_slice(format!("FOR SCHEMA {} ", Quoted(database)).as_bytes());
        }
        text.extend_from_slice(&running);
        let Ok((digested, parsed)) = self.parse_with_digest(cx, &text) else {
            return Err(refused());
        };
        if !matches!(parsed.statement, Statement::Explain { .. }) {
            return Err(refused());
        }
        let work = Work::parsed(&text, &digested, &parsed);
        self.run_rows(cx, &work, sink)
    }
}
