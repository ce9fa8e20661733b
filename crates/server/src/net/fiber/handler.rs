//! The interface between a connection and its session.
//!
//! A worker owns one [`SessionHandler`] for each logged-in connection, and calls it from a
//! coroutine, one command at a time. The session writes its answer through [`ResponseWriter`], and
//! waits only through [`FiberCx`].

use std::borrow::Cow;

use nfold_protocol::command::{BinlogDump, ExecuteHeader, RegisterReplica};
use nfold_types::{ErrorCode, SqlError};

pub use crate::config::Limits;

use super::memory::Exceeded;
use super::writer::ResponseWriter;
use super::{FiberCx, Interrupt};

/// An error as the client sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientError {
    /// MySQL's error number.
    pub code: u16,
    /// Five characters.
    pub sqlstate: Cow<'static, str>,
    pub message: String,
}

impl ClientError {
    pub fn new(code: u16, sqlstate: &'static str, message: impl Into<String>) -> Self {
        ClientError {
            code,
            sqlstate: sqlstate.into(),
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

/// The identity of a client that has logged in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginInfo {
    /// `CONNECTION_ID()`.
    pub connection_id: u32,
    /// The user name that the client sent. `USER()` is this name and [`Self::client_host`].
    pub user: String,
    pub client_host: String,
    /// The user name of the matching account, for `CURRENT_USER()`.
    pub account_user: String,
    pub account_host: String,
    /// The initial database. The session checks that it exists (1049) and may be used (1044).
    pub database: Option<String>,
    /// The collation id of the handshake; 0 if COM_CHANGE_USER has none.
    pub collation: u16,
    /// The negotiated capabilities, `nfold_protocol::consts::cap::*`.
    pub capabilities: u32,
    /// Connection attributes in the order sent.
    pub attributes: Vec<(String, String)>,
    /// Whether the connection uses TLS.
    pub tls: bool,
    /// Whether it came through a Unix socket, or is the server's own.
    pub local: bool,
    /// The client's level of zstd, if the capabilities have it; otherwise 0.
    pub zstd_level: u8,
}

/// The session of one connection.
///
/// A method that takes an `out` writes exactly one answer (or several results joined by
/// [`ResponseWriter::set_more_results`]); the others answer nothing. If `out` or `cx` returns an
/// [`Interrupt`] that the session does not turn into an error, it must return soon; the connection
/// is checked afterwards.
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
    /// Sends no answer. The next execute reports an error (1243, 1210, ...).
    fn send_long_data(&mut self, statement: u32, parameter: u16, data: &[u8]);
    /// Sends no answer, even if the statement does not exist.
    fn close_statement(&mut self, statement: u32);
    fn reset_statement(&mut self, cx: &FiberCx<'_>, statement: u32, out: &mut ResponseWriter<'_>);
    /// Answers OK.
    fn ping(&mut self, out: &mut ResponseWriter<'_>);
    fn init_db(&mut self, cx: &FiberCx<'_>, database: &[u8], out: &mut ResponseWriter<'_>);
    fn field_list(
        &mut self,
        cx: &FiberCx<'_>,
        table: &[u8],
        wildcard: &[u8],
        out: &mut ResponseWriter<'_>,
    );
    /// Rolls back, and discards variables, prepared statements and temporary tables. The account
    /// stays.
    fn reset_connection(&mut self, cx: &FiberCx<'_>, out: &mut ResponseWriter<'_>);
    /// As [`Self::reset_connection`], for a newly authenticated account. The worker sends the
    /// answer.
    fn change_user(&mut self, cx: &FiberCx<'_>, login: LoginInfo) -> Result<(), ClientError>;
    /// COM_PROCESS_KILL.
    fn kill(&mut self, cx: &FiberCx<'_>, connection: u32, out: &mut ResponseWriter<'_>);
    /// COM_REGISTER_SLAVE.
    fn register_replica(
        &mut self,
        _: &FiberCx<'_>,
        _: RegisterReplica<'_>,
        out: &mut ResponseWriter<'_>,
    ) {
        out.error(&ClientError::new(1047, "08S01", "Unknown command"));
    }
    /// COM_BINLOG_DUMP and COM_BINLOG_DUMP_GTID: sends events until the client is gone.
    fn binlog_dump(&mut self, _: &FiberCx<'_>, _: BinlogDump<'_>, out: &mut ResponseWriter<'_>) {
        out.error(&ClientError::new(1047, "08S01", "Unknown command"));
    }
    /// The answer to COM_STATISTICS.
    fn statistics(&mut self, cx: &FiberCx<'_>) -> String;
    /// The current `nfold_protocol::consts::status::*`. `IN_TRANS` exempts the next command from
    /// admission.
    fn status_flags(&self) -> u16;
    /// The changes of the session's state since the last answer, encoded for an OK packet.
    fn take_changes(&mut self) -> Option<Box<[u8]>> {
        None
    }
    /// Called before a command: prefetches the session's own cache lines, without reading any of
    /// them.
    fn prefetch_own(&self) {}
    /// Prefetches the memory that these lines point to.
    fn prefetch_rest(&self) {}
    /// The connection is closed: roll back and release everything. Interrupts are ignored. Called
    /// once, as the last call.
    fn disconnected(&mut self, cx: &FiberCx<'_>);
}

/// Creates sessions. All workers share it.
pub trait SessionFactory: Send + Sync {
    /// Opens the session of an authenticated client. An error (1049, 1044, 1040, ...) is sent, and
    /// the connection closed.
    fn connect(
        &self,
        cx: &FiberCx<'_>,
        login: LoginInfo,
    ) -> Result<Box<dyn SessionHandler>, ClientError>;

    /// Whether the process may continue after a statement has panicked on this thread. It must end
    /// if the thread still holds a latch or a mini-transaction.
    fn survives_panic(&self) -> bool;

    /// Called when a worker starts. Its sessions may then defer work that can be done once for all
    /// of them, until it calls [`catch_up`](Self::catch_up).
    fn worker_begins(&self) {}

    /// Whether sessions of this worker have deferred work.
    fn has_deferred(&self) -> bool {
        false
    }

    /// Does the deferred work. The worker calls it before it sleeps, or after some time.
    /// `may_block`: only one session has used this thread recently, so the work may run on it if
    /// that takes about as long as handing it to another thread.
    fn catch_up(&self, _may_block: bool) {}
}

/// The error of a statement that has reached a memory limit.
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
    /// The error of an interrupted statement.
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
