//! Small changes of a long value: how a row describes a value that differs little from the chain of
//! overflow pages that it names.
//!
//! # Picture (format v1)
//! ```text
//! changes:  change │ change │ ...                 made one after the other
//! change:   u32 offset │ u32 bytes removed │ u16 bytes inserted │ the inserted bytes
//! ```
//! An offset counts in the value as the changes before it have left it.
//!
//! # Invariants
//! C1. Every number is checked against the value before it is used: damaged changes are an error.

use smallvec::SmallVec;

/// Bytes of a change before its inserted bytes.
const HEAD: usize = 10;
/// Equal bytes between two changes that make it worthwhile to describe them apart.
const RUN: usize = 16;
/// The most bytes of the changes of one value.
const MOST: usize = 2000;
/// A value is described by its changes if they take at most this part of its bytes.
const PART: usize = 5;

/// The changes do not fit the value.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Damaged;

/// Makes the changes in the value that begins at `start` and ends with `out`.
pub(crate) fn apply(mut changes: &[u8], start: usize, out: &mut Vec<u8>) -> Result<(), Damaged> {
    while let Some((head, rest)) = changes.split_first_chunk::<HEAD>() {
        let (offset, removed, inserted) = numbers(head);
        let (Some(end), Some(bytes)) = (offset.checked_add(removed), rest.get(..inserted)) else {
            return Err(Damaged);
        };
        if end > out.len() - start {
            return Err(Damaged);
        }
        let (from, behind, length) = (start + offset, start + end, out.len());
        // Not by `splice`, which moves the rest byte by byte.
        if inserted > removed {
            out.resize(length + (inserted - removed), 0);
        }
        if inserted != removed {
            out.copy_within(behind..length, from + inserted);
        }
        out[from..from + inserted].copy_from_slice(bytes);
        out.truncate(length - removed + inserted);
        changes = &rest[inserted..];
    }
    match changes {
        [] => Ok(()),
        _ => Err(Damaged),
    }
}

/// A value as its chain and the changes since lie, without making the changes.
pub(crate) struct Pieces<'c> {
    /// In the order of the value, each with its offset there.
    pieces: SmallVec<[(usize, Piece<'c>); 8]>,
    /// Bytes of the value.
    length: usize,
}

/// Bytes of a value, from `start` up to `end`, that lie in its chain one after the other.
#[derive(Clone, Copy, Default)]
pub(crate) struct StoredRun {
    start: usize,
    end: usize,
    /// Where they begin in the chain.
    stored: usize,
}

impl StoredRun {
    /// Where `length` bytes of the value from `at` on lie in the chain, if all are in the run.
    #[inline]
    pub(crate) fn place_of(&self, at: usize, length: usize) -> Option<usize> {
        let inside = at >= self.start && at < self.end && length <= self.end - at;
        inside.then(|| self.stored + (at - self.start))
    }
}

#[derive(Clone, Copy)]
enum Piece<'c> {
    /// The bytes of the chain from here on.
    Stored(usize),
    Inserted(&'c [u8]),
}

impl<'c> Pieces<'c> {
    /// The changes of a chain of `stored` bytes. `None`: they are damaged, or do not come in the
    /// order of their offsets, as [`describe`] makes them.
    pub(crate) fn of(mut changes: &'c [u8], stored: usize) -> Option<Pieces<'c>> {
        let mut pieces = SmallVec::new();
        let (mut length, mut at) = (0, 0);
        while let Some((head, rest)) = changes.split_first_chunk::<HEAD>() {
            let (offset, removed, inserted) = numbers(head);
            let bytes = rest.get(..inserted)?;
            let same = offset.checked_sub(length)?;
            pieces.push((length, Piece::Stored(at)));
            pieces.push((offset, Piece::Inserted(bytes)));
            length = offset + inserted;
            at = (at.checked_add(same)?.checked_add(removed)).filter(|at| *at <= stored)?;
            changes = &rest[inserted..];
        }
        pieces.push((length, Piece::Stored(at)));
        length += stored - at;
        changes.is_empty().then_some(Pieces { pieces, length })
    }

    /// Bytes of the value.
    pub(crate) fn length(&self) -> usize {
        self.length
    }

    /// The run of stored bytes that the byte at `at` is in; `None`: a change inserted it.
    pub(crate) fn run_at(&self, at: usize) -> Option<StoredRun> {
        let place = self.pieces.partition_point(|(start, _)| *start <= at);
        let (start, piece) = *self.pieces.get(place.checked_sub(1)?)?;
        let end = self.pieces.get(place).map_or(self.length, |next| next.0);
        match piece {
            Piece::Stored(stored) => Some(StoredRun { start, end, stored }),
            Piece::Inserted(_) => None,
        }
    }

    /// Reads the bytes of the value from `at` on. `stored` reads those of the chain; false: it
    /// cannot.
    pub(crate) fn read(
        &self,
        mut at: usize,
        mut out: &mut [u8],
        mut stored: impl FnMut(usize, &mut [u8]) -> bool,
    ) -> bool {
        if at
            .checked_add(out.len())
            .is_none_or(|end| end > self.length)
        {
            return false;
        }
        let mut place = self.pieces.partition_point(|(start, _)| *start <= at);
        while !out.is_empty() {
            let (start, piece) = self.pieces[place - 1];
            let end = self.pieces.get(place).map_or(self.length, |next| next.0);
            let here = out.len().min(end.saturating_sub(at));
            let (bytes, rest) = out.split_at_mut(here);
            match piece {
                Piece::Inserted(inserted) => {
                    bytes.copy_from_slice(&inserted[at - start..][..here]);
                }
                Piece::Stored(from) if !stored(from + at - start, bytes) => return false,
                Piece::Stored(_) => {}
            }
            (out, at, place) = (rest, at + here, place + 1);
        }
        true
    }
}

/// Offset, removed and inserted bytes of a change.
fn numbers(head: &[u8; HEAD]) -> (usize, usize, usize) {
    let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let inserted = u16::from_le_bytes([head[8], head[9]]);
    (word(0) as usize, word(4) as usize, usize::from(inserted))
}

/// Appends the changes that make `new` of `old`. False if they are too many to be worthwhile; then
/// `out` is as before. Equal values have no changes.
pub(crate) fn describe(old: &[u8], new: &[u8], out: &mut Vec<u8>) -> bool {
    let (start, most) = (out.len(), MOST.min(old.len() / PART));
    let described = describe_at_most(old, new, most, out);
    if !described {
        out.truncate(start);
    }
    described
}

fn describe_at_most(mut old: &[u8], new: &[u8], most: usize, out: &mut Vec<u8>) -> bool {
    if u32::try_from(old.len().max(new.len())).is_err() {
        return false;
    }
    let (mut at, limit) = (0, out.len() + most);
    let mut ends = None;
    loop {
        let same = common_prefix(old, &new[at..]);
        (old, at) = (&old[same..], at + same);
        let rest = &new[at..];
        if old.is_empty() && rest.is_empty() {
            return true;
        }
        let Some(room) = limit.checked_sub(out.len() + HEAD) else {
            return false;
        };
        let ends = *ends.get_or_insert_with(|| common_suffix(old, rest));
        let Some((removed, inserted)) = next_change(old, rest, ends, room) else {
            return false;
        };
        out.extend_from_slice(&(at as u32).to_le_bytes());
        out.extend_from_slice(&(removed as u32).to_le_bytes());
        out.extend_from_slice(&(inserted as u16).to_le_bytes());
        out.extend_from_slice(&rest[..inserted]);
        (old, at) = (&old[removed..], at + inserted);
    }
}

/// How many bytes of `old` the change removes that begins with both, and how many of `new` it
/// inserts: at most `room`. The last `ends` bytes are equal, or all bytes of the shorter one.
fn next_change(old: &[u8], new: &[u8], ends: usize, room: usize) -> Option<(usize, usize)> {
    // Either both go on at the same distance from their beginnings, or at the same distance from
    // their ends.
    let shorter = old.len().min(new.len());
    let ends = ends.min(shorter);
    let tail = Some((old.len() - ends, new.len() - ends)).filter(|(_, inserted)| *inserted <= room);
    let most = tail.map_or(room, |(_, inserted)| inserted);
    let mut k = 1;
    while k <= most && k + RUN <= shorter {
        let differs = (0..RUN).rev().find(|n| old[k + n] != new[k + n]);
        match differs {
            None => return Some((k, k)),
            Some(n) => k += n + 1,
        }
    }
    tail
}

/// How many bytes both have in common at their beginnings.
fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    let mut same = 0;
    for (a, b) in a.chunks_exact(RUN).zip(b.chunks_exact(RUN)) {
        if a != b {
            break;
        }
        same += RUN;
    }
    let rest = a[same..].iter().zip(&b[same..]);
    same + rest.take_while(|(a, b)| a == b).count()
}

/// How many bytes both have in common at their ends.
fn common_suffix(a: &[u8], b: &[u8]) -> usize {
    let mut same = 0;
    for (a, b) in a.rchunks_exact(RUN).zip(b.rchunks_exact(RUN)) {
        if a != b {
            break;
        }
        same += RUN;
    }
    let rest = a[..a.len() - same].iter().rev();
    let rest = rest.zip(b[..b.len() - same].iter().rev());
    same + rest.take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn changed(old: &[u8], new: &[u8]) -> Option<usize> {
        let mut changes = b"before".to_vec();
        if !describe(old, new, &mut changes) {
            assert_eq!(changes, b"before");
            return None;
        }
        let mut value = [b"start", old].concat();
        assert_eq!(apply(&changes[6..], 5, &mut value), Ok(()));
        assert_eq!(value, [b"start", new].concat());
        assert_eq!(pieced(old, &changes[6..]), Some(new.to_vec()));
        assert!(changes.len() - 6 <= MOST.min(old.len() / PART));
        Some(changes.len() - 6)
    }

    /// The value, read in parts of different lengths where its pieces lie.
    fn pieced(old: &[u8], changes: &[u8]) -> Option<Vec<u8>> {
        let pieces = Pieces::of(changes, old.len())?;
        let mut value = vec![0; pieces.length()];
        let (mut at, mut part) = (0, 1);
        while at < value.len() {
            let end = value.len().min(at + part);
            let stored = |at: usize, out: &mut [u8]| {
                out.copy_from_slice(&old[at..at + out.len()]);
                true
            };
            assert!(pieces.read(at, &mut value[at..end], stored));
            (at, part) = (end, part % 700 * 3 + 1);
        }
        assert!(!pieces.read(value.len(), &mut [0], |_, _| true));
        for (at, byte) in value.iter().enumerate() {
            let run = pieces.run_at(at);
            let stored = run.map(|run| run.place_of(at, 1).expect("the run has the byte"));
            assert!(stored.is_none_or(|stored| old[stored] == *byte));
        }
        Some(value)
    }

    /// Bytes without long repetitions.
    fn text(len: usize) -> Vec<u8> {
        (0..len as u64)
            .map(|n| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8)
            .collect()
    }

    /// Format v1, byte by byte.
    #[test]
    fn bytes_are_frozen() {
        let old = [b'-'; 300];
        let mut new = old.to_vec();
        new[258] = b'x';
        let mut changes = Vec::new();
        assert!(describe(&old, &new, &mut changes));
        let expected = [2, 1, 0, 0, 1, 0, 0, 0, 1, 0, b'x'];
        assert_eq!(changes, expected);
        // Another length: "yz" in place of the three bytes at 7.
        let mut value = b"0123456789abc".to_vec();
        let longer = [7, 0, 0, 0, 3, 0, 0, 0, 2, 0, b'y', b'z'];
        assert_eq!(apply(&longer, 0, &mut value), Ok(()));
        assert_eq!(value, b"0123456yzabc");
    }

    #[test]
    fn small_changes_have_short_descriptions() {
        let old = text(10_000);
        assert_eq!(changed(&old, &old), Some(0));
        let mut new = old.clone();
        new[700] ^= 1;
        assert_eq!(changed(&old, &new), Some(HEAD + 1));
        new[7000] ^= 1;
        assert_eq!(changed(&old, &new), Some(2 * HEAD + 2));
        new.splice(8000..8000, *b"inserted");
        assert_eq!(changed(&old, &new), Some(3 * HEAD + 10));
        new.splice(8000..9000, *b"");
        assert!(changed(&old, &new).is_some_and(|bytes| bytes < 5 * HEAD));
        assert_eq!(changed(&old, &text(12_000)[2000..]), None);
        assert_eq!(changed(&old, &[]), Some(HEAD));
        assert_eq!(
            changed(&old[..49], &[]),
            None,
            "a fifth of it is less than a head"
        );
        assert_eq!(changed(&old[..50], &[]), Some(HEAD));
        assert_eq!(changed(&old, &[&old[..], &old].concat()), None);
        // Most entries before the values, as in a document that gets a member.
        let mut new = old.clone();
        (0..1400).step_by(2).for_each(|n| new[n] ^= 1);
        new.splice(1400..1400, *b"name");
        assert!(changed(&old, &new).is_some_and(|bytes| bytes < 1500));
    }

    proptest! {
        #[test]
        fn described_values_come_back(
            len in 0usize..3000,
            edits in prop::collection::vec((any::<prop::sample::Index>(), 0usize..20, prop::collection::vec(any::<u8>(), 0..20)), 0..6),
            letters in 1u8..255,
        ) {
            let old: Vec<u8> = text(len).iter().map(|b| b % letters).collect();
            let mut new = old.clone();
            for (at, removed, inserted) in edits {
                let at = at.index(new.len() + 1);
                let end = (at + removed).min(new.len());
                new.splice(at..end, inserted);
            }
            changed(&old, &new);
        }

        #[test]
        fn damaged_changes_are_an_error(changes in prop::collection::vec(any::<u8>(), 0..60), small in any::<bool>()) {
            let mut changes = changes;
            if small {
                changes.iter_mut().for_each(|b| *b %= 3);
            }
            let mut value = text(500);
            let applied = apply(&changes, 0, &mut value);
            if applied.is_ok() {
                prop_assert!(value.len() <= 500 + changes.len());
            }
            if let Some(pieced) = pieced(&text(500), &changes) {
                prop_assert_eq!(applied, Ok(()));
                prop_assert_eq!(pieced, value);
            }
        }
    }
}
