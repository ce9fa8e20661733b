//! The caller's buffers: entries copied from leaves, and the batches of keys and points to look up.
//! They are cleared and reused, so a warm read allocates nothing.

use crate::leaf::LeafEntry;
use crate::node::{Key, Node, PREFIX_BYTES, WORD_BYTES, padded_word};
use crate::row_hint::RowHint;
use nfold_store::{PAGE_SIZE, PageNo};
use nfold_sync::words;

/// One entry in an [`EntryBatch`].
#[derive(Copy, Clone, Debug)]
pub struct Entry {
    /// The number of the point that the entry belongs to; 0 from a cursor.
    pub point: u32,
    /// The location that it was copied from.
    pub place: RowHint,
    at: u32,
    key_len: u16,
    value_len: u16,
}

impl Entry {
    /// The range of its key in the batch's arena.
    #[inline]
    pub fn key_span(&self) -> std::ops::Range<usize> {
        let start = self.at as usize;
        start..start + self.key_len as usize
    }

    /// The range of its value in the batch's arena.
    #[inline]
    pub fn value_span(&self) -> std::ops::Range<usize> {
        let start = self.at as usize + self.key_len as usize;
        start..start + self.value_len as usize
    }
}

/// Entries (key, value) in one arena.
#[derive(Debug, Default)]
pub struct EntryBatch {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
}

/// The number of entries whose cells are prefetched ahead of the copy.
const AHEAD: usize = 6;
/// The bytes that are prefetched of each of the first cells, and the most of any cell.
const FIRST_CELLS: usize = 128;
const LONGEST_AHEAD: usize = 1024;

impl EntryBatch {
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.entries.clear();
    }
    #[inline]
    pub fn len(&self) -> usize {
        self.entries.len()
    }
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
    /// The total bytes of keys and values.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }
    /// The memory allocated for keys and values, in bytes. The other buffers are small in
    /// comparison.
    #[inline]
    pub fn memory(&self) -> usize {
        self.bytes.capacity()
    }
    #[inline]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }
    #[inline]
    pub fn key(&self, entry: &Entry) -> &[u8] {
        &self.bytes[entry.at as usize..][..entry.key_len as usize]
    }
    #[inline]
    pub fn value(&self, entry: &Entry) -> &[u8] {
        &self.bytes[entry.at as usize + entry.key_len as usize..][..entry.value_len as usize]
    }
    /// Swaps the arena with `other`, where [`Entry::value_span`] then locates the values.
    /// [`key`](Self::key) and [`value`](Self::value) are meaningless until it is swapped back or
    /// the batch is cleared.
    pub fn swap_bytes(&mut self, other: &mut Vec<u8>) {
        std::mem::swap(&mut self.bytes, other);
    }
    /// The (key, value) pairs in the order they were found.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&[u8], &[u8])> {
        self.entries.iter().map(|e| (self.key(e), self.value(e)))
    }

    /// The current position, for [`cut`](Self::cut).
    #[inline]
    pub(crate) fn mark(&self) -> (usize, usize) {
        (self.bytes.len(), self.entries.len())
    }
    /// Discards everything appended since `mark`, because it did not validate.
    pub(crate) fn cut(&mut self, mark: (usize, usize)) {
        self.bytes.truncate(mark.0);
        self.entries.truncate(mark.1);
    }
    /// Discards all entries from number `len` on.
    pub fn truncate(&mut self, len: usize) {
        self.entries.truncate(len);
    }
    /// Discards the entries of points after `last`. If none remains, it also discards their bytes.
    /// Otherwise [`bytes`](Self::bytes) would report a full batch without entries, and the scan
    /// could make no progress.
    pub(crate) fn keep_points(&mut self, last: u32) {
        self.entries.retain(|e| e.point <= last);
        if self.entries.is_empty() {
            self.bytes.clear();
        }
    }
    /// Appends the entries of `slots` of the page `page` to one point. The page is not validated
    /// here.
    #[inline(always)]
    pub(crate) fn push_all(
        &mut self,
        point: u32,
        page: PageNo,
        node: Node<'_>,
        slots: impl Iterator<Item = usize> + Clone,
    ) {
        let prefix = node.prefix_len().min(PAGE_SIZE);
        let short = node.short_prefix(prefix);
        let mut ahead = slots.clone();
        for i in ahead.by_ref().take(AHEAD) {
            words::prefetch_range(node.words(), node.slot(i).cell(), FIRST_CELLS);
        }
        let mut bytes = FIRST_CELLS;
        for i in slots {
            let slot = node.slot(i);
            if let Some(i) = ahead.next() {
                words::prefetch_range(node.words(), node.slot(i).cell(), bytes);
            }
            // Key suffix and value are adjacent in the cell and are copied together, in whole
            // words. Then the page's common prefix is written in front of them, over the surplus
            // bytes of the first word.
            if prefix > PREFIX_BYTES {
                self.bytes
                    .resize(self.bytes.len() + prefix.next_multiple_of(8), 0);
            } else if prefix > 0 {
                self.bytes.extend_from_slice(&[0; PREFIX_BYTES]);
            }
            let suffix = slot.key_len();
            let len = suffix + node.value_len(slot);
            bytes = len.min(LONGEST_AHEAD);
            let cell = words::append_words(node.words(), slot.key_at(), len, &mut self.bytes);
            if prefix > PREFIX_BYTES {
                node.copy_long_prefix(&mut self.bytes[..cell.0], prefix);
            } else if prefix > 0
                && let Some(before) = self.bytes[..cell.0].last_chunk_mut()
            {
                *before = short;
            }
            self.entries.push(Entry {
                point,
                place: RowHint::new(page, i),
                at: (cell.0 - prefix) as u32,
                key_len: (prefix + suffix.min(cell.1)) as u16,
                value_len: cell.1.saturating_sub(suffix) as u16,
            });
        }
    }
}

/// A found key of a [`GetMany`].
#[derive(Copy, Clone, Debug)]
pub struct FoundKey {
    /// The key's number, as [`GetMany::push`] returned it.
    pub key: u32,
    /// The location where it was found.
    pub row_hint: RowHint,
    pub(crate) at: u32,
    pub(crate) len: u32,
}

impl FoundKey {
    /// The range of its value in the arena of values.
    #[inline]
    pub fn span(&self) -> std::ops::Range<usize> {
        self.at as usize..(self.at + self.len) as usize
    }
}

/// A batch of keys to look up together, each with a tag of the caller, and the results. See
/// [`TreeHandle::get_many`](crate::TreeHandle::get_many).
#[derive(Debug)]
pub struct GetMany<T = ()> {
    pub(crate) wanted: Vec<Wanted<T>>,
    /// Contains the long keys.
    arena: Vec<u8>,
    /// The page numbers of all hints, combined by OR; 0 if there are no hints.
    pub(crate) hint_bits: PageNo,
    /// The keys that met a missing page, or were not at their hints. They are consumed from the
    /// end.
    pub(crate) pending: Vec<u32>,
    /// The number of the first untried key.
    pub(crate) next: u32,
    pub(crate) values: Vec<u8>,
    pub(crate) found: Vec<FoundKey>,
    /// Whether `found` is not in key order.
    pub(crate) disordered: bool,
    /// The number of keys whose values a [`ValueSink`](crate::ValueSink) consumed: the first ones
    /// of the batch.
    pub(crate) given: u32,
    /// How many hints led to the key's leaf, and how many did not. The caller repairs them from
    /// [`FoundKey::row_hint`].
    pub hint_hits: u32,
    pub hint_misses: u32,
    /// Whether some key was found on the hinted page, but far from the hinted slot.
    pub far_hints: bool,
}

/// One key of a [`GetMany`].
#[derive(Copy, Clone, Debug)]
pub struct Wanted<T> {
    key: KeyPlace,
    /// The row-location hint.
    row_hint: RowHint,
    tag: T,
}

impl<T> Wanted<T> {
    /// The caller's tag.
    #[inline(always)]
    pub fn tag(&self) -> &T {
        &self.tag
    }
}

impl<T> Default for GetMany<T> {
    fn default() -> Self {
        GetMany {
            wanted: Vec::new(),
            arena: Vec::new(),
            hint_bits: 0,
            pending: Vec::new(),
            next: 0,
            values: Vec::new(),
            found: Vec::new(),
            disordered: false,
            given: 0,
            hint_hits: 0,
            hint_misses: 0,
            far_hints: false,
        }
    }
}

impl GetMany {
    pub fn new() -> GetMany {
        GetMany::default()
    }
    /// Adds a key with its row-location hint, and returns its number.
    pub fn push(&mut self, key: &[u8], row_hint: RowHint) -> u32 {
        self.push_with(key, row_hint, ())
    }
}

impl<T: Copy> GetMany<T> {
    /// Removes keys and results, but keeps the memory.
    pub fn clear(&mut self) {
        self.wanted.clear();
        self.arena.clear();
        self.hint_bits = 0;
        self.pending.clear();
        self.next = 0;
        self.given = 0;
        self.clear_found();
        (self.hint_hits, self.hint_misses) = (0, 0);
        self.far_hints = false;
    }
    /// The memory allocated for keys and values, in bytes. The other buffers are small in
    /// comparison.
    #[inline]
    pub fn memory(&self) -> usize {
        self.wanted.capacity() * size_of::<Wanted<T>>()
            + self.arena.capacity()
            + self.values.capacity()
    }
    /// Removes the results only. To be called after the caller used them, when `get_many` said that
    /// there is more.
    pub fn clear_found(&mut self) {
        self.values.clear();
        self.found.clear();
        self.disordered = false;
    }
    /// Reserves memory for `keys` keys.
    pub fn reserve(&mut self, keys: usize) {
        self.wanted.reserve(keys);
    }
    /// Adds a key with its row-location hint and a tag, and returns its number.
    #[inline]
    pub fn push_with(&mut self, key: &[u8], row_hint: RowHint, tag: T) -> u32 {
        let key = KeyPlace::of(key, &mut self.arena);
        self.hint_bits |= row_hint.page;
        self.wanted.push(Wanted { key, row_hint, tag });
        self.wanted.len() as u32 - 1
    }
    /// Adds the last `len` bytes of an entry's key. `before` holds the eight bytes [before its
    /// value](LeafEntry::around_value). False if the key is shorter; then nothing is added.
    #[inline(always)]
    pub fn push_key_end(
        &mut self,
        entry: LeafEntry<'_>,
        before: u64,
        len: usize,
        row_hint: RowHint,
        tag: T,
    ) -> bool {
        let key = if len.wrapping_sub(1) < WORD_BYTES && len <= entry.suffix_len() {
            let key = before >> (64 - 8 * len as u32);
            KeyPlace::short(key.to_le_bytes(), len, &self.arena)
        } else {
            match KeyPlace::end_of(entry, len, &mut self.arena) {
                Some(key) => key,
                None => return false,
            }
        };
        self.hint_bits |= row_hint.page;
        self.wanted.push(Wanted { key, row_hint, tag });
        true
    }
    /// The number of values that a [`ValueSink`](crate::ValueSink) consumed. They are not among the
    /// found ones.
    #[inline]
    pub fn given(&self) -> usize {
        self.given as usize
    }
    /// The keys, for reordering. None may have been looked up yet.
    pub fn keys_mut(&mut self) -> &mut [Wanted<T>] {
        debug_assert!(
            self.next == 0 && self.pending.is_empty(),
            "no key was looked up yet"
        );
        &mut self.wanted
    }
    /// Removes all keys from number `len` on. None may have been looked up yet.
    pub fn truncate(&mut self, len: usize) {
        self.wanted.truncate(len);
        let end = self.wanted.last().map_or(0, |last| last.key.end);
        self.arena.truncate(end as usize);
    }
    /// Keeps the keys whose tags satisfy `keep`, and renumbers them in the same order. None may
    /// have been looked up yet.
    pub fn retain(&mut self, keep: impl Fn(&T) -> bool) {
        let (arena, mut end) = (&mut self.arena, 0);
        self.wanted.retain_mut(|wanted| {
            let kept = keep(&wanted.tag);
            if kept {
                wanted.key.move_to(end, arena);
                end = wanted.key.end;
            }
            kept
        });
        arena.truncate(end as usize);
    }
    #[inline]
    pub fn len(&self) -> usize {
        self.wanted.len()
    }
    pub fn is_empty(&self) -> bool {
        self.wanted.is_empty()
    }
    #[inline]
    pub fn key(&self, number: u32) -> &[u8] {
        self.key_of(number).bytes()
    }
    /// The row-location hint of key `number`.
    #[inline]
    pub fn row_hint(&self, number: u32) -> RowHint {
        self.wanted[number as usize].row_hint
    }
    /// The tag of key `number`.
    #[inline(always)]
    pub fn tag(&self, number: u32) -> &T {
        &self.wanted[number as usize].tag
    }
    /// The tags of all keys.
    pub fn tags(&self) -> impl Iterator<Item = &T> {
        self.wanted.iter().map(|wanted| &wanted.tag)
    }
    /// Key `number` with its first word.
    #[inline(always)]
    pub(crate) fn key_of(&self, number: u32) -> Key<'_> {
        self.wanted[number as usize].key.key(&self.arena)
    }
    /// The keys of `range`, which must exist.
    #[inline(always)]
    pub(crate) fn keys(&self, range: std::ops::Range<usize>) -> impl Iterator<Item = Key<'_>> {
        let arena = &*self.arena;
        let wanted = self.wanted[range].iter();
        wanted.map(move |wanted| wanted.key.key(arena))
    }
    /// The row-location hints of `range`.
    #[inline(always)]
    pub(crate) fn row_hints(
        &self,
        range: std::ops::Range<usize>,
    ) -> impl ExactSizeIterator<Item = RowHint> {
        self.wanted[range].iter().map(|wanted| wanted.row_hint)
    }
    /// The keys, the arena for values, and the found ones, borrowed apart.
    #[inline(always)]
    pub(crate) fn parts(&mut self) -> (Lookup<'_, T>, &mut Vec<u8>, &mut Vec<FoundKey>) {
        let keys = Lookup {
            wanted: &self.wanted,
            arena: &self.arena,
        };
        (keys, &mut self.values, &mut self.found)
    }
    /// The arena of the found values.
    #[inline]
    pub fn values(&self) -> &[u8] {
        &self.values
    }
    /// Swaps the arena of the found values with `other`, where [`FoundKey::span`] then locates
    /// them.
    pub fn swap_values(&mut self, other: &mut Vec<u8>) {
        std::mem::swap(&mut self.values, other);
    }
    /// The keys found so far, in the order they were found. This is nearly key order, but a key
    /// that was not at its hint, or whose page was missing, comes later.
    #[inline]
    pub fn found(&self) -> &[FoundKey] {
        &self.found
    }
    /// The tags and the value ranges of the found keys, from index `from` on.
    #[inline(always)]
    pub fn found_tags(&self, from: usize) -> impl Iterator<Item = (&T, std::ops::Range<usize>)> {
        let found = self.found.get(from..).unwrap_or_default();
        found.iter().map(|f| (self.tag(f.key), f.span()))
    }
    /// Whether the found keys are in key order.
    #[inline]
    pub fn is_in_order(&self) -> bool {
        !self.disordered
    }
    /// As [`found`](Self::found), for reordering.
    pub fn found_mut(&mut self) -> &mut [FoundKey] {
        &mut self.found
    }
    pub fn value(&self, found: &FoundKey) -> &[u8] {
        &self.values[found.at as usize..][..found.len as usize]
    }
}

/// The keys of a [`GetMany`], borrowed while its results grow.
#[derive(Copy, Clone)]
pub(crate) struct Lookup<'b, T> {
    wanted: &'b [Wanted<T>],
    arena: &'b [u8],
}

impl<'b, T> Lookup<'b, T> {
    #[inline(always)]
    pub fn key(self, number: u32) -> Key<'b> {
        self.wanted[number as usize].key.key(self.arena)
    }
}

/// A byte string that is stored inline if it is short, otherwise in an arena.
#[derive(Copy, Clone, Debug)]
struct KeyPlace {
    /// Its first eight bytes, padded with zeros.
    first: [u8; WORD_BYTES],
    /// Its end in the arena. For a short string: the end of the strings before it.
    end: u32,
    len: u32,
}

impl KeyPlace {
    /// A string of at most eight bytes, padded with zeros.
    #[inline(always)]
    fn short(first: [u8; WORD_BYTES], len: usize, arena: &[u8]) -> KeyPlace {
        let (end, len) = (arena.len() as u32, len as u32);
        KeyPlace { first, end, len }
    }
    #[inline(always)]
    fn of(bytes: &[u8], arena: &mut Vec<u8>) -> KeyPlace {
        if bytes.len() > WORD_BYTES {
            arena.extend_from_slice(bytes);
        }
        KeyPlace::short(padded_word(bytes).to_be_bytes(), bytes.len(), arena)
    }
    /// The string appended to the arena from `start` on. A short one is removed from the arena.
    fn from_end(start: usize, arena: &mut Vec<u8>) -> KeyPlace {
        let bytes = &arena[start..];
        let (first, len) = (padded_word(bytes).to_be_bytes(), bytes.len());
        if len <= WORD_BYTES {
            arena.truncate(start);
        }
        KeyPlace::short(first, len, arena)
    }
    /// The last `len` bytes of an entry's key, if it has that many. Handles long keys, and those
    /// that reach into the page's common prefix.
    #[inline(never)]
    fn end_of(entry: LeafEntry<'_>, len: usize, arena: &mut Vec<u8>) -> Option<KeyPlace> {
        let start = arena.len();
        if entry.append_key_end(len, arena) {
            return Some(KeyPlace::from_end(start, arena));
        }
        arena.truncate(start);
        None
    }
    #[inline(always)]
    fn key<'k>(&'k self, arena: &'k [u8]) -> Key<'k> {
        Key {
            word: u64::from_be_bytes(self.first),
            len: self.len as usize,
            end: self.end as usize,
            arena,
            short: Some(&self.first),
        }
    }
    /// Moves the string down to `end` in the arena. The bytes in between are lost.
    fn move_to(&mut self, end: u32, arena: &mut [u8]) {
        if self.len as usize > WORD_BYTES {
            let start = (self.end - self.len) as usize;
            arena.copy_within(start..self.end as usize, end as usize);
            self.end = end + self.len;
        } else {
            self.end = end;
        }
    }
}

/// Byte strings, each with its first word beside it. Reading many keys then touches the arena only
/// for long ones.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    bytes: Vec<u8>,
    places: Vec<KeyPlace>,
}

impl Keys {
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.places.clear();
    }
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }
    fn memory(&self) -> usize {
        self.bytes.capacity() + self.places.capacity() * size_of::<KeyPlace>()
    }
    fn reserve(&mut self, strings: usize) {
        self.places.reserve(strings);
    }
    #[inline]
    pub(crate) fn push(&mut self, key: &[u8]) -> u32 {
        self.places.push(KeyPlace::of(key, &mut self.bytes));
        self.places.len() as u32 - 1
    }
    /// Adds the first `len` bytes (at most eight) of a word; the rest of the word must be zeros.
    #[inline]
    fn push_word(&mut self, word: u64, len: usize) {
        let place = KeyPlace::short(word.to_be_bytes(), len, &self.bytes);
        self.places.push(place);
    }
    #[inline]
    pub(crate) fn get(&self, i: u32) -> &[u8] {
        self.key(i).bytes()
    }
    /// String `i` with its first word.
    #[inline(always)]
    pub(crate) fn key(&self, i: u32) -> Key<'_> {
        self.places[i as usize].key(&self.bytes)
    }
}

/// A batch of short ranges ("points") to read together. Each point covers all keys in `[lo, hi)`.
/// See [`TreeHandle::scan_points`](crate::TreeHandle::scan_points).
#[derive(Debug, Default)]
pub struct PointScan {
    /// The lower bound of point `i` is at `2 * i`, its upper bound at `2 * i + 1`.
    pub(crate) bounds: Keys,
    pub(crate) next: u32,
    /// The points to continue, each with the key to continue at.
    pub(crate) pending: Vec<Resume>,
    /// The lower bounds of points that continue on a later leaf.
    pub(crate) resume_keys: Keys,
    pub(crate) out: EntryBatch,
    /// The upper fence key of the current leaf.
    pub(crate) fence: Vec<u8>,
}

/// A point that is not finished.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Resume {
    pub point: u32,
    /// An index into `resume_keys`, or [`Resume::START`].
    pub from: u32,
}

impl Resume {
    pub(crate) const START: u32 = u32::MAX;
}

impl PointScan {
    pub fn new() -> PointScan {
        PointScan::default()
    }
    /// Removes points and results, but keeps the memory.
    pub fn clear(&mut self) {
        self.bounds.clear();
        self.resume_keys.clear();
        self.pending.clear();
        self.next = 0;
        self.out.clear();
    }
    /// The memory allocated for keys and values, in bytes. The other buffers are small in
    /// comparison.
    #[inline]
    pub fn memory(&self) -> usize {
        self.bounds.memory() + self.resume_keys.memory() + self.out.memory()
    }
    /// Reserves memory for `points` points.
    pub fn reserve(&mut self, points: usize) {
        self.bounds.reserve(2 * points);
    }
    /// Adds the range `[lo, hi)`, and returns the point's number. The range is empty if `hi <= lo`;
    /// an empty `hi` means no upper bound.
    pub fn push(&mut self, lo: &[u8], hi: &[u8]) -> u32 {
        self.bounds.push(lo);
        // An upper bound below the lower one might lack the common prefix of the lower one's page.
        let hi = if hi.is_empty() || hi > lo { hi } else { lo };
        self.bounds.push(hi) / 2
    }
    /// Adds the range of all keys that begin with `prefix`.
    pub fn push_prefix(&mut self, prefix: &[u8]) -> u32 {
        self.push_prefix_with_word(prefix, padded_word(prefix))
    }
    /// As [`push_prefix`](Self::push_prefix); `word` is [`padded_word`] of the prefix.
    #[inline]
    pub fn push_prefix_with_word(&mut self, prefix: &[u8], word: u64) -> u32 {
        debug_assert_eq!(word, padded_word(prefix), "the word is another prefix's");
        if prefix.len() <= 8 {
            return self.push_short_prefix(word, prefix.len());
        }
        self.push_long_prefix(prefix)
    }
    fn push_long_prefix(&mut self, prefix: &[u8]) -> u32 {
        self.bounds.push(prefix);
        let arena = &mut self.bounds.bytes;
        let start = arena.len();
        arena.extend_from_slice(prefix);
        increment_prefix(arena, start);
        self.bounds.places.push(KeyPlace::from_end(start, arena));
        self.bounds.len() as u32 / 2 - 1
    }
    /// [`push_prefix`](Self::push_prefix) for at most eight bytes, given as their [`padded_word`].
    #[inline]
    fn push_short_prefix(&mut self, word: u64, len: usize) -> u32 {
        // The bits behind the prefix in its word.
        let rest = 64 - 8 * len as u32;
        let number = word.unbounded_shr(rest);
        let successor = number.wrapping_add(1).unbounded_shl(rest);
        // Trailing 0xFF bytes of the prefix are dropped. A prefix of 0xFF bytes only has no
        // successor.
        let full = (number.trailing_ones() / 8) as usize;
        self.bounds.push_word(word, len);
        self.bounds.push_word(successor, len - full.min(len));
        self.bounds.len() as u32 / 2 - 1
    }
    /// The number of points.
    pub fn len(&self) -> usize {
        self.bounds.len() / 2
    }
    pub fn is_empty(&self) -> bool {
        self.bounds.len() == 0
    }
    /// The entries found since the last [`clear_entries`](Self::clear_entries). The entries of a
    /// point come in key order. Entries of other points may come between them if the point
    /// continues on another leaf, and before them if a page was missing.
    #[inline]
    pub fn entries(&self) -> &EntryBatch {
        &self.out
    }
    /// Removes the entries only. To be called after the caller used them, when `scan_points` said
    /// that there is more.
    pub fn clear_entries(&mut self) {
        self.out.clear();
    }
    /// The unfinished point with the lowest number.
    pub(crate) fn first_unfinished(&self) -> Option<Resume> {
        self.pending.iter().copied().min_by_key(|p| p.point)
    }
    /// Whether points other than `first` continued from one leaf to the next.
    pub(crate) fn went_on_behind(&self, first: Resume) -> bool {
        let mut behind = self.pending.iter().filter(|p| p.point != first.point);
        behind.any(|p| p.from != Resume::START)
    }
    /// Drops the bounds of finished continuations, so that many leaves without an entry take no
    /// memory.
    pub(crate) fn forget_resumed(&mut self) {
        let mut kept = Keys::default();
        for resume in &mut self.pending {
            if resume.from != Resume::START {
                resume.from = kept.push(self.resume_keys.get(resume.from));
            }
        }
        self.resume_keys = kept;
    }
    /// Returns to the first unfinished point. The entries of the points after it will be found
    /// again.
    pub(crate) fn go_back_to(&mut self, first: Resume) {
        self.next = first.point + 1;
        self.pending.clear();
        let from = if first.from == Resume::START {
            Resume::START
        } else {
            self.fence.clear();
            self.fence
                .extend_from_slice(self.resume_keys.get(first.from));
            self.resume_keys.clear();
            self.resume_keys.push(&self.fence)
        };
        self.pending.push(Resume {
            point: first.point,
            from,
        });
    }

    #[inline(always)]
    pub(crate) fn lower(&self, resume: Resume) -> Key<'_> {
        if resume.from == Resume::START {
            self.bounds.key(resume.point * 2)
        } else {
            self.resume_keys.key(resume.from)
        }
    }
}

/// Turns `bytes[start..]` into the least string above all that begin with it. The result is empty
/// if there is none (only 0xFF bytes).
fn increment_prefix(bytes: &mut Vec<u8>, start: usize) {
    while bytes.len() > start {
        if let Some(last) = bytes.last_mut() {
            if *last < 0xFF {
                *last += 1;
                return;
            }
            bytes.pop();
        }
    }
}

/// The least key above every key that begins with `prefix`, or `None` if there is none.
pub fn prefix_successor(prefix: &[u8]) -> Option<Vec<u8>> {
    let mut key = prefix.to_vec();
    increment_prefix(&mut key, 0);
    (!key.is_empty()).then_some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_prefixes_equal_long_ones() {
        let ends: [&[u8]; 8] = [
            b"",
            b"\0",
            b"\x01",
            b"\x7F",
            b"\xFE",
            b"\xFF",
            b"\x01\xFF\xFF",
            b"\xFF\x01",
        ];
        for before in 0..9 {
            for first in [0, 7, 0xFF] {
                for end in ends {
                    let mut prefix = vec![first; before];
                    prefix.extend_from_slice(end);
                    let mut scan = PointScan::new();
                    scan.push(b"another", b"point");
                    assert_eq!(scan.push_prefix(&prefix), 1);
                    let successor = prefix_successor(&prefix).unwrap_or_default();
                    let (lo, hi) = (scan.bounds.key(2), scan.bounds.key(3));
                    assert_eq!((lo.bytes(), lo.word), (&prefix[..], padded_word(&prefix)));
                    let word = padded_word(&successor);
                    assert_eq!((hi.bytes(), hi.word), (&successor[..], word));
                }
            }
        }
    }

    #[test]
    fn retain_moves_keys_and_their_words() {
        let keys: Vec<Vec<u8>> = (0..20u8).map(|n| vec![n; usize::from(n) % 11]).collect();
        let mut get = GetMany::default();
        for (number, key) in keys.iter().enumerate() {
            get.push_with(key, RowHint::NONE, number);
        }
        get.retain(|number| number % 3 != 0);
        let kept: Vec<_> = (0..20).filter(|n| n % 3 != 0).map(|n| &keys[n]).collect();
        assert_eq!(get.len(), kept.len());
        for (number, key) in kept.iter().enumerate() {
            let found = get.key_of(number as u32);
            assert_eq!((found.bytes(), found.word), (&key[..], padded_word(key)));
            assert_eq!(get.key(number as u32), &key[..]);
        }
        // Keys added after a truncation must not overlap the remaining ones.
        for cut in (0..kept.len()).rev() {
            get.truncate(cut);
            get.push_with(b"a long key behind", RowHint::NONE, 0);
            get.push_with(b"short", RowHint::NONE, 0);
            let all = (0..cut).map(|n| get.key(n as u32) == &kept[n][..]);
            assert!(all.min() != Some(false) && get.len() == cut + 2);
            let added = [cut, cut + 1].map(|n| get.key(n as u32));
            assert_eq!(added, [&b"a long key behind"[..], b"short"]);
        }
    }
}
