//! A connection to a replication source, from the login to its stream of events.
//!
//! # Picture
//! ```text
//! login ─▶ SELECT: uuid, checksums ─▶ SET: heartbeat, checksums, our uuid ─▶ COM_REGISTER_SLAVE
//!       ─▶ COM_BINLOG_DUMP_GTID │ COM_BINLOG_DUMP ─▶ 0 · event ─▶ 0 · event ─▶ ...
//! ```
//! MariaDB has COM_BINLOG_DUMP only. It starts by GTIDs if `@slave_connect_state` is set, and sends
//! its own events to a replica that says by `@mariadb_slave_capability` that it knows them.

use std::fmt;
use std::io;
use std::net::TcpStream;
use std::time::Duration;

use nfold_binlog::{BinlogError, GtidSet};
use nfold_protocol::Malformed;
use nfold_protocol::response::parse_err;

use crate::ChannelConfig;
use crate::client::Client;
use crate::semi_sync;

const COM_BINLOG_DUMP: u8 = 0x12;
const COM_REGISTER_SLAVE: u8 = 0x15;
const COM_BINLOG_DUMP_GTID: u8 = 0x1e;
/// The longest time without an answer to a query before the events.
const QUERY_TIMEOUT: Duration = Duration::from_secs(60);
/// The position of a file's first event.
const FIRST_POSITION: u64 = 4;

/// Why a source cannot be followed.
#[derive(Debug)]
pub enum SourceError {
    /// The connection broke, or was not made. It may be tried again.
    Io(io::Error),
    /// The source answers with an error.
    Server { code: u16, message: String },
    /// The source speaks otherwise than expected.
    Protocol(String),
}

impl SourceError {
    /// The error of an ERR packet.
    pub(crate) fn refused(packet: &[u8]) -> SourceError {
        match parse_err(packet) {
            Ok((code, _, message)) => SourceError::Server {
                code,
                message: String::from_utf8_lossy(message).into_owned(),
            },
            Err(e) => e.into(),
        }
    }

    /// Whether the same attempt may succeed later.
    pub fn is_transient(&self) -> bool {
        match self {
            SourceError::Io(_) => true,
            // Too many connections, shutdown, lost connection.
            SourceError::Server { code, .. } => {
                matches!(code, 1040 | 1053 | 1077 | 1158..=1161 | 2013)
            }
            SourceError::Protocol(_) => false,
        }
    }

    /// MySQL's number for the error.
    pub fn code(&self) -> u16 {
        match self {
            SourceError::Io(_) => 2003,
            SourceError::Server { code, .. } => *code,
            SourceError::Protocol(_) => 13_117,
        }
    }
}

impl fmt::Display for SourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SourceError::Io(e) => write!(f, "{e}"),
            SourceError::Server { message, .. } => f.write_str(message),
            SourceError::Protocol(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for SourceError {}

impl From<io::Error> for SourceError {
    fn from(e: io::Error) -> Self {
        SourceError::Io(e)
    }
}

impl From<Malformed> for SourceError {
    fn from(e: Malformed) -> Self {
        SourceError::Protocol(e.to_string())
    }
}

impl From<BinlogError> for SourceError {
    fn from(e: BinlogError) -> Self {
        SourceError::Protocol(e.to_string())
    }
}

/// Where the stream of events begins.
#[derive(Debug, Clone, Copy)]
pub enum StartAt<'a> {
    /// Behind these transactions.
    Gtids(&'a GtidSet),
    /// At this position of a file; with an empty name, the source's first file.
    Position { file: &'a str, position: u64 },
}

/// A connection to a source.
pub struct Source {
    pub(crate) client: Client,
    /// `@@server_uuid`; empty for a source that has none.
    pub uuid: String,
    pub server_id: u32,
    /// Whether events have checksums.
    pub checksums: bool,
    /// The global `explicit_defaults_for_timestamp` of a MariaDB; statements of one before 10.10 do
    /// not carry it.
    pub explicit_defaults: bool,
    /// The source's clock when it was asked, in seconds since 1970.
    pub clock_s: u64,
    /// Each event has a header of semi-synchronous replication.
    pub(crate) semi_sync: bool,
    /// A commit waits for the last event.
    pub(crate) ack_wanted: bool,
}

impl Source {
    /// Connects, logs in, and reads the source's settings.
    ///
    /// # Errors
    /// The source cannot be reached, or refuses.
    pub fn connect(config: &ChannelConfig) -> Result<Source, SourceError> {
        let client = Client::connect(config)?;
        client.wire.set_timeout(Some(QUERY_TIMEOUT))?;
        let mut source = Source {
            client,
            uuid: String::new(),
            server_id: 0,
            checksums: false,
            explicit_defaults: true,
            clock_s: 0,
            semi_sync: false,
            ack_wanted: false,
        };
        let rows = source
            .client
            .query("SELECT @@server_id, @@binlog_checksum, @@log_bin, UNIX_TIMESTAMP()")?;
        let value = |n: usize| rows.first().and_then(|row| row.get(n)?.clone());
        let value = |n: usize| value(n).unwrap_or_default();
        source.server_id = value(0).parse().unwrap_or(0);
        source.clock_s = value(3).parse().unwrap_or(0);
        source.checksums = !value(1).eq_ignore_ascii_case("NONE");
        if value(2) != "1" {
            return Err(SourceError::Server {
                code: 1236,
                message: "Binary log is not open".into(),
            });
        }
        if source.is_mariadb() {
            let sql = "SELECT @@global.explicit_defaults_for_timestamp";
            source.explicit_defaults = source.client.value(sql)?.as_deref() == Some("1");
        } else {
            let uuid = source.client.value("SELECT @@server_uuid")?;
            source.uuid = uuid.unwrap_or_default();
        }
        Ok(source)
    }

    /// Whether the source is a MariaDB.
    pub fn is_mariadb(&self) -> bool {
        self.client.version().contains("MariaDB")
    }

    /// A second handle of the socket. Another thread ends a wait for events by shutting it down.
    ///
    /// # Errors
    /// The system has no descriptor left.
    pub fn handle(&self) -> io::Result<TcpStream> {
        self.client.handle()
    }

    /// Starts the stream of events. `server_id` and `uuid` are those of this server. `semi_sync`:
    /// this replica acknowledges events if the source wants that.
    ///
    /// # Errors
    /// The source refuses, or the connection breaks. Some refusals come with the first event.
    pub fn start(
        &mut self,
        config: &ChannelConfig,
        (server_id, uuid): (u32, &str),
        at: StartAt<'_>,
        semi_sync: bool,
    ) -> Result<(), SourceError> {
        let heartbeat_ns = u64::from(config.heartbeat_ms) * 1_000_000;
        self.client.query(&format!(
            "SET @master_heartbeat_period = {heartbeat_ns}, \
             @source_heartbeat_period = {heartbeat_ns}, \
             @master_binlog_checksum = @@global.binlog_checksum, \
             @source_binlog_checksum = @@global.binlog_checksum"
        ))?;
        if !uuid.is_empty() {
            self.client.query(&format!(
                "SET @slave_uuid = '{uuid}', @replica_uuid = '{uuid}'"
            ))?;
        }
        if self.is_mariadb() {
            self.prepare_mariadb(at)?;
        }
        if semi_sync {
            self.agree_on_acks()?;
        }
        // Without an event and without a heartbeat, the connection is lost.
        let silence = match config.heartbeat_ms {
            0 => None,
            ms => Some(Duration::from_millis(u64::from(ms) * 2 + 5_000)),
        };
        self.client.wire.set_timeout(silence)?;
        self.register(server_id)?;
        let command = match at {
            StartAt::Gtids(_) if self.is_mariadb() => dump(server_id, "", FIRST_POSITION)?,
            StartAt::Gtids(set) => dump_gtid(server_id, set),
            StartAt::Position { file, position } => dump(server_id, file, position)?,
        };
        Ok(self.client.wire.command(&command)?)
    }

    /// Says what this replica knows of MariaDB, and sets where the stream begins.
    fn prepare_mariadb(&mut self, at: StartAt<'_>) -> Result<(), SourceError> {
        /// All events, GTIDs among them.
        const CAPABILITY_GTID: u8 = 4;
        let sql = format!("SET @mariadb_slave_capability = {CAPABILITY_GTID}");
        self.client.run(sql.as_bytes())?;
        if let StartAt::Gtids(set) = at {
            // Strict: a position that the source does not have is an error, also if the source has
            // later transactions of the domain.
            let sql = format!(
                "SET @slave_connect_state = '{}', @slave_gtid_strict_mode = 1, \
                 @slave_gtid_ignore_duplicates = 0",
                set.domains()
            );
            self.client.run(sql.as_bytes())?;
        }
        Ok(())
    }

    /// COM_REGISTER_SLAVE, so that the source lists this server in SHOW REPLICAS.
    fn register(&mut self, server_id: u32) -> Result<(), SourceError> {
        let mut command = vec![COM_REGISTER_SLAVE];
        command.extend_from_slice(&server_id.to_le_bytes());
        // Host, user and password, which only a report shows; port, rank, the source's id.
        command.extend_from_slice(&[0, 0, 0]);
        command.extend_from_slice(&0u16.to_le_bytes());
        command.extend_from_slice(&0u32.to_le_bytes());
        command.extend_from_slice(&0u32.to_le_bytes());
        self.client.command(&command).map(drop)
    }

    /// Waits for the next event, and returns its bytes.
    ///
    /// # Errors
    /// The source's error; a broken connection; the end of the stream.
    pub fn next_event(&mut self) -> Result<&[u8], SourceError> {
        self.client.receive()?;
        let packet = self.client.packet();
        match packet[0] {
            0 if self.semi_sync => {
                self.ack_wanted = semi_sync::wants_ack(&packet[1..])?;
                Ok(&packet[1 + semi_sync::HEADER..])
            }
            0 => Ok(&packet[1..]),
            0xfe => Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
            _ => Err(SourceError::Protocol("unknown packet in the events".into())),
        }
    }
}

fn dump(server_id: u32, file: &str, position: u64) -> Result<Vec<u8>, SourceError> {
    let position = u32::try_from(position.max(FIRST_POSITION)).map_err(|_| {
        SourceError::Protocol(format!(
            "the position {position} of file '{file}' is beyond 4 GiB, which COM_BINLOG_DUMP cannot \
             name; use SOURCE_AUTO_POSITION"
        ))
    })?;
    let mut command = vec![COM_BINLOG_DUMP];
    command.extend_from_slice(&position.to_le_bytes());
    command.extend_from_slice(&0u16.to_le_bytes());
    command.extend_from_slice(&server_id.to_le_bytes());
    command.extend_from_slice(file.as_bytes());
    Ok(command)
}

fn dump_gtid(server_id: u32, set: &GtidSet) -> Vec<u8> {
    const THROUGH_GTID: u16 = 4;
    let mut encoded = Vec::new();
    set.encode(&mut encoded);
    let mut command = vec![COM_BINLOG_DUMP_GTID];
    command.extend_from_slice(&THROUGH_GTID.to_le_bytes());
    command.extend_from_slice(&server_id.to_le_bytes());
    command.extend_from_slice(&0u32.to_le_bytes());
    command.extend_from_slice(&FIRST_POSITION.to_le_bytes());
    command.extend_from_slice(&(encoded.len() as u32).to_le_bytes());
    command.extend_from_slice(&encoded);
    command
}
