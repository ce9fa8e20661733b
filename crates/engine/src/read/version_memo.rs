//! Remembers the visible version of rows with long version chains, so that a reader that meets many
//! index entries of one row walks its chain once.
//!
//! # Invariants
//! M1. For one snapshot the visible version of a row never changes, apart from the reader's own
//!     changes. Own changes are the newest version of their row, and a row whose newest version is
//!     visible does not come here. So snapshot and primary key identify the version.
//! M2. Another snapshot empties the memo. READ COMMITTED opens one per statement.
//!
//! # Cost
//! Nothing for rows whose newest version is visible. Chains shorter than [`LONG_CHAIN`] are not
//! remembered. A memo holds at most [`MEMO_BYTES`] and starts over when it is full.

use nfold_txn::view::Snapshot;
use rustc_hash::FxHashMap;

/// Chains of this many versions are worth remembering.
pub(super) const LONG_CHAIN: usize = 8;
/// Bytes of keys and versions in one memo, at most.
const MEMO_BYTES: usize = 1 << 20;
/// Bytes counted per row beside its key and its version.
const ROW_OVERHEAD: usize = 64;

/// The versions of one table's rows that a snapshot sees, by primary key: header and image, or
/// `None` if it does not see the row.
pub(super) struct VersionMemo {
    snapshot: Snapshot,
    rows: FxHashMap<Box<[u8]>, Option<Box<[u8]>>>,
    bytes: usize,
}

impl VersionMemo {
    pub(super) fn new(snapshot: Snapshot) -> VersionMemo {
        VersionMemo {
            snapshot,
            rows: FxHashMap::default(),
            bytes: 0,
        }
    }

    /// The remembered version of the row under `primary`, if `snapshot` is the memo's (M1).
    pub(super) fn get(&self, snapshot: &Snapshot, primary: &[u8]) -> Option<Option<&[u8]>> {
        let same = self.snapshot == *snapshot;
        same.then(|| self.rows.get(primary))
            .flatten()
            .map(Option::as_deref)
    }

    /// Remembers what `snapshot` sees of the row under `primary`.
    pub(super) fn put(&mut self, snapshot: Snapshot, primary: &[u8], version: Option<&[u8]>) {
        let bytes = primary.len() + version.map_or(0, <[u8]>::len) + ROW_OVERHEAD;
        if self.snapshot != snapshot || self.bytes + bytes > MEMO_BYTES {
            self.rows.clear(); // M2
            self.bytes = 0;
            self.snapshot = snapshot;
        }
        if bytes > MEMO_BYTES {
            return;
        }
        let old = self.rows.insert(primary.into(), version.map(Box::from));
        if old.is_none() {
            self.bytes += bytes;
        }
    }

    pub(super) fn memory(&self) -> usize {
        self.bytes
    }
}
