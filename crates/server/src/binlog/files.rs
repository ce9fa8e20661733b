//! The files of the binary log: their names, what a start finds in them, and reading their events.
//!
//! # Picture
//! ```text
//! binlog.000001, binlog.000002, ..   transactions, in MySQL's format
//! binlog.floor                       text: every commit up to this LSN is in the files, or was
//!                                    purged with one of them; possibly the number of a file and
//!                                    the position up to which they are
//! binlog-large.000001, ..            events of large transactions until they are in a file above
//! ```
//! The directory is the index.
//!
//! XID, or the number of a DDL statement, is the LSN of the commit. The events of XA transactions
//! and of transactions without changes have no such place. A start cuts those at a file's end off,
//! and recovery writes them again, unless a numbered transaction follows them or `binlog.floor`
//! covers them.

use std::io;
use std::sync::Arc;

use nfold_binlog::{Event, EventReader, Gtid, GtidSet, Header, write};
use nfold_engine::{Disk, DiskFile, Lsn, OpenMode};

/// The base name if `log_bin` gives none.
pub(crate) const BASE_NAME: &str = "binlog";
const LARGE_PREFIX: &str = "binlog-large.";
const FLOOR: &str = "binlog.floor";
/// The position of a file's first event.
pub(crate) const FIRST_POSITION: u64 = 4;
/// The most bytes of one read.
const CHUNK: u64 = 256 << 10;
/// The largest event, in bytes.
const MAX_EVENT: u32 = 1 << 30;

/// How the files are named: `BASE.NNNNNN`. The option `log_bin` may give the base.
#[derive(Debug, Clone)]
pub(crate) struct FileNames {
    base: Arc<str>,
}

impl FileNames {
    pub fn new(base: &str) -> FileNames {
        FileNames { base: base.into() }
    }

    /// The names of the files in the directory, if there are any.
    pub fn found(disk: &dyn Disk) -> io::Result<Option<FileNames>> {
        for name in disk.list("")? {
            let Some((base, digits)) = name.rsplit_once('.') else {
                continue;
            };
            let is_number = digits.len() >= 6 && digits.bytes().all(|b| b.is_ascii_digit());
            if !is_number || name.starts_with(LARGE_PREFIX) {
                continue;
            }
            let file = disk.open(&name, OpenMode::Existing)?;
            let mut start = [0; write::FILE_MAGIC.len()];
            let is_whole = file.len()? >= start.len() as u64;
            if is_whole {
                file.read_at(0, &mut start)?;
            }
            // A file of the default name may have been created without its head.
            if start == *write::FILE_MAGIC || base == BASE_NAME {
                return Ok(Some(FileNames::new(base)));
            }
        }
        Ok(None)
    }

    pub fn base(&self) -> &str {
        &self.base
    }

    /// The name of file `number`.
    pub fn file(&self, number: u64) -> String {
        format!("{}.{number:06}", self.base)
    }

    /// The number of a file by its name.
    pub fn number(&self, name: &str) -> Option<u64> {
        let digits = name.strip_prefix(&*self.base)?.strip_prefix('.')?;
        let number = digits.parse().ok()?;
        (self.file(number) == name).then_some(number)
    }

    /// The numbers of all files, in order.
    pub fn list(&self, disk: &dyn Disk) -> io::Result<Vec<u64>> {
        let names = disk.list(&format!("{}.", self.base))?;
        let mut numbers: Vec<u64> = names.iter().filter_map(|n| self.number(n)).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    pub fn open(&self, disk: &dyn Disk, number: u64) -> io::Result<Arc<dyn DiskFile>> {
        disk.open(&self.file(number), OpenMode::Existing)
    }
}

pub(crate) fn large_name(number: u64) -> String {
    format!("{LARGE_PREFIX}{number:06}")
}

/// The names of the files with large transactions.
pub(crate) fn list_large(disk: &dyn Disk) -> io::Result<Vec<String>> {
    disk.list(LARGE_PREFIX)
}

/// The commits that are in the files, or were purged with them, for a file whose end does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Floor {
    /// The last of these commits.
    pub commit: Lsn,
    /// The file that has it, and the position behind it, if they are needed.
    pub end: Option<(u64, u64)>,
}

impl Floor {
    /// The position in a file up to which all transactions are known to be whole and synced.
    pub fn end_in(&self, number: u64) -> u64 {
        let end = self.end.filter(|(file, _)| *file == number);
        end.map_or(0, |(_, position)| position)
    }
}

/// The stored floor; commit 0 without one.
pub(crate) fn load_floor(disk: &dyn Disk) -> io::Result<Floor> {
    if !disk.exists(FLOOR)? {
        return Ok(Floor::default());
    }
    let file = disk.open(FLOOR, OpenMode::Existing)?;
    let mut text = vec![0; file.len()? as usize];
    file.read_at(0, &mut text)?;
    let text = String::from_utf8_lossy(&text);
    let words: Result<Vec<u64>, _> = text.split_whitespace().map(str::parse).collect();
    let (commit, end) = match words.as_deref() {
        Ok([commit]) => (*commit, None),
        Ok([commit, file, position]) => (*commit, Some((*file, *position))),
        _ => return Err(damaged(FLOOR, "it is not one number or three")),
    };
    Ok(Floor { commit, end })
}

/// Stores the floor durably.
pub(crate) fn store_floor(disk: &dyn Disk, floor: &Floor) -> io::Result<()> {
    let temporary = "binlog.floor.tmp";
    let file = disk.open(temporary, OpenMode::OrCreate)?;
    let text = match floor.end {
        Some((number, position)) => format!("{} {number} {position}\n", floor.commit),
        None => format!("{}\n", floor.commit),
    };
    file.set_len(0)?;
    file.write_at(0, text.as_bytes())?;
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

/// Reads the head of a file; with `synced`, its transactions, too. Up to the position `synced` all
/// of them count, behind it those with a number, and those before one with a number. `None`: its
/// head is not whole.
pub(crate) fn scan(file: &dyn DiskFile, synced: Option<u64>) -> io::Result<Option<FileContents>> {
    let length = file.len()?;
    let mut contents = FileContents::default();
    let mut reader = EventReader::new(true);
    let mut at = FIRST_POSITION;
    let (mut has_head, mut in_transaction) = (false, false);
    let mut gtid: Option<Gtid> = None;
    // The transactions behind `contents.end`, each with its GTID.
    let mut unnumbered: Vec<Option<Gtid>> = Vec::new();
    'all: while let Ok(chunk) = read_events(file, at, length) {
        let mut rest = &chunk[..];
        while let Ok(head) = Header::read(rest) {
            let (bytes, behind) = rest.split_at((head.size as usize).min(rest.len()));
            let Ok((header, event)) = reader.read(bytes) else {
                break 'all;
            };
            rest = behind;
            at += bytes.len() as u64;
            // The end of a transaction, and its number.
            let mut ends: Option<Option<Lsn>> = None;
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
                    if synced.is_none() {
                        break 'all;
                    }
                }
                Event::Gtid(g) => gtid = g.gtid,
                Event::Query(q) if q.context.is_atomic_ddl => {
                    let at = write::DDL_XID_OFFSET;
                    let number = bytes.get(at..at + 8).and_then(|b| b.try_into().ok());
                    ends = number.map(|n| Some(u64::from_le_bytes(n)));
                }
                Event::Query(q) if !in_transaction && ends_branch(&q.sql) => ends = Some(None),
                Event::Query(q) if in_transaction && q.sql == b"COMMIT" => ends = Some(None),
                Event::Query(_) => in_transaction = true,
                Event::Xid(number) if in_transaction => ends = Some(Some(number)),
                Event::XaPrepare(_) if in_transaction => ends = Some(None),
                Event::Rotate { .. } if !in_transaction && unnumbered.is_empty() => {
                    (contents.end, contents.is_rotated) = (at, true);
                }
                Event::Stop if !in_transaction && unnumbered.is_empty() => contents.end = at,
                _ => {}
            }
            let Some(number) = ends else {
                continue;
            };
            in_transaction = false;
            unnumbered.push(gtid.take());
            contents.commit = number.or(contents.commit);
            if number.is_some() || synced.is_some_and(|synced| at <= synced) {
                contents.transactions += unnumbered.len() as u64;
                let gtids = unnumbered.drain(..).flatten();
                gtids.for_each(|g| contents.executed.add(&g));
                contents.end = at;
            }
        }
        if at >= length {
            break;
        }
    }
    Ok(has_head.then_some(contents))
}

/// Whether a statement ends an XA transaction that was prepared.
fn ends_branch(sql: &[u8]) -> bool {
    sql.starts_with(b"XA COMMIT ") || sql.starts_with(b"XA ROLLBACK ")
}
