//! B+trees over the buffer pool: descent, cursors, splits and merges, batched lookups. The
//! transaction layer and the engine call it.
//!
//! A tree maps keys (byte strings in `memcmp` order) to values (byte strings that it does not
//! interpret). Reads are optimistic: they hold no latch, and store nothing that other threads read.
//! A page that is not in memory stops a read. The read then keeps its progress in the caller's
//! object and continues when the caller calls again.
//!
//! Writes happen inside a mini-transaction: latch a leaf that has room for the change
//! ([`TreeHandle::leaf_for_write`]), then change it.
//!
//! # Not here
//! Transactions, row formats, visibility and locks. Values carry them, and the layers above
//! interpret them.

#![forbid(unsafe_code)]

mod batch;
mod build;
mod check;
mod cursor;
mod estimate;
mod free;
mod get;
mod group;
mod hint;
mod leaf;
mod leaf_hints;
mod look;
mod merge;
mod node;
mod points;
mod redo;
mod root;
mod row_hint;
mod run;
mod seen;
mod shape;
mod split;
mod tree;
mod write;

pub use batch::{Entry, EntryBatch, FoundKey, GetMany, PointScan, Wanted, prefix_successor};
pub use build::Builder;
pub use check::TreeCheck;
pub use cursor::{Bound, Cursor, KeyRange};
pub use estimate::TreeStats;
pub use leaf::{LeafEntries, LeafEntry};
pub use leaf_hints::LeafHints;
pub use node::padded_word;
pub use points::PointSink;
pub use redo::{BtreeRedo, OP_FIRST, OP_LAST};
pub use row_hint::RowHint;
pub use run::{EntryRun, LeafUse};
pub use seen::{SeenValue, SeenValues, ValueSink};
pub use shape::TreeShape;
pub use tree::{MAX_ENTRY, MAX_KEY, Tree, TreeCounters, TreeHandle};
pub use write::{ENTRY_LOG_OVERHEAD, LeafPos, Room};

#[cfg(test)]
mod tests;
