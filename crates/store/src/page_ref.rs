//! An optimistic look at a resident page.
//!
//! # Concurrency
//! Nothing is held: a writer may change the bytes, or the frame may be given to another page, at any moment. What was
//! read counts only after [`PageRef::validate`] returned true; until then offsets, lengths and numbers taken from
//! the page are garbage until proven otherwise. All reads are clamped, so garbage cannot fault.
//! # Cost
//! A `PageRef` is five words on the stack; reading stores nothing.

use crate::page::{PAGE_WORDS, PageId, TrxId, header};
use nfold_sync::PageWord;
use nfold_sync::prim::AtomicU64;
use nfold_sync::words;

/// See the module's header.
#[derive(Copy, Clone)]
pub struct PageRef<'a> {
    pub(crate) id: PageId,
    pub(crate) words: &'a [AtomicU64; PAGE_WORDS],
    pub(crate) word: &'a PageWord,
    pub(crate) seen: u64,
}

/// A [`PageRef`] of one who knows which page it is: nothing but where the bytes are, and the word that was seen.
#[derive(Copy, Clone)]
pub struct Glance<'a> {
    pub(crate) words: &'a [AtomicU64; PAGE_WORDS],
    pub(crate) word: &'a PageWord,
    pub(crate) seen: u64,
}

impl<'a> Glance<'a> {
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

    /// Copies bytes from `off` on; zero-fills beyond the page.
    #[inline]
    pub fn copy(&self, off: usize, out: &mut [u8]) {
        words::copy_out(self.words, off, out);
    }

    /// Appends `[off, off + len)` to `out`; bytes beyond the page are not appended.
    #[inline]
    pub fn append(&self, off: usize, len: usize, out: &mut Vec<u8>) {
        words::append_out(self.words, off, len, out);
    }

    /// True if all that was read through this reference so far is one state of the page.
    #[inline(always)]
    #[must_use]
    pub fn validate(&self) -> bool {
        self.word.validate(self.seen)
    }

    /// Whether the other one is a look at the same page in the same state.
    #[inline(always)]
    pub fn is_same(&self, other: &PageRef<'_>) -> bool {
        self.seen == other.seen && std::ptr::eq(self.word, other.word)
    }

    /// The page word that was seen: equal values mean equal bytes. A hint for resuming.
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

    /// The newest transaction that changed the page.
    #[inline(always)]
    pub fn newest_trx(&self) -> TrxId {
        self.u64(header::NEWEST_TRX)
    }
}
