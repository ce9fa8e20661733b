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

/// The most rows that wait to be changed.
const MOST: usize = 32;

/// Keys and new images of rows that wait to be changed, and how many of them are changed.
pub(super) struct Deferred {
    bytes: Vec<u8>,
    /// For each row the ends of key and image in `bytes`.
    ends: Vec<(usize, usize)>,
    done: usize,
}

impl Deferred {
    pub(super) fn new() -> Deferred {
        Deferred {
            bytes: buffers::take(),
            ends: Vec::with_capacity(MOST),
            done: 0,
        }
    }

    /// Whether a row may wait here: both versions are stored on the tree page.
    pub(super) fn takes(key: &[u8], versions: [&[u8]; 2]) -> bool {
        let is_inline = |row: &[u8]| {
            row.len() >= RowLayout::FLAGS_END
                && !RowLayout::has_external(row)
                && !overflow::is_long((key.len(), row))
        };
        versions.into_iter().all(is_inline)
    }

    pub(super) fn push(&mut self, key: &[u8], image: &[u8]) {
        self.bytes.extend_from_slice(key);
        let key_end = self.bytes.len();
        self.bytes.extend_from_slice(image);
        self.ends.push((key_end, self.bytes.len()));
    }

    pub(super) fn is_full(&self) -> bool {
        self.ends.len() >= MOST
    }

    /// The rows that are still to be changed.
    fn rows(&self) -> impl Iterator<Item = (&[u8], &[u8])> + Clone {
        (self.done..self.ends.len()).map(|n| {
            let start = match n {
                0 => 0,
                n => self.ends[n - 1].1,
            };
            let (key_end, end) = self.ends[n];
            (&self.bytes[start..key_end], &self.bytes[key_end..end])
        })
    }

    /// Changes the rows, in their order; call again after a wait.
    pub(super) fn run(
        &mut self,
        session: &mut EngineSession,
        table: &Table,
        work: &mut Work,
    ) -> Result<(), Stop> {
        let Work { current, value, .. } = work;
        while self.done < self.ends.len() {
            let buffers = (&mut *current, &mut *value);
            let count = clustered::change_neighbours(session, table, self.rows(), buffers)?;
            if let (0, Some((key, image))) = (count, self.rows().next()) {
                let (change, none) = (Change::Image(image, true), &mut Mover::default());
                let buffers = (&mut *current, &mut *value);
                clustered::change(session, table, key, change, none, buffers)?;
            }
            self.done += count.max(1);
        }
        self.bytes.clear();
        self.ends.clear();
        self.done = 0;
        Ok(())
    }
}

impl Drop for Deferred {
    fn drop(&mut self) {
        buffers::give(&mut self.bytes);
    }
}
