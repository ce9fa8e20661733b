//! Writes transactions into the files of the binary log.

use crate::unix_time::unix_time;
use std::io;
use std::sync::Arc;

use nfold_binlog::write::{self, GtidHead, Stamp};
use nfold_binlog::{BinlogError, Gtid, GtidSet, Header, SourceUuid, Tag};
use nfold_engine::{Attachment, Disk, DiskFile, Lsn, OpenMode};

use super::files::{self, FIRST_POSITION, FileContents, FileNames, Floor};
use super::group::{Group, GroupEvents, GroupForm};

/// The bytes that are collected before they are written.
const BUFFER_BYTES: usize = 1 << 20;

/// What does not change while the server runs.
#[derive(Debug, Clone)]
pub(crate) struct WriterOptions {
    pub names: FileNames,
    pub uuid: SourceUuid,
    pub version: String,
    /// `gtid_mode = ON`
    pub gtids: bool,
}

pub(crate) fn bad_data(e: BinlogError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, e.to_string())
}

/// The number of MySQL's version, such as 90700.
fn version_number(version: &str) -> u32 {
    let mut parts = version.split(|c: char| !c.is_ascii_digit());
    let mut next = || {
        parts
            .next()
            .and_then(|p| p.parse::<u32>().ok())
            .unwrap_or(0)
    };
    next() * 10_000 + next() * 100 + next()
}

/// The last file of the binary log.
pub(crate) struct Writer {
    pub disk: Arc<dyn Disk>,
    pub options: WriterOptions,
    pub server_id: u32,
    pub number: u64,
    file: Arc<dyn DiskFile>,
    /// The end of what is written.
    pub position: u64,
    pub contents: FileContents,
    /// The last commit in the files.
    pub commit: Lsn,
    /// Bytes since the last sync.
    pub unsynced: u64,
    /// The last transaction in the file has no number of its commit (files.rs).
    pub unnumbered: bool,
    /// Large transactions whose files go with the next sync.
    used: Vec<String>,
    /// Commits with their GTIDs, for [`super::BinaryLog::gtid_of`].
    pub numbered: Vec<(Lsn, Gtid)>,
    buffer: Vec<u8>,
}

impl Writer {
    /// Opens the files, or creates the first one. The tail of the last file that is no whole
    /// transaction is cut off; recovery writes it again.
    pub fn open(
        disk: Arc<dyn Disk>,
        options: WriterOptions,
        server_id: u32,
        checksums: bool,
    ) -> io::Result<Writer> {
        let floor = files::load_floor(&*disk)?;
        let mut numbers = options.names.list(&*disk)?;
        while let Some(number) = numbers.pop() {
            let file = options.names.open(&*disk, number)?;
            let Some(contents) = files::scan(&*file, Some(floor.end_in(number)))? else {
                // The server died before the file was whole. Nothing was written behind its head.
                let name = options.names.file(number);
                tracing::warn!("{name}: removed, its head is not whole");
                disk.remove(&name)?;
                continue;
            };
            if file.len()? > contents.end {
                file.set_len(contents.end)?;
                file.sync_data()?;
            }
            let mut writer = Writer {
                disk,
                options,
                server_id,
                number,
                file,
                position: contents.end,
                commit: contents.commit.unwrap_or(0).max(floor.commit),
                contents,
                unsynced: 0,
                unnumbered: false,
                used: Vec::new(),
                numbered: Vec::new(),
                buffer: Vec::new(),
            };
            if writer.contents.is_rotated {
                // Replicas that have read the ROTATE do not come back to this file.
                let executed = writer.contents.executed.clone();
                writer.begin_file(number + 1, checksums, executed)?;
            }
            return Ok(writer);
        }
        let (file, contents) =
            Writer::create(&*disk, &options, 1, (server_id, checksums), GtidSet::new())?;
        Ok(Writer {
            disk,
            options,
            server_id,
            number: 1,
            file,
            position: contents.end,
            contents,
            commit: floor.commit,
            unsynced: 0,
            unnumbered: false,
            used: Vec::new(),
            numbered: Vec::new(),
            buffer: Vec::new(),
        })
    }

    /// Creates a file with its head, durably.
    fn create(
        disk: &dyn Disk,
        options: &WriterOptions,
        number: u64,
        (server_id, checksums): (u32, bool),
        executed: GtidSet,
    ) -> io::Result<(Arc<dyn DiskFile>, FileContents)> {
        let stamp = Stamp {
            timestamp: unix_time().as_secs() as u32,
            server_id,
        };
        let mut head = write::FILE_MAGIC.to_vec();
        let version = &options.version;
        write::format_description(&mut head, stamp, version, checksums, write::IN_USE);
        let mut previous = Vec::new();
        write::previous_gtids(&mut previous, stamp, &executed);
        let start = head.len() as u64;
        let end = write::place(&mut head, &previous, start, checksums).map_err(bad_data)?;
        let file = disk.open(&options.names.file(number), OpenMode::OrCreate)?;
        file.set_len(0)?;
        file.write_at(0, &head)?;
        file.sync_data()?;
        disk.sync_dir()?;
        let contents = FileContents {
            created: stamp.timestamp,
            checksums,
            previous: executed.clone(),
            executed,
            end,
            is_rotated: false,
            commit: None,
            transactions: 0,
        };
        Ok((file, contents))
    }

    /// Appends the transaction of a commit. It may stay in the buffer until [`Self::flush`].
    pub fn append(&mut self, attachment: &Attachment) -> io::Result<()> {
        let group = Group::decode(&attachment.bytes).map_err(bad_data)?;
        match group.events {
            GroupEvents::Here(events) => self.append_events(&group, events, attachment.commit)?,
            GroupEvents::InFile(name) => {
                let file = self.disk.open(name, OpenMode::Existing)?;
                let mut events = vec![0; file.len()? as usize];
                file.read_at(0, &mut events)?;
                self.append_events(&group, &events, attachment.commit)?;
                self.used.push(name.to_owned());
            }
        }
        self.unnumbered = group.form == GroupForm::Xa;
        self.commit = attachment.commit;
        self.contents.commit = Some(attachment.commit);
        self.contents.end = self.position + self.buffer.len() as u64;
        if self.buffer.len() >= BUFFER_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    fn append_events(&mut self, group: &Group<'_>, events: &[u8], commit: Lsn) -> io::Result<()> {
        let checksums = self.contents.checksums;
        let mut events: Vec<&[u8]> = write::split_events(events).map_err(bad_data)?;
        let stamp = Stamp {
            timestamp: (group.commit_us / 1_000_000) as u32,
            server_id: group.server_id,
        };
        // CREATE TABLE ... SELECT has a statement behind BEGIN.
        let is_query = |event: &&[u8]| Header::read(event).is_ok_and(|h| h.is_query());
        let rows_only = match group.form {
            GroupForm::Changes => !events.get(1).is_some_and(is_query),
            GroupForm::Statement => false,
            GroupForm::Xa => events.len() > 1,
        };
        let mut last = Vec::new();
        match group.form {
            GroupForm::Changes => {
                write::xid(&mut last, stamp, commit);
                events.push(&last);
            }
            GroupForm::Statement => {
                // The only event.
                last = events.pop().unwrap_or_default().to_vec();
                let at = write::DDL_XID_OFFSET;
                if let Some(number) = last.get_mut(at..at + 8) {
                    number.copy_from_slice(&commit.to_le_bytes());
                }
                events.push(&last);
            }
            GroupForm::Xa => {}
        }
        let sum = if checksums { 4 } else { 0 };
        let rest = events.iter().map(|e| e.len() as u64 + sum).sum();
        let gtid = self.next_gtid(group);
        self.contents.transactions += 1;
        let head = GtidHead {
            gtid,
            last_committed: self.contents.transactions - 1,
            sequence_number: self.contents.transactions,
            commit_us: group.commit_us,
            rows_only,
            version: version_number(&self.options.version),
        };
        let mut first = Vec::new();
        write::gtid(&mut first, stamp, &head, rest, checksums);
        let mut end = self.position + self.buffer.len() as u64;
        for event in std::iter::once(&&first[..]).chain(&events) {
            end = write::place(&mut self.buffer, event, end, checksums).map_err(bad_data)?;
        }
        if let Some((uuid, number)) = gtid {
            let gtid = Gtid::MySql {
                uuid,
                tag: Tag::default(),
                number,
            };
            self.contents.executed.add(&gtid);
            self.numbered.push((commit, gtid));
        }
        Ok(())
    }

    fn next_gtid(&self, group: &Group<'_>) -> Option<(SourceUuid, u64)> {
        if !self.options.gtids {
            return None;
        }
        group.gtid.or_else(|| {
            let uuid = self.options.uuid;
            Some((uuid, self.contents.executed.highest(uuid) + 1))
        })
    }

    /// Writes the buffer.
    pub fn flush(&mut self) -> io::Result<()> {
        if !self.buffer.is_empty() {
            self.file.write_at(self.position, &self.buffer)?;
            self.position += self.buffer.len() as u64;
            self.unsynced += self.buffer.len() as u64;
            self.buffer.clear();
        }
        Ok(())
    }

    /// Makes everything durable, and removes the files of large transactions.
    pub fn sync(&mut self) -> io::Result<()> {
        self.flush()?;
        if self.unsynced > 0 {
            self.file.sync_data()?;
            self.unsynced = 0;
            if self.unnumbered {
                let end = Some((self.number, self.position));
                self.store_floor(end)?;
            }
        }
        for name in self.used.drain(..) {
            self.disk.remove(&name)?;
        }
        Ok(())
    }

    /// Stores that every commit up to the last one is in the files, which end at `end`.
    fn store_floor(&mut self, end: Option<(u64, u64)>) -> io::Result<()> {
        let floor = Floor {
            commit: self.commit,
            end,
        };
        files::store_floor(&*self.disk, &floor)?;
        self.unnumbered = false;
        Ok(())
    }

    /// Ends the file: its last event, the flag of its head, and a sync.
    fn end_file(&mut self, last: Option<Vec<u8>>) -> io::Result<()> {
        if let Some(event) = last {
            let end = self.position + self.buffer.len() as u64;
            let checksums = self.contents.checksums;
            write::place(&mut self.buffer, &event, end, checksums).map_err(bad_data)?;
        }
        self.flush()?;
        self.file
            .write_at(write::FORMAT_FLAGS_AT, &0u16.to_le_bytes())?;
        self.unsynced += 1;
        self.sync()
    }

    /// Ends the file, and begins the next one. `announced`: with a ROTATE event.
    pub fn rotate(&mut self, announced: bool, checksums: bool) -> io::Result<()> {
        let next = self.number + 1;
        let stamp = Stamp {
            timestamp: unix_time().as_secs() as u32,
            server_id: self.server_id,
        };
        let mut event = Vec::new();
        let name = self.options.names.file(next);
        write::rotate(&mut event, stamp, 0, (&name, FIRST_POSITION));
        self.end_file(announced.then_some(event))?;
        self.store_floor(Some((self.number, self.position)))?;
        let executed = self.contents.executed.clone();
        self.begin_file(next, checksums, executed)
    }

    fn begin_file(&mut self, number: u64, checksums: bool, executed: GtidSet) -> io::Result<()> {
        let head = (self.server_id, checksums);
        let (file, contents) = Writer::create(&*self.disk, &self.options, number, head, executed)?;
        self.number = number;
        self.file = file;
        self.position = contents.end;
        self.contents = contents;
        Ok(())
    }

    /// The server shuts down.
    pub fn close(&mut self) -> io::Result<()> {
        let stamp = Stamp {
            timestamp: unix_time().as_secs() as u32,
            server_id: self.server_id,
        };
        let mut event = Vec::new();
        write::stop(&mut event, stamp);
        self.end_file(Some(event))
    }

    /// RESET BINARY LOGS AND GTIDS: one empty file is left, with this number.
    pub fn reset(&mut self, number: u64, checksums: bool) -> io::Result<()> {
        self.sync()?;
        self.store_floor(None)?;
        for old in self.options.names.list(&*self.disk)? {
            self.disk.remove(&self.options.names.file(old))?;
        }
        self.begin_file(number, checksums, GtidSet::new())
    }
}
