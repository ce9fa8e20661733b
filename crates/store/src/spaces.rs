//! The open spaces by id, and what becomes of dropped ones.
//!
//! # Picture
//! ```text
//! table   2^22 places, that of a space by the low bits of its id:   [ ─ | ● | ─ | ● | ... ]
//!                                                                         ▼       ▼
//! objects   one for each space open at the same time, at most:          Space   Space   Space ...
//!
//! an object:   vacant ──► open ──► dropped (no new user; pages are forgotten, the last users end) ──► vacant
//! ```
//! # Invariants
//! - T1: two spaces that are open, or have a file, never have the same place: an id whose place is taken is not given out.
//! - T2: an object stays allocated as long as the store, and so do the page words that it had: whoever got hold of either may look at it at any time. What
//!   it finds counts only if the object is still the space's (I5 of [`crate::space`]).
//! - T3: an object becomes vacant when its space was dropped, its pages are forgotten and nobody holds or pins it; its page words go back to the arena,
//!   not resident and with their versions, so no word that was seen under the old space is valid under a new one.
//! # Concurrency
//! `all` is locked for changes of the table, `dropped` for what comes after; the first before the second. Who finds its space by the table takes no lock: it
//! loads the pointer, what it wants of the space, and compares the id. That comparison also tells a space from one whose id has the same low bits. An id is
//! known only when its space is open, so nobody has looked for it in the object while that was another's.
//!
//! Who may still use a dropped space, and what keeps its object from the next one:
//! - a reader that holds nothing: nothing has to. It compares the id after the page word (Acquire), so it believes only what was the space's, and its
//!   validation fails from the moment on that the page is forgotten (versions only grow).
//! - who has latched a page of it: forgetting takes that latch.
//! - a mini-transaction that has reserved in it: its pin (I6 of [`crate::space`]).
//! - a load, a growth of the file, a batch of the cleaner, who sleeps for a latch: a hold each.
//! # Cost
//! A dropped space leaves an object of half a KiB and its page words for the next ones: as many as were open at once, in all.

use crate::disk::{Disk, OpenMode};
use crate::error::StoreError;
use crate::page::{PAGE_SIZE, SpaceId};
use crate::pool::flat::Arena;
use crate::private_file::{PRIVATE_PAGES, PrivateFile};
use crate::space::{
    FIRST_PAGES, Held, OpenFile, SUFFIX, Space, TEMPORARY, check_name, header_image, identify,
};
use nfold_sync::tenancy::NO_TENANT;
use parking_lot::Mutex;
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::collections::HashMap;
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// Spaces that can be open at the same time; a power of two.
const TABLE: usize = 1 << 22;

/// See the module's header.
pub(crate) struct Spaces {
    table: *mut AtomicPtr<Space>,
    /// The page words of all spaces.
    arena: Arc<Arena>,
    all: Mutex<HashMap<SpaceId, Arc<Space>>>,
    dropped: Mutex<Dropped>,
}

#[derive(Default)]
struct Dropped {
    /// Dropped, and not yet vacant.
    leaving: HashMap<SpaceId, Arc<Space>>,
    vacant: Vec<Arc<Space>>,
    /// All objects there are, for T2.
    objects: Vec<Arc<Space>>,
}

impl Dropped {
    /// Takes the objects of dropped spaces that nobody uses any more.
    fn collect(&mut self) {
        let vacant = &mut self.vacant;
        self.leaving.retain(|id, space| {
            let ended = space.end(*id);
            if ended {
                vacant.push(space.clone());
            }
            !ended
        });
    }
}

// SAFETY: the table is owned, and its entries are atomics that point to `Sync` objects kept alive by `objects`.
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
            dropped: Mutex::default(),
        }
    }

    #[inline(always)]
    fn cell(&self, id: SpaceId) -> &AtomicPtr<Space> {
        // SAFETY: the table has `TABLE` zeroed (null) or published entries and lives as long as `self`.
        unsafe { &*self.table.add(id as usize % TABLE) }
    }

    /// The object to look for space `id` in. Whatever is found there counts only if the object [is](Space::is) the space's afterwards.
    #[inline(always)]
    pub(crate) fn look(&self, id: SpaceId) -> Option<&Space> {
        let space = self.cell(id).load(Ordering::Acquire);
        // SAFETY: a published pointer came from an `Arc` that `objects` keeps until `self` is dropped (T2).
        unsafe { space.as_ref() }
    }

    /// The object of space `id`, which was open just now.
    #[inline]
    pub(crate) fn get(&self, id: SpaceId) -> Option<&Space> {
        self.look(id).filter(|space| space.is(id))
    }

    /// Space `id`, held.
    pub(crate) fn hold(&self, id: SpaceId) -> Option<Held> {
        let space: *const Space = self.look(id)?;
        // SAFETY: the pointer came from `Arc::as_ptr` in `insert`, and `objects` keeps that `Arc` until `self` is dropped (T2).
        let space = unsafe {
            Arc::increment_strong_count(space);
            Arc::from_raw(space)
        };
        Held::new(space, id)
    }

    /// All that are open.
    pub(crate) fn list(&self) -> Vec<Held> {
        let all = self.all.lock();
        let held = |(id, space): (&SpaceId, &Arc<Space>)| Held::new(space.clone(), *id);
        all.iter().filter_map(held).collect()
    }

    /// The next id that a new space may have (T1). `next`: the one behind all that were given out.
    pub(crate) fn next_id(&self, next: &AtomicU64) -> Result<SpaceId, StoreError> {
        let too_large = |what, limit: usize| StoreError::TooLarge {
            what,
            limit: limit as u64,
        };
        for _ in 0..TABLE {
            let id = next.fetch_add(1, Ordering::SeqCst);
            let Some(id) = u32::try_from(id).ok().filter(|id| *id != NO_TENANT) else {
                next.store(NO_TENANT.into(), Ordering::SeqCst); // it never comes round
                return Err(too_large("number of spaces ever made", NO_TENANT as usize));
            };
            if self.is_free(id) && !self.is_leaving(id) {
                return Ok(id);
            }
        }
        Err(too_large("number of open spaces", TABLE))
    }

    /// Whether no open space has the id's place.
    fn is_free(&self, id: SpaceId) -> bool {
        id != NO_TENANT && self.look(id).is_none()
    }

    /// Whether a dropped space that is still used had the id's place. Who drops a space holds it until its file is removed, so that no crash leaves two.
    fn is_leaving(&self, id: SpaceId) -> bool {
        let dropped = self.dropped.lock();
        dropped
            .leaving
            .keys()
            .any(|of| ((of ^ id) as usize).is_multiple_of(TABLE))
    }

    /// Publishes an open space. If it is there already, that one stays.
    fn insert(&self, id: SpaceId, file: OpenFile<'_>) -> Result<Held, StoreError> {
        let mut all = self.all.lock();
        if let Some(space) = all.get(&id) {
            return Held::new(space.clone(), id).ok_or(StoreError::SpaceGone(id));
        }
        if !self.is_free(id) {
            return Err(StoreError::BadFile {
                file: format!("{}{SUFFIX}", file.name),
                what: match self.look(id) {
                    Some(other) => format!("space {id} takes the place of space {}", other.id()),
                    None => format!("{id} is not a space's number"),
                },
            });
        }
        let space = self.object();
        space.begin(id, file);
        all.insert(id, space.clone());
        self.cell(id)
            .store(Arc::as_ptr(&space).cast_mut(), Ordering::Release);
        Held::new(space, id).ok_or(StoreError::SpaceGone(id))
    }

    /// A vacant object, a new one if there is none.
    fn object(&self) -> Arc<Space> {
        let mut dropped = self.dropped.lock();
        dropped.collect();
        dropped.vacant.pop().unwrap_or_else(|| {
            let new = Arc::new(Space::new(&self.arena));
            dropped.objects.push(new.clone());
            new
        })
    }

    /// Takes a space out of the table and closes its file. The caller has its pages forgotten.
    pub(crate) fn remove(&self, id: SpaceId) -> Option<Held> {
        let mut all = self.all.lock();
        let space = all.remove(&id)?;
        let held = Held::new(space.clone(), id)?;
        self.cell(id).store(null_mut(), Ordering::Release);
        space.close();
        self.dropped.lock().leaving.insert(id, space);
        Some(held)
    }

    /// A space that was [removed](Self::remove) and is not forgotten, held.
    pub(crate) fn dropped(&self, id: SpaceId) -> Option<Held> {
        let dropped = self.dropped.lock();
        let space = dropped.leaving.get(&id)?;
        Held::new(space.clone(), id)
    }

    /// Takes back what a dropped and forgotten space had, if nobody uses it any more. Who still does leaves that to the next space made.
    pub(crate) fn vacate(&self, id: SpaceId) {
        let mut dropped = self.dropped.lock();
        if dropped.leaving.get(&id).is_some_and(|space| space.end(id)) {
            let space = dropped.leaving.remove(&id);
            dropped.vacant.extend(space);
        }
    }

    /// Bytes of all objects and page words, in use or vacant.
    pub(crate) fn bytes(&self) -> usize {
        let objects = self.dropped.lock().objects.len();
        objects * size_of::<Space>() + self.arena.bytes()
    }

    /// Makes the file of a new space, durable, with nothing but page 0, and opens it.
    pub(crate) fn create(
        &self,
        disk: &dyn Disk,
        id: SpaceId,
        name: &str,
    ) -> Result<Held, StoreError> {
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
        let (pages, file_pages) = (1, FIRST_PAGES);
        self.insert(
            id,
            OpenFile {
                name,
                file,
                pages,
                file_pages,
                private: None,
            },
        )
    }

    /// Opens a new space whose file is made only when it is needed, and that no restart keeps.
    pub(crate) fn create_private(
        &self,
        disk: &Arc<dyn Disk>,
        id: SpaceId,
        name: &str,
    ) -> Result<Held, StoreError> {
        check_name(name)?;
        let file = Arc::new(PrivateFile::new(disk.clone(), id, name));
        let (pages, file_pages) = (1, PRIVATE_PAGES);
        self.insert(
            id,
            OpenFile {
                name,
                file: file.clone(),
                pages,
                file_pages,
                private: Some(file),
            },
        )
    }

    /// Opens an existing file. `pages` starts at the file's length, and is set from page 0 by the caller.
    pub(crate) fn open(
        &self,
        disk: &dyn Disk,
        id: SpaceId,
        name: &str,
    ) -> Result<Held, StoreError> {
        if let Some(space) = self.hold(id) {
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
        let pages = (len / PAGE_SIZE as u64).min(u64::from(u32::MAX)) as u32;
        let file_pages = pages;
        self.insert(
            id,
            OpenFile {
                name,
                file,
                pages,
                file_pages,
                private: None,
            },
        )
    }
}

impl Drop for Spaces {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout, and nobody uses it any more; the objects belong to `dropped`.
        unsafe { dealloc(self.table.cast(), table_layout()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::SimDisk;

    #[test]
    fn spaces_whose_numbers_share_a_place() {
        let (spaces, disk) = (Spaces::new(false), SimDisk::new());
        let (low, high) = (5, 5 + TABLE as u32);
        let next = AtomicU64::new(low.into());
        assert_eq!(spaces.next_id(&next).unwrap(), low);
        drop(spaces.create(&disk, low, "low").unwrap());
        assert!(spaces.get(low).is_some() && spaces.get(high).is_none());
        assert!(spaces.hold(high).is_none());
        assert!(matches!(
            spaces.create(&disk, high, "high"),
            Err(StoreError::BadFile { .. })
        ));
        next.store(high.into(), Ordering::SeqCst);
        assert_eq!(
            spaces.next_id(&next).unwrap(),
            high + 1,
            "T1: the place is taken"
        );

        let gone = spaces.remove(low).unwrap();
        assert!(spaces.get(low).is_none() && spaces.dropped(low).is_some());
        assert!(spaces.is_free(low) && spaces.is_free(high));
        next.store(high.into(), Ordering::SeqCst);
        assert_eq!(
            spaces.next_id(&next).unwrap(),
            high + 1,
            "T1: its file may be there"
        );
        gone.forgotten.store(true, Ordering::SeqCst);
        spaces.vacate(low);
        assert!(gone.is(low), "T3: it is held");
        drop(gone);
        spaces.vacate(low);
        assert!(spaces.dropped(low).is_none());
        next.store(high.into(), Ordering::SeqCst);
        assert_eq!(spaces.next_id(&next).unwrap(), high);
        disk.remove("high.nfd").unwrap();
        let there = spaces.create(&disk, high, "high").unwrap();
        assert!(spaces.get(high).is_some() && spaces.get(low).is_none());
        assert_eq!(
            spaces.dropped.lock().objects.len(),
            1,
            "the old one's object"
        );
        assert!(there.is(high) && !there.gone.load(Ordering::SeqCst));
    }

    #[test]
    fn numbers_end() {
        let (spaces, next) = (Spaces::new(false), AtomicU64::new(u64::from(NO_TENANT) - 1));
        assert_eq!(spaces.next_id(&next).unwrap(), NO_TENANT - 1);
        for _ in 0..3 {
            assert!(spaces.next_id(&next).is_err());
        }
    }
}
