//! A blocking connection for administration: one statement at a time, with its rows kept in memory.

use std::io::{self, Read, Write};
use std::time::Duration;

use nfold_protocol::Reader;
use nfold_protocol::consts::com;

use super::auth::{self, Agreed};
use super::command::{Command, packet};
use super::response::{Answer, NoRows, Response, RowSink};
use super::stream::Stream;
use crate::LabError;
use crate::dsn::Dsn;

/// The longest time to wait for a server to accept a connection.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The longest time without bytes from the server during a login.
const LOGIN_READ_TIMEOUT: Duration = Duration::from_secs(60);

/// Opens a socket and logs in. Waits at most `timeout` for the server to accept the connection.
pub(super) fn open_stream(dsn: &Dsn, timeout: Duration) -> Result<(Stream, Agreed), LabError> {
    let stream = Stream::connect(dsn, timeout, Some(LOGIN_READ_TIMEOUT))?;
    let (stream, agreed) = auth::log_in(stream, dsn).map_err(|e| match e {
        LabError::Server { code, message } => LabError::Refused {
            server: dsn.to_string(),
            code,
            message,
        },
        other => other,
    })?;
    stream
        .set_timeouts(None)
        .map_err(LabError::io(format!("cannot use the connection to {dsn}")))?;
    Ok((stream, agreed))
}

/// The most bytes that one `recv` takes.
const BUFFER: usize = 64 << 10;

/// A session on a server.
#[derive(Debug)]
pub struct Connection {
    stream: Stream,
    agreed: Agreed,
    name: String,
    buffer: Vec<u8>,
}

/// A complete text result.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct ResultSet {
    pub columns: Vec<String>,
    /// `None` is NULL.
    pub rows: Vec<Vec<Option<Vec<u8>>>>,
    pub affected_rows: u64,
}

impl ResultSet {
    /// A value as text. `None` for NULL, and if the row or column does not exist.
    pub fn text(&self, row: usize, column: usize) -> Option<String> {
        let value = self.rows.get(row)?.get(column)?.as_ref()?;
        Some(String::from_utf8_lossy(value).into_owned())
    }
}

impl Connection {
    /// Connects and logs in.
    pub fn open(dsn: &Dsn) -> Result<Connection, LabError> {
        let (stream, agreed) = open_stream(dsn, CONNECT_TIMEOUT)?;
        Ok(Connection {
            stream,
            agreed,
            name: dsn.to_string(),
            buffer: Vec::new(),
        })
    }

    /// The server's `version()`, from its greeting.
    pub fn server_version(&self) -> &str {
        &self.agreed.server_version
    }

    /// The server's id of this connection.
    pub fn id(&self) -> u32 {
        self.agreed.connection_id
    }

    /// The capabilities agreed with the server.
    pub(super) fn capabilities(&self) -> u32 {
        self.agreed.capabilities
    }

    /// The server's name, for messages.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Frees its buffer until it is needed again. For one of many idle connections.
    pub fn rest(&mut self) {
        self.buffer = Vec::new();
    }

    /// Executes one statement and returns its rows, or those of the last result if there are
    /// several.
    pub fn query(&mut self, sql: &str) -> Result<ResultSet, LabError> {
        let mut rows = Rows::default();
        let mut command = Command::default();
        command.text().extend_from_slice(sql.as_bytes());
        let mut out = Vec::new();
        command.encode_text(&mut out);
        let answer = self.exchange(&out, false, &mut rows)?;
        if let Some(error) = answer.error {
            return Err(LabError::Server {
                code: error.code,
                message: error.message,
            });
        }
        rows.result.affected_rows = answer.affected_rows;
        match rows.broken {
            true => Err(LabError::malformed(format!(
                "{}: a row that is none",
                self.name
            ))),
            false => Ok(rows.result),
        }
    }

    /// Executes one statement and ignores its rows. An error of the server is part of the answer.
    pub fn run(&mut self, sql: &[u8]) -> Result<Answer, LabError> {
        let mut out = Vec::with_capacity(sql.len() + 5);
        packet(&mut out, com::QUERY, |out| out.extend_from_slice(sql));
        self.exchange(&out, false, &mut NoRows)
    }

    /// The first column of the first row. `None` if there is none, or if it is NULL.
    pub fn value(&mut self, sql: &str) -> Result<Option<String>, LabError> {
        Ok(self.query(sql)?.text(0, 0))
    }

    /// Prepares a statement. Returns its id and the number of parameters.
    pub fn prepare(&mut self, sql: &str) -> Result<(u32, u16), LabError> {
        let mut out = Vec::new();
        packet(&mut out, com::STMT_PREPARE, |out| {
            out.extend_from_slice(sql.as_bytes())
        });
        let answer = self.exchange(&out, true, &mut NoRows)?;
        match (answer.prepared, answer.error) {
            (Some(prepared), _) => Ok(prepared),
            (None, Some(error)) => Err(LabError::Server {
                code: error.code,
                message: error.message,
            }),
            (None, None) => Err(LabError::malformed(format!(
                "{}: prepare without an answer",
                self.name
            ))),
        }
    }

    /// Executes statement `id` with the command's values. Rows are counted and hashed.
    pub fn execute(&mut self, id: u32, command: &Command) -> Result<Answer, LabError> {
        let mut out = Vec::new();
        command.encode_execute(id, &mut out);
        self.exchange(&out, false, &mut NoRows)
    }

    fn exchange(
        &mut self,
        out: &[u8],
        prepare: bool,
        sink: &mut impl RowSink,
    ) -> Result<Answer, LabError> {
        self.send(out)?;
        let mut response = Response::new(self.agreed.capabilities, true);
        response.begin(prepare);
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.resize(BUFFER, 0);
        let done = loop {
            let n = self.receive(&mut buffer)?;
            let done = response
                .feed(&buffer[..n], sink)
                .map_err(|e| LabError::malformed(format!("{}: {e}", self.name)))?;
            if done {
                break response.answer().clone();
            }
        };
        self.buffer = buffer;
        Ok(done)
    }

    /// Sends packets.
    pub(super) fn send(&mut self, packets: &[u8]) -> Result<(), LabError> {
        self.stream
            .write_all(packets)
            .and_then(|()| self.stream.flush())
            .map_err(|e| self.lost(e))
    }

    /// Waits for bytes. Returns how many there are, at least one.
    pub(super) fn receive(&mut self, buffer: &mut [u8]) -> Result<usize, LabError> {
        loop {
            match self.stream.read(buffer) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Ok(0) => return Err(self.lost(io::ErrorKind::UnexpectedEof.into())),
                Ok(n) => return Ok(n),
                Err(e) => return Err(self.lost(e)),
            }
        }
    }

    fn lost(&self, error: io::Error) -> LabError {
        LabError::Io {
            doing: format!("lost the connection to {}", self.name),
            error,
        }
    }
}

impl Drop for Connection {
    /// Sends COM_QUIT, so that the server does not count an aborted client.
    fn drop(&mut self) {
        let _ = self.stream.write(&[1, 0, 0, 0, com::QUIT]);
    }
}

#[derive(Default)]
struct Rows {
    result: ResultSet,
    broken: bool,
}

impl RowSink for Rows {
    fn wants_rows(&self) -> bool {
        true
    }

    fn column(&mut self, definition: &[u8]) {
        if !self.result.rows.is_empty() {
            self.result = ResultSet::default();
        }
        let mut r = Reader::new(definition);
        // An EOF packet after the definitions (5 bytes) is not a definition.
        let name = (|| {
            for what in ["catalog", "schema", "table", "org_table"] {
                r.lenenc_bytes(what)?;
            }
            r.lenenc_bytes("name")
        })();
        if let Ok(name) = name {
            self.result
                .columns
                .push(String::from_utf8_lossy(name).into_owned());
        }
    }

    fn row(&mut self, payload: &[u8]) {
        let mut r = Reader::new(payload);
        let mut row = Vec::with_capacity(self.result.columns.len());
        for _ in 0..self.result.columns.len() {
            if r.rest().first() == Some(&0xfb) {
                let _ = r.u8("null");
                row.push(None);
                continue;
            }
            match r.lenenc_bytes("value") {
                Ok(value) => row.push(Some(value.to_vec())),
                Err(_) => {
                    self.broken = true;
                    return;
                }
            }
        }
        self.result.rows.push(row);
    }
}
