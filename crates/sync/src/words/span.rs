//! Bytes of a page that are read where they lie.

use super::{AtomicU64, load_across, wide};
use std::marker::PhantomData;
use std::ops::Range;

/// Some bytes inside a slice of words. What is read of them is to be believed only after the page word was validated, and two reads of the same
/// bytes may differ.
///
/// *Invariant*: `from <= from + len <= end`, and all three are inside the slice of words, or at its end, whose start is `words`.
#[derive(Copy, Clone, Debug)]
pub struct Span<'w> {
    words: *const AtomicU64,
    from: *const u8,
    len: usize,
    end: *const u8,
    slice: PhantomData<&'w [AtomicU64]>,
}

impl<'w> Span<'w> {
    /// `[off, off + len)`, as far as that is inside.
    #[inline(always)]
    pub fn new(words: &'w [AtomicU64], off: usize, len: usize) -> Span<'w> {
        let bytes = words.as_ptr_range();
        let start: *const u8 = bytes.start.cast();
        let off = off.min(words.len() * 8);
        Span {
            words: bytes.start,
            // SAFETY: the offset is inside the slice, or at its end.
            from: unsafe { start.add(off) },
            len: len.min(words.len() * 8 - off),
            end: bytes.end.cast(),
            slice: PhantomData,
        }
    }

    /// Number of bytes.
    #[inline(always)]
    pub fn len(self) -> usize {
        self.len
    }

    /// Whether there is none.
    #[inline(always)]
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    /// Some of them; `None` if they are not all there.
    #[inline(always)]
    pub fn part(self, range: Range<usize>) -> Option<Span<'w>> {
        let there = range.start <= range.end && range.end <= self.len;
        there.then(|| Span {
            // SAFETY: the start of the range is among the bytes, or at their end.
            from: unsafe { self.from.add(range.start) },
            len: range.end - range.start,
            ..self
        })
    }

    /// `N` bytes (1, 2, 4, 8, or a multiple of 16) from byte `at` on, of which those behind the end are whatever the page has there. `None`: the page ends before.
    #[inline(always)]
    pub fn at<const N: usize>(self, at: usize) -> Option<[u8; N]> {
        let readable = (self.end as usize) - (self.from as usize);
        let there = at.checked_add(N).is_some_and(|end| end <= readable);
        // SAFETY: so many bytes can be read (W1).
        there.then(|| unsafe { self.load(self.from.add(at)) })
    }

    /// # Safety
    /// `N` bytes from `from` on, which is inside the slice of words, can be read.
    #[inline(always)]
    unsafe fn load<const N: usize>(self, from: *const u8) -> [u8; N] {
        if wide::IS_HERE {
            // SAFETY: the caller's.
            return unsafe { wide::load(from) };
        }
        let off = (from as usize) - (self.words as usize);
        let count = ((self.end as usize) - (self.words as usize)) / 8;
        // SAFETY: the invariant: this is the slice that the span was made of.
        let words = unsafe { std::slice::from_raw_parts(self.words, count) };
        let mut out = [0; N];
        for (i, piece) in out.chunks_mut(8).enumerate() {
            let word = load_across(words, off + 8 * i).to_le_bytes();
            piece.copy_from_slice(&word[..piece.len()]);
        }
        out
    }

    /// Copies the bytes; zeros where `out` is longer.
    #[inline]
    pub fn copy_to(self, out: &mut [u8]) {
        let mut rest = self;
        for piece in out.chunks_mut(8) {
            let len = piece.len().min(rest.len);
            let byte = |i| rest.part(i..rest.len)?.at(0);
            let one_by_one = || std::array::from_fn(|i| byte(i).map_or(0, |[byte]| byte));
            let word: [u8; 8] = rest.at(0).unwrap_or_else(one_by_one);
            piece.fill(0);
            piece[..len].copy_from_slice(&word[..len]);
            rest = rest.part(len..rest.len).unwrap_or(rest);
        }
    }
}
