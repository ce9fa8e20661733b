//! The texts of one group of a GROUP_CONCAT with ORDER BY.
//!
//! # Picture
//! ```text
//! entries  | chunk, offset, key length, text length | ...      16 bytes each, sorted at the end
//! chunks   | key text key text ... |  | key text ... |          each at most CHUNK_BYTES, or one text
//! ```
//! # Cost
//! Millions of texts are freed at once with their chunks, and not one by one, which would hold the
//! worker for a tenth of a second.

use std::cmp::Ordering;

use nfold_types::SqlError;

use crate::env::stoppable_sort;
use crate::expr::eval::EvalCx;

/// A chunk grows to this size before the next one begins.
const CHUNK_BYTES: usize = 256 << 10;

#[derive(Clone, Copy)]
struct Entry {
    chunk: u32,
    offset: u32,
    key: u32,
    text: u32,
}

/// See the module's header.
#[derive(Default)]
pub(crate) struct OrderedTexts {
    chunks: Vec<Vec<u8>>,
    entries: Vec<Entry>,
    /// Bytes of all keys and of all texts.
    key_bytes: usize,
    text_bytes: usize,
    /// Room for the key and the text of one row, reused for each.
    row: Vec<u8>,
}

impl OrderedTexts {
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Bytes of memory, near enough.
    pub fn bytes(&self) -> usize {
        self.key_bytes + self.text_bytes + size_of::<Entry>() * self.entries.len()
    }

    /// Adds the text of a row. `key` and `text` append their bytes.
    ///
    /// # Errors
    /// That of `key`.
    pub fn push_row(
        &mut self,
        key: impl FnOnce(&mut Vec<u8>) -> Result<(), SqlError>,
        text: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), SqlError> {
        let mut row = std::mem::take(&mut self.row);
        row.clear();
        key(&mut row)?;
        let key = row.len();
        text(&mut row);
        self.push(&row[..key], &row[key..]);
        self.row = row;
        Ok(())
    }

    /// Adds a text behind all others of the same key. Keys are compared byte by byte.
    fn push(&mut self, key: &[u8], text: &[u8]) {
        let size = key.len() + text.len();
        let room = |chunk: &Vec<u8>| chunk.len() + size <= CHUNK_BYTES.max(chunk.capacity());
        if !self.chunks.last().is_some_and(room) {
            let first = self.chunks.is_empty();
            let capacity = if first { size } else { CHUNK_BYTES.max(size) };
            self.chunks.push(Vec::with_capacity(capacity));
        }
        let number = self.chunks.len() as u32 - 1;
        if let Some(chunk) = self.chunks.last_mut() {
            self.entries.push(Entry {
                chunk: number,
                offset: chunk.len() as u32,
                key: key.len() as u32,
                text: text.len() as u32,
            });
            chunk.extend_from_slice(key);
            chunk.extend_from_slice(text);
        }
        self.key_bytes += key.len();
        self.text_bytes += text.len();
    }

    fn key(&self, entry: Entry) -> &[u8] {
        &self.chunks[entry.chunk as usize][entry.offset as usize..][..entry.key as usize]
    }

    fn text(&self, entry: Entry) -> &[u8] {
        let from = entry.offset as usize + entry.key as usize;
        &self.chunks[entry.chunk as usize][from..][..entry.text as usize]
    }

    /// Sorts the texts by their keys; those of equal keys stay in the order in which they came.
    pub fn sort(&mut self, cx: &EvalCx<'_>) -> Result<(), SqlError> {
        let mut entries = std::mem::take(&mut self.entries);
        let cost = (50 + self.key_bytes / (16 * entries.len().max(1))) as u64;
        let order = |a: &Entry, b: &Entry| -> Ordering {
            let keys = self.key(*a).cmp(self.key(*b));
            keys.then((a.chunk, a.offset).cmp(&(b.chunk, b.offset)))
        };
        let sorted = stoppable_sort::sort_by(&mut entries, cx.st.checkpoint, cost, &order);
        self.entries = entries;
        sorted
    }

    /// The texts, in the order of the last [`sort`](Self::sort).
    pub fn texts(&self) -> impl Iterator<Item = &[u8]> {
        self.entries.iter().map(|entry| self.text(*entry))
    }

    /// Sorts the texts, and keeps those that `max` bytes of result have room for, and one more,
    /// which is cut off.
    pub fn forget_cut_off(
        &mut self,
        cx: &EvalCx<'_>,
        separator: usize,
        max: usize,
    ) -> Result<(), SqlError> {
        self.sort(cx)?;
        let mut kept = OrderedTexts::default();
        let mut length = 0usize;
        for entry in &self.entries {
            kept.push(self.key(*entry), self.text(*entry));
            length += entry.text as usize + separator;
            // The first text has no separator before it.
            if length > max.saturating_add(separator) {
                break;
            }
        }
        *self = kept;
        Ok(())
    }
}
