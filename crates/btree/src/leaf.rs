//! Entries in place in a leaf, for a [`PointSink`](crate::PointSink) that extracts what it needs
//! without copies.
//!
//! # Concurrency
//! Data read here count only if the page validates afterwards, which the caller of the sink does.
//! Until then they may be garbage. As in [`node`](crate::node), all reads are clamped to the page.

use crate::batch::EntryBatch;
use crate::node::{CELL_HEAD, Node, Slot};
use nfold_store::PageNo;
use nfold_sync::words;
use std::ops::Range;

/// Entries of one leaf, in ascending or descending key order.
#[derive(Clone)]
pub struct LeafEntries<'p> {
    pub(crate) node: Node<'p>,
    pub(crate) page: PageNo,
    pub(crate) slots: Range<usize>,
    /// Whether they are in descending order.
    pub(crate) reverse: bool,
}

/// How many entries ahead cells are prefetched. The scan itself prefetches the first cells.
const AHEAD: usize = 8;
const CELL_BYTES: usize = 64;
const LINE: usize = 64;

impl<'p> LeafEntries<'p> {
    /// The page number of the leaf.
    #[inline]
    pub fn page(&self) -> PageNo {
        self.page
    }

    /// The number of entries.
    #[inline]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether there are no entries.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Whether [`each`](Self::each) visits them in descending order.
    #[inline]
    pub fn is_reverse(&self) -> bool {
        self.reverse
    }

    /// Appends the common key prefix of the page.
    #[inline]
    pub fn append_prefix(&self, out: &mut Vec<u8>) {
        self.node.append_prefix(out);
    }

    /// Calls `f` for each entry. Prefetches `bytes` bytes of key and value per entry, which should
    /// be what `f` reads as a rule.
    #[inline(always)]
    pub fn each(&self, bytes: usize, mut f: impl FnMut(LeafEntry<'p>)) {
        let (node, Range { start, end }) = (self.node, self.slots.clone());
        let bytes = bytes + CELL_HEAD;
        let ask = |number: usize| {
            let cell = node.slot(number).cell();
            match bytes <= LINE {
                true => {
                    words::prefetch(node.words(), cell);
                    words::prefetch(node.words(), cell + bytes - 1);
                }
                false => words::prefetch_range(node.words(), cell, bytes),
            }
        };
        let count = end.saturating_sub(start);
        let number = |i: usize| match self.reverse {
            false => start + i,
            true => start + (count - 1 - i),
        };
        for i in 0..count.min(AHEAD) {
            ask(number(i));
        }
        for i in 0..count {
            if i + AHEAD < count {
                ask(number(i + AHEAD));
            }
            let number = number(i);
            let slot = node.slot(number);
            f(LeafEntry { node, slot, number });
        }
    }

    /// The entries in ascending key order.
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

    /// Copies one of the entries to `out`.
    #[cold]
    pub fn copy(&self, entry: LeafEntry<'p>, point: u32, out: &mut EntryBatch) {
        let slots = entry.number..entry.number + 1;
        out.push_all(point, self.page, self.node, slots);
    }
}

/// One entry in place.
#[derive(Copy, Clone)]
pub struct LeafEntry<'p> {
    node: Node<'p>,
    slot: Slot,
    number: usize,
}

impl LeafEntry<'_> {
    /// The value's length in bytes.
    #[inline(always)]
    pub fn value_len(&self) -> usize {
        self.node.value_len(self.slot)
    }

    /// Eight bytes of the value at `at`, little-endian. Past the value's end they are the
    /// page's next bytes.
    #[inline(always)]
    pub fn value_word(&self, at: usize) -> u64 {
        words::load_u64(self.node.words(), self.slot.value_at() + at)
    }

    /// Appends at most `most` bytes of the key, without the page's common prefix.
    #[inline(always)]
    pub fn append_suffix(&self, most: usize, out: &mut Vec<u8>) {
        let len = self.slot.key_len().min(most);
        words::append_out(self.node.words(), self.slot.key_at(), len, out);
    }

    /// The key's length without the page's common prefix, in bytes.
    #[inline(always)]
    pub fn suffix_len(&self) -> usize {
        self.slot.key_len()
    }

    /// Eight bytes of the key suffix at `at`, little-endian. Past its end they are the page's
    /// next bytes.
    #[inline(always)]
    pub fn suffix_word(&self, at: usize) -> u64 {
        words::load_u64(self.node.words(), self.slot.key_at() + at)
    }

    /// As [`append_value`](Self::append_value), without a loop if that is at most `16 * N` bytes.
    #[inline(always)]
    pub fn append_short_value<const N: usize>(&self, from: usize, to: usize, out: &mut Vec<u8>) {
        let len = self.value_len().min(to).saturating_sub(from);
        words::append_short::<N>(self.node.words(), self.slot.value_at() + from, len, out);
    }

    /// Appends the bytes `from..to` of the value, clamped to its end.
    #[inline(always)]
    pub fn append_value(&self, from: usize, to: usize, out: &mut Vec<u8>) {
        let len = self.value_len().min(to).saturating_sub(from);
        words::append_out(self.node.words(), self.slot.value_at() + from, len, out);
    }

    /// The value's length, and three little-endian words around its start: the eight bytes before
    /// it and its first sixteen bytes. Past the value's end they are the page's next bytes.
    #[inline(always)]
    pub fn around_value(self) -> (usize, [u64; 3]) {
        let (cell, to_value) = (self.slot.cell(), CELL_HEAD + self.slot.key_len());
        let words = self.node.words();
        let (len, around) = words::load_u16_and_3_u64(words, cell as u32, to_value as u32);
        (len.into(), around)
    }

    /// Appends the last `len` bytes of the key. False: the key is shorter, and the appended bytes
    /// are meaningless.
    pub(crate) fn append_key_end(self, len: usize, out: &mut Vec<u8>) -> bool {
        let start = out.len();
        let at = match self.slot.key_len().checked_sub(len) {
            Some(before) => {
                words::append_out(self.node.words(), self.slot.key_at() + before, len, out);
                start
            }
            // A part of them is in the page's common prefix.
            None => {
                self.node.append_key(self.slot, out);
                let whole = out.len() - start;
                start + whole.saturating_sub(len)
            }
        };
        out.drain(start..at);
        out.len() - start == len
    }
}
