//! Tree pages: byte layout and the functions that read one. Used by every other module of this crate.
//!
//! # Picture
//! ```text
//!   0  page header of the store (64 bytes; page type, level, index id, newest transaction id ...)
//!  64  u16 slot count        66  u16 cell start       68  u16 garbage bytes      70  u16 prefix length
//!  72  u16 lower fence len   74  u16 upper fence len  76  u16 last insert slot   78  u16 ascending inserts in a row
//!  80  u32 left sibling      84  u32 right sibling    88  first 8 bytes of the prefix
//!  96  16 search hints, u32: the heads of the slots at 1, 2, ... 16 times (slot count / 17)
//! 160  slots, growing up: u64 = key head << 32 | cell offset << 16 | length of the key's suffix
//!      ...free...
//!      cells, growing down: [u16 value length][key suffix][value]      (inner page: the value is the child, u32)
//!      upper fence, lower fence: the last bytes of the page
//! ```
//! A page holds the keys of `[lower fence, upper fence)`; an upper fence length of 0xFFFF means "no upper bound", an empty
//! lower fence is below every key. All its keys share `prefix length` bytes, the common prefix of the fences, which are stored
//! once, as the first bytes of the lower fence; `suffix` is what follows. `key head` is the first 4 bytes of the suffix as a
//! big-endian number, zero-padded. Slot `i` of an inner page covers the keys from its own key up to that of slot `i + 1`;
//! its slot 0 holds the page's lower fence. The hints lead a search to a seventeenth of the slots, so that it touches one or two cache
//! lines of them and not all. Siblings are linked at level 0 only; page number 0 (the space header) means none.
//!
//! # Invariants
//! - N1: slots are sorted by key, strictly; every key lies within the fences.
//! - N2: slots end at or before `cell start`; cells and fences fill the rest, except for `garbage bytes`.
//! - N3: the prefix is the whole common prefix of the fences (0 without an upper fence).
//! - N5: hints and prefix bytes are what slots and fences say; hints are 0 below 17 slots.
//! - N4: an inner page has at least one slot, and slot 0's key is the lower fence.
//! # Concurrency
//! Readers hold no latch: what they read may be torn. Each function here clamps what it reads, so that it neither panics, reads
//! outside the page nor loops for long; the caller validates the page word before it believes anything.
//! # Cost
//! No allocation but for appending to the caller's vectors; a probe of the binary search is one aligned load.

use nfold_store::{PAGE_SIZE, PageNo, header};
use nfold_sync::words;
use std::cmp::Ordering;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

pub(crate) mod edit;
mod probe;
#[cfg(test)]
mod tests;

pub(crate) use probe::Probe;

pub(crate) const PAGE_WORDS: usize = PAGE_SIZE / 8;
pub(crate) const OFF_COUNT: usize = 64;
pub(crate) const OFF_CELL_START: usize = 66;
pub(crate) const OFF_GARBAGE: usize = 68;
pub(crate) const OFF_PREFIX: usize = 70;
pub(crate) const OFF_LOWER_LEN: usize = 72;
pub(crate) const OFF_UPPER_LEN: usize = 74;
pub(crate) const OFF_LAST_INSERT: usize = 76;
pub(crate) const OFF_RUN: usize = 78;
pub(crate) const OFF_LEFT: usize = 80;
pub(crate) const OFF_RIGHT: usize = 84;
pub(crate) const OFF_PREFIX_BYTES: usize = 88;
/// Bytes of a key's head, and of the first word of a [`Key`].
const HEAD_BYTES: usize = 4;
pub(crate) const WORD_BYTES: usize = 8;
/// Bytes of the prefix that stand in the header.
pub(crate) const PREFIX_BYTES: usize = 8;
pub(crate) const OFF_HINTS: usize = 96;
pub(crate) const HINTS: usize = 16;
pub(crate) const SLOTS: usize = OFF_HINTS + 4 * HINTS;
pub(crate) const SLOT_WORD: usize = SLOTS / 8;
pub(crate) const MAX_SLOTS: usize = (PAGE_SIZE - SLOTS) / 8;
/// Most bytes of slots that are prefetched.
const PREFETCH_MAX: usize = 512;
/// End of the slots that are prefetched blindly: 108 of them.
const FIRST_SLOTS: usize = 1024;
/// Slots on either side of an expected one that are tried before the whole page.
pub(crate) const NEAR: usize = 4;
/// Bytes a cell has besides key suffix and value.
pub(crate) const CELL_HEAD: usize = 2;
/// Bytes of an entry besides key suffix and value: slot and cell head.
pub(crate) const ENTRY_OVERHEAD: usize = 8 + CELL_HEAD;
/// `upper fence len` of a page without an upper bound.
pub(crate) const NO_UPPER: u16 = u16::MAX;
/// Bytes for slots, cells and fences.
pub(crate) const CAPACITY: usize = PAGE_SIZE - SLOTS;

/// The first 4 bytes of `suffix` as a big-endian number, zero-padded: equal heads decide nothing, unequal heads decide the order.
#[inline(always)]
pub(crate) fn head_of(suffix: &[u8]) -> u32 {
    match suffix.first_chunk::<4>() {
        Some(head) => u32::from_be_bytes(*head),
        None => short_head(suffix),
    }
}

/// [`head_of`] for less than four bytes: two loads that overlap, where a copy of unknown length would be a call.
#[inline(always)]
fn short_head(suffix: &[u8]) -> u32 {
    match (suffix.first_chunk::<2>(), suffix.last_chunk::<2>()) {
        (Some(first), Some(last)) => {
            let (first, last) = (u16::from_be_bytes(*first), u16::from_be_bytes(*last));
            u32::from(first) << 16 | u32::from(last) << (8 * (4 - suffix.len()) % 32)
        }
        _ => suffix.first().map_or(0, |b| u32::from(*b) << 24),
    }
}

/// A key with its first word: enough for most looks at a page, so that the bytes are fetched when it does not decide.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Key<'k> {
    /// [`padded_word`] of the bytes.
    pub word: u64,
    pub len: usize,
    /// Where the bytes end in `arena`.
    pub end: usize,
    pub arena: &'k [u8],
    /// Where the bytes are if there are no more than these.
    pub short: Option<&'k [u8; WORD_BYTES]>,
}

impl<'k> Key<'k> {
    #[inline(always)]
    pub(crate) fn bytes(self) -> &'k [u8] {
        if let Some(bytes) = self.short.and_then(|short| short.get(..self.len)) {
            return bytes;
        }
        let start = self.end.wrapping_sub(self.len);
        self.arena.get(start..self.end).unwrap_or(&[])
    }
    /// Whether the word holds all that a page with a common prefix of `prefix` bytes needs of the head.
    #[inline(always)]
    fn has_head_behind(self, prefix: usize) -> bool {
        prefix <= WORD_BYTES - HEAD_BYTES || (self.len <= WORD_BYTES && prefix < WORD_BYTES)
    }
}

impl<'k> From<&'k [u8]> for Key<'k> {
    fn from(arena: &'k [u8]) -> Key<'k> {
        Key {
            word: padded_word(arena),
            len: arena.len(),
            end: arena.len(),
            arena,
            short: None,
        }
    }
}

/// One slot as it was loaded.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Slot(pub u64);

impl Slot {
    pub(crate) fn new(head: u32, cell: usize, key_len: usize) -> Slot {
        Slot((u64::from(head) << 32) | ((cell as u64 & 0xFFFF) << 16) | (key_len as u64 & 0xFFFF))
    }
    #[inline(always)]
    pub(crate) fn head(self) -> u32 {
        (self.0 >> 32) as u32
    }
    #[inline(always)]
    pub(crate) fn cell(self) -> usize {
        (self.0 >> 16) as usize & 0xFFFF
    }
    /// Length of the key's suffix.
    #[inline(always)]
    pub(crate) fn key_len(self) -> usize {
        self.0 as usize & 0xFFFF
    }
    #[inline(always)]
    pub(crate) fn key_at(self) -> usize {
        self.cell() + CELL_HEAD
    }
    #[inline(always)]
    pub(crate) fn value_at(self) -> usize {
        self.key_at() + self.key_len()
    }
}

/// A page's words, read as a tree page. What it returns is to be believed only after the page word was validated.
#[derive(Copy, Clone)]
pub(crate) struct Node<'a> {
    words: &'a [AtomicU64; PAGE_WORDS],
}

impl<'a> Node<'a> {
    /// `words` are the whole page.
    #[inline(always)]
    pub(crate) fn new(words: &'a [AtomicU64]) -> Node<'a> {
        Node {
            words: words.try_into().expect("a page has PAGE_WORDS words"),
        }
    }

    #[inline(always)]
    pub(crate) fn words(self) -> &'a [AtomicU64] {
        self.words
    }

    #[inline(always)]
    fn word(self, index: usize) -> u64 {
        self.words[index % PAGE_WORDS].load(Relaxed)
    }

    /// Asks the CPU for the line of byte `off`, one of many; any offset is safe.
    #[inline(always)]
    pub(crate) fn prefetch(self, off: usize) {
        words::prefetch_outer(self.words, off % PAGE_SIZE);
    }

    /// Asks for `bytes` bytes, of which there are some, from byte `at` on, as far as they are on the page.
    #[inline(always)]
    pub(crate) fn prefetch_cell(self, at: usize, bytes: usize) {
        let last = (at + bytes - 1).min(PAGE_SIZE - 1);
        let mut off = at;
        while off < last {
            words::prefetch_outer(self.words, off);
            off += 64;
        }
        words::prefetch_outer(self.words, last);
    }

    /// A number of two bytes in the page's header, which does not straddle words.
    #[inline(always)]
    fn header_u16(self, off: usize) -> u16 {
        (self.word(off / 8) >> (8 * (off % 8))) as u16
    }

    /// Number of slots, at most [`MAX_SLOTS`].
    #[inline(always)]
    pub(crate) fn count(self) -> usize {
        (self.word(OFF_COUNT / 8) as usize & 0xFFFF).min(MAX_SLOTS)
    }
    #[inline(always)]
    pub(crate) fn cell_start(self) -> usize {
        self.header_u16(OFF_CELL_START) as usize
    }
    #[inline(always)]
    pub(crate) fn garbage(self) -> usize {
        self.header_u16(OFF_GARBAGE) as usize
    }
    #[inline(always)]
    pub(crate) fn prefix_len(self) -> usize {
        (self.word(OFF_PREFIX / 8) >> 48) as usize
    }
    #[inline(always)]
    pub(crate) fn lower_len(self) -> usize {
        self.header_u16(OFF_LOWER_LEN) as usize
    }
    /// Length of the upper fence; `None`: no upper bound.
    #[inline(always)]
    pub(crate) fn upper_len(self) -> Option<usize> {
        let len = self.header_u16(OFF_UPPER_LEN);
        (len != NO_UPPER).then_some(len as usize)
    }
    pub(crate) fn last_insert(self) -> usize {
        self.header_u16(OFF_LAST_INSERT) as usize
    }
    pub(crate) fn ascending_run(self) -> usize {
        self.header_u16(OFF_RUN) as usize
    }
    #[inline(always)]
    pub(crate) fn left(self) -> PageNo {
        self.word(OFF_LEFT / 8) as u32
    }
    #[inline(always)]
    pub(crate) fn right(self) -> PageNo {
        (self.word(OFF_RIGHT / 8) >> 32) as u32
    }
    #[inline(always)]
    pub(crate) fn page_type(self) -> u16 {
        self.header_u16(header::PAGE_TYPE)
    }
    #[inline(always)]
    pub(crate) fn level(self) -> u16 {
        self.header_u16(header::LEVEL)
    }
    #[inline(always)]
    pub(crate) fn index_id(self) -> u64 {
        self.word(header::INDEX_ID / 8)
    }

    #[inline(always)]
    fn lower_at(self) -> usize {
        PAGE_SIZE.saturating_sub(self.lower_len())
    }
    #[inline(always)]
    fn upper_at(self) -> usize {
        self.lower_at()
            .saturating_sub(self.upper_len().unwrap_or(0))
    }
    /// Appends the lower fence.
    pub(crate) fn append_lower(self, out: &mut Vec<u8>) {
        words::append_out(
            self.words,
            self.lower_at(),
            self.lower_len().min(PAGE_SIZE),
            out,
        );
    }
    /// Appends the upper fence; false without one.
    pub(crate) fn append_upper(self, out: &mut Vec<u8>) -> bool {
        let Some(len) = self.upper_len() else {
            return false;
        };
        words::append_out(self.words, self.upper_at(), len, out);
        true
    }
    pub(crate) fn compare_lower(self, key: &[u8]) -> Ordering {
        words::compare(self.words, self.lower_at(), self.lower_len(), key)
    }
    /// How the upper fence compares with `key`; above every key when there is none.
    pub(crate) fn compare_upper(self, key: &[u8]) -> Ordering {
        match self.upper_len() {
            None => Ordering::Greater,
            Some(len) => words::compare(self.words, self.upper_at(), len, key),
        }
    }
    /// Whether `key` lies in `[lower fence, upper fence)`.
    pub(crate) fn covers(self, key: &[u8]) -> bool {
        self.compare_lower(key).is_le() && self.compare_upper(key).is_gt()
    }
    /// Whether the keys just below `key` belong here: `key` in `(lower fence, upper fence]`.
    pub(crate) fn covers_below(self, key: &[u8]) -> bool {
        self.compare_lower(key).is_lt() && self.compare_upper(key).is_ge()
    }

    /// Slot `i`; any index is safe.
    #[inline(always)]
    pub(crate) fn slot(self, i: usize) -> Slot {
        Slot(self.word(SLOT_WORD + i))
    }

    /// Slots per hint, 0 when the page has too few to need hints.
    #[inline(always)]
    pub(crate) fn hint_step(count: usize) -> usize {
        count / (HINTS + 1)
    }

    /// Slots among which the first one with a head ≥ `head` is, or behind the last of them; from the hints.
    #[inline(always)]
    pub(crate) fn hinted(self, count: usize, head: u32) -> (usize, usize) {
        let step = Self::hint_step(count);
        if step == 0 {
            return (0, count);
        }
        let hints: [u32; HINTS] = words::load_16_u32(self.words, OFF_HINTS);
        let below: u32 = hints.iter().map(|&hint| u32::from(hint < head)).sum();
        let below = below as usize;
        let from = if below == 0 { 0 } else { below * step + 1 };
        (
            from,
            if below == HINTS {
                count
            } else {
                (below + 1) * step
            },
        )
    }

    /// Prefetches what a search of the page begins with: header and hints.
    #[inline(always)]
    pub(crate) fn prefetch_entry(self) {
        for off in (0..SLOTS + 8).step_by(64) {
            words::prefetch(self.words, off);
        }
    }

    /// Prefetches as many slots as a leaf mostly has, before anything is known of it.
    #[inline(always)]
    pub(crate) fn prefetch_first_slots(self) {
        for off in (192..FIRST_SLOTS).step_by(64) {
            words::prefetch(self.words, off);
        }
    }

    /// Prefetches the slots of a range that [`hinted`](Self::hinted) gave, a few lines at most.
    #[inline(always)]
    pub(crate) fn prefetch_slots(self, (from, to): (usize, usize)) {
        let mut off = SLOTS + from * 8;
        let end = (SLOTS + to * 8 + 8).min(off + PREFETCH_MAX);
        while off < end {
            self.prefetch(off);
            off += 64;
        }
        self.prefetch(end - 1);
    }

    /// How the key of `slot` compares with `suffix`, whose head equals the slot's.
    #[inline]
    fn compare_tail(self, slot: Slot, suffix: &[u8]) -> Ordering {
        // Equal heads hold the whole of both: no need to look at the cell.
        if slot.key_len() <= 4 && suffix.len() <= 4 {
            return slot.key_len().cmp(&suffix.len());
        }
        self.compare_tail_word(slot, suffix, padded_word(suffix.get(4..).unwrap_or(&[])))
    }

    /// [`compare_tail`](Self::compare_tail), when the eight bytes of `suffix` behind its head are `wanted`: nearly always they decide.
    #[inline(always)]
    fn compare_tail_word(self, slot: Slot, suffix: &[u8], wanted: u64) -> Ordering {
        let (have, len) = (self.tail_word(slot), slot.key_len());
        // Words padded with zeros that differ are in the order of the keys.
        if have != wanted {
            return have.cmp(&wanted);
        }
        // Equal ones: if neither key goes on behind them, they differ at most in zeros at the end of the longer one.
        if len <= 12 && suffix.len() <= 12 {
            return len.cmp(&suffix.len());
        }
        let (at, len) = (slot.key_at() + 4, len.saturating_sub(4));
        words::compare(self.words, at, len, suffix.get(4..).unwrap_or(&[]))
    }

    /// First slot in `[from, to)` for which `before(slot)` is false; `before` is true for a prefix of the slots.
    #[inline(always)]
    fn partition(self, from: usize, to: usize, before: impl Fn(Slot) -> bool) -> usize {
        let (mut base, mut len) = (from, to.saturating_sub(from));
        while len > 1 {
            let half = len / 2;
            // Not a branch: it would be mispredicted every other time.
            let skip = before(self.slot(base + half - 1));
            base = std::hint::select_unpredictable(skip, base + half, base);
            len -= half;
        }
        base + usize::from(len == 1 && before(self.slot(base)))
    }

    /// First slot whose head is ≥ `head`.
    #[inline(always)]
    pub(crate) fn search_head(self, count: usize, head: u32) -> usize {
        let range = self.hinted(count, head);
        if SLOTS + 8 * count > FIRST_SLOTS {
            self.prefetch_slots(range);
        }
        self.search_hinted(range, head)
    }

    /// As [`search_head`](Self::search_head), when the slot is expected a few from `guess`.
    #[inline(never)]
    pub(crate) fn search_around(self, guess: usize, count: usize, head: u32) -> usize {
        let before = |i: usize| self.slot(i).head() < head;
        let (from, to) = (guess.saturating_sub(NEAR), (guess + NEAR).min(count));
        if from < to && (from == 0 || before(from - 1)) && !before(to - 1) {
            return self.partition(from, to, |s| s.head() < head);
        }
        self.search_head(count, head)
    }

    /// Whether the key of `slot` is `suffix`, whose head equals the slot's.
    #[inline]
    pub(crate) fn tail_equals(self, slot: Slot, suffix: &[u8]) -> bool {
        // Equal heads of equal lengths are the whole of keys of up to four bytes.
        slot.key_len() == suffix.len()
            && (suffix.len() <= 4 || self.compare_tail(slot, suffix).is_eq())
    }

    /// First slot whose head is ≥ `head`, within what [`hinted`](Self::hinted) gave.
    #[inline(always)]
    pub(crate) fn search_hinted(self, (from, to): (usize, usize), head: u32) -> usize {
        self.partition(from, to, |s| s.head() < head)
    }

    /// First slot whose key is ≥ `suffix`, and whether it is equal.
    #[inline]
    pub(crate) fn search(self, count: usize, suffix: &[u8]) -> (usize, bool) {
        self.search_from(self.search_head(count, head_of(suffix)), count, suffix)
    }

    /// [`search_from`](Self::search_from) for a key whose suffix is known as far as most searches need it.
    #[inline(always)]
    pub(crate) fn search_key(
        self,
        first: usize,
        count: usize,
        key: Key<'_>,
        suffix: Suffix,
    ) -> (usize, bool) {
        if first >= count || self.slot(first).head() != suffix.head {
            return (first, false);
        }
        self.search_from(first, count, self.suffix(key.bytes()))
    }

    /// [`search`](Self::search) when [`search_head`](Self::search_head) gave `first`: the part that may read cells.
    #[inline(always)]
    pub(crate) fn search_from(self, first: usize, count: usize, suffix: &[u8]) -> (usize, bool) {
        let head = head_of(suffix);
        if first >= count || self.slot(first).head() != head {
            return (first, false);
        }
        let order = self.compare_tail(self.slot(first), suffix);
        if order.is_ge() {
            return (first, order.is_eq());
        }
        if first + 1 >= count || self.slot(first + 1).head() != head {
            return (first + 1, false);
        }
        self.search_equal_heads(first + 1, count, head, suffix)
    }

    /// [`search`](Self::search) from `first` on, whose head is `head`, as are those of slots that follow. What comes after the head decides nearly
    /// always with its first eight bytes.
    #[inline(never)]
    fn search_equal_heads(
        self,
        first: usize,
        count: usize,
        head: u32,
        suffix: &[u8],
    ) -> (usize, bool) {
        let key = Tail::of(suffix);
        // Numbers lie evenly more often than not: the place that the first and the last key suggest, and the next, before any halving.
        let (mut from, mut to) = (first, count);
        let last = self.slot(count - 1);
        if count - first > 4 && last.head() == head {
            let (low, high) = (self.tail_word(self.slot(first)), self.tail_word(last));
            let way = (count - 1 - first) * portion(low, high, key.word) as usize;
            let place = way >> PORTION_BITS;
            let at = first + place;
            if self.is_tail_below(self.slot(at), head, &key) {
                from = at + 1;
                if from < count && !self.is_tail_below(self.slot(from), head, &key) {
                    to = from;
                }
            } else {
                to = at;
            }
        }
        let (mut at, mut len) = (from, to - from);
        while len > 1 {
            let half = len / 2;
            let skip = self.is_tail_below(self.slot(at + half - 1), head, &key);
            at = std::hint::select_unpredictable(skip, at + half, at);
            len -= half;
        }
        at += usize::from(len == 1 && self.is_tail_below(self.slot(at), head, &key));
        let slot = self.slot(at);
        let found = at < count
            && slot.head() == head
            && self.compare_tail_word(slot, suffix, key.word).is_eq();
        (at, found)
    }

    /// Whether the key of `slot`, whose head is `head` or above it, is below the one with that head and tail.
    #[inline(always)]
    fn is_tail_below(self, slot: Slot, head: u32, key: &Tail<'_>) -> bool {
        let have = self.tail_word(slot);
        // Almost never equal, so that this is no branch that depends on the key.
        if have == key.word {
            return slot.head() == head
                && self.compare_tail_word(slot, key.suffix, key.word).is_lt();
        }
        (slot.head() == head) & (have < key.word)
    }

    /// The eight key bytes behind a slot's head, big-endian, zeros behind the key's end.
    #[inline(always)]
    fn tail_word(self, slot: Slot) -> u64 {
        // What lies beyond the page is behind the key's end.
        let word = words::load_u64(self.words, slot.key_at() + 4).swap_bytes();
        let bits = 8 * slot.key_len().saturating_sub(4).min(8);
        word & !u64::MAX.checked_shr(bits as u32).unwrap_or(0)
    }

    /// First slot from `from` on whose key is ≥ `suffix`, expected near: a linear look first.
    #[inline(always)]
    pub(crate) fn end_from(self, from: usize, count: usize, suffix: &[u8]) -> usize {
        let key = Tail::of(suffix);
        let head = head_of(suffix);
        for i in from..count.min(from + 8) {
            let slot = self.slot(i);
            let behind = slot.head() > head;
            if behind || (slot.head() == head && !self.is_tail_below(slot, head, &key)) {
                return i;
            }
        }
        if from + 8 >= count {
            count
        } else {
            self.search(count, suffix).0.max(from)
        }
    }

    /// The slot of an inner page that covers `suffix`: the last whose key is ≤ it.
    #[inline]
    pub(crate) fn child_slot(self, count: usize, suffix: &[u8]) -> usize {
        let (at, equal) = self.search(count, suffix);
        if equal { at } else { at.saturating_sub(1) }
    }

    /// The slot of an inner page that covers the keys just below `suffix`: the last whose key is < it.
    pub(crate) fn child_slot_below(self, count: usize, suffix: &[u8]) -> usize {
        self.search(count, suffix).0.saturating_sub(1)
    }

    /// Child page number in `slot` of an inner page.
    #[inline(always)]
    pub(crate) fn child(self, slot: Slot) -> PageNo {
        words::load_u32(self.words, slot.value_at())
    }

    #[inline(always)]
    pub(crate) fn value_len(self, slot: Slot) -> usize {
        words::load_u16(self.words, slot.cell()) as usize
    }

    /// Appends the common prefix.
    #[inline]
    pub(crate) fn append_prefix(self, out: &mut Vec<u8>) {
        let prefix = self.prefix_len();
        if prefix <= PREFIX_BYTES {
            let start = out.len();
            out.extend_from_slice(&self.word(OFF_PREFIX_BYTES / 8).to_le_bytes());
            out.truncate(start + prefix);
        } else {
            words::append_out(
                self.words,
                self.lower_at(),
                prefix.min(self.lower_len()),
                out,
            );
        }
    }

    /// A word that ends with the common prefix, of `len` bytes; nothing useful where that is longer.
    #[inline(always)]
    pub(crate) fn short_prefix(self, len: usize) -> [u8; PREFIX_BYTES] {
        let word = self.word(OFF_PREFIX_BYTES / 8);
        (word << (PREFIX_BYTES.saturating_sub(len) * 8 % 64)).to_le_bytes()
    }

    /// Puts the common prefix, `len` bytes, at the end of `out`.
    #[inline(never)]
    pub(crate) fn copy_long_prefix(self, out: &mut [u8], len: usize) {
        if let Some(start) = out.len().checked_sub(len) {
            words::copy_out(self.words, self.lower_at(), &mut out[start..]);
        }
    }

    /// Whether `key` begins with the common prefix.
    #[inline]
    pub(crate) fn has_prefix(self, key: &[u8]) -> bool {
        let prefix = self.prefix_len();
        let Some(start) = key.get(..prefix) else {
            return false;
        };
        if prefix <= PREFIX_BYTES {
            let differ = self.word(OFF_PREFIX_BYTES / 8).swap_bytes() ^ padded_word(start);
            return prefix == 0 || differ >> (8 * (8 - prefix) % 64) == 0;
        }
        words::compare(self.words, self.lower_at(), prefix, start).is_eq()
    }

    /// What a search needs of `key`; `None`: it does not begin with the common prefix.
    #[inline(always)]
    pub(crate) fn suffix_here(self, key: Key<'_>) -> Option<Suffix> {
        let prefix = self.prefix_len();
        if prefix >= PREFIX_BYTES || !key.has_head_behind(prefix) {
            return self.long_suffix_here(key.bytes());
        }
        let len = key.len.checked_sub(prefix)?;
        // By as many bits as the prefix has, in two steps, as it may be none.
        let differ = self.word(OFF_PREFIX_BYTES / 8).swap_bytes() ^ key.word;
        if (differ >> 1) >> (63 - 8 * prefix) != 0 {
            return None;
        }
        let head = ((key.word << (8 * prefix)) >> 32) as u32;
        Some(Suffix { head, len })
    }

    #[inline(never)]
    fn long_suffix_here(self, key: &[u8]) -> Option<Suffix> {
        if !self.has_prefix(key) {
            return None;
        }
        let suffix = self.suffix(key);
        let (head, len) = (head_of(suffix), suffix.len());
        Some(Suffix { head, len })
    }

    /// What a search needs of `key`, which begins with the common prefix: this page covers it.
    #[inline(always)]
    pub(crate) fn suffix_of(self, key: Key<'_>) -> Suffix {
        let prefix = self.prefix_len();
        if !key.has_head_behind(prefix) {
            return self.long_suffix_of(key.bytes());
        }
        let head = ((key.word << (8 * prefix)) >> 32) as u32;
        let len = key.len.saturating_sub(prefix);
        Suffix { head, len }
    }

    #[inline(never)]
    fn long_suffix_of(self, key: &[u8]) -> Suffix {
        let suffix = self.suffix(key);
        let (head, len) = (head_of(suffix), suffix.len());
        Suffix { head, len }
    }

    /// Appends the whole key of `slot`.
    #[inline]
    pub(crate) fn append_key(self, slot: Slot, out: &mut Vec<u8>) {
        self.append_prefix(out);
        words::append_out(self.words, slot.key_at(), slot.key_len(), out);
    }

    /// Appends the key's suffix.
    pub(crate) fn append_suffix(self, slot: Slot, out: &mut Vec<u8>) {
        words::append_out(self.words, slot.key_at(), slot.key_len(), out);
    }

    #[inline]
    pub(crate) fn append_value(self, slot: Slot, out: &mut Vec<u8>) {
        words::append_out(self.words, slot.value_at(), self.value_len(slot), out);
    }

    /// What is wrong with the header's lengths and offsets, if anything. A latched page is checked before it is changed.
    pub(crate) fn bounds_problem(self) -> Option<&'static str> {
        let fences = self.lower_len() + self.upper_len().unwrap_or(0);
        if fences > CAPACITY || self.prefix_len() > self.lower_len() {
            return Some("fences or prefix too long");
        }
        let (slots_end, cell_start) = (SLOTS + self.count() * 8, self.cell_start());
        if slots_end > cell_start || cell_start + self.garbage() > self.upper_at() {
            return Some("slots, cells and fences overlap");
        }
        None
    }

    /// What the head of `slot` should be, by its cell.
    pub(crate) fn cell_head(self, slot: Slot) -> u32 {
        let head = words::load_u32(self.words, slot.key_at()).swap_bytes();
        let unused = 32 - 8 * slot.key_len().min(4) as u32;
        head & u32::MAX.checked_shl(unused).unwrap_or(0)
    }

    /// Whether the slot's cell lies in the cell area.
    pub(crate) fn holds_cell(self, slot: Slot) -> bool {
        let end = slot.value_at() + self.value_len(slot);
        slot.cell() >= self.cell_start() && end <= self.upper_at()
    }

    /// Bytes free for entries, garbage included.
    pub(crate) fn free_bytes(self) -> usize {
        (self.cell_start() + self.garbage()).saturating_sub(SLOTS + self.count() * 8)
    }

    /// Bytes between slots and cells.
    pub(crate) fn open_bytes(self) -> usize {
        self.cell_start().saturating_sub(SLOTS + self.count() * 8)
    }

    /// Whether cells and garbage together are what lies between the cell start and the fences (N2): what putting the cells
    /// side by side relies on.
    pub(crate) fn is_tight(self) -> bool {
        let cells: usize = (0..self.count())
            .map(|i| self.slot(i))
            .map(|slot| CELL_HEAD + slot.key_len() + self.value_len(slot))
            .sum();
        self.cell_start() + cells + self.garbage() == self.upper_at()
    }

    /// Bytes that slots and living cells take (fences not counted).
    pub(crate) fn used_bytes(self) -> usize {
        self.upper_at()
            .saturating_sub(SLOTS)
            .saturating_sub(self.free_bytes())
    }

    /// `key` without this page's prefix. Only for a key that this page covers.
    #[inline(always)]
    pub(crate) fn suffix(self, key: &[u8]) -> &[u8] {
        key.get(self.prefix_len()..).unwrap_or(&[])
    }
}

/// Of a key's suffix: the head, and how long it is.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Suffix {
    pub head: u32,
    pub len: usize,
}

/// A key's suffix, and its eight bytes behind the head.
struct Tail<'k> {
    suffix: &'k [u8],
    word: u64,
}

impl<'k> Tail<'k> {
    #[inline(always)]
    fn of(suffix: &'k [u8]) -> Tail<'k> {
        let word = padded_word(suffix.get(4..).unwrap_or(&[]));
        Tail { suffix, word }
    }
}

/// Bits of a [`portion`].
pub(crate) const PORTION_BITS: u32 = 16;

/// How far `key` lies on the way from `low` to `high`: 0 to `1 << PORTION_BITS`, less than that below `high`.
#[inline(always)]
fn portion(low: u64, high: u64, key: u64) -> u32 {
    let way = high.saturating_sub(low) >> PORTION_BITS;
    let done = key.saturating_sub(low);
    // Ways shorter than the unit are rare, and then any place will do.
    (done / way.max(1)).min(1 << PORTION_BITS) as u32
}

/// The first eight bytes, big-endian, zeros behind the end.
#[inline(always)]
pub fn padded_word(bytes: &[u8]) -> u64 {
    if let Some(word) = bytes.first_chunk::<8>() {
        return u64::from_be_bytes(*word);
    }
    match (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        (Some(first), Some(last)) => {
            let (first, last) = (u32::from_be_bytes(*first), u32::from_be_bytes(*last));
            u64::from(first) << 32 | u64::from(last) << (8 * (8 - bytes.len()) % 64)
        }
        _ => u64::from(short_head(bytes)) << 32,
    }
}

/// Length of the common prefix of `a` and `b`.
pub(crate) fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(x, y)| x == y).count()
}
