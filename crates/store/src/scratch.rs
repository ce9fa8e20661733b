//! Files for what does not fit in memory, such as sorted entries of an index being built. Nobody needs them after a crash.
//!
//! # Failure
//! A file goes with its [`Scratch`]; those that a crash left are removed at the next start. Nothing here is synced. An error fails the call
//! that met it, nothing else.

use crate::disk::{Disk, DiskFile, OpenMode};
use crate::error::StoreError;
use std::io::ErrorKind;
use std::sync::Arc;

/// What the names of scratch files end in; a space's name cannot, its file's name ends in another way.
const SUFFIX: &str = ".scratch";

/// A file that is removed when this is dropped. All calls block on the disk.
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

    /// Fills `buf` with what was written at `off`.
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

/// Removes what a crash left.
pub(crate) fn sweep(disk: &dyn Disk) -> Result<(), StoreError> {
    let failed = |e: std::io::Error| StoreError::io(&e, "removing scratch files");
    for name in disk.list("").map_err(failed)? {
        if name.ends_with(SUFFIX) {
            disk.remove(&name).map_err(failed)?;
        }
    }
    Ok(())
}
