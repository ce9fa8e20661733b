//! A byte range of a page that is read in place, without a copy.

use super::{AtomicU64, load_across, wide};
use std::marker::PhantomData;
use std::ops::Range;

/// A range of bytes inside a slice of words. Two reads of the same bytes may differ, and values
/// read from it may be used only after the page word was validated.
///
/// *Invariant*: `words` is the start of the slice. `from`, `from + len` and `end` are inside the
/// slice or at its end, in this order.
#[derive(Copy, Clone, Debug)]
pub struct Span<'w> {
    words: *const AtomicU64,
    from: *const u8,
    len: usize,
    end: *const u8,
    slice: PhantomData<&'w [AtomicU64]>,
}

impl<'w> Span<'w> {
    /// The bytes `off` to `off + len` of the slice, as far as the slice has them.
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

    /// The number of bytes.
    #[inline(always)]
    pub fn len(self) -> usize {
        self.len
    }

    /// Whether the span has no bytes.
    #[inline(always)]
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    /// A sub-range, or `None` if it is not fully inside the span.
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

    /// The `N` bytes (1, 2, 4, 8, or a multiple of 16) at `at`. They may go beyond the end of the
    /// span, and are then the bytes that follow in the slice. `None` if the slice ends before.
    #[inline(always)]
    pub fn at<const N: usize>(self, at: usize) -> Option<[u8; N]> {
        let readable = (self.end as usize) - (self.from as usize);
        let there = at.checked_add(N).is_some_and(|end| end <= readable);
        // SAFETY: `N` bytes can be read there (wide::W1).
        there.then(|| unsafe { self.load(self.from.add(at)) })
    }

    /// # Safety
    /// `N` bytes from `from` on, which is inside the slice of words, can be read.
    #[inline(always)]
    unsafe fn load<const N: usize>(self, from: *const u8) -> [u8; N] {
        if wide::IS_HERE {
            // SAFETY: the caller promises it.
            return unsafe { wide::load(from) };
        }
        let off = (from as usize) - (self.words as usize);
        let count = ((self.end as usize) - (self.words as usize)) / 8;
        // SAFETY: by the invariant, this is the slice from which the span was made.
        let words = unsafe { std::slice::from_raw_parts(self.words, count) };
        let mut out = [0; N];
        for (i, piece) in out.chunks_mut(8).enumerate() {
            let word = load_across(words, off + 8 * i).to_le_bytes();
            piece.copy_from_slice(&word[..piece.len()]);
        }
        out
    }

    /// Copies the bytes into `out`, and fills the rest of `out` with zeros.
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
