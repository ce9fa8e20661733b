//! The distinct values of the first parts of an index, one descent for each.
//!
//! # Invariants
//! X1. Each visible row has an entry in the index as long as a view may see the row. A prefix of
//!     every visible row is therefore found; others may be found as well, of entries that the view
//!     does not see.
//!
//! # Concurrency
//! Optimistic reads: nothing is written to the pages.

use std::ops::Bound;
use std::sync::Arc;

use nfold_btree::{Cursor, EntryBatch};
use nfold_types::key::prefix_successor;

use crate::error::{Stop, lift};
use crate::read::damaged;
use crate::session::EngineSession;
use crate::table::Table;

/// A walk over the distinct prefixes of an index, in key order.
pub struct KeyPrefixes {
    table: Arc<Table>,
    index: usize,
    parts: usize,
    cursor: Cursor,
    entries: EntryBatch,
    /// The last prefix found, or the key at which the walk begins.
    prefix: Vec<u8>,
    /// Whether the cursor stands where the next prefix is looked for.
    placed: bool,
    ended: bool,
}

impl KeyPrefixes {
    /// Walks over the first `parts` parts of index number `index`.
    pub fn new(table: Arc<Table>, index: usize, parts: usize) -> KeyPrefixes {
        KeyPrefixes {
            table,
            index,
            parts,
            cursor: Cursor::default(),
            entries: EntryBatch::default(),
            prefix: Vec::new(),
            placed: false,
            ended: false,
        }
    }

    /// Starts over.
    pub fn restart(&mut self) {
        self.prefix.clear();
        (self.placed, self.ended) = (false, false);
    }

    /// The last prefix found.
    pub fn prefix(&self) -> &[u8] {
        &self.prefix
    }

    /// Goes to the next prefix. Returns false if there are no more. After a wait, call again.
    ///
    /// # Errors
    /// I/O errors and corruption.
    pub fn next(&mut self, session: &mut EngineSession) -> Result<bool, Stop> {
        session.open_view();
        session.check_usable(self.table.index(self.index))?;
        let index = self.table.index(self.index);
        if !self.placed && !self.ended {
            let first = self.prefix.is_empty();
            self.ended = !first && !prefix_successor(&mut self.prefix);
            let from = Bound::Included(self.prefix.as_slice());
            self.cursor.reset(from, Bound::Unbounded, false);
            self.placed = true;
        }
        while !self.ended {
            self.entries.clear();
            let more = self
                .cursor
                .next_batch(&index.tree, session.store(), 1, &mut self.entries)
                .map_err(lift)?;
            if let Some(entry) = self.entries.entries().first() {
                let key = self.entries.key(entry);
                let len = index
                    .key
                    .prefix_bytes(key, self.parts)
                    .map_err(|_| damaged())?;
                self.prefix.clear();
                self.prefix.extend_from_slice(&key[..len]);
                self.placed = false;
                return Ok(true);
            }
            self.ended = !more;
        }
        Ok(false)
    }
}
