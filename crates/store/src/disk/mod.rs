//! The file system as the engine sees it. All calls block; they are made from I/O threads, or in place in inline mode.
//!
//! # Failure
//! What a crash leaves behind is what these calls promise, no more: bytes written and not followed by a successful
//! [`DiskFile::sync_data`] may be there, missing, or torn at sector boundaries in any combination; a created, renamed or removed
//! name is certain only after [`Disk::sync_dir`].

use std::io;
use std::sync::Arc;

#[allow(unsafe_code)]
pub mod real;
pub mod sim;

pub use real::RealDisk;
pub use sim::{FaultOn, SimDisk, SimRng};

/// How [`Disk::open`] treats a missing or existing file.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum OpenMode {
    /// The file must exist.
    Existing,
    /// The file is made if missing.
    OrCreate,
    /// The file must not exist.
    CreateNew,
}

/// One directory of files. Names have no separators.
pub trait Disk: Send + Sync {
    fn open(&self, name: &str, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>>;
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Replaces `to` if it exists.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Names that start with `prefix`, sorted.
    fn list(&self, prefix: &str) -> io::Result<Vec<String>>;
    /// Makes creations, renames and removals durable.
    fn sync_dir(&self) -> io::Result<()>;
    fn exists(&self, name: &str) -> io::Result<bool>;
}

/// An open file; positions are bytes.
pub trait DiskFile: Send + Sync {
    /// Fills `buf`; bytes beyond the end of the file are an `UnexpectedEof` error.
    fn read_at(&self, off: u64, buf: &mut [u8]) -> io::Result<()>;
    /// Writes all of `buf`, growing the file if needed.
    fn write_at(&self, off: u64, buf: &[u8]) -> io::Result<()>;
    /// As [`write_at`](Self::write_at), for bytes that nobody syncs soon: through the system's cache, where there is one, so that it does not wait for the disk.
    fn write_cached_at(&self, off: u64, buf: &[u8]) -> io::Result<()> {
        self.write_at(off, buf)
    }
    /// Makes all completed writes of this file durable, its length included.
    fn sync_data(&self) -> io::Result<()>;
    /// Bytes.
    fn len(&self) -> io::Result<u64>;
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
    fn set_len(&self, len: u64) -> io::Result<()>;
    /// Makes sure `[off, off + len)` has real blocks, and that the file is at least that long; new bytes are zero.
    fn allocate(&self, off: u64, len: u64) -> io::Result<()>;
}
