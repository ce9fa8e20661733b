//! The table of open spaces, and the life cycle of dropped ones.
//!
//! # Picture
//! ```text
//! table   2^22 slots, indexed by the low bits of a space's id:   [ ─ | ● | ─ | ● | ... ]
//!                                                                      ▼       ▼
//! objects   at most one per space open at the same time:             Space   Space   Space ...
//!
//! an object:   vacant ──► open ──► dropped (no new users; pages are discarded, last users end) ──►
//! vacant
//! ```
//! # Invariants
//! - T1: two spaces that are open, or have a file, never share a slot: an id whose slot is taken is
//!   not assigned.
//! - T2: an object stays allocated for the life of the store, and so do the page words that it had.
//!   So a thread with a pointer to either may read it at any time. The data read is valid only if
//!   the object still belongs to the space (I5 of [`crate::space`]).
//! - T3: an object becomes vacant when its space was dropped, its pages are discarded, and no
//!   thread holds or pins it. Its page words return to the arena as not resident and keep their
//!   versions. So no page word seen under the old space validates under a new one.
//! # Concurrency
//! `all` is locked for changes of the table, `dropped` for the steps after that. `all` is locked
//! before `dropped`.
//!
//! A lookup in the table takes no lock: it loads the pointer, reads from the space, and then
//! compares the id. The comparison also detects a space whose id has the same low bits. An id
//! becomes known only when its space is open, so no thread can have looked it up while the object
//! belonged to another space.
//!
//! Threads that may still use a dropped space, and what keeps its object from being reused:
//! - A reader holds nothing and needs nothing. It compares the id after it loaded the page word
//!   (Acquire), so it accepts only data of its space. Its validation fails once the page is
//!   discarded, because versions only grow.
//! - A thread that has latched a page of the space: discarding takes that latch.
//! - A mini-transaction with reservations in the space: its pin (I6 of [`crate::space`]).
//! - A load, a growth of the file, a batch of the cleaner, a thread that waits for a latch: each
//!   has a hold.
//! # Cost
//! A dropped space leaves an object of half a KiB and its page words for later spaces. In total,
//! there are as many objects as spaces were open at once.

use crate::disk::{Disk, OpenMode};
use crate::error::StoreError;
use crate::page::{PAGE_SIZE, SpaceId};
use crate::pool::flat::Arena;
use crate::private_file::{PRIVATE_PAGES, PrivateFile};
use crate::space::{
    FIRST_PAGES, HeldSpace, OpenFile, SUFFIX, Space, TEMPORARY, check_name, header_image, identify,
};
use nfold_sync::tenancy::NO_TENANT;
use parking_lot::Mutex;
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::collections::HashMap;
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// The most spaces that can be open at the same time; a power of two.
const TABLE: usize = 1 << 22;

/// See the module header.
pub(crate) struct Spaces {
    table: *mut AtomicPtr<Space>,
    /// The page words of all spaces.
    arena: Arc<Arena>,
    all: Mutex<HashMap<SpaceId, Arc<Space>>>,
    dropped: Mutex<Dropped>,
}

#[derive(Default)]
struct Dropped {
    /// The dropped spaces that are not yet vacant.
    leaving: HashMap<SpaceId, Arc<Space>>,
    vacant: Vec<Arc<Space>>,
    /// All objects, which keeps them allocated (T2).
    objects: Vec<Arc<Space>>,
}

impl Dropped {
    /// Moves the objects of dropped spaces without users to `vacant`.
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

// SAFETY: the table is owned, and its entries are atomics that point to `Sync` objects kept alive
// by `objects`.
unsafe impl Send for Spaces {}
// SAFETY: as above.
unsafe impl Sync for Spaces {}

fn table_layout() -> Layout {
    Layout::array::<AtomicPtr<Space>>(TABLE).expect("a fixed size")
}

impl Spaces {
    /// `huge`: whether the arena uses huge pages.
    pub(crate) fn new(huge: bool) -> Spaces {
        // SAFETY: the layout's size is not zero. Null pointers are zero bytes; untouched parts stay
        // uncommitted.
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
        // SAFETY: the table has `TABLE` zeroed (null) or published entries and lives as long as
        // `self`.
        unsafe { &*self.table.add(id as usize % TABLE) }
    }

    /// The object in the slot of space `id`. Data read from it is valid only if the object belongs
    /// to the space ([`Space::is`]) afterwards.
    #[inline(always)]
    pub(crate) fn look(&self, id: SpaceId) -> Option<&Space> {
        let space = self.cell(id).load(Ordering::Acquire);
        // SAFETY: a published pointer came from an `Arc` that `objects` keeps until `self` is
        // dropped (T2).
        unsafe { space.as_ref() }
    }

    /// The object of space `id` if the space is open at this moment.
    #[inline]
    pub(crate) fn get(&self, id: SpaceId) -> Option<&Space> {
        self.look(id).filter(|space| space.is(id))
    }

    /// Space `id` with a hold, if it is open.
    pub(crate) fn hold(&self, id: SpaceId) -> Option<HeldSpace> {
        let space: *const Space = self.look(id)?;
        // SAFETY: the pointer came from `Arc::as_ptr` in `insert`, and `objects` keeps that `Arc`
        // until `self` is dropped (T2).
        let space = unsafe {
            Arc::increment_strong_count(space);
            Arc::from_raw(space)
        };
        HeldSpace::new(space, id)
    }

    /// All open spaces.
    pub(crate) fn list(&self) -> Vec<HeldSpace> {
        let all = self.all.lock();
        let held = |(id, space): (&SpaceId, &Arc<Space>)| HeldSpace::new(space.clone(), *id);
        all.iter().filter_map(held).collect()
    }

    /// Assigns the id of a new space (T1). `next` is the id after all assigned ones.
    pub(crate) fn next_id(&self, next: &AtomicU64) -> Result<SpaceId, StoreError> {
        let too_large = |what, limit: usize| StoreError::TooLarge {
            what,
            limit: limit as u64,
        };
        for _ in 0..TABLE {
            let id = next.fetch_add(1, Ordering::SeqCst);
            let Some(id) = u32::try_from(id).ok().filter(|id| *id != NO_TENANT) else {
                next.store(NO_TENANT.into(), Ordering::SeqCst); // It never wraps around.
                return Err(too_large("number of spaces ever made", NO_TENANT as usize));
            };
            if self.is_free(id) && !self.is_leaving(id) {
                return Ok(id);
            }
        }
        Err(too_large("number of open spaces", TABLE))
    }

    /// Whether no open space occupies the slot of `id`.
    fn is_free(&self, id: SpaceId) -> bool {
        id != NO_TENANT && self.look(id).is_none()
    }

    /// Whether a dropped space that is still in use occupied the slot of `id`. A drop keeps a hold
    /// until the file is removed, so that a crash never leaves two files of the same slot.
    fn is_leaving(&self, id: SpaceId) -> bool {
        let dropped = self.dropped.lock();
        dropped
            .leaving
            .keys()
            .any(|of| ((of ^ id) as usize).is_multiple_of(TABLE))
    }

    /// Publishes an open space. If the space is open already, returns that one.
    fn insert(&self, id: SpaceId, file: OpenFile<'_>) -> Result<HeldSpace, StoreError> {
        let mut all = self.all.lock();
        if let Some(space) = all.get(&id) {
            return HeldSpace::new(space.clone(), id).ok_or(StoreError::SpaceGone(id));
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
        HeldSpace::new(space, id).ok_or(StoreError::SpaceGone(id))
    }

    /// Takes a vacant object, or creates one.
    fn object(&self) -> Arc<Space> {
        let mut dropped = self.dropped.lock();
        dropped.collect();
        dropped.vacant.pop().unwrap_or_else(|| {
            let new = Arc::new(Space::new(&self.arena));
            dropped.objects.push(new.clone());
            new
        })
    }

    /// Removes a space from the table and closes its file. The caller has its pages discarded.
    pub(crate) fn remove(&self, id: SpaceId) -> Option<HeldSpace> {
        let mut all = self.all.lock();
        let space = all.remove(&id)?;
        let held = HeldSpace::new(space.clone(), id)?;
        self.cell(id).store(null_mut(), Ordering::Release);
        space.close();
        self.dropped.lock().leaving.insert(id, space);
        Some(held)
    }

    /// A space that was [removed](Self::remove) and is not yet vacant, with a hold.
    pub(crate) fn dropped(&self, id: SpaceId) -> Option<HeldSpace> {
        let dropped = self.dropped.lock();
        let space = dropped.leaving.get(&id)?;
        HeldSpace::new(space.clone(), id)
    }

    /// Makes the object of a dropped and discarded space vacant if it has no users. Otherwise the
    /// next creation of a space does so.
    pub(crate) fn vacate(&self, id: SpaceId) {
        let mut dropped = self.dropped.lock();
        if dropped.leaving.get(&id).is_some_and(|space| space.end(id)) {
            let space = dropped.leaving.remove(&id);
            dropped.vacant.extend(space);
        }
    }

    /// The memory in bytes of all objects and page words, in use or vacant.
    pub(crate) fn bytes(&self) -> usize {
        let objects = self.dropped.lock().objects.len();
        objects * size_of::<Space>() + self.arena.bytes()
    }

    /// Creates the file of a new space with only page 0, durably, and opens it.
    pub(crate) fn create(
        &self,
        disk: &dyn Disk,
        id: SpaceId,
        name: &str,
    ) -> Result<HeldSpace, StoreError> {
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
                let _ = disk.remove(name); // Fails if the file is missing, which is fine.
            }
            return Err(e);
        }
        // Reopened under its final name, because the disk opens files with that suffix differently.
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

    /// Opens a new private space. Its file is created only when needed, and does not survive a
    /// restart.
    pub(crate) fn create_private(
        &self,
        disk: &Arc<dyn Disk>,
        id: SpaceId,
        name: &str,
    ) -> Result<HeldSpace, StoreError> {
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

    /// Opens an existing file. `pages` is set to the file's length at first; the caller then sets
    /// it from page 0.
    pub(crate) fn open(
        &self,
        disk: &dyn Disk,
        id: SpaceId,
        name: &str,
    ) -> Result<HeldSpace, StoreError> {
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
        // SAFETY: the table was allocated in `new` with this layout, and it has no users any more.
        // The objects belong to `dropped`.
        unsafe { dealloc(self.table.cast(), table_layout()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::SimDisk;

    #[test]
    fn spaces_with_the_same_low_bits_do_not_share_a_slot() {
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
            "T1: the slot is taken"
        );

        let gone = spaces.remove(low).unwrap();
        assert!(spaces.get(low).is_none() && spaces.dropped(low).is_some());
        assert!(spaces.is_free(low) && spaces.is_free(high));
        next.store(high.into(), Ordering::SeqCst);
        assert_eq!(
            spaces.next_id(&next).unwrap(),
            high + 1,
            "T1: the slot may still have a file"
        );
        gone.discarded.store(true, Ordering::SeqCst);
        spaces.vacate(low);
        assert!(gone.is(low), "T3: the space is held");
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
            "the new space reuses the object"
        );
        assert!(there.is(high) && !there.gone.load(Ordering::SeqCst));
    }

    #[test]
    fn space_ids_run_out() {
        let (spaces, next) = (Spaces::new(false), AtomicU64::new(u64::from(NO_TENANT) - 1));
        assert_eq!(spaces.next_id(&next).unwrap(), NO_TENANT - 1);
        for _ in 0..3 {
            assert!(spaces.next_id(&next).is_err());
        }
    }
}
