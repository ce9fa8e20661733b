//! Counts the calls for each file of a disk.
//!
//! # Concurrency
//! Each open file has its counters; a call adds to them after it has succeeded. The map of all
//! files has a mutex, which opening, removing and renaming a file take, and reports.
//! # Cost
//! A few additions for each call to the system.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use parking_lot::Mutex;

use super::{Disk, DiskFile, OpenMode};

/// The calls for one file since the disk was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FileCalls {
    pub opens: u64,
    pub reads: u64,
    pub read_bytes: u64,
    pub writes: u64,
    pub written_bytes: u64,
    /// Syncs, changes of the length, and questions about it.
    pub others: u64,
}

#[derive(Default)]
struct Counters {
    opens: AtomicU64,
    reads: AtomicU64,
    read_bytes: AtomicU64,
    writes: AtomicU64,
    written_bytes: AtomicU64,
    others: AtomicU64,
}

impl Counters {
    fn calls(&self) -> FileCalls {
        let now = |counter: &AtomicU64| counter.load(Relaxed);
        FileCalls {
            opens: now(&self.opens),
            reads: now(&self.reads),
            read_bytes: now(&self.read_bytes),
            writes: now(&self.writes),
            written_bytes: now(&self.written_bytes),
            others: now(&self.others),
        }
    }
}

/// The counters of all files of a disk, by name.
#[derive(Default)]
pub struct FileCounters(Mutex<BTreeMap<String, Arc<Counters>>>);

impl FileCounters {
    /// The files that were opened since the disk was, except removed ones, with their calls.
    pub fn calls(&self) -> Vec<(String, FileCalls)> {
        let files = self.0.lock();
        let each = files.iter().map(|(name, c)| (name.clone(), c.calls()));
        each.collect()
    }
}

/// A disk whose calls are counted.
pub struct CountedDisk {
    disk: Arc<dyn Disk>,
    files: Arc<FileCounters>,
}

impl CountedDisk {
    /// Counts the calls to `disk`.
    pub fn new(disk: Arc<dyn Disk>) -> CountedDisk {
        CountedDisk {
            disk,
            files: Arc::default(),
        }
    }

    /// The counters of its files.
    pub fn counters(&self) -> &Arc<FileCounters> {
        &self.files
    }
}

impl Disk for CountedDisk {
    fn open(&self, name: &str, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        let file = self.disk.open(name, mode)?;
        let mut files = self.files.0.lock();
        let counters = match files.get(name) {
            Some(counters) => counters.clone(),
            None => files.entry(name.into()).or_default().clone(),
        };
        counters.opens.fetch_add(1, Relaxed);
        Ok(Arc::new(CountedFile { file, counters }))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.disk.remove(name)?;
        self.files.0.lock().remove(name);
        Ok(())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.disk.rename(from, to)?;
        let mut files = self.files.0.lock();
        if let Some(counters) = files.remove(from) {
            files.insert(to.into(), counters);
        }
        Ok(())
    }

    fn list(&self, prefix: &str) -> io::Result<Vec<String>> {
        self.disk.list(prefix)
    }

    fn sync_dir(&self) -> io::Result<()> {
        self.disk.sync_dir()
    }

    fn exists(&self, name: &str) -> io::Result<bool> {
        self.disk.exists(name)
    }
}

struct CountedFile {
    file: Arc<dyn DiskFile>,
    counters: Arc<Counters>,
}

impl CountedFile {
    fn written(&self, len: usize) {
        self.counters.writes.fetch_add(1, Relaxed);
        self.counters.written_bytes.fetch_add(len as u64, Relaxed);
    }

    fn other<T>(&self, done: T) -> T {
        self.counters.others.fetch_add(1, Relaxed);
        done
    }
}

impl DiskFile for CountedFile {
    fn read_at(&self, off: u64, buf: &mut [u8]) -> io::Result<()> {
        self.file.read_at(off, buf)?;
        self.counters.reads.fetch_add(1, Relaxed);
        self.counters
            .read_bytes
            .fetch_add(buf.len() as u64, Relaxed);
        Ok(())
    }

    fn write_at(&self, off: u64, buf: &[u8]) -> io::Result<()> {
        self.file.write_at(off, buf)?;
        self.written(buf.len());
        Ok(())
    }

    fn write_cached_at(&self, off: u64, buf: &[u8]) -> io::Result<()> {
        self.file.write_cached_at(off, buf)?;
        self.written(buf.len());
        Ok(())
    }

    fn write_many(&self, writes: &[(u64, &[u8])]) -> Option<io::Result<()>> {
        let done = self.file.write_many(writes)?;
        if done.is_ok() {
            for (_, bytes) in writes {
                self.written(bytes.len());
            }
        }
        Some(done)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data().map(|done| self.other(done))
    }

    fn len(&self) -> io::Result<u64> {
        self.file.len().map(|len| self.other(len))
    }

    fn is_empty(&self) -> io::Result<bool> {
        self.file.is_empty().map(|empty| self.other(empty))
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len).map(|done| self.other(done))
    }

    fn allocate(&self, off: u64, len: u64) -> io::Result<()> {
        self.file.allocate(off, len).map(|done| self.other(done))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RealDisk;

    #[test]
    fn calls_are_counted_by_file() {
        let dir = tempfile::tempdir().unwrap();
        let disk = CountedDisk::new(Arc::new(RealDisk::new(dir.path(), false)));
        let file = disk.open("a", OpenMode::CreateNew).unwrap();
        file.write_at(0, b"12345").unwrap();
        file.sync_data().unwrap();
        let mut bytes = [0; 3];
        file.read_at(1, &mut bytes).unwrap();
        assert!(file.read_at(100, &mut bytes).is_err());
        disk.open("a", OpenMode::Existing).unwrap();
        disk.open("b", OpenMode::CreateNew).unwrap();
        disk.rename("a", "c").unwrap();
        let calls = FileCalls {
            opens: 2,
            reads: 1,
            read_bytes: 3,
            writes: 1,
            written_bytes: 5,
            others: 1,
        };
        let opened = FileCalls {
            opens: 1,
            ..FileCalls::default()
        };
        let all = [("b".to_owned(), opened), ("c".to_owned(), calls)];
        assert_eq!(disk.counters().calls(), all);
        disk.remove("c").unwrap();
        assert_eq!(disk.counters().calls().len(), 1);
    }
}
