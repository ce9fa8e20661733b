//! The list of overflow chains that no row refers to, because their row is not written yet or is
//! gone. Without it a crash would lose their pages.
//!
//! # Picture (format v1)
//! ```text
//! user area of the table's space header:   32 u32 number of the orphan list, 0: none yet
//! orphan list (type 0x40):   64  slots of 12 bytes:  u32 first page of a chain, 0: free │ u64 owner
//!
//!  writer   take ─▶ page, slot = it ─▶ page before it, slot = that ─▶ ... ─▶ row, slot = 0
//!  undoing  take ─▶ row restored or removed, slot = its chain ─▶ page freed, slot = the next ─▶ ... ─▶ slot = 0
//! ```
//! Each arrow is one mini-transaction.
//!
//! # Invariants
//! L1. Every page of a chain that a committed mini-transaction has written is reached from a row,
//!     from an undo record that is not purged, or from a slot.
//! L2. A slot on the page that has no owner in memory is garbage: its chain is freed in the
//!     background. After a start all are.
//! L3. Freeing a chain stops at a page that is not the owner's (overflow::O2). So a chain that
//!     purge lists a second time, after a crash, is freed once.
//!
//! # Concurrency
//! Latch order: tree pages, the orphan list, undo pages, overflow pages, the space header. The
//! mutex covers the lists in memory and the creation of the page. The page that a slot or an undo
//! record names may have been reused (L3), also for a leaf whose writer is about to latch the
//! orphan list. So it is read before the orphan list is latched, and then latched only if it is
//! unchanged, without waiting.
//!
//! # Failure
//! A chain with a damaged page is given up: the pages behind it are lost until the table is
//! rebuilt.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use nfold_store::{
    Latched, Mtr, PAGE_HEADER, PAGE_SIZE, PageId, PageNo, PageType, SpaceId, Store, StoreError,
    TrxId, USER_AREA, Wait,
};
use parking_lot::{Mutex, MutexGuard};

use crate::error::{EngineError, Stop, lift};
use crate::overflow;

/// Type of the orphan list.
pub(crate) const ORPHANED_LIST: u16 = PageType::USER;
const PAGE_AT: usize = USER_AREA + 32;
const SLOTS: usize = PAGE_HEADER;
const SLOT_BYTES: usize = 12;
const COUNT: usize = (PAGE_SIZE - SLOTS) / SLOT_BYTES;
/// Log bytes of a change of one slot.
pub(crate) const SLOT_LOG: usize = 64;
const MAKE_LOG: usize = 512;

/// The chains in the orphan list of one table; its successive [`Table`](crate::Table) objects share
/// it.
pub(crate) struct OrphanedPages {
    space: SpaceId,
    state: Mutex<State>,
    /// Something may be there to be freed.
    dirty: AtomicBool,
}

#[derive(Default)]
struct State {
    /// The orphan list, 0: the space has none; `None`: not looked yet.
    page: Option<PageNo>,
    free: Vec<u16>,
    garbage: Vec<u16>,
}

/// A slot of the orphan list, for one chain. Dropped with a chain in it, it is garbage.
pub(crate) struct Slot {
    orphaned: Arc<OrphanedPages>,
    at: u16,
    used: bool,
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut state = self.orphaned.state.lock();
        if self.used {
            state.garbage.push(self.at);
            self.orphaned.dirty.store(true, Relaxed);
        } else {
            state.free.push(self.at);
        }
    }
}

impl std::fmt::Debug for Slot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Slot({}, {})", self.at, self.used)
    }
}

fn offset(at: u16) -> usize {
    SLOTS + at as usize * SLOT_BYTES
}

impl Slot {
    /// Puts a chain into the slot, in place of the one that is there. `page` is the orphan list,
    /// latched.
    pub(crate) fn put(&mut self, mtr: &mut Mtr<'_>, page: Latched, first: PageNo, owner: TrxId) {
        let mut bytes = [0; SLOT_BYTES];
        bytes[..4].copy_from_slice(&first.to_le_bytes());
        bytes[4..].copy_from_slice(&owner.to_le_bytes());
        mtr.write(page, offset(self.at), &bytes);
        self.used = true;
    }

    /// Takes the chain out: a row names it from this mini-transaction on.
    pub(crate) fn clear(&mut self, mtr: &mut Mtr<'_>, page: Latched) {
        if self.used {
            mtr.write(page, offset(self.at), &[0; 4]);
            self.used = false;
        }
    }

    /// Latches the orphan list.
    pub(crate) fn latch(&self, mtr: &mut Mtr<'_>) -> Result<Latched, Stop> {
        self.orphaned.latch(mtr)
    }
}

impl OrphanedPages {
    pub(crate) fn new(space: SpaceId) -> Arc<OrphanedPages> {
        Arc::new(OrphanedPages {
            space,
            state: Mutex::default(),
            dirty: AtomicBool::new(true),
        })
    }

    fn id(&self, page: PageNo) -> PageId {
        PageId {
            space: self.space,
            page,
        }
    }

    /// The state, with the page looked up.
    fn looked_up(&self, store: &Store) -> Result<MutexGuard<'_, State>, Stop> {
        let mut state = self.state.lock();
        if state.page.is_some() {
            return Ok(state);
        }
        let number = loop {
            let header = store.read(self.id(0)).map_err(lift)?;
            let number = header.u32(PAGE_AT);
            if header.validate() {
                break number;
            }
        };
        let slots = self.read_slots(store, number)?;
        // Low numbers are handed out first.
        for at in (0..COUNT as u16).rev() {
            let from = at as usize * SLOT_BYTES;
            if slots[from..from + 4] == [0; 4] {
                state.free.push(at);
            } else {
                state.garbage.push(at); // L2
            }
        }
        state.page = Some(number);
        Ok(state)
    }

    /// The bytes of all slots, as page `number` has them; 0: there is none.
    fn read_slots(&self, store: &Store, number: PageNo) -> Result<Vec<u8>, Stop> {
        let mut slots = vec![0; COUNT * SLOT_BYTES];
        if number == 0 {
            return Ok(slots);
        }
        loop {
            let page = store.read(self.id(number)).map_err(lift)?;
            page.copy(SLOTS, &mut slots);
            let right = page.page_type() == ORPHANED_LIST;
            if !page.validate() {
                continue;
            }
            if right {
                return Ok(slots);
            }
            let (page, what) = (self.id(number), "not the table's orphaned page");
            return Err(EngineError::Store(StoreError::Corrupt { page, lsn: 0, what }).into());
        }
    }

    /// A free slot. Makes the orphan list if there is none.
    pub(crate) fn take(self: &Arc<Self>, store: &Store) -> Result<Slot, Stop> {
        loop {
            let mut state = self.looked_up(store)?;
            if state.page == Some(0) {
                state.page = Some(self.make_page(store)?);
            }
            if let Some(at) = state.free.pop() {
                let orphaned = self.clone();
                return Ok(Slot {
                    orphaned,
                    at,
                    used: false,
                });
            }
            drop(state);
            if !self.free_one(store)? {
                // More than a thousand chains are being written.
                return Err(Stop::Wait(Wait::ready()));
            }
        }
    }

    fn make_page(&self, store: &Store) -> Result<PageNo, Stop> {
        let mut mtr = store.mtr();
        mtr.reserve(MAKE_LOG, self.space, 1).map_err(lift)?;
        let page = mtr.alloc_page(self.space, ORPHANED_LIST, 0, 0);
        let number = mtr.id(page).page;
        let header = mtr.latch(self.id(0)).map_err(lift)?;
        mtr.write(header, PAGE_AT, &number.to_le_bytes());
        mtr.commit();
        Ok(number)
    }

    fn latch(&self, mtr: &mut Mtr<'_>) -> Result<Latched, Stop> {
        mtr.latch(self.id(self.known_page())).map_err(lift)
    }

    /// The orphan list, for who has a slot.
    fn known_page(&self) -> PageNo {
        let page = self.state.lock().page;
        page.expect("a slot was taken, so the page is known")
    }

    /// Frees all chains without an owner. Returns whether there were any. Costs one load if there
    /// are none.
    pub(crate) fn drain(&self, store: &Store) -> Result<bool, Stop> {
        if !self.dirty.swap(false, Relaxed) {
            return Ok(false);
        }
        let mut any = false;
        loop {
            match self.free_one(store) {
                Ok(true) => any = true,
                Ok(false) => return Ok(any),
                Err(stop) => {
                    self.dirty.store(true, Relaxed);
                    return Err(stop);
                }
            }
        }
    }

    /// Frees one chain; false if there is none.
    fn free_one(&self, store: &Store) -> Result<bool, Stop> {
        let Some(at) = self.looked_up(store)?.garbage.pop() else {
            return Ok(false);
        };
        let done = self.free_chain(store, at);
        let mut state = self.state.lock();
        match &done {
            Ok(()) => state.free.push(at),
            Err(_) => state.garbage.push(at),
        }
        done.map(|()| true)
    }

    fn free_chain(&self, store: &Store, at: u16) -> Result<(), Stop> {
        loop {
            let (first, owner) = self.listed(store, at)?;
            if first == 0 {
                return Ok(());
            }
            let page = match overflow::look(store, self.id(first), owner) {
                Err(Stop::Error(EngineError::Store(error @ StoreError::Corrupt { .. }))) => {
                    tracing::error!(%error, "the pages of a long column behind this one are lost");
                    None
                }
                looked => looked?,
            };
            let mut mtr = store.mtr();
            mtr.reserve(SLOT_LOG + 1024, self.space, 0).map_err(lift)?;
            let orphaned = self.latch(&mut mtr)?;
            debug_assert_eq!(
                mtr.u32(orphaned, offset(at)),
                first,
                "a slot changes by its owner alone"
            );
            let following = match page {
                Some(page) => {
                    let Some(page) = mtr.upgrade(&page) else {
                        continue;
                    };
                    let following = overflow::next_page(&mtr, page);
                    mtr.free_page(page);
                    following
                }
                None => 0, // L3
            };
            mtr.write(orphaned, offset(at), &following.to_le_bytes());
            mtr.commit();
        }
    }

    /// The first page and the owner of the chain in a slot that the caller owns.
    fn listed(&self, store: &Store, at: u16) -> Result<(PageNo, TrxId), Stop> {
        let id = self.id(self.known_page());
        loop {
            let page = store.read(id).map_err(lift)?;
            let found = (page.u32(offset(at)), page.u64(offset(at) + 4));
            if page.validate() {
                return Ok(found);
            }
        }
    }
}
