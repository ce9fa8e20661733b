//! Walks of rollback over an index (`undo::lost`) that wait for pages; a table keeps its own.

use nfold_btree::Cursor;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

/// Which walk: undo pointer, ordinal of the index, whether a delete-marked entry is looked for.
type Walk = (u64, usize, bool);

/// The walks of a table that wait for pages.
#[derive(Default)]
pub(crate) struct LostEntries(pub Mutex<FxHashMap<Walk, Cursor>>);
