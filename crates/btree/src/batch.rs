//! The caller's buffers: entries copied out of leaves, and the batches of keys and points that ask for them. All are kept and
//! cleared between uses, so that a warm read allocates nothing.

use crate::guess::Guess;
use crate::leaf::LeafEntry;
use crate::node::{Key, Node, PREFIX_BYTES, padded_word};
use nfold_store::{PAGE_SIZE, PageNo};
use nfold_sync::words;

/// One entry in an [`EntryBatch`].
#[derive(Copy, Clone, Debug)]
pub struct Entry {
    /// Number of the point that asked for it; 0 from a cursor.
    pub point: u32,
    /// Where it was copied from.
    pub place: Guess,
    at: u32,
    key_len: u16,
    value_len: u16,
}

impl Entry {
    /// Where its key lies in the batch's arena.
    #[inline]
    pub fn key_span(&self) -> std::ops::Range<usize> {
        let start = self.at as usize;
        start..start + self.key_len as usize
    }

    /// Where its value lies in the arena of its batch.
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

/// Entries whose cells are asked for ahead of the copy.
const AHEAD: usize = 6;
/// Bytes of each of the first ones, and most of any.
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
    /// Bytes of keys and values held.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }
    /// Bytes of memory kept for keys and values; what is beside them is a part of that.
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
    /// Exchanges the arena with `other`: [`Entry::value_span`] says where the values are in it. [`key`](Self::key) and [`value`](Self::value) mean
    /// nothing until it is changed back, or the batch cleared.
    pub fn swap_bytes(&mut self, other: &mut Vec<u8>) {
        std::mem::swap(&mut self.bytes, other);
    }
    /// (key, value) in the order they were found.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&[u8], &[u8])> {
        self.entries.iter().map(|e| (self.key(e), self.value(e)))
    }

    /// Where the batch stands, for [`cut`](Self::cut).
    #[inline]
    pub(crate) fn mark(&self) -> (usize, usize) {
        (self.bytes.len(), self.entries.len())
    }
    /// Drops what was appended since `mark`, because it was not validated.
    pub(crate) fn cut(&mut self, mark: (usize, usize)) {
        self.bytes.truncate(mark.0);
        self.entries.truncate(mark.1);
    }
    /// Drops all entries from number `len` on.
    pub fn truncate(&mut self, len: usize) {
        self.entries.truncate(len);
    }
    /// Drops the entries of points behind `last`.
    pub(crate) fn keep_points(&mut self, last: u32) {
        self.entries.retain(|e| e.point <= last);
    }
    /// Appends the entries of `slots` of the page `page`, for one point. Unvalidated.
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
            // Key suffix and value stand together in the cell and are copied as one, in whole words; the prefix is put before them, over
            // what else was in the first of these.
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
                place: Guess::new(page, i),
                at: (cell.0 - prefix) as u32,
                key_len: (prefix + suffix.min(cell.1)) as u16,
                value_len: cell.1.saturating_sub(suffix) as u16,
            });
        }
    }
}

/// One key of a [`GetMany`] that exists.
#[derive(Copy, Clone, Debug)]
pub struct Found {
    /// Number of the key, as [`GetMany::push`] returned it.
    pub key: u32,
    /// Where it was found.
    pub guess: Guess,
    pub(crate) at: u32,
    pub(crate) len: u32,
}

impl Found {
    /// Where its value lies in the arena of values.
    #[inline]
    pub fn span(&self) -> std::ops::Range<usize> {
        self.at as usize..(self.at + self.len) as usize
    }
}

/// Keys to look up together, and what was found. See [`TreeHandle::get_many`](crate::TreeHandle::get_many).
#[derive(Debug, Default)]
pub struct GetMany {
    pub(crate) keys: Keys,
    /// Where each key is likely to be.
    pub(crate) guesses: Vec<Guess>,
    /// Whether any of them names a place.
    pub(crate) guessed: bool,
    /// Keys that met a missing page, or were not where they were guessed; taken from the end.
    pub(crate) pending: Vec<u32>,
    /// Keys from here on were not tried yet.
    pub(crate) next: u32,
    pub(crate) values: Vec<u8>,
    pub(crate) found: Vec<Found>,
    /// Guesses that led to the key's leaf, and that did not; the caller repairs from `Found::page`.
    pub guess_hits: u32,
    pub guess_misses: u32,
    /// Whether some key was found far from where it was guessed, if on the same page.
    pub guesses_far: bool,
}

impl GetMany {
    pub fn new() -> GetMany {
        GetMany::default()
    }
    /// Forgets keys and results, keeps the memory.
    pub fn clear(&mut self) {
        self.keys.clear();
        self.guesses.clear();
        self.guessed = false;
        self.pending.clear();
        self.next = 0;
        self.clear_found();
        (self.guess_hits, self.guess_misses) = (0, 0);
        self.guesses_far = false;
    }
    /// Bytes of memory kept for keys and values; what is beside them is a part of that.
    #[inline]
    pub fn memory(&self) -> usize {
        self.keys.bytes.capacity() + self.values.capacity()
    }
    /// Forgets results only: after they were used and `get_many` said that there is more.
    pub fn clear_found(&mut self) {
        self.values.clear();
        self.found.clear();
    }
    /// Makes room for so many keys of so many bytes together.
    pub fn reserve(&mut self, keys: usize, bytes: usize) {
        self.guesses.reserve(keys);
        self.keys.reserve(keys, bytes);
    }
    /// Adds a key, with the place where it was last seen; returns its number.
    #[inline]
    pub fn push(&mut self, key: &[u8], guess: Guess) -> u32 {
        self.guessed |= guess.page != 0;
        self.guesses.push(guess);
        self.keys.push(key)
    }
    /// Adds the last `len` bytes of an entry's key. False, and nothing is added: it has not so many.
    #[inline(always)]
    pub fn push_key_end(&mut self, entry: &LeafEntry<'_>, len: usize, guess: Guess) -> bool {
        let start = self.keys.bytes.len();
        let Some(word) = entry.append_key_end(len, &mut self.keys.bytes) else {
            self.keys.bytes.truncate(start);
            return false;
        };
        self.guessed |= guess.page != 0;
        self.guesses.push(guess);
        self.keys.end(word, len);
        true
    }
    /// Drops all keys from number `len` on; none of them was looked up yet.
    pub fn truncate(&mut self, len: usize) {
        self.guesses.truncate(len);
        self.keys.truncate(len);
    }
    /// Keeps the keys whose numbers `keep` wants, which get new ones in the same order; none was looked up yet.
    pub fn retain(&mut self, mut keep: impl FnMut(u32) -> bool) {
        let mut kept = 0;
        for number in 0..self.len() {
            if keep(number as u32) {
                self.keys.move_down(number, kept);
                self.guesses[kept] = self.guesses[number];
                kept += 1;
            }
        }
        self.truncate(kept);
    }
    #[inline]
    pub fn len(&self) -> usize {
        self.guesses.len()
    }
    pub fn is_empty(&self) -> bool {
        self.guesses.is_empty()
    }
    #[inline]
    pub fn key(&self, number: u32) -> &[u8] {
        self.keys.get(number)
    }
    /// What was guessed for key `number`.
    #[inline]
    pub fn guess(&self, number: u32) -> Guess {
        self.guesses[number as usize]
    }
    /// The arena that holds the values found.
    #[inline]
    pub fn values(&self) -> &[u8] {
        &self.values
    }
    /// Exchanges the arena that holds the values found with `other`. [`Found::span`] tells where they lie in it.
    pub fn swap_values(&mut self, other: &mut Vec<u8>) {
        std::mem::swap(&mut self.values, other);
    }
    /// The keys found so far, in the order they were found: nearly that of the keys, but a key that was not where it was guessed, or
    /// whose page was missing, comes later.
    #[inline]
    pub fn found(&self) -> &[Found] {
        &self.found
    }
    /// As [`found`](Self::found), to be put into another order.
    #[inline]
    pub fn found_mut(&mut self) -> &mut [Found] {
        &mut self.found
    }
    pub fn value(&self, found: &Found) -> &[u8] {
        &self.values[found.at as usize..][..found.len as usize]
    }
}

/// Byte strings in one arena, with the first word of each beside it: looks at many keys then touch the arena for long ones only.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    bytes: Vec<u8>,
    places: Vec<KeyPlace>,
}

#[derive(Copy, Clone, Debug)]
struct KeyPlace {
    /// [`padded_word`] of the bytes.
    word: u64,
    end: u32,
    len: u32,
}

impl KeyPlace {
    #[inline(always)]
    fn key(self, arena: &[u8]) -> Key<'_> {
        Key {
            word: self.word,
            len: self.len as usize,
            end: self.end as usize,
            arena,
        }
    }
}

impl Keys {
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.places.clear();
    }
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }
    /// Makes room for so many strings of so many bytes together.
    fn reserve(&mut self, strings: usize, bytes: usize) {
        self.places.reserve(strings);
        // A short one is written as a whole word first.
        self.bytes.reserve(bytes + size_of::<u64>());
    }
    /// Puts string `from` in the place of string `to`, which is not behind it; what lies between them is lost.
    fn move_down(&mut self, from: usize, to: usize) {
        let mut place = self.places[from];
        let at = to.checked_sub(1).map_or(0, |i| self.places[i].end);
        let start = (place.end - place.len) as usize;
        self.bytes
            .copy_within(start..place.end as usize, at as usize);
        place.end = at + place.len;
        self.places[to] = place;
    }
    pub(crate) fn truncate(&mut self, len: usize) {
        self.places.truncate(len);
        self.bytes
            .truncate(self.places.last().map_or(0, |place| place.end as usize));
    }
    #[inline]
    pub(crate) fn push(&mut self, key: &[u8]) -> u32 {
        // Keys of one integer are copied without a call.
        if let Ok(key) = <&[u8; 8]>::try_from(key) {
            self.bytes.extend_from_slice(key);
        } else if let Ok(key) = <&[u8; 4]>::try_from(key) {
            self.bytes.extend_from_slice(key);
        } else {
            self.bytes.extend_from_slice(key);
        }
        self.end(padded_word(key), key.len());
        self.places.len() as u32 - 1
    }
    /// Adds the first `len` bytes of a word, at most eight.
    #[inline]
    fn push_word(&mut self, word: u64, len: usize) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&word.to_be_bytes());
        self.bytes.truncate(start + len);
        self.end(word, len);
    }
    /// Adds the last `len` bytes of the arena as a string; `word` is [`padded_word`] of them.
    #[inline(always)]
    fn end(&mut self, word: u64, len: usize) {
        let (end, len) = (self.bytes.len() as u32, len as u32);
        self.places.push(KeyPlace { word, end, len });
    }
    #[inline]
    pub(crate) fn get(&self, i: u32) -> &[u8] {
        let place = &self.places[i as usize];
        &self.bytes[(place.end - place.len) as usize..place.end as usize]
    }
    /// String `i` with its first word.
    #[inline(always)]
    pub(crate) fn key(&self, i: u32) -> Key<'_> {
        self.places[i as usize].key(&self.bytes)
    }
    /// The strings of `range`, which there are, with their first words.
    #[inline(always)]
    pub(crate) fn keys(&self, range: std::ops::Range<usize>) -> impl Iterator<Item = Key<'_>> {
        let arena = &*self.bytes;
        self.places[range].iter().map(move |place| place.key(arena))
    }
}

/// Short ranges to read together: each point is all keys in `[lo, hi)`. See
/// [`TreeHandle::scan_points`](crate::TreeHandle::scan_points).
#[derive(Debug, Default)]
pub struct PointScan {
    /// Lower bound of point `i` at `2 * i`, upper at `2 * i + 1`.
    pub(crate) bounds: Keys,
    pub(crate) next: u32,
    /// Points to go on with, and where.
    pub(crate) pending: Vec<Resume>,
    /// Lower bounds of points that go on in a later leaf.
    pub(crate) resume_keys: Keys,
    pub(crate) out: EntryBatch,
    /// Upper fence of the leaf at hand.
    pub(crate) fence: Vec<u8>,
}

/// A point that is not finished.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Resume {
    pub point: u32,
    /// Number in `resume_keys`, or [`Resume::START`].
    pub from: u32,
}

impl Resume {
    pub(crate) const START: u32 = u32::MAX;
}

impl PointScan {
    pub fn new() -> PointScan {
        PointScan::default()
    }
    /// Forgets points and results, keeps the memory.
    pub fn clear(&mut self) {
        self.bounds.clear();
        self.resume_keys.clear();
        self.pending.clear();
        self.next = 0;
        self.out.clear();
    }
    /// Bytes of memory kept for keys and values; what is beside them is a part of that.
    #[inline]
    pub fn memory(&self) -> usize {
        self.bounds.bytes.capacity() + self.out.memory()
    }
    /// Makes room for so many points by prefixes of so many bytes together.
    pub fn reserve(&mut self, points: usize, bytes: usize) {
        self.bounds.reserve(2 * points, 2 * bytes);
    }
    /// Adds the range `[lo, hi)`, which is empty if `hi <= lo`; an empty `hi` means no upper bound. Returns the point's number.
    pub fn push(&mut self, lo: &[u8], hi: &[u8]) -> u32 {
        self.bounds.push(lo);
        // An upper bound below the lower one would not have the prefix of the lower one's page.
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
        let start = self.bounds.bytes.len();
        self.bounds.bytes.extend_from_slice(prefix);
        increment_prefix(&mut self.bounds.bytes, start);
        let word = padded_word(&self.bounds.bytes[start..]);
        self.bounds.end(word, self.bounds.bytes.len() - start);
        self.bounds.len() as u32 / 2 - 1
    }
    /// [`push_prefix`](Self::push_prefix) for at most eight bytes, given as their [`padded_word`].
    #[inline]
    fn push_short_prefix(&mut self, word: u64, len: usize) -> u32 {
        // What stands behind the prefix in its word.
        let rest = 64 - 8 * len as u32;
        let number = word.unbounded_shr(rest);
        let successor = number.wrapping_add(1).unbounded_shl(rest);
        // Bytes 0xFF at the end of the prefix are left away; of a prefix of nothing else nothing is left.
        let full = (number.trailing_ones() / 8) as usize;
        self.bounds.push_word(word, len);
        self.bounds.push_word(successor, len - full.min(len));
        self.bounds.len() as u32 / 2 - 1
    }
    /// Number of points.
    pub fn len(&self) -> usize {
        self.bounds.len() / 2
    }
    pub fn is_empty(&self) -> bool {
        self.bounds.len() == 0
    }
    /// What was found since the last [`clear_entries`](Self::clear_entries). The entries of a point come in key order, but other
    /// points' entries may come between them when it goes on in another leaf, and before them when a page was missing.
    #[inline]
    pub fn entries(&self) -> &EntryBatch {
        &self.out
    }
    /// Forgets entries only: after they were used and `scan_points` said that there is more.
    pub fn clear_entries(&mut self) {
        self.out.clear();
    }
    /// Goes back to the first unfinished point, and gives it: what was found of those behind it is found again.
    pub(crate) fn keep_order(&mut self) -> Option<u32> {
        let first = self.pending.iter().copied().min_by_key(|p| p.point)?;
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
        Some(first.point)
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

/// Turns `bytes[start..]` into the least string above all that begin with it; empty when there is none (only 0xFF bytes).
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

/// The least key above every key that begins with `prefix`; `None` when there is none.
pub fn prefix_successor(prefix: &[u8]) -> Option<Vec<u8>> {
    let mut key = prefix.to_vec();
    increment_prefix(&mut key, 0);
    (!key.is_empty()).then_some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_prefixes_go_the_way_of_long_ones() {
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
    fn kept_keys_move_down_with_their_words() {
        let keys: Vec<Vec<u8>> = (0..20u8).map(|n| vec![n; usize::from(n) % 11]).collect();
        let mut get = GetMany::new();
        keys.iter().for_each(|key| {
            get.push(key, Guess::NONE);
        });
        get.retain(|number| number % 3 != 0);
        let kept: Vec<_> = (0..20).filter(|n| n % 3 != 0).map(|n| &keys[n]).collect();
        assert_eq!(get.len(), kept.len());
        for (number, key) in kept.iter().enumerate() {
            let found = get.keys.key(number as u32);
            assert_eq!((found.bytes(), found.word), (&key[..], padded_word(key)));
            assert_eq!(get.key(number as u32), &key[..]);
        }
        get.truncate(2);
        assert_eq!((get.len(), get.key(1)), (2, &keys[2][..]));
    }
}
