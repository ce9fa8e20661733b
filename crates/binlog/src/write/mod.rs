//! Writes events as MySQL 9.7 does.
//!
//! # Picture
//! ```text
//! event ─▶ bytes without a checksum, end position 0 ─▶ place ─▶ the same with both, for its file
//! ```

mod query;
mod rows;
mod table_map;
mod value;

pub use query::{DDL_XID_OFFSET, query_event};
pub use rows::{ImageColumns, RowsHead, end_statement, rows_event};
pub use table_map::{TableColumn, TableMapHead, table_map_event};
pub use value::write_value;

use nfold_protocol::lenenc::put_int;

use crate::branch::XaPrepareEvent;
use crate::event::{Header, code};
use crate::gtid::SourceUuid;
use crate::{BinlogError, GtidSet};

/// The bytes of a checksum.
pub(crate) const CHECKSUM: usize = 4;
/// The bytes of a header before the body.
const SIZE_AT: usize = 9;
const END_AT: usize = 13;
const FLAGS_AT: usize = 17;

/// The first bytes of a file.
pub const FILE_MAGIC: &[u8; 4] = b"\xfebin";
/// The flag of a FORMAT_DESCRIPTION whose file is in use.
pub const IN_USE: u16 = 1;
/// The flag of an event that is made for a connection, and is in no file.
pub const ARTIFICIAL: u16 = 0x20;

/// The lengths of the fixed parts of all event types, from 1 on.
const FIXED_LENGTHS: [u8; 42] = [
    0, 13, 0, 8, 0, 0, 0, 0, 4, 0, 4, 0, 0, 0, 99, 0, 4, 26, 8, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 10,
    10, 10, 42, 42, 0, 18, 52, 0, 10, 40, 0, 0,
];

/// The fields of a header that the caller chooses.
#[derive(Debug, Clone, Copy)]
pub struct Stamp {
    /// In seconds since 1970.
    pub timestamp: u32,
    pub server_id: u32,
}

/// Appends an event whose body `fill` writes, without a checksum and with end position 0.
pub(crate) fn event(
    out: &mut Vec<u8>,
    stamp: Stamp,
    (code, flags): (u8, u16),
    fill: impl FnOnce(&mut Vec<u8>),
) {
    let start = out.len();
    out.extend_from_slice(&stamp.timestamp.to_le_bytes());
    out.push(code);
    out.extend_from_slice(&stamp.server_id.to_le_bytes());
    out.extend_from_slice(&[0; 8]);
    out.extend_from_slice(&flags.to_le_bytes());
    fill(out);
    let size = (out.len() - start) as u32;
    out[start + SIZE_AT..start + END_AT].copy_from_slice(&size.to_le_bytes());
}

/// Appends an event to a file's bytes: with its end position, which depends on its `start` in the
/// file, and with a checksum if the file has them. Returns the position behind it.
///
/// # Errors
/// `bytes` is no event.
pub fn place(
    out: &mut Vec<u8>,
    bytes: &[u8],
    start: u64,
    checksums: bool,
) -> Result<u64, BinlogError> {
    let at = out.len();
    if bytes.len() < Header::BYTES {
        return Err(BinlogError::Malformed("size of the event"));
    }
    let size = bytes.len() + if checksums { CHECKSUM } else { 0 };
    let end = start + size as u64;
    out.extend_from_slice(bytes);
    out[at + SIZE_AT..at + END_AT].copy_from_slice(&(size as u32).to_le_bytes());
    // Modulo 2^32, as in MySQL.
    out[at + END_AT..at + FLAGS_AT].copy_from_slice(&(end as u32).to_le_bytes());
    if checksums {
        let sum = crc32fast::hash(&out[at..]);
        out.extend_from_slice(&sum.to_le_bytes());
    }
    Ok(end)
}

/// Splits events that lie behind each other, without checksums.
///
/// # Errors
/// A size that does not fit.
pub fn split_events(mut bytes: &[u8]) -> Result<Vec<&[u8]>, BinlogError> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let size = Header::read(bytes)?.size as usize;
        if size < Header::BYTES || size > bytes.len() {
            return Err(BinlogError::Malformed("size of the event"));
        }
        let (event, rest) = bytes.split_at(size);
        all.push(event);
        bytes = rest;
    }
    Ok(all)
}

/// Appends FORMAT_DESCRIPTION with its checksum bytes; [`place`] is not to be called for it. It
/// begins at position 4 of its file.
pub fn format_description(
    out: &mut Vec<u8>,
    stamp: Stamp,
    version: &str,
    checksums: bool,
    flags: u16,
) {
    let start = out.len();
    event(out, stamp, (code::FORMAT_DESCRIPTION, 0), |out| {
        out.extend_from_slice(&4u16.to_le_bytes());
        let mut name = [0; 50];
        let n = version.len().min(49);
        name[..n].copy_from_slice(&version.as_bytes()[..n]);
        out.extend_from_slice(&name);
        out.extend_from_slice(&[0; 4]);
        out.push(Header::BYTES as u8);
        out.extend_from_slice(&FIXED_LENGTHS);
        out.push(u8::from(checksums));
        out.extend_from_slice(&[0; CHECKSUM]);
    });
    let size = out.len() - start;
    let end = (FILE_MAGIC.len() + size) as u32;
    out[start + END_AT..start + FLAGS_AT].copy_from_slice(&end.to_le_bytes());
    // The checksum does not cover the flag of a file in use.
    let at = out.len() - CHECKSUM;
    let sum = crc32fast::hash(&out[start..at]);
    out[at..].copy_from_slice(&sum.to_le_bytes());
    out[start + FLAGS_AT..start + Header::BYTES].copy_from_slice(&flags.to_le_bytes());
}

/// Where the flags of a file's FORMAT_DESCRIPTION lie.
pub const FORMAT_FLAGS_AT: u64 = (FILE_MAGIC.len() + FLAGS_AT) as u64;

/// Appends PREVIOUS_GTIDS.
pub fn previous_gtids(out: &mut Vec<u8>, stamp: Stamp, set: &GtidSet) {
    event(out, stamp, (code::PREVIOUS_GTIDS, 0x80), |out| {
        set.encode(out)
    });
}

/// Appends ROTATE.
pub fn rotate(out: &mut Vec<u8>, stamp: Stamp, flags: u16, (file, position): (&str, u64)) {
    event(out, stamp, (code::ROTATE, flags), |out| {
        out.extend_from_slice(&position.to_le_bytes());
        out.extend_from_slice(file.as_bytes());
    });
}

/// Appends STOP.
pub fn stop(out: &mut Vec<u8>, stamp: Stamp) {
    event(out, stamp, (code::STOP, 0), |_| {});
}

/// Appends XID: the transaction commits.
pub fn xid(out: &mut Vec<u8>, stamp: Stamp, number: u64) {
    event(out, stamp, (code::XID, 0), |out| {
        out.extend_from_slice(&number.to_le_bytes());
    });
}

/// Appends XA_PREPARE: the transaction is prepared, or commits in one phase.
pub fn xa_prepare(out: &mut Vec<u8>, stamp: Stamp, prepare: &XaPrepareEvent) {
    event(out, stamp, (code::XA_PREPARE, 0), |out| prepare.encode(out));
}

/// Appends ROWS_QUERY: the text of the statement whose rows follow.
pub fn rows_query(out: &mut Vec<u8>, stamp: Stamp, sql: &[u8]) {
    event(out, stamp, (code::ROWS_QUERY, 0x80), |out| {
        out.push(sql.len().min(255) as u8);
        out.extend_from_slice(sql);
    });
}

/// HEARTBEAT for a connection: nothing has happened behind `position` of `file`.
pub fn heartbeat(server_id: u32, (file, position): (&str, u64), checksums: bool) -> Vec<u8> {
    const HEARTBEAT_V2_POSITION: u64 = u32::MAX as u64;
    let stamp = Stamp {
        timestamp: 0,
        server_id,
    };
    let mut bytes = Vec::new();
    event(&mut bytes, stamp, (code::HEARTBEAT, ARTIFICIAL), |out| {
        out.extend_from_slice(file.as_bytes());
    });
    let position = position.min(HEARTBEAT_V2_POSITION) as u32;
    seal(bytes, position, checksums)
}

/// Sets the size, the end position and the checksum of an event that is made for a connection.
pub fn seal(mut bytes: Vec<u8>, end: u32, checksums: bool) -> Vec<u8> {
    let size = (bytes.len() + if checksums { CHECKSUM } else { 0 }) as u32;
    bytes[SIZE_AT..END_AT].copy_from_slice(&size.to_le_bytes());
    bytes[END_AT..FLAGS_AT].copy_from_slice(&end.to_le_bytes());
    if checksums {
        let sum = crc32fast::hash(&bytes);
        bytes.extend_from_slice(&sum.to_le_bytes());
    }
    bytes
}

/// Makes a FORMAT_DESCRIPTION of a file what a connection gets: of a file that is not in use; with
/// end position 0 if the dump `begins_later` in the file; without checksums if they are stripped.
pub fn as_sent(event: &mut [u8], begins_later: bool, strips: bool) {
    let Some(at) = event
        .len()
        .checked_sub(CHECKSUM)
        .filter(|at| *at > Header::BYTES)
    else {
        return;
    };
    event[FLAGS_AT] &= !(IN_USE as u8);
    if begins_later {
        event[END_AT..FLAGS_AT].fill(0);
    }
    if strips {
        event[at - 1] = 0;
    }
    let sum = crc32fast::hash(&event[..at]);
    event[at..].copy_from_slice(&sum.to_le_bytes());
}

/// An event without its checksum, of which `content` is the rest.
pub fn without_checksum(content: &[u8]) -> Vec<u8> {
    let mut event = content.to_vec();
    if event.len() >= Header::BYTES {
        let size = event.len() as u32;
        event[SIZE_AT..END_AT].copy_from_slice(&size.to_le_bytes());
    }
    event
}

/// The fields of a GTID event.
#[derive(Debug, Clone, Copy)]
pub struct GtidHead {
    /// `None`: ANONYMOUS_GTID.
    pub gtid: Option<(SourceUuid, u64)>,
    pub last_committed: u64,
    pub sequence_number: u64,
    /// The commit, in microseconds since 1970.
    pub commit_us: u64,
    /// The transaction changes rows only.
    pub rows_only: bool,
    /// The number of MySQL's version, such as 90700.
    pub version: u32,
}

/// Appends GTID or ANONYMOUS_GTID in front of a transaction whose other events take `rest` bytes in
/// their file.
pub fn gtid(out: &mut Vec<u8>, stamp: Stamp, head: &GtidHead, rest: u64, checksums: bool) {
    const LOGICAL_TIMESTAMPS: u8 = 2;
    const MAY_HAVE_STATEMENTS: u8 = 1;
    let code = match head.gtid {
        Some(_) => code::GTID,
        None => code::ANONYMOUS_GTID,
    };
    let start = out.len();
    event(out, stamp, (code, 0), |out| {
        out.push(if head.rows_only {
            0
        } else {
            MAY_HAVE_STATEMENTS
        });
        let (uuid, number) = head.gtid.unwrap_or((SourceUuid::default(), 0));
        out.extend_from_slice(&uuid.0);
        out.extend_from_slice(&number.to_le_bytes());
        out.push(LOGICAL_TIMESTAMPS);
        out.extend_from_slice(&head.last_committed.to_le_bytes());
        out.extend_from_slice(&head.sequence_number.to_le_bytes());
        // The original commit was the same one.
        out.extend_from_slice(&head.commit_us.to_le_bytes()[..7]);
        let sum = if checksums { CHECKSUM } else { 0 };
        let without = (out.len() - start + 4 + sum) as u64 + rest;
        // The length counts its own bytes.
        let mut length = Vec::new();
        for own in [1, 3, 4, 9] {
            length.clear();
            put_int(&mut length, without + own);
            if length.len() as u64 == own {
                break;
            }
        }
        out.extend_from_slice(&length);
        out.extend_from_slice(&head.version.to_le_bytes());
    });
}
