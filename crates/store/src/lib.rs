//! Disk trait, page layout, log, mini-transactions and buffer pool.
//!
//! The layers above see [`Store`], which hands out optimistic [`PageRef`]s for reading and [`Mtr`]s for atomic change,
//! and never blocks a worker: what has to wait says so with a [`Wait`].

pub mod disk;
mod error;
mod mtr;
mod options;
mod page;
mod page_ref;
mod redo;
mod store;
mod wait;

pub use disk::{Disk, DiskFile, OpenMode, RealDisk};
pub use error::{Stop, StoreError};
pub use mtr::{Latched, Mtr, MtrEnd};
pub use options::{FatalHook, StoreOptions};
pub use page::{
    Lsn, PAGE_HEADER, PAGE_SIZE, PAGE_WORDS, PageId, PageMut, PageNo, PageType, SpaceId, TrxId,
    header,
};
pub use page_ref::PageRef;
pub use redo::{NoRedo, RedoHandler};
pub use store::{
    Horizon, RecoveryPhase, RecoveryProgress, RecoveryReport, Residency, Store, StoreStatus,
    USER_AREA, USER_AREA_LEN,
};
pub use wait::Wait;
