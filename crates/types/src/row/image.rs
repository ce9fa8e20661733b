//! Where the bytes of a row image lie: in a slice, or on a page that others may be writing to.

use nfold_sync::words::Span;
use std::ops::Range;

/// The bytes of a row image, or a part of them.
///
/// Other threads may write to a page while its bytes are read, so two reads of the same bytes may
/// differ. Code that checks a number and then uses it must read it once. Results may be used only
/// after the page was validated.
///
/// *Invariants*: `len` never changes, and a part has the requested length. Unsafe code in
/// `types::tail` relies on them, so the trait is sealed.
pub trait Image<'i>: Copy + Sealed {
    /// Number of bytes.
    fn len(self) -> usize;

    /// Whether there are no bytes.
    #[inline(always)]
    fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The bytes of a range, or `None` if the range does not lie within the image.
    fn part(self, range: Range<usize>) -> Option<Self>;

    /// The `N` bytes (1, 2, 4, 8, or a multiple of 16) at `at`. `None` if `N` bytes cannot be read
    /// there. A slice ends with the image. On a page, bytes behind the image can be read too, and
    /// mean nothing: the caller compares with [`len`](Self::len).
    fn at<const N: usize>(self, at: usize) -> Option<[u8; N]>;

    /// Copies the bytes; the rest of `out`, if that is longer, becomes zeros.
    fn copy_to(self, out: &mut [u8]);

    /// The bytes as a slice. `None` if they are on a page, where other threads may write to them.
    fn slice(self) -> Option<&'i [u8]>;
}

mod sealed {
    pub trait Sealed {}
}
pub(super) use sealed::Sealed;

impl Sealed for &[u8] {}
impl Sealed for Span<'_> {}

impl<'i> Image<'i> for Span<'i> {
    #[inline(always)]
    fn len(self) -> usize {
        Span::len(self)
    }

    #[inline(always)]
    fn part(self, range: Range<usize>) -> Option<Self> {
        Span::part(self, range)
    }

    #[inline(always)]
    fn at<const N: usize>(self, at: usize) -> Option<[u8; N]> {
        Span::at(self, at)
    }

    fn copy_to(self, out: &mut [u8]) {
        Span::copy_to(self, out);
    }

    #[inline(always)]
    fn slice(self) -> Option<&'i [u8]> {
        None
    }
}

impl<'i> Image<'i> for &'i [u8] {
    #[inline(always)]
    fn len(self) -> usize {
        <[u8]>::len(self)
    }

    #[inline(always)]
    fn part(self, range: Range<usize>) -> Option<Self> {
        self.get(range)
    }

    #[inline(always)]
    fn at<const N: usize>(self, at: usize) -> Option<[u8; N]> {
        self.get(at..)?.first_chunk().copied()
    }

    fn copy_to(self, out: &mut [u8]) {
        let len = self.len().min(out.len());
        out[..len].copy_from_slice(&self[..len]);
        out[len..].fill(0);
    }

    #[inline(always)]
    fn slice(self) -> Option<&'i [u8]> {
        Some(self)
    }
}
