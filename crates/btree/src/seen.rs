//! Values where they lie on their pages, for those who use them there rather than have them copied.
//!
//! # Concurrency
//! Bytes of a value may be garbage, and change while they are read: what was made of them counts if the page [is validated](SeenValue::validate) afterwards, and is thrown
//! away otherwise.

use crate::guess::Lane;
use nfold_store::Glance;
use nfold_sync::words::Span;

/// A value on its page.
#[derive(Copy, Clone)]
pub struct SeenValue<'s> {
    page: Glance<'s>,
    at: usize,
    len: usize,
}

impl<'s> SeenValue<'s> {
    #[inline(always)]
    pub(crate) fn new(page: Glance<'s>, at: usize, len: usize) -> SeenValue<'s> {
        SeenValue { page, at, len }
    }

    /// Its bytes.
    #[inline(always)]
    pub fn bytes(&self) -> Span<'s> {
        Span::new(self.page.words(), self.at, self.len)
    }

    /// Whether what was read of it until now is its value.
    #[inline(always)]
    #[must_use]
    pub fn validate(&self) -> bool {
        self.page.validate()
    }
}

/// Values of some keys, in their order.
#[derive(Copy, Clone)]
pub struct SeenValues<'l, 's> {
    pub(crate) lanes: &'l [Lane<'s>],
}

impl<'s> SeenValues<'_, 's> {
    /// How many there are.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.lanes.len()
    }

    /// Whether there is none.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.lanes.is_empty()
    }

    /// Value number `i`.
    #[inline(always)]
    pub fn get(&self, i: usize) -> Option<SeenValue<'s>> {
        self.lanes.get(i)?.seen()
    }
}

/// Takes the values of a lookup where they lie.
pub trait ValueSink {
    /// Takes values, which come in the order of their keys. Gives how many of the first of them it took: the next one and all behind it are copied, in this lookup.
    fn take(&mut self, values: SeenValues<'_, '_>) -> usize;
}
