//! Spaces. Each is a file of pages, with a header page that contains the free list.
//!
//! # Picture
//! ```text
//! page 0, type SPACE_HEADER
//!  64 u32 magic "NFSP"
//!  68 u32 pages: numbers from here on were never used
//!  72 u32 newest trunk page of the free list (0: none)
//!  76 u32 entries of the list below
//! 128 user area, 256 bytes
//! 512 u32 free page numbers, up to 3968: a stack
//!
//! trunk page, type FREE_TRUNK
//!  64 u32 next trunk page
//! 512 u32 free page numbers, always 3968
//! ```
//! # Invariants
//! - I1: space ids are never reused: the control file's limit is raised durably before an id below
//!   it is assigned.
//! - I2: a file named `x.nfd` has a valid page 0, because it is created under another name, synced,
//!   and renamed. A private space ([`crate::private_file`]) has no such file.
//! - I3: `file_pages` ≥ `pages` + `claimed`: a claimed page number has blocks in the file.
//! - I4: page 0 stays resident while the space is pinned.
//! - I5: a [`Space`] object lives until the store is dropped. After its space was dropped and its
//!   pages discarded, another space may reuse the object ([`crate::spaces`]). So data read without
//!   a hold is valid only if the object still belonged to the right space at the end of the read
//!   ([`nfold_sync::tenancy`]).
//! - I6: the pages of a dropped space are discarded only while it has no pins. A thread that pins
//!   it after it was marked as gone unpins it at once. So the reservations of a mini-transaction
//!   stay valid to its end, and no page becomes resident after that.
//! # Concurrency
//! A reader accesses only `tenancy`, in particular the parts that change with the tenant. All other
//! fields are for threads that hold or pin the space, or for which a wrong value does no harm.
//! # Failure
//! A crash during the creation of a space leaves a `.tmp` file, which the next start removes.
//! Recovery skips the redo of a dropped space, because its file is gone and its id is never reused.

use crate::disk::{Disk, DiskFile, OpenMode};
use crate::error::StoreError;
use crate::page::{PAGE_SIZE, PageId, PageNo, PageType, SpaceId, header, seal};
use crate::page_load::Load;
use crate::pool::directory::Directory;
use crate::pool::flat::Arena;
use crate::private_file::PrivateFile;
use nfold_sync::Tenancy;
use parking_lot::Mutex;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// The byte offset of the user area on page 0 of a space.
pub const USER_AREA: usize = 128;
/// The length of the user area in bytes.
pub const USER_AREA_LEN: usize = 256;

pub(crate) const MAGIC_OFF: usize = 64;
pub(crate) const PAGES_OFF: usize = 68;
pub(crate) const TRUNK_OFF: usize = 72;
pub(crate) const COUNT_OFF: usize = 76;
pub(crate) const LIST_OFF: usize = 512;
pub(crate) const LIST_MAX: usize = (PAGE_SIZE - LIST_OFF) / 4;
/// An offset in a trunk page.
pub(crate) const NEXT_TRUNK_OFF: usize = 64;
const MAGIC: u32 = u32::from_le_bytes(*b"NFSP");

/// The number of pages of a new file.
pub(crate) const FIRST_PAGES: u32 = 4;
pub(crate) const SUFFIX: &str = ".nfd";
pub(crate) const TEMPORARY: &str = ".nfd.tmp";

/// An open space, or a dropped one that is still in use.
pub(crate) struct Space {
    /// The owner of the object, and its page words.
    tenancy: Tenancy<Directory>,
    /// Set when the space was dropped: its file is closed, and its pages must be discarded.
    pub(crate) gone: AtomicBool,
    /// Set when no page is resident any more, and none can become resident.
    pub(crate) discarded: AtomicBool,
    /// The page count, as on page 0.
    pub(crate) pages: AtomicU32,
    pub(crate) file_pages: AtomicU32,
    /// The number of page numbers reserved by mini-transactions.
    pub(crate) claimed: AtomicU32,
    pub(crate) growth: Mutex<Growth>,
    open: Mutex<Open>,
}

/// The name and files of a space.
#[derive(Default)]
struct Open {
    name: Arc<str>,
    /// `None` once the space was dropped.
    file: Option<Arc<dyn DiskFile>>,
    /// As in [`OpenFile`].
    private: Option<Arc<PrivateFile>>,
}

/// The growth of the file that is in progress, and the error of the last one until it was reported.
#[derive(Default)]
pub(crate) struct Growth {
    pub(crate) running: Option<Arc<Load>>,
    pub(crate) error: Option<StoreError>,
}

impl Space {
    /// A vacant object.
    pub(crate) fn new(arena: &Arc<Arena>) -> Space {
        Space {
            tenancy: Tenancy::new(Directory::new(arena.clone())),
            gone: AtomicBool::new(true),
            discarded: AtomicBool::new(true),
            pages: AtomicU32::new(0),
            file_pages: AtomicU32::new(0),
            claimed: AtomicU32::new(0),
            growth: Mutex::default(),
            open: Mutex::default(),
        }
    }

    /// Assigns a vacant object to a space.
    pub(crate) fn begin(&self, id: SpaceId, file: OpenFile<'_>) {
        debug_assert_eq!(
            self.claimed.load(Ordering::SeqCst),
            0,
            "I5: a vacated space has no claims"
        );
        self.pages.store(file.pages, Ordering::Release);
        self.file_pages.store(file.file_pages, Ordering::Release);
        *self.growth.lock() = Growth::default();
        *self.open.lock() = Open {
            name: file.name.into(),
            file: Some(file.file),
            private: file.private,
        };
        self.discarded.store(false, Ordering::SeqCst);
        self.gone.store(false, Ordering::SeqCst);
        self.tenancy.occupy(id);
    }

    /// Marks the space as dropped and closes its file.
    pub(crate) fn close(&self) {
        self.gone.store(true, Ordering::SeqCst);
        self.open.lock().file = None;
    }

    /// Makes the object vacant and frees the memory of its page words, if its space's pages are
    /// discarded. Returns false if it is still in use. Only one thread may call this at a time.
    pub(crate) fn end(&self, id: SpaceId) -> bool {
        let may = self.discarded.load(Ordering::SeqCst) && self.tenancy.vacate(id);
        if may {
            self.dir().give_back();
            self.open.lock().name = Arc::default();
        }
        may
    }

    /// The id of the space. Stable only while the space is held or pinned.
    #[inline(always)]
    pub(crate) fn id(&self) -> SpaceId {
        self.tenancy.id()
    }

    /// Whether the page word loaded before this call belonged to space `id`.
    #[inline(always)]
    pub(crate) fn is(&self, id: SpaceId) -> bool {
        self.tenancy.is(id)
    }

    /// The page words of the space.
    #[inline(always)]
    pub(crate) fn dir(&self) -> &Directory {
        self.tenancy.value()
    }

    /// Keeps the object from being reused; see [`HeldSpace`]. Returns false if it does not belong
    /// to space `id`.
    #[must_use]
    pub(crate) fn hold(&self, id: SpaceId) -> bool {
        self.tenancy.hold(id)
    }

    /// Releases a [`hold`](Self::hold).
    pub(crate) fn release(&self) {
        self.tenancy.release();
    }

    /// Pins the space: it and its header page stay. The caller must then check the id and `gone`.
    pub(crate) fn pin(&self) {
        self.tenancy.pin();
    }

    /// Releases a pin. Returns whether it was the last one.
    pub(crate) fn unpin(&self) -> bool {
        self.tenancy.unpin()
    }

    pub(crate) fn is_pinned(&self) -> bool {
        self.tenancy.pins() > 0
    }

    pub(crate) fn name(&self) -> Arc<str> {
        self.open.lock().name.clone()
    }

    /// Takes the file of a private space, which is removed with its last user.
    pub(crate) fn take_private_file(&self) -> Option<Arc<PrivateFile>> {
        self.open.lock().private.take()
    }

    pub(crate) fn file(&self) -> Result<Arc<dyn DiskFile>, StoreError> {
        let file = self.open.lock().file.clone();
        file.ok_or_else(|| StoreError::SpaceGone(self.id()))
    }

    pub(crate) fn error(&self, e: &std::io::Error, what: &str) -> StoreError {
        StoreError::io(e, format!("{}{SUFFIX}: {what}", self.name()))
    }

    /// Allocates blocks for at least `pages` pages. Blocks on the disk.
    pub(crate) fn grow(&self, pages: u32, step_bytes: u64) -> Result<(), StoreError> {
        let file = self.file()?;
        let have = self.file_pages.load(Ordering::Acquire);
        if pages <= have {
            return Ok(());
        }
        let step = (step_bytes / PAGE_SIZE as u64)
            .min(u64::from(have))
            .max(u64::from(FIRST_PAGES));
        let generous = (u64::from(have) + step).min(u64::from(u32::MAX)) as u32;
        let at = |pages: u32| u64::from(pages) * PAGE_SIZE as u64;
        let try_to = |to: u32| file.allocate(at(have), at(to) - at(have));
        let mut to = pages.max(generous);
        let mut result = try_to(to);
        if result.is_err() && to > pages {
            to = pages;
            result = try_to(to);
        }
        result.map_err(|e| self.error(&e, "grow"))?;
        self.file_pages.fetch_max(to, Ordering::AcqRel);
        Ok(())
    }
}

/// The opened file of a space.
pub(crate) struct OpenFile<'a> {
    pub(crate) name: &'a str,
    pub(crate) file: Arc<dyn DiskFile>,
    /// The page count, as on page 0.
    pub(crate) pages: u32,
    pub(crate) file_pages: u32,
    /// For a private space: its file again, with its own type.
    pub(crate) private: Option<Arc<PrivateFile>>,
}

/// A hold on a space: while it lives, the object is not reused, even if the space is dropped.
pub(crate) struct HeldSpace(Arc<Space>);

impl HeldSpace {
    /// `None` if the object does not belong to space `id`.
    pub(crate) fn new(space: Arc<Space>, id: SpaceId) -> Option<HeldSpace> {
        space.hold(id).then(|| HeldSpace(space))
    }
}

impl Clone for HeldSpace {
    fn clone(&self) -> HeldSpace {
        self.0.tenancy.hold_again();
        HeldSpace(self.0.clone())
    }
}

impl Drop for HeldSpace {
    fn drop(&mut self) {
        self.0.release();
    }
}

impl Deref for HeldSpace {
    type Target = Space;

    fn deref(&self) -> &Space {
        &self.0
    }
}

pub(crate) fn check_name(name: &str) -> Result<(), StoreError> {
    let good = |c: char| c.is_ascii_alphanumeric() || "_#.-@$".contains(c);
    if name.is_empty() || name.len() > 200 || !name.chars().all(good) {
        return Err(StoreError::BadFile {
            file: name.into(),
            what: "not a name for a space".into(),
        });
    }
    Ok(())
}

/// The image of page 0 of a new space.
pub(crate) fn header_image(id: SpaceId) -> crate::buf::AlignedBuf {
    let mut page = crate::buf::AlignedBuf::new(PAGE_SIZE);
    let mut put = |at: usize, bytes: &[u8]| page[at..at + bytes.len()].copy_from_slice(bytes);
    put(header::PAGE_TYPE, &PageType::SPACE_HEADER.to_le_bytes());
    put(header::FORMAT, &[header::FORMAT_V1]);
    put(header::SPACE, &id.to_le_bytes());
    put(header::INCARNATION, &1u32.to_le_bytes());
    put(MAGIC_OFF, &MAGIC.to_le_bytes());
    put(PAGES_OFF, &1u32.to_le_bytes());
    seal(&mut page);
    page
}

/// The space id of a file, or `None` if it is not a space file. It is read from fields of page 0
/// that never change and lie in its first sector, so a torn write cannot damage them.
pub(crate) fn identify(file: &dyn DiskFile) -> std::io::Result<Option<SpaceId>> {
    let mut page = crate::buf::AlignedBuf::new(4096);
    if file.len()? < PAGE_SIZE as u64 {
        return Ok(None);
    }
    file.read_at(0, &mut page)?;
    let field =
        |at: usize| u32::from_le_bytes([page[at], page[at + 1], page[at + 2], page[at + 3]]);
    let right = field(MAGIC_OFF) == MAGIC && field(header::PAGE_NO) == 0;
    Ok(right.then(|| field(header::SPACE)))
}

/// All space files of a directory as (id, name). Other files with that suffix are skipped with a
/// message in the error log.
pub(crate) fn discover(disk: &dyn Disk) -> Result<Vec<(SpaceId, String)>, StoreError> {
    let failed = |e: std::io::Error| StoreError::io(&e, "listing space files");
    let mut found = Vec::new();
    for name in names(disk)? {
        let file_name = format!("{name}{SUFFIX}");
        let file = disk.open(&file_name, OpenMode::Existing).map_err(failed)?;
        match identify(&*file) {
            Ok(Some(id)) => found.push((id, name)),
            Ok(None) => tracing::error!(
                "{file_name}: the header at offset 0 is not that of a space file; the file is left alone"
            ),
            Err(e) => {
                return Err(StoreError::io(
                    &e,
                    format!("{file_name}: reading its header at offset 0"),
                ));
            }
        }
    }
    Ok(found)
}

/// The names of all files with the suffix of space files, without the suffix.
pub(crate) fn names(disk: &dyn Disk) -> Result<Vec<String>, StoreError> {
    let failed = |e: std::io::Error| StoreError::io(&e, "listing space files");
    let files = disk.list("").map_err(failed)?;
    let names = files.iter().filter_map(|file| file.strip_suffix(SUFFIX));
    Ok(names.map(str::to_string).collect())
}

/// Removes the files left by a crash in [`Spaces::create`](crate::spaces::Spaces::create).
pub(crate) fn sweep_temporaries(disk: &dyn Disk) -> Result<(), StoreError> {
    let failed = |e: std::io::Error| StoreError::io(&e, "removing unfinished space files");
    for name in disk.list("").map_err(failed)? {
        if name.ends_with(TEMPORARY) {
            disk.remove(&name).map_err(failed)?;
        }
    }
    Ok(())
}

/// The offset of entry `at` of the free list in a header or trunk page.
pub(crate) fn list_entry(at: usize) -> usize {
    LIST_OFF + 4 * at
}

/// The page id of a space's header.
pub(crate) const fn header_page(space: SpaceId) -> PageId {
    PageId::new(space, 0 as PageNo)
}
