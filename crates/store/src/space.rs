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
//! - I2: a file named `x.nfd` has a valid page 0: it is made under another name, synced, and renamed.
//! - I3: `file_pages` ≥ `pages` + `claimed`: a claimed page number has blocks in the file.
//! - I4: page 0 stays resident while `pins` is above 0.
//! - I5: a [`Space`] object lives until the store is dropped, so whoever got it from the table may use it.
//! - I6: pages of a dropped space are forgotten only while `pins` is 0, and who pins it after it was marked as gone lets go at once: what a
//!   mini-transaction has reserved in it stays to its end, and no page comes into memory after its pages were forgotten.
//! # Failure
//! A crash while a space is made leaves a `.tmp` file, removed at the next start. A dropped space's redo is skipped at
//! recovery: its file is gone, and its id never comes back.

use crate::disk::{Disk, DiskFile, OpenMode};
use crate::error::StoreError;
use crate::page::{PAGE_SIZE, PageId, PageNo, PageType, SpaceId, header, seal};
use crate::pool::directory::Directory;
use crate::pool::flat::Arena;
use crate::pool::load::Load;
use parking_lot::Mutex;
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};

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
const FIRST_PAGES: u32 = 4;
/// Spaces that can ever be made.
const TABLE: usize = 1 << 22;
pub(crate) const SUFFIX: &str = ".nfd";
const TEMPORARY: &str = ".nfd.tmp";

/// An open space.
pub(crate) struct Space {
    pub(crate) id: SpaceId,
    pub(crate) name: String,
    pub(crate) dir: Directory,
    /// `None` once dropped.
    file: Mutex<Option<Arc<dyn DiskFile>>>,
    pub(crate) gone: AtomicBool,
    /// As on page 0.
    pub(crate) pages: AtomicU32,
    pub(crate) file_pages: AtomicU32,
    /// Page numbers promised to mini-transactions.
    pub(crate) claimed: AtomicU32,
    pub(crate) pins: AtomicU32,
    pub(crate) growth: Mutex<Growth>,
}

/// A growth of the file under way, and the error of the last one until somebody has seen it.
#[derive(Default)]
pub(crate) struct Growth {
    pub(crate) running: Option<Arc<Load>>,
    pub(crate) error: Option<StoreError>,
}

impl Space {
    fn new(
        arena: &Arc<Arena>,
        (id, name): (SpaceId, &str),
        file: Arc<dyn DiskFile>,
        pages: u32,
        file_pages: u32,
    ) -> Space {
        Space {
            id,
            name: name.to_string(),
            dir: Directory::new(arena.clone()),
            file: Mutex::new(Some(file)),
            gone: AtomicBool::new(false),
            pages: AtomicU32::new(pages),
            file_pages: AtomicU32::new(file_pages),
            claimed: AtomicU32::new(0),
            pins: AtomicU32::new(0),
            growth: Mutex::new(Growth::default()),
        }
    }

    pub(crate) fn file(&self) -> Result<Arc<dyn DiskFile>, StoreError> {
        self.file
            .lock()
            .clone()
            .ok_or(StoreError::SpaceGone(self.id))
    }

    pub(crate) fn error(&self, e: &std::io::Error, what: &str) -> StoreError {
        StoreError::io(e, format!("{}{SUFFIX}: {what}", self.name))
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

/// All open spaces by id.
pub(crate) struct Spaces {
    table: *mut AtomicPtr<Space>,
    /// The page words of all spaces.
    arena: Arc<Arena>,
    all: Mutex<HashMap<SpaceId, Arc<Space>>>,
    /// Dropped ones, kept for I5.
    graveyard: Mutex<Vec<Arc<Space>>>,
}

// SAFETY: the table is owned, and its entries are atomics that point to `Sync` spaces kept alive by the maps.
unsafe impl Send for Spaces {}
// SAFETY: as above.
unsafe impl Sync for Spaces {}

fn table_layout() -> Layout {
    Layout::array::<AtomicPtr<Space>>(TABLE).expect("a fixed size")
}

impl Spaces {
    /// `huge`: in huge pages.
    pub(crate) fn new(huge: bool) -> Spaces {
        // SAFETY: the layout's size is not zero. Null pointers are zero bytes; untouched parts stay uncommitted.
        let table = unsafe { alloc_zeroed(table_layout()) }.cast::<AtomicPtr<Space>>();
        if table.is_null() {
            handle_alloc_error(table_layout());
        }
        Spaces {
            table,
            arena: Arc::new(Arena::new(huge)),
            all: Mutex::default(),
            graveyard: Mutex::default(),
        }
    }

    #[inline(always)]
    fn cell(&self, id: SpaceId) -> Option<&AtomicPtr<Space>> {
        if id as usize >= TABLE {
            return None;
        }
        // SAFETY: the table has `TABLE` zeroed (null) or published entries and lives as long as `self`.
        Some(unsafe { &*self.table.add(id as usize) })
    }

    #[inline(always)]
    pub(crate) fn get(&self, id: SpaceId) -> Option<&Space> {
        let space = self.cell(id)?.load(Ordering::Acquire);
        // SAFETY: a published pointer carries a reference of its own until `self` is dropped (I5).
        unsafe { space.as_ref() }
    }

    /// As [`get`](Self::get), to be kept.
    pub(crate) fn arc(&self, id: SpaceId) -> Option<Arc<Space>> {
        let space: *const Space = self.get(id)?;
        // SAFETY: the pointer came from `Arc::into_raw` in `insert`, and that reference is given back only when `self` is
        // dropped (I5).
        unsafe {
            Arc::increment_strong_count(space);
            Some(Arc::from_raw(space))
        }
    }

    pub(crate) fn list(&self) -> Vec<Arc<Space>> {
        self.all.lock().values().cloned().collect()
    }

    /// Publishes an open space. If it is there already, that one stays.
    fn insert(&self, space: Space) -> Result<Arc<Space>, StoreError> {
        let id = space.id;
        let Some(cell) = self.cell(id) else {
            return Err(StoreError::TooLarge {
                what: "space id",
                limit: TABLE as u64,
            });
        };
        let mut all = self.all.lock();
        if let Some(space) = all.get(&id) {
            return Ok(space.clone());
        }
        let space = Arc::new(space);
        all.insert(id, space.clone());
        cell.store(Arc::into_raw(space.clone()).cast_mut(), Ordering::Release);
        Ok(space)
    }

    /// Takes a space out of the table and closes its file.
    pub(crate) fn remove(&self, id: SpaceId) -> Option<Arc<Space>> {
        let mut all = self.all.lock();
        let space = all.remove(&id)?;
        space.gone.store(true, Ordering::SeqCst);
        if let Some(cell) = self.cell(id) {
            cell.store(std::ptr::null_mut(), Ordering::Release);
        }
        *space.file.lock() = None;
        // The reference that the table had stays with the object (`insert`), so it lives until `self` is dropped.
        self.graveyard.lock().push(space.clone());
        Some(space)
    }

    /// A space that was [removed](Self::remove).
    pub(crate) fn dropped(&self, id: SpaceId) -> Option<Arc<Space>> {
        let graveyard = self.graveyard.lock();
        graveyard.iter().rev().find(|s| s.id == id).cloned()
    }

    /// Makes the file of a new space, durable, with nothing but page 0, and opens it.
    pub(crate) fn create(
        &self,
        disk: &dyn Disk,
        id: SpaceId,
        name: &str,
    ) -> Result<Arc<Space>, StoreError> {
        check_name(name)?;
        let (file_name, temporary) = (format!("{name}{SUFFIX}"), format!("{name}{TEMPORARY}"));
        let failed = |what: &'static str| {
            let file_name = file_name.clone();
            move |e: std::io::Error| StoreError::io(&e, format!("{file_name}: {what}"))
        };
        if disk.exists(&file_name).map_err(failed("look up"))? {
            return Err(StoreError::SpaceExists(file_name));
        }
        let made = (|| {
            let file = disk
                .open(&temporary, OpenMode::OrCreate)
                .map_err(failed("create"))?;
            file.set_len(0).map_err(failed("truncate"))?;
            file.allocate(0, u64::from(FIRST_PAGES) * PAGE_SIZE as u64)
                .map_err(failed("allocate"))?;
            file.write_at(0, &header_image(id))
                .map_err(failed("write"))?;
            file.sync_data().map_err(failed("sync"))?;
            disk.rename(&temporary, &file_name)
                .map_err(failed("rename"))?;
            disk.sync_dir().map_err(failed("sync directory"))
        })();
        if let Err(e) = made {
            for name in [&temporary, &file_name] {
                let _ = disk.remove(name); // missing is as good
            }
            return Err(e);
        }
        // Opened again by its own name: what kind of file it is may depend on it.
        let file = disk
            .open(&file_name, OpenMode::Existing)
            .map_err(failed("open"))?;
        let new = (id, name);
        self.insert(Space::new(&self.arena, new, file, 1, FIRST_PAGES))
    }

    /// Opens an existing file. `pages` starts at the file's length, and is set from page 0 by the caller.
    pub(crate) fn open(
        &self,
        disk: &dyn Disk,
        id: SpaceId,
        name: &str,
    ) -> Result<Arc<Space>, StoreError> {
        if let Some(space) = self.arc(id) {
            return Ok(space);
        }
        check_name(name)?;
        let file_name = format!("{name}{SUFFIX}");
        let failed = |e: std::io::Error| StoreError::io(&e, file_name.clone());
        let file = disk
            .open(&file_name, OpenMode::Existing)
            .map_err(|e| match e.kind() {
                std::io::ErrorKind::NotFound => StoreError::SpaceGone(id),
                _ => failed(e),
            })?;
        let len = file.len().map_err(failed)?;
        let found = identify(&*file).map_err(failed)?;
        if found != Some(id) {
            return Err(StoreError::BadFile {
                file: file_name,
                what: format!("is not space {id}"),
            });
        }
        if self.cell(id).is_none() {
            return Err(StoreError::BadFile {
                file: file_name,
                what: format!(
                    "damaged: the header at offset 0 says that it is space {id}, beyond the limit of {TABLE}"
                ),
            });
        }
        let pages = (len / PAGE_SIZE as u64).min(u64::from(u32::MAX)) as u32;
        self.insert(Space::new(&self.arena, (id, name), file, pages, pages))
    }
}

impl Drop for Spaces {
    fn drop(&mut self) {
        for space in self
            .all
            .get_mut()
            .values()
            .chain(self.graveyard.get_mut().iter())
        {
            // SAFETY: each of them was published once, with one reference from `Arc::into_raw`; nobody uses the table any more.
            unsafe { Arc::decrement_strong_count(Arc::as_ptr(space)) };
        }
        // SAFETY: allocated in `new` with this layout; the entries' objects belong to the maps.
        unsafe { dealloc(self.table.cast(), table_layout()) };
    }
}

fn check_name(name: &str) -> Result<(), StoreError> {
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
fn header_image(id: SpaceId) -> crate::buf::AlignedBuf {
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

/// Removes what a crash in [`Spaces::create`] left.
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
