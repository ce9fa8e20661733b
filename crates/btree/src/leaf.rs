//! Entries as they lie in a leaf, for those who take of them what they need rather than copies ([`PointSink`](crate::PointSink)).
//!
//! # Concurrency
//! Whatever is read here counts only when the page is validated afterwards, which is not for the reader to do; until then it may be garbage.
//! As in [`node`](crate::node), all reads are clamped.

use crate::batch::EntryBatch;
use crate::node::{CELL_HEAD, Node, Slot};
use nfold_store::PageNo;
use nfold_sync::words;
use std::ops::Range;

/// Entries of one leaf, in the order of their keys or in the other one.
#[derive(Clone)]
pub struct LeafEntries<'p> {
    pub(crate) node: Node<'p>,
    pub(crate) page: PageNo,
    pub(crate) slots: Range<usize>,
    /// The last one comes first.
    pub(crate) reverse: bool,
}

/// Entries whose cells are asked for ahead. Those of the first ones the scan has asked for itself.
const AHEAD: usize = 8;
const CELL_BYTES: usize = 64;
const LINE: usize = 64;

impl<'p> LeafEntries<'p> {
    /// The leaf that they are in.
    #[inline]
    pub fn page(&self) -> PageNo {
        self.page
    }

    /// How many there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Whether [`each`](Self::each) gives them backwards.
    #[inline]
    pub fn is_reverse(&self) -> bool {
        self.reverse
    }

    /// Appends what all their keys begin with.
    #[inline]
    pub fn append_prefix(&self, out: &mut Vec<u8>) {
        self.node.append_prefix(out);
    }

    /// Gives `f` one after the other, of which it reads no more than the first `bytes` of key and value, mostly.
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

    /// One after the other, in the order of their keys.
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
    #[cold]
    pub fn copy(&self, entry: LeafEntry<'p>, point: u32, out: &mut EntryBatch) {
        let slots = entry.number..entry.number + 1;
        out.push_all(point, self.page, self.node, slots);
    }
}

/// One entry where it lies.
#[derive(Copy, Clone)]
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

    /// Appends the key behind what all keys of the page begin with, no more than `most` bytes.
    #[inline(always)]
    pub fn append_suffix(&self, most: usize, out: &mut Vec<u8>) {
        let len = self.slot.key_len().min(most);
        words::append_out(self.node.words(), self.slot.key_at(), len, out);
    }

    /// Bytes of the key behind what all keys of the page begin with.
    #[inline(always)]
    pub fn suffix_len(&self) -> usize {
        self.slot.key_len()
    }

    /// Eight bytes of that from `at` on, the first one lowest. Behind its end, what else lies there.
    #[inline(always)]
    pub fn suffix_word(&self, at: usize) -> u64 {
        words::load_u64(self.node.words(), self.slot.key_at() + at)
    }

    /// As [`append_value`](Self::append_value), without a loop where that is no more than `16 * N` bytes.
    #[inline(always)]
    pub fn append_short_value<const N: usize>(&self, from: usize, to: usize, out: &mut Vec<u8>) {
        let len = self.value_len().min(to).saturating_sub(from);
        words::append_short::<N>(self.node.words(), self.slot.value_at() + from, len, out);
    }

    /// Appends the value from byte `from` to byte `to`, or to its end where that comes first.
    #[inline(always)]
    pub fn append_value(&self, from: usize, to: usize, out: &mut Vec<u8>) {
        let len = self.value_len().min(to).saturating_sub(from);
        words::append_out(self.node.words(), self.slot.value_at() + from, len, out);
    }

    /// How long the value is, and words around where it begins: the eight bytes before it and the first sixteen of it, the first one lowest in each word. Behind
    /// the value's end, what else lies there.
    #[inline(always)]
    pub fn around_value(self) -> (usize, [u64; 3]) {
        let (cell, to_value) = (self.slot.cell(), CELL_HEAD + self.slot.key_len());
        let words = self.node.words();
        let (len, around) = words::load_u16_and_3_u64(words, cell as u32, to_value as u32);
        (len.into(), around)
    }

    /// Appends the last `len` bytes of the key; false: it has not so many, and what was appended means nothing.
    pub(crate) fn append_key_end(self, len: usize, out: &mut Vec<u8>) -> bool {
        let start = out.len();
        let at = match self.slot.key_len().checked_sub(len) {
            Some(before) => {
                words::append_out(self.node.words(), self.slot.key_at() + before, len, out);
                start
            }
            // Part of it is in the page's prefix.
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
