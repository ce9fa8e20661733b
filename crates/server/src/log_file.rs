//! A log that MySQL's tools read (the slow query log, the general log): entries gather in memory and a thread writes them.
//!
//! # Picture
//! ```text
//! session ──▶ pending (text of entries) ──▶ writer thread ──▶ file, one write for all that have gathered
//! ```
//! # Concurrency
//! Workers never block on the file: they append to `pending` under a mutex, only when there is something to log. Beyond [`MAX_PENDING`]
//! entries are lost, and counted.
//! # Failure
//! A file that cannot be opened or written is named in the server's own log, once until it can be again; entries meanwhile are lost, and counted.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;

use parking_lot::{Condvar, Mutex};

/// Bytes of entries that wait for the writer.
const MAX_PENDING: usize = 64 << 20;

/// Which log it is.
#[derive(Debug, Clone, Copy)]
pub struct LogName {
    /// As messages say it.
    pub what: &'static str,
    pub thread: &'static str,
}

/// What is to be written.
#[derive(Default)]
pub struct Pending {
    pub bytes: Vec<u8>,
    /// What an entry leaves to the next of its log: the slow log's default database.
    pub context: Option<String>,
    /// Entries in `bytes`.
    entries: u64,
}

#[derive(Default)]
struct State {
    path: PathBuf,
    pending: Pending,
    /// The file is to be opened anew.
    reopen: bool,
    closed: bool,
    thread: Option<JoinHandle<()>>,
}

/// See the module's header.
pub struct LogFile {
    name: LogName,
    /// The first lines of a file, as MySQL's.
    banner: String,
    on: AtomicBool,
    lost: AtomicU64,
    state: Mutex<State>,
    bell: Condvar,
}

impl LogFile {
    pub fn new(name: LogName, banner: String) -> Arc<LogFile> {
        Arc::new(LogFile {
            name,
            banner,
            on: AtomicBool::new(false),
            lost: AtomicU64::new(0),
            state: Mutex::default(),
            bell: Condvar::new(),
        })
    }

    /// Whether it is written, and where to.
    pub fn configure(self: &Arc<Self>, on: bool, path: PathBuf) {
        self.on.store(on, Relaxed);
        let mut state = self.state.lock();
        if state.path != path {
            state.path = path;
            state.reopen = true;
        }
        if on && state.thread.is_none() && !state.closed {
            let own = self.clone();
            let writer = std::thread::Builder::new().name(self.name.thread.into());
            match writer.spawn(move || own.run()) {
                Ok(thread) => state.thread = Some(thread),
                Err(error) => tracing::error!(%error, "no thread for the {}", self.name.what),
            }
        }
    }

    /// FLUSH LOGS: what comes goes to a file opened anew, after the old one was renamed.
    pub fn reopen(&self) {
        self.state.lock().reopen = true;
    }

    /// The server ends: writes what there is.
    pub fn close(&self) {
        let thread = {
            let mut state = self.state.lock();
            state.closed = true;
            self.bell.notify_one();
            state.thread.take()
        };
        if let Some(thread) = thread {
            // A panic of the writer was reported by itself.
            drop(thread.join());
        }
    }

    #[inline]
    pub fn is_on(&self) -> bool {
        self.on.load(Relaxed)
    }

    /// Entries that were lost.
    pub fn lost(&self) -> u64 {
        self.lost.load(Relaxed)
    }

    /// Hands an entry of about `len` bytes, which `append` appends, to the writer.
    pub fn write(&self, len: usize, append: impl FnOnce(&mut Pending)) {
        let mut state = self.state.lock();
        if state.closed || state.pending.bytes.len() + len > MAX_PENDING {
            self.lost.fetch_add(1, Relaxed);
            return;
        }
        append(&mut state.pending);
        state.pending.entries += 1;
        self.bell.notify_one();
    }

    /// Body of the writer.
    fn run(&self) {
        let (mut file, mut known_bad): (Option<File>, bool) = (None, false);
        let mut bytes = Vec::new();
        loop {
            let (path, entries) = {
                let mut state = self.state.lock();
                while state.pending.bytes.is_empty() && !state.closed {
                    self.bell.wait(&mut state);
                }
                if state.pending.bytes.is_empty() {
                    return;
                }
                bytes.clear();
                std::mem::swap(&mut bytes, &mut state.pending.bytes);
                if std::mem::take(&mut state.reopen) {
                    file = None;
                }
                let entries = std::mem::take(&mut state.pending.entries);
                (state.path.clone(), entries)
            };
            let result = match &mut file {
                Some(file) => file.write_all(&bytes),
                None => self.open(&path).and_then(|opened| {
                    let opened = file.insert(opened);
                    opened.write_all(&bytes)
                }),
            };
            match result {
                Ok(()) => known_bad = false,
                Err(error) => {
                    self.lost.fetch_add(entries, Relaxed);
                    if !known_bad {
                        tracing::error!(%error, path = %path.display(), "the {} cannot be written", self.name.what);
                    }
                    (file, known_bad) = (None, true);
                }
            }
        }
    }

    fn open(&self, path: &PathBuf) -> io::Result<File> {
        let mut options = OpenOptions::new();
        let mut file = options.create(true).append(true).mode(0o640).open(path)?;
        file.write_all(self.banner.as_bytes())?;
        Ok(file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_opened_loses_entries_and_says_how_many() {
        let dir = tempfile::tempdir().unwrap();
        let name = LogName {
            what: "test's log",
            thread: "test-log",
        };
        let log = LogFile::new(name, "begun\n".into());
        log.configure(true, dir.path().join("missing/a.log"));
        log.write(4, |to| to.bytes.extend_from_slice(b"one\n"));
        while log.lost() == 0 {
            std::thread::yield_now();
        }
        let path = dir.path().join("a.log");
        log.configure(true, path.clone());
        log.write(4, |to| to.bytes.extend_from_slice(b"two\n"));
        log.close();
        assert_eq!(std::fs::read_to_string(path).unwrap(), "begun\ntwo\n");
        assert_eq!(log.lost(), 1);
        log.write(6, |to| to.bytes.extend_from_slice(b"three\n"));
        assert_eq!(log.lost(), 2, "closed");
    }
}
