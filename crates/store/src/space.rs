//! Spaces: one file of pages each, and the header page that says which pages are free.
//!
//! # Picture
//! ```text
//! page 0, type SPACE_HEADER
//!  64 u32 magic "NFSP"       68 u32 pages: numbers from here on were never used
//!  72 u32 newest trunk page of the free list (0: none)     76 u32 entries of the list below
//! 128 user area, 256 bytes
//! 512 u32 free page numbers, up to 3968: a stack
//! a trunk page (type FREE_TRUNK) holds 3968 more: 64 u32 next trunk   512 u32 numbers, always all of them
//! ```
//! # Invariants
//! - I1: space ids are never reused: the control file's limit is raised, durably, before an id below it is given out.
//! - I2: a file named `x.nfd` has a valid page 0: it is made under another name, synced, and
//!   renamed. A private space ([`crate::private_file`]) has no such file.
//! - I3: `file_pages` ≥ `pages` + `claimed`: a claimed page number has blocks in the file.
//! - I4: page 0 stays resident while there are pins.
//! - I5: a [`Space`] object lives until the store is dropped. When its space was dropped and forgotten it is given to another ([`crate::spaces`]),
//!   so what was looked at without a hold counts only if the object was the right space's at the end ([`nfold_sync::tenancy`]).
//! - I6: pages of a dropped space are forgotten only while it has no pins, and who pins it after it was marked as gone lets go at once: what a
//!   mini-transaction has reserved in it stays to its end, and no page comes into memory after its pages were forgotten.
//! # Concurrency
//! A reader touches `tenancy` alone, and of it what changes with the tenant. Everything else is for who holds or pins the space, or knows that it does
//! not matter.
//! # Failure
//! A crash while a space is made leaves a `.tmp` file, removed at the next start. A dropped space's redo is skipped at
//! recovery: its file is gone, and its id never comes back.

use crate::disk::{Disk, DiskFile, OpenMode};
use crate::error::StoreError;
use crate::page::{PAGE_SIZE, PageId, PageNo, PageType, SpaceId, header, seal};
use crate::pool::directory::Directory;
use crate::pool::flat::Arena;
use crate::pool::load::Load;
use crate::private_file::PrivateFile;
use nfold_sync::Tenancy;
use parking_lot::Mutex;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Byte offset of the user area on page 0 of a space.
pub const USER_AREA: usize = 128;
/// Length of the user area, bytes.
pub const USER_AREA_LEN: usize = 256;

pub(crate) const MAGIC_OFF: usize = 64;
pub(crate) const PAGES_OFF: usize = 68;
pub(crate) const TRUNK_OFF: usize = 72;
pub(crate) const COUNT_OFF: usize = 76;
pub(crate) const LIST_OFF: usize = 512;
pub(crate) const LIST_MAX: usize = (PAGE_SIZE - LIST_OFF) / 4;
/// In a trunk page.
pub(crate) const NEXT_TRUNK_OFF: usize = 64;
const MAGIC: u32 = u32::from_le_bytes(*b"NFSP");

/// Pages of a new file.
pub(crate) const FIRST_PAGES: u32 = 4;
pub(crate) const SUFFIX: &str = ".nfd";
pub(crate) const TEMPORARY: &str = ".nfd.tmp";

/// An open space, or a dropped one that is still in use.
pub(crate) struct Space {
    /// Where its pages are, and whose they are.
    tenancy: Tenancy<Directory>,
    /// Also closed: its pages are to be forgotten.
    pub(crate) gone: AtomicBool,
    /// No page is in memory any more, nor comes back.
    pub(crate) forgotten: AtomicBool,
    /// As on page 0.
    pub(crate) pages: AtomicU32,
    pub(crate) file_pages: AtomicU32,
    /// Page numbers promised to mini-transactions.
    pub(crate) claimed: AtomicU32,
    pub(crate) growth: Mutex<Growth>,
    open: Mutex<Open>,
}

/// What a space was opened from.
#[derive(Default)]
struct Open {
    name: Arc<str>,
    /// `None` once dropped.
    file: Option<Arc<dyn DiskFile>>,
    /// As in [`OpenFile`].
    private: Option<Arc<PrivateFile>>,
}

/// A growth of the file under way, and the error of the last one until somebody has seen it.
#[derive(Default)]
pub(crate) struct Growth {
    pub(crate) running: Option<Arc<Load>>,
    pub(crate) error: Option<StoreError>,
}

impl Space {
    /// Nobody's.
    pub(crate) fn new(arena: &Arc<Arena>) -> Space {
        Space {
            tenancy: Tenancy::new(Directory::new(arena.clone())),
            gone: AtomicBool::new(true),
            forgotten: AtomicBool::new(true),
            pages: AtomicU32::new(0),
            file_pages: AtomicU32::new(0),
            claimed: AtomicU32::new(0),
            growth: Mutex::default(),
            open: Mutex::default(),
        }
    }

    /// Gives an object that is nobody's to a space.
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
        self.forgotten.store(false, Ordering::SeqCst);
        self.gone.store(false, Ordering::SeqCst);
        self.tenancy.occupy(id);
    }

    /// Marks it as dropped, and closes its file.
    pub(crate) fn close(&self) {
        self.gone.store(true, Ordering::SeqCst);
        self.open.lock().file = None;
    }

    /// Takes the object, and the memory of its page words, from a space that was forgotten. False: somebody uses it. One thread at a time.
    pub(crate) fn end(&self, id: SpaceId) -> bool {
        let may = self.forgotten.load(Ordering::SeqCst) && self.tenancy.vacate(id);
        if may {
            self.dir().give_back();
            self.open.lock().name = Arc::default();
        }
        may
    }

    /// For sure only while it is held or pinned.
    #[inline(always)]
    pub(crate) fn id(&self) -> SpaceId {
        self.tenancy.id()
    }

    /// Whether the word that was loaded before this belonged to a page of space `id`.
    #[inline(always)]
    pub(crate) fn is(&self, id: SpaceId) -> bool {
        self.tenancy.is(id)
    }

    /// The words of its pages.
    #[inline(always)]
    pub(crate) fn dir(&self) -> &Directory {
        self.tenancy.value()
    }

    /// Has it stay; see [`Held`].
    #[must_use]
    pub(crate) fn hold(&self, id: SpaceId) -> bool {
        self.tenancy.hold(id)
    }

    /// Ends a [`hold`](Self::hold).
    pub(crate) fn release(&self) {
        self.tenancy.release();
    }

    /// Has it and its header page stay. The caller looks at the id and at `gone` next.
    pub(crate) fn pin(&self) {
        self.tenancy.pin();
    }

    /// Ends a pin; whether it was the last one.
    pub(crate) fn unpin(&self) -> bool {
        self.tenancy.unpin()
    }

    pub(crate) fn is_pinned(&self) -> bool {
        self.tenancy.pins() > 0
    }

    pub(crate) fn name(&self) -> Arc<str> {
        self.open.lock().name.clone()
    }

    /// The file of a private space, which goes with its last user.
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

    /// Gives the file real blocks for at least `pages` pages; blocks.
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

/// A space's file, opened.
pub(crate) struct OpenFile<'a> {
    pub(crate) name: &'a str,
    pub(crate) file: Arc<dyn DiskFile>,
    /// As on page 0.
    pub(crate) pages: u32,
    pub(crate) file_pages: u32,
    /// Where no restart keeps the space: its file, again.
    pub(crate) private: Option<Arc<PrivateFile>>,
}

/// A space that stays what it is as long as this lives, dropped or not.
pub(crate) struct Held(Arc<Space>);

impl Held {
    /// `None`: the object is not that space's.
    pub(crate) fn new(space: Arc<Space>, id: SpaceId) -> Option<Held> {
        space.hold(id).then(|| Held(space))
    }
}

impl Clone for Held {
    fn clone(&self) -> Held {
        self.0.tenancy.hold_again();
        Held(self.0.clone())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.release();
    }
}

impl Deref for Held {
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

/// Page 0 of a new space.
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

/// Which space a file is, from the fields of page 0 that never change and lie in its first sector: a torn write cannot hurt
/// them. `None`: it is no space file.
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

/// All space files of a directory: (id, name). Files that are none are skipped with a message.
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

/// The names of all files that are named as space files are.
pub(crate) fn names(disk: &dyn Disk) -> Result<Vec<String>, StoreError> {
    let failed = |e: std::io::Error| StoreError::io(&e, "listing space files");
    let files = disk.list("").map_err(failed)?;
    let names = files.iter().filter_map(|file| file.strip_suffix(SUFFIX));
    Ok(names.map(str::to_string).collect())
}

/// Removes what a crash in [`Spaces::create`](crate::spaces::Spaces::create) left.
pub(crate) fn sweep_temporaries(disk: &dyn Disk) -> Result<(), StoreError> {
    let failed = |e: std::io::Error| StoreError::io(&e, "removing unfinished space files");
    for name in disk.list("").map_err(failed)? {
        if name.ends_with(TEMPORARY) {
            disk.remove(&name).map_err(failed)?;
        }
    }
    Ok(())
}

/// A number in the free list of a header or trunk page.
pub(crate) fn list_entry(at: usize) -> usize {
    LIST_OFF + 4 * at
}

/// The page id of a space's header.
pub(crate) const fn header_page(space: SpaceId) -> PageId {
    PageId::new(space, 0 as PageNo)
}
