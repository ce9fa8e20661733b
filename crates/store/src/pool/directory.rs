//! From page number to page word, per space.
//!
//! # Picture
//! ```text
//! chunks[k]  → 64 << k page words: chunk 0 holds pages 0..64, chunk 1 64..192, chunk 2 192..448, ...
//! in a chunk   the low bits of the place are rotated up by four, so neighbouring pages do not share 128 bytes
//! ```
//! # Invariants
//! - I1: a chunk is made once, zeroed (all pages not resident), and stays where it is while the space object lives.
//! # Cost
//! A lookup is two dependent loads (chunk, word), no lock.

use crate::page::PageNo;
use nfold_sync::PageWord;
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

const FIRST_BITS: u32 = 6;
const CHUNKS: usize = 27;
/// Words of 8 bytes on 128 bytes: 2^4.
const ROTATE: u32 = 4;

/// See the module's header.
pub(crate) struct Directory {
    chunks: [AtomicPtr<PageWord>; CHUNKS],
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

fn layout(chunk: usize) -> Layout {
    let words = 1usize << (FIRST_BITS as usize + chunk);
    Layout::from_size_align(words * 8, 128).expect("at most 2^32 words of 8 bytes")
}

impl Directory {
    pub(crate) fn new() -> Self {
        Directory {
            chunks: std::array::from_fn(|_| AtomicPtr::new(null_mut())),
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
        // SAFETY: a non-null chunk holds `64 << chunk` words for as long as `self` lives (I1), and `place` is below that.
        Some(unsafe { &*base.add(place) })
    }

    /// The word of `page`; makes its chunk if needed. The caller has checked `page` against the space's size.
    pub(crate) fn get_or_make(&self, page: PageNo) -> &PageWord {
        if let Some(word) = self.get(page) {
            return word;
        }
        let (chunk, _) = locate(page);
        let layout = layout(chunk);
        // SAFETY: the layout's size is not zero.
        let fresh = unsafe { alloc_zeroed(layout) }.cast::<PageWord>();
        if fresh.is_null() {
            handle_alloc_error(layout);
        }
        // The zeroed words are valid: a `PageWord` is a transparent `AtomicU64`.
        if self.chunks[chunk]
            .compare_exchange(null_mut(), fresh, Ordering::AcqRel, Ordering::Acquire)
            .is_err()
        {
            // SAFETY: allocated above with this layout, and nobody has seen it.
            unsafe { dealloc(fresh.cast(), layout) };
        }
        self.get(page).expect("I1: the chunk was just made")
    }

    /// Calls `f` with every word of a made chunk.
    pub(crate) fn for_each(&self, mut f: impl FnMut(&PageWord)) {
        for (chunk, base) in self.chunks.iter().enumerate() {
            let base = base.load(Ordering::Acquire);
            if base.is_null() {
                continue;
            }
            for place in 0..1usize << (FIRST_BITS as usize + chunk) {
                // SAFETY: as in `get`.
                f(unsafe { &*base.add(place) });
            }
        }
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        for (chunk, base) in self.chunks.iter_mut().enumerate() {
            let base = *base.get_mut();
            if !base.is_null() {
                // SAFETY: allocated in `get_or_make` with this layout; `self` is going, so nobody holds a reference.
                unsafe { dealloc(base.cast(), layout(chunk)) };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn places_are_distinct_and_neighbours_apart() {
        let mut seen = HashSet::new();
        for page in 0..10_000u32 {
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
        let d = Directory::new();
        assert!(d.get(5).is_none());
        let a = std::ptr::from_ref(d.get_or_make(5));
        d.get_or_make(100_000);
        assert!(std::ptr::eq(a, d.get_or_make(5)));
        assert!(!std::ptr::eq(a, d.get_or_make(6)));
        let mut n = 0;
        d.for_each(|_| n += 1);
        assert_eq!(n, 64 + (64 << 10));
    }
}
