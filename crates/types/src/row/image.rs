//! Where the bytes of a row image lie: in a slice, or on a page that others may be writing to.

use std::ops::Range;

/// The bytes of a row image, or a part of them.
///
/// Those of a page are read while others may write to it: two reads of the same bytes may differ, so whoever reads a number that decides something reads it once. What
/// was made of them counts when the page was validated afterwards.
pub trait Image<'i>: Copy {
    /// Number of bytes.
    fn len(self) -> usize;

    /// Whether there is none.
    #[inline(always)]
    fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Some of them; `None` if they are not all there.
    fn part(self, range: Range<usize>) -> Option<Self>;

    /// `N` bytes (2, 4, 8, or a multiple of 16) from the first on; those behind the end are arbitrary. `None`: so many cannot be read.
    fn first<const N: usize>(self) -> Option<[u8; N]>;

    /// The last `N` bytes. `None`: there are fewer.
    fn last<const N: usize>(self) -> Option<[u8; N]>;

    /// Copies the bytes; the rest of `out`, if that is longer, becomes zeros.
    fn copy_to(self, out: &mut [u8]);

    /// The bytes, where nobody writes to them.
    fn slice(self) -> Option<&'i [u8]>;
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
    fn first<const N: usize>(self) -> Option<[u8; N]> {
        self.first_chunk().copied()
    }

    #[inline(always)]
    fn last<const N: usize>(self) -> Option<[u8; N]> {
        self.last_chunk().copied()
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
