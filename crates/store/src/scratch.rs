//! Temporary files for data that does not fit in memory, such as the sorted entries of an index
//! being built. They are not needed after a crash.
//!
//! # Failure
//! A file is removed with its [`Scratch`]. Files left by a crash are removed at the next start.
//! Nothing is synced. An I/O error fails only the call that met it.

use crate::disk::{Disk, DiskFile, OpenMode};
use crate::error::StoreError;
use std::io::ErrorKind;
use std::sync::Arc;

/// The suffix of scratch files. Space files have a different suffix, so the names cannot collide.
const SUFFIX: &str = ".scratch";

/// A temporary file that is removed when this is dropped. All calls block on the disk.
pub struct Scratch {
    disk: Arc<dyn Disk>,
    file: Arc<dyn DiskFile>,
    name: String,
}

impl Scratch {
    pub(crate) fn create(disk: &Arc<dyn Disk>) -> Result<Scratch, StoreError> {
        let mut number = 0;
        loop {
            let name = format!("{number}{SUFFIX}");
            match disk.open(&name, OpenMode::CreateNew) {
                Ok(file) => {
                    return Ok(Scratch {
                        disk: disk.clone(),
                        file,
                        name,
                    });
                }
                Err(e) if e.kind() == ErrorKind::AlreadyExists => number += 1,
                Err(e) => return Err(StoreError::io(&e, format!("{name}: create"))),
            }
        }
    }

    /// Writes all of `bytes` at `off`, growing the file if needed.
    pub fn write_at(&self, off: u64, bytes: &[u8]) -> Result<(), StoreError> {
        let failed = |e| StoreError::io(&e, format!("{}: write at offset {off}", self.name));
        self.file.write_at(off, bytes).map_err(failed)
    }

    /// Fills `buf` with the bytes written at `off`.
    pub fn read_at(&self, off: u64, buf: &mut [u8]) -> Result<(), StoreError> {
        let failed = |e| StoreError::io(&e, format!("{}: read at offset {off}", self.name));
        self.file.read_at(off, buf).map_err(failed)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(e) = self.disk.remove(&self.name) {
            tracing::warn!("{}: remove: {e}", self.name);
        }
    }
}

/// Removes the scratch files that a crash left behind.
pub(crate) fn sweep(disk: &dyn Disk) -> Result<(), StoreError> {
    let failed = |e: std::io::Error| StoreError::io(&e, "removing scratch files");
    for name in disk.list("").map_err(failed)? {
        if name.ends_with(SUFFIX) {
            disk.remove(&name).map_err(failed)?;
        }
    }
    Ok(())
}
