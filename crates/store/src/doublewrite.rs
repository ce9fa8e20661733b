//! The doublewrite file: a second copy of the page images being written, from which pages torn by a
//! crash are repaired.
//!
//! # Picture
//! ```text
//! "nfold.doublewrite":  | header, 4096 bytes | image 0 | image 1 | ...   one batch, one write call
//!
//! header:  0 u32 CRC-32C of bytes 4..4096   4 u32 number of images
//!          8 8 bytes "NFOLDDBW"            16 u64 batch number
//!         64 (u32 space, u32 page) of each image
//! ```
//! # Invariants
//! - I1: a batch is written and synced here before any of its pages is written in place. It is
//!   overwritten only after those writes were synced. So at most one batch can have torn pages, and
//!   that batch is in this file.
//! # Failure
//! If the header or an image in this file is torn, its pages were not yet written in place, and
//! there is nothing to repair.

use crate::buf::AlignedBuf;
use crate::disk::{DOUBLEWRITE as NAME, Disk, DiskFile, OpenMode};
use crate::error::StoreError;
use crate::page::{Lsn, PAGE_SIZE, PageId, SpaceId, check_image, image_lsn};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

const MAGIC: &[u8; 8] = b"NFOLDDBW";
const IDS: usize = 64;
/// The size of the header: the offset of the first image.
pub(crate) const HEADER: usize = 4096;
/// The most pages of a batch.
pub(crate) const BATCH: usize = 128;

pub(crate) struct Doublewrite {
    file: Arc<dyn DiskFile>,
    batch: u64,
}

fn io(what: &'static str) -> impl Fn(std::io::Error) -> StoreError {
    move |e| StoreError::io(&e, format!("{NAME}: {what}"))
}

impl Doublewrite {
    /// Opens the file. Creates it with allocated blocks if it is missing.
    pub(crate) fn open(disk: &dyn Disk) -> Result<Doublewrite, StoreError> {
        let file = disk.open(NAME, OpenMode::OrCreate).map_err(io("open"))?;
        let len = (HEADER + BATCH * PAGE_SIZE) as u64;
        if file.len().map_err(io("length"))? < len {
            file.allocate(0, len).map_err(io("allocate"))?;
            file.sync_data().map_err(io("sync"))?;
            disk.sync_dir().map_err(io("sync directory"))?;
        }
        Ok(Doublewrite { file, batch: 0 })
    }

    /// Writes a batch without a sync. `buf` contains room for the header, followed by the sealed
    /// images of `ids`.
    pub(crate) fn write(&mut self, ids: &[PageId], buf: &mut [u8]) -> Result<(), StoreError> {
        self.batch += 1;
        let header = &mut buf[..HEADER];
        header.fill(0);
        header[4..8].copy_from_slice(&(ids.len() as u32).to_le_bytes());
        header[8..16].copy_from_slice(MAGIC);
        header[16..24].copy_from_slice(&self.batch.to_le_bytes());
        for (i, id) in ids.iter().enumerate() {
            header[IDS + 8 * i..IDS + 8 * i + 4].copy_from_slice(&id.space.to_le_bytes());
            header[IDS + 8 * i + 4..IDS + 8 * i + 8].copy_from_slice(&id.page.to_le_bytes());
        }
        let crc = crc32c::crc32c(&header[4..]);
        header[..4].copy_from_slice(&crc.to_le_bytes());
        self.file
            .write_at(0, &buf[..HEADER + ids.len() * PAGE_SIZE])
            .map_err(io("write"))
    }

    pub(crate) fn sync(&self) -> Result<(), StoreError> {
        self.file.sync_data().map_err(io("sync"))
    }
}

/// Removes the file. To be called before pages are written without it, because an old image must
/// not overwrite one of them later.
pub(crate) fn remove(disk: &dyn Disk) -> Result<(), StoreError> {
    if disk.exists(NAME).map_err(io("look up"))? {
        disk.remove(NAME).map_err(io("remove"))?;
        disk.sync_dir().map_err(io("sync directory"))?;
    }
    Ok(())
}

/// The result of [`repair`].
#[derive(Default)]
pub(crate) struct Repaired {
    /// The number of repaired pages.
    pub(crate) pages: u64,
    /// The LSN and the page of the newest image in the last batch.
    pub(crate) newest: Option<(Lsn, PageId)>,
}

/// Repairs torn pages after a crash. `names` maps the spaces to their files' names.
pub(crate) fn repair(
    disk: &dyn Disk,
    names: &HashMap<SpaceId, String>,
) -> Result<Repaired, StoreError> {
    let mut repaired = Repaired::default();
    if !disk.exists(NAME).map_err(io("look up"))? {
        return Ok(repaired);
    }
    let file = disk.open(NAME, OpenMode::Existing).map_err(io("open"))?;
    let mut buf = AlignedBuf::new(HEADER + BATCH * PAGE_SIZE);
    let len = file.len().map_err(io("length"))?;
    if len < buf.len() as u64 {
        tracing::warn!("{NAME}: cut off at offset {len}; torn pages cannot be repaired from it");
        return Ok(repaired);
    }
    file.read_at(0, &mut buf).map_err(io("read"))?;
    let u32_at = |at: usize| u32::from_le_bytes([buf[at], buf[at + 1], buf[at + 2], buf[at + 3]]);
    let count = u32_at(4) as usize;
    if u32_at(0) != crc32c::crc32c(&buf[4..HEADER]) || &buf[8..16] != MAGIC || count > BATCH {
        if buf[..HEADER].iter().any(|b| *b != 0) {
            tracing::warn!(
                "{NAME}: its header (offset 0) is not valid; torn pages cannot be repaired from it"
            );
        }
        return Ok(repaired);
    }
    let mut synced = HashSet::new();
    for i in 0..count {
        let id = PageId::new(u32_at(IDS + 8 * i), u32_at(IDS + 8 * i + 4));
        let image = &buf[HEADER + i * PAGE_SIZE..HEADER + (i + 1) * PAGE_SIZE];
        if crate::page::checksum_matches(image)
            && check_image(id, image).is_ok()
            && let Some(name) = names.get(&id.space)
        {
            let lsn = image_lsn(image);
            if repaired.newest.is_none_or(|(newest, _)| newest < lsn) {
                repaired.newest = Some((lsn, id));
            }
            if synced.insert(id.space) {
                sync_space(disk, name)?;
            }
            repaired.pages += u64::from(repair_page(disk, name, id, image)?);
        }
    }
    Ok(repaired)
}

/// Syncs a space file. After a kill, pages of the batch may be complete only in the page cache.
/// They must be on disk before the batch in the doublewrite file is overwritten (I1).
fn sync_space(disk: &dyn Disk, name: &str) -> Result<(), StoreError> {
    let file = disk
        .open(
            &format!("{name}{}", crate::space::SUFFIX),
            OpenMode::Existing,
        )
        .map_err(io("open space"))?;
    file.sync_data().map_err(io("sync space"))
}

fn repair_page(disk: &dyn Disk, name: &str, id: PageId, image: &[u8]) -> Result<bool, StoreError> {
    let file = disk
        .open(
            &format!("{name}{}", crate::space::SUFFIX),
            OpenMode::Existing,
        )
        .map_err(io("open space"))?;
    let off = u64::from(id.page) * PAGE_SIZE as u64;
    let mut now = AlignedBuf::new(PAGE_SIZE);
    let whole = off + PAGE_SIZE as u64 <= file.len().map_err(io("space length"))?;
    if whole {
        file.read_at(off, &mut now).map_err(io("read page"))?;
        // A page of zeros counts as torn, because this batch may have been its first write.
        if crate::page::checksum_matches(&now) && check_image(id, &now).is_ok() {
            return Ok(false);
        }
    }
    now.copy_from_slice(image);
    file.write_at(off, &now).map_err(io("repair page"))?;
    file.sync_data().map_err(io("sync repaired page"))?;
    tracing::warn!("page {id} was torn and has been repaired");
    Ok(true)
}
