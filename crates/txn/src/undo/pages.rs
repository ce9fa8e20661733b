//! Which undo pages are in use, and by how many transactions.
//!
//! # Invariants
//! - P1: a page is on the free list when it is sealed and its count is 0, once.
//! - P2 (U3): a page that holds the last record of an ended transaction is counted once more for
//!   each other page of that transaction until that page is freed on disk.

use super::spaces::file_of;
use nfold_store::PageNo;
use nfold_sync::CachePadded;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

const SHARDS: usize = 64;

#[derive(Default)]
struct Use {
    /// Transactions with records here that are not purged yet, and pages whose last record is here.
    live: u32,
    /// No stream's current page any more.
    sealed: bool,
    /// Overflow pages of records here.
    long: Vec<PageNo>,
    /// Pages that may be freed only after this one.
    holds: Vec<PageNo>,
}

type Shard = CachePadded<Mutex<FxHashMap<PageNo, Use>>>;

/// See the module's header.
pub(super) struct PageUse {
    shards: Box<[Shard]>,
    free: Mutex<Vec<PageNo>>,
    /// How many pages of each file are known.
    known: [AtomicUsize; 2],
}

impl Default for PageUse {
    fn default() -> Self {
        PageUse {
            shards: (0..SHARDS).map(|_| CachePadded::default()).collect(),
            free: Mutex::new(Vec::new()),
            known: Default::default(),
        }
    }
}

impl PageUse {
    fn with<R>(&self, page: PageNo, f: impl FnOnce(&mut Use) -> R) -> R {
        let mut shard = self.shards[page as usize % SHARDS].lock();
        let entry = self.entry(&mut shard, page);
        let result = f(entry);
        let free = entry.sealed && entry.live == 0;
        drop(shard);
        if free {
            self.free.lock().push(page);
        }
        result
    }

    fn entry<'a>(&self, shard: &'a mut FxHashMap<PageNo, Use>, page: PageNo) -> &'a mut Use {
        shard.entry(page).or_insert_with(|| {
            self.known[file_of(page)].fetch_add(1, SeqCst);
            Use::default()
        })
    }

    /// How many pages of this file are known. Overflow pages belong to known ones, of either file.
    pub fn known(&self, file: usize) -> usize {
        self.known[file].load(SeqCst)
    }

    /// A transaction (or a page, P2) keeps `page`.
    pub fn pin(&self, page: PageNo) {
        self.with(page, |u| u.live += 1);
    }

    pub fn unpin(&self, page: PageNo) {
        self.with(page, |u| {
            debug_assert!(u.live > 0, "P1: counted before");
            u.live -= 1;
        });
    }

    /// No stream appends to `page` any more.
    pub fn seal(&self, page: PageNo) {
        self.with(page, |u| {
            debug_assert!(!u.sealed, "P1: sealed once");
            u.sealed = true;
        });
    }

    /// `long` belongs to a record on `page`.
    pub fn add_long(&self, page: PageNo, long: &[PageNo]) {
        // Not through `with`: it does not change whether the page is free.
        let mut shard = self.shards[page as usize % SHARDS].lock();
        self.entry(&mut shard, page).long.extend_from_slice(long);
    }

    /// `last` stays until `page` is freed. Called while the transaction still counts on both.
    pub fn hold(&self, page: PageNo, last: PageNo) {
        self.pin(last);
        self.with(page, |u| u.holds.push(last));
    }

    /// A page that can be freed now, with its overflow pages. It stays known until
    /// [`freed`](Self::freed).
    pub fn next_free(&self) -> Option<(PageNo, Vec<PageNo>)> {
        let page = *self.free.lock().last()?;
        let shard = self.shards[page as usize % SHARDS].lock();
        let long = shard.get(&page).map(|u| u.long.clone()).unwrap_or_default();
        Some((page, long))
    }

    /// An overflow page of `page` is gone.
    pub fn freed_long(&self, page: PageNo, long: PageNo) {
        let mut shard = self.shards[page as usize % SHARDS].lock();
        if let Some(u) = shard.get_mut(&page) {
            u.long.retain(|p| *p != long);
        }
    }

    /// The page that [`next_free`](Self::next_free) gave is freed on disk.
    pub fn freed(&self, page: PageNo) {
        self.free.lock().retain(|p| *p != page);
        let holds = {
            let mut shard = self.shards[page as usize % SHARDS].lock();
            let removed = shard.remove(&page);
            if removed.is_some() {
                self.known[file_of(page)].fetch_sub(1, SeqCst);
            }
            removed.map(|u| u.holds).unwrap_or_default()
        };
        for last in holds {
            self.unpin(last);
        }
    }

    /// The page that [`next_free`](Self::next_free) gave cannot be freed.
    pub fn set_aside(&self, page: PageNo) {
        self.free.lock().retain(|p| *p != page);
    }

    /// A page that was set aside is on the free list again (P1).
    pub fn offer(&self, page: PageNo) {
        let mut free = self.free.lock();
        debug_assert!(!free.contains(&page), "P1: once");
        free.push(page);
    }

    /// (pages known, pages that can be freed)
    pub fn counts(&self) -> (usize, usize) {
        (
            self.shards.iter().map(|s| s.lock().len()).sum(),
            self.free.lock().len(),
        )
    }
}
