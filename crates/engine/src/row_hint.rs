//! Hints: where the clustered row of a secondary entry was last seen, in place of an adaptive
//! hash index.
//!
//! # Picture
//! ```text
//!  writer of an entry ── knows the row's leaf ──▶ entry ‖ hint
//!  reader: hint ─▶ page ─▶ is the key there?  yes: no descent
//!                                              no:  descent; the entry's leaf goes into the worker's ring of misses
//!  background:  rings ─▶ leaf ─▶ all its rows looked up together ─▶ hints stored in place (unlogged, the page stays clean)
//! ```
//! # Invariants
//! G1. A hint is only a place to look first: a row counts as found only when its key is there, on
//!     a leaf of the clustered index.
//! G2. Readers store to the ring of their own worker, and only when a hint was wrong: a warm read
//!     stores nothing.
//! G3. Rings are lossy. A miss that is lost is met again by the next reader.
//!
//! # Concurrency
//! A ring has one writing worker, more only where workers share a shard; the background swaps its
//! slots for zero.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use nfold_btree::{EntryBatch, GetMany, RowHint};
use nfold_observe::{SHARDS, Sharded, shard};
use nfold_store::{Store, header};

use crate::record::{ROW_HINT_AT, SecondaryEntry};
use crate::shared::Shared;
use crate::table::Table;

/// Misses that a worker can note between two looks of the background.
const SLOTS: usize = 64;

/// Counters, by number.
const HITS: usize = 0;
const MISSES: usize = 1;
const REPAIRED: usize = 2;

#[derive(Debug)]
#[repr(align(128))]
struct Ring {
    /// `space << 32 | page` of leaves that hold wrong hints; 0: free.
    slots: [AtomicU64; SLOTS],
    next: AtomicU64,
}

/// How often hints led to the row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RowHintStatus {
    /// Rows found where they were hinted.
    pub hits: u64,
    /// Rows that took a descent: no hint, or a wrong one.
    pub misses: u64,
    /// Hints put right by the background.
    pub repaired: u64,
}

/// The wrong row-location hints that readers have noted, and the switch for hints
/// (`innodb_adaptive_hash_index`).
///
/// It has cache lines of its own, because readers load the switch while the background writes to
/// neighbouring fields.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct RowHints {
    on: AtomicBool,
    rings: Box<[Ring]>,
    counters: Sharded<3>,
}

impl RowHints {
    pub(crate) fn new() -> RowHints {
        let ring = || Ring {
            slots: std::array::from_fn(|_| AtomicU64::new(0)),
            next: AtomicU64::new(0),
        };
        RowHints {
            on: AtomicBool::new(true),
            rings: (0..SHARDS).map(|_| ring()).collect(),
            counters: Sharded::new(),
        }
    }

    #[inline]
    pub(crate) fn on(&self) -> bool {
        self.on.load(Relaxed)
    }

    pub(crate) fn turn(&self, on: bool) {
        self.on.store(on, Relaxed);
    }

    pub(crate) fn status(&self) -> RowHintStatus {
        let [hits, misses, repaired] = self.counters.sums();
        RowHintStatus {
            hits,
            misses,
            repaired,
        }
    }

    /// Counts the rows of one read.
    #[inline]
    pub(crate) fn count(&self, hits: u64, misses: u64) {
        if hits > 0 {
            self.counters.add(HITS, hits);
        }
        if misses > 0 {
            self.counters.add(MISSES, misses);
        }
    }

    /// Notes a leaf whose hints are wrong; forgotten when the ring is full (G3).
    pub(crate) fn miss(&self, space: u32, page: u32) {
        let ring = &self.rings[shard()];
        let at = ring.next.load(Relaxed);
        let slot = &ring.slots[at as usize % SLOTS];
        if slot.load(Relaxed) == 0 {
            slot.store(u64::from(space) << 32 | u64::from(page), Relaxed);
            ring.next.store(at.wrapping_add(1), Relaxed);
        }
    }

    /// Takes what readers noted.
    fn drain(&self, leaves: &mut Vec<u64>) {
        let slots = self.rings.iter().flat_map(|r| &r.slots);
        // Load before the swap, so that the cache line stays shared if it is empty.
        leaves.extend(
            slots
                .filter(|slot| slot.load(Relaxed) != 0)
                .map(|slot| slot.swap(0, Relaxed)),
        );
        leaves.sort_unstable();
        leaves.dedup();
    }
}

/// Puts the hints of leaves that readers noted right; keeps its buffers.
#[derive(Default)]
pub(crate) struct Repairer {
    leaves: Vec<u64>,
    entries: EntryBatch,
    /// Each key with its entry.
    get: GetMany<u32>,
    wrong: Vec<(u32, RowHint)>,
}

impl Repairer {
    /// One look at the rings; whether there was anything to do.
    pub(crate) fn step(&mut self, shared: &Shared) -> bool {
        self.leaves.clear();
        shared.row_hints.drain(&mut self.leaves);
        let leaves = std::mem::take(&mut self.leaves);
        for leaf in &leaves {
            let (space, page) = ((leaf >> 32) as u32, *leaf as u32);
            if let Some((table, n)) = index_of(shared, space, page) {
                let repaired = self.repair(&shared.store, &table, n, page);
                shared.row_hints.counters.add(REPAIRED, repaired);
            }
        }
        self.leaves = leaves;
        !self.leaves.is_empty()
    }

    /// The number of hints that were wrong. It stops at a missing page: the reader that
    /// needs it will note it again.
    fn repair(&mut self, store: &Store, table: &Table, n: usize, page: u32) -> u64 {
        let Repairer {
            entries,
            get,
            wrong,
            ..
        } = self;
        entries.clear();
        get.clear();
        wrong.clear();
        let tree = &table.index(n).tree;
        if !tree.leaf_entries(store, page, entries) {
            return 0;
        }
        for (i, entry) in entries.entries().iter().enumerate() {
            let value = SecondaryEntry::parse(entries.value(entry));
            let primary = value
                .as_ref()
                .and_then(|v| v.primary_key(entries.key(entry)));
            if let (Some(value), Some(primary)) = (value, primary) {
                get.push_with(primary, value.row_hint, i as u32);
            }
        }
        // Rows on pages that are not in memory are left out, not waited for.
        let more = table.index(0).tree.get_many(store, get, usize::MAX);
        drop(more);
        for found in get.found() {
            if found.row_hint != get.row_hint(found.key) {
                wrong.push((*get.tag(found.key), found.row_hint));
            }
        }
        let key = |i: u32| entries.key(&entries.entries()[i as usize]);
        let written = tree.write_row_hints(
            store,
            page,
            ROW_HINT_AT,
            wrong.iter().map(|&(i, row_hint)| (key(i), row_hint)),
        );
        if written.is_ok() {
            wrong.len() as u64
        } else {
            0
        }
    }
}

/// The secondary index that a leaf belongs to.
fn index_of(shared: &Shared, space: u32, page: u32) -> Option<(Arc<Table>, usize)> {
    let table = shared
        .tables
        .read()
        .values()
        .find(|t| t.def().space == space)?
        .clone();
    let id = nfold_store::PageId { space, page };
    if !shared.store.is_resident(id) {
        return None;
    }
    let index = shared.store.read(id).ok()?.u64(header::INDEX_ID);
    let n = table.def().indexes.iter().position(|i| i.id.0 == index)?;
    (n > 0).then_some((table, n))
}
