//! Undo records as bytes and as values.

use super::CAPACITY;
use nfold_store::{PageNo, TrxId};

/// The longest body (key and row image), bytes.
pub const MAX_BODY: usize = 128 << 10;

pub(super) const SHORT: usize = 32;
pub(super) const HEADER: usize = 56;
pub(super) const FLAG_LONG: u8 = 1;
pub(super) const FLAG_QUIET: u8 = 2;
const TRX_MASK: u64 = (1 << 48) - 1;

/// Where an undo record is; 0 is none. See the parent module for the bits.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Default, Debug)]
pub struct UndoPtr(pub u64);

impl UndoPtr {
    pub const NONE: UndoPtr = UndoPtr(0);

    pub(super) fn new(page: PageNo, offset: u16, undo_no: u32) -> UndoPtr {
        UndoPtr((page as u64) << 32 | (offset as u64) << 16 | (undo_no & 0xffff) as u64)
    }

    pub fn is_none(self) -> bool {
        self.0 == 0
    }

    pub fn page(self) -> PageNo {
        (self.0 >> 32) as PageNo
    }

    pub fn offset(self) -> u16 {
        (self.0 >> 16) as u16
    }

    pub(super) fn undo_no_low(self) -> u16 {
        self.0 as u16
    }
}

/// The kind of change that a record describes.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum UndoKind {
    /// The row did not exist before; no image.
    Insert = 1,
    /// The row was changed, or a delete-marked one was brought back; the image is the previous
    /// version.
    Update = 2,
    /// The row was delete-marked; the image is the previous version.
    DeleteMark = 3,
    /// The transaction committed.
    Commit = 4,
    /// The transaction was rolled back, all of it.
    End = 5,
    /// The transaction is prepared: a restart keeps it until it is told how to end it. In the place
    /// of a key and an image are the bytes that describe it.
    Prepare = 6,
    /// A prepared transaction is to be rolled back: from here on it is like an unprepared one.
    Unprepare = 7,
}

impl UndoKind {
    pub(super) fn from_u8(byte: u8) -> Option<UndoKind> {
        Some(match byte {
            1 => UndoKind::Insert,
            2 => UndoKind::Update,
            3 => UndoKind::DeleteMark,
            4 => UndoKind::Commit,
            5 => UndoKind::End,
            6 => UndoKind::Prepare,
            7 => UndoKind::Unprepare,
            _ => return None,
        })
    }

    /// Whether it is about a row, and not about the transaction.
    pub fn is_row(self) -> bool {
        matches!(
            self,
            UndoKind::Insert | UndoKind::Update | UndoKind::DeleteMark
        )
    }

    /// Whether it is the last record of its transaction.
    pub(super) fn is_end(self) -> bool {
        matches!(self, UndoKind::Commit | UndoKind::End)
    }

    /// Whether a body follows the record's header.
    pub(super) fn has_body(self) -> bool {
        self.is_row() || self == UndoKind::Prepare
    }
}

/// The version that a change replaces.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct OldVersion {
    pub trx_id: TrxId,
    pub undo: UndoPtr,
    /// The row's flags (delete mark).
    pub flags: u16,
}

/// A row change about to be logged.
#[derive(Copy, Clone, Debug)]
pub struct RowChange<'a> {
    /// Insert, Update or DeleteMark.
    pub kind: UndoKind,
    pub table_id: u64,
    /// The clustered key.
    pub key: &'a [u8],
    /// Zero for an insert.
    pub old: OldVersion,
    /// The row image of the previous version; empty for an insert.
    pub image: &'a [u8],
    /// Purge has nothing to do for it: the version that is replaced leaves no entry, mark or
    /// overflow page that the new one does not need.
    pub quiet: bool,
}

impl RowChange<'_> {
    /// Bytes that `UndoLog::prepare` is told.
    pub fn body_len(&self) -> usize {
        self.key.len() + self.image.len()
    }
}

/// The fixed part of a record.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct UndoHeader {
    pub len: u16,
    pub kind: UndoKind,
    pub flags: u8,
    pub undo_no: u32,
    pub trx_id: TrxId,
    pub table_id: u64,
    pub prev_of_trx: UndoPtr,
    pub old: OldVersion,
    pub key_len: u16,
    pub body_len: u32,
    pub first_long: PageNo,
}

impl UndoHeader {
    pub(super) fn is_long(&self) -> bool {
        self.flags & FLAG_LONG != 0
    }

    pub(crate) fn is_quiet(&self) -> bool {
        self.flags & FLAG_QUIET != 0
    }

    /// The header's bytes. The first [`encoded_len`](Self::encoded_len) of them are stored.
    pub(super) fn encode(&self) -> [u8; HEADER] {
        let shared = |id: TrxId, high: u16| ((id & TRX_MASK) | u64::from(high) << 48).to_le_bytes();
        let mut out = [0; HEADER];
        out[..2].copy_from_slice(&self.len.to_le_bytes());
        (out[2], out[3]) = (self.kind as u8, self.flags);
        out[4..8].copy_from_slice(&self.undo_no.to_le_bytes());
        out[8..16].copy_from_slice(&shared(self.trx_id, self.old.flags));
        out[16..24].copy_from_slice(&self.table_id.to_le_bytes());
        out[24..SHORT].copy_from_slice(&self.prev_of_trx.0.to_le_bytes());
        out[SHORT..40].copy_from_slice(&self.old.undo.0.to_le_bytes());
        out[40..48].copy_from_slice(&shared(self.old.trx_id, self.key_len));
        out[48..52].copy_from_slice(&self.body_len.to_le_bytes());
        out[52..].copy_from_slice(&self.first_long.to_le_bytes());
        out
    }

    pub(super) fn encoded_len(&self) -> usize {
        match self.kind.has_body() {
            true => HEADER,
            false => SHORT,
        }
    }

    /// Reads a header from bytes that may be garbage. `None`: they are no record.
    pub(super) fn decode(bytes: &[u8; HEADER]) -> Option<UndoHeader> {
        let u64_at = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(word)
        };
        let head = u64_at(0);
        let kind = UndoKind::from_u8((head >> 16) as u8)?;
        let owner = u64_at(8);
        let mut header = UndoHeader {
            len: head as u16,
            kind,
            flags: (head >> 24) as u8,
            undo_no: (head >> 32) as u32,
            trx_id: owner & TRX_MASK,
            table_id: u64_at(16),
            prev_of_trx: UndoPtr(u64_at(24)),
            old: OldVersion {
                flags: (owner >> 48) as u16,
                ..OldVersion::default()
            },
            key_len: 0,
            body_len: 0,
            first_long: 0,
        };
        let mut expected = SHORT;
        if kind.has_body() {
            let version = u64_at(40);
            header.old.undo = UndoPtr(u64_at(32));
            header.old.trx_id = version & TRX_MASK;
            header.key_len = (version >> 48) as u16;
            header.body_len = u64_at(48) as u32;
            header.first_long = (u64_at(48) >> 32) as u32;
            if header.body_len as usize > MAX_BODY || header.key_len as u32 > header.body_len {
                return None;
            }
            expected = HEADER
                + if header.is_long() {
                    0
                } else {
                    header.body_len as usize
                };
        }
        (header.len as usize == expected && expected <= CAPACITY).then_some(header)
    }
}

/// A record as it was read: owned, and reused from read to read.
#[derive(Clone, Debug)]
pub struct UndoRecord {
    pub kind: UndoKind,
    pub trx_id: TrxId,
    pub undo_no: u32,
    pub table_id: u64,
    /// Where this record itself is: the undo pointer of the row version that it was written for.
    pub ptr: UndoPtr,
    pub prev_of_trx: UndoPtr,
    /// The version that the change replaced.
    pub old: OldVersion,
    /// As in [`RowChange::quiet`].
    pub quiet: bool,
    pub(super) key_len: usize,
    pub(super) body: Vec<u8>,
}

impl Default for UndoRecord {
    fn default() -> Self {
        UndoRecord {
            kind: UndoKind::End,
            trx_id: 0,
            undo_no: 0,
            table_id: 0,
            ptr: UndoPtr::NONE,
            prev_of_trx: UndoPtr::NONE,
            old: OldVersion::default(),
            quiet: false,
            key_len: 0,
            body: Vec::new(),
        }
    }
}

impl UndoRecord {
    /// The clustered key of the row.
    pub fn key(&self) -> &[u8] {
        &self.body[..self.key_len]
    }

    /// The row image of the version that was replaced; empty for an insert.
    pub fn image(&self) -> &[u8] {
        &self.body[self.key_len..]
    }

    pub(super) fn set(&mut self, ptr: UndoPtr, h: &UndoHeader) {
        self.kind = h.kind;
        self.trx_id = h.trx_id;
        self.undo_no = h.undo_no;
        self.table_id = h.table_id;
        self.ptr = ptr;
        self.prev_of_trx = h.prev_of_trx;
        self.old = h.old;
        self.quiet = h.is_quiet();
        self.key_len = h.key_len as usize;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Format v1, byte by byte.
    #[test]
    fn the_bytes_are_frozen() {
        let header = UndoHeader {
            len: 61,
            kind: UndoKind::Update,
            flags: 0,
            undo_no: 0x0403_0201,
            trx_id: 0x0000_0605_0403_0201,
            table_id: 9,
            prev_of_trx: UndoPtr::new(7, 80, 3),
            old: OldVersion {
                trx_id: 5,
                undo: UndoPtr::new(1, 2, 3),
                flags: 0xbbaa,
            },
            key_len: 2,
            body_len: 5,
            first_long: 0,
        };
        let expected: [u8; HEADER] = [
            61, 0, 2, 0, 1, 2, 3, 4, 1, 2, 3, 4, 5, 6, 0xaa, 0xbb, 9, 0, 0, 0, 0, 0, 0, 0, 3, 0,
            80, 0, 7, 0, 0, 0, 3, 0, 2, 0, 1, 0, 0, 0, 5, 0, 0, 0, 0, 0, 2, 0, 5, 0, 0, 0, 0, 0, 0,
            0,
        ];
        assert_eq!(header.encode(), expected);
        assert_eq!(UndoHeader::decode(&expected), Some(header));
    }

    proptest! {
        #[test]
        fn garbage_is_refused_or_in_bounds(bytes in proptest::array::uniform32(any::<u8>()), more in proptest::array::uniform24(any::<u8>())) {
            let mut all = [0; HEADER];
            all[..32].copy_from_slice(&bytes);
            all[32..].copy_from_slice(&more);
            all[2] %= 9;
            if let Some(h) = UndoHeader::decode(&all) {
                prop_assert!(h.len as usize <= CAPACITY && h.body_len as usize <= MAX_BODY);
                prop_assert!(h.key_len as u32 <= h.body_len);
            }
        }
    }
}
