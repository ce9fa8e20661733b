//! The interface to the file system. All calls block. They are made from I/O threads, or by the
//! caller in inline mode.
//!
//! # Failure
//! After a crash, only the promises of these calls hold. Bytes that were written without a later
//! successful [`DiskFile::sync_data`] may be present, missing, or torn at sector boundaries in any
//! combination. A created, renamed or removed name is certain only after [`Disk::sync_dir`].

use std::io;
use std::sync::Arc;

#[allow(unsafe_code)]
mod aio;
pub mod counted;
#[allow(unsafe_code)]
pub mod real;
pub mod sim;

pub use counted::{CountedDisk, FileCalls, FileCounters};
pub use real::RealDisk;
pub use sim::{FaultOn, SimDisk, SimRng};

/// The prefix of the log files' names.
pub(crate) const LOG_PREFIX: &str = "redo.";
/// The name of the doublewrite file.
pub(crate) const DOUBLEWRITE: &str = "nfold.doublewrite";

/// How [`Disk::open`] treats a missing or existing file.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum OpenMode {
    /// The file must exist.
    Existing,
    /// The file is created if it is missing.
    OrCreate,
    /// The file must not exist.
    CreateNew,
}

/// A directory of files. Names contain no path separators.
pub trait Disk: Send + Sync {
    fn open(&self, name: &str, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>>;
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Renames a file, and replaces `to` if it exists.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// The names that start with `prefix`, sorted.
    fn list(&self, prefix: &str) -> io::Result<Vec<String>>;
    /// Makes creations, renames and removals durable.
    fn sync_dir(&self) -> io::Result<()>;
    fn exists(&self, name: &str) -> io::Result<bool>;
}

/// An open file. Positions and lengths are in bytes.
pub trait DiskFile: Send + Sync {
    /// Fills `buf` from offset `off` on. Reading beyond the end of the file is an `UnexpectedEof`
    /// error.
    fn read_at(&self, off: u64, buf: &mut [u8]) -> io::Result<()>;
    /// Writes all of `buf` at offset `off`, and extends the file if needed.
    fn write_at(&self, off: u64, buf: &[u8]) -> io::Result<()>;
    /// As [`write_at`](Self::write_at), for bytes that are not synced soon: through the page cache,
    /// if there is one, so that the call does not wait for the disk.
    fn write_cached_at(&self, off: u64, buf: &[u8]) -> io::Result<()> {
        self.write_at(off, buf)
    }
    /// Writes all of each of `writes`, an offset and the bytes, in any order. If one fails, the
    /// others are tried as well. `None`: nothing was written, because this file has no way that
    /// would be faster than [`write_at`](Self::write_at) for each.
    fn write_many(&self, writes: &[(u64, &[u8])]) -> Option<io::Result<()>> {
        let _ = writes;
        None
    }
    /// Makes all completed writes of this file durable, including its length.
    fn sync_data(&self) -> io::Result<()>;
    /// The length of the file.
    fn len(&self) -> io::Result<u64>;
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
    fn set_len(&self, len: u64) -> io::Result<()>;
    /// Allocates blocks for `[off, off + len)`, and extends the file to that length if needed. New
    /// bytes are zero.
    fn allocate(&self, off: u64, len: u64) -> io::Result<()>;
}
