//! Reads one table by its access path.

use std::sync::Arc;

use nfold_engine::{
    EqualityKeys, Isolation, LockWaitPolicy, PageRowSink, Read, ReadSpec, RowBatch, RowLock, Table,
    reborrow,
};
use nfold_observe::{OwnTableIo, TableCall};
use nfold_plan::query::{Access, AccessKind, Block, DocumentPaths, PointPart};
use nfold_sql::ast::{LockStrength, LockWait};
use nfold_types::SqlError;
use rustc_hash::FxHashSet;

use crate::env::batch::POOLED_BYTES;
use crate::expr::eval::EvalCx;
use crate::expr::func::DocumentParts;
use crate::expr::keys::{BoundAccess, BoundKind};
use crate::runtime::handler_calls::HandlerCalls;
use crate::runtime::{Runtime, engine_error};

use super::merge::Merge;
use super::skip::Skip;

/// Which locks the reads of slot `table` take.
pub(crate) fn row_lock(rt: &Runtime<'_>, block: &Block, table: usize) -> RowLock {
    match block.lock.of_slot(table) {
        Some(LockStrength::Share) => RowLock::Shared,
        Some(LockStrength::Update) if block.locks_to_change(table) => RowLock::Exclusive,
        _ if rt.lock_reads => RowLock::Shared,
        _ => RowLock::None,
    }
}

/// The options for reading a block's table.
pub(super) fn read_spec(
    rt: &Runtime<'_>,
    block: &Block,
    table: usize,
    access: &Access,
    first_rows: usize,
) -> ReadSpec {
    let used = block.tables[table].used.iter().enumerate();
    let lock = row_lock(rt, block, table);
    ReadSpec {
        index: access.index,
        // An exclusive lock is taken on the clustered row as well.
        covering: access.covering && lock != RowLock::Exclusive,
        lock,
        wait: match block.lock.wait_of(table) {
            LockWait::Wait => LockWaitPolicy::Wait,
            LockWait::NoWait => LockWaitPolicy::NoWait,
            LockWait::SkipLocked => LockWaitPolicy::SkipLocked,
        },
        columns: used.filter(|(_, u)| **u).map(|(c, _)| c).collect(),
        parts: Vec::new(),
        first_rows,
        semi_consistent: rt.semi_consistent
            && block.joins.len() == 1
            && block.lock.of_slot(table) == Some(LockStrength::Update),
        // Repeated finds of a row are dropped by its key.
        row_ids: matches!(access.kind, AccessKind::Fulltext(_)),
    }
}

/// Where the candidates of an outer row are.
pub(super) enum Point<'k> {
    None,
    /// At this key.
    At(&'k [u8]),
    /// In ranges, because the value is not exact. They are read for this row alone.
    Ranges,
}

/// A reader of one table.
pub(crate) struct TableReader {
    table: Arc<Table>,
    pub(super) spec: ReadSpec,
    read: Option<Read>,
    pub bound: BoundAccess,
    kind: BoundKind,
    /// The index of the next range in `bound.ranges`.
    next_range: usize,
    reverse: bool,
    open: bool,
    /// The memory of `bound` at the last binding. The keys are moved to `read`, which keeps as
    /// much.
    bound_bytes: usize,
    /// MySQL scans the table, and not an index.
    scans: bool,
    /// The worker's counters of the table, and the place to which its fetches are added.
    io: OwnTableIo,
    place: usize,
    /// The fetch that finds the end of the rows counts, too. MySQL counts the rows alone where a
    /// query reads its last table, because it measures them in one piece.
    counts_ends: bool,
    /// Of a multi-valued index: the keys that are looked up. Several may find the same row.
    elements: usize,
    /// Of a full-text search that may find a row several times: the keys of the rows found.
    found: Option<FxHashSet<Box<[u8]>>>,
    /// Of an index merge, and of a skip scan.
    merge: Option<Box<Merge>>,
    skip: Option<Box<Skip>>,
    /// The members of documents that are enough, if it locks no rows.
    documents: Option<Box<DocumentParts>>,
    /// Each point is one row at most.
    unique: bool,
    calls: HandlerCalls,
}

/// The place of the table's counters for fetches by an index, or by a scan of the table.
fn fetch_place(table: &Table, index: usize, scans: bool) -> usize {
    match scans {
        true => table.io().no_index(),
        false => table.io_place(index),
    }
}

/// Drops the rows from number `from` on that an earlier key has found too.
fn keep_first_finds(
    rt: &Runtime<'_>,
    read: &Read,
    table: &Table,
    from: usize,
    out: &mut RowBatch,
) -> Result<(), SqlError> {
    let (keys, index) = (read.lookup_keys(), read.spec().index);
    let mut first = Vec::with_capacity(out.len() - from);
    for i in from..out.len() {
        let (row, earlier) = (out.row(i), &keys[..out.point(i).min(keys.len())]);
        first.push(!rt.drive(|_| table.has_entry_below(index, row, earlier))?);
    }
    out.retain_from(from, |i| first[i]);
    Ok(())
}

/// Drops the rows from number `from` on that a full-text search has found before. `found` are the
/// keys of those rows.
fn drop_repeated(
    table: &Table,
    found: &mut FxHashSet<Box<[u8]>>,
    from: usize,
    out: &mut RowBatch,
) -> Result<(), SqlError> {
    let mut first = Vec::with_capacity(out.len() - from);
    let mut key = Vec::new();
    for i in from..out.len() {
        key.clear();
        let made = table.batch_row_key(out, i, &mut key);
        made.map_err(|e| engine_error(&e))?;
        let new = !found.contains(key.as_slice());
        if new {
            found.insert(key.as_slice().into());
        }
        first.push(new);
    }
    out.retain_from(from, |i| first[i]);
    Ok(())
}

impl TableReader {
    /// `ordered`: the rows are wanted in the order of the index.
    pub fn new(table: Arc<Table>, spec: ReadSpec, access: &Access, ordered: bool) -> TableReader {
        let whole = matches!(access.kind, AccessKind::Full) && access.index == 0;
        let scans = whole && !access.covering && !access.reverse && !ordered;
        let (io, place) = (table.io().own(), fetch_place(&table, access.index, scans));
        let unique = match (&access.kind, table.def().indexes.get(access.index)) {
            (AccessKind::Points(parts), Some(index)) => {
                index.is_unique() && parts.len() == index.parts.len()
            }
            _ => false,
        };
        let (mut merge, mut skip) = (None, None);
        match &access.kind {
            AccessKind::Merge(m) => merge = Some(Box::new(Merge::new(m, &spec))),
            // A skip scan locks no rows: a locking read scans the table.
            AccessKind::Skip(scan) if spec.lock == RowLock::None => {
                skip = Some(Box::new(Skip::new(&table, &spec, scan)));
            }
            _ => {}
        }
        TableReader {
            table,
            spec,
            read: None,
            bound: BoundAccess::default(),
            kind: BoundKind::Empty,
            next_range: 0,
            reverse: false,
            open: false,
            bound_bytes: 0,
            scans,
            io,
            place,
            counts_ends: false,
            elements: 0,
            found: None,
            merge,
            skip,
            documents: None,
            unique,
            calls: HandlerCalls::default(),
        }
    }

    /// Counts the fetches that find the ends of ranges, too.
    pub fn count_ends(mut self) -> TableReader {
        self.counts_ends = true;
        self
    }

    /// Called after an execution: frees the memory of a long list or of long rows.
    pub fn give_back(&mut self) {
        if self.memory() > POOLED_BYTES {
            self.read = None;
            self.found = None;
            self.bound = BoundAccess::default();
            self.bound_bytes = 0;
            if let Some(merge) = &mut self.merge {
                merge.give_back();
            }
            if let Some(skip) = &mut self.skip {
                skip.give_back();
            }
        }
    }

    /// The memory that it keeps, approximately, in bytes.
    #[inline]
    pub fn memory(&self) -> usize {
        let merge = self.merge.as_ref().map_or(0, |merge| merge.memory());
        let skip = self.skip.as_ref().map_or(0, |skip| skip.memory());
        self.bound_bytes + merge + skip + self.read.as_ref().map_or(0, |read| read.memory())
    }

    /// Binds the access path. Returns whether its conditions hold for every row found.
    pub fn bind<'a>(&mut self, cx: &EvalCx<'a>, access: &'a Access) -> Result<bool, SqlError> {
        self.reverse = access.reverse;
        self.kind = self
            .bound
            .bind(cx, &self.table, access.index, &access.kind)?;
        self.bound_bytes = self.bound.memory();
        self.found = self.bound.repeats.then(FxHashSet::default);
        self.scan_clustered(access);
        // Keys are read forwards only. To read them backwards, they are converted to ranges.
        if self.kind == BoundKind::Points && self.reverse {
            let keys: Vec<_> = self
                .bound
                .points
                .iter()
                .map(nfold_engine::KeyRange::prefix)
                .collect();
            self.bound.ranges = keys;
            self.kind = BoundKind::Ranges;
        }
        if self.reverse {
            self.bound.ranges.reverse();
        }
        if self.kind == BoundKind::Points {
            self.bind_points();
        }
        self.next_range = 0;
        self.open = self.kind == BoundKind::Points;
        if let (Some(merge), AccessKind::Merge(path)) = (&mut self.merge, &access.kind) {
            merge.bind(cx, &self.table, path)?;
            self.kind = BoundKind::Merged;
        }
        if let (Some(skip), AccessKind::Skip(scan)) = (&mut self.skip, &access.kind) {
            skip.bind(cx, scan)?;
            self.kind = BoundKind::Skipped;
        }
        Ok(self.bound.exact)
    }

    /// Chooses which parts of documents are read, once an execution and before anything is bound.
    #[inline]
    pub fn choose_parts<'a>(
        &mut self,
        cx: &EvalCx<'a>,
        documents: &'a [DocumentPaths],
    ) -> Result<(), SqlError> {
        match documents.is_empty() || self.spec.lock != RowLock::None {
            true => Ok(()),
            false => self.bind_parts(cx, documents),
        }
    }

    #[cold]
    fn bind_parts<'a>(
        &mut self,
        cx: &EvalCx<'a>,
        documents: &'a [DocumentPaths],
    ) -> Result<(), SqlError> {
        let bound = self.documents.get_or_insert_default();
        if let Some(parts) = bound.bind(cx, documents)? {
            self.spec.parts = parts;
            self.read = None;
        }
        Ok(())
    }

    /// Begins to read the next range. Not inlined: a lookup of keys would pay for its stack frame.
    #[inline(never)]
    fn open_range(&mut self, rt: &Runtime<'_>) {
        let range = &self.bound.ranges[self.next_range];
        match &mut self.read {
            Some(read) => read.bind_range(range, self.reverse),
            None => {
                let (table, spec) = (self.table.clone(), self.spec.clone());
                self.read = Some(Read::range(table, spec, range, self.reverse));
            }
        }
        self.calls = HandlerCalls::of_range(rt.counters, range, self.reverse, self.scans);
        self.next_range += 1;
        self.open = true;
    }

    /// Begins to look up the next keys of an index merge. False: there are no more. If they are too
    /// many, the table is scanned.
    #[cold]
    fn open_merged(&mut self, rt: &Runtime<'_>) -> Result<bool, SqlError> {
        let Some(merge) = &mut self.merge else {
            return Ok(false);
        };
        match merge.next_keys(rt, &self.table, &mut self.bound.points)? {
            Some(true) => {
                self.bind_points();
                self.calls = HandlerCalls::of_merged_rows();
                self.place = self.table.io().no_index();
                self.open = true;
            }
            Some(false) => return Ok(false),
            None => {
                self.kind = BoundKind::Ranges;
                self.place = fetch_place(&self.table, self.spec.index, self.scans);
            }
        }
        Ok(true)
    }

    /// If the values of a subquery or of a document are too many to look up, or no keys, the table
    /// is scanned, in any order.
    fn scan_clustered(&mut self, access: &Access) {
        let AccessKind::Points(parts) = &access.kind else {
            return;
        };
        if access.covering || !parts.iter().any(PointPart::may_scan) {
            return;
        }
        let index = if self.bound.unkeyed { 0 } else { access.index };
        if self.spec.index != index {
            self.spec.index = index;
            self.place = fetch_place(&self.table, index, self.bound.unkeyed);
            self.elements = 0;
            self.read = None;
        }
    }

    fn bind_points(&mut self) {
        self.calls = HandlerCalls::of_points(self.bound.points.len() as u64, self.unique);
        let points = std::mem::take(&mut self.bound.points);
        if self.table.index(self.spec.index).is_multi_valued() {
            self.elements = points.len();
        }
        match &mut self.read {
            Some(read) => self.bound.points = read.bind_points(points),
            None => self.make_read(points),
        }
    }

    /// Called at the first lookup. Not inlined: later ones would pay for its stack frame.
    #[cold]
    #[inline(never)]
    fn make_read(&mut self, points: EqualityKeys) {
        self.read = Some(Read::points(self.table.clone(), self.spec.clone(), points));
    }

    /// The only key of an access path whose parts all have a single value; `None` if it has no key.
    pub fn point<'a>(
        &mut self,
        cx: &EvalCx<'a>,
        access: &'a Access,
    ) -> Result<Point<'_>, SqlError> {
        let (table, bound) = (&self.table, &mut self.bound);
        let kind = bound.bind(cx, table, access.index, &access.kind)?;
        Ok(match kind {
            BoundKind::Points => Point::At(self.bound.points.key(0)),
            BoundKind::Empty => Point::None,
            BoundKind::Ranges | BoundKind::Merged | BoundKind::Skipped => Point::Ranges,
        })
    }

    /// Starts a lookup of these keys. `points` receives other memory in exchange. The caller counts
    /// keys without rows ([`Self::count_keys`]).
    pub fn look_up(&mut self, points: &mut EqualityKeys) {
        std::mem::swap(&mut self.bound.points, points);
        self.kind = BoundKind::Points;
        self.bind_points();
        self.calls.keys = 0;
        self.open = true;
    }

    /// Counts the fetches of a lookup of `keys` that have found no row. `rows` has the number of
    /// rows of each key.
    pub fn count_keys(&self, rows: impl Iterator<Item = u32>) {
        if !self.unique {
            let ends = rows.filter(|rows| self.counts_ends || *rows == 0);
            self.io
                .add(self.place, TableCall::Fetch, ends.count() as u64);
        }
    }

    /// Whether it finds all rows through a secondary index, looks them up in the clustered index,
    /// and locks none.
    #[inline]
    pub fn looks_up_rows(&self) -> bool {
        let spec = &self.spec;
        spec.index != 0 && !spec.covering && spec.first_rows == 0 && spec.lock == RowLock::None
    }

    /// Appends rows; false: there are no more.
    pub fn next(&mut self, rt: &Runtime<'_>, out: &mut RowBatch) -> Result<bool, SqlError> {
        self.next_into(rt, out, None)
    }

    /// As [`Self::next`]; `row_sink` receives rows that need no copy.
    pub fn next_into(
        &mut self,
        rt: &Runtime<'_>,
        out: &mut RowBatch,
        mut row_sink: Option<&mut dyn PageRowSink>,
    ) -> Result<bool, SqlError> {
        loop {
            if let (BoundKind::Skipped, Some(skip)) = (self.kind, &mut self.skip) {
                return skip.next(rt, out);
            }
            if !self.open && self.kind == BoundKind::Merged {
                if !self.open_merged(rt)? {
                    return Ok(false);
                }
                continue;
            }
            if !self.open {
                if self.kind != BoundKind::Ranges || self.next_range == self.bound.ranges.len() {
                    return Ok(false);
                }
                self.open_range(rt);
            }
            let Some(read) = &mut self.read else {
                return Ok(false);
            };
            let before = out.len();
            let row_sink = reborrow(&mut row_sink).filter(|_| self.found.is_none());
            let (more, rows) = rt.read_into(read, out, row_sink)?;
            if let Some(found) = &mut self.found {
                drop_repeated(&self.table, found, before, out)?;
            }
            if self.elements > 1 {
                keep_first_finds(rt, read, &self.table, before, out)?;
            }
            let fetches = self.calls.read(rt.counters, rows);
            self.io.add(self.place, TableCall::Fetch, fetches);
            if more {
                return Ok(true);
            }
            let ends = match self.kind {
                BoundKind::Ranges => self.calls.ended(rt.counters, self.counts_ends),
                _ => self.calls.keys_ended(self.counts_ends),
            };
            if ends > 0 {
                self.io.add(self.place, TableCall::Fetch, ends);
            }
            self.open = false;
            if self.kind == BoundKind::Merged && out.is_empty() && out.taken() == 0 {
                continue;
            }
            if self.kind == BoundKind::Merged {
                return Ok(true);
            }
            let last = self.kind != BoundKind::Ranges || self.next_range == self.bound.ranges.len();
            if last || !out.is_empty() || out.taken() > 0 {
                return Ok(!last);
            }
        }
    }

    /// Whether the locks of rows that do not match are released.
    pub fn gives_up(&self, rt: &Runtime<'_>) -> bool {
        let level = rt.env.isolation();
        self.spec.lock != RowLock::None
            && matches!(level, Isolation::ReadCommitted | Isolation::ReadUncommitted)
    }

    /// Releases the lock of row `i` of the last batch, which does not match.
    pub fn release(&self, rt: &Runtime<'_>, batch: &RowBatch, i: usize) {
        if let Some(read) = &self.read
            && self.spec.lock != RowLock::None
        {
            rt.release(read, batch, i);
        }
    }

    /// Locks row `i` of the last batch, which matches, unless it is locked already. Returns false
    /// if the row has been deleted, or has changed and must be tested again.
    pub fn lock_row(
        &self,
        rt: &Runtime<'_>,
        batch: &mut RowBatch,
        i: usize,
    ) -> Result<bool, SqlError> {
        match &self.read {
            Some(read) => rt.lock_row(read, batch, i),
            None => Ok(true),
        }
    }
}
