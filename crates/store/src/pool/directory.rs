//! The page directory of a space: maps page numbers to page words.
//!
//! # Picture
//! ```text
//! chunks[k]        → 64 << k page words: chunk 0 has pages 0..64, chunk 1 64..192, chunk 2
//! 192..448
//! within a chunk   the low bits of the index are rotated up by four, so that neighbouring pages
//!                  do not share 128 bytes
//! ```
//! # Invariants
//! - D1: a chunk comes from the store's arena, with no page resident. It stays a chunk of its size
//!   for the life of the store, of this space or of a later one ([`Directory::give_back`]). So a
//!   thread with a reference to one of its words may read it at any time.
//! # Cost
//! A lookup takes two dependent loads (chunk pointer, word) and no lock. The chunk pointers stay in
//! cache.

use crate::page::PageNo;
use crate::pool::flat::Arena;
use nfold_sync::PageWord;
use nfold_sync::page_word::frame_of;
use parking_lot::Mutex;
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};

const FIRST_BITS: u32 = 6;
const CHUNKS: usize = 27;
/// log2 of the number of page words in 128 bytes.
const ROTATE: u32 = 4;

/// See the module header.
pub(crate) struct Directory {
    chunks: [AtomicPtr<PageWord>; CHUNKS],
    /// The allocator of chunks. Locked during an allocation.
    arena: Mutex<Arc<Arena>>,
}

/// The position of a [visit](Directory::visit).
#[derive(Copy, Clone, Default)]
pub(crate) struct VisitPosition {
    chunk: usize,
    word: usize,
}

/// The chunk of a page's word, and its index there.
#[inline(always)]
fn locate(page: PageNo) -> (usize, usize) {
    let index = u64::from(page) + (1 << FIRST_BITS);
    let bits = 63 - index.leading_zeros();
    let place = index - (1 << bits);
    let mask = (1u64 << bits) - 1;
    let place = ((place << ROTATE) | (place >> (bits - ROTATE))) & mask;
    ((bits - FIRST_BITS) as usize, place as usize)
}

/// The number of words in a chunk.
fn words_of(chunk: usize) -> usize {
    1 << (FIRST_BITS as usize + chunk)
}

impl Directory {
    pub(crate) fn new(arena: Arc<Arena>) -> Self {
        Directory {
            chunks: std::array::from_fn(|_| AtomicPtr::new(null_mut())),
            arena: Mutex::new(arena),
        }
    }

    /// The word of `page`, if its chunk was ever allocated.
    #[inline(always)]
    pub(crate) fn get(&self, page: PageNo) -> Option<&PageWord> {
        let (chunk, place) = locate(page);
        let base = self.chunks[chunk].load(Ordering::Acquire);
        if base.is_null() {
            return None;
        }
        // SAFETY: a non-null chunk has `64 << chunk` words and lives as long as the arena, so
        // longer than `self` (D1). `place` is below that number.
        Some(unsafe { &*base.add(place) })
    }

    /// The word of `page`. Allocates its chunk if necessary. The caller must have checked `page`
    /// against the size of the space.
    pub(crate) fn get_or_make(&self, page: PageNo) -> &PageWord {
        if let Some(word) = self.get(page) {
            return word;
        }
        let (chunk, _) = locate(page);
        let arena = self.arena.lock();
        if self.chunks[chunk].load(Ordering::Acquire).is_null() {
            // A `PageWord` is a transparent `AtomicU64`, so words that are zero or as they were
            // given back are valid.
            let fresh = arena.take(words_of(chunk) * size_of::<PageWord>());
            self.chunks[chunk].store(fresh.cast().as_ptr(), Ordering::Release);
        }
        drop(arena);
        self.get(page).expect("D1: the chunk was just allocated")
    }

    /// Returns all chunks to the arena. No page may be resident, and no thread may use the space
    /// any more.
    pub(crate) fn give_back(&self) {
        if cfg!(debug_assertions) {
            self.visit(VisitPosition::default(), usize::MAX / 2, |word| {
                assert_eq!(frame_of(word.load()), None, "D1: no page is resident")
            });
        }
        let arena = self.arena.lock();
        for (chunk, base) in self.chunks.iter().enumerate() {
            let base = NonNull::new(base.swap(null_mut(), Ordering::AcqRel));
            if let Some(base) = base {
                arena.give_back(base.cast(), words_of(chunk) * size_of::<PageWord>());
            }
        }
    }

    /// Calls `f` with up to `most` words of the allocated chunks, from a position on. Returns the
    /// position to continue at, or `None` at the end.
    pub(crate) fn visit(
        &self,
        from: VisitPosition,
        most: usize,
        mut f: impl FnMut(&PageWord),
    ) -> Option<VisitPosition> {
        let (mut left, mut first) = (most, from.word);
        for chunk in from.chunk..CHUNKS {
            let base = self.chunks[chunk].load(Ordering::Acquire);
            if !base.is_null() {
                let end = words_of(chunk).min(first + left);
                for word in first..end {
                    // SAFETY: as in `get`: `word` is below `words_of(chunk)`.
                    f(unsafe { &*base.add(word) });
                }
                if end < words_of(chunk) {
                    return Some(VisitPosition { chunk, word: end });
                }
                left -= end - first;
            }
            first = 0;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn words_are_distinct_and_neighbours_apart() {
        let mut seen = HashSet::new();
        for page in 0..if cfg!(miri) { 300 } else { 10_000u32 } {
            let (chunk, place) = locate(page);
            assert!(place < 64 << chunk);
            assert!(seen.insert((chunk, place)), "page {page} shares a word");
            let (next_chunk, next) = locate(page + 1);
            assert!(
                chunk != next_chunk || place / 16 != next / 16,
                "pages {page} and the next share a line"
            );
        }
        assert_eq!(locate(u32::MAX).0, CHUNKS - 1);
    }

    #[test]
    fn words_keep_their_addresses() {
        let d = Directory::new(Arc::new(Arena::new(false)));
        assert!(d.get(5).is_none());
        let a = std::ptr::from_ref(d.get_or_make(5));
        let (far, words) = if cfg!(miri) {
            (1000, 64 << 4)
        } else {
            (100_000, 64 << 10)
        };
        d.get_or_make(far);
        assert!(std::ptr::eq(a, d.get_or_make(5)));
        assert!(!std::ptr::eq(a, d.get_or_make(6)));
        for most in [1, 7, 64, 65, usize::MAX / 2] {
            let (mut seen, mut next) = (HashSet::new(), Some(VisitPosition::default()));
            while let Some(from) = next {
                let before = seen.len();
                next = d.visit(from, most, |word| {
                    assert!(seen.insert(std::ptr::from_ref(word)), "a word twice");
                });
                assert!(seen.len() - before <= most);
            }
            assert_eq!(seen.len(), 64 + words);
        }
    }

    #[test]
    fn reused_chunks_keep_page_versions() {
        let arena = Arc::new(Arena::new(false));
        let (a, b) = (Directory::new(arena.clone()), Directory::new(arena));
        let word = a.get_or_make(70);
        assert!(word.install(0, 1));
        let before = word.latch_resident().unwrap();
        word.release_evicted(before);
        let left = word.load();
        a.give_back();
        assert!(a.get(70).is_none());
        let next = b.get_or_make(70);
        assert!(std::ptr::eq(next, word), "the same memory");
        assert_eq!(next.load(), left, "an old page word never validates again");
        assert!(b.get(0).is_none() && b.get_or_make(0).load() == 0);
    }
}
