//! The control file: the position of the last checkpoint, and limits that must survive a crash.
//!
//! # Picture
//! ```text
//! "nfold.control": two blocks of 4096 bytes, written alternately
//!  0 u32 CRC-32C of bytes 4..128    4 u32 format version (1)
//!  8 8 bytes "NFOLDCTL"            16 u64 sequence
//! 24 u64 checkpoint LSN            32 u64 log generation
//! 40 u64 next transaction id       48 u64 limit of space ids: ids below it may be in use
//! 56 u64 number of the first log file
//! 64 u64 log files                 72 u64 blocks in each log file
//! ```
//! The valid block with the higher sequence is the current one.
//! # Failure
//! A torn write leaves the other block, with an older checkpoint of the same generation. The log
//! from that checkpoint still exists, because log space is reused only after the control file was
//! synced.

use crate::disk::{Disk, DiskFile, OpenMode};
use crate::error::StoreError;
use crate::page::{Lsn, TrxId};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) const NAME: &str = "nfold.control";
const BLOCK: usize = 4096;
const LEN: usize = 128;
const MAGIC: &[u8; 8] = b"NFOLDCTL";
const VERSION: u32 = 1;

#[derive(Copy, Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct Control {
    pub(crate) sequence: u64,
    pub(crate) checkpoint: Lsn,
    pub(crate) generation: u64,
    pub(crate) next_trx: TrxId,
    pub(crate) space_limit: u64,
    pub(crate) first_file: u64,
    pub(crate) files: u64,
    pub(crate) file_blocks: u64,
}

impl Control {
    fn encode(&self) -> [u8; BLOCK] {
        let mut b = [0u8; BLOCK];
        b[4..8].copy_from_slice(&VERSION.to_le_bytes());
        b[8..16].copy_from_slice(MAGIC);
        let fields = [
            self.sequence,
            self.checkpoint,
            self.generation,
            self.next_trx,
            self.space_limit,
            self.first_file,
            self.files,
            self.file_blocks,
        ];
        for (i, f) in fields.iter().enumerate() {
            b[16 + 8 * i..24 + 8 * i].copy_from_slice(&f.to_le_bytes());
        }
        let crc = crc32c::crc32c(&b[4..LEN]);
        b[..4].copy_from_slice(&crc.to_le_bytes());
        b
    }

    /// Decodes a block. Returns `Ok(None)` if it is not valid, and the version as an error if it is
    /// valid but of another version.
    fn decode(b: &[u8]) -> Result<Option<Control>, u32> {
        let u32_at = |at: usize| u32::from_le_bytes([b[at], b[at + 1], b[at + 2], b[at + 3]]);
        let field = |i: usize| {
            let mut bytes = [0u8; 8];
            bytes.copy_from_slice(&b[16 + 8 * i..24 + 8 * i]);
            u64::from_le_bytes(bytes)
        };
        if u32_at(0) != crc32c::crc32c(&b[4..LEN]) || &b[8..16] != MAGIC {
            return Ok(None);
        }
        if u32_at(4) != VERSION {
            return Err(u32_at(4));
        }
        Ok(Some(Control {
            sequence: field(0),
            checkpoint: field(1),
            generation: field(2),
            next_trx: field(3),
            space_limit: field(4),
            first_file: field(5),
            files: field(6),
            file_blocks: field(7),
        }))
    }
}

/// The open control file and its current contents.
pub(crate) struct ControlFile {
    file: Arc<dyn DiskFile>,
    pub(crate) now: Control,
}

fn io(what: &str) -> impl Fn(std::io::Error) -> StoreError + '_ {
    move |e| StoreError::io(&e, format!("{NAME}: {what}"))
}

impl ControlFile {
    /// Opens the file. `None` if it does not exist, which includes an unfinished creation.
    pub(crate) fn open(disk: &dyn Disk) -> Result<Option<ControlFile>, StoreError> {
        if !disk.exists(NAME).map_err(io("look up"))? {
            return Ok(None);
        }
        let file = disk.open(NAME, OpenMode::Existing).map_err(io("open"))?;
        let len = file.len().map_err(io("length"))?;
        if len < 2 * BLOCK as u64 {
            return Err(StoreError::BadFile {
                file: NAME.into(),
                what: format!(
                    "cut off at offset {len}, it should have {} bytes",
                    2 * BLOCK
                ),
            });
        }
        let mut best: Option<Control> = None;
        for slot in 0..2 {
            let mut b = [0u8; BLOCK];
            file.read_at(slot * BLOCK as u64, &mut b)
                .map_err(io("read"))?;
            let found = Control::decode(&b).map_err(|v| StoreError::BadFile {
                file: NAME.into(),
                what: format!("format version {v}, this program reads version {VERSION}"),
            })?;
            if found.is_none() {
                tracing::warn!(
                    "{NAME}: the block at offset {} is not valid",
                    slot * BLOCK as u64
                );
            }
            if let Some(c) = found
                && best.is_none_or(|b| b.sequence < c.sequence)
            {
                best = Some(c);
            }
        }
        match best {
            Some(now) => Ok(Some(ControlFile { file, now })),
            None => Err(StoreError::BadFile {
                file: NAME.into(),
                what: format!(
                    "damaged: neither the block at offset 0 nor the one at offset {BLOCK} is valid"
                ),
            }),
        }
    }

    /// Creates the file with `first` in both blocks. It is durable on return. After a crash, it is
    /// either complete or absent.
    pub(crate) fn create(disk: &dyn Disk, first: Control) -> Result<ControlFile, StoreError> {
        let temporary = "nfold.control.tmp";
        let file = disk
            .open(temporary, OpenMode::OrCreate)
            .map_err(io("create"))?;
        let now = Control {
            sequence: 2,
            ..first
        };
        file.write_at(0, &now.encode()).map_err(io("write"))?;
        file.write_at(
            BLOCK as u64,
            &Control {
                sequence: 1,
                ..first
            }
            .encode(),
        )
        .map_err(io("write"))?;
        file.sync_data().map_err(io("sync"))?;
        disk.rename(temporary, NAME).map_err(io("rename"))?;
        disk.sync_dir().map_err(io("sync directory"))?;
        Ok(ControlFile { file, now })
    }

    /// Writes `next` over the older block and syncs it.
    pub(crate) fn write(&mut self, next: Control) -> Result<(), StoreError> {
        let next = Control {
            sequence: self.now.sequence + 1,
            ..next
        };
        let slot = next.sequence % 2;
        self.file
            .write_at(slot * BLOCK as u64, &next.encode())
            .map_err(io("write"))?;
        self.file.sync_data().map_err(io("sync"))?;
        self.now = next;
        Ok(())
    }
}

type TrxSource = Box<dyn Fn() -> TrxId + Send + Sync>;

/// The control file, and the counters whose limits it stores.
pub(crate) struct ControlHandle {
    pub(crate) file: Mutex<ControlFile>,
    /// The next id of a space.
    pub(crate) next_space: AtomicU64,
    /// Every transaction id that the log named is lower.
    pub(crate) trx_floor: AtomicU64,
    /// Returns the next transaction id of the layer above, once it runs.
    trx_source: Mutex<Option<TrxSource>>,
}

impl ControlHandle {
    pub(crate) fn new(file: ControlFile) -> ControlHandle {
        ControlHandle {
            next_space: AtomicU64::new(file.now.space_limit),
            trx_floor: AtomicU64::new(file.now.next_trx),
            file: Mutex::new(file),
            trx_source: Mutex::new(None),
        }
    }

    pub(crate) fn set_trx_source(&self, source: TrxSource) {
        *self.trx_source.lock() = Some(source);
    }

    /// A transaction id that no transaction has had.
    pub(crate) fn next_trx(&self) -> TrxId {
        let floor = self.trx_floor.load(Ordering::Relaxed);
        let now = self.trx_source.lock().as_ref().map_or(0, |source| source());
        floor.max(now)
    }

    /// Applies `change` and the next transaction id to the control file, and writes it.
    pub(crate) fn update(&self, change: impl FnOnce(&mut Control)) -> Result<(), StoreError> {
        let next_trx = self.next_trx();
        let mut file = self.file.lock();
        let mut next = file.now;
        next.next_trx = next.next_trx.max(next_trx);
        change(&mut next);
        file.write(next)
    }
}
