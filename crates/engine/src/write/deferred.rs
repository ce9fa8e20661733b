//! Rows of an UPDATE that are changed together: one mini-transaction changes those that lie side by
//! side on a leaf of the clustered index.
//!
//! # Cost
//! A mini-transaction latches the leaf and the undo page, and reserves log space, once for all of
//! its rows. A bulk update takes some two thirds of the processor time that it takes row by row.

use nfold_types::row::RowLayout;

use crate::error::Stop;
use crate::overflow::{self, Mover};
use crate::session::EngineSession;
use crate::table::Table;
use crate::write::clustered::{self, Change};
use crate::write::{Work, buffers};

/// The most rows that wait.
pub(super) const MOST: usize = 32;

/// Whether a row image is stored whole on the tree page, behind a key of `key_len` bytes.
pub(super) fn is_inline(key_len: usize, row: &[u8]) -> bool {
    row.len() >= RowLayout::FLAGS_END
        && !RowLayout::has_external(row)
        && !overflow::is_long((key_len, row))
}

/// Clustered keys and images of rows.
pub(super) struct RowList {
    bytes: Vec<u8>,
    /// For each row the ends of key and image in `bytes`.
    ends: Vec<(usize, usize)>,
}

impl RowList {
    pub(super) fn new() -> RowList {
        RowList {
            bytes: buffers::take(),
            ends: Vec::with_capacity(MOST),
        }
    }

    pub(super) fn push(&mut self, key: &[u8], image: &[u8]) {
        self.bytes.extend_from_slice(key);
        let key_end = self.bytes.len();
        self.bytes.extend_from_slice(image);
        self.ends.push((key_end, self.bytes.len()));
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The bytes of all keys and images.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Key and image of row `n`.
    pub(super) fn row(&self, n: usize) -> (&[u8], &[u8]) {
        let start = match n {
            0 => 0,
            n => self.ends[n - 1].1,
        };
        let (key_end, end) = self.ends[n];
        (&self.bytes[start..key_end], &self.bytes[key_end..end])
    }

    /// The rows from row `n` on.
    pub(super) fn from(&self, n: usize) -> impl Iterator<Item = (&[u8], &[u8])> + Clone {
        (n..self.len()).map(|n| self.row(n))
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }
}

impl Drop for RowList {
    fn drop(&mut self) {
        buffers::give(&mut self.bytes);
    }
}

/// Keys and new images of rows that wait to be changed, and how many of them are changed.
pub(super) struct Deferred {
    rows: RowList,
    done: usize,
}

impl Deferred {
    pub(super) fn new() -> Deferred {
        Deferred {
            rows: RowList::new(),
            done: 0,
        }
    }

    /// Whether a row may wait here: both versions are stored on the tree page.
    pub(super) fn takes(key: &[u8], versions: [&[u8]; 2]) -> bool {
        versions.into_iter().all(|row| is_inline(key.len(), row))
    }

    pub(super) fn push(&mut self, key: &[u8], image: &[u8]) {
        self.rows.push(key, image);
    }

    pub(super) fn is_full(&self) -> bool {
        self.rows.len() >= MOST
    }

    /// Changes the rows, in their order; call again after a wait.
    pub(super) fn run(
        &mut self,
        session: &mut EngineSession,
        table: &Table,
        work: &mut Work,
    ) -> Result<(), Stop> {
        let Work { current, value, .. } = work;
        while self.done < self.rows.len() {
            let buffers = (&mut *current, &mut *value);
            let rows = self.rows.from(self.done);
            let count = clustered::change_neighbours(session, table, rows, buffers)?;
            if count == 0 {
                let (key, image) = self.rows.row(self.done);
                let (change, none) = (Change::Image(image, true), &mut Mover::default());
                let buffers = (&mut *current, &mut *value);
                clustered::change(session, table, key, change, none, buffers)?;
            }
            self.done += count.max(1);
        }
        self.rows.clear();
        self.done = 0;
        Ok(())
    }
}
