//! Searching a page for a key of which what is compared stands in registers.

use super::{Key, Node, PORTION_BITS, Slot, head_of, padded_word, portion};
use nfold_sync::words;
use std::cmp::Ordering;

/// Slots on either side of an expected one that are looked at together.
const AROUND: usize = 4;

/// A key as one page compares it: its suffix behind the page's prefix. The page covers it.
#[derive(Copy, Clone)]
pub(crate) struct Probe<'k> {
    pub head: u32,
    /// The eight bytes behind the head, big-endian, zeros behind the key's end.
    tail: u64,
    len: usize,
    prefix: usize,
    key: Key<'k>,
}

impl Probe<'_> {
    /// The suffix behind the head, for the comparisons that the tail does not decide.
    fn rest(&self) -> &[u8] {
        self.key.bytes().get(self.prefix + 4..).unwrap_or(&[])
    }
}

impl<'a> Node<'a> {
    /// What a search of this page needs of `key`.
    #[inline(always)]
    pub(crate) fn probe(self, key: Key<'_>) -> Probe<'_> {
        let prefix = self.prefix_len();
        let len = key.len.saturating_sub(prefix);
        let (head, tail) = if key.len <= 8 {
            // All of it is in the word.
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

    /// The first eight bytes of a slot's suffix, big-endian, zeros behind its end.
    #[inline]
    pub(crate) fn suffix_word(self, slot: Slot) -> u64 {
        u64::from(slot.head()) << 32 | self.tail_word(slot) >> 32
    }

    /// First slot whose head is ≥ `head`, if that is one of those around `guess`.
    #[inline(always)]
    pub(crate) fn near(self, guess: usize, count: usize, head: u32) -> Option<usize> {
        let from = guess.saturating_sub(AROUND);
        if from + 2 * AROUND > count {
            return None;
        }
        // A slot begins with its head.
        let least = u64::from(head) << 32;
        let below: usize = (0..2 * AROUND)
            .map(|i| usize::from(self.slot(from + i).0 < least))
            .sum();
        // Slots ascend: the first is below, or nothing is before it; the last is not.
        let inside = (below > 0 || from == 0) && below < 2 * AROUND;
        inside.then_some(from + below)
    }

    /// [`search_behind`](Self::search_behind)'s answer, if the key is above that of a slot near `guess` and no higher than that of the next one, and all
    /// have one head.
    #[inline]
    pub(crate) fn between(
        self,
        guess: usize,
        count: usize,
        probe: &Probe<'_>,
    ) -> Option<(usize, bool)> {
        let mut at = guess;
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

    /// First slot whose head is ≥ `head`.
    #[inline(never)]
    pub(crate) fn search_head_slowly(self, count: usize, head: u32) -> usize {
        self.search_head(count, head)
    }

    /// First slot whose key is ≥ the probe's, and whether it is equal, when `first` is the first one whose head is not below: the part that may read
    /// cells.
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

    /// How the key of `slot`, whose head is the probe's, compares with it.
    #[inline(always)]
    fn compare_probe(self, slot: Slot, probe: &Probe<'_>) -> Ordering {
        let len = slot.key_len();
        // Equal heads hold the whole of both: no need to look at the cell.
        if len <= 4 && probe.len <= 4 {
            return len.cmp(&probe.len);
        }
        let have = self.tail_word(slot);
        // Words padded with zeros that differ are in the order of the keys.
        if have != probe.tail {
            return have.cmp(&probe.tail);
        }
        // Equal ones: if neither key goes on behind them, they differ at most in zeros at the end of the longer one.
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

    /// How far the probe lies on the way from the key of an inner page's slot to that of the next, in units of [`PORTION_BITS`]; `None` behind the
    /// last slot, where the page does not say.
    #[inline(always)]
    pub(crate) fn portion_of(self, slot: usize, count: usize, probe: &Probe<'_>) -> Option<u32> {
        if slot + 1 >= count {
            return None;
        }
        let (low, high) = (self.slot(slot), self.slot(slot + 1));
        if low.head() != high.head() {
            // The keys' further bytes are less than what a portion tells apart.
            let way = u64::from(high.head().wrapping_sub(low.head()));
            let done = u64::from(probe.head.saturating_sub(low.head()));
            return Some(((done << PORTION_BITS) / way).min(1 << PORTION_BITS) as u32);
        }
        let (low, high) = (self.tail_word(low), self.tail_word(high));
        Some(portion(low, high, probe.tail))
    }
}
