//! The log files: a ring of preallocated files that contain the log's blocks.
//!
//! # Picture
//! ```text
//! block sequence s → place p = s % (files * file_blocks)
//!                  → file redo.NNNN (p / file_blocks), offset (p % file_blocks) * 4096
//! ```
//! # Failure
//! Files are complete before the control file names them. If the log size has changed when the
//! store opens, a new set of files with new numbers is created after everything in the old set is
//! checkpointed. The old set is removed last.

use super::fill::Ahead;
use super::format::{BLOCK, BlockHead, PAYLOAD, block_head, is_head_damaged};
use crate::buf::AlignedBuf;
use crate::disk::{Disk, DiskFile, LOG_PREFIX, OpenMode};
use crate::error::StoreError;
use crate::page::Lsn;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Of a log that is not filled at creation, the part 1 / `FILL_FIRST` of the limit is filled, from
/// its beginning on.
const FILL_FIRST: u64 = 4;

/// How blocks are written.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum WriteMode {
    /// With direct I/O, if available, because a sync follows or because space is needed.
    Direct,
    /// Through the page cache, because commits wait until the operating system has the blocks. The
    /// log has a single writer, so these commits also wait for a sync in progress.
    Cached,
}

pub(crate) struct LogFiles {
    /// The number of the first file.
    first: u64,
    pub(super) files: Vec<Arc<dyn DiskFile>>,
    pub(super) file_blocks: u64,
    /// The progress of the log in new files, which are filled in the background. `None` if no files
    /// need filling.
    pub(super) ahead: Option<Ahead>,
    /// A bit per file, set if it was written since its last sync. The last bit covers all files
    /// above 63.
    unsynced: AtomicU64,
}

fn name(number: u64) -> String {
    format!("{LOG_PREFIX}{number:04}")
}

pub(super) fn io(what: &'static str) -> impl Fn(std::io::Error) -> StoreError {
    move |e| StoreError::io(&e, format!("log: {what}"))
}

/// Fills a part of a new file with zeros. With blocks that were only allocated, the first sync of
/// each block would also have to write the file system's own journal.
fn fill(file: &dyn DiskFile, mut at: u64, end: u64) -> Result<(), StoreError> {
    let zeros = vec![0u8; 1 << 20];
    while at < end {
        let n = (end - at).min(zeros.len() as u64);
        file.write_at(at, &zeros[..n as usize])
            .map_err(io("fill"))?;
        at += n;
    }
    Ok(())
}

impl LogFiles {
    /// The layout of a log of `bytes` bytes: (files, blocks in each).
    pub(crate) fn geometry(bytes: u64) -> (u64, u64) {
        let blocks = (bytes / BLOCK as u64).max(32);
        let files = (bytes / (128 << 20)).clamp(2, 32);
        (files, blocks / files)
    }

    /// Creates a set of files for a log that continues at `start`. Their blocks are allocated, and
    /// the files are durable when this returns. A log of up to `fill_limit` bytes is filled with
    /// zeros, which takes about a second per 512 MiB. A larger one is filled only in part; the
    /// background thread fills the rest.
    pub(crate) fn create(
        disk: &dyn Disk,
        first: u64,
        (files, file_blocks): (u64, u64),
        (start, fill_limit): (Lsn, u64),
    ) -> Result<LogFiles, StoreError> {
        let len = file_blocks * BLOCK as u64;
        let at_once = files * len <= fill_limit;
        let begin = start / PAYLOAD % (files * file_blocks) * BLOCK as u64;
        let mut open = Vec::new();
        for number in first..first + files {
            let file = disk
                .open(&name(number), OpenMode::OrCreate)
                .map_err(io("create"))?;
            file.set_len(0).map_err(io("truncate"))?;
            file.allocate(0, len).map_err(io("allocate"))?;
            let from = (number - first) * len;
            let (begin, end) = match at_once {
                true => (from, from + len),
                false => (begin, begin + fill_limit / FILL_FIRST),
            };
            let within = |place: u64| place.clamp(from, from + len) - from;
            fill(&*file, within(begin), within(end))?;
            file.sync_data().map_err(io("sync"))?;
            open.push(file);
        }
        disk.sync_dir().map_err(io("sync directory"))?;
        Ok(LogFiles {
            first,
            files: open,
            file_blocks,
            ahead: (!at_once).then(|| Ahead::new((begin / len) as usize)),
            unsynced: AtomicU64::new(0),
        })
    }

    pub(crate) fn open(
        disk: &dyn Disk,
        first: u64,
        files: u64,
        file_blocks: u64,
    ) -> Result<LogFiles, StoreError> {
        let mut open = Vec::new();
        for number in first..first + files {
            let bad = |what: String| StoreError::BadFile {
                file: name(number),
                what,
            };
            let file = disk
                .open(&name(number), OpenMode::Existing)
                .map_err(|e| bad(e.to_string()))?;
            let (len, whole) = (
                file.len().map_err(io("length"))?,
                file_blocks * BLOCK as u64,
            );
            if len < whole {
                return Err(bad(format!(
                    "cut off at offset {len}, it should have {whole} bytes"
                )));
            }
            open.push(file);
        }
        if open.is_empty() || file_blocks == 0 {
            return Err(StoreError::BadFile {
                file: super::control::NAME.into(),
                what: "names no log".into(),
            });
        }
        Ok(LogFiles {
            first,
            files: open,
            file_blocks,
            ahead: None,
            unsynced: AtomicU64::new(0),
        })
    }

    /// Removes all log files that do not belong to the set `first..first + files`.
    pub(crate) fn sweep(disk: &dyn Disk, first: u64, files: u64) -> Result<(), StoreError> {
        let keep: Vec<String> = (first..first + files).map(name).collect();
        for found in disk.list(LOG_PREFIX).map_err(io("list"))? {
            if !keep.contains(&found) {
                disk.remove(&found).map_err(io("remove"))?;
            }
        }
        Ok(())
    }

    /// The number of log bytes that fit into the files before a block is overwritten.
    pub(crate) fn capacity(&self) -> u64 {
        self.blocks() * PAYLOAD
    }

    fn blocks(&self) -> u64 {
        self.files.len() as u64 * self.file_blocks
    }

    /// The position of a block: (file, offset, number of blocks up to the end of that file).
    fn place(&self, sequence: u64) -> (usize, u64, u64) {
        let place = sequence % self.blocks();
        let (file, block) = (place / self.file_blocks, place % self.file_blocks);
        (
            file as usize,
            block * BLOCK as u64,
            self.file_blocks - block,
        )
    }

    /// The name of the file that contains a log position, and the offset of its block in the file.
    pub(crate) fn locate(&self, lsn: Lsn) -> (String, u64) {
        let (file, off, _) = self.place(lsn / PAYLOAD);
        (name(self.first + file as u64), off)
    }

    /// The header of the block at the place of block `sequence`; `None` if it is not valid.
    pub(crate) fn block_head(&self, sequence: u64) -> Result<Option<BlockHead>, StoreError> {
        let mut block = AlignedBuf::new(BLOCK);
        self.read(sequence, &mut block)?;
        Ok(block_head(&block))
    }

    /// Whether the header at the place of block `sequence` is damaged in a way that no crash
    /// causes.
    pub(crate) fn is_head_damaged(&self, sequence: u64) -> Result<bool, StoreError> {
        let mut block = AlignedBuf::new(BLOCK);
        self.read(sequence, &mut block)?;
        Ok(is_head_damaged(&block))
    }

    /// Writes complete blocks, of which the first one is block `sequence`.
    pub(crate) fn write(
        &self,
        mut sequence: u64,
        mut blocks: &[u8],
        mode: WriteMode,
    ) -> Result<(), StoreError> {
        while !blocks.is_empty() {
            let (file, off, room) = self.place(sequence);
            let n = (blocks.len() as u64).min(room * BLOCK as u64) as usize;
            self.enter(file);
            self.unsynced.fetch_or(1 << file.min(63), Ordering::Relaxed);
            let (file, now) = (&self.files[file], &blocks[..n]);
            match mode {
                WriteMode::Direct => file.write_at(off, now),
                WriteMode::Cached => file.write_cached_at(off, now),
            }
            .map_err(io("write"))?;
            blocks = &blocks[n..];
            sequence += (n / BLOCK) as u64;
        }
        Ok(())
    }

    /// Reads complete blocks into `out`, from block `sequence` on. Returns the bytes read, which
    /// may be fewer than requested at the end of a file.
    pub(crate) fn read(&self, sequence: u64, out: &mut [u8]) -> Result<usize, StoreError> {
        let (file, off, room) = self.place(sequence);
        let n = (out.len() as u64).min(room * BLOCK as u64) as usize;
        self.files[file]
            .read_at(off, &mut out[..n])
            .map_err(io("read"))?;
        Ok(n)
    }

    /// Syncs all files, including data written by an earlier process.
    pub(crate) fn sync_all(&self) -> Result<(), StoreError> {
        self.unsynced.store(u64::MAX, Ordering::Relaxed);
        self.sync()
    }

    /// Syncs everything written through this object.
    pub(crate) fn sync(&self) -> Result<(), StoreError> {
        let bits = self.unsynced.swap(0, Ordering::Relaxed);
        for (at, file) in self.files.iter().enumerate() {
            if bits & (1 << at.min(63)) != 0 {
                file.sync_data().map_err(io("sync"))?;
            }
        }
        Ok(())
    }
}
