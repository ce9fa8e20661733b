//! Zero-copy reads: the caller encodes rows directly from their pages.
//!
//! # Picture
//! ```text
//!   lookups of a group ──▶ values on their pages ──▶ visible, and whole? ──▶ image ──▶ the caller: result packets
//!                                                          │ no: this row and the rest           │ page changed: removed
//!                                                          └──▶ copied, made visible, in the RowBatch ◀─┘
//! ```
//! # Concurrency
//! The caller reads an image while other threads may write to its page, and
//! [validates](PageRow::validate) the page afterwards. Before that its output may be garbage.

use super::View;
use super::visibility::visible;
use crate::record::CLUSTERED_HEADER;
use nfold_btree::{SeenValue, SeenValues, ValueSink};
use nfold_store::TrxId;
use nfold_sync::words::Span;

/// Receives the rows of a read on their pages.
pub trait PageRowSink {
    /// Takes rows, in the order of the result: after those of earlier calls, and before those of
    /// the batch. Returns how many it took; it must take them from the front.
    fn take(&mut self, rows: PageRows<'_, '_>) -> usize;
}

/// Reborrows the sink for one call, so that it stays available for the next call.
pub fn reborrow<'t>(
    row_sink: &'t mut Option<&mut (dyn PageRowSink + '_)>,
) -> Option<&'t mut (dyn PageRowSink + 't)> {
    match row_sink {
        Some(row_sink) => Some(&mut **row_sink),
        None => None,
    }
}

/// Some rows, up to the first whose visibility is not clear from its header.
pub struct PageRows<'r, 'p> {
    values: SeenValues<'r, 'p>,
    next: usize,
    /// Values from here on are not visited.
    end: usize,
    view: &'r View<'r>,
    /// The view sees all transactions below this id, without a lookup of their status.
    below: TrxId,
}

/// A row on its page.
#[derive(Clone, Copy)]
pub struct PageRow<'p> {
    value: SeenValue<'p>,
    image: Span<'p>,
}

impl<'p> Iterator for PageRows<'_, 'p> {
    type Item = PageRow<'p>;

    #[inline(always)]
    fn next(&mut self) -> Option<PageRow<'p>> {
        if self.next == self.end {
            return None;
        }
        let value = self.values.get(self.next)?;
        let bytes = value.bytes();
        if !visible(self.view, self.below, bytes) {
            return None;
        }
        let image = bytes.part(CLUSTERED_HEADER..bytes.len())?;
        self.next += 1;
        Some(PageRow { value, image })
    }
}

impl<'p> PageRow<'p> {
    /// Its image.
    #[inline(always)]
    pub fn image(&self) -> Span<'p> {
        self.image
    }

    /// Whether all bytes read from the row so far were valid.
    #[inline(always)]
    #[must_use]
    pub fn validate(&self) -> bool {
        self.value.validate()
    }
}

/// A sink for the values of a lookup. It passes rows that are visible without the undo log on to
/// the caller.
pub(super) struct VisibleRows<'t> {
    pub view: &'t View<'t>,
    pub row_sink: &'t mut dyn PageRowSink,
    /// The number of leading values whose entries are known to be visible (visibility::V1).
    pub most: usize,
}

impl ValueSink for VisibleRows<'_> {
    fn take(&mut self, values: SeenValues<'_, '_>) -> usize {
        let taken = self.row_sink.take(PageRows {
            values,
            next: 0,
            end: values.len().min(self.most),
            view: self.view,
            below: self.view.sees_below(),
        });
        self.most = self.most.saturating_sub(taken);
        taken
    }
}
