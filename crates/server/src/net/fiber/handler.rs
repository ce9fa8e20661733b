//! The boundary between a connection and the session behind it: what a worker calls, and what it
//! hands over.
//!
//! A worker owns one [`SessionHandler`] per logged-in connection and calls it from a coroutine, one
//! command at a time. The session writes its answer through [`ResponseWriter`] and waits only
//! through [`FiberCx`]. Both sides know nothing else of each other.

use nfold_protocol::command::ExecuteHeader;
use nfold_types::{ErrorCode, SqlError};

pub use crate::config::Limits;

use super::memory::Exceeded;
use super::writer::ResponseWriter;
use super::{FiberCx, Interrupt};

/// An error as the client sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientError {
    /// MySQL's number.
    pub code: u16,
    /// Five characters.
    pub sqlstate: &'static str,
    pub message: String,
}

impl ClientError {
    pub fn new(code: u16, sqlstate: &'static str, message: impl Into<String>) -> Self {
        ClientError {
            code,
            sqlstate,
            message: message.into(),
        }
    }
}

impl From<&nfold_types::error::SqlError> for ClientError {
    fn from(e: &nfold_types::error::SqlError) -> Self {
        ClientError::new(e.errno(), e.sqlstate(), &*e.message)
    }
}

impl std::fmt::Display for ClientError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "ERROR {} ({}): {}",
            self.code, self.sqlstate, self.message
        )
    }
}

impl std::error::Error for ClientError {}

/// Who has logged in, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginInfo {
    /// `CONNECTION_ID()`
    pub connection_id: u32,
    /// Name that the client gave; `USER()` is this at [`Self::client_host`].
    pub user: String,
    pub client_host: String,
    /// Account that matched; `CURRENT_USER()`.
    pub account_user: String,
    pub account_host: String,
    /// Database to start in. The session checks that it exists (1049) and may be used (1044).
    pub database: Option<String>,
    /// Collation id from the handshake; 0 after a COM_CHANGE_USER that names none.
    pub collation: u16,
    /// `nfold_protocol::consts::cap::*`, client and server agreed.
    pub capabilities: u32,
    /// Connection attributes in the order sent.
    pub attributes: Vec<(String, String)>,
    /// TLS is on.
    pub tls: bool,
}

/// The session behind one connection.
///
/// Methods that take an `out` write exactly one answer (or several results joined by
/// [`ResponseWriter::set_more_results`]); the others answer nothing. An [`Interrupt`] handed up by
/// `out` or `cx` that the session does not turn into an error itself is its to obey: return soon,
/// the connection is checked afterwards.
pub trait SessionHandler: Send {
    fn query(&mut self, cx: &FiberCx<'_>, sql: &[u8], out: &mut ResponseWriter<'_>);
    fn prepare(&mut self, cx: &FiberCx<'_>, sql: &[u8], out: &mut ResponseWriter<'_>);
    fn execute(
        &mut self,
        cx: &FiberCx<'_>,
        header: ExecuteHeader<'_>,
        out: &mut ResponseWriter<'_>,
    );
    fn fetch(&mut self, cx: &FiberCx<'_>, statement: u32, rows: u32, out: &mut ResponseWriter<'_>);
    /// No answer; an error (1243, 1210, ...) is reported by the next execute.
    fn send_long_data(&mut self, statement: u32, parameter: u16, data: &[u8]);
    /// No answer, also when there is no such statement.
    fn close_statement(&mut self, statement: u32);
    fn reset_statement(&mut self, cx: &FiberCx<'_>, statement: u32, out: &mut ResponseWriter<'_>);
    fn init_db(&mut self, cx: &FiberCx<'_>, database: &[u8], out: &mut ResponseWriter<'_>);
    fn field_list(
        &mut self,
        cx: &FiberCx<'_>,
        table: &[u8],
        wildcard: &[u8],
        out: &mut ResponseWriter<'_>,
    );
    /// Rolls back, forgets variables, prepared statements and temporary tables; the account stays.
    fn reset_connection(&mut self, cx: &FiberCx<'_>, out: &mut ResponseWriter<'_>);
    /// As [`Self::reset_connection`], for an account that has just been authenticated. The worker
    /// answers.
    fn change_user(&mut self, cx: &FiberCx<'_>, login: LoginInfo) -> Result<(), ClientError>;
    /// COM_PROCESS_KILL.
    fn kill(&mut self, cx: &FiberCx<'_>, connection: u32, out: &mut ResponseWriter<'_>);
    /// The line that COM_STATISTICS answers.
    fn statistics(&mut self, cx: &FiberCx<'_>) -> String;
    /// `nfold_protocol::consts::status::*` as of now; `IN_TRANS` also exempts the next command from
    /// admission.
    fn status_flags(&self) -> u16;
    /// A command is about to come: asks the processor for the session's own lines, without reading
    /// any of them.
    fn ask_for_own(&self) {}
    /// Asks for what those lead to.
    fn ask_for_rest(&self) {}
    /// The connection is over: roll back and release everything. Interrupts are off. Called once,
    /// last.
    fn disconnected(&mut self, cx: &FiberCx<'_>);
}

/// Makes sessions; shared by all workers.
pub trait SessionFactory: Send + Sync {
    /// Opens the session of an authenticated client. An error (1049, 1044, 1040, ...) is sent, and
    /// the connection closed.
    fn connect(
        &self,
        cx: &FiberCx<'_>,
        login: LoginInfo,
    ) -> Result<Box<dyn SessionHandler>, ClientError>;

    /// A statement has panicked on this thread: may the process go on? False where the thread still
    /// holds a latch or a mini-transaction; the process then ends.
    fn survives_panic(&self) -> bool;

    /// This thread is a worker. What its sessions need of others, but only once for all of them,
    /// they may put off from now on until it calls [`catch_up`](Self::catch_up).
    fn worker_begins(&self) {}

    /// Whether sessions of this worker have put something off.
    fn has_put_off(&self) -> bool {
        false
    }

    /// The worker is about to sleep, or it has been long enough: what was put off is done.
    /// `may_block`: nobody but one session needs this thread now or did lately, so it may do that
    /// in place, if handing it over would take about as long.
    fn catch_up(&self, _may_block: bool) {}
}

/// The error of a statement that needs more memory than it may have.
pub fn memory_exceeded(limit: Exceeded) -> SqlError {
    let (bytes, variable) = match limit {
        Exceeded::Statement(bytes) => (bytes, "nfold_statement_memory"),
        Exceeded::Server(bytes) => (bytes, "nfold_server_memory"),
    };
    SqlError::new(
        ErrorCode::ER_CAPACITY_EXCEEDED,
        &[&bytes, &variable, &"The statement was ended."],
    )
}

impl Interrupt {
    /// The error a statement ends with when it is interrupted.
    pub fn to_client_error(self) -> ClientError {
        match self {
            Interrupt::QueryKilled => {
                ClientError::new(1317, "70100", "Query execution was interrupted")
            }
            Interrupt::Killed => ClientError::new(1053, "08S01", "Server shutdown in progress"),
            Interrupt::Timeout => ClientError::new(
                1205,
                "HY000",
                "Lock wait timeout exceeded; try restarting transaction",
            ),
            Interrupt::StatementTimeout => ClientError::new(
                3024,
                "HY000",
                "Query execution was interrupted, maximum statement execution time exceeded",
            ),
            Interrupt::Memory(limit) => ClientError::from(&memory_exceeded(limit)),
            Interrupt::ConnectionLost => {
                ClientError::new(1159, "08S01", "Got timeout reading communication packets")
            }
        }
    }
}
