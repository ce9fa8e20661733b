//! Storage: files, pages, the buffer pool, the redo log and mini-transactions.
//!
//! The layers above use [`Store`]. It returns optimistic [`PageRef`]s for reading and [`Mtr`]s for
//! atomic changes. It never blocks a worker: a call that has to wait returns a [`Wait`].

mod attachments;
#[allow(unsafe_code)]
mod buf;
mod buffer;
mod cleaner;
mod contention;
mod core;
pub mod disk;
mod doublewrite;
mod error;
mod log;
mod mtr;
mod options;
mod page;
mod page_load;
mod page_ref;
mod pool;
mod pool_resize;
mod private_file;
mod ready_frames;
mod recovery;
mod redo;
mod scratch;
mod space;
#[allow(unsafe_code)]
mod spaces;
mod status;
mod store;
mod wait;
mod wait_record;

pub use crate::attachments::{Attachment, AttachmentReader, Attachments};
pub use crate::pool_resize::{ResizePhase, ResizeStatus};
pub use disk::{
    CountedDisk, Disk, DiskFile, FaultOn, FileCalls, FileCounters, OpenMode, RealDisk, SimDisk,
    SimRng,
};
pub use error::{Stop, StoreError};
pub use log::gather::{gather_syncs, holds_syncs};
pub use mtr::{Latched, Mtr, MtrEnd, mini_transactions_here};
pub use options::{FatalHook, StoreOptions};
pub use page::{
    Lsn, PAGE_HEADER, PAGE_SIZE, PAGE_WORDS, PageId, PageMut, PageNo, PageType, SpaceId, TrxId,
    header,
};
pub use page_ref::{PagePeek, PageRef};
pub use redo::{NoRedo, RedoHandler};
pub use scratch::Scratch;
pub use space::{USER_AREA, USER_AREA_LEN};
pub use status::{RecoveryPhase, RecoveryProgress, RecoveryReport, StoreStatus};
pub use store::{Horizon, Residency, SpacePages, Store, WordRef};
pub use wait::Wait;
pub use wait_record::lock_watched;
