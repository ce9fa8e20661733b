//! Reads rows through a secondary index: entries become keys of the clustered lookup directly from
//! their leaf, without a copy.
//!
//! # Picture
//! ```text
//!   entry in its leaf ──▶ newest change visible? ── yes, marked as deleted: nothing (visibility::V1)
//!                                   │                 yes: primary key, row-location hint ──▶ GetMany; its row is not checked again
//!                                   └── no: the same, and a copy of the entry for comparison with the row (visibility::V2)
//! ```
//! # Concurrency
//! Bytes read from a leaf count after the scan has validated the leaf. Before that they may be
//! garbage; if validation fails, the keys made of them are removed.

use super::consistent::{Consistent, KeyOrigin, Source, Stage};
use super::rows::sort_nearly_sorted;
use super::visibility::damaged;
use super::{ReadSpec, View};
use crate::batch::EqualityKeys;
use crate::error::{Stop, lift};
use crate::record::{SECONDARY_HEADER, SecondaryEntry, SecondaryHead};
use crate::session::EngineSession;
use crate::table::Table;
use nfold_btree::{EntryBatch, GetMany, LeafEntries, LeafEntry, PointSink};
use nfold_store::{PageNo, TrxId};

/// Rows that are looked up together.
const ROWS: usize = 512;

struct IndexProbes<'l> {
    view: &'l View<'l>,
    /// The view sees all transactions below this id, without a lookup of their status.
    below: TrxId,
    /// A mask for the page numbers of row-location hints: all bits set, or 0 to ignore the hints.
    hint_mask: PageNo,
    get: &'l mut GetMany<KeyOrigin>,
    /// Entries that do not decide by themselves.
    copied: &'l mut EntryBatch,
    /// Some entry does not have the length of an entry of this index.
    damaged: bool,
    order: PointOrder,
}

/// Whether points came in their order.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct PointOrder {
    last: u32,
    /// Some point may have come out of order.
    pub mixed: bool,
}

impl PointOrder {
    #[inline(always)]
    fn see(&mut self, point: u32) {
        self.mixed |= point < self.last;
        self.last = point;
    }
}

impl IndexProbes<'_> {
    #[inline(always)]
    fn push(&mut self, point: u32, entry: LeafEntry<'_>, entries: &LeafEntries<'_>) {
        let (value_len, [before, first, second]) = entry.around_value();
        let head = SecondaryHead::from_words(first, second);
        if head.trx >= self.below && !self.view.sees(head.trx) {
            return self.push_unseen(point, entry, entries);
        }
        if head.deleted {
            return; // visibility::V1
        }
        let asked = KeyOrigin::new(KeyOrigin::NO_ENTRY, point, entries.page(), true);
        let row_hint = head.row_hint.if_in(self.hint_mask);
        let get = &mut *self.get;
        if value_len < SECONDARY_HEADER
            || !get.push_key_end(entry, before, head.primary_len, row_hint, asked)
        {
            self.damaged = true;
        }
    }

    /// An entry whose newest change the view does not see: the row is compared with a copy of it
    /// (visibility::V2).
    #[cold]
    fn push_unseen(&mut self, point: u32, entry: LeafEntry<'_>, entries: &LeafEntries<'_>) {
        let (value_len, [before, first, second]) = entry.around_value();
        let head = SecondaryHead::from_words(first, second);
        let asked = KeyOrigin::new(self.copied.len() as u32, point, entries.page(), false);
        let row_hint = head.row_hint.if_in(self.hint_mask);
        if value_len < SECONDARY_HEADER
            || !self
                .get
                .push_key_end(entry, before, head.primary_len, row_hint, asked)
        {
            self.damaged = true;
            return;
        }
        entries.copy(entry, point, self.copied);
    }
}

impl PointSink for IndexProbes<'_> {
    /// How many keys, how many copied entries, whether there was damage.
    type Mark = (usize, usize, bool);

    #[inline]
    fn mark(&self) -> Self::Mark {
        (self.get.len(), self.copied.len(), self.damaged)
    }
    fn cut(&mut self, (keys, copied, damaged): Self::Mark) {
        self.get.truncate(keys);
        self.copied.truncate(copied);
        self.damaged = damaged;
    }
    // Of its own, so that the loop has the registers for itself.
    #[inline(never)]
    fn take(&mut self, point: u32, entries: LeafEntries<'_>) {
        self.order.see(point);
        for entry in entries.iter() {
            self.push(point, entry, &entries);
        }
    }
    fn is_full(&self) -> bool {
        self.get.len() >= ROWS
    }
    fn holds_behind(&self, last: u32) -> bool {
        self.get.tags().any(|asked| asked.point > last)
    }
    fn keep_points(&mut self, last: u32) {
        self.get.retain(|asked| asked.point <= last);
    }
}

impl Consistent {
    /// Brings the next keys of rows.
    pub(crate) fn fill_leads(
        &mut self,
        table: &Table,
        index: usize,
        session: &EngineSession,
        view: &View<'_>,
    ) -> Result<(), Stop> {
        if !self.filling {
            self.filling = true;
            self.get.clear();
            self.entries.clear();
            self.point_order = PointOrder::default();
        }
        let mut probes = IndexProbes {
            view,
            below: view.sees_below(),
            hint_mask: match session.row_hints().on() {
                true => PageNo::MAX,
                false => 0,
            },
            get: &mut self.get,
            copied: &mut self.entries,
            damaged: false,
            order: self.point_order,
        };
        let tree = &table.index(index).tree;
        let more = tree.scan_points_into(session.store(), &mut self.scan, &mut probes);
        self.point_order = probes.order;
        if probes.damaged {
            // Now: a call after a wait would not know of it.
            self.filling = false;
            return Err(damaged());
        }
        self.more = more.map_err(lift)?;
        self.filling = false;
        if self.point_order.mixed {
            // A key whose entries continue on the next leaf comes again after others.
            sort_nearly_sorted(self.get.keys_mut(), |key| key.tag().point);
        }
        if !self.get.is_empty() {
            self.stage = Stage::Rows;
        }
        Ok(())
    }

    /// As [`Read::next_keys`](super::Read::next_keys).
    pub(super) fn next_keys(
        &mut self,
        table: &Table,
        spec: &ReadSpec,
        session: &EngineSession,
        view: &View<'_>,
        out: &mut EqualityKeys,
    ) -> Result<bool, Stop> {
        if self.stage == Stage::Done || !self.more {
            return Ok(false);
        }
        self.fill(table, spec, session, view)?;
        match self.source {
            Source::IndexProbes => {
                (0..self.get.len()).for_each(|i| out.push(self.get.key(i as u32)));
                self.get.clear();
            }
            _ => {
                let entries = match self.source {
                    Source::Points => self.scan.entries(),
                    _ => &self.entries,
                };
                for entry in entries.entries() {
                    let value = SecondaryEntry::parse(entries.value(entry)).ok_or_else(damaged)?;
                    if value.deleted && view.sees(value.trx) {
                        continue; // visibility::V1
                    }
                    let primary = value.primary_key(entries.key(entry)).ok_or_else(damaged)?;
                    out.push(primary);
                }
            }
        }
        self.stage = Stage::Fill;
        Ok(self.more)
    }
}
