//! Sends the binary log to replicas: COM_REGISTER_SLAVE, COM_BINLOG_DUMP, COM_BINLOG_DUMP_GTID.
//!
//! # Picture
//! ```text
//! ROTATE (made) · FORMAT_DESCRIPTION · events of the file ─ end of the file ─▶ the next file
//!                                         └─ end of the last file: wait for more, heartbeats
//! ```
//! With GTIDs, the transactions that the replica has are left out.
//!
//! A semi-synchronous replica acknowledges the last event that there is (`binlog/semi_sync.rs`).
//! Nothing is sent until the acknowledgement is there.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use nfold_binlog::write::{self, Stamp};
use nfold_binlog::{Gtid, GtidSet, Header, SourceUuid, Tag};
use nfold_catalog::Privileges;
use nfold_engine::DiskFile;
use nfold_exec::SessionEnv;
use nfold_protocol::command::{BinlogDump, RegisterReplica};
use nfold_protocol::response;
use nfold_types::Value;

use crate::binlog::{BinaryLog, Dump, FIRST_POSITION, RegisteredReplica, read_events};
use crate::net::fiber::handler::ClientError;
use crate::net::fiber::writer::ResponseWriter;
use crate::net::worker::{FiberCx, Interrupt, Waiter};
use crate::session::Session;
use crate::session::cx::{FiberExec, blocking};

/// The time between two looks at the connection, if the replica requests no heartbeats.
const PATIENCE: Duration = Duration::from_secs(30);
/// Behind the first byte of a packet that holds an event.
const GTID: u8 = 33;
const ANONYMOUS_GTID: u8 = 34;
/// Types of events that are no part of a transaction.
const CONTROL: [u8; 5] = [3, 4, 15, 27, 35];
const CHECKSUM: usize = 4;
/// The first byte before an event for a semi-synchronous replica, and of its acknowledgement.
const SEMI_SYNC: u8 = 0xef;

/// Why a dump ends.
enum DumpEnd {
    /// The end of the files, if the replica wants no more.
    Complete,
    /// The connection is gone, or was killed.
    Lost,
    Error(ClientError),
}

impl From<Interrupt> for DumpEnd {
    fn from(_: Interrupt) -> Self {
        DumpEnd::Lost
    }
}

fn fatal(message: impl Into<String>) -> DumpEnd {
    DumpEnd::Error(ClientError::new(1236, "HY000", message))
}

/// The settings that a replica has put into user variables.
struct ReplicaSettings {
    /// `None`: no heartbeats.
    heartbeat: Option<Duration>,
    /// Whether events are to have checksums; `None`: the replica does not know of them.
    checksums: Option<bool>,
    /// The replica acknowledges events that request it.
    acknowledges: bool,
}

/// A dump in progress.
struct Sender<'d, 'o> {
    log: Arc<BinaryLog>,
    cx: &'d FiberCx<'d>,
    out: &'d mut ResponseWriter<'o>,
    settings: ReplicaSettings,
    /// The transactions that the replica has.
    known: Option<GtidSet>,
    /// The transaction at hand is one of these.
    skips: bool,
    /// The file has checksums, and the replica wants none.
    strips: bool,
    /// The events of the last format that was sent have checksums.
    sums: bool,
    ends: bool,
    /// The event at hand requests an acknowledgement.
    requests: bool,
    /// Such an event was sent.
    requested: bool,
}

impl Session {
    fn replica_variable(&self, names: [&str; 2]) -> Option<Value> {
        let values = names.into_iter().map(|name| self.env.user_var(name));
        values.into_iter().find(|value| *value != Value::Null)
    }

    fn replica_text(&self, names: [&str; 2]) -> Option<String> {
        match self.replica_variable(names)? {
            Value::Bytes(text) => Some(String::from_utf8_lossy(&text).into_owned()),
            _ => None,
        }
    }

    /// Whether the replica has said that it acknowledges, and the server wants that.
    fn wants_semi_sync(&self) -> bool {
        let own = self.replica_variable(["rpl_semi_sync_replica", "rpl_semi_sync_slave"]);
        let log = self.server.binlog.as_ref();
        let wanted = log.is_some_and(|log| log.semi_sync.is_enabled());
        wanted && matches!(own, Some(Value::Int(1) | Value::UInt(1)))
    }

    fn replica_settings(&self) -> ReplicaSettings {
        let period = self.replica_variable(["source_heartbeat_period", "master_heartbeat_period"]);
        let nanoseconds = match period {
            Some(Value::UInt(n)) => n,
            Some(Value::Int(n)) => u64::try_from(n).unwrap_or(0),
            _ => 0,
        };
        let checksum = self.replica_text(["source_binlog_checksum", "master_binlog_checksum"]);
        ReplicaSettings {
            heartbeat: (nanoseconds > 0).then(|| Duration::from_nanos(nanoseconds)),
            checksums: checksum.map(|word| word.eq_ignore_ascii_case("CRC32")),
            acknowledges: self.wants_semi_sync(),
        }
    }

    /// COM_REGISTER_SLAVE
    pub(super) fn register(&mut self, replica: RegisterReplica<'_>) -> Result<(), ClientError> {
        self.refresh_rights();
        let needs = Privileges::REPLICATION_SLAVE;
        let right = self.rights.need_global(needs, "REPLICATION SLAVE");
        right.map_err(|e| ClientError::from(&e))?;
        if let Some(log) = &self.server.binlog {
            let uuid = self.replica_text(["replica_uuid", "slave_uuid"]);
            let replica = RegisteredReplica {
                server_id: replica.server_id,
                host: String::from_utf8_lossy(replica.host).into_owned(),
                port: replica.port,
                uuid: uuid.unwrap_or_default(),
            };
            log.register(self.env.login.connection_id, replica);
        }
        Ok(())
    }

    /// COM_BINLOG_DUMP and COM_BINLOG_DUMP_GTID
    pub(super) fn dump(
        &mut self,
        cx: &FiberCx<'_>,
        request: BinlogDump<'_>,
        out: &mut ResponseWriter<'_>,
    ) {
        // A dump lasts as long as its connection. No limit of a statement counts.
        cx.begin_statement(0, 0);
        cx.lift_limits();
        match self.send_log(cx, request, out) {
            Ok(()) | Err(DumpEnd::Complete) => {}
            Err(DumpEnd::Error(e)) => out.error(&e),
            // Otherwise the replica would wait for more.
            Err(DumpEnd::Lost) => self.close_after = true,
        }
    }

    fn send_log(
        &mut self,
        cx: &FiberCx<'_>,
        request: BinlogDump<'_>,
        out: &mut ResponseWriter<'_>,
    ) -> Result<(), DumpEnd> {
        self.refresh_rights();
        let needs = Privileges::REPLICATION_SLAVE;
        let right = self.rights.need_global(needs, "REPLICATION SLAVE");
        right.map_err(|e| DumpEnd::Error(ClientError::from(&e)))?;
        let log = self.server.binlog.clone().filter(|log| log.is_active());
        let log = log.ok_or_else(|| fatal("Binary log is not open"))?;
        if request.server_id == 0 && !request.ends {
            return Err(fatal("Misconfigured replica: the server id is 0"));
        }
        let known = match request.gtids {
            None => None,
            Some(bytes) => {
                let set = GtidSet::decode(bytes);
                Some(set.map_err(|_| fatal("The GTID set of the replica is malformed"))?)
            }
        };
        let (number, position) = match &known {
            Some(set) => (first_file(&log, set)?, FIRST_POSITION),
            None => start_at(&log, request.file, request.position)?,
        };
        let settings = self.replica_settings();
        let mut sender = Sender {
            cx,
            out,
            known,
            skips: false,
            strips: false,
            sums: settings.checksums == Some(true),
            settings,
            ends: request.ends,
            requests: false,
            requested: false,
            log: log.clone(),
        };
        let dump = log.begin_dump(number);
        if sender.settings.acknowledges {
            dump.acknowledges();
        }
        sender.run(&dump, number, position)
    }
}

/// The place of a file position.
fn start_at(log: &BinaryLog, file: &[u8], position: u64) -> Result<(u64, u64), DumpEnd> {
    let missing = || fatal("Could not find first log file name in binary log index file");
    let files = log.files();
    // A client may send the 0 behind the name.
    let file = file.split(|&byte| byte == 0).next().unwrap_or_default();
    let found = match std::str::from_utf8(file).ok() {
        Some("") => files.first(),
        Some(name) => {
            let number = log.names.number(name.rsplit('/').next().unwrap_or(name));
            files.iter().find(|(n, _)| Some(*n) == number)
        }
        None => None,
    };
    let (number, file) = found.ok_or_else(missing)?;
    if position < FIRST_POSITION {
        return Err(fatal(
            "Client requested source to start replication from position < 4",
        ));
    }
    if position > file.bytes {
        return Err(fatal(
            "Client requested source to start replication from position > file size",
        ));
    }
    Ok((*number, position))
}

/// The last file that a replica with these transactions needs.
fn first_file(log: &BinaryLog, known: &GtidSet) -> Result<u64, DumpEnd> {
    let (_, _, executed) = log.end();
    if known.highest(log.uuid()) > executed.highest(log.uuid()) {
        return Err(fatal(
            "The replica has more GTIDs than the source has, using the source's SERVER_UUID. This \
             may indicate that the last binary log file was truncated or lost, e.g., after a power \
             failure when sync_binlog != 1. The source may have rolled back transactions that were \
             already replicated to the replica. Replicate any transactions that the source has \
             rolled back from the replica to the source, or commit empty transactions on the \
             source to account for transactions that have been committed on the source but are \
             not included in GTID_EXECUTED.",
        ));
    }
    let files = log.files();
    let mut fitting = files.iter().rev();
    let found = fitting.find(|(_, file)| file.previous.is_subset(known));
    found.map(|(number, _)| *number).ok_or_else(|| {
        let purged = files.first().map(|(_, file)| file.previous.clone());
        let missing = purged.unwrap_or_default().without(known);
        fatal(format!(
            "Cannot replicate because the source purged required binary logs. Replicate the \
             missing transactions from elsewhere, or provision a new replica from backup. Consider \
             increasing the source's binary log expiration period. The GTID set sent by the \
             replica is '{known}', and the missing transactions are '{missing}'"
        ))
    })
}

impl Sender<'_, '_> {
    fn run(&mut self, dump: &Dump, number: u64, position: u64) -> Result<(), DumpEnd> {
        let (mut number, mut position) = (number, position);
        loop {
            dump.set_file(number);
            let published = self
                .log
                .file(number)
                .ok_or_else(|| fatal("Could not find next log"))?;
            self.strips = match (published.checksums, self.settings.checksums) {
                (true, None) => {
                    return Err(fatal(
                        "Slave can not handle replication events with the checksum that master is \
                         configured to log",
                    ));
                }
                (in_file, wanted) => in_file && wanted == Some(false),
            };
            let log = self.log.clone();
            let file = self.blocking(move || log.open_file(number))?;
            self.send_head((number, position), &file)?;
            number = self.send_file(dump, (number, position), &file)?;
            position = FIRST_POSITION;
        }
    }

    /// Runs `f` on a thread that may block.
    fn blocking<T: Send + 'static>(
        &self,
        f: impl FnOnce() -> std::io::Result<T> + Send + 'static,
    ) -> Result<T, DumpEnd> {
        let mut fiber = FiberExec { fiber: self.cx };
        let done = blocking(&mut fiber, &AtomicBool::new(false), f);
        let done = done.map_err(|_| DumpEnd::Lost)?;
        let done = done.unwrap_or_else(|| Err(std::io::Error::other("the thread panicked")));
        done.map_err(|e| fatal(format!("log event entry cannot be read: {e}")))
    }

    /// Sends the name of the file, and its format.
    fn send_head(
        &mut self,
        (number, position): (u64, u64),
        file: &Arc<dyn DiskFile>,
    ) -> Result<(), DumpEnd> {
        let stamp = Stamp {
            timestamp: 0,
            server_id: self.log.server_id(),
        };
        let mut rotate = Vec::new();
        let name = self.log.names.file(number);
        write::rotate(&mut rotate, stamp, write::ARTIFICIAL, (&name, position));
        // As in MySQL, it is an event of the format before it. The first one has a checksum if the
        // replica knows of them.
        self.send(&write::seal(rotate, 0, self.sums))?;
        let bytes = self.log.file(number).map_or(0, |file| file.bytes);
        let opened = file.clone();
        let events = self.blocking(move || read_events(&*opened, FIRST_POSITION, bytes))?;
        let size = Header::read(&events).map_or(0, |h| h.size as usize);
        let Some(mut head) = events.get(..size).map(<[u8]>::to_vec) else {
            return Err(fatal("the file has no head"));
        };
        write::as_sent(&mut head, position > FIRST_POSITION, self.strips);
        self.send(&head)?;
        let has_checksums = self.log.file(number).is_some_and(|file| file.checksums);
        self.sums = has_checksums && !self.strips;
        Ok(self.out.flush()?)
    }

    /// Sends the events of a file from a position on. Returns the next file.
    fn send_file(
        &mut self,
        dump: &Dump,
        (number, position): (u64, u64),
        file: &Arc<dyn DiskFile>,
    ) -> Result<u64, DumpEnd> {
        let mut at = position;
        loop {
            let (published, commit) = self.log.end_of(number);
            if at < published {
                let opened = file.clone();
                let events = self.blocking(move || read_events(&*opened, at, published))?;
                let mut rest = &events[..];
                while let Ok(header) = Header::read(rest) {
                    let (event, behind) = rest.split_at((header.size as usize).min(rest.len()));
                    let is_last = at + event.len() as u64 == published;
                    self.requests = is_last && commit.is_some() && self.settings.acknowledges;
                    // The format was sent.
                    if at > FIRST_POSITION {
                        self.send_event(header.code, event)?;
                    }
                    at += event.len() as u64;
                    rest = behind;
                }
                self.out.flush()?;
                if let (true, Some(commit)) = (std::mem::take(&mut self.requests), commit) {
                    // The replica has a transaction that is left out.
                    if std::mem::take(&mut self.requested) {
                        self.read_acknowledgement(at)?;
                    }
                    self.log.acknowledged(dump, commit);
                }
                continue;
            }
            let later = self.log.files().into_iter().find(|(n, _)| *n > number);
            if let Some((next, _)) = later {
                // It may have grown before the later one began.
                if self.log.file(number).is_none_or(|file| file.bytes <= at) {
                    return Ok(next);
                }
                continue;
            }
            if self.ends {
                self.send_end()?;
                return Err(DumpEnd::Complete);
            }
            self.wait(number, at)?;
        }
    }

    fn send_end(&mut self) -> Result<(), DumpEnd> {
        let mut packet = Vec::new();
        response::encode_eof(&mut packet, 0, 0);
        self.out.raw(&packet);
        Ok(self.out.flush()?)
    }

    /// Waits for events, and sends heartbeats meanwhile.
    fn wait(&mut self, number: u64, at: u64) -> Result<(), DumpEnd> {
        let log = self.log.clone();
        let mut grown = std::pin::pin!(log.grown(number, at));
        loop {
            let time = self.settings.heartbeat.unwrap_or(PATIENCE);
            match self.cx.wait(grown.as_mut(), Some(Instant::now() + time)) {
                Ok(()) => return Ok(()),
                Err(Interrupt::Timeout) => {}
                Err(_) => return Err(DumpEnd::Lost),
            }
            if self.settings.heartbeat.is_some() {
                let name = self.log.names.file(number);
                let id = self.log.server_id();
                let event = write::heartbeat(id, (&name, at), self.sums);
                self.send(&event)?;
                self.out.flush()?;
            }
        }
    }

    /// Sends an event of a file, unless the replica has its transaction.
    fn send_event(&mut self, code: u8, event: &[u8]) -> Result<(), DumpEnd> {
        if let Some(known) = &self.known {
            match code {
                GTID => self.skips = gtid_of(event).is_some_and(|gtid| known.contains(&gtid)),
                ANONYMOUS_GTID => self.skips = false,
                _ => {}
            }
            if self.skips && !CONTROL.contains(&code) {
                return Ok(());
            }
        }
        if self.strips {
            let content = &event[..event.len().saturating_sub(CHECKSUM)];
            return self.send(&write::without_checksum(content));
        }
        self.send(event)
    }

    /// Waits until the replica has acknowledged everything up to a position.
    fn read_acknowledgement(&mut self, position: u64) -> Result<(), DumpEnd> {
        let mut packet = Vec::new();
        self.out.read_packet(&mut packet)?;
        // Positions in events have 32 bits.
        match packet.first_chunk::<5>() {
            Some([SEMI_SYNC, rest @ ..]) if u32::from_le_bytes(*rest) == position as u32 => Ok(()),
            _ => Err(fatal(
                "The replica sent another acknowledgement than was requested",
            )),
        }
    }

    fn send(&mut self, event: &[u8]) -> Result<(), DumpEnd> {
        let (acknowledges, requests) = (self.settings.acknowledges, self.requests);
        let packet = self.out.row_buffer();
        packet.push(0);
        if acknowledges {
            packet.extend_from_slice(&[SEMI_SYNC, u8::from(requests)]);
            self.requested |= requests;
        }
        packet.extend_from_slice(event);
        Ok(self.out.end_row()?)
    }
}

/// The GTID of a GTID event.
fn gtid_of(event: &[u8]) -> Option<Gtid> {
    let body = event.get(Header::BYTES + 1..)?;
    let (uuid, rest) = body.split_first_chunk::<16>()?;
    let number = rest.first_chunk::<8>()?;
    Some(Gtid::MySql {
        uuid: SourceUuid(*uuid),
        tag: Tag::default(),
        number: u64::from_le_bytes(*number),
    })
}
