//! Rows that one leaf provides: clustered rows and covering reads. They are appended to the
//! caller's batch directly from the page, without a copy of the entry.
//!
//! # Picture
//! ```text
//!   entry in its leaf ──▶ newest change visible? ── yes, marked as deleted: nothing (visibility::V1)
//!                               │                    yes: the requested columns of the row ──▶ RowBatch
//!                               └── no, or the row is incomplete: a copy of the entry, and a placeholder in the
//!                                   batch, which is filled after the leaf was read (visibility::V2)
//! ```
//! # Concurrency
//! Bytes read from a leaf count after the tree has validated the leaf. Before that they may be
//! garbage; if validation fails, the appended rows are removed. An entry without a valid row is
//! copied and read again after validation, which tells damage from garbage.

use super::consistent::{
    Consistent, PARTS_AHEAD, SCAN_BYTES, SLICE, Source, Stage, cover, emit, prefetch_parts,
};
use super::newest::Origin;
use super::visibility::resolve_row;
use super::{ReadSpec, View};
use crate::batch::RowBatch;
use crate::error::{Stop, lift};
use crate::record::{CLUSTERED_HEADER, Originals, RowHead, SECONDARY_HEADER, SecondaryHead};
use crate::session::EngineSession;
use crate::table::Table;
use nfold_btree::{EntryBatch, LeafEntries, LeafEntry, PointSink};
use nfold_types::key::{EntryWords, KeyRows};

/// Bytes of an entry that a covering read looks at, about; of long keys, beside those of the key.
const COVERING_BYTES: usize = 48;
/// Leaves that a range is read from in one go, where they give hardly a row.
const LEAVES: usize = 64;
/// Bytes of rows after which a range leaves the entries behind them for the next call: rows with
/// long columns are handed over few at a time.
const LONG_ROWS_BYTES: usize = 128 << 10;
/// The most bytes of a row that are prefetched.
const LONGEST_AHEAD: usize = 1024;

/// How rows are made of entries; worked out once per read.
#[derive(Default)]
pub(crate) enum RowSource {
    /// Clustered rows; the first `cut` bytes of their images are read.
    Clustered { cut: usize },
    /// Rows of an index alone.
    Covering(Box<KeyRows>),
    /// The same, where they are made value by value.
    #[default]
    ByValue,
}

impl RowSource {
    pub(crate) fn new(table: &Table, spec: &ReadSpec) -> RowSource {
        if spec.index == 0 {
            let cut = table.layout().bytes_up_to(&spec.columns);
            return RowSource::Clustered { cut };
        }
        let rows = spec
            .covering
            .then(|| table.key_rows(spec.index, &spec.columns));
        match rows.flatten() {
            Some(rows) => RowSource::Covering(Box::new(rows)),
            None => RowSource::ByValue,
        }
    }
}

/// Buffers of an entry at hand.
#[derive(Default)]
pub(crate) struct Buffers {
    /// What all keys of the leaf begin with, and the rest of one of them.
    key: Vec<u8>,
    prefix: usize,
    originals: Vec<u8>,
    /// Bytes that the row before had.
    row_bytes: usize,
}

impl Buffers {
    pub(crate) fn memory(&self) -> usize {
        self.key.capacity() + self.originals.capacity()
    }
}

struct Direct<'d> {
    view: &'d View<'d>,
    form: &'d RowSource,
    out: &'d mut RowBatch,
    /// Entries that do not decide by themselves.
    left: &'d mut EntryBatch,
    buffers: &'d mut Buffers,
    /// Rows of the batch that were there before, and their bytes.
    base: (usize, usize),
}

/// An entry as its original values are read.
struct Words<'e, 'p>(&'e LeafEntry<'p>);

impl EntryWords for Words<'_, '_> {
    #[inline(always)]
    fn suffix_word(&self, at: usize) -> u64 {
        self.0.suffix_word(at)
    }
    #[inline(always)]
    fn suffix_len(&self) -> usize {
        self.0.suffix_len()
    }
    #[inline(always)]
    fn originals_word(&self, at: usize) -> u64 {
        self.0.value_word(SECONDARY_HEADER + at)
    }
    #[inline(always)]
    fn originals_len(&self) -> usize {
        self.0.value_len().saturating_sub(SECONDARY_HEADER)
    }
    #[inline(always)]
    fn append_originals(&self, at: usize, len: usize, out: &mut Vec<u8>) {
        let from = SECONDARY_HEADER + at;
        self.0.append_short_value::<1>(from, from + len, out);
    }
}

impl Direct<'_> {
    /// Rows of which no more than `16 * N` bytes are wanted, or any number of bytes.
    #[inline(always)]
    fn clustered<const N: usize>(&mut self, point: u32, cut: usize, entries: &LeafEntries<'_>) {
        let most = CLUSTERED_HEADER.saturating_add(cut);
        let ahead = most.min(self.buffers.row_bytes).min(LONGEST_AHEAD);
        let below = self.view.sees_below();
        // Apart, so that the loop over rows has in registers what does not change.
        let Direct {
            view, out, left, ..
        } = self;
        let mut row_bytes = self.buffers.row_bytes;
        out.reserve(entries.len());
        entries.each(ahead, |entry| {
            let head = RowHead::from_words(entry.value_word(0), entry.value_word(RowHead::SECOND));
            // N > 0: only the first bytes of the row are wanted, and no value on an overflow page.
            let usual = if N == 0 { head.unmarked } else { head.live };
            let visible = usual && (head.trx < below || view.sees(head.trx));
            let len = entry.value_len();
            if !visible || len < RowHead::BYTES {
                return leave(out, left, point, &entry, entries);
            }
            let arena = out.arena();
            let start = arena.len();
            entry.append_short_value::<N>(CLUSTERED_HEADER, most, arena);
            let end = arena.len();
            out.push_span(point as usize, start..end);
            row_bytes = len;
        });
        self.buffers.row_bytes = row_bytes;
    }

    fn covering(&mut self, point: u32, rows: &KeyRows, entries: &LeafEntries<'_>) {
        let key = &mut self.buffers.key;
        key.clear();
        entries.append_prefix(key);
        self.buffers.prefix = key.len();
        let below = self.view.sees_below();
        self.out.reserve(entries.len());
        let Some(leaf) = rows.for_leaf(&self.buffers.key) else {
            return self.covering_by_keys(point, rows, entries);
        };
        entries.each(COVERING_BYTES, |entry| {
            let head = SecondaryHead::from_words(entry.value_word(0), entry.value_word(8));
            if !(head.trx < below || self.view.sees(head.trx)) {
                return self.leave(point, &entry, entries);
            }
            if head.deleted | head.bare {
                if !head.deleted {
                    self.leave(point, &entry, entries);
                }
                return; // visibility::V1
            }
            let arena = self.out.arena();
            let start = arena.len();
            let whole = entry.value_len() >= SECONDARY_HEADER
                && leaf.append(rows, &Words(&entry), head.primary_len, arena);
            let end = arena.len();
            match whole {
                true => self.out.push_span(point as usize, start..end),
                false => self.cover_by_key(point, rows, &entry, entries),
            }
        });
    }

    /// The same for keys whose parts have no fixed places.
    #[inline(never)]
    fn covering_by_keys(&mut self, point: u32, rows: &KeyRows, entries: &LeafEntries<'_>) {
        let ahead = rows.own_bytes().min(LONGEST_AHEAD) + COVERING_BYTES;
        entries.each(ahead, |entry| {
            let head = SecondaryHead::from_words(entry.value_word(0), entry.value_word(8));
            if !self.view.sees(head.trx) {
                return self.leave(point, &entry, entries);
            }
            if head.bare && !head.deleted {
                self.leave(point, &entry, entries);
            } else if !head.deleted {
                self.cover_by_key(point, rows, &entry, entries); // visibility::V1
            }
        });
    }

    /// Appends the row of a visible entry, decoding its whole key.
    fn cover_by_key(
        &mut self,
        point: u32,
        rows: &KeyRows,
        entry: &LeafEntry<'_>,
        entries: &LeafEntries<'_>,
    ) {
        let head = SecondaryHead::from_words(entry.value_word(0), entry.value_word(8));
        let Buffers {
            key,
            originals,
            prefix,
            ..
        } = &mut *self.buffers;
        // The primary key follows the other parts.
        let wanted = match rows.needs_primary() {
            true => usize::MAX,
            false => rows.own_bytes(),
        };
        key.truncate(*prefix);
        entry.append_suffix(wanted.saturating_sub(*prefix), key);
        originals.clear();
        if rows.needs_originals() {
            entry.append_value(SECONDARY_HEADER, usize::MAX, originals);
        }
        let primary = match rows.needs_primary() {
            true => key.len().checked_sub(head.primary_len),
            false => Some(0),
        };
        let arena = self.out.arena();
        let start = arena.len();
        let whole = entry.value_len() >= SECONDARY_HEADER
            && primary.is_some_and(|at| rows.append(key, &key[at..], Originals(originals), arena));
        let end = arena.len();
        match whole {
            true => self.out.push_span(point as usize, start..end),
            false => self.leave(point, entry, entries),
        }
    }

    fn leave(&mut self, point: u32, entry: &LeafEntry<'_>, entries: &LeafEntries<'_>) {
        leave(self.out, self.left, point, entry, entries);
    }
}

/// Copies an entry, and leaves a gap for its row.
#[inline(never)]
fn leave(
    out: &mut RowBatch,
    left: &mut EntryBatch,
    point: u32,
    entry: &LeafEntry<'_>,
    entries: &LeafEntries<'_>,
) {
    out.push_gap(point as usize, left.len());
    entries.copy(*entry, point, left);
}

impl PointSink for Direct<'_> {
    /// How many rows, their bytes, how many copied entries.
    type Mark = (usize, usize, usize);

    #[inline]
    fn mark(&self) -> Self::Mark {
        (self.out.len(), self.out.bytes(), self.left.len())
    }
    fn cut(&mut self, (rows, bytes, left): Self::Mark) {
        self.out.truncate(rows, bytes);
        self.left.truncate(left);
    }
    #[inline]
    fn take(&mut self, point: u32, entries: LeafEntries<'_>) {
        match self.form {
            RowSource::Clustered { cut } => match cut.div_ceil(16) {
                1 => self.clustered::<1>(point, *cut, &entries),
                2 => self.clustered::<2>(point, *cut, &entries),
                3 | 4 => self.clustered::<4>(point, *cut, &entries),
                _ => self.clustered::<0>(point, *cut, &entries),
            },
            RowSource::Covering(rows) => self.covering(point, rows, &entries),
            RowSource::ByValue => entries.each(COVERING_BYTES, |entry| {
                self.leave(point, &entry, &entries);
            }),
        }
    }
    fn is_full(&self) -> bool {
        let (rows, bytes) = self.base;
        self.out.len() - rows >= SLICE || self.out.bytes() - bytes >= SCAN_BYTES
    }
    fn holds_behind(&self, last: u32) -> bool {
        self.out.has_points_behind(self.base.0, last as usize)
    }
    fn keep_points(&mut self, last: u32) {
        let (rows, bytes) = self.base;
        self.out.keep_points(rows, last as usize);
        if self.out.len() == rows {
            self.out.truncate(rows, bytes);
            self.left.clear();
        }
    }
}

impl Consistent {
    /// Whether the entries give rows by themselves.
    #[inline]
    pub(crate) fn is_direct(&self, spec: &ReadSpec) -> bool {
        (spec.index == 0 || spec.covering) && matches!(self.source, Source::Points | Source::Range)
    }

    /// Brings the next rows, with gaps where an entry has to be resolved. After a wait, call again.
    pub(crate) fn fill_direct(
        &mut self,
        table: &Table,
        spec: &ReadSpec,
        session: &EngineSession,
        view: &View<'_>,
        out: &mut RowBatch,
    ) -> Result<(), Stop> {
        if self.base.is_none() {
            self.base = Some((out.len(), out.bytes()));
            self.entries.clear();
        }
        let base = self.base.unwrap_or_default();
        let (tree, store) = (&table.index(spec.index).tree, session.store());
        let mut sink = Direct {
            view,
            form: &self.form,
            out,
            left: &mut self.entries,
            buffers: &mut self.buffers,
            base,
        };
        if matches!(self.source, Source::Points) {
            self.more = tree
                .scan_points_into(store, &mut self.scan, &mut sink)
                .map_err(lift)?;
            out.sort_from(base.0);
        } else {
            let most = match self.wanted {
                0 => self.slice,
                wanted => wanted.min(self.slice),
            };
            // After this many leaves without a row, return to the caller, which checks for KILL.
            for _ in 0..LEAVES {
                // Where all rows are wanted, a leaf is taken as a whole, unless rows are long.
                let entries = match (spec.first_rows, self.long_rows) {
                    (0, 0) => usize::MAX,
                    (0, rows) => rows,
                    _ => most - (sink.out.len() - base.0),
                };
                self.more = self
                    .cursor
                    .next_into(tree, store, entries, &mut sink)
                    .map_err(lift)?;
                let taken = sink.out.len() - base.0;
                let enough = taken >= most || self.long_rows != 0 && taken != 0;
                if !self.more || sink.is_full() || enough {
                    break;
                }
            }
            if self.long_rows >= SLICE {
                self.long_rows = 0;
            }
            self.long_rows *= 2;
            self.wanted = self.wanted.saturating_sub(out.len() - base.0);
            self.slice = (self.slice * 2).min(SLICE.max(self.slice));
        }
        self.stage = Stage::Gaps;
        Ok(())
    }

    /// Resolves the entries that did not decide by themselves, and fills or closes their gaps.
    /// After a wait, call again.
    pub(crate) fn fill_gaps(
        &mut self,
        table: &Table,
        spec: &ReadSpec,
        session: &EngineSession,
        view: &View<'_>,
        out: &mut RowBatch,
    ) -> Result<(), Stop> {
        let (base, bytes) = self.base.unwrap_or_default();
        if !self.entries.is_empty() {
            for i in base..out.len() {
                if let Some(n) = out.gap(i) {
                    let end = out.len();
                    if !spec.parts.is_empty() && spec.index == 0 {
                        let ahead = self.entries.entries().get(n + PARTS_AHEAD);
                        let value = ahead.map(|entry| self.entries.value(entry));
                        prefetch_parts(table, spec, session, value);
                    }
                    self.resolve_entry(table, spec, session, view, n, out)?;
                    out.fill_gap(i, end);
                    if out.bytes() - bytes >= LONG_ROWS_BYTES && self.leave_rest(spec, n, i, out) {
                        break;
                    }
                }
            }
            out.close_gaps(base);
            self.entries.clear();
        }
        self.base = None;
        self.stage = Stage::Fill;
        Ok(())
    }

    /// Ends the batch after row `i`, which came from copied entry `n`. The cursor moves back to
    /// just behind that entry, so the next call reads the dropped rows again. Returns false and
    /// changes nothing if `i` is the last row, or if the source is not a range.
    fn leave_rest(&mut self, spec: &ReadSpec, n: usize, i: usize, out: &mut RowBatch) -> bool {
        let (base, _) = self.base.unwrap_or_default();
        let dropped = out.len() - (i + 1);
        if dropped == 0 || !matches!(self.source, Source::Range) {
            return false;
        }
        out.truncate(i + 1, out.bytes());
        let entry = &self.entries.entries()[n];
        self.cursor.back_to(Some(self.entries.key(entry)));
        self.more = true;
        self.long_rows = i + 1 - base;
        if spec.first_rows != 0 {
            self.wanted += dropped;
        }
        true
    }

    /// Appends the row of a copied entry, if there is one; nothing when it stops.
    fn resolve_entry(
        &mut self,
        table: &Table,
        spec: &ReadSpec,
        session: &EngineSession,
        view: &View<'_>,
        n: usize,
        out: &mut RowBatch,
    ) -> Result<(), Stop> {
        let entries = &self.entries;
        let entry = &entries.entries()[n];
        let (key, value) = (entries.key(entry), entries.value(entry));
        if spec.index != 0 {
            let buffers = (
                &mut self.covering,
                &mut self.scratch,
                &mut self.key,
                &mut self.row,
            );
            let found = (key, value);
            return cover(table, spec, session, view, found, entry.point, buffers, out);
        }
        let resolved = resolve_row(session.system(), view, value, || key, &mut self.scratch)?;
        let origin = Origin {
            primary: key,
            entry: None,
            point: entry.point,
        };
        let scratch = &self.scratch;
        emit(
            table, spec, session, view, resolved, value, scratch, origin, out,
        )
    }
}
