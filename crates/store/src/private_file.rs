//! The file of a private space: a space that does not survive a restart. Its file is created when
//! its first page is evicted or when the space becomes large. It is never synced, and is removed
//! with its last user. Most private spaces are dropped before they have a file.
//!
//! # Picture
//! ```text
//! only in memory: length, initial page 0
//!    │ first write, or a length above SPARSE_BYTES
//!    ▼
//! a file named like an unfinished space
//! ```
//! # Invariants
//! - P1: the file's name ends in [`TEMPORARY`]. The next start removes it before recovery, and
//!   recovery skips the redo of spaces without a file.
//! - P2: apart from page 0, the pool reads only pages that it has written before.
//!
//! # Failure
//! Up to `SPARSE_BYTES`, no disk blocks are reserved. If the disk is full, a page of such a space
//! stays in memory until there is room. Beyond that size, blocks are allocated as for any space, so
//! a full disk is an error of the statement that needs them.

use std::io;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::disk::{Disk, DiskFile, OpenMode};
use crate::page::{PAGE_SIZE, SpaceId};
use crate::space::{TEMPORARY, header_image};

/// The bytes of a private space that need no allocated file.
const SPARSE_BYTES: u64 = 1 << 20;
/// The pages for which a new private space has room.
pub(crate) const PRIVATE_PAGES: u32 = (SPARSE_BYTES / PAGE_SIZE as u64) as u32;

/// See the module header.
pub(crate) struct PrivateFile {
    disk: Arc<dyn Disk>,
    id: SpaceId,
    file_name: String,
    state: Mutex<State>,
}

struct State {
    file: Option<Arc<dyn DiskFile>>,
    /// The length in bytes, as long as there is no file.
    len: u64,
}

impl PrivateFile {
    /// The file of space `id`, which has the name `name`.
    pub(crate) fn new(disk: Arc<dyn Disk>, id: SpaceId, name: &str) -> PrivateFile {
        PrivateFile {
            disk,
            id,
            file_name: format!("{name}{TEMPORARY}"),
            state: Mutex::new(State {
                file: None,
                len: SPARSE_BYTES,
            }),
        }
    }

    /// Whether the file exists on disk.
    pub(crate) fn exists(&self) -> bool {
        self.state.lock().file.is_some()
    }

    fn existing(&self) -> Option<Arc<dyn DiskFile>> {
        self.state.lock().file.clone()
    }

    /// Returns the file, which is created if it does not exist.
    fn create_if_missing(&self) -> io::Result<Arc<dyn DiskFile>> {
        let mut state = self.state.lock();
        if let Some(file) = &state.file {
            return Ok(file.clone());
        }
        let file = self.disk.open(&self.file_name, OpenMode::OrCreate)?;
        file.set_len(state.len)?;
        file.write_at(0, &header_image(self.id))?;
        Ok(state.file.insert(file).clone())
    }
}

impl DiskFile for PrivateFile {
    fn read_at(&self, off: u64, buf: &mut [u8]) -> io::Result<()> {
        if let Some(file) = self.existing() {
            return file.read_at(off, buf);
        }
        let page = header_image(self.id);
        let from = usize::try_from(off).ok();
        let bytes = from.and_then(|from| page.get(from..from.checked_add(buf.len())?));
        let bytes = bytes.ok_or(io::ErrorKind::UnexpectedEof)?; // P2
        buf.copy_from_slice(bytes);
        Ok(())
    }

    fn write_at(&self, off: u64, buf: &[u8]) -> io::Result<()> {
        self.create_if_missing()?.write_at(off, buf)
    }

    fn write_cached_at(&self, off: u64, buf: &[u8]) -> io::Result<()> {
        self.create_if_missing()?.write_cached_at(off, buf)
    }

    /// Does nothing, because no data of this file is needed after a crash.
    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        match self.existing() {
            Some(file) => file.len(),
            None => Ok(self.state.lock().len),
        }
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.create_if_missing()?.set_len(len)
    }

    fn allocate(&self, off: u64, len: u64) -> io::Result<()> {
        self.create_if_missing()?.allocate(off, len)
    }
}

impl Drop for PrivateFile {
    fn drop(&mut self) {
        if self.state.get_mut().file.take().is_some()
            && let Err(error) = self.disk.remove(&self.file_name)
        {
            let file = &self.file_name;
            tracing::warn!(%error, "{file} could not be removed; the next start does it");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::RealDisk;

    #[test]
    fn private_file_exists_from_first_write_to_drop() {
        let dir = tempfile::tempdir().unwrap();
        let disk: Arc<dyn Disk> = Arc::new(RealDisk::new(dir.path(), false));
        let file = PrivateFile::new(disk.clone(), 7, "t1");
        let mut page = vec![0; PAGE_SIZE];
        file.read_at(0, &mut page).unwrap();
        assert_eq!(page, &header_image(7)[..]);
        let beyond = file.read_at(PAGE_SIZE as u64, &mut page).unwrap_err();
        assert_eq!(beyond.kind(), io::ErrorKind::UnexpectedEof);
        file.sync_data().unwrap();
        assert!(disk.list("").unwrap().is_empty());
        file.write_at(2 * PAGE_SIZE as u64, &[5; PAGE_SIZE])
            .unwrap();
        assert_eq!(disk.list("").unwrap(), ["t1.nfd.tmp"]);
        assert_eq!(file.len().unwrap(), SPARSE_BYTES);
        file.read_at(0, &mut page).unwrap();
        assert_eq!(page, &header_image(7)[..]);
        file.read_at(2 * PAGE_SIZE as u64, &mut page).unwrap();
        assert_eq!(page, [5; PAGE_SIZE]);
        drop(file);
        assert!(disk.list("").unwrap().is_empty());
    }
}
