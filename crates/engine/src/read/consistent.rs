//! Consistent reads: the rows that a snapshot sees, without latches or locks. The parent module has
//! the picture.

use std::sync::Arc;

use nfold_btree::{Cursor, EntryBatch, GetMany, PointScan, RowHint, TreeShape};
use nfold_types::key::prefix_successor;
use nfold_types::row::RowLayout;

use crate::batch::{Bound, EqualityKeys, KeyBytes, KeyRange, RowBatch};
use crate::error::{Stop, lift};
use crate::overflow;
use crate::read::visibility::{damaged, resolve_row};
use crate::read::{
    PageRowSink, ReadSpec, Resolved, RowLock, Scratch, View, locking::LockingRead, reborrow,
    release,
};
use crate::record::{RowHeader, SecondaryEntry};
use crate::session::EngineSession;
use crate::table::{CoveringScratch, Table};

use super::newest::Origin;
use super::raw_rows::{Buffers, RowSource};

/// Entries taken in one go when no LIMIT says otherwise.
pub(super) const SLICE: usize = 512;
/// Entry bytes that a scan of points collects before its rows are fetched.
pub(super) const SCAN_BYTES: usize = 32 << 10;

/// A read under way, of points or of a range. Keeps its buffers when it is bound again.
pub struct Read {
    table: Arc<Table>,
    spec: ReadSpec,
    inner: Inner,
}

enum Inner {
    Consistent(Box<Consistent>),
    Locking(Box<LockingRead>),
}

impl Read {
    /// Reads every entry that starts with one of `points`, which are sealed.
    pub fn points(table: Arc<Table>, spec: ReadSpec, points: EqualityKeys) -> Read {
        let mut read = Read::new(table, spec);
        read.bind_points(points);
        read
    }

    /// Reads a range, backwards if `reverse`.
    pub fn range(table: Arc<Table>, spec: ReadSpec, range: &KeyRange, reverse: bool) -> Read {
        let mut read = Read::new(table, spec);
        read.bind_range(range, reverse);
        read
    }

    fn new(table: Arc<Table>, spec: ReadSpec) -> Read {
        let inner = match spec.lock {
            RowLock::None => Inner::Consistent(Box::new(Consistent {
                form: RowSource::new(&table, &spec),
                ..Consistent::default()
            })),
            _ => Inner::Locking(Box::default()),
        };
        Read { table, spec, inner }
    }

    /// Starts over with other points; gives the old ones back, so that their memory can be used
    /// again.
    #[inline]
    pub fn bind_points(&mut self, mut points: EqualityKeys) -> EqualityKeys {
        points.seal();
        match &mut self.inner {
            Inner::Consistent(read) => read.bind_points(&self.table, &self.spec, points),
            Inner::Locking(read) => read.bind_points(points),
        }
    }

    /// Starts over with another range.
    pub fn bind_range(&mut self, range: &KeyRange, reverse: bool) {
        match &mut self.inner {
            Inner::Consistent(read) => read.bind_range(&self.spec, range, reverse),
            Inner::Locking(read) => read.bind_range(&self.table, &self.spec, range, reverse),
        }
    }

    /// The approximate memory that it keeps when it is bound again, in bytes. Its points are not
    /// included: the caller counts them.
    #[inline]
    pub fn memory(&self) -> usize {
        match &self.inner {
            Inner::Consistent(read) => read.memory(),
            Inner::Locking(read) => read.memory(),
        }
    }

    /// Undo records that it has read so far.
    #[cfg(test)]
    pub(crate) fn undo_reads(&self) -> u64 {
        match &self.inner {
            Inner::Consistent(read) => read.scratch.undo_reads,
            Inner::Locking(_) => 0,
        }
    }

    /// The table it reads.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// How it reads.
    pub fn spec(&self) -> &ReadSpec {
        &self.spec
    }

    /// The keys, or key prefixes, that it looks up.
    pub fn lookup_keys(&self) -> Vec<&[u8]> {
        match &self.inner {
            Inner::Consistent(read) => read.points.iter().collect(),
            Inner::Locking(read) => read.lookup_keys(),
        }
    }

    /// Appends rows to `out`. It may append none after many invisible rows, so that the caller can
    /// check for KILL. Returns false if there are no more rows. After a wait, call again with the
    /// same batch.
    ///
    /// # Errors
    /// I/O errors and corruption; for a locking read also deadlock and NOWAIT.
    pub fn next(&mut self, session: &mut EngineSession, out: &mut RowBatch) -> Result<bool, Stop> {
        self.next_into(session, out, None)
    }

    /// As [`next`](Self::next), but passes rows on their pages to `row_sink`, as long as the read
    /// finds them in the order of the result and without a wait. The batch
    /// [counts](RowBatch::taken) these rows, and holds the rows after them. It gets each row once;
    /// none while the batch holds rows.
    ///
    /// # Errors
    /// As [`next`](Self::next); rows may have been taken before.
    pub fn next_into(
        &mut self,
        session: &mut EngineSession,
        out: &mut RowBatch,
        row_sink: Option<&mut dyn PageRowSink>,
    ) -> Result<bool, Stop> {
        match &mut self.inner {
            Inner::Consistent(read) if matches!(read.source, Source::Point) => {
                read.read_point(&self.table, &self.spec, session, out)?;
                Ok(false)
            }
            Inner::Consistent(read) => {
                session.open_view();
                session.check_usable(self.table.index(self.spec.index))?;
                let view = session.view();
                read.next(&self.table, &self.spec, session, &view, out, row_sink)
            }
            Inner::Locking(read) => {
                session.check_usable(self.table.index(self.spec.index))?;
                read.next(&self.table, &self.spec, session, out)
            }
        }
    }

    /// Appends to `out` the primary keys that the entries of a secondary index lead to, and looks
    /// up no row. Some may be of rows that have no such entry in the snapshot: the caller tests the
    /// rows. Returns false if there are no more. After a wait, call again. Not for a locking read.
    ///
    /// # Errors
    /// I/O errors and corruption.
    pub fn next_keys(
        &mut self,
        session: &mut EngineSession,
        out: &mut EqualityKeys,
    ) -> Result<bool, Stop> {
        let Inner::Consistent(read) = &mut self.inner else {
            debug_assert!(false, "a locking read returns rows");
            return Ok(false);
        };
        session.open_view();
        session.check_usable(self.table.index(self.spec.index))?;
        let view = session.view();
        read.next_keys(&self.table, &self.spec, session, &view, out)
    }

    /// Row `i` of a batch of this read does not match: in READ COMMITTED and below its locks are
    /// given up, if this read took them.
    pub fn release(&self, session: &mut EngineSession, batch: &RowBatch, i: usize) {
        release::release(&self.table, &self.spec, session, batch, i);
    }

    /// Locks row `i`, which [is not locked](RowBatch::is_unlocked) and matches, and puts its newest
    /// version in its place. False: it is gone. After a wait, call again.
    pub fn lock_row(
        &self,
        session: &mut EngineSession,
        batch: &mut RowBatch,
        i: usize,
    ) -> Result<bool, Stop> {
        release::lock_row(&self.table, &self.spec, session, batch, i)
    }
}

/// Where the entries come from.
#[derive(Default)]
pub(super) enum Source {
    #[default]
    Nothing,
    /// One full clustered key: no need of any stages.
    Point,
    /// Full clustered keys: straight to `get_many`.
    Keys,
    /// Key prefixes.
    Points,
    /// Key prefixes of a secondary index whose rows are wanted, all of them, as a snapshot sees
    /// them.
    IndexProbes,
    /// What the cursor goes through.
    Range,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    #[default]
    Fill,
    /// The rows at hand have gaps, where entries have to be resolved.
    Gaps,
    /// Entries from here on are not used yet.
    Entries(usize),
    /// The rows of `get` are being fetched.
    Rows,
    /// Found rows from here on are not resolved yet.
    Resolve(usize),
    Done,
}

/// Where a key of [`GetMany`] comes from.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeyOrigin {
    /// The index of the entry (secondary) or of the key, and the flag [`STANDS`](Self::STANDS).
    pub(super) place: u32,
    pub(super) point: u32,
    /// The leaf that the entry is in.
    pub(super) leaf: u32,
}

impl KeyOrigin {
    /// In place of an entry that decided by itself (visibility::V1).
    pub(super) const NO_ENTRY: u32 = Self::STANDS - 1;
    const STANDS: u32 = 1 << 31;

    /// `visible`: the row needs no comparison with an entry if its newest version is visible,
    /// because it was requested by its own key or by an entry that is known to be visible
    /// (visibility::V1).
    #[inline(always)]
    pub(super) fn new(place: u32, point: u32, leaf: u32, visible: bool) -> KeyOrigin {
        debug_assert!(place <= Self::NO_ENTRY, "an arena has fewer entries");
        let place = place | if visible { Self::STANDS } else { 0 };
        KeyOrigin { place, point, leaf }
    }

    pub(super) fn place(self) -> u32 {
        self.place & !Self::STANDS
    }

    #[inline(always)]
    pub(super) fn visible(self) -> bool {
        self.place & Self::STANDS != 0
    }
}

/// The state of one consistent read; all vectors keep their memory.
#[derive(Default)]
pub(super) struct Consistent {
    pub(super) source: Source,
    pub(super) cursor: Cursor,
    pub(super) stage: Stage,
    /// Where the entries go on after the rows at hand.
    pub(super) resume_at: usize,
    /// More entries come after those at hand.
    pub(super) more: bool,
    pub(super) slice: usize,
    /// Entries of a range that are certainly wanted: no more than these are brought as long as
    /// there are any.
    pub(super) wanted: usize,
    /// Entries of a range that are brought at a time, where their rows are long; 0: they are not.
    pub(super) long_rows: usize,
    pub(super) points: EqualityKeys,
    /// The keys at hand are not all that come before the next rows.
    pub(super) filling: bool,
    /// Of the clustered tree, for looks at single keys.
    pub(super) shape: TreeShape,
    pub(super) scan: PointScan,
    pub(super) entries: EntryBatch,
    /// Places in the entries at hand, in the order of the result.
    pub(super) order: Vec<u32>,
    /// Each key with where it comes from.
    pub(super) get: GetMany<KeyOrigin>,
    /// Whether the points of leads came in their order.
    pub(super) point_order: super::probes::PointOrder,
    /// The values found lie in the caller's batch already: rows are spans of it.
    pub(super) adopted: bool,
    pub(super) form: RowSource,
    pub(super) buffers: Buffers,
    /// Rows that the caller's batch had before those at hand, which are not all there yet, and
    /// their bytes.
    pub(super) base: Option<(usize, usize)>,
    pub(super) scratch: Scratch,
    pub(super) covering: CoveringScratch,
    pub(super) key: Vec<u8>,
    pub(super) row: Vec<u8>,
    pub(super) copy: Vec<u8>,
}

impl Consistent {
    #[inline]
    fn memory(&self) -> usize {
        self.scan.memory()
            + self.entries.memory()
            + self.get.memory()
            + self.scratch.memory()
            + self.buffers.memory()
            + self.shape.memory()
            + self.row.capacity()
            + self.copy.capacity()
    }

    fn reset(&mut self, spec: &ReadSpec) {
        self.stage = Stage::Fill;
        self.more = true;
        self.slice = if spec.first_rows == 0 {
            SLICE
        } else {
            spec.first_rows.min(SLICE)
        };
        self.wanted = spec.first_rows;
        self.long_rows = 0;
        self.entries.clear();
        self.order.clear();
        self.get.clear();
        self.filling = false;
        self.base = None;
    }

    fn bind_points(
        &mut self,
        table: &Table,
        spec: &ReadSpec,
        points: EqualityKeys,
    ) -> EqualityKeys {
        let clustered = spec.index == 0;
        let key = &table.index(0).key;
        let whole_keys = clustered && points.iter().all(|p| key.is_whole(p));
        if whole_keys && points.len() == 1 {
            // After another read of one point, only the source and the stage need to be set.
            if !matches!(self.source, Source::Point) {
                self.reset(spec);
            }
            (self.source, self.stage) = (Source::Point, Stage::Fill);
            return std::mem::replace(&mut self.points, points);
        }
        self.reset(spec);
        if whole_keys {
            self.source = Source::Keys;
            self.get.reserve(points.len());
            for (i, key) in points.iter().enumerate() {
                let asked = KeyOrigin::new(i as u32, i as u32, 0, true);
                self.get.push_with(key, RowHint::NONE, asked);
            }
        } else if points.len() == 1 && (clustered || spec.covering || spec.first_rows != 0) {
            // A cursor moves from leaf to leaf without a descent, and reads no more leaves than a
            // small LIMIT needs.
            self.source = Source::Range;
            let point = points.iter().next().unwrap_or_default();
            self.key.clear();
            self.key.extend_from_slice(point);
            let hi = match prefix_successor(&mut self.key) {
                true => std::ops::Bound::Excluded(self.key.as_slice()),
                false => std::ops::Bound::Unbounded,
            };
            self.cursor
                .reset(std::ops::Bound::Included(point), hi, false);
        } else {
            self.source = match clustered || spec.covering || spec.first_rows != 0 {
                true => Source::Points,
                false => Source::IndexProbes,
            };
            self.scan.clear();
            self.scan.reserve(points.len());
            for (point, word) in points.iter_with_words() {
                self.scan.push_prefix_with_word(point, word);
            }
        }
        std::mem::replace(&mut self.points, points)
    }

    fn bind_range(&mut self, spec: &ReadSpec, range: &KeyRange, reverse: bool) {
        self.reset(spec);
        self.source = Source::Range;
        let (lo, hi) = tree_bounds(range);
        self.cursor.reset(as_slice(&lo), as_slice(&hi), reverse);
    }

    fn next(
        &mut self,
        table: &Table,
        spec: &ReadSpec,
        session: &EngineSession,
        view: &View<'_>,
        out: &mut RowBatch,
        mut row_sink: Option<&mut dyn PageRowSink>,
    ) -> Result<bool, Stop> {
        let before = self.base.map_or(out.len(), |(rows, _)| rows);
        loop {
            match self.stage {
                Stage::Fill if !self.more => self.stage = Stage::Done,
                Stage::Fill if self.is_direct(spec) => {
                    self.fill_direct(table, spec, session, view, out)?;
                }
                Stage::Gaps => self.fill_gaps(table, spec, session, view, out)?,
                Stage::Fill => self.fill(table, spec, session, view)?,
                Stage::Entries(at) if at >= self.order.len() => self.stage = Stage::Fill,
                Stage::Entries(at) => {
                    if out.len() > before {
                        return Ok(true);
                    }
                    self.use_entries(session, view, at)?;
                }
                Stage::Rows => {
                    self.fetch_rows(table, session, view, out, reborrow(&mut row_sink))?;
                    if !matches!(self.source, Source::Keys) {
                        self.count_hints(table, session);
                    }
                }
                Stage::Resolve(at) => self.resolve(table, spec, session, view, at, out)?,
                Stage::Done => return Ok(false),
            }
            if self.stage == Stage::Fill {
                return Ok(self.more);
            }
        }
    }

    /// Brings the next entries.
    pub(super) fn fill(
        &mut self,
        table: &Table,
        spec: &ReadSpec,
        session: &EngineSession,
        view: &View<'_>,
    ) -> Result<(), Stop> {
        if matches!(self.source, Source::IndexProbes) {
            if matches!(view, View::Snapshot(..)) {
                return self.fill_leads(table, spec.index, session, view);
            }
            self.source = Source::Points; // newest::V4: no entry stands by itself
        }
        let store = session.store();
        let tree = &table.index(spec.index).tree;
        match self.source {
            Source::Nothing | Source::Point | Source::IndexProbes => self.more = false,
            Source::Keys => {
                self.more = false;
                self.stage = Stage::Rows;
                return Ok(());
            }
            Source::Points => {
                if self.stage == Stage::Fill && !self.order.is_empty() {
                    self.scan.clear_entries();
                    self.order.clear();
                }
                self.more = tree
                    .scan_points(store, &mut self.scan, SCAN_BYTES)
                    .map_err(lift)?;
                let entries = self.scan.entries().entries();
                self.order.extend(0..entries.len() as u32);
                if !entries.is_sorted_by_key(|e| e.point) {
                    self.order.sort_by_key(|&i| entries[i as usize].point);
                }
            }
            Source::Range => {
                self.entries.clear();
                self.order.clear();
                let most = match self.wanted {
                    0 => self.slice,
                    wanted => wanted.min(self.slice),
                };
                self.more = self
                    .cursor
                    .next_batch(tree, store, most, &mut self.entries)
                    .map_err(lift)?;
                self.wanted = self.wanted.saturating_sub(self.entries.len());
                self.order.extend(0..self.entries.len() as u32);
            }
        }
        self.stage = Stage::Entries(0);
        Ok(())
    }

    /// Collects the primary keys that a slice of the entries at hand leads to.
    fn use_entries(
        &mut self,
        session: &EngineSession,
        view: &View<'_>,
        at: usize,
    ) -> Result<(), Stop> {
        let end = self.order.len().min(at + self.slice);
        self.slice = (self.slice * 2).min(SLICE.max(self.slice));
        let entries = match self.source {
            Source::Points => self.scan.entries(),
            _ => &self.entries,
        };
        let follows_hints = session.row_hints().on();
        let steady = !matches!(view, View::Newest);
        self.get.clear();
        for &place in &self.order[at..end] {
            let entry = &entries.entries()[place as usize];
            let value = SecondaryEntry::parse(entries.value(entry)).ok_or_else(damaged)?;
            let seen = view.sees(value.trx);
            if value.deleted && seen {
                continue; // visibility::V1
            }
            let primary = value.primary_key(entries.key(entry)).ok_or_else(damaged)?;
            let row_hint = if follows_hints {
                value.row_hint
            } else {
                RowHint::NONE
            };
            let asked = KeyOrigin::new(place, entry.point, entry.place.page, seen && steady);
            self.get.push_with(primary, row_hint, asked);
        }
        self.stage = if self.get.is_empty() {
            Stage::Entries(end)
        } else {
            Stage::Rows
        };
        self.resume_at = end;
        Ok(())
    }
}

/// The row image of a resolved version.
pub(super) fn image_of<'a>(
    resolved: Resolved,
    value: &'a [u8],
    scratch: &'a Scratch,
) -> Result<&'a [u8], Stop> {
    let version = if resolved == Resolved::Older {
        &scratch.version
    } else {
        value
    };
    RowHeader::split(version)
        .map(|(_, image)| image)
        .ok_or_else(damaged)
}

/// Appends a resolved row to the batch, with the long columns that are needed.
#[allow(clippy::too_many_arguments)] // the parts of a reader that is borrowed apart
pub(super) fn emit(
    table: &Table,
    spec: &ReadSpec,
    session: &EngineSession,
    view: &View<'_>,
    resolved: Resolved,
    value: &[u8],
    scratch: &Scratch,
    origin: Origin<'_>,
    out: &mut RowBatch,
) -> Result<(), Stop> {
    if resolved == Resolved::Gone {
        return Ok(());
    }
    let image = image_of(resolved, value, scratch)?;
    if super::newest::is_unsteady(view, image) {
        return super::newest::emit_newest(table, spec, session, origin, value, out);
    }
    push_image(table, spec, session, image, origin.point, out)
}

/// Whether some of these columns are on overflow pages.
pub(super) fn needs_chains(table: &Table, columns: &[usize], image: &[u8]) -> bool {
    let layout = table.layout();
    let pointer = |c: &usize| layout.raw(image, *c).ok()?.pointer();
    let external = |c: &usize| pointer(c).is_some();
    RowLayout::has_external(image) && columns.iter().any(external)
}

/// Appends a row image to the batch, with the long columns that are needed.
pub(super) fn push_image(
    table: &Table,
    spec: &ReadSpec,
    session: &EngineSession,
    image: &[u8],
    point: u32,
    out: &mut RowBatch,
) -> Result<(), Stop> {
    let long = match spec.parts.is_empty() {
        true => needs_chains(table, &spec.columns, image),
        false => RowLayout::has_external(image),
    };
    if long {
        let start = out.bytes();
        inflate_used(table, spec, session, image, out.arena())?;
        out.push_span(point as usize, start..out.bytes());
    } else {
        out.push(point as usize, image);
    }
    Ok(())
}

/// Appends a row image with those long columns that are needed.
pub(super) fn inflate_used(
    table: &Table,
    spec: &ReadSpec,
    session: &EngineSession,
    image: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), Stop> {
    let from = (session.store(), table.def().space);
    let used = |ordinal| spec.columns.contains(&ordinal);
    let pending = session.pending_chains();
    let wanted = (used, (&spec.parts[..], session.last_lines()));
    overflow::inflate_parts(from, table.layout(), image, wanted, pending, out)
}

/// How many rows ahead of the one at hand the lines of long values are prefetched.
pub(super) const PARTS_AHEAD: usize = 2;

/// Prefetches what a row needs of its long values. `value` is the row as it is stored.
pub(super) fn prefetch_parts(
    table: &Table,
    spec: &ReadSpec,
    session: &EngineSession,
    value: Option<&[u8]>,
) {
    if let Some((_, image)) = value.and_then(RowHeader::split)
        && RowLayout::has_external(image)
    {
        let from = (session.store(), table.def().space);
        let (lines, layout) = (session.last_lines(), table.layout());
        lines.prefetch(from, layout, image, &spec.parts);
    }
}

/// Whether the row image has the entry's key. (Original bytes do not count: rows that differ in
/// them only share the entry.)
pub(crate) fn has_key(
    table: &Table,
    index: usize,
    image: &[u8],
    (key, primary): (&[u8], &[u8]),
    buffer: &mut Vec<u8>,
) -> Result<bool, Stop> {
    table.has_entry_key(index, image, (key, primary), buffer)
}

/// A covering read of one entry.
#[allow(clippy::too_many_arguments)]
pub(super) fn cover(
    table: &Table,
    spec: &ReadSpec,
    session: &EngineSession,
    view: &View<'_>,
    (key, value): (&[u8], &[u8]),
    point: u32,
    (covering, scratch, buffer, row): (
        &mut CoveringScratch,
        &mut Scratch,
        &mut Vec<u8>,
        &mut Vec<u8>,
    ),
    out: &mut RowBatch,
) -> Result<(), Stop> {
    let entry = SecondaryEntry::parse(value).ok_or_else(damaged)?;
    if view.sees(entry.trx) && (entry.deleted || !entry.bare) {
        if !entry.deleted {
            let mut whole = true;
            out.push_with(point as usize, |out| {
                whole = table.covering_row(spec.index, key, &entry, covering, out);
                whole
            });
            if !whole {
                return Err(damaged());
            }
        }
        return Ok(()); // visibility::V1
    }
    row.clear();
    let primary = entry.primary_key(key).ok_or_else(damaged)?;
    if !table
        .index(0)
        .tree
        .get(session.store(), primary, row)
        .map_err(lift)?
    {
        return Ok(());
    }
    let resolved = resolve_row(session.system(), view, row, || primary, scratch)?;
    if resolved == Resolved::Gone {
        return Ok(());
    }
    let image = image_of(resolved, row, scratch)?;
    // visibility::V2: the key decides; original bytes come from the row itself, whose version may
    // differ in them only.
    if !has_key(table, spec.index, image, (key, primary), buffer)? {
        return Ok(());
    }
    let whole = needs_chains(table, table.index_columns(spec.index), image)
        .then(|| table.whole_row(image, session.pending_chains()))
        .transpose()?;
    let image = whole.as_deref().unwrap_or(image);
    if !table.project_into(spec.index, image, point as usize, out) {
        return Err(damaged());
    }
    Ok(())
}

/// The bounds of a range as the tree takes them.
pub(super) fn tree_bounds(
    range: &KeyRange,
) -> (std::ops::Bound<KeyBytes>, std::ops::Bound<KeyBytes>) {
    let (lo, hi) = range.as_bytes();
    let lo = match (&range.lo, lo) {
        (Bound::Unbounded, _) => std::ops::Bound::Unbounded,
        (_, lo) => std::ops::Bound::Included(lo),
    };
    let hi = hi.map_or(std::ops::Bound::Unbounded, std::ops::Bound::Excluded);
    (lo, hi)
}

pub(super) fn as_slice(bound: &std::ops::Bound<KeyBytes>) -> std::ops::Bound<&[u8]> {
    bound.as_ref().map(KeyBytes::as_slice)
}

/// As [`tree_bounds`], to be kept.
pub(super) fn tree_range(range: &KeyRange) -> nfold_btree::KeyRange {
    let (lo, hi) = tree_bounds(range);
    nfold_btree::KeyRange {
        lo: lo.map(KeyBytes::into_vec),
        hi: hi.map(KeyBytes::into_vec),
    }
}
