//! Pages: identity, header layout, checksum, and the writable view to which redo is applied.
//!
//! # Picture
//! ```text
//!  0  u32 checksum (CRC-32C of bytes 4..16384)   4  u16 page type   6 u8 format (1)   7 u8 flags
//!  8  u32 space id                              12  u32 space incarnation
//! 16  u32 page number                           20  u16 level      22 u16 reserved
//! 24  u64 index id
//! 32  u64 page LSN (end LSN of the newest mini-transaction that changed it)
//! 40  u64 newest transaction id on the page
//! 48  u32 encryption key id (0)                 52  12 bytes nonce
//! 64  body
//! ```
//! # Invariants
//! - I1: the checksum is valid on disk and unspecified in memory. It is computed over the copy that
//!   is written.
//! - I2: a page of only zero bytes was never written. It is valid and has type
//!   [`PageType::UNUSED`].

use nfold_sync::planted::{self, Bug};
use nfold_sync::prim::AtomicU64;
use nfold_sync::words;
use std::fmt;

/// The size of a page in bytes, on disk and in memory.
pub const PAGE_SIZE: usize = 16384;
/// The size of a page in 64-bit words.
pub const PAGE_WORDS: usize = PAGE_SIZE / 8;
/// The size of the page header in bytes. The page body follows it.
pub const PAGE_HEADER: usize = 64;

pub type SpaceId = u32;
pub type PageNo = u32;
/// A position in the log, in bytes. 0 means none.
pub type Lsn = u64;
pub type TrxId = u64;

/// The identity of a page: its space and its number within it.
#[derive(Copy, Clone, Eq, PartialEq, Hash, Ord, PartialOrd, Debug)]
pub struct PageId {
    pub space: SpaceId,
    pub page: PageNo,
}

impl PageId {
    pub const fn new(space: SpaceId, page: PageNo) -> PageId {
        PageId { space, page }
    }

    pub(crate) const fn packed(self) -> u64 {
        (self.space as u64) << 32 | self.page as u64
    }

    pub(crate) const fn unpacked(packed: u64) -> PageId {
        PageId {
            space: (packed >> 32) as u32,
            page: packed as u32,
        }
    }
}

impl fmt::Display for PageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.space, self.page)
    }
}

/// Byte offsets of the page header's fields.
pub mod header {
    pub const CHECKSUM: usize = 0;
    pub const PAGE_TYPE: usize = 4;
    pub const FORMAT: usize = 6;
    pub const FLAGS: usize = 7;
    pub const SPACE: usize = 8;
    pub const INCARNATION: usize = 12;
    pub const PAGE_NO: usize = 16;
    pub const LEVEL: usize = 20;
    pub const INDEX_ID: usize = 24;
    pub const LSN: usize = 32;
    pub const NEWEST_TRX: usize = 40;
    pub const KEY_ID: usize = 48;
    pub const NONCE: usize = 52;
    /// The page format that this version writes.
    pub const FORMAT_V1: u8 = 1;
    /// The format of a page to which redo could not be applied. No reader accepts it.
    pub const FORMAT_BROKEN: u8 = 0xFF;
}

/// Values of the page type field.
#[derive(Debug)]
pub struct PageType;

impl PageType {
    /// The page was not written since the file grew.
    pub const UNUSED: u16 = 0;
    /// Page 0 of a space: its header page.
    pub const SPACE_HEADER: u16 = 1;
    /// A freed page on the free list.
    pub const FREE: u16 = 2;
    /// A freed page that contains a part of the free list.
    pub const FREE_TRUNK: u16 = 3;
    /// Leaf and inner pages of trees.
    pub const BTREE_LEAF: u16 = 0x10;
    pub const BTREE_INNER: u16 = 0x11;
    /// Pages of long column values.
    pub const OVERFLOW: u16 = 0x18;
    /// Pages of the undo log.
    pub const UNDO: u16 = 0x20;
    pub const UNDO_HEADER: u16 = 0x21;
    /// The first page type for use by higher crates.
    pub const USER: u16 = 0x40;
}

/// The checksum of a page image: a CRC-32C.
pub(crate) fn checksum(page: &[u8]) -> u32 {
    crc32c::crc32c(&page[4..])
}

/// Sets the checksum of a page image that is about to be written (I1).
pub(crate) fn seal(page: &mut [u8]) {
    let sum = checksum(page);
    page[..4].copy_from_slice(&sum.to_le_bytes());
}

/// The message for a page whose LSN lies beyond the end of the log.
pub(crate) const NEWER: &str = "newer than the log, which has lost its end";

/// Checks an image of page `id` read from disk. Returns what is wrong with it as an error.
pub(crate) fn check_image(id: PageId, page: &[u8]) -> Result<(), &'static str> {
    let field =
        |at: usize| u32::from_le_bytes([page[at], page[at + 1], page[at + 2], page[at + 3]]);
    if field(header::CHECKSUM) != checksum(page) && !planted::is(Bug::MissedChecksum) {
        if page.iter().all(|b| *b == 0) {
            return Ok(()); // I2
        }
        return Err("checksum mismatch");
    }
    if page[header::FORMAT] == header::FORMAT_BROKEN {
        return Err("recovery could not apply the log to it");
    }
    if page[header::FORMAT] != header::FORMAT_V1 {
        return Err("unknown page format");
    }
    if field(header::SPACE) != id.space || field(header::PAGE_NO) != id.page {
        return Err("another page's bytes");
    }
    Ok(())
}

/// The LSN of a page image.
pub(crate) fn image_lsn(page: &[u8]) -> Lsn {
    let mut bytes = [0u8; 8];
    bytes.copy_from_slice(&page[header::LSN..header::LSN + 8]);
    u64::from_le_bytes(bytes)
}

/// A page under its exclusive latch, to which redo is applied at run time and at recovery.
///
/// Writes through it are not logged. Code outside [`crate::RedoHandler::apply`] must change pages
/// through [`crate::Mtr`].
pub struct PageMut<'a> {
    id: PageId,
    words: &'a [AtomicU64],
}

impl<'a> PageMut<'a> {
    pub(crate) fn new(id: PageId, words: &'a [AtomicU64]) -> Self {
        PageMut { id, words }
    }

    /// A page outside the pool, for tests of redo handlers. `words` are its bytes, which no other
    /// thread may change.
    pub fn detached(id: PageId, words: &'a [AtomicU64]) -> Self {
        PageMut { id, words }
    }

    pub fn id(&self) -> PageId {
        self.id
    }

    pub fn words(&self) -> &'a [AtomicU64] {
        self.words
    }

    pub fn u8(&self, off: usize) -> u8 {
        words::load_u8(self.words, off)
    }

    pub fn u16(&self, off: usize) -> u16 {
        words::load_u16(self.words, off)
    }

    pub fn u32(&self, off: usize) -> u32 {
        words::load_u32(self.words, off)
    }

    pub fn u64(&self, off: usize) -> u64 {
        words::load_u64(self.words, off)
    }

    pub fn copy(&self, off: usize, out: &mut [u8]) {
        words::copy_out(self.words, off, out);
    }

    pub fn write(&self, off: usize, bytes: &[u8]) {
        words::store_bytes(self.words, off, bytes);
    }

    pub fn write_u16(&self, off: usize, value: u16) {
        words::store_bytes(self.words, off, &value.to_le_bytes());
    }

    pub fn write_u32(&self, off: usize, value: u32) {
        words::store_bytes(self.words, off, &value.to_le_bytes());
    }

    pub fn write_u64(&self, off: usize, value: u64) {
        words::store_u64(self.words, off, value);
    }

    pub fn move_within(&self, from: usize, to: usize, len: usize) {
        words::move_within(self.words, from, to, len);
    }

    pub fn fill_zero(&self, off: usize, len: usize) {
        words::fill_zero(self.words, off, len);
    }

    /// A corruption error that names this page.
    pub fn corrupt(&self, what: &'static str) -> crate::StoreError {
        crate::StoreError::Corrupt {
            page: self.id,
            lsn: self.u64(header::LSN),
            what,
        }
    }
}

/// Whether the image's checksum is valid. For a page of zeros, it is not.
pub(crate) fn checksum_matches(page: &[u8]) -> bool {
    u32::from_le_bytes([page[0], page[1], page[2], page[3]]) == checksum(page)
}
