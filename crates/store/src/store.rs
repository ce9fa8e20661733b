//! The store's facade.

use crate::disk::Disk;
use crate::error::{Stop, StoreError};
use crate::mtr::Mtr;
use crate::options::StoreOptions;
use crate::page::{Lsn, PageId, SpaceId, TrxId};
use crate::page_ref::PageRef;
use crate::redo::RedoHandler;
use crate::wait::Wait;
use nfold_sync::prim::{AtomicU64, Ordering};
use std::sync::Arc;

/// Byte offset of the user area on page 0 of a space.
pub const USER_AREA: usize = 128;
/// Length of the user area, bytes.
pub const USER_AREA_LEN: usize = 256;

/// The filled prefix of the log, on a cache line of its own.
#[derive(Copy, Clone)]
pub struct Horizon<'a>(pub(crate) &'a AtomicU64);

impl Horizon<'_> {
    /// Acquire: everything below was filled, and what its writers did in `commit_with` is visible.
    #[inline(always)]
    pub fn load(&self) -> Lsn {
        self.0.load(Ordering::Acquire)
    }
}

/// What [`Store::prefetch`] found.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Residency {
    Resident,
    /// A load was queued, or is under way.
    Loading,
}

/// Where recovery is.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum RecoveryPhase {
    RepairPages,
    Redo,
    Flush,
    Done,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct RecoveryProgress {
    pub phase: RecoveryPhase,
    /// Where the last checkpoint was.
    pub from_lsn: Lsn,
    /// Redo is applied up to here.
    pub at_lsn: Lsn,
    /// Pages written in [`RecoveryPhase::Flush`], or repaired.
    pub pages: u64,
}

/// What opening found.
#[derive(Clone, Debug, Default)]
pub struct RecoveryReport {
    /// The directory was empty and a new store was made.
    pub created: bool,
    /// The last shutdown was clean: there was no redo to apply.
    pub clean: bool,
    pub checkpoint_lsn: Lsn,
    /// End of the last whole mini-transaction in the log.
    pub end_lsn: Lsn,
    pub redo_records: u64,
    pub repaired_pages: u64,
    /// Pages that redo could not be applied to.
    pub corrupt_pages: Vec<PageId>,
    /// Spaces named in the log that have no file (dropped).
    pub missing_spaces: Vec<SpaceId>,
}

/// Counters since start, for `SHOW STATUS`.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct StoreStatus {
    pub pool_pages_total: u64,
    pub pool_pages_free: u64,
    pub pool_pages_dirty: u64,
    /// Pages read from disk.
    pub pages_read: u64,
    pub pages_written: u64,
    pub pages_created: u64,
    /// Times a reader met a page that was not there.
    pub read_misses: u64,
    pub pages_evicted: u64,
    pub log_bytes_written: u64,
    pub log_writes: u64,
    pub log_syncs: u64,
    pub log_waits: u64,
    pub latch_waits: u64,
    pub used_marks: u64,
    pub checkpoint_lsn: Lsn,
    pub durable_lsn: Lsn,
    pub horizon_lsn: Lsn,
}

/// See the crate's header.
pub struct Store {
    _private: (),
}

impl Store {
    /// Opens what `disk` holds, recovering it if needed; makes a new store when it is empty.
    pub fn open(
        options: StoreOptions,
        disk: Arc<dyn Disk>,
        redo: Arc<dyn RedoHandler>,
        progress: &dyn Fn(RecoveryProgress),
    ) -> Result<(Arc<Store>, RecoveryReport), StoreError> {
        let _ = (options, disk, redo, progress);
        todo!()
    }

    /// Writes everything, takes a checkpoint, stops the threads. The store then refuses changes.
    pub fn shutdown(&self) -> Result<(), StoreError> {
        todo!()
    }

    /// Makes the file `name.nfd`, durable when this returns, with page 0 as its header. The id is never reused, also not after
    /// a crash. `name`: letters, digits, `_ # . - @ $`, at most 200 bytes. Blocks on the disk for a moment.
    pub fn create_space(&self, name: &str) -> Result<SpaceId, Stop> {
        let _ = name;
        todo!()
    }

    /// Opens `name.nfd`, checking that it is space `id`. Nothing to do if it is open.
    pub fn open_space(&self, id: SpaceId, name: &str) -> Result<(), StoreError> {
        let _ = (id, name);
        todo!()
    }

    /// Unlinks the file and forgets the pages in the background. The caller has made sure that nobody uses the space.
    pub fn drop_space(&self, id: SpaceId) -> Result<(), StoreError> {
        let _ = id;
        todo!()
    }

    /// All space files: (id, name).
    pub fn spaces_on_disk(&self) -> Vec<(SpaceId, String)> {
        todo!()
    }

    /// Pages of the space in use or once used: page numbers are below this.
    pub fn space_pages(&self, id: SpaceId) -> Result<u32, StoreError> {
        let _ = id;
        todo!()
    }

    /// An optimistic look at a page. Waits shortly while somebody changes it; `Wait` if it is not resident (its load is queued).
    /// A page number beyond the space's end is an error, which counts only once the page that named it is validated.
    #[inline]
    pub fn read(&self, id: PageId) -> Result<PageRef<'_>, Stop> {
        let _ = id;
        todo!()
    }

    /// Resident: asks the CPU for the page's first lines. Otherwise queues its load. Never waits.
    #[inline]
    pub fn prefetch(&self, id: PageId) -> Residency {
        let _ = id;
        todo!()
    }

    /// Queues the loads of all pages that are missing; over when all are done. `None` if none is missing.
    pub fn wait_for(&self, ids: &[PageId]) -> Option<Wait> {
        let _ = ids;
        todo!()
    }

    pub fn mtr(&self) -> Mtr<'_> {
        Mtr::new(self)
    }

    /// The filled prefix of the log.
    #[inline(always)]
    pub fn horizon(&self) -> Horizon<'_> {
        todo!()
    }

    /// Everything below is on disk.
    pub fn durable_lsn(&self) -> Lsn {
        todo!()
    }

    /// `None` if the log is durable up to `lsn`; otherwise asks for it, and gives what to wait for.
    pub fn wait_durable(&self, lsn: Lsn) -> Option<Wait> {
        let _ = lsn;
        todo!()
    }

    /// `None` if the horizon has reached `lsn`.
    pub fn wait_filled(&self, lsn: Lsn) -> Option<Wait> {
        let _ = lsn;
        todo!()
    }

    /// Writes all pages that are dirty now and records a checkpoint; gives its LSN. Blocks: not for workers.
    pub fn checkpoint(&self) -> Result<Lsn, StoreError> {
        todo!()
    }

    /// Inline mode: one round of what the background threads would do. Gives whether there was anything to do.
    pub fn step_background(&self) -> Result<bool, StoreError> {
        todo!()
    }

    pub fn status(&self) -> StoreStatus {
        todo!()
    }

    /// After opening: no transaction id at or above this was ever used by a change in the log or in a page it touched.
    pub fn next_trx_id_floor(&self) -> TrxId {
        todo!()
    }

    /// Where checkpoints get the next transaction id from.
    pub fn set_trx_id_source(&self, source: impl Fn() -> TrxId + Send + Sync + 'static) {
        let _ = source;
        todo!()
    }
}
