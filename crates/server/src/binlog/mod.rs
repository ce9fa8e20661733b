//! The binary log: what commits have changed, in MySQL's files, for replicas.
//!
//! # Picture
//! ```text
//! commit ─ Group (group.rs) in the commit's own log record ─▶ Attachments of the engine
//!    ─ durable ─▶ thread "nfold-binlog" ─ GTID, positions, checksums (writer.rs) ─▶ binlog.NNNNNN
//!    ─ published ─▶ dumps read the files (files.rs), and wait here for more
//! crash ─▶ recovery of the engine ─▶ the groups that were not synced, again
//! ```
//! # Invariants
//! - L1: a transaction is written to a file only after its commit is durable. So neither a file nor
//!   a replica has a transaction that a crash undoes.
//! - L2: the engine's log keeps a transaction until its file is synced. XID, or the number of a DDL
//!   statement, is the LSN of the commit, so recovery knows the last transaction that is in a file.
//!   XA transactions have no number; `binlog.floor` covers those that nothing follows (files.rs).
//! - L3: transactions stand in the order of their commits. A transaction that is written again
//!   after a crash has the same GTID, and the same bytes, at the same position.
//! # Concurrency
//! `writer` is held while files are written. `published` is held briefly, by dumps and statements.
//! The order is `writer`, `published`, `owned`.
//! # Failure
//! A failed write or sync ends the process: the next start writes the transactions again.

mod files;
mod group;
mod semi_sync;
mod writer;

#[cfg(test)]
mod simulation;

use crate::unix_time::unix_time;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, Waker};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nfold_binlog::{Gtid, GtidSet, SourceUuid, Tag};
use nfold_engine::{Attachment, AttachmentReader, Disk, DiskFile, Engine, Lsn, OpenMode};
use parking_lot::Mutex;

pub(crate) use files::{BASE_NAME, FIRST_POSITION, FileNames, read_events};
pub(crate) use group::{Group, GroupEvents, GroupForm};
pub(crate) use semi_sync::SemiSync;
pub use semi_sync::SemiSyncOptions;
use writer::{Writer, WriterOptions};

/// The longest time that a file stays unsynced, and the most bytes.
const SYNC_INTERVAL: Duration = Duration::from_secs(1);
const SYNC_BYTES: u64 = 4 << 20;

/// The commits whose GTIDs are remembered.
const NUMBERED_COMMITS: usize = 4096;

/// The only values of variables with which the binary log can be written.
pub(crate) const ONLY_VALUES: [(&str, &str); 4] = [
    ("binlog_encryption", "OFF"),
    ("binlog_format", "ROW"),
    ("binlog_row_value_options", ""),
    ("binlog_transaction_compression", "OFF"),
];

/// The settings of the binary log.
#[derive(Debug, Clone)]
pub struct BinlogOptions {
    /// The name of the files before their numbers.
    pub base_name: String,
    pub uuid: SourceUuid,
    pub server_version: String,
    /// `gtid_mode = ON`
    pub gtids: bool,
    pub tunables: BinlogTunables,
}

/// The settings that SET GLOBAL changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BinlogTunables {
    pub server_id: u32,
    /// `binlog_checksum = CRC32`; files that exist keep theirs.
    pub checksums: bool,
    /// `max_binlog_size`
    pub max_bytes: u64,
    /// `binlog_expire_logs_seconds`; 0: files are kept.
    pub expire_s: u64,
    pub semi_sync: SemiSyncOptions,
}

/// A file as statements and dumps see it.
#[derive(Debug, Clone)]
pub(crate) struct PublishedFile {
    pub bytes: u64,
    /// In seconds since 1970.
    pub created: u32,
    pub checksums: bool,
    /// The transactions of earlier files.
    pub previous: GtidSet,
}

/// What is written, and may be read.
#[derive(Default)]
struct Published {
    files: BTreeMap<u64, PublishedFile>,
    executed: GtidSet,
    /// The last commit in the files.
    commit: Lsn,
    /// The newest commits with their GTIDs, in order.
    numbered: VecDeque<(Lsn, Gtid)>,
    waiting: Vec<Waker>,
    /// The files that dumps read, by the number of the dump.
    reading: BTreeMap<u64, u64>,
    closed: bool,
}

/// What an attempt to own a GTID finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GtidClaim {
    Granted,
    /// Another session owns it, or its transaction is on the way into a file.
    Busy,
    Executed,
}

fn untagged((uuid, number): (SourceUuid, u64)) -> Gtid {
    Gtid::MySql {
        uuid,
        tag: Tag::default(),
        number,
    }
}

/// A replica that has registered.
#[derive(Debug, Clone)]
pub(crate) struct RegisteredReplica {
    pub server_id: u32,
    pub host: String,
    pub port: u16,
    pub uuid: String,
}

/// See the module's header.
pub struct BinaryLog {
    disk: Arc<dyn Disk>,
    writer: Mutex<Writer>,
    published: Mutex<Published>,
    tunables: Mutex<BinlogTunables>,
    server_id: AtomicU32,
    next_large: AtomicU64,
    next_dump: AtomicU64,
    /// Whether commits are recorded. Otherwise the files only take what a crash has left.
    active: AtomicBool,
    stopping: AtomicBool,
    /// The next file is to begin, because of a changed setting.
    begins_file: AtomicBool,
    thread: Mutex<Option<JoinHandle<()>>>,
    engine: Mutex<Option<Arc<Engine>>>,
    /// The GTIDs that sessions own, each with the id of its connection.
    owned: Mutex<BTreeMap<(SourceUuid, u64), u32>>,
    pub(crate) semi_sync: SemiSync,
    /// By the id of the connection.
    replicas: Mutex<BTreeMap<u32, RegisteredReplica>>,
    uuid: SourceUuid,
    pub(crate) names: FileNames,
}

impl BinaryLog {
    /// Opens the files on `disk`. `None` if there are none, and `log_bin` is OFF.
    ///
    /// # Errors
    /// The disk fails, or a file is damaged.
    pub fn open(
        disk: &Arc<dyn Disk>,
        options: BinlogOptions,
        log_bin: bool,
    ) -> io::Result<Option<Arc<BinaryLog>>> {
        let given = FileNames::new(&options.base_name);
        let names = match FileNames::found(&**disk)? {
            None if !log_bin => return Ok(None),
            None => given,
            Some(found) if log_bin && found.base() != given.base() => {
                return Err(io::Error::other(format!(
                    "the files of the binary log are named {0}.NNNNNN: log_bin={0} continues them",
                    found.base()
                )));
            }
            Some(found) => found,
        };
        let BinlogOptions {
            base_name: _,
            uuid,
            server_version,
            gtids,
            tunables,
        } = options;
        let options = WriterOptions {
            names: names.clone(),
            uuid,
            version: server_version,
            gtids,
        };
        let (id, checksums) = (tunables.server_id, tunables.checksums);
        let writer = Writer::open(disk.clone(), options, id, checksums)?;
        let mut published = Published::default();
        for number in names.list(&**disk)? {
            let file = names.open(&**disk, number)?;
            if let Some(contents) = files::scan(&*file, None)? {
                let file = PublishedFile {
                    bytes: file.len()?,
                    created: contents.created,
                    checksums: contents.checksums,
                    previous: contents.previous,
                };
                published.files.insert(number, file);
            }
        }
        let large = files::list_large(&**disk)?;
        let numbers = large
            .iter()
            .filter_map(|n| n.rsplit('.').next()?.parse().ok());
        let next_large = numbers.max().unwrap_or(0u64) + 1;
        let log = BinaryLog {
            disk: disk.clone(),
            writer: Mutex::new(writer),
            published: Mutex::new(published),
            tunables: Mutex::new(tunables),
            server_id: AtomicU32::new(tunables.server_id),
            next_large: AtomicU64::new(next_large),
            next_dump: AtomicU64::new(0),
            active: AtomicBool::new(log_bin),
            stopping: AtomicBool::new(false),
            begins_file: AtomicBool::new(false),
            thread: Mutex::new(None),
            engine: Mutex::new(None),
            owned: Mutex::default(),
            semi_sync: SemiSync::new(tunables.semi_sync),
            replicas: Mutex::default(),
            uuid,
            names,
        };
        Ok(Some(Arc::new(log)))
    }

    /// Begins a new file, and starts the thread that writes commits, if `log_bin` is ON.
    ///
    /// # Errors
    /// The disk fails, or the system has no thread left.
    pub fn start(self: &Arc<Self>, engine: &Arc<Engine>) -> io::Result<()> {
        if !self.active.load(Relaxed) {
            return Ok(());
        }
        self.begin()?;
        *self.engine.lock() = Some(engine.clone());
        let (log, engine) = (self.clone(), engine.clone());
        let thread = std::thread::Builder::new()
            .name("nfold-binlog".into())
            .spawn(move || {
                if let Err(e) = log.run(&engine) {
                    tracing::error!(
                        "the binary log cannot be written: {e}; the next start writes the \
                         transactions again: the server ends"
                    );
                    std::process::abort();
                }
            })?;
        *self.thread.lock() = Some(thread);
        Ok(())
    }

    /// Begins a new file, unless the last one has no transaction.
    fn begin(&self) -> io::Result<()> {
        let mut writer = self.writer.lock();
        if writer.contents.transactions > 0 || writer.contents.commit.is_some() {
            writer.rotate(false, self.tunables().checksums)?;
        }
        self.publish(&mut writer);
        Ok(())
    }

    /// Writes everything, and ends the thread. All sessions have ended.
    pub fn close(&self, engine: &Engine) {
        engine.sync_log();
        self.stopping.store(true, Relaxed);
        engine.attachments().nudge();
        if let Some(thread) = self.thread.lock().take()
            && thread.join().is_err()
        {
            tracing::error!("the thread of the binary log panicked");
        }
        self.engine.lock().take();
        let mut published = self.published.lock();
        published.closed = true;
        self.semi_sync.close();
        published.waiting.drain(..).for_each(Waker::wake);
    }

    /// The body of the thread.
    fn run(&self, engine: &Engine) -> io::Result<()> {
        let attachments = engine.attachments();
        let mut synced_at = Instant::now();
        loop {
            let is_last = self.stopping.load(Relaxed);
            let rest = SYNC_INTERVAL.saturating_sub(synced_at.elapsed());
            let time = if is_last { Duration::ZERO } else { rest };
            if let Some(first) = attachments.wait(time) {
                engine.block_until_durable(first);
            }
            let mut writer = self.writer.lock();
            self.append_ready(&mut writer, engine)?;
            let due = synced_at.elapsed() >= SYNC_INTERVAL || writer.unsynced >= SYNC_BYTES;
            if due || is_last {
                self.sync(&mut writer, engine)?;
                synced_at = Instant::now();
            }
            if is_last {
                writer.close()?;
                self.publish(&mut writer);
                return Ok(());
            }
        }
    }

    /// Writes the commits that are durable.
    fn append_ready(&self, writer: &mut Writer, engine: &Engine) -> io::Result<()> {
        let taken = engine.attachments().take(engine.durable_lsn());
        let tunables = self.tunables();
        for attachment in &taken {
            writer.append(attachment)?;
            if writer.contents.end >= tunables.max_bytes {
                writer.rotate(true, tunables.checksums)?;
                self.publish(writer);
                self.expire(writer, tunables.expire_s)?;
            }
        }
        if self.begins_file.swap(false, Relaxed) {
            writer.rotate(true, tunables.checksums)?;
            self.publish(writer);
        }
        writer.flush()?;
        if !taken.is_empty() {
            self.publish(writer);
        }
        Ok(())
    }

    /// Syncs what is written. The engine's log need not keep it any longer (L2).
    fn sync(&self, writer: &mut Writer, engine: &Engine) -> io::Result<()> {
        writer.sync()?;
        engine.attachments().release(writer.commit);
        Ok(())
    }

    /// Makes what is written known.
    fn publish(&self, writer: &mut Writer) {
        let mut published = self.published.lock();
        let (number, contents) = (writer.number, &writer.contents);
        if let Some((last, file)) = published.files.iter_mut().next_back()
            && *last < number
        {
            // The last event of a file comes with the next file.
            let name = self.names.file(*last);
            let opened = writer.disk.open(&name, OpenMode::Existing);
            file.bytes = opened.and_then(|f| f.len()).unwrap_or(file.bytes);
        }
        let file = PublishedFile {
            bytes: writer.position,
            created: contents.created,
            checksums: contents.checksums,
            previous: contents.previous.clone(),
        };
        published.files.insert(number, file);
        published.executed.clone_from(&contents.executed);
        published.commit = writer.commit;
        published.numbered.extend(writer.numbered.drain(..));
        let old = published.numbered.len().saturating_sub(NUMBERED_COMMITS);
        published.numbered.drain(..old);
        published.waiting.drain(..).for_each(Waker::wake);
        let mut owned = self.owned.lock();
        if !owned.is_empty() {
            owned.retain(|gtid, _| !published.executed.contains(&untagged(*gtid)));
        }
    }

    fn tunables(&self) -> BinlogTunables {
        *self.tunables.lock()
    }

    /// Takes over changed settings. If `binlog_checksum` has changed, the next file begins.
    pub fn set_tunables(&self, tunables: BinlogTunables) {
        let before = std::mem::replace(&mut *self.tunables.lock(), tunables);
        self.server_id.store(tunables.server_id, Relaxed);
        if before.semi_sync != tunables.semi_sync {
            self.semi_sync.set_options(tunables.semi_sync);
        }
        if before.checksums != tunables.checksums {
            self.begins_file.store(true, Relaxed);
            if let Some(engine) = &*self.engine.lock() {
                engine.attachments().nudge();
            }
        }
    }

    /// Whether commits are recorded.
    #[inline]
    pub fn is_active(&self) -> bool {
        self.active.load(Relaxed)
    }

    pub(crate) fn server_id(&self) -> u32 {
        self.server_id.load(Relaxed)
    }

    pub(crate) fn uuid(&self) -> SourceUuid {
        self.uuid
    }

    /// Stores the events of a large transaction in a file of their own, durably, until they are in
    /// the binary log. Returns its name. Blocks.
    pub(crate) fn store_large(&self, events: &[u8]) -> io::Result<String> {
        let disk = &*self.disk;
        let name = files::large_name(self.next_large.fetch_add(1, Relaxed));
        let file = disk.open(&name, OpenMode::CreateNew)?;
        file.write_at(0, events)?;
        file.sync_data()?;
        disk.sync_dir()?;
        Ok(name)
    }

    /// FLUSH BINARY LOGS. Blocks.
    pub(crate) fn rotate(&self) -> io::Result<()> {
        self.catch_up();
        let mut writer = self.writer.lock();
        let tunables = self.tunables();
        writer.server_id = tunables.server_id;
        writer.rotate(true, tunables.checksums)?;
        self.publish(&mut writer);
        self.expire(&writer, tunables.expire_s)
    }

    /// Waits until all commits that have returned to their clients are in the files. Blocks.
    pub(crate) fn catch_up(&self) {
        let Some(engine) = self.engine.lock().clone() else {
            return;
        };
        engine.sync_log();
        let durable = engine.durable_lsn();
        while engine.attachments().is_ready_below(durable) {
            std::thread::sleep(Duration::from_millis(1));
        }
        // The thread holds it while it writes what it has taken.
        drop(self.writer.lock());
    }

    /// RESET BINARY LOGS AND GTIDS. Blocks.
    pub(crate) fn reset(&self, number: u64) -> io::Result<()> {
        self.catch_up();
        let mut writer = self.writer.lock();
        writer.reset(number, self.tunables().checksums)?;
        self.published.lock().files.clear();
        self.publish(&mut writer);
        Ok(())
    }

    /// Removes the files before `number`, except those that dumps read, and later ones. Returns
    /// whether all of them are gone. Blocks.
    pub(crate) fn purge_to(&self, number: u64) -> io::Result<bool> {
        let writer = self.writer.lock();
        self.purge_below(&writer, number)
    }

    /// Removes the files whose last change was before a time, in seconds since 1970. Blocks.
    pub(crate) fn purge_before(&self, time: u64) -> io::Result<bool> {
        let writer = self.writer.lock();
        let number = self.first_ended_after(writer.number, time);
        self.purge_below(&writer, number)
    }

    /// The first file that was in use at a time or later.
    fn first_ended_after(&self, last: u64, time: u64) -> u64 {
        let published = self.published.lock();
        let next = published.files.iter().skip(1);
        let ends = published.files.keys().zip(next.map(|(_, f)| f.created));
        let mut late = ends.filter(|(_, end)| u64::from(*end) >= time);
        late.next().map_or(last, |(number, _)| *number)
    }

    fn expire(&self, writer: &Writer, expire_s: u64) -> io::Result<()> {
        if expire_s == 0 {
            return Ok(());
        }
        let time = unix_time().as_secs().saturating_sub(expire_s);
        let number = self.first_ended_after(writer.number, time);
        self.purge_below(writer, number).map(drop)
    }

    fn purge_below(&self, writer: &Writer, number: u64) -> io::Result<bool> {
        let mut published = self.published.lock();
        let read = published.reading.values().min().copied();
        let bound = number.min(writer.number).min(read.unwrap_or(u64::MAX));
        let old: Vec<u64> = published.files.range(..bound).map(|(n, _)| *n).collect();
        for file in old {
            writer.disk.remove(&self.names.file(file))?;
            published.files.remove(&file);
        }
        writer.disk.sync_dir()?;
        Ok(bound == number)
    }

    /// All files with their numbers.
    pub(crate) fn files(&self) -> Vec<(u64, PublishedFile)> {
        let published = self.published.lock();
        let all = published.files.iter();
        all.map(|(number, file)| (*number, file.clone())).collect()
    }

    pub(crate) fn file(&self, number: u64) -> Option<PublishedFile> {
        self.published.lock().files.get(&number).cloned()
    }

    /// The end of a file; with the last commit in it, if it is the last file.
    pub(crate) fn end_of(&self, number: u64) -> (u64, Option<Lsn>) {
        let published = self.published.lock();
        let last = published.files.keys().next_back() == Some(&number);
        let bytes = published.files.get(&number).map_or(0, |file| file.bytes);
        (bytes, last.then_some(published.commit))
    }

    /// A replica has acknowledged everything up to a commit.
    pub(crate) fn acknowledged(&self, dump: &Dump, commit: Lsn) {
        let newest = self.published.lock().commit;
        self.semi_sync.acknowledged(dump.id, commit, newest);
    }

    /// The last file, its end, and all transactions.
    pub(crate) fn end(&self) -> (u64, u64, GtidSet) {
        let published = self.published.lock();
        let last = published.files.iter().next_back();
        let (number, bytes) = last.map_or((0, 0), |(n, file)| (*n, file.bytes));
        (number, bytes, published.executed.clone())
    }

    /// The transactions that were in the files, and those that are gone with files.
    pub(crate) fn gtids(&self) -> (GtidSet, GtidSet) {
        let published = self.published.lock();
        let first = published.files.values().next();
        let purged = first.map(|file| file.previous.clone());
        (published.executed.clone(), purged.unwrap_or_default())
    }

    /// The GTID of a commit; `None`: it has none, or too many others have followed.
    pub(crate) fn gtid_of(&self, commit: Lsn) -> Option<Gtid> {
        let published = self.published.lock();
        let numbered = &published.numbered;
        let at = numbered.binary_search_by_key(&commit, |(lsn, _)| *lsn);
        at.ok().map(|at| numbered[at].1.clone())
    }

    /// Opens a file for reading. Blocks.
    pub(crate) fn open_file(&self, number: u64) -> io::Result<Arc<dyn DiskFile>> {
        self.names.open(&*self.disk, number)
    }

    /// Registers a dump, whose files are not purged.
    pub(crate) fn begin_dump(self: &Arc<Self>, file: u64) -> Dump {
        let id = self.next_dump.fetch_add(1, Relaxed);
        self.published.lock().reading.insert(id, file);
        Dump {
            log: self.clone(),
            id,
        }
    }

    /// Waits until there is more than `position` in file `number`, or a later file.
    pub(crate) fn grown(&self, number: u64, position: u64) -> Grown<'_> {
        Grown {
            log: self,
            at: (number, position),
        }
    }

    /// Makes a connection the owner of a GTID, if no other one owns it and no transaction has it.
    pub(crate) fn claim_gtid(&self, gtid: (SourceUuid, u64), connection: u32) -> GtidClaim {
        let published = self.published.lock();
        let mut owned = self.owned.lock();
        if published.executed.contains(&untagged(gtid)) {
            return GtidClaim::Executed;
        }
        match owned.entry(gtid) {
            Entry::Occupied(_) => GtidClaim::Busy,
            Entry::Vacant(free) => {
                free.insert(connection);
                GtidClaim::Granted
            }
        }
    }

    /// Ends the ownership of a GTID that no transaction has taken.
    pub(crate) fn disown_gtid(&self, gtid: (SourceUuid, u64)) {
        self.owned.lock().remove(&gtid);
    }

    /// `gtid_owned`: of a connection, or of all with their ids. A commit that has returned to its
    /// client owns its GTID no longer, so this waits until it is in the files. Blocks.
    pub(crate) fn owned_gtids(&self, of: Option<u32>) -> String {
        self.catch_up();
        let owned = self.owned.lock();
        let shown = owned
            .iter()
            .filter_map(|((uuid, number), connection)| match of {
                None => Some(format!("{uuid}:{number}#{connection}")),
                Some(id) => (id == *connection).then(|| format!("{uuid}:{number}")),
            });
        shown.collect::<Vec<_>>().join(",\n")
    }

    pub(crate) fn register(&self, connection: u32, replica: RegisteredReplica) {
        self.replicas.lock().insert(connection, replica);
    }

    pub(crate) fn unregister(&self, connection: u32) {
        self.replicas.lock().remove(&connection);
    }

    pub(crate) fn replicas(&self) -> Vec<RegisteredReplica> {
        self.replicas.lock().values().cloned().collect()
    }
}

impl AttachmentReader for BinaryLog {
    fn recovered(&self, attachment: Attachment) -> io::Result<()> {
        self.writer.lock().append(&attachment)
    }

    fn synced(&self) -> Lsn {
        self.writer.lock().commit
    }

    fn finish(&self, end: Lsn) -> io::Result<()> {
        let mut writer = self.writer.lock();
        if writer.commit > end {
            let text = format!(
                "the binary log has a commit at LSN {}, but the engine's log ends at {end}: they \
                 do not belong together, or log was lost",
                writer.commit
            );
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        writer.unsynced += 1;
        writer.sync()?;
        // What is left belongs to transactions that were not committed.
        for name in files::list_large(&*writer.disk)? {
            writer.disk.remove(&name)?;
        }
        self.publish(&mut writer);
        Ok(())
    }
}

/// A dump that is running.
pub(crate) struct Dump {
    log: Arc<BinaryLog>,
    id: u64,
}

impl Dump {
    /// The replica acknowledges what it gets.
    pub fn acknowledges(&self) {
        self.log.semi_sync.attach(self.id);
    }

    pub fn set_file(&self, number: u64) {
        self.log.published.lock().reading.insert(self.id, number);
    }
}

impl Drop for Dump {
    fn drop(&mut self) {
        self.log.published.lock().reading.remove(&self.id);
        self.log.semi_sync.detach(self.id);
    }
}

/// See [`BinaryLog::grown`].
pub(crate) struct Grown<'a> {
    log: &'a BinaryLog,
    at: (u64, u64),
}

impl Future for Grown<'_> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut published = self.log.published.lock();
        let last = published.files.iter().next_back();
        let end = last.map_or((0, 0), |(number, file)| (*number, file.bytes));
        if end > self.at || published.closed {
            return Poll::Ready(());
        }
        let waker = cx.waker();
        if !published.waiting.iter().any(|w| w.will_wake(waker)) {
            published.waiting.push(waker.clone());
        }
        Poll::Pending
    }
}
