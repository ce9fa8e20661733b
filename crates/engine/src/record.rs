//! The format of values in leaves: headers of clustered rows and of secondary entries.
//!
//! # Picture (format v1)
//!
//! ```text
//! clustered leaf value                          secondary leaf value
//!  0  u48 transaction id                         0  u48 transaction id of the newest change of this entry
//!  6  u64 undo pointer (0: no older version)     6  u8  flags: 1 delete mark, 2 without original bytes
//! 14  u8  flags: 1 delete mark                   7  u8  hint: slot where the clustered row was last seen
//! 15  u8  0                                      8  u32 hint: its page, or 0
//! 16  row image (nfold_types::row)              12  u16 length of the primary key at the end of the entry's key
//!                                               14  original bytes of the non-invertible columns:
//!                                                   per column u16 length (0xffff: NULL), bytes
//! ```
//!
//! # Invariants
//! I1. A value shorter than its header is corruption, never an index out of bounds.
//! I2. The row-location hint ("hint") is advisory: it is never compared, and its changes are never
//!     logged.

use nfold_btree::RowHint;
use nfold_store::TrxId;
use nfold_txn::undo::{OldVersion, UndoPtr};
use nfold_types::key::NULL_TEXT;
use nfold_types::row::RowLayout;

/// Set when the row or entry is deleted but may still be seen by an older snapshot.
pub const DELETE_MARK: u8 = 1;

/// Set in a secondary entry that would be too large with its original bytes: they are not there,
/// the row has them.
pub const BARE: u8 = 2;

/// Bytes before the row image.
pub const CLUSTERED_HEADER: usize = 16;
/// Bytes before the original column bytes.
pub const SECONDARY_HEADER: usize = 14;
/// The offset of the row-location hint in a secondary value.
pub const ROW_HINT_AT: usize = 7;
/// The length that marks NULL among the lengths of original bytes.
pub const NULL_LENGTH: u16 = NULL_TEXT;

fn u48(bytes: &[u8]) -> u64 {
    let mut wide = [0; 8];
    wide[..6].copy_from_slice(&bytes[..6]);
    u64::from_le_bytes(wide)
}

/// The header of a clustered row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowHeader {
    /// The transaction that made this version.
    pub trx: TrxId,
    /// Where the version before it is, or 0.
    pub undo: u64,
    pub deleted: bool,
}

impl RowHeader {
    /// The header's bytes.
    pub fn to_bytes(self) -> [u8; CLUSTERED_HEADER] {
        let mut out = [0; CLUSTERED_HEADER];
        out[..6].copy_from_slice(&self.trx.to_le_bytes()[..6]);
        out[6..14].copy_from_slice(&self.undo.to_le_bytes());
        out[14] = if self.deleted { DELETE_MARK } else { 0 };
        out
    }

    /// Splits a clustered value into header and row image; `None` if it is too short to be one.
    #[inline]
    pub fn split(value: &[u8]) -> Option<(RowHeader, &[u8])> {
        let (head, image) = value.split_at_checked(CLUSTERED_HEADER)?;
        let undo = u64::from_le_bytes(head[6..14].try_into().expect("eight bytes"));
        Some((
            RowHeader {
                trx: u48(head),
                undo,
                deleted: head[14] & DELETE_MARK != 0,
            },
            image,
        ))
    }
}

impl From<OldVersion> for RowHeader {
    fn from(old: OldVersion) -> Self {
        RowHeader {
            trx: old.trx_id,
            undo: old.undo.0,
            deleted: old.flags & u16::from(DELETE_MARK) != 0,
        }
    }
}

impl From<RowHeader> for OldVersion {
    fn from(header: RowHeader) -> Self {
        let flags = if header.deleted {
            DELETE_MARK.into()
        } else {
            0
        };
        OldVersion {
            trx_id: header.trx,
            undo: UndoPtr(header.undo),
            flags,
        }
    }
}

/// A secondary entry's value, read in place.
#[derive(Debug, Clone, Copy)]
pub struct SecondaryEntry<'a> {
    /// The transaction of the newest change: insertion, delete mark, revival.
    pub trx: TrxId,
    pub deleted: bool,
    /// It has no original bytes: what covers is the row.
    pub bare: bool,
    /// Where the clustered row was last seen.
    pub row_hint: RowHint,
    /// Bytes of the primary key at the end of the entry's key.
    pub primary_len: usize,
    originals: &'a [u8],
}

impl<'a> SecondaryEntry<'a> {
    /// Reads a secondary value; `None` if it is too short to be one.
    #[inline]
    pub fn parse(value: &'a [u8]) -> Option<Self> {
        let (head, originals) = value.split_at_checked(SECONDARY_HEADER)?;
        Some(SecondaryEntry {
            trx: u48(head),
            deleted: head[6] & DELETE_MARK != 0,
            bare: head[6] & BARE != 0,
            row_hint: RowHint::from_bytes(head[7..12].try_into().expect("five bytes")),
            primary_len: u16::from_le_bytes([head[12], head[13]]).into(),
            originals,
        })
    }

    /// The primary key at the end of `key`; `None` if the lengths do not fit (corruption).
    #[inline]
    pub fn primary_key<'k>(&self, key: &'k [u8]) -> Option<&'k [u8]> {
        key.len().checked_sub(self.primary_len).map(|at| &key[at..])
    }

    /// Everything behind the header: equal bytes mean equal originals.
    pub fn originals_bytes(&self) -> &'a [u8] {
        self.originals
    }

    /// The original bytes of the non-invertible columns, in index order: `None` inside is NULL.
    /// Ends early on corrupt bytes.
    pub fn originals(&self) -> Originals<'a> {
        Originals(self.originals)
    }
}

/// Original bytes of non-invertible columns, one after the other.
#[derive(Debug, Clone, Copy)]
pub struct Originals<'a>(pub &'a [u8]);

impl<'a> Iterator for Originals<'a> {
    type Item = Option<&'a [u8]>;

    #[inline]
    fn next(&mut self) -> Option<Option<&'a [u8]>> {
        let (len, tail) = self.0.split_first_chunk::<2>()?;
        let len = u16::from_le_bytes(*len);
        if len == NULL_LENGTH {
            self.0 = tail;
            return Some(None);
        }
        let (bytes, tail) = tail.split_at_checked(len.into())?;
        self.0 = tail;
        Some(Some(bytes))
    }
}

/// Bytes of a transaction id.
const TRX_MASK: u64 = (1 << 48) - 1;

/// The header fields that decide whether a clustered row is visible without its undo log. They are
/// decoded from two words that may be garbage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowHead {
    pub trx: TrxId,
    /// It has no delete mark.
    pub live: bool,
    /// It has no delete mark, and its image is all of it.
    pub unmarked: bool,
}

impl RowHead {
    /// Where the second word is.
    pub const SECOND: usize = 14;
    /// Bytes that a value has at least.
    pub const BYTES: usize = CLUSTERED_HEADER + RowLayout::FLAGS_END;

    /// `first` and `second`: the eight bytes at 0 and at [`SECOND`](Self::SECOND) of the value,
    /// little-endian.
    #[inline(always)]
    pub fn from_words(first: u64, second: u64) -> RowHead {
        let flags = (CLUSTERED_HEADER - Self::SECOND + RowLayout::FLAGS_END - 1) * 8;
        let unusual = DELETE_MARK as u64 | (RowLayout::EXTERNAL as u64) << flags;
        RowHead {
            trx: first & TRX_MASK,
            live: second & DELETE_MARK as u64 == 0,
            unmarked: second & unusual == 0,
        }
    }
}

/// The header of a secondary entry's value, from two words that may be anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SecondaryHead {
    /// As in [`SecondaryEntry`], and so are the others.
    pub trx: TrxId,
    pub deleted: bool,
    pub bare: bool,
    pub row_hint: RowHint,
    pub primary_len: usize,
}

impl SecondaryHead {
    /// `first` and `second`: the first 16 bytes of the value, little-endian.
    #[inline(always)]
    pub fn from_words(first: u64, second: u64) -> SecondaryHead {
        let slot = (first >> 56) as u8;
        let [a, b, c, d, ..] = second.to_le_bytes();
        SecondaryHead {
            trx: first & TRX_MASK,
            deleted: (first >> 48) as u8 & DELETE_MARK != 0,
            bare: (first >> 48) as u8 & BARE != 0,
            row_hint: RowHint::from_bytes([slot, a, b, c, d]),
            primary_len: usize::from((second >> 32) as u16),
        }
    }
}

/// Writes the header of a secondary value; original bytes follow through [`put_original`].
pub fn put_secondary_header(out: &mut Vec<u8>, trx: TrxId, deleted: bool, primary_len: usize) {
    out.extend_from_slice(&trx.to_le_bytes()[..6]);
    out.extend_from_slice(&[if deleted { DELETE_MARK } else { 0 }, 0, 0, 0, 0, 0]);
    out.extend_from_slice(&(primary_len as u16).to_le_bytes());
}

/// Says of a secondary value that its original bytes are not there.
pub fn set_bare(value: &mut [u8]) {
    value[6] |= BARE;
}

/// Puts the hint into a secondary value.
pub fn set_row_hint(value: &mut [u8], row_hint: RowHint) {
    if let Some(place) = value.get_mut(ROW_HINT_AT..ROW_HINT_AT + RowHint::BYTES) {
        place.copy_from_slice(&row_hint.to_bytes());
    }
}

/// Bytes 0..7 of a secondary value: what changes when an entry is marked or revived.
pub fn secondary_mark(trx: TrxId, deleted: bool) -> [u8; 7] {
    let mut out = [0; 7];
    out[..6].copy_from_slice(&trx.to_le_bytes()[..6]);
    out[6] = if deleted { DELETE_MARK } else { 0 };
    out
}

/// Appends the original bytes of one non-invertible column.
pub fn put_original(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    match bytes {
        None => out.extend_from_slice(&NULL_LENGTH.to_le_bytes()),
        Some(b) => {
            out.extend_from_slice(&(b.len() as u16).to_le_bytes());
            out.extend_from_slice(b);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_header_round_trip() {
        let header = RowHeader {
            trx: 0x1234_5678_9abc,
            undo: u64::MAX - 7,
            deleted: true,
        };
        let mut value = header.to_bytes().to_vec();
        value.extend_from_slice(b"image");
        assert_eq!(RowHeader::split(&value), Some((header, &b"image"[..])));
        assert_eq!(RowHeader::split(&value[..15]), None);
        let word =
            |value: &[u8], at: usize| u64::from_le_bytes(value[at..at + 8].try_into().unwrap());
        let head = |value: &[u8]| RowHead::from_words(word(value, 0), word(value, RowHead::SECOND));
        value.extend_from_slice(b"more");
        for (deleted, external) in [(false, false), (true, false), (false, true)] {
            value[..CLUSTERED_HEADER].copy_from_slice(&RowHeader { deleted, ..header }.to_bytes());
            let flags = CLUSTERED_HEADER + RowLayout::FLAGS_END - 1;
            value[flags] = if external { RowLayout::EXTERNAL } else { 1 };
            let head = head(&value);
            assert_eq!(
                (head.trx, head.live, head.unmarked),
                (header.trx, !deleted, !deleted && !external)
            );
        }
    }

    #[test]
    fn secondary_round_trip() {
        let mut value = Vec::new();
        put_secondary_header(&mut value, 77, false, 3);
        put_original(&mut value, Some(b"Abc"));
        put_original(&mut value, None);
        put_original(&mut value, Some(b""));
        let entry = SecondaryEntry::parse(&value).unwrap();
        assert_eq!(
            (entry.trx, entry.deleted, entry.row_hint),
            (77, false, RowHint::NONE)
        );
        assert_eq!(entry.primary_key(b"keyPRI"), Some(&b"PRI"[..]));
        assert_eq!(entry.primary_key(b"PR"), None);
        assert_eq!(
            entry.originals().collect::<Vec<_>>(),
            [Some(&b"Abc"[..]), None, Some(&b""[..])]
        );
        value[..7].copy_from_slice(&secondary_mark(78, true));
        set_row_hint(&mut value, RowHint::new(0x1234_5678, 9));
        let entry = SecondaryEntry::parse(&value).unwrap();
        let word = |at: usize| u64::from_le_bytes(value[at..at + 8].try_into().unwrap());
        let head = SecondaryHead::from_words(word(0), word(8));
        assert_eq!(
            (head.trx, head.deleted, head.row_hint, head.primary_len),
            (78, true, entry.row_hint, 3)
        );
        assert_eq!((entry.trx, entry.deleted), (78, true));
        value.truncate(SECONDARY_HEADER + 4);
        assert_eq!(
            SecondaryEntry::parse(&value).unwrap().originals().count(),
            0,
            "cut short: ends, no panic"
        );
        assert!(SecondaryEntry::parse(&value[..13]).is_none());
    }
}
