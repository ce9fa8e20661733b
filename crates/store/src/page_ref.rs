//! Optimistic references to resident pages.
//!
//! # Concurrency
//! A reference holds no latch and no pin. At any moment, a writer may change the bytes, or the
//! frame may receive another page. The data read is valid only if [`PageRef::validate`] returns
//! true afterwards. Until then, offsets, lengths and numbers from the page are unverified. All
//! reads are clamped to the page, so unverified values cannot cause a fault.
//! # Cost
//! A `PageRef` takes five words on the stack. Reading writes no shared memory.

use crate::page::{PAGE_WORDS, PageId, TrxId, header};
use nfold_sync::PageWord;
use nfold_sync::prim::AtomicU64;
use nfold_sync::words;

/// An optimistic reference to a resident page. See the module header.
#[derive(Copy, Clone)]
pub struct PageRef<'a> {
    pub(crate) id: PageId,
    pub(crate) words: &'a [AtomicU64; PAGE_WORDS],
    pub(crate) word: &'a PageWord,
    pub(crate) seen: u64,
}

/// A [`PageRef`] without the page id, for a caller that knows it. It consists only of the address
/// of the bytes and the page word seen.
#[derive(Copy, Clone)]
pub struct PagePeek<'a> {
    pub(crate) words: &'a [AtomicU64; PAGE_WORDS],
    pub(crate) word: &'a PageWord,
    pub(crate) seen: u64,
}

impl<'a> PagePeek<'a> {
    #[inline(always)]
    pub fn words(&self) -> &'a [AtomicU64; PAGE_WORDS] {
        self.words
    }

    /// As [`PageRef::validate`].
    #[inline(always)]
    #[must_use]
    pub fn validate(&self) -> bool {
        self.word.validate(self.seen)
    }
}

impl<'a> PageRef<'a> {
    #[inline(always)]
    pub fn id(&self) -> PageId {
        self.id
    }

    #[inline(always)]
    pub fn words(&self) -> &'a [AtomicU64] {
        self.words
    }

    #[inline(always)]
    pub fn u8(&self, off: usize) -> u8 {
        words::load_u8(self.words, off)
    }

    #[inline(always)]
    pub fn u16(&self, off: usize) -> u16 {
        words::load_u16(self.words, off)
    }

    #[inline(always)]
    pub fn u32(&self, off: usize) -> u32 {
        words::load_u32(self.words, off)
    }

    #[inline(always)]
    pub fn u64(&self, off: usize) -> u64 {
        words::load_u64(self.words, off)
    }

    /// Copies the bytes from `off` on. Bytes beyond the page become zeros.
    #[inline]
    pub fn copy(&self, off: usize, out: &mut [u8]) {
        words::copy_out(self.words, off, out);
    }

    /// Appends the bytes `[off, off + len)` to `out`, without those beyond the page.
    #[inline]
    pub fn append(&self, off: usize, len: usize, out: &mut Vec<u8>) {
        words::append_out(self.words, off, len, out);
    }

    /// As [`PageRef::append`], but faster for several KiB.
    pub fn append_long(&self, off: usize, len: usize, out: &mut Vec<u8>) {
        words::append_long(self.words, off, len, out);
    }

    /// Whether the bytes from `off` on are `other`.
    pub fn equal(&self, off: usize, other: &[u8]) -> bool {
        words::equal(self.words, off, other)
    }

    /// Returns true if everything read through this reference so far belongs to a single state of
    /// the page.
    #[inline(always)]
    #[must_use]
    pub fn validate(&self) -> bool {
        self.word.validate(self.seen)
    }

    /// Whether `other` refers to the same page in the same state.
    #[inline(always)]
    pub fn is_same(&self, other: &PageRef<'_>) -> bool {
        self.seen == other.seen && std::ptr::eq(self.word, other.word)
    }

    /// The page word seen. Equal values mean equal bytes, so it can serve as a hint for resuming a
    /// read.
    #[inline(always)]
    pub fn version(&self) -> u64 {
        self.seen
    }

    #[inline(always)]
    pub fn page_type(&self) -> u16 {
        self.u16(header::PAGE_TYPE)
    }

    #[inline(always)]
    pub fn level(&self) -> u16 {
        self.u16(header::LEVEL)
    }

    #[inline(always)]
    pub fn index_id(&self) -> u64 {
        self.u64(header::INDEX_ID)
    }

    /// The id of the newest transaction that changed the page.
    #[inline(always)]
    pub fn newest_trx(&self) -> TrxId {
        self.u64(header::NEWEST_TRX)
    }
}
