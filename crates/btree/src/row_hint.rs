//! Row-location hints: the page and slot where a key's entry was last seen. Values of other trees
//! store such hints in place, unlogged and without making the page dirty. A crash or an eviction
//! may lose a hint, and every user of a hint verifies it.
//!
//! # Picture
//! ```text
//!   group n        prefetch the page words
//!   group n - 1    load the page words; prefetch headers, hinted slots and usage marks
//!   group n - 2    check the leaf and the slot, or slots near it; prefetch the cell
//!   group n - 3    compare keys, consume or copy the values, validate the pages
//! ```
//! Each step loads only lines that the step before prefetched. Each step is a loop of its own over
//! the keys of a group. The processor retires a prefetch only once its address is translated, and
//! page-table walks overlap only within its look-ahead window; so few instructions may stand
//! between two prefetches. Prefetches go to the second-level cache, which has more fill buffers
//! than the first.
//!
//! A key whose hint is wrong is looked up by descent.
//!
//! # Concurrency
//! A hint is written under the leaf's latch, so no entry moves meanwhile. The page's version stays.
//! A reader may therefore copy half of an old and half of a new hint; that is a wrong hint, which
//! is allowed.

use crate::batch::{EntryBatch, FoundKey, GetMany};
use crate::node::{Key, NEAR, Node, SLOTS, Slot};
use crate::seen::{SeenValue, SeenValues, ValueSink};
use crate::tree::TreeHandle;
use nfold_store::{PageNo, PagePeek, SpacePages, Stop, Store, WordRef};
use nfold_sync::words;
use std::ops::Range;

/// The number of keys that take each step together.
const GROUP: usize = 16;
/// The number of steps, and of groups in flight.
const STEPS: usize = 4;
/// The assumed length of a cell before one was seen. Later the mean of those seen is prefetched.
const CELL_BYTES: usize = 192;
/// The approximate bytes of a cell besides the value.
const CELL_REST: usize = 16;
/// The most bytes of a cell that are prefetched.
const CELL_PREFETCH_MAX: usize = 1024;

/// A row-location hint: the page and slot where an entry was last seen. Page 0 means unknown. Slots
/// above 254 are all stored as 255.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct RowHint {
    pub page: PageNo,
    slot: u8,
}

impl RowHint {
    pub const NONE: RowHint = RowHint { page: 0, slot: 0 };
    /// The length of a stored hint, in bytes.
    pub const BYTES: usize = 5;

    pub fn new(page: PageNo, slot: usize) -> RowHint {
        let slot = slot.min(255) as u8;
        RowHint { page, slot }
    }
    /// Whether finding the entry at `found` took a search of the page or of the tree.
    pub fn is_far_from(self, found: RowHint) -> bool {
        self.page != found.page || usize::from(self.slot.abs_diff(found.slot)) > NEAR
    }
    /// Keeps only the bits of the page number that are in `mask`. With an empty mask the hint is
    /// unknown.
    #[inline(always)]
    pub fn if_in(self, mask: PageNo) -> RowHint {
        let page = self.page & mask;
        RowHint { page, ..self }
    }
    /// The stored form: slot, page.
    pub fn to_bytes(self) -> [u8; RowHint::BYTES] {
        let [a, b, c, d] = self.page.to_le_bytes();
        [self.slot, a, b, c, d]
    }
    #[inline(always)]
    pub fn from_bytes([slot, page @ ..]: [u8; RowHint::BYTES]) -> RowHint {
        let page = u32::from_le_bytes(page);
        RowHint { page, slot }
    }
}

/// How the entry at the expected slot compares with the key.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Match {
    /// It is another key, or is not known.
    None,
    /// It has the same 4-byte key prefix.
    Head,
    /// It is the key.
    Key,
}

/// One key in flight.
#[derive(Copy, Clone)]
pub(crate) struct Lane<'s> {
    /// `None` if the page is not in memory, or cannot contain the key.
    page: Option<PagePeek<'s>>,
    row_hint: RowHint,
    /// The key's slot: first the hinted one, then the one found.
    slot: u16,
    matches: Match,
    /// The slot's content.
    cell: Slot,
}

impl Lane<'_> {
    const NONE: Self = Lane {
        page: None,
        row_hint: RowHint::NONE,
        slot: 0,
        matches: Match::None,
        cell: Slot(0),
    };
}

type Lanes<'s> = [Lane<'s>; GROUP];

/// Prefetches the page words of the hinted pages.
#[inline(never)]
fn prefetch_words<'s>(
    pages: SpacePages<'s>,
    row_hints: impl Iterator<Item = RowHint>,
    words: &mut [Option<WordRef<'s>>; GROUP],
) {
    for (row_hint, word) in row_hints.zip(words) {
        *word = match row_hint.page {
            0 => None,
            page => pages.word(page),
        };
    }
}

/// Finds the frames of the hinted pages, and prefetches the lines that verify the hints. A hint may
/// be wrong, so it is not worth a read from disk.
///
/// Each step is a function of its own, so that its loops have all registers to themselves.
#[inline(never)]
fn start<'s>(
    pages: SpacePages<'s>,
    row_hints: impl ExactSizeIterator<Item = RowHint>,
    words: &[Option<WordRef<'s>>; GROUP],
    lanes: &mut Lanes<'s>,
) {
    let count = row_hints.len();
    for ((row_hint, word), lane) in row_hints.zip(words).zip(&mut *lanes) {
        (lane.row_hint, lane.slot, lane.matches) = (row_hint, row_hint.slot.into(), Match::None);
        lane.page = None;
        let Some(word) = *word else { continue };
        let Some(page) = pages.peek_page_at(word) else {
            continue;
        };
        lane.page = Some(page);
    }
    for lane in &lanes[..count] {
        let Some(page) = lane.page else { continue };
        let node = Node::new(page.words());
        node.prefetch(0);
        node.prefetch(64);
        node.prefetch(SLOTS + 8 * usize::from(lane.slot));
    }
}

impl Lane<'_> {
    /// Finds the key's slot by the key prefixes in the slots. False: the key is not on this page,
    /// or has moved.
    #[inline(always)]
    fn find(&mut self, tree: &TreeHandle, node: Node<'_>, key: Key<'_>) -> bool {
        let Some(suffix) = node.suffix_here(key) else {
            return false;
        };
        if !tree.is_ours(node, 0) {
            return false;
        }
        let (slot, count) = (usize::from(self.slot), node.count());
        self.cell = node.slot(slot);
        if (slot >= count || self.cell.head() != suffix.head)
            && !self.find_around(node, count, suffix.head)
        {
            return true; // and nothing matches
        }
        let whole = self.cell.key_len() == suffix.len && suffix.len <= 4;
        self.matches = if whole { Match::Key } else { Match::Head };
        true
    }

    /// Moves to the first slot with this key prefix, if the expected one does not have it. False if
    /// there is none.
    #[inline(never)]
    fn find_around(&mut self, node: Node<'_>, count: usize, head: u32) -> bool {
        let slot = node.search_around(self.slot.into(), count, head);
        self.slot = slot as u16;
        self.cell = node.slot(slot);
        slot < count && self.cell.head() == head
    }
}

/// The key numbers of group `number`, out of `all`.
#[inline(always)]
fn keys_of(all: &Range<usize>, number: Option<usize>) -> Range<usize> {
    let Some(number) = number else { return 0..0 };
    let from = (all.start + number * GROUP).min(all.end);
    from..(from + GROUP).min(all.end)
}

/// The result of a lookup at a hint.
enum Taken {
    FoundKey(FoundKey),
    /// The key does not exist: the page is the one that covers it.
    Absent,
    /// Unknown: the page does not cover the key, or has changed.
    Unknown,
}

impl<'s> Lane<'s> {
    /// The key's value in place, once its slot is verified.
    #[inline(always)]
    pub(crate) fn seen(&self) -> Option<SeenValue<'s>> {
        let page = self.page.filter(|_| self.matches == Match::Key)?;
        let len = Node::new(page.words()).value_len(self.cell);
        Some(SeenValue::new(page, self.cell.value_at(), len))
    }

    /// Verifies the key's slot. False if the key is not on the page, or so far from the hint that
    /// the hint should be repaired.
    #[inline(always)]
    fn ascertain<'k>(&mut self, key: impl Fn() -> Key<'k>) -> bool {
        let Some(page) = self.page else { return false };
        if self.matches == Match::Key {
            return true;
        }
        let Ok((slot, cell)) = self.search(&page, key()) else {
            return false;
        };
        let found = RowHint::new(self.row_hint.page, slot.into());
        (self.slot, self.cell, self.matches) = (slot, cell, Match::Key);
        !self.row_hint.is_far_from(found)
    }

    /// Copies the value of key `number` from the page that its hint names.
    #[inline(always)]
    fn take<'k>(
        &self,
        page: PagePeek<'_>,
        number: u32,
        key: impl Fn() -> Key<'k>,
        values: &mut Vec<u8>,
    ) -> Taken {
        let (node, mut slot, mut cell) = (Node::new(page.words()), self.slot, self.cell);
        if self.matches != Match::Key {
            match self.search(&page, key()) {
                Ok(there) => (slot, cell) = there,
                Err(taken) => return taken,
            }
        }
        let mark = values.len();
        let (at, len) =
            words::append_words(node.words(), cell.value_at(), node.value_len(cell), values);
        if !page.validate() {
            values.truncate(mark);
            return Taken::Unknown;
        }
        Taken::FoundKey(FoundKey {
            key: number,
            row_hint: RowHint::new(self.row_hint.page, slot.into()),
            at: at as u32,
            len: len as u32,
        })
    }

    /// Searches the page for the key, if the slots did not decide.
    #[inline(never)]
    fn search(&self, page: &PagePeek<'_>, key: Key<'_>) -> Result<(u16, Slot), Taken> {
        let (node, key) = (Node::new(page.words()), key.bytes());
        let suffix = node.suffix(key);
        if self.matches == Match::Head && node.tail_equals(self.cell, suffix) {
            return Ok((self.slot, self.cell));
        }
        match node.search(node.count(), suffix) {
            (slot, true) => Ok((slot as u16, node.slot(slot))),
            // A found key is right wherever the hint came from, as it occurs in the tree once. Its
            // absence proves nothing unless the page covers it.
            (_, false) if node.covers(key) && page.validate() => Err(Taken::Absent),
            (_, false) => Err(Taken::Unknown),
        }
    }
}

/// Passes values with known cells to `sink`, up to one that it refuses or whose key is not at its
/// hint. Returns how many it took.
#[inline(never)]
fn give_group<T: Copy>(
    batch: &mut GetMany<T>,
    numbers: Range<usize>,
    lanes: &mut Lanes<'_>,
    sink: &mut dyn ValueSink,
) -> usize {
    let lanes = &mut lanes[..numbers.len()];
    let first = numbers.start as u32;
    let (keys, ..) = batch.parts();
    let uncertain = (first..)
        .zip(&mut *lanes)
        .position(|(number, lane)| !lane.ascertain(|| keys.key(number)));
    let count = uncertain.unwrap_or(numbers.len());
    let lanes = &lanes[..count];
    let taken = sink.take(SeenValues { lanes }).min(count);
    batch.hint_hits += taken as u32;
    batch.given += taken as u32;
    taken
}

impl TreeHandle {
    /// Looks up the untried keys of a batch at their hints. Keys not found there go to
    /// `batch.pending`. True: the results reached `max_bytes`, and there is more.
    pub(crate) fn try_row_hints<T: Copy>(
        &self,
        store: &Store,
        batch: &mut GetMany<T>,
        max_bytes: usize,
        sink: Option<&mut dyn ValueSink>,
    ) -> bool {
        // The sink gets a prefix of the keys only. So behind a value that was copied, or a key that
        // waits, all values are copied.
        let mut sink = sink.filter(|_| batch.pending.is_empty() && batch.found.is_empty());
        let Some(pages) = store.pages_of(self.tree.space) else {
            return false;
        };
        let waiting = batch.pending.len();
        let mut lanes: [Lanes<'_>; STEPS] = [[Lane::NONE; GROUP]; STEPS];
        let mut words = [const { None }; GROUP];
        let total = batch.len();
        let mut all = batch.next as usize..total;
        let mut cell_bytes = CELL_BYTES;
        let mut number = 0_usize;
        loop {
            let group = number.wrapping_sub(1);
            let keys = keys_of(&all, number.checked_sub(1));
            if !keys.is_empty() {
                let row_hints = batch.row_hints(keys);
                start(pages, row_hints, &words, &mut lanes[group % STEPS]);
            }
            let keys = keys_of(&all, Some(number));
            if !keys.is_empty() {
                prefetch_words(pages, batch.row_hints(keys), &mut words);
            }
            let group = number.wrapping_sub(2);
            let keys = keys_of(&all, number.checked_sub(2));
            if !keys.is_empty() {
                self.find_slots(pages, batch, keys, &mut lanes[group % STEPS], cell_bytes);
            }
            if let Some(group) = number.checked_sub(3) {
                let keys = keys_of(&all, Some(group));
                if keys.is_empty() {
                    break;
                }
                let lanes = &mut lanes[group % STEPS];
                let mut first = keys.start;
                if let Some(to) = &mut sink {
                    first += give_group(batch, keys.clone(), lanes, *to);
                    if first < keys.end {
                        sink = None;
                    }
                }
                if first < keys.end {
                    let rest = &lanes[first - keys.start..];
                    self.take_group(batch, first..keys.end, rest);
                }
                let last = match batch.found.last() {
                    Some(found) => Some(found.len as usize),
                    None => lanes[0].seen().map(|value| value.bytes().len()),
                };
                if let Some(last) = last {
                    cell_bytes = ((cell_bytes + last + CELL_REST) / 2).min(CELL_PREFETCH_MAX);
                }
                if batch.values.len() >= max_bytes {
                    // Groups in flight are finished first.
                    all.end = keys_of(&all, Some(number)).end;
                }
            }
            number += 1;
        }
        batch.next = all.end as u32;
        // `pending` is consumed from its end.
        batch.pending[waiting..].reverse();
        all.end < total
    }

    /// Finds the slots of keys whose frames are known, and prefetches their cells.
    #[inline(never)]
    fn find_slots<T: Copy>(
        &self,
        pages: SpacePages<'_>,
        batch: &mut GetMany<T>,
        keys: Range<usize>,
        lanes: &mut Lanes<'_>,
        cell_bytes: usize,
    ) {
        let lanes = &mut lanes[..keys.len()];
        let mut misses = 0;
        for (key, lane) in batch.keys(keys).zip(&mut *lanes) {
            let Some(page) = lane.page else { continue };
            pages.touch_peeked(&page);
            if !lane.find(self, Node::new(page.words()), key) {
                lane.page = None;
                misses += 1;
            }
        }
        batch.hint_misses += misses;
        for lane in &*lanes {
            let Some(page) = lane.page else { continue };
            Node::new(page.words()).prefetch_cell(lane.cell.cell(), cell_bytes);
        }
    }

    /// Copies the values of keys with known cells. Keys that are not at their hints are left to the
    /// descent.
    #[inline(never)]
    fn take_group<T: Copy>(
        &self,
        batch: &mut GetMany<T>,
        numbers: Range<usize>,
        lanes: &[Lane<'_>],
    ) {
        let pending = &mut std::mem::take(&mut batch.pending);
        let (mut hits, mut misses, mut far) = (0, 0, false);
        let (keys, values, found) = batch.parts();
        found.reserve(GROUP);
        let first = numbers.start as u32;
        let disordered = found.last().is_some_and(|last| last.key > first);
        for (number, lane) in (first..numbers.end as u32).zip(lanes) {
            let Some(page) = lane.page else {
                pending.push(number);
                continue;
            };
            match lane.take(page, number, || keys.key(number), values) {
                Taken::FoundKey(place) => {
                    hits += 1;
                    if place.row_hint != lane.row_hint {
                        far |= lane.row_hint.is_far_from(place.row_hint);
                    }
                    found.push(place);
                }
                Taken::Absent => hits += 1,
                Taken::Unknown => {
                    misses += 1;
                    pending.push(number);
                }
            }
        }
        std::mem::swap(&mut batch.pending, pending);
        batch.hint_hits += hits;
        batch.hint_misses += misses;
        batch.far_hints |= far;
        batch.disordered |= disordered;
    }

    /// Copies the entries of the leaf `page`, if it belongs to this tree and is in memory. Returns
    /// false, and copies nothing, if it does not or if it changes meanwhile.
    pub fn leaf_entries(&self, store: &Store, page: PageNo, out: &mut EntryBatch) -> bool {
        let id = self.page_id(page);
        if !store.is_resident(id) {
            return false;
        }
        let Ok(page) = store.read(id) else {
            return false;
        };
        let node = Node::new(page.words());
        let mark = out.mark();
        if self.is_ours(node, 0) {
            out.push_all(0, id.page, node, 0..node.count());
        }
        let good = page.validate();
        if !good {
            out.cut(mark);
        }
        good
    }

    /// Stores hints at byte `at` of the values of these keys. Skips keys that are not on the leaf
    /// `page`, and values that are too short.
    pub fn write_row_hints<'k>(
        &self,
        store: &Store,
        page: PageNo,
        at: usize,
        row_hints: impl IntoIterator<Item = (&'k [u8], RowHint)>,
    ) -> Result<(), Stop> {
        let mut mtr = store.mtr();
        let leaf = mtr.latch(self.page_id(page))?;
        let node = Node::new(mtr.words(leaf));
        if !self.is_ours(node, 0) {
            return Ok(());
        }
        for (key, row_hint) in row_hints {
            if !node.has_prefix(key) {
                continue;
            }
            let (slot, found) = node.search(node.count(), node.suffix(key));
            let slot = node.slot(slot);
            if found && node.holds_cell(slot) && node.value_len(slot) >= at + RowHint::BYTES {
                mtr.write_hint(leaf, slot.value_at() + at, &row_hint.to_bytes());
            }
        }
        Ok(())
    }
}
