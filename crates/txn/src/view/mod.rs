//! Which transactions a reader sees: status words, reader slots, snapshots, and the floor that
//! purge may go up to.
//!
//! # Picture
//! ```text
//!   ids   ...visible to all... L ......... some resolved, some active ......... H  not yet given out
//!                              │                                               │
//!   status ring                [ts][0][ts][ab][0][ts] ...                  [0]     one word per id
//!
//!   log   ......................... floor ........ S (a reader's) ....... horizon .... end
//!                                     └ no reader needs versions before this
//! ```
//! A snapshot is three words: `L`, the oldest id that may be active; `S`, the horizon; `H`, the
//! next id. An id below `L` is visible, one at or above `H` is not, one between is visible if its
//! commit's LSN is at most `S`.
//!
//! # Invariants
//! - I1 (commit before horizon): the status word of a commit that ends at LSN `c` is stored before
//!   the range that ends at `c` counts as filled. So a reader that loaded `S >= c` from the horizon
//!   finds it.
//! - I2 (L only over resolved ids): when `L` is published as `l`, every id below `l` is aborted and
//!   undone, or committed at `c <= h`, where `h` was loaded from the horizon before.
//! - I3 (floor): purge's floor is at most the `S` of every open snapshot, also of one that is just
//!   being opened.
//! - I4: a chunk of status words is recycled only when all its ids are below `L` and ended at or
//!   below the floor.
//!
//! # Why a snapshot is a prefix of the commit order
//! Let T1 commit at c1 and T2 at c2, c1 < c2, and let a snapshot see T2. (a) T2 by status: c2 <= S,
//! so c1 <= S, and T1 is visible: by its status (I1), or because its id is below L; its id is below
//! H, because H is loaded after S, and T1 took its id before it filled its commit. (b) T2 by `id <
//! L`: by I2 the publisher of L had loaded a horizon `h >= c2`. The reader loads L (Acquire, pairs
//! with the publisher's Release), then S: by coherence S >= h >= c2, and (a) applies to T1.
//!
//! # Why purge cannot overtake a reader that opens (I3)
//! Reader: store 0 in its slot; light barrier [R]; load L, S, H; store S in the slot. Purge: load
//! the horizon `h`; heavy barrier [P]; scan the slots; floor = min(h, slots). If R comes before P
//! in the barriers' order ([`Barrier`](nfold_sync::Barrier)), the scan finds 0 or S: the floor does
//! not pass S. Otherwise P comes before R: then the reader's load of the horizon is ordered after
//! purge's load, S >= h >= floor. After storing S the reader looks at the published floor once more
//! and starts over if it is above S; the argument says that this never happens, so it is a guard
//! and not a part of the proof.
//!
//! # Concurrency
//! Only its session writes to a slot. The transaction's owner stores its status word once. Each
//! session that finishes a transaction raises `L` by `fetch_max`, so it needs no lock. Only the
//! purge thread changes the floor and recycles chunks.
//!
//! # Cost
//! Opening a snapshot: two stores to the own line, four loads of shared lines. Where
//! `membarrier(2)` does not work, a fence. `sees` for an old id is one comparison. No allocation.

mod slots;
mod snapshot;
mod status;

#[cfg(all(test, loom))]
mod loom_tests;
#[cfg(all(test, not(loom)))]
mod tests;

/// Log position, bytes; the same as the store's. Spelled out here because loom builds this module
/// without the store.
pub type Lsn = u64;
/// Transaction id; the same as the store's.
pub type TrxId = u64;

pub use slots::{OldestReader, SlotInfo, SlotTable};
pub use snapshot::{Snapshot, Snapshots};
pub use status::{CHUNK_IDS, RING_CHUNKS, Status, StatusTable};
