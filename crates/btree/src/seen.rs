//! Zero-copy access to values on their pages.
//!
//! # Concurrency
//! The bytes of a value may be garbage, and may change while they are read. A result computed from
//! them counts only if the page [validates](SeenValue::validate) afterwards. Otherwise it must be
//! discarded.

use crate::row_hint::Lane;
use nfold_store::PagePeek;
use nfold_sync::words::Span;

/// A value in place on its page.
#[derive(Copy, Clone)]
pub struct SeenValue<'s> {
    page: PagePeek<'s>,
    at: usize,
    len: usize,
}

impl<'s> SeenValue<'s> {
    #[inline(always)]
    pub(crate) fn new(page: PagePeek<'s>, at: usize, len: usize) -> SeenValue<'s> {
        SeenValue { page, at, len }
    }

    /// The value's bytes.
    #[inline(always)]
    pub fn bytes(&self) -> Span<'s> {
        Span::new(self.page.words(), self.at, self.len)
    }

    /// Whether everything read from the value so far belongs to it.
    #[inline(always)]
    #[must_use]
    pub fn validate(&self) -> bool {
        self.page.validate()
    }
}

/// The values of several keys, in key order.
#[derive(Copy, Clone)]
pub struct SeenValues<'l, 's> {
    pub(crate) lanes: &'l [Lane<'s>],
}

impl<'s> SeenValues<'_, 's> {
    /// The number of values.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.lanes.len()
    }

    /// Whether there are no values.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.lanes.is_empty()
    }

    /// The value of key `i`.
    #[inline(always)]
    pub fn get(&self, i: usize) -> Option<SeenValue<'s>> {
        self.lanes.get(i)?.seen()
    }
}

/// Consumes the values of a lookup in place (a zero-copy row sink).
pub trait ValueSink {
    /// Consumes values in the order of their keys. Returns how many it took, from the first on. The
    /// lookup copies the next value and all behind it.
    fn take(&mut self, values: SeenValues<'_, '_>) -> usize;
}
