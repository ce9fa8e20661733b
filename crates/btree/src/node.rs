//! Tree pages: the byte layout, and the functions that read a page. Every other module of this
//! crate uses them.
//!
//! # Picture
//! ```text
//!   0  page header of the store (64 bytes; page type, level, index id, newest transaction id ...)
//!  64  u16 slot count         66  u16 cell start
//!  68  u16 garbage bytes      70  u16 prefix length
//!  72  u16 lower fence len    74  u16 upper fence len
//!  76  u16 last insert slot   78  u16 ascending inserts in a row
//!  80  u32 left sibling       84  u32 right sibling
//!  88  first 8 bytes of the prefix
//!  96  16 search hints, u32: the key head of the slots at 1, 2, ... 16 times (slot count / 17)
//! 160  slots, growing up: u64 = key head << 32 | cell offset << 16 | length of the key's suffix
//!      ...free...
//!      cells, growing down: [u16 value length][key suffix][value]
//!      upper fence, lower fence: the last bytes of the page
//! ```
//! In an inner page, the value of a cell is a child's page number (u32).
//!
//! A page contains the keys of `[lower fence, upper fence)`. An upper fence length of 0xFFFF means
//! "no upper bound". An empty lower fence is below every key.
//!
//! All keys of a page share their first `prefix length` bytes, which are the common prefix of the
//! two fences. They are stored once, at the beginning of the lower fence. The rest of a key is its
//! `suffix`. A `key head` is the first 4 bytes of the suffix as a big-endian number, padded with
//! zeros.
//!
//! Slot `i` of an inner page covers the keys from its own key up to the key of slot `i + 1`. The
//! key of slot 0 is the page's lower fence.
//!
//! The search hints narrow a search to a seventeenth of the slots, so it touches only one or two of
//! their cache lines.
//!
//! Only leaves (level 0) have sibling links. Page number 0, the space header, means "no sibling".
//!
//! # Invariants
//! - N1: slots are strictly sorted by key, and every key lies within the fences.
//! - N2: the slots end at or before `cell start`. Cells and fences fill the rest of the page,
//!   except for `garbage bytes`.
//! - N3: the prefix is the whole common prefix of the fences, and empty if there is no upper fence.
//! - N4: an inner page has at least one slot, and the key of slot 0 is the lower fence.
//! - N5: the search hints and the prefix bytes match the slots and the fences. The hints are 0 if
//!   there are fewer than 17 slots.
//! # Concurrency
//! Readers hold no latch, so they may read torn data. Every function here clamps the numbers that
//! it reads: it neither panics, nor reads outside the page, nor loops for long. The caller must
//! validate the page word before it trusts a result.
//! # Cost
//! Nothing is allocated, except when a result is appended to the caller's vector. Each step of the
//! binary search is one aligned load.
//! No allocation but for appending to the caller's vectors; a probe of the binary search is one
//! aligned load.

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
/// The bytes of a key head.
const HEAD_BYTES: usize = 4;
/// The bytes of the first word of a [`Key`].
pub(crate) const WORD_BYTES: usize = 8;
/// The bytes of the common prefix that are stored in the page header.
pub(crate) const PREFIX_BYTES: usize = 8;
pub(crate) const OFF_HINTS: usize = 96;
pub(crate) const HINTS: usize = 16;
pub(crate) const SLOTS: usize = OFF_HINTS + 4 * HINTS;
pub(crate) const SLOT_WORD: usize = SLOTS / 8;
pub(crate) const MAX_SLOTS: usize = (PAGE_SIZE - SLOTS) / 8;
/// The most bytes of slots that are prefetched at once.
const PREFETCH_MAX: usize = 512;
/// The end of the slots that are prefetched before the slot count is known: the first 108 slots.
const FIRST_SLOTS: usize = 1024;
/// The most cells with the head of a new key that are prefetched before the key is compared with
/// them.
const CELLS_COMPARED: usize = 12;
/// The number of slots on either side of the expected one that are tried before the whole page is
/// searched.
pub(crate) const NEAR: usize = 4;
/// The size of a cell without key suffix and value.
pub(crate) const CELL_HEAD: usize = 2;
/// The size of an entry without key suffix and value: its slot and its cell header.
pub(crate) const ENTRY_OVERHEAD: usize = 8 + CELL_HEAD;
/// The `upper fence len` of a page without an upper bound.
pub(crate) const NO_UPPER: u16 = u16::MAX;
/// The bytes available for slots, cells and fences.
pub(crate) const CAPACITY: usize = PAGE_SIZE - SLOTS;

/// The key head of `suffix`: its first 4 bytes as a big-endian number, padded with zeros. Two keys
/// with different key prefixes have the order of the prefixes; if they are equal, the rest decides.
#[inline(always)]
pub(crate) fn head_of(suffix: &[u8]) -> u32 {
    match suffix.first_chunk::<4>() {
        Some(head) => u32::from_be_bytes(*head),
        None => short_head(suffix),
    }
}

/// [`head_of`] for fewer than four bytes. Two overlapping loads replace a copy of unknown length,
/// which would be a function call.
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

/// A key with its first word beside it. The word decides most comparisons, so the bytes are rarely
/// read.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Key<'k> {
    /// [`padded_word`] of the bytes.
    pub word: u64,
    pub len: usize,
    /// The end of the key's bytes in `arena`.
    pub end: usize,
    pub arena: &'k [u8],
    /// The key's bytes, if it has at most [`WORD_BYTES`] of them. Then `arena` does not contain
    /// them.
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
    /// Whether the word contains the whole key head on a page with a common prefix of `prefix`
    /// bytes.
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

/// A slot, as loaded from the page.
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
    /// The length of the key's suffix.
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

/// The words of a page, read as a tree page. Results must not be trusted until the caller has
/// validated the page word.
#[derive(Copy, Clone)]
pub(crate) struct Node<'a> {
    words: &'a [AtomicU64; PAGE_WORDS],
}

impl<'a> Node<'a> {
    /// `words` must be the whole page.
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

    /// Prefetches the cache line of byte `off` into the outer cache. Any offset is safe.
    #[inline(always)]
    pub(crate) fn prefetch(self, off: usize) {
        words::prefetch_outer(self.words, off % PAGE_SIZE);
    }

    /// Prefetches `bytes` bytes (at least one) from offset `at` on, as far as they lie on the page.
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

    /// A two-byte header field. Header fields do not straddle words.
    #[inline(always)]
    fn header_u16(self, off: usize) -> u16 {
        (self.word(off / 8) >> (8 * (off % 8))) as u16
    }

    /// The number of slots, at most [`MAX_SLOTS`].
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
    /// The length of the upper fence; `None` if the page has no upper bound.
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
    /// Appends the upper fence. Returns false if there is none.
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
    /// Compares the upper fence with `key`. A missing upper fence is greater than every key.
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
    /// Whether `key` is the key of `slot`.
    pub(crate) fn has_key(self, slot: Slot, key: &[u8]) -> bool {
        let Some((prefix, suffix)) = key.split_at_checked(self.prefix_len()) else {
            return false;
        };
        let is = |at, len, bytes| words::compare(self.words, at, len, bytes).is_eq();
        is(self.lower_at(), prefix.len(), prefix) && is(slot.key_at(), slot.key_len(), suffix)
    }
    /// Whether this page covers the keys just below `key`: `key` lies in `(lower fence, upper
    /// fence]`.
    pub(crate) fn covers_below(self, key: &[u8]) -> bool {
        self.compare_lower(key).is_lt() && self.compare_upper(key).is_ge()
    }

    /// Slot `i`. Any index is safe.
    #[inline(always)]
    pub(crate) fn slot(self, i: usize) -> Slot {
        Slot(self.word(SLOT_WORD + i))
    }

    /// The distance between two hinted slots; 0 if the page has too few slots for hints.
    #[inline(always)]
    pub(crate) fn hint_step(count: usize) -> usize {
        count / (HINTS + 1)
    }

    /// The range of slots that contains the first slot with a head ≥ `head`, according to the
    /// hints. That slot may also be the one directly behind the range.
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

    /// Prefetches the parts where a search of the page begins: header and hints.
    #[inline(always)]
    pub(crate) fn prefetch_entry(self) {
        for off in (0..SLOTS + 8).step_by(64) {
            words::prefetch(self.words, off);
        }
    }

    /// Prefetches the slots of a typical leaf, before the slot count is known.
    #[inline(always)]
    pub(crate) fn prefetch_first_slots(self) {
        for off in (192..FIRST_SLOTS).step_by(64) {
            words::prefetch(self.words, off);
        }
    }

    /// Prefetches the lines that an insert near slot `first` reads and writes: the slots that move,
    /// the place of the new cell, the fences, and the cells of the neighbours. `first` is the first
    /// slot whose head is not below `head`, which is the head of the new key.
    #[inline]
    pub(crate) fn prefetch_for_insert(self, first: usize, head: u32) {
        let count = self.count();
        let last = count.min(first + CELLS_COMPARED);
        for i in first..last {
            let slot = self.slot(i);
            self.prefetch(slot.cell());
            if slot.head() != head {
                break;
            }
        }
        let end = SLOTS + count * 8;
        for off in (SLOTS + first * 8..end).step_by(64) {
            self.prefetch(off);
        }
        self.prefetch(end);
        let cell_start = self.cell_start();
        self.prefetch(cell_start.saturating_sub(1));
        self.prefetch(cell_start.saturating_sub(64));
        self.prefetch(self.upper_at());
        self.prefetch(PAGE_SIZE - 1);
    }

    /// Prefetches the slots of a range returned by [`hinted`](Self::hinted), up to [`PREFETCH_MAX`]
    /// bytes.
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

    /// Compares the key of `slot` with `suffix`, which has the same head.
    #[inline]
    fn compare_tail(self, slot: Slot, suffix: &[u8]) -> Ordering {
        // Both suffixes lie within the head, so only their lengths can differ. The cell need not be
        // read.
        if slot.key_len() <= 4 && suffix.len() <= 4 {
            return slot.key_len().cmp(&suffix.len());
        }
        self.compare_tail_word(slot, suffix, padded_word(suffix.get(4..).unwrap_or(&[])))
    }

    /// [`compare_tail`](Self::compare_tail) for a suffix whose eight bytes behind the head are
    /// `wanted`. These bytes nearly always decide.
    #[inline(always)]
    fn compare_tail_word(self, slot: Slot, suffix: &[u8], wanted: u64) -> Ordering {
        let (have, len) = (self.tail_word(slot), slot.key_len());
        // Unequal zero-padded words have the order of their keys.
        if have != wanted {
            return have.cmp(&wanted);
        }
        // The words are equal. If neither key is longer than the word, they can differ only in
        // zeros at the end of the longer one.
        if len <= 12 && suffix.len() <= 12 {
            return len.cmp(&suffix.len());
        }
        let (at, len) = (slot.key_at() + 4, len.saturating_sub(4));
        words::compare(self.words, at, len, suffix.get(4..).unwrap_or(&[]))
    }

    /// The first slot in `[from, to)` for which `before(slot)` is false. `before` must be true for
    /// a prefix of the range and false for the rest.
    #[inline(always)]
    fn partition(self, from: usize, to: usize, before: impl Fn(Slot) -> bool) -> usize {
        let (mut base, mut len) = (from, to.saturating_sub(from));
        while len > 1 {
            let half = len / 2;
            // Not a branch, because it would be mispredicted half of the time.
            let skip = before(self.slot(base + half - 1));
            base = std::hint::select_unpredictable(skip, base + half, base);
            len -= half;
        }
        base + usize::from(len == 1 && before(self.slot(base)))
    }

    /// The first slot whose head is ≥ `head`.
    #[inline(always)]
    pub(crate) fn search_head(self, count: usize, head: u32) -> usize {
        let range = self.hinted(count, head);
        if SLOTS + 8 * count > FIRST_SLOTS {
            self.prefetch_slots(range);
        }
        self.search_hinted(range, head)
    }

    /// As [`search_head`](Self::search_head), but tries the slots around `expected` first.
    #[inline(never)]
    pub(crate) fn search_around(self, expected: usize, count: usize, head: u32) -> usize {
        let before = |i: usize| self.slot(i).head() < head;
        let (from, to) = (expected.saturating_sub(NEAR), (expected + NEAR).min(count));
        if from < to && (from == 0 || before(from - 1)) && !before(to - 1) {
            return self.partition(from, to, |s| s.head() < head);
        }
        self.search_head(count, head)
    }

    /// Whether `suffix`, which has the same head as `slot`, is the key of `slot`.
    #[inline]
    pub(crate) fn tail_equals(self, slot: Slot, suffix: &[u8]) -> bool {
        // With equal prefixes and equal lengths, suffixes of up to four bytes are equal.
        slot.key_len() == suffix.len()
            && (suffix.len() <= 4 || self.compare_tail(slot, suffix).is_eq())
    }

    /// The first slot whose head is ≥ `head`, within a range returned by [`hinted`](Self::hinted).
    #[inline(always)]
    pub(crate) fn search_hinted(self, (from, to): (usize, usize), head: u32) -> usize {
        self.partition(from, to, |s| s.head() < head)
    }

    /// The first slot whose key is ≥ `suffix`, and whether its key is equal.
    #[inline]
    pub(crate) fn search(self, count: usize, suffix: &[u8]) -> (usize, bool) {
        self.search_from(self.search_head(count, head_of(suffix)), count, suffix)
    }

    /// [`search_from`](Self::search_from) that computes the suffix's bytes only if the head does
    /// not decide.
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

    /// The second half of [`search`](Self::search): `first` is the slot that
    /// [`search_head`](Self::search_head) returned. This half may read cells.
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

    /// Continues [`search`](Self::search) at slot `first`, whose head is `head`, as may be the
    /// key prefixes of the following slots. The first eight bytes behind the head nearly always
    /// decide. always with its first eight bytes.
    #[inline(never)]
    fn search_equal_heads(
        self,
        first: usize,
        count: usize,
        head: u32,
        suffix: &[u8],
    ) -> (usize, bool) {
        let key = Tail::of(suffix);
        // Keys are often evenly spaced. Before the binary search, interpolate between the first and
        // the last key, and try that slot and the next one.
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

    /// Whether the key of `slot` is below `key`, which has the head `head`. The slot's head must be
    /// at least `head`.
    #[inline(always)]
    fn is_tail_below(self, slot: Slot, head: u32, key: &Tail<'_>) -> bool {
        let have = self.tail_word(slot);
        // Equality is rare, so this branch is well predicted.
        if have == key.word {
            return slot.head() == head
                && self.compare_tail_word(slot, key.suffix, key.word).is_lt();
        }
        (slot.head() == head) & (have < key.word)
    }

    /// The eight bytes of the slot's key behind its head, big-endian, padded with zeros.
    #[inline(always)]
    fn tail_word(self, slot: Slot) -> u64 {
        let word = words::load_u64(self.words, slot.key_at() + 4).swap_bytes();
        let bits = 8 * slot.key_len().saturating_sub(4).min(8);
        word & !u64::MAX.checked_shr(bits as u32).unwrap_or(0)
    }

    /// The first slot at or after `from` whose key is ≥ `suffix`. It is expected nearby, so the
    /// first eight slots are searched one by one.
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

    /// The slot of an inner page that covers `suffix`: the last one whose key is ≤ `suffix`.
    #[inline]
    pub(crate) fn child_slot(self, count: usize, suffix: &[u8]) -> usize {
        let (at, equal) = self.search(count, suffix);
        if equal { at } else { at.saturating_sub(1) }
    }

    /// The slot of an inner page that covers the keys just below `suffix`: the last one whose key
    /// is < `suffix`.
    pub(crate) fn child_slot_below(self, count: usize, suffix: &[u8]) -> usize {
        self.search(count, suffix).0.saturating_sub(1)
    }

    /// The child page number in `slot` of an inner page.
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

    /// A word whose last `len` bytes are the common prefix, which must be `len` bytes long.
    /// Meaningless if the prefix is longer than the word.
    #[inline(always)]
    pub(crate) fn short_prefix(self, len: usize) -> [u8; PREFIX_BYTES] {
        let word = self.word(OFF_PREFIX_BYTES / 8);
        (word << (PREFIX_BYTES.saturating_sub(len) * 8 % 64)).to_le_bytes()
    }

    /// Copies the common prefix, `len` bytes long, to the end of `out`.
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

    /// The head and length of `key`'s suffix on this page; `None` if `key` does not begin with the
    /// common prefix.
    #[inline(always)]
    pub(crate) fn suffix_here(self, key: Key<'_>) -> Option<Suffix> {
        let prefix = self.prefix_len();
        if prefix >= PREFIX_BYTES || !key.has_head_behind(prefix) {
            return self.long_suffix_here(key.bytes());
        }
        let len = key.len.checked_sub(prefix)?;
        // Shifted in two steps, because the prefix may be empty and a shift by 64 bits is not
        // defined.
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

    /// The head and length of the suffix of `key`, which must begin with the common prefix because
    /// this page covers it.
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

    /// Checks the lengths and offsets in the header and returns the first error found. A writer
    /// calls this on a latched page before it changes it.
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

    /// The key head that `slot` should have according to its cell.
    pub(crate) fn cell_head(self, slot: Slot) -> u32 {
        let head = words::load_u32(self.words, slot.key_at()).swap_bytes();
        let unused = 32 - 8 * slot.key_len().min(4) as u32;
        head & u32::MAX.checked_shl(unused).unwrap_or(0)
    }

    /// Whether the slot's cell lies within the cell area.
    pub(crate) fn holds_cell(self, slot: Slot) -> bool {
        let end = slot.value_at() + self.value_len(slot);
        slot.cell() >= self.cell_start() && end <= self.upper_at()
    }

    /// The bytes free for new entries, including garbage.
    pub(crate) fn free_bytes(self) -> usize {
        (self.cell_start() + self.garbage()).saturating_sub(SLOTS + self.count() * 8)
    }

    /// The unused bytes between slots and cells.
    pub(crate) fn open_bytes(self) -> usize {
        self.cell_start().saturating_sub(SLOTS + self.count() * 8)
    }

    /// Whether cells and garbage together fill the area between the cell start and the fences (N2).
    /// Compaction relies on this.
    /// side by side relies on.
    pub(crate) fn is_tight(self) -> bool {
        let cells: usize = (0..self.count())
            .map(|i| self.slot(i))
            .map(|slot| CELL_HEAD + slot.key_len() + self.value_len(slot))
            .sum();
        self.cell_start() + cells + self.garbage() == self.upper_at()
    }

    /// The bytes used by slots and live cells, without fences.
    pub(crate) fn used_bytes(self) -> usize {
        self.upper_at()
            .saturating_sub(SLOTS)
            .saturating_sub(self.free_bytes())
    }

    /// `key` without the page's common prefix. The page must cover `key`.
    #[inline(always)]
    pub(crate) fn suffix(self, key: &[u8]) -> &[u8] {
        key.get(self.prefix_len()..).unwrap_or(&[])
    }
}

/// The head and the length of a key's suffix.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Suffix {
    pub head: u32,
    pub len: usize,
}

/// A key's suffix, with the eight bytes behind its head as a word.
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

/// The number of bits in a [`portion`].
pub(crate) const PORTION_BITS: u32 = 16;

/// The relative position of `key` between `low` and `high`: from 0 at `low` to `1 << PORTION_BITS`
/// at `high`.
#[inline(always)]
fn portion(low: u64, high: u64, key: u64) -> u32 {
    let way = high.saturating_sub(low) >> PORTION_BITS;
    let done = key.saturating_sub(low);
    // A distance shorter than one unit is rare, and any result is good enough for it.
    (done / way.max(1)).min(1 << PORTION_BITS) as u32
}

/// The first eight bytes as a big-endian number, padded with zeros.
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

/// The length of the common prefix of `a` and `b`.
pub(crate) fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(x, y)| x == y).count()
}
