//! Events: the header that all of them have, and their bodies.
//!
//! # Picture
//! ```text
//! 0 u32 seconds since 1970 │ 4 u8 type │ 5 u32 server id │ 9 u32 size in bytes, all of it
//! 13 u32 end position (modulo 2^32) │ 17 u16 flags │ 19 body │ u32 CRC-32, if the stream has them
//! ```

use nfold_protocol::Reader;

use crate::branch::{BranchId, XaPrepareEvent};
use crate::gtid::{Gtid, SourceUuid, Tag};
use crate::payload::PayloadEvent;
use crate::query::QueryEvent;
use crate::rows::{RowChangeKind, RowsEvent};
use crate::table_map::TableMap;
use crate::{BinlogError, GtidSet, mariadb, tagged};

/// The bytes of a checksum.
const CHECKSUM: usize = 4;

/// The numbers of event types.
pub(crate) mod code {
    pub const QUERY: u8 = 2;
    pub const STOP: u8 = 3;
    pub const ROTATE: u8 = 4;
    pub const FORMAT_DESCRIPTION: u8 = 15;
    pub const XID: u8 = 16;
    pub const TABLE_MAP: u8 = 19;
    pub const WRITE_ROWS_V1: u8 = 23;
    pub const UPDATE_ROWS_V1: u8 = 24;
    pub const DELETE_ROWS_V1: u8 = 25;
    pub const HEARTBEAT: u8 = 27;
    pub const ROWS_QUERY: u8 = 29;
    pub const WRITE_ROWS: u8 = 30;
    pub const UPDATE_ROWS: u8 = 31;
    pub const DELETE_ROWS: u8 = 32;
    pub const GTID: u8 = 33;
    pub const ANONYMOUS_GTID: u8 = 34;
    pub const PREVIOUS_GTIDS: u8 = 35;
    pub const XA_PREPARE: u8 = 38;
    pub const PARTIAL_UPDATE_ROWS: u8 = 39;
    pub const TRANSACTION_PAYLOAD: u8 = 40;
    pub const HEARTBEAT_V2: u8 = 41;
    pub const GTID_TAGGED: u8 = 42;
    // MariaDB's.
    pub const ANNOTATE_ROWS: u8 = 160;
    pub const BINLOG_CHECKPOINT: u8 = 161;
    pub const MARIADB_GTID: u8 = 162;
    pub const GTID_LIST: u8 = 163;
    pub const START_ENCRYPTION: u8 = 164;
    pub const QUERY_COMPRESSED: u8 = 165;
    pub const WRITE_ROWS_COMPRESSED_V1: u8 = 166;
    pub const UPDATE_ROWS_COMPRESSED_V1: u8 = 167;
    pub const DELETE_ROWS_COMPRESSED_V1: u8 = 168;
    pub const WRITE_ROWS_COMPRESSED: u8 = 169;
    pub const UPDATE_ROWS_COMPRESSED: u8 = 170;
    pub const DELETE_ROWS_COMPRESSED: u8 = 171;
}

/// The name of an event type, as MySQL shows it.
pub fn event_name(code: u8) -> &'static str {
    match code {
        code::QUERY => "Query",
        code::STOP => "Stop",
        code::ROTATE => "Rotate",
        5 => "Intvar",
        13 => "RAND",
        14 => "User var",
        code::FORMAT_DESCRIPTION => "Format_desc",
        code::XID => "Xid",
        17 => "Begin_load_query",
        18 => "Execute_load_query",
        code::TABLE_MAP => "Table_map",
        code::WRITE_ROWS_V1 => "Write_rows_v1",
        code::UPDATE_ROWS_V1 => "Update_rows_v1",
        code::DELETE_ROWS_V1 => "Delete_rows_v1",
        26 => "Incident",
        code::HEARTBEAT | code::HEARTBEAT_V2 => "Heartbeat",
        28 => "Ignorable",
        code::ROWS_QUERY => "Rows_query",
        code::WRITE_ROWS => "Write_rows",
        code::UPDATE_ROWS => "Update_rows",
        code::DELETE_ROWS => "Delete_rows",
        code::GTID => "Gtid",
        code::ANONYMOUS_GTID => "Anonymous_Gtid",
        code::PREVIOUS_GTIDS => "Previous_gtids",
        36 => "Transaction_context",
        37 => "View_change",
        code::XA_PREPARE => "XA_prepare",
        code::PARTIAL_UPDATE_ROWS => "Update_rows_partial",
        code::TRANSACTION_PAYLOAD => "Transaction_payload",
        code::GTID_TAGGED => "Gtid_tagged_log",
        code::ANNOTATE_ROWS => "Annotate_rows",
        code::BINLOG_CHECKPOINT => "Binlog_checkpoint",
        code::MARIADB_GTID => "MariaDB Gtid",
        code::GTID_LIST => "Gtid_list",
        code::START_ENCRYPTION => "Start_encryption",
        code::QUERY_COMPRESSED => "Query_compressed",
        code::WRITE_ROWS_COMPRESSED_V1 => "Write_rows_compressed_v1",
        code::UPDATE_ROWS_COMPRESSED_V1 => "Update_rows_compressed_v1",
        code::DELETE_ROWS_COMPRESSED_V1 => "Delete_rows_compressed_v1",
        code::WRITE_ROWS_COMPRESSED => "Write_rows_compressed",
        code::UPDATE_ROWS_COMPRESSED => "Update_rows_compressed",
        code::DELETE_ROWS_COMPRESSED => "Delete_rows_compressed",
        _ => "Unknown",
    }
}

/// The header of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// When the statement began on the source, in seconds since 1970.
    pub timestamp: u32,
    /// The number of the event's type; see [`event_name`].
    pub code: u8,
    pub server_id: u32,
    /// All bytes of the event, its checksum included.
    pub size: u32,
    /// The position behind the event in its file, modulo 2^32; 0 for an event that is in no file.
    pub end: u32,
    pub flags: u16,
}

impl Header {
    /// The bytes of a header.
    pub const BYTES: usize = 19;
    /// The event was made for the connection, and is in no file.
    const ARTIFICIAL: u16 = 0x20;
    /// The statement needs no current database.
    pub(crate) const SUPPRESS_USE: u16 = 8;
    /// A reader that does not know the event may ignore it. In a dump, MariaDB sets it for the
    /// beginning of encryption, because the events behind it are not encrypted there.
    const IGNORABLE: u16 = 0x80;

    /// Reads a header.
    ///
    /// # Errors
    /// [`BinlogError::Malformed`] if there are fewer than [`Self::BYTES`] bytes.
    pub fn read(bytes: &[u8]) -> Result<Header, BinlogError> {
        let mut r = Reader::new(bytes);
        Ok(Header {
            timestamp: r.u32("timestamp")?,
            code: r.u8("type")?,
            server_id: r.u32("server id")?,
            size: r.u32("size")?,
            end: r.u32("end position")?,
            flags: r.u16("flags")?,
        })
    }

    /// Whether it is a QUERY event.
    pub fn is_query(&self) -> bool {
        matches!(self.code, code::QUERY | code::QUERY_COMPRESSED)
    }

    /// Whether the event was made for the connection, and is in no file.
    pub fn is_artificial(&self) -> bool {
        self.flags & Header::ARTIFICIAL != 0
    }

    /// Whether the statement of a QUERY event needs no current database.
    pub fn needs_no_database(&self) -> bool {
        self.flags & Header::SUPPRESS_USE != 0
    }
}

/// FORMAT_DESCRIPTION: how the events after it are to be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormatDescription {
    /// 4 since MySQL 5.0.
    pub version: u16,
    pub server_version: String,
    /// Whether events end in a CRC-32.
    pub checksums: bool,
}

impl FormatDescription {
    /// Whether a MariaDB wrote the events.
    pub fn is_mariadb(&self) -> bool {
        self.server_version.contains("MariaDB")
    }
}

/// The events of a MariaDB's transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TransactionForm {
    /// Changes, and XID or COMMIT. There is no BEGIN.
    Changes,
    /// Changes of this branch, XA END, and XA_PREPARE. There is no XA START.
    Branch(BranchId),
    /// One statement.
    Statement,
    /// The text of an ALTER TABLE that changes nothing, because it only begins here, or has failed.
    AlterWithoutEffect,
}

/// MariaDB's GTID: a transaction begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MariaDbGtid {
    pub gtid: Gtid,
    pub form: TransactionForm,
}

/// GTID, ANONYMOUS_GTID and GTID_TAGGED: a transaction begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GtidEvent {
    /// `None`: the source gives its transactions no GTID.
    pub gtid: Option<Gtid>,
    /// The transaction may run beside those with a greater `sequence_number` than this.
    pub last_committed: i64,
    pub sequence_number: i64,
    /// When the source committed it, in microseconds since 1970.
    pub committed_us: Option<u64>,
}

/// The body of an event.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    FormatDescription(FormatDescription),
    /// The next event is at this position of this file.
    Rotate {
        file: String,
        position: u64,
    },
    /// The transactions of earlier files.
    PreviousGtids(GtidSet),
    Gtid(GtidEvent),
    MariaDbGtid(MariaDbGtid),
    Query(Box<QueryEvent>),
    TableMap(Box<TableMap>),
    Rows(Box<RowsEvent>),
    /// The text of the statement whose rows follow.
    RowsQuery(Vec<u8>),
    /// MariaDB: the first file that a recovery of the source would read.
    BinlogCheckpoint,
    /// MariaDB: the file is encrypted, and the source decrypts the events that it sends.
    Decrypted,
    /// The transaction commits; its number in the source's engine.
    Xid(u64),
    /// The transaction is prepared, or commits in one phase.
    XaPrepare(XaPrepareEvent),
    Payload(Box<PayloadEvent>),
    /// Nothing has happened; the source's file and position.
    Heartbeat {
        file: String,
        position: u64,
    },
    /// The source has shut down, and the file ends.
    Stop,
    /// An event that this crate does not know (B1).
    Unknown,
}

/// Reads the events of one stream, whose format the events themselves describe.
#[derive(Debug, Clone)]
pub struct EventReader {
    checksums: bool,
}

impl EventReader {
    /// A reader. `checksums`: whether events end in a checksum, until a FORMAT_DESCRIPTION says
    /// otherwise.
    pub fn new(checksums: bool) -> EventReader {
        EventReader { checksums }
    }

    /// Reads one whole event.
    ///
    /// # Errors
    /// [`BinlogError`]. The event's header can still be read by [`Header::read`].
    pub fn read(&mut self, bytes: &[u8]) -> Result<(Header, Event), BinlogError> {
        let header = Header::read(bytes)?;
        if header.size as usize != bytes.len() {
            return Err(BinlogError::Malformed("size of the event"));
        }
        let mut body = &bytes[Header::BYTES..];
        if header.code == code::FORMAT_DESCRIPTION {
            // Its last bytes are the algorithm and the checksum, for every algorithm.
            let at = (body.len().checked_sub(CHECKSUM + 1))
                .ok_or(BinlogError::Malformed("format description"))?;
            self.checksums = match body[at] {
                0 | 255 => false,
                1 => true,
                other => {
                    let text = format!("checksum algorithm {other}");
                    return Err(BinlogError::Unsupported(text));
                }
            };
        }
        let has_checksum = self.checksums || header.code == code::FORMAT_DESCRIPTION;
        if has_checksum {
            let split = bytes
                .len()
                .checked_sub(CHECKSUM)
                .filter(|at| *at >= Header::BYTES);
            let split = split.ok_or(BinlogError::Malformed("checksum"))?;
            let (content, end) = bytes.split_at(split);
            body = &content[Header::BYTES..];
            if self.checksums {
                verify(header.code, content, end)?;
            }
        }
        Ok((header, read_body(&header, body)?))
    }
}

/// Compares the checksum of an event.
fn verify(code: u8, content: &[u8], end: &[u8]) -> Result<(), BinlogError> {
    let found = u32::from_le_bytes([end[0], end[1], end[2], end[3]]);
    let mut expected = crc32fast::hash(content);
    if code == code::FORMAT_DESCRIPTION && expected != found {
        // The flag of a file in use (1) is set later, and the checksum does not cover it.
        let mut closed = content.to_vec();
        closed[17] &= !1;
        expected = crc32fast::hash(&closed);
    }
    match expected == found {
        true => Ok(()),
        false => Err(BinlogError::Checksum { expected, found }),
    }
}

/// Reads the body of an event, without its checksum. The events inside a payload have none.
pub(crate) fn read_body(header: &Header, body: &[u8]) -> Result<Event, BinlogError> {
    let mut r = Reader::new(body);
    Ok(match header.code {
        code::QUERY => Event::Query(Box::new(QueryEvent::read(&mut r)?)),
        code::STOP => Event::Stop,
        code::ROTATE => Event::Rotate {
            position: r.u64("position")?,
            file: text(r.rest()),
        },
        code::FORMAT_DESCRIPTION => Event::FormatDescription(format_description(&mut r)?),
        code::XID => Event::Xid(r.u64("xid")?),
        code::XA_PREPARE => Event::XaPrepare(XaPrepareEvent::read(&mut r)?),
        code::TABLE_MAP => Event::TableMap(Box::new(TableMap::read(&mut r)?)),
        code::WRITE_ROWS_V1 => rows(RowChangeKind::Insert, false, &mut r)?,
        code::UPDATE_ROWS_V1 => rows(RowChangeKind::Update, false, &mut r)?,
        code::DELETE_ROWS_V1 => rows(RowChangeKind::Delete, false, &mut r)?,
        code::WRITE_ROWS => rows(RowChangeKind::Insert, true, &mut r)?,
        code::UPDATE_ROWS => rows(RowChangeKind::Update, true, &mut r)?,
        code::DELETE_ROWS => rows(RowChangeKind::Delete, true, &mut r)?,
        code::PARTIAL_UPDATE_ROWS => rows(RowChangeKind::PartialUpdate, true, &mut r)?,
        code::ROWS_QUERY => {
            // A length of one byte, which is wrong for a longer text.
            r.take(1, "length")?;
            Event::RowsQuery(r.rest().to_vec())
        }
        code::GTID => Event::Gtid(gtid(&mut r, true)?),
        code::ANONYMOUS_GTID => Event::Gtid(gtid(&mut r, false)?),
        code::GTID_TAGGED => Event::Gtid(tagged::read(body)?),
        code::PREVIOUS_GTIDS => Event::PreviousGtids(GtidSet::decode(body)?),
        code::ANNOTATE_ROWS => Event::RowsQuery(body.to_vec()),
        code::BINLOG_CHECKPOINT => Event::BinlogCheckpoint,
        code::START_ENCRYPTION if header.flags & Header::IGNORABLE != 0 => Event::Decrypted,
        code::MARIADB_GTID => Event::MariaDbGtid(mariadb::gtid(header.server_id, &mut r)?),
        code::GTID_LIST => Event::PreviousGtids(mariadb::gtid_list(&mut r)?),
        code::QUERY_COMPRESSED => {
            let mut query = QueryEvent::read(&mut r)?;
            query.sql = mariadb::decompress(&query.sql)?;
            Event::Query(Box::new(query))
        }
        code::WRITE_ROWS_COMPRESSED_V1 => compressed(RowChangeKind::Insert, false, &mut r)?,
        code::UPDATE_ROWS_COMPRESSED_V1 => compressed(RowChangeKind::Update, false, &mut r)?,
        code::DELETE_ROWS_COMPRESSED_V1 => compressed(RowChangeKind::Delete, false, &mut r)?,
        code::WRITE_ROWS_COMPRESSED => compressed(RowChangeKind::Insert, true, &mut r)?,
        code::UPDATE_ROWS_COMPRESSED => compressed(RowChangeKind::Update, true, &mut r)?,
        code::DELETE_ROWS_COMPRESSED => compressed(RowChangeKind::Delete, true, &mut r)?,
        code::TRANSACTION_PAYLOAD => Event::Payload(Box::new(PayloadEvent::read(body)?)),
        code::HEARTBEAT => Event::Heartbeat {
            file: text(body),
            position: header.end.into(),
        },
        code::HEARTBEAT_V2 => heartbeat(&mut r)?,
        _ => Event::Unknown,
    })
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn rows(kind: RowChangeKind, has_extra: bool, r: &mut Reader<'_>) -> Result<Event, BinlogError> {
    Ok(Event::Rows(Box::new(RowsEvent::read(kind, has_extra, r)?)))
}

fn compressed(
    kind: RowChangeKind,
    has_extra: bool,
    r: &mut Reader<'_>,
) -> Result<Event, BinlogError> {
    let rows = RowsEvent::read(kind, has_extra, r)?.decompressed()?;
    Ok(Event::Rows(Box::new(rows)))
}

fn format_description(r: &mut Reader<'_>) -> Result<FormatDescription, BinlogError> {
    let version = r.u16("version")?;
    let name = r.take(50, "server version")?;
    let end = name.iter().position(|b| *b == 0).unwrap_or(name.len());
    r.take(4, "creation time")?;
    if r.u8("header length")? as usize != Header::BYTES {
        return Err(BinlogError::Malformed("header length"));
    }
    let checksums = r.rest().last() == Some(&1);
    Ok(FormatDescription {
        version,
        server_version: text(&name[..end]),
        checksums,
    })
}

fn gtid(r: &mut Reader<'_>, has_gtid: bool) -> Result<GtidEvent, BinlogError> {
    /// How the two numbers for parallel replicas are written.
    const LOGICAL_TIMESTAMPS: u8 = 2;
    r.u8("flags")?;
    let mut uuid = [0; 16];
    uuid.copy_from_slice(r.take(16, "uuid")?);
    let number = r.u64("number")?;
    let (mut last_committed, mut sequence_number) = (0, 0);
    if !r.is_empty() && r.u8("kind of timestamps")? == LOGICAL_TIMESTAMPS {
        last_committed = r.u64("last_committed")? as i64;
        sequence_number = r.u64("sequence_number")? as i64;
    }
    // Seven bytes; the highest bit says that the time on the first source follows.
    let committed_us = match r.rest().len() {
        7.. => {
            let mut bytes = [0; 8];
            bytes[..7].copy_from_slice(r.take(7, "time of the commit")?);
            Some(u64::from_le_bytes(bytes) & ((1 << 55) - 1))
        }
        _ => None,
    };
    if has_gtid && (number == 0 || number > Gtid::MAX_NUMBER) {
        return Err(BinlogError::Malformed("number of a GTID"));
    }
    Ok(GtidEvent {
        gtid: has_gtid.then(|| Gtid::MySql {
            uuid: SourceUuid(uuid),
            tag: Tag::default(),
            number,
        }),
        last_committed,
        sequence_number,
        committed_us,
    })
}

/// HEARTBEAT_V2: fields, each with a type, a length and a value.
fn heartbeat(r: &mut Reader<'_>) -> Result<Event, BinlogError> {
    let (mut file, mut position) = (String::new(), 0);
    loop {
        let kind = r.lenenc_int("field")?;
        if kind == 0 {
            return Ok(Event::Heartbeat { file, position });
        }
        let mut value = Reader::new(r.lenenc_bytes("value")?);
        match kind {
            1 => file = text(value.rest()),
            2 => position = value.lenenc_int("position")?,
            _ => {}
        }
    }
}
