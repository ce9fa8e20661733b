//! What goes into a read and comes out of it: sets of points, key ranges, batches of row images.
//!
//! All of them are arenas that their owner clears and fills again, so that a warm statement
//! allocates nothing.

use nfold_btree::padded_word;
use smallvec::SmallVec;
use std::ops::Range;

/// Encoded keys or key prefixes. Each selects all entries whose keys start with it.
///
/// *Invariant* P1: after [`EqualityKeys::seal`] the keys are sorted and unique, and no key is a
/// prefix of another unless the encoding itself is not prefix-free (keys of equal numbers of parts
/// always are).
#[derive(Debug, Clone, Default)]
pub struct EqualityKeys {
    /// Holds the long keys.
    arena: Vec<u8>,
    keys: Vec<Point>,
    sealed: bool,
}

/// Bytes of a point's head.
const WORD_BYTES: usize = 8;

/// A key: here, if it is short, otherwise in the arena.
#[derive(Debug, Clone, Copy)]
struct Point {
    /// Its first eight bytes, zeros behind its end: where they are not the same they decide the
    /// order.
    first: [u8; WORD_BYTES],
    /// Where it ends in the arena, if it is long.
    end: u32,
    len: u32,
}

impl Point {
    /// The first `len` bytes of a big-endian word, at most eight.
    #[inline(always)]
    fn short(word: u64, len: usize) -> Point {
        Point {
            first: word.to_be_bytes(),
            end: 0,
            len: len as u32,
        }
    }

    #[inline(always)]
    fn head(&self) -> u64 {
        u64::from_be_bytes(self.first)
    }

    #[inline(always)]
    fn key<'k>(&'k self, arena: &'k [u8]) -> &'k [u8] {
        let len = self.len as usize;
        match self.first.get(..len) {
            Some(key) => key,
            None => &arena[self.end as usize - len..self.end as usize],
        }
    }
}

impl EqualityKeys {
    /// An empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Forgets the keys, keeps the memory.
    #[inline]
    pub fn clear(&mut self) {
        self.arena.clear();
        self.keys.clear();
        self.sealed = false;
    }

    /// Adds the key that `encode` appends.
    #[inline]
    pub fn push_with(&mut self, encode: impl FnOnce(&mut Vec<u8>)) {
        let start = self.arena.len();
        encode(&mut self.arena);
        let key = &self.arena[start..];
        let mut point = Point::short(padded_word(key), key.len());
        match point.len as usize <= WORD_BYTES {
            true => self.arena.truncate(start),
            false => point.end = self.arena.len() as u32,
        }
        self.keys.push(point);
        self.sealed = false;
    }

    /// Adds a key.
    pub fn push(&mut self, key: &[u8]) {
        self.push_with(|out| out.extend_from_slice(key));
    }

    /// Adds one key for each of `middles`, which it has between `before` and `behind`.
    pub fn push_joined<'m>(
        &mut self,
        before: &[u8],
        middles: impl ExactSizeIterator<Item = &'m [u8]>,
        behind: &[u8],
    ) {
        self.keys.reserve(middles.len());
        for middle in middles {
            let parts = [before, middle, behind];
            self.push_with(|out| parts.iter().for_each(|part| out.extend_from_slice(part)));
        }
    }

    /// As [`push_joined`](Self::push_joined); the middles are the first `len` bytes of big-endian
    /// words, zeros behind them. False, and nothing is added: the keys would be longer than eight
    /// bytes.
    #[inline]
    pub fn push_joined_words(
        &mut self,
        before: &[u8],
        (words, len): (&[u64], usize),
        behind: &[u8],
    ) -> bool {
        let whole = before.len() + len + behind.len();
        if whole > WORD_BYTES {
            return false;
        }
        // They are put together in a register.
        let shift = 8 * before.len() as u32;
        let behind = padded_word(behind).unbounded_shr(shift + 8 * len as u32);
        let around = padded_word(before) | behind;
        let point = |word: &u64| Point::short(around | word.unbounded_shr(shift), whole);
        self.keys.extend(words.iter().map(point));
        self.sealed = false;
        true
    }

    /// Sorts and removes duplicates.
    #[inline]
    pub fn seal(&mut self) {
        if self.keys.len() > 1 {
            self.sort();
        }
        self.sealed = true;
    }

    fn sort(&mut self) {
        if !self.sealed {
            let len = self.keys.first().map_or(0, |key| key.len);
            let alike = self.keys.iter().all(|key| key.len == len);
            if alike && len as usize <= WORD_BYTES {
                // They have no bytes beyond the prefix.
                if !self.keys.is_sorted_by(|a, b| a.head() < b.head()) {
                    self.keys.sort_unstable_by_key(Point::head);
                    self.keys.dedup_by(|a, b| a.first == b.first);
                }
                return;
            }
            let arena = &self.arena;
            let order = |a: &Point, b: &Point| {
                let prefixes = a.head().cmp(&b.head());
                prefixes.then_with(|| a.key(arena).cmp(b.key(arena)))
            };
            if !self.keys.is_sorted_by(|a, b| order(a, b).is_lt()) {
                self.keys.sort_unstable_by(order);
                self.keys.dedup_by(|a, b| order(a, b).is_eq());
            }
        }
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Key number `i`.
    #[inline]
    pub fn key(&self, i: usize) -> &[u8] {
        self.keys[i].key(&self.arena)
    }

    /// All keys.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.keys.iter().map(|p| p.key(&self.arena))
    }

    /// All keys, each with its first eight bytes as a big-endian number, zeros behind its end.
    #[inline]
    pub(crate) fn iter_with_words(&self) -> impl ExactSizeIterator<Item = (&[u8], u64)> {
        self.keys.iter().map(|p| (p.key(&self.arena), p.head()))
    }

    /// Bytes held, for accounting.
    pub fn memory(&self) -> usize {
        self.arena.capacity() + self.keys.capacity() * size_of::<Point>()
    }
}

/// An encoded key; as long as those of a few numbers it needs no allocation.
pub type KeyBytes = SmallVec<[u8; 32]>;

/// One end of a key range, over encoded keys or prefixes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Bound {
    #[default]
    Unbounded,
    /// Entries that start with the key are inside.
    Included(KeyBytes),
    /// Entries that start with the key are outside.
    Excluded(KeyBytes),
}

/// A range of an index.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KeyRange {
    pub lo: Bound,
    pub hi: Bound,
}

impl KeyRange {
    /// The whole index.
    pub fn all() -> Self {
        Self::default()
    }

    /// Every entry that starts with `prefix`.
    pub fn prefix(prefix: &[u8]) -> Self {
        KeyRange {
            lo: Bound::Included(prefix.into()),
            hi: Bound::Included(prefix.into()),
        }
    }

    /// The first key that is inside, and the first that is not any more (`None`: no end), as plain
    /// byte strings. Where nothing is inside the two may be the same.
    pub fn as_bytes(&self) -> (KeyBytes, Option<KeyBytes>) {
        let lo = match &self.lo {
            Bound::Unbounded => KeyBytes::new(),
            Bound::Included(k) => k.clone(),
            Bound::Excluded(k) => match successor(k) {
                Some(lo) => lo,
                // The prefix has no upper neighbour, so the range behind it is empty for
                // every upper bound.
                None => return (k.clone(), Some(k.clone())),
            },
        };
        let hi = match &self.hi {
            Bound::Unbounded => None,
            Bound::Included(k) => successor(k),
            Bound::Excluded(k) => Some(k.clone()),
        };
        (lo, hi)
    }
}

/// The smallest byte string greater than every string that starts with `prefix`; `None` if there is
/// none (all 0xff, or empty).
pub fn successor(prefix: &[u8]) -> Option<KeyBytes> {
    let keep = prefix.iter().rposition(|&b| b != 0xff)?;
    let mut out = KeyBytes::from_slice(&prefix[..=keep]);
    out[keep] += 1;
    Some(out)
}

/// In place of a row's end: a gap. And of its start: nothing came into it.
const GAP: u32 = u32::MAX;
const NO_ROW: u32 = u32::MAX;

/// Row images in one arena.
#[derive(Debug, Default)]
pub struct RowBatch {
    data: Vec<u8>,
    rows: Vec<BatchRow>,
    notes: Vec<RowNote>,
    note_keys: Vec<u8>,
    taken: usize,
}

/// The state of a row that a locking read has returned, so that its locks can be released or taken
/// later.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RowNote {
    /// Where the entry's key begins and ends.
    pub key: (u32, u32),
    /// Bytes of the clustered key at its end.
    pub primary: u32,
    /// The read took the lock on the entry; on the clustered row behind it.
    pub fresh: (bool, bool),
    /// The batch holds the last committed version, because another transaction has locked the row.
    pub unlocked: bool,
}

/// Where a row of a batch is, and which point it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchRow {
    start: u32,
    end: u32,
    /// Number of the point it was found under; 0 for a range.
    pub point: u32,
    /// Number of its note plus 1; 0: none.
    note: u32,
    /// Hidden row id; 0 where the table has a primary key.
    row_id: u64,
}

impl RowBatch {
    /// An empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Forgets the rows, keeps the memory.
    #[inline]
    pub fn clear(&mut self) {
        self.data.clear();
        self.rows.clear();
        self.notes.clear();
        self.note_keys.clear();
        self.taken = 0;
    }

    /// Rows that went to a [`PageRowSink`](crate::PageRowSink) in place of the batch; they come
    /// before those of the batch.
    #[inline]
    pub fn taken(&self) -> usize {
        self.taken
    }

    /// Counts `rows` further rows that the sink has taken.
    pub(crate) fn add_taken(&mut self, rows: usize) {
        self.taken += rows;
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Bytes of all row images.
    pub fn bytes(&self) -> usize {
        self.data.len()
    }

    /// Bytes held, for accounting.
    pub fn memory(&self) -> usize {
        self.data.capacity() + self.rows.capacity() * size_of::<BatchRow>()
    }

    /// Row image number `i`.
    #[inline]
    pub fn row(&self, i: usize) -> &[u8] {
        let r = self.rows[i];
        &self.data[r.start as usize..r.end as usize]
    }

    /// The hidden row id of row `i`, which writes need; `None` where the table has a primary key.
    pub fn row_id(&self, i: usize) -> Option<u64> {
        Some(self.rows[i].row_id).filter(|&id| id != 0)
    }

    /// Whether row `i` is the last committed version of a row that another transaction has locked.
    /// The caller must lock it by [`Read::lock_row`](crate::Read::lock_row) before using it.
    pub fn is_unlocked(&self, i: usize) -> bool {
        self.note(i).is_some_and(|(note, _)| note.unlocked)
    }

    /// The note and the entry's key of row `i`.
    pub(crate) fn note(&self, i: usize) -> Option<(RowNote, &[u8])> {
        let note = self.notes[(self.rows[i].note as usize).checked_sub(1)?];
        Some((
            note,
            &self.note_keys[note.key.0 as usize..note.key.1 as usize],
        ))
    }

    /// Attaches a note to the row added last.
    pub(crate) fn note_last(&mut self, note: RowNote, key: &[u8]) {
        let start = self.note_keys.len() as u32;
        self.note_keys.extend_from_slice(key);
        let key = (start, self.note_keys.len() as u32);
        self.notes.push(RowNote { key, ..note });
        if let Some(last) = self.rows.last_mut() {
            last.note = self.notes.len() as u32;
        }
    }

    /// Puts the row added last in the place of row `i`, which is locked now.
    pub(crate) fn replace_by_last(&mut self, i: usize) {
        let Some(last) = self.rows.pop() else { return };
        let row = &mut self.rows[i];
        (row.start, row.end) = (last.start, last.end);
        if let Some(n) = (row.note as usize).checked_sub(1) {
            self.notes[n].unlocked = false;
            self.notes[n].fresh.0 = true;
        }
    }

    /// Takes `arena` as its memory, and gives its own away; only of an empty batch. Rows are then
    /// added by [`push_span`](Self::push_span).
    pub(crate) fn adopt(&mut self, exchange: impl FnOnce(&mut Vec<u8>)) {
        debug_assert!(
            self.rows.is_empty() && self.data.is_empty(),
            "only an empty batch adopts an arena"
        );
        exchange(&mut self.data);
    }

    /// The arena, to append a value to; [`push_span`](Self::push_span) makes it a row.
    #[inline]
    pub(crate) fn arena(&mut self) -> &mut Vec<u8> {
        &mut self.data
    }

    /// Reserves room for `rows` rows.
    #[inline]
    pub(crate) fn reserve(&mut self, rows: usize) {
        self.rows.reserve(rows);
    }

    /// Adds the row image that lies in the arena already.
    #[inline]
    pub(crate) fn push_span(&mut self, point: usize, span: Range<usize>) {
        self.rows.push(BatchRow {
            start: span.start as u32,
            end: span.end as u32,
            point: point as u32,
            row_id: 0,
            note: 0,
        });
    }

    /// Adds rows as long as `is_row` says so of the value, which lies in the arena already; their
    /// images are behind `header` bytes of it. Returns how many.
    #[inline(always)]
    pub(crate) fn push_values(
        &mut self,
        values: impl Iterator<Item = (u32, Range<usize>)>,
        header: usize,
        is_row: impl Fn(&[u8]) -> bool,
    ) -> usize {
        let RowBatch { data, rows, .. } = self;
        let before = rows.len();
        for (point, span) in values {
            match data.get(span.clone()) {
                Some(value) if is_row(value) => rows.push(BatchRow {
                    start: (span.start + header) as u32,
                    end: span.end as u32,
                    point,
                    row_id: 0,
                    note: 0,
                }),
                _ => break,
            }
        }
        rows.len() - before
    }

    /// Stores the hidden row id of the row added last.
    pub(crate) fn set_row_id(&mut self, id: u64) {
        if let Some(last) = self.rows.last_mut() {
            last.row_id = id;
        }
    }

    /// The point that row `i` was found under.
    pub fn point(&self, i: usize) -> usize {
        self.rows[i].point as usize
    }

    /// All row images.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> + Clone {
        self.rows
            .iter()
            .map(|r| &self.data[r.start as usize..r.end as usize])
    }

    /// Adds the row image that `write` appends; if it answers false, nothing is added.
    pub fn push_with(&mut self, point: usize, write: impl FnOnce(&mut Vec<u8>) -> bool) {
        let start = self.data.len();
        if write(&mut self.data) {
            self.rows.push(BatchRow {
                start: start as u32,
                end: self.data.len() as u32,
                point: point as u32,
                note: 0,
                row_id: 0,
            });
        } else {
            self.data.truncate(start);
        }
    }

    /// Adds a row image.
    #[inline]
    pub fn push(&mut self, point: usize, image: &[u8]) {
        let start = self.data.len() as u32;
        self.data.extend_from_slice(image);
        self.rows.push(BatchRow {
            start,
            end: self.data.len() as u32,
            point: point as u32,
            note: 0,
            row_id: 0,
        });
    }

    /// The position of row `i` in [`RowBatch::data`].
    pub fn span(&self, i: usize) -> Range<usize> {
        let r = self.rows[i];
        r.start as usize..r.end as usize
    }

    /// The arena.
    pub fn data(&self) -> &[u8] {
        &self.data
    }

    /// Brings rows back into the order of their points (stable), after a read that found them in
    /// another order.
    pub fn sort_by_point(&mut self) {
        self.sort_from(0);
    }

    /// The same for the rows from number `from` on.
    pub(crate) fn sort_from(&mut self, from: usize) {
        let rows = &mut self.rows[from..];
        if !rows.is_sorted_by_key(|r| r.point) {
            rows.sort_by_key(|r| r.point);
        }
    }

    /// Cuts rows and the arena to what they were.
    pub(crate) fn truncate(&mut self, rows: usize, bytes: usize) {
        self.rows.truncate(rows);
        self.data.truncate(bytes);
    }

    /// Whether there are rows of points behind `last` among those from number `from` on.
    pub(crate) fn has_points_behind(&self, from: usize, last: usize) -> bool {
        let rows = self.rows.get(from..).unwrap_or_default();
        rows.iter().any(|r| r.point as usize > last)
    }

    /// Keeps those of the rows from number `from` on for which `wanted`, called with their numbers
    /// from there, returns true.
    pub fn retain_from(&mut self, from: usize, wanted: impl Fn(usize) -> bool) {
        let mut n = 0;
        let rows = self.rows.split_off(from.min(self.rows.len()));
        self.rows.extend(rows.into_iter().filter(|_| {
            n += 1;
            wanted(n - 1)
        }));
    }

    /// Drops the rows of all points behind `last` among those from number `from` on.
    pub(crate) fn keep_points(&mut self, from: usize, last: usize) {
        self.keep(from, |r| r.point as usize <= last);
    }

    fn keep(&mut self, from: usize, wanted: impl Fn(&BatchRow) -> bool) {
        let mut kept = from;
        for i in from..self.rows.len() {
            let row = self.rows[i];
            if wanted(&row) {
                self.rows[kept] = row;
                kept += 1;
            }
        }
        self.rows.truncate(kept);
    }

    /// Adds a placeholder for a row that the caller, who identifies it by the number `n`, fills
    /// before the batch is returned.
    pub(crate) fn push_gap(&mut self, point: usize, n: usize) {
        let n = n as u32;
        self.rows.push(BatchRow {
            start: n,
            end: GAP,
            point: point as u32,
            row_id: 0,
            note: 0,
        });
    }

    /// The caller's number, if there is a gap in place of row `i`.
    #[inline]
    pub(crate) fn gap(&self, i: usize) -> Option<usize> {
        let r = &self.rows[i];
        (r.end == GAP).then_some(r.start as usize)
    }

    /// Puts row number `end` in the place of gap `i`, if such a row was added; otherwise there is
    /// none.
    pub(crate) fn fill_gap(&mut self, i: usize, end: usize) {
        (self.rows[i].start, self.rows[i].end) = match self.rows.get(end) {
            Some(made) => (made.start, made.end),
            None => (NO_ROW, 0),
        };
        self.rows.truncate(end);
    }

    /// Removes unfilled placeholders from row `from` on.
    pub(crate) fn close_gaps(&mut self, from: usize) {
        self.keep(from, |r| r.start != NO_ROW);
    }

    /// Reverses the order of the rows.
    pub fn reverse(&mut self) {
        self.rows.reverse();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_sorted_and_unique() {
        let mut set = EqualityKeys::new();
        for key in ["b", "a", "c", "a"] {
            set.push(key.as_bytes());
        }
        set.seal();
        assert_eq!(set.iter().collect::<Vec<_>>(), [b"a", b"b", b"c"]);
        set.clear();
        assert!(set.is_empty());
    }

    #[test]
    fn keys_of_all_lengths_have_their_order() {
        // Alike and short, alike and long, of different lengths.
        for lens in [4..5, 8..9, 12..13, 3..12] {
            let mut set = EqualityKeys::new();
            let mut model = std::collections::BTreeSet::new();
            for n in 0..400_u32 {
                let mixed = n.wrapping_mul(0x9E37_79B9) % 97;
                let len = lens.start + n as usize % lens.len();
                let key = &[mixed.to_be_bytes(); 3].concat()[12 - len..];
                set.push(key);
                model.insert(key.to_vec());
            }
            set.seal();
            assert!(set.iter().eq(model.iter().map(Vec::as_slice)), "{lens:?}");
        }
    }

    #[test]
    fn joined_keys_are_those_of_one_piece() {
        let bytes: Vec<u8> = (1..40).collect();
        for lens in [
            [0, 0, 0],
            [4, 1, 0],
            [0, 8, 0],
            [8, 0, 0],
            [1, 2, 5],
            [3, 4, 2],
            [9, 9, 9],
        ] {
            let [a, b, c] = lens;
            let (mut joined, mut whole) = (EqualityKeys::new(), EqualityKeys::new());
            let middles = [&bytes[a..a + b], b"", &bytes[a..a + b]];
            let (before, behind) = (&bytes[..a], &bytes[a + b..a + b + c]);
            joined.push_joined(before, middles.into_iter(), behind);
            for (i, middle) in middles.iter().enumerate() {
                whole.push(&[before, middle, behind].concat());
                assert_eq!(joined.key(i), whole.key(i));
                assert_eq!(joined.keys[i].first, whole.keys[i].first);
            }
            let words = joined.iter_with_words();
            assert!(words.eq(whole.iter().map(|key| (key, padded_word(key)))));
            // Middles of one length, as words.
            let middle = &bytes[a..a + b];
            let mut of_words = EqualityKeys::new();
            let fits = of_words.push_joined_words(before, (&[padded_word(middle); 2], b), behind);
            assert_eq!(fits, a + b + c <= 8);
            if fits {
                assert_eq!(of_words.key(1), whole.key(0));
                assert_eq!(of_words.len(), 2);
                assert_eq!(of_words.keys[0].first, whole.keys[0].first);
            }
        }
    }

    #[test]
    fn ranges_as_bytes() {
        let key = KeyBytes::from_slice;
        assert_eq!(successor(b"a\xff\xff").as_deref(), Some(&b"b"[..]));
        assert_eq!(successor(b"\xff"), None);
        assert_eq!(
            KeyRange::prefix(b"ab").as_bytes(),
            (key(b"ab"), Some(key(b"ac")))
        );
        let open = KeyRange {
            lo: Bound::Excluded(key(b"ab")),
            hi: Bound::Excluded(key(b"b")),
        };
        assert_eq!(open.as_bytes(), (key(b"ac"), Some(key(b"b"))));
        let nothing = KeyRange {
            lo: Bound::Excluded(key(b"\xff\xff")),
            hi: Bound::Unbounded,
        };
        assert_eq!(
            nothing.as_bytes(),
            (key(b"\xff\xff"), Some(key(b"\xff\xff")))
        );
    }

    #[test]
    fn gaps_are_filled_or_closed() {
        let mut batch = RowBatch::new();
        batch.push(0, b"before");
        batch.push_gap(2, 0);
        batch.push(1, b"one");
        batch.push_gap(1, 1);
        batch.push_gap(3, 2);
        batch.sort_from(1);
        batch.keep_points(1, 2);
        assert_eq!(batch.len(), 4);
        for (i, made) in [(2, None), (3, Some(b"two"))] {
            let end = batch.len();
            assert!(batch.gap(i).is_some());
            if let Some(image) = made {
                batch.push(2, image);
            }
            batch.fill_gap(i, end);
            assert_eq!(batch.gap(i), None);
        }
        batch.close_gaps(1);
        let rows: Vec<_> = batch.iter().collect();
        assert_eq!(rows, [&b"before"[..], b"one", b"two"]);
        assert_eq!(batch.point(2), 2);
    }

    #[test]
    fn batches() {
        let mut batch = RowBatch::new();
        batch.push(1, b"one");
        batch.push(0, b"zero");
        batch.push_with(2, |out| {
            out.extend_from_slice(b"no");
            false
        });
        assert_eq!((batch.len(), batch.bytes()), (2, 7));
        batch.sort_by_point();
        assert_eq!(batch.iter().collect::<Vec<_>>(), [&b"zero"[..], b"one"]);
        assert_eq!(batch.point(1), 1);
    }
}
