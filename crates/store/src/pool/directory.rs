//! From page number to page word, per space.
//!
//! # Picture
//! ```text
//! chunks[k]  → 64 << k page words: chunk 0 holds pages 0..64, chunk 1 64..192, chunk 2 192..448, ...
//! in a chunk   the low bits of the place are rotated up by four, so neighbouring pages do not share 128 bytes
//! ```
//! # Invariants
//! - I1: a chunk comes from the store's arena, with no page resident, and stays a chunk of its size while the store lives, of this space or of a later
//!   one ([`Directory::give_back`]): whoever has a reference to a word of it may look.
//! # Cost
//! A lookup is two dependent loads (chunk, word), no lock; of those only the word is one of many.

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
/// Words of 8 bytes on 128 bytes: 2^4.
const ROTATE: u32 = 4;

/// See the module's header.
pub(crate) struct Directory {
    chunks: [AtomicPtr<PageWord>; CHUNKS],
    /// Where chunks come from, held while one is made.
    arena: Mutex<Arc<Arena>>,
}

/// How far a [visit](Directory::visit) has come.
#[derive(Copy, Clone, Default)]
pub(crate) struct Place {
    chunk: usize,
    word: usize,
}

/// Chunk and place in it.
#[inline(always)]
fn locate(page: PageNo) -> (usize, usize) {
    let index = u64::from(page) + (1 << FIRST_BITS);
    let bits = 63 - index.leading_zeros();
    let place = index - (1 << bits);
    let mask = (1u64 << bits) - 1;
    let place = ((place << ROTATE) | (place >> (bits - ROTATE))) & mask;
    ((bits - FIRST_BITS) as usize, place as usize)
}

/// Words of a chunk.
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

    /// The word of `page`, if its chunk was ever needed.
    #[inline(always)]
    pub(crate) fn get(&self, page: PageNo) -> Option<&PageWord> {
        let (chunk, place) = locate(page);
        let base = self.chunks[chunk].load(Ordering::Acquire);
        if base.is_null() {
            return None;
        }
        // SAFETY: a non-null chunk holds `64 << chunk` words for as long as the arena lives, longer than `self` (I1), and `place` is below that.
        Some(unsafe { &*base.add(place) })
    }

    /// The word of `page`; makes its chunk if needed. The caller has checked `page` against the space's size.
    pub(crate) fn get_or_make(&self, page: PageNo) -> &PageWord {
        if let Some(word) = self.get(page) {
            return word;
        }
        let (chunk, _) = locate(page);
        let arena = self.arena.lock();
        if self.chunks[chunk].load(Ordering::Acquire).is_null() {
            // Words that are zero, or as they were given back, are valid: a `PageWord` is a transparent `AtomicU64`.
            let fresh = arena.take(words_of(chunk) * size_of::<PageWord>());
            self.chunks[chunk].store(fresh.cast().as_ptr(), Ordering::Release);
        }
        drop(arena);
        self.get(page).expect("I1: the chunk was just made")
    }

    /// Gives all chunks back to the arena: for a space that was forgotten and that nobody uses. No page is resident.
    pub(crate) fn give_back(&self) {
        if cfg!(debug_assertions) {
            self.visit(Place::default(), usize::MAX / 2, |word| {
                assert_eq!(frame_of(word.load()), None, "I1: nothing is resident")
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

    /// Calls `f` with up to `most` words of made chunks, from a place on. Gives the place to go on from, `None` at the end.
    pub(crate) fn visit(
        &self,
        from: Place,
        most: usize,
        mut f: impl FnMut(&PageWord),
    ) -> Option<Place> {
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
                    return Some(Place { chunk, word: end });
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
    fn places_are_distinct_and_neighbours_apart() {
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
    fn words_stay_where_they_are() {
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
            let (mut seen, mut next) = (HashSet::new(), Some(Place::default()));
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
    fn chunks_serve_the_next_space_with_their_versions() {
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
        assert_eq!(
            next.load(),
            left,
            "what was seen before is never valid again"
        );
        assert!(b.get(0).is_none() && b.get_or_make(0).load() == 0);
    }
}
