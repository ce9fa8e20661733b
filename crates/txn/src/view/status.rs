//! One status word per transaction id, in chunks that a ring points to.
//!
//! # Picture
//! ```text
//!  ring[(id / 4096) % 16384]  →  0: no chunk   ALL: all committed before the start   n: pool[n - 1]
//!  chunk  tag = id / 4096 + 1 (0 while it changes hands)   4096 words: 0 active · LSN of the commit · LSN of the end | ABORTED
//! ```
//! # Invariants
//! - S1: a chunk's memory is never given back to the system, so a stale pointer is harmless: a
//!   reader checks the tag before and after it loads the word, and a wrong tag means that the id is
//!   older than everybody's interest.
//! - S2: the recycler stores tag 0, fences, clears the words, then stores the new tag (Release).
//! - S3: `allocate` refuses ids early enough that [`StatusTable::ensure`] always finds its place in
//!   the ring free.
//! # Cost
//! A look-up loads a ring entry, a pool pointer, a tag and a word; nothing is stored.

use super::{Lsn, TrxId};
use nfold_sync::prim::{AtomicU32, AtomicU64, Mutex, Ordering, fence};
use std::sync::OnceLock;

/// Ids per chunk.
#[cfg(not(loom))]
pub const CHUNK_IDS: u64 = 4096;
#[cfg(loom)]
pub const CHUNK_IDS: u64 = 2;
/// Chunks that the ring can hold: the span of ids between the oldest active and the newest is
/// bounded by it.
#[cfg(not(loom))]
pub const RING_CHUNKS: u64 = 16384;
#[cfg(loom)]
pub const RING_CHUNKS: u64 = 4;

/// Chunks kept free for those who allocate at once, and for the ids that each start skips.
#[cfg(not(loom))]
const POOLED_FREE: u64 = 1024;
#[cfg(loom)]
const POOLED_FREE: u64 = 1;

const NO_CHUNK: u32 = 0;
const ALL_COMMITTED: u32 = u32::MAX;
const ABORTED: u64 = 1 << 63;

/// The state of a transaction.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Status {
    /// Also an id that was never given out.
    Active,
    /// The LSN where its commit ends.
    Committed(Lsn),
    /// Rolled back, all of it; the LSN where the rollback ends.
    Aborted(Lsn),
    /// So long ago that its chunk was recycled: visible to everybody.
    Gone,
}

struct Chunk {
    tag: AtomicU64,
    words: Box<[AtomicU64]>,
}

struct Recycler {
    /// Pool indexes ready for use.
    free: Vec<u32>,
    /// How many of the pool's places exist.
    made: u32,
    /// The lowest chunk number that may still be in the ring.
    oldest: u64,
}

/// See the module's header.
pub struct StatusTable {
    ring: Box<[AtomicU32]>,
    pool: Box<[OnceLock<Box<Chunk>>]>,
    recycler: Mutex<Recycler>,
    /// A copy of the recycler's `oldest` that allocation looks at without its mutex.
    oldest: AtomicU64,
}

fn ring_at(chunk: u64) -> usize {
    (chunk % RING_CHUNKS) as usize
}

impl StatusTable {
    /// Whether the ring can hold the ids in `[first, next)` and more.
    pub fn can_hold(first: TrxId, next: TrxId) -> bool {
        next / CHUNK_IDS + 2 < first / CHUNK_IDS + RING_CHUNKS
    }

    /// Ids in `[first, next)` count as committed before the start, but for those in `active`
    /// (sorted or not). The ring [can hold](Self::can_hold) them.
    pub fn new(first: TrxId, next: TrxId, active: &[TrxId]) -> StatusTable {
        let oldest = first / CHUNK_IDS;
        let table = StatusTable {
            ring: (0..RING_CHUNKS).map(|_| AtomicU32::new(NO_CHUNK)).collect(),
            pool: (0..RING_CHUNKS).map(|_| OnceLock::new()).collect(),
            recycler: Mutex::new(Recycler {
                free: Vec::new(),
                made: 0,
                oldest,
            }),
            oldest: AtomicU64::new(oldest),
        };
        for chunk in oldest..next / CHUNK_IDS {
            table.ring[ring_at(chunk)].store(ALL_COMMITTED, Ordering::Relaxed);
        }
        let mut touched: Vec<u64> = active.iter().map(|id| id / CHUNK_IDS).collect();
        touched.push(next / CHUNK_IDS);
        touched.sort_unstable();
        touched.dedup();
        for chunk in touched {
            table.ring[ring_at(chunk)].store(NO_CHUNK, Ordering::Relaxed);
            table.ensure(chunk * CHUNK_IDS);
            for id in chunk * CHUNK_IDS..((chunk + 1) * CHUNK_IDS).min(next) {
                if !active.contains(&id) {
                    table.set_committed(id, 1);
                }
            }
        }
        table
    }

    fn locked(&self) -> impl std::ops::DerefMut<Target = Recycler> + '_ {
        match self.recycler.lock() {
            Ok(guard) => guard,
            Err(poisoned) => poisoned.into_inner(),
        }
    }

    /// Whether an id as high as `next` may be given out (S3).
    pub fn has_room(&self, next: TrxId) -> bool {
        next / CHUNK_IDS + POOLED_FREE < self.oldest.load(Ordering::Relaxed) + RING_CHUNKS
    }

    fn chunk(&self, number: u64) -> Option<&Chunk> {
        match self.ring[ring_at(number)].load(Ordering::Acquire) {
            NO_CHUNK | ALL_COMMITTED => None,
            n => {
                let chunk = self.pool[n as usize - 1].get()?;
                (chunk.tag.load(Ordering::Acquire) == number + 1).then_some(chunk)
            }
        }
    }

    /// Ensures that `id`'s word exists. The owner of the id calls it before the first use of the
    /// id.
    pub fn ensure(&self, id: TrxId) {
        let number = id / CHUNK_IDS;
        if self.chunk(number).is_some() {
            return;
        }
        let mut recycler = self.locked();
        if self.chunk(number).is_some() {
            return;
        }
        let place = &self.ring[ring_at(number)];
        assert_eq!(
            place.load(Ordering::Relaxed),
            NO_CHUNK,
            "S3: the ring has room"
        );
        let index = recycler.free.pop().unwrap_or_else(|| {
            recycler.made += 1;
            recycler.made
        });
        let chunk = self.pool[index as usize - 1].get_or_init(|| {
            let words = (0..CHUNK_IDS).map(|_| AtomicU64::new(0)).collect();
            Box::new(Chunk {
                tag: AtomicU64::new(0),
                words,
            })
        });
        fence(Ordering::Release);
        for word in &chunk.words {
            word.store(0, Ordering::Relaxed);
        }
        chunk.tag.store(number + 1, Ordering::Release);
        place.store(index, Ordering::Release);
    }

    /// Stores the end of a transaction whose word exists; once per id.
    fn set(&self, id: TrxId, word: u64) {
        let chunk = self
            .chunk(id / CHUNK_IDS)
            .expect("S3: an active id's chunk is in the ring");
        chunk.words[(id % CHUNK_IDS) as usize].store(word, Ordering::Release);
    }

    /// The transaction committed; `end` is the LSN where its commit ends. Called before that range
    /// counts as filled (I1).
    pub fn set_committed(&self, id: TrxId, end: Lsn) {
        debug_assert!(end != 0 && end & ABORTED == 0, "an LSN");
        self.set(id, end);
    }

    /// All its changes are undone.
    pub fn set_aborted(&self, id: TrxId, end: Lsn) {
        self.set(id, end | ABORTED);
    }

    /// The word: 0 active, or the end. `None`: recycled, or never made.
    #[inline]
    fn word(&self, id: TrxId) -> Option<u64> {
        let number = id / CHUNK_IDS;
        match self.ring[ring_at(number)].load(Ordering::Acquire) {
            NO_CHUNK => None,
            ALL_COMMITTED => Some(1),
            n => {
                let chunk = self.pool[n as usize - 1].get()?;
                if chunk.tag.load(Ordering::Acquire) != number + 1 {
                    return None;
                }
                let word = chunk.words[(id % CHUNK_IDS) as usize].load(Ordering::Acquire);
                fence(Ordering::Acquire);
                (chunk.tag.load(Ordering::Relaxed) == number + 1).then_some(word)
            }
        }
    }

    /// Whether a reader at `horizon` sees `id`, which it found on a row (so the id was given out).
    #[inline]
    pub fn committed_by(&self, id: TrxId, horizon: Lsn) -> bool {
        match self.word(id) {
            // The aborted bit makes the word larger than any LSN.
            Some(word) => word != 0 && word <= horizon,
            None => true,
        }
    }

    /// Whether `id` has ended, as far as `horizon` goes. An id whose chunk does not exist yet has
    /// not.
    pub(super) fn has_ended(&self, id: TrxId, horizon: Lsn) -> bool {
        self.word(id)
            .is_some_and(|word| word != 0 && (word & !ABORTED) <= horizon)
    }

    /// The status of an id that was found on a row.
    pub fn get(&self, id: TrxId) -> Status {
        match self.word(id) {
            None => Status::Gone,
            Some(0) => Status::Active,
            Some(word) if word & ABORTED != 0 => Status::Aborted(word & !ABORTED),
            Some(word) => Status::Committed(word),
        }
    }

    /// Recycles chunks below `low` whose transactions all ended at or below `floor` (I4). Purge
    /// thread only.
    pub fn recycle(&self, low: TrxId, floor: Lsn) -> usize {
        let mut recycler = self.locked();
        let mut count = 0;
        while (recycler.oldest + 1) * CHUNK_IDS <= low {
            let number = recycler.oldest;
            let place = &self.ring[ring_at(number)];
            if let Some(chunk) = self.chunk(number) {
                let quiet = |w: &AtomicU64| {
                    let word = w.load(Ordering::Relaxed);
                    word != 0 && (word & !ABORTED) <= floor
                };
                if !chunk.words.iter().all(quiet) {
                    break;
                }
                let index = place.load(Ordering::Relaxed);
                place.store(NO_CHUNK, Ordering::Relaxed);
                chunk.tag.store(0, Ordering::Relaxed);
                recycler.free.push(index);
            } else {
                place.store(NO_CHUNK, Ordering::Relaxed);
            }
            recycler.oldest += 1;
            count += 1;
        }
        self.oldest.store(recycler.oldest, Ordering::Relaxed);
        count
    }
}
