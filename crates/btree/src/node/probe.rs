//! Searches a page for a key whose compared bytes are held in registers.

use super::{Key, Node, PORTION_BITS, Slot, head_of, padded_word, portion};
use nfold_sync::words;
use std::cmp::Ordering;

/// The number of slots on either side of the expected one that are compared together.
const AROUND: usize = 4;

/// A key prepared for comparison on one page, which covers it: its suffix after the page's common
/// prefix.
#[derive(Copy, Clone)]
pub(crate) struct Probe<'k> {
    pub head: u32,
    /// The eight bytes of the suffix behind the head, big-endian, padded with zeros.
    tail: u64,
    len: usize,
    prefix: usize,
    key: Key<'k>,
}

impl Probe<'_> {
    /// The suffix behind the head, for comparisons that `tail` does not decide.
    fn rest(&self) -> &[u8] {
        self.key.bytes().get(self.prefix + 4..).unwrap_or(&[])
    }
}

impl<'a> Node<'a> {
    /// Prepares `key` for a search of this page.
    #[inline(always)]
    pub(crate) fn probe(self, key: Key<'_>) -> Probe<'_> {
        let prefix = self.prefix_len();
        let len = key.len.saturating_sub(prefix);
        let (head, tail) = if key.len <= 8 {
            // The word contains the whole key.
            let word = key.word.unbounded_shl(8 * prefix as u32);
            ((word >> 32) as u32, word << 32)
        } else {
            let suffix = key.bytes().get(prefix..).unwrap_or(&[]);
            let tail = padded_word(suffix.get(4..).unwrap_or(&[]));
            (head_of(suffix), tail)
        };
        Probe {
            head,
            tail,
            len,
            prefix,
            key,
        }
    }

    /// The first eight bytes of a slot's suffix, big-endian, padded with zeros.
    #[inline]
    pub(crate) fn suffix_word(self, slot: Slot) -> u64 {
        u64::from(slot.head()) << 32 | self.tail_word(slot) >> 32
    }

    /// The first slot whose head is ≥ `head`, or `None` if it is not among the slots around
    /// `expected`.
    #[inline(always)]
    pub(crate) fn near(self, expected: usize, count: usize, head: u32) -> Option<usize> {
        let from = expected.saturating_sub(AROUND);
        if from + 2 * AROUND > count {
            return None;
        }
        // The head is the upper half of a slot's word.
        let least = u64::from(head) << 32;
        let below: usize = (0..2 * AROUND)
            .map(|i| usize::from(self.slot(from + i).0 < least))
            .sum();
        // Slots ascend. The answer lies inside if the first slot is below `head`, or is slot 0, and
        // the last one is not below it.
        let inside = (below > 0 || from == 0) && below < 2 * AROUND;
        inside.then_some(from + below)
    }

    /// The result of [`search_behind`](Self::search_behind) if it lies near `expected`: the key is
    /// above one slot and not above the next, and both have the key's head. Otherwise `None`.
    #[inline]
    pub(crate) fn between(
        self,
        expected: usize,
        count: usize,
        probe: &Probe<'_>,
    ) -> Option<(usize, bool)> {
        let mut at = expected;
        for _ in 0..AROUND {
            let (low, high) = (self.slot(at), self.slot(at + 1));
            if at + 1 >= count || low.head() != probe.head || high.head() != probe.head {
                return None;
            }
            if self.compare_probe(low, probe).is_ge() {
                at = at.checked_sub(1)?;
                continue;
            }
            let order = self.compare_probe(high, probe);
            if order.is_ge() {
                return Some((at + 1, order.is_eq()));
            }
            at += 1;
        }
        None
    }

    /// [`search_head`](Self::search_head) as a function call, for callers that seldom need it.
    #[inline(never)]
    pub(crate) fn search_head_slowly(self, count: usize, head: u32) -> usize {
        self.search_head(count, head)
    }

    /// The first slot whose key is ≥ the probe's key, and whether its key is equal. `first` is the
    /// first slot whose head is not below the probe's. May read cells.
    #[inline(always)]
    pub(crate) fn search_behind(
        self,
        first: usize,
        count: usize,
        probe: &Probe<'_>,
    ) -> (usize, bool) {
        let slot = self.slot(first);
        if first >= count || slot.head() != probe.head {
            return (first, false);
        }
        let order = self.compare_probe(slot, probe);
        if order.is_ge() {
            return (first, order.is_eq());
        }
        if first + 1 >= count || self.slot(first + 1).head() != probe.head {
            return (first + 1, false);
        }
        let suffix = self.suffix(probe.key.bytes());
        self.search_equal_heads(first + 1, count, probe.head, suffix)
    }

    /// Compares the key of `slot`, which has the probe's head, with the probe's key.
    #[inline(always)]
    fn compare_probe(self, slot: Slot, probe: &Probe<'_>) -> Ordering {
        let len = slot.key_len();
        // Both suffixes lie within the head, so only their lengths can differ. The cell need not be
        // read.
        if len <= 4 && probe.len <= 4 {
            return len.cmp(&probe.len);
        }
        let have = self.tail_word(slot);
        // Unequal zero-padded words have the order of their keys.
        if have != probe.tail {
            return have.cmp(&probe.tail);
        }
        // The words are equal. If neither key is longer than the word, they can differ only in
        // zeros at the end of the longer one.
        if len <= 12 && probe.len <= 12 {
            return len.cmp(&probe.len);
        }
        self.compare_rest(slot, probe)
    }

    #[inline(never)]
    fn compare_rest(self, slot: Slot, probe: &Probe<'_>) -> Ordering {
        let len = slot.key_len().saturating_sub(4);
        words::compare(self.words, slot.key_at() + 4, len, probe.rest())
    }

    /// The relative position of the probe between the key of slot `slot` of an inner page and the
    /// key of the next slot, in [`PORTION_BITS`] bits. `None` for the last slot, because the page
    /// does not contain the end of its range.
    #[inline(always)]
    pub(crate) fn portion_of(self, slot: usize, count: usize, probe: &Probe<'_>) -> Option<u32> {
        if slot + 1 >= count {
            return None;
        }
        let (low, high) = (self.slot(slot), self.slot(slot + 1));
        if low.head() != high.head() {
            // The bytes behind the head make too small a difference for a portion to show.
            let way = u64::from(high.head().wrapping_sub(low.head()));
            let done = u64::from(probe.head.saturating_sub(low.head()));
            return Some(((done << PORTION_BITS) / way).min(1 << PORTION_BITS) as u32);
        }
        let (low, high) = (self.tail_word(low), self.tail_word(high));
        Some(portion(low, high, probe.tail))
    }
}
