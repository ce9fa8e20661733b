//! A disk on which the syncs of some files end only when the test permits it.

use nfold_store::*;
use std::io;
use std::sync::{Arc, Condvar, Mutex};

/// The syncs of these files that have begun, the number that may end, and the completed writes to
/// them.
#[derive(Default)]
pub struct Syncs {
    pub begun: u64,
    pub allowed: Option<u64>,
    pub writes: u64,
    /// Called after each of those writes, by the writing thread.
    pub on_write: Option<Arc<dyn Fn() + Send + Sync>>,
    /// The names of the threads that began the syncs.
    pub by: std::collections::BTreeSet<String>,
}

/// A [`SimDisk`] that delays the end of syncs of some files.
#[derive(Clone)]
pub struct GateDisk {
    pub inner: SimDisk,
    /// The prefix of the names of those files.
    prefix: &'static str,
    pub syncs: Arc<(Mutex<Syncs>, Condvar)>,
}

impl GateDisk {
    pub fn new(prefix: &'static str) -> GateDisk {
        GateDisk {
            inner: SimDisk::default(),
            prefix,
            syncs: Arc::default(),
        }
    }

    pub fn change(&self, change: impl FnOnce(&mut Syncs)) {
        change(&mut self.syncs.0.lock().unwrap());
        self.syncs.1.notify_all();
    }

    pub fn wait_until(&self, done: impl Fn(&Syncs) -> bool) {
        let guard = self.syncs.0.lock().unwrap();
        drop(self.syncs.1.wait_while(guard, |s| !done(s)).unwrap());
    }
}

struct GateFile {
    inner: Arc<dyn DiskFile>,
    /// The gate, if it is one of those files.
    gate: Option<GateDisk>,
}

impl Disk for GateDisk {
    fn open(&self, name: &str, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        Ok(Arc::new(GateFile {
            inner: self.inner.open(name, mode)?,
            gate: name.starts_with(self.prefix).then(|| self.clone()),
        }))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.inner.remove(name)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.inner.rename(from, to)
    }

    fn list(&self, prefix: &str) -> io::Result<Vec<String>> {
        self.inner.list(prefix)
    }

    fn sync_dir(&self) -> io::Result<()> {
        self.inner.sync_dir()
    }

    fn exists(&self, name: &str) -> io::Result<bool> {
        self.inner.exists(name)
    }
}

impl DiskFile for GateFile {
    fn read_at(&self, off: u64, buf: &mut [u8]) -> io::Result<()> {
        self.inner.read_at(off, buf)
    }

    fn write_at(&self, off: u64, buf: &[u8]) -> io::Result<()> {
        self.inner.write_at(off, buf)?;
        if let Some(disk) = &self.gate {
            disk.change(|s| s.writes += 1);
            let on_write = disk.syncs.0.lock().unwrap().on_write.clone();
            on_write.inspect(|call| call());
        }
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        if let Some(disk) = &self.gate {
            let mut number = 0;
            disk.change(|s| {
                s.begun += 1;
                number = s.begun;
                let thread = std::thread::current();
                s.by.insert(thread.name().unwrap_or_default().to_string());
            });
            disk.wait_until(|s| s.allowed.is_none_or(|n| number <= n));
        }
        self.inner.sync_data()
    }

    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.inner.set_len(len)
    }

    fn allocate(&self, off: u64, len: u64) -> io::Result<()> {
        self.inner.allocate(off, len)
    }
}
