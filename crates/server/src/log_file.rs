//! A log in MySQL's format (the slow query log, the general log). Entries are collected in memory,
//! and a thread writes them.
//!
//! # Picture
//! ```text
//! session ──▶ pending (text of entries) ──▶ writer thread ──▶ file, one write for all that have gathered
//!                 │ another file from now on
//!                 └──▶ aside, each with the file that it belongs to; written first
//! ```
//! # Concurrency
//! Workers never block on the file: they append to `pending` under a mutex, and only if there is
//! something to log. Entries beyond [`MAX_PENDING`] are lost and counted.
//! # Failure
//! If a file cannot be opened or written, the server's own log says so once, until it works again.
//! Entries meanwhile are lost and counted.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;

use parking_lot::{Condvar, Mutex};

/// The maximum size of the pending entries in bytes.
const MAX_PENDING: usize = 64 << 20;

/// The names of a log.
#[derive(Debug, Clone, Copy)]
pub struct LogName {
    /// The name in messages.
    pub what: &'static str,
    pub thread: &'static str,
}

/// The entries to be written.
#[derive(Default)]
pub struct Pending {
    pub bytes: Vec<u8>,
    /// Data that an entry leaves for the next one: the slow log's default database.
    pub context: Option<String>,
    /// The number of entries in `bytes`.
    entries: u64,
}

/// The entries for one file.
#[derive(Default)]
struct Batch {
    path: PathBuf,
    /// Whether the file is reopened before they are written.
    reopen: bool,
    bytes: Vec<u8>,
    entries: u64,
}

#[derive(Default)]
struct State {
    path: PathBuf,
    pending: Pending,
    /// The entries that were pending when the file changed, oldest first, and their total size.
    aside: VecDeque<Batch>,
    aside_bytes: usize,
    /// Whether the file is reopened before the pending entries are written.
    reopen: bool,
    closed: bool,
    thread: Option<JoinHandle<()>>,
}

impl State {
    /// Directs later entries to another file, or to the reopened one. Pending entries still go to
    /// the old file.
    fn set_aside(&mut self) {
        if !self.pending.bytes.is_empty() {
            let batch = self.take_pending();
            self.aside_bytes += batch.bytes.len();
            self.aside.push_back(batch);
        }
        self.pending.context = None;
        self.reopen = true;
    }

    fn take_pending(&mut self) -> Batch {
        Batch {
            path: self.path.clone(),
            reopen: std::mem::take(&mut self.reopen),
            bytes: std::mem::take(&mut self.pending.bytes),
            entries: std::mem::take(&mut self.pending.entries),
        }
    }

    /// The next entries to be written.
    fn next(&mut self) -> Option<Batch> {
        if let Some(batch) = self.aside.pop_front() {
            self.aside_bytes -= batch.bytes.len();
            return Some(batch);
        }
        (!self.pending.bytes.is_empty()).then(|| self.take_pending())
    }
}

/// See the module's header.
pub struct LogFile {
    name: LogName,
    /// The first lines of a file, as in MySQL.
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

    /// Sets whether the log is written, and its file.
    pub fn configure(self: &Arc<Self>, on: bool, path: PathBuf) {
        self.on.store(on, Relaxed);
        let mut state = self.state.lock();
        if state.path != path {
            state.set_aside();
            state.path = path;
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

    /// FLUSH LOGS: reopens the file, after it was renamed.
    pub fn reopen(&self) {
        self.state.lock().set_aside();
    }

    /// Called at shutdown: writes the pending entries.
    pub fn close(&self) {
        let thread = {
            let mut state = self.state.lock();
            state.closed = true;
            self.bell.notify_one();
            state.thread.take()
        };
        if let Some(thread) = thread {
            // The writer's panic has already been reported.
            drop(thread.join());
        }
    }

    #[inline]
    pub fn is_on(&self) -> bool {
        self.on.load(Relaxed)
    }

    /// The number of lost entries.
    pub fn lost(&self) -> u64 {
        self.lost.load(Relaxed)
    }

    /// Passes an entry to the writer. `append` appends its text, of about `len` bytes.
    pub fn write(&self, len: usize, append: impl FnOnce(&mut Pending)) {
        let mut state = self.state.lock();
        if state.closed || state.aside_bytes + state.pending.bytes.len() + len > MAX_PENDING {
            self.lost.fetch_add(1, Relaxed);
            return;
        }
        append(&mut state.pending);
        state.pending.entries += 1;
        self.bell.notify_one();
    }

    /// The writer thread.
    fn run(&self) {
        let (mut file, mut known_bad): (Option<File>, bool) = (None, false);
        loop {
            let batch = {
                let mut state = self.state.lock();
                loop {
                    match state.next() {
                        Some(batch) => break batch,
                        None if state.closed => return,
                        None => self.bell.wait(&mut state),
                    }
                }
            };
            if batch.reopen {
                file = None;
            }
            let result = match &mut file {
                Some(file) => file.write_all(&batch.bytes),
                None => self.open(&batch.path).and_then(|opened| {
                    let opened = file.insert(opened);
                    opened.write_all(&batch.bytes)
                }),
            };
            match result {
                Ok(()) => known_bad = false,
                Err(error) => {
                    self.lost.fetch_add(batch.entries, Relaxed);
                    if !known_bad {
                        tracing::error!(%error, path = %batch.path.display(), "the {} cannot be written", self.name.what);
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

    #[test]
    fn entries_go_to_the_file_of_their_time() {
        let dir = tempfile::tempdir().unwrap();
        let name = LogName {
            what: "test's log",
            thread: "test-log",
        };
        let log = LogFile::new(name, "begun\n".into());
        let path = |n: u32| dir.path().join(format!("{n}.log"));
        for n in 0..200 {
            log.configure(true, path(n));
            log.write(4, |to| {
                assert_eq!(to.context, None, "a file begins without one");
                to.context = Some("db".into());
                to.bytes.extend_from_slice(format!("{n}\n").as_bytes());
            });
        }
        // Renames the last file once it exists, as an administrator does before FLUSH LOGS.
        while !path(199).exists() {
            std::thread::yield_now();
        }
        log.write(4, |to| to.bytes.extend_from_slice(b"more\n"));
        std::fs::rename(path(199), path(1000)).unwrap();
        log.reopen();
        log.write(4, |to| to.bytes.extend_from_slice(b"new\n"));
        log.close();
        let read = |n| std::fs::read_to_string(path(n)).unwrap();
        for n in 0..199 {
            assert_eq!(read(n), format!("begun\n{n}\n"));
        }
        assert_eq!(read(1000), "begun\n199\nmore\n");
        assert_eq!(read(199), "begun\nnew\n");
    }
}
