//! Entries as they lie in a leaf, for those who take of them what they need rather than copies ([`PointSink`](crate::PointSink)).
//!
//! # Concurrency
//! Whatever is read here counts only when the page is validated afterwards, which is not for the reader to do; until then it may be garbage.
//! As in [`node`](crate::node), all reads are clamped.

use crate::batch::EntryBatch;
use crate::node::{Node, Slot};
use nfold_store::PageNo;
use nfold_sync::words;
use std::ops::Range;

/// Entries of one leaf, in the order of their keys.
#[derive(Clone)]
pub struct LeafEntries<'p> {
    pub(crate) node: Node<'p>,
    pub(crate) page: PageNo,
    pub(crate) slots: Range<usize>,
}

/// Entries whose cells are asked for ahead. Those of the first ones the scan has asked for itself.
const AHEAD: usize = 8;
const CELL_BYTES: usize = 64;

impl<'p> LeafEntries<'p> {
    /// The leaf that they are in.
    #[inline]
    pub fn page(&self) -> PageNo {
        self.page
    }

    /// One after the other.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = LeafEntry<'p>> + use<'p> {
        let (node, end) = (self.node, self.slots.end);
        self.slots.clone().map(move |number| {
            if number + AHEAD < end {
                words::prefetch_range(node.words(), node.slot(number + AHEAD).cell(), CELL_BYTES);
            }
            let slot = node.slot(number);
            LeafEntry { node, slot, number }
        })
    }

    /// Copies one of them.
    pub fn copy(&self, entry: &LeafEntry<'p>, point: u32, out: &mut EntryBatch) {
        let slots = entry.number..entry.number + 1;
        out.push_all(point, self.page, self.node, slots);
    }
}

/// One entry where it lies.
pub struct LeafEntry<'p> {
    node: Node<'p>,
    slot: Slot,
    number: usize,
}

impl LeafEntry<'_> {
    /// Bytes of its value.
    #[inline(always)]
    pub fn value_len(&self) -> usize {
        self.node.value_len(self.slot)
    }

    /// Eight bytes of the value from `at` on, the first one lowest. Behind the value's end, what else lies there.
    #[inline(always)]
    pub fn value_word(&self, at: usize) -> u64 {
        words::load_u64(self.node.words(), self.slot.value_at() + at)
    }

    /// Appends the last `len` bytes of the key; false: it has not so many, and what was appended means nothing.
    #[inline(always)]
    pub(crate) fn append_key_end(&self, len: usize, out: &mut Vec<u8>) -> bool {
        let (words, suffix) = (self.node.words(), self.slot.key_len());
        let Some(before) = suffix.checked_sub(len) else {
            return self.append_across_prefix(len, out);
        };
        let at = self.slot.key_at() + before;
        // Keys of one integer are copied without a loop.
        match len {
            8 => out.extend_from_slice(&words::load_u64(words, at).to_le_bytes()),
            4 => out.extend_from_slice(&words::load_u32(words, at).to_le_bytes()),
            _ => {
                let start = out.len();
                words::append_out(words, at, len, out);
                return out.len() - start == len;
            }
        }
        true
    }

    /// [`append_key_end`](Self::append_key_end), when part of it is in the page's prefix.
    #[cold]
    fn append_across_prefix(&self, len: usize, out: &mut Vec<u8>) -> bool {
        let start = out.len();
        self.node.append_key(self.slot, out);
        let whole = out.len() - start;
        if whole < len {
            out.truncate(start);
            return false;
        }
        out.drain(start..start + whole - len);
        true
    }
}
