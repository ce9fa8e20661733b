//! The files of the binary log: their names, what a start finds in them, and reading their events.
//!
//! # Picture
//! ```text
//! binlog.000001, binlog.000002, ..   transactions, in MySQL's format
//! binlog.floor                       text: every commit up to this LSN is in the files, or was
//!                                    purged with one of them
//! binlog-large.000001, ..            events of large transactions until they are in a file above
//! ```
//! The directory is the index.

use std::io;
use std::sync::Arc;

use nfold_binlog::{Event, EventReader, Gtid, GtidSet, Header, write};
use nfold_engine::{Disk, DiskFile, Lsn, OpenMode};

const PREFIX: &str = "binlog.";
const LARGE_PREFIX: &str = "binlog-large.";
const FLOOR: &str = "binlog.floor";
/// The position of a file's first event.
pub(crate) const FIRST_POSITION: u64 = 4;
/// The most bytes of one read.
const CHUNK: u64 = 256 << 10;
/// The largest event, in bytes.
const MAX_EVENT: u32 = 1 << 30;

pub(crate) fn file_name(number: u64) -> String {
    format!("{PREFIX}{number:06}")
}

pub(crate) fn large_name(number: u64) -> String {
    format!("{LARGE_PREFIX}{number:06}")
}

/// The number of a file of the binary log.
pub(crate) fn file_number(name: &str) -> Option<u64> {
    let digits = name.strip_prefix(PREFIX)?;
    let number = digits.parse().ok()?;
    (file_name(number) == name).then_some(number)
}

/// The numbers of all files, in order.
pub(crate) fn list(disk: &dyn Disk) -> io::Result<Vec<u64>> {
    let names = disk.list(PREFIX)?;
    let mut numbers: Vec<u64> = names.iter().filter_map(|n| file_number(n)).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

/// The names of the files with large transactions.
pub(crate) fn list_large(disk: &dyn Disk) -> io::Result<Vec<String>> {
    disk.list(LARGE_PREFIX)
}

pub(crate) fn open(disk: &dyn Disk, number: u64) -> io::Result<Arc<dyn DiskFile>> {
    disk.open(&file_name(number), OpenMode::Existing)
}

/// The stored floor; 0 without one.
pub(crate) fn load_floor(disk: &dyn Disk) -> io::Result<Lsn> {
    if !disk.exists(FLOOR)? {
        return Ok(0);
    }
    let file = disk.open(FLOOR, OpenMode::Existing)?;
    let mut text = vec![0; file.len()? as usize];
    file.read_at(0, &mut text)?;
    let text = String::from_utf8_lossy(&text);
    text.trim()
        .parse()
        .map_err(|_| damaged(FLOOR, "it is no number"))
}

/// Stores the floor durably.
pub(crate) fn store_floor(disk: &dyn Disk, floor: Lsn) -> io::Result<()> {
    let temporary = "binlog.floor.tmp";
    let file = disk.open(temporary, OpenMode::OrCreate)?;
    file.set_len(0)?;
    file.write_at(0, format!("{floor}\n").as_bytes())?;
    file.sync_data()?;
    disk.rename(temporary, FLOOR)?;
    disk.sync_dir()
}

fn damaged(name: &str, what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{name}: {what}"))
}

/// Reads whole events from `from` on, up to `limit`, at least one.
///
/// # Errors
/// Damage, and the errors of the disk.
pub(crate) fn read_events(file: &dyn DiskFile, from: u64, limit: u64) -> io::Result<Vec<u8>> {
    let bad = || damaged("the binary log", &format!("no event at position {from}"));
    let mut head = [0; Header::BYTES];
    if from + Header::BYTES as u64 > limit {
        return Err(bad());
    }
    file.read_at(from, &mut head)?;
    let first = Header::read(&head).map_err(|_| bad())?.size;
    if first < Header::BYTES as u32 || first > MAX_EVENT || from + u64::from(first) > limit {
        return Err(bad());
    }
    let n = CHUNK.min(limit - from).max(u64::from(first));
    let mut bytes = vec![0; n as usize];
    file.read_at(from, &mut bytes)?;
    let mut end = 0;
    while let Ok(header) = Header::read(&bytes[end..]) {
        let size = header.size as usize;
        if size < Header::BYTES || size > bytes.len() - end {
            break;
        }
        end += size;
    }
    bytes.truncate(end);
    Ok(bytes)
}

/// What a file contains.
#[derive(Debug, Clone, Default)]
pub(crate) struct FileContents {
    /// When it was created, in seconds since 1970.
    pub created: u32,
    pub checksums: bool,
    /// The transactions of earlier files.
    pub previous: GtidSet,
    /// These and its own.
    pub executed: GtidSet,
    /// The end of the last whole transaction, or of the event that ends the file.
    pub end: u64,
    /// The last event is a ROTATE: replicas go on with the next file.
    pub is_rotated: bool,
    /// The last commit in it.
    pub commit: Option<Lsn>,
    /// The number of its transactions.
    pub transactions: u64,
}

/// Reads the head of a file; with `whole`, its transactions, too. `None`: its head is not whole.
pub(crate) fn scan(file: &dyn DiskFile, whole: bool) -> io::Result<Option<FileContents>> {
    let length = file.len()?;
    let mut contents = FileContents::default();
    let mut reader = EventReader::new(true);
    let mut at = FIRST_POSITION;
    let (mut has_head, mut gtid, mut in_transaction) = (false, None, false);
    'all: while let Ok(chunk) = read_events(file, at, length) {
        let mut rest = &chunk[..];
        while let Ok(head) = Header::read(rest) {
            let (bytes, behind) = rest.split_at((head.size as usize).min(rest.len()));
            let Ok((header, event)) = reader.read(bytes) else {
                break 'all;
            };
            rest = behind;
            at += bytes.len() as u64;
            let mut ends = None;
            match event {
                Event::FormatDescription(f) => {
                    contents.created = header.timestamp;
                    contents.checksums = f.checksums;
                }
                Event::PreviousGtids(set) => {
                    contents.executed = set.clone();
                    contents.previous = set;
                    contents.end = at;
                    has_head = true;
                    if !whole {
                        break 'all;
                    }
                }
                Event::Gtid(g) => gtid = g.gtid,
                Event::Query(q) if q.context.is_atomic_ddl => {
                    let at = write::DDL_XID_OFFSET;
                    let number = bytes.get(at..at + 8).and_then(|b| b.try_into().ok());
                    ends = number.map(u64::from_le_bytes);
                }
                Event::Query(_) => in_transaction = true,
                Event::Xid(number) if in_transaction => ends = Some(number),
                Event::Rotate { .. } if !in_transaction => {
                    (contents.end, contents.is_rotated) = (at, true);
                }
                Event::Stop if !in_transaction => contents.end = at,
                _ => {}
            }
            if let Some(commit) = ends {
                let done: Option<Gtid> = gtid.take();
                done.iter().for_each(|g| contents.executed.add(g));
                in_transaction = false;
                contents.end = at;
                contents.commit = Some(commit);
                contents.transactions += 1;
            }
        }
        if at >= length {
            break;
        }
    }
    Ok(has_head.then_some(contents))
}
